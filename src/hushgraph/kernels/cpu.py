"""The recurrence at the speed of memory, in Numba.

Three ideas on top of the row order of `layout`. (1) Because blocks only touch their neighbours, the polynomial climbs
STEPS degrees on a block while it is in cache, in a diagonal wavefront over the blocks; the terms in between live in a
small round window and never reach memory. (2) All those terms are added into all scales in one pass. (3) The inverse
runs the same wavefront backwards (Clenshaw) for all scales together. Threads take stretches of blocks and recompute the
few terms of their neighbours that they need, so they meet once per STEPS degrees. Several signals of a graph that fits
the cache run side by side in vector registers (`lanes`): they share indices and instructions.

Each row adds its neighbours in ascending node number, each scale its terms in ascending degree, whatever the blocks,
the number of threads or of signals, and no fastmath: the bits never depend on them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import NamedTuple

import numba
import numpy as np
from numba import njit, prange

from hushgraph.kernels.lanes import ALL, ONE, WIDTH, get, part, put
from hushgraph.kernels.layout import Layout, one_at_a_time, prepare

__all__ = ["cores_for", "forward", "inverse", "prepare", "product", "signless_product"]

STEPS = 12  # degrees climbed in one sweep of the wavefront
LANE_STEPS = 6  # likewise with several signals side by side, whose window is wider
SMALL = 2**17  # below this many rows several signals side by side fit the cache, and pay
SLICE = 256  # values mixed at once: STEPS slices of them fit the first-level cache
KEPT_VALUES = 2**24  # bands of a workspace up to this size stay for the next call
WHOLE = 2**59 - 1  # mask of a vector that is not round; times the width it must not overflow


def forward(layout, coefficients, signals, scale):
    """All rho_j(L) x of each signal x, (m, n) -> (m, n_scales, n). Read-only input is copied: it has a type of its own."""
    out = np.empty((len(signals), len(coefficients), signals.shape[1]), dtype=signals.dtype)
    theta = np.ascontiguousarray(coefficients, dtype=signals.dtype)
    if theta.shape[1] == 1:
        return np.multiply(theta[None], signals[:, None], out=out)
    _run(layout, theta, scale, np.require(signals, requirements="CW"), out, backward=False)
    return out


def inverse(layout, coefficients, bands, scale):
    """sum_j rho_j(L) F_j, (m, n_scales, n) -> (m, n)."""
    out = np.empty((len(bands), bands.shape[2]), dtype=bands.dtype)
    theta = np.ascontiguousarray(coefficients[:, ::-1].T, dtype=bands.dtype)  # Clenshaw comes down from the highest degree
    _run(layout, theta, scale, out, np.require(bands, requirements="CW"), backward=True)
    return out


def _run(layout, theta, scale, signals, bands, *, backward):
    """Forward: T_k x summed into the bands. Backward: b_k = u_k + 2 (scale L - I) b_{k+1} - b_{k+2}, u_k = sum_j theta_jk F_j."""
    operator = _recurrence(layout, scale, signals.dtype)
    n_blocks, signals = len(layout.blocks) - 1, signals[:, None]
    chunks = max(1, min(numba.get_num_threads(), n_blocks // (2 * STEPS))) if layout.wavefront else 1
    with one_at_a_time:
        if layout.wavefront and len(layout.order) < (SMALL if len(signals) > 2 else SMALL // 8):
            mask = _window_mask(layout)
            shape = LANE_STEPS + 2, (mask + 1 + _widest(layout)) * WIDTH
            with cores_for(2**15 if len(signals) > WIDTH else 0):
                _columns(operator, theta, layout.order, signals, bands, shape, mask, backward)
            return
        work = _workspace(layout, bands.shape[1], signals.dtype, chunks)
        for m in range(len(signals)):
            _transform(layout, operator, theta, signals[m : m + 1], bands[m : m + 1], *work, backward)


def _transform(layout, operator, theta, signals, bands, pairs, windows, mask, rows, backward):
    """All cores on one signal."""
    old, new = pairs[:2], pairs[2:]
    n_terms, most = len(theta) if backward else theta.shape[1], windows.shape[1] - 2
    sweep = _sweep if layout.wavefront else _sweep_plainly
    old[:] = 0
    _gather(layout.order, bands if backward else signals, rows if backward else old[1:])
    for k in range(0 if backward else 1, n_terms, most):
        steps = min(most, n_terms - k)
        sweep(k, steps, operator, theta, old, new, windows, mask, rows, backward)
        old, new = new, old
    _scatter(layout.order, old[1:] if backward else rows, signals if backward else bands)


def product(layout: Layout, x, out):
    """out = L x, rows in the order of the layout; returns x'out per block."""
    return _product(_operator(layout, 1.0, 1.0, 0.0, x.dtype), x, _zeros(layout), out, False)


def signless_product(layout: Layout, x, out):
    """out = (diagonal + adjacency) x, rows in the order of the layout; returns max out / x per block."""
    return _product(_operator(layout, -1.0, 1.0, 0.0, x.dtype), x, _zeros(layout), out, True)


@contextmanager
def cores_for(n):
    """One core below 32,768 rows, where waking the others for each product costs more than they do; all cores above."""
    with one_at_a_time:
        cores = numba.get_num_threads()
        numba.set_num_threads(1 if n < 2**15 else cores)
        try:
            yield
        finally:
            numba.set_num_threads(cores)


def _zeros(layout):
    return layout.workspace.setdefault("zeros", np.zeros(len(layout.order)))


def _operator(layout, gain, own, offset, dtype, round_indices=None):
    """What the row loops need: (own * diagonal + offset) x - gain * adjacency x, in the dtype of the signal."""
    weight = layout.uniform if layout.values is None else 1.0
    run_shift = (own * weight * layout.runs[:, 2] + offset).astype(dtype)
    values = None if layout.values is None else layout.values.astype(dtype, copy=False)
    row_shift = None if layout.diagonal is None else (own * layout.diagonal + offset).astype(dtype)
    indices = layout.indices if round_indices is None else round_indices
    return (
        layout.blocks,
        layout.block_runs,
        layout.runs,
        run_shift,
        indices,
        values,
        row_shift,
        dtype.type(gain * weight),
        dtype.type(0.5),
    )


def _recurrence(layout, scale, dtype):
    """2 (scale L - I), with neighbours looked up in the round window."""
    if "round indices" not in layout.workspace:
        layout.workspace["round indices"] = layout.indices & np.uint32(_window_mask(layout)) if layout.wavefront else layout.indices
    return _operator(layout, 2 * scale, 2 * scale, -2.0, np.dtype(dtype), layout.workspace["round indices"])


def _window_mask(layout):
    """The window holds a power of two of rows, enough for all blocks that a wavefront touches at once."""
    reach = min(STEPS + 3, len(layout.blocks) - 1)
    return (1 << int(np.max(layout.blocks[reach:] - layout.blocks[:-reach], initial=1) - 1).bit_length()) - 1


def _widest(layout):
    return int(np.diff(layout.blocks).max(initial=0))


class _Workspace(NamedTuple):
    """Four whole vectors (the two last terms before and after a sweep), a round window per stretch, bands in row order."""

    pairs: np.ndarray
    windows: np.ndarray
    mask: int
    rows: np.ndarray


def _workspace(layout, n_scales, dtype, chunks):
    """Room for one transform, kept between calls."""
    key, n = np.dtype(dtype).str, len(layout.order)
    mask = _window_mask(layout) if layout.wavefront else WHOLE
    length = mask + 1 + _widest(layout) if layout.wavefront else n  # with a tail, for a block that sticks out
    work = layout.workspace.get(key)
    if work is None or len(work.windows) != chunks:
        windows = np.empty((chunks, STEPS + 2, length), dtype)
        work = layout.workspace[key] = _Workspace(np.empty((4, n), dtype), windows, mask, np.empty((0, n), dtype))
    if len(work.rows) < n_scales:
        work = work._replace(rows=np.empty((n_scales, n), dtype))
        if work.rows.size <= KEPT_VALUES:
            layout.workspace[key] = work
    return work._replace(rows=work.rows[:n_scales])


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
def _block(b, operator, factor, x, own, before, start, out, lanes):
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


@njit(cache=True, parallel=True)
def _product(operator, x, zeros, out, want_ratio):
    """The product, and of each block x'out or max out / x, taken while it is in cache."""
    blocks, half = operator[0], operator[8]
    marks = np.zeros(len(blocks) - 1)
    for b in prange(len(blocks) - 1):
        here, there = x[blocks[b] : blocks[b + 1]], out[blocks[b] : blocks[b + 1]]
        _block(b, operator, half + half, x, here, zeros, None, there, ONE)
        mark = 0.0
        if want_ratio:
            for i in range(len(here)):
                if there[i] > mark * here[i] and here[i] > 0:
                    mark = there[i] / here[i]
        else:
            for i in range(len(here)):
                mark += here[i] * there[i]
        marks[b] = mark
    return marks


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
# two terms into rows 0 and 1 of the window, stage s computes row s + 1. Forward terms are T_k, added into the bands when a
# block is finished; backward terms are Clenshaw's b_k, which start from the mixed bands. A block's rows lie together in the
# window, from row & mask on; what sticks out at its end is copied to its beginning, where neighbours look for it.


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
        _block(b, operator, half if term == len(theta) - 1 else half + half, window[stage], own, before, out, out, lanes)
    else:
        _block(b, operator, half if term == 1 else half + half, window[stage], own, before, None, out, lanes)
    _wrap(window[stage + 1], last, (mask + 1) * width)


@njit(cache=True)
def _wrap(row, last, length):
    if last > length:
        row[: last - length] = row[length:last]


@njit(cache=True)
def _finish(b, k, steps, operator, theta, new, window, mask, bands, backward, width):
    """The last two terms of a block, and what its terms add to the bands (at first also T_0)."""
    lo, hi = operator[0][b] * width, operator[0][b + 1] * width
    place = (operator[0][b] & mask) * width
    new[0, lo:hi] = window[steps, place : place + hi - lo]
    new[1, lo:hi] = window[steps + 1, place : place + hi - lo]
    if not backward:
        fresh = 1 if k == 1 else 0
        _mix(bands, lo, window[2 - fresh :], place, hi - lo, theta[:, k - fresh : k + steps], fresh == 1)


@njit(cache=True)
def _climb(first, last, k, steps, operator, theta, old, new, window, mask, bands, backward, lanes):
    """The stretch of blocks first..last, with the terms of the blocks around it that it needs."""
    n_blocks = len(operator[0]) - 1
    for front in range(max(0, first - steps), min(n_blocks, last + steps) + steps):
        for stage in range(steps + 1):
            b, margin = front - stage, steps - stage
            if max(0, first - margin) <= b < min(n_blocks, last + margin):
                _stage(b, stage, k, steps, operator, theta, old, window, mask, bands, backward, lanes)
        if first <= front - steps < last:
            _finish(front - steps, k, steps, operator, theta, new, window, mask, bands, backward, len(lanes))


@njit(cache=True, parallel=True)
def _sweep(k, steps, operator, theta, old, new, windows, mask, bands, backward):
    """One wavefront per core."""
    n_blocks, chunks = len(operator[0]) - 1, len(windows)
    for c in prange(chunks):
        first, last = n_blocks * c // chunks, n_blocks * (c + 1) // chunks
        _climb(first, last, k, steps, operator, theta, old, new, windows[c], mask, bands, backward, ONE)


@njit(cache=True, parallel=True)
def _sweep_plainly(k, steps, operator, theta, old, new, windows, mask, bands, backward):
    """Stage after stage, for graphs without thin levels (small worlds); the window is as long as the graph."""
    n_blocks = len(operator[0]) - 1
    for stage in range(steps + 1):
        for b in prange(n_blocks):
            _stage(b, stage, k, steps, operator, theta, old, windows[0], mask, bands, backward, ONE)
    for b in prange(n_blocks):
        _finish(b, k, steps, operator, theta, new, windows[0], mask, bands, backward, 1)


@njit(cache=True, parallel=True)
def _gather(order, sources, targets):
    """The order of the layout."""
    for i in prange(len(order)):
        for j in range(len(targets)):
            targets[j, i] = sources[0, j, order[i]]


@njit(cache=True, parallel=True)
def _scatter(order, sources, targets):
    """Back to the order of the nodes."""
    for i in prange(len(order)):
        for j in range(len(sources)):
            targets[0, j, order[i]] = sources[j, i]


@njit(cache=True, parallel=True)
def _columns(operator, theta, order, signals, bands, shape, mask, backward):
    """Signals (m, 1, n) to bands (m, n_scales, n) or back on a small graph: each core takes WIDTH signals at a time."""
    n, n_blocks, count = len(order), len(operator[0]) - 1, len(signals)
    n_terms = len(theta) if backward else theta.shape[1]
    for group in prange((count + WIDTH - 1) // WIDTH):
        first = group * WIDTH
        pair, window = np.zeros((4, n * WIDTH), signals.dtype), np.empty(shape, signals.dtype)
        mine, side = np.empty((bands.shape[1], n * WIDTH), signals.dtype), 0
        for m in range(WIDTH):
            column = min(first + m, count - 1)
            for i in range(n):
                if backward:
                    for j in range(len(mine)):
                        mine[j, i * WIDTH + m] = bands[column, j, order[i]]
                else:
                    pair[1, i * WIDTH + m] = signals[column, 0, order[i]]
        for k in range(0 if backward else 1, n_terms, LANE_STEPS):
            steps = min(LANE_STEPS, n_terms - k)
            old, new = pair[side : side + 2], pair[2 - side : 4 - side]
            _climb(0, n_blocks, k, steps, operator, theta, old, new, window, mask, mine, backward, ALL)
            side = 2 - side
        for m in range(min(WIDTH, count - first)):
            for i in range(n):
                if backward:
                    signals[first + m, 0, order[i]] = pair[side + 1, i * WIDTH + m]
                else:
                    for j in range(len(mine)):
                        bands[first + m, j, order[i]] = mine[j, i * WIDTH + m]
