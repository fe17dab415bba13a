"""Sums that never depend on threads or partitions: fixed blocks of node numbers, combined pairwise.

Of arrays on a GPU they are taken there, in its own order; what comes out of a sum over nodes is a number, or NumPy's, but for those
that stay `there`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hushgraph.arrays import beside, on_device, on_host
from hushgraph.core import _loops
from hushgraph.kernels import gpu

BLOCK = 4096
STRETCH = 16 * BLOCK  # nodes whose rows are gathered at a time
DEVICE_STRETCH = 2**22  # likewise on a GPU
FAR = 10.0  # standard deviations of a signal between its mean and 0 from which on the mean is taken out first


def blocks(n: int) -> list[slice]:
    """The blocks of 0..n-1."""
    return [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]


def block_products(a: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
    """Inner products of the rows of (p, n) and (q, n), or of (p, n) with themselves: (p, q)."""
    return block_products_of(a.shape[1], lambda nodes: (a[:, nodes], None if b is None else b[:, nodes]))


def block_products_of(n: int, rows: Callable[[slice], tuple[np.ndarray, np.ndarray | None]]) -> np.ndarray:
    """The same of rows that need never exist as a whole: (a, b) = rows(nodes) for stretches of nodes."""
    if on_device(rows(slice(0, 0))[0]):
        return _products_on_device(n, rows)
    found = []
    for start in range(0, max(n, 1), STRETCH):
        a, b = rows(slice(start, min(start + STRETCH, n)))
        a, b = along_rows(a), None if b is None else along_rows(b)
        parts = np.zeros((len(blocks(a.shape[1])), len(a), len(a if b is None else b)))
        _loops.block_products(a, a if b is None else b, b is None, parts, BLOCK)
        found += list(parts)
    product = block_sum_of(found) if found else np.zeros((len(a), len(a if b is None else b)))
    return product if b is not None else np.tril(product) + np.tril(product, -1).T


def _products_on_device(n: int, rows) -> np.ndarray:
    """Longer stretches, since a GPU has more to do at a time."""
    total = None
    for start in range(0, max(n, 1), DEVICE_STRETCH):
        a, b = rows(slice(start, min(start + DEVICE_STRETCH, n)))
        a, b = a.astype(np.float64, copy=False), a if b is None else b
        part = on_host(a @ b.astype(np.float64, copy=False).T)
        total = part if total is None else total + part
    return np.asarray(total)


def sum_of_rows(shares: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """sum_k shares_k rows_k in ascending k: (k,) and (k, ...) -> (...), where BLAS has other bits on other numbers of threads.

    >>> sum_of_rows(np.array([0.5, 2.0]), np.array([[1.0, 3.0], [2.0, 0.0]]))
    array([4.5, 1.5])
    """
    if on_device(rows):
        return (beside(shares, rows) @ rows.reshape(len(rows), -1)).reshape(rows.shape[1:])
    out = np.zeros(rows[0].size)
    flat = np.ascontiguousarray(rows, dtype=np.float64).reshape(len(rows), rows[0].size)
    _loops.add_rows(np.ascontiguousarray(shares, dtype=np.float64), flat, out)
    return out.reshape(rows.shape[1:])


def block_dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """sum_i a_ki b_ki of each pair of rows, (k, n) and (k, n) -> (k,): blocks as in `block_sum`, at the speed of memory."""
    return on_host(dots_there(a, b))


def dots_there(a, b) -> Any:
    """The same; on a GPU they stay there, and nobody waits for them."""
    if on_device(a):
        return gpu.dots(a, b)
    a, b = (along_rows(part) for part in (a, b))
    parts = np.empty((len(blocks(a.shape[1])), len(a)))
    _loops.block_dots(a, b, parts, BLOCK)
    return np.asarray(block_sum_of(list(parts))) if len(parts) else np.zeros(len(a))


def sums_there(rows) -> Any:
    """sum_i a_ki of each row, (k, n) -> (k,), likewise."""
    return gpu.dots(rows) if on_device(rows) else block_sum(rows.T)


def variances_there(rows) -> Any:
    """Of each row, likewise."""
    apart = rows - (sums_there(rows) / max(rows.shape[1], 1))[:, None].astype(rows.dtype, copy=False)
    return dots_there(apart, apart) / max(rows.shape[1], 1)


def offset_of(mean: float, variance: float) -> float:
    """A round number near the mean of a signal that lies FAR standard deviations from 0 (kelvins, altitudes), otherwise 0.

    Polynomials spend their digits on such a level, and thresholds at 0 find nothing small. It is rounded so that sums in another order, of a
    GPU or over partitions, give the same number.

    >>> offset_of(273.1, 4.0), offset_of(5.0, 4.0)
    (273.09375, 0.0)
    """
    spread = float(np.sqrt(variance))
    if not abs(mean) > FAR * spread:
        return 0.0
    unit = 2.0 ** np.floor(np.log2(max(spread / 64, abs(mean) * 2.0**-40)))
    return float(np.rint(mean / unit) * unit)


def offsets_of(rows) -> np.ndarray:
    """`offset_of` each row."""
    means, variances = on_host(sums_there(rows)) / max(rows.shape[1], 1), on_host(variances_there(rows))
    return np.array([offset_of(float(mean), float(variance)) for mean, variance in zip(means, variances, strict=True)])


def shifted(rows, offsets: np.ndarray):
    """Rows plus a number each, in their dtype; the same array where all are 0."""
    return (
        rows if not offsets.any() else np.add(rows, beside(offsets[:, None], rows), dtype=np.float64).astype(rows.dtype, copy=False)
    )


def along_rows(rows: np.ndarray) -> np.ndarray:
    """float64 with neighbours in a row next to each other in memory: vectors are read from there without asking."""
    rows = np.asarray(rows, dtype=np.float64)
    return rows if rows.strides[-1] == rows.itemsize or rows.shape[-1] < 2 else np.ascontiguousarray(rows)


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
    if on_device(values):
        rows = values.reshape(len(values), -1).T
        return on_host(gpu.dots(rows)).reshape(values.shape[1:])
    values = np.asarray(values)
    parts = [values[nodes].sum(axis=0, dtype=np.float64) for nodes in blocks(len(values))] or [np.zeros(values.shape[1:])]
    return block_sum_of(parts)


# ---- whole numbers of units: sums that do not even depend on the order of their terms ------------------------------------


def unit_above(largest: float) -> float:
    """2^-32 of a power of two above `largest`, at least 2^-900: the high unit of terms up to that size. The low one is 2^-32 of it."""
    return max(float(np.ldexp(1.0, int(np.frexp(largest)[1]) - 32)), 2.0**-900)


def count_units(values: np.ndarray, unit: float) -> tuple[int, int]:
    """(high, low) units in the sum of the values, which add up over parts of a graph."""
    high, low = _loops.count_units(np.ascontiguousarray(values, dtype=np.float64), 1 / unit)
    return int(high), int(low)


def sum_of_units(high: int, low: int, unit: float) -> float:
    """The sum that was counted, rounded once."""
    return float(np.ldexp(float(high * 2**32 + low), -32)) * unit


def orderless_sum(values: np.ndarray) -> float:
    """A sum with the same bits in any order of its terms.

    >>> orderless_sum(np.array([0.1, 0.2, 0.3])) == orderless_sum(np.array([0.3, 0.1, 0.2]))
    True
    """
    unit = unit_above(float(np.abs(values).max(initial=0.0)))
    return sum_of_units(*count_units(values, unit), unit)
