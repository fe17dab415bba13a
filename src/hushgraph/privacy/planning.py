"""plan_release: what an epsilon buys, before any budget is spent. From public inputs only: it never sees the data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

import numpy as np

from hushgraph._progress import nth
from hushgraph._validation import checked_count, checked_number, checked_seed, choose
from hushgraph.datasets import city, hotspot_counts
from hushgraph.estimators import ColumnTies, MethodName, denoise
from hushgraph.graphs import Graph, checked_graph
from hushgraph.privacy.calibration import Mechanism, checked_delta, mechanism_sigma
from hushgraph.privacy.guarantee import MODERATE, checked_guarantee
from hushgraph.privacy.lattice import checked_lattice_sigma
from hushgraph.privacy.releases import simulate
from hushgraph.privacy.sensitivity import Adjacency, checked_caps, checked_neighbouring, squared_sensitivity

PLANNED_EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class PlanRow:
    """One epsilon: its noise, and the error to expect on the generated counts.

    Parameters
    ----------
    epsilon, sigma : float
        The guarantee and its noise.
    error_noisy, error_denoised : float
        Error per value before and after denoising (root mean square).
    snr_noisy, snr_denoised : float
        The same in dB over all values; NaN if all counts are 0.
    smallest_region : int
        Number of values that a region of average density must hold for its total to be reliable.
    smallest_total : float
        Number of events in that region.
    """

    epsilon: float
    sigma: float
    error_noisy: float
    error_denoised: float
    snr_noisy: float
    snr_denoised: float
    smallest_region: int
    smallest_total: float


@dataclass(frozen=True)
class Plan:
    """The result of `plan_release`; print it.

    Parameters
    ----------
    delta : float
        delta of every row.
    sensitivity_squared : int
        Exact square of the sensitivity that the caps enforce.
    n_values : int
        Number of values of the map: nodes times windows.
    expected_total : float
        Number of events that were generated.
    reliable : float
        Relative standard error at which a total counts as reliable.
    rows : tuple of PlanRow
        One for each epsilon.
    """

    delta: float
    sensitivity_squared: int
    n_values: int
    expected_total: float
    reliable: float
    rows: tuple[PlanRow, ...]

    def __str__(self) -> str:
        head = (
            f"delta = {self.delta:g}, sensitivity² = {self.sensitivity_squared}, {self.n_values:,} values, about "
            f"{self.expected_total:,.0f} events (generated counts; the data was not looked at)\n"
            f"{'epsilon':>8}{'sigma':>9}{'error noisy':>13}{'denoised':>10}{'SNR noisy':>12}{'denoised':>10}"
            f"   total within {self.reliable:.0%} needs"
        )
        lines = [
            f"{row.epsilon:>8g}{row.sigma:>9.3g}{row.error_noisy:>13.2f}{row.error_denoised:>10.2f}{_decibels(row.snr_noisy):>12}"
            f"{_decibels(row.snr_denoised):>10}   {row.smallest_region:,} values ({row.smallest_total:,.0f} events)"
            + (" - more than there are" if row.smallest_region > self.n_values else "")
            + (" - hardly protects anybody" if row.epsilon > MODERATE else "")
            for row in self.rows
        ]
        return "\n".join([head, *lines])


def plan_release(
    graph: Graph | None = None,
    *,
    epsilon: float | Iterable[float] = PLANNED_EPSILONS,
    delta: float = 1e-6,
    adjacency: Adjacency | None = None,
    max_nodes: int | None = None,
    max_per_node: int | None = None,
    max_cells: int | None = None,
    max_per_cell: int | None = None,
    n_windows: int | None = None,
    expected_total: float | None = None,
    reliable: float = 0.1,
    mechanism: Mechanism = "analytic",
    method: MethodName = "auto",
    n_draws: int | None = None,
    seed: int = 0,
) -> Plan:
    """Return noise and expected error for each epsilon, on generated counts on your graph, before anything is charged.

    Parameters
    ----------
    graph : Graph, optional
        The public graph. Without one, or without coordinates, a generated city of the same size stands in.
    epsilon : float or several
        Above 0. Any size can be planned; `release` needs `weak_guarantee=True` above 10.
    delta : float
        At most 1/1000.
    adjacency : {"add-remove", "change-one"}
        Which data are neighbours.
    max_nodes, max_per_node : int
        The bound on one unit, without windows.
    max_cells, max_per_cell : int
        The bound on one unit, with `n_windows`.
    n_windows : int, optional
        Number of time windows, if there are any.
    expected_total : float, optional
        A public guess of the number of events; default 3 per value.
    reliable : float
        Relative standard error at which a total counts as reliable.
    mechanism : {"analytic", "classical"}
        As in `release`.
    method : str
        Method of `denoise`.
    n_draws : int, optional
        Generated maps per epsilon that the errors are averaged over; 3, or 1 with windows, which take longer.
    seed : int
        Seed of the generated counts and of their noise.

    Returns
    -------
    Plan
        One row for each epsilon.

    Examples
    --------
    >>> import hushgraph as hg
    >>> graph = hg.datasets.city(600)
    >>> plan = plan_release(graph, epsilon=[0.5, 1], adjacency="add-remove", max_nodes=4, max_per_node=1, expected_total=3000)
    >>> [round(row.sigma, 2) for row in plan.rows], all(row.error_denoised < row.error_noisy for row in plan.rows)
    ([16.12, 8.45], True)
    """
    caps = checked_caps(
        n_windows is not None, max_nodes=max_nodes, max_per_node=max_per_node, max_cells=max_cells, max_per_cell=max_per_cell
    )
    most, most_each = caps.values()
    squared = squared_sensitivity(most, most_each, checked_neighbouring(adjacency))
    epsilons = epsilon if isinstance(epsilon, Iterable) and not isinstance(epsilon, str) else [epsilon]
    guarantees = [checked_guarantee(one, delta, weak_guarantee=True) for one in epsilons]
    columns = 1 if n_windows is None else checked_count("n_windows", n_windows, 1)
    place = city() if graph is None else checked_graph(graph)
    stage = place if place.coords is not None else city(min(max(place.n, 100), 20_000), seed=checked_seed(seed))
    n_values = place.n * columns
    total = 3.0 * n_values if expected_total is None else expected_total
    total = checked_number("expected_total", total, "a positive expected number of events", above=0)
    reliable = checked_number("reliable", reliable, "a relative error between 0 and 1", above=0, below=1)
    choose("method", method, get_args(MethodName))
    draws = checked_count("n_draws", n_draws, 1) if n_draws is not None else 3 if n_windows is None else 1
    truths = [_generated(stage, columns, total * stage.n / place.n, seed + draw) for draw in range(draws)]
    rows = []
    for k, one in enumerate(guarantees):
        with nth(k, len(guarantees)):
            rows.append(_row(stage, truths, *one, squared, mechanism, method, total / n_values, reliable))
    return Plan(checked_delta(delta), squared, n_values, total, reliable, tuple(rows))


def _decibels(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1f} dB"


def _generated(graph: Graph, columns: int, total: float, seed: int) -> np.ndarray:
    """Return counts like pickups; over windows, each place's events are spread evenly at random."""
    counts = hotspot_counts(graph, total=total, seed=seed)
    if columns == 1:
        return counts
    rng = np.random.default_rng(seed)
    return rng.multinomial(counts.astype(np.int64), np.full(columns, 1 / columns)).astype(float)


def _row(
    graph: Graph,
    truths: list[np.ndarray],
    epsilon: float,
    delta: float,
    squared: int,
    mechanism: Mechanism,
    method: MethodName,
    density: float,
    reliable: float,
) -> PlanRow:
    """Return the row of one epsilon; `density` is the expected number of events per value."""
    sigma = checked_lattice_sigma(mechanism_sigma(mechanism, epsilon=epsilon, delta=delta, sensitivity_squared=squared))
    squares = []
    for draw, truth in enumerate(truths):
        noisy = simulate(graph, truth, epsilon=epsilon, delta=delta, sensitivity_squared=squared, mechanism=mechanism, seed=draw)
        columns: ColumnTies = "path" if truth.ndim == 2 else "separate"
        with nth(draw, len(truths)):
            signal = denoise(graph, noisy, method=method, columns=columns, nonnegative=True).signal
        squares.append([np.mean(part**2) for part in (truth, noisy.values - truth, signal - truth)])
    energy, noise, error = np.mean(squares, axis=0)
    before, after = (10 * math.log10(energy / part) if energy > 0 and part > 0 else math.nan for part in (noise, error))
    region = max(1, math.ceil((sigma / (reliable * density)) ** 2))  # sigma sqrt(m) = reliable * density * m
    return PlanRow(epsilon, sigma, math.sqrt(noise), math.sqrt(error), before, after, region, region * density)
