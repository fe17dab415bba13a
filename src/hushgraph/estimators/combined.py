"""The methods that combine candidates: which candidates, by the size of the graph; and whether `counts` is used too.

`let` is one SURE-LET of few candidates, at the cost of a few transforms. `auto` averages several combinations by their risk and runs a
second stage. One fitted filter stands in their place for signals without peaks, as long as they are not clearly better. On small
graphs it takes fewer candidates, because SURE is too noisy there to choose among many, and on large ones those of `let`. For signals that cannot be negative it also computes the empirical-Bayes estimate (`counts`), and takes four parts of it to
one of the combination unless its risk is clearly larger.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushgraph._arrays import on_device, on_host
from hushgraph._progress import between, nth, timed
from hushgraph.core import block_dots, block_sum, offsets_of, rowwise_variances, sum_of_rows
from hushgraph.estimators.counts.empirical_bayes import CountsEstimate, obstacle_to_counts
from hushgraph.estimators.counts.method import assessed_counts, estimate_counts, optimism_of
from hushgraph.estimators.let.candidates import Group
from hushgraph.estimators.let.combination import Combination, Sets, alone, combine
from hushgraph.estimators.let.filters import Filters
from hushgraph.estimators.let.fitted_filter import Filtered
from hushgraph.estimators.let.observation import Observation
from hushgraph.estimators.let.patches import takes_patches
from hushgraph.estimators.let.second_stage import refine
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
IMAGE_SETS: Sets = {"patches": ("constant", "patches"), "let, patches": (*LET_SETS["let"], "patches")}  # besides the others


@dataclass(frozen=True)
class Plan:
    """Which sets of candidates are combined, whether there is a second stage, and why.

    With `has_filter` a fitted filter is the estimate unless the combination is clearly better.
    """

    sets: Sets
    refined: bool
    why: str
    has_filter: bool = False

    @classmethod
    def of(cls, graph: Graph, settings: Settings, *, device: bool = False) -> Plan:
        """Return the plan for a graph: by its size, and with patches for an image."""
        plan = cls._by_size(graph.n, settings, device=device)
        if settings.method != "auto" or settings.groups is not None or device or graph.n < SMALL_GRAPH or not takes_patches(graph):
            return plan
        return replace(plan, sets={**plan.sets, **IMAGE_SETS}, why=f"{plan.why}, and patches of an image")

    @classmethod
    def _by_size(cls, n: int, settings: Settings, *, device: bool) -> Plan:
        """Return the plan for a graph of n nodes."""
        method, wish = settings.method, settings.refine
        if method in SINGLE:
            return cls({}, False, f"the candidate {SINGLE[method]!r} alone, as asked")
        if method == "let":
            return cls(LET_SETS, bool(wish), "one combination of the candidates of 'let', as asked")
        if settings.groups is not None:
            return cls(
                LARGE_SETS, wish is not False, "columns on a product graph: combinations of candidates that cost a few transforms"
            )
        if device:
            why, refined = (
                "on a GPU: a fitted filter and combinations of candidates that are linear algebra",
                n >= SMALL_GRAPH if wish is None else wish,
            )
            return cls(LARGE_SETS, refined, why, has_filter=True)
        if n < SMALL_GRAPH:
            why = f"under {SMALL_GRAPH} nodes SURE is too noisy to choose among many: a fitted filter and few candidates"
            return cls(SMALL_SETS, bool(wish), why, has_filter=True)
        if n > LARGE_GRAPH:
            why = f"over {LARGE_GRAPH:,} nodes: a fitted filter and combinations of candidates that cost a few transforms"
            return cls(LARGE_SETS, wish is not False, why, has_filter=True)
        why = f"from {SMALL_GRAPH} to {LARGE_GRAPH:,} nodes: a fitted filter and {len(AUTO_SETS)} combinations, averaged by their risk"
        return cls(AUTO_SETS, wish is not False, why, has_filter=True)


def denoise_combined(problem: Problem, settings: Settings, timings: dict[str, float]) -> tuple[list[Assessed], dict[str, Any]]:
    """Return the estimate of every signal, with the same filters and probes for all, and details of all of them."""
    graph, noise, planes = problem.graph, problem.noise, problem.planes.astype(np.float64, copy=False)
    with timed(timings, "filters and probes", 0.0, 1 / (len(planes) + 1)):
        filters = Filters.of(graph, noise, n_probes=settings.n_probes, law=settings.law, seed=settings.seed, like=planes)
    estimates = []
    for k, y in enumerate(planes):
        with nth(k + 1, len(planes) + 1):
            estimates.append(_denoise_signal(graph, filters, y, noise, settings, timings))
    return estimates, {"n_probes": filters.probes.count, "noisy_variance": problem.per_signal(rowwise_variances(planes))}


def _denoise_signal(
    graph: Graph, filters: Filters, y: np.ndarray, noise: Noise, settings: Settings, timings: dict[str, float]
) -> Assessed:
    """Return the combination; with `auto` and values that cannot be negative, averaged with counts where these are good."""
    plan = Plan.of(graph, settings, device=on_device(y))
    wants_counts = settings.method == "auto" and settings.nonnegative
    obstacle = _obstacle_to_counts(graph, y, settings) if wants_counts else None
    with between(0.0, COMBINATION_TIME if wants_counts and obstacle is None else 1.0):
        combination = combination_of(filters, y, noise, plan, timings, single=SINGLE.get(settings.method))
    if not wants_counts:
        return combination
    if obstacle is not None:
        return replace(combination, account={**combination.account, "counts": f"not used: {obstacle}"})
    counts = estimate_counts(graph, y, noise, timings, COMBINATION_TIME)
    doubt = _doubt(y, noise, combination, counts)
    verdict = f"its risk is {doubt:+.1f} standard errors from that of the combination; {'dropped' if doubt > DOUBT else 'taken'}"
    if doubt > DOUBT:
        return replace(combination, account={**combination.account, "counts": verdict})
    return _hedged(y, noise, assessed_counts(y, noise, counts, {"counts": verdict}), combination)


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
    estimate = _assess_combination(observation, last, level, _account(observation, first, last, plan))
    return estimate if prediction is None else replace(estimate, signal=prediction + estimate.signal)


def _obstacle_to_counts(graph: Graph, y: np.ndarray, settings: Settings) -> str | None:
    """Return why `counts` cannot be computed here, or None."""
    if on_device(y):
        return "it runs on the CPU only"
    return obstacle_to_counts(graph) if settings.groups is None else "columns are denoised together, on a product graph"


def _hedged(y: np.ndarray, noise: Noise, counts: Assessed, combination: Assessed) -> Assessed:
    """Return counts with a share of the combination."""
    both, shares = (counts, combination), np.array([1 - HEDGE, HEDGE])
    mean = average(
        y, np.stack([one.signal for one in both]), [one.risk for one in both], [one.risk_se for one in both], noise, shares
    )
    account = {
        "why": f"the signal cannot be negative: {shares[0]:.0%} of the empirical-Bayes estimate, {shares[1]:.0%} of the combination",
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
        is_posterior=True,
        account=account,
    )


def _doubt(y: np.ndarray, noise: Noise, combination: Assessed, counts: CountsEstimate) -> float:
    """Return (T_counts - T_combination) / (2 sigma ||difference||): the difference of two SUREs, in its standard errors."""
    apart = np.sqrt(block_sum(noise.weigh((counts.signal - combination.signal) ** 2)))
    gap = counts.sure + optimism_of(noise, counts) - combination.risk
    return float(gap / (2 * apart)) if apart > 0 else 0.0


def _is_below_noise(observation: Observation) -> bool:
    """Return whether the energy of some scale proves that sigma is too large."""
    probes, rho = observation.filters.probes, observation.parts.rho
    trace = on_host(probes.weights.sum(axis=1))
    energy = block_dots(rho, rho)
    return bool(observation.noise.is_too_large(energy, trace, tests=2 * len(trace), n_probes=probes.count).any())


def _account(observation: Observation, first: Combination, last: Combination, plan: Plan) -> dict[str, Any]:
    """Return what was combined and why, for people to read."""
    sets = {
        name: {"risk": float(sure + optimism), "share": float(share)}
        for name, sure, optimism, share in zip(first.fits.sets, first.fits.sure, first.fits.optimism, first.shares, strict=True)
    }
    by_risk = sorted(zip(first.fits.alone.tolist(), first.columns.names, strict=True))
    account: dict[str, Any] = {
        "why": plan.why + ("; then a second look at the signal in the light of the result" if plan.refined else ""),
        "sets": sets,
        "weights": _weights(first),
        "risk_alone": {name: risk for risk, name in by_risk},
        "divergence": last.divergence,
        "chosen": first.columns.chosen,
        "sigma_too_large": _is_below_noise(observation),
    }
    if last is not first:
        account["refined"] = _weights(last)
    group = first.columns.groups.get("filter")
    if isinstance(group, Filtered):
        account["filter"] = group.description()
    return account


def _weights(combination: Combination) -> dict[str, float]:
    """Return the candidates in use with their weights, the largest first."""
    pairs = sorted(zip(combination.weights.tolist(), combination.columns.names, strict=True), reverse=True)
    return {name: weight for weight, name in pairs if weight > 0}


def _assess_combination(observation: Observation, last: Combination, level: float, account: dict[str, Any]) -> Assessed:
    """Return the combination with its risk; a level that was taken off costs one degree of freedom."""
    noise = observation.noise
    estimate = Estimate(
        signal=last.signal,
        sure=last.sure,
        divergence=last.divergence,
        jacobian=last,
        probes=ProbeUse("probes", observation.filters.probes.count, has_diagonal=False),
        optimism=last.optimism,
        level=level,
        level_cost=2 * noise.mean(observation.graph.n) if level else 0.0,
        account=account,
    )
    return with_risk(observation.y, estimate, noise)
