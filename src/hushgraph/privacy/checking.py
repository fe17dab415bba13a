"""check_events: what counting would make of events, for the owner's eyes, before anything is charged.

A refusal must not depend on private data, so counting drops what it cannot use by public rules and says nothing. A file with longitude
and latitude swapped would be charged for and published as pure noise. The check reads the file by the same rules (`event_rows.py`) and tells
its owner what becomes of every row. All of it is private: it is for a screen, not for a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np

from hushgraph._errors import InputTypeError
from hushgraph._progress import counting_rows
from hushgraph._validation import checked_count, columns_in_words, shown
from hushgraph.graphs import Graph
from hushgraph.privacy.bounding import Tally
from hushgraph.privacy.csv_format import CsvFormat
from hushgraph.privacy.event_hints import NO_ID, Evidence, hints_from
from hushgraph.privacy.event_rows import EventReader, Rows, open_rows
from hushgraph.privacy.events import open_events
from hushgraph.privacy.locating import NO_PLACE, NO_TIME, OUTSIDE_WINDOWS, OUTSIDE_ZONES, TOO_FAR
from hushgraph.privacy.sensitivity import Adjacency, checked_caps, checked_neighbouring
from hushgraph.privacy.typed_columns import Column, value_at

_EXAMPLES_PER_REASON = 3
_SAMPLE_PER_CHUNK, _SAMPLE = 2_000, 20_000  # rows that hints are made from
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

    Parameters
    ----------
    rows : int
        Rows read, without the header and empty lines.
    unreadable : int
        Lines that cannot be split into fields.
    without_id, without_place, too_far, without_time, outside_windows : int
        Rows dropped by these rules. A node that the graph does not have is not a place.
    outside_zones : int or None
        Rows with a place in no zone; None if places are not compared with zones. They are in place of those that are too far.
    cut : int
        Rows beyond the bound of their unit; which ones is drawn at random, so that the number may vary a little.
    counted : int
        Rows that count.
    units : int or None
        Number of different ids; None without `unit=`.
    unit : str or None
        Whose ids they are.
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
    outside_zones: int | None
    cut: int
    counted: int
    units: int | None
    unit: str | None
    every_id_once: bool
    dropped: tuple[DroppedRow, ...]
    hints: tuple[str, ...]

    def __repr__(self) -> str:
        return "EventCheck(private; print it to see it)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        msg = "a check of events is private and can be neither pickled nor copied; print it, or run check_events again"
        raise InputTypeError(msg)

    def table(self) -> list[tuple[str, int]]:
        """Return what becomes of the rows.

        Returns
        -------
        list of (str, int)
            Each kind of rows in words, and how many there are.
        """
        return [
            ("rows read", self.rows),
            ("cannot be read", self.unreadable),
            ("without id", self.without_id),
            ("without place", self.without_place),
            ("too far from every node", self.too_far) if self.outside_zones is None else ("outside all zones", self.outside_zones),
            ("without time", self.without_time),
            ("outside the windows", self.outside_windows),
            ("cut by the bound", self.cut),
            ("counted", self.counted),
        ]

    def units_in_words(self) -> str:
        """Return how many units there are, in words.

        Returns
        -------
        str
            One sentence.
        """
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
    events: Any,
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
    windows: Sequence | None = None,
    max_cells: int | None = None,
    max_per_cell: int | None = None,
    csv_format: CsvFormat | None = None,
    chunk_rows: int = 1_000_000,
    progress: Callable[[int], Any] | bool | None = None,
) -> EventCheck:
    """Return what `count_events` would make of these events, for the owner's eyes only.

    No ledger is touched, nothing is charged, written or logged. Iterables are used up.

    Parameters
    ----------
    graph : Graph
        The public graph.
    events : DataFrame of pandas or polars, dict of columns, Arrow table, path or iterable of these
        As in `count_events`.
    unit, unit_column : str, optional
        Whose events are bounded together, and the column of their ids.
    adjacency : {"add-remove", "change-one"}, optional
        Checked if it is given; it changes nothing here.
    max_nodes, max_per_node : int
        The bound on one unit, without windows.
    lon, lat : str, optional
        Columns of degrees.
    x, y, crs : str, optional
        Columns of plane coordinates, and what they are measured in.
    node : str, optional
        Column of node labels.
    max_distance : float, optional
        Events further than this from every node do not count.
    far : {"drop", "keep"}, optional
        As in `count_events`.
    time, windows : str and h + 1 increasing edges, optional
        Count per node and window.
    max_cells, max_per_cell : int
        The bound on one unit, with windows.
    csv_format : CsvFormat, optional
        How .csv files are written, as in `count_events`.
    chunk_rows : int
        Rows in memory at a time, at most.
    progress : True or callable, optional
        True shows a bar, on a terminal or in a notebook. A function is called with the number of rows done after each chunk.

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
        checked_neighbouring(adjacency)
    reader = open_rows(
        graph, events, unit=unit, unit_column=unit_column, lon=lon, lat=lat, x=x, y=y, crs=crs, node=node,
        max_distance=max_distance, far=far, time=time, windows=windows, csv_format=csv_format,
    )  # fmt: skip
    caps = checked_caps(
        reader.windows is not None, max_nodes=max_nodes, max_per_node=max_per_node, max_cells=max_cells, max_per_cell=max_per_cell
    )
    row_pass = _RowPass(reader, Tally(reader.n_cells, *caps.values()))
    with counting_rows(progress) as report:
        for rows in reader.rows(checked_count("chunk_rows", chunk_rows, 1)):
            row_pass.add(rows)
            report(row_pass.n_rows)
    return row_pass.result(unit)


def columns_for_owner(events: Any, csv_format: CsvFormat | None, wanted: Iterable[str]) -> str:
    """Return the names of the columns, with the nearest to the first wanted one that is not there; empty if all are there.

    Private, for the owner's screen only. Errors do not say it: in a file without a line of names it is somebody's row.

    Examples
    --------
    >>> columns_for_owner({"person": [], "Latitude": []}, None, ["latitude"])
    "it has 'person', 'Latitude'; is it 'Latitude'?"
    """
    columns = open_events(events, csv_format).columns or []
    absent = [name for name in wanted if name not in columns]
    return columns_in_words(columns, absent[0]) if absent else ""


class _RowPass:
    """One pass over the rows: what becomes of each, the first of each kind that do not count, and a sample for hints."""

    def __init__(self, reader: EventReader, tally: Tally) -> None:
        self.reader, self.tally = reader, tally
        self.events_per_unit = np.zeros(0, dtype=np.int64)
        self.n_rows = self.unreadable = self.with_id = self.countable = 0
        self.reasons = dict.fromkeys((NO_ID, NO_PLACE, TOO_FAR, OUTSIDE_ZONES, NO_TIME, OUTSIDE_WINDOWS), 0)
        self.examples: list[tuple[tuple[int, int], DroppedRow]] = []
        self.n_examples: dict[Any, int] = {}
        self.sample: dict[str, list] = {name: [] for name in reader.names}
        self.sampled = 0

    def add(self, rows: Rows) -> None:
        """Add a chunk of rows."""
        self.n_rows += len(rows) + len(rows.dropped)
        self.unreadable += len(rows.dropped)
        self._add_examples("line", rows, rows.dropped, None)
        identified = np.ones(len(rows), dtype=bool) if rows.units is None else rows.units >= 0
        self.with_id += int(identified.sum())
        self.countable += int((identified & (rows.cells >= 0)).sum())
        for reason in self.reasons:
            dropped = np.flatnonzero(~identified if reason == NO_ID else identified & (rows.cells == reason))
            self.reasons[reason] += len(dropped)
            self._add_examples(reason, rows, rows.numbers[dropped], dropped)
        self.tally.add(rows.units, rows.cells)
        if rows.units is not None and self.reader.codes is not None:
            events = np.bincount(rows.units[identified], minlength=len(self.reader.codes))
            events[: len(self.events_per_unit)] += self.events_per_unit
            self.events_per_unit = events
        self._add_sample(rows)

    def _add_examples(self, reason: Any, rows: Rows, positions: np.ndarray, places: np.ndarray | None) -> None:
        """Keep the first rows of a kind, with the reason in words; `places` are theirs in the chunk, if they are in it."""
        room = _EXAMPLES_PER_REASON - self.n_examples.get(reason, 0)
        for k, position in enumerate(positions[: max(room, 0)].tolist()):
            part = f" of part {rows.part}" if rows.part else ""
            cause = (
                "it cannot be split into fields, or is too long" if places is None else self._cause(reason, rows, int(places[k]))
            )
            place = f"{'line' if rows.of_text else 'row'} {position}{part}"
            self.examples.append(((rows.part, position), DroppedRow(place, cause)))
            self.n_examples[reason] = self.n_examples.get(reason, 0) + 1

    def _cause(self, reason: Any, rows: Rows, row: int) -> str:
        """Return in words why a row does not count, with the field that says so."""
        if reason == NO_ID:
            return "no id"
        field = {name: f"{name} {_text(rows.columns[name], row)}" for name in rows.columns}
        place = ", ".join(field[name] for name in self.reader.places)
        if reason == NO_PLACE:
            return f"{place}: " + ("no node of the graph" if self.reader.crs is None else "no place")
        if reason == TOO_FAR:
            return f"{place}: further than {self.reader.max_distance:g} from every node"
        if reason == OUTSIDE_ZONES:
            return f"{place}: in no zone"
        time = field[self.reader.time] if self.reader.time is not None else ""
        return f"{time}: " + ("no time that can be compared with the windows" if reason == NO_TIME else "in no window")

    def _add_sample(self, rows: Rows) -> None:
        """Keep the values of some rows, evenly spaced in the chunk."""
        size = min(_SAMPLE_PER_CHUNK, _SAMPLE - self.sampled, len(rows))
        for row in np.linspace(0, len(rows) - 1, max(size, 0)).astype(np.int64).tolist():
            for name, values in self.sample.items():
                values.append(value_at(rows.columns[name], row))
        self.sampled += max(size, 0)

    def result(self, unit: str | None) -> EventCheck:
        """Return what becomes of all rows that were added."""
        counted = int(self.tally.counts().sum())
        evidence = Evidence(
            self.reader, self.n_rows, self.unreadable, self.with_id, counted, self.reasons, self.events_per_unit, self.sample, self.sampled
        )  # fmt: skip
        return EventCheck(
            rows=self.n_rows,
            unreadable=self.unreadable,
            without_id=self.reasons[NO_ID],
            without_place=self.reasons[NO_PLACE],
            too_far=self.reasons[TOO_FAR],
            without_time=self.reasons[NO_TIME],
            outside_windows=self.reasons[OUTSIDE_WINDOWS],
            outside_zones=self.reasons[OUTSIDE_ZONES] if self.reader.by_zones else None,
            cut=self.countable - counted,
            counted=counted,
            units=evidence.units,
            unit=unit,
            every_id_once=evidence.every_id_once,
            dropped=tuple(example for _, example in sorted(self.examples, key=lambda one: one[0])),
            hints=tuple(hints_from(evidence)),
        )


def _text(column: Column, row: int) -> str:
    """Return the value of a row for the screen: short, and in characters that cannot steer a terminal."""
    try:
        value = value_at(column, row)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "backslashreplace")
        return (
            ascii(value[:40])
            if isinstance(value, str) and not value.isprintable()
            else shown(value if not isinstance(value, str) else value[:40])
        )
    except Exception:  # an object that cannot be shown is no reason to stop
        return "something that cannot be shown"
