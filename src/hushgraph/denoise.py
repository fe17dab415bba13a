"""denoise: frame, weights, transform, thresholds, inverse and risk in one call."""

from __future__ import annotations

import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from scipy.sparse.linalg import cg

from hushgraph.adjacency import choose
from hushgraph.frame import ExactFrame, Frame, chebyshev_frame, exact_frame
from hushgraph.graph import Graph
from hushgraph.observation import Noisy
from hushgraph.risk import (
    Law,
    checked_sigma,
    default_probes,
    estimate_sigma,
    exact_weights,
    probes,
    smooth_weights,
    threshold_scale,
    weights_of,
)
from hushgraph.shrink import Rule
from hushgraph.sums import block_sum
from hushgraph.threshold import Candidates, Level, apply_thresholds, sure_thresholds
from hushgraph.transform import forward, inverse

Method = Literal["sgwt_deep", "sgwt_sure", "sgwt_scaled", "sgwt_exact"]
Missing = Literal["error", "drop", "fill"]
DEPTHS = (0, 2, 4, 6)  # low_scales tried by sgwt_deep
RISK_PROBES = 4  # probes through the whole estimator for risk_se


@dataclass(frozen=True, eq=False)
class Denoised:
    """What `denoise` returns.

    Attributes
    ----------
    signal : the denoised signal, in the form the noisy one had
    sigma : the noise level used
    risk : estimated total squared error of `signal` (signal-domain SURE), per signal
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
    thresholds: np.ndarray = field(repr=False)
    timings: dict = field(repr=False)
    details: dict = field(repr=False)
    labels: np.ndarray | None = field(default=None, repr=False)

    def to_series(self):
        """The denoised signal as a pandas Series (DataFrame for several signals) indexed by the graph's labels."""
        pandas = _pandas()
        if isinstance(self.signal, pandas.Series | pandas.DataFrame):
            return self.signal
        values = list(self.signal.values()) if isinstance(self.signal, dict) else self.signal
        index = list(self.signal) if isinstance(self.signal, dict) else self.labels
        return pandas.Series(values, index=index) if np.ndim(values) == 1 else pandas.DataFrame(values, index=index)


@dataclass(frozen=True)
class _Settings:
    rule: Rule
    beta: float | None
    level: Level
    candidates: Candidates
    n_probes: int | None
    law: Law
    seed: int


@dataclass(frozen=True)
class _Noise:
    """White noise of variance `variance` per node; or `per_node` standard deviations, and then variance is 1."""

    variance: float
    per_node: np.ndarray | None

    def total(self, n: int) -> float:
        return n * self.variance if self.per_node is None else float(block_sum(self.per_node**2))

    def weigh(self, values: np.ndarray) -> np.ndarray:
        """sigma_i^2 times values of nodes in the last axis."""
        return self.variance * values if self.per_node is None else self.per_node**2 * values


def denoise(
    graph: Graph,
    noisy,
    *,
    sigma=None,
    method: Method = "sgwt_deep",
    frame: Frame | None = None,
    weights=None,
    rule: Rule = "james_stein",
    beta: float | None = None,
    level: Level = "scale",
    candidates: Candidates = "all",
    n_probes: int | None = None,
    law: Law = "rademacher",
    seed: int = 0,
    missing: Missing = "error",
) -> Denoised:
    """Remove white Gaussian noise from a signal on a graph.

    Parameters
    ----------
    noisy : array (n,) or (n, m), pandas Series, dict, or Noisy
        Arrays go by position, Series and dicts by label; signals are columns.
    sigma : float or (n,) array, optional
        Standard deviation of the noise, possibly one per node. Estimated, with a warning, if not given.
    method : {"sgwt_deep", "sgwt_sure", "sgwt_scaled", "sgwt_exact"}
        "sgwt_sure" is the paper's method: Chebyshev-Jackson frame, Monte-Carlo weights, James-Stein thresholds at the
        minimum of SURE. "sgwt_scaled" scales thresholds by the local noise level of the coefficients. "sgwt_exact"
        uses eigenvectors instead of polynomials. "sgwt_deep" also looks below the paper's lowest band, as far as SURE
        finds useful.
    frame, weights : optional
        Your own frame and weights instead of those of the method ("sgwt_sure", "sgwt_scaled" and "sgwt_exact").
    rule, beta, level, candidates
        As in `sure_thresholds`.
    n_probes, law, seed
        As in `monte_carlo_weights`. Equal input gives equal bits.
    missing : {"error", "drop", "fill"}
        What NaN means. "drop": such nodes are taken out of the graph, and stay NaN. "fill": likewise, and then they get
        the values that make the result harmonic there (the weighted mean of the neighbours).

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.grid(40, 40)
    >>> clean = np.repeat([0.0, 10.0], 800)
    >>> noisy = clean + np.random.default_rng(0).normal(0, 2, 1600)
    >>> result = hg.denoise(graph, noisy, sigma=2)
    >>> bool(hg.snr(clean, result.signal) > hg.snr(clean, noisy) + 6)
    True
    """
    choose("method", method, get_args(Method))
    settings = _Settings(rule, beta, level, candidates, n_probes, law, seed)
    started, timings = time.perf_counter(), {}
    values, sigma = _values_and_sigma(graph, noisy, sigma, choose("missing", missing, get_args(Missing)))
    if frame is not None and frame.graph is not graph and frame.graph.hash != graph.hash:
        msg = "frame belongs to another graph than the one given"
        raise ValueError(msg)
    if method == "sgwt_deep" and (frame is not None or weights is not None):
        msg = "method='sgwt_deep' builds its own frames; with frame= or weights= say method='sgwt_sure'"
        raise ValueError(msg)
    known = ~np.isnan(values).reshape(len(values), -1).any(axis=1)
    if known.all():
        result = _denoise_known(graph, values, sigma, method, frame, weights, settings, timings)
    elif not known.any():
        msg = "the signal has no value at all: every node is missing in at least one column"
        raise ValueError(msg)
    else:
        result = _denoise_around(graph, values, sigma, method, frame, weights, settings, timings, known, missing)
    timings["total"] = time.perf_counter() - started
    return replace(result, signal=_like_input(graph, noisy, result.signal), labels=graph.labels)


def _denoise_around(graph, values, sigma, method, frame, weights, settings, timings, known, missing) -> Denoised:
    """Denoise on the nodes that have values, and put the result back."""
    if frame is not None or weights is not None:
        msg = "frame= and weights= do not go with missing values: the graph shrinks to the nodes that have them"
        raise ValueError(msg)
    kept_sigma = sigma[known] if isinstance(sigma, np.ndarray) else sigma
    result = _denoise_known(graph.subgraph(known), values[known], kept_sigma, method, None, None, settings, timings)
    signal = np.full_like(values, np.nan)
    signal[known] = result.signal
    if missing == "fill":
        signal[~known] = _harmonic(graph, signal, known)
    details = {**result.details, "missing": int((~known).sum()), "missing_policy": missing}
    return replace(result, signal=signal, sigma=sigma, details=details)


def _denoise_known(graph, values, sigma, method, frame, weights, settings: _Settings, timings) -> Denoised:
    note = None
    if sigma is None:
        with _timed(timings, "sigma"):
            sigma = estimate_sigma(graph, values)
        note = f"sigma was not given; estimated as {sigma:.6g} from the finest scale (an upper estimate on rough signals)"
        warnings.warn(note, stacklevel=4)
    per_node = sigma if isinstance(sigma, np.ndarray) else None
    noise = _Noise(1.0 if per_node is not None else sigma**2, per_node)
    planes = np.ascontiguousarray(values[None] if values.ndim == 1 else values.T)
    if method == "sgwt_deep":
        parts = [
            _threshold(_build_frame(graph, method, depth, timings), planes, noise, None, method, settings, timings)
            for depth in DEPTHS
        ]
        best = np.argmin([part["risk"] for part in parts], axis=0)  # per signal
        picked = [_risk_errors(_column(parts[b], m), planes[m : m + 1], noise, settings, timings) for m, b in enumerate(best)]
        extra = {
            "low_scales": np.array(DEPTHS)[best],
            "risk_by_low_scales": {d: p["risk"] for d, p in zip(DEPTHS, parts, strict=True)},
        }
    else:
        frame = _build_frame(graph, method, 0, timings) if frame is None else frame
        part = _threshold(frame, planes, noise, weights, method, settings, timings)
        picked, extra = [_risk_errors(part, planes, noise, settings, timings)], {}
    return _result(picked, values, sigma, method, extra, note, timings)


def _build_frame(graph, method, low_scales, timings) -> Frame:
    with _timed(timings, "frame"):
        return exact_frame(graph) if method == "sgwt_exact" else chebyshev_frame(graph, low_scales=low_scales)


def _threshold(frame, planes, noise: _Noise, weights, method, settings: _Settings, timings) -> dict:
    """One frame's estimate of all signals, with its signal-domain risk."""
    n = planes.shape[1]
    with _timed(timings, "weights"):
        eps, eps_bands, raw, signal_weights = _weights(frame, noise, weights, settings)
    with _timed(timings, "forward"):
        F = forward(frame, planes)
    with _timed(timings, "thresholds"):
        scaled = False
        if method in ("sgwt_scaled", "sgwt_deep"):
            exact = isinstance(frame, ExactFrame)
            scaled = np.sqrt(np.maximum(raw if exact else smooth_weights(frame.graph, raw), 0.0))
        options = {"rule": settings.rule, "beta": settings.beta}
        columns = np.moveaxis(F, 0, 2)
        t = sure_thresholds(
            columns, raw, sigma=noise.variance**0.5, scaled=scaled, level=settings.level, candidates=settings.candidates, **options
        )
        slope, scale = np.empty_like(F), threshold_scale(raw, scaled)
        for m in range(len(F)):
            apply_thresholds(F[m], t[:, m], slope[m], scale=scale, **options)
        divergence = np.array([sum(block_sum(w * s) for w, s in zip(signal_weights, part, strict=True)) for part in slope])
    with _timed(timings, "inverse"):
        signal = inverse(frame, F)  # F holds the thresholded coefficients now
    residual = block_sum(np.square(signal - planes, dtype=np.float64).T)
    risk = residual - noise.total(n) + 2 * noise.variance * divergence
    return {"frame": frame, "t": t, "signal": signal, "slope": slope, "risk": risk, "divergence": divergence, "eps": eps,
            "eps_bands": eps_bands, "given": weights is not None}  # fmt: skip


def _weights(frame, noise: _Noise, weights, settings: _Settings):
    """Probes, their transforms, and the weights for coefficient and signal risk."""
    n, exact = frame.graph.n, isinstance(frame, ExactFrame)
    if weights is not None and np.shape(weights) != (frame.n_scales, n):
        msg = f"weights must have shape {(frame.n_scales, n)}, as monte_carlo_weights of the same frame returns them; got {np.shape(weights)}"
        raise ValueError(msg)
    count = settings.n_probes or default_probes(n)
    eps = probes(n, min(count, RISK_PROBES) if exact or weights is not None else count, law=settings.law, seed=settings.seed)
    eps = eps if noise.per_node is None else eps * noise.per_node
    bands = forward(frame, eps)
    if weights is not None:
        raw = np.asarray(weights, dtype=np.float64)
        return eps, bands, raw, raw
    if exact:
        return eps, bands, exact_weights(frame, sigma=noise.per_node), exact_weights(frame, sigma=noise.per_node, domain="signal")
    raw = weights_of(frame, eps, bands, domain="coefficients")
    signal_weights = weights_of(frame, eps, bands, domain="signal") if frame.laplacian == "random_walk" else raw
    return eps, bands, raw, signal_weights


def _risk_errors(part: dict, planes, noise: _Noise, settings: _Settings, timings) -> dict:
    """risk_se and probe_se, from tr((Sigma J)^2) by a few probes through the Jacobian J = S diag(slope) W."""
    n, frame, eps = planes.shape[1], part["frame"], part["eps"][:RISK_PROBES]
    with _timed(timings, "risk error"):
        traces = np.array([_trace_of_square(frame, slope, eps, part["eps_bands"][:RISK_PROBES], noise) for slope in part["slope"]])
    residual = noise.weigh(np.square(part["signal"] - planes, dtype=np.float64))
    fourth = n * noise.variance**2 if noise.per_node is None else float(block_sum(noise.per_node**4))
    variance = 4 * block_sum(residual.T) + 4 * traces - 2 * fourth
    own = 0.0 if settings.law == "gaussian" else (noise.variance * part["divergence"]) ** 2 / n  # at most sum_p M_pp^2
    probe_variance = 8 * np.maximum(traces - own, 0.0) / len(part["eps"])
    exact = isinstance(frame, ExactFrame)
    probe_se = np.full(len(traces), np.nan) if part["given"] else np.zeros(len(traces)) if exact else np.sqrt(probe_variance)
    return {**part, "risk_se": np.sqrt(np.maximum(variance, 0.0)), "probe_se": probe_se, **_kept_if_better(part, planes, noise)}


def _trace_of_square(frame, slope, eps, eps_bands, noise: _Noise) -> float:
    """tr((Sigma J)^2) = mean of <J' eps, Sigma J eps> (J is symmetric unless the Laplacian is a random walk's)."""
    back_bands = slope * forward(frame, eps, transposed=True) if frame.laplacian == "random_walk" else None
    # with one probe, on a large graph, the product takes the place of the slopes: this is their last use
    ahead = inverse(
        frame, np.multiply(slope, eps_bands.astype(slope.dtype, copy=False), out=slope[None] if len(eps) == 1 else None)
    )
    back = ahead if back_bands is None else inverse(frame, back_bands, transposed=True)
    return noise.variance * float(np.mean(block_sum(noise.weigh(np.multiply(ahead, back, dtype=np.float64)).T)))


def _kept_if_better(part: dict, planes, noise: _Noise) -> dict:
    """Signals whose estimated risk exceeds that of doing nothing are returned as they came."""
    worse = part["risk"] > noise.total(planes.shape[1])
    return {
        "signal": np.where(worse[:, None], planes, part["signal"]),
        "risk": np.where(worse, noise.total(planes.shape[1]), part["risk"]),
        "kept": worse,
    }


def _column(part: dict, m: int) -> dict:
    """The part of one signal."""
    row = slice(m, m + 1)
    return {**part, "t": part["t"][:, row], "signal": part["signal"][row], "slope": part["slope"][row], "risk": part["risk"][row],
            "divergence": part["divergence"][row]}  # fmt: skip


def _result(picked: list[dict], values, sigma, method, extra, note, timings) -> Denoised:
    def joined(key):
        together = np.concatenate([part[key] for part in picked])
        return together if values.ndim == 2 else float(together[0])

    signal = np.concatenate([part["signal"] for part in picked])
    frames = [part["frame"] for part in picked]
    kept = np.concatenate([part["kept"] for part in picked])
    notes = [note] * (note is not None)
    if kept.any():
        notes.append(
            f"{int(kept.sum())} of {len(kept)} signals were returned unchanged: their estimated risk exceeded that of the noise"
        )
    thresholds = [part["t"][:, m] for part in picked for m in range(part["t"].shape[1])]
    if len({len(t) for t in thresholds}) == 1:
        thresholds = np.stack(thresholds, axis=1) if values.ndim == 2 else thresholds[0]
    details = {
        "frame": frames[0] if len(set(map(id, frames))) == 1 else frames,
        "n_probes": len(picked[0]["eps"]),
        "notes": notes,
        **extra,
    }
    details |= {"n_scales": frames[0].n_scales, "tightness_defect": frames[0].tightness_defect, "divergence": joined("divergence")}
    return Denoised(
        signal[0] if values.ndim == 1 else signal.T,
        sigma,
        joined("risk"),
        joined("risk_se"),
        joined("probe_se"),
        method,
        thresholds,
        timings,
        details,
    )


def _values_and_sigma(graph: Graph, noisy, sigma, missing: Missing):
    if graph.n == 0:
        msg = "the graph has no nodes: there is nothing to denoise"
        raise ValueError(msg)
    if isinstance(noisy, Noisy):
        noisy.check_belongs_to(graph)
        if sigma is not None and sigma != noisy.sigma:
            msg = f"sigma travels with the noisy signal ({noisy.sigma:g}); leave sigma= out, got {sigma!r}"
            raise ValueError(msg)
        noisy, sigma = noisy.values, noisy.sigma
    values = graph.align(noisy, missing_ok=missing != "error")
    if sigma is not None and ((hasattr(sigma, "index") and hasattr(sigma, "to_numpy")) or isinstance(sigma, dict)):
        sigma = graph.align(sigma)
    return values, None if sigma is None else checked_sigma(sigma, graph.n)


def _harmonic(graph: Graph, signal, known) -> np.ndarray:
    """Values of the unknown nodes that solve L f = 0 there; components without any known node stay NaN."""
    L = graph.laplacian()
    reached = np.isin(graph.components, graph.components[known])
    unknown = ~known & reached
    filled = np.full((len(signal), *signal.shape[1:]), np.nan)
    matrix, right = L[unknown][:, unknown], -(L[unknown][:, known] @ signal[known].astype(np.float64))
    columns = [cg(matrix, b, rtol=1e-10)[0] for b in right.reshape(len(right), -1).T] if unknown.any() else []
    if columns:
        filled[unknown] = np.stack(columns, axis=1).reshape(right.shape)
    return filled[~known]


def _like_input(graph: Graph, noisy, signal):
    """Series in, Series out (in the order of the input); dict in, dict out; arrays otherwise."""
    names = range(graph.n) if graph.labels is None else graph.labels.tolist()
    if isinstance(noisy, dict):
        place = {name: i for i, name in enumerate(names)}
        return {name: signal[place[name]] for name in noisy}
    if hasattr(noisy, "index") and hasattr(noisy, "to_numpy"):
        pandas = _pandas()
        if signal.ndim == 1:
            return pandas.Series(signal, index=list(names), name=noisy.name).reindex(noisy.index)
        return pandas.DataFrame(signal, index=list(names), columns=noisy.columns).reindex(noisy.index)
    return signal


def _pandas():
    try:
        import pandas
    except ImportError as error:
        msg = "pandas is needed for Series and DataFrames: pip install 'hushgraph[pandas]'"
        raise ImportError(msg) from error
    return pandas


@contextmanager
def _timed(timings: dict, stage: str):
    start = time.perf_counter()
    yield
    timings[stage] = timings.get(stage, 0.0) + time.perf_counter() - start
