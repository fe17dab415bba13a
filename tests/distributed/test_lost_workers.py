"""A cluster that loses its last worker: it is said within a minute, nothing is lost, and a worker that comes in time goes on."""

import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.cli.failures import sentence_of
from hushgraph.distributed import denoise, prepare, resume, runner

from .cases import ANY, assert_equal, noisy_on

distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")
pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]  # warnings of other packages


@contextmanager
def cluster(folder, count):
    """A client, and a function that starts a worker without a nanny, which would start it again."""
    processes = []
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None) as scheduler,
        distributed.Client(scheduler) as client,
    ):
        options = ["--no-nanny", "--no-dashboard", "--nthreads", "1", "--memory-limit", "2GB", "--local-directory", str(folder)]
        command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler.scheduler_address, *options]

        def start():
            processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

        def kill():
            for process in processes:
                process.kill()
                process.wait()

        for _ in range(count):
            start()
        client.wait_for_workers(count, timeout=60)
        try:
            yield client, start, kill
        finally:
            kill()


@pytest.fixture
def case(tmp_path):
    graph = hg.datasets.grid(30, 40)
    prepare(graph, tmp_path / "work", partitions=3, most_ghosts=ANY)
    return tmp_path / "work", noisy_on(graph), hg.denoise(graph, noisy_on(graph), sigma=1.0, method="sgwt_scaled")


def test_a_minute_is_enough():
    assert runner.LOST + 2 * runner.GLANCE < 60


@pytest.mark.parametrize("stage", ["transform", "finish"])
def test_the_last_worker_is_lost(case, tmp_path, monkeypatch, stage):
    work, noisy, one = case
    monkeypatch.setattr(runner, "LOST", 2.0)
    monkeypatch.setattr(runner, "GLANCE", 0.3)
    moment = []
    with cluster(tmp_path / "dask", 2) as (client, _, kill):

        def watch(share, what):
            if what == stage and not moment:
                kill()
                moment.append(time.monotonic())

        with pytest.raises(
            RuntimeError, match=r"lost its last worker, and no other came within 2 seconds; start workers"
        ) as raised:
            denoise(work, noisy, sigma=1.0, client=client, progress=watch)
        assert time.monotonic() - moment[0] < 30
        text, code = sentence_of(raised.value, "distributed denoise")
        assert f"(dask worker {client.scheduler.address}), and run the same call again: it goes on with what is done" in text
        assert code == 2
    assert_equal(resume(work), one)


def test_a_worker_that_comes_in_time_goes_on(case, tmp_path, monkeypatch):
    work, noisy, one = case
    monkeypatch.setattr(runner, "GLANCE", 0.3)
    gone, threads = [], []
    with cluster(tmp_path / "dask", 1) as (client, start, kill):

        def watch(share, what):
            if what in ("transform", "finish") and what not in gone:
                gone.append(what)
                kill()
                threads.append(threading.Timer(1.5, start))
                threads[-1].start()

        found = denoise(work, noisy, sigma=1.0, client=client, progress=watch)
        for thread in threads:
            thread.join()
    assert gone == ["transform", "finish"]
    assert_equal(found, one)


def test_the_result_of_a_task_that_dies_with_its_worker():
    """A task has ended, and its worker dies before its result is fetched: Dask has nobody to compute it again."""
    looks = []

    class Future:
        def result(self, timeout):
            looks.append(timeout)
            if len(looks) < 4:
                raise TimeoutError
            return {"done": True}

    client = type("Client", (), {"status": "running", "nthreads": lambda self: {"tcp://one": 1}})()
    assert runner._Watch(client).result_of(Future()) == {"done": True}
    assert len(looks) == 4


def test_a_client_whose_scheduler_is_gone_does_not_wait(monkeypatch):
    import concurrent.futures
    import queue

    monkeypatch.setattr(runner, "GLANCE", 0.01)
    client = type("Client", (), {"status": "closed"})()
    with pytest.raises(concurrent.futures.CancelledError):
        runner._Watch(client).next_of(queue.SimpleQueue())
    assert np.isfinite(runner.LOST)
