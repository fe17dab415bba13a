"""The recurrence in plain SciPy, one term after the other: the reference for tests of `cpu` and `gpu`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse


def prepare(adjacency: Any, diagonal: np.ndarray) -> Any:
    """Return the sparse Laplacian itself."""
    return (sparse.diags_array(diagonal) - adjacency).tocsr()


def forward(layout: Any, coefficients: np.ndarray, signals: np.ndarray, scale: float) -> np.ndarray:
    """Return sum_k theta_jk T_k(scale L - I) x for each signal x, by T_k = 2 (scale L - I) T_{k-1} - T_{k-2}."""
    terms = terms_of(layout, signals.T, scale, coefficients.shape[1])
    bands: Any = sum(coefficients[:, k, None, None] * term for k, term in enumerate(terms))
    return np.moveaxis(bands, 2, 0).astype(signals.dtype)


def inverse(layout: Any, coefficients: np.ndarray, bands: np.ndarray, scale: float) -> np.ndarray:
    """Return the sum over j of the same polynomials applied to each band, one band after the other."""
    total = np.zeros((bands.shape[0], bands.shape[2]))
    for j in range(bands.shape[1]):
        total += forward(layout, coefficients[j : j + 1], bands[:, j].astype(np.float64), scale)[:, 0]
    return total.astype(bands.dtype)


def terms_of(laplacian: Any, x: np.ndarray, scale: float, count: int) -> Iterator[np.ndarray]:
    """Yield T_k(scale L - I) x for k below count; a column of x is a signal."""
    before, now = None, x.astype(np.float64)
    for k in range(count):
        yield now
        shifted = scale * (laplacian @ now) - now
        before, now = now, shifted if k == 0 else 2 * shifted - before
