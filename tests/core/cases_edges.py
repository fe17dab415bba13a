"""Cases for `edges.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case


def cases() -> Iterator[Case]:
    random = np.random.RandomState(5)
    for n, count in ((1, 0), (1, 3), (2, 5), (50, 40), (300, 3000), (5000, 20_000)):
        pairs = random.randint(0, n, size=(count, 2)).astype(np.int64)
        equal, other = np.ones(count), np.where(random.uniform(size=count) < 0.1, 0.0, random.uniform(size=count))
        for what, weights in (("none", np.empty(0)), ("equal", equal), ("different", other)):
            for bits, form in ((32, np.int32), (64, np.int64)):
                label = f"{count} pairs of {n} nodes, weights {what}, {bits} bits"
                yield Case(f"rows: {label}", f"rows_of_pairs{bits}", (pairs, weights, n))
                starts, neighbours, data = _rows(pairs, weights, n, form)
                yield Case(f"sorted: {label}", "sort_symmetric", (starts, neighbours, data))
                order = np.lexsort((np.arange(len(neighbours)), neighbours, np.repeat(np.arange(n), np.diff(starts))))
                ascending = neighbours[order], data[order] if len(data) else data
                for merging in (0, 1, 2):
                    yield Case(f"merged {merging}: {label}", "merge_entries", (starts, *ascending, merging))


def _rows(pairs, weights, n, form):
    """Return both directions of each edge, row by row, in the order of the pairs."""
    keep = pairs[:, 0] != pairs[:, 1]
    if len(weights):
        keep &= weights > 0
    both = np.stack([pairs[keep], pairs[keep][:, ::-1]], axis=1).reshape(-1, 2)
    data = np.repeat(weights[keep], 2) if len(weights) else np.empty(0)
    order = np.argsort(both[:, 0], kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(both[:, 0], minlength=n))]).astype(np.int64)
    return starts, both[order, 1].astype(form), data[order] if len(weights) else data
