"""Thresholds at the exact minimum of SURE, and of the true risk.

For the rules x (1 - |t/x|^beta)_+, beta >= 1, SURE increases between data values, so its minimum is at 0 or at some |x_i|.
One sort and a recursion from the largest value down give SURE at all of them: with z ascending,
r = (z_{i-1} / z_i)^beta, A = r^2 (A + x_i^2), C = r (C + g_i), B += g_i, and at t = z_{i-1}
SURE = sum_{z <= t} x^2 + A + 2 sigma^2 (B + (beta - 1) C), up to the constant - sigma^2 sum g.
Thresholds scaled by s_i sort z_i = |x_i| / s_i and are otherwise the same.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numba import njit

from hushgraph.adjacency import choose
from hushgraph.risk import checked_pair, checked_sigma, threshold_scale
from hushgraph.shrink import Rule, exponent_of

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
    exponent = exponent_of(rule, beta)
    if np.isinf(exponent):
        msg = "SURE does not hold for rule='hard' (it jumps); use 'soft', 'james_stein' or 'power', or oracle_thresholds"
        raise ValueError(msg)
    F, weights = checked_pair(F, weights)
    variance, scale = checked_sigma(sigma) ** 2, threshold_scale(weights, scaled)
    choose("candidates", candidates, get_args(Candidates))

    def best(x, g, s):
        z, x, g = _sorted(x, g, s)
        t, values = _sure_at_data(z, x, g, variance, exponent)
        if candidates == "percentiles":
            keep = np.round(np.linspace(0, len(t) - 1, 101)).astype(int)
            t, values = t[keep], values[keep]
        return t[np.argmin(values)]

    return _per_level(best, F, weights, scale, choose("level", level, get_args(Level)))


def sure_curve(x, weights, *, sigma: float, rule: Rule = "james_stein", beta: float | None = None, scale=None):
    """All candidate thresholds of one scale in ascending order, and SURE at each of them (constant included)."""
    z, x, g = _sorted(np.asarray(x, dtype=float), np.asarray(weights, dtype=float), scale)
    variance = checked_sigma(sigma) ** 2
    t, values = _sure_at_data(z, x, g, variance, exponent_of(rule, beta))
    return t, values - variance * np.sum(weights)


def oracle_thresholds(
    F, truth_F, *, rule: Rule = "james_stein", beta: float | None = None, scaled=False, weights=None, level: Level = "scale"
) -> np.ndarray:
    """Thresholds that minimise the true squared error of the coefficients; they need the truth, so they are no method.

    Exact: between data values the error is a quadratic in t^beta, whose minimum may lie inside.
    """
    exponent = exponent_of(rule, beta)
    F, truth_F = np.asarray(F), np.asarray(truth_F)
    if F.shape != truth_F.shape and F.shape[:2] != truth_F.shape:
        msg = f"truth_F must have the shape of F, {F.shape}, or of one of its signals; got {truth_F.shape}"
        raise ValueError(msg)
    if weights is None and not isinstance(scaled, np.ndarray):
        if scaled:
            msg = "scaled=True needs weights=, or pass the scale itself as scaled="
            raise ValueError(msg)
        weights = np.ones(F.shape[:2])
    scale = threshold_scale(np.zeros(F.shape[:2]) if weights is None else weights, scaled)
    truth = truth_F if truth_F.ndim == F.ndim else np.broadcast_to(truth_F[:, :, None], F.shape)
    return _per_level(lambda x, f, s: _oracle(*_sorted(x, f, s), exponent), F, truth, scale, choose("level", level, get_args(Level)))


def _per_level(best, F, beside, scale, level: Level) -> np.ndarray:
    """best(x, beside, scale) for each scale, or for all scales together, and each signal."""
    result = np.empty((F.shape[0], 1 if F.ndim == 2 else F.shape[2]))
    for m in range(result.shape[1]):
        x = F if F.ndim == 2 else F[:, :, m]
        y = beside if beside.ndim == 2 else beside[:, :, m]
        if level == "global":
            result[:, m] = best(x.ravel(), y.ravel(), None if scale is None else scale.ravel())
        else:
            result[:, m] = [best(x[j], y[j], None if scale is None else scale[j]) for j in range(len(x))]
    return result[:, 0] if F.ndim == 2 else result


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
    t[1:] = z
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
        if cost < best:
            best_t, best = t, cost
        ep, pp = r * ep, r * r * pp
    return best_t
