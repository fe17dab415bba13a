"""Events as people have them, read in chunks of plain columns. Knows no graph.

A property that carries the proof of the sensitivity (see `counting.py`): every row is read by itself: what a row means never
depends on the rows around it, as it would if formats or types were guessed from a column, or if a quotation mark in one line of
a CSV file could swallow the next.

Errors name columns and positions of rows. They carry no values, not even in the exception behind them, so nothing is raised
while another exception is being handled.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph.contents import extra

Chunk = dict[str, Any]  # name of a column -> pandas Series
_NO_FILE = "the events file does not exist or is a folder; check the path given as events"
_BAD_TEXT = "the CSV file cannot be read near data row {row}: it is truncated or damaged; check that it was copied whole"
_NO_COLUMN = "the file's first line names {found} columns, not {name!r}; does it begin with a line of names, separated by commas?"
_BAD_PARQUET = "the parquet file cannot be read near data row {row}: it is truncated or damaged; check that it was copied whole"


def needed(module: str):
    return extra(module, name="events", purpose="counting events")


# ---- sources --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EventSource:
    """Where events come from: the names of its columns (None if there is no chunk at all), and how to read some of them."""

    columns: list | None
    read: Callable[[list[str], int], Iterator[Chunk]]
    may_show: bool = True  # the first line of a text file may be somebody's row

    def chunks(self, names: list[str], chunk_rows: int) -> Iterator[Chunk]:
        """At most `chunk_rows` rows of the named columns at a time, in the order of the source."""
        if self.columns is not None:
            check_columns(names, self.columns, may_show=self.may_show)
        return self.read(names, chunk_rows)


def open_events(events) -> EventSource:
    """A source from a DataFrame, a dict of equally long columns, a .csv, .csv.gz or .parquet file, or an iterable of these.

    Examples
    --------
    >>> source = open_events({"person": ["a", "b", "a"], "node": [0, 1, 1]})
    >>> source.columns
    ['person', 'node']
    >>> [len(chunk["person"]) for chunk in source.chunks(["person"], 2)]
    [2, 1]
    """
    if isinstance(events, str | os.PathLike):
        return _open_file(Path(events))
    if _is_table(events):
        return EventSource(_names(events), lambda names, chunk_rows: _slices(events, names, chunk_rows))
    if isinstance(events, Iterable) and not isinstance(events, bytes | np.ndarray):
        return _open_iterable(events)
    msg = (
        "events must be a pandas DataFrame, a dict of columns, the path of a .csv, .csv.gz or .parquet file, or an iterable of "
        f"DataFrames or dicts; got {type(events).__name__}"
    )
    raise TypeError(msg)


def check_columns(names: list[str], columns: list, *, may_show: bool = True) -> None:
    """Every name must be one of the columns, once."""
    for name in names:
        if name not in columns and not may_show:
            raise ValueError(_NO_COLUMN.format(found=len(columns), name=name))
        if columns.count(name) != 1:
            fault = f"have no column {name!r}" if name not in columns else f"have more than one column {name!r}"
            listed = f"; the columns are {columns}" if may_show else ""
            msg = f"the events {fault}{listed}; name one of them, or rename"
            raise ValueError(msg)


def _is_table(events) -> bool:
    return isinstance(events, Mapping) or (hasattr(events, "columns") and hasattr(events, "iloc"))


def _names(table) -> list:
    return list(table) if isinstance(table, Mapping) else list(table.columns)


def _open_iterable(events) -> EventSource:
    iterator = iter(events)
    head = list(_next_of(iterator))

    def read(names, chunk_rows):
        for number, table in enumerate(chain(head, iterator)):
            if not _is_table(table) and not isinstance(table, str | os.PathLike):
                msg = f"chunk {number} of the events must be a DataFrame, a dict of columns or a path; got {type(table).__name__}"
                raise TypeError(msg)
            yield from open_events(table).chunks(names, chunk_rows)

    first = head[0] if head else None
    if not _is_table(first) and not isinstance(first, str | os.PathLike):
        return EventSource(None, read)
    known = open_events(first)
    return EventSource(known.columns, read, known.may_show)


def _next_of(iterator) -> Iterator:
    for item in iterator:
        yield item
        return


def _slices(table, names: list[str], chunk_rows: int) -> Iterator[Chunk]:
    columns = {name: _series(table[name], name) for name in names}
    length = len(columns[names[0]])
    for name, column in columns.items():
        if len(column) != length:
            msg = f"columns {names[0]!r} and {name!r} of the events have different lengths; every event needs a value in each"
            raise ValueError(msg)
    for start in range(0, length, chunk_rows):
        yield {name: column.iloc[start : start + chunk_rows] for name, column in columns.items()}


def _series(values, name: str):
    """A column as a Series whose values are those given: lists are not turned into arrays, which would merge 1 and "1"."""
    pandas = needed("pandas")
    if np.ma.isMaskedArray(values):
        msg = f"column {name!r} of the events is a masked array, and the mask would be lost; fill it first: filled(...)"
        raise TypeError(msg)
    if hasattr(values, "dtype") and getattr(values, "ndim", 0) == 1:
        form = {"dtype": object} if values.dtype == object else {}
        fault = f"column {name!r} of the events, of dtype {values.dtype}, cannot be read by pandas; convert it first"
        return _tried(lambda: pandas.Series(values, **form), (ValueError, TypeError, OverflowError), fault)
    if isinstance(values, str | bytes | Mapping) or getattr(values, "ndim", 1) != 1 or not isinstance(values, Iterable):
        msg = f"column {name!r} of the events must be one-dimensional, one value per event; got {type(values).__name__}"
        raise TypeError(msg)
    values = list(values)
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return pandas.Series(array, dtype=object)


# ---- files ----------------------------------------------------------------------------------------------------------


def _open_file(path: Path) -> EventSource:
    name = path.name.lower()
    if not name.endswith((".csv", ".csv.gz", ".parquet")):
        msg = "events files must end in .csv, .csv.gz or .parquet; convert this one, or pass a DataFrame"
        raise ValueError(msg)
    if not path.is_file():
        raise FileNotFoundError(_NO_FILE)
    return _open_parquet(path) if name.endswith(".parquet") else _open_csv(path)


def _open_csv(path: Path) -> EventSource:
    """A row is a line, read by itself and as text: ids keep leading zeros, no type is guessed, no line swallows another."""
    faults = (OSError, EOFError, zlib.error)

    def lines():
        file = gzip.open(path, "rt", **_TEXT) if path.name.lower().endswith(".gz") else path.open(**_TEXT)  # noqa: SIM115
        with file:
            yield next(file, "")
            while block := file.readlines(_BLOCK):
                yield block

    head = _tried(lambda: next(lines()), faults, _BAD_TEXT.format(row=0))
    columns = _fields(head) if head.strip() else None
    if columns is None:
        raise ValueError(_BAD_TEXT.format(row=0))

    def read(names, chunk_rows):
        row, blocks, waiting = 0, lines(), []
        _tried(lambda: next(blocks), faults, _BAD_TEXT.format(row=0))
        while True:
            block = _tried(lambda: next(blocks, None), faults, _BAD_TEXT.format(row=row))
            waiting += block or []
            while len(waiting) >= chunk_rows or (block is None and waiting):
                chunk, waiting = waiting[:chunk_rows], waiting[chunk_rows:]
                row += len(chunk)
                yield _parsed(chunk, columns, names)
            if block is None:
                return

    return EventSource(columns, read, may_show=False)


_TEXT: dict[str, Any] = {"encoding": "utf-8-sig", "errors": "replace", "newline": None}
_BLOCK = 1 << 24  # characters read at a time


def _parsed(lines: list[str], columns: list, names: list[str]) -> Chunk:
    """Columns of text from lines: those without quotation marks together, the others one by one; bad ones are dropped."""
    pandas = needed("pandas")
    plain = [line for line in lines if '"' not in line and not line.isspace()]
    quoted = [row for row in (_fields(line) for line in lines if '"' in line) if row is not None and len(row) <= len(columns)]
    places = [columns.index(name) for name in names]
    whole = ",".join("-" * len(columns)) + "\n"  # one line of full length: pandas refuses usecols of a file of short ones
    table = pandas.read_csv(
        io.StringIO("".join([whole, *plain])), header=None, names=range(len(columns)), usecols=places, dtype=str, na_filter=False,
        index_col=False, quoting=csv.QUOTE_NONE, on_bad_lines="skip", skip_blank_lines=True,
    ).iloc[1:].reset_index(drop=True)  # fmt: skip
    rows = [[row[place] if place < len(row) else "" for place in places] for row in quoted]
    rest = pandas.DataFrame(rows, columns=places, dtype=str) if rows else table.iloc[:0]
    both = pandas.concat([table[places], rest[places]], ignore_index=True) if len(rest) else table
    return {name: both[place] for name, place in zip(names, places, strict=True)}


def _fields(line: str) -> list[str] | None:
    """The fields of one line, None if its quotation marks do not match."""
    try:
        return next(csv.reader([line], strict=True), [])
    except csv.Error:
        return None


def _open_parquet(path: Path) -> EventSource:
    parquet, pyarrow = needed("pyarrow.parquet"), needed("pyarrow")
    faults = (pyarrow.ArrowException, OSError, ValueError)
    schema = _tried(lambda: parquet.read_schema(path), faults, _BAD_PARQUET.format(row=0))

    def read(names, chunk_rows):
        row = 0
        with _tried(lambda: parquet.ParquetFile(path), faults, _BAD_PARQUET.format(row=0)) as file:
            batches = file.iter_batches(batch_size=chunk_rows, columns=names)
            while (batch := _tried(lambda: next(batches, None), faults, _BAD_PARQUET.format(row=row))) is not None:
                row += batch.num_rows
                yield {name: _from_arrow(batch.column(name)) for name in names}

    return EventSource(list(schema.names), read)


def _from_arrow(column):
    """As a Series that still is an Arrow array, except for times: through NumPy, integers with nulls would become floats."""
    pandas, types = needed("pandas"), needed("pyarrow").types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_temporal(column.type):
        return column.to_pandas()
    return pandas.Series(pandas.arrays.ArrowExtensionArray(column))


def _tried(action: Callable, faults: tuple, message: str):
    """What `action` returns; its errors may quote the file, so they are replaced, not chained."""
    try:
        return action()
    except faults:
        pass
    raise ValueError(message)


# ---- columns --------------------------------------------------------------------------------------------------------


def numbers(column, name: str) -> np.ndarray:
    """A column as float64, NaN where there is no number. Text is read row by row.

    Examples
    --------
    >>> import pandas
    >>> numbers(pandas.Series(["1.5", "", "east"]), "x")
    array([1.5, nan, nan])
    """
    kind = getattr(column.dtype, "kind", "O")
    if kind in "iuf":
        with np.errstate(over="ignore"):  # a longdouble that becomes infinite is no place
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if kind not in "OUT":
        msg = f"column {name!r} of the events must hold numbers; got dtype {column.dtype}; convert it first"
        raise TypeError(msg)
    values = column.tolist()
    try:
        return np.fromiter(map(float, values), dtype=np.float64, count=len(values))
    except (TypeError, ValueError, OverflowError):
        pass
    return np.array([_number(value) for value in values], dtype=np.float64)


def _number(value) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan
