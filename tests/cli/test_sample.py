"""`hushgraph sample`: files that the other commands and other packages read."""

import csv
import hashlib
import shlex

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.datasets import SAMPLE_FILES, SAMPLE_SIGMA, draw_sample, write_sample

from .commands import answer, good, run

SMALL = ("--nodes", 200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of a small city."""
    folder = tmp_path_factory.mktemp("sample") / "new" / "folder"
    good("sample", folder, *SMALL)
    return folder


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_the_files_hold_what_was_drawn(folder):
    """What a user reads is what the demo uses in memory, to the last bit."""
    sample = draw_sample(200, seed=0)
    graph = hg.read_graph(folder / "streets.graphml")
    assert graph.hash == sample.graph.hash
    assert graph.crs == "lonlat"
    np.testing.assert_array_equal(graph.coords, sample.graph.coords)
    np.testing.assert_array_equal(hg.read_signal(folder / "values.csv", graph), sample.values)
    with (folder / "trips.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["person", "lon", "lat", "time"]
    person, lon, _, time = zip(*rows, strict=True)
    assert list(person) == sample.trips["person"].tolist()
    assert list(map(float, lon)) == sample.trips["lon"].tolist()
    assert (np.array(time, dtype="datetime64[s]") == sample.trips["time"]).all()


def test_the_same_seed_gives_the_same_files(folder, tmp_path):
    good("sample", tmp_path / "a", *SMALL)
    good("sample", tmp_path / "b", *SMALL, "--seed", 1)
    assert digests(tmp_path / "a") == digests(folder)
    assert set(digests(tmp_path / "b").values()).isdisjoint(digests(folder).values())
    assert set(digests(folder)) == set(SAMPLE_FILES)


def test_the_noise_is_what_the_command_says(folder):
    graph = hg.read_graph(folder / "streets.graphml")
    noise = hg.read_signal(folder / "values.csv", graph) - hg.hotspot_counts(graph, total=10 * graph.n)
    assert noise.std() == pytest.approx(SAMPLE_SIGMA, rel=0.15)


def test_osmnx_and_networkx_read_the_streets(folder):
    networkx, osmnx = pytest.importorskip("networkx"), pytest.importorskip("osmnx")
    graph, path = hg.read_graph(folder / "streets.graphml"), folder / "streets.graphml"
    streets = osmnx.load_graphml(path)
    assert streets.graph["crs"] == "EPSG:4326"
    assert list(streets) == graph.labels.tolist()
    nodes, _ = osmnx.graph_to_gdfs(streets)
    np.testing.assert_array_equal(nodes[["x", "y"]], graph.coords)
    assert networkx.read_graphml(path).number_of_edges() == 2 * graph.n_edges
    assert hg.Graph.from_networkx(streets).hash == graph.hash


def test_it_says_what_to_do_next_and_that_works(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = dict(line.split(": ", 1) for line in good("sample", "my town", *SMALL).stdout.splitlines())
    assert list(said) == [*(f"my town/{name}" for name in SAMPLE_FILES), "Try", "Or"]
    for command in (said["Try"], said["Or"]):
        name, *words = shlex.split(command)
        assert name == "hushgraph"
        good(*words)
    assert (tmp_path / "denoised.csv").exists()


def test_json(folder):
    found = answer("sample", folder, *SMALL, "--force")
    assert list(found) == ["command", "streets", "trips", "values", "nodes", "edges", "rows", "sigma", "notes"]
    assert found["streets"] == str(folder / "streets.graphml")
    assert found["sigma"] == SAMPLE_SIGMA


@pytest.mark.parametrize("name", SAMPLE_FILES)
def test_existing_files_are_refused_without_force(tmp_path, name):
    (tmp_path / name).write_text("mine")
    done = run("sample", tmp_path, *SMALL)
    assert done.exit_code == 2
    assert f"must not have {name} already" in done.stderr
    assert "--force" in done.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: "mine"}
    good("sample", tmp_path, *SMALL, "--force", "--quiet")
    assert set(digests(tmp_path)) == set(SAMPLE_FILES)
    assert (tmp_path / name).read_text() != "mine"


def test_a_file_that_comes_during_the_work_stays(tmp_path):
    (tmp_path / "trips.csv").write_text("mine")
    with pytest.raises(FileExistsError):
        write_sample(tmp_path, draw_sample(100, seed=0))
    assert (tmp_path / "trips.csv").read_text() == "mine"


def test_places_that_cannot_be_used_are_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder" / "trips.csv").mkdir(parents=True)
    assert run("sample", tmp_path / "file", *SMALL).exit_code == 2
    assert run("sample", tmp_path / "folder", *SMALL, "--force").exit_code == 2
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["trips.csv"]
    assert run("sample", tmp_path / "new", "--nodes", 5).exit_code == 2


def test_nothing_is_left_if_the_disk_is_full(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hushgraph.datasets.sample_files.write_signal", full)
    done = run("sample", tmp_path, *SMALL)
    assert done.exit_code == 2
    assert not list(tmp_path.iterdir())


def test_the_report_of_the_sample_names_streets_and_says_what_was_counted(folder, tmp_path):
    """Title, quantity, unit and outlines of a command arrive on the page; a file of outlines that is not there is noticed at once."""
    water = tmp_path / "water.geojson"
    water.write_text('{"type": "Polygon", "coordinates": [[[-40, 45], [-39.9, 45], [-39.9, 45.03], [-40, 45]]]}')
    named = ("--title", "Trips at noon", "--quantity", "trips", "--value-unit", "trips per hour", "--outlines", water)
    files = (folder / "streets.graphml", folder / "values.csv", "--sigma", 5.3)
    good("denoise", *files, "-o", tmp_path / "d.csv", "--report", tmp_path / "r.html", *named)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<h1>Trips at noon</h1>" in page
    assert "trips (trips per hour) at each node" in page
    assert '"names":{"texts":' in page
    assert '"backdrop":{"x":' in page
    lost = run(
        "denoise", *files, "-o", tmp_path / "e.csv", "--report", tmp_path / "e.html", "--outlines", tmp_path / "none.geojson"
    )
    assert lost.exit_code == 2
    assert "none.geojson" in lost.output
    assert not (tmp_path / "e.csv").exists()
