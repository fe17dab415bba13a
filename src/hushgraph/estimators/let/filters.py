"""All linear filters that the combined estimators use, in one polynomial recurrence, with their traces and diagonals from random probes.

Filters of L: the frame's rho_j, the smoothers P = (I + aL)^-1, the bands psi_j = rho_j^2 themselves, and differences of heat
exp(-sL) - exp(-s'L) from one time s to the next shorter one. One transform of a signal gives all of them. Probes eps (times
sigma_i where the noise has a size per node) go through rho_j and P once per graph and give, without bias, every trace and
diagonal that a divergence needs; traces of polynomials need no more than their moments eps' T_m eps:

    trace_k = sum_i sigma_i^2 [f_k(L)]_ii              mean of eps' f_k(L) eps
    weights_j(i) = [rho_j Sigma rho_j]_ii              mean of (rho_j eps)_i^2
    cross_j(i) = [P Sigma rho_j]_ii                    mean of (P eps)_i (rho_j eps)_i
    left_a(i) = sigma_i^2 (1 - P_ii), spread_a(i) = [(I - P) Sigma (I - P)]_ii

Every divergence is that of the polynomial itself, so it is right even where the degree is too low for the function that the
polynomial stands for (a hub), and the filter smooths less.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hushgraph._arrays import namespace, on_device, on_host
from hushgraph.core import _loops, gpu
from hushgraph.graphs import ComponentMeans, Graph
from hushgraph.wavelets import (
    MEAN_DEGREE,
    ChebyshevFrame,
    Law,
    Noise,
    chebyshev_coefficients,
    chebyshev_frame,
    default_probes,
    engine,
    probes,
    smooth_weights,
)

HEAT = (100.0, 40.0, 15.0, 6.0, 2.5, 1.0, 0.4, 0.15)  # times of diffusion, at mean degree 3
SMOOTHERS = (2.0, 10.0)  # a of (I + aL)^-1, likewise
N_OTHER_FILTERS = len(SMOOTHERS) + len(HEAT) + 1  # filters besides rho_j and psi_j
PILOT_SMOOTHER = len(SMOOTHERS) - 1  # number of the smoother whose result is the pilot of the gate
PROBES_AT_ONCE = 4  # probes transformed at a time
ROUNDING = 1e-15  # coefficients below this part of the largest are 0
MAX_KEPT_PROBES = 16  # probes whose transforms stay in memory, for Jacobians; fewer on large graphs


class Parts(NamedTuple):
    """One signal through all filters, or one number per filter: rows of each kind."""

    rho: np.ndarray
    smooth: np.ndarray
    psi: np.ndarray
    heat: np.ndarray  # differences; the last one is the remainder of the signal


@dataclass(frozen=True, eq=False)
class Probes:
    """Traces and diagonals of the filters from `count` probes.

    `eps` (n_kept, n) are the first n_kept probes, `rho` (n_kept, n_scales, n) and `smooth` (n_kept, smoothers, n) their transforms.
    """

    count: int
    eps: np.ndarray
    rho: np.ndarray
    smooth: np.ndarray
    trace: np.ndarray  # in the order of the coefficients
    weights: np.ndarray
    scale: np.ndarray
    cross: np.ndarray
    left: np.ndarray
    spread: np.ndarray

    @cached_property
    def weight_sums(self) -> np.ndarray:
        """The sum of the weights of each scale, on the host."""
        return on_host(self.weights.sum(axis=1))


@dataclass(frozen=True, eq=False)
class Filters:
    """The filters of one graph, and its probes for one kind of noise."""

    graph: Graph
    frame: ChebyshevFrame
    coefficients: np.ndarray = field(repr=False)
    probes: Probes = field(repr=False)
    per_node: np.ndarray | None = field(repr=False)
    law: Law = field(repr=False)
    seed: int = field(repr=False)

    @classmethod
    def of(
        cls, graph: Graph, noise: Noise, *, n_probes: int | None = None, law: Law = "rademacher", seed: int = 0, like: Any = None
    ) -> Filters:
        """Return the filters and probes of a graph, which caches the latest ones.

        A noise level that is the same for all nodes is a factor, and no part of them. The probes are on the device of the array `like`.
        """
        count = default_probes(graph.n) if n_probes is None else n_probes
        sizes = None if noise.per_node is None else on_host(noise.per_node).tobytes()
        name = f"filters{'' if sizes is None else ' per node'}{' on device' * on_device(like)}"

        def make() -> Filters:
            frame = chebyshev_frame(graph)
            coefficients = coefficients_of(frame, float(graph.degrees.sum()), int((graph.degrees > 0).sum()))
            eps = _draw(graph.n, count, law, seed, noise.per_node, like)
            return cls(graph, frame, coefficients, _probe(frame, coefficients, noise, eps), noise.per_node, law, seed)

        return graph.cached(name, make, version=(count, law, seed, sizes))

    @property
    def n_scales(self) -> int:
        """The number of scales of the frame."""
        return self.frame.n_scales

    @cached_property
    def probe_means(self) -> list[Any]:
        """The means of each kept probe over the components."""
        eps = self.probes.eps
        members = ComponentMeans.cached(self.graph, eps)
        return [members.means(one) for one in eps]

    @cached_property
    def spike_arrays(self) -> tuple[Any, Any, Any]:
        """What the candidates for spikes need of the probes, once for each graph: local scales, weights, and what smoothers leave of the probes."""
        probes = self.probes
        eps = probes.eps[:, None]
        variance = namespace(eps).ones(eps.shape[2:]) if self.per_node is None else self.per_node**2
        return (
            np.concatenate([np.sqrt(variance)[None], probes.spread]),
            np.concatenate([variance[None], probes.left]),
            np.concatenate([eps, eps - probes.smooth], axis=1),
        )

    def draw_probes(self, count: int) -> np.ndarray:
        """Return `count` probes (count, n), times sigma_i where the noise has a size per node. The first ones are those of `probes`."""
        return _draw(self.graph.n, count, self.law, self.seed, self.per_node, self.probes.eps)

    def apply(self, signal: np.ndarray) -> Parts:
        """Return one signal (n,) through all filters."""
        return self.split(filtered(self.frame, self.coefficients, signal[None])[0])

    def split(self, rows: np.ndarray) -> Parts:
        """Return rows, given in the order of the coefficients, by kind."""
        return Parts(*np.split(rows, np.cumsum([self.n_scales, len(SMOOTHERS), self.n_scales]).tolist()))

    def wavelets(self, signals: np.ndarray) -> np.ndarray:
        """Return rho_j(L) x alone: (m, n) -> (m, n_scales, n)."""
        return filtered(self.frame, self.coefficients[: self.n_scales], signals)

    def synthesize_each(self, bands: np.ndarray) -> np.ndarray:
        """Return rho_j(L) of each band, (m, n_scales, n), in the place of the bands on a processor."""
        if on_device(bands):
            _, layout = engine(self.frame, bands)
            return gpu.forward_each(layout, self.coefficients[: self.n_scales], bands, self.frame.laplacian_scale)
        for j in range(self.n_scales):
            band = np.ascontiguousarray(bands[:, j])
            bands[:, j] = filtered(self.frame, self.coefficients[j : j + 1], band)[:, 0]
        return bands

    def synthesize(self, bands: np.ndarray, last: np.ndarray | None = None) -> np.ndarray:
        """Return sum_j rho_j(L) F_j: (m, n_scales, n) -> (m, n); with the coefficients `last` of another filter there is one band more."""
        rows = self.coefficients[: self.n_scales]
        return synthesized(self.frame, rows if last is None else np.concatenate([rows, last[None]]), bands)

    def polynomial(self, coefficients: np.ndarray, signals: np.ndarray) -> np.ndarray:
        """Return one polynomial of several signals: (m, n) -> (m, n)."""
        return filtered(self.frame, coefficients[None], signals)[:, 0]


def _draw(n: int, count: int, law: Law, seed: int, per_node: np.ndarray | None, like: Any) -> np.ndarray:
    """Return random probes (count, n), times `per_node` if that is given."""
    eps = probes(n, count, law=law, seed=seed, like=like)
    return eps if per_node is None else eps * per_node


def coefficients_of(frame: ChebyshevFrame, total_degree: float, n_linked: int) -> np.ndarray:
    """Return the coefficients of rho_j from the frame, and those of the others undamped, at the same degree, with 0 for mere rounding.

    `n_linked` nodes have neighbours, and degrees that add up to `total_degree`.
    """
    mean = frame.unit * total_degree / max(n_linked, 1)
    unit = MEAN_DEGREE / mean if mean > 0 else 1.0

    def other_filters(x: np.ndarray) -> np.ndarray:
        smooth = 1 / (1 + unit * np.outer(SMOOTHERS, x))
        heat = np.diff(np.exp(-unit * np.outer([*HEAT, 0.0], x)), axis=0, prepend=0.0)
        return np.concatenate([smooth, frame.bands.filters(x) ** 2, heat])

    rest = chebyshev_coefficients(other_filters, frame.degree, upper=frame.lambda_upper)
    rest[np.abs(rest) < ROUNDING * np.abs(rest).max(axis=1, keepdims=True)] = 0.0
    return np.concatenate([frame.coefficients, rest])


def filtered(frame: ChebyshevFrame, coefficients: np.ndarray, planes: np.ndarray) -> np.ndarray:
    """Return each polynomial of each signal: (m, n) -> (m, filters, n)."""
    kernels, layout = engine(frame, planes)
    return kernels.forward(layout, coefficients, planes, frame.laplacian_scale)


def synthesized(frame: ChebyshevFrame, coefficients: np.ndarray, bands: np.ndarray) -> np.ndarray:
    """Return the sum of each polynomial of its band: (m, filters, n) -> (m, n)."""
    kernels, layout = engine(frame, bands)
    return kernels.inverse(layout, coefficients, bands, frame.laplacian_scale)


def n_kept_probes(n: int, count: int) -> int:
    """Return how many of `count` probes keep their transforms on a graph of n nodes: at most MAX_KEPT_PROBES, fewer on large graphs."""
    return int(np.clip(2**18 // max(n, 1), 1, min(MAX_KEPT_PROBES, count)))


def _probe(frame: ChebyshevFrame, coefficients: np.ndarray, noise: Noise, eps: np.ndarray) -> Probes:
    """Return the traces and diagonals from the probes `eps` (count, n), PROBES_AT_ONCE at a time."""
    n, n_scales, count = frame.graph.n, frame.n_scales, len(eps)
    few, n_kept = coefficients[: n_scales + len(SMOOTHERS)], n_kept_probes(n, count)
    (kernels, layout), moments = engine(frame, eps), np.zeros(coefficients.shape[1])
    xp = namespace(eps)
    sums, first = xp.empty((2 * len(few), n)), []
    for start in range(0, count, PROBES_AT_ONCE):
        group = eps[start : start + PROBES_AT_ONCE]
        rows, group_moments = kernels.forward_with_moments(layout, few, group, frame.laplacian_scale, n_moments=len(moments))
        moments += on_host(group_moments.sum(axis=0))
        if on_device(rows):
            _accumulate_on_device(group, rows, n_scales, 1 / count, start == 0, sums)
        else:
            _loops.add_probes(group, rows, n_scales, n_scales + PILOT_SMOOTHER, 1 / count, start == 0, sums)
        first += [rows[: n_kept - start]] if start < n_kept else []
    weights, _, cross, left = np.split(sums, np.cumsum([n_scales, len(SMOOTHERS), n_scales]).tolist())
    smooth = smooth_weights(frame.graph, sums[: len(few)], sigma=noise.per_node)
    scale, spread = np.split(np.sqrt(smooth, out=smooth), [n_scales])
    parts = np.split(first[0] if len(first) == 1 else np.concatenate(first), [n_scales], axis=1)
    rho, smoothed = (
        part.copy() if count > n_kept else xp.ascontiguousarray(part) for part in parts
    )  # a copy frees the other probes
    return Probes(count, eps[:n_kept].copy(), rho, smoothed, coefficients @ (moments / count), weights, scale, cross, left, spread)


def _accumulate_on_device(eps: Any, rows: Any, n_scales: int, share: float, fresh: bool, sums: Any) -> None:
    """Add the share `share` of (rho_j eps)^2, (eps - P eps)^2, (P eps) (rho_j eps) and eps (eps - P eps) of each probe to `sums`, as `add_probes` does."""
    terms, factor = rows.copy(), np.repeat(rows[:, n_scales + PILOT_SMOOTHER, None], rows.shape[1], axis=1)
    terms[:, n_scales:] = eps[:, None] - rows[:, n_scales:]
    factor[:, n_scales:] = eps[:, None]
    for part, products in zip(np.split(sums, 2), (terms * terms, terms * factor), strict=True):
        part[:] = share * products.sum(axis=0) + (0.0 if fresh else part)
