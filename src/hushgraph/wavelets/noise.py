"""The noise of a signal: `Noise`, a variance for all nodes or one per node, and the test that a given sigma is too large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hushgraph.core import block_sum, rowwise_dots

FALSE_ALARM = 1e-6  # of `is_below_noise`, for one signal


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
