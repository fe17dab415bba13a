"""Exponents chosen by SURE have the least SURE of those on offer, and rules with one exponent per scale are applied as such."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

import hushgraph as hg
from hushgraph.wavelets.exponents import BETAS, sure_betas
from hushgraph.wavelets.thresholds import apply_thresholds

FALSE_ALARM = 1e-6


def sure_at(F, t, beta, weights, sigma, scaled=False):
    return hg.sure(F, t, weights=weights, sigma=sigma, rule="power", beta=beta, threshold_scale=scaled)


def applied(F, t, betas, scale=None):
    value, slope = F.copy(), np.empty_like(F)
    apply_thresholds(value, t, slope, rule="power", beta=betas, scale=scale)
    return value, slope


reals = st.floats(-1e3, 1e3).map(lambda x: round(x, 6)) | st.integers(-4, 4).map(float)
rows = st.lists(st.tuples(reals, st.floats(0, 2), st.floats(0.5, 2)), min_size=1, max_size=25).map(lambda part: np.array(part).T)


@given(case=rows, sigma=st.sampled_from([0.01, 1.0, 3.0, 50.0]), scaled=st.booleans())
def test_no_other_exponent_or_threshold_has_less_sure(case, sigma, scaled):
    F, weights, scale = (part[None] for part in case)
    scaled = scale if scaled else False
    beta, t = sure_betas(F, weights, sigma=sigma, threshold_scale=scaled)
    found = sure_at(F, t, beta[0], weights, sigma, scaled)
    z = np.abs(F) / scale if scaled is not False else np.abs(F)
    grid = [0.0, *(z.ravel() * (1 + 1e-13)), *np.linspace(0, 1.1 * z.max(), 50)]
    brute = min(sure_at(F, float(u), b, weights, sigma, scaled) for b in BETAS for u in grid)
    assert found <= brute + 1e-11 * (np.sum(F**2) + sigma**2 * np.sum(weights) * max(BETAS))


@pytest.mark.parametrize("scaled", [False, True])
def test_each_scale_and_signal_has_its_own(scaled):
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.1, 1, (3, 2000))
    spikes = (rng.random((2000, 2)) < 0.03) * 12.0  # few large values: nearly hard thresholds are best, soft ones among many small
    F = np.stack([rng.laplace(size=(2000, 2)) / 2, spikes, rng.normal(size=(2000, 2)) * 2])
    F = F + np.sqrt(weights)[:, :, None] * rng.normal(size=F.shape)
    betas, t = sure_betas(F, weights, sigma=1.0, threshold_scale=scaled)
    assert betas.shape == t.shape == (3, 2)
    assert betas[1].min() >= 4 > 2 >= betas[0].max()
    for m in range(2):
        one, threshold = sure_betas(F[:, :, m], weights, sigma=1.0, threshold_scale=scaled)
        np.testing.assert_array_equal(one, betas[:, m])
        np.testing.assert_array_equal(threshold, t[:, m])
    alone = sure_betas(F[:, :, 0], weights, sigma=1.0, betas=[2], threshold_scale=scaled)
    np.testing.assert_array_equal(alone[0], 2.0)
    np.testing.assert_array_equal(alone[1], hg.sure_thresholds(F[:, :, 0], weights, sigma=1.0, threshold_scale=scaled))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scaled", [False, True])
def test_one_exponent_per_scale_is_applied_as_one_by_one(dtype, scaled):
    rng = np.random.default_rng(1)
    F, scale = rng.normal(size=(4, 500)).astype(dtype), rng.uniform(0.5, 2, (4, 500)) if scaled else None
    t, betas = np.array([0.0, 0.5, 1.0, 0.3]), np.array([2.0, 1.0, 3.5, 10.0])
    value, slope = applied(F, t, betas, scale)
    for j in range(4):
        part = slice(j, j + 1)
        one, its_slope = applied(F[part], t[part], float(betas[j]), None if scale is None else scale[part])
        np.testing.assert_array_equal(value[part], one)
        np.testing.assert_array_equal(slope[part], its_slope)
        limit = t[j] * (1.0 if scale is None else scale[j].astype(dtype))
        expected, its_slope = hg.shrink(F[j], limit, rule="power", beta=betas[j])
        np.testing.assert_allclose(value[j], expected, rtol=1e-5 if dtype is np.float32 else 1e-13, atol=1e-6)
        np.testing.assert_allclose(slope[j], its_slope, rtol=1e-4 if dtype is np.float32 else 1e-12)
    same = applied(F, t, np.full(4, 3.0), scale)
    for one, other in zip(same, applied(F, t, 3.0, scale), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.statistics
def test_divergence_is_that_of_finite_differences():
    """60 probes, |z| < 4: a false-alarm rate of 2e-4 (Student's t). The slopes of another exponent must fail."""
    graph = hg.datasets.grid(12, 12)
    frame = hg.exact_frame(graph)
    y = hg.smooth_signal(graph) + np.random.default_rng(0).normal(size=graph.n)
    t, betas = np.full(frame.n_scales, 0.4), np.array([1.0, 1.5, 4.0, 10.0, 3.0])[: frame.n_scales]
    value, se = hg.monte_carlo_divergence(
        lambda signal: hg.synthesize(frame, applied(hg.analyze(frame, signal), t, betas)[0]), y, n_probes=60, step=1e-6
    )
    F, weights = hg.analyze(frame, y), hg.exact_weights(frame)
    assert abs(value - np.sum(weights * applied(F, t, betas)[1])) < 4 * se
    assert abs(value - np.sum(weights * applied(F, t, 1.0)[1])) > 4 * se


@pytest.mark.statistics
def test_sure_with_one_exponent_per_scale_is_unbiased():
    """2,000 draws of the noise, false-alarm rate 1e-6; sigma off by 10 % must be caught."""
    graph = hg.datasets.grid(8, 8)
    frame, rng = hg.exact_frame(graph), np.random.default_rng(0)
    truth = 4 * hg.smooth_signal(graph)
    clean, weights = hg.analyze(frame, truth), hg.exact_weights(frame)
    t, betas = np.full(frame.n_scales, 0.5), np.array([1.0, 1.5, 4.0, 10.0, 3.0])[: frame.n_scales]
    differences = {1.0: [], 1.21: []}
    for F in np.moveaxis(hg.analyze(frame, truth[:, None] + rng.normal(size=(graph.n, 2000))), 2, 0):
        value, slope = applied(np.ascontiguousarray(F), t, betas)
        for variance, found in differences.items():
            found.append(np.sum((value - F) ** 2 + variance * weights * (2 * slope - 1)) - np.sum((value - clean) ** 2))
    z = {variance: np.mean(found) / stats.sem(found) for variance, found in differences.items()}
    assert 2 * stats.norm.sf(abs(z[1.0])) > FALSE_ALARM, f"SURE is biased: z = {z[1.0]:.2f}"
    assert 2 * stats.norm.sf(abs(z[1.21])) < FALSE_ALARM, f"the test has no power: z = {z[1.21]:.2f}"


@pytest.mark.parametrize("F", [np.zeros((2, 1)), np.zeros((2, 5)), np.ones((2, 1)), np.zeros((2, 0))])
def test_no_values_and_zeros(F):
    betas, t = sure_betas(F, np.ones(F.shape), sigma=1.0)
    assert np.isfinite(t).all()
    assert set(betas) <= set(BETAS)
    assert np.isfinite(applied(F, t, betas)[0]).all()


@pytest.mark.parametrize("betas", [(), 2.0, (0.5,), (np.inf,), ("soft",)])
def test_what_is_no_exponent_is_refused(betas):
    with pytest.raises(ValueError, match="beta"):
        sure_betas(np.ones((1, 3)), np.ones((1, 3)), sigma=1.0, betas=betas)


def test_exponents_must_be_one_per_scale():
    with pytest.raises(ValueError, match=r"shorter|longer"):
        applied(np.ones((3, 4)), np.ones(3), np.array([1.0, 2.0]))
