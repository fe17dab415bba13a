"""Transforms and the whole denoiser against SciPy, PyGSP and the memory bus, all in one process.

    make bench                                  generated road-like graphs of 1e5 and 1.1e6 nodes
    HUSHGRAPH_DATA=... make bench               also the real roads_1m
    python benchmarks/bench.py --sizes 4400000  other sizes

Every time is the best of several runs after a warm-up, on all cores; ratios are taken inside one run, because machines
differ from hour to hour. Our functions and SciPy's recurrence run in turn, round after round, so that a minute in which the machine is busy
with something else decides none of the ratios. Writes Markdown to the screen and JSON to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import scipy
from scipy import sparse
from scipy.linalg.blas import daxpy
from scipy.sparse import _sparsetools
from speed_watch import commit

import hushgraph as hg
from hushgraph.core.threads import thread_count
from hushgraph.experiments.scipy_recurrence import ScipyRecurrence
from hushgraph.experiments.stage import machine as describe_machine

DEGREE = 100
RESULTS = Path(__file__).parent / "results"


def best_of(function, repeats=5, budget=20.0, warm=True):
    """Least wall time of some runs after a warm-up, within a time budget."""
    if warm:
        function()
    times, start = [], time.perf_counter()
    while len(times) < repeats and (not times or time.perf_counter() - start < budget):
        before = time.perf_counter()
        function()
        times.append(time.perf_counter() - before)
    return min(times)


def best_in_turn(functions, rounds, share=0.5):
    """Least wall time of each function over some rounds, in each of which every function runs for `share` seconds, at least once."""
    times = dict.fromkeys(functions, np.inf)
    for function in functions.values():
        function()
    for _ in range(rounds):
        for name, function in functions.items():
            times[name] = min(times[name], best_of(function, repeats=1000, budget=share, warm=False))
    return times


# ---- rivals -----------------------------------------------------------------------------------------------------


class TunedScipyRecurrence(ScipyRecurrence):
    """The same with SciPy's private product into an existing array and BLAS axpy: the best one can do without a compiler."""

    def step(self, now, before):
        np.negative(before, out=before)
        _sparsetools.csr_matvec(self.n, self.n, self.matrix.indptr, self.matrix.indices, self.matrix.data, now, before)

    def add(self, now, factor, band):
        daxpy(now, band, a=factor)


def pygsp_transforms(frame):
    """PyGSP's Chebyshev filter bank with our filters, forward and inverse; None where it is not installed."""
    try:
        from pygsp import filters, graphs
    except ImportError:
        return None
    graph = graphs.Graph(sparse.csr_matrix(frame.graph.adjacency, copy=True))
    graph._lmax = frame.lambda_upper
    bank = filters.Filter(
        graph, [lambda x, j=j: frame.bands.filters(np.ravel(x))[j].reshape(np.shape(x)) for j in range(frame.n_scales)]
    )
    return (
        lambda x: bank.filter(x, method="chebyshev", order=DEGREE),
        lambda bands: bank.filter(bands, method="chebyshev", order=DEGREE),
    )


# ---- the memory bus ---------------------------------------------------------------------------------------------


def bandwidth(megabytes=256):
    """Bytes per second of y += a x by BLAS on all threads, arrays of `megabytes` each, of which 3 are moved."""
    size = megabytes * 2**20 // 8
    x, y = np.ones(size), np.zeros(size)
    return 3 * 8 * size / best_of(lambda: daxpy(x, y, a=3.0), repeats=10)


def recurrence_bytes(frame):
    """Bytes a step-by-step transform must move: per degree the indices once, two vectors in, one out; each 8 degrees every band in and out."""
    n, nnz = frame.graph.n, 2 * frame.graph.n_edges
    per_step = 4 * nnz + 8 * 3 * n
    per_pass = 8 * n * (8 + 2 * frame.n_scales)
    return DEGREE * per_step + DEGREE / 8 * per_pass


def streamed_bytes(frame):
    """The least any transform must move: the signal and the indices in, the bands out."""
    n, nnz = frame.graph.n, 2 * frame.graph.n_edges
    return 8 * n + 4 * nnz + 8 * n * frame.n_scales


class PeakMemory:
    """Largest growth of the resident set inside the block, sampled every 2 ms, in bytes."""

    def __enter__(self):
        self.start = self.peak = self._resident()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        self.growth = self.peak - self.start

    def _watch(self):
        while not self.done.wait(0.002):
            self.peak = max(self.peak, self._resident())

    @staticmethod
    def _resident():
        try:
            return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        except OSError:
            return 0


def memory_in_new_process(graph, noisy):
    """Gigabytes by which a new process grows while it denoises: the memory of a process that has denoised before is not given back."""
    with tempfile.TemporaryDirectory() as folder:
        hg.write_graph(f"{folder}/graph.npz", graph)
        np.save(f"{folder}/noisy.npy", noisy)
        words = [sys.executable, __file__, "--memory-of", folder]
        return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def print_memory(folder):
    """Print the gigabytes by which this process grows while it denoises the signal in a folder."""
    graph, noisy = hg.read_graph(f"{folder}/graph.npz"), np.load(f"{folder}/noisy.npy")
    small = hg.datasets.city(500)
    hg.denoise(small, np.zeros(small.n), sigma=1.0, method="sgwt_sure")  # loads all code
    with PeakMemory() as memory:
        hg.denoise(graph, noisy, sigma=1.0, method="sgwt_sure")
    print(memory.growth / 1e9)


# ---- one graph --------------------------------------------------------------------------------------------------


def measure(graph, name, rate, rivals=True):
    """All times for one graph, in seconds."""
    frame = hg.chebyshev_frame(graph, degree=DEGREE)
    clean = hg.bernoulli_signal(graph, p=0.001, k=4, seed=0)
    noisy = clean + np.random.default_rng(0).normal(0, 1, graph.n)
    bands = hg.analyze(frame, noisy)
    row = {"graph": name, "n": graph.n, "edges": graph.n_edges, "scales": frame.n_scales}

    def fresh():
        graph.cache.clear()  # spectrum, layout and workspace count
        return hg.denoise(graph, noisy, sigma=1.0, method="sgwt_sure")

    result = fresh()
    row["stages"] = {stage: round(seconds, 4) for stage, seconds in result.timings.items()}
    row["snr_in"], row["snr_out"] = hg.snr(clean, noisy), hg.snr(clean, result.signal)
    del result
    graph.cache.clear()
    row["denoise_memory_gb"] = memory_in_new_process(graph, noisy)
    row["bytes_recurrence"] = recurrence_bytes(frame) / rate
    row["bytes_streamed"] = streamed_bytes(frame) / rate
    single = noisy.astype(np.float32)
    lengths = np.random.default_rng(1).uniform(0.5, 1.5, graph.n_edges)
    upper = sparse.triu(graph.adjacency).tocoo()
    weighted = hg.Graph.from_edges(np.stack(upper.coords, axis=1), n=graph.n, weights=lengths)
    weighted_frame = hg.chebyshev_frame(weighted, degree=DEGREE, n_scales=frame.n_scales)
    functions = {
        "forward": lambda: hg.analyze(frame, noisy),
        "inverse": lambda: hg.synthesize(frame, bands),
        "denoise": fresh,
        "denoise_deep": lambda: hg.denoise(graph, noisy, sigma=1.0, method="sgwt_deep"),
        "forward_float32": lambda: hg.analyze(frame, single),
        "forward_weighted": lambda: hg.analyze(weighted_frame, noisy),
    }
    if graph.n <= 2_000_000:
        eight = np.random.default_rng(2).normal(size=(graph.n, 8))
        functions["forward_of_8"] = lambda: hg.analyze(frame, eight)
    recurrences = {"scipy": ScipyRecurrence(frame), "tuned": TunedScipyRecurrence(frame)} if rivals else {}
    for name, rival in recurrences.items():
        if not np.allclose(rival.forward(noisy), bands, atol=1e-9):
            message = f"{name} and hushgraph disagree: no times are given"
            raise SystemExit(message)
        functions[f"{name}_forward"] = lambda rival=rival: rival.forward(noisy)
        functions[f"{name}_inverse"] = lambda rival=rival: rival.inverse(bands)
    row |= best_in_turn(functions, rounds=5 if graph.n <= 2_000_000 else 2)
    if "forward_of_8" in row:
        row["forward_of_8"] /= 8
    if not rivals:
        return row
    other = pygsp_transforms(frame)
    if other is not None:
        forward, inverse = other
        columns = np.asarray(forward(noisy))
        row["pygsp_forward"] = best_of(lambda: forward(noisy), repeats=2, warm=False)
        row["pygsp_inverse"] = best_of(lambda: inverse(columns), repeats=1, warm=False)
    return row


LINES = [  # label, key, and what its ratio is taken to
    ("**forward**", "forward", None),
    ("**inverse**", "inverse", None),
    ("**whole denoise, sgwt_sure** (spectrum, layout and all)", "denoise", None),
    ("whole denoise, sgwt_deep", "denoise_deep", None),
    ("SciPy in place: forward", "scipy_forward", "forward"),
    ("SciPy in place: inverse", "scipy_inverse", "inverse"),
    ("SciPy forward against our whole denoise", "scipy_forward", "denoise"),
    ("SciPy tuned (private product, BLAS axpy): forward", "tuned_forward", "forward"),
    ("SciPy tuned: inverse", "tuned_inverse", "inverse"),
    ("PyGSP: forward", "pygsp_forward", "forward"),
    ("PyGSP: inverse", "pygsp_inverse", "inverse"),
    ("bytes of a step-by-step transform over the bandwidth of memory", "bytes_recurrence", "forward"),
    ("bytes of signal, indices and bands once over the bandwidth of memory", "bytes_streamed", "forward"),
    ("forward, float32", "forward_float32", "forward"),
    ("forward, random weights", "forward_weighted", "forward"),
    ("forward of 8 signals, per signal", "forward_of_8", "forward"),
]


def table(rows, rate):
    """Markdown: seconds, and in brackets how many times our own time they are."""
    head = ["seconds", *(f"{row['graph']} ({row['scales']} scales)" for row in rows)]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * len(rows)]
    for label, key, own in LINES:
        if any(key in row for row in rows):
            cells = [f"{row[key]:.3f}" + (f" ({row[key] / row[own]:.2f}x)" if own else "") if key in row else "-" for row in rows]
            lines.append("| " + " | ".join([label, *cells]) + " |")
    lines.append(
        "| peak memory of sgwt_sure above the loaded graph | "
        + " | ".join(f"{row['denoise_memory_gb']:.2f} GB" for row in rows)
        + " |"
    )
    lines.append(
        "| SNR in, out (sgwt_sure) | " + " | ".join(f"{row['snr_in']:.2f}, {row['snr_out']:.2f} dB" for row in rows) + " |"
    )
    return "\n".join(
        [
            *lines,
            "",
            f"Bandwidth of memory (BLAS axpy), all threads, 256 MB arrays: {rate / 1e9:.1f} GB/s. Degree {DEGREE}, float64.",
        ]
    )


def real_roads():
    """roads_1m of the data folder, if there is one."""
    folder = os.environ.get("HUSHGRAPH_DATA")
    path = Path(folder) / "roads_1m.npz" if folder else None
    if path is None or not path.exists():
        return []
    with np.load(path) as data:
        return [("roads_1m (real)", hg.Graph.from_edges(data["edges"], n=int(data["n"])))]


def in_words(machine):
    """Return the machine in a few words."""
    return f"{machine['processor']}, {machine['threads']} threads, NumPy {machine['numpy']}, SciPy {machine['scipy']}."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100_000, 1_100_000])
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--memory-of", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        print_memory(arguments.memory_of)
        return
    measured = commit()  # before the measurement, in which the working tree can change
    rate = bandwidth()
    graphs = [(f"generated roads {n:,}", hg.datasets.roads(n, seed=0)) for n in arguments.sizes] + real_roads()
    rows = []
    for name, graph in graphs:
        print(f"... {name}", flush=True)
        rows.append(measure(graph, name, rate, rivals=not arguments.no_rivals))
    print(table(rows, rate))
    machine = {
        "processor": describe_machine(),
        "threads": thread_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }
    report = {
        "date": datetime.date.today().isoformat(),
        "commit": measured,
        "machine": machine,
        "memory_gb_per_s": rate / 1e9,
        "degree": DEGREE,
        "rows": rows,
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "bench.json").write_text(json.dumps(report, indent=1) + "\n")
    (arguments.out / "bench.md").write_text(f"{report['date']}, {in_words(machine)}\n\n{table(rows, rate)}\n")


if __name__ == "__main__":
    main()
