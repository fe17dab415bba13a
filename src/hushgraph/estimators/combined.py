"""The methods that combine candidates: which candidates, by the size of the graph; and whether `counts` is used too.

`let` is one SURE-LET of few candidates, at the cost of a few transforms. `auto` averages several combinations by their risk and runs a
second stage. For signals without peaks it takes one fitted filter instead, as long as the average is not clearly better. On small
graphs it has fewer candidates, because SURE is too noisy there to choose among many, and on large ones those of `let`. For signals that
cannot be negative it also computes the empirical-Bayes estimate (`counts`), and takes four parts of it to one of the combination unless
its risk is clearly larger.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushgraph._arrays import on_device
from hushgraph._progress import between, nth, timed
from hushgraph.core import block_dots, block_sum, offsets_of, rowwise_variances, sum_of_rows
from hushgraph.estimators.counts.empirical_bayes import CountsEstimate, obstacle_to_counts
from hushgraph.estimators.counts.method import assessed_counts, caution_of, counts_account, estimate_counts, optimism_of
from hushgraph.estimators.let.candidates import Group
from hushgraph.estimators.let.combination import Combination, Fits, Sets, alone, combine
from hushgraph.estimators.let.filters import Filters
from hushgraph.estimators.let.fitted_filter import Filtered
from hushgraph.estimators.let.observation import Observation
from hushgraph.estimators.let.patches import takes_patches
from hushgraph.estimators.let.second_stage import refine
from hushgraph.estimators.methods import MethodName
from hushgraph.estimators.problem import Problem
from hushgraph.estimators.risk import Assessed, Estimate, ProbeUse, average, with_risk
from hushgraph.estimators.settings import Settings
from hushgraph.graphs import Graph
from hushgraph.wavelets import Noise

SMALL_GRAPH, LARGE_GRAPH = 500, 2**17  # nodes: below, few candidates; above, those of `let`
DOUBT = 1.5  # standard errors by which the risk of `counts` must be larger for it to be dropped
HEDGE = 0.2  # share of the combination where `counts` is used: never worse by more than 0.01 dB, and up to 0.07 better
COMBINATION_TIME = 0.25  # share of the time that the combination takes where `counts` is computed too, roughly

SINGLE: dict[str, Group] = {"filter": "filter", "sgwt_block": "blocks", "sgwt_beta": "betas"}  # methods that are one candidate
LET_SETS: Sets = {"let": ("constant", "heat_bands", "bands", "spikes", "gated")}
LARGE_SETS: Sets = {"constant": ("constant",), "bands": ("constant", "heat_bands", "bands"), **LET_SETS}
SMALL_SETS: Sets = {
    "constant": ("constant",),
    "heat": ("constant", "heat"),
    "bands": LARGE_SETS["bands"],
    "pieces": ("constant", "heat_bands", "tv", "dfs"),
    "heat and spikes": ("constant", "heat", "spikes"),
    "levels": ("constant", "levels"),
}
AUTO_SETS: Sets = {
    **{name: SMALL_SETS[name] for name in ("constant", "heat", "bands", "pieces")},
    **LET_SETS,
    "let, pieces": (*LET_SETS["let"], "tv", "dfs"),
    "levels": SMALL_SETS["levels"],
}
CPU_GROUPS = {"dfs": "the fused lasso along depth-first orders", "levels": "fields with few levels"}  # not computed on a GPU
IMAGE_SETS: Sets = {"patches": ("constant", "patches"), "let, patches": (*LET_SETS["let"], "patches")}  # besides the others


@dataclass(frozen=True)
class Plan:
    """Which sets of candidates are combined, whether there is a second stage, and why.

    With `has_filter` a fitted filter is the estimate unless the combination is clearly better. `left_out` are candidates that one machine
    has for a graph of this size, and partitions have not.
    """

    sets: Sets
    refined: bool
    why: str
    has_filter: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def in_words(self) -> str:
        """What is done and why, in one sentence."""
        return self.why + ("; then a second pass that starts from this result" if self.refined else "")

    @classmethod
    def of(cls, graph: Graph, settings: Settings, *, device: bool = False) -> Plan:
        """Return the plan for a graph: by its size, and with patches for an image."""
        plan = cls._by_size(graph.n, settings, device=device)
        if settings.method != "auto" or settings.groups is not None or graph.n < SMALL_GRAPH or not takes_patches(graph):
            return plan
        if device:
            return replace(plan, why=f"{plan.why}; patches of the image were left out, which run on the CPU only")
        return replace(plan, sets={**plan.sets, **IMAGE_SETS}, why=f"{plan.why}; also similar patches of an image")

    @classmethod
    def in_partitions(cls, n: int, method: MethodName, refine: bool | None) -> Plan:
        """Return the plan for a graph of n nodes in partitions: that of a large graph on one machine, whatever its size."""
        plan = cls._by_size(n, Settings(method=method, refine=refine), device=False)
        if method != "auto":
            return plan
        groups = dict.fromkeys(group for some in plan.sets.values() for group in some)
        lacking = tuple(group for group in groups if group not in LARGE_SETS["let"] and group != "heat")
        if not lacking:
            return replace(plan, left_out=("patches",))
        why = (
            f"in partitions: a fitted smoother and quick estimates (smoothing, wavelets, single values that stand out); up to {LARGE_GRAPH:,} "
            "nodes, as here, one machine also has even areas and few levels, which need the whole graph at once"
        )
        return replace(plan, sets=LARGE_SETS, why=why, left_out=(*lacking, "patches"))

    @classmethod
    def _by_size(cls, n: int, settings: Settings, *, device: bool) -> Plan:
        """Return the plan for a graph of n nodes."""
        method, wish = settings.method, settings.refine
        if method in SINGLE:
            return cls({}, False, f"the estimate {SINGLE[method]!r} alone, as asked")
        if method == "let":
            return cls(
                LET_SETS,
                bool(wish),
                "one combination of quick estimates (smoothing, wavelets, single values that stand out), as asked",
            )
        if settings.groups is not None:
            return cls(
                LARGE_SETS,
                wish is not False,
                "quick estimates (smoothing, wavelets, single values that stand out), because all columns were denoised together",
            )
        if n < SMALL_GRAPH:
            why = f"a fitted smoother and a few other estimates, because a small graph (under {SMALL_GRAPH} nodes) cannot tell which of many is best"
            return cls(SMALL_SETS, bool(wish), why, has_filter=True)._for_device(device)
        if n > LARGE_GRAPH:
            why = f"a fitted smoother and quick estimates (smoothing, wavelets, single values that stand out), because others take too long on a large graph (over {LARGE_GRAPH:,} nodes)"
            return cls(LARGE_SETS, wish is not False, why, has_filter=True)
        why = f"a fitted smoother and all simple estimates (smoothing, wavelets, even areas, few levels), those with smaller estimated errors with more weight, as on all graphs of {SMALL_GRAPH} to {LARGE_GRAPH:,} nodes"
        return cls(AUTO_SETS, wish is not False, why, has_filter=True)._for_device(device)

    def _for_device(self, device: bool) -> Plan:
        """Return the plan on this machine: on a GPU without the candidates that only a processor computes, which the plan names."""
        if not device:
            return self
        kept = {name: tuple(group for group in groups if group not in CPU_GROUPS) for name, groups in self.sets.items()}
        left_out = " and ".join(CPU_GROUPS.values())
        why = f"{self.why}; but {left_out} were left out, which run on the CPU only and not on a GPU"
        return replace(
            self, sets={name: groups for name, groups in kept.items() if groups != ("constant",) or name == "constant"}, why=why
        )


def denoise_combined(problem: Problem, settings: Settings, timings: dict[str, float]) -> tuple[list[Assessed], dict[str, Any]]:
    """Return the estimate of every signal, with the same filters and probes for all, and details of all of them.

    `counts` come first, where they are wanted: both need much memory, and so they do not need it at the same time.
    """
    graph, noise, planes = problem.graph, problem.noise, problem.planes.astype(np.float64, copy=False)
    wants_counts = settings.method == "auto" and settings.nonnegative
    obstacle = _obstacle_to_counts(graph, settings) if wants_counts else None
    counts: list[CountsEstimate | None] = [None] * len(planes)
    start = 1 - COMBINATION_TIME if wants_counts and obstacle is None else 0.0
    for k, y in enumerate(planes if start else ()):
        with between(start * k / len(planes), start * (k + 1) / len(planes)):
            counts[k] = estimate_counts(graph, y, noise, timings)
    estimates = []
    with between(start, 1.0):
        with timed(timings, "filters and probes", 0.0, 1 / (len(planes) + 1)):
            filters = Filters.of(graph, noise, n_probes=settings.n_probes, law=settings.law, seed=settings.seed, like=planes)
        plan = Plan.of(graph, settings, device=on_device(planes))
        for k, y in enumerate(planes):
            with nth(k + 1, len(planes) + 1):
                combination = combination_of(filters, y, noise, plan, timings, single=SINGLE.get(settings.method))
            estimates.append(_with_counts(y, noise, combination, counts[k], obstacle))
    return estimates, {"n_probes": filters.probes.count, "noisy_variance": problem.per_signal(rowwise_variances(planes))}


def _with_counts(
    y: np.ndarray, noise: Noise, combination: Assessed, counts: CountsEstimate | None, obstacle: str | None
) -> Assessed:
    """Return the combination, averaged with counts where these are wanted and good; it says why they are not used."""
    if obstacle is not None:
        why = f"{combination.account['why']}; the estimate for counts was not used: {obstacle}"
        return replace(combination, account={**combination.account, "why": why, "counts": f"not used: {obstacle}"})
    if counts is None:
        return combination
    doubt = _doubt(y, noise, combination, counts)
    verdict = counts_verdict(doubt)
    if doubt > DOUBT:
        return replace(combination, account={**combination.account, **counts_account(counts, verdict)})
    return _averaged(y, noise, assessed_counts(y, noise, counts, {"counts": verdict}), combination)


def combination_of(
    filters: Filters,
    y: np.ndarray,
    noise: Noise,
    plan: Plan,
    timings: dict[str, float],
    *,
    single: Group | None = None,
    prediction: np.ndarray | None = None,
) -> Assessed:
    """Return the combination of candidates that is planned, or a single one.

    With a prediction of the signal from elsewhere, what is left of y is denoised, and the prediction added again.
    """
    rest = y if prediction is None else y - prediction
    level = float(offsets_of(rest[None])[0])
    observation = Observation(filters, rest - level, noise, prediction)
    with timed(timings, "candidates", 0.0, 0.6):
        first = (
            combine(observation, plan.sets, safe="filter" if plan.has_filter else None)
            if single is None
            else alone(observation, single)
        )
    last = first
    if plan.refined:
        with timed(timings, "refine", 0.6, 1.0):
            last = refine(observation, first)
    estimate = _assess_combination(observation, last, level)
    estimate = replace(estimate, account=_account(observation, first, last, plan))  # while a GPU works on the estimate
    return estimate if prediction is None else replace(estimate, signal=prediction + estimate.signal)


def _obstacle_to_counts(graph: Graph, settings: Settings) -> str | None:
    """Return why `counts` cannot be computed here, or None."""
    return obstacle_to_counts(graph) if settings.groups is None else "columns are denoised together, on a product graph"


def _averaged(y: np.ndarray, noise: Noise, counts: Assessed, combination: Assessed) -> Assessed:
    """Return counts with a share of the combination."""
    both, shares = (counts, combination), np.array([1 - HEDGE, HEDGE])
    mean = average(
        y,
        np.stack([one.signal for one in both]),
        [float(one.risk) for one in both],
        [float(one.risk_se) for one in both],
        noise,
        shares,
    )
    account = {
        "why": average_words(shares),
        "counts": counts.account["counts"],
        "features": counts.account["features"],
        "divergence": float(shares @ [one.account["divergence"] for one in both]),
        "sigma_too_large": combination.account["sigma_too_large"],
        "combination": combination.account,
    }
    return Assessed(
        signal=mean.signal,
        risk=mean.risk,
        risk_se=mean.risk_se,
        probe_se=HEDGE * combination.probe_se,
        sure=sum_of_rows(shares, np.stack([one.sure for one in both])) + mean.gain,
        # E[(fhat - f)^2 | y] around the posterior mean: the posterior variance, and the squared distance from there to the mixture
        variance=counts.variance + (HEDGE * (combination.signal - counts.signal)) ** 2,
        divergence=sum_of_rows(shares, np.stack([one.divergence for one in both])),
        posterior=counts.posterior,
        account=account,
        caution=float(shares @ [one.caution for one in both]),
    )


def counts_verdict(doubt: float) -> str:
    """Return what was decided about `counts`, for people to read."""
    decided = "dropped: its estimated error is larger" if doubt > DOUBT else "taken"
    return f"{decided}; its risk is {doubt:+.1f} standard errors from that of the combination"


def average_words(shares: np.ndarray) -> str:
    """Return what the average of `counts` and the combination is, for people to read."""
    return (
        f"{shares[0]:.0%} of a method for counts (empirical Bayes, which judges each count by the counts around it) and {shares[1]:.0%} of the "
        "combination, because the values cannot be negative"
    )


def _doubt(y: np.ndarray, noise: Noise, combination: Assessed, counts: CountsEstimate) -> float:
    """Return (T_counts - T_combination) / (2 sigma ||difference||): the difference of two SUREs, in its standard errors."""
    apart = np.sqrt(block_sum(noise.weigh((counts.signal - combination.signal) ** 2)))
    gap = counts.sure + optimism_of(noise, counts) + caution_of(noise, counts) - combination.compared_risk
    return float(gap / (2 * apart)) if apart > 0 else 0.0


def _is_below_noise(observation: Observation) -> bool:
    """Return whether the energy of some scale proves that sigma is too large."""
    probes, rho = observation.filters.probes, observation.parts.rho
    trace = probes.weight_sums
    energy = block_dots(rho, rho)
    return bool(observation.noise.is_too_large(energy, trace, tests=2 * len(trace), n_probes=probes.count).any())


def _account(observation: Observation, first: Combination, last: Combination, plan: Plan) -> dict[str, Any]:
    """Return what was combined and why, for people to read."""
    account = {
        **account_of(plan, first.fits, first.shares, first.columns.names),
        "divergence": last.divergence,
        "chosen": first.columns.chosen,
        "sigma_too_large": _is_below_noise(observation),
    }
    if last is not first:
        account["refined"] = used_weights(last.weights, last.columns.names)
    group = first.columns.groups.get("filter")
    if isinstance(group, Filtered):
        account["filter"] = group.description()
    return account


def account_of(plan: Plan, fits: Fits, shares: np.ndarray, names: tuple[str, ...]) -> dict[str, Any]:
    """Return which sets of candidates were combined, in which shares and why, and the weights and risks of single candidates."""
    sets = {
        name: {"risk": float(sure + optimism), "share": float(share)}
        for name, sure, optimism, share in zip(fits.sets, fits.sure, fits.optimism, shares, strict=True)
    }
    return {
        "why": plan.in_words,
        "sets": sets,
        "weights": used_weights(shares @ fits.weights, names),
        "risk_alone": {name: risk for risk, name in sorted(zip(fits.alone.tolist(), names, strict=True))},
    }


def used_weights(weights: np.ndarray, names: tuple[str, ...]) -> dict[str, float]:
    """Return the candidates in use with their weights, the largest first."""
    return {name: weight for weight, name in sorted(zip(weights.tolist(), names, strict=True), reverse=True) if weight > 0}


def _assess_combination(observation: Observation, last: Combination, level: float) -> Assessed:
    """Return the combination with its risk; a level that was taken off costs one degree of freedom."""
    noise = observation.noise
    estimate = Estimate(
        signal=last.signal,
        sure=last.sure,
        divergence=last.divergence,
        jacobian=last,
        probes=ProbeUse("probes", observation.filters.probes.count, has_diagonal=False),
        optimism=last.optimism,
        caution=last.caution,
        level=level,
        level_cost=2 * noise.mean(observation.graph.n) if level else 0.0,
    )
    return with_risk(observation.y, estimate, noise)
