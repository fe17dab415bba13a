"""The methods that threshold wavelets: coefficients thresholded at the minimum of SURE, synthesized, with their risk.

Frames that share filters (the same frame with more or fewer low bands) share transforms, weights and thresholds. Signals are rows here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushgraph._arrays import namespace, on_device, on_host, placed_like
from hushgraph._errors import InputError, StateError
from hushgraph._progress import timed
from hushgraph.core import block_sum, offset_of, rowwise_dots, rowwise_sums, rowwise_variances, shifted
from hushgraph.estimators.problem import Problem
from hushgraph.estimators.risk import (
    Assessed,
    Estimate,
    ProbeUse,
    Source,
    Spread,
    freedom_of_thresholds,
    spread_along,
    sure_of,
    with_risk,
    within_gain,
)
from hushgraph.estimators.settings import Settings
from hushgraph.graphs import Graph
from hushgraph.wavelets import (
    ChebyshevFrame,
    ExactFrame,
    Frame,
    Noise,
    apply_thresholds,
    chebyshev_frame,
    checked_coefficient_weights,
    default_probes,
    exact_frame,
    exact_weights,
    forward,
    inverse,
    least_thresholds,
    mean_weights,
    probes,
    smooth_weights,
    sure_exponent,
    weights_of,
)

DEPTHS = (0, 2, 4, 6)  # low_scales tried by sgwt_deep
EXCESS = 1.0  # standard deviations of noise energy that a group's scale must exceed, or it is set to zero
RISK_PROBES = 4  # probes sent through the whole estimator for risk_se
_SMALL = 2**27  # coefficients of a signal up to which a GPU has room for those of several at a time


@dataclass(frozen=True, eq=False)
class Probed:
    """Probes, their transforms by the filters of some frames, and the weights of coefficient and signal risk."""

    count: int
    eps: np.ndarray  # the first few of them
    bands: np.ndarray
    weights: np.ndarray
    signal_weights: np.ndarray
    source: Source
    energy: Any = None  # ||F_j||^2 of each signal and filter, (m, filters)
    joint: Any = None  # on a GPU these bands and those of the signals, in one array


@dataclass(frozen=True, eq=False)
class FrameEstimate:
    """The denoised signals (m, n) of one frame with their SURE; `rows` are its filters among the shared ones.

    On a GPU SURE and divergences stay there: no value has been copied to the host yet.
    """

    frame: Frame
    rows: np.ndarray
    signal: np.ndarray
    thresholds: np.ndarray
    sure: np.ndarray
    divergence: np.ndarray
    optimism: np.ndarray  # what choosing the thresholds costs
    product: Any = None  # J eps of the probes, where it was computed together with the signal


@dataclass(eq=False)
class ThresholdJacobian:
    """The Jacobian J = S diag(slope) W of one signal's estimate, by the transforms of a few probes. Its products are computed once."""

    frame: Frame
    slope: np.ndarray | None
    eps: np.ndarray
    bands: np.ndarray
    product: Any  # J eps, where it was computed together with the signal

    def jvp(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return J eps, and J' eps where J is not symmetric: the Laplacian of a random walk.

        With one probe, as on large graphs, the memory of the slopes is used for the product; a second call is an error.
        """
        if self.slope is None:
            msg = "the products of this Jacobian were computed before"
            raise StateError(msg)
        slope, self.slope, turned = self.slope, None, None
        if self.frame.laplacian == "random_walk":
            turned = slope * forward(self.frame, self.eps, transposed=True)
        product = self.product
        if product is None:
            out = slope[None] if len(self.eps) == 1 else None
            product = inverse(self.frame, np.multiply(slope, self.bands.astype(slope.dtype, copy=False), out=out))
        return product, None if turned is None else inverse(self.frame, turned, transposed=True)

    def spread(self, noise: Noise) -> Spread:
        """Return what the Jacobian does to the noise, as the probes estimate it."""
        return spread_along(self.eps, *self.jvp(), noise)


def estimates(
    frames: list[Frame],
    planes: np.ndarray,
    noise: Noise,
    settings: Settings,
    timings: dict[str, float],
    *,
    is_centred: np.ndarray,
) -> tuple[list[FrameEstimate], Probed, np.ndarray]:
    """Return an estimate for each frame, with the probes and slopes that Jacobians need.

    Signals in `is_centred` are less their mean, which comes back unthresholded. With P the projection on it the Jacobian is
    P + S diag(slope) W (I - P): the mean costs `noise.mean`, and saves what its direction had in the other term.
    """
    bank, rows = _shared_filters(frames)
    with timed(timings, "weights", 0.05, 0.35):
        probed, F = _probe(bank, noise, settings, planes)
    with timed(timings, "forward", 0.35, 0.5):
        F = forward(bank, planes) if F is None else F
    probed = replace(probed, energy=namespace(F).stack([rowwise_dots(part, part) for part in F]))
    with timed(timings, "thresholds", 0.5, 0.6):
        t, slope = _threshold(F, bank, probed, noise, settings)
        shares = [_shares(probed.signal_weights, part) for part in slope]
        if is_centred.any():
            direction = mean_direction(bank, noise, planes.shape[1], planes)
            shares = [share - is_centred[m] * rowwise_dots(direction, slope[m]) for m, share in enumerate(shares)]
        freedom = is_centred * (noise.mean(planes.shape[1]) / noise.variance)
        # the frames differ in how they split the lowest scale of the first one, and that was measured to cost nothing more
        choice = 2 * noise.mean(planes.shape[1]) * _freedom_of_choice(t, probed.weights, noise, settings)[rows[0]].sum(axis=0)
    results = []
    for frame, pick in zip(frames, rows, strict=True):
        with timed(timings, "inverse", 0.6, 0.75):
            signal, product = _synthesized(frame, F if len(frames) == 1 else F[:, placed_like(pick, F)], slope, probed)
        divergence = namespace(F).stack(
            [sum(row[j] for j in pick) + free for row, free in zip(shares, freedom, strict=True)]
        )  # in this order, however many signals there are
        apart = np.subtract(signal, planes, dtype=np.float64)
        sure = sure_of(rowwise_dots(apart, apart), noise.total(planes.shape[1]), noise.variance * divergence)
        optimism = within_gain(placed_like(choice, sure), sure, noise.total(planes.shape[1]))
        results.append(FrameEstimate(frame, pick, signal, t[pick], sure, divergence, optimism, product))
    return results, probed, slope


def signals_below_noise(probed: Probed, noise: Noise) -> np.ndarray:
    """Return, for each signal, whether the energy of some scale proves that sigma is too large."""
    trace, energy = on_host(probed.weights.sum(axis=1)), on_host(probed.energy)
    n_probes = None if probed.source == "exact" else probed.count
    return np.asarray(noise.is_too_large(energy, trace, tests=2 * len(trace), n_probes=n_probes).any(axis=1))


def estimate_of(part: FrameEstimate, m: int, probed: Probed, slope: np.ndarray, level: float, settings: Settings) -> Estimate:
    """Return the estimate of signal m with its Jacobian; its divergence holds the cost of the level."""
    is_whole = len(part.rows) == len(slope[m])
    rows = placed_like(part.rows, slope)
    own, bands = (slope[m], probed.bands) if is_whole else (slope[m][rows], probed.bands[:, rows])
    return Estimate(
        signal=part.signal[m],
        sure=part.sure[m],
        divergence=part.divergence[m],
        jacobian=ThresholdJacobian(part.frame, own, probed.eps, bands, part.product),
        probes=ProbeUse(probed.source, probed.count, settings.law),
        optimism=part.optimism[m],
        level=level,
        thresholds=part.thresholds[..., m],
    )


def _shared_filters(frames: list[Frame]) -> tuple[Frame, list[np.ndarray]]:
    """Return a frame that has every different filter once, and the numbers of the filters of each frame."""
    if len(frames) == 1:
        return frames[0], [np.arange(frames[0].n_scales)]
    polynomials = [frame for frame in frames if isinstance(frame, ChebyshevFrame)]
    every, place = np.unique(np.concatenate([frame.coefficients for frame in polynomials]), axis=0, return_inverse=True)
    cuts = np.cumsum([frame.n_scales for frame in polynomials])[:-1]
    bank = replace(polynomials[0], coefficients=every, bands=replace(frames[0].bands, n_scales=len(every)))
    return bank, np.split(place.ravel(), cuts)


def _freedom_of_choice(t: np.ndarray, weights: Any, noise: Noise, settings: Settings) -> np.ndarray:
    """Return the degrees of freedom that choosing the thresholds t costs, for each scale and signal; those that a test set to infinity cost none."""
    parts = [weights] if settings.groups is None else [weights[:, nodes] for nodes in _nodes_of_groups(settings.groups, weights)]
    traces = np.stack([on_host(part.sum(axis=1)) for part in parts], axis=1) * (noise.variance / noise.mean(weights.shape[1]))
    if settings.level == "global":  # one threshold, which is counted in the first scale
        traces = np.where(np.arange(len(traces))[:, None] == 0, traces.sum(axis=0), 0.0)
    freedom = freedom_of_thresholds(traces, beta=sure_exponent(settings.rule, settings.beta))
    is_chosen = np.isfinite(t).reshape(*traces.shape, -1)
    return (freedom[:, :, None] * is_chosen).sum(axis=1)


def _nodes_of_groups(groups: np.ndarray, like: Any) -> list[Any]:
    """Return the nodes of each group."""
    return [placed_like(np.flatnonzero(groups == group), like) for group in range(groups.max() + 1)]


def _synthesized(frame: Frame, F: Any, slope: Any, probed: Probed) -> Any:
    """Return the signals; on a GPU also J eps of a single signal, computed together with it: the two share what is read, and this is the last use of
    the probes' bands.
    """
    if probed.joint is None or len(F) > 1 or F.shape[1] != slope.shape[1] or frame.laplacian == "random_walk" or F[0].size > _SMALL:
        return inverse(frame, F), None
    np.multiply(slope[0], probed.bands, out=probed.bands)
    both = inverse(frame, probed.joint)
    return both[-1:], both[:-1]


def _shares(weights: Any, slope: Any) -> Any:
    """Return the part of each scale in the divergence."""
    if on_device(slope):
        return rowwise_dots(weights, slope)
    return np.array([block_sum(w * s) for w, s in zip(weights, slope, strict=True)])


def mean_direction(frame: Frame, noise: Noise, n: int, like: Any) -> Any:
    """Return the diagonal of W P Sigma S, (n_scales, nodes), in units of `noise.variance`; P is the projection on constant signals of n nodes."""
    constant = namespace(like).full((1, frame.graph.n), 1 / np.sqrt(n))
    back = forward(frame, noise.weigh(constant) / noise.variance, transposed=frame.laplacian == "random_walk")
    return forward(frame, constant)[0] * back[0]


def _probe(frame: Frame, noise: Noise, settings: Settings, planes: Any) -> tuple[Probed, Any]:
    """Return probes and weights; on a GPU also the transforms of the signals, side by side with those of the probes."""
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
    source: Source = "given" if weights is not None else "exact" if exact else "probes"
    if source == "given":
        raw = checked_coefficient_weights(placed_like(weights, eps).astype(np.float64, copy=False))
    elif source == "exact":
        raw = placed_like(exact_weights(frame, sigma=on_host(noise.per_node)), eps)
    elif len(eps) <= RISK_PROBES:
        raw = weights_of(frame, eps, bands, domain="coefficients")
    else:
        raw = mean_weights(frame, eps, domain="coefficients")
    signal_weights = raw
    if walk and exact:
        signal_weights = placed_like(exact_weights(frame, sigma=on_host(noise.per_node), domain="signal"), eps)
    elif walk:
        signal_weights = mean_weights(frame, eps, domain="signal")
    return Probed(count, eps[:RISK_PROBES], bands, raw, signal_weights, source, joint=joint), F


def _threshold(F: np.ndarray, frame: Frame, probed: Probed, noise: Noise, settings: Settings) -> Any:
    """Return thresholds (n_scales, m), or (n_scales, groups, m), and slopes; F becomes the thresholded coefficients."""
    scale = None
    if settings.about.is_scaled:
        smooth = probed.weights if probed.source == "exact" else smooth_weights(frame.graph, probed.weights, sigma=noise.per_node)
        scale = np.sqrt(np.maximum(smooth, 0.0))
    slope = np.empty_like(F)
    if settings.groups is None:
        return _threshold_nodes(F, slope, probed.weights, scale, noise, settings), slope
    found = []
    xp = namespace(F)
    for nodes in _nodes_of_groups(settings.groups, F):
        part = xp.ascontiguousarray(F[:, :, nodes])
        part_slope = np.empty_like(part)
        here = None if scale is None else xp.ascontiguousarray(scale[:, nodes])
        weights = xp.ascontiguousarray(probed.weights[:, nodes])
        found.append(_threshold_nodes(part, part_slope, weights, here, noise, settings, EXCESS))
        F[:, :, nodes], slope[:, :, nodes] = part, part_slope
    return np.stack(found, axis=1), slope


def _threshold_nodes(
    F: Any, slope: Any, weights: Any, scale: Any, noise: Noise, settings: Settings, excess: float | None = None
) -> np.ndarray:
    """Return the thresholds (n_scales, m) of these nodes; apply them to F, and write the slopes into `slope`.

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


def denoise_wavelets(problem: Problem, settings: Settings, timings: dict[str, float]) -> tuple[list[Assessed], dict[str, Any]]:
    """Return the estimate of every signal by the frame with the least risk for it, and details of all of them."""
    noise, planes = problem.noise, problem.planes
    with timed(timings, "frame", 0.0, 0.05):
        frames = _frames(problem.graph, settings.method) if settings.frame is None else [settings.frame]
    variances = rowwise_variances(planes)
    means = on_host(rowwise_sums(planes)) / planes.shape[1]
    levels = np.array([offset_of(*pair) for pair in zip(means.tolist(), on_host(variances).tolist(), strict=True)])
    planes = shifted(planes, -levels)
    parts, probed, slope = estimates(frames, planes, noise, settings, timings, is_centred=levels != 0)
    best = np.argmin([on_host(part.sure) for part in parts], axis=0) if len(parts) > 1 else np.zeros(len(planes), dtype=int)
    assessed = []
    for m, (b, y) in enumerate(zip(best, planes, strict=True)):
        with timed(timings, "risk error", 0.75, 1.0):
            assessed.append(with_risk(y, estimate_of(parts[b], m, probed, slope, float(levels[m]), settings), noise))
    chosen = [parts[b].frame for b in best]
    is_single = problem.values.ndim == 1
    details = {
        "frame": chosen[0] if is_single else chosen,
        "n_scales": chosen[0].n_scales if is_single else [frame.n_scales for frame in chosen],
        "tightness_defect": max(frame.tightness_defect for frame in chosen),
        "n_probes": probed.count if probed.source == "probes" else None,
        "divergence": problem.per_signal([parts[b].divergence[m] for m, b in enumerate(best)]),
        "noisy_variance": problem.per_signal(variances),
        "offset": problem.per_signal(levels),
        "sigma_too_large": problem.per_signal(signals_below_noise(probed, noise)),
    }
    if settings.method == "sgwt_deep":
        details["low_scales"] = problem.per_signal([DEPTHS[b] for b in best])
        by_depth = zip(DEPTHS, parts, strict=True)
        details["risk_by_low_scales"] = {depth: problem.per_signal(part.sure + part.optimism) for depth, part in by_depth}
    return assessed, details


def _frames(graph: Graph, method: str) -> list[Frame]:
    if method == "sgwt_exact":
        return [exact_frame(graph)]
    depths = DEPTHS if method == "sgwt_deep" else (0,)
    return graph.cached(f"frames of {method}", lambda: [chebyshev_frame(graph, low_scales=depth) for depth in depths])
