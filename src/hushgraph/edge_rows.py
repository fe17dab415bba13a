"""Lines of an edge list to numbers, megabytes at a time. Knows bytes and arrays only.

A decimal number of up to 18 digits with a power of ten up to 22 is mantissa x 10^e or mantissa / 10^e, worked out to twice the
precision; where that leaves the rounding in doubt, and for longer numbers, Python is asked. So all are the nearest float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hushgraph.names import PADDING, Names

_NEWLINE, _RETURN, _SPACE, _TAB, _PLUS, _MINUS, _POINT, _ZERO, _NINE = b"\n\r \t+-.09"
_POWERS = 10.0 ** np.arange(23)  # exact
_SPLIT = 2.0**27 + 1


class RowForm(NamedTuple):
    """Where things stand in a line: which fields are the ends and the value (-1: none) of an edge."""

    n_fields: int
    source: int
    target: int
    value: int
    delimiter: int  # 0: runs of spaces and tabs
    comment: int  # 0: none; with a delimiter, only lines that begin with it
    positive: bool  # values are lengths: 0 only for self-loops
    is_text: bool = False  # ids are text, numbered in the order they are met


class Rows(NamedTuple):
    """Edges of a block; `alone` marks lines that state a node; `stop` is where the first line begins that is none of this, or -1."""

    ids: np.ndarray
    values: np.ndarray
    alone: np.ndarray
    stop: int


def parse_rows(block: bytes, form: RowForm, names: Names | None = None) -> Rows:
    """The edges of a block of whole lines; ids that are text are numbered in `names`.

    Examples
    --------
    >>> rows = parse_rows(b"# from to\\n7 3 0.5\\n3 9 2e-3\\nx\\n", RowForm(3, 0, 1, 2, 0, ord("#"), False))
    >>> rows.ids.tolist(), rows.values.tolist(), rows.stop
    ([[7, 3], [3, 9]], [0.5, 0.002], 27)
    """
    text = np.frombuffer(block, dtype=np.uint8)
    most = block.count(b"\n") + 1
    ids, alone = np.empty((most, 2), dtype=np.int64), np.zeros(most, dtype=np.bool_)
    values = np.empty(most if form.value >= 0 else 0)
    doubts, places = np.empty(len(values), dtype=np.int64), np.empty((len(values), 2), dtype=np.int64)
    n_rows, n_doubts, stop = _parse(text, form, ids, values, alone, doubts, places)
    if names is not None:
        ids = names.numbers(block + PADDING, ids[:n_rows])
    for row, (start, end) in zip(doubts[:n_doubts].tolist(), places[:n_doubts].tolist(), strict=True):
        values[row] = float(block[start:end])
    first = int(np.argmax(~_usable(values[:n_rows], ids[:n_rows], form.positive))) if n_doubts else 0
    if n_doubts and not _usable(values[first : first + 1], ids[first : first + 1], form.positive)[0]:
        stop = start_of_row(block, form, first)  # a number too large for a float, or so small that it is 0
    return Rows(ids[:n_rows], values[:n_rows], alone[:n_rows], stop)


def _usable(values: np.ndarray, ids: np.ndarray, positive: bool) -> np.ndarray:
    return np.isfinite(values) & ((values > 0) | (ids[:, 0] == ids[:, 1]) | (not positive))


def start_of_row(block: bytes, form: RowForm, row: int) -> int:
    """Where a row begins: rows are lines, but some lines are no rows."""
    start = 0
    for line in block.split(b"\n"):
        end = start + len(line) + 1
        if parse_rows(line, form._replace(value=-1, is_text=False)).ids.size:
            if row == 0:
                return start
            row -= 1
        start = end
    return 0


@njit(cache=True)
def _parse(text, form, ids, values, alone, doubts, places):
    n_rows, n_doubts, begin, size = 0, 0, 0, len(text)
    while begin < size:
        next_line, end = _line_end(text, begin, form.delimiter, form.comment)
        start = begin
        while (start < end and text[start] == _SPACE) or (start < end and form.delimiter == 0 and text[start] == _TAB):
            start += 1
        if start < end:
            good, doubtful = _parse_line(text, start, end, form, n_rows, ids, values, alone, places[n_doubts:])
            padded = form.is_text and (start > begin or (end < size and text[end] == _SPACE))
            if not good or padded:  # blanks around a text belong to it
                return n_rows, n_doubts, begin
            if doubtful:
                doubts[n_doubts] = n_rows
                n_doubts += 1
            n_rows += 1
        begin = next_line
    return n_rows, n_doubts, -1


@njit(cache=True)
def _line_end(text, begin, delimiter, comment):
    """(where the next line begins, where this one ends without comment, line break and blanks)."""
    i, size, end = begin, len(text), -1
    while i < size and text[i] != _NEWLINE:
        if end < 0 and comment and text[i] == comment and (delimiter == 0 or i == begin):
            end = i
        i += 1
    end = i if end < 0 else end
    while end > begin and (text[end - 1] in (_SPACE, _RETURN) or (delimiter == 0 and text[end - 1] == _TAB)):
        end -= 1
    return i + 1, end


@njit(cache=True)
def _field(text, i, end, delimiter):
    """(start, end) of the field that begins at i, without blanks, and where the next one begins; end + 1 after the last."""
    start = i
    while start < end and (text[start] == _SPACE or (delimiter == 0 and text[start] == _TAB)):
        start += 1
    stop = start
    while stop < end and (text[stop] != delimiter if delimiter else text[stop] not in (_SPACE, _TAB)):
        stop += 1
    following = stop + 1
    if not delimiter:
        while following < end and text[following] in (_SPACE, _TAB):
            following += 1
    while stop > start and text[stop - 1] == _SPACE:
        stop -= 1
    return start, stop, following


@njit(cache=True)
def _parse_line(text, i, end, form, row, ids, values, alone, places):
    """(whether it is a row, whether its value is in doubt)."""
    value, state, start, stop = 0.0, 1, 0, 0
    for field in range(form.n_fields):
        if i > end:
            return False, False
        begin = i
        a, b, i = _field(text, i, end, form.delimiter)
        if field == form.source or field == form.target:
            if field == form.target and a == b and form.delimiter:
                alone[row] = True
                continue
            side = 0 if field == form.source else 1
            if form.is_text:
                good = a == begin and b == i - 1 and b > a
                ids[row, side] = a << 32 | b  # where it lies; all are numbered later, at once
            else:
                good, ids[row, side] = integer(text, a, b, form.delimiter == 0)
            if not good:
                return False, False
        elif field == form.value:
            start, stop = a, b
            value, state = decimal(text, a, b)
    if i <= end:
        return False, False
    if alone[row]:
        ids[row, 1] = ids[row, 0]
        if form.value >= 0:
            values[row] = 0.0
        return True, False
    if form.value < 0:
        return True, False
    values[row] = value
    if state == 0 or (
        state == 1 and value == 0 and form.positive and form.is_text
    ):  # whether it is a self-loop is known when texts are numbered
        places[0, 0], places[0, 1] = start, stop
        return True, True
    return state == 1 and (value > 0 or (value == 0 and (not form.positive or ids[row, 0] == ids[row, 1]))), False


def integers_of(names: Names) -> np.ndarray | None:
    """Texts as integers, None if they are not all integers as one would write them: no leading zeros, which codes have."""
    good, numbers = _integers(*names.places())
    return numbers if good else None


@njit(cache=True)
def _integers(content, starts, lengths):
    numbers = np.empty(len(starts), dtype=np.int64)
    for k in range(len(starts)):
        good, numbers[k] = integer(content, starts[k], starts[k] + lengths[k], False)
        if not good:
            return False, numbers
    return True, numbers


@njit(cache=True)
def integer(text, i, end, loose):
    """(whether it is one, text[i:end] as an integer of up to 63 bits); loose: leading zeros and + are fine."""
    negative = i < end and text[i] == _MINUS
    if negative or (loose and i < end and text[i] == _PLUS):
        i += 1
    if i == end or end - i > 19 or (not loose and text[i] == _ZERO and (end - i > 1 or negative)):
        return False, 0
    value = 0
    for k in range(i, end):
        if text[k] < _ZERO or text[k] > _NINE:
            return False, 0
        value = 10 * value + np.int64(text[k] - _ZERO)
    return value >= 0, -value if negative else value  # 19 digits may be too many


@njit(cache=True)
def decimal(text, i, end):
    """(number, 1), (anything, 0) where Python is to be asked, (anything, -1) for what is no number of at least 0."""
    if i < end and text[i] == _PLUS:
        i += 1
    mantissa, digits, seen, fraction, power, point = 0, 0, 0, 0, 0, False
    while i < end and (text[i] == _POINT or _ZERO <= text[i] <= _NINE):
        if text[i] == _POINT:
            if point:
                return 0.0, -1
            point = True
        else:
            seen += 1
            fraction += point
            if digits or text[i] != _ZERO:
                digits += 1
            if digits <= 18:
                mantissa = 10 * mantissa + np.int64(text[i] - _ZERO)
        i += 1
    if seen == 0:
        return 0.0, -1
    if i < end:
        if text[i] not in (69, 101):  # E, e
            return 0.0, -1
        i += 1
        good, power = integer(text, i, end, True)
        if not good:
            return 0.0, -1
    return _scaled(mantissa, power - fraction) if digits <= 18 else (0.0, 0)


@njit(cache=True)
def _scaled(mantissa, power):
    """(mantissa x 10^power, 1) if that is surely the nearest float, (0, 0) if not."""
    if mantissa == 0:
        return 0.0, 1
    if power > 22 or power < -22:
        return 0.0, 0
    high = float(mantissa)
    low = float(mantissa - np.int64(high))
    scale = _POWERS[abs(power)]
    if power >= 0:
        first = high * scale
        second = _product_error(high, scale, first) + low * scale
    else:
        first = high / scale
        product = first * scale
        second = ((high - product) - _product_error(first, scale, product) + low) / scale
    doubt = first * 2.0**-98
    value = first + second
    sure = first + (second + doubt) == value and first + (second - doubt) == value
    return (value, 1) if sure else (0.0, 0)


@njit(cache=True)
def _product_error(a, b, product):
    """a b - product, exactly (Dekker)."""
    t = _SPLIT * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLIT * b
    b_high = t - (t - b)
    b_low = b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
