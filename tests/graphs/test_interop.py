"""Graphs of other packages come in as the same graph, and go out with labels, weights, places and signals."""

import sys
from types import ModuleType, SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import hushgraph as hg
from hushgraph import graphs as interop
from hushgraph.graphs.graph import Graph

from ..support.strategies import graphs

NAMES = ["a", "b", "c", "d"]
PLACES = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])


@pytest.fixture
def square():
    edges = [(0, 1), (1, 2), (2, 3), (3, 0)]
    return Graph.from_edges(edges, weights=[1.0, 2.0, 3.0, 4.0], coords=PLACES, crs="lonlat", labels=NAMES)


def street_network():
    """As OSMnx makes them: directed, with parallel edges and loops."""
    G = nx.MultiDiGraph(crs="EPSG:4326")
    for name, (x, y) in zip(NAMES, PLACES, strict=True):
        G.add_node(name, x=x, y=y)
    for u, v, length in [("a", "b", 10.0), ("b", "a", 10.0), ("a", "b", 40.0), ("b", "c", 20.0), ("c", "c", 5.0), ("d", "c", 30.0)]:
        G.add_edge(u, v, length=length)
    return G


# ---- networkx and OSMnx ---------------------------------------------------------------------------------------------


@given(graph=graphs(max_nodes=20))
def test_networkx_there_and_back(graph):
    graph = Graph.from_scipy(graph.adjacency, labels=[f"n{i}" for i in range(graph.n)])
    assert Graph.from_networkx(interop.to_networkx(graph), weight="weight").hash == graph.hash


def test_networkx_carries_places_and_signals(square):
    G = interop.to_networkx(square, signals={"f": [1.0, 2.0, np.nan, 4.0], "g": {"d": 0, "c": 1, "b": 2, "a": 3}})
    assert G.nodes["b"] == {"x": 1.0, "y": 0.0, "f": 2.0, "g": 2.0}
    again = Graph.from_networkx(G, weight="weight")
    assert (again.hash, again.crs) == (square.hash, "lonlat")
    np.testing.assert_array_equal(again.coords, PLACES)
    assert interop.to_networkx(square, signals=np.arange(4)).nodes["c"]["signal"] == 2


def test_streets_are_united():
    graph = Graph.from_networkx(street_network())
    assert (graph.n, graph.n_edges, graph.is_unweighted) == (4, 3, True)
    with pytest.raises(ValueError, match="duplicates='sum'"):
        Graph.from_networkx(street_network(), distance="length")
    weighted = Graph.from_networkx(street_network(), distance="length", duplicates="max")
    assert weighted.adjacency[0, 1] == pytest.approx(22 / 10)  # the mean of all that are no loop


@pytest.mark.parametrize(
    ("crs", "expected"),
    [("EPSG:4326", "lonlat"), ("epsg:4326", "lonlat"), (None, None), ("EPSG:32618", "lonlat"), (SimpleNamespace(to_epsg=lambda: 4326), "lonlat")],
)  # fmt: skip
def test_the_crs_is_what_the_graph_says(crs, expected):
    G = street_network()
    G.graph["crs"] = crs
    assert Graph.from_networkx(G).crs == expected
    assert Graph.from_networkx(G, crs="lonlat").crs == "lonlat"


def test_numbers_that_were_saved_as_text():
    G, text = street_network(), street_network()
    for _, node in text.nodes(data=True):
        node.update({name: str(value) for name, value in node.items() if isinstance(value, int | float)})
    for *_, edge in text.edges(data=True):
        edge.update({name: str(value) for name, value in edge.items() if isinstance(value, int | float)})
    expected, found = (Graph.from_networkx(each, distance="length", duplicates="max") for each in (G, text))
    np.testing.assert_array_equal(found.coords, expected.coords)
    assert found.hash == expected.hash
    next(iter(text.edges(data=True)))[-1]["length"] = "far"
    with pytest.raises(ValueError, match=r"edge attribute 'length' must be numbers; 1 of \d+ are other text"):
        Graph.from_networkx(text, distance="length")
    next(iter(text.nodes.values()))["x"] = "west"
    with pytest.raises(ValueError, match="node attribute 'x' must be numbers"):
        Graph.from_networkx(text)


def test_files_of_osmnx_through_networkx(tmp_path):
    networkx, osmnx = pytest.importorskip("networkx"), pytest.importorskip("osmnx")
    G = networkx.MultiDiGraph(crs="epsg:4326")
    G.add_node(10, x=-73.5, y=40.5, street_count=1)
    G.add_node(20, x=-73.25, y=40.75, street_count=1)
    G.add_edge(10, 20, length=120.5, osmid=1)
    osmnx.save_graphml(G, tmp_path / "streets.graphml")
    graph = Graph.from_networkx(networkx.read_graphml(tmp_path / "streets.graphml"), distance="length")
    assert (graph.coords.tolist(), graph.crs) == ([[-73.5, 40.5], [-73.25, 40.75]], "lonlat")


# ---- igraph and SciPy -----------------------------------------------------------------------------------------------


def test_igraph_there_and_back(square):
    g = interop.to_igraph(square, signals={"f": np.arange(4.0)})
    assert (g.vs["f"], g.vs["y"]) == ([0, 1, 2, 3], PLACES[:, 1].tolist())
    assert Graph.from_igraph(g, weight="weight").hash == square.hash
    bare = Graph.from_edges([(0, 1)], n=3)
    assert Graph.from_igraph(interop.to_igraph(bare)).hash == bare.hash


def test_scipy_copy_is_free(square):
    matrix = interop.to_scipy(square)
    matrix.data[:] = 0
    assert square.adjacency.data.min() == 1
    assert Graph.from_scipy(interop.to_scipy(square), labels=NAMES).hash == square.hash


# ---- GeoPandas ------------------------------------------------------------------------------------------------------


def lines(*ends, crs=None, **columns):
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    return geopandas.GeoDataFrame(columns, geometry=[shapely.LineString(line) for line in ends], crs=crs)


def test_lines_meet_at_their_ends():
    streets = lines([(5, 5), (0, 0)], [(0, 0), (1, 7), (3, 0)], [(3, 0), (5, 5)], [(3, 0), (3, 0)], crs="EPSG:32618")
    graph = Graph.from_geopandas(streets, crs="planar")
    assert graph.coords.tolist() == [[5, 5], [0, 0], [3, 0]]
    assert (graph.n_edges, graph.crs, graph.labels) == (3, None, None)


def test_lengths_of_lines_are_distances():
    streets = lines([(0, 0), (0, 10)], [(0, 10), (30, 10)], mm_len=[1.0, 4.0], speed=[30.0, 50.0])
    assert Graph.from_geopandas(streets, distance="geometry").adjacency.data.tolist() == pytest.approx([2, 2, 20 / 30, 20 / 30])
    assert Graph.from_geopandas(streets, distance="mm_len").adjacency.data.tolist() == pytest.approx([2.5, 2.5, 0.625, 0.625])
    assert Graph.from_geopandas(streets, weight="speed").adjacency.data.tolist() == [30, 30, 50, 50]
    with pytest.raises(ValueError, match="no column 'width'"):
        Graph.from_geopandas(streets, weight="width")


def test_lines_in_degrees():
    streets = lines([(-73.9, 40.7), (-73.8, 40.8)], crs="EPSG:4326")
    assert Graph.from_geopandas(streets).crs == "lonlat"
    with pytest.raises(ValueError, match="lengths in degrees"):
        Graph.from_geopandas(streets, distance="geometry")


def test_ends_are_snapped_only_within_the_tolerance():
    streets = lines([(0, 0), (10, 0)], [(10.3, 0), (20, 0)], [(20, 0), (30, 0)])
    assert [Graph.from_geopandas(streets, tolerance=t).n for t in (0.0, 0.29, 0.31)] == [5, 5, 4]
    assert Graph.from_geopandas(streets, tolerance=0.31).coords[1].tolist() == [10, 0]
    with pytest.raises(ValueError, match="tolerance must be"):
        Graph.from_geopandas(streets, tolerance=-1)


def test_rows_that_are_no_lines():
    shapely = pytest.importorskip("shapely")
    streets = lines([(0, 0), (1, 0)], [(1, 0), (2, 0)])
    for wrong in (None, shapely.Point(0, 0), shapely.LineString(), shapely.MultiLineString([[(0, 0), (1, 1)]])):
        streets.geometry = [streets.geometry[0], wrong]
        with pytest.raises(ValueError, match="row 1 of the lines is no LineString"):
            Graph.from_geopandas(streets)
    with pytest.raises(TypeError, match="needs a GeoDataFrame"):
        Graph.from_geopandas([(0, 1)])


def test_geopandas_there_and_back(square):
    pytest.importorskip("geopandas")
    nodes, edges = interop.to_geopandas(square, signals={"f": np.arange(4.0)})
    assert nodes.index.tolist() == NAMES
    assert (nodes.loc["c", "f"], nodes.loc["c"].geometry.x, str(nodes.crs)) == (2.0, 1.0, "EPSG:4326")
    again = Graph.from_geopandas(edges, weight="weight")
    order = [again.coords.tolist().index(place) for place in PLACES.tolist()]
    np.testing.assert_array_equal(again.subgraph(order).adjacency.toarray(), square.adjacency.toarray())
    with pytest.raises(ValueError, match="no coords"):
        interop.to_geopandas(Graph.from_edges([(0, 1)]))


# ---- PyTorch Geometric ----------------------------------------------------------------------------------------------


class Tensor:
    """Stands in for torch.Tensor: NumPy behind the three steps that lead there."""

    def __init__(self, values):
        self._values = np.asarray(values)

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self._values


@pytest.fixture
def torch(monkeypatch):
    """Stands in for torch and torch_geometric."""
    modules = {name: ModuleType(name) for name in ("torch", "torch_geometric", "torch_geometric.data")}
    modules["torch"].from_numpy = Tensor
    modules["torch_geometric.data"].Data = SimpleNamespace
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.usefixtures("torch")
def test_pyg_there_and_back(square):
    data = interop.to_pyg(square, signals={"f": np.arange(4.0), "g": np.ones(4)})
    assert data.edge_index.numpy().shape == (2, 8)
    again = Graph.from_pyg(data, weight="edge_weight", crs="lonlat")
    assert again.hash == Graph.from_scipy(square.adjacency).hash
    np.testing.assert_array_equal(again.coords, PLACES)
    np.testing.assert_array_equal(interop.pyg_signals(data), np.stack([np.arange(4.0), np.ones(4)], axis=1))


def test_pyg_itself_there_and_back(square):
    """With the real one, where it is installed."""
    pytest.importorskip("torch_geometric")
    data = interop.to_pyg(square, signals=np.arange(4.0))
    assert data.validate()
    assert data.is_undirected()
    again = Graph.from_pyg(data, weight="edge_weight", crs="lonlat")
    assert again.hash == Graph.from_scipy(square.adjacency).hash
    np.testing.assert_array_equal(interop.pyg_signals(data)[:, 0], np.arange(4.0))


def test_pyg_attributes():
    index = Tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    data = SimpleNamespace(edge_index=index, edge_attr=Tensor([[2.0], [2.0], [6.0], [6.0]]), num_nodes=4)
    assert Graph.from_pyg(data).degrees.tolist() == [1, 2, 1, 0]
    assert Graph.from_pyg(data, weight="edge_attr").degrees.tolist() == [2, 8, 6, 0]
    assert Graph.from_pyg(data, distance="edge_attr").degrees.tolist() == pytest.approx([2, 2 + 2 / 3, 2 / 3, 0])
    data.edge_attr = Tensor(np.ones((4, 2)))
    for wrong, said in (({"weight": "edge_attr"}, "one number per edge"), ({"weight": "edge_weight"}, "no 'edge_weight'")):
        with pytest.raises(ValueError, match=said):
            Graph.from_pyg(data, **wrong)
    with pytest.raises(ValueError, match=r"edge_index must be \(2, m\)"):
        Graph.from_pyg(SimpleNamespace(edge_index=Tensor(np.zeros((4, 2), dtype=int))))
    with pytest.raises(TypeError, match="from_pyg needs"):
        Graph.from_pyg([(0, 1)])
    with pytest.raises(ValueError, match="no node features"):
        interop.pyg_signals(data)


@pytest.mark.parametrize(
    ("module", "call", "extra"),
    [
        ("networkx", interop.to_networkx, "networkx"),
        ("igraph", interop.to_igraph, "igraph"),
        ("geopandas", interop.to_geopandas, "geopandas"),
        ("torch", interop.to_pyg, "pyg"),
    ],
)
def test_a_missing_package_is_named(monkeypatch, square, module, call, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"hushgraph\[{extra}\]"):
        call(square)


@pytest.mark.parametrize("call", [interop.to_networkx, interop.to_igraph, interop.to_scipy, interop.to_geopandas, interop.to_pyg])
def test_only_graphs_go_out(call):
    with pytest.raises(TypeError, match=r"must be a hushgraph\.Graph; got list"):
        call([(0, 1)])


def test_signals_must_fit(square):
    for wrong in ({"f": np.ones(3)}, np.ones((4, 2)), {"z": 1.0}):
        with pytest.raises(ValueError, match=r"per node|labels of"):
            interop.to_networkx(square, signals=wrong)


# ---- there and back through the real packages -----------------------------------------------------------------------

LABELLED = {"no labels": None, "integers": [30, 10, 40, 20], "text": NAMES, "digits": ["7", "5", "6", "8"]}


def made(labels, weights=(1.5, 2.0, 3.25, 0.1), crs="lonlat", coords=PLACES) -> Graph:
    return Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], n=4, weights=weights, coords=coords, crs=crs, labels=labels)


def assert_same(again: Graph, graph: Graph):
    assert again.hash == graph.hash  # nodes, edges, weights, labels
    assert again.crs == graph.crs
    np.testing.assert_array_equal(again.coords, graph.coords)
    assert (again.labels is None) == (graph.labels is None)
    assert again.labels is None or again.labels.dtype.kind == graph.labels.dtype.kind


def through_networkx(graph, folder):
    return Graph.from_networkx(interop.to_networkx(graph))


def through_a_file_of_networkx(graph, folder):
    nx.write_graphml(interop.to_networkx(graph), folder / "nx.graphml")
    assert_same(hg.read_graph(folder / "nx.graphml"), graph)
    return Graph.from_networkx(nx.read_graphml(folder / "nx.graphml"))


def through_networkx_from_our_file(graph, folder):
    return Graph.from_networkx(nx.read_graphml(hg.write_graph(folder / "ours.graphml", graph)))


def through_igraph(graph, folder):
    return Graph.from_igraph(interop.to_igraph(graph))


def through_a_file_of_igraph(graph, folder):
    igraph = pytest.importorskip("igraph")
    interop.to_igraph(graph).write_graphml(str(folder / "ig.graphml"))
    assert_same(hg.read_graph(folder / "ig.graphml"), graph)
    return Graph.from_igraph(igraph.Graph.Read_GraphML(str(folder / "ig.graphml")))


def through_networkx_and_igraph(graph, folder):
    igraph = pytest.importorskip("igraph")
    g = igraph.Graph.from_networkx(interop.to_networkx(graph))
    assert_same(Graph.from_networkx(g.to_networkx()), graph)
    return Graph.from_igraph(g)


def through_igraph_and_networkx(graph, folder):
    igraph = pytest.importorskip("igraph")
    G = interop.to_igraph(graph).to_networkx()
    assert_same(Graph.from_igraph(igraph.Graph.from_networkx(G)), graph)
    return Graph.from_networkx(G)


def through_our_file_that_igraph_rewrote(graph, folder):
    igraph = pytest.importorskip("igraph")
    g = igraph.Graph.Read_GraphML(str(hg.write_graph(folder / "ours.graphml", graph)))
    assert_same(Graph.from_igraph(g), graph)
    g.write_graphml(str(folder / "rewritten.graphml"))
    return hg.read_graph(folder / "rewritten.graphml")


def through_osmnx(graph, folder):
    osmnx = pytest.importorskip("osmnx")
    if graph.labels is not None and graph.labels.dtype.kind == "U":
        with pytest.raises(ValueError, match="OSMnx reads labels that are integers only"):
            hg.write_graph(folder / "ox.graphml", graph, for_osmnx=True)
        assert not list(folder.iterdir())
        return graph
    G = osmnx.load_graphml(hg.write_graph(folder / "ox.graphml", graph, for_osmnx=True))
    assert G.is_directed()
    assert G.is_multigraph()
    assert_same(hg.read_graph(folder / "ox.graphml"), graph)
    osmnx.save_graphml(G, folder / "saved.graphml")
    assert_same(hg.read_graph(folder / "saved.graphml"), graph)
    return Graph.from_networkx(G)


def through_geopandas(graph, folder):
    pytest.importorskip("geopandas")
    nodes, edges = interop.to_geopandas(graph)
    return Graph.from_geopandas(edges, nodes=nodes)


WAYS = [
    through_networkx, through_a_file_of_networkx, through_networkx_from_our_file, through_igraph, through_a_file_of_igraph,
    through_our_file_that_igraph_rewrote, through_osmnx, through_geopandas, through_networkx_and_igraph, through_igraph_and_networkx,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("labels", LABELLED)
@pytest.mark.parametrize("weighted", [True, False])
def test_everything_comes_back(tmp_path, way, labels, weighted):
    graph = made(LABELLED[labels], crs="lonlat", **({} if weighted else {"weights": None}))
    assert_same(way(graph, tmp_path), graph)


@pytest.mark.parametrize("way", WAYS)
def test_three_planar_coordinates_come_back(tmp_path, way):
    labels = LABELLED["integers"] if way is through_osmnx else NAMES
    graph = made(labels, crs=None, coords=np.arange(12.0).reshape(4, 3))
    assert_same(way(graph, tmp_path), graph)


def test_large_files_of_igraph_keep_their_names(tmp_path):
    igraph = pytest.importorskip("igraph")
    city = hg.datasets.city(3000)
    graph = Graph.from_scipy(city.adjacency, coords=city.coords.round(3), labels=np.arange(city.n) * 3 + 11)
    igraph.Graph.Read_GraphML(str(hg.write_graph(tmp_path / "a.graphml", graph))).write_graphml(str(tmp_path / "b.graphml"))
    assert (tmp_path / "b.graphml").stat().st_size > 2**18
    assert_same(hg.read_graph(tmp_path / "b.graphml"), graph)


def test_weights_may_be_left_out(square):
    for again in (
        Graph.from_networkx(interop.to_networkx(square), weight=False),
        Graph.from_igraph(interop.to_igraph(square), weight=False),
        Graph.from_geopandas(interop.to_geopandas(square)[1], weight=False),
    ):
        assert again.is_unweighted
    G = interop.to_networkx(square)
    G.add_edge("a", "c")
    with pytest.raises(ValueError, match=r"1 of 5 edges have no attribute 'weight'; .* weight=False"):
        Graph.from_networkx(G)
    assert Graph.from_networkx(G, weight=False).n_edges == 5


def test_graphs_of_others_stay_unweighted():
    G = nx.Graph()
    G.add_edge("a", "b", weight=3.0)
    assert Graph.from_networkx(G).is_unweighted
    igraph = pytest.importorskip("igraph")
    assert Graph.from_igraph(igraph.Graph.from_networkx(G)).is_unweighted


def test_places_of_igraph_by_name_or_as_an_array():
    igraph = pytest.importorskip("igraph")
    g = igraph.Graph(n=3, edges=[(0, 1), (1, 2)])
    assert Graph.from_igraph(g).coords is None
    g.vs["x"], g.vs["y"], g.vs["lon"] = [0, 1, 2], [5.0, 4.0, 3.0], ["7.5", "8.5", None]
    for graph in (Graph.from_igraph(g), Graph.from_igraph(g, coords=("x", "y"))):
        assert graph.coords.tolist() == [[0, 5], [1, 4], [2, 3]]
    assert Graph.from_igraph(g, coords=("y", "x")).coords.tolist() == [[5, 0], [4, 1], [3, 2]]
    assert Graph.from_igraph(g, coords=("lon", "y")).coords is None
    assert Graph.from_igraph(g, coords=None).coords is None
    assert Graph.from_igraph(g, coords=np.ones((3, 2))).coords.tolist() == [[1, 1]] * 3
    g["crs"] = "EPSG:4326"
    assert Graph.from_igraph(g).crs == "lonlat"


def test_tables_of_osmnx_are_nodes_and_edges():
    osmnx = pytest.importorskip("osmnx")
    G = nx.MultiDiGraph(crs="EPSG:4326")
    for name, (x, y) in zip([30, 10, 20], [(-73.5, 40.5), (-73.4, 40.5), (-73.4, 40.6)], strict=True):
        G.add_node(name, x=x, y=y)
    G.add_edge(30, 10, length=100.0)
    G.add_edge(10, 30, length=100.0)
    G.add_edge(10, 20, length=300.0)
    nodes, edges = osmnx.graph_to_gdfs(G)
    graph = Graph.from_geopandas(edges, nodes=nodes, distance="length")
    assert_same(graph, Graph.from_networkx(G, distance="length"))
    with pytest.raises(ValueError, match="2 ends of edges are no nodes"):
        Graph.from_geopandas(edges, nodes=nodes.drop(index=30))
    with pytest.raises(ValueError, match="levels of their index, that name nodes: source and target"):
        Graph.from_geopandas(edges.reset_index(drop=True), nodes=nodes)
    with pytest.raises(TypeError, match="GeoDataFrame of points"):
        Graph.from_geopandas(edges, nodes=edges)


def test_only_graphml_is_for_osmnx(square, tmp_path):
    with pytest.raises(ValueError, match="for_osmnx=True is for GraphML"):
        hg.write_graph(tmp_path / "a.npz", square, for_osmnx=True)


def projected_streets():
    """A bent street between two junctions in metres, as OSMnx has it, and the places in degrees."""
    pyproj, shapely = pytest.importorskip("pyproj"), pytest.importorskip("shapely")
    degrees = np.array([[-74.0, 40.7], [-73.99, 40.71], [-73.98, 40.7]])
    metres = np.stack(pyproj.Transformer.from_crs("EPSG:4326", "EPSG:32618", always_xy=True).transform(*degrees.T), axis=1)
    G = nx.MultiDiGraph(crs=pyproj.CRS("EPSG:32618"), created_with="OSMnx 2.0")
    for k, name in ((0, 11), (2, 12)):
        G.add_node(name, x=metres[k, 0], y=metres[k, 1])
    line = shapely.LineString(metres)
    G.add_edge(11, 12, osmid=5, name=["Elm St", "Ponte Velha"], length=float(line.length), geometry=line)
    return G, degrees, metres


def test_one_street_network_is_the_same_graph_however_it_comes(tmp_path):
    osmnx = pytest.importorskip("osmnx")
    G, degrees, metres = projected_streets()
    nodes, edges = osmnx.graph_to_gdfs(G)
    osmnx.save_graph_geopackage(G, tmp_path / "g.gpkg", directed=True)
    osmnx.save_graphml(G, tmp_path / "g.graphml")
    read = {
        "graphml": hg.read_graph(tmp_path / "g.graphml"), "gpkg": hg.read_graph(tmp_path / "g.gpkg"), "networkx": Graph.from_networkx(G),
        "geopandas": Graph.from_geopandas(edges, nodes=nodes), "lines": Graph.from_geopandas(edges),
    }  # fmt: skip
    for name, graph in read.items():
        assert (graph.crs, graph.n_edges, graph.origin.crs) == ("lonlat", 1, "EPSG:32618"), name
        assert name == "lines" or graph.labels.tolist() == [11, 12]
        np.testing.assert_allclose(graph.coords, degrees[[0, 2]], atol=1e-7)
        np.testing.assert_allclose(graph.curves.points, degrees[1:2], atol=1e-7)
        assert graph.names.of_node(0).startswith("Elm St"), name
        assert graph.attribution == "© OpenStreetMap contributors", name
    for plane in (Graph.from_networkx(G, crs="planar"), Graph.from_geopandas(edges, nodes=nodes, crs="planar")):
        assert plane.crs is None
        np.testing.assert_allclose(plane.coords, metres[[0, 2]])
        np.testing.assert_allclose(plane.curves.points, metres[1:2])
    assert Graph.from_geopandas(edges, distance="geometry", tolerance=1.0).crs == "lonlat"  # measured in metres


def test_degrees_of_the_nodes_are_taken_where_they_are_known():
    G, degrees, _ = projected_streets()
    for k, name in ((0, 11), (2, 12)):
        G.nodes[name].update(lon=degrees[k, 0], lat=degrees[k, 1])
    np.testing.assert_array_equal(Graph.from_networkx(G).coords, degrees[[0, 2]])
