"""WaveletDenoiser: `denoise` with the manners of scikit-learn. Here, and only here, signals are rows."""

from __future__ import annotations

import warnings

import numpy as np

from hushgraph.checks import refuse_device
from hushgraph.denoise import Method, denoise
from hushgraph.graph import Graph, checked_graph
from hushgraph.risk import Law, estimate_sigma
from hushgraph.shrink import Rule

try:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    msg = "WaveletDenoiser needs scikit-learn 1.6 or newer: pip install --upgrade 'hushgraph[sklearn]'"
    raise ImportError(msg) from error


class WaveletDenoiser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Denoise each row of X, a signal with one feature per node of the graph.

    Parameters
    ----------
    graph : Graph
    sigma : float or (n,) array, optional
        Standard deviation of the noise; estimated from all rows in `fit` if not given.
    method, rule, beta, n_probes, law, seed, nonnegative, refine
        As in `hushgraph.denoise`.

    Attributes
    ----------
    sigma_ : the noise level used
    risk_, risk_se_ : estimated squared error of each row transformed last, and its standard error

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.grid(8, 8)
    >>> X = np.random.default_rng(0).normal(5, 1, (3, 64))
    >>> hg.WaveletDenoiser(graph, sigma=1.0).fit_transform(X).shape
    (3, 64)
    """

    def __init__(
        self,
        graph: Graph | None = None,
        *,
        sigma=None,
        method: Method = "auto",
        rule: Rule = "james_stein",
        beta: float | None = None,
        n_probes: int | None = None,
        law: Law = "rademacher",
        seed: int = 0,
        nonnegative: bool = False,
        refine: bool | None = None,
    ):
        self.graph = graph
        self.sigma = sigma
        self.method = method
        self.rule = rule
        self.beta = beta
        self.n_probes = n_probes
        self.law = law
        self.seed = seed
        self.nonnegative = nonnegative
        self.refine = refine

    def fit(self, X, y=None):
        """Check X against the graph and settle the noise level."""
        refuse_device(X=X)
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        if self.graph is None:
            msg = "WaveletDenoiser needs the graph its features live on: WaveletDenoiser(graph)"
            raise ValueError(msg)
        if X.shape[1] != checked_graph(self.graph).n:
            msg = f"X needs one column per node: expected (n_signals, {self.graph.n}), got {X.shape}; rows are signals here"
            raise ValueError(msg)
        names = getattr(self, "feature_names_in_", None)
        if names is not None and self.graph.labels is not None and not np.array_equal(names, self.graph.labels):
            msg = "the columns of X must be the labels of the graph, in its order; pass X[graph.labels]"
            raise ValueError(msg)
        self.sigma_ = self.sigma
        if self.sigma is None:
            self.sigma_ = estimate_sigma(self.graph, X.T)
            warnings.warn(f"sigma was not given; estimated as {self.sigma_:.6g} from the finest scale", stacklevel=2)
        self._denoise(X[:1], sigma=self.sigma_)  # refuses a bad setting
        return self

    def transform(self, X):
        """The denoised rows."""
        check_is_fitted(self, "sigma_")
        refuse_device(X=X)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        result = self._denoise(X, sigma=self.sigma_)
        self.risk_, self.risk_se_ = result.risk, result.risk_se
        return np.ascontiguousarray(result.signal.T)

    def _denoise(self, X, sigma=None):
        return denoise(
            self.graph,
            X.T,
            sigma=sigma,
            method=self.method,
            rule=self.rule,
            beta=self.beta,
            n_probes=self.n_probes,
            law=self.law,
            seed=self.seed,
            nonnegative=self.nonnegative,
            refine=self.refine,
        )
