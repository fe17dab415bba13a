"""Elementary estimates of a signal, each a column with its divergence, ready to be combined.

A group of candidates is a pure function of the observation (graph, noisy values, noise level, probes). It returns its columns
F_k, their divergences d_k = sum_i sigma_i^2 dF_k(i)/dy_i (in units of the variance when the noise has one size), and the
derivative of any combination of them along the probes, sum_k a_k J_k eps, from which standard errors follow. With
h_t(x) = x (1 - t^2 / x^2)_+ and its slope (1 + t^2 / x^2) where |x| > t:

    constant     the mean, one for each large component             1
    heat         exp(-sL) y for 8 times s, and y itself             their traces
    heat_bands   the first, then successive differences             the same differences
    bands        psi_j(L) y                                         their traces
    scaled       rho_j(L) h_t(rho_j(L) y), t with the local noise   sum_i weights_j(i) slope
    gated        rho_j(L) [gate h_t(rho_j(L) y)]                    see `_gated_divergence`
    spikes       h_t(y - P y)                                       sum_i sigma_i^2 (1 - P_ii) slope
    adaptive     the paper's estimator with local thresholds        sum_ij weights_j(i) slope
    betas        the same, with an exponent chosen for each scale   sum_ij weights_j(i) slope
    blocks       block thresholds, averaged over sizes of blocks    see `blocks.py`
    dfs          mean over depth-first orders of the fused lasso    pieces
    tv           total variation on the graph                       pieces
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hushgraph.betas import sure_betas
from hushgraph.blocks import SIZES, block_jacobian, block_mixture
from hushgraph.chains import depth_first_order, fused_lasso_path
from hushgraph.chebyshev import chebyshev_values
from hushgraph.columns import Columns, Observation
from hushgraph.filters import HEAT, PILOT, SMOOTHERS, Parts
from hushgraph.graph import Graph
from hushgraph.neighbourhoods import block_partition
from hushgraph.sums import block_dots, block_sum
from hushgraph.threshold import apply_thresholds, sure_thresholds
from hushgraph.total_variation import Arcs, minimise

Group = Literal["constant", "heat", "heat_bands", "bands", "scaled", "gated", "spikes", "adaptive", "betas", "blocks", "dfs", "tv"]
SCALED = (2.0, 3.5)  # thresholds, in local noise levels
GATED = (0.0, 2.5)
SPIKES = (2.0, 3.0, 4.0)
DFS_PENALTIES = (0.7, 1.5, 3.0, 6.0)  # in noise levels
TV_PENALTIES = (0.35, 0.7, 1.2)
ORDERS = 4
LARGE, MOST_CONSTANTS = 30, 8  # components that get a constant: of at least so many nodes; so many get one of their own
STEEPNESS = 2.0  # of the gate
TUNING = 2.0  # degrees of freedom that a threshold chosen by SURE costs


@dataclass(frozen=True, eq=False)
class Pilot:
    """The smooth p = P y, how many standard deviations z it is above its mean, and gate = logistic(2 z)."""

    z: np.ndarray
    spread: float
    gate: np.ndarray

    @classmethod
    def of(cls, seen: Observation) -> Pilot:
        p = seen.parts.smooth[PILOT]
        mean = float(block_sum(p)) / len(p)
        centred = p - mean
        spread = float(np.sqrt(block_sum(centred**2) / len(p)))
        spread = spread if spread > 1e-9 * abs(mean) else 0.0  # else it is rounding
        z = centred / spread if spread > 0 else np.zeros_like(p)
        return cls(z, spread, 1 / (1 + np.exp(-STEEPNESS * z)))

    def push(self, smooth: np.ndarray) -> np.ndarray:
        """Derivative of the gate along a probe whose P eps is `smooth`."""
        if self.spread == 0:
            return np.zeros_like(smooth)
        n = len(smooth)
        change = (smooth - block_sum(smooth) / n - self.z * (block_sum(self.z * smooth) / n)) / self.spread
        return STEEPNESS * self.gate * (1 - self.gate) * change


def candidates(seen: Observation, groups: tuple[Group, ...]) -> Columns:
    """The columns of these groups, one after the other."""
    parts = [GROUPS[group](seen) for group in groups]
    ends = np.cumsum([len(part.names) for part in parts])
    places: dict[str, np.ndarray] = {
        group: np.arange(end - len(part.names), end) for group, part, end in zip(groups, parts, ends, strict=True)
    }

    def push(a):
        moved = np.zeros((1, 1))
        for group, part in zip(groups, parts, strict=True):
            if np.any(a[places[group]]):
                moved = moved + part.push(a[places[group]])
        return np.broadcast_to(moved, seen.filters.probes.eps.shape)

    names = tuple(name for part in parts for name in part.names)
    values = tuple(rows for part in parts for rows in part.values)
    chosen = {f"{group}: {name}": found for group, part in zip(groups, parts, strict=True) for name, found in part.chosen.items()}
    divergence, tuned = (np.concatenate([getattr(part, name) for part in parts]) for name in ("divergence", "tuned"))
    return Columns(names, values, divergence, push, tuned, places, chosen)


# ---- linear ------------------------------------------------------------------------------------------------------------


def constant(seen: Observation) -> Columns:
    """A column for the mean of each large component, the largest first; those after them share one, and all small ones together."""
    label, sizes = seen.graph.components, np.bincount(seen.graph.components)
    order = np.argsort(-sizes, kind="stable")
    large = order[sizes[order] >= LARGE]
    small = np.isin(label, order[len(large) :])
    label = np.where(small, order[-1], label) if small.any() else label  # they are one
    sizes = np.maximum(np.bincount(label, minlength=len(sizes)), 1)
    sets = [label == one for one in large[:MOST_CONSTANTS]]
    sets += [part for part in (np.isin(label, large[MOST_CONSTANTS:]), small) if part.any()]

    def averaged(x):
        means = np.bincount(label, x, minlength=len(sizes)) / sizes
        return np.stack([np.where(nodes, means[label], 0.0) for nodes in sets])

    share = seen.own / sizes[label]
    divergence = np.array([block_sum(np.where(nodes, share, 0.0)) for nodes in sets])
    names = tuple(f"constant {k + 1}" for k in range(len(sets)))

    def push(a):
        return np.stack([a @ averaged(eps) for eps in seen.filters.probes.eps])

    return Columns(names, (averaged(seen.y),), divergence, push, np.zeros(len(names)))


def heat(seen: Observation) -> Columns:
    names = (*(f"heat {s:g}" for s in HEAT), "noisy")
    return _linear(seen, names, lambda parts: np.cumsum(parts.heat, axis=0))


def heat_bands(seen: Observation) -> Columns:
    names = (
        f"heat {HEAT[0]:g}",
        *(f"heat {HEAT[k + 1]:g} - {HEAT[k]:g}" for k in range(len(HEAT) - 1)),
        f"noisy - heat {HEAT[-1]:g}",
    )
    return _linear(seen, names, lambda parts: parts.heat)


def bands(seen: Observation) -> Columns:
    return _linear(seen, tuple(f"band {j}" for j in range(seen.filters.n_scales)), lambda parts: parts.psi)


def _linear(seen: Observation, names: tuple[str, ...], rows: Callable[[Parts], np.ndarray]) -> Columns:
    """Columns that are filters, or sums of some."""
    probed = seen.filters.probes

    def push(a):
        return np.stack([a @ rows(parts) for parts in probed.parts])

    return Columns(names, (rows(seen.parts),), rows(probed.trace), push, np.zeros(len(names)))


# ---- wavelets ----------------------------------------------------------------------------------------------------------


def scaled(seen: Observation) -> Columns:
    return _shrunken(seen, SCALED, "scaled", gate=None)


def gated(seen: Observation) -> Columns:
    return _shrunken(seen, GATED, "gated", gate=Pilot.of(seen))


def _shrunken(seen: Observation, thresholds: tuple[float, ...], name: str, *, gate: Pilot | None) -> Columns:
    """Each scale's shrunken coefficients, gated or not, synthesized by themselves."""
    filters, probed, w = seen.filters, seen.filters.probes, seen.parts.rho
    kept, slope = zip(*(_thresholded(w, t * seen.sigma, probed.scale) for t in thresholds), strict=True)
    weights = probed.weights if gate is None else probed.weights * gate.gate
    divergence = np.stack([block_dots(weights, one) for one in slope])
    if gate is not None:
        divergence += _gated_divergence(seen, gate, kept)
    values = filters.synthesize_each(np.stack(kept if gate is None else [gate.gate * one for one in kept]))

    def push(a):
        a = a.reshape(len(thresholds), filters.n_scales, 1)
        slopes = sum(own * one for own, one in zip(a, slope, strict=True))
        moved = [slopes * parts.rho for parts in probed.parts]
        if gate is not None:
            sums = sum(own * one for own, one in zip(a, kept, strict=True))
            moved = [
                gate.gate * rows + gate.push(parts.smooth[PILOT]) * sums for rows, parts in zip(moved, probed.parts, strict=True)
            ]
        return filters.synthesize(np.stack(moved))

    names = tuple(f"{name} {t:g}, band {j}" for t in thresholds for j in range(filters.n_scales))
    return Columns(names, (values.reshape(len(names), -1),), divergence.ravel(), push, np.zeros(len(names)))


def _thresholded(rows: np.ndarray, t: float, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """h_t(rows) with thresholds t times the scale, and its slope."""
    if t == 0:
        return rows, np.broadcast_to(1.0, rows.shape)
    kept, slope = rows.copy(), np.empty_like(rows)
    apply_thresholds(kept, np.full(len(rows), t), slope, rule="james_stein", scale=scale)
    return kept, slope


def _gated_divergence(seen: Observation, gate: Pilot, kept: tuple[np.ndarray, ...]) -> np.ndarray:
    """What moving the gate adds: sum_k h_k gate'_k [rho_j Sigma (P - 11'P/n - z (Pz)'/n)]_kk / spread."""
    filters, n = seen.filters, seen.graph.n
    if gate.spread == 0:
        return np.zeros((len(kept), filters.n_scales))
    moved = filters.wavelets(seen.own * filters.pilot(gate.z))
    moved *= gate.z
    stays = float(chebyshev_values(filters.coefficients[-1:], [0.0], upper=filters.frame.lambda_upper)[0, 0])  # P 1 = stays 1
    if seen.noise.per_node is None:
        moved += stays * filters.frame.filters([0.0])
    else:
        moved += stays * filters.wavelets(seen.own)
    moved /= -n
    moved += filters.probes.cross
    moved *= STEEPNESS * gate.gate * (1 - gate.gate) / gate.spread
    return np.stack([block_dots(moved, one) for one in kept])


def adaptive(seen: Observation) -> Columns:
    """The paper's estimator with thresholds that follow the local noise, at the minimum of SURE."""
    probed = seen.filters.probes
    t = sure_thresholds(seen.parts.rho, probed.weights, sigma=seen.sigma, scaled=probed.scale)
    return _whole(seen, "adaptive", np.full(len(t), 2.0), t)


def betas(seen: Observation) -> Columns:
    """The same with the exponent of the rule chosen by SURE too, scale by scale."""
    probed = seen.filters.probes
    return _whole(seen, "betas", *sure_betas(seen.parts.rho, probed.weights, sigma=seen.sigma, scaled=probed.scale))


def _whole(seen: Observation, name: str, exponents: np.ndarray, t: np.ndarray) -> Columns:
    """One column: all scales thresholded, and synthesized together."""
    filters, probed = seen.filters, seen.filters.probes
    kept = seen.parts.rho.copy()
    slope = np.empty_like(kept)
    apply_thresholds(kept, t, slope, rule="power", beta=exponents, scale=probed.scale)

    def push(a):
        return a[0] * filters.synthesize(np.stack([slope * parts.rho for parts in probed.parts]))

    divergence, tuned = block_dots(probed.weights, slope).sum()[None], np.full(1, TUNING * len(t))
    return Columns(
        (name,), (filters.synthesize(kept[None]),), divergence, push, tuned, chosen={"thresholds": t, "betas": exponents}
    )


def blocks(seen: Observation) -> Columns:
    """Block thresholding: every size of blocks at thresholds of least SURE, averaged by it."""
    filters, probed, w = seen.filters, seen.filters.probes, seen.parts.rho
    bands = np.stack([parts.rho for parts in probed.parts])
    noise = seen.noise
    found = block_mixture(filters.frame, w, bands, probed.weights, noise.variance, scaled=probed.scale, sigma=noise.per_node)

    def push(a):
        moved = np.zeros_like(bands)
        for size, t, share in zip(SIZES, found.thresholds, found.shares, strict=True):
            own = block_partition(seen.graph, size=size)
            moved += share[:, None] * block_jacobian(w, own, t, bands, scale=probed.scale)
        return a[0] * filters.synthesize(moved)

    chosen = {"thresholds": found.thresholds, "sizes": np.array(SIZES), "shares": found.shares}
    values, tuned = (filters.synthesize(found.bands[None]),), np.full(1, TUNING * len(w))
    return Columns(("blocks",), values, found.divergence.sum()[None], push, tuned, chosen=chosen)


# ---- nodes -------------------------------------------------------------------------------------------------------------


def spikes(seen: Observation) -> Columns:
    """What stands out of its surroundings: h_t(y - P y) for no smoother and for each of them."""
    probed = seen.filters.probes
    rest = np.concatenate([seen.y[None], seen.y - seen.parts.smooth])
    scale = np.concatenate([np.sqrt(seen.own)[None], probed.spread])
    left = np.concatenate([seen.own[None], probed.left])
    kept, slope = zip(*(_thresholded(rest, t * seen.sigma, scale) for t in SPIKES), strict=True)

    def push(a):
        slopes = sum(own * one for own, one in zip(a.reshape(len(SPIKES), len(rest), 1), slope, strict=True))
        moved = [np.concatenate([eps[None], eps - parts.smooth]) for eps, parts in zip(probed.eps, probed.parts, strict=True)]
        return np.stack([np.sum(slopes * rows, axis=0) for rows in moved])

    names = tuple(f"spikes {t:g}, smoother {a:g}" for t in SPIKES for a in (0, *SMOOTHERS))
    return Columns(names, kept, np.concatenate([block_dots(left, one) for one in slope]), push, np.zeros(len(names)))


# ---- pieces ------------------------------------------------------------------------------------------------------------


def dfs(seen: Observation) -> Columns:
    """The fused lasso along depth-first orders, averaged over them."""
    orders = depth_first_orders(seen.graph, ORDERS)
    penalties = seen.typical_sigma * np.array(DFS_PENALTIES)
    values = np.zeros((len(penalties), seen.graph.n))
    labels: list[list[np.ndarray]] = [[] for _ in penalties]
    for order in orders:
        for k, chain in enumerate(fused_lasso_path(seen.y[order], penalties)):
            values[k, order] += chain / len(orders)
            label = np.empty(len(order), dtype=np.int64)
            label[order] = np.cumsum(np.diff(chain, prepend=chain[:1]) != 0)
            labels[k].append(label)
    return _pieces(seen, tuple(f"dfs {p:g}" for p in DFS_PENALTIES), values, labels)


def tv(seen: Observation) -> Columns:
    """Total variation on the graph."""
    graph = seen.graph
    arcs = graph.memo.setdefault("arcs", Arcs.of(graph))
    unit = graph.n_edges / float(graph.adjacency.data.sum() / 2) if graph.n_edges else 1.0
    found = [minimise(graph, arcs, seen.y, seen.typical_sigma * unit * p) for p in TV_PENALTIES]
    labels = [[one.labels] for one in found]
    return _pieces(seen, tuple(f"tv {p:g}" for p in TV_PENALTIES), np.stack([one.x for one in found]), labels)


def _pieces(seen: Observation, names: tuple[str, ...], values: np.ndarray, labels: list[list[np.ndarray]]) -> Columns:
    """Means of estimates that are constant on pieces: each is locally the mean of y over its pieces, plus a constant."""
    sizes = [[np.bincount(label) for label in some] for some in labels]
    divergence = [
        np.mean([block_sum(seen.own / size[label]) for label, size in zip(some, count, strict=True)])
        for some, count in zip(labels, sizes, strict=True)
    ]

    def averaged(x, k):
        parts = [(np.bincount(label, x) / size)[label] for label, size in zip(labels[k], sizes[k], strict=True)]
        return np.mean(parts, axis=0)

    def push(a):
        return np.stack([sum(a[k] * averaged(eps, k) for k in np.flatnonzero(a)) for eps in seen.filters.probes.eps])

    return Columns(names, (values,), np.array(divergence), push, np.zeros(len(names)))


def depth_first_orders(graph: Graph, count: int) -> np.ndarray:
    """Random depth-first orders (count, n), the same each time; kept with the graph."""
    key = ("depth-first orders", count)
    if key not in graph.memo:
        graph.memo[key] = np.stack([depth_first_order(graph, seed=seed) for seed in range(count)])
    return graph.memo[key]


GROUPS: dict[Group, Callable[[Observation], Columns]] = {
    "constant": constant, "heat": heat, "heat_bands": heat_bands, "bands": bands, "scaled": scaled, "gated": gated,
    "spikes": spikes, "adaptive": adaptive, "betas": betas, "blocks": blocks, "dfs": dfs, "tv": tv,
}  # fmt: skip
