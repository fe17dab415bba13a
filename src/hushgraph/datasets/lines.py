"""Text files, plain or .gz, line by line with their numbers, so that errors can name them. Knows nothing else."""

from __future__ import annotations

import gzip
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

CUT_SHORT = (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError)  # what reading a damaged file raises


def existing_file(path, what: str) -> Path:
    path = Path(path)
    if not path.is_file():
        msg = f"{what} {path} does not exist or is a folder; check the path"
        raise FileNotFoundError(msg)
    return path


def open_text(path: Path):
    opener = gzip.open if path.suffix == ".gz" else open
    return opener(path, "rt", encoding="utf-8", newline="")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number from 1, line); a file that ends too early or is no text is an error.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.txt"
    ...     _ = path.write_text("a\\nb\\n")
    ...     list(numbered_lines(path))
    [(1, 'a\\n'), (2, 'b\\n')]
    """
    number, whole = 0, True
    try:
        with open_text(path) as lines:
            for line in lines:
                number += 1
                yield number, line
    except CUT_SHORT:
        whole = False
    if not whole:  # raised out here since the first error carries a piece of the file
        msg = f"{path} cannot be read after line {number}: it is truncated, not text, or not gzip; copy or download it again"
        raise ValueError(msg)


def number_table(path: Path, dtype) -> np.ndarray | None:
    """Rows of equally many numbers, comments after #; None for a file with anything else in it, which the caller then looks for."""
    try:
        with open_text(path) as lines, warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy would make 1 of 1.5, with a warning
            warnings.filterwarnings("ignore", message=".*input contained no data")
            return np.loadtxt(lines, dtype=dtype, comments="#", ndmin=2)
    except (ValueError, OverflowError, Warning, *CUT_SHORT):
        return None
