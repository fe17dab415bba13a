"""Baselines for wavelets: the fused lasso along a depth-first order of the graph, and total variation on the graph.

Both take a penalty, or choose it by SURE or on the truth. Their divergence is the number of pieces of equal value, because each
estimate is locally a projection plus a constant: SURE = ||y - x||^2 - n sigma^2 + 2 sigma^2 pieces (Tibshirani and Taylor 2012).
For such an estimate tr(J^2) is the number of pieces too, which gives the standard error of SURE.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hushgraph._errors import ComputationError, InputError
from hushgraph._validation import checked_count, checked_number, checked_seed, checked_sigma, is_count, refuse_device, shown
from hushgraph.estimators.baselines.chain_fused_lasso import (
    chain_scores,
    checked_node_weights,
    checked_penalties,
    checked_penalty,
    mean_over_orders,
)
from hushgraph.estimators.baselines.total_variation import Arcs, TotalVariation, minimise
from hushgraph.estimators.guides.draws import draw_marks
from hushgraph.estimators.result import Denoised, like_input
from hushgraph.estimators.risk import EXACT, RiskSums, sure_of
from hushgraph.graphs import Graph, Noisy, as_graph, depth_first_order, refuse_release

LEAST, MOST = 0.05, 2.0  # penalties tried: from LEAST to MOST sqrt(n) noise levels, and 0 and infinity
ROUNDS, FINER = 2, 8  # then twice 8 more on each side of the best
Scores = Callable[[np.ndarray], np.ndarray]  # penalties -> (n_penalties, 3): squared distance, pieces, squared error


class Observed(NamedTuple):
    """Checked input: values (n,) or (n, m) as given and as float64 columns (m, n), sigma or None, the truth likewise or None."""

    values: np.ndarray
    columns: np.ndarray
    sigma: float | None
    truth: np.ndarray | None


@dataclass(frozen=True)
class Choice:
    """The penalty of one signal, its score, and all penalties that were tried with their scores, in ascending order."""

    penalty: float
    distance: float
    pieces: float
    penalties: np.ndarray
    scores: np.ndarray


def dfs_fused_lasso(
    graph: Graph,
    noisy: Any,
    *,
    penalty: Any = None,
    sigma: float | None = None,
    truth: Any = None,
    orders: int = 1,
    seed: int = 0,
    start: int | None = None,
    node_weights: Any = None,
    candidates: Any = 40,
) -> Denoised:
    """Denoise by the DFS fused lasso (Padilla et al., 2018): the graph becomes a chain in depth-first order.

    The result is piecewise constant along the chain.

    Parameters
    ----------
    graph : Graph
        The graph whose nodes have the values.
    noisy : array (n,) or (n, m), pandas Series, dict, or Noisy
        As in `denoise`; each column by itself.
    penalty : float, "sure" or "oracle", optional
        "sure", the default, minimises SURE and needs sigma. "oracle" minimises the true squared error and needs `truth`, so it
        is no method. The result has the penalty as `thresholds`.
    sigma : float, optional
        Standard deviation of the noise, one for all nodes. With it the result has a risk.
    truth : like `noisy`, optional
        Only for "oracle".
    orders : int
        1: one chain, `depth_first_order(graph, start=start)`. More: the mean over that many random depth-first orders, which
        `seed` decides; the penalty is chosen for the mean.
    seed : int
        Seed of the random orders.
    start : int, optional
        The node at which the depth-first search starts; default: node 0.
    node_weights : (n,) positive numbers, optional
        Weights of the squares. With noise of unequal sizes, 1 / sigma_i^2.
    candidates : int or list of penalties
        How many penalties are tried between 0 and infinity before the search refines around the best; a list is tried as it is.

    Returns
    -------
    Denoised
        `risk` is SURE (NaN without sigma), unbiased at a fixed penalty and a little optimistic at one that was chosen;
        `risk_se` is exact in expectation for one order and an upper bound for several. `details` holds pieces, the penalties tried
        with their SURE and squared error, and the number of orders.

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.grid(30, 30)
    >>> clean = np.repeat([0.0, 10.0], 450)
    >>> noisy = clean + np.random.default_rng(0).normal(0, 2, 900)
    >>> result = hg.dfs_fused_lasso(graph, noisy, sigma=2, orders=4)
    >>> bool(hg.snr(clean, result.signal) > hg.snr(clean, noisy) + 8)
    True
    """
    started = time.perf_counter()
    graph = as_graph(graph)
    observed = _observed(graph, noisy, sigma, truth, penalty)
    weights = checked_node_weights(node_weights, graph.n)
    count, seed = checked_count("orders", orders, 1), checked_seed(seed)
    if count == 1:
        chains = depth_first_order(graph, start=start)[None]
    else:
        seeds = np.random.SeedSequence(seed).generate_state(count, np.uint64)
        chains = np.stack([depth_first_order(graph, start=start, seed=int(order_seed)) for order_seed in seeds])
    choices, signals = [], []
    for m, y in enumerate(observed.columns):

        def scores(penalties: Any, y: Any = y, truth: Any = None if observed.truth is None else observed.truth[m]) -> np.ndarray:
            return chain_scores(y, chains, penalties, node_weights=weights, truth=truth)

        choices.append(_choose(scores, penalty, candidates, observed.sigma, graph.n, _size_of_noise(observed.sigma, y[chains[0]])))
        signals.append(mean_over_orders(y, chains, choices[-1].penalty, node_weights=weights))
    return _result(graph, noisy, observed, choices, signals, "dfs_fused_lasso", {"orders": count}, started)


def graph_tv(
    graph: Graph,
    noisy: Any,
    *,
    penalty: Any = None,
    sigma: float | None = None,
    truth: Any = None,
    tolerance: float = 1e-6,
    candidates: Any = 40,
) -> Denoised:
    """Denoise by total variation: the minimiser of 1/2 ||x - y||^2 + penalty sum_ij w_ij |x_i - x_j|, over edges.

    It is found exactly by minimum cuts, with a flow as proof.

    Parameters
    ----------
    graph : Graph
        The graph whose nodes have the values.
    noisy : array (n,) or (n, m), pandas Series, dict, or Noisy
        As in `dfs_fused_lasso`.
    penalty : float, "sure" or "oracle", optional
        As in `dfs_fused_lasso`.
    sigma : float, optional
        As in `dfs_fused_lasso`.
    truth : like `noisy`, optional
        As in `dfs_fused_lasso`.
    tolerance : float
        The proven duality gap may be at most this share of the objective. It is far less; if rounding ever makes it more, an error
        is raised.
    candidates : int or list of penalties
        As in `dfs_fused_lasso`.

    Returns
    -------
    Denoised
        As in `dfs_fused_lasso`; `details["gap"]` is the gap as a share of the objective.

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.path(4)
    >>> hg.graph_tv(graph, [0.0, 1.0, 8.0, 9.0], penalty=1.0).signal
    array([1., 1., 8., 8.])
    """
    started = time.perf_counter()
    graph = as_graph(graph)
    observed = _observed(graph, noisy, sigma, truth, penalty)
    tolerance = checked_number("tolerance", tolerance, "a share of the objective between 0 and 1", above=0, below=1)
    arcs, (first, second) = Arcs.of(graph), graph.adjacency.nonzero()
    choices, signals, gaps = [], [], []
    for m, y in enumerate(observed.columns):
        solutions: dict[float, TotalVariation] = {}  # at a given penalty, which need not be solved again

        def scores(
            penalties: Any,
            y: Any = y,
            truth: Any = None if observed.truth is None else observed.truth[m],
            solutions: Any = solutions,
        ) -> np.ndarray:
            minima = [minimise(graph, arcs, y, tried) for tried in penalties]
            solutions.update(zip(penalties, minima, strict=True) if len(minima) == 1 else ())
            errors = [np.nan if truth is None else np.sum((minimum.x - truth) ** 2) for minimum in minima]
            rows = zip(minima, errors, strict=True)
            return np.array([(np.sum((minimum.x - y) ** 2), minimum.pieces, error) for minimum, error in rows])

        edge_ends = np.stack([y[first], y[second]], axis=1) if len(first) else y[:, None]
        choices.append(_choose(scores, penalty, candidates, observed.sigma, graph.n, _size_of_noise(observed.sigma, edge_ends)))
        solution = solutions.get(choices[-1].penalty) or minimise(graph, arcs, y, choices[-1].penalty)
        gaps.append(_checked_gap(solution, tolerance))
        signals.append(solution.x)
    details = {"gap": gaps[0] if observed.values.ndim == 1 else np.array(gaps)}
    return _result(graph, noisy, observed, choices, signals, "graph_tv", details, started)


def _checked_gap(solution: TotalVariation, tolerance: float) -> float:
    """Return the relative duality gap; one above the tolerance is an error."""
    gap = solution.relative_gap
    if not gap <= tolerance:
        msg = (
            f"graph_tv reached a relative duality gap of {gap:.2g}, more than tolerance={tolerance:g}; raise tolerance, "
            "or clip outliers of the signal"
        )
        raise ComputationError(msg)
    return gap


# ---- input -------------------------------------------------------------------------------------------------------


def _observed(graph: Graph, noisy: Any, sigma: Any, truth: Any, penalty: Any) -> Observed:
    """Return the checked input, before any long computation."""
    if graph.n == 0:
        msg = "the graph has no nodes: there is nothing to denoise"
        raise InputError(msg)
    if isinstance(penalty, str) and penalty not in ("sure", "oracle"):
        expected = "a number of at least 0, 'sure' or 'oracle'"
        raise InputError.about(argument="penalty", expected=expected, got=shown(penalty))
    if not (penalty is None or isinstance(penalty, str)):
        penalty = checked_penalty(penalty)
    refuse_device(noisy=noisy, truth=truth)
    _check_truth(noisy, truth, penalty)
    if isinstance(noisy, Noisy):
        noisy, sigma = noisy.opened(graph, sigma)
    if sigma is not None and np.ndim(sigma):
        hint = "to weigh nodes by their noise pass node_weights=1 / sigma**2"
        raise InputError.about(argument="sigma", expected="one number for all nodes here", got=shown(sigma), hint=hint)
    sigma = None if sigma is None else checked_sigma(sigma)
    if penalty in (None, "sure") and sigma is None:
        hint = "give it (see estimate_sigma), or give penalty= as a number"
        text = f"choosing the penalty by SURE needs sigma=; {hint}"
        raise InputError.about(argument="sigma", expected="given", got="None", hint=hint, text=text)
    values = graph.aligned("signal", noisy, hint="clean them")
    columns = _columns_of(values)
    if truth is None:
        return Observed(values, columns, sigma, None)
    clean = graph.aligned("truth", truth, hint="clean them")
    if clean.shape not in (values.shape, values.shape[:1]):
        expected = f"the shape of the noisy signal, {values.shape}, or of one of its columns"
        raise InputError.about(argument="truth", verb="have", expected=expected, got=clean.shape)
    return Observed(values, columns, sigma, np.broadcast_to(_columns_of(clean), columns.shape).copy())


def _check_truth(noisy: Any, truth: Any, penalty: Any) -> None:
    """Refuse a truth without the penalty "oracle", the penalty without a truth, and both on a private release."""
    oracle = isinstance(penalty, str) and penalty == "oracle"
    if oracle != (truth is not None):
        text = "penalty='oracle' needs truth=, the clean signal" if oracle else "truth= is only for penalty='oracle'; leave it out"
        expected, hint = ("given", "") if oracle else ("None", "leave it out")
        raise InputError.about(argument="truth", expected=expected, hint=hint, text=text)
    refuse_release("truth", truth)
    if oracle and isinstance(noisy, Noisy) and noisy.kind == "release":
        refuse_release("noisy", noisy)


def _columns_of(values: np.ndarray) -> np.ndarray:
    """Return values (n,) or (n, m) as rows (m, n), float64 and contiguous."""
    return np.ascontiguousarray(values[None] if values.ndim == 1 else values.T, dtype=np.float64)


# ---- the penalty -------------------------------------------------------------------------------------------------


def _size_of_noise(sigma: float | None, ordered: np.ndarray) -> float:
    """Return sigma, or without it the mean step between neighbours, which is no estimate but where the search begins."""
    steps = np.abs(np.diff(ordered))
    return sigma if sigma is not None else float(steps.mean()) if steps.any() else 1.0


def _choose(scores: Scores, penalty: Any, candidates: Any, sigma: float | None, n: int, noise: float) -> Choice:
    """Return the given penalty, or that of the least SURE or error over a grid that is then refined."""
    by_truth = isinstance(penalty, str) and penalty == "oracle"
    if penalty is not None and not isinstance(penalty, str):
        tried = np.array([checked_penalty(penalty)])
        rounds = 0
    elif is_count(candidates, 3):
        tried = np.concatenate([[0.0], noise * np.geomspace(LEAST, MOST * np.sqrt(n) + 1, int(candidates) - 2), [np.inf]])
        rounds = ROUNDS
    elif np.ndim(candidates) == 1 and len(candidates):
        tried, rounds = np.unique(checked_penalties("candidates", candidates)), 0
    else:
        expected = "an integer of at least 3 or a list of penalties"
        raise InputError.about(argument="candidates", expected=expected, got=shown(candidates))
    table = scores(tried)
    for _ in range(rounds):
        best = int(np.argmin(_criterion(table, by_truth, sigma, n)))
        low, high = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]
        if not 0 < low < tried[best] < high < np.inf:
            break
        finer = np.concatenate([np.geomspace(low, tried[best], FINER + 2)[1:-1], np.geomspace(tried[best], high, FINER + 2)[1:-1]])
        tried, table = np.concatenate([tried, finer]), np.concatenate([table, scores(finer)])
        tried, table = tried[np.argsort(tried)], table[np.argsort(tried)]
    best = int(np.argmin(_criterion(table, by_truth, sigma, n))) if len(tried) > 1 else 0
    return Choice(float(tried[best]), float(table[best, 0]), float(table[best, 1]), tried, table)


def _criterion(table: np.ndarray, by_truth: bool, sigma: float | None, n: int) -> np.ndarray:
    """Return what is minimised at each penalty: the true squared error, or SURE."""
    return table[:, 2] if by_truth or sigma is None else sure_of(table[:, 0], n * sigma**2, sigma**2 * table[:, 1])


# ---- the result --------------------------------------------------------------------------------------------------


def _result(
    graph: Graph, noisy: Any, observed: Observed, choices: list[Choice], signals: Any, method: str, details: dict, started: float
) -> Denoised:
    """Return the chosen signals with their risk, in the form of the noisy ones."""
    is_single, n = observed.values.ndim == 1, graph.n

    def per_signal(values: Any) -> Any:
        return values[0] if is_single else np.array(values)

    numbers = [_risk_numbers(choice, observed.sigma, n) for choice in choices]
    curves: dict[str, Any] = {"penalties": [choice.penalties for choice in choices]}
    if observed.sigma is not None:
        curves["sure"] = [_criterion(choice.scores, False, observed.sigma, n) for choice in choices]
    if observed.truth is not None:
        curves["squared_error"] = [choice.scores[:, 2] for choice in choices]
    details = {
        "pieces": per_signal([choice.pieces for choice in choices]),
        **{name: curve[0] if is_single else curve for name, curve in curves.items()},
        **details,
        "tuned_on": "truth" if observed.truth is not None else "sure" if len(choices[0].penalties) > 1 else None,
    }
    signal = np.array(signals[0] if is_single else np.stack(signals, axis=1)).astype(observed.values.dtype, copy=False)
    return Denoised(
        signal=like_input(graph, noisy, signal),
        sigma=observed.sigma,
        risk=per_signal([risk for risk, _, _ in numbers]),
        risk_se=per_signal([error for _, error, _ in numbers]),
        probe_se=per_signal([error for _, _, error in numbers]),
        method=method,
        thresholds=per_signal([choice.penalty for choice in choices]),
        timings={"total": time.perf_counter() - started},
        details=details,
        labels=graph.labels,
        draws=draw_marks(observed.values),
    )


def _risk_numbers(choice: Choice, sigma: float | None, n: int) -> tuple[float, float, float]:
    """Return risk, risk_se and probe_se; NaN without sigma.

    The Jacobian is a projection, or a mean of some: its trace is the number of pieces, and that of its square is at most so large.
    """
    variance = np.nan if sigma is None else sigma**2
    divergence, trace = variance * choice.pieces, variance**2 * choice.pieces
    sums = RiskSums(
        sure=sure_of(choice.distance, n * variance, divergence),
        weighted_residual=variance * choice.distance,
        divergence=divergence,
        weighted_divergence=trace,
        trace=trace,
        frobenius=trace,
        noise_total=n * variance,
        noise_fourth=n * variance**2,
        n=n,
    )
    risk, risk_se, probe_se = sums.risk_numbers(EXACT)
    return float(risk), float(risk_se), float(probe_se)
