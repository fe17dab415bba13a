"""Runner of tasks: the workers of a Dask client, or this process, one task after the other. The tasks are the same."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from hushgraph._errors import HushgraphError, InputTypeError, PathError, StateError
from hushgraph._extras import extra
from hushgraph._progress import between, reached
from hushgraph.core import processors, use_threads

Facts = dict[str, Any]  # the result of a task, as JSON can hold it
Task = Callable[..., Facts]
PATIENCE = 60  # seconds to wait for the first worker of a cluster
RETRIES = 3  # of a task that cannot read or write; Dask's `allowed-failures` limits those of a task whose worker dies
# errors of the operating system that a second try would meet again
_LASTING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR)
_task_lock = threading.Lock()  # a task takes all threads of its worker, and its memory


class Runner:
    """Run the stages of a job.

    Parameters
    ----------
    client : distributed.Client or None
        The client whose workers run the tasks; None for this process.
    weights : dict of str to float
        The expected time of each stage, in any unit.
    witness : Path
        A file of the work folder, which all workers must see.
    """

    def __init__(self, client: Any, weights: dict[str, float], witness: Path) -> None:
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
        """Address of the Dask dashboard, or None."""
        return None if self.client is None else self.client.dashboard_link

    def run(self, stage: str, task: Task, jobs: list[tuple[Any, ...]]) -> list[Facts]:
        """Return the facts that the task returns for the arguments of each job, in their order."""
        start = time.perf_counter()
        if not self._workers_are_fit:
            _check_workers(self.client, self.witness)
            self._workers_are_fit = True
        with between(*self.shares.get(stage, (0.0, 1.0))):
            results = self._run_here(stage, task, jobs) if self.client is None else self._run_on_cluster(stage, task, jobs)
        self.timings[stage] = time.perf_counter() - start
        return results

    def run_parts(self, stage: str, task: Task, parts: int, target: Any, *more: Any) -> list[Facts]:
        """Return the facts of `task(target, part, *more)` for each partition; `target` is a run, or the folder of a graph."""
        return self.run(stage, task, [(target, part, *more) for part in range(parts)])

    def _run_here(self, stage: str, task: Task, jobs: list[tuple[Any, ...]]) -> list[Facts]:
        results = []
        for k, job in enumerate(jobs):
            reached(k / len(jobs), stage)
            results.append(task(*job))
        reached(1.0, stage)
        return results

    def _run_on_cluster(self, stage: str, task: Task, jobs: list[tuple[Any, ...]]) -> list[Facts]:
        """Run tasks on workers.

        Dask runs a task again if its worker dies. A task that could not read or write is submitted again; other errors would recur.
        """
        tries = [0] * len(jobs)

        def submit(k: int) -> Any:
            key = f"{stage}-{k}{f'-{tries[k]}' if tries[k] else ''}-{self.name}"  # unique to this call
            return self.client.submit(run_task, task, *jobs[k], key=key, pure=False)

        futures = [submit(k) for k in range(len(jobs))]
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
                    raise _user_error(error)
                tries[k] += 1
                futures[k] = submit(k)
                places[futures[k].key] = k
                waiting.add(futures[k])
            return self.client.gather(futures)
        finally:
            self.client.cancel(futures)


def _user_error(error: BaseException) -> BaseException:
    """Return the error of a task such that it reads as on one machine."""
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


def run_task(task: Task, *job: Any) -> Facts:
    """Run one task at a time in a worker, on as many cores as the worker has threads."""
    with _task_lock, use_threads(max(1, min(dask_distributed().get_worker().state.nthreads, processors()))):
        return task(*job)


def _check_workers(client: Any, witness: Path) -> None:
    """Refuse workers with another version of hushgraph or without it, and workers that do not see the work folder."""
    import hushgraph

    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        msg = f"the cluster has had no worker for {PATIENCE} seconds; start some, and run the same call again"
        raise StateError(msg) from error
    for worker, answer in client.run(_fitness_check(), str(witness), on_error="return").items():
        if isinstance(answer, BaseException):  # the worker has ended
            continue
        version, sees_folder = answer
        if version != hushgraph.__version__:
            has = "no hushgraph" if version is None else f"hushgraph {version}"
            msg = f"all workers must have hushgraph {hushgraph.__version__}, as this process; {worker} has {has}; install it there"
            raise StateError(msg)
        if not sees_folder:
            msg = f"all workers must see the work folder, under the same path; {worker} does not see {witness}; put it on a file system that all share"
            raise StateError(msg)


def _fitness_check() -> Callable[[str], tuple[str | None, bool]]:
    """Return a function for workers: the version of hushgraph there, and whether a file is visible.

    The function is nested so that cloudpickle sends its code: a worker without hushgraph could not import it by name.
    """

    def fitness(path: str) -> tuple[str | None, bool]:
        import os

        try:
            import hushgraph
        except ImportError:
            return None, False
        return hushgraph.__version__, os.path.exists(path)

    return fitness


def dask_distributed() -> ModuleType:
    """Return the package `distributed`, which is an extra."""
    return extra("distributed", name="dask", purpose="running on several machines")


def _checked_client(client: Any) -> Any:
    """Return the client, if it is a synchronous Dask client or None."""
    if client is None:
        return None
    if not isinstance(client, dask_distributed().Client):
        msg = f"client must be a dask.distributed.Client, or None to run here; got {type(client).__name__}"
        raise InputTypeError(msg)
    if client.asynchronous:
        msg = "client must be a plain Client; got an asynchronous one; pass Client(address)"
        raise InputTypeError(msg)
    return client
