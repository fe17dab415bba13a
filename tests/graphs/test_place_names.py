"""Names of nodes: from streets and zones, in files and subgraphs; the source of a graph."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.graphs import CodedTexts, NodeNames

OSMNX = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d9" for="edge" attr.name="name" attr.type="string" />
  <key id="d1" for="graph" attr.name="created_with" attr.type="string" />
  <graph edgedefault="directed">
    <data key="d1">OSMnx 2.0.1</data>
    <node id="11" /><node id="12" /><node id="13" /><node id="14" />
    <edge source="11" target="12"><data key="d9">West 33rd Street</data></edge>
    <edge source="12" target="11"><data key="d9">West 33rd Street</data></edge>
    <edge source="12" target="13"><data key="d9">['8th Avenue', 'Elm &amp; Oak']</data></edge>
    <edge source="13" target="14" />
  </graph>
</graphml>
"""


@pytest.mark.parametrize("covariates", [False, True])
@pytest.mark.parametrize("padding", [0, 5000])  # small files are read by the XML parser, large ones in blocks
def test_osmnx_files_name_junctions_and_their_source(tmp_path, covariates, padding):
    path = tmp_path / "streets.graphml"
    path.write_text(OSMNX + " " * padding)
    graph = hg.read_graph(path, covariates=covariates)
    assert [graph.names.of_node(k) for k in range(4)] == [
        "West 33rd Street",
        "West 33rd Street / 8th Avenue",
        "8th Avenue / Elm & Oak",
        "",
    ]
    assert graph.attribution == "© OpenStreetMap contributors"
    assert not graph.node_covariates  # names alone are none


@pytest.mark.parametrize("ending", ["npz", "graphml", "graphml.gz"])
def test_names_survive_files_and_subgraphs(tmp_path, ending):
    city = hg.datasets.city(300)
    graph = hg.Graph(city.adjacency, coords=city.coords, names=city.names, attribution="generated & free")
    again = hg.read_graph(hg.write_graph(tmp_path / f"streets.{ending}", graph))
    same = np.mean([again.names.of_node(k) == graph.names.of_node(k) for k in range(graph.n)])
    assert same == 1 if ending == "npz" else same > 0.9
    assert again.attribution == graph.attribution
    assert again.hash == graph.hash == city.hash
    some = graph.subgraph([7, 3])
    assert [some.names.of_node(k) for k in range(2)] == [graph.names.of_node(7), graph.names.of_node(3)]
    assert len(some.names.texts) <= 4


def test_zones_have_the_names_of_their_column(tmp_path):
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])
    features = [
        {
            "type": "Feature",
            "id": k,
            "properties": {"Zone": name},
            "geometry": {"type": "Polygon", "coordinates": [(square + [k, 0]).tolist()]},
        }
        for k, name in enumerate(["Mill Park", None, "Harbour"])
    ]
    graph = hg.Graph.from_polygons({"type": "FeatureCollection", "features": features}, crs="planar")
    assert [graph.names.of_node(k) for k in range(3)] == ["Mill Park", "", "Harbour"]
    again = hg.read_graph(hg.write_graph(tmp_path / "zones.geojson", graph))
    assert [again.names.of_node(k) for k in range(3)] == ["Mill Park", "", "Harbour"]


def test_a_generated_city_is_the_same_with_its_names():
    graph = hg.datasets.city(600, seed=3)
    assert all(graph.names.of_node(k) for k in range(graph.n))
    assert any("St / " in graph.names.of_node(k) for k in range(graph.n))
    assert max(map(len, graph.names.texts)) < 30


@pytest.mark.parametrize("names", ["Elm", NodeNames(["Elm"], [[0]])])
def test_names_that_do_not_fit_are_refused(names):
    with pytest.raises((TypeError, ValueError), match="names"):
        hg.Graph.from_edges([(0, 1)], n=2, names=names)
    with pytest.raises(ValueError, match="names"):
        NodeNames(["Elm"], [[1]])


def test_all_names_of_a_list_count():
    texts = ["['Elm St', 'Ponte Velha']", "Ponte Velha", "Oak", None, "[1, nan]"]
    pairs = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]])
    names = NodeNames.of_streets(pairs, 6, CodedTexts.of(texts))
    assert [names.of_node(k) for k in range(6)] == [
        "Elm St / Ponte Velha",
        "Ponte Velha / Elm St",
        "Ponte Velha / Oak",
        "Oak",
        "",
        "",
    ]
