"""Coefficients shrunk at several thresholds in one pass, behind a gate that opens where the smoothed signal is high.

The gate is logistic(2 z), z how many standard deviations a smooth pilot p = P y is above its mean. With
h_t(x) = x (1 - t^2 / x^2)_+, its slope s_t, and probes eps of the noise, gate h_t(w_j) has the divergence

    sum_i gate_i s_t weights_j(i) + h_t gate'_i [rho_j Sigma (P - 11'P/n - z (Pz)'/n)]_ii / sd(p)

whose last two terms, a few degrees of freedom among n, are means over the kept probes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit

from hushgraph._arrays import namespace, on_device, placed_like
from hushgraph.core import BLOCK, _loops, along_rows, block_dots, block_sum, block_sum_of, blocks, gpu
from hushgraph.estimators.let.filters import PILOT_SMOOTHER
from hushgraph.estimators.let.observation import Observation

STEEPNESS = 2.0  # of the gate


@dataclass(frozen=True, eq=False)
class Gate:
    """The opening of the gate at each node, z, the derivative of the opening by p, and the effect of the kept probes on mean and spread of p."""

    open: np.ndarray
    z: np.ndarray
    slope: np.ndarray
    smooth: np.ndarray
    shift: np.ndarray
    stretch: np.ndarray

    @classmethod
    def of(cls, observation: Observation) -> Gate:
        """Return the gate of an observed signal."""
        p, n = observation.parts.smooth[PILOT_SMOOTHER], observation.graph.n
        mean = float(block_sum(p)) / n
        deviation = p - mean
        gate, z, slope = gate_opening(p, mean, float(np.sqrt(block_dots(deviation[None], deviation[None])[0] / n)))
        smooth = namespace(p).ascontiguousarray(observation.filters.probes.smooth[:, PILOT_SMOOTHER])
        shift = block_sum(smooth.T) / n
        return cls(gate, z, slope, smooth, shift, block_dots(smooth, np.broadcast_to(z, smooth.shape)) / n)

    def moves(self, cross: np.ndarray, rho: np.ndarray) -> np.ndarray:
        """Return the factor of h_t in the divergence: (n_scales, n)."""
        if on_device(cross):
            weights = placed_like(self.shift, cross)[:, None] + placed_like(self.stretch, cross)[:, None] * self.z
            return self.slope * (cross - np.mean(weights[:, None] * rho, axis=0))
        out = np.empty(cross.shape)
        _loops.gate_moves(along_rows(cross), along_rows(rho), self.z, self.slope, self.shift, self.stretch, out)
        return out


def inverse_spread(mean: float, spread: float) -> float:
    """Return one over the spread of the pilot, or 0 if the spread is mere rounding."""
    return 1 / spread if spread > 1e-9 * abs(mean) else 0.0


def gate_opening(p: Any, mean: float, spread: float) -> tuple[Any, Any, Any]:
    """Return the opening of the gate, z, and the derivative of the opening by p, which is 0 if the pilot has no spread."""
    z = p - mean
    z *= inverse_spread(mean, spread)
    gate = 1 / (1 + np.exp(-STEEPNESS * z)) if on_device(z) else expit(STEEPNESS * z)
    return gate, z, STEEPNESS / spread * gate * (1 - gate) if inverse_spread(mean, spread) else np.zeros_like(z)


def shrunken(
    w: np.ndarray, scale: np.ndarray, thresholds: np.ndarray, weights: np.ndarray, gate: Gate | None = None, moves: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows gate h_t(w_j) for thresholds t in multiples of `scale`, (thresholds, k, n), and their divergences (thresholds, k)."""
    if on_device(w):
        return _shrunken_on_device(w, scale, thresholds, weights, gate, moves)
    values = np.empty((len(thresholds), *w.shape))
    parts = np.zeros((len(blocks(w.shape[1])), len(thresholds), len(w)))
    w, scale, weights = along_rows(w), along_rows(scale), along_rows(weights)
    _loops.shrink_rows(w, scale, thresholds, weights, None if gate is None else gate.open, moves, values, parts, BLOCK)
    return values, block_sum_of(list(parts)) if len(parts) else np.zeros(values.shape[:2])


def add_shrunken_derivative(
    w: np.ndarray,
    scale: np.ndarray,
    thresholds: np.ndarray,
    a: np.ndarray,
    rows: np.ndarray,
    out: np.ndarray,
    gate: Gate | None = None,
) -> None:
    """Add the derivative of sum_t a_tj gate h_t(w_j) along the probes to out, (probes, k, n), or (probes, 1, n) for the sum over j.

    `rows` (probes, k, n) are the coefficients w of the probes.
    """
    if on_device(w):
        _add_shrunken_derivative_on_device(w, scale, thresholds, a, rows, out, gate)
        return
    gate_arguments = () if gate is None else (gate.open, gate.z, gate.slope, along_rows(gate.smooth), gate.shift, gate.stretch)
    _loops.add_moved(along_rows(w), along_rows(scale), thresholds, a, along_rows(rows), out, *gate_arguments)


def _shrunken_on_device(w: Any, scale: Any, thresholds: Any, weights: Any, gate: Gate | None, moves: Any) -> Any:
    """Return `shrunken` on the GPU of the arrays."""
    xp, opening, moves = namespace(w), 1.0 if gate is None else gate.open, 0.0 if moves is None else moves
    values, terms, divergence = xp.empty((len(thresholds), *w.shape)), xp.empty_like(w), []
    for t, out in zip(thresholds, values, strict=True):
        _gated_kernel()(w, t, scale, weights, opening, moves, out, terms)
        divergence.append(block_sum(terms.T))
    return values, np.stack(divergence)


def _add_shrunken_derivative_on_device(w: Any, scale: Any, thresholds: Any, a: Any, rows: Any, out: Any, gate: Gate | None) -> None:
    """Add what `add_shrunken_derivative` adds, on the GPU of the arrays."""
    shares, values, slopes = placed_like(a, w), np.zeros_like(w), np.zeros_like(w)
    for t, share in zip(thresholds, shares, strict=True):
        _sum_kernel()(w, t, scale, share[:, None], values, slopes)
    for p in range(len(rows)):
        derivative = slopes * rows[p]
        if gate is not None:
            change = gate.slope * (gate.smooth[p] - float(gate.shift[p]) - float(gate.stretch[p]) * gate.z)
            derivative = gate.open * derivative + change * values
        out[p] += derivative if out.shape[1] == len(w) else derivative.sum(axis=0)


_SHRINK = """
        double limit = t * scale, size = abs(x), alive = size > limit || limit == 0 ? 1 : 0;
        double r = limit > 0 && size > limit ? limit / size : 0;
        double h = alive * (x * (1 - r * r)), slope = alive * (1 + r * r);
"""


@cache
def _gated_kernel() -> Any:
    """Return the kernel of the values and the terms of their divergence, as `shrink_rows` on the CPU."""
    code = _SHRINK + "value = opening * h; terms = weight * opening * slope + moves * h;"
    kinds = "float64 x, float64 t, float64 scale, float64 weight, float64 opening, float64 moves"
    return gpu.cupy().ElementwiseKernel(kinds, "float64 value, float64 terms", code, "gated", options=gpu.OPTIONS)


@cache
def _sum_kernel() -> Any:
    """Return the kernel that adds a share of h and of its slope."""
    code = _SHRINK + "values += share * h; slopes += share * slope;"
    kinds = "float64 x, float64 t, float64 scale, float64 share"
    return gpu.cupy().ElementwiseKernel(kinds, "float64 values, float64 slopes", code, "add_shrunken", options=gpu.OPTIONS)
