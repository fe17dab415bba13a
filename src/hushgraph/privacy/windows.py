"""Time windows of events: a public rule, applied to each row by itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hushgraph._errors import InputError, InputTypeError
from hushgraph._validation import as_array, shown
from hushgraph.privacy.locating import NO_TIME, OUTSIDE_WINDOWS
from hushgraph.privacy.text_lines import NO_TICKS, Texts
from hushgraph.privacy.typed_columns import Column, Moments, Objects, numbers, times, type_of


class Windows:
    """Half-open time windows [a, b) from h + 1 increasing edges: numbers, or times with or without a time zone.

    Examples
    --------
    >>> Windows([0, 6, 12, 24]).edges
    (0, 6, 12, 24)
    >>> Windows(["2026-03-02T06:00", "2026-03-02T07:00"]).edges
    ('2026-03-02T06:00:00', '2026-03-02T07:00:00')
    """

    def __init__(self, windows: Any) -> None:
        edges = as_array(windows, "windows") if not hasattr(windows, "tz") else windows
        if getattr(edges, "ndim", 0) != 1 or len(edges) < 2:
            raise InputError.about(argument="windows", expected="h + 1 edges of h windows, at least 2", got=shown(windows))
        self.kind = "number" if edges.dtype.kind in "iuf" else "naive"
        if self.kind == "number":
            self.edges = tuple(edges.tolist())
            self._ticks = list(self.edges)
        else:
            self._read_times(windows)
        if (
            not all(a < b for a, b in zip(self._ticks, self._ticks[1:], strict=False))
            or not np.isfinite(np.array([self._ticks[0], self._ticks[-1]], float)).all()
        ):
            expected = "increasing finite edges: window k runs from edge k up to, not including, edge k + 1"
            raise InputError.about(argument="windows", expected=expected)

    def __len__(self) -> int:
        return len(self.edges) - 1

    def _read_times(self, windows: Iterable) -> None:
        column = Objects(list(windows))
        ticks, aware = times(column)
        known = ticks[ticks != NO_TICKS]
        if len(known) < len(ticks) or aware.all() != aware.any() or known.min() < _FIRST or known.max() >= _LAST:
            expected = (
                "numbers, or times between the years 1678 and 2261, all with a time zone or all without: datetime64, datetimes or "
                "ISO 8601 text"
            )
            raise InputError.about(argument="windows", expected=expected, got=shown(windows))
        self.kind = "aware" if aware.all() else "naive"
        self._ticks = ticks.tolist()
        self.edges = tuple(_iso_text(tick) + ("+00:00" if self.kind == "aware" else "") for tick in self._ticks)

    def find(self, column: Column, name: str) -> np.ndarray:
        """Return the window of each row, or NO_TIME or OUTSIDE_WINDOWS."""
        if self.kind == "number" and isinstance(column, Moments):
            msg = f"windows are numbers, but column {name!r} holds times; give windows as datetimes"
            raise InputTypeError(msg)
        if self.kind == "number":
            values = numbers(column, name)
            return _window_of(np.array(self._ticks, dtype=np.float64), values, np.isfinite(values))
        ticks, fits = self._timed(column, name)
        return _window_of(np.array(self._ticks, dtype=np.int64), ticks, fits & (ticks != NO_TICKS))

    def _timed(self, column: Column, name: str) -> tuple[np.ndarray, np.ndarray | bool]:
        """Return (nanoseconds, whether a row has an offset exactly if windows have); a row of the other kind has no time."""
        if isinstance(column, Texts | Objects):
            ticks, aware = times(column)
            return ticks, aware == (self.kind == "aware")
        if not isinstance(column, Moments):
            msg = f"windows are times, but column {name!r} holds {type_of(column)}; convert it to times: pandas.to_datetime"
            raise InputTypeError(msg)
        if column.aware != (self.kind == "aware"):
            have, lack = (f"column {name!r} has", "windows have") if column.aware else ("windows have", f"column {name!r} has")
            msg = f"{have} a time zone and {lack} none; give both one, or take it off: tz_convert('...').tz_localize(None)"
            raise InputError(msg)
        return column.ticks, True


_FIRST, _LAST = (int(np.datetime64(f"{year}-01-01", "ns").astype(np.int64)) for year in (1678, 2262))


def _iso_text(tick: int) -> str:
    """Return nanoseconds since 1970 as ISO 8601: seconds, with six or nine decimals where they are needed."""
    seconds, nanoseconds = divmod(tick, 10**9)
    text = str(np.datetime64(seconds, "s"))
    if nanoseconds == 0:
        return text
    return f"{text}.{nanoseconds // 1000:06d}" if nanoseconds % 1000 == 0 else f"{text}.{nanoseconds:09d}"


def _window_of(edges: np.ndarray, values: np.ndarray, known: np.ndarray | bool) -> np.ndarray:
    """Return the window of each value; NO_TIME where it is not known."""
    window = np.searchsorted(edges, values, side="right") - 1
    inside = (window >= 0) & (window < len(edges) - 1)
    return np.where(known, np.where(inside, window, OUTSIDE_WINDOWS), NO_TIME)
