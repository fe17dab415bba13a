"""Signals into and out of the work folder: checked arrays in node order, named by their content; results as parquet files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph.checks import checked_real_array, checked_size
from hushgraph.contents import extra
from hushgraph.distributed.edges import parquet, values_in
from hushgraph.distributed.store import Output, pieces, read_array, room_for
from hushgraph.distributed.tasks import Run
from hushgraph.observation import Noisy


def taken(work: Path, source, n: int, name: str) -> Path:
    """The file in the work folder that holds these values, safely on disk; `source` is an array, a .npy file or parquet files."""
    if not isinstance(source, str | Path | list | tuple):
        source = checked_real_array(name, source)
        if source.shape != (n,):
            msg = f"{name} needs one value per node: expected ({n},), got {source.shape}"
            raise ValueError(msg)
    folder = work / "signals"
    folder.mkdir(exist_ok=True)
    draft, mapped = folder / f".{os.getpid()}.{os.urandom(4).hex()}.tmp", None
    try:
        for where, values in values_in(source, n, name):
            part = checked_size(name, checked_real_array(name, values), missing_ok=True)
            if mapped is None:
                mapped = _reserved(draft, part.dtype, n)
                mapped[:] = np.nan
            _put(mapped, where, part, n, name)
        digest = _checked(mapped, n, name)
        os.sync()
        path = folder / f"{digest}.npy"
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def _reserved(path: Path, dtype, n: int) -> np.ndarray:
    """A mapped file whose room on the disk is certain: without it, writing would end the process."""
    mapped = np.lib.format.open_memmap(path, "w+", dtype, (n,))
    if hasattr(os, "posix_fallocate"):
        with room_for(path), path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return mapped


def _put(mapped: np.ndarray, where, values: np.ndarray, n: int, name: str) -> None:
    last = where.stop - 1 if isinstance(where, slice) else int(np.max(where, initial=-1))
    if last >= n or (not isinstance(where, slice) and len(where) and int(np.min(where)) < 0):
        msg = f"{name} has a value for node {last}, but the graph has only the nodes 0 to {n - 1}"
        raise ValueError(msg)
    if values.ndim != 1:
        msg = f"{name} must be one signal, ({n},); got {values.shape}; denoise one column at a time"
        raise ValueError(msg)
    mapped[where] = values


def _checked(mapped: Any, n: int, name: str) -> str:
    """Its digest, if every node has a value."""
    digest, absent = hashlib.sha256(), n if mapped is None else 0
    if mapped is not None:
        digest.update(mapped.dtype.str.encode())
        for nodes in pieces(n):
            absent += int(np.isnan(mapped[nodes]).sum())
            digest.update(mapped[nodes].tobytes())
        mapped.flush()
    if absent:
        msg = f"{name} must have a value for each of the {n} nodes; {absent} have none or NaN; fill them first"
        raise ValueError(msg)
    return digest.hexdigest()[:32]


def opened_release(noisy: Noisy, sigma, facts: dict[str, Any]) -> tuple[np.ndarray, float]:
    """Values and noise level of a signal that knows its graph. Its noise was drawn once, when it was released."""
    if facts["signal_hash"] != noisy.graph_hash:
        msg = (
            f"these values belong to the graph {noisy.graph_hash[:12]}..., and this folder was prepared from "
            + ("edge files; prepare it from the Graph of the release" if facts["signal_hash"] is None else "another graph")
            + ", or pass their .values with sigma="
        )
        raise ValueError(msg)
    if sigma is not None and sigma not in (noisy.sigma, noisy.noise_level):
        msg = f"sigma travels with the noisy signal ({noisy.sigma:g}); leave sigma= out, got {sigma!r}"
        raise ValueError(msg)
    return noisy.values, noisy.noise_level


def write_part(run: Run, part: int, address: str, unchanged: bool) -> dict[str, Any]:
    """A parquet file with the nodes and the denoised values of a partition."""
    out = run.output(part, "write")
    if (known := out.known()) is not None and known["address"] == address:
        return known
    nodes = read_array(run.work / "parts" / f"{part:05d}" / "rows.nodes.npy")
    values = run.values(nodes) if unchanged else run.output(part, "finish").load("signal")
    values = np.maximum(values, 0) if run.nonnegative else values
    values = np.rint(values) if run.integer else values
    pa, fsspec = extra("pyarrow", name="dask", purpose="parquet files"), extra("fsspec", name="dask", purpose="files elsewhere")
    columns = [
        pa.Array.from_buffers(pa.from_numpy_dtype(one.dtype), len(one), [None, pa.py_buffer(one)]) for one in (nodes, values)
    ]
    table = pa.Table.from_arrays(columns, names=["node", "denoised"])  # pa.table of NumPy's arrays would import pandas
    system, path = fsspec.core.url_to_fs(f"{address}/part-{part:05d}.parquet")
    system.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
    draft = path.rsplit("/", 1)[0] + f"/.part-{part:05d}.{os.urandom(4).hex()}.tmp"
    with room_for(path), system.open(draft, "wb") as file:
        parquet().write_table(table, file)
    system.mv(draft, path)
    return Output(out.folder, "write").done({"address": address, "rows": len(nodes)})
