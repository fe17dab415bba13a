"""Total variation on a graph: the exact minimiser of 1/2 ||x - y||^2 + sum_e c_e |x_i - x_j|, with a dual proof of how exact.

Divide and conquer by cuts (Hochbaum 2001; Chambolle and Darbon 2009). A connected set of nodes either takes one value, the mean
m of y less what flows out over its cut edges, or splits into nodes at least m and nodes at most m. A maximum flow decides: each
node sends y_i - m to the others over edges of capacity c_e. If all of it arrives, the set is a piece. If not, the nodes that cannot
reach an unserved one are the upper part, every edge to the lower part is full, and both are split further by themselves. The flow u is a
solution of the dual problem, so the duality gap of (x, u) is known: it bounds 1/2 ||x - x*||^2 from above.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from hushgraph.core import _loops
from hushgraph.estimators.baselines.chain_fused_lasso import middle
from hushgraph.graphs import Graph

UNSENT = 1e-11  # flow left over, as a share of the range of y, that counts as none: rounding


class TotalVariation(NamedTuple):
    """The minimiser x, its number of pieces (connected, of equal value), the proven duality gap, and the piece of each node.

    The relative gap is the gap as a share of the objective, or where that is nearly 0 of what rounding could make of it.
    """

    x: np.ndarray
    pieces: int
    gap: float
    relative_gap: float
    labels: np.ndarray


class Arcs(NamedTuple):
    """Each edge in both directions, sorted by first node."""

    indptr: np.ndarray
    indices: np.ndarray
    back: np.ndarray  # number of the arc in the other direction

    @classmethod
    def of(cls, graph: Graph) -> Arcs:
        """Return the arcs of a graph."""
        indptr, indices = graph.adjacency.indptr, graph.adjacency.indices
        numbers = sparse.csr_array((np.arange(len(indices)), indices, indptr), shape=graph.adjacency.shape)
        return cls(indptr, indices, numbers.T.tocsr().data.astype(indices.dtype, copy=False))

    @classmethod
    def cached(cls, graph: Graph) -> Arcs:
        """Return the arcs of a graph from its cache."""
        return graph.cached("arcs", lambda: cls.of(graph))


def minimise(graph: Graph, arcs: Arcs, y: np.ndarray, penalty: float) -> TotalVariation:
    """Return the minimiser for edge costs c_e = penalty w_e, y (n,) float64; an infinite penalty gives the mean of each component."""
    spread, centre, weights = y.max() - y.min(), middle(y), graph.adjacency.data
    with np.errstate(over="ignore"):
        cost = penalty * weights
    x, flow = np.empty(len(y)), np.zeros(len(weights))
    if penalty == 0 or spread == 0:
        x[:] = y
    else:
        capacity = np.minimum(cost, len(y) * spread)  # more can never flow
        _loops.split_into_pieces(*arcs, capacity, y - centre, spread * UNSENT, x, flow)
        x += centre
    first = np.repeat(np.arange(len(y)), np.diff(arcs.indptr))
    return _with_gap(x, y, first, arcs.indices, cost, flow)


def _with_gap(
    x: np.ndarray, y: np.ndarray, first: np.ndarray, second: np.ndarray, cost: np.ndarray, flow: np.ndarray
) -> TotalVariation:
    """Return x with its pieces and its duality gap.

    With z = y - D'u: gap = 1/2 ||x - z||^2 + sum_e (c_e |x_i - x_j| - u_e (x_i - x_j)), each term at least 0; arcs count twice.
    """
    jump = x[first] - x[second]
    steps, level = jump != 0, jump == 0
    z = y - np.bincount(first, flow, minlength=len(y))
    variation = cost[steps] * np.abs(jump[steps])
    gap = np.sum((x - z) ** 2) / 2 + np.sum(variation - flow[steps] * jump[steps]) / 2
    joined = sparse.csr_array((np.ones(level.sum(), bool), (first[level], second[level])), shape=(len(x), len(x)))
    pieces, labels = csgraph.connected_components(joined, directed=False)
    objective = np.sum((x - y) ** 2) / 2 + np.sum(variation) / 2
    scale = max(objective, np.finfo(float).eps * np.sum(y**2), np.finfo(float).tiny)
    return TotalVariation(x, int(pieces), float(gap), float(gap / scale), labels)
