"""One noisy signal with the filters of its graph, and columns: estimates of it with their divergences, ready to be combined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hushgraph.arrays import namespace
from hushgraph.filters import Filters, Parts
from hushgraph.graph import Graph
from hushgraph.sgwt import Noise
from hushgraph.sums import block_products_of, sum_of_rows


class Moved:
    """A combination's derivative along the kept probes while it adds up: nodes + sum_j rho_j(L) bands_j + polynomial(L) eps."""

    def __init__(self, filters: Filters):
        self.filters = filters
        self.nodes: Any = 0.0
        self.linear: np.ndarray | float = 0.0  # coefficients of the polynomial
        self._bands: np.ndarray | None = None

    @property
    def bands(self) -> np.ndarray:
        """(probes, n_scales, n), to be added to."""
        if self._bands is None:
            eps = self.filters.probes.eps
            self._bands = namespace(eps).zeros((len(eps), self.filters.n_scales + 1, eps.shape[1]))
            self._bands[:, -1] = eps
        return self._bands[:, :-1]

    def total(self) -> np.ndarray:
        """(probes, n)."""
        filters, eps = self.filters, self.filters.probes.eps
        linear = np.broadcast_to(self.linear, filters.coefficients.shape[1])
        if self._bands is not None:
            moved = filters.synthesize(self._bands, linear)
        elif np.any(linear):
            moved = filters.polynomial(linear, eps)
        else:
            moved = np.zeros_like(eps)
        return moved + self.nodes


@dataclass(frozen=True, eq=False)
class Columns:
    """Candidates with names and divergences; `add(a, moved)` adds sum_k a_k J_k eps of the kept probes.

    The columns are rows of several arrays (k_i, n), one after the other: they are many, and large graphs have no room for copies.
    """

    filters: Filters = field(repr=False)
    names: tuple[str, ...]
    values: tuple[np.ndarray, ...] = field(repr=False)
    divergence: np.ndarray
    add: Callable[[np.ndarray, Moved], None] = field(repr=False)
    tuned: np.ndarray  # degrees of freedom spent on choosing thresholds by SURE, on top of the divergence at fixed ones
    places: dict[str, np.ndarray] = field(default_factory=dict, repr=False)  # which columns belong to each group
    chosen: dict[str, np.ndarray] = field(default_factory=dict, repr=False)  # what SURE chose inside them: thresholds and the like

    def push(self, a: np.ndarray) -> np.ndarray:
        """sum_k a_k J_k eps of the kept probes, (probes, n)."""
        moved = Moved(self.filters)
        self.add(a, moved)
        return moved.total()

    def of(self, groups: tuple[str, ...]) -> np.ndarray:
        """Numbers of the columns of these groups."""
        return np.concatenate([self.places[group] for group in groups])

    def combined(self, a: np.ndarray) -> np.ndarray:
        """sum_k a_k F_k."""
        cuts = np.cumsum([len(part) for part in self.values])[:-1]
        signal = np.zeros_like(self.values[0][0])
        for own, part in zip(np.split(a, cuts), self.values, strict=True):
            signal += sum_of_rows(own, part)
        return signal

    def products(self, y: np.ndarray) -> np.ndarray:
        """All inner products of the columns and y, which comes last: (k + 1, k + 1)."""

        def rows(nodes):
            return np.concatenate([*(part[:, nodes] for part in self.values), y[None, nodes]]), None

        return block_products_of(len(y), rows)


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
        return self.noise.weigh(np.ones_like(self.y)) / self.noise.variance

    @cached_property
    def parts(self) -> Parts:
        return self.filters.apply(self.y)
