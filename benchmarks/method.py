"""The numbers of docs/method.md: bounds on the spectrum, estimates of sigma, a sigma that is too large, levels, expected errors.

    python benchmarks/method.py                       generated data only
    HUSHGRAPH_DATA=... python benchmarks/method.py    also Manhattan's streets and roads_1m

Noise is drawn with numpy.random.default_rng(0), (1), ... Writes Markdown to the screen and to benchmarks/results/method-*.md.
"""

from __future__ import annotations

import argparse
import datetime
import time
import warnings
from itertools import combinations
from unittest import mock

import networkx as nx
import numpy as np
from bench import RESULTS, real_roads
from estimators import DATA, SIGMAS, table
from scipy.spatial import Delaunay, cKDTree

import hushgraph as hg
from hushgraph.experiments.stage import machine
from hushgraph.graphs import spectrum
from hushgraph.wavelets import eigenpairs, noise_level_of

# ---- the bound on the spectrum -----------------------------------------------------------------------------------------


def cliques_in_a_chain(count: int, size: int):
    """Complete graphs, the last node of each linked to the first one of the next."""
    inside = np.array(list(combinations(range(size), 2)))
    edges = [inside + size * k for k in range(count)]
    links = np.array([(size * k - 1, size * k) for k in range(1, count)])
    return hg.Graph.from_edges(np.concatenate([*edges, links]), n=count * size)


def mesh(n: int):
    """Delaunay triangles of random points; every edge weighs 1."""
    corners = Delaunay(np.random.default_rng(0).random((n, 2))).simplices
    edges = np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [0, 2]], corners[:, [1, 2]]]), axis=1)
    return hg.Graph.from_edges(np.unique(edges, axis=0), n=n)


def lattice(rows: int, columns: int):
    """A grid with one diagonal in every square: six neighbours inside."""
    at = np.arange(rows * columns).reshape(rows, columns)
    pairs = (at[:, :-1], at[:, 1:]), (at[:-1], at[1:]), (at[:-1, :-1], at[1:, 1:])
    return hg.Graph.from_edges(np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs]), n=at.size)


def graphs():
    """(name, graph)."""
    yield "complete", hg.Graph.from_edges(np.array(list(combinations(range(300), 2))), n=300)
    yield "triangular lattice, 100 x 100", lattice(100, 100)
    yield "image, 100 x 100, 8 neighbours", hg.Graph.from_image((100, 100), neighbours=8, diagonal_weight=1)
    yield "Delaunay mesh of random points", mesh(10_000)
    yield "random geometric", hg.datasets.random_geometric(5000)
    yield "generated city", hg.datasets.city(5000)
    yield "Barabasi-Albert, 3 edges per new node", hg.Graph.from_networkx(nx.barabasi_albert_graph(5000, 3, seed=1))
    yield "50 complete graphs of 100 in a chain", cliques_in_a_chain(50, 100)
    if DATA is not None:
        yield "Manhattan (OSM)", hg.datasets.manhattan().graph
    yield from real_roads()


def measured(graph):
    """(spectrum with lambda_max to 1e-6, least CPU seconds of all threads that `graph.spectrum()` took in three runs)."""
    seconds = []
    for _ in range(4):  # the first one warms up
        graph.forget()
        graph.layout("combinatorial")  # the order of the rows, which every transform needs
        start = time.process_time()
        graph.spectrum()
        seconds.append(time.process_time() - start)
    return graph.spectrum(tolerance=1e-6), min(seconds[1:])


def spectrum_table(quick: bool) -> list[str]:
    rows = []
    for name, graph in graphs():
        found, cpu = measured(graph)
        with (
            mock.patch.object(spectrum, "PLAIN_PRODUCTS", spectrum.PRODUCTS),
            mock.patch.object(spectrum, "proven_bound", lambda quotients, **_: (quotients.min(), "")),
        ):
            plain, plain_cpu = measured(graph)
        ratios = (f"{bound.lambda_upper / found.lambda_max:.3f}" for bound in (found, plain))
        rows.append([name, f"{graph.n:,}", f"{found.lambda_max:.4g}", *ratios, f"{cpu:.3f}", f"{plain_cpu:.3f}"])
    head = ["graph", "nodes", "lambda_max", "lambda_upper / lambda_max", "with P = 0 only", "CPU seconds", "with P = 0 only"]
    text = "**Bounds on the spectrum**: lambda_max to 1e-6; CPU seconds of `graph.spectrum()`, all threads together, least of three runs"
    return [text, "", *table(head, rows)]


# ---- sigma -------------------------------------------------------------------------------------------------------------


def noise_cases():
    """(signal, graph, truth, sigmas)."""
    city, grid, small = hg.datasets.city(5000), hg.datasets.grid(60, 60), hg.datasets.city(300)
    yield "diffused spikes, city", city, hg.bernoulli_signal(city, p=0.01, k=4), (2,)
    yield "hotspot counts (15,000), the same city", city, hg.hotspot_counts(city).astype(float), (1, 5, 20)
    yield "smooth, the same city", city, hg.smooth_signal(city), (1,)
    yield "step of 10, grid", grid, np.where(np.arange(grid.n) < grid.n // 2, 0.0, 10.0), (2,)
    yield "white noise of 1 as the signal, the same grid", grid, np.random.default_rng(100).normal(size=grid.n), (1,)
    yield "noise alone, small city", small, np.zeros(small.n), (1,)
    if DATA is not None:
        found = hg.datasets.manhattan()
        yield "taxi pickups of 2013-11-18, 16:00-16:51, Manhattan (OSM)", found.graph, found.signals["f_matched"], (*SIGMAS, 1)


def noise_table(quick: bool) -> list[str]:
    rows, draws = [], 2 if quick else 10
    for name, graph, clean, sigmas in noise_cases():
        finest, found, errors = [], [], []
        for sigma in sigmas:
            draw = [clean + np.random.default_rng(k).normal(0, sigma, graph.n) for k in range(draws)]
            levels = [noise_level_of(graph, y) for y in draw]
            found.append(np.mean(levels) / sigma)
            errors.append(np.mean([level.se for level in levels]) / sigma)
            finest.append(np.mean([median_of_finest_scale(graph, y) for y in draw]) / sigma)
        columns = ([f"{value:.2f}" for value in values] for values in (finest, found, errors))
        rows.append([name, f"{graph.n:,}", " / ".join(map(str, sigmas)), *(" / ".join(column) for column in columns)])
    head = ["signal", "nodes", "sigma", "median of the finest scale", "`estimate_sigma`", "its standard error"]
    return [f"**Estimates of sigma**: means over the true sigma, {draws} draws", "", *table(head, rows)]


def median_of_finest_scale(graph, noisy) -> float:
    frame = hg.chebyshev_frame(graph)
    weights = hg.smooth_weights(graph, hg.monte_carlo_weights(frame))
    scale = np.flatnonzero(weights.sum(axis=1) >= 0.02 * graph.n)[-1]
    return float(np.median(np.abs(hg.analyze(frame, noisy)[scale]) / np.sqrt(weights[scale]))) / 0.6745


def signals_of(graph, seed: int):
    """(kind, signal), each of standard deviation 3."""
    x, vectors = eigenpairs(graph, "combinatorial")
    x, rng = np.maximum(x, 0), np.random.default_rng(1000 + seed)
    away = np.linalg.norm(graph.coords - graph.coords[rng.integers(graph.n)], axis=1)
    signals = {f"{count} lowest eigenvectors": vectors[:, 1 : count + 1] @ rng.normal(size=count) for count in (10, 40, 100)}
    signals |= {f"field, (0.05 + x)^-{nu}": vectors @ (rng.normal(size=graph.n) * (0.05 + x) ** (-nu / 2)) for nu in (1, 3)}
    signals |= {
        "tent": np.maximum(1 - away / (0.35 * np.ptp(graph.coords, axis=0).max()), 0),
        "smooth": hg.smooth_signal(graph, seed=seed),
        "piecewise constant": hg.piecewise_constant_signal(graph, seed=seed),
        "patch of 3 % of the nodes": (away <= np.quantile(away, 0.03)).astype(float),
        "spikes at 2 % of the nodes": np.where(rng.random(graph.n) < 0.02, rng.normal(size=graph.n), 0),
        "hotspot counts": hg.hotspot_counts(graph, seed=seed).astype(float),
        "diffused spikes": hg.bernoulli_signal(graph, p=0.01, k=4, seed=seed),
    }
    for kind, signal in signals.items():
        yield kind, 3 * signal / signal.std()


def graphs_of_signals():
    points = np.random.default_rng(5).random((2000, 2))
    corners = Delaunay(points).simplices
    triangles = np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [0, 2]], corners[:, [1, 2]]]), axis=1)
    near = cKDTree(points).query(points, 7)[1][:, 1:]
    pairs = np.sort(np.stack([np.repeat(np.arange(2000), 6), near.ravel()], axis=1), axis=1)
    edges = (np.unique(some, axis=0) for some in (triangles, pairs))
    return [hg.datasets.city(2000), *(hg.Graph.from_edges(some, n=2000, coords=points) for some in edges), hg.datasets.grid(45, 45)]


def kinds_table(quick: bool) -> list[str]:
    draws, found = 1 if quick else 10, {}
    sigmas = {snr: 3 * 10 ** (-snr / 20) for snr in (0, 5, 10)}
    for graph in graphs_of_signals():
        for seed in range(draws):
            for kind, signal in signals_of(graph, seed):
                for snr, sigma in sigmas.items():
                    level = noise_level_of(graph, signal + np.random.default_rng(seed).normal(0, sigma, graph.n))
                    found.setdefault((kind, snr), {}).setdefault(id(graph), []).append((level / sigma, level.se / sigma))
    rows = []
    for kind in dict.fromkeys(kind for kind, _ in found):
        cells = []
        for snr in sigmas:
            values = np.array(list(found[kind, snr].values()))  # graphs, draws, (level, standard error)
            means = ", ".join(f"{mean:.2f}" for mean in values[:, :, 0].mean(axis=1))
            cells.append(f"{means} ± {values[:, :, 1].mean():.2f}")
        every = np.array([one for snr in sigmas for one in found[kind, snr].values()])
        cells.append(f"{100 * np.mean(np.abs(every[:, :, 0] - 1) <= 2 * every[:, :, 1]):.0f} %")
        rows.append([kind, *cells])
    head = ["signal", *(f"input SNR {snr} dB" for snr in sigmas), "within two standard errors"]
    text = f"**Estimates of sigma on kinds of signals**: means over the true sigma on a city, a mesh, nearest neighbors and a grid of about 2,000 nodes, ± the mean standard error; {draws} draws"
    return [text, "", *table(head, rows)]


def too_large_table(quick: bool) -> list[str]:
    graph = hg.datasets.city(5000)
    clean, draws = hg.bernoulli_signal(graph, p=0.01, k=4), 1 if quick else 5
    given, rows = (2.0, 2.2, 2.5, 3.0, 4.0), []
    noisy = [clean + np.random.default_rng(k).normal(0, 2, graph.n) for k in range(draws)]
    for method in ("auto", "sgwt_sure"):
        results = [[hg.denoise(graph, y, sigma=sigma, method=method) for y in noisy] for sigma in given]
        proven = [sum(bool(one.details["sigma_too_large"][0]) for one in same) for same in results]
        silent = [sum(not one.typical_error.is_known for one in same) for same in results]
        rows.append([f"{method}: proven by the energies", *(f"{count} of {draws}" for count in proven)])
        rows.append([f"{method}: no error is claimed", *(f"{count} of {draws}" for count in silent)])
    return [
        f"**A sigma that is too large**: diffused spikes on a generated city of {graph.n:,} nodes, true sigma 2; draws",
        "",
        *table(["sigma given", *given], rows),
    ]


# ---- levels, expected errors -------------------------------------------------------------------------------------------


def level_table(quick: bool) -> list[str]:
    city, grid = hg.datasets.city(2000), hg.datasets.grid(50, 50)
    cases = (
        ("hotspot counts, generated city", city, hg.hotspot_counts(city, total=3 * city.n).astype(float), (2, 5, 15)),
        ("piecewise constant, grid", grid, hg.piecewise_constant_signal(grid), (1, 2, 5)),
    )
    rows, draws = [], 1 if quick else 5
    for name, graph, clean, sigmas in cases:
        for method in ("sgwt_sure", "auto"):
            losses = []
            for sigma in sigmas:
                pairs = []
                for k in range(draws):
                    noisy = clean + np.random.default_rng(k).normal(0, sigma, graph.n)
                    level = noisy.mean()
                    as_it_is = hg.denoise(graph, noisy, sigma=sigma, method=method).signal
                    centred = hg.denoise(graph, noisy - level, sigma=sigma, method=method).signal + level
                    pairs.append(hg.snr(clean, centred) - hg.snr(clean, as_it_is))
                losses.append(f"{np.mean(pairs):+.2f}")
            rows.append([name, f"{graph.n:,}", method, " / ".join(map(str, sigmas)), " / ".join(losses)])
    text = f"**Centring signals that are not far from 0**: what taking out the mean first adds to the SNR, in dB, mean of {draws} draws"
    return [text, "", *table(["signal", "nodes", "method", "sigma", "gain, dB"], rows)]


def expected_table(quick: bool) -> list[str]:
    graph = hg.datasets.city(1500)
    clean, draws, rows = hg.hotspot_counts(graph).astype(float), 2 if quick else 12, []
    for sigma in (5.0, 15.0):
        squares = []
        for k in range(draws):
            noisy = clean + np.random.default_rng(k).normal(0, sigma, graph.n)
            result = hg.denoise(graph, noisy, sigma=sigma, nonnegative=True)
            squares.append([np.mean(result.expected_error() ** 2), np.mean((result.signal - clean) ** 2)])
        expected, true = np.mean(squares, axis=0)
        ratios = np.divide(*np.transpose(squares))
        rows.append(
            [sigma, f"{expected:.3f}", f"{true:.3f}", f"{expected / true:.3f}", f"{ratios.min():.2f} to {ratios.max():.2f}"]
        )
    head = ["sigma", "expected squared error", "true squared error", "ratio", "ratio of single draws"]
    text = f"**Expected errors** of `auto`, nonnegative: hotspot counts (15,000) on a generated city of {graph.n:,} nodes, means over {draws} draws"
    return [text, "", *table(head, rows)]


SECTIONS = {
    "spectrum": spectrum_table,
    "noise": noise_table,
    "kinds": kinds_table,
    "too-large": too_large_table,
    "level": level_table,
    "expected": expected_table,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few draws: shows that it runs; writes no file")
    parser.add_argument("--sections", nargs="*", choices=list(SECTIONS), default=list(SECTIONS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of sigmas that are meant to be wrong
    for name in arguments.sections:
        made = f"{datetime.date.today().isoformat()}, {machine()}; `python benchmarks/method.py --sections {name}`"
        lines = [made, "", *SECTIONS[name](arguments.quick)]
        print("\n".join(lines), flush=True)
        if not arguments.quick:
            (RESULTS / f"method-{name}.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
