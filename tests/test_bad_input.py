"""Bad input gives an error that says what was expected and what came; odd but sensible input gives the right number.

Calls are texts, so that the name of a failing test is the call that reproduces it; BAD stands for the argument under test.
"""

import subprocess
import sys

import numpy as np
import pytest

import hushgraph as hg


class Names(dict):
    """What the calls may name, built when first used."""

    def __missing__(self, name):
        if name not in RECIPES:
            raise KeyError(name)
        self[name] = eval(RECIPES[name], self)
        return self[name]


RECIPES = {
    "grid": "hg.datasets.grid(4, 5)",
    "turned": "hg.datasets.grid(5, 4)",  # as many nodes as grid, other edges
    "large": "hg.datasets.grid(25, 25)",  # large enough for Lanczos
    "path": "hg.Graph.from_edges([(0, 1), (1, 2)])",
    "named": "hg.Graph.from_edges([(0, 1), (1, 2)], labels=['a', 'b', 'c'])",
    "nothing": "hg.Graph.from_edges([], n=0)",
    "point": "hg.Graph.from_edges([], n=1)",
    "dust": "hg.Graph.from_edges([], n=5)",
    "y": "np.random.default_rng(0).normal(5, 2, 20)",
    "frame": "hg.chebyshev_frame(grid, degree=20)",
    "exact": "hg.exact_frame(grid)",
    "W": "hg.monte_carlo_weights(frame, n_probes=4)",
    "F": "hg.analyze(frame, y)",
    "truth": "hg.analyze(frame, y.round(-1))",
    "noisy": "hg.Noisy(y, sigma=1.0, kind='measurement', graph_hash=grid.hash)",
    "nx": "__import__('networkx')",
    "ig": "__import__('igraph')",
    "pd": "__import__('pandas')",
    "ma": "np.ma",
    "plt": "__import__('matplotlib.pyplot').pyplot",
    "streets": "nx.Graph([('a', 'b', dict(w='x', d=0.0, s=-1, n=nan, lists=[1, 2])), ('b', 'c', dict(w=1, d=2.0, s=1, n=1, lists=3))])",
    "fit": "lambda **options: hg.WaveletDenoiser(**{'graph': grid, 'sigma': 1.0, **options}).fit(np.stack([y, y + 1]))",
}
NAMES = Names(hg=hg, np=np, nan=np.nan, inf=np.inf)


def run(call):
    return eval(call, {}, NAMES) if "lambda" not in call and " for " not in call else eval(call, dict(whole_namespace(call)))


def whole_namespace(call):
    """Functions inside a call look their names up in real globals, so everything the call mentions is built first."""
    for name in RECIPES:
        if name in call:
            NAMES[name]
    return NAMES


def refused(call, words):
    """The call raises a TypeError, ValueError or IndexError whose text matches `words`, and opens no figure."""
    with pytest.raises((TypeError, ValueError, IndexError), match=words):
        run(call)


def fine_or_refused(call, words):
    """The value of the call, which must be finite; or None if it was refused with these words."""
    try:
        value = run(call)
    except (TypeError, ValueError) as error:
        assert pytest.raises(type(error), match=words), error
        import re

        assert re.search(words, str(error)), f"{type(error).__name__}: {error}"
        return None
    assert np.isfinite(value).all(), f"silently not finite: {value}"
    return value
