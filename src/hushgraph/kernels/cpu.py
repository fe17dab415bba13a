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
from dataclasses import dataclass, field

import numba
import numpy as np
from numba import njit, prange

STEPS = 12  # degrees climbed in one sweep of the wavefront
ROWS = 1024  # rows in a block, at least
WIDEST = 32 * ROWS  # blocks above this many rows gain nothing from the wavefront
SLICE = 512  # values mixed at once: 12 slices of them fit the first-level cache

_one_at_a_time = threading.Lock()  # every call takes all cores; two at once would only share workspaces


@dataclass(frozen=True, eq=False)
class Layout:
    """diag(diagonal) - adjacency, renumbered: row i is node order[i].

    `runs` are (first row, last row + 1, row length, place of its first index); `block_runs[b]` is the first run of
    block b. `values` and `diagonal` are None when every edge has the same weight `uniform` and the diagonal is the
    row length times it.
    """

    order: np.ndarray
    blocks: np.ndarray
    block_runs: np.ndarray
    runs: np.ndarray
    indices: np.ndarray
    values: np.ndarray | None
    diagonal: np.ndarray | None
    uniform: float
    wavefront: bool
    workspace: dict = field(default_factory=dict, repr=False)


def prepare(adjacency, diagonal):
    """Renumber the graph and store its rows in runs of equal length."""
    indptr, indices = adjacency.indptr, adjacency.indices
    order, levels = _breadth_first(indptr, indices)
    blocks = _cut(levels, len(order))
    wavefront = np.diff(blocks).max(initial=0) <= WIDEST
    if not wavefront:
        blocks = np.append(np.arange(0, len(order), ROWS), len(order))
    order, runs, block_runs = _runs(indptr, order, blocks)
    weight = adjacency.data[0] if adjacency.nnz else 1.0
    same = np.all(adjacency.data == weight) and np.allclose(diagonal, weight * np.diff(indptr), rtol=1e-13, atol=0)
    new_indices, values = _renumbered(indptr, indices, adjacency.data[: 0 if same else None], order, runs)
    return Layout(
        order, blocks, block_runs, runs, new_indices, None if same else values, None if same else diagonal[order], weight, bool(wavefront)
    )


def forward(layout, coefficients, signals, scale):
    """All rho_j(L) x of each signal x, (m, n) -> (m, n_scales, n)."""
    dtype = signals.dtype
    out = np.empty((len(signals), len(coefficients), signals.shape[1]), dtype=dtype)
    operator = _operator(layout, scale, dtype)
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
    operator = _operator(layout, scale, dtype)
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


def _operator(layout, scale, dtype):
    """What the row loops need, in the dtype of the signal: 2 (scale L - I) x = row_shift x - gain sum of neighbours."""
    gain = 2 * scale * (layout.uniform if layout.values is None else 1.0)
    run_shift = (gain * layout.runs[:, 2] - 2).astype(dtype)
    values = None if layout.values is None else layout.values.astype(dtype, copy=False)
    row_shift = None if layout.diagonal is None else (gain * layout.diagonal - 2).astype(dtype)
    return layout.blocks, layout.block_runs, layout.runs, run_shift, layout.indices, values, row_shift, dtype.type(gain), dtype.type(0.5)


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


# ---- layout -----------------------------------------------------------------------------------------------------


@njit(cache=True)
def _breadth_first(indptr, indices):
    """Nodes by breadth-first levels, component after component, each from a far end; and where the levels start."""
    n = len(indptr) - 1
    order, queue, levels = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n + 1, np.int64)
    state = np.zeros(n, np.int8)  # 1: reached by the search for a far end, 2: placed
    n_levels, placed = 0, 0
    for seed in range(n):
        if state[seed] == 2:
            continue
        head, tail = 0, 1
        queue[0], state[seed] = seed, 1
        while head < tail:
            for p in range(indptr[queue[head]], indptr[queue[head] + 1]):
                if state[indices[p]] == 0:
                    state[indices[p]] = 1
                    queue[tail] = indices[p]
                    tail += 1
            head += 1
        order[placed], state[queue[tail - 1]] = queue[tail - 1], 2
        head, tail = placed, placed + 1
        while head < tail:
            levels[n_levels] = head
            n_levels += 1
            level_end = tail
            while head < level_end:
                for p in range(indptr[order[head]], indptr[order[head] + 1]):
                    if state[indices[p]] == 1:
                        state[indices[p]] = 2
                        order[tail] = indices[p]
                        tail += 1
                head += 1
        placed = tail
    levels[n_levels] = n
    return order, levels[: n_levels + 1]


@njit(cache=True)
def _cut(levels, n):
    """Blocks of at least ROWS rows made of whole levels."""
    cuts = np.empty(len(levels) + 1, np.int64)
    cuts[0], count = 0, 1
    for start in levels:
        if start - cuts[count - 1] >= ROWS:
            cuts[count] = start
            count += 1
    if n - cuts[count - 1] < ROWS and count > 1:  # a short rest joins the block before it
        count -= 1
    cuts[count] = n
    return cuts[: count + 1] if n else cuts[:1]


@njit(cache=True)
def _runs(indptr, order, blocks):
    """Order rows by length inside each block (stable), and list the runs of equal length."""
    n = len(order)
    result, runs, block_runs = np.empty(n, np.int64), np.empty((n, 4), np.int64), np.zeros(len(blocks), np.int64)
    n_runs, pointer = 0, 0
    for b in range(len(blocks) - 1):
        rows = order[blocks[b] : blocks[b + 1]]
        lengths = np.empty(len(rows), np.int64)
        for i in range(len(rows)):
            lengths[i] = indptr[rows[i] + 1] - indptr[rows[i]]
        by_length = np.argsort(lengths, kind="mergesort")
        for i in range(len(rows)):
            row, length = blocks[b] + i, lengths[by_length[i]]
            result[row] = rows[by_length[i]]
            if i == 0 or runs[n_runs - 1, 2] != length:
                runs[n_runs, 0], runs[n_runs, 2], runs[n_runs, 3] = row, length, pointer
                n_runs += 1
            runs[n_runs - 1, 1] = row + 1
            pointer += length
        block_runs[b + 1] = n_runs
    return result, runs[:n_runs].copy(), block_runs


@njit(cache=True, parallel=True)
def _renumbered(indptr, indices, data, order, runs):
    """Neighbours in the new numbering, each row in ascending old number, with their values if there are any."""
    new = np.empty(len(order), np.uint32)
    for i in prange(len(order)):
        new[order[i]] = i
    new_indices, values = np.empty(len(indices), np.uint32), np.empty(len(data))
    for r in prange(len(runs)):
        for i in range(runs[r, 0], runs[r, 1]):
            source, target = indptr[order[i]], runs[r, 3] + (i - runs[r, 0]) * runs[r, 2]
            for p in range(runs[r, 2]):
                new_indices[target + p] = new[indices[source + p]]
                if len(data):
                    values[target + p] = data[source + p]
    return new_indices, values


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
