"""The second stage of `let` and `auto` on partitions: the signal is shrunk where a first estimate says that there is none.

`transform_first` writes the wavelet coefficients of the first estimate and of its derivatives; `make_second` the columns of the second
stage, see `estimators/let/second_stage.py`; `combine_second` the final estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hushgraph.core import block_products_of, block_sum, sum_of_rows
from hushgraph.distributed.ghosts import Part
from hushgraph.distributed.let_tasks import write_estimate
from hushgraph.distributed.store import Output
from hushgraph.distributed.wavelet_tasks import Run
from hushgraph.estimators import SECOND, WIENER, filtered, pointwise, synthesized, wiener_factors


def transform_first(run: Run, part: int) -> dict[str, Any]:
    """Write the coefficients of the first estimate and of its derivative along each kept probe, at owned nodes."""
    out = run.output(part, "again")
    if (finished := out.read_facts()) is not None:
        return finished
    zone = Part(run.work, part)
    frame, owned = run.frame(zone), zone.owned
    row = np.empty((1, zone.n))

    def rows() -> Iterator[np.ndarray]:
        for p in range(1 + run.kept_probes):
            name, place = ("signal", 0) if p == 0 else ("moved", p - 1)
            zone.fill(row, run.part_folder, "first", name, row=place)
            yield from filtered(frame, frame.coefficients, row)[0][:, owned]

    out.save_rows("q", ((1 + run.kept_probes) * frame.n_scales, len(owned)), np.float64, rows())
    return out.mark_done({})


def make_second(run: Run, part: int, offset: float) -> dict[str, Any]:
    """Write the columns of the second stage and their derivatives, and the inner products of columns and signal; return traces."""
    out = run.output(part, "second")
    if (finished := out.read_facts()) is not None:
        return finished
    zone, first = Part(run.work, part), run.output(part, "first")
    _write_wiener(run, zone, out)
    zone.forget()
    nodes = run.owned(part)
    y, eps, p, moved = run.rest(nodes, offset), run.probes(nodes, run.kept_probes), first.load("signal")[0], first.load("moved")
    sigma = np.sqrt(run.noise(nodes).weigh(np.ones(len(nodes))))
    values, derivatives = (list(rows) for rows in zip(*pointwise(y, p, sigma, eps, moved), strict=True))
    out.save("pointwise", np.stack(values))
    out.save("pointwise_moved", np.concatenate(derivatives))
    del values, derivatives
    columns, changes = _columns(run, part)

    def rows(some: slice) -> tuple[np.ndarray, None]:
        return np.concatenate([*(part_of[:, some] for part_of in columns), y[None, some]]), None

    out.save("products", block_products_of(len(nodes), rows))
    samples = [[float(block_sum(e * row)) for e, row in zip(eps, change, strict=True)] for group in changes for change in group]
    return out.mark_done({"samples": samples})


def combine_second(run: Run, part: int, offset: float, a: list[float]) -> dict[str, Any]:
    """Write the final estimate at owned nodes, and return its terms of the risk."""
    out = run.output(part, "finish")
    if (finished := out.read_facts()) is not None:
        return finished
    columns, changes = _columns(run, part)
    signal, moved = (sum_of_rows(np.array(a), np.concatenate(rows)) for rows in (columns, changes))
    return write_estimate(run, part, out, signal, moved, offset)


def _columns(run: Run, part: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the columns (k, owned) in the order of `SECOND`, and their derivatives (k, probes, owned), mapped, in groups."""
    first, second, kept = run.output(part, "first"), run.output(part, "second"), run.kept_probes
    files = ((first, "signal", "moved"), (second, "wiener", "wiener_moved"), (second, "pointwise", "pointwise_moved"))
    columns = [out.load(name, whole=False) for out, name, _ in files]
    moved = [out.load(name, whole=False) for out, _, name in files]
    assert sum(map(len, columns)) == len(SECOND)
    return columns, [rows.reshape(len(rows) // kept, kept, rows.shape[1]) for rows in moved]


def _write_wiener(run: Run, zone: Part, out: Output) -> None:
    """Write the empirical Wiener filters of the signal at owned nodes, and their derivatives along the kept probes."""
    frame, owned, folder = run.frame(zone), zone.owned, run.part_folder
    n_scales, sigma, count = frame.n_scales, np.sqrt(run.variance), len(WIENER)
    w, q, scale, rho, moved_q = np.empty((5, 1, zone.n))
    results = np.empty((1 + run.kept_probes, count, len(owned)))
    for signal in range(1 + run.kept_probes):
        bands = np.empty((count, n_scales, zone.n))
        for j in range(n_scales):
            zone.fill(w, folder, "transform", "rho", row=j)
            zone.fill(q, folder, "again", "q", row=j)
            zone.fill(scale, folder, "scales", "scale", row=j)
            if signal:
                zone.fill(rho, folder, "transform", "probe_rho", row=(signal - 1) * n_scales + j)
                zone.fill(moved_q, folder, "again", "q", row=signal * n_scales + j)
            for k, c in enumerate(WIENER):
                gain, tilt = wiener_factors(w, q, c * (sigma * scale) ** 2)
                bands[k, j] = gain * rho + tilt * moved_q if signal else w * gain
        results[signal] = synthesized(frame, frame.coefficients, bands)[:, owned]
    out.save("wiener", results[0])
    out.save("wiener_moved", np.moveaxis(results[1:], 0, 1).reshape(count * run.kept_probes, len(owned)))
