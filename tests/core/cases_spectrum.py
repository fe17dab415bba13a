"""Cases for `spectrum.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from cases_layout import sorted_runs
from corpus import Case
from shapes import larger_graphs


def cases() -> Iterator[Case]:
    random = np.random.RandomState(4)
    for name, indptr, indices in larger_graphs():
        n = len(indptr) - 1
        blocks = np.append(np.arange(0, n, 64), n) if n else np.zeros(1, np.int64)
        w, v, before = (random.uniform(-2, 2, size=n) for _ in range(3))
        yield Case(f"Lanczos: {name}", "next_lanczos_vector", (blocks, w, v, before, 0.3, -1.7))
        order, runs = sorted_runs(indptr, random.permutation(n).astype(np.int64), blocks)
        for kind in (np.int32, np.int64):
            rows, label = (indptr.astype(kind), indices.astype(kind)), f"{name}, {np.dtype(kind).name}"
            for longest in (2, 64):
                for what, share in (("counted", None), ("shared", _symmetric(indptr, indices))):
                    near = 1 + 0.5 * random.uniform(size=n)
                    yield Case(
                        f"triangles {what} {longest}: {label}",
                        "sum_triangles",
                        (*rows, near, share, np.zeros(len(indices)), longest),
                    )
            taken = np.where(_symmetric(indptr, indices) < 0.5, _symmetric(indptr, indices), 0.0)
            for what, weights in (("one weight", np.array([0.7])), ("weights", random.uniform(0.5, 2, size=len(indices)))):
                if len(weights):
                    yield Case(
                        f"taken out of {what}: {label}",
                        "take_out",
                        (rows[0], weights, taken, order, runs, random.uniform(size=n), 2.0**-44),
                    )


def _symmetric(indptr, indices) -> np.ndarray:
    """Return numbers between 0 and 1 that are equal for both directions of an edge."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    low, high = np.minimum(rows, indices), np.maximum(rows, indices)
    return ((low * 7919 + high * 104_729) % 1009 + 1) / 1010
