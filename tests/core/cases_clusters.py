"""Cases for `clusters.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from shapes import graphs, lattice, rows_of


def cases() -> Iterator[Case]:
    random = np.random.RandomState(5)
    many = graphs(random)
    many |= {"large": lattice(120, 90), "scattered": rows_of(random.randint(0, 5000, size=(2600, 2)), 5000)}
    for name, (indptr, indices) in many.items():
        for size in sorted({1, 2, 3, 5, 8, 16, 100, max(len(indptr) - 1, 1)}):
            for dtype in (np.int32, np.int64):
                yield Case(f"{name} {size} {dtype.__name__}", "grow_balls", (indptr.astype(dtype), indices.astype(dtype), size))
