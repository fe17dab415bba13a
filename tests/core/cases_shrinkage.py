"""Cases for `shrinkage.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case

BLOCK = 4096


def cases() -> Iterator[Case]:
    random = np.random.RandomState(4)
    for n in (0, 1, 3, 4, 7, 8, 9, 100, 4095, 4096, 4097, 17_000, 40_001):
        for kind in ("bell", "zeros", "far apart"):
            yield from _rows(random, f"{kind} {n}", kind, n)
        column = random.randint(0, 5, size=n).astype(np.int64)
        yield Case(f"spread {n}", "spread_means", (column, random.uniform(size=n), np.zeros((5, n))))
    w, scale, weights = (_bell(random, 5, 5000)[1:4, 100:4700] for _ in range(3))
    thresholds, inside = np.array([1.0, 0.3]), (np.abs(w), np.abs(scale))
    yield Case(
        "shrink parts",
        "shrink_rows",
        (*inside, thresholds, weights, None, None, np.zeros((2, 3, 4600)), np.zeros((2, 2, 3)), BLOCK),
    )
    rows, out = _bell(random, 3, 4, 4700)[:, 1:, 50:4650], np.zeros((3, 3, 4600))
    yield Case("moved parts", "add_moved", (*inside, thresholds, _bell(random, 2, 7)[:, 2:5], rows, out, *[None] * 6))


def _bell(random, *shape):
    """About normal, from sums and no other function: the same numbers on every machine."""
    total = random.uniform(-1, 1, size=shape)
    for _ in range(5):
        total = total + random.uniform(-1, 1, size=shape)
    return total


def _rows(random, label, kind, n):
    k, probes = 3, 4
    w, scale, weights = _bell(random, k, n), random.uniform(0, 2, size=(k, n)), random.uniform(size=(k, n))
    if kind == "zeros":
        w = np.where(random.uniform(size=w.shape) < 0.3, -0.0, np.where(random.uniform(size=w.shape) < 0.3, 0.0, w))
        scale = np.where(random.uniform(size=w.shape) < 0.3, 0.0, scale)
    elif kind == "far apart":
        w, scale = (np.ldexp(part, random.randint(-300, 200, size=w.shape)) for part in (w, scale))
    thresholds = np.array([0.0, 0.4, 2.5])
    gate, z, slope, moves = random.uniform(size=n), _bell(random, n), random.uniform(size=n), _bell(random, k, n)
    smooth, shift, stretch = _bell(random, probes, n), _bell(random, probes), _bell(random, probes)
    rows, a = _bell(random, probes, k, n), _bell(random, len(thresholds), k)
    a[:, 1], a[1, 2] = 0.0, -0.0
    behind = gate, z, slope, smooth, shift, stretch
    blocks = -(-n // BLOCK)
    kept, parts = np.zeros((len(thresholds), k, n)), np.zeros((blocks, len(thresholds), k))
    yield Case(f"shrink {label}", "shrink_rows", (w, scale, thresholds, weights, None, None, kept, parts, BLOCK))
    yield Case(f"shrink gated {label}", "shrink_rows", (w, scale, thresholds, weights, gate, moves, kept, parts, BLOCK))
    for name, height in (("", k), (" and added up", 1)):
        out = _bell(random, probes, height, n)
        yield Case(f"moved{name} {label}", "add_moved", (w, scale, thresholds, a, rows, out, *[None] * 6))
        yield Case(f"moved gated{name} {label}", "add_moved", (w, scale, thresholds, a, rows, out, *behind))
    yield Case(f"moves {label}", "gate_moves", (moves, rows, z, slope, shift, stretch, np.zeros((k, n))))
