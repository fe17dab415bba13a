"""A work folder in an S3 store, on a real server in its own process: the same bits, through deaths and through faults of the store."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import hushgraph as hg
from hushgraph.cli import app
from hushgraph.distributed import denoise, denoising, object_store, prepare, preparing, resume
from hushgraph.distributed.object_store import StoredPath, StoreError, file_system_of

from .cases import ANY, assert_equal, noisy_on, write_edges
from .stores import BUCKET, environment, faulty_proxy, s3_server, settings_of

cloudpickle = pytest.importorskip("cloudpickle")
distributed = pytest.importorskip("distributed")
for package in ("pyarrow", "s3fs", "moto.server", "flask"):
    pytest.importorskip(package)
from . import deaths  # noqa: E402 - it imports distributed

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]  # warnings of other packages
PARTS = 3


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with s3_server(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture(scope="module")
def town(server, tmp_path_factory):
    """Edges and a signal in the store, and the result of one machine from the local disk."""
    graph, folder = hg.datasets.roads(4000), tmp_path_factory.mktemp("town")
    write_edges(folder / "edges", graph, 3)
    np.save(folder / "noisy.npy", noisy_on(graph))
    np.save(folder / "places.npy", graph.coords)
    with environment(settings_of(server, folder / "cache")):
        system, _ = file_system_of(f"s3://{BUCKET}")
        system.mkdir(BUCKET)
        for path in [*(folder / "edges").iterdir(), folder / "noisy.npy", folder / "places.npy"]:
            system.put_file(str(path), f"{BUCKET}/{path.relative_to(folder)}")
    prepare(folder / "edges", folder / "work", coords=folder / "places.npy", partitions=PARTS, most_ghosts=ANY)
    one = denoise(folder / "work", folder / "noisy.npy", sigma=1.0)
    assert_equal(one, hg.denoise(graph, noisy_on(graph), sigma=1.0, method="sgwt_scaled"))
    return one


@pytest.fixture
def direct(server, tmp_path):
    """This process talks to the server."""
    with environment(settings_of(server, tmp_path / "cache")):
        yield


@pytest.fixture
def faults(server, tmp_path, monkeypatch):
    """This process talks to a proxy, whose faults these are. It does not wait long for answers."""
    from fsspec.config import conf

    monkeypatch.setitem(conf, "s3", {"config_kwargs": {"read_timeout": 1, "connect_timeout": 1}})
    with faulty_proxy(server) as (address, faults), environment(settings_of(address, tmp_path / "cache")):
        yield faults


def prepared(name, **settings):
    edges, places = f"s3://{BUCKET}/edges", f"s3://{BUCKET}/places.npy"
    return prepare(edges, f"s3://{BUCKET}/{name}", coords=places, partitions=PARTS, most_ghosts=ANY, **settings)


def denoised(name, **settings):
    return denoise(f"s3://{BUCKET}/{name}", f"s3://{BUCKET}/noisy.npy", sigma=1.0, **settings)


def assert_same(found, one):
    np.testing.assert_array_equal(found.thresholds, one.thresholds)
    np.testing.assert_array_equal(found.read(), one.read())
    assert found.risk == one.risk


# ---- the same bits ---------------------------------------------------------------------------------------------------


def test_all_files_in_the_store(town, direct, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert prepared("all").folder == StoredPath(f"s3://{BUCKET}/all")
    result = denoised("all", output=f"s3://{BUCKET}/all results")
    assert_same(result, town)
    assert_same(resume(f"s3://{BUCKET}/all"), town)
    system, _ = file_system_of(f"s3://{BUCKET}")
    assert len(system.ls(f"{BUCKET}/all results")) == PARTS
    assert not [name for name in system.find(f"{BUCKET}/all") if "/lock-" in name or name.endswith(".tmp")]
    assert [path.name for path in tmp_path.iterdir()] == ["cache"], "nothing else is left on this disk"


def test_commands_take_addresses(town, direct):
    words = ["prepare", f"s3://{BUCKET}/edges", "--work", f"s3://{BUCKET}/command", "--partitions", PARTS, "--most-ghosts", ANY]
    runs = [
        [*words, "--coords", f"s3://{BUCKET}/places.npy"],
        ["denoise", f"s3://{BUCKET}/command", f"s3://{BUCKET}/noisy.npy", "--sigma", 1],
        ["resume", f"s3://{BUCKET}/command"],
    ]
    for words in runs:
        done = CliRunner().invoke(app, ["distributed", *map(str, words), "--json"])
        assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["risk"] == town.risk


def test_a_bucket_that_is_not_there(direct):
    with pytest.raises(StoreError, match=r"must lie in a bucket that exists; its store answered .*; create the bucket"):
        prepare(hg.datasets.grid(9, 9), "s3://nowhere/work", partitions=1)


# ---- deaths ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def client(direct, tmp_path):
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster, distributed.Client(cluster) as client:
        workers = deaths.Workers(cluster.scheduler_address, str(tmp_path / "dask"), 2)
        workers.start()
        client.wait_for_workers(2, timeout=60)
        yield client
        workers.end()


def test_a_worker_killed_in_each_stage(town, client, tmp_path):
    cloudpickle.register_pickle_by_value(deaths)
    for call, stages in ((prepared, preparing.STAGES), (denoised, denoising.STAGES)):
        folder = tmp_path / call.__name__
        folder.mkdir()
        plugin = deaths.DiesOnce(folder, stages)
        client.wait_for_workers(2, timeout=60)
        client.register_plugin(plugin)
        found = call("workers", client=client)
        client.unregister_worker_plugin(plugin.name)
        ran = {deaths.NAMES.get(stage, stage) for stage in found.timings}
        assert plugin.ran_again() == sorted(ran)
    assert len(ran) > 6
    assert_same(found, town)


CLIENT = f"""
import sys
from pathlib import Path
import distributed
from hushgraph.distributed import denoise, prepare
from deaths import DiesOnce

if __name__ == "__main__":
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory="dask") as cluster:
        with distributed.Client(cluster) as client:
            client.register_plugin(DiesOnce(Path("deaths").resolve(), [sys.argv[1]], group=True))
            where = dict(coords="s3://{BUCKET}/places.npy", partitions={PARTS}, most_ghosts={ANY})
            prepare("s3://{BUCKET}/edges", "s3://{BUCKET}/client", client=client, **where)
            denoise("s3://{BUCKET}/client", "s3://{BUCKET}/noisy.npy", sigma=1.0, client=client)
"""


@pytest.mark.store
def test_a_client_killed_with_its_cluster(town, server, tmp_path):
    """Client, scheduler and workers die at once, twice; a run elsewhere, with an empty cache, ends the work."""
    (tmp_path / "deaths").mkdir()
    (tmp_path / "client.py").write_text(CLIENT)
    paths = os.pathsep.join([str(Path(deaths.__file__).parent), os.environ.get("PYTHONPATH", "")])
    values = {**os.environ, **settings_of(server, tmp_path / "there"), "PYTHONPATH": paths}
    for stage in ("zones", "finish"):
        command = [sys.executable, "client.py", stage]
        done = subprocess.run(command, cwd=tmp_path, env=values, check=False, timeout=180, start_new_session=True)
        assert done.returncode == -signal.SIGKILL
    with environment(settings_of(server, tmp_path / "here")):
        work = StoredPath(f"s3://{BUCKET}/client")
        assert not list(work.glob("runs/*/result.json"))
        assert list(work.glob("runs/*/*/transform.json")), "what was done is there"
        began = time.monotonic()
        assert_same(resume(f"s3://{BUCKET}/client"), town)
        assert time.monotonic() - began < object_store.LEASE + 30


@pytest.mark.store
def test_two_runs_in_one_folder_are_refused(town, direct):
    prepared("two")
    seen = []

    def again(share, what):
        if what == "finish" and not seen:
            seen.append(what)
            with pytest.raises(RuntimeError, match="another run works in s3://"):
                denoised("two")

    assert_same(denoised("two", progress=again), town)
    assert seen


# ---- a store that fails ----------------------------------------------------------------------------------------------


@pytest.mark.store
@pytest.mark.parametrize(("kind", "share"), [("500", 0.1), ("503", 0.1), ("drop", 0.2), ("hang", 0.02)])
def test_a_store_that_fails_now_and_then(town, faults, kind, share):
    faults.fail(kind, share=share)
    prepared(f"often {kind}")
    assert_same(denoised(f"often {kind}", output=f"s3://{BUCKET}/often {kind} results"), town)
    assert faults.failed > 5


@pytest.mark.store
def test_a_store_that_is_gone_for_a_while(town, faults):
    prepared("while")
    begun = []

    def fail_for_a_while(share, what):
        if what == "scales" and not begun:
            begun.append(what)
            faults.fail("503")
            threading.Timer(6, faults.heal).start()

    assert_same(denoised("while", progress=fail_for_a_while), town)
    assert begun


@pytest.mark.store
@pytest.mark.parametrize(("kind", "after"), [("500", 3), ("503", 60), ("drop", 150), ("hang", 90)])
def test_a_store_that_is_gone_for_good(town, faults, monkeypatch, kind, after):
    """The call ends with advice, nothing is lost, and a later call goes on."""
    name = f"gone {kind} {after}"
    prepared(name)
    with monkeypatch.context() as patch:
        patch.setattr(object_store, "PATIENCE", 2.5)
        faults.fail(kind, after=after)
        began = time.monotonic()
        with pytest.raises(
            StoreError, match=r"its store failed for \d+ seconds, \d+ times, lastly with .*run the same call again: it goes on"
        ):
            denoised(name)
        assert time.monotonic() - began < 30
        assert faults.failed > 1
    faults.heal()
    work = StoredPath(f"s3://{BUCKET}/{name}")
    done = {path.address: path.changed() for path in work.glob("runs/*/*/transform.json")}
    monkeypatch.setattr(object_store, "LEASE", 1.0)  # the process that gave up could not remove its lock
    assert_same(denoised(name, keep=True), town)
    assert done == {address: StoredPath(address).changed() for address in done}, "finished tasks did not run again"


@pytest.mark.store
def test_workers_say_that_the_store_is_gone(town, server, tmp_path):
    """The error of a task reads the same on a cluster, and the task is not repeated again and again."""
    impatient = tmp_path / "impatient.py"
    impatient.write_text("from hushgraph.distributed import object_store\nobject_store.PATIENCE = 2.0\n")
    with faulty_proxy(server) as (address, faults), environment(settings_of(address, tmp_path / "cache")):
        with distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster, distributed.Client(cluster) as client:
            workers = deaths.Workers(cluster.scheduler_address, str(tmp_path / "dask"), 2, more=["--preload", str(impatient)])
            workers.start()
            client.wait_for_workers(2, timeout=60)
            prepared("workers gone", client=client)

            def watch(share, what):
                if what == "finish":
                    faults.fail("503")

            with pytest.raises(StoreError, match=r"its store failed for \d+ seconds, .* lastly with OSError"):
                denoised("workers gone", client=client, progress=watch)
            workers.end()
        faults.heal()
        assert_same(resume(f"s3://{BUCKET}/workers gone"), town)
