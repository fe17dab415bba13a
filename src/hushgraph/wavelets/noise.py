"""The noise of a signal: `Noise`, a variance for all nodes or one per node; `estimate_sigma`; and the test that a given sigma is too large."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hushgraph._arrays import placed_like
from hushgraph._errors import InputError, Sentence
from hushgraph._validation import checked_real_array
from hushgraph.core import block_sum, offsets_of, rowwise_dots, shifted
from hushgraph.graphs import Graph, checked_graph
from hushgraph.wavelets.frame import Frame, chebyshev_frame
from hushgraph.wavelets.monte_carlo import monte_carlo_weights
from hushgraph.wavelets.transform import checked_frame_of, forward
from hushgraph.wavelets.weight_smoothing import checked_weight_size, smooth_weights

FALSE_ALARM = 1e-6  # of `is_below_noise`, for one signal
MARGIN = 2.0  # standard errors above a scale's estimate of sigma that make an upper bound


def is_below_noise(
    energy: npt.ArrayLike, trace: npt.ArrayLike, *, tests: int, largest: float = 1.0, n_probes: int | None = None
) -> np.ndarray:
    """Return whether energies ||A y||^2 are too small for noise of variance 1, whatever the signal: sigma is too large then.

    `trace` is that of A A', whose eigenvalues are at most `largest`. With Gaussian noise e, ||A (f + e)||^2 is stochastically least at
    f = 0, and log(1 + 2 t a) >= a log(1 + 2 t) for a in [0, 1] gives it the Chernoff bound of chi-square with T = trace / largest degrees
    of freedom, P(energy <= q trace) <= exp(-T (q - 1 - log q) / 2). Traces of Rademacher probes are taken at their lower end (Hsu, Kakade
    and Zhang 2012). All `tests` together raise a false alarm with probability FALSE_ALARM at most.

    >>> is_below_noise(np.array([700.0, 900.0]), 1000.0, tests=2)
    array([ True, False])
    """
    level = np.log((1 if n_probes is None else 2) * tests / FALSE_ALARM)
    freedom = np.asarray(trace, dtype=np.float64) / largest
    if n_probes is not None:
        margin = level / n_probes
        freedom = np.maximum(np.sqrt(np.maximum(freedom - margin, 0.0)) - np.sqrt(margin), 0.0) ** 2
    relative, freedom = np.broadcast_arrays(np.asarray(energy, dtype=np.float64) / largest, freedom)
    ratio = np.divide(np.minimum(relative, freedom), freedom, out=np.ones(relative.shape), where=freedom > 0)
    ratio = np.maximum(ratio, 1e-300)
    return freedom * (ratio - 1 - np.log(ratio)) / 2 > level


def estimate_sigma(graph: Graph, noisy: Any, *, frame: Frame | None = None, weights: npt.ArrayLike | None = None) -> float:
    """Return an estimate of the standard deviation of the noise.

    It is median(|F| / sqrt(weights)) / 0.6745 of the finest scale that carries at least 2 % of the trace. Every other such scale bounds it
    from above: a signal can only add to the median and to the energy of a scale, so neither the median nor sqrt(||F_j||^2 /
    sum(weights_j)) of any scale, plus MARGIN of its standard errors, may be smaller. The estimate is biased upwards on rough signals; it
    warns when the next scale disagrees. Use the known sigma if there is one.

    Parameters
    ----------
    graph : Graph
        The graph.
    noisy : array_like, mapping or table, shape (n,) or (n, m)
        One noisy signal, or m signals with the same noise level.
    frame : ChebyshevFrame or ExactFrame, optional
        A frame of the graph; `chebyshev_frame(graph)` by default.
    weights : array_like, shape (n_scales, n), optional
        Weights of the frame, above 0; smoothed Monte-Carlo weights by default.

    Returns
    -------
    float
        The estimate.

    Raises
    ------
    InputError
        If the estimate is impossible: no scale carries noise, or most fine coefficients are 0.

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.grid(40, 40)
    >>> sigma = hg.estimate_sigma(graph, np.random.default_rng(0).normal(7.0, 2.0, graph.n))
    >>> 1.9 < sigma < 2.1
    True
    """
    if checked_graph(graph).n == 0:
        msg = "sigma cannot be estimated: the graph has no nodes"
        raise InputError(msg)
    frame = chebyshev_frame(graph) if frame is None else checked_frame_of(graph, frame)
    values = graph.align(noisy)
    if weights is None:
        weights = smooth_weights(graph, monte_carlo_weights(frame, like=values))
    weights = checked_real_array("weights", weights)
    if weights.shape != (frame.n_scales, graph.n):
        expected = f"shape {(frame.n_scales, graph.n)}, as monte_carlo_weights of the same frame returns them"
        raise InputError.about(argument="weights", verb="have", expected=expected, got=weights.shape)
    checked_weight_size(weights)
    shares = block_sum(weights.T) / max(graph.n, 1)
    usable = np.flatnonzero(shares >= 0.02)[::-1]
    if len(usable) == 0:
        msg = "sigma cannot be estimated: the graph has no scale that carries noise (is it empty?); pass {sigma=}"
        raise InputError(Sentence(msg))
    if not min(float(weights[j].min()) for j in usable[:2]) > 0:
        expected = "above 0 at every node, in the finest scales at least"
        raise InputError.about(argument="weights", expected=expected, hint="pass smooth_weights(graph, weights)")
    planes = values[None] if values.ndim == 1 else values.T
    bands = forward(frame, shifted(planes.astype(np.float64), -offsets_of(planes)))

    linked = graph.degrees > 0 if graph.n_edges else np.ones(graph.n, dtype=bool)  # an isolated node has no fine coefficients
    linked = placed_like(np.flatnonzero(linked), bands)
    variances: np.ndarray = weights

    def level(j: int) -> float:
        return float(np.median(np.abs(bands[:, j, linked]) / np.sqrt(variances[j, linked]))) / 0.6744897501960817

    sigma = min([level(usable[0]), *(_upper_sigma(level(j), bands[:, j], weights[j]) for j in usable if weights[j].min() > 0)])
    if sigma == 0:
        msg = "the estimated sigma is 0: over half the finest coefficients vanish, so the signal looks noise-free; pass {sigma=}"
        raise InputError(Sentence(msg))
    if len(usable) > 1 and level(usable[1]) > 1.1 * sigma:
        msg = (
            "sigma was estimated as {:.4g}, but the next scale says {:.4g}: the signal is rough and the estimate is probably too high; "
            "pass {sigma=} if you know it"
        )
        warnings.warn(Sentence(msg, sigma, level(usable[1])), stacklevel=2)
    return sigma


def _upper_sigma(median: float, band: np.ndarray, weights: np.ndarray) -> float:
    """Return an upper bound of sigma from one scale: the smaller of the estimates by median and by energy, plus MARGIN standard errors.

    The standard errors are those of as many independent values as the scale has degrees of freedom: 1.17 and 0.71 over their root.
    """
    freedom = float(block_sum(weights)) * len(band)
    energy = float(np.sqrt(block_sum(np.square(band).sum(axis=0)) / freedom))
    return min(median * (1 + MARGIN * 1.167 / np.sqrt(freedom)), energy * (1 + MARGIN * np.sqrt(0.5 / freedom)))


@dataclass(frozen=True)
class Noise:
    """White noise of one variance; or one standard deviation per node, and then `variance` is 1 and weights hold the variances."""

    variance: float
    per_node: np.ndarray | None

    @classmethod
    def of(cls, sigma: Any) -> Noise:
        """Return the noise of one standard deviation, or of one per node."""
        return cls(1.0, sigma) if np.ndim(sigma) else cls(float(sigma) ** 2, None)

    def total(self, n: int) -> float:
        """Return sum_i sigma_i^2: the risk of doing nothing."""
        return n * self.variance if self.per_node is None else float(block_sum(self.per_node**2))

    def mean(self, n: int) -> float:
        """Return the mean of sigma_i^2."""
        return self.total(n) / n

    def fourth(self, n: int) -> float:
        """Return sum_i sigma_i^4."""
        return n * self.variance**2 if self.per_node is None else float(block_sum(self.per_node**4))

    def weigh(self, values: np.ndarray) -> np.ndarray:
        """Return sigma_i^2 times values, nodes in the last axis."""
        return self.variance * values if self.per_node is None else self.per_node**2 * values

    def energy(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return sum_i sigma_i^2 a_ki b_ki of each pair of rows."""
        return self.variance * rowwise_dots(a, b) if self.per_node is None else rowwise_dots(self.per_node**2 * a, b)

    def is_too_large(self, energy: npt.ArrayLike, trace: npt.ArrayLike, *, tests: int, n_probes: int | None = None) -> np.ndarray:
        """Return whether energies of linear images of y, whose noise has these traces (in units of `variance`), prove sigma too large.

        See `is_below_noise`.
        """
        if self.per_node is None:
            return is_below_noise(np.asarray(energy) / self.variance, trace, tests=tests, n_probes=n_probes)
        return is_below_noise(energy, trace, tests=tests, largest=float(self.per_node.max()) ** 2, n_probes=n_probes)
