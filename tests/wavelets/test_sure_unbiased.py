"""SURE is unbiased, of the coefficients and of the signal, at thresholds that do not look at the noise.

Each test is a two-sided z-test of the mean of SURE minus loss over 4,000 (once 1,000) draws of the noise at a fixed seed, with a
false-alarm rate of 1e-6, and has a negative control that the same test must reject.
"""

import numpy as np
import pytest
from scipy import stats

import hushgraph as hg

from ..support.samples import sixty_nodes, waves_and_spikes

LAPLACIANS = ["combinatorial", "normalized", "random_walk"]
FRAMES = ["exact", "chebyshev"]
RULES = [("soft", None), ("james_stein", None), ("power", 3.0)]
pytestmark = pytest.mark.statistics
SIGMA, DRAWS, FALSE_ALARM = 1.3, 4000, 1e-6


@pytest.fixture(scope="module")
def graph():
    return sixty_nodes()


@pytest.fixture(scope="module")
def truth(graph):
    return waves_and_spikes(graph.n)


@pytest.fixture(scope="module")
def noise(graph):
    return np.random.default_rng(3).normal(size=(graph.n, DRAWS))


def make_frame(graph, kind, laplacian="combinatorial"):
    """A tight frame, or polynomials of so low a degree that theirs is visibly not tight."""
    if kind == "exact":
        return hg.exact_frame(graph, laplacian=laplacian)
    return hg.chebyshev_frame(graph, degree=12, laplacian=laplacian)


def thresholds(frame):
    """Fixed ones, of the size of the noise in each scale."""
    return SIGMA * np.linspace(0.05, 0.3, frame.n_scales)


def estimate(F, t, *, rule, beta=None, scale=None):
    """Thresholded coefficients and slopes."""
    field = t[:, None, None] * (1.0 if scale is None else scale[:, :, None])
    return hg.shrink(F, np.broadcast_to(field, (*field.shape[:1], *F.shape[1:])), rule=rule, beta=beta)


def z_of(difference):
    return difference.mean() / stats.sem(difference)


def assert_unbiased(difference):
    z = z_of(difference)
    assert 2 * stats.norm.sf(abs(z)) > FALSE_ALARM, f"SURE is biased: z = {z:.2f}"


def assert_rejected(difference):
    z = z_of(difference)
    assert 2 * stats.norm.sf(abs(z)) < FALSE_ALARM, f"the test has no power: z = {z:.2f}"


# ---- risk of the coefficients -----------------------------------------------------------------------------------


def coefficient_loss(frame, truth, value):
    return np.sum((value - hg.analyze(frame, truth)[:, :, None]) ** 2, axis=(0, 1))


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("rule", "beta"), RULES)
@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("kind", FRAMES)
def test_sure_is_unbiased_for_the_coefficients(graph, truth, noise, kind, laplacian, rule, beta, scaled):
    frame = make_frame(graph, kind, laplacian)
    F, t, weights = hg.analyze(frame, truth[:, None] + SIGMA * noise), thresholds(frame), hg.exact_weights(frame)
    value, _ = estimate(F, t, rule=rule, beta=beta, scale=np.sqrt(weights) if scaled else None)
    loss = coefficient_loss(frame, truth, value)
    options = {"weights": weights, "rule": rule, "beta": beta, "threshold_scale": scaled}
    assert_unbiased(hg.sure(F, t, sigma=SIGMA, **options) - loss)
    assert_rejected(hg.sure(F, t, sigma=1.1 * SIGMA, **options) - loss)


@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("kind", FRAMES)
def test_sure_is_unbiased_with_sigma_per_node(graph, truth, noise, kind, laplacian):
    frame = make_frame(graph, kind, laplacian)
    sigma = np.geomspace(0.2, 4.0, graph.n)
    F, t = hg.analyze(frame, truth[:, None] + sigma[:, None] * noise), thresholds(frame)
    loss = coefficient_loss(frame, truth, estimate(F, t, rule="james_stein")[0])
    assert_unbiased(hg.sure(F, t, weights=hg.exact_weights(frame, sigma=sigma), sigma=1.0) - loss)
    assert_rejected(hg.sure(F, t, weights=hg.exact_weights(frame, sigma=1.1 * sigma), sigma=1.0) - loss)
    mean_square = np.sqrt(np.mean(sigma**2))
    assert_rejected(hg.sure(F, t, weights=hg.exact_weights(frame), sigma=mean_square) - loss)


@pytest.mark.parametrize("laplacian", LAPLACIANS)
def test_monte_carlo_weights_leave_sure_unbiased(graph, truth, noise, laplacian):
    """One probe for each draw of the noise: the means over both agree with the loss."""
    frame = make_frame(graph, "exact", laplacian)
    F, t = hg.analyze(frame, truth[:, None] + SIGMA * noise[:, :1000]), thresholds(frame)
    loss = coefficient_loss(frame, truth, estimate(F, t, rule="soft")[0])
    values = {1.0: [], 1.1: []}
    for k in range(1000):
        weights = hg.monte_carlo_weights(frame, n_probes=1, seed=k)
        for factor, found in values.items():
            found.append(hg.sure(F[:, :, k], t, weights=weights, sigma=factor * SIGMA, rule="soft"))
    assert_unbiased(np.array(values[1.0]) - loss)
    assert_rejected(np.array(values[1.1]) - loss)


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
def test_a_polynomial_frame_needs_the_sum_of_its_weights(graph, truth, noise, laplacian):
    """The constant is -sigma^2 sum(weights); the paper's -n sigma^2 is right for tight frames only."""
    for kind, holds in (("exact", True), ("chebyshev", False)):
        frame = make_frame(graph, kind, laplacian)
        F, t, weights = hg.analyze(frame, truth[:, None] + SIGMA * noise), thresholds(frame), hg.exact_weights(frame)
        found = hg.sure(F, t, weights=weights, sigma=SIGMA)
        paper = found + SIGMA**2 * (weights.sum() - graph.n)
        loss = coefficient_loss(frame, truth, estimate(F, t, rule="james_stein")[0])
        assert_unbiased(found - loss)
        (assert_unbiased if holds else assert_rejected)(paper - loss)


# ---- risk of the signal -----------------------------------------------------------------------------------------


def signal_error(truth, denoised):
    return np.sum((denoised - truth[:, None]) ** 2, axis=0)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("rule", "beta"), RULES)
@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("kind", FRAMES)
def test_signal_sure_is_unbiased_for_the_signal(graph, truth, noise, kind, laplacian, rule, beta, scaled):
    """Here the constant is -n sigma^2 for polynomial frames too: it belongs to the noise, not to the frame."""
    frame = make_frame(graph, kind, laplacian)
    noisy, scale = truth[:, None] + SIGMA * noise, np.sqrt(hg.exact_weights(frame)) if scaled else None
    value, slope = estimate(hg.analyze(frame, noisy), thresholds(frame), rule=rule, beta=beta, scale=scale)
    denoised = hg.synthesize(frame, value)
    divergence = np.einsum("ji,jim->m", hg.exact_weights(frame, domain="signal"), slope)
    loss = signal_error(truth, denoised)
    assert_unbiased(hg.signal_sure(noisy, denoised, divergence=divergence, sigma=SIGMA) - loss)
    assert_rejected(hg.signal_sure(noisy, denoised, divergence=divergence, sigma=1.1 * SIGMA) - loss)


@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("kind", FRAMES)
def test_signal_sure_is_unbiased_with_sigma_per_node(graph, truth, noise, kind, laplacian):
    frame = make_frame(graph, kind, laplacian)
    sigma = np.geomspace(0.2, 4.0, graph.n)
    noisy = truth[:, None] + sigma[:, None] * noise
    value, slope = estimate(hg.analyze(frame, noisy), 2 * thresholds(frame), rule="soft")
    denoised = hg.synthesize(frame, value)
    loss = signal_error(truth, denoised)

    def sure(assumed):
        divergence = np.einsum("ji,jim->m", hg.exact_weights(frame, sigma=assumed, domain="signal"), slope)
        return hg.signal_sure(noisy, denoised, divergence=divergence, sigma=assumed)

    assert_unbiased(sure(sigma) - loss)
    assert_rejected(sure(1.1 * sigma) - loss)
    assert_rejected(sure(np.full(graph.n, np.sqrt(np.mean(sigma**2)))) - loss)


def test_random_walks_need_the_weights_of_the_signal_domain(graph, truth, noise):
    frame = make_frame(graph, "exact", "random_walk")
    noisy = truth[:, None] + SIGMA * noise
    value, slope = estimate(hg.analyze(frame, noisy), thresholds(frame), rule="james_stein")
    denoised = hg.synthesize(frame, value)
    loss = signal_error(truth, denoised)
    for domain, check in (("signal", assert_unbiased), ("coefficients", assert_rejected)):
        divergence = np.einsum("ji,jim->m", hg.exact_weights(frame, domain=domain), slope)
        check(hg.signal_sure(noisy, denoised, divergence=divergence, sigma=SIGMA) - loss)


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
def test_sure_of_the_coefficients_is_not_the_risk_of_the_signal(graph, truth, noise, laplacian):
    """The signal's error is smaller: synthesis of a tight frame is a projection."""
    frame = make_frame(graph, "exact", laplacian)
    noisy = truth[:, None] + SIGMA * noise
    F, t = hg.analyze(frame, noisy), 3 * thresholds(frame)
    value, slope = estimate(F, t, rule="james_stein")
    denoised, weights = hg.synthesize(frame, value), hg.exact_weights(frame)
    of_coefficients, of_signal = coefficient_loss(frame, truth, value), signal_error(truth, denoised)
    assert np.all(of_signal <= of_coefficients * (1 + 1e-12))
    found = hg.sure(F, t, weights=weights, sigma=SIGMA)
    assert_unbiased(found - of_coefficients)
    assert_rejected(found - of_signal)
    assert np.mean(found - of_signal) > 0.02 * np.mean(of_signal)
    same_divergence = np.einsum("ji,jim->m", weights, slope)
    assert_unbiased(hg.signal_sure(noisy, denoised, divergence=same_divergence, sigma=SIGMA) - of_signal)
