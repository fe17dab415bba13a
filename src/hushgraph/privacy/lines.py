"""Text files of events, read line by line: bytes in, the exact bytes of the wanted fields out. Knows no graph and no unit.

Two properties carry the proof of the sensitivity (see `counting.py`): what a line means is a function of the bytes of that line
(and of the header, which is public), and different bytes stay different. Both hold by construction: nothing is kept from one line
to the next, and no byte is decoded, replaced or dropped. The rules:

- A line ends at a line feed; one carriage return before it does not belong to it. The first line is the header.
- A line of more than `LONGEST` bytes is dropped, and never held in memory.
- Fields are separated by commas. A field that begins with a quotation mark runs to its closing one (two in a row mean one); a line
  where the closing one is missing, or not followed by a comma or the end, is dropped. Other quotation marks are ordinary bytes.
- A line with more fields than the header is dropped, unless the extra ones are empty. Fields that are missing are empty.
- A number is `[+-]?(digits[.[digits]] | .digits)([eE][+-]?up to 18 digits)?`, read as the nearest float64.
- A time is `YYYY-MM-DD`, or that with `T` or one blank and `HH[:MM[:SS[.up to 9 digits]]]`, which may end in `Z` or
  `+-HH[[:]MM[[:]SS]]`; it must exist in the calendar. Blanks and tabs around numbers and times do not matter.

This file holds all the compiled loops that read private text.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numba import njit

from hushgraph._errors import InputError, PathError
from hushgraph.edge_rows import decimal
from hushgraph.names import PADDING
from hushgraph.text_files import BYTE_ORDER_MARK

LONGEST = 1 << 16  # bytes of a line
BLOCK = 1 << 23  # bytes read at a time
NO_TIME = np.iinfo(np.int64).min
BEFORE, AFTER = NO_TIME + 1, np.iinfo(np.int64).max  # times before 1678 and after 2261: nanoseconds do not fit into 64 bits

_NEWLINE, _RETURN, _SPACE, _TAB, _QUOTE, _COMMA, _PLUS, _MINUS, _POINT, _COLON, _ZERO, _NINE, _T, _Z = b'\n\r \t",+-.:09TZ'
_E, _SMALL_E = b"Ee"
_DAYS_BEFORE_MONTH = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365])
_DAMAGED = "the CSV file cannot be read after line {line}"
_NO_HEADER = (
    "the CSV file must begin with a line of column names, separated by commas, of at most 65,536 bytes; its first line is empty, "
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
        The bytes in which the texts lie, followed by `names.PADDING`.
    spans : (rows,) int64 array
        Where each text lies: start << 32 | end.
    kind : {"text", "bytes", "UUID"}
        What the bytes stand for; ids of different kinds are never the same.

    Examples
    --------
    >>> texts = Texts.of([b"1.50", b" -2e3", b"1_000", b"", b"2026-03-02T06:30Z"])
    >>> texts.numbers()
    array([ 1.5e+00, -2.0e+03,      nan,      nan,      nan])
    >>> ticks, aware = texts.times()
    >>> (ticks != NO_TIME).tolist(), bool(aware[4])
    ([False, False, False, False, True], True)
    """

    buffer: np.ndarray
    spans: np.ndarray
    kind: str = "text"

    def __len__(self):
        return len(self.spans)

    @classmethod
    def of(cls, values: list[bytes], kind: str = "text") -> Texts:
        """A column of these byte strings; those of more than `LONGEST` bytes are missing."""
        values = [value if len(value) <= LONGEST else b"" for value in values]
        ends = np.cumsum(np.fromiter(map(len, values), dtype=np.int64, count=len(values)))
        starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)[: len(ends)]
        return cls(np.frombuffer(b"".join([*values, PADDING]), dtype=np.uint8), starts << 32 | ends, kind)

    def numbers(self) -> np.ndarray:
        """Each text as the nearest float64; NaN where it is not a number."""
        values, doubtful = np.empty(len(self)), np.empty(len(self), dtype=np.int64)
        n_doubtful = _read_numbers(self.buffer, self.spans, values, doubtful)
        for row in doubtful[:n_doubtful].tolist():
            start, end = int(self.spans[row]) >> 32, int(self.spans[row]) & 0xFFFFFFFF
            values[row] = float(self.buffer[start:end].tobytes())  # the grammar was checked; only the rounding was in doubt
        return values

    def times(self) -> tuple[np.ndarray, np.ndarray]:
        """(nanoseconds since 1970, in UTC where the text has an offset, or `NO_TIME`; whether it has an offset)."""
        ticks, aware = np.empty(len(self), dtype=np.int64), np.empty(len(self), dtype=np.bool_)
        _read_times(self.buffer, self.spans, ticks, aware)
        return ticks, aware


# ---- files ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Lines:
    """Some lines of a file: the wanted fields, the number of each line (the header is line 1), and lines that were dropped."""

    fields: dict[str, Texts]
    numbers: np.ndarray
    dropped: np.ndarray


def read_header(path: Path) -> list[str]:
    """The column names of a .csv or .csv.gz file; bytes that are not UTF-8 become lone surrogates, so names stay different."""
    blocks = _blocks(path)
    head = attempt(lambda: next(blocks, b""), _DAMAGED.format(line=0)).partition(b"\n")[0]
    blocks.close()
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(_UTF_16)
    most = head.count(b",") + 1
    text, spans = _writable(head), np.zeros(most, dtype=np.int64)
    end = len(head) - head.endswith(b"\r")
    n_fields = _split_line(text, 0, end, np.arange(most), spans) if end > 0 and len(head) <= LONGEST else -1
    if n_fields < 0:
        raise InputError(_NO_HEADER)
    fields = [text[place >> 32 : place & 0xFFFFFFFF].tobytes() for place in spans[:n_fields].tolist()]
    return [field.decode("utf-8", "surrogateescape") for field in fields]


def read_lines(path: Path, columns: list[str], names: list[str], chunk_rows: int) -> Iterator[Lines]:
    """The lines after the header, at most `chunk_rows` rows or `BLOCK` bytes at a time."""
    slots = np.full(len(columns), -1, dtype=np.int64)
    slots[[columns.index(name) for name in names]] = np.arange(len(names))
    blocks, line = _blocks(path), 0
    while block := attempt(lambda: next(blocks, b""), _DAMAGED.format(line=line)):
        text, begin = _writable(block), 0
        if line == 0:
            begin, line = len(block.partition(b"\n")[0]) + 1, 1
        most = min(chunk_rows, block.count(b"\n") + 1)
        while begin < len(block):
            spans, numbers, dropped = np.empty((most, len(names)), np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
            begin, line, n_rows, n_dropped = _split_lines(text, begin, len(block), line, slots, spans, numbers, dropped)
            fields = {name: Texts(text, np.ascontiguousarray(spans[:n_rows, k])) for k, name in enumerate(names)}
            yield Lines(fields, numbers[:n_rows], dropped[:n_dropped])


def attempt(action: Callable, message: str, faults: tuple = (OSError, EOFError, zlib.error)):
    """What `action` returns. Its errors may quote the file: they are replaced by `message` and why, not chained."""
    try:
        return action()
    except faults as fault:
        number = getattr(fault, "errno", None)
    if number:
        raise PathError(number, f"{message}: {os.strerror(number)}; check that the file is there and that you may read it")
    msg = f"{message}: it is truncated or damaged; check that it was copied whole"
    raise InputError(msg)


def _blocks(path: Path) -> Generator[bytes, None, None]:
    """The bytes of a file, whole lines at a time; of a line that is too long, what is needed to see that it is."""
    held, mark = b"", BYTE_ORDER_MARK
    with gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb") as file:
        while piece := file.read(BLOCK):
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield (held + piece[:cut]).removeprefix(mark)
                held, mark = b"", b""
            held = (held + piece[cut:])[: LONGEST + len(BYTE_ORDER_MARK) + 1]
    if held := held.removeprefix(mark):
        yield held


def _writable(block: bytes) -> np.ndarray:
    return np.frombuffer(bytearray(block + PADDING), dtype=np.uint8)


# ---- lines to fields ------------------------------------------------------------------------------------------------


@njit(cache=True)
def _split_lines(text, begin, end, line, slots, spans, numbers, dropped):
    """(where the next line begins, lines so far, rows, lines dropped), as soon as the arrays are full or the text is at its end."""
    n_rows, n_dropped = 0, 0
    while begin < end and n_rows < len(numbers) and n_dropped < len(dropped):
        line += 1
        stop = begin
        while stop < end and text[stop] != _NEWLINE:
            stop += 1
        following = stop + 1
        too_long = stop - begin > LONGEST
        if stop > begin and text[stop - 1] == _RETURN:
            stop -= 1
        if not too_long and stop > begin and _split_line(text, begin, stop, slots, spans[n_rows]) >= 0:
            numbers[n_rows] = line
            n_rows += 1
        elif stop > begin:
            dropped[n_dropped] = line
            n_dropped += 1
        begin = following
    return begin, line, n_rows, n_dropped


@njit(cache=True)
def _split_line(text, i, stop, slots, spans):
    """The number of fields in text[i:stop], -1 if they cannot be told; `spans` takes those that have a slot.

    Where two quotation marks mean one, the field is rewritten in place.
    """
    spans[:] = 0
    field = 0
    while True:
        if i < stop and text[i] == _QUOTE:
            i += 1
            start = end = i
            while i < stop and (text[i] != _QUOTE or (i + 1 < stop and text[i + 1] == _QUOTE)):
                i += text[i] == _QUOTE
                text[end] = text[i]
                end += 1
                i += 1
            i += 1
            if i > stop or (i < stop and text[i] != _COMMA):
                return -1
        else:
            start = i
            while i < stop and text[i] != _COMMA:
                i += 1
            end = i
        if field < len(slots):
            if slots[field] >= 0:
                spans[slots[field]] = start << 32 | end
        elif end > start:
            return -1
        field += 1
        if i >= stop:
            return field
        i += 1


# ---- fields to numbers and times ------------------------------------------------------------------------------------


@njit(cache=True)
def _inside(text, place):
    """(start, end) of a text without the blanks around it."""
    i, end = place >> 32, place & 0xFFFFFFFF
    while i < end and (text[i] == _SPACE or text[i] == _TAB):
        i += 1
    while i < end and (text[end - 1] == _SPACE or text[end - 1] == _TAB):
        end -= 1
    return i, end


@njit(cache=True)
def _read_numbers(text, spans, values, doubtful):
    """How many numbers Python must round; `doubtful` takes their rows, `values` all others."""
    n_doubtful = 0
    for row in range(len(spans)):
        values[row] = np.nan
        i, end = _inside(text, spans[row])
        negative = i < end and text[i] == _MINUS
        if negative or (i < end and text[i] == _PLUS):
            i += 1
        if i == end or not (text[i] == _POINT or _ZERO <= text[i] <= _NINE) or _long_exponent(text, i, end):
            continue
        value, state = decimal(text, i, end)
        if state == 1:
            values[row] = -value if negative else value
        elif state == 0:
            doubtful[n_doubtful] = row
            n_doubtful += 1
    return n_doubtful


@njit(cache=True)
def _long_exponent(text, i, end):
    while i < end and text[i] != _E and text[i] != _SMALL_E:
        i += 1
    i += 1
    if i < end and (text[i] == _PLUS or text[i] == _MINUS):
        i += 1
    return end - i > 18


@njit(cache=True)
def _read_times(text, spans, ticks, aware):
    for row in range(len(spans)):
        i, end = _inside(text, spans[row])
        ticks[row], aware[row] = _time(text, i, end)


@njit(cache=True)
def _two(text, i, end, most):
    """Two digits as a number up to `most`; -1 if that is not what stands there."""
    if i + 2 > end or not (_ZERO <= text[i] <= _NINE and _ZERO <= text[i + 1] <= _NINE):
        return -1
    value = 10 * (np.int64(text[i]) - _ZERO) + np.int64(text[i + 1]) - _ZERO
    return value if value <= most else -1


@njit(cache=True)
def _time(text, i, end):
    """(nanoseconds since 1970, whether there is an offset) of text[i:end], or (NO_TIME, False)."""
    century, year, month, day = (
        _two(text, i, end, 99),
        _two(text, i + 2, end, 99),
        _two(text, i + 5, end, 12),
        _two(text, i + 8, end, 31),
    )
    if i + 10 > end or min(century, year) < 0 or min(month, day) < 1 or text[i + 4] != _MINUS or text[i + 7] != _MINUS:
        return NO_TIME, False
    days = _days(100 * century + year, month, day)
    if days == NO_TIME:
        return NO_TIME, False
    i += 10
    if i == end:
        return _ticks(86_400 * days, 0), False
    if text[i] != _T and text[i] != _SPACE:
        return NO_TIME, False
    good, i, seconds, nanoseconds = _clock(text, i + 1, end)
    if not good:
        return NO_TIME, False
    if i == end:
        return _ticks(86_400 * days + seconds, nanoseconds), False
    good, offset = _offset(text, i, end)
    return (_ticks(86_400 * days + seconds - offset, nanoseconds), True) if good else (NO_TIME, False)


@njit(cache=True)
def _days(year, month, day):
    """Days since 1970, or NO_TIME for a day that does not exist; years from 1."""
    leap = month > 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    february = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if year < 1 or day > _DAYS_BEFORE_MONTH[month] - _DAYS_BEFORE_MONTH[month - 1] + february:
        return NO_TIME
    past = year - 1
    return 365 * past + past // 4 - past // 100 + past // 400 + _DAYS_BEFORE_MONTH[month - 1] + leap + day - 719_163


@njit(cache=True)
def _clock(text, i, end):
    """(whether HH[:MM[:SS[.fraction]]] stands at i, where it ends, seconds, nanoseconds)."""
    seconds, nanoseconds = _two(text, i, end, 23) * 3600, 0
    good = seconds >= 0
    i += 2
    for unit in (60, 1):
        if not good or i >= end or text[i] != _COLON:
            return good, i, seconds, nanoseconds
        value = _two(text, i + 1, end, 59)
        good = value >= 0
        seconds += unit * value
        i += 3
    if good and i < end and text[i] == _POINT:
        i += 1
        scale = 10**9
        while i < end and _ZERO <= text[i] <= _NINE and scale > 1:
            scale //= 10
            nanoseconds += scale * (np.int64(text[i]) - _ZERO)
            i += 1
        good = scale < 10**9
    return good, i, seconds, nanoseconds


@njit(cache=True)
def _offset(text, i, end):
    """(whether Z or +-HH[[:]MM[[:]SS]] stands at i and ends the text, the offset in seconds)."""
    if text[i] == _Z:
        return i + 1 == end, 0
    if text[i] != _PLUS and text[i] != _MINUS:
        return False, 0
    sign = 1 if text[i] == _PLUS else -1
    seconds = _two(text, i + 1, end, 23) * 3600
    good = seconds >= 0
    i += 3
    for unit in (60, 1):
        if good and i < end:
            i += text[i] == _COLON
            value = _two(text, i, end, 59)
            good = value >= 0
            seconds += unit * value
            i += 2
    return good and i == end, sign * seconds


@njit(cache=True)
def _ticks(seconds, nanoseconds):
    if seconds < -9_223_372_036:
        return BEFORE
    return seconds * 10**9 + nanoseconds if seconds < 9_223_372_036 else AFTER
