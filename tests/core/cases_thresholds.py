"""Cases for `thresholds.cpp`. Cases with a label "pow ..." call pow of the C library, with arguments for which all C libraries agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from shapes import bell

BINS, FINER, WORDS = 2048, 64, 9
BETAS = (1.0, 2.0, 1.5)


def cases() -> Iterator[Case]:
    random = np.random.RandomState(2)
    yield from _numbers()
    for n in (0, 1, 5, 700):
        for place, (kind, (x, g, scale)) in enumerate(_rows(random, n).items()):
            if n > 1 or kind == "bell":
                yield from _steps(f"{kind} {n}", x, g, scale if (n + place) % 2 else None)
    for n in (1, 70, 3000):
        for kind, (x, g, scale) in _rows(random, n).items():
            if n > 1 or kind in ("bell", "zeros", "nothing"):
                yield from _whole(f"{kind} {n}", x, g, scale)
    yield from _split(random)
    yield from _applied(random)


def _rows(random, n):
    """Return x, g and scale by kind of x."""
    values, chosen = bell(random, n), random.uniform(size=n)
    kinds = {
        "bell": values,
        "wide": np.ldexp(values, random.randint(-60, 60, size=n)),
        "whole range": np.ldexp(values, random.randint(-230, 230, size=n)),
        "tiny": np.ldexp(values, random.randint(-1074, -1000, size=n)),
        "ties": np.floor(values * 4) / 4,
        "zeros": np.where(chosen < 0.3, -0.0, np.where(chosen < 0.6, 0.0, values)),
        "nothing": np.where(chosen < 0.5, -0.0, 0.0),
        "spike": np.where(np.arange(n) == n // 2, 1e60, values),
    }
    rows = {}
    for kind, x in kinds.items():
        g = np.where(random.uniform(size=n) < 0.1, 0.0, random.uniform(size=n))
        scale = np.where(random.uniform(size=n) < 0.1, 0.0, np.ldexp(random.uniform(0.5, 1, size=n), random.randint(-4, 4, size=n)))
        rows[kind] = x, g, scale
    return rows


def _power(beta):
    return "" if beta in (1.0, 2.0) else "pow "


# ---- the steps, with arguments that NumPy computes ---------------------------------------------------------------------


def _numbers():
    for top in (5e-324, 2.2e-308, 1e-200, 0.7, 1.0, 1e70, 1.7e308):
        yield Case(f"lowest bin {top}", "lowest_bin", (top,))
    for sizes in (
        (0.0, 0.0, 0.0),
        (1.0, 1.0, 1.0),
        (0.7, 3.0, 1e5),
        (1e70, 1e70, 1e-70),
        (1e-300, 5e-324, 1e30),
        (5e-324, 1e-308, 0.0),
    ):
        yield Case(f"units {sizes}", "units_of", sizes)
        yield Case(f"square units {sizes}", "square_units", (70_000, _units(*sizes)))
    for inside in ((0.0, 0.0, 0.0), (1024.0, 1.0, 1.0), (1025.0, -1.0, -2.0)):
        yield Case(f"cut {inside}", "is_cut", (inside,))


def _above(values):
    return np.maximum(np.ldexp(1.0, np.frexp(values)[1]), 2.0**-900)


def _units(largest, heaviest, widest):
    return float(_above(largest * largest)), float(_above(heaviest)) * 2.0**-32, float(widest)


def _sizes(x, scale):
    if scale is None:
        return np.abs(x)
    return np.where(scale > 0, np.abs(x) / np.where(scale > 0, scale, 1.0), np.where(x == 0, 0.0, -1.0))


def _settings(z, x, g):
    """Return the lowest bin and the units."""
    over = np.abs(x) / np.where(z > 0, z, 1.0)
    units = _units(np.abs(x).max(initial=0.0), np.abs(g).max(initial=0.0), np.where(z > 0, over, 0.0).max(initial=0.0))
    return max(0, int(np.array([z.max()]).view(np.int64)[0] >> 46) - BINS + 1), units


def _square_units(lowest, units):
    most = (np.arange(lowest + 1, lowest + BINS + 1) << 46).view(np.float64) * units[2]
    with np.errstate(over="ignore"):
        square = most * most * (1 + 2.0**-40)
    return np.where(square < np.inf, np.minimum(units[0], _above(np.where(square < np.inf, square, 1.0))), units[0]) * 2.0**-32


def _bin_sums(z, x, g, lowest, units, finer=False):
    """Return the sums over all bins, or over the finer bins of all bins, for beta 1."""
    use = z >= 0
    z, x, g, keys = z[use], x[use], g[use], z[use].view(np.int64)
    k, shift = np.maximum(0, (keys >> 46) - lowest), 40 if finer else 46
    edge = np.where(k > 0, (keys >> shift << shift).view(np.float64), 0.0)
    r, per_square, per_weight = edge / np.where(z > 0, z, 1.0), 1 / _square_units(lowest, units)[k], 1 / units[1]
    sums = np.zeros((BINS, FINER, WORDS) if finer else (BINS, WORDS), np.int64)
    bins = (k[k > 0], (keys[k > 0] >> 40) % FINER) if finer else (k,)
    for place, terms in enumerate((x * x * per_square, g * per_weight, x * x * r * r * per_square, g * r * per_weight)):
        terms = terms[k > 0] if finer else terms
        whole = np.trunc(terms)
        np.add.at(sums, (*bins, 2 * place), whole.astype(np.int64))
        np.add.at(sums, (*bins, 2 * place + 1), ((terms - whole) * 2.0**32).astype(np.int64))
    np.add.at(sums, (*bins, 8), 1)
    return sums


def _steps(label, x, g, scale):
    z = _sizes(x, scale)
    yield Case(f"sizes {label}", "scaled_sizes", (x, scale))
    yield Case(f"extremes {label}", "extremes", (z, x, g))
    if not z.max(initial=0.0) > 0:
        return
    lowest, units = _settings(z, x, g)
    beta, variance = (1.0, 0.3) if len(x) % 2 else (2.0, 3.0)
    yield Case(f"bins {label}", "add_to_bins", (z, x, g, lowest, units, beta, np.zeros((BINS, WORDS), np.int64)))
    if len(x) == 5:
        yield Case(f"pow bins {label}", "add_to_bins", (z, x, g, lowest, units, 1.5, np.ones((BINS, WORDS), np.int64)))
    sums = _bin_sums(z, x, g, lowest, units)
    yield Case(f"open bins {label}", "open_bins", (sums, lowest, units, variance, beta))
    used = np.flatnonzero(sums[:, 8])[::2]  # every second bin is open
    slots = np.full(BINS, -1)
    slots[used] = np.arange(len(used))
    yield Case(
        f"finer {label}", "add_to_finer", (z, x, g, lowest, slots, units, beta, np.zeros((len(used), FINER, WORDS), np.int64))
    )
    yield Case(f"places {label}", "places_in_bins", (z, lowest, slots))
    weight = sums[:, 2] * units[1]
    known = np.stack(
        [used, np.arange(len(used)) * 0.25, 1.0 + used / 64, np.cumsum(weight[::-1])[::-1][used], 0.5 * weight[used]], axis=1
    )
    finer = _bin_sums(z, x, g, lowest, units, finer=True)[used]
    for inside in ((500.0, 1.0, 0.5), (5000.0, 1.0, 0.5)) if len(x) < 10 else ((5000.0, 1.0, 0.5), (5000.0, 1e9, 1e9)):
        yield Case(f"cells {label} {inside}", "open_cells", (known, inside, finer, lowest, units, variance, beta))
    cell_of = np.where(np.arange(len(used) * FINER) % 3 == 0, -1, np.arange(len(used) * FINER) // 5).reshape(-1, FINER)
    yield Case(f"cell numbers {label}", "cell_numbers", (z, lowest, slots, cell_of))
    yield from _in_cells(label, z, x, g, variance, beta)


def _in_cells(label, z, x, g, variance, beta):
    """Yield positions of values in cells, and searches in one row and in several rows. The bits of a size give its cell."""
    cut = np.unique(z[z >= 0].view(np.int64) >> 48)
    numbers = np.where(z >= 0, np.searchsorted(cut, z.view(np.int64) >> 48), -1)
    edges = (cut + 1 << 48).view(np.float64)
    weight = np.bincount(numbers[numbers >= 0], g[numbers >= 0], minlength=len(cut))
    cells = np.stack([edges, np.arange(len(cut)) * 0.1, np.ones(len(cut)), np.cumsum(weight), weight], axis=1)
    yield Case(f"places in cells {label}", "places_in_cells", (numbers, len(cut)))
    order = np.argsort(numbers, kind="stable")[np.sum(numbers < 0) :]
    starts = np.searchsorted(numbers[order], np.arange(len(cut) + 1))
    for at_zero in (1e300, -1e300):
        settings = at_zero, variance, beta
        yield Case(f"least of cells {label} {at_zero}", "least_of_cells", (cells, starts, z[order], x[order], g[order], *settings))
    members = np.tile(np.stack([numbers, z, x, g])[:, numbers >= 0], 2)
    known = np.array(
        [[top, 0, 0, 1e300, 0, len(cut), end] for top, end in ((1.0, len(order)), (0.0, len(order)), (-1.0, len(order)))]
    )
    known = np.concatenate([known, [[1.0, 0, 0, -1e300, 0, len(cut), 2 * len(order)]]])
    yield Case(f"least of rows {label}", "least_of_rows", (known, np.stack([cells] * 4), members, variance, beta))


# ---- whole rows --------------------------------------------------------------------------------------------------------


def _whole(label, x, g, scale):
    rows = np.stack([x, x[::-1], np.abs(x)])
    weights, scales = np.stack([g, g, g[::-1]]), np.stack([scale, scale[::-1], np.ones(len(x))])
    order = np.argsort(np.abs(x), kind="stable")
    t = np.abs(rows[:, :1]).ravel() * np.array([0.5, 1.0, 0.0])
    for beta in BETAS:
        if beta == 1.5 and len(x) != 70:
            continue
        name = f"{_power(beta)}{label} {beta}"
        for kind, row_scales in (("", None), (" scaled", scales)):
            yield Case(f"{name} least{kind}", "least_sure", (rows, weights, row_scales, 0.01 if beta == 1.0 else 1.0, beta))
            yield Case(f"{name} rows{kind}", "sure_of_rows", (rows, weights, row_scales, t, 0.7, beta))
        yield Case(f"{name} data", "sure_at_data", (np.abs(x)[order], x[order], g[order], 0.7, beta))
    for kind, truth in (("", x * 0.75), (" of whole numbers", np.floor(x))):
        sorted_rows = np.abs(x)[order], x[order], truth[order]
        yield Case(f"{label} hard oracle{kind}", "oracle_threshold", (*sorted_rows, np.inf))
        if 1 < len(x) < 100:
            yield Case(f"pow {label} oracle{kind}", "oracle_threshold", (*sorted_rows, 2.0))


def _split(random):
    """Yield rows that are split over threads, many short rows, slices of arrays, and empty rows."""
    x, g = bell(random, 2, 140_001), random.uniform(size=(2, 140_001))
    x[1] = np.ldexp(x[1], random.randint(-20, 20, size=140_001))
    yield Case("long rows", "least_sure", (x, g, None, 1.0, 2.0))
    yield Case("long rows scaled", "least_sure", (x, g, random.uniform(size=x.shape), 1.0, 1.0))
    many, flat = bell(random, 40, 900), random.uniform(size=(40, 900))
    yield Case("many rows", "least_sure", (many, flat, None, 0.4, 2.0))
    yield Case("parts of rows", "least_sure", (many[::3, 10:800], flat[::3, 10:800], flat[::3, 5:795], 0.4, 1.0))
    for shape in ((0, 5), (3, 0), (0, 0)):
        none = np.zeros(shape)
        yield Case(f"no values {shape}", "least_sure", (none, none, None, 1.0, 2.0))
        yield Case(f"no values scaled {shape}", "least_sure", (none, none, none, 1.0, 2.0))
        yield Case(f"no terms {shape}", "sure_of_rows", (none, none, none, np.ones(shape[0]), 1.0, 2.0))
    nothing = np.zeros(0)
    yield Case("no data", "sure_at_data", (nothing, nothing, nothing, 1.0, 2.0))
    yield Case("no truth", "oracle_threshold", (nothing, nothing, nothing, 2.0))
    yield Case("no hard truth", "oracle_threshold", (nothing, nothing, nothing, np.inf))
    read_only = np.abs(many[0])
    read_only.flags.writeable = False
    yield Case("read-only values", "scaled_sizes", (read_only, read_only))


def _applied(random):
    for kind in (np.float64, np.float32):
        for n in (0, 1, 5, 9, 20_003):
            F = bell(random, 3, n)
            F[:, ::7], F[:, 3::11] = 0.0, -0.0
            F, t = F.astype(kind), np.array([0.0, 0.7, 1.0], dtype=kind)
            if n > 3:
                F[1, 1], F[2, 2] = 0.7, -1.0  # at the threshold
            scale = np.where(random.uniform(size=F.shape) < 0.1, 0.0, random.uniform(0, 2, size=F.shape)).astype(kind)
            for beta in (*BETAS, np.inf) if n == 9 else BETAS if n < 1000 else BETAS[:2]:
                for name, row_scales in (("", None), (" scaled", scale)):
                    label = f"apply {np.dtype(kind).name} {n} {beta}{name}"
                    yield Case(f"{_power(beta)}{label}", "apply_thresholds", (F, t, row_scales, beta, np.zeros_like(F)))
        odd = np.array([[np.nan, np.inf, -np.inf, 5e-324, -5e-324, 1e-45, 1e30, -1e30, 0.0, -0.0] * 3] * 2).astype(kind)
        for beta in (1.0, 2.0):
            t = np.array([0.0, 1e-30], dtype=kind)
            yield Case(f"apply {np.dtype(kind).name} odd {beta}", "apply_thresholds", (odd, t, None, beta, np.zeros_like(odd)))
    F = bell(random, 5, 4, 300)[:, 1:3, 20:280]
    yield Case("apply parts", "apply_thresholds", (F[2], np.array([0.5, 1.0]), None, 2.0, np.zeros((2, 260))))
