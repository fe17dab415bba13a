"""Frames of the user's own kernels, against eigenvectors and the formulas of PyGSP."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.wavelets import eigenpairs


@pytest.fixture(scope="module")
def graph():
    city = hg.datasets.city(200)
    return hg.Graph.from_scipy(city.adjacency * 0.7, coords=city.coords)


@pytest.fixture(scope="module")
def signal(graph):
    return np.random.default_rng(0).normal(size=graph.n)


def heat(lambda_max, scales=(1, 10)):
    """`pygsp.filters.Heat`: exp(-t x / lambda_max)."""
    return [lambda x, t=t: np.exp(-t * x / lambda_max) for t in scales]


def mexican_hat(lambda_max, count=6):
    """`pygsp.filters.MexicanHat`: a low pass exp(-x^4), and x exp(-x) at scales from 2 / lambda_min down to 1 / lambda_max."""
    lowest = lambda_max / 20
    scales = np.geomspace(2 / lowest, 1 / lambda_max, count - 1)
    low = [lambda x: 1.2 * np.exp(-1) * np.exp(-((x / (0.6 * lowest)) ** 4))]
    return low + [lambda x, s=s: s * x * np.exp(-s * x) for s in scales]


@pytest.mark.parametrize("bank", [heat, mexican_hat])
@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
def test_coefficients_are_those_of_the_eigenvectors(graph, signal, bank, laplacian):
    kernels = bank(graph.spectrum(laplacian, exact=True).lambda_max)
    frame = hg.custom_frame(graph, kernels, degree=200, laplacian=laplacian)
    values, vectors = eigenpairs(graph, laplacian)
    expected = [vectors @ (kernel(values) * (vectors.T @ signal)) for kernel in kernels]
    assert frame.n_scales == len(kernels)
    assert np.allclose(hg.analyze(frame, signal), expected, atol=1e-6)
    assert np.allclose(
        hg.synthesize(frame, np.array(expected)),
        sum(vectors @ (k(values) * (vectors.T @ e)) for k, e in zip(kernels, expected, strict=True)),
        atol=1e-5,
    )


def test_the_tightness_defect_is_reported(graph, signal):
    kernels = mexican_hat(graph.lambda_max)
    loose = hg.custom_frame(graph, kernels, degree=200)
    total = np.sum([kernel(np.linspace(0, loose.lambda_upper, 5001)) ** 2 for kernel in kernels], axis=0)
    assert loose.tightness_defect == pytest.approx(np.abs(total - 1).max(), rel=0.01)
    tight = hg.custom_frame(graph, kernels, degree=400, tight=True)
    assert tight.tightness_defect < 1e-3
    again = hg.synthesize(tight, hg.analyze(tight, signal))
    assert np.linalg.norm(again - signal) <= tight.tightness_defect * np.linalg.norm(signal)


@pytest.mark.parametrize("method", ["sgwt_sure", "sgwt_scaled"])
def test_denoising_with_it(method):
    graph = hg.datasets.grid(30, 30)
    clean = np.repeat([0.0, 10.0], 450)
    noisy = clean + np.random.default_rng(0).normal(0, 3, 900)
    frame = hg.custom_frame(graph, mexican_hat(graph.lambda_max), degree=200, tight=True)
    result = hg.denoise(graph, noisy, sigma=3, method=method, frame=frame)
    assert hg.snr(clean, result.signal) > hg.snr(clean, noisy) + 4
    assert result.risk == pytest.approx(np.sum((result.signal - clean) ** 2), abs=5 * result.risk_se)
    assert result.details["tightness_defect"] == frame.tightness_defect


def test_it_can_be_drawn(graph, signal, no_figures):
    frame = hg.custom_frame(graph, mexican_hat(graph.lambda_max), degree=60)
    assert "custom kernels" in hg.plot_frame(frame).axes[0].get_title(loc="left")
    assert len(hg.plot_partition(frame).lines) == frame.n_scales + 1
    assert "λ around 0" in hg.plot_scales(frame, signal).axes[0].get_title(loc="left")


@pytest.mark.parametrize("kernels", [[], None, 3, [1.0], [np.exp, "exp"], np.exp, [np.exp] * 65])
def test_what_is_no_list_of_functions_is_refused(graph, kernels):
    with pytest.raises(TypeError, match="kernels must be a list of 1 to 64 functions"):
        hg.custom_frame(graph, kernels)


@pytest.mark.parametrize("kernel", [lambda x: 1.0, lambda x: x[:-1], lambda x: x + 1j, lambda x: x * np.nan, lambda x: "a"])
def test_a_kernel_that_returns_something_else_is_refused(graph, kernel):
    with pytest.raises(ValueError, match="kernel number 1 must return one finite real number"):
        hg.custom_frame(graph, [np.ones_like, kernel])


def test_tight_kernels_must_cover_the_spectrum(graph):
    with pytest.raises(ValueError, match="all are 0 or nearly 0 at"):
        hg.custom_frame(graph, [lambda x: np.maximum(1 - x, 0)], tight=True)


def test_pygsp_gives_the_same(graph, signal):
    pygsp = pytest.importorskip("pygsp")
    G = pygsp.graphs.Graph(graph.adjacency.copy())
    G.compute_fourier_basis()
    bank = pygsp.filters.MexicanHat(G, Nf=5)
    frame = hg.custom_frame(G, bank._kernels, degree=200)
    assert np.allclose(hg.analyze(frame, signal).T, bank.filter(signal, method="exact"), atol=1e-5)
