"""What a distributed run would take, before anything runs: partitions, ghosts, memory, files, tasks, time; small worlds are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from hushgraph.checks import checked_count, checked_number, choose
from hushgraph.distributed.cut import By
from hushgraph.distributed.denoise import Method, stages_of
from hushgraph.distributed.prepare import coords_of, count_nodes, most_ghosts_of, pieces_and_columns
from hushgraph.distributed.sample import Sample
from hushgraph.distributed.size import BASE, START, Cost, Shape, memory_of, nodes_per_partition
from hushgraph.graph import Graph
from hushgraph.risk import default_probes
from hushgraph.sgwt import RISK_PROBES
from hushgraph.spectrum import PRODUCTS


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

    def __str__(self) -> str:
        owned = -(-self.n // self.partitions)
        return "\n".join(
            [
                f"{self.n:,} nodes, {self.n_edges:,} edges, about {self.n_scales} scales",
                f"partitions       {self.partitions:,} of {owned:,} nodes, by {self.by}",
                f"ghosts           {self.growth - 1:.2f} per owned node within {self.depth} hops ({self.counted})",
                f"memory per task  {self.memory_per_task / 1e9:.2f} GB",
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
    client=None,
) -> Plan:
    """What preparing and denoising a graph would take; nothing is written.

    Parameters are those of `prepare`. A graph whose ghost zones are too large (a small world: random, scale-free) is refused,
    with the numbers and what to do instead.

    Examples
    --------
    >>> import hushgraph as hg
    >>> found = hg.distributed.plan(hg.datasets.grid(600, 600), partitions=4)
    >>> found.partitions, round(found.growth, 2)
    (4, 1.72)
    """
    choose("method", method, get_args(Method))
    degree, workers = checked_count("degree", degree, 1), checked_count("workers", workers, 1)
    workers = workers if client is None else max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
    graph, files, columns = (edges, [], None) if isinstance(edges, Graph) else (None, *pieces_and_columns(edges, weight))
    coords = graph.coords if graph is not None and coords is None else coords_of(coords)
    n = graph.n if graph is not None else count_nodes(n, files, columns, coords)
    n_edges = graph.n_edges if graph is not None else sum(piece[3] for piece in files)
    cap, depth = memory_of(memory, client), max(degree, PRODUCTS)
    limit = None if most_ghosts is None else checked_number("most_ghosts", most_ghosts, "a number above 0", above=0)
    weighted = columns is not None and columns.weight is not None if graph is None else not graph.is_unweighted
    sample = Sample.of(graph, files, columns, n, n_edges, coords)
    shape = Shape(2 * n_edges / max(n, 1), n_scales or sample.n_scales, weighted, method)
    growth = 1.3
    for _ in range(1 if partitions is not None else 3):  # more memory per node, smaller partitions, more ghosts
        parts = partitions or -(-n // nodes_per_partition(shape, cap, growth))
        parts = checked_count("partitions", parts, 1, max(n, 1))
        by, growth, counted = sample.growth(by, parts, depth, most_ghosts_of(parts) if limit is None else limit)
    cost = Cost(n_edges, growth * n, degree, shape, default_probes(n))
    memory_per_task = BASE + growth * -(-n // parts) * shape.per_row
    kept = min(default_probes(n), RISK_PROBES)
    more = 8 * shape.n_scales * kept * (kept > 1)  # further probes, and their mean
    disk = n * (24 + shape.disk + more) + growth * n * (44 + 8 * shape.entries)
    cpu, busy = cost.prepare + cost.denoise, min(workers, parts)
    seconds = cpu * -(-parts // busy) / parts + START * (1 + (workers > 1))
    return Plan(
        n, n_edges, parts, str(by), depth, growth, shape.n_scales, memory_per_task, disk,
        len(files) + parts * (2 + len(stages_of(method))), cpu + START * (workers + (workers > 1)), seconds, workers, counted,
    )  # fmt: skip
