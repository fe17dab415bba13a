"""The error bars: risk_se is how far SURE is from the actual loss, probe_se how far the probes move it.

Statistical tests are at fixed seeds with a false-alarm rate of 1e-6 each (z-tests two-sided, chi-square tests
one-sided), and each has a negative control that the same test must reject.
"""

import numpy as np
import pytest
from scipy import stats

import hushgraph as hg
from hushgraph.datasets.signals import hotspot_counts, piecewise_constant_signal, smooth_signal

FALSE_ALARM = 1e-6
SIGMA = 1.3
CASES = [("exact", "combinatorial"), ("chebyshev", "combinatorial"), ("exact", "normalized"), ("chebyshev", "random_walk")]


@pytest.fixture(scope="module")
def graph():
    return hg.datasets.random_geometric(50, radius=0.22, seed=4)


@pytest.fixture(scope="module")
def truth(graph):
    return 3 * smooth_signal(graph, seed=1) + piecewise_constant_signal(graph, n_pieces=3)


@pytest.fixture(scope="module")
def town():
    return hg.datasets.city(300)


def make_frame(graph, kind, laplacian):
    make = hg.exact_frame if kind == "exact" else hg.chebyshev_frame
    return make(graph, laplacian=laplacian)


def dense(frame):
    """W, (n_scales n, n), and S, (n, n_scales n)."""
    n = frame.graph.n
    units = np.eye(frame.n_scales * n).reshape(frame.n_scales, n, -1)
    return hg.as_linear_operator(frame) @ np.eye(n), hg.synthesize(frame, units)


def jacobian(W, S, slope):
    """S diag(slope) W of one signal, slopes (n_scales, n)."""
    return S @ (slope.ravel()[:, None] * W)


def is_rejected(z):
    return 2 * stats.norm.sf(abs(z)) < FALSE_ALARM


def z_of(draws):
    return draws.mean() / stats.sem(draws)


# ---- risk_se at fixed thresholds --------------------------------------------------------------------------------


def estimate(frame, noisy, t, sigma, rule):
    """Denoised signals and slopes at fixed thresholds, and SURE of the signal; sigma is one per node."""
    value, slope = hg.shrink(hg.analyze(frame, noisy), t[:, None, None], rule=rule)
    denoised = hg.synthesize(frame, value)
    divergence = np.einsum("ji,jim->m", hg.exact_weights(frame, sigma=sigma, domain="signal"), slope)
    return denoised, slope, hg.signal_sure(noisy, denoised, divergence=divergence, sigma=sigma)


def squared_errors(frame, noisy, denoised, slope, sigma):
    """risk_se^2 = 4 |Sigma^1/2 (y - fhat)|^2 + (4 tr((Sigma J)^2) - 2 tr(Sigma^2)): its two parts for each signal."""
    (W, S), variance = dense(frame), sigma**2
    traces = []
    for m in range(noisy.shape[1]):
        J = variance[:, None] * jacobian(W, S, slope[:, :, m])
        traces.append(np.sum(J * J.T))
    return 4 * variance @ (noisy - denoised) ** 2, 4 * np.array(traces) - 2 * np.sum(variance**2)


@pytest.mark.statistics
@pytest.mark.parametrize("per_node", [False, True])
@pytest.mark.parametrize("rule", ["soft", "james_stein"])
@pytest.mark.parametrize(("kind", "laplacian"), CASES)
def test_risk_se_is_the_mean_squared_difference_of_sure_and_loss(graph, truth, kind, laplacian, rule, per_node):
    frame = make_frame(graph, kind, laplacian)
    sigma = np.linspace(0.5, 2.0, graph.n) if per_node else np.full(graph.n, SIGMA)
    noisy = truth[:, None] + sigma[:, None] * np.random.default_rng(6).normal(size=(graph.n, 2500))
    denoised, slope, sure = estimate(frame, noisy, SIGMA * np.linspace(0.1, 0.3, frame.n_scales), sigma, rule)
    difference = sure - np.sum((denoised - truth[:, None]) ** 2, axis=0)
    second, fourth = squared_errors(frame, noisy, denoised, slope, sigma)
    z = z_of(difference**2 - second - fourth)
    assert not is_rejected(z), f"risk_se is wrong: z = {z:.2f}"
    assert is_rejected(z_of(difference**2 - second - 1.1**4 * fourth)), "negative control: sigma 10 % off in the fourth powers"


# ---- risk_se of denoise -----------------------------------------------------------------------------------------


def dense_risk_se(frame, noisy, result, sigma):
    """risk_se^2 of a result of denoise with plain thresholds, from its dense Jacobian."""
    slope = hg.shrink(hg.analyze(frame, noisy), result.thresholds[:, None])[1]
    parts = squared_errors(frame, noisy[:, None], result.signal[:, None], slope[:, :, None], sigma)
    return float(sum(parts)[0])


@pytest.mark.statistics
@pytest.mark.parametrize("per_node", [False, True])
@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized", "random_walk"])
def test_risk_se_agrees_with_the_dense_trace(graph, truth, laplacian, per_node):
    """Each seed draws new probes for the trace; the frame is exact, so thresholds do not depend on them."""
    frame = hg.exact_frame(graph, laplacian=laplacian)
    sigma = np.linspace(0.5, 2.0, graph.n) if per_node else np.full(graph.n, SIGMA)
    noisy = truth + sigma * np.random.default_rng(7).normal(size=graph.n)
    given = {"sigma": sigma if per_node else SIGMA, "method": "sgwt_sure", "frame": frame}
    results = [hg.denoise(graph, noisy, seed=seed, **given) for seed in range(60)]
    exact = dense_risk_se(frame, noisy, results[0], sigma)
    draws = np.array([result.risk_se**2 for result in results])
    z = z_of(draws - exact)
    assert not is_rejected(z), f"risk_se^2 is biased: z = {z:.2f}"
    assert is_rejected(z_of(draws - 1.1**4 * exact)), "negative control: sigma 10 % off"
    assert np.std(np.sqrt(draws)) < 0.2 * np.sqrt(exact), "a single seed is good to 20 %"


@pytest.mark.statistics
def test_thresholds_chosen_on_the_same_noise_are_charged_for(town):
    """SURE at its own minimum is too low, by one or two risk_se here; at the thresholds of another draw it is unbiased."""
    truth, n_draws = hotspot_counts(town, total=3000), 100
    noisy = truth[:, None] + 5 * np.random.default_rng(8).normal(size=(town.n, n_draws))
    frame = hg.exact_frame(town)
    result = hg.denoise(town, noisy, sigma=5.0, method="sgwt_sure", frame=frame)
    error = np.sum((result.signal - truth[:, None]) ** 2, axis=0)
    uncharged = hg.signal_sure(noisy, result.signal, divergence=result.details["divergence"], sigma=5.0) - error
    assert is_rejected(z_of(uncharged))
    assert -2.5 < np.mean(uncharged / result.risk_se) < -0.5
    assert abs(np.mean((result.risk - error) / result.risk_se)) < 0.5
    t = np.roll(result.thresholds, 1, axis=1)
    value, slope = hg.shrink(hg.analyze(frame, noisy), t[:, None, :])
    denoised = hg.synthesize(frame, value)
    divergence = np.einsum("ji,jim->m", hg.exact_weights(frame), slope)
    sure = hg.signal_sure(noisy, denoised, divergence=divergence, sigma=5.0)
    z = z_of(sure - np.sum((denoised - truth[:, None]) ** 2, axis=0))
    assert not is_rejected(z), f"SURE is biased at independent thresholds: z = {z:.2f}"


# ---- probe_se ---------------------------------------------------------------------------------------------------

SIGNALS = {
    "pieces": lambda graph: 4 * piecewise_constant_signal(graph),
    "waves": lambda graph: 5 * smooth_signal(graph),
    "counts": lambda graph: hotspot_counts(graph, total=100 * graph.n) / 10,
}


def spread_exceeds(draws, bound):
    """One-sided chi-square test that the standard deviation of the draws exceeds `bound`."""
    return stats.chi2.sf(np.sum((draws - draws.mean()) ** 2) / bound**2, len(draws) - 1) < FALSE_ALARM


def spread_falls_short_of(draws, bound):
    return stats.chi2.cdf(np.sum((draws - draws.mean()) ** 2) / bound**2, len(draws) - 1) < FALSE_ALARM


def noisy_and_result(town, name, **options):
    noisy = SIGNALS[name](town) + np.random.default_rng(9).normal(size=town.n)
    return noisy, hg.denoise(town, noisy, sigma=1.0, method="sgwt_sure", **options)


def risk_at_frozen_thresholds(noisy, result, n_probes, law, seeds):
    frame = result.details["frame"]
    slope = hg.shrink(hg.analyze(frame, noisy), result.thresholds[:, None])[1]
    options = {"n_probes": n_probes, "law": law, "domain": "signal"}
    divergences = (float(np.sum(hg.monte_carlo_weights(frame, seed=seed, **options) * slope)) for seed in seeds)
    return np.array([hg.signal_sure(noisy, result.signal, divergence=value, sigma=1.0) for value in divergences])


@pytest.mark.statistics
@pytest.mark.parametrize("law", ["rademacher", "gaussian"])
@pytest.mark.parametrize("name", list(SIGNALS))
def test_probe_se_bounds_the_spread_of_the_risk_at_fixed_thresholds(town, name, law):
    noisy, result = noisy_and_result(town, name, n_probes=8, law=law)
    draws = risk_at_frozen_thresholds(noisy, result, 8, law, range(150))
    assert not spread_exceeds(draws, result.probe_se), f"spread {draws.std():.3g}, probe_se {result.probe_se:.3g}"
    assert not spread_falls_short_of(draws, result.probe_se / 3)
    assert spread_exceeds(draws, result.probe_se / 2), "negative control: half of it is no bound"


@pytest.mark.statistics
@pytest.mark.parametrize("name", list(SIGNALS))
def test_probe_se_is_about_the_spread_of_the_risk_over_seeds(town, name):
    """Thresholds follow the probes too, which adds to the spread; probe_se leaves that out, hence the factor 1.5."""
    results = [noisy_and_result(town, name, n_probes=8, seed=seed)[1] for seed in range(60)]
    risks, probe_se = np.array([r.risk for r in results]), np.mean([r.probe_se for r in results])
    assert not spread_exceeds(risks, 1.5 * probe_se), f"spread {risks.std():.3g}, probe_se {probe_se:.3g}"
    assert not spread_falls_short_of(risks, probe_se / 3)
    assert spread_exceeds(risks, probe_se / 3), "negative control: a third of it is no bound"


def test_probe_se_is_zero_for_exact_weights_and_unknown_for_given_ones(town):
    noisy = SIGNALS["waves"](town) + np.random.default_rng(9).normal(size=town.n)
    assert hg.denoise(town, noisy, sigma=1.0, method="sgwt_exact").probe_se == 0
    frame = hg.chebyshev_frame(town)
    given = hg.denoise(town, noisy, sigma=1.0, method="sgwt_sure", frame=frame, weights=hg.monte_carlo_weights(frame))
    assert np.isnan(given.probe_se)


# ---- divergence by finite differences ---------------------------------------------------------------------------


def frozen_estimator(frame, t, rule):
    def denoise(noisy):
        return hg.synthesize(frame, hg.shrink(hg.analyze(frame, noisy), t[:, None], rule=rule)[0])

    return denoise


def t_test_rejects(value, standard_error, expected, n_probes):
    return 2 * stats.t.sf(abs(value - expected) / standard_error, n_probes - 1) < FALSE_ALARM


@pytest.mark.statistics
@pytest.mark.parametrize("rule", ["soft", "james_stein"])
@pytest.mark.parametrize(("kind", "laplacian"), CASES)
def test_finite_differences_agree_with_the_analytic_divergence(town, kind, laplacian, rule):
    frame = make_frame(town, kind, laplacian)
    noisy = SIGNALS["pieces"](town) + np.random.default_rng(10).normal(size=town.n)
    F, t = hg.analyze(frame, noisy), np.linspace(0.2, 0.6, frame.n_scales)
    weights = hg.exact_weights(frame, domain="signal")
    analytic = np.sum(weights * hg.shrink(F, t[:, None], rule=rule)[1])
    found = hg.monte_carlo_divergence(frozen_estimator(frame, t, rule), noisy, n_probes=100)
    assert not t_test_rejects(*found, analytic, 100), f"{found} but {analytic:.2f}"
    assert t_test_rejects(*found, 1.1 * analytic, 100), "negative control: divergence 10 % off"
    alive = np.sum(weights * (np.abs(F) > t[:, None]))  # the divergence of keep-or-kill, right for soft only
    assert t_test_rejects(*found, alive, 100) == (rule == "james_stein")


@pytest.mark.statistics
def test_divergence_of_denoise_agrees_with_finite_differences(town):
    """At frozen thresholds, those denoise chose, up to the error of its own weights."""
    noisy, result = noisy_and_result(town, "pieces")
    frame = result.details["frame"]
    value, error = hg.monte_carlo_divergence(frozen_estimator(frame, result.thresholds, "james_stein"), noisy, n_probes=100)
    both = np.hypot(error, result.probe_se / 2)  # probe_se is of 2 sigma^2 divergence
    assert not is_rejected((value - result.details["divergence"]) / both)
    assert is_rejected((value - 1.2 * result.details["divergence"]) / both), "negative control: divergence 20 % off"


@pytest.mark.statistics
def test_divergence_of_a_linear_map_needs_no_small_step():
    A = np.random.default_rng(0).normal(size=(40, 40))
    value, error = hg.monte_carlo_divergence(lambda x: A @ x, np.zeros(40), n_probes=200, step=10.0)
    assert not t_test_rejects(value, error, np.trace(A), 200)
    assert t_test_rejects(value, error, np.trace(A) + 40, 200)
    assert np.isnan(hg.monte_carlo_divergence(lambda x: A @ x, np.zeros(40), n_probes=1)[1])


# ---- when doing nothing is better -------------------------------------------------------------------------------


def assert_returned_unchanged(result, noisy, sigma):
    np.testing.assert_array_equal(result.signal, noisy)
    assert result.risk == pytest.approx(len(noisy) * sigma**2)
    assert result.risk_se == pytest.approx(np.sqrt(2 * len(noisy)) * sigma**2)
    assert any("returned unchanged" in note for note in result.details["notes"])


@pytest.mark.parametrize("method", ["sgwt_sure", "sgwt_scaled", "sgwt_deep"])
def test_a_signal_far_above_the_noise_is_returned_unchanged(town, method):
    """The polynomial frame reconstructs to 36 dB only: with less noise than that, doing nothing is better."""
    noisy = SIGNALS["counts"](town) + np.random.default_rng(11).normal(0, 1e-3, town.n)
    result = hg.denoise(town, noisy, sigma=1e-3, method=method)
    assert_returned_unchanged(result, noisy, 1e-3)
    assert result.probe_se == 0


def test_weights_that_are_far_too_large_return_the_input(town):
    frame = hg.exact_frame(town)
    noisy = 100 * SIGNALS["counts"](town) + np.random.default_rng(11).normal(size=town.n)
    right = hg.denoise(town, noisy, sigma=1.0, method="sgwt_sure", frame=frame, weights=hg.exact_weights(frame))
    assert right.details["notes"] == []
    wrong = hg.denoise(town, noisy, sigma=1.0, method="sgwt_sure", frame=frame, weights=5 * hg.exact_weights(frame))
    assert_returned_unchanged(wrong, noisy, 1.0)


def test_signals_are_returned_unchanged_one_by_one(town):
    quiet, loud = SIGNALS["waves"](town), 1e5 * SIGNALS["counts"](town)
    noisy = np.stack([quiet, loud], axis=1) + np.random.default_rng(12).normal(size=(town.n, 2))
    result = hg.denoise(town, noisy, sigma=1.0)
    np.testing.assert_array_equal(result.signal[:, 1], noisy[:, 1])
    assert result.risk[0] < result.risk[1] == town.n
    assert result.details["notes"] == ["1 of 2 signals were returned unchanged: their estimated risk exceeded that of the noise"]
