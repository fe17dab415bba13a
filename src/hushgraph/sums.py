"""Sums that never depend on threads, partitions or machines: fixed blocks of node numbers, combined pairwise."""

from __future__ import annotations

import numpy as np

BLOCK = 4096


def block_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a' b for (n, p) and (n, q): products of blocks, combined pairwise, so that threads of BLAS never change a bit."""
    return block_sum_of([a[i : i + BLOCK].T @ b[i : i + BLOCK] for i in range(0, len(a), BLOCK)])


def block_sum_of(parts: list) -> np.ndarray:
    """The sum of the blocks' parts, pairwise."""
    while len(parts) > 1:
        parts = [sum(parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return parts[0]


def block_sum(values) -> np.ndarray:
    """Sum over the first axis in float64, (n,) -> () or (n, ...) -> (...).

    >>> float(block_sum(np.full(10_000, 0.1, dtype=np.float32)).round(3))
    1000.0
    """
    values = np.asarray(values)
    starts = range(0, len(values), BLOCK)
    parts = [values[i : i + BLOCK].sum(axis=0, dtype=np.float64) for i in starts] or [np.zeros(values.shape[1:])]
    return block_sum_of(parts)
