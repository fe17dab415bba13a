"""The average of several estimates with the least risk.

SURE of an average of estimates m_k with weights w, at least 0 and with sum 1, is exact: sum_k w_k T_k - sum_kl w_k w_l D_kl / 2, with
T_k the risk of m_k and D_kl = ||m_k - m_l||^2, a convex quadratic. Its minimum is noisy where estimates are alike, so the weights are
drawn towards given ones by caution ||w - prior||^2. Of two estimates that differ by many noise levels the weights are those that
the risks ask for; of two that hardly differ they are the prior ones.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np


def blend_weights(risks: np.ndarray, distances: np.ndarray, prior: np.ndarray, caution: float) -> np.ndarray:
    """Return the weights of estimates with these risks and squared distances (k, k); all sets of estimates are tried, so k is small.

    Examples
    --------
    >>> far = np.array([[0.0, 1e6], [1e6, 0.0]])
    >>> blend_weights(np.array([10.0, 10.0]), far, np.array([0.5, 0.5]), 1.0)
    array([0.5, 0.5])
    >>> blend_weights(np.array([0.0, 1e6]), far, np.array([0.5, 0.5]), 1.0).round(3)
    array([1., 0.])
    """
    curve = 2 * caution * np.eye(len(risks)) - distances
    slope = risks - 2 * caution * prior
    best, best_value = prior, np.inf
    for size in range(1, len(risks) + 1):
        for some in map(list, combinations(range(len(risks)), size)):
            weights = np.zeros(len(risks))
            weights[some] = _minimum_on_plane(curve[np.ix_(some, some)], slope[some])
            value = slope @ weights + weights @ curve @ weights / 2
            if weights.min() >= -1e-12 and value < best_value:
                best, best_value = np.maximum(weights, 0.0), value
    return best / best.sum()


def _minimum_on_plane(curve: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Return the argmin of slope'w + w'curve w / 2 over w with sum 1."""
    ones = np.ones((len(slope), 1))
    system = np.block([[curve, ones], [ones.T, np.zeros((1, 1))]])
    return np.linalg.solve(system, np.append(-slope, 1.0))[:-1]
