"""WaveletDenoiser: rows are signals; its options are those of denoise, checked when it is fitted or used."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._errors import InputError, InputTypeError

from .tables import Bad, each_of, grid, inf, nan, y

pytest.importorskip("sklearn")

rows = np.stack([y, y + 1])


def fitted(X=rows, **options):
    return hg.WaveletDenoiser(**{"graph": grid, "sigma": 1.0, **options}).fit(X)


def transformed(**options):
    return fitted(**options).transform(rows)


GRAPH = "graph must be a hushgraph.Graph; got "
COLUMNS = "X needs one column per node: expected (n_signals, 20), got "


@each_of(
    {
        "graph, an array": Bad(lambda: transformed(graph=grid.adjacency.toarray()), InputTypeError, f"{GRAPH}ndarray"),
        "sigma, two": Bad(lambda: transformed(sigma=[1, 2]), InputError, "or 20 of them, one per node; got shape (2,), smallest 1"),
        "n_probes": Bad(lambda: transformed(n_probes=0), InputError, "n_probes must be an integer of at least 1; got 0"),
        "seed": Bad(lambda: transformed(seed=-1), InputError, "seed must be an integer from 0 to 2^64 - 1; got -1"),
        "method": Bad(
            lambda: transformed(method="no"), InputError, "method must be one of 'auto', 'let', 'counts', 'filter', 'sgwt_sure', "
        ),
        "rule": Bad(
            lambda: transformed(rule="no"), InputError, "rule must be one of 'soft', 'james_stein', 'power', 'hard'; got 'no'"
        ),
        "law": Bad(lambda: transformed(law="no"), InputError, "law must be one of 'rademacher', 'gaussian'; got 'no'"),
        "five columns": Bad(lambda: fitted(np.ones((2, 5))), InputError, f"{COLUMNS}(2, 5); rows are signals here"),
        "turned": Bad(lambda: fitted(np.ones((20, 2))), InputError, f"{COLUMNS}(20, 2); rows are signals here"),
        "too large": Bad(
            lambda: fitted(np.full((2, 20), 1e200), sigma=None),
            InputError,
            "signal must be at most 1e+70 in size; the largest is 1e+200",
        ),
    }
)
def test_options_and_shape(bad):
    bad.is_refused()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        pytest.param(lambda: fitted(y), "Expected 2D array, got 1D array instead", id="one signal"),
        pytest.param(lambda: fitted(rows * nan), "Input X contains NaN", id="NaN"),
        pytest.param(lambda: fitted(np.full((2, 20), inf)), "Input X contains infinity", id="infinite"),
        pytest.param(lambda: fitted([["a"] * 20]), "could not convert string to float: 'a'", id="text"),
        pytest.param(lambda: fitted(rows * 1j), "Complex data not supported", id="complex"),
        pytest.param(lambda: fitted(np.ones((0, 20))), r"Found array with 0 sample\(s\)", id="no signals"),
        pytest.param(
            lambda: fitted().transform(np.ones((2, 5))), "X has 5 features, but WaveletDenoiser is expecting 20", id="columns"
        ),
        pytest.param(lambda: fitted().transform(rows * nan), "Input X contains NaN", id="NaN after fitting"),
    ],
)
def test_what_scikit_learn_refuses_itself(call, says):
    with pytest.raises(ValueError, match=says) as caught:
        call()
    assert type(caught.value) is ValueError
