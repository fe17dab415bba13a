"""`counts` at every size: how good it is on large street networks, and the time and memory from 10,000 to 1.1 million nodes.

    python benchmarks/counts.py [quality] [sizes] [--draws 2]

quality: generated trips on the streets of Seattle, Moscow, and both with the world's highways (1.1 million nodes, no coordinates), which are
found through HUSHGRAPH_DATA. `auto` for values that cannot be negative, against the same without `counts`, clipped at 0. All at the sigmas of
the tables for Manhattan. sizes: generated cities with coordinates, every size in a process of its own; also a picture with the fitted powers.
Each part writes benchmarks/results/counts-<part>.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy import stats

import hushgraph as hg
from hushgraph.core import use_threads
from hushgraph.experiments.stage import machine

RESULTS = Path(__file__).parent / "results"
PARTS = ("quality", "sizes")
SIGMAS = (26.49, 12.99, 8.06, 4.22)
PER_NODE = 3.5  # trips, as many as in the hour of Manhattan
NETWORKS = {"Seattle": ("seattle",), "Moscow": ("moscow",), "roads_1m": ("world_highways", "moscow", "seattle")}
SIZES = (10_000, 30_000, 100_000, 300_000, 1_100_000)


def table(head, rows) -> list[str]:
    return ["| " + " | ".join(map(str, line)) + " |" for line in (head, ["---"] * len(head), *rows)] + [""]


def write(part, lines) -> None:
    when = f"{datetime.date.today():%Y-%m-%d}, {machine()}"
    (RESULTS / f"counts-{part}.md").write_text("\n".join([*lines, when, ""]))
    print("\n".join(lines), flush=True)


# ---- quality -----------------------------------------------------------------------------------------------------


def trips_on(name) -> tuple[hg.Graph, np.ndarray]:
    """The network, and trips on each of its parts."""
    parts = [hg.datasets.road_network(part).graph for part in NETWORKS[name]]
    graph = parts[0] if len(parts) == 1 else hg.datasets.road_network(name).graph
    counts = np.concatenate([hg.hotspot_counts(part, total=PER_NODE * part.n, seed=k) for k, part in enumerate(parts)])
    return graph, counts


def quality(draws) -> None:
    rows = []
    for name in NETWORKS:
        graph, counts = trips_on(name)
        for sigma in SIGMAS:
            scores, words = [], ""
            for draw in range(draws):
                noisy = counts + sigma * np.random.default_rng(100 + draw).normal(size=graph.n)
                full = hg.denoise(graph, noisy, sigma=sigma, method="auto", nonnegative=True)
                clipped = np.maximum(hg.denoise(graph, noisy, sigma=sigma, method="auto").signal, 0)
                scores.append([hg.snr(counts, values) for values in (np.maximum(noisy, 0), clipped, full.signal)])
                words = full.details["counts"]
            gain = np.diff(scores, axis=1)[:, 1]
            spread = f" ± {stats.sem(gain):.3f}" if draws > 1 else ""
            rows.append(
                [
                    name,
                    f"{graph.n:,}",
                    sigma,
                    *(f"{score:.2f}" for score in np.mean(scores, axis=0)),
                    f"{gain.mean():+.2f}{spread}",
                    words,
                ]
            )
            print(*rows[-1], sep=" | ", flush=True)
    head = ["streets", "nodes", "sigma", "noisy, clipped", "`auto` clipped", "`auto`, nonnegative", "gain (dB)", "counts"]
    write(
        "quality",
        [
            "# Counts on large street networks, SNR in dB",
            "",
            f"Generated trips, draws of the noise: {draws}.",
            "",
            *table(head, rows),
        ],
    )


# ---- sizes -------------------------------------------------------------------------------------------------------


def measure(n, method) -> None:
    """Print wall time, processor time and peak memory of one call on a new graph."""
    graph = hg.datasets.city(n)
    counts = hg.hotspot_counts(graph, total=PER_NODE * graph.n)
    noisy = counts + 8.06 * np.random.default_rng(0).normal(size=graph.n)
    start, processor = time.perf_counter(), time.process_time()
    with use_threads(2):
        result = hg.denoise(graph, noisy, sigma=8.06, method=method, nonnegative=True)
    facts = {
        "nodes": graph.n,
        "wall": time.perf_counter() - start,
        "processor": time.process_time() - processor,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "snr": hg.snr(counts, result.signal),
    }
    print(json.dumps(facts))


def sizes(draws) -> None:
    facts = {}
    for method in ("counts", "auto"):
        for n in SIZES:
            runs = []
            for _ in range(draws if n < 200_000 else 1):
                call = [sys.executable, __file__, "--measure", str(n), method]
                done = subprocess.run(
                    call, capture_output=True, text=True, check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}
                )
                runs.append(json.loads(done.stdout))
            facts[method, n] = min(runs, key=lambda run: run["wall"])
            print(method, facts[method, n], flush=True)
    rows = [
        [method, f"{run['nodes']:,}", f"{run['wall']:.2f}", f"{run['processor']:.2f}", f"{1e6 * run['wall'] / run['nodes']:.0f}", f"{run['memory']:.2f}"]
        for (method, _), run in facts.items()
    ]  # fmt: skip
    powers = {method: power_of([facts[method, n] for n in SIZES]) for method in ("counts", "auto")}
    sentence = "; ".join(f"time of `{method}` grows with the power {power:.2f} of the nodes" for method, power in powers.items())
    picture(facts, powers)
    head = ["method", "nodes", "seconds", "processor seconds", "microseconds a node", "peak memory (GB)"]
    write("sizes", ["# Counts: time and memory by size", "", "Generated cities with coordinates, the first call on a graph, two threads. "
                    f"{sentence[0].upper()}{sentence[1:]}.", "", *table(head, rows), "![Time and memory](counts-sizes.png)", ""])  # fmt: skip


def power_of(runs) -> float:
    """The exponent of the least-squares line through log time and log nodes."""
    return float(np.polyfit(np.log([run["nodes"] for run in runs]), np.log([run["wall"] for run in runs]), 1)[0])


def picture(facts, powers) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for (method, power), color in zip(powers.items(), ("#1b6ca8", "#d1495b"), strict=True):
        runs = [facts[method, n] for n in SIZES]
        nodes = [run["nodes"] for run in runs]
        left.loglog(nodes, [run["wall"] for run in runs], "o-", color=color, label=f"{method}: nodes to the power {power:.2f}")
        right.loglog(nodes, [run["memory"] for run in runs], "o-", color=color, label=method)
    left.set(xlabel="nodes", ylabel="seconds", title="Time of the first call")
    right.set(xlabel="nodes", ylabel="gigabytes", title="Peak memory of the process")
    left.set_yticks([0.5, 1, 2, 5, 10, 20, 50], minor=False)
    right.set_yticks([0.2, 0.5, 1, 2, 3], minor=False)
    for axes in (left, right):
        axes.set_xticks(SIZES, [f"{n:,}" for n in SIZES])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.savefig(RESULTS / "counts-sizes.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=" or ".join(PARTS))
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--measure", nargs=2, metavar=("NODES", "METHOD"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(int(options.measure[0]), options.measure[1])
        return
    for part in options.parts or PARTS:
        {"quality": quality, "sizes": sizes}[part](options.draws)


if __name__ == "__main__":
    main()
