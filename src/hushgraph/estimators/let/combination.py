"""Combinations of candidates: non-negative SURE-LET, and the average of several such combinations by their risk.

A linear expansion of thresholds (Blu and Luisier 2007) sum_k a_k F_k has SURE ||y - F a||^2 - n sigma^2 + 2 sigma^2 d'a, a
quadratic in a: its minimum over a >= 0 is a non-negative least-squares problem in the Gram matrix of the columns. Without
a >= 0 it collapses under strong noise.

Weights that were fitted make SURE optimistic, by 2 sigma^2 sum_k <F_k, grad a_k>: about 1.5 degrees of freedom for each weight that
is not 0 (between 1 where the noise is weak and 2 where it is strong), and the risk takes them in.

Aggregation averages the combinations m of different sets of candidates with weights exp(-(T_m - min T) / (4 sigma^2)),
T_m = SURE_m + 2 sigma^2 2.5 #{a > 0} (Leung and Barron 2006; more candidates must pay for the choice too): again one combination
of all columns.

One candidate may be `safe`: a complete estimate, the fitted filter, which has few parameters and therefore little that noise can choose.
A signal with peaks is no Gaussian process, and the average takes its place (`peakedness`). For other signals the result lies between
the two, at the least SURE, and nearer to the safe one where the gain is not clear (`_boldness`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, optimize

from hushgraph._arrays import on_host
from hushgraph.core import block_sum
from hushgraph.estimators.let.candidates import Group, make_candidates
from hushgraph.estimators.let.columns import Columns
from hushgraph.estimators.let.fitted_filter import Filtered
from hushgraph.estimators.let.observation import Observation
from hushgraph.estimators.risk import Spread, spread_along, sure_of
from hushgraph.wavelets import Noise

RIDGE = 1e-10
LARGEST_WEIGHT = 2.0  # of a candidate
SMALLEST_SHARE = 1e-6  # of a set of candidates
FREEDOM = 1.5  # degrees of freedom that a fitted weight costs
CAUTION = 2.5  # those that sets of candidates are charged for it when they are compared
WEIGHT_CHARGE = 3.0  # those that it is charged when a safe estimate may be left for it
CLEAR_GAIN = (3.0, 4.0)  # standard errors of a gain over a safe estimate: not clear below the first, and clear above the second
UNCLEAR_PART = 0.5  # part of a combination that is taken at most where its gain is not clear
PEAKED = (3.5, 5.0)  # standard errors of the kurtosis: no peaks below the first, clear peaks above the second
TOLERATED = 0.3  # kurtosis that the local scales of the coefficients, which are not exact, may cause on irregular graphs
SMALL_SCALE = 0.02  # share of the trace below which a scale is not tested for peaks
DROPPED, NOTHING = 1e-9, 1e-60  # columns this much smaller than y are rounding errors, than the noise nothing

Sets = dict[str, tuple[Any, ...]]  # names of groups by name of the set


@dataclass(frozen=True, eq=False)
class LetProblem:
    """All that SURE-LET needs of k columns: sums over nodes, so that partitions can add them up.

    Parameters
    ----------
    products : (k + 1, k + 1) array
        Inner products of the columns and y, which comes last.
    divergence, tuned : (k,) arrays
        As `Columns` has them.
    places : dict
        The numbers of the columns of each group.
    variance : float
        The unit of the divergences.
    noise_total : float
        tr(Sigma), the sum of the variances of the noise.
    n : int
        Number of nodes.
    doubt : (k,) array, optional
        As `Columns` has it.
    """

    products: np.ndarray
    divergence: np.ndarray
    tuned: np.ndarray
    places: dict[str, np.ndarray]
    variance: float
    noise_total: float
    n: int
    doubt: np.ndarray | float = 0.0

    @classmethod
    def of(cls, columns: Columns, observation: Observation) -> LetProblem:
        """Return the sums of one signal's columns."""
        noise, n = observation.noise, observation.graph.n
        products = columns.products(observation.y)
        return cls(products, columns.divergence, columns.tuned, columns.places, noise.variance, noise.total(n), n, columns.doubt)

    @property
    def typical_variance(self) -> float:
        """The mean variance of the noise."""
        return self.noise_total / self.n


@dataclass(frozen=True, eq=False)
class Fits:
    """For each set of candidates: weights (m, k), SURE, its optimism and its doubt; for each column: SURE of its best multiple."""

    sets: Sets
    weights: np.ndarray
    sure: np.ndarray
    optimism: np.ndarray
    alone: np.ndarray
    doubt: np.ndarray | float = 0.0

    def shares(self, typical_variance: float) -> np.ndarray:
        """Return the part of each set in the average, by corrected risks."""
        score = self.sure + self.optimism + self.doubt + 2 * (CAUTION - FREEDOM) * typical_variance * (self.weights > 0).sum(axis=1)
        shares = np.exp(-(score - score.min()) / (4 * typical_variance))
        shares = np.where(shares > SMALLEST_SHARE, shares, 0.0)
        return shares / shares.sum()

    def extended(self, name: str, weights: np.ndarray, sure: float, optimism: float) -> Fits:
        """Return these fits and one more."""
        return replace(
            self,
            sets={**self.sets, name: (name,)},
            weights=np.vstack([self.weights, weights]),
            sure=np.append(self.sure, sure),
            optimism=np.append(self.optimism, optimism),
            doubt=np.append(np.broadcast_to(self.doubt, len(self.sure)), 0.0),
        )


@dataclass(frozen=True, eq=False)
class Combination:
    """Weights of the candidates, the estimate F a with its SURE, and how the sets of candidates share in it."""

    columns: Columns = field(repr=False)
    weights: np.ndarray
    signal: np.ndarray = field(repr=False)
    sure: float
    optimism: float
    fits: Fits
    shares: np.ndarray
    peaked: float = 1.0  # see `peakedness`

    @property
    def divergence(self) -> float:
        """The divergence at these weights."""
        return float(self.weights @ self.columns.divergence)

    @property
    def risk(self) -> float:
        """SURE without the optimism of fitted weights."""
        return self.sure + self.optimism

    @cached_property
    def jvp(self) -> np.ndarray:
        """The derivative along the kept probes at these weights, (probes, n)."""
        return self.columns.jvp(self.weights)

    def spread(self, noise: Noise) -> Spread:
        """Return what the Jacobian does to the noise; it is symmetric but for gates and the like, which are few degrees of freedom."""
        return spread_along(self.columns.filters.probes.eps, self.jvp, None, noise)


def combine(observation: Observation, sets: Sets, *, safe: Group | None = None) -> Combination:
    """Return the average of the combinations of each set of candidates; of one set, that is plain SURE-LET.

    The group `safe` is a single candidate, a complete estimate. The average takes its place only as far as it is clearly better.
    """
    groups = tuple(dict.fromkeys(group for some in sets.values() for group in some))
    columns = make_candidates(observation, groups if safe is None else (*groups, safe))
    problem = LetProblem.of(columns, observation)
    fits = fit(problem, sets)
    if safe is None:
        return averaged(observation, columns, problem, fits)
    alone = np.zeros(len(columns.names))
    alone[problem.places[safe]] = 1.0
    group = columns.groups[safe]
    peaked = peakedness(observation, group) if isinstance(group, Filtered) else 0.0
    return averaged(observation, columns, problem, fits, safe=(safe, alone), peaked=peaked)


def averaged(
    observation: Observation,
    columns: Columns,
    problem: LetProblem,
    fits: Fits,
    *,
    safe: tuple[str, np.ndarray] | None = None,
    peaked: float = 1.0,
) -> Combination:
    """Return the fits in their shares; with the name and the weights of a `safe` estimate, what is between that and the fits.

    `peaked` is what `peakedness` returns for the signal: with 1 the fits are taken without more ado.
    """
    shares = fits.shares(problem.typical_variance)
    if safe is not None:
        spent = 2 * problem.typical_variance * float(problem.tuned @ safe[1])
        boldness = peaked + (1 - peaked) * _boldness(problem, safe[1], fits, shares, spent)
        fits = fits.extended(*safe, _sure_of_weights(problem, safe[1]), spent)
        shares = np.append(boldness * shares, 1 - boldness)
    weights = shares @ fits.weights
    signal = columns.combined(weights)
    sure = _sure(observation, columns, weights, signal)
    return Combination(columns, weights, signal, sure, float(shares @ fits.optimism), fits, shares, peaked)


def _sure_of_weights(problem: LetProblem, weights: np.ndarray) -> float:
    """Return SURE of a combination with fixed weights."""
    signed = np.append(weights, -1.0)
    residual = float(signed @ problem.products @ signed)
    return sure_of(residual, problem.noise_total, problem.variance * float(weights @ np.maximum(problem.divergence, 0.0)))


def _boldness(problem: LetProblem, safe: np.ndarray, fits: Fits, shares: np.ndarray, spent: float) -> float:
    """Return how far to go from a safe estimate F to the average of the fits, from 0 to 1.

    With D the difference of the two, the gain of going all the way is <y - F, D> - tr(Sigma J_D), less what the choice of the weights costs,
    with a standard error of about sigma ||D||. The least SURE is at gain / ||D||^2 of the way. So far the way is gone where the gain is
    clear, and at most UNCLEAR_PART of it otherwise: of two estimates that are equally good the average is better than both. `spent` is
    2 sigma^2 times the degrees of freedom that the choice of F costs.
    """
    typical, products = problem.typical_variance, problem.products
    change = shares @ fits.weights - safe
    square = max(float(change @ products[:-1, :-1] @ change), 0.0)
    if square == 0:
        return 0.0
    cost = float(shares @ (fits.optimism + 2 * (WEIGHT_CHARGE - FREEDOM) * typical * (fits.weights > 0).sum(axis=1))) - spent
    freedom = problem.variance * float(change @ np.maximum(problem.divergence, 0.0))
    gain = float(change @ (products[:-1, -1] - products[:-1, :-1] @ safe)) - freedom - cost / 2
    way = float(np.interp(gain / np.sqrt(typical * square), CLEAR_GAIN, (UNCLEAR_PART, 1.0)))
    return min(way, max(gain / square, 0.0))


def peakedness(observation: Observation, model: Filtered) -> float:
    """Return whether the signal has peaks or borders, from 0 (none that its Gaussian process does not explain) to 1 (clearly).

    Peaks and borders make the wavelet coefficients of some scale more peaked than a normal distribution. The kurtosis of normal
    coefficients has a standard error of about sqrt(24 / m), where m = tr(V)^2 / tr(V^2) and V is the covariance of the coefficients of the
    scale by the fitted spectrum: m is small in a scale with few eigenvectors of large variance.
    """
    probes = observation.filters.probes
    relative = (observation.parts.rho / probes.scale) ** 2
    kurtosis = on_host(np.mean(relative**2, axis=1) / np.maximum(np.mean(relative, axis=1) ** 2, 1e-300)) - 3
    x, _, count = model.energies
    variances = observation.filters.frame.bands.filters(x) ** 2 / np.maximum(1 - model.fitted(x), 1e-12)
    size = (variances @ count) ** 2 / np.maximum(variances**2 @ count, 1e-300)
    is_tested = size >= max(SMALL_SCALE * observation.graph.n, 2.0)
    errors = np.max(np.where(is_tested, (kurtosis - TOLERATED) * np.sqrt(size / 24), 0.0), initial=0.0)
    return float(np.interp(errors, PEAKED, (0.0, 1.0)))


def alone(observation: Observation, group: Group) -> Combination:
    """Return a single candidate as it is."""
    columns, one = make_candidates(observation, (group,)), np.ones(1)
    signal = columns.groups[group].values[0]
    sure, tuned = _sure(observation, columns, one, signal), 2 * observation.noise.mean(observation.graph.n) * columns.tuned
    fits = Fits({group: (group,)}, one[None], np.array([sure]), tuned, np.array([sure]))
    return Combination(columns, one, signal, sure, float(tuned[0]), fits, one)


def _sure(observation: Observation, columns: Columns, weights: np.ndarray, signal: np.ndarray) -> float:
    """Return SURE of the combination; a divergence below 0 comes from the probes."""
    noise, divergence = observation.noise, float(weights @ np.maximum(columns.divergence, 0.0))
    residual = float(block_sum((observation.y - signal) ** 2))
    return sure_of(residual, noise.total(observation.graph.n), noise.variance * divergence)


def fit(problem: LetProblem, sets: Sets, *, largest: float = LARGEST_WEIGHT) -> Fits:
    """Return weights from 0 to `largest` at the least SURE, for each set of candidates; the Gram matrix is that of all of them."""
    products, typical = problem.products, problem.typical_variance
    norms = np.sqrt(np.diag(products)[:-1])
    is_used = norms > max(DROPPED * np.sqrt(products[-1, -1]), NOTHING * np.sqrt(problem.noise_total))
    unit = np.where(is_used, norms, 1.0)
    gram = products[:-1, :-1] / np.outer(unit, unit)
    size = np.sqrt(products[-1, -1]) or 1.0  # weights are found for y of norm 1, so that units do not matter
    spent = problem.variance * np.maximum(problem.divergence, 0.0) + typical * problem.tuned
    target = (products[:-1, -1] - spent) / unit
    constant = products[-1, -1] - problem.noise_total
    weights, sure = np.zeros((len(sets), len(norms))), np.empty(len(sets))
    for m, groups in enumerate(sets.values()):
        members = np.concatenate([problem.places[group] for group in groups])
        members = members[is_used[members]]
        own = gram[np.ix_(members, members)]
        a = size * bounded_minimum(own, target[members] / size, largest * unit[members] / size)
        weights[m, members] = a / unit[members]
        sure[m] = constant + a @ own @ a - 2 * a @ target[members]
    tuned = 2 * typical * weights @ problem.tuned  # in the fit already, and no part of SURE
    sure -= tuned
    optimism = tuned + 2 * FREEDOM * typical * (weights > 0).sum(axis=1)
    doubt = 2 * typical * (weights * problem.doubt).sum(axis=1)
    return Fits(sets, weights, sure, optimism, constant - np.where(is_used, np.maximum(target, 0.0), 0.0) ** 2, doubt)


def bounded_minimum(gram: np.ndarray, target: np.ndarray, most: Any, *, ridge: float = RIDGE) -> np.ndarray:
    """Return argmin of a'Ga - 2 a'b over 0 <= a <= most, with a small ridge.

    Weights above the bound are held at it, and released where a smaller weight is better, until neither happens: that is the minimum.
    SciPy's solver for two bounds may stop far from it, where columns are nearly the same.
    """
    count = len(target)
    gram, most, held = gram + ridge * np.eye(count), np.broadcast_to(most, count), np.zeros(count, bool)
    a = np.zeros(count)
    for _ in range(10 * count):
        a = np.where(held, most, 0.0)
        a[~held] = _nonnegative_minimum(gram[np.ix_(~held, ~held)], target[~held] - gram[np.ix_(~held, held)] @ most[held])
        pull = np.where(held, gram @ a - target, 0.0)
        if np.any(over := a > most * (1 + 1e-12)):
            held |= over
        elif pull.max() > 1e-12:
            held[np.argmax(pull)] = False
        else:
            break
    return np.minimum(np.where(a > 1e-9, a, 0.0), most)


def _nonnegative_minimum(gram: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return argmin of a'Ga - 2 a'b over a >= 0."""
    if not len(target):
        return target
    root = linalg.cholesky(gram)
    return optimize.nnls(root, linalg.solve_triangular(root, target, trans="T"), maxiter=100 * len(target))[0]
