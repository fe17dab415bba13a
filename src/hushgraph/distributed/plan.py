"""What a distributed run would take, before anything runs: partitions, ghosts, memory, files, tasks, time; small worlds are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from hushgraph._errors import InputError
from hushgraph.checks import checked_count, checked_number, choose
from hushgraph.distributed.cut import By
from hushgraph.distributed.denoise import stages_of
from hushgraph.distributed.prepare import coords_of, count_nodes, graph_or_files, most_ghosts_of
from hushgraph.distributed.sample import Sample
from hushgraph.distributed.size import BASE, START, Cost, Method, Shape, memory_of, partitions_for
from hushgraph.risk import default_probes
from hushgraph.sgwt import RISK_PROBES
from hushgraph.spectrum import REACH


@dataclass(frozen=True)
class Plan:
    """What a run would take; `str` says it in words."""

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
    memory: float | None = None  # that was asked for

    def __str__(self) -> str:
        owned = -(-self.n // self.partitions)
        told = ""
        if self.memory is not None and self.memory_per_task > self.memory:
            told = f", more than the {self.memory / 1e9:.2f} GB asked for: ask for more, or choose more partitions"
        return "\n".join(
            [
                f"{self.n:,} nodes, {self.n_edges:,} edges, about {self.n_scales} scales",
                f"partitions       {self.partitions:,} of {owned:,} nodes, by {self.by}",
                f"ghosts           {self.growth - 1:.2f} per owned node within {self.depth} hops ({self.counted})",
                f"memory per task  {self.memory_per_task / 1e9:.2f} GB{told}",
                f"files            {self.disk / 1e9:.2f} GB while it runs",
                f"tasks            {self.tasks:,}",
                f"time             {self.seconds:,.0f} s on {self.workers} worker{'s' * (self.workers > 1)} of one core "
                f"({self.cpu_seconds:,.0f} CPU seconds)",
            ]
        )


def plan(
    edges,
    *,
    n: int | None = None,
    coords=None,
    partitions: int | None = None,
    by: By | None = None,
    memory=None,
    degree: int = 100,
    method: str = "sgwt_scaled",
    n_scales: int | None = None,
    weight: str | bool | None = None,
    most_ghosts: float | None = None,
    workers: int = 1,
    starts: int = 1,
    client=None,
) -> Plan:
    """What preparing and denoising a graph would take; nothing is written.

    A graph whose ghost zones are too large (a small world: random, scale-free) is refused, with the numbers and what to do instead.
    Ghosts of all partitions are counted, or of 16 where there are more.

    Parameters
    ----------
    workers : int
        How many processes run tasks, on a core each; with a client, as many as it has.
    starts : int
        How often processes begin anew: once in one Python process, twice for the commands prepare and denoise.
    others
        Those of `prepare`.

    Examples
    --------
    >>> import hushgraph as hg
    >>> found = hg.distributed.plan(hg.datasets.grid(600, 600), partitions=4)
    >>> found.partitions, round(found.growth, 2)
    (4, 1.72)
    """
    choose("method", method, get_args(Method))
    degree, workers, starts = (
        checked_count(name, count, 1) for name, count in (("degree", degree), ("workers", workers), ("starts", starts))
    )
    workers = workers if client is None else max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
    coords = coords_of(coords)
    graph, files, columns = graph_or_files(edges, weight, n, coords)
    coords = graph.coords if graph is not None and coords is None else coords
    n = graph.n if graph is not None else count_nodes(n, files, columns, coords)
    if n == 0:
        msg = "the graph has no nodes: there is nothing to plan"
        raise InputError(msg)
    n_edges = graph.n_edges if graph is not None else sum(piece[3] for piece in files)
    cap, depth = memory_of(memory, client), max(degree, REACH)
    limit = None if most_ghosts is None else checked_number("most_ghosts", most_ghosts, "a number above 0", above=0)
    weighted = columns is not None and columns.weight is not None if graph is None else not graph.is_unweighted
    parts = partitions_for(n, 2 * n_edges, weighted, method, cap, n_scales) if partitions is None else partitions
    parts = checked_count("partitions", parts, 1, n)
    sample = Sample.of(graph, files, columns, n, n_edges, coords)
    ghosts = sample.growth(by, parts, depth, most_ghosts_of(parts, limit))
    shape = Shape(2 * n_edges / n, n_scales or sample.n_scales, weighted, method, default_probes(n))
    cost = Cost(n_edges, ghosts.growth * n, degree, shape, parts)
    processes = 1 if workers == 1 and client is None else 1 + workers
    cpu, busy = cost.prepare + cost.denoise, min(workers, parts)
    seconds = cpu * -(-parts // busy) / parts + START * starts * min(processes, 2)
    return Plan(
        n, n_edges, parts, str(ghosts.by), depth, ghosts.growth, shape.n_scales, BASE + ghosts.largest * shape.per_row,
        _disk(n, ghosts.growth * n, shape), len(files) + parts * (2 + len(stages_of(method))), cpu + START * starts * processes, seconds,
        workers, ghosts.counted, cap,
    )  # fmt: skip


def _disk(n: int, rows: float, shape: Shape) -> float:
    """Bytes of all files while a run is under way."""
    kept = min(shape.probes, RISK_PROBES)
    more = 8 * shape.n_scales * kept * (kept > 1)  # further probes, and their mean
    per_node, per_row = shape.prepared
    return n * (per_node + shape.disk + more) + rows * per_row
