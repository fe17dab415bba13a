"""Edges and signals in parquet files."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np

from hushgraph._errors import InputError
from hushgraph._extras import extra
from hushgraph._validation import columns_in_words
from hushgraph.files.formats import ColumnChoice
from hushgraph.files.text import all_bytes
from hushgraph.graphs import ENDS, EdgeTable, affinities, column_of, label_kind, numbered, text_labels

# ---- parquet --------------------------------------------------------------------------------------------------------


def arrow(module: str) -> ModuleType:
    """Return a module of pyarrow; without pyarrow raise an error that names the extra."""
    return extra(module, name="parquet", purpose="parquet files")


def parquet_columns(path: Path) -> tuple[list[str], list[str]]:
    """Return the names of the columns, and of those that are the index of a pandas table."""
    names, said = None, b""
    try:
        with arrow("pyarrow.parquet").ParquetFile(_source(path)) as file:
            names, said = list(file.schema_arrow.names), (file.schema_arrow.metadata or {}).get(b"pandas", b"")
    except parquet_faults():
        names = None
    if names is None:
        raise InputError(_damaged(path))
    index: Any = None
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        index = json.loads(said)["index_columns"]
    return names, [name for name in index if isinstance(name, str) and name in names] if isinstance(index, list) else []


def read_columns(path: Path, choose_columns: Callable[[list[str]], list[str]]) -> dict[str, Any]:
    """Return columns of a parquet file as Arrow arrays; `choose_columns` chooses among their names."""
    wanted, table = choose_columns(parquet_columns(path)[0]), None
    try:
        with arrow("pyarrow.parquet").ParquetFile(_source(path)) as file:
            table = file.read(columns=wanted)
            table.validate(full=True)
            columns = {name: table.column(name).combine_chunks() for name in wanted}
    except parquet_faults():
        table = None
    if table is None:
        raise InputError(_damaged(path))
    return columns


def _source(path: Path) -> io.BytesIO | Path:
    return all_bytes(path) if path.name.lower().endswith(".gz") else path


def parquet_faults() -> tuple[type[Exception], ...]:
    """Return the errors that reading a damaged parquet file raises."""
    return (arrow("pyarrow").ArrowException, OSError, EOFError, IndexError, MemoryError, OverflowError, UnicodeDecodeError)


def _damaged(path: Path) -> str:
    return f"{path} cannot be read: it is truncated, damaged or no parquet file; copy or download it again"


def numbers_of(column: Any, name: str, path: Path) -> np.ndarray:
    """Return a column as float64, with NaN for missing values."""
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


def ids_of(column: Any, name: str, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids, integers or text as objects, and where they are missing."""
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


def end_columns(names: list[str], path: Path | str) -> tuple[str, str]:
    """Return the names of the columns with the two ends of edges: one of the pairs of `ENDS`, in any case."""
    plain = [name.strip().lower() for name in names]
    pair = next((pair for pair in ENDS if plain.count(pair[0]) == plain.count(pair[1]) == 1), None)
    if pair is None:
        msg = f"{path} must have one column each for source and target; {columns_in_words(names)}"
        raise InputError(msg)
    return names[plain.index(pair[0])], names[plain.index(pair[1])]


def read_parquet(path: Path, *, weight: ColumnChoice, distance: ColumnChoice) -> EdgeTable:
    """Return the edges of a table with columns source and target; a row without target adds a node."""
    ends: list[str] = []
    value: list[Any] = [None, False]

    def wanted(names: list[str]) -> list[str]:
        ends.extend(end_columns(names, path))
        if len(set(names)) != len(names):
            msg = f"{path} must have one column of each name; it has {names[:20]}; rename or leave out the others"
            raise InputError(msg)
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


def write_parquet(file: BinaryIO, table: EdgeTable) -> None:
    """Write columns source, target and, if not all weights are 1, weight; rows without target list the nodes if their order matters."""
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
