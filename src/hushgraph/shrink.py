"""Thresholding rules tau(x, t) with their slopes (paper, Sec. V and conclusion): value and slope together, no 0/0.

tau(x, t) = x max(1 - t^beta |x|^-beta, 0): soft beta = 1, James-Stein beta = 2, hard beta = infinity.
At t = 0 every rule is the identity.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from hushgraph._errors import InputError
from hushgraph.arrays import beside, on_device
from hushgraph.checks import as_array, as_number, checked_real_array, choose, shown

Rule = Literal["soft", "james_stein", "power", "hard"]


def soft(x, t):
    """x moved towards 0 by t, and its slope."""
    return power(x, t, beta=1.0)


def james_stein(x, t):
    """x (1 - t^2 / x^2)_+ and its slope (1 + t^2 / x^2) where |x| > t."""
    return power(x, t, beta=2.0)


def hard(x, t):
    """x where |x| > t, and 1 there. The jumps make its SURE biased, so SURE refuses it."""
    x, t, alive = _kept(x, t)
    return np.where(alive, x, 0), np.where(np.isnan(x), x, alive).astype(x.dtype)


def power(x, t, *, beta):
    """x (1 - |t / x|^beta)_+ and its slope 1 + (beta - 1) |t / x|^beta where |x| > t."""
    beta = checked_beta(beta)
    x, t, alive = _kept(x, t)
    if on_device(x):
        ratio = np.where(alive, t / np.where(alive & (x != 0), np.abs(x), 1), 0)
    else:
        ratio = np.zeros(np.broadcast_shapes(x.shape, t.shape), dtype=x.dtype)
        np.divide(t, np.abs(x), out=ratio, where=~(np.abs(x) <= t))
    ratio = ratio if beta == 1 else ratio * ratio if beta == 2 else ratio**beta
    return np.where(alive, x * (1 - ratio), 0), np.where(alive, 1 + (beta - 1) * ratio, 0)


def shrink(x, t, *, rule: Rule = "james_stein", beta: float | None = None):
    """Value and slope of the rule of that name.

    >>> shrink([3.0, -1.0, 0.0], 1.5, rule="soft")[0]
    array([1.5, 0. , 0. ])
    """
    exponent = exponent_of(rule, beta)
    return hard(x, t) if np.isinf(exponent) else power(x, t, beta=exponent)


def exponent_of(rule: Rule, beta: float | None = None) -> float:
    """beta of the rule: soft 1, james_stein 2, hard infinity, power as given."""
    choose("rule", rule, get_args(Rule))
    if rule == "power":
        return checked_beta(beta)
    if beta is not None:
        msg = f"beta belongs to rule='power' only; got beta={shown(beta)} with rule={rule!r}"
        raise InputError(msg)
    return {"soft": 1.0, "james_stein": 2.0, "hard": np.inf}[rule]


def sure_exponent(rule: Rule, beta: float | None = None) -> float:
    """`exponent_of`, without the rule that SURE does not hold for."""
    exponent = exponent_of(rule, beta)
    if np.isinf(exponent):
        msg = "SURE does not hold for rule='hard' (it jumps); use 'soft', 'james_stein' or 'power', or oracle_thresholds"
        raise InputError(msg)
    return exponent


def checked_beta(beta) -> float:
    """beta as a finite float of at least 1."""
    if not as_number(beta) >= 1:
        msg = f"rule='power' needs a finite beta of at least 1 (1 is soft, 2 is James-Stein); got {shown(beta)}"
        raise InputError(msg)
    return float(beta)


def checked_thresholds(t) -> np.ndarray:
    """Numbers of at least 0, of any shape."""
    values = as_array(t, "thresholds")
    if values.dtype.kind not in "fiub" or not np.all(values >= 0):
        got = f"the smallest is {np.min(values)}" if values.dtype.kind in "fiub" else f"got {shown(t)}"
        msg = f"thresholds must be numbers of at least 0; {got}"
        raise InputError(msg)
    return values


def _kept(x, t):
    """x, t of the same type, and where the value is kept; NaN is, so that it stays NaN."""
    x = checked_real_array("x", x)
    with np.errstate(over="ignore"):  # a threshold beyond float32 is infinite there
        t = beside(checked_thresholds(t), x).astype(x.dtype)
    return x, t, ~(np.abs(x) <= t) | (t == 0)
