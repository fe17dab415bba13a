"""Zones: which polygons are neighbors, what a zone contains, and what is refused."""

import json
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.spatial import Voronoi

import hushgraph as hg
from hushgraph._errors import InputError, InputTypeError
from hushgraph.graphs import Outlines, ZoneFinder
from hushgraph.graphs.zones import TOLERANCE, inner_places, neighbors

from ..support.polygons import in_rings

SQUARE = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=float)


def feature(rings, name=None, **properties):
    geometry = {"type": "Polygon", "coordinates": [np.asarray(ring).tolist() for ring in rings]}
    return {"type": "Feature", "properties": properties, "geometry": geometry, **({} if name is None else {"id": name})}


def collection(features):
    return {"type": "FeatureCollection", "features": features}


def squares(*places, names=None):
    names = range(10, 10 + len(places)) if names is None else names
    return collection([feature([SQUARE + place], name) for place, name in zip(places, names, strict=True)])


def edges(graph):
    return {
        tuple(graph.labels[list(pair)].tolist()) for pair in np.array(graph.adjacency.nonzero()).T.tolist() if pair[0] < pair[1]
    }


def as_list(labels):
    return None if labels is None else labels.tolist()


def planar(zones, **options):
    return hg.Graph.from_polygons(zones, crs="planar", **options)


# ---- neighbors -------------------------------------------------------------------------------------------------------


def test_a_common_border_joins_and_a_corner_does_not():
    graph = planar(squares([0, 0], [1, 0], [1, 1], [0, 1], [2.5, 2]))
    assert edges(graph) == {(10, 11), (11, 12), (12, 13), (10, 13)}
    assert graph.degrees[4] == 0


def test_borders_need_no_common_corners():
    assert edges(planar(squares([0, 0], [1, 0.4], [0.3, -1]))) == {(10, 11), (10, 12)}


@pytest.mark.parametrize(("gap", "joined"), [(0.0, True), (0.0009, True), (-0.0009, True), (0.0011, False), (0.1, False)])
def test_gaps_and_slivers_within_the_tolerance_are_borders(gap, joined):
    zones = squares([0, 0], [1 + gap, 0], [0, 1])
    assert ((10, 11) in edges(planar(zones))) == joined


def test_a_larger_tolerance_bridges_larger_gaps():
    zones = squares([0, 0], [1.05, 0])
    assert edges(planar(zones, tolerance=0.06)) == {(10, 11)}
    with pytest.warns(UserWarning, match="no two of the 2 zones have a common border"):
        planar(zones)


def test_an_enclave_is_a_neighbor_of_the_zone_around_it():
    around = [3 * SQUARE, SQUARE[::-1] + 1]
    graph = planar(collection([feature(around, "around"), feature([SQUARE + 1], "enclave"), feature([SQUARE + [3, 0]], "east")]))
    assert edges(graph) == {("around", "enclave"), ("around", "east")}
    np.testing.assert_allclose(graph.outlines.areas(), [8, 1, 1])


def test_parts_of_a_multipolygon_and_rows_of_one_label_are_one_zone():
    many = feature([SQUARE], "a")
    many["geometry"] = {"type": "MultiPolygon", "coordinates": [[SQUARE.tolist()], [(SQUARE + [4, 0]).tolist()]]}
    zones = collection([many, feature([SQUARE + [1, 0]], "b"), feature([SQUARE + [3, 0]], "c"), feature([SQUARE + [2, 0]], "b")])
    graph = planar(zones)
    assert graph.labels.tolist() == ["a", "b", "c"]
    assert edges(graph) == {("a", "b"), ("b", "c"), ("a", "c")}
    assert graph.outlines.nodes.tolist() == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("seed", range(3))
def test_voronoi_cells_are_joined_along_their_ridges(seed):
    sites = np.random.default_rng(seed).random((120, 2))
    far = 2.5 * np.stack([np.cos(angle := np.linspace(0, 2 * np.pi, 40, endpoint=False)), np.sin(angle)], axis=1) + 0.5
    diagram = Voronoi(np.concatenate([sites, far]))
    regions = [diagram.regions[region] for region in diagram.point_region[:120]]
    outlines = Outlines.of([[[diagram.vertices[region]]] for region in regions])
    size = np.sqrt(outlines.areas())
    found = {tuple(pair) for pair in neighbors(outlines, TOLERANCE, list(range(120))).tolist()}
    long, short = set(), set()
    for pair, ridge in zip(diagram.ridge_points.tolist(), diagram.ridge_vertices, strict=True):
        if max(pair) < 120:
            length = np.linalg.norm(np.subtract(*diagram.vertices[ridge]))
            (long if length > 10 * TOLERANCE * size[pair].min() else short).add(tuple(sorted(pair)))
    assert long <= found <= long | short


@given(st.floats(0, 2 * np.pi), st.floats(0.01, 1e6), st.integers(0, 5))
def test_neighbors_do_not_depend_on_turning_scaling_and_order(angle, scale, seed):
    order = np.random.default_rng(seed).permutation(9)
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    zones = [[[(SQUARE + [k % 3, k // 3]) @ turn]] for k in order.tolist()]
    found = {tuple(sorted(order[pair].tolist())) for pair in neighbors(Outlines.of(zones), TOLERANCE, list(order))}
    assert found == {(i, j) for i, j in np.array(hg.datasets.grid(3, 3).adjacency.nonzero()).T.tolist() if i < j}


def test_zones_on_both_sides_of_the_antimeridian_are_neighbors():
    graph = hg.Graph.from_polygons(squares([178, 0], [179, 0], [-180, 0]))
    assert edges(graph) == {(10, 11), (11, 12)}
    assert graph.crs == "lonlat"
    counts = count(graph, lon=[179.5, -179.5, 180.5, 181.5], lat=[0.5] * 4)
    assert counts.counts.tolist() == [0, 1, 2]


def test_zones_around_the_globe_are_not_torn():
    """Wherever the seam of the map is, a zone on it keeps its area, its neighbors and its events."""
    zones = collection(
        [feature([SQUARE * [40, 10] + [lon, 0]], k) for k, lon in enumerate((-170, -130, -60, -20, 20, 60, 100, 140))]
    )
    zones["features"].append(feature([[[175, 20], [-175, 20], [-175, 30], [175, 30]]], 8))  # crosses 180 degrees
    graph = hg.Graph.from_polygons(zones)
    assert graph.n_edges == 6  # 9 zones in three rows: 2, 6, and one alone
    counts = count(graph, lon=[-150.0, 0.0, 150.0, 179.0, -179.0, -80.0], lat=[5.0, 5.0, 5.0, 25.0, 25.0, 5.0])
    assert counts.counts.tolist() == [1, 0, 0, 1, 0, 0, 0, 1, 2]


# ---- what a zone contains --------------------------------------------------------------------------------------------


def count(graph, **columns):
    events = {"person": [f"p{k}" for k in range(len(next(iter(columns.values()))))], **columns}
    return hg.privacy.count_events(graph, events, unit="person", adjacency="add-remove", max_nodes=1, max_per_node=1)


def test_places_are_found_as_by_comparison_with_each_zone():
    graph = hg.datasets.zones(60, crs=None)
    rng = np.random.default_rng(0)
    low, high = graph.outlines.corners.min(axis=0), graph.outlines.corners.max(axis=0)
    places = np.concatenate([rng.uniform(low - 100, high + 100, (3000, 2)), graph.coords, graph.outlines.corners])
    inside = np.array([in_rings(places, [ring]) for _, ring in graph.outlines.rings()])
    np.testing.assert_array_equal(ZoneFinder(graph.outlines).find(places), np.where(inside.any(axis=0), inside.argmax(axis=0), -1))


def test_a_place_on_a_common_side_is_in_exactly_one_zone():
    graph = hg.datasets.zones(60, crs=None)
    begins, ends, _ = graph.outlines.sides()
    inner = graph.outlines.corners.mean(axis=0)
    places = begins + (ends - begins) * np.random.default_rng(0).random((len(begins), 1))
    places = places[np.linalg.norm(places - inner, axis=1) < 2000]
    finder = ZoneFinder(graph.outlines)
    inside = np.array([in_rings(places, [ring]) for _, ring in graph.outlines.rings()]).sum(axis=0)
    assert (inside <= 2).all()  # two only if rounding puts a corner of one side beyond another
    assert (finder.find(places) >= 0).all()


@given(st.lists(st.tuples(st.floats(-3000, 3000), st.floats(-3000, 3000)), min_size=1, max_size=30))
def test_the_zone_of_a_place_does_not_depend_on_other_places(places):
    finder = ZoneFinder(_TOWN)
    places = np.array(places)
    alone = np.concatenate([finder.find(places[[k]]) for k in range(len(places))])
    np.testing.assert_array_equal(finder.find(places), alone)


_TOWN = hg.datasets.zones(40, crs=None).outlines


def test_holes_are_outside_and_every_zone_contains_its_place():
    ring = np.array([[0, 0], [6, 0], [6, 6], [0, 6], [0, 4], [4, 4], [4, 2], [0, 2]], dtype=float)  # a bracket
    outlines = Outlines.of([[[ring]], [[3 * SQUARE + [10, 0], SQUARE + [11, 1]]]])
    places = inner_places(outlines)
    assert ZoneFinder(outlines).find(places).tolist() == [0, 1]
    assert ZoneFinder(outlines).find(np.array([[11.5, 1.5], [1.0, 3.0]])).tolist() == [-1, -1]


def test_outlines_follow_subgraphs_and_pickles_and_are_no_part_of_the_hash():
    graph = hg.datasets.zones(30)
    part = graph.subgraph([7, 2, 19])
    for k, node in enumerate([7, 2, 19]):
        (ring,) = [ring for owner, ring in part.outlines.rings() if owner == k]
        (same,) = [ring for owner, ring in graph.outlines.rings() if owner == node]
        np.testing.assert_array_equal(ring, same)
    again = pickle.loads(pickle.dumps(graph))
    np.testing.assert_array_equal(again.outlines.corners, graph.outlines.corners)
    assert not again.outlines.corners.flags.writeable
    bare = hg.Graph(graph.adjacency, labels=graph.labels)
    assert bare.hash == graph.hash
    assert "outlines" in repr(graph)
    assert "outlines" not in repr(bare)
    assert graph.subgraph(np.empty(0, dtype=int)).outlines.n_rings == 0


@pytest.mark.parametrize(
    "wrong",
    [
        Outlines(SQUARE, [0, 4], [1]),
        Outlines(SQUARE, [0, 2, 4], [0, 1]),
        Outlines(SQUARE, [0, 3], [0]),
        Outlines(np.full((3, 2), np.nan), [0, 3], [0]),
        Outlines(np.zeros(3), [0, 3], [0]),
    ],
)
def test_outlines_that_do_not_fit_the_nodes_are_refused(wrong):
    with pytest.raises(InputError, match="at least one for each of the 1 nodes"):
        hg.Graph.from_edges([], n=1, outlines=wrong)
    with pytest.raises(TypeError, match="from_polygons makes them"):
        hg.Graph.from_edges([], n=1, outlines=[SQUARE])


# ---- labels and coordinates ------------------------------------------------------------------------------------------


def test_labels_are_a_column_or_ids_and_whole_numbers_are_integers():
    zones = collection([feature([SQUARE + [k, 0]], LocationID=name, zone=f"Z{k}") for k, name in enumerate(["7", "12"])])
    assert planar(zones, label="LocationID").labels.tolist() == [7, 12]
    assert planar(zones, label="zone").labels.tolist() == ["Z0", "Z1"]
    assert planar(squares([0, 0], [1, 0], names=["007", "12"])).labels.tolist() == ["007", "12"]
    assert planar(squares([0, 0], [1, 0], names=[1.0, 2.0])).labels.tolist() == [1, 2]
    assert planar(squares([0, 0], [1, 0], names=[0, 1])).labels is None
    named = planar(squares([0, 0], [1, 0], names=[0, 1]), label="id")  # named, they are ids, and the graph is the same as before
    assert named.labels.tolist() == [0, 1]
    assert named.hash == planar(squares([0, 0], [1, 0], names=[0, 1])).hash


@pytest.mark.parametrize(
    ("ids", "columns", "labels"),
    [
        (None, {"LocationID": [7, 12, 9]}, [7, 12, 9]),
        (None, {"location_id": ["7", "12", "9"], "zone": ["a", "b", "c"]}, [7, 12, 9]),
        (None, {"ID": [7, 12, 9]}, [7, 12, 9]),
        (None, {"LocationID": [7, 12, 9], "zone_id": [1, 2, 3]}, None),  # which of the two?
        (None, {"zone_id": [7, 7, 9]}, None),  # groups of zones
        (None, {"zone_id": [7, None, 9]}, None),
        (None, {"number": [7, 12, 9]}, None),
        ([0, 1, 2], {"LocationID": [7, 12, 9]}, [7, 12, 9]),  # map programs number what they write
        (["0", "1", "2"], {"number": [7, 12, 9]}, None),
        ([1, 2, 3], {"LocationID": [7, 12, 9]}, [7, 12, 9]),
        ([1, 2, 3], {"number": [7, 12, 9]}, [1, 2, 3]),
        ([3, 1, 2], {"LocationID": [7, 12, 9]}, [3, 1, 2]),
    ],
)
def test_a_usual_column_of_ids_is_taken_and_row_numbers_are_no_ids(ids, columns, labels):
    features = [
        feature([SQUARE + [k, 0]], None if ids is None else ids[k], **{name: values[k] for name, values in columns.items()})
        for k in range(3)
    ]
    assert as_list(planar(collection(features)).labels) == labels


def test_the_index_of_a_frame_is_its_ids_unless_it_numbers_the_rows():
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    frame = geopandas.GeoDataFrame(
        {"LocationID": [4, 5, 6], "n": [0, 1, 2]}, geometry=[shapely.box(k, 0, k + 1, 1) for k in range(3)]
    )
    assert as_list(planar(frame).labels) == [4, 5, 6]
    assert as_list(planar(frame[frame.LocationID > 4]).labels) == [5, 6]  # the index is 1, 2
    assert as_list(planar(frame.set_index("n")).labels) == [0, 1, 2]
    assert as_list(planar(frame[["n", "geometry"]]).labels) is None
    assert as_list(planar(frame[["n", "geometry"]].set_index([[9, 8, 7]])).labels) == [9, 8, 7]
    many = geopandas.GeoDataFrame({"LocationID": [*range(1, 20), 19]}, geometry=[shapely.box(k, 0, k + 1, 1) for k in range(20)])
    assert planar(many).n == 19  # one zone of two rows


def test_geojson_is_in_degrees_unless_it_is_said_to_be_planar():
    zones = squares([0, 0], [1, 0])
    assert hg.Graph.from_polygons(zones).crs == "lonlat"
    assert planar(zones).crs is None
    with pytest.raises(InputError, match="crs='planar'"):
        hg.Graph.from_polygons(squares([0, 0], [583_000, 4_500_000]))
    feet = {**zones, "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::2263"}}}
    with pytest.raises(InputError, match=r"EPSG::2263.*convert it"):
        hg.Graph.from_polygons(feet)
    assert planar(feet).crs is None
    degrees = {**zones, "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}}
    assert hg.Graph.from_polygons(degrees).crs == "lonlat"


def test_a_frame_is_converted_to_degrees_unless_it_has_no_crs():
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    boxes = [shapely.box(k, 40, k + 1, 41) for k in range(3)]
    frame = geopandas.GeoDataFrame({"LocationID": [4, 5, 6]}, geometry=boxes, index=["a", "b", "c"])
    bare = hg.Graph.from_polygons(frame)
    assert (bare.crs, bare.labels.tolist(), bare.n_edges) == (None, ["a", "b", "c"], 2)
    assert hg.Graph.from_polygons(frame, crs="lonlat", label="LocationID").labels.tolist() == [4, 5, 6]
    degrees = frame.set_crs("EPSG:4326")
    metres = degrees.to_crs("EPSG:3857")
    for known in (degrees, metres):
        graph = hg.Graph.from_polygons(known)
        assert graph.crs == "lonlat"
        np.testing.assert_allclose(graph.coords, [[k + 0.5, 40.5] for k in range(3)], atol=1e-6)
    assert hg.Graph.from_polygons(metres, crs="planar").coords[2, 0] > 1e5


# ---- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zones", "message"),
    [
        (squares([0, 0], [0.5, 0.2]), "zones 10 and 11 overlap"),
        (squares([0, 0], [0, 0]), "zones 10 and 11 overlap"),
        (collection([feature([3 * SQUARE], "a"), feature([SQUARE + 1], "b")]), "zones 'a' and 'b' overlap"),
        (collection([feature([SQUARE * [3, 1]], "a"), feature([SQUARE * [1, 3] + [1, -1]], "b")]), "zones 'a' and 'b' overlap"),
        (collection([feature([SQUARE * [20, 1]], "a"), feature([SQUARE * [1, 20] + [15, -3]], "b")]), "zones 'a' and 'b' overlap"),
        (collection([feature([SQUARE, SQUARE / 2 + 5], "a")]), "'a' has a hole that reaches out of the ring around it"),
        (collection([feature([SQUARE, 3 * SQUARE - 1], "a")]), "'a' has a hole that reaches out of the ring around it"),
        (collection([feature([SQUARE, SQUARE], "a")]), "'a' has holes that leave nothing of it"),
        (collection([feature([[SQUARE, SQUARE + 5, SQUARE + 9]], "a")]), "no GeoJSON of polygons"),
        (squares([0, 0], [0.5, 0], names=["a", "a"]), "two polygons of zone 'a' overlap"),
        (collection([{**feature([SQUARE], "a"), "geometry": None}]), "zone 'a' has an empty geometry"),
        (collection([{**feature([SQUARE], "a"), "geometry": {"type": "Polygon", "coordinates": []}}]), "empty geometry"),
        (collection([{**feature([SQUARE], "a"), "geometry": {"type": "Point", "coordinates": [0, 0]}}]), "'a' is no Polygon"),
        (collection([feature([[[0, 0], [1, 1], [0, 0]]], "a")]), "'a' has a ring without area"),
        (collection([feature([[[0, 0], [1, 1], [2, 2]]], "a")]), "'a' has a ring without area"),
        (collection([feature([[[0, 0], [1, 1], [1, 0], [0, 1]]], "a")]), "figure of eight"),
        (collection([feature([[[0, 0], [1, float("nan")], [1, 0]]], "a")]), "finite numbers"),
        (collection([feature([SQUARE], "a"), feature([SQUARE + 5])]), "no value for some of the zones"),
        (collection([feature([SQUARE], [1, 2])]), "text or numbers"),
        (collection([]), "at least one polygon"),
        ({"type": "FeatureCollection"}, "no GeoJSON of polygons"),
        ({"type": "FeatureCollection", "features": [{"geometry": {"type": "Polygon", "coordinates": [["x"]]}}]}, "no GeoJSON"),
    ],
)  # fmt: skip
def test_zones_that_mean_nothing_are_refused(zones, message):
    with pytest.raises(InputError, match=message):
        planar(zones)


@pytest.mark.parametrize("hole", [(175, 178), (178, -178), (-178, -175)])
def test_holes_may_lie_at_the_antimeridian(hole):
    def box(west, east, south, north):
        return [[west, south], [east, south], [east, north], [west, north]]

    zones = collection([feature([box(170, -170, -10, 10), box(*hole, -5, 5)], "a")])
    assert hg.Graph.from_polygons(zones).n == 1


def test_a_hole_may_touch_its_ring_to_the_digits_of_a_file():
    rng = np.random.default_rng(0)
    for _ in range(50):
        ring = np.array([[0, 0], [1, 0], [0.5, 1]]) + rng.uniform(-0.2, 0.2, (3, 2))
        touching = ring[0] + rng.uniform(0.3, 0.7) * (ring[1] - ring[0])
        hole = [touching, ring.mean(axis=0), touching + 0.4 * (ring.mean(axis=0) - touching) + [0.02, 0]]
        planar(collection([feature([ring.round(6), np.round(hole, 6)], "a")]))


def test_places_do_not_depend_on_the_first_corner_of_a_ring():
    zones, turned = squares([0, 0], [1, 0]), squares([0, 0], [1, 0])
    for part in turned["features"]:
        (ring,) = part["geometry"]["coordinates"]
        part["geometry"]["coordinates"] = [[*ring[1:], ring[0]]]
    assert planar(zones).places_hash == planar(turned).places_hash
    assert planar(zones).places_hash != planar(squares([0, 0], [1, 0.25])).places_hash


def test_other_arguments_are_refused(tmp_path):
    with pytest.raises(TypeError, match="GeoDataFrame of polygons, GeoJSON"):
        hg.Graph.from_polygons([SQUARE])
    with pytest.raises(FileNotFoundError, match="do not exist"):
        hg.Graph.from_polygons(tmp_path / "no.geojson")
    with pytest.raises(InputError, match=r"no column 'zone'.*it has 'id'"):
        planar(squares([0, 0]), label="zone")
    with pytest.raises(TypeError, match="label"):
        planar(squares([0, 0]), label=3)
    with pytest.raises(InputError, match="tolerance"):
        planar(squares([0, 0]), tolerance=0)
    with pytest.raises(InputError, match="crs"):
        hg.Graph.from_polygons(squares([0, 0]), crs="EPSG:4326")


def test_frames_with_other_or_no_geometry_are_refused():
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    square = shapely.box(0, 0, 1, 1)
    for wrong, message in ((None, "empty"), (shapely.Polygon(), "empty"), (shapely.Point(0, 0), "no Polygon"), (square, "overlap")):
        frame = geopandas.GeoDataFrame(geometry=[square, wrong])
        with pytest.raises(InputError, match=message):
            hg.Graph.from_polygons(frame)


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crs", [None, "lonlat"])
@pytest.mark.parametrize("ending", ["geojson", "geojson.gz", "npz", "npz.gz"])
def test_zones_come_back_from_files(tmp_path, ending, crs):
    graph = hg.datasets.zones(30, crs=crs)
    again = hg.read_graph(hg.write_graph(tmp_path / f"zones.{ending}", graph))
    assert again.hash == graph.hash
    assert again.crs == graph.crs
    np.testing.assert_array_equal(again.outlines.corners, graph.outlines.corners)
    np.testing.assert_allclose(again.coords, graph.coords, rtol=1e-12)


def test_holes_and_parts_come_back_from_geojson(tmp_path):
    many = feature([SQUARE], "a")
    many["geometry"] = {
        "type": "MultiPolygon",
        "coordinates": [[(3 * SQUARE).tolist(), (SQUARE + 1).tolist()], [(SQUARE + 9).tolist()]],
    }
    graph = planar(collection([many, feature([SQUARE + 1], "b")]))
    again = hg.read_graph(hg.write_graph(tmp_path / "a.geojson", graph))
    np.testing.assert_array_equal(again.outlines.corners, graph.outlines.corners)
    np.testing.assert_array_equal(again.outlines.starts, graph.outlines.starts)
    assert edges(again) == {("a", "b")}


@pytest.mark.parametrize("ending", ["gpkg", "shp"])
def test_geopackage_and_shapefile_are_read_by_geopandas(tmp_path, ending):
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    frame = geopandas.GeoDataFrame(
        {"LocationID": [4, 5]}, geometry=[shapely.box(k, 0, k + 1, 1) for k in range(2)], crs="EPSG:4326"
    )
    frame.to_file(tmp_path / f"zones.{ending}")
    graph = hg.read_graph(tmp_path / f"zones.{ending}", label="LocationID")
    assert (graph.labels.tolist(), graph.crs, graph.n_edges) == ([4, 5], "lonlat", 1)
    (tmp_path / f"broken.{ending}").write_bytes(b"no polygons")
    with pytest.raises(InputError, match="cannot be read"):
        hg.read_graph(tmp_path / f"broken.{ending}")


def test_read_graph_refuses_options_that_zones_or_edges_do_not_have(tmp_path):
    path = tmp_path / "zones.json"
    path.write_text(json.dumps(squares([0, 0], [1, 0])))
    assert hg.read_graph(path, format="geojson", crs="planar").crs is None
    for options in ({"weight": "length"}, {"distance": "length"}):
        with pytest.raises(InputError, match="common borders"):
            hg.read_graph(path, format="geojson", **options)
    streets = hg.write_graph(tmp_path / "streets.csv", hg.datasets.path(3))
    for options in ({"label": "name"}, {"tolerance": 0.1}):
        with pytest.raises(InputError, match="unless for zones"):
            hg.read_graph(streets, **options)
    with pytest.raises(InputError, match="keeps the outlines of zones, and this graph has none"):
        hg.write_graph(tmp_path / "a.geojson", hg.datasets.path(3))
    (tmp_path / "a.geojson").write_text('{"type": "FeatureColl')
    with pytest.raises(InputError, match="no GeoJSON of polygons"):
        hg.read_graph(tmp_path / "a.geojson")


@given(st.data())
def test_damaged_geojson_is_refused_with_a_sentence(data):
    """One value anywhere in the object is replaced by another: it is read, or it is an error of ours."""
    zones = json.loads(json.dumps({**squares([0, 0], [1, 0]), "crs": {"type": "name", "properties": {"name": "EPSG:4326"}}}))
    inner = zones
    while True:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(inner[key], dict | list) or not inner[key] or data.draw(st.integers(0, 4)) == 0:
            break
        inner = inner[key]
    inner[key] = data.draw(st.sampled_from([None, [], {}, "x", 7, 1e300, 10**400, float("nan"), [[]], [1, 2], [[0, 0]], True]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # no common border
            hg.Graph.from_polygons(zones)
    except (InputError, InputTypeError):
        pass
