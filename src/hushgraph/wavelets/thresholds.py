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

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from hushgraph._arrays import namespace, on_device, on_host
from hushgraph._deprecation import renamed
from hushgraph._errors import InputError
from hushgraph._validation import checked_real_array, checked_sigma, choose, refuse_device
from hushgraph.core import _loops
from hushgraph.graphs import refuse_release
from hushgraph.wavelets.monte_carlo import checked_coefficient_weights
from hushgraph.wavelets.shrinkage import Rule, exponent_of, sure_exponent
from hushgraph.wavelets.threshold_search_gpu import apply_on_device, least_sure_on_device
from hushgraph.wavelets.transform import checked_coefficient_size
from hushgraph.wavelets.unbiased_risk import ThresholdScale, checked_pair, threshold_multiplier

Level = Literal["scale", "global"]
ThresholdChoice = Literal["all", "percentiles"]


@renamed(removed_in="0.3", scaled="threshold_scale")
def sure_thresholds(
    F: npt.ArrayLike,
    weights: npt.ArrayLike,
    *,
    sigma: float,
    rule: Rule = "james_stein",
    beta: float | None = None,
    threshold_scale: ThresholdScale = False,
    level: Level = "scale",
    candidates: ThresholdChoice = "all",
) -> np.ndarray:
    """Return the thresholds that minimise SURE.

    Parameters
    ----------
    F : array_like, shape (n_scales, n) or (n_scales, n, m)
        Wavelet coefficients of one signal or of m signals.
    weights : array_like, shape (n_scales, n)
        Raw Monte-Carlo weights or exact ones.
    sigma : float
        Standard deviation of the noise; 1 if the weights hold the variance of each node.
    rule : {"soft", "james_stein", "power"}
        Thresholding rule.
    beta : float, optional
        Exponent of rule="power", finite and at least 1.
    threshold_scale : bool or array_like, shape (n_scales, n)
        Multiplier of the thresholds: True for sqrt(weights), or the multiplier of each coefficient. False or None for none.
    level : {"scale", "global"}
        One threshold per scale, or one for all of them.
    candidates : {"all", "percentiles"}
        All |F_i| and 0 (exact), or the 101 percentiles of |F_i| as in the paper's experiments.

    Returns
    -------
    numpy.ndarray
        Thresholds, shape (n_scales,) or (n_scales, m).

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> hg.sure_thresholds(np.array([[9.0, 0.5, -0.2]]), np.ones((1, 3)), sigma=1.0)
    array([0.5])
    """
    exponent = sure_exponent(rule, beta)
    F, weights = checked_pair(F, weights)
    checked_coefficient_weights(weights)
    variance, scale = checked_sigma(sigma) ** 2, threshold_multiplier(weights, threshold_scale)
    choose("candidates", candidates, get_args(ThresholdChoice))
    choose("level", level, get_args(Level))
    return least_thresholds(F, weights, scale, variance=variance, beta=exponent, level=level, candidates=candidates)


def least_thresholds(
    F: np.ndarray,
    weights: np.ndarray,
    scale: np.ndarray | None,
    *,
    variance: float,
    beta: float,
    level: Level = "scale",
    candidates: ThresholdChoice = "all",
) -> np.ndarray:
    """Return `sure_thresholds` of checked arrays: F (n_scales, n) or (n_scales, n, m), weights and scale (n_scales, n)."""

    def best(x: Any, g: Any, s: Any) -> Any:
        if candidates == "all" and on_device(x):
            return least_sure_on_device(x, g, s, variance, beta)
        if candidates == "all":
            return _loops.least_sure(x, g, s, variance, beta)
        x, g, s = on_host(x), on_host(g), on_host(s)
        return [_best_percentile(*row, variance, beta) for row in zip(x, g, [None] * len(x) if s is None else s, strict=True)]

    t = _per_level(best, F, weights, scale, level)
    return t if scale is None else raised_thresholds(t)


def raised_thresholds(t: np.ndarray) -> np.ndarray:
    """Return thresholds raised by 2 units in the last place, so that t s_i, rounded, still reaches the value |x_i| with t = |x_i| / s_i."""
    return t * (1 + 2.0**-51)


@renamed(removed_in="0.3", scale="threshold_scale")
def sure_curve(
    x: npt.ArrayLike,
    weights: npt.ArrayLike,
    *,
    sigma: float,
    rule: Rule = "james_stein",
    beta: float | None = None,
    threshold_scale: ThresholdScale = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return all candidate thresholds of one scale in ascending order, and SURE at each of them (constant included).

    Parameters
    ----------
    x : array_like, shape (n,)
        Coefficients of one scale of one signal.
    weights : array_like, shape (n,)
        The weights of that scale.
    sigma : float
        Standard deviation of the noise; 1 if the weights hold the variance of each node.
    rule : {"soft", "james_stein", "power"}
        Thresholding rule.
    beta : float, optional
        Exponent of rule="power", at least 1.
    threshold_scale : bool or array_like, shape (n,), optional
        Multiplier of the thresholds: True for sqrt(weights), or the multiplier of each coefficient.

    Returns
    -------
    t : numpy.ndarray
        Thresholds, 0 first.
    values : numpy.ndarray
        SURE at these thresholds.
    """
    exponent, variance = sure_exponent(rule, beta), checked_sigma(sigma) ** 2
    refuse_device(x=x, weights=weights, threshold_scale=threshold_scale)
    x, weights = checked_real_array("x", x), checked_real_array("weights", weights)
    if x.ndim != 1 or weights.shape != x.shape:
        msg = f"x and weights must be those of one scale, (n,) and (n,); got shape {x.shape} and {weights.shape}"
        raise InputError(msg)
    F, all_g = checked_pair(x[None], weights[None], name="x")
    z, x, g = _sorted(F[0], all_g[0], threshold_multiplier(all_g[0], threshold_scale))
    t, values = _loops.sure_at_data(z, x, g, variance, exponent)
    unreached = np.sum(all_g) - np.sum(g)  # no threshold reaches values of scale 0: their slope is always 1
    return t, values + variance * (2 * unreached - np.sum(all_g))


@renamed(removed_in="0.3", scaled="threshold_scale")
def oracle_thresholds(
    F: npt.ArrayLike,
    truth_F: npt.ArrayLike,
    *,
    rule: Rule = "james_stein",
    beta: float | None = None,
    threshold_scale: ThresholdScale = False,
    weights: npt.ArrayLike | None = None,
    level: Level = "scale",
) -> np.ndarray:
    """Return the thresholds that minimise the true squared error of the coefficients.

    They need the truth, so this is a yardstick and not a method. Exact: between data values the error is a quadratic in t^beta, whose
    minimum may lie inside.

    Parameters
    ----------
    F : array_like, shape (n_scales, n) or (n_scales, n, m)
        Wavelet coefficients of one noisy signal or of m of them.
    truth_F : array_like, shape of F or (n_scales, n)
        Coefficients of the true signal.
    rule : {"soft", "james_stein", "power", "hard"}
        Thresholding rule.
    beta : float, optional
        Exponent of rule="power", at least 1.
    threshold_scale : bool or array_like, shape (n_scales, n)
        Multiplier of the thresholds: True for sqrt(weights), or the multiplier of each coefficient. False or None for none.
    weights : array_like, shape (n_scales, n), optional
        Needed for threshold_scale=True only.
    level : {"scale", "global"}
        One threshold per scale, or one for all of them.

    Returns
    -------
    numpy.ndarray
        Thresholds, shape (n_scales,) or (n_scales, m).
    """
    refuse_release("F", F)
    refuse_release("truth_F", truth_F)
    refuse_device(F=F, truth_F=truth_F, weights=weights, threshold_scale=threshold_scale)
    exponent = exponent_of(rule, beta)
    F, truth_F = checked_real_array("F", F), checked_real_array("truth_F", truth_F)
    if F.ndim not in (2, 3):
        raise InputError.about(argument="F", expected="(n_scales, n) or (n_scales, n, m)", got=F.shape)
    if F.shape != truth_F.shape and F.shape[:2] != truth_F.shape:
        expected = f"the shape of F, {F.shape}, or of one of its signals"
        raise InputError.about(argument="truth_F", verb="have", expected=expected, got=truth_F.shape)
    checked_coefficient_size("F", F)
    checked_coefficient_size("truth_F", truth_F)
    if weights is None and isinstance(threshold_scale, bool | np.bool_) and threshold_scale:
        msg = "threshold_scale=True needs weights=, or pass the multiplier itself as threshold_scale="
        raise InputError(msg)
    weights = np.broadcast_to(1.0, F.shape[:2]) if weights is None else checked_pair(F, weights)[1]
    scale = threshold_multiplier(weights, threshold_scale)
    truth = truth_F if truth_F.ndim == F.ndim else np.broadcast_to(truth_F[:, :, None], F.shape)

    def best(x: Any, f: Any, s: Any) -> Any:
        rows = zip(x, f, [None] * len(x) if s is None else s, strict=True)
        return [_loops.oracle_threshold(*_sorted(*row), exponent) for row in rows]

    return _per_level(best, F, truth, scale, choose("level", level, get_args(Level)))


def apply_thresholds(
    F: np.ndarray, t: np.ndarray, slope: np.ndarray, *, rule: Rule, beta: Any = None, scale: np.ndarray | None = None
) -> None:
    """Threshold the coefficients (n_scales, n) of one signal in place, and write the slopes; one pass, nothing allocated.

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


def _per_level(
    best: Callable[[Any, Any, Any], Any], F: np.ndarray, companion: np.ndarray, scale: np.ndarray | None, level: Level
) -> np.ndarray:
    """Return best(x, companion, scale) of rows that are the scales, or of one row with all scales, for each signal."""
    result = np.empty((F.shape[0], 1 if F.ndim == 2 else F.shape[2]))
    shape = (1, -1) if level == "global" else F.shape[:2]
    for m in range(result.shape[1]):
        rows = (part if part is None or part.ndim == 2 else part[:, :, m] for part in (F, companion, scale))
        x, y, s = (None if row is None else _as_rows(row).reshape(shape) for row in rows)
        result[:, m] = best(x, y, s)
    return result[:, 0] if F.ndim == 2 else result


def _as_rows(values: Any) -> Any:
    if on_device(values):
        return namespace(values).ascontiguousarray(values)
    return np.ascontiguousarray(values, np.float64)


def _best_percentile(x: np.ndarray, g: np.ndarray, scale: np.ndarray | None, variance: float, beta: float) -> float:
    t, values = _loops.sure_at_data(*_sorted(x, g, scale), variance, beta)
    keep = np.round(np.linspace(0, len(t) - 1, 101)).astype(int)
    return t[keep][np.argmin(values[keep])]


def _sorted(x: np.ndarray, companion: np.ndarray, scale: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (z, x, companion) by ascending z = |x| / scale, without values of scale 0, which no threshold ever reaches."""
    x, companion = np.asarray(x, dtype=np.float64), np.asarray(companion, dtype=np.float64)
    z = np.abs(x)
    if scale is not None:
        reached = (scale > 0) | (x == 0)
        z = np.divide(z, scale, out=np.zeros_like(z), where=scale > 0)[reached]
        x, companion = x[reached], companion[reached]
    order = np.argsort(z, kind="stable")
    return z[order], x[order], companion[order]
