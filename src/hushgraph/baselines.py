"""What wavelets are compared with: the fused lasso along a depth-first order of the graph, and total variation on the graph.

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
from hushgraph.chains import (
    chain_scores,
    checked_node_weights,
    checked_penalties,
    checked_penalty,
    depth_first_order,
    mean_over_orders,
)
from hushgraph.checks import checked_count, checked_number, checked_seed, checked_sigma, is_count, refuse_device, shown
from hushgraph.graph import Graph, checked_graph
from hushgraph.observation import Noisy, refuse_release
from hushgraph.result import Denoised, like_input
from hushgraph.total_variation import Arcs, TotalVariation, minimise

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
    """One signal's penalty, its score, and all that were tried, by ascending penalty."""

    penalty: float
    distance: float
    pieces: float
    penalties: np.ndarray
    scores: np.ndarray


def dfs_fused_lasso(
    graph: Graph,
    noisy,
    *,
    penalty=None,
    sigma: float | None = None,
    truth=None,
    orders: int = 1,
    seed: int = 0,
    start: int | None = None,
    node_weights=None,
    candidates=40,
) -> Denoised:
    """The DFS fused lasso of Padilla et al. (2018): the graph becomes a chain in depth-first order, the signal piecewise constant.

    Parameters
    ----------
    noisy : array (n,) or (n, m), pandas Series, dict, or Noisy
        As in `denoise`; each column by itself.
    penalty : float, "sure" or "oracle", optional
        "sure", the default, minimises SURE and needs sigma. "oracle" minimises the true squared error and needs `truth`, so it
        is no method. The result has the penalty as `thresholds`.
    sigma : float, optional
        Standard deviation of the noise, one for all nodes. With it the result has a risk.
    truth : like `noisy`
        Only for "oracle".
    orders : int
        1: one chain, `depth_first_order(graph, start=start)`. More: the mean over that many random depth-first orders, which
        `seed` decides; the penalty is chosen for the mean.
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
    seen = _observed(graph, noisy, sigma, truth, penalty)
    weights = checked_node_weights(node_weights, graph.n)
    count, seed = checked_count("orders", orders, 1), checked_seed(seed)
    if count == 1:
        chains = depth_first_order(graph, start=start)[None]
    else:
        seeds = np.random.SeedSequence(seed).generate_state(count, np.uint64)
        chains = np.stack([depth_first_order(graph, start=start, seed=int(one)) for one in seeds])
    choices, signals = [], []
    for m, y in enumerate(seen.columns):

        def scores(penalties, y=y, truth=None if seen.truth is None else seen.truth[m]):
            return chain_scores(y, chains, penalties, node_weights=weights, truth=truth)

        choices.append(_choose(scores, penalty, candidates, seen.sigma, graph.n, _size_of_noise(seen.sigma, y[chains[0]])))
        signals.append(mean_over_orders(y, chains, choices[-1].penalty, node_weights=weights))
    return _result(graph, noisy, seen, choices, signals, "dfs_fused_lasso", {"orders": count}, started)


def graph_tv(
    graph: Graph, noisy, *, penalty=None, sigma: float | None = None, truth=None, tolerance: float = 1e-6, candidates=40
) -> Denoised:
    """Total variation on the graph: the minimiser of 1/2 ||x - y||^2 + penalty sum_ij w_ij |x_i - x_j|, over edges.

    Solved exactly by minimum cuts, with a flow as proof.

    Parameters
    ----------
    noisy, penalty, sigma, truth, candidates
        As in `dfs_fused_lasso`.
    tolerance : float
        The proven duality gap may be at most this share of the objective. It is far less; an error says so if rounding ever
        made it more.

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
    seen = _observed(graph, noisy, sigma, truth, penalty)
    tolerance = checked_number("tolerance", tolerance, "a share of the objective between 0 and 1", above=0, below=1)
    arcs, (first, second) = Arcs.of(graph), graph.adjacency.nonzero()
    choices, signals, gaps = [], [], []
    for m, y in enumerate(seen.columns):
        kept: dict[float, TotalVariation] = {}  # the solution at a given penalty, the only one that need not be found again

        def scores(penalties, y=y, truth=None if seen.truth is None else seen.truth[m], kept=kept):
            found = [minimise(graph, arcs, y, one) for one in penalties]
            kept.update(zip(penalties, found, strict=True) if len(found) == 1 else ())
            error = [np.nan if truth is None else np.sum((one.x - truth) ** 2) for one in found]
            return np.array([(np.sum((one.x - y) ** 2), one.pieces, e) for one, e in zip(found, error, strict=True)])

        across = np.stack([y[first], y[second]], axis=1) if len(first) else y[:, None]
        choices.append(_choose(scores, penalty, candidates, seen.sigma, graph.n, _size_of_noise(seen.sigma, across)))
        solution = kept.get(choices[-1].penalty) or minimise(graph, arcs, y, choices[-1].penalty)
        gaps.append(_checked_gap(solution, tolerance))
        signals.append(solution.x)
    details = {"gap": gaps[0] if seen.values.ndim == 1 else np.array(gaps)}
    return _result(graph, noisy, seen, choices, signals, "graph_tv", details, started)


def _checked_gap(solution: TotalVariation, tolerance: float) -> float:
    """The relative duality gap, or an error."""
    gap = solution.relative_gap
    if not gap <= tolerance:
        msg = (
            f"graph_tv reached a relative duality gap of {gap:.2g}, more than tolerance={tolerance:g}; raise tolerance, "
            "or clip outliers of the signal"
        )
        raise ComputationError(msg)
    return gap


# ---- input -------------------------------------------------------------------------------------------------------


def _observed(graph: Graph, noisy, sigma, truth, penalty) -> Observed:
    """Check everything that needs no work."""
    if checked_graph(graph).n == 0:
        msg = "the graph has no nodes: there is nothing to denoise"
        raise InputError(msg)
    if isinstance(penalty, str) and penalty not in ("sure", "oracle"):
        msg = f"penalty must be a number of at least 0, 'sure' or 'oracle'; got {shown(penalty)}"
        raise InputError(msg)
    if not (penalty is None or isinstance(penalty, str)):
        penalty = checked_penalty(penalty)
    refuse_device(noisy=noisy, truth=truth)
    _check_truth(noisy, truth, penalty)
    if isinstance(noisy, Noisy):
        noisy, sigma = noisy.opened(graph, sigma)
    if sigma is not None and np.ndim(sigma):
        msg = f"sigma must be one number for all nodes here; got {shown(sigma)}; to weigh nodes by their noise pass node_weights=1 / sigma**2"
        raise InputError(msg)
    sigma = None if sigma is None else checked_sigma(sigma)
    if penalty in (None, "sure") and sigma is None:
        msg = "choosing the penalty by SURE needs sigma=; give it (see estimate_sigma), or give penalty= as a number"
        raise InputError(msg)
    values = graph.align(noisy)
    columns = _columns_of(values)
    if truth is None:
        return Observed(values, columns, sigma, None)
    clean = graph.aligned("truth", truth)
    if clean.shape not in (values.shape, values.shape[:1]):
        msg = f"truth must have the shape of the noisy signal, {values.shape}, or of one of its columns; got {clean.shape}"
        raise InputError(msg)
    return Observed(values, columns, sigma, np.broadcast_to(_columns_of(clean), columns.shape).copy())


def _check_truth(noisy, truth, penalty) -> None:
    oracle = isinstance(penalty, str) and penalty == "oracle"
    if oracle != (truth is not None):
        msg = "penalty='oracle' needs truth=, the clean signal" if oracle else "truth= is only for penalty='oracle'; leave it out"
        raise InputError(msg)
    refuse_release("truth", truth)
    if oracle and isinstance(noisy, Noisy) and noisy.kind == "release":
        refuse_release("noisy", noisy)


def _columns_of(values: np.ndarray) -> np.ndarray:
    """(n,) or (n, m) as (m, n), float64, each row by itself in memory."""
    return np.ascontiguousarray(values[None] if values.ndim == 1 else values.T, dtype=np.float64)


# ---- the penalty -------------------------------------------------------------------------------------------------


def _size_of_noise(sigma: float | None, ordered: np.ndarray) -> float:
    """sigma, or without it the mean size of steps between neighbours: where the search begins, no estimate."""
    steps = np.abs(np.diff(ordered))
    return sigma if sigma is not None else float(steps.mean()) if steps.any() else 1.0


def _choose(scores: Scores, penalty, candidates, sigma: float | None, n: int, noise: float) -> Choice:
    """The given penalty, or the least SURE or error over a grid that is then refined; scores cover everything tried."""
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
        msg = f"candidates must be an integer of at least 3 or a list of penalties; got {shown(candidates)}"
        raise InputError(msg)
    found = scores(tried)
    for _ in range(rounds):
        best = int(np.argmin(_values(found, by_truth, sigma, n)))
        low, high = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]
        if not 0 < low < tried[best] < high < np.inf:
            break
        more = np.concatenate([np.geomspace(low, tried[best], FINER + 2)[1:-1], np.geomspace(tried[best], high, FINER + 2)[1:-1]])
        tried, found = np.concatenate([tried, more]), np.concatenate([found, scores(more)])
        tried, found = tried[np.argsort(tried)], found[np.argsort(tried)]
    best = int(np.argmin(_values(found, by_truth, sigma, n))) if len(tried) > 1 else 0
    return Choice(float(tried[best]), float(found[best, 0]), float(found[best, 1]), tried, found)


def _values(found: np.ndarray, by_truth: bool, sigma: float | None, n: int) -> np.ndarray:
    """What is minimised: the true squared error, or SURE."""
    return found[:, 2] if by_truth or sigma is None else found[:, 0] + sigma**2 * (2 * found[:, 1] - n)


# ---- the result --------------------------------------------------------------------------------------------------


def _result(graph, noisy, seen: Observed, choices: list[Choice], signals, method: str, details: dict, started: float) -> Denoised:
    alone, n = seen.values.ndim == 1, graph.n

    def gathered(values):
        return values[0] if alone else np.array(values)

    s = np.nan if seen.sigma is None else seen.sigma
    risk = [one.distance + s**2 * (2 * one.pieces - n) for one in choices]
    # Var(SURE - loss) = E[4 s^2 ||y - x||^2 + 4 s^4 tr(J^2) - 2 n s^4]; a mean of projections has tr(J^2) at most the mean of pieces
    spread = [float(np.sqrt(np.maximum(4 * s**2 * one.distance + s**4 * (4 * one.pieces - 2 * n), 0.0))) for one in choices]
    curves: dict[str, Any] = {"penalties": [one.penalties for one in choices]}
    if seen.sigma is not None:
        curves["sure"] = [_values(one.scores, False, seen.sigma, n) for one in choices]
    if seen.truth is not None:
        curves["squared_error"] = [one.scores[:, 2] for one in choices]
    details = {
        "pieces": gathered([one.pieces for one in choices]),
        **{name: curve[0] if alone else curve for name, curve in curves.items()},
        **details,
        "tuned_on": "truth" if seen.truth is not None else "sure" if len(choices[0].penalties) > 1 else None,
    }
    signal = np.array(signals[0] if alone else np.stack(signals, axis=1)).astype(seen.values.dtype, copy=False)
    return Denoised(
        signal=like_input(graph, noisy, signal),
        sigma=seen.sigma,
        risk=gathered(risk),
        risk_se=gathered(spread),
        probe_se=gathered([0.0] * len(choices)),
        method=method,
        thresholds=gathered([one.penalty for one in choices]),
        timings={"total": time.perf_counter() - started},
        details=details,
        labels=graph.labels,
    )
