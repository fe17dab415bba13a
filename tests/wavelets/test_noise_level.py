"""`estimate_sigma`: right on many kinds of signals, with a standard error that holds; what must not change it; what it refuses."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from scipy import linalg, sparse

import hushgraph as hg
from hushgraph.wavelets import NoiseLevel, noise_level_of
from hushgraph.wavelets.noise_core import core_scales
from hushgraph.wavelets.noise_floor import flat_floor, merged_bins


@pytest.fixture(scope="module")
def city():
    graph = hg.datasets.city(1200)
    return graph, *linalg.eigh(graph.laplacian("combinatorial").toarray())


@pytest.fixture(scope="module")
def grid():
    graph = hg.datasets.grid(34, 34)
    return graph, *linalg.eigh(graph.laplacian("combinatorial").toarray())


def lowest(count):
    return lambda graph, x, vectors, rng: vectors[:, 1 : count + 1] @ rng.normal(size=count)


def matern(power):
    return lambda graph, x, vectors, rng: vectors @ (rng.normal(size=graph.n) * (0.05 + np.maximum(x, 0)) ** (-power / 2))


def distances(graph, rng):
    return np.linalg.norm(graph.coords - graph.coords[rng.integers(graph.n)], axis=1)


def tent(graph, x, vectors, rng):
    return np.maximum(1 - distances(graph, rng) / (0.35 * np.ptp(graph.coords)), 0)


def patch(graph, x, vectors, rng):
    d = distances(graph, rng)
    return (d <= np.sort(d)[int(0.03 * graph.n)]).astype(float)


def spikes(graph, x, vectors, rng):
    return np.where(rng.random(graph.n) < 0.02, rng.normal(size=graph.n), 0)


KINDS = {
    "10 eigenvectors": (lowest(10), 0.05),
    "40 eigenvectors": (lowest(40), 0.05),
    "100 eigenvectors": (lowest(100), 0.05),
    "rough field": (matern(1), 0.3),  # it falls to the end of the spectrum: its standard error says so
    "smooth field": (matern(3), 0.05),
    "tent": (tent, 0.05),
    "smooth": (lambda graph, x, vectors, rng: hg.smooth_signal(graph, seed=int(rng.integers(100))), 0.05),
    "pieces": (lambda graph, x, vectors, rng: hg.piecewise_constant_signal(graph, seed=int(rng.integers(100))), 0.12),
    "patch": (patch, 0.06),
    "spikes": (spikes, 0.06),
    "hotspots": (lambda graph, x, vectors, rng: hg.hotspot_counts(graph, seed=int(rng.integers(100))).astype(float), 0.16),
    "diffused spikes": (lambda graph, x, vectors, rng: hg.bernoulli_signal(graph, p=0.01, seed=int(rng.integers(100))), 0.12),
}


@pytest.mark.statistics
@pytest.mark.parametrize("place", ["city", "grid"])
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_signals(kind, place, request):
    """The mean of four draws is near sigma at input SNR 0, 5 and 10 dB; standard errors hold, with a false alarm of about 1 % for each kind."""
    graph, x, vectors = request.getfixturevalue(place)
    signal, tolerance = KINDS[kind]
    inside = []
    for sigma in 3.0 * 10 ** (-np.array([0, 5, 10]) / 20):
        levels = []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            clean = signal(graph, x, vectors, rng)
            levels.append(noise_level_of(graph, 3 * clean / clean.std() + rng.normal(0, sigma, graph.n)))
        assert abs(np.mean(levels) / sigma - 1) < tolerance
        inside += [abs(level - sigma) < 2.5 * level.se + 0.02 * sigma for level in levels]
    assert np.mean(inside) >= 0.75


@pytest.mark.statistics
def test_noise_alone_has_the_standard_error_it_says(city):
    """120 draws: the spread of the estimates is the standard error, and 92 to 99 % of them lie within two; not those of noise 10 % larger."""
    graph = city[0]
    levels = [noise_level_of(graph, np.random.default_rng(k).normal(size=graph.n)) for k in range(120)]
    assert np.std(levels) == pytest.approx(np.mean([level.se for level in levels]), rel=0.35)
    assert abs(np.mean(levels) - 1) < 0.01
    for factor, least, most in ((1.0, 0.9, 1.0), (1.1, 0.0, 0.5)):
        assert least <= np.mean([abs(level - factor) < 2 * level.se for level in levels]) <= most


def test_white_noise_as_a_signal_is_noise(city):
    """Nothing can tell them apart: the estimate holds both."""
    rng = np.random.default_rng(0)
    assert noise_level_of(city[0], rng.normal(size=city[0].n) + rng.normal(size=city[0].n)) == pytest.approx(np.sqrt(2), rel=0.06)


def test_a_spectrum_that_falls_to_its_end_warns(city):
    graph, x, vectors = city
    rng = np.random.default_rng(1)
    field = matern(1)(graph, x, vectors, rng)
    with pytest.warns(UserWarning, match="sigma was estimated as .*, give or take .*; pass sigma= if you know it"):
        level = hg.estimate_sigma(graph, 10 * field + rng.normal(0, 0.5, graph.n))
    assert not level.is_sure
    assert level.se > 0.1 * level


@pytest.mark.parametrize(("n", "n_edges"), [(40, 1), (1000, 5), (1000, 20)])
def test_few_nodes_with_neighbors_are_the_reason_for_a_large_standard_error(n, n_edges):
    """Noise alone has a flat spectrum; with few eigenvalues its floor is uncertain, and not because the spectrum falls."""
    graph = hg.Graph.from_edges([(k, k + 1) for k in range(n_edges)], n=n)
    for seed in range(5):
        level = noise_level_of(graph, np.random.default_rng(seed).normal(size=n))
        assert not level.is_sure
        assert level.reason == f"only {n_edges + 1} of {n:,} nodes have neighbors, and the others say nothing about the noise"


def test_a_falling_spectrum_is_the_reason_on_a_connected_graph(city):
    graph, x, vectors = city
    rng = np.random.default_rng(1)
    level = noise_level_of(graph, 10 * matern(1)(graph, x, vectors, rng) + rng.normal(0, 0.5, graph.n))
    assert level.reason == "the spectrum falls to its end, so its floor is uncertain"


# ---- what does not change it -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy(city):
    return hg.bernoulli_signal(city[0], p=0.005) + np.random.default_rng(0).normal(0, 2, city[0].n)


@pytest.mark.parametrize("size", [1e-100, 1e-3, 3.0, 1e60])
def test_scale(city, noisy, size):
    level, scaled = (noise_level_of(city[0], factor * noisy) for factor in (1, size))
    assert (scaled / size, scaled.se / size) == pytest.approx((level, level.se), rel=1e-6)


def test_shift_and_sign(city, noisy):
    level = noise_level_of(city[0], noisy)
    assert noise_level_of(city[0], noisy + 1e6) == pytest.approx(level, rel=1e-6)
    assert noise_level_of(city[0], -noisy) == pytest.approx(level, rel=1e-9)
    assert noise_level_of(city[0], noisy.astype(np.float32)) == pytest.approx(level, rel=1e-4)


def test_permuted_nodes(city, noisy):
    """Probes depend on node numbers, so the estimate changes by a part of its standard error."""
    order = np.random.default_rng(0).permutation(city[0].n)
    turned = hg.Graph(city[0].adjacency[order][:, order])
    level, other = noise_level_of(city[0], noisy), noise_level_of(turned, noisy[order])
    assert abs(level - other) < level.se


def test_columns_share_one_level(city, noisy):
    graph, rng = city[0], np.random.default_rng(0)
    columns = np.stack([noisy, *rng.normal(0, 2, (20, graph.n))], axis=1)
    level = noise_level_of(graph, columns)
    assert level == pytest.approx(2, rel=0.04)
    assert noise_level_of(graph, columns[:, 1:]).se < noise_level_of(graph, columns[:, 1]).se / 3
    np.testing.assert_array_equal(noise_level_of(graph, np.asfortranarray(columns)), level)


def test_components_and_isolated_nodes():
    part = hg.datasets.grid(25, 25).adjacency
    graph = hg.Graph(sparse.block_diag([part, part, sparse.csr_matrix((200, 200))]).tocsr())
    means = np.repeat([1e6, 0.0, -1e5], [625, 625, 200])
    assert noise_level_of(graph, means + np.random.default_rng(0).normal(0, 2, graph.n)) == pytest.approx(2, rel=0.06)


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_tiny_graphs(n):
    graph = hg.Graph.from_edges([(i, i + 1) for i in range(n - 1)])
    levels = [noise_level_of(graph, np.random.default_rng(k).normal(size=n)) for k in range(20)]
    assert all(np.isfinite(level) and level > 0 and level.se > 0.05 * level for level in levels)
    assert 0.3 < np.mean(levels) < 1.5


def test_scales_of_a_frame_bound_it(city, noisy):
    """Weights that are four times too large make every scale say half of sigma, plus two standard errors."""
    graph = city[0]
    frame = hg.chebyshev_frame(graph)
    weights = hg.smooth_weights(graph, hg.monte_carlo_weights(frame))
    level = noise_level_of(graph, noisy)
    assert noise_level_of(graph, noisy, frame=frame, weights=weights) <= level
    halved = noise_level_of(graph, noisy, frame=frame, weights=4 * weights)
    assert 0.4 * level < halved < 0.7 * level
    assert halved.se >= level - halved


# ---- the number itself -----------------------------------------------------------------------------------------------


def test_a_noise_level_is_a_number_that_does_not_change():
    level = NoiseLevel(2.0, se=0.1, reason="a guess", is_sure=False)
    assert isinstance(level, float)
    assert (level, 2 * level, repr(level), f"{level:.1f}") == (2.0, 4.0, "2.0", "2.0")
    assert level.in_words == "2, give or take 0.1: a guess"
    for other in (pickle.loads(pickle.dumps(level)), copy.deepcopy(level)):
        assert (other, other.se, other.reason, other.is_sure) == (2.0, 0.1, "a guess", False)
    for name in ("se", "other"):
        with pytest.raises(AttributeError):
            setattr(level, name, 1.0)


def test_denoise_says_how_sure_it_is(city, noisy):
    with pytest.warns(UserWarning, match="sigma was not given; estimated as .*, give or take "):
        result = hg.denoise(city[0], noisy, method="sgwt_sure")
    level = noise_level_of(city[0], noisy)
    assert (result.sigma, result.details["sigma_se"]) == (level, level.se)
    assert any(level.in_words in note for note in result.details["notes"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "sigma_se" not in hg.denoise(city[0], noisy, sigma=2.0, method="sgwt_sure").details


# ---- its parts -------------------------------------------------------------------------------------------------------


def test_bins_hold_all_eigenvalues():
    counts = np.random.default_rng(0).exponential(size=300)
    starts = merged_bins(counts)
    merged = np.add.reduceat(counts, starts)
    assert merged.sum() == pytest.approx(counts.sum())
    assert merged.min() >= 1
    assert len(starts) < 100


@pytest.mark.statistics
@pytest.mark.parametrize("high", [0.0, 20.0])
def test_floor_of_a_spectrum(high):
    """20 draws of a field with a floor of 1, with and without a rise at the end; half the floor would be far out."""
    x = np.linspace(0.01, 8, 3000)
    spectrum = 1 + 3 * (0.1 + x) ** -2 + high * (x / 8) ** 20
    starts = merged_bins(np.ones(len(x)))
    counts = np.add.reduceat(np.ones(len(x)), starts)
    floors = []
    for seed in range(20):
        energies = spectrum * np.random.default_rng(seed).normal(size=len(x)) ** 2
        floors.append(flat_floor(np.add.reduceat(x, starts) / counts, counts, np.add.reduceat(energies, starts)))
    assert np.mean([floor.sigma for floor in floors]) == pytest.approx(1, abs=0.03)
    assert np.mean([abs(floor.sigma - 1) < 2 * floor.se for floor in floors]) >= 0.8
    assert not any(abs(floor.sigma - np.sqrt(0.5)) < 2 * floor.se for floor in floors)


@pytest.mark.parametrize("freedom", [1.0, 4.0, 20.0])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
def test_core_of_energies(freedom, share):
    rng = np.random.default_rng(0)
    energies = rng.chisquare(freedom, (1, 6000)) / freedom
    energies[:, : int(6000 * share)] *= rng.uniform(10, 100, int(6000 * share))
    variances, shares, gains = core_scales(energies, np.array([freedom]), np.array([6000.0]))
    assert variances[0] == pytest.approx(1, abs=0.08 if share else 0.03)
    assert (gains[0] > 0) == (share > 0)
    assert 1 - shares[0] == pytest.approx(share, abs=0.1)
