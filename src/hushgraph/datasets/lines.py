"""Tables of numbers in text files, plain or .gz."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import numpy as np

from hushgraph.text_files import CUT_SHORT


def open_text(path: Path):
    opener = gzip.open if path.suffix == ".gz" else open
    return opener(path, "rt", encoding="utf-8", newline="")


def number_table(path: Path, dtype) -> np.ndarray | None:
    """Rows of equally many numbers, comments after #; None for a file with anything else in it, which the caller then looks for."""
    try:
        with open_text(path) as lines, warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy would make 1 of 1.5, with a warning
            warnings.filterwarnings("ignore", message=".*input contained no data")
            return np.loadtxt(lines, dtype=dtype, comments="#", ndmin=2)
    except (ValueError, OverflowError, Warning, *CUT_SHORT):
        return None
