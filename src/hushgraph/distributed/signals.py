"""Signals into and out of the work folder: checked arrays in node order, named by their content; results as parquet files."""

from __future__ import annotations

import hashlib
import io
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph._errors import InputError, NoFileError, Sentence
from hushgraph.checks import as_number, checked_real_array, checked_size, shown
from hushgraph.contents import extra
from hushgraph.distributed.edges import are_files, located, opened, parquet, values_in
from hushgraph.distributed.store import Output, pieces, read_array, room_for, settle
from hushgraph.distributed.tasks import Run
from hushgraph.labelled import in_node_order, is_labelled
from hushgraph.observation import Noisy

OLD = 86_400  # seconds after which a draft of a signal belongs to nobody
RUN = b"hushgraph.run"  # what a part file says of itself


def taken(work: Path, source, n: int, name: str) -> Path:
    """The file in the work folder that holds these values, safely on disk; `source` is an array, a .npy file or parquet files."""
    if not are_files(source):
        source = checked_real_array(name, in_node_order(name, source, list(range(n)), one=True) if is_labelled(source) else source)
        if source.shape != (n,):
            msg = f"{name} needs one value per node: expected ({n},), got {source.shape}"
            raise InputError(msg)
    folder = work / "signals"
    folder.mkdir(exist_ok=True)
    _remove_old_drafts(folder)
    draft, rows = folder / f".{os.getpid()}.{os.urandom(4).hex()}.tmp", 0
    mapped: Any = None
    try:
        for where, values in values_in(source, n, name):
            part = checked_size(name, checked_real_array(name, values), missing_ok=True)
            if mapped is None:
                mapped = _reserved(draft, part.dtype, n)
                mapped[:] = np.nan
            elif part.dtype.itemsize > mapped.dtype.itemsize:
                mapped = _wider(draft, mapped, part.dtype)
            _put(mapped, where, part, n, name)
            rows += len(part)
        digest = _checked(mapped, rows, n, name)
        settle(draft)
        path = folder / f"{digest}.npy"
        draft.replace(path)
        settle(folder)
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


def _remove_old_drafts(folder: Path) -> None:
    """Those of calls that were killed; younger ones may be at work."""
    for path in folder.glob(".*.tmp"):
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - OLD:
                path.unlink()


def _wider(draft: Path, mapped: np.ndarray, dtype) -> np.ndarray:
    """The same values with more digits, in the same file."""
    other = draft.with_name(f"{draft.name}.wide.tmp")
    try:
        wide = _reserved(other, dtype, len(mapped))
        for nodes in pieces(len(mapped)):
            wide[nodes] = mapped[nodes]
        other.replace(draft)
    finally:
        other.unlink(missing_ok=True)
    return wide


def _put(mapped: np.ndarray, where, values: np.ndarray, n: int, name: str) -> None:
    first, last = (where.start, where.stop - 1) if isinstance(where, slice) else _ends(where)
    if last >= n or first < 0:
        msg = f"{name} has a value for node {last if last >= n else first}, but the graph has only the nodes 0 to {n - 1}; number the nodes as in the edges"
        raise InputError(msg)
    if values.ndim != 1:
        msg = f"{name} must be one signal, ({n},); got {values.shape}; denoise one column at a time"
        raise InputError(msg)
    mapped[where] = values


def _ends(nodes: np.ndarray) -> tuple[int, int]:
    return (int(nodes.min()), int(nodes.max())) if len(nodes) else (0, -1)


def _checked(mapped: Any, rows: int, n: int, name: str) -> str:
    """Its digest, if every node has a value: as many rows as nodes, and no node without, means each has one."""
    if rows > n:
        msg = f"{name} must have one value for each of the {n} nodes; it has {rows}: some nodes are given more than once; keep one row of each"
        raise InputError(msg)
    digest, absent = hashlib.sha256(), n if mapped is None else 0
    if mapped is not None:
        digest.update(mapped.dtype.str.encode())
        for nodes in pieces(n):
            absent += int(np.isnan(mapped[nodes]).sum())
            digest.update(mapped[nodes].tobytes())
        mapped.flush()
    if absent:
        msg = f"{name} must have a value for each of the {n} nodes; {absent} have none or NaN; fill them first, and see that no node is given more than once"
        raise InputError(msg)
    return digest.hexdigest()[:32]


def opened_release(noisy: Noisy, sigma, facts: dict[str, Any]) -> tuple[np.ndarray, float]:
    """Values and noise level of a signal that knows its graph. Its noise was drawn once, when it was released."""
    if facts["signal_hash"] != noisy.graph_hash:
        source = "edge files; prepare it from the Graph of the release" if facts["signal_hash"] is None else "another graph"
        msg = "these values belong to the graph {}..., and this folder was prepared from {}, or pass their .values with {sigma=}"
        raise InputError(Sentence(msg, noisy.graph_hash[:12], source))
    if sigma is not None and as_number(sigma) not in (noisy.sigma, noisy.noise_level):
        msg = "sigma travels with the noisy signal ({:g}); leave {sigma=} out, got {}"
        raise InputError(Sentence(msg, noisy.sigma, shown(sigma)))
    return noisy.values, noisy.noise_level


def write_part(run: Run, part: int, address: str, unchanged: bool) -> dict[str, Any]:
    """A parquet file with the nodes and the denoised values of a partition."""
    out = run.output(part, "write")
    if (known := out.known()) is not None and known["address"] == address and is_written(run, part, address, known["rows"]):
        return known
    nodes = read_array(run.work / "parts" / f"{part:05d}" / "rows.nodes.npy")
    values = run.values(nodes) if unchanged else run.output(part, "finish").load("signal")
    values = np.maximum(values, 0) if run.nonnegative else values
    values = np.rint(values) if run.integer else values
    pa = extra("pyarrow", name="dask", purpose="parquet files")
    columns = [
        pa.Array.from_buffers(pa.from_numpy_dtype(one.dtype), len(one), [None, pa.py_buffer(one)]) for one in (nodes, values)
    ]
    table = pa.Table.from_arrays(columns, names=["node", "denoised"])  # pa.table of NumPy's arrays would import pandas
    table = table.replace_schema_metadata({RUN: run.folder.name})
    system, path = located(part_file(address, part))
    system.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
    draft = path.rsplit("/", 1)[0] + f"/.part-{part:05d}.{os.urandom(4).hex()}.tmp"
    with room_for(path), system.open(draft, "wb") as file:
        parquet().write_table(table, file)
        with suppress(io.UnsupportedOperation, AttributeError):  # files elsewhere are safe when they are closed
            number = file.fileno()
            file.flush()
            os.fsync(number)
    try:
        _check_own(run, system, path, address, damaged_ok=True)
    except ValueError:
        system.rm_file(draft)
        raise
    system.mv(draft, path)
    return Output(out.folder, "write").done({"address": address, "rows": len(nodes)})


# ---- the files of a result ---------------------------------------------------------------------------------------------


def part_file(address: str, part: int) -> str:
    return f"{address}/part-{part:05d}.parquet"


def is_written(run: Run, part: int, address: str, rows: int) -> bool:
    """Whether the file of a partition is there, of this run and whole, by its own last lines."""
    try:
        with opened(part_file(address, part)) as file:
            found = parquet().ParquetFile(file).metadata
    except (OSError, ValueError):  # not there, or cut off
        return False
    return found.num_rows == rows and (found.metadata or {}).get(RUN) == run.folder.name.encode()


def check_output(run: Run, parts: int, address: str, *, clean: bool = False) -> None:
    """Refuse a folder with parquet files of something else: whoever reads it would mix them. `clean` removes drafts of killed tasks."""
    own = {part_file("", part).strip("/") for part in range(parts)}
    system, folder = located(address)
    system.invalidate_cache()
    if not system.exists(folder):
        return
    for path in sorted(system.ls(folder, detail=False)):
        name = path.rsplit("/", 1)[-1]
        if name.startswith(".part-") and name.endswith(".tmp"):
            if clean:
                system.rm_file(path)
        elif name.endswith(".parquet"):
            _check_own(run, system, path, address, damaged_ok=name in own)


def _check_own(run: Run, system, path: str, address: str, *, damaged_ok: bool) -> None:
    """Refuse a file that does not say that it is of this run; one that is damaged will be written again."""
    try:
        with system.open(path, "rb") as file:
            is_own = (parquet().ParquetFile(file).metadata.metadata or {}).get(RUN) == run.folder.name.encode()
    except FileNotFoundError:
        return
    except ValueError:
        is_own = damaged_ok
    if not is_own:
        name = path.rsplit("/", 1)[-1]
        msg = (
            "{output} must be a folder without other parquet files; {} holds {}, which is not of this run; choose another folder, or remove "
            "them"
        )
        raise InputError(Sentence(msg, address, name))


def read_parts(address: str, parts: int, n: int, run: str) -> np.ndarray:
    """The signal in node order, from exactly the files of this run."""
    signal, rows = np.empty(0), 0
    for part in range(parts):
        try:
            with opened(part_file(address, part)) as file:
                table = parquet().read_table(file)
        except FileNotFoundError:
            msg = "{} is gone; call {denoise()} again: it writes what is lost"
            raise NoFileError(Sentence(msg, part_file(address, part))) from None
        if (table.schema.metadata or {}).get(RUN) != run.encode():
            msg = "{} must be a file of the run {}, and is of another; call {denoise()} again, with another output folder"
            raise InputError(Sentence(msg, part_file(address, part), run))
        nodes, values = (np.asarray(table.column(k)) for k in (0, 1))
        signal = np.empty(n, values.dtype) if part == 0 else signal
        signal[nodes] = values
        rows += len(nodes)
    if rows != n:
        msg = "the files at {} must hold {} nodes, and hold {}; call {denoise()} again: it writes what is lost"
        raise InputError(Sentence(msg, address, n, rows))
    return signal
