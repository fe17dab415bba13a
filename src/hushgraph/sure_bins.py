"""The threshold of least SURE without a full sort: sums over bins bound SURE on each bin from below, and only the few bins that may
hold the minimum are looked into, in finer bins and then value by value. `threshold` says what SURE is.

Sums are whole numbers of units, so they do not depend on the order of their terms: threads, a GPU (`device_thresholds`) and the parts
of a graph on many machines add up to the same, and so does the threshold, to the bit.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from hushgraph.kernels.threads import parallel_njit

TINY = 5e-324  # the least threshold that is not 0: it takes exact zeros and nothing else
BINS = 2048  # 64 per factor of 2 below the largest value; the lowest bin takes the rest
FINER = 64  # into which a bin is cut
SHIFT, FINER_SHIFT = 46, 40  # bits of a float64 below those that say its bin, or finer bin
FEW = 1024  # values in open bins up to which they are not cut
ROUNDING = 1e-12
WORDS = 9  # of a bin: x^2, g, x^2 (edge / z)^2beta, g (edge / z)^beta, each in high units and low ones of 2^-32; number of values
LEAST_UNIT = 2.0**-900


@parallel_njit()
def least_sure(x, g, scale, variance, beta):
    """For each row the candidate with the least SURE."""
    best = np.zeros(len(x))
    for j in prange(len(x)):
        z = sizes(x[j], None if scale is None else scale[j])
        best[j] = _least_sure_of_row(z, x[j], g[j], variance, beta)
    return best


@njit(cache=True)
def sizes(x, scale):
    """|x|, or |x| / scale; scale 0 is never reached by a threshold: -1, out of the way, below every candidate."""
    z = np.abs(x)
    if scale is not None:
        for i in range(len(z)):
            z[i] = z[i] / scale[i] if scale[i] > 0 else 0.0 if z[i] == 0 else -1.0
    return z


@njit(cache=True)
def _least_sure_of_row(z, x, g, variance, beta):
    top, largest, heaviest, widest = extremes(z, x, g)
    if not top > 0:
        return TINY if top == 0 else 0.0
    lowest, units = lowest_bin(top), units_of(largest, heaviest, widest)
    sums = np.zeros((BINS, WORDS), np.int64)
    add_to_bins(z, x, g, lowest, units, beta, sums)
    slots, bins, inside = open_bins(sums, lowest, units, variance, beta)
    own = places_in_bins(z, lowest, slots)
    z, x, g, finer = z[own], x[own], g[own], np.zeros((len(bins), FINER, WORDS), np.int64)
    if is_cut(inside):
        add_to_finer(z, x, g, lowest, slots, units, beta, finer)
    cells, cell_of = open_cells(bins, inside, finer, lowest, units, variance, beta)
    starts, own = places_in_cells(cell_numbers(z, lowest, slots, cell_of), len(cells))
    return least_of_cells(cells, starts, z[own], x[own], g[own], inside[1], variance, beta)


# ---- sums that add up: over threads, over a GPU, over parts of a graph --------------------------------------------------


@njit(cache=True)
def extremes(z, x, g):
    """The largest size (-1 if there is none), |x|, |g|, and |x| over size."""
    top, largest, heaviest, widest = -1.0, 0.0, 0.0, 0.0
    for i in range(len(z)):
        top, largest, heaviest = max(top, z[i]), max(largest, abs(x[i])), max(heaviest, abs(g[i]))
        if z[i] > 0:
            widest = max(widest, abs(x[i]) / z[i])
    return top, largest, heaviest, widest


@njit(cache=True)
def lowest_bin(top):
    """Number of the lowest bin where this is the largest size."""
    return max(0, (np.array([top]).view(np.int64)[0] >> SHIFT) - BINS + 1)


@njit(cache=True)
def units_of(largest, heaviest, widest):
    """What units follow from: a power of two above every x^2, the high unit of g, and the largest |x| over size."""
    return _power_of_two_above(largest * largest), _power_of_two_above(heaviest) * 2.0**-32, widest


@njit(cache=True)
def _square_units(lowest, units):
    """The high unit of x^2 in each bin: 2^-32 of a power of two above all there. So small terms are as exact as large ones."""
    edges, found = _edges(lowest, BINS, SHIFT), np.empty(BINS)
    for k in range(BINS):
        most = edges[k + 1] * units[2]
        square = most * most * (1 + 2.0**-40)  # room for the rounding of sizes
        found[k] = (min(units[0], _power_of_two_above(square)) if square < np.inf else units[0]) * 2.0**-32
    return found


@njit(cache=True)
def _power_of_two_above(value):
    return max(math.ldexp(1.0, math.frexp(value)[1]), LEAST_UNIT)


@njit(cache=True)
def add_to_bins(z, x, g, lowest, units, beta, sums):
    """Adds each value to its bin of `sums` (BINS, WORDS); z < 0 belongs nowhere."""
    keys, edges = z.view(np.int64), _edges(lowest, BINS, SHIFT)
    per_square, per_weight = 1 / _square_units(lowest, units), 1 / units[1]  # exact, as is what they multiply
    edges[0] = 0.0  # the lowest bin takes all that lies below
    for i in range(len(z)):
        if z[i] >= 0:
            k = max(0, (keys[i] >> SHIFT) - lowest)
            _add(sums[k], x[i], g[i], edges[k] / z[i] if z[i] > 0 else 0.0, per_square[k], per_weight, beta)


@njit(cache=True)
def add_to_finer(z, x, g, lowest, slots, units, beta, sums):
    """Adds the values of open bins to their finer ones, (open bins, FINER, WORDS)."""
    keys, edge = z.view(np.int64), np.empty(1)
    per_square, per_weight = 1 / _square_units(lowest, units), 1 / units[1]
    for i in range(len(z)):
        k = max(0, (keys[i] >> SHIFT) - lowest)
        if z[i] >= 0 and slots[k] >= 0 and k > 0:
            edge.view(np.int64)[0] = keys[i] >> FINER_SHIFT << FINER_SHIFT
            own = sums[slots[k], (keys[i] >> FINER_SHIFT) % FINER]
            _add(own, x[i], g[i], edge[0] / z[i], per_square[k], per_weight, beta)


@njit(cache=True)
def _add(own, x, g, ratio, per_square, per_weight, beta):
    square, r = x * x, _power(ratio, beta)
    _count(own, 0, square * per_square)
    _count(own, 2, g * per_weight)
    _count(own, 4, square * r * r * per_square)
    _count(own, 6, g * r * per_weight)
    own[8] += 1


@njit(cache=True)
def _count(own, place, value):
    """Adds the high units in a value, and of what is left the low ones: exact but for less than one of these."""
    high = np.int64(value)
    own[place] += high
    own[place + 1] += np.int64((value - high) * 2.0**32)


@njit(cache=True)
def _power(ratio, beta):
    return ratio if beta == 1.0 else ratio * ratio if beta == 2.0 else ratio**beta


# ---- where the minimum may be -------------------------------------------------------------------------------------------


@njit(cache=True)
def open_bins(sums, lowest, units, variance, beta):
    """(slots, bins, inside): the place of each bin among the open ones, or -1; of each open bin its number, the energy below it and
    A, B, C at its upper edge; and how many values they hold, SURE at 0, and the least SURE known so far."""
    edges = _edges(lowest, BINS, SHIFT)
    edges[0] = 0.0
    floats = _in_floats(sums, _square_units(lowest, units), units[1])
    bounds, under, above, least = _bounds(edges, floats, 0.0, np.zeros(3), variance, beta)
    sure_at_zero = 2 * variance * (above[0, 1] + floats[1, 0])
    least = min(least, sure_at_zero)
    slots, bins, count, values = np.full(BINS, -1), np.empty((BINS, 5)), 0, 0
    for k in range(BINS):
        if sums[k, 8] and bounds[k] <= least + ROUNDING * abs(least):
            slots[k] = count
            bins[count, 0], bins[count, 1], bins[count, 2:] = k, under[k], above[k]
            count, values = count + 1, values + sums[k, 8]
    return slots, bins[:count], (float(values), sure_at_zero, least)


@njit(cache=True)
def is_cut(inside):
    """Whether open bins hold so many values that it pays to cut them."""
    return inside[0] > FEW


@njit(cache=True)
def open_cells(bins, inside, finer, lowest, units, variance, beta):
    """(cells, cell_of): of each cell its upper edge, the energy below it and A, B, C there; and the cell of each finer bin, or -1.

    A cell is an open finer bin, or a whole bin if bins are not cut; the lowest never is.
    """
    bounds, cells = np.empty((len(bins), FINER)), np.empty((len(bins) * FINER, 5))
    cell_of, count, least = np.full((len(bins), FINER), -1), 0, inside[2]
    parts, squares = np.empty((len(bins), FINER, 5)), _square_units(lowest, units)
    for s in range(len(bins) if is_cut(inside) else 0):
        if bins[s, 0] > 0:
            edges = _edges((lowest + int(bins[s, 0])) * FINER, FINER, FINER_SHIFT)
            sums = _in_floats(finer[s], np.full(FINER, squares[int(bins[s, 0])]), units[1])
            bounds[s], parts[s, :, 1], parts[s, :, 2:], found = _bounds(edges, sums, bins[s, 1], bins[s, 2:], variance, beta)
            parts[s, :, 0], least = edges[1:], min(least, found)
    for s in range(len(bins)):
        if not is_cut(inside) or bins[s, 0] == 0:
            cells[count, 0], cells[count, 1:] = _edges(lowest + int(bins[s, 0]), 1, SHIFT)[1], bins[s, 1:]
            cell_of[s], count = count, count + 1
            continue
        for f in range(FINER):
            if finer[s, f, 8] and bounds[s, f] <= least + ROUNDING * abs(least):
                cells[count], cell_of[s, f], count = parts[s, f], count, count + 1
    return cells[:count], cell_of


@njit(cache=True)
def _bounds(edges, sums, below, top, variance, beta):
    """SURE is at least this in each bin; energy below each; A, B, C at its upper edge; and the least SURE at an edge.

    `below` is the energy below all of them, `top` are A, B, C at the last edge.
    """
    energy, weight, lifted, tilted = sums[0], sums[1], sums[2], sums[3]
    n_bins = len(energy)
    under = below + (np.cumsum(energy) - energy)
    above, bounds = np.zeros((n_bins, 3)), np.empty(n_bins)
    a, b, c = top[0], top[1], top[2]
    least = np.inf
    for k in range(n_bins - 1, -1, -1):
        above[k, 0], above[k, 1], above[k, 2] = a, b, c
        least = min(least, under[k] + energy[k] + a + 2 * variance * (b + (beta - 1) * c))  # at the edge itself
        r = _power(edges[k] / edges[k + 1], beta)
        a, c = r * r * a, r * c
        bounds[k] = under[k] + lifted[k] + a + 2 * variance * (b + (beta - 1) * c)
        a, b, c = a + lifted[k], b + weight[k], c + tilted[k]
    return bounds, under, above, least


@njit(cache=True)
def _edges(first, count, shift):
    """Lower edges of bins from that number on, and the upper edge of the last."""
    return (np.arange(first, first + count + 1) << shift).view(np.float64)


@njit(cache=True)
def _in_floats(sums, squares, weight):
    """The four sums of each bin, (4, bins), from the units of x^2 in each and that of g."""
    found = np.empty((4, len(sums)))
    for k in range(len(sums)):
        for what in range(4):
            unit = weight if what % 2 else squares[k]
            found[what, k] = sums[k, 2 * what] * unit + sums[k, 2 * what + 1] * (unit * 2.0**-32)
    return found


# ---- value by value -----------------------------------------------------------------------------------------------------


@njit(cache=True)
def places_in_bins(z, lowest, slots):
    """The places of values in open bins, in their order."""
    keys, found, count = z.view(np.int64), np.empty(len(z), np.int64), 0
    for i in range(len(z)):
        found[count] = i
        count += z[i] >= 0 and slots[max(0, (keys[i] >> SHIFT) - lowest)] >= 0
    return found[:count]


@njit(cache=True)
def cell_numbers(z, lowest, slots, cell_of):
    """The cell of each value, or -1."""
    keys, found = z.view(np.int64), np.empty(len(z), np.int64)
    for i in range(len(z)):
        slot = slots[max(0, (keys[i] >> SHIFT) - lowest)] if z[i] >= 0 else -1
        found[i] = cell_of[slot, (keys[i] >> FINER_SHIFT) % FINER] if slot >= 0 else -1
    return found


@njit(cache=True)
def places_in_cells(numbers, n_cells):
    """Where the values of each cell start, and the places of them, each in the order they came."""
    starts = np.zeros(n_cells + 1, np.int64)
    for cell in numbers:
        starts[cell + 1] += cell >= 0
    starts = np.cumsum(starts)
    places, filled = np.empty(starts[n_cells], np.int64), starts.copy()
    for i in range(len(numbers)):
        if numbers[i] >= 0:
            places[filled[numbers[i]]] = i
            filled[numbers[i]] += 1
    return starts, places


@njit(cache=True)
def least_of_cells(cells, starts, z, x, g, sure_at_zero, variance, beta):
    """The best candidate among 0 and the values of cells, which come cell after cell."""
    best, best_t = sure_at_zero, 0.0
    for k in range(len(cells)):
        own = slice(starts[k], starts[k + 1])
        value, t = _walk(z[own], x[own], g[own], cells[k], variance, beta)
        if value < best:
            best, best_t = value, t
    return best_t


@njit(cache=True)
def least_of_rows(known, cells, members, variance, beta):
    """The best candidate of each row. Of a row are known its largest size, how many bins are open and values in them, SURE at 0, the least
    bound, how many cells there are, and where its members end; members have a cell, a size, x and g, in the order of nodes.
    """
    found, start = np.zeros(len(known)), 0
    for j in range(len(known)):
        top, end = known[j, 0], int(known[j, 6])
        if top > 0:
            own = members[:, start:end]
            starts, places = places_in_cells(own[0].astype(np.int64), int(known[j, 5]))
            z, x, g = own[1][places], own[2][places], own[3][places]
            found[j] = least_of_cells(cells[j, : int(known[j, 5])], starts, z, x, g, known[j, 3], variance, beta)
        elif top == 0:
            found[j] = TINY
        start = end
    return found


@njit(cache=True)
def _walk(z, x, g, cell, variance, beta):
    """Least SURE at one of the values of a cell, from the largest down, as in `threshold._sure_at_data`; and that value."""
    best, best_t = np.inf, 0.0
    order = _ascending(z)
    energies, energy = np.empty(len(z)), 0.0
    for q in range(len(order)):
        energy += x[order[q]] * x[order[q]]
        energies[q] = cell[1] + energy
    edge, a, b, c = cell[0], cell[2], cell[3], cell[4]
    for q in range(len(order) - 1, -1, -1):
        i = order[q]
        r = _power(z[i] / edge, beta) if edge > 0 else 1.0
        a, c = r * r * a, r * c
        value = energies[q] + a + 2 * variance * (b + (beta - 1) * c)
        if value < best:
            best, best_t = value, max(z[i], TINY)
        a, b, c, edge = a + x[i] * x[i], b + g[i], c + g[i], z[i]
    return best, best_t


@njit(cache=True)
def _ascending(z):
    """np.argsort(z, kind="mergesort"), faster for the few values of a cell."""
    if len(z) > 128:
        return np.argsort(z, kind="mergesort")
    order = np.arange(len(z))
    for q in range(1, len(z)):
        i, place = order[q], q
        while place > 0 and z[order[place - 1]] > z[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i
    return order
