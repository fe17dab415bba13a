"""hushgraph export, and the layers and pictures of hushgraph denoise."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.files import write_graph, write_signal

from .commands import answer, good, run

geopandas = pytest.importorskip("geopandas")


def on_one_line(text):
    return " ".join(text.split())


def table_of(path):
    return np.genfromtxt(path, delimiter=",", names=True)


@pytest.mark.parametrize("ending", ["geojson", "gpkg"])
def test_the_folder_of_a_release_becomes_a_layer(months, tmp_path, ending):
    folder, graph = months
    said = good("export", folder / "streets.npz", folder / "jan", "-o", tmp_path / f"jan.{ending}").stdout
    assert f"{graph.n} rows of {graph.n} nodes as points" in said
    layer, table = geopandas.read_file(tmp_path / f"jan.{ending}"), table_of(folder / "jan" / "map.csv")
    for name in ("node", "noisy", "denoised", "expected_error", "lower", "upper"):
        np.testing.assert_array_equal(layer[name], table[name])
    np.testing.assert_array_equal(layer.geometry.get_coordinates(), graph.coords)


def test_windows_and_series_have_a_row_for_each_map(months, tmp_path):
    folder, graph = months
    good("export", folder / "streets.npz", folder / "day", "-o", tmp_path / "day.geojson")
    day = geopandas.read_file(tmp_path / "day.geojson")
    assert day["from"].tolist() == [0, 8, 16] * graph.n
    np.testing.assert_array_equal(day["noisy"], table_of(folder / "day" / "map.csv")["noisy"])
    good("series", folder / "streets.npz", folder / "jan", folder / "feb", "--method", "let", "-o", tmp_path / "both")
    found = answer("export", folder / "streets.npz", tmp_path / "both", "-o", tmp_path / "both.parquet")
    assert found["rows"] == 2 * graph.n
    pandas = pytest.importorskip("pandas")
    both = pandas.read_parquet(tmp_path / "both.parquet")
    for name, part in both.groupby("release"):
        np.testing.assert_array_equal(part["denoised"], table_of(tmp_path / "both" / f"{name}.csv")["denoised"])
        np.testing.assert_array_equal(part[["x", "y"]], graph.coords)


@pytest.mark.parametrize(
    "damage", [lambda lines: [lines[0], *sorted(lines[1:], reverse=True)], lambda lines: lines[:-1], lambda lines: []]
)
def test_tables_of_a_series_with_other_rows_are_refused(months, tmp_path, damage):
    """A table that was sorted in a spreadsheet, cut off, or emptied."""
    folder, _ = months
    good("series", folder / "streets.npz", folder / "jan", folder / "feb", "--method", "let", "-o", tmp_path / "both")
    path = tmp_path / "both" / "jan.csv"
    path.write_text("".join(damage(path.read_text().splitlines(keepends=True))))
    failed = run("export", folder / "streets.npz", tmp_path / "both", "-o", tmp_path / "both.geojson")
    assert failed.exit_code == 2
    assert "a part is missing or damaged" in on_one_line(failed.stderr)


def test_zones_are_polygons_and_tables_of_denoise_are_layers(tmp_path):
    graph = hg.datasets.zones(30)
    write_graph(tmp_path / "zones.geojson", graph)
    write_signal(tmp_path / "noisy.csv", graph, np.random.default_rng(0).normal(5, 1, graph.n))
    words = ("denoise", tmp_path / "zones.geojson", tmp_path / "noisy.csv", "--sigma", 1, "--nonnegative")
    good(*words, "--interval", 0.9, "-o", tmp_path / "clean.csv")
    good(*words, "-o", tmp_path / "clean.gpkg")
    good("export", tmp_path / "zones.geojson", tmp_path / "clean.csv", "-o", tmp_path / "again.gpkg")
    first, again = geopandas.read_file(tmp_path / "clean.gpkg"), geopandas.read_file(tmp_path / "again.gpkg")
    assert first.columns.tolist() == ["node", "noisy", "denoised", "expected_error", "lower", "upper", "geometry"]
    for layer in (first, again):
        assert layer.crs == "EPSG:4326"
        np.testing.assert_allclose([shape.area for shape in layer.geometry], graph.outlines.areas())
        for name in ("denoised", "expected_error", "lower", "upper"):
            np.testing.assert_array_equal(layer[name], table_of(tmp_path / "clean.csv")[name])


def test_several_columns_of_a_layer_are_named_after_the_signals(months, tmp_path):
    folder, _ = months
    words = ("denoise", folder / "streets.npz", folder / "mean.csv", "--sigma", 1, "--method", "sgwt_sure")
    good(*words, "-o", tmp_path / "a.geojson", "--picture", tmp_path / "a.svg")
    assert {"mean_noisy", "mean", "mean_expected_error", "nothing_upper"} <= set(geopandas.read_file(tmp_path / "a.geojson"))
    assert "<svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("source", ["jan", "day", "noisy.csv"])
def test_pictures(months, tmp_path, source):
    pytest.importorskip("matplotlib")
    folder, _ = months
    good("export", folder / "streets.npz", folder / source, "-o", tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["map.png"]


def test_pictures_say_what_they_show(months, tmp_path, monkeypatch):
    monkeypatch.setitem(pytest.importorskip("matplotlib").rcParams, "svg.fonttype", "none")  # text stays text
    folder, _ = months
    texts = ("--title", "Pickups in spring", "--quantity", "pickups", "--value-unit", "per hour")
    good("export", folder / "streets.npz", folder / "jan", "-o", tmp_path / "a.svg", *texts)
    words = ("denoise", folder / "streets.npz", folder / "noisy.csv", "--sigma", 1, "--method", "let", "-o", tmp_path / "a.csv")
    good(*words, "--picture", tmp_path / "b.svg", *texts)
    for name in ("a.svg", "b.svg"):
        drawn = (tmp_path / name).read_text(encoding="utf-8")
        assert "Pickups in spring" in drawn
        assert "pickups (per hour)" in drawn


def test_the_graph_comes_first(months, tmp_path):
    folder, _ = months
    streets, jan, feb = (folder / name for name in ("streets.npz", "jan", "feb"))
    assert f"export {streets} {jan}" in on_one_line(run("export", jan, streets, "-o", tmp_path / "a.png").stderr)
    for order in ((jan, streets), (jan, feb, streets), (jan, streets, feb)):
        expected = " ".join(str(path) for path in (streets, *(path for path in order if path != streets)))
        assert f"series {expected}" in on_one_line(run("series", *order, "-o", tmp_path / "out").stderr)


def test_a_graph_that_was_read_with_other_labels_is_explained(months, tmp_path):
    folder, graph = months
    write_graph(tmp_path / "streets.npz", hg.Graph(graph.adjacency, labels=np.arange(9, 9 + graph.n), coords=graph.coords))
    failed = run("export", tmp_path / "streets.npz", folder / "jan", "-o", tmp_path / "a.geojson")
    assert "read it with the same options" in on_one_line(failed.stderr)
    assert "publisher" not in failed.stderr


def test_outputs_that_cannot_be_written_are_refused_before_the_work(months, tmp_path):
    folder, graph = months
    streets, jan = folder / "streets.npz", folder / "jan"
    for output, words in (("a.csv", "must end in .geojson"), ("a.gpkg.gz", "must end in"), ("-", "must end in")):
        failed = run("export", streets, jan, "-o", tmp_path / output)
        assert failed.exit_code == 2
        assert words in failed.stderr
    assert (
        "must end in .png, .svg, .pdf"
        in run("denoise", streets, jan, "-o", tmp_path / "a.csv", "--picture", tmp_path / "a.jpg").stderr
    )
    failed = run("export", streets, tmp_path, "-o", tmp_path / "a.png")
    assert "is not the folder of a release" in failed.stderr
    write_graph(tmp_path / "bare.npz", hg.Graph(graph.adjacency))
    failed = run("denoise", tmp_path / "bare.npz", folder / "noisy.csv", "-o", tmp_path / "a.geojson")
    assert "has no coordinates" in failed.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bare.npz"]
    good("export", streets, jan, "-o", tmp_path / "a.geojson")
    assert "say --force" in run("export", streets, jan, "-o", tmp_path / "a.geojson").stderr
