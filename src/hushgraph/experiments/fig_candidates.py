"""How a combination is made: elementary estimates of one noisy map, their weights, and risks against true errors. Not in the paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hushgraph.datasets import city, hotspot_counts
from hushgraph.estimators import AUTO_SETS, Filters, Observation, combine, denoise, make_candidates, snr
from hushgraph.experiments import output
from hushgraph.experiments.stage import Stage
from hushgraph.plotting import plot_graph_signal
from hushgraph.wavelets import Noise

NAME, TITLE = "fig-candidates", "Beyond the paper: how a combination comes about"
NODES, SIGMA, TOTAL = 1500, 6.0, 6000
PANELS = {
    "heat 6": "smooth: heat",
    "gated 2.5": "busy details: gated wavelets",
    "spikes 3, smoother 10": "what stands out: spikes",
    "tv 0.7": "plateaus: total variation",
}


def run(stage: Stage) -> list[dict]:
    """Return rows of three kinds: values at nodes, sets of candidates with their risks, and the largest weights."""
    graph = city(NODES)
    truth = hotspot_counts(graph, total=TOTAL).astype(float)
    noisy = truth + np.random.default_rng(0).normal(0, SIGMA, graph.n)
    about = {"data": "a generated city", "source": f"hushgraph.datasets.city({NODES})", "attribution": "none"}
    noise = Noise.of(SIGMA)
    observation = Observation(Filters.of(graph, noise), noisy, noise)
    columns = make_candidates(observation, ("heat", "gated", "spikes", "tv"))
    values = dict(zip(columns.names, columns.values(), strict=True))
    shown = {name: sum(part for full_name, part in values.items() if full_name.startswith(name)) for name in PANELS}
    shown |= {"truth": truth, "noisy": noisy, "combination": denoise(graph, noisy, sigma=SIGMA).signal}
    shown["auto"] = denoise(graph, noisy, sigma=SIGMA, nonnegative=True).signal
    rows = [{"kind": "node", "node": i, **{name: float(part[i]) for name, part in shown.items()}, **about} for i in range(graph.n)]
    combination = combine(observation, AUTO_SETS)
    for name, weights, sure, optimism, share in zip(
        AUTO_SETS, combination.fits.weights, combination.fits.sure, combination.fits.optimism, combination.shares, strict=True
    ):
        error = float(np.sum((combination.columns.combined(weights) - truth) ** 2))
        rows.append({"kind": "set", "set": name, "risk": float(sure + optimism), "error": error, "share": float(share), **about})
    largest = sorted(zip(combination.weights, combination.columns.names, strict=True), reverse=True)[:12]
    rows += [{"kind": "weight", "candidate": name, "weight": float(weight), **about} for weight, name in largest]
    return rows


def render(rows: list[dict], folder: Path) -> list[Path]:
    kinds = {kind: [row for row in rows if row["kind"] == kind] for kind in ("node", "set", "weight")}
    _draw_maps(kinds["node"], folder / f"{NAME}.png")
    _draw_risks(kinds["set"], kinds["weight"], folder / f"{NAME}-risks.png")
    lines = [[row["set"], f"{row['risk']:,.0f}", f"{row['error']:,.0f}", f"{row['share']:.2f}"] for row in kinds["set"]]
    table = output.markdown(["set of candidates", "estimated risk", "true squared error", "share"], lines)
    text = f"""## {TITLE}

A generated city of {len(kinds["node"]):,} nodes with generated counts, noise of sigma {SIGMA:g}. Above: elementary estimates, and what
`auto` makes of them. Below: each set of candidates is combined at the least SURE; the sets are averaged by their risks.

{table}

![Risks and weights]({NAME}-risks.png)
"""
    files = output.write_files(folder, NAME, rows, text, title=TITLE)
    return [*files, folder / f"{NAME}-risks.png", folder / f"{NAME}-risks.pdf"]


def _draw_maps(nodes: list[dict], path: Path) -> None:
    graph = city(NODES)
    panels = {"truth": "truth", "noisy": "noisy", **PANELS, "combination": "auto: combination", "auto": "auto, nonnegative"}
    values = {name: np.array([row[name] for row in nodes]) for name in panels}
    top = float(np.quantile(values["truth"], 0.995))
    with output.figure(path, size=(13, 7.4), panels=(2, 4), dpi=90) as axes:  # eight maps of thin lines: large files
        for ax, (name, title) in zip(np.ravel(axes), panels.items(), strict=True):
            plot_graph_signal(graph, values[name], ax=ax, vmin=-top, vmax=top, colorbar=False)
            quality = "" if name == "truth" else f": {snr(values['truth'], values[name]):.1f} dB"
            ax.set_title(title + quality, fontsize=10)


def _draw_risks(sets: list[dict], weights: list[dict], path: Path) -> None:
    noise = SIGMA**2 * city(NODES).n
    sets = [row for row in sets if row["risk"] < noise]  # the others are worse than the noisy values, such as a constant
    with output.figure(path, size=(11, 4.2), panels=(1, 2), width_ratios=(1, 1.2)) as (left, right):
        places = np.arange(len(sets))
        left.barh(places + 0.2, [row["error"] / noise for row in sets], height=0.38, color=output.COLOURS[2], label="true")
        left.barh(
            places - 0.2,
            [row["risk"] / noise for row in sets],
            height=0.38,
            color=output.COLOURS[0],
            label="estimated, without the truth",
        )
        left.set_yticks(places, [row["set"] for row in sets])
        left.invert_yaxis()
        left.set(title="Each set of candidates, combined", xlabel="squared error, as a share of the noise's")
        left.legend(fontsize=8.5, loc="lower right")
        names = [row["candidate"] for row in weights]
        right.barh(np.arange(len(names)), [row["weight"] for row in weights], color=output.COLOURS[4], height=0.6)
        right.set_yticks(np.arange(len(names)), names)
        right.invert_yaxis()
        right.set(title="Largest weights of the average", xlabel="weight")
