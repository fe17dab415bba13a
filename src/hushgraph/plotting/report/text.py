"""Texts of the report: names of time windows, the extent of the map, and a certificate as sentences and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from hushgraph._geodesy import LocalPlane, planar_coords
from hushgraph.graphs import Graph

_NAMES = {
    "statement": "Guarantee",
    "epsilon": "ε (epsilon)",
    "delta": "δ (delta)",
    "unit": "Who is protected",
    "adjacency": "Data compared",
    "not_protected": "Who is not protected",
    "sensitivity_squared": "Sensitivity, squared",
    "bound": "Bound on one unit",
    "caps": "Caps",
    "rules": "Rules",
    "windows": "Time windows",
    "public_graph": "Graph fixed without looking at the data",
    "graph": "Graph",
    "mechanism": "Mechanism",
    "sigma": "σ (standard deviation of the noise)",
    "lattice": "Values are multiples of",
    "largest_count": "Counts were clamped to",
    "ledger": "Budget ledger",
    "created": "Drawn at",
    "versions": "Versions",
    "attribution": "Attribution",
    "denoised": "Denoised map",
    "files": "Files (SHA-256)",
    "values_sha256": "Noisy values (SHA-256)",
    "remarks": "Remarks",
}
_PROPER_NAMES = {"hushgraph": "hushgraph", "numpy": "NumPy", "scipy": "SciPy", "sha256": "SHA-256"}
_VALUES = {
    ("adjacency", "add-remove"): "with and without all events of one unit (add-remove)",
    ("adjacency", "change-one"): "with these and with other events of one unit (change-one)",
    ("bound", "enforced"): "enforced while counting",
    ("bound", "assumed"): "assumed, not enforced",
}


def certificate_table(certificate: dict[str, Any]) -> str:
    """Return the certificate as HTML: what was counted, in sentences, and a table of the fields in their order.

    What the guarantee means is not in it: the report begins with that.
    """
    rows = [
        f'<tr><th scope="row">{escape(_NAMES.get(key, _readable(key)))}</th><td>{_cell(_value_in_words(key, value))}</td></tr>'
        for key, value in certificate.items()
        if key not in ("format", "in_words") and value is not None
    ]
    return f'<p>{escape(counting_in_words(certificate))}</p><table class="certificate">{"".join(rows)}</table>'


def counting_in_words(certificate: dict[str, Any]) -> str:
    """Return what was counted, which noise was added and who is not protected, in sentences that can be printed.

    Examples
    --------
    >>> certificate = {"unit": "passenger", "bound": "enforced", "caps": {"max_nodes": 2, "max_per_node": 1}, "sigma": 11.395}
    >>> print(counting_in_words({**certificate, "rules": {"place": "nearest node"}, "not_protected": "drivers"}))
    Each passenger was counted in at most 2 places, once in each; further events were left out. Random noise was then added to every count: about two counts in three are off by less than 11.4 for this reason. Not protected: drivers.
    """
    caps, unit, sentences = certificate.get("caps") or {}, certificate.get("unit") or "person", []
    place = "zone" if str((certificate.get("rules") or {}).get("place", "")).startswith("zone") else "place"
    if len(caps) == 2:
        most, each = (int(cap) for cap in caps.values())
        places = f"{most:,} {place}{'s' * (most != 1)}" if "max_nodes" in caps else f"{most:,} pairs of a {place} and a time window"
        times = f"{'once' if each == 1 else f'at most {each:,} times'} in each"
        if certificate.get("bound") == "assumed":
            sentences.append(f"It was assumed, and not checked, that each {unit} counts in at most {places}, {times}.")
        else:
            sentences.append(f"Each {unit} was counted in at most {places}, {times}; further events were left out.")
    if "sigma" in certificate:
        noise = f"about two counts in three are off by less than {certificate['sigma']:.3g} for this reason"
        sentences.append(f"Random noise was then added to every count: {noise}.")
    if certificate.get("not_protected") not in (None, "not stated"):
        sentences.append(f"Not protected: {certificate['not_protected']}.")
    return " ".join(sentences)


def _value_in_words(key: str, value: Any) -> Any:
    """Return a value as words where it is a technical term."""
    return _VALUES.get((key, value), value) if isinstance(value, str) else value


def _cell(value: Any) -> str:
    """Return a value of the certificate, or a nested table of values, as HTML."""
    if isinstance(value, dict):
        if not value:
            return "none"
        pairs = (f"<dt>{escape(_readable(str(key)))}</dt><dd>{_cell(part)}</dd>" for key, part in value.items() if part is not None)
        return f"<dl>{''.join(pairs)}</dl>"
    if isinstance(value, list | tuple):
        return "<ul>" + "".join(f"<li>{_cell(part)}</li>" for part in value) + "</ul>"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:.10g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    return f"<code>{escape(text)}</code>" if len(text) >= 40 and " " not in text else escape(text)


def _readable(key: str) -> str:
    """Return a key such as "max_nodes" as words, "Max nodes"; names of files and packages as they are written."""
    if key in _PROPER_NAMES:
        return _PROPER_NAMES[key]
    return key.replace("_", " ").capitalize() if key.islower() and "." not in key else key


def extent_in_words(graph: Graph, metres: float | None) -> str:
    """Return how large the map is and, if it is in degrees, where; empty if neither is known.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> extent_in_words(datasets.grid(11, 21), 100.0), extent_in_words(datasets.grid(2, 2), None)
    ('2 × 1 km', '')
    """
    if graph.coords is None or not graph.n:
        return ""
    unit = 1.0 if graph.crs == "lonlat" else metres
    if unit is None:
        return ""
    wide, high = np.ptp(planar_coords(graph.coords[:, :2], graph.crs), axis=0) * unit
    size = f"{_kilometres(wide)} × {_kilometres(high)} km"
    if graph.crs != "lonlat":
        return size
    lon, lat = LocalPlane.around(graph.coords)
    lon = (lon + 180) % 360 - 180
    return f"{size} around {abs(lat):.2f}° {'N' if lat >= 0 else 'S'}, {abs(lon):.2f}° {'E' if lon >= 0 else 'W'}"


def _kilometres(length: float) -> str:
    return f"{length / 1000:.0f}" if length >= 9500 else f"{length / 1000:.2g}"


# ---- time windows -----------------------------------------------------------------------------------------------------


def window_texts(edges: Sequence[Any]) -> list[dict[str, str]]:
    """Return the texts of the windows between these edges: a short `name`, the name as it is `spoken`, and `at`, for "more than at 07:00".

    Parameters
    ----------
    edges : sequence of numbers or of str
        Edges of the windows, as a release has them: numbers, or ISO 8601 times. Times with an offset are written in UTC.

    Returns
    -------
    list of dict
        One for each window.

    Examples
    --------
    >>> window_texts(["2026-03-03T08:00", "2026-03-03T09:00"])
    [{'name': '3 Mar 08:00–09:00', 'spoken': 'Tue 3 March, 08:00 to 09:00', 'at': 'at 08:00'}]
    >>> [text["name"] for text in window_texts(["2026-03-01T06:00", "2026-03-02T00:00", "2026-03-02T12:30"])]
    ['1 Mar 06:00–24:00', '2 Mar 00:00–12:30']
    >>> window_texts(["2026-03-02", "2026-03-09"])
    [{'name': '2 Mar–8 Mar', 'spoken': 'Mon 2 March to Sun 8 March', 'at': 'in 2 Mar–8 Mar'}]
    """
    if not all(isinstance(edge, str) for edge in edges):
        return named_texts([f"{start} to {end}" for start, end in pairwise(edges)])
    times = [datetime.fromisoformat(edge) for edge in edges]
    zone = "" if times[0].tzinfo is None else " UTC"
    times = [time if time.tzinfo is None else time.astimezone(UTC) for time in times]
    last = times[-1] - timedelta.resolution
    year, one_day = times[0].year != last.year, times[0].date() == last.date()
    whole = all(_clock(time) == "00:00" for time in times)
    texts = []
    for start, end in pairwise(times):
        if whole:
            name, spoken = _day_range(start, end, year), _day_range(start, end, year, spoken=True)
            at = f"on {name}" if end - start == timedelta(days=1) else f"in {name}"
        else:
            name, spoken = _hour_range(start, end, year), _hour_range(start, end, year, spoken=True)
            at = f"at {_clock(start)}" if one_day else f"on {_day(start, year)} at {_clock(start)}"
        texts.append({"name": name + zone, "spoken": spoken + zone, "at": at + zone})
    return texts


def named_texts(names: Sequence[str]) -> list[dict[str, str]]:
    """Return the texts of signals that have only names, as `window_texts` has them for windows."""
    return [{"name": name, "spoken": name, "at": f"in {name}"} for name in names]


def _day_range(start: datetime, end: datetime, year: bool, *, spoken: bool = False) -> str:
    last = end - timedelta(days=1)
    to = " to " if spoken else "–"
    return _day(start, year, spoken) if last == start else f"{_day(start, year, spoken)}{to}{_day(last, year, spoken)}"


def _hour_range(start: datetime, end: datetime, year: bool, *, spoken: bool = False) -> str:
    comma, to = (", ", " to ") if spoken else (" ", "–")
    first = f"{_day(start, year, spoken)}{comma}{_clock(start)}"
    if start.date() == end.date():
        return f"{first}{to}{_clock(end)}"
    if _clock(end) == "00:00" and end.date() - start.date() == timedelta(days=1):
        return f"{first}{to}24:00"
    return f"{first}{to}{_day(end, year, spoken)}{comma}{_clock(end)}"


def _day(time: datetime, year: bool, spoken: bool = False) -> str:
    """Return "3 Mar", or spoken "Tue 3 March"; English whatever the language of the computer."""
    month = _MONTHS[time.month - 1]
    name = f"{_WEEKDAYS[time.weekday()]} {time.day} {month}" if spoken else f"{time.day} {month[:3]}"
    return name + (f" {time.year}" if year else "")


_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def _clock(time: datetime) -> str:
    return f"{time:%H:%M}" if not (time.second or time.microsecond) else f"{time:%H:%M:%S.%f}".rstrip("0").rstrip(".")
