"""Rows of a symmetric matrix for a GPU: neighbours four by four, in an order whose rows are near their neighbours in memory.

The order needs no coordinates: distances (in steps along edges) from two landmarks far apart are as good as some, and a Hilbert
curve through them keeps together what is close. Neighbours are stored as differences of row numbers, which nearly always fit
16 bits; a row that has more of them, or one too far away, keeps the rest in a tail of its own. Inside a row neighbours stay in
ascending node number, so that sums are those of the other kernels. Knows no graph and no GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit, prange

from hushgraph.kernels.threads import parallel_njit

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
        return len(self.order)

    @property
    def stride(self) -> int:
        return self.differences.shape[1]


def prepare(adjacency, diagonal) -> Quads:
    """Renumber the rows and store them in quads."""
    indptr, indices = adjacency.indptr, adjacency.indices
    order = compact_order(indptr, indices)
    n, new = len(order), np.empty(len(order), np.int64)
    new[order] = np.arange(n)
    weight = float(adjacency.data[0]) if adjacency.nnz else 1.0
    same = bool(np.all(adjacency.data == weight)) and np.allclose(diagonal, weight * np.diff(indptr), rtol=1e-13, atol=0)
    length = np.diff(indptr)[order].astype(np.int64)
    is_long = length > LONGEST
    per_row = int(np.clip(-(-np.quantile(length, 0.9) // 4), 1, 4)) if n else 1
    kind = np.int16 if _inside(indptr, indices, order, new, is_long, per_row, 2**15 - 1)[1] <= FEW * n else np.int32
    inside, _ = _inside(indptr, indices, order, new, is_long, per_row, np.iinfo(kind).max)
    stride = -(-max(n, 1) // WARP) * WARP
    differences = np.zeros((per_row, stride, 4), kind)
    _fill(indptr, indices, order, new, inside, length, is_long, differences)
    has_tail = (inside < length) & ~is_long
    firsts = np.concatenate([[0], np.cumsum(has_tail)])[: max(n, 1) : WARP].astype(np.uint32)
    tail_starts, tail_places = _lists(has_tail, inside, length, indptr[order])
    long_starts, long_places = _lists(is_long, inside, length, indptr[order])
    values = None
    if not same:
        in_quads = np.zeros(differences.shape)
        _fill_values(indptr, adjacency.data, order, inside, in_quads)
        values = in_quads, adjacency.data[tail_places], adjacency.data[long_places]
    known = None if same and not is_long.any() else np.asarray(diagonal, dtype=np.float64)[order]
    return Quads(
        order.astype(np.int32), differences, firsts, tail_starts, new[indices[tail_places]].astype(np.uint32),
        np.flatnonzero(is_long).astype(np.int32), long_starts, new[indices[long_places]].astype(np.uint32), values, known, weight,
    )  # fmt: skip


def compact_order(indptr, indices) -> np.ndarray:
    """Nodes along a Hilbert curve through their distances from two landmarks, component after component."""
    n = len(indptr) - 1
    ends, component = _far_ends(indptr, indices)
    first, others = _distances(indptr, indices, ends)
    second, _ = _distances(indptr, indices, others)
    between = _most(np.minimum(first, second), component, len(ends))
    third, _ = _distances(indptr, indices, between)
    key = _hilbert(first, third, component, len(ends)) if n else np.zeros(0, np.int64)
    return np.lexsort((key, component))


@njit(cache=True)
def _far_ends(indptr, indices):
    """For each component a node at one of its ends; and the component of each node."""
    n = len(indptr) - 1
    component, queue, ends, count = np.full(n, -1, np.int32), np.empty(n, np.int64), np.empty(n, np.int64), 0
    for seed in range(n):
        if component[seed] >= 0:
            continue
        head, tail = 0, 1
        queue[0], component[seed] = seed, count
        while head < tail:
            for p in range(indptr[queue[head]], indptr[queue[head] + 1]):
                if component[indices[p]] < 0:
                    component[indices[p]] = count
                    queue[tail] = indices[p]
                    tail += 1
            head += 1
        ends[count] = queue[tail - 1]
        count += 1
    return ends[:count].copy(), component


@njit(cache=True)
def _distances(indptr, indices, seeds):
    """Steps from the seed of the own component, and for each seed the node that is reached last."""
    n = len(indptr) - 1
    distance, queue, last = np.full(n, -1, np.int32), np.empty(n, np.int64), seeds.copy()
    for k in range(len(seeds)):
        head, tail = 0, 1
        queue[0], distance[seeds[k]] = seeds[k], 0
        while head < tail:
            u = queue[head]
            head += 1
            for p in range(indptr[u], indptr[u + 1]):
                if distance[indices[p]] < 0:
                    distance[indices[p]] = distance[u] + 1
                    queue[tail] = indices[p]
                    tail += 1
        last[k] = queue[tail - 1]
    return distance, last


@njit(cache=True)
def _most(values, component, count):
    """The node with the largest value in each component, the first of them."""
    best = np.full(count, -1, np.int64)
    for i in range(len(values)):
        if best[component[i]] < 0 or values[i] > values[best[component[i]]]:
            best[component[i]] = i
    return best


@njit(cache=True)
def _hilbert(x, y, component, count):
    """Places along the curve, each component stretched over all of it."""
    side = (1 << BITS) - 1
    far = np.ones((count, 2), np.int64)
    for i in range(len(x)):
        far[component[i], 0], far[component[i], 1] = max(far[component[i], 0], x[i]), max(far[component[i], 1], y[i])
    out = np.empty(len(x), np.int64)
    for i in range(len(x)):
        a, b = np.int64(x[i]) * side // far[component[i], 0], np.int64(y[i]) * side // far[component[i], 1]
        place, s = 0, 1 << (BITS - 1)
        while s > 0:
            right, up = 1 if a & s else 0, 1 if b & s else 0
            place += s * s * ((3 * right) ^ up)
            if up == 0:
                if right == 1:
                    a, b = side - a, side - b
                a, b = b, a
            s >>= 1
        out[i] = place
    return out


@parallel_njit()
def _inside(indptr, indices, order, new, is_long, per_row, most):
    """How many neighbours of each row stand in its quads (all, or those before the tail), and how many rows have one too far away."""
    inside, is_far = np.zeros(len(order), np.int64), np.zeros(len(order), np.int8)
    for i in prange(len(order)):
        if not is_long[i]:
            start, length = indptr[order[i]], indptr[order[i] + 1] - indptr[order[i]]
            room, count = 4 * per_row if length <= 4 * per_row else 4 * per_row - 1, 0
            while count < min(length, room) and abs(new[indices[start + count]] - i) <= most:
                count += 1
            is_far[i] = count < min(length, room)
            inside[i] = min(count, 4 * per_row - 1) if count < length else count
    return inside, np.sum(is_far.astype(np.int64))


@parallel_njit()
def _fill(indptr, indices, order, new, inside, length, is_long, out):
    flag = -(2 ** (8 * out.itemsize - 1))
    for i in prange(len(order)):
        for p in range(inside[i]):
            out[p // 4, i, p % 4] = new[indices[indptr[order[i]] + p]] - i
        if inside[i] < length[i] and not is_long[i]:
            out[-1, i, 3] = flag


@parallel_njit()
def _fill_values(indptr, data, order, inside, out):
    for i in prange(len(order)):
        for p in range(inside[i]):
            out[p // 4, i, p % 4] = data[indptr[order[i]] + p]


def _lists(chosen, inside, length, start) -> tuple[np.ndarray, np.ndarray]:
    """Starts of the lists of what is not inside, and places of their entries among the indices."""
    counts = (length - inside)[chosen]
    starts = np.concatenate([[0], np.cumsum(counts)])
    places = np.repeat((start + inside)[chosen] - starts[:-1], counts) + np.arange(starts[-1])
    return starts.astype(np.uint32), places
