"""Edge lists in parquet files, here or in an object store (fsspec), in pieces that a task can hold.

Columns are source and target (or from and to, src and dst, u and v), integers 0..n-1, and possibly weight.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph._errors import InputError, InputTypeError, MissingPackageError, NoFileError, Sentence
from hushgraph.checks import shown
from hushgraph.contents import extra
from hushgraph.edge_table import ENDS

PIECE = 2**22  # edges that one task sorts into buckets
BATCH = 2**18  # rows read at a time
BUFFER = 2**20  # bytes of a column read at a time, of files here
EDGES, VALUES = "with the columns source and target", "with the columns node and value, or all values in one .npy file"


@dataclass(frozen=True)
class Columns:
    """How the columns of the edge files are called."""

    source: str
    target: str
    weight: str | None


def located(path: str) -> tuple[Any, str]:
    """(file system, path in it) of a path or an address, or an error that says what is missing to reach it."""
    core, kind = extra("fsspec.core", name="dask", purpose="files of a distributed run"), path.partition("://")[0]
    try:
        return core.url_to_fs(path)
    except ImportError as error:
        msg = f"files at {kind}:// need a package that is not installed; install the fsspec package for it, such as s3fs for s3://"
        raise MissingPackageError(msg) from error
    except ValueError as error:
        if "rotocol not known" not in str(error):
            raise
        msg = f"an address must begin with a protocol that fsspec knows, such as s3:// or file://; got {kind}://; correct it, or give a path"
        raise InputError(msg) from error


def opened(path: str):
    """A file for reading, wherever it is."""
    system, place = located(path)
    return system.open(place, "rb")


def whole_address(path: str | Path) -> str:
    """An address, or a path from the root: workers are in folders of their own."""
    return str(path) if "://" in str(path) else str(Path(path).resolve())


def parquet():
    return extra("pyarrow.parquet", name="dask", purpose="parquet files")


def files_of(source, signal: str | None = None) -> list[str]:
    """The parquet files of a path, a pattern, a folder, an address of an object store, or a list of them, in order.

    part.2 comes before part.10. `signal` is how the values in the files are called, where they are no edges.
    """
    if isinstance(source, list | tuple):
        return [path for one in source for path in files_of(one, signal)]
    if not isinstance(source, str | Path):
        msg = f"edges must be a Graph, or parquet files: a path, pattern, folder, address or a list of them; got {shown(source)}"
        raise InputTypeError(msg)
    system, path = located(str(source))
    system.invalidate_cache()  # files may have changed since they were listed
    prefix = "" if "file" in np.atleast_1d(system.protocol) else f"{np.atleast_1d(system.protocol)[0]}://"
    found = system.glob(f"{path.rstrip('/')}/*.parquet") if system.isdir(path) else system.glob(path)
    if not found and signal is not None:
        raise _no_values(source, signal)
    if not found:
        msg = f"there are no parquet files at {shown(str(source))}; expected a file, a pattern, or a folder that holds *.parquet"
        raise NoFileError(msg)
    return [prefix + name for name in sorted(map(str, found), key=_by_numbers)]


def _no_values(source, signal: str) -> FileNotFoundError:
    return NoFileError(
        f"{signal} must be numbers, a .npy file, or parquet files with the columns node and value (a path, pattern, folder or address); "
        f"there is no such file at {shown(str(source))}"
    )


def _by_numbers(name: str) -> tuple[list, str]:
    """Where a name comes in order, its digits read as numbers."""
    return [int(part) if k % 2 else part for k, part in enumerate(re.split(r"(\d+)", name))], name


def identity_of(path: str) -> list:
    """A file with what tells it from another of the same name: its size, and its tag or the time of its last change."""
    system, place = located(path)
    known = system.info(place)
    changed = next(
        (known[key] for key in ("ETag", "etag", "mtime", "LastModified", "last_modified", "created") if key in known), None
    )
    return [path, known.get("size"), str(changed)]


def columns_of(files: str | list[str], weight: str | bool | None) -> Columns:
    """Names of the columns, which must be the same in all files."""
    files = [files] if isinstance(files, str) else files
    first = _columns_in(files[0], weight)
    for path in files[1:]:
        found = _columns_in(path, weight)
        if found != first:
            msg = (
                "all edge files must have the same columns for source, target and weight; {} has {}, and {} has {}; name them alike, or say "
                "{weight=False} to leave weights out"
            )
            raise InputError(Sentence(msg, files[0], _listed(first), path, _listed(found)))
    return first


def _listed(columns: Columns) -> str:
    return f"{columns.source!r}, {columns.target!r} and " + ("no weight" if columns.weight is None else repr(columns.weight))


def _columns_in(path: str, weight: str | bool | None) -> Columns:
    with opened(path) as file:
        schema = _table(file, path).schema_arrow
    names = schema.names
    plain = [name.strip().lower() for name in names]
    pair = next((pair for pair in ENDS if plain.count(pair[0]) == plain.count(pair[1]) == 1), None)
    if pair is None:
        msg = f"{path} must have one column each for source and target; it has {names[:20]}"
        raise InputError(msg)
    if isinstance(weight, str) and weight not in names:
        msg = f"{path} has no column {weight!r} for weights; it has {names[:20]}"
        raise InputError(msg)
    own = weight if isinstance(weight, str) else None if weight is False else _weights_in(path, names, plain)
    if own is None and weight is True:
        msg = "{} has no column 'weight'; it has {}; name the one that is meant with {weight=}"
        raise InputError(Sentence(msg, path, names[:20]))
    found = Columns(names[plain.index(pair[0])], names[plain.index(pair[1])], own)
    _check_types(path, schema, found)
    return found


def _weights_in(path: str, names: list[str], plain: list[str]) -> str | None:
    """The column called weight, in whatever case."""
    if "weight" in names or "weight" not in plain:
        return "weight" if "weight" in names else None
    if plain.count("weight") > 1:
        msg = "{} must have one column for weights; it has {}; name one with {weight=}, or say {weight=False}"
        raise InputError(Sentence(msg, path, names[:20]))
    return names[plain.index("weight")]


def _check_types(path: str, schema, columns: Columns) -> None:
    types = extra("pyarrow", name="dask", purpose="parquet files").types
    for name in (columns.source, columns.target):
        if schema.field(name).type not in _integers():
            msg = f"column {name!r} of {path} must hold node numbers, integers from 0 without gaps; got {schema.field(name).type}; renumber the nodes"
            raise InputError(msg)
    weight = None if columns.weight is None else schema.field(columns.weight).type
    if weight is not None and not (types.is_integer(weight) or types.is_floating(weight)):
        msg = "column {!r} of {} must hold weights, numbers from 0; got {}; name another with {weight=}, or say {weight=False}"
        raise InputError(Sentence(msg, columns.weight, path, weight))


def _table(file, path: str, wanted: str = EDGES):
    """A parquet file, or an error that says which one is none."""
    arrow = extra("pyarrow", name="dask", purpose="parquet files")
    try:
        return parquet().ParquetFile(file, buffer_size=0 if "://" in path else BUFFER)  # from elsewhere, a column at once
    except arrow.ArrowInvalid as error:
        msg = f"{path} is not a parquet file, or is damaged; write it again, {wanted}"
        raise InputError(msg) from error


def pieces_of(files: list[str], size: int | None = None) -> list[tuple[str, int, int, int]]:
    """(file, first row, last + 1, rows) with about `size` rows each: whole row groups, unless they are much larger."""
    size, found = size or PIECE, []
    for path in files:
        with opened(path) as file:
            meta = _table(file, path).metadata
            rows = [meta.row_group(k).num_rows for k in range(meta.num_row_groups)]
        first, held = 0, 0
        for k, count in enumerate(rows):
            held += count
            if held >= size or k == len(rows) - 1:
                parts = max(1, held // size)
                cuts = [first + held * part // parts for part in range(parts + 1)]
                found += [(path, *cut, cut[1] - cut[0]) for cut in pairwise(cuts)]
                first, held = first + held, 0
    return found


def batches_of(piece, columns: Columns) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """Pairs (m, 2) and weights of one piece, some at a time: row groups may be large."""
    path, first, last = piece[:3]
    wanted = [columns.source, columns.target] + ([columns.weight] if columns.weight else [])
    with opened(path) as file:
        table = _table(file, path)
        groups, place = _groups_of(table.metadata, first, last)
        for batch in table.iter_batches(batch_size=BATCH, row_groups=groups, columns=wanted):
            inside = slice(max(first - place, 0), max(last - place, 0))
            place += len(batch)
            own = batch.slice(inside.start, inside.stop - inside.start)
            if len(own):
                yield _pairs_in(own, columns, path), None if columns.weight is None else _weights_of(own.column(columns.weight))
            if place >= last:
                return


def _groups_of(meta, first: int, last: int) -> tuple[list[int], int]:
    """Row groups that hold these rows, and the first row of the first of them."""
    starts = np.cumsum([0] + [meta.row_group(k).num_rows for k in range(meta.num_row_groups)])
    groups = [k for k in range(meta.num_row_groups) if starts[k] < last and starts[k + 1] > first]
    return groups, int(starts[groups[0]]) if groups else 0


def _pairs_in(batch, columns: Columns, path: str) -> np.ndarray:
    pairs = np.empty((len(batch), 2), np.int64)
    for side, name in enumerate((columns.source, columns.target)):
        column = batch.column(name)
        if column.null_count or column.type not in _integers():
            msg = f"column {name!r} of {path} must hold node numbers, integers from 0 without gaps; got {column.type} with {column.null_count} missing"
            raise InputError(msg)
        pairs[:, side] = numbers_in(column)
    if len(pairs) and pairs.min() < 0:
        msg = f"{path} has node {int(pairs.min())}; expected numbers from 0"
        raise InputError(msg)
    return pairs


def _weights_of(column) -> np.ndarray:
    return numbers_in(column).astype(np.float64, copy=False)


def read_piece(piece, columns: Columns) -> tuple[np.ndarray, np.ndarray | None]:
    """Pairs (m, 2) and weights of one piece."""
    pairs, weights = np.empty((piece[3], 2), np.int64), None if columns.weight is None else np.empty(piece[3])
    size = 0
    for own, given in batches_of(piece, columns):
        pairs[size : size + len(own)] = own
        if weights is not None:
            weights[size : size + len(own)] = given
        size += len(own)
    return pairs, weights


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
        if known is None:
            known = max((int(pairs.max()) for pairs, _ in batches_of(piece, replace(columns, weight=None))), default=-1)
        most = max(most, known)
    return most


def _largest_stated(piece, columns: Columns) -> int | None:
    path, first, last = piece[:3]
    with opened(path) as file:
        meta = parquet().ParquetFile(file).metadata
        found = []
        for group in (meta.row_group(k) for k in _groups_of(meta, first, last)[0]):
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
    elif isinstance(source, str | Path) and str(source).endswith(".npy"):
        yield from _values_of_array(str(source), n, name)
    else:
        place, numbered = 0, None
        for path in files_of(source, name):
            with opened(path) as file:
                table = _table(file, path, VALUES)
                node, own = _value_columns(table.schema_arrow, path, name)
                if numbered is not None and numbered != (node is not None):
                    msg = f"all files of {name} must have a column of nodes, or none; {path} differs from those before it; write them alike"
                    raise InputError(msg)
                numbered = node is not None
                for batch in table.iter_batches(batch_size=PIECE, columns=[own] if node is None else [node, own]):
                    where = slice(place, place + len(batch)) if node is None else _nodes_in(batch.column(node), node, path)
                    place += len(batch)
                    yield where, numbers_in(batch.column(own))


def _value_columns(schema, path: str, name: str) -> tuple[str | None, str]:
    """The column of nodes, if there is one, and that of the values; an index that pandas or Dask wrote is neither."""
    names = [known for known in schema.names if not known.startswith("__")]
    node = next((known for known in ("node", "id", "label") if known in names), None)
    values = [known for known in names if known != node]
    own = next((known for known in (name, "value") if known in values), values[0] if len(values) == 1 else None)
    if own is None:
        msg = f"{path} must have a column 'value' or {name!r}, or a single one beside the nodes; it has {schema.names[:20]}; rename the one that is meant"
        raise InputError(msg)
    if node is not None and schema.field(node).type not in _integers():
        msg = f"column {node!r} of {path} must hold node numbers, integers from 0; got {schema.field(node).type}; number the nodes as in the edges"
        raise InputError(msg)
    return node, own


def _nodes_in(column, node: str, path: str) -> np.ndarray:
    if column.null_count:
        msg = f"column {node!r} of {path} must name a node in each row; {column.null_count} rows have none"
        raise InputError(msg)
    return numbers_in(column)


def _values_of_array(path: str, n: int, name: str) -> Iterator[tuple[slice, np.ndarray]]:
    """Those of a .npy file in pieces: mapped, or read one after the other from an address."""
    try:
        found = opened(path)
    except FileNotFoundError as error:
        raise _no_values(path, name) from error
    with found as file:
        shape, dtype = _header_of(file, path)
        if shape != (n,):
            msg = f"{name} needs one value per node: expected ({n},), got {shape}"
            raise InputError(msg)
        mapped = None if "://" in path else _mapped(path)
        for start in range(0, n, PIECE):
            stop = min(start + PIECE, n)
            yield (
                slice(start, stop),
                np.asarray(_next_in(file, path, dtype, stop - start) if mapped is None else mapped[start:stop]),
            )


def _mapped(path: str) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise _no_array(path) from error


def _next_in(file, path: str, dtype: np.dtype, count: int) -> np.ndarray:
    data = file.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise _no_array(path)
    return np.frombuffer(data, dtype)


def _header_of(file, path: str) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of the values that follow in a .npy file."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    except (ValueError, EOFError) as error:
        raise _no_array(path) from error
    if dtype.hasobject:
        raise _no_array(path)
    return shape, dtype


def _no_array(path: str) -> ValueError:
    return InputError(f"{path} is not a .npy file of numbers, or is damaged; write it again with numpy.save")
