"""Outlines beneath the maps: water, parks and borders of districts from GeoJSON, simplified to what a map of the graph can show.

The property "kind" of a feature says what it is, "water", "park" or "district"; without it the tags of OpenStreetMap do, and then the name
of the file. All else is a border.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hushgraph._errors import InputError, InputTypeError, NoFileError
from hushgraph._geodesy import LocalPlane
from hushgraph._validation import LARGEST, shown
from hushgraph.graphs import LONLAT, Graph, crs_of, geojson_of, signed_area

KINDS = ("water", "park", "district")  # their positions are the numbers that map_backdrop.js draws; lines have 3 more
STEPS = 3000  # corners are rounded to this part of the larger side of the map
_MARGIN = 0.25  # of the larger side: what is farther away is left out
_TAGS: dict[str, dict[str, set[str] | None]] = {
    "water": {"natural": {"water", "bay", "coastline", "wetland", "strait"}, "waterway": None, "water": None, "landuse": {"reservoir", "basin"}},
    "park": {
        "leisure": {"park", "garden", "nature_reserve", "golf_course"},
        "landuse": {"forest", "grass", "cemetery", "recreation_ground", "meadow", "village_green"}, "natural": {"wood", "scrub", "grassland"},
    },
}  # fmt: skip


class Shape(NamedTuple):
    """A ring or line of a feature, its position in `KINDS`, and whether it is a ring; rings of holes are clockwise, others are not."""

    corners: np.ndarray
    kind: int
    is_ring: bool


def read_outlines(outlines: Any, graph: Graph) -> list[Shape]:
    """Return the rings and lines of GeoJSON in the plane of the map; features without any are left out.

    Parameters
    ----------
    outlines : str, Path, dict, GeoDataFrame, or a list of these
        Paths of .geojson files (also .gz), their content, or anything with `__geo_interface__`.
    graph : Graph
        The graph of the map. Outlines are in longitude and latitude if its coordinates are, and in the same plane otherwise.
    """
    several = outlines if isinstance(outlines, Sequence) and not isinstance(outlines, str) else [outlines]
    plane = LocalPlane.around(graph.coords) if graph.crs == "lonlat" and graph.coords is not None else None
    shapes: list[Shape] = []
    for one in several:
        content, where = _content(one, is_lonlat=plane is not None)
        try:
            found = list(_shapes(content, where))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            found = None
        if not found or not all((np.abs(shape.corners) <= LARGEST).all() for shape in found):
            msg = f"{where} must be GeoJSON with polygons or lines, whose corners are pairs of numbers; write a FeatureCollection of them"
            raise InputError(msg)
        shapes += found
    if plane is None:
        return shapes
    return [shape._replace(corners=plane.metres(shape.corners[:, 0], shape.corners[:, 1])) for shape in shapes]


def _content(given: Any, *, is_lonlat: bool) -> tuple[Mapping[str, Any], str]:
    """Return GeoJSON and what it is called in errors."""
    if isinstance(given, str | Path):
        path = Path(given)
        if not path.is_file():
            msg = f"the outlines {path} do not exist or are a folder; check the path"
            raise NoFileError(msg)
        content, where = geojson_of(path), str(path)
    else:
        if is_lonlat and getattr(given, "crs", None) is not None and hasattr(given, "to_crs"):
            given = given.to_crs("EPSG:4326")
        content, where = getattr(given, "__geo_interface__", given), "the outlines"
    if not isinstance(content, Mapping):
        expected = "the path of a .geojson file, its content, or a GeoDataFrame"
        raise InputTypeError.about(argument="outlines", expected=expected, got=shown(given))
    stated = crs_of(content)
    if is_lonlat and stated and not stated.endswith(LONLAT):
        msg = f"{where} is in the coordinates {shown(stated)}, and the map in longitude and latitude; convert it to EPSG:4326"
        raise InputError(msg)
    return content, where


def _shapes(content: Mapping[str, Any], where: str) -> Iterator[Shape]:
    features = content["features"] if content["type"] == "FeatureCollection" else [content]
    for feature in features:
        geometry = feature["geometry"] if feature["type"] == "Feature" else feature
        kind = KINDS.index(_kind(feature.get("properties") or {}, where))
        yield from _parts_of(geometry, kind)


def _parts_of(geometry: Mapping[str, Any] | None, kind: int) -> Iterator[Shape]:
    if geometry is None:
        return
    name = geometry["type"]
    if name == "GeometryCollection":
        for part in geometry["geometries"]:
            yield from _parts_of(part, kind)
    elif name in ("Polygon", "MultiPolygon"):
        for part in [geometry["coordinates"]] if name == "Polygon" else geometry["coordinates"]:
            for k, ring in enumerate(part):
                corners = _corners(ring)
                yield Shape(corners if (signed_area(corners) < 0) == (k > 0) else corners[::-1], kind, True)
    elif name in ("LineString", "MultiLineString"):
        for line in [geometry["coordinates"]] if name == "LineString" else geometry["coordinates"]:
            yield Shape(_corners(line), kind, False)


def _corners(given: Any) -> np.ndarray:
    return np.array([corner[:2] for corner in given], dtype=np.float64).reshape(-1, 2)


def _kind(properties: Mapping[str, Any], where: str) -> str:
    """Return what a feature is."""
    if properties.get("kind") in KINDS:
        return str(properties["kind"])
    for kind, tags in _TAGS.items():
        for tag, values in tags.items():
            value = properties.get(tag)
            if isinstance(value, str) and value and (values is None or value in values):
                return kind
    name = Path(where).name.lower()
    return next((kind for kind in KINDS if kind in name), "district")


def simplified(shapes: list[Shape], low: np.ndarray, high: np.ndarray) -> tuple[list[Shape], float]:
    """Return the shapes near the box from `low` to `high`, as integers from `low` in steps, and the step.

    Corners are rounded to the steps; repeated ones and those in the middle of a straight line are left out.
    """
    size = float((high - low).max()) or 1.0
    step, margin = size / STEPS, _MARGIN * size
    kept = []
    for shape in shapes:
        if (
            not len(shape.corners)
            or (shape.corners.min(axis=0) > high + margin).any()
            or (shape.corners.max(axis=0) < low - margin).any()
        ):
            continue
        near = np.clip(shape.corners, low - 2 * margin, high + 2 * margin)
        rounded = np.rint((near - low) / step).astype(np.int64)
        rounded = rounded[np.append(True, (np.diff(rounded, axis=0) != 0).any(axis=1))]
        if len(rounded) > 2:
            along = np.diff(rounded, axis=0)
            turns = along[:-1, 0] * along[1:, 1] != along[:-1, 1] * along[1:, 0]
            rounded = rounded[np.concatenate([[True], turns, [True]])]
        if len(rounded) > (2 if shape.is_ring else 1):
            kept.append(shape._replace(corners=rounded))
    return kept, step
