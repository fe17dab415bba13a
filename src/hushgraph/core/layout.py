"""Rows of a symmetric matrix in an order that suits caches and branch predictors.

Nodes are renumbered by breadth-first levels; whole levels form blocks, so that a block only touches its neighbours; inside
a block rows go by length, so that they come in runs of one length. Inside a row neighbours stay in ascending node number:
the renumbering never changes a sum. Only matrices are used here, no graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hushgraph.core import _loops

ROWS = 1024  # rows in a block, at least
WIDEST = 32 * ROWS  # blocks above this many rows gain nothing from the wavefront


@dataclass(frozen=True, eq=False)
class Layout:
    """diag(diagonal) - adjacency, renumbered: row i is node order[i].

    `runs` are (first row, last row + 1, row length, place of its first index); `block_runs[b]` is the first run of
    block b. `values` and `diagonal` are None when every edge has the same weight `uniform` and the diagonal is the
    row length times it.
    """

    order: np.ndarray
    blocks: np.ndarray
    block_runs: np.ndarray
    runs: np.ndarray
    indices: np.ndarray
    values: np.ndarray | None
    diagonal: np.ndarray | None
    uniform: float
    wavefront: bool
    workspace: dict = field(default_factory=dict, repr=False)


def prepare(adjacency: Any, diagonal: np.ndarray, *, uniform: bool | None = None) -> Layout:
    """Return the matrix renumbered, with its rows in runs of equal length.

    `uniform` says whether every edge has the same weight, for a part of a larger matrix; None: check this matrix.
    """
    indptr, indices = adjacency.indptr, adjacency.indices
    order, levels = _loops.breadth_first(indptr, indices)
    blocks = _loops.cut_levels(levels, len(order), ROWS)
    wavefront = np.diff(blocks).max(initial=0) <= WIDEST
    if not wavefront:
        blocks = np.append(np.arange(0, len(order), ROWS), len(order))
    order, runs, block_runs = _loops.sort_runs(indptr, order, blocks)
    weight = adjacency.data[0] if adjacency.nnz else 1.0
    has_one_weight = is_uniform(adjacency, diagonal) if uniform is None else uniform
    new_indices, values = _loops.renumber(indptr, indices, adjacency.data[: 0 if has_one_weight else None], order, runs)
    return Layout(
        order,
        blocks,
        block_runs,
        runs,
        new_indices,
        None if has_one_weight else values,
        None if has_one_weight else diagonal[order],
        weight,
        bool(wavefront),
    )


def is_uniform(adjacency: Any, diagonal: np.ndarray) -> bool:
    """Return whether every edge has the same weight, and the diagonal is the row length times it."""
    weight = adjacency.data[0] if adjacency.nnz else 1.0
    return bool(np.all(adjacency.data == weight) and np.allclose(diagonal, weight * np.diff(adjacency.indptr), rtol=1e-13, atol=0))
