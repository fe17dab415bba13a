"""How far Monte-Carlo weights are from the exact ones (paper, Sec. V-A, and Proposition 1 for i = j).

N Var[gamma_ii^2] = V[eps^2] sum_p W_ip^4 + 2 sum_{p != q} W_ip^2 W_iq^2 = (V[eps^2] - 2) sum_p W_ip^4 + 2 (sum_p W_ip^2)^2,
with V = 0 for Rademacher and 2 for Gaussian probes. The probes see the polynomial frame: its own weights are the mean of what they
give, so the mean squared error to the exact frame's weights is this variance plus a floor that no number of probes lowers.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph.experiments.output import figure, markdown, write_files
from hushgraph.experiments.stage import Stage
from hushgraph.plotting import COLOURS, QUIET
from hushgraph.wavelets import (
    Bands,
    ChebyshevFrame,
    Damping,
    Law,
    Plateau,
    chebyshev_frame,
    exact_frame,
    exact_weights,
    forward,
    probes,
)

NAME = "fig-weights"
TITLE = "Monte-Carlo weights against the exact ones"

LAWS: tuple[Law, ...] = ("rademacher", "gaussian")
SPREAD = {"rademacher": 0.0, "gaussian": 2.0}  # V[eps^2]
SIZES, SMOKE_SIZES, FEW = (1, 2, 5, 10, 20, 50, 100), (1, 2, 5), 10
BASES = (1.5, 2.0, 3.0)
PLATEAUS: tuple[Plateau, ...] = ("linear", "smooth", "c3", "meyer")
REPETITIONS, DEGREE = 50, 100
DAMPING: Damping = "jackson"
GROUP = 64  # unit vectors transformed at a time


# ---- measurement ------------------------------------------------------------------------------------------------


def run(stage: Stage) -> list[dict]:
    """Return rows of both panels: "probes" over N at the paper's frame, "frame" at N = 10 over bases and plateaus."""
    sizes = SMOKE_SIZES if stage.smoke else SIZES
    rows = _rows(stage, "probes", sizes, 2.0, "linear")
    for base in BASES:
        for plateau in PLATEAUS:
            rows += _rows(stage, "frame", (FEW,), base, plateau)
    return rows


def _rows(stage: Stage, panel: str, sizes: tuple[int, ...], base: float, plateau: Plateau) -> list[dict]:
    graph, repetitions = stage.manhattan.graph, stage.repetitions(REPETITIONS)
    frame = chebyshev_frame(graph, degree=DEGREE, damping=DAMPING, base=base, plateau=plateau)
    settings = {"graph": graph.hash, "degree": DEGREE, "damping": DAMPING, "base": base, "plateau": plateau}
    moments = stage.cells.arrays(f"{NAME}-moments", settings, lambda: _moments(stage, frame))
    floor = float(np.mean((moments["own"] - moments["exact"]) ** 2))
    rows = []
    for law in LAWS:
        drawn = {**settings, "law": law, "sizes": sizes, "seeds": [0, repetitions]}
        errors = stage.cells.value(f"{NAME}-{panel}-{law}", drawn, partial(_errors, frame, moments, law, sizes, repetitions))
        single = float(np.mean((SPREAD[law] - 2) * moments["fourth"] + 2 * moments["own"] ** 2))
        for position, size in enumerate(sizes):
            exact, own = (np.array(errors[part])[:, position] for part in ("exact", "own"))
            rows.append(
                {"panel": panel, "law": law, "n_probes": size, "base": base, "plateau": plateau, "n_scales": frame.n_scales}
                | {"mse": float(exact.mean()), "mse_se": _error_of_mean(exact), "predicted": single / size + floor, "floor": floor}
                | {"own_mse": float(own.mean()), "own_mse_se": _error_of_mean(own), "variance": single / size}
                | {"repetitions": repetitions, "data": stage.manhattan.name, "n": graph.n}
            )
    return rows


def _moments(stage: Stage, frame: ChebyshevFrame) -> dict[str, np.ndarray]:
    """Return weights of the exact frame and of the polynomials ("own"), and sum_p W_ip^4, from transforms of all unit vectors."""
    stage.exact_frame(frame.graph)  # its eigenpairs serve every base and plateau
    assert isinstance(frame.bands, Bands)
    exact = exact_frame(frame.graph, base=frame.base, plateau=frame.bands.plateau, n_scales=frame.n_scales)
    own, fourth = np.zeros((2, frame.n_scales, frame.graph.n))
    for start in range(0, frame.graph.n, GROUP):
        squares = forward(frame, np.eye(min(GROUP, frame.graph.n - start), frame.graph.n, start)) ** 2
        own += squares.sum(axis=0)
        fourth += (squares**2).sum(axis=0)
    return {"exact": exact_weights(exact), "own": own, "fourth": fourth}


def _errors(frame: ChebyshevFrame, moments: dict, law: Law, sizes: tuple[int, ...], repetitions: int) -> dict[str, list]:
    """Return mean squared errors to the exact and to the polynomials' own weights: for each repetition, one per size.

    The weights of N probes are the mean of the first N of one long draw, so sizes within a repetition are not independent.
    """
    by_target: dict[str, list] = {"exact": [], "own": []}
    for seed in range(repetitions):
        squares = forward(frame, probes(frame.graph.n, max(sizes), law=law, seed=seed)) ** 2
        means = [squares[:size].mean(axis=0) for size in sizes]
        for part, errors in by_target.items():
            errors.append([float(np.mean((mean - moments[part]) ** 2)) for mean in means])
    return by_target


def _error_of_mean(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5)


# ---- output -----------------------------------------------------------------------------------------------------


def render(rows: list[dict], folder: Path) -> list[Path]:
    """Write CSV, Markdown and the figure."""
    path = Path(folder) / NAME
    with figure(path, size=(9.6, 4.6), panels=(1, 2), width_ratios=(1, 1.25)) as (left, right):
        _draw_probes(left, [row for row in rows if row["panel"] == "probes"])
        _draw_frames(right, [row for row in rows if row["panel"] == "frame"])
    return write_files(Path(folder), NAME, rows, _text(rows), title=TITLE)


def _draw_probes(axes: Any, rows: list[dict]) -> None:
    sizes = sorted({row["n_probes"] for row in rows})
    for law, colour in zip(LAWS, COLOURS, strict=False):
        part = [row for row in rows if row["law"] == law]
        axes.plot(sizes, [row["predicted"] for row in part], color=colour, lw=1.2)
        _points(axes, sizes, part, colour)
    axes.plot([], [], color=QUIET, lw=1.2, label="predicted: Proposition 1 and floor")
    axes.axhline(rows[0]["floor"], color=QUIET, lw=1.2, ls=":", label="floor: error of the polynomials alone")
    axes.set(xscale="log", yscale="log", xlabel="number of probes N", ylabel="mean squared error of the weights (no unit)")
    axes.set_ylim(bottom=rows[0]["floor"] / 2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_title("Base 2, linear plateau")
    order = [2, 3, 0, 1]  # Matplotlib lists lines before points
    handles, labels = axes.get_legend_handles_labels()
    axes.legend([handles[k] for k in order], [labels[k] for k in order], fontsize=9, loc="lower left", bbox_to_anchor=(0, 0.1))


def _draw_frames(axes: Any, rows: list[dict]) -> None:
    places = {(base, plateau): 5 * g + k for g, base in enumerate(BASES) for k, plateau in enumerate(PLATEAUS)}
    for law, colour in zip(LAWS, COLOURS, strict=False):
        part = [row for row in rows if row["law"] == law]
        at = np.array([places[row["base"], row["plateau"]] for row in part])
        axes.hlines([row["predicted"] for row in part], at - 0.4, at + 0.4, color=colour, lw=1.2)
        _points(axes, at, part, colour)
    axes.set(ylabel="mean squared error of the weights (no unit)", xlabel="plateau")
    axes.set_ylim(0, 1.15 * max(row["mse"] for row in rows))
    axes.set_xticks(list(places.values()), [plateau for _, plateau in places], rotation=90)
    for base in BASES:
        scales = next(row["n_scales"] for row in rows if row["base"] == base)
        place = places[base, PLATEAUS[0]] + 1.5
        axes.text(place, 0.98, f"b = {base:g}, {scales} scales", ha="center", va="top", transform=axes.get_xaxis_transform())
    axes.set_title(f"Other bases b and plateaus, N = {rows[0]['n_probes']}")


def _points(axes: Any, places: Any, rows: list[dict], colour: str) -> None:
    means, errors = [row["mse"] for row in rows], [1.96 * row["mse_se"] for row in rows]
    axes.errorbar(places, means, errors, fmt="o", ms=5, color=colour, label=f"{rows[0]['law'].capitalize()} probes")


def _text(rows: list[dict]) -> str:
    """Return the text of the experiment: what was measured, and the result."""
    first, by_size, by_frame = rows[0], _pairs(rows, "probes"), _pairs(rows, "frame")
    head = ["Rademacher", "Gaussian", "Gaussian / Rademacher", "predicted", "without the floor", "predicted", "floor"]
    below = sum(one["mse"] < other["mse"] for one, other in by_size + by_frame)
    away = max(abs(row["mse"] - row["predicted"]) / row["mse_se"] for row in rows)
    least, most = (pick(_ratio(pair, "variance") for pair in by_frame) for pick in (min, max))
    last = by_size[-1][0]
    return f"""## {TITLE}

Data: the graph of {first["data"]}, {first["n"]:,} nodes. Weights by polynomials of degree {DEGREE} with Jackson damping; mean
squared error over all nodes and scales, mean of {first["repetitions"]} repetitions with its standard error. Base 2, linear plateau,
{first["n_scales"]} scales:

{markdown(["N", *head], [_line(str(pair[0]["n_probes"]), pair) for pair in by_size])}

Other frames, N = {FEW}:

{markdown(["base, plateau", *head], [_line("{base:g}, {plateau}".format_map(pair[0]), pair) for pair in by_frame])}

"Predicted" is Proposition 1 for i = j, averaged exactly over all weights of the polynomial frame, plus the floor: the mean squared
difference between the polynomials' own weights and the exact frame's, which no number of probes lowers. It is
{last["floor"] / last["mse"]:.1%} of Rademacher's error at N = {last["n_probes"]}. "Without the floor" compares with the
polynomials' own weights: there the predicted ratio is the same for every N.

Rademacher probes are closer in {below} of {len(by_size + by_frame)} comparisons; the paper, which prints no numbers here, says for
any sample size. The errors are within {away:.1f} standard errors of the prediction. Depending on the frame Proposition 1 makes
Gaussian probes {least:.2f} to {most:.2f} times as costly: the more of a wavelet's energy sits on one node, the more is won by
probes whose squares do not vary.
"""


def _pairs(rows: list[dict], panel: str) -> list[tuple[dict, dict]]:
    """Return the rows of Rademacher and Gaussian probes in pairs of the same setting."""
    one, other = ([row for row in rows if row["panel"] == panel and row["law"] == law] for law in LAWS)
    return list(zip(one, other, strict=True))


def _ratio(pair: tuple[dict, dict], field: str) -> float:
    return pair[1][field] / pair[0][field]


def _line(name: str, pair: tuple[dict, dict]) -> list[str]:
    errors = [f"{row['mse']:.3e} ± {row['mse_se']:.0e}" for row in pair]
    ratios = [f"{_ratio(pair, field):.3f}" for field in ("mse", "predicted", "own_mse", "variance")]
    return [name, *errors, *ratios, f"{pair[0]['floor']:.1e}"]
