"""denoise: frame, weights, transform, thresholds, inverse and risk in one call."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from scipy.sparse.linalg import cg

from hushgraph._errors import InputError, Sentence
from hushgraph.arrays import beside, namespace, on_device
from hushgraph.auto import Combined, denoise_combined
from hushgraph.checks import (
    LARGEST_FLOAT32,
    checked_count,
    checked_real_array,
    checked_seed,
    checked_sigma,
    choose,
)
from hushgraph.frame import Frame
from hushgraph.graph import Graph, checked_graph
from hushgraph.labelled import is_labelled
from hushgraph.observation import Noisy
from hushgraph.progress import Watcher, checked_watcher, nth, timed, watching
from hushgraph.result import IMPOSSIBLE, Denoised, NodeRisk, like_input, per_signal
from hushgraph.risk import Law, estimate_sigma
from hushgraph.sgwt import Noise, Settings, average
from hushgraph.shrink import Rule, sure_exponent
from hushgraph.threshold import Candidates, Level
from hushgraph.transform import checked_frame_of
from hushgraph.wavelets import denoise_wavelets

Method = Literal["auto", "let", "counts", "sgwt_deep", "sgwt_sure", "sgwt_scaled", "sgwt_exact", "sgwt_block", "sgwt_beta"]
Missing = Literal["error", "drop", "fill"]
Columns = Literal["separate", "path"]
_KEPT_PRODUCT = 2**19  # nodes
_OF_ONE = (
    "weights",
    "sets",
    "risk_alone",
    "refined",
    "chosen",
    "divergence",
)  # details of one product graph, no use for the mean of several
_ON_HOST = ("counts", "sgwt_block", "sgwt_beta")  # methods that a GPU does not help
TOO_LARGE = (
    "sigma is too large: a scale of the values, or all of them, vary less than noise of this sigma would; "
    "risk and expected errors are worth nothing then. Pass the standard deviation of the noise, not its variance"
)
IMPOSSIBLE_RISK = (
    f"the estimated risk is more than {IMPOSSIBLE:g} of its standard errors below 0, so no error is claimed: "
    "there is hardly any signal, or sigma is too large"
)
COLUMN_WEIGHTS = (0.25, 4.0, 64.0)  # of the edges between neighbouring columns; columns="path" takes the mean of the three


def denoise(
    graph: Graph,
    noisy,
    *,
    sigma=None,
    method: Method = "auto",
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
    columns: Columns | Graph | None = None,
    nonnegative: bool = False,
    refine: bool | None = None,
    integer: bool = False,
    progress: Watcher | None = None,
) -> Denoised:
    """Remove white Gaussian noise from a signal on a graph.

    Parameters
    ----------
    noisy : array (n,) or (n, m), Mapping, Series, DataFrame, DataArray, or Noisy
        Arrays go by position, all that has labels by label (see `Graph.align`); signals are columns, and the result has the form of the
        input: a dict for a Mapping. A CuPy array is denoised on its GPU; the result is a CuPy array on the same GPU.
    sigma : float or (n,) array, optional
        Standard deviation of the noise, possibly one per node. Estimated, with a warning, if not given.
    method : {"auto", "let", "counts", "sgwt_deep", "sgwt_sure", "sgwt_scaled", "sgwt_exact", "sgwt_block", "sgwt_beta"}
        "auto" combines many elementary estimates by their estimated risk, as many as the graph's size allows, and says in
        `details` what it did and why. "let" is one such combination, at the cost of a few transforms, for graphs of any
        size. "counts" is an empirical-Bayes estimate for signals that cannot be negative; with nonnegative=True "auto"
        asks it too. The others threshold wavelets.
        "sgwt_sure" is the paper's method: Chebyshev-Jackson frame, Monte-Carlo weights, James-Stein thresholds at the
        minimum of SURE. "sgwt_scaled" scales thresholds by the local noise level of the coefficients. "sgwt_exact"
        uses eigenvectors instead of polynomials; its last bits depend on the threads of BLAS. "sgwt_deep" also looks below the paper's lowest band, as far as SURE
        finds useful. "sgwt_block" keeps or drops coefficients of neighbouring nodes together, "sgwt_beta" chooses the exponent
        of the rule for each scale.
    frame, weights : optional
        Your own frame and weights instead of those of the method ("sgwt_sure", "sgwt_scaled" and "sgwt_exact"). With sigma
        per node, weights must hold it: monte_carlo_weights(frame, sigma=sigma).
    rule, beta, level, candidates
        As in `sure_thresholds`; for methods that threshold wavelets.
    n_probes, law, seed
        As in `monte_carlo_weights`. Equal input gives equal bits.
    missing : {"error", "drop", "fill"}
        What NaN means. "drop": such nodes are taken out of the graph, and stay NaN. "fill": likewise, and then they get
        the values that make the result harmonic there (the weighted mean of the neighbours). With several signals, a node
        that is missing in one is taken out for all.
    columns : {"separate", "path"} or Graph, optional
        How the signals in columns belong together. "separate": not at all. "path": each is like the next one, as hours of a
        day are; then all are denoised at once on the product of `graph` and a path, with thresholds for each column, and the
        result is the mean over weak, middling and strong ties along the path. A graph with a node per column: its product
        with `graph`. Default: "path" for a release over time windows, else "separate".
    nonnegative : bool
        The signal cannot be negative: "auto" asks `counts` too, and negative values are set to zero in the end.
    refine : bool, optional
        Whether "auto" and "let" look at the signal a second time in the light of their first result. Default: "auto" does,
        from 500 nodes on.
    integer : bool
        Round to whole numbers. `risk` is that of the result before anything was clipped or rounded.
    progress : callable, optional
        Called with the share that is done, from 0 to 1 and roughly, and with the name of what comes next; an exception it
        raises ends the work.

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
    settings = Settings(method, frame, weights, rule, beta, level, candidates, n_probes, law, seed, nonnegative, refine)
    check_settings(settings)
    choose("integer", integer, (True, False))
    choose("missing", missing, get_args(Missing))
    if on_device(noisy):
        _refuse_on_device(method, missing)
    timings: dict[str, float] = {}
    started = time.perf_counter()
    values, sigma = _values_and_sigma(checked_graph(graph), noisy, sigma, missing)
    frame = frame if frame is None else checked_frame_of(graph, frame)
    weights = weights if weights is None else checked_real_array("weights", weights)
    settings = replace(settings, frame=frame, weights=weights)
    paths = _column_graphs(columns, noisy, values)
    if paths and method == "counts":
        msg = "{method='counts'} takes each column by itself: say {columns='separate'}, or {method='auto'} for columns that belong together"
        raise InputError(Sentence(msg))
    if paths and (frame is not None or weights is not None):
        msg = (
            "frame= and weights= do not go with {columns=}, which denoises on a product graph; denoise on graph.product(...) itself"
        )
        raise InputError(Sentence(msg))
    with watching(checked_watcher(progress)):
        if paths:
            result = _denoise_together(graph, paths, values, sigma, settings, timings, missing)
        else:
            result = _denoise_values(graph, values, sigma, settings, timings, missing)
    for k, note in enumerate(result.details["notes"]):
        if note == TOO_LARGE or (k == 0 and sigma is None):
            warnings.warn(note, stacklevel=2)
    timings["total"] = time.perf_counter() - started
    signal = _finished(result.signal, nonnegative, integer)
    return replace(result, signal=like_input(graph, noisy, signal), labels=graph.labels)


def _refuse_on_device(method: Method, missing: Missing) -> None:
    if missing != "error" or method in _ON_HOST:
        wish = Sentence("{missing=}{!r}", missing) if missing != "error" else Sentence("{method=}{!r}", method)
        raise InputError(Sentence("{} is worked on by the processor only: {pass cupy.asnumpy(noisy)}", wish))


def _finished(signal: np.ndarray, nonnegative: bool, integer: bool) -> np.ndarray:
    """Post-processing that needs no risk: clip, round."""
    signal = np.maximum(signal, 0) if nonnegative else signal
    return np.rint(signal) if integer else signal


def _denoise_values(graph, values, sigma, settings, timings, missing) -> Denoised:
    if on_device(values):
        return _denoise_known(graph, values, sigma, settings, timings)
    known = ~np.isnan(values).reshape(len(values), -1).any(axis=1)
    if known.all():
        return _denoise_known(graph, values, sigma, settings, timings)
    if known.any():
        return _denoise_around(graph, values, sigma, settings, timings, known, missing)
    msg = "the signal has no value at all: every node is missing in at least one column"
    raise InputError(msg)


def _column_graphs(columns, noisy, values: np.ndarray) -> list[Graph]:
    """Graphs that join the columns, to be tried; none when each column stands for itself."""
    if columns is None:
        columns = "path" if isinstance(noisy, Noisy) and noisy.windows is not None else "separate"
    m = values.shape[1] if values.ndim == 2 else 1
    if isinstance(columns, Graph):
        if values.ndim != 2 or columns.n != m:
            msg = f"columns= needs a graph with a node per column; got {columns.n} nodes for values of shape {values.shape}"
            raise InputError(msg)
        return [columns]
    if choose("columns", columns, get_args(Columns)) == "separate" or m == 1:
        return []
    row = np.arange(m - 1)
    pairs = np.stack([row, row + 1], axis=1)
    return [Graph.from_edges(pairs, n=m, weights=np.full(m - 1, weight)) for weight in COLUMN_WEIGHTS]


def _denoise_together(graph, paths, values, sigma, settings, timings, missing) -> Denoised:
    """All columns as one signal on the product of the graph with each path; the mean of the results."""
    flat = namespace(values).ascontiguousarray(values).ravel()
    each = sigma.repeat(values.shape[1]) if np.ndim(sigma) else sigma
    settings = replace(settings, groups=np.tile(np.arange(values.shape[1]), len(values)))
    parts: list[Denoised] = []
    for k, path in enumerate(paths):
        with nth(k, len(paths)):
            with timed(timings, "product", 0.0, 0.1):
                product = _product(graph, path, k)
            parts.append(_denoise_values(product, flat, each, settings, timings, missing))
        each = parts[0].sigma
    signals, shares = np.stack([part.signal for part in parts]), np.full(len(parts), 1 / len(parts))
    risks, errors = ([getattr(part, name) for part in parts] for name in ("risk", "risk_se"))
    signal, risk, risk_se, gain = average(flat, signals, risks, errors, Noise.of(each), shares)
    terms = [part.node_risk for part in parts]
    known = terms[0].known
    sure = np.mean(np.stack([term.sure for term in terms]), axis=0) + (gain if known is None else gain[known])
    variance = np.mean(np.stack([term.variance for term in terms]), axis=0)
    shared = {name: found for name, found in parts[0].details.items() if name not in _OF_ONE}
    shared["sigma_too_large"] = np.any([part.details["sigma_too_large"] for part in parts], axis=0)
    return replace(
        parts[0],
        signal=signal.reshape(values.shape).astype(values.dtype, copy=False),
        sigma=parts[0].sigma if sigma is None else sigma,
        risk=risk,
        risk_se=risk_se,
        probe_se=max(part.probe_se for part in parts),
        thresholds=[part.thresholds for part in parts],
        details={**shared, "columns": paths, "parts": [part.details for part in parts]},
        node_risk=NodeRisk(terms[len(terms) // 2].graph, sure, variance, values.shape, known),
    )


def _product(graph: Graph, path: Graph, k: int) -> Graph:
    """Their product; the latest one for each k-th path is kept with the graph unless it is large, with all that is worked out for it."""
    if graph.n * path.n > _KEPT_PRODUCT:
        return graph.product(path)
    return graph.latest(f"product {k}", (path.hash,), lambda: graph.product(path))


def _denoise_around(graph, values, sigma, settings, timings, known, missing) -> Denoised:
    """Denoise on the nodes that have values, and put the result back."""
    if settings.frame is not None or settings.weights is not None:
        msg = "frame= and weights= do not go with missing values: the graph shrinks to the nodes that have them"
        raise InputError(msg)
    settings = settings if settings.groups is None else replace(settings, groups=settings.groups[known])
    kept_sigma = sigma[known] if isinstance(sigma, np.ndarray) else sigma
    part = graph.latest("nodes with values", (known.tobytes(),), lambda: graph.subgraph(known))
    result = _denoise_known(part, values[known], kept_sigma, settings, timings)
    signal = np.full_like(values, np.nan)
    signal[known] = result.signal
    if missing == "fill":
        signal[~known] = _harmonic(graph, signal, known)
    details = {**result.details, "missing": int((~known).sum()), "missing_policy": missing}
    if values.ndim == 2 and (partly := int((~np.isnan(values[~known])).any(axis=1).sum())):
        note = f"{partly:,} nodes have values in some columns and none in others; they were taken out of all columns"
        details["notes"] = [*result.details["notes"], note]
    node_risk = replace(result.node_risk, shape=values.shape, known=known)
    return replace(result, signal=signal, sigma=result.sigma if sigma is None else sigma, details=details, node_risk=node_risk)


def _denoise_known(graph, values, sigma, settings: Settings, timings) -> Denoised:
    """Every node has its value."""
    notes = []
    if sigma is None:
        with timed(timings, "sigma", 0.0, 0.02):
            sigma = estimate_sigma(graph, values)
        notes.append(f"sigma was not given; estimated as {sigma:.6g} from the finest scale (an upper estimate on rough signals)")
    estimated = bool(notes)
    if on_device(values) and settings.method == "auto" and settings.nonnegative:
        notes.append(
            Sentence(
                "{method='counts'}, which helps where values cannot be negative, is not asked on a GPU; {pass cupy.asnumpy(noisy)} for it"
            )
        )
    if settings.method in get_args(Combined):
        result = denoise_combined(graph, values, sigma, settings, timings)
    else:
        result = denoise_wavelets(graph, values, sigma, settings, timings)
    result = replace(result, details={**result.details, "sigma_estimated": estimated})
    return _checked_against_nothing(result, values, Noise.of(sigma), notes)


def _checked_against_nothing(result: Denoised, values: np.ndarray, noise: Noise, notes: list[str]) -> Denoised:
    """A signal whose risk exceeds that of doing nothing stays as it came."""
    nothing, fourth = noise.total(len(values)), noise.fourth(len(values))
    kept = np.atleast_1d(result.risk) > nothing
    if kept.any():
        notes.append(
            f"{int(kept.sum())} of {len(kept)} signals were returned unchanged: their estimated risk exceeded that of the noise"
        )
    too_large = _signals_below_noise(result, len(values), noise)
    impossible = ~too_large & ~(np.atleast_1d(result.risk) >= -IMPOSSIBLE * np.atleast_1d(result.risk_se))
    notes += [TOO_LARGE] * bool(too_large.any()) + [IMPOSSIBLE_RISK] * bool(impossible.any())
    details = {**result.details, "notes": notes, "unchanged": np.flatnonzero(kept), "sigma_too_large": too_large}
    if not kept.any():
        return replace(result, details=details)
    terms, mask = result.node_risk, beside(kept, values)
    each = noise.weigh(np.ones_like(terms.sure[0]))
    sure, variance = (np.where(mask[:, None], each, part) for part in (terms.sure, terms.variance))
    posterior = None if terms.posterior is None else terms.posterior & ~kept
    return replace(
        result,
        signal=np.where(mask if values.ndim == 2 else mask[0], values, result.signal),
        risk=per_signal(np.where(kept, nothing, result.risk), values.ndim),
        risk_se=per_signal(np.where(kept, np.sqrt(2 * fourth), result.risk_se), values.ndim),
        probe_se=per_signal(np.where(kept, 0.0, result.probe_se), values.ndim),
        details=details,
        node_risk=replace(terms, sure=sure, variance=variance, posterior=posterior),
    )


def _signals_below_noise(result: Denoised, n: int, noise: Noise) -> np.ndarray:
    """Of each signal, whether the energy of a scale or the variance of all values proves that sigma is too large."""
    total = noise.total(n) / noise.variance
    energy = n * np.atleast_1d(result.details["noisy_variance"])
    proven = noise.is_too_large(energy, total - total / n, tests=2)
    scales = [bool(found) for found in np.atleast_1d(result.details.get("sigma_too_large", False))]
    return proven | scales


def _check_fit(settings: Settings) -> None:
    """Refuse arguments that the method would ignore."""
    own = settings.frame is not None or settings.weights is not None
    if own and settings.method in ("sgwt_deep", *get_args(Combined)):
        msg = "{method=}{!r} builds its own frames; with frame= or weights= say {method='sgwt_sure'}"
        raise InputError(Sentence(msg, settings.method))
    if settings.method == "sgwt_deep" and settings.level == "global":
        msg = "{method='sgwt_deep'} thresholds each scale by itself; with level='global' say {method='sgwt_scaled'} or 'sgwt_sure'"
        raise InputError(Sentence(msg))
    plain = (settings.rule, settings.beta, settings.level, settings.candidates) == ("james_stein", None, "scale", "all")
    if not plain and settings.method in get_args(Combined):
        msg = f"rule=, beta=, level= and candidates= belong to methods that threshold wavelets: add method='sgwt_deep' or 'sgwt_sure'; method={settings.method!r} has none of them"
        raise InputError(msg)
    if settings.refine is not None and settings.method not in ("auto", "let"):
        msg = f"refine= belongs to method='auto' and 'let'; got method={settings.method!r}"
        raise InputError(msg)


def check_settings(settings: Settings) -> None:
    """Refuse settings that are wrong or do not go together, before any work is done."""
    choose("method", settings.method, get_args(Method))
    sure_exponent(settings.rule, settings.beta)
    choose("level", settings.level, get_args(Level))
    choose("candidates", settings.candidates, get_args(Candidates))
    choose("law", settings.law, get_args(Law))
    if settings.n_probes is not None:
        checked_count("n_probes", settings.n_probes, 1)
    checked_seed(settings.seed)
    choose("nonnegative", settings.nonnegative, (True, False))
    choose("refine", settings.refine, (True, False, None))
    _check_fit(settings)


def _values_and_sigma(graph: Graph, noisy, sigma, missing: Missing):
    if graph.n == 0:
        msg = "the graph has no nodes: there is nothing to denoise"
        raise InputError(msg)
    if isinstance(noisy, Noisy):
        noisy, sigma = noisy.opened(graph, sigma)
    values = graph.align(noisy, missing_ok=missing != "error")
    if is_labelled(sigma):
        sigma = graph.aligned("sigma", sigma, one=True)
    if missing != "error" and np.shape(sigma) == values.shape[:1] and np.asarray(sigma).dtype.kind == "f":
        lost = np.isnan(values).reshape(len(values), -1).any(axis=1)
        sigma = np.where(lost & np.isnan(sigma), 1.0, sigma)  # the noise of a value that is not there does not matter
    sigma = None if sigma is None else checked_sigma(sigma, graph.n)
    sigma = beside(sigma, values) if np.ndim(sigma) else sigma
    if sigma is not None and values.dtype == np.float32 and np.max(sigma) > LARGEST_FLOAT32:
        msg = "{sigma} must be at most {:g} in size for a signal of float32; got {:g}; use float64, or rescale both"
        raise InputError(Sentence(msg, LARGEST_FLOAT32, np.max(sigma)))
    return values, sigma


def _harmonic(graph: Graph, signal, known) -> np.ndarray:
    """Values of the unknown nodes that solve L f = 0 there; components without any known node stay NaN."""
    L = graph.laplacian()
    reached = np.isin(graph.components, graph.components[known])
    unknown = ~known & reached
    filled = np.full((len(signal), *signal.shape[1:]), np.nan)
    matrix, right = L[unknown][:, unknown], -(L[unknown][:, known] @ signal[known].astype(np.float64))
    solved = [cg(matrix, b, rtol=1e-10) for b in right.reshape(len(right), -1).T] if unknown.any() else []
    if any(info for _, info in solved):
        msg = "the missing values could not be filled to 1e-10 (edge weights of very different size?); use {missing='drop'}"
        raise InputError(Sentence(msg))
    if solved:
        filled[unknown] = np.stack([values for values, _ in solved], axis=1).reshape(right.shape)
    return filled[~known]
