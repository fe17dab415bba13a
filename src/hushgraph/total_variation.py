"""Total variation on a graph: the exact minimiser of 1/2 ||x - y||^2 + sum_e c_e |x_i - x_j|, with a dual proof of how exact.

Divide and conquer by cuts (Hochbaum 2001; Chambolle and Darbon 2009). A connected set of nodes either takes one value, the mean
m of y less what flows out over its cut edges, or splits into nodes at least m and nodes at most m. A maximum flow decides: each
node sends y_i - m to the others over edges of capacity c_e. If all arrives, the set is a piece. If not, the nodes that cannot
reach an unserved one are the upper part, every edge to the lower part is full, and both go on by themselves. The flow u is a
solution of the dual problem, so the duality gap of (x, u) is at hand: it bounds 1/2 ||x - x*||^2 from above.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from scipy import sparse
from scipy.sparse import csgraph

from hushgraph.chains import middle
from hushgraph.graph import Graph

UNSENT = 1e-11  # flow left over, as a share of the range of y, that counts as none: rounding


class TotalVariation(NamedTuple):
    """The minimiser x, its number of pieces (connected, of equal value), its objective, the proven duality gap; which piece is whose.

    The relative gap is the gap as a share of the objective, or where that is nearly 0 of what rounding could make of it.
    """

    x: np.ndarray
    pieces: int
    objective: float
    gap: float
    relative_gap: float
    labels: np.ndarray


class Arcs(NamedTuple):
    """Each edge in both directions, by their first node."""

    indptr: np.ndarray
    indices: np.ndarray
    back: np.ndarray  # number of the arc in the other direction

    @classmethod
    def of(cls, graph: Graph) -> Arcs:
        indptr, indices = (part.astype(np.int64) for part in (graph.adjacency.indptr, graph.adjacency.indices))
        numbers = sparse.csr_array((np.arange(len(indices)), indices, indptr), shape=graph.adjacency.shape)
        return cls(indptr, indices, numbers.T.tocsr().data)


def minimise(graph: Graph, arcs: Arcs, y: np.ndarray, penalty: float) -> TotalVariation:
    """The minimiser for edge costs c_e = penalty w_e, y (n,) float64; an infinite penalty gives the mean of each component."""
    spread, centre, weights = y.max() - y.min(), middle(y), graph.adjacency.data
    with np.errstate(over="ignore"):
        cost = penalty * weights
    x, flow = np.empty(len(y)), np.zeros(len(weights))
    if penalty == 0 or spread == 0:
        x[:] = y
    else:
        capacity = np.minimum(cost, len(y) * spread)  # more can never flow
        _divide(arcs, capacity, y - centre, spread * UNSENT, x, flow)
        x += centre
    first = np.repeat(np.arange(len(y)), np.diff(arcs.indptr))
    return _proven(x, y, first, arcs.indices, cost, flow)


def _proven(x, y, first, second, cost, flow) -> TotalVariation:
    """With z = y - D'u: gap = 1/2 ||x - z||^2 + sum_e (c_e |x_i - x_j| - u_e (x_i - x_j)), each term at least 0; arcs count twice."""
    jump = x[first] - x[second]
    steps, level = jump != 0, jump == 0
    z = y - np.bincount(first, flow, minlength=len(y))
    variation = cost[steps] * np.abs(jump[steps])
    gap = np.sum((x - z) ** 2) / 2 + np.sum(variation - flow[steps] * jump[steps]) / 2
    joined = sparse.csr_array((np.ones(level.sum(), bool), (first[level], second[level])), shape=(len(x), len(x)))
    pieces, labels = csgraph.connected_components(joined, directed=False)
    objective = np.sum((x - y) ** 2) / 2 + np.sum(variation) / 2
    scale = max(objective, np.finfo(float).eps * np.sum(y**2), np.finfo(float).tiny)
    return TotalVariation(x, int(pieces), float(objective), float(gap), float(gap / scale), labels)


@njit(cache=True, nogil=True)
def _divide(arcs, capacity, y, unsent, x, flow):
    """Split sets into upper and lower parts until every set is a piece; writes its values and the flow."""
    n = len(y)
    cut, done = np.zeros(len(flow), np.bool_), np.zeros(n, np.bool_)
    label, distance, queue = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    excess = np.empty(n)
    while not done.all():
        count = _label_sets(arcs, cut, done, label, queue)
        mean = _send_from(arcs, y, flow, done, label, count, excess)
        _send(arcs, capacity, cut, done, excess, flow, distance, queue, unsent)
        upper, lower = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        for i in range(n):
            if not done[i]:
                upper[label[i]] |= distance[i] == n
                lower[label[i]] |= distance[i] < n
        for i in range(n):
            if done[i]:
                continue
            if not (upper[label[i]] and lower[label[i]]):
                x[i], done[i] = mean[label[i]], True
                continue
            for a in range(arcs.indptr[i], arcs.indptr[i + 1]):
                if not cut[a] and distance[i] == n and distance[arcs.indices[a]] < n:
                    cut[a] = cut[arcs.back[a]] = True
                    flow[a], flow[arcs.back[a]] = capacity[a], -capacity[a]


@njit(cache=True, nogil=True)
def _label_sets(arcs, cut, done, label, queue):
    """Number the connected sets of unfinished nodes; returns how many there are."""
    label[:] = -1
    count = 0
    for root in range(len(label)):
        if done[root] or label[root] >= 0:
            continue
        label[root], queue[0], head, tail = count, root, 0, 1
        while head < tail:
            i = queue[head]
            head += 1
            for a in range(arcs.indptr[i], arcs.indptr[i + 1]):
                j = arcs.indices[a]
                if not cut[a] and label[j] < 0:
                    label[j], queue[tail] = count, j
                    tail += 1
        count += 1
    return count


@njit(cache=True, nogil=True)
def _send_from(arcs, y, flow, done, label, count, excess):
    """Mean of each set after the flows over its cut edges, and what each node still has above it."""
    mean, size = np.zeros(count), np.zeros(count)
    for i in range(len(y)):
        if not done[i]:
            excess[i] = y[i]
            for a in range(arcs.indptr[i], arcs.indptr[i + 1]):
                excess[i] -= flow[a]
            mean[label[i]] += excess[i]
            size[label[i]] += 1
    mean /= size
    for i in range(len(y)):
        if not done[i]:
            excess[i] -= mean[label[i]]
    return mean


@njit(cache=True, nogil=True)
def _send(arcs, capacity, cut, done, excess, flow, distance, queue, unsent):
    """Maximum flow from nodes above their mean to nodes below (push-relabel, first in first out).

    In the end `distance` is n for the nodes from which no unserved node can be reached.
    """
    n = len(excess)
    waiting, ahead, ring = np.zeros(n, np.bool_), arcs.indptr[:-1].copy(), np.empty(n, np.int64)
    _distances(arcs, capacity, cut, done, excess, flow, distance, queue, unsent)
    head = size = raised = 0
    for i in range(n):
        if not done[i] and excess[i] > unsent and distance[i] < n:
            waiting[i], ring[size] = True, i
            size += 1
    while size:
        i = ring[head]
        head, size, waiting[i] = (head + 1) % n, size - 1, False
        while excess[i] > unsent and distance[i] < n:
            if ahead[i] == arcs.indptr[i + 1]:
                distance[i], ahead[i] = _raised(arcs, capacity, cut, flow, distance, i), arcs.indptr[i]
                raised += 1
                continue
            a = ahead[i]
            j, room = arcs.indices[a], capacity[a] - flow[a]
            if cut[a] or room <= 0 or distance[i] != distance[j] + 1:
                ahead[i] += 1
                continue
            amount = min(excess[i], room)
            flow[a] = capacity[a] if amount == room else flow[a] + amount
            flow[arcs.back[a]] = -flow[a]
            excess[i] -= amount
            excess[j] += amount
            if excess[j] > unsent and not waiting[j] and distance[j] < n:
                waiting[j], ring[(head + size) % n] = True, j
                size += 1
        if raised >= n:
            raised = 0
            ahead[:] = arcs.indptr[:-1]
            _distances(arcs, capacity, cut, done, excess, flow, distance, queue, unsent)
    _distances(arcs, capacity, cut, done, excess, flow, distance, queue, unsent)


@njit(cache=True, nogil=True)
def _raised(arcs, capacity, cut, flow, distance, i):
    """One more than the least distance that node i can still send to."""
    least = len(distance) - 1
    for a in range(arcs.indptr[i], arcs.indptr[i + 1]):
        if not cut[a] and flow[a] < capacity[a]:
            least = min(least, distance[arcs.indices[a]])
    return least + 1


@njit(cache=True, nogil=True)
def _distances(arcs, capacity, cut, done, excess, flow, distance, queue, unsent):
    """Steps over edges with room from each node to the nearest unserved one; n where none can be reached."""
    n = len(distance)
    distance[:] = n
    head = tail = 0
    for i in range(n):
        if not done[i] and excess[i] < -unsent:
            distance[i], queue[tail] = 0, i
            tail += 1
    while head < tail:
        j = queue[head]
        head += 1
        for a in range(arcs.indptr[j], arcs.indptr[j + 1]):
            i, inwards = arcs.indices[a], arcs.back[a]
            if not cut[a] and distance[i] == n and flow[inwards] < capacity[inwards]:
                distance[i], queue[tail] = distance[j] + 1, i
                tail += 1
