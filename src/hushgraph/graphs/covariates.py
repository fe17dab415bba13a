"""Covariates of nodes that need no attributes: number of neighbors, lengths, centrality, distance to the middle.

Centrality is estimated from the shortest paths from a few pivots. Closeness is the inverse of the mean distance to the pivots.
Betweenness is the estimate of Geisberger, Sanders and Schultes (2008) with linear scaling: a path from pivot s to t counts d(s, v) / d(s, t)
at node v, and twice that in all, since the path back counts the rest. So a node does not look central only because it is next to a pivot.
One shortest path per pair is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from hushgraph._geodesy import great_circle, middle_of
from hushgraph.graphs.streets import edge_lengths

if TYPE_CHECKING:
    from hushgraph.graphs.graph import Graph

MOST_PIVOTS, LEAST_PIVOTS = 256, 16  # of centrality
PIVOT_STEPS = 8_000_000  # pivots times nodes, so that the time does not grow with the graph
MOST_NODES = PIVOT_STEPS // LEAST_PIVOTS  # larger graphs have no centrality


def plain_covariates(graph: Graph) -> dict[str, np.ndarray]:
    """Return the covariates of the nodes by name that need no attributes; `Graph.covariates` describes them."""
    lengths = _edge_lengths(graph)
    found = {"degree": np.diff(graph.adjacency.indptr).astype(np.float64)}
    if graph.coords is not None and graph.n:
        found["distance_to_middle"] = _distance_to_middle(graph.coords, graph.crs)
    if lengths is not None:
        rows = np.repeat(np.arange(graph.n), np.diff(graph.adjacency.indptr))
        found["street_length"] = np.bincount(rows, weights=lengths, minlength=graph.n) / 2
    if graph.n <= MOST_NODES:
        closeness, betweenness = centrality(graph.adjacency, lengths)
        found |= {"closeness": closeness, "betweenness": betweenness}
    return {name: values for name, values in found.items() if np.isfinite(values).any()}


def _edge_lengths(graph: Graph) -> np.ndarray | None:
    """Return the length of each entry of the adjacency: from the coordinates, or the inverse of the weights; None without both."""
    matrix = graph.adjacency
    if graph.coords is not None:
        rows = np.repeat(np.arange(graph.n), np.diff(matrix.indptr))
        return edge_lengths(np.stack([rows, matrix.indices], axis=1), graph.coords, graph.crs)
    return None if graph.is_unweighted else 1 / matrix.data


def _distance_to_middle(coords: np.ndarray, crs: str | None) -> np.ndarray:
    """Return the distances of places to their mean: in metres on the globe, or in the unit of planar coordinates."""
    if crs == "lonlat":
        return great_circle(coords, np.broadcast_to(middle_of(coords), (len(coords), 2)))
    return np.sqrt(((coords - coords.mean(axis=0)) ** 2).sum(axis=1))


def centrality(adjacency: sparse.csr_array, lengths: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return (closeness, betweenness) of each node, NaN where too few pivots are within reach: none, or less than LEAST_PIVOTS of a sample.

    In a graph of at most MOST_PIVOTS nodes every node is a pivot; then both are exact, up to the choice among paths of equal length.

    Parameters
    ----------
    adjacency : scipy.sparse.csr_array
        Edges of the graph.
    lengths : numpy.ndarray or None
        Lengths of the entries of `adjacency`; None: all edges have length 1.

    Returns
    -------
    closeness : numpy.ndarray
        Inverse of the mean distance to the pivots within reach, apart from the node itself.
    betweenness : numpy.ndarray
        Estimated share of the shortest paths between other nodes within reach that lead through the node.

    Examples
    --------
    >>> path = sparse.diags_array([np.ones(8), np.ones(8)], offsets=[-1, 1]).tocsr()
    >>> closeness, betweenness = centrality(path, None)
    >>> int(closeness.argmax()), betweenness.round(2).tolist()
    (4, [0.0, 0.25, 0.43, 0.54, 0.57, 0.54, 0.43, 0.25, 0.0])
    """
    n = adjacency.shape[0]
    values = np.ones(adjacency.nnz)
    if lengths is not None and lengths.max(initial=0.0) > 0:
        values = np.maximum(lengths, 1e-9 * lengths.max())  # SciPy takes a length of 0 for no edge
    network = sparse.csr_array((values, adjacency.indices, adjacency.indptr), shape=adjacency.shape)
    pivots = _pivots(n)
    total, through, reached = np.zeros(n), np.zeros(n), np.zeros(n)
    for pivot in pivots.tolist():
        distance, parent = csgraph.dijkstra(network, indices=pivot, return_predecessors=True)
        others = np.isfinite(distance)
        others[pivot] = False
        total[others] += distance[others]
        reached += others
        through[others] += 2 * _passing(distance, parent, others)[others] / max(others.sum() - 1, 1)
    known = reached >= (LEAST_PIVOTS if len(pivots) < n else 1)
    closeness = np.divide(reached, total, out=np.full(n, np.nan), where=known & (total > 0))
    return closeness, np.divide(through, reached, out=np.full(n, np.nan), where=known)


def _pivots(n: int) -> np.ndarray:
    """Return the pivots of a graph of n nodes, the same in every call."""
    count = min(n, MOST_PIVOTS, PIVOT_STEPS // max(n, 1))
    return np.sort(np.random.Generator(np.random.PCG64(0)).permutation(n)[:count])


def _passing(distance: np.ndarray, parent: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the sum over the nodes t below v in the tree of shortest paths of d(v) / d(t), for each node v in reach.

    After step k a node has the sum over those at most 2^k - 1 edges below it, and `ancestor` is the node 2^k edges above.
    """
    n = len(distance)
    inverse = np.divide(1.0, distance, out=np.zeros(n), where=others)
    ancestor, sums = np.where(others, parent, n).astype(np.int64), np.append(inverse, 0.0)
    ancestor = np.append(ancestor, n)  # n: above the root
    while np.any(ancestor < n):
        sums = sums + np.bincount(ancestor, weights=sums, minlength=n + 1)
        sums[n] = 0.0
        ancestor = ancestor[ancestor]
    return np.where(others, distance, 0.0) * (sums[:n] - inverse)
