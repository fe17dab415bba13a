"""Checks of what callers pass: the value in the form the code works with, or an error that says what to do. Knows nothing else.

Numbers far from 1 are refused, not supported: risks take fourth powers of sigma and the spectrum takes those of degrees,
which must neither overflow nor vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from hushgraph._errors import InputError, InputTypeError, Reference, Sentence, argument
from hushgraph.arrays import largest_size, on_device, on_host

LARGEST = 1e70  # size of signals, sigma and edge weights; the smallest sigma and edge weight is its inverse
LARGEST_FLOAT32 = 1e15
ROOM = 1e4  # for coefficients, which may be larger than their signal, and for rounding


def choose(name: str, value: Any, choices: tuple) -> Any:
    """`value` if it is one of `choices`, otherwise an error that lists them."""
    if not isinstance(value, Hashable) or value not in choices:
        raise InputError(Sentence("{} must be one of {}; got {}", argument(name), ", ".join(map(repr, choices)), shown(value)))
    return value


def shown(value) -> str:
    """`value` for the end of an error, at most a line; of tables and lists only the size, since they may hold private data."""
    if getattr(value, "ndim", 0):
        return f"{type(value).__name__} of shape {value.shape}"
    if isinstance(value, list | tuple | set | frozenset | dict | bytes | bytearray):
        return f"{type(value).__name__} of length {len(value)}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def first_of(names) -> str:
    """The first names of a list for an error, or "none"."""
    return ", ".join(map(shown, names[:3])) or "none"


# ---- numbers ----------------------------------------------------------------------------------------------------


def as_number(value) -> float:
    """A finite real number as a float; NaN for everything else, so that every comparison with it fails."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return np.nan
    try:
        number = float(value)
    except OverflowError:
        return np.nan
    return number if np.isfinite(number) else np.nan


def checked_number(name: str, value, expected: str, *, above=-np.inf, least=-np.inf, most=np.inf, below=np.inf) -> float:
    """`value` as a float within the bounds; `expected` says them in words."""
    number = as_number(value)
    if not (above < number < below and least <= number <= most):
        raise InputError(Sentence("{} must be {}; got {}", argument(name), expected, shown(value)))
    return number


def is_number(text: str) -> bool:
    """Whether a text is a number as Python writes it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_count(value, least: int, most: float = np.inf) -> bool:
    """Whether `value` is an integer (not a bool, not 3.0) within the bounds."""
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most


def checked_count(name: str, value, least: int, most: int | None = None, *, note: str = "") -> int:
    """`value` as an int from `least` to `most`; `note` follows the bounds in the error."""
    if not is_count(value, least, np.inf if most is None else most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(Sentence("{} must be an integer {}{}; got {}", argument(name), bounds, note, shown(value)))
    return int(value)


def checked_seed(seed, name: str = "seed") -> int:
    if not is_count(seed, 0, 2**64 - 1):
        raise InputError(Sentence("{} must be an integer from 0 to 2^64 - 1; got {}", argument(name), shown(seed)))
    return int(seed)


def checked_sigma(sigma, n: int | None = None):
    """A positive float, or, when n is given, possibly n of them."""
    values = as_array(sigma, "sigma")
    shapes = ((),) if n is None else ((), (n,))
    if values.shape not in shapes or values.dtype.kind not in "fiu" or not np.all(np.isfinite(values)) or not np.all(values > 0):
        expected = "a positive number" if n is None else f"a positive number or {n} of them, one per node"
        known = values.ndim and values.dtype.kind in "fiu"
        got = f"shape {values.shape}, smallest {values.min() if values.size else None}" if known else shown(sigma)
        raise InputError(Sentence("{sigma} (a standard deviation in signal units) must be {}; got {}", expected, got))
    values = values.astype(np.float64)
    if values.size and not (values.min() * ROOM >= 1 / LARGEST and values.max() <= LARGEST * ROOM):
        got = f"{values.min():g}" + (f" to {values.max():g}" if values.ndim else "")
        bounds = "{sigma} must be at most {:g} and at least {:g} in size; got {}; rescale the signal and sigma"
        raise InputError(Sentence(bounds, LARGEST, 1 / LARGEST, got))
    return float(values) if values.ndim == 0 else values


def checked_time(name: str, value, unit: Any, expected: str) -> np.datetime64:
    """`value` as a datetime64 of that unit; `expected` says in words what it should be."""
    try:
        time = np.datetime64(value, unit)
    except (TypeError, ValueError):
        time = np.datetime64("NaT")
    if np.isnat(time):
        raise InputError(Sentence("{} must be {}; got {}", argument(name), expected, shown(value)))
    return time


# ---- arrays -----------------------------------------------------------------------------------------------------


def as_array(values, name: str = "values") -> np.ndarray:
    """np.asarray, but ragged lists give an array of objects without shape; masked entries are refused."""
    if np.ma.is_masked(values):
        msg = (
            f"{name} has {int(np.ma.count_masked(values))} masked entries, and the mask would be lost; fill them first: filled(...)"
        )
        raise InputError(msg)
    if on_device(values):
        return values
    try:
        return np.asarray(values)
    except ValueError:
        return np.asarray(None)


def refuse_device(**arrays) -> None:
    """Complain of arrays on a GPU where the work is done by the processor only."""
    for name, values in arrays.items():
        if on_device(values):
            call = Reference(f"pass cupy.asnumpy({name})")
            raise InputTypeError(Sentence("this is worked on by the processor only, and {} is on a GPU: {}", name, call))


def checked_real_array(name: str, values) -> np.ndarray:
    """Real numbers as float32 (which stays) or float64; nothing is copied that already is one of them."""
    if hasattr(values, "graph_hash"):
        what = "its .values" if hasattr(values, "values") else "what privacy.release() makes of them: exact counts are private"
        msg = f"{name} must be plain numbers; got a {type(values).__name__}; pass {what}"
        raise InputTypeError(msg)
    array = as_array(values, name)
    if array.dtype.kind not in "fiub":
        ragged = isinstance(values, list | tuple) and array.ndim == 0
        msg = f"{name} must hold real numbers; got " + ("rows of unequal length" if ragged else f"dtype {array.dtype}")
        raise InputTypeError(msg)
    if array.dtype in (np.float32, np.float64):
        return array
    with np.errstate(over="ignore"):  # a longdouble that becomes infinite is refused as such
        return array.astype(np.float64)


def by_label(name: str, labels: list, given: list, values: np.ndarray) -> np.ndarray:
    """`values`, whose rows are called `given`, in the order of `labels`; each must be there exactly once."""
    position, nodes = {label: i for i, label in enumerate(given)}, set(labels)
    absent, foreign = [x for x in labels if x not in position], [x for x in position if x not in nodes]
    if len(position) != len(given):
        msg = f"{name} has {len(given) - len(position)} repeated labels; each node needs exactly one value"
        raise InputError(msg)
    if absent or foreign:
        rows = "; pass Y.T if signals are rows" if values.ndim == 2 and values.shape[1] == len(labels) else ""
        first = f" (first: {shown(foreign[0])})" if foreign else ""
        order = f"the numbers 0 to {len(labels) - 1}" if labels == list(range(len(labels))) else "graph.labels"
        msg = (
            f"labels of {name} and graph differ: {len(absent)} nodes have no value (first: {absent[:3]}), {len(foreign)} labels "
            f"are not nodes{first}; {_kinds(labels, foreign)}reindex {name} to {order}, or pass a plain array in node order{rows}"
        )
        raise InputError(msg)
    return values[[position[x] for x in labels]]


def _kinds(labels: list, foreign: list) -> str:
    """What to say where the labels of a graph are integers and those given are text, or the other way round."""
    for kinds, words in (((Integral, str), ("integers", "text")), ((str, Integral), ("text", "integers"))):
        if foreign and all(isinstance(x, kinds[0]) for x in labels) and all(isinstance(x, kinds[1]) for x in foreign):
            return f"the graph has {words[0]}, these are {words[1]}: turn them into {words[0]}; "
    return ""


def span(values, *, missing_ok: bool = False) -> tuple[float, float]:
    """Smallest and largest value, with 0 among them; NaN if there is one that does not pass as missing."""
    if on_device(values):
        low, high = (np.nanmin, np.nanmax) if missing_ok else (np.min, np.max)
        return (min(float(low(values)), 0.0), max(float(high(values)), 0.0)) if values.size else (0.0, 0.0)
    least, most = (np.fmin, np.fmax) if missing_ok else (np.minimum, np.maximum)
    return least.reduce(values, axis=None, initial=0), most.reduce(values, axis=None, initial=0)


_waiting: ContextVar[list[Callable[[], None]] | None] = ContextVar("checks that wait", default=None)


@contextmanager
def checks_at_the_end() -> Iterator[None]:
    """Sizes of arrays on a GPU that are checked in here are looked at in the end, so that the work need not wait for them."""
    checks: list[Callable[[], None]] = []
    token = _waiting.set(checks)
    try:
        yield
    finally:
        _waiting.reset(token)
    for check in checks:
        check()


def checked_size(
    name: str, values: np.ndarray, *, missing_ok: bool = False, hint: str = "", room: float = 1.0, rows: Callable[[], list] | None = None
) -> np.ndarray:  # fmt: skip
    """`values` if they are finite and not too large (NaN may pass as missing); one pass, no copy. `rows` gives names for the error."""
    most = LARGEST_FLOAT32 if values.dtype == np.float32 else LARGEST

    def check(top=None):
        smallest, largest = span(values, missing_ok=missing_ok) if top is None else (0.0, float(top))
        if not (-most * room <= smallest and largest <= most * room):
            _refuse_size(name, values, max(-smallest, largest), most, missing_ok, hint, rows)

    waiting = _waiting.get()
    if not on_device(values) or missing_ok or not values.size:
        check()
    elif waiting is None:
        check(largest_size(values))
    else:
        waiting.append(partial(check, largest_size(values)))
    return values


def _refuse_size(name: str, values, largest: float, most: float, missing_ok: bool, hint: str, rows) -> None:
    bad = np.isinf(values) if missing_ok else ~np.isfinite(values)
    if bad.any():
        where = ""
        if rows is not None:
            places = np.flatnonzero(on_host(bad).reshape(len(bad), -1).any(axis=1))[:3].tolist()
            where = f" (first: {first_of([rows()[i] for i in places])})"
        raise InputError(Sentence("{} has {} entries that are NaN or infinite{}{}", name, int(bad.sum()), where, hint))
    single = most == LARGEST_FLOAT32
    msg = (
        f"{name} must be at most {most:g} in size{' as float32' if single else ''}; the largest is {largest:g}; "
        f"rescale the signal (and sigma){', or use float64' if single else ''}"
    )
    raise InputError(msg)
