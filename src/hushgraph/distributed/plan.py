"""What a distributed run would take, before anything runs: partitions, ghosts, memory, files, tasks, time; small worlds are refused.

Ghosts are counted by a breadth-first search from a few partitions. Where the edges are too many for that, a region of the graph is
read, and its ghosts are scaled to the size of the partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from hushgraph.checks import checked_count, checked_number, choose
from hushgraph.distributed.cut import By, cut_for
from hushgraph.distributed.edges import Columns, read_piece
from hushgraph.distributed.ghosts import TooManyGhostsError
from hushgraph.distributed.prepare import coords_of, count_nodes, memory_of, most_ghosts_of, pieces_and_columns
from hushgraph.distributed.size import BASE, START, Cost, Shape, nodes_per_partition
from hushgraph.distributed.store import pieces
from hushgraph.graph import Graph
from hushgraph.partition import count_scales
from hushgraph.risk import default_probes
from hushgraph.sgwt import RISK_PROBES
from hushgraph.spectrum import PRODUCTS
from hushgraph.symmetric import symmetric_rows

WHOLE = 40_000_000  # edges up to which the whole graph is read
REGION = 4_000_000  # nodes of the region that is read of larger ones
LOOKED_AT = 3  # partitions whose ghosts are counted
LEAKY = 0.05  # share of a region's edges that leave it, above which it is no region
STAGES = {
    "sgwt_sure": 6,
    "sgwt_scaled": 9,
    "let": 9,
    "auto": 9,
}  # stages of one task per partition each, besides those of preparing


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
    choose("method", method, tuple(STAGES))
    degree, workers = checked_count("degree", degree, 1), checked_count("workers", workers, 1)
    workers = workers if client is None else max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
    graph, files, columns = (edges, [], None) if isinstance(edges, Graph) else (None, *pieces_and_columns(edges, weight))
    coords = graph.coords if graph is not None and coords is None else coords_of(coords)
    n = graph.n if graph is not None else count_nodes(n, files, columns, coords)
    n_edges = graph.n_edges if graph is not None else sum(piece[3] for piece in files)
    cap, depth = memory_of(memory, client), max(degree, PRODUCTS)
    limit = None if most_ghosts is None else checked_number("most_ghosts", most_ghosts, "a number above 0", above=0)
    weighted = columns is not None and columns.weight is not None if graph is None else not graph.is_unweighted
    sample = _Sample.of(graph, files, columns, n, n_edges, coords)
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
        len(files) + parts * (2 + STAGES[method]), cpu + START * (workers + (workers > 1)), seconds, workers, counted,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Sample:
    """A graph, or a region of it, to count ghosts in; `share` is the part of the nodes that the region has."""

    starts: np.ndarray
    columns: np.ndarray
    coords: Any
    graph: Graph | None
    share: float
    n: int

    @classmethod
    def of(cls, graph: Graph | None, files, columns, n: int, n_edges: int, coords) -> _Sample:
        if graph is not None:
            return cls(graph.adjacency.indptr, graph.adjacency.indices, coords, graph, 1.0, n)
        if n_edges <= WHOLE:
            pairs = np.concatenate([np.empty((0, 2), np.int64), *(read_piece(piece, columns)[0] for piece in files)])
            matrix = symmetric_rows(pairs, None, n, "error").matrix
            return cls(matrix.indptr, matrix.indices, coords, None, 1.0, n)
        return cls._region(files, columns, n, coords)

    @classmethod
    def _region(cls, files, columns: Columns, n: int, coords) -> _Sample:
        """Nodes and edges of one box or range."""
        count = max(2, n // REGION)
        _, owners = cut_for(None, n, count, coords, None)
        inside = np.full(n, -1, dtype=np.int32)
        size = 0
        for nodes in pieces(n):
            own = np.flatnonzero(owners(nodes) == count // 2)
            inside[nodes.start + own] = size + np.arange(len(own))
            size += len(own)
        kept, met = [np.empty((0, 2), np.int64)], 0
        for piece in files:
            pairs = inside[read_piece(piece, columns)[0]]
            both = (pairs >= 0).all(axis=1)
            met += int((pairs >= 0).any(axis=1).sum())
            kept.append(pairs[both].astype(np.int64))
        found = np.concatenate(kept)
        if met - len(found) > LEAKY * met:
            msg = (
                f"{1 - len(found) / met:.0%} of the edges of a region of {size:,} nodes leave it: distances in this graph are too short for "
                "partitions, or its nodes are badly numbered; give coords=, denoise it on one machine (hushgraph.denoise), or on a GPU"
            )
            raise TooManyGhostsError(msg)
        matrix = symmetric_rows(found, None, size, "error").matrix
        places = None if coords is None else np.asarray(coords)[np.flatnonzero(inside >= 0)]
        return cls(matrix.indptr, matrix.indices, places, None, size / n, n)

    @property
    def n_scales(self) -> int:
        """For an unweighted graph, from the largest sum of the degrees of two neighbours, a bound on the spectrum."""
        degrees = np.diff(self.starts)
        if not len(self.columns):
            return 1
        return count_scales(float((np.repeat(degrees, degrees) + degrees[self.columns]).max()))

    def growth(self, by: By | None, parts: int, depth: int, limit: float) -> tuple[By, float, str]:
        """Rows per owned node, the mean over a few partitions; refuses a small world."""
        here = len(self.starts) - 1
        whole = self.share == 1.0
        cuts = parts if whole else 4
        by, owners = cut_for(by, here, cuts, self.coords, self.graph)
        owner = np.concatenate([owners(nodes) for nodes in pieces(here)]) if here else np.empty(0, np.int64)
        shares = []
        for part in sorted({0, cuts // 2, cuts - 1})[:LOOKED_AT]:
            owned = int((owner == part).sum())
            ghosts, hops = _count_ghosts(self.starts, self.columns, owner == part, depth, int(limit * owned) + 1)
            if not whole:  # half the border of a quarter is that of the region; longer borders have more ghosts
                ghosts = round(2 * ghosts * self._longer(by, parts, owned))
                owned = self.n // parts
            if ghosts > limit * owned:
                msg = (
                    f"a partition of {owned:,} nodes has {ghosts:,} ghosts or more after {hops} of {depth} hops, {ghosts / max(owned, 1):.1f} per "
                    f"owned node, and {limit:g} are allowed: distances in this graph are too short for partitions (a small world, such as a "
                    "scale-free or random graph, or nodes in a bad order); denoise it on one machine (hushgraph.denoise) or on a GPU, give "
                    "coords=, use fewer partitions or a lower degree, or raise most_ghosts"
                )
                raise TooManyGhostsError(msg)
            shares.append(ghosts / max(owned, 1))
        return by, 1 + float(np.mean(shares)), "counted" if whole else f"counted in {self.share:.0%} of the graph"

    def _longer(self, by: By, parts: int, owned: int) -> float:
        """How much longer the border of a partition is than that of a part of the region."""
        if by != "coordinates":
            return 1.0
        dimensions = self.coords.shape[1]
        return float((self.n / parts / max(owned, 1)) ** ((dimensions - 1) / dimensions))


@njit(cache=True)
def _count_ghosts(starts, columns, own, depth, most):
    """Nodes within `depth` hops of the owned ones, up to `most`; and how many hops were made."""
    seen, here = own.copy(), np.flatnonzero(own)
    count, layer = 0, np.empty(len(own), np.int64)
    for hop in range(depth):
        size = 0
        for i in here:
            for p in range(starts[i], starts[i + 1]):
                if not seen[columns[p]]:
                    seen[columns[p]] = True
                    layer[size] = columns[p]
                    size += 1
        count += size
        if size == 0 or count > most:
            return count, hop + 1
        here = layer[:size].copy()
    return count, depth
