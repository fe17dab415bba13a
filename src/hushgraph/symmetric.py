"""From pairs of node numbers to the symmetric matrix in compressed rows, in linear time. Knows arrays only.

Every edge is put into the rows of both its ends; then the rows are walked in order and each is written into its neighbours' rows,
which leaves all rows sorted, with what was given twice side by side and in the order it was given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from hushgraph._errors import InputError, Sentence
from hushgraph.adjacency import Duplicates, checked_weights
from hushgraph.core import _loops

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
    rows_of_pairs = _loops.rows_of_pairs32 if form is np.int32 else _loops.rows_of_pairs64
    starts, neighbours, data = rows_of_pairs(pairs, weights, n)
    neighbours, data = _loops.sort_symmetric(starts, neighbours, data)
    size, i, j, one, other = _loops.merge_entries(starts, neighbours, data, MERGING[duplicates])
    if size < 0:
        msg = "edge ({}, {}) is given more than once with different weights ({:g} and {:g}); say {duplicates='sum'} or 'max'"
        raise InputError(Sentence(msg, i, j, one, other))
    data = np.ones(size) if values is None else checked_weights(data[:size].copy(), size)  # a sum may be too large
    return SymmetricRows(sparse.csr_array((data, neighbours[:size].copy(), starts.astype(form)), shape=(n, n)))
