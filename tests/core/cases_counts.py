"""Cases for `counts.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from shapes import spread


def cases() -> Iterator[Case]:
    random = np.random.RandomState(6)
    for n in (0, 1, 7, 8, 9, 300, 1700):
        for points in (1, 2, 5, 90):
            for kind in ("plain", "zeros", "wide", "tiny"):
                yield from sums(f"{n} {points} {kind}", random, n, points, kind)
    for n in (0, 1, 5, 2000):  # few different arguments of exp, for which the C libraries of all machines agree
        grid = np.concatenate([[0], random.randint(1, 4, size=80).cumsum()]) / 2
        for kind, y in {
            "usual": random.randint(0, 120, size=n) / 2,
            "below": random.choice([-5.0, -16.0], size=n),
            "on the grid": grid[random.randint(0, 81, size=n)],
            "zeros": np.where(random.uniform(size=n) < 0.5, -0.0, 0.0),
            "far": np.ldexp(random.choice([-1.0, 1.0], size=n), random.randint(3, 400, size=n)),
        }.items():
            for scale, sigma in {"even": np.full(n, 4.0), "uneven": np.ldexp(1.0, random.randint(-1, 3, size=n))}.items():
                first, starts = stretches(random, n, len(grid))
                yield Case(f"likelihood {n} {kind} {scale}", "likelihood_values", (y, sigma, grid, first, starts))


def stretches(random: np.random.RandomState, n: int, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for each node the first of its grid points, and the starts of its values."""
    first = random.randint(0, points, size=n)
    sizes = 1 + (random.uniform(size=n) * (points - first)).astype(np.int64).clip(None, points - first - 1)
    return first.astype(np.int64), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def sums(label: str, random: np.random.RandomState, n: int, points: int, kind: str) -> Iterator[Case]:
    """Yield all sums over the grid."""
    first, starts = stretches(random, n, points)
    values, table = random.uniform(size=starts[-1]), random.uniform(size=(5, points))
    if kind == "zeros":
        values[random.uniform(size=len(values)) < 0.5] = 0.0
        table[random.uniform(size=table.shape) < 0.5] = 0.0
    elif kind == "wide":
        values, table = np.abs(spread(random, len(values))), np.abs(spread(random, table.shape))
    elif kind == "tiny":
        values, table = np.abs(spread(random, len(values), -1074, -400)), np.abs(spread(random, table.shape, -1074, -400))
    low, share = random.randint(0, 4, size=n).astype(np.int64), random.uniform(-0.2, 1.2, size=n).clip(0, 1)
    grid, plain = random.uniform(0, 9, size=points).cumsum(), random.uniform(size=n) < 0.2
    yield Case(f"evidence {label}", "sum_evidence", (values, starts, first, table, low, share))
    yield Case(f"moments {label}", "sum_moments", (values, starts, first, grid, table, low, share))
    yield Case(f"expected {label}", "count_expected", (values, starts, first, table, low, share, plain, 1e-280))
