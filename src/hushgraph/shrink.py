"""Thresholding rules tau(x, t) with their slopes (paper, Sec. V and conclusion): value and slope together, no 0/0.

tau(x, t) = x max(1 - t^beta |x|^-beta, 0): soft beta = 1, James-Stein beta = 2, hard beta = infinity.
At t = 0 every rule is the identity.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from hushgraph.adjacency import choose

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
    return np.where(alive, x, 0), alive.astype(x.dtype)


def power(x, t, *, beta):
    """x (1 - |t / x|^beta)_+ and its slope 1 + (beta - 1) |t / x|^beta where |x| > t."""
    beta = checked_beta(beta)
    x, t, alive = _kept(x, t)
    ratio = np.divide(t, np.abs(x), out=np.zeros_like(x), where=np.abs(x) > t)
    ratio = ratio if beta == 1 else ratio * ratio if beta == 2 else ratio**beta
    return np.where(alive, x * (1 - ratio), 0), np.where(alive, 1 + (beta - 1) * ratio, 0)


def shrink(x, t, *, rule: Rule = "james_stein", beta: float | None = None):
    """Value and slope of the rule of that name.

    >>> shrink([3.0, -1.0, 0.0], 1.5, rule="soft")[0]
    array([ 1.5, -0. ,  0. ])
    """
    exponent = exponent_of(rule, beta)
    return hard(x, t) if np.isinf(exponent) else power(x, t, beta=exponent)


def exponent_of(rule: Rule, beta: float | None = None) -> float:
    """beta of the rule: soft 1, james_stein 2, hard infinity, power as given."""
    choose("rule", rule, get_args(Rule))
    if rule == "power":
        return checked_beta(beta)
    if beta is not None:
        msg = f"beta belongs to rule='power' only; got beta={beta!r} with rule={rule!r}"
        raise ValueError(msg)
    return {"soft": 1.0, "james_stein": 2.0, "hard": np.inf}[rule]


def checked_beta(beta) -> float:
    """beta as a finite float of at least 1."""
    if beta is None or not np.isfinite(beta) or beta < 1:
        msg = f"rule='power' needs a finite beta of at least 1 (1 is soft, 2 is James-Stein); got {beta!r}"
        raise ValueError(msg)
    return float(beta)


def _kept(x, t):
    x = np.asarray(x)
    x = x if x.dtype in (np.float32, np.float64) else x.astype(np.float64)
    t = np.asarray(t, dtype=x.dtype)
    if np.any(t < 0) or np.isnan(t).any():
        msg = f"thresholds must be numbers of at least 0; the smallest is {np.min(t)}"
        raise ValueError(msg)
    return x, t, (np.abs(x) > t) | (t == 0)
