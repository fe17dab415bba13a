"""Who wins: `auto` and other methods of the library against peers, on twelve kinds of signals, four graphs and three noise levels.

    python benchmarks/signals.py [kinds] [smooth] [filter] [photographs] [degree] [sigma] [risk] [--draws 8]

Generated data, and photographs of scikit-image. Every part writes benchmarks/results/signals-<part>.md, so that parts can be run one by one. Eigenvectors and the
results of the peers are stored in out/signals: a second run only denoises by the methods of the library. `--draws 2` is for a quick look, with two of the photographs and
without the graph of a million nodes.

Decibels of noise removed are 10 log10(n sigma^2 / ||estimate - truth||^2), mean over draws of signal and noise. All methods see the same draws and the true sigma. A
star marks a method whose parameters are tuned on the truth. "± " is one standard error of the mean, of paired differences where it is a difference.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import time
import warnings
from pathlib import Path

import numpy as np
import peers
import steep_filters
from scipy import sparse, stats
from scipy.sparse import linalg
from signal_kinds import CACHE, KINDS, PLACES, SEED, SIGMAS, SMOOTH_KINDS, SPREAD, clean_signal

import hushgraph as hg
from hushgraph.estimators.methods import METHODS
from hushgraph.experiments.stage import machine

RESULTS = Path(__file__).parent / "results"
PARTS = ("kinds", "smooth", "filter", "photographs", "degree", "sigma", "risk")
OURS = tuple(name for name in ("auto", "let", "sgwt_deep", "filter") if name in METHODS)
LOSS = 0.05  # dB that count as a loss
NO_BREAK = "\N{NO-BREAK SPACE}"
MARKERS = {"streets": ("o", "#1b6ca8"), "mesh": ("s", "#d1495b"), "kNN": ("^", "#2e8b57"), "grid": ("D", "#8d5a97")}


def table(head, rows) -> list[str]:
    """Lines of a table in which a number and its standard error, or its unit, are never on two lines."""
    lines = ["| " + " | ".join(map(str, line)) + " |" for line in (head, ["---"] * len(head), *rows)] + [""]
    return [line.replace(" ± ", f"{NO_BREAK}±{NO_BREAK}").replace(" s)", f"{NO_BREAK}s)") for line in lines]


def removed(estimate, clean, sigma) -> float:
    """Decibels of noise removed."""
    return float(10 * np.log10(clean.size * sigma**2 / np.sum((estimate - clean) ** 2)))


def difference(first, second) -> str:
    """Mean and standard error of paired differences."""
    gap = np.subtract(first, second)
    return f"{gap.mean():+.2f} ± {stats.sem(gap):.2f}" if len(gap) > 1 else f"{gap.mean():+.2f}"


def denoised(graph, noisy, sigma, method):
    """One result of the library; warnings about the noise level are not what is measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hg.denoise(graph, noisy, sigma=sigma, method=method)


def scores_of_draws(place, kind, sigma, n_draws, methods, peer) -> tuple[dict[str, list[float]], list[float]]:
    """Decibels of each draw: of methods of the library, and of a peer, which fits a filter to the coefficients of the eigenvectors."""
    x, vectors = place.eigen
    scores, scores_of_peer = {method: [] for method in methods}, []
    for draw in range(n_draws):
        clean = clean_signal(place, kind, draw)
        y = clean + place.noise(sigma, draw)
        z = vectors.T @ y
        scores_of_peer.append(removed(vectors @ (peer(x, z, sigma).gain * z), clean, sigma))
        for method in methods:
            scores[method].append(removed(denoised(place.graph, y, sigma, method).signal, clean, sigma))
    return scores, scores_of_peer


# ---- kinds -------------------------------------------------------------------------------------------------------------


def peer_scores(place, clean, noisy, sigma) -> dict[str, list[float]]:
    """Decibels of every peer and draw; rows of `clean` and `noisy` are draws."""
    (x, vectors), graph = place.eigen, place.graph
    scores: dict[str, list[float]] = {}
    trends = peers.tuned_trend_filters(sparse.csr_array(graph.laplacian()), noisy.T, clean.T, sigma).T
    for truth, y, trend in zip(clean, noisy, trends, strict=True):
        z = vectors.T @ y
        estimates = {
            "Gaussian process": vectors @ (peers.matern_process(x, z, sigma).gain * z),
            "Tikhonov": vectors @ (peers.tikhonov(x, z, sigma).gain * z),
            "Tikhonov *": vectors @ (peers.tikhonov(x, z, sigma, vectors.T @ truth).gain * z),
            "TV": peers.total_variation(graph, y, sigma),
            "TV *": peers.total_variation(graph, y, sigma, truth),
            "trend filtering *": trend,
        }
        if place.shape is not None:
            picture = y.reshape(place.shape)
            estimates["non-local means *"] = peers.tuned_non_local_means(picture, truth.reshape(place.shape), sigma).ravel()
            estimates["BM3D"] = peers.block_matching(picture, sigma).ravel()
        for name, estimate in estimates.items():
            scores.setdefault(name, []).append(removed(estimate, truth, sigma))
    return scores


def stored_peer_scores(place, clean, noisy, sigma) -> dict[str, list[float]]:
    """Decibels of the peers from out/signals, or computed if these inputs, or the code of the peers, are new."""
    baselines = Path(hg.baselines.__file__).parent
    sources = [Path(peers.__file__), *sorted(baselines.glob("*.py"))]
    key = hashlib.sha256(
        b"".join([clean.tobytes(), noisy.tobytes(), str(sigma).encode(), *(path.read_bytes() for path in sources)])
    )
    path = CACHE / "peers" / f"{key.hexdigest()[:24]}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(peer_scores(place, clean, noisy, sigma)))
    return json.loads(path.read_text())


def cell_scores(place, kind, sigma, n_draws) -> dict[str, list[float]]:
    """Decibels of every method and draw in one cell."""
    clean = np.stack([clean_signal(place, kind, draw) for draw in range(n_draws)])
    noisy = np.stack([truth + place.noise(sigma, draw) for draw, truth in enumerate(clean)])
    scores = {
        method: [
            removed(denoised(place.graph, y, sigma, method).signal, truth, sigma) for truth, y in zip(clean, noisy, strict=True)
        ]
        for method in OURS
    }
    return {**scores, **stored_peer_scores(place, clean, noisy, sigma)}


def losses(cells) -> list[str]:
    """Where a method that does not know the truth is better than `auto`, the largest loss first."""
    found = []
    for (name, kind, sigma), scores in cells.items():
        rivals = {rival: np.mean(values) for rival, values in scores.items() if rival != "auto" and not rival.endswith("*")}
        best = max(rivals, key=rivals.get)
        gap = np.subtract(scores[best], scores["auto"])
        if gap.mean() > LOSS:
            row = [
                name,
                kind,
                f"{sigma:g}",
                f"{np.mean(scores['auto']):.2f}",
                best,
                f"{rivals[best]:.2f}",
                difference(scores[best], scores["auto"]),
            ]
            found.append((gap.mean(), row))
    rows = [row for _, row in sorted(found, key=lambda pair: -pair[0])]
    head = ["graph", "signal", "sigma", "auto", "better", "its dB", "loss of auto"]
    return [
        f"`auto` loses more than {LOSS} dB in {len(rows)} of {len(cells)} cells. In the others it is the best, or level with it.",
        "",
        *table(head, rows),
    ]


def duels(cells) -> list[str]:
    """Of every other method, in how many cells `auto` is ahead, level, or behind."""
    names = list(dict.fromkeys(rival for scores in cells.values() for rival in scores if rival != "auto"))
    rows = []
    for rival in names:
        gaps = np.array([np.mean(scores["auto"]) - np.mean(scores[rival]) for scores in cells.values() if rival in scores])
        ahead, behind = int(np.sum(gaps > LOSS)), int(np.sum(gaps < -LOSS))
        rows.append([rival, len(gaps), ahead, len(gaps) - ahead - behind, behind, f"{np.mean(gaps):+.2f}", f"{np.min(gaps):+.2f}"])
    return table(
        ["against", "cells", "auto ahead", f"level (within {LOSS} dB)", "auto behind", "mean difference", "worst cell"], rows
    )


def kinds(n_draws) -> list[str]:
    """Twelve kinds of signals, four graphs, three noise levels."""
    cells = {}
    for name, make in PLACES.items():
        place = make()
        for kind in KINDS:
            for sigma in SIGMAS:
                cells[name, kind, sigma] = cell_scores(place, kind, sigma, n_draws)
                print(
                    name,
                    kind,
                    sigma,
                    {key: round(float(np.mean(part)), 2) for key, part in cells[name, kind, sigma].items()},
                    flush=True,
                )
    lines = ["## Where `auto` loses", "", *losses(cells), "## Wins", "", *duels(cells)]
    for name, make in PLACES.items():
        place = make()
        methods = list(cells[name, "tent", SIGMAS[0]])
        rows = []
        for kind in KINDS:
            for sigma in SIGMAS:
                means = {method: np.mean(cells[name, kind, sigma][method]) for method in methods}
                best = max(value for method, value in means.items() if not method.endswith("*"))
                shown = [
                    f"**{value:.2f}**" if value >= best - 0.005 and not method.endswith("*") else f"{value:.2f}"
                    for method, value in means.items()
                ]
                rows.append([kind if sigma == SIGMAS[0] else "", f"{sigma:g}", *shown])
        lines += [
            f"## {name}: {make.__doc__}",
            "",
            f"{place.graph.n:,} nodes, {place.graph.n_edges:,} edges; bold: the best that does not know the truth.",
            "",
        ]
        lines += table(["signal", "sigma", *methods], rows)
    draw_kinds(cells, RESULTS / "signals-kinds.png")
    return ["![auto against the best peer in every cell](signals-kinds.png)", "", *lines]


def draw_kinds(cells, path) -> None:
    """Draw the difference of `auto` to the best peer that does not know the truth: a panel per noise level, a row per kind, a marker per graph."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(SIGMAS), figsize=(10.5, 5.6), sharey=True, sharex=True, layout="constrained")
    rows = list(KINDS)[::-1]
    for axis, sigma in zip(axes, SIGMAS, strict=True):
        axis.axvspan(-100, 0, color="#d1495b", alpha=0.07, lw=0)
        axis.axvline(0, color="0.3", lw=1)
        for (name, kind, level), scores in cells.items():
            if level != sigma:
                continue
            others = [np.mean(part) for rival, part in scores.items() if rival not in OURS and not rival.endswith("*")]
            shift = 0.2 * (1.5 - list(PLACES).index(name))
            shape, color = MARKERS[name]
            label = name if kind == rows[0] else None
            axis.plot(
                np.mean(scores["auto"]) - max(others),
                rows.index(kind) + shift,
                shape,
                color=color,
                ms=6,
                mec="white",
                mew=0.6,
                label=label,
            )
        axis.set(
            title=f"sigma {sigma:g}",
            xlabel="auto less the best peer, dB",
            yticks=range(len(rows)),
            yticklabels=rows,
            ylim=(-0.6, len(rows) - 0.4),
        )
        axis.set_xscale("symlog", linthresh=1.0, linscale=1.0)
        axis.set(
            xlim=(-4, 30),
            xticks=[-2, -1, -0.5, 0, 0.5, 1, 2, 5, 10, 20],
            xticklabels=["-2", "-1", "", "0", "", "1", "2", "5", "", "20"],
        )
        axis.minorticks_off()
        axis.grid(axis="x", color="0.9", lw=0.7)
        axis.set_axisbelow(True)
        for row in range(len(rows) - 1):
            axis.axhline(row + 0.5, color="0.92", lw=0.7)
        for side in ("top", "right", "left"):
            axis.spines[side].set_visible(False)
        axis.tick_params(left=False)
    axes[0].text(-3.7, len(rows) - 0.35, "auto loses", color="#a03040", va="bottom", fontsize=9)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(PLACES), frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


# ---- smooth ------------------------------------------------------------------------------------------------------------


def smooth(n_draws) -> list[str]:
    """`auto` against a Gaussian process by maximum likelihood on smooth signals, 54 cells."""
    count = 2 * n_draws
    methods = [name for name in OURS if name != "let"]
    rows, gaps = [], {method: [] for method in methods}
    for name in ("streets", "mesh", "kNN"):
        place = PLACES[name]()
        for kind in SMOOTH_KINDS:
            for sigma in SIGMAS:
                scores, process = scores_of_draws(place, kind, sigma, count, methods, peers.matern_process)
                for method, values in scores.items():
                    gaps[method].append(np.mean(values) - np.mean(process))
                rows.append([name, kind, f"{sigma:g}", f"{np.mean(process):.2f}", f"{np.mean(scores['auto']):.2f}"])
                rows[-1] += [difference(scores[method], process) for method in methods]
                print(*rows[-1], flush=True)
    summary = []
    for method, values in gaps.items():
        gap = np.array(values)
        summary.append(
            [
                method,
                int(np.sum(gap > 0)),
                int(np.sum(gap < -0.2)),
                f"{gap.min():+.2f}",
                f"{np.mean(gap):+.2f}",
                f"{gap.max():+.2f}",
            ]
        )
    head = ["method", "cells ahead", "cells more than 0.2 dB behind", "worst", "mean", "best"]
    lines = [
        f"{len(rows)} cells, {count} draws each. Decibels of noise removed, less those of the Gaussian process:",
        "",
        *table(head, summary),
    ]
    order = np.argsort([gaps["auto"][row] for row in range(len(rows))])
    lines += ["All cells, the largest loss of `auto` first:", ""]
    head = ["graph", "signal", "sigma", "Gaussian process", "auto", *(f"{method} less process" for method in methods)]
    return lines + table(head, [rows[k] for k in order])


# ---- filter ------------------------------------------------------------------------------------------------------------

PROTOTYPE = {  # decibels of the first prototype with eigenvectors at sigma 1, 3 and 6, on draws of its own
    "10 lowest eigenvectors": (23.7, 21.5, 24.7),
    "40 lowest eigenvectors": (17.6, 17.2, 17.8),
    "100 lowest eigenvectors": (13.7, 13.1, 12.5),
    "Gaussian field, smooth": (14.6, 17.1, 20.2),
}


def city_rows(n_draws):
    """Rows of the generated city: methods of the library and the filter with eigenvectors on the same draws."""
    place = PLACES["streets"]()
    for kind, first in PROTOTYPE.items():
        for sigma, figure in zip(SIGMAS, first, strict=True):
            scores, exact = scores_of_draws(place, kind, sigma, 2 * n_draws, OURS, peers.sure_filter)
            cells = [f"{np.mean(values):.2f}" for values in scores.values()]
            gaps = [difference(scores[method], exact) for method in ("auto", "filter") if method in scores]
            print(kind, sigma, cells, np.mean(exact), gaps, flush=True)
            yield [kind if sigma == SIGMAS[0] else "", f"{sigma:g}", *cells, f"{np.mean(exact):.2f}", f"{figure:.1f}", *gaps]


def road_signals(graph, n_draws):
    """(name, degrees of freedom, spectrum as a function of the eigenvalue, signals in rows) on a large road network.

    Low-pass filtered white noise, h = 1 / (1 + (x/tau)^8) with tau at the 10th, 40th, 100th eigenvalue, and at ten times the last (Weyl's law: the 1,000th);
    and a Gaussian field by two sparse solves of white noise.
    """
    values = np.sort(linalg.eigsh(sparse.csc_array(graph.laplacian()), k=101, sigma=-1e-5, return_eigenvectors=False))
    white = np.random.default_rng([SEED, 3]).normal(size=(n_draws, graph.n))
    probe = np.random.default_rng([SEED, 4]).choice([-1.0, 1.0], size=(4, graph.n))
    for tau in (values[10], values[40], values[100], 10 * values[100]):
        degree = steep_filters.degree_for(graph.lambda_upper, tau, 8, 1e-6)
        apply = steep_filters.polynomial(graph, lambda x, tau=tau: steep_filters.butterworth(x, tau, 8), degree)
        freedom = float(np.mean(np.sum(probe * apply(probe), axis=1)))
        yield (
            f"low-pass noise, tau = {tau:.2g}",
            freedom,
            lambda x, tau=tau: steep_filters.butterworth(x, tau, 8) ** 2,
            apply(white),
            2 * degree,
        )
    solve = linalg.splu(sparse.csc_array(graph.laplacian() + 0.02 * sparse.eye_array(graph.n))).solve
    yield "Gaussian field, (0.02 + L)^-4", np.nan, lambda x: (0.02 + x) ** -4.0, solve(solve(white.T)).T, 600


def ideal_filter(graph, spectrum, ratio, degree):
    """The Wiener filter of a signal whose spectrum, over the variance of the noise, is `ratio` times `spectrum`."""
    return steep_filters.polynomial(graph, lambda x: 1 - 1 / (1 + ratio * spectrum(x)), degree)


def road_rows(n_nodes, n_draws):
    """Rows of the road network: decibels and seconds, and the ideal linear filter, which knows the spectrum of the signal."""
    graph = steep_filters.road_network(n_nodes)
    methods = [name for name in OURS if name != "let"]
    for name, freedom, spectrum, signals, degree in road_signals(graph, n_draws):
        clean = SPREAD * signals / signals.std(axis=1, keepdims=True)
        share = np.mean((SPREAD / signals.std(axis=1)) ** 2)
        for sigma in SIGMAS:
            noise = np.random.default_rng([SEED, 5]).normal(size=clean.shape)
            noisy = clean + sigma * noise
            ideal = ideal_filter(graph, spectrum, share / sigma**2, degree)
            scores = {"ideal": [removed(e, t, sigma) for e, t in zip(ideal(noisy), clean, strict=True)]}
            seconds = {}
            for method in methods:
                denoised(graph, noisy[0], sigma, method)  # filters and probes of the graph are made once
                start = time.perf_counter()
                estimates = [denoised(graph, y, sigma, method).signal for y in noisy]
                seconds[method] = (time.perf_counter() - start) / len(noisy)
                scores[method] = [removed(e, t, sigma) for e, t in zip(estimates, clean, strict=True)]
            cells = [f"{np.mean(scores[method]):.2f} ({seconds[method]:.1f} s)" for method in methods]
            dof = "" if np.isnan(freedom) else f"{freedom:.0f}"
            yield [name, dof, f"{sigma:g}", *cells, f"{np.mean(scores['ideal']):.2f}"]
            print(*[name, dof, sigma, *cells, np.mean(scores["ideal"])], flush=True)


def filter(n_draws, n_nodes=100_000) -> list[str]:  # noqa: A001  (the name of the part)
    """One linear filter: the library against the same families with eigenvectors, 2,000 and 100,000 nodes."""
    gaps = [f"{method} less exact" for method in ("auto", "filter") if method in OURS]
    head = ["signal", "sigma", *OURS, "exact", "first prototype", *gaps]
    lines = [
        f"Generated city of 2,000 nodes, {2 * n_draws} draws. `exact`: the best filter of the families Matern-Wiener and Butterworth by exact SURE, with all eigenvectors, on the same "
        "draws; `first prototype`: the figures from which the work started, on other draws of about the same kinds.",
        "",
        *table(head, city_rows(n_draws)),
    ]
    methods = [name for name in OURS if name != "let"]
    count = max(1, n_draws // 4)
    head = ["signal", "trace of the filter", "sigma", *methods, "ideal filter *"]
    lines += [
        f"Generated road network of {n_nodes:,} nodes, its components joined to the largest by single roads, draws: {count}; in brackets the seconds of one signal, the graph's own filters and probes being there already. `ideal filter *`: "
        "the Wiener filter of the true spectrum.",
        "",
        *table(head, road_rows(n_nodes, count)),
    ]
    return lines


# ---- photographs -------------------------------------------------------------------------------------------------------


def photograph(name) -> np.ndarray:
    """A grey photograph of 256 x 256, values 0 to 255: means of 2 x 2 pixels, or the middle of a smaller one."""
    from skimage import color, data

    image = getattr(data, name)()
    image = 255 * color.rgb2gray(image) if image.ndim == 3 else image.astype(float)
    if min(image.shape) >= 512:
        return image[:512, :512].reshape(256, 2, 256, 2).mean(axis=(1, 3))
    top, left = (image.shape[0] - 256) // 2, (image.shape[1] - 256) // 2
    return np.ascontiguousarray(image[top : top + 256, left : left + 256])


def timed(function, *arguments):
    start = time.perf_counter()
    return function(*arguments), time.perf_counter() - start


def psnr(clean, estimate) -> float:
    return float(10 * np.log10(255**2 / np.mean((clean - estimate) ** 2)))


def photographs(n_draws) -> list[str]:
    """Photographs against BM3D, non-local means and translation-invariant wavelets."""
    graphs = {"auto": hg.Graph.from_image((256, 256)), "auto, 4 neighbours": hg.Graph.from_image((256, 256), neighbours=4)}
    count, rows, gaps = max(1, n_draws // 8), [], []
    for name in ("camera", "coins", "astronaut", "moon", "brick", "cat")[: 2 if n_draws < 4 else 6]:
        clean = photograph(name)
        for sigma in (10.0, 25.0, 50.0):
            scores: dict[str, list] = {}
            for draw in range(count):
                noisy = clean + sigma * np.random.default_rng([SEED, 6, draw]).normal(size=clean.shape)
                estimates = {
                    title: timed(lambda graph: denoised(graph, noisy.ravel(), sigma, "auto").signal.reshape(clean.shape), graph)  # noqa: B023
                    for title, graph in graphs.items()
                }
                estimates["BM3D"] = timed(peers.block_matching, noisy, sigma)
                estimates["non-local means *"] = timed(peers.tuned_non_local_means, noisy, clean, sigma)
                estimates["wavelets"] = timed(peers.spun_wavelets, noisy, sigma)
                for title, (estimate, seconds) in estimates.items():
                    scores.setdefault(title, []).append((psnr(clean, estimate), seconds))
            means = {title: np.mean(part, axis=0) for title, part in scores.items()}
            gaps.append(means["auto"][0] - means["BM3D"][0])
            rows.append([name, f"{sigma:g}", *("{:.2f} ({:.1f} s)".format(*pair) for pair in means.values()), f"{gaps[-1]:+.2f}"])
            print(*rows[-1], flush=True)
    return [
        f"PSNR in dB of photographs of scikit-image, grey, 256 x 256, draws: {count}; and seconds. `auto` is the default graph of `Graph.from_image`. The seconds of non-local means are for all 15 "
        "settings that were tried; wavelets: BayesShrink, mean over 64 shifts.",
        "",
        f"`auto` less BM3D: from {min(gaps):+.2f} to {max(gaps):+.2f} dB.",
        "",
        *table(["photograph", "sigma", *means, "auto less BM3D"], rows),
    ]


# ---- degree ------------------------------------------------------------------------------------------------------------


def filter_rows(graph, tau, order, spent):
    """Rows of one graph: method, note, seconds and error; `spent` has the seconds of each method on a graph of a tenth of the size."""
    signal = np.random.default_rng([SEED, 7]).normal(size=graph.n)
    reference = steep_filters.chebyshev(1e-8 if graph.n > 100_000 else 1e-11)(graph, tau, order)[0](signal)
    for name, prepare in steep_filters.METHODS.items():
        if spent.get(name, 0.0) * 20 > steep_filters.PATIENCE:
            spent[name] = np.inf
            yield [f"{graph.n:,}", name, "not tried", "", "", ""]
            continue
        (apply, note), first = timed(prepare, graph, tau, order)
        try:
            estimate, seconds = timed(apply, signal)
        except TimeoutError:
            spent[name] = np.inf
            yield [f"{graph.n:,}", name, "given up", f"{first:.2f}", f"> {steep_filters.PATIENCE:.0f}", ""]
            continue
        spent[name] = first + seconds
        error = np.linalg.norm(estimate - reference) / np.linalg.norm(reference)
        yield [f"{graph.n:,}", name, note() if callable(note) else note, f"{first:.2f}", f"{seconds:.2f}", f"{error:.1e}"]


def degree(n_draws) -> list[str]:
    """What one steep filter near 0 costs from a thousand to a million nodes."""
    rows, spent, order, at_100 = [], {}, 8, 0.0
    for n in (1_000, 10_000, 100_000, 1_000_000)[: 3 if n_draws < 4 else 4]:
        graph = steep_filters.road_network(n)
        at_100 = steep_filters.eigenvalue_near(graph, 100) * graph.n if n <= 100_000 else at_100
        for row in filter_rows(graph, at_100 / graph.n, order, spent):
            print(*row, flush=True)
            rows.append(row)
    return [
        f"The filter 1 / (1 + (x/tau)^{order}) of white noise on generated road networks, with tau at the 100th eigenvalue (at a million nodes: a tenth of that at 100,000). "
        f"`prepare` does not depend on the signal. A method that took more than {steep_filters.PATIENCE / 20:.0f} s on the graph before is not tried on one ten times as large. Errors are relative to a "
        "polynomial of error 1e-11 (1e-8 at a million nodes).",
        "",
        *table(["nodes", "method", "", "s, prepare", "s, one signal", "relative error"], rows),
    ]


# ---- sigma and risk ----------------------------------------------------------------------------------------------------


def sigma(n_draws) -> list[str]:
    """The estimated noise level over the true one."""
    levels, lines, ratios = (0.0, 5.0, 10.0), [], {}
    for name, make in PLACES.items():
        place, rows = make(), []
        for kind in KINDS:
            cells = []
            for level in levels:
                size, values, stated = SPREAD * 10 ** (-level / 20), [], []
                for draw in range(n_draws):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        estimate = hg.estimate_sigma(place.graph, clean_signal(place, kind, draw) + place.noise(size, draw))
                    values.append(float(estimate) / size)
                    stated.append(float(getattr(estimate, "se", np.nan)) / size)
                ratios.setdefault((name, kind, level), np.mean(values))
                said = f", se {np.mean(stated):.3f}" if np.isfinite(stated).all() else ""
                cells.append(f"{np.mean(values):.3f} (sd {np.std(values, ddof=1):.3f}{said})")
            rows.append([kind, *cells])
            print(name, *rows[-1], flush=True)
        lines += [f"**{name}**", "", *table(["signal", *(f"input SNR {level:g} dB" for level in levels)], rows)]
    off = {key: value for key, value in ratios.items() if abs(value - 1) > 0.05}
    worst = sorted(off, key=lambda key: -abs(off[key] - 1))[:12]
    shown = [[place, kind, f"{level:g} dB", f"{off[place, kind, level]:.3f}"] for place, kind, level in worst]
    head = [
        f"Mean of estimate / truth over {n_draws} draws, the standard deviation of the estimates, and the mean standard error that they state where they do."
    ]
    head += [
        "",
        f"{len(off)} of {len(ratios)} cells are off by more than 5 %. The worst:",
        "",
        *table(["graph", "signal", "input SNR", "ratio"], shown),
    ]
    return head + lines


def risk(n_draws) -> list[str]:
    """The estimated risk against the true squared error."""
    cases = [
        (name, kind)
        for name in ("streets", "mesh", "grid")
        for kind in ("40 lowest eigenvectors", "Gaussian field, smooth", "tent", "pieces", "rare patch", "hot spots")
    ]
    methods, rows, count = [name for name in OURS if name in ("auto", "filter")], [], 25 * n_draws
    places = {name: PLACES[name]() for name in ("streets", "mesh", "grid")}
    worst = dict.fromkeys(methods, 0.0)
    for case, (name, kind) in enumerate(cases):
        place, clean = places[name], clean_signal(places[name], kind, 0)
        for size in SIGMAS:
            scores = {method: [] for method in methods}
            for draw in range(count):  # noise of its own for each signal: means of different rows are independent
                y = clean + place.noise(size, 1000 * (case + 1) + draw)
                for method in methods:
                    result = denoised(place.graph, y, size, method)
                    scores[method].append((result.risk - np.sum((result.signal - clean) ** 2)) / result.risk_se)
            for method in methods:
                worst[method] = max(worst[method], np.mean(scores[method]), key=abs)
            rows.append(
                [name, kind, f"{size:g}", *(f"{np.mean(part):+.2f} ± {np.std(part, ddof=1):.2f}" for part in scores.values())]
            )
            print(*rows[-1], flush=True)
    largest = ", ".join(f"{method} {value:+.2f}" for method, value in worst.items())
    note = f"(risk - true squared error) / risk_se: mean ± standard deviation over {count} draws of the noise, one signal of each kind. The largest mean in size: {largest}."
    return [note, "", *table(["graph", "signal", "sigma", *methods], rows)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to measure; all by default")
    parser.add_argument(
        "--draws", type=int, default=8, help="draws of signal and noise; twice as many for smooth and filter, 25 times for risk"
    )
    wish = parser.parse_args()
    for name in wish.parts or PARTS:
        start = time.perf_counter()
        lines = globals()[name](wish.draws)
        head = [
            f"# Who wins: {globals()[name].__doc__}",
            "",
            f"{datetime.date.today()}, {machine()}, `benchmarks/signals.py {name} --draws {wish.draws}`, {time.perf_counter() - start:.0f} s. Generated data"
            + (" and photographs of scikit-image." if name == "photographs" else "."),
            "A star marks a method that is tuned on the truth; ± is one standard error, of paired differences where it is a difference.",
            "",
        ]
        (RESULTS / f"signals-{name}.md").write_text("\n".join(head + lines), encoding="utf-8")


if __name__ == "__main__":
    main()
