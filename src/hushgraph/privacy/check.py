"""check_events: what counting would make of events, for the owner's eyes, before anything is charged.

A refusal must not depend on private data, so counting drops what it cannot use by public rules and says nothing. A file with longitude
and latitude swapped would be charged for and published as pure noise. The check reads the file by the same rules (`rows.py`) and tells
its owner what becomes of every row. All of it is private: it is for a screen, not for a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hushgraph._errors import InputTypeError
from hushgraph._geodesy import planar_coords
from hushgraph.checks import checked_count, shown
from hushgraph.graph import Graph
from hushgraph.names import PADDING
from hushgraph.privacy.bounding import Tally
from hushgraph.privacy.calibration import Adjacency
from hushgraph.privacy.columns import Column, Moments, Objects, Reals, Texts, numbers, times
from hushgraph.privacy.counting import checked_adjacency, checked_caps
from hushgraph.privacy.events import Chunk
from hushgraph.privacy.lines import NO_TIME as NO_TICKS
from hushgraph.privacy.places import node_finder
from hushgraph.privacy.rows import NO_PLACE, NO_TIME, OUTSIDE_WINDOWS, TOO_FAR, EventReader, Rows, open_rows

_SHOWN_PER_REASON = 3
_SAMPLE_PER_CHUNK, _SAMPLE = 2_000, 20_000  # rows that hints are made from
_MANY, _SOME = 0.5, 0.05  # shares of the rows from which on a hint is given
_FEW_IDS = 10  # so few ids may well be people who are numbered in the order of how often they come
PRIVATE = "Private, not for publication: what counting would make of these events. Nothing was charged, nothing was written."
ADVICE = (
    "Mend the file or the names of its columns with this. Do not choose the graph, the windows, the bounds or epsilon by it: a "
    "release attests that they were fixed without looking at the data."
)


@dataclass(frozen=True)
class DroppedRow:
    """A row that does not count: its line (the header is line 1) or row (from 0), and why. Private."""

    place: str
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class EventCheck:
    """What counting would make of events; made by `check_events`, shown by print. Private: it can be neither pickled nor copied.

    Every row is in one of the numbers from `unreadable` to `counted`, the first that applies.

    Attributes
    ----------
    rows : int
        Rows read, without the header and empty lines.
    unreadable : int
        Lines that cannot be split into fields.
    without_id, without_place, too_far, without_time, outside_windows : int
        Rows dropped by these rules. A node that the graph does not have is no place.
    cut : int
        Rows beyond the bound of their unit; which ones is drawn at random, so that the number may vary a little.
    counted : int
        Rows that count.
    units : int or None
        Number of different ids; None without `unit=`.
    every_id_once : bool
        Whether no id occurs twice. Then the column probably numbers rows, and the bound binds nobody.
    dropped : tuple of DroppedRow
        The first rows of each kind that do not count, and why.
    hints : tuple of str
        What is probably wrong, in sentences; empty if nothing looks odd.
    """

    rows: int
    unreadable: int
    without_id: int
    without_place: int
    too_far: int
    without_time: int
    outside_windows: int
    cut: int
    counted: int
    units: int | None
    unit: str | None
    every_id_once: bool
    dropped: tuple[DroppedRow, ...]
    hints: tuple[str, ...]

    def __repr__(self) -> str:
        return "EventCheck(private; print it to see it)"

    def __reduce_ex__(self, protocol):
        msg = "a check of events is private and can be neither pickled nor copied; print it, or run check_events again"
        raise InputTypeError(msg)

    def table(self) -> list[tuple[str, int]]:
        """Return what becomes of the rows, in words and numbers."""
        return [
            ("rows read", self.rows),
            ("cannot be read", self.unreadable),
            ("without id", self.without_id),
            ("without place", self.without_place),
            ("too far from every node", self.too_far),
            ("without time", self.without_time),
            ("outside the windows", self.outside_windows),
            ("cut by the bound", self.cut),
            ("counted", self.counted),
        ]

    def units_in_words(self) -> str:
        """Return how many units there are."""
        if self.units is None:
            return "There are no ids: nothing is cut, and the bound is assumed."
        once = "; every id occurs once" if self.every_id_once else ""
        return f"{self.units:,} different ids of {self.unit}{once}."

    def __str__(self) -> str:
        lines = [PRIVATE, *(f"{number:>14,}  {name}" for name, number in self.table()), self.units_in_words()]
        if self.dropped:
            lines += ["First rows that do not count:", *(f"  {one.place}: {one.reason}" for one in self.dropped)]
        lines += [f"Probably: {hint}" for hint in self.hints]
        return "\n".join([*lines, ADVICE])


def check_events(
    graph: Graph,
    events,
    *,
    unit: str | None = None,
    unit_column: str | None = None,
    adjacency: Adjacency | None = None,
    max_nodes: int | None = None,
    max_per_node: int | None = None,
    lon: str | None = None,
    lat: str | None = None,
    x: str | None = None,
    y: str | None = None,
    crs: str | None = None,
    node: str | None = None,
    max_distance: float | None = None,
    far: Literal["drop", "keep"] | None = None,
    time: str | None = None,
    windows=None,
    max_cells: int | None = None,
    max_per_cell: int | None = None,
    chunk_rows: int = 1_000_000,
    progress: Callable[[int], Any] | None = None,
) -> EventCheck:
    """Return what `count_events` would make of these events, for the owner's eyes only.

    No ledger is touched, nothing is charged, written or logged. Iterables are used up.

    Parameters
    ----------
    graph, events, ...
        As in `count_events`; `adjacency` may be left out.

    Returns
    -------
    EventCheck
        Private. Print it.

    Examples
    --------
    >>> import hushgraph as hg
    >>> graph = hg.Graph.from_edges([(0, 1), (1, 2)])
    >>> events = {"rider": ["ann", "ann", "bob", None], "node": [0, 0, 7, 1]}
    >>> check = check_events(graph, events, unit="rider", max_nodes=2, max_per_node=1)
    >>> check.counted, check.cut, check.without_id, check.without_place
    (1, 1, 1, 1)
    >>> check
    EventCheck(private; print it to see it)
    """
    if adjacency is not None:
        checked_adjacency(adjacency)
    reader = open_rows(
        graph, events, unit=unit, unit_column=unit_column, lon=lon, lat=lat, x=x, y=y, crs=crs, node=node,
        max_distance=max_distance, far=far, time=time, windows=windows,
    )  # fmt: skip
    caps = checked_caps(
        reader.windows is not None, max_nodes=max_nodes, max_per_node=max_per_node, max_cells=max_cells, max_per_cell=max_per_cell
    )
    look = _Look(reader, Tally(reader.n_cells, *caps.values()))
    for rows in reader.rows(checked_count("chunk_rows", chunk_rows, 1)):
        look.add(rows)
        if progress is not None:
            progress(look.n_rows)
    return look.result(unit)


class _Look:
    """One pass over the rows: what becomes of each, the first of each kind that do not count, and a sample for hints."""

    def __init__(self, reader: EventReader, tally: Tally):
        self.reader, self.tally = reader, tally
        self.times_met = np.zeros(0, dtype=np.int64)  # by code of the unit
        self.n_rows = self.unreadable = self.with_id = self.countable = 0
        self.reasons = dict.fromkeys(("id", NO_PLACE, TOO_FAR, NO_TIME, OUTSIDE_WINDOWS), 0)
        self.examples: list[tuple[tuple, DroppedRow]] = []
        self.shown: dict[Any, int] = {}
        self.sample: dict[str, list] = {name: [] for name in reader.names}
        self.sampled = 0

    def add(self, rows: Rows) -> None:
        self.n_rows += len(rows) + len(rows.dropped)
        self.unreadable += len(rows.dropped)
        self._show("line", rows, rows.dropped, None)
        identified = np.ones(len(rows), dtype=bool) if rows.units is None else rows.units >= 0
        self.with_id += int(identified.sum())
        self.countable += int((identified & (rows.cells >= 0)).sum())
        for reason in self.reasons:
            found = np.flatnonzero(~identified if reason == "id" else identified & (rows.cells == reason))
            self.reasons[reason] += len(found)
            self._show(reason, rows, rows.numbers[found], found)
        self.tally.add(rows.units, rows.cells)
        if rows.units is not None and self.reader.codes is not None:
            met = np.bincount(rows.units[identified], minlength=len(self.reader.codes))
            met[: len(self.times_met)] += self.times_met
            self.times_met = met
        self._take_sample(rows)

    def _show(self, reason, rows: Rows, positions: np.ndarray, found: np.ndarray | None) -> None:
        """Keep the first rows of a kind, with the reason in words; `found` are their places in the chunk, if they are in it."""
        room = _SHOWN_PER_REASON - self.shown.get(reason, 0)
        for k, position in enumerate(positions[: max(room, 0)].tolist()):
            part = f" of part {rows.part}" if rows.part else ""
            why = "it cannot be split into fields, or is too long" if found is None else self._why(reason, rows, int(found[k]))
            place = f"{'line' if rows.of_text else 'row'} {position}{part}"
            self.examples.append(((rows.part, position), DroppedRow(place, why)))
            self.shown[reason] = self.shown.get(reason, 0) + 1

    def _why(self, reason, rows: Rows, row: int) -> str:
        """Return in words why a row does not count, with the field that says so."""
        if reason == "id":
            return "no id"
        field = {name: f"{name} {_text(rows.columns[name], row)}" for name in rows.columns}
        at = ", ".join(field[name] for name in self.reader.places)
        if reason == NO_PLACE:
            return f"{at}: " + ("no node of the graph" if self.reader.crs is None else "no place")
        if reason == TOO_FAR:
            return f"{at}: further than {self.reader.max_distance:g} from every node"
        when = field[self.reader.time] if self.reader.time is not None else ""
        return f"{when}: " + ("no time that can be compared with the windows" if reason == NO_TIME else "in no window")

    def _take_sample(self, rows: Rows) -> None:
        size = min(_SAMPLE_PER_CHUNK, _SAMPLE - self.sampled, len(rows))
        for row in np.linspace(0, len(rows) - 1, max(size, 0)).astype(np.int64).tolist():
            for name, values in self.sample.items():
                values.append(_value(rows.columns[name], row))
        self.sampled += max(size, 0)

    def result(self, unit: str | None) -> EventCheck:
        counted = int(self.tally.counts().sum())
        units = None if self.reader.codes is None else len(self.reader.codes)
        once = units is not None and units == self.with_id > 1
        return EventCheck(
            rows=self.n_rows,
            unreadable=self.unreadable,
            without_id=self.reasons["id"],
            without_place=self.reasons[NO_PLACE],
            too_far=self.reasons[TOO_FAR],
            without_time=self.reasons[NO_TIME],
            outside_windows=self.reasons[OUTSIDE_WINDOWS],
            cut=self.countable - counted,
            counted=counted,
            units=units,
            unit=unit,
            every_id_once=once,
            dropped=tuple(example for _, example in sorted(self.examples, key=lambda one: one[0])),
            hints=tuple(self._hints(units, once, counted)),
        )

    # ---- what is probably wrong -----------------------------------------------------------------------------------------

    def _hints(self, units: int | None, once: bool, counted: int) -> list[str]:
        if not self.n_rows:
            return ["the file has no rows after its header"]
        share = {reason: number / self.n_rows for reason, number in self.reasons.items()}
        hints = []
        if once:
            hints.append(
                "the column of ids numbers the rows, since every id occurs once; then the bound binds nobody, and one person may count "
                "any number of times"
            )
        elif self._are_row_numbers():
            hints.append(
                "the column of ids numbers the rows of several files that were joined, since the ids are the whole numbers from 0 or 1 on and "
                "none occurs more often than the one before it; then the bound binds nobody, and one person may count any number of times"
            )
        if self.reader.codes is not None and len(self.reader.codes.tables) > 1:
            kinds = ", ".join(sorted(self.reader.codes.tables))
            hints.append(
                f"the ids of one person are written in several ways, since they are of several kinds ({kinds}), and ids of different kinds "
                "are different people; turn them all into text, or pass the path of the file"
            )
        if units == 1 and self.with_id > 1:
            hints.append("the column of ids is not one, since all rows have the same")
        if share["id"] > _SOME:
            hints.append(
                f"the column of ids is incomplete or the wrong one: {share['id']:.0%} of the rows have none and do not count"
            )
        if self.unreadable > _SOME * self.n_rows:
            hints.append(
                "the file is not separated by commas, or its quotation marks do not match: many lines cannot be split into fields"
            )
        if self.reader.crs is None and share[NO_PLACE] > _SOME:
            hints.append(
                f"nodes have other names in the events than in the graph: {share[NO_PLACE]:.0%} of the rows are at no node of it"
            )
        if self.reader.crs is not None and self.sampled:
            hints += self._place_hints(share[NO_PLACE])
        if self.reader.time is not None and self.sampled:
            hints += self._time_hints(share)
        return hints or ([] if counted else ["nothing would be counted, and the release would be noise alone"])

    def _are_row_numbers(self) -> bool:
        """Return whether the ids are 0, 1, ..., n - 1 or 1, ..., n, each met at most as often as the one before it."""
        tables = {} if self.reader.codes is None else self.reader.codes.tables
        if list(tables) != ["text"] or len(tables["text"]) < _FEW_IDS:
            return False
        content, starts, lengths = tables["text"].places()
        buffer = np.concatenate([content, np.frombuffer(PADDING, dtype=np.uint8)])
        ids = Texts(buffer, starts.astype(np.int64) << 32 | (starts + lengths).astype(np.int64)).numbers()
        order = np.argsort(ids)
        first = ids[order[0]]
        numbered = first in (0, 1) and np.array_equal(ids[order], first + np.arange(len(ids)))
        return bool(numbered and (np.diff(self.times_met[order]) <= 0).all())

    def _place_hints(self, without_place: float) -> list[str]:
        """Hints from a sample of the coordinates."""
        reader, (first, second) = self.reader, self.reader.places
        a, b = (numbers(Objects(self.sample[name]), name) for name in (first, second))
        known = np.isfinite(a) & np.isfinite(b)
        hints = []
        if without_place > _SOME and np.mean(~known) > _SOME:
            hints.append(f"coordinates are missing, or no numbers: {without_place:.0%} of the rows do not count for that")
        if (zero := np.mean((a == 0) & (b == 0))) > _SOME:
            hints.append(f"an unknown place is written as {first} 0, {second} 0: {zero:.0%} of the rows are there")
        if not known.any() or (near := self._near(first, second)[known].mean()) > _MANY:
            return hints
        if (swapped := self._near(second, first)[known].mean()) > max(_MANY, near):
            hints.append(
                f"{first} and {second} are swapped: {near:.0%} of the rows with coordinates are near the graph, and {swapped:.0%} would be "
                "with the two exchanged; name the columns the other way round"
            )
        elif reader.crs == "lonlat" and np.median(np.abs(a[known])) > 180:
            hints.append("the coordinates are metres or feet of a plane, not degrees; name them as x and y with their crs")
        else:
            hints.append(
                f"the coordinates belong to another place or another crs than the graph: {near:.0%} of the rows are near it"
            )
        return hints

    def _near(self, first: str, second: str) -> np.ndarray:
        """Return which rows of the sample are near the graph if these are the names of its columns."""
        graph, crs = self.reader.graph, self.reader.crs
        reach = self.reader.max_distance or _width(graph)
        columns: dict[str, Column] = {name: Objects(values) for name, values in self.sample.items()}
        chunk = Chunk(columns, np.arange(self.sampled), np.empty(0, dtype=np.int64))
        return node_finder(graph, (first, second), crs, reach)(chunk) >= 0

    def _time_hints(self, share: dict) -> list[str]:
        """Hints from a sample of the times."""
        windows, name = self.reader.windows, self.reader.time
        assert windows is not None
        assert name is not None
        if share[NO_TIME] > _SOME:
            if windows.kind == "number":
                return [f"{share[NO_TIME]:.0%} of the rows have a time that is not a number, and the windows are numbers"]
            kind = _kind_of_times(self.sample[name], windows.kind == "aware")
            return [f"{kind}; {share[NO_TIME]:.0%} of the rows do not count for that"]
        if share[OUTSIDE_WINDOWS] > _MANY:
            return [
                f"the windows are of another time than the events: {share[OUTSIDE_WINDOWS]:.0%} of the rows are in none of them"
            ]
        return []


def _width(graph: Graph) -> float:
    """Return about how wide the graph is: metres, or units of its plane."""
    assert graph.coords is not None
    if not graph.n:
        return 1.0
    return max(float(np.ptp(planar_coords(graph.coords, graph.crs), axis=0).max()), 1e-9)


_FORMS = {
    r"(19|20)\d\d-\d\d-\d\d": "the times have a part that ISO 8601 does not have",
    r"\d{1,2}[/.-]\d{1,2}[/.-](\d{4}|\d\d)\b": "the times begin with day or month (31/12/2026, say)",
    r"[2-7]\d{4}([.,]\d+)?$": "the times are serial numbers of a spreadsheet (46000.5, say)",
    r"\d{10}([.,]\d+)?$": "the times are seconds since 1970",
    r"\d{13}$": "the times are milliseconds since 1970",
}


def _kind_of_times(values: list, with_offset: bool) -> str:
    """Return what most of the times that cannot be used look like."""
    ticks, aware = times(Objects(values))
    read = ticks != NO_TICKS
    if np.mean(read & (aware != with_offset)) > _SOME:
        have, lack = ("windows", "times") if with_offset else ("times", "windows")
        return f"the {have} have an offset from UTC (Z or +01:00) and the {lack} have none; give both one, or neither"
    texts = [_plain(value) for value, usable in zip(values, read.tolist(), strict=True) if not usable]
    found = {words: sum(re.match(form, text) is not None for text in texts) for form, words in _FORMS.items()}
    most = max(found, key=found.__getitem__)
    if texts and found[most] > _MANY * len(texts):
        return f"{most}; write them as 2026-12-31T16:05:00"
    if texts and sum(text in ("", "None", "nan", "NaT", "<NA>") for text in texts) > _MANY * len(texts):
        return "times are missing"
    return "the times are not written as 2026-12-31T16:05:00 (ISO 8601)"


# ---- single values ----------------------------------------------------------------------------------------------------


def _value(column: Column, row: int) -> Any:
    """Return the value of a row as a Python object; None if there is none."""
    if isinstance(column, Texts):
        start, end = int(column.spans[row]) >> 32, int(column.spans[row]) & 0xFFFFFFFF
        return column.buffer[start:end].tobytes()
    if isinstance(column, Reals):
        return column.values[row].item() if column.known[row] else None
    if isinstance(column, Moments):
        return None if column.ticks[row] == NO_TICKS else np.datetime64(int(column.ticks[row]), "ns")
    return column.values[row] if isinstance(column, Objects) else None


def _plain(value) -> str:
    """Return a value as text; nothing if it has none."""
    try:
        return value.decode("utf-8", "replace").strip() if isinstance(value, bytes) else str(value).strip()
    except Exception:  # an object without a text is no reason to stop, and its error may quote it
        return ""


def _text(column: Column, row: int) -> str:
    """Return the value of a row for the screen: short, and in characters that cannot steer a terminal."""
    try:
        value = _value(column, row)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "backslashreplace")
        return (
            ascii(value[:40])
            if isinstance(value, str) and not value.isprintable()
            else shown(value if not isinstance(value, str) else value[:40])
        )
    except Exception:  # an object that cannot be shown is no reason to stop
        return "something that cannot be shown"
