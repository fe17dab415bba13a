"""Signals: one real and finite number per node; generated signals; how far two signals are apart."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._errors import InputError, InputTypeError

from .tables import Bad, each_of, each_value, frame, grid, inf, named, nan, y

ROWS = "signal needs one row per node: expected (20,) or (20, m), got "
REAL = "signal must hold real numbers; got "
NO_COLUMNS = "signal has no columns: got (20, 0), where at least one signal is expected"
ONE_NAN = "signal has 1 entries that are NaN or infinite (first: 0)"
hole = [nan] + [0.0] * 19


@each_of(
    {
        "19 nodes": Bad(lambda: grid.align(y[:-1]), InputError, f"{ROWS}(19,)"),
        "signals as rows": Bad(lambda: grid.align(np.stack([y, y, y])), InputError, f"{ROWS}(3, 20); pass Y.T if signals are rows"),
        "three axes": Bad(lambda: grid.align(np.zeros((20, 2, 2))), InputError, f"{ROWS}(20, 2, 2)"),
        "no columns": Bad(lambda: grid.align(np.zeros((20, 0))), InputError, NO_COLUMNS),
        "a number": Bad(lambda: grid.align(5.0), InputError, f"{ROWS}()"),
        "NaN": Bad(lambda: grid.align(hole), InputError, f"{ONE_NAN}; clean them"),
        "infinite": Bad(
            lambda: grid.align([0.0, inf, -inf] + [0.0] * 17),
            InputError,
            "signal has 2 entries that are NaN or infinite (first: 1, 2)",
        ),
        "masked": Bad(
            lambda: grid.align(np.ma.masked_less(y, 5)), InputError, "signal has 11 masked entries, and the mask would be lost"
        ),
    }
)
def test_a_signal_is_one_finite_number_per_node(bad):
    bad.is_refused()


@each_of(
    {
        "None": Bad(lambda: grid.align(None), InputTypeError, f"{REAL}dtype object"),
        "numbers as text": Bad(lambda: grid.align(y.astype(str)), InputTypeError, f"{REAL}dtype <U"),
        "complex": Bad(lambda: grid.align(y * 1j), InputTypeError, f"{REAL}dtype complex128"),
        "times": Bad(lambda: grid.align(y.astype("datetime64[s]")), InputTypeError, f"{REAL}dtype datetime64[s]"),
        "rows of unequal length": Bad(lambda: grid.align([[1, 2], [3]]), InputTypeError, f"{REAL}rows of unequal length"),
    }
)
def test_a_signal_is_real(bad):
    bad.is_refused()


@each_of(
    {
        "analyze, length": Bad(lambda: hg.analyze(frame, y[:-1]), InputError, f"{ROWS}(19,)"),
        "analyze, NaN": Bad(lambda: hg.analyze(frame, hole), InputError, ONE_NAN),
        "estimate_sigma, length": Bad(lambda: hg.estimate_sigma(grid, y[:-1]), InputError, f"{ROWS}(19,)"),
        "estimate_sigma, NaN": Bad(lambda: hg.estimate_sigma(grid, hole), InputError, ONE_NAN),
        "denoise, length": Bad(lambda: hg.denoise(grid, y[:-1], sigma=1.0), InputError, f"{ROWS}(19,)"),
        "denoise, NaN": Bad(lambda: hg.denoise(grid, hole, sigma=1.0), InputError, ONE_NAN),
    }
)
def test_who_needs_a_signal(bad):
    bad.is_refused()


# ---- labels --------------------------------------------------------------------------------------------------------

DIFFER = "labels of signal and graph differ: "


@each_of(
    {
        "numbers": Bad(
            lambda: grid.align({0: 1.0, 1: 2.0}),
            InputError,
            f"{DIFFER}18 nodes have no value (first: [2, 3, 4]), 0 labels are not nodes; reindex signal to the numbers 0 to 19",
        ),
        "numbers as text": Bad(
            lambda: grid.align({str(i): 1.0 for i in range(20)}),
            InputError,
            "20 labels are not nodes (first: '0'); the graph has integers, these are text: turn them into integers",
        ),
        "one missing": Bad(
            lambda: hg.denoise(named, {"a": 1, "b": 2}, sigma=1.0),
            InputError,
            f"{DIFFER}1 nodes have no value (first: ['c']), 0 labels",
        ),
        "one too many": Bad(
            lambda: hg.denoise(named, {"a": 1, "b": 2, "c": 3, "d": 4}, sigma=1.0),
            InputError,
            f"{DIFFER}0 nodes have no value (first: []), 1 labels are not nodes (first: 'd'); reindex signal to graph.labels",
        ),
        "none at all": Bad(lambda: hg.denoise(named, {}, sigma=1.0), InputError, f"{DIFFER}3 nodes have no value"),
        "a value None": Bad(
            lambda: hg.denoise(named, {"a": 1, "b": 2, "c": None}, sigma=1.0), InputTypeError, f"{REAL}dtype object"
        ),
        "a value of two": Bad(
            lambda: hg.denoise(named, {"a": 1, "b": 2, "c": [1, 2]}, sigma=1.0), InputTypeError, f"{REAL}rows of unequal length"
        ),
    }
)
def test_labels_match(bad):
    bad.is_refused()


# ---- generated signals ---------------------------------------------------------------------------------------------

PROBABILITY = "p must be a probability strictly between 0 and 1; got "
TIMES = "k must be an integer of at least 0 (how often W is applied); got "


@each_of(
    {
        "p 0": Bad(lambda: hg.bernoulli_signal(grid, p=0), InputError, f"{PROBABILITY}0"),
        "p 1": Bad(lambda: hg.bernoulli_signal(grid, p=1), InputError, f"{PROBABILITY}1"),
        "k negative": Bad(lambda: hg.bernoulli_signal(grid, k=-1), InputError, f"{TIMES}-1"),
        "seed": Bad(lambda: hg.bernoulli_signal(grid, seed=-1), InputError, "seed must be an integer from 0 to 2^64 - 1; got -1"),
    }
)
def test_random_signals(bad):
    bad.is_refused()


# ---- how far two signals are apart ---------------------------------------------------------------------------------

PAIR = "truth and estimate must both be (n,) or both (n, m), and not empty; got "


@each_of(
    {
        "lengths": Bad(lambda: hg.snr([1, 2], [1, 2, 3]), InputError, f"{PAIR}(2,) and (3,)"),
        "empty": Bad(lambda: hg.snr([], []), InputError, f"{PAIR}(0,)"),
        "truth 0": Bad(
            lambda: hg.snr([0, 0], [1, 1]), InputError, "truth is zero everywhere, so its SNR is undefined; use mse instead"
        ),
        "truth NaN": Bad(
            lambda: hg.snr([nan, 1], [1, 1]), InputError, "truth has 1 entries that are NaN or infinite; compare only known"
        ),
        "truth as text": Bad(lambda: hg.snr(["a", "b"], [1, 2]), InputTypeError, "truth must hold real numbers; got dtype <U1"),
        "estimate infinite": Bad(lambda: hg.snr([1, 1], [1, inf]), InputError, "estimate has 1 entries that are NaN or infinite"),
        "estimate with its error": Bad(
            lambda: hg.snr(y, hg.denoise(grid, y, sigma=1.0)), InputTypeError, "estimate must hold real numbers; got "
        ),
        "labels": Bad(
            lambda: hg.snr({"a": 1.0}, {"b": 2.0}),
            InputError,
            "truth and estimate have different labels (index), or in another order",
        ),
    }
)
def test_signal_to_noise_ratio(bad):
    bad.is_refused()


@each_value("module", [hg, hg.datasets])
def test_unknown_attributes(module):
    with pytest.raises(AttributeError, match="attribute nowhere"):
        module.nowhere  # noqa: B018 - looking it up is the test
