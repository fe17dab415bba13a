"""Partitions give the result of the whole graph to the bit: thresholds and signal, for any number of partitions."""

import numpy as np
import pytest
from scipy.spatial import Delaunay

import hushgraph as hg
from hushgraph.distributed import denoise, prepare, preparing

from .cases import ANY, GRAPHS, METHODS, assert_close, assert_equal, noisy_on, smooth_on

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


@pytest.mark.parametrize("parts", [1, 3])
def test_let_adds_up(graph, parts, tmp_path):
    prepare(graph, tmp_path / "work", partitions=parts, most_ghosts=ANY)
    noisy, sizes = noisy_on(graph), np.random.default_rng(2).uniform(0.5, 2.0, graph.n)
    for sigma, shift in ((1.0, 0.0), (sizes, 0.0), (1.0, 1e4))[:parts]:
        one = hg.denoise(graph, noisy + shift, sigma=sigma, method="let")
        assert_close(denoise(tmp_path / "work", noisy + shift, sigma=sigma, method="let"), one)


def assert_same_account(found, one):
    """The sentence, and the shares and risks of all sets of candidates."""
    assert found.details["why"] == one.details["why"]
    for name, numbers in one.details["sets"].items():
        assert found.details["sets"][name] == pytest.approx(numbers, rel=1e-6, abs=1e-6)
    assert found.details["filter"]["degree"] == one.details["filter"]["degree"]
    np.testing.assert_allclose(found.details["filter"]["response"], one.details["filter"]["response"], atol=1e-9)
    assert found.details["sigma_too_large"] == one.details["sigma_too_large"]


@pytest.mark.parametrize("signal", ["pieces", "smooth"])
@pytest.mark.parametrize("parts", [1, 3])
def test_auto_adds_up(graph, parts, signal, tmp_path, one_machine):
    prepare(graph, tmp_path / "work", partitions=parts, most_ghosts=ANY)
    noisy = (noisy_on if signal == "pieces" else smooth_on)(graph)
    one = one_machine(graph, noisy, sigma=1.0)
    found = denoise(tmp_path / "work", noisy, sigma=1.0, method="auto")
    assert_close(found, one)
    assert_same_account(found, one)
    assert found.details["refined"].keys() == one.details["refined"].keys()
    assert found.details["left_out"] == ["tv", "dfs", "levels", "patches"]


@pytest.mark.parametrize("parts", [2, 5])
def test_auto_does_not_depend_on_the_number_of_partitions(parts, tmp_path, one_machine):
    graph = hg.datasets.roads(4000)
    prepare(graph, tmp_path / "work", partitions=parts, most_ghosts=ANY)
    one = one_machine(graph, smooth_on(graph), sigma=1.0)
    assert_close(denoise(tmp_path / "work", smooth_on(graph), sigma=1.0, method="auto"), one)


@pytest.mark.parametrize(
    "case", ["sigma per node", "float32", "offset", "first stage alone", "gaussian probes", "let with two stages"]
)
def test_settings_of_combinations(roads, case, one_machine):
    graph, folder = roads
    noisy, settings = smooth_on(graph), {"sigma": 1.0, "method": "auto"}
    noisy = noisy.astype(np.float32) if case == "float32" else noisy + 1e4 * (case == "offset")
    settings |= {
        "sigma per node": {"sigma": np.random.default_rng(2).uniform(0.5, 2.0, graph.n)},
        "first stage alone": {"refine": False},
        "gaussian probes": {"law": "gaussian", "n_probes": 5, "seed": 3},
        "let with two stages": {"method": "let", "refine": True},
    }.get(case, {})
    one, found = one_machine(graph, noisy, **settings), denoise(folder, noisy, **settings)
    if case == "float32":
        assert found.read().dtype == np.float32
        np.testing.assert_allclose(found.read(), one.signal, rtol=1e-6)
        assert found.risk == pytest.approx(one.risk, rel=1e-9)
    else:
        assert_close(found, one)


def test_auto_of_large_graphs_has_what_one_machine_has(tmp_path):
    graph = hg.Graph.from_scipy(hg.datasets.grid(370, 370).adjacency)  # without coordinates: partitions have no patches of images
    prepare(graph, tmp_path / "work", partitions=2, most_ghosts=ANY)
    for noisy, share in ((noisy_on(graph), 0.0), (smooth_on(graph), 1.0)):
        one = hg.denoise(graph, noisy, sigma=1.0, method="auto")
        found = denoise(tmp_path / "work", noisy, sigma=1.0, method="auto")
        assert_close(found, one)
        assert_same_account(found, one)
        assert found.details["sets"]["filter"]["share"] == pytest.approx(share, abs=0.5)
        assert found.details["left_out"] == ["patches"]


def test_methods_without_a_second_stage(roads):
    with pytest.raises(ValueError, match="refine= belongs to method='auto' and 'let'; got method='sgwt_scaled'"):
        denoise(roads[1], noisy_on(roads[0]), sigma=1.0, refine=True)


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
