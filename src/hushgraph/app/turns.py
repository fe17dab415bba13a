"""One computation at a time, and the latest look wins: an older one, waiting or at work, is given up.

Kernels use all cores and must not run in two threads at once, so a slider that moves again would wait for a slow method that works
on its last position. Where an estimator says how far it is, an old look ends. Draws and downloads are never given up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from hushgraph.progress import watching

Answer = TypeVar("Answer")


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

        def give_up_if_old(*_):
            if self._newest != number:
                raise Superseded

        with self._working, watching(give_up_if_old):
            give_up_if_old()
            return work()

    def end(self) -> None:
        """Nobody looks any more: a look that is on its way is given up."""
        with self._asking:
            self._newest += 1
