"""Covariates that come with a graph: what each of them is, what is unknown, and that every way into the package gives the same."""

import copy
import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

import hushgraph as hg
from hushgraph.files import graphml
from hushgraph.graphs import covariates
from hushgraph.graphs.graph import Graph
from hushgraph.graphs.streets import STREET_ATTRIBUTES, CodedTexts, Streets, street_class, street_covariates

from ..support.strategies import graphs

NAN = float("nan")


def street_network():
    """As OSMnx makes them: two-way streets as two edges, lists where streets were joined, attributes that some streets lack."""
    G = nx.MultiDiGraph(crs="EPSG:4326")
    for k, name in enumerate([100, 101, 102, 103, 104]):
        G.add_node(name, x=-122.4 + 0.001 * k, y=37.7, street_count=2)

    def both(u, v, **attributes):
        G.add_edge(u, v, oneway=False, reversed=False, **attributes)
        G.add_edge(v, u, oneway=False, reversed=True, **attributes)

    both(100, 101, length=100.0, highway="residential", name="Elm & Oak", lanes="2", maxspeed="25 mph", osmid=[1, 2])
    G.add_edge(101, 102, length=60.0, highway=["primary", "tertiary_link"], oneway=True, lanes=["3", "2"], maxspeed="50", osmid=3)
    both(101, 102, length=80.0, highway="service", osmid=4)  # beside the former
    G.add_edge(102, 102, length=500.0, highway="motorway", oneway=True, lanes="8", name="Loop", osmid=5)
    both(102, 103, length=40.0, highway="busway", name=["Ash", "Yew"], lanes="many", maxspeed="RO:urban", osmid=6)
    return G


def of_texts(pairs, n=None, *, directed=False, coords=None, crs=None, **texts):
    pairs = np.array(pairs)
    streets = Streets({name: CodedTexts.of(values) for name, values in texts.items()}, directed)
    return street_covariates(pairs, n or pairs.max() + 1, streets, coords, crs)


def equal(first, second):
    return list(first) == list(second) and all(np.array_equal(first[name], second[name], equal_nan=True) for name in first)


# ---- streets --------------------------------------------------------------------------------------------------------


def test_covariates_of_a_street_network():
    found = Graph.from_networkx(street_network()).covariates()
    expected = {
        "degree": [1, 2, 2, 1, 0],
        "street_length": [50, 50 + 30 + 40, 30 + 40 + 20, 20, 0],
        "street_class": [2, 5, 5, NAN, NAN],
        "major_length": [0, 30, 30, 0, 0],
        "major_share": [0, 60 / 240, 60 / 140, NAN, NAN],
        "nameless_length": [0, 30 + 40, 30 + 40, 0, 0],
        "oneway_share": [0, 60 / 240, 60 / 180, 0, NAN],
        "lanes_mean": [2, (2 * 100 + 2.5 * 60) / 160, 2.5, NAN, NAN],
        "lanes_max": [2, 3, 3, NAN, NAN],
        "speed_mean": [40.2336, (40.2336 * 100 + 50 * 60) / 160, 50, NAN, NAN],
        "speed_max": [40.2336, 50, 50, NAN, NAN],
    }
    assert set(found) == {*expected, "distance_to_middle", "closeness", "betweenness"}
    for name, values in expected.items():
        assert found[name] == pytest.approx(np.array(values, dtype=float), nan_ok=True), name
    assert all(values.dtype == np.float64 and values.shape == (5,) and not values.flags.writeable for values in found.values())


def test_every_way_into_the_package_gives_the_same(tmp_path):
    osmnx, path = pytest.importorskip("osmnx"), tmp_path / "streets.graphml"
    G = street_network()
    osmnx.save_graphml(G, path)
    expected = Graph.from_networkx(G).node_covariates
    assert len(expected) == 10
    assert equal(Graph.from_networkx(osmnx.load_graphml(path)).node_covariates, expected)
    assert equal(Graph.from_networkx(nx.read_graphml(path, node_type=int, force_multigraph=True)).node_covariates, expected)
    for read in (graphml.read_plain, graphml.read_xml):
        table = read(path, weight=None, distance=None, covariates=True)
        assert equal(Graph.from_table(table).node_covariates, expected), read
    assert equal(hg.read_graph(path, covariates=True).node_covariates, expected)
    assert not hg.read_graph(path).node_covariates
    assert hg.read_graph(path).hash == hg.read_graph(path, covariates=True).hash


def test_networkx_files_with_numbers_of_two_types(tmp_path):
    G = nx.MultiGraph()
    G.add_edge("a", "b", lanes=2, length=10.0)
    G.add_edge("b", "c", lanes="3", length=20)
    G.add_edge("c", "b", lanes=1.5, length=20.0)  # a street of its own: these edges have no direction
    nx.write_graphml(G, tmp_path / "a.graphml")  # one key for each type
    expected = Graph.from_networkx(G).node_covariates
    assert expected["street_length"].tolist() == [5, 25, 20]
    assert expected["lanes_mean"].tolist() == [2, (2 * 10 + 3 * 20 + 1.5 * 20) / 50, 2.25]
    for read in (graphml.read_plain, graphml.read_xml):
        assert equal(
            Graph.from_table(read(tmp_path / "a.graphml", weight=None, distance=None, covariates=True)).node_covariates, expected
        )


def test_two_way_streets_count_once():
    def length(pairs, oneway, directed=True):
        return of_texts(pairs, length=[10.0] * len(pairs), oneway=oneway, directed=directed)["street_length"].tolist()

    assert length([(0, 1), (1, 0)], [False, False]) == [5, 5]
    assert length([(0, 1), (1, 0)], [None, None]) == [5, 5]
    assert length([(0, 1)], [False]) == [5, 5]  # its other direction was cut off
    assert length([(0, 1), (1, 0)], [True, True]) == [10, 10]  # two carriageways
    assert length([(0, 1), (1, 0), (0, 1), (1, 0)], [False] * 4) == [10, 10]  # two parallel streets
    assert length([(0, 1), (1, 0), (0, 1)], [False, False, True]) == [10, 10]
    assert length([(0, 1), (1, 0)], [False, False], directed=False) == [10, 10]


def test_lengths_come_from_places_where_they_must():
    places = np.array([[0.0, 0.0], [0.0, 0.01], [0.0, 0.02]])
    metres = 0.01 * np.radians(6_371_008.8)
    some = of_texts([(0, 1), (1, 2)], length=["x", 100.0], coords=places, crs="lonlat")["street_length"]
    assert some == pytest.approx([metres / 2, metres / 2 + 50, 50])
    planar = of_texts([(0, 1), (1, 2)], length=["x", 100.0], coords=places)["street_length"]  # which may be in another unit
    assert planar == pytest.approx(np.array([NAN, NAN, 50]), nan_ok=True)
    major = of_texts([(0, 1), (1, 2)], highway=["trunk", "path"], coords=places)["major_length"]
    assert major == pytest.approx([0.005, 0.005, 0])
    assert set(of_texts([(0, 1), (1, 2)], highway=["trunk", "path"])) == {"street_class", "major_share"}  # no lengths at all
    assert of_texts([(0, 1), (1, 2)], highway=["trunk", "path"])["major_share"].tolist() == [1, 0.5, 0]
    assert of_texts([(0, 1), (1, 2)], highway=[None, "?"], coords=places, crs="lonlat") == {}


@pytest.mark.parametrize(
    ("text", "mean", "largest"),
    [("2", 2, 2), ("3|2", 2.5, 3), ("3;2", 2.5, 3), ("['2', '3', '1']", 2, 3), (["2", "3"], 2.5, 3), (2, 2, 2), (2.0, 2, 2), ("1.5", 1.5, 1.5),
     (("2", "x"), 2, 2), ("0", NAN, NAN), ("-1", NAN, NAN), ("1e9", NAN, NAN), ("999", NAN, NAN), ("inf", NAN, NAN), ("nan", NAN, NAN), (NAN, NAN, NAN),
     ("two", NAN, NAN), ("", NAN, NAN), ([], NAN, NAN), (None, NAN, NAN), ({"a": 1}, NAN, NAN), (object(), NAN, NAN), ("２", NAN, NAN), ("[" * 999, NAN, NAN),
     ("2 mph", NAN, NAN), (b"2", NAN, NAN)],
)  # fmt: skip
def test_lanes(text, mean, largest):
    found = of_texts([(0, 1), (1, 2)], lanes=[text, "4"], length=[1.0, 1.0])
    assert (found["lanes_mean"][0], found["lanes_max"][0]) == pytest.approx((mean, largest), nan_ok=True)
    assert (found["lanes_mean"][2], found["lanes_max"][2]) == (4, 4)


@pytest.mark.parametrize(
    ("text", "speed"),
    [("50", 50), ("25 mph", 40.2336), ("25mph", 40.2336), ("30 km/h", 30), ("10 knots", 18.52), ("['25 mph', '50']", (40.2336 + 50) / 2),
     ("RO:urban", NAN), ("none", NAN), ("signals", NAN), ("walk", NAN), ("5 furlongs", NAN), ("4000", NAN), (50, 50), ("DE:zone:30", NAN)],
)  # fmt: skip
def test_speeds(text, speed):
    assert of_texts([(0, 1), (1, 2)], maxspeed=[text, "4"])["speed_mean"][0] == pytest.approx(speed, nan_ok=True)


@pytest.mark.parametrize(
    ("text", "share"),
    [(True, 1), ("True", 1), ("yes", 1), ("-1", 1), (False, 0), ("no", 0), ([True, False], 1), ("[False, False]", 0), ("reversible", NAN), (None, NAN), (2, NAN)],
)  # fmt: skip
def test_oneway(text, share):
    assert of_texts([(0, 1), (1, 2)], oneway=[text, "no"])["oneway_share"][0] == pytest.approx(share, nan_ok=True)


def test_classes_ascend():
    names = ["footway", "service", "residential", "tertiary", "secondary_link", "primary", "trunk", "motorway_link"]
    assert [street_class(name) for name in names] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert np.isnan(street_class("proposed"))


@given(st.data())
def test_no_value_is_an_error_or_infinite(data):
    n, m = data.draw(st.integers(1, 5)), data.draw(st.integers(0, 8))
    pairs = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, n - 1)] * 2), min_size=m, max_size=m)), dtype=np.int64).reshape(
        -1, 2
    )
    known = st.sampled_from(
        ["2", "3|2", "True", "no", "primary", "['primary', 'service']", "25 mph", "1e308", "-3", "Main, 5th", "10.5", 7, 2.5]
    )
    values = st.none() | known | st.text() | st.floats() | st.integers() | st.booleans() | st.lists(st.text() | st.floats())
    texts = {name: data.draw(st.lists(values, min_size=m, max_size=m)) for name in STREET_ATTRIBUTES}
    found = of_texts(pairs, n, directed=data.draw(st.booleans()), **texts)
    assert all(values.shape == (n,) and not np.isinf(values).any() for values in found.values())
    assert all(0 <= x <= 1 for name, values in found.items() if name.endswith("share") for x in values[~np.isnan(values)])


# ---- any graph ------------------------------------------------------------------------------------------------------


def test_lengths_of_any_graph():
    edges = [(0, 1), (1, 2)]
    assert set(Graph.from_edges(edges).covariates()) == {"degree", "closeness", "betweenness"}
    weighted = Graph.from_networkx(nx.Graph([(0, 1, {"d": 1.0}), (1, 2, {"d": 3.0})]), distance="d").covariates()
    assert weighted["street_length"].tolist() == [0.25, 1, 0.75]  # in mean lengths
    assert Graph.from_edges(edges, coords=[(0, 0), (3, 4), (3, 5)]).covariates()["street_length"].tolist() == [2.5, 3, 0.5]
    globe = Graph.from_edges(edges, coords=[(179.9, 60.0), (-179.9, 60.0), (-179.9, 60.1)], crs="lonlat").covariates()
    metres = np.radians(6_371_008.8)
    assert globe["street_length"] == pytest.approx([0.05 * metres, 0.1 * metres, 0.05 * metres], rel=1e-4)
    assert globe["distance_to_middle"].max() < 0.12 * metres


@pytest.mark.parametrize("n", [0, 1, 2])
def test_tiny_graphs(n):
    found = Graph.from_edges(np.empty((0, 2), dtype=int), n=n, coords=np.zeros((n, 2))).covariates()
    assert set(found) == ({"degree", "distance_to_middle", "street_length"} if n else set())


def test_nodes_at_one_place():
    found = Graph.from_edges([(0, 1), (1, 2), (2, 3)], coords=np.zeros((4, 2))).covariates()
    assert found["street_length"].tolist() == [0] * 4
    assert found["betweenness"] == pytest.approx([0, 2 / 3, 2 / 3, 0])
    mixed = Graph.from_edges([(i, i + 1) for i in range(8)], coords=[(0, 0)] * 8 + [(1, 0)]).covariates()
    assert np.isfinite(mixed["betweenness"]).all()
    assert np.isfinite(mixed["closeness"]).all()


def test_centrality_is_that_of_networkx():
    graph = hg.datasets.grid(9, 7)
    coords = graph.coords + np.random.default_rng(0).normal(0, 0.1, graph.coords.shape)  # no two paths of equal length
    graph = Graph.from_scipy(graph.adjacency, coords=coords)
    G = hg.to_networkx(graph)
    nx.set_edge_attributes(G, {(u, v): np.linalg.norm(coords[u] - coords[v]) for u, v in G.edges}, "d")
    found = graph.covariates()
    assert found["betweenness"] == pytest.approx(list(nx.betweenness_centrality(G, weight="d").values()))
    assert found["closeness"] == pytest.approx(list(nx.closeness_centrality(G, distance="d").values()))


def test_a_sample_of_pivots_estimates_centrality(monkeypatch):
    rng = np.random.default_rng(1)
    graph = hg.datasets.grid(30, 30)
    lengths = covariates._edge_lengths(
        Graph.from_scipy(graph.adjacency, coords=graph.coords + rng.normal(0, 0.2, graph.coords.shape))
    )
    estimate = covariates.centrality(graph.adjacency, lengths)
    monkeypatch.setattr(covariates, "MOST_PIVOTS", graph.n)
    exact = covariates.centrality(graph.adjacency, lengths)
    for one, other in zip(estimate, exact, strict=True):
        assert np.corrcoef(one, other)[0, 1] > 0.95


def test_centrality_is_unknown_out_of_reach(monkeypatch):
    graph = Graph.from_edges([(i, i + 1) for i in range(500)] + [(501, 502)], n=504)
    found = graph.covariates()
    assert np.isnan(found["closeness"][501:]).all()
    assert np.isnan(found["betweenness"][501:]).all()
    assert np.isfinite(found["closeness"][:501]).all()
    small = Graph.from_edges([(0, 1), (2, 3)], n=5).covariates()["closeness"]
    assert small == pytest.approx(np.array([1, 1, 1, 1, NAN]), nan_ok=True)
    monkeypatch.setattr(covariates, "MOST_NODES", 503)
    assert "closeness" not in Graph.from_edges([(0, 1)], n=504).covariates()


@given(graphs())
def test_any_graph_has_covariates(graph):
    found, again = graph.covariates(), copy.copy(graph).covariates()
    assert equal(found, again)
    assert all(values.shape == (graph.n,) and not np.isinf(values).any() for values in found.values())


# ---- covariates of the caller ---------------------------------------------------------------------------------------


def test_covariates_stay_with_the_graph(tmp_path):
    given = {"height": np.array([1.0, NAN, 3.0]), "degree": [7, 8, 9]}
    graph = Graph.from_edges([(0, 1), (1, 2)], labels=["a", "b", "c"], node_covariates=given)
    assert graph.hash == Graph.from_edges([(0, 1), (1, 2)], labels=["a", "b", "c"]).hash
    assert graph.covariates()["degree"].tolist() == [7, 8, 9]
    given["height"][0] = 5
    assert graph.node_covariates["height"][0] == 1
    for same in (
        pickle.loads(pickle.dumps(graph)),
        copy.copy(graph),
        copy.deepcopy(graph),
        hg.read_graph(hg.write_graph(tmp_path / "a.npz", graph)),
    ):
        assert equal(same.node_covariates, graph.node_covariates)
        assert not any(values.flags.writeable for values in same.node_covariates.values())
        with pytest.raises(TypeError):
            same.node_covariates["height"] = given["height"]
    part = graph.subgraph([2, 1])
    assert part.covariates()["height"] == pytest.approx(np.array([3, NAN]), nan_ok=True)
    assert "height" not in hg.read_graph(hg.write_graph(tmp_path / "a.csv", graph)).covariates()


def test_pickles_without_covariates_are_read():
    graph = Graph.from_edges([(0, 1)])
    state = graph.__getstate__()
    del state["node_covariates"]
    old = Graph.__new__(Graph)
    old.__setstate__(state)
    assert equal(old.covariates(), graph.covariates())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [([1, 2], "dict of name"), ({3: [1, 2]}, "dict of name"), ({"a": [1]}, r"one number per node, shape \(2,\)"),
     ({"a": [1, np.inf]}, "finite, or NaN"), ({"a": ["x", "y"]}, "real numbers")],
)  # fmt: skip
def test_wrong_covariates_are_refused(wrong, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Graph.from_edges([(0, 1)], node_covariates=wrong)
