"""Layers of a map: other programs find the same values, shapes and coordinate systems in them."""

import json

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.files import read_graph, write_features, write_signal

geopandas = pytest.importorskip("geopandas")


def streets(crs):
    return hg.Graph.from_edges(
        [(0, 1), (1, 2)], labels=["elm", "=oak", "ash"], coords=[(7.1, 47.0), (7.2, 47.1), (7.3, 47.0)], crs=crs
    )


def districts(crs="lonlat"):
    return hg.datasets.zones(12, crs=crs)


@pytest.mark.parametrize("ending", ["geojson", "gpkg"])
def test_streets_are_points_in_degrees(tmp_path, ending):
    graph = streets("lonlat")
    path = write_signal(tmp_path / f"map.{ending}", graph, {"noisy": [1.5, np.nan, -3.25], "denoised": [1, 2, 3]})
    layer = geopandas.read_file(path)
    assert layer.crs == "EPSG:4326"
    assert layer["node"].tolist() == ["elm", "=oak", "ash"]
    np.testing.assert_array_equal(layer["noisy"].astype(float), [1.5, np.nan, -3.25])
    np.testing.assert_array_equal(layer.geometry.get_coordinates(), graph.coords)
    assert (layer.geom_type == "Point").all()


@pytest.mark.parametrize("ending", ["geojson", "gpkg"])
def test_a_plane_is_nowhere_on_earth(tmp_path, ending):
    layer = geopandas.read_file(write_signal(tmp_path / f"map.{ending}", streets(None), [1, 2, 3]))
    assert layer.crs is None or (layer.crs.to_epsg() is None and layer.crs.name == "planar")


@pytest.mark.parametrize("crs", ["lonlat", None])
@pytest.mark.parametrize("ending", ["geojson", "gpkg"])
def test_zones_are_polygons(tmp_path, ending, crs):
    graph = districts(crs)
    path = write_signal(tmp_path / f"map.{ending}", graph, {"denoised": np.arange(graph.n) / 4})
    layer = geopandas.read_file(path)
    assert (layer.crs == "EPSG:4326") == (crs == "lonlat")
    np.testing.assert_allclose([shape.area for shape in layer.geometry], graph.outlines.areas(), rtol=1e-9)
    assert layer["denoised"].tolist() == (np.arange(graph.n) / 4).tolist()
    if ending == "geojson":
        assert read_graph(path).hash == graph.hash  # a layer of zones is a graph again


def test_several_rows_of_a_node(tmp_path):
    columns = {"from": ["8:00", "9:00"] * 3, "noisy": np.arange(6.0)}
    path = write_features(tmp_path / "map.geojson", streets("lonlat"), columns, nodes=np.repeat(np.arange(3), 2))
    layer = geopandas.read_file(path)
    assert layer["node"].tolist() == ["elm", "elm", "=oak", "=oak", "ash", "ash"]
    assert layer["from"].tolist() == ["8:00", "9:00"] * 3
    assert "id" not in json.loads(path.read_text())["features"][0]


def test_places_are_needed_and_packed_layers_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="this graph has no coordinates; write"):
        write_signal(tmp_path / "map.geojson", hg.Graph.from_edges([(0, 1)]), [1, 2])
    with pytest.raises(ValueError, match=r"leave \.gz out"):
        write_signal(tmp_path / "map.gpkg.gz", streets(None), [1, 2, 3])
    assert not list(tmp_path.iterdir())


def test_a_result_is_a_table_of_shapes():
    graph = districts()
    noisy = np.random.default_rng(0).normal(5, 1, graph.n)
    result = hg.denoise(graph, noisy, sigma=1, nonnegative=True)
    table = result.to_geopandas()
    assert table.columns.tolist() == ["node", "noisy", "denoised", "expected_error", "lower", "upper", "geometry"]
    assert table.crs == "EPSG:4326"
    np.testing.assert_allclose([shape.area for shape in table.geometry], graph.outlines.areas())
    np.testing.assert_array_equal(table["noisy"], noisy)
    np.testing.assert_array_equal(table["denoised"], result.signal)
    np.testing.assert_array_equal(table["upper"], result.interval()[1])


def test_several_signals_and_labels_in_any_order():
    pandas = pytest.importorskip("pandas")
    graph = streets(None)
    given = pandas.DataFrame({"am": [1.0, 2.0, 4.0], "pm": [2.0, 4.0, 8.0]}, index=["ash", "elm", "=oak"])
    table = hg.denoise(graph, given, sigma=0.1).to_geopandas()
    assert table["node"].tolist() == ["elm", "=oak", "ash"]
    assert table["am_noisy"].tolist() == [2.0, 4.0, 1.0]
    assert [name for name in table if name.startswith("pm")] == [
        f"pm_{end}" for end in ("noisy", "denoised", "expected_error", "lower", "upper")
    ]
    assert table.crs is None
