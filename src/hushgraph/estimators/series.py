"""`denoise_series`: maps that follow each other, such as the months of a year; each is guided by the others."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from hushgraph._arrays import NodeNumbers
from hushgraph._errors import InputError, InputTypeError
from hushgraph._progress import Progress, between, watching
from hushgraph._validation import choose, shown
from hushgraph.core import rowwise_variances
from hushgraph.estimators.denoising import (
    assembled,
    checked_guides,
    compared_with_noise,
    in_input_form,
    series_estimates,
    solve,
    with_guides,
)
from hushgraph.estimators.guides.draws import draw_marks
from hushgraph.estimators.methods import MethodName
from hushgraph.estimators.problem import Direction, Problem
from hushgraph.estimators.result import Denoised
from hushgraph.estimators.settings import Settings
from hushgraph.graphs import Graph, Noisy, as_graph


def denoise_series(
    graph: Graph,
    maps: Any,
    *,
    sigma: NodeNumbers | None = None,
    direction: Direction = "all",
    method: MethodName = "auto",
    nonnegative: bool = False,
    guides: Any = None,
    integer: bool = False,
    n_probes: int | None = None,
    seed: int = 0,
    progress: Progress = None,
) -> Any:
    """Denoise maps that follow each other, such as the hours of a day or the months of a year, each guided by the others.

    The guides of a map are the mean of all other maps and the mean of its neighbours in time, denoised. With direction="all" the
    result is averaged with that of all maps at once on the product of the graph and a path; SURE chooses the weights, map by map.

    Parameters
    ----------
    graph : Graph
        The graph whose nodes have the values.
    maps : list or dict of maps, array (n, m), DataFrame, or Noisy with windows
        The maps in order of time. A list or dict may hold `Noisy` maps and releases, each with its own sigma, and arrays.
    sigma : float or (n,) array, optional
        Standard deviation of the noise of maps that do not bring their own.
    direction : {"all", "past"}
        Whether a map is guided by all others, or only by those before it: the latter can be published as time goes on and stays as it is.
    method : {"auto", "let", "counts"}
        As in `denoise`.
    nonnegative : bool
        The values cannot be negative.
    guides : optional
        More guides for every map, as in `denoise`.
    integer : bool
        Round to whole numbers.
    n_probes : int, optional
        Number of random probes; chosen by the size of the graph if not given.
    seed : int
        Seed of the probes. Equal input gives equal bits.
    progress : True or callable, optional
        True shows a bar, on a terminal or in a notebook. A function is called as in `denoise`.

    Returns
    -------
    list or dict of Denoised, or Denoised
        One result for each map of a list or dict; one result with m columns for an array, table or map with windows.

    Raises
    ------
    InputError
        If an argument cannot be used, or two maps hold the same noise.

    Examples
    --------
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.city(400)
    >>> counts = hg.hotspot_counts(graph, total=4000)
    >>> rng = np.random.default_rng(0)
    >>> months = [rng.poisson(counts) + rng.normal(0, 10, graph.n) for _ in range(6)]
    >>> results = hg.denoise_series(graph, months, sigma=10, nonnegative=True)
    >>> alone = hg.denoise(graph, months[-1], sigma=10, nonnegative=True)
    >>> bool(hg.snr(counts, results[-1].signal) > hg.snr(counts, alone.signal) + 2)
    True
    """
    choose("direction", direction, get_args(Direction))
    choose("integer", integer, (True, False))
    settings = Settings(method=method, n_probes=n_probes, seed=seed, nonnegative=nonnegative)
    settings.check()
    timings: dict[str, float] = {}
    started = time.perf_counter()
    graph, (names, given) = as_graph(graph), _names_and_maps(maps)
    problem, sigmas = _problem_of(graph, maps, given, sigma, direction)
    problem = replace(problem, series=direction if problem.column_graphs else None)
    given_guides = checked_guides(problem, settings, guides)
    share = 0.1 if given_guides else 0.0
    with watching(progress):
        with between(0.0, share):
            problem = with_guides(problem, given_guides, settings, timings)
        with between(share, 1.0):
            if given is None:
                results = [solve(problem, settings, timings)]
            else:
                results = _solve_list(problem, sigmas, settings, timings)
    timings["total"] = time.perf_counter() - started
    draws = [draw_marks(column) for column in problem.values.reshape(graph.n, -1).T]
    extra = frozenset().union(*(guide.draws for guide in problem.guides))
    if given is None:
        return in_input_form(graph, maps, results[0], settings, integer=integer, draws=extra.union(*draws), problem=problem)
    reach = [draws[: k + 1] if direction == "past" else draws for k in range(len(draws))]
    whole = [
        in_input_form(graph, one, result, settings, integer=integer, draws=extra.union(*marks))
        for one, result, marks in zip(given, results, reach, strict=True)
    ]
    return whole if names is None else dict(zip(names, whole, strict=True))


def _names_and_maps(maps: Any) -> tuple[list | None, list | None]:
    """Return names and maps of a dict, maps of a list, and nothing for a table."""
    if isinstance(maps, Mapping):
        return list(maps), list(maps.values())
    return None, list(maps) if isinstance(maps, Sequence) and not isinstance(maps, str) else None


def _problem_of(graph: Graph, maps: Any, given: list | None, sigma: Any, direction: Direction) -> tuple[Problem, list[Any]]:
    """Return the problem of all maps as columns, and the sigma of each."""
    if given is None:
        problem = Problem.of(graph, maps, sigma=sigma, missing="error", columns="series")
        if problem.values.ndim != 2:
            expected = "a list of maps, a table with a column per map, or a noisy map with windows"
            raise InputTypeError.about(argument="maps", expected=expected, got=shown(maps))
        if problem.sigma is None and direction == "past":
            raise InputError.about(argument="sigma", expected="given with direction='past': an estimate would depend on later maps")
        _refuse_repeated(list(problem.values.T))
        return problem, []
    if not given:
        raise InputError.about(argument="maps", expected="at least one map", got="none")
    parts = [
        Problem.of(graph, one, sigma=None if isinstance(one, Noisy) else sigma, missing="error", columns="separate")
        for one in given
    ]
    for k, part in enumerate(parts):
        if part.values.ndim != 1 or part.sigma is None:
            fault = "has several columns" if part.values.ndim != 1 else "has no sigma: pass sigma=, or Noisy maps, which bring it"
            msg = f"map number {k + 1} of the series {fault}"
            raise InputError(msg)
    _refuse_repeated([part.values for part in parts])
    values = np.stack([part.values.astype(np.float64) for part in parts], axis=1)  # bits must not depend on the type of other maps
    whole = Problem.of(graph, values, sigma=1.0, missing="error", columns="series")
    return whole, [part.sigma for part in parts]


def _refuse_repeated(maps: list[np.ndarray]) -> None:
    """Refuse a series in which two maps hold the same noise."""
    first: dict[frozenset[str], int] = {}
    for k, values in enumerate(maps):
        marks = draw_marks(values)
        if marks in first:
            msg = f"maps number {first[marks] + 1} and {k + 1} of the series are the same map, with the same noise; pass each once"
            raise InputError(msg)
        first[marks] = k


def _solve_list(problem: Problem, sigmas: list[Any], settings: Settings, timings: dict[str, float]) -> list[Denoised]:
    """Return the result of each map by itself, each with its own sigma."""
    if len(sigmas) == 1:
        part = replace(problem, values=problem.planes[0], sigma=sigmas[0], series=None)
        return [solve(part, settings, timings)]
    results = []
    for y, sigma, estimate in zip(problem.planes, sigmas, series_estimates(problem, sigmas, settings, timings), strict=True):
        part = replace(problem, values=y, sigma=sigma, column_graphs=(), series=None)
        details = {"n_probes": None, "noisy_variance": part.per_signal(rowwise_variances(part.planes)), "sigma_estimated": False}
        results.append(compared_with_noise(assembled(part, [estimate], details, settings, timings), part, []))
    return results
