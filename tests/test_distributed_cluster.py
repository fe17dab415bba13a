"""On the worker processes of a real cluster: the same bits, also when workers are killed in any stage, and a memory cap."""

import os
import signal
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.distributed import denoise, prepare

distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages, on ports and on threads that end late
PREPARING, DENOISING = (
    ("sort", "rows", "zones"),
    ("transform", "survey", "fit", "scales", "bins", "finer", "pick", "finish", "write"),
)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("dask"))
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=folder, memory_limit="2GB"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(lambda: __import__("hushgraph").denoise)  # what is imported once
        yield client


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


class Killer:
    """Kills a worker as soon as the tasks of a stage are with the workers; remembers which stages it saw."""

    def __init__(self, client, stages):
        self.client, self.left, self.killed = client, set(stages), []

    def __call__(self, share, what):
        if what in self.left:
            self.left.remove(what)
            victim = next(iter(self.client.run(os.getpid).values()))
            os.kill(victim, signal.SIGKILL)
            self.killed.append(what)


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
    assert {what for _, what in seen} == set(DENOISING)
    tasks = tasks_begun(client, result.folder.name)
    assert set(tasks) == set(DENOISING)
    assert max(tasks.values()) <= 10 * found.partitions, "tasks per partition and stage"
    assert max(tasks.values()) >= found.partitions, "all were counted"


def tasks_begun(client, run):
    """How many tasks of each stage of a run the scheduler sent to workers, those that it sent again included."""
    log = client.run_on_scheduler(
        lambda dask_scheduler: [str(one[0]) for one in dask_scheduler.transition_log if one[2] == "processing"]
    )
    return Counter(key.split("-")[0] for key in log if key.endswith(run))


def test_a_worker_killed_in_each_stage(client, case, tmp_path):
    folder, one = case
    preparing, denoising = Killer(client, PREPARING), Killer(client, DENOISING)
    prepare(folder / "edges", tmp_path / "work", partitions=4, most_ghosts=1e9, client=client, progress=preparing)
    result = denoise(tmp_path / "work", folder / "noisy.npy", sigma=1.0, client=client, progress=denoising)
    assert set(preparing.killed) == set(PREPARING)
    assert set(denoising.killed) == set(DENOISING)
    assert_equal(result, one)


def test_errors_of_tasks_come_back(client, tmp_path):
    rng = np.random.default_rng(0)
    small_world = hg.Graph.from_edges(rng.integers(0, 2000, (6000, 2)), n=2000)
    with pytest.raises(ValueError, match="GPU"):
        prepare(small_world, tmp_path / "work", partitions=4, client=client)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the peak is read from /proc")
def test_memory_stays_below_the_cap(tmp_path):
    """A process that may not have more than the cap prepares and denoises; the same graph in memory needs several times as much."""
    cap = 700_000_000
    code = (
        "import numpy as np, pyarrow as pa, pyarrow.parquet as pq\n"
        "import hushgraph as hg\n"
        "from hushgraph.distributed import denoise, prepare\n"
        "side = 700\n"
        "node = np.arange(side * side, dtype=np.int32).reshape(side, side)\n"
        "pairs = np.concatenate([np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], 1), np.stack([node[:-1].ravel(), node[1:].ravel()], 1)])\n"
        "pq.write_table(pa.table({'source': pairs[:, 0], 'target': pairs[:, 1]}), 'edges.parquet', row_group_size=200_000)\n"
        "np.save('noisy.npy', np.random.default_rng(0).normal(size=side * side))\n"
        "del pairs, node\n"
        f"found = prepare('edges.parquet', 'work', memory={cap}, degree=20)\n"
        "denoise('work', 'noisy.npy', sigma=1.0, method='sgwt_sure')\n"
        "peak = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "print(found.partitions, int(peak) * 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    partitions, peak = map(int, done.stdout.split())
    assert partitions >= 1
    assert peak < cap
