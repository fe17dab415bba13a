"""Lines of edge lists and Matrix Market files to numbers, megabytes at a time and in several threads.

Compiled loops read lines without quotation marks. pyarrow, where it is installed, reads lines with quotation marks, which otherwise
are read one by one in Python (`edge_list`). On one core the loops take 0.11 s for 2 million lines of two integers and 0.25 s with a weight,
and pyarrow.csv 0.11 s and 0.26 s; for text ids the loops take 0.23 s with the numbering of the ids, and pyarrow's `dictionary_encode` alone
0.75 s (2 cores of AMD EPYC, November 2026). So pyarrow would only repeat what the loops do, less strictly: it takes 0x1F for an integer,
nan and inf for weights, and knows no comments.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hushgraph._errors import InputError
from hushgraph._extras import optional
from hushgraph.core import PADDING, Names, _loops, thread_count
from hushgraph.files.text import line_blocks

Parsed = TypeVar("Parsed")
_LEAST_THREADED = 1 << 23  # bytes; a smaller file is one block
_MOST_THREADS = 8  # each has a block of some megabytes in memory
_LEAST_QUOTED = 1 << 16  # bytes; for less, the import of pyarrow takes longer than reading line by line


class RowForm(NamedTuple):
    """The format of a line: which fields are the ends and the value (-1: none) of an edge."""

    n_fields: int
    source: int
    target: int
    value: int
    delimiter: int  # 0: runs of spaces and tabs
    comment: int  # 0: none; with a delimiter, only lines that begin with it
    positive: bool  # values are lengths: 0 only for self-loops
    is_text: bool = False  # ids are text, numbered in the order of their first line


class Rows(NamedTuple):
    """Edges of a block; `alone` marks lines that state a node; `stop` is the start of the first line that is no such row, or -1."""

    ids: np.ndarray
    values: np.ndarray
    alone: np.ndarray
    stop: int


class ParsedBlock(NamedTuple):
    """Edges of a block before ids that are text get their numbers."""

    text: bytes  # in which the spans of ids that are text lie
    ids: np.ndarray  # integers, or spans of text
    values: np.ndarray
    alone: np.ndarray
    doubts: np.ndarray  # rows whose value Python must convert
    places: np.ndarray  # (doubts, 2): start and end of these values
    stop: int


def parse_rows(block: bytes, form: RowForm, names: Names | None = None) -> Rows:
    """Return the edges of a block of whole lines; ids that are text are numbered in `names`.

    Examples
    --------
    >>> rows = parse_rows(b"# from to\\n7 3 0.5\\n3 9 2e-3\\nx\\n", RowForm(3, 0, 1, 2, 0, ord("#"), False))
    >>> rows.ids.tolist(), rows.values.tolist(), rows.stop
    ([[7, 3], [3, 9]], [0.5, 0.002], 27)
    """
    return numbered_rows(parse_block(block, form), form, names)


def parse_block(block: bytes, form: RowForm) -> ParsedBlock:
    """Return the edges of a block of whole lines without quotation marks. Threads may call this at the same time."""
    return ParsedBlock(block, *_loops.parse_edges(np.frombuffer(block, dtype=np.uint8), *form))


def numbered_rows(parsed: ParsedBlock, form: RowForm, names: Names | None = None) -> Rows:
    """Return the edges of a block with the numbers of ids that are text."""
    ids, values, stop = parsed.ids, parsed.values, parsed.stop
    if names is not None:
        ids = names.numbers(parsed.text + PADDING, ids)
    for row, (start, end) in zip(parsed.doubts.tolist(), parsed.places.tolist(), strict=True):
        values[row] = float(parsed.text[start:end])
    if len(parsed.doubts):
        usable = np.isfinite(values) & ((values > 0) | (ids[:, 0] == ids[:, 1]) | (not form.positive))
        if not usable.all():  # a number too large for a float, or so small that it is 0
            stop = start_of_row(parsed.text, form, int(np.argmin(usable)))
    return Rows(ids, values, parsed.alone, stop)


def start_of_row(block: bytes, form: RowForm, row: int) -> int:
    """Return the start of a row: rows are lines, but some lines are no rows."""
    start = 0
    for line in block.split(b"\n"):
        end = start + len(line) + 1
        if parse_block(line, form._replace(value=-1)).ids.size:
            if row == 0:
                return start
            row -= 1
        start = end
    return 0


def integers_of(names: Names) -> np.ndarray | None:
    """Return texts as integers, None if they are not all integers as one would write them: no leading zeros, which codes have."""
    good, numbers = _loops.read_integers(*names.places())
    return numbers if good else None


# ---- the blocks of a file -------------------------------------------------------------------------------------------


def parsed_blocks(path: Path, header: int, parse: Callable[[bytes], Parsed]) -> Iterator[tuple[int, bytes, Parsed]]:
    """Yield (number of lines before, block, `parse(block)`) for the lines after the header, in the order of the file.

    Several threads parse blocks while this one reads the file.
    """
    workers = min(thread_count(), _MOST_THREADS) if path.stat().st_size > _LEAST_THREADED else 1
    if workers == 1:
        yield from ((before, block, parse(block)) for before, block in blocks_after(path, header))
        return
    blocks, waiting = blocks_after(path, header), deque[tuple[int, bytes, Future]]()
    failure, is_end = None, False
    with ThreadPoolExecutor(workers) as pool:
        while waiting or not is_end:
            try:
                before, block = (0, None) if is_end else next(blocks, (0, None))
            except InputError as error:  # raised when the blocks before it are done, which may hold an earlier fault
                failure, block = error, None
            is_end = block is None
            if block is not None:
                waiting.append((before, block, pool.submit(parse, block)))
            if waiting and (is_end or len(waiting) > workers):
                before, block, parsed = waiting.popleft()
                yield before, block, parsed.result()
    if failure is not None:
        raise failure


def blocks_after(path: Path, header: int) -> Iterator[tuple[int, bytes]]:
    """Yield (number of lines before, block of whole lines) after the line with the number `header`."""
    for before, block in line_blocks(path):
        start = 0
        while before < header and start < len(block):
            start = (block.find(b"\n", start) + 1) or len(block)
            before += 1
        if start < len(block):
            yield before, block[start:]


# ---- quotation marks ------------------------------------------------------------------------------------------------


def parse_text_block(block: bytes, form: RowForm) -> ParsedBlock | None:
    """Return the edges of a block whose ids are text, None if only Python's csv module can tell what it holds."""
    if block.count(b"\r") != block.count(b"\r\n"):
        return None
    return parse_quoted(block, form) if b'"' in block else parse_block(block, form)


def parse_quoted(block: bytes, form: RowForm) -> ParsedBlock | None:
    """Return the edges of a block with quotation marks, read by pyarrow; None unless Python's csv module surely reads the same.

    That is so where each quotation mark opens or closes a field or is doubled in one, each line is a row, and no field is too long.
    """
    text = np.frombuffer(block, dtype=np.uint8)
    arrow = optional("pyarrow") if len(block) >= _LEAST_QUOTED else None
    if arrow is None or not form.is_text or not _is_plain_csv(block, text, form.delimiter):
        return None
    table = _arrow_table(block, form)
    if table is None or table.num_rows != np.count_nonzero(text == ord("\n")) + (not block.endswith(b"\n")):
        return None
    (sources, first), (targets, second) = (_text_of(table.column(str(k)).combine_chunks()) for k in (form.source, form.target))
    if np.any(first[1:] == first[:-1]):
        return None  # a line without a source
    alone = second[1:] == second[:-1]
    spans = np.stack([first[:-1] << 32 | first[1:], (second[:-1] + len(sources)) << 32 | (second[1:] + len(sources))], axis=1)
    spans[alone, 1] = spans[alone, 0]
    values = np.empty(0) if form.value < 0 else _values_of(table.column(str(form.value)), alone)
    if values is None:
        return None
    usable = np.isfinite(values) & ((values > 0) | ((values == 0) & (not form.positive)))
    if form.value >= 0 and not np.all(usable | alone):
        return None  # a fault, or a self-loop of length 0
    none = np.empty(0, dtype=np.int64)
    return ParsedBlock(sources + targets, spans, values, alone, none, none.reshape(0, 2), -1)


def _is_plain_csv(block: bytes, text: np.ndarray, delimiter: int) -> bool:
    """Whether a block holds nothing that pyarrow and Python's csv module may read in different ways."""
    if (not 32 < delimiter < 127 and delimiter != ord("\t")) or chr(delimiter) in '"#':
        return False
    if block.startswith(b"#") or b"\n#" in block or b"\0" in block or not _is_utf8(block):
        return False
    ends = np.flatnonzero(text == ord("\n"))
    if np.diff(ends, prepend=-1, append=len(text)).max() > csv.field_size_limit():
        return False
    marks = np.flatnonzero(text == ord('"'))
    if len(marks) % 2:
        return False
    opening, closing = marks[0::2], marks[1::2]
    before, after = text[np.maximum(opening - 1, 0)], text[np.minimum(closing + 1, len(text) - 1)]
    starts = (opening == 0) | (before == delimiter) | (before == ord("\n"))
    stops = (closing == len(text) - 1) | (after == delimiter) | (after == ord("\n")) | (after == ord("\r"))
    doubled = closing[:-1] + 1 == opening[1:]
    starts[1:] |= doubled
    stops[:-1] |= doubled
    return bool(starts.all() and stops.all())


def _is_utf8(block: bytes) -> bool:
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


def _arrow_table(block: bytes, form: RowForm) -> Any:
    """Return the columns of a block that matter, ids as bytes and values as text; None if pyarrow cannot read it."""
    arrow, reader = optional("pyarrow"), optional("pyarrow.csv")
    if arrow is None or reader is None:
        return None
    wanted = {str(form.source): arrow.binary(), str(form.target): arrow.binary()}
    wanted |= {} if form.value < 0 else {str(form.value): arrow.string()}
    try:
        return reader.read_csv(
            arrow.BufferReader(block),
            read_options=reader.ReadOptions(
                use_threads=False, block_size=len(block) + 1, column_names=list(map(str, range(form.n_fields)))
            ),
            parse_options=reader.ParseOptions(delimiter=chr(form.delimiter)),
            convert_options=reader.ConvertOptions(
                check_utf8=False, column_types=wanted, include_columns=list(wanted), null_values=[], strings_can_be_null=False
            ),
        )
    except arrow.ArrowException:
        return None


def _text_of(column: Any) -> tuple[bytes, np.ndarray]:
    """Return the bytes of a column, one text after the other, and where each text starts and the last one ends."""
    _, offsets, content = column.buffers()
    starts = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    whole = b"" if content is None else content.to_pybytes()
    return whole[starts[0] : starts[-1]], starts - starts[0]


def _values_of(column: Any, alone: np.ndarray) -> np.ndarray | None:
    """Return texts as floats, 0 where a line states a node; None if pyarrow does not take them all for numbers."""
    arrow, compute = optional("pyarrow"), optional("pyarrow.compute")
    if arrow is None or compute is None:
        return None
    try:
        return np.array(compute.if_else(arrow.array(alone), "0", column.combine_chunks()).cast("float64"))
    except arrow.ArrowException:
        return None
