"""Events as people have them, read in chunks of plain columns; ids of units as exact integers. Knows no graph.

Two properties carry the proof of the sensitivity (see `counting.py`). Every row is read by itself: what a row means never
depends on the rows around it, as it would if formats or types were guessed from a column. And ids are compared exactly: two
people whose ids were merged by a float or a hash would share one bound.

Errors name columns and positions of rows. They carry no values, not even in the exception behind them, so nothing is raised
while another exception is being handled.
"""

from __future__ import annotations

import os
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

Chunk = dict[str, Any]  # name of a column -> pandas Series
_NO_FILE = "the events file does not exist or is a folder; check the path given as events"
_BAD_TEXT = (
    "the CSV file cannot be read near data row {row}: it is truncated, not UTF-8, or its rows differ in their number of fields; "
    "check that it was copied whole"
)
_BAD_PARQUET = "the parquet file cannot be read near data row {row}: it is truncated or damaged; check that it was copied whole"


def extra(module: str):
    """An optional package, or an error that says how to get it."""
    try:
        return import_module(module)
    except ImportError:
        msg = f"counting events needs {module}: pip install 'hushgraph[events]'"
        raise ImportError(msg) from None


# ---- sources --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EventSource:
    """Where events come from: the names of its columns (None if there is no chunk at all), and how to read some of them."""

    columns: list | None
    read: Callable[[list[str], int], Iterator[Chunk]]

    def chunks(self, names: list[str], chunk_rows: int) -> Iterator[Chunk]:
        """At most `chunk_rows` rows of the named columns at a time, in the order of the source."""
        if self.columns is not None:
            check_columns(names, self.columns)
        return self.read(names, chunk_rows)


def open_events(events) -> EventSource:
    """A source from a DataFrame, a dict of equally long columns, a .csv, .csv.gz or .parquet file, or an iterable of tables.

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


def check_columns(names: list[str], columns: list) -> None:
    """Every name must be one of the columns, once."""
    for name in names:
        if columns.count(name) != 1:
            fault = f"have no column {name!r}" if name not in columns else f"have more than one column {name!r}"
            msg = f"the events {fault}; the columns are {columns}; name one of them, or rename"
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
            if not _is_table(table):
                msg = f"chunk {number} of the events must be a DataFrame or a dict of columns; got {type(table).__name__}"
                raise TypeError(msg)
            check_columns(names, _names(table))
            yield from _slices(table, names, chunk_rows)

    return EventSource(_names(head[0]) if head and _is_table(head[0]) else None, read)


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
    pandas = extra("pandas")
    if np.ma.isMaskedArray(values):
        msg = f"column {name!r} of the events is a masked array, and the mask would be lost; fill it first: filled(...)"
        raise TypeError(msg)
    if hasattr(values, "dtype") and getattr(values, "ndim", 0) == 1:
        return pandas.Series(values, dtype=object) if values.dtype == object else pandas.Series(values)
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
        msg = (
            f"events files must end in .csv, .csv.gz or .parquet; this one ends in {path.suffix!r}; convert it, or pass a DataFrame"
        )
        raise ValueError(msg)
    if not path.is_file():
        raise FileNotFoundError(_NO_FILE)
    return _open_parquet(path) if name.endswith(".parquet") else _open_csv(path)


def _open_csv(path: Path) -> EventSource:
    """Everything is read as text exactly as written: ids keep leading zeros, and no type is guessed."""
    pandas = extra("pandas")
    faults = (ValueError, OSError, EOFError, zlib.error, pandas.errors.ParserError)
    options = {"dtype": str, "na_filter": False, "index_col": False, "encoding": "utf-8", "compression": "infer"}
    header = _tried(lambda: pandas.read_csv(path, header=None, nrows=1, **options), faults, _BAD_TEXT.format(row=0))

    def read(names, chunk_rows):
        row = 0
        form = {"usecols": names, "chunksize": chunk_rows, **options}
        reader = _tried(lambda: pandas.read_csv(path, **form), faults, _BAD_TEXT.format(row=row))
        with reader:
            while len(chunk := _tried(lambda: next(reader, ()), faults, _BAD_TEXT.format(row=row))):
                row += len(chunk)
                yield {name: chunk[name] for name in names}

    return EventSource(header.iloc[0].tolist(), read)  # as written: a name that comes twice is seen


def _open_parquet(path: Path) -> EventSource:
    parquet, pyarrow = extra("pyarrow.parquet"), extra("pyarrow")
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
    pandas, types = extra("pandas"), extra("pyarrow").types
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


def factorized(column) -> tuple[np.ndarray, list]:
    """(codes, values): each row's position in the list of distinct values, -1 for nulls. Equal means `==`, never a hash alone."""
    pandas = extra("pandas")
    if _is_arrow_text(column) or getattr(column.dtype, "kind", "O") in "iuf":
        codes, values = pandas.factorize(column.array)  # text as Arrow holds it: lengths are compared too, so NUL ends nothing
        return codes, values.tolist()
    position: dict = {}
    rows = column.astype(object).tolist()
    return np.fromiter((position.setdefault(x, len(position)) for x in rows), dtype=np.int64, count=len(rows)), list(position)


def _is_arrow_text(column) -> bool:
    arrays = extra("pandas").arrays
    return isinstance(column.array, arrays.ArrowStringArray | arrays.ArrowExtensionArray) and column.dtype.type is str


# ---- units ----------------------------------------------------------------------------------------------------------


class UnitCodes:
    """Ids of units as 0, 1, 2, ... in order of first appearance, the same number in every chunk; -1 for a missing id.

    None, NaN, NA and empty text are missing. All ids must be of one type, since 1, "1" and True may or may not be the same
    person: floats of one width, integers, text, bytes, Decimal or UUID.

    Examples
    --------
    >>> import pandas
    >>> people = UnitCodes("person")
    >>> people.add(pandas.Series(["ann", "bob", None]))[0].tolist()
    [0, 1, -1]
    >>> codes, new = people.add(pandas.Series(["eve", "bob"]))
    >>> codes.tolist(), new
    ([2, 1], ['eve'])
    """

    def __init__(self, name: str):
        self.name = name
        self.rows = 0
        self._kind: str | None = None
        self._code: dict = {}

    def add(self, column) -> tuple[np.ndarray, list]:
        """The codes of a chunk's rows, and the ids not seen before in the order of their codes."""
        kind = self._kind_of(column)
        if kind is not None and self._kind not in (None, kind):
            self._refuse(f"holds {self._kind} ids in some chunks and {kind} ids in others (from row {self.rows})")
        self._kind = kind or self._kind
        self.rows += len(column)
        if kind is None:
            return np.full(len(column), -1, dtype=np.int64), []
        codes, ids = factorized(column)
        before, known = len(self._code), self._code
        table = np.fromiter(
            (-1 if _is_missing(x) else known.setdefault(x, len(known)) for x in ids), dtype=np.int64, count=len(ids)
        )
        new = [ids[i] for i in np.flatnonzero(table >= before)]
        return np.append(table, -1)[codes], new  # the code -1 takes the last entry

    def _kind_of(self, column) -> str | None:
        """The one type of the ids in a chunk; None if all are missing."""
        kind = getattr(column.dtype, "kind", "O")
        if kind in "iu":
            return "integer"
        if kind == "f":
            return f"float{8 * column.dtype.itemsize}"
        if _is_arrow_text(column):
            return "text"
        rows = column.astype(object).tolist()
        kinds = {of_type: _kind_of_type(of_type) for of_type in set(map(type, rows))}
        if "float64" in kinds.values() and set(kinds.values()) - {"float64", None}:
            rows = [None if isinstance(x, float) and x != x else x for x in rows]  # NaN among text is a missing id, not a float
            kinds = {of_type: _kind_of_type(of_type) for of_type in set(map(type, rows))}
        found = sorted({kind for kind in kinds.values() if kind is not None})
        if len(found) > 1:
            places = ", ".join(f"{kind} in row {self.rows + _first(rows, kinds, kind)}" for kind in found)
            self._refuse(f"mixes ids of different types ({places})")
        if found and found[0] not in ("integer", "float64", "text", "bytes", "Decimal", "UUID"):
            row = self.rows + _first(rows, kinds, found[0])
            self._refuse(f"holds ids of type {found[0]} (row {row}); integers or text are expected")
        return found[0] if found else None

    def _refuse(self, fault: str):
        msg = f"column {self.name!r} (unit=) {fault}; turn all ids that are not missing into text: astype(str)"
        raise TypeError(msg)


def _kind_of_type(of_type: type) -> str | None:
    if of_type.__name__ in _ABSENT:
        return None
    if issubclass(of_type, bool | np.bool_):
        return "bool"
    for kind, bases in _KINDS.items():
        if issubclass(of_type, bases):
            return kind
    return of_type.__name__


_ABSENT = ("NoneType", "NAType", "NaTType")
_KINDS: dict[str, Any] = {
    "integer": Integral,
    "float64": (float, np.float64),
    "text": str,
    "bytes": bytes,
    "Decimal": Decimal,
    "UUID": uuid.UUID,
}


def _first(rows: list, kinds: dict, kind: str) -> int:
    return next(i for i, x in enumerate(rows) if kinds[type(x)] == kind)


def _is_missing(value) -> bool:
    if isinstance(value, str | bytes):
        return not value
    return type(value).__name__ in _ABSENT or value != value
