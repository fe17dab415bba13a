"""Expected errors and intervals of single nodes, without the truth.

Let y be the noisy signal, Sigma the covariance of its noise (diagonal) and f the estimate with Jacobian J. For the posterior mean of a Bayes
estimate the expected squared error of node i is (J Sigma)_ii, the divergence (Tweedie's formula). An estimate whose weights make SURE
small comes close to it, so the sum of the divergences says more about the total squared error than SURE does wherever the standard
error of SURE is large. The two are combined by their precision.

How the total is spread over the nodes: the squared error is a variance, (J Sigma J')_ii, plus a squared bias. Few probes give the variance of
each node as a chi-squared variable, whose logarithm is shrunk towards the mean by what its spread exceeds that of the probes. The rest of
the total, bias that cannot be seen node by node, is shared equally.

Posterior distributions (`counts`) have expected errors and intervals of their own. Other errors are taken as normal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse, special

from hushgraph._arrays import on_device, on_host, placed_like
from hushgraph._validation import checked_count
from hushgraph.estimators.risk import Posterior
from hushgraph.graphs import Graph

COMMON_SHARE = 0.05  # of the squared error of an average node: no node is expected to have less
POSTERIOR_SHARE = 0.03  # the same for posterior distributions
# Weights and priors are fitted, so squared errors exceed divergences and posterior variances by about this factor. Measured.
FITTED = 1.15
WIDEST = 1.3  # factor by which intervals of a posterior are widened at most
LEAST_RISK = 0.2  # of the sum of divergences: a smaller estimate of the total squared error is chance
CHOOSING = 3.0  # degrees of freedom that are added for choices by SURE, since divergences hold the choices fixed
LEAST_VARIANCE = 1e-6  # of the mean variance: smaller ones are rounding
HOPS_BY_PROBES = ((32, 2), (16, 4), (8, 8), (1, 16))  # least number of probes, and hops: few probes need an average over more nodes


@dataclass(frozen=True, eq=False)
class NodeRisk:
    """Terms of the risk per node, of m signals on the graph of n nodes that was denoised.

    Attributes
    ----------
    graph : Graph
    sure : (m, n) terms of SURE
    variance : (m, n) diagonals of J Sigma J', as probes estimate them
    divergence : (m, n) diagonals of J Sigma, likewise
    noise_variance : float, or an array that broadcasts to (m, n)
    shape : shape of the signal
    probe_counts : number of probes behind `variance` for each signal; 0 where it is exact
    posteriors : the posterior distribution of each signal, None for a signal without
    has_value : the nodes of this graph among those of the whole graph; None for all
    is_nonnegative, is_integer : what is known about the values
    """

    graph: Graph
    sure: np.ndarray
    variance: np.ndarray
    divergence: np.ndarray
    noise_variance: Any
    shape: tuple[int, ...]
    probe_counts: tuple[int, ...]
    posteriors: tuple[Posterior | None, ...]
    has_value: np.ndarray | None = None
    is_nonnegative: bool = False
    is_integer: bool = False

    def on_host(self) -> NodeRisk:
        """Return the same terms in NumPy arrays."""
        names = "sure", "variance", "divergence", "noise_variance"
        return replace(self, **{name: on_host(getattr(self, name)) for name in names})

    def expected_error(self, risks: np.ndarray, errors: np.ndarray, doubt: float, *, hops: int | None = None) -> np.ndarray:
        """Return the root of the expected squared error of each node, in the shape of the signal; NaN where there was no value.

        Parameters
        ----------
        risks, errors : (m,) arrays
            Estimated risk of each signal and its standard error; NaN for a signal about whose error nothing can be said.
        doubt : float
            By how much the total squared error may differ from the sum of the divergences, as a share of it (one standard deviation).
        hops : int, optional
            Steps of the random walk that variances are averaged over; by default few if there are many probes.
        """
        if on_device(self.sure):
            return placed_like(self.on_host().expected_error(risks, errors, doubt, hops=hops), self.sure)
        found = self._at_all_nodes(self._errors(risks, errors, doubt, hops))
        return found.reshape(self.shape) if len(found) == 1 else found.T

    def _errors(self, risks: np.ndarray, errors: np.ndarray, doubt: float, hops: int | None) -> np.ndarray:
        """Return expected errors (m, n)."""
        hops = None if hops is None else checked_count("hops", hops, 0)
        noise = np.broadcast_to(np.asarray(self.noise_variance, dtype=np.float64), self.sure.shape)
        squares = np.empty_like(self.sure)
        for k, posterior in enumerate(self.posteriors):
            if posterior is None:
                shape, common = self._shape_of_errors(k, noise[k], hops), COMMON_SHARE
                total = FITTED * float(self.divergence[k].sum()) + CHOOSING * float(noise[k].mean())
            else:
                shape, common = posterior.expected_squares(self.variance[k]), POSTERIOR_SHARE
                total = FITTED * float(self.variance[k].sum())
            largest = float(noise[k].sum())
            total = likely_total(float(np.clip(total, 0.0, largest)), float(risks[k]), float(errors[k]), doubt)
            shape = shape if posterior is not None else shape + max(total - float(shape.sum()), 0.0) / max(len(shape), 1)
            squares[k] = spread_over_nodes(shape, min(total, largest), common) if np.isfinite(risks[k]) else np.nan
        return np.sqrt(squares)

    def _shape_of_errors(self, k: int, noise: np.ndarray, hops: int | None) -> np.ndarray:
        """Return the variances of a signal, averaged over a few hops and without the chance of the probes."""
        count = self.probe_counts[k]
        hops = next((h for least, h in HOPS_BY_PROBES if count >= least), 0) if hops is None else hops
        walk, share = walk_matrix(self.graph), self.variance[k] / noise
        for _ in range(hops):
            share = walk @ share
        return noise * (share if count == 0 else without_chance(share, count * (1 + hops / 2)))

    def interval(self, signal: np.ndarray, error: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper values in the shape of the signal, from its values and expected errors in that shape."""
        half = float(special.ndtri(0.5 + level / 2)) * error
        lower, upper = signal - half, signal + half
        for k, posterior in enumerate(self.posteriors):
            if posterior is not None:
                column = (..., k) if signal.ndim == 2 else ...
                found = self._at_all_nodes(posterior.interval(level))
                wider = np.sqrt(np.nansum(error[column] ** 2) / max(float(on_host(self.variance[k]).sum()), 1e-300))
                below, above = np.clip(wider, 1.0, WIDEST) * np.maximum([signal[column] - found[0], found[1] - signal[column]], 0.0)
                is_known = ~np.isnan(error[column])
                lower[column] = np.where(is_known, signal[column] - below, np.nan)
                upper[column] = np.where(is_known, signal[column] + above, np.nan)
        if self.is_integer:  # the same whole numbers lie between
            lower, upper = np.minimum(np.ceil(lower - 1e-9), signal), np.maximum(np.floor(upper + 1e-9), signal)
        return (np.maximum(lower, 0.0), np.maximum(upper, 0.0)) if self.is_nonnegative else (lower, upper)

    def _at_all_nodes(self, values: np.ndarray) -> np.ndarray:
        """Return rows of values of the nodes that have one as rows for all nodes, NaN at the others."""
        if self.has_value is None:
            return values
        whole = np.full((len(values), len(self.has_value)), np.nan)
        whole[:, self.has_value] = values
        return whole


def likely_total(total: float, risk: float, risk_se: float, doubt: float) -> float:
    """Return the mean of two estimates of the total squared error, by their precision: `total` with its doubt, and `risk`.

    >>> likely_total(100.0, 60.0, 25.0, doubt=0.25)
    80.0
    """
    model = (doubt * total) ** 2
    weight = model / (model + risk_se**2) if model > 0 else float(risk_se == 0)
    return max(total + weight * (risk - total), LEAST_RISK * total)


def spread_over_nodes(shape: np.ndarray, total: float, common: float) -> np.ndarray:
    """Return expected squared errors with this sum, in proportion to `shape` but for a share that all nodes have in common.

    >>> spread_over_nodes(np.array([0.0, 2.0]), 6.0, 0.1)
    array([0.3, 5.7])
    """
    mean, of_shape = total / max(len(shape), 1), float(shape.mean())
    return mean * (common + (1 - common) * shape / of_shape) if of_shape > 0 else np.full_like(shape, mean)


def without_chance(variances: np.ndarray, freedom: float) -> np.ndarray:
    """Return estimates of variances with less of their chance: logarithms are moved towards their mean.

    Each estimate is a variance times a chi-squared variable over its degrees of freedom, `freedom`. The logarithms are moved so far that
    their spread is what is left of it without the spread of such variables.
    """
    mean = variances.mean()
    if not mean > 0:
        return variances
    logs = np.log(np.maximum(variances, LEAST_VARIANCE * mean))
    spread = logs.var()
    keep = np.sqrt(max(0.0, 1 - float(special.polygamma(1, freedom / 2)) / spread)) if spread > 0 else 0.0
    shrunk = np.exp(keep * (logs - logs.mean()))
    return shrunk * (mean / shrunk.mean())


def walk_matrix(graph: Graph) -> sparse.csr_array:
    """Return the probabilities of one hop of a Metropolis walk: 1 / (1 + the larger degree) along an edge, and the rest stays.

    Rows and columns sum to 1, so an average keeps the sum over all nodes. A dense part neither holds the walk nor draws it in: in the
    long run every node of a component is as likely as any other. A node without neighbors keeps its value.
    """
    adjacency = graph.adjacency
    neighbors = np.diff(adjacency.indptr)
    larger = np.maximum(np.repeat(neighbors, neighbors), neighbors[adjacency.indices])
    hop = sparse.csr_array((1 / (1.0 + larger), adjacency.indices, adjacency.indptr), shape=adjacency.shape)
    return sparse.csr_array(hop + sparse.diags_array(1.0 - hop.sum(axis=1)))
