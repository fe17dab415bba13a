"""Ids of units as exact integers. Two people whose ids were merged by a float or a hash would share one bound."""

from __future__ import annotations

import uuid
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np

from hushgraph.privacy.events import needed


def factorized(column) -> tuple[np.ndarray, list]:
    """(codes, values): each row's position in the list of distinct values, -1 for nulls. Equal means `==`, never a hash alone."""
    pandas = needed("pandas")
    if _is_arrow_text(column) or getattr(column.dtype, "kind", "O") in "iuf":
        codes, values = pandas.factorize(column.array)  # text as Arrow holds it: lengths are compared too, so NUL ends nothing
        return codes, values.tolist()
    position: dict = {}
    rows = column.astype(object).tolist()
    rows = [None if isinstance(x, Decimal) and x.is_snan() else x for x in rows]  # has no hash
    return np.fromiter((position.setdefault(x, len(position)) for x in rows), dtype=np.int64, count=len(rows)), list(position)


def _is_arrow_text(column) -> bool:
    arrays = needed("pandas").arrays
    return isinstance(column.array, arrays.ArrowStringArray | arrays.ArrowExtensionArray) and column.dtype.type is str


# ---- units ----------------------------------------------------------------------------------------------------------


class UnitCodes:
    """Ids of units as 0, 1, 2, ... in order of first appearance, the same number in every chunk; -1 for a missing id.

    None, NaN, NA and empty text are missing. All ids must be of one type, since 1, "1" and True may or may not be the same
    person: floats of one width, integers, text, bytes, Decimal or UUID.

    Examples
    --------
    >>> import pandas
    >>> people = UnitCodes("person")
    >>> people.add(pandas.Series(["ann", "bob", None]))[0].tolist()
    [0, 1, -1]
    >>> codes, new = people.add(pandas.Series(["eve", "bob"]))
    >>> codes.tolist(), new
    ([2, 1], ['eve'])
    """

    def __init__(self, name: str):
        self.name = name
        self.rows = 0
        self._kind: str | None = None
        self._code: dict = {}

    def add(self, column) -> tuple[np.ndarray, list]:
        """The codes of a chunk's rows, and the ids not seen before in the order of their codes."""
        kind = self._kind_of(column)
        if kind is not None and self._kind not in (None, kind):
            self._refuse(f"holds {self._kind} ids in some chunks and {kind} ids in others (from row {self.rows})")
        self._kind = kind or self._kind
        self.rows += len(column)
        if kind is None:
            return np.full(len(column), -1, dtype=np.int64), []
        codes, ids = factorized(column)
        before, known = len(self._code), self._code
        table = np.fromiter(
            (-1 if _is_missing(x) else known.setdefault(x, len(known)) for x in ids), dtype=np.int64, count=len(ids)
        )
        new = [ids[i] for i in np.flatnonzero(table >= before)]
        return np.append(table, -1)[codes], new  # the code -1 takes the last entry

    def _kind_of(self, column) -> str | None:
        """The one type of the ids in a chunk; None if all are missing."""
        kind = getattr(column.dtype, "kind", "O")
        if kind in "iu":
            return "integer"
        if kind == "f":
            return self._float_kind(column)
        if _is_arrow_text(column):
            return "text"
        rows = column.astype(object).tolist()
        kinds = {of_type: _kind_of_type(of_type) for of_type in set(map(type, rows))}
        if "float64" in kinds.values() and set(kinds.values()) - {"float64", None}:
            rows = [None if isinstance(x, float) and x != x else x for x in rows]  # NaN among text is a missing id, not a float
            kinds = {of_type: _kind_of_type(of_type) for of_type in set(map(type, rows))}
        found = sorted({kind for kind in kinds.values() if kind is not None})
        if len(found) > 1:
            places = ", ".join(f"{kind} in row {self.rows + _first(rows, kinds, kind)}" for kind in found)
            self._refuse(f"mixes ids of different types ({places})")
        if found and found[0] not in ("integer", "float64", "text", "bytes", "Decimal", "UUID"):
            row = self.rows + _first(rows, kinds, found[0])
            self._refuse(f"holds ids of type {found[0]} (row {row}); integers or text are expected")
        return found[0] if found else None

    def _float_kind(self, column) -> str | None:
        """float32 or float64; a chunk without any id, which pandas makes a float, has no kind."""
        width = 8 * getattr(column.dtype, "itemsize", 8)
        if width > 64:
            self._refuse("holds floats of more than 64 bits, which cannot be compared exactly")
        return None if bool(column.isna().all()) else f"float{width}"

    def _refuse(self, fault: str):
        msg = f"column {self.name!r} (unit=) {fault}; turn all ids that are not missing into text: astype(str)"
        raise TypeError(msg)


def _kind_of_type(of_type: type) -> str | None:
    if of_type.__name__ in _ABSENT:
        return None
    if issubclass(of_type, bool | np.bool_):
        return "bool"
    for kind, bases in _KINDS.items():
        if issubclass(of_type, bases):
            return kind
    return of_type.__name__


_ABSENT = ("NoneType", "NAType", "NaTType")
_KINDS: dict[str, Any] = {
    "integer": Integral,
    "float64": (float, np.float64),
    "text": str,
    "bytes": bytes,
    "Decimal": Decimal,
    "UUID": uuid.UUID,
}


def _first(rows: list, kinds: dict, kind: str) -> int:
    return next(i for i, x in enumerate(rows) if kinds[type(x)] == kind)


def _is_missing(value) -> bool:
    if isinstance(value, str | bytes):
        return not value
    return type(value).__name__ in _ABSENT or value != value
