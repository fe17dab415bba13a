"""Noisy: a signal that knows its noise and its graph. What `denoise` accepts from a release."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from hushgraph._errors import InputError, InputTypeError, Sentence
from hushgraph.checks import as_number, checked_number, checked_real_array, checked_sigma, choose, shown
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
    lattice : float
        Spacing of the lattice the values were rounded to; 0 for none.
    windows : tuple or None
        The m + 1 edges of consecutive time windows, one column each: `denoise` then takes the columns together.
    """

    values: np.ndarray = field(repr=False)
    sigma: float
    kind: Kind
    graph_hash: str
    exportable: bool = False
    lattice: float = 0.0
    windows: tuple | None = None

    def __post_init__(self):
        choose("kind", self.kind, get_args(Kind))
        if self.kind == "simulation" and self.exportable:
            msg = "a simulation is not exportable: its noise comes from a seed and protects nobody"
            raise InputError(msg)
        for name, kind in (("graph_hash", str), ("exportable", bool)):
            if not isinstance(getattr(self, name), kind):
                msg = f"{name} must be a {kind.__name__}; got {shown(getattr(self, name))}"
                raise InputTypeError(msg)
        if checked_real_array("values", self.values).ndim not in (1, 2):
            msg = f"values must be (n,) or (n, m) numbers; got {np.shape(self.values)}"
            raise InputError(msg)
        object.__setattr__(self, "sigma", checked_sigma(self.sigma))
        object.__setattr__(self, "lattice", checked_number("lattice", self.lattice, "a spacing of at least 0", least=0))
        if self.windows is not None and (np.ndim(self.values) != 2 or len(self.windows) != np.shape(self.values)[1] + 1):
            msg = f"windows are the edges of the columns, one more than there are; got {len(self.windows)} for values {np.shape(self.values)}"
            raise InputError(msg)
        values = np.array(self.values)
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    @property
    def noise_level(self) -> float:
        """Standard deviation of noise and rounding together: sqrt(sigma^2 + lattice^2 / 12)."""
        return math.hypot(self.sigma, self.lattice / math.sqrt(12))

    def opened(self, graph: Graph, sigma=None) -> tuple[np.ndarray, float]:
        """Values and noise level for an estimator on `graph`; a sigma of the caller's own must be the same."""
        self.check_belongs_to(graph)
        if sigma is not None and as_number(sigma) not in (self.sigma, self.noise_level):
            msg = "sigma travels with the noisy signal ({:g}); leave {sigma=} out, got {}"
            raise InputError(Sentence(msg, self.sigma, shown(sigma)))
        return self.values, self.noise_level

    def check_belongs_to(self, graph: Graph) -> None:
        """Refuse a graph other than the one the values were made on."""
        if checked_graph(graph).hash != self.graph_hash:
            msg = f"these values belong to another graph ({self.graph_hash[:12]}...) than the one given ({graph.hash[:12]}...)"
            raise InputError(msg)


def refuse_release(name: str, value) -> None:
    """Oracles and errors against the truth take no release: their results are functions of private values."""
    if not isinstance(value, Noisy):
        return
    if value.kind == "release":
        msg = (
            f"{name} is a private release; comparing it with the truth, or tuning on the truth, would give away exact values; "
            "see risk and expected_error() of its denoised map, or try things out on generated data with privacy.simulate"
        )
    else:
        msg = f"{name} must be plain numbers; got a Noisy object, so pass its .values"
    raise InputTypeError(msg)
