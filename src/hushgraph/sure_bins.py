"""The threshold of least SURE without a full sort: sums over bins bound SURE on each bin from below, and only the few bins that may
hold the minimum are sorted. `threshold` says what SURE is; `device_thresholds` makes the sums on a GPU and leaves the rest to this.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

TINY = 5e-324  # the least threshold that is not 0: it takes exact zeros and nothing else
BINS = 2048  # 64 per factor of 2 below the largest value; the lowest bin takes the rest
FULL = 512  # values of a bin above which it is cut into FINER ones
FINER = 64
FINER_SHIFT = 40  # bits of a float64 below those that say its finer bin
ROUNDING = 1e-12


@njit(cache=True, parallel=True)
def least_sure(x, g, scale, variance, beta):
    """For each row the candidate with the least SURE."""
    best = np.zeros(len(x))
    for j in prange(len(x)):
        z = np.abs(x[j])
        if scale is not None:
            for i in range(len(z)):  # scale 0 is never reached by a threshold: out of the way, below every candidate
                z[i] = z[i] / scale[j, i] if scale[j, i] > 0 else 0.0 if z[i] == 0 else -1.0
        best[j] = _least_sure_of_row(z, x[j], g[j], variance, beta)
    return best


@njit(cache=True)
def _least_sure_of_row(z, x, g, variance, beta):
    top = z.max() if len(z) else -1.0
    if not top > 0:
        return TINY if top == 0 else 0.0
    lowest = max(0, _bin(top) - BINS + 1)
    edges = bin_edges(lowest)
    sums = _bin_sums(z, x, g, lowest, edges, beta)
    open_bins, under, above, sure_at_zero = bounds_of_bins(edges, sums, variance, beta)
    starts, members = _members(z, lowest, open_bins)
    return search_bins(starts, z[members], x[members], g[members], edges, under, above, variance, beta, sure_at_zero)


@njit(cache=True)
def bounds_of_bins(edges, sums, variance, beta):
    """Which bins may hold the minimum; energy below each; A, B, C at its upper edge; and SURE at 0."""
    bounds, under, above, least = _bounds(edges, sums, 0.0, (0.0, 0.0, 0.0), variance, beta)
    sure_at_zero = 2 * variance * (above[0, 1] + sums[1][0])
    least = min(least, sure_at_zero)
    return bounds <= least + ROUNDING * abs(least), under, above, sure_at_zero


@njit(cache=True)
def _bounds(edges, sums, below, top, variance, beta):
    """SURE is at least this in each bin; energy below each; A, B, C at its upper edge; and the least SURE at an edge.

    `below` is the energy below all of them, `top` are A, B, C at the last edge.
    """
    energy, weight, lifted, tilted = sums
    n_bins = len(energy)
    under = below + (np.cumsum(energy) - energy)
    above, bounds = np.zeros((n_bins, 3)), np.empty(n_bins)
    a, b, c = top
    least = np.inf
    for k in range(n_bins - 1, -1, -1):
        above[k, 0], above[k, 1], above[k, 2] = a, b, c
        least = min(least, under[k] + energy[k] + a + 2 * variance * (b + (beta - 1) * c))  # at the edge itself
        r = (edges[k] / edges[k + 1]) ** beta
        a, c = r * r * a, r * c
        bounds[k] = under[k] + lifted[k] + a + 2 * variance * (b + (beta - 1) * c)
        a, b, c = a + lifted[k], b + weight[k], c + tilted[k]
    return bounds, under, above, least


@njit(cache=True)
def _bin(value):
    """Number of the bin of a positive float: its exponent and the first 6 bits of its mantissa, so ascending."""
    return np.array([value]).view(np.int64)[0] >> 46


@njit(cache=True)
def bin_edges(lowest):
    """Lower edges of the bins from that one on, and the upper edge of the last; the first takes all that lies below."""
    edges = np.empty(BINS + 1)
    edges[:] = (np.arange(lowest, lowest + BINS + 1) << 46).view(np.float64)
    edges[0] = 0.0
    return edges


@njit(cache=True)
def _bin_sums(z, x, g, lowest, edges, beta):
    """Per bin the sums of x^2, g, x^2 (edge / z)^2beta and g (edge / z)^beta, each in the order of i; z < 0 belongs nowhere."""
    n_bins, shift = len(edges) - 1, 46 if len(edges) - 1 == BINS else FINER_SHIFT
    energy, weight, lifted, tilted = np.zeros(n_bins), np.zeros(n_bins), np.zeros(n_bins), np.zeros(n_bins)
    keys = z.view(np.int64)
    for i in range(len(z)):
        if z[i] >= 0:
            k = max(0, (keys[i] >> shift) - lowest)
            r = edges[k] / z[i] if z[i] > 0 else 0.0
            r = r if beta == 1.0 else r * r if beta == 2.0 else r**beta
            square = x[i] * x[i]
            energy[k] += square
            weight[k] += g[i]
            lifted[k] += square * r * r
            tilted[k] += g[i] * r
    return energy, weight, lifted, tilted


@njit(cache=True)
def _members(z, lowest, open_bins):
    """Which values lie in open bins, bin after bin, each in the order of i; and where bins start."""
    starts, keys = np.zeros(BINS + 1, np.int64), z.view(np.int64)
    for i in range(len(z)):
        k = max(0, (keys[i] >> 46) - lowest)
        if z[i] >= 0 and open_bins[k]:
            starts[k + 1] += 1
    starts = np.cumsum(starts)
    members, filled = np.empty(starts[BINS], np.int64), starts.copy()
    for i in range(len(z)):
        k = max(0, (keys[i] >> 46) - lowest)
        if z[i] >= 0 and open_bins[k]:
            members[filled[k]] = i
            filled[k] += 1
    return starts, members


@njit(cache=True)
def search_bins(starts, z, x, g, edges, under, above, variance, beta, sure_at_zero):
    """The best candidate among 0 and the values of open bins, which come bin after bin."""
    best, best_t = sure_at_zero, 0.0
    for k in range(BINS):
        if starts[k] == starts[k + 1]:
            continue
        own, top = slice(starts[k], starts[k + 1]), (above[k, 0], above[k, 1], above[k, 2])
        if starts[k + 1] - starts[k] > FULL and edges[k] > 0:
            value, t = _search_finer(z[own], x[own], g[own], edges[k], edges[k + 1], under[k], top, variance, beta, best)
        else:
            value, t = _walk(z[own], x[own], g[own], edges[k + 1], under[k], top, variance, beta)
        if value < best:
            best, best_t = value, t
    return best_t


@njit(cache=True)
def _search_finer(z, x, g, low, high, below, top, variance, beta, best):
    """The best candidate of one full bin, cut into finer ones in the same way."""
    first = np.array([low]).view(np.int64)[0]
    edges = (first + (np.arange(FINER + 1) << FINER_SHIFT)).view(np.float64)
    edges[FINER] = high
    lowest = first >> FINER_SHIFT
    bounds, under, above, least = _bounds(edges, _bin_sums(z, x, g, lowest, edges, beta), below, top, variance, beta)
    least = min(least, best)
    best_t, keys = 0.0, (z.view(np.int64) >> FINER_SHIFT) - lowest
    best = np.inf
    for k in range(FINER):
        if bounds[k] <= least + ROUNDING * abs(least):
            own = np.flatnonzero(keys == k)
            value, t = _walk(
                z[own], x[own], g[own], edges[k + 1], under[k], (above[k, 0], above[k, 1], above[k, 2]), variance, beta
            )
            if value < best:
                best, best_t = value, t
    return best, best_t


@njit(cache=True)
def _walk(z, x, g, edge, below, top, variance, beta):
    """Least SURE at one of the values of a bin, from the largest down, as in `threshold._sure_at_data`; and that value."""
    best, best_t = np.inf, 0.0
    order = np.argsort(z, kind="mergesort")
    energies = below + np.cumsum(x[order] * x[order])
    a, b, c = top
    for q in range(len(order) - 1, -1, -1):
        i = order[q]
        r = (z[i] / edge) ** beta if edge > 0 else 1.0
        a, c = r * r * a, r * c
        value = energies[q] + a + 2 * variance * (b + (beta - 1) * c)
        if value < best:
            best, best_t = value, max(z[i], TINY)
        a, b, c, edge = a + x[i] * x[i], b + g[i], c + g[i], z[i]
    return best, best_t
