"""What each method gains and costs: SNR on generated and real signals, small graphs, the truth of `risk`, unknown sigma, speed.

    python benchmarks/estimators.py                       generated data only
    HUSHGRAPH_DATA=... python benchmarks/estimators.py    also Manhattan's and Minnesota's streets

All methods see the same noise, drawn with numpy.random.default_rng(0), (1), ... The oracle thresholds the paper's frame at the
minimum of the true error of the coefficients; it needs the truth and is no method.
"""

from __future__ import annotations

import argparse
import datetime
import os
import resource
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import stats

import hushgraph as hg
from hushgraph.estimators.let.filters import Filters
from hushgraph.experiments.stage import machine
from hushgraph.wavelets.noise import Noise

METHODS = ("sgwt_sure", "sgwt_scaled", "sgwt_beta", "sgwt_block", "sgwt_deep", "let", "auto")
SIGMAS = (26.49, 12.99, 8.06, 4.22)
LEVELS = (-10, -3, 3, 10)
DATA = Path(os.environ["HUSHGRAPH_DATA"]) if os.environ.get("HUSHGRAPH_DATA") else None


def oracle(frame, clean, noisy):
    """The paper's oracle: thresholds of its frame, tuned on the truth."""
    F = hg.analyze(frame, noisy)
    t = hg.oracle_thresholds(F, hg.analyze(frame, clean))
    return hg.synthesize(frame, hg.james_stein(F, t[:, None])[0])


def sigma_at(clean, level: float) -> float:
    """Noise for that input SNR."""
    return float(np.sqrt(np.mean(clean**2)) * 10 ** (-level / 20))


def table(head, rows) -> list[str]:
    return ["| " + " | ".join(map(str, line)) + " |" for line in (head, ["---"] * len(head), *rows)] + [""]


# ---- signals -----------------------------------------------------------------------------------------------------------


def more_maps():
    """Further real maps, and the noise of the paper's budgets on them: (name, graph, counts, sigmas)."""
    if DATA is not None:
        for streets in ("osm", "dpw"):
            found = hg.datasets.san_francisco(streets=streets)
            yield (
                f"San Francisco ({streets}), all taxi pickups of 2008-05-25",
                found.graph,
                found.signals["f_all"],
                (37.98, 16.12, 8.45),
            )


def counted_maps():
    """(name, graph, counts)."""
    graph = hg.datasets.city(4600)
    yield "generated city, generated pickups", graph, hg.hotspot_counts(graph, total=int(2.9 * graph.n)).astype(float)
    if DATA is not None:
        found = hg.datasets.manhattan()
        yield "Manhattan (OSM), taxi pickups of 2013-11-18, 16:00-16:51", found.graph, found.signals["f_matched"]


def signals():
    """(name, graph, signal) of other kinds than counts."""
    grid, net = hg.datasets.grid(64, 64), hg.datasets.random_geometric(4000)
    yield "grid 64 x 64, piecewise constant", grid, hg.piecewise_constant_signal(grid)
    yield "random geometric graph, smooth", net, hg.smooth_signal(net)
    yield "grid 64 x 64, white", grid, np.random.default_rng(5).normal(size=grid.n)
    roads = hg.datasets.roads(2600)
    yield "generated roads, A^4 x, p = .005", roads, hg.bernoulli_signal(roads, p=0.005, k=4)
    if DATA is not None and (DATA / "gasper_minnesota.npz").exists():
        with np.load(DATA / "gasper_minnesota.npz") as data:
            graph = hg.Graph.from_edges(data["edges"], n=int(data["n"]))
        yield "Minnesota (gasper), A^4 x, p = .001", graph, hg.bernoulli_signal(graph, p=0.001, k=4)


def measured(graph, clean, sigmas, draws, methods, *, nonnegative):
    """Per sigma: SNRs by row, and (risk - true) / risk_se by method."""
    frame = hg.chebyshev_frame(graph)
    for sigma in sigmas:
        rows, scores = {}, {}
        for draw in range(draws):
            noisy = clean + np.random.default_rng(draw).normal(0, sigma, graph.n)
            estimates = {"noisy": noisy, "oracle of the paper": oracle(frame, clean, noisy)}
            estimates["DFS fused lasso, oracle"] = hg.dfs_fused_lasso(graph, noisy, penalty="oracle", truth=clean).signal
            for method in methods:
                result = hg.denoise(graph, noisy, sigma=sigma, method=method)
                estimates[method] = result.signal
                scores.setdefault(method, []).append((result.risk - np.sum((result.signal - clean) ** 2)) / result.risk_se)
            if nonnegative:
                estimates["auto, clipped at 0"] = np.maximum(estimates["auto"], 0)
                estimates["auto, nonnegative"] = hg.denoise(graph, noisy, sigma=sigma, nonnegative=True).signal
            for name, estimate in estimates.items():
                rows.setdefault(name, []).append(hg.snr(clean, estimate))
        yield rows, scores


def signal_tables(draws: int) -> list[str]:
    lines = []
    cases = [(*case, SIGMAS, "sigma", True) for case in counted_maps()]
    cases += [(*case, "sigma", True) for case in more_maps()]
    cases += [(*case, [sigma_at(case[2], level) for level in LEVELS], "input SNR", False) for case in signals()]
    for name, graph, clean, sigmas, word, nonnegative in cases:
        found = list(measured(graph, clean, sigmas, draws, METHODS, nonnegative=nonnegative))
        lines += [f"**{name}** ({graph.n:,} nodes); SNR in dB, mean ± standard deviation over {draws} draws", ""]
        head = [word, *(sigmas if nonnegative else LEVELS)]
        rows = [[row, *(f"{np.mean(snrs[row]):.2f} ± {np.std(snrs[row], ddof=1):.2f}" for snrs, _ in found)] for row in found[0][0]]
        rows += [
            [f"(risk - true) / risk_se, {row}", *(f"{np.mean(z[row]):.2f} ± {np.std(z[row], ddof=1):.2f}" for _, z in found)]
            for row in ("sgwt_sure", "sgwt_deep", "let", "auto")
        ]
        lines += table(head, rows)
    return lines


# ---- small graphs ------------------------------------------------------------------------------------------------------


def small_graphs(count: int):
    """Graphs of 20 to 500 nodes: geometric, grids, street networks, trees."""
    rng = np.random.default_rng(0)
    for k in range(count):
        n, kind = int(rng.integers(20, 501)), k % 4
        side = max(4, round(np.sqrt(n)))
        if kind == 0:
            yield hg.datasets.random_geometric(n, seed=k)
        elif kind == 1:
            yield hg.datasets.grid(side, max(5, n // side))
        elif kind == 2:
            yield hg.datasets.roads(max(n, 100), seed=k)
        else:
            parents = [int(rng.integers(max(0, i - 8), i)) for i in range(1, n)]
            yield hg.Graph.from_edges(np.stack([np.arange(1, n), parents], axis=1), n=n)


def small_table(count: int) -> list[str]:
    kinds = {
        "sparse": lambda graph, k: (
            (np.random.default_rng(k).random(graph.n) < 0.05) * np.random.default_rng(k).exponential(5, graph.n)
        ),
        "smooth": lambda graph, k: hg.smooth_signal(graph, seed=k),
        "piecewise constant": lambda graph, k: hg.piecewise_constant_signal(graph, seed=k, n_pieces=min(8, graph.n // 4)),
        "white": lambda graph, k: np.random.default_rng(k).normal(size=graph.n),
    }
    gains: dict[tuple, list[float]] = {}
    for k, graph in enumerate(small_graphs(count)):
        for kind, make in kinds.items():
            clean = make(graph, k)
            if not clean.any():
                continue
            for level in (-3, 5):
                sigma = sigma_at(clean, level)
                noisy = clean + np.random.default_rng(1000 + k).normal(0, sigma, graph.n)
                paper, ours = (hg.snr(clean, hg.denoise(graph, noisy, sigma=sigma, method=m).signal) for m in ("sgwt_sure", "auto"))
                gains.setdefault((kind, level), []).append(ours - paper)
    rows = [
        [
            kind,
            f"{level:+d} dB",
            f"{np.mean(values):+.2f}",
            f"{np.median(values):+.2f}",
            f"{min(values):+.2f}",
            f"{np.mean(np.array(values) < -0.1):.0%}",
        ]
        for (kind, level), values in gains.items()
    ]
    everything = np.concatenate(list(gains.values()))
    rows.append(
        [
            "all",
            "",
            f"{everything.mean():+.2f}",
            f"{np.median(everything):+.2f}",
            f"{everything.min():+.2f}",
            f"{np.mean(everything < -0.1):.0%}",
        ]
    )
    head = ["signal", "input SNR", "mean gain", "median", "worst", "share that loses over 0.1 dB"]
    return [f"**{count} generated graphs of 20 to 500 nodes**: `auto` against the paper's method, in dB", "", *table(head, rows)]


# ---- unknown sigma, the truth of risk ----------------------------------------------------------------------------------


def sigma_table(draws: int) -> list[str]:
    rows = []
    for name, graph, clean in counted_maps():
        for sigma in SIGMAS:
            known, unknown, found = [], [], []
            for draw in range(draws):
                noisy = clean + np.random.default_rng(draw).normal(0, sigma, graph.n)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    blind = hg.denoise(graph, noisy, nonnegative=True)
                known.append(hg.snr(clean, hg.denoise(graph, noisy, sigma=sigma, nonnegative=True).signal))
                unknown.append(hg.snr(clean, blind.signal))
                found.append(blind.sigma)
            rows.append([name, sigma, f"{np.mean(found):.2f}", f"{np.mean(known):.2f}", f"{np.mean(unknown):.2f}"])
    return [
        f"**Unknown sigma**: `auto`, nonnegative, {draws} draws, SNR in dB",
        "",
        *table(["map", "sigma", "estimated", "sigma known", "estimated from the signal"], rows),
    ]


def risk_cases(draws: int):
    """(name, graph, signal, sigmas, settings by label, draws) of the table of risks; all data are generated."""
    city = hg.datasets.city(1000)
    counts = hg.hotspot_counts(city, total=4000).astype(float)
    single = {name: {"method": name} for name in (*METHODS[:-1], "filter", "counts", "auto")}
    yield "city", city, counts, (20.0, 6.0, 2.0), {**single, "auto, nonnegative": {"nonnegative": True}}, draws
    mesh = hg.datasets.random_geometric(1000)
    for name, signal in {
        "smooth on a mesh": hg.smooth_signal(mesh),
        "pieces on a mesh": hg.piecewise_constant_signal(mesh),
    }.items():
        signed = {label: flags for label, flags in single.items() if label != "counts"}
        yield name, mesh, 3 * signal / signal.std(), (3.0, 1.0), signed, draws // 4
    other = np.random.default_rng(1).poisson(counts).astype(float)
    guided = {"let": {"method": "let"}, "auto": {}, "auto, nonnegative": {"nonnegative": True}}
    guided = {f"{label}, guided": {**flags, "guides": other} for label, flags in guided.items()}
    yield "city and another draw of its counts", city, counts, (20.0, 6.0, 2.0), guided, draws // 4
    streets = hg.datasets.city(500)
    pattern = hg.hotspot_counts(streets, total=2000).astype(float)
    rhythm = 0.8 + 0.36 * np.sin(2 * np.pi * np.arange(12) / 12)
    hours = np.random.default_rng(2).poisson(pattern[:, None] * rhythm).astype(float)
    path = {f"{name}, path": {"method": name, "columns": "path"} for name in ("sgwt_sure", "sgwt_deep", "let", "auto")}
    yield "12 hours", streets, hours, (8.0, 3.0, 1.0), path, draws // 10
    series = {"auto, series": {}, "auto, nonnegative, series": {"nonnegative": True}}
    series = {label: {**flags, "columns": "series"} for label, flags in series.items()}
    yield "12 hours", streets, hours, (8.0, 3.0, 1.0), series, draws // 25


def risk_row(graph, clean, sigma: float, flags, draws: int) -> list[str]:
    """Mean of risk - true error; risks of several columns are added up.

    Means are those of risk - error less ||noise||^2 - n sigma^2 and less 2 <noise, truth - mean estimate from other draws>. Both terms have
    mean 0, and most of the variance.
    """
    noise = np.stack([np.random.default_rng(draw).normal(0, sigma, clean.shape) for draw in range(draws)])
    results = [hg.denoise(graph, clean + one, sigma=sigma, **flags) for one in noise]
    signals = np.stack([one.signal for one in results])
    others = (signals.sum(axis=0) - signals) / (draws - 1)
    nodes = tuple(range(1, noise.ndim))
    errors = np.array([np.sum(one.risk) for one in results]) - np.sum((signals - clean) ** 2, axis=nodes)
    chance = np.sum(noise**2, axis=nodes) - clean.size * sigma**2 + 2 * np.sum(noise * (clean - others), axis=nodes)
    risk_se = np.array([np.sqrt(np.sum(np.square(one.risk_se))) for one in results])
    bias = errors - chance
    return [
        f"{np.mean(bias) / sigma**2:+.1f} ± {stats.sem(bias) / sigma**2:.1f}",
        f"{np.mean(bias / risk_se):+.2f} ± {stats.sem(bias / risk_se):.2f}",
        f"{np.std(errors / risk_se):.2f}",
        f"{np.mean(np.abs(errors) < 2 * risk_se):.0%}",
        str(draws),
    ]


def risk_table(draws: int) -> list[str]:
    rows = [
        [name, f"{sigma:g}", label, *risk_row(graph, clean, sigma, flags, max(count, 2))]
        for name, graph, clean, sigmas, labels, count in risk_cases(draws)
        for sigma in sigmas
        for label, flags in labels.items()
    ]
    head = [
        "signal",
        "sigma",
        "method",
        "risk - true error, in sigma^2",
        "in risk_se",
        "standard deviation",
        "within 2 risk_se",
        "draws",
    ]
    return [
        "**Is `risk` true?** Generated signals; of a nonnegative result, which is clipped at 0, `risk` is that before clipping, and too large",
        "",
        *table(head, rows),
        *choice_table(max(draws // 5, 3)),
    ]


def choice_cases():
    """(name, graph, signal, sigma): other generated graphs and signals than those of the table of risks."""
    for n in (200, 1000, 6000):
        roads = hg.datasets.roads(n, seed=3)
        counts = hg.hotspot_counts(roads, total=4 * roads.n).astype(float)
        for sigma in (10.0, 3.0):
            yield f"roads, {roads.n:,} nodes", roads, counts, sigma
    grid = hg.datasets.grid(32, 32)
    signal = hg.piecewise_constant_signal(grid, seed=4)
    yield "pieces on a grid", grid, 3 * signal / signal.std(), 1.0
    yield "nothing on a grid", grid, np.zeros(grid.n), 1.0


def choice_table(draws: int) -> list[str]:
    """What choosing costs in degrees of freedom: (<noise, estimate> / sigma^2 - divergence at fixed thresholds or weights), and what is charged."""
    rows = []
    for name, graph, clean, sigma in choice_cases():
        row = [name, f"{sigma:g}"]
        for method in ("sgwt_sure", "sgwt_beta", "sgwt_block", "let", "counts"):
            noise = np.stack([np.random.default_rng(1000 + draw).normal(0, sigma, graph.n) for draw in range(draws)])
            results = [hg.denoise(graph, clean + one, sigma=sigma, method=method) for one in noise]
            signals = np.stack([one.signal for one in results])
            others = (signals.sum(axis=0) - signals) / (draws - 1)  # the mean of other draws, which do not know this noise
            divergence = np.array([one.details["divergence"] for one in results])
            cost = np.sum(noise * (signals - others), axis=1) / sigma**2 - divergence
            sure = np.array([np.sum((one.signal - clean - e) ** 2) for one, e in zip(results, noise, strict=True)])
            sure = sure / sigma**2 - graph.n + 2 * divergence
            charged = (np.array([one.risk for one in results]) / sigma**2 - sure) / 2
            row.append(f"{np.mean(cost):.0f} ± {stats.sem(cost):.0f} / {np.mean(charged):.0f}")
        rows.append(row)
    return [
        "**What choosing costs**, in degrees of freedom: measured / charged. What is charged was set on cities and meshes like those above; of the graphs below only the roads were used, for the exponents",
        "",
        *table(["signal", "sigma", "thresholds", "and exponents", "of blocks", "weights of `let`", "prior of `counts`"], rows),
    ]


# ---- speed -------------------------------------------------------------------------------------------------------------


def least_time(call, repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def speed_table(n: int) -> list[str]:
    graph = hg.datasets.roads(n)
    noisy = np.random.default_rng(0).normal(size=graph.n)
    frame = hg.chebyshev_frame(graph)
    forward = least_time(lambda: hg.analyze(frame, noisy), 5)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

    def anew():
        graph.cache.put("filters", None)
        return hg.denoise(graph, noisy, sigma=1.0, method="let")

    fresh = least_time(anew)
    again = least_time(lambda: hg.denoise(graph, noisy, sigma=1.0, method="let"))
    filters = Filters.of(graph, Noise.of(1.0))
    bands = np.random.default_rng(1).normal(size=(2, frame.n_scales, graph.n))
    each = least_time(lambda: filters.synthesize_each(bands.copy()))
    whole = least_time(lambda: filters.synthesize(bands[:1]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows = [
        ["one forward transform of the paper's frame", f"{forward:.2f}", "1"],
        [
            f"synthesis that `let` needs ({2 * frame.n_scales} columns, and one for `risk_se`)",
            f"{each + whole:.2f}",
            f"{(each + whole) / forward:.1f}",
        ],
        ["`let`, first signal on the graph", f"{fresh:.2f}", f"{fresh / forward:.1f}"],
        ["`let` without that synthesis", f"{fresh - each - whole:.2f}", f"{(fresh - each - whole) / forward:.1f}"],
        ["`let`, next signal", f"{again:.2f}", f"{again / forward:.1f}"],
    ]
    text = f"**Speed** on {graph.n:,} nodes of a generated road network, {frame.n_scales} scales; peak memory of the process {peak:.2f} GB ({before:.2f} before `let`)"
    return [text, "", *table(["", "seconds", "forward transforms"], rows), *street_speed()]


def street_speed() -> list[str]:
    rows = []
    for name, graph, clean in counted_maps():
        noisy = clean + np.random.default_rng(0).normal(0, 8, graph.n)
        hg.denoise(graph, noisy, sigma=8.0, nonnegative=True)  # warms up
        for flags in ({}, {"nonnegative": True}):
            graph.cache.clear()
            first = least_time(lambda graph=graph, noisy=noisy, flags=flags: hg.denoise(graph, noisy, sigma=8.0, **flags), 1)
            later = least_time(lambda graph=graph, noisy=noisy, flags=flags: hg.denoise(graph, noisy, sigma=8.0, **flags))
            rows.append([name, "nonnegative" if flags else "signed", f"{first:.2f}", f"{later:.2f}", f"{1 - later / first:.0%}"])
    return ["**Speed** of `auto`", "", *table(["map", "", "first signal, s", "next signal, s", "saved"], rows)]


SECTIONS = {
    "speed": lambda quick: speed_table(100_000 if quick else 1_100_000),
    "signals": lambda quick: signal_tables(2 if quick else 10),
    "small": lambda quick: small_table(8 if quick else 100),
    "sigma": lambda quick: sigma_table(2 if quick else 10),
    "risk": lambda quick: risk_table(4 if quick else 200),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--quick", action="store_true", help="few draws: shows that it runs")
    parser.add_argument("--sections", nargs="*", choices=list(SECTIONS), default=list(SECTIONS))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.sections:
        lines = [
            f"{datetime.date.today().isoformat()}, {machine()}; `python benchmarks/estimators.py --sections {name}`",
            "",
            *SECTIONS[name](arguments.quick),
        ]
        print("\n".join(lines), flush=True)
        if not arguments.quick:
            (arguments.out / f"estimators-{name}.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
