"""Sums that never depend on threads, partitions or machines: fixed blocks of node numbers, combined pairwise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit, prange

from hushgraph.kernels.cpu import cores_for

BLOCK = 4096
UNTHREADED = 2**18  # products of fewer terms run on one thread


def blocks(n: int) -> list[slice]:
    """The blocks of 0..n-1."""
    return [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]


def block_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a' b for (n, p) and (n, q), the same bits whatever the threads of BLAS."""
    return block_product_of(len(a), lambda nodes: (a[nodes], b[nodes]))


def block_product_of(n: int, rows: Callable[[slice], tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """sum of a' b over blocks, (a, b) = rows(block), combined pairwise; neither need ever exist as a whole.

    Blocks are multiplied in stretches too small for BLAS to wake its threads, which costs more than they do while others wait.
    """
    parts = []
    for nodes in blocks(n):
        a, b = rows(nodes)
        stretch = max(32, min(BLOCK, UNTHREADED // max(a.shape[1] * b.shape[1], 1)))
        parts.append(sum(a[k : k + stretch].T @ b[k : k + stretch] for k in range(0, len(a), stretch)))
    return block_sum_of(parts)


def block_dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """sum_i a_ki b_ki of each pair of rows, (k, n) and (k, n) -> (k,): blocks as in `block_sum`, at the speed of memory."""
    parts = np.empty((len(blocks(a.shape[1])), len(a)))
    with cores_for(a.size):
        _dots(a, b, parts)
    return np.asarray(block_sum_of(list(parts))) if len(parts) else np.zeros(len(a))


@njit(cache=True, parallel=True)
def _dots(a, b, parts):
    for block in prange(len(parts)):
        start, end = block * BLOCK, min((block + 1) * BLOCK, a.shape[1])
        for k in range(len(a)):
            x, y = a[k, start:end], b[k, start:end]
            s, t, u, v, i = 0.0, 0.0, 0.0, 0.0, 0  # four sums, so that none waits for another
            while i + 4 <= len(x):
                s += x[i] * y[i]
                t += x[i + 1] * y[i + 1]
                u += x[i + 2] * y[i + 2]
                v += x[i + 3] * y[i + 3]
                i += 4
            while i < len(x):
                s += x[i] * y[i]
                i += 1
            parts[block, k] = (s + t) + (u + v)


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
    parts = [values[nodes].sum(axis=0, dtype=np.float64) for nodes in blocks(len(values))] or [np.zeros(values.shape[1:])]
    return block_sum_of(parts)
