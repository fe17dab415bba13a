"""Files with regions: GeoJSON and tables."""

import json

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.files import read_regions

SQUARE = [[-0.5, -1.5], [1.5, -1.5], [1.5, 0.5], [-0.5, 0.5], [-0.5, -1.5]]
HOLE = [[0.5, -0.5], [1.2, -0.5], [1.2, 0.2], [0.5, 0.2], [0.5, -0.5]]


@pytest.fixture(scope="module")
def grid():
    return hg.datasets.grid(3, 3)  # places (0..2, 0..-2)


def feature(coordinates, kind="Polygon", **more):
    return {"type": "Feature", "geometry": {"type": kind, "coordinates": coordinates}, **more}


def written(path, *features, **more):
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features, **more}), encoding="utf-8-sig")
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("node,region\n0,Forêt\n1,Forét\n".encode("latin-1"), "not in UTF-8"),
        (b'node,region\n0,"a\n1,b\n', "unexpected end of data"),
        (b"node,region\n0," + b"x" * 200_000 + b"\n", "field larger than field limit"),
    ],
)
def test_tables_whose_names_would_be_mixed_up_are_refused(grid, tmp_path, content, message):
    (tmp_path / "zones.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_regions(tmp_path / "zones.csv", grid)


def test_the_number_of_a_feature_is_no_name_of_another(grid, tmp_path):
    path = written(tmp_path / "zones.geojson", feature([SQUARE], properties={"name": "2"}), feature([SQUARE], properties={}))
    with pytest.raises(ValueError, match="a region named 2 and no name for feature 2"):
        read_regions(path, grid)


def test_polygons_with_holes_and_parts(grid, tmp_path):
    far = [[1.5, -2.5], [2.5, -2.5], [2.5, -1.5], [1.5, -1.5], [1.5, -2.5]]
    path = written(
        tmp_path / "zones.geojson",
        feature([SQUARE], properties={"name": "corner"}),
        feature([SQUARE, HOLE], properties={"Name": "x"}, id="ring"),
        feature([[SQUARE], [far]], "MultiPolygon", properties=None),
    )
    regions = read_regions(path, grid)
    assert regions.names == ("corner", "ring", "3")
    assert [regions.members[[k]].indices.tolist() for k in range(3)] == [[0, 1, 3, 4], [0, 3, 4], [0, 1, 3, 4, 8]]


def test_polygons_of_one_name_are_one_region(grid, tmp_path):
    both = written(tmp_path / "a.json", *(feature([SQUARE], properties={"name": "x"}) for _ in range(2)))
    assert read_regions(both, grid).members.sum() == 4


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"type": "FeatureCollection", "features": [{"geometry": null}]}'])
def test_other_json_is_refused(grid, tmp_path, text):
    path = tmp_path / "a.geojson"
    path.write_text(text)
    with pytest.raises(ValueError, match="no GeoJSON of polygons"):
        read_regions(path, grid)


def test_points_and_broken_rings_are_refused(grid, tmp_path):
    for wrong in (feature([0, 0], "Point"), feature([[[0, 0], [1, 1]]]), feature([[[0, 0], [1, float("nan")], [2, 2]]])):
        with pytest.raises(ValueError, match="no GeoJSON of polygons"):
            read_regions(written(tmp_path / "a.geojson", wrong), grid)


def test_other_coordinates_are_refused_for_a_graph_on_the_globe(tmp_path):
    graph = hg.Graph.from_edges([(0, 1)], coords=np.array([[2.0, 48.0], [3.0, 49.0]]), crs="lonlat")
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::2154"}}
    with pytest.raises(ValueError, match="convert it to EPSG:4326"):
        read_regions(written(tmp_path / "a.geojson", feature([SQUARE]), crs=crs), graph)


def test_tables_by_label(tmp_path):
    graph = hg.Graph.from_edges([(0, 1), (1, 2)], labels=[10, 20, 30])
    path = tmp_path / "zones.csv"
    path.write_text("region,node\nwest,30\nwest,10\n,20\n\neast,20\n")
    regions = read_regions(path, graph)
    assert regions.names == ("west", "east")
    assert regions.members.toarray().tolist() == [[1, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the columns node and region"),
        ("node,zone\n1,a\n", "it has node, zone"),
        ("node,region\n7,a\n", "line 2 of .* no node of the graph"),
        ("node,region\n1\n", "1 cells, not 2"),
        ("node,region\n1,a\n1,a\n", "twice in the region a"),
        ("node,region\n1,\n", "at least one region"),
    ],
)
def test_wrong_tables_are_refused(grid, tmp_path, text, message):
    path = tmp_path / "zones.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_regions(path, hg.datasets.path(3))
    with pytest.raises(ValueError, match=r"must end in \.geojson"):
        read_regions(path.rename(tmp_path / "zones.xlsx"), grid)
