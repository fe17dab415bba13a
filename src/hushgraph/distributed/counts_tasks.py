"""The tasks of `counts` on partitions: features of owned nodes from the nodes around them, and posteriors.

A zone holds all nodes that a feature of an owned node sees, so each feature has the bits of one machine. Pilot and priors are fitted by
the driver to a sample of the nodes, the same as on one machine. There are no wide neighbourhoods here and no coordinates.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hushgraph.core import block_sum, count_units, unit_above
from hushgraph.distributed.ghosts import Part
from hushgraph.distributed.wavelet_tasks import Run
from hushgraph.estimators import (
    HOPS_FAR,
    HOPS_NEAR,
    CountsFit,
    Grid,
    NoisyValues,
    Surroundings,
    hop_surroundings,
    posterior_and_slope,
    street_counts,
)

LEAST_DEPTH = HOPS_NEAR + HOPS_FAR + 2  # hops of a zone: nodes near owned ones, what they see, and covariates there


def add_covariates(run: Run, part: int, most_degree: float) -> dict[str, Any]:
    """Return the sums over owned nodes of the covariates, in whole units, which add up to the same bits in any order."""
    out = run.output(part, "streets")
    if (finished := out.read_facts()) is not None:
        return finished
    zone = Part(run.work, part)
    unit = unit_above(2 * most_degree + 1)
    return out.mark_done({"units": [count_units(row[zone.owned], unit) for row in street_counts(zone.adjacency)]})


def make_features(run: Run, part: int, means: list[float], sample: np.ndarray | None) -> dict[str, Any]:
    """Write the features and gains of owned nodes and of nodes near them, and the features of owned nodes in the sample."""
    out = run.output(part, "features")
    if (finished := out.read_facts()) is not None:
        return finished
    zone = Part(run.work, part)
    surroundings, near = _surroundings(zone, means)
    features, gains = surroundings.features_and_gains(run.values(zone.nodes).astype(np.float64))
    out.save("near", near)
    out.save("values", features[:, near])
    out.save("gains", gains[:, near])
    out.save("sample", features[:, zone.owned[_sampled(zone, sample)]])
    return out.mark_done({})


def make_second(run: Run, part: int, means: list[float], sample: np.ndarray | None, grid: Grid, fit: CountsFit) -> dict[str, Any]:
    """Write the features of the posterior means of the first pass at owned nodes, and those of the sample."""
    out = run.output(part, "second")
    if (finished := out.read_facts()) is not None:
        return finished
    zone = Part(run.work, part)
    surroundings, _ = _surroundings(zone, means)
    files = run.output(part, "features")
    near, values = files.load("near"), files.load("values")
    gains = np.zeros((len(values), zone.n))
    gains[:, near] = files.load("gains")
    noisy, mu = _noisy(run, zone.nodes[near], grid), fit.mu([values])
    m, slope = np.zeros((2, zone.n))
    m[near], slope[near] = posterior_and_slope(noisy, fit, mu)
    owned = replace(surroundings, count=len(zone.owned))
    second = owned.echoes(fit.coefficients[1:], gains, slope)[:, zone.owned]
    is_owned = np.isin(near, zone.owned)
    place = np.argsort(near[is_owned])  # near lists the owned nodes first, in any order
    second *= (mu - noisy.y)[is_owned][place]
    second += owned.features(m, gains, owned.narrow)[:, zone.owned]
    out.save("values", second)
    out.save("sample", second[:, _sampled(zone, sample)])
    return out.mark_done({})


def write_posterior(run: Run, part: int, grid: Grid, fit: CountsFit) -> dict[str, Any]:
    """Write the posterior means of owned nodes, and return sums for the risk."""
    out = run.output(part, "finish")
    if (finished := out.read_facts()) is not None:
        return finished
    zone, files = Part(run.work, part), run.output(part, "features")
    near, values = files.load("near"), files.load("values")
    is_owned = np.isin(near, zone.owned)
    first = values[:, np.flatnonzero(is_owned)[np.argsort(near[is_owned])]]
    noisy = _noisy(run, zone.nodes[zone.owned], grid)
    m, v = fit.posterior(noisy, fit.mu([first, run.output(part, "second").load("values")]))
    out.save("signal", m)
    square, variance = (noisy.y - m) ** 2, noisy.sigma**2
    sums = {
        "sure": square - variance + 2 * v,
        "weighted": variance * square,
        "divergence": v,
        "freedom": v / variance,
        "weighted_divergence": variance * v,
        "trace": v**2,
    }
    return out.mark_done({name: float(block_sum(terms)) for name, terms in sums.items()})


def _surroundings(zone: Part, means: list[float]) -> tuple[Surroundings, np.ndarray]:
    """Return the surroundings of owned nodes and of nodes near them, and these nodes, the owned ones first."""
    is_near = np.zeros(zone.n, dtype=bool)
    is_near[zone.owned] = True
    is_owned = is_near.copy()
    for _ in range(HOPS_NEAR):
        is_near |= zone.adjacency @ is_near > 0
    order = zone.layout("combinatorial").order.astype(np.int64)
    order = np.concatenate([order[is_owned[order]], order[(is_near & ~is_owned)[order]], order[~is_near[order]]])
    covariates = np.array([row / mean for row, mean in zip(street_counts(zone.adjacency), means, strict=True)])
    count = int(is_near.sum())
    return replace(hop_surroundings(zone.adjacency, order, covariates), count=count), order[:count]


def _noisy(run: Run, nodes: np.ndarray, grid: Grid) -> NoisyValues:
    """Return the noisy values of nodes, with a sigma for each."""
    sigma = np.sqrt(run.noise(nodes).weigh(np.ones(len(nodes))))
    return NoisyValues(run.values(nodes).astype(np.float64), sigma, grid)


def _sampled(zone: Part, sample: np.ndarray | None) -> np.ndarray:
    """Return the places among owned nodes of those in the sample; None means that all are."""
    nodes = zone.nodes[zone.owned]
    return np.arange(len(nodes)) if sample is None else np.flatnonzero(np.isin(nodes, sample))
