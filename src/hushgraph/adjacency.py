"""From edges, weights and lengths to a checked adjacency matrix: symmetric, non-negative, finite, zero diagonal.

Also the checks of what goes with it: coordinates, labels, node numbers.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

import numpy as np
from scipy import sparse

from hushgraph._errors import InputError, InputTypeError, Sentence
from hushgraph.checks import LARGEST, as_array, checked_real_array, choose, is_count, shown

Duplicates = Literal["error", "sum", "max"]


MAX_NODES = 2**31 - 1


def checked_adjacency(matrix) -> sparse.csr_array:
    if not sparse.issparse(matrix):
        matrix = as_array(matrix, "adjacency")
    if len(matrix.shape) != 2:
        msg = f"adjacency must be a matrix, sparse or dense; got {shown(matrix)}"
        raise InputError(msg)
    if matrix.shape[0] != matrix.shape[1]:
        msg = f"adjacency must be square; got {matrix.shape}"
        raise InputError(msg)
    if matrix.dtype.kind not in "fiub":
        msg = f"edge weights must be real numbers; got dtype {matrix.dtype}"
        raise InputTypeError(msg)
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
        raise InputError(msg)
    matrix.data = (matrix.data + mirror.data) / 2
    return matrix


def checked_pairs(edges) -> np.ndarray:
    pairs = as_array(edges, "edges")
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        msg = f"edges must be (m, 2) node numbers; got shape {pairs.shape}" + (
            "; pass edges.T" if pairs.shape[:1] == (2,) and pairs.ndim == 2 else ""
        )
        raise InputError(msg)
    if pairs.dtype.kind not in "iu":
        msg = f"edges must be integers (node numbers); got dtype {pairs.dtype}. For named nodes use from_networkx or labels="
        raise InputTypeError(msg)
    if pairs.min() < 0:
        msg = f"edges must be node numbers from 0; got {pairs.min()}"
        raise InputError(msg)
    if pairs.dtype.kind == "u" and pairs.max() < 2**62:
        pairs = pairs.astype(np.int64)  # their differences may be negative
    return pairs


def checked_weights(weights, n_edges: int) -> np.ndarray:
    values = checked_real_array("weights", weights)
    if values.shape != (n_edges,):
        msg = f"weights must be one number per edge: expected ({n_edges},), got {values.shape}"
        raise InputError(msg)
    values = values.astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        msg = f"edge weights must be finite; {int((~np.isfinite(values)).sum())} are NaN or infinite"
        raise InputError(msg)
    if values.size and values.min() < 0:
        msg = f"edge weights must not be negative (they are affinities: larger is closer); the smallest is {values.min():g}"
        raise InputError(msg)
    lightest, heaviest = np.min(values, initial=np.inf, where=values > 0), values.max(initial=0.0)
    if lightest < 1 / LARGEST or heaviest > LARGEST:
        extreme = lightest if lightest < 1 / LARGEST else heaviest
        msg = f"edge weights must be 0 (no edge) or from {1 / LARGEST:g} to {LARGEST:g} in size; got {extreme:g}; rescale them"
        raise InputError(msg)
    return values


def node_count(pairs: np.ndarray, n: int | None, labels, coords) -> int:
    if n is None:
        known = [len(x) for x in (labels, coords) if hasattr(x, "__len__") and np.ndim(as_array(x)) > 0]
        n = known[0] if known else int(pairs.max(initial=-1)) + 1
    if not is_count(n, 0):
        msg = f"n must be a number of nodes, an integer of at least 0; got {shown(n)}"
        raise InputError(msg)
    if n > MAX_NODES:
        msg = f"n must be at most {MAX_NODES} nodes; got {shown(n)}; number the nodes 0, 1, 2, ..."
        raise InputError(msg)
    return int(n)


def one_of(*, weight, distance):
    if weight is not None and distance is not None:
        msg = "give {weight=} (an affinity) or {distance=} (a length), not both; got {!r} and {!r}"
        raise InputError(Sentence(msg, weight, distance))
    return weight if weight is not None else distance


def check_all_given(absent: int, total: int, attribute):
    if absent:
        advice = "{} of {} edges have no attribute {!r}; give it to all, name another, or leave weights out: {weight=False}"
        raise InputError(Sentence(advice, absent, total, attribute))


def affinities(values, attribute, pairs, *, is_distance: bool):
    if values is None:
        return None
    if not isinstance(values, np.ndarray) or values.dtype.kind == "O":
        check_all_given(sum(value is None for value in values), len(values), attribute)
    values = checked_real_array(f"edge attribute {attribute!r}", values)
    if not is_distance:
        return values
    loops = pairs[:, 0] == pairs[:, 1]
    if np.any(~np.isfinite(values[~loops])) or np.any(values[~loops] <= 0):
        msg = f"lengths in {attribute!r} must be finite and above 0"
        raise InputError(msg)
    return np.divide(values[~loops].mean() if (~loops).any() else 1.0, values, out=np.zeros_like(values), where=~loops)


def checked_coords(coords, crs, n: int) -> np.ndarray | None:
    choose("crs", crs, (None, "lonlat"))
    if coords is None:
        return None
    coords = checked_real_array("coords", coords).astype(np.float64)
    if coords.ndim != 2 or len(coords) != n or coords.shape[1] not in (2, 3):
        msg = f"coords must be one row of 2 or 3 numbers per node: expected ({n}, 2), got {coords.shape}"
        raise InputError(msg)
    if not np.isfinite(coords).all():
        msg = "coords must be finite; leave coords out if some places are unknown"
        raise InputError(msg)
    if crs == "lonlat" and (np.abs(coords[:, 0]).max(initial=0) > 360 or np.abs(coords[:, 1]).max(initial=0) > 90):
        msg = "{crs='lonlat'} needs (longitude, latitude) in degrees; these coords are outside that range (swapped, or planar?)"
        raise InputError(Sentence(msg))
    coords.flags.writeable = False
    return coords


def checked_labels(labels, n: int) -> np.ndarray | None:
    if labels is None:
        return None
    labels = label_array(labels)
    if labels.shape != (n,):
        msg = f"labels must be one name per node: expected ({n},), got {labels.shape}"
        raise InputError(msg)
    if len(set(labels.tolist())) != n:
        msg = f"labels must be unique; {n - len(set(labels.tolist()))} are repeated"
        raise InputError(msg)
    labels.flags.writeable = False
    return labels


def label_array(labels) -> np.ndarray:
    """One-dimensional array of labels; tuples stay whole."""
    if not hasattr(labels, "__iter__") or getattr(labels, "ndim", 1) == 0:
        msg = f"labels must be one name per node, a list; got {shown(labels)}"
        raise InputTypeError(msg)
    labels = list(labels)
    if not all(isinstance(x, Hashable) for x in labels):
        msg = "labels must be names that can be keys of a dict: text, numbers or tuples of them; lists and arrays cannot"
        raise InputTypeError(msg)
    if (labels and all(isinstance(x, int | np.integer) for x in labels)) or (labels and all(isinstance(x, str) for x in labels)):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def checked_nodes(nodes, n: int) -> np.ndarray:
    """Node numbers, each once, from numbers or a mask."""
    keep = as_array(nodes, "nodes")
    if keep.ndim == 1 and keep.size == 0 and keep.dtype != bool:
        return np.empty(0, dtype=np.int64)
    if keep.ndim != 1 or keep.dtype.kind not in "biu":
        msg = f"nodes must be a list of node numbers, or a mask of {n} booleans; got {shown(nodes)}"
        raise InputTypeError(msg)
    if keep.dtype == bool:
        if len(keep) != n:
            msg = f"nodes as a mask must have one entry per node: expected {n}, got {len(keep)}"
            raise InputError(msg)
        return np.flatnonzero(keep)
    if keep.min() < 0 or keep.max() >= n:
        msg = f"nodes must be numbers from 0 to {n - 1}; got {keep.min() if keep.min() < 0 else keep.max()}"
        raise InputError(msg)
    repeated = np.bincount(keep, minlength=n).max() > 1
    if repeated:
        msg = f"nodes must be unique; {len(keep) - len(np.unique(keep))} are repeated"
        raise InputError(msg)
    return keep.astype(np.int64, copy=False)
