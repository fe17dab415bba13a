"""`hushgraph reproduce`: everything runs on generated data, nothing that is finished is computed again."""

import csv
import math
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from hushgraph.cli import app
from hushgraph.experiments.cells import Cells
from hushgraph.experiments.reproduce import EXPERIMENTS, publish, reproduce
from hushgraph.experiments.snr_table import ESTIMATES, OURS

pytest.importorskip("matplotlib")
TABLES = {"table-nyc": 8, "table-nyc-weighted": 8, "table-sf": 3}


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smoke")
    return folder, reproduce(["all"], folder, smoke=True, methods=["sgwt_scaled"])


def test_every_experiment_has_rows_and_files(smoke):
    folder, found = smoke
    assert list(found) == list(EXPERIMENTS)
    for name, rows in found.items():
        assert rows, name
        assert (folder / f"{name}.md").read_text().startswith("## ")
        with (folder / f"{name}.csv").open(newline="") as file:
            assert len(list(csv.DictReader(file))) == len(rows)
        if name.startswith("fig-"):
            assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
            assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_all_numbers_are_finite(smoke):
    for name, rows in smoke[1].items():
        for row in rows:
            for key, value in row.items():
                assert not isinstance(value, float) or math.isfinite(value), (name, key)


@pytest.mark.parametrize(("name", "columns"), TABLES.items())
def test_tables_have_every_cell(smoke, name, columns):
    rows = smoke[1][name]
    methods = {"SNR_in", *ESTIMATES, *OURS, "sgwt_scaled"}
    assert {row["method"] for row in rows} == methods
    assert len(rows) == 2 * columns * len(methods)
    assert set(rows[0]) == {"mechanism", "epsilon", "sigma", "realization", "method", "snr", "data"}


def test_generated_data_is_never_called_a_result(smoke):
    text = (smoke[0] / "reproduction.md").read_text()
    assert text.startswith("# Smoke test: generated data, no results")
    for claim in ("the paper's day", "2013-11-18", "roadNet-PA)", "Manhattan (Open"):
        assert claim not in text


def test_finished_cells_are_not_computed_again(smoke, monkeypatch):
    folder, found = smoke
    seen = []
    real = Cells.__init__
    monkeypatch.setattr(Cells, "__init__", lambda self, *a, **k: seen.append(self) or real(self, *a, **k))
    again = reproduce(["all"], folder, smoke=True, methods=["sgwt_scaled"])
    assert [cells.computed for cells in seen] == [0]
    assert again == found


def test_a_killed_run_goes_on_with_the_same_numbers(tmp_path):
    """kill -9 half-way, start again: finished cells stay, and the table is that of an undisturbed run."""
    command = [sys.executable, "-m", "hushgraph", "reproduce", "table-sf", "--smoke", "--out", str(tmp_path / "killed")]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ)
    cells = tmp_path / "killed" / "smoke" / "cells"
    deadline = time.monotonic() + 120
    while len(list(cells.glob("table-sf*.json")) if cells.exists() else []) < 10 and running.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    finished = {path: path.stat().st_mtime_ns for path in cells.glob("*.json")}
    assert len(finished) >= 10
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert all(path.stat().st_mtime_ns == then for path, then in finished.items())
    reproduce(["table-sf"], tmp_path / "whole", smoke=True)
    assert (tmp_path / "killed" / "smoke" / "table-sf.csv").read_bytes() == (tmp_path / "whole" / "table-sf.csv").read_bytes()


def test_command_line(tmp_path):
    run = CliRunner()
    done = run.invoke(app, ["reproduce", "fig-plateaus", "--smoke", "--out", str(tmp_path), "--docs", str(tmp_path / "docs")])
    assert done.exit_code == 0, done.output
    assert "images/reproduction/fig-plateaus.png" in (tmp_path / "docs" / "reproduction.md").read_text()
    assert (tmp_path / "docs" / "images" / "reproduction" / "fig-plateaus.png").exists()
    assert run.invoke(app, ["reproduce", "table-mars", "--smoke", "--out", str(tmp_path)]).exit_code == 2
    assert run.invoke(app, ["reproduce", "table-sf", "--smoke", "--methods", "magic", "--out", str(tmp_path)]).exit_code == 2


def test_missing_data_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HUSHGRAPH_DATA", str(tmp_path))
    monkeypatch.setenv("HUSHGRAPH_CACHE", str(tmp_path / "cache"))
    done = CliRunner().invoke(app, ["reproduce", "table-nyc", "--out", str(tmp_path / "out")])
    assert done.exit_code != 0
    assert "HUSHGRAPH_DATA" in done.output or "osmnx" in done.output


def test_publish_takes_only_the_pages_figures(tmp_path):
    (tmp_path / "reproduction.md").write_text("![a](a.png)\n")
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(b"x")
    publish(tmp_path, tmp_path / "docs")
    assert [path.name for path in (tmp_path / "docs" / "images" / "reproduction").iterdir()] == ["a.png"]


def test_damaged_cells_are_computed_again(tmp_path):
    cells = Cells(tmp_path)
    assert cells.value("x", {"k": 1}, lambda: 3.5) == 3.5
    next(tmp_path.glob("*.json")).write_text('{"value": ')
    assert cells.value("x", {"k": 1}, lambda: 3.5) == 3.5
    assert cells.value("x", {"k": 2}, lambda: 4.5) == 4.5
    assert cells.computed == 3
