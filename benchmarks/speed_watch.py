"""The history of the ratios of `make bench`, and which of them changed.

    python benchmarks/speed_watch.py                    appends benchmarks/results/bench.json to the history, compares, draws
    python benchmarks/speed_watch.py --history FILE     another history

A ratio says how many times faster hushgraph is than SciPy, in one run on one machine; it does not depend on how busy or how new the machine is as
much as seconds do. A ratio is compared with the median of the last five entries of the same graph and the same kind of machine. A ratio that is more
than 15 % away is printed with the commit of the run and that of the entry before; the program ends with status 1 if one got worse.
Writes benchmarks/results/speed_history.jsonl, one line for each run, and speed_history.svg beside it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
TOLERANCE, LAST = 0.15, 5
RATIOS = {  # name: seconds of SciPy or of another transform of ours, seconds of ours
    "forward": ("scipy_forward", "forward"),
    "inverse": ("scipy_inverse", "inverse"),
    "denoise, sgwt_sure": ("scipy_forward", "denoise"),
    "denoise, sgwt_deep": ("scipy_forward", "denoise_deep"),
    "forward, float32": ("scipy_forward", "forward_float32"),
    "forward, random weights": ("scipy_forward", "forward_weighted"),
    "forward, one of 8 signals": ("scipy_forward", "forward_of_8"),
}


def commit() -> str:
    """Return the commit of the working tree, with a + if files besides the results were changed since."""

    def answer(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    is_changed = bool(answer("status", "--porcelain", "-uno", "--", ".", ":!benchmarks/results"))
    return (answer("rev-parse", "--short=10", "HEAD") or "unknown") + "+" * is_changed


def entry(report: dict, name: str) -> dict:
    """Return one line of the history: date, commit, machine, and the ratios of each graph."""
    ratios = {
        row["graph"]: {
            label: round(row[theirs] / row[ours], 3) for label, (theirs, ours) in RATIOS.items() if theirs in row and ours in row
        }
        for row in report["rows"]
    }
    machine = f"{report['machine']['processor']}, {report['machine']['threads']} threads"
    return {"date": report["date"], "commit": name, "machine": machine, "ratios": ratios}


def changes(history: list[dict], new: dict) -> list[dict]:
    """Return the ratios of `new` that are more than 15 % away from the median of the last entries of the same machine.

    >>> old = {"commit": "a", "machine": "m", "ratios": {"roads": {"forward": 10.0, "inverse": 40.0}}}
    >>> new = {"commit": "b", "machine": "m", "ratios": {"roads": {"forward": 8.0, "inverse": 41.0}}}
    >>> changes([old], new)
    [{'graph': 'roads', 'ratio': 'forward', 'before': 10.0, 'now': 8.0, 'change': -0.2, 'commits': 'a..b'}]
    """
    earlier = [line for line in history if line["machine"] == new["machine"]][-LAST:]
    found = []
    for graph, ratios in new["ratios"].items():
        for name, now in ratios.items():
            known = [line["ratios"][graph][name] for line in earlier if name in line["ratios"].get(graph, {})]
            if known and abs(now / (before := float(np.median(known))) - 1) > TOLERANCE:
                found.append(
                    {
                        "graph": graph,
                        "ratio": name,
                        "before": before,
                        "now": now,
                        "change": round(now / before - 1, 3),
                        "commits": f"{earlier[-1]['commit']}..{new['commit']}",
                    }
                )
    return found


def draw(history: list[dict], path: Path) -> None:
    """Draw each ratio over the runs, a panel for each graph."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    graphs = list(dict.fromkeys(graph for line in history for graph in line["ratios"]))
    figure, panels = plt.subplots(
        1, len(graphs), figsize=(1 + 3.6 * len(graphs), 4), sharey=True, squeeze=False, layout="constrained"
    )
    for panel, graph in zip(panels[0], graphs, strict=True):
        lines = [line for line in history if graph in line["ratios"]]
        for name in RATIOS:
            panel.plot([line["ratios"][graph].get(name, np.nan) for line in lines], marker="o", label=name)
        panel.set(title=graph, yscale="log", xticks=range(len(lines)))
        panel.set_xticklabels([f"{line['date']}\n{line['commit'][:7]}" for line in lines], rotation=90, fontsize=7)
        panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("times as fast as SciPy's forward or inverse transform")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.savefig(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=Path, default=RESULTS / "bench.json")
    parser.add_argument("--history", type=Path, default=RESULTS / "speed_history.jsonl")
    arguments = parser.parse_args()
    history = [json.loads(line) for line in arguments.history.read_text().splitlines()] if arguments.history.exists() else []
    new = entry(json.loads(arguments.report.read_text()), commit())
    found = changes(history, new)
    arguments.history.parent.mkdir(parents=True, exist_ok=True)
    with arguments.history.open("a") as file:
        file.write(json.dumps(new) + "\n")
    draw([*history, new], arguments.history.with_suffix(".svg"))
    for change in found:
        word = "slower" if change["change"] < 0 else "faster"
        print(
            f"{word}: {change['ratio']} on {change['graph']}: {change['before']:.2f} -> {change['now']:.2f} ({change['change']:+.0%}), {change['commits']}"
        )
    if not found:
        print(f"no ratio changed by more than {TOLERANCE:.0%}; the history has {len(history) + 1} runs of all machines")
    return int(any(change["change"] < 0 for change in found))


if __name__ == "__main__":
    sys.exit(main())
