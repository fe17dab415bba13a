"""Sums that never depend on threads or partitions: fixed blocks of node numbers, combined pairwise.

Sums of CuPy arrays are computed on their GPU, in another fixed order. Their results are numbers or NumPy arrays, except for those of
`rowwise_dots`, `rowwise_sums` and `rowwise_variances`, which stay on the GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hushgraph._arrays import on_device, on_host, placed_like
from hushgraph.core import _loops, gpu

BLOCK = 4096
STRETCH = 16 * BLOCK  # nodes whose rows are gathered at a time
DEVICE_STRETCH = 2**22  # likewise on a GPU
FAR = 10.0  # a mean this many standard deviations from 0 is subtracted first


def blocks(n: int) -> list[slice]:
    """Return the blocks of 0..n-1."""
    return [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]


def block_products(a: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
    """Return the inner products of the rows of (p, n) and (q, n), or of (p, n) with themselves: (p, q)."""
    return block_products_of(a.shape[1], lambda nodes: (a[:, nodes], None if b is None else b[:, nodes]))


def block_products_of(n: int, rows: Callable[[slice], tuple[np.ndarray, np.ndarray | None]]) -> np.ndarray:
    """Return `block_products` of rows that never exist as a whole: (a, b) = rows(nodes) for stretches of nodes."""
    if on_device(rows(slice(0, 0))[0]):
        return _products_on_device(n, rows)
    block_parts: list[np.ndarray] = []
    for start in range(0, max(n, 1), STRETCH):
        a, b = rows(slice(start, min(start + STRETCH, n)))
        a, b = along_rows(a), None if b is None else along_rows(b)
        parts = np.zeros((len(blocks(a.shape[1])), len(a), len(a if b is None else b)))
        _loops.block_products(a, a if b is None else b, b is None, parts, BLOCK)
        block_parts += list(parts)
    product = block_sum_of(block_parts) if block_parts else np.zeros((len(a), len(a if b is None else b)))
    return product if b is not None else np.tril(product) + np.tril(product, -1).T


def _products_on_device(n: int, rows: Callable[[slice], tuple[Any, Any]]) -> np.ndarray:
    """Return the inner products on a GPU, in longer stretches, which use all of it."""
    total = None
    for start in range(0, max(n, 1), DEVICE_STRETCH):
        a, b = rows(slice(start, min(start + DEVICE_STRETCH, n)))
        a, b = a.astype(np.float64, copy=False), a if b is None else b
        part = on_host(a @ b.astype(np.float64, copy=False).T)
        total = part if total is None else total + part
    return np.asarray(total)


def sum_of_rows(shares: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return sum_k shares_k rows_k in ascending k, (k,) and (k, ...) -> (...); the bits of BLAS would depend on its threads.

    >>> sum_of_rows(np.array([0.5, 2.0]), np.array([[1.0, 3.0], [2.0, 0.0]]))
    array([4.5, 1.5])
    """
    if on_device(rows):
        return (placed_like(shares, rows) @ rows.reshape(len(rows), -1)).reshape(rows.shape[1:])
    out = np.zeros(rows[0].size)
    flat = np.ascontiguousarray(rows, dtype=np.float64).reshape(len(rows), rows[0].size)
    _loops.add_rows(np.ascontiguousarray(shares, dtype=np.float64), flat, out)
    return out.reshape(rows.shape[1:])


def block_dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return sum_i a_ki b_ki of each pair of rows, (k, n) and (k, n) -> (k,): blocks as in `block_sum`, at the speed of memory."""
    return on_host(rowwise_dots(a, b))


def rowwise_dots(a: Any, b: Any) -> Any:
    """Return `block_dots`; results on a GPU stay there, and the host does not wait for them."""
    if on_device(a):
        return gpu.dots(a, b)
    a, b = (along_rows(part) for part in (a, b))
    parts = np.empty((len(blocks(a.shape[1])), len(a)))
    _loops.block_dots(a, b, parts, BLOCK)
    return np.asarray(block_sum_of(list(parts))) if len(parts) else np.zeros(len(a))


def rowwise_sums(rows: Any) -> Any:
    """Return sum_i a_ki of each row, (k, n) -> (k,); results on a GPU stay there."""
    return gpu.dots(rows) if on_device(rows) else block_sum(rows.T)


def rowwise_variances(rows: Any) -> Any:
    """Return the variance of each row; results on a GPU stay there."""
    deviations = rows - (rowwise_sums(rows) / max(rows.shape[1], 1))[:, None].astype(rows.dtype, copy=False)
    return rowwise_dots(deviations, deviations) / max(rows.shape[1], 1)


def offset_of(mean: float, variance: float) -> float:
    """Return a round number near the mean of a signal if the mean is FAR standard deviations from 0 (kelvins, altitudes), otherwise 0.

    With such a level polynomials lose digits, and no coefficient is small enough to be thresholded. The number is rounded so that sums in
    another order, of a GPU or over partitions, give the same number.

    >>> offset_of(273.1, 4.0), offset_of(5.0, 4.0)
    (273.09375, 0.0)
    """
    spread = float(np.sqrt(variance))
    if not abs(mean) > FAR * spread:
        return 0.0
    unit = 2.0 ** np.floor(np.log2(max(spread / 64, abs(mean) * 2.0**-40)))
    return float(np.rint(mean / unit) * unit)


def offsets_of(rows: Any) -> np.ndarray:
    """Return `offset_of` each row."""
    means, variances = on_host(np.stack([rowwise_sums(rows) / max(rows.shape[1], 1), rowwise_variances(rows)]))
    return np.array([offset_of(float(mean), float(variance)) for mean, variance in zip(means, variances, strict=True)])


def shifted(rows: Any, offsets: np.ndarray) -> Any:
    """Return each row plus its offset, in the dtype of the rows; the same array if all offsets are 0."""
    if not offsets.any():
        return rows
    return np.add(rows, placed_like(offsets[:, None], rows), dtype=np.float64).astype(rows.dtype, copy=False)


def along_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows as float64 with the values of a row next to each other in memory, which the compiled loops rely on."""
    rows = np.asarray(rows, dtype=np.float64)
    return rows if rows.strides[-1] == rows.itemsize or rows.shape[-1] < 2 else np.ascontiguousarray(rows)


def block_sum_of(parts: list) -> np.ndarray:
    """Return the sum of the parts of blocks, pairwise."""
    while len(parts) > 1:
        parts = [sum(parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return parts[0]


def block_sum(values: Any) -> np.ndarray:
    """Return the sum over the first axis in float64, (n,) -> () or (n, ...) -> (...).

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
    """Return 2^-32 of a power of two above `largest`, at least 2^-900: the high unit of terms up to that size. The low unit is 2^-32 of it."""
    return max(float(np.ldexp(1.0, int(np.frexp(largest)[1]) - 32)), 2.0**-900)


def count_units(values: np.ndarray, unit: float) -> tuple[int, int]:
    """Return the (high, low) units in the sum of the values; they can be added over parts of a graph."""
    high, low = _loops.count_units(np.ascontiguousarray(values, dtype=np.float64), 1 / unit)
    return int(high), int(low)


def sum_of_units(high: int, low: int, unit: float) -> float:
    """Return the sum of these units, rounded once."""
    return float(np.ldexp(float(high * 2**32 + low), -32)) * unit


def orderless_sum(values: np.ndarray) -> float:
    """Return the sum, with the same bits in any order of its terms.

    >>> orderless_sum(np.array([0.1, 0.2, 0.3])) == orderless_sum(np.array([0.3, 0.1, 0.2]))
    True
    """
    unit = unit_above(float(np.abs(values).max(initial=0.0)))
    return sum_of_units(*count_units(values, unit), unit)
