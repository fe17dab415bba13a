"""Who runs the tasks: the workers of a Dask client, or this process, one task after the other. Either way they are the same tasks."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hushgraph._errors import HushgraphError, InputTypeError, PathError, StateError
from hushgraph.contents import extra
from hushgraph.core import processors, use_threads
from hushgraph.progress import between, reached

PATIENCE = 60  # seconds until a cluster without workers is given up
RETRIES = 3  # of a task that cannot read or write; one whose worker dies runs again as often as Dask's `allowed-failures` says
_LASTING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR)  # would come again
_one = threading.Lock()  # a task takes all threads of its worker, and its memory


class Runner:
    """Runs the stages of a job; `weights` says which share of the time each is expected to take."""

    def __init__(self, client, weights: dict[str, float], witness: Path):
        """`witness` is a file of the work folder that is there, and that all workers must see."""
        self.client, self.witness = _checked_client(client), witness
        self.name = f"{witness.parent.name}-{os.urandom(6).hex()}"
        self._workers_are_fit = client is None
        self.timings: dict[str, float] = {}
        total, low, self.shares = sum(weights.values()), 0.0, {}
        for stage, weight in weights.items():
            self.shares[stage] = low, min(low + weight / total, 1.0)
            low += weight / total

    @property
    def dashboard(self) -> str | None:
        """Where the progress of a cluster can be watched."""
        return None if self.client is None else self.client.dashboard_link

    def run(self, stage: str, task: Callable[..., dict], jobs: list[tuple]) -> list[dict[str, Any]]:
        """What the task returns for each job, in their order."""
        start = time.perf_counter()
        if not self._workers_are_fit:
            _check_workers(self.client, self.witness)
            self._workers_are_fit = True
        with between(*self.shares.get(stage, (0.0, 1.0))):
            found = self._here(stage, task, jobs) if self.client is None else self._there(stage, task, jobs)
        self.timings[stage] = time.perf_counter() - start
        return found

    def _here(self, stage: str, task, jobs) -> list[dict[str, Any]]:
        found = []
        for k, job in enumerate(jobs):
            reached(k / len(jobs), stage)
            found.append(task(*job))
        reached(1.0, stage)
        return found

    def _there(self, stage: str, task, jobs) -> list[dict[str, Any]]:
        """Dask runs a task again whose worker died. One that could not read or write is submitted again; other errors would come again."""
        tries = [0] * len(jobs)

        def submitted(k: int):
            key = f"{stage}-{k}{f'-{tries[k]}' if tries[k] else ''}-{self.name}"  # of this call alone
            return self.client.submit(on_worker, task, *jobs[k], key=key, pure=False)

        futures = [submitted(k) for k in range(len(jobs))]
        places = {future.key: k for k, future in enumerate(futures)}
        try:
            reached(0.0, stage)
            done, waiting = 0, dask_distributed().as_completed(futures, loop=self.client.loop)
            for future in waiting:
                k = places[future.key]
                if future.status != "error":
                    done += 1
                    reached(done / len(jobs), stage)
                    continue
                error = future.exception()
                if not isinstance(error, OSError) or error.errno in _LASTING or tries[k] == RETRIES:
                    raise _plain(error)
                tries[k] += 1
                futures[k] = submitted(k)
                places[futures[k].key] = k
                waiting.add(futures[k])
            return self.client.gather(futures)
        finally:
            self.client.cancel(futures)


def _plain(error: BaseException) -> BaseException:
    """What a task failed by, so that it reads as on one machine."""
    if isinstance(error, HushgraphError):
        return error.with_traceback(None)
    if isinstance(error, dask_distributed().KilledWorker):
        msg = (
            "several workers died of the same task, most likely for want of memory; give workers more, or prepare with more partitions, and run "
            "the same call again: it goes on with what is done"
        )
        return StateError(msg)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return PathError(errno.ENOSPC, error.strerror)
    return error


def on_worker(task, *job):
    """One task at a time in a worker, on as many cores as the worker has threads."""
    with _one, use_threads(max(1, min(dask_distributed().get_worker().state.nthreads, processors()))):
        return task(*job)


def _check_workers(client, witness: Path) -> None:
    """Refuse workers that have another hushgraph or none, which would die of the first task, or that do not see the work folder."""
    import hushgraph

    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        msg = f"the cluster has had no worker for {PATIENCE} seconds; start some, and run the same call again"
        raise StateError(msg) from error
    for worker, found in client.run(_fitness, str(witness), on_error="return").items():
        if isinstance(found, BaseException):  # it is gone
            continue
        version, sees = found
        if version != hushgraph.__version__:
            has = "no hushgraph" if version is None else f"hushgraph {version}"
            msg = f"all workers must have hushgraph {hushgraph.__version__}, as this process; {worker} has {has}; install it there"
            raise StateError(msg)
        if not sees:
            msg = f"all workers must see the work folder, under the same path; {worker} does not see {witness}; put it on a file system that all share"
            raise StateError(msg)


def _fitness(path: str) -> tuple[str | None, bool]:
    """(version of hushgraph, whether the file is there); its code travels with it, since there may be no hushgraph."""
    import os

    try:
        import hushgraph
    except ImportError:
        return None, False
    return hushgraph.__version__, os.path.exists(path)


_fitness.__module__ = "__main__"  # so its code is sent, not its name


def dask_distributed():
    return extra("distributed", name="dask", purpose="running on several machines")


def _checked_client(client):
    if client is None:
        return None
    if not isinstance(client, dask_distributed().Client):
        msg = f"client must be a dask.distributed.Client, or None to run here; got {type(client).__name__}"
        raise InputTypeError(msg)
    if client.asynchronous:
        msg = "client must be a plain Client; got an asynchronous one; pass Client(address)"
        raise InputTypeError(msg)
    return client
