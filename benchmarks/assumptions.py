"""What happens if sigma, the law of the noise or the graph is not what `denoise` assumes: the numbers of docs/assumptions.md.

    python benchmarks/assumptions.py            two to four minutes on two cores
    python benchmarks/assumptions.py --quick    two draws, writes no file

Everything is generated. Draw k adds noise of numpy.random.default_rng(k), the same normal numbers in every row: other laws are made from
them by their quantiles, so that rows differ by the broken assumption only. Each draw has its own wrong graph. All noise has the same mean
variance. Writes Markdown to the screen and to benchmarks/results/assumptions.md.

A new column, for example the coverage of an interval, is one more function in MEASURES.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("HUSHGRAPH_NUM_THREADS", "1")  # there is a process per core

import argparse
import datetime
import resource
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from typing import Any

import numpy as np
from bench import RESULTS
from estimators import table
from scipy import optimize, sparse, stats
from scipy.spatial import Delaunay

import hushgraph as hg
from hushgraph.experiments.stage import machine

METHODS = ("auto", "let", "sgwt_sure", "filter")
DRAWS = 10
SPREAD = 0.5  # standard deviation of the logarithm of a sigma that differs by node


@dataclass(frozen=True)
class Case:
    """A true signal on its graph, and the standard deviation of the noise."""

    name: str
    graph: hg.Graph
    clean: np.ndarray
    sigma: float
    nonnegative: bool = False


@cache
def cases() -> tuple[Case, ...]:
    """Return the signals; sigma is half of the standard deviation of each."""
    city, triangles, grid = hg.datasets.city(1000), mesh(1000), hg.datasets.grid(32, 32)
    signals = (
        ("hotspot counts on a city", city, hg.hotspot_counts(city)),
        ("smooth signal on a mesh", triangles, hg.smooth_signal(triangles)),
        ("pieces on a grid", grid, hg.piecewise_constant_signal(grid)),
    )
    return tuple(Case(name, graph, clean, clean.std() / 2, graph is city) for name, graph, clean in signals)


def mesh(n: int) -> hg.Graph:
    """Delaunay triangles of random points; every edge weighs 1."""
    points = np.random.default_rng(0).random((n, 2))
    corners = Delaunay(points).simplices
    edges = np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [0, 2]], corners[:, [1, 2]]]), axis=1)
    return hg.Graph.from_edges(np.unique(edges, axis=0), n=n, coords=points)


# ---- noise: from independent normal numbers of variance 1 to noise of mean variance 1 ------------------------------------


def by_quantiles(law: Any, graph: hg.Graph, normal: np.ndarray) -> np.ndarray:
    return (law.ppf(stats.norm.cdf(normal)) - law.mean()) / law.std()


def levels_at_random(graph: hg.Graph) -> np.ndarray:
    """A standard deviation for each node, independent of its place."""
    return _mean_square_1(np.exp(SPREAD * np.random.default_rng(1000).normal(size=graph.n)))


def levels_by_region(graph: hg.Graph) -> np.ndarray:
    """A standard deviation of half as much on one half of the map, in the direction of x, as on the other."""
    x = graph.coords[:, 0]
    return _mean_square_1(np.where(x < np.median(x), 1.0, 2.0))


def _mean_square_1(levels: np.ndarray) -> np.ndarray:
    return levels / np.sqrt(np.mean(levels**2))


def correlated(correlation: float, graph: hg.Graph, normal: np.ndarray) -> np.ndarray:
    """Each node's own noise and a share of the mean of its neighbours', so that neighbours have this correlation on average."""
    return _shared(graph, _share_for(graph, correlation)) @ normal


def _shared(graph: hg.Graph, share: float) -> sparse.csr_array:
    neighbors = np.maximum(np.diff(graph.adjacency.indptr), 1)
    mixed = sparse.eye_array(graph.n) + sparse.diags_array(share / neighbors) @ (graph.adjacency != 0).astype(float)
    rows = sparse.csr_array(mixed)
    return sparse.csr_array(sparse.diags_array(1 / np.sqrt(rows.multiply(rows).sum(axis=1))) @ rows)


@cache
def _share_for(graph: hg.Graph, correlation: float) -> float:
    def excess(share: float) -> float:
        rows = _shared(graph, share)
        return (rows @ rows.T).multiply(graph.adjacency != 0).sum() / graph.adjacency.nnz - correlation

    return optimize.brentq(excess, 0.0, 1.0, xtol=1e-3)


# ---- wrong graphs ----------------------------------------------------------------------------------------------------------


def edges_of(graph: hg.Graph) -> np.ndarray:
    return np.stack(sparse.triu(graph.adjacency, 1).nonzero(), axis=1)


def built(graph: hg.Graph, edges: np.ndarray, weights: np.ndarray | None = None) -> hg.Graph:
    return hg.Graph.from_edges(edges, n=graph.n, weights=weights, coords=graph.coords, crs=graph.crs)


def removed(share: float, graph: hg.Graph, rng: np.random.Generator) -> hg.Graph:
    edges = edges_of(graph)
    return built(graph, rng.permutation(edges)[round(share * len(edges)) :])


def rewired(share: float, graph: hg.Graph, rng: np.random.Generator) -> hg.Graph:
    """One end of some edges becomes a random node."""
    edges = rng.permutation(edges_of(graph))
    count = round(share * len(edges))
    edges[:count, 1] = (edges[:count, 0] + rng.integers(1, graph.n, count)) % graph.n
    return built(graph, np.unique(np.sort(edges, axis=1), axis=0))


def reweighted(spread: float, graph: hg.Graph, rng: np.random.Generator) -> hg.Graph:
    """Each weight times exp(spread times a normal number)."""
    edges = edges_of(graph)
    return built(graph, edges, np.exp(spread * rng.normal(size=len(edges))))


# ---- conditions ------------------------------------------------------------------------------------------------------------


def white(graph: hg.Graph, normal: np.ndarray) -> np.ndarray:
    return normal


def untreated(graph: hg.Graph, noisy: np.ndarray, sigma: float) -> np.ndarray:
    return noisy


def clipped(graph: hg.Graph, noisy: np.ndarray, sigma: float) -> np.ndarray:
    """The values, at most 3 sigma from the estimate of method="filter", which follows single values least."""
    smooth = hg.denoise(graph, noisy, sigma=sigma, method="filter").signal
    return np.clip(noisy, smooth - 3 * sigma, smooth + 3 * sigma)


def undamaged(graph: hg.Graph, rng: np.random.Generator) -> hg.Graph:
    return graph


@dataclass(frozen=True)
class Condition:
    """What differs from the assumptions: the noise, the sigma that `denoise` is given (None: estimated), the graph; and what is done about it."""

    name: str
    noise: Callable[[hg.Graph, np.ndarray], np.ndarray] = white
    given: float | Callable[[hg.Graph], np.ndarray] | None = 1.0  # in units of the true sigma
    damage: Callable[[hg.Graph, np.random.Generator], hg.Graph] = undamaged
    remedy: Callable[[hg.Graph, np.ndarray, float], np.ndarray] = untreated


def unequal(levels: Callable[[hg.Graph], np.ndarray], graph: hg.Graph, normal: np.ndarray) -> np.ndarray:
    return levels(graph) * normal


HOLDS = Condition("all assumptions hold")
PARTS: dict[str, tuple[Condition, ...]] = {
    "sigma is wrong": (
        HOLDS,
        *(Condition(f"sigma {100 * (factor - 1):+.0f} %", given=factor) for factor in (0.8, 0.9, 1.1, 1.2)),
        Condition("sigma not given, so estimated", given=None),
    ),
    "the noise is not independent and normal with one sigma": (
        HOLDS,
        Condition("uniform", partial(by_quantiles, stats.uniform())),
        Condition("Laplace", partial(by_quantiles, stats.laplace())),
        Condition("Student t, 5 degrees of freedom", partial(by_quantiles, stats.t(5))),
        Condition("the same, clipped to 3 sigma around `filter`", partial(by_quantiles, stats.t(5)), remedy=clipped),
        Condition("sigma differs by node, at random", partial(unequal, levels_at_random)),
        Condition("the same, sigma given per node", partial(unequal, levels_at_random), given=levels_at_random),
        Condition("sigma twice as large on one half", partial(unequal, levels_by_region)),
        Condition("the same, sigma given per node", partial(unequal, levels_by_region), given=levels_by_region),
        Condition("correlation of neighbors 0.1", partial(correlated, 0.1)),
        Condition("correlation of neighbors 0.3", partial(correlated, 0.3)),
        Condition("the same, sigma estimated", partial(correlated, 0.3), given=None),
    ),
    "the graph is wrong": (
        HOLDS,
        *(Condition(f"{100 * share:.0f} % of the edges missing", damage=partial(removed, share)) for share in (0.01, 0.05, 0.2)),
        *(
            Condition(f"{100 * share:.0f} % of the edges rewired", damage=partial(rewired, share))
            for share in (0.01, 0.05, 0.2, 1.0)
        ),
        *(Condition(f"weights off, factor exp({s:g} z)", damage=partial(reweighted, s)) for s in (0.2, 1.0)),
    ),
}


# ---- measures --------------------------------------------------------------------------------------------------------------


def expected_and_true(share: float, result: hg.Denoised, clean: np.ndarray) -> tuple[float, float]:
    """Sums of expected and of true squared errors over this share of the nodes, those of the largest expected errors."""
    expected = result.expected_error() ** 2
    nodes = np.argsort(-expected)[: round(share * len(expected))]
    return float(expected[nodes].sum()), float(np.sum((result.signal - clean)[nodes] ** 2))


def risk_and_true(result: hg.Denoised, clean: np.ndarray) -> tuple[float, float]:
    return result.risk, float(np.sum((result.signal - clean) ** 2))


def in_standard_errors(result: hg.Denoised, clean: np.ndarray) -> tuple[float, float]:
    risk, true = risk_and_true(result, clean)
    return (risk - true) / result.risk_se, 1.0


def proven_too_large(result: hg.Denoised, clean: np.ndarray) -> tuple[float, float]:
    return 100.0 * bool(np.any(result.details["sigma_too_large"])), 1.0


# Each function returns two numbers for a result and the truth. A cell is the sum of the first over all draws divided by that of the second;
# draws with NaN are left out. A cell shows that ratio, or its root, in the format of the last text.
Measure = Callable[[hg.Denoised, np.ndarray], tuple[float, float]]
RISK, EXPECTED = "risk / true squared error", "expected_error() / true, root mean square"
MEASURES: dict[str, tuple[Measure, Callable[[float], float], str]] = {
    RISK: (risk_and_true, float, "{:.2f}"),
    "(risk - true) / risk_se": (in_standard_errors, float, "{:+.1f}"),
    EXPECTED: (partial(expected_and_true, 1.0), np.sqrt, "{:.2f}"),
    "the same, tenth of the nodes where it is largest": (partial(expected_and_true, 0.1), np.sqrt, "{:.2f}"),
    "sigma found too large, % of draws": (proven_too_large, float, "{:.0f}"),
}


def measured(task: tuple[int, Condition, int]) -> np.ndarray:
    """Return (draws, methods, 1 + 2 measures): SNR, and two numbers for each measure."""
    warnings.simplefilter("ignore")  # about sigma
    number, condition, draws = task
    case, found = cases()[number], []
    for k in range(draws):
        normal = np.random.default_rng(k).normal(size=case.graph.n)
        noisy = case.clean + case.sigma * condition.noise(case.graph, normal)
        graph = condition.damage(case.graph, np.random.default_rng([k, 1]))
        given = condition.given(case.graph) if callable(condition.given) else condition.given
        sigma = None if given is None else given * case.sigma
        noisy = condition.remedy(graph, noisy, case.sigma)
        for method in METHODS:
            result = hg.denoise(graph, noisy, sigma=sigma, method=method, nonnegative=case.nonnegative)
            pairs = (measure(result, case.clean) for measure, _, _ in MEASURES.values())
            found.append([hg.snr(case.clean, result.signal), *(number for pair in pairs for number in pair)])
    return np.array(found).reshape(draws, len(METHODS), -1)


# ---- tables ----------------------------------------------------------------------------------------------------------------


def measure_cells(found: np.ndarray) -> list[list[str]]:
    """Return, for each measure, its text for each method."""
    cells = []
    for k, (_, scale, form) in enumerate(MEASURES.values()):
        pairs = found[:, :, 1 + 2 * k : 3 + 2 * k]
        pairs = np.where(np.isnan(pairs).any(axis=2, keepdims=True), 0.0, pairs).sum(axis=0)
        cells.append([form.format(scale(top / bottom)) if bottom else "unknown" for top, bottom in pairs])
    return cells


def change_cells(found: np.ndarray, usual: np.ndarray) -> list[str]:
    """Return the change of the SNR with its standard error, for each method."""
    change = found[:, :, 0] - usual[:, :, 0]
    return [f"{mean:+.2f} ± {error:.2f}" for mean, error in zip(change.mean(axis=0), stats.sem(change, axis=0), strict=True)]


def row_of(condition: Condition, found: np.ndarray, usual: np.ndarray) -> list[str]:
    """Return a row of a table; cells hold one number for each method."""
    snrs = [f"{value:.2f}" for value in found[:, :, 0].mean(axis=0)]
    changes = [] if condition is HOLDS else change_cells(found, usual)
    return [condition.name, *(" / ".join(cells) for cells in (snrs, changes, *measure_cells(found)))]


def short_cell(condition: Condition, found: np.ndarray, usual: np.ndarray) -> str:
    """Return the numbers of the first method: SNR or its change, risk and expected error as parts of the true ones."""
    first = f"{found[:, 0, 0].mean():.2f} dB" if condition is HOLDS else f"{np.mean(found[:, 0, 0] - usual[:, 0, 0]):+.2f}"
    ratios = [cells[0] for name, cells in zip(MEASURES, measure_cells(found), strict=True) if name in (RISK, EXPECTED)]
    return " / ".join([first, *ratios])


def tables(found: dict[tuple[int, Condition], np.ndarray], draws: int) -> list[str]:
    lines = [
        f"Means over {draws} draws. Changes of the SNR are those of the same draws, ± their standard error. A ratio is the sum over all "
        "draws divided by the sum over all draws; the true error of counts is that after clipping at 0, their risk that before.",
        "",
    ]
    for number, case in enumerate(cases()):
        level = 20 * np.log10(np.linalg.norm(case.clean) / case.sigma / np.sqrt(case.graph.n))
        size = f"{case.graph.n:,} nodes, {case.graph.n_edges:,} edges"
        lines += [f"{number + 1}. {case.name}: {size}; sigma {case.sigma:.3g}, SNR of the noisy signal {level:.1f} dB"]
    lines.append("")
    for part, conditions in PARTS.items():
        lines += [f"## If {part}", "", f"`{METHODS[0]}`; in each cell: change of the SNR in dB, then {RISK}, then {EXPECTED}", ""]
        rows = [
            [one.name, *(short_cell(one, found[number, one], found[number, HOLDS]) for number in range(len(cases())))]
            for one in conditions
        ]
        lines += table(["", *(case.name for case in cases())], rows)
        for number, case in enumerate(cases()):
            lines += [f"**{case.name}**; in each cell {' / '.join(METHODS)}", ""]
            rows = [row_of(one, found[number, one], found[number, HOLDS]) for one in conditions]
            lines += table(["", "SNR, dB", "change, dB", *MEASURES], rows)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two draws: shows that it runs; writes no file")
    parser.add_argument("--workers", type=int, default=2, help="number of processes")
    arguments = parser.parse_args()
    draws = 2 if arguments.quick else DRAWS
    conditions = dict.fromkeys(condition for part in PARTS.values() for condition in part)
    tasks = [(number, condition, draws) for condition in conditions for number in range(len(cases()))]
    with ProcessPoolExecutor(arguments.workers, get_context("spawn")) as pool:
        results = list(pool.map(measured, tasks))
    found = {(number, condition): result for (number, condition, _), result in zip(tasks, results, strict=True)}
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = usage.ru_utime + usage.ru_stime
    made = f"{datetime.date.today().isoformat()}, {machine()}, generated data; `python benchmarks/assumptions.py`, {cpu:.0f} s of processor time on {arguments.workers} cores"
    lines = ["# What if the assumptions do not hold", "", made, "", *tables(found, draws)]
    print("\n".join(lines), flush=True)
    if not arguments.quick:
        (RESULTS / "assumptions.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
