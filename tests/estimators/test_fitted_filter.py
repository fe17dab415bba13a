"""The filter that is fitted by maximum likelihood: against eigenvectors, its risk, and what must not change it."""

import numpy as np
import pytest
from scipy import stats

import hushgraph as hg
from hushgraph.estimators.let import fitted_filter
from hushgraph.estimators.let.combination import peakedness
from hushgraph.estimators.let.filters import Filters
from hushgraph.estimators.let.fitted_filter import FAMILIES, Energies, Filtered, FittedFilter, FittedSpectrum, fit_spectra
from hushgraph.estimators.let.observation import Observation
from hushgraph.wavelets import Noise


@pytest.fixture(scope="module", name="city")
def make_city():
    graph = hg.datasets.city(900, seed=1)
    return graph, *np.linalg.eigh(graph.laplacian("combinatorial").toarray())


def field(city, seed, *, kappa2=0.02, nu=4.0):
    graph, x, vectors = city
    signal = vectors @ ((kappa2 + np.maximum(x, 0)) ** (-nu / 2) * np.random.default_rng([seed, 7]).normal(size=graph.n))
    return 3 * signal / signal.std()


def noise(city, seed):
    return np.random.default_rng([seed, 8]).normal(size=city[0].n)


@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives_of_spectra(family):
    log_x, place, log_q = np.linspace(-5, 2, 40), np.array([[-1.3]]), np.array([[0.4]])
    _, by_place, by_steepness = FAMILIES[family](log_x, place, np.exp(log_q))
    step = 1e-6

    def numeric(a, b):
        ahead, back = (FAMILIES[family](log_x, place + s * a, np.exp(log_q + s * b))[0] for s in (step, -step))
        return (ahead - back) / (2 * step)

    np.testing.assert_allclose(by_place, numeric(1, 0), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(by_steepness, numeric(0, 1), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_spectrum_that_made_the_energies_is_found(family):
    """Without noise in the energies the likelihood is largest at the spectrum that they come from."""
    x, count = np.geomspace(1e-3, 8, 120), np.full(120, 20.0)
    true = FittedSpectrum(family, np.log([50.0, 0.2, 2.5]), 0.0)
    h = true.filter(x)
    fitted = fit_spectra(Energies(x, count / (1 - h), count))
    assert fitted.spectra[np.argmax(fitted.shares)].family == family
    np.testing.assert_allclose(fitted(x), h, atol=0.02)


def test_close_to_the_filter_that_knows_the_spectrum(city):
    """The loss to Wiener's filter of the true spectrum is that of three parameters, on average over ten fields."""
    graph, x, vectors = city
    losses = []
    for seed in range(10):
        clean = field(city, seed)
        y = clean + noise(city, seed)
        coefficients, true = vectors.T @ y, vectors.T @ clean
        variance = (0.02 + np.maximum(x, 0)) ** -4.0
        variance *= np.sum(true**2) / variance.sum()
        best = np.sum((variance / (variance + 1) * coefficients - true) ** 2)
        losses.append(10 * np.log10(np.sum((hg.denoise(graph, y, sigma=1.0, method="filter").signal - clean) ** 2) / best))
    assert np.mean(losses) < 0.35


def test_degree_is_raised_for_steep_edges_only(city):
    graph, _, vectors = city
    signal = vectors[:, :20] @ np.random.default_rng(0).normal(size=20)
    steep = hg.denoise(graph, 20 * signal + noise(city, 0), sigma=1.0, method="filter").details["filter"]
    smooth = hg.denoise(graph, field(city, 0) + noise(city, 0), sigma=1.0, method="filter").details["filter"]
    assert steep["families"]["band"]["steepness"] > smooth["families"]["band"]["steepness"]
    assert steep["degree"] > 2 * smooth["degree"]
    assert 18 < steep["degrees_of_freedom"] < 30


def test_a_low_degree_is_damped(city, monkeypatch):
    """Where the degree may not be raised the polynomial has no ripples: it stays between 0 and 1."""
    monkeypatch.setattr(fitted_filter, "DEGREES", (60,))
    monkeypatch.setattr(fitted_filter, "LITTLE_WORK", 0)
    graph, _, vectors = city
    y = 20 * vectors[:, :20] @ np.random.default_rng(0).normal(size=20) + noise(city, 0)
    filters = Filters.of(graph, Noise.of(1.0))
    column = Filtered.of(Observation(filters, y, Noise.of(1.0)))
    response = np.polynomial.chebyshev.chebval(np.linspace(-1, 1, 2000), column.coefficients)
    assert 50 < len(column.coefficients) <= 61
    assert response.min() > -1e-3
    assert response.max() < 1 + 1e-3


@pytest.mark.statistics
def test_risk_is_honest(city):
    """|z| < 4.5 over 60 fields, a false alarm in 1e-5 of runs; the control is a risk with a sigma that is 10 % too small."""
    graph = city[0]
    scores, control = [], []
    for seed in range(60):
        clean = field(city, seed, nu=3.0)
        y = clean + noise(city, seed)
        for sigma, rows in ((1.0, scores), (0.9, control)):
            result = hg.denoise(graph, y, sigma=sigma, method="filter")
            rows.append((result.risk - np.sum((result.signal - clean) ** 2)) / result.risk_se)
    assert abs(np.mean(scores) / stats.sem(scores)) < 4.5
    assert abs(np.mean(scores)) < 0.5
    assert abs(np.mean(control) / stats.sem(control)) > 4.5


def test_unit_sign_and_level(city):
    graph = city[0]
    y = field(city, 3) + noise(city, 3)
    plain = hg.denoise(graph, y, sigma=1.0, method="filter")
    for factor, level in ((3.7, 0.0), (-1.0, 0.0), (1.0, 12.5), (1e-9, 0.0)):
        other = hg.denoise(graph, factor * y + level, sigma=abs(factor), method="filter")
        np.testing.assert_allclose(other.signal, factor * plain.signal + level, rtol=0, atol=1e-7 * abs(factor) * np.abs(y).max())


def test_parts_of_a_graph_have_their_own_means():
    grid = hg.datasets.grid(20, 20)
    pairs = np.stack(grid.adjacency.tocoo().coords, axis=1)
    graph = hg.Graph.from_edges(np.concatenate([pairs, pairs + 400]), n=803)  # three nodes without neighbours
    clean = np.where(np.arange(803) < 400, 50.0, -20.0)
    y = clean + np.random.default_rng(0).normal(size=803)
    result = hg.denoise(graph, y, sigma=1.0, method="filter")
    assert np.sum((result.signal - clean)[:800] ** 2) < 30


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_tiny_graphs(n):
    graph = hg.Graph.from_edges(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), n=n)
    result = hg.denoise(graph, np.arange(n) * 1.0, sigma=1.0, method="filter")
    assert np.isfinite(result.signal).all()
    assert np.isfinite(result.risk)


def test_noise_alone_becomes_its_mean(city):
    graph = city[0]
    errors = [np.sum(hg.denoise(graph, noise(city, seed), sigma=1.0, method="filter").signal ** 2) for seed in range(20)]
    assert np.mean(errors) < 8  # of 900


def test_sigma_per_node_weighted_edges_and_several_signals(city):
    graph = city[0]
    pairs = np.stack(graph.adjacency.tocoo().coords, axis=1)
    weighted = hg.Graph.from_edges(pairs, n=graph.n, weights=np.exp(0.5 * np.sin(pairs.sum(axis=1))))
    sigma = np.where(np.arange(graph.n) % 2, 0.5, 1.5)
    clean = np.stack([field(city, 4), field(city, 5)], axis=1)
    y = clean + sigma[:, None] * np.stack([noise(city, 4), noise(city, 5)], axis=1)
    result = hg.denoise(weighted, y, sigma=sigma, method="filter")
    error = np.sum((result.signal - clean) ** 2, axis=0)
    assert np.all(error < 0.15 * np.sum(sigma**2))
    assert np.all(np.abs(result.risk - error) < 4 * result.risk_se)
    assert len(result.details["filter"]) == 2


def test_auto_keeps_the_filter_on_smooth_signals_and_leaves_it_on_peaks(city):
    graph = city[0]
    smooth = [hg.denoise(graph, field(city, seed) + noise(city, seed), sigma=1.0).details["weights"] for seed in range(5)]
    assert np.mean([weights.get("filter", 0.0) for weights in smooth]) > 0.8
    peaks = np.where(np.arange(graph.n) % 60 == 0, 15.0, 0.0)
    peaked = hg.denoise(graph, peaks + noise(city, 0), sigma=1.0)
    assert peaked.details["weights"].get("filter", 0.0) < 0.2


@pytest.mark.statistics
def test_peakedness(city):
    """0 for noise and for Gaussian fields in all of 30 draws; 1 with peaks. A false alarm needs a kurtosis of more than 3.5 standard errors above 3.3."""
    graph = city[0]
    filters = Filters.of(graph, Noise.of(1.0))

    def measured(y):
        observation = Observation(filters, y, Noise.of(1.0))
        return peakedness(observation, Filtered.of(observation))

    assert np.mean([measured(noise(city, seed)) for seed in range(30)]) < 0.02
    assert np.mean([measured(field(city, seed) + noise(city, seed)) for seed in range(30)]) < 0.02
    assert measured(np.where(np.arange(graph.n) % 60 == 0, 15.0, 0.0) + noise(city, 0)) == 1


def test_shares_follow_the_likelihood():
    same = np.log([2.0, 1.0, 1.0])
    spectra = tuple(FittedSpectrum(family, same, deviance) for family, deviance in zip(FAMILIES, (10.0, 12.0, 60.0), strict=True))
    shares = FittedFilter(spectra).shares
    assert shares[0] / shares[1] == pytest.approx(np.exp(1.0))
    assert shares[2] < 1e-9
