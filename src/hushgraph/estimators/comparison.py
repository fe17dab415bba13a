"""`compare`: several methods on one noisy signal, side by side, with their estimated risk and their time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from hushgraph._arrays import NodeNumbers
from hushgraph._errors import ComputationError, InputError, InputTypeError
from hushgraph._progress import Progress, nth, reached, watching
from hushgraph._validation import choose, refuse_device, shown
from hushgraph.estimators.baselines.penalized import dfs_fused_lasso, graph_tv
from hushgraph.estimators.denoising import TOO_LARGE, checked_guides, in_input_form, solve, with_estimated_sigma, with_guides
from hushgraph.estimators.guides.draws import draw_marks
from hushgraph.estimators.guides.reading import Guide, read_guides
from hushgraph.estimators.methods import BASELINES, METHODS, guided_methods
from hushgraph.estimators.metrics import snr
from hushgraph.estimators.problem import Problem
from hushgraph.estimators.result import Denoised, TypicalError
from hushgraph.estimators.settings import Settings
from hushgraph.graphs import Graph, Noisy, as_graph, notebook_table, pandas_module, refuse_release

# By default a method is compared on graphs of at most that many nodes; on larger ones it takes tens of seconds or more.
LARGEST_BY_DEFAULT = {"auto": 500_000, "counts": 200_000, "filter": 1_000_000, "sgwt_deep": 1_000_000, "graph_tv": 20_000}
DEFAULT_METHODS = ("auto", "let", "counts", "filter", "sgwt_sure", "sgwt_deep", "dfs_fused_lasso", "graph_tv")
LEAST_MARK, CLOSE_MARK = "*", "~"
TRUTH_COLUMNS = ("squared_error", "snr")


@dataclass(frozen=True, kw_only=True)
class ComparedMethod:
    """One row of a comparison; numbers of a method that was not used are NaN.

    Parameters
    ----------
    method : str
        The name of the method.
    risk, risk_se : float
        Estimated total squared error and its standard error, as in `Denoised`.
    typical_error : float
        Root mean square error of a value; NaN where it is not known.
    is_bound : bool
        Whether `typical_error` is an upper bound.
    seconds : float
        Time that the method took.
    squared_error, snr : float, optional
        True total squared error, and SNR in dB; None without the truth.
    is_least : bool
        Whether this is the least credible risk of all.
    is_close : bool
        Whether the risk exceeds the least one by no more than the larger of the two standard errors.
    note : str
        Why the method was not used, or what is to be known about its numbers.
    """

    method: str
    risk: float = np.nan
    risk_se: float = np.nan
    typical_error: float = np.nan
    is_bound: bool = False
    seconds: float = np.nan
    squared_error: float | None = None
    snr: float | None = None
    is_least: bool = False
    is_close: bool = False
    note: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Results of several methods for one noisy signal: the result of `compare`.

    `print(comparison)` shows a table without any other package, a notebook shows it as HTML.

    Parameters
    ----------
    results : dict of str to Denoised
        The result of each method that could be used, the least estimated risk first.
    rows : tuple of ComparedMethod
        The rows of the table, the least estimated risk first and methods that could not be used last. The attributes of a row are the
        columns of `to_frame`.
    sigma : float or (n,) array
        The noise level that all methods were given.
    noise_risk : float
        Expected squared error of the noisy signal itself, the sum of sigma squared over all nodes.

    See Also
    --------
    compare : Computes it.
    """

    results: dict[str, Denoised]
    rows: tuple[ComparedMethod, ...]
    sigma: Any
    noise_risk: float

    @property
    def best(self) -> str | None:
        """The method of least estimated risk; None if no risk is credible."""
        return next((row.method for row in self.rows if row.is_least), None)

    @property
    def has_truth(self) -> bool:
        """Whether the truth was given, and rows have a true squared error."""
        return any(row.squared_error is not None for row in self.rows)

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame, indexed by method.

        Returns
        -------
        pandas.DataFrame
            One row per method; columns are the attributes of `rows`, those of the truth only if it was given.

        Raises
        ------
        MissingPackageError
            If pandas is not installed; it is an ImportError that names the extra.
        """
        frame = pandas_module().DataFrame([asdict(row) for row in self.rows]).set_index("method")
        return frame if self.has_truth else frame.drop(columns=list(TRUTH_COLUMNS))

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the table as text.

        Returns
        -------
        head : list of str
            Names of the columns.
        rows : list of list of str
            One text per column, for each row.
        """
        head = ["method", "risk", "risk_se", "typical error", "seconds"]
        head += ["squared error", "SNR, dB"] if self.has_truth else []
        head += ["note"] if any(row.note for row in self.rows) else []
        return head, [_cells_of(row)[: 5 + 2 * self.has_truth] + [row.note] * ("note" in head) for row in self.rows]

    @property
    def legend(self) -> str:
        """What the marks in the table mean, and what the noise is."""
        low, high = np.min(self.sigma), np.max(self.sigma)
        sigma = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        parts = [f"sigma {sigma}, risk of the noisy signal {_text_of(self.noise_risk, 4)}"]
        parts += [f"{LEAST_MARK} least risk"] * any(row.is_least for row in self.rows)
        parts += [f"{CLOSE_MARK} within a standard error of it"] * any(row.is_close for row in self.rows)
        return "; ".join(parts)

    def __repr__(self) -> str:
        head, rows = self.cells()
        lines = [head, *rows]
        widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
        is_left = [name in ("method", "note") for name in head]
        texts = [
            "  ".join(
                cell.ljust(width) if left else cell.rjust(width) for cell, width, left in zip(line, widths, is_left, strict=True)
            )
            for line in lines
        ]
        return "\n".join([*(text.rstrip() for text in texts), self.legend])

    def _repr_html_(self) -> str:
        head, rows = self.cells()
        best = [k for k, row in enumerate(self.rows) if row.is_least]
        return notebook_table(rows, title="Comparison", head=head, foot=self.legend, strong=best)


def _cells_of(row: ComparedMethod) -> list[str]:
    """Return all cells of a row but the note."""
    mark = LEAST_MARK if row.is_least else CLOSE_MARK if row.is_close else ""
    error = "" if np.isnan(row.risk) else "unknown" if np.isnan(row.typical_error) else _text_of(row.typical_error, 4)
    ratio = "" if row.snr is None or np.isnan(row.snr) else f"{row.snr:.2f}"
    return [
        f"{row.method} {mark}".rstrip(),
        _text_of(row.risk, 4),
        _text_of(row.risk_se, 2),
        f"<= {error}" if row.is_bound else error,
        _text_of(row.seconds, 2),
        _text_of(row.squared_error, 4),
        ratio,
    ]


def _text_of(number: float | None, digits: int) -> str:
    """Return a number with that many digits, without an exponent up to ten million; nothing for None and NaN.

    >>> _text_of(41837.2, 4), _text_of(217.0, 2), _text_of(0.00123, 2), _text_of(-2.5e9, 4), _text_of(None, 4)
    ('41,840', '220', '0.0012', '-2.5e+09', '')
    """
    if number is None or np.isnan(number):
        return ""
    short = f"{number:.{digits}g}"
    return f"{float(short):,.10g}" if abs(float(short)) < 1e7 else short


def compare(
    graph: Graph,
    noisy: Any,
    *,
    sigma: NodeNumbers | None = None,
    methods: Sequence[str] | None = None,
    truth: Any = None,
    nonnegative: bool = False,
    guides: Any = None,
    seed: int = 0,
    n_probes: int | None = None,
    progress: Progress = None,
) -> Comparison:
    """Denoise one signal by several methods, and return a table of their estimated risks and times.

    A difference of risks that is smaller than their `risk_se` means nothing. The least of many estimated risks is optimistic: the more
    methods are compared, the more it is the one whose risk was underestimated. To have one good estimate, take `denoise` with its
    default method, which combines estimates instead of choosing one.

    Parameters
    ----------
    graph : Graph
        The graph whose nodes have the values.
    noisy : array (n,), Mapping, Series, DataArray, or Noisy
        One noisy signal, as in `denoise`, on the CPU and without missing values.
    sigma : float or (n,) array, optional
        Standard deviation of the noise, possibly one per node; `Noisy` and releases bring their own. If not given, it is estimated once,
        with a warning, and all methods get the same estimate.
    methods : sequence of str, optional
        Methods of `denoise`, and "dfs_fused_lasso" and "graph_tv" with the penalty of least SURE. Default: a few that differ, without
        those that are slow on a graph of this size; with `guides`, those that take guides.
    truth : like `noisy`, optional
        The true signal, to add the true squared error and the SNR of each method. A private release is refused then, since the result
        would reveal exact values.
    nonnegative : bool
        The signal cannot be negative: as in `denoise`, and negative values of all methods are set to zero in the end. The risk is that
        before, the true squared error that after it.
    guides : optional
        Public maps that help, as in `denoise`.
    seed : int
        Seed of the probes and orders. Equal input gives equal bits.
    n_probes : int, optional
        Number of random probes; chosen by the size of the graph if not given.
    progress : True or callable, optional
        True shows a bar, on a terminal or in a notebook. A function is called as in `denoise`.

    Returns
    -------
    Comparison
        A table with a row for each method, sorted by estimated risk, and the results. A method that cannot be used on this graph, or
        with these arguments, has a row that says why. Results of baselines have no expected errors, intervals and totals. `seconds` of the first method include what is computed once for a graph.

    Raises
    ------
    InputError
        If an argument cannot be used by any method, or the signal has several columns.

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.grid(40, 40)
    >>> clean = np.repeat([0.0, 10.0], 800)
    >>> noisy = clean + np.random.default_rng(0).normal(0, 2, 1600)
    >>> comparison = hg.compare(graph, noisy, sigma=2, methods=["let", "sgwt_sure", "graph_tv"], truth=clean)
    >>> comparison.best
    'graph_tv'
    >>> best = comparison.results[comparison.best]
    >>> bool(hg.snr(clean, best.signal) > hg.snr(clean, noisy) + 12)
    True
    """
    refuse_device(noisy=noisy, truth=truth)
    graph = as_graph(graph)
    _refuse_truth_of_release(noisy, truth)
    problem = _checked_problem(graph, noisy, sigma)
    clean = None if truth is None else _checked_truth(graph, truth)
    Settings(n_probes=n_probes, seed=seed, nonnegative=nonnegative).check()
    maps = None if guides is None else read_guides(graph, guides, draw_marks(problem.values))
    names = _default_methods(problem, nonnegative, has_guides=guides is not None) if methods is None else _checked_methods(methods)
    notes: list[str] = []
    about_sigma: dict[str, Any] = {}
    if problem.sigma is None:
        problem, about_sigma = with_estimated_sigma(problem, notes)
    settings = {"n_probes": n_probes, "seed": seed, "nonnegative": nonnegative}
    outcomes: dict[str, Denoised | str] = {}
    with watching(progress):
        for k, name in enumerate(names):
            with nth(k, len(names)):
                reached(0.0, name)
                outcome = _result_or_reason(problem, noisy, name, maps, settings)
            outcomes[name] = outcome if isinstance(outcome, str) else _with_notes(outcome, notes, about_sigma)
    is_too_large = any(_is_too_large(outcome) for outcome in outcomes.values())
    for note in [*notes, *[TOO_LARGE] * is_too_large]:
        warnings.warn(note, stacklevel=2)
    rows = _ranked([_row(graph, name, outcome, clean) for name, outcome in outcomes.items()], is_too_large=is_too_large)
    results = {row.method: result for row in rows if isinstance(result := outcomes[row.method], Denoised)}
    return Comparison(results, rows, problem.sigma, float(problem.noise.total(graph.n)))


# ---- arguments -----------------------------------------------------------------------------------------------------


def _refuse_truth_of_release(noisy: Any, truth: Any) -> None:
    """Refuse a release as the truth, and a release that is to be compared with the truth."""
    refuse_release("truth", truth)
    if truth is not None and isinstance(noisy, Noisy) and noisy.kind == "release":
        refuse_release("noisy", noisy)


def _checked_problem(graph: Graph, noisy: Any, sigma: Any) -> Problem:
    """Return the problem of one signal without gaps."""
    problem = Problem.of(graph, noisy, sigma=sigma, missing="drop", columns="separate")
    if problem.values.ndim != 1:
        hint = "compare each column by itself"
        raise InputError.about(argument="noisy", expected="one signal", got=f"shape {problem.values.shape}", hint=hint)
    if problem.is_known is not None:
        got, hint = f"{int((~problem.is_known).sum())} nodes without one", "take them out with graph.subgraph"
        raise InputError.about(argument="noisy", verb="have", expected="a value for every node", got=got, hint=hint)
    return problem


def _checked_truth(graph: Graph, truth: Any) -> np.ndarray:
    clean = graph.aligned("truth", truth, hint="give a truth without gaps")
    if clean.ndim != 1:
        raise InputError.about(argument="truth", expected="one signal", got=f"shape {clean.shape}")
    return np.asarray(clean, dtype=np.float64)


def _checked_methods(methods: Any) -> list[str]:
    """Return the names of the methods, each once."""
    if isinstance(methods, str) or not isinstance(methods, Sequence) or not methods:
        hint = "leave it out for the usual ones"
        raise InputTypeError.about(argument="methods", expected="a list of names of methods", got=shown(methods), hint=hint)
    return list(dict.fromkeys(choose("methods", name, (*METHODS, *BASELINES)) for name in methods))


def _default_methods(problem: Problem, nonnegative: bool, *, has_guides: bool) -> list[str]:
    """Return the methods that are compared if the caller names none."""
    names = guided_methods() if has_guides else DEFAULT_METHODS
    left_out = {name for name, most in LARGEST_BY_DEFAULT.items() if problem.graph.n > most}
    left_out |= set() if nonnegative else {"counts"}
    left_out |= set(BASELINES) if np.ndim(problem.sigma) else set()  # they take one sigma for all nodes
    return [name for name in names if name not in left_out]


# ---- one method ----------------------------------------------------------------------------------------------------


def _result_or_reason(
    problem: Problem, noisy: Any, name: str, guides: list[Guide] | None, settings: dict[str, Any]
) -> Denoised | str:
    """Return the result of a method, as the method itself would return it, or why it cannot be used."""
    try:
        if name in BASELINES:
            return _baseline(problem, noisy, name, guides, settings)
        return _method(problem, noisy, Settings(method=METHODS[name].name, **settings), guides)
    except (InputError, InputTypeError, ComputationError) as error:
        return error.sentence


def _method(problem: Problem, noisy: Any, settings: Settings, guides: list[Guide] | None) -> Denoised:
    timings: dict[str, float] = {}
    started = time.perf_counter()
    checked_guides(problem, settings, None if guides is None else [])
    guided = with_guides(problem, guides or [], settings, timings)
    result = solve(guided, settings, timings)
    timings["total"] = time.perf_counter() - started
    draws = draw_marks(problem.values).union(*(guide.draws for guide in guided.guides))
    return in_input_form(problem.graph, noisy, result, settings, integer=False, draws=draws, problem=guided)


def _baseline(problem: Problem, noisy: Any, name: str, guides: list[Guide] | None, settings: dict[str, Any]) -> Denoised:
    if guides is not None:
        msg = f"guides= do not go with {name}"
        raise InputError(msg)
    if name == "graph_tv":
        result = graph_tv(problem.graph, problem.values, sigma=problem.sigma)
    else:
        result = dfs_fused_lasso(problem.graph, problem.values, sigma=problem.sigma, seed=settings["seed"])
    plain = Settings(nonnegative=settings["nonnegative"])
    return in_input_form(problem.graph, noisy, result, plain, integer=False, draws=result.draws)


def _with_notes(result: Denoised, notes: list[str], about_sigma: dict[str, Any]) -> Denoised:
    """Return the result with what `denoise` would say about a sigma that it estimated."""
    return replace(result, details={**result.details, **about_sigma, "notes": [*notes, *result.details.get("notes", [])]})


# ---- the table -----------------------------------------------------------------------------------------------------


def _row(graph: Graph, name: str, outcome: Denoised | str, clean: np.ndarray | None) -> ComparedMethod:
    """Return the row of a method, without its rank."""
    if isinstance(outcome, str):
        return ComparedMethod(method=name, note=outcome)
    error, note = outcome.typical_error, ""
    if not error.is_known:
        note = "no error is claimed: there is hardly any signal, or sigma is too large"
    elif np.size(outcome.details.get("unchanged", ())):
        note = "returned the noisy signal: the estimated risk exceeded that of the noise"
    squared_error, ratio = None, None
    if clean is not None:
        estimate = np.asarray(graph.aligned("signal", outcome.signal), dtype=np.float64)
        squared_error = float(np.sum((estimate - clean) ** 2))
        ratio = float(snr(clean, estimate)) if clean.any() else np.nan
    return ComparedMethod(
        method=name,
        risk=float(outcome.risk),
        risk_se=float(outcome.risk_se),
        typical_error=error.size,
        is_bound=error.is_bound,
        seconds=outcome.timings["total"],
        squared_error=squared_error,
        snr=ratio,
        note=note,
    )


def _is_too_large(outcome: Denoised | str) -> bool:
    """Return whether sigma is proven to be too large."""
    return isinstance(outcome, Denoised) and bool(np.any(outcome.details.get("sigma_too_large", False)))


def _ranked(rows: list[ComparedMethod], *, is_too_large: bool) -> tuple[ComparedMethod, ...]:
    """Return the rows by risk with their marks: credible risks first, methods without a risk last.

    If one method proves that sigma is too large, no risk is credible.
    """
    if is_too_large:
        note = "sigma is too large, so the risk is worth nothing"
        rows = [row if np.isnan(row.risk) else replace(row, typical_error=np.nan, is_bound=False, note=note) for row in rows]
    credible = [row for row in rows if not is_too_large and TypicalError.of(row.risk, row.risk_se, 1).is_known]
    others = [row for row in rows if row not in credible]
    credible.sort(key=lambda row: row.risk)
    others.sort(key=lambda row: (np.isnan(row.risk), 0.0 if np.isnan(row.risk) else row.risk))
    if not credible:
        return tuple(others)
    least, *rest = credible
    marked = [replace(row, is_close=row.risk - least.risk <= max(row.risk_se, least.risk_se)) for row in rest]
    return (replace(least, is_least=True), *marked, *others)
