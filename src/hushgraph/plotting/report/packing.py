"""Graph and values in the packed form that the pages read: fixed-point numbers, differences, byte planes, zlib, base64.

A number becomes an integer multiple of `step`, then the difference from the number before it, and then 1 to 4 bytes; all first
bytes come first, then all second bytes, which zlib compresses far better. `unpack` in `static/map_data.js` reads the result.
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from hushgraph._errors import InputError
from hushgraph._geodesy import METRES_PER_DEGREE, LocalPlane, planar_coords
from hushgraph._validation import checked_number, checked_real_array
from hushgraph.estimators import INTERVAL_LEVEL
from hushgraph.graphs import Graph
from hushgraph.plotting.report.backdrop import read_outlines, simplified

MAP_FOLDER = Path(__file__).parent / "static"  # files of the map, shared by the report and the explorer
MAP_SCRIPTS = (
    "map_data.js", "map_colours.js", "map_text.js", "map_paint.js", "map_backdrop.js", "map_layers.js", "map_swipe.js", "map_search.js",
    "map_picture.js", "map_input.js", "map.js", "map_time.js",
)  # fmt: skip  # in the order of loading
INTERVAL_HALF_WIDTH = NormalDist().inv_cdf(0.5 + INTERVAL_LEVEL / 2)  # in expected errors, where errors are normal
STEPS_PER_EDGE = 32  # coordinates are rounded to this part of the typical edge length
_MAX_STEPS = 2**30  # between two numbers: with its sign a difference fits into 32 bits
_CURVE_BITS = 16
MAX_LABELS, MAX_LABEL_LENGTH = 200_000, 60  # with more nodes no labels and names are sent; longer labels are cut


def drawing_order(graph: Graph) -> np.ndarray:
    """Return the nodes in the order of a curve through the map (Z order), so that neighbours on the map are neighbours in the file.

    Parameters
    ----------
    graph : Graph
        Graph with coordinates.

    Returns
    -------
    (n,) array of int
        Node numbers.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> drawing_order(datasets.grid(2, 3)).tolist()
    [3, 4, 0, 1, 5, 2]
    """
    place = planar_places(graph)[0]
    low, size = place.min(axis=0, initial=np.inf), np.ptp(place, axis=0).max(initial=0.0) if len(place) else 0.0
    if size == 0:
        return np.arange(graph.n)
    cell = ((place - low) * ((2**_CURVE_BITS - 1) / size)).astype(np.uint64)
    key = _spread(cell[:, 0]) | (_spread(cell[:, 1]) << np.uint64(1))
    return np.argsort(key, kind="stable")


def planar_places(graph: Graph) -> tuple[np.ndarray, float | None]:
    """Return coordinates (n, 2) in a plane, and the metres of one unit if known: degrees become metres around the mean latitude."""
    coords = graph.coords
    if coords is None:
        msg = "a map needs the places of the nodes; this graph has no coords, so build it with coords= (one row per node)"
        raise InputError(msg)
    return planar_coords(coords[:, :2], graph.crs), 1.0 if graph.crs == "lonlat" else None


def pack_graph(graph: Graph, order: np.ndarray, *, metres: float | None = None, outlines: Any = None) -> dict[str, Any]:
    """Return coordinates and edges of the nodes in the given order, and the outlines of zones, ready for JSON.

    Parameters
    ----------
    graph : Graph
        Graph with coordinates.
    order : (n,) array of int
        Node numbers from `drawing_order`; values are packed in the same order.
    metres : float, optional
        Metres in one unit of planar coordinates; without it, planar maps have no scale bar. Not needed for degrees.
    outlines : str, Path, dict, GeoDataFrame or list, optional
        Water, parks and districts beneath the map, as `read_outlines` reads them.

    Returns
    -------
    dict
        Packed numbers, which `unpackGraph` in map_data.js reads.
    """
    place, known = planar_places(graph)
    place = place[order]
    ends = _ordered_edges(graph, order)
    step = _typical_length(place, ends) / STEPS_PER_EDGE
    size = float(np.ptp(place, axis=0).max(initial=0.0)) if len(place) else 0.0
    step = max(step, size / _MAX_STEPS) or 1.0
    corners = None if graph.outlines is None else _planar_corners(graph)
    low = (place if corners is None else corners).min(axis=0, initial=np.inf)
    x, y = (_packed_numbers(axis, step) for axis in (place - low).T)
    zones = {} if corners is None else {"outlines": _packed_outlines(graph, order, corners - low, step / STEPS_PER_EDGE)}
    return {
        "x": x,
        "y": y,
        **zones,
        "degrees": _packed_integers(np.bincount(ends[:, 0], minlength=graph.n), difference=False),
        "offsets": _packed_integers(ends[:, 1] - ends[:, 0], difference=False),
        "bends": _packed_bends(graph, order, ends, low, step),
        "metres": known if known is not None or metres is None else checked_metres(metres),
        "latitude": _latitude(graph),
        "labels": _packed_labels(graph, order),
        "names": _packed_names(graph, order),
        "backdrop": None if outlines is None else _packed_backdrop(graph, outlines, place if corners is None else corners),
    }


def _packed_bends(graph: Graph, order: np.ndarray, ends: np.ndarray, low: np.ndarray, step: float) -> dict[str, Any] | None:
    """Return the points at which streets bend, from the first end of each to the second, and the numbers of these edges in `ends`.

    They are left out of maps that have no names and labels for their size.
    """
    curves = graph.curves
    if curves is None or graph.coords is None or graph.n > MAX_LABELS:
        return None
    points = LocalPlane.around(graph.coords).metres(*curves.points.T) if graph.crs == "lonlat" else curves.points
    position = np.empty(graph.n, dtype=np.int64)
    position[order] = np.arange(graph.n)
    pairs = position[curves.edges]
    lines = [line[::-1] if i > j else line for (i, j), line in zip(pairs, np.split(points - low, curves.starts[1:-1]), strict=True)]
    numbers = np.searchsorted(ends @ [graph.n, 1], np.sort(pairs, axis=1) @ [graph.n, 1])
    in_order = np.argsort(numbers)
    x, y = (_packed_numbers(axis, step) for axis in np.concatenate([lines[k] for k in in_order]).T)
    return {
        "x": x,
        "y": y,
        "sizes": _packed_integers(np.diff(curves.starts)[in_order], difference=False),
        "edges": _packed_integers(numbers[in_order], difference=True),
    }


def _planar_corners(graph: Graph) -> np.ndarray:
    """Return the corners of the outlines in the plane of `planar_places`."""
    assert graph.outlines is not None
    assert graph.coords is not None
    outlines = graph.outlines
    return (outlines.in_metres(LocalPlane.around(graph.coords)) if graph.crs == "lonlat" else outlines).corners


def _packed_outlines(graph: Graph, order: np.ndarray, corners: np.ndarray, step: float) -> dict[str, Any]:
    """Return the rings of the zones in the given order; corners that are rounded to the place of the one before are left out."""
    assert graph.outlines is not None
    position = np.empty(graph.n, dtype=np.int64)
    position[order] = np.arange(graph.n)
    step = max(step, float(np.ptp(corners)) / _MAX_STEPS)
    outlines = graph.outlines.moved_to(np.rint(corners / step))
    rings = [(int(position[node]), ring[(ring != np.roll(ring, 1, axis=0)).any(axis=1)]) for node, ring in outlines.rings()]
    rings = sorted(((node, ring) for node, ring in rings if len(ring) >= 3), key=lambda pair: pair[0])
    rounded = np.concatenate([np.empty((0, 2)), *(ring for _, ring in rings)]).astype(np.int64)
    x, y = ({**_packed_integers(axis, difference=True), "step": step} for axis in rounded.T)
    sizes, nodes = np.array([len(ring) for _, ring in rings]), np.array([node for node, _ in rings])
    return {
        "x": x,
        "y": y,
        "sizes": _packed_integers(sizes.astype(np.int64), difference=False),
        "nodes": _packed_integers(nodes.astype(np.int64), difference=True),
    }


def checked_metres(metres: float | None) -> float | None:
    """Return the metres in one unit of planar coordinates as a positive number; None (not known) stays None."""
    return None if metres is None else checked_number("metres", metres, "a positive length in metres", above=0)


def pack_values(values: Any, *, step: float) -> dict[str, Any]:
    """Return one number per node, rounded to multiples of `step`, ready for JSON; NaN stays NaN.

    Parameters
    ----------
    values : array_like
        Values in the order of `drawing_order`.
    step : float
        Distance between two packed numbers.

    Returns
    -------
    dict
        Packed numbers, which `unpack` in map_data.js reads.

    Examples
    --------
    >>> packed = pack_values([1.04, 0.97, float("nan")], step=0.1)
    >>> packed["count"], packed["bytes"], packed["step"]
    (3, 1, 0.1)
    """
    values = checked_real_array("values", values).astype(np.float64)
    step = checked_number("step", step, "a positive number", above=0)
    missing = np.flatnonzero(np.isnan(values))
    filled = values.copy()
    filled[missing] = 0.0
    if np.abs(filled).max(initial=0.0) > step * _MAX_STEPS / 2:
        msg = f"values must be at most {_MAX_STEPS // 2} steps in size; step={step:g} is too fine for them, so pass a larger one"
        raise InputError(msg)
    packed = _packed_numbers(filled, step)
    return packed if not len(missing) else {**packed, "missing": _packed_integers(missing, difference=True)}


def pack_interval(values: Any, lower: Any, upper: Any, *, step: float) -> dict[str, dict[str, Any]]:
    """Return both ends of an interval per node, ready for JSON; they are rounded outwards, so that no interval becomes shorter.

    An interval need not hold its value: a count that is probably 0 has the interval from 0 to 0, and a mean above it. On a map that
    would look like a mistake, so the interval is extended to its value.

    Parameters
    ----------
    values : array_like
        Values in the order of `drawing_order`.
    lower, upper : array_like
        Ends of their intervals; NaN where they are not known.
    step : float
        Distance between two packed numbers.

    Returns
    -------
    dict
        Packed numbers under "lower" and "upper", which `unpack` in map_data.js reads.

    Examples
    --------
    >>> packed = pack_interval([1.1, 0.34], [0.96, 0], [1.23, 0], step=0.1)
    >>> packed["lower"] == pack_values([0.9, 0], step=0.1), packed["upper"] == pack_values([1.3, 0.4], step=0.1)
    (True, True)
    """
    given = (("values", values), ("lower", lower), ("upper", upper))
    values, lower, upper = (checked_real_array(name, part) / step for name, part in given)
    rounding = 1e-6  # of a step: 0.3 is three steps of 0.1
    return {
        "lower": pack_values(np.floor(np.minimum(lower, values) + rounding) * step, step=step),
        "upper": pack_values(np.ceil(np.maximum(upper, values) - rounding) * step, step=step),
    }


def decimal_step(scale: float, *, parts: int = 50) -> float:
    """Return the largest power of ten up to `scale / parts`; 1 if `scale` is 0 or not finite.

    Values that are packed with this step are rounded correctly when they are shown with that many decimals.

    Examples
    --------
    >>> decimal_step(8.06), decimal_step(0.4), decimal_step(0.0)
    (0.1, 0.001, 1.0)
    """
    return float(f"1e{int(np.floor(np.log10(scale / parts)))}") if scale > 0 and np.isfinite(scale) else 1.0


def _packed_numbers(values: np.ndarray, step: float) -> dict[str, Any]:
    return {**_packed_integers(np.rint(values / step).astype(np.int64), difference=True), "step": step}


def _packed_integers(integers: np.ndarray, *, difference: bool) -> dict[str, Any]:
    steps = np.diff(integers, prepend=0) if difference else integers
    zigzag = ((steps << 1) ^ (steps >> 63)).astype("<u8")
    n_bytes = max(1, (int(zigzag.max(initial=0)).bit_length() + 7) // 8)
    planes = zigzag.view(np.uint8).reshape(-1, 8)[:, :n_bytes].T.tobytes()
    return {
        "count": len(integers),
        "bytes": n_bytes,
        "step": 1,
        "start": 0,
        "difference": difference,
        "data": base64.b64encode(_compressed(planes)).decode("ascii"),
    }


def _compressed(planes: bytes) -> bytes:
    """Return zlib data; these settings suit small random numbers: as small as the slowest level, and six times as fast."""
    packer = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_FILTERED)
    return packer.compress(planes) + packer.flush()


def _latitude(graph: Graph) -> dict[str, float] | None:
    """Return what a correct scale bar needs anywhere on the map: a unit of x is a metre only at latitude `true`; y is 0 at `south`."""
    if graph.crs != "lonlat" or graph.coords is None or not graph.n:
        return None
    latitude = graph.coords[:, 1]
    south = latitude if graph.outlines is None else graph.outlines.corners[:, 1]
    return {"south": float(south.min()), "true": float(latitude.mean()), "degree": METRES_PER_DEGREE}


def _packed_names(graph: Graph, order: np.ndarray) -> dict[str, Any] | None:
    """Return the names of streets or zones, if there are any and not too many nodes; each is numbered where the drawing first meets it."""
    if graph.names is None or graph.n > MAX_LABELS:
        return None
    codes = graph.names.codes[order]
    used, first = np.unique(codes[codes >= 0], return_index=True)
    used = used[np.argsort(first)]
    number = np.full(len(graph.names.texts) + 1, -1)  # the last one is for nodes without a name
    number[used] = np.arange(len(used))
    columns = [_packed_integers(number[column], difference=True) for column in codes.T]
    return {"texts": _packed_texts([graph.names.texts[code] for code in used.tolist()]), "codes": columns}


def _packed_texts(texts: list[str]) -> str:
    content = json.dumps(texts, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")


def _packed_backdrop(graph: Graph, outlines: Any, drawn: np.ndarray) -> dict[str, Any]:
    """Return the outlines near the map; `drawn` are the places of its nodes or corners."""
    low, high = drawn.min(axis=0, initial=np.inf), drawn.max(axis=0, initial=-np.inf)
    shapes, step = simplified(read_outlines(outlines, graph), low, high)
    corners = np.concatenate([np.empty((0, 2), dtype=np.int64), *(shape.corners for shape in shapes)])
    x, y = ({**_packed_integers(axis, difference=True), "step": step} for axis in corners.T)
    sizes = np.array([len(shape.corners) for shape in shapes], dtype=np.int64)
    kinds = np.array([shape.kind + 3 * (not shape.is_ring) for shape in shapes], dtype=np.int64)
    return {"x": x, "y": y, "sizes": _packed_integers(sizes, difference=False), "kinds": _packed_integers(kinds, difference=False)}


def _packed_labels(graph: Graph, order: np.ndarray) -> str | None:
    """Return the labels of the nodes, if there are any and not too many. They are part of the graph, which is public."""
    if graph.labels is None or graph.n > MAX_LABELS:
        return None
    names = [str(name) for name in graph.labels[order].tolist()]
    names = [name if len(name) <= MAX_LABEL_LENGTH else f"{name[: MAX_LABEL_LENGTH - 1]}…" for name in names]
    return _packed_texts(names)


def _ordered_edges(graph: Graph, order: np.ndarray) -> np.ndarray:
    """Return the edges (m, 2) as positions in `order`, the smaller position first, sorted."""
    position = np.empty(graph.n, dtype=np.int64)
    position[order] = np.arange(graph.n)
    matrix = graph.adjacency.tocoo()
    upper = matrix.row < matrix.col
    ends = np.sort(np.stack([position[matrix.row[upper]], position[matrix.col[upper]]], axis=1), axis=1)
    return ends[np.lexsort([ends[:, 1], ends[:, 0]])]


def _typical_length(place: np.ndarray, ends: np.ndarray) -> float:
    """Return the median length of the edges; without edges, the spacing of a grid of as many nodes."""
    lengths = np.linalg.norm(place[ends[:, 0]] - place[ends[:, 1]], axis=1)
    lengths = lengths[lengths > 0]
    size = float(np.ptp(place, axis=0).max(initial=0.0)) if len(place) else 0.0
    return float(np.median(lengths)) if len(lengths) else size / max(np.sqrt(len(place)), 1.0)


def _spread(cell: np.ndarray) -> np.ndarray:
    """Return the integers with a zero bit between every two of their bits."""
    for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        cell = (cell | (cell << np.uint64(shift))) & np.uint64(mask)
    return cell
