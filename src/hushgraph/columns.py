"""One noisy signal with the filters of its graph, and columns: estimates of it with their divergences, ready to be combined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hushgraph.filters import Filters, Parts
from hushgraph.graph import Graph
from hushgraph.sgwt import Noise
from hushgraph.sums import block_product_of

Push = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Columns:
    """Candidates with names and divergences; `push(a)` is sum_k a_k J_k eps of the first few probes, (probes, n).

    The columns are rows of several arrays (k_i, n), one after the other: they are many, and large graphs have no room for copies.
    """

    names: tuple[str, ...]
    values: tuple[np.ndarray, ...] = field(repr=False)
    divergence: np.ndarray
    push: Push = field(repr=False)
    tuned: np.ndarray  # degrees of freedom spent on choosing thresholds by SURE, on top of the divergence at fixed ones
    places: dict[str, np.ndarray] = field(default_factory=dict, repr=False)  # which columns belong to each group
    chosen: dict[str, np.ndarray] = field(default_factory=dict, repr=False)  # what SURE chose inside them: thresholds and the like

    def of(self, groups: tuple[str, ...]) -> np.ndarray:
        """Numbers of the columns of these groups."""
        return np.concatenate([self.places[group] for group in groups])

    def combined(self, a: np.ndarray) -> np.ndarray:
        """sum_k a_k F_k."""
        cuts = np.cumsum([len(part) for part in self.values])[:-1]
        return np.sum([own @ part for own, part in zip(np.split(a, cuts), self.values, strict=True)], axis=0)

    def products(self, y: np.ndarray) -> np.ndarray:
        """All inner products of the columns and y, which comes last: (k + 1, k + 1)."""

        def rows(nodes):
            stacked = np.concatenate([*(part[:, nodes] for part in self.values), y[None, nodes]]).T
            return stacked, stacked

        return block_product_of(len(y), rows)


@dataclass(frozen=True, eq=False)
class Observation:
    """One noisy signal (n,) with the filters of its graph; what several groups need is worked out once."""

    filters: Filters
    y: np.ndarray
    noise: Noise

    @property
    def graph(self) -> Graph:
        return self.filters.graph

    @property
    def sigma(self) -> float:
        """The noise level that thresholds multiply; with a size per node it is in the local scales already."""
        return float(np.sqrt(self.noise.variance))

    @property
    def typical_sigma(self) -> float:
        return float(np.sqrt(self.noise.mean(self.graph.n)))

    @cached_property
    def own(self) -> np.ndarray:
        """Variance of the noise at each node, in units of `noise.variance`."""
        return self.noise.weigh(np.ones(self.graph.n)) / self.noise.variance

    @cached_property
    def parts(self) -> Parts:
        return self.filters.apply(self.y)
