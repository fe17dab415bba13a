"""Block thresholding: coefficients of neighbouring nodes are kept or dropped together (paper, conclusion), chosen by SURE.

Block James-Stein multiplies the coefficients x_B of a block by (1 - t^2 s_B / q)_+, q = ||x_B||^2: s_B is the number of its
nodes, or the sum of their squared `scale`. Blocks of one node are the paper's rule. With G_B = (W W')_BB the divergence is
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

from typing import NamedTuple

import numpy as np

from hushgraph._errors import InputError
from hushgraph.checks import checked_real_array, checked_sigma, shown
from hushgraph.core import _loops
from hushgraph.frame import Frame
from hushgraph.neighbourhoods import block_partition
from hushgraph.risk import checked_pair, checked_scale, threshold_scale
from hushgraph.shrink import checked_thresholds
from hushgraph.transform import checked_coefficient_size, checked_coefficients

SIZES = (1, 4, 8, 16, 32)  # 1 is the paper's rule; larger blocks than 32 gained nothing on street maps, grids and meshes

TEMPERATURE = 0.5  # standard deviations of noise energy by which SURE may differ before a share falls to 1 / e


class BlockMixture(NamedTuple):
    """Coefficients (n_scales, n), the divergence per scale, and per size and scale its threshold and its share."""

    bands: np.ndarray
    divergence: np.ndarray
    thresholds: np.ndarray
    shares: np.ndarray


# ---- thresholds -------------------------------------------------------------------------------------------------


def block_thresholds(F, blocks, weights, probe_bands, *, sigma: float, scale=None) -> tuple[np.ndarray, np.ndarray]:
    """Thresholds with the least SURE, and that SURE, of each scale: (n_scales,) and (n_scales,).

    Parameters
    ----------
    F : (n_scales, n)
        Coefficients of one signal.
    blocks : (n,)
        Block numbers from 0 on, as `block_partition` returns them.
    weights : (n_scales, n)
        Raw Monte-Carlo weights or exact ones.
    probe_bands : (n_probes, n_scales, n)
        Coefficients of the probes, times sigma per node when there is one. Probes must not depend on the signal.
    scale : (n_scales, n), optional
        Thresholds of a block are t times the root of the sum of its squares; without it, of the number of its nodes.
    """
    variance = checked_sigma(sigma) ** 2
    x, g, probe_bands, scale = _checked(F, weights, probe_bands, scale)
    blocks = _checked_blocks(blocks, x.shape[1])
    return _loops.least_block_sure(_loops.block_sums(x, blocks, scale, g, probe_bands), variance)


def apply_block_thresholds(F, blocks, t, weights, probe_bands, *, scale=None) -> tuple[np.ndarray, np.ndarray]:
    """Thresholded coefficients (n_scales, n) and the divergence of each scale (n_scales,)."""
    x, g, probe_bands, scale = _checked(F, weights, probe_bands, scale)
    blocks, t = _checked_blocks(blocks, x.shape[1]), _checked_t(t, len(x))
    kept, divergence = _loops.keep_blocks(t, _loops.block_sums(x, blocks, scale, g, probe_bands))
    return _loops.multiply_blocks(x, blocks, kept), divergence


def block_jacobian(F, blocks, t, directions, *, scale=None) -> np.ndarray:
    """J_h v for coefficients v in rows (k, n_scales, n), h the block rule at F: what slope * v is to coordinate-wise rules.

    On a block that is kept J_h v = (1 - t^2 s_B / q) v_B + 2 t^2 s_B x_B <x_B, v_B> / q^2; it is symmetric.
    """
    x, _, directions, scale = _checked(F, None, directions, scale)
    blocks, t = _checked_blocks(blocks, x.shape[1]), _checked_t(t, len(x))
    return _loops.turn_blocks(x, blocks, t, _loops.block_sums(x, blocks, scale, None, None), directions)


def block_mixture(frame: Frame, F, probe_bands, weights, variance: float, *, scaled=False, sigma=None) -> BlockMixture:
    """All block sizes, each at its thresholds of least SURE, averaged scale by scale; synthesize `bands` for the estimate.

    Blocks of several sizes have their borders at different places, so that their mean is better than the best of them, as
    with cycle spinning.

    Parameters
    ----------
    F, probe_bands, weights
        As in `block_thresholds`.
    variance : float
        Of the noise; 1 where weights and probes hold sigma per node.
    scaled : bool or (n_scales, n) array
        `scale` of `block_thresholds`, or True for the roots of the weights. Roots of smoothed weights (`smooth_weights`)
        were better than none (False) on every real map.
    sigma : (n,) array, optional
        Standard deviation per node, where weights and probes hold it.
    """
    scale = threshold_scale(weights, scaled)
    x, g, probe_bands, scale = _checked(checked_coefficients(frame, F), weights, probe_bands, scale)
    partitions = [_checked_blocks(block_partition(frame.graph, size=size), x.shape[1]) for size in SIZES]
    trials = [_trial(x, blocks, scale, g, probe_bands, checked_sigma(variance**0.5) ** 2) for blocks in partitions]
    t, values, kept, divergence = zip(*trials, strict=True)
    typical = variance if sigma is None else float(np.mean(np.square(sigma)))
    spread = np.sqrt(2 * typical * variance * np.sum(weights, axis=1, dtype=np.float64))
    shares = np.exp((np.min(values, axis=0) - values) / np.maximum(TEMPERATURE * spread, np.finfo(float).tiny))
    shares /= shares.sum(axis=0)
    bands = np.zeros_like(x)
    for share, blocks, own in zip(shares.astype(x.dtype), partitions, kept, strict=True):
        bands += share[:, None] * _loops.multiply_blocks(x, blocks, own)
    return BlockMixture(bands, np.sum(shares * divergence, axis=0), np.array(t), shares)


def _trial(x, blocks, scale, weights, bands, variance: float):
    """Thresholds of least SURE, that SURE, what is kept of each block, and the divergence: from one pass over the nodes."""
    sums = _loops.block_sums(x, blocks, scale, weights, bands)
    t, values = _loops.least_block_sure(sums, variance)
    return t, values, *_loops.keep_blocks(t, sums)


# ---- shapes -----------------------------------------------------------------------------------------------------


def _checked(F, weights, bands, scale):
    """F, weights (or None), bands and scale, contiguous and of fitting shapes."""
    F, weights = (checked_coefficient_size("F", checked_real_array("F", F)), None) if weights is None else checked_pair(F, weights)
    if F.ndim != 2:
        msg = f"blocks take one signal at a time, coefficients of shape (n_scales, n); got {F.shape}"
        raise InputError(msg)
    if weights is not None and weights.min(initial=0.0) < 0:
        msg = "weights must not be negative; pass weights of domain='coefficients'"
        raise InputError(msg)
    bands = checked_real_array("probe_bands", bands)
    if bands.ndim != 3 or bands.shape[1:] != F.shape or len(bands) == 0:
        msg = f"probe_bands must have shape (n_probes, {F.shape[0]}, {F.shape[1]}), one transform per probe; got {bands.shape}"
        raise InputError(msg)
    bands = np.ascontiguousarray(checked_coefficient_size("probe_bands", bands))
    weights = None if weights is None else np.ascontiguousarray(weights)
    scale = None if scale is None else np.ascontiguousarray(checked_scale("scale", scale, F.shape))
    return np.ascontiguousarray(F), weights, bands, scale


def _checked_blocks(blocks, n: int) -> np.ndarray:
    blocks = np.asarray(blocks)
    fits = blocks.shape == (n,) and blocks.dtype.kind in "iu"
    if not fits or not 0 <= blocks.min(initial=0) <= blocks.max(initial=0) <= max(n - 1, 0):
        msg = f"blocks must be numbers from 0 on of shape ({n},), as block_partition returns them; got {shown(blocks)}"
        raise InputError(msg)
    return np.ascontiguousarray(blocks, np.int32)


def _checked_t(t, n_scales: int) -> np.ndarray:
    values = checked_thresholds(t)
    if values.shape not in ((), (n_scales,)):
        msg = f"t must be one threshold or {n_scales} of them, one per scale; got shape {values.shape}"
        raise InputError(msg)
    return np.ascontiguousarray(np.broadcast_to(values.astype(np.float64), n_scales))
