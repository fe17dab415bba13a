"""Thresholds of least SURE for coefficients on a GPU, and their use there. CuPy is there when this is called: its arrays came in.

The steps are those of `sure_bins`, and nothing is sorted: sums are whole numbers, those of the processor to the bit, and so is the
threshold. Where very many values may be the minimum, these come to the host and are searched there.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from hushgraph._errors import InputError
from hushgraph.arrays import namespace
from hushgraph.core import _loops
from hushgraph.kernels.gpu import OPTIONS, compiled, cupy
from hushgraph.sure_bins import BINS, FINER, WORDS

SOURCES = "thresholds.cu cells.cu"
LIMBS, HEAD, TOPS = 17, 7, 4  # as in `thresholds.cu`
FEWEST_MEMBERS, MOST_MEMBERS = 2**16, 2**20  # of a row that there is room for: a sixteenth of its values within these limits
MOST_VALUES = 2**31 - 2**19  # of a row: they are counted in 32 bits
SMALL_CELL, LARGE_CELL = 1024, 4096  # members of a cell that are searched there
MANY_VALUES = 2**22  # of a row, beyond which cells may be large
PER_MEMBER = 46  # bytes of shared memory
CHUNK = 4096  # values whose members keep their order; also the fewest that a block sums


def least_sure_on_device(x, g, scale, variance: float, beta: float) -> np.ndarray:
    """For each row of coefficients the candidate with the least SURE, as `_loops.least_sure` finds it.

    The host waits once, however many rows there are; where cells hold very many values it searches them itself.
    """
    if x.shape[1] == 0:
        return np.zeros(len(x))
    if x.shape[1] > MOST_VALUES:
        msg = f"a threshold on a GPU may be that of at most {MOST_VALUES:,} coefficients; got {x.shape[1]:,}; take level='scale', or pass arrays of NumPy"
        raise InputError(msg)
    rows = _Rows(x, g, scale, float(variance), float(beta))
    found, searched = rows.search()
    if searched.all():
        return found
    known, cells, members = rows.cells_and_members()
    return _loops.least_of_rows(known, cells, members, variance, beta)


class _Rows:
    """Coefficients, weights and scales (rows, n) on the GPU with their bins and cells, all of it still under way there."""

    def __init__(self, x, g, scale, variance: float, beta: float):
        cp, (self.rows, self.n) = namespace(x), x.shape
        self.xp, self.settings = cp, (variance, beta)
        self.arrays: list[Any] = [None if part is None else cp.ascontiguousarray(part) for part in (x, g, scale)]
        rows, shape = self.rows, (self.rows, BINS, FINER)
        self.tops, self.heads = cp.full((rows, TOPS), -1, dtype=np.int64), cp.empty((rows, HEAD))
        self.slots, self.cell_of = cp.empty((rows, BINS), dtype=np.int16), cp.empty(shape, dtype=np.int32)
        self.cells, self.starts = cp.empty((rows, BINS * FINER, 5)), cp.empty((rows, BINS * FINER + 1), dtype=np.int32)
        self._sum_bins()

    def _sum_bins(self):
        """Bins, and the cells that follow from them."""
        cp, rows, shape, (variance, beta) = self.xp, self.rows, self.cell_of.shape, self.settings
        room = _shared_memory()
        sums, finer = cp.zeros((rows, BINS, WORDS), dtype=np.int64), cp.zeros((*shape, WORDS), dtype=np.int64)
        bins, parts, units = cp.empty((rows, BINS, 5)), cp.empty((*shape, 5)), cp.empty((rows, BINS))
        width, window = min(BINS, room // (4 * LIMBS)), min(BINS, room // (4 * LIMBS * FINER))  # bins that are summed at a time
        spare = None if room >= 8 * 9 * BINS else cp.empty((rows, 9, BINS))
        chunk = max(-(-self.n * rows // _processors()), CHUNK)  # all processors have a block
        few, own = (-(-self.n // chunk), rows), (np.int32(chunk),)
        self._launch("extremes", self._wide, 256, self.tops)
        self._decide("units", 256, self.tops, units)
        settings = self.tops, units, beta, np.int32(width), sums
        self._launch("bin_sums", few, 1024, *settings, first=own, shared=4 * LIMBS * width)
        decided = self.heads, self.slots, bins, spare
        self._decide(
            "open_bins", 256, self.tops, units, sums, variance, beta, *decided, shared=8 * 9 * BINS if spare is None else 0
        )
        settings = self.tops, units, self.slots, self.heads, beta, np.int32(window), finer
        self._launch("finer_sums", few, 1024, *settings, first=own, shared=4 * LIMBS * window * FINER)
        decided = self.heads, bins, parts, self.cells, self.cell_of, self.starts
        self._decide("open_cells", 256, self.tops, units, sums, finer, variance, beta, *decided)

    def search(self) -> tuple[np.ndarray, np.ndarray]:
        """The best candidate of each row, and whether it could be found there."""
        cp, rows = self.xp, self.rows
        cell = LARGE_CELL if self.n > MANY_VALUES and _shared_memory() >= PER_MEMBER * LARGE_CELL else SMALL_CELL
        most = int(np.clip(self.n // 16, FEWEST_MEMBERS, MOST_MEMBERS))
        room = np.array([(most, cell)], dtype=[("row", np.int32), ("cell", np.int32)])
        filled, members = cp.zeros((rows, BINS * FINER), dtype=np.int32), cp.empty((4, rows, most))
        found, best = cp.empty((rows, BINS * FINER, 2)), cp.empty((rows, 2))
        self._launch(
            "scatter", self._wide, 256, self.tops, self.heads, self.slots, self.cell_of, self.starts, filled, room, members
        )
        settings = self.heads, self.cells, self.starts, members, *self.settings, room, found
        _started(compiled(SOURCES, "search"), (64, rows), 128, settings, PER_MEMBER * cell)
        self._decide("pick", 256, self.tops, self.heads, found, room, best)
        at, searched = best.get().T
        return at, searched > 0

    def cells_and_members(self):
        """What `least_of_rows` takes."""
        cp, rows, blocks = self.xp, self.rows, -(-self.n // CHUNK)
        counts, own = cp.empty(blocks * rows, dtype=np.int32), (self.tops, self.slots, self.cell_of)
        self._launch("members", (blocks, rows), 256, *own, counts, None, np.int64(0), None)
        ends = cp.cumsum(counts, dtype=np.int64)
        last = ends[blocks - 1 :: blocks, None].astype(np.float64)
        known = cp.concatenate([self.tops.view(np.float64)[:, :1], self.heads[:, :5], last], axis=1).get()
        members = cp.empty((4, int(known[-1, -1])))
        self._launch("members", (blocks, rows), 256, *own, counts, ends, np.int64(members.shape[1]), members)
        return known, cp.ascontiguousarray(self.cells[:, : int(known[:, 5].max())]).get(), members.get()

    @property
    def _wide(self) -> tuple[int, int]:
        return min(-(-self.n // 2048), 1024), self.rows

    def _launch(self, name: str, grid: tuple, threads: int, *more, first: tuple = (), shared: int = 0):
        kinds = [self.arrays[0].dtype if part is None else part.dtype for part in self.arrays]
        _started(compiled(SOURCES, name, *kinds), grid, threads, (np.int32(self.n), *first, *self.arrays, *more), shared)

    def _decide(self, name: str, threads: int, *arguments, shared: int = 0):
        _started(compiled(SOURCES, name), (self.rows,), threads, arguments, shared)


def _started(kernel, grid: tuple, threads: int, arguments: tuple, shared: int):
    if shared:
        kernel.max_dynamic_shared_size_bytes = shared
    kernel(grid, (threads,), arguments, shared_mem=shared)


def apply_on_device(F, t, scale, beta: float, slope) -> None:
    """F becomes x (1 - |t / x|^beta)_+, slope its derivative."""
    cp = namespace(F)
    limits = cp.asarray(np.asarray(t, dtype=F.dtype))[:, None]
    _shrink()(F, limits, F.dtype.type(1) if scale is None else scale.astype(F.dtype, copy=False), F.dtype.type(beta), F, slope)


def _processors() -> int:
    return cupy().cuda.Device().attributes["MultiProcessorCount"]


def _shared_memory() -> int:
    """Bytes that a block may have."""
    return cupy().cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]


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
