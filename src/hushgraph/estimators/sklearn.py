"""WaveletDenoiser: `denoise` as a scikit-learn transformer. Here, and only here, signals are rows for the caller."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from hushgraph._errors import InputError, MissingPackageError
from hushgraph._validation import checked_sigma, refuse_device
from hushgraph.datasets import path
from hushgraph.estimators.denoising import denoise
from hushgraph.estimators.methods import MethodName
from hushgraph.estimators.result import Denoised
from hushgraph.estimators.settings import Settings
from hushgraph.graphs import Graph, as_graph, by_label, is_labelled, node_names
from hushgraph.wavelets import Law, Rule, noise_level_of

try:
    from sklearn import get_config
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    msg = "WaveletDenoiser needs scikit-learn 1.6 or newer: pip install --upgrade 'hushgraph[sklearn]'"
    raise MissingPackageError(msg) from error


class WaveletDenoiser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Denoise each row of X, a signal with one feature per node of the graph.

    Columns of a DataFrame are matched to the labels of the graph, in whatever order they come, and refused if they are other labels. The
    columns of the result are in the order of X or, if `set_output` asks for a table, in that of `fit`. Arrays go by position, and so do
    columns with text names if the graph has no labels.

    Parameters
    ----------
    graph : Graph, optional
        If not given, features follow each other in a row, as the values of a time series do: each is joined to the next one.
    sigma : float or (n,) array, optional
        Standard deviation of the noise; estimated from all rows in `fit` if not given.
    method : str
        As in `hushgraph.denoise`, like all parameters below.
    rule : {"soft", "james_stein", "power", "hard"}
        The thresholding rule.
    beta : float, optional
        The exponent of the rule "power".
    n_probes : int, optional
        Number of random probes.
    law : {"rademacher", "gaussian"}
        The law of the probes.
    seed : int
        Seed of the probes.
    nonnegative : bool
        Whether the signals cannot be negative.
    refine : bool, optional
        Whether there is a second stage.

    Attributes
    ----------
    graph_ : Graph
        The graph that is used.
    sigma_ : float or (n,) array
        The noise level that is used.

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.grid(8, 8)
    >>> X = np.random.default_rng(0).normal(5, 1, (3, 64))
    >>> denoiser = hg.WaveletDenoiser(graph, sigma=1.0).fit(X)
    >>> denoiser.transform(X).shape
    (3, 64)
    >>> denoiser.score(X) > -1.0  # the squared error of a value is below that of the noise
    True
    """

    def __init__(
        self,
        graph: Graph | None = None,
        *,
        sigma: Any = None,
        method: MethodName = "auto",
        rule: Rule = "james_stein",
        beta: float | None = None,
        n_probes: int | None = None,
        law: Law = "rademacher",
        seed: int = 0,
        nonnegative: bool = False,
        refine: bool | None = None,
    ) -> None:
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

    def fit(self, X: Any, y: Any = None) -> Any:
        """Check the settings and X against the graph, and determine the noise level.

        Parameters
        ----------
        X : (n_signals, n) array_like
            Noisy signals in rows.
        y : None
            Ignored.

        Returns
        -------
        WaveletDenoiser
            The estimator itself.
        """
        refuse_device(X=X)
        values = validate_data(self, X, dtype=[np.float64, np.float32])
        self.graph_ = path(values.shape[1]) if self.graph is None else as_graph(self.graph)
        if values.shape[1] != self.graph_.n:
            expected, hint = f"(n_signals, {self.graph_.n})", "rows are signals here"
            text = f"X needs one column per node: expected {expected}, got {values.shape}; {hint}"
            raise InputError.about(argument="X", expected=expected, got=values.shape, hint=hint, text=text)
        order = self._node_columns(X)
        self._order, self._names = order, None if self._is_nameless(X) else list(X.columns)
        Settings(**self._settings()).check()
        if self.sigma is None:
            self.sigma_ = noise_level_of(self.graph_, values[:, order].T)
            warnings.warn(f"sigma was not given; estimated as {self.sigma_.in_words}", stacklevel=2)
        else:
            sigma = self.graph_.aligned("sigma", self.sigma, one=True) if is_labelled(self.sigma) else self.sigma
            self.sigma_ = checked_sigma(sigma, self.graph_.n)
        return self

    def transform(self, X: Any) -> Any:
        """Return the denoised rows; the columns of a table have the names, and so the order, of those in `fit`.

        Parameters
        ----------
        X : (n_signals, n) array_like
            Noisy signals in rows.

        Returns
        -------
        (n_signals, n) array or table
            Denoised signals in rows.
        """
        order, result = self._denoise(X)
        signals = np.empty(result.signal.shape[::-1], dtype=result.signal.dtype)
        signals[:, order if _form(self) == "default" else self._order] = result.signal.T
        return signals

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns passed to `fit`, integers too if they are labels of the graph; x0, x1, ... for an array.

        Parameters
        ----------
        input_features : array of str, optional
            As in scikit-learn.

        Returns
        -------
        array of str or int
            Names of the columns.
        """
        names = super().get_feature_names_out(input_features)
        if input_features is not None or self._names is None:
            return names
        return np.array(
            list(map(str, self._names)) if _form(self) == "polars" else self._names, dtype=object
        )  # polars has text alone

    def risk(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimated total squared error of each denoised row (signal-domain SURE), and its standard error.

        Parameters
        ----------
        X : (n_signals, n) array_like
            Noisy signals in rows.

        Returns
        -------
        tuple of two (n_signals,) arrays
            The risks and their standard errors.
        """
        result = self._denoise(X)[1]
        return np.asarray(result.risk), np.asarray(result.risk_se)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the estimated mean squared error of a denoised value: larger is better, and no truth is needed.

        It compares methods and their settings at one noise level, in GridSearchCV, say. It cannot judge sigma, which it assumes to be
        right: give sigma, or leave it to `fit`. `hushgraph.mse` compares with a truth.

        Parameters
        ----------
        X : (n_signals, n) array_like
            Noisy signals in rows.
        y : None
            Ignored.

        Returns
        -------
        float
            The score.
        """
        return -float(np.mean(self.risk(X)[0])) / self.graph_.n

    def _settings(self) -> dict[str, Any]:
        """Return the arguments of `denoise` that are parameters of this estimator."""
        names = ("method", "rule", "beta", "n_probes", "law", "seed", "nonnegative", "refine")
        return {name: getattr(self, name) for name in names}

    def _node_columns(self, X: Any) -> np.ndarray:
        """Return the column of X that belongs to each node."""
        position = np.arange(self.graph_.n)
        return (
            position if self._is_nameless(X) else by_label("the columns of X", node_names(self.graph_), list(X.columns), position)
        )

    def _is_nameless(self, X: Any) -> bool:
        """Return whether columns of X are matched by position."""
        columns = list(getattr(X, "columns", ()))
        return not columns or self.graph is None or (self.graph.labels is None and all(isinstance(name, str) for name in columns))

    def _denoise(self, X: Any) -> tuple[np.ndarray, Denoised]:
        """Return (the column of X that belongs to each node, the rows denoised as columns in node order)."""
        check_is_fitted(self, "sigma_")
        refuse_device(X=X)
        values = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        order = self._node_columns(X)
        return order, denoise(self.graph_, values[:, order].T, sigma=self.sigma_, **self._settings())


def _form(estimator: Any) -> str:
    """Return the container in which scikit-learn wraps the result of `transform`: "pandas", "polars", or "default" for none."""
    return getattr(estimator, "_sklearn_output_config", {}).get("transform") or get_config()["transform_output"]
