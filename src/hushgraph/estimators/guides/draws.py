"""Marks of noisy values, by which a guide is recognised that was made from the same draw of the noise.

SURE is unbiased for a guided estimate because guides do not depend on the noise of the signal. A guide that holds the same noise (the
noisy map itself, or a map that was denoised from it) would be believed where it repeats the noise. Every result therefore carries
the marks of all the noisy maps it was made from, those of its guides among them.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from hushgraph._arrays import on_host

SAMPLE = 256  # values that a mark is made of
LEAST = 8  # nodes: fewer values may agree by chance


def draw_marks(values: Any) -> frozenset[str]:
    """Return a mark for each column of values (n,) or (n, m), which may be on a GPU.

    A mark is a hash of a few values at even distances: two draws of the noise never agree on all of them.

    >>> draw_marks(np.arange(9.0)) == draw_marks(np.arange(9)[:, None])
    True
    """
    if len(values) < LEAST:
        return frozenset()
    step = max(1, len(values) // SAMPLE)
    sample = np.asarray(on_host(values[::step]), dtype=np.float64).reshape(-(-len(values) // step), -1)
    return frozenset(hashlib.sha256(np.ascontiguousarray(column).tobytes()).hexdigest()[:16] for column in sample.T)
