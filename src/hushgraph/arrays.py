"""Arrays choose the machine: NumPy's are worked on by the processor, CuPy's by the GPU. CuPy is imported only by who brings its arrays."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np


def on_device(values) -> bool:
    """Whether it is an array on a GPU.

    >>> on_device(np.zeros(3)), on_device([1.0]), on_device(None)
    (False, False, False)
    """
    return type(values).__module__.partition(".")[0] == "cupy"


def namespace(values) -> Any:
    """NumPy, or CuPy for its arrays."""
    return sys.modules["cupy"] if on_device(values) else np


def beside(values, other) -> Any:
    """`values` where `other` is."""
    return namespace(other).asarray(values) if on_device(other) else on_host(values)


def on_host(values) -> Any:
    """`values` as NumPy has them."""
    return values.get() if on_device(values) else values


def largest_size(values) -> Any:
    """The largest |x| of an array on a GPU, left there; NaN counts as 1e300, more than anything that is let in."""
    return _largest()(values)


@cache
def _largest():
    size = "isnan((double)in) ? 1e300 : fabs((double)in)"
    return sys.modules["cupy"].ReductionKernel("T in", "float64 out", size, "max(a, b)", "out = a", "0", "largest_size")
