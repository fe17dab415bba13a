"""Whether two versions of hushgraph give the same numbers, to the last bit, with one thread and with two.

    python benchmarks/same_bits.py --old ~/old/.venv/bin/python      this version against one in another environment
    python benchmarks/same_bits.py --old-path ~/old/src              against one in a folder; PYTHONPATH=src or --new-path for this one
    python benchmarks/same_bits.py --old-path ... --data --gpu       real maps too (HUSHGRAPH_DATA), and arrays of a GPU (CuPy)
    python benchmarks/same_bits.py --write old.json                  only this version, for machines that cannot have both;
    python benchmarks/same_bits.py --compare old.json new.json       later: what two such files say
    python benchmarks/same_bits.py --control                         can it fail? One number of each group's input moves by one ulp

Every version computes in processes of its own, one for each number of threads, and hands over a SHA-256 of type, shape and bytes of every
result. Only public names are used, so that any two versions can be compared. A result that raises, is not there, or changes with the number
of threads counts as different. Noise of releases and what is cut at random are not looked at, since nothing repeats them. BLAS has one
thread, since its bits depend on it. Writes Markdown to the screen and, unless --only chose some groups, to benchmarks/results/. The exit
code is 1 if anything differs; with --control, if any group does not notice.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import hashlib
import importlib.util
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
THREADS = (1, 2)
SHOWN = 5  # names of differences per group in the table
RAISED = "raised "
METHODS = ("auto", "let", "counts", "sgwt_deep", "sgwt_sure", "sgwt_scaled", "sgwt_exact", "sgwt_block", "sgwt_beta")
ON_GPU = ("auto", "let", "sgwt_deep", "sgwt_sure", "sgwt_scaled", "sgwt_exact")
KINDS = ("combinatorial", "normalized", "random_walk")
RULES: dict[str, dict[str, Any]] = {
    "james_stein": {"rule": "james_stein"},
    "soft": {"rule": "soft"},
    "power 1.5": {"rule": "power", "beta": 1.5},
    "power 3": {"rule": "power", "beta": 3.0},
}


# ---- digests -------------------------------------------------------------------------------------------------------


def digest(value) -> str:
    """SHA-256 of everything in `value`: of arrays and numbers type, shape and bytes."""
    found = hashlib.sha256()
    _add(found, value)
    return found.hexdigest()


def _add(found, value) -> None:
    """A float is a float64 without shape, whether it is Python's or NumPy's; the same goes for whole numbers and truth values."""
    import numpy as np

    if value is None or isinstance(value, str | bytes):
        found.update(f"{type(value).__name__}:{value!r};".encode())
    elif isinstance(value, dict):
        found.update(f"dict:{len(value)};".encode())
        for key in sorted(value, key=repr):
            _add(found, key)
            _add(found, value[key])
    elif isinstance(value, list | tuple):
        found.update(f"list:{len(value)};".encode())
        for part in value:
            _add(found, part)
    elif hasattr(value, "get") and hasattr(value, "device"):  # CuPy
        found.update(b"gpu:")
        _add(found, value.get())
    elif hasattr(value, "indptr"):  # SciPy
        _add(found, [value.shape, value.indptr, value.indices, value.data])
    elif hasattr(value, "to_numpy") and hasattr(value, "index"):  # pandas
        _add(found, [list(value.index), value.to_numpy()])
    elif isinstance(value, bool | int | float | np.ndarray | np.generic):
        _add_array(found, np.asarray(value))
    else:  # fractions, decimals
        found.update(f"{type(value).__name__}:{value};".encode())


def _add_array(found, array) -> None:
    if array.dtype.kind == "O":
        found.update(f"objects:{array.shape};".encode())
        _add(found, array.ravel().tolist())
    else:
        found.update(f"array:{array.dtype.str}:{array.shape};".encode())
        found.update(array.tobytes())


class Record:
    """The digests of one version, by name; names begin with their group."""

    def __init__(self, *, control: bool):
        self.digests: dict[str, str] = {}
        self.absent: list[str] = []
        self.group = ""
        self._control = control

    def __call__(self, name: str, make: Callable[[], Any]) -> None:
        """Note what `make` returns: one digest, or one for each entry of a dict and each number of a denoised signal."""
        name = f"{self.group}: {name}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = make()
                parts = parts_of_denoised(made) if hasattr(made, "risk_se") else made if isinstance(made, dict) else {"": made}
                found = {f"{name}, {part}" if part else name: digest(value) for part, value in parts.items()}
        except Exception as error:  # whatever it is, the other version is looked at too
            found = {name: f"{RAISED}{type(error).__name__}: {error}"}
        if twice := self.digests.keys() & found.keys():
            msg = f"two results have one name: {sorted(twice)}"
            raise SystemExit(msg)
        self.digests |= found

    def nudge(self, values):
        """The same numbers; in a control, one of them is larger by one unit in its last place."""
        import numpy as np

        if not self._control:
            return values
        moved = np.array(values)
        moved.flat[moved.size // 2] = np.nextafter(moved.flat[moved.size // 2], moved.dtype.type(np.inf))
        return moved if moved.ndim else moved.item()

    def has(self, *packages: str) -> bool:
        """Whether these packages are there; what needs them is left out where they are not, and the table says so."""
        lost = [package for package in packages if importlib.util.find_spec(package) is None]
        self.absent += [package for package in lost if package not in self.absent]
        return not lost


def parts_of_denoised(result) -> dict[str, Any]:
    """What `denoise` and the baselines say, and the expected errors where there are some."""
    parts = {name: getattr(result, name) for name in ("signal", "sigma", "risk", "risk_se", "probe_se", "thresholds", "method")}
    if hasattr(result, "read"):  # files of a distributed run
        return parts | {"divergence": result.divergence, "unchanged": result.unchanged}
    if getattr(result, "node_risk", None) is not None:
        parts |= {"expected_error": result.expected_error(), "expected_error of 3 hops": result.expected_error(hops=3)}
    return parts | {"typical_error": tuple(result.typical_error), "n_values": result.n_values}


# ---- inputs --------------------------------------------------------------------------------------------------------


def noise(*shape: int, seed: int = 0, size: float = 1.0):
    """Gaussian numbers."""
    import numpy as np

    return np.random.default_rng(seed).normal(0, size, shape)


def weighted_graph(hg, n: int = 700):
    """Near points in a square, weighted by their distance, with labels; two nodes without edges at the end."""
    import numpy as np

    plain = hg.datasets.random_geometric(n, seed=3)
    matrix = hg.to_scipy(plain).tocoo()
    upper = matrix.row < matrix.col
    pairs = np.stack([matrix.row[upper], matrix.col[upper]], axis=1)
    lengths = np.sqrt(((plain.coords[pairs[:, 0]] - plain.coords[pairs[:, 1]]) ** 2).sum(axis=1)) + 1e-3
    places = np.concatenate([plain.coords, [[2.0, 2.0], [2.0, 3.0]]])
    names = [f"corner {k}" for k in range(plain.n + 2)]
    return hg.Graph.from_edges(pairs, n=plain.n + 2, weights=lengths.mean() / lengths, coords=places, labels=names)


def counts_on(hg, graph, *, size: float = 5.0, columns: int = 1):
    """Generated counts, and the same with noise."""
    import numpy as np

    if graph.coords is None:
        clean = np.rint(20 * np.maximum(np.sin(np.arange(graph.n) / 30), 0))
    else:
        clean = hg.hotspot_counts(graph, total=12 * graph.n, seed=1).astype(float)
    noisy = (clean if columns == 1 else clean[:, None]) + noise(*((graph.n,) if columns == 1 else (graph.n, columns)), size=size)
    return clean, noisy


def facts_of(hg, graph) -> dict[str, Any]:
    """All that a graph is made of."""
    return {"edges": hg.to_scipy(graph), "places": [graph.coords, graph.crs, graph.labels], "hash": graph.hash}


# ---- what is computed, group by group -------------------------------------------------------------------------------


def graphs(note: Record, hg) -> None:
    """Generated graphs, other ways to make them, and what they know of themselves."""
    import numpy as np

    made = {
        "city": lambda: hg.datasets.city(1500),
        "city, seed 5": lambda: hg.datasets.city(800, seed=5),
        "roads": lambda: hg.datasets.roads(20_000),
        "roads, seed 5": lambda: hg.datasets.roads(3000, seed=5),
        "grid": lambda: hg.datasets.grid(30, 20),
        "path": lambda: hg.datasets.path(50, weight=note.nudge(0.3)),
        "random_geometric": lambda: hg.datasets.random_geometric(600),
        "random_geometric, radius": lambda: hg.datasets.random_geometric(600, radius=0.08, seed=2),
        "weighted": lambda: weighted_graph(hg),
        "image of 4": lambda: hg.Graph.from_image((12, 17), neighbours=4),
        "image of 8": lambda: hg.Graph.from_image((12, 17), neighbours=8, diagonal_weight=1),
        "mesh": lambda: hg.Graph.from_mesh(noise(30, 3), np.random.default_rng(1).permutation(90).reshape(30, 3) % 30),
        "subgraph": lambda: hg.datasets.city(800).subgraph(np.arange(700)[::-3]),
        "product": lambda: hg.datasets.grid(9, 7).product(hg.datasets.path(5, weight=0.25)),
    }
    pairs, weights = np.random.default_rng(2).integers(0, 60, (400, 2)), np.abs(noise(400, seed=2)) + 0.1
    made |= {
        f"edges, {how}": lambda how=how: hg.Graph.from_edges(pairs, n=64, weights=weights, duplicates=how) for how in ("sum", "max")
    }
    for name, make in made.items():
        note(name, lambda make=make: facts_of(hg, make()))
    for name in ("city", "roads", "weighted", "product"):
        graph = made[name]()
        note(f"{name}, parts", lambda g=graph: {"degrees": g.degrees, "components": g.components, "unweighted": g.is_unweighted})
        for kind in KINDS:
            note(f"{name}, {kind} Laplacian", lambda g=graph, kind=kind: g.laplacian(kind))
            note(f"{name}, {kind} spectrum", lambda g=graph, kind=kind: _spectrum(g, kind))
        note(f"{name}, lambda", lambda g=graph: [g.lambda_max, g.lambda_upper])
    note("exact spectrum", lambda: _spectrum(made["grid"](), "combinatorial", exact=True))
    graph = made["weighted"]()
    values = dict(zip(reversed(graph.labels.tolist()), noise(graph.n).tolist(), strict=True))
    note("align a dict", lambda: graph.align(values))
    for size in (4, 16):
        note(f"block_partition of {size}", lambda size=size: hg.block_partition(made["roads"](), size=size))
        note(f"block_partition of {size}, weighted", lambda size=size: hg.block_partition(graph, size=size))
    orders = {"": {}, ", start": {"start": 77}, ", seed": {"seed": 3}, ", start and seed": {"start": 5, "seed": 4}}
    for name, options in orders.items():
        note(f"depth_first_order{name}", lambda options=options: hg.depth_first_order(made["roads"](), **options))
        note(f"depth_first_order, weighted{name}", lambda options=options: hg.depth_first_order(graph, **options))


def _spectrum(graph, kind, **options):
    found = graph.spectrum(kind, **options)
    return [found.lambda_max, found.lambda_upper]


def signals(note: Record, hg) -> None:
    """Generated signals and events, and what compares signals."""
    import numpy as np

    for name, graph in {"city": hg.datasets.city(900), "roads": hg.datasets.roads(5000), "weighted": weighted_graph(hg)}.items():
        note(f"bernoulli, {name}", lambda g=graph: hg.bernoulli_signal(g, p=0.01, k=4, rng=1))
        note(f"hotspots, {name}", lambda g=graph: hg.hotspot_counts(g, total=9000, n_hotspots=7, seed=2))
        note(f"smooth, {name}", lambda g=graph: hg.smooth_signal(g, seed=3))
        note(f"pieces, {name}", lambda g=graph: hg.piecewise_constant_signal(g, n_pieces=5, seed=4))
    note("trips", lambda: hg.datasets.trips(hg.datasets.city(900), n_people=2000, seed=1))
    note("one node", lambda: [hg.snr([1.0], [note.nudge(0.3)]), hg.mse([0.0], [note.nudge(0.3)])])
    truth, estimate = noise(900, 3, seed=1), note.nudge(noise(900, 3, seed=2))
    for kind in (np.float64, np.float32):
        one, other = truth.astype(kind), estimate.astype(kind)
        note(f"snr, {kind.__name__}", lambda a=one, b=other: [hg.snr(a, b), hg.snr(a[:, 1], b[:, 1])])
        note(f"mse, {kind.__name__}", lambda a=one, b=other: [hg.mse(a, b), hg.mse(a[:, 1], b[:, 1])])


def interop(note: Record, hg) -> None:
    """Graphs of other packages, there and back."""
    import numpy as np

    plain = weighted_graph(hg, 300)
    matrix = hg.to_scipy(plain).copy()
    matrix = 0.5 * (matrix + matrix.T)
    matrix.data[0] = note.nudge(matrix.data[0])
    matrix = matrix.maximum(matrix.T)
    graph = hg.Graph.from_scipy(matrix, coords=plain.coords, labels=plain.labels)
    note("scipy", lambda: facts_of(hg, graph))
    values = noise(graph.n)
    for package in ("networkx", "igraph", "geopandas"):
        if not note.has(package):
            continue
        there, back = getattr(hg, f"to_{package}"), getattr(hg.Graph, f"from_{package}")
        if package == "geopandas":
            note(package, lambda there=there, back=back: facts_of(hg, _from_tables(back, there(graph), "weight")))
        else:
            note(package, lambda there=there, back=back: facts_of(hg, back(there(graph, signals={"f": values}))))
            note(f"{package}, lengths", lambda there=there, back=back: facts_of(hg, back(there(graph), distance="weight")))
    if note.has("networkx"):
        import networkx

        street = networkx.MultiDiGraph(crs="EPSG:4326")
        for k in range(20):
            street.add_node(k * 7, x=13.0 + 0.01 * k, y=52.0 + 0.003 * k * k)
        street.add_edges_from((7 * k, 7 * ((3 * k + 1) % 20), {"length": 10.0 + k}) for k in range(20))
        note("networkx, streets", lambda: facts_of(hg, hg.Graph.from_networkx(street, distance="length", duplicates="max")))
    if note.has("pandas"):
        import pandas

        order = np.random.default_rng(0).permutation(graph.n)
        series = pandas.Series(values[order], index=graph.labels[order])
        note("a Series", lambda: hg.denoise(graph, series, sigma=1.0, method="sgwt_sure"))
        table = pandas.DataFrame({"a": series, "b": -2 * series})
        note("a DataFrame", lambda: hg.denoise(graph, table, sigma=1.0, method="let"))


def _from_tables(back, tables, weight):
    """The two tables are told apart by their shapes of geometry."""
    nodes, edges = sorted(tables, key=lambda table: table.geometry.iloc[0].geom_type != "Point")
    return back(edges, nodes=nodes, weight=weight)


def files(note: Record, hg) -> None:
    """Every format of graphs and signals: the bytes that are written, and what is read from them."""
    import numpy as np

    city = hg.datasets.city(400)
    labels = [f'node, "{k}" \u00e9 <&>' for k in range(city.n)]
    whole = hg.Graph.from_scipy(hg.to_scipy(city), coords=city.coords, labels=np.arange(city.n)[::-1] * 3 + 10**10)
    cases = {"weighted": weighted_graph(hg, 250), "city": city, "labels": whole}
    cases["text"] = hg.Graph.from_scipy(hg.to_scipy(city), coords=city.coords, labels=labels)
    cases["degrees"] = hg.Graph.from_scipy(hg.to_scipy(city), coords=note.nudge(city.coords * 1e-2), crs="lonlat")
    plain = ["npz", "graphml", "csv", "tsv", "mtx"] + ["parquet"] * note.has("pyarrow")
    endings = plain + [f"{ending}.gz" for ending in plain]
    with tempfile.TemporaryDirectory() as folder:
        for name, graph in cases.items():
            for ending in endings:
                path = Path(folder) / f"{name}.{ending}"
                note(f"{name}.{ending}, written", lambda path=path, graph=graph: _content(hg.write_graph(path, graph)))
                note(f"{name}.{ending}, read", lambda path=path: facts_of(hg, hg.read_graph(path)))
        path = Path(folder) / "osmnx.graphml"
        note("graphml for OSMnx, written", lambda: _content(hg.write_graph(path, whole, for_osmnx=True)))
        note("graphml for OSMnx, read", lambda: facts_of(hg, hg.read_graph(path)))
        _read_texts(note, hg, Path(folder))
        _signal_files(note, hg, cases["weighted"], Path(folder))
        _pickup_files(note, hg, Path(folder))


def _content(path) -> bytes | dict[str, bytes]:
    """The bytes of a file; inside of .gz and .npz, which hold the time too."""
    content = Path(path).read_bytes()
    content = gzip.decompress(content) if str(path).endswith(".gz") else content
    if not content.startswith(b"PK"):
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def _read_texts(note: Record, hg, folder: Path) -> None:
    """Formats that are only read, and files as others write them."""
    import numpy as np

    rng = np.random.default_rng(4)
    pairs = rng.integers(0, 80, (150, 2)).tolist()
    lengths = (rng.random(150) * 90 + 10).tolist()
    nodes = "".join(f'  node [ id {k} label "place {k}" x {k * 0.5!r} y {k * 0.25!r} ]\n' for k in range(80))
    joined = dict.fromkeys(tuple(sorted(pair)) for pair in pairs)
    edges = "".join(f"  edge [ source {a} target {b} weight {1 / (1 + a + b)!r} ]\n" for a, b in joined)
    listed = "".join(f"{a},{b},{d!r}\n" for (a, b), d in zip(joined, lengths, strict=False))
    texts: dict[str, tuple[str, dict[str, Any]]] = {
        "own.gml": (f"graph [\n{nodes}{edges}]\n", {}),
        "own.txt": ("# FromNodeId ToNodeId\n" + "".join(f"{3 * a}\t{3 * b}\n" for a, b in pairs), {}),
        "own.edges": ("".join(f"{a} {b} {d!r}\n" for (a, b), d in zip(joined, lengths, strict=False)), {"weight": 2}),
        "own.csv": ("source,target,length\n" + listed, {"distance": "length"}),
        "semicolons.csv": ("u;v;w\n" + listed.replace(",", ";"), {"delimiter": ";", "weight": "w"}),
        "names.tsv": ("from\tto\n" + "".join(f"p{a}\tp{b}\n" for a, b in pairs), {}),
        "own.mtx": (
            f"%%MatrixMarket matrix coordinate pattern general\n80 80 {len(joined)}\n"
            + "".join(f"{b + 1} {a + 1}\n" for a, b in joined),
            {},
        ),
    }
    for name, (text, options) in texts.items():
        (folder / name).write_text(text)
        note(f"{name}, read", lambda path=folder / name, options=options: facts_of(hg, hg.read_graph(path, **options)))
    note("read_snap", lambda: facts_of(hg, hg.datasets.read_snap(folder / "own.txt", labels=True)))
    note("read_matrix_market", lambda: facts_of(hg, hg.datasets.read_matrix_market(folder / "own.mtx")))


def _signal_files(note: Record, hg, graph, folder: Path) -> None:
    import numpy as np

    values, other = note.nudge(noise(graph.n, seed=7)), noise(graph.n, seed=8)
    other[::17] = np.nan
    for ending in ["csv", "tsv", "npy", "csv.gz"] + ["parquet"] * note.has("pyarrow"):
        one, two = folder / f"one.{ending}", folder / f"two.{ending}"
        note(f"signal.{ending}, written", lambda path=one: _content(hg.write_signal(path, graph, values)))
        note(f"signal.{ending}, read", lambda path=one: hg.read_signal(path, graph))
        note(f"signals.{ending}, written", lambda path=two: _content(hg.write_signal(path, graph, {"a": values, "b": other})))
        note(f"signals.{ending}, read", lambda path=two: hg.read_signal(path, graph, missing_ok=True))
    (folder / "commas.csv").write_text("node;f\n" + "".join(f"{name};{k},5\n" for k, name in enumerate(graph.labels)))
    note("decimal commas, read", lambda: hg.read_signal(folder / "commas.csv", graph))


def _pickup_files(note: Record, hg, folder: Path) -> None:
    head = "pickup_datetime,pickup_longitude,pickup_latitude\n"
    rows = (f"2013-11-18 16:{k % 60:02d}:00,{-73.9 - k * 1e-4:.6f},{40.7 + k * 1e-4:.6f}\n" for k in range(200))
    (folder / "trips.csv").write_text(head + "".join(rows))
    note("read_tlc", lambda: list(hg.datasets.read_tlc(folder / "trips.csv")))
    cabs = folder / "cabs"
    cabs.mkdir()
    records = (f"{37.7 + k * 1e-4:.5f} {-122.4 + k * 1e-4:.5f} {k // 5 % 2} {1211700000 - 60 * k}\n" for k in range(100))
    (cabs / "new_abc.txt").write_text("".join(records))
    note("read_cabspotting", lambda: list(hg.datasets.read_cabspotting(cabs)))


def frames(note: Record, hg) -> None:
    """Partitions of unity, polynomials and frames."""
    import numpy as np

    x = note.nudge(np.linspace(0, 9, 500))
    for name in ("linear", "c3", "meyer"):
        note(f"{name}_plateau", lambda name=name: getattr(hg, f"{name}_plateau")(x / 9, base=2.0))
    note("smooth_plateau", lambda: hg.smooth_plateau(x / 9, c=0.4))
    for plateau in ("linear", "smooth", "c3", "meyer"):
        note(f"partition, {plateau}", lambda plateau=plateau: hg.partition(x, n_scales=6, plateau=plateau, low_scales=1))
    note(
        "count_scales",
        lambda: [hg.count_scales(top, base=base) for top in (0.0, 0.4, 1.0, 7.9, 1000.0) for base in (1.5, 2.0, 10.0)],
    )
    note("jackson_damping", lambda: hg.jackson_damping(100))
    for damping in (None, "jackson"):
        note(
            f"chebyshev_coefficients, {damping}",
            lambda damping=damping: hg.chebyshev_coefficients(lambda x: np.exp(-x), 60, upper=8.0, damping=damping),
        )
    options: dict[str, dict[str, Any]] = {
        "": {},
        ", undamped": {"damping": None, "degree": 200},
        ", base 1.7": {"base": 1.7, "degree": 61},
        ", low scales": {"low_scales": 4},
        ", smooth": {"plateau": "smooth", "c": 0.3},
        ", c3": {"plateau": "c3"},
        ", meyer": {"plateau": "meyer", "damping": None},
        ", degree by itself": {"degree": "auto"},
        ", normalized": {"laplacian": "normalized"},
        ", random walk": {"laplacian": "random_walk", "n_scales": 2},
        ", unit as it is": {"rescale": False},
    }
    for name, graph in {"city": hg.datasets.city(600), "weighted": weighted_graph(hg, 400)}.items():
        for more, chosen in options.items():
            note(f"{name}{more}", lambda g=graph, chosen=chosen: _facts_of_frame(hg.chebyshev_frame(g, **chosen), x))
        for kind in KINDS:
            note(f"{name}, exact, {kind}", lambda g=graph, kind=kind: _facts_of_exact(hg.exact_frame(g, laplacian=kind), x))


def _facts_of_frame(frame, x) -> dict[str, Any]:
    numbers = [frame.n_scales, frame.base, frame.lambda_max, frame.lambda_upper, frame.degree, frame.unit, frame.tightness_defect]
    return {"numbers": numbers, "coefficients": frame.coefficients, "bounds": frame.bounds, "filters": frame.filters(x / 9)}


def _facts_of_exact(frame, x) -> dict[str, Any]:
    parts = {"eigenvalues": frame.eigenvalues, "eigenvectors": frame.eigenvectors, "filters": frame.filters(x)}
    return parts | {"numbers": [frame.n_scales, frame.lambda_max, *frame.bounds]}


def transforms(note: Record, hg) -> None:
    """analyze, synthesize and the operator."""
    import numpy as np

    cases = {"city": hg.datasets.city(1200), "weighted": weighted_graph(hg), "roads": hg.datasets.roads(20_000)}
    for name, graph in cases.items():
        for laplacian in KINDS:
            frame = hg.chebyshev_frame(graph, laplacian=laplacian, degree=100 if laplacian == "combinatorial" else 51)
            for columns in (1, 3):
                for kind in (np.float64, np.float32):
                    x = note.nudge(noise(*(graph.n, columns)[: 1 if columns == 1 else 2], seed=columns).astype(kind))
                    title = f"{name}, {laplacian}, {columns} columns, {kind.__name__}"
                    note(title, lambda frame=frame, x=x: _there_and_back(hg, frame, x))
    graph = cases["weighted"]
    for laplacian in KINDS:
        exact = hg.exact_frame(graph, laplacian=laplacian)
        note(f"exact, {laplacian}", lambda frame=exact: _there_and_back(hg, frame, note.nudge(noise(graph.n))))
        operator = hg.as_linear_operator(hg.chebyshev_frame(graph, laplacian=laplacian))
        note(
            f"operator, {laplacian}",
            lambda W=operator: {
                "there": W.matvec(noise(W.shape[1])),
                "back": W.rmatvec(noise(W.shape[0])),
                "two": W.matmat(noise(W.shape[1], 2)),
            },
        )


def _there_and_back(hg, frame, x) -> dict[str, Any]:
    bands = hg.analyze(frame, x)
    return {"analyze": bands, "synthesize": hg.synthesize(frame, bands)}


def risks(note: Record, hg) -> None:
    """Probes' weights, and every estimate of risk and noise."""
    import numpy as np

    note("default_probes", lambda: [hg.default_probes(n) for n in (1, 10, 1000, 10**5, 262_143, 262_144, 10**7)])
    for name, graph in {"city": hg.datasets.city(1200), "weighted": weighted_graph(hg), "roads": hg.datasets.roads(9000)}.items():
        each = 1 + np.abs(note.nudge(noise(graph.n, seed=3)))
        for laplacian in KINDS:
            frame = hg.chebyshev_frame(graph, laplacian=laplacian)
            options: dict[str, dict[str, Any]] = {
                "": {},
                ", gaussian": {"law": "gaussian", "n_probes": 3},
                ", seed": {"seed": 9, "n_probes": 4},
                ", sigma per node": {"sigma": each, "n_probes": 5},
                ", signal": {"domain": "signal", "n_probes": 5},
            }
            for more, chosen in options.items():
                note(f"weights, {name}, {laplacian}{more}", lambda f=frame, chosen=chosen: hg.monte_carlo_weights(f, **chosen))
        frame = hg.chebyshev_frame(graph)
        weights = hg.monte_carlo_weights(frame, n_probes=10)
        note(f"smooth_weights, {name}", lambda g=graph, w=weights: hg.smooth_weights(g, w))
        perhaps = hg.monte_carlo_weights(frame, n_probes=10, sigma=each)
        note(f"smooth_weights, {name}, sigma per node", lambda g=graph, w=perhaps, s=each: hg.smooth_weights(g, w, sigma=s))
        _, noisy = counts_on(hg, graph)
        noisy = note.nudge(noisy)
        note(f"estimate_sigma, {name}", lambda g=graph, y=noisy: hg.estimate_sigma(g, y))
        note(
            f"estimate_sigma, {name}, own frame",
            lambda g=graph, y=noisy, f=frame, w=weights: hg.estimate_sigma(g, y, frame=f, weights=np.abs(w) + 1e-3),
        )
        _risks_on(note, hg, frame, name, noisy, weights)
    graph = hg.datasets.city(500)
    for laplacian in KINDS:
        exact = hg.exact_frame(graph, laplacian=laplacian)
        for domain in ("coefficients", "signal"):
            note(f"exact_weights, {laplacian}, {domain}", lambda f=exact, d=domain: hg.exact_weights(f, domain=d))
        note(
            f"exact_weights of polynomials, {laplacian}",
            lambda k=laplacian: hg.exact_weights(hg.chebyshev_frame(graph, laplacian=k)),
        )


def _risks_on(note: Record, hg, frame, name: str, noisy, weights) -> None:
    import numpy as np

    t = np.linspace(3.0, 9.0, frame.n_scales)
    for kind in (np.float64, np.float32):
        bands, title = hg.analyze(frame, noisy.astype(kind)), f"{name}, {kind.__name__}"
        for rule, chosen in RULES.items():
            for scaled in (False, True):
                note(
                    f"sure, {title}, {rule}{', scaled' * scaled}",
                    lambda F=bands, chosen=chosen, scaled=scaled: hg.sure(
                        F, t, weights=np.abs(weights), sigma=5.0, scaled=scaled, **chosen
                    ),
                )
            note(
                f"sure_variance, {title}, {rule}",
                lambda F=bands, chosen=chosen: hg.sure_variance(frame, F, t, sigma=5.0, n_probes=10, **chosen),
            )
        pair = noisy.astype(kind), (0.5 * noisy).astype(kind)
        note(f"signal_sure, {title}", lambda pair=pair: hg.signal_sure(*pair, divergence=100.5, sigma=5.0))
    several = np.stack([noisy, 2 * noisy], axis=1)
    note(
        f"sure, {name}, two columns",
        lambda: hg.sure(hg.analyze(frame, several), np.full((frame.n_scales, 2), 4.0), weights=weights, sigma=5.0),
    )
    note(
        f"monte_carlo_divergence, {name}",
        lambda: hg.monte_carlo_divergence(lambda y: hg.soft(y, 3.0)[0], noisy, n_probes=4, sigma=5.0, seed=2),
    )


def thresholds(note: Record, hg) -> None:
    """Shrinkage rules, thresholds, curves, blocks and exponents."""
    import numpy as np

    x, t = note.nudge(noise(4000, size=3.0)), np.abs(noise(4000, seed=1))
    for kind in (np.float64, np.float32):
        for rule in ("soft", "james_stein", "hard"):
            note(f"{rule}, {kind.__name__}", lambda rule=rule, kind=kind: getattr(hg, rule)(x.astype(kind), t.astype(kind)))
        note(f"power, {kind.__name__}", lambda kind=kind: hg.power(x.astype(kind), t.astype(kind), beta=2.7))
        note(f"shrink, {kind.__name__}", lambda kind=kind: hg.shrink(x.astype(kind), 1.5, rule="power", beta=4.0))
    for name, graph in {"city": hg.datasets.city(1200), "weighted": weighted_graph(hg), "roads": hg.datasets.roads(20_000)}.items():
        clean, noisy = counts_on(hg, graph)
        noisy, frame = note.nudge(noisy), hg.chebyshev_frame(graph)
        raw = hg.monte_carlo_weights(frame, n_probes=10)
        smooth = hg.smooth_weights(graph, raw)
        truth = hg.analyze(frame, clean)
        for kind in (np.float64, np.float32):
            bands, title = hg.analyze(frame, noisy.astype(kind)), f"{name}, {kind.__name__}"
            for rule, chosen in RULES.items():
                _thresholds_by(note, hg, (bands, raw, smooth, truth), f"{title}, {rule}", chosen)
            for scaled in (False, np.sqrt(smooth)):
                title_too = f"{title}{', scaled' if scaled is not False else ''}"
                note(f"sure_betas, {title_too}", lambda F=bands, s=scaled, raw=raw: hg.sure_betas(F, raw, sigma=5.0, scaled=s))
        several = hg.analyze(frame, np.stack([noisy, noisy**2 / 50], axis=1))
        note(f"sure_thresholds, {name}, two columns", lambda F=several, raw=raw: hg.sure_thresholds(F, raw, sigma=5.0))
        _blocks(note, hg, graph, frame, noisy, raw, name)


def _thresholds_by(note: Record, hg, parts, title: str, chosen: dict[str, Any]) -> None:
    import numpy as np

    bands, raw, smooth, truth = parts
    for level in ("scale", "global"):
        for candidates in ("all", "percentiles"):
            for scaled in (False, np.sqrt(smooth)):
                words = f"{title}, {level}, {candidates}{', scaled' if scaled is not False else ''}"
                note(
                    f"sure_thresholds, {words}",
                    lambda level=level, candidates=candidates, scaled=scaled: hg.sure_thresholds(
                        bands, raw, sigma=5.0, level=level, candidates=candidates, scaled=scaled, **chosen
                    ),
                )
        note(f"oracle_thresholds, {title}, {level}", lambda level=level: hg.oracle_thresholds(bands, truth, level=level, **chosen))
    note(f"sure_curve, {title}", lambda: hg.sure_curve(bands[-2], raw[-2], sigma=5.0, **chosen))
    note(f"sure_curve, {title}, scaled", lambda: hg.sure_curve(bands[1], raw[1], sigma=5.0, scale=np.sqrt(smooth[1]), **chosen))


def _blocks(note: Record, hg, graph, frame, noisy, raw, name: str) -> None:
    import numpy as np

    bands = hg.analyze(frame, noisy)
    probes = np.sign(noise(graph.n, 3, seed=5))
    turned = np.moveaxis(hg.analyze(frame, probes), 2, 0)
    for size in (4, 16):
        blocks = hg.block_partition(graph, size=size)

        def found(blocks=blocks):
            t, least = hg.block_thresholds(bands, blocks, raw, turned, sigma=5.0)
            kept, divergence = hg.apply_block_thresholds(bands, blocks, t, raw, turned)
            return {"thresholds": t, "sure": least, "bands": kept, "divergence": divergence}

        note(f"blocks of {size}, {name}", found)


def baselines(note: Record, hg) -> None:
    """Fused lasso along chains, and total variation on graphs."""
    import numpy as np

    y, each = note.nudge(noise(3000, size=2.0) + np.repeat([0.0, 5.0, 1.0], 1000)), 0.5 + np.abs(noise(3000, seed=1))
    note("fused_lasso", lambda: hg.fused_lasso(y, 3.0))
    note("fused_lasso, weighted", lambda: hg.fused_lasso(y, 3.0, node_weights=each, edge_weights=each[1:]))
    note("fused_lasso, float32", lambda: hg.fused_lasso(y.astype(np.float32), 3.0))
    note("fused_lasso_path", lambda: hg.fused_lasso_path(y, np.geomspace(0.1, 50, 9)))
    note("fused_lasso_path, weighted", lambda: hg.fused_lasso_path(y, [0.5, 5.0], node_weights=each))
    for name, graph in {
        "city": hg.datasets.city(700),
        "weighted": weighted_graph(hg, 500),
        "grid": hg.datasets.grid(40, 30),
    }.items():
        clean, noisy = counts_on(hg, graph)
        noisy = note.nudge(noisy)
        two, unequal = np.stack([noisy, clean + 3], axis=1), 0.5 + np.abs(noise(graph.n, seed=2))
        for method in (hg.dfs_fused_lasso, hg.graph_tv):
            title = f"{method.__name__}, {name}"
            note(f"{title}, penalty", lambda f=method, g=graph, y=noisy: f(g, y, penalty=4.0, sigma=5.0))
            note(f"{title}, sure", lambda f=method, g=graph, y=noisy: f(g, y, sigma=5.0, candidates=12))
            note(f"{title}, oracle", lambda f=method, g=graph, y=noisy, c=clean: f(g, y, penalty="oracle", truth=c, candidates=12))
            note(f"{title}, two columns", lambda f=method, g=graph, y=two: f(g, y.astype(np.float32), penalty=4.0))
        note(
            f"dfs_fused_lasso, {name}, four orders",
            lambda g=graph, y=noisy, w=unequal: hg.dfs_fused_lasso(g, y, sigma=5.0, orders=4, seed=1, start=3, node_weights=w),
        )


def methods(note: Record, hg) -> None:
    """Every method of denoise on several graphs."""
    import numpy as np

    hub = hg.Graph.from_edges([(0, k) for k in range(1, 300)] + [(k, k + 1) for k in range(1, 299)], n=300)
    cases = {
        "city": hg.datasets.city(1200),
        "grid": hg.datasets.grid(36, 28),
        "weighted": weighted_graph(hg),
        "roads": hg.datasets.roads(6000),
        "path": hg.datasets.path(250),
        "hub": hub,
    }
    for name, graph in cases.items():
        _, noisy = counts_on(hg, graph)
        for kind in (np.float64, np.float32):
            values = note.nudge(noisy.astype(kind))
            for method in METHODS:
                if method == "sgwt_exact" and graph.n > 2000:  # eigenvectors take too long
                    continue
                title = f"{method}, {name}, {kind.__name__}"
                note(title, lambda g=graph, y=values, method=method: hg.denoise(g, y, sigma=5.0, method=method))


def options(note: Record, hg) -> None:
    """Every option of denoise."""
    import numpy as np

    for name, graph in {"city": hg.datasets.city(900), "weighted": weighted_graph(hg, 600)}.items():
        _, noisy = counts_on(hg, graph)
        noisy = note.nudge(noisy)
        each, holes = 3 + 2 * np.abs(noise(graph.n, seed=4)), noisy.copy()
        holes[::11] = np.nan
        three = counts_on(hg, graph, columns=3)[1]
        three[5] = note.nudge(three[5])
        some = three.copy()
        some[::13, 1] = np.nan
        lines = hg.Graph.from_edges([(0, 1), (1, 2), (0, 2)], weights=[1.0, 0.5, 0.25])
        thresholding = ("sgwt_deep", "sgwt_sure", "sgwt_scaled", "sgwt_exact")
        cases: dict[str, tuple[Any, dict[str, Any]]] = {
            "sigma not given": (noisy, {"sigma": None}),
            "sigma far too large": (noisy, {"sigma": 500.0}),
            "sigma tiny": (noisy, {"sigma": 1e-3, "method": "sgwt_sure"}),
            "nonnegative": (noisy, {"nonnegative": True}),
            "integer": (noisy, {"integer": True, "nonnegative": True}),
            "seed and probes": (noisy, {"seed": 7, "n_probes": 3}),
            "graph of columns": (three, {"columns": lines}),
        }
        for method in METHODS:
            cases |= {
                f"sigma per node, {method}": (noisy, {"sigma": each, "method": method}),
                f"missing dropped, {method}": (holes, {"missing": "drop", "method": method}),
                f"three columns, {method}": (three, {"columns": "separate", "method": method}),
                f"three columns, nonnegative, {method}": (three, {"nonnegative": True, "integer": True, "method": method}),
                f"gaussian probes, {method}": (noisy, {"law": "gaussian", "n_probes": 4, "seed": 1, "method": method}),
            }
        for method in ("auto", "let", "sgwt_sure", "sgwt_scaled", "sgwt_block"):
            cases |= {
                f"columns along a path, {method}": (three, {"columns": "path", "method": method}),
                f"columns along a path, sigma per node, {method}": (three, {"columns": "path", "sigma": each, "method": method}),
                f"columns with missing values, {method}": (some, {"columns": "path", "missing": "drop", "method": method}),
                f"missing filled, {method}": (holes, {"missing": "fill", "method": method}),
            }
        for method in ("auto", "let"):
            cases |= {f"refine {answer}, {method}": (noisy, {"refine": answer, "method": method}) for answer in (True, False)}
        for method in thresholding:
            cases |= {f"{rule}, {method}": (noisy, {"method": method, **chosen}) for rule, chosen in RULES.items()}
            cases |= {f"percentiles, {method}": (noisy, {"method": method, "candidates": "percentiles"})}
            if method != "sgwt_deep":
                cases |= {f"global level, {method}": (noisy, {"method": method, "level": "global"})}
        for laplacian in KINDS:
            frame = hg.chebyshev_frame(graph, laplacian=laplacian, degree=80, plateau="c3")
            own = hg.monte_carlo_weights(frame, n_probes=12, seed=3, domain="signal")
            cases |= {
                f"frame, {laplacian}, sgwt_sure": (noisy, {"frame": frame, "method": "sgwt_sure"}),
                f"frame, {laplacian}, sgwt_scaled": (noisy, {"frame": frame, "method": "sgwt_scaled"}),
                f"exact frame, {laplacian}": (noisy, {"frame": hg.exact_frame(graph, laplacian=laplacian), "method": "sgwt_exact"}),
            }
            if laplacian != "random_walk":
                cases[f"weights, {laplacian}"] = (noisy, {"frame": frame, "weights": own, "method": "sgwt_sure"})
        for title, (values, chosen) in cases.items():
            for kind in (np.float64, np.float32):
                words = f"{title}, {name}, {kind.__name__}"
                note(words, lambda g=graph, y=values, k=kind, c=chosen: hg.denoise(g, y.astype(k), **({"sigma": 5.0} | c)))
    _other_forms(note, hg)


def _other_forms(note: Record, hg) -> None:
    """A dict, a simulated release with windows, rows of scikit-learn."""
    graph = weighted_graph(hg, 300)
    _, noisy = counts_on(hg, graph)
    noisy = note.nudge(noisy)
    named = dict(zip(graph.labels.tolist(), noisy.tolist(), strict=True))
    note("a dict", lambda: hg.denoise(graph, named, sigma=5.0))
    counts = hg.hotspot_counts(graph, total=4000, seed=2)
    hours = counts[:, None] * [1, 2, 1]
    loud = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1.0}
    note("a simulation", lambda: hg.denoise(graph, hg.privacy.simulate(graph, counts, seed=1, **loud), nonnegative=True))
    note("hours", lambda: hg.denoise(graph, hg.privacy.simulate(graph, hours, seed=1, windows=[0, 1, 2, 3], **loud)))
    own = hg.Noisy(noisy, sigma=5.0, kind="measurement", graph_hash=graph.hash)
    note("a Noisy", lambda: hg.denoise(graph, own, method="let"))
    if note.has("sklearn"):
        rows = counts_on(hg, graph, columns=4)[1].T
        for method in ("auto", "sgwt_scaled"):

            def fitted(method=method):
                denoiser = hg.WaveletDenoiser(graph, sigma=5.0, method=method).fit(rows)
                return {"rows": denoiser.transform(rows), "risk": denoiser.risk(rows), "score": denoiser.score(rows)}

            note(f"WaveletDenoiser, {method}", fitted)
        note("WaveletDenoiser, sigma not given", lambda: hg.WaveletDenoiser(graph).fit(rows).sigma_)


def large(note: Record, hg) -> None:
    """More nodes than the methods for smaller graphs take."""
    import numpy as np

    graph = hg.datasets.roads(140_000, seed=2)
    _, noisy = counts_on(hg, graph)
    for kind in (np.float64, np.float32):
        values = note.nudge(noisy.astype(kind))
        for method in ("auto", "let", "sgwt_deep", "sgwt_sure", "sgwt_scaled", "sgwt_block", "sgwt_beta"):
            note(f"{method}, {kind.__name__}", lambda y=values, method=method: hg.denoise(graph, y, sigma=5.0, method=method))
    note("smooth_weights", lambda: hg.smooth_weights(graph, hg.monte_carlo_weights(hg.chebyshev_frame(graph))))
    note("power", lambda: hg.denoise(graph, noisy, sigma=5.0, method="sgwt_sure", rule="power", beta=2.5))


def privacy(note: Record, hg) -> None:
    """Calibration, counting, and all of a release but its noise."""
    budgets = [(epsilon, delta) for epsilon in (0.05, 0.5, 0.99, 3.0) for delta in (1e-9, 1e-6, 1e-3)]
    for squared in (1, 2, 12):
        what = {"sensitivity_squared": squared}
        note(
            f"analytic_sigma, {squared}",
            lambda w=what: [hg.privacy.analytic_sigma(epsilon=note.nudge(e), delta=d, **w) for e, d in budgets],
        )
        note(
            f"classical_sigma, {squared}",
            lambda w=what: [hg.privacy.classical_sigma(epsilon=e, delta=d, **w) for e, d in budgets if e < 1],
        )
        note(
            f"gaussian_delta, {squared}",
            lambda w=what: [hg.privacy.gaussian_delta(sigma=5 / e, epsilon=e, **w) for e, _ in budgets],
        )
        note(
            f"gaussian_epsilon, {squared}",
            lambda w=what: [hg.privacy.gaussian_epsilon(sigma=5 / e, delta=d, **w) for e, d in budgets],
        )
    note("lattice_step", lambda: [hg.privacy.lattice_step(sigma) for sigma in (0.5, 5.3, 1024.0, 1e5)])
    city = hg.datasets.city(500)
    trips = hg.datasets.trips(city, n_people=1500)
    all_of_them = {
        "unit": "person",
        "adjacency": "add-remove",
        "max_nodes": 50,
        "max_per_node": 50,
        "max_distance": note.nudge(200.0),
    }
    hours = [f"2026-03-02T{hour:02d}:00:00" for hour in (0, 6, 12, 18)]
    cells = {"unit": "person", "adjacency": "change-one", "max_cells": 90, "max_per_cell": 90, "time": "time", "windows": hours}
    note("counting", lambda: _facts_of_counts(hg.privacy.count_events(city, trips, **all_of_them)))
    note("counting in windows", lambda: _facts_of_counts(hg.privacy.count_events(city, trips, far="keep", **cells)))
    note("checking", lambda: hg.privacy.check_events(city, trips, **all_of_them).table())
    once = {
        "rider": [k % 40 for k in range(900)],
        "node": [k % 40 * 3 for k in range(900)],
    }  # what is cut does not depend on chance
    few = {"unit": "rider", "adjacency": "change-one", "max_nodes": 1, "max_per_node": 4, "node": "node"}
    note("counting at most four", lambda: _facts_of_counts(hg.privacy.count_events(city, once, **few)))
    note("assumed bound", lambda: _facts_of_counts(hg.privacy.count_events(city, once, **(few | {"unit": None}))))
    _count_files(note, hg, city, trips, all_of_them)
    loud = {"epsilon": 0.7, "delta": 1e-6, "sensitivity_squared": 2}
    for mechanism in ("analytic", "classical"):
        for seed in (0, 1):
            note(
                f"simulate, {mechanism}, {seed}",
                lambda m=mechanism, s=seed: _facts_of_noisy(hg.privacy.simulate(city, city.degrees, seed=s, mechanism=m, **loud)),
            )
    caps = {"adjacency": "add-remove", "max_nodes": 2, "max_per_node": 1}
    note("plan_release", lambda: _facts_of_plan(hg.privacy.plan_release(city, **caps, epsilon=(0.5, 2.0), n_draws=1)))
    note("plan_release, sgwt_deep", lambda: _facts_of_plan(hg.privacy.plan_release(city, **caps, epsilon=1.0, method="sgwt_deep")))
    note("release", lambda: _facts_of_release(hg, hg.privacy.count_events(city, trips, **all_of_them)))
    note("release in windows", lambda: _facts_of_release(hg, hg.privacy.count_events(city, trips, far="keep", **cells)))


def _count_files(note: Record, hg, city, trips, bounds) -> None:
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trips.csv"
        columns = [np.asarray(column).astype(str).tolist() for column in trips.values()]
        lines = [",".join(trips), *(",".join(row) for row in zip(*columns, strict=True)), "a broken line", 'x,"']
        path.write_text("\n".join(lines) + "\n")
        (Path(folder) / "trips.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
        for name in ("trips.csv", "trips.csv.gz"):
            note(
                f"counting {name}",
                lambda name=name: _facts_of_counts(hg.privacy.count_events(city, str(Path(folder) / name), **bounds)),
            )
        note(
            "counting trips.csv in pieces",
            lambda: _facts_of_counts(hg.privacy.count_events(city, str(path), chunk_rows=777, **bounds)),
        )
        note("checking trips.csv", lambda: hg.privacy.check_events(city, str(path), **bounds).table())
        if note.has("pandas", "pyarrow"):
            import pandas

            table = pandas.DataFrame(trips)
            table.to_parquet(Path(folder) / "trips.parquet")
            note("counting a DataFrame", lambda: _facts_of_counts(hg.privacy.count_events(city, table, **bounds)))
            note(
                "counting trips.parquet",
                lambda: _facts_of_counts(hg.privacy.count_events(city, Path(folder) / "trips.parquet", **bounds)),
            )
    low = hg.Graph.from_scipy(hg.to_scipy(city), coords=city.coords / 1e5 + [13.0, 52.0], crs="lonlat")
    places = {"person": trips["person"], "lon": trips["x"] / 1e5 + 13.0, "lat": trips["y"] / 1e5 + 52.0}
    note("counting degrees", lambda: _facts_of_counts(hg.privacy.count_events(low, places, **bounds)))


def _facts_of_counts(found) -> dict[str, Any]:
    names = (
        "sensitivity_squared",
        "sensitivity",
        "adjacency",
        "unit",
        "unit_column",
        "bound",
        "caps",
        "windows",
        "rules",
        "graph_hash",
    )
    return {"counts": found.counts, "terms": {name: _plain(getattr(found, name)) for name in names}}


def _facts_of_noisy(noisy) -> dict[str, Any]:
    return {"values": noisy.values, "noise": [noisy.sigma, noisy.lattice, noisy.noise_level]}


def _facts_of_plan(plan) -> list[Any]:
    return [
        plan.delta,
        plan.sensitivity_squared,
        plan.n_values,
        plan.expected_total,
        *(list(vars(row).values()) for row in plan.rows),
    ]


def _plain(value):
    """Dicts and tuples of any make as the usual ones."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def _facts_of_release(hg, counts) -> dict[str, Any]:
    """What a certificate and a ledger say that does not hang on noise, time or version."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HUSHGRAPH_STATE"] = folder
        terms = {"dataset": "trips", "unit": counts.unit, "adjacency": counts.adjacency}
        ledger = hg.privacy.Ledger.create(Path(folder) / "budget.db", epsilon=2.0, delta=1e-6, **terms)
        release = hg.privacy.release(counts, epsilon=0.5, delta=1e-6, ledger=ledger, public_graph=True)
        chance = ("values_sha256", "ledger", "created", "versions")
        certificate = {key: _plain(part) for key, part in release.certificate.items() if key not in chance}
        parts = {"certificate": certificate, "noise": [release.sigma, release.lattice, release.noise_level, release.largest_count]}
        parts["total"] = release.total([0, 5, 9]).standard_error
        parts["budget"] = [ledger.spent, ledger.remaining(), ledger.remaining(1e-7), str(ledger.mu_squared), len(ledger)]
        target = Path(folder) / "published"
        release.export(target, method="sgwt_deep")
        again = hg.privacy.read_release(target, counts.graph, ledger=ledger)
        same = hg.denoise(counts.graph, release, method="let").signal == hg.denoise(counts.graph, again, method="let").signal
        parts["read again"] = [bool((again.values == release.values).all()), bool(same.all()), again.sigma]
        parts["files"] = sorted(path.name for path in target.iterdir())
        return parts


def distributed(note: Record, hg) -> None:
    """Two partitions in files, without and with Dask."""
    import numpy as np

    if not note.has("pyarrow"):
        return
    slim = hg.datasets.grid(240, 9)
    matrix = hg.to_scipy(slim).tocoo()
    pairs = np.stack([matrix.row, matrix.col], axis=1)
    heavy = hg.Graph.from_edges(pairs, n=slim.n, weights=1 + 0.5 * np.cos(pairs.sum(axis=1)), coords=slim.coords)
    _, noisy = counts_on(hg, slim)
    noisy = note.nudge(noisy)
    each = 3 + np.abs(noise(slim.n, seed=6))
    ways: dict[str, dict[str, Any]] = {
        "grid": {"edges": slim},
        "weighted grid": {"edges": heavy, "by": "ordering"},
        "normalized": {"edges": slim, "laplacian": "normalized", "by": "rcm"},
    }
    note(
        "plan",
        lambda: [
            getattr(hg.distributed.plan(slim, partitions=2, degree=30), name)
            for name in ("n", "n_edges", "partitions", "growth", "n_scales")
        ],
    )
    runs: dict[str, dict[str, Any]] = {
        "sgwt_sure": {"method": "sgwt_sure"},
        "sgwt_scaled": {"method": "sgwt_scaled"},
        "let": {"method": "let"},
        "soft, sigma per node": {"method": "sgwt_sure", "rule": "soft", "sigma": each},
        "power, whole numbers": {"method": "sgwt_scaled", "rule": "power", "beta": 3.0, "nonnegative": True, "integer": True},
    }
    for name, way in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            note(f"{name}, prepare", lambda folder=folder, way=way: _prepared(hg, folder, way))
            for title, chosen in runs.items():
                note(f"{name}, {title}", lambda folder=folder, c=chosen: _run(hg, folder, noisy, c))
    if note.has("dask", "distributed"):
        with tempfile.TemporaryDirectory() as folder, _cluster() as client:
            note("Dask, prepare", lambda: _prepared(hg, folder, {"edges": heavy, "client": client}))
            for title in ("sgwt_sure", "sgwt_scaled", "let"):
                note(f"Dask, {title}", lambda title=title: _run(hg, folder, noisy, runs[title] | {"client": client}))


@contextmanager
def _cluster():
    """Two workers in threads of this process."""
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _prepared(hg, folder: str, way: dict[str, Any]) -> list[Any]:
    found = hg.distributed.prepare(way["edges"], folder, partitions=2, degree=30, **{k: v for k, v in way.items() if k != "edges"})
    return [getattr(found, name) for name in ("n", "n_edges", "partitions", "growth", "n_scales", "lambda_max", "lambda_upper")]


def _run(hg, folder: str, noisy, chosen: dict[str, Any]) -> dict[str, Any]:
    result = hg.distributed.denoise(folder, noisy, **({"sigma": 5.0} | chosen))
    names = ("sigma", "thresholds", "risk", "risk_se", "probe_se", "divergence", "unchanged", "method")
    return {"signal": result.read(), **{name: getattr(result, name) for name in names}}


def maps(note: Record, hg) -> None:
    """Real streets and their taxi pickups, from HUSHGRAPH_DATA."""
    import numpy as np

    here = {"allow_download": False}
    found = {
        "Manhattan": lambda: hg.datasets.manhattan(**here),
        "Manhattan, weighted": lambda: hg.datasets.manhattan(weighted=True, hour="2013-01-01T00", **here),
        "San Francisco": lambda: hg.datasets.san_francisco(**here),
        "San Francisco, dpw": lambda: hg.datasets.san_francisco(streets="dpw", **here),
        "Minnesota": lambda: hg.datasets.road_network("minnesota", **here),
        "Minnesota, weighted": lambda: hg.datasets.road_network("minnesota", weighted=True, **here),
    }
    for name, make in found.items():
        place = make()
        note(
            name, lambda place=place: facts_of(hg, place.graph) | {f"signal {key}": values for key, values in place.signals.items()}
        )
        clean = next(iter(place.signals.values())).astype(float)
        for kind in (np.float64, np.float32):
            values = note.nudge((clean + noise(place.graph.n, size=4.22)).astype(kind))
            some = METHODS if kind is np.float64 and "weighted" not in name else ("auto", "let", "sgwt_sure", "sgwt_scaled")
            chosen: dict[str, dict[str, Any]] = {method: {"method": method} for method in some if method != "sgwt_exact"}
            chosen |= {"counts too": {"nonnegative": True}} if name == "Manhattan" else {}
            for title, more in chosen.items():
                note(f"{name}, {title}, {kind.__name__}", lambda g=place.graph, y=values, m=more: hg.denoise(g, y, sigma=4.22, **m))
    graph = hg.datasets.road_network("roads_1m", **here).graph
    signal = note.nudge(hg.bernoulli_signal(graph, p=0.001, k=4) + noise(graph.n))
    note("roads_1m", lambda: facts_of(hg, graph))
    for kind in (np.float64, np.float32):
        for method in ("sgwt_sure", "let"):
            note(
                f"roads_1m, {method}, {kind.__name__}",
                lambda k=kind, m=method: hg.denoise(graph, signal.astype(k), sigma=1.0, method=m),
            )
    place = hg.datasets.manhattan(**here)
    bounds = {
        "adjacency": "add-remove",
        "max_nodes": 1,
        "max_per_node": 1,
        "lon": "pickup_lon",
        "lat": "pickup_lat",
        "max_distance": 200,
    }
    note("pickups counted", lambda: _facts_of_counts(hg.privacy.count_events(place.graph, place.events(), **bounds)))


def gpu(note: Record, hg) -> None:
    """denoise and its parts for arrays of CuPy."""
    import cupy
    import numpy as np

    cases = {
        "city": hg.datasets.city(1200),
        "grid": hg.datasets.grid(36, 28),
        "weighted": weighted_graph(hg),
        "roads": hg.datasets.roads(60_000),
    }
    for name, graph in cases.items():
        _, noisy = counts_on(hg, graph)
        three = cupy.asarray(noisy[:, None] + noise(graph.n, 3, seed=1))
        each = 3 + np.abs(noise(graph.n, seed=4))
        for kind in (np.float64, np.float32):
            values = cupy.asarray(note.nudge(noisy.astype(kind)))
            chosen: dict[str, dict[str, Any]] = {method: {"method": method} for method in ON_GPU}
            chosen |= {rule: {"method": "sgwt_sure", **more} for rule, more in RULES.items()}
            chosen |= {f"sigma per node, {method}": {"method": method, "sigma": each} for method in ("let", "sgwt_sure")}
            chosen |= {
                "integer": {"integer": True, "nonnegative": True},
                "global level": {"method": "sgwt_scaled", "level": "global"},
            }
            for title, more in chosen.items():
                if more.get("method") == "sgwt_exact" and graph.n > 2000:
                    continue
                note(
                    f"{title}, {name}, {kind.__name__}",
                    lambda g=graph, y=values, m=more: hg.denoise(g, y, **({"sigma": 5.0} | m)).on_host(),
                )
            for columns in ("separate", "path"):
                note(
                    f"three columns, {columns}, {name}, {kind.__name__}",
                    lambda g=graph, y=three, k=kind, c=columns: hg.denoise(
                        g, y.astype(k), sigma=5.0, method="sgwt_sure", columns=c
                    ).on_host(),
                )
            for laplacian in KINDS:
                frame = hg.chebyshev_frame(graph, laplacian=laplacian)
                note(f"{laplacian}, {name}, {kind.__name__}", lambda f=frame, y=values: _there_and_back(hg, f, y))
                note(
                    f"weights, {laplacian}, {name}, {kind.__name__}",
                    lambda f=frame, y=values: hg.monte_carlo_weights(f, n_probes=6, like=y),
                )
        graph.free_device()


GROUPS: dict[str, Callable[[Record, Any], None]] = {
    "graphs": graphs,
    "signals": signals,
    "interop": interop,
    "files": files,
    "frames": frames,
    "transforms": transforms,
    "risks": risks,
    "thresholds": thresholds,
    "baselines": baselines,
    "methods": methods,
    "options": options,
    "large": large,
    "privacy": privacy,
    "distributed": distributed,
    "maps": maps,
    "gpu": gpu,
}


def compute(groups: Iterable[str], target: str, *, control: bool) -> None:
    """All digests of the version that this process has, into a file."""
    import numpy
    import scipy

    import hushgraph as hg

    folder = Path(hg.__file__).parent
    record = Record(control=control)
    for group in groups:
        before, record.group = time.perf_counter(), group
        try:
            GROUPS[group](record, hg)
        except Exception as error:  # the other groups are looked at nevertheless
            record.digests[f"{group}: its input"] = f"{RAISED}{type(error).__name__}: {error}"
        print(f"    {group}: {time.perf_counter() - before:.1f} s", file=sys.stderr, flush=True)
    code = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".so", ".pyd", ".cu"):
            code.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    machine = f"{platform.machine()}, {os.cpu_count()} processors"
    versions = {"Python": platform.python_version(), "NumPy": numpy.__version__, "SciPy": scipy.__version__}
    about = {"hushgraph": hg.__version__, **versions, "machine": machine, "code": code.hexdigest(), "absent": record.absent}
    Path(target).write_text(json.dumps({"folder": str(folder.resolve()), "about": about, "digests": record.digests}))


# ---- the comparison ------------------------------------------------------------------------------------------------


def run(python: str | None, path: str | None, groups: list[str], *, control: bool = False) -> dict[str, Any]:
    """Digests of one version, for each number of threads; a Python of its own does not see the PYTHONPATH of this one."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" or (python is None and path is None)}
    if path is not None:
        environment["PYTHONPATH"] = str(Path(path).resolve())
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        environment[name] = "1"
    whole: dict[str, Any] = {"digests": {}}
    with tempfile.TemporaryDirectory() as folder:
        for threads in THREADS:
            print(f"... {path or python or 'this version'}, {threads} threads", file=sys.stderr, flush=True)
            target = str(Path(folder) / "digests.json")
            command = [python or sys.executable, __file__, "--part", target, "--only", *groups, *["--control"] * control]
            environment |= {"HUSHGRAPH_NUM_THREADS": str(threads), "HUSHGRAPH_STATE": folder}
            if subprocess.run(command, check=False, env=environment).returncode:
                msg = "the version above could not be run"
                raise SystemExit(msg)
            found = json.loads(Path(target).read_text())
            whole["digests"][str(threads)] = found["digests"]
            whole |= {"about": found["about"], "folder": found["folder"]}
    if path is not None and Path(path).resolve() not in Path(whole["folder"]).parents:
        msg = f"Python took hushgraph from {whole['folder']} and not from {path}: use an environment in which it is not installed"
        raise SystemExit(msg)
    return whole


def differing(old: dict[str, Any], new: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Of each group, which results differ, and in what: old from new by threads, or the numbers of threads from each other."""
    names = _names(old, new)
    found: dict[str, dict[str, list[str]]] = {group: {} for group in GROUPS if any(_group(name) == group for name in names)}
    pairs = [
        (old["digests"].get(threads, {}), new["digests"].get(threads, {}), f"threads: {threads}")
        for threads in sorted(old["digests"].keys() | new["digests"].keys())
    ]
    for name, one in (("old", old), ("new", new)):
        first, *others = (digests for _, digests in sorted(one["digests"].items()))
        pairs += [(first, other, f"threads of {name}") for other in others]
    for one, other, where in pairs:
        for name in names:
            here, there = one.get(name), other.get(name)
            if here is None or there is None:
                words = f"{where}, not in both" if here != there else f"{where}, in none"
            elif here != there:
                words = where
            else:
                words = f"{where}, {here}" if here.startswith(RAISED) else ""
            if words:
                found[_group(name)].setdefault(name, []).append(words)
    return found


def _group(name: str) -> str:
    return name.partition(": ")[0]


def _names(*versions: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(name for one in versions for digests in one["digests"].values() for name in digests))


def table(old: dict[str, Any], new: dict[str, Any], found: dict[str, dict[str, list[str]]]) -> str:
    """Markdown: how many digests each group has, how many are equal everywhere, and which are not."""
    lines, names = ["| group | digests | equal | different |", "|---|---:|---:|---|"], _names(old, new)
    always = [f"threads: {threads}" for threads in sorted(new["digests"])]  # goes without saying
    for group, faults in found.items():
        count = sum(_group(name) == group for name in names)
        shown = [
            name.partition(": ")[2] + (f" ({'; '.join(words)})" if words != always else "")
            for name, words in list(faults.items())[:SHOWN]
        ]
        shown += [f"and {len(faults) - SHOWN:,} more"] if len(faults) > SHOWN else []
        text = "<br>".join(shown).replace("|", "/").replace("\n", " ")
        lines.append(f"| {group} | {count:,} | {count - len(faults):,} | {text} |")
    equal = len(names) - sum(map(len, found.values()))
    return "\n".join([*lines, f"| all | {len(names):,} | {equal:,} | |", ""])


def head(old: dict[str, Any], new: dict[str, Any]) -> str:
    """When, where and what."""
    threads = " and ".join(sorted(old["digests"].keys() & new["digests"].keys()))
    words = [f"{datetime.date.today().isoformat()}, {new['about']['machine']}. Each digest with {threads} threads."]
    for name, one in (("Old", old), ("New", new)):
        about = one["about"]
        versions = ", ".join(f"{package} {about[package]}" for package in ("hushgraph", "Python", "NumPy", "SciPy"))
        elsewhere = f", on {about['machine']}" if about["machine"] != new["about"]["machine"] else ""
        words.append(f"{name}: {versions}, code {about['code'][:12]}{elsewhere}.")
    if old["about"]["code"] == new["about"]["code"]:
        words.append("Both have the same files.")
    if absent := sorted({*old["about"]["absent"], *new["about"]["absent"]}):
        words.append(f"Without {', '.join(absent)}, and what needs them.")
    return " ".join(words) + "\n\n"


def chosen_groups(arguments) -> list[str]:
    """Groups in their order; real maps and a GPU only if asked for."""
    if arguments.only:
        return [group for group in GROUPS if group in arguments.only]
    if arguments.data and not os.environ.get("HUSHGRAPH_DATA"):
        msg = "--data needs HUSHGRAPH_DATA, the folder of the real maps"
        raise SystemExit(msg)
    asked = {"maps": arguments.data, "gpu": arguments.gpu}
    return [group for group in GROUPS if asked.get(group, True)]


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", metavar="PYTHON", help="Python of an environment that has the older version")
    parser.add_argument("--old-path", metavar="FOLDER", help="folder that holds the older version's package hushgraph")
    parser.add_argument("--new", metavar="PYTHON", help="Python for the newer version; default: this one, with its PYTHONPATH")
    parser.add_argument("--new-path", metavar="FOLDER", help="folder that holds the newer version's package hushgraph")
    parser.add_argument("--data", action="store_true", help="real maps too; HUSHGRAPH_DATA names their folder")
    parser.add_argument("--gpu", action="store_true", help="arrays of a GPU too; needs CuPy")
    parser.add_argument("--only", nargs="+", choices=list(GROUPS), metavar="GROUP", help=f"some of {', '.join(GROUPS)}")
    parser.add_argument("--write", metavar="FILE", help="write the newer version's digests into a file, and compare nothing")
    parser.add_argument("--compare", nargs=2, metavar=("OLD", "NEW"), help="compare two such files, and compute nothing")
    parser.add_argument("--control", action="store_true", help="the newer version against itself, one number of the input moved")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = read_arguments()
    groups = chosen_groups(arguments)
    if arguments.part:
        compute(groups, arguments.part, control=arguments.control)
        return
    newer = arguments.new, arguments.new_path
    if arguments.write:
        found = run(*newer, groups)
        Path(arguments.write).write_text(json.dumps({part: found[part] for part in ("about", "digests")}, indent=1) + "\n")
        return
    if arguments.compare:
        old, new = (json.loads(Path(name).read_text()) for name in arguments.compare)
    elif arguments.control:
        old, new = run(*newer, groups), run(*newer, groups, control=True)
    elif arguments.old or arguments.old_path:
        old, new = run(arguments.old, arguments.old_path, groups), run(*newer, groups)
        if old["folder"] == new["folder"]:
            msg = f"old and new are both {old['folder']}: name another one by --old or --old-path"
            raise SystemExit(msg)
    else:
        msg = "name the older version by --old or --old-path, or see --help"
        raise SystemExit(msg)
    if not _names(old, new):
        msg = "there is nothing to compare"
        raise SystemExit(msg)
    faults = differing(old, new)
    text = head(old, new) + table(old, new, faults)
    print(text)
    if arguments.control:
        unnoticed = [group for group in faults if not any("threads: 1" in words for words in faults[group].values())]
        print(f"Not noticed in: {', '.join(unnoticed)}" if unnoticed else "Every group noticed.")
        raise SystemExit(bool(unnoticed))
    if not arguments.only:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "same_bits.md").write_text(text)
    raise SystemExit(any(faults.values()))


if __name__ == "__main__":
    main()
