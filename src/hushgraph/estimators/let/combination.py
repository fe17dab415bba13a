"""Combinations of candidates: non-negative SURE-LET, and the average of several such combinations by their risk.

A linear expansion of thresholds (Blu and Luisier 2007) sum_k a_k F_k has SURE ||y - F a||^2 - n sigma^2 + 2 sigma^2 d'a, a
quadratic in a: its minimum over a >= 0 is a non-negative least-squares problem in the Gram matrix of the columns. Without
a >= 0 it collapses under strong noise.

Weights that were fitted make SURE optimistic, by 2 sigma^2 sum_k <F_k, grad a_k>. For one linear column F = A y the sum is
2 (1 - <F, A F> / <F, F>), so that a weight of a James-Stein estimate costs 2 sigma^2 d / ||F||^2 degrees of freedom: 2 in strong noise,
and nothing in weak noise. The risk takes in that of each weight, 2 c_k / <F_k, y> where c_k = sigma^2 d_k is what the divergence takes
off <F_k, y>, and OVERLAP_FREEDOM more, because columns overlap and are not linear (measured on generated data). Weights at a bound cost
nothing.

Aggregation averages the combinations m of different sets of candidates with weights exp(-(T_m - min T) / (4 sigma^2)),
T_m = SURE_m + 2 sigma^2 2.5 #{a > 0} (Leung and Barron 2006; more candidates must pay for the choice too): again one combination
of all columns.

One candidate may be `safe`: a complete estimate, such as the fitted filter, with so few parameters that the noise has little influence on
them. A signal with peaks is no Gaussian process, and the average replaces the fitted filter (`peakedness`). For other signals the result
lies between the two, at the least SURE, and nearer to the safe one where the gain is not clear (`_share_of_average`).
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
from hushgraph.estimators.let.fitted_filter import Energies, Filtered, FittedFilter
from hushgraph.estimators.let.observation import Observation
from hushgraph.estimators.risk import Spread, spread_along, sure_of, within_gain
from hushgraph.wavelets import Bands, KernelBands, Noise

RIDGE = 1e-10
LARGEST_WEIGHT = 2.0  # of a candidate
SMALLEST_SHARE = 1e-6  # of a set of candidates
OVERLAP_FREEDOM = 0.3  # degrees of freedom that a fitted weight costs besides those of a column that is alone
CAUTION = 2.5  # degrees of freedom that sets of candidates are charged for each weight when they are compared
CAUTION_OVER_SAFE = 3.0  # those that the average is charged for each weight when it is compared with a safe estimate
CAUTION_BETWEEN = 1.5  # those that a combination is charged for each weight when it is compared with other complete estimates
GAIN_ERRORS = (3.0, 4.0)  # standard errors of a gain over a safe estimate: not clear below the first, clear above the second
LARGEST_UNCLEAR_SHARE = 0.5  # of the average in the result, where its gain is not clear
KURTOSIS_ERRORS = (3.5, 5.0)  # standard errors of the kurtosis: no peaks below the first, clear peaks above the second
KURTOSIS_OF_SCALES = 0.3  # kurtosis above 3 that inexact local scales of the coefficients may cause on irregular graphs
SMALL_SCALE = 0.02  # degrees of freedom per node, below which a scale is not tested for peaks
LEAST_OF_SIGNAL, LEAST_OF_NOISE = 1e-9, 1e-60  # columns whose norm is a smaller part of that of y, or of the noise, are not used

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
    """For each set of candidates: weights (m, k), SURE, its optimism and its standard error; for each column: SURE of its best multiple.

    `tuned` is the part of the optimism that choosing thresholds and the like costs; fitting the weights costs the rest. `n_fitted` is the
    number of weights that are not 0 in each set, none in a set whose weights are given.
    """

    sets: Sets
    weights: np.ndarray
    sure: np.ndarray
    optimism: np.ndarray
    tuned: np.ndarray
    n_fitted: np.ndarray
    alone: np.ndarray
    doubt: np.ndarray | float = 0.0

    def charges(self, caution: float, typical_variance: float) -> np.ndarray:
        """Return what each set is charged when it is compared with others: `caution` degrees of freedom for each weight."""
        return self.tuned + 2 * caution * typical_variance * self.n_fitted

    def shares(self, typical_variance: float) -> np.ndarray:
        """Return the part of each set in the average, by corrected risks."""
        score = self.sure + self.charges(CAUTION, typical_variance) + self.doubt
        shares = np.exp(-(score - score.min()) / (4 * typical_variance))
        shares = np.where(shares > SMALLEST_SHARE, shares, 0.0)
        return shares / shares.sum()

    def caution(self, shares: np.ndarray, typical_variance: float) -> float:
        """Return what the average in these shares is charged besides its optimism when it is compared with other complete estimates."""
        return float(shares @ (self.charges(CAUTION_BETWEEN, typical_variance) - self.optimism))

    def extended(self, name: str, weights: np.ndarray, sure: float, optimism: float) -> Fits:
        """Return these fits and one more."""
        return replace(
            self,
            sets={**self.sets, name: (name,)},
            weights=np.vstack([self.weights, weights]),
            sure=np.append(self.sure, sure),
            optimism=np.append(self.optimism, optimism),
            tuned=np.append(self.tuned, optimism),
            n_fitted=np.append(self.n_fitted, 0),
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
    peak_evidence: float = 1.0  # see `peakedness`
    caution: float = 0.0  # as `Estimate` has it

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
    groups = tuple(dict.fromkeys(group for members in sets.values() for group in members))
    columns = make_candidates(observation, groups if safe is None else (*groups, safe))
    problem = LetProblem.of(columns, observation)
    fits = fit(problem, sets)
    if safe is None:
        return averaged(observation, columns, problem, fits)
    safe_weights = np.zeros(len(columns.names))
    safe_weights[problem.places[safe]] = 1.0
    group = columns.groups[safe]
    peak_evidence = peakedness(observation, group) if isinstance(group, Filtered) else 0.0
    return averaged(observation, columns, problem, fits, safe=(safe, safe_weights), peak_evidence=peak_evidence)


def averaged(
    observation: Observation,
    columns: Columns,
    problem: LetProblem,
    fits: Fits,
    *,
    safe: tuple[str, np.ndarray] | None = None,
    peak_evidence: float = 1.0,
) -> Combination:
    """Return the average of the fits; with the name and the weights of a `safe` estimate, a mixture of that and the average.

    `peak_evidence` is what `peakedness` returns for the signal. With 1 the safe estimate is not used.
    """
    fits, shares = shared(problem, fits, safe=safe, peak_evidence=peak_evidence)
    weights = shares @ fits.weights
    signal = columns.combined(weights)
    sure = _sure(observation, columns, weights, signal)
    caution = fits.caution(shares, problem.typical_variance)
    return Combination(columns, weights, signal, sure, float(shares @ fits.optimism), fits, shares, peak_evidence, caution)


def shared(
    problem: LetProblem, fits: Fits, *, safe: tuple[str, np.ndarray] | None = None, peak_evidence: float = 1.0
) -> tuple[Fits, np.ndarray]:
    """Return the fits, the last of them the `safe` estimate if there is one, and the share of each in the result; see `averaged`."""
    shares = fits.shares(problem.typical_variance)
    if safe is None:
        return fits, shares
    name, safe_weights = safe
    safe_cost = 2 * problem.typical_variance * float(problem.tuned @ safe_weights)
    share = peak_evidence + (1 - peak_evidence) * _share_of_average(problem, safe_weights, safe_cost, fits, shares)
    fits = fits.extended(name, safe_weights, _sure_of_weights(problem, safe_weights), safe_cost)
    return fits, np.append(share * shares, 1 - share)


def _sure_of_weights(problem: LetProblem, weights: np.ndarray) -> float:
    """Return SURE of a combination with fixed weights."""
    signed = np.append(weights, -1.0)
    residual = float(signed @ problem.products @ signed)
    return sure_of(residual, problem.noise_total, problem.variance * float(weights @ np.maximum(problem.divergence, 0.0)))


def _share_of_average(problem: LetProblem, safe: np.ndarray, safe_cost: float, fits: Fits, shares: np.ndarray) -> float:
    """Return the share of the average of the fits in its mixture with a safe estimate F, from 0 to 1.

    With D the difference of the two, the gain of the average over F is <y - F, D> - tr(Sigma J_D), less what the choice of the weights
    costs, with a standard error of about sigma ||D||. SURE of the mixture is least at the share gain / ||D||^2. That is the result where
    the gain is clear; where it is not, the share is at most LARGEST_UNCLEAR_SHARE: a mixture of two estimates that are equally good is
    better than both. `safe_cost` is 2 sigma^2 times the degrees of freedom that the choice of F costs.
    """
    typical, products = problem.typical_variance, problem.products
    change = shares @ fits.weights - safe
    square = max(float(change @ products[:-1, :-1] @ change), 0.0)
    if square == 0:
        return 0.0
    cost = float(shares @ fits.charges(CAUTION_OVER_SAFE, typical)) - safe_cost
    freedom = problem.variance * float(change @ np.maximum(problem.divergence, 0.0))
    gain = float(change @ (products[:-1, -1] - products[:-1, :-1] @ safe)) - freedom - cost / 2
    largest_share = float(np.interp(gain / np.sqrt(typical * square), GAIN_ERRORS, (LARGEST_UNCLEAR_SHARE, 1.0)))
    return min(largest_share, max(gain / square, 0.0))


def peakedness(observation: Observation, model: Filtered) -> float:
    """Return how clearly the signal has peaks or borders, from 0 (its Gaussian process explains all of it) to 1 (clearly).

    Peaks and borders make the wavelet coefficients of some scale more peaked than a normal distribution. The kurtosis of normal
    coefficients has a standard error of about sqrt(24 / m), where m = tr(V)^2 / tr(V^2) and V is the covariance of the coefficients of the
    scale by the fitted spectrum: the degrees of freedom of the scale, few if few eigenvectors have a large variance.
    """
    relative = (observation.parts.rho / observation.filters.probes.scale) ** 2
    squares, fourths = on_host(np.stack([np.mean(relative, axis=1), np.mean(relative**2, axis=1)]))
    return peakedness_of(squares, fourths, model.fitted, model.energies, observation.filters.frame.bands, observation.graph.n)


def peakedness_of(
    squares: Any, fourths: Any, fitted: FittedFilter, energies: Energies, bands: Bands | KernelBands, n: int
) -> float:
    """Return `peakedness` from the means over nodes of the squares and fourth powers of the coefficients of each scale, in local noise levels."""
    kurtosis = fourths / np.maximum(squares**2, 1e-300) - 3
    x, _, count = energies
    variances = bands.filters(x) ** 2 / np.maximum(1 - fitted(x), 1e-12)
    freedom = (variances @ count) ** 2 / np.maximum(variances**2 @ count, 1e-300)
    is_tested = freedom >= max(SMALL_SCALE * n, 2.0)
    errors = np.max(np.where(is_tested, (kurtosis - KURTOSIS_OF_SCALES) * np.sqrt(freedom / 24), 0.0), initial=0.0)
    return float(np.interp(errors, KURTOSIS_ERRORS, (0.0, 1.0)))


def alone(observation: Observation, group: Group) -> Combination:
    """Return a single candidate as it is."""
    columns, one = make_candidates(observation, (group,)), np.ones(1)
    signal = columns.groups[group].values[0]
    noise, n = observation.noise, observation.graph.n
    sure = _sure(observation, columns, one, signal)
    tuned = within_gain(2 * noise.mean(n) * columns.tuned, sure, noise.total(n))
    fits = Fits({group: (group,)}, one[None], np.array([sure]), tuned, tuned, np.zeros(1), np.array([sure]))
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
    is_used = norms > max(LEAST_OF_SIGNAL * np.sqrt(products[-1, -1]), LEAST_OF_NOISE * np.sqrt(problem.noise_total))
    unit = np.where(is_used, norms, 1.0)
    gram = products[:-1, :-1] / np.outer(unit, unit)
    size = np.sqrt(products[-1, -1]) or 1.0  # weights are found for y of norm 1, so that units do not matter
    cost = problem.variance * np.maximum(problem.divergence, 0.0) + typical * problem.tuned
    target = (products[:-1, -1] - cost) / unit
    constant = products[-1, -1] - problem.noise_total
    weights, sure = np.zeros((len(sets), len(norms))), np.empty(len(sets))
    for m, groups in enumerate(sets.values()):
        members = np.concatenate([problem.places[group] for group in groups])
        members = members[is_used[members]]
        gram_of_set = gram[np.ix_(members, members)]
        a = size * bounded_minimum(gram_of_set, target[members] / size, largest * unit[members] / size)
        weights[m, members] = a / unit[members]
        sure[m] = constant + a @ gram_of_set @ a - 2 * a @ target[members]
    tuned = 2 * typical * weights @ problem.tuned  # in the fit already, and no part of SURE
    sure -= tuned
    is_free = (weights > 0) & (weights < (1 - 1e-9) * largest)
    optimism = tuned + 2 * typical * (is_free @ _freedom_of_weights(problem, cost))
    doubt = 2 * typical * (weights * problem.doubt).sum(axis=1)
    alone = constant - np.where(is_used, np.maximum(target, 0.0), 0.0) ** 2
    return Fits(sets, weights, sure, optimism, tuned, (weights > 0).sum(axis=1), alone, doubt)


def _freedom_of_weights(problem: LetProblem, cost: np.ndarray) -> np.ndarray:
    """Return the degrees of freedom that fitting the weight of each column costs; `cost` is what its divergence takes off <F_k, y>."""
    target = problem.products[:-1, -1]
    shrinkage = np.divide(cost, target, out=np.ones_like(target), where=target > cost)
    return 2 * shrinkage + OVERLAP_FREEDOM


def bounded_minimum(gram: np.ndarray, target: np.ndarray, most: Any, *, ridge: float = RIDGE) -> np.ndarray:
    """Return argmin of a'Ga - 2 a'b over 0 <= a <= most, with a small ridge.

    Weights above the bound are set to it, and freed again where a smaller weight is better, until neither happens: that is the minimum.
    SciPy's solver for two bounds may stop far from the minimum where columns are nearly the same.
    """
    count = len(target)
    gram, most, at_most = gram + ridge * np.eye(count), np.broadcast_to(most, count), np.zeros(count, bool)
    a = np.zeros(count)
    for _ in range(10 * count):
        a, free = np.where(at_most, most, 0.0), ~at_most
        a[free] = _nonnegative_minimum(gram[np.ix_(free, free)], target[free] - gram[np.ix_(free, at_most)] @ most[at_most])
        slope = np.where(at_most, gram @ a - target, 0.0)
        if np.any(is_above := a > most * (1 + 1e-12)):
            at_most |= is_above
        elif slope.max() > 1e-12:
            at_most[np.argmax(slope)] = False
        else:
            break
    return np.minimum(np.where(a > 1e-9, a, 0.0), most)


def _nonnegative_minimum(gram: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return argmin of a'Ga - 2 a'b over a >= 0."""
    if not len(target):
        return target
    root = linalg.cholesky(gram)
    return optimize.nnls(root, linalg.solve_triangular(root, target, trans="T"), maxiter=100 * len(target))[0]
