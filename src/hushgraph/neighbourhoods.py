"""Partitions of the nodes into connected neighbourhoods of about equal size: the blocks of block thresholding."""

from __future__ import annotations

import numpy as np
from numba import njit

from hushgraph.checks import checked_count
from hushgraph.graph import Graph, checked_graph


def block_partition(graph: Graph, *, size: int) -> np.ndarray:
    """Block number of each node, (n,): connected neighbourhoods of about `size` nodes, never more than 2 size - 1.

    Balls grow breadth first from the first free node in breadth-first order, so they lie side by side; what is left between
    them, if smaller than half a block, joins the smallest neighbouring block that has room. Deterministic, linear time.

    Examples
    --------
    >>> import hushgraph as hg
    >>> block_partition(hg.datasets.path(7), size=3)
    array([0, 0, 0, 1, 1, 1, 1], dtype=int32)
    """
    size = min(checked_count("size", size, 1), max(checked_graph(graph).n, 1))
    key = ("blocks", size)
    if key not in graph.memo:
        blocks = _balls(graph.adjacency.indptr, graph.adjacency.indices, size)
        blocks.flags.writeable = False
        graph.memo[key] = blocks
    return graph.memo[key]


@njit(cache=True)
def _breadth_first(pointers, neighbours):
    """All nodes, breadth first from the lowest node of each component."""
    n = len(pointers) - 1
    order, seen, filled = np.empty(n, np.int32), np.zeros(n, np.bool_), 0
    for root in range(n):
        if seen[root]:
            continue
        head = filled
        order[filled], seen[root], filled = root, True, filled + 1
        while head < filled:
            i, head = order[head], head + 1
            for k in range(pointers[i], pointers[i + 1]):
                j = neighbours[k]
                if not seen[j]:
                    order[filled], seen[j], filled = j, True, filled + 1
    return order


@njit(cache=True)
def _balls(pointers, neighbours, size):
    """Block numbers, ascending along the breadth-first order of their first nodes."""
    n = len(pointers) - 1
    order, block, placed = _breadth_first(pointers, neighbours), np.full(n, -1, np.int32), np.empty(n, np.int32)
    starts, filled, count = np.empty(n + 1, np.int64), 0, 0
    for seed in order:
        if block[seed] >= 0:
            continue
        head = starts[count] = filled
        placed[filled], block[seed], filled = seed, count, filled + 1
        while head < filled < starts[count] + size:
            i, head = placed[head], head + 1
            for k in range(pointers[i], pointers[i + 1]):
                j = neighbours[k]
                if block[j] < 0 and filled < starts[count] + size:
                    placed[filled], block[j], filled = j, count, filled + 1
        count += 1
    starts[count] = n
    names = _joined(pointers, neighbours, size, block, placed, starts[: count + 1])
    return names[block]


@njit(cache=True)
def _joined(pointers, neighbours, size, block, placed, starts):
    """New number of each ball, once those under half the size have joined a neighbour, if one has room."""
    count = len(starts) - 1
    root, sizes = np.arange(count), starts[1:] - starts[:-1]
    for b in range(count):
        if 2 * sizes[b] >= size:
            continue
        best = -1
        for p in range(starts[b], starts[b + 1]):
            for k in range(pointers[placed[p]], pointers[placed[p] + 1]):
                c = _root(root, block[neighbours[k]])
                if c != b and sizes[b] + sizes[c] < 2 * size and (best < 0 or (sizes[c], c) < (sizes[best], best)):
                    best = c
        if best >= 0:
            root[b], sizes[best] = best, sizes[best] + sizes[b]
    names, named = np.full(count, -1, np.int32), 0
    for b in range(count):
        c = _root(root, b)
        if names[c] < 0:
            names[c], named = named, named + 1
        names[b] = names[c]
    return names


@njit(cache=True)
def _root(root, b):
    while root[b] != b:
        root[b] = root[root[b]]  # halves the path, so that it stays short
        b = root[b]
    return b
