"""The recurrence on one GPU, through CuPy: the same functions as `cpu`, with CuPy arrays in and out.

`recurrence.cu` holds the kernels. A term of the recurrence is one launch. As many terms as fit into memory, if possible all of them, are
stored and added into all bands in one pass. On small graphs, where launches would cost more than their work, all launches are recorded
once as a CUDA graph and replayed. Rows are those of `gpu_layout`, and a sum has the same order as on the CPU.

On large graphs without weights several terms are one launch (`tiles.cu`): blocks hold parts of the graph in shared memory. The bits are the same.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hushgraph._errors import StateError
from hushgraph._extras import extra
from hushgraph.core import tile_layout
from hushgraph.core.gpu_layout import Quads, prepare as prepare_quads
from hushgraph.core.tile_layout import Tiles

TERMS, FEWEST_TERMS = 104, 8  # most and fewest terms of the recurrence that are stored and added into the bands at once
SHARE = 1 / 6  # share of the free memory that terms may take
THREADS = 256
MOST_BANDS, MOST_TERMS = 8, 51  # bands, or terms, that a thread sums at a time
SHARED = 48 * 1024  # bytes of shared memory that their weights may take
COLUMNS = (8, 4, 2, 1)  # numbers of signals that can be transformed side by side
SIGNALS_AT_ONCE = 16  # signals with a polynomial each
LOAD = 16  # bytes that a thread loads at once: values of signals side by side
RECORDED = 2**22  # rows below which launches are recorded
SIDE_BY_SIDE = 2**24  # rows below which several signals are transformed side by side
STEP_THREADS = 128  # threads of a block of the recurrence: its rows share what they read
PER_BLOCK = 8192  # nodes whose terms a block sums, as in `sums.cu`
PER_MOMENT = 4096  # rows whose products a block sums, as in `recurrence.cu`
TILED = (2**18, 2**24)  # nodes from which on, and below which, terms are computed in tiles
BLOCKS_PER_PROCESSOR = 2  # of a kernel on tiles
OPTIONS = ("--fmad=false",)  # of every kernel: a sum has the same bits on all machines only without fused multiply-add
T = TypeVar("T")
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

    def __init__(self, quads: Quads, adjacency: Any = None) -> None:
        cp = cupy()
        self.adjacency = adjacency  # for tiles
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

    @property
    def tiles(self) -> DeviceTiles | None:
        """The tiles of the graph, made when they are first asked for; None if it is small, has weights or cannot be cut well."""
        is_plain = self.values is None and self.diagonal is None and self.adjacency is not None
        if not is_plain or not TILED[0] <= self.n < TILED[1]:
            return None

        def make() -> DeviceTiles | None:
            tiles = tile_layout.prepare(self.adjacency, BLOCKS_PER_PROCESSOR * _processors())
            return None if tiles is None else DeviceTiles(tiles, self.uniform)

        return self.cached("tiles", make)

    def cached(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the cached value for `key`, computing it with `make` on a miss."""
        if key not in self.cache:
            self.cache[key] = make()
        return self.cache[key]


class DeviceTiles:
    """Tiles on the GPU. `room` is memory for the terms of signals, for all transforms."""

    def __init__(self, tiles: Tiles, weight: float) -> None:
        cp = cupy()
        self.n, self.stride, self.count, self.hops = len(tiles.order), tiles.stride, tiles.count, tiles.hops
        self.rows_per_thread, self.weight, self.order = tiles.rows_per_thread, weight, cp.asarray(tiles.order)
        arrays = (tiles.starts, tiles.ends, tiles.halo_starts, tiles.halo, tiles.quad_starts, tiles.quads, tiles.list_bases,
                  tiles.list_starts, tiles.list_places)  # fmt: skip
        self.arrays = tuple(cp.asarray(part) for part in arrays)

    def argument(self, scale: float) -> np.ndarray:
        """Return the struct Tiles of 2 (scale L - I); it holds addresses of the arrays."""
        kind = [("hops", np.int32), *((f"array{k}", np.uint64) for k in range(len(self.arrays))),
                ("per_neighbour", np.float64), ("offset", np.float64), ("gain", np.float64)]  # fmt: skip
        struct = np.zeros(1, dtype=np.dtype(kind, align=True))
        gain = 2 * scale * self.weight
        struct[0] = (self.hops, *(array.data.ptr for array in self.arrays), gain, -2.0, gain)
        return struct


def prepare(adjacency: Any, diagonal: np.ndarray) -> DeviceLayout:
    """Return the matrix on the GPU, renumbered."""
    return DeviceLayout(prepare_quads(adjacency, diagonal), adjacency)


def forward(layout: DeviceLayout, coefficients: np.ndarray, signals: Any, scale: float) -> Any:
    """Return all rho_j(L) x of each signal x, (m, n) -> (m, n_scales, n)."""
    return forward_with_moments(layout, coefficients, signals, scale, n_moments=0)[0]


def forward_with_moments(
    layout: DeviceLayout, coefficients: np.ndarray, signals: Any, scale: float, *, n_moments: int
) -> tuple[Any, Any]:
    """Return `forward`, and the first x'T_k(scale L - I) x, (m, n_moments), as in `cpu`; these in float64."""
    cp, n_moments = cupy(), min(n_moments, 2 * coefficients.shape[1] - 1)
    if len(coefficients) == 1 and coefficients.shape[1] > 1 and not n_moments and layout.tiles is not None:
        return forward_each(layout, coefficients, signals[:, None], scale), cp.empty((len(signals), 0))
    out = cp.empty((len(signals), len(coefficients), layout.n), dtype=signals.dtype)
    products = cp.empty((len(signals), coefficients.shape[1] if n_moments else 0, 2))
    for start, columns in _groups(layout, len(signals)):
        part = slice(start, start + columns)
        with layout.lock:
            _Transform.of(layout, coefficients, scale, signals.dtype, columns).forward(signals[part], out[part], products[part])
    return out, _moments_of(products, n_moments)


def forward_each(layout: DeviceLayout, coefficients: np.ndarray, bands: Any, scale: float) -> Any:
    """Return rho_j(L) F_j of each band, (m, n_scales, n) -> (m, n_scales, n)."""
    cp = cupy()
    out = cp.empty(bands.shape, dtype=bands.dtype)
    if layout.tiles is None or coefficients.shape[1] == 1:
        for j in range(len(coefficients)):
            out[:, j] = forward(layout, coefficients[j : j + 1], cp.ascontiguousarray(bands[:, j]), scale)[:, 0]
        return out
    rows, results = (part.reshape(-1, layout.n) for part in (cp.ascontiguousarray(bands), out))
    theta = np.tile(coefficients, (len(bands), 1))
    for start in range(0, len(rows), SIGNALS_AT_ONCE):
        part = slice(start, start + SIGNALS_AT_ONCE)
        with layout.lock:
            _Polynomials.of(layout, theta[part], scale, bands.dtype).each(rows[part], results[part])
    return out


def _moments_of(products: Any, n_moments: int) -> Any:
    """Return x'T_m x of each signal from <T_k x, T_k x> and <T_k x, T_k-1 x>, (m, terms, 2): T_k T_l = (T_k+l + T_k-l) / 2."""
    moments = cupy().empty((len(products), n_moments))
    if n_moments:
        moments[:, ::2] = products[:, : -(-n_moments // 2), 0]
        moments[:, 1::2] = products[:, 1 : n_moments // 2 + 1, 1]
        moments[:, 2::2] = 2 * moments[:, 2::2] - moments[:, :1]
        moments[:, 3::2] = 2 * moments[:, 3::2] - moments[:, 1:2]
    return moments


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


class _Recorded:
    """Launches on n rows that are recorded the first time, and replayed later."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.recordings: dict[str, Any] = {}

    def _replay(self, name: str, work: Callable[[], None]) -> None:
        """Record the launches of `work` the first time and replay them later; on large graphs call `work`."""
        cp = cupy()
        if self.n >= RECORDED:
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


def _latest(layout: DeviceLayout, kind: str, key: Hashable, make: Callable[[], T]) -> T:
    """Return what is cached with the layout for `key`, computing it with `make` on a miss; the latest 16 of each kind are kept."""
    latest = layout.cache.setdefault(kind, {})
    if key not in latest:
        if len(latest) >= 16:
            latest.pop(next(iter(latest)))
        latest[key] = make()
    return latest[key]


class _Transform(_Recorded):
    """Polynomials of one matrix for a number of signals at a time, with the arrays for them and, on small graphs, their recording.

    Recordings hold addresses, and coefficients have an array that stays: other polynomials of the same number and degree replay them.
    """

    def __init__(self, layout: DeviceLayout, coefficients: np.ndarray, scale: float, dtype: Any, columns: int) -> None:
        cp = cupy()
        super().__init__(layout.n)
        self.layout = weakref.proxy(layout)  # the layout holds its transforms: a cycle of references would outlive the graph
        self.dtype, self.columns = np.dtype(dtype), columns
        self.n_bands, self.n_terms = coefficients.shape
        self.lanes = -(-columns * self.dtype.itemsize // LOAD)
        self.upwards, self.downwards = cp.empty((2, self.n_terms, self.n_bands), dtype=dtype)
        self.coefficients: bytes | None = None
        self.n_blocks = max(-(-layout.n // PER_MOMENT), 1)
        self.parts: Any = None
        self.rows, self.shift = _rows_argument(layout, scale, self.dtype)
        self.terms, self.bands = _work_arrays(layout, self.dtype, columns, self.n_bands, self.n_terms)

    @classmethod
    def of(cls, layout: DeviceLayout, coefficients: np.ndarray, scale: float, dtype: Any, columns: int) -> _Transform:
        """Return the transform; the latest ones are cached with the layout."""
        key = coefficients.shape, float(scale), np.dtype(dtype).str, columns
        transform = _latest(layout, "transforms", key, lambda: cls(layout, coefficients, scale, dtype, columns))
        transform._take(coefficients)
        return transform

    def _take(self, coefficients: np.ndarray) -> None:
        """Copy the coefficients to the arrays of this transform."""
        content = np.ascontiguousarray(coefficients.T, dtype=self.dtype)
        if content.tobytes() != self.coefficients:
            self.coefficients, both = content.tobytes(), cupy().asarray(np.stack([content, content[::-1]]))
            self.upwards[...], self.downwards[...] = both[0], both[1]

    def forward(self, signals: Any, out: Any, products: Any) -> None:
        """Write the bands of signals to `out`, and the inner products of their terms, if there is room for some."""
        self._reorder(signals, self.terms)
        if products.shape[1]:
            if self.parts is None:
                self.parts = cupy().zeros((self.columns, self.n_terms, 2, self.n_blocks))
            self._replay("forward with moments", lambda: self._climb(self.parts))
            products[...] = self.parts.sum(axis=3)
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

    def _climb(self, parts: Any) -> None:
        """Sum T_k x into the bands batch by batch, except for the last batch. A term overwrites one that was added long before.

        With `parts`, parts of sums over nodes of the products of neighbouring terms are written there.
        """
        room = len(self.terms)
        for first, last in self._batches(room):
            for k in range(first, last):
                if k > 0:
                    before = self.terms[(k - 2) % room] if k > 1 else None
                    self._step(k, 0.5 if k == 1 else 1.0, before, self.terms[(k - 1) % room], None, self.terms[k % room])
                if parts is not None and k == first:
                    self._moments(first, first + 1, parts)  # while the last term of the batch before is still in memory
            if parts is not None and last > first + 1:
                self._moments(first + 1, last, parts)
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

    def _moments(self, first: int, last: int, parts: Any) -> None:
        """Write parts of <T_k x, T_k x> and <T_k x, T_k-1 x> for terms first .. last - 1."""
        layout, room = self.layout, len(self.terms)
        before = self.terms[(first - 1) % room] if first else None
        _kernel("moments", self.dtype, self.columns)(
            (self.n_blocks, self.columns), (THREADS,),
            (
                np.int32(layout.n), np.int64(layout.stride), np.int32(last - first), self.terms[first % room], before,
                parts[0, first:], np.int32(self.n_terms),
            ),
        )  # fmt: skip

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
        count = np.clip(_free_memory() // (np.prod(shape) * dtype.itemsize), FEWEST_TERMS, most)
        return cp.empty((int(count), *shape), dtype=dtype)

    bands = layout.cached(("bands", dtype.str, columns, n_bands), lambda: cp.empty((columns, n_bands, layout.stride), dtype=dtype))
    return layout.cached(("terms", dtype.str, columns, most), terms), bands


def _free_memory() -> float:
    """Return the bytes that terms may take."""
    cp = cupy()
    pool = cp.get_default_memory_pool()
    free = cp.cuda.runtime.memGetInfo()[0] + pool.free_bytes()
    if limit := pool.get_limit():
        free = min(free, limit - pool.used_bytes())
    return SHARE * free


# ---- polynomials in tiles ---------------------------------------------------------------------------------------------------


class _Polynomials(_Recorded):
    """One polynomial for each of several signals, several terms in one launch, with the arrays for them and their recording.

    `pairs` are the last two terms of two launches, which read one pair and write the other one.
    """

    def __init__(self, layout: DeviceLayout, coefficients: np.ndarray, scale: float, dtype: Any) -> None:
        cp, tiles, dtype = cupy(), layout.tiles, np.dtype(dtype)
        assert tiles is not None, "a graph in tiles"
        super().__init__(layout.n)
        self.tiles, self.dtype, self.struct = weakref.proxy(tiles), dtype, tiles.argument(scale)
        self.count, self.n_terms = coefficients.shape
        self.theta, self.coefficients = cp.empty((self.n_terms, self.count), dtype=dtype), b""
        shape = self.count, tiles.stride
        self.pairs = layout.cached(("tile pairs", dtype.str, self.count), lambda: cp.empty((2, shape[0], 2, shape[1]), dtype=dtype))
        self.sums = layout.cached(("tile sums", dtype.str, self.count), lambda: cp.empty(shape, dtype=dtype))

    @classmethod
    def of(cls, layout: DeviceLayout, coefficients: np.ndarray, scale: float, dtype: Any) -> _Polynomials:
        """Return the polynomials; the latest ones are cached with the layout."""
        key = coefficients.shape, float(scale), np.dtype(dtype).str
        polynomials = _latest(layout, "polynomials", key, lambda: cls(layout, coefficients, scale, dtype))
        polynomials._take(coefficients)
        return polynomials

    def _take(self, coefficients: np.ndarray) -> None:
        """Copy the coefficients to the array of these polynomials."""
        content = np.ascontiguousarray(coefficients.T, dtype=self.dtype)
        if content.tobytes() != self.coefficients:
            self.coefficients = content.tobytes()
            self.theta[...] = cupy().asarray(content)

    def each(self, signals: Any, out: Any) -> None:
        """Write the polynomial of each signal to `out`."""
        self._move(signals, self.pairs[0, :, 1])
        self._replay("each", self._sum)
        self._move(out, self.sums, back=True)

    def _sum(self) -> None:
        """Add all terms up."""
        tiles, rows = self.tiles, self.tiles.rows_per_thread * tile_layout.THREADS
        kernel = compiled("tiles.cu", "tile_sums", self.dtype, tiles.rows_per_thread)
        kernel.max_dynamic_shared_size_bytes = shared = 2 * (rows + 1) * 8 + 8 * rows
        for launch, k in enumerate(range(1, self.n_terms, tiles.hops)):
            source, target = self.pairs[launch % 2], self.pairs[1 - launch % 2]
            kernel(
                (tiles.count, self.count), (tile_layout.THREADS,),
                (
                    self.struct, np.int32(min(tiles.hops, self.n_terms - k)), source if launch else None, source[0, 1], target,
                    np.int64(tiles.stride), self.theta[k if launch else 0], np.bool_(launch == 0), self.sums,
                ),
                shared_mem=shared,
            )  # fmt: skip

    def _move(self, nodes: Any, rows: Any, *, back: bool = False) -> None:
        """Copy signals (k, n) to rows (k, stride), or back."""
        tiles, strides = self.tiles, [np.int64(step // nodes.itemsize) for step in (*nodes.strides, rows.strides[0])]
        source, target = (rows, nodes) if back else (nodes, rows)
        _kernel("reorder", self.dtype, "true" if back else "false", 1)(
            *_grid(tiles.n), (np.int32(tiles.n), np.int32(self.count), tiles.order, source, target, *strides)
        )


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


def _processors() -> int:
    return cupy().cuda.Device().attributes["MultiProcessorCount"]


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
