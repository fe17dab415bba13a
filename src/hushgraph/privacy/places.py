"""Which node and which time window an event belongs to: a public rule, applied to each row by itself. -1 where it has none."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Hashable

import numpy as np
from scipy.spatial import cKDTree

from hushgraph._geodesy import LocalPlane
from hushgraph.checks import as_array, shown
from hushgraph.graph import Graph
from hushgraph.privacy.events import Chunk, needed, numbers
from hushgraph.privacy.units import factorized

_FOUND = (("node",), ("lon", "lat"), ("longitude", "latitude"), ("x", "y"))
_TICKS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}  # nanoseconds of each unit of datetime64
_AWARE = r"[T ]\d\d.*(?:[Zz]|[+-]\d\d(?::?\d\d)?)\s*$"  # an ISO 8601 time that ends in a time zone


# ---- which columns say where ----------------------------------------------------------------------------------------


def place_columns(
    graph: Graph, columns: list | None, *, may_show: bool = True, node=None, lon=None, lat=None, x=None, y=None, crs=None
):
    """(names, crs) of the columns that say where: names is (node,) or a pair; found by their usual names if none are given."""
    given = {name: value for name, value in {"node": node, "lon": lon, "lat": lat, "x": x, "y": y}.items() if value is not None}
    for name, value in given.items():
        if not isinstance(value, str):
            msg = f"{name} must be the name of a column of the events, not the column itself; got {type(value).__name__}"
            raise TypeError(msg)
    if given and set(given) not in ({"node"}, {"lon", "lat"}, {"x", "y"}):
        msg = f"say where events are in one way: node=, or lon= and lat=, or x= and y= with crs=; got {', '.join(given)}"
        raise ValueError(msg)
    if crs is not None and given and "x" not in given:
        msg = "crs goes with x= and y= only; node= needs none, and lon= and lat= are degrees (WGS 84)"
        raise ValueError(msg)
    if given:
        names, kind = tuple(given.values()), next(iter(given))
    else:
        names = _found_columns(graph, columns, crs, may_show)
        kind = "lon" if names[0] == "longitude" else names[0]
    if kind == "x" and crs is None and given:
        msg = (
            "x= and y= need crs=: 'planar' if they are in the plane of graph.coords, or what they are measured in, "
            "'EPSG:2263', say, which needs a graph with crs='lonlat'"
        )
        raise ValueError(msg)
    crs = {"node": None, "lon": "lonlat", "x": crs or "planar"}[kind]
    _check_graph_has(graph, crs)
    return names, crs


def _found_columns(graph: Graph, columns: list | None, crs, may_show: bool) -> tuple:
    if columns is None:  # no chunk at all: nothing to find, nothing to count
        return ("node",)
    named = [names for names in _FOUND if all(name in columns for name in names)]
    fits = [names for names in named if (names == ("x", "y") if crs is not None else names != ("x", "y") or graph.crs is None)]
    if len(fits) == 1:
        return fits[0]
    fault = f"in more than one way ({' and '.join('+'.join(names) for names in fits)})" if fits else "under no usual name"
    listed = f"the columns {columns}" if may_show else f"the {len(columns)} columns that the first line of the file names"
    msg = (
        f"{listed} say where the events are {fault}; name them: node='...', or lon='...' and lat='...' (degrees), "
        "or x='...', y='...' and crs='planar' or 'EPSG:...'"
    )
    raise ValueError(msg)


def _check_graph_has(graph: Graph, crs: str | None) -> None:
    if crs is None:
        return
    if graph.coords is None:
        msg = "events can only be matched by place if nodes have places; build the graph with coords=, or give the events node="
        raise ValueError(msg)
    if graph.coords.shape[1] != 2:
        msg = f"events have two coordinates, but graph.coords has shape {graph.coords.shape}; give the events node= instead"
        raise ValueError(msg)
    if crs == "planar" and graph.crs == "lonlat":
        msg = "the events are planar, but the graph has crs='lonlat'; say what x and y are measured in: crs='EPSG:...'"
        raise ValueError(msg)
    if crs != "planar" and graph.crs != "lonlat":
        msg = (
            "the events are on the globe, but the graph's coordinates are planar; build the graph with crs='lonlat' (longitude and "
            "latitude), or project the events to the graph's plane and pass x=, y= and crs='planar'"
        )
        raise ValueError(msg)


# ---- nodes ----------------------------------------------------------------------------------------------------------


def node_finder(graph: Graph, names: tuple, crs: str | None, max_distance: float | None) -> Callable[[Chunk], np.ndarray]:
    """A function from chunks to node numbers, -1 for rows without a known place or further away than `max_distance`."""
    if crs is None:
        return _by_label(graph, names[0])
    to_plane = _plane_of(graph)
    assert graph.coords is not None
    home, shifts = to_plane(graph.coords[:, 0], graph.coords[:, 1]), [0.0]
    if graph.crs == "lonlat" and graph.n and np.ptp(home[:, 0]) * 4 > (turn := LocalPlane.around(graph.coords).turn):
        shifts = [0.0, -turn, turn]  # nodes a quarter of the globe apart: the near way may lead across the other side
    tree = cKDTree(np.concatenate([home + [shift, 0.0] for shift in shifts]))
    to_degrees = None if crs in ("planar", "lonlat") else _projection(crs)

    def find(chunk: Chunk) -> np.ndarray:
        first, second = (numbers(chunk[name], name) for name in names)
        if to_degrees is not None:
            first, second = to_degrees(first, second)
        known = np.isfinite(first) & np.isfinite(second)
        if crs != "planar":
            known &= np.abs(second) <= 90
        node = np.full(len(first), -1, dtype=np.int64)
        if graph.n and known.any():
            everywhere = bool(known.all())
            points = to_plane(first, second) if everywhere else to_plane(first[known], second[known])
            distance, nearest = tree.query(points, workers=-1)
            nearest = np.where(distance <= (np.finfo(float).max if max_distance is None else max_distance), nearest % graph.n, -1)
            node[... if everywhere else known] = nearest
        return node

    return find


def _plane_of(graph: Graph) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The plane distances are measured in: the graph's own, or metres about its mean latitude and middle longitude."""
    if graph.crs != "lonlat" or graph.coords is None:
        return lambda first, second: np.stack([first, second], axis=1)
    return LocalPlane.around(graph.coords).metres


def _projection(crs: str) -> Callable:
    pyproj = needed("pyproj")
    try:
        transformer = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    except pyproj.exceptions.ProjError:
        transformer = None
    if transformer is None:
        msg = f"crs must be 'planar' or what pyproj understands, 'EPSG:2263', say; got {shown(crs)}"
        raise ValueError(msg)
    return transformer.transform


def _by_label(graph: Graph, name: str) -> Callable[[Chunk], np.ndarray]:
    labels = list(range(graph.n)) if graph.labels is None else graph.labels.tolist()
    position = {label: i for i, label in enumerate(labels)}
    as_text = {str(label): i for i, label in enumerate(labels)}
    whole = all(isinstance(label, int) for label in labels)
    text_only = bool(labels) and all(isinstance(label, str) for label in labels)

    def number_of(value) -> int:
        if not isinstance(value, str):
            return position.get(value, -1)
        if whole and (match := re.fullmatch(r"\s*([+-]?\d{1,20})(?:\.0*)?\s*", value)):
            return position.get(int(match[1]), -1)  # files write 7, 7.0 and 007
        return position.get(value, as_text.get(value, -1))

    def find(chunk: Chunk) -> np.ndarray:
        column = chunk[name]
        if text_only and getattr(column.dtype, "kind", "O") in "iuf":
            msg = f"the graph has text labels, but column {name!r} holds numbers; turn it into text as the labels are written"
            raise TypeError(msg)
        try:
            codes, values = factorized(column)
        except TypeError:  # lists and the like are no labels: such rows are at no known node
            values = [value if isinstance(value, Hashable) else None for value in column.tolist()]
            codes = np.arange(len(values))
        table = np.fromiter((number_of(value) for value in values), dtype=np.int64, count=len(values))
        return np.append(table, -1)[codes]

    return find


# ---- windows --------------------------------------------------------------------------------------------------------


class Windows:
    """Half-open time windows [a, b) from h + 1 increasing edges: numbers, or times with or without a time zone.

    Examples
    --------
    >>> Windows([0, 6, 12, 24]).edges
    (0, 6, 12, 24)
    >>> Windows(["2026-03-02T06:00", "2026-03-02T07:00"]).edges
    ('2026-03-02T06:00:00', '2026-03-02T07:00:00')
    """

    def __init__(self, windows):
        edges = as_array(windows, "windows") if not hasattr(windows, "tz") else windows
        if getattr(edges, "ndim", 0) != 1 or len(edges) < 2:
            msg = f"windows must be h + 1 edges of h windows, at least 2; got {shown(windows)}"
            raise ValueError(msg)
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
            msg = "windows must be increasing finite edges: window k runs from edge k up to, not including, edge k + 1"
            raise ValueError(msg)

    def __len__(self):
        return len(self.edges) - 1

    def _read_times(self, windows) -> None:
        pandas = needed("pandas")
        texts = [_iso_text(edge) for edge in (windows if hasattr(windows, "tz") else list(windows))]
        aware = {bool(re.search(_AWARE, text)) for text in texts}
        times = pandas.to_datetime(pandas.Series(texts), format="ISO8601", errors="coerce", utc=True)
        if times.isna().any() or len(aware) != 1 or times.dt.year.min() < 1678 or times.dt.year.max() > 2261:
            msg = (
                "windows must be numbers, or times between the years 1678 and 2261, all with a time zone or all without: "
                f"datetime64, datetimes or ISO 8601 text; got {shown(windows)}"
            )
            raise ValueError(msg)
        self.kind = "aware" if aware.pop() else "naive"
        ticks = times.dt.tz_localize(None).to_numpy()
        unit = np.datetime_data(ticks.dtype)[0]
        self._ticks = [tick * _TICKS[unit] for tick in ticks.astype(np.int64).tolist()]
        self.edges = tuple(time.isoformat() for time in (times if self.kind == "aware" else times.dt.tz_localize(None)))

    def find(self, column, name: str) -> np.ndarray:
        """The window of each row, -1 for rows outside all of them and rows without a time."""
        return self._numbered(column, name) if self.kind == "number" else self._timed(column, name)

    def _numbered(self, column, name: str) -> np.ndarray:
        if getattr(column.dtype, "kind", "O") in "mM":
            msg = f"windows are numbers, but column {name!r} holds times; give windows as datetimes"
            raise TypeError(msg)
        values = numbers(column, name)
        return _window_of(np.array(self._ticks, dtype=np.float64), values, np.isfinite(values))

    def _timed(self, column, name: str) -> np.ndarray:
        kind = getattr(column.dtype, "kind", "O")
        if kind in "iufbm":
            msg = f"windows are times, but column {name!r} has dtype {column.dtype}; convert it with pandas.to_datetime"
            raise TypeError(msg)
        if kind != "M":
            times, aware = self._read(column, name), self.kind == "aware"
        elif (found := _times(column)) is None:
            msg = f"column {name!r}, of dtype {column.dtype}, cannot be read as times; convert it with pandas.to_datetime"
            raise TypeError(msg)
        else:
            times, aware = found
        if aware != (self.kind == "aware"):
            have, lack = (f"column {name!r}", "windows") if aware else ("windows", f"column {name!r}")
            msg = f"{have} has a time zone and {lack} has none; give both one, or take it off: tz_convert('...').tz_localize(None)"
            raise ValueError(msg.replace("windows has", "windows have"))
        unit = np.datetime_data(times.dtype)[0]
        edges = np.array(
            [-(-tick // _TICKS[unit]) for tick in self._ticks], dtype=np.int64
        )  # t >= a is t >= ceil(a) in whole units
        return _window_of(edges, times.astype(np.int64), ~np.isnat(times))

    def _read(self, column, name: str) -> np.ndarray:
        """Text as ISO 8601, each row by itself: a format guessed from one row would change what the others mean.

        A row with a time zone where windows have none, or without where they have one, is a row without a time.
        """
        pandas = needed("pandas")
        texts = column.fillna("")
        if column.dtype == object:
            texts = pandas.Series([_iso_text(value) for value in column.tolist()], dtype=object)
        times = pandas.to_datetime(texts, format="ISO8601", errors="coerce", utc=True)
        zoned = texts.str.contains(_AWARE, regex=True).to_numpy(dtype=bool)
        values = times.dt.tz_localize(None).to_numpy(copy=True)
        values[zoned != (self.kind == "aware")] = np.datetime64("NaT")
        return values


def _iso_text(value):
    if isinstance(value, datetime.date):  # datetimes and pandas Timestamps too
        return value.isoformat() if value == value else ""
    if isinstance(value, np.datetime64):
        return str(value)
    return value if isinstance(value, str) else ""


def _times(column) -> tuple[np.ndarray, bool] | None:
    """A column of times as datetime64 of seconds or finer, in UTC if it has a time zone; and whether it has. None: not times."""
    try:
        if not isinstance(column.dtype, np.dtype) and not hasattr(column.dtype, "tz"):
            column = needed("pyarrow").array(column).to_pandas()  # an Arrow type of pandas
        aware = getattr(column.dtype, "tz", None) is not None
        times = (column.dt.tz_convert("UTC").dt.tz_localize(None) if aware else column).to_numpy()
    except (TypeError, ValueError, AttributeError, OverflowError):
        return None
    return (times, aware) if times.dtype.kind == "M" and np.datetime_data(times.dtype)[0] in _TICKS else None


def _window_of(edges: np.ndarray, values: np.ndarray, known: np.ndarray) -> np.ndarray:
    window = np.searchsorted(edges, values, side="right") - 1
    return np.where(known & (window >= 0) & (window < len(edges) - 1), window, -1)
