"""Outlines: the polygons of the nodes of a graph of zones, and the zone that contains a place.

A zone is one polygon or several, its parts; a part is rings: an outer one, counterclockwise, and the holes in it, clockwise. A place is in
a zone if a ray from it to the right crosses the sides of the zone an odd number of times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hushgraph._errors import InputError, InputTypeError
from hushgraph._geodesy import METRES_PER_DEGREE, LocalPlane
from hushgraph._validation import checked_real_array, shown

_MOST_BANDS, _BANDS_PER_SIDE = 4096, 4
_MOST_PRODUCTS = 1 << 21  # entries of a matrix of places and sides


class Sides(NamedTuple):
    """The sides of rings: where each begins and ends, and the ring that it is a part of."""

    begins: np.ndarray
    ends: np.ndarray
    rings: np.ndarray


@dataclass(frozen=True, eq=False)
class Outlines:
    """The rings of all zones in one array of corners.

    Parameters
    ----------
    corners : numpy.ndarray
        The corners of all rings, shape (k, 2), in the coordinates of the graph; the first corner of a ring is not repeated at its end.
    starts : numpy.ndarray
        Where each ring begins in `corners`, and k at the end, shape (n_rings + 1,).
    nodes : numpy.ndarray
        The node of each ring, ascending, shape (n_rings,). A counterclockwise ring begins a part; clockwise rings are holes in that part.

    Examples
    --------
    >>> square = np.array([[0, 0], [0, 2], [2, 2], [2, 0]])
    >>> outlines = Outlines.of([[[square]], [[square + [2, 0]]]])
    >>> outlines.n_rings, outlines.areas().tolist()
    (2, [4.0, 4.0])
    """

    corners: np.ndarray
    starts: np.ndarray
    nodes: np.ndarray

    def __post_init__(self) -> None:
        for name, kind in (("corners", np.float64), ("starts", np.int64), ("nodes", np.int64)):
            values = np.array(getattr(self, name), dtype=kind)
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def __reduce__(self) -> tuple[Any, ...]:
        return Outlines, (self.corners, self.starts, self.nodes)

    @classmethod
    def of(cls, zones: Iterable[Sequence[Sequence[np.ndarray]]]) -> Outlines:
        """Return the outlines of zones, each a list of parts, each a list of rings, the outer one first; rings may be open or closed."""
        rings, nodes = [], []
        for node, parts in enumerate(zones):
            for part in parts:
                for k, given in enumerate(part):
                    ring = open_ring(given)
                    is_hole, is_clockwise = k > 0, signed_area(ring) < 0
                    rings.append(ring if is_hole == is_clockwise else ring[::-1])
                    nodes.append(node)
        starts = np.concatenate([[0], np.cumsum([len(ring) for ring in rings])]).astype(np.int64)
        corners = np.concatenate([np.empty((0, 2)), *rings])
        return cls(corners, starts, np.array(nodes, dtype=np.int64))

    @property
    def n_rings(self) -> int:
        """Number of rings."""
        return len(self.nodes)

    @property
    def ring_of_corner(self) -> np.ndarray:
        """The ring of each corner."""
        return np.repeat(np.arange(self.n_rings), np.diff(self.starts))

    def rings(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the node and the corners of each ring."""
        for ring, node in enumerate(self.nodes.tolist()):
            yield node, self.corners[self.starts[ring] : self.starts[ring + 1]]

    def polygons(self) -> list[list[list[list]]]:
        """Return the parts of each zone, each a list of closed rings, the outer one first: the coordinates of a MultiPolygon."""
        zones: list[list[list[list]]] = [[] for _ in range(int(self.nodes.max(initial=-1)) + 1)]
        begins = np.diff(self.parts(), prepend=-1) > 0
        for is_outer, (node, ring) in zip(begins.tolist(), self.rings(), strict=True):
            closed = np.concatenate([ring, ring[:1]]).tolist()
            if is_outer:
                zones[node].append([closed])
            else:
                zones[node][-1].append(closed)
        return zones

    def parts(self) -> np.ndarray:
        """Return the number of the part of each ring: a part begins at every counterclockwise ring, and at every first ring of a zone."""
        begins = self.ring_areas() > 0
        begins[:1] = True
        begins[1:] |= self.nodes[1:] != self.nodes[:-1]
        return np.cumsum(begins) - 1

    def sides(self) -> Sides:
        """Return the sides of all rings; side k begins at corner k."""
        following = np.arange(1, len(self.corners) + 1)
        following[self.starts[1:] - 1] = self.starts[:-1]
        return Sides(self.corners, self.corners[following], self.ring_of_corner)

    def ring_areas(self) -> np.ndarray:
        """Return the areas of the rings, those of holes below 0."""
        return np.array([signed_area(ring) for _, ring in self.rings()])

    def areas(self) -> np.ndarray:
        """Return the area of each zone, without its holes, in squares of the unit of the coordinates."""
        return np.bincount(self.nodes, weights=self.ring_areas())

    def of_nodes(self, numbers: np.ndarray) -> Outlines:
        """Return the outlines of some nodes, in their order."""
        first, last = (np.searchsorted(self.nodes, numbers, side=side) for side in ("left", "right"))
        kept = np.concatenate([np.empty(0, dtype=np.int64), *map(np.arange, first, last)])
        sizes = np.diff(self.starts)[kept]
        corners = [self.corners[self.starts[ring] : self.starts[ring + 1]] for ring in kept.tolist()]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return Outlines(np.concatenate([np.empty((0, 2)), *corners]), starts, np.repeat(np.arange(len(numbers)), last - first))

    def around(self, longitude: float) -> Outlines:
        """Return the outlines with rings moved by whole turns to the side of `longitude`; none is torn."""
        corners = self.corners.copy()
        for ring in range(self.n_rings):
            lon = corners[self.starts[ring] : self.starts[ring + 1], 0]
            lon += 360 * np.round((longitude - lon.mean()) / 360)
        return self.moved_to(corners)

    def in_metres(self, plane: LocalPlane) -> Outlines:
        """Return outlines in longitude and latitude in a local plane; rings are not torn where the plane ends."""
        degrees = self.around(plane.longitude).corners
        scale = METRES_PER_DEGREE * np.array([plane.shrinkage, 1.0])
        return self.moved_to((degrees - [plane.longitude, plane.latitude]) * scale)

    def moved_to(self, corners: np.ndarray) -> Outlines:
        """Return the same rings with other corners."""
        return Outlines(corners, self.starts, self.nodes)


def nearest_turn(lon: np.ndarray, longitude: float) -> np.ndarray:
    """Return longitudes plus or minus whole turns, at most 180 degrees from `longitude`; those that are so already keep their bits."""
    return lon - 360 * np.round((lon - longitude) / 360)


def whole_ring(ring: np.ndarray) -> np.ndarray:
    """Return a ring in degrees with longitudes that do not jump from 180 to -180; a ring around a pole stays as it is."""
    whole = nearest_turn(ring[:, 0], ring[0, 0])
    return np.stack([whole, ring[:, 1]], axis=1) if np.ptp(whole) < 180 else ring


def open_ring(ring: np.ndarray) -> np.ndarray:
    """Return the corners of a ring; the last is left out if it is the first again."""
    return ring[:-1] if len(ring) > 1 and np.array_equal(ring[0], ring[-1]) else ring


def signed_area(ring: np.ndarray) -> float:
    """Return the area of a ring, above 0 if it is counterclockwise.

    Examples
    --------
    >>> signed_area(np.array([[0, 0], [2, 0], [2, 1], [0, 1]])), signed_area(np.array([[0, 0], [0, 1], [2, 1]]))
    (2.0, -1.0)
    """
    x, y = (ring - ring[:1]).T if len(ring) else np.empty((2, 0))
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def checked_outlines(outlines: Any, n: int) -> Outlines | None:
    """Return outlines in which every node has at least one ring, or None."""
    if outlines is None:
        return None
    if not isinstance(outlines, Outlines):
        raise InputTypeError.about(argument="outlines", expected="Outlines, as from_polygons makes them", got=shown(outlines))
    corners, starts, nodes = checked_real_array("outlines", outlines.corners), outlines.starts, outlines.nodes
    whole = (
        corners.ndim == 2
        and corners.shape[1] == 2
        and np.isfinite(corners).all()
        and starts.ndim == nodes.ndim == 1
        and len(starts) == len(nodes) + 1
        and (starts[0], starts[-1]) == (0, len(corners))
        and (np.diff(starts) >= 3).all()
        and (np.diff(nodes) >= 0).all()
        and np.array_equal(np.unique(nodes), np.arange(n))
    )
    if not whole:
        expected = f"finite rings of at least 3 corners, at least one for each of the {n} nodes, in the order of the nodes"
        raise InputError.about(argument="outlines", verb="hold", expected=expected, hint="make the graph with from_polygons")
    return outlines


# ---- which zone contains a place -------------------------------------------------------------------------------------


class ZoneFinder:
    """Finds the zone that contains a place; the answer for a place depends on that place and the zones alone.

    A place on a side that two zones share belongs to exactly one of them. Where zones overlap, the first one in the order of the nodes is
    taken. The sides are sorted into horizontal bands, so that a place is compared only with the sides in its band.

    Parameters
    ----------
    outlines : Outlines
        The zones.

    Examples
    --------
    >>> square = np.array([[0, 0], [2, 0], [2, 2], [0, 2]])
    >>> finder = ZoneFinder(Outlines.of([[[square]], [[square + [2, 0]]]]))
    >>> finder.find(np.array([[1.0, 1.0], [2.0, 1.0], [3.5, 0.1], [9.0, 9.0]])).tolist()
    [0, 1, 1, -1]
    """

    def __init__(self, outlines: Outlines) -> None:
        begins, ends, rings = outlines.sides()
        rising = begins[:, 1] < ends[:, 1]
        low, high = np.where(rising[:, None], begins, ends), np.where(rising[:, None], ends, begins)
        kept = low[:, 1] < high[:, 1]  # a ray to the right crosses no level side
        self._low, self._high, self._node = low[kept], high[kept], outlines.nodes[rings[kept]]
        self._bottom, self._top = (float(low[:, 1].min()), float(high[:, 1].max())) if kept.any() else (0.0, 0.0)
        height = float((self._high - self._low)[:, 1].mean()) if kept.any() else 1.0
        self._n_bands = int(np.clip(_BANDS_PER_SIDE * (self._top - self._bottom) / height, 1, _MOST_BANDS))
        first, last = self._band(self._low[:, 1]), self._band(self._high[:, 1])
        side = np.repeat(np.arange(len(first)), last - first + 1)
        band = np.arange(len(side)) - np.repeat(np.cumsum(last - first + 1) - (last - first + 1), last - first + 1) + first[side]
        order = np.lexsort([self._node[side], band])
        self._sides = side[order]
        self._starts = np.searchsorted(band[order], np.arange(self._n_bands + 1))

    def _band(self, y: np.ndarray) -> np.ndarray:
        """Return the band of each y; it never falls as y rises, so a side is in the bands of all places beside it."""
        height = (self._top - self._bottom) / self._n_bands or 1.0
        return np.clip(np.floor((y - self._bottom) / height), 0, self._n_bands - 1).astype(np.int64)

    def find(self, places: np.ndarray) -> np.ndarray:
        """Return the node of the zone that contains each of (m, 2) finite places, -1 where no zone does."""
        nodes = np.full(len(places), -1, dtype=np.int64)
        rows = np.flatnonzero((places[:, 1] >= self._bottom) & (places[:, 1] < self._top))
        band = self._band(places[rows, 1])
        order = np.argsort(band, kind="stable")
        rows, starts = rows[order], np.searchsorted(band[order], np.arange(self._n_bands + 1))
        for number in np.flatnonzero(np.diff(starts)).tolist():
            sides = self._sides[self._starts[number] : self._starts[number + 1]]
            chunk = max(_MOST_PRODUCTS // max(len(sides), 1), 1)
            for first in range(starts[number], starts[number + 1], chunk):
                some = rows[first : min(first + chunk, starts[number + 1])]
                nodes[some] = self._in_band(places[some], sides)
        return nodes

    def _in_band(self, places: np.ndarray, sides: np.ndarray) -> np.ndarray:
        """Return the zones of places among the sides of one band, which are in the order of their zones."""
        if not len(sides):
            return np.full(len(places), -1, dtype=np.int64)
        zones, firsts = np.unique(self._node[sides], return_index=True)
        odd = np.logical_xor.reduceat(crossings(places, self._low[sides], self._high[sides]), firsts, axis=1)
        return np.where(odd.any(axis=1), zones[odd.argmax(axis=1)], -1)


def crossings(places: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return whether the ray from each place to the right crosses each side, shape (places, sides); `low` and `high` are ends of sides.

    Both zones at a side name its ends in the same order, so their sums are the same and no place falls between them.
    """
    x, y = places[:, 0, None], places[:, 1, None]
    (x0, y0), (x1, y1) = low.T, high.T
    beside = (y >= y0) & (y < y1)
    share = np.divide(y - y0, y1 - y0, out=np.zeros(beside.shape), where=beside)  # elsewhere a level side would divide by 0
    return beside & (x < x0 + share * (x1 - x0))
