"""How far the work is: long work says so where it is cheap to say, and whoever watches may end it there by raising an exception.

The watcher belongs to the thread or task that began to watch, so nothing has to be passed from function to function.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from hushgraph._errors import InputError
from hushgraph.checks import shown

Watcher = Callable[[float, str], Any]


@dataclass(frozen=True)
class _Part:
    """The part of the whole work that goes on now: from `low` to `high`, shares of it."""

    watcher: Watcher
    low: float = 0.0
    high: float = 1.0

    def tell(self, share: float, what: str):
        self.watcher(self.low + share * (self.high - self.low), what)


_now: ContextVar[_Part | None] = ContextVar("part of the work", default=None)


def checked_watcher(progress: Watcher | None) -> Watcher | None:
    """A function, or None."""
    if progress is not None and not callable(progress):
        msg = f"progress must be a function of the share that is done and the name of what comes next; got {shown(progress)}"
        raise InputError(msg)
    return progress


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Call `watcher(share, what)` as the work inside goes on, share from 0 to 1; None changes nothing.

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


def nth(k: int, m: int):
    """What goes on inside is the k-th of m equal parts, counted from 0."""
    return between(k / m, (k + 1) / m)


@contextmanager
def between(low: float, high: float) -> Iterator[None]:
    """What goes on inside leads from one share of the work to another."""
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
    """Say that this share of the part is done, and what comes next."""
    now = _now.get()
    if now is not None:
        now.tell(share, what)


@contextmanager
def timed(timings: dict, stage: str, low: float = 0.0, high: float = 1.0) -> Iterator[None]:
    """Add the time of the block to timings[stage]; about these shares of the work are done when it begins and ends."""
    start = time.perf_counter()
    with between(low, high):
        reached(0.0, stage)
        yield
    timings[stage] = timings.get(stage, 0.0) + time.perf_counter() - start
