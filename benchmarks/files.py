"""How long 10 million edges take to load, from every format, to a checked graph; the files are made in a temporary folder.

    python benchmarks/files.py [edges]

GraphML with as many data as OSMnx writes has a tenth as many edges, GML, which is read token by token, a hundredth. Writes Markdown
to the screen and to benchmarks/results/files.md.
"""

from __future__ import annotations

import datetime
import gzip
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench import RESULTS

from hushgraph.experiments.stage import machine
from hushgraph.graph import Graph
from hushgraph.io import read_graph, write_graph

LIMIT = 10.0  # seconds for 10 million edges
FORMATS = [
    "npz, no weights", "npz", "parquet", "mtx", "SNAP, ids close together", "SNAP, .gz", "SNAP, ids of 11 digits", "csv", "csv, text ids", "graphml",
]  # fmt: skip
FEWER = {"graphml, 9 data per edge": 10, "gml": 100}  # so many times fewer edges
STREETS = ["osmid", "highway", "lanes", "maxspeed", "name", "oneway", "reversed", "weight", "geometry"]


def edges(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Near neighbours among 0.7 m nodes in random order, with weights of all digits."""
    rng = np.random.default_rng(0)
    n = max(2, 7 * m // 10)
    low = rng.integers(0, n - 1, m)
    pairs = np.stack([low, np.minimum(low + rng.integers(1, 2000, m), n - 1)], axis=1)
    return pairs, rng.random(m)


def write_lines(path: Path, pairs: np.ndarray, form: str, head: str = "", values=None):
    with gzip.open(path, "wb", compresslevel=1) if path.suffix == ".gz" else path.open("wb") as file:
        file.write(head.encode())
        for start in range(0, len(pairs), 200_000):
            rows = pairs[start : start + 200_000].tolist()
            more = [()] * len(rows) if values is None else values[start : start + 200_000, None].tolist()
            file.write("".join(form.format(*row, *value) for row, value in zip(rows, more, strict=True)).encode())


def prepared(folder: Path, name: str, pairs: np.ndarray, weights: np.ndarray) -> Path:
    """The file of that name."""
    if name.startswith("SNAP"):
        path = folder / ("a.txt.gz" if name.endswith(".gz") else "a.txt")
        write_lines(path, pairs * 7919 + 10**10 if "11 digits" in name else pairs, "{}\t{}\n")
    elif name == "csv, text ids":
        path = folder / "a.csv"
        write_lines(path, pairs, "n{},n{}\n", "source,target\n")
    elif name in FEWER:
        path = folder / f"a.{name.split(',')[0]}"
        (write_gml if name == "gml" else write_streets)(path, pairs, weights)
    elif name == "csv":
        path = folder / "a.csv"
        write_lines(path, pairs, "{},{},{!r}\n", "source,target,weight\n", weights)
    else:
        graph = Graph.from_edges(pairs, weights=None if "no weights" in name else weights, duplicates="max")
        path = write_graph(folder / f"a.{name.split(',')[0]}", graph)
    return path


def write_streets(path: Path, pairs: np.ndarray, weights: np.ndarray):
    """GraphML as OSMnx writes it: places of nodes, nine data per edge, a line for each."""
    rng = np.random.default_rng(1)
    n = int(pairs.max()) + 1
    places = np.stack([rng.uniform(40, 41, n), rng.uniform(-74, -73, n)], axis=1).round(7).tolist()
    keys = [("y", "node", "y"), ("x", "node", "x"), *((f"d{i}", "edge", name) for i, name in enumerate(STREETS))]
    with path.open("w") as file:
        file.write("<?xml version='1.0' encoding='utf-8'?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n")
        file.writelines(f'  <key id="{key}" for="{whose}" attr.name="{name}" attr.type="string" />\n' for key, whose, name in keys)
        file.write('  <graph edgedefault="directed">\n')
        for i, (y, x) in enumerate(places):
            file.write(
                f'    <node id="{4 * 10**9 + 7 * i}">\n      <data key="y">{y}</data>\n      <data key="x">{x}</data>\n    </node>\n'
            )
        for (i, j), weight in zip(pairs.tolist(), weights.tolist(), strict=True):
            line = ", ".join(f"{x} {y}" for y, x in (places[i], places[j]))
            texts = [
                10**8 + i,
                "residential",
                2,
                "25 mph",
                f"{i % 200}th St &amp; Broadway",
                True,
                False,
                weight,
                f"LINESTRING ({line})",
            ]
            data = "".join(f'      <data key="d{k}">{text}</data>\n' for k, text in enumerate(texts))
            file.write(f'    <edge source="{4 * 10**9 + 7 * i}" target="{4 * 10**9 + 7 * j}" id="0">\n{data}    </edge>\n')
        file.write("  </graph>\n</graphml>\n")


def write_gml(path: Path, pairs: np.ndarray, weights: np.ndarray):
    with path.open("w") as file:
        file.write("graph [\n")
        file.writelines(f'  node [\n    id {i}\n    label "n{i}"\n  ]\n' for i in range(int(pairs.max()) + 1))
        for (i, j), weight in zip(pairs.tolist(), weights.tolist(), strict=True):
            file.write(f"  edge [\n    source {i}\n    target {j}\n    weight {weight!r}\n  ]\n")
        file.write("]\n")


def timed(path: Path) -> tuple[float, float, Graph]:
    """(seconds, seconds of the processors, graph)."""
    start, busy = time.perf_counter(), time.process_time()
    graph = read_graph(path, duplicates="max")
    return time.perf_counter() - start, time.process_time() - busy, graph


def main():
    m = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    lines = ["| file | edges | megabytes | seconds | of processor time |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        warm = prepared(Path(folder), "csv", *edges(1000))
        timed(warm)  # imports and warms up
        for name in [*FORMATS, *FEWER]:
            path = prepared(Path(folder), name, *edges(m // FEWER.get(name, 1)))
            seconds, busy, graph = min((timed(path) for _ in range(2)), key=lambda found: found[0])
            cells = f"{graph.n_edges:,} | {path.stat().st_size / 1e6:.0f} | {seconds:.2f} | {busy:.2f}"
            lines.append(f"| {name} | {cells} |")
            print(lines[-1], flush=True)
            path.unlink()
            if name not in FEWER:
                assert min(seconds, busy) < LIMIT * max(m, 1_000_000) / 1e7, f"{name} took {seconds:.1f} s"  # others may be at work
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    head = f"{datetime.date.today().isoformat()}, {machine()}; generated edges, best of 2; largest memory {memory:.1f} GB."
    text = "\n".join([head, "", *lines, ""])
    print(text)
    (RESULTS / "files.md").write_text(text)


if __name__ == "__main__":
    main()
