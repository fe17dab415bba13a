"""Block thresholding: coefficients of neighbouring nodes are kept or dropped together (paper, conclusion), chosen by SURE.

Block James-Stein multiplies the coefficients x_B of a block by (1 - t^2 s_B / q)_+, q = ||x_B||^2: s_B is the number of its
nodes, or the sum of their squared threshold scales. Blocks of one node are the paper's rule. With G_B = (W W')_BB the divergence is
(1 - t^2 s_B / q) tr G_B + 2 t^2 s_B x'G_B x / q^2, and x'G_B x is the mean of <(W eps)_B, x_B>^2 over probes eps: no
off-diagonal weight is ever stored. SURE is the sum over blocks of (with z = q / s_B and u = t^2)

    q - sigma^2 tr G_B                                                                        where z <= u,
    (u / z)^2 q + sigma^2 tr G_B + 2 sigma^2 (u / z) (2 x'G_B x / q - tr G_B)                 where z > u,

a quadratic in u between the z in ascending order. It drops at each z by 4 sigma^2 x'G_B x / q, so its minimum is at 0, at
some z, or at the vertex of a quadratic: a recursion from the largest z down visits them all. Sums over bins bound SURE on
each bin from below, so that only the few bins that may hold the minimum are sorted.

The whole estimator's divergence is the sum over scales, because that of W' h(W y) is tr(W' J_h W): not so for random-walk
Laplacians, whose synthesis is not W'. With one standard deviation per node, weights and probes hold it and sigma is 1.

All sizes of `SIZES` are averaged scale by scale, with shares p_m of size m that fall with its SURE,

    p_m ~ exp(-SURE_m / (TEMPERATURE sqrt(2 typical sigma^2 sum(weights)))), typical the mean variance of the nodes:

the root is the standard deviation of pure noise energy, below which differences of SURE mean little. Bands and divergence
of the mixture are the means of its parts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hushgraph._deprecation import renamed
from hushgraph._errors import InputError
from hushgraph._validation import checked_real_array, checked_sigma, shown
from hushgraph.core import _loops
from hushgraph.graphs import block_partition
from hushgraph.wavelets.frame import Frame
from hushgraph.wavelets.shrinkage import checked_thresholds
from hushgraph.wavelets.transform import checked_coefficient_size, checked_coefficients
from hushgraph.wavelets.unbiased_risk import ThresholdScale, checked_pair, checked_scale, threshold_multiplier

SIZES = (1, 4, 8, 16, 32)  # 1 is the paper's rule; larger blocks than 32 gained nothing on street maps, grids and meshes

TEMPERATURE = 0.5  # standard deviations of noise energy by which SURE may differ before a share falls to 1 / e


class BlockMixture(NamedTuple):
    """Coefficients (n_scales, n), the divergence per scale, and per size and scale its threshold and its share."""

    bands: np.ndarray
    divergence: np.ndarray
    thresholds: np.ndarray
    shares: np.ndarray


# ---- thresholds -------------------------------------------------------------------------------------------------


@renamed(removed_in="0.3", scale="threshold_scale")
def block_thresholds(
    F: npt.ArrayLike,
    blocks: npt.ArrayLike,
    weights: npt.ArrayLike,
    probe_bands: npt.ArrayLike,
    *,
    sigma: float,
    threshold_scale: ThresholdScale = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the thresholds of blocks with the least SURE of each scale, and that SURE.

    Parameters
    ----------
    F : array_like, shape (n_scales, n)
        Coefficients of one signal.
    blocks : array_like of int, shape (n,)
        Block numbers from 0 on, as `block_partition` returns them.
    weights : array_like, shape (n_scales, n)
        Raw Monte-Carlo weights or exact ones.
    probe_bands : array_like, shape (n_probes, n_scales, n)
        Coefficients of the probes, times sigma per node when there is one. Probes must not depend on the signal.
    sigma : float
        Standard deviation of the noise; 1 if weights and probes hold it.
    threshold_scale : bool or array_like, shape (n_scales, n), optional
        The threshold of a block is t times the root of the sum of the squares of these; True for sqrt(weights). Without it, t times the
        root of the number of nodes.

    Returns
    -------
    t : numpy.ndarray
        Thresholds, shape (n_scales,).
    values : numpy.ndarray
        SURE at these thresholds, shape (n_scales,).
    """
    variance = checked_sigma(sigma) ** 2
    x, g, bands, scale = _checked(F, weights, probe_bands, threshold_scale)
    numbers = _checked_blocks(blocks, x.shape[1])
    return _loops.least_block_sure(_loops.block_sums(x, numbers, scale, g, bands), variance)


@renamed(removed_in="0.3", scale="threshold_scale")
def apply_block_thresholds(
    F: npt.ArrayLike,
    blocks: npt.ArrayLike,
    t: npt.ArrayLike,
    weights: npt.ArrayLike,
    probe_bands: npt.ArrayLike,
    *,
    threshold_scale: ThresholdScale = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the thresholded coefficients of one signal, and the divergence of each scale.

    Parameters
    ----------
    F : array_like, shape (n_scales, n)
        Coefficients of one signal.
    blocks : array_like of int, shape (n,)
        Block numbers from 0 on, as `block_partition` returns them.
    t : float or array_like, shape (n_scales,)
        Thresholds, as `block_thresholds` returns them.
    weights : array_like, shape (n_scales, n)
        Raw Monte-Carlo weights or exact ones.
    probe_bands : array_like, shape (n_probes, n_scales, n)
        Coefficients of the probes, as in `block_thresholds`.
    threshold_scale : bool or array_like, shape (n_scales, n), optional
        As in `block_thresholds`.

    Returns
    -------
    coefficients : numpy.ndarray
        Thresholded coefficients, shape (n_scales, n).
    divergence : numpy.ndarray
        Divergence of each scale, shape (n_scales,).
    """
    x, g, bands, scale = _checked(F, weights, probe_bands, threshold_scale)
    numbers, thresholds = _checked_blocks(blocks, x.shape[1]), _checked_t(t, len(x))
    factors, divergence = _loops.keep_blocks(thresholds, _loops.block_sums(x, numbers, scale, g, bands))
    return _loops.multiply_blocks(x, numbers, factors), divergence


def block_jacobian(
    F: npt.ArrayLike, blocks: npt.ArrayLike, t: npt.ArrayLike, directions: npt.ArrayLike, *, scale: np.ndarray | None = None
) -> np.ndarray:
    """Return J_h v for coefficients v in rows (k, n_scales, n), h the block rule at F; for coordinate-wise rules it is slope * v.

    On a block that is kept J_h v = (1 - t^2 s_B / q) v_B + 2 t^2 s_B x_B <x_B, v_B> / q^2; it is symmetric.
    """
    x, _, rows, scale = _checked(F, None, directions, scale)
    numbers, thresholds = _checked_blocks(blocks, x.shape[1]), _checked_t(t, len(x))
    return _loops.turn_blocks(x, numbers, thresholds, _loops.block_sums(x, numbers, scale, None, None), rows)


@renamed(removed_in="0.3", scaled="threshold_scale")
def block_mixture(
    frame: Frame,
    F: npt.ArrayLike,
    probe_bands: npt.ArrayLike,
    weights: npt.ArrayLike,
    variance: float,
    *,
    threshold_scale: ThresholdScale = False,
    sigma: np.ndarray | None = None,
) -> BlockMixture:
    """Return the mean of all block sizes, each at its thresholds of least SURE, scale by scale; synthesize `bands` for the estimate.

    Blocks of several sizes have their borders at different places, so that their mean is better than the best of them, as
    with cycle spinning.

    Parameters
    ----------
    F, probe_bands, weights
        As in `block_thresholds`.
    variance : float
        Of the noise; 1 where weights and probes hold sigma per node.
    threshold_scale : bool or (n_scales, n) array
        As in `block_thresholds`. Roots of smoothed weights (`smooth_weights`) were better than none (False) on every real map.
    sigma : (n,) array, optional
        Standard deviation per node, where weights and probes hold it.
    """
    x, g, bands, scale = _checked(checked_coefficients(frame, F), weights, probe_bands, threshold_scale)
    partitions = [_checked_blocks(block_partition(frame.graph, size=size), x.shape[1]) for size in SIZES]
    trials = [_trial(x, blocks, scale, g, bands, checked_sigma(variance**0.5) ** 2) for blocks in partitions]
    t, values, factors, divergence = zip(*trials, strict=True)
    typical = variance if sigma is None else float(np.mean(np.square(sigma)))
    spread = np.sqrt(2 * typical * variance * np.sum(weights, axis=1, dtype=np.float64))
    shares = np.exp((np.min(values, axis=0) - values) / np.maximum(TEMPERATURE * spread, np.finfo(float).tiny))
    shares /= shares.sum(axis=0)
    mean = np.zeros_like(x)
    for share, blocks, factor in zip(shares.astype(x.dtype), partitions, factors, strict=True):
        mean += share[:, None] * _loops.multiply_blocks(x, blocks, factor)
    return BlockMixture(mean, np.sum(shares * divergence, axis=0), np.array(t), shares)


def _trial(
    x: np.ndarray, blocks: np.ndarray, scale: Any, weights: Any, bands: np.ndarray, variance: float
) -> tuple[np.ndarray, ...]:
    """Return thresholds of least SURE, that SURE, the factor of each block, and the divergence, from one pass over the nodes."""
    sums = _loops.block_sums(x, blocks, scale, weights, bands)
    t, values = _loops.least_block_sure(sums, variance)
    return t, values, *_loops.keep_blocks(t, sums)


# ---- shapes -----------------------------------------------------------------------------------------------------


def _checked(F: Any, weights: Any, bands: Any, threshold_scale: ThresholdScale) -> tuple[Any, Any, Any, Any]:
    """Return F, weights (or None), bands and the multiplier of thresholds (or None), contiguous and of fitting shapes."""
    F, weights = (checked_coefficient_size("F", checked_real_array("F", F)), None) if weights is None else checked_pair(F, weights)
    if F.ndim != 2:
        text = f"blocks take one signal at a time, coefficients of shape (n_scales, n); got {F.shape}"
        raise InputError.about(argument="F", verb="have", expected="shape (n_scales, n)", got=F.shape, text=text)
    if weights is not None and weights.min(initial=0.0) < 0:
        hint = "pass weights of domain='coefficients'"
        raise InputError.about(argument="weights", verb="not be", expected="negative", hint=hint)
    bands = checked_real_array("probe_bands", bands)
    if bands.ndim != 3 or bands.shape[1:] != F.shape or len(bands) == 0:
        expected = f"shape (n_probes, {F.shape[0]}, {F.shape[1]}), one transform per probe"
        raise InputError.about(argument="probe_bands", verb="have", expected=expected, got=bands.shape)
    bands = np.ascontiguousarray(checked_coefficient_size("probe_bands", bands))
    scale = threshold_multiplier(weights, threshold_scale) if weights is not None else _plain_scale(threshold_scale, F.shape)
    arrays = (None if part is None else np.ascontiguousarray(part) for part in (F, weights, bands, scale))
    return tuple(arrays)  # type: ignore[return-value]


def _plain_scale(threshold_scale: Any, shape: tuple) -> np.ndarray | None:
    """Return the multiplier of thresholds where there are no weights to make it of."""
    return None if threshold_scale is None else checked_scale(threshold_scale, shape)


def _checked_blocks(blocks: npt.ArrayLike, n: int) -> np.ndarray:
    blocks = np.asarray(blocks)
    fits = blocks.shape == (n,) and blocks.dtype.kind in "iu"
    if not fits or not 0 <= blocks.min(initial=0) <= blocks.max(initial=0) <= max(n - 1, 0):
        expected = f"numbers from 0 on of shape ({n},), as block_partition returns them"
        raise InputError.about(argument="blocks", expected=expected, got=shown(blocks))
    return np.ascontiguousarray(blocks, np.int32)


def _checked_t(t: npt.ArrayLike, n_scales: int) -> np.ndarray:
    values = checked_thresholds(t)
    if values.shape not in ((), (n_scales,)):
        expected = f"one threshold or {n_scales} of them, one per scale"
        raise InputError.about(argument="t", expected=expected, got=f"shape {values.shape}")
    return np.ascontiguousarray(np.broadcast_to(values.astype(np.float64), n_scales))
