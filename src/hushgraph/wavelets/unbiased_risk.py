"""Stein's unbiased risk estimate, SURE: of coefficients, of signals, and its variance (paper, Sec. III).

SURE(t) = ||h_t(F) - F||^2 - sigma^2 sum(weights) + 2 sigma^2 sum(weights * slope) estimates the risk of the
*coefficients*; weights are diag(W W'), estimated without bias by the mean of (W eps)^2 over probes eps. The risk of the
*signal* has the same divergence for symmetric Laplacians and is smaller:
||fhat - y||^2 - n sigma^2 + 2 sigma^2 divergence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from hushgraph._arrays import placed_like
from hushgraph._deprecation import renamed
from hushgraph._errors import InputError, InputTypeError
from hushgraph._validation import (
    LARGEST,
    LARGEST_FLOAT32,
    as_array,
    checked_count,
    checked_number,
    checked_real_array,
    checked_seed,
    checked_sigma,
    choose,
    refuse_device,
    shown,
    span,
)
from hushgraph.core import block_sum
from hushgraph.wavelets.frame import Frame
from hushgraph.wavelets.monte_carlo import Law, probes
from hushgraph.wavelets.shrinkage import Rule, checked_thresholds, shrink, sure_exponent
from hushgraph.wavelets.transform import checked_coefficient_size, checked_coefficients, forward, inverse
from hushgraph.wavelets.weight_smoothing import checked_weight_size

DENSE_BELOW = 2000  # nodes up to which `sure_variance` forms the whole matrix

ThresholdScale = bool | npt.ArrayLike | None  # the multiplier of thresholds that public functions take; see `threshold_multiplier`

# ---- SURE -------------------------------------------------------------------------------------------------------


@renamed(removed_in="0.3", scaled="threshold_scale")
def sure(
    F: npt.ArrayLike,
    t: npt.ArrayLike,
    *,
    weights: npt.ArrayLike,
    sigma: float,
    rule: Rule = "james_stein",
    beta: float | None = None,
    threshold_scale: ThresholdScale = False,
) -> Any:
    """Return SURE of the coefficients thresholded at t.

    Parameters
    ----------
    F : array_like, shape (n_scales, n) or (n_scales, n, m)
        Wavelet coefficients of one signal or of m signals.
    t : float or array_like, shape (n_scales,) or (n_scales, m)
        Thresholds.
    weights : array_like, shape (n_scales, n)
        Raw Monte-Carlo weights or exact ones.
    sigma : float
        Standard deviation of the noise; 1 if the weights hold the variance of each node.
    rule : {"soft", "james_stein", "power"}
        Thresholding rule.
    beta : float, optional
        Exponent of rule="power", at least 1.
    threshold_scale : bool or array_like, shape (n_scales, n)
        Multiplier of the thresholds: True for sqrt(weights), or the multiplier of each coefficient. False or None for none.

    Returns
    -------
    float or numpy.ndarray
        One value, or one per signal, shape (m,).

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> hg.sure(np.array([[3.0, 0.5]]), 1.0, weights=np.ones((1, 2)), sigma=1.0, rule="soft")
    1.25
    """
    sure_exponent(rule, beta)
    F, weights = checked_pair(F, weights)
    variance = checked_sigma(sigma) ** 2
    value, slope = shrink(F, threshold_field(F, t, threshold_multiplier(weights, threshold_scale)), rule=rule, beta=beta)
    wide = weights if F.ndim == 2 else weights[:, :, None]
    terms = np.square(value - F, dtype=np.float64) + variance * wide * (2 * slope - 1)
    result: Any = sum(block_sum(terms[j]) for j in range(len(F)))
    return float(result) if F.ndim == 2 else result


def sure_variance(
    frame: Frame,
    F: npt.ArrayLike,
    t: npt.ArrayLike,
    *,
    sigma: float,
    n_probes: int,
    law: Law = "rademacher",
    rule: Rule = "james_stein",
    beta: float | None = None,
    threshold_scale: npt.ArrayLike | None = None,
    seed: int = 0,
) -> float:
    """Return the variance of SURE over the probes of its weights, given F (Proposition 2, for coordinate-wise rules).

    4 sigma^4 / N (2 |M|_F^2 - (2 - V[eps^2]) sum_p M_pp^2) with M = W' diag(slope) W and V = 0 for Rademacher, 2 for
    Gaussian probes; the constant of SURE is held fixed, as in the paper. M is formed up to 2,000 nodes; above, both norms are
    estimated from 16 probes of their own.

    Parameters
    ----------
    frame : ChebyshevFrame or ExactFrame
        The frame of the coefficients.
    F : array_like, shape (n_scales, n)
        Coefficients of one signal.
    t : float or array_like, shape (n_scales,)
        Thresholds.
    sigma : float
        Standard deviation of the noise.
    n_probes : int
        Number N of probes of the weights.
    law : {"rademacher", "gaussian"}
        Law of the probes.
    rule : {"soft", "james_stein", "power"}
        Thresholding rule.
    beta : float, optional
        Exponent of rule="power", at least 1.
    threshold_scale : array_like, shape (n_scales, n), optional
        Multiplier of the thresholds.
    seed : int
        Seed of the 16 probes of large graphs.

    Returns
    -------
    float
        The variance.
    """
    F = checked_coefficients(frame, F)
    if F.ndim != 2:
        text = f"sure_variance takes one signal, coefficients of shape (n_scales, n); got {F.shape}"
        raise InputError.about(argument="F", verb="have", expected="shape (n_scales, n)", got=F.shape, text=text)
    choose("law", law, get_args(Law))
    sure_exponent(rule, beta)
    sigma, n_probes, seed = checked_sigma(sigma), checked_count("n_probes", n_probes, 1), checked_seed(seed)
    scale = None if threshold_scale is None else checked_scale(threshold_scale, F.shape)
    slope = shrink(F, threshold_field(F, t, scale), rule=rule, beta=beta)[1]
    n, exact = frame.graph.n, frame.graph.n <= DENSE_BELOW
    eps = np.eye(n) if exact else probes(n, 16, seed=seed)
    product = inverse(frame, slope * forward(frame, eps), transposed=True)
    if exact:
        frobenius, diagonal = np.sum(product**2), np.sum(np.diag(product) ** 2)
    else:
        frobenius = np.mean([block_sum(row**2) for row in product])
        halves = [np.mean((eps * product)[half], axis=0) for half in (slice(0, 8), slice(8, 16))]  # independent: unbiased product
        diagonal = block_sum(halves[0] * halves[1])
    spread = 2 * frobenius - (2 if law == "rademacher" else 0) * diagonal
    return float(4 * sigma**4 / n_probes * max(spread, 0.0))


def signal_sure(noisy: npt.ArrayLike, denoised: npt.ArrayLike, *, divergence: npt.ArrayLike, sigma: npt.ArrayLike) -> Any:
    """Return SURE of a denoised signal, an unbiased estimate of its total squared error.

    It is ||fhat - y||^2 - sum_i sigma_i^2 + 2 divergence', where divergence' = sum_i sigma_i^2 d fhat_i / d y_i.

    Parameters
    ----------
    noisy : array_like, shape (n,) or (n, m)
        The noisy signal y, or m signals.
    denoised : array_like, shape (n,) or (n, m)
        The estimate fhat.
    divergence : float or array_like, shape (m,)
        For one sigma the plain divergence sum_i d fhat_i / d y_i; with one sigma per node divergence'.
    sigma : float or array_like, shape (n,)
        Standard deviation of the noise, or one per node.

    Returns
    -------
    float or numpy.ndarray
        One value, or one per signal, shape (m,).

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> y = np.array([1.0, 3.0])
    >>> float(hg.signal_sure(y, np.full(2, y.mean()), divergence=1.0, sigma=1.0))
    2.0
    """
    noisy, denoised = checked_real_array("noisy", noisy), checked_real_array("denoised", denoised)
    if noisy.ndim not in (1, 2) or noisy.shape != denoised.shape:
        expected, got = "the same shape, (n,) or (n, m)", f"{noisy.shape} and {denoised.shape}"
        raise InputError.about(argument="noisy and denoised", verb="have", expected=expected, got=got)
    checked_coefficient_size("noisy", noisy)
    checked_coefficient_size("denoised", denoised)
    divergences = _checked_divergence(divergence, noisy.shape[1:])
    deviations = np.asarray(checked_sigma(sigma, len(noisy)), dtype=float)
    factor = float(deviations) ** 2 if deviations.ndim == 0 else 1.0
    total = len(noisy) * float(deviations) ** 2 if deviations.ndim == 0 else block_sum(deviations**2)
    return block_sum(np.square(denoised - noisy, dtype=np.float64)) - total + 2 * factor * divergences


def _checked_divergence(divergence: Any, shape: tuple) -> Any:
    """Return a finite float, or an array with one per signal."""
    values = as_array(divergence, "divergence")
    if values.dtype.kind not in "fiu" or values.shape not in ((), shape) or not np.isfinite(values).all():
        expected = f"a finite number{' per signal' if shape else ''}: expected shape {shape}"
        raise InputError.about(argument="divergence", expected=expected, got=shown(divergence))
    return float(values) if values.ndim == 0 else values.astype(np.float64)


def monte_carlo_divergence(
    estimator: Callable[[np.ndarray], npt.ArrayLike],
    noisy: npt.ArrayLike,
    *,
    n_probes: int = 10,
    step: float | None = None,
    sigma: npt.ArrayLike = 1.0,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the divergence of any estimator by finite differences along probes, with its standard error (Ramani et al. 2008).

    The mean of eps' (estimator(y + step eps) - estimator(y)) / step needs no formula of the estimator, so it can check such formulas.

    Parameters
    ----------
    estimator : callable
        Function of a noisy signal that returns the denoised one, both of shape (n,).
    noisy : array_like, shape (n,)
        The noisy signal y.
    n_probes : int
        Number of probes eps.
    step : float, optional
        Length of the step along a probe; 1e-3 times sigma (times the mean sigma if there is one per node) by default.
    sigma : float or array_like, shape (n,)
        Standard deviation of the noise, which only decides the default step.
    seed : int
        Seed of the probes.

    Returns
    -------
    value : float
        The divergence sum_i d fhat_i / d y_i.
    standard_error : float
        Its standard error; NaN for one probe.
    """
    if not callable(estimator):
        expected = "callable, of a noisy signal to a denoised one"
        raise InputTypeError.about(argument="estimator", expected=expected, got=type(estimator).__name__)
    refuse_device(noisy=noisy)
    noisy = checked_real_array("noisy", noisy).astype(np.float64)
    if noisy.ndim != 1 or len(noisy) == 0:
        raise InputError.about(argument="noisy", expected="one signal, (n,)", got=noisy.shape)
    largest = float(np.abs(checked_coefficient_size("noisy", noisy)).max())
    mean_sigma = float(np.mean(checked_sigma(sigma, len(noisy))))
    expected = f"a number above {1e-12 * largest:.2g}, or it is lost in the rounding of the signal"
    step = checked_number(
        "step", 1e-3 * mean_sigma if step is None else step, expected, above=0, least=1e-12 * largest, most=LARGEST
    )
    shape = noisy.shape

    def estimate(signal: np.ndarray) -> np.ndarray:
        values = as_array(result := estimator(signal))
        if values.shape != shape or values.dtype.kind not in "fiub" or not np.isfinite(values).all():
            got = f"shape {values.shape}" if values.dtype.kind in "fiub" else type(result).__name__
            raise InputError.about(argument="estimator", verb="return", expected=f"finite real numbers of shape {shape}", got=got)
        return values.astype(np.float64)

    base = estimate(noisy)
    draws = [block_sum(eps * (estimate(noisy + step * eps) - base)) / step for eps in probes(len(noisy), n_probes, seed=seed)]
    return float(np.mean(draws)), float(np.std(draws, ddof=1) / np.sqrt(n_probes)) if n_probes > 1 else np.nan


# ---- shapes -----------------------------------------------------------------------------------------------------


def checked_pair(F: npt.ArrayLike, weights: npt.ArrayLike, *, name: str = "F") -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients and weights, finite real numbers of fitting shapes; errors call the coefficients by that name."""
    F = checked_real_array(name, F)
    g: np.ndarray = placed_like(checked_real_array("weights", weights), F)
    if F.ndim not in (2, 3) or g.shape != F.shape[:2] or F.shape[2:] == (0,):
        expected = "(n_scales, n) or (n_scales, n, m), weights (n_scales, n)"
        raise InputError.about(argument=name, expected=expected, got=f"{F.shape} and {g.shape}")
    return checked_coefficient_size(name, F), checked_weight_size(g)


def threshold_multiplier(weights: np.ndarray, threshold_scale: ThresholdScale) -> np.ndarray | None:
    """Return the multiplier of the thresholds: None for False and None, sqrt(weights) for True, or the given array."""
    if threshold_scale is None:
        return None
    if isinstance(threshold_scale, bool | np.bool_):
        return np.sqrt(np.maximum(weights, 0.0)) if threshold_scale else None
    return checked_scale(threshold_scale, np.shape(weights), choices="True, False or ")


def checked_scale(threshold_scale: Any, shape: tuple, *, choices: str = "") -> np.ndarray:
    """Return finite non-negative multipliers of that shape; `choices` are other values that the error names."""
    values = as_array(threshold_scale, "threshold_scale")
    fits = values.shape == shape and values.dtype.kind in "fiu"
    least, most = span(values) if fits else (np.nan, np.nan)
    if not (least >= 0 and most <= LARGEST):
        got = f"shape {values.shape}" if not fits else f"some that are negative, NaN or above {LARGEST:g}"
        raise InputError.about(argument="threshold_scale", expected=f"{choices}non-negative numbers of shape {shape}", got=got)
    return values.astype(np.float64, copy=False)


def threshold_field(F: np.ndarray, t: npt.ArrayLike, scale: np.ndarray | None) -> np.ndarray:
    """Return thresholds that broadcast against F, from a float, (n_scales,) or (n_scales, m)."""
    t, largest = checked_thresholds(t), LARGEST_FLOAT32 if F.dtype == np.float32 else LARGEST
    shapes = ((), F.shape[:1]) if F.ndim == 2 else ((), F.shape[:1], (F.shape[0], F.shape[2]))
    if t.shape not in shapes:
        expected = f"one of the shapes {', '.join(map(str, shapes))} for F of shape {F.shape}"
        raise InputError.about(argument="t", verb="have", expected=expected, got=t.shape)
    if scale is not None and float(t.max(initial=0)) > largest:
        raise InputError.about(argument="t", expected=f"at most {largest:g} in size", got=f"{t.max():g}")
    with np.errstate(over="ignore"):  # infinite kills everything, which is what it should do
        t = t.astype(F.dtype)
    field = t.reshape(t.shape[:1] + (1,) + t.shape[1:]) if t.ndim else t
    field = field[..., None] if t.ndim == 1 and F.ndim == 3 else field
    if scale is None:
        return field
    return field * (scale if F.ndim == 2 else scale[:, :, None]).astype(F.dtype)
