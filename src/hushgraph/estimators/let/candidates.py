"""Elementary estimates of a signal, each a column with its divergence, ready to be combined.

A group of candidates is a class with two parts: a function of the observation (graph, noisy values, noise level, probes) that computes
its columns F_k and their divergences, and the method `add_jvp`, which adds the derivative of a combination of them along the probes,
sum_k a_k J_k eps; standard errors follow from that. With h_t(x) = x (1 - t^2 / x^2)_+ and its slope (1 + t^2 / x^2) where |x| > t:

    constant     the mean, one for each large component             1
    heat         exp(-sL) y for 8 times s, and y itself             their traces
    heat_bands   the first, then successive differences             the same differences
    bands        psi_j(L) y                                         their traces
    gated        rho_j(L) [gate h_t(rho_j(L) y)]                    see `gating.py`
    spikes       h_t(y - P y)                                       sum_i sigma_i^2 (1 - P_ii) slope
    betas        local thresholds, an exponent for each scale       sum_ij weights_j(i) slope
    blocks       block thresholds, averaged over sizes of blocks    see `wavelets/blocks.py`
    dfs          mean over depth-first orders of the fused lasso    pieces
    tv           total variation on the graph                       pieces; on a GPU see `device_total_variation.py`
    levels       posterior means of fields with few levels          see `level_sets.py`
    local        local regression on what guides predict            see `local_regression.py`
    filter       one filter, fitted by maximum likelihood           its trace, see `fitted_filter.py`
    patches      similar patches of an image, together              finite differences, see `patches.py`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hushgraph._arrays import on_device, placed_like
from hushgraph._progress import reached
from hushgraph.core import _loops, block_dots, block_sum
from hushgraph.estimators.baselines.chain_fused_lasso import fused_lasso_path
from hushgraph.estimators.let.columns import Candidates, Columns, Derivative
from hushgraph.estimators.let.device_total_variation import total_variation_columns
from hushgraph.estimators.let.filters import HEAT, SMOOTHERS, Filters, Parts
from hushgraph.estimators.let.fitted_filter import Filtered, begin_filter
from hushgraph.estimators.let.gating import Gate, add_shrunken_derivative, shrunken
from hushgraph.estimators.let.level_sets import levels
from hushgraph.estimators.let.local_regression import local_regressions
from hushgraph.estimators.let.observation import TV_PENALTIES, Observation
from hushgraph.estimators.let.patches import similar_patches
from hushgraph.estimators.risk import BLOCK_FREEDOM, freedom_of_exponents, freedom_of_thresholds
from hushgraph.graphs import ComponentMeans, Graph, block_partition, depth_first_order
from hushgraph.wavelets import SIZES, BlockMixture, apply_thresholds, block_jacobian, block_mixture, sure_betas

Group = Literal[
    "constant",
    "heat",
    "heat_bands",
    "bands",
    "gated",
    "spikes",
    "betas",
    "blocks",
    "dfs",
    "tv",
    "levels",
    "local",
    "filter",
    "patches",
]
GATE_THRESHOLDS = (0.0, 2.5)  # thresholds, in local noise levels
SPIKE_THRESHOLDS = (2.0, 3.0, 4.0)
DFS_PENALTIES = (0.7, 1.5, 3.0, 6.0)  # in noise levels
ORDERS = 4


HEAT_BAND_NAMES = (
    f"heat {HEAT[0]:g}",
    *(f"heat {HEAT[k + 1]:g} - {HEAT[k]:g}" for k in range(len(HEAT) - 1)),
    f"noisy - heat {HEAT[-1]:g}",
)
SPIKE_NAMES = tuple(f"spikes {t:g}, smoother {a:g}" for t in SPIKE_THRESHOLDS for a in (0, *SMOOTHERS))


def constant_names(count: int) -> tuple[str, ...]:
    """Return the names of the columns with means of components."""
    return tuple(f"constant {k + 1}" for k in range(count))


def band_names(n_scales: int) -> tuple[str, ...]:
    """Return the names of the columns psi_j(L) y."""
    return tuple(f"band {j}" for j in range(n_scales))


def gated_names(n_scales: int) -> tuple[str, ...]:
    """Return the names of the columns behind the gate."""
    return tuple(f"gated {t:g}, band {j}" for t in GATE_THRESHOLDS for j in range(n_scales))


def make_candidates(observation: Observation, groups: tuple[Group, ...]) -> Columns:
    """Return the columns of these groups, one after the other."""
    parts: dict[str, Candidates] = {}
    if on_device(observation.y):  # long work is begun first, so that the GPU does not wait for the host
        if "filter" in groups:
            begin_filter(observation)
        if len(groups) > 1:
            _ = observation.parts
    for k, group in enumerate(groups):
        reached(k / len(groups), "candidates")
        parts[group] = GROUPS[group](observation)
    return Columns(observation.filters, parts)


# ---- linear ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Constants(Candidates):
    """The mean of each large component, the largest first; those after them share a column, and so do all small ones."""

    components: ComponentMeans = field(repr=False)
    probe_means: list[Any] = field(repr=False)

    @classmethod
    def of(cls, observation: Observation) -> Constants:
        """Return the constants of a signal."""
        y, components = observation.y, ComponentMeans.cached(observation.graph, observation.y)
        is_used = components.sizes > 0
        columns = components.column_of_group[is_used]
        count = int(columns.max()) + 1
        means = components.means(y)[components.group]
        if on_device(means):
            values = np.where(placed_like(np.arange(count)[:, None], means) == components.column_of_node, means, 0.0)
        else:
            values = np.zeros((count, observation.graph.n))
            _loops.spread_means(components.column_of_node, means, values)
        names = constant_names(count)
        divergence = np.bincount(columns, observation.mean_variances(components)[is_used], minlength=count)
        return cls(names, values, divergence, components, observation.filters.probe_means)

    def add_jvp(self, weights: np.ndarray, derivative: Derivative) -> None:
        """Add the weighted means of the probes."""
        shares = weights[np.minimum(self.components.column_of_group, len(weights) - 1)]
        parts = [(placed_like(shares, means) * means)[self.components.group] for means in self.probe_means]
        derivative.nodes = derivative.nodes + np.stack(parts)


@dataclass(frozen=True, eq=False)
class Linear(Candidates):
    """Columns that are filters of the signal, or sums of filters; `rows` picks them from the parts."""

    filters: Filters = field(repr=False)
    rows: Callable[[Parts], np.ndarray] = field(repr=False)

    @classmethod
    def of(cls, observation: Observation, names: tuple[str, ...], rows: Callable[[Parts], np.ndarray]) -> Linear:
        """Return the columns that `rows` picks."""
        filters = observation.filters
        return cls(names, rows(observation.parts), rows(filters.split(filters.probes.trace)), filters, rows)

    def add_jvp(self, weights: np.ndarray, derivative: Derivative) -> None:
        """Add the polynomial that the combination is."""
        coefficients = self.rows(self.filters.split(self.filters.coefficients))
        derivative.polynomial = derivative.polynomial + weights @ coefficients


def heat(observation: Observation) -> Linear:
    """Return exp(-sL) y for each time s, and y itself."""
    names = (*(f"heat {s:g}" for s in HEAT), "noisy")
    return Linear.of(observation, names, lambda parts: np.cumsum(parts.heat, axis=0))


def heat_bands(observation: Observation) -> Linear:
    """Return the first exp(-sL) y, and the differences from one time to the next."""
    return Linear.of(observation, HEAT_BAND_NAMES, lambda parts: parts.heat)


def bands(observation: Observation) -> Linear:
    """Return psi_j(L) y for each scale."""
    return Linear.of(observation, band_names(observation.filters.n_scales), lambda parts: parts.psi)


# ---- wavelets ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Gated(Candidates):
    """Coefficients of each scale, shrunk behind the gate and synthesized scale by scale."""

    observation: Observation = field(repr=False)
    gate: Gate = field(repr=False)

    @classmethod
    def of(cls, observation: Observation) -> Gated:
        """Return a column for every threshold and scale."""
        filters, probes, gate = observation.filters, observation.filters.probes, Gate.of(observation)
        moves = gate.moves(probes.cross, probes.rho)
        t = observation.sigma * np.array(GATE_THRESHOLDS)
        coefficients, divergence = shrunken(observation.parts.rho, probes.scale, t, probes.weights, gate, moves)
        values = filters.synthesize_each(coefficients)
        names = gated_names(filters.n_scales)
        return cls(names, values.reshape(len(names), -1), divergence.ravel(), observation, gate)

    def add_jvp(self, weights: np.ndarray, derivative: Derivative) -> None:
        """Add the derivatives of the coefficients, which pass through the gate and move it."""
        probes, t = self.observation.filters.probes, self.observation.sigma * np.array(GATE_THRESHOLDS)
        rho, weights = self.observation.parts.rho, weights.reshape(len(t), -1)
        add_shrunken_derivative(rho, probes.scale, t, weights, probes.rho, derivative.bands, self.gate)


@dataclass(frozen=True, eq=False)
class Thresholded(Candidates):
    """One column: all scales thresholded, and synthesized together."""

    slope: np.ndarray = field(repr=False)
    rho: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, observation: Observation, exponents: np.ndarray, thresholds: np.ndarray) -> Thresholded:
        """Return the estimate by these exponents and thresholds of each scale."""
        filters, probes = observation.filters, observation.filters.probes
        coefficients = observation.parts.rho.copy()
        slope = np.empty_like(coefficients)
        apply_thresholds(coefficients, thresholds, slope, rule="power", beta=exponents, scale=probes.scale)
        divergence = block_dots(probes.weights, slope).sum()[None]
        return cls(
            ("betas",),
            filters.synthesize(coefficients[None]),
            divergence,
            slope,
            probes.rho,
            tuned=float(np.sum(freedom_of_exponents(_noise_traces(observation)))),
            chosen={"thresholds": thresholds, "betas": exponents},
        )

    def add_jvp(self, weights: np.ndarray, derivative: Derivative) -> None:
        """Add the slopes times the coefficients of the probes."""
        derivative.bands[:] += weights[0] * self.slope * self.rho


def _noise_traces(observation: Observation) -> np.ndarray:
    """Return the trace of the noise in each scale, over the mean variance of the noise."""
    noise = observation.noise
    return noise.variance / noise.mean(observation.graph.n) * observation.filters.probes.weight_sums


def betas(observation: Observation) -> Thresholded:
    """Return the paper's estimator with local thresholds, and with the exponent of the rule chosen by SURE, scale by scale."""
    probes = observation.filters.probes
    return Thresholded.of(
        observation, *sure_betas(observation.parts.rho, probes.weights, sigma=observation.sigma, threshold_scale=probes.scale)
    )


@dataclass(frozen=True, eq=False)
class Blocks(Candidates):
    """One column: block thresholds of every block size at the least SURE, averaged by SURE."""

    observation: Observation = field(repr=False)
    mixture: BlockMixture = field(repr=False)

    @classmethod
    def of(cls, observation: Observation) -> Blocks:
        """Return the mixture over the sizes."""
        filters, probes, rho = observation.filters, observation.filters.probes, observation.parts.rho
        noise = observation.noise
        mixture = block_mixture(
            filters.frame, rho, probes.rho, probes.weights, noise.variance, threshold_scale=probes.scale, sigma=noise.per_node
        )
        chosen = {"thresholds": mixture.thresholds, "sizes": np.array(SIZES), "shares": mixture.shares}
        values = filters.synthesize(mixture.bands[None])
        divergence = mixture.divergence.sum()[None]
        tuned = float(np.sum(freedom_of_thresholds(_noise_traces(observation), factor=BLOCK_FREEDOM)))
        return cls(("blocks",), values, divergence, observation, mixture, tuned=tuned, chosen=chosen)

    def add_jvp(self, weights: np.ndarray, derivative: Derivative) -> None:
        """Add the derivatives of each block size in its share."""
        graph, rho, probes = self.observation.graph, self.observation.parts.rho, self.observation.filters.probes
        for size, t, share in zip(SIZES, self.mixture.thresholds, self.mixture.shares, strict=True):
            blocks = block_partition(graph, size=size)
            derivative.bands[:] += weights[0] * share[:, None] * block_jacobian(rho, blocks, t, probes.rho, scale=probes.scale)


# ---- nodes -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Spikes(Candidates):
    """Values that differ from their neighbourhood: h_t(y - P y), without a smoother P and with each of them."""

    observation: Observation = field(repr=False)
    rest: np.ndarray = field(repr=False)
    scale: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, observation: Observation) -> Spikes:
        """Return a column for every threshold and smoother."""
        probes, y = observation.filters.probes, observation.y
        rest = np.concatenate([y[None], y - observation.parts.smooth])
        if on_device(y):
            scale, weights, _ = observation.filters.spike_arrays
        else:
            scale = np.concatenate([np.sqrt(observation.node_variance)[None], probes.spread])
            weights = np.concatenate([observation.node_variance[None], probes.left])
        values, divergence = shrunken(rest, scale, observation.sigma * np.array(SPIKE_THRESHOLDS), weights)
        return cls(SPIKE_NAMES, values.reshape(len(SPIKE_NAMES), -1), divergence.ravel(), observation, rest, scale)

    def add_jvp(self, weights: np.ndarray, derivative: Derivative) -> None:
        """Add the slopes times what the smoothers leave of the probes."""
        probes, t = self.observation.filters.probes, self.observation.sigma * np.array(SPIKE_THRESHOLDS)
        if on_device(probes.eps):
            rows = self.observation.filters.spike_arrays[2]
        else:
            rows = np.concatenate([probes.eps[:, None], probes.eps[:, None] - probes.smooth], axis=1)
        total = np.zeros_like(rows[:, :1])
        add_shrunken_derivative(self.rest, self.scale, t, weights.reshape(len(t), -1), rows, total)
        derivative.nodes = derivative.nodes + total[:, 0]


# ---- pieces ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pieces(Candidates):
    """Means of estimates that are constant on pieces: each is locally the mean of y over its pieces, plus a constant.

    `labels` holds, for every column, the piece of each node in each of the estimates that the column is the mean of.
    """

    labels: list[list[np.ndarray]] = field(repr=False)
    eps: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, observation: Observation, names: tuple[str, ...], values: np.ndarray, labels: list[list[np.ndarray]]) -> Pieces:
        """Return the columns with their divergences: the number of pieces, for noise of one size."""
        divergence = [
            np.mean([block_sum(observation.node_variance / np.bincount(label)[label]) for label in estimates])
            for estimates in labels
        ]
        return cls(names, values, np.array(divergence), labels, observation.filters.probes.eps)

    def add_jvp(self, weights: np.ndarray, derivative: Derivative) -> None:
        """Add the means of the probes over the pieces."""
        used = np.flatnonzero(weights).tolist()
        sizes = {k: [np.bincount(label) for label in self.labels[k]] for k in used}

        def mean_over_pieces(x: np.ndarray, k: int) -> np.ndarray:
            parts = [(np.bincount(label, x) / size)[label] for label, size in zip(self.labels[k], sizes[k], strict=True)]
            return np.mean(parts, axis=0)

        rows = [sum(weights[k] * mean_over_pieces(eps, k) for k in used) for eps in self.eps]
        derivative.nodes = derivative.nodes + np.stack(rows)


def dfs(observation: Observation) -> Pieces:
    """Return the fused lasso along depth-first orders, averaged over them, for each penalty."""
    graph = observation.graph
    orders = depth_first_orders(graph, ORDERS)
    penalties = observation.typical_sigma * np.array(DFS_PENALTIES)
    values = np.zeros((len(penalties), graph.n))
    labels: list[list[np.ndarray]] = [[] for _ in penalties]
    for order in orders:
        for k, chain in enumerate(fused_lasso_path(observation.y[order], penalties)):
            values[k, order] += chain / len(orders)
            label = np.empty(len(order), dtype=np.int64)
            label[order] = np.cumsum(np.diff(chain, prepend=chain[:1]) != 0)
            labels[k].append(label)
    return Pieces.of(observation, tuple(f"dfs {p:g}" for p in DFS_PENALTIES), values, labels)


def tv(observation: Observation) -> Candidates:
    """Return total variation on the graph, for each penalty."""
    if on_device(observation.y):
        return total_variation_columns(observation)
    minima = observation.total_variations
    values, labels = np.stack([one.x for one in minima]), [[one.labels] for one in minima]
    return Pieces.of(observation, tuple(f"tv {p:g}" for p in TV_PENALTIES), values, labels)


def depth_first_orders(graph: Graph, count: int) -> np.ndarray:
    """Return random depth-first orders (count, n) from the cache of the graph; they are the same each time."""
    return graph.cached(
        ("depth-first orders", count), lambda: np.stack([depth_first_order(graph, seed=seed) for seed in range(count)])
    )


GROUPS: dict[Group, Callable[[Observation], Candidates]] = {
    "constant": Constants.of,
    "heat": heat,
    "heat_bands": heat_bands,
    "bands": bands,
    "gated": Gated.of,
    "spikes": Spikes.of,
    "betas": betas,
    "blocks": Blocks.of,
    "dfs": dfs,
    "tv": tv,
    "levels": levels,
    "local": local_regressions,
    "filter": Filtered.of,
    "patches": similar_patches,
}
