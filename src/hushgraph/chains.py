"""Chains: the fused lasso along one, exactly and in linear time, and depth-first orders that turn a graph into one.

The fused lasso is the minimiser of 1/2 sum_i w_i (x_i - y_i)^2 + penalty sum_i e_i |x_{i+1} - x_i|. Johnson's dynamic program
keeps the derivative of the best cost of nodes 0..i as a function of x_i: it is increasing and piecewise linear, the edge to the
next node clips it to +-penalty e_i, and where it is clipped are the two values between which x_i follows x_{i+1}. Each node adds
two knots and every knot is dropped once. The pieces found are then given their exact values: the weighted mean of y plus what
the jumps on both sides pull.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from hushgraph._errors import InputError
from hushgraph.checks import as_array, as_number, checked_count, checked_real_array, checked_seed, checked_size, shown
from hushgraph.graph import Graph, checked_graph
from hushgraph.kernels.cpu import cores_for
from hushgraph.kernels.threads import parallel_njit

SPREAD = 1e8  # node weights may differ by this factor: slopes are sums of them, and the least must not drown in their rounding


def fused_lasso(signal, penalty, *, node_weights=None, edge_weights=None) -> np.ndarray:
    """The exact minimiser of 1/2 sum_i w_i (x_i - y_i)^2 + penalty sum_i e_i |x_{i+1} - x_i|, in linear time.

    Parameters
    ----------
    signal : (n,) numbers
        y, in the order of the chain.
    penalty : float
        At least 0. With 0 the signal stays as it is; `np.inf` gives the weighted mean (of each stretch that no edge of weight 0
        cuts).
    node_weights : (n,) positive numbers, optional
        w; the largest at most 1e8 times the smallest. Default: 1.
    edge_weights : (n - 1,) non-negative numbers, optional
        e. Default: 1.

    Returns
    -------
    (n,) float64

    Examples
    --------
    >>> import hushgraph as hg
    >>> hg.fused_lasso([0.0, 1.0, 8.0, 9.0], 1.0)
    array([1., 1., 8., 8.])
    >>> hg.fused_lasso([0.0, 1.0, 8.0, 9.0], float("inf"))
    array([4.5, 4.5, 4.5, 4.5])
    """
    return fused_lasso_path(signal, [checked_penalty(penalty)], node_weights=node_weights, edge_weights=edge_weights)[0]


def fused_lasso_path(signal, penalties, *, node_weights=None, edge_weights=None) -> np.ndarray:
    """`fused_lasso` at many penalties, one row each: (n_penalties, n) float64, several cores at once.

    Examples
    --------
    >>> import hushgraph as hg
    >>> hg.fused_lasso_path([0.0, 4.0], [0.0, 1.0, 2.0])
    array([[0., 4.],
           [1., 3.],
           [2., 2.]])
    """
    y = checked_size("signal", checked_real_array("signal", signal))
    if y.ndim != 1:
        msg = f"signal must be the values along one chain, (n,); got shape {y.shape}; take the columns one by one"
        raise InputError(msg)
    y = np.require(y, np.float64, ["C", "W"])
    penalties = checked_penalties("penalties", penalties)
    w, e = checked_node_weights(node_weights, len(y)), _checked_edge_weights(edge_weights, max(len(y) - 1, 0))
    out = np.empty((len(penalties), len(y)))
    if out.size:
        centre, bound = _centre_and_bound(y, w)
        with cores_for(out.size if len(out) > 1 else 0):
            _solve_all(y, w, e, penalties, bound, centre, out)
    return out


def chain_scores(y, orders, penalties, *, node_weights=None, truth=None) -> np.ndarray:
    """What choosing a penalty needs, without keeping a solution: (n_penalties, 3).

    For the mean over `orders` (k, n) of the fused lasso of `y` (n,) along each: the squared distance from `y`, the mean number
    of pieces, which is the divergence, and the squared error against `truth` (NaN without).
    """
    scores = np.full((len(penalties), 3), np.nan)
    centre, bound = _centre_and_bound(y, node_weights)
    with cores_for(y.size * len(penalties)):
        _score_all(y, orders, node_weights, truth, np.asarray(penalties, np.float64), bound, centre, scores)
    return scores


def mean_over_orders(y, orders, penalty: float, *, node_weights=None) -> np.ndarray:
    """The mean over `orders` of the fused lasso of `y` along each, in node order."""
    centre, bound = _centre_and_bound(y, node_weights)
    out = np.empty(len(y))
    _mean_of(y, orders, node_weights, float(penalty), bound, centre, out)
    return out


def depth_first_order(graph: Graph, *, start: int | None = None, seed: int | None = None) -> np.ndarray:
    """Every node once, in the order in which a depth-first search first meets it.

    From each node the search goes to its lowest-numbered neighbour not met yet, and back where there is none. When a component
    is done it goes on at the lowest-numbered node left. The chain made of this order simply continues there, as it does where
    the search goes back: consecutive nodes need not be neighbours (Padilla et al., 2018). Edge weights play no role.

    Parameters
    ----------
    start : int, optional
        The first node. Default: 0, or with `seed` a random one.
    seed : int, optional
        Takes neighbours, and the components, in random order instead.

    Examples
    --------
    >>> import hushgraph as hg
    >>> graph = hg.Graph.from_edges([(0, 2), (0, 1), (2, 3), (4, 5)])
    >>> hg.depth_first_order(graph)
    array([0, 1, 2, 3, 4, 5])
    >>> hg.depth_first_order(graph, start=3)
    array([3, 2, 0, 1, 4, 5])
    """
    n = checked_graph(graph).n
    first = None if start is None else checked_count("start", start, 0, n - 1, note=" (a node number)")
    roots, indices = np.arange(n), graph.adjacency.indices.astype(np.int64)
    indptr = graph.adjacency.indptr.astype(np.int64)
    if seed is not None:
        _shuffle_stretches(np.array([0, n]), roots, np.uint64(checked_seed(seed)))
        _shuffle_stretches(indptr, indices, np.uint64(checked_seed(seed)) ^ np.uint64(2**63))
    if first is not None:
        roots = np.concatenate([[first], roots])
    return _depth_first(indptr, indices, roots)


# ---- checks ------------------------------------------------------------------------------------------------------


def checked_penalty(penalty) -> float:
    """`penalty` as a float of at least 0; infinite is fine."""
    number = np.inf if isinstance(penalty, float | np.floating) and penalty == np.inf else as_number(penalty)
    if not number >= 0:
        msg = f"penalty must be a number of at least 0 (infinite: one value for all); got {shown(penalty)}"
        raise InputError(msg)
    return number


def checked_penalties(name: str, penalties) -> np.ndarray:
    """Penalties as a float64 vector."""
    values = as_array(penalties, name)
    if values.ndim != 1 or values.dtype.kind not in "fiu" or not np.all(values >= 0):
        msg = f"{name} must be a list of numbers of at least 0; got {shown(penalties)}"
        raise InputError(msg)
    return values.astype(np.float64)


def checked_node_weights(weights, n: int) -> np.ndarray | None:
    """Positive weights, none more than `SPREAD` times another."""
    if weights is None:
        return None
    values = checked_size("node_weights", checked_real_array("node_weights", weights))
    if values.shape != (n,) or (n and not values.min() > 0) or (n and values.max() / values.min() > SPREAD):
        got = f"shape {values.shape}" + (f", {values.min():g} to {values.max():g}" if values.size else "")
        msg = f"node_weights must be {n} positive numbers within a factor of {SPREAD:g}; got {got}"
        raise InputError(msg)
    return np.require(values, np.float64, ["C", "W"])


def _checked_edge_weights(weights, n_edges: int) -> np.ndarray | None:
    if weights is None:
        return None
    values = checked_size("edge_weights", checked_real_array("edge_weights", weights))
    if values.shape != (n_edges,) or (n_edges and values.min() < 0):
        got = f"shape {values.shape}" + (f", smallest {values.min():g}" if values.size else "")
        msg = f"edge_weights must be {n_edges} non-negative numbers, one between each node and the next; got {got}"
        raise InputError(msg)
    return np.require(values, np.float64, ["C", "W"])


def _centre_and_bound(y: np.ndarray, w: np.ndarray | None) -> tuple[float, float]:
    """What to subtract from y before sums are taken, and what no edge can ever carry: all weight, times the range of y."""
    return middle(y), float((y.max() - y.min()) * (len(y) if w is None else w.sum()))


def middle(y: np.ndarray) -> float:
    """The median of about a thousand of the values: near most of them, whatever the largest."""
    return float(np.median(y[:: max(1, len(y) // 1000)]))


# ---- the fused lasso ---------------------------------------------------------------------------------------------


@njit(cache=True, inline="always")
def _edge_limit(e, i, penalty, bound):
    """penalty e_i, but no more than can matter; an edge of weight 0 stays without effect at an infinite penalty."""
    if e is None:
        return min(penalty, bound)
    return min(penalty * e[i], bound) if e[i] > 0 else 0.0


@njit(cache=True, nogil=True)
def _follow(y, w, e, penalty, bound, centre, low, high):
    """For each node but the last the values between which it equals its successor; returns the best value of the last.

    A knot holds its place and by how much slope and height of the derivative grow there. Left ones add slope and right ones
    take it away again, so beyond all of them only the present node's own slope is left.
    """
    n = len(y)
    knots, left, right, before = np.empty((2 * n, 3)), n, n - 1, 0.0
    for i in range(n):
        own = 1.0 if w is None else w[i]
        at = own * (y[i] - centre)
        limit = _edge_limit(e, i, penalty, bound) if i < n - 1 else 0.0
        slope, height, lo = own, -at - before, left
        while lo <= right and slope * knots[lo, 0] + height <= -limit:
            slope += knots[lo, 1]
            height += knots[lo, 2]
            lo += 1
        if lo > right:
            slope, height = own, before - at
        low[i] = (-limit - height) / slope
        if i == n - 1:
            break
        slope_above, height_above, hi = own, before - at, right
        while hi >= lo and slope_above * knots[hi, 0] + height_above >= limit:
            slope_above -= knots[hi, 1]
            height_above -= knots[hi, 2]
            hi -= 1
        if hi < lo:
            slope_above, height_above = slope, height
        high[i] = max(low[i], (limit - height_above) / slope_above)
        left, right, before = lo - 1, hi + 1, limit
        knots[left, 0], knots[left, 1], knots[left, 2] = low[i], slope, height + limit
        knots[right, 0], knots[right, 1], knots[right, 2] = high[i], -slope_above, limit - height_above
    return low[n - 1]


@njit(cache=True, nogil=True)
def _solve(y, w, e, penalty, bound, centre, x):
    """Write the minimiser into x; returns the number of pieces of equal value."""
    n = len(y)
    if n == 1 or penalty == 0.0 or bound == 0.0:
        x[:] = y
    else:
        pull = np.empty(n)  # what the jump after a node pulls it upwards; NaN where there is none
        last = _follow(y, w, e, penalty, bound, centre, x, pull)
        pull[n - 1] = 0.0
        for i in range(n - 2, -1, -1):
            low, high = x[i], pull[i]
            if last > high:
                last, pull[i] = high, _edge_limit(e, i, penalty, bound)
            elif last < low:
                last, pull[i] = low, -_edge_limit(e, i, penalty, bound)
            else:
                pull[i] = np.nan
        _fill_pieces(y, w, pull, x)
    pieces = 1
    for i in range(1, n):
        pieces += x[i] != x[i - 1]
    return pieces


@njit(cache=True, nogil=True)
def _fill_pieces(y, w, pull, x):
    """Each piece's mean plus what the jumps at its ends pull; summed from its first value, so that nothing far away costs digits."""
    first, total, weight, before = 0, 0.0, 0.0, 0.0
    for i in range(len(y)):
        own = 1.0 if w is None else w[i]
        total += own * (y[i] - y[first])
        weight += own
        if not np.isnan(pull[i]):
            x[first : i + 1] = y[first] + (total + pull[i] - before) / weight
            first, total, weight, before = i + 1, 0.0, 0.0, pull[i]


@parallel_njit()
def _solve_all(y, w, e, penalties, bound, centre, out):
    for p in prange(len(penalties)):
        _solve(y, w, e, penalties[p], bound, centre, out[p])


@njit(cache=True, nogil=True)
def _mean_of(y, orders, w, penalty, bound, centre, out):
    """Mean over the orders in node order; returns the mean number of pieces."""
    out[:] = 0.0
    chain, pieces = np.empty(len(y)), 0
    for order in orders:
        pieces += _solve(y[order], None if w is None else w[order], None, penalty, bound, centre, chain)
        for i in range(len(order)):
            out[order[i]] += chain[i]
    if len(orders) > 1:
        out /= len(orders)
    return pieces / len(orders)


@parallel_njit()
def _score_all(y, orders, w, truth, penalties, bound, centre, scores):
    for p in prange(len(penalties)):
        x = np.empty(len(y))
        scores[p, 1] = _mean_of(y, orders, w, penalties[p], bound, centre, x)
        scores[p, 0] = np.sum((x - y) ** 2)
        if truth is not None:
            scores[p, 2] = np.sum((x - truth) ** 2)


# ---- depth-first search ------------------------------------------------------------------------------------------


@njit(cache=True)
def _depth_first(indptr, indices, roots):
    n = len(indptr) - 1
    order, stack, ahead = np.empty(n, np.int64), np.empty(n, np.int64), indptr[:-1].copy()
    met = np.zeros(n, np.bool_)
    count = 0
    for root in roots:
        if met[root]:
            continue
        met[root], order[count], stack[0], depth = True, root, root, 1
        count += 1
        while depth:
            node = stack[depth - 1]
            while ahead[node] < indptr[node + 1] and met[indices[ahead[node]]]:
                ahead[node] += 1
            if ahead[node] == indptr[node + 1]:
                depth -= 1
                continue
            child = indices[ahead[node]]
            met[child], order[count], stack[depth] = True, child, child
            count, depth = count + 1, depth + 1
    return order


@njit(cache=True)
def _shuffle_stretches(indptr, values, seed):
    """Put values[indptr[i] : indptr[i + 1]] into random order, for each i (Fisher-Yates over SplitMix64)."""
    state = seed
    for row in range(len(indptr) - 1):
        first = indptr[row]
        for length in range(indptr[row + 1] - first, 1, -1):
            state += np.uint64(0x9E3779B97F4A7C15)
            z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            draw = ((z ^ (z >> np.uint64(31))) >> np.uint64(32)) * np.uint64(length) >> np.uint64(32)
            a, b = first + length - 1, first + np.int64(draw)
            values[a], values[b] = values[b], values[a]
