"""What a task of each stage costs, fitted to measured tasks: CPU seconds, bytes in and out; and the tasks of runs that nobody has made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from schedule import Task
from scipy.optimize import nnls

STAGES = ("sort", "rows", "zones", "transform", "survey", "fit", "scales", "bins", "finer", "pick", "finish", "write")
WHOLE = ("zones", "transform", "survey", "finish")  # stages that work on ghosts as on owned nodes
THREADED = ("zones", "transform", "survey", "fit", "scales", "finish")  # stages with loops that threads divide among them
TRANSFORMS = {"transform": 2, "finish": 2}  # of the signal and of one probe
PIECE = 2**22  # edges of a task that sorts
SMALL = 0.02  # seconds below which errors count as if the task took so long
CLIENT_BYTES = {"client, preparing": (10, 2), "client, denoising": (8, 8)}  # per node: places, owners and their hash; the signal
GROUPS = {
    "client": ("client, preparing", "client, denoising"),
    "sort, rows, zones": ("sort", "rows", "zones"),
    "transform": ("transform",),
    "thresholds": ("survey", "fit", "scales", "bins", "finer", "pick"),
    "finish, write": ("finish", "write"),
}


@dataclass(frozen=True)
class Size:
    """What the cost of a task depends on."""

    n: int
    own: float
    rows: float
    edges: float
    degree: int

    def units(self, stage: str) -> float:
        return self.edges if stage == "sort" else self.rows if stage in WHOLE else self.own

    def steps(self, stage: str) -> float:
        return self.rows * self.degree * TRANSFORMS.get(stage, 0)

    def reaches(self, stage: str) -> float:
        """Nodes of the whole graph that the task looks through."""
        return self.n if stage == "rows" else 0.0


def sizes_of(run: dict) -> list[tuple[dict, Size]]:
    """The tasks of a measured run, with their sizes."""
    found = []
    for task in run["tasks"]:
        k = min(task["k"], run["partitions"] - 1)
        found.append((task, Size(run["n"], run["own"][k], run["rows"][k], task.get("edges", 0), run["degree"])))
    return found


@dataclass(frozen=True)
class Costs:
    """Seconds on one core and bytes; `threaded` is the share of a stage's seconds that threads divide among them."""

    step: float  # per row, step and transform
    node: float  # per node of the whole graph, where a task looks through all
    task: float
    per: dict[str, float]  # per row, owned node or edge, besides steps and bytes
    byte: dict[str, float]  # per byte read, written
    read: dict[str, tuple[float, float, float]]  # bytes per owned node (or edge), per ghost, per node of the graph
    written: dict[str, tuple[float, float, float]]
    client: dict[str, tuple[float, float]]  # seconds per node, and per partition
    threaded: dict[str, float]
    residuals: dict[str, float]

    def bytes_of(self, name: str, stage: str, size: Size) -> float:
        own, ghost, all_nodes = getattr(self, name)[stage]
        return own * (size.edges if stage == "sort" else size.own) + ghost * (size.rows - size.own) + all_nodes * size.n

    def seconds(self, stage: str, size: Size) -> float:
        files = sum(self.byte[name] * self.bytes_of(name, stage, size) for name in ("read", "written"))
        work = self.step * size.steps(stage) + self.per[stage] * size.units(stage) + self.node * size.reaches(stage)
        return self.task + work + files

    def tasks(self, stage: str, size: Size, threads: int = 1, speed: float = 1.0) -> Task:
        share = self.threaded.get(stage, 0.0) if threads > 1 else 0.0
        seconds = self.seconds(stage, size) * (1 - share + share / speed)
        return Task(seconds, self.bytes_of("read", stage, size), self.bytes_of("written", stage, size))


def fitted(runs: list[dict], byte: dict[str, float], threaded: dict[str, float]) -> Costs:
    """Least squares of relative errors, no constant below 0."""
    tasks = [pair for run in runs for pair in sizes_of(run)]
    read, written = ({stage: _bytes(tasks, stage, name) for stage in STAGES} for name in ("read", "written"))
    table, right = [], []
    for task, size in tasks:
        stage = task["stage"]
        row = np.zeros(3 + len(STAGES))
        row[:3] = size.steps(stage), size.reaches(stage), 1.0
        row[3 + STAGES.index(stage)] = size.units(stage)
        weight = 1 / max(task["cpu"], SMALL)
        table.append(weight * row)
        right.append(weight * max(task["cpu"] - sum(byte[name] * task[name] for name in byte), 0.0))
    table, right = np.array(table), np.array(right)
    scale = np.linalg.norm(table, axis=0)
    found = nnls(table / scale, right)[0] / scale
    per = dict(zip(STAGES, found[3:].tolist(), strict=True))
    costs = Costs(
        *found[:3].tolist(), per=per, byte=byte, read=read, written=written, client=_client(runs), threaded=threaded, residuals={}
    )
    costs.residuals.update(_residuals(costs, tasks))
    return costs


def _residuals(costs: Costs, tasks) -> dict[str, float]:
    """Root mean square of relative errors of the tasks of each stage."""
    found = {}
    for stage in STAGES:
        errors = [costs.seconds(stage, size) / max(task["cpu"], SMALL) - 1 for task, size in tasks if task["stage"] == stage]
        found[stage] = float(np.sqrt(np.mean(np.square(errors))))
    return found


def _bytes(tasks, stage: str, name: str) -> tuple[float, float, float]:
    """Bytes per owned node (edge), per ghost and per node of the whole graph."""
    own = [(task[name], size) for task, size in tasks if task["stage"] == stage]
    table = np.array(
        [
            (size.edges if stage == "sort" else size.own, size.rows - size.own if stage in WHOLE else 0, size.reaches(stage))
            for _, size in own
        ]
    )
    used = table.any(axis=0)
    weights = 1 / np.array([max(value, 1.0) for value, _ in own])
    found = np.zeros(3)
    found[used] = nnls(table[:, used] * weights[:, None], np.array([value for value, _ in own]) * weights)[0]
    return tuple(found.tolist())


def _client(runs: list[dict]) -> dict[str, tuple[float, float]]:
    """What the client does by itself, by nodes and partitions."""
    table = np.array([(run["n"], run["partitions"]) for run in runs], dtype=float)
    scale = table.max(axis=0)
    found = {}
    for k, name in enumerate(GROUPS["client"]):
        own = nnls(table / scale, np.array([max(run["client"][k], 0.0) for run in runs]))[0] / scale
        found[name] = tuple(own.tolist())
    return found


def threaded_shares(one: dict, two: dict) -> dict[str, float]:
    """Of each stage that has threads, the share of its seconds that a second thread took from the first: half of what is divided."""
    found = {}
    for stage in STAGES:
        before, after = (
            sum(task[name] for task in run["tasks"] if task["stage"] == stage) for run, name in ((one, "cpu"), (two, "main"))
        )
        found[stage] = float(np.clip(2 * (1 - after / before), 0, 1)) if stage in THREADED else 0.0
    return found


def run_of(
    costs: Costs, n: int, own: list[float], rows: list[float], edges: float, degree: int, threads: int = 1, speed: float = 1.0
) -> dict[str, list[Task]]:
    """All tasks of a run, in the order of its stages."""
    parts = len(own)
    alone = {
        name: [Task(per_node * n + per_part * parts, *(n * size for size in CLIENT_BYTES[name]))]
        for name, (per_node, per_part) in costs.client.items()
    }
    pieces = max(1, round(edges / PIECE))
    found = {"client, preparing": alone["client, preparing"]}
    for stage in STAGES:
        if stage == "transform":
            found["client, denoising"] = alone["client, denoising"]
        if stage == "sort":
            sizes = [Size(n, 0, 0, edges / pieces, degree)] * pieces
        else:
            sizes = [Size(n, mine, zone, 0, degree) for mine, zone in zip(own, rows, strict=True)]
        found[stage] = [costs.tasks(stage, size, threads, speed) for size in sizes]
    return found
