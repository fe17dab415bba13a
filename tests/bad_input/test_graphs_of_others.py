"""Graphs that networkx and igraph made."""

import pytest

import hushgraph as hg
from hushgraph._errors import InputError, InputTypeError

from .tables import Bad, each_of, nan

nx, ig = pytest.importorskip("networkx"), pytest.importorskip("igraph")

streets = nx.Graph()
streets.add_edge("a", "b", text="12.5 m", lists=[1, 2], zero=0.0, negative=-1, missing=nan)
streets.add_edge("b", "c", text="3", lists=3, zero=2.0, negative=1, missing=1)
parallel = nx.MultiGraph([(0, 1, {"w": 1}), (0, 1, {"w": 2})])
places = nx.Graph()
places.add_node("a", x="west", y="north")
triangle = ig.Graph(n=3, edges=[(0, 1), (1, 2), (0, 2)])


@each_of(
    {
        "a number": Bad(lambda: hg.Graph.from_networkx(5), InputTypeError, "from_networkx needs a networkx graph; got int"),
        "of igraph": Bad(
            lambda: hg.Graph.from_networkx(triangle), InputTypeError, "from_networkx needs a networkx graph; got Graph"
        ),
        "no such weight": Bad(
            lambda: hg.Graph.from_networkx(streets, weight="absent"),
            InputError,
            "2 of 2 edges have no attribute 'absent'; give it to all",
        ),
        "weight and distance": Bad(
            lambda: hg.Graph.from_networkx(streets, weight="zero", distance="zero"),
            InputError,
            "give weight= (an affinity) or distance= (a length), not both; got 'zero' and 'zero'",
        ),
        "distance 0": Bad(
            lambda: hg.Graph.from_networkx(streets, distance="zero"), InputError, "lengths in 'zero' must be finite and above 0"
        ),
        "negative weight": Bad(
            lambda: hg.Graph.from_networkx(streets, weight="negative"),
            InputError,
            "edge weights must not be negative (they are affinities: larger is closer); the smallest is -1",
        ),
        "weight as text": Bad(
            lambda: hg.Graph.from_networkx(streets, weight="text"),
            InputError,
            "edge attribute 'text' must be numbers; 1 of 2 are other text",
        ),
        "weight as lists": Bad(
            lambda: hg.Graph.from_networkx(streets, weight="lists"),
            InputTypeError,
            "edge attribute 'lists' must hold real numbers; got rows of unequal length",
        ),
        "parallel edges": Bad(
            lambda: hg.Graph.from_networkx(parallel, weight="w"),
            InputError,
            "edge (0, 1) is given more than once with different weights (1 and 2)",
        ),
        "places as text": Bad(
            lambda: hg.Graph.from_networkx(places), InputError, "node attribute 'x' must be numbers; 1 of 1 are other text"
        ),
        "duplicates": Bad(
            lambda: hg.Graph.from_networkx(streets, duplicates="no"),
            InputError,
            "duplicates must be one of 'error', 'sum', 'max'; got 'no'",
        ),
    }
)
def test_graphs_of_networkx(bad):
    bad.is_refused()


@each_of(
    {
        "a number": Bad(lambda: hg.Graph.from_igraph(5), InputTypeError, "from_igraph needs an igraph.Graph; got int"),
        "of networkx": Bad(lambda: hg.Graph.from_igraph(streets), InputTypeError, "from_igraph needs an igraph.Graph; got Graph"),
        "no such weight": Bad(
            lambda: hg.Graph.from_igraph(triangle, weight="absent"),
            InputError,
            "the edges have no attribute 'absent'; they have []",
        ),
    }
)
def test_graphs_of_igraph(bad):
    bad.is_refused()
