"""Construction of the adjacency matrix from edges, weights and lengths; checks of coordinates, labels and node numbers.

The matrix is symmetric, non-negative and finite, with a zero diagonal. `symmetric_rows` turns pairs of node numbers into compressed rows
in linear time. First every edge is written into the rows of both its ends. Then the rows are read in ascending order, and the number of
each row is written into the rows of its neighbours; this sorts all rows. Entries that were given more than once are then next to each
other, in the order in which they were given.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from hushgraph._errors import InputError, InputTypeError, Sentence
from hushgraph._validation import LARGEST, as_array, checked_real_array, choose, is_count, shown
from hushgraph.core import _loops

Duplicates = Literal["error", "sum", "max"]

MAX_NODES = 2**31 - 1


def checked_adjacency(matrix: Any) -> sparse.csr_array:
    """Return a copy of a symmetric matrix of edge weights as a sorted csr_array without diagonal and zeros."""
    if not sparse.issparse(matrix):
        matrix = as_array(matrix, "adjacency")
    if len(matrix.shape) != 2:
        raise InputError.about(argument="adjacency", expected="a matrix, sparse or dense", got=shown(matrix))
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError.about(argument="adjacency", expected="square", got=matrix.shape)
    if matrix.dtype.kind not in "fiub":
        raise InputTypeError.about(argument="edge weights", expected="real numbers", got=f"dtype {matrix.dtype}")
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


def checked_pairs(edges: Any) -> np.ndarray:
    """Return edges as (m, 2) integers of at least 0."""
    pairs = as_array(edges, "edges")
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        hint = "pass edges.T" if pairs.ndim == 2 and len(pairs) == 2 else ""
        raise InputError.about(argument="edges", expected="(m, 2) node numbers", got=f"shape {pairs.shape}", hint=hint)
    if pairs.dtype.kind not in "iu":
        hint = "for named nodes use from_networkx or labels="
        raise InputTypeError.about(argument="edges", expected="integers (node numbers)", got=f"dtype {pairs.dtype}", hint=hint)
    if pairs.min() < 0:
        raise InputError.about(argument="edges", expected="node numbers from 0", got=pairs.min())
    if pairs.dtype.kind == "u" and pairs.max() < 2**62:
        pairs = pairs.astype(np.int64)  # their differences may be negative
    return pairs


def pairs_of_faces(faces: Any, n: int) -> np.ndarray:
    """Return the sides of the faces of a mesh of n vertices as (m, 2) vertex numbers."""
    faces = as_array(faces, "faces")
    if faces.ndim != 2 or faces.shape[1] < 3:
        raise InputError.about(argument="faces", expected="(n_faces, 3 or more) vertex numbers", got=f"shape {faces.shape}")
    if faces.size and faces.dtype.kind not in "iu":
        raise InputTypeError.about(argument="faces", expected="integers (vertex numbers)", got=f"dtype {faces.dtype}")
    if faces.size and not (faces.min() >= 0 and faces.max() < n):
        wrong = faces.min() if faces.min() < 0 else faces.max()
        hint = f"there are {n} vertices, numbered from 0"
        raise InputError.about(argument="faces", expected=f"vertex numbers from 0 to {n - 1}", got=wrong, hint=hint)
    return np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2)


def checked_weights(weights: Any, n_edges: int) -> np.ndarray:
    """Return one finite, non-negative weight per edge as float64."""
    values = checked_real_array("weights", weights)
    if values.shape != (n_edges,):
        raise InputError.about(argument="weights", expected=f"one number per edge, shape ({n_edges},)", got=values.shape)
    values = values.astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        raise InputError.about(argument="edge weights", expected=f"finite; {int((~np.isfinite(values)).sum())} are NaN or infinite")
    if values.size and values.min() < 0:
        msg = f"edge weights must not be negative (they are affinities: larger is closer); the smallest is {values.min():g}"
        raise InputError(msg)
    lightest, heaviest = np.min(values, initial=np.inf, where=values > 0), values.max(initial=0.0)
    if lightest < 1 / LARGEST or heaviest > LARGEST:
        extreme = lightest if lightest < 1 / LARGEST else heaviest
        expected = f"0 (no edge) or from {1 / LARGEST:g} to {LARGEST:g} in size"
        raise InputError.about(argument="edge weights", expected=expected, got=f"{extreme:g}", hint="rescale them")
    return values


def node_count(pairs: np.ndarray, n: int | None, labels: Any, coords: Any) -> int:
    """Return the number of nodes: `n`, or the number of labels or coordinates, or the largest node number plus one."""
    if n is None:
        lengths = [len(x) for x in (labels, coords) if hasattr(x, "__len__") and np.ndim(as_array(x)) > 0]
        n = lengths[0] if lengths else int(pairs.max(initial=-1)) + 1
    if not is_count(n, 0):
        raise InputError.about(argument="n", expected="a number of nodes, an integer of at least 0", got=shown(n))
    if n > MAX_NODES:
        raise InputError.about(
            argument="n", expected=f"at most {MAX_NODES} nodes", got=shown(n), hint="number the nodes 0, 1, 2, ..."
        )
    return int(n)


def one_of(*, weight: Any, distance: Any) -> Any:
    """Return the given one of `weight` and `distance`, or None."""
    if weight is not None and distance is not None:
        msg = "give {weight=} (an affinity) or {distance=} (a length), not both; got {!r} and {!r}"
        raise InputError(Sentence(msg, weight, distance))
    return weight if weight is not None else distance


def check_all_given(absent: int, total: int, attribute: Any) -> None:
    """Refuse an edge attribute that some edges lack."""
    if absent:
        advice = "{} of {} edges have no attribute {!r}; give it to all, name another, or leave weights out: {weight=False}"
        raise InputError(Sentence(advice, absent, total, attribute))


def affinities(values: Any, attribute: Any, pairs: np.ndarray, *, is_distance: bool) -> np.ndarray | None:
    """Return edge weights from the values of an edge attribute; lengths d become mean(d) / d."""
    if values is None:
        return None
    if not isinstance(values, np.ndarray) or values.dtype.kind == "O":
        check_all_given(sum(value is None for value in values), len(values), attribute)
    values = checked_real_array(f"edge attribute {attribute!r}", values)
    if not is_distance:
        return values
    loops = pairs[:, 0] == pairs[:, 1]
    if np.any(~np.isfinite(values[~loops])) or np.any(values[~loops] <= 0):
        raise InputError.about(argument=f"lengths in {attribute!r}", expected="finite and above 0")
    return np.divide(values[~loops].mean() if (~loops).any() else 1.0, values, out=np.zeros_like(values), where=~loops)


def checked_coords(coords: Any, crs: Any, n: int, *, name: str = "coords") -> np.ndarray | None:
    """Return a read-only copy of one row of coordinates per node, or None; errors use that name."""
    choose("crs", crs, (None, "lonlat"))
    if coords is None:
        return None
    coords = checked_real_array(name, coords).astype(np.float64)
    if coords.ndim != 2 or len(coords) != n or coords.shape[1] not in (2, 3):
        expected = f"one row of 2 or 3 numbers per node, shape ({n}, 2) or ({n}, 3)"
        raise InputError.about(argument=name, expected=expected, got=coords.shape)
    if not np.isfinite(coords).all():
        hint = "leave coords out if some places are unknown" if name == "coords" else ""
        raise InputError.about(argument=name, expected="finite", hint=hint)
    if crs == "lonlat" and (np.abs(coords[:, 0]).max(initial=0) > 360 or np.abs(coords[:, 1]).max(initial=0) > 90):
        msg = "{crs='lonlat'} needs (longitude, latitude) in degrees; these coords are outside that range (swapped, or planar?)"
        raise InputError(Sentence(msg))
    coords.flags.writeable = False
    return coords


def checked_covariates(covariates: Any, n: int) -> dict[str, np.ndarray]:
    """Return read-only float64 copies of maps by name, one value per node; NaN is an unknown value."""
    if not isinstance(covariates, Mapping) or not all(isinstance(name, str) and name for name in covariates):
        expected = "a dict of name -> one value per node; names are text"
        raise InputTypeError.about(argument="node_covariates", expected=expected, got=shown(covariates))
    checked = {}
    for name, given in covariates.items():
        argument = f"node_covariates[{shown(name)}]"
        values = checked_real_array(argument, given).astype(np.float64)
        if values.shape != (n,):
            raise InputError.about(argument=argument, expected=f"one number per node, shape ({n},)", got=values.shape)
        if np.isinf(values).any():
            raise InputError.about(argument=argument, expected="finite, or NaN where unknown", got="an infinite value")
        values.flags.writeable = False
        checked[name] = values
    return checked


def checked_labels(labels: Any, n: int) -> np.ndarray | None:
    """Return one unique label per node as a read-only array, or None."""
    if labels is None:
        return None
    labels = label_array(labels)
    if labels.shape != (n,):
        raise InputError.about(argument="labels", expected=f"one name per node, shape ({n},)", got=labels.shape)
    if len(set(labels.tolist())) != n:
        raise InputError.about(argument="labels", expected=f"unique; {n - len(set(labels.tolist()))} are repeated")
    labels.flags.writeable = False
    return labels


def label_array(labels: Any) -> np.ndarray:
    """Return labels as a one-dimensional array; tuples stay whole."""
    if not hasattr(labels, "__iter__") or getattr(labels, "ndim", 1) == 0:
        raise InputTypeError.about(argument="labels", expected="one name per node, a list", got=shown(labels))
    labels = list(labels)
    if not all(isinstance(x, Hashable) for x in labels):
        expected = "names that can be keys of a dict: text, numbers or tuples of them; lists and arrays cannot"
        raise InputTypeError.about(argument="labels", expected=expected)
    if (labels and all(isinstance(x, int | np.integer) for x in labels)) or (labels and all(isinstance(x, str) for x in labels)):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def checked_nodes(nodes: Any, n: int) -> np.ndarray:
    """Return node numbers, each once, from numbers or a mask."""
    numbers = as_array(nodes, "nodes")
    if numbers.ndim == 1 and numbers.size == 0 and numbers.dtype != bool:
        return np.empty(0, dtype=np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "biu":
        raise InputTypeError.about(
            argument="nodes", expected=f"a list of node numbers, or a mask of {n} booleans", got=shown(nodes)
        )
    if numbers.dtype == bool:
        if len(numbers) != n:
            raise InputError.about(
                argument="nodes", expected=f"a mask of {n} booleans, one per node", got=f"{len(numbers)} of them"
            )
        return np.flatnonzero(numbers)
    if numbers.min() < 0 or numbers.max() >= n:
        wrong = numbers.min() if numbers.min() < 0 else numbers.max()
        raise InputError.about(argument="nodes", expected=f"numbers from 0 to {n - 1}", got=wrong)
    if np.bincount(numbers, minlength=n).max() > 1:
        raise InputError.about(argument="nodes", expected=f"unique; {len(numbers) - len(np.unique(numbers))} are repeated")
    return numbers.astype(np.int64, copy=False)


MERGING: dict[Duplicates, int] = {"error": 0, "sum": 1, "max": 2}


class SymmetricRows(NamedTuple):
    """A matrix that is known to be symmetric, non-negative and sorted, with a zero diagonal: `Graph` does not check it again."""

    matrix: sparse.csr_array


def symmetric_rows(pairs: np.ndarray, values: np.ndarray | None, n: int, duplicates: Duplicates) -> SymmetricRows:
    """Return the adjacency of checked pairs: each edge once, no self-loops, no edges of weight 0; without values edges weigh 1.

    Examples
    --------
    >>> symmetric_rows(np.array([[2, 0], [1, 1], [0, 2]]), np.array([3.0, 9.0, 3.0]), 3, "error").matrix.toarray()
    array([[0., 0., 3.],
           [0., 0., 0.],
           [3., 0., 0.]])
    """
    form = np.int32 if 2 * len(pairs) < 2**31 else np.int64
    pairs = np.ascontiguousarray(pairs, dtype=np.int64)
    weights = np.empty(0) if values is None else np.ascontiguousarray(values, dtype=np.float64)
    rows_of_pairs = _loops.rows_of_pairs32 if form is np.int32 else _loops.rows_of_pairs64
    starts, neighbours, data = rows_of_pairs(pairs, weights, n)
    neighbours, data = _loops.sort_symmetric(starts, neighbours, data)
    size, i, j, one, other = _loops.merge_entries(starts, neighbours, data, MERGING[duplicates])
    if size < 0:
        msg = "edge ({}, {}) is given more than once with different weights ({:g} and {:g}); say {duplicates='sum'} or 'max'"
        raise InputError(Sentence(msg, i, j, one, other))
    data = np.ones(size) if values is None else checked_weights(data[:size].copy(), size)  # a sum may be too large
    return SymmetricRows(sparse.csr_array((data, neighbours[:size].copy(), starts.astype(form)), shape=(n, n)))
