"""Arrays choose the machine: NumPy's are worked on by the processor, CuPy's by the GPU. CuPy is imported only by who brings its arrays."""

from __future__ import annotations

import sys
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
