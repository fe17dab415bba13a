"""The plateau functions omega and h_c (paper, Sec. II-A and its first figure), with our two smoother ones.

The bands telescope: psi_0 + ... + psi_J = omega(b^-J x). So they sum to 1 on [0, lambda_max] when b^-J lambda_max, which is
anything below 1/b, lies on the plateau. The plateau of h_c is [0, 1 - c]: c <= 1 - 1/b is needed, and the paper's figure has c = 1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hushgraph.experiments import output
from hushgraph.experiments.stage import Stage
from hushgraph.wavelets import count_scales, plateau_function, smooth_plateau

NAME = "fig-plateaus"
TITLE = "The plateau functions, and why c = 1 makes no partition of unity"

BASE = 2.0
PAPERS_C = 1.0
SHOWN = {
    "linear": "linear $\\omega$ (paper)",
    "smooth": "$h_c$, $c = 1 - 1/b$",
    "c3": "c3",
    "meyer": "meyer",
    "smooth_c1": "$h_c$, $c = 1$ (paper)",
}


def run(stage: Stage) -> list[dict]:
    """Return rows of two panels: the functions on [0, 1.2], and the sums of the bands of h_c on Manhattan's [0, lambda_max]."""
    lambda_max = float(stage.manhattan.graph.spectrum().lambda_max)
    points = 61 if stage.smoke else 601
    x = np.linspace(0, 1.2, points)
    curves = {name: plateau_function(name, base=BASE)(x) for name in ("linear", "smooth", "c3", "meyer")}
    curves["smooth_c1"] = smooth_plateau(x, c=PAPERS_C)
    rows = [{"panel": "plateaus", "x": float(x[i]), **{name: float(y[i]) for name, y in curves.items()}} for i in range(points)]
    x = np.linspace(0, lambda_max, points)
    defects = {"c = 1": band_sum(x, lambda_max, c=PAPERS_C) - 1, "c = 1 - 1/b": band_sum(x, lambda_max, c=1 - 1 / BASE) - 1}
    where = {"map": stage.manhattan.name.split(",")[0], "lambda_max": lambda_max}
    return rows + [
        {"panel": "sums", "x": float(x[i]), **{n: float(y[i]) for n, y in defects.items()}, **where} for i in range(points)
    ]


def band_sum(x: np.ndarray, lambda_max: float, *, c: float) -> np.ndarray:
    """Return the sum over j of the paper's psi_j made from h_c, band by band, without any correction at the top."""
    J = count_scales(lambda_max, base=BASE) - 1
    bands = [smooth_plateau(x, c=c)]
    bands += [smooth_plateau(x * BASE**-j, c=c) - smooth_plateau(x * BASE ** (1 - j), c=c) for j in range(1, J + 1)]
    return np.sum(bands, axis=0)


def render(rows: list[dict], folder: Path) -> list[Path]:
    plateaus, sums = ([row for row in rows if row["panel"] == panel] for panel in ("plateaus", "sums"))
    _draw(plateaus, sums, folder / NAME)
    return output.write_files(folder, NAME, rows, _text(plateaus, sums), title=TITLE)


def _draw(plateaus: list[dict], sums: list[dict], path: Path) -> None:
    with output.figure(path, size=(9.6, 3.9), panels=(1, 2)) as (left, right):
        x = [row["x"] for row in plateaus]
        for name, label in SHOWN.items():
            dashed = {"linestyle": "--", "color": output.QUIET} if name == "smooth_c1" else {}
            left.plot(x, [row[name] for row in plateaus], label=label, linewidth=1.8, **dashed)
        left.axvline(1 / BASE, color=output.QUIET, linewidth=0.7, linestyle=":")
        left.text(1 / BASE - 0.01, 0.03, "$1/b$", ha="right", color=output.QUIET)
        left.text(0.03, 0.3, "$c = 1$: no partition of\nunity for $b = 2$", fontsize=8.5, color=output.QUIET)
        left.set(title="Plateau functions", xlabel="$x$", ylabel="$\\omega(x)$", xlim=(0, 1.2), ylim=(-0.02, 1.05))
        left.legend(loc="upper right", fontsize=8.5)
        x = [row["x"] for row in sums]
        right.plot(x, [row["c = 1 - 1/b"] for row in sums], color=output.COLOURS[1], linewidth=1.8, label="$h_c$, $c = 1 - 1/b$")
        right.plot(
            x, [row["c = 1"] for row in sums], color=output.QUIET, linewidth=1.8, linestyle="--", label="$h_c$, $c = 1$ (paper)"
        )
        right.set(
            title="Sum of the bands of $h_c$, less 1",
            xlabel="$\\lambda$",
            ylabel="$\\sum_j \\psi_j(\\lambda) - 1$",
            xlim=(0, x[-1]),
        )
        right.legend(loc="lower left", fontsize=8)


def _text(plateaus: list[dict], sums: list[dict]) -> str:
    worst = {name: max(abs(row[name]) for row in sums) for name in ("c = 1", "c = 1 - 1/b")}
    first = next((row["x"] for row in sums if abs(row["c = 1"]) > 0.01), sums[-1]["x"])
    slopes = {name: _steepest(plateaus, name) for name in SHOWN}
    lines = [[name, f"{slopes[name]:.2f}", f"{smooth}"] for name, smooth in SMOOTHNESS.items()]
    table = output.markdown(["plateau", "steepest slope", "how smooth"], lines)
    where = f"[0, {sums[-1]['lambda_max']:.3f}], the spectrum of the streets of {sums[-1]['map']}"
    return f"""## {TITLE}

The functions are computed on [0, 1.2] for b = {BASE:g}; their bands on {where}.

{table}

All but the dashed curve are 1 up to 1/b and 0 from 1 on. The paper's figure draws h_c with c = 1, whose plateau [0, 1 - c] is a
single point. The bands telescope to omega(b^-J x), so omega must be 1 at b^-J lambda_max. With c = 1 their sum is off by more
than 1 % from lambda = {first:.2f} on, and by {worst["c = 1"]:.3f} at worst;
with c = 1 - 1/b, the default here, by {worst["c = 1 - 1/b"]:.1g}.
`plateau_function` refuses a larger c. The tables of the paper use the piecewise linear omega and are not affected.
"""


SMOOTHNESS = {
    "linear": "kinks at 1/b and 1; the square root is infinitely steep at 1",
    "smooth": "all derivatives, and so has its square root",
    "c3": "three derivatives; its square root has one",
    "meyer": "seven derivatives; its square root has three",
    "smooth_c1": "all derivatives, but no plateau",
}


def _steepest(rows: list[dict], name: str) -> float:
    x, y = np.array([row["x"] for row in rows]), np.array([row[name] for row in rows])
    return float(np.max(np.abs(np.diff(y) / np.diff(x))))
