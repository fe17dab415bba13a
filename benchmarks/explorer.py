"""How long a move of the explorer's slider takes on 10,000 junctions: in the server, and until a browser shows it.

    python benchmarks/explorer.py [junctions]

The browser is Chromium without a GPU (CHROMIUM names another). Writes Markdown to the screen and to benchmarks/results/explorer.md.
"""

from __future__ import annotations

import datetime
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

import httpx
from bench import RESULTS
from playwright.sync_api import sync_playwright

import hushgraph as hg
from hushgraph.experiments.stage import machine
from hushgraph.explorer.guard import TOKEN_HEADER
from hushgraph.explorer.server import serve
from hushgraph.privacy.counting import count_events
from hushgraph.privacy.ledger.budget import Ledger

LIMIT = 0.5  # seconds for a move
MOVES = 9
SHOWN = "(before) => document.body.dataset.shown && document.body.dataset.shown !== before"
OPEN = "() => !document.getElementById('main').hidden"
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
RESTED = "() => document.body.dataset.shown && !document.body.dataset.shown.endsWith('moving')"


def data(kind: str, n: int, folder: Path) -> dict:
    graph = hg.datasets.city(n)
    if kind == "generated city":
        return {"graph": graph}
    events = hg.datasets.trips(graph, n_people=4 * graph.n)
    counts = count_events(graph, events, unit="person", adjacency="add-remove", max_nodes=2, max_per_node=1, max_distance=200)
    ledger = Ledger.create(folder / "budget.db", dataset="trips", unit="person", adjacency="add-remove", epsilon=1, delta=1e-6)
    return {"events": counts, "ledger": ledger}


def start(given: dict) -> str:
    """The address of an explorer; in a process of its own nothing is warm but what it warms itself."""
    told, ready = [], threading.Event()

    def on_ready(address):
        told.append(address)
        ready.set()

    threading.Thread(target=serve, kwargs={**given, "open_browser": False, "on_ready": on_ready}, daemon=True).start()
    ready.wait(120)
    return told[0]


def in_server(address: str) -> list[float]:
    """Seconds of the first move, of later ones (median), of the chosen method at rest; as a client of the server sees them."""
    url, token = address.split("#token=")
    with httpx.Client(base_url=url, headers={TOKEN_HEADER: token}, timeout=120, transport=httpx.HTTPTransport(retries=20)) as web:
        time.sleep(2.0)  # as long as nobody has touched the slider

        def look(epsilon: float, moving: bool) -> float:
            began = time.perf_counter()
            web.post("/api/view", json={"epsilon": round(epsilon, 4), "moving": moving}).raise_for_status()
            return time.perf_counter() - began

        moves = [look(0.3 + 0.013 * k, True) for k in range(MOVES)]
        return [moves[0], median(moves[1:]), look(0.6, False)]


def in_browser(address: str) -> list[float]:
    """The same, from a key on the slider to the page that shows the answer; the first while the default method is at its first map."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        page.wait_for_function(OPEN)
        time.sleep(2.0)  # a hand that reaches for the slider

        def press() -> float:
            before = page.evaluate("() => document.body.dataset.shown ?? ''")
            page.focus("#slider")
            began = time.perf_counter()
            page.keyboard.press("ArrowRight")
            page.wait_for_function(SHOWN, arg=before, timeout=60_000)
            page.evaluate(DRAWN)
            return time.perf_counter() - began

        moves = [press() for _ in range(MOVES)]
        began = time.perf_counter()
        page.wait_for_function(RESTED, timeout=120_000)
        rest = time.perf_counter() - began
        browser.close()
    return [moves[0], median(moves[1:]), rest]


def measured(kind: str, where: str, n: int) -> list[float]:
    """In a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        address = start(data(kind, n, Path(folder)))
        return in_server(address) if where == "server" else in_browser(address)


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    lines = ["| data | seen from | first move, s | later moves, s | at rest, s |", "|---|---|---|---|---|"]
    slow = []
    for kind in ("generated city", "private events"):
        for where in ("server", "browser"):
            with multiprocessing.get_context("spawn").Pool(1) as alone:
                seconds = alone.apply(measured, (kind, where, n))
            lines.append(f"| {kind} | {where} | " + " | ".join(f"{s:.2f}" for s in seconds) + " |")
            print(lines[-1], flush=True)
            slow += [lines[-1]] if n <= 10_000 and seconds[1] >= LIMIT else []
    head = (
        f"{datetime.date.today().isoformat()}, {machine()}; city({n}), {hg.datasets.city(n).n:,} junctions, median of {MOVES - 1} later moves. "
        "Moves use the quick method, rest the default one; the browser is Chromium without a GPU, its times include the drawing of both maps, "
        "and its rest the pause of 0.35 s before the default method is asked. Its first move comes two seconds after the page has opened, while the "
        "default method is still at the first map and has to be given up."
    )
    text = "\n".join([head, "", *lines, ""])
    print(text)
    (RESULTS / "explorer.md").write_text(text)
    assert not slow, f"later moves must take less than {LIMIT} s: {slow}"


if __name__ == "__main__":
    main()
