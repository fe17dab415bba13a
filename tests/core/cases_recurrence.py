"""Cases for `recurrence.cpp`: forward and backward, one signal and many, with and without weights, with and without a wavefront."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from cases_layout import sorted_runs
from corpus import Case, Scratch
from shapes import larger_graphs

STEPS = 12


def cases() -> Iterator[Case]:
    random = np.random.RandomState(3)
    for name, indptr, indices in larger_graphs():
        n = len(indptr) - 1
        if n < 2:
            continue
        for weighted in (False, True):
            order, blocks, runs, block_runs, places, reach = _breadth_first_blocks(indptr, indices, 64)
            weights = random.uniform(0.1, 2.0, size=len(indices))
            label = f"{name}{', weighted' if weighted else ''}"
            for dtype in (np.float64, np.float32):
                kind = f"{label}, {np.dtype(dtype).name}"
                rows = _operator(random, runs, blocks, block_runs, places, weights if weighted else None, n, dtype)
                reach = min(STEPS + 3, len(blocks) - 1)
                mask = (1 << int(np.max(blocks[reach:] - blocks[:-reach], initial=1) - 1).bit_length()) - 1
                tail = int(np.diff(blocks).max())
                round_rows = (*rows[:4], rows[4] & np.uint32(mask), *rows[5:])
                if dtype == np.float64:
                    yield Case(f"product: {kind}", "multiply", (rows, random.uniform(-2, 2, size=n), np.zeros(n)))
                    signless = *(part if part is None or part.dtype != dtype else np.abs(part) for part in rows[:7]), -rows[7]
                    for steps, round_mask in ((1, mask), (12, mask), (5, -1)):
                        x, least = np.abs(random.uniform(-2, 2, size=n)), np.where(random.uniform(size=n) < 0.9, 1e-100, 0.0)
                        x[least == 0] = 0.0
                        near = signless if round_mask < 0 else (*signless[:4], signless[4] & np.uint32(mask), *signless[5:])
                        for counted in (None, random.uniform(size=n) < 0.3):
                            what = f"powers {steps} {round_mask >= 0} {counted is None}: {kind}"
                            yield Case(what, "iterate_powers", (near, x, least, 2.0**-3, steps, round_mask, counted))
                for scales, degree, moments in ((1, 1, 2), (3, 12, 0), (2, 13, 14), (2, 25, 26)):
                    theta = random.uniform(-2, 2, size=(scales, degree + 1)).astype(dtype)
                    theta[0, 5:9] = 0
                    for backward in (False, True):
                        table = np.ascontiguousarray(theta[:, ::-1].T) if backward else theta
                        what = f"{'back' if backward else 'forward'} {scales} {degree} {moments}: {kind}"
                        for wavefront in (True, False):
                            signal, bands = (
                                random.uniform(-2, 2, size=n).astype(dtype),
                                random.uniform(-2, 2, size=(scales, n)).astype(dtype),
                            )
                            length = mask + 1 + tail if wavefront else n
                            window_mask = mask if wavefront else 2**59 - 1
                            work = Scratch((4, n), dtype), Scratch((1, STEPS + 2, length), dtype), Scratch((scales, n), dtype)
                            arguments = table, order, signal, bands, np.zeros(0 if backward else moments, dtype)
                            front = round_rows if wavefront else rows
                            yield Case(
                                f"{'front' if wavefront else 'plain'} {what}",
                                "transform_one",
                                (front, *arguments, wavefront, window_mask, *work, backward),
                            )
                        yield from _pieces(what, theta, order, rows, round_rows, mask, tail)
                        for count in (1, 4, 6):
                            signals, bands = (
                                random.uniform(-2, 2, size=(count, n)).astype(dtype),
                                random.uniform(-2, 2, size=(count, scales, n)).astype(dtype),
                            )
                            marks = np.zeros((count, 0 if backward else moments), dtype)
                            yield Case(
                                f"{count} {what}",
                                "transform_columns",
                                (round_rows, table, order, signals, bands, marks, mask + 1 + tail, mask, backward),
                            )


def _pieces(what, theta, order, rows, round_rows, mask, tail):
    """The first piece of a recurrence, and a later one; some nodes do not count."""
    random, n = np.random.RandomState(7), len(order)
    if theta.dtype != np.float64 or what.startswith("back"):
        return
    for wavefront in (True, False):
        for continues in (False, True):
            length, window_mask = (mask + 1 + tail, mask) if wavefront else (n, 2**59 - 1)
            work = Scratch((4, n), np.float64), Scratch((1, STEPS + 2, length), np.float64), Scratch((len(theta), n), np.float64)
            terms, bands = random.uniform(-2, 2, size=(2, n)), random.uniform(-2, 2, size=(len(theta), n))
            shares = (random.uniform(size=n) < 0.7).astype(np.float64)
            arguments = theta, order, terms, bands, np.zeros(2 * theta.shape[1] - 1), shares
            front = round_rows if wavefront else rows
            label = f"{'front' if wavefront else 'plain'} {'later' if continues else 'first'} piece {what}"
            yield Case(label, "continue_one", (front, *arguments, wavefront, window_mask, *work, continues))


def _breadth_first_blocks(indptr, indices, least):
    """Return blocks of whole breadth-first levels, so that a block has neighbours only in adjacent blocks."""
    n, order, levels = len(indptr) - 1, [], []
    visited = np.zeros(n, bool)
    for seed in range(n):
        if visited[seed]:
            continue
        visited[seed], level = True, np.array([seed])
        while len(level):
            levels.append(sum(map(len, order)))
            order.append(level)
            near = np.unique(np.concatenate([indices[indptr[i] : indptr[i + 1]] for i in level]))
            level = near[~visited[near]]
            visited[level] = True
    cuts = [0]
    for start in levels:
        if start - cuts[-1] >= least:
            cuts.append(start)
    if n - cuts[-1] < least and len(cuts) > 1:
        cuts.pop()
    blocks = np.array([*cuts, n], dtype=np.int64)
    order, runs = sorted_runs(indptr, np.concatenate(order).astype(np.int64), blocks)
    block_runs = np.searchsorted(runs[:, 0], blocks).astype(np.int64)
    new = np.empty(n, np.int64)
    new[order] = np.arange(n)
    places = np.concatenate([np.arange(indptr[i], indptr[i + 1]) for i in order]).astype(np.int64)
    return order, blocks, runs, block_runs, (new[indices[places]].astype(np.uint32), places), 0


def _operator(random, runs, blocks, block_runs, places, weights, n, dtype):
    shift = random.uniform(-2, 2, size=len(runs)).astype(dtype)
    values = None if weights is None else weights[places[1]].astype(dtype)
    row_shift = None if weights is None else random.uniform(-2, 2, size=n).astype(dtype)
    return blocks, block_runs, runs, shift, places[0], values, row_shift, float(dtype(random.uniform(0.1, 1.0)))
