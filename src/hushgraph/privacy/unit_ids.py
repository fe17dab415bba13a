"""Ids of units as codes. Two people whose ids were merged by a float, a decoder or a hash would share one bound.

An id is one of four kinds, and ids of different kinds are never the same: text (compared by its bytes), bytes, UUID, and numbers that
are not whole (compared by exact value). A whole number is the text of its decimal form, so that 7, 7.0, Decimal("7.00") and "7" are one
id whatever the type of the column, and "007" is another: different whole numbers have different texts.
"""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import numpy as np

from hushgraph._errors import InputTypeError, Sentence
from hushgraph.core import PADDING, Names
from hushgraph.privacy.text_lines import LONGEST, Texts
from hushgraph.privacy.typed_columns import Column, Objects, Reals, encoded, plain_texts, type_of

_EXACT = {2: 2.0**11, 4: 2.0**24, 8: 2.0**53}  # floats of so many bytes hold all whole numbers below this


class UnitCodes:
    """Ids of units as 0, 1, 2, ..., the same code in every chunk; -1 for a missing id.

    Missing are None, NaN, NA, NaT and empty text; and by rule what cannot be told apart for sure: floats of 2^53 and more in size
    (2^24 in float32, 2^11 in float16), text of more than 65,536 bytes, bools, and objects of any other type.

    Examples
    --------
    >>> from hushgraph.privacy.typed_columns import as_column
    >>> people = UnitCodes("person")
    >>> people.add(as_column(["ann", "bob", None])).tolist()
    [0, 1, -1]
    >>> people.add(as_column(["eve", "bob", 7, 7.0, "7", "007"])).tolist()
    [2, 1, 3, 3, 3, 4]
    >>> len(people)
    5
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.tables: dict[str, Names] = {}
        self.codes: dict[str, np.ndarray] = {}  # by number in the table of its kind
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, column: Column) -> np.ndarray:
        """Return the codes of a chunk's rows."""
        texts = plain_texts(column) if isinstance(column, Objects) else column
        if isinstance(texts, Texts):
            return self._coded(texts)
        codes = np.full(len(column), -1, dtype=np.int64)
        for rows, texts in self._parts(column):
            codes[rows] = self._coded(texts)
        return codes

    def _parts(self, column: Column) -> list[tuple[np.ndarray, Texts]]:
        """Return the rows with an id, and their ids as bytes, kind by kind."""
        if isinstance(column, Objects):
            return _keyed(np.arange(len(column)), column.values)
        if not isinstance(column, Reals) or column.values.dtype.itemsize not in (1, *_EXACT):
            msg = "column {!r} ({unit=}) must hold ids: text or whole numbers; it holds {}; use astype(str)"
            raise InputTypeError(Sentence(msg, self.name, type_of(column)))
        values, whole = column.values, column.known
        if values.dtype.kind == "f":
            usable = whole & (np.abs(values) < _EXACT[values.dtype.itemsize])
            whole = usable & (values == np.trunc(values))
            other = usable & ~whole
        else:
            other = np.zeros(len(values), dtype=bool)
        integers = values[whole]
        rows = np.flatnonzero(other)
        return [
            (np.flatnonzero(whole), _decimal_texts(integers.astype(np.int64) if values.dtype.kind == "f" else integers)),
            *_keyed(rows, values[rows].tolist()),
        ]

    def _coded(self, texts: Texts) -> np.ndarray:
        """Return the codes of ids of one kind; new ids get the next codes."""
        names = self.tables.setdefault(texts.kind, Names())
        codes = self.codes.get(texts.kind, np.empty(0, dtype=np.int64))
        present = (texts.spans >> 32) != (texts.spans & 0xFFFFFFFF)
        before, result = len(names), np.full(len(texts), -1, dtype=np.int64)
        numbers = names.numbers(texts.buffer, texts.spans[present])
        if len(names) > len(codes):
            codes = np.concatenate([codes, np.empty(max(len(names), 2 * len(codes)) - len(codes), dtype=np.int64)])
        codes[before : len(names)] = np.arange(self._count, self._count + len(names) - before)
        self.codes[texts.kind] = codes
        self._count += len(names) - before
        result[present] = codes[numbers]
        return result


def _decimal_texts(integers: np.ndarray) -> Texts:
    """Return the decimal form of integers of 64 bits at most."""
    digits = integers.astype("S20")
    starts = 20 * np.arange(len(digits), dtype=np.int64)
    buffer = np.frombuffer(digits.tobytes() + PADDING, dtype=np.uint8)
    return Texts(buffer, starts << 32 | (starts + np.char.str_len(digits)))


def _keyed(rows: np.ndarray, values: list) -> list[tuple[np.ndarray, Texts]]:
    """Return the rows with an id, and their ids as bytes, kind by kind."""
    places: dict[str, list[int]] = {}
    ids: dict[str, list[bytes]] = {}
    for row, value in zip(rows.tolist(), values, strict=True):
        kind, key = _key(value)
        if key:
            places.setdefault(kind, []).append(row)
            ids.setdefault(kind, []).append(key)
    return [(np.array(places[kind], dtype=np.int64), Texts.of(ids[kind], kind)) for kind in ids]


def _key(value: Any) -> tuple[str, bytes]:
    """Return (kind, bytes) of an id, which differ for different ids; no bytes if it is missing."""
    try:
        if isinstance(value, str):
            return "text", encoded(value)
        if isinstance(value, bytes):
            return "bytes", bytes(value)
        if isinstance(value, uuid.UUID):
            return "UUID", value.bytes
        if isinstance(value, int | np.integer) and not isinstance(value, bool):
            return _exact(Decimal(int(value)))
        if isinstance(value, float | np.float32 | np.float16):
            width = value.itemsize if isinstance(value, np.floating) else 8
            return _exact(Decimal(float(value))) if abs(float(value)) < _EXACT[width] else ("", b"")
        if isinstance(value, Decimal):
            return _exact(value)
    except Exception:  # one row refuses nothing: what cannot be read is missing
        pass
    return "", b""


def _exact(value: Decimal) -> tuple[str, bytes]:
    """Return the key of a number: its decimal form if it is whole, or else sign, digits and power of ten, one form for each value."""
    if not value.is_finite():
        return "", b""
    negative, digits, power = value.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    significant = text.rstrip("0")
    if not significant:
        return "text", b"0"
    assert isinstance(power, int)
    power += len(text) - len(significant)
    sign = "-" if negative else ""
    if 0 <= power < LONGEST - len(significant):  # a longer text would be no id
        return "text", f"{sign}{significant}{'0' * power}".encode()
    return "other number", f"{sign}{significant}e{power}".encode()
