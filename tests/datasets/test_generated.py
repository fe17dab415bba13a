"""Generated graphs and signals have the statistics they promise, and the metrics say what they mean."""

import numpy as np
import pytest

from hushgraph import datasets
from hushgraph.datasets.signals import bernoulli_signal, hotspot_counts, piecewise_constant_signal, smooth_signal
from hushgraph.estimators.metrics import mse, snr
from hushgraph.graphs.graph import Graph


def degree_shares(graph):
    return np.bincount(graph.degrees.astype(int), minlength=12) / graph.n


def edge_lengths(graph):
    edges = graph.adjacency.tocoo()
    return np.linalg.norm(graph.coords[edges.row] - graph.coords[edges.col], axis=1)


@pytest.fixture(scope="module")
def town():
    return datasets.city(2000, seed=3)


@pytest.fixture(scope="module")
def path():
    return Graph.from_edges([(i, i + 1) for i in range(199)], n=200)


# ---- graphs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_nodes", [100, 1000, 4600])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_city_is_connected_and_street_like(n_nodes, seed):
    graph = datasets.city(n_nodes, seed=seed)
    assert abs(graph.n / n_nodes - 1) <= 0.1
    assert graph.components.max() == 0
    assert graph.degrees.max() <= 9
    assert 3.1 < graph.degrees.mean() < 3.7
    assert graph.crs is None


def test_city_has_street_like_lengths_and_dead_ends():
    graph = datasets.city(4600)
    low, high = np.quantile(edge_lengths(graph), [0.005, 0.995])
    assert low > 35
    assert high < 400
    assert 0.02 < degree_shares(graph)[1] < 0.09


def test_large_city_keeps_its_size():
    assert abs(datasets.city(40_000).n / 40_000 - 1) <= 0.1


def test_roads_have_road_like_degrees():
    graph = datasets.roads(60_000, seed=1)
    assert graph.n == 60_000
    assert 2.6 <= graph.degrees.mean() <= 2.9
    np.testing.assert_allclose(degree_shares(graph)[1:5], [0.09, 0.33, 0.42, 0.145], atol=0.03)
    assert 8 <= graph.degrees.max() <= 10
    assert np.bincount(graph.components).min() <= 3 < graph.components.max()


@pytest.mark.parametrize("n_nodes", [100, 101, 997, 12_345])
def test_roads_have_exactly_the_nodes_asked_for(n_nodes):
    assert datasets.roads(n_nodes).n == n_nodes


def test_roads_are_numbered_with_locality_but_not_sorted():
    graph = datasets.roads(50_000)
    edges = graph.adjacency.tocoo()
    assert np.median(np.abs(edges.row - edges.col)) < 200
    assert np.any(np.diff(graph.coords[:, 0]) < 0)
    assert np.any(np.diff(graph.coords[:, 1]) < 0)


@pytest.mark.parametrize("make", [datasets.city, datasets.roads, datasets.random_geometric])
def test_seed_decides_the_graph(make):
    first, again, other = make(500, seed=4), make(500, seed=4), make(500, seed=5)
    assert first.hash == again.hash != other.hash
    np.testing.assert_array_equal(first.coords, again.coords)


def test_grid_joins_four_neighbours():
    graph = datasets.grid(3, 5)
    assert (graph.n, graph.n_edges) == (15, 2 * 5 + 3 * 4)
    np.testing.assert_allclose(edge_lengths(graph), 1.0)


def test_random_geometric_joins_exactly_the_close_pairs():
    graph = datasets.random_geometric(60, radius=0.2, seed=2)
    distance = np.linalg.norm(graph.coords[:, None] - graph.coords[None], axis=2)
    np.testing.assert_array_equal(graph.adjacency.toarray(), (distance <= 0.2) & ~np.eye(60, dtype=bool))
    assert 5 < datasets.random_geometric(20_000).degrees.mean() < 7


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: datasets.city(50), "n_nodes must be an integer of at least 100; got 50"),
        (lambda: datasets.city(True), "n_nodes must be an integer"),
        (lambda: datasets.roads(1e6), "n_nodes must be an integer of at least 100; got 1000000.0"),
        (lambda: datasets.grid(0, 3), "rows must be an integer of at least 1; got 0"),
        (lambda: datasets.grid(3, 2.5), "columns must be an integer"),
        (lambda: datasets.random_geometric(0), "n_nodes must be an integer of at least 1"),
        (lambda: datasets.random_geometric(9, radius=-1.0), "radius must be a finite distance"),
        (lambda: datasets.random_geometric(9, radius=np.nan), "radius must be a finite distance"),
    ],
)
def test_graph_errors_say_what_was_expected(call, text):
    with pytest.raises(ValueError, match=text):
        call()


# ---- signals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 1, 4])
def test_bernoulli_signal_is_w_to_the_k_times_bernoulli(town, k):
    x = (np.random.default_rng(7).random(town.n) < 0.01).astype(float)
    expected = np.linalg.matrix_power(town.adjacency.toarray(), k) @ x
    np.testing.assert_array_equal(bernoulli_signal(town, p=0.01, k=k, seed=7), expected)
    np.testing.assert_array_equal(bernoulli_signal(town, p=0.01, k=k, seed=np.random.default_rng(7)), expected)


def test_the_old_name_of_the_seed_works_with_a_warning(town):
    with pytest.warns(DeprecationWarning, match=r"rng=? of bernoulli_signal is called seed"):
        signal = bernoulli_signal(town, p=0.01, k=2, rng=7)
    np.testing.assert_array_equal(signal, bernoulli_signal(town, p=0.01, k=2, seed=7))
    with pytest.raises(TypeError, match=r"the same parameter|not both"):
        bernoulli_signal(town, rng=7, seed=7)


def test_hotspot_counts_look_like_pickups():
    graph = datasets.city(4600)
    counts = hotspot_counts(graph, total=13_500)
    assert np.all(counts >= 0)
    assert np.all(counts == counts.round())
    assert abs(counts.sum() - 13_500) < 6 * np.sqrt(13_500)
    assert 0.35 < (counts == 0).mean() < 0.65
    assert 50 < counts.max() < 200


@pytest.mark.parametrize("make", [hotspot_counts, smooth_signal, piecewise_constant_signal])
def test_seed_decides_the_signal(town, make):
    np.testing.assert_array_equal(make(town, seed=1), make(town, seed=1))
    assert np.any(make(town, seed=1) != make(town, seed=2))


@pytest.mark.parametrize("name", ["town", "path"])
def test_smooth_signal_varies_slowly(name, request):
    graph = request.getfixturevalue(name)
    signal = smooth_signal(graph)
    assert abs(signal.mean()) < 1e-12
    assert abs(signal.std() - 1) < 1e-12
    shuffled = np.random.default_rng(0).permutation(signal)
    roughness = [x @ (graph.laplacian() @ x) for x in (signal, shuffled)]
    assert roughness[0] < 0.1 * roughness[1]


@pytest.mark.parametrize("name", ["town", "path"])
def test_piecewise_constant_signal_has_as_many_levels_as_pieces(name, request):
    graph = request.getfixturevalue(name)
    signal = piecewise_constant_signal(graph, n_pieces=5)
    assert set(signal) == {0.0, 1.0, 2.0, 3.0, 4.0}
    edges = graph.adjacency.tocoo()
    assert np.mean(signal[edges.row] != signal[edges.col]) < 0.15


def test_pieces_of_a_path_are_intervals(path):
    assert np.count_nonzero(np.diff(piecewise_constant_signal(path, n_pieces=6))) == 5


def test_pieces_reach_every_component():
    graph = Graph.from_edges([(0, 1), (2, 3)], n=6)
    assert np.isin(piecewise_constant_signal(graph, n_pieces=1), [0.0]).all()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda g: bernoulli_signal(g, p=0.0), "p must be a probability strictly between 0 and 1; got 0.0"),
        (lambda g: bernoulli_signal(g, p=np.nan), "p must be a probability"),
        (lambda g: bernoulli_signal(g, k=-1), "k must be an integer of at least 0"),
        (lambda g: bernoulli_signal(g, k=1.5), "k must be an integer of at least 0"),
        (hotspot_counts, "this graph has no coords"),
        (lambda g: hotspot_counts(datasets.grid(3, 3), total=0), "total must be a positive"),
        (lambda g: hotspot_counts(datasets.grid(3, 3), n_hotspots=-2), "n_hotspots must be an integer"),
        (lambda g: piecewise_constant_signal(g, n_pieces=0), "n_pieces must be an integer from 1 to the number of nodes, 200"),
        (lambda g: piecewise_constant_signal(g, n_pieces=201), "n_pieces must be"),
    ],
)
def test_signal_errors_say_what_was_expected(path, call, text):
    with pytest.raises(ValueError, match=text):
        call(path)


# ---- metrics ------------------------------------------------------------------------------------------------------


def test_snr_and_mse_follow_their_formulas():
    rng = np.random.default_rng(0)
    truth, noise = rng.normal(size=(50, 3)), rng.normal(size=(50, 3))
    expected = 20 * np.log10(np.linalg.norm(truth, axis=0) / np.linalg.norm(noise, axis=0))
    np.testing.assert_allclose(snr(truth, truth + noise), expected)
    np.testing.assert_allclose([snr(truth[:, j], (truth + noise)[:, j]) for j in range(3)], expected)
    np.testing.assert_allclose(mse(truth, truth + noise), (noise**2).mean(axis=0))
    assert isinstance(snr(truth[:, 0], noise[:, 0]), float)
    assert isinstance(mse(truth[:, 0], noise[:, 0]), float)


def test_a_tenth_of_the_error_is_twenty_decibels():
    truth, error = np.array([3.0, -4.0, 1.0]), np.array([0.5, 0.2, -0.1])
    assert snr(truth, truth + error / 10) - snr(truth, truth + error) == pytest.approx(20)


def test_exact_estimate_has_infinite_snr():
    assert snr([1.0, 2.0], [1.0, 2.0]) == np.inf


@pytest.mark.parametrize(
    ("truth", "estimate", "text"),
    [
        ([0.0, 0.0], [1.0, 2.0], "truth is zero everywhere"),
        ([[1.0, 0.0], [1.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]], "truth is zero everywhere"),
        ([1.0, 2.0], [1.0], r"got \(2,\) and \(1,\)"),
        ([], [], "not empty"),
        ([np.nan, 1.0], [1.0, 1.0], "truth has 1 entries that are NaN"),
        ([1.0, 1.0], [1.0, np.inf], "estimate has 1 entries"),
    ],
)
def test_metric_errors_say_what_came(truth, estimate, text):
    with pytest.raises(ValueError, match=text):
        snr(truth, estimate)
