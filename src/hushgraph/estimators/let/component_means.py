"""The means of a signal over the components of a graph: one for each large component, one for all small components together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hushgraph._arrays import namespace, on_device, on_host, placed_like
from hushgraph.graphs import Graph

LARGE_COMPONENT, MOST_CONSTANTS = 30, 8  # components that get a constant: of at least so many nodes; so many get one of their own


class ComponentMeans(NamedTuple):
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
    def of(cls, graph: Graph) -> ComponentMeans:
        """Return the groups of a graph: each large component is one, and all small components together are one."""
        label = graph.components
        sizes = np.bincount(label)
        order, small = np.argsort(-sizes, kind="stable"), sizes < LARGE_COMPONENT
        slot = np.empty(len(sizes) + 1, dtype=np.int64)  # the last group is all small components together
        slot[order] = np.minimum(np.arange(len(sizes)), MOST_CONSTANTS)
        slot[-1] = slot[:-1][~small].max(initial=-1) + 1 if small.any() else 0
        group = np.where(small, len(sizes), np.arange(len(sizes)))[label]
        return cls(group, slot, slot[group], np.bincount(group, minlength=len(slot)))

    @classmethod
    def cached(cls, graph: Graph, like: Any) -> ComponentMeans:
        """Return the groups of a graph from its cache, on the machine (CPU or GPU) of the array `like`."""
        members = graph.cached("groups of means", lambda: cls.of(graph))
        if not on_device(like):
            return members

        def uploaded() -> ComponentMeans:
            order, last = np.argsort(members.group, kind="stable"), np.maximum(np.cumsum(members.sizes) - 1, 0)
            arrays = (placed_like(part, like) for part in (members.group, members.column, order, last))
            return members._replace(**dict(zip(("group", "column", "order", "last"), arrays, strict=True)))

        return graph.cached("groups of means on device", uploaded)

    def means(self, x: Any) -> np.ndarray:
        """Return the mean of a signal over each group."""
        if on_device(x):
            running = np.where(np.cumsum(self.sizes) > 0, on_host(np.cumsum(x[self.order])[self.last]), 0.0)
            sums = np.diff(running, prepend=0.0)
        else:
            sums = np.bincount(self.group, x, minlength=len(self.sizes))
        return sums / np.maximum(self.sizes, 1)

    def removed(self, rows: Any) -> Any:
        """Return signals (m, n) less their means over the groups."""
        return rows - namespace(rows).stack([placed_like(self.means(row), row)[self.group] for row in rows])
