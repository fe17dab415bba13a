"""The tasks of `let`: SURE-LET of the candidates of `auto.LET_SETS`, whose inner products and divergences add up over partitions.

Thresholds are fixed multiples of the local noise here, so nothing has to be searched: sums of a few numbers per partition decide the
weights. They are rounded in another order than on one machine: results agree to about 1e-9, not to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hushgraph.candidates import GATED, SPIKES
from hushgraph.core import _loops
from hushgraph.distributed.components import groups_of
from hushgraph.distributed.ghosts import Part
from hushgraph.distributed.store import manifest_of, read_array
from hushgraph.distributed.tasks import Run
from hushgraph.filters import GROUP, PILOT, SMOOTHERS, coefficients_of, filtered, synthesized
from hushgraph.frame import ChebyshevFrame
from hushgraph.gated import Gate, add_moved, opened, per_spread, shrunken
from hushgraph.shrink import james_stein
from hushgraph.sums import block_dots, block_products_of, block_sum, sum_of_rows


def filters(run: Run, frame: ChebyshevFrame) -> np.ndarray:
    """Coefficients of all filters, in the order of `Filters`."""
    facts = manifest_of(run.work)
    return coefficients_of(frame, facts["mean_degree"] * facts["n"] if facts["linked"] else 0.0, facts["linked"])


def transform_all(run: Run, part: int, offset: float) -> dict[str, Any]:
    """All filters of the signal and of the probes at owned nodes; their traces, and sums over groups of nodes."""
    out = run.output(part, "transform")
    if (known := out.known()) is not None:
        return known
    here = Part(run.work, part)
    frame, own = run.frame(here), here.own
    n_scales, theta = frame.n_scales, filters(run, frame)
    y = run.values(here.nodes).astype(np.float64) - offset
    rows = filtered(frame, theta, y[None])[0]
    cuts = np.cumsum([n_scales, len(SMOOTHERS), n_scales])
    for name, some in zip(("rho", "smooth", "psi", "heat"), np.split(rows, cuts), strict=True):
        out.save(name, some[:, own])
    pilot = float(block_sum(rows[n_scales + PILOT][own]))
    del rows
    eps, few = run.probes(here.nodes), n_scales + len(SMOOTHERS)
    sums, traces = np.empty((2 * few, here.n)), np.zeros(len(theta))
    rho, smooth = [], []
    for start in range(0, run.n_probes, GROUP):
        group = eps[start : start + GROUP]
        moved = filtered(frame, theta, group)
        traces += sum(
            block_dots(row[:, own], np.broadcast_to(one[own], (len(theta), len(own))))
            for row, one in zip(moved, group, strict=True)
        )
        _loops.add_probes(group, moved[:, :few], n_scales, n_scales + PILOT, 1 / run.n_probes, start == 0, sums)
        for row in moved[: max(0, run.kept_probes - start)]:
            rho.append(row[:n_scales, own])
            smooth.append(row[n_scales:few, own])
    out.save("weights", sums[:few, own])
    out.save("cross", sums[few : few + n_scales, own])
    out.save("left", sums[few + n_scales :, own])
    out.save("probe_rho", np.concatenate(rho))
    out.save("probe_smooth", np.concatenate(smooth))
    kept = eps[: run.kept_probes, own]
    groups = groups_of(run.work, part)
    variances = run.noise(here.nodes[own]).weigh(np.ones(len(own))) / run.variance
    signals = [np.ones(len(own)), variances, y[own], *kept]
    out.save("groups", np.stack([np.bincount(groups, values, minlength=run.n_groups) for values in signals]))
    here.forget()
    return out.done({"pilot": pilot, "traces": traces.tolist()})


def gate_sums(run: Run, part: int, mean: float) -> dict[str, Any]:
    """What the gate is made of: the spread of the pilot, and what probes do to it."""
    out = run.output(part, "gate")
    if (known := out.known()) is not None:
        return known
    files = run.output(part, "transform")
    z = files.load("smooth")[PILOT] - mean
    smooth = files.load("probe_smooth")[PILOT :: len(SMOOTHERS)]
    stretch = block_dots(smooth, np.broadcast_to(z, smooth.shape))
    spread = float(block_dots(z[None], z[None])[0])
    return out.done({"spread": spread, "shift": np.atleast_1d(block_sum(smooth.T)).tolist(), "stretch": stretch.tolist()})


def _gate(pilot: np.ndarray, smooth: np.ndarray, facts: dict[str, Any]) -> Gate:
    """As `Gate.of`, on some nodes."""
    stretch = np.array(facts["stretch"]) * per_spread(facts["mean"], facts["spread"])
    return Gate(*opened(pilot, facts["mean"], facts["spread"]), smooth, np.array(facts["shift"]), stretch)


def _constants(run: Run, part: int, means: np.ndarray, columns: list[int]) -> np.ndarray:
    """Columns of the means of components at owned nodes."""
    groups, column = groups_of(run.work, part), np.array(columns)
    values = np.zeros((column.max() + 1, len(groups)))
    values[column[groups], np.arange(len(groups))] = means[groups]
    return values


def columns(run: Run, part: int, offset: float, gate: dict[str, Any], constant: list[int]) -> dict[str, Any]:
    """All candidates at owned nodes, their inner products with each other and the signal, and their divergences."""
    out = run.output(part, "columns")
    if (known := out.known()) is not None:
        return known
    here = Part(run.work, part)
    frame, own, files = run.frame(here), here.own, run.output(part, "transform")
    n_scales, sigma = frame.n_scales, np.sqrt(run.variance)
    divergence = _gated(run, here, frame, out, gate, sigma)
    here.forget()
    rest, scale, variances = _standing_out(run, here, offset, n_scales)
    kept, spikes = shrunken(rest, scale, sigma * np.array(SPIKES), np.concatenate([variances[None], files.load("left")]))
    out.save("spikes", kept.reshape(len(SPIKES) * len(rest), len(own)))
    y = rest[0].copy()
    del rest, scale, kept
    means = read_array(run.folder / "means.npy")
    parts = [_constants(run, part, means[2], constant), *(files.load(name, whole=False) for name in ("heat", "psi"))]
    parts += [out.load(name, whole=False) for name in ("spikes", "gated")]
    out.save(
        "products",
        block_products_of(len(own), lambda nodes: (np.concatenate([*(rows[:, nodes] for rows in parts), y[None, nodes]]), None)),
    )
    return out.done({"gated": divergence.tolist(), "spikes": spikes.ravel().tolist()})


def _standing_out(run: Run, here: Part, offset: float, n_scales: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What spikes are made of, as in `candidates.spikes`: the signal and what stands out of its surroundings, their noise levels, and the
    variance of each node."""
    noise, own, part = run.noise(here.nodes[here.own]), here.own, here.part
    y, variances = run.values(here.nodes[own]) - offset, noise.weigh(np.ones(len(own))) / run.variance
    rest = np.concatenate([y[None], y - run.output(part, "transform").load("smooth")])
    return rest, np.concatenate([np.sqrt(variances)[None], run.output(part, "scales").load("scale")[n_scales:]]), variances


def _gated(run: Run, here: Part, frame: ChebyshevFrame, out, facts: dict[str, Any], sigma: float) -> np.ndarray:
    """Coefficients behind the gate, synthesized scale by scale; returns their divergences."""
    own, files, n_scales, t = here.own, run.output(here.part, "transform"), frame.n_scales, sigma * np.array(GATED)
    smooth = files.load("probe_smooth")[PILOT :: len(SMOOTHERS)]
    gate = _gate(files.load("smooth")[PILOT], smooth, facts)
    rho = files.load("probe_rho").reshape(run.kept_probes, n_scales, len(own))
    moves = gate.moves(files.load("cross"), rho)
    weights, scale = files.load("weights")[:n_scales], run.output(here.part, "scales").load("scale")[:n_scales]
    divergence = shrunken(files.load("rho"), scale, t, weights, gate, moves)[1]
    del smooth, gate, rho, moves, weights, scale
    row = np.empty((1, here.n))
    through = _gate(here.fill(row, run.part_folder, "transform", "smooth", row=PILOT)[0].copy(), np.empty((0, 0)), facts).open
    level = np.empty((1, here.n))

    def rows():
        for k in range(len(t)):
            for j in range(n_scales):
                here.fill(row, run.part_folder, "transform", "rho", row=j)
                here.fill(level, run.part_folder, "scales", "scale", row=j)
                kept = through * james_stein(row[0], t[k] * level[0])[0]
                yield filtered(frame, frame.coefficients[j : j + 1], kept[None])[0, 0][own]

    out.save_rows("gated", (len(t) * n_scales, len(own)), np.float64, rows())
    return divergence.ravel()


def combine_all(run: Run, part: int, offset: float, gate: dict[str, Any], constant: list[int], a: list[float]) -> dict[str, Any]:
    """The combination at owned nodes, and its terms of the risk."""
    out = run.output(part, "finish")
    if (known := out.known()) is not None:
        return known
    here, weights = Part(run.work, part), np.array(a)
    own, files, made = here.own, run.output(part, "transform"), run.output(part, "columns")
    means = read_array(run.folder / "means.npy")
    parts = [
        _constants(run, part, means[2], constant),
        files.load("heat"),
        files.load("psi"),
        made.load("spikes"),
        made.load("gated"),
    ]
    shares = np.split(weights, np.cumsum([len(rows) for rows in parts])[:-1])
    signal = np.zeros(len(own))
    for share, rows in zip(shares, parts, strict=True):
        signal += sum_of_rows(share, rows)
    del parts
    out.save("signal", (signal + offset).astype(read_array(run.signal, whole=False).dtype))
    noise = run.noise(here.nodes[own])
    square = (run.values(here.nodes[own]) - offset - signal) ** 2
    moved = _moved(run, here, gate, constant, shares, means)
    traces = [float(block_sum(noise.weigh(row**2))) for row in moved]
    eps = run.probes(here.nodes[own], run.kept_probes)
    turned = [float(block_sum(noise.weigh(row * one))) for row, one in zip(moved, eps, strict=True)]
    return out.done(
        {
            "residual": float(block_sum(square)),
            "weighted": float(block_sum(noise.weigh(square))),
            "divergence": [],
            "traces": traces,
            "turned": turned,
        }
    )


def _moved(
    run: Run, here: Part, facts: dict[str, Any], constant: list[int], shares: list[np.ndarray], means: np.ndarray
) -> list[np.ndarray]:
    """The derivative of the combination along each kept probe, at owned nodes."""
    frame, own, part = run.frame(here), here.own, here.part
    n_scales, sigma, eps = frame.n_scales, np.sqrt(run.variance), run.probes(here.nodes, run.kept_probes)
    theta = filters(run, frame)
    heat, psi = theta[2 * n_scales + len(SMOOTHERS) :], theta[n_scales + len(SMOOTHERS) : 2 * n_scales + len(SMOOTHERS)]
    last = shares[1] @ heat + shares[2] @ psi
    found, files = [], run.output(part, "transform")
    pilot = here.fill(np.empty((1, here.n)), run.part_folder, "transform", "smooth", row=PILOT)[0].copy()
    for p in range(run.kept_probes):
        smooth = here.fill(np.empty((1, here.n)), run.part_folder, "transform", "probe_smooth", row=p * len(SMOOTHERS) + PILOT)
        one = {**facts, "shift": facts["shift"][p : p + 1], "stretch": facts["stretch"][p : p + 1]}
        gate, bands = _gate(pilot, smooth, one), np.zeros((n_scales + 1, here.n))
        a, rows = shares[4].reshape(len(GATED), -1), np.empty((3, 1, here.n))
        for j in range(n_scales):
            if np.any(a[:, j]):
                here.fill(rows[0], run.part_folder, "transform", "rho", row=j)
                here.fill(rows[1], run.part_folder, "scales", "scale", row=j)
                here.fill(rows[2], run.part_folder, "transform", "probe_rho", row=p * n_scales + j)
                add_moved(rows[0], rows[1], sigma * np.array(GATED), a[:, j : j + 1], rows[2:3], bands[None, j : j + 1], gate)
        bands[-1] = eps[p]
        both = np.concatenate([theta[:n_scales], last[None]])
        found.append(synthesized(frame, both, bands[None])[0][own])
    groups, column = groups_of(run.work, part), np.array(constant)
    rest, scale, _ = _standing_out(run, here, facts["offset"], n_scales)
    for p in range(run.kept_probes):
        found[p] += shares[0][column[groups]] * means[3 + p][groups]
        near = files.load("probe_smooth", whole=False)[p * len(SMOOTHERS) : (p + 1) * len(SMOOTHERS)]
        rows, moved = np.concatenate([eps[p, own][None], eps[p, own] - near])[None], np.zeros((1, 1, len(own)))
        add_moved(rest, scale, sigma * np.array(SPIKES), shares[3].reshape(len(SPIKES), -1), rows, moved)
        found[p] += moved[0, 0]
    return found
