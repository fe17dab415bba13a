"""The threshold of least SURE from sums over partitions, with the bits of `_loops.least_sure`.

The task `count_bins` sums a partition's terms of SURE in bins, in whole units; the driver adds them up and finds the few bins that may
hold the minimum. Where these hold many values, `count_finer` does the same in finer bins. `pick_values` writes the remaining values of
a partition; the driver puts those of all partitions in the order of the nodes and searches them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hushgraph.core import _loops
from hushgraph.distributed.runner import Runner
from hushgraph.distributed.store import mark_array, read_marked, sum_arrays, write_array
from hushgraph.distributed.wavelet_tasks import Run
from hushgraph.wavelets import BINS, FINER, TINY, WORDS, raised_thresholds

Scales = list[Any]  # (lowest bin, units) of each scale, or None where all coefficients are 0


def count_bins(run: Run, part: int, scales: Scales) -> dict[str, Any]:
    """Write the sums over the bins of each scale."""
    out = run.output(part, "bins")
    if (finished := out.read_facts()) is not None:
        return finished
    sums = np.zeros((len(scales), BINS, WORDS), np.int64)
    for j, z, x, g in _rows(run, part, scales):
        _loops.add_to_bins(z, x, g, scales[j][0], scales[j][1], run.exponent, sums[j])
    out.save("sums", sums)
    return out.mark_done({})


def count_finer(run: Run, part: int, scales: Scales, cut: list[bool]) -> dict[str, Any]:
    """Write the sums over the finer bins of the open bins of scales that are cut."""
    out = run.output(part, "finer")
    if (finished := out.read_facts()) is not None:
        return finished
    slots, sums = read_marked(run.folder / "slots.npy"), []
    for j, z, x, g in _rows(run, part, scales):
        finer = np.zeros((slots[j].max() + 1 if cut[j] else 0, FINER, WORDS), np.int64)
        if cut[j]:
            _loops.add_to_finer(z, x, g, scales[j][0], slots[j], scales[j][1], run.exponent, finer)
        sums.append(finer)
    out.save("sums", np.concatenate(sums))
    return out.mark_done({})


def pick_values(run: Run, part: int, scales: Scales) -> dict[str, Any]:
    """Write the values that may be a minimum, with their cells and nodes."""
    out = run.output(part, "pick")
    if (finished := out.read_facts()) is not None:
        return finished
    slots, cells = read_marked(run.folder / "slots.npy"), read_marked(run.folder / "cells.npy")
    nodes, values, counts, first = run.owned(part), [], [0] * len(scales), 0
    for j, z, x, g in _rows(run, part, scales):
        last = first + slots[j].max() + 1
        places = _loops.places_in_bins(z, scales[j][0], slots[j])
        numbers = _loops.cell_numbers(z[places], scales[j][0], slots[j], cells[first:last])
        places, numbers = places[numbers >= 0], numbers[numbers >= 0]
        values.append(np.stack([numbers, nodes[places], z[places], x[places], g[places]]))
        counts[j], first = len(places), last
    out.save("values", np.concatenate([np.empty((5, 0)), *values], axis=1))
    return out.mark_done({"counts": counts})


def _rows(run: Run, part: int, scales: Scales) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield (scale, scaled sizes, coefficients, weights) of owned nodes, for the scales that are searched."""
    F, weights = run.output(part, "transform").load("bands", whole=False), run.weights(part)
    scale, squares = run.output(part, "scales").load("scale", whole=False) if run.scaled else None, np.empty(F.shape[1])
    for j in range(len(F)):
        if scales[j] is not None:
            x, g = np.asarray(F[j], np.float64), weights.row(j, squares)
            yield j, _loops.scaled_sizes(x, None if scale is None else np.ascontiguousarray(scale[j])), x, g


# ---- the driver ---------------------------------------------------------------------------------------------------------


def search_thresholds(run: Run, runner: Runner, parts: int, extremes: list[list[list[float]]], variance: float) -> np.ndarray:
    """Return the thresholds of all scales; `extremes` are those of each partition and scale."""
    top, *largest = np.max(np.array(extremes), axis=0).T
    scales: Scales = [
        (_loops.lowest_bin(top[j]), _loops.units_of(*(size[j] for size in largest))) if top[j] > 0 else None
        for j in range(len(top))
    ]
    runner.run("bins", count_bins, [(run, part, scales) for part in range(parts)])
    sums = sum_arrays((run.output(part, "bins") for part in range(parts)), "sums")
    open_bins: dict[int, Any] = {}
    slots = np.full((len(top), BINS), -1)
    for j in _searched(scales):
        slots[j], *open_bins[j] = _loops.open_bins(sums[j], scales[j][0], scales[j][1], variance, run.exponent)
    mark_array(run.folder / "slots.npy", write_array(run.folder / "slots.npy", slots, safe=True))
    cells = _open_cells(run, runner, parts, scales, open_bins, variance)
    counts = [picked["counts"] for picked in runner.run("pick", pick_values, [(run, part, scales) for part in range(parts)])]
    t = np.where(top == 0, TINY, 0.0)
    for j in _searched(scales):
        numbers, _, z, x, g = _picked_values(run, parts, counts, j)
        starts, order = _loops.places_in_cells(numbers.astype(np.int64), len(cells[j]))
        t[j] = _loops.least_of_cells(cells[j], starts, z[order], x[order], g[order], open_bins[j][1][1], variance, run.exponent)
    return raised_thresholds(t) if run.scaled else t


def _searched(scales: Scales) -> list[int]:
    """Return the numbers of the scales that are searched."""
    return [j for j, scale in enumerate(scales) if scale is not None]


def _open_cells(
    run: Run, runner: Runner, parts: int, scales: Scales, open_bins: dict[int, Any], variance: float
) -> dict[int, np.ndarray]:
    """Return the cells of each scale that may hold its minimum; the numbers of their finer bins are written to a file."""
    cut = [j in open_bins and _loops.is_cut(open_bins[j][1]) for j in range(len(scales))]
    finer = np.empty(0)
    if any(cut):
        runner.run("finer", count_finer, [(run, part, scales, cut) for part in range(parts)])
        finer = sum_arrays((run.output(part, "finer") for part in range(parts)), "sums")
    cells, numbers, first = {}, [np.empty((0, FINER), np.int64)], 0
    for j in _searched(scales):
        bins, inside = open_bins[j]
        sums = np.zeros((len(bins), FINER, WORDS), np.int64)
        if cut[j]:
            sums[:], first = finer[first : first + len(bins)], first + len(bins)
        cells[j], cell_of = _loops.open_cells(bins, inside, sums, scales[j][0], scales[j][1], variance, run.exponent)
        numbers.append(cell_of)
    mark_array(run.folder / "cells.npy", write_array(run.folder / "cells.npy", np.concatenate(numbers), safe=True))
    return cells


def _picked_values(run: Run, parts: int, counts: list[list[int]], j: int) -> np.ndarray:
    """Return the values that were picked from all partitions, in the order of the nodes."""
    values = []
    for part in range(parts):
        first = sum(counts[part][:j])
        values.append(run.output(part, "pick").load("values", whole=False)[:, first : first + counts[part][j]])
    joined = np.concatenate(values, axis=1)
    return np.ascontiguousarray(joined[:, np.argsort(joined[1])])
