"""expected_error: an average by the probabilities of a local walk, whatever the graph."""

import networkx as nx
import numpy as np
import pytest

import hushgraph as hg
from hushgraph.estimators.node_risk import walk_matrix


def grid_beside_clique():
    """A grid of 40 x 40 nodes, joined to a clique of 60 by two edges."""
    clique = nx.relabel_nodes(nx.complete_graph(60), lambda i: 1600 + i)
    both = nx.union(nx.convert_node_labels_to_integers(nx.grid_2d_graph(40, 40)), clique)
    both.add_edges_from([(799, 1600), (839, 1601)])
    return hg.Graph.from_networkx(both)


def star_and_isolated_node():
    return hg.Graph.from_edges([(0, i) for i in range(1, 400)], n=401)


GRAPHS = {
    "clique": grid_beside_clique,
    "star": star_and_isolated_node,
    "hubs": lambda: hg.Graph.from_networkx(nx.barabasi_albert_graph(2000, 3, seed=1)),
    "city": lambda: hg.datasets.city(800),
    "no edges": lambda: hg.Graph.from_edges(np.empty((0, 2), int), n=4),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_hop_is_a_probability_and_keeps_the_sum(name):
    walk = walk_matrix(GRAPHS[name]())
    assert walk.data.min() >= 0
    np.testing.assert_allclose(walk.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(walk.sum(axis=0), 1.0, rtol=1e-12)


def test_a_dense_part_keeps_its_error_to_itself():
    """Noise of 1 on the grid and of 10 in the clique: nobody on the grid is said to be far worse than the grid is."""
    graph = grid_beside_clique()
    sigma = np.repeat([1.0, 10.0], [1600, 60])
    truth = np.concatenate([np.repeat([0.0, 4.0], 800), np.random.default_rng(5).normal(0, 30, 60)])
    result = hg.denoise(graph, truth + sigma * np.random.default_rng(0).normal(size=graph.n), sigma=sigma, method="sgwt_deep")
    expected, actual = result.expected_error()[:1600], (result.signal - truth)[:1600]
    assert np.sqrt(np.mean(expected**2)) == pytest.approx(np.sqrt(np.mean(actual**2)), rel=0.35)  # path counts said 7 times as much
    apart = np.abs(np.arange(1600) // 40 - 19.5) > 3  # rows that lie away from the step and from the edges into the clique
    assert expected[apart].max() < 1.0


def test_hubs_do_not_make_all_nodes_alike():
    """A rough signal, and half of the nodes have three times the noise: their errors are said to be larger, as they are."""
    graph = GRAPHS["hubs"]()
    sigma = np.where(np.arange(graph.n) % 2 == 0, 3.0, 1.0)
    rng = np.random.default_rng(0)
    truth = rng.normal(0, 6, graph.n)
    result = hg.denoise(graph, truth + sigma * rng.normal(size=graph.n), sigma=sigma)
    expected, actual = result.expected_error() ** 2, (result.signal - truth) ** 2
    for loud in (sigma == 3.0, sigma == 1.0):
        assert expected[loud].mean() == pytest.approx(actual[loud].mean(), rel=0.3)


@pytest.mark.parametrize("hops", [0, 16, 300, 3000])
def test_many_hops_reach_everything_and_lose_nothing(hops):
    graph = star_and_isolated_node()
    result = hg.denoise(graph, np.random.default_rng(0).normal(0, 1, graph.n), sigma=1)
    assert np.isfinite(result.expected_error(hops=hops)).all()
