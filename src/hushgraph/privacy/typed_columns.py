"""Columns of tables in five typed forms, converted element by element. Knows no graph and no unit.

One row's value can neither refuse a table nor change what another row means: whether a column is refused depends on its declared
type alone, and an element that cannot be read is a missing value. Text is read by the rules of `text_lines.py`.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from hushgraph._errors import InputTypeError
from hushgraph._extras import extra, optional
from hushgraph.core import PADDING
from hushgraph.privacy.text_lines import AFTER, BEFORE, LONGEST, NO_TICKS, Texts

_NANOSECONDS = {
    "W": 604_800 * 10**9,
    "D": 86_400 * 10**9,
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
_PER_NANOSECOND = {"ps": 10**3, "fs": 10**6, "as": 10**9}


@dataclass(frozen=True, eq=False)
class Reals:
    """Integers or floats of one NumPy dtype, and which rows have one (floats that are NaN have none either)."""

    values: np.ndarray
    known: np.ndarray

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class Moments:
    """Times of one declared type: nanoseconds since 1970 or NO_TICKS, in UTC if the type has a time zone."""

    ticks: np.ndarray
    aware: bool

    def __len__(self) -> int:
        return len(self.ticks)


@dataclass(frozen=True, eq=False)
class Objects:
    """Python objects of any type."""

    values: list

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class Unusable:
    """A type that holds neither ids nor places nor times: bool, complex numbers, durations, lists, ..."""

    dtype: str
    rows: int

    def __len__(self) -> int:
        return self.rows


Column = Texts | Reals | Moments | Objects | Unusable


def type_of(column: Column) -> str:
    """Return what a column holds, for an error: its declared type."""
    if isinstance(column, Unusable):
        return column.dtype
    if isinstance(column, Reals):
        return f"numbers ({column.values.dtype})"
    return {Texts: "text", Moments: "times", Objects: "objects"}[type(column)]


def value_at(column: Column, row: int) -> Any:
    """Return the value of a row as a Python object; None if there is none."""
    if isinstance(column, Texts):
        start, end = int(column.spans[row]) >> 32, int(column.spans[row]) & 0xFFFFFFFF
        return column.buffer[start:end].tobytes()
    if isinstance(column, Reals):
        return column.values[row].item() if column.known[row] else None
    if isinstance(column, Moments):
        return None if column.ticks[row] == NO_TICKS else np.datetime64(int(column.ticks[row]), "ns")
    return column.values[row] if isinstance(column, Objects) else None


# ---- what callers pass ----------------------------------------------------------------------------------------------


def check_column(values: Any, name: str) -> Any:
    """Return `values` if they are a column, in a form that has a length and can be sliced; otherwise an error."""
    if _is_polars(values):
        values = _arrow_of(values)
    if np.ma.isMaskedArray(values):
        msg = f"column {name!r} of the events is a masked array, and the mask would be lost; fill it first: filled(...)"
        raise InputTypeError(msg)
    if isinstance(values, str | bytes | Mapping) or getattr(values, "ndim", 1) != 1 or not isinstance(values, Iterable):
        msg = f"column {name!r} of the events must be one-dimensional, one value per event; got {type(values).__name__}"
        raise InputTypeError(msg)
    return values if hasattr(values, "dtype") or _is_arrow(values) else list(values)


def as_column(values: Any) -> Column:
    """Return the typed form of a list, a NumPy array, a pandas Series, Index or array, or an Arrow array.

    Examples
    --------
    >>> as_column(np.array(["2026-03-02", "NaT"], dtype="datetime64[D]")).ticks.tolist()
    [1772409600000000000, -9223372036854775808]
    >>> as_column(["ann", 7, None]).values
    ['ann', 7, None]
    """
    if _is_arrow(values):
        return from_arrow(values)
    if isinstance(values, list):
        return Objects(values)
    if isinstance(values.dtype, np.dtype):
        return _from_numpy(np.asarray(values))
    return _from_pandas(values)


def _is_polars(values: Any) -> bool:
    return type(values).__module__.startswith("polars.") and hasattr(values, "to_arrow")


def _arrow_of(series: Any) -> Any:
    """Return a polars Series as an Arrow array of its declared type; a column of Python objects as a list."""
    polars: Any = optional("polars")
    return series.to_list() if series.dtype == polars.Object else series.to_arrow(compat_level=polars.CompatLevel.oldest())


def _is_arrow(values: Any) -> bool:
    return type(values).__module__.startswith("pyarrow.")


def _from_numpy(values: np.ndarray) -> Column:
    kind = values.dtype.kind
    if kind in "iuf":
        return Reals(values, np.ones(len(values), dtype=bool) if kind in "iu" else ~np.isnan(values))
    if kind == "M":
        unit, count = np.datetime_data(values.dtype)
        if unit in ("Y", "M"):
            known = ~np.isnat(values)
            near = np.clip(values.astype(np.int64), -200_000, 200_000).astype(values.dtype).astype("datetime64[D]")
            return Moments(_scaled(np.where(known, near.astype(np.int64), NO_TICKS), "D"), aware=False)
        if count == 1 and unit in _NANOSECONDS | _PER_NANOSECOND:
            return Moments(_scaled(values.astype(np.int64), unit), aware=False)
    return Objects(values.tolist()) if kind in "OUST" else Unusable(str(values.dtype), len(values))


def _scaled(ticks: np.ndarray, unit: str) -> np.ndarray:
    """Return ticks of a unit as nanoseconds; what does not fit is BEFORE or AFTER all windows."""
    if unit in _PER_NANOSECOND:
        return np.where(ticks == NO_TICKS, NO_TICKS, ticks // _PER_NANOSECOND[unit])
    factor = _NANOSECONDS[unit]
    most = AFTER // factor
    exact = np.clip(ticks, -most, most) * factor
    return np.select([ticks == NO_TICKS, ticks < -most, ticks > most], [NO_TICKS, BEFORE, AFTER], exact)


def _from_pandas(values: Any) -> Column:
    """Return the typed form of a Series, Index or array of a pandas type."""
    dtype, array = values.dtype, getattr(values, "array", values)
    if hasattr(dtype, "categories"):
        known = array.codes >= 0
        used, codes = np.unique(array.codes[known], return_inverse=True)
        return _spread(as_column(dtype.categories[used]), codes, known)
    if hasattr(dtype, "tz"):
        ticks = array.tz_convert("UTC").tz_localize(None)
        return Moments(_scaled(np.asarray(ticks).astype(np.int64), dtype.unit), aware=True)
    if getattr(dtype, "storage", None) == "python":
        return Objects(list(values))
    if hasattr(dtype, "subtype") and hasattr(dtype, "fill_value"):  # sparse
        return _from_numpy(np.asarray(values))
    if hasattr(dtype, "freq") or hasattr(dtype, "closed") or not hasattr(array, "__arrow_array__"):  # periods, intervals
        return Unusable(str(dtype), len(values))
    return from_arrow(array.__arrow_array__())


def _spread(column: Column, codes: np.ndarray, known: np.ndarray) -> Column:
    """Return a column with elements of another, given by number, in the known rows, and missing values in the others."""

    def spread(values: np.ndarray, missing: Any) -> np.ndarray:
        rows = np.full(len(known), missing, dtype=values.dtype)
        rows[known] = values[codes]
        return rows

    if isinstance(column, Texts):
        return Texts(column.buffer, spread(column.spans, 0), column.kind)
    if isinstance(column, Reals):
        return Reals(spread(column.values, 0), spread(column.known, False))
    if isinstance(column, Moments):
        return Moments(spread(column.ticks, NO_TICKS), column.aware)
    if isinstance(column, Unusable):
        return Unusable(column.dtype, len(known))
    numbers_in_order = iter(codes.tolist())
    return Objects([column.values[next(numbers_in_order)] if has_one else None for has_one in known.tolist()])


# ---- Arrow ----------------------------------------------------------------------------------------------------------


def from_arrow(array: Any) -> Column:
    """Return the typed form of an Arrow array, taken from its buffers: no value is decoded, validated or cast."""
    pyarrow = extra("pyarrow", name="events", purpose="counting events")
    types, kind = pyarrow.types, array.type
    if isinstance(array, pyarrow.ChunkedArray) and types.is_dictionary(kind):
        return from_arrow(pyarrow.chunked_array([part.dictionary_decode() for part in array.chunks], kind.value_type))
    is_text = types.is_string(kind) or types.is_large_string(kind)
    if types.is_string(kind) or types.is_binary(kind):
        array = array.cast(pyarrow.large_binary())  # offsets of 64 bits, so that joining parts has room; the bytes stay
    if isinstance(array, pyarrow.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else pyarrow.concat_arrays(array.chunks or [pyarrow.array([], kind)])
    return _from_contiguous_arrow(array, kind, pyarrow, is_text=is_text)


def _from_contiguous_arrow(array: Any, kind: Any, pyarrow: Any, *, is_text: bool) -> Column:
    """Return the typed form of an array in one piece, whose declared type is `kind`."""
    types = pyarrow.types
    if isinstance(array, pyarrow.ExtensionArray):
        return _from_extension(array)
    if types.is_dictionary(kind):
        return from_arrow(array.dictionary_decode())
    if types.is_null(kind):
        return Texts.of([b""] * len(array))
    if is_text or types.is_binary(kind) or types.is_large_binary(kind):
        return _texts_from_arrow(array, "text" if is_text else "bytes")
    if types.is_fixed_size_binary(kind):
        return Texts.of([b"" if value is None else value for value in array.to_pylist()], "bytes")
    if types.is_integer(kind) or types.is_floating(kind):
        values, known = _buffer(array, np.dtype(kind.to_pandas_dtype())), _known(array)
        return Reals(values, known & ~np.isnan(values) if types.is_floating(kind) else known)
    if types.is_date(kind) or types.is_timestamp(kind):
        unit = kind.unit if types.is_timestamp(kind) else "D" if types.is_date32(kind) else "ms"
        ticks = _buffer(array, np.dtype(np.int32 if types.is_date32(kind) else np.int64)).astype(np.int64)
        return Moments(_scaled(np.where(_known(array), ticks, NO_TICKS), unit), getattr(kind, "tz", None) is not None)
    return Objects(array.to_pylist()) if types.is_decimal(kind) else Unusable(str(kind), len(array))


def _from_extension(array: Any) -> Column:
    """Return an array of UUIDs as bytes; other extension types are unusable."""
    if getattr(array.type, "extension_name", "") != "arrow.uuid":
        return Unusable(str(array.type), len(array))
    texts = from_arrow(array.storage)
    assert isinstance(texts, Texts)
    return Texts(texts.buffer, texts.spans, "UUID")


def _known(array: Any) -> np.ndarray:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=bool)


def _buffer(array: Any, dtype: np.dtype) -> np.ndarray:
    content = array.buffers()[1]
    if content is None:
        return np.zeros(len(array), dtype=dtype)
    return np.frombuffer(content, dtype=dtype, count=array.offset + len(array))[array.offset :]


def _texts_from_arrow(array: Any, kind: str) -> Texts:
    """Return the bytes of an array of large strings or large binaries."""
    if not len(array):
        return Texts.of([], kind)
    _, places, content = array.buffers()
    offsets = np.frombuffer(places, dtype=np.int64, count=array.offset + len(array) + 1)[array.offset :]
    content = b"" if content is None else memoryview(content)[offsets[0] : offsets[-1]]
    starts, ends = offsets[:-1] - offsets[0], offsets[1:] - offsets[0]
    usable = _known(array) & (ends - starts <= LONGEST)
    if len(content) >= 1 << 31:  # more than a span can point to; only texts that are too long make that many bytes
        rows = zip(starts.tolist(), ends.tolist(), usable.tolist(), strict=True)
        return Texts.of([bytes(content[start:end]) if good else b"" for start, end, good in rows], kind)
    buffer = np.frombuffer(b"".join([content, PADDING]), dtype=np.uint8)
    return Texts(buffer, np.where(usable, starts << 32 | ends, 0), kind)


# ---- what columns say -----------------------------------------------------------------------------------------------


def numbers(column: Column, name: str) -> np.ndarray:
    """Return a column as float64, NaN where there is no number.

    Examples
    --------
    >>> numbers(as_column(["1.5", "", "east", 2, True]), "x")
    array([1.5, nan, nan, 2. , nan])
    """
    if isinstance(column, Texts):
        return column.numbers()
    if isinstance(column, Reals):
        with np.errstate(over="ignore"):  # a longdouble that becomes infinite is no place
            return np.where(column.known, column.values.astype(np.float64), np.nan)
    if isinstance(column, Objects):
        if (plain := plain_texts(column)) is not None:
            return plain.numbers()
        values = np.array([value if type(value) is float else _number(value) for value in column.values], dtype=np.float64)
        texts = [row for row, value in enumerate(column.values) if isinstance(value, (str, bytes))]
        values[texts] = Texts.of([encoded(column.values[row]) for row in texts]).numbers()
        return values
    msg = f"column {name!r} of the events must hold numbers; it holds {type_of(column)}; convert it first"
    raise InputTypeError(msg)


def _number(value: Any) -> float:
    is_number = isinstance(value, (int, float, np.integer, np.floating, Decimal)) and not isinstance(value, bool)
    try:
        return float(value) if is_number else np.nan
    except Exception:  # one row refuses nothing: a signalling NaN, an integer beyond all floats
        return np.nan


def times(column: Texts | Objects) -> tuple[np.ndarray, np.ndarray]:
    """Return (nanoseconds since 1970 or NO_TICKS, whether it has an offset) of each row; datetimes are read as their ISO 8601 text."""
    if isinstance(column, Objects):
        column = plain_texts(column) or Texts.of([_iso_text(value) for value in column.values])
    return column.times()


def _iso_text(value: Any) -> bytes:
    try:
        if isinstance(value, (str, bytes)):
            return encoded(value)
        if isinstance(value, datetime.date):  # datetimes and pandas Timestamps too
            return value.isoformat().encode() if value == value else b""
        return str(value).encode() if isinstance(value, np.datetime64) else b""
    except Exception:  # one row refuses nothing
        return b""


def plain_texts(column: Objects) -> Texts | None:
    """Return the bytes of a column of str, perhaps with None and NaN, which are missing; None if it holds anything else.

    The bytes are those of `encoded`, but rows are not converted one by one; most columns of objects are of this kind.

    Examples
    --------
    >>> plain_texts(Objects(["ann", None, "bob"])).spans.tolist() == [0 << 32 | 3, 3 << 32 | 3, 3 << 32 | 6]
    True
    >>> plain_texts(Objects(["ann", 7])) is None
    True
    """
    values = column.values
    kinds = set(map(type, values))
    if not kinds <= {str, float, type(None)}:
        return None
    if float in kinds and any(type(value) is float and value == value for value in values):
        return None
    if kinds != {str}:
        values = [value if type(value) is str else "" for value in values]
    lengths = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
    if lengths.max(initial=0) > LONGEST or not (whole := "".join(values)).isascii():
        return Texts.of([encoded(value) for value in values])
    ends = np.cumsum(lengths)
    return Texts(np.frombuffer(whole.encode() + PADDING, dtype=np.uint8), (ends - lengths) << 32 | ends)


def encoded(value: str | bytes) -> bytes:
    """Return the bytes of a text; lone surrogates have bytes of their own, so different texts stay different."""
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
