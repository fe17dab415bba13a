"""The means of a signal over the components of a graph: one for each large component, one for all small components together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hushgraph._arrays import namespace, on_device, placed_like
from hushgraph.graphs.graph import Graph

LARGE_COMPONENT = 30  # nodes from which a component has a mean of its own
MOST_CONSTANTS = 8  # of the large components, that have a column of their own; the others share the next one


class ComponentMeans(NamedTuple):
    """The nodes of a graph in groups that have one mean each, and the columns of constants that these means make.

    `group` is the number of the group of each node, `sizes` how many nodes each group has. A group has the column `column_of_group`, and
    its nodes the column `column_of_node`. On a GPU, `order` lists the nodes group after group, `last` where each group ends
    in it, `is_reached` whether there is a node up to there, and `per_node` one over the sizes.
    """

    group: Any
    column_of_group: np.ndarray
    column_of_node: Any
    sizes: np.ndarray
    order: Any = None
    last: Any = None
    is_reached: Any = None
    per_node: Any = None

    @classmethod
    def of(cls, graph: Graph, *, large: int = LARGE_COMPONENT) -> ComponentMeans:
        """Return the groups of a graph: each component of at least `large` nodes is one, and all smaller ones together are one."""
        label = graph.components
        sizes = np.bincount(label)
        order, is_small = np.argsort(-sizes, kind="stable"), sizes < large
        column = np.empty(len(sizes) + 1, dtype=np.int64)  # the last group is all small components together
        column[order] = np.minimum(np.arange(len(sizes)), MOST_CONSTANTS)
        column[-1] = column[:-1][~is_small].max(initial=-1) + 1 if is_small.any() else 0
        group = np.where(is_small, len(sizes), np.arange(len(sizes)))[label]
        return cls(group, column, column[group], np.bincount(group, minlength=len(column)))

    @classmethod
    def cached(cls, graph: Graph, like: Any) -> ComponentMeans:
        """Return the groups of a graph from its cache, on the machine (CPU or GPU) of the array `like`."""
        on_cpu = graph.cached("groups of means", lambda: cls.of(graph))
        if not on_device(like):
            return on_cpu

        def uploaded() -> ComponentMeans:
            order, ends = np.argsort(on_cpu.group, kind="stable"), np.cumsum(on_cpu.sizes)
            arrays = {
                "group": on_cpu.group,
                "column_of_node": on_cpu.column_of_node,
                "order": order,
                "last": np.maximum(ends - 1, 0),
                "is_reached": np.where(ends > 0, 1.0, 0.0),
                "per_node": 1 / np.maximum(on_cpu.sizes, 1),
            }
            return on_cpu._replace(**{name: placed_like(array, like) for name, array in arrays.items()})

        return graph.cached("groups of means on device", uploaded)

    def means(self, x: Any) -> Any:
        """Return the mean of a signal over each group, on the machine of the signal."""
        if on_device(x):
            running = np.cumsum(x[self.order])[self.last] * self.is_reached
            running[1:] -= running[:-1].copy()
            return running * self.per_node
        return np.bincount(self.group, x, minlength=len(self.sizes)) / np.maximum(self.sizes, 1)

    def without_means(self, rows: Any) -> Any:
        """Return signals (m, n) less their means over the groups."""
        return rows - namespace(rows).stack([self.means(row)[self.group] for row in rows])
