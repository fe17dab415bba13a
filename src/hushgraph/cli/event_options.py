"""Options of the commands that read private events: which columns, which bounds, which windows. Nothing that is read is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushgraph._errors import InputError
from hushgraph.cli.terminal import Terminal

if TYPE_CHECKING:
    from hushgraph.graphs import Graph
    from hushgraph.privacy import CountMap, CsvFormat, EventCheck, Ledger

_WHERE, _BOUND, _TEXT = "Where and when events are", "What one person may count for", "How a .csv file of events is written"
_MOST_WINDOWS = 10_000
_CHUNK = 250_000  # rows between two updates of the time left
_STEPS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}

Node = Annotated[str | None, typer.Option(help="Column of node labels, or of zone ids.", rich_help_panel=_WHERE)]
Lon = Annotated[str | None, typer.Option(help="Column of longitudes, in degrees.", rich_help_panel=_WHERE)]
Lat = Annotated[str | None, typer.Option(help="Column of latitudes, in degrees.", rich_help_panel=_WHERE)]
X = Annotated[str | None, typer.Option("--x", help="Column of plane coordinates.", rich_help_panel=_WHERE)]
Y = Annotated[str | None, typer.Option("--y", help="Column of plane coordinates.", rich_help_panel=_WHERE)]
Crs = Annotated[
    str | None, typer.Option(help="What --x and --y are: planar (as the graph), or EPSG:2263, say.", rich_help_panel=_WHERE)
]
MaxDistance = Annotated[
    float | None,
    typer.Option(
        help="Events further than this from every node are left out: metres, or units of the plane. Default: all count. Not for zones.",
        rich_help_panel=_WHERE,
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        help="Who is protected, and the column of ids. Default: the ledger's unit, where there is a ledger.", rich_help_panel=_BOUND
    ),
]
UnitColumn = Annotated[
    str | None, typer.Option(help="The column of ids, if it is not named like the unit.", rich_help_panel=_BOUND)
]
Dataset = Annotated[
    str | None, typer.Option(help="Name of the data: the ledger must be this data set's. Default: any.", rich_help_panel=_BOUND)
]
AssumeBound = Annotated[
    bool,
    typer.Option(
        "--assume-bound",
        help="There are no ids: take it as given that nobody exceeds the bounds. The certificate says so.",
        rich_help_panel=_BOUND,
    ),
]
MaxNodes = Annotated[int | None, typer.Option(help="Nodes one person may count in at most.", rich_help_panel=_BOUND)]
MaxPerNode = Annotated[int | None, typer.Option(help="Times one person may count in each.", rich_help_panel=_BOUND)]


@dataclass(frozen=True, kw_only=True)
class Counting:
    """How events are counted: options of the commands that read them. None where the library's default or the ledger decides."""

    unit: Unit = None
    unit_column: UnitColumn = None
    dataset: Dataset = None
    assume_bound: AssumeBound = False
    max_nodes: MaxNodes = None
    max_per_node: MaxPerNode = None
    max_distance: MaxDistance = None
    node: Node = None
    lon: Lon = None
    lat: Lat = None
    x: X = None
    y: Y = None
    crs: Crs = None
    delimiter: Annotated[
        str | None, typer.Option(help="Character between fields: ';', say. Default: a comma.", rich_help_panel=_TEXT)
    ] = None
    decimal: Annotated[
        str | None, typer.Option(help="Sign before decimals: , or a point. Default: a point.", rich_help_panel=_TEXT)
    ] = None
    time_format: Annotated[
        str | None, typer.Option(help="How times are written: '%d/%m/%Y %H:%M', say. Default: ISO 8601.", rich_help_panel=_TEXT)
    ] = None
    encoding: Annotated[str | None, typer.Option(help="cp1252 or latin-1, say. Default: utf-8.", rich_help_panel=_TEXT)] = None

    def counts(
        self, terminal: Terminal, events: Path, graph: Graph, ledger: Ledger, *, windowed: Windows | None = None
    ) -> CountMap:
        """Count the events; unit and adjacency are the ledger's."""
        from hushgraph.privacy import count_events

        arguments = self._arguments(ledger.unit, windowed)
        with terminal.working("Counting", total=_rows_about(events)) as done:
            return count_events(graph, events, adjacency=ledger.adjacency, dataset=self.dataset, **arguments, progress=done)

    def check(
        self, terminal: Terminal, events: Path, graph: Graph, *, unit: str | None = None, windowed: Windows | None = None
    ) -> EventCheck:
        """Return what counting would make of the events, for the owner's screen; `unit` is the default of --unit."""
        from hushgraph.privacy import check_events

        arguments = self._arguments(self.unit or unit, windowed)
        with terminal.working("Reading", total=_rows_about(events)) as done:
            return check_events(graph, events, **arguments, progress=done)

    def columns(self, events: Path, *, windowed: Windows) -> str:
        """Return which columns the events have, if a named one is not there or the place was not named; for the owner's screen."""
        from hushgraph.privacy import columns_for_owner

        ids = self.unit if self.unit_column is None else self.unit_column
        places = [name for name in (self.node, self.lon, self.lat, self.x, self.y) if name is not None]
        others = [name for name in (windowed.time, ids) if name is not None]
        return columns_for_owner(events, self._csv_format(), [*(places or ["node"]), *others])

    def _arguments(self, unit: str | None, windowed: Windows | None) -> dict[str, Any]:
        """Return the arguments that `count_events` and `check_events` share."""
        time_options = Windows() if windowed is None else windowed
        if self.assume_bound and self.unit_column is not None:
            msg = "--assume-bound is for events without ids, and --unit-column names ids; leave one of the two out"
            raise InputError(msg)
        return {
            "unit": None if self.assume_bound else unit,
            **{name: getattr(self, name) for name in ("unit_column", "max_nodes", "max_per_node", "max_distance")},
            **{name: getattr(self, name) for name in ("node", "lon", "lat", "x", "y", "crs")},
            **{name: getattr(time_options, name) for name in ("max_cells", "max_per_cell", "time")},
            "csv_format": self._csv_format(),
            "windows": None if time_options.windows is None else window_edges(time_options.windows),
            "chunk_rows": _CHUNK,
        }

    def _csv_format(self) -> CsvFormat | None:
        """Return how the file is written; None if no option says so."""
        from hushgraph.privacy import CsvFormat

        given = {name: getattr(self, name) for name in ("delimiter", "decimal", "time_format", "encoding")}
        given = {name: value for name, value in given.items() if value is not None}
        return CsvFormat(**given) if given else None


@dataclass(frozen=True, kw_only=True)
class Windows:
    """How events are counted over time: options of the commands that read them."""

    max_cells: Annotated[
        int | None,
        typer.Option(help="With windows: pairs of node and window one person may count in.", rich_help_panel=_BOUND),
    ] = None
    max_per_cell: Annotated[
        int | None, typer.Option(help="With windows: times one person may count in each.", rich_help_panel=_BOUND)
    ] = None
    time: Annotated[str | None, typer.Option(help="Column of times; with --windows.", rich_help_panel=_WHERE)] = None
    windows: Annotated[
        str | None,
        typer.Option(
            help="Edges: 'a,b,c', or 'start/end/step' as in 2026-03-02T00:00/2026-03-03T00:00/1h.", rich_help_panel=_WHERE
        ),
    ] = None


def window_edges(text: str) -> list[Any]:
    """Return edges of windows from 'edge,edge,...' or 'start/end/step'; numbers, or ISO 8601 times with steps like 1h, 30min or 1d.

    Examples
    --------
    >>> window_edges("0/24/6")
    [0, 6, 12, 18, 24]
    >>> window_edges("2026-03-02T06:00/2026-03-02T08:00/1h")
    ['2026-03-02T06:00:00', '2026-03-02T07:00:00', '2026-03-02T08:00:00']
    """
    parts = [part.strip() for part in text.split("/")]
    if len(parts) == 1:
        edges = [part.strip() for part in text.split(",")]
        numbers = [_number(edge) for edge in edges]
        return edges if any(number is None for number in numbers) else numbers
    fault = "windows are 'edge,edge,...' or 'start/end/step', '2026-03-02T00:00/2026-03-03T00:00/1h' or '0/24/6', say"
    if len(parts) != 3:
        raise InputError(fault)
    start, end, step = parts
    first, last, width = (
        (_number(start), _number(end), _number(step)) if _number(start) is not None else (_time(start), _time(end), _step(step))
    )
    if first is None or last is None or width is None:
        raise InputError(fault)
    return _evenly(first, last, width)


def _evenly(first: Any, last: Any, width: Any) -> list[Any]:
    """Return edges from the first to the last, `width` apart."""
    count = _whole_steps(first, last, width)
    edges = [first + k * width for k in range(count + 1)]
    return [edge.isoformat() if isinstance(edge, datetime) else edge for edge in edges]


def _whole_steps(first: Any, last: Any, width: Any) -> int:
    """Return how many steps lead from the first edge to the last."""
    try:
        count = (last - first) / width
    except (TypeError, ZeroDivisionError, OverflowError):  # one time with a time zone and one without, a step of 0
        count = 0
    if not 1 <= count <= _MOST_WINDOWS or abs(count - round(count)) > 1e-9:
        msg = f"windows 'start/end/step' must make a whole number of windows, from 1 to {_MOST_WINDOWS:,}, of one kind of edges"
        raise InputError(msg)
    return round(count)


def _number(text: str) -> int | float | None:
    for form in (int, float):
        try:
            return form(text)
        except ValueError:
            pass
    return None


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _step(text: str) -> timedelta | None:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(s|min|h|d)", text)
    return None if match is None else timedelta(seconds=float(match[1]) * _STEPS[match[2]])


def _rows_about(events: Path) -> float | None:
    """Return about how many rows there are, for the time left; None where only reading would tell. Never shown."""
    name = events.name.lower()
    try:
        if name.endswith(".parquet"):
            from pyarrow import parquet

            return parquet.read_metadata(events).num_rows or None
        if name.endswith(".csv"):
            with events.open("rb") as file:
                start = file.read(1 << 20)
            return events.stat().st_size / len(start) * start.count(b"\n") or None
    except Exception:
        return None
    return None
