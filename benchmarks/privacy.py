"""Private releases: the noise against OpenDP and NumPy, counting a million events, and a day denoised jointly or hour by hour.

    make bench-privacy                          generated data; OpenDP from the benchmark environment
    HUSHGRAPH_DATA=... make bench-privacy       also a day of taxi pickups in San Francisco
    python benchmarks/privacy.py --sections counting    one section alone, into benchmarks/results/privacy-counting.md

Times are the best of several runs after a warm-up; ratios are taken inside one run. Writes Markdown to the screen and to
benchmarks/results/privacy.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from bench import RESULTS, best_of

import hushgraph as hg
from hushgraph.experiments.stage import machine
from hushgraph.privacy import release
from hushgraph.privacy.counting import count_events
from hushgraph.privacy.lattice import lattice_noise
from hushgraph.privacy.ledger.budget import Ledger
from hushgraph.privacy.releases import simulate

METHOD = "sgwt_deep"  # of all that is denoised here
SIGMA = 4.224678889326836
CAPS = {"unit": "person", "adjacency": "add-remove", "max_nodes": 4, "max_per_node": 1}


def opendp_noise(size: int):
    """A function that draws `size` entries of OpenDP's Gaussian on whole numbers (its fastest)."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    mechanism = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=int), scale=SIGMA)
    zeros = [0] * size
    return lambda: mechanism(zeros)


def noise_table() -> list[str]:
    size = 1_000_000
    rng = np.random.default_rng(0)
    ours = best_of(lambda: lattice_noise(size, sigma=SIGMA), repeats=15)
    plain = best_of(lambda: rng.normal(0, SIGMA, size), repeats=15)
    rival = best_of(opendp_noise(size), repeats=1, warm=False)
    assert rival / ours > 50
    assert ours / plain < 10
    return [
        "| 1,000,000 entries of noise, sigma 4.22 | seconds | over ours |",
        "|---|---|---|",
        f"| hushgraph, exact, on a lattice, OS entropy | {ours:.4f} | 1 |",
        f"| NumPy normal (not private: floats, a seed) | {plain:.4f} | {plain / ours:.2f} |",
        f"| OpenDP Gaussian on integers | {rival:.1f} | {rival / ours:.0f} |",
        "",
    ]


def events_of(graph, n_events: int, n_people: int):
    """Events in degrees with text ids, as a DataFrame; many more per person than the cap."""
    import pandas

    rng = np.random.default_rng(0)
    busy = rng.pareto(1.5, graph.n) + 0.1
    at = graph.coords[rng.choice(graph.n, n_events, p=busy / busy.sum())] + rng.normal(0, 2e-4, (n_events, 2))
    people = np.array([f"person-{k:07d}" for k in range(n_people)])
    return pandas.DataFrame({"person": people[rng.integers(0, n_people, n_events)], "lon": at[:, 0], "lat": at[:, 1]})


def million_events():
    """(graph in degrees, events)."""
    planar = hg.datasets.city(10_000)
    place = planar.coords / 111_195 + [2.35, 48.85]
    rows, columns = planar.adjacency.tocoo().coords
    graph = hg.Graph.from_edges(np.stack([rows, columns], axis=1), n=planar.n, coords=place, crs="lonlat")
    return graph, events_of(graph, 1_000_000, 200_000)


def counting_table() -> list[str]:
    """The same events from memory and from a file; CPU seconds beside the wall clock, because other work slows only the latter."""
    graph, events = million_events()
    lines = [
        f"Load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores at the start: with other work on the machine the CPU seconds say more.",
        "",
        f"| 1,000,000 events of 200,000 people, {graph.n:,} nodes | seconds | CPU seconds |",
        "|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.csv"
        events.to_csv(path, index=False)
        size, found = path.stat().st_size / 1e6, []
        for name, source in (("DataFrame, text ids, degrees", events), (f".csv file of {size:.0f} MB, the same events", path)):
            wall, cpu = [], []
            for _ in range(4):  # the first one is the warm-up
                start, busy = time.perf_counter(), time.process_time()
                counts = count_events(graph, source, **CAPS)
                wall, cpu = [*wall, time.perf_counter() - start], [*cpu, time.process_time() - busy]
            found.append(counts.counts)
            lines.append(f"| `count_events` ({name}) | {min(wall[1:]):.2f} | {min(cpu[1:]):.2f} |")
    assert abs(found[0].sum() - found[1].sum()) < 0.001 * found[0].sum()  # who is dropped beyond the cap is drawn
    return [*lines, ""]


def pipeline_table() -> list[str]:
    graph, events = million_events()
    count = best_of(lambda: count_events(graph, events, **CAPS), repeats=3)
    counts = count_events(graph, events, **CAPS)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HUSHGRAPH_STATE"] = folder
        ledger = Ledger.create(
            f"{folder}/b.db", dataset="bench", unit="person", adjacency="add-remove", epsilon=100, delta=1e-6, weak_guarantee=True
        )

        def publish():
            graph.cache.clear()
            return hg.denoise(graph, release(counts, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True), method=METHOD)

        both = best_of(publish, repeats=3)
        public = release(counts, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True)
        start = time.perf_counter()
        public.export(f"{folder}/out", method=METHOD, report=False)
        export = time.perf_counter() - start
    return [
        f"| 1,000,000 events of 200,000 people, {graph.n:,} nodes | seconds |",
        "|---|---|",
        f"| `count_events` (DataFrame, text ids, degrees) | {count:.2f} |",
        f"| `release` and `denoise` | {both:.2f} |",
        f"| `export` (which denoises again) | {export:.2f} |",
        "",
    ]


def days():
    """(name, graph, counts (n, 24)) of what there is."""
    graph = hg.datasets.city(2000)
    events = hg.datasets.trips(graph, n_people=20_000)
    edges = np.datetime64("2026-03-02", "s") + 3600 * np.arange(25)
    counts = count_events(
        graph,
        events,
        unit="person",
        adjacency="add-remove",
        time="time",
        windows=edges,
        max_cells=4,
        max_per_cell=1,
        max_distance=200,
    )
    yield "generated city and trips, 4 cells per person", graph, counts
    folder = Path(os.environ.get("HUSHGRAPH_DATA", ""))
    if os.environ.get("HUSHGRAPH_DATA") and (folder / "sanfrancisco_osm.npz").exists():
        import warnings

        with np.load(folder / "sanfrancisco_osm.npz") as data:
            graph = hg.Graph.from_edges(
                data["edges"], n=int(data["n"]), coords=np.stack([data["lon"], data["lat"]], axis=1), crs="lonlat"
            )
        edges = np.datetime64("2008-05-25", "s") + 3600 * np.arange(25)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # no ids in this file: the bound is assumed
            counts = count_events(
                graph, folder / "sf_taxi_pickups_2008-05-25.parquet", adjacency="add-remove", lon="pickup_lon", lat="pickup_lat",
                time="time", windows=edges, max_cells=1, max_per_cell=1,
            )  # fmt: skip
        yield "San Francisco (OSM), taxi pickups of 2008-05-25, one per person assumed", graph, counts


def day_tables(draws: int) -> list[str]:
    lines = []
    for name, graph, counts in days():
        truth = counts.counts.astype(float)
        lines += [
            f"**{name}**: {graph.n:,} nodes x 24 hours, {truth.sum():,.0f} events; SNR in dB over the whole day, {draws} draws",
            "",
            "| epsilon | noisy | hour by hour | jointly | (true - risk) / risk_se | expected / true squared error | seconds |",
            "|---|---|---|---|---|---|---|",
        ]
        for epsilon in (0.5, 1.0, 2.0, 5.0):
            found, seconds = [], []
            for seed in range(draws):
                noisy = simulate(
                    graph, truth, epsilon=epsilon, delta=1e-6, sensitivity_squared=counts.sensitivity_squared, seed=seed
                )
                start = time.perf_counter()
                together = hg.denoise(graph, noisy, columns="path", method=METHOD)
                seconds.append(time.perf_counter() - start)
                alone = hg.denoise(graph, noisy, columns="separate", nonnegative=True, method=METHOD)
                error = np.sum((together.signal - truth) ** 2)
                honesty = (error - together.risk) / together.risk_se, np.sum(together.expected_error() ** 2) / error
                parts = noisy.values, alone.signal, np.maximum(together.signal, 0)
                snrs = [hg.snr(truth.ravel(), part.ravel()) for part in parts]
                found.append([*snrs, *honesty])
            middle = " | ".join(f"{value:.2f}" for value in np.mean(found, axis=0))
            lines.append(f"| {epsilon:g} | {middle} | {np.mean(seconds):.1f} |")
        lines.append("")
    return lines


SECTIONS = {
    "noise": lambda draws: noise_table(),
    "counting": lambda draws: counting_table(),
    "pipeline": lambda draws: pipeline_table(),
    "days": day_tables,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--sections", nargs="*", choices=list(SECTIONS), default=list(SECTIONS))
    arguments = parser.parse_args()
    lines = [f"{datetime.date.today().isoformat()}, {machine()}.", ""]
    for name in arguments.sections:
        table = SECTIONS[name](arguments.draws)
        print("\n".join(table), flush=True)
        lines += table
    RESULTS.mkdir(exist_ok=True)
    parts = [] if arguments.sections == list(SECTIONS) else arguments.sections
    (RESULTS / f"{'-'.join(['privacy', *parts])}.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
