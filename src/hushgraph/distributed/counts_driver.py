"""The driver of `counts` on partitions: pilot and priors from a sample of the nodes, and the risk from sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph.core import sum_of_units, unit_above
from hushgraph.distributed import counts_tasks
from hushgraph.distributed.noise_levels import noise_sums
from hushgraph.distributed.runner import Facts, Runner
from hushgraph.distributed.store import pieces, read_array, read_manifest
from hushgraph.distributed.wavelet_tasks import Run
from hushgraph.estimators import (
    EXACT,
    START,
    Grid,
    NoisyValues,
    RiskSums,
    caution_of_parameters,
    fit_counts,
    freedom_of_counts,
    grid_between,
    obstacle_by_size,
    sample_of,
)

LEFT_OUT = ("coordinates of the nodes", "wide neighbourhoods")  # what `counts` has on one machine
STAGES = {"streets": 0.5, "features": 8.0, "second": 10.0, "finish": 2.0, "write": 0.5}  # rough shares of the time


def refuse_counts(facts: Facts) -> None:
    """Refuse `counts` on a graph that has none, or whose ghost zones are too shallow."""
    reason = obstacle_by_size(facts["n"], facts["n_edges"])
    if reason is not None:
        raise InputError(
            Sentence(
                "{method='counts'}, which {method='auto'} with {nonnegative=True} uses too, is not possible here: {}; use {method='let'}",
                reason,
            )
        )
    if facts["partitions"] > 1 and facts["degree"] < counts_tasks.LEAST_DEPTH:
        msg = "{method='counts'}, which {method='auto'} with {nonnegative=True} uses too, needs ghost zones of {} hops; those of this folder have {}; prepare it with {degree=}{} or more"
        raise InputError(Sentence(msg, counts_tasks.LEAST_DEPTH, facts["degree"], counts_tasks.LEAST_DEPTH))


def run_counts(run: Run, runner: Runner, parts: int, n: int) -> Facts:
    """Run all stages up to the signal; return risk, standard errors, divergence, what choosing costs, and an account."""
    facts = read_manifest(run.work)
    unit = unit_above(2 * facts["most_degree"] + 1)
    units = [part["units"] for part in runner.run_parts("streets", counts_tasks.add_covariates, parts, run, facts["most_degree"])]
    totals = [[sum(part[c][k] for part in units) for k in (0, 1)] for c in range(len(units[0]))]
    means = [sum_of_units(high, low, unit) / n for high, low in totals]
    nodes = sample_of(n)
    sample = None if isinstance(nodes, slice) else nodes
    noisy = _sampled_values(run, nodes)
    runner.run_parts("features", counts_tasks.make_features, parts, run, means, sample)
    first = _gathered(run, parts, "features", sample)
    fit = fit_counts(noisy, [first], START)
    runner.run_parts("second", counts_tasks.make_second, parts, run, means, sample, noisy.grid, fit)
    fit = fit_counts(noisy, [first, _gathered(run, parts, "second", sample)], fit.gamma, is_last=True)
    terms = runner.run_parts("finish", counts_tasks.write_posterior, parts, run, noisy.grid, fit)
    return _risk(run, n, terms, int(np.count_nonzero(fit.coefficients)), fit.freedom)


def _sampled_values(run: Run, nodes: Any) -> NoisyValues:
    """Return the noisy values of the sample, and the grid for all nodes."""
    y = read_array(run.signal, whole=False)
    top = max(float(y[some].max()) for some in pieces(len(y)))
    if run.sigma_file is None:
        assert run.sigma is not None
        sigma, least = np.full(len(y[nodes]), run.sigma), run.sigma
    else:
        mapped = read_array(run.sigma_file, whole=False)
        sigma, least = np.asarray(mapped[nodes], dtype=np.float64), min(float(mapped[some].min()) for some in pieces(len(mapped)))
    grid: Grid = grid_between(top, float(np.median(sigma)), least)
    return NoisyValues(np.asarray(y[nodes], dtype=np.float64), sigma, grid)


def _gathered(run: Run, parts: int, stage: str, sample: np.ndarray | None) -> np.ndarray:
    """Return the features of the sample in node order, from all partitions."""
    owned = [run.owned(part) for part in range(parts)]
    nodes = np.concatenate([one if sample is None else one[np.isin(one, sample)] for one in owned])
    features = np.concatenate([run.output(part, stage).load("sample") for part in range(parts)], axis=1)
    return np.ascontiguousarray(features[:, np.argsort(nodes)])


def _risk(run: Run, n: int, terms: list[Facts], active: int, freedom: float) -> Facts:
    """Return the risk of the estimate with its standard errors, as on one machine."""

    def total(name: str) -> float:
        return math.fsum(part[name] for part in terms)

    second, fourth = noise_sums(run, n)
    optimism = 2 * second / n * freedom_of_counts(freedom)
    sums = RiskSums(
        sure=total("sure") + optimism,
        weighted_residual=total("weighted"),
        divergence=total("divergence"),
        weighted_divergence=total("weighted_divergence"),
        trace=total("trace"),
        frobenius=total("trace"),
        noise_total=second,
        noise_fourth=fourth,
        n=n,
    )
    risk, risk_se, probe_se = map(float, sums.risk_numbers(EXACT))
    account: Facts = {"why": "the empirical-Bayes estimate, as asked", "features": {"active": active, "coordinates": False}}
    account["left_out"] = list(LEFT_OUT)
    caution = caution_of_parameters(second / n, active, freedom)
    return {
        "risk": risk,
        "risk_se": risk_se,
        "probe_se": probe_se,
        "divergence": total("freedom"),
        "caution": caution,
        "account": account,
    }
