"""Time per stage on the large road network against the paper's, Rademacher against Gaussian, and how time grows with N, m, K and J.

Times are the best of three after a warm-up, on all cores, with graph and frame prepared. The paper's times are those of a laptop of its
time, so the ratio does not compare the code alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph.datasets import bernoulli_signal, roads
from hushgraph.estimators import dfs_fused_lasso
from hushgraph.experiments.output import figure, is_generated, markdown, write_files
from hushgraph.experiments.stage import Stage, machine
from hushgraph.graphs import Graph
from hushgraph.wavelets import analyze, chebyshev_frame, james_stein, monte_carlo_weights, sure_thresholds, synthesize

NAME, TITLE = "timing", "Time per stage"
PAPER = {"weights, N = 10": 60.0, "forward": 7.0, "thresholds": 150.0, "inverse": 25.0, "DFS fused lasso": 4.0}
VARIABLES = {"N": "probes N", "m": "edges m", "K": "degree K", "J": "scales J + 1"}


def run(stage: Stage) -> list[dict]:
    place = stage.large_roads
    rows = [{"part": "stages", **stage.about(place), "stage": stage_name, "seconds": seconds, "paper": PAPER.get(stage_name)}
            for stage_name, seconds in _stages(stage, place.graph).items()]  # fmt: skip
    for variable, value, compute in _growth(stage):
        settings = {"variable": variable, "value": value, "smoke": stage.smoke, "machine": machine()}
        seconds = stage.cells.value(f"{NAME}-{variable}-{value}", settings, compute)
        rows.append({"part": "growth", "data": "generated roads", "variable": variable, "value": value, "seconds": seconds})
    return rows


def _stages(stage: Stage, graph: Graph) -> dict[str, float]:
    """Return the seconds of each stage of the paper's method; each is a cell."""
    truth = bernoulli_signal(graph, p=0.05 if stage.smoke else 0.001, k=4, seed=0)
    sigma = float(np.sqrt(np.mean(truth**2)))
    noisy = truth + np.random.default_rng(0).normal(0, sigma, graph.n)
    cached: dict[str, Any] = {}

    def once(name: str, make: Callable[[], Any]) -> Any:
        if name not in cached:
            cached[name] = make()
        return cached[name]

    frame = lambda: once("frame", lambda: chebyshev_frame(graph))  # noqa: E731
    F = lambda: once("F", lambda: analyze(frame(), noisy))  # noqa: E731
    weights = lambda: once("weights", lambda: monte_carlo_weights(frame(), n_probes=1))  # noqa: E731
    t = lambda: once("t", lambda: sure_thresholds(F(), weights(), sigma=sigma))  # noqa: E731
    shrunk = lambda: once("shrunk", lambda: james_stein(F(), t()[:, None])[0])  # noqa: E731
    steps: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {  # preparation, and what is timed
        "weights, N = 10": (frame, lambda: monte_carlo_weights(frame(), n_probes=10)),
        "weights, N = 10, Gaussian": (frame, lambda: monte_carlo_weights(frame(), n_probes=10, law="gaussian")),
        "forward": (frame, lambda: analyze(frame(), noisy)),
        "thresholds": (lambda: (F(), weights()), lambda: sure_thresholds(F(), weights(), sigma=sigma)),
        "inverse": (shrunk, lambda: synthesize(frame(), shrunk())),
        "DFS fused lasso": (lambda: None, lambda: dfs_fused_lasso(graph, noisy, penalty=2 * sigma, sigma=sigma)),
    }

    def measured(prepare: Callable[[], Any], compute: Callable[[], Any]) -> Callable[[], float]:
        return lambda: (prepare(), best_of_three(compute))[1]

    settings = {"graph": graph.hash, "sigma": sigma, "machine": machine()}
    return {name: stage.cells.value(f"{NAME}-{name}", settings, measured(*parts)) for name, parts in steps.items()}


def _growth(stage: Stage) -> Iterator[tuple[str, int, Callable[[], float]]]:
    """Yield variables with a value and a function that measures the time, around one medium setting."""
    size = 2000 if stage.smoke else 200_000
    graph = cache(roads)

    def forward(n: int, **options: Any) -> Callable[[], float]:
        def timed() -> float:
            frame = chebyshev_frame(graph(n), **options)
            signal = np.random.default_rng(0).normal(size=n)
            return best_of_three(lambda: analyze(frame, signal))

        return timed

    def probes(count: int) -> Callable[[], float]:
        def timed() -> float:
            frame = chebyshev_frame(graph(size))
            return best_of_three(lambda: monte_carlo_weights(frame, n_probes=count))

        return timed

    for count in (1, 2, 4, 8):
        yield "N", count, probes(count)
    for n in (size // 2, size, 2 * size, 4 * size):
        yield "m", graph(n).n_edges, forward(n)
    for degree in (25, 50, 100, 200):
        yield "K", degree, forward(size, degree=degree)
    for low in (0, 2, 4, 6):
        yield "J", chebyshev_frame(graph(size), low_scales=low).n_scales, forward(size, low_scales=low)


def best_of_three(compute: Callable[[], Any]) -> float:
    """Return the shortest time of three runs after a warm-up, in seconds."""
    compute()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        compute()
        times.append(time.perf_counter() - start)
    return min(times)


def exponents(rows: list[dict]) -> dict[str, float]:
    """Return p of the best fit seconds ~ value^p, by variable."""
    powers = {}
    for variable in VARIABLES:
        points = [(row["value"], row["seconds"]) for row in rows if row.get("variable") == variable]
        x, y = np.log(np.array(points)).T
        powers[variable] = float(np.polyfit(x, y, 1)[0])
    return powers


def render(rows: list[dict], folder: Path) -> list[Path]:
    stages = [row for row in rows if row["part"] == "stages"]
    generated = is_generated(rows)
    lines = [
        [row["stage"], f"{row['seconds']:.3f} s"]
        + ([f"{row['paper']:g} s", f"{row['paper'] / row['seconds']:,.0f}"] if row.get("paper") and not generated else ["", ""])
        for row in stages
    ]
    seconds = {row["stage"]: row["seconds"] for row in stages}
    laws = seconds["weights, N = 10, Gaussian"] / seconds["weights, N = 10"]
    power = exponents(rows)
    growth = [[VARIABLES[name], f"{power[name]:.2f}"] for name in VARIABLES]
    with figure(folder / f"{NAME}.png", size=(10, 2.9), panels=(1, 4)) as axes:
        for ax, (name, words) in zip(axes, VARIABLES.items(), strict=True):
            points = np.array([(row["value"], row["seconds"]) for row in rows if row.get("variable") == name])
            ax.loglog(*points.T, marker="o", ms=4)
            ax.set(xlabel=words, title=f"time ~ {name}$^{{{power[name]:.2f}}}$")
            ax.minorticks_off()
            ax.set_yticks(points[:, 1], [f"{1e3 * y:.0f}" for y in points[:, 1]], fontsize=8)
            ax.set_xticks(points[:, 0], [f"{x:,.0f}" for x in points[:, 0]], fontsize=8, rotation=25)
        axes[0].set_ylabel("milliseconds")
    remark = "" if generated else " The paper's times are of its own laptop on roadNet-PA; both laws took it the same time."
    text = (
        f"## {TITLE}\n\nData: f = W^4 x, x Bernoulli, on {stages[0]['data']}; degree 100, float64, best of three.{remark}\n\n"
        f"{markdown(['stage', 'here', 'paper', 'ratio'], lines)}\n\nGaussian probes take {laws:.2f} times as long as Rademacher ones. The seconds of "
        f"weights (N) and of one forward transform (m, K, J), on generated roads, grow with the power:\n\n{markdown(['of', 'power'], growth)}"
    )
    return write_files(folder, NAME, rows, text, title=TITLE)
