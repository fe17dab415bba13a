"""The recurrence at the speed of memory, in Numba.

Four ideas. (1) Nodes are renumbered by breadth-first levels, which form blocks that only touch their neighbours, and
by degree inside each block, so that rows come in runs of one length without a mispredicted branch. (2) Because blocks
only touch their neighbours, the polynomial climbs STEPS degrees on a block while it is in cache, in a diagonal
wavefront over the blocks; indices and vectors then come from memory once per STEPS products. (3) All those terms are
added into all scales in one pass. (4) The inverse runs the same wavefront backwards (Clenshaw) for all scales together.

Each row adds its neighbours in ascending node number, each scale its terms in ascending degree, whatever the blocks,
the number of threads or of signals, and no fastmath: the bits never depend on them.
"""

from __future__ import annotations

import threading

import numba
import numpy as np
from numba import njit, prange

from hushgraph.kernels.layout import Layout, prepare

__all__ = ["forward", "inverse", "prepare", "product", "signless_product"]

STEPS = 8  # degrees climbed in one sweep of the wavefront
SLICE = 512  # values mixed at once: 10 slices of them fit the first-level cache

_one_at_a_time = threading.Lock()  # every call takes all cores; two at once would only share workspaces


def forward(layout, coefficients, signals, scale):
    """All rho_j(L) x of each signal x, (m, n) -> (m, n_scales, n)."""
    dtype = signals.dtype
    out = np.empty((len(signals), len(coefficients), signals.shape[1]), dtype=dtype)
    operator = _recurrence(layout, scale, dtype)
    theta = np.ascontiguousarray(coefficients, dtype=dtype)
    with _one_at_a_time:
        chunks = _chunks(layout)
        if chunks == 1 and len(signals) > 1 and layout.wavefront:
            _forward_columns(operator, theta, layout.order, np.ascontiguousarray(signals), out)
            return out
        terms, bands = _workspace(layout, len(coefficients), dtype)
        for signal, result in zip(signals, out, strict=True):
            _forward(operator, theta, layout.order, signal, terms, bands, result, chunks, layout.wavefront)
    return out


def inverse(layout, coefficients, bands, scale):
    """sum_j rho_j(L) F_j, (m, n_scales, n) -> (m, n)."""
    dtype = bands.dtype
    out = np.empty((len(bands), bands.shape[2]), dtype=dtype)
    operator = _recurrence(layout, scale, dtype)
    theta = np.ascontiguousarray(coefficients[:, ::-1].T, dtype=dtype)  # Clenshaw comes down from the highest degree
    with _one_at_a_time:
        chunks = _chunks(layout)
        if chunks == 1 and len(bands) > 1 and layout.wavefront:
            _inverse_columns(operator, theta, layout.order, np.ascontiguousarray(bands), out)
            return out
        terms, rows = _workspace(layout, len(coefficients), dtype)
        for column, result in zip(bands, out, strict=True):
            _inverse(operator, theta, layout.order, column, terms, rows, result, chunks, layout.wavefront)
    return out


def product(layout: Layout, x, out):
    """out = L x, rows in the order of the layout; returns x'out per block."""
    return _product(_operator(layout, 1.0, 1.0, 0.0, x.dtype), x, _zeros(layout), out, False)


def signless_product(layout: Layout, x, out):
    """out = (diagonal + adjacency) x, rows in the order of the layout; returns max out / x per block."""
    return _product(_operator(layout, -1.0, 1.0, 0.0, x.dtype), x, _zeros(layout), out, True)


def _zeros(layout):
    return layout.workspace.setdefault("zeros", np.zeros(len(layout.order)))


def _operator(layout, gain, own, offset, dtype):
    """What the row loops need: (own * diagonal + offset) x - gain * adjacency x, in the dtype of the signal."""
    weight = layout.uniform if layout.values is None else 1.0
    run_shift = (own * weight * layout.runs[:, 2] + offset).astype(dtype)
    values = None if layout.values is None else layout.values.astype(dtype, copy=False)
    row_shift = None if layout.diagonal is None else (own * layout.diagonal + offset).astype(dtype)
    shape = layout.blocks, layout.block_runs, layout.runs
    return *shape, run_shift, layout.indices, values, row_shift, dtype.type(gain * weight), dtype.type(0.5)


def _recurrence(layout, scale, dtype):
    """2 (scale L - I)."""
    return _operator(layout, 2 * scale, 2 * scale, -2.0, np.dtype(dtype))


def _workspace(layout, n_scales, dtype):
    """Room for the Chebyshev terms and the bands in row order, kept between calls."""
    n, key = len(layout.order), np.dtype(dtype).str
    terms, bands = layout.workspace.get(key, (None, np.empty((0, n), dtype)))
    if terms is None:
        terms = np.empty((STEPS + 2, n), dtype)
    if len(bands) < n_scales:
        bands = np.empty((n_scales, n), dtype)
    layout.workspace[key] = terms, bands
    return terms, bands[:n_scales]


def _chunks(layout):
    """How many stretches of blocks can climb side by side: an inner one loses a block on both sides per step."""
    if not layout.wavefront:
        return 1
    return max(1, min(numba.get_num_threads(), (len(layout.blocks) - 1) // (2 * STEPS)))


# ---- rows -------------------------------------------------------------------------------------------------------


@njit(cache=True, forceinline=True)
def _rows(first, last, pointer, length, indices, values, shift, row_shift, gain, factor, x, before, start, out):
    """out = [start +] factor (shift x - gain sum of neighbours) - before, for rows of one length."""
    for i in range(first, last):
        q = np.uint64(pointer + (i - first) * length)
        total = gain - gain  # 0 in the dtype of the signal
        if values is None:
            for p in range(length):
                total += x[np.uint64(indices[q + np.uint64(p)])]
        else:
            for p in range(length):
                total += values[q + np.uint64(p)] * x[np.uint64(indices[q + np.uint64(p)])]
        k = np.uint64(i)
        own = shift if row_shift is None else row_shift[k]
        if start is None:
            out[k] = factor * (own * x[k] - gain * total) - before[k]
        else:
            out[k] = start[k] + (factor * (own * x[k] - gain * total) - before[k])


@njit(cache=True)
def _block(b, operator, factor, x, before, start, out):
    """One step of the recurrence on one block; short rows get loops of constant length, which the compiler unrolls."""
    _, block_runs, runs, run_shift, indices, values, row_shift, gain, _ = operator
    for r in range(block_runs[b], block_runs[b + 1]):
        first, last, length, pointer = runs[r]
        shift = run_shift[r]
        if length == 1:
            _rows(first, last, pointer, 1, indices, values, shift, row_shift, gain, factor, x, before, start, out)
        elif length == 2:
            _rows(first, last, pointer, 2, indices, values, shift, row_shift, gain, factor, x, before, start, out)
        elif length == 3:
            _rows(first, last, pointer, 3, indices, values, shift, row_shift, gain, factor, x, before, start, out)
        elif length == 4:
            _rows(first, last, pointer, 4, indices, values, shift, row_shift, gain, factor, x, before, start, out)
        else:
            _rows(first, last, pointer, length, indices, values, shift, row_shift, gain, factor, x, before, start, out)


@njit(cache=True, parallel=True)
def _product(operator, x, zeros, out, want_ratio):
    """The product, and of each block x'out or max out / x, taken while it is in cache."""
    blocks, half = operator[0], operator[8]
    marks = np.zeros(len(blocks) - 1)
    for b in prange(len(blocks) - 1):
        _block(b, operator, half + half, x, zeros, None, out)
        here, there = x[blocks[b] : blocks[b + 1]], out[blocks[b] : blocks[b + 1]]
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
def _mix(lo, hi, target, first_target, n_targets, source, first_source, n_sources, theta, fresh):
    """target_t [+]= sum_s theta[t, s] source_s for values lo..hi, in ascending s; rows are counted round the ring."""
    for start in range(lo, hi, SLICE):
        stop = min(start + SLICE, hi)
        for t in range(n_targets):
            out = target[(first_target + t) % len(target), start:stop]
            if fresh:
                out[:] = 0
            s = 0
            while s + 4 <= n_sources:
                a, b, c, d = theta[t, s], theta[t, s + 1], theta[t, s + 2], theta[t, s + 3]
                u = source[(first_source + s) % len(source), start:stop]
                v = source[(first_source + s + 1) % len(source), start:stop]
                w = source[(first_source + s + 2) % len(source), start:stop]
                z = source[(first_source + s + 3) % len(source), start:stop]
                for i in range(len(out)):
                    out[i] = out[i] + a * u[i] + b * v[i] + c * w[i] + d * z[i]
                s += 4
            while s < n_sources:
                a, u = theta[t, s], source[(first_source + s) % len(source), start:stop]
                for i in range(len(out)):
                    out[i] += a * u[i]
                s += 1


# ---- the wavefront ----------------------------------------------------------------------------------------------
# A sweep computes terms k .. k + steps - 1 of the ring `terms` on all blocks. Stretches of blocks climb side by side:
# step s reaches one block less at each inner end than step s - 1 (`_climb`), and what is left between two stretches,
# an inverted triangle, follows (`_fill`). Forward terms are T_k, added into the bands when a block is finished;
# backward terms are Clenshaw's b_k, which start from the mixed bands when a block is first touched.


@njit(cache=True)
def _step(b, s, k, steps, operator, theta, terms, bands, backward):
    """Term k + s on block b, and the mixing that belongs to its first or last step."""
    blocks, half = operator[0], operator[8]
    lo, hi, ring = blocks[b], blocks[b + 1], len(terms)
    out, x, before = terms[(k + s) % ring], terms[(k + s - 1) % ring], terms[(k + s - 2) % ring]
    if backward:
        if s == 0:
            _mix(lo, hi, terms, k, steps, bands, 0, len(bands), theta[k : k + steps], True)
        _block(b, operator, half if k + s == len(theta) - 1 else half + half, x, before, out, out)
    else:
        _block(b, operator, half if k + s == 1 else half + half, x, before, None, out)
        if s == steps - 1:
            _mix(lo, hi, bands, 0, len(bands), terms, k, steps, theta[:, k : k + steps], False)


@njit(cache=True)
def _climb(first, last, inner_left, inner_right, k, steps, operator, theta, terms, bands, backward):
    for front in range(first, last + steps - 1):
        for s in range(steps):
            b = front - s
            if first + s * inner_left <= b < last - s * inner_right:
                _step(b, s, k, steps, operator, theta, terms, bands, backward)


@njit(cache=True)
def _fill(middle, k, steps, operator, theta, terms, bands, backward):
    for s in range(1, steps):
        for b in range(middle - s, middle + s):
            _step(b, s, k, steps, operator, theta, terms, bands, backward)


@njit(cache=True, parallel=True)
def _sweep(k, steps, operator, theta, terms, bands, backward, chunks, wavefront):
    n_blocks = len(operator[0]) - 1
    if wavefront:
        for c in prange(chunks):
            first, last = n_blocks * c // chunks, n_blocks * (c + 1) // chunks
            _climb(first, last, c > 0, c < chunks - 1, k, steps, operator, theta, terms, bands, backward)
        for c in prange(1, chunks):
            _fill(n_blocks * c // chunks, k, steps, operator, theta, terms, bands, backward)
    else:
        for s in range(steps):
            for b in prange(n_blocks):
                _step(b, s, k, steps, operator, theta, terms, bands, backward)


@njit(cache=True)
def _start_forward(lo, hi, order, signal, theta, terms, bands):
    """T_0 = x in row order, its share of the bands, and T_{-1} = 0, on rows lo..hi."""
    for i in range(lo, hi):
        terms[0, i] = signal[order[i]]
        terms[len(terms) - 1, i] = 0
    for j in range(len(bands)):
        for i in range(lo, hi):
            bands[j, i] = theta[j, 0] * terms[0, i]


@njit(cache=True)
def _start_inverse(lo, hi, order, source, terms, bands):
    """The bands in row order, and two zero terms, on rows lo..hi."""
    terms[len(terms) - 1, lo:hi] = 0
    terms[len(terms) - 2, lo:hi] = 0
    for j in range(len(bands)):
        for i in range(lo, hi):
            bands[j, i] = source[j, order[i]]


@njit(cache=True, parallel=True)
def _forward(operator, theta, order, signal, terms, bands, out, chunks, wavefront):
    """out_j = sum_k theta_jk T_k x, all cores on one signal."""
    blocks, degree, ring = operator[0], theta.shape[1] - 1, len(terms)
    for b in prange(len(blocks) - 1):
        _start_forward(blocks[b], blocks[b + 1], order, signal, theta, terms, bands)
    for k in range(1, degree + 1, ring - 2):
        _sweep(k, min(ring - 2, degree + 1 - k), operator, theta, terms, bands, False, chunks, wavefront)
    for i in prange(len(order)):
        for j in range(len(bands)):
            out[j, order[i]] = bands[j, i]


@njit(cache=True, parallel=True)
def _inverse(operator, theta, order, source, terms, bands, out, chunks, wavefront):
    """b_k = u_k + 2 (scale L - I) b_{k+1} - b_{k+2}, u_k = sum_j theta_jk F_j, down to the sum b_0; all cores on one signal."""
    blocks, degree, ring = operator[0], len(theta) - 1, len(terms)
    for b in prange(len(blocks) - 1):
        _start_inverse(blocks[b], blocks[b + 1], order, source, terms, bands)
    for k in range(0, degree + 1, ring - 2):
        _sweep(k, min(ring - 2, degree + 1 - k), operator, theta, terms, bands, True, chunks, wavefront)
    for i in prange(len(order)):
        out[order[i]] = terms[degree % ring, i]


@njit(cache=True, parallel=True)
def _forward_columns(operator, theta, order, signals, out):
    """Many signals on a small graph: each core takes whole signals."""
    n, n_blocks, degree = len(order), len(operator[0]) - 1, theta.shape[1] - 1
    for m in prange(len(signals)):
        terms, bands = np.empty((STEPS + 2, n), signals.dtype), np.empty((len(theta), n), signals.dtype)
        _start_forward(0, n, order, signals[m], theta, terms, bands)
        for k in range(1, degree + 1, STEPS):
            _climb(0, n_blocks, 0, 0, k, min(STEPS, degree + 1 - k), operator, theta, terms, bands, False)
        out[m][:, order] = bands


@njit(cache=True, parallel=True)
def _inverse_columns(operator, theta, order, sources, out):
    n, n_blocks, degree = len(order), len(operator[0]) - 1, len(theta) - 1
    for m in prange(len(sources)):
        terms, bands = np.empty((STEPS + 2, n), sources.dtype), np.empty((theta.shape[1], n), sources.dtype)
        _start_inverse(0, n, order, sources[m], terms, bands)
        for k in range(0, degree + 1, STEPS):
            _climb(0, n_blocks, 0, 0, k, min(STEPS, degree + 1 - k), operator, theta, terms, bands, True)
        out[m][order] = terms[degree % (STEPS + 2)]
