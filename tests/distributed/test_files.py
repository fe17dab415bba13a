"""Distributed runs and their files: edges in, plans, commands, what is damaged, killed or refused."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.distributed import denoise, plan, prepare, resume
from hushgraph.distributed.cost_model import task_memory
from hushgraph.distributed.ghosts import TooManyGhostsError
from hushgraph.distributed.store import Output, open_draft, read_json

from .cases import ANY, GRAPHS, assert_equal, noisy_on, scale_free, write_edges

pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")


@pytest.fixture(scope="module")
def roads(tmp_path_factory):
    """A road network in four partitions."""
    graph, folder = hg.datasets.roads(4000), tmp_path_factory.mktemp("roads") / "work"
    prepare(graph, folder, partitions=4, most_ghosts=ANY)
    return graph, folder


# ---- edge files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["roads", "islands"])
def test_edges_in_many_files(name, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    graph = GRAPHS[name]()
    write_edges(tmp_path / "edges", graph, 3, repeat=True)
    noisy = noisy_on(graph)
    order = np.random.default_rng(6).permutation(graph.n)
    pq.write_table(pa.table({"node": order, "value": noisy[order]}), tmp_path / "noisy.parquet")
    coords = np.random.default_rng(7).random((graph.n, 2)) if graph.coords is None else graph.coords
    np.save(tmp_path / "coords.npy", coords)
    found = prepare(tmp_path / "edges", tmp_path / "work", n=graph.n, partitions=3, coords=tmp_path / "coords.npy", most_ghosts=ANY)
    assert (found.n, found.n_edges) == (graph.n, graph.n_edges)
    result = denoise(tmp_path / "work", tmp_path / "noisy.parquet", sigma=1.0, output=tmp_path / "out")
    assert_equal(result, hg.denoise(graph, noisy, sigma=1.0, method="sgwt_scaled"))
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 3
    assert not list((tmp_path / "work").glob("graph-*/pieces/*/*.npy"))


def test_object_stores(roads, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    graph, _ = roads
    write_edges(tmp_path / "edges", graph, 2)
    memory = fsspec.filesystem("memory")
    for path in (tmp_path / "edges").iterdir():
        memory.pipe(f"/bucket/{path.name}", path.read_bytes())
    prepare("memory://bucket", tmp_path / "work", partitions=2, most_ghosts=ANY)
    noisy = noisy_on(graph)
    result = denoise(tmp_path / "work", noisy, sigma=1.0, method="sgwt_sure", output="memory://result")
    assert_equal(result, hg.denoise(graph, noisy, sigma=1.0, method="sgwt_sure"))


def test_edges_that_disagree(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"source": [0, 1, 1], "target": [1, 0, 2], "weight": [1.0, 2.0, 1.0]}), tmp_path / "e.parquet")
    with pytest.raises(ValueError, match=r"edge \(0, 1\) is given more than once"):
        prepare(tmp_path / "e.parquet", tmp_path / "work")
    prepare(tmp_path / "e.parquet", tmp_path / "sum", duplicates="sum", most_ghosts=ANY)
    with pytest.raises(ValueError, match="the edges name node 2"):
        prepare(tmp_path / "e.parquet", tmp_path / "few", n=2)


# ---- files ---------------------------------------------------------------------------------------------------------


def test_half_written_files_are_never_read(tmp_path):
    with pytest.raises(OSError), open_draft(tmp_path / "a.npy") as file:
        file.write(b"half" + os.read(-1, 1))
    assert list(tmp_path.iterdir()) == []
    out = Output(tmp_path, "stage")
    out.save("x", np.arange(10))
    assert out.read_facts() is None, "without a mark nothing is done"
    out.mark_done({"a": 1})
    assert out.read_facts() == {"a": 1}
    with out.path("x").open("r+b") as file:
        file.truncate(100)
    assert out.read_facts() is None


def test_damaged_files_are_made_again(roads):
    graph, folder = roads
    noisy = noisy_on(graph, seed=8)
    first = denoise(folder, noisy, sigma=1.0, keep=True)
    (first.folder / "result.json").unlink()
    for name in ("transform.bands.npy", "scales.json", "finish.signal.npy", "write.json"):
        path = first.folder / "00002" / name
        path.write_bytes(path.read_bytes()[:40])
    (first.folder / "00001" / ".finish.signal.npy.1.ab.tmp").write_bytes(b"half")
    again = resume(folder)
    assert again.folder == first.folder
    np.testing.assert_array_equal(again.read(), first.read())
    np.testing.assert_array_equal(again.thresholds, first.thresholds)


def test_a_finished_run_is_found_again_and_can_be_begun_anew(roads):
    graph, folder = roads
    noisy = noisy_on(graph, seed=9)
    first = denoise(folder, noisy, sigma=1.0)
    again = denoise(folder, noisy, sigma=1.0)
    assert again.timings == first.timings
    anew = denoise(folder, noisy, sigma=1.0, resume=False)
    assert anew.timings != first.timings
    np.testing.assert_array_equal(anew.read(), first.read())


def test_another_preparation_is_refused(tmp_path):
    graph = hg.datasets.grid(12, 12)
    prepare(graph, tmp_path / "work", partitions=2, most_ghosts=ANY)
    with pytest.raises(ValueError, match="another preparation: partitions differ"):
        prepare(graph, tmp_path / "work", partitions=3, most_ghosts=ANY)
    with pytest.raises(ValueError, match="source"):
        prepare(hg.datasets.grid(11, 12), tmp_path / "work", n=144, partitions=2, most_ghosts=ANY)
    assert prepare(graph, tmp_path / "work", partitions=2, most_ghosts=ANY).n == 144
    noisy = np.random.default_rng(0).normal(size=144)
    run = denoise(tmp_path / "work", noisy, sigma=1.0)
    facts = read_json(run.folder / "run.json")
    (run.folder / "run.json").write_text(json.dumps({**facts, "partition_hash": "other"}))
    with pytest.raises(ValueError, match="another preparation"):
        resume(tmp_path / "work")
    manifest = read_json(tmp_path / "work" / "manifest.json")
    (tmp_path / "work" / "manifest.json").write_text(json.dumps({**manifest, "version": 99}))
    with pytest.raises(ValueError, match="another version"):
        denoise(tmp_path / "work", noisy, sigma=1.0)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("keep")
    with pytest.raises(ValueError, match="holds other files"):
        prepare(graph, tmp_path / "other")
    with pytest.raises(ValueError, match="run prepare"):
        denoise(tmp_path / "other", noisy, sigma=1.0)


# ---- plans and commands ---------------------------------------------------------------------------------------------


DENOISING = """
import sys
from hushgraph.distributed import denoise
denoise("work", "noisy.npy", sigma=1.0, method=sys.argv[1], keep=True)
status = open("/proc/self/status").read()
print(int(status.split("VmHWM:")[1].split()[0]) * 1024)
"""


def peak_of_denoising(folder, method):
    """Of a process of its own."""
    command = [sys.executable, "-c", DENOISING, method]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


def small_folder(folder):
    folder.mkdir()
    graph = hg.datasets.grid(30, 30)
    prepare(graph, folder / "work", partitions=1, degree=5)
    np.save(folder / "noisy.npy", noisy_on(graph))
    return folder


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the peak is read from /proc")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method", "parts"), [("grid", "sgwt_scaled", 4), ("roads", "let", 3), ("small grid", "sgwt_sure", 5)]
)
def test_a_plan_says_what_happens(tmp_path, name, method, parts):
    """Growth, files, tasks and the peak memory of a process that denoises, to 30 %."""
    graph = {
        "grid": lambda: hg.datasets.grid(640, 640),
        "roads": lambda: hg.datasets.roads(400_000),
        "small grid": lambda: hg.datasets.grid(300, 300),
    }[name]()
    found = plan(graph, partitions=parts, degree=20, method=method)
    assert "ghosts" in str(found)
    done = prepare(graph, tmp_path / "work", partitions=parts, degree=20)
    np.save(tmp_path / "noisy.npy", noisy_on(graph))
    peak_of_denoising(small_folder(tmp_path / "small"), method)
    peak = peak_of_denoising(tmp_path, method)
    size = sum(path.stat().st_size for path in (tmp_path / "work").rglob("*") if path.is_file())
    marks = [*(tmp_path / "work").glob("graph-*/parts/*/*.json"), *(tmp_path / "work" / "runs").glob("*/0*/*.json")]
    assert (found.n_scales, found.partitions) == (done.n_scales, done.partitions)
    assert found.growth == pytest.approx(done.growth, rel=0.3)
    assert found.disk == pytest.approx(size, rel=0.3)
    assert found.tasks == pytest.approx(len(marks), rel=0.3)
    assert found.memory_per_task == pytest.approx(peak, rel=0.3)


def test_a_plan_from_a_region(tmp_path, monkeypatch):
    graph = hg.datasets.grid(300, 300)
    write_edges(tmp_path / "edges", graph, 2)
    settings = {"partitions": 9, "degree": 20, "coords": graph.coords}
    whole = plan(tmp_path / "edges", **settings)
    monkeypatch.setattr("hushgraph.distributed.ghost_estimate.WHOLE", 1000)
    monkeypatch.setattr("hushgraph.distributed.ghost_estimate.REGION", 10_000)
    region = plan(tmp_path / "edges", **settings)
    assert "counted in" in region.counted
    assert region.growth == pytest.approx(whole.growth, rel=0.3)
    write_edges(tmp_path / "small", scale_free(20_000), 2)
    with pytest.raises(TooManyGhostsError, match="leave it"):
        plan(tmp_path / "small", partitions=9)


def test_a_plan_refuses_a_small_world_after_a_few_hops():
    graph = scale_free(50_000)
    with pytest.raises(TooManyGhostsError, match=r"ghosts or more after \d of 100 hops.*one machine.*GPU"):
        plan(graph, partitions=8)


def test_memory_decides_the_partitions():
    graph = hg.datasets.grid(1000, 1000)
    assert plan(graph, degree=20).partitions == 1
    small = plan(graph, degree=20, memory="350MB")
    assert small.partitions > 1
    assert small.memory_per_task < 350e6
    with pytest.raises(ValueError, match="memory must be"):
        plan(graph, memory="much")


def test_small_workers_are_refused():
    def client(*limits):
        return SimpleNamespace(
            scheduler_info=lambda **_: {"workers": {k: {"memory_limit": limit} for k, limit in enumerate(limits)}}
        )

    assert task_memory(None, client(4e9, 2e9)) == 1.6e9
    assert task_memory("3GB", client(5e7)) == 3e9
    assert task_memory(None, client(0)) is None
    with pytest.raises(
        ValueError, match=r"workers need more than 0.25 GB of memory; the smallest has 0.10; start fewer or larger ones"
    ):
        task_memory(None, client(4e9, 1e8))


def test_commands(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from hushgraph.cli import app

    monkeypatch.chdir(tmp_path)
    graph = hg.datasets.grid(60, 60)
    write_edges(tmp_path / "edges", graph, 2)
    noisy = noisy_on(graph)
    np.save("noisy.npy", noisy)

    def run(*words):
        done = CliRunner().invoke(app, ["distributed", *words, "--json"])
        return done.exit_code, json.loads(done.stdout)

    cut = ["--partitions", "2", "--most-ghosts", "9"]
    assert run("plan", "edges", *cut)[1]["partitions"] == 2
    code, facts = run("prepare", "edges", "--work", "work", *cut)
    assert (code, facts["n"], facts["partitions"]) == (0, 3600, 2)
    code, facts = run("denoise", "work", "noisy.npy", "--sigma", "1", "-o", "clean")
    one = hg.denoise(graph, noisy, sigma=1.0, method="sgwt_scaled")
    assert code == 0
    np.testing.assert_array_equal(facts["thresholds"], one.thresholds)
    assert len(list((tmp_path / "clean").glob("*.parquet"))) == 2
    assert run("resume", "work")[1]["risk"] == facts["risk"]
    np.save("sigma.npy", np.linspace(0.5, 1.5, graph.n))
    code, facts = run("denoise", "work", "noisy.npy", "--sigma", "sigma.npy", "--method", "sgwt_sure")
    np.testing.assert_array_equal(
        facts["thresholds"], hg.denoise(graph, noisy, sigma=np.load("sigma.npy"), method="sgwt_sure").thresholds
    )
    code, facts = run("denoise", "work", "noisy.npy", "--sigma", "1", "--method", "auto", "--nonnegative")
    assert code == 0
    code, facts = run("denoise", "work", "noisy.npy", "--sigma", "1", "--method", "sgwt_deep")
    assert code == 2
    code, facts = run("prepare", "edges", "--work", "work", "--partitions", "3")
    assert code == 2
    assert "another preparation" in facts["error"]


# ---- refusals ------------------------------------------------------------------------------------------------------


def test_small_worlds_are_refused(tmp_path):
    with pytest.raises(TooManyGhostsError, match=r"ghosts or more after \d of 100 hops.*one machine.*GPU"):
        prepare(scale_free(3000), tmp_path / "work", partitions=8)


@pytest.mark.parametrize("quick", [2_000_000, 1000])
def test_small_worlds_in_files_are_refused_before_they_are_sorted(tmp_path, monkeypatch, quick):
    monkeypatch.setattr("hushgraph.distributed.ghost_estimate.QUICK", quick)
    write_edges(tmp_path / "roads", GRAPHS["roads"](), 2)
    prepare(tmp_path / "roads", tmp_path / "fine", partitions=2, degree=10, most_ghosts=3.0)  # not refused
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    ends = _attached(200_000, 3)
    pq.write_table(pa.table({"source": ends[:, 0], "target": ends[:, 1]}), tmp_path / "edges.parquet", row_group_size=100_000)
    with pytest.raises(TooManyGhostsError, match=r"ghosts.* of 100 hops.* are allowed.*one machine.*GPU"):
        prepare(tmp_path / "edges.parquet", tmp_path / "work", partitions=8)
    assert not (tmp_path / "work").exists(), "nothing is begun"


def _attached(n, links):
    """Edges of a scale-free graph: each node is joined to ends of earlier edges."""
    rng, ends = np.random.default_rng(0), np.empty((links * n, 2), np.int64)
    ends[:links] = [0, 1]
    for k in range(links, len(ends)):
        ends[k] = k // links, ends[rng.integers(k - k % links), 1] if k % 2 else ends[rng.integers(k - k % links), 0]
    return ends[ends[:, 0] != ends[:, 1]]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "auto", "nonnegative": True, "guides": np.zeros(4000)}, "counts.*let"),
        ({"method": "sgwt_deep"}, "whole graph at once.*one machine"),
        ({"refine": True}, "refine= belongs to method='auto' and 'let'"),
        ({"guides": np.zeros(4000)}, "guides= belongs to method='auto' and 'let'"),
        ({"sigma": None}, "sigma must be given"),
        ({"signal": np.zeros(3)}, r"expected \(4000,\), got \(3,\)"),
        ({"signal": np.full(4000, np.nan)}, "4000 have none or NaN"),
        ({"n_probes": 0}, "n_probes"),
        ({"rule": "hard"}, "SURE does not hold"),
        ({"sigma": -1.0}, "sigma"),
    ],
)
def test_what_cannot_be_done_is_said(roads, settings, words):
    graph, folder = roads
    settings = {"sigma": 1.0, "signal": noisy_on(graph), **settings}
    with pytest.raises(ValueError, match=words):
        denoise(folder, settings.pop("signal"), **settings)


def test_private_counts_stay_out_and_releases_keep_their_noise(roads):
    graph, folder = roads

    zeros = np.zeros(graph.n, dtype=int)
    counts = hg.privacy.declare_counts(graph, zeros, unit="person", adjacency="add-remove", sensitivity=1)
    with pytest.raises(TypeError, match="exact counts are private"):
        denoise(folder, counts, sigma=1.0)
    release = hg.Noisy(noisy_on(graph), 1.0, "release", graph.hash)
    found = denoise(folder, release, method="sgwt_sure")
    assert found.sigma == 1.0
    np.testing.assert_array_equal(found.read(), hg.denoise(graph, release, method="sgwt_sure").signal)
    with pytest.raises(ValueError, match="another graph"):
        denoise(folder, hg.Noisy(noisy_on(graph), 1.0, "release", "0" * 64))
    with pytest.raises(ValueError, match="sigma travels"):
        denoise(folder, release, sigma=2.0)


def test_a_client_that_is_killed_goes_on_where_it_was(tmp_path):
    """Killed by itself as each stage begins, and called again until it is through: the same bits in the end."""
    graph = hg.datasets.grid(40, 40)
    noisy = noisy_on(graph)
    np.save(tmp_path / "noisy.npy", noisy)
    code = (
        "import os, signal, sys\n"
        "import hushgraph as hg\n"
        "from hushgraph.distributed import denoise, prepare; from hushgraph.distributed.denoising import resume\n"
        "stage = sys.argv[1]\n"
        "def watch(share, what):\n"
        "    if what == stage and share > 0.01:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "prepare(hg.datasets.grid(40, 40), 'work', partitions=3, most_ghosts=1e9, progress=watch)\n"
        "denoise('work', 'noisy.npy', sigma=1.0, progress=watch)\n"
    )
    ends = []
    for stage in ("zones", "transform", "scales", "finish", "write", "none"):
        done = subprocess.run([sys.executable, "-c", code, stage], cwd=tmp_path, check=False, timeout=300, env={**os.environ})
        ends.append(done.returncode)
    assert ends == [-9, -9, -9, -9, -9, 0]
    found = resume(tmp_path / "work")
    one = hg.denoise(graph, noisy, sigma=1.0, method="sgwt_scaled")
    assert_equal(found, one)
    assert len(list(Path(tmp_path / "work" / "runs").iterdir())) == 1
