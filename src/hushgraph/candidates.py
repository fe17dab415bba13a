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
    gated        rho_j(L) [gate h_t(rho_j(L) y)]                    see `gated.py`
    spikes       h_t(y - P y)                                       sum_i sigma_i^2 (1 - P_ii) slope
    adaptive     the paper's estimator with local thresholds        sum_ij weights_j(i) slope
    betas        the same, with an exponent chosen for each scale   sum_ij weights_j(i) slope
    blocks       block thresholds, averaged over sizes of blocks    see `blocks.py`
    dfs          mean over depth-first orders of the fused lasso    pieces
    tv           total variation on the graph                       pieces
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from hushgraph.arrays import beside, on_device, on_host
from hushgraph.betas import sure_betas
from hushgraph.blocks import SIZES, block_jacobian, block_mixture
from hushgraph.chains import depth_first_order, fused_lasso_path
from hushgraph.columns import Columns, Observation
from hushgraph.core import _loops
from hushgraph.filters import HEAT, SMOOTHERS, Parts
from hushgraph.gated import Gate, add_moved, shrunken
from hushgraph.graph import Graph
from hushgraph.neighbourhoods import block_partition
from hushgraph.progress import reached
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
TUNING = 2.0  # degrees of freedom that a threshold chosen by SURE costs


def candidates(seen: Observation, groups: tuple[Group, ...]) -> Columns:
    """The columns of these groups, one after the other."""
    parts = []
    for k, group in enumerate(groups):
        reached(k / len(groups), "candidates")
        parts.append(GROUPS[group](seen))
    ends = np.cumsum([len(part.names) for part in parts])
    places: dict[str, np.ndarray] = {
        group: np.arange(end - len(part.names), end) for group, part, end in zip(groups, parts, ends, strict=True)
    }

    def add(a, moved):
        for group, part in zip(groups, parts, strict=True):
            if np.any(a[places[group]]):
                part.add(a[places[group]], moved)

    names = tuple(name for part in parts for name in part.names)
    values = tuple(rows for part in parts for rows in part.values)
    chosen = {f"{group}: {name}": found for group, part in zip(groups, parts, strict=True) for name, found in part.chosen.items()}
    divergence, tuned = (np.concatenate([getattr(part, name) for part in parts]) for name in ("divergence", "tuned"))
    return Columns(seen.filters, names, values, divergence, add, tuned, places, chosen)


# ---- linear ------------------------------------------------------------------------------------------------------------


class _Members(NamedTuple):
    """Nodes by the mean they share: the group of each, the column of each group and of each node, and how large groups are.

    On a GPU also nodes group after group, and the last of each group.
    """

    group: Any
    slot: np.ndarray
    column: Any
    sizes: np.ndarray
    order: Any = None
    last: Any = None

    @classmethod
    def of(cls, graph: Graph) -> _Members:
        """Each large component is a group, with a column of its own for the largest; all small ones are a group together."""
        label = graph.components
        sizes = np.bincount(label)
        order, small = np.argsort(-sizes, kind="stable"), sizes < LARGE
        slot = np.empty(len(sizes) + 1, dtype=np.int64)  # the last group is all small components together
        slot[order] = np.minimum(np.arange(len(sizes)), MOST_CONSTANTS)
        slot[-1] = slot[:-1][~small].max(initial=-1) + 1 if small.any() else 0
        group = np.where(small, len(sizes), np.arange(len(sizes)))[label]
        return cls(group, slot, slot[group], np.bincount(group, minlength=len(slot)))

    @classmethod
    def kept(cls, graph: Graph, like) -> _Members:
        """The same, kept with the graph; beside `like`."""
        if "groups of means" not in graph.memo:
            graph.memo["groups of means"] = cls.of(graph)
        if on_device(like) and "groups of means on device" not in graph.memo:
            here = graph.memo["groups of means"]
            order, last = np.argsort(here.group, kind="stable"), np.maximum(np.cumsum(here.sizes) - 1, 0)
            arrays = (beside(part, like) for part in (here.group, here.column, order, last))
            graph.memo["groups of means on device"] = here._replace(
                **dict(zip(("group", "column", "order", "last"), arrays, strict=True))
            )
        return graph.memo[f"groups of means{' on device' * on_device(like)}"]

    def means(self, x) -> np.ndarray:
        """Of a signal over each group."""
        if on_device(x):
            running = np.where(np.cumsum(self.sizes) > 0, on_host(np.cumsum(x[self.order])[self.last]), 0.0)
            sums = np.diff(running, prepend=0.0)
        else:
            sums = np.bincount(self.group, x, minlength=len(self.sizes))
        return sums / np.maximum(self.sizes, 1)


def constant(seen: Observation) -> Columns:
    """A column for the mean of each large component, the largest first; those after them share one, and all small ones together."""
    members = _Members.kept(seen.graph, seen.y)
    used = members.sizes > 0
    count = int(members.slot[used].max()) + 1
    spread = beside(members.means(seen.y), seen.y)[members.group]
    if on_device(spread):
        values = np.where(beside(np.arange(count)[:, None], spread) == members.column, spread, 0.0)
    else:
        values = np.zeros((count, seen.graph.n))
        _loops.spread_means(members.column, spread, values)

    def add(a, moved):
        shares = a[np.minimum(members.slot, len(a) - 1)]
        parts = [beside(shares * members.means(eps), eps)[members.group] for eps in seen.filters.probes.eps]
        moved.nodes = moved.nodes + np.stack(parts)

    names = tuple(f"constant {k + 1}" for k in range(count))
    divergence = np.bincount(members.slot[used], members.means(seen.own)[used], minlength=count)
    return Columns(seen.filters, names, (values,), divergence, add, np.zeros(count))


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
    filters = seen.filters

    def add(a, moved):
        moved.linear = moved.linear + a @ rows(filters.split(filters.coefficients))

    return Columns(filters, names, (rows(seen.parts),), rows(filters.split(filters.probes.trace)), add, np.zeros(len(names)))


# ---- wavelets ----------------------------------------------------------------------------------------------------------


def scaled(seen: Observation) -> Columns:
    return _shrunken(seen, SCALED, "scaled", gate=None)


def gated(seen: Observation) -> Columns:
    return _shrunken(seen, GATED, "gated", gate=Gate.of(seen))


def _shrunken(seen: Observation, thresholds: tuple[float, ...], name: str, *, gate: Gate | None) -> Columns:
    """Each scale's shrunken coefficients, gated or not, synthesized by themselves."""
    filters, probed, w, t = seen.filters, seen.filters.probes, seen.parts.rho, seen.sigma * np.array(thresholds)
    moves = None if gate is None else gate.moves(probed.cross, probed.rho)
    kept, divergence = shrunken(w, probed.scale, t, probed.weights, gate, moves)
    values = filters.synthesize_each(kept)

    def add(a, moved):
        add_moved(w, probed.scale, t, a.reshape(len(t), -1), probed.rho, moved.bands, gate)

    names = tuple(f"{name} {t:g}, band {j}" for t in thresholds for j in range(filters.n_scales))
    return Columns(filters, names, (values.reshape(len(names), -1),), divergence.ravel(), add, np.zeros(len(names)))


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

    def add(a, moved):
        moved.bands[:] += a[0] * slope * probed.rho

    divergence, tuned = block_dots(probed.weights, slope).sum()[None], np.full(1, TUNING * len(t))
    chosen = {"thresholds": t, "betas": exponents}
    return Columns(filters, (name,), (filters.synthesize(kept[None]),), divergence, add, tuned, chosen=chosen)


def blocks(seen: Observation) -> Columns:
    """Block thresholding: every size of blocks at thresholds of least SURE, averaged by it."""
    filters, probed, w = seen.filters, seen.filters.probes, seen.parts.rho
    noise, rho = seen.noise, probed.rho
    found = block_mixture(filters.frame, w, rho, probed.weights, noise.variance, scaled=probed.scale, sigma=noise.per_node)

    def add(a, moved):
        for size, t, share in zip(SIZES, found.thresholds, found.shares, strict=True):
            own = block_partition(seen.graph, size=size)
            moved.bands[:] += a[0] * share[:, None] * block_jacobian(w, own, t, rho, scale=probed.scale)

    chosen = {"thresholds": found.thresholds, "sizes": np.array(SIZES), "shares": found.shares}
    values, tuned = (filters.synthesize(found.bands[None]),), np.full(1, TUNING * len(w))
    return Columns(filters, ("blocks",), values, found.divergence.sum()[None], add, tuned, chosen=chosen)


# ---- nodes -------------------------------------------------------------------------------------------------------------


def spikes(seen: Observation) -> Columns:
    """What stands out of its surroundings: h_t(y - P y) for no smoother and for each of them."""
    probed, t = seen.filters.probes, seen.sigma * np.array(SPIKES)
    rest = np.concatenate([seen.y[None], seen.y - seen.parts.smooth])
    scale = np.concatenate([np.sqrt(seen.own)[None], probed.spread])
    kept, divergence = shrunken(rest, scale, t, np.concatenate([seen.own[None], probed.left]))

    def add(a, moved):
        rows = np.concatenate([probed.eps[:, None], probed.eps[:, None] - probed.smooth], axis=1)
        out = np.zeros_like(rows[:, :1])
        add_moved(rest, scale, t, a.reshape(len(t), -1), rows, out)
        moved.nodes = moved.nodes + out[:, 0]

    names = tuple(f"spikes {t:g}, smoother {a:g}" for t in SPIKES for a in (0, *SMOOTHERS))
    return Columns(seen.filters, names, (kept.reshape(len(names), -1),), divergence.ravel(), add, np.zeros(len(names)))


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
    if "arcs" not in graph.memo:
        graph.memo["arcs"] = Arcs.of(graph)
    arcs = graph.memo["arcs"]
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

    def add(a, moved):
        used = np.flatnonzero(a)
        moved.nodes = moved.nodes + np.stack([sum(a[k] * averaged(eps, k) for k in used) for eps in seen.filters.probes.eps])

    return Columns(seen.filters, names, (values,), np.array(divergence), add, np.zeros(len(names)))


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
