"""The paper's estimator: wavelet coefficients thresholded at the minimum of SURE, synthesized, with its risk and their errors.

Frames that share filters (the same frame with more or fewer low bands) share transforms, weights and thresholds.
Signals are rows here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushgraph._errors import InputError
from hushgraph.arrays import beside, namespace, on_device, on_host
from hushgraph.frame import ChebyshevFrame, ExactFrame, Frame
from hushgraph.local_noise import smooth_weights
from hushgraph.progress import timed
from hushgraph.risk import (
    Law,
    checked_coefficient_weights,
    default_probes,
    exact_weights,
    is_below_noise,
    mean_weights,
    probes,
    weights_of,
)
from hushgraph.shrink import Rule, sure_exponent
from hushgraph.sums import block_sum, dots_there, sum_of_rows, sums_there
from hushgraph.threshold import Candidates, Level, apply_thresholds, least_thresholds
from hushgraph.transform import forward, inverse

EXCESS = 1.0  # standard deviations of noise energy that a group's scale must exceed, or it is set to zero
RISK_PROBES = 4  # probes sent through the whole estimator for risk_se
_SMALL = 2**27  # coefficients of a signal up to which a GPU has room for those of several at a time


@dataclass(frozen=True)
class Noise:
    """White noise of one variance; or `per_node` standard deviations, and then `variance` is 1 and weights hold theirs."""

    variance: float
    per_node: np.ndarray | None

    @classmethod
    def of(cls, sigma) -> Noise:
        """From a standard deviation, or one per node."""
        return cls(1.0, sigma) if np.ndim(sigma) else cls(float(sigma) ** 2, None)

    def total(self, n: int) -> float:
        """sum_i sigma_i^2: the risk of doing nothing."""
        return n * self.variance if self.per_node is None else float(block_sum(self.per_node**2))

    def mean(self, n: int) -> float:
        """The mean of sigma_i^2."""
        return self.total(n) / n

    def fourth(self, n: int) -> float:
        """sum_i sigma_i^4."""
        return n * self.variance**2 if self.per_node is None else float(block_sum(self.per_node**4))

    def weigh(self, values: np.ndarray) -> np.ndarray:
        """sigma_i^2 times values, nodes in the last axis."""
        return self.variance * values if self.per_node is None else self.per_node**2 * values

    def energy(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """sum_i sigma_i^2 a_ki b_ki of each pair of rows."""
        return self.variance * dots_there(a, b) if self.per_node is None else dots_there(self.per_node**2 * a, b)

    def risk_se(self, square: np.ndarray, trace, divergence) -> Any:
        """Standard error of SURE as an estimate of the loss, from the squared residuals, tr((Sigma J)^2) and the diagonal of J Sigma.

        Its square, 4 <y - fhat, Sigma (y - fhat)> + 4 tr((Sigma J)^2) - 2 tr(Sigma^2), is unbiased for the mean squared difference of the
        two at fixed thresholds and weights; J is the Jacobian of the estimator. See `error_of_sums`.
        """
        weighted, turned = sums_there(np.stack([self.weigh(square), self.weigh(divergence)]))
        return self.error_of_sums(weighted, trace, turned, self.fourth(len(square)))

    @staticmethod
    def error_of_sums(weighted, trace, turned, fourth) -> Any:
        """The same from <y - fhat, Sigma (y - fhat)>, tr((Sigma J)^2), tr(Sigma J Sigma) and tr(Sigma^2).

        The mean squared difference is at least 2 tr(((I - 2 J) Sigma)^2), which is due to the noise alone. That takes the place of an
        estimate of less than a quarter of it: the residual is too small then, since sigma is too large, and the estimate may even be negative.
        """
        square, noise_alone = 4 * weighted + 4 * trace - 2 * fourth, 2 * (fourth - 4 * turned + 4 * trace)
        return np.sqrt(np.maximum(np.where(4 * square < noise_alone, noise_alone, square), 0.0))

    def is_too_large(self, energy, trace, *, tests: int, n_probes: int | None = None) -> np.ndarray:
        """Whether energies of linear images of y, whose noise has these traces (in units of `variance`), prove it; see `is_below_noise`."""
        if self.per_node is None:
            return is_below_noise(np.asarray(energy) / self.variance, trace, tests=tests, n_probes=n_probes)
        return is_below_noise(energy, trace, tests=tests, largest=float(self.per_node.max()) ** 2, n_probes=n_probes)


@dataclass(frozen=True, eq=False)
class Settings:
    """Which method, how to threshold, which probes to use: everything but the data."""

    method: str
    frame: Frame | None
    weights: np.ndarray | None
    rule: Rule
    beta: float | None
    level: Level
    candidates: Candidates
    n_probes: int | None
    law: Law
    seed: int
    nonnegative: bool
    refine: bool | None
    groups: np.ndarray | None = None  # number of each node's group; every group has thresholds of its own

    @property
    def scaled(self) -> bool:
        """Whether thresholds follow the local noise level of the coefficients."""
        return self.method not in ("sgwt_sure", "sgwt_exact")


@dataclass(frozen=True, eq=False)
class Probed:
    """Probes, their transforms by the filters of some frames, and the weights of coefficient and signal risk."""

    count: int
    eps: np.ndarray  # the first few of them
    bands: np.ndarray
    weights: np.ndarray
    signal_weights: np.ndarray
    weights_from: str
    energy: Any = None  # ||F_j||^2 of each signal and filter, (m, filters)
    joint: Any = None  # on a GPU these bands and those of the signals, in one array


@dataclass(frozen=True, eq=False)
class Estimate:
    """One frame's denoised signals (m, n) and their estimated risk; `rows` are its filters among the shared ones.

    On a GPU risks and divergences are still there: nobody has waited for them.
    """

    frame: Frame
    rows: np.ndarray
    signal: np.ndarray
    thresholds: np.ndarray
    risk: np.ndarray
    divergence: np.ndarray
    ahead: Any = None  # J eps of the probes, where it was worked out with the signal


def estimates(frames: list[Frame], planes: np.ndarray, noise: Noise, settings: Settings, timings: dict, *, is_centred: np.ndarray):
    """An Estimate for each frame, with the probes and slopes that `risk_errors` needs.

    Signals in `is_centred` are less their mean, which comes back unthresholded. With P the projection on it the Jacobian is
    P + S diag(slope) W (I - P): the mean costs `noise.mean`, and saves what its direction had in the other term.
    """
    bank, rows = _shared_filters(frames)
    with timed(timings, "weights", 0.05, 0.35):
        probed, F = _probe(bank, noise, settings, planes)
    with timed(timings, "forward", 0.35, 0.5):
        F = forward(bank, planes) if F is None else F
    probed = replace(probed, energy=namespace(F).stack([dots_there(part, part) for part in F]))
    with timed(timings, "thresholds", 0.5, 0.6):
        t, slope = _threshold(F, bank, probed, noise, settings)
        shares = [_shares(probed.signal_weights, part) for part in slope]
        if is_centred.any():
            direction = mean_direction(bank, noise, planes.shape[1], planes)
            shares = [share - is_centred[m] * dots_there(direction, slope[m]) for m, share in enumerate(shares)]
        freedom = is_centred * (noise.mean(planes.shape[1]) / noise.variance)
    results = []
    for frame, pick in zip(frames, rows, strict=True):
        with timed(timings, "inverse", 0.6, 0.75):
            signal, ahead = _synthesized(frame, F if len(frames) == 1 else F[:, beside(pick, F)], slope, probed)
        divergence = namespace(F).stack(
            [sum(row[j] for j in pick) + free for row, free in zip(shares, freedom, strict=True)]
        )  # in this order, however many signals there are
        apart = np.subtract(signal, planes, dtype=np.float64)
        residual = dots_there(apart, apart)
        risk = residual - noise.total(planes.shape[1]) + 2 * noise.variance * divergence
        results.append(Estimate(frame, pick, signal, t[pick], risk, divergence, ahead))
    return results, probed, slope


def signals_below_noise(probed: Probed, noise: Noise) -> np.ndarray:
    """Of each signal, whether the energy of some scale proves sigma too large."""
    trace, energy = on_host(probed.weights.sum(axis=1)), on_host(probed.energy)
    n_probes = None if probed.weights_from == "exact" else probed.count
    return np.asarray(noise.is_too_large(energy, trace, tests=2 * len(trace), n_probes=n_probes).any(axis=1))


def risk_errors(part: Estimate, m: int, planes, noise: Noise, probed: Probed, slope: np.ndarray, law: Law, timings: dict):
    """risk_se and probe_se of signal m, and what `NodeRisk` needs: SURE and variance node by node.

    The Jacobian of the estimator is J = S diag(slope) W.
    probe_se^2 is Proposition 2 with its last sum replaced by the least it can be.
    """
    n = planes.shape[1]
    with timed(timings, "risk error", 0.75, 1.0):
        trace, frobenius, divergence, variance = _traces(part, probed, slope[m], noise)
    square = np.square(part.signal[m] - planes[m], dtype=np.float64)
    risk_se = noise.risk_se(square, trace, divergence)
    nodes = square - noise.weigh(np.ones_like(square)) + 2 * divergence, variance
    if probed.weights_from != "probes":
        return risk_se, 0.0 if probed.weights_from == "exact" else np.nan, *nodes
    diagonal = 0.0 if law == "gaussian" else (noise.variance * part.divergence[m]) ** 2 / n  # at most sum_p M_pp^2
    return risk_se, np.sqrt(4 * np.maximum(frobenius + trace - 2 * diagonal, 0.0) / probed.count), *nodes


def _shared_filters(frames: list[Frame]) -> tuple[Frame, list[np.ndarray]]:
    """A frame with every different filter once, and which of them each frame has."""
    if len(frames) == 1:
        return frames[0], [np.arange(frames[0].n_scales)]
    polynomials = [frame for frame in frames if isinstance(frame, ChebyshevFrame)]
    every, place = np.unique(np.concatenate([frame.coefficients for frame in polynomials]), axis=0, return_inverse=True)
    cuts = np.cumsum([frame.n_scales for frame in polynomials])[:-1]
    bank = replace(polynomials[0], coefficients=every, bands=replace(frames[0].bands, n_scales=len(every)))
    return bank, np.split(place.ravel(), cuts)


def _synthesized(frame: Frame, F, slope, probed: Probed):
    """The signals; on a GPU also J eps of a single one, side by side with it: the two share what is read, and this is the last use of
    the probes' bands.
    """
    if probed.joint is None or len(F) > 1 or F.shape[1] != slope.shape[1] or frame.laplacian == "random_walk" or F[0].size > _SMALL:
        return inverse(frame, F), None
    np.multiply(slope[0], probed.bands, out=probed.bands)
    both = inverse(frame, probed.joint)
    return both[-1:], both[:-1]


def _shares(weights, slope) -> Any:
    """What each scale adds to the divergence."""
    if on_device(slope):
        return dots_there(weights, slope)
    return np.array([block_sum(w * s) for w, s in zip(weights, slope, strict=True)])


def mean_direction(frame: Frame, noise: Noise, n: int, like) -> Any:
    """Diagonal of W P Sigma S, (n_scales, nodes), in units of `noise.variance`; P is the projection on constant signals of n nodes."""
    constant = namespace(like).full((1, frame.graph.n), 1 / np.sqrt(n))
    back = forward(frame, noise.weigh(constant) / noise.variance, transposed=frame.laplacian == "random_walk")
    return forward(frame, constant)[0] * back[0]


def _probe(frame: Frame, noise: Noise, settings: Settings, planes) -> tuple[Probed, Any]:
    """Probes and weights; on a GPU also the transforms of the signals, side by side with those of the probes."""
    n, exact, weights = frame.graph.n, isinstance(frame, ExactFrame), settings.weights
    if weights is not None and np.shape(weights) != (frame.n_scales, n):
        msg = f"weights must have shape {(frame.n_scales, n)}, as monte_carlo_weights of the same frame returns them; got {np.shape(weights)}"
        raise InputError(msg)
    count = default_probes(n) if settings.n_probes is None else settings.n_probes
    walk = frame.laplacian == "random_walk"  # whose signal risk has weights of its own
    is_few = exact or (weights is not None and not walk)
    eps = probes(n, min(count, RISK_PROBES) if is_few else count, law=settings.law, seed=settings.seed, like=planes)
    eps = eps if noise.per_node is None else eps * noise.per_node.astype(eps.dtype, copy=False)
    few, F, joint = eps[:RISK_PROBES], None, None
    if on_device(planes):
        joint = forward(frame, np.concatenate([few, planes]))
        bands, F = joint[: len(few)], joint[len(few) :]
    else:
        bands = forward(frame, few)
    if weights is not None:
        raw, source = checked_coefficient_weights(beside(weights, eps).astype(np.float64, copy=False)), "given"
    elif exact:
        raw, source = beside(exact_weights(frame, sigma=on_host(noise.per_node)), eps), "exact"
    else:
        known = len(eps) <= RISK_PROBES
        raw = weights_of(frame, eps, bands, domain="coefficients") if known else mean_weights(frame, eps, domain="coefficients")
        source = "probes"
    signal_weights = raw
    if walk and exact:
        signal_weights = beside(exact_weights(frame, sigma=on_host(noise.per_node), domain="signal"), eps)
    elif walk:
        signal_weights = mean_weights(frame, eps, domain="signal")
    return Probed(count, eps[:RISK_PROBES], bands, raw, signal_weights, source, joint=joint), F


def _threshold(F: np.ndarray, frame: Frame, probed: Probed, noise: Noise, settings: Settings):
    """Thresholds (n_scales, m), or (n_scales, groups, m), and slopes; F becomes the thresholded coefficients."""
    scale = None
    if settings.scaled:
        smooth = (
            probed.weights if probed.weights_from == "exact" else smooth_weights(frame.graph, probed.weights, sigma=noise.per_node)
        )
        scale = np.sqrt(np.maximum(smooth, 0.0))
    slope = np.empty_like(F)
    if settings.groups is None:
        return _threshold_nodes(F, slope, probed.weights, scale, noise, settings), slope
    found = []
    xp = namespace(F)
    for nodes in (beside(np.flatnonzero(settings.groups == group), F) for group in range(settings.groups.max() + 1)):
        part = xp.ascontiguousarray(F[:, :, nodes])
        part_slope = np.empty_like(part)
        here = None if scale is None else xp.ascontiguousarray(scale[:, nodes])
        weights = xp.ascontiguousarray(probed.weights[:, nodes])
        found.append(_threshold_nodes(part, part_slope, weights, here, noise, settings, EXCESS))
        F[:, :, nodes], slope[:, :, nodes] = part, part_slope
    return np.stack(found, axis=1), slope


def _threshold_nodes(F, slope, weights, scale, noise: Noise, settings: Settings, excess: float | None = None) -> np.ndarray:
    """Thresholds (n_scales, m) of these nodes, applied to F; slopes go into `slope`.

    With `excess`, a scale whose energy is not that many standard deviations above the noise's is set to zero: among few nodes
    SURE finds minima in pure noise (Donoho and Johnstone's hybrid rule for sparse signals).
    """
    t = least_thresholds(
        np.moveaxis(F, 0, 2),
        weights,
        scale,
        variance=noise.variance,
        beta=sure_exponent(settings.rule, settings.beta),
        level=settings.level,
        candidates=settings.candidates,
    )
    quiet = np.zeros(t.shape, dtype=bool)
    if excess is not None:
        trace = np.maximum(on_host(weights.sum(axis=1)), 0.0)
        energy = on_host(np.square(F, dtype=np.float64).sum(axis=2)).T / noise.variance
        quiet = energy <= (trace + excess * np.sqrt(2 * trace))[:, None]
    for m in range(len(F)):
        apply_thresholds(F[m], t[:, m], slope[m], rule=settings.rule, beta=settings.beta, scale=scale)
        for j in np.flatnonzero(quiet[:, m]):
            F[m, j], slope[m, j] = 0.0, 0.0
    return np.where(quiet, np.inf, t)


def _traces(part: Estimate, probed: Probed, slope: np.ndarray, noise: Noise):
    """tr((Sigma J)^2) and tr(J' Sigma J Sigma), the means of <J' eps, Sigma J eps> and <J eps, Sigma J eps>.

    The two are the same unless the Laplacian is a random walk's: else J is symmetric. Also, per node, the diagonals of J Sigma
    (the means of eps_i (J eps)_i) and of J Sigma J' (those of (J eps)_i^2).
    """
    eps, whole = probed.eps, len(part.rows) == len(slope)
    own = beside(part.rows, slope)
    rows, bands = (slope, probed.bands) if whole else (slope[own], probed.bands[:, own])
    turned = rows * forward(part.frame, eps, transposed=True) if part.frame.laplacian == "random_walk" else None
    # with one probe (a large graph) the product takes the place of the slopes: this is their last use
    if part.ahead is None:
        product = np.multiply(rows, bands.astype(rows.dtype, copy=False), out=rows[None] if len(eps) == 1 else None)
        ahead = inverse(part.frame, product)
    else:
        ahead = part.ahead
    back = ahead if turned is None else inverse(part.frame, turned, transposed=True)
    trace = frobenius = noise.variance * np.mean(noise.energy(ahead, ahead))
    if turned is not None:
        trace = noise.variance * np.mean(noise.energy(ahead, back))
    divergence = noise.variance * np.mean(np.multiply(eps, ahead, dtype=np.float64), axis=0)
    return trace, frobenius, divergence, noise.variance * np.mean(np.square(ahead, dtype=np.float64), axis=0)


def average(y: np.ndarray, signals: np.ndarray, risks, errors, noise: Noise, shares: np.ndarray):
    """Estimates (k, n) of y in these shares: the signal, its risk and risk_se, and what SURE gains at each node over the mean of theirs.

    SURE is exact for an average (divergences are averaged); its standard error is an upper bound (traces are convex).
    """
    signal = sum_of_rows(shares, signals)
    gain = np.nan_to_num((y - signal) ** 2 - sum_of_rows(shares, (y - signals) ** 2))  # at most 0; 0 where there is no value
    spread = shares @ np.square(errors) + 4 * block_sum(noise.weigh(gain))
    spread = spread if spread > 0 else np.min(np.square(errors))  # 0 and less where sigma is too large: no part's error is 0
    return signal, float(shares @ np.asarray(risks) + block_sum(gain)), float(np.sqrt(spread)), gain
