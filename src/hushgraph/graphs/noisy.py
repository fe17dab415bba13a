"""Noisy: values with their noise level and the hash of their graph, such as a private release. `denoise` accepts them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from hushgraph._errors import InputError, InputTypeError, Sentence
from hushgraph._validation import as_number, checked_number, checked_real_array, checked_sigma, choose, shown
from hushgraph.graphs.graph import Graph, as_graph

Kind = Literal["measurement", "release", "simulation"]


@dataclass(frozen=True, eq=False)
class Noisy:
    """Noisy values on one graph; its text form shows none of them.

    Parameters
    ----------
    values : numpy.ndarray, shape (n,) or (n, m)
        The values; a read-only copy is stored.
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

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.path(3)
    >>> hg.Noisy(np.array([1.0, 2.0, 4.0]), sigma=0.5, kind="measurement", graph_hash=graph.hash).noise_level
    0.5
    """

    values: np.ndarray = field(repr=False)
    sigma: float
    kind: Kind
    graph_hash: str
    exportable: bool = False
    lattice: float = 0.0
    windows: tuple | None = None
    instead_pass: ClassVar[str] = "its .values"  # where plain numbers are expected

    def __post_init__(self) -> None:
        choose("kind", self.kind, get_args(Kind))
        if self.kind == "simulation" and self.exportable:
            msg = "a simulation is not exportable: its noise comes from a seed and protects nobody"
            raise InputError(msg)
        for name, kind in (("graph_hash", str), ("exportable", bool)):
            if not isinstance(getattr(self, name), kind):
                raise InputTypeError.about(argument=name, expected=f"a {kind.__name__}", got=shown(getattr(self, name)))
        if checked_real_array("values", self.values).ndim not in (1, 2):
            raise InputError.about(argument="values", expected="(n,) or (n, m) numbers", got=np.shape(self.values))
        object.__setattr__(self, "sigma", checked_sigma(self.sigma))
        object.__setattr__(self, "lattice", checked_number("lattice", self.lattice, "a spacing of at least 0", least=0))
        if self.windows is not None and (np.ndim(self.values) != 2 or len(self.windows) != np.shape(self.values)[1] + 1):
            expected, got = (
                "the edges of the columns, one more than there are",
                f"{len(self.windows)} for values {np.shape(self.values)}",
            )
            raise InputError.about(argument="windows", expected=expected, got=got, text=f"windows are {expected}; got {got}")
        values = np.array(self.values)
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    @property
    def noise_level(self) -> float:
        """Standard deviation of noise and rounding together: sqrt(sigma^2 + lattice^2 / 12)."""
        return math.hypot(self.sigma, self.lattice / math.sqrt(12))

    def opened(self, graph: Graph, sigma: Any = None) -> tuple[np.ndarray, float]:
        """Return the values and the noise level for an estimator.

        Parameters
        ----------
        graph : Graph
            The graph of the estimator; another graph than that of the values is refused.
        sigma : float, optional
            The sigma that the caller passed, if any; another one is refused.

        Returns
        -------
        values : numpy.ndarray
            The values.
        noise_level : float
            The standard deviation of noise and rounding together.
        """
        self.check_belongs_to(graph)
        return self.values, self.checked_noise_level(sigma)

    def checked_noise_level(self, sigma: Any = None) -> float:
        """Return the noise level; a sigma of the caller's own must be the same.

        Parameters
        ----------
        sigma : float, optional
            The caller's sigma.

        Returns
        -------
        float
            The noise level.
        """
        if sigma is not None and as_number(sigma) not in (self.sigma, self.noise_level):
            text = Sentence("sigma travels with the noisy signal ({:g}); leave {sigma=} out, got {}", self.sigma, shown(sigma))
            hint = Sentence("leave {sigma=} out")
            raise InputError.about(argument="sigma", expected=f"{self.sigma:g}", got=shown(sigma), hint=hint, text=text)
        return self.noise_level

    def check_belongs_to(self, graph: Graph) -> None:
        """Refuse a graph other than that of the values.

        Parameters
        ----------
        graph : Graph
            The graph.
        """
        graph = as_graph(graph)
        if graph.hash != self.graph_hash:
            msg = f"these values belong to another graph ({self.graph_hash[:12]}...) than the one given ({graph.hash[:12]}...)"
            raise InputError(msg)


def refuse_release(name: str, value: object) -> None:
    """Refuse a release where an oracle or a comparison with the truth needs plain numbers: results would be functions of private values."""
    if not isinstance(value, Noisy):
        return
    if value.kind == "release":
        msg = (
            f"{name} is a private release; comparing it with the truth, or tuning on the truth, would give away exact values; "
            "see risk and expected_error() of its denoised map, or try things out on generated data with privacy.simulate"
        )
        raise InputTypeError(msg)
    raise InputTypeError.about(argument=name, expected="plain numbers", got="a Noisy object", hint="pass its .values")
