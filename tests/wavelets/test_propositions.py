"""Propositions 1 and 2 by enumeration: on seven nodes all 128 Rademacher probes are few enough to try.

Enumerated means and variances are exact, so there is no false alarm to control. Tests with random Gaussian probes are
two-sided z-tests with a false-alarm rate of 1e-6 each, at fixed seeds.
"""

from itertools import product

import numpy as np
import pytest
from scipy import stats

import hushgraph as hg
from hushgraph.wavelets import monte_carlo, unbiased_risk
from hushgraph.wavelets.monte_carlo import probes
from hushgraph.wavelets.transform import forward

LAPLACIANS = ["combinatorial", "normalized", "random_walk"]
FRAMES = ["exact", "chebyshev"]
EDGES = [(0, 1), (1, 2), (0, 2), (2, 3), (4, 5)]
SIGMA = 1.7
FALSE_ALARM = 1e-6


@pytest.fixture(scope="module")
def graph():
    """Weighted, two components and an isolated node."""
    return hg.Graph.from_edges(EDGES, n=7, weights=[0.5, 2.0, 1.3, 0.7, 1.1])


@pytest.fixture(scope="module")
def signs(graph):
    return np.array(list(product([-1.0, 1.0], repeat=graph.n)))


def make_frame(graph, kind, laplacian):
    if kind == "exact":
        return hg.exact_frame(graph, laplacian=laplacian)
    return hg.chebyshev_frame(graph, degree=20, laplacian=laplacian)


def dense_transform(frame):
    return hg.as_linear_operator(frame) @ np.eye(frame.graph.n)


def dense_synthesis(frame):
    n = frame.graph.n
    units = np.eye(frame.n_scales * n).reshape(frame.n_scales, n, -1)
    return hg.synthesize(frame, units)


def weights_with(monkeypatch, frame, eps, **options):
    """`monte_carlo_weights` with these probes in place of its own."""
    with monkeypatch.context() as patch:
        patch.setattr(monte_carlo, "probes", lambda *_, **__: eps.copy())
        return hg.monte_carlo_weights(frame, n_probes=len(eps), **options)


def weights_of_each(monkeypatch, frame, signs):
    """Weights of one probe, for each possible probe: (128, n_scales, n)."""
    return np.stack([weights_with(monkeypatch, frame, eps[None]) for eps in signs])


def variance_z(draws, expected):
    """z of the sample variance against `expected`, its error taken from the fourth moment."""
    squares = (draws - draws.mean()) ** 2
    return (squares.mean() - expected) / stats.sem(squares)


def is_rejected(z):
    return 2 * stats.norm.sf(abs(z)) < FALSE_ALARM


# ---- the weights are unbiased -----------------------------------------------------------------------------------


@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("kind", FRAMES)
def test_weights_are_unbiased_in_the_coefficient_domain(graph, signs, kind, laplacian, monkeypatch):
    frame = make_frame(graph, kind, laplacian)
    W = dense_transform(frame)
    expected = np.sum(W**2, axis=1).reshape(frame.n_scales, graph.n)
    np.testing.assert_allclose(hg.exact_weights(frame), expected, atol=1e-13)
    np.testing.assert_allclose(weights_with(monkeypatch, frame, signs), expected, atol=1e-13)


@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("kind", FRAMES)
def test_weights_are_unbiased_in_the_signal_domain(graph, signs, kind, laplacian, monkeypatch):
    frame = make_frame(graph, kind, laplacian)
    expected = np.sum(dense_transform(frame) * dense_synthesis(frame).T, axis=1).reshape(frame.n_scales, graph.n)
    np.testing.assert_allclose(hg.exact_weights(frame, domain="signal"), expected, atol=1e-13)
    np.testing.assert_allclose(weights_with(monkeypatch, frame, signs, domain="signal"), expected, atol=1e-13)


@pytest.mark.parametrize("kind", FRAMES)
def test_the_two_domains_differ_for_the_random_walk(graph, kind):
    """Negative control: using one in place of the other would show."""
    frame = make_frame(graph, kind, "random_walk")
    difference = hg.exact_weights(frame) - hg.exact_weights(frame, domain="signal")
    assert np.abs(difference).max() > 0.01


@pytest.mark.parametrize("domain", ["coefficients", "signal"])
@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("kind", FRAMES)
def test_weights_with_sigma_per_node_are_unbiased(graph, signs, kind, laplacian, domain, monkeypatch):
    frame = make_frame(graph, kind, laplacian)
    sigma = np.linspace(0.5, 2.0, graph.n)
    W = dense_transform(frame)
    other = W if domain == "coefficients" else dense_synthesis(frame).T
    expected = np.sum(W * sigma**2 * other, axis=1).reshape(frame.n_scales, graph.n)
    np.testing.assert_allclose(hg.exact_weights(frame, sigma=sigma, domain=domain), expected, atol=1e-12)
    enumerated = weights_with(monkeypatch, frame, signs, sigma=sigma, domain=domain)
    np.testing.assert_allclose(enumerated, expected, atol=1e-12)


# ---- Proposition 1 ----------------------------------------------------------------------------------------------


def corrected_variance(W, kurtosis):
    """N Var of the weights, for all pairs i, j; `kurtosis` is V[eps^2]."""
    squares, gram = W**2, W @ W.T
    same = squares @ squares.T
    energy = squares.sum(axis=1)
    return kurtosis * same + np.outer(energy, energy) - same + gram**2 - same


def printed_variance(W, kurtosis):
    """The same as the paper prints it."""
    same = (W**2) @ (W**2).T
    return kurtosis * same + 2 * ((W @ W.T) ** 2 - same)


def enumerated_variance(frame, signs):
    bands = forward(frame, signs).reshape(len(signs), -1)
    return np.var(bands[:, :, None] * bands[:, None, :], axis=0)


@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("kind", FRAMES)
def test_proposition_1_corrected_holds_for_all_pairs(graph, signs, kind, laplacian):
    frame = make_frame(graph, kind, laplacian)
    expected = corrected_variance(dense_transform(frame), kurtosis=0.0)
    np.testing.assert_allclose(enumerated_variance(frame, signs), expected, atol=1e-13)


@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("kind", FRAMES)
def test_proposition_1_as_printed_is_right_on_the_diagonal_only(graph, signs, kind, laplacian, monkeypatch):
    frame = make_frame(graph, kind, laplacian)
    printed = printed_variance(dense_transform(frame), kurtosis=0.0)
    weights = weights_of_each(monkeypatch, frame, signs).reshape(len(signs), -1)
    np.testing.assert_allclose(np.var(weights, axis=0), np.diag(printed), atol=1e-13)
    error = np.abs(enumerated_variance(frame, signs) - printed)
    assert error.max() > 0.01, "the printed form should be wrong for some i != j"
    assert printed.min() < -0.001, "the printed form should even be negative for some i != j"


def pairs_that_tell(right, wrong):
    """Three pairs i = j and three i < j whose two variances differ most, relative to themselves."""
    ratio = np.divide(right, wrong, out=np.ones_like(right), where=wrong > 0.01)
    beside = np.argsort(np.triu(ratio, 1), axis=None)[::-1][:3]
    return [(i, i) for i in np.argsort(np.diag(ratio))[::-1][:3]] + list(zip(*np.unravel_index(beside, right.shape), strict=True))


@pytest.mark.statistics
@pytest.mark.parametrize("laplacian", LAPLACIANS)
def test_proposition_1_holds_for_gaussian_probes(graph, laplacian):
    frame = make_frame(graph, "exact", laplacian)
    W = dense_transform(frame)
    bands = probes(graph.n, 20_000, law="gaussian", seed=1) @ W.T
    right, wrong = corrected_variance(W, kurtosis=2.0), corrected_variance(W, kurtosis=0.0)
    for i, j in pairs_that_tell(right, wrong):
        draws = bands[:, i] * bands[:, j]
        assert not is_rejected(variance_z(draws, right[i, j])), f"pair {i}, {j}"
        assert is_rejected(variance_z(draws, wrong[i, j])), f"pair {i}, {j}: Rademacher's variance should be rejected"


# ---- Proposition 2 ----------------------------------------------------------------------------------------------

RULES = [("soft", None), ("james_stein", None), ("power", 3.0)]


@pytest.fixture(scope="module")
def noisy():
    return np.random.default_rng(5).normal(0, 3, 7)


def slopes(frame, noisy, rule, beta):
    """Coefficients, thresholds at which about half of them survive, and the slopes there."""
    F = hg.analyze(frame, noisy)
    t = np.quantile(np.abs(F), 0.4, axis=1)
    return F, t, hg.shrink(F, t[:, None], rule=rule, beta=beta)[1]


def hutchinson_matrix(frame, slope):
    W = dense_transform(frame)
    return W.T @ (slope.ravel()[:, None] * W)


@pytest.mark.parametrize(("rule", "beta"), RULES)
@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("kind", FRAMES)
def test_proposition_2_is_the_enumerated_variance_of_the_divergence(graph, signs, noisy, kind, laplacian, rule, beta, monkeypatch):
    """SURE of the paper: its constant does not depend on the probes, so only the divergence varies."""
    frame = make_frame(graph, kind, laplacian)
    F, t, slope = slopes(frame, noisy, rule, beta)
    varying = 2 * SIGMA**2 * np.sum(weights_of_each(monkeypatch, frame, signs) * slope, axis=(1, 2))
    found = hg.sure_variance(frame, F, t, sigma=SIGMA, n_probes=1, rule=rule, beta=beta)
    assert found == pytest.approx(np.var(varying), rel=1e-10)
    assert hg.sure_variance(frame, F, t, sigma=SIGMA, n_probes=5, rule=rule, beta=beta) == pytest.approx(found / 5, rel=1e-12)


def enumerated_sure(frame, F, t, signs, rule, beta, monkeypatch):
    """`sure` with the weights of each single probe."""
    each = weights_of_each(monkeypatch, frame, signs)
    return np.array([hg.sure(F, t, weights=weights, sigma=SIGMA, rule=rule, beta=beta) for weights in each])


@pytest.mark.parametrize(("rule", "beta"), RULES)
@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
def test_proposition_2_is_the_enumerated_variance_of_sure(graph, signs, noisy, laplacian, rule, beta, monkeypatch):
    frame = make_frame(graph, "exact", laplacian)
    F, t, _ = slopes(frame, noisy, rule, beta)
    values = enumerated_sure(frame, F, t, signs, rule, beta, monkeypatch)
    found = hg.sure_variance(frame, F, t, sigma=SIGMA, n_probes=1, rule=rule, beta=beta)
    assert found == pytest.approx(np.var(values), rel=1e-10)
    wrong = hg.sure_variance(frame, F, t, sigma=1.1 * SIGMA, n_probes=1, rule=rule, beta=beta)
    assert wrong > 1.4 * np.var(values), "negative control: sigma 10 % off"


@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("kind", FRAMES)
def test_proposition_2_for_gaussian_probes_is_the_variance_of_a_quadratic_form(graph, noisy, kind, laplacian):
    frame = make_frame(graph, kind, laplacian)
    F, t, slope = slopes(frame, noisy, "james_stein", None)
    M = hutchinson_matrix(frame, slope)
    found = hg.sure_variance(frame, F, t, sigma=SIGMA, n_probes=3, law="gaussian")
    assert found == pytest.approx(4 * SIGMA**4 / 3 * 2 * np.sum(M**2), rel=1e-10)


@pytest.mark.statistics
@pytest.mark.parametrize("laplacian", LAPLACIANS)
def test_proposition_2_agrees_with_simulated_gaussian_probes(graph, noisy, laplacian):
    frame = make_frame(graph, "exact", laplacian)
    F, t, slope = slopes(frame, noisy, "james_stein", None)
    eps = probes(graph.n, 20_000, law="gaussian", seed=3)
    draws = 2 * SIGMA**2 * np.sum(forward(frame, eps) ** 2 * slope, axis=(1, 2))
    options = {"sigma": SIGMA, "n_probes": 1}
    assert not is_rejected(variance_z(draws, hg.sure_variance(frame, F, t, law="gaussian", **options)))
    assert is_rejected(variance_z(draws, hg.sure_variance(frame, F, t, law="rademacher", **options)))


@pytest.mark.statistics
@pytest.mark.parametrize("law", ["rademacher", "gaussian"])
def test_sure_variance_of_large_graphs_is_unbiased_over_its_own_probes(graph, noisy, law, monkeypatch):
    """Above 2,000 nodes the norms are estimated; the bound is lowered so that a small graph takes that way too."""
    frame = make_frame(graph, "exact", "combinatorial")
    F, t, _ = slopes(frame, noisy, "soft", None)
    options = {"sigma": SIGMA, "n_probes": 1, "law": law, "rule": "soft"}
    exact = hg.sure_variance(frame, F, t, **options)
    monkeypatch.setattr(unbiased_risk, "DENSE_BELOW", 0)
    draws = np.array([hg.sure_variance(frame, F, t, seed=seed, **options) for seed in range(2000)])
    z = (draws.mean() - exact) / stats.sem(draws)
    assert not is_rejected(z), f"the estimate is biased: z = {z:.2f}"
    assert is_rejected((draws.mean() - 1.1**4 * exact) / stats.sem(draws)), "negative control: sigma 10 % off"
