"""What guides gain, what useless guides cost, series of maps, and the truth of the risk of guided results.

    python benchmarks/guides.py [gain] [resampled] [kinds] [useless] [series] [risk]         generated data only
    HUSHGRAPH_DATA=... python benchmarks/guides.py                               also Manhattan's and San Francisco's streets and pickups

All figures are SNRs in dB of `auto` with nonnegative=True unless it says otherwise, mean over draws of the noise with
numpy.random.default_rng([20261117, 0]), ([20261117, 1]), ...; every row of a table sees the same noise of the signal. An interval is that of the mean of paired
differences: 2.26 standard errors for ten draws (95 %, Student's t).
"""

from __future__ import annotations

import argparse
import datetime
import os
import time
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.spatial import cKDTree

import hushgraph as hg
from hushgraph._geodesy import planar_coords
from hushgraph.experiments.stage import machine

RESULTS = Path(__file__).parent / "results"
HAS_DATA = bool(os.environ.get("HUSHGRAPH_DATA"))
PARTS = ("gain", "resampled", "kinds", "useless", "series", "risk")


def table(head, rows) -> list[str]:
    return ["| " + " | ".join(map(str, line)) + " |" for line in (head, ["---"] * len(head), *rows)] + [""]


def noisy_map(graph, clean, sigma, rng):
    """A noisy map that brings its sigma, as a release does."""
    return hg.Noisy(clean + sigma * rng.normal(size=graph.n), sigma=sigma, kind="measurement", graph_hash=graph.hash)


def san_francisco_hours():
    """San Francisco's streets, and the taxi pickups of each hour of 2008-05-25 at the nearest intersection."""
    import pandas

    found = hg.datasets.san_francisco()
    graph, events = found.graph, pandas.read_parquet(found.events())
    points = events[["pickup_lon", "pickup_lat"]].to_numpy()
    places = planar_coords(np.concatenate([graph.coords, points]), graph.crs)
    node = cKDTree(places[: graph.n]).query(places[graph.n :])[1]
    counts = np.zeros((graph.n, 24))
    np.add.at(counts, (node, pandas.to_datetime(events["time"]).dt.hour.to_numpy()), 1)
    return graph, counts


def noise_generator(seed):
    """Random numbers that no generated signal is made from."""
    return np.random.default_rng([20261117, seed])


def generated_months(n=3000, months=12, seed=0):
    """A generated city, and pickups of several months: intensities of hotspots, and independent events."""
    graph = hg.datasets.city(n)
    intensity = hg.hotspot_counts(graph, total=3 * graph.n, seed=seed)
    rng = np.random.default_rng(seed + 1)
    return graph, np.stack([rng.poisson(intensity) for _ in range(months)], axis=1).astype(float)


def paired(draws) -> str:
    """Mean and half width of the 95 % interval of paired differences."""
    return f"{np.mean(draws):+.2f} ± {stats.t.ppf(0.975, len(draws) - 1) * stats.sem(draws):.2f}"


# ---- the parts -------------------------------------------------------------------------------------------------------


def gain_rows(title, graph, clean, other, sigmas, n_draws, *, exact="exact"):
    """Rows of one map: without a guide, and guided by noisy maps of `other` at the same sigma (one, twelve), and by the exact one."""
    scores = {"none": [], "one noisy map": [], "twelve noisy maps": [], exact: []}
    for sigma in sigmas:
        draws = {name: [] for name in scores}
        for seed in range(n_draws):
            rng = noise_generator(seed)
            y = clean + sigma * rng.normal(size=graph.n)
            others = [noisy_map(graph, other, sigma, rng) for _ in range(12)]
            guides = {"none": None, "one noisy map": others[0], "twelve noisy maps": others, exact: other}
            for name, guide in guides.items():
                draws[name].append(hg.snr(clean, hg.denoise(graph, y, sigma=sigma, nonnegative=True, guides=guide).signal))
        for name in scores:
            gained = np.subtract(draws[name], draws["none"])
            scores[name].append(f"{np.mean(draws[name]):.2f}" + ("" if name == "none" else f" ({paired(gained)})"))
        print(title, sigma, {name: round(float(np.mean(part)), 2) for name, part in draws.items()}, flush=True)
    return [[title if name == "none" else "", name, *cells] for name, cells in scores.items()]


def gain(n_draws) -> list[str]:
    """Earlier maps, noisy and exact."""
    graph, months = generated_months()
    lines = ["Generated city (3,000 nodes), month 2 guided by month 1:", ""]
    sigmas = (12.0, 6.0, 3.0)
    rows = gain_rows("generated month", graph, months[:, 1], months[:, 0], sigmas, n_draws)
    lines += table(["map", "guide", *(f"sigma {sigma:g}" for sigma in sigmas)], rows)
    if not HAS_DATA:
        return lines
    sigmas = (26.49, 8.06, 4.22)
    first, second = hg.datasets.manhattan(), hg.datasets.manhattan(hour="2013-01-01T00")
    day, night = first.signals["f_matched"], second.signal
    lines += [
        "Manhattan (OSM), taxi pickups of 2013-11-18, 16:00-16:51, and of 2013-01-01, 00:00-00:56, each guided by the other:",
        "",
    ]
    rows = gain_rows("2013-11-18 16h", first.graph, day, night, sigmas, n_draws)
    rows += gain_rows("2013-01-01 00h", first.graph, night, day, sigmas, n_draws)
    lines += table(["map", "guide", *(f"sigma {sigma:g}" for sigma in sigmas)], rows)
    graph, hours = san_francisco_hours()
    sigmas = (8.45, 4.22, 2.0)
    lines += ["San Francisco (OSM), taxi pickups of one hour of 2008-05-25, guided by those of the rest of the day (over 23):", ""]
    rows = []
    for hour in (1, 9, 17, 22):
        rest = (hours.sum(axis=1) - hours[:, hour]) / 23
        rows += gain_rows(f"{hour:02d}:00", graph, hours[:, hour], rest, sigmas, n_draws)
    return lines + table(["hour", "guide", *(f"sigma {sigma:g}" for sigma in sigmas)], rows)


def resampled(n_draws) -> list[str]:
    """San Francisco's day guided by a generated day of the same intensities."""
    if not HAS_DATA:
        return ["Needs the data of HUSHGRAPH_DATA.", ""]
    graph, hours = san_francisco_hours()
    day, sigmas = hours.sum(axis=1), (37.98, 16.12, 8.45)
    other = np.random.default_rng(1).poisson(day).astype(float)
    rows = gain_rows("2008-05-25", graph, day, other, sigmas, n_draws)
    note = "All taxi pickups of 2008-05-25 on San Francisco's streets (OSM). The guide is no real day: Poisson counts with the counts of the day as means."
    return [note, "", *table(["map", "guide", *(f"sigma {sigma:g}" for sigma in sigmas)], rows)]


def fields(graph):
    """Signals of many kinds with a guide for each: (name, signal, guide)."""
    rng = np.random.default_rng(5)
    a, b, c = (hg.smooth_signal(graph, seed=seed) for seed in (1, 2, 3))
    rough = rng.normal(size=graph.n)
    pieces = hg.piecewise_constant_signal(graph, n_pieces=12, seed=1)
    levels = rng.permutation(12)
    spikes = np.zeros(graph.n)
    places = rng.choice(graph.n, graph.n // 50, replace=False)
    spikes[places] = 6 * rng.normal(size=len(places))
    yield "smooth; the guide is half of it", 3 * (a + b) / np.sqrt(2), a
    yield "smooth; the guide times a factor that varies", 3 * a * (1 + 0.7 * c), a
    yield "rough; the guide has the roughness", 2 * a + 2 * rough, rough
    yield "rough; the guide times a factor that varies", 2 * a + 2 * rough * (1 + 0.8 * c), rough
    yield "pieces; the guide has the borders, other levels", 3 * (pieces - 5.5) / 3.45, levels[pieces.astype(int)].astype(float)
    yield "pieces; the guide with a smooth field", 3 * (pieces - 5.5) / 3.45, pieces + 2 * b
    yield "spikes; the guide has other heights", spikes, spikes * rng.uniform(0.5, 2, graph.n)
    yield "the absolute value of the guide", 3 * np.abs(a), a


def kinds(n_draws) -> list[str]:
    """Signals of any sign."""
    graph, sigmas = hg.datasets.city(5000, seed=1), (1.0, 3.0, 8.0)
    rows = []
    for name, clean, guide in fields(graph):
        for method in ("let", "auto"):
            cells = []
            for sigma in sigmas:
                draws = []
                for seed in range(n_draws):
                    y = clean + sigma * noise_generator(seed).normal(size=graph.n)
                    both = [hg.denoise(graph, y, sigma=sigma, method=method, guides=wish).signal for wish in (None, guide)]
                    draws.append([hg.snr(clean, signal) for signal in both])
                cells.append("{:.2f}, {:.2f}".format(*np.mean(draws, axis=0)))
            rows.append([name if method == "let" else "", method, *cells])
            print(*rows[-1], flush=True)
    head = ["signal", "method", *(f"sigma {sigma:g}: alone, guided" for sigma in sigmas)]
    return [
        "Generated city (5,000 nodes), signals of standard deviation about 3, without nonnegative=True:",
        "",
        *table(head, rows),
    ]


def useless_cases():
    """(name, graph, signal, sigmas, nonnegative, guides that say nothing, as a function of a random generator)."""
    graph, months = generated_months()
    maps = [("generated month", graph, months[:, 0], (12.0, 6.0, 3.0), True)]
    field = 3 * hg.smooth_signal(graph)
    maps.append(("generated smooth field", graph, field, (1.0, 3.0, 8.0), False))
    maps.append(("generated pieces", graph, hg.piecewise_constant_signal(graph, n_pieces=12), (1.0, 3.0, 8.0), False))
    if HAS_DATA:
        found = hg.datasets.manhattan()
        maps.append(("Manhattan 2013-11-18 16h", found.graph, found.signals["f_matched"], (26.49, 8.06, 4.22), True))
    kinds = {
        "constant": lambda clean, rng: np.ones(len(clean)),
        "permuted": lambda clean, rng: rng.permutation(clean),
        "ten permuted": lambda clean, rng: np.stack([rng.permutation(clean) for _ in range(10)], axis=1),
        "ten of white noise": lambda clean, rng: rng.normal(size=(len(clean), 10)),
    }
    for name, place, clean, sigmas, nonnegative in maps:
        others = np.stack([hg.smooth_signal(place, seed=100 + k) for k in range(10)], axis=1)
        yield name, "ten other smooth fields", place, clean, sigmas, nonnegative, lambda clean, rng, others=others: others
        for kind, make in kinds.items():
            yield name, kind, place, clean, sigmas, nonnegative, make


def useless(n_draws) -> list[str]:
    """What guides cost that say nothing."""
    rows, costs = [], {}
    for name, kind, graph, clean, sigmas, nonnegative, make in useless_cases():
        cells = []
        for sigma in sigmas:
            draws = []
            for seed in range(n_draws):
                rng = noise_generator(seed)
                y = clean + sigma * rng.normal(size=graph.n)
                wishes = (None, make(clean, rng))
                both = [hg.denoise(graph, y, sigma=sigma, nonnegative=nonnegative, guides=wish).signal for wish in wishes]
                draws.append(hg.snr(clean, both[1]) - hg.snr(clean, both[0]))
            cells.append(paired(draws) if np.any(draws) else "0")
            costs.setdefault(kind, []).append(np.mean(draws))
        rows.append([name, kind, *cells])
        print(*rows[-1], flush=True)
    means = [[kind, f"{np.mean(cost):+.3f}", f"{np.min(cost):+.3f}"] for kind, cost in costs.items()]
    return [
        "Gain in dB over no guide, at a strong, a middling and a weak noise:",
        "",
        *table(["signal", "guides", "strong", "middling", "weak"], rows),
        *table(["guides", "mean over all cells", "worst cell"], means),
    ]


def series(n_draws) -> list[str]:
    """Maps that follow each other: alone, all at once on a product graph, and guided by each other."""
    graph, months = generated_months()
    cases = [("generated city, 12 months", graph, months, (12.0, 6.0, 3.0), 3)]
    if HAS_DATA:
        cases.append(("San Francisco, 24 hours of 2008-05-25", *san_francisco_hours(), (8.45, 4.22, 2.0), 1))
    rows, losses = [], []
    for name, place, clean, sigmas, share in cases:
        for sigma in sigmas:
            scores, seconds, by_map, count = [], [], [], max(n_draws * share // 5, 2)
            for seed in range(count):
                y = clean + sigma * noise_generator(seed).normal(size=clean.shape)
                results = []
                for how in ("separate", "path", "series"):
                    start = time.perf_counter()
                    results.append(hg.denoise(place, y, sigma=sigma, columns=how, nonnegative=True).signal)
                    seconds.append(time.perf_counter() - start)
                results.append(hg.denoise_series(place, y, sigma=sigma, direction="past", nonnegative=True).signal)
                scores.append([hg.snr(clean.ravel(), result.ravel()) for result in results])
                by_map.append([np.sum((result - clean) ** 2, axis=0) for result in results])
            errors = np.mean(by_map, axis=0)
            loss = 10 * np.log10(errors[2] / np.minimum(errors[1], errors[0]))
            losses.append(loss.max())
            took = np.reshape(seconds, (-1, 3)).mean(axis=0)
            cells = [f"{score:.2f}" for score in np.mean(scores, axis=0)]
            rows.append([name, f"{sigma:g}", count, *cells, f"{loss.max():+.2f}", f"{took[1]:.1f}", f"{took[2]:.1f}"])
            print(*rows[-1], flush=True)
    head = ["maps", "sigma", "draws", "separate", "path", "series", "past", "most lost by a map", "s, path", "s, series"]
    note = (
        "SNR of all values together. `most lost by a map`: the largest loss of a map in the series, in dB of its mean squared error over the "
        "draws, to the better of separate and path."
    )
    return [note, "", *table(head, rows)]


def risk(n_draws) -> list[str]:
    """The risk of guided results against their true squared error."""
    graph, months = generated_months(2000)
    field = 3 * hg.smooth_signal(graph)
    cases = [
        ("generated month", graph, months[:, 0], months[:, 1], (12.0, 6.0, 3.0), True),
        ("generated field", graph, field, field + hg.smooth_signal(graph, seed=9), (1.0, 3.0, 8.0), False),
    ]
    if HAS_DATA:
        found, other = hg.datasets.manhattan(), hg.datasets.manhattan(hour="2013-01-01T00")
        cases.append(("Manhattan", found.graph, found.signals["f_matched"], other.signal, (26.49, 8.06, 4.22), True))
    rows = []
    for name, place, clean, other, sigmas, nonnegative in cases:
        for sigma in sigmas:
            scores = []
            for seed in range(20 * n_draws if name != "Manhattan" else 5 * n_draws):
                rng = noise_generator(seed)
                y = clean + sigma * rng.normal(size=place.n)
                results = [hg.denoise(place, y, sigma=sigma, nonnegative=nonnegative, guides=wish) for wish in (None, other)]
                errors = [np.sum((result.signal - clean) ** 2) for result in results]
                scores.append([(result.risk - error) / result.risk_se for result, error in zip(results, errors, strict=True)])
            score = np.array(scores)
            bias, covered = score.mean(axis=0), np.mean(np.abs(score) < 2, axis=0)
            rows.append([name, f"{sigma:g}", *(f"{b:+.2f}, {share:.0%}" for b, share in zip(bias, covered, strict=True))])
            print(*rows[-1], flush=True)
    head = ["signal", "sigma", "without guide", "guided"]
    return [
        f"Mean of (risk - true squared error) / risk_se over {20 * n_draws} draws ({5 * n_draws} on Manhattan), and how often it is below 2 in size:",
        "",
        *table(head, rows),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to measure; all by default")
    parser.add_argument(
        "--draws",
        type=int,
        default=10,
        help="draws of the noise; 20 times as many for the risk of generated maps, 5 times on Manhattan",
    )
    wish = parser.parse_args()
    for name in wish.parts or PARTS:
        lines = globals()[name](wish.draws)
        head = [
            f"# Guides: {globals()[name].__doc__}",
            "",
            f"{datetime.date.today()}, {machine()}, `benchmarks/guides.py {name} --draws {wish.draws}`.",
            "",
        ]
        (RESULTS / f"guides-{name}.md").write_text("\n".join(head + lines), encoding="utf-8")


if __name__ == "__main__":
    main()
