"""One computation at a time, and only the latest view is computed: an older one, waiting or running, is cancelled.

The compiled loops use all cores, so two computations at once would slow each other down, and a slider that moves again would wait
for a slow method at its last position. A view ends early at the points where its estimator reports progress. Draws and downloads
always run to their end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from hushgraph._progress import watching

Answer = TypeVar("Answer")


class RequestSuperseded(Exception):  # noqa: N818 - an answer to a request, not a failure
    """A newer view was requested, so this one was cancelled."""


class ComputationQueue:
    """Runs computations one after another.

    Examples
    --------
    >>> queue = ComputationQueue()
    >>> queue.run_if_latest(lambda: 1), queue.run_to_end(lambda: 2)
    (1, 2)
    """

    def __init__(self) -> None:
        self._computing, self._counting = threading.Lock(), threading.Lock()
        self._newest = 0  # number of the latest view

    def run_to_end(self, compute: Callable[[], Answer]) -> Answer:
        """Return the result of a computation that is never cancelled."""
        with self._computing:
            return compute()

    def run_if_latest(self, compute: Callable[[], Answer]) -> Answer:
        """Return the result of a computation; raise `RequestSuperseded` if this method is called again before it is done."""
        with self._counting:
            self._newest += 1
            number = self._newest

        def check_latest(*_: object) -> None:
            if self._newest != number:
                raise RequestSuperseded

        with self._computing, watching(check_latest):
            check_latest()
            return compute()

    def cancel(self) -> None:
        """Cancel the view that is waiting or being computed; the program ends."""
        with self._counting:
            self._newest += 1
