"""Tables of calls that must be refused, and the small graph, signal and frame that the calls share.

A check that many functions use is tried with all kinds of bad values on one of them; every other function has one or two bad values per
argument, which prove that it uses the check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._errors import HushgraphError

nan, inf = np.nan, np.inf


@dataclass(frozen=True)
class Bad:
    """A call that must be refused: with an error of exactly this class, whose message holds this text."""

    call: Callable[[], object]
    error: type[HushgraphError]
    says: str

    def is_refused(self) -> None:
        with pytest.raises(self.error) as caught:
            self.call()
        assert type(caught.value) is self.error, f"{self.error.__name__} expected; got {caught.value!r}"
        assert self.says in str(caught.value), f"{self.says!r} expected; got {str(caught.value)!r}"


def each_of(table: dict[str, Bad]):
    """The test runs once for each row of the table, and carries the row's name."""
    return pytest.mark.parametrize("bad", list(table.values()), ids=list(table))


def each_value(name: str, values: Iterable[object]):
    """The test runs once for each value of that argument, and carries the value's text."""
    return pytest.mark.parametrize(name, values, ids=lambda value: " ".join(repr(value).split())[:40])


# ---- what the calls share ------------------------------------------------------------------------------------------

grid = hg.datasets.grid(4, 5)
turned = hg.datasets.grid(5, 4)  # as many nodes as grid, other edges
path = hg.Graph.from_edges([(0, 1), (1, 2)])
named = hg.Graph.from_edges([(0, 1), (1, 2)], labels=["a", "b", "c"])
nothing = hg.Graph.from_edges([], n=0)
point = hg.Graph.from_edges([], n=1)
dust = hg.Graph.from_edges([], n=5)

y = np.random.default_rng(0).normal(5, 2, 20)
frame = hg.chebyshev_frame(grid, degree=20)
exact = hg.exact_frame(grid)
F = hg.analyze(frame, y)
truth = hg.analyze(frame, np.repeat([3.0, 7.0], 10))
W = hg.monte_carlo_weights(frame, n_probes=4)


def noisy(**changes) -> hg.Noisy:
    """The noisy signal of the grid, with some fields changed."""
    return hg.Noisy(**{"values": y, "sigma": 1.0, "kind": "measurement", "graph_hash": grid.hash, **changes})
