"""Street lines in .geojson, .gpkg and .shp files, and the crs that files state."""

import json

import numpy as np
import pytest

import hushgraph as hg

geopandas = pytest.importorskip("geopandas")
shapely = pytest.importorskip("shapely")

LINES = [[(4.0, 50.0), (4.05, 50.02), (4.1, 50.0)], [(4.1, 50.0), (4.1, 50.1)], [(4.1, 50.1), (4.0, 50.0)]]


@pytest.fixture
def lines():
    shapes = [shapely.LineString(line) for line in LINES]
    return geopandas.GeoDataFrame({"length": [7.0, 11.0, 15.0]}, geometry=shapes, crs="EPSG:4326")


@pytest.mark.parametrize("ending", ["gpkg", "geojson", "shp"])
def test_lines_are_streets_that_meet_at_their_ends(lines, tmp_path, ending):
    path = tmp_path / f"streets.{ending}"
    lines.to_file(path)
    graph = hg.read_graph(path)
    assert (graph.n, graph.n_edges, graph.crs, graph.is_unweighted) == (3, 3, "lonlat", True)
    assert graph.coords.tolist() == [[4.0, 50.0], [4.1, 50.0], [4.1, 50.1]]
    assert hg.read_graph(path, distance="length").adjacency[0, 1] == pytest.approx(11 / 7)


@pytest.mark.parametrize("ending", ["gpkg", "shp"])
def test_lines_in_another_crs_become_degrees_unless_a_plane_is_asked_for(lines, tmp_path, ending):
    path = tmp_path / f"streets.{ending}"
    lines.to_crs("EPSG:32631").to_file(path)
    graph = hg.read_graph(path)
    assert graph.crs == "lonlat"
    assert np.abs(graph.coords - [[4.0, 50.0], [4.1, 50.0], [4.1, 50.1]]).max() < 1e-6
    plane = hg.read_graph(path, crs="planar")
    assert plane.crs is None
    assert plane.coords.min() > 1e5


def test_lines_in_several_parts_are_taken_apart(lines, tmp_path):
    parts = geopandas.GeoDataFrame(geometry=[shapely.MultiLineString(LINES)], crs="EPSG:4326")
    parts.to_file(tmp_path / "a.gpkg")
    assert hg.read_graph(tmp_path / "a.gpkg").n_edges == 3


def osmnx_layers(path, crs):
    """Write what osmnx.save_graph_geopackage writes: layers nodes (osmid, x, y) and edges (u, v, key)."""
    points = geopandas.GeoDataFrame(
        {"osmid": [30, 10, 20, 99]}, geometry=geopandas.points_from_xy([4.0, 4.1, 4.1, 4.2], [50.0, 50.0, 50.1, 50.2]), crs="EPSG:4326"
    ).to_crs(crs)  # fmt: skip
    shapes = [shapely.LineString(line) for line in LINES]
    edges = geopandas.GeoDataFrame({"u": [30, 10, 20], "v": [10, 20, 30], "key": 0}, geometry=shapes, crs="EPSG:4326").to_crs(crs)
    points.to_file(path, layer="nodes", driver="GPKG")
    edges.to_file(path, layer="edges", driver="GPKG", mode="a")
    return path


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:32631"])
def test_the_geopackage_of_osmnx_has_its_own_nodes(tmp_path, crs):
    graph = hg.read_graph(osmnx_layers(tmp_path / "city.gpkg", crs))
    assert (graph.labels.tolist(), graph.crs, graph.n_edges) == ([30, 10, 20, 99], "lonlat", 3)
    assert graph.coords[3] == pytest.approx([4.2, 50.2])
    assert graph.degrees[3] == 0


def feature(kind, coordinates):
    return {"type": "Feature", "properties": {}, "geometry": {"type": kind, "coordinates": coordinates}}


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([feature("LineString", LINES[0]), feature("Polygon", [[[0, 0], [1, 0], [1, 1], [0, 0]]])], "lines or polygons, not both"),
        ([feature("Point", [4, 50])], "must hold lines .streets. or polygons .zones.; it holds Point"),
        (
            [feature("LineString", LINES[0]), {"type": "Feature", "properties": {}, "geometry": None}],
            "1 lines of .* have no geometry .first: row 1",
        ),
    ],
)
def test_mixed_and_other_shapes_are_refused(tmp_path, features, message):
    path = tmp_path / "a.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    with pytest.raises(ValueError, match=message):
        hg.read_graph(path)


def test_options_of_zones_are_not_for_streets(lines, tmp_path):
    lines.to_file(tmp_path / "a.gpkg")
    for wrong in ({"label": "length"}, {"tolerance": 0.1}):
        with pytest.raises(ValueError, match="left out for streets"):
            hg.read_graph(tmp_path / "a.gpkg", **wrong)
    with pytest.raises(ValueError, match=r"no edge column 'lenght'; it has 'length', 'geometry'; is it 'length'\?"):
        hg.read_graph(tmp_path / "a.gpkg", distance="lenght")


def test_a_file_of_many_layers_or_of_points_is_refused(lines, tmp_path):
    for layer in ("roads", "paths"):
        lines.to_file(tmp_path / "a.gpkg", layer=layer)
    with pytest.raises(ValueError, match=r"must have one layer .*'roads', 'paths'"):
        hg.read_graph(tmp_path / "a.gpkg")
    points = geopandas.GeoDataFrame(geometry=[shapely.Point(4, 50)], crs="EPSG:4326")
    points.to_file(tmp_path / "b.gpkg")
    with pytest.raises(ValueError, match="it holds Point"):
        hg.read_graph(tmp_path / "b.gpkg")
    (tmp_path / "c.gpkg").write_bytes(b"SQLite format 3\0 and nothing else")
    with pytest.raises(ValueError, match="damaged or no file of lines"):
        hg.read_graph(tmp_path / "c.gpkg")


# ---- GraphML --------------------------------------------------------------------------------------------------------------


def graphml(path, crs, *, with_degrees, copies=1):
    """Write what osmnx.save_graphml writes of a projected graph; many nodes make a file that is read megabytes at a time."""
    pyproj = pytest.importorskip("pyproj")
    lon, lat = 4 + 0.01 * np.arange(3 * copies), 50 + 0.005 * np.arange(3 * copies)
    x, y = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:32631", always_xy=True).transform(lon, lat)
    keys = {"x": x, "y": y, **({"lon": lon, "lat": lat} if with_degrees else {})}
    head = "".join(f'<key id="{name}" for="node" attr.name="{name}" attr.type="string"/>' for name in keys)
    nodes = (
        "".join(
            f'<node id="{10 + i}">'
            + "".join(f'<data key="{name}">{values[i]!r}</data>' for name, values in keys.items())
            + "</node>"
            for i in range(len(lon))
        )
        .replace("np.float64(", "")
        .replace(")</data>", "</data>")
    )
    edges = "".join(f'<edge source="{10 + i}" target="{11 + i}"/>' for i in range(len(lon) - 1))
    path.write_text(
        f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="g" for="graph" attr.name="crs" attr.type="string"/>{head}'
        f'<graph edgedefault="directed"><data key="g">{crs}</data>{nodes}{edges}</graph></graphml>'
    )
    return path, np.stack([lon, lat], axis=1), np.stack([x, y], axis=1)


@pytest.mark.parametrize("copies", [1, 100])
@pytest.mark.parametrize("with_degrees", [True, False])
def test_a_projected_graphml_is_in_degrees(tmp_path, copies, with_degrees):
    path, degrees, plane = graphml(tmp_path / "a.graphml", "EPSG:32631", with_degrees=with_degrees, copies=copies)
    graph = hg.read_graph(path)
    assert graph.crs == "lonlat"
    assert np.abs(graph.coords - degrees).max() < (1e-12 if with_degrees else 1e-7)
    as_plane = hg.read_graph(path, crs="planar")
    assert as_plane.crs is None
    assert as_plane.coords.tolist() == plane.tolist()


def test_without_pyproj_the_error_gives_advice_that_works(tmp_path, monkeypatch):
    path, _, plane = graphml(tmp_path / "a.graphml", "EPSG:32631", with_degrees=False)
    monkeypatch.setattr("hushgraph.graphs.projections.optional", lambda module: None)
    with pytest.raises(ImportError, match=r"needs pyproj: pip install 'hushgraph\[events\]'; or .*--graph-crs planar"):
        hg.read_graph(path)
    assert hg.read_graph(path, crs="planar").coords.tolist() == plane.tolist()


def test_an_unknown_crs_is_an_error(tmp_path):
    path, _, _ = graphml(tmp_path / "a.graphml", "EPSG:999999", with_degrees=False)
    with pytest.raises(ValueError, match=r"states the crs 'EPSG:999999', which pyproj does not know"):
        hg.read_graph(path)
