"""The scale of most values where some are larger: the core of a scale mixture.

Local energies of noise with d degrees of freedom are c^2 chi^2_d / d. A signal that is rough at few nodes multiplies some of them by
1 + r. The core scale c maximises the likelihood of the mixture with the shares p_k of (1 + r_k) c^2 chi^2_d / d, r_0 = 0, with a
penalty that prefers r = 0.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincinv

INFLATIONS = np.concatenate([[0.0], np.geomspace(0.5, 1000.0, 10)])  # r_k
LEAST_LOG_RATIO = 3.5  # logarithm of the likelihood ratio of several scales to one, below which all values are of one scale
PRIOR_CORE_VALUES = 10.0  # values of the core that are added to the data: the penalty
MOST_GROUPS = 64  # groups of values of nearly the same size
EM_STEPS = 30  # steps of expectation-maximisation
STARTS = (None, 0.4)  # first c^2: the mean of all values (None), or what the quantiles of the lowest 40 % say


def core_scales(energies: np.ndarray, freedom: np.ndarray, independent: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return c^2 and the share p_0 of the core of each row of energies, and the logarithm of the likelihood ratio to one scale for all.

    A row has as many independent values as `independent` says, with `freedom` degrees of freedom each. Where the logarithm is at most
    LEAST_LOG_RATIO, all values are of one scale: c^2 is their mean, the share is 1, and 0 is returned for the logarithm.

    >>> energies = np.random.default_rng(0).chisquare(4, (1, 5000)) / 4
    >>> energies[:, :500] *= 30
    >>> variances, shares, gains = core_scales(energies, np.array([4.0]), np.array([5000.0]))
    >>> bool(abs(variances[0] - 1) < 0.05 and abs(shares[0] - 0.9) < 0.1 and gains[0] > 100)
    True
    """
    q, counts = _group_means(np.sort(energies, axis=1))
    mean = q @ counts / counts.sum()
    q, weight = q / mean[:, None], independent / counts.sum()
    best, variance, share = np.full(len(q), -np.inf), np.ones(len(q)), np.ones(len(q))
    for start in STARTS:
        value, c2, p0 = _fitted_mixture(q, counts, freedom, weight, start)
        is_better = value > best + 1e-6
        best, variance, share = np.where(is_better, value, best), np.where(is_better, c2, variance), np.where(is_better, p0, share)
    gain = best + weight * counts.sum() * freedom / 2  # the likelihood of one scale for all is exp(-d / 2) for each value
    is_mixture = gain > LEAST_LOG_RATIO
    return np.where(is_mixture, variance, 1.0) * mean, np.where(is_mixture, share, 1.0), np.where(is_mixture, gain, 0.0)


def _group_means(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of groups of neighbors in ascending rows, and how many values each group has."""
    count = ordered.shape[1]
    bounds = np.unique(np.linspace(0, count, min(MOST_GROUPS, count) + 1).round().astype(int))
    sizes = np.diff(bounds)
    return np.add.reduceat(ordered, bounds[:-1], axis=1) / sizes, sizes.astype(np.float64)


def _fitted_mixture(
    q: np.ndarray, counts: np.ndarray, freedom: np.ndarray, weight: np.ndarray, start: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the penalised likelihood, c^2 and p_0 that expectation-maximisation reaches from one start."""
    half = freedom[:, None, None] / 2
    if start is None:
        c2, p = np.ones(len(q)), np.full((len(q), len(INFLATIONS)), 0.02 / (len(INFLATIONS) - 1))
    else:
        quantile = np.searchsorted(np.cumsum(counts), start / 2 * counts.sum())
        c2 = np.maximum(q[:, quantile] * freedom / (2 * gammaincinv(freedom / 2, start / 1.8)), 1e-12)
        p = np.full((len(q), len(INFLATIONS)), 0.3 / (len(INFLATIONS) - 1))
    p[:, 0] = 1 - p[:, 1:].sum(axis=1)
    inverse = 1 / (1 + INFLATIONS)
    with np.errstate(under="ignore"):
        for _ in range(EM_STEPS):
            # logarithms are compared with those of r = largest, the widest law, so that nothing overflows
            logs = half * (np.log(inverse) - (q / c2[:, None])[:, :, None] * (inverse - inverse[-1]))
            likelihood = p[:, None, :] * np.exp(logs)
            total = likelihood.sum(axis=2)
            membership = likelihood / total[:, :, None]
            p = weight[:, None] * np.einsum("sgk,g->sk", membership, counts)
            p[:, 0] += PRIOR_CORE_VALUES
            p /= p.sum(axis=1, keepdims=True)
            mean_inverse = np.einsum("sgk,k->sg", membership, inverse)
            c2_before, c2 = c2, np.maximum((q * mean_inverse) @ counts / counts.sum(), 1e-12)
    widest = half[:, :, 0] * (np.log(c2_before)[:, None] + q / c2_before[:, None] * inverse[-1])
    value = weight * ((np.log(total) - widest) @ counts) + PRIOR_CORE_VALUES * np.log(p[:, 0])
    return value, c2, p[:, 0]
