"""The threshold of least SURE from sums that add up over partitions: the same as `_loops.least_sure` finds, to the bit.

`count_bins` counts each partition's terms of SURE in bins, in whole units; the client adds them up and finds the few bins that may hold
the minimum. Where they hold many values, `count_finer` does the same in finer bins. `pick` takes the values that are left from each
partition; the client puts them in the order of the nodes and searches them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hushgraph.core import _loops
from hushgraph.distributed.runner import Runner
from hushgraph.distributed.store import added, part_folder, read_array, write_array
from hushgraph.distributed.tasks import Run
from hushgraph.sure_bins import BINS, FINER, TINY, WORDS

Scales = list[Any]  # of each scale (its lowest bin, units), or None where there is nothing to search


def count_bins(run: Run, part: int, scales: Scales) -> dict[str, Any]:
    """Sums over the bins of each scale."""
    out = run.output(part, "bins")
    if (known := out.known()) is not None:
        return known
    sums = np.zeros((len(scales), BINS, WORDS), np.int64)
    for j, z, x, g in _rows(run, part, scales):
        _loops.add_to_bins(z, x, g, scales[j][0], scales[j][1], run.exponent, sums[j])
    out.save("sums", sums)
    return out.done({})


def count_finer(run: Run, part: int, scales: Scales, cut: list[bool]) -> dict[str, Any]:
    """Sums over the finer bins of the open bins of scales that are cut."""
    out = run.output(part, "finer")
    if (known := out.known()) is not None:
        return known
    slots, found = read_array(run.folder / "slots.npy"), []
    for j, z, x, g in _rows(run, part, scales):
        finer = np.zeros((slots[j].max() + 1 if cut[j] else 0, FINER, WORDS), np.int64)
        if cut[j]:
            _loops.add_to_finer(z, x, g, scales[j][0], slots[j], scales[j][1], run.exponent, finer)
        found.append(finer)
    out.save("sums", np.concatenate(found))
    return out.done({})


def pick(run: Run, part: int, scales: Scales) -> dict[str, Any]:
    """Values that may hold a minimum, with their cells and nodes."""
    out = run.output(part, "pick")
    if (known := out.known()) is not None:
        return known
    slots, cells = read_array(run.folder / "slots.npy"), read_array(run.folder / "cells.npy")
    nodes, found, counts, first = read_array(part_folder(run.work, part) / "rows.nodes.npy"), [], [0] * len(scales), 0
    for j, z, x, g in _rows(run, part, scales):
        last = first + slots[j].max() + 1
        own = _loops.places_in_bins(z, scales[j][0], slots[j])
        numbers = _loops.cell_numbers(z[own], scales[j][0], slots[j], cells[first:last])
        own, numbers = own[numbers >= 0], numbers[numbers >= 0]
        found.append(np.stack([numbers, nodes[own], z[own], x[own], g[own]]))
        counts[j], first = len(own), last
    out.save("values", np.concatenate([np.empty((5, 0)), *found], axis=1))
    return out.done({"counts": counts})


def _rows(run: Run, part: int, scales: Scales):
    """(scale, sizes, coefficients, weights) of owned nodes, for the scales that are searched."""
    F, weights = run.output(part, "transform").load("bands", whole=False), run.raw_weights(part)
    scale = run.output(part, "scales").load("scale", whole=False) if run.scaled else None
    for j in range(len(F)):
        if scales[j] is not None:
            x, g = F[j].astype(np.float64), np.ascontiguousarray(weights[j], np.float64)
            yield j, _loops.scaled_sizes(x, None if scale is None else np.ascontiguousarray(scale[j])), x, g


# ---- the client ---------------------------------------------------------------------------------------------------------


def least_sure(run: Run, runner: Runner, parts: int, extremes: list, variance: float) -> np.ndarray:
    """The thresholds of all scales; `extremes` are those of each partition and scale."""
    top, *largest = np.max(np.array(extremes), axis=0).T
    scales: Scales = [
        (_loops.lowest_bin(top[j]), _loops.units_of(*(size[j] for size in largest))) if top[j] > 0 else None
        for j in range(len(top))
    ]
    runner.run("bins", count_bins, [(run, part, scales) for part in range(parts)])
    sums = added((run.output(part, "bins") for part in range(parts)), "sums")
    opened: dict[int, Any] = {}
    slots = np.full((len(top), BINS), -1)
    for j in _searched(scales):
        slots[j], *opened[j] = _loops.open_bins(sums[j], scales[j][0], scales[j][1], variance, run.exponent)
    write_array(run.folder / "slots.npy", slots)
    cells = _cells(run, runner, parts, scales, opened, variance)
    counts = [one["counts"] for one in runner.run("pick", pick, [(run, part, scales) for part in range(parts)])]
    t = np.where(top == 0, TINY, 0.0)
    for j in _searched(scales):
        numbers, _, z, x, g = _members(run, parts, counts, j)
        starts, own = _loops.places_in_cells(numbers.astype(np.int64), len(cells[j]))
        t[j] = _loops.least_of_cells(cells[j], starts, z[own], x[own], g[own], opened[j][1][1], variance, run.exponent)
    return t * (1 + 2.0**-51) if run.scaled else t  # as in `sure_thresholds`


def _searched(scales: Scales) -> list[int]:
    return [j for j, scale in enumerate(scales) if scale is not None]


def _cells(run: Run, runner: Runner, parts: int, scales: Scales, opened: dict, variance: float) -> dict[int, np.ndarray]:
    """The cells of each scale that may hold its minimum; which finer bins they are goes to a file."""
    cut = [j in opened and _loops.is_cut(opened[j][1]) for j in range(len(scales))]
    finer = np.empty(0)
    if any(cut):
        runner.run("finer", count_finer, [(run, part, scales, cut) for part in range(parts)])
        finer = added((run.output(part, "finer") for part in range(parts)), "sums")
    cells, numbers, first = {}, [np.empty((0, FINER), np.int64)], 0
    for j in _searched(scales):
        bins, inside = opened[j]
        own = np.zeros((len(bins), FINER, WORDS), np.int64)
        if cut[j]:
            own[:], first = finer[first : first + len(bins)], first + len(bins)
        cells[j], cell_of = _loops.open_cells(bins, inside, own, scales[j][0], scales[j][1], variance, run.exponent)
        numbers.append(cell_of)
    write_array(run.folder / "cells.npy", np.concatenate(numbers))
    return cells


def _members(run: Run, parts: int, counts: list, j: int) -> np.ndarray:
    """Values that were picked from all partitions, in the order of the nodes."""
    found = []
    for part in range(parts):
        first = sum(counts[part][:j])
        found.append(run.output(part, "pick").load("values", whole=False)[:, first : first + counts[part][j]])
    both = np.concatenate(found, axis=1)
    return np.ascontiguousarray(both[:, np.argsort(both[1])])
