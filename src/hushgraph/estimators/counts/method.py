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

COUNTS_FREEDOM = 5  # parameters of its prior


def denoise_counts(problem: Problem, settings: Settings, timings: dict[str, float]) -> tuple[list[Assessed], dict[str, Any]]:
    """Return the empirical-Bayes estimate of every signal, and details of all of them."""
    graph, noise, planes = problem.graph, problem.noise, problem.planes.astype(np.float64, copy=False)
    account, estimates = {"why": "the empirical-Bayes estimate, as asked"}, []
    for k, y in enumerate(planes):
        with nth(k + 1, len(planes) + 1):
            estimates.append(assessed_counts(y, noise, estimate_counts(graph, y, noise, timings), account))
    return estimates, {"n_probes": None, "noisy_variance": problem.per_signal(rowwise_variances(planes))}


def estimate_counts(
    graph: Graph, y: np.ndarray, noise: Noise, timings: dict[str, float], done: float = 0.0, guides: Any = None, passes: int = 2
) -> CountsEstimate:
    """Return the estimate, or raise an InputError that says why the graph does not have one."""
    reason = obstacle_to_counts(graph)
    if reason is not None:
        raise InputError(Sentence("{method='counts'} cannot be used here: {}; use {method='auto'}", reason))
    with timed(timings, "counts", done, 1.0):
        sigma = np.sqrt(noise.variance) if noise.per_node is None else noise.per_node
        return counts_estimate(graph, y, sigma, guides=guides, passes=passes)


def optimism_of(noise: Noise, counts: CountsEstimate) -> float:
    """Return what the fitted weights and the prior of `counts` cost."""
    return 2 * noise.mean(len(counts.signal)) * (counts.active + COUNTS_FREEDOM)


def assessed_counts(y: np.ndarray, noise: Noise, counts: CountsEstimate, account: dict[str, Any]) -> Assessed:
    """Return `counts` with its risk. Its divergence is exact, node by node: posterior variance over noise variance."""
    divergence = float(block_sum(counts.variance / noise.weigh(np.ones(len(y)))))
    account = {**account, "divergence": divergence, "features": {"active": counts.active, "coordinates": counts.coordinates}}
    estimate = Estimate(
        signal=counts.signal,
        sure=counts.sure,
        divergence=divergence,
        jacobian=counts,
        probes=EXACT,
        optimism=optimism_of(noise, counts),
        is_posterior=True,
        account=account,
    )
    return with_risk(y, estimate, noise)
