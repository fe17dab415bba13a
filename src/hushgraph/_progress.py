"""Progress of long computations: they report the share that is done, and the watcher can stop them by raising an exception.

A watcher is a function of (share, what): the share of the work that is done, from 0 to 1, and the name of the next step. It belongs to
the thread or task that started it, so it need not be passed from function to function.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hushgraph._errors import InputTypeError
from hushgraph._validation import shown

Watcher = Callable[[float, str], Any]
C = TypeVar("C", bound=Callable)


@dataclass(frozen=True)
class _Part:
    """The part of the whole work that is running: from the share `low` to the share `high`."""

    watcher: Watcher
    low: float = 0.0
    high: float = 1.0

    def report(self, share: float, what: str) -> None:
        self.watcher(self.low + share * (self.high - self.low), what)


_now: ContextVar[_Part | None] = ContextVar("part of the work", default=None)


def checked_watcher(progress: C | None, takes: str = "the share that is done and the name of what comes next") -> C | None:
    """Return `progress`, a function or None; `takes` names its arguments in the error."""
    if progress is not None and not callable(progress):
        raise InputTypeError.about(argument="progress", expected=f"a function of {takes}", got=shown(progress))
    return progress


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Call `watcher(share, what)` while the work inside the block goes on, share from 0 to 1; None changes nothing.

    Examples
    --------
    >>> with watching(lambda share, what: print(f"{share:.0%} {what}")):
    ...     for k in range(2):
    ...         with nth(k, 2):
    ...             reached(0.5, "halfway")
    25% halfway
    75% halfway
    """
    if watcher is None:
        yield
        return
    token = _now.set(_Part(watcher))
    try:
        yield
    finally:
        _now.reset(token)


def nth(k: int, m: int) -> AbstractContextManager[None]:
    """Take the work inside the block as the k-th of m equal parts, counted from 0."""
    return between(k / m, (k + 1) / m)


@contextmanager
def between(low: float, high: float) -> Iterator[None]:
    """Take the work inside the block as the part from one share of the work to another."""
    now = _now.get()
    if now is None:
        yield
        return
    size = now.high - now.low
    token = _now.set(replace(now, low=now.low + low * size, high=now.low + high * size))
    try:
        yield
    finally:
        _now.reset(token)


def reached(share: float, what: str) -> None:
    """Report that this share of the part is done, and the name of the next step."""
    now = _now.get()
    if now is not None:
        now.report(share, what)


@contextmanager
def timed(timings: dict, stage: str, low: float = 0.0, high: float = 1.0) -> Iterator[None]:
    """Add the time of the block to timings[stage]; `low` and `high` are the shares of the work that are done at its start and end."""
    start = time.perf_counter()
    with between(low, high):
        reached(0.0, stage)
        yield
    timings[stage] = timings.get(stage, 0.0) + time.perf_counter() - start
