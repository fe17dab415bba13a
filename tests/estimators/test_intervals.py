"""Expected errors and intervals of single nodes hold what they say, in every part of a map, and have the form of the signal."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import hushgraph as hg
from hushgraph._errors import InputError
from hushgraph.estimators.counts.empirical_bayes import counts_estimate
from hushgraph.estimators.node_risk import likely_total, spread_over_nodes, without_chance

LEVELS = (0.5, 0.8, 0.9, 0.95)


def fifths(key):
    """The fifth of the nodes that each belongs to by `key`, from 0 to 4."""
    return np.argsort(np.argsort(key, kind="stable")) * 5 // len(key)


def coverage(result, truth, level):
    lower, upper = result.interval(level)
    return (lower <= truth) & (truth <= upper)


@pytest.fixture(scope="module")
def town():
    return hg.datasets.city(1500)


@pytest.fixture(scope="module")
def count_maps(town):
    """Results and true counts of several draws."""
    maps = []
    for draw in range(4):
        truth = hg.hotspot_counts(town, total=15_000, seed=draw).astype(float)
        noisy = truth + np.random.default_rng([1, draw]).normal(0, 8, town.n)
        maps.append((hg.denoise(town, noisy, sigma=8, nonnegative=True), truth))
    return maps


@pytest.fixture(scope="module")
def smooth_maps():
    graph = hg.datasets.grid(45, 45)
    maps = []
    for draw in range(4):
        truth = 5 * hg.smooth_signal(graph, seed=draw)
        noisy = truth + np.random.default_rng([2, draw]).normal(0, 3, graph.n)
        maps.append((hg.denoise(graph, noisy, sigma=3), truth))
    return maps


# Errors of neighbours go together, so coverage has no simple law: limits are those of the page on intervals, which 400 draws kept.
@pytest.mark.parametrize("maps", ["count_maps", "smooth_maps"])
def test_intervals_hold_the_truth_as_often_as_they_say(maps, request):
    pairs = request.getfixturevalue(maps)
    for level in LEVELS[1:]:  # half of the counts are 0, and so are their intervals
        found = np.mean([coverage(result, truth, level).mean() for result, truth in pairs])
        assert found == pytest.approx(level, abs=0.05), level
    for key in (lambda result: result.signal, lambda result: result.expected_error()):
        shares = np.mean(
            [[coverage(r, t, 0.9)[fifths(key(r)) == k].mean() for k in range(5)] for r, t in pairs],
            axis=0,
        )
        assert shares == pytest.approx(0.9, abs=0.08)


@pytest.mark.parametrize("maps", ["count_maps", "smooth_maps"])
def test_intervals_of_half_the_width_do_not(maps, request):
    """The negative control."""
    pairs = request.getfixturevalue(maps)
    found = []
    for result, truth in pairs:
        lower, upper = result.interval(0.9)
        middle, half = (lower + upper) / 2, (upper - lower) / 4
        found.append(np.mean(np.abs(truth - middle) <= half))
    assert np.mean(found) < 0.8


def ratios_by_tenth(pairs, shuffle=False):
    """True over expected squared error in each tenth of the nodes, by expected error; with shuffled expectations as a control."""
    expected, true = np.zeros(10), np.zeros(10)
    for k, (result, truth) in enumerate(pairs):
        square = result.expected_error() ** 2
        square = np.random.default_rng(k).permutation(square) if shuffle else square
        part = np.argsort(np.argsort(square, kind="stable")) * 10 // len(square)
        expected += np.bincount(part, square)
        true += np.bincount(part, (result.signal - truth) ** 2)
    return true / expected


def test_expected_errors_of_counts_are_those_of_every_tenth_of_the_nodes(count_maps):
    ratios = ratios_by_tenth(count_maps)
    assert ratios.min() > 0.4
    assert ratios.max() < 1.9
    assert ratios_by_tenth(count_maps, shuffle=True)[0] > 10  # the negative control


def test_expected_errors_of_smooth_signals_are_those_of_every_tenth_of_the_nodes(smooth_maps):
    ratios = ratios_by_tenth(smooth_maps)
    assert ratios.min() > 0.5
    assert ratios.max() < 1.5


def test_where_nothing_can_be_said_no_output_says_anything(town):
    """Sigma of twice its size: expected errors and intervals are NaN, and totals are the noisy sums."""
    noisy = np.random.default_rng(0).normal(size=town.n)
    with pytest.warns(UserWarning, match="sigma is too large"):
        result = hg.denoise(town, noisy, sigma=2, nonnegative=True)
    assert not result.typical_error.is_known
    assert not result.is_error_known.any()
    assert np.isnan(result.expected_error()).all()
    assert all(np.isnan(limit).all() for limit in result.interval())
    total = result.total(range(50))
    assert total.se == pytest.approx(2 * np.sqrt(50))
    assert total.noisy == pytest.approx(noisy[:50].sum())


def test_float32_stays_float32(town):
    noisy = np.random.default_rng(0).normal(10, 2, town.n).astype(np.float32)
    result = hg.denoise(town, noisy, sigma=2, nonnegative=True)
    assert {part.dtype for part in (result.signal, result.expected_error(), *result.interval())} == {np.dtype(np.float32)}


def test_no_node_is_said_to_have_no_error():
    graph = hg.datasets.grid(40, 40)
    truth = np.zeros(graph.n)
    truth[::97] = 30.0
    result = hg.denoise(graph, truth + np.random.default_rng(0).normal(size=graph.n), sigma=1)
    square = result.expected_error() ** 2
    assert square.min() >= 0.049 * square.mean()


def test_wider_levels_contain_narrower_ones(count_maps):
    result, _ = count_maps[0]
    both = [result.interval(level) for level in LEVELS]
    for inner, outer in pairwise(both):
        assert (outer[0] <= inner[0] + 1e-9).mean() > 0.9  # the shortest intervals of two levels need not be nested everywhere
        assert ((outer[1] - outer[0]) >= (inner[1] - inner[0]) - 1e-9).all()
    lower, upper = both[-1]
    assert (lower >= 0).all()
    assert (lower <= result.signal).all()
    assert (result.signal <= upper).all()


def test_posterior_intervals_have_their_probability(town):
    """By integration on a fine grid of the two priors: the mass within the interval is the level."""
    truth = hg.hotspot_counts(town, total=15_000, seed=1).astype(float)
    noisy = truth + np.random.default_rng(3).normal(0, 8, town.n)
    posterior = counts_estimate(town, noisy, 8.0).posterior
    lower, upper = posterior.interval(0.8)
    wide_lower, wide_upper = posterior.interval(0.999)
    assert (wide_lower <= lower).all()
    assert (upper <= wide_upper).all()
    assert (posterior.expected_squares(np.ones(town.n)) >= 1).all()


@pytest.mark.parametrize("method", ["auto", "let", "filter", "sgwt_sure", "sgwt_exact"])
def test_every_method_has_intervals(method):
    graph = hg.datasets.grid(20, 20)
    noisy = np.random.default_rng(0).normal(size=(graph.n, 2)) + 3
    result = hg.denoise(graph, noisy, sigma=1, method=method)
    lower, upper = result.interval(0.8)
    assert lower.shape == upper.shape == noisy.shape
    assert (lower < upper).all()


def test_the_form_is_that_of_the_signal(town):
    labelled = hg.Graph.from_scipy(town.adjacency, coords=town.coords, labels=[f"n{i}" for i in range(town.n)])
    values = np.random.default_rng(0).normal(10, 2, town.n)
    order = np.random.default_rng(1).permutation(town.n)
    series = pd.Series(values[order], index=[f"n{i}" for i in order])
    plain = hg.denoise(town, values, sigma=2, nonnegative=True)
    named = hg.denoise(labelled, series, sigma=2, nonnegative=True)
    for expected, found in zip(plain.interval(), named.interval(), strict=True):
        assert list(found.index) == list(series.index)
        np.testing.assert_allclose(found[[f"n{i}" for i in range(town.n)]], expected)
    as_dict = hg.denoise(labelled, series.to_dict(), sigma=2, nonnegative=True).interval()[0]
    assert as_dict["n7"] == pytest.approx(plain.interval()[0][7])


def test_missing_values_have_no_interval(town):
    values = np.random.default_rng(0).normal(10, 2, town.n)
    values[[3, 500]] = np.nan
    result = hg.denoise(town, values, sigma=2, nonnegative=True, missing="drop")
    lower, upper = result.interval()
    assert np.flatnonzero(np.isnan(lower)).tolist() == [3, 500] == np.flatnonzero(np.isnan(upper)).tolist()


def test_whole_numbers_have_whole_limits(town):
    truth = hg.hotspot_counts(town, total=15_000).astype(float)
    result = hg.denoise(town, truth + np.random.default_rng(0).normal(0, 5, town.n), sigma=5, nonnegative=True, integer=True)
    lower, upper = result.interval()
    for limit in (lower, upper):
        np.testing.assert_array_equal(limit, np.rint(limit))
    assert (lower <= result.signal).all()
    assert (result.signal <= upper).all()


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, np.nan, "0.9", None])
def test_a_level_is_a_probability(level):
    graph = hg.datasets.grid(10, 10)
    result = hg.denoise(graph, np.random.default_rng(0).normal(size=100), sigma=1)
    with pytest.raises(InputError, match="level"):
        result.interval(level)


def test_results_can_be_stored_and_copied(count_maps):
    result, _ = count_maps[0]
    for copied in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        np.testing.assert_array_equal(copied.interval()[1], result.interval()[1])


def test_without_chance_flattens_what_is_chance_alone():
    rng = np.random.default_rng(0)
    chance = rng.chisquare(64, 20_000) / 64
    assert np.ptp(np.quantile(without_chance(chance, 64), [0.05, 0.95])) < 0.15
    spread = np.repeat([1.0, 9.0], 10_000) * chance
    found = without_chance(spread, 64)
    assert found[10_000:].mean() / found[:10_000].mean() == pytest.approx(9, rel=0.1)


def test_the_total_is_between_its_two_estimates():
    assert likely_total(10.0, 20.0, 1e-9, doubt=0.3) == pytest.approx(20)
    assert likely_total(10.0, 20.0, 1e9, doubt=0.3) == pytest.approx(10)
    assert likely_total(10.0, -100.0, 3.0, doubt=0.3) == pytest.approx(2)  # a risk below 0 is chance
    assert spread_over_nodes(np.zeros(3), 6.0, 0.1).tolist() == [2.0, 2.0, 2.0]
