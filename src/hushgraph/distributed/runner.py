"""Who runs the tasks: the workers of a Dask client, or this process, one task after the other. Either way they are the same tasks."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from typing import Any

from hushgraph.contents import extra
from hushgraph.origins import raised_here
from hushgraph.progress import between, reached

RETRIES = 3  # of a task that cannot read or write; one whose worker dies runs again as often as Dask's `allowed-failures` says
_one = threading.Lock()  # a task takes all threads of its worker, and its memory


class Runner:
    """Runs the stages of a job; `weights` says which share of the time each is expected to take."""

    def __init__(self, client, weights: dict[str, float], token: str):
        self.client, self.token = _checked_client(client), token
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
            key = f"{stage}-{k}{f'-{tries[k]}' if tries[k] else ''}-{self.token}"
            return self.client.submit(on_worker, task, *jobs[k], key=key, pure=False)

        futures = [submitted(k) for k in range(len(jobs))]
        places = {future.key: k for k, future in enumerate(futures)}
        try:
            reached(0.0, stage)
            done, waiting = 0, dask_distributed().as_completed(futures)
            for future in waiting:
                k = places[future.key]
                if future.status != "error":
                    done += 1
                    reached(done / len(jobs), stage)
                    continue
                error = future.exception()
                if not isinstance(error, OSError) or error.errno == errno.ENOSPC or tries[k] == RETRIES:
                    raise _plain(error)
                tries[k] += 1
                futures[k] = submitted(k)
                places[futures[k].key] = k
                waiting.add(futures[k])
            return self.client.gather(futures)
        finally:
            self.client.cancel(futures)


class RefusedError(Exception):
    """Around an error that hushgraph itself raised in a task."""

    def __init__(self, error: ValueError):
        super().__init__(error)
        self.error = error


def _plain(error: BaseException) -> BaseException:
    """What a task failed by, so that it reads as on one machine."""
    if isinstance(error, RefusedError):
        return error.error
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return OSError(errno.ENOSPC, error.strerror)
    return error


def on_worker(task, *job):
    """One task at a time in a worker, on as many cores as the worker has threads."""
    import numba

    with _one:
        threads = dask_distributed().get_worker().state.nthreads
        before = numba.get_num_threads()
        numba.set_num_threads(max(1, min(threads, numba.config.NUMBA_NUM_THREADS)))
        try:
            return task(*job)
        except ValueError as error:
            if not raised_here(error.__traceback__):
                raise
            raise RefusedError(error.with_traceback(None)) from None
        finally:
            numba.set_num_threads(before)


def dask_distributed():
    return extra("distributed", name="dask", purpose="running on several machines")


def _checked_client(client):
    if client is None:
        return None
    if not isinstance(client, dask_distributed().Client):
        msg = f"client must be a dask.distributed.Client, or None to run here; got {type(client).__name__}"
        raise TypeError(msg)
    if client.asynchronous:
        msg = "client must be a plain Client; got an asynchronous one; pass Client(address)"
        raise TypeError(msg)
    return client
