"""Words fit the numbers, and numbers that protect nobody are not taken by accident."""

import json
import math
import re
from statistics import NormalDist

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.privacy import release
from hushgraph.privacy.certificate import words_of
from hushgraph.privacy.counting import declare_counts
from hushgraph.privacy.guarantee import checked_guarantee, guarantee_in_words
from hushgraph.privacy.ledger.budget import Ledger
from hushgraph.privacy.planning import plan_release

NAMES = {"dataset": "trips", "unit": "person", "adjacency": "add-remove"}
VERDICTS = ["nearly the same map", "but not strongly", "hardly protects any person", "protects no person in practice"]


@pytest.fixture(scope="module")
def counts():
    graph = hg.datasets.city(100)
    return declare_counts(graph, np.zeros(graph.n, dtype=int), unit="person", adjacency="add-remove", sensitivity=1)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "budget.db", **NAMES, epsilon=1000, delta=1e-3, weak_guarantee=True)


@pytest.mark.parametrize(
    ("epsilon", "verdict"), [(0.01, 0), (1, 0), (1.001, 1), (3, 1), (3.001, 2), (10, 2), (10.001, 3), (500, 3), (1e12, 3)]
)
@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
def test_words_fit_the_number(epsilon, verdict, adjacency):
    text = guarantee_in_words(epsilon, delta=1e-6, unit="person", adjacency=adjacency)
    assert [words in text for words in VERDICTS] == [k == verdict for k in range(4)]
    assert f"(epsilon {epsilon:.6g}, delta 1 in 1,000,000)" in text


@pytest.mark.parametrize("epsilon", [1.7, 2, 4.6, 4.61, 6.91, 10, 13.8, 14, 230.2, 700, 1e6])
def test_the_factor_is_never_below_that_of_epsilon(epsilon):
    factor = re.search(r"become (\S+)", guarantee_in_words(epsilon))[1].replace(",", "")
    said = float(factor.removeprefix("10^")) * math.log(10) if factor.startswith("10^") else math.log(float(factor))
    assert epsilon <= said <= epsilon + (math.log(10) if factor.startswith("10^") else 0.011)


@pytest.mark.parametrize("epsilon", [0.001, 0.2, 0.5, 1])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, None])
def test_nobody_is_right_more_often_than_it_says(epsilon, delta):
    """The bound is never too small, and Gaussian noise, whose best attacker is known exactly, keeps it."""
    said = float(re.search(r"at most (\S+) times in 100", guarantee_in_words(epsilon, delta=delta))[1]) / 100
    bound = (math.exp(epsilon) + (delta or 0)) / (1 + math.exp(epsilon))
    assert bound <= said <= bound + 0.001
    sigma = hg.privacy.analytic_sigma(epsilon=epsilon, delta=delta or 1e-30, sensitivity=1)
    assert NormalDist().cdf(1 / (2 * sigma)) < said


def test_words_of_earlier_certificates_still_follow_from_their_fields():
    fields = {"epsilon": 0.5, "delta": 1e-6, "unit": "person", "adjacency": "add-remove"}
    before = (
        "With or without all data of any one person, nearly the same map would come out: the chance of any result changes by a factor of "
        "1.65 at most (epsilon 0.5), but for a chance of 1 in 1,000,000 (delta)."
    )
    assert words_of({**fields, "in_words": before}) == before
    assert words_of({**fields, "in_words": before.replace("1.65", "1.05")}) == words_of(fields) != before


def test_the_words_are_short_sentences():
    for maps, adjacency in (("map", "add-remove"), ("maps", "change-one")):
        text = guarantee_in_words(0.5, delta=1e-6, unit="passenger", adjacency=adjacency, maps=maps)
        sentences = re.split(r"(?<=[.;]) ", text)
        assert len(sentences) == 3
        assert max(len(sentence.split()) for sentence in sentences) <= 22


def test_a_chance_is_never_said_to_be_smaller_than_delta():
    for delta in (1e-3, 3e-4, 2.5e-7, 1e-12):
        one_in = int(re.search(r"1 in ([\d,]+)", guarantee_in_words(1, delta=delta))[1].replace(",", ""))
        assert delta * (1 - 1e-9) <= 1 / one_in < delta * 1.001
    assert "delta 1e-30)" in guarantee_in_words(1, delta=1e-30)


def test_an_epsilon_above_ten_needs_the_explicit_word(counts, ledger, tmp_path):
    asked = {"delta": 1e-6, "ledger": ledger, "public_graph": True}
    with pytest.raises(ValueError, match=r"protects nobody in practice.*10\^218 to 1.*weak_guarantee=True"):
        release(counts, epsilon=500, **asked)
    assert len(ledger) == 1
    assert "protects no person" in release(counts, epsilon=500, weak_guarantee=True, **asked).certificate["in_words"]
    assert release(counts, epsilon=10, **asked).epsilon == 10
    with pytest.raises(ValueError, match="weak_guarantee=True"):
        Ledger.create(tmp_path / "new.db", **NAMES, epsilon=20, delta=1e-6)
    assert not (tmp_path / "new.db").exists()
    with pytest.raises(ValueError, match="weak_guarantee=True"):
        ledger.renew(epsilon=20, delta=1e-6, period="next", reason="a test")
    ledger.renew(epsilon=20, delta=1e-6, period="next", reason="a test", weak_guarantee=True)
    with pytest.raises(ValueError, match="weak_guarantee must be one of True, False"):
        checked_guarantee(20, 1e-6, weak_guarantee="yes")


@pytest.mark.parametrize(("bad", "fault"), [({"epsilon": 0}, "epsilon must be a positive"), ({"delta": 0.002}, "at most 0.001")])
def test_no_noise_at_all_and_large_deltas_are_refused_everywhere(counts, ledger, tmp_path, bad, fault):
    asked = {"epsilon": 1, "delta": 1e-6, **bad}
    for act in (
        lambda: release(counts, **asked, ledger=ledger, public_graph=True, weak_guarantee=True),
        lambda: Ledger.create(tmp_path / "new.db", **NAMES, **asked, weak_guarantee=True),
        lambda: ledger.renew(**asked, period="next", reason="a test", weak_guarantee=True),
        lambda: plan_release(counts.graph, **asked, adjacency="add-remove", max_nodes=1, max_per_node=1),
    ):
        with pytest.raises(ValueError, match=fault):
            act()
    assert len(ledger) == 1


def test_a_certificate_says_it_in_words(counts, ledger):
    public = release(counts, epsilon=5, delta=1e-6, ledger=ledger, public_graph=True)
    assert json.loads(json.dumps(public.certificate))["in_words"] == guarantee_in_words(5, delta=1e-6, unit="person")


def test_a_plan_marks_what_hardly_protects(counts):
    plan = plan_release(counts.graph, epsilon=[1, 5], adjacency="add-remove", max_nodes=1, max_per_node=1, method="sgwt_sure")
    assert ["hardly protects" in line for line in str(plan).splitlines()[2:]] == [False, True]
