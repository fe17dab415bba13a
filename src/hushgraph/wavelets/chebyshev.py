"""Chebyshev approximation of functions on [0, upper]: coefficients, Jackson damping, values (paper, Sec. II-B).

rho(x) is approximated by sum_i g_i theta_i T_i(2 x / upper - 1). Nothing here depends on a graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import fft

from hushgraph._errors import InputError, InputTypeError
from hushgraph._validation import checked_count, checked_number, choose

HIGHEST_DEGREE = 100_000


def checked_degree(degree: Any, least: int = 0, *, note: str = "") -> int:
    """Return the degree of a polynomial as an int."""
    checked_count("degree", degree, least, note=note)
    return checked_count("degree", degree, least, HIGHEST_DEGREE, note=note)


def jackson_damping(degree: int) -> np.ndarray:
    """Return the factors g_i^K, i = 0..K, that damp the Gibbs oscillations (paper, Sec. II-B).

    Parameters
    ----------
    degree : int
        Degree K of the polynomial.

    Returns
    -------
    numpy.ndarray
        Factors, shape (K + 1,).

    Examples
    --------
    >>> jackson_damping(2).round(3)
    array([1.   , 0.707, 0.25 ])
    """
    degree = checked_degree(degree)
    i, alpha = np.arange(degree + 1), np.pi / (degree + 2)
    return np.sin((i + 1) * alpha) / ((degree + 2) * np.sin(alpha)) + (1 - (i + 1) / (degree + 2)) * np.cos(i * alpha)


def chebyshev_points(count: int, *, upper: float) -> np.ndarray:
    """Return the roots of T_count, mapped to [0, upper]."""
    return upper / 2 * (1 + np.cos(np.pi * (np.arange(count) + 0.5) / count))


def chebyshev_coefficients(
    function: Callable[[np.ndarray], npt.ArrayLike],
    degree: int,
    *,
    upper: float,
    damping: Literal["jackson"] | None = None,
) -> np.ndarray:
    """Return the Chebyshev coefficients theta_0..theta_K of functions on [0, upper].

    Kinks need more quadrature nodes than coefficients: at least 8 (K + 1), here 16 (K + 1) and at least 4,096, rounded to a fast
    transform length.

    Parameters
    ----------
    function : callable
        Function of (points,) that returns the values of all functions, (points,) or (n_functions, points).
    degree : int
        Degree K.
    upper : float
        Right end of the interval.
    damping : {None, "jackson"}
        Multiply the coefficients by `jackson_damping`.

    Returns
    -------
    numpy.ndarray
        Coefficients, shape (n_functions, K + 1).

    Examples
    --------
    >>> chebyshev_coefficients(lambda x: x, 2, upper=2.0).round(6)
    array([[ 1.,  1., -0.]])
    """
    degree = checked_degree(degree)
    upper = checked_number("upper", upper, "a finite number above 0, the right end of the interval", above=0)
    choose("damping", damping, (None, "jackson"))
    nodes = fft.next_fast_len(max(16 * (degree + 1), 4096), real=True)
    theta = fft.dct(_sampled(function, chebyshev_points(nodes, upper=upper)), type=2, axis=1)[:, : degree + 1] / nodes
    theta[:, 0] /= 2
    return theta * jackson_damping(degree) if damping == "jackson" else theta


def _sampled(function: Callable[[np.ndarray], npt.ArrayLike], points: np.ndarray) -> np.ndarray:
    """Return the functions at the points, (n_functions, points)."""
    if not callable(function):
        raise InputTypeError.about(argument="function", expected="callable, of points to values", got=type(function).__name__)
    values = np.atleast_2d(function(points))
    if values.ndim != 2 or values.shape[1] != len(points) or values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        expected = f"finite real numbers, one per point: expected shape ({len(points)},) or (n_functions, {len(points)})"
        got = f"dtype {values.dtype} and shape {values.shape}"
        raise InputError.about(argument="function", verb="return", expected=expected, got=got)
    return values


def chebyshev_values(theta: np.ndarray, x: npt.ArrayLike, *, upper: float) -> np.ndarray:
    """Return sum_i theta_i T_i(2 x / upper - 1) at the points x, shape (n_functions, len(x))."""
    y = 2 * np.asarray(x, dtype=float) / upper - 1
    return np.polynomial.chebyshev.chebval(y, np.ascontiguousarray(theta.T))


def frame_bounds(theta: np.ndarray) -> tuple[float, float]:
    """Return the frame bounds: proven bounds A and B on sum_j rho_j(x)^2 over the whole interval.

    The sum is a polynomial of degree 2K, evaluated at N = 64 K Chebyshev points (by a cosine transform). Between them a
    polynomial of that degree exceeds its range there by at most the factor 1 / cos(pi K / N) (Ehlich and Zeller), about 0.1 %.
    """
    degree = max(theta.shape[1] - 1, 1)
    count = 64 * degree
    padded = np.zeros((len(theta), count))
    padded[:, : theta.shape[1]] = theta
    padded[:, 1:] /= 2
    total = np.sum(fft.dct(padded, type=3, axis=1) ** 2, axis=0)
    middle, half = (total.max() + total.min()) / 2, (total.max() - total.min()) / 2
    reach = half / np.cos(np.pi * degree / count)
    return float(middle - reach), float(middle + reach)
