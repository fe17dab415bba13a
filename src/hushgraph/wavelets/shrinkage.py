"""Thresholding rules tau(x, t) with their slopes (paper, Sec. V and conclusion): value and slope together, no 0/0.

tau(x, t) = x max(1 - t^beta |x|^-beta, 0): soft beta = 1, James-Stein beta = 2, hard beta = infinity.
At t = 0 every rule is the identity.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from hushgraph._arrays import on_device, placed_like
from hushgraph._errors import InputError
from hushgraph._validation import as_array, as_number, checked_real_array, choose, shown

Rule = Literal["soft", "james_stein", "power", "hard"]


def soft(x: npt.ArrayLike, t: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return x moved towards 0 by t, and its slope.

    Parameters
    ----------
    x : array_like
        Coefficients.
    t : float or array_like
        Thresholds of at least 0, of a shape that broadcasts against x.

    Returns
    -------
    value : numpy.ndarray
        Thresholded coefficients.
    slope : numpy.ndarray
        Derivative of the rule at each coefficient.
    """
    return power(x, t, beta=1.0)


def james_stein(x: npt.ArrayLike, t: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return x (1 - t^2 / x^2)_+, and its slope (1 + t^2 / x^2) where |x| > t.

    Parameters
    ----------
    x : array_like
        Coefficients.
    t : float or array_like
        Thresholds of at least 0, of a shape that broadcasts against x.

    Returns
    -------
    value : numpy.ndarray
        Thresholded coefficients.
    slope : numpy.ndarray
        Derivative of the rule at each coefficient.
    """
    return power(x, t, beta=2.0)


def hard(x: npt.ArrayLike, t: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return x where |x| > t, else 0; the slope is 1 there. The jumps make its SURE biased, so SURE refuses it.

    Parameters
    ----------
    x : array_like
        Coefficients.
    t : float or array_like
        Thresholds of at least 0, of a shape that broadcasts against x.

    Returns
    -------
    value : numpy.ndarray
        Thresholded coefficients.
    slope : numpy.ndarray
        Derivative of the rule at each coefficient.
    """
    x, t, alive = _checked(x, t)
    return np.where(alive, x, 0), np.where(np.isnan(x), x, alive).astype(x.dtype)


def power(x: npt.ArrayLike, t: npt.ArrayLike, *, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return x (1 - |t / x|^beta)_+, and its slope 1 + (beta - 1) |t / x|^beta where |x| > t.

    Parameters
    ----------
    x : array_like
        Coefficients.
    t : float or array_like
        Thresholds of at least 0, of a shape that broadcasts against x.
    beta : float
        Exponent, finite and at least 1.

    Returns
    -------
    value : numpy.ndarray
        Thresholded coefficients.
    slope : numpy.ndarray
        Derivative of the rule at each coefficient.
    """
    beta = checked_beta(beta)
    x, t, alive = _checked(x, t)
    if on_device(x):
        ratio = np.where(alive, t / np.where(alive & (x != 0), np.abs(x), 1), 0)
    else:
        ratio = np.zeros(np.broadcast_shapes(x.shape, t.shape), dtype=x.dtype)
        np.divide(t, np.abs(x), out=ratio, where=~(np.abs(x) <= t))
    ratio = ratio if beta == 1 else ratio * ratio if beta == 2 else ratio**beta
    return np.where(alive, x * (1 - ratio), 0), np.where(alive, 1 + (beta - 1) * ratio, 0)


def shrink(
    x: npt.ArrayLike, t: npt.ArrayLike, *, rule: Rule = "james_stein", beta: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the value and the slope of the rule of that name.

    Parameters
    ----------
    x : array_like
        Coefficients.
    t : float or array_like
        Thresholds of at least 0, of a shape that broadcasts against x.
    rule : {"soft", "james_stein", "power", "hard"}
        Name of the rule.
    beta : float, optional
        Exponent of rule="power", finite and at least 1.

    Returns
    -------
    value : numpy.ndarray
        Thresholded coefficients.
    slope : numpy.ndarray
        Derivative of the rule at each coefficient.

    Examples
    --------
    >>> shrink([3.0, -1.0, 0.0], 1.5, rule="soft")[0]
    array([1.5, 0. , 0. ])
    """
    exponent = exponent_of(rule, beta)
    return hard(x, t) if np.isinf(exponent) else power(x, t, beta=exponent)


def exponent_of(rule: Rule, beta: float | None = None) -> float:
    """Return beta of the rule: soft 1, james_stein 2, hard infinity, power as given."""
    choose("rule", rule, get_args(Rule))
    if rule == "power":
        return checked_beta(beta)
    if beta is not None:
        got, text = f"beta={shown(beta)} with rule={rule!r}", "beta belongs to rule='power' only"
        raise InputError.about(argument="beta", expected="None, unless rule='power'", got=got, text=f"{text}; got {got}")
    return {"soft": 1.0, "james_stein": 2.0, "hard": np.inf}[rule]


def sure_exponent(rule: Rule, beta: float | None = None) -> float:
    """Return `exponent_of(rule, beta)`; the rule for which SURE does not hold is refused."""
    exponent = exponent_of(rule, beta)
    if np.isinf(exponent):
        hint = "use 'soft', 'james_stein' or 'power', or oracle_thresholds"
        text = f"SURE does not hold for rule='hard' (it jumps); {hint}"
        raise InputError.about(argument="rule", expected="a rule without jumps", got="'hard'", hint=hint, text=text)
    return exponent


def checked_beta(beta: Any) -> float:
    """Return beta as a finite float of at least 1."""
    if not as_number(beta) >= 1:
        text = f"rule='power' needs a finite beta of at least 1 (1 is soft, 2 is James-Stein); got {shown(beta)}"
        raise InputError.about(argument="beta", expected="a finite number of at least 1", got=shown(beta), text=text)
    return float(beta)


def checked_thresholds(t: npt.ArrayLike) -> np.ndarray:
    """Return numbers of at least 0, of any shape."""
    values = as_array(t, "thresholds")
    if values.dtype.kind not in "fiub" or not np.all(values >= 0):
        expected = "numbers of at least 0"
        if values.dtype.kind not in "fiub":
            raise InputError.about(argument="thresholds", expected=expected, got=shown(t))
        text = f"thresholds must be {expected}; the smallest is {np.min(values)}"
        raise InputError.about(argument="thresholds", expected=expected, got=np.min(values), text=text)
    return values


def _checked(x: npt.ArrayLike, t: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x, t in the dtype of x, and where the value is not set to 0; NaN is not, so that it stays NaN."""
    x = checked_real_array("x", x)
    with np.errstate(over="ignore"):  # a threshold beyond float32 is infinite there
        limits: np.ndarray = placed_like(checked_thresholds(t), x).astype(x.dtype)
    return x, limits, ~(np.abs(x) <= limits) | (limits == 0)
