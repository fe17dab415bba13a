"""The recurrence on one GPU, through CuPy: the same functions as `cpu`, with CuPy arrays in and out.

`recurrence.cu` holds the kernels. A term of the recurrence is one launch. As many terms as fit into memory, if possible all of them, are
stored and added into all bands in one pass. On small graphs, where launches would cost more than their work, all launches are recorded
once as a CUDA graph and replayed. Rows are those of `gpu_layout`, and a sum has the same order as on the CPU.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph._errors import StateError
from hushgraph._extras import extra
from hushgraph.core.gpu_layout import Quads, prepare as prepare_quads

TERMS, FEWEST_TERMS = 104, 8  # most and fewest terms of the recurrence that are stored and added into the bands at once
SHARE = 1 / 6  # share of the free memory that terms may take
THREADS = 256
MOST_BANDS, MOST_TERMS = 8, 51  # bands, or terms, that a thread sums at a time
SHARED = 48 * 1024  # bytes of shared memory that their weights may take
COLUMNS = (8, 4, 2, 1)  # numbers of signals that can be transformed side by side
LOAD = 16  # bytes that a thread loads at once: values of signals side by side
RECORDED = 2**22  # rows below which launches are recorded
SIDE_BY_SIDE = 2**24  # rows below which several signals are transformed side by side
STEP_THREADS = 128  # threads of a block of the recurrence: its rows share what they read
PER_BLOCK = 8192  # nodes whose terms a block sums, as in `sums.cu`
OPTIONS = ("--fmad=false",)  # of every kernel: a sum has the same bits on all machines only without fused multiply-add
_NAMES = {"f": "float", "d": "double", "h": "short", "i": "int"}


def cupy() -> Any:
    """Return CuPy, or raise an error that says how to install it."""
    return extra("cupy", name="cuda", purpose="computing on a GPU")


def current_device() -> int:
    """Return the number of the GPU that CuPy uses now, or raise an error that says what is missing."""
    cp = cupy()
    try:
        return cp.cuda.runtime.getDevice()
    except cp.cuda.runtime.CUDARuntimeError as error:
        msg = f"no GPU was found that CuPy can use ({error}); compute on the CPU, or check that nvidia-smi lists one"
        raise StateError(msg) from None


class DeviceLayout:
    """Rows in quads on the GPU; `cache` holds arrays and recordings for the next call, `lock` admits one thread at a time."""

    def __init__(self, quads: Quads) -> None:
        cp = cupy()
        self.lock = threading.Lock()
        self.n, self.stride, self.uniform = quads.n, quads.stride, quads.uniform
        self.per_row, self.difference = len(quads.differences), quads.differences.dtype
        self.order, self.differences = cp.asarray(quads.order), cp.asarray(quads.differences)
        self.tails = tuple(cp.asarray(part) for part in (quads.warp_tails, quads.tail_starts, quads.tail_rows))
        self.long = tuple(cp.asarray(part) for part in (quads.long_rows, quads.long_starts, quads.long_neighbours))
        self.values = None if quads.values is None else tuple(cp.asarray(part) for part in quads.values)
        self.diagonal = None if quads.diagonal is None else cp.asarray(quads.diagonal)
        self.cache: dict[Any, Any] = {}

    def weights(self, part: int, dtype: np.dtype) -> Any:
        """Return the weights of quads, tails or long rows in the dtype of the signals; None if all are the same."""
        values = self.values
        return None if values is None else self.cached(("weights", part, dtype.str), lambda: values[part].astype(dtype, copy=False))

    def cached(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the cached value for `key`, computing it with `make` on a miss."""
        if key not in self.cache:
            self.cache[key] = make()
        return self.cache[key]


def prepare(adjacency: Any, diagonal: np.ndarray) -> DeviceLayout:
    """Return the matrix on the GPU, renumbered."""
    return DeviceLayout(prepare_quads(adjacency, diagonal))


def forward(layout: DeviceLayout, coefficients: np.ndarray, signals: Any, scale: float) -> Any:
    """Return all rho_j(L) x of each signal x, (m, n) -> (m, n_scales, n)."""
    return forward_with_moments(layout, coefficients, signals, scale, n_moments=0)[0]


def forward_with_moments(
    layout: DeviceLayout, coefficients: np.ndarray, signals: Any, scale: float, *, n_moments: int
) -> tuple[Any, Any]:
    """Return `forward`, and the first x'T_k(scale L - I) x, (m, n_moments), as in `cpu`; these in float64."""
    cp, n_moments = cupy(), min(n_moments, 2 * coefficients.shape[1] - 1)
    out = cp.empty((len(signals), len(coefficients), layout.n), dtype=signals.dtype)
    moments = cp.zeros((len(signals), n_moments))
    for start, columns in _groups(layout, len(signals)):
        part = slice(start, start + columns)
        with layout.lock:
            _Transform.of(layout, coefficients, scale, signals.dtype, columns).forward(signals[part], out[part], moments[part])
    if n_moments:
        moments[:, 2::2] = 2 * moments[:, 2::2] - moments[:, :1]
        moments[:, 3::2] = 2 * moments[:, 3::2] - moments[:, 1:2]
    return out, moments


def inverse(layout: DeviceLayout, coefficients: np.ndarray, bands: Any, scale: float) -> Any:
    """Return sum_j rho_j(L) F_j, (m, n_scales, n) -> (m, n)."""
    cp = cupy()
    out = cp.empty((len(bands), layout.n), dtype=bands.dtype)
    bands = cp.ascontiguousarray(bands)
    for start, columns in _groups(layout, len(bands)):
        part = slice(start, start + columns)
        with layout.lock:
            _Transform.of(layout, coefficients, scale, bands.dtype, columns).inverse(bands[part], out[part])
    return out


def _groups(layout: DeviceLayout, count: int) -> Iterator[tuple[int, int]]:
    """Yield (first, number) of the signals that are transformed side by side."""
    start = 0
    while start < count:
        columns = next(c for c in COLUMNS if c <= count - start and (c == 1 or layout.n < SIDE_BY_SIDE))
        yield start, columns
        start += columns


# ---- one transform ------------------------------------------------------------------------------------------------------


class _Transform:
    """Polynomials of one matrix for a number of signals at a time, with the arrays for them and, on small graphs, their recording."""

    def __init__(self, layout: DeviceLayout, coefficients: np.ndarray, scale: float, dtype: Any, columns: int) -> None:
        cp = cupy()
        self.layout = weakref.proxy(layout)  # the layout holds its transforms: a cycle of references would outlive the graph
        self.dtype, self.columns = np.dtype(dtype), columns
        self.n_bands, self.n_terms = coefficients.shape
        self.lanes = -(-columns * self.dtype.itemsize // LOAD)
        self.upwards = cp.asarray(np.ascontiguousarray(coefficients.T, dtype=dtype))
        self.downwards = cp.asarray(np.ascontiguousarray(coefficients.T[::-1], dtype=dtype))
        self.rows, self.shift = _rows_argument(layout, scale, self.dtype)
        self.terms, self.bands = _work_arrays(layout, self.dtype, columns, self.n_bands, self.n_terms)
        self.recordings: dict[str, Any] = {}

    @classmethod
    def of(cls, layout: DeviceLayout, coefficients: np.ndarray, scale: float, dtype: Any, columns: int) -> _Transform:
        """Return the transform; the latest 16 are cached with the layout."""
        latest = layout.cache.setdefault("transforms", {})
        key = coefficients.shape, np.ascontiguousarray(coefficients).tobytes(), float(scale), np.dtype(dtype).str, columns
        if key not in latest:
            if len(latest) >= 16:
                latest.pop(next(iter(latest)))
            latest[key] = cls(layout, coefficients, scale, dtype, columns)
        return latest[key]

    def forward(self, signals: Any, out: Any, moments: Any) -> None:
        """Write the bands of signals to `out`, and their moments."""
        self._reorder(signals, self.terms)
        if moments.shape[1]:
            self._climb(moments)
        else:
            self._replay("forward", lambda: self._climb(None))
        self._mix(*self._batches(len(self.terms))[-1], out)

    def inverse(self, bands: Any, out: Any) -> None:
        """Write the sum over bands to `out`."""
        self._reorder(bands.reshape(self.columns * self.n_bands, self.layout.n), self.bands, side=1)
        self._replay("inverse", self._descend)
        self._reorder(out, self.terms[(self.n_terms - 1) % (len(self.terms) - 2)], back=True)

    def _batches(self, room: int) -> list[tuple[int, int]]:
        """Return (first term, last term + 1) of the terms that are in memory at the same time."""
        return [(k, min(k + room, self.n_terms)) for k in range(0, self.n_terms, room)]

    def _climb(self, moments: Any) -> None:
        """Sum T_k x into the bands batch by batch, except for the last batch. A term overwrites one that was added long before."""
        room = len(self.terms)
        for first, last in self._batches(room):
            for k in range(first, last):
                if k > 0:
                    before = self.terms[(k - 2) % room] if k > 1 else None
                    self._step(k, 0.5 if k == 1 else 1.0, before, self.terms[(k - 1) % room], None, self.terms[k % room])
                if moments is not None and k == first:
                    self._moments(first, first + 1, moments)  # while the last term of the batch before is still in memory
            if moments is not None and last > first + 1:
                self._moments(first + 1, last, moments)
            if last < self.n_terms:
                self._mix(first, last, None)

    def _descend(self) -> None:
        """Compute Clenshaw's terms from the highest degree: sum_j theta_jk F_j + 2 (scale L - I) b_{k+1} - b_{k+2}.

        All terms of a batch are in memory when it begins, so the last two terms of the batch before have two places of their own.
        """
        room, most = len(self.terms) - 2, min(MOST_TERMS, max(4 * (SHARED // (32 * self.n_bands)), 4))
        x = before = None
        for first, last in self._batches(room):
            at_once = _even_share(last - first, most)
            for k in range(first, last, at_once):
                self._unmix(k, min(k + at_once, last), self.terms[k % room])
            for k in range(first, last):
                term = self.terms[k % room]
                out = self.terms[room + k - (last - 2)] if last < self.n_terms and k >= last - 2 else term
                if k == 0:
                    x = term  # nothing comes before the highest degree
                    continue
                self._step(k, 0.5 if k == self.n_terms - 1 else 1.0, before, x, term, out)
                before, x = x, out

    def _replay(self, name: str, work: Callable[[], None]) -> None:
        """Record the launches of `work` the first time and replay them later; on large graphs call `work`."""
        cp = cupy()
        if self.layout.n >= RECORDED:
            work()
            return
        if name not in self.recordings:
            work()  # compiles the kernels, and does the work of this call
            stream = cp.cuda.Stream(non_blocking=True)
            with stream:
                stream.begin_capture()
                work()
                self.recordings[name] = stream.end_capture()
            return
        self.recordings[name].launch()

    def _step(self, k: int, factor: float, before: Any, x: Any, start: Any, out: Any) -> None:
        """Compute one term of the recurrence."""
        layout, weighted = self.layout, "false" if self.layout.values is None else "true"
        _kernel("step", self.dtype, layout.difference, layout.per_row, self.columns, self.lanes, weighted)(
            *_grid(layout.n * self.lanes, STEP_THREADS),
            (self.rows, self.dtype.type(factor), before, x, start, out, np.bool_(k % 2)),
        )
        n_long = len(layout.long[0])
        if n_long:
            _kernel("long_rows", self.dtype, self.columns)(
                *_grid(32 * n_long),
                (self.rows, self.dtype.type(factor), x, out, np.int32(n_long), *layout.long, layout.weights(2, self.dtype)),
            )

    def _mix(self, first: int, last: int, out: Any) -> None:
        """Add terms first .. last - 1 into the bands, or write their sum with the terms before to the nodes of `out`."""
        layout = self.layout
        target, stride, order = (self.bands, layout.stride, None) if out is None else (out, layout.n, layout.order)
        for j in range(0, self.n_bands, MOST_BANDS):
            bands = min(MOST_BANDS, self.n_bands - j)
            _kernel("mix", self.dtype, bands, self.columns)(
                *_grid(layout.n * self.columns),
                (
                    np.int32(layout.n), np.int64(layout.stride), np.int32(last - first), self.upwards[first:, j:],
                    np.int32(self.n_bands), self.terms, np.bool_(first == 0), self.bands[0, j:], target[0, j:], order, np.int64(stride),
                ),
                shared_mem=32 * -(-bands // 4) * (last - first),
            )  # fmt: skip

    def _unmix(self, first: int, last: int, target: Any) -> None:
        """Write the sums over bands of Clenshaw's terms first .. last - 1, to `target` and the places after it."""
        layout = self.layout
        _kernel("unmix", self.dtype, last - first, self.columns)(
            *_grid(layout.n * self.columns),
            (np.int32(layout.n), np.int64(layout.stride), np.int32(self.n_bands), self.downwards[first:], self.bands, target),
            shared_mem=32 * -(-(last - first) // 4) * self.n_bands,
        )

    def _moments(self, first: int, last: int, moments: Any) -> None:
        """Write <T_k x, T_k x> at 2k and <T_k x, T_k-1 x> at 2k - 1."""
        cp, layout, count = cupy(), self.layout, last - first
        if 2 * first > moments.shape[1]:
            return
        n_blocks = max(-(-layout.n // 4096), 1)
        parts, room = cp.empty((self.columns, count, 2, n_blocks)), len(self.terms)
        before = self.terms[(first - 1) % room] if first else None
        _kernel("moments", self.dtype, self.columns)(
            (n_blocks, self.columns), (THREADS,),
            (np.int32(layout.n), np.int64(layout.stride), np.int32(count), self.terms[first % room], before, parts),
        )  # fmt: skip
        sums, second = parts.sum(axis=3), max(first, 1)
        same, next_ = moments[:, 2 * first : 2 * last : 2], moments[:, 2 * second - 1 : 2 * last - 1 : 2]
        same[...] = sums[:, : same.shape[1], 0]
        next_[...] = sums[:, second - first : second - first + next_.shape[1], 1]

    def _reorder(self, nodes: Any, rows: Any, *, side: int | None = None, back: bool = False) -> None:
        """Copy signals (columns, n) to rows, `side` of them side by side, or back."""
        layout, side, strides = self.layout, side or self.columns, [np.int64(step // nodes.itemsize) for step in nodes.strides]
        source, target = (rows, nodes) if back else (nodes, rows)
        _kernel("reorder", self.dtype, "true" if back else "false", side)(
            *_grid(layout.n * side),
            (np.int32(layout.n), np.int32(len(nodes) // side), layout.order, source, target, *strides, np.int64(layout.stride)),
        )


def _even_share(count: int, most: int) -> int:
    """Return the size of equal parts of `count`, at most `most`.

    >>> _even_share(101, 51), _even_share(52, 51), _even_share(3, 51)
    (51, 26, 3)
    """
    return -(-count // -(-count // most))


def _work_arrays(layout: DeviceLayout, dtype: np.dtype, columns: int, n_bands: int, n_terms: int) -> tuple[Any, Any]:
    """Return arrays for terms (count, stride, columns) and bands (columns, n_bands, stride) in row order, cached for the next transform.

    The number of terms that fit into memory changes no bit of the result.
    """
    cp, shape, most = cupy(), (layout.stride, columns), max(min(n_terms + 2, TERMS), FEWEST_TERMS)

    def terms() -> Any:
        pool = cp.get_default_memory_pool()
        free = cp.cuda.runtime.memGetInfo()[0] + pool.free_bytes()
        if limit := pool.get_limit():
            free = min(free, limit - pool.used_bytes())
        count = np.clip(SHARE * free // (np.prod(shape) * dtype.itemsize), FEWEST_TERMS, most)
        return cp.empty((int(count), *shape), dtype=dtype)

    bands = layout.cached(("bands", dtype.str, columns, n_bands), lambda: cp.empty((columns, n_bands, layout.stride), dtype=dtype))
    return layout.cached(("terms", dtype.str, columns, most), terms), bands


# ---- sums and signs -------------------------------------------------------------------------------------------------------


def dots(a: Any, b: Any = None) -> Any:
    """Return sum_i a_ki b_ki of each pair of rows, or of a alone: (k,) in float64, in a fixed order."""
    cp, (k, n) = cupy(), a.shape
    if k == 0:
        return cp.zeros(0)
    a, b = (part if part is None or part.strides[1] == part.itemsize else cp.ascontiguousarray(part) for part in (a, b))
    while True:
        parts = cp.empty((k, max(-(-n // PER_BLOCK), 1)))
        strides = [0 if part is None else part.strides[0] // part.itemsize for part in (a, b)]
        kernel = compiled("sums.cu", "dots", a.dtype, a.dtype if b is None else b.dtype)
        kernel((parts.shape[1], k), (256,), (np.int64(n), a, np.int64(strides[0]), b, np.int64(strides[1]), parts))
        if parts.shape[1] == 1:
            return parts[:, 0]
        a, b, n = parts, None, parts.shape[1]


def signs(keys: np.ndarray, n: int, dtype: Any) -> Any:
    """Return a sign for each key and node: the Rademacher probes of `wavelets.monte_carlo.probes`."""
    cp = cupy()
    out = cp.empty((len(keys), n), dtype=dtype)
    if out.size == 0:
        return out
    compiled("sums.cu", "signs", np.dtype(dtype))((-(-n // 256), len(keys)), (256,), (np.int64(n), cp.asarray(keys), out))
    return out


# ---- kernels ------------------------------------------------------------------------------------------------------------


@cache
def compiled(sources: str, name: str, *kinds: np.dtype | int | str, extra_options: tuple[str, ...] = ()) -> Any:
    """Return a kernel of the source files, joined in order, for these types of numbers and sizes; CuPy caches compiled kernels on disk.

    Without fused multiply-add: sums are those of the CPU.
    """
    arguments = [_NAMES[kind.char] if isinstance(kind, np.dtype) else str(kind) for kind in kinds]
    whole = f"{name}<{', '.join(arguments)}>" if kinds else name
    code = "".join((Path(__file__).parent / "cuda" / source).read_text() for source in sources.split())
    options = ("-std=c++17", *OPTIONS, *extra_options)
    return cupy().RawModule(code=code, options=options, name_expressions=(whole,) if kinds else None).get_function(whole)


def _kernel(name: str, dtype: np.dtype, *sizes: int | str | np.dtype) -> Any:
    """Return a kernel of `recurrence.cu`."""
    return compiled("recurrence.cu", name, dtype, *sizes, extra_options=(f"-DSTEP_THREADS={STEP_THREADS}",))


def _grid(n: int, threads: int = THREADS) -> tuple[tuple[int], tuple[int]]:
    """Return the numbers of blocks and of threads of a block for n threads."""
    return (max(-(-n // threads), 1),), (threads,)


def _rows_argument(layout: DeviceLayout, scale: float, dtype: np.dtype) -> tuple[np.ndarray, Any]:
    """Return the struct Rows of 2 (scale L - I) in the dtype of the signals, and the array of diagonals.

    The struct holds addresses of arrays of the layout and of the second array, which must stay alive.
    """
    weight = layout.uniform if layout.values is None else 1.0
    shift = None
    if layout.diagonal is not None:
        shift = (2 * scale * layout.diagonal - 2.0).astype(dtype)
    arrays = layout.differences, layout.weights(0, dtype), *layout.tails, layout.weights(1, dtype), shift
    kind = [("n", np.int32), ("stride", np.int64), *((f"array{k}", np.uint64) for k in range(len(arrays))),
            ("per_neighbour", np.float64), ("offset", np.float64), ("gain", dtype)]  # fmt: skip
    rows = np.zeros(1, dtype=np.dtype(kind, align=True))
    addresses = (0 if array is None else array.data.ptr for array in arrays)
    rows[0] = (layout.n, layout.stride, *addresses, 2 * scale * weight, -2.0, 2 * scale * weight)
    return rows, shift
