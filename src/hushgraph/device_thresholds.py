"""Thresholds of least SURE for coefficients on a GPU, and their use there. CuPy is there when this is called: its arrays came in.

The steps are those of `sure_bins`, and nothing is sorted: sums are whole numbers, those of the processor to the bit, and so is the
threshold. A few thousand numbers come to the host, the cells that may hold the minimum and their values, and are searched there.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from hushgraph.arrays import namespace
from hushgraph.kernels.gpu import OPTIONS, compiled, cupy
from hushgraph.sure_bins import BINS, FINER, WORDS, least_of_rows

LIMBS, WINDOW = 17, 48  # as in `thresholds.cu`
CHUNK = 4096  # values whose members keep their order; also the fewest that a block sums


def least_sure_on_device(x, g, scale, variance: float, beta: float) -> np.ndarray:
    """For each row of coefficients the candidate with the least SURE, as `sure_bins.least_sure` finds it.

    The host waits twice, however many rows there are: for the cells that may hold the minimum, and for their values.
    """
    if x.shape[1] == 0:
        return np.zeros(len(x))
    known, cells, members = _cells(x, g, scale, variance, beta)
    return least_of_rows(known, cells, members, variance, beta)


def _cells(x, g, scale, variance: float, beta: float):
    """What `least_of_rows` takes."""
    cp, (rows, n) = namespace(x), x.shape
    arrays = [None if part is None else cp.ascontiguousarray(part) for part in (x, g, scale)]
    kinds = [x.dtype if part is None else part.dtype for part in arrays]

    def launch(name, grid, threads, *more, first=(), shared=0):
        _launch(compiled("thresholds.cu", name, *kinds), grid, threads, (np.int32(n), *first, *arrays, *more), shared)

    tops, sums = cp.full((rows, 3), -1, dtype=np.int64), cp.zeros((rows, BINS, WORDS), dtype=np.int64)
    finer, heads = cp.zeros((rows, BINS, FINER, WORDS), dtype=np.int64), cp.empty((rows, 5))
    slots, bins = cp.empty((rows, BINS), dtype=np.int16), cp.empty((rows, BINS, 5))
    parts, cells = cp.empty((rows, BINS, FINER, 5)), cp.empty((rows, BINS * FINER, 5))
    cell_of, wide, settings = (
        cp.empty((rows, BINS, FINER), dtype=np.int32),
        (min(-(-n // 2048), 1024), rows),
        (variance, float(beta)),
    )
    chunk = max(-(-n * rows // _processors()), CHUNK)  # all processors have a block
    few, own = (-(-n // chunk), rows), (np.int32(chunk),)
    launch("extremes", wide, 256, tops)
    launch("bin_sums", few, 1024, tops, settings[1], sums, first=own, shared=4 * LIMBS * BINS)
    _launch(compiled("thresholds.cu", "open_bins"), (rows,), 256, (tops, sums, *settings, heads, slots, bins), 8 * 9 * BINS)
    windows = (*few, -(-BINS // WINDOW))
    launch("finer_sums", windows, 1024, tops, slots, heads, settings[1], finer, first=own, shared=4 * LIMBS * WINDOW * FINER)
    _launch(compiled("thresholds.cu", "open_cells"), (rows,), 256, (tops, finer, *settings, heads, bins, parts, cells, cell_of), 0)
    blocks = -(-n // CHUNK)
    counts = cp.empty(blocks * rows, dtype=np.int32)
    launch("members", (blocks, rows), 256, tops, slots, cell_of, counts, None, np.int64(0), None)
    ends = cp.cumsum(counts, dtype=np.int32)
    known = cp.concatenate([tops.view(np.float64)[:, :1], heads, ends[blocks - 1 :: blocks, None].astype(np.float64)], axis=1).get()
    members = cp.empty((4, int(known[-1, -1])))
    launch("members", (blocks, rows), 256, tops, slots, cell_of, counts, ends, np.int64(members.shape[1]), members)
    used = cells[:, : int(known[:, 5].max())]
    both = cp.concatenate([used.ravel(), members.ravel()]).get()
    return known, both[: used.size].reshape(used.shape), both[used.size :].reshape(members.shape)


def _launch(kernel, grid: tuple, threads: int, arguments: tuple, shared: int):
    if shared:
        kernel.max_dynamic_shared_size_bytes = shared
    kernel(grid, (threads,), arguments, shared_mem=shared)


def apply_on_device(F, t, scale, beta: float, slope) -> None:
    """F becomes x (1 - |t / x|^beta)_+, slope its derivative."""
    cp = namespace(F)
    limits = cp.asarray(np.asarray(t, dtype=F.dtype))[:, None]
    _shrink()(F, limits, F.dtype.type(1) if scale is None else scale.astype(F.dtype, copy=False), F.dtype.type(beta), F, slope)


@cache
def _processors() -> int:
    return cupy().cuda.Device().attributes["MultiProcessorCount"]


@cache
def _shrink():
    return cupy().ElementwiseKernel(
        "T x, T t, T scale, T beta",
        "T y, T slope",
        """
        T limit = t * scale, size = abs(x), alive = limit == 0 ? 1 : 0, r = 0;
        if (size > limit) {
            r = limit / size;
            r = beta == 1 ? r : beta == 2 ? r * r : pow(r, beta);
            alive = 1;
        }
        y = x * (alive - r);
        slope = alive + (beta - 1) * r;
        """,
        "shrink",
        options=OPTIONS,
    )
