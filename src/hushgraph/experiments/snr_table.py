"""Tables of SNR after a private release: methods against privacy budgets, mean and standard deviation over realizations.

All tables of the paper use it: the same noise for every method, one cell per realization and method. Oracles are tuned on the truth:
they show what a family of estimators could reach, and are not methods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import cast, get_args

import numpy as np
from scipy import stats

from hushgraph.datasets import Map
from hushgraph.estimators import MethodName, denoise, dfs_fused_lasso, graph_tv, snr
from hushgraph.experiments.output import figure, is_generated, markdown, write_files
from hushgraph.experiments.stage import Stage
from hushgraph.graphs import Noisy
from hushgraph.plotting import COLOURS, QUIET
from hushgraph.privacy import Mechanism, mechanism_sigma, simulate
from hushgraph.wavelets import analyze, james_stein, oracle_thresholds, synthesize

DELTA, PROBES, ORDERS = 1e-6, 10, 16
REALIZATIONS = 10
Estimate = Callable[[Stage, Map, Noisy], np.ndarray]


@dataclass(frozen=True)
class Column:
    """One privacy budget under one mechanism."""

    mechanism: Mechanism
    epsilon: float


@dataclass(frozen=True)
class Table:
    """A table of the paper: its columns, sensitivity, and the paper's own numbers by method (None: not in the paper)."""

    name: str
    title: str
    columns: tuple[Column, ...]
    sensitivity: int
    paper: dict[str, tuple[float, ...]] = field(default_factory=dict)


def sgwt_oracle(stage: Stage, place: Map, noisy: Noisy) -> np.ndarray:
    """Return the estimate with the exact transform and the thresholds that minimize the true error of the coefficients, per scale."""
    frame = stage.exact_frame(place.graph)
    F = analyze(frame, noisy.values)
    t = oracle_thresholds(F, analyze(frame, place.signal))
    return synthesize(frame, james_stein(F, t[:, None])[0])


def sgwt_sure(stage: Stage, place: Map, noisy: Noisy) -> np.ndarray:
    """Return the estimate of the paper's method with the exact transform."""
    stage.exact_frame(place.graph)  # its eigenpairs come from a cell, if there is one
    return denoise(place.graph, noisy, method="sgwt_exact").signal


def sgwt_sure_mc(stage: Stage, place: Map, noisy: Noisy) -> np.ndarray:
    """Return the estimate of the paper's method with polynomials and Monte-Carlo weights."""
    return denoise(place.graph, noisy, method="sgwt_sure", n_probes=PROBES).signal


def dfs(penalty: str, orders: int) -> Estimate:
    """Return the estimator that is the mean of DFS fused lassos over several orders."""

    def estimate(stage: Stage, place: Map, noisy: Noisy) -> np.ndarray:
        truth = place.signal if penalty == "oracle" else None
        return dfs_fused_lasso(place.graph, noisy, penalty=penalty, truth=truth, orders=orders).signal

    return estimate


def tv_sure(stage: Stage, place: Map, noisy: Noisy) -> np.ndarray:
    """Return the estimate by total variation on the graph, with the penalty of least SURE."""
    return graph_tv(place.graph, noisy, penalty="sure").signal


ESTIMATES: dict[str, Estimate] = {
    "SGWT_MSE": sgwt_oracle,
    "SGWT_SURE": sgwt_sure,
    "SGWT_SURE_MC": sgwt_sure_mc,
    "DFS_MSE": dfs("oracle", 1),
    "DFS_SURE": dfs("sure", 1),
    "DFS_MEAN_MSE": dfs("oracle", ORDERS),
    "DFS_MEAN_SURE": dfs("sure", ORDERS),
    "TV_SURE": tv_sure,
}
ORACLES = ("SGWT_MSE", "DFS_MSE", "DFS_MEAN_MSE")


def let(stage: Stage, place: Map, noisy: Noisy) -> np.ndarray:
    """Return the estimate of `let` for counts."""
    return denoise(place.graph, noisy, method="let", nonnegative=True).signal


def combination(stage: Stage, place: Map, noisy: Noisy) -> np.ndarray:
    """Return the estimate of `auto` for a signal that might be negative, clipped at 0: its linear combinations alone."""
    return np.maximum(denoise(place.graph, noisy).signal, 0.0)


def auto(stage: Stage, place: Map, noisy: Noisy) -> np.ndarray:
    """Return the estimate of `auto` for counts, from graph and coordinates."""
    return denoise(place.graph, noisy, nonnegative=True).signal


def auto_graph_only(stage: Stage, place: Map, noisy: Noisy) -> np.ndarray:
    """Return the estimate of `auto` for counts on the graph without its coordinates."""
    bare_graph = place.graph.cached("without coordinates", lambda: replace(place.graph, coords=None, crs=None))
    return denoise(bare_graph, noisy, nonnegative=True).signal


OURS: dict[str, Estimate] = {"let": let, "combination": combination, "auto": auto, "auto_graph_only": auto_graph_only}
EVERY = (  # methods that "all" adds to those of the tables
    *OURS,
    *(method for method in get_args(MethodName) if method not in (*OURS, "sgwt_exact", "sgwt_sure", "sgwt_deep")),
)


def run_table(stage: Stage, table: Table, place: Map) -> list[dict]:
    """Return one row per method, column and realization."""
    rows = []
    methods = list(dict.fromkeys((*ESTIMATES, "sgwt_deep", *stage.methods)))
    data = {"graph": place.graph.hash, "signal": stage.digest(place.signal)}
    for column in table.columns:
        sigma = mechanism_sigma(
            column.mechanism, epsilon=column.epsilon, delta=DELTA, sensitivity_squared=table.sensitivity**2, paper_compat=True,
        )  # fmt: skip
        for seed in range(stage.repetitions(REALIZATIONS)):
            noisy = simulate(
                place.graph, place.signal, epsilon=column.epsilon, delta=DELTA, sensitivity=table.sensitivity, seed=seed,
                mechanism=column.mechanism, paper_compat=True,
            )  # fmt: skip
            setting = {"mechanism": column.mechanism, "epsilon": column.epsilon, "sigma": sigma, "realization": seed}
            rows.append({**setting, "method": "SNR_in", "snr": float(snr(place.signal, noisy.values)), **stage.about(place)})
            for method in methods:
                settings = {**setting, "method": method, **data, "probes": PROBES, "orders": ORDERS}
                name = f"{table.name}-{column.mechanism}-{column.epsilon:g}-{method}-{seed}"
                value = stage.cells.value(name, settings, partial(snr_of, stage, place, noisy, method, {**ESTIMATES, **OURS}))
                rows.append({**setting, "method": method, "snr": value, **stage.about(place)})
    return rows


def snr_of(stage: Stage, place: Map, noisy: Noisy, method: str, estimates: dict[str, Estimate]) -> float:
    """Return the SNR of one of the estimates, or of a method of `denoise`."""
    name = cast(MethodName, method)
    estimate = estimates[method](stage, place, noisy) if method in estimates else denoise(place.graph, noisy, method=name).signal
    return float(snr(place.signal, estimate))


def render_table(rows: list[dict], table: Table, remark: str, folder: Path) -> list[Path]:
    """Write all realizations as CSV, and a Markdown table with the values of the paper beside ours (not for generated data)."""
    table, remark = (replace(table, paper={}), "") if is_generated(rows) else (table, remark)
    means = summary(rows)
    columns = list(dict.fromkeys((row["mechanism"], row["epsilon"], row["sigma"]) for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    best = {key: set(best_methods(rows, key)) for key in columns}
    lines = []
    for method in methods:
        cells = [_cell(means[method, *key], method in best[key], _paper(table, method, k)) for k, key in enumerate(columns)]
        lines.append([f"{method} (oracle)" if method in ORACLES else method, *cells])
    head = ["SNR in dB", *(f"{mechanism}, ε = {epsilon:g}, σ = {sigma:.2f}" for mechanism, epsilon, sigma in columns)]
    text = (
        f"## {table.title}\n\nData: {rows[0]['data']}. {remark}\n\n{markdown(head, lines)}\n\nMean ± standard deviation over "
        + (
            f"{len({row['realization'] for row in rows})} realizations, the same noise for every method (and, scaled, in every column: columns "
            "are not independent). Bold: the best that does not see the truth, and all within two standard errors of it, pair by pair."
            + (" In parentheses: the paper." if table.paper else "")
        )
        + "\n\n"
        + _gains(rows, columns, [method for method in methods if method not in (*ORACLES, "SNR_in")])
    )
    _draw(means, columns, folder / f"{table.name}.png")
    return write_files(folder, table.name, rows, text, title=table.title)


DRAWN = {
    "SNR_in": ("noisy", ":", 2),
    "SGWT_MSE": ("oracle of the paper (tuned on the truth)", "--", 1),
    "SGWT_SURE_MC": ("the paper's method", "-", 1),
    "DFS_MEAN_SURE": ("mean of DFS fused lassos", "-", 5),
    "sgwt_deep": ("sgwt_deep", "-", 3),
    "combination": ("auto, combinations alone, clipped at 0", "-", 4),
    "auto": ("auto, nonnegative", "-", 0),
}


def _draw(means: dict, columns: list[tuple], path: Path) -> None:
    """Draw the SNR of methods and oracle against the noise level."""
    by_sigma = sorted(columns, key=lambda key: key[2])
    with figure(path, size=(7.4, 4.4)) as ax:
        for method, (label, style, colour) in DRAWN.items():
            if (method, *by_sigma[0]) in means:
                values = [means[method, *key][0] for key in by_sigma]
                ink = QUIET if method == "SNR_in" else COLOURS[colour]
                ax.plot([key[2] for key in by_sigma], values, style, marker="o", markersize=3.5, color=ink, label=label)
        ax.set_xscale("log")
        ticks = [key[2] for key in by_sigma]
        ax.set_xticks(ticks, [f"{tick:.2g}" for tick in ticks], fontsize=8)
        ax.minorticks_off()
        ax.set(xlabel="sigma of the noise", ylabel="SNR in dB")
        ax.legend(fontsize=8.5)


def _gains(rows: list[dict], columns: list[tuple], methods: list[str]) -> str:
    """Return a table of the gain of each method over the paper's oracle, with 95 % intervals."""
    lines, width = [], float(stats.t.ppf(0.975, len({row["realization"] for row in rows}) - 1))
    for method in methods:
        gains = [paired(rows, key, method, "SGWT_MSE") for key in columns]
        lines.append([method, *(f"{mean:+.2f} ± {width * error:.2f}" for mean, error in gains)])
    head = ["dB above SGWT_MSE", *(f"σ = {sigma:.2f}" for *_, sigma in columns)]
    return (
        f"{markdown(head, lines)}\n\nAbove the oracle of the paper (thresholds of its frame tuned on the truth): mean of the differences over the "
        "same noise, and 95 % intervals (Student)."
    )


def paired(rows: list[dict], key: tuple, one: str, other: str) -> tuple[float, float]:
    """Return the mean difference of two methods over the same noise, and its standard error."""
    values = {
        (row["method"], row["realization"]): row["snr"]
        for row in rows
        if (row["mechanism"], row["epsilon"], row["sigma"]) == key and row["method"] in (one, other)
    }
    differences = np.array([values[one, k] - values[other, k] for method, k in values if method == one])
    return float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(differences)))


def best_methods(rows: list[dict], key: tuple) -> list[str]:
    """Return the best method without the truth, and then those that it does not beat by two standard errors."""
    means = summary(rows)
    methods = [method for method in dict.fromkeys(row["method"] for row in rows) if method not in (*ORACLES, "SNR_in")]
    best = max(methods, key=lambda method: means[method, *key][0])
    close = [method for method in methods if method != best and (gain := paired(rows, key, best, method))[0] <= 2 * gain[1]]
    return [best, *close]


def summary(rows: list[dict]) -> dict[tuple, tuple[float, float]]:
    """Return mean and standard deviation by (method, mechanism, epsilon, sigma)."""
    groups: dict[tuple, list[float]] = {}
    for row in rows:
        groups.setdefault((row["method"], row["mechanism"], row["epsilon"], row["sigma"]), []).append(row["snr"])
    return {
        key: (float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0) for key, values in groups.items()
    }


def _cell(value: tuple[float, float], best: bool, paper: float | None) -> str:
    text = f"{value[0]:.2f} ± {value[1]:.2f}"
    return (f"**{text}**" if best else text) + ("" if paper is None else f" ({paper:.2f})")


def _paper(table: Table, method: str, column: int) -> float | None:
    values = table.paper.get(method)
    return None if values is None else values[column]
