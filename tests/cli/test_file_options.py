"""Files as people have them, on the command line: two tables as a graph, zones, European CSV files, files in the wrong order."""

import json

import numpy as np
import pytest

import hushgraph as hg

from .commands import answer, good, run

BOUNDS = ("--unit", "person", "--max-nodes", 2, "--max-per-node", 1)


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    """A city as edges.csv and nodes.csv, as GraphML, and a European file of trips."""
    folder = tmp_path_factory.mktemp("city")
    graph = hg.datasets.city(150)
    hg.write_graph(folder / "streets.graphml", graph)
    upper = np.argwhere(np.triu(graph.adjacency.toarray()))
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"{i},{j}\n" for i, j in upper.tolist()))
    places = graph.coords.tolist()
    (folder / "nodes.csv").write_text("node,x,y\n" + "".join(f"{i},{x!r},{y!r}\n" for i, (x, y) in enumerate(places)))
    trips = hg.datasets.trips(graph, n_people=200)
    rows = zip(trips["person"], trips["x"], trips["y"], strict=True)
    lines = [f"{person};{str(x).replace('.', ',')};{str(y).replace('.', ',')};31/1/2026 7:05" for person, x, y in rows]
    (folder / "trips.csv").write_text("\n".join(["person;x;y;time", *lines]) + "\n")
    hg.write_signal(folder / "values.csv", graph, np.ones(graph.n))
    return folder, graph


def test_a_graph_may_be_two_tables(city):
    folder, graph = city
    facts = answer("info", folder / "edges.csv", "--nodes", folder / "nodes.csv")
    assert (facts["nodes"], facts["names"], facts["bends"]) == (graph.n, False, False)
    assert hg.read_graph(folder / "edges.csv", nodes=folder / "nodes.csv").hash == hg.read_graph(folder / "streets.graphml").hash
    assert "--nodes" in good("info", "--help").stdout


def zones_file(path, column):
    """Write a row of four zones with the ids 1 to 4 in that column."""
    corners = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
    features = [
        {"type": "Feature", "properties": {column: k + 1, "zone": f"Z{k}"},
         "geometry": {"type": "Polygon", "coordinates": [[[x + k, y] for x, y in corners]]}}
        for k in range(4)
    ]  # fmt: skip
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def test_zones_without_ids_are_not_released_by_id(tmp_path):
    found, unknown = (zones_file(tmp_path / f"{name}.geojson", name) for name in ("LocationID", "number"))
    trips, ledger = tmp_path / "trips.csv", tmp_path / "budget.db"
    trips.write_text("person,PULocationID\na,1\nb,2\n")
    good("budget", "create", ledger, "--dataset", "trips", "--unit", "person", "--epsilon", 2)
    spending = ("--max-nodes", 1, "--max-per-node", 1, "--epsilon", 1, "--ledger", ledger, "--public-graph", "-o", tmp_path / "out")
    refused = run("release", unknown, trips, *spending)
    assert refused.exit_code == 2
    assert "--zone-label); their table has 'number', 'zone'" in " ".join(refused.stderr.split())
    assert answer("budget", "show", ledger)["spent"] == 0
    assert "--zone-label" in run("check", unknown, trips, *BOUNDS).stderr
    assert answer("check", found, trips, *BOUNDS)["counted"] == 2
    assert "of the column LocationID" in good("info", found).stdout
    assert "--zone-label" in good("info", unknown).stdout
    good("release", found, trips, *spending)


@pytest.mark.parametrize("order", [("streets.graphml",), ("edges.csv", "--nodes", "nodes.csv")])
def test_a_european_file_of_trips_is_checked(city, order):
    folder, _ = city
    graph_file, *nodes = [folder / word if not word.startswith("--") else word for word in order]
    form = ("--delimiter", ";", "--decimal", ",", "--time-format", "%d/%m/%Y %H:%M", "--encoding", "cp1252")
    windows = ("--windows", "2026-01-31T00:00/2026-02-01T00:00/12h", "--unit", "person", "--max-cells", 2, "--max-per-cell", 1)
    found = answer("check", graph_file, folder / "trips.csv", *nodes, *form, *windows)
    assert (found["without_place"], found["without_time"], found["outside_windows"]) == (0, 0, 0)
    assert found["counted"] > 100
    said = run("check", graph_file, folder / "trips.csv", *nodes, *BOUNDS).stderr
    assert "declare it: --delimiter" in " ".join(said.split())


def test_the_check_shows_its_owner_the_columns_and_errors_do_not(city, tmp_path):
    folder, _ = city
    files = folder / "streets.graphml", tmp_path / "trips.csv"
    files[1].write_bytes("person,latitude início,longitude início\na,1,2\n".encode("cp1252"))
    places = ("--y", "latitude início", "--x", "longitude início", "--crs", "planar")
    shown = run("check", *files, *BOUNDS, *places)
    assert "--encoding cp1252" in " ".join(shown.stderr.split())
    assert "longitude" in shown.stdout
    assert "person" not in shown.stderr
    shown = run("check", *files, *BOUNDS, "--y", "latitude inicio", *places[2:], "--encoding", "cp1252")
    assert "it has 'person', 'latitude início', 'longitude início'; is it 'latitude início'?" in " ".join(shown.stdout.split())
    assert "--encoding" not in shown.stderr
    assert "person" not in run("check", *files, *BOUNDS, *places, "--json").stdout
    assert "person" not in run("check", *files, *BOUNDS[:4], *places, "--encoding", "cp1252").stdout, "no column is missing"


@pytest.mark.parametrize(
    ("options", "message"),
    [(("--delimiter", "xx"), "delimiter must be one ASCII character"), (("--encoding", "utf-16"), "one byte per character"), (("--time-format", "%Q"), "known directives")],
)  # fmt: skip
def test_formats_that_cannot_be_used_are_refused(city, options, message):
    folder, _ = city
    done = run("check", folder / "streets.graphml", folder / "trips.csv", *BOUNDS, *options)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize("graph", ["streets.graphml", "edges.csv"])
def test_files_in_the_wrong_order_are_noticed_before_anything_is_read(city, graph, tmp_path):
    folder, _ = city
    spending = ("--ledger", tmp_path / "none.db", "--epsilon", 1, "-o", tmp_path / "out")
    for command, options in (("check", ()), ("release", spending)):
        done = run(command, folder / "trips.csv", folder / graph, *BOUNDS, *options)
        text = " ".join(done.stderr.split()).replace("- ", "-")
        assert done.exit_code == 2
        assert f"the graph comes first; write hushgraph {command} {folder / graph} {folder / 'trips.csv'}".replace(
            " ", ""
        ) in text.replace(" ", "")
    assert "the graph comes first" in run("check", folder / "trips.csv", folder / graph).stderr  # before --unit is missed
    for command, options in (("denoise", ("-o", tmp_path / "out.csv")), ("compare", ())):
        assert "the graph comes first" in run(command, folder / "values.csv", folder / graph, *options).stderr


def test_verify_says_that_the_folder_comes_first(city, tmp_path):
    folder, _ = city
    assert "the folder comes first" in run("verify", folder / "streets.graphml", tmp_path).stderr
