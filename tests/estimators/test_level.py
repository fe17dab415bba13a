"""A signal far from 0: its level is taken out before anything is thresholded, and comes back whole."""

import networkx as nx
import numpy as np
import pytest

import hushgraph as hg
from hushgraph.distributed import denoise, prepare

from ..distributed.cases import ANY, assert_equal

METHODS = ["sgwt_sure", "sgwt_scaled", "sgwt_deep", "sgwt_exact"]


@pytest.fixture(scope="module")
def step():
    graph, truth = hg.datasets.grid(30, 30), np.repeat([-5.0, 5.0], 450)
    return graph, truth, truth + np.random.default_rng(0).normal(0, 2, graph.n)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("level", [1e3, 2e6, -2e9])
def test_a_level_changes_nothing_but_the_level(step, method, level):
    graph, truth, noisy = step
    near, far = (hg.denoise(graph, noisy - noisy.mean() + c, sigma=2, method=method) for c in (0.0, level))
    error = np.sqrt(np.mean((far.signal - level + noisy.mean() - truth) ** 2))
    assert error < 1.05 * np.sqrt(np.mean((near.signal + noisy.mean() - truth) ** 2))
    assert far.risk == pytest.approx(near.risk, abs=4 * 2.0**2 + 0.05 * near.risk)  # the level costs one degree of freedom at most


def test_altitudes_are_denoised_like_heights_above_their_mean():
    graph = hg.datasets.city(1000)
    heights = hg.smooth_signal(graph)
    noise = np.random.default_rng(1).normal(0, 0.05, graph.n)
    for method in ("sgwt_sure", "sgwt_scaled", "sgwt_deep"):
        low, high = (hg.denoise(graph, heights + noise + c, sigma=0.05, method=method).signal - c for c in (0.0, 4000.0))
        assert np.mean((high - heights) ** 2) < 1.03 * np.mean((low - heights) ** 2)


def test_a_signal_near_0_keeps_the_method_of_the_paper(step):
    graph, _, noisy = step
    frame = hg.chebyshev_frame(graph)
    F, weights = hg.analyze(frame, noisy + 7), hg.monte_carlo_weights(frame, n_probes=10)
    shrunk, _ = hg.james_stein(F, hg.sure_thresholds(F, weights, sigma=2)[:, None])
    result = hg.denoise(graph, noisy + 7, sigma=2, method="sgwt_sure", n_probes=10)
    np.testing.assert_allclose(result.signal, hg.synthesize(frame, shrunk), rtol=1e-12)


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized", "random_walk"])
@pytest.mark.parametrize("per_node", [False, True])
def test_the_divergence_is_that_of_finite_differences(laplacian, per_node):
    """Of x -> mean + estimate of x - mean, with the thresholds and the rounded mean of the result."""
    graph = hg.Graph.from_networkx(nx.connected_watts_strogatz_graph(60, 4, 0.2, seed=1))
    sigma = np.linspace(0.5, 2, graph.n) if per_node else 1.0
    y = 1000 + np.random.default_rng(1).normal(0, 3, graph.n)
    frame = hg.exact_frame(graph, laplacian=laplacian)
    result = hg.denoise(graph, y, sigma=sigma, method="sgwt_exact", frame=frame)
    t, rest = (
        np.asarray(result.thresholds)[:, None] * (1 + 1e-5),
        result.details["offset"] - y.mean(),
    )  # they are coefficients: kinks

    def estimate(x):
        level = x.mean() + rest
        return level + hg.synthesize(frame, hg.james_stein(hg.analyze(frame, x - level), t)[0])

    np.testing.assert_allclose(result.signal, estimate(y), rtol=1e-7)
    units, variance, h = np.eye(graph.n), np.broadcast_to(np.square(sigma), graph.n), 1e-6
    slopes = [(estimate(y + h * unit) - estimate(y - h * unit))[i] / (2 * h) for i, unit in enumerate(units)]
    assert result.details["divergence"] == pytest.approx(float(variance @ slopes), rel=1e-4)


@pytest.mark.parametrize("method", ["sgwt_sure", "sgwt_scaled"])
@pytest.mark.parametrize("per_node", [False, True])
def test_partitions_take_out_the_same_level(tmp_path, method, per_node):
    pytest.importorskip("pyarrow")
    pytest.importorskip("fsspec")
    graph = hg.datasets.roads(600, seed=3)
    noisy = 1e5 + hg.smooth_signal(graph) + np.random.default_rng(0).normal(0, 1, graph.n)
    sigma = np.linspace(0.8, 1.2, graph.n) if per_node else 1.0
    prepare(graph, tmp_path, partitions=3, most_ghosts=ANY)
    one = hg.denoise(graph, noisy, sigma=sigma, method=method)
    assert one.details["offset"] != 0
    assert_equal(denoise(tmp_path, noisy, sigma=sigma, method=method), one)
