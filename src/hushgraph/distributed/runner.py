"""Runner of tasks: the workers of a Dask client, or this process, one task after the other. The tasks are the same."""

from __future__ import annotations

import concurrent.futures
import errno
import os
import queue
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from hushgraph._errors import HushgraphError, InputTypeError, PathError, StateError
from hushgraph._extras import extra
from hushgraph._progress import between, reached
from hushgraph.core import processors, use_threads
from hushgraph.distributed.object_store import StoreError
from hushgraph.distributed.store import Place

Facts = dict[str, Any]  # the result of a task, as JSON can hold it
Task = Callable[..., Facts]
T = TypeVar("T")
PATIENCE = 60  # seconds to wait for the first worker of a cluster
LOST = 45.0  # seconds to wait for another worker when the last one is gone
GLANCE = 2.0  # seconds between two looks at the workers, where no task ends
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
    witness : Path or StoredPath
        A file of the work folder, which all workers must see.
    """

    def __init__(self, client: Any, weights: dict[str, float], witness: Place) -> None:
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
        tries, results = [0] * len(jobs), [Facts()] * len(jobs)
        futures: dict[int, Any] = {}
        ended: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()  # the job and the number of its try

        def submit(k: int) -> None:
            key = f"{stage}-{k}{f'-{tries[k]}' if tries[k] else ''}-{self.name}"  # unique to this call
            futures[k] = self.client.submit(run_task, task, *jobs[k], key=key, pure=False)
            futures[k].add_done_callback(lambda _, number=tries[k]: ended.put((k, number)))

        watch = _Watch(self.client)
        try:
            for k in range(len(jobs)):
                submit(k)
            reached(0.0, stage)
            while futures:
                k, number = watch.next_of(ended)
                if k not in futures or number != tries[k]:
                    continue
                future = futures[k]
                if future.status != "error":
                    results[k] = watch.result_of(future)
                    del futures[k]  # Dask would run the task again if its worker died later
                    reached(1 - len(futures) / len(jobs), stage)
                    continue
                error = future.exception()
                if not _may_pass(error) or tries[k] == RETRIES:
                    raise _user_error(error)
                tries[k] += 1
                submit(k)
            return results
        finally:
            self.client.cancel(list(futures.values()))


def _may_pass(error: BaseException) -> bool:
    """Return whether a task that failed may succeed in a second try; requests to an object store were repeated before."""
    return isinstance(error, OSError) and not isinstance(error, StoreError) and error.errno not in _LASTING


class _Watch:
    """Waiting for tasks of a cluster, with a look at its workers every few seconds: without workers Dask waits for ever."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._since: float | None = None  # when the workers were first seen to be gone

    def next_of(self, ended: queue.SimpleQueue[T]) -> T:
        """Return what comes next from a queue."""
        while True:
            try:
                following = ended.get(timeout=GLANCE)
            except queue.Empty:
                self._check_workers()
            else:
                self._since = None
                return following

    def result_of(self, future: Any) -> Facts:
        """Return the result of a finished task, which is lost and computed again if its worker dies just now."""
        while True:
            try:
                return future.result(timeout=GLANCE)
            except TimeoutError:
                self._check_workers()

    def _check_workers(self) -> None:
        """Raise an error if there has been no worker for a while, or no scheduler."""
        if self.client.status != "running":
            raise concurrent.futures.CancelledError
        if self.client.nthreads():
            self._since = None
            return
        self._since = self._since or time.monotonic()
        if time.monotonic() - self._since >= LOST:
            msg = (
                f"the cluster lost its last worker, and no other came within {LOST:g} seconds; start workers (dask worker "
                f"{self.client.scheduler.address}), and run the same call again: it goes on with what is done"
            )
            raise StateError(msg)


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


def _check_workers(client: Any, witness: Place) -> None:
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
        version, lacks = answer
        if version != hushgraph.__version__:
            has = "no hushgraph" if version is None else f"hushgraph {version}"
            msg = f"all workers must have hushgraph {hushgraph.__version__}, as this process; {worker} has {has}; install it there"
            raise StateError(msg)
        if lacks is not None:
            why = f" ({lacks})" if lacks else ""
            msg = f"all workers must see the work folder, under the same path; {worker} does not see {witness}{why}; put it on a file system that all share"
            if "://" in str(witness):
                msg = f"all workers must see the work folder; {worker} does not see {witness}{why}; give workers the packages, credentials and endpoint that this process has"
            raise StateError(msg)


def _fitness_check() -> Callable[[str], tuple[str | None, str | None]]:
    """Return a function for workers: the version of hushgraph there, and why a file is not visible, None where it is.

    The function is nested so that cloudpickle sends its code: a worker without hushgraph could not import it by name.
    """

    def fitness(path: str) -> tuple[str | None, str | None]:
        try:
            import hushgraph
        except ImportError:
            return None, ""
        try:
            from hushgraph.distributed.store import work_folder

            return hushgraph.__version__, None if work_folder(path).exists() else ""
        except Exception as error:  # another version, no package for the store, no rights there
            return hushgraph.__version__, str(error)

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
