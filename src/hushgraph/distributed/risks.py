"""The risk of an estimate from the sums that the tasks of its last stage return."""

from __future__ import annotations

import math

import numpy as np

from hushgraph.distributed.noise_levels import noise_sums
from hushgraph.distributed.runner import Facts
from hushgraph.distributed.wavelet_tasks import Run
from hushgraph.estimators import ProbeUse, RiskSums, freedom_of_thresholds, sure_of, within_gain


def risk_of(run: Run, n: int, terms: list[Facts], fitted: Facts) -> Facts:
    """Return risk, standard errors and divergence of an estimate.

    `fitted` holds the divergence, the optimism and the offset of fitted weights; it is empty for methods that threshold wavelets.
    """

    def total(name: str) -> float:
        return math.fsum(part[name] for part in terms)

    variance, (second, fourth) = run.variance, noise_sums(run, n)
    divergence = fitted["divergence"] if fitted else math.fsum(math.fsum(part["divergence"]) for part in terms)
    divergence += second / n / variance if run.offset else 0.0
    sure = sure_of(total("residual"), second, variance * divergence)
    optimism = fitted["optimism"] if fitted else within_gain(_cost_of_thresholds(run, second / n, terms), sure, second)
    level_cost = 2 * second / n if fitted.get("offset") else 0.0
    trace, turned = (
        variance * math.fsum(math.fsum(part[name]) for part in terms) / run.kept_probes for name in ("traces", "turned")
    )
    sums = RiskSums(
        sure=sure + optimism + level_cost,
        weighted_residual=total("weighted"),
        divergence=variance * divergence,
        weighted_divergence=turned,
        trace=trace,
        frobenius=trace,
        noise_total=second,
        noise_fourth=fourth,
        n=n,
    )
    risk, risk_se, probe_se = map(float, sums.risk_numbers(ProbeUse("probes", run.n_probes, run.law, has_diagonal=not fitted)))
    return {"risk": risk, "risk_se": risk_se, "probe_se": probe_se, "divergence": divergence}


def _cost_of_thresholds(run: Run, mean_variance: float, terms: list[Facts]) -> float:
    """Return what choosing the threshold of each scale by SURE costs."""
    sums = np.array([math.fsum(column) for column in zip(*(part["weight_sums"] for part in terms), strict=True)])
    return 2 * mean_variance * float(np.sum(freedom_of_thresholds(run.variance / mean_variance * sums, beta=run.exponent)))
