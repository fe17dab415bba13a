"""SURE with Monte-Carlo weights against their number (paper, Sec. V-B), with the band that Proposition 2 predicts.

At a fixed threshold SURE of the coefficients is ||h(F) - F||^2 - sigma^2 tr(W W') + 2 sigma^2 sum weights * slope. Its constant is
held fixed, as in the paper (which has n in place of the trace; they differ for polynomials). What varies is a mean of
eps' M eps over the probes, M = W' diag(slope) W, of variance (2 |M|_F^2 - (2 - V[eps^2]) sum_p M_pp^2) / N.
M is also the Jacobian of the whole estimator, so finite differences of it along a probe (the black box) give that same number;
signal-domain SURE, ||fhat - y||^2 - n sigma^2 + 2 sigma^2 divergence, takes either.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph.experiments.fig_weights import DAMPING, DEGREE, GROUP, LAWS, REPETITIONS, SIZES, SMOKE_SIZES, SPREAD
from hushgraph.experiments.output import figure, markdown, write_files
from hushgraph.experiments.stage import Stage
from hushgraph.plotting import COLOURS, INK, QUIET
from hushgraph.wavelets import (
    ChebyshevFrame,
    Law,
    analyze,
    chebyshev_frame,
    exact_weights,
    forward,
    inverse,
    james_stein,
    probes,
    signal_sure,
    synthesize,
)

NAME = "fig-sure"
TITLE = "SURE with Monte-Carlo weights"

SIGMA, NOISE_SEED = 1.0, 0
STEP = 1e-3 * SIGMA  # of the black box, as in monte_carlo_divergence
Z = 1.959963984540054


# ---- measurement ------------------------------------------------------------------------------------------------


def run(stage: Stage) -> list[dict]:
    """Return a row for each law and number of probes."""
    graph, f = stage.manhattan.graph, np.asarray(stage.manhattan.signal, dtype=np.float64)
    sizes, repetitions = SMOKE_SIZES if stage.smoke else SIZES, stage.repetitions(REPETITIONS)
    frame = chebyshev_frame(graph, degree=DEGREE, damping=DAMPING)
    noisy = f + SIGMA * np.random.default_rng(NOISE_SEED).standard_normal(graph.n)
    settings = {"graph": graph.hash, "signal": stage.digest(f), "degree": DEGREE, "damping": DAMPING}
    settings |= {"sigma": SIGMA, "noise": NOISE_SEED, "rule": "james_stein"}
    t = stage.cells.value(f"{NAME}-threshold", settings, lambda: best_threshold(frame, noisy, f))
    settings["threshold"] = t
    exact = stage.cells.value(f"{NAME}-exact", settings, lambda: _exact(stage, frame, noisy, f, t))
    rows = []
    for law in LAWS:
        drawn = {**settings, "law": law, "sizes": sizes, "seeds": [0, repetitions], "step": STEP}
        sums = stage.cells.value(f"{NAME}-{law}", drawn, partial(_divergences, frame, noisy, t, law, sizes, repetitions))
        mean, square = np.mean(sums["single"], axis=0)
        for position, size in enumerate(sizes):
            by_weights, by_box = (2 * SIGMA**2 * np.array(sums[part])[:, position] for part in ("weights", "black_box"))
            deviation = exact["deviation"][law] / size**0.5
            rows.append(
                {"law": law, "n_probes": size, **_band("", exact["fixed"] + by_weights), "exact": exact["exact"]}
                | {"predicted_low": exact["exact"] - Z * deviation, "predicted_high": exact["exact"] + Z * deviation}
                | {**_band("blackbox_", exact["signal_fixed"] + by_box), "blackbox_exact": exact["signal_exact"]}
                | {"deviation": float(np.std(by_weights, ddof=1)), "predicted_deviation": deviation}
                | {"true_error_coefficients": exact["true_error_coefficients"], "true_error_signal": exact["true_error_signal"]}
                | {"exact_by_eigenvectors": exact["by_eigenvectors"], "threshold": t, "sigma": SIGMA, "trace": exact["trace"]}
                | {"single_deviation": 2 * SIGMA**2 * float(np.sqrt(square - mean**2)), "single_predicted": exact["deviation"][law]}
                | {"step_difference": float(np.abs(by_box - by_weights).max())}
                | {"repetitions": repetitions, "data": stage.manhattan.name, "n": graph.n}
            )
    return rows


def best_threshold(frame: ChebyshevFrame, noisy: np.ndarray, truth: np.ndarray) -> float:
    """Return the one threshold for all scales with the least ||f - fhat||^2: the best of 101 percentiles, then refined around it."""
    F = analyze(frame, noisy)

    def error(t: float) -> float:
        return float(np.sum((synthesize(frame, james_stein(F, t)[0]) - truth) ** 2))

    candidates = np.quantile(np.abs(F), np.linspace(0, 1, 101))
    for _ in range(4):
        best = int(np.argmin([error(t) for t in candidates]))
        chosen = float(candidates[best])
        candidates = np.linspace(candidates[max(best - 1, 0)], candidates[min(best + 1, len(candidates) - 1)], 21)
    return chosen


def _exact(stage: Stage, frame: ChebyshevFrame, noisy: np.ndarray, truth: np.ndarray, t: float) -> dict:
    """Return SURE without any probe, its deviation for one probe of each law, and the errors it estimates."""
    F = analyze(frame, noisy)
    value, slope = james_stein(F, t)
    estimate = synthesize(frame, value)
    weights, frobenius, diagonal = _jacobian_sums(frame, slope)
    residual, trace = float(np.sum((value - F) ** 2)), float(weights.sum())
    divergence = float(np.sum(weights * slope))
    by_eigenvectors = float(np.sum(exact_weights(stage.exact_frame(frame.graph)) * slope))
    spread = {law: 2 * frobenius - (2 - SPREAD[law]) * diagonal for law in LAWS}
    return {
        "fixed": residual - SIGMA**2 * trace,
        "exact": residual - SIGMA**2 * trace + 2 * SIGMA**2 * divergence,
        "by_eigenvectors": residual - SIGMA**2 * frame.graph.n + 2 * SIGMA**2 * by_eigenvectors,
        "signal_fixed": float(signal_sure(noisy, estimate, divergence=0.0, sigma=SIGMA)),
        "signal_exact": float(signal_sure(noisy, estimate, divergence=divergence, sigma=SIGMA)),
        "deviation": {law: 2 * SIGMA**2 * float(np.sqrt(spread[law])) for law in LAWS},
        "true_error_coefficients": float(np.sum((value - analyze(frame, truth)) ** 2)),
        "true_error_signal": float(np.sum((estimate - truth) ** 2)),
        "trace": trace,
    }


def _jacobian_sums(frame: ChebyshevFrame, slope: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return diag(W W'), |M|_F^2 and sum_p M_pp^2 of M = W' diag(slope) W, column by column."""
    n, weights, frobenius, diagonal = frame.graph.n, np.zeros(slope.shape), 0.0, 0.0
    for start in range(0, n, GROUP):
        bands = forward(frame, np.eye(min(GROUP, n - start), n, start))
        weights += np.sum(bands**2, axis=0)
        columns = inverse(frame, slope * bands)
        frobenius += float(np.sum(columns**2))
        diagonal += float(np.sum(np.diagonal(columns, offset=start) ** 2))
    return weights, frobenius, diagonal


def _divergences(
    frame: ChebyshevFrame, noisy: np.ndarray, t: float, law: Law, sizes: tuple[int, ...], repetitions: int
) -> dict[str, list]:
    """Return sum weights * slope with Monte-Carlo weights, and the divergence of the black box, from the same probes.

    For each repetition one per size; N probes are the first N of one long draw. "single" are the first two moments of all of them.
    """
    slope = james_stein(analyze(frame, noisy), t)[1]

    def estimate(signals: np.ndarray) -> np.ndarray:
        return inverse(frame, james_stein(forward(frame, signals), t)[0])

    base = estimate(noisy[None])
    sums: dict[str, list] = {"weights": [], "black_box": [], "single": []}
    for seed in range(repetitions):
        eps = probes(frame.graph.n, max(sizes), law=law, seed=seed)
        groups = [eps[start : start + GROUP] for start in range(0, len(eps), GROUP)]
        forms = np.concatenate([np.sum(slope * forward(frame, group) ** 2, axis=(1, 2)) for group in groups])
        boxes = np.concatenate([np.sum(group * (estimate(noisy + STEP * group) - base), axis=1) / STEP for group in groups])
        sums["single"].append([float(forms.mean()), float(np.mean(forms**2))])
        sums["weights"].append([float(forms[:size].mean()) for size in sizes])
        sums["black_box"].append([float(boxes[:size].mean()) for size in sizes])
    return sums


def _band(prefix: str, values: np.ndarray) -> dict[str, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return {f"{prefix}mean": float(values.mean()), f"{prefix}low": float(low), f"{prefix}high": float(high)}


# ---- output -----------------------------------------------------------------------------------------------------


def render(rows: list[dict], folder: Path) -> list[Path]:
    """Write CSV, Markdown and the figure."""
    path = Path(folder) / NAME
    with figure(path, size=(9.6, 4.6), panels=(1, 2)) as (left, right):
        _draw(left, rows, "", "exact", "true_error_coefficients")
        left.set(ylabel="squared error of all coefficients (pickups²)")
        left.set_title("Coefficients: SURE with Monte-Carlo weights")
        _draw(right, rows, "blackbox_", "blackbox_exact", "true_error_signal")
        right.set(ylabel="squared error of the map (pickups²)")
        right.set_title("Signal: SURE with black-box divergence")
        left.legend(*_legend(left), fontsize=9, loc="lower right")
    return write_files(Path(folder), NAME, rows, _text(rows), title=TITLE)


def _draw(axes: Any, rows: list[dict], prefix: str, exact: str, truth: str) -> None:
    first, sizes = rows[0], sorted({row["n_probes"] for row in rows})
    for law, colour in reversed(list(zip(LAWS, COLOURS, strict=False))):
        part = [row for row in rows if row["law"] == law]
        low, high, mean = ([row[prefix + name] for row in part] for name in ("low", "high", "mean"))
        axes.fill_between(sizes, low, high, color=colour, alpha=0.2 if law == "gaussian" else 0.45, lw=0, label=law)
        axes.plot(sizes, mean, "o-", ms=4, lw=1.2, color=colour, label=law)
        for sign in (-1, 1):
            axes.plot(sizes, [first[exact] + sign * Z * row["predicted_deviation"] for row in part], color=colour, lw=1, ls="--")
    axes.plot([], [], color=QUIET, lw=1, ls="--", label="95 % by Proposition 2")
    axes.axhline(first[exact], color=INK, lw=1, label="SURE with exact weights")
    axes.axhline(first[truth], color=QUIET, lw=1.2, ls=":", label="true squared error")
    axes.set(xscale="log", xlabel="number of probes N")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()


def _legend(axes: Any) -> tuple[list, list[str]]:
    """Return handles and labels of the legend; mean and band of a law share an entry."""
    entries: dict[str, tuple] = {}
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
        entries[label] = (*entries.get(label, ()), handle)
    words: dict[str, str] = {law: f"{law.capitalize()}: mean, 95 % band" for law in LAWS}
    names = [*LAWS, *(label for label in entries if label not in LAWS)]
    return [entries[name] for name in names], [words.get(name, name) for name in names]


def _text(rows: list[dict]) -> str:
    """Return the text of the experiment: what was measured, and the result."""
    first = rows[0]
    pairs = list(zip(*([row for row in rows if row["law"] == law] for law in LAWS), strict=True))
    head = ["N", "Rademacher: mean [95 %]", "predicted", "Gaussian: mean [95 %]", "predicted", "ratio of deviations", "predicted"]
    lines = [
        [
            str(pair[0]["n_probes"]),
            *(text for row in pair for text in _interval(row)),
            *_ratios(pair, "deviation", "predicted_deviation"),
        ]
        for pair in pairs
    ]
    away = max(abs(row["mean"] - row["exact"]) * row["repetitions"] ** 0.5 / row["predicted_deviation"] for row in rows)
    narrower = sum(one["deviation"] < other["deviation"] for one, other in pairs)
    measured, predicted = _ratios(pairs[0], "single_deviation", "single_predicted")
    single = ", ".join(
        f"{row['law'].capitalize()} {row['single_deviation']:.1f} (predicted {row['single_predicted']:.1f})" for row in pairs[0]
    )
    last = pairs[-1][0]
    apart = max(row["step_difference"] for row in pairs[-1])
    return f"""## {TITLE}

Data: {first["data"]}, {first["n"]:,} nodes, with noise of standard deviation {first["sigma"]:g} drawn once. James-Stein
at one threshold for all scales, {first["threshold"]:.3f}, the best one for the map itself; polynomials of degree {DEGREE} with
Jackson damping; {first["repetitions"]} repetitions of the probes. SURE of the coefficients, in squared pickups:

{markdown(head, lines)}

With exact weights SURE is {first["exact"]:.1f}; the error it estimates, that of the coefficients, is
{first["true_error_coefficients"]:.1f}. The paper's form, weights from eigenvectors and n in place of the polynomials' trace
{first["trace"]:.1f}, gives {first["exact_by_eigenvectors"]:.1f}. The map's own error is smaller, {first["true_error_signal"]:.1f},
and signal-domain SURE estimates it as {first["blackbox_exact"]:.1f}.

As in the paper, which prints no numbers here, the means are centred on SURE with exact weights (within {away:.1f} of their standard
errors) and Rademacher probes spread less ({narrower} of {len(pairs)} sizes). {first["repetitions"]} repetitions make rough bands;
all single probes together have the standard deviations {single}:
a ratio of {measured}, by Proposition 2 {predicted}. Streets and hour are not the paper's.

The black box differentiates the whole estimator along the same probes and meets the same quadratic form: at N = {last["n_probes"]}
the two differ by at most {apart:.2g} (thresholds crossed within a step), at the price of an analysis and a synthesis per probe and
threshold.
"""


def _interval(row: dict) -> list[str]:
    return ["{mean:.1f} [{low:.1f}, {high:.1f}]".format_map(row), "[{predicted_low:.1f}, {predicted_high:.1f}]".format_map(row)]


def _ratios(pair: tuple[dict, dict], *fields: str) -> list[str]:
    return [f"{pair[1][field] / pair[0][field]:.2f}" for field in fields]
