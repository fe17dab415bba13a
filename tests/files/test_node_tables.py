"""Graphs of two files: edges, and a table of their nodes."""

import numpy as np
import pytest

import hushgraph as hg

EDGES = "source,target\nelm,oak\noak,ash\n"
NODES = "label,lon,lat\nash,4.1,50.1\nelm,4.2,50.2\nfir,4.3,50.3\noak,4.4,50.4\n"


def written(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    return folder / "edges.csv", folder / "nodes.csv"


def test_nodes_without_edges_stay_and_edges_name_labels(tmp_path):
    edges, nodes = written(tmp_path, edges=EDGES, nodes=NODES)
    graph = hg.read_graph(edges, nodes=nodes)
    assert (graph.labels.tolist(), graph.crs) == (["ash", "elm", "fir", "oak"], "lonlat")
    assert graph.degrees.tolist() == [1, 1, 0, 2]
    assert graph.coords[2].tolist() == [4.3, 50.3]


@pytest.mark.parametrize(
    ("head", "options", "crs"),
    [
        ("node,x,y", {}, None),
        ("id,X,Y", {"crs": "lonlat"}, "lonlat"),
        ("osmid,Longitude,Latitude", {}, "lonlat"),
        ("node,lon,lat", {"crs": "planar"}, None),
    ],
)
def test_the_names_of_columns_say_what_places_are(tmp_path, head, options, crs):
    edges, nodes = written(tmp_path, edges="u,v\n7,30\n30,12\n", nodes=f"{head}\n7,1,2\n12,3,4\n30,5,6\n9,7,8\n")
    graph = hg.read_graph(edges, nodes=nodes, **options)
    assert (graph.labels.tolist(), graph.crs, graph.n_edges) == ([7, 12, 30, 9], crs, 2)
    assert graph.coords.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]


def test_a_plane_is_preferred_where_it_is_asked_for(tmp_path):
    edges, nodes = written(tmp_path, edges="u,v\n0,1\n", nodes="node,lon,lat,x,y\n0,4,50,100,200\n1,5,51,300,400\n")
    assert hg.read_graph(edges, nodes=nodes).coords.tolist() == [[4, 50], [5, 51]]
    plane = hg.read_graph(edges, nodes=nodes, crs="planar")
    assert (plane.coords.tolist(), plane.crs, plane.labels) == ([[100, 200], [300, 400]], None, None)


def test_labels_alone_parquet_and_semicolons(tmp_path):
    pandas = pytest.importorskip("pandas")
    edges, nodes = written(tmp_path, edges=EDGES, nodes="node\nfir\nelm\noak\nash\n")
    graph = hg.read_graph(edges, nodes=nodes)
    assert (graph.labels.tolist(), graph.coords) == (["fir", "elm", "oak", "ash"], None)
    pandas.DataFrame({"label": ["fir", "elm", "oak", "ash"]}).to_parquet(tmp_path / "labels.parquet")
    assert hg.read_graph(edges, nodes=tmp_path / "labels.parquet").hash == graph.hash
    frame = pandas.DataFrame({"label": ["fir", "elm", "oak", "ash"], "x": [1.0, 2, 3, 4], "y": 0.5})
    frame.to_parquet(tmp_path / "nodes.parquet")
    assert hg.read_graph(edges, nodes=tmp_path / "nodes.parquet").coords[:, 0].tolist() == [1, 2, 3, 4]
    (tmp_path / "nodes.csv").write_text("label;x;y\nfir;1,5;0\nelm;2;0\noak;3;0\nash;4;0\n")
    assert hg.read_graph(edges, nodes=nodes).coords[0, 0] == 1.5


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("name,lon,lat\nelm,1,2\n", r"must have a column of node labels called node or label or id or osmid; it has 'name', 'lon'"),
        ("node,lon\nelm,1\n", "has a column lon and none called lat"),
        ("node,lon,lat\nelm,1,2\noak,1,2\n", "1 ends of edges are no nodes .*first: 'ash'"),
        ("node,lon,lat\nelm,1,2\noak,1,2\nelm,1,3\nash,1,2\n", "1 nodes more than once .*'elm'"),
        ("node,lon,lat\nelm,1,2\noak,,2\nash,1,2\n", "1 nodes of .* have no lon and lat .first: 'oak'"),
    ],
)
def test_errors_say_what_is_wrong_with_the_table(tmp_path, nodes, message):
    paths = written(tmp_path, edges=EDGES, nodes=nodes)
    with pytest.raises(ValueError, match=message):
        hg.read_graph(paths[0], nodes=paths[1])


def test_integers_in_edges_and_text_in_nodes_are_an_error(tmp_path):
    edges, nodes = written(tmp_path, edges="u,v\n1,2\n", nodes="node\n1\n2\nhome\n")
    with pytest.raises(ValueError, match=r"1 labels of .* are text .*'home'"):
        hg.read_graph(edges, nodes=nodes)


def test_files_with_their_own_nodes_take_no_table(tmp_path):
    graph = hg.Graph.from_edges([(0, 1)], coords=np.zeros((2, 2)))
    path = hg.write_graph(tmp_path / "a.npz", graph)
    with pytest.raises(ValueError, match="nodes must be left out, unless for a list of edges"):
        hg.read_graph(path, nodes=tmp_path / "nodes.csv")
