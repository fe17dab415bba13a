"""The tasks of `let`: SURE-LET of candidates whose inner products and divergences add up over partitions.

Thresholds are fixed multiples of the local noise, so nothing is searched: sums of a few numbers per partition decide the weights.
They are added in another order than on one machine: results agree to about 1e-9, not to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hushgraph.core import _loops, block_dots, block_products_of, block_sum, sum_of_rows
from hushgraph.distributed.components import component_groups
from hushgraph.distributed.ghosts import Part
from hushgraph.distributed.store import Output, read_array, read_manifest
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
    shrunken,
    synthesized,
)
from hushgraph.wavelets import ChebyshevFrame, james_stein


def filters(run: Run, frame: ChebyshevFrame) -> np.ndarray:
    """Return the coefficients of all filters, in the order of `Filters`."""
    facts = read_manifest(run.work)
    return coefficients_of(frame, facts["mean_degree"] * facts["n"] if facts["linked"] else 0.0, facts["linked"])


def transform_filters(run: Run, part: int, offset: float) -> dict[str, Any]:
    """Write all filters of the signal and of the probes at owned nodes, and sums over groups of components; return traces."""
    out = run.output(part, "transform")
    if (finished := out.read_facts()) is not None:
        return finished
    zone = Part(run.work, part)
    frame, owned = run.frame(zone), zone.owned
    n_scales, theta = frame.n_scales, filters(run, frame)
    y = run.values(zone.nodes).astype(np.float64) - offset
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
    kept = eps[: run.kept_probes, owned]
    groups = component_groups(run.work, part)
    variances = run.noise(zone.nodes[owned]).weigh(np.ones(len(owned))) / run.variance
    signals = [np.ones(len(owned)), variances, y[owned], *kept]
    out.save("groups", np.stack([np.bincount(groups, values, minlength=run.n_groups) for values in signals]))
    zone.forget()
    return out.mark_done({"pilot": pilot, "traces": traces.tolist()})


def gate_sums(run: Run, part: int, mean: float) -> dict[str, Any]:
    """Return sums for the gate: the squared spread of the pilot, and its derivatives along the kept probes."""
    out = run.output(part, "gate")
    if (finished := out.read_facts()) is not None:
        return finished
    files = run.output(part, "transform")
    z = files.load("smooth")[PILOT_SMOOTHER] - mean
    smooth = files.load("probe_smooth")[PILOT_SMOOTHER :: len(SMOOTHERS)]
    stretch = block_dots(smooth, np.broadcast_to(z, smooth.shape))
    spread = float(block_dots(z[None], z[None])[0])
    return out.mark_done({"spread": spread, "shift": np.atleast_1d(block_sum(smooth.T)).tolist(), "stretch": stretch.tolist()})


def _gate(pilot: np.ndarray, smooth: np.ndarray, facts: dict[str, Any]) -> Gate:
    """Return the gate at some nodes, from facts of all nodes, as `Gate.of` does on one machine."""
    stretch = np.array(facts["stretch"]) * inverse_spread(facts["mean"], facts["spread"])
    return Gate(*gate_opening(pilot, facts["mean"], facts["spread"]), smooth, np.array(facts["shift"]), stretch)


def _constants(run: Run, part: int, means: np.ndarray, columns: list[int]) -> np.ndarray:
    """Return the columns with the means of components, at owned nodes."""
    groups, column = component_groups(run.work, part), np.array(columns)
    values = np.zeros((column.max() + 1, len(groups)))
    values[column[groups], np.arange(len(groups))] = means[groups]
    return values


def make_columns(run: Run, part: int, offset: float, gate: dict[str, Any], constant: list[int]) -> dict[str, Any]:
    """Write all candidates at owned nodes and their inner products with each other and the signal; return divergences."""
    out = run.output(part, "columns")
    if (finished := out.read_facts()) is not None:
        return finished
    zone = Part(run.work, part)
    frame, owned, files = run.frame(zone), zone.owned, run.output(part, "transform")
    n_scales, sigma = frame.n_scales, np.sqrt(run.variance)
    divergence = _write_gated(run, zone, frame, out, gate, sigma)
    zone.forget()
    rest, scale, variances = _standing_out(run, zone, offset, n_scales)
    kept, spikes = shrunken(rest, scale, sigma * np.array(SPIKE_THRESHOLDS), np.concatenate([variances[None], files.load("left")]))
    out.save("spikes", kept.reshape(len(SPIKE_THRESHOLDS) * len(rest), len(owned)))
    y = rest[0].copy()
    del rest, scale, kept
    means = read_array(run.folder / "means.npy")
    parts = [_constants(run, part, means[2], constant), *(files.load(name, whole=False) for name in ("heat", "psi"))]
    parts += [out.load(name, whole=False) for name in ("spikes", "gated")]
    out.save(
        "products",
        block_products_of(len(owned), lambda nodes: (np.concatenate([*(rows[:, nodes] for rows in parts), y[None, nodes]]), None)),
    )
    return out.mark_done({"gated": divergence.tolist(), "spikes": spikes.ravel().tolist()})


def _standing_out(run: Run, zone: Part, offset: float, n_scales: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows that spikes are thresholded from, their noise levels, and the variance of each node.

    The rows are the signal, and the differences of the signal and its smoothed versions.
    """
    noise, owned, part = run.noise(zone.nodes[zone.owned]), zone.owned, zone.part
    y, variances = run.values(zone.nodes[owned]) - offset, noise.weigh(np.ones(len(owned))) / run.variance
    rest = np.concatenate([y[None], y - run.output(part, "transform").load("smooth")])
    return rest, np.concatenate([np.sqrt(variances)[None], run.output(part, "scales").load("scale")[n_scales:]]), variances


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


def combine_columns(
    run: Run, part: int, offset: float, gate: dict[str, Any], constant: list[int], a: list[float]
) -> dict[str, Any]:
    """Write the combination at owned nodes, and return its terms of the risk."""
    out = run.output(part, "finish")
    if (finished := out.read_facts()) is not None:
        return finished
    zone, weights = Part(run.work, part), np.array(a)
    owned, files, candidates = zone.owned, run.output(part, "transform"), run.output(part, "columns")
    means = read_array(run.folder / "means.npy")
    parts = [
        _constants(run, part, means[2], constant),
        files.load("heat"),
        files.load("psi"),
        candidates.load("spikes"),
        candidates.load("gated"),
    ]
    shares = np.split(weights, np.cumsum([len(rows) for rows in parts])[:-1])
    signal = np.zeros(len(owned))
    for share, rows in zip(shares, parts, strict=True):
        signal += sum_of_rows(share, rows)
    del parts
    out.save("signal", (signal + offset).astype(read_array(run.signal, whole=False).dtype))
    noise = run.noise(zone.nodes[owned])
    square = (run.values(zone.nodes[owned]) - offset - signal) ** 2
    moved = _derivatives(run, zone, gate, constant, shares, means)
    traces = [float(block_sum(noise.weigh(row**2))) for row in moved]
    eps = run.probes(zone.nodes[owned], run.kept_probes)
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
    run: Run, zone: Part, facts: dict[str, Any], constant: list[int], shares: list[np.ndarray], means: np.ndarray
) -> list[np.ndarray]:
    """Return the derivative of the combination along each kept probe, at owned nodes."""
    frame, owned, part = run.frame(zone), zone.owned, zone.part
    n_scales, sigma, eps = frame.n_scales, np.sqrt(run.variance), run.probes(zone.nodes, run.kept_probes)
    theta = filters(run, frame)
    heat, psi = theta[2 * n_scales + len(SMOOTHERS) :], theta[n_scales + len(SMOOTHERS) : 2 * n_scales + len(SMOOTHERS)]
    last = shares[1] @ heat + shares[2] @ psi
    derivatives, files = [], run.output(part, "transform")
    pilot = zone.fill(np.empty((1, zone.n)), run.part_folder, "transform", "smooth", row=PILOT_SMOOTHER)[0].copy()
    for p in range(run.kept_probes):
        smooth = zone.fill(
            np.empty((1, zone.n)), run.part_folder, "transform", "probe_smooth", row=p * len(SMOOTHERS) + PILOT_SMOOTHER
        )
        one = {**facts, "shift": facts["shift"][p : p + 1], "stretch": facts["stretch"][p : p + 1]}
        gate, bands = _gate(pilot, smooth, one), np.zeros((n_scales + 1, zone.n))
        a, rows = shares[4].reshape(len(GATE_THRESHOLDS), -1), np.empty((3, 1, zone.n))
        for j in range(n_scales):
            if np.any(a[:, j]):
                zone.fill(rows[0], run.part_folder, "transform", "rho", row=j)
                zone.fill(rows[1], run.part_folder, "scales", "scale", row=j)
                zone.fill(rows[2], run.part_folder, "transform", "probe_rho", row=p * n_scales + j)
                add_shrunken_derivative(
                    rows[0], rows[1], sigma * np.array(GATE_THRESHOLDS), a[:, j : j + 1], rows[2:3], bands[None, j : j + 1], gate
                )
        bands[-1] = eps[p]
        both = np.concatenate([theta[:n_scales], last[None]])
        derivatives.append(synthesized(frame, both, bands[None])[0][owned])
    groups, column = component_groups(run.work, part), np.array(constant)
    rest, scale, _ = _standing_out(run, zone, facts["offset"], n_scales)
    for p in range(run.kept_probes):
        derivatives[p] += shares[0][column[groups]] * means[3 + p][groups]
        near = files.load("probe_smooth", whole=False)[p * len(SMOOTHERS) : (p + 1) * len(SMOOTHERS)]
        rows, moved = np.concatenate([eps[p, owned][None], eps[p, owned] - near])[None], np.zeros((1, 1, len(owned)))
        add_shrunken_derivative(
            rest, scale, sigma * np.array(SPIKE_THRESHOLDS), shares[3].reshape(len(SPIKE_THRESHOLDS), -1), rows, moved
        )
        derivatives[p] += moved[0, 0]
    return derivatives
