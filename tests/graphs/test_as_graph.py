"""Graphs of other packages, wherever a graph is wanted."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import hushgraph as hg
from hushgraph.graphs import as_graph


@pytest.fixture(scope="module")
def grid():
    return hg.datasets.grid(12, 12)


@pytest.fixture(scope="module")
def noisy(grid):
    return np.repeat([0.0, 8.0], grid.n // 2) + np.random.default_rng(0).normal(0, 2, grid.n)


def pygsp_like(graph, coords=None):
    """What a PyGSP graph has: a matrix of the old kind, the number of nodes and coordinates."""
    return SimpleNamespace(W=sparse.lil_matrix(graph.adjacency), N=graph.n, coords=graph.coords if coords is None else coords)


def test_a_graph_is_returned_itself(grid):
    assert as_graph(grid) is grid


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "coo_array", "lil_array"])
def test_sparse_matrices(grid, noisy, kind):
    matrix = getattr(sparse, kind)(grid.adjacency)
    assert as_graph(matrix).hash == grid.hash
    assert np.array_equal(hg.denoise(matrix, noisy, sigma=2).signal, hg.denoise(hg.Graph.from_scipy(matrix), noisy, sigma=2).signal)


def test_pygsp_graphs_keep_weights_and_places(grid, noisy):
    weighted = hg.Graph.from_scipy(grid.adjacency * 0.3, coords=grid.coords)
    graph = hg.Graph.from_pygsp(pygsp_like(weighted))
    assert graph.hash == weighted.hash
    assert np.array_equal(graph.coords, grid.coords)
    assert np.array_equal(hg.denoise(pygsp_like(weighted), noisy, sigma=2).signal, hg.denoise(weighted, noisy, sigma=2).signal)


@pytest.mark.parametrize("coords", [np.zeros(144), np.zeros((144, 5)), np.zeros((3, 2))])
def test_pygsp_coordinates_that_are_no_places_are_left_out(grid, coords):
    assert hg.Graph.from_pygsp(pygsp_like(grid, coords)).coords is None


def test_pygsp_errors(grid):
    with pytest.raises(TypeError, match=r"from_pygsp needs a pygsp\.graphs\.Graph; got Graph"):
        hg.Graph.from_pygsp(grid)
    with pytest.raises(ValueError, match="symmetric"):
        hg.Graph.from_pygsp(SimpleNamespace(W=np.array([[0, 1], [0, 0]]), N=2))


def test_a_real_pygsp_graph():
    graphs = pytest.importorskip("pygsp").graphs
    G = graphs.Grid2d(4, 5)
    graph = as_graph(G)
    assert (graph.n, graph.n_edges) == (G.N, G.Ne)
    assert np.array_equal(graph.coords, G.coords)


def test_networkx_names_are_labels_and_arrays_go_by_the_order_of_the_nodes(grid, noisy):
    networkx = pytest.importorskip("networkx")
    order = np.random.default_rng(1).permutation(grid.n)
    G = networkx.Graph()
    G.add_nodes_from(f"node {k}" for k in order)
    G.add_edges_from((f"node {u}", f"node {v}") for u, v in zip(*grid.adjacency.nonzero(), strict=True))
    assert as_graph(G).labels.tolist() == list(G.nodes)
    by_position = hg.denoise(G, noisy[order], sigma=2)
    by_name = hg.denoise(G, {f"node {k}": noisy[k] for k in range(grid.n)}, sigma=2)
    assert [by_name.signal[name] for name in G.nodes] == by_position.signal.tolist()


def test_igraph_graphs(grid, noisy):
    igraph = pytest.importorskip("igraph")
    g = igraph.Graph(n=grid.n, edges=np.transpose(grid.adjacency.nonzero()).tolist())
    assert as_graph(g).hash == grid.hash


def test_geodataframes_of_zones_and_of_lines():
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    boxes = [shapely.box(x, y, x + 1, y + 1) for x in range(3) for y in range(3)]
    zones = geopandas.GeoDataFrame(geometry=boxes)
    assert as_graph(zones).hash == hg.Graph.from_polygons(zones).hash
    assert as_graph(zones).outlines is not None
    lines = geopandas.GeoDataFrame(geometry=[shapely.LineString([(0, 0), (1, 0)]), shapely.LineString([(1, 0), (2, 0)])])
    assert (as_graph(lines).n, as_graph(lines).n_edges) == (3, 2)


def calls(G, noisy, tmp_path):
    """Public functions that take a graph, as (name, call)."""
    counted = {"unit": "person", "adjacency": "add-remove"}
    caps = {**counted, "max_nodes": 1, "max_per_node": 1}
    yield "denoise_series", lambda: hg.denoise_series(G, [noisy, noisy[::-1]], sigma=2, method="let")
    yield "compare", lambda: hg.compare(G, noisy, sigma=2, methods=["let", "graph_tv", "dfs_fused_lasso"])
    yield "estimate_sigma", lambda: hg.estimate_sigma(G, noisy)
    yield "chebyshev_frame", lambda: hg.analyze(hg.chebyshev_frame(G), noisy)
    yield "exact_frame", lambda: hg.analyze(hg.exact_frame(G), noisy)
    yield "graph_tv", lambda: hg.graph_tv(G, noisy, sigma=2)
    yield "dfs_fused_lasso", lambda: hg.dfs_fused_lasso(G, noisy, sigma=2)
    yield "count_events", lambda: hg.privacy.count_events(G, {"person": ["a"], "node": [0]}, **caps)
    yield (
        "check_events",
        lambda: hg.privacy.check_events(G, {"person": ["a"], "node": [0]}, unit="person", max_nodes=1, max_per_node=1),
    )
    yield "declare_counts", lambda: hg.privacy.declare_counts(G, np.zeros(len(noisy)), **counted, sensitivity=1)
    yield "plan_release", lambda: hg.privacy.plan_release(G, epsilon=1, n_draws=1, **{k: v for k, v in caps.items() if k != "unit"})
    yield "simulate", lambda: hg.privacy.simulate(G, noisy, epsilon=1, delta=1e-6, sensitivity=1, seed=0)
    yield "bernoulli_signal", lambda: hg.bernoulli_signal(G)
    yield "hotspot_counts", lambda: hg.hotspot_counts(G)
    yield "smooth_signal", lambda: hg.smooth_signal(G)
    yield "piecewise_constant_signal", lambda: hg.piecewise_constant_signal(G)
    yield "trips", lambda: hg.datasets.trips(G, n_people=10)
    yield "block_partition", lambda: hg.block_partition(G, size=10)
    yield "depth_first_order", lambda: hg.depth_first_order(G)
    yield "to_scipy", lambda: hg.to_scipy(G)
    yield "write_graph", lambda: hg.write_graph(tmp_path / "graph.npz", G)
    yield "write_signal", lambda: hg.write_signal(tmp_path / "signal.csv", G, noisy)
    yield "plot_maps", lambda: hg.plot_maps(G, {"noisy": noisy})
    yield "plot_graph_signal", lambda: hg.plot_graph_signal(G, noisy)
    yield "plot_error", lambda: hg.plot_error(G, hg.denoise(G, noisy, sigma=2, method="let"))
    yield "write_report", lambda: hg.write_report(tmp_path / "a.html", G, noisy, hg.denoise(G, noisy, sigma=2, method="let"))


def test_every_public_function_takes_it(grid, noisy, tmp_path, no_figures):
    for name, call in calls(pygsp_like(grid), noisy, tmp_path):
        try:
            call()
        except (AttributeError, TypeError) as error:
            pytest.fail(f"{name}: {error}")


def test_a_release_is_read_with_the_graph_of_another_package(grid, tmp_path):
    G = pygsp_like(grid)
    ledger = hg.privacy.Ledger.create(tmp_path / "b.db", dataset="x", unit="person", adjacency="add-remove", epsilon=1, delta=1e-6)
    counts = hg.privacy.declare_counts(G, np.zeros(grid.n), unit="person", adjacency="add-remove", sensitivity=1)
    public = hg.privacy.release(counts, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True)
    public.export(tmp_path / "out", method="let")
    assert not hg.privacy.verify_release(tmp_path / "out", G, ledger).faults
    assert np.array_equal(hg.privacy.read_release(tmp_path / "out", G).values, public.values)
