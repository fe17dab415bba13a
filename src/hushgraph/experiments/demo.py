"""The demo: a generated city, taxi pickups, noise, and the map that is left after denoising. Offline, under a minute."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hushgraph.datasets import city
from hushgraph.denoise import Denoised, Method, denoise
from hushgraph.graph import Graph
from hushgraph.metrics import snr
from hushgraph.plotting import plot_maps
from hushgraph.signals import hotspot_counts

SIGMA = 4.22  # the noise of a release with epsilon = 1, delta = 1e-6 and one event per person (analytic Gaussian mechanism)
METHODS: tuple[Method, ...] = ("sgwt_sure", "sgwt_deep")


@dataclass(frozen=True, eq=False)
class Row:
    """One method on the demo's city."""

    method: str
    snr_in: float
    snr_out: float
    true_error: float
    result: Denoised = field(repr=False)


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demo computed."""

    graph: Graph
    clean: np.ndarray = field(repr=False)
    noisy: np.ndarray = field(repr=False)
    rows: list[Row]


def run(*, n_nodes: int = 4600, sigma: float = SIGMA, seed: int = 0) -> Demo:
    """Generate the city and its pickups, add noise, denoise with each method."""
    graph = city(n_nodes, seed=seed)
    clean = hotspot_counts(graph, total=int(2.9 * graph.n), seed=seed).astype(float)
    noisy = clean + np.random.default_rng(seed + 1).normal(0, sigma, graph.n)
    rows = []
    for method in METHODS:
        denoise(graph, noisy, sigma=sigma, method=method)  # the first call compiles; the times shown are those of the second
        graph.memo.clear()
        result = denoise(graph, noisy, sigma=sigma, method=method)
        error = float(np.sum((result.signal - clean) ** 2))
        rows.append(Row(method, float(snr(clean, noisy)), float(snr(clean, result.signal)), error, result))
    return Demo(graph, clean, noisy, rows)


def render(demo: Demo, folder: Path) -> Path:
    """Draw clean, noisy and denoised maps side by side; returns the path of the picture."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "city.png"
    best = demo.rows[-1]
    maps = {
        "Pickups (never published)": demo.clean,
        f"With noise: {best.snr_in:.1f} dB": demo.noisy,
        f"Denoised from the noisy map alone: {best.snr_out:.1f} dB": best.result.signal,
    }
    plot_maps(demo.graph, maps, suptitle=f"A generated city of {demo.graph.n:,} junctions", path=path)
    return path
