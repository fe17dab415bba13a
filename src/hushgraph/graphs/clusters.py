"""Clusters of nodes: connected neighbourhoods of about equal size, the blocks of block thresholding."""

from __future__ import annotations

import numpy as np

from hushgraph._validation import checked_count
from hushgraph.core import _loops
from hushgraph.graphs.graph import Graph, as_graph


def block_partition(graph: Graph, *, size: int) -> np.ndarray:
    """Return the block number of each node; blocks are connected neighbourhoods of about equal size.

    Balls grow breadth first from the first free node in breadth-first order, so that they lie side by side. A rest between them that is
    smaller than half a block joins the smallest neighbouring block that has room. Deterministic, linear time.

    Parameters
    ----------
    graph : Graph
        The graph.
    size : int
        Number of nodes of a block, at least 1; no block has more than 2 size - 1 nodes.

    Returns
    -------
    numpy.ndarray
        Block numbers from 0 on, shape (n,), int32, read-only.

    Examples
    --------
    >>> import hushgraph as hg
    >>> block_partition(hg.datasets.path(7), size=3)
    array([0, 0, 0, 1, 1, 1, 1], dtype=int32)
    """
    graph = as_graph(graph)
    size = min(checked_count("size", size, 1), max(graph.n, 1))

    def grow() -> np.ndarray:
        blocks = _loops.grow_balls(graph.adjacency.indptr, graph.adjacency.indices, size)
        blocks.flags.writeable = False
        return blocks

    return graph.cached(("blocks", size), grow)
