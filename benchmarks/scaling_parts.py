"""Processes of their own that `scaling.py model` measures: every task of a run here, a run on workers, empty tasks, bytes of files."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

EMPTY = 200  # tasks that do nothing, to see what the scheduler takes
FILE = 2**25  # values of the file that is written and read
NAMED = ("read", "written")


class Recorder:
    """What each task took: seconds, CPU seconds, bytes in and out, memory at its largest."""

    def __init__(self):
        self.tasks: list[dict] = []
        self.mapped = 0

    def attach(self) -> None:
        """Watch the tasks that this process runs, and count what they read of mapped files, which the system does not."""
        from hushgraph.distributed import (
            adjacency_rows as rows,
            ghosts,
            runner,
            threshold_tasks as thresholds,
            wavelet_tasks as tasks,
        )

        def here(runner, stage, task, jobs):
            return [self.watch(stage, k, task, job) for k, job in enumerate(jobs)]

        runner.Runner._run_here = here
        self.count(ghosts.Part, "fill", lambda found: found.nbytes)
        self.count(tasks.Run, "values", lambda found: found.nbytes)
        for name in ("row", "at"):
            self.count(tasks.StoredWeights, name, lambda found: found.nbytes)
        self.count(ghosts.RowFiles, "gather", lambda found: sum(rows.columns.nbytes + rows.starts.nbytes for rows in found))
        self.count(rows, "_gather", lambda found: found[0].nbytes)
        self.count(rows, "owned_nodes", lambda found: 0, more=lambda work, part: (work / "owner.npy").stat().st_size)
        plain = thresholds._rows

        def counted(run, part, scales):
            for one in plain(run, part, scales):
                self.mapped += one[2].nbytes * (2 if run.scaled else 1)
                yield one

        thresholds._rows = counted

    def count(self, home, name: str, size, more=None) -> None:
        plain = getattr(home, name)

        def counted(*args, **given):
            found = plain(*args, **given)
            self.mapped += size(found) + (more(*args) if more else 0)
            return found

        setattr(home, name, counted)

    def watch(self, stage: str, k: int, task, job):
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak begins anew
        before, self.mapped = _now(), 0
        found = task(*job)
        took = {name: value - before[name] for name, value in _now().items()}
        took["read"] += self.mapped
        size = {"edges": found["edges"]} if stage == "sort" else {}
        self.tasks.append({"stage": stage, "k": k, "peak": _peak(), **took, **size})
        return found


def _now() -> dict[str, float]:
    io = dict(line.split(": ") for line in Path("/proc/self/io").read_text("ascii").splitlines())
    clocks = {"wall": time.perf_counter(), "cpu": time.process_time(), "main": time.thread_time()}
    return {**clocks, "read": int(io["rchar"]), "written": int(io["wchar"])}


def _peak() -> int:
    status = Path("/proc/self/status").read_text("utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def tiny(folder: Path, client=None) -> None:
    """A small run: loads all compiled code."""
    from scaling import streets

    import hushgraph.distributed as hd

    streets(folder, 512)
    hd.prepare(
        f"{folder}/edges", folder / "work", coords=f"{folder}/coords.npy", partitions=4, degree=20, most_ghosts=1e9, client=client
    )
    hd.denoise(folder / "work", f"{folder}/noisy.npy", sigma=1.0, n_probes=1, client=client)


def stages(folder: str, partitions: int, degree: int, threads: int = 1) -> dict:
    """A run in this process, task by task."""
    import hushgraph.distributed as hd
    from hushgraph.core import _loops

    _loops.set_processors(threads)

    with TemporaryDirectory(dir=folder) as own:
        tiny(Path(own, "tiny"))
        start, base, record, work = time.process_time(), _peak(), Recorder(), Path(own, "work")
        record.attach()
        given = {"coords": f"{folder}/coords.npy", "partitions": partitions, "degree": degree, "most_ghosts": 1e9}
        first = time.process_time()
        prepared = hd.prepare(f"{folder}/edges", work, **given)
        preparing = time.process_time() - first - sum(one["cpu"] for one in record.tasks)
        first, done = time.process_time(), len(record.tasks)
        hd.denoise(work, f"{folder}/noisy.npy", sigma=1.0, n_probes=1)
        denoising = time.process_time() - first - sum(one["cpu"] for one in record.tasks[done:])
        zones = [
            json.loads(next(work.glob(f"graph-*/parts/{k:05d}/zone.json")).read_text("utf-8"))["facts"] for k in range(partitions)
        ]
        kept = sum(path.stat().st_size for path in work.rglob("*") if path.is_file())
    return {
        "tasks": record.tasks, "start": start, "base": base, "client": [preparing, denoising], "n": prepared.n, "edges": prepared.n_edges,
        "growth": prepared.growth, "n_scales": prepared.n_scales, "degree": degree, "partitions": partitions, "kept": kept,
        "own": [zone["own"] for zone in zones], "rows": [zone["rows"] for zone in zones],
    }  # fmt: skip


def on_workers(folder: str, workers: int, partitions: int, degree: int) -> dict:
    """Seconds of each stage on the workers of a cluster here; and the seconds of an empty task."""
    import distributed

    import hushgraph.distributed as hd

    with TemporaryDirectory(dir=folder) as own:
        where = {"local_directory": f"{own}/dask", "dashboard_address": None, "memory_limit": 0}
        with (
            distributed.LocalCluster(n_workers=workers, threads_per_worker=1, **where) as group,
            distributed.Client(group) as client,
        ):
            tiny(Path(own, "tiny"), client)
            started = max(client.run(time.process_time).values())
            empty = _empty(client)
            given = {"coords": f"{folder}/coords.npy", "partitions": partitions, "degree": degree, "most_ghosts": 1e9}
            spent = _watched_stages(client)
            start, before = time.perf_counter(), _busy(client)
            prepared = hd.prepare(f"{folder}/edges", f"{own}/work", client=client, **given)
            middle = time.perf_counter()
            result = hd.denoise(f"{own}/work", f"{folder}/noisy.npy", sigma=1.0, n_probes=1, client=client)
            end, after = time.perf_counter(), _busy(client)
        files = [json.loads(path.read_text("utf-8"))["facts"] for path in sorted(Path(own, "work").rglob("zone.json"))]
    clients = {
        "client, preparing": middle - start - sum(prepared.timings.values()),
        "client, denoising": end - middle - sum(result.timings.values()),
    }
    rows = {"own": [one["own"] for one in files], "rows": [one["rows"] for one in files]}
    others = max(after - before, 0.0) / (end - start)
    facts = {"started": started, "others": others, "spent": spent, **empty, "n": prepared.n, "edges": prepared.n_edges, **rows}
    return {"timings": {**prepared.timings, **result.timings, **clients}, **facts}


def _watched_stages(client) -> dict[str, float]:
    """CPU seconds of all workers in each stage, filled in as stages end."""
    from hushgraph.distributed.runner import Runner

    spent, plain = {}, Runner.run

    def watched(runner, stage, task, jobs):
        before = sum(client.run(time.process_time).values())
        found = plain(runner, stage, task, jobs)
        spent[stage] = sum(client.run(time.process_time).values()) - before
        return found

    Runner.run = watched
    return spent


def _busy(client) -> float:
    """Seconds in which processors worked for others than this cluster."""
    spent = [int(word) for word in Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:]]
    all_of_it = (sum(spent[:3]) + sum(spent[5:8])) / os.sysconf("SC_CLK_TCK")
    return all_of_it - time.process_time() - sum(client.run(time.process_time).values())


def _nothing() -> dict:
    return {}


def _empty(client) -> dict[str, float]:
    """Seconds of an empty stage, of one task per worker, and of each further empty task, as stages run them."""
    from hushgraph.distributed.runner import Runner

    def seconds(count: int) -> float:
        runner = Runner(client, {"empty": 1.0}, Path(__file__))
        runner.run("check of the workers", _nothing, [])
        start = time.perf_counter()
        runner.run("empty", _nothing, [()] * count)
        return time.perf_counter() - start

    client.run(lambda: __import__("scaling_parts"))
    few = float(np.median([seconds(2) for _ in range(10)]))
    return {"stage": few, "empty": max(seconds(EMPTY) - few, 0.0) / (EMPTY - 2)}


def file_bytes(folder: str) -> dict:
    """CPU seconds per byte of a file that is written, and of one that is read."""
    from hushgraph.distributed.store import read_array, write_array

    path, values, took = Path(folder, "bytes.npy"), np.random.default_rng(0).normal(size=FILE), []
    for work in (lambda: write_array(path, values), lambda: read_array(path)) * 2:
        start = time.process_time()
        work()
        took.append((time.process_time() - start) / values.nbytes)
    path.unlink()
    return dict(zip(NAMED, (min(took[1::2]), min(took[::2])), strict=True))


PARTS = {"stages": stages, "on_workers": on_workers, "file_bytes": file_bytes}
