"""Zones as a graph: polygons are nodes, and zones with a common border are neighbors.

Borders are compared side by side. The common border of two zones is what of the sides of one lies within a tolerance t of sides of the
other, measured along the sides; t is `tolerance` times the size, the square root of the area, of the smaller zone. Zones are neighbors if
their common border is longer than 3 t: zones that meet in a corner share less, unless the corner is sharper than about 20 degrees.
Lengths and areas of zones in longitude and latitude are those of the local plane.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hushgraph._errors import InputError, InputTypeError, Sentence
from hushgraph._geodesy import LocalPlane
from hushgraph._validation import LARGEST, checked_number, choose, shown
from hushgraph.graphs.construction import label_array
from hushgraph.graphs.edge_table import EdgeTable, Origin, is_integer
from hushgraph.graphs.labels import is_missing
from hushgraph.graphs.outlines import Outlines, crossings, open_ring, signed_area, whole_ring
from hushgraph.graphs.place_names import NodeNames
from hushgraph.graphs.polygons import Polygons, polygons_of

TOLERANCE = 1e-3  # of the size of the smaller zone
_LEAST_BORDER = 3  # tolerances; a shorter common border is a corner
_RUN = 64  # sides, or corners, that follow each other and are compared with the sides near them at a time


def zones_table(zones: Any, *, label: str | None, crs: str | None, tolerance: float, where: str = "the GeoJSON") -> EdgeTable:
    """Return the edges of zones with their places, labels and outlines; parameters as in `Graph.from_polygons`.

    `where` names a dict of GeoJSON in errors.
    """
    choose("crs", crs, (None, "lonlat", "planar"))
    share = checked_number("tolerance", tolerance, "a share of the size of a zone, above 0 and below 1", above=0, below=1)
    if label is not None and not isinstance(label, str):
        raise InputTypeError.about(argument="label", expected="the name of a column of the zones", got=shown(label))
    if isinstance(zones, str):
        zones = Path(zones)
    found = _merged(polygons_of(zones, label=label, crs=crs, where=where))
    shapes = found.shapes
    if found.crs == "lonlat":
        shapes = [[[whole_ring(ring) for ring in part] for part in parts] for parts in shapes]
    outlines = Outlines.of(shapes)
    plane = LocalPlane.around(outlines.corners) if found.crs == "lonlat" else None
    flat = outlines if plane is None else outlines.in_metres(plane)
    names = found.labels if found.labels is not None else list(range(len(shapes)))
    pairs = neighbors(flat, share, names)
    if plane is not None and np.ptp(flat.corners[:, 0]) > plane.turn / 2:  # around the globe: once more, with the seam elsewhere
        other_side = outlines.in_metres(plane._replace(longitude=plane.longitude + 180))
        pairs = np.unique(np.concatenate([pairs, neighbors(other_side, share, names)]), axis=0)
    if len(names) > 1 and not len(pairs):
        msg = (
            "no two of the {} zones have a common border, so nothing can be learned from neighbors; if there are gaps between them, raise "
            "{tolerance=}, a share of the size of a zone (now {:g})"
        )
        warnings.warn(Sentence(msg, len(names), share), UserWarning, stacklevel=4)
    places = inner_places(flat)
    if plane is not None:
        lon, lat = plane.degrees(places).T
        places = np.stack([(lon + 180) % 360 - 180, lat], axis=1)
    labels = None if found.labels is None else _labels(found.labels)
    return EdgeTable(pairs, len(names), None, places, found.crs, labels, outlines=outlines, origin=Origin(found.columns, found.label_column),
                     names=None if found.names is None else NodeNames.of_zones(found.names))  # fmt: skip


def _merged(found: Polygons) -> Polygons:
    """Return the zones with rows of one label as one zone, at the place of the first; every ring is checked."""
    names = found.labels if found.labels is not None else list(range(len(found.shapes)))
    if not names:
        raise InputError.about(argument="zones", verb="hold", expected="at least one polygon", got="none")
    zones: dict[Any, list[list[np.ndarray]]] = {}
    for name, parts in zip(names, found.shapes, strict=True):
        if is_missing(name):
            msg = "the column of labels has no value for some of the zones; fill it in, or name another column"
            raise InputError(msg)
        if not isinstance(name, Hashable):
            raise InputError.about(argument="label", verb="name", expected="a column of text or numbers", got=shown(name))
        if not parts:
            msg = f"zone {shown(name)} has an empty geometry; give it a polygon, or leave the zone out"
            raise InputError(msg)
        for ring in (ring for part in parts for ring in part):
            _check_ring(name, ring, found.crs)
        for outer, *holes in parts:
            _check_holes(name, outer, holes, found.crs)
        zones.setdefault(name, []).extend(parts)
    texts = None
    if found.names is not None:
        first = dict(reversed(list(zip(names, found.names, strict=True))))  # a zone of several rows has the name of the first
        texts = [first[name] for name in zones]
    return found._replace(shapes=list(zones.values()), labels=None if found.labels is None else list(zones), names=texts)


def _check_ring(name: Any, ring: np.ndarray, crs: str | None) -> None:
    """Refuse a ring that encloses nothing, or that is not where its crs says."""
    if ring.ndim != 2 or ring.shape[1] != 2 or not (np.abs(ring) <= LARGEST).all():
        msg = f"zone {shown(name)} has a corner that is no pair of finite numbers up to {LARGEST:g}; mend the polygon"
        raise InputError(msg)
    if crs == "lonlat" and (np.abs(ring[:, 0]).max() > 360 or np.abs(ring[:, 1]).max() > 90):
        msg = (
            f"zone {shown(name)} has corners that are no longitude and latitude in degrees; say crs='planar' (--graph-crs planar) if the "
            "zones are in a plane, or give them the right crs"
        )
        raise InputError(msg)
    corners = open_ring(ring)
    size = np.ptp(corners, axis=0).max(initial=0.0)
    if len(corners) < 3 or abs(signed_area(corners)) <= 1e-12 * size**2:
        msg = f"zone {shown(name)} has a ring without area: a line, a point, or a figure of eight; mend the polygon"
        raise InputError(msg)


def _check_holes(name: Any, outer: np.ndarray, given: list[np.ndarray], crs: str | None) -> None:
    """Refuse holes with a corner out of the ring around them, and holes that leave nothing of it."""
    if not given:
        return
    corners, holes = open_ring(outer), [open_ring(hole) for hole in given]
    if crs == "lonlat":  # rings may cross the 180th meridian
        corners, holes = whole_ring(corners), [whole_ring(hole) for hole in holes]
        holes = [hole + [360 * np.round((corners[:, 0].mean() - hole[:, 0].mean()) / 360), 0] for hole in holes]
    ring = _Part(0, corners, np.roll(corners, -1, axis=0), corners.min(axis=0), corners.max(axis=0))
    near = TOLERANCE * np.ptp(corners, axis=0).max()
    for hole in holes:
        for start in range(0, len(hole), _RUN):
            some = hole[start : start + _RUN]
            if _are_far(some[~_are_in(some, ring)], ring, near).any():
                msg = f"zone {shown(name)} has a hole that reaches out of the ring around it; mend the polygon"
                raise InputError(msg)
    if sum(abs(signed_area(hole)) for hole in holes) >= abs(signed_area(corners)):
        msg = f"zone {shown(name)} has holes that leave nothing of it; mend the polygon"
        raise InputError(msg)


def _labels(names: list[Any]) -> np.ndarray:
    """Return names of zones as labels: whole numbers as integers, also if they are text or floats."""
    if all(map(_is_text_of_integer, names)) or all(map(_is_whole_float, names)):
        names = [int(name) for name in names]
    elif len({isinstance(name, str) for name in names}) > 1:
        names = [str(name) for name in names]
    return label_array(names)


def _is_text_of_integer(name: Any) -> bool:
    return isinstance(name, str) and is_integer(name)


def _is_whole_float(name: Any) -> bool:
    return isinstance(name, float | np.floating) and float(name).is_integer()


# ---- borders ---------------------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A polygon of a zone, in the plane: its sides, one after the other, and the box around it."""

    zone: int
    begins: np.ndarray
    ends: np.ndarray
    low: np.ndarray
    high: np.ndarray


def neighbors(flat: Outlines, tolerance: float, names: list[Any]) -> np.ndarray:
    """Return the pairs (m, 2) of zones with a common border; zones that overlap by more than the tolerance are an error.

    Examples
    --------
    >>> square = np.array([[0, 0], [2, 0], [2, 2], [0, 2]])
    >>> zones = [[[square]], [[square + [2, 1]]], [[square + [4, 3]]]]
    >>> neighbors(Outlines.of(zones), 1e-3, ["a", "b", "c"]).tolist()
    [[0, 1]]
    """
    sizes, parts = np.sqrt(flat.areas()), _parts(flat)
    inner = _part_places(parts)
    lengths: dict[tuple[int, int], float] = {}
    for a, b in _close_boxes(parts, tolerance * sizes):
        first, second = parts[a], parts[b]
        near = tolerance * min(sizes[first.zone], sizes[second.zone])
        if _reaches_into(first, inner[a], second, near) or _reaches_into(second, inner[b], first, near):
            pair = " and ".join(shown(names[part.zone]) for part in (first, second))
            what = f"two polygons of zone {shown(names[first.zone])}" if first.zone == second.zone else f"zones {pair}"
            msg = "{} overlap, and a place may be in one zone only; cut one of them, or raise {tolerance=} if it is a sliver (now {:g})"
            raise InputError(Sentence(msg, what, tolerance))
        if first.zone != second.zone:
            key = min(first.zone, second.zone), max(first.zone, second.zone)
            lengths[key] = lengths.get(key, 0.0) + _common_length(first, second, near)
    least = {pair: _LEAST_BORDER * tolerance * min(sizes[list(pair)]) for pair in lengths}
    return np.array(sorted(pair for pair, length in lengths.items() if length > least[pair]), dtype=np.int64).reshape(-1, 2)


def _parts(flat: Outlines) -> list[_Part]:
    begins, ends, ring = flat.sides()
    part_of_ring = flat.parts()
    firsts = flat.starts[np.flatnonzero(np.diff(part_of_ring, prepend=-1))]
    parts = []
    for first, last in zip(firsts, [*firsts[1:], len(begins)], strict=True):
        some = begins[first:last]
        parts.append(_Part(int(flat.nodes[ring[first]]), some, ends[first:last], some.min(axis=0), some.max(axis=0)))
    return parts


def _close_boxes(parts: list[_Part], margins: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield the pairs of parts whose boxes, with a margin, meet."""
    margin = margins[[part.zone for part in parts]][:, None]
    low = np.array([part.low for part in parts]) - margin
    high = np.array([part.high for part in parts]) + margin
    order = np.argsort(low[:, 0], kind="stable")
    low, high = low[order], high[order]
    last = np.searchsorted(low[:, 0], high[:, 0], side="right")
    for k in range(len(parts)):
        others = np.arange(k + 1, last[k])
        for other in others[(low[others, 1] <= high[k, 1]) & (high[others, 1] >= low[k, 1])].tolist():
            yield int(order[k]), int(order[other])


def _near_box(part: _Part, low: np.ndarray, high: np.ndarray, margin: float) -> np.ndarray:
    """Return which sides of a part may be within a margin of the box from `low` to `high`."""
    lowest, highest = np.minimum(part.begins, part.ends), np.maximum(part.begins, part.ends)
    return np.flatnonzero(((highest >= low - margin) & (lowest <= high + margin)).all(axis=1))


def _close_sides(part: _Part, other: _Part, near: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield runs of sides of a part that may be close to another part, each with the sides of the other part that may be close to the run."""
    rows = _near_box(part, other.low, other.high, near)
    for start in range(0, len(rows), _RUN):
        some = rows[start : start + _RUN]
        ends = np.concatenate([part.begins[some], part.ends[some]])
        yield some, _near_box(other, ends.min(axis=0), ends.max(axis=0), near)


def _common_length(first: _Part, second: _Part, near: float) -> float:
    """Return the length of the sides of one part that lie within `near` of sides of the other, along which they run."""
    return sum(
        float(_overlaps(first.begins[some], first.ends[some], second.begins[others], second.ends[others], near).sum())
        for some, others in _close_sides(first, second, near)
    )


def _overlaps(begins: np.ndarray, ends: np.ndarray, others: np.ndarray, other_ends: np.ndarray, near: float) -> np.ndarray:
    """Return the lengths, shape (sides, other sides), of the shadow of each other side on each side, where it is within `near`.

    A point of the other side is others + t (other_ends - others); s is its place along the side and d its distance from the line of the
    side. Both are linear in t, so 0 <= s <= length and -near <= d <= near hold on an interval of t.
    """
    length = np.linalg.norm(ends - begins, axis=1)[:, None]
    along = (ends - begins) / np.maximum(length, np.finfo(float).tiny)
    s0, s1 = (((q[None] - begins[:, None]) * along[:, None]).sum(axis=2) for q in (others, other_ends))
    across = np.stack([-along[:, 1], along[:, 0]], axis=1)
    d0, d1 = (((q[None] - begins[:, None]) * across[:, None]).sum(axis=2) for q in (others, other_ends))
    low, high = np.zeros_like(s0), np.ones_like(s0)
    for f0, f1, least, most in ((s0, s1, 0.0, length), (d0, d1, -near, near)):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            one, two = (least - f0) / (f1 - f0), (most - f0) / (f1 - f0)  # 0 / 0: on the limit for all t
        low = np.fmax(low, np.fmin(one, two))
        high = np.fmin(high, np.fmax(one, two))
    return np.maximum(high - low, 0.0) * np.abs(s1 - s0)


def _reaches_into(part: _Part, inner: np.ndarray, other: _Part, near: float) -> bool:
    """Return whether a place of a part is in another part, further than `near` from its border.

    The places are the inner place of the part, its corners, the middles of its sides, and the middles of the pieces into which the border of the
    other part cuts them: two bars that form a cross have no corner in each other.
    """
    places = np.concatenate([inner[None], part.begins, (part.begins + part.ends) / 2, *_middles_of_pieces(part, other, near)])
    places = places[((places > other.low + near) & (places < other.high - near)).all(axis=1)]
    runs = (places[start : start + _RUN] for start in range(0, len(places), _RUN))
    return any(_are_far(some[_are_in(some, other)], other, near).any() for some in runs)


def _middles_of_pieces(part: _Part, other: _Part, near: float) -> Iterator[np.ndarray]:
    """Yield the middles of the pieces of each side of a part that the sides of another part cut."""
    for some, others in _close_sides(part, other, near):
        begins, along = other.begins[others], other.ends[others] - other.begins[others]
        sides, offset = part.ends[some] - part.begins[some], begins[None] - part.begins[some][:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            scale = _cross(sides[:, None], along[None])  # 0 for parallel sides, which do not cut each other
            t, s = _cross(offset, along[None]) / scale, _cross(offset, sides[:, None]) / scale
            is_cut = (t > 0) & (t < 1) & (s >= 0) & (s <= 1)
        for k in np.flatnonzero(is_cut.any(axis=1)).tolist():
            ends = np.concatenate([[0.0], np.sort(t[k, is_cut[k]]), [1.0]])
            yield part.begins[some[k]] + ((ends[:-1] + ends[1:]) / 2)[:, None] * sides[k]


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _are_in(places: np.ndarray, part: _Part) -> np.ndarray:
    some = np.flatnonzero(
        (np.maximum(part.begins[:, 1], part.ends[:, 1]) >= places[:, 1].min(initial=np.inf))
        & (np.minimum(part.begins[:, 1], part.ends[:, 1]) <= places[:, 1].max(initial=-np.inf))
    )  # no other side crosses the ray from a place to the right
    begins, ends = part.begins[some], part.ends[some]
    rising = (begins[:, 1] < ends[:, 1])[:, None]
    return np.logical_xor.reduce(crossings(places, np.where(rising, begins, ends), np.where(rising, ends, begins)), axis=1)


def _are_far(places: np.ndarray, part: _Part, near: float) -> np.ndarray:
    """Return which places are further than `near` from the border of a part."""
    if not len(places):
        return np.zeros(0, dtype=bool)
    some = _near_box(part, places.min(axis=0), places.max(axis=0), near)
    along = part.ends[some] - part.begins[some]
    squares = np.maximum((along**2).sum(axis=1), np.finfo(float).tiny)
    offset = places[:, None] - part.begins[some]
    t = np.clip((offset * along).sum(axis=2) / squares, 0.0, 1.0)
    return ((offset - t[:, :, None] * along) ** 2).sum(axis=2).min(axis=1, initial=np.inf) > near**2


# ---- places of zones -------------------------------------------------------------------------------------------------


def inner_places(flat: Outlines) -> np.ndarray:
    """Return a place (n, 2) in each zone: the center of its largest part, or, if that is outside, a place in the middle of that part."""
    parts = _parts(flat)
    zones = np.array([part.zone for part in parts])
    areas = np.bincount(flat.parts(), weights=flat.ring_areas())
    order = np.lexsort([-areas, zones])  # the largest part of each zone first
    return _part_places(parts)[order[np.unique(zones[order], return_index=True)[1]]]


def _part_places(parts: list[_Part]) -> np.ndarray:
    """Return a place (n_parts, 2) inside each part."""
    return np.array([_place_in(part) for part in parts]).reshape(-1, 2)


def _place_in(part: _Part) -> np.ndarray:
    """Return the center of a part; if it is not inside, the middle of the longest level line inside the part at half its height."""
    origin = part.begins[0]  # far from 0 the products would lose digits
    begins, ends = part.begins - origin, part.ends - origin
    cross = begins[:, 0] * ends[:, 1] - begins[:, 1] * ends[:, 0]
    center = origin + ((begins + ends) * cross[:, None]).sum(axis=0) / (3 * cross.sum())
    if _are_in(center[None], part)[0]:
        return center
    levels = np.unique(part.begins[:, 1])
    middle = (levels[(len(levels) - 1) // 2] + levels[(len(levels) - 1) // 2 + 1]) / 2  # between two corners, never through one
    rising = part.begins[:, 1] < part.ends[:, 1]
    low, high = np.where(rising[:, None], part.begins, part.ends), np.where(rising[:, None], part.ends, part.begins)
    crosses = (low[:, 1] <= middle) & (middle < high[:, 1])
    low, high = low[crosses], high[crosses]
    x = np.sort(low[:, 0] + (middle - low[:, 1]) / (high[:, 1] - low[:, 1]) * (high[:, 0] - low[:, 0])).reshape(-1, 2)
    return np.array([x[np.argmax(x[:, 1] - x[:, 0])].mean(), middle])
