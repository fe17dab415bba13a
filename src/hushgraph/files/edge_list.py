"""Edge lists in text: SNAP's, CSV, TSV.

A line is an edge: its two ends, perhaps a weight or a length, perhaps more. A first line may name the columns. With a delimiter, a line
whose target is empty states a node; a line that joins a node to itself does so in every form. Ids are integers if those of the first
edge are, written bare, and text otherwise. `edge_rows` reads megabytes at a time; what it does not read, and what is wrong with a line,
is found row by row.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph._validation import shown
from hushgraph.core import Names
from hushgraph.files.edge_rows import (
    RowForm,
    Rows,
    integers_of,
    numbered_rows,
    parse_block,
    parse_rows,
    parse_text_block,
    parsed_blocks,
)
from hushgraph.files.formats import ColumnChoice
from hushgraph.files.text import numbered_lines, unreadable
from hushgraph.graphs import (
    ENDS,
    EdgeTable,
    affinities,
    checked_value,
    column_of,
    is_integer,
    label_kind,
    labels_of,
    numbered,
    text_labels,
)

_CHUNK = 100_000  # lines written at a time


class Layout(NamedTuple):
    """The layout of an edge list: the line of its header (0: none), the format of its lines, the name of the value."""

    header: int
    form: RowForm
    value: str | None
    integers: bool
    stated: int | None  # number of edges that a comment states


def read_edge_list(path: Path, *, delimiter: str | None, weight: ColumnChoice, distance: ColumnChoice) -> EdgeTable:
    """Return the edges of a text file; without a delimiter, runs of spaces and tabs separate the fields."""
    layout = _layout(path, delimiter, weight, distance)
    if layout.integers:
        rows, fault = _integer_rows(path, layout)
        if fault and delimiter is None:
            raise InputError(_first_fault(path, fault, layout))
        if not fault:
            table = _table(rows, layout)
            if layout.stated is not None and len(rows.ids) != layout.stated:
                msg = f"{path} says it has {layout.stated} edges, but has {len(rows.ids)} lines of them; it is truncated or was edited; get it again"
                raise InputError(msg)
            return table
    return _read_text_ids(path, layout) or _read_row_by_row(path, layout, delimiter or " ")


def has_edge_columns(path: Path, delimiter: str | None) -> bool:
    """Return whether the first line of a text file names the two ends of edges."""
    line = next((line for _, line in numbered_lines(path) if line.strip() and not line.startswith("#")), "")
    fields = _fields(line, delimiter)
    return fields is not None and _ends(fields) is not None


# ---- layout ---------------------------------------------------------------------------------------------------------


def _layout(path: Path, delimiter: str | None, weight: ColumnChoice, distance: ColumnChoice) -> Layout:
    """Return the layout of a file from its first lines: comments, names of columns if there are any, the first edge."""
    header, stated, names, first = 0, None, None, None
    for number, line in numbered_lines(path):
        if line.startswith("#") or not line.strip():
            match = re.search(r"\bEdges:\s*(\d{1,18})\b", line) if delimiter is None else None
            stated = int(match[1]) if match else stated
            continue
        fields = _fields(line, delimiter)
        if names is None and first is None and fields is not None and _ends(fields) is not None:
            header, names = number, [field.strip().lower() for field in fields]
            continue
        first = number, line, fields
        break
    if first is None and names is None:
        msg = f"{path} holds no edges; expected two node ids a line; check that it was copied whole"
        raise InputError(msg)
    width = len(first[2] or []) if first and names is None else len(names or [])
    ends = _ends(names) if names else None
    integers = first is None or _starts_with_integers(first[1], first[2], ends or (0, 1), delimiter)
    if first and names is None and (not integers or width < 2):
        raise InputError(_no_header(path, *first[:2], delimiter))
    columns = names or [str(i) for i in range(width)]
    if first and names is None and width > 2 and weight is None and distance is None:
        msg = (
            "line {} of {} must be two integer node ids; got {}; if a further column is a weight say {weight=2} (or {distance=2}), "
            "counting from 0; {weight=False} leaves it"
        )
        raise InputError(Sentence(msg, first[0], path, shown(first[1].strip())))
    others = [name for i, name in enumerate(columns) if i not in (ends or (0, 1))]
    value, is_distance = column_of(others, weight, distance, path)
    place, separator = -1 if value is None else columns.index(value), ord(delimiter) if delimiter else 0
    form = RowForm(len(columns), *(ends or (0, 1)), place, separator, ord("#"), is_distance)
    return Layout(header, form, value, integers, stated)


def _fields(line: str, delimiter: str | None) -> list[str] | None:
    if delimiter is None:
        return line.split("#")[0].split()
    try:
        return next(csv.reader([line.strip("\r\n")], delimiter=delimiter, strict=True), None)
    except csv.Error:
        return None


def _ends(fields: list[str]) -> tuple[int, int] | None:
    """Return the numbers of the columns with the ends of an edge, None if the fields are no header."""
    names = [field.strip().lower() for field in fields]
    for source, target in ENDS:
        if names.count(source) == 1 and names.count(target) == 1:
            return names.index(source), names.index(target)
    return None


def _starts_with_integers(line: str, fields: list[str] | None, ends: tuple[int, int], delimiter: str | None) -> bool:
    if fields is None or max(ends) >= len(fields):
        return False
    ids = [fields[end].strip(" \t") for end in ends]
    if delimiter is None:
        return all(re.fullmatch(r"[+-]?[0-9]{1,19}", field, re.ASCII) for field in ids)
    bare = all(f'"{field}"' not in line for field in ids)
    return bare and is_integer(ids[0]) and (is_integer(ids[1]) or ids[1] == "")


def _no_header(path: Path, number: int, line: str, delimiter: str | None) -> str:
    if delimiter is None:
        return f"line {number} of {path} must be two integer node ids; got {shown(line.strip())}; the file is truncated or garbled"
    expected = (
        "line {} of {} must name the columns, source{}target say, or be an edge of two integer node ids; got {}; add a first line with "
        "names, or say which {delimiter=} it has"
    )
    return Sentence(expected, number, path, delimiter, shown(line.strip()))


# ---- integer ids ----------------------------------------------------------------------------------------------------


def _integer_rows(path: Path, layout: Layout) -> tuple[Rows, tuple[int, bytes] | None]:
    """Return (all rows, None), or the rows up to the first bad line with the number and bytes of this line."""
    parts = [parse_rows(b"", layout.form)]
    fault = None
    for before, block, parsed in parsed_blocks(path, layout.header, partial(parse_block, form=layout.form)):
        parts.append(numbered_rows(parsed, layout.form))
        if parts[-1].stop >= 0:
            stop = parts[-1].stop
            fault = before + block[:stop].count(b"\n") + 1, block[stop:].split(b"\n", 1)[0]
            break
    return _joined(parts), fault


def _joined(parts: list[Rows]) -> Rows:
    ids, values, alone = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return Rows(ids, values, alone, -1)


def _table(rows: Rows, layout: Layout) -> EdgeTable:
    pairs, n, labels = numbered(rows.ids, rows.alone)
    values = None if layout.value is None else rows.values[~rows.alone]
    return EdgeTable(pairs, n, affinities(values, layout.value, pairs, is_distance=layout.form.positive), labels=labels)


def _first_fault(path: Path, fault: tuple[int, bytes], layout: Layout) -> str:
    number, content = fault
    try:
        line = content.decode()
    except UnicodeDecodeError:
        return str(unreadable(path, number - 1))
    fields, form = _fields(line, None) or [], layout.form
    ids = [fields[end] for end in (form.source, form.target) if end < len(fields)]
    if len(fields) == form.n_fields and all(re.fullmatch(r"[+-]?[0-9]{1,18}", field, re.ASCII) for field in ids):
        try:
            loop, where = int(ids[0]) == int(ids[1]), f"line {number} of {path}"
            checked_value(fields[form.value], is_distance=form.positive, is_loop=loop, where=where)
        except ValueError as error:
            return str(error)
    more = f" among {form.n_fields} fields" if form.n_fields > 2 else ""
    return (
        f"line {number} of {path} must be two integer node ids{more}; got {shown(line.strip())}; the file is truncated or garbled"
    )


# ---- text ids -------------------------------------------------------------------------------------------------------


def _read_text_ids(path: Path, layout: Layout) -> EdgeTable | None:
    """Return the edges, read megabytes at a time; None for a file that must be read row by row.

    Ids that should be integers are read as text, too, where quotation marks in another column hide a delimiter.
    """
    form, names = layout.form._replace(is_text=True), Names()
    parts = [parse_rows(b"", form, names)]
    for _, _, parsed in parsed_blocks(path, layout.header, partial(parse_text_block, form=form)):
        if parsed is None or parsed.stop >= 0:
            return None
        parts.append(numbered_rows(parsed, form, names))
        if parts[-1].stop >= 0:
            return None
    rows = _joined(parts)
    if layout.integers:
        numbers = integers_of(names)
        return None if numbers is None else _table(rows._replace(ids=numbers[rows.ids]), layout)
    labels = labels_of(names, path)
    return None if labels is None else _text_table(rows, layout, labels)


def _text_table(rows: Rows, layout: Layout, labels: np.ndarray) -> EdgeTable:
    pairs = rows.ids[~rows.alone] if rows.alone.any() else rows.ids
    values = None if layout.value is None else rows.values[~rows.alone]
    return EdgeTable(pairs, len(labels), affinities(values, layout.value, pairs, is_distance=layout.form.positive), labels=labels)


def _read_row_by_row(path: Path, layout: Layout, delimiter: str) -> EdgeTable:
    """Return the edges, read by Python's csv module; find the fault in a line."""
    places: dict[Any, int] = {}
    form, pairs, values, alone = layout.form, [], [], []
    for number, row in csv_rows(path, delimiter, layout.header):
        where = f"line {number} of {path}"
        if len(row) != form.n_fields:
            msg = f"{where} has {len(row)} fields where {form.n_fields} are expected; the file is truncated or garbled"
            raise InputError(msg)
        ends = row[form.source], row[form.target]
        if layout.integers and not all(is_integer(end.strip(" \t")) or (end == "" and i) for i, end in enumerate(ends)):
            msg = f"{where} must be two integer node ids, as on the lines before; got {shown(ends)}; put ids that are text into quotation marks"
            raise InputError(msg)
        if not ends[0]:
            msg = f"{where} has no source; only the target may be empty, where a line states a node"
            raise InputError(msg)
        keys = (int(ends[0]), int(ends[1] or ends[0])) if layout.integers else (ends[0], ends[1] or ends[0])
        pairs.append((places.setdefault(keys[0], len(places)), places.setdefault(keys[1], len(places))))
        alone.append(not ends[1])
        if form.value >= 0:
            loop = keys[0] == keys[1]
            empty = alone[-1]  # a stated node needs no value
            text = "0" if empty else row[form.value]
            values.append(checked_value(text, is_distance=form.positive, is_loop=loop, where=where))
    numbers = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    rows = Rows(numbers, np.array(values), np.array(alone, dtype=bool), -1)
    if layout.integers:
        return _table(rows._replace(ids=np.array(list(places), dtype=np.int64)[numbers]), layout)
    return _text_table(rows, layout, text_labels(list(places), path))


def csv_rows(path: Path, delimiter: str, header: int) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the line, fields) after the header, without blank lines and comments."""
    at = [header]

    def lines() -> Iterator[str]:
        for number, line in numbered_lines(path):
            if number > header and line.strip("\r\n ") and not line.startswith("#"):
                at[0] = number
                yield line

    rows, fault = csv.reader(lines(), delimiter=delimiter, strict=True), ""
    while not fault:
        try:
            row = next(rows, None)
        except csv.Error:
            fault = f"line {at[0]} of {path} is no CSV: its quotation marks do not match; the file is truncated or garbled"
            break
        if row is None:
            return
        yield at[0], row
    raise InputError(fault)


# ---- writing --------------------------------------------------------------------------------------------------------


def write_edge_list(
    file: BinaryIO, pairs: np.ndarray, weights: np.ndarray | None, labels: np.ndarray | None, n: int, *, delimiter: str
) -> None:
    """Write a header, the nodes that have no edge or whose order matters, and a line per edge; numbers have all their digits."""
    kind = label_kind(labels, "CSV")
    names = list(map(str, range(n) if labels is None else labels.tolist()))
    if kind == "text":
        names = [quoted(name, delimiter) for name in names]
    file.write(delimiter.join(["source", "target"] + ["weight"] * (weights is not None)).encode() + b"\n")
    ascending = labels is not None and kind == "int" and bool(np.all(labels[1:] > labels[:-1]))
    ascending = ascending and not np.array_equal(labels, np.arange(n))  # type: ignore[arg-type]
    if kind == "none" or ascending:
        joined = np.zeros(n, dtype=bool)
        joined[pairs] = True
        none = "" if weights is None else f"{delimiter}0"
        write_lines(file, [f"{names[i]}{delimiter}{names[i]}{none}" for i in np.flatnonzero(~joined).tolist()])
    else:
        ending = delimiter * (1 + (weights is not None))
        write_lines(file, [name + ending for name in names])
    for start in range(0, len(pairs), _CHUNK):
        part = pairs[start : start + _CHUNK].tolist()
        if weights is None:
            write_lines(file, [f"{names[i]}{delimiter}{names[j]}" for i, j in part])
        else:
            values = weights[start : start + _CHUNK].tolist()
            write_lines(file, [f"{names[i]}{delimiter}{names[j]}{delimiter}{w!r}" for (i, j), w in zip(part, values, strict=True)])


def write_lines(file: BinaryIO, lines: list[str]) -> None:
    if lines:
        file.write("\n".join(lines).encode() + b"\n")


def quoted(name: str, delimiter: str) -> str:
    """Return a text as a field that is read as this text and not as a number."""
    if not name or "\n" in name or "\r" in name or len(name) > 4096:
        msg = f"CSV cannot keep the label {shown(name)}: it is empty, long or has a line break; write .npz or .parquet, or relabel"
        raise InputError(msg)
    special = is_integer(name) or name != name.strip() or name[0] == "#" or delimiter in name or '"' in name
    return '"' + name.replace('"', '""') + '"' if special else name
