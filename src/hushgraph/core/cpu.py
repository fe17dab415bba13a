"""The recurrence at the speed of memory, by the compiled loops of `core/recurrence.cpp`.

Three ideas on top of the row order of `layout`. (1) Because blocks only touch their neighbours, the polynomial climbs
STEPS degrees on a block while it is in cache, in a diagonal wavefront over the blocks; the terms in between live in a
small round window and never reach memory. (2) All those terms are added into all scales in one pass. (3) The inverse
runs the same wavefront backwards (Clenshaw) for all scales together. Threads take stretches of blocks and recompute the
few terms of their neighbours that they need, so they meet once per STEPS degrees. Several signals of a graph that fits
the cache run side by side in vector registers: they share indices and instructions.

Each row adds its neighbours in ascending node number, each scale its terms in ascending degree, whatever the blocks,
the number of threads or of signals: the bits never depend on them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hushgraph.core import _loops
from hushgraph.core.layout import Layout, prepare
from hushgraph.core.threads import thread_count

__all__ = ["climb", "forward", "forward_with_moments", "inverse", "prepare", "product", "signless_powers"]

STEPS = 12  # degrees climbed in one sweep of the wavefront
SMALL = 2**17  # below this many rows several signals side by side fit the cache, and pay
KEPT_VALUES = 2**25  # bands of a workspace up to this size stay for the next call
WHOLE = 2**59 - 1  # mask of a vector that is not round; times the width it must not overflow


def forward(layout: Layout, coefficients: np.ndarray, signals: np.ndarray, scale: float) -> np.ndarray:
    """Return all rho_j(L) x of each signal x, (m, n) -> (m, n_scales, n)."""
    return forward_with_moments(layout, coefficients, signals, scale, n_moments=0)[0]


def forward_with_moments(
    layout: Layout, coefficients: np.ndarray, signals: np.ndarray, scale: float, *, n_moments: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return `forward`, and the first x'T_k(scale L - I) x, (m, n_moments): at most 2K + 1 of them for polynomials of degree K."""
    n_moments = min(n_moments, 2 * coefficients.shape[1] - 1)
    out = np.empty((len(signals), len(coefficients), signals.shape[1]), dtype=signals.dtype)
    moments = np.zeros((len(signals), n_moments), dtype=signals.dtype)
    theta = np.ascontiguousarray(coefficients, dtype=signals.dtype)
    if theta.shape[1] == 1:
        moments[:] = np.sum(signals**2, axis=1)[:, None]
        return np.multiply(theta[None], signals[:, None], out=out), moments
    # the loops write to the signals or to the bands, so both must be writable
    _run(layout, theta, scale, np.require(signals, requirements=["C", "W"]), out, moments, backward=False)
    moments[:, 2:] = 2 * moments[:, 2:] - np.resize(moments[:, :2].T, moments[:, 2:].T.shape).T
    return out, moments


def climb(
    layout: Layout, coefficients: np.ndarray, terms: np.ndarray, bands: np.ndarray, scale: float, *, shares: np.ndarray, first: bool
) -> np.ndarray:
    """Continue the recurrence of one signal by some terms, in place, and return sums of products of the terms.

    Parameters
    ----------
    layout : Layout
        The matrix.
    coefficients : (n_bands, steps + 1) array
        Of the last known term T_k x and of the terms to come.
    terms : (2, n) array
        T_k-1 x and T_k x; 0 and x before the first step. Replaced by the new last two terms.
    bands : (n_bands, n) array
        Sums of terms so far, to which the new terms are added. At the first step they are overwritten, and x is added too.
    scale : float
        As in `forward`.
    shares : (n,) array
        Factors of the nodes in the products; ghosts have 0.
    first : bool
        Whether this is the first step.

    Returns
    -------
    (2 steps + 1,) array
        <T_k x, T_k x>, <T_k+1 x, T_k x>, <T_k+1 x, T_k+1 x> and so on. T_a T_b = (T_a+b + T_|a-b|) / 2 makes moments of them.
    """
    products = np.zeros(2 * coefficients.shape[1] - 1)
    work = _take_workspace(layout, len(bands), np.dtype(np.float64))
    _loops.continue_one(
        _recurrence(layout, scale, np.float64),
        np.ascontiguousarray(coefficients),
        layout.order,
        terms,
        bands,
        products,
        shares,
        layout.wavefront,
        work.mask,
        work.pairs,
        work.windows,
        work.rows[: len(bands)],
        not first,
    )
    _keep_workspace(layout, work)
    return products


def inverse(layout: Layout, coefficients: np.ndarray, bands: np.ndarray, scale: float) -> np.ndarray:
    """Return sum_j rho_j(L) F_j, (m, n_scales, n) -> (m, n)."""
    out = np.empty((len(bands), bands.shape[2]), dtype=bands.dtype)
    theta = np.ascontiguousarray(coefficients[:, ::-1].T, dtype=bands.dtype)  # Clenshaw comes down from the highest degree
    _run(
        layout, theta, scale, out, np.require(bands, requirements=["C", "W"]), np.zeros((len(bands), 0), bands.dtype), backward=True
    )
    return out


def _run(layout: Layout, theta: np.ndarray, scale: float, signals: Any, bands: Any, moments: Any, *, backward: bool) -> None:
    """Run the recurrence. Forward: T_k x summed into the bands. Backward: b_k = u_k + 2 (scale L - I) b_{k+1} - b_{k+2}, u_k = sum_j theta_jk F_j."""
    rows = _recurrence(layout, scale, signals.dtype)
    if layout.wavefront and len(layout.order) < (SMALL if len(signals) > 2 else SMALL // 8):
        mask = _window_mask(layout)
        window_rows = mask + 1 + _widest(layout)
        _loops.transform_columns(rows, theta, layout.order, signals, bands, moments, window_rows, mask, backward)
        return
    work = _take_workspace(layout, bands.shape[1], signals.dtype)
    ordered = work.rows[: bands.shape[1]]
    for signal, bands_of_signal, moment in zip(signals, bands, moments, strict=True):
        _loops.transform_one(
            rows,
            theta,
            layout.order,
            signal,
            bands_of_signal,
            moment,
            layout.wavefront,
            work.mask,
            work.pairs,
            work.windows,
            ordered,
            backward,
        )
    _keep_workspace(layout, work)


def product(layout: Layout, x: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write L x to `out`, rows in the order of the layout; return x'out per block."""
    return _loops.multiply(_operator(layout, 1.0, 1.0, 0.0, x.dtype), x, out)


def signless_powers(
    layout: Layout, x: np.ndarray, least: np.ndarray, factor: float, steps: int, counted: np.ndarray | None = None
) -> np.ndarray:
    """Replace x by max(factor (diagonal + adjacency) x, least), `steps` times, rows in the order of the layout.

    Returns for each step the largest quotient (diagonal + adjacency) x / x, over the rows that are `counted` or over all. At most STEPS
    steps: they are made on a block of rows while it is in cache.
    """
    mask, indices = (_window_mask(layout), _round_indices(layout)) if layout.wavefront else (-1, None)
    rows = _operator(layout, -1.0, 1.0, 0.0, x.dtype, indices)
    return _loops.iterate_powers(rows, x, least, factor, steps, mask, counted)


def _operator(
    layout: Layout, gain: float, diagonal_factor: float, offset: float, dtype: np.dtype, round_indices: np.ndarray | None = None
) -> Any:
    """Return the arguments of the row loops for (diagonal_factor * diagonal + offset) x - gain * adjacency x, in the dtype of the signal."""
    weight = layout.uniform if layout.values is None else 1.0
    run_shift = (diagonal_factor * weight * layout.runs[:, 2] + offset).astype(dtype)
    values = None if layout.values is None else layout.values.astype(dtype, copy=False)
    row_shift = None if layout.diagonal is None else (diagonal_factor * layout.diagonal + offset).astype(dtype)
    indices = layout.indices if round_indices is None else round_indices
    return (
        layout.blocks,
        layout.block_runs,
        layout.runs,
        run_shift,
        indices,
        values,
        row_shift,
        float(dtype.type(gain * weight)),
    )


def _recurrence(layout: Layout, scale: float, dtype: Any) -> Any:
    """Return the operator 2 (scale L - I), with neighbours looked up in the round window."""
    return _operator(layout, 2 * scale, 2 * scale, -2.0, np.dtype(dtype), _round_indices(layout) if layout.wavefront else None)


def _round_indices(layout: Layout) -> np.ndarray:
    """Return the neighbours as places in the round window; cached."""
    if "round indices" not in layout.workspace:
        layout.workspace["round indices"] = layout.indices & np.uint32(_window_mask(layout))
    return layout.workspace["round indices"]


def _window_mask(layout: Layout) -> int:
    """Return the number of rows of the window minus 1: a power of two of rows, enough for all blocks that a wavefront touches at once."""
    reach = min(STEPS + 3, len(layout.blocks) - 1)
    return (1 << int(np.max(layout.blocks[reach:] - layout.blocks[:-reach], initial=1) - 1).bit_length()) - 1


def _widest(layout: Layout) -> int:
    """Return the number of rows of the largest block."""
    return int(np.diff(layout.blocks).max(initial=0))


class _Workspace(NamedTuple):
    """Four whole vectors (the two last terms before and after a sweep), a round window per stretch, bands in row order."""

    pairs: np.ndarray
    windows: np.ndarray
    mask: int
    rows: np.ndarray


def _keep_workspace(layout: Layout, work: _Workspace) -> None:
    """Put the arrays of a transform back into the layout, for the next one, unless they are large."""
    if work.rows.size <= KEPT_VALUES:
        layout.workspace[work.pairs.dtype.str] = work


def _take_workspace(layout: Layout, n_scales: int, dtype: Any) -> _Workspace:
    """Return the arrays for one transform. They are taken out of the layout, so that two threads never share them."""
    n, mask = len(layout.order), _window_mask(layout) if layout.wavefront else WHOLE
    length = mask + 1 + _widest(layout) if layout.wavefront else n  # with a tail, for a block that sticks out
    work = layout.workspace.pop(np.dtype(dtype).str, None)
    threads = thread_count() if layout.wavefront else 1
    if work is None or len(work.windows) < threads:
        windows = np.empty((threads, STEPS + 2, length), dtype)
        work = _Workspace(np.empty((4, n), dtype), windows, mask, np.empty((0, n), dtype))
    return work if len(work.rows) >= n_scales else work._replace(rows=np.empty((n_scales, n), dtype))
