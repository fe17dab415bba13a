"""How long a new user waits: the first call in a new process, commands, the explorer, each with an empty home folder.

    python benchmarks/start.py

HUSHGRAPH_DATA names the folder of real data: streets of Manhattan and taxi pickups. The browser is Chromium without a GPU (CHROMIUM
names another), and is open before the explorer starts. Writes Markdown to the screen and to benchmarks/results/start.md.
"""

from __future__ import annotations

import datetime
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench import RESULTS
from playwright.sync_api import sync_playwright

import hushgraph as hg
from hushgraph.experiments.stage import machine

ROUNDS = 5
EVENTS = "nyc_taxi_pickups_2013-11-18_16h.parquet"
FIRST = """
import time
began = time.perf_counter()
import numpy as np
import hushgraph as hg
graph = hg.datasets.city(5000)
noisy = hg.bernoulli_signal(graph, p=0.01, k=4) + np.random.default_rng(1).normal(0, 2, graph.n)
times = [time.perf_counter()]
for _ in range(2):
    graph.forget()
    hg.denoise(graph, noisy, sigma=2)
    times.append(time.perf_counter())
print(times[0] - began, times[1] - times[0], times[2] - times[1])
"""
BUDGET = ["budget", "create", "budget.db", "--dataset", "trips", "--unit", "trip", "--epsilon", "100", "--weak-guarantee"]
RELEASE = [
    "release", "streets.npz", "events.parquet", "--ledger", "budget.db", "--epsilon", "0.5", "--unit", "trip", "--assume-bound",
    "--max-nodes", "1", "--max-per-node", "1", "--lon", "pickup_lon", "--lat", "pickup_lat", "--max-distance", "200", "--public-graph",
]  # fmt: skip
OPEN = "() => !document.getElementById('main').hidden"
RESTED = "() => document.body.dataset.shown && !document.body.dataset.shown.endsWith('moving')"


def in_new_home(*words: str, folder: Path) -> str:
    """What a new process prints that has never seen this machine."""
    with tempfile.TemporaryDirectory() as home:
        return subprocess.run(
            [sys.executable, *words], cwd=folder, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | {"HOME": home}
        ).stdout


def seconds_of(*words: str, folder: Path) -> float:
    began = time.perf_counter()
    in_new_home(*words, folder=folder)
    return time.perf_counter() - began


def explorer(folder: Path, page) -> tuple[float, float]:
    """Seconds from the command until the page is there, and until it shows the map of the default method."""
    with tempfile.TemporaryDirectory() as home:
        began = time.perf_counter()
        server = subprocess.Popen(
            [sys.executable, "-m", "hushgraph", "explore", "--no-browser"], cwd=folder, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"HOME": home},
        )  # fmt: skip
        try:
            address = next(word for line in server.stdout for word in line.split() if "#token=" in word)
            page.goto(address)
            page.wait_for_function(OPEN)
            opened = time.perf_counter() - began
            page.wait_for_function(RESTED, timeout=60_000)
            return opened, time.perf_counter() - began
        finally:
            server.terminate()
            server.wait()
            page.goto("about:blank")


def main():
    rows = []
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        shutil.copy(Path(os.environ["HUSHGRAPH_DATA"]) / EVENTS, folder / "events.parquet")
        hg.write_graph(folder / "streets.npz", hg.datasets.manhattan().graph)
        found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
        first = [[float(part) for part in in_new_home("-c", FIRST, folder=folder).split()] for _ in range(ROUNDS)]
        for column, what in enumerate(("import and a generated city of 5,000 nodes", "first `denoise` of it", "second `denoise`")):
            rows.append((what, median(times[column] for times in first)))
        hushgraph = ("-m", "hushgraph")
        info = [seconds_of(*hushgraph, "info", "streets.npz", folder=folder) for _ in range(ROUNDS)]
        rows.append(("`hushgraph info` of Manhattan's streets", median(info)))
        in_new_home(*hushgraph, *BUDGET, folder=folder)
        release = [seconds_of(*hushgraph, *RELEASE, "-o", f"out{k}", folder=folder) for k in range(ROUNDS)]
        rows.append(("`hushgraph release`: 16,010 taxi pickups on Manhattan's streets", median(release)))
        page = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"]).new_page(
            viewport={"width": 1280, "height": 800}
        )
        opened, shown = zip(*(explorer(folder, page) for _ in range(ROUNDS)), strict=True)
        rows.append(("`hushgraph explore`: page visible", median(opened)))
        rows.append(("`hushgraph explore`: map of the default method on it", median(shown)))
    head = (
        f"{datetime.date.today().isoformat()}, {machine()}. Wall time in a new process with an empty home folder, median of {ROUNDS}; "
        "those of commands include the start of Python. Chromium has no GPU here and was open before."
    )
    text = "\n".join([head, "", "| what | s |", "|---|---|", *(f"| {what} | {seconds:.2f} |" for what, seconds in rows), ""])
    print(text)
    (RESULTS / "start.md").write_text(text)


if __name__ == "__main__":
    main()
