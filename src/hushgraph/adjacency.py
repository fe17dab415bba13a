"""From edges, weights and lengths to a checked adjacency matrix: symmetric, non-negative, finite, zero diagonal."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy import sparse

Duplicates = Literal["error", "sum", "max"]


def choose(name: str, value: Any, choices: tuple) -> Any:
    """`value` if it is one of `choices`, otherwise an error that lists them."""
    if value not in choices:
        msg = f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}"
        raise ValueError(msg)
    return value


def checked_adjacency(matrix) -> sparse.csr_array:
    if matrix.shape[0] != matrix.shape[1]:
        msg = f"adjacency must be square; got {matrix.shape}"
        raise ValueError(msg)
    if matrix.dtype.kind not in "fiub":
        msg = f"edge weights must be real numbers; got dtype {matrix.dtype}"
        raise TypeError(msg)
    matrix = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    checked_weights(matrix.data, matrix.nnz)
    if matrix.diagonal().any():
        matrix = matrix - sparse.diags_array(matrix.diagonal())
        matrix = matrix.tocsr()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    mirror = matrix.T.tocsr()
    mirror.sort_indices()
    same_pattern = np.array_equal(mirror.indptr, matrix.indptr) and np.array_equal(mirror.indices, matrix.indices)
    if not same_pattern or np.any(np.abs(mirror.data - matrix.data) > 1e-12 * np.maximum(mirror.data, matrix.data)):
        msg = "adjacency is not symmetric, and an undirected graph needs it to be; pass A.maximum(A.T) to unite both directions"
        raise ValueError(msg)
    matrix.data = (matrix.data + mirror.data) / 2
    return matrix


def checked_pairs(edges) -> np.ndarray:
    pairs = np.asarray(edges)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        msg = f"edges must be (m, 2) node numbers; got shape {pairs.shape}" + ("; pass edges.T" if pairs.shape[0] == 2 else "")
        raise ValueError(msg)
    if pairs.dtype.kind not in "iu":
        msg = f"edges must be integers (node numbers); got dtype {pairs.dtype}. For named nodes use from_networkx or labels="
        raise TypeError(msg)
    if pairs.min() < 0:
        msg = f"edges must be node numbers from 0; got {pairs.min()}"
        raise ValueError(msg)
    return pairs


def checked_weights(weights, n_edges: int) -> np.ndarray:
    values = np.asarray(weights)
    if values.shape != (n_edges,):
        msg = f"weights must be one number per edge: expected ({n_edges},), got {values.shape}"
        raise ValueError(msg)
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        msg = f"edge weights must be finite; {int((~np.isfinite(values)).sum())} are NaN or infinite"
        raise ValueError(msg)
    if values.size and values.min() < 0:
        msg = f"edge weights must not be negative (they are affinities: larger is closer); the smallest is {values.min():g}"
        raise ValueError(msg)
    return values


def node_count(pairs: np.ndarray, n: int | None, labels, coords) -> int:
    if n is None:
        known = [len(x) for x in (labels, coords) if x is not None]
        n = known[0] if known else int(pairs.max(initial=-1)) + 1
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        msg = f"n must be a number of nodes, an integer of at least 0; got {n!r}"
        raise ValueError(msg)
    return int(n)


def merge_duplicates(pairs, values, n: int, duplicates: Duplicates):
    """Each undirected edge once, without self-loops and edges of weight 0."""
    pairs = pairs.astype(np.int64, copy=False)
    low, high = np.minimum(pairs[:, 0], pairs[:, 1]), np.maximum(pairs[:, 0], pairs[:, 1])
    keep = low != high if values is None else (low != high) & (values > 0)
    keys = low[keep] * n + high[keep]
    if values is None:
        keys.sort()  # much faster than np.unique on millions of edges
        keys = keys[np.diff(keys, prepend=-1) > 0]
        return np.stack(np.divmod(keys, max(n, 1)), axis=1), None
    keys, first, group = np.unique(keys, return_index=True, return_inverse=True)
    low, high, values = low[keep], high[keep], values[keep]
    merged = values[first]
    if duplicates == "sum":
        merged = np.bincount(group, weights=values, minlength=len(keys))
    elif duplicates == "max":
        merged = np.zeros(len(keys))
        np.maximum.at(merged, group, values)
    elif np.any(values != merged[group]):
        i = int(np.flatnonzero(values != merged[group])[0])
        msg = (
            f"edge ({low[i]}, {high[i]}) is given more than once with different weights ({merged[group[i]]:g} and {values[i]:g}); "
            "say duplicates='sum' or 'max'"
        )
        raise ValueError(msg)
    return np.stack([low[first], high[first]], axis=1), merged


def one_of(*, weight, distance):
    if weight is not None and distance is not None:
        msg = f"give weight= (an affinity) or distance= (a length), not both; got {weight!r} and {distance!r}"
        raise ValueError(msg)
    return weight if weight is not None else distance


def affinities(values, attribute, pairs, *, is_distance: bool):
    if values is None:
        return None
    absent = sum(value is None for value in values)
    if absent:
        msg = f"{absent} of {len(values)} edges have no attribute {attribute!r}"
        raise ValueError(msg)
    values = np.asarray(values, dtype=float)
    if not is_distance:
        return values
    loops = pairs[:, 0] == pairs[:, 1]
    if np.any(~np.isfinite(values[~loops])) or np.any(values[~loops] <= 0):
        msg = f"lengths in {attribute!r} must be finite and above 0"
        raise ValueError(msg)
    return np.divide(values[~loops].mean() if (~loops).any() else 1.0, values, out=np.zeros_like(values), where=~loops)
