"""Local regression on a prediction: candidates for relations that change from place to place.

With H the heat kernel of one time and u = p - H p what a prediction p shows above its surroundings, the column

    u H(u y) / H(u^2)

is least squares of y on u around each node. It is linear in y, and its divergence sum_i sigma_i^2 u_i^2 H_ii / H(u^2)_i follows from the
probes.
"""

from __future__ import annotations

import numpy as np

from hushgraph.core import block_sum
from hushgraph.estimators.let.columns import KnownDerivatives
from hushgraph.estimators.let.filters import HEAT
from hushgraph.estimators.let.observation import Observation

TIMES = (0, 2, 4)  # numbers of the times of diffusion
LEAST = 1e-6  # of the mean square of u, below which H(u^2) does not go

REGRESSION_NAMES = tuple(f"local regression {HEAT[time]:g}" for time in TIMES)


def regression_gain(u: np.ndarray, surroundings: np.ndarray, square: float, n: int) -> np.ndarray:
    """Return u / H(u^2), the factor of H(u y); `surroundings` is H(u^2), and `square` the sum of u^2 over the n nodes of the graph."""
    return u / np.maximum(surroundings, max(LEAST * square / n, 1e-300))


def local_regressions(observation: Observation) -> KnownDerivatives:
    """Return a column for every width of the surroundings."""
    filters, p = observation.filters, observation.prediction
    assert p is not None, "local regression is on a prediction"
    eps = filters.probes.eps
    heat = np.cumsum(filters.split(filters.coefficients).heat, axis=0)
    values, derivatives = [], []
    for time in TIMES:
        u = p - filters.polynomial(heat[time], p[None])[0]
        rows = filters.polynomial(heat[time], np.concatenate([[u * u, u * observation.y], u * eps]))
        gain = regression_gain(u, rows[0], float(block_sum(u * u)), len(u))
        values.append(gain * rows[1])
        derivatives.append(gain * rows[2:])
    divergence = np.array([[block_sum(e * row) for e, row in zip(eps, rows, strict=True)] for rows in derivatives]).mean(axis=1)
    return KnownDerivatives(REGRESSION_NAMES, np.stack(values), divergence, np.stack(derivatives))
