"""Cases for `shrinkage.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from shapes import bell

BLOCK = 4096


def cases() -> Iterator[Case]:
    random = np.random.RandomState(4)
    for n in (0, 1, 3, 4, 7, 8, 9, 100, 4095, 4096, 4097, 17_000, 40_001):
        for kind in ("bell", "zeros", "far apart"):
            yield from _rows(random, f"{kind} {n}", kind, n)
        column = random.randint(0, 5, size=n).astype(np.int64)
        yield Case(f"spread {n}", "spread_means", (column, random.uniform(size=n), np.zeros((5, n))))
    w, scale, weights = (bell(random, 5, 5000)[1:4, 100:4700] for _ in range(3))
    thresholds, sizes = np.array([1.0, 0.3]), (np.abs(w), np.abs(scale))
    yield Case(
        "shrink parts",
        "shrink_rows",
        (*sizes, thresholds, weights, None, None, np.zeros((2, 3, 4600)), np.zeros((2, 2, 3)), BLOCK),
    )
    rows, out = bell(random, 3, 4, 4700)[:, 1:, 50:4650], np.zeros((3, 3, 4600))
    yield Case("moved parts", "add_moved", (*sizes, thresholds, bell(random, 2, 7)[:, 2:5], rows, out, *[None] * 6))


def _rows(random, label, kind, n):
    k, probes = 3, 4
    w, scale, weights = bell(random, k, n), random.uniform(0, 2, size=(k, n)), random.uniform(size=(k, n))
    if kind == "zeros":
        w = np.where(random.uniform(size=w.shape) < 0.3, -0.0, np.where(random.uniform(size=w.shape) < 0.3, 0.0, w))
        scale = np.where(random.uniform(size=w.shape) < 0.3, 0.0, scale)
    elif kind == "far apart":
        w, scale = (np.ldexp(part, random.randint(-300, 200, size=w.shape)) for part in (w, scale))
    thresholds = np.array([0.0, 0.4, 2.5])
    gate, z, slope, moves = random.uniform(size=n), bell(random, n), random.uniform(size=n), bell(random, k, n)
    smooth, shift, stretch = bell(random, probes, n), bell(random, probes), bell(random, probes)
    rows, a = bell(random, probes, k, n), bell(random, len(thresholds), k)
    a[:, 1], a[1, 2] = 0.0, -0.0
    gate_arguments = gate, z, slope, smooth, shift, stretch
    blocks = -(-n // BLOCK)
    kept, parts = np.zeros((len(thresholds), k, n)), np.zeros((blocks, len(thresholds), k))
    yield Case(f"shrink {label}", "shrink_rows", (w, scale, thresholds, weights, None, None, kept, parts, BLOCK))
    yield Case(f"shrink gated {label}", "shrink_rows", (w, scale, thresholds, weights, gate, moves, kept, parts, BLOCK))
    for name, height in (("", k), (" and added up", 1)):
        out = bell(random, probes, height, n)
        yield Case(f"moved{name} {label}", "add_moved", (w, scale, thresholds, a, rows, out, *[None] * 6))
        yield Case(f"moved gated{name} {label}", "add_moved", (w, scale, thresholds, a, rows, out, *gate_arguments))
    yield Case(f"moves {label}", "gate_moves", (moves, rows, z, slope, shift, stretch, np.zeros((k, n))))
