"""denoise: it helps, it repeats itself to the bit, and it keeps the form, the labels and the noise level it is given."""

import gc
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import hushgraph as hg
from hushgraph.datasets.signals import hotspot_counts, smooth_signal

METHODS = ["sgwt_sure", "sgwt_scaled", "sgwt_exact", "sgwt_deep"]
SIGMA = 8.0
FALSE_ALARM = 1e-6  # of each statistical test here


@pytest.fixture(scope="module")
def city():
    return hg.datasets.city(1500)


@pytest.fixture(scope="module")
def counts(city):
    return hotspot_counts(city)


@pytest.fixture(scope="module")
def noisy(city, counts):
    return counts + np.random.default_rng(0).normal(0, SIGMA, city.n)


@pytest.fixture(scope="module")
def town():
    """Small enough for eigenvectors many times over."""
    return hg.datasets.city(500)


@pytest.fixture(scope="module")
def small():
    """A small graph with names, in no order, for nodes."""
    bare = hg.datasets.city(120)
    names = [f"node {i}" for i in np.random.default_rng(1).permutation(bare.n)]
    return hg.Graph(bare.adjacency, coords=bare.coords, labels=names)


@pytest.fixture(scope="module")
def small_noisy(small):
    return 5 * smooth_signal(small) + np.random.default_rng(2).normal(size=small.n)


def quietly(call, *args, **options):
    """The result and the texts of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call(*args, **options)
    return result, [str(warning.message) for warning in caught]


# ---- it helps ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [3.0, 8.0, 20.0])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_improves_the_snr(city, counts, method, sigma):
    noisy = counts + np.random.default_rng(0).normal(0, sigma, city.n)
    result = hg.denoise(city, noisy, sigma=sigma, method=method)
    gain = hg.snr(counts, result.signal) - hg.snr(counts, noisy)
    assert gain > {3.0: 1.0, 8.0: 2.5, 20.0: 4.0}[sigma]
    assert result.method == method


@pytest.mark.parametrize("method", METHODS)
def test_risk_is_near_the_actual_error(city, counts, noisy, method):
    """Within four risk_se: thresholds chosen on the same noise make it a little too low."""
    result = hg.denoise(city, noisy, sigma=SIGMA, method=method)
    assert abs(result.risk - np.sum((result.signal - counts) ** 2)) < 4 * result.risk_se
    assert 0 < result.risk_se < result.risk
    assert result.risk < city.n * SIGMA**2


@pytest.mark.parametrize(("rule", "beta"), [("soft", None), ("james_stein", None), ("power", 3.0)])
@pytest.mark.parametrize("level", ["scale", "global"])
@pytest.mark.parametrize("candidates", ["all", "percentiles"])
def test_every_way_to_threshold_improves_the_snr(city, counts, noisy, rule, beta, level, candidates):
    options = {"rule": rule, "beta": beta, "level": level, "candidates": candidates}
    result = hg.denoise(city, noisy, sigma=SIGMA, method="sgwt_scaled", **options)
    assert hg.snr(counts, result.signal) > hg.snr(counts, noisy) + 1.0


def test_deep_is_scaled_when_it_goes_no_deeper(city, noisy):
    deep, scaled = (hg.denoise(city, noisy, sigma=SIGMA, method=method) for method in ("sgwt_deep", "sgwt_scaled"))
    assert deep.details["low_scales"] == 0
    assert deep.risk == min(deep.details["risk_by_low_scales"].values())
    np.testing.assert_allclose(deep.signal, scaled.signal, atol=1e-9 * np.abs(noisy).max())
    assert deep.risk == pytest.approx(scaled.risk, rel=1e-3)


def test_deep_goes_deeper_where_that_helps(city):
    truth = 5 * smooth_signal(city)
    noisy = truth + np.random.default_rng(3).normal(0, SIGMA, city.n)
    deep, shallow = (hg.denoise(city, noisy, sigma=SIGMA, method=method) for method in ("sgwt_deep", "sgwt_scaled"))
    assert deep.details["low_scales"] > 0
    assert hg.snr(truth, deep.signal) > hg.snr(truth, shallow.signal) + 1.0


def deep_and_scaled(town, **options):
    noisy = 5 * smooth_signal(town) + np.random.default_rng(0).normal(size=town.n)
    return (hg.denoise(town, noisy, sigma=1.0, method=method, **options) for method in ("sgwt_deep", "sgwt_scaled"))


def test_depths_have_no_global_threshold(town):
    """The depths of sgwt_deep share bands, so one threshold for all bands of a depth would not be theirs."""
    with pytest.raises(ValueError, match="say method='sgwt_scaled'"):
        list(deep_and_scaled(town, level="global"))


def test_risk_does_not_jump_with_rounding(town):
    """Depth 0 of sgwt_deep is sgwt_scaled but for rounding, which must not decide whether a slope counts."""
    deep, scaled = deep_and_scaled(town)
    assert deep.details["risk_by_low_scales"][0] == pytest.approx(scaled.risk, rel=1e-9)


# ---- it repeats itself ------------------------------------------------------------------------------------------


def assert_same_bits(one, other):
    np.testing.assert_array_equal(one.signal, other.signal)
    np.testing.assert_array_equal(one.thresholds, other.thresholds)
    assert (one.risk, one.risk_se, one.probe_se) == (other.risk, other.risk_se, other.probe_se)


@pytest.mark.parametrize("method", METHODS)
def test_equal_input_gives_equal_bits(city, noisy, method):
    assert_same_bits(*(hg.denoise(city, noisy, sigma=SIGMA, method=method) for _ in range(2)))


def test_an_equal_graph_gives_equal_bits(city, noisy):
    """Nothing that the first call leaves on the graph changes the second."""
    twin = hg.Graph(city.adjacency)
    assert_same_bits(hg.denoise(city, noisy, sigma=SIGMA), hg.denoise(twin, noisy, sigma=SIGMA))


@pytest.mark.parametrize("method", ["sgwt_sure", "sgwt_scaled", "sgwt_deep"])
def test_the_seed_matters_a_little(city, counts, noisy, method):
    one, other = (hg.denoise(city, noisy, sigma=SIGMA, method=method, seed=seed) for seed in (0, 1))
    assert 0 < abs(one.risk - other.risk) < 6 * one.probe_se < 0.1 * one.risk
    assert abs(hg.snr(counts, one.signal) - hg.snr(counts, other.signal)) < 0.3


@pytest.mark.parametrize("method", METHODS)
def test_float32_stays_float32_and_agrees(city, counts, noisy, method):
    single, double = (hg.denoise(city, noisy.astype(kind), sigma=SIGMA, method=method) for kind in (np.float32, np.float64))
    assert single.signal.dtype == np.float32
    assert double.signal.dtype == np.float64
    assert single.risk == pytest.approx(double.risk, rel=5e-3)
    assert single.risk_se == pytest.approx(double.risk_se, rel=5e-3)
    assert hg.snr(counts, single.signal) == pytest.approx(hg.snr(counts, double.signal), abs=0.01)


def test_integers_are_floats(city, counts):
    result = hg.denoise(city, counts.astype(int), sigma=SIGMA, method="sgwt_sure")
    np.testing.assert_array_equal(result.signal, hg.denoise(city, counts, sigma=SIGMA, method="sgwt_sure").signal)


def test_the_input_is_left_alone(city, noisy):
    before = noisy.copy()
    hg.denoise(city, noisy, sigma=SIGMA)
    np.testing.assert_array_equal(noisy, before)


# ---- several signals --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def columns(city, counts):
    """Five signals that want different depths."""
    draws = np.random.default_rng(4).normal(0, SIGMA, (city.n, 5))
    return draws + np.stack([counts, counts, 5 * smooth_signal(city), 30 * smooth_signal(city), 0 * counts], axis=1)


@pytest.mark.parametrize("sigma", ["scalar", "per node"])
@pytest.mark.parametrize("method", ["sgwt_sure", "sgwt_scaled", "sgwt_deep"])
def test_columns_equal_one_by_one_to_the_bit(city, columns, method, sigma):
    options = {"sigma": SIGMA if sigma == "scalar" else np.linspace(5, 12, city.n), "method": method}
    together = hg.denoise(city, columns, **options)
    assert together.signal.shape == columns.shape
    for m in range(columns.shape[1]):
        alone = hg.denoise(city, columns[:, m], **options)
        np.testing.assert_array_equal(together.signal[:, m], alone.signal)
        t = together.thresholds
        np.testing.assert_array_equal(t[m] if isinstance(t, list) else t[:, m], alone.thresholds)
        assert (together.risk[m], together.risk_se[m], together.probe_se[m]) == (alone.risk, alone.risk_se, alone.probe_se)


def test_columns_equal_one_by_one_with_eigenvectors(city, columns):
    """Products of dense matrices round differently for several columns."""
    together = hg.denoise(city, columns, sigma=SIGMA, method="sgwt_exact")
    for m in range(columns.shape[1]):
        alone = hg.denoise(city, columns[:, m], sigma=SIGMA, method="sgwt_exact")
        np.testing.assert_allclose(together.signal[:, m], alone.signal, atol=1e-9)
        np.testing.assert_allclose(together.thresholds[:, m], alone.thresholds, rtol=1e-9)
        np.testing.assert_allclose([together.risk[m], together.risk_se[m]], [alone.risk, alone.risk_se], rtol=1e-9)


def test_one_column_stays_a_column(city, noisy):
    result = hg.denoise(city, noisy[:, None], sigma=SIGMA, method="sgwt_sure")
    assert result.signal.shape == (city.n, 1)
    assert result.risk.shape == result.risk_se.shape == result.probe_se.shape == (1,)
    assert isinstance(hg.denoise(city, noisy, sigma=SIGMA, method="sgwt_sure").risk, float)


# ---- the noise level --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", METHODS)
def test_sigma_is_estimated_with_a_warning(city, method, seed):
    noisy = 5 * smooth_signal(city, seed=seed) + np.random.default_rng(seed).normal(size=city.n)
    result, texts = quietly(hg.denoise, city, noisy, method=method)
    assert abs(result.sigma - 1) < 0.15
    assert any("sigma was not given; estimated as" in text for text in texts)
    assert any("sigma was not given" in note for note in result.details["notes"])
    given = hg.denoise(city, noisy, sigma=result.sigma, method=method)
    np.testing.assert_array_equal(result.signal, given.signal)
    assert given.details["notes"] == []


def test_the_warning_points_to_the_caller(city):
    noisy = 5 * smooth_signal(city) + np.random.default_rng(0).normal(size=city.n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hg.denoise(city, noisy)
    assert [w.filename for w in caught if "sigma was not given" in str(w.message)] == [__file__]


def test_estimated_sigma_survives_missing_values(city):
    noisy = 5 * smooth_signal(city) + np.random.default_rng(0).normal(size=city.n)
    noisy[3] = np.nan
    result, _ = quietly(hg.denoise, city, noisy, missing="drop", method="sgwt_sure")
    assert result.sigma == pytest.approx(1, rel=0.15)


def test_sigma_from_weights_of_zero_is_refused(town):
    """Fine coefficients of isolated nodes and their exact weights are both 0, which says nothing about sigma."""
    graph = hg.Graph.from_edges(np.array(town.adjacency.nonzero()).T, n=town.n + 2)
    frame, noisy = hg.exact_frame(graph), np.random.default_rng(1).normal(size=town.n + 2)
    with pytest.raises(ValueError, match="weights must be above 0"):
        hg.estimate_sigma(graph, noisy, frame=frame, weights=hg.exact_weights(frame))


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_sigma_per_node_is_a_scalar_sigma(town, method):
    noisy = hotspot_counts(town) + np.random.default_rng(0).normal(0, 7.3, town.n)
    scalar, vector = (hg.denoise(town, noisy, sigma=s, method=method) for s in (7.3, np.full(town.n, 7.3)))
    np.testing.assert_allclose(vector.signal, scalar.signal, atol=1e-10 * np.abs(noisy).max())
    for name in ("risk", "risk_se", "probe_se"):
        assert getattr(vector, name) == pytest.approx(getattr(scalar, name), rel=1e-10)


def test_sigma_goes_by_label_too(small, small_noisy):
    sigma = np.linspace(0.5, 2, small.n)
    expected = hg.denoise(small, small_noisy, sigma=sigma).signal
    named = dict(zip(small.labels.tolist(), sigma.tolist(), strict=True))
    shuffled = pd.Series(named).sample(frac=1, random_state=0)
    for given in (named, shuffled):
        np.testing.assert_array_equal(hg.denoise(small, small_noisy, sigma=given).signal, expected)


def paired_z(town, truth, sigma, assumed, method):
    """z of the gain in squared error over a single sigma, from 30 draws."""
    noisy = truth[:, None] + sigma[:, None] * np.random.default_rng(5).normal(size=(town.n, 30))
    one = hg.denoise(town, noisy, sigma=float(np.sqrt(np.mean(sigma**2))), method=method)
    each = hg.denoise(town, noisy, sigma=assumed, method=method)
    gain = np.sum((one.signal - truth[:, None]) ** 2 - (each.signal - truth[:, None]) ** 2, axis=0)
    return gain.mean() / stats.sem(gain)


@pytest.mark.statistics
@pytest.mark.parametrize("method", METHODS)
def test_sigma_per_node_helps_where_noise_differs(town, method):
    truth = 10 * smooth_signal(town)
    sigma = np.where(town.coords[:, 0] > np.median(town.coords[:, 0]), 10.0, 2.0)
    assert stats.norm.sf(paired_z(town, truth, sigma, sigma, method)) < FALSE_ALARM
    swapped = np.where(sigma == 10.0, 2.0, 10.0)
    assert paired_z(town, truth, sigma, swapped, method) < 0, "negative control: the wrong halves do not help"


def test_scaled_thresholds_follow_sigma_per_node(town):
    """The local noise level of a coefficient comes from sigma at the nodes around it; polynomials lose nothing there."""
    counts = hotspot_counts(town, total=10 * town.n)
    sigma = np.where(np.random.default_rng(1).random(town.n) < 0.1, 20.0, 2.0)
    noisy = counts[:, None] + sigma[:, None] * np.random.default_rng(6).normal(size=(town.n, 6))
    exact = hg.denoise(town, noisy, sigma=sigma, method="sgwt_scaled", frame=hg.exact_frame(town))
    found = hg.denoise(town, noisy, sigma=sigma, method="sgwt_scaled")
    truth = np.repeat(counts[:, None], 6, axis=1)
    assert hg.snr(truth, found.signal).mean() > hg.snr(truth, exact.signal).mean() - 0.7


# ---- missing values ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def holes(city, noisy):
    values = noisy.copy()
    values[::50] = np.nan
    return values


def test_missing_values_are_an_error_unless_told(city, holes):
    with pytest.raises(ValueError, match=r"NaN or infinite.*missing='drop'"):
        hg.denoise(city, holes, sigma=SIGMA)


def test_dropped_nodes_stay_missing(city, counts, holes):
    result = hg.denoise(city, holes, sigma=SIGMA, missing="drop")
    known = ~np.isnan(holes)
    np.testing.assert_array_equal(np.isnan(result.signal), ~known)
    part = hg.denoise(city.subgraph(known), holes[known], sigma=SIGMA)
    np.testing.assert_array_equal(result.signal[known], part.signal)
    assert (result.risk, result.sigma) == (part.risk, SIGMA)
    assert result.details["missing"] == (~known).sum()
    assert hg.snr(counts[known], result.signal[known]) > hg.snr(counts[known], holes[known]) + 2


def test_filled_nodes_are_the_mean_of_their_neighbours(city, holes):
    dropped, filled = (hg.denoise(city, holes, sigma=SIGMA, missing=policy) for policy in ("drop", "fill"))
    known = ~np.isnan(holes)
    np.testing.assert_array_equal(filled.signal[known], dropped.signal[known])
    means = (city.adjacency @ filled.signal) / city.degrees
    np.testing.assert_allclose(filled.signal[~known], means[~known], atol=1e-6 * np.nanmax(np.abs(holes)))


def test_nodes_that_no_known_node_reaches_stay_missing():
    graph = hg.Graph.from_edges([(0, 1), (1, 2), (3, 4)], n=6)
    noisy = np.array([1.0, np.nan, 3.0, np.nan, np.nan, 2.0])
    result = hg.denoise(graph, noisy, sigma=0.1, missing="fill")
    np.testing.assert_array_equal(np.isnan(result.signal), [False, False, False, True, True, False])
    assert result.signal[1] == pytest.approx((result.signal[0] + result.signal[2]) / 2)


def test_missing_values_keep_sigma_per_node_in_step(city, holes):
    sigma = np.linspace(5, 12, city.n)
    known = ~np.isnan(holes)
    result = hg.denoise(city, holes, sigma=sigma, missing="drop", method="sgwt_sure")
    part = hg.denoise(city.subgraph(known), holes[known], sigma=sigma[known], method="sgwt_sure")
    np.testing.assert_array_equal(result.signal[known], part.signal)
    np.testing.assert_array_equal(result.sigma, sigma)


def test_missing_values_in_float32_columns(city, holes):
    both = np.stack([holes, np.nan_to_num(holes)], axis=1).astype(np.float32)
    result = hg.denoise(city, both, sigma=SIGMA, missing="fill", method="sgwt_sure")
    assert result.signal.dtype == np.float32
    assert np.isfinite(result.signal).all()


def test_missing_policies_refuse_what_they_cannot_do(city, holes):
    with pytest.raises(ValueError, match="no value at all"):
        hg.denoise(city, np.full(city.n, np.nan), sigma=1.0, missing="drop")
    with pytest.raises(ValueError, match="do not go with missing values"):
        hg.denoise(city, holes, sigma=1.0, missing="drop", method="sgwt_sure", frame=hg.chebyshev_frame(city))
    with pytest.raises(ValueError, match="missing"):
        hg.denoise(city, holes, sigma=1.0, missing="ignore")


# ---- labels -----------------------------------------------------------------------------------------------------


def test_series_come_back_in_their_own_order(small, small_noisy):
    expected = hg.denoise(small, small_noisy, sigma=1.0)
    series = pd.Series(small_noisy, index=small.labels, name="pickups").sample(frac=1, random_state=1)
    result = hg.denoise(small, series, sigma=1.0)
    assert isinstance(result.signal, pd.Series)
    assert result.signal.name == "pickups"
    pd.testing.assert_index_equal(result.signal.index, series.index)
    np.testing.assert_array_equal(result.signal[small.labels], expected.signal)
    pd.testing.assert_series_equal(result.to_series(), result.signal)
    assert result.risk == expected.risk


def test_dicts_come_back_as_dicts(small, small_noisy):
    expected = hg.denoise(small, small_noisy, sigma=1.0)
    order = np.random.default_rng(3).permutation(small.n)
    named = {str(small.labels[i]): float(small_noisy[i]) for i in order}
    result = hg.denoise(small, named, sigma=1.0)
    assert list(result.signal) == list(named)
    np.testing.assert_array_equal([result.signal[name] for name in small.labels], expected.signal)
    np.testing.assert_array_equal(result.to_series()[small.labels], expected.signal)


def test_frames_of_signals_come_back_as_frames(small, small_noisy):
    table = pd.DataFrame({"a": small_noisy, "b": -small_noisy}, index=small.labels).sample(frac=1, random_state=2)
    result = hg.denoise(small, table, sigma=1.0)
    assert list(result.signal.columns) == ["a", "b"]
    pd.testing.assert_index_equal(result.signal.index, table.index)
    np.testing.assert_array_equal(result.signal.loc[small.labels, "a"], hg.denoise(small, small_noisy, sigma=1.0).signal)
    pd.testing.assert_frame_equal(result.to_series(), result.signal)


def test_series_with_missing_values(small, small_noisy):
    series = pd.Series(small_noisy, index=small.labels).sample(frac=1, random_state=3)
    series.iloc[5] = np.nan
    result = hg.denoise(small, series, sigma=1.0, missing="drop")
    np.testing.assert_array_equal(result.signal.isna(), series.isna())


@pytest.mark.parametrize("gaps", [False, True])
def test_expected_errors_have_the_form_of_the_signal(small, small_noisy, gaps):
    noisy = small_noisy.copy()
    noisy[[3, 7]] = np.nan if gaps else noisy[[3, 7]]
    missing = "drop" if gaps else "error"
    plain = hg.denoise(small, noisy, sigma=1.0, missing=missing).expected_error()
    assert isinstance(plain, np.ndarray)
    series = pd.Series(noisy, index=small.labels, name="pickups").sample(frac=1, random_state=4)
    error = hg.denoise(small, series, sigma=1.0, missing=missing).expected_error()
    pd.testing.assert_series_equal(error, pd.Series(plain, index=small.labels, name="pickups").reindex(series.index))
    named = dict(zip(reversed(small.labels.tolist()), reversed(noisy.tolist()), strict=True))
    error = hg.denoise(small, named, sigma=1.0, missing=missing).expected_error()
    assert list(error) == list(named)
    np.testing.assert_array_equal([error[label] for label in small.labels.tolist()], plain)
    frame = pd.DataFrame({"a": noisy, "b": noisy[::-1]}, index=small.labels).sample(frac=1, random_state=5)
    result = hg.denoise(small, frame, sigma=1.0, missing=missing, columns="path")
    error = result.expected_error()
    pd.testing.assert_index_equal(error.index, result.signal.index)
    assert list(error.columns) == ["a", "b"]
    together = hg.denoise(small, frame.reindex(small.labels).to_numpy(), sigma=1.0, missing=missing, columns="path")
    np.testing.assert_array_equal(error.reindex(small.labels), together.expected_error())


def test_arrays_become_series_on_request(small, small_noisy, city, noisy):
    named = hg.denoise(small, small_noisy, sigma=1.0)
    np.testing.assert_array_equal(named.to_series().index, small.labels)
    np.testing.assert_array_equal(named.to_series(), named.signal)
    plain = hg.denoise(city, np.stack([noisy, noisy], axis=1), sigma=SIGMA, method="sgwt_sure").to_series()
    assert plain.shape == (city.n, 2)
    np.testing.assert_array_equal(plain.index, np.arange(city.n))


def test_other_labels_are_refused(small, small_noisy):
    series = pd.Series(small_noisy, index=[*small.labels[:-1], "elsewhere"])
    with pytest.raises(ValueError, match="labels of signal and graph differ"):
        hg.denoise(small, series, sigma=1.0)


# ---- observations that know their noise -------------------------------------------------------------------------


def test_sigma_travels_with_a_noisy_observation(city, noisy):
    observed = hg.Noisy(noisy, SIGMA, "release", city.hash)
    result = hg.denoise(city, observed)
    assert result.sigma == SIGMA
    np.testing.assert_array_equal(result.signal, hg.denoise(city, noisy, sigma=SIGMA).signal)
    np.testing.assert_array_equal(hg.denoise(city, observed, sigma=SIGMA).signal, result.signal)


def test_a_noisy_observation_refuses_another_graph_and_another_sigma(city, small, noisy):
    observed = hg.Noisy(noisy, SIGMA, "release", city.hash)
    with pytest.raises(ValueError, match="belong to another graph"):
        hg.denoise(small, observed)
    with pytest.raises(ValueError, match="sigma travels with the noisy signal"):
        hg.denoise(city, observed, sigma=SIGMA + 1)
    with pytest.raises(ValueError, match="sigma travels with the noisy signal"):
        hg.denoise(city, observed, sigma=np.linspace(5, 12, city.n))


# ---- frames and weights of the user -----------------------------------------------------------------------------


def test_the_frame_of_the_method_is_the_default(city, noisy):
    default = hg.denoise(city, noisy, sigma=SIGMA, method="sgwt_sure")
    frame = hg.chebyshev_frame(city)
    assert_same_bits(hg.denoise(city, noisy, sigma=SIGMA, method="sgwt_sure", frame=frame), default)
    weights = hg.monte_carlo_weights(frame)
    given = hg.denoise(city, noisy, sigma=SIGMA, method="sgwt_sure", frame=frame, weights=weights)
    np.testing.assert_array_equal(given.signal, default.signal)
    np.testing.assert_array_equal(given.thresholds, default.thresholds)
    assert given.risk == pytest.approx(default.risk, rel=1e-12)


def test_weights_hold_sigma_per_node(city, noisy):
    sigma = np.linspace(5, 12, city.n)
    frame = hg.chebyshev_frame(city)
    default = hg.denoise(city, noisy, sigma=sigma, method="sgwt_sure", frame=frame)
    weights = hg.monte_carlo_weights(frame, sigma=sigma)
    given = hg.denoise(city, noisy, sigma=sigma, method="sgwt_sure", frame=frame, weights=weights)
    np.testing.assert_allclose(given.signal, default.signal, atol=1e-10 * np.abs(noisy).max())
    assert given.risk == pytest.approx(default.risk, rel=1e-10)


@pytest.mark.parametrize("laplacian", ["normalized", "random_walk"])
@pytest.mark.parametrize("make", [hg.chebyshev_frame, hg.exact_frame])
def test_other_laplacians_work(town, make, laplacian):
    counts = hotspot_counts(town, total=5000)
    noisy = counts + np.random.default_rng(0).normal(0, SIGMA, town.n)
    result = hg.denoise(town, noisy, sigma=SIGMA, method="sgwt_sure", frame=make(town, laplacian=laplacian))
    assert hg.snr(counts, result.signal) > hg.snr(counts, noisy) + 2
    assert abs(result.risk - np.sum((result.signal - counts) ** 2)) < 4 * result.risk_se
    assert result.details["frame"].laplacian == laplacian


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized", "random_walk"])
def test_given_weights_do_not_change_the_risk(town, laplacian):
    """The weights of the coefficients go in; a random walk needs others for the risk of the signal."""
    noisy = hotspot_counts(town) + np.random.default_rng(0).normal(0, SIGMA, town.n)
    frame = hg.exact_frame(town, laplacian=laplacian)
    own = hg.denoise(town, noisy, sigma=SIGMA, method="sgwt_sure", frame=frame)
    given = hg.denoise(town, noisy, sigma=SIGMA, method="sgwt_sure", frame=frame, weights=hg.exact_weights(frame))
    np.testing.assert_allclose(given.signal, own.signal, atol=1e-9)
    assert given.risk == pytest.approx(own.risk, rel=1e-9)


def test_frames_and_weights_that_do_not_fit_are_refused(city, small, noisy):
    with pytest.raises(ValueError, match="another graph"):
        hg.denoise(city, noisy, sigma=SIGMA, method="sgwt_sure", frame=hg.chebyshev_frame(small))
    with pytest.raises(ValueError, match="builds its own frames"):
        hg.denoise(city, noisy, sigma=SIGMA, frame=hg.chebyshev_frame(city))
    with pytest.raises(ValueError, match="weights must have shape"):
        hg.denoise(city, noisy, sigma=SIGMA, method="sgwt_sure", weights=np.ones((2, city.n)))


# ---- small and broken graphs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_graph_without_edges_thresholds_the_values(n, method):
    graph = hg.Graph.from_edges(np.empty((0, 2), dtype=int), n=n)
    values = np.array([10.0, 0.1, -8.0, 0.2, 0.3])[:n]
    result = hg.denoise(graph, values, sigma=1.0, method=method)
    t = hg.sure_thresholds(values[None], np.ones((1, n)), sigma=1.0)
    np.testing.assert_allclose(result.signal, hg.james_stein(values, t[0])[0], atol=1e-9)
    assert np.isfinite([result.risk, result.risk_se, result.probe_se]).all()


@pytest.mark.parametrize("method", METHODS)
def test_isolated_nodes_do_no_harm(city, counts, noisy, method):
    """The connected part comes out as it does alone, up to its share in thresholds and probes."""
    edges = np.array(city.adjacency.nonzero()).T
    graph = hg.Graph.from_edges(edges, n=city.n + 3)
    values = np.append(noisy, [50.0, 0.0, -50.0])
    result = hg.denoise(graph, values, sigma=SIGMA, method=method)
    alone = hg.denoise(city, noisy, sigma=SIGMA, method=method)
    assert np.isfinite(result.signal).all()
    assert hg.snr(counts, result.signal[:-3]) == pytest.approx(hg.snr(counts, alone.signal), abs=0.3)
    assert result.risk < graph.n * SIGMA**2


def test_a_graph_without_nodes_is_refused():
    with pytest.raises(ValueError, match="no nodes"):
        hg.denoise(hg.Graph.from_edges(np.empty((0, 2), dtype=int), n=0), np.empty(0), sigma=1.0)


@pytest.mark.parametrize("n_probes", [0, -1, 2.5, True])
def test_a_bad_number_of_probes_is_refused(city, noisy, n_probes):
    with pytest.raises(ValueError, match="n_probes must be an integer of at least 1"):
        hg.denoise(city, noisy, sigma=SIGMA, n_probes=n_probes)


# ---- what it tells ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_timings_add_up_to_at_most_the_total(city, noisy, method):
    timings = hg.denoise(city, noisy, sigma=SIGMA, method=method).timings
    assert set(timings) == {"frame", "weights", "forward", "thresholds", "inverse", "risk error", "total"}
    assert all(seconds >= 0 for seconds in timings.values())
    assert sum(timings.values()) - timings["total"] <= timings["total"]


def test_estimating_sigma_is_timed(city, noisy):
    result, _ = quietly(hg.denoise, city, noisy, method="sgwt_sure")
    assert 0 < result.timings["sigma"] < result.timings["total"]


def test_details_tell_what_was_done(city, noisy):
    result = hg.denoise(city, noisy, sigma=SIGMA, method="sgwt_sure", n_probes=7)
    frame = result.details["frame"]
    assert frame.n_scales == result.details["n_scales"] == len(result.thresholds)
    assert result.details["n_probes"] == 7
    assert 0 < result.details["divergence"] < city.n
    assert result.details["tightness_defect"] == frame.tightness_defect


# ---- Manhattan --------------------------------------------------------------------------------------------------


@pytest.mark.data
def test_manhattan_has_five_scales(manhattan):
    assert hg.chebyshev_frame(manhattan[0]).n_scales == 5


@pytest.mark.data
@pytest.mark.parametrize(("sigma", "least"), [(26.49, 2.2), (8.06, 5.0), (4.22, 8.0)])
def test_manhattan_taxis(manhattan, sigma, least):
    """Mean SNR over ten draws; noisy input is far below, which is the negative control."""
    graph, truth = manhattan
    noisy = np.stack([truth + np.random.default_rng(seed).normal(0, sigma, graph.n) for seed in range(10)], axis=1)
    repeated = np.repeat(truth[:, None], 10, axis=1)
    assert hg.snr(repeated, noisy).mean() < least - 1
    assert hg.snr(repeated, hg.denoise(graph, noisy, sigma=sigma).signal).mean() >= least


# ---- memory ---------------------------------------------------------------------------------------------------------


def test_a_graph_forgets_what_was_worked_out():
    """What stays with a graph is given back by `forget`, and the same bits are worked out again."""

    def work(graph):
        noisy = np.random.default_rng(0).normal(5, 1, (graph.n, 2))
        gaps = np.where(np.arange(graph.n) == 3, np.nan, noisy[:, 0])
        settings = {"sigma": 1.0, "method": "sgwt_sure"}
        return [
            hg.denoise(graph, noisy[:, 0], sigma=1.0, method="let").signal,
            hg.denoise(graph, noisy[:, 0], sigma=1.0, method="counts").signal,
            hg.denoise(graph, noisy, columns="path", **settings).signal,
            hg.denoise(graph, gaps, missing="fill", **settings).signal,
            np.array([graph.lambda_max, graph.lambda_upper]),
        ]

    work(hg.datasets.city(300))  # imports
    graph = hg.datasets.city(1500)
    gc.collect()
    tracemalloc.start()
    try:
        first = [part.copy() for part in work(graph)]
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - sum(part.nbytes for part in first)
        graph.forget()
        gc.collect()
        left = tracemalloc.get_traced_memory()[0] - sum(part.nbytes for part in first)
    finally:
        tracemalloc.stop()
    assert kept > 200 * graph.n, "there is something to give back"
    assert left < kept / 20, f"{left / graph.n:.0f} of {kept / graph.n:.0f} bytes per node stay"
    assert len(graph.cache) == 0
    for again, before in zip(work(graph), first, strict=True):
        np.testing.assert_array_equal(again, before)


def test_gaps_in_some_columns_are_said():
    graph = hg.datasets.grid(10, 10)
    noisy = np.random.default_rng(0).normal(size=(100, 3))
    noisy[:7, 1] = np.nan
    notes = hg.denoise(graph, noisy, sigma=1, method="sgwt_sure", missing="drop").details["notes"]
    assert any("7 nodes have values in some columns and none in others" in note for note in notes)
    noisy[:7] = np.nan
    assert not hg.denoise(graph, noisy, sigma=1, method="sgwt_sure", missing="drop").details["notes"]
