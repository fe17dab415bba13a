"""Do expected errors and intervals hold? Coverage, width and errors in every part of a map, against the truth.

    python benchmarks/intervals.py [--draws 10]

Taxi pickups of Manhattan and San Francisco at the sigmas of the tables and the signals of Minnesota (found through HUSHGRAPH_DATA; left out
without it), counts on generated cities, and signals on a mesh. Writes benchmarks/results/intervals.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import signal_kinds

import hushgraph as hg
from hushgraph.experiments.stage import machine

RESULT = Path(__file__).parent / "results" / "intervals.md"
HAS_DATA = bool(os.environ.get("HUSHGRAPH_DATA"))
LEVELS = (0.5, 0.8, 0.9, 0.95)
NORMAL = 2 * 1.6448536269514722  # width of a 90 % interval around a noisy value, in sigma
SEED = 20261118


@dataclass(frozen=True)
class Case:
    """A kind of signal with noise of one size."""

    name: str
    graph: hg.Graph
    sigma: float
    truth: Callable[[int], np.ndarray]
    is_nonnegative: bool = False


def cases() -> Iterator[Case]:
    """Yield all cases."""
    if HAS_DATA:
        maps = {"Manhattan": (hg.datasets.manhattan(), "f_matched", (26.49, 12.99, 8.06, 4.22)),
                "San Francisco": (hg.datasets.san_francisco(), "f_all", (37.98, 16.12, 8.45))}  # fmt: skip
        for name, (found, signal, sigmas) in maps.items():
            for sigma in sigmas:
                yield Case(name, found.graph, sigma, lambda _, values=found.signals[signal]: values, True)
    for n in (600, 1500, 4000):
        graph = hg.datasets.city(n)
        for sigma in (5.0, 15.0):
            yield Case(
                f"city, {graph.n:,} nodes",
                graph,
                sigma,
                lambda d, g=graph: hg.hotspot_counts(g, total=10 * g.n, seed=d).astype(float),
                True,
            )
    mesh = signal_kinds.mesh()
    for kind in ("long waves", "Gaussian field, smooth", "Gaussian field, rough", "pieces"):
        for sigma in signal_kinds.SIGMAS:
            yield Case(f"mesh, {kind}", mesh.graph, sigma, lambda d, k=kind: signal_kinds.clean_signal(mesh, k, d))
    if HAS_DATA:
        yield from minnesota()


def minnesota() -> Iterator[Case]:
    """Yield the roads of Minnesota with two sparse signals of the package gasper and with long waves, at three input SNRs."""
    with np.load(Path(os.environ["HUSHGRAPH_DATA"]) / "gasper_minnesota.npz") as data:
        graph = hg.Graph.from_edges(data["edges"], n=int(data["n"]), coords=data["xy"])
        sparse = {name: data[name].astype(float) for name in ("f1", "f2")}
    signals: dict[str, Callable[[int], np.ndarray]] = {
        f"sparse signal {name}": lambda _, v=values: v for name, values in sparse.items()
    }
    signals["long waves"] = lambda d: hg.smooth_signal(graph, seed=d)
    for name, truth in signals.items():
        for decibels in (-3, 3, 10):
            sigma = float(np.sqrt(np.mean(truth(0) ** 2)) * 10 ** (-decibels / 20))
            yield Case(f"Minnesota, {name}", graph, sigma, truth)


def in_parts(key: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """Return the means of values in so many parts of equal size, by ascending key."""
    part = np.argsort(np.argsort(key, kind="stable")) * count // len(key)
    return np.array([values[part == k].mean() for k in range(count)])


def measured(case: Case, draws: int) -> dict[str, np.ndarray]:
    """Return coverage, relative width, coverage by fifths and the ratio of squared errors by tenths, as means over draws."""
    sums: dict[str, list] = {name: [] for name in ("coverage", "width", "by estimate", "by expected error", "true", "expected")}
    for draw in range(draws):
        truth = case.truth(draw)
        noisy = truth + case.sigma * np.random.default_rng([SEED, draw]).normal(size=case.graph.n)
        result = hg.denoise(case.graph, noisy, sigma=case.sigma, nonnegative=case.is_nonnegative)
        square = result.expected_error() ** 2
        inside = {}
        for level in LEVELS:
            lower, upper = result.interval(level)
            inside[level] = (lower <= truth + 1e-9) & (truth <= upper + 1e-9)
            if level == 0.9:
                sums["width"].append(np.mean(upper - lower) / (NORMAL * case.sigma))
        sums["coverage"].append([inside[level].mean() for level in LEVELS])
        sums["by estimate"].append(in_parts(result.signal, inside[0.9], 5))
        sums["by expected error"].append(in_parts(square, inside[0.9], 5))
        sums["true"].append(in_parts(square, (result.signal - truth) ** 2, 10))
        sums["expected"].append(in_parts(square, square, 10))
    return {name: np.mean(values, axis=0) for name, values in sums.items()}


def table(head: list[str], rows: list[list]) -> list[str]:
    return ["| " + " | ".join(map(str, line)) + " |" for line in (head, ["---"] * len(head), *rows)] + [""]


def percent(values) -> str:
    return " / ".join(f"{100 * value:.0f}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    draws = parser.parse_args().draws
    coverage, errors = [], []
    for case in cases():
        means = measured(case, draws)
        name = [case.name, f"{case.sigma:.3g}"]
        parts = [percent(means[key]) for key in ("by estimate", "by expected error")]
        coverage.append([*name, *(f"{100 * value:.1f}" for value in means["coverage"]), *parts, f"{means['width']:.2f}"])
        ratios = means["true"] / means["expected"]
        total = means["true"].sum() / means["expected"].sum()
        errors.append([*name, f"{total:.2f}", " / ".join(f"{ratio:.2f}" for ratio in ratios)])
        print(*coverage[-1], *errors[-1][2:], sep=" | ", flush=True)
    lines = [
        "# Expected errors and intervals against the truth",
        "",
        f"{datetime.date.today():%Y-%m-%d}, {machine()}, `benchmarks/intervals.py --draws {draws}`. Method `auto`, means over {draws} draws;",
        "pickups and counts with nonnegative=True. Taxi maps and Minnesota are real street networks, cities and the mesh are generated.",
        "",
        "**Coverage** in percent: of all nodes for four levels, and for 90 % in each fifth of the nodes, by the estimate and by the expected error;",
        "mean width of the 90 % intervals over that of an interval around the noisy value.",
        "",
        *table(
            ["signal", "sigma", *(f"{100 * level:.0f} %" for level in LEVELS), "by estimate", "by expected error", "width"],
            coverage,
        ),
        "**True over expected squared error**: of all nodes, and in each tenth of the nodes by expected error.",
        "",
        *table(["signal", "sigma", "all", "tenths, from the least expected error to the largest"], errors),
    ]
    RESULT.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
