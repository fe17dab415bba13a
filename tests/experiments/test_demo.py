"""`hushgraph demo`: the whole private release, from events to certificate and pictures."""

import json

import pytest
from typer.testing import CliRunner

from hushgraph.cli import app
from hushgraph.experiments import demo
from hushgraph.files import read_graph, read_signal
from hushgraph.privacy import count_events, read_release
from hushgraph.privacy.ledger.budget import Ledger

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return demo.run(tmp_path_factory.mktemp("demo") / "out", n_nodes=800, epsilon=0.5, seed=0)


def test_it_gains(result):
    assert result.snr_denoised > result.snr_noisy + 2
    assert result.noise_energy_left < 0.7


def test_everything_is_there(result):
    assert {path.name for path in (result.folder / "release").iterdir()} == {"map.csv", "certificate.json", "report.html"}
    ledger = Ledger.open(result.folder / "budget.db", dataset=demo.DATASET, unit="person", adjacency="add-remove")
    ledger.verify(json.loads((result.folder / "release" / "certificate.json").read_text()))
    assert ledger.spent == pytest.approx(0.5)
    assert (read_release(result.folder / "release", result.graph).values == result.release.values).all()


def test_the_release_is_one_of_the_files(result):
    """Streets and trips of the folder are what the release was made from."""
    streets, trips, values = result.files
    graph = read_graph(streets)
    assert graph.hash == result.graph.hash
    bounds = {"max_nodes": demo.MAX_NODES, "max_per_node": demo.MAX_PER_NODE, "max_distance": demo.MAX_DISTANCE}
    counts = count_events(graph, trips, unit="person", adjacency="add-remove", **bounds)
    assert counts.counts.sum() == result.truth.sum()  # which of the junctions of a person count is drawn at random
    assert read_signal(values, graph).shape == (graph.n,)


def test_pictures(result):
    for path in demo.render(result):
        assert path.read_bytes().startswith(b"\x89PNG")


def test_it_says_what_happened_and_runs_again(tmp_path, monkeypatch):
    monkeypatch.delenv("HUSHGRAPH_STATE")
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "state"))
    out = tmp_path / "out"
    for _ in range(2):
        done = CliRunner().invoke(app, ["demo", "--out", str(out), "--nodes", "300"])
        assert done.exit_code == 0, done.output
        for word in (
            "sensitivity² = 2",
            "epsilon 0.500 of 2 spent",
            "of the noise energy is gone",
            "certificate.json",
            "trips.csv",
        ):
            assert word in " ".join(done.output.split())


def test_other_files_are_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--nodes", "300"])
    assert done.exit_code == 2
    assert "holds other files" in " ".join(done.output.split())
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_real_ledger_is_left_alone(tmp_path):
    """A folder with nothing but somebody's budget is not the demo's to clear."""
    Ledger.create(tmp_path / "budget.db", dataset="hospital", unit="patient", adjacency="add-remove", epsilon=1, delta=1e-6)
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--nodes", "300"])
    assert done.exit_code == 2
    assert Ledger.open(tmp_path / "budget.db").dataset == "hospital"


@pytest.mark.parametrize("name", ["release", "state"])
def test_a_folder_of_somebody_elses_release_is_left_alone(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "map.csv").write_text("charged for")
    assert CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--nodes", "300"]).exit_code == 2
    assert (tmp_path / name / "map.csv").read_text() == "charged for"


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    assert CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "file"), "--nodes", "300"]).exit_code == 2
