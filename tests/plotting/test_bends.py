"""Streets that bend are packed for the maps of reports and of the explorer."""

import numpy as np
import pytest
from scipy import sparse

import hushgraph as hg
from hushgraph.graphs import Curves
from hushgraph.plotting import drawing_order, pack_graph

from .test_report import unpacked


def bent(graph, scale):
    """Return the graph with a bend in every second edge, at a third of its way and 0.3 of its length beside it."""
    upper = sparse.triu(graph.adjacency).tocoo()
    pairs, coords = np.stack([upper.row, upper.col], axis=1), graph.coords * scale
    begin, along = coords[pairs[:, 0]], coords[pairs[:, 1]] - coords[pairs[:, 0]]
    bend = begin + along / 3 + 0.3 * np.stack([-along[:, 1], along[:, 0]], axis=1)
    lines = [None if k % 2 else [a, b, a + d] for k, (a, b, d) in enumerate(zip(begin, bend, along, strict=True))]
    return hg.Graph(graph.adjacency, coords=coords, crs="lonlat" if scale < 1 else None, curves=Curves.of(pairs, lines, coords))


@pytest.mark.parametrize("scale", [1.0, 1e-5])
def test_packed_bends_are_those_of_the_graph(scale):
    graph = bent(hg.datasets.city(300), scale)
    packed = pack_graph(graph, drawing_order(graph))
    bends = {name: unpacked(packed["bends"][name]) for name in ("x", "y", "sizes", "edges")}
    assert (bends["sizes"] == 1).all()
    degrees, offsets = unpacked(packed["degrees"]).astype(int), unpacked(packed["offsets"]).astype(int)
    first = np.repeat(np.arange(graph.n), degrees)
    edges = bends["edges"].astype(int)
    places = np.stack([unpacked(packed["x"]), unpacked(packed["y"])], axis=1)
    begin, end = places[first[edges]], places[(first + offsets)[edges]]
    bend, along = np.stack([bends["x"], bends["y"]], axis=1), end - begin
    length = np.linalg.norm(along, axis=1)
    near = np.minimum(np.linalg.norm(bend - begin, axis=1), np.linalg.norm(bend - end, axis=1)) / length
    is_long = length > np.median(length) / 2  # of short edges rounding is a large part
    np.testing.assert_allclose(near[is_long], np.hypot(1 / 3, 0.3), atol=0.1)
    assert len(edges) == len(graph.curves.edges)


def test_straight_streets_have_none():
    graph = hg.datasets.city(100)
    assert pack_graph(graph, drawing_order(graph))["bends"] is None
