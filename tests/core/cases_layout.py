"""Cases for `layout.cpp`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from corpus import Case
from shapes import larger_graphs


def cases() -> Iterator[Case]:
    random = np.random.RandomState(2)
    for name, indptr, indices in larger_graphs():
        n = len(indptr) - 1
        for kind in (np.int32, np.int64):
            rows = indptr.astype(kind), indices.astype(kind)
            label = f"{name}, {np.dtype(kind).name}"
            yield Case(f"breadth first: {label}", "breadth_first", rows)
            yield Case(f"far ends: {label}", "far_ends", rows)
            order = random.permutation(n).astype(np.int64)
            lengths = np.diff(indptr).astype(np.int64)[order]
            new = np.empty(n, np.int64)
            new[order] = np.arange(n)
            for size in (1, 64, 1024):
                blocks = np.append(np.arange(0, n, size), n) if n else np.zeros(1, np.int64)
                runs = sorted_runs(indptr, order, blocks)
                yield Case(f"runs of {size}: {label}", "sort_runs", (rows[0], order, blocks))
                yield Case(f"renumbered by {size}: {label}", "renumber", (*rows, np.empty(0), *runs))
                yield Case(
                    f"renumbered with weights by {size}: {label}", "renumber", (*rows, random.uniform(size=len(indices)), *runs)
                )
            if n:
                yield Case(f"steps from one: {label}", "steps_from", (*rows, np.array([order[0]])))
            for per_row, most in ((1, 40), (2, 2**15 - 1), (4, 3)):
                is_long = lengths > 12
                yield Case(f"inside {per_row} {most}: {label}", "count_inside", (*rows, order, new, is_long, per_row, most))
                inside = np.where(is_long, 0, np.minimum(lengths, 4 * per_row - (lengths > 4 * per_row)))
                for form in (np.int16, np.int32):
                    out = np.zeros((per_row, n, 4), form)
                    yield Case(
                        f"quads {per_row} {most} {np.dtype(form).name}: {label}",
                        "fill_quads",
                        (*rows, order, new, inside, lengths, is_long, out),
                    )
                values = random.uniform(-2, 2, size=len(indices))
                yield Case(
                    f"values in quads {per_row} {most}: {label}",
                    "fill_quad_values",
                    (rows[0], values, order, inside, np.zeros((per_row, n, 4))),
                )
    for n in (0, 1, 1023, 1024, 5000):
        levels = np.unique(np.concatenate([[0], random.randint(0, n + 1, size=50), [n]])).astype(np.int64)
        for least in (1, 100, 1024):
            yield Case(f"cut {n} by {least}", "cut_levels", (levels, n, least))
        x, y = (random.randint(0, 2**k, size=n).astype(np.int32) for k in (3, 14))
        component = random.randint(0, 5, size=n).astype(np.int32)
        yield Case(f"largest of {n}", "largest_nodes", (x, component, 5))
        yield Case(f"Hilbert curve of {n}", "hilbert_places", (x, y, component, 5, 12))


def sorted_runs(indptr, order, blocks) -> tuple[np.ndarray, np.ndarray]:
    """Return (order, runs), with the rows of each block sorted by length."""
    lengths, orders, runs, place = np.diff(indptr).astype(np.int64), [np.empty(0, np.int64)], [np.empty((0, 4), np.int64)], 0
    for lo, hi in pairwise(blocks):
        block = order[lo:hi][np.argsort(lengths[order[lo:hi]], kind="stable")]
        orders.append(block)
        row = lo
        for length in np.unique(lengths[block]):
            count = int((lengths[block] == length).sum())
            runs.append(np.array([[row, row + count, length, place]], dtype=np.int64))
            row, place = row + count, place + count * length
    return np.concatenate(orders), np.concatenate(runs)
