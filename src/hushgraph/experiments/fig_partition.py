"""The partition of unity on Manhattan's spectrum (paper, Sec. II-A and its second figure), and its approximation by polynomials.

A frame of polynomials rho_j of degree K is tight up to max |sum_j rho_j^2 - 1|; the paper uses K = 100 with Jackson damping.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np

from hushgraph.experiments import output
from hushgraph.experiments.stage import Stage
from hushgraph.graphs import Graph
from hushgraph.wavelets import Damping, ExactFrame, Plateau, chebyshev_frame, partition

NAME = "fig-partition"
TITLE = "The partition of unity on a spectrum, exact and by polynomials"

DEGREES = (20, 50, 100, 200)
PAPERS_DEGREE = 100
DAMPINGS: dict[str, Damping | None] = {"undamped": None, "jackson": "jackson"}
BINS = 66


def run(stage: Stage) -> list[dict]:
    """Return rows of kinds "bands" (curves), "density" (eigenvalues per bin) and "defect" (one per plateau, degree and damping)."""
    graph = stage.manhattan.graph
    points = 200 if stage.smoke else 1600
    settings = {"graph": graph.hash, "points": points, "bins": BINS, "degree": PAPERS_DEGREE}
    rows = stage.cells.value(f"{NAME}-curves", settings, lambda: _curves(stage.exact_frame(graph), points))
    for plateau in get_args(Plateau):
        for degree in DEGREES:
            settings = {"graph": graph.hash, "plateau": plateau, "degree": degree}
            rows += stage.cells.value(f"{NAME}-defect-{plateau}-{degree}", settings, _defects_of(stage, graph, plateau, degree))
    return [{**row, "map": stage.manhattan.name.split(",")[0], "nodes": graph.n} for row in rows]


def _curves(exact: ExactFrame, points: int) -> list[dict]:
    graph, eigenvalues, bands, top = exact.graph, exact.eigenvalues, exact.bands, exact.lambda_max
    x = np.linspace(0, top, points)
    psi = partition(x, n_scales=bands.n_scales, plateau=bands.plateau, base=bands.base)
    curves = {f"psi_{j}": psi[j] for j in range(len(psi))} | {"sum": psi.sum(axis=0)}
    for name, damping in DAMPINGS.items():
        frame = chebyshev_frame(graph, degree=PAPERS_DEGREE, damping=damping)
        curves[name] = np.sum(frame.filters(x) ** 2, axis=0)
    rows = [{"kind": "bands", "x": float(x[i]), **{name: float(y[i]) for name, y in curves.items()}} for i in range(points)]
    counts, edges = np.histogram(eigenvalues, bins=BINS, range=(0, top))
    return rows + [
        {"kind": "density", "x": float(edges[i]), "width": top / BINS, "eigenvalues": int(counts[i])} for i in range(BINS)
    ]


def _defects_of(stage: Stage, graph: Graph, plateau: Plateau, degree: int) -> Callable[[], list[dict]]:
    def compute() -> list[dict]:
        eigenvalues = stage.exact_frame(graph).eigenvalues
        rows = []
        for name, damping in DAMPINGS.items():
            frame = chebyshev_frame(graph, degree=degree, damping=damping, plateau=plateau)
            at_eigenvalues = float(np.max(np.abs(np.sum(frame.filters(eigenvalues) ** 2, axis=0) - 1)))
            row = {"kind": "defect", "plateau": plateau, "degree": degree, "damping": name}
            rows.append({**row, "defect": frame.tightness_defect, "defect_at_eigenvalues": at_eigenvalues})
        return rows

    return compute


def render(rows: list[dict], folder: Path) -> list[Path]:
    kinds = {kind: [row for row in rows if row["kind"] == kind] for kind in ("bands", "density", "defect")}
    _draw(kinds, folder / NAME)
    return output.write_files(folder, NAME, rows, _text(kinds), title=TITLE)


def _bands(rows: list[dict]) -> list[str]:
    return [name for name in rows[0] if name.startswith("psi_")]


def _draw(kinds: dict[str, list[dict]], path: Path) -> None:
    x = [row["x"] for row in kinds["bands"]]
    with output.figure(path, size=(7.2, 6.6), panels=(3, 1), sharex=True, height_ratios=(3, 0.9, 2)) as (top, middle, bottom):
        for j, name in enumerate(_bands(kinds["bands"])):
            top.plot(x, [row[name] for row in kinds["bands"]], linewidth=1.8, label=f"$\\psi_{{{j}}}$")
        top.plot(x, [row["sum"] for row in kinds["bands"]], color=output.INK, linewidth=1.2, linestyle="--", label="sum")
        top.set(
            title="Partition of unity, linear $\\omega$, $b = 2$", ylabel="$\\psi_j(\\lambda)$",
            ylim=(-0.03, 1.2), xlim=(0, x[-1]), yticks=np.linspace(0, 1, 6),
        )  # fmt: skip
        top.legend(ncols=7, loc="upper center", fontsize=9, columnspacing=1.2, handlelength=1.6)
        edges = [row["x"] for row in kinds["density"]]
        middle.bar(
            edges,
            [row["eigenvalues"] for row in kinds["density"]],
            width=kinds["density"][0]["width"],
            align="edge",
            color="#b9c4cd",
        )
        middle.set(title="Eigenvalues per bin", ylabel="count")
        for (name, label), colour in zip(
            {"undamped": "undamped", "jackson": "Jackson (paper)"}.items(), output.COLOURS, strict=False
        ):
            bottom.plot(x, [row[name] - 1 for row in kinds["bands"]], linewidth=1.3, color=colour, label=label)
        bottom.axhline(0, color=output.INK, linewidth=0.8, linestyle="--")
        bottom.set(
            title=f"Degree {PAPERS_DEGREE}: what the polynomials make of the sum",
            xlabel="$\\lambda$",
            ylabel="$\\sum_j \\rho_j^2 - 1$",
        )
        bottom.legend(loc="lower right", fontsize=9)


def _text(kinds: dict[str, list[dict]]) -> str:
    first = kinds["defect"][0]
    defects = {(row["plateau"], row["degree"], row["damping"]): row for row in kinds["defect"]}
    plateaus = list(dict.fromkeys(row["plateau"] for row in kinds["defect"]))
    lines = [
        [plateau, damping, *(f"{defects[plateau, degree, damping]['defect']:.2g}" for degree in DEGREES)]
        for plateau in plateaus
        for damping in DAMPINGS
    ]
    table = output.markdown(["plateau", "damping", *(f"K = {degree}" for degree in DEGREES)], lines)
    plain, damped = (
        f"{name} has a defect of {row['defect']:.3f} ({row['defect_at_eigenvalues']:.3f} at the eigenvalues)"
        for name, row in (
            ("no damping", defects["linear", PAPERS_DEGREE, "undamped"]),
            ("Jackson damping", defects["linear", PAPERS_DEGREE, "jackson"]),
        )
    )
    tighter = sum(defects[p, k, "jackson"]["defect"] < defects[p, k, "undamped"]["defect"] for p in plateaus for k in DEGREES)
    best = [min(plateaus, key=lambda p: defects[p, k, "undamped"]["defect"]) for k in (DEGREES[0], PAPERS_DEGREE)]
    best_defect = defects[best[1], PAPERS_DEGREE, "undamped"]["defect"]
    below = sum(row["eigenvalues"] for row in kinds["density"] if row["x"] + row["width"] <= 0.5) / first["nodes"]
    worst = max(abs(row["sum"] - 1) for row in kinds["bands"])
    return f"""## {TITLE}

The streets of {first["map"]}: {first["nodes"]:,} nodes, all eigenvalues of the Laplacian in [0, {kinds["bands"][-1]["x"]:.3f}].

There are {len(_bands(kinds["bands"]))} bands; the paper's figure has five. Their sum is off 1 by {worst:.1g}.
About {100 * below:.0f} % of the eigenvalues lie below 1/2, where the lowest band alone is at work:
the frame does not tell these frequencies apart.

Tightness defect, the largest |sum of rho_j^2 - 1| over the interval (a proven bound):

{table}

At K = {PAPERS_DEGREE} and the linear plateau, the paper's choice, {damped},
and {plain}. Damping takes the ripples away and rounds the kinks instead. The paper expects a better convergence from it; over all
plateaus and degrees of the table the damped frame is tighter in {tighter} of {len(plateaus) * len(DEGREES)} cases.
Smoother plateaus pay from some degree on: at K = {DEGREES[0]} the tightest is {best[0]},
at K = {PAPERS_DEGREE} it is {best[1]} with {best_defect:.2g}.
"""
