"""Series of maps, such as the hours of a day or the months of a year: each map is guided by the others.

The guides of a map are the mean of all other maps, and the mean of those next to it in time, each weighted by inverse variance, and
denoised. Sums over all maps less the map itself make the first, and running sums the second, so that the cost grows with the number
of maps and not with its square. No guide holds the noise of the map that it guides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hushgraph._progress import between, nth, timed
from hushgraph.estimators.combined import LET_SETS, Plan, combination_of, denoise_combined
from hushgraph.estimators.counts.empirical_bayes import counts_estimate, obstacle_to_counts
from hushgraph.estimators.counts.method import denoise_counts
from hushgraph.estimators.guides.guided import Expert, guided_estimate, refuse_same_draw
from hushgraph.estimators.guides.reading import Guide
from hushgraph.estimators.let.filters import Filters
from hushgraph.estimators.problem import Direction, Problem
from hushgraph.estimators.result import Denoised
from hushgraph.estimators.risk import Assessed
from hushgraph.estimators.settings import Settings
from hushgraph.graphs import Graph
from hushgraph.wavelets import Noise

NEAR = 3  # maps on either side that are next to a map in time


def guided_series(
    problems: Sequence[Problem],
    settings: Settings,
    timings: dict[str, float],
    *,
    direction: Direction,
    joint: Sequence[Assessed | None],
) -> list[Assessed]:
    """Return the estimate of each map, guided by all others or by earlier ones.

    `problems` have one signal each, on one graph; `joint` are estimates of all maps at once, where there are any: guided estimates are
    averaged with these, and else with the estimates of each map alone.
    """
    sums = SeriesSums(problems)
    estimates = []
    for k, problem in enumerate(problems):
        with nth(k, len(problems)):
            with between(0.0, 0.3):
                base = joint[k] or _alone(problem, settings, timings)
            y = problem.planes[0].astype(np.float64)
            refuse_same_draw(problem.guides, y, base)
            with timed(timings, "noise of guides", 0.3, 0.5):
                guides = []
                for j, (name, values, sigma, made_from) in enumerate(sums.around(k, direction)):
                    with nth(j, 2):
                        guides.append(
                            Guide(name, _quick_map(problem.graph, values, Noise.of(sigma), settings), made_from=made_from)
                        )
            guided = replace(problem, guides=(*guides, *problem.guides))
            expert = Expert("alone" if joint[k] is None else "joint", base)
            with between(0.5, 1.0):
                estimates.append(guided_estimate(guided, settings, y, expert, timings) if guided.guides else base)
    return estimates


def _alone(problem: Problem, settings: Settings, timings: dict[str, float]) -> Assessed:
    """Return the estimate of a map without guides."""
    family = denoise_counts if settings.about.family == "counts" else denoise_combined
    (estimate,), _ = family(replace(problem, guides=()), settings, timings)
    return estimate


class SeriesSums:
    """Sums of maps up to each place of the series, weighted by inverse variance; sums of stretches are differences of them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        shape = problems[0].planes[0].shape
        precisions = [np.broadcast_to(1 / np.square(np.asarray(problem.sigma, dtype=np.float64)), shape) for problem in problems]
        weighted = [precision * problem.planes[0] for precision, problem in zip(precisions, problems, strict=True)]
        self.maps = np.concatenate([np.zeros((1, *shape)), np.cumsum(weighted, axis=0)])
        self.precisions = np.concatenate([np.zeros((1, *shape)), np.cumsum(precisions, axis=0)])

    def around(self, k: int, direction: Direction) -> Iterator[tuple[str, np.ndarray, Any, str]]:
        """Yield name, mean map, sigma and a description of each guide of the map number k; none has the noise of the map itself."""
        last = len(self.maps) - 1 if direction == "all" else k
        stretches = {"all other maps": (0, last), "the maps next to it": (max(k - NEAR, 0), min(k + NEAR + 1, last))}
        if direction == "past":
            stretches = {"all earlier maps": (0, k), "the maps just before": (max(k - NEAR, 0), k)}
        for name, (low, high) in stretches.items():
            count = high - low - (low <= k < high)
            if count < 1 or (name != next(iter(stretches)) and (low, high) == next(iter(stretches.values()))):
                continue
            yield name, *self._mean(low, high, k), f"{count} noisy map{'s' * (count > 1)}, combined and denoised"

    def _mean(self, low: int, high: int, without: int) -> tuple[np.ndarray, Any]:
        """Return the mean of the maps low, ..., high - 1 without one of them, and its sigma: one number if all nodes have the same."""
        sums = [part[high] - part[low] for part in (self.maps, self.precisions)]
        if low <= without < high:
            sums = [
                total - (part[without + 1] - part[without]) for total, part in zip(sums, (self.maps, self.precisions), strict=True)
            ]
        total, precision = sums
        sigma = np.sqrt(1 / precision)
        return total / precision, float(sigma[0]) if np.ptp(precision) <= 1e-12 * precision[0] else sigma


def _quick_map(graph: Graph, y: np.ndarray, noise: Noise, settings: Settings) -> np.ndarray:
    """Return a denoised guide: a single pass of `counts` where values cannot be negative, else the combination of `let`."""
    wants_counts = settings.nonnegative or settings.method == "counts"
    if wants_counts and obstacle_to_counts(graph) is None:
        return counts_estimate(graph, y, np.sqrt(noise.variance) if noise.per_node is None else noise.per_node, passes=1).signal
    filters = Filters.of(graph, noise, n_probes=settings.n_probes, law=settings.law, seed=settings.seed, like=y)
    signal = combination_of(filters, y, noise, Plan(LET_SETS, False, "a guide"), {}).signal
    return np.maximum(signal, 0.0) if wants_counts else signal


def columns_of_joint(result: Denoised, shape: tuple[int, ...]) -> Iterator[Assessed]:
    """Yield the estimate of each column from a result of all columns at once; what choosing cost is shared evenly."""
    terms, count = result.node_risk, shape[1]
    sure, variance = terms.sure.reshape(shape), terms.variance.reshape(shape)
    optimism = (result.risk - sure.sum()) / count
    for k in range(count):
        yield Assessed(
            signal=np.ascontiguousarray(result.signal[:, k], dtype=np.float64),
            risk=float(sure[:, k].sum() + optimism),
            risk_se=float(result.risk_se / np.sqrt(count)),
            probe_se=float(result.probe_se / np.sqrt(count)),
            sure=np.ascontiguousarray(sure[:, k]),
            variance=np.ascontiguousarray(variance[:, k]),
        )
