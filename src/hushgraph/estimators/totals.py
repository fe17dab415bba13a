"""Totals over regions: the noisy sum, a better estimate made from the denoised signal, and errors of both that hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse, special

from hushgraph._arrays import on_host
from hushgraph._errors import InputError
from hushgraph._validation import checked_level
from hushgraph.estimators.denoising import solve
from hushgraph.estimators.origin import Origin
from hushgraph.estimators.result import INTERVAL_LEVEL, Denoised, node_errors
from hushgraph.estimators.total_errors import MIN_NODES, ErrorModel, measured_shifts, only_noise
from hushgraph.graphs import Regions, pandas_module, region_nodes

MOST_SHOWN = 20  # rows of a table of totals as text


@dataclass(frozen=True)
class RegionTotal:
    """The total of one region: an element of `Totals`, and the result of `Denoised.total`.

    Parameters
    ----------
    name : hashable
        The name of the region.
    n_nodes : int
        How many nodes with a value it has.
    noisy : float
        The sum of the noisy values: unbiased.
    noisy_se : float
        The standard error of `noisy`.
    value : float
        The better estimate.
    se : float
        The standard error of `value`.
    is_nonnegative : bool
        Whether the total cannot be negative.
    """

    name: Any
    n_nodes: int
    noisy: float
    noisy_se: float
    value: float
    se: float
    is_nonnegative: bool = False

    def interval(self, level: float = INTERVAL_LEVEL) -> tuple[float, float]:
        """Return the ends of an interval that holds the true total with this probability.

        Parameters
        ----------
        level : float
            The probability, between 0 and 1.

        Returns
        -------
        lower, upper : float
            The ends.
        """
        lower, upper = _ends(self.value, self.se, level, self.is_nonnegative)
        return float(lower), float(upper)

    def __str__(self) -> str:
        lower, upper = self.interval()
        ends = f"90 % between {_number(lower, self.se)} and {_number(upper, self.se)}"
        return f"{_number(self.value, self.se)} ± {_number(self.se, self.se)} ({ends}; {self.n_nodes:,} nodes)"


@dataclass(frozen=True, eq=False)
class Totals:
    """Totals of several regions with their errors: the result of `Denoised.totals` and `Release.totals`.

    The errors are those of the noise and of the estimate, for regions that were not chosen by looking at this signal. Nodes without a
    value do not count.

    Parameters
    ----------
    names : tuple
        The name of each region; of several signals, each region is repeated for each column.
    n_nodes : (k,) array
        How many nodes with a value each region has.
    noisy : (k,) array
        The sums of the noisy values: unbiased.
    noisy_se : (k,) array
        Their standard errors.
    value : (k,) array
        The better estimates: between the noisy sum and the sum of the denoised signal.
    se : (k,) array
        Their standard errors.
    factor : (k, ...) sparse array
        A matrix whose product with its transpose is `covariance`.
    columns : tuple, optional
        The column of each row, of several signals.
    is_nonnegative : bool
        Whether totals cannot be negative: estimates and intervals are cut at 0 then.
    """

    names: tuple[Any, ...]
    n_nodes: np.ndarray
    noisy: np.ndarray
    noisy_se: np.ndarray
    value: np.ndarray
    se: np.ndarray
    factor: sparse.csr_array = field(repr=False)
    columns: tuple[Any, ...] | None = None
    is_nonnegative: bool = False

    @cached_property
    def covariance(self) -> np.ndarray:
        """The covariance (k, k) of the errors of `value`: regions that overlap or touch have similar errors.

        Errors of different columns are taken as uncorrelated.
        """
        return np.asarray((self.factor @ self.factor.T).toarray())

    def interval(self, level: float = INTERVAL_LEVEL) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of intervals of which each holds the true total with this probability.

        Parameters
        ----------
        level : float
            The probability, between 0 and 1.

        Returns
        -------
        lower, upper : (k,) arrays
            The ends.
        """
        return _ends(self.value, self.se, level, self.is_nonnegative)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: Any) -> RegionTotal:
        rows = [k for k, one in enumerate(self.names) if one == name]
        if len(rows) != 1:
            what = "no region has this name" if not rows else "it has a total in each column; see to_frame()"
            msg = f"there is no one total of {name!r}: {what}"
            raise InputError(msg)
        numbers = {part: getattr(self, part)[rows[0]].item() for part in ("n_nodes", "noisy", "noisy_se", "value", "se")}
        return RegionTotal(name, **numbers, is_nonnegative=self.is_nonnegative)

    def to_frame(self, level: float = INTERVAL_LEVEL) -> Any:
        """Return the totals as a table of pandas.

        Parameters
        ----------
        level : float
            The probability of the intervals.

        Returns
        -------
        pandas.DataFrame
            Columns region, (column,) nodes, total, se, lower, upper, noisy, noisy_se.
        """
        return pandas_module().DataFrame(self.table(level))

    def table(self, level: float = INTERVAL_LEVEL) -> dict[str, Any]:
        """Return the totals as columns by name.

        Parameters
        ----------
        level : float
            The probability of the intervals.

        Returns
        -------
        dict
            Columns region, (column,) nodes, total, se, lower, upper, noisy, noisy_se.
        """
        lower, upper = self.interval(level)
        named = {"region": list(self.names)} | ({} if self.columns is None else {"column": list(self.columns)})
        numbers = {"nodes": self.n_nodes, "total": self.value, "se": self.se, "lower": lower, "upper": upper}
        return {**named, **numbers, "noisy": self.noisy, "noisy_se": self.noisy_se}

    def rows(self, column_names: Sequence[Any] | None = None, level: float = INTERVAL_LEVEL) -> list[list[str]]:
        """Return the totals as rows of text, each number with two digits of its standard error; the first row is the head.

        Parameters
        ----------
        column_names : sequence, optional
            Names of the columns, where the signal has none.
        level : float
            The probability of the intervals.

        Returns
        -------
        list of list of str
            Region, nodes, total, interval and noisy sum.
        """
        lower, upper = self.interval(level)
        rows = [["region", "nodes", "total", f"{100 * level:g} % interval", "noisy sum"]]
        for k, name in enumerate(self.names):
            column = None if self.columns is None else self.columns[k]
            column = column if column_names is None or column is None else column_names[column]
            total, se, low, high = (_number(part, self.se[k]) for part in (self.value[k], self.se[k], lower[k], upper[k]))
            noisy = f"{_number(self.noisy[k], self.se[k])} ± {_number(self.noisy_se[k], self.se[k])}"
            label = str(name) if column is None else f"{name}, {column}"
            rows.append([label, f"{self.n_nodes[k]:,}", f"{total} ± {se}", f"{low} to {high}", noisy])
        return rows

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(map(len, parts)) for parts in zip(*rows[: MOST_SHOWN + 1], strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(part.rjust(width) for part, width in zip(row[1:], widths[1:], strict=True))])
            for row in rows[: MOST_SHOWN + 1]
        ]
        return "\n".join(lines + [f"and {len(self) - MOST_SHOWN:,} more"] * (len(self) > MOST_SHOWN))


def _ends(value: Any, se: Any, level: float, is_nonnegative: bool) -> tuple[Any, Any]:
    half = special.ndtri(0.5 + checked_level(level) / 2) * se
    lower, upper = value - half, value + half
    return (np.maximum(lower, 0.0), np.maximum(upper, 0.0)) if is_nonnegative else (lower, upper)


def _number(value: float, se: float) -> str:
    """Return a number with two digits of its standard error."""
    digits = 1 if not (np.isfinite(se) and se > 0) else int(np.clip(1 - np.floor(np.log10(se)), 0, 6))
    return f"{value:,.{digits}f}"


def total_of(result: Denoised, nodes: Any) -> RegionTotal:
    """Return the total of one region of a result with one signal."""
    origin = _origin_of(result)
    if origin.problem.values.ndim != 1:
        msg = "total() is for one signal, and this result has several columns; totals({'name': nodes}) has a row for each"
        raise InputError(msg)
    graph = origin.problem.graph
    return totals_of(result, Regions.of_nodes(graph, {"total": region_nodes(graph, nodes)}))["total"]


def totals_of(result: Denoised, regions: Any) -> Totals:
    """Return the totals of regions of a result."""
    origin = _origin_of(result)
    names, members = Regions.of(origin.problem.graph, regions)
    values, estimate, sigma = origin.values, origin.estimate, origin.sigma
    known = ~np.isnan(values).any(axis=1)
    inside = sparse.csr_array(members[:, np.flatnonzero(known)])
    n_nodes = np.diff(inside.indptr)
    is_unknown = (n_nodes == 0) & (np.diff(members.indptr) > 0)
    noisy, value, factors = [], [], []
    for j, model in enumerate(_error_models(origin, result)):
        moved = inside @ (estimate - values)[known, j]
        mixture = only_noise(sigma[known, j], inside) if model is None else model.mixture(inside, moved)
        noisy.append(inside @ values[known, j])
        value.append(noisy[-1] + mixture.share * moved)
        factors.append(mixture.factor)
    m, k = len(noisy), len(names)
    order = np.arange(m * k).reshape(m, k).T.ravel()  # the columns of a region follow each other
    factor = sparse.csr_array(sparse.block_diag(factors, format="csr")[order])
    sums, sums_se, better = (np.stack(part, axis=1) for part in (noisy, _noise_of(inside, sigma[known]), value))
    for part in (sums, better):
        part[is_unknown] = np.nan
    is_nonnegative = result.node_risk.is_nonnegative
    se = np.sqrt(np.asarray(factor.power(2).sum(axis=1)).ravel())
    return Totals(
        names=names if m == 1 else tuple(name for name in names for _ in range(m)),
        n_nodes=np.repeat(n_nodes, m),
        noisy=sums.ravel(),
        noisy_se=np.where(np.repeat(is_unknown, m), np.nan, sums_se.ravel()),
        value=(np.maximum(better, 0.0) if is_nonnegative else better).ravel(),
        se=np.where(np.repeat(is_unknown, m), np.nan, se),
        factor=factor,
        columns=None if origin.problem.values.ndim == 1 else tuple(_column_names(result, m)) * k,
        is_nonnegative=is_nonnegative,
    )


def _noise_of(inside: sparse.csr_array, sigma: np.ndarray) -> list[np.ndarray]:
    return [np.sqrt(inside @ column**2) for column in sigma.T]


def _column_names(result: Denoised, m: int) -> list:
    columns = getattr(result.signal, "columns", None)
    return list(range(m)) if columns is None or len(columns) != m else list(columns)


def _origin_of(result: Denoised) -> Origin:
    if result.origin is None or result.node_risk is None:
        msg = (
            "totals need a result of denoise or compare: this one, of a baseline, of denoise_series for a list or of Dask, does not know "
            "the noisy values that it was made from"
        )
        raise InputError(msg)
    return result.origin


def _error_models(origin: Origin, result: Denoised) -> list[ErrorModel | None]:
    """Return the model of each signal, from the cache of the result if there are some."""
    models = origin.cache.get("error models")
    if models is None:
        models = origin.cache["error models"] = _fitted_models(origin, result)
    return models


def _fitted_models(origin: Origin, result: Denoised) -> list[ErrorModel | None]:
    """Return the model of each signal, fitted to the signal denoised again several times; None if its error is not known.

    On graphs that are too small there is none either.
    """
    values, estimate, sigma = origin.values, origin.estimate, origin.sigma
    known = ~np.isnan(values).any(axis=1)
    if known.sum() < MIN_NODES:
        return [None] * values.shape[1]
    problem = replace(origin.problem, values=on_host(origin.problem.values), sigma=on_host(origin.problem.sigma))
    problem = problem if known.all() else problem.at_known_nodes(known)

    def run(moved: np.ndarray) -> np.ndarray:
        again = replace(problem, values=moved.reshape(problem.values.shape).astype(problem.values.dtype))
        return np.asarray(solve(again, origin.settings, {}).signal, dtype=np.float64).reshape(moved.shape)

    y, f, noise = values[known], estimate[known], sigma[known]
    shifts = measured_shifts(problem.graph, y, f, noise, run, origin.settings.seed)
    errors = np.asarray(on_host(node_errors(result)), dtype=np.float64).reshape(values.shape)[known]
    return [
        ErrorModel.fitted(problem.graph, f[:, j] - y[:, j], noise[:, j], errors[:, j], shifts[j])
        if np.isfinite(errors[:, j]).all()
        else None
        for j in range(values.shape[1])
    ]
