"""plan_release: what an epsilon buys, from public inputs alone."""

import os

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.privacy import lattice as noise, planning
from hushgraph.privacy.calibration import analytic_sigma, classical_sigma
from hushgraph.privacy.lattice import lattice_noise
from hushgraph.privacy.planning import plan_release
from hushgraph.privacy.releases import simulate

CAPS = {"adjacency": "add-remove", "max_nodes": 4, "max_per_node": 1}


@pytest.fixture(scope="module")
def graph():
    return hg.datasets.city(600)


@pytest.fixture(scope="module")
def plan(graph):
    return plan_release(graph, epsilon=(0.2, 1, 5), expected_total=4000, **CAPS)


def test_sigma_and_errors(plan):
    assert plan.sensitivity_squared == 4
    for row in plan.rows:
        assert row.sigma == analytic_sigma(epsilon=row.epsilon, delta=1e-6, sensitivity_squared=4)
        assert row.error_noisy == pytest.approx(row.sigma, rel=0.1)
        assert row.error_denoised < row.error_noisy
        assert row.snr_denoised > row.snr_noisy
    for name in ("sigma", "error_denoised", "smallest_region"):
        values = [getattr(row, name) for row in plan.rows]
        assert values == sorted(values, reverse=True)


def test_the_smallest_region_is_reliable(plan):
    """sigma sqrt(m) is 10 % of the expected total of m average nodes, and not of m - 1."""
    density = plan.expected_total / plan.n_values
    for row in plan.rows:
        m = row.smallest_region
        assert row.sigma * np.sqrt(m) <= 0.1 * density * m * (1 + 1e-12)
        assert m == 1 or row.sigma * np.sqrt(m - 1) > 0.1 * density * (m - 1)
        assert row.smallest_total == pytest.approx(m * density)


def test_the_forecast_comes_true(graph, plan):
    """Other generated maps of the same kind have the error that was announced: within 25 % over six of them (one differs by 15 %)."""
    for row in plan.rows:
        squares = []
        for seed in range(6):
            truth = hg.hotspot_counts(graph, total=4000, seed=99 + seed)
            noisy = simulate(graph, truth, epsilon=row.epsilon, delta=1e-6, sensitivity_squared=4, seed=5 + seed)
            squares.append(np.mean((hg.denoise(graph, noisy, nonnegative=True).signal - truth) ** 2))
        assert np.sqrt(np.mean(squares)) == pytest.approx(row.error_denoised, rel=0.25)


def test_it_says_so_in_words(plan):
    text = str(plan)
    assert "the data was not looked at" in text
    assert len(text.splitlines()) == 2 + len(plan.rows)
    assert "more than there are" in text  # at epsilon 0.2 the whole city is too small


def test_windows_change_one_and_classical(graph):
    plan = plan_release(
        graph, epsilon=0.5, adjacency="change-one", max_cells=3, max_per_cell=2, n_windows=4, n_draws=1, mechanism="classical"
    )
    assert plan.sensitivity_squared == 24
    assert plan.n_values == 4 * graph.n
    assert plan.rows[0].sigma == classical_sigma(epsilon=0.5, delta=1e-6, sensitivity_squared=24)


def test_a_city_stands_in():
    bare = hg.Graph.from_edges([(k, k + 1) for k in range(299)])
    assert plan_release(bare, epsilon=1, n_draws=1, **CAPS).n_values == 300
    assert plan_release(epsilon=1, n_draws=1, **CAPS).n_values > 3000


def test_it_draws_no_private_noise_and_touches_no_state(graph, monkeypatch, tmp_path):
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(noise, "lattice_noise", lambda *_, **__: pytest.fail("a plan draws no private noise"))
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda size: pytest.fail("a plan takes no entropy") if size > 64 else real(size))
    plan_release(graph, epsilon=1, n_draws=1, **CAPS)
    assert list(tmp_path.iterdir()) == []
    assert lattice_noise is not noise.lattice_noise  # the patch above was in place


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"adjacency": None}, "adjacency must be declared"),
        ({"max_nodes": None}, "give max_nodes and max_per_node"),
        ({"max_cells": 3}, "max_cells cannot be used here"),
        ({"epsilon": -1}, "epsilon must be a positive number"),
        ({"epsilon": "1"}, "epsilon must be a positive number"),
        ({"delta": 0}, "delta must be above 0 and at most"),
        ({"expected_total": -5}, "expected_total must be a positive"),
        ({"reliable": 2}, "reliable must be a relative error"),
        ({"n_draws": 0}, "n_draws must be an integer of at least 1"),
        ({"method": "magic"}, "method must be one of"),
        ({"mechanism": "laplace"}, "mechanism must be one of"),
        ({"seed": -1}, "seed must be an integer"),
        (
            {"n_windows": 0, "max_nodes": None, "max_per_node": None, "max_cells": 1, "max_per_cell": 1},
            "n_windows must be an integer",
        ),
    ],
)
def test_bad_plans(graph, change, message):
    with pytest.raises(ValueError, match=message):
        plan_release(graph, **{"epsilon": 1, "n_draws": 1, **CAPS, **change})


# ---- after earlier maps -----------------------------------------------------------------------------------------------


def test_earlier_maps_make_the_next_one_better(graph, plan):
    """Twelve earlier maps remove more than a third of the error per value, and change nothing else."""
    found = plan_release(graph, epsilon=(0.2, 1), expected_total=4000, after=12, **CAPS)
    assert found.after == 12
    for row, before in zip(found.rows, plan.rows, strict=False):
        same = (
            "epsilon",
            "sigma",
            "error_noisy",
            "error_denoised",
            "snr_noisy",
            "snr_denoised",
            "smallest_region",
            "smallest_total",
        )
        assert [getattr(row, name) for name in same] == [getattr(before, name) for name in same]
        assert row.error_guided < 0.67 * row.error_denoised
        assert row.snr_guided > row.snr_denoised + 3
    text = str(found).splitlines()
    assert text[1] == "guided: with 12 earlier maps of the same kind as guides"
    assert text[2].count("guided") == 2
    assert len(text) == 3 + len(found.rows)


def test_plans_without_earlier_maps_are_as_before(plan):
    assert plan.after is None
    assert all((row.error_guided, row.snr_guided) == (None, None) for row in plan.rows)
    assert "guided" not in str(plan)


def test_earlier_maps_have_other_events_with_the_same_expectation(graph):
    """The truth is Poisson about the mean of many earlier maps, and one earlier map is independent of it."""
    truth, mean, one = (
        planning._generated(graph, 1, 4000, 0),
        *(planning._earlier(graph, 1, 4000, 0, count) for count in (10_000, 1)),
    )
    assert mean.sum() == pytest.approx(4000, rel=1e-3)
    assert np.array_equal(one, one.round())
    for counts in (truth, one):
        assert np.mean((counts - mean) ** 2) == pytest.approx(mean.mean(), rel=0.25)
    busy = mean > 0.1
    surprises = [(counts - mean)[busy] / np.sqrt(mean[busy]) for counts in (truth, one)]
    assert abs(np.corrcoef(surprises)[0, 1]) < 5 / np.sqrt(busy.sum())
    assert planning._earlier(graph, 3, 4000, 0, 2).shape == (graph.n, 3)


def test_earlier_days_with_windows():
    town = hg.datasets.city(150)
    caps = {"adjacency": "add-remove", "max_cells": 2, "max_per_cell": 1, "n_windows": 3}
    (row,) = plan_release(town, epsilon=0.5, after=4, **caps).rows
    assert row.error_guided < row.error_denoised < row.error_noisy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"after": 0}, "after must be an integer"),
        ({"after": 1.5}, "after must be an integer"),
        ({"after": 100_000}, "after must be an integer"),
        ({"after": 3, "method": "sgwt_sure"}, "after= belongs to method='auto' or 'let' or 'counts'; got 'sgwt_sure'"),
    ],
)
def test_bad_numbers_of_earlier_maps(graph, change, message):
    with pytest.raises(ValueError, match=message):
        plan_release(graph, epsilon=1, n_draws=1, **CAPS, **change)
