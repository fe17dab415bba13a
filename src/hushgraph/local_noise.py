"""How noisy the wavelet coefficients are around each node: Monte-Carlo weights regressed on the degrees there.

A threshold that follows the noise needs the weights of every node, and those of few probes are far too noisy for that. They depend
mostly on the degree of the node and those of its neighbours, so a regression on a dozen such numbers keeps what is real.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushgraph.checks import LARGEST, checked_real_array, checked_sigma
from hushgraph.graph import Graph, checked_graph
from hushgraph.sums import block_product_of, block_sum, blocks


def smooth_weights(graph: Graph, weights: np.ndarray, *, sigma=None) -> np.ndarray:
    """Weights regressed on local degree statistics, within a factor 4 of the mean of their scale.

    For threshold *scales* only: raw weights of few probes are far too noisy there. SURE itself needs the raw ones.
    `sigma` is the standard deviation per node when the weights hold it: they then follow its local mean square.
    """
    weights = checked_real_array("weights", weights)
    if weights.ndim != 2 or weights.shape[1] != checked_graph(graph).n:
        msg = f"weights must have shape (n_scales, {graph.n}), as monte_carlo_weights returns them; got {weights.shape}"
        raise ValueError(msg)
    checked_weight_size(weights)
    if graph.n == 0:
        return weights.astype(np.float64)
    own = None if sigma is None else np.broadcast_to(checked_sigma(sigma, graph.n), graph.n) ** 2
    around = _Around.of(graph, own)
    unit = np.maximum(np.max([np.abs(around.features(nodes)).max(axis=0) for nodes in blocks(graph.n)], axis=0), 1e-300)

    def rows(nodes):
        features = around.features(nodes) / unit
        return features, np.concatenate([features, weights[:, nodes].T], axis=1)

    both = block_product_of(graph.n, rows)  # a dozen columns: normal equations are accurate enough, and fast
    fitted = np.linalg.lstsq(both[:, : len(unit)], both[:, len(unit) :], rcond=1e-12)[0].T
    usual = block_sum(weights.T) / block_sum(around.local)
    smooth = np.empty(weights.shape)
    for nodes in blocks(graph.n):
        middle = usual[:, None] * around.local[nodes]
        np.clip(fitted @ (around.features(nodes) / unit).T, middle / 4, middle * 4, out=smooth[:, nodes])
    return smooth


@dataclass(frozen=True, eq=False)
class _Around:
    """What a node's degree and those around it say: columns for a regression, made block by block."""

    degree: np.ndarray
    near: np.ndarray  # mean degree of the neighbours
    inverse_near: np.ndarray  # mean of their 1 / degree
    second: np.ndarray  # mean of their `near`
    isolated: np.ndarray
    local: np.ndarray  # noise at the node and around it
    noise: list[np.ndarray]

    @classmethod
    def of(cls, graph: Graph, own: np.ndarray | None) -> _Around:
        """`own` is the variance of the noise at each node, None if it is the same everywhere."""
        matrix, degree, isolated = graph.adjacency, graph.degrees, graph.degrees == 0
        d = np.maximum(degree, 1e-12 * (degree.max() or 1.0))
        inverse = 1 / np.where(isolated, 1.0, degree)

        def walk(x):
            return (matrix @ x) * inverse

        near = walk(d)
        if own is None:
            local, noise = np.ones(graph.n), [np.ones(graph.n)]
        else:  # fine wavelets see their node, coarse ones its surroundings
            ring = walk(own)
            local, noise = np.where(isolated, own, (own + ring) / 2), [own, ring, walk(ring)]
        return cls(d, near, walk(1 / d), walk(near), isolated, local, noise)

    def features(self, nodes: slice) -> np.ndarray:
        """(nodes, columns)."""
        d, near, inverse_near = self.degree[nodes], self.near[nodes], self.inverse_near[nodes]
        columns = [np.ones_like(d), d, np.sqrt(d), 1 / d, near, inverse_near, self.second[nodes]]
        columns += [d * near, near / d, d * inverse_near, near**2]
        alone = self.isolated[nodes]
        columns = [np.where(alone, 0.0, self.local[nodes] * column) for column in columns]
        columns += [part[nodes] for part in self.noise] if len(self.noise) > 1 else []
        return np.stack([*columns, alone * self.noise[0][nodes]], axis=1)


def checked_weight_size(weights: np.ndarray) -> np.ndarray:
    """Weights may hold variances, so they may be as large as squares."""
    top = max(-float(weights.min(initial=0)), float(weights.max(initial=0)))
    if not top <= LARGEST**2.1:
        bad = int((~np.isfinite(weights)).sum())
        msg = (
            f"weights has {bad} entries that are NaN or infinite"
            if bad
            else f"weights must not be so large; the largest is {top:g}"
        )
        raise ValueError(msg)
    return weights
