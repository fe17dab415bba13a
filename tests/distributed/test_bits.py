"""Partitions give the result of the whole graph to the bit: thresholds and signal, for any number of partitions."""

import numpy as np
import pytest
from scipy.spatial import Delaunay

import hushgraph as hg
from hushgraph.distributed import denoise, prepare, preparing

from .cases import ANY, GRAPHS, METHODS, assert_equal, noisy_on

pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")


@pytest.fixture(scope="module", params=GRAPHS)
def graph(request):
    return GRAPHS[request.param]()


# ---- equal to the bit ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [1, 2, 4, 16])
def test_partitions_do_not_change_a_bit(graph, parts, tmp_path):
    degree = 30 if parts == 16 else 100
    found = prepare(graph, tmp_path / "work", partitions=parts, most_ghosts=ANY, degree=degree)
    frame = hg.chebyshev_frame(graph, degree=degree)
    assert (found.lambda_upper, found.n_scales) == (frame.lambda_upper, frame.n_scales)
    np.testing.assert_array_equal(np.load(next((tmp_path / "work").glob("graph-*/frame.npy"))), frame.coefficients)
    noisy = noisy_on(graph)
    for method in METHODS if parts in (1, 4) else METHODS[1:]:
        one = hg.denoise(graph, noisy, sigma=1.0, method=method, frame=frame)
        assert_equal(denoise(tmp_path / "work", noisy, sigma=1.0, method=method), one)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_proven_bound_needs_no_more_hops_than_it_says(weighted, tmp_path, monkeypatch):
    """To the bit as deep as REACH, on a mesh whose triangles decide it; with ghosts within a few hops it is another one."""
    points = np.random.default_rng(0).random((1500, 2))
    mesh = hg.Graph.from_mesh(np.c_[points, np.zeros(1500)], Delaunay(points).simplices)
    if weighted:
        weights = np.random.default_rng(1).uniform(0.9, 1.1, mesh.adjacency.shape)
        mesh = hg.Graph.from_scipy(mesh.adjacency.multiply(weights + weights.T).tocsr())
    order = np.lexsort(points.T)
    mesh = hg.Graph.from_scipy(mesh.adjacency[order][:, order])
    found = prepare(mesh, tmp_path / "work", partitions=6, most_ghosts=ANY, degree=3)
    assert found.lambda_upper == hg.chebyshev_frame(mesh, degree=3).lambda_upper
    monkeypatch.setattr(preparing, "REACH", 4)
    short = prepare(mesh, tmp_path / "short", partitions=6, most_ghosts=ANY, degree=3)
    assert short.lambda_upper != found.lambda_upper


@pytest.fixture(scope="module")
def roads(tmp_path_factory):
    """A road network in four partitions."""
    graph, folder = hg.datasets.roads(4000), tmp_path_factory.mktemp("roads") / "work"
    prepare(graph, folder, partitions=4, most_ghosts=ANY)
    return graph, folder


@pytest.mark.parametrize("case", ["float32", "sigma per node", "few probes", "gaussian probes", "soft", "power"])
def test_settings_do_not_change_a_bit(roads, case):
    graph, folder = roads
    noisy, settings = noisy_on(graph), {"sigma": 1.0, "method": "sgwt_scaled"}
    if case == "float32":
        noisy = noisy.astype(np.float32)
    settings |= {
        "sigma per node": {"sigma": np.random.default_rng(2).uniform(0.5, 2.0, graph.n)},
        "few probes": {"n_probes": 1, "seed": 9},
        "gaussian probes": {"n_probes": 3, "law": "gaussian"},
        "soft": {"rule": "soft", "method": "sgwt_sure"},
        "power": {"rule": "power", "beta": 3.0},
    }.get(case, {})
    one = hg.denoise(graph, noisy, **settings)
    found = denoise(folder, noisy, **settings)
    if case == "float32":  # sums of float32 squares are cut into other blocks
        np.testing.assert_array_equal(found.read(), one.signal)
        assert found.read().dtype == np.float32
    else:
        assert_equal(found, one)


@pytest.mark.parametrize("values", ["ties", "zeros", "one node", "tiny"])
def test_thresholds_of_awkward_signals(roads, values):
    graph, folder = roads
    rng = np.random.default_rng(3)
    noisy = {
        "ties": rng.integers(-1, 2, graph.n).astype(float),
        "zeros": np.zeros(graph.n),
        "one node": np.eye(1, graph.n, 17)[0] * 1e6,
        "tiny": rng.normal(0, 1e-60, graph.n),
    }[values]
    for method in METHODS:
        one = hg.denoise(graph, noisy, sigma=1.0, method=method)
        assert_equal(denoise(folder, noisy, sigma=1.0, method=method), one)


def test_a_constant_signal_leaves_scales_empty(tmp_path):
    graph = hg.datasets.grid(20, 20)
    prepare(graph, tmp_path, partitions=3, most_ghosts=ANY)
    one = hg.denoise(graph, np.full(400, 5.0), sigma=1.0, method="sgwt_sure")
    assert_equal(denoise(tmp_path, np.full(400, 5.0), sigma=1.0, method="sgwt_sure"), one)


def test_normalized_laplacian(roads, tmp_path):
    graph, _ = roads
    prepare(graph, tmp_path, partitions=3, most_ghosts=ANY, laplacian="normalized", degree=40)
    frame = hg.chebyshev_frame(graph, laplacian="normalized", degree=40)
    noisy = noisy_on(graph)
    one = hg.denoise(graph, noisy, sigma=1.0, method="sgwt_sure", frame=frame)
    assert_equal(denoise(tmp_path, noisy, sigma=1.0, method="sgwt_sure"), one)


# ---- combinations --------------------------------------------------------------------------------------------------


def assert_close(found, one):
    np.testing.assert_allclose(found.read(), one.signal, rtol=1e-9, atol=1e-9 * np.abs(one.signal).max())
    for name in ("risk", "risk_se", "probe_se"):
        assert getattr(found, name) == pytest.approx(getattr(one, name), rel=1e-9)


@pytest.mark.parametrize("parts", [1, 3])
def test_let_adds_up(graph, parts, tmp_path):
    prepare(graph, tmp_path / "work", partitions=parts, most_ghosts=ANY)
    noisy, sizes = noisy_on(graph), np.random.default_rng(2).uniform(0.5, 2.0, graph.n)
    for sigma, shift in ((1.0, 0.0), (sizes, 0.0), (1.0, 1e4))[:parts]:
        one = hg.denoise(graph, noisy + shift, sigma=sigma, method="let")
        assert_close(denoise(tmp_path / "work", noisy + shift, sigma=sigma, method="let"), one)


def test_auto_where_its_candidates_add_up(tmp_path):
    graph = hg.Graph.from_scipy(hg.datasets.grid(370, 370).adjacency)  # without coordinates: partitions have no patches of images
    prepare(graph, tmp_path / "work", partitions=2, most_ghosts=ANY)
    noisy = noisy_on(graph)
    one = hg.denoise(graph, noisy, sigma=1.0, method="auto", refine=False)
    assert one.details["sets"]["filter"]["share"] == 0  # partitions have no fitted filter
    assert_close(denoise(tmp_path / "work", noisy, sigma=1.0, method="auto", refine=False), one)
    for settings, words in (({}, "refine=False"), ({"nonnegative": True, "refine": False}, "counts")):
        with pytest.raises(ValueError, match=words):
            denoise(tmp_path / "work", noisy, sigma=1.0, method="auto", **settings)


def test_ghosts_one_hop_short_change_the_result(tmp_path, monkeypatch):
    graph = hg.datasets.grid(50, 60)
    noisy, found = noisy_on(graph), []
    frame = hg.chebyshev_frame(graph, degree=20)
    one = hg.denoise(graph, noisy, sigma=1.0, method="sgwt_sure", frame=frame)
    for lacking in (0, 1):
        depth = property(lambda settings, lacking=lacking: settings.degree - lacking)
        monkeypatch.setattr(preparing._Settings, "depth", depth)
        prepare(graph, tmp_path / str(lacking), partitions=2, most_ghosts=ANY, degree=20)
        result = denoise(tmp_path / str(lacking), noisy, sigma=1.0, method="sgwt_sure")
        found.append(np.array_equal(result.read(), one.signal))
    assert found == [True, False]
