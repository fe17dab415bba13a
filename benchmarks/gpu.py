"""One GPU: the transforms and the whole denoiser against cuSPARSE, PyTorch and the memory of the card, all in one process.

    PYTHONPATH=src python benchmarks/gpu.py                         1.1e6, 1.1e7 and 1e8 nodes; needs CuPy, PyTorch if it is there
    PYTHONPATH=src python benchmarks/gpu.py --sizes 1100000         only some sizes
    PYTHONPATH=src python benchmarks/gpu.py --mesh --out mesh.md    `auto` on the processor and on the GPU, on a mesh of 35,000 nodes

Road networks are generated up to 1.1e7 nodes, 1e8 are a grid (its generator is faster). Every time is the median of several runs after a
warm-up, between CUDA events for transforms and on the host's clock, with the card idle at both ends, for whole denoisings. Writes
Markdown to the screen and to --out.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import time
from pathlib import Path

import cupy as cp
import numpy as np
from cupyx.scipy import sparse as device_sparse
from scipy import sparse
from scipy.spatial import ConvexHull

import hushgraph as hg
from hushgraph.core import cpu, reference

ROADS = 20_000_000  # nodes up to which road networks are generated
MOST_COUNTED = 2_000_000  # nodes up to which `counts` is measured
RECORDED = Path(__file__).parent / "results" / "gpu.md"


def between_events(work, repeats=20) -> float:
    """Milliseconds on the card."""
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        start, end = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(start, end))
    return statistics.median(times)


def on_the_clock(work, repeats=10) -> float:
    """Milliseconds from call to result."""
    for _ in range(2):
        work()
    times = []
    for _ in range(repeats):
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        work()
        cp.cuda.Device().synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def copy_bandwidth() -> float:
    """Bytes per second, read and written."""
    a = cp.zeros(2**28)
    b = cp.empty_like(a)
    return 2 * a.nbytes / (1e-3 * between_events(lambda: cp.copyto(b, a)))


# ---- rivals -----------------------------------------------------------------------------------------------------


def naive_cusparse(frame, x):
    """The recurrence as one writes it with CuPy's sparse matrices."""
    scale = 4 * frame.unit / frame.lambda_upper
    matrix = device_sparse.csr_matrix((frame.graph.laplacian() * scale).tocsr().astype(x.dtype))
    matrix = (matrix - 2 * device_sparse.eye(frame.graph.n, dtype=x.dtype, format="csr")).tocsr()
    theta = frame.coefficients

    def forward():
        before, now = x, 0.5 * (matrix @ x)
        bands = [float(row[0]) * before + float(row[1]) * now for row in theta]
        for k in range(2, theta.shape[1]):
            before, now = now, matrix @ now - before
            for row, band in zip(theta, bands, strict=True):
                band += float(row[k]) * now
        return cp.stack(bands)

    return forward


def torch_sparse(frame, x):
    """The same with PyTorch."""
    import torch

    scale = 4 * frame.unit / frame.lambda_upper
    host = (frame.graph.laplacian() * scale - 2 * sparse.eye_array(frame.graph.n)).tocsr()
    dtype = torch.float64 if x.dtype == np.float64 else torch.float32
    matrix = torch.sparse_csr_tensor(
        torch.from_numpy(host.indptr.astype(np.int32)), torch.from_numpy(host.indices.astype(np.int32)), torch.from_numpy(host.data),
        size=host.shape, dtype=dtype, device="cuda",
    )  # fmt: skip
    signal, theta = torch.from_dlpack(x), frame.coefficients.tolist()

    def forward():
        before, now = signal, 0.5 * (matrix @ signal)
        bands = torch.stack([row[0] * before + row[1] * now for row in theta])
        for k in range(2, len(theta[0])):
            before, now = now, matrix @ now - before
            for j, row in enumerate(theta):
                bands[j].add_(now, alpha=row[k])
        return bands

    return forward


# ---- one size ---------------------------------------------------------------------------------------------------


def measure(graph, frame, dtype, bandwidth: float) -> dict[str, str]:
    """A column of the table."""
    small, rng = graph.n <= ROADS, np.random.default_rng(0)
    noisy = cp.asarray((10 * np.sin(np.arange(graph.n) / 1000) + rng.normal(size=graph.n)).astype(dtype))
    row = {"nodes": f"{graph.n:,}", "edges": f"{graph.n_edges:,}", "numbers": np.dtype(dtype).name, "scales": str(frame.n_scales)}
    graph.free_device()
    pool, started = cp.get_default_memory_pool(), time.perf_counter()
    graph.device_layout("combinatorial")
    row["order of rows and upload, s"] = f"{time.perf_counter() - started:.2f}"
    for method in ("sgwt_sure", "let", "filter", "auto") if small else ("sgwt_sure",):
        graph.free_device()
        pool.free_all_blocks()
        row[f"denoise, {method}, ms"] = (
            f"{on_the_clock(lambda method=method: hg.denoise(graph, noisy, sigma=1, method=method)):.2f}"
        )
        row[f"memory of the card then, {method}, GB"] = f"{pool.total_bytes() / 1e9:.1f}"
    if graph.n <= MOST_COUNTED and dtype == np.float64:
        row.update(of_counts(graph))
    F = hg.analyze(frame, noisy)
    forward = between_events(lambda: hg.analyze(frame, noisy))
    row["forward, ms"] = f"{forward:.2f}"
    row["inverse, ms"] = f"{between_events(lambda: hg.synthesize(frame, F)):.2f}"
    moved = (2 * graph.n_edges * 2 + (3 * np.dtype(dtype).itemsize) * graph.n) * frame.degree + 2 * F.nbytes
    row["bytes of a plain recurrence at copy speed, ms"] = f"{1e3 * moved / bandwidth:.2f}"
    row.update(against_others(graph, frame, noisy, forward))
    return row | against_the_processor(graph, frame, noisy, F.get()) if small else row


def of_counts(graph) -> dict[str, str]:
    """Counts: `counts` alone and in `auto`, and how far the result is from that of the processor."""
    clean = hg.hotspot_counts(graph, total=3.5 * graph.n)
    noisy = clean + 8.06 * np.random.default_rng(0).normal(size=graph.n)
    there, settings = cp.asarray(noisy), {"sigma": 8.06, "nonnegative": True}
    started = time.perf_counter()
    found = hg.denoise(graph, there, method="counts", **settings)
    row = {"first counts, with the surroundings, s": f"{time.perf_counter() - started:.1f}"}
    for method in ("counts", "auto"):
        name = "counts" if method == "counts" else "auto with counts"
        row[f"denoise, {name}, ms"] = (
            f"{on_the_clock(lambda method=method: hg.denoise(graph, there, method=method, **settings)):.0f}"
        )
    started = time.perf_counter()
    here = hg.denoise(graph, noisy, method="counts", **settings)
    row["counts on the processor, s"] = f"{time.perf_counter() - started:.1f}"
    apart = np.linalg.norm(found.signal.get() - here.signal) / np.linalg.norm(here.signal)
    row["counts, distance from the processor's result, relative"] = f"{apart:.1e}"
    return row


def against_others(graph, frame, noisy, forward: float) -> dict[str, str]:
    """A batch, and the rivals."""
    columns = cp.asarray(np.random.default_rng(1).normal(size=(graph.n, 8)).astype(noisy.dtype))
    column = between_events(lambda: hg.analyze(frame, columns)) / 8
    row = {"forward, a column of 8, ms": f"{column:.2f}", "a column of 8, of one alone": f"{column / forward:.2f}"}
    row["cuSPARSE, ms"] = f"{between_events(naive_cusparse(frame, noisy), 5):.2f}"
    try:
        row["PyTorch, ms"] = f"{between_events(torch_sparse(frame, noisy), 5):.2f}"
    except (ImportError, RuntimeError) as error:
        row["PyTorch, ms"] = type(error).__name__
    return row


def against_the_processor(graph, frame, noisy, F) -> dict[str, str]:
    """Whether the numbers agree."""
    row, scale, here = {}, 2 * frame.unit / frame.lambda_upper, noisy.get()
    same = cpu.forward(graph.layout("combinatorial"), frame.coefficients, here[None], scale)[0]
    row["bits of the processor, forward"] = "yes" if np.array_equal(same, F) else f"no, off by {np.abs(same - F).max():.1e}"
    truth = reference.forward(reference.prepare(*graph.symmetric_parts("combinatorial")), frame.coefficients, here[None].astype(np.float64), scale)  # fmt: skip
    row["off the reference, of the largest coefficient"] = f"{np.abs(truth[0] - F).max() / np.abs(truth).max():.1e}"
    host, there = (hg.denoise(graph, values, sigma=1, method="sgwt_sure") for values in (here, noisy))
    row["thresholds of the processor, sgwt_sure"] = "same bits" if np.array_equal(host.thresholds, there.thresholds) else (
        f"off by {np.abs(host.thresholds / there.thresholds - 1).max():.1e}")  # fmt: skip
    equal = np.array_equal(host.signal, there.signal.get())
    row["signal of the processor, sgwt_sure"] = (
        "same bits" if equal else f"off by {np.abs(host.signal - there.signal.get()).max():.1e}"
    )
    return row


# ---- `auto` on both machines ---------------------------------------------------------------------------------------


def mesh(n: int):
    """The graph of a mesh of random points on a sphere, and the points."""
    points = np.random.default_rng(0).normal(size=(n, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    return hg.Graph.from_mesh(points, ConvexHull(points).simplices), points


def auto_on_a_mesh(n: int = 35_000) -> list[str]:
    """Lines of a table: the error of `auto` in noise variances on the processor and on the GPU, for kinds of signals, and times."""
    (graph, points), rng = mesh(n), np.random.default_rng(1)
    waves, centres = points @ rng.normal(size=(3, 5)), points[rng.integers(0, n, 12)]
    signals = {
        "smooth": 5 * np.sin(4 * waves[:, 0]) + 3 * np.cos(6 * waves[:, 1]),
        "pieces": 10.0 * (waves[:, 2] > 0.3) + 6 * (waves[:, 3] > 1) - 5 * (waves[:, 4] < -0.7),
        "spots": sum(20 * np.exp(-((points - centre) ** 2).sum(axis=1) / 0.01) for centre in centres),
    }
    signals["smooth and pieces"] = signals["smooth"] / 2 + signals["pieces"]
    lines = ["| signal | sigma | error, processor | error, GPU | GPU over processor | ms, processor | ms, GPU |", "|---" * 7 + "|"]
    for name, clean in signals.items():
        for sigma in (1.0, 3.0, 10.0):
            noisy = clean + sigma * np.random.default_rng(5).normal(size=n)
            there = cp.asarray(noisy)
            signal = hg.denoise(graph, noisy, sigma=sigma).signal
            started = time.perf_counter()
            hg.denoise(graph, noisy, sigma=sigma)
            host = 1e3 * (time.perf_counter() - started)
            device = on_the_clock(lambda there=there, sigma=sigma: hg.denoise(graph, there, sigma=sigma), 3)
            found = hg.denoise(graph, there, sigma=sigma).signal.get()
            errors = [np.mean((one - clean) ** 2) / sigma**2 for one in (signal, found)]
            lines.append(
                f"| {name} | {sigma:g} | {errors[0]:.5f} | {errors[1]:.5f} | {errors[1] / errors[0]:.4f} | {host:.0f} | {device:.1f} |"
            )
            print(lines[-1], flush=True)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sizes", type=lambda text: [int(float(part)) for part in text.split(",")], default=[1_100_000, 11_000_000, 10**8]
    )
    parser.add_argument("--mesh", action="store_true", help="compare `auto` on both machines, on a mesh")
    parser.add_argument("--out", type=Path, default=RECORDED)
    arguments = parser.parse_args()
    bandwidth = copy_bandwidth()
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(
        head := f"{datetime.date.today()}, {name}, CuPy {cp.__version__}; copy {bandwidth / 1e12:.2f} TB/s; degree 100", flush=True
    )
    if arguments.mesh:
        arguments.out.write_text("\n".join([f"{head}.", "", *auto_on_a_mesh()]) + "\n")
        return
    rows = []
    for n in arguments.sizes:
        graph = hg.datasets.roads(n) if n <= ROADS else hg.datasets.grid(round(n**0.5), round(n**0.5))
        frame = hg.chebyshev_frame(graph)
        for dtype in (np.float64, np.float32) if graph.n <= ROADS else (np.float32,):
            rows.append(measure(graph, frame, dtype, bandwidth))
            print(rows[-1], flush=True)
            write(arguments.out, head, rows)
        graph.free_device()


def write(path: Path, head: str, rows: list[dict[str, str]]) -> None:
    """The table so far, from small to large."""
    rows = sorted(rows, key=lambda row: int(row["nodes"].replace(",", "")))
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [
        f"{head}.",
        "",
        f"| {' | '.join(['', *(row['nodes'] + ', ' + row['numbers'] for row in rows)])} |",
        "|---" * (len(rows) + 1) + "|",
    ]
    lines += [
        f"| {' | '.join([name, *(row.get(name, '-') for row in rows)])} |" for name in names if name not in ("nodes", "numbers")
    ]
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
