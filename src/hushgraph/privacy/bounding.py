"""Cutting each unit down to a public bound, whatever the order of rows and chunks. Knows codes, cells and keys only.

A unit's key orders all cells; of those it visits, the unit keeps the first `max_cells`, and in each at most `max_per_cell`
events. So its contribution is a function of its own events and its own key.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike

from hushgraph.core import _loops

_BUFFER = 4_000_000  # rows kept before they are reduced to what can still count


def bounded_counts(
    units: ArrayLike, cells: ArrayLike, keys: ArrayLike, *, n_cells: int, max_cells: int, max_per_cell: int
) -> np.ndarray:
    """Return counts per cell in which each unit has at most `max_cells` cells and `max_per_cell` events in each.

    Parameters
    ----------
    units : (rows,) integers
        Code of each row's unit; rows with a negative code are dropped.
    cells : (rows,) integers
        Each row's cell; rows with a negative one are dropped.
    keys : (n_units,) uint64
        The random key of each unit, by code.
    n_cells : int
        Number of cells.
    max_cells, max_per_cell : int
        The bound on each unit.

    Returns
    -------
    (n_cells,) int64 array
        The counts.

    Examples
    --------
    >>> keys = np.array([7, 8], dtype=np.uint64)
    >>> bounded_counts([0, 0, 0, 1], [2, 2, 2, 0], keys, n_cells=3, max_cells=1, max_per_cell=2)
    array([1, 0, 2])
    """
    pairs, repeats = _distinct(np.asarray(units, dtype=np.int64), np.asarray(cells, dtype=np.int64), n_cells)
    pairs, repeats = _loops.first_cells(pairs, repeats, np.ascontiguousarray(keys, dtype=np.uint64), max(n_cells, 1), max_cells)
    return _total(pairs, repeats, n_cells, max_per_cell)


def draw_keys(n_units: int) -> np.ndarray:
    """Return one key of 64 bits per new unit, from the operating system; the ids play no part."""
    return np.frombuffer(os.urandom(8 * n_units), dtype=np.uint64)


class Tally:
    """Counts that are added up from chunks of rows; in memory at most `max_cells` cells per unit and a buffer of rows.

    Reducing early changes nothing. A cell that is among a unit's first `max_cells` in the end is among the first of any subset,
    so it is never evicted and its count is complete. A cell that was evicted has `max_cells` cells before it for good, so it never
    comes back, however often its events do.
    """

    def __init__(self, n_cells: int, max_cells: int, max_per_cell: int) -> None:
        self.n_cells, self.max_cells, self.max_per_cell = n_cells, max_cells, max_per_cell
        self.keys: list[np.ndarray] = [np.empty(0, dtype=np.uint64)]  # of units in the order of their codes
        self.n_units = 0
        self.pairs = self.repeats = np.empty(0, dtype=np.int64)  # kept cells unit * n_cells + cell, ascending, and their events
        self.buffer: list[tuple[np.ndarray, np.ndarray]] = []
        self.buffered = 0
        self.sums = np.zeros(n_cells, dtype=np.int64)  # of rows without units

    def add(self, units: np.ndarray | None, cells: np.ndarray) -> None:
        """Add a chunk: the code of each row's unit (None: there are no units, nothing is cut) and its cell.

        Codes are 0, 1, 2, ... in the order in which units come; rows with a negative code or cell are dropped.
        """
        if units is None:
            self.sums += np.bincount(cells[cells >= 0], minlength=self.n_cells)
            return
        new = int(units.max(initial=-1)) + 1 - self.n_units
        if new > 0:
            self.keys.append(draw_keys(new))
            self.n_units += new
        self.buffer.append((units, cells))
        self.buffered += len(cells)
        if self.buffered > max(_BUFFER, 2 * len(self.pairs)):
            self._reduce()

    def _reduce(self) -> None:
        if not self.buffer:
            return
        units, cells = (np.concatenate(parts) for parts in zip(*self.buffer, strict=True))
        self.buffer, self.buffered = [], 0
        pairs, repeats = _distinct(units, cells, self.n_cells)
        if len(self.pairs):
            pairs, repeats = _merged(self.pairs, self.repeats, pairs, repeats)
        self.keys = [np.concatenate(self.keys)]
        self.pairs, self.repeats = _loops.first_cells(pairs, repeats, self.keys[0], max(self.n_cells, 1), self.max_cells)

    def counts(self) -> np.ndarray:
        """Return the counts per cell of all rows that were added."""
        self._reduce()
        return self.sums + _total(self.pairs, self.repeats, self.n_cells, self.max_per_cell)


def _distinct(units: np.ndarray, cells: np.ndarray, n_cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct pairs unit * n_cells + cell, ascending (units and cells that fit into memory fit into 63 bits), and repeats."""
    known = (units >= 0) & (cells >= 0)
    pairs = np.sort(units[known] * n_cells + cells[known])
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    return pairs[first], np.diff(first, append=len(pairs))


def _merged(
    pairs: np.ndarray, repeats: np.ndarray, more_pairs: np.ndarray, more_repeats: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of two lists, ascending, and the sums of their repeats."""
    pairs, repeats = np.concatenate([pairs, more_pairs]), np.concatenate([repeats, more_repeats])
    order = np.argsort(pairs, kind="stable")
    pairs, repeats = pairs[order], repeats[order]
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    return pairs[first], np.add.reduceat(repeats, first) if len(first) else repeats


def _total(pairs: np.ndarray, repeats: np.ndarray, n_cells: int, max_per_cell: int) -> np.ndarray:
    weights = np.minimum(repeats, max_per_cell)
    return np.bincount(pairs % max(n_cells, 1), weights=weights, minlength=n_cells).astype(np.int64)  # exact below 2^53 events
