"""Text files of events, read line by line: bytes in, the exact bytes of the wanted fields out. Knows no graph and no unit.

The proof of the sensitivity rests on two properties (see `counting.py`): what a line means is a function of the bytes of that line
(and of the header, which is public), and different bytes stay different. Both hold by construction: nothing is kept from one line
to the next, and no byte is decoded, replaced or dropped. The rules:

- A line ends at a line feed; one carriage return before it does not belong to it. The first line is the header.
- A line of more than `LONGEST` bytes is dropped, and never held in memory.
- Fields are separated by commas, or by the delimiter that the format declares (`csv_format.py`). A field that begins with a quotation mark runs to its closing one (two in a row mean one); a line
  where the closing one is missing, or not followed by the delimiter or the end, is dropped. Other quotation marks are ordinary bytes.
- A line with more fields than the header is dropped, unless the extra ones are empty. Fields that are missing are empty.
- A number is `[+-]?(digits[.[digits]] | .digits)([eE][+-]?up to 18 digits)?`, read as the nearest float64.
- A time is `YYYY-MM-DD`, or that with `T` or one blank and `HH[:MM[:SS[.up to 9 digits]]]`, which may end in `Z` or
  `+-HH[[:]MM[[:]SS]]`; it must exist in the calendar. Blanks and tabs around numbers and times do not matter.
- A declared format may put a comma in the place of the decimal point, another form in the place of ISO 8601, and a table of 256
  characters in the place of UTF-8: bytes are then converted to UTF-8 one by one, before the lines are split.

The compiled loops that read private text are all in `core/text_events.cpp`.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph._errors import InputError, PathError
from hushgraph.core import PADDING, _loops
from hushgraph.files import BYTE_ORDER_MARK
from hushgraph.privacy.csv_format import CsvFormat, is_bytewise, to_utf8

LONGEST = 1 << 16  # bytes of a line
BLOCK = 1 << 23  # bytes read at a time
NO_TICKS = np.iinfo(np.int64).min
BEFORE, AFTER = NO_TICKS + 1, np.iinfo(np.int64).max  # times before 1678 and after 2261: nanoseconds do not fit into 64 bits

USUAL_FORMAT = CsvFormat()
_COMMA_AS_POINT = bytes.maketrans(b",.", b".x")  # a point is then no part of a number
_NOTHING = np.empty(0, dtype=np.uint8)
_DAMAGED = "the CSV file cannot be read after line {line}"
_NO_HEADER = (
    "the CSV file must begin with a line of column names, of at most 65,536 bytes; its first line is empty, "
    "too long, or has quotation marks that do not match"
)
_UTF_16 = "the CSV file is text in UTF-16; expected UTF-8; save it as UTF-8 (in Excel: CSV UTF-8)"


# ---- texts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of byte strings; an empty one is a missing value.

    Attributes
    ----------
    buffer : uint8 array
        The bytes of all texts, followed by `core.PADDING`.
    spans : (rows,) int64 array
        Where each text lies: start << 32 | end.
    kind : {"text", "bytes", "UUID"}
        What the bytes stand for; ids of different kinds are never the same.
    form : CsvFormat
        How numbers and times are written.

    Examples
    --------
    >>> texts = Texts.of([b"1.50", b" -2e3", b"1_000", b"", b"2026-03-02T06:30Z"])
    >>> texts.numbers()
    array([ 1.5e+00, -2.0e+03,      nan,      nan,      nan])
    >>> ticks, aware = texts.times()
    >>> (ticks != NO_TICKS).tolist(), bool(aware[4])
    ([False, False, False, False, True], True)
    """

    buffer: np.ndarray
    spans: np.ndarray
    kind: str = "text"
    form: CsvFormat = USUAL_FORMAT

    def __post_init__(self) -> None:
        if len(self.buffer) >= 2**31:  # beyond, a span would be another one
            msg = "a column of at most 2 GB of text is expected at a time; pass a smaller chunk_rows"
            raise InputError(msg)

    def __len__(self) -> int:
        return len(self.spans)

    @classmethod
    def of(cls, values: list[bytes], kind: str = "text", form: CsvFormat = USUAL_FORMAT) -> Texts:
        """Return a column of these byte strings; those of more than `LONGEST` bytes are missing."""
        values = [value if len(value) <= LONGEST else b"" for value in values]
        ends = np.cumsum(np.fromiter(map(len, values), dtype=np.int64, count=len(values)))
        starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)[: len(ends)]
        return cls(np.frombuffer(b"".join([*values, PADDING]), dtype=np.uint8), starts << 32 | ends, kind, form)

    def numbers(self) -> np.ndarray:
        """Return each text as the nearest float64; NaN where it is not a number."""
        if self.form.decimal == ",":
            content, spans = self._used()
            return Texts(np.frombuffer(content.translate(_COMMA_AS_POINT) + PADDING, dtype=np.uint8), spans).numbers()
        values, doubtful = _loops.read_numbers(self.buffer, self.spans)
        for row in doubtful.tolist():
            start, end = int(self.spans[row]) >> 32, int(self.spans[row]) & 0xFFFFFFFF
            values[row] = float(self.buffer[start:end].tobytes())  # the grammar was checked; only the rounding was in doubt
        return values

    def times(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (nanoseconds since 1970, in UTC where the text has an offset, or `NO_TICKS`; whether it has an offset)."""
        if self.form.time_format is not None:
            content, spans = self._used()
            iso, places = self.form.times.iso, zip((spans >> 32).tolist(), (spans & 0xFFFFFFFF).tolist(), strict=True)
            texts = [content[start:end] for start, end in places]
            read = {text: iso(text) for text in set(texts)}  # each text by itself, and those that recur only once
            return Texts.of([read[text] for text in texts]).times()
        return _loops.read_times(self.buffer, self.spans)

    def _used(self) -> tuple[bytes, np.ndarray]:
        """Return the bytes from the first text to the last one, and where each text lies in them."""
        known = self.spans[self.spans > 0]
        start, end = (int(known.min()) >> 32, int((known & 0xFFFFFFFF).max())) if len(known) else (0, 0)
        return self.buffer[start:end].tobytes(), np.where(self.spans > 0, self.spans - (start << 32 | start), 0)


# ---- files ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Lines:
    """Some lines of a file: fields by column, the number of each line (the header is line 1), and lines that were dropped."""

    fields: dict[str, Texts]
    numbers: np.ndarray
    dropped: np.ndarray


def read_header(path: Path, form: CsvFormat = USUAL_FORMAT) -> list[str]:
    """Return the column names of a .csv or .csv.gz file; bytes that are not UTF-8 become lone surrogates, so names stay different."""
    blocks = _blocks(path, form)
    block = attempt(lambda: next(blocks, _NOTHING), _DAMAGED.format(line=0))
    blocks.close()
    head = _content(block)[: LONGEST + 2].tobytes().partition(b"\n")[0]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(_UTF_16)
    most, line = head.count(form.delimiter.encode()) + 1, np.frombuffer(bytearray(head), dtype=np.uint8)
    spans, end = np.zeros(most, dtype=np.int64), len(head) - head.endswith(b"\r")
    is_line = end > 0 and len(head) <= LONGEST
    n_fields = _loops.split_line(line[:end], np.arange(most), spans, ord(form.delimiter)) if is_line else -1
    if n_fields < 0:
        raise InputError(_NO_HEADER)
    fields = [line[place >> 32 : place & 0xFFFFFFFF].tobytes() for place in spans[:n_fields].tolist()]
    return [field.decode("utf-8", "surrogateescape") for field in fields]


def read_lines(
    path: Path, columns: list[str], names: list[str], chunk_rows: int, form: CsvFormat = USUAL_FORMAT
) -> Iterator[Lines]:
    """Yield the lines after the header, at most `chunk_rows` rows or `BLOCK` bytes at a time."""
    slots = np.full(len(columns), -1, dtype=np.int64)
    slots[[columns.index(name) for name in names]] = np.arange(len(names))
    blocks, line = _blocks(path, form), 0
    while len(block := attempt(lambda: next(blocks, _NOTHING), _DAMAGED.format(line=line))):
        content, begin = _content(block), 0
        if line == 0:
            begin, line = (content.tobytes().find(b"\n") + 1) or len(content), 1
        most = min(chunk_rows, _loops.count_lines(content))
        while begin < len(content):
            begin, line, spans, numbers, dropped = _loops.split_lines(
                content, begin, line, slots, len(names), most, LONGEST, ord(form.delimiter)
            )
            fields = {name: Texts(block, spans[k], form=form) for k, name in enumerate(names)}
            yield Lines(fields, numbers, dropped)


def attempt(action: Callable[[], Any], message: str, faults: tuple = (OSError, EOFError, zlib.error)) -> Any:
    """Return what `action` returns. Its errors may quote the file, so they are replaced by `message` and why, not chained."""
    try:
        return action()
    except faults as fault:
        number = getattr(fault, "errno", None)
    if number:
        raise PathError(number, f"{message}: {os.strerror(number)}; check that the file is there and that you may read it")
    msg = f"{message}: it is truncated or damaged; check that it was copied whole"
    raise InputError(msg)


def _blocks(path: Path, form: CsvFormat) -> Generator[np.ndarray, None, None]:
    """Yield the bytes of a file as UTF-8, whole lines at a time, each block followed by `PADDING`.

    Of a line that is too long, only as many bytes are kept as show that it is.
    """
    rest, mark = _NOTHING, BYTE_ORDER_MARK
    with gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb") as file:
        while True:
            room = np.empty(len(rest) + BLOCK + len(PADDING), dtype=np.uint8)
            room[: len(rest)] = rest
            size = len(rest) + file.readinto(room.data[len(rest) : -len(PADDING)])
            if size == len(rest):
                break
            room[size : size + len(PADDING)] = 0
            cut = _loops.measure_lines(room[len(rest) : size])
            cut += len(rest) if cut else 0
            rest = room[cut:size][: LONGEST + len(BYTE_ORDER_MARK) + 1].copy()
            if cut:
                yield _as_utf8(_unmarked(room[: cut + len(PADDING)], mark), form)
                mark = b""
    room[len(rest) : len(rest) + len(PADDING)] = 0
    if len(last := _unmarked(room[: len(rest) + len(PADDING)], mark)) > len(PADDING):
        yield _as_utf8(last, form)


def _as_utf8(block: np.ndarray, form: CsvFormat) -> np.ndarray:
    """Return a block with its bytes converted one by one, as the encoding of the file asks for."""
    if not is_bytewise(form.encoding):
        return block
    return np.frombuffer(bytearray(to_utf8(_content(block).tobytes(), form.encoding) + PADDING), dtype=np.uint8)


def _unmarked(block: np.ndarray, mark: bytes) -> np.ndarray:
    return block[len(mark) :] if mark and block[: len(mark)].tobytes() == mark else block


def _content(block: np.ndarray) -> np.ndarray:
    """Return a block without its padding."""
    return block[: -len(PADDING)]
