"""Denoising as the tutorials of PyGSP and gasper show it, and the same with hushgraph: decibels and seconds for docs/coming_from.md.

    make bench-coming-from        needs PyGSP; writes benchmarks/results/coming_from.md

PyGSP: the signal of its introductory tutorial on its graph "Logo", and a smooth signal, with 20 draws of its uniform noise. gasper: the results of R gasper 1.1.6 on a generated
graph of 300 nodes, from tests/golden/independent.npz; R itself is not run, so gasper has no seconds. Signal-to-noise ratios are in decibels, means over the draws;
seconds are medians. The first draw of each method is timed with a new graph: the decomposition or the spectrum is part of it.
"""

from __future__ import annotations

import datetime
import time
import warnings
from pathlib import Path

import numpy as np
import pygsp
from pygsp import filters, graphs
from scipy import stats

import hushgraph as hg
from hushgraph.experiments.stage import machine

HERE = Path(__file__).parent
DRAWS = 20
WIDTH = 0.5  # the tutorial's noise is uniform between -0.5 and 0.5
SIGMA = 2 * WIDTH / np.sqrt(12)
TAUS = np.geomspace(0.1, 100, 61)


def logo(is_smooth=False):
    """The graph of the tutorial, with nothing computed yet, and its signal, a value for each letter; or waves of the same variance.

    PyGSP 0.6 numbers the nodes of a letter from 0; the tutorial was written for numbers from 1 and subtracts 1.
    """
    G = graphs.Logo()
    signal = np.zeros(G.N)
    signal[G.info["idx_g"]] = -1
    signal[G.info["idx_p"]] = 1
    if is_smooth:
        signal = signal.std() * hg.smooth_signal(G)
    return G, signal


def low_pass(G, noisy, tau=1.0):
    """The filter of the tutorial, with the exact Fourier basis as there; the basis is computed once for a graph."""
    G.compute_fourier_basis()
    return filters.Filter(G, lambda x: 1.0 / (1.0 + tau * x)).filter(noisy)


def low_pass_chebyshev(G, noisy):
    """The same without eigenvectors."""
    G.estimate_lmax()
    return filters.Filter(G, lambda x: 1.0 / (1.0 + x)).filter(noisy, method="chebyshev")


def low_pass_tuned(G, noisy, clean):
    """The same with the best of 61 values of tau, which only the truth can tell."""
    return max((low_pass(G, noisy, tau) for tau in TAUS), key=lambda estimate: hg.snr(clean, estimate))


def ours(sigma, method="auto"):
    """A call of hushgraph; a graph of PyGSP becomes a `Graph` once."""

    def denoise(G, noisy):
        if not hasattr(G, "as_hushgraph"):
            G.as_hushgraph = hg.Graph.from_pygsp(G)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # sigma=None says that sigma was estimated
            return hg.denoise(G.as_hushgraph, noisy, sigma=sigma, method=method).signal

    return denoise


def measured(method, needs_truth=False, is_smooth=False):
    """Return the SNR of every draw, the seconds of the first call on a new graph, and the median of the others."""
    G, clean = logo(is_smooth)
    ratios, seconds = [], []
    for draw in range(DRAWS):
        noisy = clean + np.random.RandomState(42 + draw).uniform(-WIDTH, WIDTH, size=G.N)
        start = time.perf_counter()
        estimate = method(G, noisy, clean) if needs_truth else method(G, noisy)
        seconds.append(time.perf_counter() - start)
        ratios.append(hg.snr(clean, estimate))
    return np.array(ratios), seconds[0], float(np.median(seconds[1:]))


def pygsp_rows():
    """The table of the tutorial of PyGSP."""
    measured(ours(SIGMA))  # loads what is loaded once in a process
    measured(low_pass)
    methods = {
        "noisy": (lambda G, noisy: noisy, False),
        "PyGSP, `1 / (1 + x)`, exact (the tutorial)": (low_pass, False),
        "PyGSP, the same by Chebyshev polynomials": (low_pass_chebyshev, False),
        "PyGSP, `1 / (1 + tau x)`, tau tuned on the truth *": (low_pass_tuned, True),
        "hushgraph, `denoise(G, y, sigma=sigma)`": (ours(SIGMA), False),
        "hushgraph, `denoise(G, y)`, sigma estimated": (ours(None), False),
        '`denoise(G, y, sigma=sigma, method="filter")`': (ours(SIGMA, "filter"), False),
        "`graph_tv(G, y, sigma=sigma)`": (lambda G, noisy: hg.graph_tv(G, noisy, sigma=SIGMA).signal, False),
    }
    rows = []
    for name, (method, needs_truth) in methods.items():
        ratios, first, later = measured(method, needs_truth)
        smooth, *_ = measured(method, needs_truth, is_smooth=True)
        times = ["", ""] if name == "noisy" else [f"{first:.3f}", f"{later:.3f}"]
        rows.append([name, *(f"{part.mean():.2f} ± {stats.sem(part):.2f}" for part in (ratios, smooth)), *times])
    return rows


def gasper_rows():
    """The table of gasper: what R gasper returned, and hushgraph on the same noisy signal."""
    with np.load(HERE.parent / "tests" / "golden" / "independent.npz") as golden:
        edges, clean, noisy = golden["knn300_W"], golden["knn300_f"], golden["knn300_y"]
        hats, sigma, places = golden["knn300_hat"], float(golden["knn300_scalars"][4]), golden["knn300_xy"]
    ends, upper = edges[:, :2].astype(int), edges[:, 0] < edges[:, 1]
    graph = hg.Graph.from_edges(ends[upper], weights=edges[upper, 2], n=len(clean), coords=places.reshape(-1, 2))
    rows = [["noisy", f"{hg.snr(clean, noisy):.2f}", ""]]
    kinds = ("level, soft, uniform", "level, soft, scaled", "level, James-Stein, uniform", "level, James-Stein, scaled")
    kinds += ("global, James-Stein, uniform", "global, James-Stein, scaled")
    rows += [[f"gasper: {kind}", f"{hg.snr(clean, hat):.2f}", ""] for kind, hat in zip(kinds, hats.T, strict=True)]
    for method in ("sgwt_exact", "sgwt_sure", "sgwt_scaled", "auto"):
        hg.denoise(graph, noisy, sigma=sigma, method=method)
        start = time.perf_counter()
        result = hg.denoise(graph, noisy, sigma=sigma, method=method)
        seconds = time.perf_counter() - start
        rows.append([f'hushgraph: `method="{method}"`', f"{hg.snr(clean, result.signal):.2f}", f"{seconds:.3f}"])
    return rows


def table(head, rows):
    """Lines of a Markdown table."""
    return ["| " + " | ".join(map(str, line)) + " |" for line in (head, ["---"] * len(head), *rows)] + [""]


def main():
    G, _ = logo()
    lines = [
        "# Coming from PyGSP or gasper: denoising side by side",
        "",
        f"{datetime.date.today()}, {machine()}, PyGSP {pygsp.__version__}, `benchmarks/coming_from.py`.",
        "",
        f"## The introductory tutorial of PyGSP: graph Logo, {G.N:,} nodes, uniform noise of standard deviation {SIGMA:.3f}, {DRAWS} draws",
        "",
        *table(["", "letters, dB", "waves, dB", "seconds, first call", "seconds, later calls"], pygsp_rows()),
        "Letters: the signal of the tutorial, which has three values. Waves: a smooth signal of the same variance, `smooth_signal`. Seconds are those of the letters. "
        "A star marks what is tuned on the truth. ± is one standard error.",
        "",
        "## R gasper 1.1.6: generated graph of 300 nodes, Gaussian noise of standard deviation 0.5, one draw",
        "",
        *table(["", "SNR, dB", "seconds"], gasper_rows()),
        "gasper's results are those of tests/golden/independent.npz; R was not run here, so they have no seconds.",
        "",
    ]
    text = "\n".join(lines)
    print(text)
    (HERE / "results" / "coming_from.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
