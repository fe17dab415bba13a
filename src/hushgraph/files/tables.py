"""Tables of labels and numbers in text and parquet files: what signals and the nodes of graphs are read from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph.files.edge_list import csv_rows
from hushgraph.files.parquet import arrow, ids_of, numbers_of, parquet_columns, read_columns
from hushgraph.files.text import numbered_lines
from hushgraph.graphs import is_integer

PANDAS_INDEX = ("", "Unnamed: 0")  # how pandas names an index without a name in CSV, and reads it back
WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,15})\.0*", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]*(e[+-]?[0-9]+)?", re.ASCII | re.IGNORECASE)
_EXACT = 2**53  # whole numbers below are themselves as floats


class Table(NamedTuple):
    """A table in a file: names of columns, those that are the index of pandas, and how to read."""

    path: Path
    names: list[str]
    row_names: list[str]
    labels: Callable[[list[str], int | None], dict[str, list]]  # columns taken as labels, the first rows of them or all
    read: Callable[[str, list[str]], tuple[list, np.ndarray]]  # labels and (rows, m) values


# ---- text -----------------------------------------------------------------------------------------------------------


def text_table(path: Path, delimiter: str, integers: bool) -> Table:
    """Return the table in a text file with a line of names; with `integers`, labels that are whole numbers are integers."""
    delimiter = _delimiter_of(path, delimiter)
    names = [name.strip() for name in next(csv_rows(path, delimiter, 0), (0, []))[1]]
    if not names:
        msg = f"{path} is empty; expected a line with names of columns and one line per node"
        raise InputError(msg)

    def rows() -> Iterator[tuple[int, list[str]]]:
        found = csv_rows(path, delimiter, 0)
        next(found)
        for number, row in found:
            if len(row) != len(names):
                msg = f"line {number} of {path} has {len(row)} fields where {len(names)} are expected; it is truncated or garbled"
                raise InputError(msg)
            yield number, row

    def labels(wanted: list[str], most: int | None) -> dict[str, list]:
        columns: dict[str, list] = {name: [] for name in wanted}
        for count, (_, row) in enumerate(rows() if wanted else ()):
            if count == most:
                break
            for name, column in columns.items():
                column.append(label_of(row[names.index(name)], integers))
        return columns

    def read(key: str, wanted: list[str]) -> tuple[list, np.ndarray]:
        given: list[Any] = []
        cells, numbers = [], _Numbers(path, delimiter)
        place, places = names.index(key), [(name, names.index(name)) for name in wanted]
        for number, row in rows():
            given.append(label_of(row[place], integers))
            for name, at in places:
                cells.append(numbers.of(row[at].strip(), number, name))
        return given, np.array(cells, dtype=np.float64).reshape(len(given), len(wanted))

    return Table(path, names, names[:1] if names[0] in PANDAS_INDEX else [], labels, read)


def _delimiter_of(path: Path, delimiter: str) -> str:
    """Return the delimiter: semicolons or tabs for a .csv file whose line of names has those and no comma."""
    if delimiter != ",":
        return delimiter
    head = next((line for _, line in numbered_lines(path) if line.strip("\r\n ") and not line.startswith("#")), "")
    bare = re.sub(r'"[^"]*"', "", head)
    return next((mark for mark in ",;\t" if mark in bare), ",")


def label_of(text: str, integers: bool) -> Any:
    """Return a label, an integer if labels of the graph are integers; 7.0, which pandas writes for 7 in a column with gaps, is 7."""
    bare = text.strip() if integers else ""
    if bare and is_integer(bare):
        return int(bare)
    whole = WHOLE.fullmatch(bare)
    return int(whole[1]) if whole and abs(int(whole[1])) < _EXACT else text


class _Numbers:
    """Cells of one file as numbers, with decimal points, or with decimal commas where commas do not separate columns."""

    def __init__(self, path: Path, delimiter: str) -> None:
        self.path, self.commas_free = path, delimiter != ","
        self.points, self.commas = False, False

    def of(self, text: str, line: int, column: str) -> float:
        """Return the value of a cell, NaN for an empty cell."""
        try:
            value: float | None = float(text or "nan") if "_" not in text else None
        except ValueError:
            value = None
        if value is not None and not self.commas_free:
            return value
        if value is None and self.commas_free and _DECIMAL_COMMA.fullmatch(text):
            value, self.commas = float(text.replace(",", ".")), True
        self.points = self.points or "." in text
        where = f"line {line} of {self.path}"
        if value is None:
            hint = "it has a comma: write numbers with a decimal point and no separators of thousands"
            advice = hint if "," in text else Sentence("if it is no signal, name those that are: {columns=}")
            raise InputError(Sentence("{} has something else than a number, or nothing, in column {!r}; {}", where, column, advice))
        if self.commas and self.points:
            msg = f"{where}, column {column!r}: numbers have a comma here and a point there, so that 1.234 may be more than a thousand; write all with a decimal point"
            raise InputError(msg)
        return value


# ---- parquet --------------------------------------------------------------------------------------------------------


def parquet_table(path: Path, integers: bool) -> Table:
    """Return the table in a parquet file; with `integers`, labels that are whole numbers are integers."""
    names, index = parquet_columns(path)

    def labels(wanted: list[str], most: int | None) -> dict[str, list]:
        unique = [name for name in wanted if names.count(name) == 1]
        columns = {}
        for name, column in read_columns(path, lambda _: unique).items():
            part = column if most is None else column.slice(0, most)
            if _may_be_labels(part, integers):
                columns[name] = _labels_of(part, name, path, integers)[0].tolist()
        return columns

    def read(key: str, wanted: list[str]) -> tuple[list, np.ndarray]:
        found = read_columns(path, lambda _: [key, *wanted])
        given, absent = _labels_of(found[key], key, path, integers)
        if absent.any():
            msg = f"row {int(absent.argmax())} of {path} has no label in column {key!r}; every row needs one"
            raise InputError(msg)
        return given.tolist(), np.array([numbers_of(found[name], name, path) for name in wanted]).T.reshape(len(given), len(wanted))

    return Table(path, names, index, labels, read)


def _may_be_labels(column: Any, integers: bool) -> bool:
    types = arrow("pyarrow").types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    return types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind) or _is_whole(column, integers)


def _is_whole(column: Any, integers: bool) -> bool:
    """Whether a column of floats holds integers, which pandas makes of them where there are gaps."""
    if not integers or not arrow("pyarrow").types.is_floating(column.type):
        return False
    values = numbers_of(column, "", Path())
    known = values[~np.isnan(values)]
    return bool(np.all((np.abs(known) < _EXACT) & (known == np.rint(known))))


def _labels_of(column: Any, name: str, path: Path, integers: bool) -> tuple[np.ndarray, np.ndarray]:
    if not _is_whole(column, integers):
        return ids_of(column, name, path)
    values = numbers_of(column, name, path)
    return np.nan_to_num(values).astype(np.int64), np.isnan(values)
