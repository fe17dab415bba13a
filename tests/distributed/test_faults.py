"""What goes wrong around distributed runs: full disks, two runs at once, edge files that are none, commands that are stopped."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.distributed import denoise, prepare, resume, store
from hushgraph.distributed.store import read_json

from ..support.interrupts import hears_interrupts
from .cases import ANY, assert_equal, noisy_on, write_edges

pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
pytest.importorskip("fsspec")


@pytest.fixture(scope="module")
def grid():
    graph = hg.datasets.grid(30, 40)
    return graph, noisy_on(graph), hg.denoise(graph, noisy_on(graph), sigma=1.0, method="sgwt_scaled")


# ---- full disks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), OSError("1000 requested and 12 written")])
def test_a_full_disk_is_said_and_leaves_nothing_half_written(grid, tmp_path, monkeypatch, failure):
    graph, noisy, one = grid
    usual, room = store.atomic_file, [9]

    @contextmanager
    def atomic_file(path, **options):
        with usual(path, **options) as draft:
            yield draft
            room[0] -= path.suffix == ".npy"
            if room[0] == 0:
                draft.write_bytes(draft.read_bytes()[:-4])
                raise failure

    monkeypatch.setattr(store, "atomic_file", atomic_file)

    def both():
        prepare(graph, tmp_path / "work", partitions=3, most_ghosts=ANY)
        denoise(tmp_path / "work", noisy, sigma=1.0)

    for _ in range(2):  # in preparing, then, with more room, in denoising
        with pytest.raises(OSError, match=r"no room on the disk.*goes on with what is done") as raised:
            both()
        assert raised.value.errno == errno.ENOSPC
        assert not list((tmp_path / "work").rglob("*.tmp"))
        room[0] = 60
    monkeypatch.setattr(store, "atomic_file", usual)
    assert (tmp_path / "work" / "manifest.json").exists()
    assert_equal(resume(tmp_path / "work"), one)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="room is not reserved here")
def test_no_room_for_a_signal(grid, tmp_path, monkeypatch):
    graph, noisy, one = grid
    prepare(graph, tmp_path / "work", partitions=1)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(OSError, match="no room"):
            denoise(tmp_path / "work", noisy, sigma=1.0)
    assert list((tmp_path / "work" / "signals").iterdir()) == []
    assert_equal(denoise(tmp_path / "work", noisy, sigma=1.0), one)


# ---- two runs at once ------------------------------------------------------------------------------------------------


def test_two_runs_in_one_folder_are_refused(grid, tmp_path):
    pytest.importorskip("fcntl")
    graph, noisy, one = grid
    work, left = tmp_path / "work", [True]

    def again(share, what):
        with pytest.raises(RuntimeError, match="another run works in"):
            prepare(graph, work, partitions=2, most_ghosts=ANY)

    prepare(graph, work, partitions=2, most_ghosts=ANY, progress=lambda share, what: share < 1 and again(share, what))

    def denoised_again(share, what):
        if what == "finish" and left:
            left.clear()  # runs inside tell the same watcher
            for settings in ({}, {"resume": False}):
                with pytest.raises(RuntimeError, match="another run works in"):
                    denoise(work, noisy, sigma=1.0, **settings)
            denoise(work, noisy, sigma=2.0)  # another run of the same graph

    assert_equal(denoise(work, noisy, sigma=1.0, progress=denoised_again), one)


# ---- progress --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["sgwt_sure", "sgwt_scaled", "let", "auto"])
def test_progress_goes_from_0_to_1_also_when_resumed(grid, tmp_path, method, few_probes):
    graph, noisy, _ = grid
    write_edges(tmp_path / "edges", graph, 2)

    class StoppedError(Exception):
        pass

    def shares_of(call, *given, stop=2.0, **settings):
        seen = []

        def watch(share, what):
            seen.append(share)
            if share > stop:
                raise StoppedError

        try:
            call(*given, progress=watch, **settings)
        except StoppedError:
            assert stop < 2.0
        assert seen == sorted(seen)
        return seen

    for edges, name in ((graph, "graph"), (tmp_path / "edges", "files")):
        shares = shares_of(prepare, edges, tmp_path / name, partitions=3, most_ghosts=ANY)
        assert (shares[0], shares[-1]) == (0.0, pytest.approx(1.0))
        assert len(set(shares)) >= 4
    shares_of(denoise, tmp_path / "files", noisy, sigma=1.0, method=method, stop=0.6)
    shares = shares_of(resume, tmp_path / "files")
    assert (shares[0], shares[-1]) == (0.0, pytest.approx(1.0))
    assert max(np.diff(shares)) < 0.25
    assert shares_of(resume, tmp_path / "files") == [1.0]


# ---- edge files ------------------------------------------------------------------------------------------------------

WHOLE_NUMBERS = "must hold node numbers, integers from 0 without gaps"


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"source": [0.0, float("nan")], "target": [1, 2]}, WHOLE_NUMBERS),
        ({"source": [0.0, 1.0], "target": [1, 2]}, WHOLE_NUMBERS),
        ({"source": [0, None], "target": [1, 2]}, f"{WHOLE_NUMBERS}; got int64 with 1 missing"),
        ({"source": ["a", "b"], "target": [1, 2]}, f"{WHOLE_NUMBERS}; got string"),
        ({"source": [0, -1], "target": [1, 2]}, "has node -1; expected numbers from 0"),
        ({"source": [0, 2**40], "target": [1, 2]}, "node 1099511627776.*renumber"),
        ({"source": [0, 1], "target": [1, 2], "weight": [1.0, -1.0]}, "must not be negative"),
        ({"source": [0, 1], "target": [1, 2], "weight": [1.0, None]}, "must be finite; 1 are NaN"),
        ({"source": [0, 1], "target": [1, 2], "weight": ["1", "2"]}, "must hold weights, numbers from 0; got string"),
        ({"from": [0, 1], "weight": [1, 2]}, "one column each for source and target"),
    ],
)
def test_edges_that_are_none(tmp_path, columns, words):
    pq.write_table(pa.table(columns), tmp_path / "edges.parquet")
    for parts in (1, 2):
        with pytest.raises(ValueError, match=words):
            prepare(tmp_path / "edges.parquet", tmp_path / str(parts), partitions=parts, most_ghosts=ANY)


def test_files_that_are_not_parquet(tmp_path):
    (tmp_path / "edges.parquet").write_text("source,target\n0,1\n")
    with pytest.raises(ValueError, match="not a parquet file, or is damaged"):
        prepare(tmp_path / "edges.parquet", tmp_path / "work")


def test_self_loops_are_dropped_and_edges_given_twice_are_one(tmp_path):
    pq.write_table(pa.table({"source": [0, 1, 1, 1], "target": [1, 2, 1, 0]}), tmp_path / "edges.parquet")
    found = prepare(tmp_path / "edges.parquet", tmp_path / "work", partitions=2, most_ghosts=ANY)
    assert (found.n, found.n_edges) == (3, 2)


# ---- commands --------------------------------------------------------------------------------------------------------


@pytest.mark.cluster
def test_a_command_that_is_stopped_says_how_to_go_on(grid, tmp_path):
    """Ctrl-C reaches the command and its workers alike."""
    pytest.importorskip("distributed")
    graph, noisy, one = grid
    prepare(graph, tmp_path / "work", partitions=3, most_ghosts=ANY)
    np.save(tmp_path / "noisy.npy", noisy)
    runs = tmp_path / "work" / "runs"
    for _ in range(5):  # Python loses an interrupt that comes while a callback of its garbage collector runs; Dask has one
        process, said = _stopped_command(tmp_path, runs)
        if process.returncode:
            break
        shutil.rmtree(runs)
    assert process.returncode == 130, said
    assert "Watch the tasks at http" in said
    assert "hushgraph distributed resume work goes on with it" in said
    assert "Traceback" not in said
    limit = time.monotonic() + 60
    while _is_alive(process.pid):
        assert time.monotonic() < limit, "a worker is left behind"
        time.sleep(0.05)
    assert read_json(next(runs.glob("*/run.json")))["method"] == "sgwt_scaled"
    assert_equal(resume(tmp_path / "work"), one)


def _stopped_command(folder, runs):
    words = ["distributed", "denoise", "work", "noisy.npy", "--sigma", "1", "--workers", "1"]
    command = [sys.executable, "-c", "from hushgraph.cli import app\nif __name__ == '__main__': app()", *words]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=hears_interrupts
    )
    limit = time.monotonic() + 60
    while not list(runs.glob("*/run.json")) and time.monotonic() < limit:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    return process, process.communicate(timeout=60)[0].decode()


def _is_alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
