"""Cases for `bounding.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case


def cases() -> Iterator[Case]:
    random = np.random.RandomState(6)
    for n_units, n_cells, n_rows in (
        (1, 1, 0),
        (1, 1, 1),
        (3, 5, 40),
        (50, 30, 700),
        (400, 10_000, 3000),
        (2, 1000, 1500),
        (5, 2**40, 60),
    ):
        rows = random.randint(0, n_units, n_rows) * n_cells + random.randint(0, n_cells, n_rows)
        pairs, repeats = np.unique(rows, return_counts=True)
        for kind in ("random", "equal", "extreme"):
            keys = np.frombuffer(random.bytes(8 * n_units), dtype=np.uint64)
            if kind == "equal":
                keys = np.full(n_units, 7, np.uint64)
            elif kind == "extreme":
                keys = np.where(np.arange(n_units) % 2, np.uint64(2**64 - 1), np.uint64(0))
            for most in (1, 2, 4, 2**31 - 1):
                arguments = (pairs.astype(np.int64), repeats.astype(np.int64), keys, n_cells, most)
                yield Case(f"{n_units} units {n_cells} cells {n_rows} rows {kind} keys {most}", "first_cells", arguments)
