"""A request for a release: one check, used before anything is counted and again before the charge."""

import dataclasses

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.privacy.calibration import analytic_sigma, classical_sigma
from hushgraph.privacy.counting import declare_counts
from hushgraph.privacy.ledger.budget import Ledger
from hushgraph.privacy.ledger.chain import BudgetExceeded
from hushgraph.privacy.release_request import ReleaseRequest
from hushgraph.privacy.releases import release

NAMES = {"dataset": "trips", "unit": "person", "adjacency": "add-remove"}


@pytest.fixture
def ledger(path):
    return Ledger.create(path, **NAMES, epsilon=1, delta=1e-6)


@pytest.fixture(scope="module")
def counts():
    graph = hg.Graph.from_edges([(0, 1), (1, 2)])
    return declare_counts(graph, np.array([4, 0, 7]), unit="person", adjacency="add-remove", sensitivity_squared=3)


def request(**changes):
    return ReleaseRequest(**{"epsilon": 0.5, "delta": 1e-6, "public_graph": True, **changes})


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 0},
        {"epsilon": 11},
        {"delta": 0.01},
        {"public_graph": False},
        {"public_graph": 1},
        {"mechanism": "laplace"},
        {"mechanism": "classical", "epsilon": 1.0},
        {"weak_guarantee": "yes"},
    ],
)
def test_what_is_refused_before_the_counting_is_refused_by_release_in_the_same_words(counts, ledger, bad):
    with pytest.raises(ValueError) as before:
        request(**bad).checked(ledger.last_snapshot)
    with pytest.raises(ValueError) as charged:
        release(counts, ledger=ledger, **dataclasses.asdict(request(**bad)))
    assert str(before.value) == str(charged.value)
    assert type(before.value) is type(charged.value)
    assert len(ledger) == 1


@pytest.mark.parametrize("mechanism", ["analytic", "classical"])
def test_a_budget_that_is_too_small_is_noticed_before_the_counting(counts, ledger, mechanism):
    release(counts, epsilon=0.9, delta=1e-6, ledger=ledger, public_graph=True)
    wish = request(epsilon=0.9, mechanism=mechanism)
    with pytest.raises(BudgetExceeded, match="nothing was charged") as before:
        wish.checked(ledger.last_snapshot)
    with pytest.raises(BudgetExceeded) as charged:
        release(counts, ledger=ledger, **dataclasses.asdict(wish))
    assert str(before.value) == str(charged.value)


def test_what_remains_can_be_asked_for_and_drawn(counts, ledger):
    release(counts, epsilon=0.4, delta=1e-6, ledger=ledger, public_graph=True)
    for delta in (1e-7, None):
        left = ledger.remaining(delta)
        wish = request(epsilon=left, delta=delta or 1e-6)
        assert wish.checked(ledger.snapshot()).epsilon == left
        with pytest.raises(BudgetExceeded):
            request(epsilon=left * (1 + 1e-9), delta=delta or 1e-6).checked(ledger.snapshot())
    release(counts, ledger=ledger, **dataclasses.asdict(wish))
    assert ledger.remaining() < 1e-6


def test_a_budget_that_another_process_renewed_is_used_at_once(counts, ledger):
    release(counts, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True)
    Ledger.open(ledger.path).renew(epsilon=1, delta=1e-6, period="next", reason="a test")
    with pytest.raises(BudgetExceeded):
        request().checked(ledger.last_snapshot)  # read before the renewal
    assert release(counts, ledger=ledger, **dataclasses.asdict(request())).ledger["budget"]["period"] == "next"


@pytest.mark.parametrize(("mechanism", "sigma"), [("analytic", analytic_sigma), ("classical", classical_sigma)])
def test_sigma_is_that_of_the_mechanism(mechanism, sigma):
    for squared in (1, 3, 400):
        asked = request(mechanism=mechanism).checked()
        assert asked.sigma(squared) == sigma(epsilon=0.5, delta=1e-6, sensitivity_squared=squared)


def test_a_checked_request_holds_plain_floats():
    asked = request(epsilon=np.float32(0.5), delta=np.float64(1e-6)).checked()
    assert [type(number) for number in (asked.epsilon, asked.delta)] == [float, float]
    with pytest.raises(dataclasses.FrozenInstanceError):
        asked.epsilon = 2.0
