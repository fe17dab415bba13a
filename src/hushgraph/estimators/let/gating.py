"""Coefficients shrunk at several thresholds in one pass, behind a gate that opens where the smoothed signal is high.

The gate is logistic(2 z), z how many standard deviations a smooth pilot p = P y is above its mean. With
h_t(x) = x (1 - t^2 / x^2)_+, its slope s_t, and probes eps of the noise, gate h_t(w_j) has the divergence

    sum_i gate_i s_t weights_j(i) + h_t gate'_i [rho_j Sigma (P - 11'P/n - z (Pz)'/n)]_ii / sd(p)

whose last two terms, a few degrees of freedom among n, are means over the kept probes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit

from hushgraph._arrays import namespace, on_device
from hushgraph.core import BLOCK, _loops, along_rows, block_dots, block_sum, block_sum_of, blocks, gpu, rowwise_dots, rowwise_sums
from hushgraph.estimators.let.filters import PILOT_SMOOTHER
from hushgraph.estimators.let.observation import Observation

STEEPNESS = 2.0  # of the gate
PER_BLOCK = 2048  # nodes whose terms a block of a GPU sums, as in `gates.cu`


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
        if on_device(p):
            return cls._on_device(p, observation.filters.probes.smooth[:, PILOT_SMOOTHER])
        mean = float(block_sum(p)) / n
        deviation = p - mean
        gate, z, slope = gate_opening(p, mean, float(np.sqrt(block_dots(deviation[None], deviation[None])[0] / n)))
        smooth = np.ascontiguousarray(observation.filters.probes.smooth[:, PILOT_SMOOTHER])
        shift = block_sum(smooth.T) / n
        return cls(gate, z, slope, smooth, shift, block_dots(smooth, np.broadcast_to(z, smooth.shape)) / n)

    @classmethod
    def _on_device(cls, p: Any, smooth: Any) -> Gate:
        """Return the gate of a pilot; the host does not wait for its mean and spread."""
        n, smooth = len(p), namespace(p).ascontiguousarray(smooth)
        mean = rowwise_sums(p[None]) / n
        deviation = (p - mean)[None]
        gate, z, slope = _opening_on_device(p, mean, np.sqrt(rowwise_dots(deviation, deviation) / n))
        return cls(gate, z, slope, smooth, rowwise_sums(smooth) / n, rowwise_dots(smooth, np.broadcast_to(z, smooth.shape)) / n)

    def moves(self, cross: np.ndarray, rho: np.ndarray) -> np.ndarray:
        """Return the factor of h_t in the divergence: (n_scales, n)."""
        if on_device(cross):
            return _moves_on_device(self, cross, rho)
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
    gate = expit(STEEPNESS * z)
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
    xp, (k, n) = namespace(w), w.shape
    values, parts = xp.empty((len(thresholds), k, n)), xp.empty((len(thresholds) * k, max(-(-n // PER_BLOCK), 1)))
    opening, size = None if gate is None else gate.open, (np.int64(n), np.int32(len(thresholds)))
    arguments = (xp.asarray(thresholds), *_with_strides(w, scale, weights), opening, moves, values, parts)
    gpu.compiled("gates.cu", "shrink_rows")((parts.shape[1], k), (256,), (*size, *arguments))
    return values, gpu.dots(parts).reshape(len(thresholds), k)


def _moves_on_device(gate: Gate, cross: Any, rho: Any) -> Any:
    """Return `Gate.moves` on the GPU of the arrays."""
    xp, (k, n) = namespace(cross), cross.shape
    out, rho = xp.empty((k, n)), xp.ascontiguousarray(rho)
    arguments = (*_with_strides(cross), rho, gate.z, gate.slope, gate.shift, gate.stretch, out)
    gpu.compiled("gates.cu", "gate_moves")((-(-n // 256), k), (256,), (np.int64(n), np.int32(len(rho)), *arguments))
    return out


def _add_shrunken_derivative_on_device(w: Any, scale: Any, thresholds: Any, a: Any, rows: Any, out: Any, gate: Gate | None) -> None:
    """Add what `add_shrunken_derivative` adds, on the GPU of the arrays."""
    xp, (k, n), is_summed = namespace(w), w.shape, out.shape[1] != len(w)
    parts: tuple[Any, ...] = () if gate is None else (gate.open, gate.z, gate.slope, gate.smooth, gate.shift, gate.stretch)
    struct = np.zeros(1, dtype=[(f"array{q}", np.uint64) for q in range(6)])
    if parts:
        struct[0] = tuple(part.data.ptr for part in parts)
    rows, shares = xp.ascontiguousarray(rows), xp.asarray(np.ascontiguousarray(a))
    gpu.compiled("gates.cu", "add_moved")(
        (-(-n // 256), 1 if is_summed else k), (256,),
        (
            np.int64(n), np.int32(k), np.int32(len(thresholds)), xp.asarray(thresholds), shares, *_with_strides(w, scale), np.int32(len(rows)),
            rows, struct, np.bool_(is_summed), out, np.int64(out.strides[0] // out.itemsize),
        ),
    )  # fmt: skip


def _with_strides(*arrays: Any) -> Iterator[Any]:
    """Yield each array of float64 rows and the number of values from one row to the next."""
    for array in arrays:
        yield array
        yield np.int64(array.strides[0] // array.itemsize)


def _opening_on_device(p: Any, mean: Any, spread: Any) -> tuple[Any, Any, Any]:
    """Return `gate_opening`; mean and spread are on the GPU of p, too."""
    return _opening_kernel()(p, mean, spread)


@cache
def _opening_kernel() -> Any:
    """Return the kernel of `gate_opening`."""
    code = f"""
        double inverse = spread > 1e-9 * abs(mean) ? 1 / spread : 0;
        z = (p - mean) * inverse;
        opening = 1 / (1 + exp(-{STEEPNESS} * z));
        slope = inverse > 0 ? {STEEPNESS} / spread * opening * (1 - opening) : 0;
    """
    kinds = "float64 p, float64 mean, float64 spread", "float64 opening, float64 z, float64 slope"
    return gpu.cupy().ElementwiseKernel(*kinds, code, "gate_opening", options=gpu.OPTIONS)
