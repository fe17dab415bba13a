"""Arrays choose the machine: NumPy arrays are computed on the processor, CuPy arrays on their GPU.

CuPy is imported only when a CuPy array is passed.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np


class Labelled(Protocol):
    """A Series or table of pandas, polars or xarray."""

    def to_numpy(self, *args: Any, **kwargs: Any) -> Any: ...


# one number, or one per node: by position or by label
NodeNumbers = float | np.integer | np.floating | np.ndarray | Sequence[float] | Mapping[Any, float] | Labelled


def on_device(values: object) -> bool:
    """Return whether `values` are an array on a GPU.

    >>> on_device(np.zeros(3)), on_device([1.0]), on_device(None)
    (False, False, False)
    """
    return type(values).__module__.partition(".")[0] == "cupy"


def namespace(values: object) -> Any:
    """Return CuPy for a CuPy array, and NumPy for everything else."""
    return sys.modules["cupy"] if on_device(values) else np


def placed_like(values: Any, other: object) -> Any:
    """Return `values` on the machine of `other`: its GPU, or the processor."""
    return namespace(other).asarray(values) if on_device(other) else on_host(values)


def on_host(values: Any) -> Any:
    """Return a CuPy array as a NumPy array; anything else as it is."""
    return values.get() if on_device(values) else values


class Copying:
    """A copy of an array on the host, which is ready when the array is, even while the GPU has other work to do after it.

    >>> Copying(np.arange(3)).get()
    array([0, 1, 2])
    """

    def __init__(self, values: Any) -> None:
        self.values = values
        if on_device(values):
            self.done = namespace(values).cuda.Event(disable_timing=True)
            self.done.record()

    def get(self) -> Any:
        """Return the copy."""
        if not on_device(self.values):
            return self.values
        stream = namespace(self.values).cuda.Stream(non_blocking=True)
        stream.wait_event(self.done)
        return self.values.get(stream=stream)


def values_digest(values: Any) -> str:
    """Return the SHA-256 of values: their shape as text, a line feed, and float64, little-endian, row by row."""
    array = np.ascontiguousarray(values, dtype="<f8")
    return hashlib.sha256("x".join(map(str, array.shape)).encode() + b"\n" + array.tobytes()).hexdigest()


def largest_size(values: Any) -> Any:
    """Return the largest |x| of a CuPy array as a CuPy array; NaN counts as 1e300, more than any accepted value."""
    return _largest()(values)


@cache
def _largest() -> Any:
    size = "isnan((double)in) ? 1e300 : fabs((double)in)"
    return sys.modules["cupy"].ReductionKernel("T in", "float64 out", size, "max(a, b)", "out = a", "0", "largest_size")
