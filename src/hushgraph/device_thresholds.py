"""Thresholds of least SURE for coefficients on a GPU, and their use there. CuPy is there when this is called: its arrays came in.

Values are sorted by bin, and the sums of each bin are taken by a warp, in the order of the nodes: so they are those of the processor to
the bit, and so is the threshold. A few thousand numbers come to the host: sums of bins, and the values of the bins that may hold the
minimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hushgraph.arrays import namespace
from hushgraph.kernels.gpu import OPTIONS, cupy
from hushgraph.sure_bins import BINS, TINY, bin_edges, bounds_of_bins, search_bins

WARPS = 4  # of a block
_SUMS = r"""
extern "C" __global__ void bin_sums(int n_bins, const double* z, const double* x, const double* g, const long long* starts,
                                    const double* edges, double beta, double* sums) {
    __shared__ double terms[WARPS][4][33];
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, bin = blockIdx.x * WARPS + warp;
    if (bin >= n_bins) return;
    double sum = 0;  // of the first four lanes: x^2, g, x^2 r^2, g r
    for (long long base = starts[bin]; base < starts[bin + 1]; base += 32) {
        int count = (int)min(32LL, starts[bin + 1] - base);
        if (lane < count) {
            double size = z[base + lane], value = x[base + lane], weight = g[base + lane];
            double r = size > 0 ? edges[bin] / size : 0.0;
            r = beta == 1.0 ? r : beta == 2.0 ? r * r : pow(r, beta);
            double square = value * value;
            terms[warp][0][lane] = square;
            terms[warp][1][lane] = weight;
            terms[warp][2][lane] = square * r * r;
            terms[warp][3][lane] = weight * r;
        }
        __syncwarp();
        if (lane < 4)
            for (int i = 0; i < count; i++) sum += terms[warp][lane][i];
        __syncwarp();
    }
    if (lane < 4) sums[lane * n_bins + bin] = sum;
}
"""


class _Row(NamedTuple):
    """One row of coefficients, sorted by bin: where bins start, and sizes, values and weights."""

    edges: np.ndarray
    starts: Any
    sums: Any
    sorted: tuple[Any, Any, Any]


def least_sure_on_device(x, g, scale, variance: float, beta: float) -> np.ndarray:
    """For each row of coefficients the candidate with the least SURE, as `sure_bins.least_sure` finds it.

    The host waits three times, however many rows there are: for their largest values, for the sums, and for what is in open bins.
    """
    cp = namespace(x)
    if x.shape[1] == 0:
        return np.zeros(len(x))
    z = _sizes(x, scale)
    tops = z.max(axis=1).get()
    rows = {j: _sorted_by_bin(z[j], x[j], g[j], top, beta) for j, top in enumerate(tops) if top > 0}
    found = np.where(tops == 0, TINY, 0.0)
    if not rows:
        return found
    sums, starts = (cp.stack([getattr(row, name) for row in rows.values()]).get() for name in ("sums", "starts"))
    bounds = [bounds_of_bins(row.edges, tuple(own), variance, beta) for row, own in zip(rows.values(), sums, strict=True)]
    runs = [_runs(open_bins, own) for (open_bins, *_), own in zip(bounds, starts, strict=True)]
    members = _fetched(rows, runs)
    for j, row, (open_bins, *rest), own in zip(rows, rows.values(), bounds, starts, strict=True):
        under, above, sure_at_zero = rest
        firsts = np.concatenate([[0], np.cumsum(np.where(open_bins, np.diff(own), 0))])
        found[j] = search_bins(firsts, *next(members), row.edges, under, above, variance, beta, sure_at_zero)  # type: ignore[call-arg]
    return found


def _sizes(x, scale):
    """|x| / scale; -1, below every candidate, where no threshold reaches."""
    size = abs(x).astype(np.float64)
    if scale is None:
        return size
    cp = namespace(x)
    return cp.where(scale > 0, size / cp.where(scale > 0, scale, 1.0), cp.where(size == 0, 0.0, -1.0))


def _sorted_by_bin(z, x, g, top: float, beta: float) -> _Row:
    cp = namespace(z)
    lowest = max(0, (int(np.float64(top).view(np.int64)) >> 46) - BINS + 1)
    keys = cp.where(z >= 0, cp.maximum((z.view(np.int64) >> 46) - lowest, 0), BINS).astype(np.uint16)
    order = cp.argsort(keys)
    starts = cp.searchsorted(keys[order], cp.arange(BINS + 1, dtype=np.uint16)).astype(np.int64)
    z, x, g = (part[order].astype(np.float64, copy=False) for part in (z, x, g))
    edges, sums = bin_edges(lowest), cp.empty((4, BINS))
    _bin_sums()((-(-BINS // WARPS),), (32 * WARPS,), (np.int32(BINS), z, x, g, starts, cp.asarray(edges), float(beta), sums))
    return _Row(edges, starts, sums, (z, x, g))


def _runs(open_bins: np.ndarray, starts: np.ndarray) -> list[slice]:
    """Places of what lies in open bins, one slice for bins side by side."""
    turns = np.flatnonzero(np.diff(np.concatenate([[False], open_bins, [False]])))  # where a run of open bins begins or ends
    return [slice(int(starts[a]), int(starts[b])) for a, b in list(pairwise(turns))[::2]]


def _fetched(rows: dict[int, _Row], runs: list[list[slice]]) -> Iterator[list[np.ndarray]]:
    """Sizes, values and weights of each row in open bins, brought to the host at once."""
    parts = [row.sorted[k][run] for row, own in zip(rows.values(), runs, strict=True) for k in range(3) for run in own]
    flat = namespace(next(iter(rows.values())).sums).concatenate(parts).get() if parts else np.zeros(0)
    place = 0
    for own in runs:
        count = sum(run.stop - run.start for run in own)
        yield [flat[place + k * count : place + (k + 1) * count] for k in range(3)]
        place += 3 * count


def apply_on_device(F, t, scale, beta: float, slope) -> None:
    """F becomes x (1 - |t / x|^beta)_+, slope its derivative."""
    cp = namespace(F)
    limits = cp.asarray(np.asarray(t, dtype=F.dtype))[:, None]
    _shrink()(F, limits, F.dtype.type(1) if scale is None else scale.astype(F.dtype, copy=False), F.dtype.type(beta), F, slope)


@cache
def _bin_sums():
    return cupy().RawKernel(_SUMS, "bin_sums", options=(*OPTIONS, f"-DWARPS={WARPS}"))


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
