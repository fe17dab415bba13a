"""Edge lists in parquet files, in pieces that fit into the memory of a task.

Columns are source and target (or from and to, src and dst, u and v), integers 0..n-1, and possibly weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph.distributed.addresses import (
    as_numpy,
    damaged_parquet,
    is_integer_type,
    open_file,
    open_parquet,
    pyarrow_module,
    reading_parquet,
)
from hushgraph.files import end_columns

PIECE = 2**22  # edges that one task sorts into buckets
BATCH = 2**18  # rows read at a time
Piece = tuple[str, int, int, int]  # file, first row, last row + 1, number of rows


@dataclass(frozen=True)
class EdgeColumns:
    """The names of the columns of edge files."""

    source: str
    target: str
    weight: str | None

    def __str__(self) -> str:
        return f"{self.source!r}, {self.target!r} and " + ("no weight" if self.weight is None else repr(self.weight))


def edge_columns(files: str | list[str], weight: str | bool | None) -> EdgeColumns:
    """Return the names of the columns, which must be the same in all files."""
    files = [files] if isinstance(files, str) else files
    first = _columns_of_file(files[0], weight)
    for path in files[1:]:
        columns = _columns_of_file(path, weight)
        if columns != first:
            msg = (
                "all edge files must have the same columns for source, target and weight; {} has {}, and {} has {}; name them alike, or say "
                "{weight=False} to leave weights out"
            )
            raise InputError(Sentence(msg, files[0], str(first), path, str(columns)))
    return first


def _columns_of_file(path: str, weight: str | bool | None) -> EdgeColumns:
    with open_file(path) as file:
        table = open_parquet(file, path)
        with reading_parquet(path):
            schema = table.schema_arrow
    names = schema.names
    source, target = end_columns(names, path)
    if isinstance(weight, str) and weight not in names:
        msg = f"{path} has no column {weight!r} for weights; it has {names[:20]}"
        raise InputError(msg)
    name = weight if isinstance(weight, str) else None if weight is False else _weight_column(path, names)
    if name is None and weight is True:
        msg = "{} has no column 'weight'; it has {}; name the one that is meant with {weight=}"
        raise InputError(Sentence(msg, path, names[:20]))
    columns = EdgeColumns(source, target, name)
    _check_types(path, schema, columns)
    return columns


def _weight_column(path: str, names: list[str]) -> str | None:
    """Return the column called weight, in upper or lower case, or None."""
    plain = [name.strip().lower() for name in names]
    if "weight" in names or "weight" not in plain:
        return "weight" if "weight" in names else None
    if plain.count("weight") > 1:
        msg = "{} must have one column for weights; it has {}; name one with {weight=}, or say {weight=False}"
        raise InputError(Sentence(msg, path, names[:20]))
    return names[plain.index("weight")]


def _check_types(path: str, schema: Any, columns: EdgeColumns) -> None:
    for name in (columns.source, columns.target):
        if not is_integer_type(schema.field(name).type):
            msg = f"column {name!r} of {path} must hold node numbers, integers from 0 without gaps; got {schema.field(name).type}; renumber the nodes"
            raise InputError(msg)
    weight = None if columns.weight is None else schema.field(columns.weight).type
    if weight is not None and not (is_integer_type(weight) or pyarrow_module().types.is_floating(weight)):
        msg = "column {!r} of {} must hold weights, numbers from 0; got {}; name another with {weight=}, or say {weight=False}"
        raise InputError(Sentence(msg, columns.weight, path, weight))


def split_files(files: list[str], size: int | None = None) -> list[Piece]:
    """Return pieces of about `size` rows each: whole row groups, unless they are much larger."""
    size, pieces = size or PIECE, []
    for path in files:
        with open_file(path) as file, reading_parquet(path):
            metadata = open_parquet(file, path).metadata
            rows = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
        if sum(rows) != metadata.num_rows or min(rows, default=0) < 0:
            raise damaged_parquet(path)
        first, count = 0, 0
        for k, rows_of_group in enumerate(rows):
            count += rows_of_group
            if count >= size or k == len(rows) - 1:
                parts = max(1, count // size)
                cuts = [first + count * part // parts for part in range(parts + 1)]
                pieces += [(path, start, stop, stop - start) for start, stop in pairwise(cuts)]
                first, count = first + count, 0
    return pieces


def read_batches(piece: Piece, columns: EdgeColumns, n: int | None = None) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """Yield pairs (m, 2) and weights of one piece, BATCH rows at a time: row groups may be large. Nodes from n on are refused."""
    path, first, last = piece[:3]
    names = [columns.source, columns.target] + ([columns.weight] if columns.weight else [])
    with open_file(path) as file:
        table = open_parquet(file, path)
        groups, place = _row_groups(table.metadata, first, last)
        batches = table.iter_batches(batch_size=BATCH, row_groups=groups, columns=names)
        while place < last:
            with reading_parquet(path):
                batch = next(batches, None)
            if batch is None:
                raise damaged_parquet(path)
            start, stop = max(first - place, 0), max(last - place, 0)
            place += len(batch)
            rows = batch.slice(start, stop - start)
            if len(rows):
                weights = None if columns.weight is None else as_numpy(rows.column(columns.weight)).astype(np.float64, copy=False)
                yield _pairs_in(rows, columns, path, n), weights


def _row_groups(metadata: Any, first: int, last: int) -> tuple[list[int], int]:
    """Return the row groups that hold these rows, and the first row of the first of these groups."""
    starts = np.cumsum([0] + [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)])
    groups = [k for k in range(metadata.num_row_groups) if starts[k] < last and starts[k + 1] > first]
    return groups, int(starts[groups[0]]) if groups else 0


def _pairs_in(batch: Any, columns: EdgeColumns, path: str, n: int | None) -> np.ndarray:
    pairs = np.empty((len(batch), 2), np.int64)
    for side, name in enumerate((columns.source, columns.target)):
        column = batch.column(name)
        if column.null_count or not is_integer_type(column.type):
            msg = f"column {name!r} of {path} must hold node numbers, integers from 0 without gaps; got {column.type} with {column.null_count} missing"
            raise InputError(msg)
        pairs[:, side] = as_numpy(column)
    if len(pairs) and pairs.min() < 0:
        msg = f"{path} has node {int(pairs.min())}; expected numbers from 0"
        raise InputError(msg)
    if n is not None and len(pairs) and int(pairs.max()) >= n:  # also where the statistics of a damaged file do not know it
        msg = "{} names node {}, but there are only n={} nodes (numbered from 0); raise {n} or renumber"
        raise InputError(Sentence(msg, path, int(pairs.max()), n))
    return pairs


def read_piece(piece: Piece, columns: EdgeColumns, n: int | None = None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return pairs (m, 2) and weights of one piece. Nodes from n on are refused."""
    pairs, weights = np.empty((piece[3], 2), np.int64), None if columns.weight is None else np.empty(piece[3])
    size = 0
    for batch, batch_weights in read_batches(piece, columns, n):
        pairs[size : size + len(batch)] = batch
        if weights is not None:
            weights[size : size + len(batch)] = batch_weights
        size += len(batch)
    return pairs, weights


def largest_node(pieces: list[Piece], columns: EdgeColumns) -> int:
    """Return the largest node number, from the statistics in the files where there are any; -1 without edges."""
    largest = -1
    for piece in pieces:
        node = _largest_stated(piece, columns)
        if node is None:
            node = max((int(pairs.max()) for pairs, _ in read_batches(piece, replace(columns, weight=None))), default=-1)
        largest = max(largest, node)
    return largest


def _largest_stated(piece: Piece, columns: EdgeColumns) -> int | None:
    """Return the largest node that the statistics of a file state; None where a row group has none."""
    path, first, last = piece[:3]
    with open_file(path) as file, reading_parquet(path):
        table = open_parquet(file, path, few_rows=True)
        metadata, largest = table.metadata, []
        for k in _row_groups(metadata, first, last)[0]:
            # where a column is damaged, reading a row raises an error, and the statistics would end the process
            next(table.iter_batches(batch_size=1, row_groups=[k], columns=[columns.source, columns.target]), None)
            group = metadata.row_group(k)
            for column in map(group.column, range(group.num_columns)):
                if column.path_in_schema in (columns.source, columns.target):
                    stats = column.statistics
                    if stats is None or not stats.has_min_max:
                        return None
                    largest.append(int(stats.max))
    return max(largest, default=-1)
