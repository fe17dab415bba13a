"""What distributed runs leave: part files of one run and no other, lost ones written again, nothing half-written, folders that move."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.distributed import denoise, prepare, resume
from hushgraph.distributed.store import Output, read_json, write_json

from .cases import ANY, METHODS, assert_equal, noisy_on

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("fsspec")


@pytest.fixture
def grid(tmp_path):
    """A small graph in three partitions, and a noisy signal on it."""
    graph = hg.datasets.grid(20, 20)
    prepare(graph, tmp_path / "work", partitions=3, most_ghosts=ANY)
    return graph, tmp_path / "work", noisy_on(graph)


# ---- part files ----------------------------------------------------------------------------------------------------


def test_an_output_folder_belongs_to_one_run(grid, tmp_path):
    graph, work, noisy = grid
    first = denoise(work, noisy, sigma=1.0, output=tmp_path / "out")
    prepare(graph, tmp_path / "fewer", partitions=2, most_ghosts=ANY)
    for folder, values in ((tmp_path / "fewer", noisy), (work, noisy + 1.0)):
        with pytest.raises(
            ValueError, match=r"holds part-00000.parquet, which is not of this run; choose another folder, or remove"
        ):
            denoise(folder, values, sigma=1.0, output=tmp_path / "out")
    np.testing.assert_array_equal(first.read(), denoise(work, noisy, sigma=1.0, output=tmp_path / "out", resume=False).read())
    pq.write_table(pa.table({"mine": [1]}), tmp_path / "out" / "mine.parquet")
    with pytest.raises(ValueError, match=r"holds mine.parquet"):
        denoise(work, noisy, sigma=1.0, output=tmp_path / "out")
    assert len(first.read()) == graph.n, "only the parts of the run are read"
    other = denoise(tmp_path / "fewer", noisy, sigma=1.0, output=tmp_path / "other")
    shutil.copy(tmp_path / "other" / "part-00000.parquet", tmp_path / "out" / "part-00000.parquet")
    with pytest.raises(ValueError, match="is of another"):
        first.read()
    part = tmp_path / "other" / "part-00001.parquet"
    pq.write_table(pq.read_table(part).slice(3), part)
    with pytest.raises(ValueError, match="must hold 400 nodes, and hold 397"):
        other.read()


@pytest.mark.parametrize("damage", ["gone", "one gone", "cut off", "marks gone", "signals gone"])
def test_a_result_that_is_lost_is_written_again(grid, tmp_path, damage):
    graph, work, noisy = grid
    first = denoise(work, noisy, sigma=1.0, output=tmp_path / "out")
    part = tmp_path / "out" / "part-00001.parquet"
    if damage in ("gone", "signals gone"):
        shutil.rmtree(tmp_path / "out")
    elif damage == "one gone":
        part.unlink()
    elif damage == "cut off":
        part.write_bytes(part.read_bytes()[:-20])
    elif damage == "marks gone":
        (first.folder / "00001" / "write.json").unlink()
    if damage == "signals gone":
        (first.folder / "00001" / "finish.signal.npy").unlink()
    if damage in ("gone", "one gone"):
        with pytest.raises(FileNotFoundError, match="is gone; call denoise"):
            first.read()
    seen = []
    again = resume(work, progress=lambda share, what: seen.append(what))
    assert set(seen) == {"write"} or damage == "signals gone"
    assert_equal(again, hg.denoise(graph, noisy, sigma=1.0, method="sgwt_scaled"))


@pytest.mark.parametrize("method", [*METHODS, "let"])
def test_a_signal_that_is_better_left_alone(grid, tmp_path, method):
    graph, work, usual = grid
    noisy = np.random.default_rng(4).normal(0, 100.0, graph.n)  # without shape, and far louder than the noise is said to be
    one = hg.denoise(graph, noisy, sigma=1e-3, method=method)
    found = denoise(work, noisy, sigma=1e-3, method=method, output=tmp_path / "out")
    assert found.unchanged
    np.testing.assert_array_equal(found.read(), noisy)
    np.testing.assert_array_equal(one.signal, noisy)
    assert found.risk == pytest.approx(one.risk, rel=1e-12)
    assert found.risk == pytest.approx(graph.n * 1e-6, rel=1e-12), "that of doing nothing"
    shutil.rmtree(tmp_path / "out")
    np.testing.assert_array_equal(resume(work).read(), noisy)
    assert not denoise(work, usual, sigma=1.0, method=method).unchanged


@pytest.mark.parametrize("settings", [{"nonnegative": True}, {"integer": True}, {"nonnegative": True, "integer": True}])
def test_finished_signals_do_not_change_a_bit(grid, settings):
    graph, work, noisy = grid
    for method in METHODS:
        one = hg.denoise(graph, noisy - 2.0, sigma=1.0, method=method, **settings)
        assert_equal(denoise(work, noisy - 2.0, sigma=1.0, method=method, **settings), one)


# ---- files of stages -----------------------------------------------------------------------------------------------


def stages_in(folder):
    return {path.name.strip(".").split(".")[0] for path in Path(folder).glob("0*/*")}


def test_drafts_and_stages_do_not_stay(grid):
    _, work, noisy = grid
    first = denoise(work, noisy, sigma=1.0, keep=True)
    assert "transform" in stages_in(first.folder)
    assert "transform" in stages_in(denoise(work, noisy, sigma=1.0).folder), "kept by an earlier call"
    done = read_json(first.folder / "result.json")
    write_json(first.folder / "result.json", {**done, "keep": False})  # as if killed before stages were removed
    (first.folder / "00001" / ".transform.bands.npy.1.ab.tmp").write_bytes(b"half")
    (first.folder / "denoised" / ".part-00001.ab.tmp").write_bytes(b"half")
    again = resume(work)
    assert stages_in(first.folder) == {"finish", "write"}
    assert not list(first.folder.rglob("*.tmp"))
    assert again.timings == first.timings


def test_drafts_of_a_killed_preparation_are_removed(tmp_path):
    graph = hg.datasets.grid(20, 20)
    prepare(graph, tmp_path / "work", partitions=2, most_ghosts=ANY)
    (tmp_path / "work" / "manifest.json").unlink()
    for folder in (tmp_path / "work", next((tmp_path / "work").glob("graph-*/parts/00001"))):
        (folder / ".zone.nodes.npy.1.ab.tmp").write_bytes(b"half")
    prepare(graph, tmp_path / "work", partitions=2, most_ghosts=ANY)
    assert not list((tmp_path / "work").rglob("*.tmp"))


def test_a_mark_comes_after_what_it_vouches_for(tmp_path, monkeypatch):
    """Array and folder are on disk before the mark takes its place."""
    seen = []
    real_sync, real_replace = os.fsync, Path.replace

    def fsync(number):
        seen.append(Path(os.readlink(f"/proc/self/fd/{number}")).name)
        real_sync(number)

    def replace(path, target):
        seen.append(f"to {Path(target).name}")
        return real_replace(path, target)

    if not os.path.exists("/proc/self/fd"):
        pytest.skip("names of open files are read from /proc")
    (tmp_path / "part").mkdir()
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    out = Output(tmp_path / "part", "stage")
    out.save("x", np.arange(3))
    out.mark_done({})
    mark = seen.index("to stage.json")
    assert seen.index("to stage.x.npy") < seen.index("stage.x.npy") < seen.index("part") < mark
    assert seen[mark - 1].endswith("-stage.json.tmp"), "the mark itself"
    assert seen[-1] == "part"


def test_a_folder_that_was_moved(grid, tmp_path):
    graph, work, noisy = grid
    first = denoise(work, noisy, sigma=1.0)
    one = hg.denoise(graph, noisy, sigma=1.0, method="sgwt_scaled")
    shutil.move(work, tmp_path / "moved")
    again = resume(tmp_path / "moved")
    assert again.timings == first.timings
    assert_equal(again, one)
    assert prepare(graph, tmp_path / "moved", partitions=3, most_ghosts=ANY).n == graph.n
    found = denoise(tmp_path / "moved", noisy, sigma=1.0, method="sgwt_sure")
    assert_equal(found, hg.denoise(graph, noisy, sigma=1.0, method="sgwt_sure"))
    assert Path(found.address).is_relative_to(tmp_path / "moved")
