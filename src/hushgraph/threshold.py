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
from numba import njit, prange

from hushgraph._errors import InputError
from hushgraph.arrays import namespace, on_device, on_host
from hushgraph.checks import checked_real_array, checked_sigma, choose, refuse_device
from hushgraph.device_thresholds import apply_on_device, least_sure_on_device
from hushgraph.kernels.cpu import cores_for
from hushgraph.kernels.threads import parallel_njit
from hushgraph.observation import refuse_release
from hushgraph.risk import checked_coefficient_weights, checked_pair, checked_scale, threshold_scale
from hushgraph.shrink import Rule, exponent_of, sure_exponent
from hushgraph.sure_bins import TINY, least_sure
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
            with cores_for(x.size):
                return least_sure(x, g, s, variance, beta)
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
    t, values = _sure_at_data(z, x, g, variance, exponent)
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
        return [_oracle(*_sorted(*row), exponent) for row in zip(x, f, [None] * len(x) if s is None else s, strict=True)]

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
    with cores_for(F.size):
        _apply(
            F,
            np.asarray(t, dtype=F.dtype),
            None if scale is None else scale.astype(F.dtype, copy=False),
            exponent_of(rule, beta),
            slope,
        )


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
    return np.require(values, np.float64, ["C", "W"])


def _best_percentile(x, g, scale, variance, beta):
    t, values = _sure_at_data(*_sorted(x, g, scale), variance, beta)
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


@njit(cache=True)
def _sure_at_data(z, x, g, variance, beta):
    """Candidates 0, z_0, ..., z_{n-1} and SURE without its constant at each."""
    n = len(z)
    t, values = np.zeros(n + 1), np.empty(n + 1)
    t[1:] = np.maximum(z, TINY)
    energy = 0.0
    for i in range(n):
        energy += x[i] * x[i]
        values[i + 1] = energy
    a, b, c = 0.0, 0.0, 0.0
    for i in range(n - 1, -1, -1):
        below = z[i - 1] if i > 0 else 0.0
        ratio = below / z[i] if z[i] > 0 else 1.0
        r = ratio if beta == 1.0 else ratio * ratio if beta == 2.0 else ratio**beta
        a, c, b = r * r * (a + x[i] * x[i]), r * (c + g[i]), b + g[i]
        values[i] = (values[i] if i > 0 else 0.0) + a + 2 * variance * (b + (beta - 1) * c)
    values[0] = 2 * variance * b  # t = 0 is the identity, also where x = 0
    for i in range(n - 1, 0, -1):  # a threshold takes all equal values or none
        if z[i - 1] == z[i]:
            values[i] = values[i + 1]
    return t, values


@njit(cache=True)
def _oracle(z, x, f, beta):
    """Threshold with the least sum of (h_t(x) - f)^2, over all t >= 0 (over data values and 0 for hard thresholds).

    With e = |x| - f sgn x and p = |x| (z_i / z)^beta, active terms cost (e - v p)^2, v = (t / z_i)^beta.
    """
    n = len(z)
    killed = np.zeros(n + 1)  # cost of the values at or below each candidate
    for i in range(n):
        killed[i + 1] = killed[i] + f[i] * f[i]
    best_t, best = z[n - 1] if n else 0.0, killed[n]
    ee, ep, pp = 0.0, 0.0, 0.0  # sums over active values, p relative to t = z_i
    for i in range(n - 1, -1, -1):
        e = abs(x[i]) - (f[i] if x[i] >= 0 else -f[i])
        ee, ep, pp = ee + e * e, ep + e * abs(x[i]), pp + x[i] * x[i]
        below = z[i - 1] if i > 0 else 0.0
        ratio = below / z[i] if z[i] > 0 else 1.0
        if np.isinf(beta):
            v, r = 0.0, 1.0
            t = below
        else:
            r = ratio**beta
            v = min(max(ep / pp if pp > 0 else 1.0, r), 1.0)
            t = z[i] * v ** (1 / beta) if v > r else below
        cost = killed[i] + ee - 2 * v * ep + v * v * pp
        tied = np.isinf(beta) and i > 0 and below == z[i]  # a hard threshold takes all equal values or none
        if cost < best and not tied:
            best_t, best = t, cost
        ep, pp = r * ep, r * r * pp
    return best_t


@parallel_njit()
def _apply(F, t, scale, beta, slope):
    """F becomes x (1 - |t / x|^beta)_+, slope its derivative."""
    for j in range(len(F)):
        row, out = F[j], slope[j]
        one = t[j] * 0 + 1
        for i in prange(F.shape[1]):
            limit = t[j] if scale is None else t[j] * scale[j, i]
            size = abs(row[i])
            if size > limit:
                r = limit / size
                r = r if beta == 1.0 else r * r if beta == 2.0 else r**beta
                row[i] = row[i] * (one - r)
                out[i] = one + (beta - 1) * r
            else:
                alive = one if limit == 0 else one - one
                row[i] = row[i] * alive
                out[i] = alive
