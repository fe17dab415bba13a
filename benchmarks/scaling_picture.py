"""The picture of `scaling_model`: predicted time against the number of workers, and where it goes."""

from __future__ import annotations

from pathlib import Path

COLOURS = ("#8a8f98", "#4e79a7", "#f28e2b", "#59a14f", "#b07aa1")
LINES = {1e8: "#1f77b4", 1e9: "#d1495b"}
NAMES = {1e8: "100 million nodes", 1e9: "1 billion nodes"}


def draw(path: Path, lines: dict, bars: list[dict]) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplot_mosaic([["lines", "100000000.0"], ["lines", "1000000000.0"]], figsize=(13, 6), width_ratios=[1, 1.1])
    _lines(axes["lines"], lines)
    for n, name in NAMES.items():
        _bars(axes[str(n)], [one for one in bars if one["n"] == n], f"{name} on 100 workers")
    figure.suptitle("Predictions of a simulation with measured costs: nothing of this was run (streets, sgwt_scaled, degree 100)")
    handles, groups = axes["100000000.0"].get_legend_handles_labels()
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.legend(handles, groups, frameon=False, ncols=len(groups), loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _lines(axis, lines: dict) -> None:
    """Time against workers."""
    for (n, system), points in lines.items():
        style = "-" if system == next(iter(lines))[1] else "--"
        axis.plot([x for x, _ in points], [y / 60 for _, y in points], style, marker="o", markersize=4, color=LINES[n])
        x, y = points[1]
        axis.annotate(
            f"{NAMES[n]}, files at {system}", (x, y / 60), xytext=(-6, 12), textcoords="offset points", color=LINES[n], fontsize=9
        )
    axis.set(xscale="log", yscale="log", xlabel="workers, one core each", ylabel="predicted time, minutes")
    axis.set_title("More workers help until the file system is full", fontsize=11)
    ticks = [x for x, _ in next(iter(lines.values()))]
    axis.set_xticks(ticks, [str(x) for x in ticks])
    axis.minorticks_off()
    marks = [mark for mark in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200) if _inside(mark, lines)]
    axis.set_yticks(marks, [f"{mark:g}" for mark in marks])
    axis.grid(alpha=0.3)


def _bars(axis, bars: list[dict], title: str) -> None:
    """Where the time goes."""
    names = [f"files at {one['system']}, {one['cores']} core{'s' * (one['cores'] > 1)}" for one in bars]
    start = [0.0] * len(bars)
    for colour, group in zip(COLOURS, bars[0]["groups"], strict=True):
        minutes = [one["groups"][group] / 60 for one in bars]
        axis.barh(names, minutes, left=start, color=colour, label=group)
        start = [a + b for a, b in zip(start, minutes, strict=True)]
    for k, one in enumerate(bars):
        axis.text(start[k] + 0.01 * max(start), k, f"{one['total'] / 60:.1f} min", va="center", fontsize=9)
    axis.invert_yaxis()
    axis.set_xlim(0, 1.16 * max(start))
    axis.set_xlabel("predicted time, minutes")
    axis.set_title(title, fontsize=11)
    axis.grid(axis="x", alpha=0.3)
    axis.set_axisbelow(True)


def _inside(mark: float, lines: dict) -> bool:
    minutes = [y / 60 for points in lines.values() for _, y in points]
    return min(minutes) / 1.5 < mark < 1.5 * max(minutes)
