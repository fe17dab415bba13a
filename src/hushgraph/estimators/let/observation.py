"""One noisy signal with the filters of its graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushgraph.estimators.baselines.total_variation import Arcs, TotalVariation, minimise
from hushgraph.estimators.let.filters import Filters, Parts
from hushgraph.graphs import Graph
from hushgraph.wavelets import Noise

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
        arcs = graph.cached("arcs", lambda: Arcs.of(graph))
        return [minimise(graph, arcs, self.y, unit * penalty) for penalty in TV_PENALTIES]
