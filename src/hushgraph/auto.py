"""Which candidates to combine, by the size of the graph; and for counts, which of two estimates to believe.

`let` is one SURE-LET of few candidates, at the cost of a few transforms. `auto` averages several combinations by their risk and
looks at the signal a second time; on small graphs it takes fewer candidates, because there SURE is too noisy to choose among
many, and on large ones those of `let`. For signals that cannot be negative it also asks the empirical-Bayes estimate
(`counts`), and takes four parts of it to one of the combination unless its risk is clearly the larger one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph.arrays import namespace, on_device, on_host
from hushgraph.candidates import Group
from hushgraph.columns import Observation
from hushgraph.combine import Combination, Sets, alone, combine
from hushgraph.counts import CountsEstimate, counts_estimate, why_not
from hushgraph.filters import Filters
from hushgraph.graph import Graph
from hushgraph.progress import nth, timed
from hushgraph.refine import refine
from hushgraph.result import Denoised, NodeRisk, per_signal
from hushgraph.sgwt import Noise, Settings, average
from hushgraph.sums import block_dots, block_sum, offsets_of, sum_of_rows, variances_there

SMALL, LARGE = 500, 2**17  # nodes: below, few candidates; above, those of `let`
DOUBT = 1.5  # standard errors by which `counts` must look worse to be dropped
HEDGE = 0.2  # share of the combination where counts are taken: never worse by more than 0.01 dB, and up to 0.07 better
COMBINED = 0.25  # share of the time of both that the combination takes where counts are asked too, roughly
COUNTS_FREEDOM = 5  # parameters of its prior

Combined = Literal["auto", "let", "counts", "sgwt_block", "sgwt_beta"]
SINGLE: dict[str, Group] = {"sgwt_block": "blocks", "sgwt_beta": "betas"}  # methods that are one candidate
LET_SETS: Sets = {"let": ("constant", "heat_bands", "bands", "spikes", "gated")}
LARGE_SETS: Sets = {"constant": ("constant",), "bands": ("constant", "heat_bands", "bands"), **LET_SETS}
SMALL_SETS: Sets = {
    "constant": ("constant",),
    "heat": ("constant", "heat"),
    "bands": LARGE_SETS["bands"],
    "pieces": ("constant", "heat_bands", "tv", "dfs"),
    "heat and spikes": ("constant", "heat", "spikes"),
}
AUTO_SETS: Sets = {
    **{name: SMALL_SETS[name] for name in ("constant", "heat", "bands", "pieces")},
    **LET_SETS,
    "let, pieces": (*LET_SETS["let"], "tv", "dfs"),
}


@dataclass(frozen=True)
class Plan:
    """What to do with a signal, and why."""

    sets: Sets
    refined: bool
    why: str

    @classmethod
    def of(cls, n: int, settings: Settings, *, device: bool = False) -> Plan:
        """By size, method and machine."""
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
            return cls(
                LARGE_SETS, n >= SMALL if wish is None else wish, "on a GPU: combinations of candidates that are linear algebra"
            )
        if n < SMALL:
            return cls(SMALL_SETS, bool(wish), f"under {SMALL} nodes SURE is too noisy to choose among many: few candidates")
        if n > LARGE:
            return cls(
                LARGE_SETS, wish is not False, f"over {LARGE:,} nodes: combinations of candidates that cost a few transforms"
            )
        return cls(
            AUTO_SETS, wish is not False, f"from {SMALL} to {LARGE:,} nodes: {len(AUTO_SETS)} combinations, averaged by their risk"
        )


@dataclass(frozen=True, eq=False)
class Estimate:
    """One signal's estimate with its risk, standard errors, terms per node and an account of what was done."""

    signal: np.ndarray
    risk: float
    risk_se: float
    probe_se: float
    sure: np.ndarray
    variance: np.ndarray
    posterior: bool
    account: dict[str, Any]


def denoise_combined(graph: Graph, values: np.ndarray, sigma, settings: Settings, timings: dict) -> Denoised:
    """All columns of `values` (n,) or (n, m), with the same filters and probes."""
    noise, ndim = Noise.of(sigma), values.ndim
    planes = namespace(values).ascontiguousarray(values.reshape(len(values), -1).T, dtype=np.float64)
    filters, m = None, len(planes)
    if settings.method != "counts":
        with timed(timings, "filters and probes", 0.0, 1 / (m + 1)):
            filters = Filters.of(graph, noise, n_probes=settings.n_probes, law=settings.law, seed=settings.seed, like=planes)
    parts = []
    for k, y in enumerate(planes):
        with nth(k + 1, m + 1):
            parts.append(_estimate(graph, filters, y, noise, settings, timings))
    accounts = [part.account for part in parts]
    names = dict.fromkeys(name for account in accounts for name in account)  # signals may be treated differently
    details = {name: accounts[0][name] if ndim == 1 else [account.get(name) for account in accounts] for name in names}
    sure, variance = (np.stack([getattr(part, name) for part in parts]) for name in ("sure", "variance"))
    return Denoised(
        signal=np.stack([part.signal for part in parts], axis=1).reshape(values.shape).astype(values.dtype, copy=False),
        sigma=sigma,
        risk=per_signal([part.risk for part in parts], ndim),
        risk_se=per_signal([part.risk_se for part in parts], ndim),
        probe_se=per_signal([part.probe_se for part in parts], ndim),
        method=settings.method,
        thresholds=None,
        timings=timings,
        details={
            **details,
            "n_probes": None if filters is None else filters.probes.count,
            "noisy_variance": per_signal(variances_there(planes), ndim),
        },
        node_risk=NodeRisk(graph, sure, variance, values.shape, posterior=np.array([part.posterior for part in parts])),
    )


def _estimate(graph: Graph, filters: Filters | None, y: np.ndarray, noise: Noise, settings: Settings, timings: dict) -> Estimate:
    """One signal."""
    if filters is None:
        found = _counts(graph, y, noise, timings)
        return _of_counts(y, noise, found, {"why": "the empirical-Bayes estimate, as asked"})
    plan, offset = Plan.of(graph.n, settings, device=on_device(y)), float(offsets_of(y[None])[0])
    seen = Observation(filters, y - offset, noise)
    reason = why_not(graph) if settings.groups is None else "columns are denoised together, on a product graph"
    reason = "it is worked on by the processor only" if on_device(y) else reason
    asked = settings.method == "auto" and settings.nonnegative and reason is None
    whole = COMBINED if asked else 1.0
    with timed(timings, "candidates", 0.0, 0.6 * whole):
        first = alone(seen, SINGLE[settings.method]) if settings.method in SINGLE else combine(seen, plan.sets)
    last = first
    if plan.refined:
        with timed(timings, "refine", 0.6 * whole, whole):
            last = refine(seen, first)
    linear = _of_combination(seen, last, offset, _account(seen, first, last, plan))
    if settings.method != "auto" or not settings.nonnegative:
        return linear
    if not asked:
        return replace(linear, account={**linear.account, "counts": f"not asked: {reason}"})
    found = _counts(graph, y, noise, timings, COMBINED)
    doubt = _doubt(y, noise, linear, found)
    words = f"its risk is {doubt:+.1f} standard errors from that of the combination; {'dropped' if doubt > DOUBT else 'taken'}"
    if doubt > DOUBT:
        return replace(linear, account={**linear.account, "counts": words})
    return _averaged(y, noise, _of_counts(y, noise, found, {"counts": words}), linear)


def _counts(graph: Graph, y: np.ndarray, noise: Noise, timings: dict, done: float = 0.0) -> CountsEstimate:
    reason = why_not(graph)
    if reason is not None:
        raise InputError(Sentence("{method='counts'} cannot be used here: {}; use {method='auto'}", reason))
    with timed(timings, "counts", done, 1.0):
        return counts_estimate(graph, y, np.sqrt(noise.variance) if noise.per_node is None else noise.per_node)


def _averaged(y: np.ndarray, noise: Noise, counts: Estimate, linear: Estimate) -> Estimate:
    """Counts with a share of the combination."""
    both, shares = (counts, linear), np.array([1 - HEDGE, HEDGE])
    signal, risk, risk_se, gain = average(
        y, np.stack([one.signal for one in both]), [one.risk for one in both], [one.risk_se for one in both], noise, shares
    )
    account = {
        "why": f"the signal cannot be negative: {shares[0]:.0%} of the empirical-Bayes estimate, {shares[1]:.0%} of the combination",
        "counts": counts.account["counts"],
        "features": counts.account["features"],
        "divergence": float(shares @ [one.account["divergence"] for one in both]),
        "sigma_too_large": linear.account["sigma_too_large"],
        "combination": linear.account,
    }
    sure = sum_of_rows(shares, np.stack([one.sure for one in both])) + gain
    # E[(fhat - f)^2 | y] around the posterior mean: the posterior variance, and the square of the way from there to the mixture
    variance = counts.variance + (HEDGE * (linear.signal - counts.signal)) ** 2
    return Estimate(signal, risk, risk_se, HEDGE * linear.probe_se, sure, variance, True, account)


def _doubt(y: np.ndarray, noise: Noise, linear: Estimate, found: CountsEstimate) -> float:
    """(T_counts - T_linear) / (2 sigma ||difference||): the difference of two SUREs, in its standard errors."""
    apart = np.sqrt(block_sum(noise.weigh((found.signal - linear.signal) ** 2)))
    gap = _counts_risk(y, noise, found) - linear.risk
    return float(gap / (2 * apart)) if apart > 0 else 0.0


def _counts_risk(y: np.ndarray, noise: Noise, found: CountsEstimate) -> float:
    return found.sure + 2 * noise.mean(len(y)) * (found.active + COUNTS_FREEDOM)


def _is_below_noise(seen: Observation) -> bool:
    """Whether the energy of some scale proves sigma too large."""
    probed, rho = seen.filters.probes, seen.parts.rho
    trace = on_host(probed.weights.sum(axis=1))
    return bool(seen.noise.is_too_large(block_dots(rho, rho), trace, tests=2 * len(trace), n_probes=probed.count).any())


def _account(seen: Observation, first: Combination, last: Combination, plan: Plan) -> dict[str, Any]:
    """What was combined and why, for people to read."""
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
        "divergence": float(last.weights @ last.columns.divergence),
        "chosen": first.columns.chosen,
        "sigma_too_large": _is_below_noise(seen),
    }
    if last is not first:
        account["refined"] = _weights(last)
    return account


def _weights(found: Combination) -> dict[str, float]:
    """Candidates in use with their weights, the largest first."""
    pairs = sorted(zip(found.weights.tolist(), found.columns.names, strict=True), reverse=True)
    return {name: weight for weight, name in pairs if weight > 0}


def _of_combination(seen: Observation, found: Combination, offset: float, account: dict) -> Estimate:
    """Standard errors from the derivative along the probes. The offset costs one freedom."""
    noise, n, probed = seen.noise, seen.graph.n, seen.filters.probes
    moved = found.push
    trace = noise.variance * float(np.mean([block_sum(noise.weigh(row**2)) for row in moved]))
    square = (seen.y - found.signal) ** 2
    divergence = noise.variance * np.mean(probed.eps * moved, axis=0)
    sure = square - noise.weigh(np.ones_like(square)) + 2 * divergence
    variance = noise.variance * np.mean(moved**2, axis=0)
    probe_se = float(np.sqrt(8 * trace / probed.count))
    risk = found.risk + (2 * noise.mean(n) if offset else 0.0)
    risk_se = float(noise.risk_se(square, trace, divergence))
    return Estimate(found.signal + offset, risk, risk_se, probe_se, sure, variance, False, account)


def _of_counts(y: np.ndarray, noise: Noise, found: CountsEstimate, account: dict) -> Estimate:
    """Its divergence is exact, node by node: posterior variance over noise variance."""
    own, square = noise.weigh(np.ones(len(y))), (y - found.signal) ** 2
    se = float(noise.risk_se(square, float(block_sum(found.variance**2)), found.variance))
    sure = square - own + 2 * found.variance
    account = {
        **account,
        "divergence": float(block_sum(found.variance / own)),
        "features": {"active": found.active, "coordinates": found.coordinates},
    }
    return Estimate(found.signal, _counts_risk(y, noise, found), se, 0.0, sure, found.variance, True, account)
