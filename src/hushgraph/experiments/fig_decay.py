"""How fast wavelets sqrt(psi_j)(L) delta_i vanish with the number of hops from i (paper, Sec. III-A: localization).

Exact wavelets decay as fast as sqrt(psi_j) is smooth. A polynomial of degree K reaches exactly K hops: L is 0 beyond neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.sparse import csgraph

from hushgraph.experiments import output
from hushgraph.experiments.stage import Stage
from hushgraph.graphs import Graph
from hushgraph.wavelets import Frame, Plateau, chebyshev_frame, exact_frame, forward

NAME = "fig-decay"
TITLE = "Decay of the wavelets with hops"

PLATEAUS: tuple[Plateau, ...] = ("linear", "c3")
DEGREES = (20, 100)  # a cut-off one can see, and the paper's degree
LEVELS = (1e-2, 1e-4, 1e-8)
SEED = 0
SHARE = 0.2  # a distance is shown if this share of the nodes has others there


def run(stage: Stage) -> list[dict]:
    """Return one row per plateau, frame, scale and hop: largest and mean size as shares of the wavelet's peak, averaged over nodes."""
    graph, count = stage.manhattan.graph, 3 if stage.smoke else 50
    nodes = np.sort(np.random.default_rng(SEED).choice(graph.n, count, replace=False))
    hops = csgraph.dijkstra(graph.adjacency, unweighted=True, indices=nodes)
    rows = []
    for plateau in PLATEAUS:
        for degree in (None, *DEGREES):
            name = "exact" if degree is None else f"degree {degree}"
            settings = {"graph": graph.hash, "plateau": plateau, "degree": degree, "count": count, "seed": SEED, "share": SHARE}
            compute = _decay_of(_frame_of(stage, graph, plateau, degree), nodes, hops)
            decay = stage.cells.value(f"{NAME}-{plateau}-{name}", settings, compute)
            rows += [
                {"map": stage.manhattan.name.split(",")[0], "n": graph.n, "plateau": plateau, "frame": name, **row} for row in decay
            ]
    return rows


def _frame_of(stage: Stage, graph: Graph, plateau: Plateau, degree: int | None) -> Callable[[], Frame]:
    def make() -> Frame:
        if degree is not None:
            return chebyshev_frame(graph, degree=degree, damping=None, plateau=plateau)
        stage.exact_frame(graph)  # its eigenpairs are a cell; frames of other plateaus take them from the graph
        return exact_frame(graph, plateau=plateau)

    return make


def _decay_of(make: Callable[[], Frame], nodes: np.ndarray, hops: np.ndarray) -> Callable[[], list[dict]]:
    def compute() -> list[dict]:
        frame = make()
        units = np.zeros((len(nodes), frame.graph.n))
        units[np.arange(len(nodes)), nodes] = 1
        size = np.abs(forward(frame, units))
        size /= np.maximum(size.max(axis=2, keepdims=True), 1e-300)
        return [row for h in range(_farthest(hops) + 1) for row in _at_distance(size, hops == h, h)]

    return compute


def _farthest(hops: np.ndarray) -> int:
    """Return the largest distance that enough of the nodes have."""
    return int(np.quantile(np.where(np.isfinite(hops), hops, 0).max(axis=1), 1 - SHARE, method="lower"))


def _at_distance(size: np.ndarray, at_h: np.ndarray, h: int) -> list[dict]:
    """Return largest and mean size at h hops, one row per scale; `at_h` marks the nodes at that distance."""
    size, at_h = (part[at_h.any(axis=1)] for part in (size, at_h))  # averages are over the nodes that have others at this distance
    largest = np.max(size, axis=2, where=at_h[:, None], initial=0.0).mean(axis=0)
    mean = np.mean(size, axis=2, where=at_h[:, None]).mean(axis=0)
    fields = {"hops": h, "nodes": len(size)}
    return [{"scale": j, **fields, "largest": float(largest[j]), "mean": float(mean[j])} for j in range(size.shape[1])]


def reach(rows: list[dict], level: float) -> int | None:
    """Return the hops from which on the largest size stays below `level`; None if it never does."""
    sizes = {row["hops"]: row["largest"] for row in rows}
    above = [h for h, size in sizes.items() if size >= level]
    return None if max(above) == max(sizes) else max(above) + 1


# ---- for readers ------------------------------------------------------------------------------------------------------


def render(rows: list[dict], folder: Path) -> list[Path]:
    _draw(rows, folder / NAME)
    return output.write_files(folder, NAME, rows, _text(rows), title=TITLE)


def _group(rows: list[dict], plateau: str, frame: str, scale: int) -> list[dict]:
    return [row for row in rows if (row["plateau"], row["frame"], row["scale"]) == (plateau, frame, scale)]


def _scales(rows: list[dict]) -> list[int]:
    return sorted({row["scale"] for row in rows})


def _draw(rows: list[dict], path: Path) -> None:
    lowest = 10 ** np.floor(np.log10(min(row["mean"] for row in rows if row["frame"] == "exact")))
    with output.figure(path, size=(9.6, 4.3), panels=(1, 2), sharex=True, sharey=True) as axes:
        for axis, plateau in zip(axes, PLATEAUS, strict=True):
            for scale, colour in zip(_scales(rows), output.COLOURS, strict=False):
                exact, cut = _group(rows, plateau, "exact", scale), _group(rows, plateau, f"degree {DEGREES[0]}", scale)
                h = [row["hops"] for row in exact]
                axis.semilogy(h, [row["largest"] for row in exact], color=colour, linewidth=1.7, label=f"$j = {scale}$")
                axis.semilogy(h, [row["mean"] for row in exact], color=colour, linewidth=0.8, alpha=0.7)
                positive = [row for row in cut if row["largest"] > 0]
                axis.semilogy(
                    [row["hops"] for row in positive],
                    [row["largest"] for row in positive],
                    color=colour,
                    linewidth=1.0,
                    linestyle=":",
                )
            axis.axvline(DEGREES[0], color=output.QUIET, linewidth=0.7, linestyle=":")
            axis.text(DEGREES[0] + 0.8, 2 * lowest, f"degree {DEGREES[0]}\nends here", fontsize=8, color=output.QUIET, va="bottom")
            axis.set(title=f"{plateau} plateau", xlabel="hops from the node", ylim=(lowest, 2))
        axes[0].set_ylabel("size, as a share of the peak")
        axes[0].legend(fontsize=9, loc="lower left")
        key = f"thick: largest at that distance\nthin: mean\ndotted: polynomials of degree {DEGREES[0]}"
        axes[1].text(0.99, 0.97, key, transform=axes[1].transAxes, ha="right", va="top", fontsize=8.5)


def _text(rows: list[dict]) -> str:
    first = rows[0]
    frames = ("exact", f"degree {DEGREES[-1]}", f"degree {DEGREES[0]}")
    lines = []
    for plateau in PLATEAUS:
        for frame in frames:
            for scale in _scales(rows):
                hops = [reach(_group(rows, plateau, frame, scale), level) for level in LEVELS]
                lines.append([plateau, frame, str(scale), *("-" if h is None else str(h) for h in hops)])
    table = output.markdown(["plateau", "frame", "scale", *(f"below {level:g}" for level in LEVELS)], lines)
    beyond = max(
        (row["largest"] for row in rows if row["frame"] != "exact" and row["hops"] > int(row["frame"].split()[1])), default=0.0
    )
    farthest = max(row["hops"] for row in rows)
    return f"""## {TITLE}

{first["nodes"]} random nodes of {first["map"]} ({first["n"]:,} nodes), up to {farthest} hops; where streets end earlier,
averages are over the nodes that reach so far ({rows[-1]["nodes"]} at the end). Sizes are shares of each wavelet's peak. Thick lines
are the largest value at that distance, thin ones the mean, dotted ones the largest of polynomials of degree {DEGREES[0]}.

Hops from which on the largest value stays below a share of the peak ("-": not within {farthest} hops):

{table}

{_comparison(rows)} Polynomials of degree K
(undamped) end at K hops: beyond them the largest coefficient is {beyond:g}. The paper says that its wavelets vanish with the
distance and gives no rate.
"""


def _comparison(rows: list[dict]) -> str:
    ends = {plateau: [reach(_group(rows, plateau, "exact", scale), LEVELS[1]) for scale in _scales(rows)] for plateau in PLATEAUS}
    shown = {plateau: ", ".join("-" if h is None else str(h) for h in ends[plateau]) for plateau in PLATEAUS}
    return (
        f"The plateaus differ in the tails: exact wavelets, from the lowest band to the highest, stay below {LEVELS[1]:g}\n"
        f"of their peak from {shown['linear']} hops on with the linear plateau, and from {shown['c3']} with c3."
    )
