"""Rows of a symmetric matrix for a GPU: neighbours four by four, in an order whose rows are near their neighbours in memory.

The order needs no coordinates: distances (in steps along edges) from two landmarks far apart are as good as some, and a Hilbert
curve through them keeps together what is close. Neighbours are stored as differences of row numbers, which nearly always fit
16 bits; a row that has more of them, or one too far away, keeps the rest in a tail of its own. Inside a row neighbours stay in
ascending node number, so that sums are those of the processor. Only matrices are used here, no graph and no GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hushgraph.core import _loops
from hushgraph.core.layout import is_uniform

BITS = 12  # of each coordinate along the Hilbert curve
LONGEST = 128  # neighbours of a row that one thread adds up; a warp adds up those of longer rows
FEW = 0.03  # share of rows that may have a far neighbour for differences of 16 bits to pay
WARP = 32


@dataclass(frozen=True, eq=False)
class Quads:
    """diag(diagonal) - adjacency, renumbered: row i is node order[i].

    `differences` (quads, stride, 4) are neighbours minus i, 0 where there is none; the least number of the type, at the end of
    the last quad, says that a tail follows. The tails of the 32 rows of a warp are numbered from `warp_tails[warp]` on; tail t is
    `tail_rows[tail_starts[t] : tail_starts[t + 1]]`. `long_rows` have nothing but a list, likewise. Values are None when every edge
    weighs `uniform`, the diagonal when it is the row's length times that.
    """

    order: np.ndarray
    differences: np.ndarray
    warp_tails: np.ndarray
    tail_starts: np.ndarray
    tail_rows: np.ndarray
    long_rows: np.ndarray
    long_starts: np.ndarray
    long_neighbours: np.ndarray
    values: tuple[np.ndarray, np.ndarray, np.ndarray] | None  # of quads, tails and long rows
    diagonal: np.ndarray | None
    uniform: float

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.order)

    @property
    def stride(self) -> int:
        """Number of rows, rounded up to whole warps."""
        return self.differences.shape[1]


def prepare(adjacency: Any, diagonal: np.ndarray) -> Quads:
    """Renumber the rows and store them in quads."""
    indptr, indices = adjacency.indptr, adjacency.indices
    order = compact_order(indptr, indices)
    n, new = len(order), np.empty(len(order), np.int64)
    new[order] = np.arange(n)
    weight = float(adjacency.data[0]) if adjacency.nnz else 1.0
    same = is_uniform(adjacency, diagonal)
    length = np.diff(indptr)[order].astype(np.int64)
    is_long = length > LONGEST
    per_row = int(np.clip(-(-np.quantile(length, 0.9) // 4), 1, 4)) if n else 1
    kind = np.int16 if _loops.count_inside(indptr, indices, order, new, is_long, per_row, 2**15 - 1)[1] <= FEW * n else np.int32
    inside, _ = _loops.count_inside(indptr, indices, order, new, is_long, per_row, np.iinfo(kind).max)
    stride = -(-max(n, 1) // WARP) * WARP
    differences = np.zeros((per_row, stride, 4), kind)
    _loops.fill_quads(indptr, indices, order, new, inside, length, is_long, differences)
    has_tail = (inside < length) & ~is_long
    firsts = np.concatenate([[0], np.cumsum(has_tail)])[: max(n, 1) : WARP].astype(np.uint32)
    tail_starts, tail_places = _lists(has_tail, inside, length, indptr[order])
    long_starts, long_places = _lists(is_long, inside, length, indptr[order])
    values = None
    if not same:
        in_quads = np.zeros(differences.shape)
        _loops.fill_quad_values(indptr, adjacency.data, order, inside, in_quads)
        values = in_quads, adjacency.data[tail_places], adjacency.data[long_places]
    ordered_diagonal = None if same and not is_long.any() else np.asarray(diagonal, dtype=np.float64)[order]
    return Quads(
        order=order.astype(np.int32),
        differences=differences,
        warp_tails=firsts,
        tail_starts=tail_starts,
        tail_rows=new[indices[tail_places]].astype(np.uint32),
        long_rows=np.flatnonzero(is_long).astype(np.int32),
        long_starts=long_starts,
        long_neighbours=new[indices[long_places]].astype(np.uint32),
        values=values,
        diagonal=ordered_diagonal,
        uniform=weight,
    )


def compact_order(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return the nodes along a Hilbert curve through their distances from two landmarks, component after component."""
    n = len(indptr) - 1
    ends, component = _loops.far_ends(indptr, indices)
    first, others = _loops.steps_from(indptr, indices, ends)
    second, _ = _loops.steps_from(indptr, indices, others)
    between = _loops.largest_nodes(np.minimum(first, second), component, len(ends))
    third, _ = _loops.steps_from(indptr, indices, between)
    key = _loops.hilbert_places(first, third, component, len(ends), BITS) if n else np.zeros(0, np.int64)
    return np.lexsort((key, component))


def _lists(chosen: np.ndarray, inside: np.ndarray, length: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the starts of the lists of neighbours that are not inside quads, and the places of their entries among the indices."""
    counts = (length - inside)[chosen]
    starts = np.concatenate([[0], np.cumsum(counts)])
    places = np.repeat((start + inside)[chosen] - starts[:-1], counts) + np.arange(starts[-1])
    return starts.astype(np.uint32), places
