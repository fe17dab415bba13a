"""The time to read a checked graph from a file of every format, compared with igraph, pandas, pyarrow and SciPy in the same run.

    python benchmarks/files.py                      10 million edges
    python benchmarks/files.py --edges 2000000

The files are generated in a temporary folder. GraphML with as many data as OSMnx writes has a tenth as many edges, quoted text a tenth, and GML,
which is read token by token, a hundredth. Writes Markdown to the screen and to benchmarks/results/files.md.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import importlib
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from bench import RESULTS
from scipy import io as scipy_io, sparse

from hushgraph.experiments.stage import machine
from hushgraph.files.graphs import read_edge_table, read_graph, write_graph
from hushgraph.graphs.graph import Graph

LIMIT = 10.0  # seconds for 10 million edges
FORMATS = [
    "npz, no weights", "npz", "npz of SciPy", "parquet", "mtx", "mtx, no weights", "SNAP, ids close together", "SNAP, .gz", "SNAP, ids of 11 digits", "csv", "csv, text ids", "graphml",
]  # fmt: skip
FEWER = {"csv, quoted text ids": 10, "graphml, 9 data per edge": 10, "gml": 100}  # so many times fewer edges
RIVALS = "igraph", "pandas", "pyarrow", "SciPy"
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
    elif name == "csv, quoted text ids":
        path = folder / "a.csv"
        write_lines(path, pairs, '"n,{}","n,{}",{!r}\n', "source,target,weight\n", weights)
    elif name in FEWER:
        path = folder / f"a.{name.split(',')[0]}"
        (write_gml if name == "gml" else write_streets)(path, pairs, weights)
    elif name == "csv":
        path = folder / "a.csv"
        write_lines(path, pairs, "{},{},{!r}\n", "source,target,weight\n", weights)
    else:
        graph = Graph.from_edges(pairs, weights=None if "no weights" in name else weights, duplicates="max")
        path = folder / f"a.{name.split(',')[0].split()[0]}"
        if "of SciPy" in name:
            sparse.save_npz(path, graph.adjacency)
        else:
            write_graph(path, graph)
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


def rivals_of(name: str, path: Path) -> dict[str, Callable[[], Any]]:
    """Functions that read the file with other packages, by the name of the package; only packages that are installed."""
    igraph, pandas, pyarrow = (_package(module) for module in ("igraph", "pandas", "pyarrow"))
    found: dict[str, Callable[[], Any]] = {}
    if name.startswith("mtx"):
        found["SciPy"] = lambda: scipy_io.mmread(path)
    if name == "npz of SciPy":
        found["SciPy"] = lambda: sparse.load_npz(path)
    if igraph and name in ("graphml", "graphml, 9 data per edge"):
        found["igraph"] = lambda: igraph.Graph.Read_GraphML(str(path))
    if igraph and name == "gml":
        found["igraph"] = lambda: igraph.Graph.Read_GML(str(path))
    if igraph and name == "SNAP, ids close together":  # with large ids igraph makes as many nodes
        found["igraph"] = lambda: igraph.Graph.Read_Edgelist(str(path), directed=False)
    if name.startswith(("csv", "SNAP")):
        separator, names = (",", None) if name.startswith("csv") else ("\t", ["source", "target"])
        if pandas:
            header = 0 if names is None else None
            found["pandas"] = lambda: pandas.read_csv(path, sep=separator, header=header, names=names)
        if pyarrow:
            reader = importlib.import_module("pyarrow.csv")
            options = reader.ReadOptions(column_names=names), reader.ParseOptions(delimiter=separator)
            found["pyarrow"] = lambda: reader.read_csv(path, *options)
    if name == "parquet":
        if pandas:
            found["pandas"] = lambda: pandas.read_parquet(path)
        if pyarrow:
            found["pyarrow"] = lambda: importlib.import_module("pyarrow.parquet").read_table(path)
    return found


def _package(module: str) -> ModuleType | None:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def measured(name: str, path: Path) -> str:
    """The row of the table for a file; readers take turns, so that other work on the machine slows all of them."""
    readers = {"graph": lambda: read_graph(path, duplicates="max"), "edges": lambda: read_edge_table(path), **rivals_of(name, path)}
    times: dict[str, list[float]] = {reader: [] for reader in readers}
    busy = []
    for _ in range(5):
        for reader, read in readers.items():
            start, start_busy = time.perf_counter(), time.process_time()
            read()
            times[reader].append(time.perf_counter() - start)
            busy += [time.process_time() - start_busy] * (reader == "graph")
    best = {reader: min(seconds) for reader, seconds in times.items()}
    n_edges = read_graph(path, duplicates="max").n_edges
    if name not in FEWER:
        limit = LIMIT * max(n_edges, 1_000_000) / 1e7
        assert min(best["graph"], *busy) < limit, f"{name} took {best['graph']:.1f} s"
    cells = f"{n_edges:,} | {path.stat().st_size / 1e6:.0f} | {best['graph']:.2f} | {best['edges']:.2f} | {min(busy):.2f}"
    ratios = (f"{best[rival] / best['graph']:.2f}" if rival in best else "" for rival in RIVALS)
    return f"| {name} | {cells} | {' | '.join(ratios)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", type=int, default=10_000_000, help="edges of the largest files")
    m = parser.parse_args().edges
    columns = ["file", "edges", "megabytes", "seconds", "of them the file", "processor time", *RIVALS]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    with tempfile.TemporaryDirectory() as folder:
        read_graph(prepared(Path(folder), "csv", *edges(1000)), duplicates="max")  # imports and warms up
        for name in [*FORMATS, *FEWER]:
            path = prepared(Path(folder), name, *edges(m // FEWER.get(name, 1)))
            lines.append(measured(name, path))
            print(lines[-1], flush=True)
            path.unlink()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    head = (
        f"{datetime.date.today().isoformat()}, {machine()}; generated edges, best of 5; largest memory {memory:.1f} GB. `read_graph` returns a "
        "checked graph. The last columns are times of other readers divided by the time of `read_graph` (above 1: slower than hushgraph); "
        "igraph returns a graph, pandas and pyarrow only columns, SciPy only a matrix."
    )
    text = "\n".join([head, "", *lines, ""])
    print(text)
    (RESULTS / "files.md").write_text(text)


if __name__ == "__main__":
    main()
