"""`let` on partitions, as the client sees it: stages, sums of what they return, the weights of the candidates and the risk."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from hushgraph.auto import LARGE_SETS, LET_SETS
from hushgraph.combine import fit
from hushgraph.distributed import combining, tasks
from hushgraph.distributed.components import join, label
from hushgraph.distributed.store import added, pieces, read_array, write_array
from hushgraph.distributed.tasks import Run
from hushgraph.filters import OTHERS, SMOOTHERS
from hushgraph.sums import offset_of

STAGES = {
    "labels": 0.5, "transform": 12.0, "survey": 1.0, "fit": 0.5, "scales": 0.5, "gate": 0.2, "columns": 12.0, "finish": 8.0, "write": 0.5,
}  # fmt: skip
Stage = Any


def signal_offset(run: Run) -> float:
    """`offset_of` the run's signal."""
    mapped = read_array(run.signal, whole=False)
    n = len(mapped)
    mean = math.fsum(float(mapped[nodes].sum(dtype=np.float64)) for nodes in pieces(n)) / n
    return offset_of(mean, math.fsum(float(((mapped[nodes] - mean) ** 2).sum(dtype=np.float64)) for nodes in pieces(n)) / n)


def combined(
    run: Run, stage: Stage, regressed, facts: dict[str, Any], total: tuple[float, float]
) -> tuple[list[dict], dict[str, Any]]:
    """All stages up to the signal: the terms of the risk, and the divergence and optimism of the weights. `total` are those of the noise."""
    parts, n = facts["partitions"], facts["n"]
    labelled = stage("labels", label, run=False)
    joined = join(run.work, parts, [one["count"] for one in labelled])
    run = replace(run, n_groups=len(joined["columns"]))
    offset, outputs = signal_offset(run), [run.output(part, "transform") for part in range(parts)]
    found = stage("transform", combining.transform_all, offset, run=run)
    groups = added(outputs, "groups")
    write_array(run.folder / "means.npy", groups / np.maximum(groups[0], 1))
    stage("scales", tasks.scales, *regressed(run), run=run)
    gate = _gate(stage, run, math.fsum(one["pilot"] for one in found) / n, n)
    gate["offset"] = offset
    made = stage("columns", combining.columns, offset, gate, joined["columns"], run=run)
    weights, divergence, optimism = _weights(run, parts, n, joined, found, made, groups, total)
    terms = stage("finish", combining.combine_all, offset, gate, joined["columns"], weights.tolist(), run=run)
    more = {"divergence": float(weights @ np.maximum(divergence, 0.0)), "optimism": optimism, "offset": offset}
    return terms, more


def _gate(stage: Stage, run: Run, mean: float, n: int) -> dict[str, Any]:
    """Mean and spread of the pilot, and what the probes do to them."""
    found = stage("gate", combining.gate_sums, mean, run=run)
    spread = math.sqrt(math.fsum(one["spread"] for one in found) / n)
    shift, stretch = (np.sum([one[name] for one in found], axis=0) / n for name in ("shift", "stretch"))
    return {"mean": mean, "spread": spread, "shift": shift.tolist(), "stretch": stretch.tolist()}


def _weights(run: Run, parts: int, n: int, joined, found, made, groups: np.ndarray, total: tuple[float, float]):
    """The weights of least SURE, as `combine.fit` finds them; the divergences; and how optimistic the weights make SURE."""
    products = added((run.output(part, "columns") for part in range(parts)), "products")
    traces = np.sum([one["traces"] for one in found], axis=0) / run.n_probes
    n_scales = (len(traces) - OTHERS) // 2
    _, _, psi, heat = np.split(traces, np.cumsum([n_scales, len(SMOOTHERS), n_scales]))
    constant = np.bincount(joined["columns"], groups[1] / np.maximum(groups[0], 1))
    gated, spikes = (np.sum([one[name] for one in made], axis=0) for name in ("gated", "spikes"))
    names = {"constant": constant, "heat_bands": heat, "bands": psi, "spikes": spikes, "gated": gated}
    divergence, ends = np.concatenate(list(names.values())), np.cumsum([len(part) for part in names.values()])
    places = {name: np.arange(end - len(part), end) for (name, part), end in zip(names.items(), ends, strict=True)}
    stand_in = SimpleNamespace(
        products=lambda y: products,
        divergence=divergence,
        tuned=np.zeros(len(divergence)),
        of=lambda some: np.concatenate([places[name] for name in some]),
    )
    noise = SimpleNamespace(variance=run.variance, total=lambda n: total[0], mean=lambda n: total[0] / n)
    sets = LARGE_SETS if run.method == "auto" else LET_SETS
    fits = fit(cast(Any, stand_in), np.broadcast_to(0.0, n), cast(Any, noise), sets)
    shares = fits.shares(total[0] / n)
    return shares @ fits.weights, divergence, float(shares @ fits.optimism)
