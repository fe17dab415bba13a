"""The driver of `let` on partitions: the stages, sums of their results, and the weights of the candidates."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hushgraph.distributed import let_tasks, wavelet_tasks
from hushgraph.distributed.components import join_components, label_components
from hushgraph.distributed.noise_levels import fit_scales
from hushgraph.distributed.runner import Facts, Runner
from hushgraph.distributed.signals import signal_offset
from hushgraph.distributed.store import sum_arrays, write_array
from hushgraph.distributed.wavelet_tasks import Run
from hushgraph.estimators import LARGE_SETS, LET_SETS, N_OTHER_FILTERS, SMOOTHERS, LetProblem, fit

STAGES = {
    "labels": 0.5, "transform": 12.0, "survey": 1.0, "fit": 0.5, "scales": 0.5, "gate": 0.2, "columns": 12.0, "finish": 8.0, "write": 0.5,
}  # fmt: skip


def run_let(run: Run, runner: Runner, parts: int, n: int, noise_total: float) -> tuple[list[Facts], Facts]:
    """Run all stages up to the signal; return the terms of the risk, and the divergence, the optimism and the offset of the weights.

    `noise_total` is sum_i sigma_i^2.
    """
    labelled = runner.run_parts("labels", label_components, parts, run.work)
    group_columns = join_components(run.work, parts, [labels["count"] for labels in labelled])
    run = replace(run, n_groups=len(group_columns))
    offset, outputs = signal_offset(run.signal), [run.output(part, "transform") for part in range(parts)]
    transformed = runner.run_parts("transform", let_tasks.transform_filters, parts, run, offset)
    groups = sum_arrays(outputs, "groups")
    write_array(run.folder / "means.npy", groups / np.maximum(groups[0], 1))
    runner.run_parts("scales", wavelet_tasks.scales, parts, run, *fit_scales(run, runner, parts))
    gate = _gate_facts(run, runner, parts, math.fsum(part["pilot"] for part in transformed) / n, n)
    gate["offset"] = offset
    made = runner.run_parts("columns", let_tasks.make_columns, parts, run, offset, gate, group_columns)
    problem = _problem(run, parts, n, noise_total, group_columns, transformed, made, groups)
    fits = fit(problem, LARGE_SETS if run.method == "auto" else LET_SETS)
    shares = fits.shares(noise_total / n)
    weights, optimism = shares @ fits.weights, float(shares @ fits.optimism)
    terms = runner.run_parts("finish", let_tasks.combine_columns, parts, run, offset, gate, group_columns, weights.tolist())
    fitted = {"divergence": float(weights @ np.maximum(problem.divergence, 0.0)), "optimism": optimism, "offset": offset}
    return terms, fitted


def _gate_facts(run: Run, runner: Runner, parts: int, mean: float, n: int) -> Facts:
    """Return the mean and the spread of the pilot over all nodes, and their derivatives along the kept probes."""
    sums = runner.run_parts("gate", let_tasks.gate_sums, parts, run, mean)
    spread = math.sqrt(math.fsum(part["spread"] for part in sums) / n)
    shift, stretch = (np.sum([part[name] for part in sums], axis=0) / n for name in ("shift", "stretch"))
    return {"mean": mean, "spread": spread, "shift": shift.tolist(), "stretch": stretch.tolist()}


def _problem(
    run: Run,
    parts: int,
    n: int,
    noise_total: float,
    group_columns: list[int],
    transformed: list[Facts],
    made: list[Facts],
    groups: np.ndarray,
) -> LetProblem:
    """Return the problem of the weights: inner products and divergences of all candidates, summed over partitions.

    No degrees of freedom are spent on choosing thresholds: they are fixed here.
    """
    products = sum_arrays((run.output(part, "columns") for part in range(parts)), "products")
    traces = np.sum([part["traces"] for part in transformed], axis=0) / run.n_probes
    n_scales = (len(traces) - N_OTHER_FILTERS) // 2
    _, _, psi, heat = np.split(traces, np.cumsum([n_scales, len(SMOOTHERS), n_scales]))
    constant = np.bincount(group_columns, groups[1] / np.maximum(groups[0], 1))
    gated, spikes = (np.sum([part[name] for part in made], axis=0) for name in ("gated", "spikes"))
    divergences = {"constant": constant, "heat_bands": heat, "bands": psi, "spikes": spikes, "gated": gated}
    ends = np.cumsum([len(columns) for columns in divergences.values()])
    places = {name: np.arange(end - len(columns), end) for (name, columns), end in zip(divergences.items(), ends, strict=True)}
    divergence = np.concatenate(list(divergences.values()))
    return LetProblem(products, divergence, np.zeros(len(divergence)), places, run.variance, noise_total, n)
