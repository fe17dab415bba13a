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

The whole estimator's divergence is the sum over scales, because that of W' h(W y) is tr(W' J_h W). With one standard
deviation per node, weights and probes hold it and sigma is 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from hushgraph.checks import checked_real_array, checked_sigma, shown
from hushgraph.frame import Frame
from hushgraph.kernels.cpu import cores_for
from hushgraph.local_noise import smooth_weights
from hushgraph.neighbourhoods import block_partition, blocks_of_scales
from hushgraph.risk import checked_pair, checked_scale, threshold_scale
from hushgraph.shrink import checked_thresholds
from hushgraph.threshold import BINS, TINY
from hushgraph.transform import checked_coefficient_size, checked_coefficients

SIZES = (1, 4, 8, 16, 32)  # 1 is the paper's rule; larger blocks than 32 gained nothing on street maps, grids and meshes

TEMPERATURE = 0.5  # standard deviations of noise energy by which SURE may differ before a share falls to 1 / e


class BlockBands(NamedTuple):
    """Thresholded coefficients (n_scales, n), and per scale the divergence, the threshold and the size of the blocks."""

    bands: np.ndarray
    divergence: np.ndarray
    thresholds: np.ndarray
    sizes: np.ndarray


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
    blocks : (n,) or (n_scales, n)
        Block numbers from 0 on, as `block_partition` returns them; one partition for all scales or one for each.
    weights : (n_scales, n)
        Raw Monte-Carlo weights or exact ones.
    probe_bands : (n_probes, n_scales, n)
        Coefficients of the probes, times sigma per node when there is one. Probes must not depend on the signal.
    scale : (n_scales, n), optional
        Thresholds of a block are t times the root of the sum of its squares; without it, of the number of its nodes.
    """
    variance = checked_sigma(sigma) ** 2
    x, blocks, g, probe_bands, scale = _checked(F, blocks, weights, probe_bands, scale)
    with cores_for(x.size):
        return _least_sure(_block_sums(x, blocks, g, scale, probe_bands, None), variance)


def apply_block_thresholds(F, blocks, t, weights, probe_bands, *, scale=None, turned_bands=None) -> tuple[np.ndarray, np.ndarray]:
    """Thresholded coefficients (n_scales, n) and the divergence of each scale (n_scales,).

    `turned_bands` are those of the same probes by the transposed transform: with them, and with weights of
    domain="signal", the divergence is that of the signal for random-walk Laplacians too.
    """
    x, blocks, g, probe_bands, scale = _checked(F, blocks, weights, probe_bands, scale, signed=turned_bands is not None)
    turned = None if turned_bands is None else _checked_bands("turned_bands", turned_bands, x.shape)
    with cores_for(x.size):
        sums = _block_sums(x, blocks, g, scale, probe_bands, turned)
        return _apply(x, blocks, _checked_t(t, len(x)), sums)


def block_jacobian(F, blocks, t, directions, *, scale=None) -> np.ndarray:
    """J_h v for coefficients v in rows (k, n_scales, n), h the block rule at F: what slope * v is to coordinate-wise rules.

    On a block that is kept J_h v = (1 - t^2 s_B / q) v_B + 2 t^2 s_B x_B <x_B, v_B> / q^2; it is symmetric.
    """
    x, blocks, unused, directions, scale = _checked(F, blocks, np.zeros(np.shape(F)), directions, scale)
    t = _checked_t(t, len(x))
    with cores_for(x.size):
        sums = _block_sums(x, blocks, unused, scale, directions[:0], None)
        return np.stack([_turn(x, blocks, t, sums, direction) for direction in directions])


def block_bands(
    frame: Frame, F, probe_bands, weights, variance, *, sizes=SIZES, scaled=True, sigma=None, signal_weights=None, turned_bands=None
) -> BlockBands:
    """Block thresholding with threshold and block size of each scale chosen by SURE; synthesize `bands` for the estimate.

    Parameters
    ----------
    F, probe_bands, weights
        As in `block_thresholds`.
    variance : float
        Of the noise; 1 where weights and probes hold sigma per node.
    sizes : tuple of int
        Block sizes to choose from.
    scaled : bool or (n_scales, n) array
        True: the squared threshold of a block is t^2 times the sum of its smoothed weights (`smooth_weights`), which was
        better than t^2 times its size (False) on every real map; an array: `scale` of `block_thresholds`.
    sigma : (n,) array, optional
        Standard deviation per node, for the smoothing, where weights and probes hold it.
    signal_weights, turned_bands : optional
        For random-walk Laplacians: see `apply_block_thresholds`. Thresholds are chosen without them.
    """
    F, scale, t, values = _trials(frame, F, probe_bands, weights, variance, sizes, scaled, sigma)
    rounding = 1e-12 * np.abs(values).max(axis=0)  # where all is dropped sizes differ by rounding alone: the first wins
    best = np.argmax(values <= values.min(axis=0) + rounding, axis=0)
    chosen, t = np.array(sizes)[best], t[best, np.arange(len(F))]
    blocks, g = blocks_of_scales(frame.graph, sizes=chosen), weights if signal_weights is None else signal_weights
    bands, divergence = apply_block_thresholds(F, blocks, t, g, probe_bands, scale=scale, turned_bands=turned_bands)
    return BlockBands(bands, divergence, t, chosen)


def block_mixture(
    frame: Frame, F, probe_bands, weights, variance, *, sizes=SIZES, scaled=True, sigma=None, signal_weights=None, turned_bands=None
) -> BlockMixture:
    """All block sizes, each at its own thresholds, averaged scale by scale with shares that fall with SURE.

    Blocks of several sizes have their borders at different places, so that their mean is better than the best of them, as
    with cycle spinning. Shares are exp(-SURE / (0.5 sigma^2 sqrt(2 sum(weights)))), normalised: the root is the standard
    deviation of pure noise energy, below which differences of SURE mean little. Parameters are those of `block_bands`.
    """
    F, scale, t, values = _trials(frame, F, probe_bands, weights, variance, sizes, scaled, sigma)
    typical = variance if sigma is None else float(np.mean(np.square(sigma)))
    spread = np.sqrt(2 * typical * variance * np.sum(weights, axis=1, dtype=np.float64))
    shares = np.exp((values.min(axis=0) - values) / np.maximum(TEMPERATURE * spread, np.finfo(float).tiny))
    shares /= shares.sum(axis=0)
    g, bands, divergence = weights if signal_weights is None else signal_weights, np.zeros_like(F), np.zeros(len(F))
    for size, its_t, share in zip(sizes, t, shares, strict=True):
        blocks = block_partition(frame.graph, size=size)
        part, its_divergence = apply_block_thresholds(F, blocks, its_t, g, probe_bands, scale=scale, turned_bands=turned_bands)
        bands += share.astype(F.dtype)[:, None] * part
        divergence += share * its_divergence
    return BlockMixture(bands, divergence, t, shares)


def _trials(frame: Frame, F, probe_bands, weights, variance: float, sizes, scaled, sigma):
    """F, the scale of its thresholds, and for each size (in rows) and scale the best threshold and its SURE."""
    F = checked_coefficients(frame, F)
    if len(sizes) == 0:
        msg = "sizes must name at least one block size, such as (4, 8, 16)"
        raise ValueError(msg)
    smooth = smooth_weights(frame.graph, weights, sigma=sigma) if scaled is True else weights
    scale = threshold_scale(smooth, scaled)
    partitions = (block_partition(frame.graph, size=size) for size in sizes)
    trials = [block_thresholds(F, blocks, weights, probe_bands, sigma=variance**0.5, scale=scale) for blocks in partitions]
    return F, scale, *np.moveaxis(np.array(trials), 1, 0)


# ---- kernels ----------------------------------------------------------------------------------------------------


@njit(cache=True, parallel=True)
def _block_sums(x, blocks, weights, scale, first, second):
    """(n_scales, n_blocks, 4): q, s, tr G and x'G x of each block; rows in parallel, nodes in ascending number."""
    n_blocks = blocks.max() + 1 if blocks.size else 0
    sums = np.zeros((len(x), n_blocks, 4))
    for j in prange(len(x)):
        block, out = blocks[np.int64(j) % len(blocks)], sums[j]
        for i in range(x.shape[1]):
            value, b = np.float64(x[j, i]), block[i]
            out[b, 0] += value * value
            out[b, 1] += 1.0 if scale is None else scale[j, i] * scale[j, i]
            out[b, 2] += weights[j, i]
        dots, others = np.zeros(n_blocks), np.zeros(0 if second is None else n_blocks)
        for k in range(len(first)):
            for i in range(x.shape[1]):
                dots[block[i]] += x[j, i] * np.float64(first[k, j, i])
                if second is not None:
                    others[block[i]] += x[j, i] * np.float64(second[k, j, i])
            for b in range(n_blocks):
                out[b, 3] += dots[b] * (dots[b] if second is None else others[b]) / len(first)
            dots[:], others[:] = 0.0, 0.0
    return sums


@njit(cache=True)
def _height(q, s):
    """z = q / s, the least t^2 that drops the block; -1 where none does. The one place where it is rounded."""
    return q / s if s > 0 else 0.0 if q == 0 else -1.0


@njit(cache=True, parallel=True)
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


@njit(cache=True, parallel=True)
def _apply(x, blocks, t, sums):
    """The thresholded coefficients, and the divergence of each row."""
    result, divergence = np.empty_like(x), np.zeros(len(x))
    for j in prange(len(x)):
        block, share = blocks[np.int64(j) % len(blocks)], np.empty(sums.shape[1])
        for b in range(sums.shape[1]):
            share[b] = _shrinkage(t[j] * t[j], sums[j], b)
            if share[b] < 1:
                turn = 2 * share[b] * sums[j, b, 3] / sums[j, b, 0] if share[b] > 0 else 0.0
                divergence[j] += (1 - share[b]) * sums[j, b, 2] + turn
        for i in range(x.shape[1]):
            result[j, i] = x[j, i] * (1 - share[block[i]])
    return result, divergence


@njit(cache=True, parallel=True)
def _turn(x, blocks, t, sums, direction):
    """J_h times one direction (n_scales, n)."""
    result = np.empty_like(direction)
    for j in prange(len(x)):
        block, dots = blocks[np.int64(j) % len(blocks)], np.zeros(sums.shape[1])
        for i in range(x.shape[1]):
            dots[block[i]] += np.float64(x[j, i]) * direction[j, i]
        share = np.empty(sums.shape[1])
        for b in range(sums.shape[1]):
            share[b] = _shrinkage(t[j] * t[j], sums[j], b)
            dots[b] = 2 * share[b] * dots[b] / sums[j, b, 0] if 0 < share[b] < 1 else 0.0
        for i in range(x.shape[1]):
            result[j, i] = (1 - share[block[i]]) * direction[j, i] + dots[block[i]] * x[j, i]
    return result


# ---- shapes -----------------------------------------------------------------------------------------------------


def _checked(F, blocks, weights, bands, scale, *, signed: bool = False):
    """F, blocks (1 or n_scales, n), weights, bands and scale, contiguous and of fitting shapes."""
    F, weights = checked_pair(F, weights)
    if F.ndim != 2:
        msg = f"blocks take one signal at a time, coefficients of shape (n_scales, n); got {F.shape}"
        raise ValueError(msg)
    if not signed and weights.min(initial=0.0) < 0:
        msg = "weights must not be negative without turned_bands; pass weights of domain='coefficients'"
        raise ValueError(msg)
    blocks = np.asarray(blocks)
    fits = blocks.shape in ((F.shape[1],), F.shape) and blocks.dtype.kind in "iu"
    if not fits or not 0 <= blocks.min(initial=0) <= blocks.max(initial=0) <= max(F.shape[1] - 1, 0):
        expected = f"({F.shape[1]},) or {F.shape}"
        msg = f"blocks must be numbers from 0 on of shape {expected}, as block_partition returns them; got {shown(blocks)}"
        raise ValueError(msg)
    scale = None if scale is None else np.ascontiguousarray(checked_scale("scale", scale, F.shape))
    blocks = np.ascontiguousarray(np.atleast_2d(blocks).astype(np.int32, copy=False))
    blocks = np.array(blocks) if not blocks.flags.writeable else blocks
    bands = _checked_bands("probe_bands", bands, F.shape)
    return np.ascontiguousarray(F), blocks, np.ascontiguousarray(weights), bands, scale


def _checked_bands(name: str, bands, shape: tuple[int, int]) -> np.ndarray:
    values = checked_real_array(name, bands)
    if values.ndim != 3 or values.shape[1:] != shape or len(values) == 0:
        msg = f"{name} must have shape (n_probes, {shape[0]}, {shape[1]}), one transform per probe; got {values.shape}"
        raise ValueError(msg)
    return np.ascontiguousarray(checked_coefficient_size(name, values))


def _checked_t(t, n_scales: int) -> np.ndarray:
    values = checked_thresholds(t)
    if values.shape not in ((), (n_scales,)):
        msg = f"t must be one threshold or {n_scales} of them, one per scale; got shape {values.shape}"
        raise ValueError(msg)
    return np.ascontiguousarray(np.broadcast_to(values.astype(np.float64), n_scales))
