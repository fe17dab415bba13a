"""Graphs in binary files: .npz (ours, and SciPy's matrices) and tables of edges in parquet. They give and take edge tables.

Ours has `edges` (m, 2) and `n`, and may have `weights`, `coords`, `crs` ("lonlat") and `labels`.
"""

from __future__ import annotations

import ast
import io
import json
import operator
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from hushgraph._errors import InputError
from hushgraph.adjacency import MAX_NODES, affinities
from hushgraph.checks import shown
from hushgraph.contents import extra
from hushgraph.edge_table import ENDS, EdgeTable, column_of, label_kind, numbered, text_labels
from hushgraph.text_files import MOST_UNPACKED, UNPACKED_FREELY, all_bytes

_BARE_NODES, _NODES_PER_EDGE = 1_000_000, 100
NO_ARRAY = (OSError, ValueError, EOFError, LookupError, TypeError, AttributeError, RuntimeError, OverflowError, MemoryError,
            SyntaxError, zlib.error, zipfile.BadZipFile)  # fmt: skip  # what unpacking damaged arrays raises


# ---- npz ------------------------------------------------------------------------------------------------------------


def read_npz(path: Path, *, weight, distance) -> EdgeTable:
    """The edges of an .npz file of ours, or of one that scipy.sparse.save_npz wrote."""
    arrays = _arrays(path)
    if {"edges", "n"} <= arrays.keys():
        return _our_table(path, arrays, weight, distance)
    if {"format", "shape", "data"} <= arrays.keys():
        return _scipy_table(path, arrays, weight, distance)
    msg = f"{path} must hold edges and n, or a matrix saved by scipy.sparse.save_npz; it holds {sorted(arrays)[:20]}"
    raise InputError(msg)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    content = all_bytes(path) if path.name.lower().endswith(".gz") else path.open("rb")
    arrays, fault = {}, ""
    with content:
        try:
            with zipfile.ZipFile(content) as packed:
                members = [member for member in packed.infolist() if member.filename.endswith(".npy")]
                size = content.seek(0, 2)
                if sum(member.file_size for member in members) > UNPACKED_FREELY + MOST_UNPACKED * size:
                    fault = f"{path} unpacks to more than {MOST_UNPACKED} times its size, which no graph does"
                else:
                    arrays = {member.filename[:-4]: array_of(packed.read(member)) for member in members}
        except NO_ARRAY:
            fault = f"{path} cannot be read: it is truncated, damaged or no .npz file; copy or download it again"
    if fault:
        raise InputError(fault)
    return arrays


def array_of(content: bytes) -> np.ndarray:
    """The array of an .npy file, whose stated shape must fit the bytes there; anything else is one of NO_ARRAY."""
    version = content[6:8]
    if not content.startswith(b"\x93NUMPY") or version not in (b"\x01\x00", b"\x02\x00", b"\x03\x00"):
        raise ValueError
    start = 10 if version == b"\x01\x00" else 12
    end = start + int.from_bytes(content[8:start], "little")
    if end > min(len(content), 10_000):
        raise ValueError
    header = ast.literal_eval(content[start:end].decode())
    dtype, shape = np.lib.format.descr_to_dtype(header["descr"]), tuple(map(operator.index, header["shape"]))
    count = int(np.prod(shape, dtype=object))
    if dtype.hasobject or dtype.itemsize == 0 or min(shape, default=0) < 0 or count * dtype.itemsize != len(content) - end:
        raise ValueError
    values = np.frombuffer(content, dtype=dtype, count=count, offset=end)
    return values.reshape(shape, order="F" if header["fortran_order"] else "C")


def _our_table(path: Path, arrays: dict[str, np.ndarray], weight, distance) -> EdgeTable:
    pairs, n = arrays["edges"], arrays["n"]
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu" or n.shape != () or n.dtype.kind not in "iu":
        msg = f"{path} must hold edges, (m, 2) integers, and n, an integer; got {shown(pairs)} and {shown(n)}"
        raise InputError(msg)
    names = [name for name, values in arrays.items() if values.shape == (len(pairs),) and name not in ("labels", "edges", "coords")]
    if weight is None and distance is None and "weights" in arrays:
        weight = "weights"
    value, is_distance = column_of(names, weight, distance, path)
    labels = arrays.get("labels")
    if labels is not None and (labels.ndim != 1 or labels.dtype.kind not in "iuU"):
        msg = f"labels in {path} must be a row of integers or of text; got {shown(labels)} of dtype {labels.dtype}"
        raise InputError(msg)
    crs = "" if "crs" not in arrays else str(arrays["crs"].item() if arrays["crs"].size == 1 else "?")
    if crs not in ("", "None", "lonlat"):
        msg = f"crs in {path} must be 'lonlat', or not be there; got {shown(crs)}"
        raise InputError(msg)
    return _table(path, pairs, int(n), arrays.get(value) if value else None, value, is_distance, coords=arrays.get("coords"),
                  crs="lonlat" if crs == "lonlat" else None, labels=labels)  # fmt: skip


def _scipy_table(path: Path, arrays: dict[str, np.ndarray], weight, distance) -> EdgeTable:
    kind = arrays["format"].item() if arrays["format"].size == 1 else ""
    kind = kind.decode(errors="replace") if isinstance(kind, bytes) else kind
    value, is_distance = column_of(["weight"], weight, distance, path)
    matrix = None
    try:
        shape = tuple(int(side) for side in arrays["shape"])
        if kind in ("csr", "csc") and len(shape) == 2 and max(shape) <= _BARE_NODES + _NODES_PER_EDGE * arrays["data"].size:
            form = sparse.csr_array if kind == "csr" else sparse.csc_array
            matrix = form((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
            matrix.check_format(full_check=True)
        elif kind == "coo" and len(shape) == 2:
            ends = [arrays[name] for name in (("row", "col") if "row" in arrays else ("coords_0", "coords_1"))]
            matrix = sparse.coo_array((arrays["data"], tuple(ends)), shape=shape)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError):
        matrix = None
    if matrix is None or matrix.shape[0] != matrix.shape[1] or matrix.dtype.kind not in "fiub":
        msg = f"{path} must hold a whole square matrix of real numbers in the format csr, csc or coo; got {shown(kind)}"
        raise InputError(msg)
    entries = matrix.tocoo()
    pairs = np.stack(entries.coords, axis=1).astype(np.int64)
    values = entries.data.astype(np.float64)
    if value is None:
        pairs, values = pairs[values != 0], None
    return _table(path, pairs, matrix.shape[0], values, value, is_distance)


def _table(path: Path, pairs, n: int, values, value, is_distance: bool, *, coords=None, crs=None, labels=None) -> EdgeTable:
    """With errors that name the file instead of the array."""
    known = max([len(part) for part in (coords, labels) if part is not None and part.ndim], default=0)
    if not 0 <= n <= min(MAX_NODES, max(known, _BARE_NODES + _NODES_PER_EDGE * len(pairs))):
        msg = f"{path} states {n} nodes, which cannot be, or is far too many for {len(pairs)} edges"
        raise InputError(msg)
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= n):
        msg = f"{path} has edges to nodes that are not 0 to {n - 1}"
        raise InputError(msg)
    for name, part in (("weights", values), ("coords", coords)):
        if part is not None and part.dtype.kind not in "fiub":
            msg = f"{name} in {path} must be real numbers; got dtype {part.dtype}"
            raise InputError(msg)
    pairs = pairs.astype(np.int64)
    return EdgeTable(pairs, n, affinities(values, value, pairs, is_distance=is_distance), coords, crs, labels)


def write_npz(file, table: EdgeTable):
    """`edges`, `n`, and what else there is, packed."""
    label_kind(table.labels, ".npz")
    arrays: dict[str, Any] = {"edges": table.pairs, "n": np.int64(table.n), "weights": table.weights, "coords": table.coords}
    arrays |= {"labels": table.labels, "crs": None if table.crs is None else np.array(table.crs)}
    content = io.BytesIO()  # a packed file cannot be rewound, and zip does
    np.savez_compressed(content, **{name: values for name, values in arrays.items() if values is not None})
    file.write(content.getbuffer())


# ---- parquet --------------------------------------------------------------------------------------------------------


def arrow(module: str):
    return extra(module, name="parquet", purpose="parquet files")


def parquet_columns(path: Path) -> tuple[list[str], list[str]]:
    """(names of the columns, those among them that are the index of a pandas table)."""
    names, said = None, b""
    try:
        with arrow("pyarrow.parquet").ParquetFile(_source(path)) as file:
            names, said = list(file.schema_arrow.names), (file.schema_arrow.metadata or {}).get(b"pandas", b"")
    except _faults():
        names = None
    if names is None:
        raise InputError(_damaged(path))
    index: Any = None
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        index = json.loads(said)["index_columns"]
    return names, [name for name in index if isinstance(name, str) and name in names] if isinstance(index, list) else []


def read_columns(path: Path, choose_columns) -> dict[str, Any]:
    """Columns of a parquet file as Arrow arrays; `choose_columns` gets their names and returns those wanted."""
    wanted, table = choose_columns(parquet_columns(path)[0]), None
    try:
        with arrow("pyarrow.parquet").ParquetFile(_source(path)) as file:
            table = file.read(columns=wanted)
            table.validate(full=True)
            columns = {name: table.column(name).combine_chunks() for name in wanted}
    except _faults():
        table = None
    if table is None:
        raise InputError(_damaged(path))
    return columns


def _source(path: Path):
    return all_bytes(path) if path.name.lower().endswith(".gz") else path


def _faults() -> tuple[type[Exception], ...]:
    """What reading a damaged parquet file raises."""
    return (arrow("pyarrow").ArrowException, OSError, EOFError, IndexError, MemoryError, OverflowError, UnicodeDecodeError)


def _damaged(path: Path) -> str:
    return f"{path} cannot be read: it is truncated, damaged or no parquet file; copy or download it again"


def numbers_of(column, name: str, path: Path) -> np.ndarray:
    """float64, NaN where nothing is."""
    types = arrow("pyarrow").types
    if not (
        types.is_integer(column.type)
        or types.is_floating(column.type)
        or types.is_boolean(column.type)
        or types.is_null(column.type)
    ):
        msg = f"column {name!r} of {path} must hold numbers; got {column.type}"
        raise InputError(msg)
    return column.cast("float64", safe=False).to_numpy(zero_copy_only=False)


def ids_of(column, name: str, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """(ids, where they are missing): integers, or text as objects."""
    types = arrow("pyarrow").types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    absent = column.is_null().to_numpy(zero_copy_only=False)
    if types.is_integer(column.type):
        values = column.fill_null(0).to_numpy(zero_copy_only=False)
        if values.dtype.kind == "u" and values.size and int(values.max()) >= 2**63:
            msg = f"column {name!r} of {path} has ids of 64 bits; expected at most 63; store them as text"
            raise InputError(msg)
        return values.astype(np.int64), absent
    if types.is_string(column.type) or types.is_large_string(column.type) or types.is_null(column.type):
        return np.array(column.to_pylist(), dtype=object).reshape(len(column)), absent
    msg = f"column {name!r} of {path} must hold node ids, integers or text; got {column.type}"
    raise InputError(msg)


def read_parquet(path: Path, *, weight, distance) -> EdgeTable:
    """The edges of a table with columns source and target; a row without target states a node."""
    ends: list[str] = []
    value: list[Any] = [None, False]

    def wanted(names: list[str]) -> list[str]:
        plain = [name.strip().lower() for name in names]
        pair = next((pair for pair in ENDS if plain.count(pair[0]) == plain.count(pair[1]) == 1), None)
        if pair is None or len(set(names)) != len(names):
            msg = f"{path} must have one column each for source and target; it has {names[:20]}"
            raise InputError(msg)
        ends.extend(names[plain.index(end)] for end in pair)
        value[:] = column_of([name for name in names if name not in ends], weight, distance, path)
        return ends + ([] if value[0] is None else [value[0]])

    columns = read_columns(path, wanted)
    (sources, absent), (targets, alone) = (ids_of(columns[end], end, path) for end in ends)
    if absent.any():
        msg = f"row {int(absent.argmax())} of {path} has no {ends[0]}; only the {ends[1]} may be missing, where a row states a node"
        raise InputError(msg)
    if sources.dtype != targets.dtype and not alone.all():
        msg = f"columns {ends[0]!r} and {ends[1]!r} of {path} must both hold integers or both text"
        raise InputError(msg)
    both = np.stack([sources, np.where(alone, sources, targets)], axis=1)
    if both.dtype == object:
        places: dict[str, int] = {}
        pairs = np.array([places.setdefault(name, len(places)) for name in both.ravel()], dtype=np.int64).reshape(-1, 2)[~alone]
        n, labels = len(places), text_labels(list(places), path)
    else:
        pairs, n, labels = numbered(both, alone)  # type: ignore[assignment]
    values = None if value[0] is None else numbers_of(columns[value[0]], value[0], path)
    return EdgeTable(pairs, n, _row_values(path, values, alone, pairs, value), labels=labels)


def _row_values(path: Path, values: np.ndarray | None, alone: np.ndarray, pairs: np.ndarray, value: list) -> np.ndarray | None:
    if values is None:
        return None
    kept, loops = values[~alone], pairs[:, 0] == pairs[:, 1]
    good = np.isfinite(kept) & ((kept > 0) | ((kept == 0) & (loops | (not value[1]))))
    if not good.all():
        row = int(np.flatnonzero(~alone)[np.argmin(good)])
        expected = "a length, finite and above 0" if value[1] else "a weight, finite and at least 0"
        msg = f"row {row} of {path} must have {expected}; got {values[row]:g}; correct or leave out that edge"
        raise InputError(msg)
    return affinities(kept, value[0], pairs, is_distance=value[1])


def write_parquet(file, table: EdgeTable):
    """Columns source, target and, if it is not 1 everywhere, weight; rows without target state the nodes, where that is needed."""
    pyarrow, parquet = arrow("pyarrow"), arrow("pyarrow.parquet")
    kind = label_kind(table.labels, "parquet")
    names = np.arange(table.n) if table.labels is None else table.labels
    alone = np.zeros(table.n, dtype=bool)
    if kind == "none":
        alone[:] = True
        alone[table.pairs] = False
        nodes = names[alone]
        stated: tuple[Any, Any] = (nodes, nodes)
    else:
        stated = names, None
    rows = len(stated[0])
    sources = np.concatenate([stated[0], names[table.pairs[:, 0]]])
    targets = np.concatenate([stated[0], names[table.pairs[:, 1]]])
    hidden = np.arange(len(targets)) < (0 if stated[1] is not None else rows)
    columns = {"source": pyarrow.array(sources), "target": pyarrow.array(targets, mask=hidden)}
    if table.weights is not None:
        columns["weight"] = pyarrow.array(np.concatenate([np.zeros(rows), table.weights]))
    parquet.write_table(pyarrow.table(columns), file)
