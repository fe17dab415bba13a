"""Small charts of the report as SVG text: lines with a legend, bars in a table, histograms. They need no script and print well."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np

from hushgraph.result import TypicalError

WIDE, HIGH, LEFT, BELOW = 560, 260, 48, 40  # of a chart, in its own units
_FINE_TO_COARSE = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 178, 80], [190, 160, 20]])


@dataclass(frozen=True, eq=False)
class Line:
    """A curve with its name in the legend; `dot` is a point on it to be marked."""

    name: str
    x: np.ndarray
    y: np.ndarray
    dot: tuple[float, float]


def thinned(t: np.ndarray, values: np.ndarray, far: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` points of a curve that is known at ascending t, evenly from 0 to `far` or its end."""
    grid = np.linspace(0.0, min(far, float(t[-1])), count)
    return grid, values[np.searchsorted(t, grid, side="right") - 1]


def figure(value: float) -> str:
    """A number for people: three digits, thousands set apart, a real minus sign.

    Examples
    --------
    >>> figure(3.3149), figure(16375), figure(-0.00012), figure(0)
    ('3.31', '16,375', '−0.00012', '0')
    """
    if not np.isfinite(value):
        return "not known"
    text = f"{value:,.0f}" if abs(value) >= 1000 else np.format_float_positional(value, precision=3, fractional=False, trim="-")
    return text.replace("-", "\N{MINUS SIGN}")


def spread(value: float) -> str:
    """A standard deviation for people, always with three digits.

    Examples
    --------
    >>> spread(3.2), spread(0.05), spread(12345.6)
    ('± 3.20', '± 0.0500', '± 12,346')
    """
    text = f"{value:#.3g}".rstrip(".") if 1e-4 <= value < 999.5 else figure(value)
    return f"± {text}"


def error_words(error: TypicalError) -> str:
    """An error for people; words for one that is not known.

    Examples
    --------
    >>> error_words(TypicalError(3.2, False)), error_words(TypicalError(0.62, True)), error_words(TypicalError.unknown())
    ('± 3.20', 'below ± 0.620', 'not known')
    """
    if not error.is_known:
        return "not known"
    return f"{'below ' if error.is_bound else ''}{spread(error.size)}"


def line_chart(lines: list[Line], *, x_title: str, y_title: str, top: float, name: str) -> str:
    """Curves from 0 to the right; what rises above `top` is cut."""
    right = max(float(line.x[-1]) for line in lines)
    low = min(0.0, *(float(line.y.min()) for line in lines))
    span = top - low or 1.0

    def across(x):
        return LEFT + (WIDE - LEFT - 12) * np.asarray(x) / (right or 1.0)

    def up(y):
        return (HIGH - BELOW) - (HIGH - BELOW - 10) * (np.asarray(y) - low) / span

    parts = [_grid(right, low, top, across, up, x_title, y_title)]
    for k, line in enumerate(lines):
        colour = _shade(k, len(lines))
        inside = np.flatnonzero(line.y > top)
        stop = int(inside[inside > np.argmin(line.y)].min(initial=len(line.y) - 1)) + 1
        y = np.minimum(line.y[:stop], top)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across(line.x[:stop]), up(y), strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8" stroke-linejoin="round"/>')
    for k, line in enumerate(lines):  # dots last, so that no line hides one
        at, height = float(across(line.dot[0])), float(up(min(line.dot[1], top)))
        mark = f'<circle cx="{at:.1f}" cy="{height:.1f}" r="4.5" fill="{_shade(k, len(lines))}" stroke="#fff" stroke-width="1.5"/>'
        parts.append(mark)
    legend = "".join(
        f'<li><svg viewBox="0 0 18 10" aria-hidden="true"><path d="M0 5H18" stroke="{_shade(k, len(lines))}" stroke-width="3"/></svg>'
        f"{escape(line.name)}</li>"
        for k, line in enumerate(lines)
    )
    return (
        f'<svg class="chart" viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{escape(name)}">{"".join(parts)}</svg>'
        f'<ul class="key">{legend}</ul>'
    )


def histogram(before: np.ndarray, after: np.ndarray) -> str:
    """How many nodes have which value, before and after, with the same bins; the tails beyond 99.8 % are in the last bins."""
    both = np.concatenate([before[~np.isnan(before)], after[~np.isnan(after)]])
    low, high = np.quantile(both, [0.001, 0.999]) if len(both) else (0.0, 1.0)
    low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
    edges = np.linspace(low, high, 61)
    bins = [np.histogram(np.clip(part[~np.isnan(part)], low, high), edges)[0] for part in (before, after)]
    most = max(int(part.max(initial=1)) for part in bins)
    charts = [
        _bins(part, most, edges, title) for part, title in zip(bins, ("Noisy", "Denoised"), strict=True)
    ]  # one scale for both, as with the maps
    return f'<div class="pair">{"".join(charts)}</div>'


def bar(share: float) -> str:
    """A bar in a table, from nothing at 0 to the whole width at 1."""
    wide = 100 * min(max(share, 0.0), 1.0)
    return f'<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect width="{wide:.1f}" height="8"/></svg>'


def _bins(counts: np.ndarray, most: int, edges: np.ndarray, title: str) -> str:
    step = (WIDE - 20) / len(counts)
    floor = HIGH - BELOW
    high = np.sqrt(counts / most) * (floor - 12)  # root of the count: a large bin at zero does not hide the rest
    bars = "".join(
        f'<rect x="{10 + k * step:.1f}" y="{floor - h:.1f}" width="{step - 1:.1f}" height="{h:.1f}"/>'
        for k, h in enumerate(high)
        if h
    )
    marks = "".join(
        f'<text x="{10 + step * len(counts) * k / 2:.0f}" y="{floor + 18}" text-anchor="{anchor}">{figure(edges[k * len(counts) // 2])}</text>'
        for k, anchor in enumerate(("start", "middle", "end"))
    )
    return (
        f'<figure><figcaption>{title}</figcaption><svg class="chart bins" viewBox="0 0 {WIDE} {HIGH}" role="img" '
        f'aria-label="How many nodes have which value: {title}">{bars}<path d="M10 {floor}H{WIDE - 10}" class="axis"/>{marks}</svg></figure>'
    )


def _grid(right: float, low: float, top: float, across, up, x_title: str, y_title: str) -> str:
    parts = []
    for x in _round_ticks(0.0, right):
        at = float(across(x))
        parts.append(f'<path d="M{at:.1f} 10V{HIGH - BELOW}" class="grid"/>')
        parts.append(f'<text x="{at:.1f}" y="{HIGH - BELOW + 16}" text-anchor="middle">{figure(x)}</text>')
    for y in _round_ticks(low, top):
        at = float(up(y))
        parts.append(f'<path d="M{LEFT} {at:.1f}H{WIDE - 12}" class="{"axis" if y == 0 else "grid"}"/>')
        parts.append(f'<text x="{LEFT - 7}" y="{at + 4:.1f}" text-anchor="end">{figure(y)}</text>')
    middle = (HIGH - BELOW) / 2
    parts.append(f'<text x="{(LEFT + WIDE) / 2:.0f}" y="{HIGH - 5}" text-anchor="middle" class="title">{escape(x_title)}</text>')
    parts.append(
        f'<text transform="rotate(-90)" x="{-middle:.0f}" y="11" text-anchor="middle" class="title">{escape(y_title)}</text>'
    )
    return "".join(parts)


def _round_ticks(low: float, high: float) -> np.ndarray:
    """Four to eight round numbers (1, 2 or 5 times a power of ten) between two values."""
    rough = max((high - low) / 4, 1e-300)
    decade = 10.0 ** np.floor(np.log10(rough))
    step = max(size for size in (1, 2, 5) if size * decade <= rough) * decade
    return np.arange(np.ceil(low / step), np.floor(high / step + 1e-9) + 1) * step + 0.0


def _shade(k: int, count: int) -> str:
    """Colours from dark violet to ochre in equal steps, told apart by the colour-blind by their lightness too."""
    at = (len(_FINE_TO_COARSE) - 1) * k / max(count - 1, 1)
    low = min(int(at), len(_FINE_TO_COARSE) - 2)
    mixed = _FINE_TO_COARSE[low] + (at - low) * (_FINE_TO_COARSE[low + 1] - _FINE_TO_COARSE[low])
    return "#" + "".join(f"{round(part):02x}" for part in mixed)
