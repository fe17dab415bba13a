"""Signals and noise levels that are tables of pandas, whose labels name the nodes."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._errors import InputError

from .tables import Bad, each_of, grid, named, nan, y

pd = pytest.importorskip("pandas")

LABELS = ["a", "b", "c"]


@each_of(
    {
        "from 1": Bad(
            lambda: grid.align(pd.Series(y, index=range(1, 21))),
            InputError,
            "1 nodes have no value (first: [0]), 1 labels are not nodes (first: 20); reindex signal to the numbers 0 to 19",
        ),
        "repeated": Bad(
            lambda: grid.align(pd.Series(y, index=[0, *range(19)])),
            InputError,
            "signal has 1 repeated labels; each node needs exactly one value",
        ),
        "signals as rows": Bad(lambda: grid.align(pd.DataFrame([y, y])), InputError, "pass Y.T if signals are rows"),
        "numbers for names": Bad(
            lambda: hg.denoise(named, pd.Series([1, 2, 3]), sigma=1.0),
            InputError,
            "3 labels are not nodes (first: 0); the graph has text, these are integers: turn them into text; reindex signal to graph.labels",
        ),
        "missing": Bad(
            lambda: hg.denoise(named, pd.Series([1, None, 3], index=LABELS, dtype="Int64"), sigma=1.0),
            InputError,
            "signal has 1 entries that are NaN or infinite (first: 'b')",
        ),
    }
)
def test_signals(bad):
    bad.is_refused()


@each_of(
    {
        "from 1": Bad(
            lambda: hg.denoise(grid, y, sigma=pd.Series(np.ones(20), index=range(1, 21))),
            InputError,
            "labels of sigma and graph differ: 1 nodes have no value (first: [0]), 1 labels are not nodes (first: 20)",
        ),
        "NaN": Bad(
            lambda: hg.denoise(grid, y, sigma=pd.Series(np.full(20, nan))),
            InputError,
            "sigma has 20 entries that are NaN or infinite",
        ),
    }
)
def test_noise_levels(bad):
    bad.is_refused()


def test_labels_are_compared_not_places():
    one, other = pd.Series([1.0, 2.0], index=["a", "b"]), pd.Series([2.0, 1.0], index=["b", "a"])
    Bad(
        lambda: hg.snr(one, other), InputError, "truth and estimate have different labels (index), or in another order"
    ).is_refused()
