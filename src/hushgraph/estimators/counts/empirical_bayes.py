"""Counts: leave-one-out empirical Bayes for non-negative maps in Gaussian noise.

The nodes around a node say what to expect there: mu_i = max(0, [mean y, F] c), where no feature F of `node_surroundings` sees y_i and
c >= 0 is weighted least squares. The prior of f_i given mu_i is the equal mixture of

    (a) (1 - e) Gamma(shape k, mean s) + e Gamma(shape min(k, 1), mean h s),  s = b0 + b1 mu,   by marginal likelihood,
    (b) sum_q phi_q(mu) G_q, hat functions phi_q at quantiles of mu, distributions G_q on a grid,  by EM,

the estimate is the posterior mean m_i = E[f_i | y_i, mu_i], and with v_i the posterior variance dm_i / dy_i = v_i / sigma_i^2, so

    SURE = |y - m|^2 - sum sigma_i^2 + 2 sum v_i                 (hyper-parameters and mu held fixed).

A second pass adds features of m over the nearest nodes. There m_j depends on y_i through mu_j, which is taken out to first order:
F2 = K m - diag(K G K_mu) (y - mu), G = dm/dmu and K_mu = dmu/dy.

A guide g, a public map that does not share noise with y, is a column of the pilot, and g + 0.1 mean(g) and g + 0.5 mean(g) are two
more covariates of the surroundings: nodes where the guide is large get their share of what is around them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import optimize, special

from hushgraph._progress import nth, reached
from hushgraph._validation import checked_sigma
from hushgraph.core import _loops, block_products, block_sum
from hushgraph.estimators.counts.surroundings import Surroundings, node_surroundings
from hushgraph.estimators.let.combination import bounded_minimum
from hushgraph.estimators.risk import Spread
from hushgraph.graphs import Graph, checked_graph
from hushgraph.wavelets import Noise

LEAST_NODES, MOST_NODES = 100, 16_000
REWEIGHTINGS = 2
GUIDE_FLOORS = (0.1, 0.5)  # shares of its mean that are added to a guide
RIDGE = 1e-7
KNOTS = (0.05, 0.475, 0.9, 0.985)  # quantiles of mu
EM_STEPS = 200
STEP = 0.2  # of the grid, in log f near 0
CELLS_PER_SIGMA = 2.0  # of the grid, where it is even
MOST_CELLS = 1000 * CELLS_PER_SIGMA
MEAN_STEP = 0.1  # of the table of Gamma distributions, in log s
FARTHEST = 7.0  # sigma above y: no posterior mass worth counting
UNDERFLOW = 37.0  # sigma below y: exp(-x^2 / 2) is the smallest number there
SMALLEST = 1e-280  # evidence that is counted
LEAST, MOST = np.log([0.05, 1e-4, 1.0, 1e-3, 0.02]), np.log([50.0, 0.5, 300.0, 5.0, 5.0])  # k, e, h, b0 / level, b1
START = np.log([0.5, 0.05, 4.0, 0.1, 1.0])


@dataclass(frozen=True, eq=False)
class CountsEstimate:
    """An empirical-Bayes estimate: the result of `counts_estimate`.

    Attributes
    ----------
    signal : (n,) posterior means, never negative
    variance : (n,) posterior variances; their roots are error bars
    sure : Stein's unbiased estimate of the total squared error, at fixed hyper-parameters
    active : number of features in use
    coordinates : whether places of the nodes were used
    """

    signal: np.ndarray = field(repr=False)
    variance: np.ndarray = field(repr=False)
    sure: float
    active: int
    coordinates: bool

    def spread(self, noise: Noise) -> Spread:
        """Return what the Jacobian does to the noise: it is diagonal, posterior variance over noise variance, and known exactly."""
        trace = float(block_sum(self.variance**2))
        return Spread(trace, trace, self.variance, self.variance)


def obstacle_to_counts(graph: Graph) -> str | None:
    """Return why `counts_estimate` cannot be used on this graph, or None if it can.

    The surroundings of a node hold up to a few thousand others, so memory grows to a third of a gigabyte at the largest size (more with hubs).
    """
    if checked_graph(graph).n < LEAST_NODES:
        return f"the graph has {graph.n} nodes, too few to learn a prior from; at least {LEAST_NODES} are needed"
    if graph.n > MOST_NODES:
        return f"the graph has {graph.n} nodes, and the surroundings of more than {MOST_NODES} take too much memory"
    if 2 * graph.n_edges < graph.n:
        return f"the graph has {graph.n_edges} edges on {graph.n} nodes, too few to say what is around a node"
    return None


def counts_estimate(
    graph: Graph, y: np.ndarray, sigma: Any, *, coordinates: bool = True, guides: Any = None, passes: int = 2
) -> CountsEstimate:
    """Return the leave-one-out empirical-Bayes estimate of a non-negative signal from y = f + N(0, sigma^2).

    Parameters
    ----------
    graph : Graph
    y : (n,) noisy values
    sigma : float or (n,) standard deviations of the noise
    coordinates : bool
        Use the places of the nodes, where the graph has them in the plane.
    guides : (k, n) array, optional
        Public maps that do not share noise with y; negative values count as 0.
    passes : 1 or 2
        One pass is twice as fast, and a little less good.

    Examples
    --------
    >>> import numpy as np
    >>> import hushgraph as hg
    >>> graph = hg.datasets.city(400)
    >>> counts = hg.hotspot_counts(graph, total=2000)
    >>> noisy = counts + 5 * np.random.default_rng(0).normal(size=graph.n)
    >>> estimate = counts_estimate(graph, noisy, 5.0)
    >>> hg.snr(counts, estimate.signal) > hg.snr(counts, np.maximum(noisy, 0)) + 2
    True
    """
    guides = _usable_guides(guides, checked_graph(graph).n)
    surroundings = node_surroundings(graph, coordinates=coordinates)
    if len(guides):
        surroundings = surroundings.with_covariates(_guide_covariates(guides))
    y = np.ascontiguousarray(y, dtype=np.float64)
    spread = np.broadcast_to(np.asarray(checked_sigma(sigma, graph.n), dtype=np.float64), y.shape).copy()
    if graph.n == 0:
        return CountsEstimate(y, y, 0.0, 0, surroundings.coordinates)
    likelihood = likelihood_on(y, spread)
    features = np.concatenate([surroundings.features(y), guides.T], axis=1)
    with nth(0, passes):
        last = fit_pass(likelihood, features, START)
    if passes == 2:
        with nth(1, 2):
            corrected = second_features(surroundings, likelihood, last)
            last = fit_pass(likelihood, np.concatenate([features, corrected], axis=1), last.gamma)
    m, v = last.posterior(likelihood, last.mu)
    sure = block_sum((y - m) ** 2 - spread**2 + 2 * v)
    return CountsEstimate(m, v, float(sure), int(np.count_nonzero(last.coefficients)), surroundings.coordinates)


def _usable_guides(guides: Any, n: int) -> np.ndarray:
    """Return the guides (k, n) that can be covariates: not negative, and not constant."""
    parts = np.maximum(np.zeros((0, n)) if guides is None else np.asarray(guides, dtype=np.float64), 0.0)
    return parts[[bool(part.std() > 1e-9 * part.mean()) for part in parts]] if len(parts) else parts


def _guide_covariates(guides: np.ndarray) -> np.ndarray:
    """Return each guide, raised by two shares of its mean so that it is positive."""
    means = guides.mean(axis=1, keepdims=True)
    return np.stack([guides + share * means for share in GUIDE_FLOORS], axis=1).reshape(-1, guides.shape[1])


# ---- the likelihood on a grid ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Likelihood:
    """N(y_i; f, sigma_i^2) at the grid points of node i, over its largest value: values[starts[i] : starts[i + 1]] from point first[i].

    The grid is {0} and a log(1 + e^t) for even t: geometric near 0, where counts are, and even from about sigma on. `width` are
    the sizes of its cells. Nodes in `plain` lie where cells are wider than their sigma: they keep y_i.
    """

    y: np.ndarray
    sigma: np.ndarray
    grid: np.ndarray
    width: np.ndarray
    first: np.ndarray
    starts: np.ndarray
    values: np.ndarray
    plain: np.ndarray


def likelihood_on(y: np.ndarray, sigma: np.ndarray, *, top: float | None = None) -> Likelihood:
    """Return the likelihood of all nodes on a grid from 0 to `top`; by default `top` is the largest value."""
    typical = float(np.median(sigma))
    top = min(max(float(y.max()) if top is None else top, 4 * typical), MOST_CELLS / CELLS_PER_SIGMA * typical) + 2 * typical
    bend = max(float(sigma.min()), top / MOST_CELLS * CELLS_PER_SIGMA) / (STEP * CELLS_PER_SIGMA)
    t = np.arange(np.log(typical / 50 / bend), top / bend + STEP, STEP)  # log(1 + e^t) > t: the last point is above the top
    grid = np.concatenate([[0.0], bend * np.logaddexp(0, t)])
    width = np.concatenate([[0.0], bend * STEP * special.expit(t)])
    nearest = np.clip(y, 0, None)
    first = np.searchsorted(grid, nearest - UNDERFLOW * sigma)
    last = np.maximum(np.searchsorted(grid, nearest + FARTHEST * sigma), first + 1)
    cell = np.interp(nearest, grid, width)
    plain = (nearest > grid[-1]) | (cell > sigma)
    first, last = np.where(plain, 0, first), np.where(plain, 1, last)
    starts = np.concatenate([[0], np.cumsum(last - first)])
    values = _loops.likelihood_values(y, sigma, grid, first, starts)
    return Likelihood(y, sigma, grid, width, first, starts, values, plain)


# ---- one pass: pilot, priors, posterior --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pass:
    """A fitted pilot with its two priors."""

    coefficients: np.ndarray  # of the mean and of each feature
    mu: np.ndarray
    gamma: np.ndarray  # logarithms of k, e, h, b0 / level, b1
    level: float
    knots: np.ndarray
    table: np.ndarray  # (knots, grid), the distributions G_q

    def posterior(self, likelihood: Likelihood, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return posterior means and variances under the equal mixture of both priors."""
        parts = likelihood.values, likelihood.starts, likelihood.first, likelihood.grid
        by_gamma = _loops.sum_moments(*parts, *gamma_table(likelihood, self.gamma, mu, self.level))
        by_hats = _loops.sum_moments(*parts, self.table, *hat_places(mu, self.knots))
        total, mean, square = by_gamma + by_hats
        keep = likelihood.plain | (total <= SMALLEST)
        total = np.where(keep, 1.0, total)
        mean = np.where(keep, np.maximum(likelihood.y, 0), mean / total)
        return mean, np.where(keep, likelihood.sigma**2, np.maximum(square / total - mean**2, 0))


def fit_pass(likelihood: Likelihood, features: np.ndarray, start: np.ndarray) -> Pass:
    """Return the pilot fitted to the features, and both priors given the pilot."""
    coefficients, mu = fit_pilot(likelihood.y, likelihood.sigma, features)
    level = max(float(mu.mean()), float(np.mean(likelihood.sigma)) / 100)
    gamma = fit_gamma(likelihood, mu, level, start)
    knots = np.unique(np.quantile(mu, KNOTS))
    knots = knots[np.concatenate([[True], np.diff(knots) > 1e-9 * level])]
    return Pass(coefficients, mu, gamma, level, knots, fit_hats(likelihood, mu, knots, level))


def fit_pilot(y: np.ndarray, sigma: np.ndarray, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return non-negative coefficients and mu, reweighted for a variance that grows with mu^2."""
    columns = np.concatenate([np.full((len(y), 1), y.mean()), features], axis=1)
    weights = 1 / sigma**2
    for _ in range(REWEIGHTINGS + 1):
        coefficients = nonnegative_least_squares(columns, y, weights)
        mu = np.maximum(np.einsum("np,p->n", columns, coefficients), 0)  # not @: bits must not depend on threads of BLAS
        fourth = block_sum(mu**4)
        excess = block_sum(((y - mu) ** 2 - sigma**2) * mu**2) / fourth if fourth > 0 else 0.0
        weights = 1 / (sigma**2 + max(excess, 0.0) * mu**2)
    return coefficients, mu


def nonnegative_least_squares(columns: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the argmin over c >= 0 of sum weights (y - columns c)^2, columns scaled to one size, with a small ridge."""
    products = block_products(np.concatenate([columns.T, y[None]]) * np.sqrt(weights))
    gram, target = products[:-1, :-1], products[:-1, -1]
    size = np.sqrt(np.diag(gram))
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    unit = gram * np.outer(scale, scale) + np.diag((scale == 0).astype(float))
    return scale * bounded_minimum(unit, scale * target, np.inf, ridge=RIDGE)


# ---- prior (a): two Gammas ---------------------------------------------------------------------------------------


def gamma_table(likelihood: Likelihood, gamma: np.ndarray, mu: np.ndarray, level: float) -> Any:
    """Return distributions on the grid for means s on a lattice of log s, and the place on the lattice of each node's s = b0 + b1 mu."""
    k, e, h, b0, b1 = np.exp(gamma)
    place = np.log(b0 + b1 * (mu / level)) / MEAN_STEP
    lowest, highest = int(np.floor(place.min())), int(np.floor(place.max())) + 1
    means = level * np.exp(MEAN_STEP * np.arange(lowest, highest + 1))
    table = (1 - e) * gamma_masses(likelihood, k, means) + e * gamma_masses(likelihood, min(k, 1.0), h * means)
    low = np.floor(place).astype(np.int64) - lowest
    return table / table.sum(axis=1, keepdims=True), low, place - np.floor(place)


def gamma_masses(likelihood: Likelihood, shape: float, means: np.ndarray) -> np.ndarray:
    """Return Gamma density times cell width, (means, grid), which is the trapezoid rule in t; all mass below the grid goes to 0."""
    f, width = likelihood.grid[1:], likelihood.width[1:]
    x = shape * f / means[:, None]
    masses = np.empty((len(means), len(f) + 1))
    masses[:, 0] = special.gammainc(shape, shape * f[0] * np.exp(-STEP / 2) / means)
    masses[:, 1:] = np.exp(shape * np.log(x) - x - special.gammaln(shape)) * (width / f)
    return masses


def fit_gamma(likelihood: Likelihood, mu: np.ndarray, level: float, start: np.ndarray) -> np.ndarray:
    """Return the logarithms of the five parameters that maximise the marginal likelihood."""
    parts = likelihood.values, likelihood.starts, likelihood.first

    def cost(gamma: np.ndarray) -> float:
        reached(0.3, "counts")
        evidence = _loops.sum_evidence(*parts, *gamma_table(likelihood, gamma, mu, level))
        return float(-block_sum(np.log(np.maximum(evidence, SMALLEST))) / len(mu))

    optimum = optimize.minimize(
        cost,
        start,
        method="L-BFGS-B",
        bounds=list(zip(LEAST, MOST, strict=True)),
        options={"eps": 1e-4, "maxiter": 60, "ftol": 1e-7},
    )
    return optimum.x


# ---- prior (b): free distributions at hat functions --------------------------------------------------------------


def hat_places(mu: np.ndarray, knots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the knot below each mu, and the share of the way from it to the next knot."""
    place = np.interp(mu, knots, np.arange(len(knots)))
    low = np.minimum(place.astype(np.int64), max(len(knots) - 2, 0))
    return low, place - low


def fit_hats(likelihood: Likelihood, mu: np.ndarray, knots: np.ndarray, level: float) -> np.ndarray:
    """Return G_q, by EM from exponentials, which also count as one observation each."""
    means = np.maximum(knots, level / 10)
    prior = gamma_masses(likelihood, 1.0, means)
    prior /= prior.sum(axis=1, keepdims=True)
    if len(knots) == 1:
        prior = np.concatenate([prior, prior])  # a second row that no node uses
    low, share = hat_places(mu, knots)
    parts = likelihood.values, likelihood.starts, likelihood.first
    table = (prior + 1 / prior.shape[1]) / 2  # not zero anywhere, for zeros would stay
    for step in range(EM_STEPS):
        reached(0.5 + step / (2 * EM_STEPS), "counts")
        expected = _loops.count_expected(*parts, table, low, share, likelihood.plain, SMALLEST)
        table = table * expected + prior  # one pseudo-count on the prior
        table /= table.sum(axis=1, keepdims=True)
    return table


# ---- the second pass ---------------------------------------------------------------------------------------------


def second_features(surroundings: Surroundings, likelihood: Likelihood, fit: Pass) -> np.ndarray:
    """Return narrow features of m, less the part of each that comes from the y of the same node."""
    m, _ = fit.posterior(likelihood, fit.mu)
    step = 0.02 * (fit.mu + fit.level)
    slope = (fit.posterior(likelihood, fit.mu + step)[0] - m) / step * (fit.mu > 0)
    n_features = len(surroundings.kernels) * len(surroundings.covariates)  # those of guides come after them, and do not follow y
    echo = surroundings.echoes(fit.coefficients[1 : 1 + n_features], slope)
    return surroundings.features(m, surroundings.narrow) - echo * (likelihood.y - fit.mu)[:, None]
