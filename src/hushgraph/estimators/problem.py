"""The problem that `denoise` solves: a graph, noisy values, their noise, missing values and how columns belong together.

Shapes and labels are handled here and nowhere else. The estimators work on `planes`, where every signal is a row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from hushgraph._arrays import namespace, on_device, placed_like
from hushgraph._errors import InputError, Sentence
from hushgraph._validation import LARGEST_FLOAT32, checked_sigma, choose
from hushgraph.estimators.guides.reading import Guide
from hushgraph.estimators.harmonic import harmonic_values
from hushgraph.estimators.result import per_signal
from hushgraph.graphs import Graph, Noisy, is_labelled
from hushgraph.wavelets import Noise

Missing = Literal["error", "drop", "fill"]
Direction = Literal["all", "past"]  # by which maps of a series each one is guided
ColumnTies = Literal["separate", "path", "series"]
MISSING_HINT = Sentence("clean them, or see {missing='drop'} and 'fill'")
COLUMN_WEIGHTS = (0.25, 4.0, 64.0)  # of the edges between neighbouring columns; columns="path" takes the mean of the three


@dataclass(frozen=True, eq=False)
class Problem:
    """Values (n,) or (n, m) on a graph, NaN where one is missing, and the noise they have; `sigma` is None until it is estimated.

    `column_graphs` are the graphs that join the columns, each to be tried; none when each column stands for itself. In a `series` each
    column is guided by others too. `guides` are public maps without noise and gaps, on all nodes.
    """

    graph: Graph
    values: np.ndarray
    sigma: Any
    missing: Missing = "error"
    column_graphs: tuple[Graph, ...] = ()
    series: Direction | None = None
    guides: tuple[Guide, ...] = ()

    @classmethod
    def of(cls, graph: Graph, noisy: Any, *, sigma: Any, missing: Missing, columns: ColumnTies | Graph) -> Problem:
        """Return the problem of what the caller passes, or raise an InputError."""
        values, sigma = _values_and_sigma(graph, noisy, sigma, missing)
        graphs = _column_graphs(columns, values)
        return cls(graph, values, sigma, missing, graphs, series="all" if columns == "series" and graphs else None)

    @cached_property
    def noise(self) -> Noise:
        """The noise of a problem whose sigma is known."""
        return Noise.of(self.sigma)

    @cached_property
    def planes(self) -> np.ndarray:
        """The signals as rows (m, n), each contiguous."""
        return namespace(self.values).ascontiguousarray(self.values[None] if self.values.ndim == 1 else self.values.T)

    def per_signal(self, values: Any) -> Any:
        """Return one number for one signal, an array for several."""
        return per_signal(values, self.values.ndim)

    @cached_property
    def is_known(self) -> np.ndarray | None:
        """Which nodes have a value in every column; None for all."""
        if on_device(self.values):
            return None
        known = ~np.isnan(self.values).reshape(len(self.values), -1).any(axis=1)
        if not known.any():
            msg = "the signal has no value at all: every node is missing in at least one column"
            raise InputError(msg)
        return None if known.all() else known

    def at_known_nodes(self, known: np.ndarray) -> Problem:
        """Return the problem on the subgraph of the nodes that have values."""
        sigma = self.sigma[known] if isinstance(self.sigma, np.ndarray) else self.sigma
        part = self.graph.cached("nodes with values", lambda: self.graph.subgraph(known), version=known.tobytes())
        guides = tuple(replace(guide, values=guide.values[known]) for guide in self.guides)
        return replace(self, graph=part, values=self.values[known], sigma=sigma, guides=guides)

    def on_product(self, product: Graph) -> Problem:
        """Return the problem of all columns as one signal on the product of the graph with one of the column graphs."""
        values = namespace(self.values).ascontiguousarray(self.values).ravel()
        sigma = self.sigma.repeat(self.values.shape[1]) if np.ndim(self.sigma) == 1 else self.sigma  # the same in all columns
        sigma = sigma.ravel() if np.ndim(sigma) == 2 else sigma  # one for each value
        return replace(self, graph=product, values=values, sigma=sigma, column_graphs=(), series=None, guides=())

    def completed(self, signal: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return the signal of the known nodes on all nodes: NaN elsewhere, or harmonic values with missing="fill"."""
        whole = np.full_like(self.values, np.nan)
        whole[known] = signal
        if self.missing == "fill":
            whole[~known] = harmonic_values(self.graph, whole, known)
        return whole


def _column_graphs(columns: ColumnTies | Graph, values: np.ndarray) -> tuple[Graph, ...]:
    m = values.shape[1] if values.ndim == 2 else 1
    if isinstance(columns, Graph):
        if values.ndim != 2 or columns.n != m:
            msg = f"columns= needs a graph with a node per column; got {columns.n} nodes for values of shape {values.shape}"
            raise InputError(msg)
        return (columns,)
    if choose("columns", columns, get_args(ColumnTies)) == "separate" or m == 1:
        return ()
    row = np.arange(m - 1)
    pairs = np.stack([row, row + 1], axis=1)
    return tuple(Graph.from_edges(pairs, n=m, weights=np.full(m - 1, weight)) for weight in COLUMN_WEIGHTS)


def _values_and_sigma(graph: Graph, noisy: Any, sigma: Any, missing: Missing) -> tuple[np.ndarray, Any]:
    if graph.n == 0:
        msg = "the graph has no nodes: there is nothing to denoise"
        raise InputError(msg)
    if isinstance(noisy, Noisy):
        noisy, sigma = noisy.opened(graph, sigma)
    values = graph.aligned("signal", noisy, missing_ok=missing != "error", hint=MISSING_HINT)
    if is_labelled(sigma):
        sigma = graph.aligned("sigma", sigma, one=True)
    if missing != "error" and np.shape(sigma) == values.shape[:1] and np.asarray(sigma).dtype.kind == "f":
        lost = np.isnan(values).reshape(len(values), -1).any(axis=1)
        sigma = np.where(lost & np.isnan(sigma), 1.0, sigma)  # the noise of a missing value does not matter
    sigma = None if sigma is None else checked_sigma(sigma, graph.n)
    sigma = placed_like(sigma, values) if np.ndim(sigma) else sigma
    if sigma is not None and values.dtype == np.float32 and np.max(sigma) > LARGEST_FLOAT32:
        msg = "{sigma} must be at most {:g} in size for a signal of float32; got {:g}; use float64, or rescale both"
        raise InputError(Sentence(msg, LARGEST_FLOAT32, np.max(sigma)))
    return values, sigma
