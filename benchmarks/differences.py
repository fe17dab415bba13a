"""Do the intervals of differences between two windows hold? Coverage against the truth, and how the errors of two windows are correlated.

    python benchmarks/differences.py [--draws 3]

Counts of six windows on a generated city, which change from one window to the next. An interval is the difference of the denoised values and
1.645 times the root of the sum of both expected squared errors, as the report and the explorer show it. Writes
benchmarks/results/differences.md.
"""

from __future__ import annotations

import argparse
import datetime
from itertools import combinations
from pathlib import Path

import numpy as np

import hushgraph as hg
from hushgraph.experiments.stage import machine

RESULT = Path(__file__).parent / "results" / "differences.md"
WINDOWS = 6
HALF_WIDTH = 1.6448536269514722  # of a 90 % interval, in expected errors
SETTINGS = {
    "auto": {},
    "auto, path": {"columns": "path"},
    "auto, separate": {"columns": "separate"},
    "sgwt_deep, separate": {"columns": "separate", "method": "sgwt_deep"},
}
HEAD = ("method", "negative values", "epsilon", "all nodes", "worst pair", "largest tenth", "correlation", "least")


def changing_counts(graph: hg.Graph, draw: int) -> np.ndarray:
    """Return counts (n, WINDOWS): one pattern turns into another, and a third comes and goes."""
    first, last, between = (hg.hotspot_counts(graph, total=6 * graph.n, seed=10 * draw + k) for k in range(3))
    shares = np.linspace(0, 1, WINDOWS)
    mean = [first * (1 - t) + last * t + 0.5 * between * np.sin(3 * t) ** 2 for t in shares]
    return np.random.default_rng(draw).poisson(np.stack(mean, axis=1)).astype(float)


def measured(truth: np.ndarray, result: hg.Denoised) -> list[float]:
    """Return coverage of all nodes, of the worst pair of windows and of the largest tenth; mean and least correlation of errors."""
    signal, error = np.asarray(result.signal), np.asarray(result.expected_error())
    rows = []
    for a, b in combinations(range(WINDOWS), 2):
        change = signal[:, a] - signal[:, b]
        held = np.abs(change - truth[:, a] + truth[:, b]) <= HALF_WIDTH * np.hypot(error[:, a], error[:, b])
        is_large = np.abs(change) > np.quantile(np.abs(change), 0.9)
        rows.append((held.mean(), held[is_large].mean(), np.corrcoef((signal - truth)[:, [a, b]].T)[0, 1]))
    all_nodes, largest, correlation = np.transpose(rows)
    return [all_nodes.mean(), all_nodes.min(), largest.mean(), correlation.mean(), correlation.min()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3)
    draws = parser.parse_args().draws
    graph = hg.datasets.city(1500)
    lines = [
        "# Intervals of differences between two windows against the truth",
        "",
        f"{datetime.date.today():%Y-%m-%d}, {machine()}, `benchmarks/differences.py --draws {draws}`. A generated city of {graph.n:,} nodes,",
        f"{WINDOWS} windows, means over {draws} draws. Coverage of 90 % intervals in percent: over all nodes and pairs of windows, for the worst",
        "pair, and for the tenth of the nodes whose estimated difference is largest. Correlation of the errors of two windows: mean and least.",
        "",
        "| " + " | ".join(HEAD) + " |",
        "|" + "---|" * len(HEAD),
    ]
    for name, settings in SETTINGS.items():
        for is_nonnegative in (True, False):
            for epsilon in (0.5, 2.0):
                rows = []
                for draw in range(draws):
                    truth = changing_counts(graph, draw)
                    noisy = hg.privacy.simulate(
                        graph, truth, epsilon=epsilon, delta=1e-6, sensitivity=1, seed=draw, windows=list(range(WINDOWS + 1))
                    )
                    rows.append(measured(truth, hg.denoise(graph, noisy, nonnegative=is_nonnegative, **settings)))
                means = np.mean(rows, axis=0)
                cells = [name, "no" if is_nonnegative else "yes", f"{epsilon:g}", *(f"{100 * v:.1f}" for v in means[:3])]
                lines.append("| " + " | ".join([*cells, f"{means[3]:.2f}", f"{np.min(rows, axis=0)[4]:.2f}"]) + " |")
                print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
