"""The driver of `let` and `auto` on partitions: the stages, sums of their results, and the weights of the candidates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushgraph.distributed import guide_tasks, let_tasks, second_tasks, wavelet_tasks
from hushgraph.distributed.components import join_components, label_components
from hushgraph.distributed.filter_tasks import fit_filter, run_filter
from hushgraph.distributed.ghosts import Part
from hushgraph.distributed.noise_levels import fit_scales
from hushgraph.distributed.runner import Facts, Runner
from hushgraph.distributed.signals import signal_offset
from hushgraph.distributed.store import mark_array, sum_arrays, write_array
from hushgraph.distributed.wavelet_tasks import Run
from hushgraph.estimators import (
    FIRST_ALONE,
    HEAT_BAND_NAMES,
    N_OTHER_FILTERS,
    PARAMETER_FREEDOM,
    REGRESSION_NAMES,
    SECOND,
    SECOND_PLACES,
    SMOOTHERS,
    SPIKE_NAMES,
    FilterFit,
    Fits,
    LetProblem,
    Plan,
    account_of,
    band_names,
    constant_names,
    described,
    divergences,
    fit,
    fit_second,
    gated_names,
    peakedness_of,
    shared,
    used_weights,
)

# rough shares of the time
STAGES = {
    "labels": 0.5, "transform": 12.0, "survey": 1.0, "fit": 0.5, "scales": 0.5, "gate": 0.2, "columns": 12.0, "finish": 8.0, "write": 0.5,
}  # fmt: skip
FILTER = {"spectrum": 8.0, "filter": 5.0}  # after the gate
REGRESSION = {"surroundings": 2.0, "regression": 4.0}  # local regression on what guides predict, likewise
SECOND_STAGE = {"first": 8.0, "again": 4.0, "second": 10.0}  # after the columns


def stages_of(method: str, *, refined: bool, has_prediction: bool = False) -> dict[str, float]:
    """Return the stages of a combination, with rough shares of the time."""
    stages: dict[str, float] = {}
    for stage, weight in STAGES.items():
        if stage == "columns":
            stages |= REGRESSION if has_prediction else {}
            stages |= FILTER if method == "auto" else {}
        if stage == "finish" and refined:
            stages |= {**SECOND_STAGE, "finish": 0.5}
        stages.setdefault(stage, weight)
    return stages


@dataclass(frozen=True, eq=False)
class Combined:
    """The choice of weights, from sums over partitions.

    Parameters
    ----------
    problem : LetProblem
        Inner products and divergences of the columns.
    fits : Fits
        The weights of each set of candidates.
    shares : (m,) array
        The share of each set.
    peaked : float
        Whether the signal has peaks, from 0 to 1.
    """

    problem: LetProblem
    fits: Fits
    shares: np.ndarray
    peaked: float = 1.0
    first_caution: np.ndarray | float = 0.0  # that of the first stage in each column of the second

    @property
    def weights(self) -> np.ndarray:
        """The weight of each column."""
        return self.shares @ self.fits.weights

    @property
    def optimism(self) -> float:
        """What choosing the weights costs."""
        return float(self.shares @ self.fits.optimism)

    @property
    def caution(self) -> float:
        """What is added to the risk where the estimate is compared with others."""
        return float(np.sum(self.weights * self.first_caution)) + self.fits.caution(self.shares, self.problem.typical_variance)

    @property
    def divergence(self) -> float:
        """The divergence at these weights; that of a column below 0 comes from the probes."""
        return float(self.weights @ np.maximum(self.problem.divergence, 0.0))


def run_let(run: Run, runner: Runner, parts: int, n: int, noise_total: float) -> tuple[list[Facts], Facts]:
    """Run all stages up to the signal; return the terms of the risk, and the divergence, the optimism, the offset and an account of the weights.

    `noise_total` is sum_i sigma_i^2.
    """
    plan = plan_of(run, n)
    labelled = runner.run_parts("labels", label_components, parts, run.work)
    group_columns = join_components(run.work, parts, [labels["count"] for labels in labelled])
    run = replace(run, n_groups=len(group_columns))
    offset, outputs = signal_offset(run.signal), [run.output(part, "transform") for part in range(parts)]
    transformed = runner.run_parts("transform", let_tasks.transform_filters, parts, run, offset)
    groups = sum_arrays(outputs, "groups")
    means = run.folder / "means.npy"
    mark_array(means, write_array(means, groups / np.maximum(groups[0], 1), safe=True))
    runner.run_parts("scales", wavelet_tasks.scales, parts, run, *fit_scales(run, runner, parts))
    gate = _gate_facts(run, runner, parts, math.fsum(part["pilot"] for part in transformed) / n, n, offset)
    if run.prediction is not None:
        squares = np.sum(
            [part["squares"] for part in runner.run_parts("surroundings", guide_tasks.surroundings, parts, run)], axis=0
        )
        regressed = runner.run_parts("regression", guide_tasks.regressions, parts, run, offset, squares.tolist(), n)
    else:
        regressed = []
    model = None
    if plan.has_filter:
        model = fit_filter(run, runner, parts, noise_total / n)
        run_filter(run, runner, parts, model.coefficients)
    made = runner.run_parts("columns", let_tasks.make_columns, parts, run, offset, gate, group_columns)
    columns = _divergences(run, group_columns, transformed, made, regressed, groups, model)
    first = _combined(run, parts, n, noise_total, plan, columns, made, model)
    account = _account(run, plan, first, columns, made, model)
    more = offset, gate, group_columns, first.weights.tolist()
    if not plan.refined:
        terms, last = runner.run_parts("finish", let_tasks.combine_columns, parts, run, *more, "finish"), first
    else:
        runner.run_parts("first", let_tasks.combine_columns, parts, run, *more, "first")
        terms, last = _refined(run, runner, parts, first, offset)
        account["refined"] = used_weights(last.weights, SECOND)
    account["divergence"] = float(last.weights @ last.problem.divergence)
    charges = {"optimism": last.optimism, "caution": last.caution}
    return terms, {"divergence": last.divergence, **charges, "offset": offset, "account": account}


def plan_of(run: Run, n: int) -> Plan:
    """Return which candidates are combined; those of guided runs have local regression on the prediction too."""
    plan = Plan.in_partitions(n, run.method, run.refine)
    if run.prediction is None:
        return plan
    return replace(plan, sets={name: (*groups, "local") for name, groups in plan.sets.items()})


def _gate_facts(run: Run, runner: Runner, parts: int, mean: float, n: int, offset: float) -> Facts:
    """Return the mean and the spread of the pilot over all nodes, their derivatives along the kept probes, and the offset of the signal."""
    sums = runner.run_parts("gate", let_tasks.gate_sums, parts, run, mean, offset)
    spread = math.sqrt(math.fsum(part["spread"] for part in sums) / n)
    shift, stretch = (np.sum([part[name] for part in sums], axis=0) / n for name in ("shift", "stretch"))
    return {"mean": mean, "spread": spread, "shift": shift.tolist(), "stretch": stretch.tolist(), "offset": offset}


Divergences = dict[str, tuple[tuple[str, ...], np.ndarray]]  # names and divergences of the columns of each group


def _divergences(
    run: Run,
    group_columns: list[int],
    transformed: list[Facts],
    made: list[Facts],
    regressed: list[Facts],
    groups: np.ndarray,
    model: FilterFit | None,
) -> Divergences:
    """Return the names of all columns and their divergences, summed over partitions, in the order of `let_tasks.columns_of`."""
    traces = np.sum([part["traces"] for part in transformed], axis=0) / run.n_probes
    n_scales = (len(traces) - N_OTHER_FILTERS) // 2
    _, _, psi, heat = np.split(traces, np.cumsum([n_scales, len(SMOOTHERS), n_scales]))
    variances = groups[1] / np.maximum(groups[0], 1)
    constant = np.bincount(group_columns, variances)
    gated, spikes = (np.sum([part[name] for part in made], axis=0) for name in ("gated", "spikes"))
    columns = {
        "constant": (constant_names(len(constant)), constant),
        "heat_bands": (HEAT_BAND_NAMES, heat),
        "bands": (band_names(n_scales), psi),
        "spikes": (SPIKE_NAMES, spikes),
        "gated": (gated_names(n_scales), gated),
    }
    if regressed:
        columns["local"] = REGRESSION_NAMES, np.sum([part["samples"] for part in regressed], axis=0).mean(axis=1)
    if model is not None:
        trace = model.coefficients @ model.spectrum.moments[: len(model.coefficients)]
        columns["filter"] = ("filter",), np.array([trace + variances[groups[0] > 0].sum()])
    return columns


def _combined(
    run: Run,
    parts: int,
    n: int,
    noise_total: float,
    plan: Plan,
    columns: Divergences,
    made: list[Facts],
    model: FilterFit | None,
) -> Combined:
    """Return the weights of the candidates from inner products summed over partitions.

    Degrees of freedom are spent only on the shape of the fitted filter: thresholds are fixed here.
    """
    products = sum_arrays((run.output(part, "columns") for part in range(parts)), "products")
    ends = np.cumsum([len(names) for names, _ in columns.values()])
    places = {name: np.arange(end - len(names), end) for (name, (names, _)), end in zip(columns.items(), ends, strict=True)}
    divergence, tuned = np.concatenate([values for _, values in columns.values()]), np.zeros(ends[-1])
    if model is not None:
        tuned[places["filter"]] = 3 * PARAMETER_FREEDOM
    problem = LetProblem(products, divergence, tuned, places, run.variance, noise_total, n)
    fits = fit(problem, plan.sets)
    if model is None:
        return Combined(problem, *shared(problem, fits))
    squares, fourths = (np.sum([part[name] for part in made], axis=0) / n for name in ("squares", "fourths"))
    bands = run.frame(Part(run.work, 0)).bands
    peaked = peakedness_of(squares, fourths, model.fitted, model.energies, bands, n)
    alone = np.zeros(len(divergence))
    alone[places["filter"]] = 1.0
    return Combined(problem, *shared(problem, fits, safe=("filter", alone), peak_evidence=peaked), peaked)


def _refined(run: Run, runner: Runner, parts: int, first: Combined, offset: float) -> tuple[list[Facts], Combined]:
    """Run the second stage; return the terms of the risk and the weights of its columns."""
    runner.run_parts("again", second_tasks.transform_first, parts, run)
    made = runner.run_parts("second", second_tasks.make_second, parts, run, offset)
    samples = np.sum([part["samples"] for part in made], axis=0)
    divergence, alike = divergences(samples, float(first.weights @ first.problem.divergence))
    products = sum_arrays((run.output(part, "second") for part in range(parts)), "products")
    tuned = first.optimism / (2 * first.problem.typical_variance) * alike
    problem = replace(first.problem, products=products, divergence=divergence, tuned=tuned, places=SECOND_PLACES)
    choice = shared(problem, fit_second(problem), safe=FIRST_ALONE, peak_evidence=first.peaked)
    last = Combined(problem, *choice, first.peaked, first.caution * alike)
    return runner.run_parts("finish", second_tasks.combine_second, parts, run, offset, last.weights.tolist()), last


def _account(
    run: Run, plan: Plan, first: Combined, columns: Divergences, made: list[Facts], model: FilterFit | None
) -> dict[str, Any]:
    """Return what was combined and why, as the details of a result on one machine have it."""
    names = tuple(name for group, _ in columns.values() for name in group)
    account = {**account_of(plan, first.fits, first.shares, names), "left_out": list(plan.left_out)}
    energy, trace = (np.sum([part[name] for part in made], axis=0) for name in ("energy", "trace"))
    account["sigma_too_large"] = bool(
        run.whole_noise().is_too_large(energy, trace, tests=2 * len(trace), n_probes=run.n_probes).any()
    )
    if model is not None:
        freedom = float(columns["filter"][1][0])
        frame = run.frame(Part(run.work, 0))
        account["filter"] = described(model.fitted, model.energies, len(model.coefficients) - 1, freedom, frame)
    return account
