"""Distributed runs against one process: equal bits, CPU time, peak memory; and a graph larger than its memory cap.

    python benchmarks/scaling.py equal [--side 3000] [--workers 2] [--method sgwt_sure] [--repeats 1]
    python benchmarks/scaling.py capped [--side 5000] [--memory 3GB]
    python benchmarks/scaling.py store [--side 1000]
    python benchmarks/scaling.py model

Streets: a grid with a tenth of its edges taken out, unweighted, in parquet files. `equal` reads them, denoises in one process and on the
workers of a cluster, and compares thresholds, signal, CPU seconds of all processes (reading, preparing, starting workers) and the peak
memory of each. With `--repeats` both are run in turn, and the run of least CPU time counts, since other programs only add to it. `capped` prepares and denoises in one process under a cap. Each part runs in a process of its own. Writes Markdown to
the screen and to benchmarks/results/distributed.md. `store` compares a work folder on the disk with one in an S3 store, moto's server on this machine. `model` fits what tasks cost, and simulates larger clusters (`scaling_model.py`).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scaling_parts

RESULTS = Path(__file__).parent / "results"
SIGMA = 1.0


def streets(folder: Path, side: int) -> None:
    """Edges, coordinates and a noisy signal, row of blocks by row of blocks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    (folder / "edges").mkdir(parents=True)
    step = max(1, 2_000_000 // side)
    coords = np.lib.format.open_memmap(folder / "coords.npy", "w+", np.float32, (side * side, 2))
    noisy = np.lib.format.open_memmap(folder / "noisy.npy", "w+", np.float64, (side * side,))
    for k, first in enumerate(range(0, side, step)):
        rows = np.arange(first, min(first + step, side))
        node = rows[:, None] * side + np.arange(side)
        across = np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], axis=1)
        down = np.stack([node.ravel(), node.ravel() + side], axis=1)
        pairs = np.concatenate([across, down[down[:, 1] < side * side]])
        pairs = pairs[rng.random(len(pairs)) > 0.1]
        table = pa.table({"source": pairs[:, 0].astype(np.int32), "target": pairs[:, 1].astype(np.int32)})
        pq.write_table(table, folder / "edges" / f"{k:04d}.parquet", row_group_size=1_000_000)
        own = slice(first * side, (rows[-1] + 1) * side)
        coords[own] = np.stack(np.divmod(node.ravel(), side), axis=1)[:, ::-1]
        clean = 3.0 * ((rows[:, None] // 200 + np.arange(side) // 200) % 2)
        noisy[own] = (clean + rng.normal(0, SIGMA, clean.shape)).ravel()


def measured(code: str, **given) -> dict:
    """What a process of its own prints as its last line, as JSON."""
    start = time.perf_counter()
    command = [sys.executable, str(Path(__file__).resolve()), code, json.dumps(given)]
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }  # as installed packages are
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(done.returncode)
    return {"wall": time.perf_counter() - start, **json.loads(done.stdout.splitlines()[-1])}


def cpu_seconds(names: tuple[str, ...] = ("ru_utime", "ru_stime")) -> float:
    """Of this process and of all children that ended."""
    return sum(getattr(resource.getrusage(who), name) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN) for name in names)


def kernel_seconds() -> float:
    """Those that went into files and fresh memory; of what the machine does, not the program, they tell more than others."""
    return cpu_seconds(("ru_stime",))


def peak() -> int:
    """Bytes of memory of this process at its largest."""
    status = Path("/proc/self/status").read_text("utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def single(folder: str, method: str) -> dict:
    """Read and denoise in one process."""
    import hushgraph as hg
    from hushgraph.distributed.addresses import list_files
    from hushgraph.distributed.edges import edge_columns, read_piece, split_files

    noisy = np.load(f"{folder}/noisy.npy")
    files = list_files(f"{folder}/edges")
    pairs = np.concatenate([read_piece(piece, edge_columns(files[0], None))[0] for piece in split_files(files)])
    graph = hg.Graph.from_edges(pairs, n=len(noisy))
    del pairs
    read = cpu_seconds()
    result = hg.denoise(graph, noisy, sigma=SIGMA, method=method)
    np.save(f"{folder}/single.npy", result.signal)
    return {
        "cpu": cpu_seconds(),
        "kernel": kernel_seconds(),
        "cpu_read": read,
        "peak": peak(),
        "thresholds": None if result.thresholds is None else np.asarray(result.thresholds).tolist(),
        "risk": result.risk,
    }


def cluster(folder: str, method: str, workers: int, partitions: int | None) -> dict:
    """Prepare and denoise on workers."""
    import distributed

    import hushgraph.distributed as hd

    where = {"local_directory": f"{folder}/dask", "dashboard_address": None, "memory_limit": 0}
    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, **where) as group, distributed.Client(group) as client:
        start = time.perf_counter()
        prepared = hd.prepare(
            f"{folder}/edges", f"{folder}/work", coords=f"{folder}/coords.npy", partitions=partitions, client=client
        )
        middle = time.perf_counter()
        result = hd.denoise(f"{folder}/work", f"{folder}/noisy.npy", sigma=SIGMA, method=method, client=client)
        end = time.perf_counter()
        peaks = list(client.run(peak).values())
    own = {
        "cpu": cpu_seconds(),
        "kernel": kernel_seconds(),
        "peaks": peaks,
        "client": peak(),
        "prepare": middle - start,
        "denoise": end - middle,
    }
    thresholds = None if result.thresholds is None else result.thresholds.tolist()
    signal = result.read()
    same = np.array_equal(signal, np.load(f"{folder}/single.npy"))
    apart = float(np.abs(signal - np.load(f"{folder}/single.npy")).max())
    return {
        **own,
        "thresholds": thresholds,
        "risk": result.risk,
        "same": bool(same),
        "apart": apart,
        "growth": prepared.growth,
        "partitions": prepared.partitions,
        "timings": result.timings,
    }


def capped(folder: str, method: str, memory: str) -> dict:
    """Prepare and denoise here, under the cap."""
    import hushgraph.distributed as hd
    from hushgraph.distributed.cost_model import parse_memory

    if hasattr(resource, "RLIMIT_DATA"):
        resource.setrlimit(resource.RLIMIT_DATA, (int(parse_memory(memory)),) * 2)
    start = time.perf_counter()
    prepared = hd.prepare(f"{folder}/edges", f"{folder}/work", coords=f"{folder}/coords.npy", memory=memory)
    middle, most = time.perf_counter(), peak()
    result = hd.denoise(f"{folder}/work", f"{folder}/noisy.npy", sigma=SIGMA, method=method)
    return {
        "prepare": middle - start,
        "denoise": time.perf_counter() - middle,
        "peak_prepare": most,
        "peak": peak(),
        "cpu": cpu_seconds(),
        "growth": prepared.growth,
        "partitions": prepared.partitions,
        "n": prepared.n,
        "edges": prepared.n_edges,
        "timings": result.timings,
        "disk": sum(path.stat().st_size for path in Path(folder, "work").rglob("*") if path.is_file()),
    }


def stored(folder: str, files: str, work: str, method: str) -> dict:
    """Prepare and denoise here, with all files at `files`, a folder or an address."""
    import hashlib

    import hushgraph.distributed as hd

    start = time.perf_counter()
    hd.prepare(f"{files}/edges", work, coords=f"{files}/coords.npy", partitions=4, most_ghosts=3.0)
    middle = time.perf_counter()
    result = hd.denoise(work, f"{files}/noisy.npy", sigma=SIGMA, method=method)
    end = time.perf_counter()
    digest = hashlib.sha256(result.read().tobytes()).hexdigest()
    return {"prepare": middle - start, "denoise": end - middle, "cpu": cpu_seconds(), "risk": result.risk, "signal": digest}


@contextmanager
def s3_server(folder: Path) -> Iterator[Any]:
    """An S3 server in a process of its own, whose bucket holds the edges, the coordinates and the signal; yields its file system."""
    import socket

    import s3fs

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], **silent)
    os.environ |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "HUSHGRAPH_CACHE": str(folder / "cache")}
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        system = s3fs.S3FileSystem()
        system.mkdir("bench")
        for path in [*(folder / "edges").iterdir(), folder / "coords.npy", folder / "noisy.npy"]:
            system.put_file(str(path), f"bench/{path.relative_to(folder)}")
        yield system
    finally:
        server.kill()
        server.wait()


def in_store(folder: Path, side: int, method: str) -> None:
    from hushgraph.experiments.stage import machine

    streets(folder, side)
    here = measured("stored", folder=str(folder), files=str(folder), work=f"{folder}/work", method=method)
    with s3_server(folder) as system:
        there = measured("stored", folder=str(folder), files="s3://bench", work="s3://bench/work", method=method)
        system.invalidate_cache()
        size, count = system.du("bench/work"), len(system.find("bench/work"))
    same = all(here[name] == there[name] for name in ("signal", "risk"))
    tell(
        [
            f"\n## {side} x {side} streets, {method}, files in an S3 store ({datetime.date.today()}, {machine()})\n",
            "| | disk | S3 store (moto's server, same machine) | ratio |",
            "|---|---|---|---|",
            f"| preparing, seconds | {here['prepare']:.1f} | {there['prepare']:.1f} | {there['prepare'] / here['prepare']:.2f} |",
            f"| denoising, seconds | {here['denoise']:.1f} | {there['denoise']:.1f} | {there['denoise'] / here['denoise']:.2f} |",
            f"| CPU seconds without the server | {here['cpu']:.1f} | {there['cpu']:.1f} | {there['cpu'] / here['cpu']:.2f} |",
            f"\nSignal and risk equal to the bit: {same}. One process, 4 partitions; {size / 1e9:.2f} GB in {count} objects are left.",
        ]
    )


def tell(lines: list[str]) -> None:
    """On the screen, and among the results in the place of an earlier run of the same."""
    text, path = "\n".join(lines).strip(), RESULTS / "distributed.md"
    print(text)
    head = "# Distributed runs\n\n`benchmarks/scaling.py`: partitions on workers against one process, and under a memory cap."
    earlier = path.read_text("utf-8").split("\n## ")[1:] if path.exists() else []
    found = {section.split(" (")[0]: section.strip() for section in [*earlier, text.removeprefix("## ")]}
    path.write_text("\n\n## ".join([head, *found.values()]) + "\n", "utf-8")


def compare(folder: Path, side: int, workers: int, method: str, partitions: int | None, repeats: int) -> None:
    from hushgraph.experiments.stage import machine

    streets(folder, side)
    runs: list[tuple[dict, dict]] = []
    for _ in range(repeats):
        one = measured("single", folder=str(folder), method=method)
        many = measured("cluster", folder=str(folder), method=method, workers=workers, partitions=partitions)
        runs.append((one, many))
        shutil.rmtree(folder / "work")
    one, many = (min((pair[k] for pair in runs), key=lambda run: run["cpu"]) for k in (0, 1))
    spread = "; ".join(f"{first['cpu']:.1f} and {second['cpu']:.1f}" for first, second in runs)
    many["same"] = all(second["same"] for _, second in runs)
    tell(
        [
            f"\n## {side} x {side} streets, {method}, {workers} workers ({datetime.date.today()}, {machine()})\n",
            "| | one process | cluster | ratio |",
            "|---|---|---|---|",
            f"| CPU seconds, all processes | {one['cpu']:.1f} | {many['cpu']:.1f} | {many['cpu'] / one['cpu']:.2f} |",
            f"| of these in the kernel: files, fresh memory | {one['kernel']:.1f} | {many['kernel']:.1f} | {many['kernel'] / one['kernel']:.2f} |",
            f"| seconds | {one['wall']:.1f} | {many['wall']:.1f} | {many['wall'] / one['wall']:.2f} |",
            f"| peak memory, GB (largest worker) | {one['peak'] / 1e9:.2f} | {max(many['peaks']) / 1e9:.2f} | "
            f"{max(many['peaks']) / one['peak']:.2f} |",
            f"\nThresholds equal to the bit: {one['thresholds'] == many['thresholds']}; signal: {many['same']} (largest difference "
            f"{many['apart']:g}). Relative difference of risk {many['risk'] / one['risk'] - 1:.1e}. {many['partitions']} partitions, "
            f"{many['growth']:.3f} rows per node; preparing {many['prepare']:.1f} s, denoising {many['denoise']:.1f} s "
            f"({', '.join(f'{name} {value:.1f}' for name, value in many['timings'].items())}); client {many['client'] / 1e9:.2f} GB. "
            f"Of the one process's CPU seconds {one['cpu_read']:.1f} went into reading."
            + (f" The least of {repeats} runs in turn, which took {spread} CPU seconds." if repeats > 1 else ""),
        ]
    )


def out_of_core(folder: Path, side: int, memory: str, method: str) -> None:
    from hushgraph.experiments.stage import machine

    streets(folder, side)
    found = measured("capped", folder=str(folder), method=method, memory=memory)
    tell(
        [
            f"\n## {side} x {side} streets, {method}, {memory} cap, one process ({datetime.date.today()}, {machine()})\n",
            f"{found['n']:,} nodes, {found['edges']:,} edges, {found['partitions']} partitions, {found['growth']:.3f} rows per node. "
            f"Preparing {found['prepare']:.0f} s, denoising {found['denoise']:.0f} s, {found['cpu']:.0f} CPU seconds. Peak memory "
            f"{found['peak'] / 1e9:.2f} GB (preparing {found['peak_prepare'] / 1e9:.2f} GB); {found['disk'] / 1e9:.2f} GB of files are left.",
        ]
    )


def main() -> None:
    parts = {"single": single, "cluster": cluster, "capped": capped, "stored": stored, **scaling_parts.PARTS}
    if len(sys.argv) == 3 and sys.argv[1] in parts and sys.argv[2].startswith("{"):
        print(json.dumps(parts[sys.argv[1]](**json.loads(sys.argv[2]))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["equal", "capped", "store", "model"])
    parser.add_argument("--side", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--memory", default="3GB")
    parser.add_argument("--method", default="sgwt_sure")
    parser.add_argument("--folder", default=os.environ.get("TMPDIR", tempfile.gettempdir()))
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=given.folder))
    try:
        if given.what == "equal":
            compare(folder, given.side or 3000, given.workers, given.method, given.partitions, given.repeats)
        elif given.what == "store":
            in_store(folder, given.side or 1000, given.method)
        elif given.what == "model":
            import scaling_model

            scaling_model.tell_all(folder)
        else:
            out_of_core(folder, given.side or 5000, given.memory, given.method)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
