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

from hushgraph.kernels.lanes import ALL, ONE, WIDTH
from hushgraph.kernels.layout import Layout, prepare
from hushgraph.kernels.threads import one_at_a_time, parallel_njit
from hushgraph.kernels.wavefront import block_step, climb, sweep, sweep_plainly

__all__ = ["cores_for", "forward", "forward_with_moments", "inverse", "prepare", "product", "signless_product"]

STEPS = 12  # degrees climbed in one sweep of the wavefront
LANE_STEPS = 6  # likewise with several signals side by side, whose window is wider
SMALL = 2**17  # below this many rows several signals side by side fit the cache, and pay
KEPT_VALUES = 2**25  # bands of a workspace up to this size stay for the next call
WHOLE = 2**59 - 1  # mask of a vector that is not round; times the width it must not overflow


def forward(layout, coefficients, signals, scale):
    """All rho_j(L) x of each signal x, (m, n) -> (m, n_scales, n)."""
    return forward_with_moments(layout, coefficients, signals, scale, n_moments=0)[0]


def forward_with_moments(layout, coefficients, signals, scale, *, n_moments):
    """The same, and the first x'T_k(scale L - I) x, (m, n_moments), at most as many as there are coefficients in a row.

    Read-only input is copied: it has a type of its own.
    """
    n_moments = min(n_moments, coefficients.shape[1])
    out = np.empty((len(signals), len(coefficients), signals.shape[1]), dtype=signals.dtype)
    moments = np.zeros((len(signals), n_moments), dtype=signals.dtype)
    theta = np.ascontiguousarray(coefficients, dtype=signals.dtype)
    if theta.shape[1] == 1:
        moments[:] = np.sum(signals**2, axis=1)[:, None]
        return np.multiply(theta[None], signals[:, None], out=out), moments
    _run(layout, theta, scale, np.require(signals, requirements="CW"), out, moments, backward=False)
    moments[:, 2:] = 2 * moments[:, 2:] - np.resize(moments[:, :2].T, moments[:, 2:].T.shape).T
    return out, moments


def inverse(layout, coefficients, bands, scale):
    """sum_j rho_j(L) F_j, (m, n_scales, n) -> (m, n)."""
    out = np.empty((len(bands), bands.shape[2]), dtype=bands.dtype)
    theta = np.ascontiguousarray(coefficients[:, ::-1].T, dtype=bands.dtype)  # Clenshaw comes down from the highest degree
    _run(layout, theta, scale, out, np.require(bands, requirements="CW"), np.zeros((len(bands), 0), bands.dtype), backward=True)
    return out


def _run(layout, theta, scale, signals, bands, moments, *, backward):
    """Forward: T_k x summed into the bands. Backward: b_k = u_k + 2 (scale L - I) b_{k+1} - b_{k+2}, u_k = sum_j theta_jk F_j."""
    operator = _recurrence(layout, scale, signals.dtype)
    n_blocks, signals = len(layout.blocks) - 1, signals[:, None]
    chunks = max(1, min(numba.get_num_threads(), n_blocks // (2 * STEPS))) if layout.wavefront else 1
    with one_at_a_time:
        if layout.wavefront and len(layout.order) < (SMALL if len(signals) > 2 else SMALL // 8):
            mask = _window_mask(layout)
            shape = LANE_STEPS + 2, (mask + 1 + _widest(layout)) * WIDTH
            with cores_for(2**15 if len(signals) > WIDTH else 0):
                _columns(operator, theta, layout.order, signals, bands, moments, shape, mask, backward)
            return
        work = _workspace(layout, bands.shape[1], signals.dtype, chunks)
        for m in range(len(signals)):
            _transform(layout, operator, theta, signals[m : m + 1], bands[m : m + 1], moments[m : m + 1], *work, backward)


def _transform(layout, operator, theta, signals, bands, moments, pairs, windows, mask, rows, backward):
    """All cores on one signal."""
    old, new = pairs[:2], pairs[2:]
    n_terms, most = len(theta) if backward else theta.shape[1], windows.shape[1] - 2
    go = sweep if layout.wavefront else sweep_plainly
    marks = np.empty((len(layout.blocks) - 1 if moments.size else 0, moments.shape[1], 1), moments.dtype)
    old[:] = 0
    _gather(layout.order, bands if backward else signals, rows if backward else old[1:])
    for k in range(0 if backward else 1, n_terms, most):
        steps = min(most, n_terms - k)
        go(k, steps, operator, theta, old, new, windows, mask, rows, marks, backward)
        old, new = new, old
    _add_up(marks, moments)
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


# ---- whole graphs -----------------------------------------------------------------------------------------------


@parallel_njit()
def _product(operator, x, zeros, out, want_ratio):
    """The product, and of each block x'out or max out / x, taken while it is in cache."""
    blocks, half = operator[0], operator[8]
    marks = np.zeros(len(blocks) - 1)
    for b in prange(len(blocks) - 1):
        here, there = x[blocks[b] : blocks[b + 1]], out[blocks[b] : blocks[b + 1]]
        block_step(b, operator, half + half, x, here, zeros, None, there, ONE)
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
def _add_up(marks, moments):
    """Over the blocks, one after the other."""
    for b in range(len(marks)):
        for m in range(len(moments)):
            moments[m] += marks[b, :, m]


@parallel_njit()
def _gather(order, sources, targets):
    """The order of the layout."""
    for i in prange(len(order)):
        for j in range(len(targets)):
            targets[j, i] = sources[0, j, order[i]]


@parallel_njit()
def _scatter(order, sources, targets):
    """Back to the order of the nodes."""
    for i in prange(len(order)):
        for j in range(len(sources)):
            targets[0, j, order[i]] = sources[j, i]


@parallel_njit()
def _columns(operator, theta, order, signals, bands, moments, shape, mask, backward):
    """Signals (m, 1, n) to bands (m, n_scales, n) or back on a small graph: each core takes WIDTH signals at a time."""
    n, n_blocks, count = len(order), len(operator[0]) - 1, len(signals)
    n_terms = len(theta) if backward else theta.shape[1]
    for group in prange((count + WIDTH - 1) // WIDTH):
        first = group * WIDTH
        pair, window = np.zeros((4, n * WIDTH), signals.dtype), np.empty(shape, signals.dtype)
        mine, side = np.empty((bands.shape[1], n * WIDTH), signals.dtype), 0
        marks = np.empty((n_blocks if moments.size else 0, moments.shape[1], WIDTH), moments.dtype)
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
            climb(0, n_blocks, k, steps, operator, theta, old, new, window, mask, mine, marks, backward, ALL)
            side = 2 - side
        _add_up(marks, moments[first : first + WIDTH])
        for m in range(min(WIDTH, count - first)):
            for i in range(n):
                if backward:
                    signals[first + m, 0, order[i]] = pair[side + 1, i * WIDTH + m]
                else:
                    for j in range(len(mine)):
                        bands[first + m, j, order[i]] = mine[j, i * WIDTH + m]
