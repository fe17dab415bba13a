"""Matrix Market files of sparse matrices: rows are nodes, entries are edges. This module reads and writes edge tables and knows no Graph.

Labels, which the format does not have, are written into comments, one a line: `%label "name"`, and read from there.

`scipy.io.mmread` is not used, since it ignores what follows a number: it reads "1 2.5 0.5" as an entry (1, 2) of 0.5, "1d5" as 1 and "0.5.3"
as 0.5 without an error, and a garbled file must be one. It takes 0.08 s where this reader takes 0.15 s, for 2 million entries with weights
(2 cores of AMD EPYC, SciPy 1.17, November 2026).
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from hushgraph._errors import InputError
from hushgraph._validation import shown
from hushgraph.files.edge_rows import RowForm, numbered_rows, parse_block, parse_rows, parsed_blocks, start_of_row
from hushgraph.files.formats import ColumnChoice
from hushgraph.files.text import numbered_lines
from hushgraph.graphs import MAX_NODES, EdgeTable, affinities, checked_value, column_of, is_integer, label_kind, text_labels

_BARE_NODES, _NODES_PER_ENTRY = 1_000_000, 100  # a matrix of far more rows than entries is no graph, and would fill the memory


def read_matrix(path: Path, *, weight: ColumnChoice, distance: ColumnChoice) -> EdgeTable:
    """Return the edges of a square Matrix Market file: pattern, integer or real, symmetric or general."""
    header, field, (rows, columns, entries), names = _head(path)
    if rows != columns:
        raise InputError(_fault(path, f"it must hold a square matrix; got shape ({rows}, {columns})"))
    value, is_distance = column_of([] if field == "pattern" else ["weight"], weight, distance, path)
    form = RowForm(2 if field == "pattern" else 3, 0, 1, -1 if value is None else 2, 0, ord("%"), is_distance)
    parts, total = [parse_rows(b"", form)], 0
    for before, block, parsed in parsed_blocks(path, header, partial(parse_block, form=form)):
        part = numbered_rows(parsed, form)
        outside = (part.ids < 1) | (part.ids > rows)
        if part.stop >= 0 or outside.any() or total + len(part.ids) > entries:
            row = int(outside.any(axis=1).argmax()) if outside.any() else max(0, entries - total)
            start = start_of_row(block, form, row) if outside.any() or part.stop < 0 else part.stop
            line = block[start:].split(b"\n", 1)[0].decode(errors="replace").strip()
            raise InputError(_bad_entry(path, before + block[:start].count(b"\n") + 1, line, form, rows))
        total += len(part.ids)
        parts.append(part)
    if total < entries:
        raise InputError(_fault(path, f"Truncated file: {entries} entries are stated, {total} are there"))
    if rows > min(MAX_NODES, _BARE_NODES + _NODES_PER_ENTRY * entries):
        raise InputError(_fault(path, f"{rows} rows are stated, far too many for {entries} entries"))
    pairs = np.concatenate([part.ids for part in parts]) - 1
    values = None if value is None else np.concatenate([part.values for part in parts])
    return EdgeTable(pairs, rows, affinities(values, "weight", pairs, is_distance=is_distance), labels=_labels(path, names, rows))


def _head(path: Path) -> tuple[int, str, tuple[int, int, int], list[str]]:
    """Return (line of the sizes, field, (rows, columns, entries), labels as written)."""
    field, names = "", []
    for number, line in numbered_lines(path):
        words = line.split()
        if number == 1:
            kinds = [word.lower() for word in words]
            if len(kinds) != 5 or kinds[:2] != ["%%matrixmarket", "matrix"] or kinds[2] != "coordinate":
                raise InputError(_fault(path, "Line 1: expected '%%MatrixMarket matrix coordinate', a field and a symmetry"))
            field = kinds[3]
            if field not in ("real", "integer", "pattern"):
                raise InputError(_fault(path, f"it must hold a matrix of real numbers; got {shown(kinds[3])}"))
            if kinds[4] not in ("symmetric", "general"):
                reason = "has negative weights" if kinds[4] == "skew-symmetric" else "is no graph"
                raise InputError(_fault(path, f"Line 1: expected symmetric or general; a {shown(kinds[4])} matrix {reason}"))
        elif line.startswith("%label "):
            names.append(line[7:].strip())
        elif words and not line.startswith("%"):
            sizes = [int(word) if is_integer(word) else -1 for word in words]
            if len(sizes) != 3 or min(sizes) < 0:
                raise InputError(_fault(path, f"Line {number}: expected rows, columns and entries; got {shown(line.strip())}"))
            return number, field, (sizes[0], sizes[1], sizes[2]), names
    raise InputError(_fault(path, "Line 1: it is empty" if not field else "Truncated file: no line with its size"))


def _fault(path: Path, reason: str) -> str:
    return f"{path} is not a whole Matrix Market file: {reason}; copy or download it again"


def _bad_entry(path: Path, number: int, line: str, form: RowForm, n: int) -> str:
    fields = line.split()
    good = len(fields) == form.n_fields and all(is_integer(field) and 1 <= int(field) <= n for field in fields[:2])
    if good and form.value >= 0:
        try:
            loop = fields[0] == fields[1]
            checked_value(fields[2], is_distance=form.positive, is_loop=loop, where=f"line {number} of {path}")
        except ValueError as error:
            return str(error)
    if good:
        return _fault(path, f"Line {number}: more entries than stated")
    expected = f"row and column from 1 to {n}" + (" and a number" if form.n_fields == 3 else "")
    return _fault(path, f"Line {number}: expected {expected}; got {shown(line)}")


def _labels(path: Path, names: list[str], n: int) -> np.ndarray | None:
    if not names:
        return None
    if len(names) != n:
        raise InputError(_fault(path, f"{len(names)} labels for {n} rows"))
    if all(map(is_integer, names)):
        return np.array([int(name) for name in names])
    texts = [_text(name) for name in names]
    if None in texts:
        raise InputError(_fault(path, f"label {texts.index(None)} is neither an integer nor text in quotation marks"))
    return text_labels([text for text in texts if text is not None], path)


def _text(name: str) -> str | None:
    try:
        return json.loads(name) if name.startswith('"') else None
    except ValueError:
        return None


def write_matrix(file: BinaryIO, pairs: np.ndarray, weights: np.ndarray | None, labels: np.ndarray | None, n: int) -> None:
    """Write the lower triangle; entries have all their digits."""
    label_kind(labels, "Matrix Market")
    field = "pattern" if weights is None else "real"
    file.write(f"%%MatrixMarket matrix coordinate {field} symmetric\n".encode())
    names = [] if labels is None else labels.tolist()
    file.write("".join(f"%label {json.dumps(name)}\n" for name in names).encode())
    file.write(f"{n} {n} {len(pairs)}\n".encode())
    for start in range(0, len(pairs), 100_000):
        part = (pairs[start : start + 100_000] + 1).tolist()
        if weights is None:
            lines = [f"{j} {i}\n" for i, j in part]
        else:
            lines = [f"{j} {i} {w!r}\n" for (i, j), w in zip(part, weights[start : start + 100_000].tolist(), strict=True)]
        file.write("".join(lines).encode())
