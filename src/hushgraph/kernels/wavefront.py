"""The recurrence on blocks of rows, in a wavefront that stays in cache (`cpu` says how the pieces make a transform).

Each row adds its neighbours in ascending node number, each scale its terms in ascending degree, and no fastmath: the bits never
depend on blocks, threads or the number of signals side by side.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from hushgraph.kernels.lanes import ONE, get, part, put
from hushgraph.kernels.threads import parallel_njit

SLICE = 256  # values mixed at once: a dozen slices of them fit the first-level cache


# ---- rows -------------------------------------------------------------------------------------------------------


@njit(cache=True, forceinline=True)
def _rows(count, pointer, length, indices, values, shift, row_shift, gain, factor, x, own, before, start, out, lanes):
    """out = [start +] shift own - gain sum of neighbours - before, for rows of one length.

    `x` is where neighbours are looked up; everything else begins at the first row. `factor` is in shift and gain already.
    """
    for i in range(count):
        row, q = np.uint64(i), np.uint64(pointer + i * length)
        term = (shift if row_shift is None else factor * row_shift[row]) * get(own, row, lanes)
        if length > 0:
            total = get(x, np.uint64(indices[q]), lanes)
            if values is not None:
                total = values[q] * total
            for p in range(1, length):
                neighbour = get(x, np.uint64(indices[q + np.uint64(p)]), lanes)
                total = total + (neighbour if values is None else values[q + np.uint64(p)] * neighbour)
            term = term - gain * total
        term = term - get(before, row, lanes)
        if start is not None:
            term = get(start, row, lanes) + term
        put(out, row, term, lanes)


@njit(cache=True)
def block_step(b, operator, factor, x, own, before, start, out, lanes):
    """One step of the recurrence on one block; short rows get loops of constant length, which the compiler unrolls."""
    blocks, block_runs, runs, run_shift, indices, values, row_shift, gain, _ = operator
    gain = factor * gain
    for r in range(block_runs[b], block_runs[b + 1]):
        first, last, length, place = runs[r]
        i, count, shift = first - blocks[b], last - first, factor * run_shift[r]
        lo, hi = i * len(lanes), (i + count) * len(lanes)
        shifts, starts = part(row_shift, first, last), part(start, lo, hi)
        here, prior, there = own[lo:hi], before[lo:hi], out[lo:hi]
        if length == 1:
            _rows(count, place, 1, indices, values, shift, shifts, gain, factor, x, here, prior, starts, there, lanes)
        elif length == 2:
            _rows(count, place, 2, indices, values, shift, shifts, gain, factor, x, here, prior, starts, there, lanes)
        elif length == 3:
            _rows(count, place, 3, indices, values, shift, shifts, gain, factor, x, here, prior, starts, there, lanes)
        elif length == 4:
            _rows(count, place, 4, indices, values, shift, shifts, gain, factor, x, here, prior, starts, there, lanes)
        else:
            _rows(count, place, length, indices, values, shift, shifts, gain, factor, x, here, prior, starts, there, lanes)


@njit(cache=True)
def _mix(target, target_place, source, source_place, count, theta, fresh):
    """target_t [+]= sum_s theta[t, s] source_s for `count` values from those places on, in ascending s."""
    for start in range(0, count, SLICE):
        size = min(SLICE, count - start)
        i, j = target_place + start, source_place + start
        for t in range(theta.shape[0]):
            out = target[t, i : i + size]
            if fresh:
                out[:] = 0
            elif not np.any(theta[t]):
                continue
            s = 0
            while s + 4 <= theta.shape[1]:
                a, b, c, d = theta[t, s], theta[t, s + 1], theta[t, s + 2], theta[t, s + 3]
                u, v, w, z = (
                    source[s, j : j + size],
                    source[s + 1, j : j + size],
                    source[s + 2, j : j + size],
                    source[s + 3, j : j + size],
                )
                for q in range(size):
                    out[q] = out[q] + a * u[q] + b * v[q] + c * w[q] + d * z[q]
                s += 4
            while s < theta.shape[1]:
                a, u = theta[t, s], source[s, j : j + size]
                for q in range(size):
                    out[q] += a * u[q]
                s += 1


# ---- the wavefront ----------------------------------------------------------------------------------------------
# A sweep computes terms k .. k + steps - 1 from the two before them. On each block it goes through stages: stage 0 loads the
# two terms into rows 0 and 1 of the window, stage s computes row s + 1. Forward terms are T_k x, added into the bands when a
# block is finished; backward terms are Clenshaw's b_k, which start from the mixed bands. A block's rows lie together in the
# window, from row & mask on; what sticks out at its end is copied to its beginning, where neighbours look for it.
# Moments: marks (blocks, terms, lanes) take <T_k x, T_k x> at 2k and <T_k x, T_k-1 x> at 2k - 1, since T_a T_b = (T_a+b + T_a-b) / 2.


@njit(cache=True)
def _stage(b, stage, k, steps, operator, theta, old, window, mask, bands, backward, lanes):
    lo, hi, half, width = operator[0][b], operator[0][b + 1], operator[8], len(lanes)
    place, size = (lo & mask) * width, (hi - lo) * width
    last = place + size
    if stage == 0:
        window[0, place:last] = old[0, lo * width : hi * width]
        window[1, place:last] = old[1, lo * width : hi * width]
        if backward:
            _mix(window[2:], place, bands, lo * width, size, theta[k : k + steps], True)
        _wrap(window[1], last, (mask + 1) * width)
        return
    own, before, out = window[stage, place:last], window[stage - 1, place:last], window[stage + 1, place:last]
    term = k + stage - 1
    if backward:
        block_step(b, operator, half if term == len(theta) - 1 else half + half, window[stage], own, before, out, out, lanes)
    else:
        block_step(b, operator, half if term == 1 else half + half, window[stage], own, before, None, out, lanes)
    _wrap(window[stage + 1], last, (mask + 1) * width)


@njit(cache=True)
def _wrap(row, last, length):
    if last > length:
        row[: last - length] = row[length:last]


@njit(cache=True)
def _finish(b, k, steps, operator, theta, new, window, mask, bands, marks, backward, lanes):
    """The last two terms of a block, and what its terms add to the bands (at first also T_0) and to the moments."""
    width = len(lanes)
    lo, hi = operator[0][b] * width, operator[0][b + 1] * width
    place = (operator[0][b] & mask) * width
    new[0, lo:hi] = window[steps, place : place + hi - lo]
    new[1, lo:hi] = window[steps + 1, place : place + hi - lo]
    if not backward:
        fresh = 1 if k == 1 else 0
        _mix(bands, lo, window[2 - fresh :], place, hi - lo, theta[:, k - fresh : k + steps], fresh == 1)
        if len(marks):
            for s in range(1 - fresh, steps + 1):
                term, own, before = k + s - 1, window[s + 1, place : place + hi - lo], window[s, place : place + hi - lo]
                if 2 * term < marks.shape[1]:
                    _put_dot(own, own, marks[b, 2 * term], lanes)
                if 0 < 2 * term <= marks.shape[1]:
                    _put_dot(own, before, marks[b, 2 * term - 1], lanes)


@njit(cache=True)
def _put_dot(x, y, out, lanes):
    """out = x'y, lane by lane; four sums, so that none waits for another."""
    first, rows = np.uint64(0), len(x) // len(lanes)
    s = get(x, first, lanes) - get(x, first, lanes)
    t, u, v = s, s, s
    for i in range(0, rows - 3, 4):
        a, b, c, d = np.uint64(i), np.uint64(i + 1), np.uint64(i + 2), np.uint64(i + 3)
        s, t = s + get(x, a, lanes) * get(y, a, lanes), t + get(x, b, lanes) * get(y, b, lanes)
        u, v = u + get(x, c, lanes) * get(y, c, lanes), v + get(x, d, lanes) * get(y, d, lanes)
    for i in range(rows - rows % 4, rows):
        s = s + get(x, np.uint64(i), lanes) * get(y, np.uint64(i), lanes)
    put(out, first, (s + t) + (u + v), lanes)


@njit(cache=True)
def climb(first, last, k, steps, operator, theta, old, new, window, mask, bands, marks, backward, lanes):
    """The stretch of blocks first..last, with the terms of the blocks around it that it needs."""
    n_blocks = len(operator[0]) - 1
    for front in range(max(0, first - steps), min(n_blocks, last + steps) + steps):
        for stage in range(steps + 1):
            b, margin = front - stage, steps - stage
            if max(0, first - margin) <= b < min(n_blocks, last + margin):
                _stage(b, stage, k, steps, operator, theta, old, window, mask, bands, backward, lanes)
        if first <= front - steps < last:
            _finish(front - steps, k, steps, operator, theta, new, window, mask, bands, marks, backward, lanes)


@parallel_njit()
def sweep(k, steps, operator, theta, old, new, windows, mask, bands, marks, backward):
    """One wavefront per core."""
    n_blocks, chunks = len(operator[0]) - 1, len(windows)
    for c in prange(chunks):
        first, last = n_blocks * c // chunks, n_blocks * (c + 1) // chunks
        climb(first, last, k, steps, operator, theta, old, new, windows[c], mask, bands, marks, backward, ONE)


@parallel_njit()
def sweep_plainly(k, steps, operator, theta, old, new, windows, mask, bands, marks, backward):
    """Stage after stage, for graphs without thin levels (small worlds); the window is as long as the graph."""
    n_blocks = len(operator[0]) - 1
    for stage in range(steps + 1):
        for b in prange(n_blocks):
            _stage(b, stage, k, steps, operator, theta, old, windows[0], mask, bands, backward, ONE)
    for b in prange(n_blocks):
        _finish(b, k, steps, operator, theta, new, windows[0], mask, bands, marks, backward, ONE)
