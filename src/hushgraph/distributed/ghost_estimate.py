"""An estimate of the number of ghosts before a graph is cut; small worlds are refused.

Ghosts are counted by a breadth-first search from each partition, or from some of many partitions. Of graphs with too many edges for
that, one region is read, and its ghosts are scaled to the size of the partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hushgraph._errors import Sentence
from hushgraph.core import _loops
from hushgraph.distributed.cost_model import BASE, QUICK
from hushgraph.distributed.edges import read_piece
from hushgraph.distributed.ghosts import SMALL_WORLD, TooManyGhostsError, advice, too_many_ghosts
from hushgraph.distributed.partitioning import By, Owners, cut_for, owner_dtype
from hushgraph.distributed.sources import FileSource, GraphSource, Source
from hushgraph.distributed.store import pieces as slices
from hushgraph.graphs import Graph, symmetric_rows
from hushgraph.wavelets import count_scales

WHOLE = 40_000_000  # edges up to which the whole graph is read
REGION = 4_000_000  # nodes of the region that is read of a larger graph
LOOKED_AT = 16  # partitions whose ghosts are counted at most, spread evenly
LEAKY = 0.05  # share of the edges of a region that may leave it
FEW, MANY = 3, 2**17  # pieces of many edges that are looked at, and edges of each
PER_EDGE = 80  # bytes, to count ghosts in the whole graph


@dataclass(frozen=True)
class Ghosts:
    """An estimate of ghosts.

    Parameters
    ----------
    by : {"coordinates", "ordering", "rcm"}
        How the nodes are cut.
    growth : float
        Mean number of rows, ghosts included, per owned node.
    largest : int
        Rows of the largest partition that was looked at.
    counted : str
        Where ghosts were counted, in words.
    """

    by: By
    growth: float
    largest: int
    counted: str


@dataclass(frozen=True, eq=False)
class Sample:
    """A graph, or a region of a graph, to count ghosts in; `share` is the share of the nodes in the region, `n` the number of all."""

    starts: np.ndarray
    columns: np.ndarray
    coords: Any
    graph: Graph | None
    share: float
    n: int

    @classmethod
    def of(cls, source: Source) -> Sample:
        """Return the graph, the whole graph in the edge files, or a region of it where there are many edges."""
        n, coords = source.n, source.coords
        if isinstance(source, GraphSource):
            graph = source.graph
            return cls(graph.adjacency.indptr, graph.adjacency.indices, coords, graph, 1.0, n)
        if source.n_edges <= WHOLE:
            pairs = [read_piece(piece, source.columns, source.n)[0] for piece in source.pieces]
            matrix = symmetric_rows(np.concatenate([np.empty((0, 2), np.int64), *pairs]), None, n, "error").matrix
            return cls(matrix.indptr, matrix.indices, coords, None, 1.0, n)
        return cls._region(source)

    @classmethod
    def _region(cls, source: FileSource) -> Sample:
        """Return the nodes and edges of one box or range."""
        n, coords = source.n, source.coords
        count = max(2, n // REGION)
        _, owners = cut_for(None, n, count, coords, None)
        inside = np.full(n, -1, dtype=np.int32)
        size = 0
        for nodes in slices(n):
            members = np.flatnonzero(owners(nodes) == count // 2)
            inside[nodes.start + members] = size + np.arange(len(members))
            size += len(members)
        edges_inside, touching = [np.empty((0, 2), np.int64)], 0
        for piece in source.pieces:
            pairs = inside[read_piece(piece, source.columns, source.n)[0]]
            touching += int((pairs >= 0).any(axis=1).sum())
            edges_inside.append(pairs[(pairs >= 0).all(axis=1)].astype(np.int64))
        edges = np.concatenate(edges_inside)
        if touching - len(edges) > LEAKY * touching:
            msg = (
                "{:.0%} of the edges of a region of {:,} nodes leave it: distances in this graph are too short for partitions, or its nodes "
                "are badly numbered; {}denoise it on one machine ({hushgraph.denoise}), or on a GPU"
            )
            hint = Sentence("give {coords=}, ") if coords is None else ""
            raise TooManyGhostsError(Sentence(msg, 1 - len(edges) / touching, size, hint))
        matrix = symmetric_rows(edges, None, size, "error").matrix
        places = None if coords is None else np.asarray(coords)[np.flatnonzero(inside >= 0)]
        return cls(matrix.indptr, matrix.indices, places, None, size / n, n)

    @property
    def n_scales(self) -> int:
        """Number of scales of an unweighted graph, from a bound on the spectrum: the largest sum of the degrees of two neighbors."""
        degrees = np.diff(self.starts)
        if not len(self.columns):
            return 1
        return count_scales(float((np.repeat(degrees, degrees) + degrees[self.columns]).max()))

    def growth(self, by: By | None, parts: int, depth: int, limit: float) -> Ghosts:
        """Return an estimate of the ghosts of the partitions; raise TooManyGhostsError where there are too many."""
        here = len(self.starts) - 1
        whole = self.share == 1.0
        cuts = parts if whole else 4
        by, owners = cut_for(by, here, cuts, self.coords, self.graph)
        owner = np.empty(here, owner_dtype(cuts))
        for nodes in slices(here):
            owner[nodes] = owners(nodes)
        sizes, seen = np.bincount(owner, minlength=cuts), np.full(here, -1, np.int32)
        rows, shares = [], []
        for part in np.unique(np.linspace(0, cuts - 1, min(cuts, LOOKED_AT)).round().astype(int)):
            owned = int(sizes[part])
            ghosts, hops = _loops.count_ghosts(self.starts, self.columns, owner, int(part), seen, depth, int(limit * owned) + 1)
            if not whole:  # half the border of a quarter is that of the region, where no ghosts are; longer borders have more
                ghosts = round(2 * ghosts * self._longer(by, parts, owned))
                owned = self.n // parts
            if ghosts > limit * owned:
                raise TooManyGhostsError(too_many_ghosts(owned, ghosts, hops, depth, limit, has_places=self.coords is not None))
            rows.append(owned + ghosts)
            shares.append(ghosts / max(owned, 1))
        counted = "counted" if len(shares) == parts else f"counted for {len(shares)} partitions"
        counted = counted if whole else f"counted in {self.share:.0%} of the graph"
        return Ghosts(by, 1 + float(np.mean(shares)), max(rows), counted)

    def _longer(self, by: By, parts: int, owned: int) -> float:
        """Return the ratio of the border of a partition to that of a quarter of the region."""
        if by != "coordinates":
            return 1.0
        dimensions = self.coords.shape[1]
        return float((self.n / parts / max(owned, 1)) ** ((dimensions - 1) / dimensions))


def refuse_small_worlds(
    source: FileSource, by: By, owners: Owners, parts: int, depth: int, limit: float, memory: float | None
) -> None:
    """Refuse a small world before edges are sorted, from all ghosts of the partitions or, of many edges, from a few pieces."""
    n_edges, pieces = source.n_edges, source.pieces
    if parts == 1 or not pieces:
        return
    if n_edges <= QUICK and (memory is None or PER_EDGE * n_edges < memory - BASE):
        Sample.of(source).growth(by, parts, depth, limit)
        return
    some = [pieces[k] for k in sorted({len(pieces) * k // FEW for k in range(FEW)})]
    count = crossing = 0
    for piece in some:
        pairs = read_piece(piece, source.columns, source.n)[0]
        pairs = np.ascontiguousarray(pairs[:: -(-len(pairs) // MANY) or 1].T, dtype=np.int64)
        count, crossing = count + pairs.shape[1], crossing + int((owners(pairs[0]) != owners(pairs[1])).sum())
    most = min(0.5, limit / 6)  # of the edges: each that crosses gives two partitions a ghost, and each hop more of them
    if crossing > most * count:
        msg = (
            f"{crossing:,} of {count:,} edges that were looked at ({crossing / count:.0%}) lead from one of the {parts:,} partitions to another, up to "
            f"{2 * crossing / count * n_edges / source.n:.1f} ghosts per node at the first of {depth} hops, and {limit:g} are allowed in all: {SMALL_WORLD}"
        )
        raise TooManyGhostsError(Sentence("{}; {}", msg, advice(has_places=source.coords is not None)))
