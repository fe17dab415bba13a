"""Cases for `partitions.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from shapes import larger_graphs


def cases() -> Iterator[Case]:
    random = np.random.RandomState(6)
    # a tree of three cuts in the plane: partitions 0 .. 3
    cuts = (
        np.array([0, 1, 1]),
        np.array([0.5, 0.25, 0.75]),
        np.array([20, 7, 30]),
        np.array([[2, 1], [~1, ~0], [~3, ~2]]),
    )
    for n in (0, 1, 40, 70_000):
        points = random.uniform(size=(n, 2))
        points[::3] = np.round(points[::3] * 4) / 4  # ties
        yield Case(f"cuts of {n}", "walk_cuts", (points, np.arange(n), *cuts))
    for name, indptr, indices in larger_graphs():
        n = len(indptr) - 1
        nodes = np.repeat(np.arange(n, dtype=np.int32), np.diff(indptr))
        pairs = np.stack([nodes, indices], axis=1)[nodes < indices]
        for form in (np.uint16, np.uint32):
            owner, label = random.randint(0, 5, size=n).astype(form), f"{name}, {np.dtype(form).name}"
            for k, weights in enumerate((np.empty(0), random.uniform(size=len(pairs)))):
                yield Case(f"by owner, {'weighted' if k else 'plain'}: {label}", "sort_by_owner", (pairs, weights, owner, 5))
            for kind in (np.int32, np.int64):
                for depth, most in ((1, 10**9), (4, 50), (100, 10**9)):
                    yield Case(
                        f"ghosts {depth} {most} {np.dtype(kind).name}: {label}",
                        "count_ghosts",
                        (indptr.astype(kind), indices.astype(kind), owner, 3, np.full(n, -1, np.int32), depth, most),
                    )
        owned = np.flatnonzero(random.uniform(size=n) < 0.5).astype(np.int32)
        mixed = random.permutation(len(indices))
        ends = np.stack([nodes, indices], axis=1)[mixed]
        ends = ends[np.isin(ends[:, 0], owned)]
        bits = np.ones(1).view(np.uint64)
        for k, weights in enumerate((np.empty(0), random.uniform(size=len(ends)))):
            yield Case(f"placed, {'weighted' if k else 'plain'}: {name}", "place_entries", (owned, ends, weights))
        starts = indptr.astype(np.int64)
        yield Case(f"fingerprint of one weight: {name}", "fingerprint", (np.arange(n), starts, indices, bits))
        if len(indices) > 1:
            weights = random.uniform(size=len(indices)).view(np.uint64)
            yield Case(f"fingerprint of weights: {name}", "fingerprint", (np.arange(n), starts, indices, weights))
        local = np.sort(random.permutation(n)[: n // 2]).astype(np.int32)
        order = random.permutation(len(local)).astype(np.int64)
        lengths = np.diff(indptr)[local]
        position = np.empty(len(local), np.int64)
        position[order] = np.arange(len(local))  # row order[i] of the arguments is the row of node local[i]
        rows = np.concatenate([[0], np.cumsum(lengths[position])]).astype(np.int64)
        columns = [indices[indptr[i] : indptr[i + 1]] for i in local[position]]
        columns = np.concatenate([np.empty(0, np.int32), *columns]).astype(np.int32)
        for k, weights in enumerate((np.empty(0), random.uniform(size=len(columns)))):
            yield Case(f"local, {'weighted' if k else 'plain'}: {name}", "localize_rows", (local, order, rows, columns, weights))
