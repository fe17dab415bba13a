"""The number of threads of the compiled loops. Results do not depend on this number."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hushgraph._errors import InputError
from hushgraph.core import _loops

MAX_THREADS = 4096
_QUOTA_V2, _QUOTA_V1 = Path("/sys/fs/cgroup/cpu.max"), Path("/sys/fs/cgroup/cpu")


def processors() -> int:
    """Return the number of threads for this process.

    This is HUSHGRAPH_NUM_THREADS if it is set, else OMP_NUM_THREADS (joblib and job schedulers set it), else the number of processors that
    this process may use: the processors of its affinity mask, but not more than the CPU quota of its container.
    """
    text = os.environ.get("HUSHGRAPH_NUM_THREADS", "").strip()
    if text:
        if not text.isdecimal() or not 1 <= int(text) <= MAX_THREADS:
            msg = f"HUSHGRAPH_NUM_THREADS must be a whole number from 1 to {MAX_THREADS}; got {text!r}; set it to such a number, or unset it"
            raise InputError(msg)
        return int(text)
    omp_text = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if omp_text.isdecimal() and int(omp_text) >= 1:
        return min(int(omp_text), MAX_THREADS)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(allowed, container_quota())))


def container_quota(v2: Path = _QUOTA_V2, v1: Path = _QUOTA_V1) -> float:
    """Return the number of processors that the control group of a container allows; infinity if there is no limit."""
    try:
        quota, period = v2.read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        pass
    try:
        quota_us, period_us = (int((v1 / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
        return quota_us / period_us if quota_us > 0 else math.inf
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf


def thread_count() -> int:
    """Return the number of threads for loops that this thread starts."""
    return _loops.thread_count()


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Use `count` threads for the loops that this thread starts inside the block, whatever the number of processors."""
    before = _loops.set_threads(count)
    try:
        yield
    finally:
        _loops.set_threads(before)
