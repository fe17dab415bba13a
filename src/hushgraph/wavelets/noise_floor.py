"""The flat floor below the spectrum of a signal: white noise adds sigma^2 to the energy of every eigenvector, a signal most of its energy to few.

The mean energies in bins of the spectrum, with N_b eigenvalues x_b each, are v(x_b) = sigma^2 + a low(x_b) + b high(x_b): `low` falls, as a
Matern field or a sharp low-pass; `high` rises, as that of a signal that changes sign from node to node. Whittle's likelihood
-1/2 sum_b (N_b log v_b + E_b / v_b) of each pair of shapes has its maximum over sigma^2, a, b >= 0; the shapes are averaged by their
likelihood, with a charge for their parameters (BIC). The standard error holds the curvature of each fit and the spread between the shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, logsumexp

MATERN_POWERS = (0.7, 1.0, 1.5, 2.0, 3.0, 5.0)  # nu of (kappa + x)^-nu
MATERN_SHIFTS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # kappa, in mean eigenvalues
EDGES = tuple(np.geomspace(0.003, 0.6, 10))  # of low-passes 1 / (1 + (x / edge)^12), in mean eigenvalues
HIGH_POWERS = (3, 6, 12, 24)  # of (x / largest)^r
PAIRED = 8  # low shapes that are tried with every high shape
LOW_COST, HIGH_COST = 2.5, 1.5  # parameters of a shape and its amplitude, as BIC counts them
FEW = 6  # bins, below which no shape can be seen
STEPS = 20  # of Newton at most
MOST = 40  # bins, about: single eigenvalues first, then bins that grow


@dataclass(frozen=True)
class Floor:
    """A noise level, and its standard error."""

    sigma: float
    se: float


def merged_bins(counts: np.ndarray) -> np.ndarray:
    """Return where bins begin after merging: at least one eigenvalue in each, and about MOST of them, narrow at the low end.

    >>> merged_bins(np.array([0.2, 0.9, 1.0, 0.1, 0.3, 1.2]))
    array([0, 2, 3])
    """
    running = np.cumsum(counts)
    total = max(running[-1], 1.0)
    least = np.maximum(1.0, 0.5 * running * np.log(max(total, 2.0)) / MOST)
    starts, held = [0], 0.0
    for k, (count, enough) in enumerate(zip(counts, least, strict=True)):
        if held >= enough and running[-1] - running[k - 1] >= 1:
            starts.append(k)
            held = 0.0
        held += count
    return np.array(starts)


def flat_floor(x: np.ndarray, counts: np.ndarray, energies: np.ndarray) -> Floor:
    """Return the floor of mean energies in bins of the spectrum, given the eigenvalues x, their number and the energy in each bin."""
    if len(x) < FEW:
        sigma = float(np.sqrt(energies.sum() / counts.sum()))
        return Floor(sigma, sigma / float(np.sqrt(2 * counts.sum())))
    low, high = _low_shapes(x, counts), _high_shapes(x, counts)
    none = np.zeros((1, len(x)))
    alone = _Fits.of(np.concatenate([none, low]), none, counts, energies)
    best = np.argsort(-alone.scores[1:], kind="stable")[:PAIRED]
    pairs = _Fits.of(np.concatenate([none, low[best]]), high, counts, energies)
    scores = np.concatenate([alone.scores, pairs.scores])
    shares = np.exp(scores - logsumexp(scores))
    means, variances = (np.concatenate(parts) for parts in zip(alone.levels(), pairs.levels(), strict=True))
    sigma = float(shares @ means)
    return Floor(sigma, float(np.sqrt(shares @ (variances + (means - sigma) ** 2))))


def _low_shapes(x: np.ndarray, counts: np.ndarray) -> np.ndarray:
    mean = float(counts @ x / counts.sum())
    matern = [(shift + x / mean) ** -power for power in MATERN_POWERS for shift in MATERN_SHIFTS]
    return _scaled(np.array([*matern, *(1 / (1 + (x / (edge * mean)) ** 12) for edge in EDGES)]), counts)


def _high_shapes(x: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return _scaled(np.array([(x / x[-1]) ** power for power in HIGH_POWERS]), counts)


def _scaled(shapes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return shapes with the mean 1 over all eigenvalues."""
    return shapes / np.maximum(shapes @ counts / counts.sum(), 1e-300)[:, None]


@dataclass(frozen=True)
class _Fits:
    """The fits of all pairs of shapes: amplitudes of (flat, low, high), the Fisher information about them, and the scores."""

    amplitudes: np.ndarray
    information: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, low: np.ndarray, high: np.ndarray, counts: np.ndarray, energies: np.ndarray) -> _Fits:
        """Return the fits of every low shape with every high shape; a shape of zeros is none."""
        pairs = [(a, b) for a in low for b in high]
        shapes = np.array([[np.ones(len(counts)), a, b] for a, b in pairs])
        used = np.asarray(shapes.any(axis=2))
        log_amplitudes = _maximum(shapes, used, counts, energies)
        amplitudes = np.exp(log_amplitudes) * used
        v = np.einsum("pk,pkb->pb", amplitudes, shapes)
        fit = -0.5 * (counts * np.log(v) + energies / v).sum(axis=1)
        cost = 0.5 * np.log(max(counts.sum() / 2, 2.0)) * (used[:, 1] * LOW_COST + used[:, 2] * HIGH_COST)
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


def _maximum(shapes: np.ndarray, used: np.ndarray, counts: np.ndarray, energies: np.ndarray) -> np.ndarray:
    """Return the logarithms of the amplitudes at the maximum of the likelihood, by damped Newton steps of all fits at once."""
    level = np.log(energies.sum() / counts.sum())
    least = level - 40
    theta = np.where(used, level + np.log([0.5, 0.4, 0.1]), least)

    def value(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        v = np.einsum("pk,pkb->pb", np.exp(theta), shapes)
        return -0.5 * (counts * np.log(v) + energies / v).sum(axis=1), v

    (height, v), damping = value(theta), np.full(len(theta), 1e-2)
    for _ in range(STEPS):
        terms = np.exp(theta)[:, :, None] * shapes
        slope = 0.5 * np.einsum("pkb,pb->pk", terms, energies / v**2 - counts / v)
        curvature = 0.5 * np.einsum("pkb,plb,pb->pkl", terms, terms, counts / v**2)
        ridge = damping[:, None] * np.einsum("pkk->pk", curvature) + 1e-6
        step = np.linalg.solve(curvature + ridge[:, :, None] * np.eye(3), slope[:, :, None])[:, :, 0]
        trial = np.maximum(theta + np.clip(step, -2, 2) * used, least)
        reached, v_trial = value(trial)
        better = reached >= height
        gain = float(np.where(better, reached - height, 1.0).max())
        theta, v = np.where(better[:, None], trial, theta), np.where(better[:, None], v_trial, v)
        height, damping = np.where(better, reached, height), np.where(better, np.maximum(damping / 5, 1e-6), damping * 4)
        if gain < 1e-2 or damping.min() > 1e6:
            break
    return theta
