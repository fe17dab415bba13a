"""How far an estimate is from the truth: SNR = 20 log10(||f|| / ||f - fhat||) in dB, and the mean squared error."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushgraph._errors import InputError
from hushgraph._validation import checked_real_array, checked_size
from hushgraph.graphs import labels_and_values, refuse_release


def snr(truth: Any, estimate: Any) -> float | np.ndarray:
    """Return the signal-to-noise ratio in dB, 20 log10(||f|| / ||f - fhat||); infinite when the estimate is exact.

    Parameters
    ----------
    truth : (n,) or (n, m) array_like
        The true signal f, or several in columns.
    estimate : (n,) or (n, m) array_like
        The estimate fhat, in the same shape.

    Returns
    -------
    float or (m,) array
        The ratio, one per column.

    Examples
    --------
    >>> round(snr([3.0, 4.0], [3.0, 4.5]), 9)
    20.0
    """
    truth, estimate = _checked_pair(truth, estimate)
    energy = np.linalg.norm(truth, axis=0)
    if np.any(energy == 0):
        text = "truth is zero everywhere, so its SNR is undefined; use mse instead"
        raise InputError.about(argument="truth", expected="nonzero somewhere", hint="use mse instead", text=text)
    with np.errstate(divide="ignore"):
        value = 20 * np.log10(energy / np.linalg.norm(truth - estimate, axis=0))
    return float(value) if truth.ndim == 1 else value


def mse(truth: Any, estimate: Any) -> float | np.ndarray:
    """Return the mean squared error, ||f - fhat||^2 / n.

    Parameters
    ----------
    truth : (n,) or (n, m) array_like
        The true signal f, or several in columns.
    estimate : (n,) or (n, m) array_like
        The estimate fhat, in the same shape.

    Returns
    -------
    float or (m,) array
        The error, one per column.

    Examples
    --------
    >>> mse([1.0, 2.0], [1.0, 4.0])
    2.0
    """
    truth, estimate = _checked_pair(truth, estimate)
    value = ((truth - estimate) ** 2).mean(axis=0)
    return float(value) if truth.ndim == 1 else value


def _checked_pair(truth: Any, estimate: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return both signals as float64 arrays of the same shape, with the same labels if both have labels."""
    refuse_release("truth", truth)
    refuse_release("estimate", estimate)
    (labels, truth), (estimate_labels, estimate) = labels_and_values("truth", truth), labels_and_values("estimate", estimate)
    if labels is not None and estimate_labels is not None and labels != estimate_labels:
        hint = "reindex one like the other"
        text = f"truth and estimate have different labels (index), or in another order; {hint}"
        raise InputError.about(argument="truth and estimate", verb="have", expected="the same labels", hint=hint, text=text)
    truth, estimate = (
        checked_real_array(name, part).astype(np.float64, copy=False) for name, part in (("truth", truth), ("estimate", estimate))
    )
    if truth.shape != estimate.shape or truth.ndim not in (1, 2) or truth.size == 0:
        expected, got = "(n,) or both (n, m), and not empty", f"{truth.shape} and {estimate.shape}"
        raise InputError.about(argument="truth and estimate", verb="both be", expected=expected, got=got)
    for name, values in (("truth", truth), ("estimate", estimate)):
        checked_size(name, values, hint="compare only known nodes")
    return truth, estimate
