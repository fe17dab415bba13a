"""The history of the ratios of `make bench`, and which of them changed.

    python benchmarks/speed_watch.py                    adds benchmarks/results/bench.json to the history, compares, draws
    python benchmarks/speed_watch.py --history FILE     another history
    python benchmarks/speed_watch.py --accept "WHY"     the changes of this run are intended: later runs are compared with it and those after it

A ratio says how many times faster hushgraph is than SciPy, in one run on one machine; it does not depend on how busy or how new the machine is as
much as seconds do. Two runs of one version differed by 11 % at most (2026-11-18, 2 virtual cores of an AMD EPYC; the first two lines of the history);
another processor of that name had up to 55 % more, with the same code (the third line).

The rule: the baseline of a machine is the last accepted run on it, or the first one if none was accepted, and all runs after it that did not fail.
A machine is a kind of processor with its threads, NumPy and SciPy. A ratio is compared with the first run of the baseline that has it, since small steps add up,
and with the median of its last five runs, since the first run can be a slow one. More than 15 % away from either is printed, with the commits
between which it changed. A ratio that got worse, or that the baseline has and the run does not, fails: the program ends with status 1, the run never
becomes a part of the baseline, and every later run fails too until the ratio is back or a run is accepted. Directly after a run, --accept accepts it
without measuring again.

Writes benchmarks/results/speed_history.jsonl, one line for each run, and speed_history.svg beside it. The history is replaced as a whole. A line that is
no run is named and left out of the comparison, and the status is 1; the file keeps it until it is mended, deleted or a run is accepted. It does not stop
the program: the run that was just measured, for many minutes, is compared and written all the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hushgraph._atomic import atomic_file

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
TOLERANCE, LAST = 0.15, 5
RATIOS = {  # name: seconds of a rival, seconds of ours
    "forward": ("scipy_forward", "forward"),
    "inverse": ("scipy_inverse", "inverse"),
    "denoise, sgwt_sure": ("scipy_forward", "denoise"),
    "denoise, sgwt_deep": ("scipy_forward", "denoise_deep"),
    "forward, float32": ("scipy_forward", "forward_float32"),
    "forward, random weights": ("scipy_forward", "forward_weighted"),
    "forward, one of 8 signals": ("scipy_forward", "forward_of_8"),
    "forward, tuned SciPy": ("tuned_forward", "forward"),
    "inverse, tuned SciPy": ("tuned_inverse", "inverse"),
    "forward, PyGSP": ("pygsp_forward", "forward"),
    "inverse, PyGSP": ("pygsp_inverse", "inverse"),
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
            label: round(row[theirs] / row[ours], 3)
            for label, (theirs, ours) in RATIOS.items()
            if is_positive(row.get(theirs)) and is_positive(row.get(ours))
        }
        for row in report["rows"]
    }
    processor = report["machine"]["processor"].split(", Python")[0]
    versions = [f"{name} {'.'.join(report['machine'][name.lower()].split('.')[:2])}" for name in ("NumPy", "SciPy")]
    machine = ", ".join([processor, f"{report['machine']['threads']} threads", *versions])
    return {"date": report["date"], "commit": name, "machine": machine, "ratios": ratios}


def is_positive(number: object) -> bool:
    """Return whether seconds or a ratio can be compared."""
    return isinstance(number, int | float) and 0 < number < float("inf")


def is_run(line: object) -> bool:
    """Return whether a line of the history, read as JSON, is a run."""
    if not isinstance(line, dict) or not isinstance(line.get("ratios"), dict):
        return False
    if not all(isinstance(line.get(name), str) for name in ("date", "commit", "machine")):
        return False
    return all(isinstance(ratios, dict) and all(map(is_positive, ratios.values())) for ratios in line["ratios"].values())


def read(path: Path) -> tuple[list[dict], list[tuple[int, str]]]:
    """Return the runs of a history, and the number and text of each line that is no run."""
    runs, damaged = [], []
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else []
    for number, line in enumerate(lines, start=1):
        try:
            run = json.loads(line or "{}")
        except ValueError:
            run = None
        if is_run(run):
            runs.append(run)
        elif line.strip():
            damaged.append((number, line))
    return runs, damaged


def baseline_of(history: list[dict], machine: str) -> tuple[list[dict], list[dict]]:
    """Return the runs that new ones on a machine are compared with, and the failed runs after the last of them."""
    same = [run for run in history if run["machine"] == machine]
    begin = max((k for k, run in enumerate(same) if "accepted" in run), default=0)
    good = [k for k in range(begin, len(same)) if not same[k].get("failed")]
    return [same[k] for k in good], same[good[-1] + 1 :] if good else []


def medians(runs: list[dict]) -> dict[tuple[str, str], float]:
    """Return the median of each ratio over some runs; the key is graph and name."""
    values: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        for graph, ratios in run["ratios"].items():
            for name, ratio in ratios.items():
                values.setdefault((graph, name), []).append(ratio)
    return {key: float(np.median(known)) for key, known in values.items()}


def is_change(before: float, now: float | None) -> bool:
    """Return whether a ratio is more than 15 % away from what it was before, or was not measured."""
    return now is None or abs(now / before - 1) > TOLERANCE


def changes(history: list[dict], new: dict) -> list[dict]:
    """Return the ratios of `new` that are more than 15 % away from the baseline of its machine, or missing, and the commits between which each changed.

    >>> old = {"commit": "a", "machine": "m", "ratios": {"roads": {"forward": 10.0, "inverse": 40.0}}}
    >>> new = {"commit": "b", "machine": "m", "ratios": {"roads": {"forward": 8.0, "inverse": 41.0}}}
    >>> changes([old], new)
    [{'graph': 'roads', 'ratio': 'forward', 'before': 10.0, 'now': 8.0, 'change': -0.2, 'commits': 'a..b'}]
    """
    good, failed = baseline_of(history, new["machine"])
    found = {}
    for (graph, name), before, earlier in expected(good):
        runs = [earlier, *failed, new]
        ratios = [run["ratios"].get(graph, {}).get(name) for run in runs]
        now = ratios[-1]
        if is_change(before, now):
            last_good = max((k for k in range(1, len(runs)) if not is_change(before, ratios[k])), default=0)
            found[graph, name] = {
                "graph": graph,
                "ratio": name,
                "before": before,
                "now": now,
                "change": None if now is None else round(now / before - 1, 3),
                "commits": "..".join(dict.fromkeys(run["commit"] for run in runs[last_good : last_good + 2])),
            }
    return list(found.values())


def expected(good: list[dict]) -> Iterator[tuple[tuple[str, str], float, dict]]:
    """Yield graph and name, value and run of what each ratio is compared with: its first run, then the median of the last runs."""
    firsts: dict[tuple[str, str], tuple[float, dict]] = {}
    for run in good:
        for key, ratio in medians([run]).items():
            firsts.setdefault(key, (ratio, run))
    for key, (ratio, run) in firsts.items():
        yield key, ratio, run
    for key, ratio in medians(good[-LAST:]).items():
        yield key, ratio, good[-1]


def is_worse(change: dict) -> bool:
    """Return whether a change fails: a ratio that is smaller, or missing."""
    return change["change"] is None or change["change"] < 0


def sentence(change: dict) -> str:
    """Return a change in words."""
    what = f"{change['ratio']} on {change['graph']}: {change['before']:.2f} -> "
    if change["change"] is None:
        return f"missing: {what}not measured, {change['commits']}"
    word = "slower" if is_worse(change) else "faster"
    where = change["commits"] if ".." in change["commits"] else f"at {change['commits']}, as before"
    return f"{word}: {what}{change['now']:.2f} ({change['change']:+.0%}), {where}"


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
        for k, name in enumerate(RATIOS):
            look = {"color": mpl.colormaps["tab20"](2 * k % 20 + 2 * k // 20), "marker": "os"[2 * k // 20]}
            panel.plot([line["ratios"][graph].get(name, np.nan) for line in lines], label=name, **look)
        panel.set(title=graph, yscale="log", xticks=range(len(lines)))
        panel.set_xticklabels([f"{line['date']}\n{line['commit'][:7]}" for line in lines], rotation=90, fontsize=7)
        panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("times as fast as SciPy, or as the one named", fontsize=9)
    panels[0][0].yaxis.set_major_formatter("{x:g}")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.savefig(path)
    plt.close(figure)


def write(path: Path, history: list[dict], damaged: list[tuple[int, str]]) -> None:
    """Write the runs of a history and draw them; lines that are no run stay where they were."""
    lines = [json.dumps(run) for run in history]
    for number, line in damaged:
        lines.insert(number - 1, line)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, sync=True) as draft:
        draft.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    draw(history, path.with_suffix(".svg"))


def main() -> int:
    """Add a run to the history, print what changed, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=Path, default=RESULTS / "bench.json")
    parser.add_argument("--history", type=Path, default=RESULTS / "speed_history.jsonl")
    parser.add_argument("--accept", default="")
    arguments = parser.parse_args()
    report = json.loads(arguments.report.read_text())
    new = entry(report, report.get("commit") or commit())
    if not any(new["ratios"].values()):
        print(f"expected ratios in {arguments.report}, which has none; run make bench again. The history is as before")
        return 1
    history, damaged = read(arguments.history)
    found = changes(history, new)
    n_compared = len(baseline_of(history, new["machine"])[0])
    is_failed = any(is_worse(change) for change in found) and not arguments.accept
    if arguments.accept:
        new["accepted"] = arguments.accept
    if is_failed:
        new["failed"] = True
    write(arguments.history, [*history, new], [] if arguments.accept else damaged)
    for number, line in damaged:
        print(f"line {number} of {arguments.history} is no run ({line[:40]!r}...): mend it or delete it; --accept deletes it, too")
    for change in found:
        print(sentence(change))
    if not n_compared:
        print(f"nothing to compare with: this is the first run on {new['machine']}")
    elif not found:
        print(
            f"no ratio changed by more than {TOLERANCE:.0%}, compared with {n_compared} run{'s' * (n_compared > 1)} on {new['machine']}"
        )
    if is_failed:
        print('later runs are not compared with this one; if its ratios are intended, accept them: make bench ACCEPT="why"')
    return int(is_failed or (bool(damaged) and not arguments.accept))


if __name__ == "__main__":
    sys.exit(main())
