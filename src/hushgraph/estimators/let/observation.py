"""One noisy signal with the filters of its graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushgraph._arrays import Copying, on_host
from hushgraph.estimators.baselines.total_variation import Arcs, TotalVariation, minimise
from hushgraph.estimators.let.filters import Filters, Parts
from hushgraph.graphs import ComponentMeans, Graph
from hushgraph.wavelets import Noise, rowwise_spectral_moments

TV_PENALTIES = (0.35, 0.7, 1.2)  # in noise levels


@dataclass(frozen=True, eq=False)
class Observation:
    """One noisy signal (n,) with the filters of its graph. What several groups of candidates need is computed once.

    `prediction` is what guides say about the signal, for local regression on it; it was taken off `y` already.
    """

    filters: Filters
    y: np.ndarray
    noise: Noise
    prediction: np.ndarray | None = None

    @property
    def graph(self) -> Graph:
        """The graph of the signal."""
        return self.filters.graph

    @property
    def sigma(self) -> float:
        """The noise level that thresholds multiply. With a sigma per node it is 1, since the local scales hold it."""
        return float(np.sqrt(self.noise.variance))

    @property
    def typical_sigma(self) -> float:
        """The root of the mean variance of the noise."""
        return float(np.sqrt(self.noise.mean(self.graph.n)))

    @cached_property
    def node_variance(self) -> np.ndarray:
        """Variance of the noise at each node, in units of `noise.variance`."""
        return self.noise.weigh(np.ones_like(self.y)) / self.noise.variance

    def mean_variances(self, groups: ComponentMeans) -> np.ndarray:
        """Return the mean of `node_variance` over each group, 0 for empty groups, on the host."""
        if self.noise.per_node is None:
            return np.where(groups.sizes > 0, 1.0, 0.0)
        return on_host(groups.means(self.node_variance))

    @cached_property
    def _moments(self) -> dict[int, Copying]:
        return {}

    def moments(self, degree: int) -> Copying:
        """Return the moments of the signal less its means over components, up to twice this degree; a GPU begins at the first call."""
        if degree not in self._moments:
            rest = ComponentMeans.cached(self.graph, self.y).without_means(self.y[None])
            self._moments[degree] = Copying(rowwise_spectral_moments(self.filters.frame, rest, degree))
        return self._moments[degree]

    @cached_property
    def parts(self) -> Parts:
        """The signal through all filters."""
        return self.filters.apply(self.y)

    @property
    def unit_weight(self) -> float:
        """The factor that makes the mean weight of edges 1."""
        return self.graph.n_edges / float(self.graph.adjacency.data.sum() / 2) if self.graph.n_edges else 1.0

    @cached_property
    def total_variations(self) -> list[TotalVariation]:
        """Total variation on the graph, for each penalty."""
        graph, unit = self.graph, self.typical_sigma * self.unit_weight
        arcs = Arcs.cached(graph)
        return [minimise(graph, arcs, self.y, unit * penalty) for penalty in TV_PENALTIES]
