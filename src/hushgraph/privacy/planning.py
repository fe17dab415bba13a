"""plan_release: what an epsilon buys, before any budget is spent. From public inputs only: it never sees the data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph._progress import between, nth
from hushgraph._validation import checked_count, checked_number, checked_seed, choose
from hushgraph.datasets import city, hotspot_counts
from hushgraph.estimators import ColumnTies, MethodName, denoise, guided_methods
from hushgraph.graphs import Graph, Noisy, as_graph, notebook_table
from hushgraph.privacy.calibration import Mechanism, checked_delta, mechanism_sigma
from hushgraph.privacy.guarantee import LARGEST_EPSILON, MODERATE, checked_guarantee
from hushgraph.privacy.lattice import checked_lattice_sigma
from hushgraph.privacy.releases import simulate
from hushgraph.privacy.sensitivity import Adjacency, checked_caps, checked_neighbouring, squared_sensitivity

PLANNED_EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0)
MOST_EARLIER = 10_000  # maps that guide the planned one
MANY_EVENTS = 1e13  # so many that a node's share of them is its share of the expectation


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
    error_guided, snr_guided : float, optional
        The same as error_denoised and snr_denoised with earlier maps of the same kind as guides; None in a plan without `after`.
    """

    epsilon: float
    sigma: float
    error_noisy: float
    error_denoised: float
    snr_noisy: float
    snr_denoised: float
    smallest_region: int
    smallest_total: float
    error_guided: float | None = None
    snr_guided: float | None = None


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
    after : int, optional
        Number of earlier maps that are guides.
    """

    delta: float
    sensitivity_squared: int
    n_values: int
    expected_total: float
    reliable: float
    rows: tuple[PlanRow, ...]
    after: int | None = None

    def __str__(self) -> str:
        title = f"{'guided':>10}" if self.after else ""
        head = (
            f"{self._inputs}\n"
            + f"{self._guides}\n" * bool(self.after)
            + f"{'epsilon':>8}{'sigma':>9}{'error noisy':>13}{'denoised':>10}{title}{'SNR noisy':>12}{'denoised':>10}{title}"
            f"   total within {self.reliable:.0%} needs"
        )
        lines = [
            f"{row.epsilon:>8g}{row.sigma:>9.3g}{row.error_noisy:>13.2f}{row.error_denoised:>10.2f}{_error(row.error_guided)}"
            f"{_decibels(row.snr_noisy):>12}{_decibels(row.snr_denoised):>10}{_decibels(row.snr_guided):>{len(title)}}"
            f"   {self._needed(row)}"
            for row in self.rows
        ]
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        guided = ["guided"] if self.after else []
        needs = f"total within {self.reliable:.0%} needs"
        head = ["epsilon", "sigma", "error noisy", "denoised", *guided, "SNR noisy", "denoised", *guided, needs]
        rows = [
            [
                f"{row.epsilon:g}",
                f"{row.sigma:.3g}",
                *(f"{error:.2f}" for error in (row.error_noisy, row.error_denoised, row.error_guided) if error is not None),
                *(_decibels(ratio) for ratio in (row.snr_noisy, row.snr_denoised, row.snr_guided) if ratio is not None),
                self._needed(row),
            ]
            for row in self.rows
        ]
        foot = f"{self._inputs}; {self._guides}" if self.after else self._inputs
        return notebook_table(rows, title="Plan of a release", head=head, foot=foot)

    @property
    def _inputs(self) -> str:
        """What the plan was made for."""
        return (
            f"delta = {self.delta:g}, sensitivity² = {self.sensitivity_squared}, {self.n_values:,} values, about "
            f"{self.expected_total:,.0f} events (generated counts; the data was not looked at)"
        )

    @property
    def _guides(self) -> str:
        """What the column "guided" means."""
        maps = f"{self.after or 0:,} earlier maps" if self.after != 1 else "1 earlier map"
        return f"guided: with {maps} of the same kind as guides"

    def _needed(self, row: PlanRow) -> str:
        """Return the size of the smallest region with a reliable total, and what is wrong with a row."""
        return (
            f"{row.smallest_region:,} values ({row.smallest_total:,.0f} events)"
            + (" - more than there are" if row.smallest_region > self.n_values else "")
            + _warning(row.epsilon)
        )


def _warning(epsilon: float) -> str:
    """Return what is wrong with a large epsilon, in the words of releases; empty up to 3."""
    if epsilon > LARGEST_EPSILON:
        return " - protects nobody in practice, and a release refuses it"
    return " - hardly protects anybody" if epsilon > MODERATE else ""


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
    after: int | None = None,
) -> Plan:
    """Return noise and expected error for each epsilon, on generated counts on your graph, before anything is charged.

    With windows and without `after`, windows are denoised together on the product of graph and path, which is quick; the error of a release,
    where each window is guided by the others, is somewhat smaller.

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
    after : int, optional
        Number of earlier maps of the same kind, with the same epsilon, that would guide the next one; at most 10,000. They are
        generated from the same places and habits: other events with the same expected number at each node, each with its own noise.

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
    place = city() if graph is None else as_graph(graph)
    stage = place if place.coords is not None else city(min(max(place.n, 100), 20_000), seed=checked_seed(seed))
    n_values = place.n * columns
    total = 3.0 * n_values if expected_total is None else expected_total
    total = checked_number("expected_total", total, "a positive expected number of events", above=0)
    reliable = checked_number("reliable", reliable, "a relative error between 0 and 1", above=0, below=1)
    choose("method", method, get_args(MethodName))
    _check_after(after, method)
    draws = checked_count("n_draws", n_draws, 1) if n_draws is not None else 3 if n_windows is None else 1
    here = total * stage.n / place.n
    truths = [_generated(stage, columns, here, seed + draw) for draw in range(draws)]
    pasts = [None if after is None else _earlier(stage, columns, here, seed + draw, after) for draw in range(draws)]
    rows = []
    for k, one in enumerate(guarantees):
        with nth(k, len(guarantees)):
            noise = {"epsilon": one[0], "delta": one[1], "sensitivity_squared": squared, "mechanism": mechanism}
            squares = _mean_squares(stage, truths, pasts, after, noise, method)
            rows.append(_row(squares, noise, total / n_values, reliable))
    return Plan(checked_delta(delta), squared, n_values, total, reliable, tuple(rows), after)


def _check_after(after: int | None, method: str) -> None:
    """Refuse a number of earlier maps that is none, and a method that takes no guides."""
    if after is None:
        return
    checked_count("after", after, 1, MOST_EARLIER)
    if method not in guided_methods():
        able = " or ".join(map(repr, guided_methods()))
        raise InputError(Sentence("{after=} belongs to {method=}{}; got {!r}", able, method))


def _error(value: float | None) -> str:
    return "" if value is None else f"{value:>10.2f}"


def _decibels(value: float | None) -> str:
    return "" if value is None else "-" if math.isnan(value) else f"{value:.1f} dB"


def _generated(graph: Graph, columns: int, total: float, seed: int) -> np.ndarray:
    """Return counts like pickups; over windows, each place's events are spread evenly at random."""
    counts = hotspot_counts(graph, total=total, seed=seed)
    if columns == 1:
        return counts
    rng = np.random.default_rng(seed)
    return rng.multinomial(counts.astype(np.int64), np.full(columns, 1 / columns)).astype(float)


def _earlier(graph: Graph, columns: int, total: float, seed: int, count: int) -> np.ndarray:
    """Return the mean of the counts of `count` earlier maps: other events with the expected numbers of `_generated` for this seed.

    A sum of Poisson counts is Poisson, so that the mean is drawn at once.
    """
    # places and habits depend on the seed alone, so that the shares of very many events are those of the expectation
    mean = hotspot_counts(graph, total=MANY_EVENTS, seed=seed) * (total / MANY_EVENTS / columns)
    rng = np.random.default_rng((seed, 1))
    whole = count * (mean if columns == 1 else np.repeat(mean[:, None], columns, axis=1))
    return rng.poisson(whole) / count


def _mean_squares(
    graph: Graph,
    truths: list[np.ndarray],
    pasts: list[np.ndarray | None],
    after: int | None,
    noise: dict[str, Any],
    method: MethodName,
) -> np.ndarray:
    """Return the mean squares of the truth and of the errors: noisy, denoised and, with earlier maps, guided; means over the draws."""
    squares = []
    for draw, (truth, past) in enumerate(zip(truths, pasts, strict=True)):
        has_windows = truth.ndim == 2
        # with earlier maps, windows are denoised as those of a release are; without, all at once, which is quicker
        windows = range(truth.shape[1] + 1) if has_windows and past is not None else None
        columns: ColumnTies | None = None if past is not None else "path" if has_windows else "separate"
        noisy = simulate(graph, truth, **noise, seed=draw, windows=windows)
        with nth(draw, len(truths)):
            with between(0.0, 1.0 if past is None else 0.4):
                signals = [noisy.values, denoise(graph, noisy, method=method, columns=columns, nonnegative=True).signal]
            if past is not None and after is not None:
                level = noisy.noise_level / math.sqrt(after)  # of the mean of maps that have the noise of this one each
                values = past + np.random.default_rng((draw, after)).normal(0, level, past.shape)
                guide = Noisy(values, sigma=level, kind="simulation", graph_hash=graph.hash)
                with between(0.4, 1.0):
                    signals.append(denoise(graph, noisy, method=method, nonnegative=True, guides=guide).signal)
        squares.append([np.mean(part**2) for part in (truth, *(signal - truth for signal in signals))])
    return np.mean(squares, axis=0)


def _row(squares: np.ndarray, noise: dict[str, Any], density: float, reliable: float) -> PlanRow:
    """Return the row of one epsilon from `_mean_squares`; `density` is the expected number of events per value."""
    sigma = checked_lattice_sigma(mechanism_sigma(**noise))
    energy, *squared_errors = squares
    errors = [math.sqrt(part) for part in squared_errors]
    ratios = [10 * math.log10(energy / part) if energy > 0 and part > 0 else math.nan for part in squared_errors]
    region = max(1, math.ceil((sigma / (reliable * density)) ** 2))  # sigma sqrt(m) = reliable * density * m
    is_guided = len(errors) > 2
    return PlanRow(
        epsilon=noise["epsilon"],
        sigma=sigma,
        error_noisy=errors[0],
        error_denoised=errors[1],
        snr_noisy=ratios[0],
        snr_denoised=ratios[1],
        smallest_region=region,
        smallest_total=region * density,
        error_guided=errors[2] if is_guided else None,
        snr_guided=ratios[2] if is_guided else None,
    )
