"""The fused lasso along a chain, exactly and in linear time.

The fused lasso is the minimiser of 1/2 sum_i w_i (x_i - y_i)^2 + penalty sum_i e_i |x_{i+1} - x_i|. Johnson's dynamic program
keeps the derivative of the best cost of nodes 0..i as a function of x_i: it is increasing and piecewise linear, the edge to the
next node clips it to +-penalty e_i, and the two places where it is clipped are the values between which x_i follows x_{i+1}. Each node adds
two knots and every knot is dropped once. Each piece then gets its exact value: the weighted mean of y plus the pull of
the jumps on both sides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hushgraph._errors import InputError
from hushgraph._validation import as_array, as_number, checked_real_array, checked_size, shown
from hushgraph.core import _loops

SPREAD = 1e8  # node weights may differ by this factor: slopes are sums of them, and the smallest must stay above their rounding


def fused_lasso(signal: Any, penalty: Any, *, node_weights: Any = None, edge_weights: Any = None) -> np.ndarray:
    """Return the exact minimiser of 1/2 sum_i w_i (x_i - y_i)^2 + penalty sum_i e_i |x_{i+1} - x_i|, in linear time.

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
    (n,) float64 array
        The minimiser x.

    Examples
    --------
    >>> import hushgraph as hg
    >>> hg.fused_lasso([0.0, 1.0, 8.0, 9.0], 1.0)
    array([1., 1., 8., 8.])
    >>> hg.fused_lasso([0.0, 1.0, 8.0, 9.0], float("inf"))
    array([4.5, 4.5, 4.5, 4.5])
    """
    return fused_lasso_path(signal, [checked_penalty(penalty)], node_weights=node_weights, edge_weights=edge_weights)[0]


def fused_lasso_path(signal: Any, penalties: Any, *, node_weights: Any = None, edge_weights: Any = None) -> np.ndarray:
    """Return `fused_lasso` at many penalties, on several cores at once.

    Parameters
    ----------
    signal : (n,) numbers
        As in `fused_lasso`.
    penalties : (k,) numbers
        Penalties of at least 0.
    node_weights : (n,) positive numbers, optional
        As in `fused_lasso`.
    edge_weights : (n - 1,) non-negative numbers, optional
        As in `fused_lasso`.

    Returns
    -------
    (k, n) float64 array
        The minimiser at each penalty.

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
        expected, hint = "the values along one chain, (n,)", "take the columns one by one"
        raise InputError.about(argument="signal", expected=expected, got=f"shape {y.shape}", hint=hint)
    y = np.ascontiguousarray(y, dtype=np.float64)
    penalties = checked_penalties("penalties", penalties)
    w, e = checked_node_weights(node_weights, len(y)), _checked_edge_weights(edge_weights, max(len(y) - 1, 0))
    out = np.empty((len(penalties), len(y)))
    if out.size:
        centre, bound = _centre_and_bound(y, w)
        _loops.solve_chains(y, w, e, penalties, bound, centre, out)
    return out


def chain_scores(y: Any, orders: Any, penalties: Any, *, node_weights: Any = None, truth: Any = None) -> np.ndarray:
    """Return the scores that choosing a penalty needs, without storing a solution: (n_penalties, 3).

    For the mean over `orders` (k, n) of the fused lasso of `y` (n,) along each: the squared distance from `y`, the mean number
    of pieces, which is the divergence, and the squared error against `truth` (NaN if there is none).
    """
    scores = np.full((len(penalties), 3), np.nan)
    centre, bound = _centre_and_bound(y, node_weights)
    _loops.score_chains(y, orders, node_weights, truth, np.asarray(penalties, np.float64), bound, centre, scores)
    return scores


def mean_over_orders(y: Any, orders: Any, penalty: float, *, node_weights: Any = None) -> np.ndarray:
    """Return the mean over `orders` of the fused lasso of `y` along each, in node order."""
    centre, bound = _centre_and_bound(y, node_weights)
    out = np.empty(len(y))
    _loops.mean_of_chains(y, orders, node_weights, float(penalty), bound, centre, out)
    return out


# ---- checks ------------------------------------------------------------------------------------------------------


def checked_penalty(penalty: Any) -> float:
    """Return `penalty` as a float of at least 0; infinite is fine."""
    number = np.inf if isinstance(penalty, float | np.floating) and penalty == np.inf else as_number(penalty)
    if not number >= 0:
        expected = "a number of at least 0 (infinite: one value for all)"
        raise InputError.about(argument="penalty", expected=expected, got=shown(penalty))
    return number


def checked_penalties(name: str, penalties: Any) -> np.ndarray:
    """Return penalties as a float64 vector."""
    values = as_array(penalties, name)
    if values.ndim != 1 or values.dtype.kind not in "fiu" or not np.all(values >= 0):
        raise InputError.about(argument=name, expected="a list of numbers of at least 0", got=shown(penalties))
    return values.astype(np.float64)


def checked_node_weights(weights: Any, n: int) -> np.ndarray | None:
    """Return positive weights, none more than `SPREAD` times another."""
    if weights is None:
        return None
    values = checked_size("node_weights", checked_real_array("node_weights", weights))
    if values.shape != (n,) or (n and not values.min() > 0) or (n and values.max() / values.min() > SPREAD):
        got = f"shape {values.shape}" + (f", {values.min():g} to {values.max():g}" if values.size else "")
        expected = f"{n} positive numbers within a factor of {SPREAD:g}"
        raise InputError.about(argument="node_weights", expected=expected, got=got)
    return np.ascontiguousarray(values, dtype=np.float64)


def _checked_edge_weights(weights: Any, n_edges: int) -> np.ndarray | None:
    """Return non-negative weights, one per edge of the chain, or None."""
    if weights is None:
        return None
    values = checked_size("edge_weights", checked_real_array("edge_weights", weights))
    if values.shape != (n_edges,) or (n_edges and values.min() < 0):
        got = f"shape {values.shape}" + (f", smallest {values.min():g}" if values.size else "")
        expected = f"{n_edges} non-negative numbers, one between each node and the next"
        raise InputError.about(argument="edge_weights", expected=expected, got=got)
    return np.ascontiguousarray(values, dtype=np.float64)


def _centre_and_bound(y: np.ndarray, w: np.ndarray | None) -> tuple[float, float]:
    """Return the offset to subtract from y before summing, and a bound on the pull of an edge: all weight, times the range of y."""
    return middle(y), float((y.max() - y.min()) * (len(y) if w is None else w.sum()))


def middle(y: np.ndarray) -> float:
    """Return the median of about a thousand of the values: it is near most of them, however large the largest are."""
    return float(np.median(y[:: max(1, len(y) // 1000)]))
