"""SURE of each scale as a function of the threshold: the curves of the report and the explorer, and with its standard error of `plot_sure`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hushgraph._errors import InputError
from hushgraph._validation import checked_count, checked_sigma
from hushgraph.graphs import Graph, Noisy, refuse_release
from hushgraph.wavelets.frame import ChebyshevFrame, Frame, chebyshev_frame
from hushgraph.wavelets.monte_carlo import default_probes, monte_carlo_weights, probes
from hushgraph.wavelets.noise_level import estimate_sigma
from hushgraph.wavelets.shrinkage import Rule, shrink, sure_exponent
from hushgraph.wavelets.thresholds import sure_curve
from hushgraph.wavelets.transform import analyze, checked_frame, forward

TOP = 1.5  # curves end where SURE exceeds this share of the noise
_THRESHOLDS, _WITH_ERROR = 240, 24  # number of thresholds with SURE, and with its standard error
_REACH = 5  # curves end at this multiple of the best threshold, or of the noise of a coefficient
_PAIRS = 4  # partners of each probe in the standard error
_ENOUGH_PROBES = 16  # for the standard error; SURE itself needs fewer on large graphs


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """SURE of one scale's coefficients at all thresholds that can be its minimum, ascending from 0."""

    thresholds: np.ndarray
    sure: np.ndarray

    @property
    def best(self) -> int:
        """Position of the threshold with the smallest SURE."""
        return int(np.argmin(self.sure))

    def resampled(self, end: float, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return `count` thresholds evenly from 0 to `end`, or to the last threshold, and SURE at the last candidate below each."""
        grid = np.linspace(0.0, min(end, float(self.thresholds[-1])), count)
        return grid, self.sure[np.searchsorted(self.thresholds, grid, side="right") - 1]


def scale_risk_curves(
    coefficients: np.ndarray, weights: np.ndarray, *, sigma: float, rule: Rule = "james_stein", beta: float | None = None,
    threshold_scales: np.ndarray | None = None,
) -> list[RiskCurve]:  # fmt: skip
    """Return SURE over the threshold for each scale of coefficients (n_scales, n) with SURE weights of the same shape.

    The threshold of a coefficient is t times its entry in `threshold_scales`, if they are given.
    """
    multipliers = [None] * len(weights) if threshold_scales is None else threshold_scales
    return [
        RiskCurve(*sure_curve(x, g, sigma=sigma, rule=rule, beta=beta, threshold_scale=multiplier))
        for x, g, multiplier in zip(coefficients, weights, multipliers, strict=True)
    ]


def paper_risk_curves(graph: Graph, values: np.ndarray, sigma: float | np.ndarray) -> list[RiskCurve]:
    """Return SURE over the threshold for each scale of the paper's method (James-Stein, default frame), coarse to fine.

    With one sigma per node the weights include sigma^2, and thresholds are in units of the coefficients.
    """
    if np.ndim(sigma):
        frame = chebyshev_frame(graph)
        return scale_risk_curves(analyze(frame, values), monte_carlo_weights(frame, sigma=sigma), sigma=1.0)
    frame, weights = graph.cached("frame and weights of the paper", lambda: _default_frame(graph))
    return scale_risk_curves(analyze(frame, values), weights, sigma=float(sigma))


def _default_frame(graph: Graph) -> tuple[ChebyshevFrame, np.ndarray]:
    frame = chebyshev_frame(graph)
    return frame, monte_carlo_weights(frame)


# ---- with standard errors ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SureCurve:
    """SURE of one scale at ascending thresholds, its standard error at some of them, and the actual error where it is known.

    `noise` is the expected squared noise of the scale, sigma^2 sum(weights).
    """

    thresholds: np.ndarray
    sure: np.ndarray
    at: np.ndarray
    standard_error: np.ndarray
    noise: float
    best: float
    actual: np.ndarray | None


def sure_curves(
    frame: Frame,
    noisy: Any,
    *,
    sigma: Any = None,
    rule: Rule = "james_stein",
    beta: float | None = None,
    truth: Any = None,
    n_probes: int | None = None,
    seed: int = 0,
) -> list[SureCurve]:
    """Return the curve of each scale, up to the threshold where SURE is of no more interest."""
    graph, _ = checked_frame(frame).graph, sure_exponent(rule, beta)
    if truth is not None:
        refuse_release("noisy", noisy)
        refuse_release("truth", truth)
    values, sigma = noisy.opened(graph, sigma) if isinstance(noisy, Noisy) else (graph.aligned("noisy", noisy), sigma)
    clean = None if truth is None else graph.aligned("truth", truth)
    for name, signal in (("noisy", values), ("truth", clean)):
        if signal is not None and signal.ndim != 1:
            text = f"SURE is drawn for one signal: {name} must be ({graph.n},), got {signal.shape}; pick a column"
            raise InputError.about(argument=name, expected=f"({graph.n},)", got=signal.shape, hint="pick a column", text=text)
    sigma = estimate_sigma(graph, values, frame=frame) if sigma is None else checked_sigma(sigma, graph.n)
    n_probes = max(default_probes(graph.n), _ENOUGH_PROBES) if n_probes is None else checked_count("n_probes", n_probes, 2)
    noise = forward(frame, sigma * probes(graph.n, n_probes, seed=seed))  # (n_probes, n_scales, n)
    F = analyze(frame, values.astype(np.float64))
    f = None if clean is None else analyze(frame, clean.astype(np.float64))
    return [_sure_curve(F[j], np.ascontiguousarray(noise[:, j]), None if f is None else f[j], rule, beta) for j in range(len(F))]


def _sure_curve(x: np.ndarray, noise: np.ndarray, truth: np.ndarray | None, rule: Rule, beta: float | None) -> SureCurve:
    """Return the curve of one scale, from its coefficients (n,) and those of the probes (n_probes, n), which include sigma."""
    weights = np.mean(noise**2, axis=0)
    total = float(weights.sum())
    (curve,) = scale_risk_curves(x[None], weights[None], sigma=1.0, rule=rule, beta=beta)
    t, sure, best = curve.thresholds, curve.sure, curve.best
    beyond = np.flatnonzero((sure > TOP * total) & (np.arange(len(t)) > best))
    far = int(np.searchsorted(t, _REACH * max(t[best], np.sqrt(total / max(len(x), 1)))))
    last = min(int(beyond[0]) if len(beyond) else len(t) - 1, max(far, best), len(t) - 1)
    drawn = np.unique(np.searchsorted(t, np.linspace(0, t[last], _THRESHOLDS)).clip(0, last))
    drawn = np.union1d(drawn, best)
    some = drawn[:: -(-len(drawn) // _WITH_ERROR)]
    some = np.union1d(some, [best, drawn[-1]])
    error = np.array([standard_error(x, noise, t[i], rule=rule, beta=beta) for i in some])
    actual = None if truth is None else np.array([np.sum((shrink(x, t[i], rule=rule, beta=beta)[0] - truth) ** 2) for i in drawn])
    return SureCurve(t[drawn], sure[drawn], t[some], error, total, float(t[best]), actual)


def standard_error(x: np.ndarray, noise: np.ndarray, t: float, *, rule: Rule, beta: float | None) -> float:
    """Return the standard error of SURE as an estimate of the actual squared error ||h_t(x) - f||^2 of one scale's coefficients.

    The noise of coefficients is not white: its covariance C is sigma^2 W_j W_j'. With g = h(x) - x and S = diag(slope) the variance
    of SURE - ||h(x) - f||^2 is 4 E g'Cg + 4 E tr(CSCS) - 2 tr(C^2). Each is a mean over probes z = sigma W_j eps, or over pairs
    of them: E (z'g)^2, E (z'S z~)^2, E (z'z~)^2. The weights, which are a mean over probes themselves, add their own variance.
    """
    value, slope = shrink(x, t, rule=rule, beta=beta)
    alone = np.sum(noise**2 * (2 * slope - 1), axis=1)
    bent, plain = np.mean([_squared_pairs(noise, slope, apart) for apart in range(1, min(_PAIRS, len(noise) - 1) + 1)], axis=0)
    of_data = 4 * np.mean(np.sum(noise * (value - x), axis=1) ** 2) + 4 * bent - 2 * plain
    return float(np.sqrt(max(of_data, 0.0) + np.var(alone, ddof=1) / len(noise)))


def _squared_pairs(noise: np.ndarray, slope: np.ndarray, apart: int) -> tuple[float, float]:
    """Return the means of (z'S z~)^2 and (z'z~)^2 over pairs of probes whose numbers differ by `apart`."""
    # sums by rows: in small matrix products the threads of BLAS mostly wait for each other
    product = noise * np.roll(noise, apart, axis=0)
    return float(np.mean(np.sum(product * slope, axis=1) ** 2)), float(np.mean(np.sum(product, axis=1) ** 2))
