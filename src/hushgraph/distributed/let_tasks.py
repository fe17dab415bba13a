"""The tasks of `let` and `auto`: SURE-LET of candidates whose inner products and divergences add up over partitions.

Thresholds are fixed multiples of the local noise, so nothing is searched: sums of a few numbers per partition decide the weights.
They are added in another order than on one machine: results agree to about 1e-9, not to the bit. The fitted filter of `auto` is in
`filter_tasks`, its second stage in `second_tasks`, and local regression on what guides predict in `guide_tasks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hushgraph.core import _loops, block_dots, block_products_of, block_sum, sum_of_rows
from hushgraph.distributed.components import component_groups
from hushgraph.distributed.ghosts import Part
from hushgraph.distributed.store import Output, read_manifest, read_marked
from hushgraph.distributed.wavelet_tasks import Run
from hushgraph.estimators import (
    GATE_THRESHOLDS,
    PILOT_SMOOTHER,
    PROBES_AT_ONCE,
    SMOOTHERS,
    SPIKE_THRESHOLDS,
    Gate,
    add_shrunken_derivative,
    coefficients_of,
    filtered,
    gate_opening,
    inverse_spread,
    n_trace_probes,
    shrunken,
    synthesized,
)
from hushgraph.wavelets import ChebyshevFrame, james_stein


def filters(run: Run, frame: ChebyshevFrame) -> np.ndarray:
    """Return the coefficients of all filters, in the order of `Filters`."""
    facts = read_manifest(run.work)
    return coefficients_of(frame, facts["mean_degree"] * facts["n"] if facts["linked"] else 0.0, facts["linked"])


def graph_work(run: Run) -> int:
    """Return the number of nodes and stored edges of the graph: what one step of the recurrence costs."""
    facts = read_manifest(run.work)
    return facts["n"] + 2 * facts["n_edges"]


def n_mean_probes(run: Run) -> int:
    """Return how many probes lose their means over components: those of derivatives, and those of the traces of a fitted filter."""
    return max(run.kept_probes, n_trace_probes(graph_work(run)) if run.has_filter else 0)


def transform_filters(run: Run, part: int, offset: float) -> dict[str, Any]:
    """Write all filters of the signal and of the probes at owned nodes, and sums over groups of components; return traces."""
    out = run.output(part, "transform")
    if (finished := out.read_facts()) is not None:
        return finished
    zone = Part(run.work, part)
    frame, owned = run.frame(zone), zone.owned
    n_scales, theta = frame.n_scales, filters(run, frame)
    y = run.rest(zone.nodes, offset)
    rows = filtered(frame, theta, y[None])[0]
    cuts = np.cumsum([n_scales, len(SMOOTHERS), n_scales])
    for name, rows_of_name in zip(("rho", "smooth", "psi", "heat"), np.split(rows, cuts), strict=True):
        out.save(name, rows_of_name[:, owned])
    pilot = float(block_sum(rows[n_scales + PILOT_SMOOTHER][owned]))
    del rows
    eps, few = run.probes(zone.nodes), n_scales + len(SMOOTHERS)
    sums, traces = np.empty((2 * few, zone.n)), np.zeros(len(theta))
    rho, smooth = [], []
    for start in range(0, run.n_probes, PROBES_AT_ONCE):
        group = eps[start : start + PROBES_AT_ONCE]
        moved = filtered(frame, theta, group)
        traces += sum(
            block_dots(row[:, owned], np.broadcast_to(one[owned], (len(theta), len(owned))))
            for row, one in zip(moved, group, strict=True)
        )
        _loops.add_probes(group, moved[:, :few], n_scales, n_scales + PILOT_SMOOTHER, 1 / run.n_probes, start == 0, sums)
        for row in moved[: max(0, run.kept_probes - start)]:
            rho.append(row[:n_scales, owned])
            smooth.append(row[n_scales:few, owned])
    out.save("weights", sums[:few, owned])
    out.save("cross", sums[few : few + n_scales, owned])
    out.save("left", sums[few + n_scales :, owned])
    out.save("probe_rho", np.concatenate(rho))
    out.save("probe_smooth", np.concatenate(smooth))
    del eps, sums
    zone.forget()
    out.save("groups", _sums_over_groups(run, zone, y[owned]))
    return out.mark_done({"pilot": pilot, "traces": traces.tolist()})


def _sums_over_groups(run: Run, zone: Part, y: np.ndarray) -> np.ndarray:
    """Return sums over the groups of components: nodes, variances in units of the noise, signal, and probes."""
    nodes, groups = zone.nodes[zone.owned], component_groups(run.work, zone.part)
    variances = run.noise(nodes).weigh(np.ones(len(nodes))) / run.variance
    signals = [np.ones(len(nodes)), variances, y, *run.probes(nodes, n_mean_probes(run))]
    return np.stack([np.bincount(groups, values, minlength=run.n_groups) for values in signals])


def gate_sums(run: Run, part: int, mean: float, offset: float) -> dict[str, Any]:
    """Return sums for the gate: the squared spread of the pilot, and its derivatives along the kept probes.

    For a fitted filter, write signal and probes less their means over components too.
    """
    out = run.output(part, "gate")
    if (finished := out.read_facts()) is not None:
        return finished
    files = run.output(part, "transform")
    z = files.load("smooth")[PILOT_SMOOTHER] - mean
    smooth = files.load("probe_smooth")[PILOT_SMOOTHER :: len(SMOOTHERS)]
    stretch = block_dots(smooth, np.broadcast_to(z, smooth.shape))
    spread = float(block_dots(z[None], z[None])[0])
    if run.has_filter:
        nodes, groups, means = run.owned(part), component_groups(run.work, part), read_marked(run.folder / "means.npy")
        rows = [run.rest(nodes, offset), *run.probes(nodes, n_mean_probes(run))]
        centred = (row - mean_of_groups[groups] for row, mean_of_groups in zip(rows, means[2:], strict=True))
        out.save_rows("rest", (len(rows), len(nodes)), np.float64, centred)
    return out.mark_done({"spread": spread, "shift": np.atleast_1d(block_sum(smooth.T)).tolist(), "stretch": stretch.tolist()})


def _gate(pilot: np.ndarray, smooth: np.ndarray, facts: dict[str, Any]) -> Gate:
    """Return the gate at some nodes, from facts of all nodes, as `Gate.of` does on one machine."""
    stretch = np.array(facts["stretch"]) * inverse_spread(facts["mean"], facts["spread"])
    return Gate(*gate_opening(pilot, facts["mean"], facts["spread"]), smooth, np.array(facts["shift"]), stretch)


# ---- columns -------------------------------------------------------------------------------------------------------


def make_columns(run: Run, part: int, offset: float, gate: dict[str, Any], constant: list[int]) -> dict[str, Any]:
    """Write the candidates at owned nodes that are not written yet, and all inner products of them and the signal.

    Returns divergences, and sums that tell whether the signal has peaks, and whether sigma is too large.
    """
    out = run.output(part, "columns")
    if (finished := out.read_facts()) is not None:
        return finished
    zone = Part(run.work, part)
    frame, owned, files = run.frame(zone), zone.owned, run.output(part, "transform")
    n_scales, sigma = frame.n_scales, np.sqrt(run.variance)
    divergence = _write_gated(run, zone, frame, out, gate, sigma)
    zone.forget()
    rest, scale, variances = _standing_out(run, part, offset, n_scales)
    kept, spikes = shrunken(rest, scale, sigma * np.array(SPIKE_THRESHOLDS), np.concatenate([variances[None], files.load("left")]))
    out.save("spikes", kept.reshape(len(SPIKE_THRESHOLDS) * len(rest), len(owned)))
    y = rest[0].copy()
    del rest, scale, kept
    parts = list(columns_of(run, part, offset, constant).values())
    out.save(
        "products",
        block_products_of(len(owned), lambda nodes: (np.concatenate([*(rows[:, nodes] for rows in parts), y[None, nodes]]), None)),
    )
    facts = {"gated": divergence.tolist(), "spikes": spikes.ravel().tolist(), **_sums_of_scales(run, part, n_scales)}
    return out.mark_done(facts)


def columns_of(run: Run, part: int, offset: float, constant: list[int]) -> dict[str, np.ndarray]:
    """Return the columns of all groups at owned nodes, mapped where they are files."""
    files, candidates = run.output(part, "transform"), run.output(part, "columns")
    columns = {
        "constant": _constants(run, part, read_marked(run.folder / "means.npy")[2], constant),
        "heat_bands": files.load("heat", whole=False),
        "bands": files.load("psi", whole=False),
        "spikes": candidates.load("spikes", whole=False),
        "gated": candidates.load("gated", whole=False),
    }
    if run.prediction is not None:
        columns["local"] = run.output(part, "regression").load("values", whole=False)
    if run.has_filter:
        y = run.rest(run.owned(part), offset)
        through = run.output(part, "filter").load("bands", whole=False)[:1]
        columns["filter"] = through + (y - run.output(part, "gate").load("rest", whole=False)[:1])
    return columns


def _constants(run: Run, part: int, means: np.ndarray, columns: list[int]) -> np.ndarray:
    """Return the columns with the means of components, at owned nodes."""
    groups, column = component_groups(run.work, part), np.array(columns)
    values = np.zeros((column.max() + 1, len(groups)))
    values[column[groups], np.arange(len(groups))] = means[groups]
    return values


def _standing_out(run: Run, part: int, offset: float, n_scales: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows that spikes are thresholded from, their noise levels, and the variance of each node.

    The rows are the signal, and the differences of the signal and its smoothed versions.
    """
    nodes = run.owned(part)
    y, variances = run.rest(nodes, offset), run.noise(nodes).weigh(np.ones(len(nodes))) / run.variance
    rest = np.concatenate([y[None], y - run.output(part, "transform").load("smooth")])
    return rest, np.concatenate([np.sqrt(variances)[None], run.output(part, "scales").load("scale")[n_scales:]]), variances


def _sums_of_scales(run: Run, part: int, n_scales: int) -> dict[str, Any]:
    """Return sums over owned nodes of powers of the coefficients of each scale, and of their weights."""
    rho, weights = run.output(part, "transform").load("rho"), run.output(part, "transform").load("weights", whole=False)
    relative = rho / run.output(part, "scales").load("scale", whole=False)[:n_scales]
    np.square(relative, out=relative)
    return {
        "energy": block_dots(rho, rho).tolist(),
        "trace": [float(block_sum(row)) for row in weights[:n_scales]],
        "squares": [float(block_sum(row)) for row in relative],
        "fourths": block_dots(relative, relative).tolist(),
    }


def _write_gated(run: Run, zone: Part, frame: ChebyshevFrame, out: Output, facts: dict[str, Any], sigma: float) -> np.ndarray:
    """Write the gated candidates, synthesized scale by scale, and return their divergences."""
    owned, files, n_scales, t = zone.owned, run.output(zone.part, "transform"), frame.n_scales, sigma * np.array(GATE_THRESHOLDS)
    smooth = files.load("probe_smooth")[PILOT_SMOOTHER :: len(SMOOTHERS)]
    gate = _gate(files.load("smooth")[PILOT_SMOOTHER], smooth, facts)
    rho = files.load("probe_rho").reshape(run.kept_probes, n_scales, len(owned))
    moves = gate.moves(files.load("cross"), rho)
    weights, scale = files.load("weights")[:n_scales], run.output(zone.part, "scales").load("scale")[:n_scales]
    divergence = shrunken(files.load("rho"), scale, t, weights, gate, moves)[1]
    del smooth, gate, rho, moves, weights, scale
    row = np.empty((1, zone.n))
    through = _gate(
        zone.fill(row, run.part_folder, "transform", "smooth", row=PILOT_SMOOTHER)[0].copy(), np.empty((0, 0)), facts
    ).open
    level = np.empty((1, zone.n))

    def rows() -> Iterator[np.ndarray]:
        for k in range(len(t)):
            for j in range(n_scales):
                zone.fill(row, run.part_folder, "transform", "rho", row=j)
                zone.fill(level, run.part_folder, "scales", "scale", row=j)
                kept = through * james_stein(row[0], t[k] * level[0])[0]
                yield filtered(frame, frame.coefficients[j : j + 1], kept[None])[0, 0][owned]

    out.save_rows("gated", (len(t) * n_scales, len(owned)), np.float64, rows())
    return divergence.ravel()


# ---- their combination -----------------------------------------------------------------------------------------------


def combine_columns(
    run: Run, part: int, offset: float, gate: dict[str, Any], constant: list[int], a: list[float], stage: str
) -> dict[str, Any]:
    """Write the combination at owned nodes, and return its terms of the risk. The stage is "finish", or "first" if a second one follows."""
    out = run.output(part, stage)
    if (finished := out.read_facts()) is not None:
        return finished
    zone = Part(run.work, part)
    columns = columns_of(run, part, offset, constant)
    ends = np.cumsum([len(rows) for rows in columns.values()])[:-1]
    shares = dict(zip(columns, np.split(np.array(a), ends), strict=True))
    signal = np.zeros(len(zone.owned))
    for share, rows in zip(shares.values(), columns.values(), strict=True):
        signal += sum_of_rows(share, rows)
    del columns
    moved = np.stack(_derivatives(run, zone, gate, constant, shares))
    return write_estimate(run, part, out, signal, moved, offset)


def write_estimate(run: Run, part: int, out: Output, signal: np.ndarray, moved: np.ndarray, offset: float) -> dict[str, Any]:
    """Write an estimate at owned nodes, and return its terms of the risk; `moved` is its derivative along the kept probes.

    The first of two stages is written without the offset, and with its derivative; the signal of the last stage is complete.
    """
    nodes = run.owned(part)
    noise = run.noise(nodes)
    if out.stage == "first":
        out.save("signal", signal[None])
        out.save("moved", moved)
    else:
        out.save("signal", signal + offset)
    square = (run.rest(nodes, offset) - signal) ** 2
    traces = [float(block_sum(noise.weigh(row**2))) for row in moved]
    eps = run.probes(nodes, run.kept_probes)
    turned = [float(block_sum(noise.weigh(row * one))) for row, one in zip(moved, eps, strict=True)]
    return out.mark_done(
        {
            "residual": float(block_sum(square)),
            "weighted": float(block_sum(noise.weigh(square))),
            "divergence": [],
            "traces": traces,
            "turned": turned,
        }
    )


def _derivatives(
    run: Run, zone: Part, facts: dict[str, Any], constant: list[int], shares: dict[str, np.ndarray]
) -> list[np.ndarray]:
    """Return the derivative of the combination along each kept probe, at owned nodes."""
    derivatives = [_derivative_of_filters(run, zone, facts, shares, p) for p in range(run.kept_probes)]
    zone.forget()
    part, owned = zone.part, zone.owned
    groups, column, files = component_groups(run.work, part), np.array(constant), run.output(part, "transform")
    means, eps = read_marked(run.folder / "means.npy"), run.probes(zone.nodes[owned], run.kept_probes)
    n_scales = read_manifest(run.work)["n_scales"]
    rest, scale, _ = _standing_out(run, part, facts["offset"], n_scales)
    t = np.sqrt(run.variance) * np.array(SPIKE_THRESHOLDS)
    for p in range(run.kept_probes):
        derivatives[p] += shares["constant"][column[groups]] * means[3 + p][groups]
        near = files.load("probe_smooth", whole=False)[p * len(SMOOTHERS) : (p + 1) * len(SMOOTHERS)]
        rows, moved = np.concatenate([eps[p][None], eps[p] - near])[None], np.zeros((1, 1, len(owned)))
        add_shrunken_derivative(rest, scale, t, shares["spikes"].reshape(len(SPIKE_THRESHOLDS), -1), rows, moved)
        derivatives[p] += moved[0, 0]
        if "local" in shares:
            count = len(shares["local"])
            regressions = run.output(part, "regression").load("derivatives", whole=False)[p * count : (p + 1) * count]
            derivatives[p] += sum_of_rows(shares["local"], regressions)
        if "filter" in shares and np.any(shares["filter"]):
            through = run.output(part, "filter").load("bands", whole=False)[1 + p]
            centred = run.output(part, "gate").load("rest", whole=False)[1 + p]
            derivatives[p] += shares["filter"][0] * (through + (eps[p] - centred))
    return derivatives


def _derivative_of_filters(run: Run, zone: Part, facts: dict[str, Any], shares: dict[str, np.ndarray], p: int) -> np.ndarray:
    """Return the derivative of heat, bands and gated candidates along a probe, by one synthesis."""
    frame, t = run.frame(zone), np.sqrt(run.variance) * np.array(GATE_THRESHOLDS)
    n_scales, theta = frame.n_scales, filters(run, frame)
    heat, psi = theta[2 * n_scales + len(SMOOTHERS) :], theta[n_scales + len(SMOOTHERS) : 2 * n_scales + len(SMOOTHERS)]
    last = shares["heat_bands"] @ heat + shares["bands"] @ psi
    pilot = zone.fill(np.empty((1, zone.n)), run.part_folder, "transform", "smooth", row=PILOT_SMOOTHER)[0].copy()
    place = p * len(SMOOTHERS) + PILOT_SMOOTHER
    smooth = zone.fill(np.empty((1, zone.n)), run.part_folder, "transform", "probe_smooth", row=place)
    one = {**facts, "shift": facts["shift"][p : p + 1], "stretch": facts["stretch"][p : p + 1]}
    gate, bands = _gate(pilot, smooth, one), np.zeros((n_scales + 1, zone.n))
    a, rows = shares["gated"].reshape(len(GATE_THRESHOLDS), -1), np.empty((3, 1, zone.n))
    for j in range(n_scales):
        if np.any(a[:, j]):
            zone.fill(rows[0], run.part_folder, "transform", "rho", row=j)
            zone.fill(rows[1], run.part_folder, "scales", "scale", row=j)
            zone.fill(rows[2], run.part_folder, "transform", "probe_rho", row=p * n_scales + j)
            add_shrunken_derivative(rows[0], rows[1], t, a[:, j : j + 1], rows[2:3], bands[None, j : j + 1], gate)
    bands[-1] = run.probes(zone.nodes, p + 1)[p]
    return synthesized(frame, np.concatenate([theta[:n_scales], last[None]]), bands[None])[0][zone.owned]
