"""Work folders at addresses, in a store in memory: the same bits, locks, the cache on this machine, and what is said of faults."""

import errno
import os
import threading
import time

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.distributed import denoise, object_store, prepare, resume
from hushgraph.distributed.addresses import open_file
from hushgraph.distributed.object_store import PatientFile, StoredPath, StoreError, cache_folder, file_system_of, patiently
from hushgraph.distributed.store import (
    Output,
    folder_lock,
    open_draft,
    read_array,
    read_json,
    work_folder,
    write_array,
    write_json,
)

from .cases import ANY, METHODS, assert_equal, noisy_on, write_edges

pytest.importorskip("pyarrow")
fsspec = pytest.importorskip("fsspec")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of its own, an empty store, and pauses that tests can wait for."""
    monkeypatch.setenv("HUSHGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(object_store, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(object_store, "PATIENCE", 0.2)
    object_store._recent.clear()
    yield tmp_path / "cache" / "work"
    fsspec.filesystem("memory").store.clear()
    fsspec.filesystem("memory").pseudo_dirs[:] = [""]


@pytest.fixture(scope="module")
def grid():
    graph = hg.datasets.grid(20, 20)
    return graph, noisy_on(graph)


# ---- a work folder at an address -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_the_same_bits(grid, tmp_path, method):
    graph, noisy = grid
    write_edges(tmp_path / "edges", graph, 2)
    for edges, work in ((graph, "memory://graph"), (tmp_path / "edges", "memory://files/work")):
        found = prepare(edges, work, partitions=3, most_ghosts=ANY)
        assert str(found.folder) == work
        assert prepare(edges, work, partitions=3, most_ghosts=ANY).lambda_upper == found.lambda_upper
        one = hg.denoise(graph, noisy, sigma=1.0, method=method)
        assert_equal(denoise(work, noisy, sigma=1.0, method=method), one)
        assert_equal(resume(found.folder), one)
        assert_equal(denoise(work, noisy, sigma=1.0, method=method, resume=False), one)


def test_a_noise_per_node_and_let(grid, tmp_path):
    graph, noisy = grid
    sigma = np.linspace(0.5, 1.5, graph.n)
    for work in ("memory://folder", tmp_path / "work"):
        prepare(graph, work, partitions=3, most_ghosts=ANY)
    here, there = (denoise(work, noisy, sigma=sigma, method="let") for work in (tmp_path / "work", "memory://folder"))
    np.testing.assert_array_equal(here.read(), there.read())


def test_auto_with_a_guide(tmp_path, few_probes):
    """The fitted filter, the second stage, the graph of guides and their average, also where a run was cut off."""
    graph = hg.datasets.grid(24, 25)
    noisy, other = noisy_on(graph), noisy_on(graph, seed=1)
    settings = {"sigma": 1.0, "method": "auto"}

    class StoppedError(Exception):
        pass

    def stop(share, what):
        if share > 0.8:
            raise StoppedError

    found = []
    for work in (tmp_path / "work", "memory://folder"):
        prepare(graph, work, partitions=2, degree=40, most_ghosts=ANY)
        guides = {"earlier": denoise(work, other, sigma=1.0, method="let"), "bent": np.abs(other - 2)}
        if work == "memory://folder":
            with pytest.raises(StoppedError):
                denoise(work, noisy, **settings, guides=guides, progress=stop)
            found.append(resume(work))
        found.append(denoise(work, noisy, **settings, guides=guides, resume=False))
    for there in found[1:]:
        np.testing.assert_array_equal(there.read(), found[0].read())
        assert (there.risk, there.risk_se, there.details) == (found[0].risk, found[0].risk_se, found[0].details)
    assert found[0].details["experts"].keys() == {"alone", "linear", "bent"}
    assert "refined" in found[0].details
    assert "filter" in found[0].details
    for name in ("alone", "linear", "bent"):
        assert not (found[-1].folder / name).exists()


def test_a_run_that_was_cut_off_goes_on(grid):
    graph, noisy = grid
    prepare(graph, "memory://folder", partitions=3, most_ghosts=ANY)

    class StoppedError(Exception):
        pass

    def stop(share, what):
        if what == "finish":
            raise StoppedError

    with pytest.raises(StoppedError):
        denoise("memory://folder", noisy, sigma=1.0, progress=stop)
    done = list(StoredPath("memory://folder/runs").glob("*/*/transform.json"))
    assert len(done) == 3
    times = [path.changed() for path in done]
    assert_equal(resume("memory://folder", keep=True), hg.denoise(graph, noisy, sigma=1.0, method="sgwt_scaled"))
    assert [path.changed() for path in done] == times, "what was done was not done again"


def test_a_file_address_is_a_folder_here(tmp_path):
    assert work_folder(f"file://{tmp_path}/work") == tmp_path / "work"
    with pytest.raises(ValueError, match="must name a bucket and a folder, such as s3://bucket/folder; got s3://"):
        work_folder("s3://")


def test_a_folder_with_other_files_is_refused(grid):
    StoredPath("memory://other/file.txt").write_bytes(b"mine")
    with pytest.raises(ValueError, match="must be a new or empty folder"):
        prepare(grid[0], "memory://other", partitions=2, most_ghosts=ANY)
    prepare(grid[0], "memory://one", partitions=2, most_ghosts=ANY)
    with pytest.raises(ValueError, match="holds another preparation: partitions differ"):
        prepare(grid[0], "memory://one", partitions=3, most_ghosts=ANY)


def test_a_refused_preparation_leaves_its_folder_to_another():
    rng = np.random.default_rng(0)
    small_world = hg.Graph.from_edges(rng.integers(0, 600, (2000, 2)), n=600)
    with pytest.raises(ValueError, match="GPU"):
        prepare(small_world, "memory://folder", partitions=4)
    assert prepare(small_world, "memory://folder", partitions=1).partitions == 1
    assert len([path for path in StoredPath("memory://folder").iterdir() if path.name.startswith("graph-")]) == 1


def test_addresses_that_cannot_be_written_to(grid, monkeypatch):
    def refuse(*_, **__):
        raise NotImplementedError

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "pipe_file", refuse)
    with pytest.raises(ValueError, match="must lie in a store that can be written to"):
        prepare(grid[0], "memory://folder", partitions=1)


def test_s3_needs_its_package(monkeypatch):
    def missing(*_, **__):
        raise ImportError

    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    with pytest.raises(ImportError, match=r"need s3fs: pip install 'hushgraph\[s3\]'"):
        prepare(hg.datasets.grid(5, 5), "s3://bucket/folder")


# ---- files -----------------------------------------------------------------------------------------------------------


def test_a_file_is_whole_or_missing(cache):
    place = StoredPath("memory://folder/a.npy")
    with pytest.raises(ZeroDivisionError), open_draft(place) as file:
        file.write(b"half" * (1 // 0))
    assert not place.exists()
    assert list(cache.iterdir()) == []
    write_array(place, np.arange(5))
    np.testing.assert_array_equal(read_array(place, whole=False), np.arange(5))
    assert len(list(cache.iterdir())) == 1, "what was written here is not fetched"


def test_a_mark_with_missing_or_short_files_does_not_count():
    out = Output(StoredPath("memory://folder/00000"), "stage")
    out.save("a", np.arange(3))
    out.save("b", np.arange(4))
    assert out.read_facts() is None
    out.mark_done({"x": 1})
    assert out.read_facts() == {"x": 1}
    whole = out.path("b").read_bytes()
    out.path("b").write_bytes(whole[:-8])
    assert out.read_facts() is None
    out.path("b").write_bytes(whole)
    assert out.read_facts() == {"x": 1}
    out.path("a").unlink()
    assert out.read_facts() is None
    out.remove()
    assert out.folder.sizes() == {}


def test_a_replaced_file_is_fetched_again():
    place = StoredPath("memory://folder/a.npy")
    write_array(place, np.arange(5))
    other = StoredPath("memory://folder/b.npy")
    write_array(other, np.arange(5) + 1)
    assert read_array(place)[0] == 0
    time.sleep(0.01)
    place.write_bytes(other.read_bytes())
    object_store._recent.clear()
    assert read_array(place)[0] == 1


def test_names():
    place = StoredPath("s3://bucket/folder/") / "parts" / "00001"
    assert (str(place), place.name, str(place.parent)) == ("s3://bucket/folder/parts/00001", "00001", "s3://bucket/folder/parts")
    assert (place / "a.json").suffix == ".json"
    assert place == StoredPath("s3://bucket/folder/parts/00001")
    assert len({place, StoredPath(str(place))}) == 1
    assert "StoredPath('s3://" in repr(place)


def test_the_cache_keeps_to_its_share_of_the_disk(cache, monkeypatch):
    places = [StoredPath(f"memory://folder/{k}.npy") for k in range(5)]
    for k, place in enumerate(places):
        write_array(place, np.full(1000, k))
        os.utime(place.fetched(), (time.time() - 100 + k,) * 2)
    size = next(cache.iterdir()).stat().st_size
    usage = type("Usage", (), {"free": size})
    monkeypatch.setattr(object_store.shutil, "disk_usage", lambda _: usage)
    object_store._make_room(cache, size)
    left = {
        place.name for place in places if place.address in object_store._recent and object_store._recent[place.address][0].exists()
    }
    assert left == {"3.npy", "4.npy"}, "half of the room, with the file to come; the longest unused ones went"
    assert [int(read_array(place)[0]) for place in places] == [0, 1, 2, 3, 4]
    for path in cache.iterdir():
        os.utime(path, (1, 1))
    object_store._make_room(cache, 0)
    assert not list(cache.iterdir()), "unused for a week"


def test_a_copy_that_vanishes_is_fetched_again(cache, monkeypatch):
    place = StoredPath("memory://folder/a.npy")
    write_array(place, np.arange(5))
    usual, tries = StoredPath.fetched, []

    def fetched(self):
        copy = usual(self)
        tries.append(copy)
        if len(tries) == 1:
            copy.unlink()
        return copy

    monkeypatch.setattr(StoredPath, "fetched", fetched)
    np.testing.assert_array_equal(read_array(place), np.arange(5))
    assert len(tries) == 2


def test_a_cache_of_another_user_is_refused(monkeypatch, cache):
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(RuntimeError, match=r"must belong to the user of this process.*set HUSHGRAPH_CACHE"):
        cache_folder()


# ---- locks -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(object_store, "LEASE", 1.5)
    monkeypatch.setattr(object_store, "RENEWAL", 0.1)


def test_a_living_process_keeps_its_lock(quick):
    folder = StoredPath("memory://folder")
    with folder_lock(folder), pytest.raises(RuntimeError, match="another run works in memory://folder"), folder_lock(folder):
        pass
    with folder_lock(folder):
        assert len(list(folder.iterdir())) == 1
    assert not list(folder.iterdir())


def test_the_lock_of_a_dead_process_ends(quick):
    folder = StoredPath("memory://folder")
    (folder / "lock-dead").write_bytes(b"")
    began = time.monotonic()
    with folder_lock(folder):
        assert 1.0 < time.monotonic() - began < 10
        assert not (folder / "lock-dead").exists()


def test_of_many_processes_at_most_one_has_the_lock(quick):
    folder, inside, most, refused = StoredPath("memory://folder"), [], [0], []

    def enter():
        try:
            with folder_lock(folder):
                inside.append(1)
                most[0] = max(most[0], len(inside))
                time.sleep(0.4)
                inside.pop()
        except RuntimeError:
            refused.append(1)

    threads = [threading.Thread(target=enter) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] <= 1
    assert refused


# ---- faults ----------------------------------------------------------------------------------------------------------


def failing(times, error):
    """An action that fails so many times, and the list of its tries."""
    tries = []

    def action():
        tries.append(time.monotonic())
        if len(tries) <= times:
            raise error
        return "done"

    return action, tries


def test_a_store_that_fails_for_a_while_is_asked_again(monkeypatch):
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    for error in (
        OSError(errno.EIO, "internal error"),
        TimeoutError(),
        ConnectionResetError(),
        type("Slow", (Exception,), {"__module__": "botocore.exceptions"})(),
    ):
        action, tries = failing(4, error)
        assert patiently(action, "s3://bucket/x") == "done"
        assert len(tries) == 5
        assert pauses[-1] > pauses[-4], "pauses grow"


def test_a_store_that_fails_for_long_is_given_up():
    action, tries = failing(10**6, OSError(errno.EBUSY, "reduce your request rate"))
    said = r"s3://bucket/x must be readable and writable; its store failed for \d+ seconds, \d+ times, lastly with OSError: .*rate; see that the store .* run the same call again"
    with pytest.raises(StoreError, match=said) as raised:
        patiently(action, "s3://bucket/x")
    assert len(tries) > 3
    assert isinstance(raised.value, OSError)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError("Access Denied"), "with the credentials of this process; .*Access Denied; give it rights"),
        (FileNotFoundError("no such bucket"), "must lie in a bucket that exists; .*create the bucket"),
        (
            type("NoCredentialsError", (Exception,), {"__module__": "botocore.exceptions"})("none"),
            "needs credentials .*set them on client and workers",
        ),
    ],
)
def test_what_a_retry_does_not_change_is_said_at_once(error, said):
    action, tries = failing(10**6, error)
    with pytest.raises(StoreError, match=said):
        patiently(action, "s3://bucket/x", missing_ok=False)
    assert len(tries) == 1


def test_errors_of_programs_and_of_full_disks_are_passed_on():
    for error in (KeyError("x"), OSError(errno.ENOSPC, "full"), StoreError(errno.EIO, "said")):
        action, tries = failing(10**6, error)
        with pytest.raises(type(error)) as raised:
            patiently(action, "s3://bucket/x")
        assert raised.value is error
        assert len(tries) == 1


def test_reads_are_repeated_from_the_same_place():
    StoredPath("memory://edges/a").write_bytes(b"0123456789")
    with open_file("memory://edges/a") as file:
        assert isinstance(file, PatientFile)
        plain, tries = file._file, []

        class Shaky:
            def read(self, size):
                tries.append(size)
                if len(tries) % 2:
                    raise OSError(errno.EIO, "dropped")
                return plain.read(size)

            def __getattr__(self, name):
                return getattr(plain, name)

        file._file = Shaky()
        assert (file.read(3), file.read(3), file.tell()) == (b"012", b"345", 6)
        file.seek(8)
        assert file.read(9) == b"89"
        assert len(tries) == 6
    assert file.closed


def test_a_store_that_fails_is_not_taken_for_an_empty_one(monkeypatch):
    """A mark that cannot be read may be there: the work must not begin anew, nor a folder be taken for a new one."""
    place = StoredPath("memory://folder/manifest.json")
    write_json(place, {"version": 1})

    def fail(*_, **__):
        raise OSError(errno.EIO, "internal error")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "cat_file", fail)
    with pytest.raises(StoreError):
        read_json(place)
    with pytest.raises(StoreError):
        denoise("memory://folder", np.zeros(3), sigma=1.0)


def test_an_upload_that_arrives_short_is_not_taken(monkeypatch):
    usual = StoredPath.info
    monkeypatch.setattr(StoredPath, "info", lambda self: {**usual(self), "size": 3})
    with pytest.raises(StoreError, match=r"must have \d+ bytes, as were sent; its store has 3"):
        write_array(StoredPath("memory://folder/a.npy"), np.arange(5))


def test_options_of_s3_leave_the_users_configuration_alone(monkeypatch):
    from fsspec.config import conf

    monkeypatch.setitem(conf, "s3", {"config_kwargs": {"read_timeout": 99}})
    options = object_store._options("s3")
    assert options["config_kwargs"] == {"retries": {"total_max_attempts": 1}, "read_timeout": 99}
    assert object_store._options("memory") == object_store._options("/tmp") == {}
    assert file_system_of("memory://a")[1] == "/a"
