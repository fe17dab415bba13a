"""The method `counts`: the empirical-Bayes estimate with its risk."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph._progress import nth, timed
from hushgraph.core import block_sum, rowwise_variances
from hushgraph.estimators.counts.empirical_bayes import CountsEstimate, counts_estimate, obstacle_to_counts
from hushgraph.estimators.problem import Problem
from hushgraph.estimators.risk import EXACT, Assessed, Estimate, with_risk
from hushgraph.estimators.settings import Settings
from hushgraph.graphs import Graph
from hushgraph.wavelets import Noise

# Measured on generated maps: what pilot and two Gammas cost, in degrees of freedom; and which share of what the free distributions cost
# is left, because the pilot changes too when they do.
COUNTS_FREEDOM, SHARE_OF_PRIOR = 3.0, 0.8
PARAMETERS = 5  # of the two Gammas; where estimates are compared, each counts as one degree of freedom, and so does each feature


def denoise_counts(problem: Problem, settings: Settings, timings: dict[str, float]) -> tuple[list[Assessed], dict[str, Any]]:
    """Return the empirical-Bayes estimate of every signal, and details of all of them."""
    graph, noise, planes = problem.graph, problem.noise, problem.planes.astype(np.float64, copy=False)
    account, estimates = {"why": "the empirical-Bayes estimate, as asked"}, []
    for k, y in enumerate(planes):
        with nth(k + 1, len(planes) + 1):
            estimates.append(assessed_counts(y, noise, estimate_counts(graph, y, noise, timings), account))
    return estimates, {"n_probes": None, "noisy_variance": problem.per_signal(rowwise_variances(planes))}


def check_counts_graph(graph: Graph) -> None:
    """Raise an InputError that says why a graph does not have an estimate for counts, if it does not have one."""
    reason = obstacle_to_counts(graph)
    if reason is not None:
        raise InputError(Sentence("{method='counts'} cannot be used here: {}; use {method='auto'}", reason))


def estimate_counts(
    graph: Graph, y: np.ndarray, noise: Noise, timings: dict[str, float], done: float = 0.0, guides: Any = None, passes: int = 2
) -> CountsEstimate:
    """Return the estimate, or raise an InputError that says why the graph does not have one."""
    check_counts_graph(graph)
    with timed(timings, "counts", done, 1.0):
        sigma = np.sqrt(noise.variance) if noise.per_node is None else noise.per_node
        return counts_estimate(graph, y, sigma, guides=guides, passes=passes)


def optimism_of(noise: Noise, counts: CountsEstimate) -> float:
    """Return what fitting the pilot and the priors of `counts` costs."""
    return 2 * noise.mean(len(counts.signal)) * freedom_of_counts(counts.freedom)


def freedom_of_counts(freedom_of_prior: float) -> float:
    """Return the degrees of freedom that fitting `counts` costs, from those of the free distributions of its prior."""
    return COUNTS_FREEDOM + SHARE_OF_PRIOR * freedom_of_prior


def caution_of(noise: Noise, counts: CountsEstimate) -> float:
    """Return what is added to the risk of `counts` when it is compared with other estimates, so that a close one is not preferred by chance."""
    return caution_of_parameters(noise.mean(len(counts.signal)), counts.active, counts.freedom)


def caution_of_parameters(mean_variance: float, active: int, freedom_of_prior: float) -> float:
    """Return `caution_of` from the mean variance of the noise, the number of features and the degrees of freedom of the prior."""
    return 2 * mean_variance * max(active + PARAMETERS - freedom_of_counts(freedom_of_prior), 0.0)


def counts_account(counts: CountsEstimate, verdict: str | None) -> dict[str, str]:
    """Return what the account says about `counts`: what was decided, and why values on a GPU were denoised on the CPU, if they were."""
    place = None if counts.on_host is None else f"computed on the CPU, with the same result as from NumPy arrays: {counts.on_host}"
    parts = [part for part in (verdict, place) if part is not None]
    return {"counts": "; ".join(parts)} if parts else {}


def assessed_counts(y: np.ndarray, noise: Noise, counts: CountsEstimate, account: dict[str, Any]) -> Assessed:
    """Return `counts` with its risk. Its divergence is exact, node by node: posterior variance over noise variance."""
    divergence = float(block_sum(counts.variance / noise.weigh(np.ones_like(counts.variance))))
    account = {
        **account,
        **counts_account(counts, account.get("counts")),
        "divergence": divergence,
        "features": {"active": counts.active, "coordinates": counts.coordinates},
    }
    estimate = Estimate(
        signal=counts.signal,
        sure=counts.sure,
        divergence=divergence,
        jacobian=counts,
        probes=EXACT,
        optimism=optimism_of(noise, counts),
        caution=caution_of(noise, counts),
        posterior=counts.posterior,
        account=account,
    )
    return with_risk(y, estimate, noise)
