"""Tables of values on nodes, in text and parquet: which column holds the labels, which hold signals, which row is of which node.

Errors name columns, lines and labels. They quote no value, since values may be private.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph.array_files import arrow, ids_of, numbers_of, parquet_columns, read_columns
from hushgraph.checks import first_of, is_number, shown
from hushgraph.edge_table import PLACES, is_integer
from hushgraph.edge_text import csv_rows
from hushgraph.interop import node_names
from hushgraph.text_files import numbered_lines

_SAMPLE = 200  # rows that show whether a column may hold the labels
_PANDAS_INDEX = ("", "Unnamed: 0")  # how pandas names an index without a name in CSV, and reads it back
_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,15})\.0*", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]*(e[+-]?[0-9]+)?", re.ASCII | re.IGNORECASE)
_EXACT = 2**53  # whole numbers below are themselves as floats


class Found(NamedTuple):
    """Values (n, m) in node order, the names of their columns, and columns of numbers that were left out since no name was asked for."""

    values: np.ndarray
    names: list[str]
    left_out: list[str]


class Table(NamedTuple):
    """A table in a file: names of columns, those that are the index of pandas, and how to read."""

    path: Path
    names: list[str]
    row_names: list[str]
    labels: Callable[[list[str], int | None], dict[str, list]]  # columns taken as labels, the first rows of them or all
    read: Callable[[str, list[str]], tuple[list, np.ndarray]]  # labels and (rows, m) values


def read_table(path: Path, delimiter: str | None, graph, *, columns, label, missing_ok: bool) -> Found:
    """Values by label; without a delimiter it is parquet. Nodes without a row are NaN if `missing_ok`, otherwise an error."""
    nodes, integers = node_names(graph), graph.labels is None or graph.labels.dtype.kind != "U"
    table = _parquet_table(path, integers) if delimiter is None else _text_table(path, delimiter, integers)
    asked = [columns] if isinstance(columns, str) else columns if columns is None else list(columns)
    key = label if label is not None else _label_column(table, asked, nodes, missing_ok)
    taken, left_out = (asked, []) if asked is not None else _signals_among(
        [name for name in table.names if name != key and name not in table.row_names]
    )  # fmt: skip
    for name in [key, *taken]:
        if table.names.count(name) > 1 and _is_headless(table, table.names[0], set(nodes), {}):
            raise InputError(_no_names(path))
        if table.names.count(name) != 1:
            msg = "{} must have one column {}; it has {}; say {columns=} and {label=}"
            raise InputError(Sentence(msg, path, shown(name), table.names[:20]))
    if not taken:
        msg = "{} has no column of values beside the labels; it has {}; say {columns=} and {label=}"
        raise InputError(Sentence(msg, path, table.names[:20]))
    given, values = table.read(key, taken)
    rows = _rows_of(table, key, given, nodes, missing_ok)
    return Found(np.concatenate([values, np.full((1, len(taken)), np.nan)])[rows], taken, left_out)


# ---- which columns --------------------------------------------------------------------------------------------------


def _signals_among(names: list[str]) -> tuple[list[str], list[str]]:
    """(columns that are signals, columns that go with them): places of nodes, and errors to expect, as we write them."""
    beside = {name for places in PLACES if set(places) <= set(names) for name in places}
    beside |= {name for name in names if name == "expected_error" or name.endswith("_expected_error")}
    signals = [name for name in names if name not in beside]
    return (signals, [name for name in names if name in beside]) if signals else (names, [])


def _label_column(table: Table, asked: list[str] | None, nodes: list, missing_ok: bool) -> Any:
    """ "node"; or the index of pandas, unless only another column fits the graph; or the first."""
    if "node" in table.names:
        return "node"
    index = [name for name in table.row_names if name not in (asked or ())]
    if not index:
        return next(iter(table.names), None)
    others = [name for name in table.names if name not in table.row_names and name not in (asked or ())]
    if asked is None and len(others) < 2:
        others = []  # somebody has to be the signal
    known = set(nodes)
    samples = table.labels([*index, *others], _SAMPLE)
    likely = [name for name, sample in samples.items() if known.issuperset(sample)]
    whole = table.labels(likely, None)
    fitting = [name for name in likely if _fits(whole[name], known, missing_ok)]
    named = [name for name in fitting if name in index and name not in _PANDAS_INDEX and not name.startswith("__index_level_")]
    if not named and any(whole[name] != whole[fitting[0]] for name in fitting):
        msg = "{} has several columns that fit the labels of the graph: {}; say {label=}"
        raise InputError(Sentence(msg, table.path, first_of(fitting)))
    if named or fitting:
        return (named or fitting)[0]
    return max(samples, key=lambda name: sum(one in known for one in samples[name]), default=index[0])


def _fits(given: list, known: set, missing_ok: bool) -> bool:
    return len(set(given)) == len(given) and known.issuperset(given) and (missing_ok or len(given) == len(known))


# ---- text -----------------------------------------------------------------------------------------------------------


def _text_table(path: Path, delimiter: str, integers: bool) -> Table:
    delimiter = _delimiter_of(path, delimiter)
    names = [name.strip() for name in next(csv_rows(path, delimiter, 0), (0, []))[1]]
    if not names:
        msg = f"{path} is empty; expected a line with names of columns and one line per node"
        raise InputError(msg)

    def rows():
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
                column.append(_label_of(row[names.index(name)], integers))
        return columns

    def read(key: str, wanted: list[str]) -> tuple[list, np.ndarray]:
        given: list[Any] = []
        cells, numbers = [], _Numbers(path, delimiter)
        place, places = names.index(key), [(name, names.index(name)) for name in wanted]
        for number, row in rows():
            given.append(_label_of(row[place], integers))
            for name, at in places:
                cells.append(numbers.of(row[at].strip(), number, name))
        return given, np.array(cells, dtype=np.float64).reshape(-1, len(wanted))

    return Table(path, names, names[:1] if names[0] in _PANDAS_INDEX else [], labels, read)


def _delimiter_of(path: Path, delimiter: str) -> str:
    """A .csv file whose line of names has no comma, but semicolons or tabs, is separated by those."""
    if delimiter != ",":
        return delimiter
    head = next((line for _, line in numbered_lines(path) if line.strip("\r\n ") and not line.startswith("#")), "")
    bare = re.sub(r'"[^"]*"', "", head)
    return next((mark for mark in ",;\t" if mark in bare), ",")


def _label_of(text: str, integers: bool) -> Any:
    """Integers where the graph has them; 7.0, which pandas makes of 7 in a column with gaps, is 7."""
    bare = text.strip() if integers else ""
    if bare and is_integer(bare):
        return int(bare)
    whole = _WHOLE.fullmatch(bare)
    return int(whole[1]) if whole and abs(int(whole[1])) < _EXACT else text


class _Numbers:
    """Cells of one file as numbers, with decimal points, or with decimal commas where commas do not separate columns."""

    def __init__(self, path: Path, delimiter: str):
        self.path, self.commas_free = path, delimiter != ","
        self.points, self.commas = False, False

    def of(self, text: str, line: int, column: str) -> float:
        """The value of a cell, NaN for an empty one."""
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


def _parquet_table(path: Path, integers: bool) -> Table:
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
        return given.tolist(), np.stack([numbers_of(found[name], name, path) for name in wanted], axis=1)

    return Table(path, names, index, labels, read)


def _may_be_labels(column, integers: bool) -> bool:
    types = arrow("pyarrow").types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    return types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind) or _is_whole(column, integers)


def _is_whole(column, integers: bool) -> bool:
    """Whether a column of floats holds integers, which pandas makes of them where there are gaps."""
    if not integers or not arrow("pyarrow").types.is_floating(column.type):
        return False
    values = numbers_of(column, "", Path())
    known = values[~np.isnan(values)]
    return bool(np.all((np.abs(known) < _EXACT) & (known == np.rint(known))))


def _labels_of(column, name: str, path: Path, integers: bool) -> tuple[np.ndarray, np.ndarray]:
    if not _is_whole(column, integers):
        return ids_of(column, name, path)
    values = numbers_of(column, name, path)
    return np.nan_to_num(values).astype(np.int64), np.isnan(values)


# ---- which rows -----------------------------------------------------------------------------------------------------


def _rows_of(table: Table, key: str, given: list, nodes: list, missing_ok: bool) -> list[int]:
    """The row of each node; -1 where it has none and may."""
    row = {name: i for i, name in enumerate(given)}
    if len(row) < len(given):
        twice = list(dict.fromkeys(name for i, name in enumerate(given) if row[name] != i))
        msg = "{} has {} labels more than once (first: {}); each node needs exactly one row; {}"
        raise InputError(Sentence(msg, table.path, len(twice), first_of(twice), _advice(table, key, twice, set(nodes))))
    known = set(nodes)
    absent, foreign = [name for name in nodes if name not in row], [name for name in given if name not in known]
    if (absent or foreign) and _is_headless(table, key, known, row):
        raise InputError(_no_names(table.path))
    if foreign or (absent and not missing_ok):
        msg = "labels of {} and graph differ: {} nodes have no row (first: {}), {} rows are of no node (first: {}); {}"
        advice = _advice(table, key, foreign, known)
        raise InputError(Sentence(msg, table.path, len(absent), first_of(absent), len(foreign), first_of(foreign), advice))
    return [row.get(name, -1) for name in nodes]


def _no_names(path: Path) -> str:
    return f"the first line of {path} must name the columns; it looks like a row of values; put a line such as node,value before it"


def _is_headless(table: Table, key: str, known: set, row: dict) -> bool:
    """Whether the names of columns are a node and its values, and this node has no other row."""
    label = _label_of(key, not isinstance(next(iter(known), 0), str))
    others = [name for name in table.names if name != key]
    return label not in row and (label in known or is_number(key)) and bool(others) and all(map(is_number, others))


def _advice(table: Table, key: str, foreign: list, known: set) -> str:
    """What to do about labels that do not match, or about none where only rows are absent."""
    if not foreign:
        return Sentence("add their rows, or let them be missing: {missing_ok=True}")
    others = [name for name in table.names if name != key and table.names.count(name) == 1]
    fitting = [name for name, sample in table.labels(others, _SAMPLE).items() if sample and _fits(sample, known, True)]
    if fitting:
        return Sentence("column {!r} fits the graph: say {label=}{!r}", fitting[0], fitting[0])
    text = isinstance(next(iter(known), 0), str)
    if all(isinstance(name, int) for name in foreign) and text:
        return "the file has integers and the graph has text: store them as text"
    if not text and all(isinstance(name, str) and is_integer(name) for name in foreign):
        return "the file has text and the graph has integers: store them as integers"
    if text and all((whole := _WHOLE.fullmatch(str(name))) and whole[1] in known for name in foreign):
        return "they were written as floats: store them without the .0, as integers or text"
    return Sentence("check that it belongs to this graph, and {label=}")
