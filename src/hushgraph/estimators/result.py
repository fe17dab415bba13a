"""Denoised, the result of `denoise`, and the expected error of each node: SURE averaged over a few hops.

SURE is a sum over nodes, and each of its terms is unbiased for that node's squared error, but alone it is nearly all noise.
Averaged over the nodes nearby, with the probabilities of a short random walk, it says where a map can be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from hushgraph._arrays import on_device, on_host, placed_like
from hushgraph._errors import InputError
from hushgraph._validation import checked_count
from hushgraph.estimators.risk import IMPOSSIBLE
from hushgraph.graphs import Graph, in_form_of, labels_and_values, node_names, pandas_module

DEFAULT_HOPS = 16


@dataclass(frozen=True, eq=False)
class NodeRisk:
    """Terms of SURE (m, n) and variance of the estimate (m, n), on the graph that was denoised.

    `has_value` marks its nodes among those of the whole graph (None: all), and `shape` is that of the signal. For the signals that
    `posterior` marks, the variance is a posterior variance: it is the expected squared error itself.
    """

    graph: Graph
    sure: np.ndarray
    variance: np.ndarray
    shape: tuple[int, ...]
    has_value: np.ndarray | None = None
    posterior: np.ndarray | None = None

    def expected_error(self, *, hops: int = DEFAULT_HOPS, bounds: np.ndarray | None = None) -> np.ndarray:
        """Return the root of the mean squared error around each node, in the shape of the signal; NaN where there was no value.

        A signal whose errors are all below a tenth of its entry of `bounds` gets that entry; one whose entry is NaN gets NaN.

        The squared error of an estimate is its variance, which the probes give, plus a squared bias, which is the rest of
        SURE: averaged around the node, not negative, and scaled so that all nodes together have the risk of the whole.
        """
        hops = checked_count("hops", hops, 0)
        if on_device(self.sure):
            host_risk = replace(self, sure=on_host(self.sure), variance=on_host(self.variance))
            return placed_like(host_risk.expected_error(hops=hops, bounds=bounds), self.sure)
        walk = walk_matrix(self.graph)
        terms = np.concatenate([self.sure, self.variance]).T
        for _ in range(hops):
            terms = walk @ terms
        sure, variance = np.split(terms.T, 2)
        bias = np.maximum(sure - variance, 0.0)
        total_bias = np.maximum(self.sure.sum(axis=1) - variance.sum(axis=1), 0.0)
        share = np.divide(total_bias, bias.sum(axis=1), out=np.zeros(len(bias)), where=bias.any(axis=1))
        error = np.sqrt(variance + np.minimum(share, 1.0)[:, None] * bias)
        if self.posterior is not None:
            error[self.posterior] = np.sqrt(self.variance[self.posterior])
        if bounds is not None:
            replaced = ~(error.max(axis=1, initial=0.0) >= 0.1 * bounds)
            error[replaced] = bounds[replaced, None]
        return _in_signal_shape(error, self.has_value, self.shape)


def walk_matrix(graph: Graph) -> sparse.csr_array:
    """Return the probabilities of one hop of a Metropolis walk: 1 / (1 + the larger degree) along an edge, and the rest stays.

    Rows and columns sum to 1, so an average keeps the sum over all nodes. A dense part neither holds the walk nor draws it in: in the
    long run every node of a component is as likely as any other. A node without neighbors keeps its value.
    """
    adjacency = graph.adjacency
    neighbors = np.diff(adjacency.indptr)
    larger = np.maximum(np.repeat(neighbors, neighbors), neighbors[adjacency.indices])
    hop = sparse.csr_array((1 / (1.0 + larger), adjacency.indices, adjacency.indptr), shape=adjacency.shape)
    return sparse.csr_array(hop + sparse.diags_array(1.0 - hop.sum(axis=1)))


def _in_signal_shape(error: np.ndarray, has_value: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    """Return errors (m, nodes with a value) in the shape of the signal, NaN at the other nodes."""
    if has_value is not None:
        whole = np.full((len(error), len(has_value)), np.nan)
        whole[:, has_value] = error
        error = whole
    return error.reshape(shape) if len(error) == 1 else error.T


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
        Estimated total squared error of each signal (signal-domain SURE). It is unbiased at fixed thresholds. Since thresholds are
        chosen to make SURE small, it is optimistic: by about one `risk_se` on street maps, and by up to four for columns denoised
        together when the noise is weak.
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

    def expected_error(self, *, hops: int = DEFAULT_HOPS) -> Any:
        """Return the expected error of each value (root mean square): SURE averaged over the nodes nearby.

        It is the error of the estimate before clipping and rounding. It is NaN for a signal for which sigma is too large
        (`details["sigma_too_large"]`). Where hardly any error can be seen at any node, it is the bound that the standard error of the
        risk gives.

        Parameters
        ----------
        hops : int
            Length of the random walk that SURE is averaged over. Fewer hops are more local and noisier.

        Returns
        -------
        array, Series, DataFrame, dict or DataArray
            The errors in the form of `signal`.
        """
        if self.node_risk is None:
            msg = "this result does not hold the terms of its risk; take one that denoise returned"
            raise InputError(msg)
        risks, errors = np.atleast_1d(self.risk), np.atleast_1d(self.risk_se)
        bounds = np.sqrt((np.maximum(risks, 0.0) + errors) / max(self.n_values, 1))
        bounds[np.broadcast_to(self.details.get("sigma_too_large", False), bounds.shape)] = np.nan
        error = self.node_risk.expected_error(hops=hops, bounds=bounds)
        return in_form_of(self.signal, lambda: list(range(len(error))) if self.labels is None else self.labels.tolist(), error)

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
    def typical_errors(self) -> list[TypicalError]:
        """The root mean square error of a value, for each `risk`, as far as it is known."""
        risks, errors = np.atleast_1d(self.risk), np.atleast_1d(self.risk_se)
        doubts = np.broadcast_to(self.details.get("sigma_too_large", False), risks.shape)
        parts = zip(risks, errors, doubts, strict=True)
        return [self._trusted(TypicalError.of(risk, se, self.n_values), bool(doubt)) for risk, se, doubt in parts]

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
        terms = self.node_risk
        if terms is not None:
            terms = replace(terms, sure=on_host(terms.sure), variance=on_host(terms.variance))
        return replace(self, signal=on_host(self.signal), sigma=on_host(self.sigma), node_risk=terms)

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
