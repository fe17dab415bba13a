"""Rows of events for counting: the unit of each row, and its cell or the reason why it is in none.

    reader = open_rows(graph, events, unit="person", max_distance=200)      # takes what count_events takes, checked alike
    for rows in reader.rows(1_000_000):
        rows.units                  # (rows,) code of the unit, -1 without an id; None without unit=
        rows.cells                  # (rows,) cell, node * n_windows + window, or NO_PLACE, TOO_FAR, NO_TIME, OUTSIDE_WINDOWS, OUTSIDE_ZONES
        rows.numbers, rows.part     # which line (the header is 1) or row (from 0) of which table or file (from 1; 0 if there is one)
        rows.of_text                # whether numbers are lines
        rows.dropped                # lines that cannot be split into fields: they are no rows
        rows.columns                # the fields themselves, by the name of their column
    len(reader.codes)               # units so far; rows without an id that are in no cell have the reason for that in `cells`

All of it is private. A row counts if its unit (where there is one) and its cell are not negative; then `bounding.Tally` cuts each
unit down to its bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hushgraph._errors import InputError, InputTypeError, Sentence, argument
from hushgraph._validation import checked_number, choose
from hushgraph.graphs import Graph, as_graph
from hushgraph.privacy.csv_format import CsvFormat
from hushgraph.privacy.events import Chunk, EventSource, open_events
from hushgraph.privacy.locating import node_finder, place_columns, time_column
from hushgraph.privacy.typed_columns import Column
from hushgraph.privacy.unit_ids import UnitCodes
from hushgraph.privacy.windows import Windows


@dataclass(frozen=True, eq=False)
class Rows:
    """A chunk of rows: their units, their cells and where they stand in the source. See the module's first lines."""

    units: np.ndarray | None
    cells: np.ndarray
    numbers: np.ndarray
    dropped: np.ndarray
    part: int
    of_text: bool
    columns: dict[str, Column]

    def __len__(self) -> int:
        return len(self.cells)


@dataclass(frozen=True, eq=False)
class EventReader:
    """Events to be read by public rules, all of which were checked.

    Attributes
    ----------
    graph : Graph
        The public graph.
    source : EventSource
        The events.
    names : list of str
        The columns that are read.
    codes : UnitCodes or None
        The units so far; None without ids.
    windows, time : Windows or None, str or None
        The time windows, and the column of times.
    places, crs : tuple of str, str or None
        The columns that say where, and what they are measured in; None for node labels.
    max_distance : float or None
        Events further than this from every node do not count.
    find_node : callable
        From a chunk to node numbers.
    """

    graph: Graph
    source: EventSource
    names: list[str]
    codes: UnitCodes | None
    windows: Windows | None
    time: str | None
    places: tuple[str, ...]
    crs: str | None
    max_distance: float | None
    find_node: Callable[[Chunk], np.ndarray]

    @property
    def n_cells(self) -> int:
        """Number of cells: nodes, or pairs of node and window."""
        return self.graph.n * (1 if self.windows is None else len(self.windows))

    @property
    def by_zones(self) -> bool:
        """Whether an event belongs to the zone that contains its place."""
        return self.crs is not None and self.graph.outlines is not None

    @property
    def rules(self) -> dict[str, Any]:
        """The public rules of the reading, for the certificate."""
        if self.crs is None:
            return {"place": "node"}
        if self.by_zones:
            return {"place": "zone that contains it", "far": "drop"}
        far = "keep" if self.max_distance is None else "drop"
        return {"place": "nearest node", "max_distance": self.max_distance, "far": far}

    def rows(self, chunk_rows: int) -> Iterator[Rows]:
        """Yield all rows, at most `chunk_rows` at a time."""
        for chunk in self.source.chunks(self.names, chunk_rows):
            units = None if self.codes is None else self.codes.add(chunk.columns[self.codes.name])
            yield Rows(units, self._cells(chunk), chunk.numbers, chunk.dropped, chunk.part, chunk.of_text, chunk.columns)

    def _cells(self, chunk: Chunk) -> np.ndarray:
        """Return the cell of each row, or the reason why it is in none."""
        node = self.find_node(chunk)
        if self.windows is None or self.time is None:
            return node
        window = self.windows.find(chunk.columns[self.time], self.time)
        return np.where(node < 0, node, np.where(window < 0, window, node * len(self.windows) + window))


def open_rows(
    graph: Graph,
    events: Any,
    *,
    unit: str | None = None,
    unit_column: str | None = None,
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
    csv_format: CsvFormat | None = None,
) -> EventReader:
    """Return a reader of events; parameters as in `count_events`. Only the header or the types of columns are read now."""
    graph = as_graph(graph)
    for name, value in (("unit", unit), ("unit_column", unit_column)):
        if value is not None and not isinstance(value, str):
            expected = "the name of a column of the events, not the column itself"
            raise InputTypeError.about(argument=name, expected=expected, got=type(value).__name__)
    if unit is None and unit_column is not None:
        raise InputError(Sentence("{unit_column=} says where the ids are; {unit=} must say whose they are, 'person', say"))
    ids = unit if unit_column is None else unit_column
    distance = _checked_distance(max_distance, far)
    source = open_events(events, csv_format)
    time = time_column(source.columns) if time is None and windows is not None else time
    slots = _checked_windows(time, windows)
    places, crs = place_columns(graph, source.columns, node=node, lon=lon, lat=lat, x=x, y=y, crs=crs)
    if crs is None and distance is not None and source.columns is not None:
        msg = "{max_distance} needs places; events that name their {node=} have no distance to it, so leave {max_distance} out"
        raise InputError(Sentence(msg))
    if crs is not None and graph.outlines is not None and (distance is not None or far is not None):
        msg = "the nodes are zones: an event belongs to the zone that contains it, and to none outside; leave {} out"
        raise InputError(Sentence(msg, argument("far" if distance is None else "max_distance")))
    return EventReader(
        graph=graph,
        source=source,
        names=list(dict.fromkeys(name for name in (ids, *places, time) if name is not None)),
        codes=None if ids is None else UnitCodes(ids),
        windows=slots,
        time=time,
        places=places,
        crs=crs,
        max_distance=distance,
        find_node=node_finder(graph, places, crs, distance),
    )


def _checked_windows(time: Any, windows: Sequence | None) -> Windows | None:
    if (time is None) != (windows is None):
        edges, column = (
            Sentence("{windows}, the h + 1 increasing edges of h windows"),
            Sentence("{time}, the column of the events' times"),
        )
        raise InputError(Sentence("{time} and {windows} go together; {}, is missing", edges if windows is None else column))
    if time is not None and not isinstance(time, str):
        expected = "the name of a column of the events, not the column itself"
        raise InputTypeError.about(argument="time", expected=expected, got=type(time).__name__)
    return None if windows is None else Windows(windows)


def _checked_distance(max_distance: Any, far: Any) -> float | None:
    choose("far", far, ("drop", "keep", None))
    if max_distance is None and far == "drop":
        msg = "far='drop' needs {max_distance=}, the distance in metres (or units of the plane) beyond which events are dropped"
        raise InputError(Sentence(msg))
    if max_distance is None:
        return None
    if far == "keep":
        msg = "far='keep' counts events at any distance, so {max_distance} would do nothing; leave one of the two out"
        raise InputError(Sentence(msg))
    return checked_number("max_distance", max_distance, "a positive distance (metres, or units of the plane)", above=0)
