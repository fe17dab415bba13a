"""Guided estimates: what guides say about a signal, in three ways, averaged with the estimate without guides by SURE.

    linear     y less a linear prediction is denoised on the graph, with local regression on the prediction among the candidates
    bent       y less a prediction with kinks is denoised on the graph whose edges are weak where the prediction jumps
    counts     for values that cannot be negative: empirical Bayes with the guides and the prediction as covariates

A prediction depends on y through its few coefficients alone, which are charged for, so that SURE of each estimate is that of the part
that is denoised. Which of the three is best depends on the signal, and SURE tells. Where no term of a prediction is worth its cost, the
result is that without guides, bit by bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from hushgraph._errors import InputError
from hushgraph._progress import between, nth, timed
from hushgraph.core import block_dots, block_sum, sum_of_rows
from hushgraph.estimators.combined import Plan, combination_of, denoise_combined
from hushgraph.estimators.counts.empirical_bayes import obstacle_to_counts
from hushgraph.estimators.counts.method import assessed_counts, denoise_counts, estimate_counts
from hushgraph.estimators.guides.blending import blend_weights
from hushgraph.estimators.guides.prediction import Prediction, Relation, predict
from hushgraph.estimators.guides.reading import Guide
from hushgraph.estimators.let.filters import Filters
from hushgraph.estimators.problem import Problem
from hushgraph.estimators.risk import IMPOSSIBLE, Assessed, Posterior, average
from hushgraph.estimators.settings import Settings
from hushgraph.graphs import Graph

ALONE_TIME = 0.4  # share of the time that the estimate without guides takes, roughly
WEAKEST_EDGE = 0.05  # of its weight, across the largest jumps of a prediction
MOST_COVARIATES = 3  # guides that are covariates of `counts` by themselves
# For each estimate that guided ones are compared with: the weights of all where their risks say nothing, up to a common factor, and the
# caution of `blend_weights`, in noise variances. It is larger in a series, whose maps may be nearly empty: their risks say little.
PRIORS = {
    "alone": ({"alone": 3.0, "counts": 3.0, "linear": 1.0, "bent": 1.0}, 30.0),
    "joint": ({"joint": 2.0, "counts": 2.0, "linear": 1.0, "bent": 1.0}, 100.0),
}
EVIDENCE = 50.0  # an estimate has half of its prior weight if its prediction explains this sum of squares, in noise variances
IMPOSSIBLE_GUIDED = 5.0  # standard errors below 0: no estimate with guides that are independent of the noise has such a risk
IMPOSSIBLE_WORDS = (
    "was left out: with the guides the squared error is estimated far below 0, which cannot be; a guide holds the noise of this signal, "
    "or sigma is too large"
)
FEW_VALUES = 20  # a map with no more different values cannot hold the noise of another
SAME = 1e-9  # a correlation this close to 1 is that of a map with itself


@dataclass(frozen=True, eq=False)
class Expert:
    """One of the estimates that are averaged; `trust` scales its prior weight."""

    name: str
    estimate: Assessed
    trust: float = 1.0


def denoise_guided(problem: Problem, settings: Settings, timings: dict[str, float]) -> tuple[list[Assessed], dict[str, Any]]:
    """Return the guided estimate of every signal, and details of all of them."""
    with between(0.0, ALONE_TIME):
        alone, details = estimates_alone(problem, settings, timings)
    estimates = []
    for k, (y, estimate) in enumerate(zip(problem.planes.astype(np.float64, copy=False), alone, strict=True)):
        refuse_same_draw(problem.guides, y, estimate)
        with between(ALONE_TIME, 1.0), nth(k, len(alone)):
            estimates.append(guided_estimate(problem, settings, y, Expert("alone", estimate), timings))
    return estimates, details


def estimates_alone(problem: Problem, settings: Settings, timings: dict[str, float]) -> tuple[list[Assessed], dict[str, Any]]:
    """Return the estimate of every signal without guides, and details of all of them."""
    family = denoise_counts if settings.about.family == "counts" else denoise_combined
    return family(replace(problem, guides=()), settings, timings)


def guided_estimate(problem: Problem, settings: Settings, y: np.ndarray, base: Expert, timings: dict[str, float]) -> Assessed:
    """Return the average of the estimate without guides and the guided ones by their risks; `base` is the former."""
    without = base.estimate
    with timed(timings, "guides", 0.0, 0.05):
        values = [guide.values for guide in problem.guides]
        linear, bent = (predict(y, values, problem.noise, kinks=kinks) for kinks in (False, True))
    with between(0.05, 1.0):
        experts = [base, *_experts(problem, settings, y, linear, bent, timings)]
    gains = np.maximum(linear.gains, bent.gains)
    if len(experts) == 1:
        return replace(without, account={**without.account, "guides": accounts_of(problem.guides, gains, RemovedRisk(0.0))})
    estimate, weights = average_of_least_risk(y, problem, experts)
    if is_impossible(estimate, without):
        return replace(without, account={**without.account, "guides": accounts_of(problem.guides, gains, None)})
    account = {
        **without.account,
        "guides": accounts_of(problem.guides, gains, RemovedRisk.of(without, estimate)),
        "experts": {expert.name: float(weight) for expert, weight in zip(experts, weights, strict=True)},
    }
    return replace(estimate, account=account)


# ---- the guided estimates ------------------------------------------------------------------------------------------


def _experts(
    problem: Problem, settings: Settings, y: np.ndarray, linear: Prediction, bent: Prediction, timings: dict[str, float]
) -> list[Expert]:
    """Return the estimates that use a prediction, as far as there is one."""
    graph, noise, experts = problem.graph, problem.noise, []
    if settings.about.family == "combined":
        plan = Plan.of(graph, settings)
        probes: dict[str, Any] = {"n_probes": settings.n_probes, "law": settings.law, "seed": settings.seed, "like": y}
        if linear.n_terms:
            local = replace(plan, sets={name: (*groups, "local") for name, groups in plan.sets.items()})
            with nth(0, 3):
                filters = Filters.of(graph, noise, **probes)
                estimate = combination_of(filters, y, noise, local, timings, prediction=linear.signal)
            experts.append(_expert("linear", estimate, linear))
        if bent.n_terms:
            with nth(1, 3):
                filters = Filters.of(reweighted_graph(graph, bent.signal), noise, **probes)
                estimate = combination_of(filters, y, noise, plan, timings, prediction=bent.signal)
            experts.append(_expert("bent", estimate, bent))
    wants_counts = settings.method == "counts" or (settings.method == "auto" and settings.nonnegative)
    if wants_counts and bent.n_terms and obstacle_to_counts(graph) is None:
        covariates = np.stack([*(problem.guides[k].values for k in bent.chosen[:MOST_COVARIATES]), bent.signal])
        with nth(2, 3):
            counts = estimate_counts(graph, y, noise, timings, guides=covariates)
        experts.append(_expert("counts", assessed_counts(y, noise, counts, {}), bent))
    return experts


def _expert(name: str, estimate: Assessed, prediction: Prediction) -> Expert:
    """Return an estimate that uses a prediction: its risk with what the coefficients cost, and trust by what the prediction explains."""
    charged = replace(estimate, risk=estimate.risk + 2 * prediction.cost)
    return Expert(name, charged, trust_in(prediction.relation))


def trust_in(relation: Relation) -> float:
    """Return the factor of the prior weight of an estimate: what its prediction explains."""
    return relation.explained / (relation.explained + EVIDENCE)


def reweighted_graph(graph: Graph, prediction: np.ndarray) -> Graph:
    """Return the graph with edges that are weak where the prediction jumps.

    The factor of an edge is exp(-d^2 / 2 m), d the difference of the prediction along it and m the mean of d^2 over all edges.
    """
    adjacency = graph.adjacency
    rows = np.repeat(np.arange(graph.n), np.diff(adjacency.indptr))
    square = (prediction[rows] - prediction[adjacency.indices]) ** 2
    factor = edge_factors(square, float(square.mean()) if len(square) else 0.0)
    return Graph.from_scipy(sparse.csr_array((adjacency.data * factor, adjacency.indices, adjacency.indptr), shape=adjacency.shape))


def edge_factors(square: np.ndarray, mean: float) -> np.ndarray:
    """Return the factors of edges from squared differences of the prediction along them, and the mean of these over all edges."""
    return np.maximum(np.exp(-square / (2 * mean)), WEAKEST_EDGE) if mean > 0 else np.ones(len(square))


# ---- their average -------------------------------------------------------------------------------------------------


def average_of_least_risk(y: np.ndarray, problem: Problem, experts: list[Expert]) -> tuple[Assessed, np.ndarray]:
    """Return the average of the estimates with the least risk, and the weights."""
    parts, noise = [expert.estimate for expert in experts], problem.noise
    signals, risks = np.stack([part.signal for part in parts]), np.array([part.risk for part in parts], dtype=np.float64)
    compared = np.array([part.compared_risk for part in parts], dtype=np.float64)
    apart = signals - signals[0]
    products = np.array([block_dots(apart, np.broadcast_to(row, apart.shape)) for row in apart])
    weighed = float(block_sum(noise.weigh(np.sum(apart**2, axis=0))))
    trusts = {expert.name: expert.trust for expert in experts}
    weights = weights_of_least_risk(trusts, compared, products, weighed, noise.mean(len(y)))
    mean = average(y, signals, risks, [part.risk_se for part in parts], noise, weights)
    node_variance, posterior = _variance(parts, weights, mean.signal)
    estimate = Assessed(
        signal=mean.signal,
        risk=mean.risk,
        risk_se=mean.risk_se,
        probe_se=float(weights @ [part.probe_se for part in parts]),
        sure=sum_of_rows(weights, np.stack([part.sure for part in parts])) + mean.gain,
        variance=node_variance,
        divergence=sum_of_rows(weights, np.stack([part.divergence for part in parts])),
        probe_count=min(part.probe_count for part in parts),
        posterior=posterior,
        account={},
    )
    return estimate, weights


def weights_of_least_risk(
    trusts: dict[str, float], risks: np.ndarray, products: np.ndarray, weighed: float, typical_variance: float
) -> np.ndarray:
    """Return the weights of estimates, from sums over nodes.

    Parameters
    ----------
    trusts : dict
        The factor of the prior weight of each estimate, by its name; the first is the one without guides.
    risks : (k,) array
        The risks by which they are compared.
    products : (k, k) array
        Inner products of their differences from the first.
    weighed : float
        The sum of the squares of these differences, each times the variance of the noise of its node.
    typical_variance : float
        The mean variance of the noise.

    Returns
    -------
    (k,) array
        Weights of at least 0 with sum 1.
    """
    usual_weights, caution = PRIORS[next(iter(trusts))]
    prior = np.array([usual_weights[name] * trust for name, trust in trusts.items()])
    square = np.diag(products)
    distances = np.maximum(square[:, None] + square - products - products.T, 0.0)
    # where the estimates differ the noise may be larger or smaller than on average, and so is the error of the difference of their risks
    total = float(square.sum())
    variance = weighed / total if total > 0 else typical_variance
    return blend_weights(risks, distances, prior / prior.sum(), caution * variance)


def _variance(parts: list[Assessed], weights: np.ndarray, signal: np.ndarray) -> tuple[np.ndarray, Posterior | None]:
    """Return the variance per node of an average, and the posterior of the largest part if most of the average has posteriors.

    Then it is E[(fhat - f)^2 | y], averaged over the posteriors: the variance of each, and the squared distance from its mean.
    """
    shares = np.array([weight * (part.posterior is not None) for weight, part in zip(weights, parts, strict=True)])
    if shares.sum() < 0.5:
        return sum_of_rows(weights, np.stack([part.variance for part in parts])), None
    variance = sum_of_rows(shares / shares.sum(), np.stack([part.variance + (part.signal - signal) ** 2 for part in parts]))
    return variance, parts[int(np.argmax(shares))].posterior


# ---- words and checks ----------------------------------------------------------------------------------------------


class RemovedRisk(NamedTuple):
    """The share that guides removed of the squared error without them; at least so much if `is_bound`.

    It is a bound where the error that is left is smaller than its standard error, and so is not known.
    """

    share: float
    is_bound: bool = False

    @classmethod
    def of(cls, without: Risk, estimate: Risk) -> RemovedRisk:
        """Return the share from the risks."""
        left = max(estimate.risk, estimate.risk_se)
        return cls(max(1 - left / without.risk, 0.0) if without.risk > 0 else 0.0, estimate.risk < estimate.risk_se)


class Risk(Protocol):
    """A risk with its standard error."""

    @property
    def risk(self) -> Any:
        """The estimated squared error."""

    @property
    def risk_se(self) -> Any:
        """Its standard error."""


def is_impossible(estimate: Risk, without: Risk) -> bool:
    """Return whether the risk with guides is far below 0, and that without guides is not: a guide holds the noise of the signal then."""
    return bool(estimate.risk < -IMPOSSIBLE_GUIDED * estimate.risk_se and without.risk > -IMPOSSIBLE * without.risk_se)


def accounts_of(guides: tuple[Guide, ...], gains: np.ndarray, removed: RemovedRisk | None) -> dict[str, dict[str, Any]]:
    """Return for each guide the share of the risk that it removed, in words too, and what identifies it.

    Nothing is removed (None) where the risk with the guides is impossible.
    """
    total = float(gains.sum())
    accounts: dict[str, dict[str, Any]] = {}
    for guide, gain in zip(guides, gains.tolist(), strict=True):
        share = removed.share * gain / total if removed is not None and total > 0 else 0.0
        if gain == 0:
            words = "says nothing about this signal, and was left out"
        elif removed is None:
            words = IMPOSSIBLE_WORDS
        elif share < 0.005:
            words = "helped, by how much cannot be told" if removed.is_bound else "hardly helped"
        else:
            least = "at least " * removed.is_bound
            words = f"removed {least}{share:.0%} of the squared error that was left without guides"
        name = guide.name if guide.name not in accounts else f"{guide.name} (given)"
        accounts[name] = {
            "risk_removed": share,
            "in_words": words,
            "made_from": guide.made_from,
            "sha256": list(guide.digests),
        }
    return accounts


def refuse_same_draw(guides: tuple[Guide, ...], y: np.ndarray, estimate: Assessed) -> None:
    """Refuse a guide that is the noisy signal or its denoised map, in any unit: it holds the same noise."""
    for kind, values in {"noisy map": y, "denoised map": estimate.signal}.items():
        for guide in guides:
            if len(np.unique(guide.values)) > FEW_VALUES and any(_is_same(guide.values, one) for one in looks_of(values)):
                raise same_draw_error(guide.name, kind)


def looks_of(values: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return a map as it may come back as a guide: as it is, without negative values, and in whole numbers."""
    clipped = np.maximum(values, 0.0)
    return values, clipped, np.rint(clipped)


def same_draw_error(name: str, kind: str) -> InputError:
    """Return the error for a guide that is the signal itself."""
    msg = (
        f"the guide {name!r} is the {kind} of these very values: it holds the noise that is to be removed; pass maps of "
        "other days, places or kinds"
    )
    return InputError(msg)


def _is_same(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two maps are the same up to a shift and a positive factor."""
    one, other = one - one.mean(), other - other.mean()
    size = np.sqrt((one @ one) * (other @ other))
    return bool(size > 0 and one @ other > (1 - SAME) * size)
