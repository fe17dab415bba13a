"""denoise and Noisy: what goes together, and what a noisy signal may hold."""

import numpy as np

import hushgraph as hg
from hushgraph._errors import InputError, InputTypeError

from .tables import Bad, W, each_of, frame, grid, inf, nan, noisy, nothing, turned, y

OWN_FRAMES = "method='auto' builds its own frames; with frame= or weights= say method='sgwt_sure'"
TRAVELS = "sigma travels with the noisy signal (1); leave sigma= out, got "
OTHER_GRAPH = f"these values belong to another graph ({grid.hash[:12]}...) than the one given ("


@each_of(
    {
        "no nodes": Bad(
            lambda: hg.denoise(nothing, [], sigma=1.0), InputError, "the graph has no nodes: there is nothing to denoise"
        ),
        "no value, drop": Bad(
            lambda: hg.denoise(grid, [nan] * 20, sigma=1.0, missing="drop"),
            InputError,
            "the signal has no value at all: every node is missing in at least one column",
        ),
        "no value, fill": Bad(
            lambda: hg.denoise(grid, [nan] * 20, sigma=1.0, missing="fill"),
            InputError,
            "the signal has no value at all: every node is missing in at least one column",
        ),
        "infinite is not missing": Bad(
            lambda: hg.denoise(grid, [inf] + [0.0] * 19, sigma=1.0, missing="drop"),
            InputError,
            "signal has 1 entries that are NaN or infinite (first: 0)",
        ),
        "missing and frame": Bad(
            lambda: hg.denoise(grid, [nan] + [0.0] * 19, sigma=1.0, missing="fill", frame=frame, method="sgwt_sure"),
            InputError,
            "frame= and weights= do not go with missing values: the graph shrinks to the nodes that have them",
        ),
        "auto and frame": Bad(lambda: hg.denoise(grid, y, sigma=1.0, frame=frame), InputError, OWN_FRAMES),
        "auto and weights": Bad(lambda: hg.denoise(grid, y, sigma=1.0, weights=W), InputError, OWN_FRAMES),
        "no noise": Bad(
            lambda: hg.denoise(grid, np.zeros(20)), InputError, "the estimated sigma is 0: over half the finest coefficients"
        ),
        "another sigma": Bad(lambda: hg.denoise(grid, noisy(), sigma=2.0), InputError, f"{TRAVELS}2.0"),
        "another graph": Bad(lambda: hg.denoise(turned, noisy()), InputError, f"{OTHER_GRAPH}{turned.hash[:12]}...)"),
        "three values": Bad(
            lambda: hg.denoise(grid, noisy(values=y[:3])),
            InputError,
            "signal needs one row per node: expected (20,) or (20, m), got (3,)",
        ),
    }
)
def test_denoise(bad):
    bad.is_refused()


@each_of(
    {
        "exportable simulation": Bad(
            lambda: noisy(kind="simulation", exportable=True),
            InputError,
            "a simulation is not exportable: its noise comes from a seed",
        ),
        "values as text": Bad(lambda: noisy(values=["a"] * 20), InputTypeError, "values must hold real numbers; got dtype <U1"),
        "a number": Bad(lambda: noisy(values=5.0), InputError, "values must be (n,) or (n, m) numbers; got ()"),
        "three axes": Bad(
            lambda: noisy(values=np.zeros((20, 2, 2))), InputError, "values must be (n,) or (n, m) numbers; got (20, 2, 2)"
        ),
        "a graph as hash": Bad(lambda: noisy(graph_hash=grid), InputTypeError, "graph_hash must be a str; got Graph(n=20"),
        "exportable as text": Bad(lambda: noisy(exportable="yes"), InputTypeError, "exportable must be a bool; got 'yes'"),
    }
)
def test_noisy_signals(bad):
    bad.is_refused()
