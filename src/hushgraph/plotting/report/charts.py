"""The small charts of the report as SVG text (lines with a legend, bars in a table, histograms), and its numbers as text.

The charts need no script and can be printed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import numpy as np

from hushgraph.estimators import TypicalError
from hushgraph.plotting.style import even_ticks

WIDTH, HEIGHT, LEFT, BELOW = 560, 260, 48, 40  # of a chart, and its margins, in units of its SVG viewBox
_DARK_TO_LIGHT = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 178, 80], [190, 160, 20]])


@dataclass(frozen=True, eq=False)
class Line:
    """A curve with its name in the legend; `dot` is a point on the curve that is marked."""

    name: str
    x: np.ndarray
    y: np.ndarray
    dot: tuple[float, float]


def format_number(value: float) -> str:
    """Return a number as text: three digits, commas between thousands, a real minus sign; "not known" for NaN and infinity.

    Examples
    --------
    >>> format_number(3.3149), format_number(16375), format_number(-0.00012), format_number(0)
    ('3.31', '16,375', '−0.00012', '0')
    """
    if not np.isfinite(value):
        return "not known"
    text = f"{value:,.0f}" if abs(value) >= 1000 else np.format_float_positional(value, precision=3, fractional=False, trim="-")
    return text.replace("-", "\N{MINUS SIGN}")


def format_spread(value: float) -> str:
    """Return a standard deviation as text with three digits after ±.

    Examples
    --------
    >>> format_spread(3.2), format_spread(0.05), format_spread(12345.6)
    ('± 3.20', '± 0.0500', '± 12,346')
    """
    text = f"{value:#.3g}".rstrip(".") if 1e-4 <= value < 999.5 else format_number(value)
    return f"± {text}"


def format_error(error: TypicalError) -> str:
    """Return a typical error, or its bound, as text; "not known" if it is not known.

    Examples
    --------
    >>> format_error(TypicalError(3.2, False)), format_error(TypicalError(0.62, True)), format_error(TypicalError.unknown())
    ('± 3.20', 'below ± 0.620', 'not known')
    """
    if not error.is_known:
        return "not known"
    return f"{'below ' if error.is_bound else ''}{format_spread(error.size)}"


def format_interval(value: float, lower: float, upper: float, digits: int, counted: str = "") -> str:
    """Return a value with its interval as text, as the maps show it.

    The interval is extended to the value, its ends are rounded outwards, and wide intervals have fewer digits.

    Examples
    --------
    >>> format_interval(67.31, 58.2, 76.9, 1), format_interval(3.14, 1.26, 5.02, 2), format_interval(0.3, 0.0, 0.0, 1)
    ('67, between 58 and 77', '3.1, between 1.2 and 5.1', '0.3, between 0.0 and 0.3')
    >>> format_interval(67.31, 58.2, 76.9, 1, "pickups")
    '67 pickups, between 58 and 77'
    """
    lower, upper = min(lower, value), max(upper, value)
    width = upper - lower
    places = min(digits, max(0, -int(np.floor(np.log10(width / 10))))) if width > 0 else digits
    unit = 10.0**-places
    steps = np.round(value / unit), np.floor(lower / unit + 0.01), np.ceil(upper / unit - 0.01)
    shown, low, high = (f"{step * unit + 0.0:,.{places}f}".replace("-", "\N{MINUS SIGN}") for step in steps)  # + 0.0: no "-0"
    return f"{shown}{counted and f' {counted}'}, between {low} and {high}"


def line_chart(lines: list[Line], *, x_title: str, y_title: str, top: float, name: str) -> str:
    """Return a chart of curves that start at x = 0, and its legend; a curve ends where it rises above `top`."""
    right = max(float(line.x[-1]) for line in lines)
    low = min(0.0, *(float(line.y.min()) for line in lines))
    span = top - low or 1.0

    def to_x(x: float | np.ndarray) -> np.ndarray:
        return LEFT + (WIDTH - LEFT - 12) * np.asarray(x) / (right or 1.0)

    def to_y(y: float | np.ndarray) -> np.ndarray:
        return (HEIGHT - BELOW) - (HEIGHT - BELOW - 10) * (np.asarray(y) - low) / span

    parts = [_grid(right, low, top, to_x, to_y, x_title, y_title)]
    for k, line in enumerate(lines):
        colour = _shade(k, len(lines))
        above = np.flatnonzero(line.y > top)
        stop = int(above[above > np.argmin(line.y)].min(initial=len(line.y) - 1)) + 1
        corners = zip(to_x(line.x[:stop]), to_y(np.minimum(line.y[:stop], top)), strict=True)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8" stroke-linejoin="round"/>')
    for k, line in enumerate(lines):  # dots last, so that no line hides one
        x, y = float(to_x(line.dot[0])), float(to_y(min(line.dot[1], top)))
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{_shade(k, len(lines))}" stroke="#fff" stroke-width="1.5"/>')
    legend = "".join(
        f'<li><svg viewBox="0 0 18 10" aria-hidden="true"><path d="M0 5H18" stroke="{_shade(k, len(lines))}" stroke-width="3"/></svg>'
        f"{escape(line.name)}</li>"
        for k, line in enumerate(lines)
    )
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(name)}">{"".join(parts)}</svg>'
        f'<ul class="key">{legend}</ul>'
    )


def histogram(before: np.ndarray, after: np.ndarray) -> str:
    """Return two histograms of the values of all nodes with the same bins; the outermost bins hold the tails beyond 99.8 %."""
    both = np.concatenate([before[~np.isnan(before)], after[~np.isnan(after)]])
    low, high = np.quantile(both, [0.001, 0.999]) if len(both) else (0.0, 1.0)
    low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
    edges = np.linspace(low, high, 61)
    bins = [np.histogram(np.clip(part[~np.isnan(part)], low, high), edges)[0] for part in (before, after)]
    most = max(int(part.max(initial=1)) for part in bins)  # one scale for both, as with the maps
    charts = [_bins(part, most, edges, title) for part, title in zip(bins, ("Noisy", "Denoised"), strict=True)]
    return f'<div class="pair">{"".join(charts)}</div>'


def bar(share: float) -> str:
    """Return a bar for a table cell: no width at 0, the whole width at 1."""
    wide = 100 * min(max(share, 0.0), 1.0)
    return f'<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect width="{wide:.1f}" height="8"/></svg>'


def _bins(counts: np.ndarray, most: int, edges: np.ndarray, title: str) -> str:
    """Return one histogram, with the values at both ends and in the middle."""
    step = (WIDTH - 20) / len(counts)
    floor = HEIGHT - BELOW
    heights = np.sqrt(counts / most) * (floor - 12)  # root of the count: a large bin at zero does not hide the rest
    bars = "".join(
        f'<rect x="{10 + k * step:.1f}" y="{floor - h:.1f}" width="{step - 1:.1f}" height="{h:.1f}"/>'
        for k, h in enumerate(heights)
        if h
    )
    marks = "".join(
        f'<text x="{10 + step * len(counts) * k / 2:.0f}" y="{floor + 18}" text-anchor="{anchor}">{format_number(edges[k * len(counts) // 2])}</text>'
        for k, anchor in enumerate(("start", "middle", "end"))
    )
    return (
        f'<figure><figcaption>{title}</figcaption><svg class="chart bins" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="How many nodes have which value: {title}">{bars}<path d="M10 {floor}H{WIDTH - 10}" class="axis"/>{marks}</svg></figure>'
    )


def _grid(
    right: float, low: float, top: float, to_x: Callable[[float], np.ndarray], to_y: Callable[[float], np.ndarray], x_title: str, y_title: str
) -> str:  # fmt: skip
    """Return grid lines at round values, their numbers, and the titles of both axes."""
    parts = []
    for x in even_ticks(0.0, right):
        px = float(to_x(x))
        parts.append(f'<path d="M{px:.1f} 10V{HEIGHT - BELOW}" class="grid"/>')
        parts.append(f'<text x="{px:.1f}" y="{HEIGHT - BELOW + 16}" text-anchor="middle">{format_number(x)}</text>')
    for y in even_ticks(low, top):
        py = float(to_y(y))
        parts.append(f'<path d="M{LEFT} {py:.1f}H{WIDTH - 12}" class="{"axis" if y == 0 else "grid"}"/>')
        parts.append(f'<text x="{LEFT - 7}" y="{py + 4:.1f}" text-anchor="end">{format_number(y)}</text>')
    middle = (HEIGHT - BELOW) / 2
    parts.append(f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 5}" text-anchor="middle" class="title">{escape(x_title)}</text>')
    parts.append(
        f'<text transform="rotate(-90)" x="{-middle:.0f}" y="11" text-anchor="middle" class="title">{escape(y_title)}</text>'
    )
    return "".join(parts)


def _shade(k: int, count: int) -> str:
    """Return the k-th of `count` colours from dark violet to ochre; their lightness differs too, for readers with any colour vision."""
    place = (len(_DARK_TO_LIGHT) - 1) * k / max(count - 1, 1)
    low = min(int(place), len(_DARK_TO_LIGHT) - 2)
    mixed = _DARK_TO_LIGHT[low] + (place - low) * (_DARK_TO_LIGHT[low + 1] - _DARK_TO_LIGHT[low])
    return "#" + "".join(f"{round(part):02x}" for part in mixed)
