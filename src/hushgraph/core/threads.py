"""How many threads the compiled loops use. Results do not depend on it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hushgraph._errors import InputError
from hushgraph.core import _loops

MOST = 4096  # threads
_QUOTA_V2, _QUOTA_V1 = Path("/sys/fs/cgroup/cpu.max"), Path("/sys/fs/cgroup/cpu")


def processors() -> int:
    """Number of threads of this process.

    HUSHGRAPH_NUM_THREADS if it is set, else OMP_NUM_THREADS (which joblib and job schedulers set), else the processors that this process
    may use: those of its affinity mask, and no more than the CPU quota of its container.
    """
    asked = os.environ.get("HUSHGRAPH_NUM_THREADS", "").strip()
    if asked:
        if not asked.isdecimal() or not 1 <= int(asked) <= MOST:
            msg = f"HUSHGRAPH_NUM_THREADS must be a whole number from 1 to {MOST}; got {asked!r}; set it to one, or unset it"
            raise InputError(msg)
        return int(asked)
    usual = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if usual.isdecimal() and int(usual) >= 1:
        return min(int(usual), MOST)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(allowed, container_quota())))


def container_quota(v2: Path = _QUOTA_V2, v1: Path = _QUOTA_V1) -> float:
    """Processors that the control group of a container allows; infinite where nothing is said."""
    try:
        quota, period = v2.read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        pass
    try:
        allowed, each = (int((v1 / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
        return allowed / each if allowed > 0 else math.inf
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf


def thread_count() -> int:
    """Number of threads that loops started by this thread use."""
    return _loops.thread_count()


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Loops that this thread starts inside use `count` threads, whatever the number of processors."""
    before = _loops.set_threads(count)
    try:
        yield
    finally:
        _loops.set_threads(before)
