"""Columns: estimates of one signal with their divergences and Jacobians, ready to be combined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hushgraph._arrays import namespace, on_device, on_host
from hushgraph.core import block_products_of, sum_of_rows
from hushgraph.estimators.let.filters import Filters

FEW_NODES = 2**22  # nodes up to which a GPU holds a copy of all columns


def joined(parts: list[Any]) -> np.ndarray:
    """Return vectors one after the other, on the host; those on a GPU are copied together."""
    there = [part for part in parts if on_device(part)]
    if not there:
        return np.concatenate(parts)
    copied = iter(np.split(on_host(np.concatenate(there)), np.cumsum([len(part) for part in there])[:-1]))
    return np.concatenate([next(copied) if on_device(part) else part for part in parts])


def _products_with(rows: Any, y: Any) -> np.ndarray:
    """Return the inner products of rows on a GPU and y, which comes last."""
    k = len(rows)
    products = namespace(rows).empty((k + 1, k + 1))
    products[:k, :k], products[k, :k], products[k, k] = rows @ rows.T, rows @ y, y @ y
    products[:k, k] = products[k, :k]
    return on_host(products)


class Derivative:
    """The derivative of a combination along the kept probes, while its terms are added up.

    It is the sum of `nodes`, of sum_j rho_j(L) bands_j and of a polynomial in L times the probes. One synthesis at the end serves the
    terms of all groups.
    """

    def __init__(self, filters: Filters) -> None:
        self.filters = filters
        self.nodes: Any = 0.0  # (probes, n)
        self.polynomial: np.ndarray | float = 0.0  # coefficients
        self._bands: np.ndarray | None = None

    @property
    def bands(self) -> np.ndarray:
        """Coefficients (probes, n_scales, n), to be added to in place."""
        if self._bands is None:
            eps = self.filters.probes.eps
            self._bands = namespace(eps).zeros((len(eps), self.filters.n_scales + 1, eps.shape[1]))
            self._bands[:, -1] = eps
        return self._bands[:, :-1]

    def total(self) -> np.ndarray:
        """Return the sum of all terms, (probes, n)."""
        filters, eps = self.filters, self.filters.probes.eps
        polynomial = np.broadcast_to(self.polynomial, filters.coefficients.shape[1])
        if self._bands is not None:
            derivative = filters.synthesize(self._bands, polynomial)
        elif np.any(polynomial):
            derivative = filters.polynomial(polynomial, eps)
        else:
            derivative = np.zeros_like(eps)
        return derivative + self.nodes


@dataclass(frozen=True, eq=False)
class Candidates(ABC):
    """A group of candidates: its columns F_k as rows of `values`, their divergences, and their Jacobians J_k.

    Parameters
    ----------
    names : tuple of str
        One per column.
    values : (k, n) array
    divergence : (k,) array
        sum_i sigma_i^2 dF_k(i)/dy_i, in units of the variance when the noise has one size.
    tuned : (k,) array, optional
        Degrees of freedom spent on choosing thresholds by SURE, on top of the divergence at fixed ones.
    doubt : (k,) array, optional
        Standard error of the divergence, where few probes leave a large one. Sets of candidates are charged for it when they are compared.
    chosen : dict, optional
        What SURE chose inside the columns: thresholds and the like.
    """

    names: tuple[str, ...]
    values: np.ndarray = field(repr=False)
    divergence: np.ndarray
    tuned: np.ndarray | float = field(default=0.0, kw_only=True)
    doubt: np.ndarray | float = field(default=0.0, kw_only=True)
    chosen: dict[str, np.ndarray] = field(default_factory=dict, repr=False, kw_only=True)

    @abstractmethod
    def add_jvp(self, weights: np.ndarray, derivative: Derivative) -> None:
        """Add sum_k weights_k J_k eps, for every kept probe eps, to the derivative."""


@dataclass(frozen=True, eq=False)
class KnownDerivatives(Candidates):
    """Columns with known derivatives along the kept probes, (k, probes, n)."""

    derivatives: np.ndarray = field(repr=False)

    def add_jvp(self, weights: np.ndarray, derivative: Derivative) -> None:
        """Add the weighted derivatives."""
        derivative.nodes = derivative.nodes + sum_of_rows(weights, self.derivatives)


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of several groups, one after the other.

    Their values stay in the arrays of the groups: they are many, and large graphs have no room for copies.
    """

    filters: Filters = field(repr=False)
    groups: dict[str, Candidates] = field(repr=False)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(name for group in self.groups.values() for name in group.names)

    @cached_property
    def divergence(self) -> np.ndarray:
        """The divergence of each column."""
        return joined([group.divergence for group in self.groups.values()])

    @cached_property
    def tuned(self) -> np.ndarray:
        """Degrees of freedom that choosing thresholds by SURE costs each column."""
        return np.concatenate([np.broadcast_to(group.tuned, len(group.names)) for group in self.groups.values()])

    @cached_property
    def doubt(self) -> np.ndarray:
        """The standard error of each divergence, as far as sets are charged for it."""
        return np.concatenate([np.broadcast_to(group.doubt, len(group.names)) for group in self.groups.values()])

    @cached_property
    def places(self) -> dict[str, np.ndarray]:
        """The numbers of the columns of each group."""
        ends = np.cumsum([len(group.names) for group in self.groups.values()])
        return {name: np.arange(end - len(group.names), end) for (name, group), end in zip(self.groups.items(), ends, strict=True)}

    @property
    def chosen(self) -> dict[str, np.ndarray]:
        """What SURE chose inside the columns, by group and name."""
        return {f"{name}: {what}": value for name, group in self.groups.items() for what, value in group.chosen.items()}

    @cached_property
    def _on_device(self) -> Any:
        """All columns in one array, which saves launches, where they are on a GPU and are few enough; None elsewhere."""
        first = next(iter(self.groups.values())).values
        return self.values() if on_device(first) and first.shape[1] <= FEW_NODES else None

    def values(self) -> np.ndarray:
        """Return a copy of all columns, (k, n)."""
        return np.concatenate([group.values for group in self.groups.values()])

    def jvp(self, weights: np.ndarray) -> np.ndarray:
        """Return sum_k weights_k J_k eps for every kept probe eps, (probes, n)."""
        derivative = Derivative(self.filters)
        for name, group in self.groups.items():
            own = weights[self.places[name]]
            if np.any(own):
                group.add_jvp(own, derivative)
        return derivative.total()

    def combined(self, weights: np.ndarray) -> np.ndarray:
        """Return sum_k weights_k F_k."""
        if self._on_device is not None:
            return sum_of_rows(weights, self._on_device)
        first = next(iter(self.groups.values()))
        signal = np.zeros_like(first.values[0])
        for name, group in self.groups.items():
            signal += sum_of_rows(weights[self.places[name]], group.values)
        return signal

    def products(self, y: np.ndarray) -> np.ndarray:
        """Return all inner products of the columns and y, which comes last: (k + 1, k + 1)."""
        whole = self._on_device
        if whole is not None:
            return _products_with(whole, y)

        def rows(nodes: slice) -> tuple[np.ndarray, None]:
            return np.concatenate([*(group.values[:, nodes] for group in self.groups.values()), y[None, nodes]]), None

        return block_products_of(len(y), rows)
