"""Signals on their way into the work folder: checked arrays in node order, in files named by their content."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hushgraph._atomic import atomic_file, draft_of, take_name
from hushgraph._errors import InputError, Sentence
from hushgraph._validation import checked_real_array, checked_size
from hushgraph.core import offset_of
from hushgraph.distributed.addresses import (
    VALUES,
    as_numpy,
    is_files,
    is_integer_type,
    list_files,
    no_values_error,
    open_file,
    open_parquet,
    reading_parquet,
)
from hushgraph.distributed.object_store import StoredPath, cache_folder
from hushgraph.distributed.store import Place, pieces, read_array, read_marked, room_for
from hushgraph.files import read_array_header
from hushgraph.graphs import Noisy, in_node_order, is_labelled

OLD = 86_400  # seconds after which a draft of a signal belongs to nobody
AT_ONCE = 2**22  # values read at a time


def store_signal(work: Place, source: Any, n: int, name: str) -> Place:
    """Write a signal into the work folder, safely to disk, and return its file; `source` is an array, a .npy file or parquet files."""
    if not is_files(source):
        source = checked_real_array(name, in_node_order(name, source, list(range(n)), one=True) if is_labelled(source) else source)
        if source.shape != (n,):
            msg = f"{name} needs one value per node: expected ({n},), got {source.shape}"
            raise InputError(msg)
    place = work / "signals"
    folder = cache_folder() if isinstance(place, StoredPath) else place
    folder.mkdir(exist_ok=True)
    _remove_old_drafts(folder)
    rows = 0
    mapped: Any = None
    with draft_of(folder / "signal", suffix=".tmp") as draft:
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
        path = place / f"{digest}.npy"
        if isinstance(path, Path):
            take_name(draft, path, sync=True)
        elif not path.exists():
            path.upload(draft)
    return path


def _reserved(path: Path, dtype: np.dtype, n: int) -> np.ndarray:
    """Return a mapped file whose room on the disk is reserved: writing to it on a full disk would end the process."""
    mapped = np.lib.format.open_memmap(path, "w+", dtype, (n,))
    if hasattr(os, "posix_fallocate"):
        with room_for(path), path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return mapped


def _remove_old_drafts(folder: Path) -> None:
    """Remove the drafts of calls that were killed; younger drafts may belong to calls that still run."""
    for path in folder.glob(".*.tmp"):
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - OLD:
                path.unlink()


def _wider(draft: Path, mapped: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The same values with more digits, in the same file."""
    with atomic_file(draft) as other:
        wide = _reserved(other, dtype, len(mapped))
        for nodes in pieces(len(mapped)):
            wide[nodes] = mapped[nodes]
    return wide


def _put(mapped: np.ndarray, where: slice | np.ndarray, values: np.ndarray, n: int, name: str) -> None:
    """Write values to the places of their nodes."""
    first, last = (where.start, where.stop - 1) if isinstance(where, slice) else _range_of(where)
    if last >= n or first < 0:
        msg = f"{name} has a value for node {last if last >= n else first}, but the graph has only the nodes 0 to {n - 1}; number the nodes as in the edges"
        raise InputError(msg)
    if values.ndim != 1:
        msg = f"{name} must be one signal, ({n},); got {values.shape}; denoise one column at a time"
        raise InputError(msg)
    mapped[where] = values


def _range_of(nodes: np.ndarray) -> tuple[int, int]:
    return (int(nodes.min()), int(nodes.max())) if len(nodes) else (0, -1)


def _checked(mapped: Any, rows: int, n: int, name: str) -> str:
    """Return the digest of a signal in which every node has one value: there are as many rows as nodes, and no node without a value."""
    if rows > n:
        msg = f"{name} must have one value for each of the {n} nodes; it has {rows}: some nodes are given more than once; keep one row of each"
        raise InputError(msg)
    digest, absent = "", n if mapped is None else 0
    if mapped is not None:
        absent = sum(int(np.isnan(mapped[nodes]).sum()) for nodes in pieces(n))
        digest = _digest_of(mapped)
        mapped.flush()
    if absent:
        msg = f"{name} must have a value for each of the {n} nodes; {absent} have none or NaN; fill them first, and see that no node is given more than once"
        raise InputError(msg)
    return digest


def _digest_of(values: np.ndarray) -> str:
    digest = hashlib.sha256(values.dtype.str.encode())
    for nodes in pieces(len(values)):
        digest.update(values[nodes].tobytes())
    return digest.hexdigest()[:32]


def check_stored_signal(path: Place) -> None:
    """Refuse a stored signal that is not the one of its name."""
    if isinstance(path, StoredPath) and not _is_whole(path):
        path.forget_copy()  # perhaps only the copy on this machine is damaged
    if not _is_whole(path):
        msg = "{} is damaged: it does not hold what was written there; remove it, and call {denoise()} with the signal again"
        raise InputError(Sentence(msg, path))


def _is_whole(path: Place) -> bool:
    return f"{_digest_of(read_array(path, whole=False))}.npy" == path.name


def signal_offset(path: Place) -> float:
    """Return `offset_of` a signal in a file."""
    return offset_of(*mean_and_variance(path))


def mean_and_variance(path: Place) -> tuple[float, float]:
    """Return mean and variance of the values of a file, from sums over pieces of the file."""
    mapped = read_marked(path, whole=False)
    n = len(mapped)
    mean = math.fsum(float(mapped[nodes].sum(dtype=np.float64)) for nodes in pieces(n)) / n
    variance = math.fsum(float(((mapped[nodes] - mean) ** 2).sum(dtype=np.float64)) for nodes in pieces(n)) / n
    return mean, variance


def release_values(noisy: Noisy, sigma: Any, facts: dict[str, Any]) -> tuple[np.ndarray, float]:
    """Return the values and the noise level of a signal that belongs to the graph of the work folder."""
    if facts["signal_hash"] != noisy.graph_hash:
        source = "edge files; prepare it from the Graph of the release" if facts["signal_hash"] is None else "another graph"
        msg = "these values belong to the graph {}..., and this folder was prepared from {}, or pass their .values with {sigma=}"
        raise InputError(Sentence(msg, noisy.graph_hash[:12], source))
    return noisy.values, noisy.checked_noise_level(sigma)


# ---- values in files ---------------------------------------------------------------------------------------------------


def values_in(source: Any, n: int, name: str) -> Iterator[tuple[slice | np.ndarray, np.ndarray]]:
    """Yield nodes (their numbers, or a slice) and their values, of an array, a .npy file, or parquet files with columns node and value.

    Values of parquet files without a column of nodes go by position, file after file.
    """
    if not is_files(source):
        yield slice(0, n), source
    elif isinstance(source, str | Path) and str(source).endswith(".npy"):
        yield from _values_of_array(str(source), n, name)
    else:
        place, numbered = 0, None
        for path in list_files(source, name):
            with open_file(path) as file:
                table = open_parquet(file, path, VALUES)
                node, value = _value_columns(table.schema_arrow, path, name)
                if numbered is not None and numbered != (node is not None):
                    msg = f"all files of {name} must have a column of nodes, or none; {path} differs from those before it; write them alike"
                    raise InputError(msg)
                numbered = node is not None
                batches = table.iter_batches(batch_size=AT_ONCE, columns=[value] if node is None else [node, value])
                while (batch := _next_of(batches, path)) is not None:
                    where = slice(place, place + len(batch)) if node is None else _nodes_in(batch.column(node), node, path)
                    place += len(batch)
                    yield where, as_numpy(batch.column(value))


def _next_of(batches: Any, path: str) -> Any:
    """Return the next rows of a parquet file, or None after the last."""
    with reading_parquet(path, VALUES):
        return next(batches, None)


def _value_columns(schema: Any, path: str, name: str) -> tuple[str | None, str]:
    """Return the column of nodes, if there is one, and that of the values; an index that pandas or Dask wrote is neither."""
    names = [column for column in schema.names if not column.startswith("__")]
    node = next((column for column in ("node", "id", "label") if column in names), None)
    others = [column for column in names if column != node]
    value = next((column for column in (name, "value") if column in others), others[0] if len(others) == 1 else None)
    if value is None:
        msg = f"{path} must have a column 'value' or {name!r}, or a single one beside the nodes; it has {schema.names[:20]}; rename the one that is meant"
        raise InputError(msg)
    if node is not None and not is_integer_type(schema.field(node).type):
        msg = f"column {node!r} of {path} must hold node numbers, integers from 0; got {schema.field(node).type}; number the nodes as in the edges"
        raise InputError(msg)
    return node, value


def _nodes_in(column: Any, node: str, path: str) -> np.ndarray:
    if column.null_count:
        msg = f"column {node!r} of {path} must name a node in each row; {column.null_count} rows have none"
        raise InputError(msg)
    return as_numpy(column)


def _values_of_array(path: str, n: int, name: str) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the values of a .npy file in pieces: mapped, or read one after the other from an address."""
    try:
        opened = open_file(path)
    except FileNotFoundError as error:
        raise no_values_error(path, name) from error
    with opened as file:
        shape, dtype = _read_header(file, path)
        if shape != (n,):
            msg = f"{name} needs one value per node: expected ({n},), got {shape}"
            raise InputError(msg)
        mapped = None if "://" in path else _mapped(path)
        for nodes in pieces(n, AT_ONCE):
            count = nodes.stop - nodes.start
            yield nodes, np.asarray(_read_values(file, path, dtype, count) if mapped is None else mapped[nodes])


def _mapped(path: str) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise _no_array_error(path) from error


def _read_values(file: BinaryIO, path: str, dtype: np.dtype, count: int) -> np.ndarray:
    data = file.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise _no_array_error(path)
    return np.frombuffer(data, dtype)


def _read_header(file: BinaryIO, path: str) -> tuple[tuple[int, ...], np.dtype]:
    """Return the shape and the type of the values that follow in a .npy file."""
    if (header := read_array_header(file)) is None:
        raise _no_array_error(path)
    return header.shape, header.dtype


def _no_array_error(path: str) -> ValueError:
    return InputError(f"{path} is not a .npy file of numbers, or is damaged; write it again with numpy.save")
