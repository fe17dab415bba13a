"""On the worker processes of a real cluster: the same bits, also when workers are killed in any stage, and a memory cap."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.cli.failures import sentence_of
from hushgraph.distributed import denoise, denoising, let_driver, prepare, preparing, resume, reweighting

cloudpickle = pytest.importorskip("cloudpickle")
distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")
from . import deaths  # noqa: E402 - it imports distributed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore"),
]  # warnings of other packages, on ports and on threads that end late


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("dask"))
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster, distributed.Client(cluster) as client:
        workers = deaths.Workers(cluster.scheduler_address, folder, 2)
        workers.start()
        client.wait_for_workers(2, timeout=60)
        yield client
        workers.end()


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Edges in files, a noisy signal, and the result of one machine."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    graph, folder = hg.datasets.roads(6000), tmp_path_factory.mktemp("case")
    i, j = graph.adjacency.nonzero()
    pairs = np.stack([i, j], axis=1)[i < j]
    (folder / "edges").mkdir()
    for k, part in enumerate(np.array_split(pairs, 3)):
        pq.write_table(pa.table({"source": part[:, 0], "target": part[:, 1]}), folder / "edges" / f"{k}.parquet")
    noisy = np.where(np.arange(graph.n) % 500 < 200, 4.0, 0.0) + np.random.default_rng(0).normal(0, 1, graph.n)
    np.save(folder / "noisy.npy", noisy)
    return folder, hg.denoise(graph, noisy, sigma=1.0, method="sgwt_scaled")


def assert_equal(found, one):
    np.testing.assert_array_equal(found.thresholds, one.thresholds)
    np.testing.assert_array_equal(found.read(), one.signal)


@contextmanager
def dying(client, folder, stages):
    """Workers that die once in each of these stages, in the middle of a task."""
    cloudpickle.register_pickle_by_value(deaths)
    folder.mkdir()
    plugin = deaths.DiesOnce(folder, stages)
    client.wait_for_workers(2, timeout=30)
    client.register_plugin(plugin)
    limit = threading.Timer(90, client.close)  # without workers a client waits for ever
    limit.start()
    try:
        yield plugin
    finally:
        limit.cancel()
        client.unregister_worker_plugin(plugin.name)


def test_workers_find_the_same_bits(client, case, tmp_path):
    folder, one = case
    found = prepare(folder / "edges", tmp_path / "work", partitions=4, most_ghosts=1e9, client=client)
    assert found.n == 6000
    seen = []
    result = denoise(
        tmp_path / "work", folder / "noisy.npy", sigma=1.0, client=client, progress=lambda share, what: seen.append((share, what))
    )
    assert_equal(result, one)
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert 0 <= shares[0] < 0.1 < 0.95 < shares[-1] <= 1.0
    assert {what for _, what in seen} == set(denoising.STAGES)
    tasks = tasks_begun(client, result.folder.name)
    assert set(tasks) == set(denoising.STAGES)
    assert max(tasks.values()) <= 10 * found.partitions, "tasks per partition and stage"
    assert max(tasks.values()) >= found.partitions, "all were counted"


def tasks_begun(client, run):
    """How many tasks of each stage of a run the scheduler sent to workers, those that it sent again included."""
    log = client.run_on_scheduler(
        lambda dask_scheduler: [str(one[0]) for one in dask_scheduler.transition_log if one[2] == "processing"]
    )
    return Counter(key.split("-")[0] for key in log if f"-{run}-" in key)


def test_a_worker_killed_in_the_middle_of_a_task_of_each_stage(client, case, tmp_path):
    folder, one = case
    with dying(client, tmp_path / "preparing", preparing.STAGES) as plugin:
        prepare(folder / "edges", tmp_path / "work", partitions=4, most_ghosts=1e9, client=client)
    assert plugin.ran_again() == plugin.all_stages()
    with dying(client, tmp_path / "denoising", denoising.STAGES) as plugin:
        result = denoise(tmp_path / "work", folder / "noisy.npy", sigma=1.0, client=client)
    assert plugin.ran_again() == plugin.all_stages()
    assert_equal(result, one)


def test_a_worker_killed_in_each_stage_of_let(client, case, tmp_path):
    folder, _ = case
    prepare(folder / "edges", tmp_path / "work", partitions=3, most_ghosts=1e9)
    shutil.copytree(tmp_path / "work", tmp_path / "other")
    settings = {"sigma": 1.0, "method": "let"}
    one = denoise(tmp_path / "other", folder / "noisy.npy", **settings)
    with dying(client, tmp_path / "deaths", let_driver.STAGES) as plugin:
        found = denoise(tmp_path / "work", folder / "noisy.npy", **settings, client=client)
    assert plugin.ran_again() == plugin.all_stages()
    np.testing.assert_array_equal(found.read(), one.read())
    assert found.risk == one.risk


def test_a_worker_killed_in_each_new_stage_of_auto(client, case, tmp_path):
    """The rounds of the fitted filter, and the second stage."""
    folder, _ = case
    prepare(folder / "edges", tmp_path / "work", partitions=2, most_ghosts=1e9)
    shutil.copytree(tmp_path / "work", tmp_path / "other")
    settings = {"sigma": 1.0, "method": "auto"}
    one = denoise(tmp_path / "other", folder / "noisy.npy", **settings)
    stages = ["gate", "spectrum0", "spectrum3", "filter", *let_driver.SECOND_STAGE, "finish"]
    with dying(client, tmp_path / "deaths", stages) as plugin:
        found = denoise(tmp_path / "work", folder / "noisy.npy", **settings, client=client)
    assert plugin.ran_again() == plugin.all_stages()
    np.testing.assert_array_equal(found.read(), one.read())
    assert (found.risk, found.details) == (one.risk, one.details)


def test_a_worker_killed_in_each_stage_of_guides(client, case, tmp_path):
    folder, _ = case
    prepare(folder / "edges", tmp_path / "work", partitions=2, most_ghosts=1e9)
    shutil.copytree(tmp_path / "work", tmp_path / "other")
    guide = np.abs(np.load(folder / "noisy.npy") + np.random.default_rng(1).normal(0, 2, 6000))
    settings = {"sigma": 1.0, "method": "let", "guides": {"other day": guide}}
    one = denoise(tmp_path / "other", folder / "noisy.npy", **settings)
    stages = ["looks", *let_driver.REGRESSION, *reweighting.STAGES, "compare", "average", "finish", "write"]
    with dying(client, tmp_path / "deaths", stages) as plugin:
        found = denoise(tmp_path / "work", folder / "noisy.npy", **settings, client=client)
    assert plugin.ran_again() == plugin.all_stages()
    np.testing.assert_array_equal(found.read(), one.read())
    assert (found.risk, found.details) == (one.risk, one.details)
    assert found.details["experts"].keys() == {"alone", "linear", "bent"}


CLIENT = """
import sys
from pathlib import Path
import distributed
from hushgraph.distributed import denoise, prepare
from deaths import DiesOnce

if __name__ == "__main__":
    folder, stage = Path(sys.argv[1]), sys.argv[2]
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory="dask") as cluster:
        with distributed.Client(cluster) as client:
            client.register_plugin(DiesOnce(Path("deaths").resolve(), [stage], group=True))
            prepare(folder / "edges", "work", partitions=4, most_ghosts=1e9, client=client)
            denoise("work", folder / "noisy.npy", sigma=1.0, client=client)
"""


def test_a_client_killed_with_its_cluster(client, case, tmp_path):
    """Client, scheduler and workers die at once in the middle of a task, twice; a run elsewhere ends the work."""
    folder, one = case
    (tmp_path / "deaths").mkdir()
    (tmp_path / "client.py").write_text(CLIENT)
    paths = os.pathsep.join([str(Path(deaths.__file__).parent), os.environ.get("PYTHONPATH", "")])
    for stage in ("zones", "finish"):
        command = [sys.executable, "client.py", str(folder), stage]
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, check=False, timeout=120, start_new_session=True
        )
        assert done.returncode == -signal.SIGKILL
    assert {path.stem for path in (tmp_path / "deaths").glob("*.died")} == {"zone", "finish"}
    begun = [path for path in (tmp_path / "work" / "runs").iterdir() if not (path / "result.json").exists()]
    found = resume(tmp_path / "work", client=client)
    assert [found.folder] == begun
    assert_equal(found, one)


def test_errors_of_tasks_come_back(client, tmp_path):
    rng = np.random.default_rng(0)
    small_world = hg.Graph.from_edges(rng.integers(0, 2000, (6000, 2)), n=2000)
    with pytest.raises(ValueError, match="GPU") as raised:
        prepare(small_world, tmp_path / "work", partitions=4, client=client)
    said = str(raised.value).replace("hushgraph.denoise", "hushgraph denoise").replace("most_ghosts", "--most-ghosts")
    assert sentence_of(raised.value, "distributed prepare") == (said, 2), "the command says it in one sentence, in its own words"


PEAK = """
status = open("/proc/self/status").read()
print(int(status.split("VmHWM:")[1].split()[0]) * 1024)
"""
CAPPED = """
from hushgraph.distributed import denoise, prepare
print(prepare("edges.parquet", "work", coords="coords.npy", memory={cap}, method="sgwt_sure", degree=5).partitions)
denoise("work", "noisy.npy", sigma=1.0, method="sgwt_sure")
"""
WHOLE = """
import numpy as np
import hushgraph as hg
graph = hg.datasets.grid({side}, {side})
print(1)
hg.denoise(graph, np.load("noisy.npy"), sigma=1.0, method="sgwt_sure", frame=hg.chebyshev_frame(graph, degree=5))
"""


def peak_of(code, folder):
    """What the code prints, and the largest memory of a process that runs it."""
    done = subprocess.run([sys.executable, "-c", code + PEAK], cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return map(int, done.stdout.split())


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the peak is read from /proc")
def test_memory_stays_below_the_cap(tmp_path):
    """One process prepares and denoises, partition after partition, below a cap that the whole graph in memory does not keep."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    cap, side = 330_000_000, 1300
    node = np.arange(side * side, dtype=np.int32).reshape(side, side)
    ends = [np.concatenate([one.ravel(), other.ravel()]) for one, other in ((node[:, :-1], node[:-1]), (node[:, 1:], node[1:]))]
    pq.write_table(pa.table({"source": ends[0], "target": ends[1]}), tmp_path / "edges.parquet", row_group_size=200_000)
    np.save(tmp_path / "coords.npy", np.stack(np.divmod(node.ravel(), side), axis=1).astype(np.float32))
    np.save(tmp_path / "noisy.npy", np.random.default_rng(0).normal(size=side * side))
    partitions, peak = peak_of(CAPPED.format(cap=cap), tmp_path)
    assert partitions >= 3
    assert peak < cap
    _, whole = peak_of(WHOLE.format(side=side), tmp_path)
    assert whole > cap, "the control: this cap means something"
