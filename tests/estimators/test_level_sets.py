"""Signals with few levels: the column `levels` is honest about its risk, and better than total variation where there are few levels."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

import hushgraph as hg
from hushgraph.estimators.let.filters import Filters
from hushgraph.estimators.let.level_sets import levels
from hushgraph.estimators.let.observation import Observation
from hushgraph.wavelets.noise import Noise

N_DRAWS = 100


@cache
def city():
    return hg.datasets.city(700, seed=1)


def disc(graph, share):
    """A patch of this share of the nodes, around the node in the middle."""
    middle = graph.coords - np.median(graph.coords, axis=0)
    distance = np.sum(middle**2, axis=1)
    return (distance <= np.quantile(distance, share)).astype(float)


def seen(graph, y, sigma=1.0):
    noise = Noise.of(sigma)
    return Observation(Filters.of(graph, noise), y, noise)


def estimate(graph, y, sigma=1.0):
    return levels(seen(graph, y, sigma))


@pytest.mark.statistics
@pytest.mark.parametrize("height", [0.0, 1.5, 3.0])
def test_divergence_is_the_covariance_with_the_noise(height):
    """E <noise, F> = E divergence: |z| < 4.5 in 3 cases, about 2 false alarms in 100,000 runs (and the seeds are fixed).

    The control is the number of levels instead of the divergence, which is what frozen pieces would have; it must be off by 5 standard errors.
    """
    graph, rng = city(), np.random.default_rng(4)
    truth = height * disc(graph, 0.1)
    pairs = []
    for noise in rng.normal(size=(N_DRAWS, graph.n)):
        column = estimate(graph, truth + noise)
        pairs.append((noise @ column.values[0] - column.divergence[0], noise @ column.values[0] - float(column.chosen["number"])))
    right, control = np.array(pairs).T
    assert abs(right.mean() / stats.sem(right)) < 4.5
    assert control.mean() / stats.sem(control) > 5


@pytest.mark.statistics
def test_risk_of_auto_is_honest_for_few_levels():
    """The mean of (risk - error) / risk_se is within 0.5, and its standard error is 0.1: about 1 false alarm in 1,000,000 if it is 0.

    The control is a sigma that is 10 % too large.
    """
    graph, rng = city(), np.random.default_rng(8)
    truth, scores, control = 2 * disc(graph, 0.1), [], []
    for noise in rng.normal(size=(N_DRAWS, graph.n)):
        for sigma, some in ((1.0, scores), (1.1, control)):
            result = hg.denoise(graph, truth + noise, sigma=sigma)
            some.append((result.risk - np.sum((result.signal - truth) ** 2)) / result.risk_se)
    assert abs(np.mean(scores)) < 0.5
    assert abs(np.mean(control)) > 1


def test_two_levels_are_found():
    graph, rng = city(), np.random.default_rng(0)
    truth = 4 * disc(graph, 0.1)
    y = truth + rng.normal(size=graph.n)
    column = estimate(graph, y)
    assert column.chosen["number"] == 2
    best_tv = min(np.sum((one.x - truth) ** 2) for one in seen(graph, y).total_variations)
    assert np.sum((column.values[0] - truth) ** 2) < 0.5 * best_tv
    shares = hg.denoise(graph, y, sigma=1).details["sets"]
    assert shares["levels"]["share"] > 0.9


def test_eight_levels_are_found():
    graph = hg.datasets.grid(40, 40)
    truth = 3 * hg.piecewise_constant_signal(graph, n_pieces=8, seed=2)
    y = truth + np.random.default_rng(0).normal(size=graph.n)
    column = estimate(graph, y)
    assert column.chosen["number"] == 8
    assert np.sum((column.values[0] - truth) ** 2) < 0.5 * min(
        np.sum((one.x - truth) ** 2) for one in seen(graph, y).total_variations
    )


def test_smooth_signals_get_an_empty_column():
    graph = hg.datasets.grid(40, 40)
    x = np.arange(40) / 40
    y = 20 * np.add.outer(np.sin(3 * x), x**2).ravel() + np.random.default_rng(0).normal(size=graph.n)
    column = estimate(graph, y)
    assert column.chosen["number"] == 0
    assert not column.values.any()
    assert not column.divergence.any()
    assert not column.derivatives.any()


@pytest.mark.parametrize("seed", range(3))
def test_shift_scale_and_sign_carry_over(seed):
    graph, rng = city(), np.random.default_rng(seed)
    y = 3 * disc(graph, 0.1) + rng.normal(size=graph.n)
    usual = estimate(graph, y)
    assert usual.chosen["number"] > 0
    for factor, shift in ((1.0, 7.0), (1e6, 0.0), (1e-6, 0.0), (-1.0, 0.0)):
        moved = estimate(graph, factor * y + shift, abs(factor))
        np.testing.assert_allclose(moved.values[0], factor * usual.values[0] + shift, atol=1e-6 * abs(factor))
        # a step to one side, seen from -y, is a step to the other side: as good, but not the same
        np.testing.assert_allclose(moved.divergence, usual.divergence, rtol=1e-5 if factor > 0 else 0.3)


def test_a_factor_of_all_weights_changes_nothing():
    graph = city()
    y = 3 * disc(graph, 0.1) + np.random.default_rng(1).normal(size=graph.n)
    pairs = np.stack(graph.adjacency.tocoo().coords, axis=1)
    light, heavy = (hg.Graph.from_edges(pairs, n=graph.n, weights=np.full(len(pairs), w)) for w in (1.0, 50.0))
    np.testing.assert_allclose(estimate(light, y).values, estimate(heavy, y).values, atol=1e-8)


def test_weak_edges_separate():
    """Two halves of a path that a weak edge joins: the weaker the edge, the less the last node of one half follows the other."""
    y = np.repeat([0.0, 2.0], 60) + 0.5 * np.random.default_rng(3).normal(size=120)
    y[59] = 1.2
    pairs = np.stack([np.arange(119), np.arange(1, 120)], axis=1)

    def at_border(weight):
        graph = hg.Graph.from_edges(pairs, n=120, weights=np.where(np.arange(119) == 59, weight, 1.0))
        return levels(seen(graph, y, 0.5)).values[0][59]

    assert at_border(0.01) < at_border(1.0)


def test_components_with_levels_of_their_own():
    grid = hg.datasets.grid(20, 20)
    pairs = np.stack(grid.adjacency.tocoo().coords, axis=1)
    graph = hg.Graph.from_edges(np.concatenate([pairs, pairs + 400]), n=803)  # two grids and three single nodes
    truth = np.repeat([0.0, 3.0], [400, 403])
    y = truth + np.random.default_rng(2).normal(size=graph.n)
    column = estimate(graph, y)
    assert column.chosen["number"] == 2
    np.testing.assert_allclose(column.values[0][:800], truth[:800], atol=0.3)


def test_sigma_per_node():
    """A constant sigma per node gives what one sigma gives, and nodes with much noise count less."""
    graph, rng = city(), np.random.default_rng(5)
    truth = 3 * disc(graph, 0.1)
    y = truth + rng.normal(size=graph.n)
    one, each = estimate(graph, y, 1.0), estimate(graph, y, np.ones(graph.n))
    np.testing.assert_allclose(one.values, each.values, atol=1e-9)
    sigma = np.where(rng.random(graph.n) < 0.5, 0.5, 4.0)
    y = truth + sigma * rng.normal(size=graph.n)
    column = estimate(graph, y, sigma)
    assert column.chosen["number"] > 0
    assert np.sum((column.values[0] - truth) ** 2) < np.sum(
        (estimate(graph, y, float(np.sqrt(np.mean(sigma**2)))).values[0] - truth) ** 2
    )


@pytest.mark.parametrize("n", [1, 2, 5, 60])
def test_constant_signals_stay_constant(n):
    graph = hg.datasets.path(n) if n > 1 else hg.Graph.from_edges(np.empty((0, 2), dtype=int), n=1)
    column = estimate(graph, np.full(n, 3.0))
    assert np.ptp(column.values[0]) < 1e-9
    np.testing.assert_allclose(hg.denoise(graph, np.full(n, 3.0), sigma=1.0).signal, 3.0)


def test_derivatives_are_finite_differences_over_the_step():
    graph = city()
    one = seen(graph, 3 * disc(graph, 0.1) + np.random.default_rng(6).normal(size=graph.n))
    column = levels(one)
    eps = one.filters.probes.eps
    np.testing.assert_allclose(column.divergence[0], np.mean(np.sum(eps * column.derivatives[0], axis=1)))
    assert column.derivatives.shape == (1, *eps.shape)
    again = levels(replace(one, y=one.y.copy()))
    assert np.array_equal(column.values, again.values)
    assert np.array_equal(column.derivatives, again.derivatives)
