"""Totals of regions: how often their 90 % intervals hold the true total, and how wide they are compared with those of noisy sums.

    python benchmarks/totals.py [--draws 10] [--only mesh,city]         generated data only
    HUSHGRAPH_DATA=... python benchmarks/totals.py                      also the streets and pickups of Manhattan and San Francisco, and Minnesota

Regions: 200 discs around random nodes, with 5 to n/4 nodes (uniform in the logarithm), and zones: connected blocks of about n/60 nodes that
cover the graph. They are the same for all draws of the noise, numpy.random.default_rng([20261118, 0]), ([20261118, 1]), ...
Writes benchmarks/results/totals.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.spatial import Delaunay, cKDTree

import hushgraph as hg
from hushgraph._geodesy import planar_coords
from hushgraph.experiments.stage import machine

RESULTS = Path(__file__).parent / "results"
DATA = os.environ.get("HUSHGRAPH_DATA")
N_DISCS, LEAST_LARGE = 200, 30


def table(head, rows) -> list[str]:
    return ["| " + " | ".join(map(str, line)) + " |" for line in (head, ["---"] * len(head), *rows)] + [""]


# ---- data ------------------------------------------------------------------------------------------------------------


def mesh(n=4000):
    """A triangulation of random points, and a smooth signal with one hill."""
    places = np.random.default_rng(5).random((n, 2))
    corners = Delaunay(places).simplices
    edges = np.unique(np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]]), axis=1), axis=0)
    edges = edges[np.linalg.norm(places[edges[:, 0]] - places[edges[:, 1]], axis=1) < 0.06]
    hill = 5 * np.exp(-((places - 0.5) ** 2).sum(axis=1) / 0.02)
    return hg.Graph.from_edges(edges, n=n, coords=places), 10 * np.sin(5 * places[:, 0]) * np.cos(4 * places[:, 1]) + hill


def settings():
    """Yield name, graph, signal, noise levels, and whether the signal cannot be negative."""
    yield "mesh, smooth signal", *mesh(), (8.0, 2.0), False
    for n in (1500, 5000):
        graph = hg.datasets.city(n)
        yield f"generated city, {graph.n:,} nodes", graph, hg.hotspot_counts(graph, total=3.5 * graph.n), (12.99, 8.06, 4.22), True
    if not DATA:
        return
    place = hg.datasets.manhattan()
    yield "Manhattan", place.graph, place.signals["f_matched"], (26.49, 12.99, 8.06, 4.22), True
    place = hg.datasets.san_francisco()
    yield "San Francisco", place.graph, place.signals["f_all"], (37.98, 16.12, 8.45), True
    with np.load(Path(DATA) / "gasper_minnesota.npz") as data:
        graph = hg.Graph.from_edges(data["edges"], n=int(data["n"]), coords=data["xy"])
        for name, sigmas in (("f1", (0.03, 0.01)), ("f2", (0.007,))):
            yield f"Minnesota, {name}", graph, data[name], sigmas, False


def discs(graph, rng) -> dict[str, np.ndarray]:
    """Return the nodes next to random nodes."""
    places = planar_coords(np.asarray(graph.coords), graph.crs)
    tree = cKDTree(places)
    sizes = np.exp(rng.uniform(np.log(5), np.log(graph.n / 4), N_DISCS)).astype(int)
    return {f"disc {k}": mask(graph, tree.query(places[rng.integers(graph.n)], size)[1]) for k, size in enumerate(sizes)}


def mask(graph, nodes) -> np.ndarray:
    inside = np.zeros(graph.n, dtype=bool)
    inside[nodes] = True
    return inside


def zones(graph) -> dict[str, np.ndarray]:
    blocks = hg.graphs.block_partition(graph, size=max(graph.n // 60, 5))
    return {f"zone {k}": blocks == k for k in range(blocks.max() + 1)}


# ---- one row ---------------------------------------------------------------------------------------------------------


def measured(graph, clean, sigma, nonnegative, regions, seed) -> dict[str, float]:
    rng = np.random.default_rng([20261118, seed])
    noisy = clean + sigma * rng.normal(size=graph.n)
    start = time.perf_counter()
    result = hg.denoise(graph, noisy, sigma=sigma, nonnegative=nonnegative)
    denoised = time.perf_counter()
    facts: dict[str, float] = {}
    for kind, parts in regions.items():
        totals = result.totals(parts)
        if kind == "discs":
            facts["times"] = (time.perf_counter() - denoised) / (denoised - start)
        truth = np.array([clean[part].sum() for part in parts.values()])
        lower, upper = totals.interval(0.9)
        holds, large = (lower <= truth) & (truth <= upper), totals.n_nodes >= LEAST_LARGE
        half = stats.norm.ppf(0.95) * totals.noisy_se
        facts[f"{kind} coverage"] = holds.mean()
        facts[f"{kind} coverage, large"] = holds[large].mean() if large.any() else np.nan
        facts[f"{kind} noisy coverage"] = (np.abs(totals.noisy - truth) <= half).mean()
        facts[f"{kind} width"] = (totals.se / totals.noisy_se)[large].mean() if large.any() else np.nan
        facts[f"{kind} error"] = np.mean(((totals.value - truth) / totals.noisy_se)[large] ** 2) if large.any() else np.nan
    return facts


def percent(values) -> str:
    return f"{100 * np.mean(values):.1f} ± {100 * stats.sem(values):.1f}"


def row_of(cell) -> list[str]:
    """Return one row of the table: a data set, and one of its noise levels."""
    name, k, draws = cell
    graph, clean, sigmas, nonnegative = next(rest for title, *rest in settings() if title == name)
    regions = {"discs": discs(graph, np.random.default_rng(3)), "zones": zones(graph)}
    runs = [measured(graph, clean, sigmas[k], nonnegative, regions, seed) for seed in range(draws)]
    facts = {key: [run[key] for run in runs] for key in runs[0]}
    row = [name, f"{sigmas[k]:g}"]
    for kind in regions:
        width = np.mean(facts[f"{kind} width"])
        row += [percent(facts[f"{kind} coverage"]), percent(facts[f"{kind} noisy coverage"]), f"{width:.2f}"]
    row += [f"{np.sqrt(np.mean(facts['discs error'])):.2f}", f"{np.mean(facts['times']):.1f}"]
    print(*row, sep=" | ", flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="parts of names of data sets, with commas; nothing is written then")
    options = parser.parse_args()
    started = time.perf_counter()
    cells = [(name, k, options.draws) for name, _, _, sigmas, _ in settings() for k in range(len(sigmas))]
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(row_of, [cell for cell in cells if any(part in cell[0] for part in options.only.split(","))]))
    head = [
        "data",
        "sigma",
        "discs: coverage (%)",
        "noisy sums",
        "width",
        "zones: coverage (%)",
        "noisy sums",
        "width",
        "error",
        "time",
    ]
    lines = [
        "# Totals of regions: coverage and width of 90 % intervals",
        "",
        f"{datetime.date.today():%Y-%m-%d}, {machine()}, `benchmarks/totals.py --draws {options.draws}`, {time.perf_counter() - started:.0f} s. "
        "Generated data; taxi pickups on the streets of Manhattan (`f_matched`) and San Francisco (`f_all`); Minnesota's roads (gasper).",
        "",
        "Method `auto`, `nonnegative=True` for cities. Coverage: share of intervals that hold the true total, ± one standard error over draws; "
        "noisy sums: that of the intervals of noisy sums in the same draws. Width: mean of `se / noisy_se` over regions of 30 nodes or more. "
        "Error: root mean square of (`value` - truth) / `noisy_se`, discs of 30 nodes or more. Time: that of the first totals over that of `denoise`.",
        "",
        *table(head, rows),
    ]
    if not options.only:
        (RESULTS / "totals.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
