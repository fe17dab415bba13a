"""Lines of an edge list to numbers, megabytes at a time. Knows bytes and arrays only.

Where the loop leaves the rounding of a number in doubt (see `core/number_text.h`), Python is asked. So all are the nearest float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hushgraph.core import _loops
from hushgraph.names import PADDING, Names


class RowForm(NamedTuple):
    """Where things stand in a line: which fields are the ends and the value (-1: none) of an edge."""

    n_fields: int
    source: int
    target: int
    value: int
    delimiter: int  # 0: runs of spaces and tabs
    comment: int  # 0: none; with a delimiter, only lines that begin with it
    positive: bool  # values are lengths: 0 only for self-loops
    is_text: bool = False  # ids are text, numbered in the order they are met


class Rows(NamedTuple):
    """Edges of a block; `alone` marks lines that state a node; `stop` is where the first line begins that is none of this, or -1."""

    ids: np.ndarray
    values: np.ndarray
    alone: np.ndarray
    stop: int


def parse_rows(block: bytes, form: RowForm, names: Names | None = None) -> Rows:
    """The edges of a block of whole lines; ids that are text are numbered in `names`.

    Examples
    --------
    >>> rows = parse_rows(b"# from to\\n7 3 0.5\\n3 9 2e-3\\nx\\n", RowForm(3, 0, 1, 2, 0, ord("#"), False))
    >>> rows.ids.tolist(), rows.values.tolist(), rows.stop
    ([[7, 3], [3, 9]], [0.5, 0.002], 27)
    """
    ids, values, alone, doubts, places, stop = _loops.parse_edges(np.frombuffer(block, dtype=np.uint8), *form)
    if names is not None:
        ids = names.numbers(block + PADDING, ids)
    for row, (start, end) in zip(doubts.tolist(), places.tolist(), strict=True):
        values[row] = float(block[start:end])
    first = int(np.argmax(~_usable(values, ids, form.positive))) if len(doubts) else 0
    if len(doubts) and not _usable(values[first : first + 1], ids[first : first + 1], form.positive)[0]:
        stop = start_of_row(block, form, first)  # a number too large for a float, or so small that it is 0
    return Rows(ids, values, alone, stop)


def _usable(values: np.ndarray, ids: np.ndarray, positive: bool) -> np.ndarray:
    return np.isfinite(values) & ((values > 0) | (ids[:, 0] == ids[:, 1]) | (not positive))


def start_of_row(block: bytes, form: RowForm, row: int) -> int:
    """Where a row begins: rows are lines, but some lines are no rows."""
    start = 0
    for line in block.split(b"\n"):
        end = start + len(line) + 1
        if parse_rows(line, form._replace(value=-1)).ids.size:
            if row == 0:
                return start
            row -= 1
        start = end
    return 0


def integers_of(names: Names) -> np.ndarray | None:
    """Texts as integers, None if they are not all integers as one would write them: no leading zeros, which codes have."""
    good, numbers = _loops.read_integers(*names.places())
    return numbers if good else None
