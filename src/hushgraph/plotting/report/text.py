"""Texts of the report: names of time windows, and a certificate as a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import pairwise
from typing import Any

_NAMES = {
    "statement": "Guarantee",
    "in_words": "In words",
    "epsilon": "ε (epsilon)",
    "delta": "δ (delta)",
    "unit": "Who is protected",
    "adjacency": "Maps compared",
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
    "remarks": "Remarks",
}


def certificate_table(certificate: dict[str, Any]) -> str:
    """Return the certificate as an HTML table, in its own order."""
    rows = [
        f'<tr><th scope="row">{escape(_NAMES.get(key, _readable(key)))}</th><td>{_cell(value)}</td></tr>'
        for key, value in certificate.items()
        if key != "format" and value is not None
    ]
    return f'<table class="certificate">{"".join(rows)}</table>'


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
    """Return a key such as "max_nodes" as words: "Max nodes"."""
    return key.replace("_", " ").capitalize() if key.islower() else key


# ---- time windows -----------------------------------------------------------------------------------------------------


def window_names(edges: Sequence[Any]) -> list[str]:
    """Return short names of the windows between these edges, which are numbers or ISO 8601 times, as a release writes them.

    Examples
    --------
    >>> window_names([0, 8, 16])
    ['0 to 8', '8 to 16']
    >>> window_names(["2026-03-01T00:00:00", "2026-03-01T06:00:00", "2026-03-02T00:00:00", "2026-03-02T12:30:00"])
    ['1 Mar 00:00–06:00', '1 Mar 06:00–24:00', '2 Mar 00:00–12:30']
    >>> window_names(["2026-03-01T00:00:00+00:00", "2026-03-02T00:00:00+00:00", "2026-03-09T00:00:00+00:00"])
    ['1 Mar UTC', '2 Mar–8 Mar UTC']
    """
    if not all(isinstance(edge, str) for edge in edges):
        return [f"{start} to {end}" for start, end in pairwise(edges)]
    times = [datetime.fromisoformat(edge) for edge in edges]
    zone = "" if times[0].tzinfo is None else " UTC"
    times = [time if time.tzinfo is None else time.astimezone(UTC) for time in times]
    year = len({time.year for time in (times[0], times[-1] - timedelta.resolution)}) > 1
    whole = all(_clock(time) == "00:00" for time in times)
    return [(_day_range(start, end, year) if whole else _hour_range(start, end, year)) + zone for start, end in pairwise(times)]


def _day_range(start: datetime, end: datetime, year: bool) -> str:
    last = end - timedelta(days=1)
    return _day(start, year) if last == start else f"{_day(start, year)}–{_day(last, year)}"


def _hour_range(start: datetime, end: datetime, year: bool) -> str:
    first = f"{_day(start, year)} {_clock(start)}"
    if start.date() == end.date():
        return f"{first}–{_clock(end)}"
    if _clock(end) == "00:00" and end.date() - start.date() == timedelta(days=1):
        return f"{first}–24:00"
    return f"{first}–{_day(end, year)} {_clock(end)}"


def _day(time: datetime, year: bool) -> str:
    month = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")[time.month - 1]
    return f"{time.day} {month}" + (f" {time.year}" if year else "")


def _clock(time: datetime) -> str:
    return f"{time:%H:%M}" if not (time.second or time.microsecond) else f"{time:%H:%M:%S.%f}".rstrip("0").rstrip(".")
