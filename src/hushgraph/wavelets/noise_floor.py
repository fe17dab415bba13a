"""The flat floor of the spectrum of a noisy signal, which is the noise level.

White noise adds sigma^2 to the energy of every eigenvector, a signal most of its energy to few of them. The mean energies in bins of the
spectrum, with N_b eigenvalues near x_b each, are v(x_b) = sigma^2 + a low(x_b) + b high(x_b). The shape `low` falls, as the spectrum of a
Matern field or of a sharp low-pass; the shape `high` rises, as that of a signal that changes sign from node to node.

For each pair of shapes, Whittle's likelihood -1/2 sum_b (N_b log v_b + E_b / v_b) is maximised over sigma^2, a, b >= 0. The noise level is
the mean over the pairs, weighted by their likelihoods with a penalty for their parameters (BIC). Its standard error holds the curvature of
each fit and the spread between the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, logsumexp

MATERN_POWERS = (0.7, 1.0, 1.5, 2.0, 3.0, 5.0)  # nu of (kappa + x)^-nu
MATERN_SHIFTS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # kappa, in mean eigenvalues
LOW_PASS_EDGES = tuple(np.geomspace(0.003, 0.6, 10))  # of 1 / (1 + (x / edge)^12), in mean eigenvalues
HIGH_POWERS = (3, 6, 12, 24)  # r of (x / largest)^r
N_PAIRED = 8  # low shapes, the best ones, that are tried with every high shape
LOW_COST, HIGH_COST = 2.5, 1.5  # parameters of a shape and its amplitude, as BIC counts them
LEAST_BINS = 6  # with fewer bins no shape is fitted
MOST_NEWTON_STEPS = 20
TYPICAL_BINS = 40  # about so many bins: single eigenvalues at the low end, then bins that grow


@dataclass(frozen=True)
class Floor:
    """A noise level, and its standard error."""

    sigma: float
    se: float


def merged_bins(counts: np.ndarray) -> np.ndarray:
    """Return where bins begin after merging: at least one eigenvalue in each, and about TYPICAL_BINS of them, narrow at the low end.

    >>> merged_bins(np.array([0.2, 0.9, 1.0, 0.1, 0.3, 1.2]))
    array([0, 2, 3])
    """
    running = np.cumsum(counts)
    total = max(running[-1], 1.0)
    least = np.maximum(1.0, 0.5 * running * np.log(max(total, 2.0)) / TYPICAL_BINS)
    starts, in_bin = [0], 0.0
    for k, (count, least_count) in enumerate(zip(counts, least, strict=True)):
        if in_bin >= least_count and running[-1] - running[k - 1] >= 1:
            starts.append(k)
            in_bin = 0.0
        in_bin += count
    return np.array(starts)


def flat_floor(x: np.ndarray, counts: np.ndarray, energies: np.ndarray) -> Floor:
    """Return the floor of mean energies in bins of the spectrum, given the eigenvalues x, their number and the energy in each bin."""
    if len(x) < LEAST_BINS:
        sigma = float(np.sqrt(energies.sum() / counts.sum()))
        return Floor(sigma, sigma / float(np.sqrt(2 * counts.sum())))
    low, high = _low_shapes(x, counts), _high_shapes(x, counts)
    no_shape = np.zeros((1, len(x)))
    low_fits = _Fits.of(np.concatenate([no_shape, low]), no_shape, counts, energies)
    best = np.argsort(-low_fits.scores[1:], kind="stable")[:N_PAIRED]
    pair_fits = _Fits.of(np.concatenate([no_shape, low[best]]), high, counts, energies)
    scores = np.concatenate([low_fits.scores, pair_fits.scores])
    shares = np.exp(scores - logsumexp(scores))
    means, variances = (np.concatenate(both) for both in zip(low_fits.levels(), pair_fits.levels(), strict=True))
    sigma = float(shares @ means)
    return Floor(sigma, float(np.sqrt(shares @ (variances + (means - sigma) ** 2))))


def _low_shapes(x: np.ndarray, counts: np.ndarray) -> np.ndarray:
    mean = float(counts @ x / counts.sum())
    matern = [(shift + x / mean) ** -power for power in MATERN_POWERS for shift in MATERN_SHIFTS]
    return _scaled(np.array([*matern, *(1 / (1 + (x / (edge * mean)) ** 12) for edge in LOW_PASS_EDGES)]), counts)


def _high_shapes(x: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return _scaled(np.array([(x / x[-1]) ** power for power in HIGH_POWERS]), counts)


def _scaled(shapes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return shapes with the mean 1 over all eigenvalues."""
    return shapes / np.maximum(shapes @ counts / counts.sum(), 1e-300)[:, None]


@dataclass(frozen=True)
class _Fits:
    """The fits of all pairs of shapes: amplitudes of (flat, low, high), their Fisher information, and log-likelihoods less penalties."""

    amplitudes: np.ndarray
    information: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, low: np.ndarray, high: np.ndarray, counts: np.ndarray, energies: np.ndarray) -> _Fits:
        """Return the fits of every low shape with every high shape; a shape of zeros stands for no shape."""
        pairs = [(a, b) for a in low for b in high]
        shapes = np.array([[np.ones(len(counts)), a, b] for a, b in pairs])
        is_used = np.asarray(shapes.any(axis=2))
        log_amplitudes = _maximum(shapes, is_used, counts, energies)
        amplitudes = np.exp(log_amplitudes) * is_used
        v = np.einsum("pk,pkb->pb", amplitudes, shapes)
        fit = -0.5 * (counts * np.log(v) + energies / v).sum(axis=1)
        cost = 0.5 * np.log(max(counts.sum() / 2, 2.0)) * (is_used[:, 1] * LOW_COST + is_used[:, 2] * HIGH_COST)
        information = 0.5 * np.einsum("pkb,plb,pb->pkl", shapes, shapes, counts / v**2)
        return cls(amplitudes, information, fit - cost)

    def levels(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the variance of sigma in each fit, from the normal law of sigma^2, cut off at 0."""
        diagonal = np.einsum("pkk->pk", self.information)
        unit = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        scaled = self.information * unit[:, :, None] * unit[:, None, :] + np.eye(3) * np.where(diagonal > 0, 1e-9, 1.0)[:, :, None]
        spread = np.sqrt(np.linalg.inv(scaled)[:, 0, 0]) * unit[:, 0]
        peak = self.amplitudes[:, 0]
        ratio = peak / spread
        hazard = np.sqrt(2 / np.pi) / erfcx(-ratio / np.sqrt(2))  # density over probability of the part above 0
        mean = peak + spread * hazard
        variance = spread**2 * np.maximum(1 - hazard * (ratio + hazard), 0.0)
        return np.sqrt(mean), variance / (4 * mean)


def _maximum(shapes: np.ndarray, is_used: np.ndarray, counts: np.ndarray, energies: np.ndarray) -> np.ndarray:
    """Return the logarithms of the amplitudes at the maximum of the likelihood, by damped Newton steps of all fits at once."""
    level = np.log(energies.sum() / counts.sum())
    least = level - 40
    theta = np.where(is_used, level + np.log([0.5, 0.4, 0.1]), least)

    def value(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        v = np.einsum("pk,pkb->pb", np.exp(theta), shapes)
        return -0.5 * (counts * np.log(v) + energies / v).sum(axis=1), v

    (height, v), damping = value(theta), np.full(len(theta), 1e-2)
    for _ in range(MOST_NEWTON_STEPS):
        terms = np.exp(theta)[:, :, None] * shapes
        slope = 0.5 * np.einsum("pkb,pb->pk", terms, energies / v**2 - counts / v)
        curvature = 0.5 * np.einsum("pkb,plb,pb->pkl", terms, terms, counts / v**2)
        ridge = damping[:, None] * np.einsum("pkk->pk", curvature) + 1e-6
        step = np.linalg.solve(curvature + ridge[:, :, None] * np.eye(3), slope[:, :, None])[:, :, 0]
        trial = np.maximum(theta + np.clip(step, -2, 2) * is_used, least)
        trial_height, v_trial = value(trial)
        is_better = trial_height >= height
        gain = float(np.where(is_better, trial_height - height, 1.0).max())
        theta, v = np.where(is_better[:, None], trial, theta), np.where(is_better[:, None], v_trial, v)
        height = np.where(is_better, trial_height, height)
        damping = np.where(is_better, np.maximum(damping / 5, 1e-6), damping * 4)
        if gain < 1e-2 or damping.min() > 1e6:
            break
    return theta
