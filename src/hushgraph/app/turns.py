"""One computation at a time, and the latest look wins: an older one, waiting or at work, is given up.

Kernels use all cores and must not run in two threads at once, so a slider that moves again would wait for a slow method that works
on its last position. Nothing inside the library knows of that, so a look is watched from outside: where an estimator calls one of
its own functions, the interpreter asks whether a newer look has come, and that call then fails like any other. Draws and
downloads are never given up.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

Answer = TypeVar("Answer")
_PACKAGE = str(Path(__file__).parents[1])
_LEDGERS = str(Path(_PACKAGE) / "privacy")  # its transactions are let alone


class Superseded(Exception):  # noqa: N818 - it is an answer, not a fault
    """A newer look has come in between."""


class Turns:
    """Who works now.

    Examples
    --------
    >>> turns = Turns()
    >>> turns.latest(lambda: 1), turns.whole(lambda: 2)
    (1, 2)
    """

    def __init__(self) -> None:
        self._working, self._asking = threading.Lock(), threading.Lock()
        self._newest = 0

    def whole(self, work: Callable[[], Answer]) -> Answer:
        """Work that is finished once it has begun."""
        with self._working:
            return work()

    def latest(self, work: Callable[[], Answer]) -> Answer:
        """Work that is given up, with `Superseded`, when this is called again before it is done."""
        with self._asking:
            self._newest += 1
            number = self._newest
        with self._working:
            return _watched(work, lambda: self._newest != number)


def _watched(work: Callable[[], Answer], is_old: Callable[[], bool]) -> Answer:
    def watch(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and is_old() and _may_fail(frame.f_code):
            raise Superseded

    if is_old():
        raise Superseded
    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        return work()
    finally:
        sys.setprofile(before)


def _may_fail(code: CodeType) -> bool:
    """Whether it is a plain function of the estimators. Generators are not: those of `with` blocks are called again to tidy up."""
    ours = code.co_filename.startswith(_PACKAGE) and not code.co_filename.startswith(_LEDGERS)
    return ours and not code.co_flags & inspect.CO_GENERATOR
