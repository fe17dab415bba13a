"""Two versions of hushgraph against each other: every step of a denoising, on graphs of several sizes, in one run.

    python benchmarks/versions.py --old ~/old/.venv/bin/python          1.1 and 4.4 million nodes, and all else
    python benchmarks/versions.py --old ... --sizes 100000 --rounds 2   quicker

Both versions are measured in processes of their own, in turns, since machines differ from hour to hour; a row is the best time of all
rounds. Only public names are used, so that any two versions can be compared. Writes Markdown to the screen and to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def best_of(function, repeats=5, budget=8.0):
    """Least wall time of some runs after a warm-up, within a time budget."""
    function()
    times, start = [], time.perf_counter()
    while len(times) < repeats and (not times or time.perf_counter() - start < budget):
        before = time.perf_counter()
        function()
        times.append(time.perf_counter() - before)
    return min(times)


# ---- what is measured, in the process of one version ---------------------------------------------------------------


def measure_graph(n: int) -> dict[str, float]:
    """Steps on a generated road network."""
    import numpy as np

    import hushgraph as hg

    graph = hg.datasets.roads(n, seed=0)
    noisy = hg.bernoulli_signal(graph, p=0.001, k=4, rng=0) + np.random.default_rng(0).normal(0, 1, graph.n)
    frame = hg.chebyshev_frame(graph)
    bands, weights = hg.analyze(frame, noisy), hg.monte_carlo_weights(frame, n_probes=1)
    thresholds = hg.sure_thresholds(bands, weights, sigma=1.0)
    single, eight = noisy.astype(np.float32), np.random.default_rng(2).normal(size=(graph.n, 8 if n <= 2_000_000 else 2))

    def fresh(method):
        graph.forget()  # spectrum, layout and workspace count
        return hg.denoise(graph, noisy, sigma=1.0, method=method)

    def spectrum():
        graph.forget()
        return graph.spectrum()

    rows = {
        "eigenvalue bounds and row order": best_of(spectrum, 3),
        "forward": best_of(lambda: hg.analyze(frame, noisy), 9),
        "forward, float32": best_of(lambda: hg.analyze(frame, single)),
        "forward, several signals": best_of(lambda: hg.analyze(frame, eight), 2),
        "inverse": best_of(lambda: hg.synthesize(frame, bands), 9),
        "weights, one probe": best_of(lambda: hg.monte_carlo_weights(frame, n_probes=1)),
        "thresholds": best_of(lambda: hg.sure_thresholds(bands, weights, sigma=1.0)),
        "thresholds, beta = 3": best_of(lambda: hg.sure_thresholds(bands, weights, sigma=1.0, rule="power", beta=3.0), 2),
        "SURE": best_of(lambda: hg.sure(bands, thresholds, weights=weights, sigma=1.0)),
        "smoothed weights": best_of(lambda: hg.smooth_weights(graph, weights), 3),
        "depth-first order": best_of(lambda: hg.depth_first_order(graph), 3),
        "fused lasso, 8 penalties": best_of(lambda: hg.fused_lasso_path(noisy, np.geomspace(0.1, 10, 8)), 2),
        "whole sgwt_sure": best_of(lambda: fresh("sgwt_sure"), 5),
    }
    methods = ("sgwt_scaled", "sgwt_block", "let", "auto") if n <= 2_000_000 else ("let",)
    return rows | {f"whole {method}": best_of(lambda method=method: fresh(method), 2, budget=20.0) for method in methods}


def measure_rest(folder: str) -> dict[str, float]:
    """Small graphs, total variation, files, events."""
    import numpy as np

    import hushgraph as hg

    rows = {}
    for n in (5000, 10_000):
        city = hg.datasets.city(n)
        noisy = hg.hotspot_counts(city, total=20 * n) + np.random.default_rng(0).normal(0, 5, city.n)

        def first(city=city, noisy=noisy, **options):
            city.forget()
            return hg.denoise(city, noisy, sigma=5.0, **options)

        rows[f"counts, {n:,} nodes, the first"] = best_of(lambda first=first: first(nonnegative=True), 2)
        rows[f"counts, {n:,} nodes, the next"] = best_of(lambda c=city, y=noisy: hg.denoise(c, y, sigma=5.0, nonnegative=True), 3)
        rows[f"auto, {n:,} nodes, the first"] = best_of(first, 2)
        rows[f"auto, {n:,} nodes, the next"] = best_of(lambda c=city, y=noisy: hg.denoise(c, y, sigma=5.0), 3)
    grid = hg.datasets.grid(300, 300)
    y = np.random.default_rng(0).normal(size=grid.n) + 3 * (np.arange(grid.n) % 300 > 150)
    rows["graph TV, 90,000 nodes"] = best_of(lambda: hg.graph_tv(grid, y, penalty=2.0), 2)
    for path in sorted(Path(folder).glob("graph.*")):
        rows[f"reading {path.name.partition('.')[2]}, a million edges"] = best_of(lambda path=path: hg.read_graph(path), 2)
    city = hg.datasets.city(5000)
    caps = {"unit": "person", "adjacency": "add-remove", "max_nodes": 2, "max_per_node": 1, "max_distance": 200}
    rows["counting a million events from .csv"] = best_of(
        lambda: hg.privacy.count_events(city, str(Path(folder) / "trips.csv"), **caps), 2
    )
    return rows


def write_files(folder: str) -> None:
    """A graph in several formats, and events; written once, by the newer version."""
    import numpy as np

    import hushgraph as hg

    graph = hg.datasets.roads(730_000, seed=1)
    for ending in ("csv", "graphml", "mtx"):
        hg.write_graph(Path(folder) / f"graph.{ending}", graph)
    city, random = hg.datasets.city(5000), np.random.default_rng(0)
    places = city.coords[random.integers(0, city.n, 10**6)] + random.normal(0, 20, (10**6, 2))
    with (Path(folder) / "trips.csv").open("w") as file:
        file.write("person,x,y,time\n")
        for k, (person, (x, y)) in enumerate(zip(random.integers(0, 300_000, 10**6).tolist(), places.tolist(), strict=True)):
            file.write(f"rider-{person},{x:.2f},{y:.2f},2026-03-02T{k % 24:02d}:{k % 60:02d}:00\n")


# ---- the comparison ------------------------------------------------------------------------------------------------


def run(python: str, what: str) -> dict[str, float]:
    """What this file prints when that Python runs it for one part."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([python, __file__, "--part", what], capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def compare(old: str, new: str, parts: list[str], rounds: int) -> dict[str, dict[str, tuple[float, float]]]:
    """Seconds of both versions, row by row, part by part."""
    found = {}
    for what in parts:
        best: list[dict[str, float]] = [{}, {}]
        for k in range(rounds):
            for version, python in enumerate((old, new)):
                print(f"... {what}, round {k + 1}, {'new' if version else 'old'}", file=sys.stderr, flush=True)
                for row, seconds in run(python, what).items():
                    best[version][row] = min(seconds, best[version].get(row, seconds))
        found[what] = {row: (best[0][row], best[1][row]) for row in best[1] if row in best[0]}
    return found


def table(found, names: dict[str, str]) -> str:
    """Markdown: seconds of each version, and how many times faster the new one is."""
    lines = []
    for what, rows in found.items():
        lines += [f"**{names[what]}**", "", "| seconds | old | new | old / new |", "|---|---:|---:|---:|"]
        lines += [f"| {row} | {old:.4f} | {new:.4f} | {old / new:.2f} |" for row, (old, new) in rows.items()]
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", help="Python of an environment that has the older version")
    parser.add_argument(
        "--new", default=sys.executable, help="Python of an environment that has the newer version; default: this one"
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_100_000, 4_400_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--skip-rest", action="store_true", help="only the large graphs")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        kind, _, value = arguments.part.partition(":")
        found = {
            "graph": lambda: measure_graph(int(value)),
            "rest": lambda: measure_rest(value),
            "write": lambda: write_files(value) or {},
        }[kind]()
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as folder:
        names = {f"graph:{n}": f"Generated roads, {n:,} nodes" for n in arguments.sizes}
        if not arguments.skip_rest:
            run(arguments.new, f"write:{folder}")
            names[f"rest:{folder}"] = "Small graphs, total variation, files, events"
        found = compare(arguments.old, arguments.new, list(names), arguments.rounds)
    whole = [rows["whole sgwt_sure"] for what, rows in found.items() if what.startswith("graph:")]
    text = table(found, names)
    if len(whole) == 2:
        text += f"Whole sgwt_sure, second size over first: {whole[1][0] / whole[0][0]:.2f} times (old), {whole[1][1] / whole[0][1]:.2f} times (new).\n"
    head = f"{datetime.date.today().isoformat()}, {platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}, best of {arguments.rounds} rounds\n\n"
    print(head + text)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "versions.md").write_text(head + text)


if __name__ == "__main__":
    main()
