"""Edge lists in parquet files, here or in an object store (fsspec), in pieces that a task can hold.

Columns are source and target (or from and to, src and dst, u and v), integers 0..n-1, and possibly weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph.checks import shown
from hushgraph.contents import extra
from hushgraph.edge_table import ENDS

PIECE = 2**22  # edges that one task sorts into buckets


@dataclass(frozen=True)
class Columns:
    """How the columns of the edge files are called."""

    source: str
    target: str
    weight: str | None


def opened(path: str):
    """A file for reading, wherever it is."""
    return extra("fsspec", name="dask", purpose="files of a distributed run").open(path, "rb")


def whole_address(path: str | Path) -> str:
    """An address, or a path from the root: workers are in folders of their own."""
    return str(path) if "://" in str(path) else str(Path(path).resolve())


def parquet():
    return extra("pyarrow.parquet", name="dask", purpose="parquet files")


def files_of(source) -> list[str]:
    """The parquet files of a path, a pattern, a folder, an address of an object store, or a list of them, in order."""
    if isinstance(source, list | tuple):
        return [path for one in source for path in files_of(one)]
    if not isinstance(source, str | Path):
        msg = f"edges must be a Graph, or parquet files: a path, pattern, folder, address or a list of them; got {shown(source)}"
        raise TypeError(msg)
    system, path = extra("fsspec.core", name="dask", purpose="files of a distributed run").url_to_fs(str(source))
    system.invalidate_cache()  # files may have changed since they were listed
    prefix = "" if "file" in np.atleast_1d(system.protocol) else f"{np.atleast_1d(system.protocol)[0]}://"
    found = system.glob(f"{path.rstrip('/')}/*.parquet") if system.isdir(path) else system.glob(path)
    if not found:
        msg = f"there are no parquet files at {shown(str(source))}; expected a file, a pattern, or a folder that holds *.parquet"
        raise FileNotFoundError(msg)
    return [prefix + str(name) for name in sorted(found)]


def identity_of(path: str) -> list:
    """A file with what tells it from another of the same name: its size, and its tag or the time of its last change."""
    system, place = extra("fsspec.core", name="dask", purpose="files of a distributed run").url_to_fs(path)
    known = system.info(place)
    changed = next(
        (known[key] for key in ("ETag", "etag", "mtime", "LastModified", "last_modified", "created") if key in known), None
    )
    return [path, known.get("size"), str(changed)]


def columns_of(path: str, weight: str | bool | None) -> Columns:
    """Names in the first file; they must be the same in all."""
    with opened(path) as file:
        schema = _table(file, path).schema_arrow
    names = schema.names
    plain = [name.strip().lower() for name in names]
    pair = next((pair for pair in ENDS if plain.count(pair[0]) == plain.count(pair[1]) == 1), None)
    if pair is None:
        msg = f"{path} must have one column each for source and target; it has {names[:20]}"
        raise ValueError(msg)
    if isinstance(weight, str) and weight not in names:
        msg = f"{path} has no column {weight!r} for weights; it has {names[:20]}"
        raise ValueError(msg)
    own = weight if isinstance(weight, str) else "weight" if weight is None and "weight" in names else None
    found = Columns(names[plain.index(pair[0])], names[plain.index(pair[1])], own)
    _check_types(path, schema, found)
    return found


def _check_types(path: str, schema, columns: Columns) -> None:
    types = extra("pyarrow", name="dask", purpose="parquet files").types
    for name in (columns.source, columns.target):
        if schema.field(name).type not in _integers():
            msg = f"column {name!r} of {path} must hold node numbers, integers from 0 without gaps; got {schema.field(name).type}; renumber the nodes"
            raise ValueError(msg)
    weight = None if columns.weight is None else schema.field(columns.weight).type
    if weight is not None and not (types.is_integer(weight) or types.is_floating(weight)):
        msg = f"column {columns.weight!r} of {path} must hold weights, numbers from 0; got {weight}; name another with weight=, or say weight=False"
        raise ValueError(msg)


def _table(file, path: str):
    """A parquet file, or an error that says which one is none."""
    arrow = extra("pyarrow", name="dask", purpose="parquet files")
    try:
        return parquet().ParquetFile(file)
    except arrow.ArrowInvalid as error:
        msg = f"{path} is not a parquet file, or is damaged; write it again, with the columns source and target"
        raise ValueError(msg) from error


def pieces_of(files: list[str], size: int = PIECE) -> list[tuple[str, int, int, int]]:
    """(file, first row group, last + 1, rows) with about `size` rows each."""
    found = []
    for path in files:
        with opened(path) as file:
            meta = _table(file, path).metadata
            rows = [meta.row_group(k).num_rows for k in range(meta.num_row_groups)]
        first, held = 0, 0
        for k, count in enumerate(rows):
            held += count
            if held >= size or k == len(rows) - 1:
                found.append((path, first, k + 1, held))
                first, held = k + 1, 0
    return found


def read_piece(piece, columns: Columns) -> tuple[np.ndarray, np.ndarray | None]:
    """Pairs (m, 2) and weights of one piece."""
    path, first, last = piece[:3]
    wanted = [columns.source, columns.target] + ([columns.weight] if columns.weight else [])
    with opened(path) as file:
        table = parquet().ParquetFile(file).read_row_groups(list(range(first, last)), columns=wanted)
    ends = []
    for name in wanted[:2]:
        column = table.column(name).combine_chunks()
        if column.null_count or column.type not in _integers():
            msg = f"column {name!r} of {path} must hold node numbers, integers from 0 without gaps; got {column.type} with {column.null_count} missing"
            raise ValueError(msg)
        ends.append(numbers_in(column))
    pairs = np.stack(ends, axis=1).astype(np.int64, copy=False)
    if len(pairs) and pairs.min() < 0:
        msg = f"{path} has node {int(pairs.min())}; expected numbers from 0"
        raise ValueError(msg)
    if not columns.weight:
        return pairs, None
    return pairs, numbers_in(table.column(columns.weight).combine_chunks()).astype(np.float64, copy=False)


def numbers_in(column) -> np.ndarray:
    """An Arrow array as NumPy's, nothing copied; `to_numpy`, which imports pandas, only where values are missing."""
    types = extra("pyarrow", name="dask", purpose="parquet files").types
    if column.null_count or not (types.is_integer(column.type) or types.is_float32(column.type) or types.is_float64(column.type)):
        return column.to_numpy(zero_copy_only=False)
    values = np.frombuffer(column.buffers()[1] or b"", dtype=column.type.to_pandas_dtype())
    return values[column.offset : column.offset + len(column)]


def _integers() -> tuple[Any, ...]:
    pa = extra("pyarrow", name="dask", purpose="parquet files")
    return pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()


def largest_node(pieces, columns: Columns) -> int:
    """The largest node number, from the files' own statistics where they have any."""
    most = -1
    for piece in pieces:
        known = _largest_stated(piece, columns)
        most = max(most, int(read_piece(piece, columns)[0].max(initial=-1)) if known is None else known)
    return most


def _largest_stated(piece, columns: Columns) -> int | None:
    path, first, last = piece[:3]
    with opened(path) as file:
        meta = parquet().ParquetFile(file).metadata
        found = []
        for group in (meta.row_group(k) for k in range(first, last)):
            for column in (group.column(k) for k in range(group.num_columns)):
                if column.path_in_schema in (columns.source, columns.target):
                    stats = column.statistics
                    if stats is None or not stats.has_min_max:
                        return None
                    found.append(int(stats.max))
    return max(found, default=-1)


def are_files(source) -> bool:
    """Whether values are in files, and not numbers themselves."""
    return isinstance(source, str | Path) or (
        isinstance(source, list | tuple) and len(source) > 0 and all(isinstance(one, str | Path) for one in source)
    )


def values_in(source, n: int, name: str) -> Iterator[tuple[Any, np.ndarray]]:
    """(node numbers or a stretch of nodes, values) of a signal: an array, a .npy file, or parquet files with the columns node and value.

    Parquet files without a column of nodes go by position, file after file.
    """
    if not are_files(source):
        yield slice(0, n), source
        return
    if isinstance(source, str | Path) and str(source).endswith(".npy"):
        mapped = np.load(source, mmap_mode="r", allow_pickle=False)
        for start in range(0, len(mapped), PIECE):
            yield slice(start, min(start + PIECE, len(mapped))), np.asarray(mapped[start : start + PIECE])
        return
    place = 0
    for path in files_of(source):
        with opened(path) as file:
            table = parquet().ParquetFile(file)
            names = table.schema_arrow.names
            node = next((known for known in ("node", "id", "label") if known in names), None)
            value = [known for known in names if known != node]
            if name not in value and len(value) != 1:
                msg = f"{path} must have a column {name!r}, or a single one beside the nodes; it has {names[:20]}"
                raise ValueError(msg)
            own = name if name in value else value[0]
            if node is not None and table.schema_arrow.field(node).type not in _integers():
                msg = f"column {node!r} of {path} must hold node numbers, integers from 0; got {table.schema_arrow.field(node).type}; number the nodes as in the edges"
                raise ValueError(msg)
            for batch in table.iter_batches(batch_size=PIECE, columns=[own] if node is None else [node, own]):
                where = slice(place, place + len(batch)) if node is None else numbers_in(batch.column(node))
                if node is not None and batch.column(node).null_count:
                    msg = f"column {node!r} of {path} must name a node in each row; {batch.column(node).null_count} rows have none"
                    raise ValueError(msg)
                place += len(batch)
                yield where, numbers_in(batch.column(own))
