"""Denoised, the result of `denoise`: a signal with its estimated risk, expected errors and intervals."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hushgraph._arrays import on_device, on_host, placed_like
from hushgraph._errors import InputError
from hushgraph._validation import checked_level
from hushgraph.estimators.methods import METHODS, Family
from hushgraph.estimators.risk import IMPOSSIBLE
from hushgraph.graphs import Graph, in_form_of, labels_and_values, node_names, notebook_table, pandas_module, signal_frame

if TYPE_CHECKING:
    from hushgraph.estimators.totals import RegionTotal, Totals
    from hushgraph.plotting import InlineReport

INTERVAL_LEVEL = 0.9  # of intervals, unless another level is asked for
# by how much the expected total squared error may differ from the sum of the divergences, as a share of it
DOUBTS: dict[Family, float] = {"combined": 0.3, "counts": 0.15, "wavelet": 1.0}


@dataclass(frozen=True, eq=False)
class Denoised:
    """A denoised signal with its estimated risk: the result of `denoise`.

    Parameters
    ----------
    signal : array, Series, DataFrame, dict or DataArray
        The denoised signal, in the form of the noisy one.
    sigma : float or (n,) array
        The noise level that was used.
    risk : float or (m,) array
        Estimated total squared error of each signal, before clipping and rounding: SURE in the signal domain, plus what choosing
        thresholds and weights by SURE costs on average. On generated signals its bias was at most about half a
        `risk_se`, but for nonnegative series in weak noise.
    risk_se : float or (m,) array
        Standard error of `risk` as an estimate of the actual squared error.
    probe_se : float or (m,) array
        The part of it that the random probes cause (an upper bound; 0 for exact weights, NaN for given ones).
    method : str
        The method that was used.
    thresholds : (n_scales,) or (n_scales, m) array, or None
        The thresholds of methods that threshold wavelets; the penalty of baselines.
    timings : dict
        Seconds per stage.
    details : dict
        Everything else worth knowing: scales, probes, frame, notes.
    labels : (n,) array, optional
        The labels of the graph.
    node_risk : NodeRisk, optional
        Terms of the risk per node, for `expected_error`.
    draws : frozenset of str
        Marks of the noisy maps that the result was made from, by which it is refused as a guide for one of them.
    origin : Origin, optional
        The noisy values, noise and settings, for `total` and `totals`, which denoise again.
    """

    signal: Any = field(repr=False)
    sigma: Any
    risk: float | np.ndarray
    risk_se: float | np.ndarray
    probe_se: float | np.ndarray
    method: str
    thresholds: Any = field(repr=False)
    timings: dict[str, float] = field(repr=False)
    details: dict[str, Any] = field(repr=False)
    labels: np.ndarray | None = field(default=None, repr=False)
    node_risk: Any = field(default=None, repr=False)
    draws: frozenset[str] = field(default=frozenset(), repr=False)
    origin: Any = field(default=None, repr=False)

    def _repr_html_(self) -> str:
        error = self.typical_error
        size = "unknown" if not error.is_known else f"{'at most ' if error.is_bound else ''}{error.size:.4g}"
        low, high = (float(extreme(on_host(self.sigma))) for extreme in (np.min, np.max))
        rows = [
            ("method", self.method),
            ("values", f"{self.n_values:,}" + (f", in each of {np.size(self.risk):,} signals" if np.ndim(self.risk) else "")),
            (
                "sigma",
                f"{low:.4g}"
                + (f" to {high:.4g}" if low < high else "")
                + ", estimated" * bool(self.details.get("sigma_estimated")),
            ),
            ("typical error, estimated", size),
            ("seconds", f"{self.timings.get('total', sum(self.timings.values())):.2g}"),
        ]
        return notebook_table(rows, title="Denoised signal", foot=" ".join(self.details.get("notes", ())))

    def expected_error(self, *, hops: int | None = None) -> Any:
        """Return the expected error of each value (root mean square).

        Their squares add up to the expected total squared error, in which `risk` and the divergence of the estimate are combined by
        their precision. No node has less than a few percent of the mean square, since an error that small cannot be known. It is the
        error of the estimate before clipping and rounding, and NaN for a signal about whose error nothing can be said
        (`is_error_known`).

        Parameters
        ----------
        hops : int, optional
            Length of the random walk that the variance of the estimate is averaged over. Fewer hops are more local and noisier. Default:
            2 to 16, by the number of probes.

        Returns
        -------
        array, Series, DataFrame, dict or DataArray
            The errors in the form of `signal`.
        """
        return self.in_form_of_signal(node_errors(self, hops))

    def interval(self, level: float = INTERVAL_LEVEL) -> tuple[Any, Any]:
        """Return a lower and an upper value for each node, between which the true value lies with this probability.

        The probability is that of a node drawn at random, among all nodes and among those with an estimate or an expected error of
        about that size; the page "How sure is a map?" has the measured shares. For `counts`, and "auto" with nonnegative=True, it is the shortest interval of the posterior; where 0 alone is
        more likely than `level`, the interval is 0 and holds the true value more often. For other methods errors are taken as normal,
        with the size of `expected_error`. Values that cannot be negative have no negative limits.

        Parameters
        ----------
        level : float
            The probability, between 0 and 1.

        Returns
        -------
        lower, upper : arrays, Series, DataFrames, dicts or DataArrays
            In the form of `signal`; NaN where the expected error is.

        Examples
        --------
        >>> import numpy as np, hushgraph as hg
        >>> graph = hg.datasets.city(400)
        >>> counts = hg.hotspot_counts(graph, total=4000)
        >>> noisy = counts + np.random.default_rng(0).normal(0, 5, graph.n)
        >>> lower, upper = hg.denoise(graph, noisy, sigma=5, nonnegative=True).interval(0.9)
        >>> bool(0.85 < np.mean((lower <= counts) & (counts <= upper)) < 0.95)
        True
        """
        level = checked_level(level)
        error = on_host(node_errors(self))
        lower, upper = self.node_risk.interval(self._in_node_order(), error, level)
        return self.in_form_of_signal(placed_like(lower, self.signal)), self.in_form_of_signal(placed_like(upper, self.signal))

    def _in_node_order(self) -> np.ndarray:
        """Return the values of the signal in the order of the nodes."""
        labels, values = labels_and_values("signal", self.signal)
        values = np.asarray(on_host(values), dtype=np.float64)
        if labels is None:
            return values
        place = {label: i for i, label in enumerate(labels)}
        return values[[place[node] for node in (range(len(values)) if self.labels is None else self.labels.tolist())]]

    def in_form_of_signal(self, values: Any) -> Any:
        """Return values in the order of the nodes in the form and the precision of the signal.

        Parameters
        ----------
        values : array (n,) or (n, m)
            Values in the order of the nodes.

        Returns
        -------
        array, Series, DataFrame, dict or DataArray
            The values in the form of `signal`.
        """
        values = values.astype(np.float32) if getattr(self.signal, "dtype", None) == np.float32 else values
        return in_form_of(self.signal, lambda: list(range(len(values))) if self.labels is None else self.labels.tolist(), values)

    def total(self, nodes: Any) -> RegionTotal:
        """Return the total over a region, with its standard error.

        Parameters
        ----------
        nodes : list of labels, or mask
            The region: labels of nodes, numbers where the graph has no labels, or a boolean for each node.

        Returns
        -------
        RegionTotal
            `value` and `se`, the sum of the noisy values `noisy` and `noisy_se`, and `interval(level)`.
        """
        from hushgraph.estimators.totals import total_of

        return total_of(self, nodes)

    def totals(self, regions: Any) -> Totals:
        """Return the totals over several regions, with their errors.

        The estimate is between the sum of the noisy values, which is unbiased, and that of the denoised signal, which has less noise.
        Both weights and errors are measured, the first time, by denoising again with small shifts of the noise: this takes six times as
        long as `denoise`. Later totals of the same result take no time. Regions must not be chosen by looking at the signal.

        Parameters
        ----------
        regions : dict of name to labels, Series of label to region, or GeoDataFrame
            Labels are numbers where the graph has none. A region of a dict may be a mask. NaN in a Series is no region. Polygons have a
            column "name", and hold the nodes inside by their coordinates. Regions may overlap.

        Returns
        -------
        Totals
            A row for each region, and for each column of several signals.

        Raises
        ------
        InputError
            If the regions cannot be read, or the result was not returned by `denoise`.

        Examples
        --------
        >>> import numpy as np, hushgraph as hg
        >>> graph = hg.datasets.grid(40, 40)
        >>> clean = np.repeat([0.0, 10.0], 800)
        >>> noisy = clean + np.random.default_rng(0).normal(0, 2, 1600)
        >>> totals = hg.denoise(graph, noisy, sigma=2).totals({"north": range(100), "south": range(1500, 1600)})
        >>> totals["south"].noisy_se, bool(totals["south"].se < 16)
        (20.0, True)
        >>> lower, upper = totals.interval(0.99)
        >>> bool(lower[1] < 1000 < upper[1])
        True
        """
        from hushgraph.estimators.totals import totals_of

        return totals_of(self, regions)

    def explore(self, *, title: str | None = None, height: int = 640) -> InlineReport:
        """Return the report of the result, which a notebook shows: maps to pan and zoom, expected errors, and the method.

        It is the page of `write_report`, with the noisy signal that the result was made from, and the certificate if that was a release.
        A notebook that is saved holds the whole page.

        Parameters
        ----------
        title : str, optional
            Title of the page.
        height : int
            Height of the page in the notebook, in pixels, at least 100.

        Returns
        -------
        InlineReport
            An object that notebooks show as a page; `page` is its HTML.

        Raises
        ------
        InputError
            If the result does not hold the noisy signal: a map of `denoise_series` for a list, say. `write_report` takes it.

        Examples
        --------
        >>> import numpy as np, hushgraph as hg
        >>> graph = hg.datasets.city(300)
        >>> noisy = hg.hotspot_counts(graph) + np.random.default_rng(0).normal(0, 5, graph.n)
        >>> hg.denoise(graph, noisy, sigma=5).explore()
        InlineReport(height=640)
        """
        from hushgraph.plotting import (
            inline_report,
        )  # from a package above, when it is asked for: see the contracts in pyproject.toml

        return inline_report(self, title=title, height=height)

    @property
    def n_values(self) -> int:
        """The number of values that each `risk` is the sum over: nodes, or nodes times columns where columns were denoised together.

        Nodes that were left out because a value was missing do not count.
        """
        if self.node_risk is not None:
            return int(self.node_risk.sure.shape[1])
        values = self.signal if hasattr(self.signal, "shape") else np.asarray(list(self.signal.values()))
        return int(np.size(values) // max(np.size(self.risk), 1))

    @property
    def guide_accounts(self) -> list[dict[str, dict[str, Any]]]:
        """What `details["guides"]` says of the guides of each signal, by name; empty for a signal without guides."""
        given = self.details.get("guides") or {}
        return [account or {} for account in (given if isinstance(given, list) else [given])]

    @property
    def is_error_known(self) -> np.ndarray:
        """Whether anything can be said about the error, for each `risk`: not if sigma is too large, or the risk is far below 0."""
        risks = np.atleast_1d(self.risk)
        is_too_large = np.broadcast_to(self.details.get("sigma_too_large", False), risks.shape)
        return ~is_too_large & (risks >= -IMPOSSIBLE * np.atleast_1d(self.risk_se))

    @property
    def typical_errors(self) -> list[TypicalError]:
        """The root mean square error of a value, for each `risk`, as far as it is known."""
        parts = zip(np.atleast_1d(self.risk), np.atleast_1d(self.risk_se), self.is_error_known, strict=True)
        return [self._trusted(TypicalError.of(risk, se, self.n_values), not is_known) for risk, se, is_known in parts]

    @property
    def typical_error(self) -> TypicalError:
        """The root mean square error of a value of all signals together; standard errors are added, since the signals may be correlated."""
        risks = np.atleast_1d(self.risk)
        whole = TypicalError.of(float(risks.sum()), float(np.sum(self.risk_se)), self.n_values * len(risks))
        return self._trusted(whole, bool(np.any(self.details.get("sigma_too_large", False))))

    def _trusted(self, error: TypicalError, is_doubtful: bool) -> TypicalError:
        """Return the error, or the unknown error if sigma is too large, or if the error is a bound and sigma, an estimate, may be too large."""
        estimated = self.details.get("sigma_estimated", False)
        return TypicalError.unknown() if is_doubtful or (estimated and error.is_bound) else error

    def on_host(self) -> Denoised:
        """Return the same result with NumPy arrays.

        Returns
        -------
        Denoised
            A copy of a result on a GPU, or the result itself.
        """
        terms = None if self.node_risk is None else self.node_risk.on_host()
        origin = None if self.origin is None else self.origin.on_host()
        return replace(self, signal=on_host(self.signal), sigma=on_host(self.sigma), node_risk=terms, origin=origin)

    def to_series(self) -> Any:
        """Return the denoised signal as a pandas object, indexed by the labels of the graph.

        Returns
        -------
        pandas.Series or pandas.DataFrame
            A DataFrame for several signals.
        """
        pandas = pandas_module()
        if isinstance(self.signal, pandas.Series | pandas.DataFrame):
            return self.signal
        labels, values = labels_and_values("signal", on_host(self.signal))
        index = self.labels if labels is None else labels
        return pandas.Series(values, index=index) if np.ndim(values) == 1 else pandas.DataFrame(values, index=index)

    def to_geopandas(self) -> Any:
        """Return the noisy and the denoised signal, its expected error and its 90 % interval as a GeoDataFrame.

        Returns
        -------
        geopandas.GeoDataFrame
            A row for each node: node (its label), noisy, denoised, expected_error, lower, upper, and a point, or the polygons of a zone.
            With several signals the columns are named after them: a_noisy, a_denoised and so on for a signal a, 1_noisy for a signal
            without a name. The crs is EPSG:4326 for a graph in longitude and latitude; otherwise there is none.

        Raises
        ------
        InputError
            If the graph has no coordinates, or the result was not returned by `denoise`.

        Examples
        --------
        >>> import numpy as np, hushgraph as hg
        >>> graph = hg.datasets.city(300)
        >>> noisy = hg.smooth_signal(graph) + np.random.default_rng(0).normal(0, 1, graph.n)
        >>> hg.denoise(graph, noisy, sigma=1).to_geopandas().columns.tolist()
        ['node', 'noisy', 'denoised', 'expected_error', 'lower', 'upper', 'geometry']
        """
        if self.origin is None:
            msg = "this result does not hold its graph and its noisy values; take one that denoise returned"
            raise InputError(msg)
        host = self.on_host()
        return signal_frame(host.origin.problem.graph, host._columns())

    def _columns(self) -> dict[str, np.ndarray]:
        """Return noisy and denoised values, errors and ends of intervals by name, each in the order of the nodes."""
        lower, upper = self.node_risk.interval(values := self._in_node_order(), errors := node_errors(self), INTERVAL_LEVEL)
        parts = {"noisy": self.origin.values, "denoised": values, "expected_error": errors, "lower": lower, "upper": upper}
        if values.ndim == 1:
            return {name: np.reshape(part, -1) for name, part in parts.items()}
        titles = getattr(self.signal, "columns", range(1, values.shape[1] + 1))
        return {f"{title}_{name}": part[:, k] for k, title in enumerate(titles) for name, part in parts.items()}


def node_errors(result: Denoised, hops: int | None = None) -> Any:
    """Return the expected errors of a result as an array in the order of the nodes, whatever the form of its signal."""
    if result.node_risk is None:
        msg = "this result does not hold the terms of its risk; take one that denoise returned"
        raise InputError(msg)
    risks, errors = np.where(result.is_error_known, result.risk, np.nan), np.atleast_1d(result.risk_se)
    return result.node_risk.expected_error(risks, errors, DOUBTS[METHODS[result.method].family], hops=hops)


class TypicalError(NamedTuple):
    """Root mean square error of a value; a bound on it where the estimate drowns in its own standard error; NaN where it is not known."""

    size: float
    is_bound: bool

    @classmethod
    def unknown(cls) -> TypicalError:
        """Return the error about which nothing can be said."""
        return cls(np.nan, False)

    @property
    def is_known(self) -> bool:
        """Whether the error is known."""
        return not np.isnan(self.size)

    @classmethod
    def of(cls, risk: float, risk_se: float, count: float) -> TypicalError:
        """Return the error from the estimated total squared error of `count` values, which may fall below 0.

        An estimate of more than IMPOSSIBLE standard errors below 0 says nothing about the error: sigma is too large, or there is hardly any signal.

        >>> TypicalError.of(100.0, 10.0, 25), TypicalError.of(-5.0, 100.0, 25)
        (TypicalError(size=2.0, is_bound=False), TypicalError(size=2.0, is_bound=True))
        """
        if not risk >= -IMPOSSIBLE * risk_se:
            return cls.unknown()
        is_bound = not risk > risk_se
        return cls(float(np.sqrt((max(risk, 0.0) + is_bound * risk_se) / max(count, 1))), is_bound)


def per_signal(values: Any, ndim: int) -> Any:
    """Return one number for one signal, an array for several."""
    values = np.asarray(on_host(values) if on_device(values) else [on_host(value) for value in values])
    return values[0].item() if ndim == 1 else values


def like_input(graph: Graph, noisy: Any, signal: Any) -> Any:
    """Return the signal in the form of the `noisy` one that the caller passed."""
    return in_form_of(noisy, lambda: node_names(graph), signal)
