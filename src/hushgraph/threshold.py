"""Thresholds at the exact minimum of SURE, and of the true risk.

For the rules x (1 - |t/x|^beta)_+, beta >= 1, SURE increases between data values, so its minimum is at 0 or at some |x_i|.
One sort and a recursion from the largest value down give SURE at all of them: with z ascending,
r = (z_{i-1} / z_i)^beta, A = r^2 (A + x_i^2), C = r (C + g_i), B += g_i, and at t = z_{i-1}
SURE = sum_{z <= t} x^2 + A + 2 sigma^2 (B + (beta - 1) C), up to the constant - sigma^2 sum g.
Thresholds scaled by s_i sort z_i = |x_i| / s_i and are otherwise the same.

The minimiser alone needs no sort: sums over 2,048 bins bound SURE on each bin from below, and only the few bins that may
hold the minimum are sorted.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from hushgraph._errors import InputError
from hushgraph.arrays import namespace, on_device, on_host
from hushgraph.checks import checked_real_array, checked_sigma, choose, refuse_device
from hushgraph.core import _loops
from hushgraph.device_thresholds import apply_on_device, least_sure_on_device
from hushgraph.observation import refuse_release
from hushgraph.risk import checked_coefficient_weights, checked_pair, checked_scale, threshold_scale
from hushgraph.shrink import Rule, exponent_of, sure_exponent
from hushgraph.transform import checked_coefficient_size

Level = Literal["scale", "global"]
Candidates = Literal["all", "percentiles"]


def sure_thresholds(
    F,
    weights,
    *,
    sigma: float,
    rule: Rule = "james_stein",
    beta: float | None = None,
    scaled=False,
    level: Level = "scale",
    candidates: Candidates = "all",
) -> np.ndarray:
    """Thresholds that minimise SURE: (n_scales,), or (n_scales, m) for m signals.

    Parameters
    ----------
    rule : {"soft", "james_stein", "power"}
        "power" takes any finite `beta` of at least 1.
    scaled : bool or (n_scales, n) array
        True: the thresholds are t sqrt(weights); an array: t times it.
    level : {"scale", "global"}
        One threshold per scale, or one for all of them.
    candidates : {"all", "percentiles"}
        All |F_i| and 0 (exact), or the 101 percentiles of |F_i| as in the paper's experiments.
    """
    exponent = sure_exponent(rule, beta)
    F, weights = checked_pair(F, weights)
    checked_coefficient_weights(weights)
    variance, scale = checked_sigma(sigma) ** 2, threshold_scale(weights, scaled)
    choose("candidates", candidates, get_args(Candidates))
    choose("level", level, get_args(Level))
    return least_thresholds(F, weights, scale, variance=variance, beta=exponent, level=level, candidates=candidates)


def least_thresholds(
    F, weights, scale, *, variance: float, beta: float, level: Level = "scale", candidates: Candidates = "all"
) -> np.ndarray:
    """`sure_thresholds` of what is known to be fit: F (n_scales, n) or (n_scales, n, m), weights and scale (n_scales, n)."""

    def best(x, g, s):
        if candidates == "all" and on_device(x):
            return least_sure_on_device(x, g, s, variance, beta)
        if candidates == "all":
            return _loops.least_sure(x, g, s, variance, beta)
        x, g, s = on_host(x), on_host(g), on_host(s)
        return [_best_percentile(*row, variance, beta) for row in zip(x, g, [None] * len(x) if s is None else s, strict=True)]

    t = _per_level(best, F, weights, scale, level)
    return t if scale is None else t * (1 + 2.0**-51)  # so that t s_i, rounded, still reaches the value it was made of


def sure_curve(x, weights, *, sigma: float, rule: Rule = "james_stein", beta: float | None = None, scale=None):
    """All candidate thresholds of one scale in ascending order, and SURE at each of them (constant included)."""
    exponent, variance = sure_exponent(rule, beta), checked_sigma(sigma) ** 2
    refuse_device(x=x, weights=weights, scale=scale)
    x, weights = checked_real_array("x", x), checked_real_array("weights", weights)
    if x.ndim != 1 or weights.shape != x.shape:
        msg = f"x and weights must be those of one scale, (n,) and (n,); got shape {x.shape} and {weights.shape}"
        raise InputError(msg)
    x, weights = (part[0] for part in checked_pair(x[None], weights[None]))
    z, x, g = _sorted(x, weights, None if scale is None else checked_scale("scale", scale, x.shape))
    t, values = _loops.sure_at_data(z, x, g, variance, exponent)
    unreached = np.sum(weights) - np.sum(g)  # no threshold reaches values of scale 0: their slope is always 1
    return t, values + variance * (2 * unreached - np.sum(weights))


def oracle_thresholds(
    F, truth_F, *, rule: Rule = "james_stein", beta: float | None = None, scaled=False, weights=None, level: Level = "scale"
) -> np.ndarray:
    """Thresholds that minimise the true squared error of the coefficients; they need the truth, so they are no method.

    Exact: between data values the error is a quadratic in t^beta, whose minimum may lie inside.
    """
    refuse_release("F", F)
    refuse_release("truth_F", truth_F)
    refuse_device(F=F, truth_F=truth_F, weights=weights, scaled=scaled)
    exponent = exponent_of(rule, beta)
    F, truth_F = checked_real_array("F", F), checked_real_array("truth_F", truth_F)
    if F.ndim not in (2, 3):
        msg = f"F must be (n_scales, n) or (n_scales, n, m); got {F.shape}"
        raise InputError(msg)
    if F.shape != truth_F.shape and F.shape[:2] != truth_F.shape:
        msg = f"truth_F must have the shape of F, {F.shape}, or of one of its signals; got {truth_F.shape}"
        raise InputError(msg)
    checked_coefficient_size("F", F)
    checked_coefficient_size("truth_F", truth_F)
    if weights is None and isinstance(scaled, bool | np.bool_) and scaled:
        msg = "scaled=True needs weights=, or pass the scale itself as scaled="
        raise InputError(msg)
    weights = np.broadcast_to(1.0, F.shape[:2]) if weights is None else checked_pair(F, weights)[1]
    scale = threshold_scale(weights, scaled)
    truth = truth_F if truth_F.ndim == F.ndim else np.broadcast_to(truth_F[:, :, None], F.shape)

    def best(x, f, s):
        rows = zip(x, f, [None] * len(x) if s is None else s, strict=True)
        return [_loops.oracle_threshold(*_sorted(*row), exponent) for row in rows]

    return _per_level(best, F, truth, scale, choose("level", level, get_args(Level)))


def apply_thresholds(F: np.ndarray, t: np.ndarray, slope: np.ndarray, *, rule: Rule, beta=None, scale=None) -> None:
    """Threshold one signal's coefficients (n_scales, n) in place, and write the slopes; one pass, nothing allocated.

    With rule="power" `beta` is a number, or an array with one per scale.
    """
    if np.ndim(beta) == 1:
        for j, one in zip(range(len(F)), beta, strict=True):
            part = slice(j, j + 1)
            apply_thresholds(F[part], t[part], slope[part], rule=rule, beta=one, scale=None if scale is None else scale[part])
        return
    if on_device(F):
        apply_on_device(F, t, scale, exponent_of(rule, beta), slope)
        return
    t, scale = np.ascontiguousarray(t, F.dtype), None if scale is None else np.ascontiguousarray(scale, F.dtype)
    _loops.apply_thresholds(F, t, scale, exponent_of(rule, beta), slope)


def _per_level(best, F, beside, scale, level: Level) -> np.ndarray:
    """best(x, beside, scale) of rows that are the scales, or of one row with all scales, for each signal."""
    result = np.empty((F.shape[0], 1 if F.ndim == 2 else F.shape[2]))
    shape = (1, -1) if level == "global" else F.shape[:2]
    for m in range(result.shape[1]):
        rows = (part if part is None or part.ndim == 2 else part[:, :, m] for part in (F, beside, scale))
        x, y, s = (None if row is None else _as_rows(row).reshape(shape) for row in rows)
        result[:, m] = best(x, y, s)
    return result[:, 0] if F.ndim == 2 else result


def _as_rows(values):
    if on_device(values):
        return namespace(values).ascontiguousarray(values)
    return np.ascontiguousarray(values, np.float64)


def _best_percentile(x, g, scale, variance, beta):
    t, values = _loops.sure_at_data(*_sorted(x, g, scale), variance, beta)
    keep = np.round(np.linspace(0, len(t) - 1, 101)).astype(int)
    return t[keep][np.argmin(values[keep])]


def _sorted(x, beside, scale):
    """(z, x, beside) by ascending z = |x| / scale; values of scale 0 are left out: no threshold ever reaches them."""
    x, beside = np.asarray(x, dtype=np.float64), np.asarray(beside, dtype=np.float64)
    z = np.abs(x)
    if scale is not None:
        reached = (scale > 0) | (x == 0)
        z = np.divide(z, scale, out=np.zeros_like(z), where=scale > 0)[reached]
        x, beside = x[reached], beside[reached]
    order = np.argsort(z, kind="stable")
    return z[order], x[order], beside[order]
