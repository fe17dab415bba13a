"""Counts: leave-one-out empirical Bayes for non-negative maps in Gaussian noise.

The nodes around a node say what to expect there: mu_i = max(0, [mean y, F] c), where no feature F of `node_surroundings` sees y_i and
c >= 0 is weighted least squares. The prior of f_i given mu_i is the equal mixture of

    (a) (1 - e) Gamma(shape k, mean s) + e Gamma(shape min(k, 1), mean h s),  s = b0 + b1 mu,   by marginal likelihood,
    (b) sum_q phi_q(mu) G_q, hat functions phi_q at quantiles of mu, distributions G_q on a grid,  by EM,

the estimate is the posterior mean m_i = E[f_i | y_i, mu_i], and with v_i the posterior variance dm_i / dy_i = v_i / sigma_i^2, so

    SURE = |y - m|^2 - sum sigma_i^2 + 2 sum v_i                 (hyper-parameters and mu held fixed).

The distributions G_q are free, and in weak noise they have a peak at each large value: they follow y. What that costs is the divergence
of the estimate through them, by finite differences: EM is run once more, on y moved along a random probe (`CountsFit.freedom`).

A second pass adds features of m over the nearest nodes. There m_j depends on y_i through mu_j, which is taken out to first order:
F2 = K m - diag(K G K_mu) (y - mu), G = dm/dmu and K_mu = dmu/dy.

A guide g, a public map that does not share noise with y, is a column of the pilot, and g + 0.1 mean(g) and g + 0.5 mean(g) are two
more covariates of the surroundings: nodes where the guide is large get their share of what is around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import optimize, special

from hushgraph._arrays import namespace, on_device, on_host, placed_like
from hushgraph._progress import between, nth, reached
from hushgraph._validation import checked_sigma
from hushgraph.core import _loops, block_products_of, block_sum, sum_of_rows
from hushgraph.estimators.counts.priors_gpu import DeviceLikelihood, PriorTables, posterior_moments
from hushgraph.estimators.counts.surroundings import Surroundings, node_surroundings
from hushgraph.estimators.counts.surroundings_gpu import DeviceSurroundings, device_surroundings, obstacle_on_device
from hushgraph.estimators.let.combination import bounded_minimum
from hushgraph.estimators.risk import Spread
from hushgraph.graphs import Graph
from hushgraph.wavelets import Noise, probes

LEAST_NODES = 100
SAMPLE = 2**16  # nodes that pilot and priors are fitted to, where there are more
STRETCH = 2**16  # nodes whose posterior is computed at a time
INTERVAL_STRETCH = 2**12  # nodes whose intervals are computed at a time
TAILS = 21  # divisions of what lies outside an interval into two tails, of which the one with the shortest interval is taken
REWEIGHTINGS = 2
GUIDE_FLOORS = (0.1, 0.5)  # shares of its mean that are added to a guide
RIDGE = 1e-7
DIFFERENCE_STEP = 0.3  # of the finite differences that say what the fitted distributions cost, in noise levels
KNOTS = (0.05, 0.475, 0.9, 0.985)  # quantiles of mu
EM_STEPS = 200
STEP = 0.2  # of the grid, in log f near 0
CELLS_PER_SIGMA = 2.0  # of the grid, where it is even
MOST_CELLS = 1000 * CELLS_PER_SIGMA
MEAN_STEP = 0.1  # of the table of Gamma distributions, in log s
FARTHEST = 7.0  # sigma above y: no posterior mass worth counting
UNDERFLOW = 37.0  # sigma below y: exp(-x^2 / 2) is the smallest number there
SMALLEST = 1e-280  # evidence that is counted
LEAST_EVIDENCE = 0.01  # of both priors: a prior with less says nothing about a node
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
    freedom : degrees of freedom that fitting the free distributions of the prior costs
    coordinates : whether places of the nodes were used
    on_host : why an estimate from values on a GPU was computed on the CPU; None if it was not
    posterior : the distributions that `signal` and `variance` are moments of
    """

    signal: np.ndarray = field(repr=False)
    variance: np.ndarray = field(repr=False)
    sure: float
    active: int
    coordinates: bool
    freedom: float = 0.0
    on_host: str | None = None
    posterior: CountsPosterior | None = field(default=None, repr=False)

    def spread(self, noise: Noise) -> Spread:
        """Return what the Jacobian does to the noise: it is diagonal, posterior variance over noise variance, and known exactly."""
        trace = float(block_sum(self.variance**2))
        return Spread(trace, trace, self.variance, self.variance)


def obstacle_to_counts(graph: Graph) -> str | None:
    """Return why `counts_estimate` cannot be used on this graph, or None if it can."""
    return obstacle_by_size(graph.n, graph.n_edges)


def obstacle_by_size(n: int, n_edges: int) -> str | None:
    """Return the same for a graph with these numbers of nodes and edges."""
    if n < LEAST_NODES:
        return f"the graph has {n} nodes, too few to learn a prior from; at least {LEAST_NODES} are needed"
    if 2 * n_edges < n:
        return f"the graph has {n_edges} edges on {n} nodes, too few to say what is around a node"
    return None


def counts_estimate(
    graph: Graph, y: np.ndarray, sigma: Any, *, coordinates: bool = True, guides: Any = None, passes: int = 2
) -> CountsEstimate:
    """Return the leave-one-out empirical-Bayes estimate of a non-negative signal from y = f + N(0, sigma^2).

    Parameters
    ----------
    graph : Graph
    y : (n,) noisy values; a CuPy array is denoised on its GPU, and the result is on the same GPU
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
    guides = _usable_guides(guides, graph.n)
    on_cpu = node_surroundings(graph, coordinates=coordinates)
    if on_device(y):
        obstacle = "guides are used on the CPU only" if len(guides) else obstacle_on_device(graph, on_cpu)
        if obstacle is not None:
            return _computed_on_host(graph, y, sigma, obstacle, coordinates=coordinates, guides=guides, passes=passes)
    surroundings, guides = _placed(graph, on_cpu, guides, y)
    xp = namespace(y)
    y = xp.ascontiguousarray(y, dtype=np.float64)
    spread = xp.broadcast_to(xp.asarray(checked_sigma(sigma, graph.n), dtype=np.float64), y.shape).copy()
    if graph.n == 0:
        return CountsEstimate(y, y, 0.0, 0, surroundings.coordinates)
    noisy = NoisyValues(y, spread, value_grid(y, spread))
    with nth(0, 2 * passes):
        features, gains = surroundings.features_and_gains(y)
    with nth(1, 2 * passes):
        columns: tuple[np.ndarray, ...] = (features, guides)
        fit = fit_to_sample(noisy, columns, START, is_last=passes == 1)
    if passes == 2:
        mu = fit.mu(columns)
        if surroundings.wide:  # a large graph: features that the first pass does not use are forgotten
            columns = (features[placed_like(np.flatnonzero(fit.coefficients[1 : 1 + len(features)]), y)], guides)
        del features
        with nth(2, 4):
            columns += (second_features(surroundings, noisy, fit, mu, gains),)
            del gains  # as large as all features
        with nth(3, 4):
            fit = fit_to_sample(noisy, columns, fit.gamma, is_last=True)
    mu = fit.mu(columns)
    m, v = fit.posterior(noisy, mu)
    sure = block_sum((y - m) ** 2 - spread**2 + 2 * v)
    active, posterior = int(np.count_nonzero(fit.coefficients)), CountsPosterior(fit, noisy, mu)
    return CountsEstimate(m, v, float(sure), active, surroundings.coordinates, fit.freedom, posterior=posterior)


def _placed(
    graph: Graph, surroundings: Surroundings, guides: np.ndarray, y: Any
) -> tuple[Surroundings | DeviceSurroundings, np.ndarray]:
    """Return the surroundings and the guides on the machine of y, with the guides as covariates."""
    if on_device(y):
        return device_surroundings(graph, surroundings), placed_like(guides, y)
    return surroundings.with_covariates(_guide_covariates(guides)) if len(guides) else surroundings, guides


def _computed_on_host(graph: Graph, y: Any, sigma: Any, obstacle: str, **settings: Any) -> CountsEstimate:
    """Return the estimate from values on a GPU, computed on the CPU."""
    estimate = counts_estimate(graph, on_host(y), on_host(sigma), **settings)
    signal, variance = (placed_like(part, y) for part in (estimate.signal, estimate.variance))
    return replace(estimate, signal=signal, variance=variance, on_host=obstacle)


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
class Grid:
    """{0} and a log(1 + e^t) for even t: geometric near 0, where counts are, and even from about sigma on; `width` are its cells."""

    points: np.ndarray
    width: np.ndarray


def value_grid(y: np.ndarray, sigma: np.ndarray, *, top: float | None = None) -> Grid:
    """Return a grid from 0 to `top`, by default the largest value."""
    sample = sample_of(len(sigma))
    typical = float(np.median(sigma[sample if isinstance(sample, slice) else placed_like(sample, sigma)]))
    return grid_between(float(y.max()) if top is None else top, typical, float(sigma.min()))


def grid_between(top: float, typical: float, least: float) -> Grid:
    """Return a grid from 0 to `top` for noise of a typical and a least sigma."""
    top = min(max(top, 4 * typical), MOST_CELLS / CELLS_PER_SIGMA * typical) + 2 * typical
    bend = max(least, top / MOST_CELLS * CELLS_PER_SIGMA) / (STEP * CELLS_PER_SIGMA)
    t = np.arange(np.log(typical / 50 / bend), top / bend + STEP, STEP)  # log(1 + e^t) > t: the last point is above the top
    return Grid(np.concatenate([[0.0], bend * np.logaddexp(0, t)]), np.concatenate([[0.0], bend * STEP * special.expit(t)]))


@dataclass(frozen=True, eq=False)
class NoisyValues:
    """y = f + N(0, sigma^2) of some nodes, and the grid for f."""

    y: np.ndarray
    sigma: np.ndarray
    grid: Grid

    def of(self, nodes: Any) -> NoisyValues:
        """Return the values of these nodes."""
        return NoisyValues(self.y[nodes], self.sigma[nodes], self.grid)

    def on_host(self) -> NoisyValues:
        """Return the same values in NumPy arrays."""
        return NoisyValues(on_host(self.y), on_host(self.sigma), self.grid)


@dataclass(frozen=True, eq=False)
class Likelihood:
    """N(y_i; f, sigma_i^2) at the grid points of node i, over its largest value: values[starts[i] : starts[i + 1]] from point first[i].

    Nodes in `plain` lie where cells are wider than their sigma: they keep y_i.
    """

    noisy: NoisyValues
    first: np.ndarray
    starts: np.ndarray
    values: np.ndarray
    plain: np.ndarray

    @classmethod
    def of(cls, noisy: NoisyValues) -> Likelihood:
        """Return the likelihood of these nodes."""
        y, sigma, grid = noisy.y, noisy.sigma, noisy.grid.points
        nearest = np.clip(y, 0, None)
        first = np.searchsorted(grid, nearest - UNDERFLOW * sigma)
        last = np.maximum(np.searchsorted(grid, nearest + FARTHEST * sigma), first + 1)
        cell = np.interp(nearest, grid, noisy.grid.width)
        plain = (nearest > grid[-1]) | (cell > sigma)
        first, last = np.where(plain, 0, first), np.where(plain, 1, last)
        starts = np.concatenate([[0], np.cumsum(last - first)])
        return cls(noisy, first, starts, _loops.likelihood_values(y, sigma, grid, first, starts), plain)

    def evidence(self, table: np.ndarray, low: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return the sum over the grid of likelihood times prior (1 - share) table[low] + share table[low + 1], for each node."""
        return _loops.sum_evidence(self.values, self.starts, self.first, table, low, share)

    def em_step(self, prior: np.ndarray, low: np.ndarray, share: np.ndarray, least: float) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that takes distributions to those after one step of EM, with one pseudo-count on the prior."""

        def step(table: np.ndarray) -> np.ndarray:
            parts = self.values, self.starts, self.first, table, low, share, self.plain
            table = table * _loops.count_expected(*parts, least) + prior
            return table / table.sum(axis=1, keepdims=True)

        return step

    def on_device(self, like: Any) -> DeviceLikelihood:
        """Return the likelihood on the GPU of an array."""
        return DeviceLikelihood(*(placed_like(part, like) for part in (self.values, self.starts, self.first, self.plain)))


# ---- one pass: pilot, priors, posterior --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CountsFit:
    """A fitted pilot with its two priors."""

    coefficients: np.ndarray  # of the mean and of each feature
    mean: float  # of y
    gamma: np.ndarray  # logarithms of k, e, h, b0 / level, b1
    level: float
    knots: np.ndarray
    table: np.ndarray  # (knots, grid), the distributions G_q
    freedom: float = 0.0  # degrees of freedom that fitting the distributions costs, where it was asked for

    def mu(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """Return the pilot max(0, [mean y, F] c) for features F, a sequence of (columns, n)."""
        return pilot_of(self.mean, columns, self.coefficients)

    def posterior(self, noisy: NoisyValues, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return posterior means and variances under the equal mixture of both priors."""
        if on_device(mu):
            return posterior_moments(noisy.y, noisy.sigma, mu, self.tables(noisy.grid, float(mu.min()), float(mu.max())))
        mean, variance = np.empty_like(mu), np.empty_like(mu)
        for start in range(0, len(mu), STRETCH):
            nodes = slice(start, start + STRETCH)
            mean[nodes], variance[nodes] = self.posterior_of(Likelihood.of(noisy.of(nodes)), mu[nodes])
        return mean, variance

    def posterior_of(self, likelihood: Likelihood, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return posterior means and variances of the nodes of a likelihood."""
        noisy = likelihood.noisy
        total, mean, square = np.sum(self.moments(likelihood, mu), axis=0)
        keep = likelihood.plain | (total <= SMALLEST)
        total = np.where(keep, 1.0, total)
        mean = np.where(keep, np.maximum(noisy.y, 0), mean / total)
        return mean, np.where(keep, noisy.sigma**2, np.maximum(square / total - mean**2, 0))

    def moments(self, likelihood: Likelihood, mu: np.ndarray) -> list[np.ndarray]:
        """Return evidence, first and second moment (3, n) of nodes under each of the two priors."""
        parts, grid = (likelihood.values, likelihood.starts, likelihood.first), likelihood.noisy.grid
        priors = gamma_table(grid, self.gamma, mu, self.level), (self.table, *hat_places(mu, self.knots))
        return [_loops.sum_moments(*parts, grid.points, *prior) for prior in priors]

    def tables(self, grid: Grid, least: float, largest: float) -> PriorTables:
        """Return both priors for pilots from `least` to `largest`."""
        b0, b1 = np.exp(self.gamma[3:])
        gammas, _, _ = gamma_table(grid, self.gamma, np.array([least, largest]), self.level)
        lowest = int(np.floor(np.log(b0 + b1 * (np.array([least, largest]) / self.level)) / MEAN_STEP)[0])
        numbers = lowest, float(b0), float(b1), self.level, MEAN_STEP
        return PriorTables(grid.points, grid.width, gammas, *numbers, self.knots, self.table, UNDERFLOW, FARTHEST, SMALLEST)


@dataclass(frozen=True, eq=False)
class CountsPosterior:
    """The distribution of the value of each node given its noisy value and the pilot."""

    fit: CountsFit
    noisy: NoisyValues
    mu: np.ndarray

    def interval(self, level: float) -> np.ndarray:
        """Return the shortest intervals of this probability, (2, n).

        Few nodes have the largest values, and the prior that is fitted on a grid has its mass just there. Intervals that do not begin at 0 are
        widened about their middle by the factor of `expected_squares`.
        """
        noisy, mu = self.noisy.on_host(), on_host(self.mu)
        parts = [slice(start, start + INTERVAL_STRETCH) for start in range(0, len(mu), INTERVAL_STRETCH)]
        lower, upper = np.concatenate([self._interval(noisy.of(part), mu[part], level) for part in parts], axis=1)
        wider = np.where(lower > 0, np.sqrt(self.expected_squares(np.ones_like(mu))), 1.0)
        middle, half = (lower + upper) / 2, wider * (upper - lower) / 2
        return np.stack([np.where(lower > 0, np.maximum(middle - half, 0.0), lower), np.where(lower > 0, middle + half, upper)])

    def expected_squares(self, variance: np.ndarray) -> np.ndarray:
        """Return variances raised by the factor by which the wider of the two priors has more than their mixture.

        Rare large values in quiet places are what the data says least about: there one of the priors has a tail and the other none.
        """
        noisy, mu, fit = self.noisy.on_host(), on_host(self.mu), self.fit
        factor = np.ones_like(mu)
        for start in range(0, len(mu), STRETCH):
            nodes = slice(start, start + STRETCH)
            likelihood = Likelihood.of(noisy.of(nodes))
            both = fit.moments(likelihood, mu[nodes])
            total, mean, square = np.sum(both, axis=0)
            usable = ~likelihood.plain & (total > SMALLEST)
            estimate = mean / np.where(usable, total, 1.0)
            mixture = square / np.where(usable, total, 1.0) - estimate**2
            each = [
                np.where(t > LEAST_EVIDENCE * total, (s - 2 * estimate * m) / np.where(t > 0, t, 1.0) + estimate**2, 0.0)
                for t, m, s in both
            ]
            wider = np.maximum(*each) / np.where(mixture > 0, mixture, 1.0)
            factor[nodes] = np.where(usable & (mixture > 0), np.maximum(wider, 1.0), 1.0)
        return variance * factor

    def _interval(self, noisy: NoisyValues, mu: np.ndarray, level: float) -> np.ndarray:
        likelihood, fit = Likelihood.of(noisy), self.fit
        tables = gamma_table(noisy.grid, fit.gamma, mu, fit.level), (fit.table, *hat_places(mu, fit.knots))
        size = np.diff(likelihood.starts)
        place = np.minimum(np.arange(size.max()), size[:, None] - 1)
        point = likelihood.first[:, None] + place
        prior = sum(
            (1 - share)[:, None] * table[low[:, None], point] + share[:, None] * table[low[:, None] + 1, point]
            for table, low, share in tables
        )
        mass = likelihood.values[likelihood.starts[:-1, None] + place] * prior * (np.arange(size.max()) < size[:, None])
        total = mass.sum(axis=1)
        is_plain = likelihood.plain | (total <= SMALLEST)
        below = np.cumsum(mass, axis=1) / np.where(is_plain, 1.0, total)[:, None]
        ends = np.append((noisy.grid.points[1:] + noisy.grid.points[:-1]) / 2, noisy.grid.points[-1])  # of the cells
        ends[0] = 0.0
        tails = (1 - level) * np.linspace(0, 1, TAILS)
        low, high = (_quantiles(below, ends[point], tails + part) for part in (0.0, level))
        best = np.argmin(high - low, axis=0)
        found = np.stack([low[best, np.arange(len(mu))], high[best, np.arange(len(mu))]])
        half = noisy.sigma * special.ndtri(0.5 + level / 2)
        return np.where(is_plain, np.maximum(noisy.y + half * np.array([[-1.0], [1.0]]), 0.0), found)


def _quantiles(below: np.ndarray, ends: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return quantiles (levels, n) of distributions with mass `below` the ends of cells (n, cells), even within a cell."""
    rows, last = np.arange(len(below)), below.shape[1] - 1
    out = np.empty((len(levels), len(below)))
    for row, level in zip(out, levels, strict=True):
        cell = np.minimum((below < level).sum(axis=1), last)
        before = np.maximum(cell - 1, 0)
        bottom = np.where(cell > 0, below[rows, before], 0.0)
        share = np.divide(level - bottom, below[rows, cell] - bottom, out=np.ones(len(below)), where=below[rows, cell] > bottom)
        start = np.where(cell > 0, ends[rows, before], ends[rows, cell])
        row[:] = start + np.clip(share, 0, 1) * (ends[rows, cell] - start)
    return out


def fit_to_sample(noisy: NoisyValues, columns: Sequence[np.ndarray], start: np.ndarray, *, is_last: bool = False) -> CountsFit:
    """Return `fit_counts` on all nodes, or on a sample of those of a large graph: the same nodes for every signal."""
    sample = sample_of(len(noisy.y))
    nodes = sample if isinstance(sample, slice) else placed_like(sample, noisy.y)
    parts = [namespace(part).ascontiguousarray(part[:, nodes]) for part in columns]
    return fit_counts(noisy.of(nodes), parts, start, is_last=is_last)


def sample_of(n: int) -> np.ndarray | slice:
    """Return the nodes that pilot and priors are fitted to: all, or SAMPLE of them."""
    return slice(None) if n <= SAMPLE else np.sort(np.random.default_rng(0).choice(n, SAMPLE, replace=False))


def fit_counts(noisy: NoisyValues, columns: Sequence[np.ndarray], start: np.ndarray, *, is_last: bool = False) -> CountsFit:
    """Return the pilot fitted to features, a sequence of (columns, n), and both priors given the pilot; if `is_last`, with what fitting costs."""
    coefficients, mu = fit_pilot(noisy.y, noisy.sigma, columns)
    level = max(float(mu.mean()), float(np.mean(noisy.sigma)) / 100)
    likelihood = Likelihood.of(noisy.on_host())
    fast = likelihood.on_device(mu) if on_device(mu) else likelihood
    gamma = fit_gamma(fast, noisy.grid, mu, level, start)
    mu_on_host = on_host(mu)
    knots = np.unique(np.quantile(mu_on_host, KNOTS))
    knots = knots[np.concatenate([[True], np.diff(knots) > 1e-9 * level])]
    with between(0.0, 0.8 if is_last else 1.0):  # its second half
        table = on_host(fit_hats(fast, noisy.grid, mu_on_host, knots, level))
    fit = CountsFit(coefficients, float(noisy.y.mean()), gamma, level, knots, table)
    if not is_last:
        return fit
    with between(0.6, 1.0):
        return replace(fit, freedom=freedom_of_hats(fit, likelihood, mu_on_host, like=mu))


def pilot_of(mean: float, columns: Sequence[np.ndarray], coefficients: np.ndarray) -> np.ndarray:
    """Return max(0, [mean, columns] c)."""
    each = np.split(coefficients[1:], np.cumsum([len(part) for part in columns])[:-1])
    total = namespace(columns[0]).full(columns[0].shape[1], float(coefficients[0] * mean))
    for c, part in zip(each, columns, strict=True):
        if len(c):
            total += sum_of_rows(c, part)
    return np.maximum(total, 0)


def fit_pilot(y: np.ndarray, sigma: np.ndarray, columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return non-negative coefficients and mu, reweighted for a variance that grows with mu^2."""
    mean, weights = float(y.mean()), 1 / sigma**2
    all_columns = (namespace(y).full((1, len(y)), mean), *columns)
    for step in range(REWEIGHTINGS + 1):
        reached(0.1 * step, "counts")
        coefficients = nonnegative_least_squares(all_columns, y, weights)
        mu = pilot_of(mean, columns, coefficients)
        fourth = block_sum(mu**4)
        excess = block_sum(((y - mu) ** 2 - sigma**2) * mu**2) / fourth if fourth > 0 else 0.0
        weights = 1 / (sigma**2 + max(excess, 0.0) * mu**2)
    return coefficients, mu


def nonnegative_least_squares(columns: Sequence[np.ndarray], y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the argmin over c >= 0 of sum weights (y - c columns)^2, columns scaled to one size, with a small ridge."""

    def weighted(nodes: slice) -> tuple[np.ndarray, None]:
        return np.concatenate([*(part[:, nodes] for part in columns), y[None, nodes]]) * np.sqrt(weights[nodes]), None

    products = block_products_of(len(y), weighted)
    gram, target = products[:-1, :-1], products[:-1, -1]
    size = np.sqrt(np.diag(gram))
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    unit = gram * np.outer(scale, scale) + np.diag((scale == 0).astype(float))
    return scale * bounded_minimum(unit, scale * target, np.inf, ridge=RIDGE)


# ---- prior (a): two Gammas ---------------------------------------------------------------------------------------


def gamma_table(grid: Grid, gamma: np.ndarray, mu: np.ndarray, level: float) -> Any:
    """Return distributions on the grid for means s on a lattice of log s, and the place on the lattice of each node's s = b0 + b1 mu.

    The places are CuPy arrays for pilots mu on a GPU.
    """
    k, e, h, b0, b1 = np.exp(gamma)
    place = np.log(b0 + b1 * (mu / level)) / MEAN_STEP
    lowest, highest = int(np.floor(place.min())), int(np.floor(place.max())) + 1
    means = level * np.exp(MEAN_STEP * np.arange(lowest, highest + 1))
    table = (1 - e) * gamma_masses(grid, k, means) + e * gamma_masses(grid, min(k, 1.0), h * means)
    low = np.floor(place).astype(np.int64) - lowest
    return table / table.sum(axis=1, keepdims=True), low, place - np.floor(place)


def gamma_masses(grid: Grid, shape: float, means: np.ndarray) -> np.ndarray:
    """Return Gamma density times cell width, (means, grid), which is the trapezoid rule in t; all mass below the grid goes to 0."""
    f, width = grid.points[1:], grid.width[1:]
    x = shape * f / means[:, None]
    masses = np.empty((len(means), len(f) + 1))
    masses[:, 0] = special.gammainc(shape, shape * f[0] * np.exp(-STEP / 2) / means)
    masses[:, 1:] = np.exp(shape * np.log(x) - x - special.gammaln(shape)) * (width / f)
    return masses


def fit_gamma(likelihood: Likelihood | DeviceLikelihood, grid: Grid, mu: np.ndarray, level: float, start: np.ndarray) -> np.ndarray:
    """Return the logarithms of the five parameters that maximise the marginal likelihood."""

    def cost(gamma: np.ndarray) -> float:
        reached(0.3, "counts")
        evidence = likelihood.evidence(*gamma_table(grid, gamma, mu, level))
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


def fit_hats(likelihood: Likelihood | DeviceLikelihood, grid: Grid, mu: np.ndarray, knots: np.ndarray, level: float) -> Any:
    """Return G_q, by EM from exponentials, which also count as one observation each."""
    means = np.maximum(knots, level / 10)
    prior = gamma_masses(grid, 1.0, means)
    prior /= prior.sum(axis=1, keepdims=True)
    if len(knots) == 1:
        prior = np.concatenate([prior, prior])  # a second row that no node uses
    table = (prior + 1 / prior.shape[1]) / 2  # not zero anywhere, for zeros would stay
    em_step = likelihood.em_step(prior, *hat_places(mu, knots), SMALLEST)
    if isinstance(likelihood, DeviceLikelihood):
        table = placed_like(table, likelihood.values)
    for step in range(EM_STEPS):
        reached(0.5 + step / (2 * EM_STEPS), "counts")
        table = em_step(table)
    return table


def freedom_of_hats(fit: CountsFit, likelihood: Likelihood, mu: np.ndarray, *, like: Any) -> float:
    """Return the divergence of the posterior mean through the distributions G_q, by a finite difference along one probe.

    `like` is an array on the machine where EM runs.
    """
    noisy = likelihood.noisy
    eps = probes(len(mu), 1, law="rademacher", seed=0)[0].astype(np.float64, copy=False)
    moved = Likelihood.of(NoisyValues(noisy.y + DIFFERENCE_STEP * noisy.sigma * eps, noisy.sigma, noisy.grid))
    fast = moved.on_device(like) if on_device(like) else moved
    table = on_host(fit_hats(fast, noisy.grid, mu, fit.knots, fit.level))
    change = replace(fit, table=table).posterior_of(likelihood, mu)[0] - fit.posterior_of(likelihood, mu)[0]
    weight = noisy.sigma / np.mean(np.square(noisy.sigma))  # sigma_i^2 dm_i / dy_i in units of the mean variance
    return max(float(block_sum(weight * eps * change)) / DIFFERENCE_STEP, 0.0)


# ---- the second pass ---------------------------------------------------------------------------------------------


def second_features(
    surroundings: Surroundings | DeviceSurroundings, noisy: NoisyValues, fit: CountsFit, mu: np.ndarray, gains: np.ndarray
) -> np.ndarray:
    """Return narrow features of m, (columns, n), less the part of each that comes from the y of the same node."""
    m, slope = posterior_and_slope(noisy, fit, mu)
    with nth(0, 2):
        echoes = surroundings.echoes(fit.coefficients[1 : 1 + len(gains)], gains, slope)  # guides come after them: not from y
    echoes *= mu - noisy.y
    with nth(1, 2):
        echoes += surroundings.features(m, gains, surroundings.narrow)
    return echoes


def posterior_and_slope(noisy: NoisyValues, fit: CountsFit, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior means m, and dm / dmu by finite differences; 0 where mu is cut off at 0."""
    m, _ = fit.posterior(noisy, mu)
    step = 0.02 * (mu + fit.level)
    return m, (fit.posterior(noisy, mu + step)[0] - m) / step * (mu > 0)
