"""Smoothing of Monte-Carlo weights by a regression on the degrees around each node.

A threshold that follows the noise needs the weights of every node, and those of few probes are far too noisy for that. They depend
mostly on the degree of the node and the degrees of its neighbours, so a regression on a dozen such numbers keeps what is real.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hushgraph._arrays import largest_size, namespace, on_device, on_host
from hushgraph._errors import InputError
from hushgraph._validation import LARGEST, checked_real_array, checked_sigma, span
from hushgraph.core import BLOCK, _loops, block_sum, blocks, orderless_sum
from hushgraph.graphs import Graph, GraphLike, as_graph


def smooth_weights(graph: Graph, weights: npt.ArrayLike, *, sigma: npt.ArrayLike | None = None) -> np.ndarray:
    """Return weights regressed on local degree statistics, within a factor 4 of the mean of their scale.

    For the multipliers of thresholds only, for which raw weights of few probes are far too noisy. SURE itself needs the raw weights.

    Parameters
    ----------
    graph : Graph
        The graph.
    weights : array_like, shape (n_scales, n)
        Raw weights, as `monte_carlo_weights` returns them.
    sigma : array_like, shape (n,), optional
        Standard deviation per node if the weights hold it: they then follow its local mean square.

    Returns
    -------
    numpy.ndarray
        Smoothed weights, shape (n_scales, n), float64.
    """
    graph, weights = as_graph(graph), checked_real_array("weights", weights)
    if weights.ndim != 2 or weights.shape[1] != graph.n:
        expected = f"shape (n_scales, {graph.n}), as monte_carlo_weights returns them"
        raise InputError.about(argument="weights", verb="have", expected=expected, got=weights.shape)
    checked_weight_size(weights)
    if graph.n == 0:
        return weights.astype(np.float64)
    variances = None if sigma is None else np.broadcast_to(on_host(checked_sigma(sigma, graph.n)), graph.n) ** 2
    if on_device(weights):
        return _smooth_on_device(graph, weights, variances)
    around = degree_features(graph, variances, Usual.of(graph.degrees, variances))
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    tops = largest_columns(around, weights)
    columns = n_columns(per_node=variances is not None)
    return fitted_weights(around, *fit_of_products(products_in_units(around, weights, tops), tops, columns))


@dataclass(frozen=True)
class Usual:
    """Statistics over all nodes: the mean and the largest degree, and the mean variance if the noise differs between nodes."""

    degree: float
    most: float
    variance: float = 1.0

    @classmethod
    def of(cls, degrees: np.ndarray, variances: np.ndarray | None) -> Usual:
        """Return the statistics of these degrees, and of the variances per node if there are any."""
        n = len(degrees)
        variance = 1.0 if variances is None else orderless_sum(variances) / n or 1.0
        return cls(orderless_sum(degrees) / n or 1.0, float(degrees.max()), variance)


LOCAL, ALONE = 4, 5  # rows of `degree_features`
SURROUNDINGS, PER_NODE = 6, 3  # number of these rows, and of the further rows with one variance per node
MADE = 11  # columns of the regression that are computed from these rows; the rows from ALONE on are columns themselves
_STRETCH = 2**22  # nodes whose columns are on the GPU at a time


def n_columns(*, per_node: bool) -> int:
    """Return the number of columns of the regression.

    >>> n_columns(per_node=False), n_columns(per_node=True)
    (12, 15)
    """
    return MADE + SURROUNDINGS - ALONE + PER_NODE * per_node


def _regression(both: np.ndarray, columns: int) -> np.ndarray:
    """Return coefficients (columns, scales) from the products of columns with each other and with the weights.

    There are a dozen columns: normal equations are accurate enough, and fast.
    """
    gram = both[:, :columns]
    unit = np.sqrt(np.diag(gram))
    unit = 1 / np.where(unit > 0, unit, 1.0)
    return np.linalg.lstsq(unit[:, None] * gram * unit, unit[:, None] * both[:, columns:], rcond=1e-12)[0] * unit[:, None]


def _smooth_on_device(graph: Graph, weights: Any, variances: np.ndarray | None) -> Any:
    """Return `smooth_weights` on the GPU of the weights. If all nodes have the same noise, the features stay there."""
    cp = namespace(weights)

    def features() -> Any:
        return cp.asarray(degree_features(graph, variances, Usual.of(graph.degrees, variances)))

    around = graph.cached("degree features on device", features) if variances is None else features()
    columns = n_columns(per_node=variances is not None)
    stretches = [slice(start, start + _STRETCH) for start in range(0, graph.n, _STRETCH)]
    both = np.zeros((columns, columns + len(weights)))
    for nodes in stretches:
        rows = _features_on_device(cp, around[:, nodes])
        both += (rows @ cp.concatenate([rows, weights[:, nodes].astype(np.float64, copy=False)]).T).get()
    fitted, local = cp.asarray(_regression(both, columns)), around[LOCAL]
    usual = block_sum(weights.T) / block_sum(local)
    smooth = cp.empty(weights.shape)
    for nodes in stretches:
        middle = cp.asarray(usual)[:, None] * local[nodes]
        rows = fitted.T @ _features_on_device(cp, around[:, nodes])
        cp.clip(rows, middle / 4, middle * 4, out=smooth[:, nodes])
    return smooth


def _features_on_device(cp: Any, around: Any) -> Any:
    """Return the columns of the regression."""
    d, near, inverse_near, twice_near = around[:4]
    local = cp.where(around[ALONE] > 0, 0.0, around[LOCAL])
    rows = [1.0, d, cp.sqrt(d), 1 / d, near, inverse_near, twice_near, d * near, near / d, d * inverse_near, near * near]
    return cp.stack([*(local * row for row in rows), *around[ALONE:]])


def degree_features(graph: GraphLike, variances: np.ndarray | None, usual: Usual) -> np.ndarray:
    """Return the features of each node, (features, n), in units of `usual`.

    Rows 0 to 3: the degree, its mean over the neighbours, the mean of their inverse degrees, the mean over them of row 1. Row LOCAL: the
    noise at the node and around it. Row ALONE: the noise of a node without neighbours, otherwise 0. With one variance per node also rows 6
    to 8: the variance of the node, its mean over the neighbours, and the mean of that over the neighbours.
    """
    matrix, isolated = graph.adjacency, graph.degrees == 0
    around = np.ones((SURROUNDINGS + PER_NODE * (variances is not None), graph.n))
    inverse = 1 / np.where(isolated, 1.0, graph.degrees)

    def walk(source: np.ndarray, target: np.ndarray) -> None:
        """Write the means over the neighbours."""
        _loops.average_neighbors(matrix.indptr, matrix.indices, matrix.data, inverse, source, target)

    around[0] = np.maximum(graph.degrees / usual.degree, 1e-12 * (usual.most / usual.degree or 1.0))
    walk(around[0], around[1])
    walk(1 / around[0], around[2])
    walk(around[1], around[3])
    around[ALONE] = isolated
    if variances is not None:  # fine wavelets depend on the noise of their node, coarse ones on that around it
        around[6] = variances / usual.variance
        walk(around[6], around[7])
        walk(around[7], around[8])
        around[LOCAL] = np.where(isolated, around[6], (around[6] + around[7]) / 2)
        around[ALONE] *= around[6]
    return around


def largest_columns(around: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the largest size of each column of the regression, of the weights, of 1 and of the local noise; it decides their units."""
    columns = MADE + len(around) - ALONE
    parts = np.zeros((max(len(blocks(weights.shape[1])), 1), columns + len(weights) + 2))
    _loops.largest_features(around, np.ascontiguousarray(weights, dtype=np.float64), parts, BLOCK)
    return parts.max(axis=0)


def products_in_units(around: np.ndarray, weights: np.ndarray, tops: np.ndarray) -> np.ndarray:
    """Return sums over the nodes of products of columns with columns and weights, and of weights and noise: (2, rows, rows) integers.

    They are whole numbers of units, high and low ones, so they add up over parts of a graph in any order.
    """
    rows = len(tops)
    parts = np.zeros((2, max(len(blocks(weights.shape[1])), 1), rows, rows), dtype=np.int64)
    _loops.count_products(around, np.ascontiguousarray(weights, dtype=np.float64), _powers_above(tops), parts, BLOCK)
    return parts.sum(axis=1)


def fit_of_products(units: np.ndarray, tops: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients (columns, scales) of the regression, and the usual weight of each scale per unit of noise."""
    powers = _powers_above(tops)
    both = (units[0] * HIGH + units[1] * (HIGH * HIGH)) * np.outer(powers, powers)
    gram = np.tril(both[:columns, :columns])
    both[:columns, :columns] = gram + np.tril(gram, -1).T
    return _regression(both[:columns, :-2], columns), both[-2, columns:-2] / both[-2, -1]


def fitted_weights(around: np.ndarray, coefficients: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Return the weight of each node by the regression, (scales, n)."""
    smooth = np.empty((len(usual), around.shape[1]))
    _loops.fit_weights(around, np.ascontiguousarray(coefficients), usual, smooth)
    return smooth


HIGH = 2.0**-30  # high units of a product of two columns, where the largest is 1; low ones are 2^-30 of them


def _powers_above(tops: np.ndarray) -> np.ndarray:
    return np.ldexp(1.0, np.frexp(tops)[1])


def checked_weight_size(weights: np.ndarray) -> np.ndarray:
    """Return finite weights; they may hold variances, so they may be as large as squares of signals."""
    if on_device(weights) and weights.size:
        top = float(largest_size(weights))
    else:
        low, high = span(weights)
        top = max(-low, high)
    if not top <= LARGEST**2.1:
        bad = int((~np.isfinite(weights)).sum())
        got = f"{bad} entries that are NaN or infinite" if bad else f"{top:g}"
        text = f"weights has {got}" if bad else f"weights must not be so large; the largest is {got}"
        expected = "finite" if bad else "smaller"
        raise InputError.about(argument="weights", expected=expected, got=got, text=text)
    return weights
