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
from numba import njit, prange

from hushgraph._errors import InputError
from hushgraph.checks import checked_real_array, checked_sigma, shown
from hushgraph.frame import Frame
from hushgraph.kernels.cpu import cores_for
from hushgraph.kernels.threads import parallel_njit
from hushgraph.neighbourhoods import block_partition
from hushgraph.risk import checked_pair, checked_scale, threshold_scale
from hushgraph.shrink import checked_thresholds
from hushgraph.sure_bins import BINS, TINY
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
    with cores_for(x.size):
        return _least_sure(_block_sums(x, blocks, scale, g, probe_bands), variance)


def apply_block_thresholds(F, blocks, t, weights, probe_bands, *, scale=None) -> tuple[np.ndarray, np.ndarray]:
    """Thresholded coefficients (n_scales, n) and the divergence of each scale (n_scales,)."""
    x, g, probe_bands, scale = _checked(F, weights, probe_bands, scale)
    blocks, t = _checked_blocks(blocks, x.shape[1]), _checked_t(t, len(x))
    with cores_for(x.size):
        kept, divergence = _kept(t, _block_sums(x, blocks, scale, g, probe_bands))
        return _times(x, blocks, kept), divergence


def block_jacobian(F, blocks, t, directions, *, scale=None) -> np.ndarray:
    """J_h v for coefficients v in rows (k, n_scales, n), h the block rule at F: what slope * v is to coordinate-wise rules.

    On a block that is kept J_h v = (1 - t^2 s_B / q) v_B + 2 t^2 s_B x_B <x_B, v_B> / q^2; it is symmetric.
    """
    x, _, directions, scale = _checked(F, None, directions, scale)
    blocks, t = _checked_blocks(blocks, x.shape[1]), _checked_t(t, len(x))
    with cores_for(x.size):
        return _turn(x, blocks, t, _block_sums(x, blocks, scale, None, None), directions)


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
    with cores_for(x.size):
        trials = [_trial(x, blocks, scale, g, probe_bands, checked_sigma(variance**0.5) ** 2) for blocks in partitions]
        t, values, kept, divergence = zip(*trials, strict=True)
        typical = variance if sigma is None else float(np.mean(np.square(sigma)))
        spread = np.sqrt(2 * typical * variance * np.sum(weights, axis=1, dtype=np.float64))
        shares = np.exp((np.min(values, axis=0) - values) / np.maximum(TEMPERATURE * spread, np.finfo(float).tiny))
        shares /= shares.sum(axis=0)
        bands = np.zeros_like(x)
        for share, blocks, own in zip(shares.astype(x.dtype), partitions, kept, strict=True):
            bands += share[:, None] * _times(x, blocks, own)
    return BlockMixture(bands, np.sum(shares * divergence, axis=0), np.array(t), shares)


def _trial(x, blocks, scale, weights, bands, variance: float):
    """Thresholds of least SURE, that SURE, what is kept of each block, and the divergence: from one pass over the nodes."""
    sums = _block_sums(x, blocks, scale, weights, bands)
    t, values = _least_sure(sums, variance)
    return t, values, *_kept(t, sums)


# ---- kernels ----------------------------------------------------------------------------------------------------


@parallel_njit()
def _block_sums(x, blocks, scale, weights, bands):
    """(n_scales, n_blocks, 4): q, s, tr G and x'G x of each block; rows in parallel, nodes in ascending number.

    Without weights and bands, q and s alone.
    """
    n_blocks = blocks.max() + 1 if blocks.size else 0
    sums = np.zeros((len(x), n_blocks, 4))
    for j in prange(len(x)):
        out = sums[j]
        for i in range(x.shape[1]):
            value, b = np.float64(x[j, i]), blocks[i]
            out[b, 0] += value * value
            out[b, 1] += 1.0 if scale is None else scale[j, i] * scale[j, i]
            if weights is not None:
                out[b, 2] += weights[j, i]
        if bands is not None:
            for k in range(len(bands)):
                dots = np.zeros(n_blocks)
                for i in range(x.shape[1]):
                    dots[blocks[i]] += x[j, i] * np.float64(bands[k, j, i])
                for b in range(n_blocks):
                    out[b, 3] += dots[b] * dots[b] / len(bands)
    return sums


@njit(cache=True)
def _height(q, s):
    """z = q / s, the least t^2 that drops the block; -1 where none does. The one place where it is rounded."""
    return q / s if s > 0 else 0.0 if q == 0 else -1.0


@parallel_njit()
def _least_sure(sums, variance):
    t, values = np.zeros(len(sums)), np.zeros(len(sums))
    for j in prange(len(sums)):
        u, values[j] = _least_sure_of_row(sums[j], variance)
        root = np.sqrt(u)
        t[j] = root if root * root >= u else np.nextafter(root, np.inf)  # so that t^2 still reaches the z it was made of
    return t, values


@njit(cache=True)
def _least_sure_of_row(sums, variance):
    """The u = t^2 with the least SURE, and that SURE; only bins that may hold the minimum are sorted."""
    z, top, trace, kept = np.empty(len(sums)), -1.0, 0.0, 0.0
    for i in range(len(sums)):
        z[i] = _height(sums[i, 0], sums[i, 1])
        top = max(top, z[i])
        trace += sums[i, 2]
        kept += sums[i, 2] if z[i] < 0 else 0.0  # kept whatever the threshold
    constant = variance * (2 * kept - trace)
    if not top > 0:
        return (TINY, constant) if top == 0 else (0.0, constant)
    keys = z.view(np.int64) >> 46  # exponent and first 6 bits of the mantissa: ascending for z >= 0
    lowest = max(0, keys.max() - BINS + 1)
    for i in range(len(z)):
        keys[i] = max(0, keys[i] - lowest) if z[i] >= 0 else -1
    edges, energy, lifted, traces, tilted = _bin_sums(z, keys, lowest, sums)
    under, above, bounds = np.cumsum(energy) - energy, np.zeros((BINS, 3)), np.empty(BINS)
    a, b, c, least = 0.0, 0.0, 0.0, 2 * variance * (trace - kept)
    for k in range(BINS - 1, -1, -1):
        above[k, 0], above[k, 1], above[k, 2] = a, b, c  # A, B and C at the upper edge of the bin
        least = min(least, under[k] + energy[k] + a + 2 * variance * (b + c))
        r = edges[k] / edges[k + 1]
        v = min(max(-variance * c / a if a > 0 else 1.0, r), 1.0)
        bounds[k] = under[k] + lifted[k] + v * v * a + 2 * variance * (b + v * c)  # SURE is at least this in the bin
        a, b, c = r * r * a + lifted[k], b + traces[k], r * c + tilted[k]
    open_bins = bounds <= least + 1e-12 * (least + 2 * variance * trace)
    best_u, best = _search_bins(z, keys, sums, open_bins, edges, under, above, variance)
    unchanged = 2 * variance * (trace - kept)  # at u = 0
    return (best_u, best + constant) if best < unchanged else (0.0, unchanged + constant)


@njit(cache=True)
def _bin_sums(z, keys, lowest, sums):
    """Edges, and per bin the sums of q, (edge / z)^2 q, tr G and (edge / z) (2 x'G x / q - tr G)."""
    edges = np.empty(BINS + 1)
    edges[:] = (np.arange(lowest, lowest + BINS + 1) << 46).view(np.float64)
    edges[0] = 0.0
    energy, lifted, traces, tilted = np.zeros(BINS), np.zeros(BINS), np.zeros(BINS), np.zeros(BINS)
    for i in range(len(z)):
        k = keys[i]
        if k >= 0:
            energy[k] += sums[i, 0]
            traces[k] += sums[i, 2]
            if z[i] > 0:
                r = edges[k] / z[i]
                lifted[k] += r * r * sums[i, 0]
                tilted[k] += r * (2 * sums[i, 3] / sums[i, 0] - sums[i, 2])
    return edges, energy, lifted, traces, tilted


@njit(cache=True)
def _search_bins(z, keys, sums, open_bins, edges, under, above, variance):
    """The u > 0 with the least SURE (up to its constant) in the open bins, piece by piece from each upper edge down."""
    starts = np.zeros(BINS + 1, np.int64)
    for k in keys:
        if k >= 0 and open_bins[k]:
            starts[k + 1] += 1
    starts = np.cumsum(starts)
    members, filled = np.empty(starts[BINS], np.int64), starts.copy()
    for i in range(len(keys)):
        if keys[i] >= 0 and open_bins[keys[i]]:
            members[filled[keys[i]]] = i
            filled[keys[i]] += 1
    best_u, best = 0.0, np.inf
    for k in np.flatnonzero(open_bins):
        inside = members[starts[k] : starts[k + 1]]
        inside = inside[np.argsort(z[inside], kind="mergesort")]
        energies = under[k] + np.cumsum(sums[:, 0][inside])
        (a, b, c), before = above[k], edges[k + 1]  # sums over z > u of (u / z)^2 q, tr G, (u / z) (2 x'G x / q - tr G)
        for place in range(len(inside) - 1, -2, -1):
            below = z[inside[place]] if place >= 0 else edges[k]
            dropped = energies[place] if place >= 0 else under[k]
            v, r = -variance * c / a if a > 0 else 1.0, below / before
            value = dropped + v * v * a + 2 * variance * (b + v * c)
            if r < v < 1 and value < best:
                best_u, best = max(v * before, TINY), value
            a, c = r * r * a, r * c
            value = dropped + a + 2 * variance * (b + c)
            if place >= 0 and value < best:
                best_u, best = max(below, TINY), value
            if not below > 0:
                break
            if place >= 0:
                i = inside[place]
                a, b, c, before = a + sums[i, 0], b + sums[i, 2], c + 2 * sums[i, 3] / sums[i, 0] - sums[i, 2], below
    return best_u, best


@njit(cache=True)
def _shrinkage(u, sums, b):
    """u / z of a block that is kept, 1 of one that is dropped."""
    z = _height(sums[b, 0], sums[b, 1])
    return 0.0 if u == 0 or z < 0 else 1.0 if z <= u else u / z


@parallel_njit()
def _kept(t, sums):
    """What each block is multiplied by, (n_scales, n_blocks), and the divergence of each row."""
    kept, divergence = np.empty(sums.shape[:2]), np.zeros(len(sums))
    for j in prange(len(sums)):
        for b in range(sums.shape[1]):
            share = _shrinkage(t[j] * t[j], sums[j], b)
            kept[j, b] = 1 - share
            if share < 1:
                turn = 2 * share * sums[j, b, 3] / sums[j, b, 0] if share > 0 else 0.0
                divergence[j] += kept[j, b] * sums[j, b, 2] + turn
    return kept, divergence


@parallel_njit()
def _times(x, blocks, kept):
    """The coefficients of each block times its factor."""
    result = np.empty_like(x)
    for j in prange(len(x)):
        for i in range(x.shape[1]):
            result[j, i] = x[j, i] * kept[j, blocks[i]]
    return result


@parallel_njit()
def _turn(x, blocks, t, sums, directions):
    """J_h times each direction, (k, n_scales, n)."""
    result = np.empty_like(directions)
    for j in prange(len(x)):
        share = np.empty(sums.shape[1])
        for b in range(len(share)):
            share[b] = _shrinkage(t[j] * t[j], sums[j], b)
        for k in range(len(directions)):
            dots = np.zeros(len(share))
            for i in range(x.shape[1]):
                dots[blocks[i]] += np.float64(x[j, i]) * directions[k, j, i]
            for b in range(len(share)):
                dots[b] = 2 * share[b] * dots[b] / sums[j, b, 0] if 0 < share[b] < 1 else 0.0
            for i in range(x.shape[1]):
                result[k, j, i] = (1 - share[blocks[i]]) * directions[k, j, i] + dots[blocks[i]] * x[j, i]
    return result


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
    """Contiguous and writeable: numba would compile everything once more for arrays that are not."""
    blocks = np.asarray(blocks)
    fits = blocks.shape == (n,) and blocks.dtype.kind in "iu"
    if not fits or not 0 <= blocks.min(initial=0) <= blocks.max(initial=0) <= max(n - 1, 0):
        msg = f"blocks must be numbers from 0 on of shape ({n},), as block_partition returns them; got {shown(blocks)}"
        raise InputError(msg)
    return np.require(blocks, np.int32, ["C", "W"])


def _checked_t(t, n_scales: int) -> np.ndarray:
    values = checked_thresholds(t)
    if values.shape not in ((), (n_scales,)):
        msg = f"t must be one threshold or {n_scales} of them, one per scale; got shape {values.shape}"
        raise InputError(msg)
    return np.ascontiguousarray(np.broadcast_to(values.astype(np.float64), n_scales))
