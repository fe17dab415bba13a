"""Depth-first orders of the nodes, which turn a graph into a chain."""

from __future__ import annotations

import numpy as np

from hushgraph._validation import checked_count, checked_seed
from hushgraph.core import _loops
from hushgraph.graphs.graph import Graph, as_graph


def depth_first_order(graph: Graph, *, start: int | None = None, seed: int | None = None) -> np.ndarray:
    """Return every node once, in the order in which a depth-first search first reaches it.

    From each node the search goes to its lowest-numbered neighbour that was not reached before, and back if there is none. After a
    component it continues at the lowest-numbered node that was not reached before. Consecutive nodes need not be neighbours: the chain made of this order
    jumps where the search goes back and where a component ends (Padilla et al., 2018). Edge weights play no role.

    Parameters
    ----------
    graph : Graph
        The graph.
    start : int, optional
        The first node. Default: 0, or with `seed` a random one.
    seed : int, optional
        Seed of a random order of the neighbours and of the components.

    Returns
    -------
    numpy.ndarray
        Node numbers, shape (n,).

    Examples
    --------
    >>> import hushgraph as hg
    >>> graph = hg.Graph.from_edges([(0, 2), (0, 1), (2, 3), (4, 5)])
    >>> hg.depth_first_order(graph)
    array([0, 1, 2, 3, 4, 5])
    >>> hg.depth_first_order(graph, start=3)
    array([3, 2, 0, 1, 4, 5])
    """
    graph = as_graph(graph)
    n = graph.n
    first = None if start is None else checked_count("start", start, 0, n - 1, note=" (a node number)")
    roots, indptr, indices = np.arange(n), graph.adjacency.indptr, graph.adjacency.indices
    if seed is not None:
        seed, indices = checked_seed(seed), indices.copy()
        _loops.shuffle_stretches(np.array([0, n]), roots, seed)
        _loops.shuffle_stretches(indptr, indices, seed ^ 2**63)
    if first is not None:
        roots = np.concatenate([[first], roots])
    return _loops.depth_first(indptr, indices, roots)
