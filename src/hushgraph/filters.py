"""All linear filters that the combined estimators use, in one polynomial recurrence, and what random probes say of them.

Filters of L: the frame's rho_j, the bands psi_j = rho_j^2 themselves, differences of heat exp(-sL) - exp(-s'L) from one time s to
the next shorter one, and the smoothers P = (I + aL)^-1. One transform of a signal gives all of them. Probes eps (times sigma_i where the noise has a size per node) go through the same
transform once per graph and give, without bias, every trace and diagonal that a divergence needs:

    trace_k = sum_i sigma_i^2 [f_k(L)]_ii              mean of eps' f_k(L) eps
    weights_j(i) = [rho_j Sigma rho_j]_ii              mean of (rho_j eps)_i^2
    cross_j(i) = [P Sigma rho_j]_ii                    mean of (P eps)_i (rho_j eps)_i
    left_a(i) = sigma_i^2 (1 - P_ii), spread_a(i) = [(I - P) Sigma (I - P)]_ii

A polynomial is a filter of its own right: where its degree is too low for its name (a hub) it smooths less, and every divergence
is still its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hushgraph.chebyshev import chebyshev_coefficients
from hushgraph.frame import MEAN_DEGREE, ChebyshevFrame, chebyshev_frame
from hushgraph.graph import Graph
from hushgraph.kernels import cpu
from hushgraph.local_noise import smooth_weights
from hushgraph.risk import Law, default_probes, probes
from hushgraph.sgwt import Noise
from hushgraph.sums import block_dots

HEAT = (100.0, 40.0, 15.0, 6.0, 2.5, 1.0, 0.4, 0.15)  # times of diffusion, at mean degree 3
SMOOTHERS = (2.0, 10.0)  # a of (I + aL)^-1, likewise
PILOT = len(SMOOTHERS) - 1  # the smoother whose result gates
GROUP = 4  # probes transformed at a time
KEPT = 16  # probes whose transforms are kept, for Jacobians; fewer on large graphs


class Parts(NamedTuple):
    """One signal (or probe) through all filters: rows of each kind."""

    rho: np.ndarray
    psi: np.ndarray
    heat: np.ndarray  # differences; the last one is what is left of the signal
    smooth: np.ndarray


@dataclass(frozen=True, eq=False)
class Probes:
    """What the probes say of the filters; `eps` and `parts` are those of the first few, for Jacobians."""

    count: int
    eps: np.ndarray
    parts: list[Parts]
    trace: Parts
    weights: np.ndarray
    scale: np.ndarray
    cross: np.ndarray
    left: np.ndarray
    spread: np.ndarray


@dataclass(frozen=True, eq=False)
class Filters:
    """The filters of one graph, and its probes for one kind of noise."""

    graph: Graph
    frame: ChebyshevFrame
    coefficients: np.ndarray = field(repr=False)
    noise: Noise
    probes: Probes = field(repr=False)

    @classmethod
    def of(cls, graph: Graph, noise: Noise, *, n_probes: int | None = None, law: Law = "rademacher", seed: int = 0) -> Filters:
        """Of a graph, which keeps the latest ones; one size of the noise for all nodes is a factor, and no part of them."""
        count = default_probes(graph.n) if n_probes is None else n_probes
        sizes = None if noise.per_node is None else noise.per_node.tobytes()

        def make():
            frame = chebyshev_frame(graph)
            coefficients = _coefficients(frame)
            eps = probes(graph.n, count, law=law, seed=seed)
            return cls(graph, frame, coefficients, noise, _probe(frame, coefficients, noise, eps))

        return graph.latest("filters" if sizes is None else "filters per node", (count, law, seed, sizes), make)

    @property
    def n_scales(self) -> int:
        return self.frame.n_scales

    def apply(self, signal: np.ndarray) -> Parts:
        """All filters of one signal (n,)."""
        return _parts(_forward(self.frame, self.coefficients, signal[None])[0], self.n_scales)

    def wavelets(self, signal: np.ndarray) -> np.ndarray:
        """rho_j(L) x alone: (n,) -> (n_scales, n)."""
        return _forward(self.frame, self.coefficients[: self.n_scales], signal[None])[0]

    def pilot(self, signal: np.ndarray) -> np.ndarray:
        """P of one signal alone."""
        return _forward(self.frame, self.coefficients[-1:], signal[None])[0, 0]

    def synthesize_each(self, bands: np.ndarray) -> np.ndarray:
        """rho_j(L) of each band by itself, in place: (m, n_scales, n)."""
        for j in range(self.n_scales):
            bands[:, j] = _forward(self.frame, self.coefficients[j : j + 1], np.ascontiguousarray(bands[:, j]))[:, 0]
        return bands

    def synthesize(self, bands: np.ndarray) -> np.ndarray:
        """sum_j rho_j(L) F_j: (m, n_scales, n) -> (m, n)."""
        rows = self.coefficients[: self.n_scales]
        return cpu.inverse(self.graph.layout(self.frame.laplacian), rows, bands, 2 * self.frame.unit / self.frame.lambda_upper)


def _coefficients(frame: ChebyshevFrame) -> np.ndarray:
    """rho_j as the frame has them; the others undamped, at the same degree."""
    graph = frame.graph
    mean = frame.unit * float(graph.degrees.sum()) / max(int((graph.degrees > 0).sum()), 1)
    unit = MEAN_DEGREE / mean if mean > 0 else 1.0

    def others(x):
        heat = np.diff(np.exp(-unit * np.outer([*HEAT, 0.0], x)), axis=0, prepend=0.0)
        smooth = 1 / (1 + unit * np.outer(SMOOTHERS, x))
        return np.concatenate([frame.bands.filters(x) ** 2, heat, smooth])

    return np.concatenate([frame.coefficients, chebyshev_coefficients(others, frame.degree, upper=frame.lambda_upper)])


def _forward(frame: ChebyshevFrame, coefficients: np.ndarray, planes: np.ndarray) -> np.ndarray:
    return cpu.forward(frame.graph.layout(frame.laplacian), coefficients, planes, 2 * frame.unit / frame.lambda_upper)


def _parts(rows: np.ndarray, n_scales: int) -> Parts:
    return Parts(*np.split(rows, np.cumsum([n_scales, n_scales, len(HEAT) + 1])))


def _probe(frame: ChebyshevFrame, coefficients: np.ndarray, noise: Noise, eps: np.ndarray) -> Probes:
    n, n_scales, count = frame.graph.n, frame.n_scales, len(eps)
    eps = eps if noise.per_node is None else eps * noise.per_node
    kept: list[Parts] = []
    wanted = int(np.clip(2**18 // n, 1, KEPT))
    trace = np.zeros(len(coefficients))
    weights, cross = np.zeros((n_scales, n)), np.zeros((n_scales, n))
    left, spread = np.zeros((len(SMOOTHERS), n)), np.zeros((len(SMOOTHERS), n))
    for start in range(0, count, GROUP):
        group = eps[start : start + GROUP]
        for one, rows in zip(group, _forward(frame, coefficients, group), strict=True):
            parts = _parts(rows, n_scales)
            rest = one - parts.smooth
            trace += block_dots(rows, np.broadcast_to(one, rows.shape))
            weights += np.square(parts.rho)
            cross += parts.smooth[PILOT] * parts.rho
            left += one * rest
            spread += np.square(rest)
            if len(kept) < wanted:
                kept.append(parts)
    for total in (trace, weights, cross, left, spread):
        total /= count
    smooth = smooth_weights(frame.graph, np.concatenate([weights, spread]), sigma=noise.per_node)
    scale, spread = np.split(np.sqrt(np.maximum(smooth, 0.0)), [n_scales])
    return Probes(count, eps[: len(kept)].copy(), kept, _parts(trace, n_scales), weights, scale, cross, left, spread)
