"""Arrays in .npy files, also damaged ones: NumPy evaluates their headers, and raises any of a dozen kinds of errors for a damaged one."""

from __future__ import annotations

import io
import math
from typing import BinaryIO, NamedTuple

import numpy as np


class ArrayHeader(NamedTuple):
    """What the header of a .npy file says of the numbers that follow it."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype

    @property
    def size(self) -> int:
        """Number of bytes of the numbers."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_array_header(file: BinaryIO) -> ArrayHeader | None:
    """Return what the header of an open .npy file says; None if it is damaged or does not announce plain values."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        header = ArrayHeader(*read(file))
    except OSError:
        raise
    except Exception:
        return None
    is_plain = not header.dtype.hasobject and header.dtype.subdtype is None and header.dtype.itemsize > 0
    return header if is_plain and version[0] <= 3 and all(0 <= length < 2**62 for length in header.shape) else None


def array_of(content: bytes) -> np.ndarray:
    """Return the array of the bytes of an .npy file; a ValueError if they are damaged, or more or fewer than their header says."""
    file = io.BytesIO(content)
    header = read_array_header(file)
    if header is None or header.size != len(content) - file.tell():
        raise ValueError
    values = np.frombuffer(content, header.dtype, offset=file.tell()) if header.size else np.empty(0, header.dtype)
    return values.reshape(header.shape, order="F" if header.fortran_order else "C")
