"""From an estimate to its risk: sums, parts of sums, and Jacobians that are used up."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._errors import StateError
from hushgraph.estimators.risk import (
    EXACT,
    Estimate,
    NoiseRisk,
    ProbeUse,
    RiskSums,
    Spread,
    freedom_of_exponents,
    freedom_of_thresholds,
    spread_along,
    sure_of,
    with_risk,
    within_gain,
)
from hushgraph.estimators.wavelet import ThresholdJacobian
from hushgraph.wavelets.noise import Noise

N, SIGMA = 40, 1.5


class Linear:
    """The estimate A y, whose Jacobian is A; with exact traces."""

    def __init__(self, matrix):
        self.matrix = matrix

    def spread(self, noise):
        A, Sigma = self.matrix, np.diag(noise.weigh(np.ones(len(self.matrix))))
        trace, frobenius = np.trace(Sigma @ A @ Sigma @ A), np.trace(A.T @ Sigma @ A @ Sigma)
        return Spread(trace, frobenius, np.diag(A @ Sigma).copy(), np.diag(A @ Sigma @ A.T).copy())


def linear_estimate(y, noise, matrix):
    divergence = np.trace(matrix @ np.diag(noise.weigh(np.ones(N)))) / noise.variance
    sure = sure_of(np.sum((y - matrix @ y) ** 2), noise.total(N), noise.variance * divergence)
    return Estimate(signal=matrix @ y, sure=sure, divergence=divergence, jacobian=Linear(matrix), probes=EXACT)


@pytest.mark.parametrize("sigma", [SIGMA, np.linspace(0.5, 2.0, N)], ids=["one sigma", "sigma per node"])
def test_the_risk_of_a_linear_estimate_is_that_of_the_formulas(sigma):
    rng = np.random.default_rng(0)
    noise, y = Noise.of(sigma), rng.normal(size=N)
    A = rng.normal(size=(N, N)) / N
    assessed = with_risk(y, linear_estimate(y, noise, A), noise)
    Sigma = np.diag(np.broadcast_to(sigma, N) ** 2)
    r = y - A @ y
    assert assessed.risk == pytest.approx(r @ r - np.trace(Sigma) + 2 * np.trace(Sigma @ A))
    square = 4 * r @ Sigma @ r + 4 * np.trace(Sigma @ A @ Sigma @ A) - 2 * np.trace(Sigma @ Sigma)
    alone = 2 * np.trace(((np.eye(N) - 2 * A) @ Sigma) @ ((np.eye(N) - 2 * A) @ Sigma))
    assert assessed.risk_se == pytest.approx(np.sqrt(alone if 4 * square < alone else square), rel=1e-6)
    assert assessed.sure.sum() == pytest.approx(assessed.risk)
    assert assessed.probe_se == 0.0


def test_probes_estimate_the_spread():
    """Enumerated: all signs of four nodes, so that the means are exact."""
    rng = np.random.default_rng(1)
    A, noise = rng.normal(size=(4, 4)), Noise.of(2.0)
    eps = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T
    seen, exact = spread_along(eps, eps @ A.T, eps @ A, noise), Linear(A).spread(noise)
    assert seen.probe_count == len(eps)
    for part, truth in zip(seen[:4], exact[:4], strict=True):
        np.testing.assert_allclose(part, truth)


def test_a_level_is_added_and_charged():
    noise, y = Noise.of(SIGMA), np.zeros(N)
    plain = linear_estimate(y, noise, np.zeros((N, N)))
    raised = Estimate(**{**plain.__dict__, "level": 7.0, "level_cost": 3.0})
    assert with_risk(y, raised, noise).risk == with_risk(y, plain, noise).risk + 3.0
    np.testing.assert_array_equal(with_risk(y, raised, noise).signal, 7.0)


def test_a_risk_above_that_of_the_noise_is_replaced():
    sums = RiskSums(50.0, 1.0, 0.0, 0.0, 0.0, 0.0, noise_total=40.0, noise_fourth=8.0, n=10)
    assert sums.or_nothing(EXACT) == (True, 40.0, 4.0, 0.0)
    assert sums._replace(sure=30.0).or_nothing(EXACT)[:2] == (False, 30.0)
    assert NoiseRisk.of(40.0, 8.0) == (40.0, 4.0)


@pytest.mark.parametrize(("source", "expected"), [("exact", 0.0), ("given", np.nan), ("probes", np.sqrt(4 * 7.0 / 3))])
def test_the_error_of_probes_depends_on_where_weights_come_from(source, expected):
    sums = RiskSums(0.0, 1.0, 2.0, 0.0, trace=4.0, frobenius=3.0, noise_total=1.0, noise_fourth=1.0, n=10)
    assert sums.risk_numbers(ProbeUse(source, 3, has_diagonal=False))[2] == pytest.approx(expected, nan_ok=True)


def test_products_of_a_jacobian_are_computed_once():
    """With one probe the memory of the slopes holds the product: a second call would give other numbers."""
    graph = hg.datasets.grid(5, 5)
    frame = hg.chebyshev_frame(graph)
    eps = np.ones((1, graph.n))
    jacobian = ThresholdJacobian(frame, np.ones((frame.n_scales, graph.n)), eps, hg.analyze(frame, eps[0])[None], None)
    jacobian.spread(Noise.of(1.0))
    with pytest.raises(StateError, match="computed before"):
        jacobian.spread(Noise.of(1.0))


def test_thresholds_cost_the_cube_root_of_the_noise_in_a_scale():
    few, many = freedom_of_thresholds(np.array([1000.0, 8000.0]))
    assert many == pytest.approx(2 * few)
    assert np.all(freedom_of_thresholds(np.array([-0.1, 0.0, 0.01])) <= [0.0, 0.0, 0.01])
    assert freedom_of_thresholds(100.0, beta=1.0) < freedom_of_thresholds(100.0) < freedom_of_thresholds(100.0, beta=4.0)
    assert freedom_of_exponents(np.array([100.0]))[0] > freedom_of_thresholds(100.0)


def test_choosing_costs_no_more_than_half_of_the_gain():
    optimism = np.full(3, 10.0)
    np.testing.assert_allclose(within_gain(optimism, np.array([0.0, 95.0, 120.0]), 100.0), [10.0, 2.5, 0.0])


@pytest.mark.statistics
@pytest.mark.parametrize("method", ["sgwt_sure", "sgwt_deep", "sgwt_block", "let", "counts"])
@pytest.mark.parametrize("sigma", [15.0, 3.0])
def test_the_risk_is_right_on_average(method, sigma):
    """Within half a standard error; terms of mean 0 that have most of the variance are taken off."""
    graph = hg.datasets.city(500, seed=5)
    truth, noise = hg.hotspot_counts(graph, total=2000).astype(float), np.random.default_rng(6).normal(0, sigma, (40, graph.n))
    results = [hg.denoise(graph, truth + one, sigma=sigma, method=method) for one in noise]
    signals = np.stack([one.signal for one in results])
    others = (signals.sum(axis=0) - signals) / (len(signals) - 1)
    chance = np.sum(noise**2, axis=1) - graph.n * sigma**2 + 2 * np.sum(noise * (truth - others), axis=1)
    bias = np.array([one.risk for one in results]) - np.sum((signals - truth) ** 2, axis=1) - chance
    assert abs(np.mean(bias / [one.risk_se for one in results])) < 0.7
