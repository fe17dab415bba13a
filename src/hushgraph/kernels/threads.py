"""One caller of all cores at a time.

Numba's fallback thread pool ("workqueue") aborts the process when two threads enter parallel loops together, and two callers of all
cores gain nothing on any pool. So every parallel loop is compiled by `parallel_njit`, which lets one thread in at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from numba import njit

one_at_a_time = threading.RLock()


def parallel_njit(**options) -> Callable[[Callable], Any]:
    """Compile a function with parallel loops, kept between processes; calls take turns, whichever thread they come from.

    Only Python may call the result: compiled code cannot take turns. `.compiled` is what Numba made of it.
    """

    def decorate(function):
        compiled = njit(cache=True, parallel=True, **options)(function)

        @wraps(function)
        def in_turn(*args):
            with one_at_a_time:
                return compiled(*args)

        in_turn.compiled = compiled
        return in_turn

    return decorate
