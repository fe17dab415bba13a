"""Partitions of the nodes into connected neighbourhoods of about equal size: the blocks of block thresholding."""

from __future__ import annotations

import numpy as np

from hushgraph.checks import checked_count
from hushgraph.core import _loops
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
        blocks = _loops.grow_balls(graph.adjacency.indptr, graph.adjacency.indices, size)
        blocks.flags.writeable = False
        graph.memo[key] = blocks
    return graph.memo[key]
