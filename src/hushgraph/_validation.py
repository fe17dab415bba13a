"""Checks of arguments: each returns the value in the form that the code works with, or raises an error that says what to do.

Numbers far from 1 are refused, not supported: risks take fourth powers of sigma and the spectrum takes those of degrees,
which must neither overflow nor vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NoReturn, Protocol, runtime_checkable

import numpy as np

from hushgraph._arrays import largest_size, on_device, on_host
from hushgraph._errors import InputError, InputTypeError, Reference, Sentence

LARGEST = 1e70  # size of signals, sigma and edge weights; the smallest sigma and edge weight is its inverse
LARGEST_FLOAT32 = 1e15
ROOM = 1e4  # for coefficients, which may be larger than their signal, and for rounding


def choose(name: str, value: Any, choices: tuple) -> Any:
    """Return `value` if it is one of `choices`; otherwise raise an error that lists them."""
    if not isinstance(value, Hashable) or value not in choices:
        raise InputError.about(argument=name, expected=f"one of {', '.join(map(repr, choices))}", got=shown(value))
    return value


def shown(value: object) -> str:
    """Return a description of `value` for an error, at most one line long; of tables and lists only the size, since they may be private."""
    if getattr(value, "ndim", 0):
        return f"{type(value).__name__} of shape {getattr(value, 'shape', '?')}"
    if isinstance(value, list | tuple | set | frozenset | dict | bytes | bytearray):
        return f"{type(value).__name__} of length {len(value)}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def first_of(names: list) -> str:
    """Return the first three names of a list for an error, or "none"."""
    return ", ".join(map(shown, names[:3])) or "none"


def columns_in_words(columns: list, wanted: object = None) -> str:
    """Return which columns a public table has, for an error, with the nearest name to the one that was wanted.

    Examples
    --------
    >>> columns_in_words(["node", "Count"], "count")
    "it has 'node', 'Count'; is it 'Count'?"
    """
    names = [column for column in columns if isinstance(column, str)]
    text = ", ".join(map(shown, columns[:20])) or "none"
    more = f" and {len(columns) - 20} more" if len(columns) > 20 else ""
    by_lower = {name.lower(): name for name in reversed(names)}
    near = get_close_matches(wanted.lower(), by_lower, n=1) if isinstance(wanted, str) else []
    return f"it has {text}{more}" + (f"; is it {shown(by_lower[near[0]])}?" if near else "")


# ---- numbers ----------------------------------------------------------------------------------------------------


def as_number(value: object) -> float:
    """Return a finite real number as a float, and NaN for everything else, so that every comparison with it fails."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return np.nan
    try:
        number = float(value)
    except OverflowError:
        return np.nan
    return number if np.isfinite(number) else np.nan


def checked_number(
    name: str,
    value: object,
    expected: str,
    *,
    above: float = -np.inf,
    least: float = -np.inf,
    most: float = np.inf,
    below: float = np.inf,
) -> float:
    """Return `value` as a float within the bounds, which `expected` describes."""
    number = as_number(value)
    if not (above < number < below and least <= number <= most):
        raise InputError.about(argument=name, expected=expected, got=shown(value))
    return number


def checked_level(level: Any) -> float:
    """Return the probability of an interval as a float, or raise an InputError.

    >>> checked_level(0.9)
    0.9
    """
    return checked_number("level", level, "a number between 0 and 1", above=0.0, below=1.0)


def is_number(text: str) -> bool:
    """Return whether a text is a number as Python writes it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_count(value: object, least: int, most: float = np.inf) -> bool:
    """Return whether `value` is an integer (not a bool, not 3.0) within the bounds."""
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most


def checked_count(name: str, value: Any, least: int, most: int | None = None, *, note: str = "") -> int:
    """Return `value` as an int from `least` to `most`; `note` follows the bounds in the error."""
    if not is_count(value, least, np.inf if most is None else most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError.about(argument=name, expected=f"an integer {bounds}{note}", got=shown(value))
    return int(value)


def checked_seed(seed: Any, name: str = "seed") -> int:
    """Return `seed` as an int from 0 to 2^64 - 1."""
    if not is_count(seed, 0, 2**64 - 1):
        raise InputError.about(argument=name, expected="an integer from 0 to 2^64 - 1", got=shown(seed))
    return int(seed)


def checked_sigma(sigma: Any, n: int | None = None) -> Any:
    """Return a positive float; with `n`, a positive float or n of them as an array."""
    values = as_array(sigma, "sigma")
    shapes = ((),) if n is None else ((), (n,))
    if values.shape not in shapes or values.dtype.kind not in "fiu" or not np.all(np.isfinite(values)) or not np.all(values > 0):
        expected = "a positive number" if n is None else f"a positive number or {n} of them, one per node"
        numbers = values.ndim and values.dtype.kind in "fiu"
        got = f"shape {values.shape}, smallest {values.min() if values.size else None}" if numbers else shown(sigma)
        raise InputError.about(argument="sigma", expected=f"a standard deviation in signal units, {expected}", got=got)
    values = values.astype(np.float64)
    if values.size and not (values.min() * ROOM >= 1 / LARGEST and values.max() <= LARGEST * ROOM):
        got = f"{values.min():g}" + (f" to {values.max():g}" if values.ndim else "")
        expected = f"at most {LARGEST:g} and at least {1 / LARGEST:g} in size"
        raise InputError.about(argument="sigma", expected=expected, got=got, hint="rescale the signal and sigma")
    return float(values) if values.ndim == 0 else values


def checked_time(name: str, value: Any, unit: Any, expected: str) -> np.datetime64:
    """Return `value` as a datetime64 of that unit; `expected` describes it in the error."""
    try:
        time = np.datetime64(value, unit)
    except (TypeError, ValueError):
        time = np.datetime64("NaT")
    if np.isnat(time):
        raise InputError.about(argument=name, expected=expected, got=shown(value))
    return time


# ---- arrays -----------------------------------------------------------------------------------------------------


def as_array(values: Any, name: str = "values") -> np.ndarray:
    """Return np.asarray(values), or an object array without shape for a ragged list; masked entries are refused."""
    if np.ma.is_masked(values):
        masked = int(np.ma.count_masked(values))
        msg = f"{name} has {masked} masked entries, and the mask would be lost; fill them first: filled(...)"
        raise InputError.about(
            argument=name, expected="without masked entries", got=f"{masked} of them", hint="fill them first: filled(...)", text=msg
        )
    if on_device(values):
        return values
    try:
        return np.asarray(values)
    except ValueError:
        return np.asarray(None)


def refuse_device(**arrays: Any) -> None:
    """Refuse arrays on a GPU where a computation runs on the CPU only."""
    for name, values in arrays.items():
        if on_device(values):
            call = Reference(f"pass cupy.asnumpy({name})")
            text = Sentence("this runs on the CPU only, and {} is on a GPU: {}", name, call)
            raise InputTypeError.about(argument=name, expected="an array of NumPy", got="an array on a GPU", hint=call, text=text)


@runtime_checkable
class NotPlainNumbers(Protocol):
    """An object that holds numbers but is not to be taken for them: `instead_pass` says what to pass in its place."""

    instead_pass: ClassVar[str]


def checked_real_array(name: str, values: Any) -> np.ndarray:
    """Return real numbers as a float32 array if they are float32, and as float64 otherwise; such arrays are not copied."""
    if isinstance(values, NotPlainNumbers):
        hint = f"pass {values.instead_pass}"
        raise InputTypeError.about(argument=name, expected="plain numbers", got=f"a {type(values).__name__}", hint=hint)
    array = as_array(values, name)
    if array.dtype.kind not in "fiub":
        ragged = isinstance(values, list | tuple) and array.ndim == 0
        got = "rows of unequal length" if ragged else f"dtype {array.dtype}"
        raise InputTypeError.about(argument=name, verb="hold", expected="real numbers", got=got)
    if array.dtype in (np.float32, np.float64):
        return array
    with np.errstate(over="ignore"):  # a longdouble that becomes infinite is refused as such
        return array.astype(np.float64)


def span(values: Any, *, missing_ok: bool = False) -> tuple[float, float]:
    """Return the smallest and the largest of the values and 0; NaN if a value is NaN, unless `missing_ok` ignores such values."""
    if on_device(values):
        low, high = (np.nanmin, np.nanmax) if missing_ok else (np.min, np.max)
        return (min(float(low(values)), 0.0), max(float(high(values)), 0.0)) if values.size else (0.0, 0.0)
    least, most = (np.fmin, np.fmax) if missing_ok else (np.minimum, np.maximum)
    return least.reduce(values, axis=None, initial=0), most.reduce(values, axis=None, initial=0)


_postponed: ContextVar[list[Callable[[], None]] | None] = ContextVar("postponed checks", default=None)


@contextmanager
def checks_at_the_end() -> Iterator[None]:
    """Postpone the size checks of GPU arrays inside the block to its end, so that the host does not wait for the GPU before."""
    checks: list[Callable[[], None]] = []
    token = _postponed.set(checks)
    try:
        yield
    finally:
        _postponed.reset(token)
    for check in checks:
        check()


def checked_size(
    name: str,
    values: np.ndarray,
    *,
    missing_ok: bool = False,
    hint: str = "",
    room: float = 1.0,
    rows: Callable[[], list] | None = None,
) -> np.ndarray:
    """Return `values` if they are finite and not too large; one pass, no copy.

    NaN is accepted as a missing value with `missing_ok`. `room` multiplies the largest size. `rows` returns the names of the rows for the
    error of values that are not finite, and `hint` says what to do about them.
    """
    most = LARGEST_FLOAT32 if values.dtype == np.float32 else LARGEST

    def check(top: Any = None) -> None:
        smallest, largest = span(values, missing_ok=missing_ok) if top is None else (0.0, float(top))
        if not (-most * room <= smallest and largest <= most * room):
            _refuse_size(name, values, max(-smallest, largest), most, missing_ok, hint, rows)

    postponed = _postponed.get()
    if not on_device(values) or missing_ok or not values.size:
        check()
    elif postponed is None:
        check(largest_size(values))
    else:
        postponed.append(partial(check, largest_size(values)))
    return values


def _refuse_size(
    name: str, values: Any, largest: float, most: float, missing_ok: bool, hint: str, rows: Callable[[], list] | None
) -> NoReturn:
    bad = np.isinf(values) if missing_ok else ~np.isfinite(values)
    if bad.any():
        where = ""
        if rows is not None:
            places = np.flatnonzero(on_host(bad).reshape(len(bad), -1).any(axis=1))[:3].tolist()
            where = f" (first: {first_of([rows()[i] for i in places])})"
        got = f"{int(bad.sum())} entries that are NaN or infinite{where}"
        text = Sentence("{} has {}; {}", name, got, hint) if hint else f"{name} has {got}"
        raise InputError.about(argument=name, expected="finite", got=got, hint=hint, text=text)
    single = most == LARGEST_FLOAT32
    expected = f"at most {most:g} in size{' as float32' if single else ''}; the largest is {largest:g}"
    raise InputError.about(
        argument=name, expected=expected, hint=f"rescale the signal (and sigma){', or use float64' if single else ''}"
    )
