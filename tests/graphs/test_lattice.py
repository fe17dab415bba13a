"""Which graphs are images: found from coordinates and edges, not from how the graph was made."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.graphs import lattice_of
from hushgraph.graphs.graph import Graph


def moved(graph, coords=None, pairs=None, weights=None):
    edges = graph.adjacency.tocoo()
    keep = edges.row < edges.col
    own = np.stack([edges.row[keep], edges.col[keep]], axis=1)
    return Graph.from_edges(
        own if pairs is None else pairs, n=graph.n, weights=weights, coords=graph.coords if coords is None else coords
    )


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2), (5, 9), (40, 31)])
@pytest.mark.parametrize("neighbours", [4, 8])
def test_images_are_lattices(shape, neighbours):
    lattice = lattice_of(Graph.from_image(shape, neighbours=neighbours))
    assert lattice.shape == shape
    assert lattice.order is None


def test_a_grid_that_was_saved_and_read_again_is_one(tmp_path):
    grid = hg.datasets.grid(6, 8)
    hg.write_graph(tmp_path / "grid.npz", grid)
    assert lattice_of(hg.read_graph(tmp_path / "grid.npz")).shape == (6, 8)


def test_steps_offsets_and_order_of_nodes_do_not_matter():
    rng = np.random.default_rng(0)
    grid = Graph.from_image((11, 17), neighbours=4)
    stretched = moved(grid, grid.coords * [0.1, 7.3] + [1234.5, -0.7])
    assert lattice_of(stretched).shape == (11, 17)
    numbers = rng.permutation(grid.n)
    lattice, picture = lattice_of(stretched.subgraph(numbers)), rng.normal(size=grid.n)
    assert lattice.shape == (11, 17)
    np.testing.assert_array_equal(lattice.image(picture[numbers]), picture.reshape(11, 17))
    np.testing.assert_array_equal(lattice.signal(picture.reshape(11, 17)), picture[numbers])


def test_weights_do_not_matter():
    grid = Graph.from_image((6, 5), neighbours=4)
    assert lattice_of(moved(grid, weights=np.arange(1.0, grid.n_edges + 1))) is not None


def no_lattices():
    grid = Graph.from_image((8, 9), neighbours=4)
    edges = grid.adjacency.tocoo()
    pairs = np.stack([edges.row, edges.col], axis=1)[edges.row < edges.col]
    shaken = grid.coords + np.random.default_rng(0).normal(0, 1e-3, grid.coords.shape)
    twice = grid.coords.copy()
    twice[0] = twice[1]
    return {
        "city": hg.datasets.city(200),
        "no coordinates": Graph.from_edges(pairs, n=grid.n),
        "three coordinates": moved(grid, np.pad(grid.coords, ((0, 0), (0, 1)))),
        "a pixel is missing": grid.subgraph(np.arange(1, grid.n)),
        "an edge is missing": moved(grid, pairs=pairs[1:]),
        "a long edge": moved(grid, pairs=np.concatenate([pairs, [[0, 2]]])),
        "a torus": moved(grid, pairs=np.concatenate([pairs, [[0, 8]]])),
        "shaken": moved(grid, shaken),
        "two nodes at one place": moved(grid, twice),
        "uneven columns": moved(grid, np.stack([grid.coords[:, 0] ** 2, grid.coords[:, 1]], axis=1)),
        "random points": hg.datasets.random_geometric(100),
        "nothing": Graph.from_edges(np.empty((0, 2), dtype=int), n=0, coords=np.empty((0, 2))),
    }


@pytest.mark.parametrize("name", list(no_lattices()))
def test_other_graphs_are_none(name):
    assert lattice_of(no_lattices()[name]) is None
