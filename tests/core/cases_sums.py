"""Cases for `sums.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from shapes import signed_zeros, spread

SIZES = (0, 1, 3, 4, 7, 8, 9, 511, 512, 513, 4095, 4096, 4097, 70_001)


def cases() -> Iterator[Case]:
    random = np.random.RandomState(1)
    for n in SIZES:
        for kind, make in (
            ("usual", lambda *shape: random.uniform(-2, 2, size=shape)),
            ("wide", lambda *shape: spread(random, shape)),
            ("tiny", lambda *shape: spread(random, shape, -1074, -1000)),
            ("signed zeros", lambda *shape: signed_zeros(random, shape)),
        ):
            blocks = -(-n // 4096)
            for p, q in ((1, 1), (2, 3), (5, 4)):
                a, b, parts = make(p, n), make(q, n), np.zeros((blocks, p, q))
                yield Case(f"products {kind} {n} {p}x{q}", "block_products", (a, b, False, parts, 4096))
                yield Case(f"squares {kind} {n} {p}", "block_products", (a, a, True, np.zeros((blocks, p, p)), 4096))
                yield Case(f"dots {kind} {n} {p}", "block_dots", (a, make(p, n), np.empty((blocks, p)) * 0, 4096))
                yield Case(f"rows {kind} {n} {p}", "add_rows", (make(p), a, make(n)))
            values = make(n) if kind != "wide" else random.uniform(-2, 2, size=n)
            yield Case(f"units {kind} {n}", "count_units", (values, 2.0**20))
    strided = random.uniform(-2, 2, size=(4, 9000))[:, 100:8300]
    yield Case("dots of a slice", "block_dots", (strided, strided[::-1].copy(), np.zeros((3, 4)), 4096))
