"""Series of maps, such as the hours of a day or the months of a year: each map is guided by the others.

The guides of a map are the mean of all other maps, and the mean of those next to it in time, each weighted by inverse variance, and
denoised. The first is made of the sum of the maps before and the sum of those after it, the second of at most six maps, so that the cost
grows with the number of maps and not with its square. No guide holds the noise of the map that it guides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hushgraph._progress import between, nth, timed
from hushgraph.estimators.combined import LET_SETS, Plan, combination_of
from hushgraph.estimators.counts.empirical_bayes import obstacle_to_counts
from hushgraph.estimators.counts.method import estimate_counts
from hushgraph.estimators.guides.guided import Expert, estimates_alone, guided_estimate, refuse_same_draw
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
                base = joint[k] or estimates_alone(problem, settings, timings)[0][0]
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


class SeriesSums:
    """Maps weighted by inverse variance, and their sums before and after each place of the series; nothing is subtracted."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.precisions = [1 / np.square(np.asarray(problem.sigma, dtype=np.float64)) for problem in problems]
        self.maps = [precision * problem.planes[0] for precision, problem in zip(self.precisions, problems, strict=True)]
        self.before, self.after = ([list(_running(part[::step])) for part in (self.maps, self.precisions)] for step in (1, -1))

    def around(self, k: int, direction: Direction) -> Iterator[tuple[str, np.ndarray, Any, str]]:
        """Yield name, mean map, sigma and a description of each guide of the map number k; none has the noise of the map itself."""
        last = len(self.maps) if direction == "all" else k
        names = ("all other maps", "the maps next to it") if direction == "all" else ("all earlier maps", "the maps just before")
        count, near = last - (k < last), [j for j in range(max(k - NEAR, 0), min(k + NEAR + 1, last)) if j != k]
        if count:
            yield names[0], *_mean(*self._all_but(k, last)), _origin(count)
        if 0 < len(near) < count:
            yield names[1], *_mean(sum(self.maps[j] for j in near), sum(self.precisions[j] for j in near)), _origin(len(near))

    def _all_but(self, k: int, last: int) -> tuple[Any, Any]:
        """Return the sums of maps and precisions without the map number k, up to the map number `last`."""
        if last == k:
            return self.before[0][k], self.before[1][k]
        later = len(self.maps) - 1 - k
        return self.before[0][k] + self.after[0][later], self.before[1][k] + self.after[1][later]


def _running(parts: Sequence[Any]) -> Iterator[Any]:
    """Yield 0, and the sums of the first, the first two, ... of the parts."""
    total: Any = 0.0
    yield total
    for part in parts:
        total = total + part
        yield total


def _mean(total: Any, precision: Any) -> tuple[np.ndarray, Any]:
    """Return the mean map, and its sigma: one number, or one for each node."""
    sigma = np.sqrt(1 / precision)
    return total / precision, sigma if np.ndim(sigma) else float(sigma)


def _origin(count: int) -> str:
    """Return what a guide of so many maps was made from."""
    return f"{count} noisy map{'s' * (count > 1)}, combined and denoised"


def _quick_map(graph: Graph, y: np.ndarray, noise: Noise, settings: Settings) -> np.ndarray:
    """Return a denoised guide: a single pass of `counts` where values cannot be negative, else the combination of `let`."""
    wants_counts = settings.nonnegative or settings.method == "counts"
    if wants_counts and obstacle_to_counts(graph) is None:
        return estimate_counts(graph, y, noise, {}, passes=1).signal
    filters = Filters.of(graph, noise, n_probes=settings.n_probes, law=settings.law, seed=settings.seed, like=y)
    signal = combination_of(filters, y, noise, Plan(LET_SETS, False, "a guide"), {}).signal
    return np.maximum(signal, 0.0) if wants_counts else signal


def columns_of_joint(result: Denoised, values: np.ndarray, sigma: Any) -> Iterator[Assessed]:
    """Yield the estimate of each column from a result of all columns at once.

    What choosing cost is shared by the variance of the noise, and standard errors by that of the residual, on which they depend.
    """
    terms, shape = result.node_risk, values.shape
    sure, variance, divergence = (part.reshape(shape) for part in (terms.sure, terms.variance, terms.divergence))
    noise = np.square(np.broadcast_to(np.reshape(sigma, (-1, 1)) if np.ndim(sigma) == 1 else sigma, shape))
    residual = np.sum(noise * (values - result.signal) ** 2, axis=0)
    shares = np.sum(noise, axis=0) / np.sum(noise)
    errors = np.sqrt(residual / residual.sum()) if residual.sum() > 0 else np.sqrt(shares)
    for k, (share, error) in enumerate(zip(shares.tolist(), errors.tolist(), strict=True)):
        yield Assessed(
            signal=np.ascontiguousarray(result.signal[:, k], dtype=np.float64),
            risk=float(sure[:, k].sum() + share * (result.risk - sure.sum())),
            risk_se=float(result.risk_se * error),
            probe_se=float(result.probe_se * np.sqrt(share)),
            sure=np.ascontiguousarray(sure[:, k]),
            variance=np.ascontiguousarray(variance[:, k]),
            divergence=np.ascontiguousarray(divergence[:, k]),
            probe_count=terms.probe_counts[0],
        )
