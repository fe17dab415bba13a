"""Search for the thresholds of least SURE on a GPU, and thresholding there. Called only with CuPy arrays, so CuPy is imported.

The steps are those of `threshold_bins`, without any sort: sums are whole numbers, equal to those of the processor to the bit, and so is
the threshold. If very many values may be the minimum, they are copied to the host and searched there.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from hushgraph._arrays import namespace
from hushgraph._errors import InputError
from hushgraph.core import OPTIONS, _loops, compiled, cupy
from hushgraph.wavelets.threshold_search import BINS, FINER, WORDS

SOURCES = "thresholds.cu cells.cu"
LIMBS, HEAD, TOPS = 17, 7, 4  # as in `thresholds.cu`
FEWEST_MEMBERS, MOST_MEMBERS = 2**16, 2**20  # of a row that there is room for: a sixteenth of its values within these limits
MOST_VALUES = 2**31 - 2**19  # of a row: they are counted in 32 bits
SMALL_CELL, LARGE_CELL = 1024, 4096  # members of a cell that are searched there
MANY_VALUES = 2**22  # of a row, beyond which cells may be large
PER_MEMBER = 46  # bytes of shared memory
CHUNK = 4096  # values whose members keep their order; also the fewest that a block sums


def least_sure_on_device(x: Any, g: Any, scale: Any, variance: float, beta: float) -> np.ndarray:
    """Return the candidate with the least SURE of each row of coefficients, as `_loops.least_sure` does.

    The host waits once for all rows together; cells with very many values are searched on the host.
    """
    if x.shape[1] == 0:
        return np.zeros(len(x))
    if x.shape[1] > MOST_VALUES:
        msg = f"a threshold on a GPU may be that of at most {MOST_VALUES:,} coefficients; got {x.shape[1]:,}; take level='scale', or pass arrays of NumPy"
        raise InputError(msg)
    rows = _Rows(x, g, scale, float(variance), float(beta))
    thresholds, searched = rows.search()
    if searched.all():
        return thresholds
    heads, cells, members = rows.cells_and_members()
    return _loops.least_of_rows(heads, cells, members, variance, beta)


class _Rows:
    """Coefficients, weights and scales (rows, n) on the GPU with their bins and cells; the GPU may still be computing them."""

    def __init__(self, x: Any, g: Any, scale: Any, variance: float, beta: float) -> None:
        cp, (self.rows, self.n) = namespace(x), x.shape
        self.xp, self.settings = cp, (variance, beta)
        self.arrays: list[Any] = [None if part is None else cp.ascontiguousarray(part) for part in (x, g, scale)]
        rows, shape = self.rows, (self.rows, BINS, FINER)
        self.tops, self.heads = cp.full((rows, TOPS), -1, dtype=np.int64), cp.empty((rows, HEAD))
        self.slots, self.cell_of = cp.empty((rows, BINS), dtype=np.int16), cp.empty(shape, dtype=np.int32)
        self.cells, self.starts = cp.empty((rows, BINS * FINER, 5)), cp.empty((rows, BINS * FINER + 1), dtype=np.int32)
        self._sum_bins()

    def _sum_bins(self) -> None:
        """Compute the bins, and the cells that follow from them."""
        cp, rows, shape, (variance, beta) = self.xp, self.rows, self.cell_of.shape, self.settings
        room = _shared_memory()
        sums, finer = cp.zeros((rows, BINS, WORDS), dtype=np.int64), cp.zeros((*shape, WORDS), dtype=np.int64)
        bins, parts, units = cp.empty((rows, BINS, 5)), cp.empty((*shape, 5)), cp.empty((rows, BINS))
        width, window = min(BINS, room // (4 * LIMBS)), min(BINS, room // (4 * LIMBS * FINER))  # bins that are summed at a time
        spare = None if room >= 8 * 9 * BINS else cp.empty((rows, 9, BINS))
        chunk = max(-(-self.n * rows // _processors()), CHUNK)  # all processors have a block
        few, chunk_size = (-(-self.n // chunk), rows), (np.int32(chunk),)
        self._launch("extremes", self._wide, 256, self.tops)
        self._decide("units", 256, self.tops, units)
        settings: tuple[Any, ...] = self.tops, units, beta, np.int32(width), sums
        self._launch("bin_sums", few, 1024, *settings, first=chunk_size, shared=4 * LIMBS * width)
        decided: tuple[Any, ...] = self.heads, self.slots, bins, spare
        self._decide(
            "open_bins", 256, self.tops, units, sums, variance, beta, *decided, shared=8 * 9 * BINS if spare is None else 0
        )
        settings = self.tops, units, self.slots, self.heads, beta, np.int32(window), finer
        self._launch("finer_sums", few, 1024, *settings, first=chunk_size, shared=4 * LIMBS * window * FINER)
        decided = self.heads, bins, parts, self.cells, self.cell_of, self.starts
        self._decide("open_cells", 256, self.tops, units, sums, finer, variance, beta, *decided)

    def search(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the best candidate of each row, and whether the search on the GPU was complete."""
        cp, rows = self.xp, self.rows
        cell = LARGE_CELL if self.n > MANY_VALUES and _shared_memory() >= PER_MEMBER * LARGE_CELL else SMALL_CELL
        most = int(np.clip(self.n // 16, FEWEST_MEMBERS, MOST_MEMBERS))
        room = np.array([(most, cell)], dtype=[("row", np.int32), ("cell", np.int32)])
        filled, members = cp.zeros((rows, BINS * FINER), dtype=np.int32), cp.empty((4, rows, most))
        candidates, best = cp.empty((rows, BINS * FINER, 2)), cp.empty((rows, 2))
        self._launch(
            "scatter", self._wide, 256, self.tops, self.heads, self.slots, self.cell_of, self.starts, filled, room, members
        )
        settings = self.heads, self.cells, self.starts, members, *self.settings, room, candidates
        _start(compiled(SOURCES, "search"), (64, rows), 128, settings, PER_MEMBER * cell)
        self._decide("pick", 256, self.tops, self.heads, candidates, room, best)
        at, searched = best.get().T
        return at, searched > 0

    def cells_and_members(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the arguments of `_loops.least_of_rows`."""
        cp, rows, blocks = self.xp, self.rows, -(-self.n // CHUNK)
        counts, places = cp.empty(blocks * rows, dtype=np.int32), (self.tops, self.slots, self.cell_of)
        self._launch("members", (blocks, rows), 256, *places, counts, None, np.int64(0), None)
        ends = cp.cumsum(counts, dtype=np.int64)
        last = ends[blocks - 1 :: blocks, None].astype(np.float64)
        heads = cp.concatenate([self.tops.view(np.float64)[:, :1], self.heads[:, :5], last], axis=1).get()
        members = cp.empty((4, int(heads[-1, -1])))
        self._launch("members", (blocks, rows), 256, *places, counts, ends, np.int64(members.shape[1]), members)
        return heads, cp.ascontiguousarray(self.cells[:, : int(heads[:, 5].max())]).get(), members.get()

    @property
    def _wide(self) -> tuple[int, int]:
        return min(-(-self.n // 2048), 1024), self.rows

    def _launch(self, name: str, grid: tuple, threads: int, *more: Any, first: tuple = (), shared: int = 0) -> None:
        kinds = [self.arrays[0].dtype if part is None else part.dtype for part in self.arrays]
        _start(compiled(SOURCES, name, *kinds), grid, threads, (np.int32(self.n), *first, *self.arrays, *more), shared)

    def _decide(self, name: str, threads: int, *arguments: Any, shared: int = 0) -> None:
        _start(compiled(SOURCES, name), (self.rows,), threads, arguments, shared)


def _start(kernel: Any, grid: tuple, threads: int, arguments: tuple, shared: int) -> None:
    if shared:
        kernel.max_dynamic_shared_size_bytes = shared
    kernel(grid, (threads,), arguments, shared_mem=shared)


def apply_on_device(F: Any, t: np.ndarray, scale: Any, beta: float, slope: Any) -> None:
    """Replace the values x of F by x (1 - |t / x|^beta)_+, and write the derivative to slope."""
    cp = namespace(F)
    limits = cp.asarray(np.asarray(t, dtype=F.dtype))[:, None]
    _shrink()(F, limits, F.dtype.type(1) if scale is None else scale.astype(F.dtype, copy=False), F.dtype.type(beta), F, slope)


def _processors() -> int:
    return cupy().cuda.Device().attributes["MultiProcessorCount"]


def _shared_memory() -> int:
    """Return the bytes of shared memory that a block may have."""
    return cupy().cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]


@cache
def _shrink() -> Any:
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
