"""Guides from files: names of columns, releases of one data set, and how `hushgraph explore` hands them over."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import hushgraph as hg
from hushgraph.cli import app
from hushgraph.cli.guide_files import read_guide_files


@pytest.fixture(scope="module")
def graph():
    return hg.datasets.city(300)


@pytest.fixture
def folder(graph, tmp_path):
    rng = np.random.default_rng(0)
    hg.write_signal(tmp_path / "pickups 2025.csv.gz", graph, rng.poisson(3, graph.n))
    hg.write_signal(tmp_path / "stops.csv", graph, {"buses": rng.poisson(3, graph.n), "trams": rng.poisson(1, graph.n)})
    np.save(tmp_path / "plain.npy", rng.normal(0, 1, graph.n))
    np.save(tmp_path / "two.npy", rng.normal(0, 1, (graph.n, 2)))
    hg.write_graph(tmp_path / "streets.graphml", graph)
    return tmp_path


@pytest.fixture
def releases(graph, tmp_path):
    """Folders of two releases of one data set."""
    events = hg.datasets.trips(graph, n_people=400)
    counts = hg.privacy.count_events(
        graph, events, unit="person", adjacency="add-remove", max_nodes=2, max_per_node=1, max_distance=200
    )
    ledger = hg.privacy.Ledger.create(
        tmp_path / "budget.db", dataset="trips", unit="person", adjacency="add-remove", epsilon=2, delta=1e-6
    )
    draws = [hg.privacy.release(counts, epsilon=0.3, delta=1e-6, ledger=ledger, public_graph=True) for _ in range(2)]
    return [draw.export(tmp_path / f"draw-{k}", method="let") for k, draw in enumerate(draws)]


def test_guides_are_called_like_their_columns_or_their_file(graph, folder):
    paths = [folder / name for name in ("pickups 2025.csv.gz", "stops.csv", "plain.npy", "two.npy")]
    guides = read_guide_files(graph, paths)
    assert list(guides) == ["pickups 2025", "buses", "trams", "plain", "two 1", "two 2"]
    assert np.array_equal(guides["plain"], np.load(folder / "plain.npy"))
    assert hg.denoise(graph, np.random.default_rng(1).normal(0, 1, graph.n), sigma=1, method="let", guides=guides).details["guides"]


def test_equal_names_get_that_of_the_file(graph, folder):
    hg.write_signal(folder / "later.csv", graph, {"buses": np.arange(graph.n)})
    assert list(read_guide_files(graph, [folder / "stops.csv", folder / "later.csv"])) == ["buses", "trams", "later buses"]
    with pytest.raises(ValueError, match="two guides are called 'plain plain'"):
        read_guide_files(graph, [folder / "plain.npy"] * 3)


def test_nodes_without_a_row_are_gaps(graph, folder):
    lines = (folder / "stops.csv").read_text().splitlines(keepends=True)
    (folder / "part.csv").write_text("".join(lines[:-5]))
    assert np.isnan(read_guide_files(graph, [folder / "part.csv"])["buses"]).sum() == 5


def test_releases_of_one_data_set_are_one_guide(graph, releases):
    guides = read_guide_files(graph, releases)
    assert list(guides) == ["trips"]
    result = hg.denoise(graph, np.random.default_rng(1).normal(0, 9, graph.n), sigma=9, method="let", guides=guides)
    assert result.details["guides"]["trips"]["made_from"].startswith("2 noisy maps, combined")
    with pytest.raises(ValueError, match="pass the folder"):
        read_guide_files(graph, [releases[0] / "map.csv"])


def test_explore_hands_guides_over(folder, releases, served):
    streets = ["--graph", str(folder / "streets.graphml")]
    given = ["--guide", str(folder / "stops.csv"), "--guide", str(releases[0])]
    answer = CliRunner().invoke(app, ["explore", "--no-browser", *streets, *given])
    assert answer.exit_code == 0, answer.output
    assert list(served[0]["guides"]) == ["trips", "buses", "trams"]
    assert CliRunner().invoke(app, ["explore", "--no-browser", *streets]).exit_code == 0
    assert served[1]["guides"] is None
    for wrong in (given, [*streets, "--guide", str(Path("nowhere.csv"))]):
        assert CliRunner().invoke(app, ["explore", "--no-browser", *wrong]).exit_code != 0
    assert len(served) == 2
