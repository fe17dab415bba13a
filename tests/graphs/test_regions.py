"""Regions: by labels, masks, columns of names and polygons."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.graphs import Regions, block_partition, polygon_regions, region_nodes
from hushgraph.graphs.regions import in_rings


@pytest.fixture(scope="module")
def named():
    return hg.Graph.from_edges([(0, 1), (1, 2), (2, 3)], labels=["a", "b", "c", "d"], coords=[[0, 0], [1, 0], [2, 0], [3, 0]])


def members(regions):
    return {name: regions.members[[k]].indices.tolist() for k, name in enumerate(regions.names)}


def test_regions_by_label_mask_and_series(named):
    pandas = pytest.importorskip("pandas")
    mask = np.array([True, False, False, True])
    assert members(Regions.of(named, {"x": ["c", "a"], "y": mask, "none": []})) == {"x": [0, 2], "y": [0, 3], "none": []}
    series = pandas.Series(["s", None, "r", float("nan")], index=["d", "c", "b", "a"])
    assert members(Regions.of(named, series)) == {"r": [1], "s": [3]}


def test_numbers_are_the_labels_of_a_graph_without_labels():
    graph = hg.datasets.path(5)
    assert region_nodes(graph, [3, 1]).tolist() == [3, 1]
    assert region_nodes(graph, {4, 0}).tolist() == [0, 4]


@pytest.mark.parametrize(
    ("regions", "message"),
    [
        ({"x": ["a", "q"]}, "labels of nodes of the graph; got 1 of 2"),
        ({"x": ["a", "a"]}, "unique"),
        ({"x": "abc"}, "a list of labels"),
        ({"x": [True, False]}, "a mask of 4 booleans"),
        ({}, "at least one region"),
        (3, "a dict of name to labels"),
    ],
)
def test_wrong_regions_are_refused(named, regions, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Regions.of(named, regions)


def test_polygons_agree_with_shapely():
    shapely = pytest.importorskip("shapely")
    rng = np.random.default_rng(0)
    places = rng.random((3000, 2))
    angles = np.sort(rng.uniform(0, 2 * np.pi, 40))
    outer = 0.5 + (rng.uniform(0.2, 0.5, 40) * [np.cos(angles), np.sin(angles)]).T
    hole = np.array([[0.45, 0.45], [0.55, 0.45], [0.5, 0.55]])
    expected = shapely.contains_xy(shapely.Polygon(outer, [hole]), places[:, 0], places[:, 1])
    found = in_rings(places, [outer, hole])
    assert expected.any()
    assert not expected.all()
    np.testing.assert_array_equal(found, expected)


def test_a_place_on_a_common_side_is_in_one_polygon():
    graph = hg.datasets.grid(5, 5)
    squares = []
    for x in (0, 2):
        for y in (-4, -2):
            squares.append(((x, y), [[np.array([[x, y], [x + 2, y], [x + 2, y + 2], [x, y + 2]], dtype=float)]]))
    regions = polygon_regions(graph, squares)
    count = np.asarray(regions.members.sum(axis=0))
    inner = (graph.coords > [0, -4]).all(axis=1) & (graph.coords < [4, 0]).all(axis=1)
    assert (count[inner] == 1).all()
    assert count.max() == 1


def test_geodataframes_are_projected():
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    places = np.random.default_rng(1).uniform([2.3, 48.8], [2.4, 48.9], (200, 2))
    graph = hg.Graph.from_edges([(k, k + 1) for k in range(199)], coords=places, crs="lonlat")
    shapes = [shapely.box(2.3, 48.8, 2.35, 48.9), shapely.box(2.35, 48.8, 2.4, 48.9)]
    frame = geopandas.GeoDataFrame({"name": ["west", "east"], "size": [1, 2]}, geometry=shapes, crs="EPSG:4326").to_crs("EPSG:2154")
    found = members(Regions.of(graph, frame))
    west = np.flatnonzero(places[:, 0] < 2.35)
    assert len(set(found["west"]) ^ set(west.tolist())) <= 2  # a straight side is not quite straight in the other projection
    with pytest.raises(ValueError, match="do not say their crs"):
        Regions.of(graph, frame.set_crs(None, allow_override=True))
    with pytest.raises(ValueError, match="a column 'name'"):
        Regions.of(graph, frame.rename(columns={"name": "title"}))
    with pytest.raises(ValueError, match="no coords"):
        Regions.of(hg.Graph.from_edges([(0, 1)]), frame)


def test_blocks_are_regions():
    graph = hg.datasets.grid(10, 10)
    blocks = block_partition(graph, size=10)
    regions = Regions.of_nodes(graph, {int(k): np.flatnonzero(blocks == k) for k in np.unique(blocks)})
    np.testing.assert_array_equal(np.asarray(regions.members.sum(axis=0)), 1)
