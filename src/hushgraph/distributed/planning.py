"""The plan of a distributed run before anything runs: partitions, ghosts, memory, files, tasks, time. Small worlds are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hushgraph._validation import checked_count, checked_number, choose
from hushgraph.distributed.cost_model import BASE, DISTRIBUTED, FILTER_DEGREE, START, Cost, Shape, partitions_for, task_memory
from hushgraph.distributed.denoising import stages_of
from hushgraph.distributed.ghost_estimate import Sample
from hushgraph.distributed.partitioning import By
from hushgraph.distributed.preparing import most_ghosts_of
from hushgraph.distributed.sources import Coords, FileSource, open_source
from hushgraph.estimators import RISK_PROBES
from hushgraph.graphs import REACH
from hushgraph.wavelets import default_probes


@dataclass(frozen=True)
class Plan:
    """An estimate of what a run takes; `str` gives a table.

    Parameters
    ----------
    n : int
        Number of nodes.
    n_edges : int
        Number of undirected edges, or of rows of the edge files.
    partitions : int
        Number of partitions.
    by : {"coordinates", "ordering", "rcm"}
        How the nodes are cut.
    depth : int
        Hops from the owned nodes of a partition to the rim of its ghost zone.
    growth : float
        Mean number of rows, ghosts included, per owned node.
    n_scales : int
        Expected number of scales.
    memory_per_task : float
        Bytes of the largest task.
    disk : float
        Bytes of all files while the run is under way.
    tasks : int
        Number of tasks.
    cpu_seconds : float
        CPU time of all processes, on the machine on which `benchmarks/scaling.py model` measured the costs; a faster processor takes less.
    seconds : float
        Expected time to wait, on the same machine.
    workers : int
        Number of processes that run tasks, on one core each.
    counted : str
        Where ghosts were counted, in words.
    memory : float, optional
        Bytes that a task may take.
    """

    n: int
    n_edges: int
    partitions: int
    by: str
    depth: int
    growth: float
    n_scales: int
    memory_per_task: float
    disk: float
    tasks: int
    cpu_seconds: float
    seconds: float
    workers: int
    counted: str
    memory: float | None = None

    def __str__(self) -> str:
        owned = -(-self.n // self.partitions)
        warning = ""
        if self.memory is not None and self.memory_per_task > self.memory:
            warning = f", more than the {self.memory / 1e9:.2f} GB asked for: ask for more, or choose more partitions"
        return "\n".join(
            [
                f"{self.n:,} nodes, {self.n_edges:,} edges, about {self.n_scales} scales",
                f"partitions       {self.partitions:,} of {owned:,} nodes, by {self.by}",
                f"ghosts           {self.growth - 1:.2f} per owned node within {self.depth} hops ({self.counted})",
                f"memory per task  {self.memory_per_task / 1e9:.2f} GB{warning}",
                f"files            {self.disk / 1e9:.2f} GB while it runs",
                f"tasks            {self.tasks:,}",
                f"time             {self.seconds:,.0f} s on {self.workers} worker{'s' * (self.workers > 1)} of one core "
                f"({self.cpu_seconds:,.0f} CPU seconds)",
            ]
        )


def plan(
    edges: Any,
    *,
    n: int | None = None,
    coords: Coords = None,
    partitions: int | None = None,
    by: By | None = None,
    memory: str | float | None = None,
    degree: int = 100,
    method: str = "sgwt_scaled",
    n_scales: int | None = None,
    weight: str | bool | None = None,
    most_ghosts: float | None = None,
    workers: int = 1,
    starts: int = 1,
    client: Any = None,
) -> Plan:
    """Return what it takes to prepare and denoise a graph; nothing is written.

    Ghosts of all partitions are counted, or of 16 where there are more.

    Parameters
    ----------
    edges : Graph, (m, 2) array, sparse matrix, or str, Path or list of them
        A graph, its edges, its adjacency matrix, or parquet files of edges, as in `prepare`.
    n : int, optional
        Number of nodes, where the last ones have no edges.
    coords : (n, 2) or (n, 3) array, or a .npy file, optional
        Places of the nodes, as in `prepare`.
    partitions : int, optional
        Number of partitions; by default as many as the memory requires.
    by : {"coordinates", "ordering", "rcm"}, optional
        How the nodes are cut, as in `prepare`.
    memory : str or float, optional
        Bytes that one task may take, such as "3GB"; by default those of the smallest worker.
    degree : int
        Degree of the polynomials: the ghost zone is as deep.
    method : {"auto", "let", "counts", "sgwt_sure", "sgwt_scaled"}
        The method of the run.
    n_scales : int, optional
        Number of scales; by default it is estimated from the degrees.
    weight : str or bool, optional
        Column of the weights in edge files, as in `prepare`.
    most_ghosts : float, optional
        Ghosts per owned node above which the graph is refused, as in `prepare`.
    workers : int
        Number of processes that run tasks, on one core each; with a client, the number of its workers.
    starts : int
        How often each process starts: once in one Python process, twice for the commands prepare and denoise.
    client : distributed.Client, optional
        The client of the cluster that will run the tasks.

    Returns
    -------
    Plan
        Partitions, ghosts, memory, files, tasks and time.

    Raises
    ------
    TooManyGhostsError
        If ghost zones are too large, as in a small world (a random or a scale-free graph); the message has the numbers and
        alternatives. It is a ValueError.

    Examples
    --------
    >>> import hushgraph as hg
    >>> plan = hg.distributed.plan(hg.datasets.grid(600, 600), partitions=4)
    >>> plan.partitions, round(plan.growth, 2)
    (4, 1.72)
    """
    choose("method", method, DISTRIBUTED)
    degree, workers, starts = (
        checked_count(name, count, 1) for name, count in (("degree", degree), ("workers", workers), ("starts", starts))
    )
    workers = workers if client is None else max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
    source = open_source(edges, weight, n, coords, purpose="plan")
    n, n_edges, weighted = source.n, source.n_edges, source.is_weighted
    cap, depth = task_memory(memory, client), max(degree, REACH)
    limit = None if most_ghosts is None else checked_number("most_ghosts", most_ghosts, "a number above 0", above=0)
    parts = partitions_for(n, 2 * n_edges, weighted, method, cap, n_scales) if partitions is None else partitions
    parts = checked_count("partitions", parts, 1, n)
    sample = Sample.of(source)
    n_pieces = len(source.pieces) if isinstance(source, FileSource) else 0
    ghosts = sample.growth(by, parts, depth, most_ghosts_of(parts, limit))
    shape = Shape(2 * n_edges / n, n_scales or sample.n_scales, weighted, method, default_probes(n))
    cost = Cost(n_edges, ghosts.growth * n, degree, shape, parts)
    processes = 1 if workers == 1 and client is None else 1 + workers
    cpu, busy = cost.prepare + cost.denoise, min(workers, parts)
    seconds = cpu * -(-parts // busy) / parts + START * starts * min(processes, 2)
    return Plan(
        n, n_edges, parts, str(ghosts.by), depth, ghosts.growth, shape.n_scales, BASE + ghosts.largest * shape.per_row,
        _disk(n, ghosts.growth * n, shape), n_pieces + parts * _n_stages(method, depth, parts), cpu + START * starts * processes, seconds,
        workers, ghosts.counted, cap,
    )  # fmt: skip


def _n_stages(method: str, depth: int, parts: int) -> int:
    """Return the number of tasks of a partition; a fitted filter takes two stages of several rounds each, here those of its lowest degree."""
    rounds = -(-FILTER_DEGREE // depth) if method == "auto" and parts > 1 else 1
    return 2 + len(stages_of(method)) + 2 * (rounds - 1)


def _disk(n: int, rows: float, shape: Shape) -> float:
    """Return the bytes of all files while a run is under way."""
    kept = min(shape.probes, RISK_PROBES)
    more = 8 * shape.n_scales * kept * (kept > 1)  # further probes, and their mean
    per_node, per_row = shape.prepared
    return n * (per_node + shape.disk + more) + rows * per_row
