"""How noisy the wavelet coefficients are around each node: Monte-Carlo weights regressed on the degrees there.

A threshold that follows the noise needs the weights of every node, and those of few probes are far too noisy for that. They depend
mostly on the degree of the node and those of its neighbours, so a regression on a dozen such numbers keeps what is real.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushgraph._errors import InputError
from hushgraph.arrays import largest_size, namespace, on_device, on_host
from hushgraph.checks import LARGEST, checked_real_array, checked_sigma, span
from hushgraph.core import _loops
from hushgraph.graph import Graph, checked_graph
from hushgraph.sums import BLOCK, block_sum, blocks, orderless_sum


def smooth_weights(graph: Graph, weights: np.ndarray, *, sigma=None) -> np.ndarray:
    """Weights regressed on local degree statistics, within a factor 4 of the mean of their scale.

    For threshold *scales* only: raw weights of few probes are far too noisy there. SURE itself needs the raw ones.
    `sigma` is the standard deviation per node when the weights hold it: they then follow its local mean square.
    """
    weights = checked_real_array("weights", weights)
    if weights.ndim != 2 or weights.shape[1] != checked_graph(graph).n:
        msg = f"weights must have shape (n_scales, {graph.n}), as monte_carlo_weights returns them; got {weights.shape}"
        raise InputError(msg)
    checked_weight_size(weights)
    if graph.n == 0:
        return weights.astype(np.float64)
    own = None if sigma is None else np.broadcast_to(on_host(checked_sigma(sigma, graph.n)), graph.n) ** 2
    if on_device(weights):
        return _smooth_on_device(graph, weights, own)
    around = surroundings(graph, own, Usual.of(graph.degrees, own))
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    tops = largest_columns(around, weights)
    columns = n_columns(per_node=own is not None)
    return fitted_weights(around, *fit_of_products(products_in_units(around, weights, tops), tops, columns))


@dataclass(frozen=True)
class Usual:
    """What all nodes together say: the mean and the largest degree, and the mean variance of a noise per node."""

    degree: float
    most: float
    variance: float = 1.0

    @classmethod
    def of(cls, degrees: np.ndarray, own: np.ndarray | None) -> Usual:
        n = len(degrees)
        variance = 1.0 if own is None else orderless_sum(own) / n or 1.0
        return cls(orderless_sum(degrees) / n or 1.0, float(degrees.max()), variance)


LOCAL, ALONE = 4, 5  # rows of `surroundings`
SURROUNDINGS, PER_NODE = 6, 3  # how many there are, and how many more with a noise per node
MADE = 11  # columns of the regression that are made of them; those from ALONE on are columns themselves
_STRETCH = 2**22  # nodes whose columns are on the device at a time


def n_columns(*, per_node: bool) -> int:
    """Columns of the regression.

    >>> n_columns(per_node=False), n_columns(per_node=True)
    (12, 15)
    """
    return MADE + SURROUNDINGS - ALONE + PER_NODE * per_node


def _regression(both: np.ndarray, columns: int) -> np.ndarray:
    """Coefficients (columns, scales) from the products of columns with each other and with the weights.

    There are a dozen columns: normal equations are accurate enough, and fast.
    """
    gram = both[:, :columns]
    unit = np.sqrt(np.diag(gram))
    unit = 1 / np.where(unit > 0, unit, 1.0)
    return np.linalg.lstsq(unit[:, None] * gram * unit, unit[:, None] * both[:, columns:], rcond=1e-12)[0] * unit[:, None]


def _smooth_on_device(graph: Graph, weights, own: np.ndarray | None):
    """The same where the weights are. What is known around the nodes is kept there if all have the same noise."""
    cp = namespace(weights)
    if own is None and "around on device" not in graph.memo:
        graph.memo["around on device"] = cp.asarray(surroundings(graph, None, Usual.of(graph.degrees, None)))
    around = graph.memo["around on device"] if own is None else cp.asarray(surroundings(graph, own, Usual.of(graph.degrees, own)))
    columns = n_columns(per_node=own is not None)
    stretches = [slice(start, start + _STRETCH) for start in range(0, graph.n, _STRETCH)]
    both = np.zeros((columns, columns + len(weights)))
    for nodes in stretches:
        features = _features_on_device(cp, around[:, nodes])
        both += (features @ cp.concatenate([features, weights[:, nodes].astype(np.float64, copy=False)]).T).get()
    fitted, local = cp.asarray(_regression(both, columns)), around[LOCAL]
    usual = block_sum(weights.T) / block_sum(local)
    smooth = cp.empty(weights.shape)
    for nodes in stretches:
        middle = cp.asarray(usual)[:, None] * local[nodes]
        rows = fitted.T @ _features_on_device(cp, around[:, nodes])
        cp.clip(rows, middle / 4, middle * 4, out=smooth[:, nodes])
    return smooth


def _features_on_device(cp, around):
    """Columns of the regression."""
    d, near, inverse_near, twice_near = around[:4]
    local = cp.where(around[ALONE] > 0, 0.0, around[LOCAL])
    rows = [1.0, d, cp.sqrt(d), 1 / d, near, inverse_near, twice_near, d * near, near / d, d * inverse_near, near * near]
    return cp.stack([*(local * row for row in rows), *around[ALONE:]])


def surroundings(graph: Graph, own: np.ndarray | None, usual: Usual) -> np.ndarray:
    """What is known around each node, a row each. Degree (1 is usual), its mean over the neighbours, the mean of their inverse degrees,
    the mean over them of their second row; noise here and around (LOCAL), noise of nodes without neighbours (ALONE); and with a noise
    per node its variance here, around, and around that.
    """
    matrix, isolated = graph.adjacency, graph.degrees == 0
    around = np.ones((SURROUNDINGS + PER_NODE * (own is not None), graph.n))
    inverse = 1 / np.where(isolated, 1.0, graph.degrees)

    def walk(source, target):
        """Means over the neighbours."""
        _loops.average_neighbors(matrix.indptr, matrix.indices, matrix.data, inverse, source, target)

    around[0] = np.maximum(graph.degrees / usual.degree, 1e-12 * (usual.most / usual.degree or 1.0))
    walk(around[0], around[1])
    walk(1 / around[0], around[2])
    walk(around[1], around[3])
    around[ALONE] = isolated
    if own is not None:  # fine wavelets see their node, coarse ones its surroundings
        around[6] = own / usual.variance
        walk(around[6], around[7])
        walk(around[7], around[8])
        around[LOCAL] = np.where(isolated, around[6], (around[6] + around[7]) / 2)
        around[ALONE] *= around[6]
    return around


def largest_columns(around: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The largest size of each column of the regression, of the weights, of 1 and of the noise around: what their units are made of."""
    columns = MADE + len(around) - ALONE
    parts = np.zeros((max(len(blocks(weights.shape[1])), 1), columns + len(weights) + 2))
    _loops.largest_features(around, np.ascontiguousarray(weights, dtype=np.float64), parts, BLOCK)
    return parts.max(axis=0)


def products_in_units(around: np.ndarray, weights: np.ndarray, tops: np.ndarray) -> np.ndarray:
    """Sums over the nodes of products of columns with columns and weights, and of weights and noise: (2, rows, rows) integers.

    They are whole numbers of units, high and low ones, so they add up over parts of a graph in any order.
    """
    rows = len(tops)
    parts = np.zeros((2, max(len(blocks(weights.shape[1])), 1), rows, rows), dtype=np.int64)
    _loops.count_products(around, np.ascontiguousarray(weights, dtype=np.float64), _powers_above(tops), parts, BLOCK)
    return parts.sum(axis=1)


def fit_of_products(units: np.ndarray, tops: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (columns, scales) of the regression, and the usual weight of each scale per unit of noise."""
    powers = _powers_above(tops)
    both = (units[0] * HIGH + units[1] * (HIGH * HIGH)) * np.outer(powers, powers)
    gram = np.tril(both[:columns, :columns])
    both[:columns, :columns] = gram + np.tril(gram, -1).T
    return _regression(both[:columns, :-2], columns), both[-2, columns:-2] / both[-2, -1]


def fitted_weights(around: np.ndarray, coefficients: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """What the regression says of each node, (scales, n)."""
    smooth = np.empty((len(usual), around.shape[1]))
    _loops.fit_weights(around, np.ascontiguousarray(coefficients), usual, smooth)
    return smooth


HIGH = 2.0**-30  # high units of a product of two columns, where the largest is 1; low ones are 2^-30 of them


def _powers_above(tops: np.ndarray) -> np.ndarray:
    return np.ldexp(1.0, np.frexp(tops)[1])


def checked_weight_size(weights: np.ndarray) -> np.ndarray:
    """Weights may hold variances, so they may be as large as squares."""
    if on_device(weights) and weights.size:
        top = float(largest_size(weights))
    else:
        low, high = span(weights)
        top = max(-low, high)
    if not top <= LARGEST**2.1:
        bad = int((~np.isfinite(weights)).sum())
        msg = (
            f"weights has {bad} entries that are NaN or infinite"
            if bad
            else f"weights must not be so large; the largest is {top:g}"
        )
        raise InputError(msg)
    return weights
