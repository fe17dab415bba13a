"""From pairs of node numbers to the symmetric matrix in compressed rows, in linear time. Knows arrays only.

Every edge is put into the rows of both its ends; then the rows are walked in order and each is written into its neighbours' rows,
which leaves all rows sorted, with what was given twice side by side and in the order it was given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from scipy import sparse

from hushgraph._errors import InputError, Sentence
from hushgraph.adjacency import Duplicates, checked_weights

MERGING: dict[Duplicates, int] = {"error": 0, "sum": 1, "max": 2}


class SymmetricRows(NamedTuple):
    """A matrix that is symmetric, non-negative and sorted, with zero diagonal, because of how it was made."""

    matrix: sparse.csr_array


def symmetric_rows(pairs: np.ndarray, values: np.ndarray | None, n: int, duplicates: Duplicates) -> SymmetricRows:
    """The adjacency of checked pairs: each edge once, no self-loops, no edges of weight 0; without values edges weigh 1.

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
    starts, neighbours, data = _both_ways(pairs, weights, n, form(0))
    starts, neighbours, data = _mirrored(starts, neighbours, data)
    size, i, j, one, other = merged(starts, neighbours, data, MERGING[duplicates])
    if size < 0:
        msg = "edge ({}, {}) is given more than once with different weights ({:g} and {:g}); say {duplicates='sum'} or 'max'"
        raise InputError(Sentence(msg, i, j, one, other))
    data = np.ones(size) if values is None else checked_weights(data[:size].copy(), size)  # a sum may be too large
    return SymmetricRows(sparse.csr_array((data, neighbours[:size].copy(), starts.astype(form)), shape=(n, n)))


@njit(cache=True)
def _both_ways(pairs, weights, n, zero):
    """Rows of both ends of every edge, neighbours in the order given."""
    starts = np.zeros(n + 1, dtype=np.int64)
    for k in range(len(pairs)):
        a, b = pairs[k, 0], pairs[k, 1]
        if a != b and (weights.size == 0 or weights[k] > 0):
            starts[a + 1] += 1
            starts[b + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    place = starts[:-1].copy()
    neighbours = np.full(starts[n], zero)
    data = np.empty(starts[n] if weights.size else 0)
    for k in range(len(pairs)):
        a, b = pairs[k, 0], pairs[k, 1]
        if a != b and (weights.size == 0 or weights[k] > 0):
            neighbours[place[a]], neighbours[place[b]] = b, a
            if weights.size:
                data[place[a]] = data[place[b]] = weights[k]
            place[a] += 1
            place[b] += 1
    return starts, neighbours, data


@njit(cache=True)
def _mirrored(starts, neighbours, data):
    """The same rows, which are those of a symmetric matrix, with ascending neighbours."""
    place, mirror, moved = starts[:-1].copy(), np.empty_like(neighbours), np.empty_like(data)
    for i in range(len(starts) - 1):
        for k in range(starts[i], starts[i + 1]):
            j = neighbours[k]
            mirror[place[j]] = i
            if data.size:
                moved[place[j]] = data[k]
            place[j] += 1
    return starts, mirror, moved


@njit(cache=True)
def merged(starts, neighbours, data, merging):
    """Entries given twice become one, in place; (number left, ...), or (-1, the edge, its two weights) where they disagree."""
    size, begin = 0, 0
    for i in range(len(starts) - 1):
        first, end = size, starts[i + 1]
        for k in range(begin, end):
            if size > first and neighbours[size - 1] == neighbours[k]:
                if data.size == 0:
                    continue
                if merging == 1:
                    data[size - 1] += data[k]
                elif merging == 2:
                    data[size - 1] = max(data[size - 1], data[k])
                elif data[k] != data[size - 1]:
                    return -1, i, np.int64(neighbours[k]), data[size - 1], data[k]
            else:
                neighbours[size] = neighbours[k]
                if data.size:
                    data[size] = data[k]
                size += 1
        begin = end
        starts[i + 1] = size
    return size, 0, np.int64(0), 0.0, 0.0
