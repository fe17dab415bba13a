"""What each method gains, on generated data and on real taxi pickups: SNR in dB, mean and standard deviation over draws.

    python benchmarks/quality.py                          a generated city
    HUSHGRAPH_DATA=... python benchmarks/quality.py       also Manhattan's streets with the pickups f_matched

All methods see the same noise, drawn with numpy.random.default_rng(0), (1), ... The oracle thresholds the paper's frame at the
minimum of the true error of the coefficients; it needs the truth and is no method.
"""

from __future__ import annotations

import argparse
import datetime
import os
from pathlib import Path

import numpy as np

import hushgraph as hg
from hushgraph.signals import hotspot_counts

SIGMAS = (26.49, 12.99, 8.06, 4.22)
METHODS = ("sgwt_sure", "sgwt_scaled", "sgwt_deep")


def maps():
    """(name, graph, signal) of what there is."""
    graph = hg.datasets.city(4600, seed=0)
    yield "generated city, generated pickups", graph, hotspot_counts(graph, total=int(2.9 * graph.n), seed=0).astype(float)
    folder = Path(os.environ.get("HUSHGRAPH_DATA", "")) if os.environ.get("HUSHGRAPH_DATA") else None
    if folder and (folder / "manhattan_osm.npz").exists():
        with np.load(folder / "manhattan_osm.npz") as data, np.load(folder / "nyc_signal.npz") as signals:
            yield (
                "Manhattan (OSM), pickups of 2013-11-18 16:00-16:51",
                hg.Graph.from_edges(data["edges"], n=int(data["n"])),
                signals["f_matched"],
            )


def oracle(frame, clean, noisy):
    """The paper's oracle: thresholds of its frame, tuned on the truth."""
    F = hg.analyze(frame, noisy)
    t = hg.oracle_thresholds(F, hg.analyze(frame, clean))
    return hg.synthesize(frame, hg.james_stein(F, t[:, None])[0])


def measure(graph, clean, sigma, draws, methods):
    """SNRs and z-scores of the risk by row name."""
    frame, rows, scores = hg.chebyshev_frame(graph), {}, {}
    for draw in range(draws):
        noisy = clean + np.random.default_rng(draw).normal(0, sigma, graph.n)
        rows.setdefault("noisy", []).append(hg.snr(clean, noisy))
        rows.setdefault("oracle", []).append(hg.snr(clean, oracle(frame, clean, noisy)))
        for method in methods:
            result = hg.denoise(graph, noisy, sigma=sigma, method=method)
            rows.setdefault(method, []).append(hg.snr(clean, result.signal))
            scores.setdefault(method, []).append((result.risk - np.sum((result.signal - clean) ** 2)) / result.risk_se)
    return rows, scores


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--exact", action="store_true", help="also sgwt_exact, which needs eigenvectors and minutes")
    arguments = parser.parse_args()
    methods = (*METHODS, "sgwt_exact") if arguments.exact else METHODS
    lines = [f"{datetime.date.today().isoformat()}, {arguments.draws} draws, SNR in dB.", ""]
    for name, graph, clean in maps():
        results = [measure(graph, clean, sigma, arguments.draws, methods) for sigma in SIGMAS]
        lines += [
            f"**{name}** ({graph.n:,} nodes)",
            "",
            "| sigma | " + " | ".join(map(str, SIGMAS)) + " |",
            "|---|" + "---|" * len(SIGMAS),
        ]
        lines += [
            f"| {row} | " + " | ".join(f"{np.mean(snrs[row]):.2f} ± {np.std(snrs[row], ddof=1):.2f}" for snrs, _ in results) + " |"
            for row in results[0][0]
        ]
        lines += [
            f"| (risk - true) / risk_se, {row} | "
            + " | ".join(f"{np.mean(z[row]):.2f} ± {np.std(z[row], ddof=1):.2f}" for _, z in results)
            + " |"
            for row in ("sgwt_sure", "sgwt_deep")
        ]
        lines.append("")
    print("\n".join(lines))
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "quality.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
