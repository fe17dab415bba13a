"""hushgraph distributed on the command line: schedulers that are not there or die, repeated edges, stages, limits."""

import json
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import get_args

import numpy as np
import pytest
from typer.testing import CliRunner

import hushgraph as hg
from hushgraph._progress import reached
from hushgraph.cli import app, distributed
from hushgraph.cli.terminal import Terminal
from hushgraph.distributed import cost_model, prepare
from hushgraph.distributed.preparing import Laplacian, most_ghosts_of
from hushgraph.wavelets import Law, Rule

from .cases import ANY, noisy_on, write_edges

CUT = ["--partitions", "2", "--most-ghosts", "9"]
COMMAND = [sys.executable, "-c", "from hushgraph.cli import app\nif __name__ == '__main__': app()", "distributed"]
SLOW = """
import time
from pathlib import Path
from hushgraph.distributed.store import Output

def read_facts(out):
    Path(r"{mark}").touch()
    time.sleep(600)

Output.read_facts = read_facts
"""


def run(*words):
    done = CliRunner().invoke(app, ["distributed", *map(str, words)])
    assert "Traceback" not in done.output
    return done


def test_all_lists_of_choices_are_the_same():
    assert set(distributed.Method) == set(get_args(cost_model.DistributedMethod)) == set(cost_model.DISTRIBUTED)
    assert {*distributed.Rule, "hard"} == set(get_args(Rule)), "SURE does not hold for the rule that jumps"
    assert set(distributed.Law) == set(get_args(Law))
    assert set(distributed.Laplacian) == set(get_args(Laplacian))


# ---- schedulers --------------------------------------------------------------------------------------------------------


@contextmanager
def listening():
    """The address of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def closed():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    yield address


@contextmanager
def mistyped():
    yield "tpc://127.0.0.1:8786"


@pytest.mark.parametrize("place", [listening, closed, mistyped])
def test_nobody_answers(tmp_path, place):
    """In a process of its own: a client that Dask still waits for would be left here."""
    pytest.importorskip("distributed")
    short = f"import hushgraph.cli.distributed as p; p._PATIENCE = 1.0; {COMMAND[2]}"
    with place() as address:
        words = [sys.executable, "-c", short, "distributed", "resume", "work", "--scheduler", address]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    said = f"hushgraph: no Dask scheduler answers at {address}; check the address, and that the scheduler runs\n"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(said)
    assert 5 <= distributed._PATIENCE <= 15


@contextmanager
def busy_cluster(folder):
    """A scheduler whose one worker never ends its first task; the file `mark` is there when that has begun."""
    (folder / "slow.py").write_text(SLOW.format(mark=folder / "mark"))
    local = ["--host", "127.0.0.1", "--no-dashboard"]
    files = ["--scheduler-file", str(folder / "scheduler.json")]
    silent = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    cli = [sys.executable, "-m"]
    scheduler = subprocess.Popen([*cli, "distributed.cli.dask_scheduler", "--port", "0", *local, *files], **silent)
    options = ["--no-nanny", "--nthreads", "1", "--memory-limit", "2GB", "--preload", str(folder / "slow.py")]
    worker = subprocess.Popen([*cli, "distributed.cli.dask_worker", *local, *files, *options], **silent)
    try:
        wait_for(folder / "scheduler.json")
        yield json.loads((folder / "scheduler.json").read_text())["address"], scheduler
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


def wait_for(path):
    limit = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < limit, f"{path} does not come"
        time.sleep(0.02)


@pytest.mark.cluster
@pytest.mark.parametrize("command", ["prepare", "denoise"])
def test_the_scheduler_dies_midway(tmp_path, command):
    pytest.importorskip("distributed")
    graph = hg.datasets.grid(30, 30)
    write_edges(tmp_path / "edges", graph, 1)
    words = ["prepare", "edges", "--work", "work", *CUT]
    if command == "denoise":
        prepare(graph, tmp_path / "work", partitions=2, most_ghosts=ANY)
        np.save(tmp_path / "noisy.npy", noisy_on(graph))
        words = ["denoise", "work", "noisy.npy", "--sigma", "1"]
    with busy_cluster(tmp_path) as (address, scheduler):
        words = [*COMMAND, *words, "--scheduler", address, "--quiet"]
        process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wait_for(tmp_path / "mark")
        scheduler.kill()
        said = process.communicate(timeout=60)[0]
    further = {
        "prepare": "run the same command again to go on in work",
        "denoise": "hushgraph distributed resume work goes on with it (here, or with --workers N or --scheduler ADDRESS)",
    }
    assert said == f"hushgraph: the Dask scheduler at {address} is gone; {further[command]}\n"
    assert process.returncode == 1


@pytest.mark.cluster
def test_workers_of_our_own_say_nothing(tmp_path):
    pytest.importorskip("distributed")
    write_twice(tmp_path / "twice.parquet")
    words = [*COMMAND, "prepare", "twice.parquet", "--work", "work", *CUT, "--workers", "1"]
    done = subprocess.run([*words, "--quiet"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith("hushgraph: edge (0, 1) is given more than once")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("there", [True, False])
def test_the_page_of_tasks_needs_bokeh(monkeypatch, there, capsys):
    client = type("Client", (), {"dashboard_link": "http://here/status", "status": "running"})()
    client.scheduler = type("Scheduler", (), {"address": "tcp://here:1"})()

    @contextmanager
    def connect(*_):
        yield client

    monkeypatch.setattr(distributed.Cluster, "_connect", connect)
    monkeypatch.setattr(distributed, "find_spec", lambda name: there or None)
    pytest.importorskip("distributed")
    with distributed.Cluster(scheduler="tcp://here:1").client(Terminal("resume", False, False)) as found:
        assert found is client
    said = capsys.readouterr().err
    assert "Watch the tasks at http://here/status" in said
    assert ("pip install bokeh" in said) is not there


# ---- options -----------------------------------------------------------------------------------------------------------


def write_twice(path):
    """Edge (0, 1) weighs 1, and 3."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = {"source": [0, 1, 1, 2], "target": [1, 2, 0, 3], "weight": [1.0, 2.0, 3.0, 1.0]}
    pq.write_table(pa.table(table), path)


def test_edges_given_twice(tmp_path):
    write_twice(tmp_path / "twice.parquet")
    words = ["prepare", tmp_path / "twice.parquet", *CUT, "--json"]
    refused = run(*words, "--work", tmp_path / "error")
    assert refused.exit_code == 2
    assert "say --duplicates 'sum' or 'max'" in json.loads(refused.stdout)["error"]
    for choice, weight in (("sum", 4.0), ("max", 3.0)):
        done = run(*words, "--work", tmp_path / choice, "--duplicates", choice)
        assert (done.exit_code, json.loads(done.stdout)["n_edges"]) == (0, 3)
        pairs, weights = np.array([[0, 1], [1, 2], [2, 3]]), np.array([weight, 2.0, 1.0])
        one = prepare(hg.Graph.from_edges(pairs, n=4, weights=weights), tmp_path / f"{choice} one", partitions=2, most_ghosts=ANY)
        assert json.loads(done.stdout)["lambda_upper"] == one.lambda_upper
    assert run(*words, "--work", tmp_path / "other", "--duplicates", "first").exit_code == 2


def test_options_of_the_wavelets_and_of_shrinking(tmp_path):
    """Each option reaches the function: the result is that of one machine with the same settings."""
    graph = hg.datasets.grid(20, 20)
    noisy = noisy_on(graph)
    write_edges(tmp_path / "edges", graph, 2)
    np.save(tmp_path / "noisy.npy", noisy)
    frame = {"laplacian": "normalized", "n_scales": 3}
    done = run(
        "prepare", tmp_path / "edges", "--work", tmp_path / "work", *CUT, "--laplacian", "normalized", "--n-scales", 3, "--json"
    )
    assert (done.exit_code, json.loads(done.stdout)["n_scales"]) == (0, 3)
    one_frame = hg.chebyshev_frame(graph, **frame)
    for settings in (
        {"rule": "power", "beta": 3.0, "n_probes": 5, "law": "gaussian", "seed": 4},
        {"rule": "soft", "n_probes": 2},
        {"rule": "james_stein"},
    ):
        words = [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", value)]
        done = run("denoise", tmp_path / "work", tmp_path / "noisy.npy", "--sigma", 1, *words, "--json")
        assert done.exit_code == 0, done.output
        one = hg.denoise(graph, noisy, sigma=1.0, method="sgwt_scaled", frame=one_frame, **settings)
        found = json.loads(done.stdout)
        assert found["thresholds"] == one.thresholds.tolist()
        assert found["risk"] == pytest.approx(one.risk, rel=1e-12)


def test_options_that_do_not_fit(tmp_path):
    prepare(hg.datasets.grid(9, 9), tmp_path / "work", partitions=1)
    np.save(tmp_path / "noisy.npy", np.zeros(81))
    words = ["denoise", tmp_path / "work", tmp_path / "noisy.npy", "--sigma", 1, "--json"]
    for more, said in (
        (["--rule", "power"], "beta"),
        (["--beta", 3], "beta"),
        (["--n-probes", 0], "--n-probes"),
        (["--rule", "x"], "--rule"),
        (["--method", "let", "--rule", "soft"], "--rule and --beta belong to methods"),
    ):
        done = run(*words, *more)
        assert done.exit_code == 2
        assert said in json.loads(done.stdout)["error"]


@pytest.mark.parametrize("words", [["plan", "edges"], ["prepare", "edges", "--work", "work"]])
def test_no_partitions_are_refused(words):
    done = run(*words, "--partitions", "0", "--json")
    assert done.exit_code == 2
    assert "--partitions" in json.loads(done.stdout)["error"]


@pytest.mark.parametrize("command", ["plan", "prepare"])
def test_the_most_ghosts_are_told_as_they_are(command):
    done = CliRunner().invoke(app, ["distributed", command, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    text = " ".join(done.stdout.replace("│", " ").split())
    assert f"({most_ghosts_of(2):g} for 2, {most_ghosts_of(4):g} for 4)" in text
    assert "Default: 3, or three quarters" in text
    assert most_ghosts_of(99) == 3


def test_a_plan_counts_two_commands(tmp_path, monkeypatch):
    seen = {}

    def planned(edges, **settings):
        seen.update(settings)
        msg = "enough"
        raise ValueError(msg)

    monkeypatch.setattr(hg.distributed, "plan", planned)
    run("plan", tmp_path, "--workers", "3")
    assert (seen["starts"], seen["workers"]) == (2, 3)


# ---- progress ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stages", [True, False])
def test_the_bar_shows_the_stage(monkeypatch, capsys, stages):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with Terminal("distributed denoise", False, False).watching("Denoising", stages=stages):
        for share, stage in ((0.0, "transform"), (0.5, "finish")):
            reached(share, stage)
            time.sleep(0.3)  # it is drawn ten times a second
    said = capsys.readouterr()
    for stage in ("transform", "finish"):
        assert (f"Denoising: {stage}" in said.err) is stages
    assert "Denoising" in said.err
    assert said.out == ""


# ---- what was done -----------------------------------------------------------------------------------------------------


def test_guides_and_what_was_done(tmp_path, monkeypatch, few_probes):
    monkeypatch.chdir(tmp_path)
    graph = hg.datasets.grid(40, 40)
    noisy = noisy_on(graph)
    np.save("noisy.npy", noisy)
    np.save("shops.npy", np.abs(noisy) + np.random.default_rng(1).normal(0, 2, graph.n))
    np.save("other.npy", np.random.default_rng(2).normal(size=graph.n))
    prepare(graph, "work", partitions=2, most_ghosts=ANY)
    words = ["denoise", "work", "noisy.npy", "--sigma", "1", "--method", "auto"]
    done = run(*words, "--guide", "shops.npy", "--guide", "other.npy", "--json")
    facts = json.loads(done.stdout)
    assert list(facts["details"]["guides"]) == ["shops", "other"]
    assert "a second pass that starts from this result" in facts["details"]["why"]
    assert "shops (a public map)" in " ".join(run(*words, "--guide", "shops.npy", "--guide", "other.npy").output.split())
    plain = run(*words, "--no-refine")
    said = " ".join(plain.output.split())
    assert "one machine also has even areas and few levels" in said
    assert "a second pass" not in said
    assert "Guides" not in said
    refused = run("denoise", "work", "noisy.npy", "--sigma", "1", "--guide", "shops.npy")
    assert refused.exit_code == 2
    assert "'auto' and 'let'" in refused.output
