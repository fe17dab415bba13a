"""A look at a graph before anything is cut: how many ghosts partitions will have; small worlds are refused.

Ghosts are counted by a breadth-first search from each partition, or from some where there are many. Where the edges are too many for
that, a region of the graph is read, and its ghosts are scaled to the size of the partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hushgraph._errors import Sentence
from hushgraph.core import _loops
from hushgraph.distributed.cut import By, cut_for, owner_type
from hushgraph.distributed.edges import Columns, read_piece
from hushgraph.distributed.ghosts import SMALL_WORLD, TooManyGhostsError, advice, too_many
from hushgraph.distributed.size import BASE, QUICK
from hushgraph.distributed.store import pieces
from hushgraph.graph import Graph
from hushgraph.partition import count_scales
from hushgraph.symmetric import symmetric_rows

WHOLE = 40_000_000  # edges up to which the whole graph is read
REGION = 4_000_000  # nodes of the region that is read of larger ones
LOOKED_AT = 16  # partitions whose ghosts are counted; of more, so many that are spread evenly
LEAKY = 0.05  # share of a region's edges that leave it, above which it is no region
FEW, MANY = 3, 2**17  # pieces of the edges that are looked at of larger ones, and edges of each
PER_EDGE = 80  # bytes, to count ghosts in the whole graph


@dataclass(frozen=True)
class Ghosts:
    """How the nodes are cut; rows per owned node, the mean; rows of the largest partition that was looked at; and how they were found."""

    by: By
    growth: float
    largest: int
    counted: str


@dataclass(frozen=True, eq=False)
class Sample:
    """A graph, or a region of it, to count ghosts in; `share` is the part of the nodes that the region has."""

    starts: np.ndarray
    columns: np.ndarray
    coords: Any
    graph: Graph | None
    share: float
    n: int

    @classmethod
    def of(cls, graph: Graph | None, files, columns, n: int, n_edges: int, coords) -> Sample:
        if graph is not None:
            return cls(graph.adjacency.indptr, graph.adjacency.indices, coords, graph, 1.0, n)
        if n_edges <= WHOLE:
            pairs = np.concatenate([np.empty((0, 2), np.int64), *(read_piece(piece, columns)[0] for piece in files)])
            matrix = symmetric_rows(pairs, None, n, "error").matrix
            return cls(matrix.indptr, matrix.indices, coords, None, 1.0, n)
        return cls._region(files, columns, n, coords)

    @classmethod
    def _region(cls, files, columns: Columns, n: int, coords) -> Sample:
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
                "{:.0%} of the edges of a region of {:,} nodes leave it: distances in this graph are too short for partitions, or its nodes "
                "are badly numbered; {}denoise it on one machine ({hushgraph.denoise}), or on a GPU"
            )
            hint = Sentence("give {coords=}, ") if coords is None else ""
            raise TooManyGhostsError(Sentence(msg, 1 - len(found) / met, size, hint))
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

    def growth(self, by: By | None, parts: int, depth: int, limit: float) -> Ghosts:
        """Ghosts of the partitions; refuses those that have too many."""
        here = len(self.starts) - 1
        whole = self.share == 1.0
        cuts = parts if whole else 4
        by, owners = cut_for(by, here, cuts, self.coords, self.graph)
        owner = np.empty(here, owner_type(cuts))
        for nodes in pieces(here):
            owner[nodes] = owners(nodes)
        sizes, seen = np.bincount(owner, minlength=cuts), np.full(here, -1, np.int32)
        rows, shares = [], []
        for part in np.unique(np.linspace(0, cuts - 1, min(cuts, LOOKED_AT)).round().astype(int)):
            owned = int(sizes[part])
            ghosts, hops = _loops.count_ghosts(self.starts, self.columns, owner, int(part), seen, depth, int(limit * owned) + 1)
            if not whole:  # half the border of a quarter is that of the region; longer borders have more ghosts
                ghosts = round(2 * ghosts * self._longer(by, parts, owned))
                owned = self.n // parts
            if ghosts > limit * owned:
                raise TooManyGhostsError(too_many(owned, ghosts, hops, depth, limit, has_places=self.coords is not None))
            rows.append(owned + ghosts)
            shares.append(ghosts / max(owned, 1))
        counted = "counted" if len(shares) == parts else f"counted for {len(shares)} partitions"
        counted = counted if whole else f"counted in {self.share:.0%} of the graph"
        return Ghosts(by, 1 + float(np.mean(shares)), max(rows), counted)

    def _longer(self, by: By, parts: int, owned: int) -> float:
        """How much longer the border of a partition is than that of a part of the region."""
        if by != "coordinates":
            return 1.0
        dimensions = self.coords.shape[1]
        return float((self.n / parts / max(owned, 1)) ** ((dimensions - 1) / dimensions))


def refuse_small_worlds(
    files, columns: Columns, n: int, coords, by: By, owners, parts: int, depth: int, limit: float, memory: float | None
) -> None:
    """A quick look before edges are sorted, so that hours are not lost: all ghosts of the partitions, or a few pieces of many edges."""
    n_edges = sum(piece[3] for piece in files)
    if parts == 1 or not files:
        return
    if n_edges <= QUICK and (memory is None or PER_EDGE * n_edges < memory - BASE):
        Sample.of(None, files, columns, n, n_edges, coords).growth(by, parts, depth, limit)
        return
    some = [files[k] for k in sorted({len(files) * k // FEW for k in range(FEW)})]
    met = crossing = 0
    for piece in some:
        pairs = read_piece(piece, columns)[0]
        pairs = np.ascontiguousarray(pairs[:: -(-len(pairs) // MANY) or 1].T, dtype=np.int64)
        met, crossing = met + pairs.shape[1], crossing + int((owners(pairs[0]) != owners(pairs[1])).sum())
    most = min(0.5, limit / 6)  # of the edges: each that crosses gives two partitions a ghost, and each hop more of them
    if crossing > most * met:
        msg = (
            f"{crossing:,} of {met:,} edges that were looked at ({crossing / met:.0%}) lead from one of the {parts:,} partitions to another, up to "
            f"{2 * crossing / met * n_edges / n:.1f} ghosts per node at the first of {depth} hops, and {limit:g} are allowed in all: {SMALL_WORLD}"
        )
        raise TooManyGhostsError(Sentence("{}; {}", msg, advice(has_places=coords is not None)))
