"""Partition of unity on [0, lambda_max]: plateau functions omega and the band functions psi_j (paper, Sec. II-A).

psi_0(x) = omega(x), psi_j(x) = omega(b^-j x) - omega(b^(-j+1) x), j = 1..J, J = floor(log lambda_max / log b) + 2.
Nothing here depends on a graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from hushgraph._errors import InputError
from hushgraph._validation import as_number, checked_count, checked_number, checked_real_array, choose, shown

Plateau = Literal["linear", "smooth", "c3", "meyer"]


def linear_plateau(x: npt.ArrayLike, *, base: float = 2.0) -> np.ndarray:
    """Return the piecewise linear omega: 1 up to 1/b, 0 from 1 on.

    Parameters
    ----------
    x : array_like
        Points.
    base : float
        Ratio b > 1 between scales.

    Returns
    -------
    numpy.ndarray
        Values in [0, 1], of the shape of x.
    """
    return 1 - _ramp(x, base)


def smooth_plateau(x: npt.ArrayLike, *, c: float = 0.5) -> np.ndarray:
    """Return the C-infinity function h_c(x) = g_c(x + 1) g_c(1 - x): 1 on [0, 1 - c], 0 from 1 on.

    A partition of unity needs c <= 1 - 1/b; the paper's c = 1 is only good for its figure.

    Parameters
    ----------
    x : array_like
        Points.
    c : float
        Width of the slope, above 0.

    Returns
    -------
    numpy.ndarray
        Values in [0, 1], of the shape of x.
    """
    x, c = checked_real_array("x", x).astype(np.float64), checked_number("c", c, "a finite number above 0", above=0)
    return _smooth_step(x + 1, c) * _smooth_step(1 - x, c)


def c3_plateau(x: npt.ArrayLike, *, base: float = 2.0) -> np.ndarray:
    """Return the three times differentiable polynomial omega = 1 - S(u), S = 35u^4 - 84u^5 + 70u^6 - 20u^7.

    Parameters
    ----------
    x : array_like
        Points.
    base : float
        Ratio b > 1 between scales.

    Returns
    -------
    numpy.ndarray
        Values in [0, 1], of the shape of x.
    """
    return 1 - _polynomial_step(_ramp(x, base))


def meyer_plateau(x: npt.ArrayLike, *, base: float = 2.0) -> np.ndarray:
    """Return Meyer's omega = cos^2(pi/2 S(u)): its square root is smooth, so its polynomials converge fastest.

    Parameters
    ----------
    x : array_like
        Points.
    base : float
        Ratio b > 1 between scales.

    Returns
    -------
    numpy.ndarray
        Values in [0, 1], of the shape of x.
    """
    return np.cos(np.pi / 2 * _polynomial_step(_ramp(x, base))) ** 2


def plateau_function(
    plateau: Plateau = "linear", *, base: float = 2.0, c: float | None = None
) -> Callable[[npt.ArrayLike], np.ndarray]:
    """Return the function omega of that name; `c` is the width of the smooth plateau's slope, 1 - 1/b by default."""
    base = checked_base(base)
    choose("plateau", plateau, get_args(Plateau))
    if c is not None and plateau != "smooth":
        got, text = f"c={shown(c)} with plateau={plateau!r}", "c belongs to plateau='smooth' only"
        raise InputError.about(argument="c", expected="None, unless plateau='smooth'", got=got, text=f"{text}; got {got}")
    if plateau == "smooth":
        widest = 1 - 1 / base
        width = widest if c is None else as_number(c)
        if not 0 < width <= widest:
            expected = f"in (0, 1 - 1/base] = (0, {widest:g}] for a partition of unity"
            raise InputError.about(argument="c", expected=expected, got=shown(c))
        return lambda x: smooth_plateau(x, c=width)
    function = {"linear": linear_plateau, "c3": c3_plateau, "meyer": meyer_plateau}[plateau]
    return lambda x: function(x, base=base)


def count_scales(lambda_max: float, *, base: float = 2.0) -> int:
    """Return the number of scales J + 1, J = floor(log_b lambda_max) + 2; a top scale that would be empty is left out.

    The floor is computed by powers of b, because a quotient of logarithms is wrong at exact powers.

    Parameters
    ----------
    lambda_max : float
        Largest eigenvalue of the Laplacian.
    base : float
        Ratio b > 1 between scales.

    Returns
    -------
    int
        Number of scales.

    Examples
    --------
    >>> [count_scales(x) for x in (0, 0.3, 7.918, 8, 8.1)], count_scales(1000, base=10)
    ([1, 1, 5, 5, 6], 5)
    """
    base = checked_base(base)
    lambda_max = checked_number("lambda_max", lambda_max, "finite and at least 0", least=0)
    checked_number("lambda_max", lambda_max, "at most 1e200 in size; rescale the edge weights", most=1e200)
    if lambda_max == 0:
        return 1
    exponent = round(np.log(lambda_max) / np.log(base))
    while base**exponent > lambda_max:
        exponent -= 1
    while base ** (exponent + 1) <= lambda_max:
        exponent += 1
    empty_top = lambda_max <= base**exponent * (1 + 1e-9)
    return max(0, exponent + 2 - empty_top) + 1


def last_step_below(value: float, base: float) -> float:
    """Return the number above which all eigenvalues up to `value`, a bound on them, make the same number of scales.

    >>> [round(last_step_below(x, 2.0), 6) for x in (8.0, 9.0)], count_scales(4.1), count_scales(8.0), count_scales(8.1)
    ([4.0, 8.0], 5, 5, 6)
    """
    step = 1.0
    while step * base * (1 + 1e-9) < value:
        step *= base
    return step * (1 + 2.5e-9) if value > step else np.inf


def partition(
    x: npt.ArrayLike,
    *,
    n_scales: int,
    plateau: Plateau = "linear",
    base: float = 2.0,
    c: float | None = None,
    low_scales: int = 0,
) -> np.ndarray:
    """Return the band functions psi_0..psi_J at the points x.

    The last band takes all that lies above the others, so the sum is 1 for every x >= 0; on [0, b^(J-1)], which
    contains the spectrum, this is the paper's psi_J.

    Parameters
    ----------
    x : array_like
        Points of at least 0.
    n_scales : int
        Number of bands J + 1.
    plateau : {"linear", "smooth", "c3", "meyer"}
        The function omega.
    base : float
        Ratio b > 1 between scales.
    c : float, optional
        Width of the slope of plateau="smooth", at most 1 - 1/b, which is the default.
    low_scales : int
        Number m of extra bands below the paper's lowest: the partition is evaluated at b^m x.

    Returns
    -------
    numpy.ndarray
        Values, shape (n_scales, len(x)).

    Examples
    --------
    >>> partition([0.0, 0.75, 3.0], n_scales=4).round(3)
    array([[1. , 0.5, 0. ],
           [0. , 0.5, 0. ],
           [0. , 0. , 0.5],
           [0. , 0. , 0.5]])
    """
    omega = plateau_function(plateau, base=base, c=c)
    n_scales, low_scales = checked_count("n_scales", n_scales, 1), checked_low_scales(low_scales, base)
    with np.errstate(over="ignore"):  # infinite lies above all bands, like anything large
        points = checked_real_array("x", x).astype(np.float64) * float(base) ** low_scales
    last = np.where(np.isnan(points), points, 1.0)
    below = np.array([omega(points * float(base) ** -j) for j in range(n_scales - 1)] + [last])
    return np.diff(below, axis=0, prepend=0.0)


def checked_base(base: float) -> float:
    """Return `base` as a float above 1; close to 1 there would be too many scales."""
    checked_number("base", base, "a finite number above 1", above=1)
    return checked_number("base", base, "at least 1.01 (next to 1 there are too many scales)", least=1.01)


def checked_low_scales(low_scales: int, base: float) -> int:
    """Return `low_scales` as a number of extra bands: at most 64, and base**low_scales at most 1e100."""
    return checked_count("low_scales", low_scales, 0, min(64, int(np.log(1e100) / np.log(base))))


def _ramp(x: npt.ArrayLike, base: float) -> np.ndarray:
    """Return u, which rises from 0 at x = 1/b to 1 at x = 1."""
    base = checked_base(base)
    with np.errstate(over="ignore"):
        return np.clip((base * checked_real_array("x", x).astype(np.float64) - 1) / (base - 1), 0, 1)


def _polynomial_step(u: np.ndarray) -> np.ndarray:
    """Return S(u) = 35u^4 - 84u^5 + 70u^6 - 20u^7."""
    return u**4 * (35 + u * (-84 + u * (70 - 20 * u)))


def _smooth_step(x: np.ndarray, c: float) -> np.ndarray:
    """Return g_c(x) = f(x) / (f(x) + f(c - x)), f(x) = exp(-1/x) for x > 0: 0 up to 0, 1 from c on."""
    inside = (x > 0) & (x < c)
    u = np.where(inside, x, c / 2)
    with np.errstate(over="ignore"):
        step = np.where(inside, 1 / (1 + np.exp(1 / u - 1 / (c - u))), (x >= c).astype(float))
    return np.where(np.isnan(x), x, step)
