"""Partition of unity on [0, lambda_max]: plateau functions omega and the band functions psi_j (paper, Sec. II-A).

psi_0(x) = omega(x), psi_j(x) = omega(b^-j x) - omega(b^(-j+1) x), j = 1..J, J = floor(log lambda_max / log b) + 2.
Knows no graph.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from hushgraph.adjacency import choose

Plateau = Literal["linear", "smooth", "c3", "meyer"]


def linear_plateau(x, *, base=2.0):
    """Piecewise linear omega: 1 up to 1/b, 0 from 1 on."""
    return 1 - _ramp(x, base)


def smooth_plateau(x, *, c=0.5):
    """C-infinity h_c(x) = g_c(x + 1) g_c(1 - x): 1 on [0, 1 - c], 0 from 1 on.

    A partition of unity needs c <= 1 - 1/b; the paper's c = 1 is only good for its figure.
    """
    x = np.asarray(x, dtype=float)
    return _smooth_step(x + 1, c) * _smooth_step(1 - x, c)


def c3_plateau(x, *, base=2.0):
    """Three times differentiable polynomial omega = 1 - S(u), S = 35u^4 - 84u^5 + 70u^6 - 20u^7."""
    return 1 - _polynomial_step(_ramp(x, base))


def meyer_plateau(x, *, base=2.0):
    """Meyer's omega = cos^2(pi/2 S(u)): its square root is smooth, so its polynomials converge fastest."""
    return np.cos(np.pi / 2 * _polynomial_step(_ramp(x, base))) ** 2


def plateau_function(plateau: Plateau = "linear", *, base: float = 2.0, c: float | None = None):
    """The function omega of that name; `c` is the width of the smooth plateau's slope, default 1 - 1/b."""
    base = checked_base(base)
    choose("plateau", plateau, get_args(Plateau))
    if c is not None and plateau != "smooth":
        msg = f"c belongs to plateau='smooth' only; got c={c!r} with plateau={plateau!r}"
        raise ValueError(msg)
    if plateau == "smooth":
        widest = 1 - 1 / base
        width = widest if c is None else c
        if not 0 < width <= widest:
            msg = f"c must be in (0, 1 - 1/base] = (0, {widest:g}] for a partition of unity; got {c!r}"
            raise ValueError(msg)
        return lambda x: smooth_plateau(x, c=width)
    function = {"linear": linear_plateau, "c3": c3_plateau, "meyer": meyer_plateau}[plateau]
    return lambda x: function(x, base=base)


def count_scales(lambda_max: float, *, base: float = 2.0) -> int:
    """J + 1, with J = floor(log_b lambda_max) + 2; a top scale that would be empty is left out.

    The floor is found by powers of b, because a quotient of logarithms is wrong at exact powers.

    >>> [count_scales(x) for x in (0, 0.3, 7.918, 8, 8.1)], count_scales(1000, base=10)
    ([1, 1, 5, 5, 6], 5)
    """
    base = checked_base(base)
    if not np.isfinite(lambda_max) or lambda_max < 0:
        msg = f"lambda_max must be finite and at least 0; got {lambda_max!r}"
        raise ValueError(msg)
    if lambda_max == 0:
        return 1
    exponent = round(np.log(lambda_max) / np.log(base))
    while base**exponent > lambda_max:
        exponent -= 1
    while base ** (exponent + 1) <= lambda_max:
        exponent += 1
    empty_top = lambda_max <= base**exponent * (1 + 1e-9)
    return max(0, exponent + 2 - empty_top) + 1


def partition(x, *, n_scales: int, plateau: Plateau = "linear", base: float = 2.0, c: float | None = None, low_scales: int = 0):
    """psi_0..psi_J at the points x, shape (n_scales, len(x)).

    The last band takes all that lies above the others, so the sum is 1 for every x >= 0; on [0, b^(J-1)], which
    holds the spectrum, this is the paper's psi_J. `low_scales=m` evaluates the partition at b^m x: m more bands
    below the paper's lowest.

    >>> partition([0.0, 0.75, 3.0], n_scales=4).round(3)
    array([[1. , 0.5, 0. ],
           [0. , 0.5, 0. ],
           [0. , 0. , 0.5],
           [0. , 0. , 0.5]])
    """
    omega = plateau_function(plateau, base=base, c=c)
    x = np.asarray(x, dtype=float) * float(base) ** low_scales
    below = np.array([omega(x * float(base) ** -j) for j in range(n_scales - 1)] + [np.ones_like(x)])
    return np.diff(below, axis=0, prepend=0.0)


def checked_base(base: float) -> float:
    """`base` as a float above 1."""
    if not np.isfinite(base) or base <= 1:
        msg = f"base must be a finite number above 1; got {base!r}"
        raise ValueError(msg)
    return float(base)


def _ramp(x, base):
    return np.clip((base * np.asarray(x, dtype=float) - 1) / (base - 1), 0, 1)


def _polynomial_step(u):
    return u**4 * (35 + u * (-84 + u * (70 - 20 * u)))


def _smooth_step(x, c):
    """g_c(x) = f(x) / (f(x) + f(c - x)), f(x) = exp(-1/x) for x > 0: 0 up to 0, 1 from c on."""
    inside = (x > 0) & (x < c)
    u = np.where(inside, x, c / 2)
    with np.errstate(over="ignore"):
        return np.where(inside, 1 / (1 + np.exp(1 / u - 1 / (c - u))), (x >= c).astype(float))
