"""Rows of a symmetric matrix in an order that caches and branch predictors like.

Nodes are renumbered by breadth-first levels; whole levels form blocks, so that a block only touches its neighbours; inside
a block rows go by length, so that they come in runs of one length. Inside a row neighbours stay in ascending node number:
the renumbering never changes a sum. Knows no graph, only matrices.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit, prange

from hushgraph.kernels.threads import parallel_njit

ROWS = 1024  # rows in a block, at least
WIDEST = 32 * ROWS  # blocks above this many rows gain nothing from the wavefront


@dataclass(frozen=True, eq=False)
class Layout:
    """diag(diagonal) - adjacency, renumbered: row i is node order[i].

    `runs` are (first row, last row + 1, row length, place of its first index); `block_runs[b]` is the first run of
    block b. `values` and `diagonal` are None when every edge has the same weight `uniform` and the diagonal is the
    row length times it.
    """

    order: np.ndarray
    blocks: np.ndarray
    block_runs: np.ndarray
    runs: np.ndarray
    indices: np.ndarray
    values: np.ndarray | None
    diagonal: np.ndarray | None
    uniform: float
    wavefront: bool
    workspace: dict = field(default_factory=dict, repr=False)


def prepare(adjacency, diagonal, *, uniform: bool | None = None):
    """Renumber the graph and store its rows in runs of equal length.

    `uniform` says whether every edge has the same weight, for a part of a larger matrix; None: as it is found.
    """
    indptr, indices = adjacency.indptr, adjacency.indices
    order, levels = _breadth_first(indptr, indices)
    blocks = _cut(levels, len(order))
    wavefront = np.diff(blocks).max(initial=0) <= WIDEST
    if not wavefront:
        blocks = np.append(np.arange(0, len(order), ROWS), len(order))
    order, runs, block_runs = _runs(indptr, order, blocks)
    weight = adjacency.data[0] if adjacency.nnz else 1.0
    same = is_uniform(adjacency, diagonal) if uniform is None else uniform
    new_indices, values = _renumbered(indptr, indices, adjacency.data[: 0 if same else None], order, runs)
    return Layout(
        order,
        blocks,
        block_runs,
        runs,
        new_indices,
        None if same else values,
        None if same else diagonal[order],
        weight,
        bool(wavefront),
    )


def is_uniform(adjacency, diagonal) -> bool:
    """Whether every edge has the same weight, and the diagonal is the row length times it."""
    weight = adjacency.data[0] if adjacency.nnz else 1.0
    return bool(np.all(adjacency.data == weight) and np.allclose(diagonal, weight * np.diff(adjacency.indptr), rtol=1e-13, atol=0))


@njit(cache=True)
def _breadth_first(indptr, indices):
    """Nodes by breadth-first levels, component after component, each from a far end; and where the levels start."""
    n = len(indptr) - 1
    order, queue, levels = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n + 1, np.int64)
    state = np.zeros(n, np.int8)  # 1: reached by the search for a far end, 2: placed
    n_levels, placed = 0, 0
    for seed in range(n):
        if state[seed] == 2:
            continue
        head, tail = 0, 1
        queue[0], state[seed] = seed, 1
        while head < tail:
            for p in range(indptr[queue[head]], indptr[queue[head] + 1]):
                if state[indices[p]] == 0:
                    state[indices[p]] = 1
                    queue[tail] = indices[p]
                    tail += 1
            head += 1
        order[placed], state[queue[tail - 1]] = queue[tail - 1], 2
        head, tail = placed, placed + 1
        while head < tail:
            levels[n_levels] = head
            n_levels += 1
            level_end = tail
            while head < level_end:
                for p in range(indptr[order[head]], indptr[order[head] + 1]):
                    if state[indices[p]] == 1:
                        state[indices[p]] = 2
                        order[tail] = indices[p]
                        tail += 1
                head += 1
        placed = tail
    levels[n_levels] = n
    return order, levels[: n_levels + 1]


@njit(cache=True)
def _cut(levels, n):
    """Blocks of at least ROWS rows made of whole levels."""
    cuts = np.empty(len(levels) + 1, np.int64)
    cuts[0], count = 0, 1
    for start in levels:
        if start - cuts[count - 1] >= ROWS:
            cuts[count] = start
            count += 1
    if n - cuts[count - 1] < ROWS and count > 1:  # a short rest joins the block before it
        count -= 1
    cuts[count] = n
    return cuts[: count + 1] if n else cuts[:1]


@njit(cache=True)
def _runs(indptr, order, blocks):
    """Order rows by length inside each block (a stable counting sort), and list the runs of equal length."""
    n = len(order)
    longest = 0
    for i in range(n):
        longest = max(longest, indptr[i + 1] - indptr[i])
    result, runs, block_runs = np.empty(n, np.int64), np.empty((n, 4), np.int64), np.zeros(len(blocks), np.int64)
    counts = np.zeros(longest + 2, np.int64)
    n_runs, pointer = 0, 0
    for b in range(len(blocks) - 1):
        top = 0
        for i in range(blocks[b], blocks[b + 1]):
            length = indptr[order[i] + 1] - indptr[order[i]]
            counts[length + 1] += 1
            top = max(top, length)
        row = blocks[b]
        for length in range(top + 1):
            if counts[length + 1]:
                runs[n_runs, 0], runs[n_runs, 1] = row, row + counts[length + 1]
                runs[n_runs, 2], runs[n_runs, 3] = length, pointer
                pointer += length * counts[length + 1]
                n_runs += 1
            counts[length + 1], row = row, row + counts[length + 1]  # from here on, where the next row of that length goes
        for i in range(blocks[b], blocks[b + 1]):
            length = indptr[order[i] + 1] - indptr[order[i]]
            result[counts[length + 1]] = order[i]
            counts[length + 1] += 1
        counts[: top + 2] = 0
        block_runs[b + 1] = n_runs
    return result, runs[:n_runs].copy(), block_runs


@parallel_njit()
def _renumbered(indptr, indices, data, order, runs):
    """Neighbours in the new numbering, each row in ascending old number, with their values if there are any."""
    new = np.empty(len(order), np.uint32)
    for i in prange(len(order)):
        new[order[i]] = i
    new_indices, values = np.empty(len(indices), np.uint32), np.empty(len(data))
    for r in prange(len(runs)):
        for i in range(runs[r, 0], runs[r, 1]):
            source, target = indptr[order[i]], runs[r, 3] + (i - runs[r, 0]) * runs[r, 2]
            for p in range(runs[r, 2]):
                new_indices[target + p] = new[indices[source + p]]
                if len(data):
                    values[target + p] = data[source + p]
    return new_indices, values
