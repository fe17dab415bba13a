"""Edge lists in text: SNAP's, CSV, TSV. They give and take edge tables, and know no Graph.

A line is an edge: its two ends, perhaps a weight or a length, perhaps more. A first line may name the columns. With a delimiter, a
line whose target is empty states a node; a line that joins a node to itself does so everywhere. Ids are integers if those of the
first edge are, written bare, and text otherwise. `edge_rows` reads both, megabytes at a time, as long as nothing is quoted.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph.adjacency import affinities
from hushgraph.checks import shown
from hushgraph.edge_rows import RowForm, Rows, parse_rows
from hushgraph.edge_table import ENDS, EdgeTable, checked_value, column_of, is_integer, label_kind, labels_of, numbered, text_labels
from hushgraph.names import Names
from hushgraph.text_files import line_blocks, numbered_lines, unreadable

_CHUNK = 100_000  # lines written at a time


class Layout(NamedTuple):
    """How an edge list is laid out: the line of its header (0: none), where things are, the name of the value."""

    header: int
    form: RowForm
    value: str | None
    integers: bool
    stated: int | None  # number of edges that a comment states


def read_edge_list(path: Path, *, delimiter: str | None, weight, distance) -> EdgeTable:
    """The edges of a text file; without delimiter, fields are separated by runs of spaces and tabs."""
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
    plain = None if layout.integers else _read_plain_text_ids(path, layout)
    return plain or _read_text_ids(path, layout, delimiter)


# ---- layout ---------------------------------------------------------------------------------------------------------


def _layout(path: Path, delimiter: str | None, weight, distance) -> Layout:
    """From the first lines: comments, perhaps names of columns, the first edge."""
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
    """Where the columns of a header are that name the ends of an edge; None if it is no header."""
    names = [field.strip().lower() for field in fields]
    for source, target in ENDS:
        if names.count(source) == 1 and names.count(target) == 1:
            return names.index(source), names.index(target)
    return None


def _starts_with_integers(line: str, fields: list[str] | None, ends: tuple[int, int], delimiter: str | None) -> bool:
    if fields is None or max(ends) >= len(fields):
        return False
    ids = [fields[end].strip() for end in ends]
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


def blocks_after(path: Path, header: int) -> Iterator[tuple[int, bytes]]:
    """Blocks of lines after the line of that number."""
    for before, block in line_blocks(path):
        start = 0
        while before < header and start < len(block):
            start = (block.find(b"\n", start) + 1) or len(block)
            before += 1
        if start < len(block):
            yield before, block[start:]


def _integer_rows(path: Path, layout: Layout) -> tuple[Rows, tuple[int, bytes] | None]:
    """(all rows, None), or what was read until the first bad line, with its number and bytes."""
    found = [parse_rows(b"", layout.form)]
    fault = None
    for before, block in blocks_after(path, layout.header):
        found.append(parse_rows(block, layout.form))
        if found[-1].stop >= 0:
            stop = found[-1].stop
            fault = before + block[:stop].count(b"\n") + 1, block[stop:].split(b"\n", 1)[0]
            break
    ids, values, alone = (np.concatenate([part[i] for part in found]) for i in range(3))
    return Rows(ids, values, alone, -1), fault


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


def _read_plain_text_ids(path: Path, layout: Layout) -> EdgeTable | None:
    """Megabytes at a time; None for a file with quotation marks, blanks around ids or faults, which is then read row by row."""
    form, names = layout.form._replace(is_text=True), Names()
    found = [parse_rows(b"", form, names)]
    for _, block in blocks_after(path, layout.header):
        if b'"' in block or block.count(b"\r") != block.count(b"\r\n"):
            return None
        found.append(parse_rows(block, form, names))
        if found[-1].stop >= 0:
            return None
    ids, values, alone = (np.concatenate([part[i] for part in found]) for i in range(3))
    labels = labels_of(names, path)
    if labels is None:
        return None
    if alone.any():
        ids, values = ids[~alone], values[~alone] if form.value >= 0 else values
    kept = values if form.value >= 0 else None
    weights = affinities(kept, layout.value, ids, is_distance=form.positive)
    return EdgeTable(ids, len(labels), weights, labels=labels)


def _read_text_ids(path: Path, layout: Layout, delimiter: str | None) -> EdgeTable:
    """Row by row, for files with quotation marks, and to find the fault in a line."""
    places: dict[Any, int] = {}
    form, pairs, values, alone = layout.form, [], [], []
    for number, row in csv_rows(path, delimiter or " ", layout.header):
        where = f"line {number} of {path}"
        if len(row) != form.n_fields:
            msg = f"{where} has {len(row)} fields where {form.n_fields} are expected; the file is truncated or garbled"
            raise InputError(msg)
        ends = row[form.source], row[form.target]
        if layout.integers and not all(is_integer(end.strip()) or (end == "" and i) for i, end in enumerate(ends)):
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
    numbers, single = np.array(pairs, dtype=np.int64).reshape(-1, 2), np.array(alone, dtype=bool)
    if layout.integers:
        names = np.array(list(places), dtype=np.int64)
        return _table(Rows(names[numbers], np.array(values), single, -1), layout)
    kept = np.array(values)[~single] if form.value >= 0 else None
    weights = affinities(kept, layout.value, numbers[~single], is_distance=form.positive)
    return EdgeTable(numbers[~single], len(places), weights, labels=text_labels(list(places), path))


def csv_rows(path: Path, delimiter: str, header: int) -> Iterator[tuple[int, list[str]]]:
    """(number of the line, fields) after the header, without blank lines and comments."""
    at = [header]

    def lines():
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


def write_edge_list(file, pairs: np.ndarray, weights: np.ndarray | None, labels: np.ndarray | None, n: int, *, delimiter: str):
    """A header, the nodes that must be stated, and a line per edge; numbers have all their digits."""
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


def write_lines(file, lines: list[str]):
    if lines:
        file.write("\n".join(lines).encode() + b"\n")


def quoted(name: str, delimiter: str) -> str:
    """A text as a field that reads as this text and as no number."""
    if not name or "\n" in name or "\r" in name or len(name) > 4096:
        msg = f"CSV cannot keep the label {shown(name)}: it is empty, long or has a line break; write .npz or .parquet, or relabel"
        raise InputError(msg)
    special = is_integer(name) or name != name.strip() or name[0] == "#" or delimiter in name or '"' in name
    return '"' + name.replace('"', '""') + '"' if special else name
