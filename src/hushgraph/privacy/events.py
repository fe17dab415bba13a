"""Events as people have them, in chunks of typed columns. Knows no graph.

Text files are read line by line (`text_lines.py`), tables column by column (`typed_columns.py`). Errors name the columns that were asked for
and positions of rows. They carry no values, not even in the exception behind them, so nothing is raised while another exception
is being handled; nor do they list the columns that were found, since a file without a header shows somebody's row there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph._errors import InputError, InputTypeError, NoFileError, Sentence
from hushgraph._extras import extra
from hushgraph.files import parquet_faults
from hushgraph.privacy.csv_format import CsvFormat
from hushgraph.privacy.text_lines import USUAL_FORMAT, attempt, read_header, read_lines
from hushgraph.privacy.typed_columns import Column, as_column, check_column, from_arrow

_TABLE_ROWS = 1 << 14  # of a table at a time: their texts, of at most 2^16 bytes each, then fit into what a span can point to
_NO_FILE = "the events file does not exist or is a folder; check the path given as events"
_ONLY_CSV = "delimiter, decimal sign, format of times and encoding ({csv_format=}) are for .csv files; tables and parquet files have types; leave them out"
_BAD_PARQUET = "the parquet file cannot be read near data row {row}"


def needed(module: str) -> Any:
    """Return a package that is an extra for counting events."""
    return extra(module, name="events", purpose="counting events")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of the columns that are read.

    Attributes
    ----------
    columns : dict
        Typed columns by name.
    numbers : (rows,) int64 array
        Where each row is: the line of a text file (the header is line 1), or the row of a table, from 0.
    dropped : int64 array
        Lines of a text file that cannot be split into fields.
    part : int
        Number of the table or file that the rows come from, from 1; 0 if there is one only.
    of_text : bool
        Whether the rows come from a text file.
    """

    columns: dict[str, Column]
    numbers: np.ndarray
    dropped: np.ndarray
    part: int = 0
    of_text: bool = False

    def __len__(self) -> int:
        return len(self.numbers)


# ---- sources --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EventSource:
    """A source of events.

    Attributes
    ----------
    columns : list or None
        The names of its columns; None if there is no chunk at all.
    read : callable
        Takes names of columns and a number of rows; yields chunks of at most so many rows.
    form : CsvFormat
        How its text files are written.
    """

    columns: list | None
    read: Callable[[list[str], int], Iterator[Chunk]]
    form: CsvFormat = USUAL_FORMAT

    def chunks(self, names: list[str], chunk_rows: int) -> Iterator[Chunk]:
        """Yield at most `chunk_rows` rows of the named columns at a time, in the order of the source."""
        if self.columns is not None:
            check_columns(names, self.columns, is_utf_8=self.form.encoding == USUAL_FORMAT.encoding)
        return self.read(names, chunk_rows)


def open_events(events: Any, form: CsvFormat | None = None) -> EventSource:
    """Return a source from a DataFrame, a dict of equally long columns, a .csv, .csv.gz or .parquet file, or an iterable of these.

    `form` says how .csv files are written, and is for them alone.

    Examples
    --------
    >>> source = open_events({"person": ["a", "b", "a"], "node": [0, 1, 1]})
    >>> source.columns
    ['person', 'node']
    >>> [len(chunk) for chunk in source.chunks(["person"], 2)]
    [2, 1]
    """
    if form is not None and not isinstance(form, CsvFormat):
        raise InputTypeError.about(argument="csv_format", expected="a privacy.CsvFormat", got=type(form).__name__)
    if isinstance(events, str | os.PathLike):
        return _open_file(Path(events), form)
    if _is_table(events):
        if form is not None:
            raise InputError(Sentence(_ONLY_CSV))
        return EventSource(_names(events), lambda names, chunk_rows: _slices(events, names, chunk_rows))
    if isinstance(events, Iterable) and not isinstance(events, bytes | np.ndarray):
        return _open_iterable(events, form)
    expected = "a DataFrame of pandas or polars, a dict of columns, an Arrow table, the path of a .csv, .csv.gz or .parquet file, or an iterable of these"
    raise InputTypeError.about(argument="events", expected=expected, got=type(events).__name__)


def check_columns(names: list[str], columns: list, *, is_utf_8: bool = False) -> None:
    """Refuse names that are not exactly one of the columns."""
    for name in names:
        count = sum(isinstance(column, str) and column == name for column in columns)
        if count != 1:
            fault = "more than one column" if count else "no column"
            hint = "rename one of them" if count else "name another, and check that a text file begins with a line of names"
            if not count and is_utf_8 and not name.isascii():
                hint += (
                    "; if a text file is not in UTF-8, declare its encoding: CsvFormat(encoding='cp1252') (--encoding cp1252), say"
                )
            msg = "the events have {} {!r} among their {} columns; {}{}"
            raise InputError(Sentence(msg, fault, name, len(columns), hint, delimiter_hint(columns)))


def delimiter_hint(columns: list) -> str:
    """Return the advice for a text file whose first line could not be split; nothing if it has several columns."""
    return (
        Sentence("; if another character than a comma separates them in a text file, declare it: {csv_format=}")
        if len(columns) == 1
        else ""
    )


def _is_arrow_table(events: Any) -> bool:
    return hasattr(events, "column_names") and hasattr(events, "schema") and hasattr(events, "slice")


def _is_table(events: Any) -> bool:
    if type(events).__name__ == "LazyFrame":
        msg = "the events are a LazyFrame, which holds no rows yet; pass what its collect() returns"
        raise InputTypeError(msg)
    is_frame = hasattr(events, "columns") and (hasattr(events, "iloc") or hasattr(events, "get_columns"))  # of pandas or polars
    return isinstance(events, Mapping) or is_frame or _is_arrow_table(events)


def _names(table: Any) -> list:
    return list(table) if isinstance(table, Mapping) else list(table.column_names if _is_arrow_table(table) else table.columns)


def _open_iterable(events: Iterable, form: CsvFormat | None) -> EventSource:
    """Return a source from several tables or files, of which only the first is opened now."""
    iterator = iter(events)
    head = list(islice(iterator, 1))

    def read(names: list[str], chunk_rows: int) -> Iterator[Chunk]:
        for number, table in enumerate(chain(head, iterator)):
            if not _is_table(table) and not isinstance(table, str | os.PathLike):
                msg = f"chunk {number} of the events must be a DataFrame, a dict of columns or a path; got {type(table).__name__}"
                raise InputTypeError(msg)
            for chunk in open_events(table, form).chunks(names, chunk_rows):
                yield Chunk(chunk.columns, chunk.numbers, chunk.dropped, number + 1, chunk.of_text)

    first = head[0] if head else None
    columns = open_events(first, form).columns if _is_table(first) or isinstance(first, str | os.PathLike) else None
    return EventSource(columns, read, form or USUAL_FORMAT)


def _slices(table: Any, names: list[str], chunk_rows: int) -> Iterator[Chunk]:
    """Yield the rows of a table in memory."""
    columns = {name: check_column(table[name], name) for name in names}
    length = len(columns[names[0]])
    for name, column in columns.items():
        if len(column) != length:
            msg = f"columns {names[0]!r} and {name!r} of the events have different lengths; every event needs a value in each"
            raise InputError(msg)
    step = min(chunk_rows, _TABLE_ROWS)
    for start in range(0, length, step):
        rows = slice(start, start + step)
        parts = {name: as_column(getattr(column, "iloc", column)[rows]) for name, column in columns.items()}
        yield Chunk(parts, np.arange(start, min(start + step, length)), np.empty(0, dtype=np.int64))


# ---- files ----------------------------------------------------------------------------------------------------------


def _open_file(path: Path, form: CsvFormat | None) -> EventSource:
    name = path.name.lower()
    if not name.endswith((".csv", ".csv.gz", ".parquet")):
        msg = "events files must end in .csv, .csv.gz or .parquet; convert this one, or pass a DataFrame"
        raise InputError(msg)
    if not path.is_file():
        raise NoFileError(_NO_FILE)
    if not name.endswith(".parquet"):
        return _open_text(path, form or USUAL_FORMAT)
    if form is not None:
        raise InputError(Sentence(_ONLY_CSV))
    return _open_parquet(path)


def _open_text(path: Path, form: CsvFormat) -> EventSource:
    columns = read_header(path, form)

    def read(names: list[str], chunk_rows: int) -> Iterator[Chunk]:
        for lines in read_lines(path, columns, names, chunk_rows, form):
            yield Chunk(dict(lines.fields), lines.numbers, lines.dropped, of_text=True)

    return EventSource(columns, read, form)


def _open_parquet(path: Path) -> EventSource:
    parquet, pyarrow = needed("pyarrow.parquet"), needed("pyarrow")
    faults = (*parquet_faults(), ValueError)
    schema = attempt(lambda: parquet.read_schema(path), _BAD_PARQUET.format(row=0), faults)
    # named, dictionaries have indices of 32 bits: the 8 bits that a file may declare are too few for 129 ids
    dictionaries = [field.name for field in schema if pyarrow.types.is_dictionary(field.type)]

    def read(names: list[str], chunk_rows: int) -> Iterator[Chunk]:
        row, step = 0, min(chunk_rows, _TABLE_ROWS)
        with attempt(lambda: parquet.ParquetFile(path, read_dictionary=dictionaries), _BAD_PARQUET.format(row=0), faults) as file:
            batches = file.iter_batches(batch_size=step, columns=names)
            while (batch := attempt(lambda: next(batches, None), _BAD_PARQUET.format(row=row), faults)) is not None:
                parts = attempt(lambda: _converted(batch, names), _BAD_PARQUET.format(row=row), faults)
                yield Chunk(parts, np.arange(row, row + batch.num_rows), np.empty(0, dtype=np.int64))
                row += batch.num_rows

    return EventSource(list(schema.names), read)


def _converted(batch: Any, names: list[str]) -> dict[str, Column]:
    return {name: from_arrow(batch.column(name)) for name in names}
