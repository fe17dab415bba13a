"""Signals with few levels: posterior means of a Potts field, whose levels are estimated from the signal.

Each node has one of K levels mu_k. A pair of neighbors i, j with different levels multiplies the prior probability by
exp(-COUPLING w_ij / sqrt(d_i d_j)), with the degrees d. Belief propagation (sum-product) passes messages along all edges at once; the
belief b_k(i) is the probability that node i has level k, and the estimate is sum_k b_k mu_k, the posterior mean. After some passes each
level becomes the mean of y with the weights b_k, and the passes go on (expectation-maximization). The first levels come from a total
variation: means of y over its large pieces, in K clusters.

The number of pieces or levels is no divergence for such an estimate, because borders and levels follow the noise, and neither is its
derivative at y, which is close to 0 at most signals and huge at a few, where a patch appears. The divergence is that of the estimate
averaged over a little more noise: (F(y + step sigma eps) - F(y)) / (step sigma) along the probes eps, with DIFFERENCE_STEP as the step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hushgraph.core import _loops, block_sum
from hushgraph.estimators.baselines.total_variation import Arcs
from hushgraph.estimators.let.columns import KnownDerivatives
from hushgraph.estimators.let.observation import Observation

N_LEVELS = (2, 3, 4, 5, 6, 8, 12)  # numbers that `pass_messages` is compiled for
COUPLING = 7.0
FIRST_PASSES, PASSES, ROUNDS = 6, 4, 3  # passes with the first levels; then passes before each of so many updates of the levels
DIFFERENCE_STEP = 0.3  # of the finite differences, in noise levels
SIGNALS_AT_ONCE = 4  # signals that `pass_messages` takes at a time, or a single one
LEAST_PIECE = 8  # nodes of a piece from which levels are taken
MOST_CLUSTER_STEPS = 50  # of the clustering of pieces
LARGEST_EXCESS = 40.0  # noise variances by which the risk may be above that of total variation and heat; SURE-LET decides later
LARGEST_MISFIT = 3.5  # mean squared distance of pieces from the nearest level, in squared standard errors, where levels fit
MOST_FAILURES = 2  # numbers of levels that are tried without success
LEAST_GAIN, LEAST_NODE_GAIN = 10.0, 0.005  # noise variances by which more levels must lower the risk: in all, or for each node
MOST_MESSAGES = 2**26  # numbers in the messages of all arcs and levels; graphs with many edges have fewer levels, or none
CHOICE_FREEDOM = 4.0  # degrees of freedom that the choice of the number of levels costs
LEAST_SHARE = 1e-12  # of all nodes, below which a level keeps its value
LEAST_FACTOR = 1e-12  # of two neighbors with different levels


class PottsField:
    """A Potts field on a graph, for noise with the variances of an observation."""

    def __init__(self, observation: Observation) -> None:
        graph = observation.graph
        self.arcs = Arcs.cached(graph)
        root = np.sqrt(graph.degrees)
        coupling = graph.adjacency.data / (np.repeat(root, np.diff(self.arcs.indptr)) * root[self.arcs.indices])
        self.factors = np.maximum(np.exp(-COUPLING * coupling), LEAST_FACTOR)
        self.precision = 1 / observation.noise.weigh(np.ones_like(observation.y))
        self.total = float(block_sum(self.precision))

    def estimates(self, signals: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the posterior means and variances of signals (m, n), each (m, n). The levels that are estimated start at `levels`."""
        end = len(signals) - len(signals) % SIGNALS_AT_ONCE  # of the full groups
        groups = [signals[k : k + SIGNALS_AT_ONCE] for k in range(0, end, SIGNALS_AT_ONCE)] + [y[None] for y in signals[end:]]
        parts = [self._group_estimates(np.ascontiguousarray(group.T), levels) for group in groups]
        mean, variance = (np.concatenate(rows) for rows in zip(*parts, strict=True))
        return mean, variance

    def _group_estimates(self, y: np.ndarray, first_levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the posterior means and variances of 1 or SIGNALS_AT_ONCE signals (n, m)."""
        levels = np.repeat(first_levels[:, None], y.shape[1], axis=1)
        messages, sent = (np.ones((len(self.arcs.indices), *levels.shape)) for _ in range(2))
        evidence, beliefs = (np.empty((len(y), *levels.shape)) for _ in range(2))
        for n_passes in (FIRST_PASSES, *[PASSES] * ROUNDS):
            _loops.put_exponents(y, levels, self.precision, evidence)
            np.exp(evidence, out=evidence)
            for _ in range(n_passes):
                _loops.pass_messages(self.arcs.indptr, self.arcs.back, self.factors, evidence, messages, beliefs, sent)
                messages, sent = sent, messages
            mass, total = _loops.sum_by_label(y, self.precision, beliefs)
            least = LEAST_SHARE * self.total  # a level that no node has keeps its value
            levels = (total + least * levels) / (mass + least)
        mean = np.einsum("ikm,km->mi", beliefs, levels)
        return mean, np.einsum("ikm,km->mi", beliefs, levels**2) - mean**2


class Pieces(NamedTuple):
    """The pieces of a total variation: the piece of each node; the mean of y, the total precision and whether it is large of each piece."""

    labels: np.ndarray
    means: np.ndarray
    mass: np.ndarray
    is_large: np.ndarray

    @classmethod
    def of(cls, observation: Observation, precision: np.ndarray) -> Pieces:
        """Return the pieces of the strongest total variation."""
        labels = observation.total_variations[-1].labels
        sizes, mass = np.bincount(labels), np.bincount(labels, precision)
        return cls(labels, np.bincount(labels, precision * observation.y) / mass, mass, sizes >= min(LEAST_PIECE, sizes.max()))

    def centers(self, count: int) -> np.ndarray:
        """Return the centers of `count` clusters of the means of large pieces (k-means in one dimension, from evenly spaced centers on)."""
        values, mass = self.means[self.is_large], self.mass[self.is_large]
        centers = np.linspace(values.min(), values.max(), count)
        for _ in range(MOST_CLUSTER_STEPS):
            nearest = _nearest(values, centers)
            total = np.bincount(nearest, mass, minlength=count)
            means = np.bincount(nearest, mass * values, minlength=count) / np.where(total > 0, total, 1.0)
            new_centers = np.sort(np.where(total > 0, means, centers))
            if np.array_equal(new_centers, centers):
                break
            centers = new_centers
        return centers

    def numbers_of_levels(self) -> tuple[int, ...]:
        """Return the numbers of levels to try, from the least one on whose levels fit the means of the pieces."""
        for k, count in enumerate(N_LEVELS):
            centers = self.centers(count)
            misfit = self.mass * (self.means - centers[_nearest(self.means, centers)]) ** 2
            if misfit.sum() <= LARGEST_MISFIT * len(misfit):
                return N_LEVELS[k:]
        return ()


def _nearest(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return for each value the number of the nearest of these ascending levels."""
    return np.searchsorted((levels[1:] + levels[:-1]) / 2, values)


class _Fit(NamedTuple):
    """An estimate with its first levels (None if it is 0), its derivatives along the first probes, and SURE (plus tr(Sigma)) from them."""

    risk: float
    first_levels: np.ndarray | None
    signal: np.ndarray
    derivatives: np.ndarray


def levels(observation: Observation) -> KnownDerivatives:
    """Return one column, with the number of levels of the least SURE; it is 0 where total variation or heat is better."""
    field, y, eps = PottsField(observation), observation.y, observation.filters.probes.eps
    pieces = Pieces.of(observation, field.precision)
    variance, least_gain = observation.noise.mean(len(y)), max(LEAST_GAIN, LEAST_NODE_GAIN * len(y))
    best = _Fit(_risk_of_others(observation), None, np.zeros_like(y), np.zeros_like(eps))
    failures = 0
    most_levels = MOST_MESSAGES // max(SIGNALS_AT_ONCE * len(field.arcs.indices), 1)
    for count in [count for count in pieces.numbers_of_levels() if count <= most_levels]:
        limit = best.risk + (LARGEST_EXCESS if best.first_levels is None else -least_gain) * variance
        fit = _fit(observation, field, pieces.centers(count), limit)
        failures, best = (failures + 1, best) if fit is None else (0, fit)
        if failures == (MOST_FAILURES if best.first_levels is None else 1):
            break
    derivatives = best.derivatives
    if best.first_levels is not None and len(derivatives) < len(eps):
        others = _differences(observation, field, best.first_levels, best.signal, eps[len(derivatives) :])
        derivatives = np.concatenate([derivatives, others])
    divergence = np.array([_divergence(eps, derivatives)])
    chosen = {"number": np.array(0 if best.first_levels is None else len(best.first_levels))}
    return KnownDerivatives(("levels",), best.signal[None], divergence, derivatives[None], tuned=CHOICE_FREEDOM, chosen=chosen)


def _fit(observation: Observation, field: PottsField, first_levels: np.ndarray, limit: float) -> _Fit | None:
    """Return the estimate whose levels start at `first_levels`, or None if its risk is not below the limit."""
    y, eps = observation.y, observation.filters.probes.eps[:SIGNALS_AT_ONCE]
    mean, variance = field.estimates(y[None], first_levels)
    residual = float(block_sum((y - mean[0]) ** 2))
    # with fixed messages, the derivative of a posterior mean is its variance / sigma^2: less than the whole derivative
    if residual + 2 * float(block_sum(variance[0])) > limit:
        return None
    derivatives = _differences(observation, field, first_levels, mean[0], eps)
    risk = residual + 2 * observation.noise.variance * _divergence(eps, derivatives)
    return _Fit(risk, first_levels, mean[0], derivatives) if risk < limit else None


def _differences(
    observation: Observation, field: PottsField, first_levels: np.ndarray, signal: np.ndarray, eps: np.ndarray
) -> np.ndarray:
    """Return the finite differences of the estimate `signal` along the probes (p, n)."""
    step = DIFFERENCE_STEP * observation.sigma
    return (field.estimates(observation.y + step * eps, first_levels)[0] - signal) / step


def _divergence(eps: np.ndarray, derivatives: np.ndarray) -> float:
    """Return the mean of eps' J eps over as many probes as there are derivatives."""
    return float(np.mean([block_sum(e * row) for e, row in zip(eps, derivatives, strict=False)]))


def _risk_of_others(observation: Observation) -> float:
    """Return the least SURE of total variation and of heat, plus tr(Sigma)."""
    y, noise, filters = observation.y, observation.noise, observation.filters
    variance = noise.weigh(np.ones_like(y))
    risks = [
        float(block_sum((y - tv.x) ** 2) + 2 * block_sum(variance / np.bincount(tv.labels)[tv.labels]))
        for tv in observation.total_variations
    ]
    heat, trace = np.zeros_like(y), 0.0
    for part, part_trace in zip(observation.parts.heat, filters.split(filters.probes.trace).heat, strict=True):
        heat, trace = heat + part, trace + float(part_trace)
        risks.append(float(block_sum((y - heat) ** 2)) + 2 * noise.variance * trace)
    return min(risks)
