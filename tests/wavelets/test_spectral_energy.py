"""The energy of signals on the spectrum, by moments, against eigenvectors."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.wavelets import SpectralBins, spectral_moments


@pytest.fixture(scope="module", name="parts")
def make_parts():
    graph = hg.datasets.city(300, seed=1)
    frame = hg.chebyshev_frame(graph)
    eigenvalues, vectors = np.linalg.eigh(graph.laplacian("combinatorial").toarray())
    signals = np.random.default_rng(0).normal(size=(3, graph.n))
    return frame, np.clip(frame.unit * eigenvalues, 0, None), (signals @ vectors) ** 2, signals


@pytest.mark.parametrize("degree", [1, 2, 7, 200])
def test_twice_as_many_moments_as_steps(parts, degree):
    frame, eigenvalues, energy, signals = parts
    m = np.arange(2 * degree + 1)[:, None]
    expected = energy @ np.cos(m * np.arccos(2 * eigenvalues / frame.lambda_upper - 1)).T
    assert np.allclose(spectral_moments(frame, signals, degree), expected, rtol=0, atol=1e-9)


def test_bins_give_the_energy_behind_every_smooth_filter(parts):
    frame, eigenvalues, energy, signals = parts
    errors = []
    for degree in (100, 400, 1600):
        bins = SpectralBins.of(degree, frame.lambda_upper)
        binned = bins.energies(spectral_moments(frame, signals, degree))
        assert np.allclose(binned.sum(axis=1), (signals**2).sum(axis=1))
        assert binned.min() >= 0
        pairs = [(1 / (1 + (bins.x / t) ** 4), 1 / (1 + (eigenvalues / t) ** 4)) for t in (0.03, 0.3, 3.0)]
        errors.append(max(np.abs(binned @ there - energy @ here).max() for there, here in pairs))
    assert errors[0] < 4  # of about 300
    assert max(errors[1:]) < 0.3  # the width of the bins remains


@pytest.mark.parametrize("degree", [1, 5, 64, 1000])
def test_bins_cover_the_spectrum(degree):
    bins = SpectralBins.of(degree, 8.0)
    assert bins.ends[-1] == 4 * degree
    assert np.all(np.diff(bins.ends) > 0)
    assert np.all(np.diff(bins.x) > 0)
    assert bins.x[0] > 0
    assert bins.x[-1] < 8
