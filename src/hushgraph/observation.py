"""Noisy: a signal that knows its noise and its graph. What `denoise` accepts from a release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from hushgraph.checks import checked_real_array, checked_sigma, choose, shown
from hushgraph.graph import Graph, checked_graph

Kind = Literal["measurement", "release", "simulation"]


@dataclass(frozen=True, eq=False)
class Noisy:
    """Noisy values on one graph; its text form shows none of them.

    Attributes
    ----------
    values : (n,) or (n, m) array
    sigma : float
        Standard deviation of the noise, in the unit of the values.
    kind : {"measurement", "release", "simulation"}
        Where the noise comes from; a simulation is never exportable.
    graph_hash : str
        `Graph.hash` of the graph the values belong to.
    exportable : bool
        Whether the values may be written to a file for others.
    """

    values: np.ndarray = field(repr=False)
    sigma: float
    kind: Kind
    graph_hash: str
    exportable: bool = False

    def __post_init__(self):
        choose("kind", self.kind, get_args(Kind))
        if self.kind == "simulation" and self.exportable:
            msg = "a simulation is not exportable: its noise comes from a seed and protects nobody"
            raise ValueError(msg)
        for name, kind in (("graph_hash", str), ("exportable", bool)):
            if not isinstance(getattr(self, name), kind):
                msg = f"{name} must be a {kind.__name__}; got {shown(getattr(self, name))}"
                raise TypeError(msg)
        if checked_real_array("values", self.values).ndim not in (1, 2):
            msg = f"values must be (n,) or (n, m) numbers; got {np.shape(self.values)}"
            raise ValueError(msg)
        object.__setattr__(self, "sigma", checked_sigma(self.sigma))
        values = np.array(self.values)
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def check_belongs_to(self, graph: Graph) -> None:
        """Refuse a graph other than the one the values were made on."""
        if checked_graph(graph).hash != self.graph_hash:
            msg = f"these values belong to another graph ({self.graph_hash[:12]}...) than the one given ({graph.hash[:12]}...)"
            raise ValueError(msg)
