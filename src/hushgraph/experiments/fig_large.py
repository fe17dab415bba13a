"""SNR on a large road network: the paper's f_{0.001, 4} at input SNRs from -12 to 3 dB, five noise draws each."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from hushgraph.datasets import bernoulli_signal
from hushgraph.experiments.output import figure, is_generated, markdown, write_files
from hushgraph.experiments.snr_table import ESTIMATES, PROBES, dfs, snr_of
from hushgraph.experiments.stage import Stage
from hushgraph.graphs import Noisy

NAME, TITLE = "fig-large", "Denoising on a large graph"
LEVELS = (-12.0, -9.0, -6.0, -3.0, 0.0, 3.0)
ORDERS, REALIZATIONS = 4, 5
_COLOUR = {
    "SGWT_SURE_MC": "#1f6f8b",
    "sgwt_deep": "#3d5a45",
    "DFS_MSE": "#d1495b",
    "DFS_SURE": "#edae49",
    "DFS_MEAN_SURE": "#7b5ea7",
}
_LABEL = {
    "DFS_MSE": "DFS fused lasso, oracle",
    "DFS_SURE": "DFS fused lasso, SURE",
    "DFS_MEAN_SURE": f"mean of {ORDERS} DFS orders, SURE",
    "SGWT_SURE_MC": "the paper's method",
    "sgwt_deep": "sgwt_deep",
    "let": "let",
    "auto": "auto",
}


def run(stage: Stage) -> list[dict]:
    place = stage.large_roads
    p = 0.05 if stage.smoke else 0.001
    truth = bernoulli_signal(place.graph, p=p, k=4, seed=0)
    place = replace(place, signals={"f": truth}, main="f")
    more = [
        method for method in stage.methods if method not in ("sgwt_exact", "counts", "combination", "auto_graph_only")
    ]  # not for roads
    methods = dict.fromkeys(("SGWT_SURE_MC", "sgwt_deep", "DFS_MSE", "DFS_SURE", "DFS_MEAN_SURE", *more))
    rows = []
    for level in LEVELS[::3] if stage.smoke else LEVELS:
        sigma = float(np.sqrt(np.mean(truth**2))) * 10 ** (-level / 20)
        for seed in range(stage.repetitions(REALIZATIONS)):
            values = truth + np.random.default_rng(seed).normal(0, sigma, len(truth))
            noisy = Noisy(values, sigma=sigma, kind="simulation", graph_hash=place.graph.hash)
            setting = {"p": p, "snr_in": level, "sigma": sigma, "realization": seed}
            for method in methods:
                settings = {**setting, "method": method, "graph": place.graph.hash, "probes": PROBES, "orders": ORDERS}
                compute = partial(snr_of, stage, place, noisy, method, {**ESTIMATES, "DFS_MEAN_SURE": dfs("sure", ORDERS)})
                value = stage.cells.value(f"{NAME}-{level:g}-{method}-{seed}", settings, compute)
                rows.append({**setting, "method": method, "snr": value, **stage.about(place)})
    return rows


def render(rows: list[dict], folder: Path) -> list[Path]:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    levels = list(dict.fromkeys(row["snr_in"] for row in rows))
    values = {(m, x): [row["snr"] for row in rows if (row["method"], row["snr_in"]) == (m, x)] for m in methods for x in levels}
    with figure(folder / f"{NAME}.png") as ax:
        for method in methods:
            mean = [np.mean(values[method, x]) for x in levels]
            spread = [np.std(values[method, x], ddof=1) for x in levels]
            oracle = {"ls": "--", "zorder": 3} if method == "DFS_MSE" else {}
            look = {"marker": "o", "ms": 4, "capsize": 2, "color": _COLOUR.get(method), **oracle}
            ax.errorbar(levels, mean, yerr=spread, label=_LABEL.get(method, method), **look)
        ax.plot(levels, levels, color="#b8c0c8", lw=1, ls="--", label="noisy")
        ax.set(xlabel="input SNR (dB)", ylabel="output SNR (dB)", title=f"$f_{{{rows[0]['p']:g}, 4}}$ on {rows[0]['data']}")
        ax.legend(loc="lower right", fontsize=9)
    head = ["SNR in dB", *(f"in: {x:g}" for x in levels)]
    lines = [
        [method, *(f"{np.mean(values[method, x]):.2f} ± {np.std(values[method, x], ddof=1):.2f}" for x in levels)]
        for method in methods
    ]
    paper = "" if is_generated(rows) else (
        " The paper uses roadNet-PA and shows a figure without numbers, with its method above the oracle DFS fused lasso everywhere; "
        + _compared(values, levels)
    )  # fmt: skip
    text = f"## {TITLE}\n\nData: f = W^4 x with x Bernoulli({rows[0]['p']:g}), generated on {rows[0]['data']}.{paper}\n\n{markdown(head, lines)}"
    return write_files(folder, NAME, rows, text, title=TITLE)


def _compared(values: dict, levels: list[float]) -> str:
    """Return a sentence that says where the paper's method is above the DFS fused lasso."""
    above = [x for x in levels if np.mean(values["SGWT_SURE_MC", x]) > np.mean(values["DFS_MSE", x])]
    if len(above) == len(levels):
        return "so it is here."
    return "here it is so " + (f"at {', '.join(f'{x:g}' for x in above)} dB only." if above else "nowhere.")
