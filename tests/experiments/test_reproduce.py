"""`hushgraph reproduce`: everything runs on generated data, nothing that is finished is computed again."""

import csv
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import hushgraph as hg
from hushgraph.cli import app
from hushgraph.experiments import cells as cells_file, snr_table, table_nyc
from hushgraph.experiments.cells import Cells, code_without_texts
from hushgraph.experiments.reproduction import BEYOND, EXPERIMENTS, publish, reproduce
from hushgraph.experiments.snr_table import ESTIMATES, OURS, best_methods, paired, run_table, summary
from hushgraph.experiments.stage import Stage

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.slow
TABLES = {"table-nyc": 8, "table-nyc-weighted": 8, "table-sf": 3, "table-nyc-newyear": 4, "table-sf-dpw": 3}


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smoke")
    return folder / "smoke", reproduce(["all", *BEYOND], folder, smoke=True, methods=["sgwt_scaled", *OURS])


def test_every_experiment_has_rows_and_files(smoke):
    folder, found = smoke
    assert list(found) == [*EXPERIMENTS, *BEYOND]
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
    methods = {"SNR_in", *ESTIMATES, *OURS, "sgwt_deep", "sgwt_scaled"}
    assert {row["method"] for row in rows} == methods
    assert len(rows) == 2 * columns * len(methods)
    assert set(rows[0]) == {"mechanism", "epsilon", "sigma", "realization", "method", "snr", "data", "source", "attribution"}


def test_generated_data_is_never_called_a_result(smoke):
    text = (smoke[0] / "reproduction.md").read_text()
    assert text.startswith("# Smoke test: generated data, no results")
    for claim in (
        "the paper's day",
        "2013-11-18",
        "roadNet-PA",
        "f_{0.001",
        "150 s",
        "In parentheses: the paper",
        "**Manhattan.**",
    ):
        assert claim not in text


def test_finished_cells_are_not_computed_again(smoke, monkeypatch):
    """Pictures would be drawn again; that takes long, so they are not."""
    folder, found = smoke
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *a, **k: None)
    seen = []
    real = Cells.__init__
    monkeypatch.setattr(Cells, "__init__", lambda self, *a, **k: seen.append(self) or real(self, *a, **k))
    again = reproduce(["all", *BEYOND], folder.parent, smoke=True, methods=["sgwt_scaled", *OURS])
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
    finished = {path: path.stat().st_mtime_ns for path in (*cells.glob("*.json"), *cells.glob("*.npz"))}
    assert any(path.suffix == ".npz" for path in finished)
    assert len(finished) >= 10
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert all(path.stat().st_mtime_ns == then for path, then in finished.items())
    reproduce(["table-sf"], tmp_path / "whole", smoke=True)
    killed, whole = (tmp_path / name / "smoke" / "table-sf.csv" for name in ("killed", "whole"))
    assert killed.read_bytes() == whole.read_bytes()


def test_command_line(tmp_path):
    run = CliRunner()
    done = run.invoke(app, ["reproduce", "fig-plateaus", "--smoke", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "smoke" / "reproduction.md").exists()
    for wrong in (["table-mars"], ["table-sf", "--methods", "magic"], ["fig-plateaus", "--docs", str(tmp_path / "docs")]):
        failed = run.invoke(app, ["reproduce", *wrong, "--smoke", "--out", str(tmp_path)])
        assert failed.exit_code == 2
        assert "Traceback" not in failed.output
    assert not (tmp_path / "docs").exists()
    (tmp_path / "file").write_text("")
    assert run.invoke(app, ["reproduce", "fig-plateaus", "--smoke", "--out", str(tmp_path / "file")]).exit_code == 2


def test_a_part_does_not_replace_the_whole_page(smoke):
    folder = smoke[0]
    before = (folder / "reproduction.md").read_text()
    reproduce("fig-plateaus", folder.parent, smoke=True)
    assert (folder / "reproduction.md").read_text() == before


def test_missing_data_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HUSHGRAPH_DATA", str(tmp_path))
    monkeypatch.setenv("HUSHGRAPH_CACHE", str(tmp_path / "cache"))
    done = CliRunner().invoke(app, ["reproduce", "table-nyc", "--out", str(tmp_path / "out")])
    assert done.exit_code != 0
    assert "HUSHGRAPH_DATA" in done.output or "osmnx" in done.output


def test_publish_takes_whole_pages_of_real_data_and_their_figures(tmp_path):
    for name in EXPERIMENTS:
        (tmp_path / f"{name}.md").write_text("## x\n")
    (tmp_path / "reproduction.md").write_text("# Real\n![a](a.png)\n")
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(b"x")
    assert "(images/reproduction/a.png)" in publish(tmp_path, tmp_path / "docs").read_text()
    assert [path.name for path in (tmp_path / "docs" / "images" / "reproduction").iterdir()] == ["a.png"]
    (tmp_path / "table-sf.md").unlink()
    with pytest.raises(ValueError, match="missing: table-sf"):
        publish(tmp_path, tmp_path / "docs")


def test_damaged_cells_are_computed_again(tmp_path):
    cells = Cells(tmp_path)
    assert cells.value("x", {"k": 1}, lambda: 3.5) == 3.5
    next(tmp_path.glob("*.json")).write_text('{"value": ')
    assert cells.value("x", {"k": 1}, lambda: 3.5) == 3.5
    assert cells.value("x", {"k": 2}, lambda: 4.5) == 4.5
    assert cells.computed == 3
    before = cells.arrays("a", {}, lambda: {"x": np.arange(3)})
    next(tmp_path.glob("*.npz")).write_bytes(b"PK\x03\x04 cut short")
    assert np.array_equal(cells.arrays("a", {}, lambda: {"x": np.arange(3)})["x"], before["x"])


def test_other_settings_and_other_code_are_other_cells(tmp_path, monkeypatch):
    cells = Cells(tmp_path)
    cells.value("x", {"orders": 16}, lambda: 1)
    assert cells.value("x", {"orders": 4}, lambda: 2) == 2
    monkeypatch.setattr(cells_file, "package_digest", lambda: "edited")
    assert cells.value("x", {"orders": 16}, lambda: 3) == 3
    with pytest.raises(TypeError, match="JSON"):
        cells.value("x", {"array": np.arange(3)}, lambda: 4)


@pytest.mark.parametrize(
    ("source", "same"),
    [
        ('"""Other text."""\n\ndef f(x):\n    # why\n    return (x + 1)\n', True),
        ('def f(x):\n    """Other text."""\n    return x + 1\n', True),
        ("def f(x):\n    return x + 2\n", False),
        ('def f(x):\n    "".join(x)\n    return x + 1\n', False),
    ],
)
def test_cells_survive_new_comments_and_docstrings(source, same):
    known = 'def f(x):\n    """Text."""\n    return x + 1\n'
    assert (code_without_texts(source) == code_without_texts(known)) is same


def test_ties_are_no_wins():
    """Means differ a little, pair by pair there is nothing: both are best. A steady difference is a win."""
    noise = np.random.default_rng(0).normal(size=10)
    rows = [
        {"mechanism": "analytic", "epsilon": 1.0, "sigma": 4.0, "realization": k, "method": method, "snr": value}
        for k in range(10)
        for method, value in (("a", noise[k]), ("b", noise[-1 - k] + 0.01), ("c", noise[k] - 0.1))
    ]
    key = ("analytic", 1.0, 4.0)
    assert set(best_methods(rows, key)) >= {"a", "b"}
    assert paired(rows, key, "a", "c")[0] == pytest.approx(0.1)
    assert paired(rows, key, "a", "c")[1] < 1e-12


def polynomial_oracle(stage, place, noisy):
    """The wavelet oracle on the Chebyshev frame, which differs from the exact one by hundredths of a dB and needs no eigenvectors."""
    frame = hg.chebyshev_frame(place.graph, damping=None)
    F = hg.analyze(frame, noisy.values)
    t = hg.oracle_thresholds(F, hg.analyze(frame, place.signal))
    return hg.synthesize(frame, hg.james_stein(F, t[:, None])[0])


@pytest.mark.data
def test_the_table_of_new_york(data_folder, tmp_path, monkeypatch):
    """Three columns, four realizations: oracle and the paper's method are where they were seen, and ours are far above the oracle."""
    monkeypatch.setattr(snr_table, "REALIZATIONS", 4)
    monkeypatch.setattr(snr_table, "ESTIMATES", {"SGWT_MSE": polynomial_oracle, "SGWT_SURE_MC": snr_table.sgwt_sure_mc})
    stage = Stage(tmp_path, Cells(tmp_path / "cells"), methods=("let", "combination", "auto"))
    table = replace(table_nyc.TABLE, columns=tuple(table_nyc.TABLE.columns[k] for k in (1, 6, 7)))
    means = {
        (method, sigma): mean for (method, _, _, sigma), (mean, _) in summary(run_table(stage, table, stage.manhattan)).items()
    }
    sigmas = sorted({sigma for _, sigma in means}, reverse=True)
    for sigma, oracle in zip(sigmas, (1.77, 4.87, 8.12), strict=True):
        assert means["SGWT_MSE", sigma] == pytest.approx(oracle, abs=0.3)
        assert means["SGWT_SURE_MC", sigma] > means["SGWT_MSE", sigma] - 0.35
        for method, gain in (("let", 1.2), ("combination", 1.3), ("auto", 1.7)):
            assert means[method, sigma] > means["SGWT_MSE", sigma] + gain
