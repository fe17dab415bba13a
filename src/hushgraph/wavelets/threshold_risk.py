"""SURE of each scale at all candidate thresholds: the one function behind the charts of report, explorer and `plot_sure`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushgraph.graphs import Graph
from hushgraph.wavelets.frame import ChebyshevFrame, chebyshev_frame
from hushgraph.wavelets.monte_carlo import monte_carlo_weights
from hushgraph.wavelets.shrinkage import Rule
from hushgraph.wavelets.thresholds import sure_curve
from hushgraph.wavelets.transform import analyze


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
