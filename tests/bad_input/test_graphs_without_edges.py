"""Graphs without nodes, with one node, and with nodes but no edges: everything that has an answer there gives it."""

import numpy as np
import pytest

import hushgraph as hg

from .tables import dust, nothing, point

pytestmark = pytest.mark.parametrize("graph", [nothing, point, dust], ids=["no nodes", "one node", "five nodes"])


def test_the_graph(graph):
    assert [graph.spectrum(kind).lambda_max for kind in ("combinatorial", "normalized", "random_walk")] == [0.0] * 3
    assert graph.laplacian("random_walk").shape == (graph.n, graph.n)
    assert len(graph.hash) == 64
    assert len(graph.components) == graph.n
    assert graph.subgraph(np.ones(graph.n, dtype=bool)).hash == graph.hash
    assert hg.bernoulli_signal(graph).shape == (graph.n,)


def test_frames_have_one_scale(graph):
    assert hg.chebyshev_frame(graph).n_scales == hg.exact_frame(graph).n_scales == 1
    assert hg.chebyshev_frame(graph, degree="auto").tightness_defect < 1e-9


@pytest.mark.parametrize("laplacian", ["combinatorial", "random_walk"])
def test_transforms_are_the_identity(graph, laplacian):
    ones = np.ones(graph.n)
    frame = hg.chebyshev_frame(graph, laplacian=laplacian)
    np.testing.assert_allclose(hg.analyze(frame, ones), ones[None])
    np.testing.assert_allclose(hg.synthesize(frame, ones[None]), ones)


def test_operators_and_exact_frames_are_the_identity(graph):
    ones = np.ones(graph.n)
    np.testing.assert_allclose(hg.analyze(hg.exact_frame(graph), ones), ones[None])
    operator = hg.as_linear_operator(hg.chebyshev_frame(graph))
    np.testing.assert_allclose(operator @ ones, ones)
    np.testing.assert_allclose(operator.T @ ones, ones)


def test_weights_are_one(graph):
    np.testing.assert_allclose(hg.monte_carlo_weights(hg.chebyshev_frame(graph)), 1)
    np.testing.assert_allclose(hg.exact_weights(hg.exact_frame(graph)), 1)
    np.testing.assert_allclose(hg.smooth_weights(graph, np.ones((1, graph.n))), 1)


def test_risks_and_thresholds(graph):
    ones = np.ones((1, graph.n))
    assert hg.sure(ones, 0.0, weights=ones, sigma=2.0) == pytest.approx(4 * graph.n)
    assert hg.sure_thresholds(ones, ones, sigma=1.0).shape == (1,)
    assert hg.oracle_thresholds(ones, ones).tolist() == [0.0]


def test_denoise(graph):
    for method in ("sgwt_deep", "sgwt_sure", "sgwt_scaled", "sgwt_exact") if graph.n else ():
        assert np.isfinite(hg.denoise(graph, np.ones(graph.n), sigma=1.0, method=method).signal).all()


@pytest.mark.filterwarnings("ignore:sigma was")
def test_unknown_sigma(graph):
    if graph.n > 1:
        waves = np.cos(np.arange(graph.n))
        assert 0.1 < hg.estimate_sigma(graph, waves) < 10
        assert np.isfinite(hg.denoise(graph, waves).risk)
