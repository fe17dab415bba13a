"""Maps: refused calls leave no figure open."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._errors import InputError, InputTypeError

from .tables import Bad, each_of, grid, inf, nan, path, y

matplotlib = pytest.importorskip("matplotlib")

NO_PLACES = "a map needs the places of the nodes; this graph has no coords, so build it with coords= (one row per node)"
GRAPH = "graph must be a hushgraph.Graph; got "
ROWS = "signal needs one row per node: expected (20,) or (20, m), got "
ONE_NAN = "signal has 1 entries that are NaN or infinite (first: 0)"
LIMITS = ", where finite numbers are expected"
WIDTH = "linewidth must be a width in points of at least 0; got "
TITLES = "signals must be a dict of at least one title and signal, for example {'Noisy': noisy}; got "
hole = [nan] + [0.0] * 19


@pytest.fixture(autouse=True)
def _no_figure_is_left(no_figures):
    """A refused call draws nothing."""
    matplotlib.use("Agg")
    yield
    assert not matplotlib.pyplot.get_fignums()


@each_of(
    {
        "graph": Bad(lambda: hg.plot_graph_signal(np.eye(20), y), InputTypeError, f"{GRAPH}ndarray"),
        "no places": Bad(lambda: hg.plot_graph_signal(path, [1, 2, 3]), InputError, NO_PLACES),
        "signal, length": Bad(lambda: hg.plot_graph_signal(grid, y[:-1]), InputError, f"{ROWS}(19,)"),
        "signal, NaN": Bad(lambda: hg.plot_graph_signal(grid, hole), InputError, ONE_NAN),
        "two signals": Bad(
            lambda: hg.plot_graph_signal(grid, np.stack([y, y], axis=1)),
            InputError,
            "a map shows one signal: expected (20,), got (20, 2); pick a column",
        ),
        "limits swapped": Bad(
            lambda: hg.plot_graph_signal(grid, y, vmin=5, vmax=1),
            InputError,
            f"vmin must be below vmax; got vmin=5 and vmax=1{LIMITS}",
        ),
        "vmax infinite": Bad(lambda: hg.plot_graph_signal(grid, y, vmax=inf), InputError, f" and vmax=inf{LIMITS}"),
        "vmax as text": Bad(lambda: hg.plot_graph_signal(grid, y, vmax="a"), InputError, f" and vmax='a'{LIMITS}"),
        "vmax negative": Bad(lambda: hg.plot_graph_signal(grid, y, vmax=-5), InputError, f" and vmax=-5{LIMITS}"),
        "linewidth negative": Bad(lambda: hg.plot_graph_signal(grid, y, linewidth=-1), InputError, f"{WIDTH}-1"),
        "ax": Bad(
            lambda: hg.plot_graph_signal(grid, y, ax=5),
            InputTypeError,
            "ax must be matplotlib axes, as plt.subplots returns them; got int",
        ),
        "transform": Bad(
            lambda: hg.plot_graph_signal(grid, y, transform="no"), InputError, "transform must be one of 'sqrt', 'linear'; got 'no'"
        ),
    }
)
def test_one_map(bad):
    bad.is_refused()


def test_unknown_colours():
    """matplotlib knows its colour maps, and says so itself."""
    with pytest.raises(ValueError, match="'no' is not a valid value"):
        hg.plot_graph_signal(grid, y, cmap="no")


@each_of(
    {
        "graph": Bad(lambda: hg.plot_maps(None, {"noisy": y}), InputTypeError, f"{GRAPH}NoneType"),
        "no places": Bad(lambda: hg.plot_maps(path, {"a": [1, 2, 3]}), InputError, NO_PLACES),
        "no signal": Bad(lambda: hg.plot_maps(grid, {}), InputError, f"{TITLES}an empty one"),
        "no titles": Bad(lambda: hg.plot_maps(grid, y), InputError, f"{TITLES}ndarray"),
        "second signal, length": Bad(lambda: hg.plot_maps(grid, {"a": y, "b": y[:3]}), InputError, f"{ROWS}(3,)"),
        "signal, infinite": Bad(lambda: hg.plot_maps(grid, {"noisy": [inf, *y[1:]]}), InputError, "infinite"),
    }
)
def test_several_maps(bad):
    bad.is_refused()
