"""What `denoise` returns, and the expected error of each node: SURE averaged over a few hops.

SURE is a sum over nodes, and each of its terms is unbiased for that node's squared error, but alone it is nearly all noise.
Averaged over the nodes around, with the weights of a short lazy walk, it says where a map can be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from hushgraph.arrays import beside, on_device, on_host
from hushgraph.checks import checked_count
from hushgraph.graph import Graph
from hushgraph.interop import node_names
from hushgraph.labelled import in_form_of, labels_and_values, pandas_module

HOPS = 16


@dataclass(frozen=True, eq=False)
class NodeRisk:
    """Terms of SURE (m, n) and variance of the estimate (m, n), on the graph that was denoised.

    `known` are its nodes among those of the whole graph (None: all), and `shape` is that of the signal. Where `posterior` is
    true the variance is a posterior one: it is the expected squared error itself.
    """

    graph: Graph
    sure: np.ndarray
    variance: np.ndarray
    shape: tuple[int, ...]
    known: np.ndarray | None = None
    posterior: np.ndarray | None = None

    def expected_error(self, *, hops: int = HOPS) -> np.ndarray:
        """Root of the mean squared error around each node, in the shape of the signal; NaN where there was no value.

        The squared error of an estimate is its variance, which the probes give, plus a squared bias, which is what is left of
        SURE: averaged around the node, not negative, and scaled so that all nodes together have the risk of the whole.
        """
        hops = checked_count("hops", hops, 0)
        if on_device(self.sure):
            here = replace(self, sure=on_host(self.sure), variance=on_host(self.variance))
            return beside(here.expected_error(hops=hops), self.sure)
        near = sparse.csr_array(
            (np.ones_like(self.graph.adjacency.data), self.graph.adjacency.indices, self.graph.adjacency.indptr),
            shape=self.graph.adjacency.shape,
        )
        terms = np.concatenate([self.sure, self.variance, np.ones((1, self.graph.n))]).T
        for _ in range(hops):
            terms = terms + near @ terms
            terms /= terms[:, -1:].max()
        sure, variance = np.split((terms[:, :-1] / terms[:, -1:]).T, 2)
        bias = np.maximum(sure - variance, 0.0)
        left = np.maximum(self.sure.sum(axis=1) - variance.sum(axis=1), 0.0)
        share = np.divide(left, bias.sum(axis=1), out=np.zeros(len(bias)), where=bias.any(axis=1))
        error = np.sqrt(variance + np.minimum(share, 1.0)[:, None] * bias)
        if self.posterior is not None:
            error[self.posterior] = np.sqrt(self.variance[self.posterior])
        return _placed(error, self.known, self.shape)


def _placed(error: np.ndarray, known: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    """(m, known nodes) to the shape of the signal."""
    if known is not None:
        whole = np.full((len(error), len(known)), np.nan)
        whole[:, known] = error
        error = whole
    return error.reshape(shape) if len(error) == 1 else error.T


@dataclass(frozen=True, eq=False)
class Denoised:
    """What `denoise` returns.

    Attributes
    ----------
    signal : the denoised signal, in the form the noisy one had
    sigma : the noise level used
    risk : estimated total squared error of `signal` (signal-domain SURE), per signal. Unbiased at fixed thresholds; since the
        thresholds were chosen to make SURE small, it is optimistic: by about one `risk_se` on street maps, and by up to four
        for columns denoised together when the noise is weak
    risk_se : standard error of `risk` as an estimate of the actual squared error
    probe_se : its part that comes from the random probes alone (an upper bound; 0 for exact weights, NaN for given ones)
    method, thresholds : what was done; thresholds are (n_scales,) or (n_scales, m)
    timings : seconds per stage
    details : everything else worth knowing (scales, probes, frame, notes)
    """

    signal: Any = field(repr=False)
    sigma: Any
    risk: Any
    risk_se: Any
    probe_se: Any
    method: str
    thresholds: Any = field(repr=False)
    timings: dict = field(repr=False)
    details: dict = field(repr=False)
    labels: np.ndarray | None = field(default=None, repr=False)
    node_risk: Any = field(default=None, repr=False)

    def expected_error(self, *, hops: int = HOPS) -> Any:
        """Expected error of each value (root mean square), from SURE averaged over that many hops around its node.

        In the form of `signal`: a Series or DataFrame with its index, a dict with its labels, an array in node order. Fewer hops
        are more local and noisier. Of the estimate before it was clipped or rounded.
        """
        if self.node_risk is None:
            msg = "this result does not hold the terms of its risk; take one that denoise returned"
            raise ValueError(msg)
        error = self.node_risk.expected_error(hops=hops)
        return in_form_of(self.signal, list(range(len(error))) if self.labels is None else self.labels.tolist(), error)

    def on_host(self) -> Denoised:
        """The same with NumPy's arrays; a result on a GPU is copied, any other stays as it is."""
        terms = self.node_risk
        if terms is not None:
            terms = replace(terms, sure=on_host(terms.sure), variance=on_host(terms.variance))
        return replace(self, signal=on_host(self.signal), sigma=on_host(self.sigma), node_risk=terms)

    def to_series(self):
        """The denoised signal as a pandas Series (DataFrame for several signals) indexed by the graph's labels."""
        pandas = pandas_module()
        if isinstance(self.signal, pandas.Series | pandas.DataFrame):
            return self.signal
        index, values = labels_and_values("signal", on_host(self.signal))
        index = self.labels if index is None else index
        return pandas.Series(values, index=index) if np.ndim(values) == 1 else pandas.DataFrame(values, index=index)


class TypicalError(NamedTuple):
    """Root mean square error of a value, or a bound on it where the estimate drowns in its own standard error."""

    size: float
    is_bound: bool

    @classmethod
    def of(cls, risk: float, risk_se: float, count: float) -> TypicalError:
        """From the estimated total squared error of `count` values; that may fall below 0, an error may not.

        >>> TypicalError.of(100.0, 10.0, 25), TypicalError.of(-5.0, 100.0, 25)
        (TypicalError(size=2.0, is_bound=False), TypicalError(size=2.0, is_bound=True))
        """
        is_bound = not risk > risk_se
        return cls(float(np.sqrt((max(risk, 0.0) + is_bound * risk_se) / max(count, 1))), is_bound)


def per_signal(values, ndim: int):
    """One number for one signal, an array for several."""
    values = np.asarray(on_host(values) if on_device(values) else [on_host(value) for value in values])
    return values[0].item() if ndim == 1 else values


def like_input(graph: Graph, noisy, signal):
    """`in_form_of` what the caller passed."""
    return in_form_of(noisy, node_names(graph), signal)
