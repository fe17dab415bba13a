"""Combinations of candidates: non-negative SURE-LET, and the average of several such combinations by their risk.

A linear expansion of thresholds (Blu and Luisier 2007) sum_k a_k F_k has SURE ||y - F a||^2 - n sigma^2 + 2 sigma^2 d'a, a
quadratic in a: its minimum over a >= 0 is a non-negative least-squares problem in the Gram matrix of the columns. Without
a >= 0 it collapses under strong noise.

Weights that were fitted make SURE optimistic, by 2 sigma^2 sum_k <F_k, grad a_k>: about 1.5 degrees of freedom for each weight that
is not 0 (between 1 where the noise is weak and 2 where it is strong), and the risk takes them in.

Aggregation averages the combinations m of different sets of candidates with weights exp(-(T_m - min T) / (4 sigma^2)),
T_m = SURE_m + 2 sigma^2 2.5 #{a > 0} (Leung and Barron 2006; more candidates must pay for the choice too): again one combination
of all columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg, optimize

from hushgraph.candidates import Group, candidates
from hushgraph.columns import Columns, Observation
from hushgraph.sgwt import Noise
from hushgraph.sums import block_sum

RIDGE = 1e-10
MOST = 2.0  # largest weight of a candidate
LEAST = 1e-6  # smallest share of a set of candidates
FREEDOM = 1.5  # degrees of freedom that a fitted weight costs
CAUTION = 2.5  # those that sets of candidates are charged for it when they are compared
DROPPED, NOTHING = 1e-9, 1e-60  # columns this much smaller than y are rounding, than the noise nothing

Sets = dict[str, tuple[Any, ...]]  # names of groups by name of the set


@dataclass(frozen=True, eq=False)
class Fits:
    """For each set of candidates: weights (m, k), SURE and its optimism; for each column: SURE of its best multiple."""

    sets: Sets
    weights: np.ndarray
    sure: np.ndarray
    optimism: np.ndarray
    alone: np.ndarray

    def shares(self, typical: float) -> np.ndarray:
        """Part of each set in the average, by corrected risks."""
        score = self.sure + self.optimism + 2 * (CAUTION - FREEDOM) * typical * (self.weights > 0).sum(axis=1)
        shares = np.exp(-(score - score.min()) / (4 * typical))
        shares = np.where(shares > LEAST, shares, 0.0)
        return shares / shares.sum()


@dataclass(frozen=True, eq=False)
class Combination:
    """Weights of the candidates, the estimate F a and its risk, and how the sets of candidates shared in it."""

    columns: Columns = field(repr=False)
    weights: np.ndarray
    signal: np.ndarray = field(repr=False)
    sure: float
    optimism: float
    fits: Fits
    shares: np.ndarray

    @property
    def risk(self) -> float:
        """SURE without the optimism of fitted weights."""
        return self.sure + self.optimism

    @property
    def push(self) -> np.ndarray:
        """Derivative along the kept probes at these weights: (probes, n)."""
        return self.columns.push(self.weights)


def combine(seen: Observation, sets: Sets) -> Combination:
    """The average of the combinations of each set of candidates; of one set, that is plain SURE-LET."""
    groups = tuple(dict.fromkeys(group for some in sets.values() for group in some))
    columns = candidates(seen, groups)
    fits = fit(columns, seen.y, seen.noise, sets)
    return averaged(seen, columns, fits)


def averaged(seen: Observation, columns: Columns, fits: Fits) -> Combination:
    """The fits in their shares."""
    shares = fits.shares(seen.noise.mean(seen.graph.n))
    weights = shares @ fits.weights
    signal = columns.combined(weights)
    return Combination(columns, weights, signal, _sure(seen, columns, weights, signal), float(shares @ fits.optimism), fits, shares)


def alone(seen: Observation, group: Group) -> Combination:
    """A single candidate as it is."""
    columns, one = candidates(seen, (group,)), np.ones(1)
    signal = columns.values[0][0]
    sure, tuned = _sure(seen, columns, one, signal), 2 * seen.noise.mean(seen.graph.n) * columns.tuned
    fits = Fits({group: (group,)}, one[None], np.array([sure]), tuned, np.array([sure]))
    return Combination(columns, one, signal, sure, float(tuned[0]), fits, one)


def _sure(seen: Observation, columns: Columns, weights: np.ndarray, signal: np.ndarray) -> float:
    """SURE of the combination; a divergence below 0 comes from the probes."""
    divergence = float(weights @ np.maximum(columns.divergence, 0.0))
    return float(block_sum((seen.y - signal) ** 2)) - seen.noise.total(seen.graph.n) + 2 * seen.noise.variance * divergence


def fit(columns: Columns, y: np.ndarray, noise: Noise, sets: Sets, *, most: float = MOST) -> Fits:
    """Weights from 0 to `most` at the least SURE, for each set of candidates; the Gram matrix is that of all of them."""
    products = columns.products(y)
    norms = np.sqrt(np.diag(products)[:-1])
    alive = norms > max(DROPPED * np.sqrt(products[-1, -1]), NOTHING * np.sqrt(noise.total(len(y))))
    unit = np.where(alive, norms, 1.0)
    gram = products[:-1, :-1] / np.outer(unit, unit)
    typical = noise.mean(len(y))
    size = np.sqrt(products[-1, -1]) or 1.0  # weights are found for y of norm 1, so that units do not matter
    spent = noise.variance * np.maximum(columns.divergence, 0.0) + typical * columns.tuned
    target = (products[:-1, -1] - spent) / unit
    constant = products[-1, -1] - noise.total(len(y))
    weights, sure = np.zeros((len(sets), len(norms))), np.empty(len(sets))
    for m, groups in enumerate(sets.values()):
        own = columns.of(groups)
        own = own[alive[own]]
        a = size * bounded_minimum(gram[np.ix_(own, own)], target[own] / size, most * unit[own] / size)
        weights[m, own] = a / unit[own]
        sure[m] = constant + a @ gram[np.ix_(own, own)] @ a - 2 * a @ target[own]
    tuned = 2 * typical * weights @ columns.tuned  # in the fit already, and no part of SURE
    sure -= tuned
    optimism = tuned + 2 * FREEDOM * typical * (weights > 0).sum(axis=1)
    return Fits(sets, weights, sure, optimism, constant - np.where(alive, np.maximum(target, 0.0), 0.0) ** 2)


def bounded_minimum(gram: np.ndarray, target: np.ndarray, most, *, ridge: float = RIDGE) -> np.ndarray:
    """argmin of a'Ga - 2 a'b over 0 <= a <= most, with a little ridge.

    Weights that come out too large are held at the bound, and let go again where less would be better, until neither happens: that is
    the minimum. (SciPy's solver for two bounds may stop far from it, where columns are nearly the same.)
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
    if not len(target):
        return target
    root = linalg.cholesky(gram)
    return optimize.nnls(root, linalg.solve_triangular(root, target, trans="T"), maxiter=100 * len(target))[0]
