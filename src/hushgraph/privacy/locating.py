"""Which node an event belongs to: a public rule, applied to each row by itself; or the reason why none."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from hushgraph._errors import InputError, InputTypeError, Sentence
from hushgraph._geodesy import LocalPlane
from hushgraph._validation import columns_in_words, shown
from hushgraph.core import Names, _loops
from hushgraph.graphs import Graph, ZoneFinder, nearest_turn
from hushgraph.privacy.events import Chunk, delimiter_hint, needed
from hushgraph.privacy.text_lines import Texts
from hushgraph.privacy.typed_columns import Objects, Reals, encoded, numbers, type_of

NO_PLACE, TOO_FAR, NO_TIME, OUTSIDE_WINDOWS, OUTSIDE_ZONES = -1, -2, -3, -4, -5  # why a row is in no cell

_USUAL_NAMES = (("node",), ("lon", "lat"), ("longitude", "latitude"), ("x", "y"))
# Looked for where none of the above is there. The last ones, and PULocationID, are those of New York's taxi commission (TLC).
_ZONE_NAMES = (("zone",), ("zone_id",), ("PULocationID",))  # only where nodes are zones
_OTHER_NAMES = (("pickup_longitude", "pickup_latitude"), ("Pickup_longitude", "Pickup_latitude"), ("Start_Lon", "Start_Lat"))
_TIMES = ("time", "tpep_pickup_datetime", "lpep_pickup_datetime", "pickup_datetime", "Trip_Pickup_DateTime")


# ---- which columns say where ----------------------------------------------------------------------------------------


def place_columns(
    graph: Graph,
    columns: list | None,
    *,
    node: str | None = None,
    lon: str | None = None,
    lat: str | None = None,
    x: str | None = None,
    y: str | None = None,
    crs: str | None = None,
) -> tuple[tuple[str, ...], str | None]:
    """Return (names, crs) of the columns that say where events are; names are (node,), with crs None, or a pair of coordinates.

    Columns with their usual names are taken if none are given.
    """
    given = {name: value for name, value in {"node": node, "lon": lon, "lat": lat, "x": x, "y": y}.items() if value is not None}
    for name, value in given.items():
        if not isinstance(value, str):
            expected = "the name of a column of the events, not the column itself"
            raise InputTypeError.about(argument=name, expected=expected, got=type(value).__name__)
    if given and set(given) not in ({"node"}, {"lon", "lat"}, {"x", "y"}):
        msg = "say where events are in one way: {node=}, or {lon=} and {lat=}, or {x=} and {y=} with {crs=}; got {}"
        raise InputError(Sentence(msg, ", ".join(given)))
    if crs is not None and given and "x" not in given:
        msg = "{crs} goes with {x=} and {y=} only; {node=} needs none, and {lon=} and {lat=} are degrees (WGS 84)"
        raise InputError(Sentence(msg))
    if given:
        names, kind = tuple(given.values()), next(iter(given))
    else:
        names = _usual_columns(graph, columns, crs)
        kind = "node" if len(names) == 1 else "x" if names == ("x", "y") else "lon"
    if kind == "x" and crs is None and given:
        msg = (
            "{x=} and {y=} need {crs=}: 'planar' if they are in the plane of graph.coords, or what they are measured in, "
            "'EPSG:2263', say, which needs a graph with {crs='lonlat'}"
        )
        raise InputError(Sentence(msg))
    if kind == "node" and columns is not None:
        _check_zone_ids(graph)
    measured_in = {"node": None, "lon": "lonlat", "x": crs or "planar"}[kind]
    _check_coordinates(graph, measured_in)
    return names, measured_in


def _usual_columns(graph: Graph, columns: list | None, crs: str | None) -> tuple[str, ...]:
    """Return the columns with usual names; exactly one set of them must fit the graph."""
    if columns is None:  # no chunk at all: nothing to find, nothing to count
        return ("node",)
    named = [names for names in _USUAL_NAMES if all(name in columns for name in names)]
    other_names = _OTHER_NAMES if graph.outlines is None else (*_ZONE_NAMES, *_OTHER_NAMES)
    named = named or [names for names in other_names if all(name in columns for name in names)]
    fits = [names for names in named if (names == ("x", "y") if crs is not None else names != ("x", "y") or graph.crs is None)]
    if len(fits) == 1:
        return fits[0]
    if not fits and ("x", "y") in named and crs is None:
        msg = "x and y need {crs=}'EPSG:...', which says what they are measured in, since the graph is in degrees"
        raise InputError(Sentence(msg))
    fault = f"in more than one way ({' and '.join('+'.join(names) for names in fits)})" if fits else "under no usual name"
    msg = (
        "the {} columns of the events say where the events are {}; name them: {node='...'}, or {lon='...'} and {lat='...'} (degrees), or "
        "{x='...'}, {y='...'} and {crs='planar'} or 'EPSG:...'{}"
    )
    raise InputError(Sentence(msg, len(columns), fault, delimiter_hint(columns)))


def time_column(columns: list | None) -> str | None:
    """Return the column with a usual name of times; None unless there is exactly one."""
    found = [name for name in _TIMES if name in (columns or ())]
    return found[0] if len(found) == 1 else None


def _check_zone_ids(graph: Graph) -> None:
    """Refuse to count by id on zones without ids: the numbers of their rows are no ids, and would shift the map."""
    if graph.outlines is None or graph.labels is not None:
        return
    columns = [] if graph.origin is None else list(graph.origin.columns)
    known = f"; their table has {columns_in_words(columns).removeprefix('it has ')}" if columns else ""
    msg = "the zones have no ids, so events cannot name them; name the column of the ids where the zones are read: label='...' (--zone-label)"
    raise InputError(msg + known)


def _check_coordinates(graph: Graph, crs: str | None) -> None:
    """Refuse a graph whose coordinates cannot be compared with those of the events."""
    if crs is None:
        return
    if graph.coords is None:
        msg = "events can only be matched by place if nodes have places; build the graph with coords=, or give the events {node=}"
        raise InputError(Sentence(msg))
    if graph.coords.shape[1] != 2:
        msg = "events have two coordinates, but graph.coords has shape {}; give the events {node=} instead"
        raise InputError(Sentence(msg, graph.coords.shape))
    if crs == "planar" and graph.crs == "lonlat":
        msg = "the events are planar, but the graph has {crs='lonlat'}; say what x and y are measured in: {crs=}'EPSG:...'"
        raise InputError(Sentence(msg))
    if crs != "planar" and graph.crs != "lonlat":
        msg = (
            "the events are on the globe, but the graph's coordinates are planar; build the graph with {crs='lonlat'} if they are longitude and "
            "latitude, or project the events to the graph's plane and pass {x=}, {y=} and {crs='planar'}"
        )
        raise InputError(Sentence(msg))


# ---- nodes ----------------------------------------------------------------------------------------------------------


def node_finder(graph: Graph, names: tuple, crs: str | None, max_distance: float | None) -> Callable[[Chunk], np.ndarray]:
    """Return a function from chunks to node numbers: of the nearest nodes, or of the zones that contain the places, if nodes are zones.

    NO_PLACE for rows without a known place, TOO_FAR beyond `max_distance`, OUTSIDE_ZONES in no zone.
    """
    if crs is None:
        return _by_label(graph, names[0])
    if graph.outlines is not None:
        return _by_places(names, crs, _zone_of_places(graph))
    to_plane = _plane_of(graph)
    assert graph.coords is not None
    home, shifts = to_plane(graph.coords[:, 0], graph.coords[:, 1]), [0.0]
    if graph.crs == "lonlat" and graph.n and np.ptp(home[:, 0]) * 4 > (turn := LocalPlane.around(graph.coords).turn):
        shifts = [0.0, -turn, turn]  # nodes a quarter of the globe apart: the near way may lead across the other side
    find_nearest = _nearest(np.concatenate([home + [shift, 0.0] for shift in shifts]))

    def nodes_of(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        distance, nearest = find_nearest(to_plane(first, second))
        nearest = np.where(np.isfinite(distance), nearest % graph.n, NO_PLACE)
        return nearest if max_distance is None else np.where(distance <= max_distance, nearest, TOO_FAR)

    return _by_places(names, crs, nodes_of if graph.n else None)


def _by_places(
    names: tuple, crs: str, nodes_of: Callable[[np.ndarray, np.ndarray], np.ndarray] | None
) -> Callable[[Chunk], np.ndarray]:
    """Return a function from chunks to node numbers, by what is known of two coordinates; None if there are no nodes."""
    to_degrees = None if crs in ("planar", "lonlat") else _projection(crs)

    def find(chunk: Chunk) -> np.ndarray:
        first, second = (numbers(chunk.columns[name], name) for name in names)
        if to_degrees is not None:
            first, second = to_degrees(first, second)
        known = np.isfinite(first) & np.isfinite(second)
        if crs != "planar":
            known &= np.abs(second) <= 90
        node = np.full(len(first), NO_PLACE, dtype=np.int64)
        if nodes_of is not None and known.any():
            node[known] = nodes_of(first[known], second[known])
        return node

    return find


def _zone_of_places(graph: Graph) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a function from coordinates to the zones that contain them, OUTSIDE_ZONES where none does."""
    assert graph.outlines is not None
    assert graph.coords is not None
    longitude = LocalPlane.around(graph.coords).longitude if graph.crs == "lonlat" else None
    outlines = graph.outlines if longitude is None else graph.outlines.around(longitude)
    finder, turns = ZoneFinder(outlines), [0.0]
    if longitude is not None and np.abs(outlines.corners[:, 0] - longitude).max(initial=0.0) > 180:
        turns = [0.0, -360.0, 360.0]  # zones around the globe: a place may be in a zone that is drawn across the seam

    def nodes_of(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        x, nodes = first if longitude is None else nearest_turn(first, longitude), np.full(len(first), -1, dtype=np.int64)
        for turn in turns:
            nodes = np.where(nodes < 0, finder.find(np.stack([x + turn, second], axis=1)), nodes)
        return np.where(nodes < 0, OUTSIDE_ZONES, nodes)

    return nodes_of


def _nearest(points: np.ndarray) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return a function from places to (distance to the nearest point, its number); SciPy's tree decides between equally near points."""
    tree = _loops.PointTree(points)
    tie_breaker = cache(lambda: cKDTree(points))

    def find(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        distance, nearest, ties = tree.nearest(places)
        if len(ties):
            nearest[ties] = tie_breaker().query(places[ties], workers=-1)[1]
        return distance, nearest

    return find


def _plane_of(graph: Graph) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a function to the plane that distances are measured in: the graph's, or metres about its mean latitude and middle longitude."""
    if graph.crs != "lonlat" or graph.coords is None:
        return lambda first, second: np.stack([first, second], axis=1)
    return LocalPlane.around(graph.coords).metres


def _projection(crs: str) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return a function from coordinates in `crs` to degrees."""
    pyproj = needed("pyproj")
    try:
        transformer = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    except pyproj.exceptions.ProjError:
        transformer = None
    if transformer is None:
        expected = "'planar' or what pyproj understands, 'EPSG:2263', say"
        raise InputError.about(argument="crs", expected=expected, got=shown(crs))

    def to_degrees(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lon, lat = transformer.transform(np.append(first, np.nan), np.append(second, np.nan))  # pyproj takes one point for a number
        return lon[:-1], lat[:-1]

    return to_degrees


def _by_label(graph: Graph, name: str) -> Callable[[Chunk], np.ndarray]:
    """Return a function from chunks to node numbers by the labels in column `name`."""
    labels = list(range(graph.n)) if graph.labels is None else graph.labels.tolist()
    position = {label: i for i, label in enumerate(labels)}
    by_bytes = {encoded(str(label)): i for i, label in enumerate(labels)}
    by_bytes |= {encoded(label): i for i, label in enumerate(labels) if isinstance(label, str)}
    whole = all(isinstance(label, int) for label in labels)
    text_only = bool(labels) and all(isinstance(label, str) for label in labels)

    def of_bytes(text: bytes) -> int:
        if whole and (match := re.fullmatch(rb"[ \t]*([+-]?[0-9]{1,20})(?:\.0*)?[ \t]*", text)):
            return position.get(int(match[1]), NO_PLACE)  # files write 7, 7.0 and 007
        return by_bytes.get(text, NO_PLACE) if text else NO_PLACE

    def of_object(value: Any) -> int:
        try:
            return of_bytes(encoded(value)) if isinstance(value, str) else position.get(value, NO_PLACE)
        except Exception:  # lists and other objects without a hash are no labels
            return NO_PLACE

    def find(chunk: Chunk) -> np.ndarray:
        column = chunk.columns[name]
        if isinstance(column, Texts):
            names = Names()
            numbers_of_names = names.numbers(column.buffer, column.spans)
            return np.array([of_bytes(text) for text in names.texts()], dtype=np.int64)[numbers_of_names]
        if isinstance(column, Objects):
            return np.array([of_object(value) for value in column.values], dtype=np.int64)
        if not isinstance(column, Reals) or text_only:
            labels_are = "text labels" if text_only else "labels of other types"
            msg = f"the graph has {labels_are}, but column {name!r} holds {type_of(column)}; turn it into text as the labels are written"
            raise InputTypeError(msg)
        values, places = np.unique(column.values, return_inverse=True)
        nodes = np.array([position.get(value, NO_PLACE) for value in values.tolist()], dtype=np.int64)
        return np.where(column.known, nodes[places], NO_PLACE)

    return find
