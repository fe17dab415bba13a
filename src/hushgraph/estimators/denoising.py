"""`denoise`: from a problem and a method to a result with its risk."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from hushgraph._arrays import NodeNumbers, on_device, placed_like
from hushgraph._errors import InputError, Sentence
from hushgraph._progress import Progress, between, nth, timed, watching
from hushgraph._validation import checked_real_array, choose
from hushgraph.core import rowwise_variances
from hushgraph.estimators.combined import denoise_combined
from hushgraph.estimators.counts.method import check_counts_graph, denoise_counts
from hushgraph.estimators.guides.draws import draw_marks
from hushgraph.estimators.guides.guided import IMPOSSIBLE_WORDS, denoise_guided
from hushgraph.estimators.guides.reading import Guide, read_guides, without_gaps
from hushgraph.estimators.guides.series import columns_of_joint, guided_series
from hushgraph.estimators.methods import MethodName, guided_methods
from hushgraph.estimators.node_risk import NodeRisk
from hushgraph.estimators.origin import Origin
from hushgraph.estimators.problem import ColumnTies, Missing, Problem
from hushgraph.estimators.result import Denoised, like_input
from hushgraph.estimators.risk import IMPOSSIBLE, Assessed, NoiseRisk, average
from hushgraph.estimators.settings import Settings
from hushgraph.estimators.wavelet import denoise_wavelets
from hushgraph.graphs import Graph, Noisy, as_graph
from hushgraph.wavelets import Frame, Law, Level, Noise, Rule, ThresholdChoice, check_exact_size, checked_frame_of, noise_level_of

LARGEST_CACHED_PRODUCT = 2**19  # nodes
# details of one product graph, which mean nothing for the mean of several
DETAILS_OF_ONE = ("weights", "sets", "risk_alone", "refined", "chosen", "divergence", "filter")
TOO_LARGE = (
    "sigma is too large: a scale of the values, or all of them, vary less than noise of this sigma would; "
    "risk and expected errors are worth nothing then. Pass the standard deviation of the noise, not its variance"
)
IMPOSSIBLE_RISK = (
    f"the estimated risk is more than {IMPOSSIBLE:g} of its standard errors below 0, so no error is claimed: "
    "there is hardly any signal, or sigma is too large"
)
JOINT_TIME = 0.15  # share of the time of a series that all columns at once take, roughly
FAMILIES = {"wavelet": denoise_wavelets, "combined": denoise_combined, "counts": denoise_counts}


def denoise(
    graph: Graph,
    noisy: Any,
    *,
    sigma: NodeNumbers | None = None,
    method: MethodName = "auto",
    frame: Frame | None = None,
    weights: Any = None,
    rule: Rule = "james_stein",
    beta: float | None = None,
    level: Level = "scale",
    candidates: ThresholdChoice = "all",
    n_probes: int | None = None,
    law: Law = "rademacher",
    seed: int = 0,
    missing: Missing = "error",
    columns: ColumnTies | Graph | None = None,
    guides: Any = None,
    nonnegative: bool = False,
    refine: bool | None = None,
    integer: bool = False,
    progress: Progress = None,
) -> Denoised:
    """Remove white Gaussian noise from a signal on a graph.

    Parameters
    ----------
    graph : Graph
        The graph whose nodes have the values. Like every function that takes a graph, it also takes a SciPy sparse matrix, a networkx,
        igraph or PyGSP graph, or a GeoDataFrame of zones or lines, read with the defaults of `Graph.from_scipy`,
        `Graph.from_networkx` and so on. Arrays are then in the order of the matrix, of the rows, or of `list(G.nodes)`; names of nodes are labels.
    noisy : array (n,) or (n, m), Mapping, Series, DataFrame, DataArray, or Noisy
        Arrays go by position, all that has labels by label (see `Graph.align`); signals are columns, and the result has the form of the
        input: a dict for a Mapping. A CuPy array is denoised on its GPU; the result is a CuPy array on the same GPU.
    sigma : float or (n,) array, optional
        Standard deviation of the noise, possibly one per node. Estimated, with a warning, if not given.
    method : {"auto", "let", "counts", "filter", "sgwt_sure", "sgwt_scaled", "sgwt_deep", "sgwt_exact", "sgwt_block", "sgwt_beta"}
        "auto" combines many elementary estimates by their estimated risk, as many as the size of the graph allows, or takes one fitted
        filter where the combination is not clearly better. `details` says what it did and why. "let" is one such combination, at the cost
        of a few transforms, for graphs of any size. "counts" is an empirical-Bayes estimate for signals that cannot be negative; with
        nonnegative=True "auto" uses it too. "filter" is one linear filter, fitted to the signal by maximum likelihood: the estimate of a
        Gaussian process on the graph; `details["filter"]` describes it, and `plot_filter` draws it. The others threshold wavelets.
        "sgwt_sure" is the paper's method: Chebyshev-Jackson frame, Monte-Carlo weights, James-Stein thresholds at the
        minimum of SURE. "sgwt_scaled" scales thresholds by the local noise level of the coefficients. "sgwt_deep" adds bands
        below the paper's lowest one, as many as SURE finds useful. "sgwt_exact" uses eigenvectors instead of polynomials; its last
        bits depend on the threads of BLAS. "sgwt_block" keeps or drops coefficients of neighbouring nodes together, "sgwt_beta"
        chooses the exponent of the rule for each scale.
    frame : ChebyshevFrame or ExactFrame, optional
        A frame to use instead of that of the method ("sgwt_sure", "sgwt_scaled" and "sgwt_exact").
    weights : (n_scales, n) array, optional
        Weights to use instead of those of the method. With sigma per node they must hold it: monte_carlo_weights(frame, sigma=sigma).
    rule : {"soft", "james_stein", "power", "hard"}
        The thresholding rule, for methods that threshold wavelets.
    beta : float, optional
        The exponent of the rule "power".
    level : {"scale", "global"}
        One threshold per scale, or one for all.
    candidates : {"all", "percentiles"}
        Which thresholds are tried: every absolute value of a coefficient, or 100 percentiles.
    n_probes : int, optional
        Number of random probes; chosen by the size of the graph if not given.
    law : {"rademacher", "gaussian"}
        The law of the probes.
    seed : int
        Seed of the probes. Equal input gives equal bits.
    missing : {"error", "drop", "fill"}
        What NaN means. "drop": such nodes are taken out of the graph, and stay NaN. "fill": likewise, and then they get
        the values that make the result harmonic there (the weighted mean of the neighbours). With several signals, a node
        that is missing in one is taken out for all.
    columns : {"separate", "path", "series"} or Graph, optional
        How the signals in columns belong together. "separate": not at all. "path": each is like the next one, as hours of a
        day are; then all are denoised at once on the product of `graph` and a path, with thresholds for each column, and the
        result is the mean over weak, middling and strong ties along the path. "series": each is also guided by all others, as in
        `denoise_series`, and SURE weighs that against "path". A graph with a node per column: its product with `graph`.
        Default: "series" for a release over time windows ("path" for methods that take no guides), else "separate".
    guides : array (n,) or (n, k), Series, DataFrame, dict of name to map, Noisy, Release, Denoised, or a list of these, optional
        Public maps that help: earlier releases, maps of another kind, covariates of the streets (`Graph.covariates`). They must not
        share noise with the signal; the same draw is refused. A guide of noise (`Noisy`, `Release`) brings its sigma and is denoised
        first; several in one list, or under one name of a dict, are of one kind and combined by inverse variance. NaN is a missing
        value, and nodes without a row have none. Useless guides are left out; `details["guides"]` says how much each helped. For the
        methods "auto", "let" and "counts".
    nonnegative : bool
        The signal cannot be negative: "auto" uses `counts` too, and negative values are set to zero in the end.
    refine : bool, optional
        Whether "auto" and "let" run a second stage, which uses their first result. Default: "auto" does,
        from 500 nodes on.
    integer : bool
        Round to whole numbers. `risk` is that of the result before anything was clipped or rounded.
    progress : True or callable, optional
        True shows a bar, on a terminal or in a notebook. A function is called with the share that is done, from 0 to 1 and roughly, and with the name of what comes next; an exception it
        raises ends the work.

    Returns
    -------
    Denoised
        The denoised signal in the form of the input, with its estimated risk.

    Raises
    ------
    InputError
        If an argument cannot be used, or does not go with the method.

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
    settings = Settings(
        method=method,
        frame=frame,
        weights=weights,
        rule=rule,
        beta=beta,
        level=level,
        candidates=candidates,
        n_probes=n_probes,
        law=law,
        seed=seed,
        nonnegative=nonnegative,
        refine=refine,
    )
    settings.check()
    choose("integer", integer, (True, False))
    choose("missing", missing, get_args(Missing))
    if on_device(noisy):
        _refuse_on_device(settings, missing)
    timings: dict[str, float] = {}
    started = time.perf_counter()
    columns = _default_columns(noisy, settings) if columns is None else columns
    graph = as_graph(graph)
    problem = Problem.of(graph, noisy, sigma=sigma, missing=missing, columns=columns)
    given = checked_guides(problem, settings, guides)
    frame = frame if frame is None else checked_frame_of(graph, frame)
    weights = weights if weights is None else checked_real_array("weights", weights)
    settings = replace(settings, frame=frame, weights=weights)
    with watching(progress):
        share = 0.2 if given else 0.0
        with between(0.0, share):
            problem = with_guides(problem, given, settings, timings)
        with between(share, 1.0):
            result = solve(problem, settings, timings)
    for k, note in enumerate(result.details["notes"]):
        if note == TOO_LARGE or (k == 0 and problem.sigma is None):
            warnings.warn(note, stacklevel=2)
    timings["total"] = time.perf_counter() - started
    draws = draw_marks(problem.values).union(*(guide.draws for guide in problem.guides))
    return in_input_form(graph, noisy, result, settings, integer=integer, draws=draws, problem=problem)


def check_method(graph: Graph, method: MethodName) -> None:
    """Raise the InputError that `denoise` raises if a method cannot be used on a graph; nothing is computed.

    Parameters
    ----------
    graph : Graph
        The graph.
    method : str
        The method.

    Raises
    ------
    InputError
        If the graph is too small or too large for the method.
    """
    if graph.n == 0:
        msg = "the graph has no nodes, and there is nothing to denoise; check the file of the graph"
        raise InputError(msg)
    if method == "counts":
        check_counts_graph(graph)
    if method == "sgwt_exact":
        check_exact_size(graph)


def in_input_form(
    graph: Graph,
    noisy: Any,
    result: Denoised,
    settings: Settings,
    *,
    integer: bool,
    draws: frozenset[str],
    problem: Problem | None = None,
) -> Denoised:
    """Return the result in the form of the input, clipped and rounded as was asked; it remembers the problem, if that can be solved again."""
    signal = np.maximum(result.signal, 0) if settings.nonnegative else result.signal
    signal = np.rint(signal) if integer else signal
    node_risk = result.node_risk
    if node_risk is not None:
        are_counts = isinstance(noisy, Noisy) and noisy.kind != "measurement"
        is_nonnegative = settings.nonnegative or settings.method == "counts" or are_counts
        node_risk = replace(node_risk, is_nonnegative=is_nonnegative, is_integer=integer)
    origin = None
    if problem is not None:
        given = noisy if isinstance(noisy, Noisy) else None
        origin = Origin(replace(problem, sigma=result.sigma), settings, result.signal, given)
    signal = like_input(graph, noisy, signal)
    return replace(result, signal=signal, labels=graph.labels, node_risk=node_risk, draws=draws, origin=origin)


def _default_columns(noisy: Any, settings: Settings) -> ColumnTies:
    """Return how the columns of a noisy map belong together if the caller does not say it."""
    has_windows = isinstance(noisy, Noisy) and noisy.windows is not None
    return "separate" if not has_windows else "series" if settings.about.takes_guides else "path"


def checked_guides(problem: Problem, settings: Settings, guides: Any) -> list[Guide]:
    """Return the guides as they were given, or raise an InputError."""
    if not settings.about.takes_guides and (problem.series or guides is not None):
        what = "guides=" if guides is not None else "columns='series'"
        *names, last = map(repr, guided_methods())
        msg = f"{what} belongs to method={', '.join(names)} and {last}; got method={settings.method!r}"
        raise InputError(msg)
    if on_device(problem.values) and (problem.series or guides is not None):
        what = Sentence("{columns='series'} runs") if problem.series else Sentence("guides are used")
        raise InputError(Sentence("{} on the CPU only: {pass cupy.asnumpy(noisy)}", what))
    if guides is None:
        return []
    if problem.column_graphs and not problem.series:
        msg = "guides= do not go with {columns='path'}; say {columns='series'}, where each column is guided by the others too"
        raise InputError(Sentence(msg))
    return read_guides(problem.graph, guides, draw_marks(problem.values))


def with_guides(problem: Problem, guides: list[Guide], settings: Settings, timings: dict[str, float]) -> Problem:
    """Return the problem with these guides, without their gaps and without their noise."""
    plain = Settings(method=settings.method, nonnegative=settings.nonnegative, n_probes=settings.n_probes, seed=settings.seed)
    clean = []
    for guide in guides:
        values = without_gaps(problem.graph, guide.values, guide.name)
        if guide.sigma is not None:
            with timed(timings, "noise of guides"):
                result = solve(Problem(problem.graph, values, guide.sigma), plain, {})
            values = np.maximum(result.signal, 0.0) if settings.nonnegative else result.signal
        clean.append(replace(guide, values=np.asarray(values, dtype=np.float64)))
    return replace(problem, guides=tuple(clean))


def _refuse_on_device(settings: Settings, missing: Missing) -> None:
    if missing != "error" or not settings.about.is_for_gpu:
        wish = Sentence("{missing=}{!r}", missing) if missing != "error" else Sentence("{method=}{!r}", settings.method)
        raise InputError(Sentence("{} runs on the CPU only: {pass cupy.asnumpy(noisy)}", wish))


# ---- from the problem to a problem without gaps and columns --------------------------------------------------------


def solve(problem: Problem, settings: Settings, timings: dict[str, float]) -> Denoised:
    """Return the result of any problem."""
    if problem.series:
        return _solve_series(problem, settings, timings)
    if problem.column_graphs:
        return _solve_together(problem, settings, timings)
    if problem.is_known is not None:
        return _solve_known_nodes(problem, problem.is_known, settings, timings)
    return _solve_complete(problem, settings, timings)


def _solve_together(problem: Problem, settings: Settings, timings: dict[str, float]) -> Denoised:
    """Return the result of all columns as one signal on the product of the graph with each column graph: the mean of the results."""
    if settings.method == "counts":
        msg = "{method='counts'} takes each column by itself: say {columns='separate'}, or {method='auto'} for columns that belong together"
        raise InputError(Sentence(msg))
    if settings.has_frame:
        msg = (
            "frame= and weights= do not go with {columns=}, which denoises on a product graph; denoise on graph.product(...) itself"
        )
        raise InputError(Sentence(msg))
    shape = problem.values.shape
    settings = replace(settings, groups=np.tile(np.arange(shape[1]), shape[0]))
    parts: list[Denoised] = []
    sigma = problem.sigma
    for k, path in enumerate(problem.column_graphs):
        with nth(k, len(problem.column_graphs)):
            with timed(timings, "product", 0.0, 0.1):
                product = _product(problem.graph, path, k)
            whole = problem.on_product(product)
            whole = whole if k == 0 else replace(whole, sigma=sigma)  # estimated once
            parts.append(solve(whole, settings, timings))
        sigma = parts[0].sigma
    return _mean_of_products(problem, whole.values, Noise.of(sigma), parts)


def _mean_of_products(problem: Problem, y: np.ndarray, noise: Noise, parts: list[Denoised]) -> Denoised:
    """Return the mean of the results on several product graphs."""
    shape, terms = problem.values.shape, [part.node_risk for part in parts]
    signals, shares = np.stack([part.signal for part in parts]), np.full(len(parts), 1 / len(parts))
    mean = average(y, signals, [part.risk for part in parts], [part.risk_se for part in parts], noise, shares)
    known = terms[0].has_value
    sure = np.mean(np.stack([term.sure for term in terms]), axis=0) + (mean.gain if known is None else mean.gain[known])
    variance, divergence = (
        np.mean(np.stack([getattr(term, name) for term in terms]), axis=0) for name in ("variance", "divergence")
    )
    details = {name: value for name, value in parts[0].details.items() if name not in DETAILS_OF_ONE}
    details["sigma_too_large"] = np.any([part.details["sigma_too_large"] for part in parts], axis=0)
    return replace(
        parts[0],
        signal=mean.signal.reshape(shape).astype(problem.values.dtype, copy=False),
        sigma=parts[0].sigma if problem.sigma is None else problem.sigma,
        risk=mean.risk,
        risk_se=mean.risk_se,
        probe_se=max(part.probe_se for part in parts),
        thresholds=[part.thresholds for part in parts],
        details={**details, "columns": list(problem.column_graphs), "parts": [part.details for part in parts]},
        node_risk=replace(
            terms[len(terms) // 2], sure=sure, variance=variance, divergence=divergence, shape=shape, has_value=known
        ),
    )


def _solve_series(problem: Problem, settings: Settings, timings: dict[str, float]) -> Denoised:
    """Return the result of columns of which each is guided by the others, or by those before it."""
    if problem.is_known is not None:
        return _solve_known_nodes(problem, problem.is_known, settings, timings)
    notes: list[str] = []
    about_sigma: dict[str, Any] = {"sigma_estimated": False}
    if problem.sigma is None:
        problem, about_sigma = with_estimated_sigma(problem, notes)
    estimates = series_estimates(problem, [problem.sigma] * problem.values.shape[1], settings, timings)
    details = {"n_probes": None, "noisy_variance": rowwise_variances(problem.planes), "columns": list(problem.column_graphs)}
    result = assembled(problem, estimates, {**details, **about_sigma}, settings, timings)
    return compared_with_noise(result, problem, notes)


def series_estimates(problem: Problem, sigmas: list[Any], settings: Settings, timings: dict[str, float]) -> list[Assessed]:
    """Return the estimate of each column, with a noise level of its own, guided by the others and averaged with that of all at once."""
    direction, shape = problem.series or "all", problem.values.shape
    joint: list[Assessed | None] = [None] * shape[1]
    if direction == "all" and settings.about.family == "combined":
        is_same = all(np.array_equal(sigma, sigmas[0]) for sigma in sigmas)
        sigma = sigmas[0] if is_same else np.stack([np.broadcast_to(one, shape[0]) for one in sigmas], axis=1)
        with between(0.0, JOINT_TIME):
            whole = _solve_together(replace(problem, sigma=sigma, series=None, guides=()), settings, timings)
        joint = list(columns_of_joint(whole, problem.values, sigma))
    parts = zip(problem.planes, sigmas, strict=True)
    columns = [replace(problem, values=y, sigma=sigma, column_graphs=(), series=None) for y, sigma in parts]
    with between(JOINT_TIME, 1.0):
        return guided_series(columns, settings, timings, direction=direction, joint=joint)


def _product(graph: Graph, path: Graph, k: int) -> Graph:
    """Return the product; the latest one of each column graph is cached with the graph unless it is large."""
    if graph.n * path.n > LARGEST_CACHED_PRODUCT:
        return graph.product(path)
    return graph.cached(f"product {k}", lambda: graph.product(path), version=path.hash)


def _solve_known_nodes(problem: Problem, known: np.ndarray, settings: Settings, timings: dict[str, float]) -> Denoised:
    """Return the result on the nodes that have values, put back among all nodes."""
    if settings.has_frame:
        msg = "frame= and weights= do not go with missing values: the graph shrinks to the nodes that have them"
        raise InputError(msg)
    settings = settings if settings.groups is None else replace(settings, groups=settings.groups[known])
    part = problem.at_known_nodes(known)
    result = (_solve_series if part.series else _solve_complete)(part, settings, timings)
    values = problem.values
    details = {**result.details, "missing": int((~known).sum()), "missing_policy": problem.missing}
    if values.ndim == 2 and (partly := int((~np.isnan(values[~known])).any(axis=1).sum())):
        note = f"{partly:,} nodes have values in some columns and none in others; they were taken out of all columns"
        details["notes"] = [*result.details["notes"], note]
    return replace(
        result,
        signal=problem.completed(result.signal, known),
        sigma=result.sigma if problem.sigma is None else problem.sigma,
        details=details,
        node_risk=replace(result.node_risk, shape=values.shape, has_value=known),
    )


# ---- a problem without gaps ----------------------------------------------------------------------------------------


def _solve_complete(problem: Problem, settings: Settings, timings: dict[str, float]) -> Denoised:
    """Return the result of a problem in which every node has its value."""
    notes: list[str] = []
    about_sigma: dict[str, Any] = {"sigma_estimated": False}
    if problem.sigma is None:
        with timed(timings, "sigma", 0.0, 0.02):
            problem, about_sigma = with_estimated_sigma(problem, notes)
    family = denoise_guided if problem.guides else FAMILIES[settings.about.family]
    estimates, details = family(problem, settings, timings)
    result = assembled(problem, estimates, {**details, **about_sigma}, settings, timings)
    return compared_with_noise(result, problem, notes)


def with_estimated_sigma(problem: Problem, notes: list[str]) -> tuple[Problem, dict[str, Any]]:
    """Return the problem with an estimated sigma, and what the details of the result say about it; a note says how sure it is."""
    level = noise_level_of(problem.graph, problem.values)
    notes.append(f"sigma was not given; estimated as {level.in_words}")
    return replace(problem, sigma=level), {"sigma_estimated": True, "sigma_se": level.se}


def assembled(
    problem: Problem, estimates: list[Assessed], details: dict[str, Any], settings: Settings, timings: dict[str, float]
) -> Denoised:
    """Return the result of all signals."""
    is_single, per_signal = problem.values.ndim == 1, problem.per_signal
    names = dict.fromkeys(name for one in estimates for name in one.account)  # signals may be treated differently
    accounts = {name: [one.account.get(name) for one in estimates] for name in names}
    signal = estimates[0].signal if is_single else np.stack([one.signal for one in estimates], axis=1)
    return Denoised(
        signal=signal.astype(problem.values.dtype, copy=False),
        sigma=problem.sigma,
        risk=per_signal([one.risk for one in estimates]),
        risk_se=per_signal([one.risk_se for one in estimates]),
        probe_se=per_signal([one.probe_se for one in estimates]),
        method=settings.method,
        thresholds=_thresholds_of(estimates, is_single),
        timings=timings,
        details={**{name: values[0] if is_single else values for name, values in accounts.items()}, **details},
        node_risk=NodeRisk(
            problem.graph,
            np.stack([one.sure for one in estimates]),
            np.stack([one.variance for one in estimates]),
            np.stack([one.divergence for one in estimates]),
            problem.noise.variance if problem.noise.per_node is None else problem.noise.per_node**2,
            problem.values.shape,
            probe_counts=tuple(one.probe_count for one in estimates),
            posteriors=tuple(one.posterior for one in estimates),
        ),
    )


def _thresholds_of(estimates: list[Assessed], is_single: bool) -> Any:
    """Return the thresholds of one signal, those of several side by side, or a list where frames have different scales."""
    thresholds = [one.thresholds for one in estimates]
    if is_single or thresholds[0] is None:
        return thresholds[0]
    return np.stack(thresholds, axis=1) if len({len(t) for t in thresholds}) == 1 else thresholds


def compared_with_noise(result: Denoised, problem: Problem, notes: list[str]) -> Denoised:
    """Return the result in which a signal whose risk exceeds that of doing nothing stays as it came."""
    values, noise = problem.values, problem.noise
    nothing = NoiseRisk.of(noise.total(len(values)), noise.fourth(len(values)))
    risk, risk_se, probe_se = (np.atleast_1d(number) for number in (result.risk, result.risk_se, result.probe_se))
    is_worse, *replaced = nothing.instead_of(risk, risk_se, probe_se)
    if is_worse.any():
        notes.append(
            f"{int(is_worse.sum())} of {len(is_worse)} signals were returned unchanged: their estimated risk exceeded that of the noise"
        )
    too_large = _signals_below_noise(result, len(values), noise)
    impossible = ~too_large & ~(risk >= -IMPOSSIBLE * risk_se)
    notes += [TOO_LARGE] * bool(too_large.any()) + [IMPOSSIBLE_RISK] * bool(impossible.any())
    notes += [f"a guide {IMPOSSIBLE_WORDS}"] * _has_impossible_guides(result)
    details = {**result.details, "notes": notes, "unchanged": np.flatnonzero(is_worse), "sigma_too_large": too_large}
    if not is_worse.any():
        return replace(result, details=details)
    terms, mask = result.node_risk, placed_like(is_worse, values)
    of_noise = noise.weigh(np.ones_like(terms.sure[0]))
    names = "sure", "variance", "divergence"
    replaced_terms = {name: np.where(mask[:, None], of_noise, getattr(terms, name)) for name in names}
    counts = tuple(0 if worse else count for count, worse in zip(terms.probe_counts, is_worse, strict=True))
    posteriors = tuple(None if worse else one for one, worse in zip(terms.posteriors, is_worse, strict=True))
    return replace(
        result,
        signal=np.where(mask if values.ndim == 2 else mask[0], values, result.signal),
        details=details,
        node_risk=replace(terms, **replaced_terms, probe_counts=counts, posteriors=posteriors),
        **{name: problem.per_signal(number) for name, number in zip(("risk", "risk_se", "probe_se"), replaced, strict=True)},
    )


def _has_impossible_guides(result: Denoised) -> bool:
    """Return whether guides of some signal were left out because of an impossible risk."""
    return any(guide["in_words"] == IMPOSSIBLE_WORDS for account in result.guide_accounts for guide in account.values())


def _signals_below_noise(result: Denoised, n: int, noise: Noise) -> np.ndarray:
    """Return, for each signal, whether the energy of a scale or the variance of all values proves that sigma is too large."""
    total = noise.total(n) / noise.variance
    energy = n * np.atleast_1d(result.details["noisy_variance"])
    is_proven = noise.is_too_large(energy, total - total / n, tests=2)
    scales = [bool(proof) for proof in np.atleast_1d(result.details.get("sigma_too_large", False))]
    return is_proven | scales
