"""Graphs from every source are the same graph, stay as they were made, and know their Laplacians and spectra."""

import copy
import dataclasses
import pickle

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import linalg, sparse

import hushgraph as hg
from hushgraph.core import cpu
from hushgraph.graphs import spectrum
from hushgraph.graphs.graph import Graph
from hushgraph.wavelets.partition_of_unity import count_scales

from ..support.strategies import LAPLACIANS, graphs, signal_on

SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0)]


def dense(graph):
    return graph.adjacency.toarray()


def weight_of(graph, i, j):
    return dense(graph)[i, j]


def public_arrays(graph):
    adjacency = graph.adjacency
    return {
        "data": adjacency.data,
        "indices": adjacency.indices,
        "indptr": adjacency.indptr,
        "coords": graph.coords,
        "labels": graph.labels,
        "degrees": graph.degrees,
        "components": graph.components,
        "root_degrees": graph.root_degrees,
    }


@pytest.fixture
def named():
    return Graph.from_edges(SQUARE, n=5, weights=[1.0, 2.0, 3.0, 4.0], coords=np.arange(10.0).reshape(5, 2), labels=list("abcde"))


# ---- edges --------------------------------------------------------------------------------------------------------


@given(graph=graphs())
def test_adjacency_is_symmetric_non_negative_and_without_loops(graph):
    matrix = dense(graph)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert matrix.min() >= 0
    assert not np.diag(matrix).any()
    assert graph.n_edges == np.count_nonzero(matrix) // 2
    np.testing.assert_allclose(graph.degrees, matrix.sum(axis=1), rtol=1e-14)


@given(graph=graphs(), seed=st.integers(0, 99))
def test_order_and_direction_of_edges_do_not_matter(graph, seed):
    rng = np.random.default_rng(seed)
    upper = sparse.triu(graph.adjacency).tocoo()
    order = rng.permutation(upper.nnz)
    pairs = np.stack([upper.row, upper.col], axis=1)[order]
    flip = rng.random(len(pairs)) < 0.5
    pairs[flip] = pairs[flip][:, ::-1]
    again = Graph.from_edges(pairs, n=graph.n, weights=upper.data[order])
    assert again.hash == graph.hash


def test_edges_without_weights_weigh_one():
    graph = Graph.from_edges(SQUARE)
    assert (graph.n, graph.n_edges, graph.is_unweighted) == (4, 4, True)
    assert set(graph.adjacency.data) == {1.0}


def test_self_loops_are_dropped():
    graph = Graph.from_edges([(0, 0), (0, 1), (1, 1)], weights=[9.0, 2.0, 8.0])
    assert graph.n_edges == 1
    np.testing.assert_array_equal(graph.degrees, [2.0, 2.0])


def test_repeated_edges_are_one_edge():
    graph = Graph.from_edges([(0, 1), (1, 0), (0, 1)])
    assert (graph.n_edges, weight_of(graph, 0, 1)) == (1, 1.0)
    assert weight_of(Graph.from_edges([(0, 1), (1, 0)], weights=[2.0, 2.0]), 0, 1) == 2.0


def test_unequal_duplicates_are_an_error_unless_told_how_to_merge():
    edges, weights = [(0, 1), (1, 0), (1, 2), (0, 1)], [1.0, 2.0, 5.0, 4.0]
    with pytest.raises(ValueError, match=r"edge \(0, 1\) is given more than once .* say duplicates='sum' or 'max'"):
        Graph.from_edges(edges, weights=weights)
    summed = Graph.from_edges(edges, weights=weights, duplicates="sum")
    largest = Graph.from_edges(edges, weights=weights, duplicates="max")
    assert (weight_of(summed, 0, 1), weight_of(summed, 1, 2)) == (7.0, 5.0)
    assert (weight_of(largest, 0, 1), weight_of(largest, 1, 2)) == (4.0, 5.0)


def test_weight_zero_is_no_edge():
    graph = Graph.from_edges([(0, 1), (1, 2), (1, 0)], weights=[0.0, 1.0, 3.0])
    assert (graph.n_edges, weight_of(graph, 0, 1)) == (2, 3.0)


def test_no_edges_and_no_nodes():
    assert (Graph.from_edges([], n=3).n_edges, Graph.from_edges([]).n) == (0, 0)
    assert Graph.from_edges(np.empty((0, 2), dtype=int), n=2).n == 2


def test_number_of_nodes_comes_from_labels_or_coords():
    assert Graph.from_edges([(0, 1)], labels=list("abcd")).n == 4
    assert Graph.from_edges([(0, 1)], coords=np.zeros((3, 2))).n == 3


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_any_integer_type_names_nodes(dtype):
    graph = Graph.from_edges(np.array(SQUARE, dtype=dtype), n=300)
    assert graph.hash == Graph.from_edges(SQUARE, n=300).hash


@pytest.mark.parametrize(
    ("edges", "options", "error", "text"),
    [
        ([(0, 1, 2)], {}, ValueError, r"edges must be \(m, 2\) node numbers; got shape \(1, 3\)"),
        ([(0, 1, 2), (1, 2, 3)], {}, ValueError, "pass edges.T"),
        ([(0.0, 1.0)], {}, TypeError, "edges must be integers"),
        ([("a", "b")], {}, TypeError, "edges must be integers"),
        ([(-1, 0)], {}, ValueError, "node numbers from 0; got -1"),
        ([(0, 5)], {"n": 3}, ValueError, "edges name node 5, but there are only n=3 nodes"),
        ([(0, 1)], {"n": -1}, ValueError, "n must be a number of nodes"),
        ([(0, 1)], {"n": 2.0}, ValueError, "n must be a number of nodes"),
        ([(0, 1)], {"weights": [1.0, 2.0]}, ValueError, r"shape \(1,\); got \(2,\)"),
        ([(0, 1)], {"weights": [-1.0]}, ValueError, "must not be negative"),
        ([(0, 1)], {"weights": [np.nan]}, ValueError, "edge weights must be finite; 1 are"),
        ([(0, 1)], {"weights": [np.inf]}, ValueError, "edge weights must be finite"),
        ([(0, 1)], {"duplicates": "mean"}, ValueError, "duplicates must be one of 'error', 'sum', 'max'; got 'mean'"),
        ([(0, 1)], {"labels": ["a", "a"]}, ValueError, "labels must be unique; 1 are repeated"),
        ([(0, 1)], {"n": 2, "labels": ["a"]}, ValueError, r"shape \(2,\); got \(1,\)"),
        ([(0, 1)], {"n": 2, "coords": [[0, 0]]}, ValueError, r"shape \(2, 2\) or \(2, 3\); got \(1, 2\)"),
        ([(0, 1)], {"coords": [[0, 0], [np.nan, 1]]}, ValueError, "coords must be finite"),
        ([(0, 1)], {"coords": [[0, 0], [1, 1]], "crs": "utm"}, ValueError, "crs must be one of None, 'lonlat'"),
        ([(0, 1)], {"coords": [[40.7, -740.0], [40.8, -73.9]], "crs": "lonlat"}, ValueError, "outside that range"),
    ],
)
def test_bad_edges_are_refused_with_a_reason(edges, options, error, text):
    with pytest.raises(error, match=text):
        Graph.from_edges(edges, **options)


# ---- matrices -----------------------------------------------------------------------------------------------------


@given(graph=graphs())
def test_matrices_of_all_formats_are_the_same_graph(graph):
    matrix = graph.adjacency
    wide = matrix.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for form in (matrix, matrix.tocoo(), matrix.tolil(), sparse.csc_matrix(matrix), matrix.toarray(), wide):
        assert Graph.from_scipy(form).hash == graph.hash


def test_diagonal_of_a_matrix_is_dropped():
    graph = Graph.from_scipy(np.array([[5.0, 2.0], [2.0, 7.0]]))
    np.testing.assert_array_equal(dense(graph), [[0, 2], [2, 0]])


def test_integer_and_boolean_matrices_are_accepted():
    matrix = np.array([[0, 1], [1, 0]])
    assert Graph.from_scipy(matrix).hash == Graph.from_scipy(matrix.astype(bool)).hash == Graph.from_edges([(0, 1)]).hash


def test_asymmetric_matrix_is_refused_with_the_remedy():
    matrix = sparse.csr_array(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [0.0, 2.5, 0.0]]))
    with pytest.raises(ValueError, match=r"not symmetric.*pass A\.maximum\(A\.T\)"):
        Graph.from_scipy(matrix)
    np.testing.assert_array_equal(dense(Graph.from_scipy(matrix.maximum(matrix.T))), [[0, 1, 0], [1, 0, 2.5], [0, 2.5, 0]])


@pytest.mark.parametrize(
    ("matrix", "error", "text"),
    [
        (np.zeros((2, 3)), ValueError, r"adjacency must be square; got \(2, 3\)"),
        (np.array([[0, -1.0], [-1.0, 0]]), ValueError, "must not be negative"),
        (np.array([[0, np.nan], [np.nan, 0]]), ValueError, "must be finite"),
        (np.array([[0, 1j], [1j, 0]]), TypeError, "real numbers"),
    ],
)
def test_bad_matrices_are_refused_with_a_reason(matrix, error, text):
    with pytest.raises(error, match=text):
        Graph.from_scipy(matrix)


# ---- networkx and igraph ------------------------------------------------------------------------------------------


def test_networkx_nodes_become_labels_and_places():
    G = nx.Graph([("b", "a"), ("a", "c")])
    nx.set_node_attributes(G, {"a": 1.0, "b": 2.0, "c": 3.0}, "x")
    assert Graph.from_networkx(G).coords is None  # only one of two attributes is there
    nx.set_node_attributes(G, 7.0, "y")
    graph = Graph.from_networkx(G)
    assert graph.labels.tolist() == ["b", "a", "c"]
    np.testing.assert_array_equal(graph.coords, [[2, 7], [1, 7], [3, 7]])
    np.testing.assert_array_equal(dense(graph), nx.to_numpy_array(G, weight=None))


def test_networkx_tuples_stay_whole_labels():
    graph = Graph.from_networkx(nx.grid_2d_graph(2, 3))
    assert graph.labels.tolist() == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert graph.n_edges == 7


def test_networkx_is_unweighted_unless_a_weight_is_named():
    G = nx.Graph()
    G.add_edge(0, 1, weight=5.0)
    assert Graph.from_networkx(G).is_unweighted
    assert weight_of(Graph.from_networkx(G, weight="weight"), 0, 1) == 5.0


def test_networkx_without_places():
    assert Graph.from_networkx(nx.path_graph(3), coords=None).coords is None


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_networkx_directions_are_united_and_loops_dropped(kind):
    G = kind()
    G.add_nodes_from(range(4))
    G.add_edges_from([(0, 1), (1, 0), (2, 1), (1, 1), (0, 1)], w=2.0)
    assert Graph.from_networkx(G).hash == Graph.from_edges([(0, 1), (1, 2)], n=4, labels=range(4)).hash
    weighted = Graph.from_edges([(0, 1), (1, 2)], n=4, weights=[2.0, 2.0], labels=range(4))
    assert Graph.from_networkx(G, weight="w").hash == weighted.hash


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_networkx_unequal_directions_need_a_choice(kind):
    G = kind()
    G.add_edge("p", "q", w=2.0)
    G.add_edge("q", "p", w=3.0)
    with pytest.raises(ValueError, match="given more than once with different weights"):
        Graph.from_networkx(G, weight="w")
    assert weight_of(Graph.from_networkx(G, weight="w", duplicates="sum"), 0, 1) == 5.0
    assert weight_of(Graph.from_networkx(G, weight="w", duplicates="max"), 0, 1) == 3.0


def test_networkx_unequal_parallel_edges_need_a_choice():
    G = nx.MultiGraph()
    G.add_edge(0, 1, w=1.0)
    G.add_edge(0, 1, w=4.0)
    with pytest.raises(ValueError, match="given more than once with different weights"):
        Graph.from_networkx(G, weight="w")
    assert weight_of(Graph.from_networkx(G, weight="w", duplicates="sum"), 0, 1) == 5.0


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiDiGraph])
def test_networkx_lengths_become_mean_over_length(kind):
    G = kind()
    lengths = {(0, 1): 10.0, (1, 2): 20.0, (2, 3): 60.0}
    for (u, v), d in lengths.items():
        G.add_edge(u, v, length=d)
    graph = Graph.from_networkx(G, distance="length")
    for (u, v), d in lengths.items():
        assert weight_of(graph, u, v) == weight_of(graph, v, u) == pytest.approx(30.0 / d, rel=1e-14)


def test_lengths_in_another_unit_are_the_same_affinities():
    G = nx.path_graph(5)
    for k, (u, v) in enumerate(G.edges):
        G.edges[u, v]["m"], G.edges[u, v]["km"] = 100.0 + k, (100.0 + k) / 1000
    metres, kilometres = (Graph.from_networkx(G, distance=unit) for unit in ("m", "km"))
    np.testing.assert_allclose(dense(metres), dense(kilometres), rtol=1e-14)


def test_self_loops_have_no_say_in_the_mean_length():
    G = nx.MultiDiGraph()
    G.add_edge(0, 1, length=2.0)
    G.add_edge(1, 2, length=4.0)
    G.add_edge(2, 2, length=1000.0)
    G.add_edge(1, 1, length=0.0)
    graph = Graph.from_networkx(G, distance="length")
    assert (weight_of(graph, 0, 1), weight_of(graph, 1, 2)) == (1.5, 0.75)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"weight": "w", "distance": "w"}, "give weight= .* or distance= .*, not both"),
        ({"weight": "colour"}, "2 of 2 edges have no attribute 'colour'"),
        ({"weight": "half"}, "1 of 2 edges have no attribute 'half'"),
        ({"distance": "zero"}, "lengths in 'zero' must be finite and above 0"),
    ],
)
def test_bad_attributes_are_refused_with_a_reason(options, text):
    G = nx.path_graph(3)
    nx.set_edge_attributes(G, 1.0, "w")
    nx.set_edge_attributes(G, {(0, 1): 1.0}, "half")
    nx.set_edge_attributes(G, 0.0, "zero")
    with pytest.raises(ValueError, match=text):
        Graph.from_networkx(G, **options)


def test_igraph_is_the_same_graph_as_networkx():
    G = nx.MultiDiGraph()
    G.add_nodes_from("abcd")
    for u, v, w in [("a", "b", 1.0), ("b", "a", 1.0), ("b", "c", 3.0), ("c", "c", 9.0)]:
        G.add_edge(u, v, w=w)
    number = {name: i for i, name in enumerate("abcd")}
    g = igraph.Graph(4, [(number[u], number[v]) for u, v in G.edges()], directed=True)
    g.vs["name"], g.es["w"] = list("abcd"), [w for _, _, w in G.edges(data="w")]
    for options in ({}, {"weight": "w"}, {"distance": "w"}):
        ours = Graph.from_igraph(g, **options)
        assert ours.hash == Graph.from_networkx(G, **options).hash
        assert ours.labels.tolist() == list("abcd")


def test_igraph_without_names_has_no_labels():
    graph = Graph.from_igraph(igraph.Graph.Ring(5))
    assert (graph.labels, graph.n_edges) == (None, 5)


def test_igraph_unequal_duplicates_need_a_choice():
    g = igraph.Graph(2, [(0, 1), (1, 0)])
    g.es["w"] = [1.0, 2.0]
    with pytest.raises(ValueError, match="given more than once"):
        Graph.from_igraph(g, weight="w")
    assert weight_of(Graph.from_igraph(g, weight="w", duplicates="max"), 0, 1) == 2.0


# ---- images, meshes, subgraphs ------------------------------------------------------------------------------------


@given(rows=st.integers(1, 7), columns=st.integers(1, 7), neighbours=st.sampled_from([4, 8]))
def test_image_joins_exactly_the_neighbouring_pixels(rows, columns, neighbours):
    graph = Graph.from_image((rows, columns), neighbours=neighbours)
    y, x = np.divmod(np.arange(rows * columns), columns)
    down, right = np.abs(y[:, None] - y), np.abs(x[:, None] - x)
    near = down + right == 1 if neighbours == 4 else np.maximum(down, right) == 1
    np.testing.assert_array_equal(dense(graph), np.where(down * right == 1, 0.25, 1.0) * near)


def test_diagonals_of_an_image_have_the_weight_that_is_asked_for():
    assert weight_of(Graph.from_image((3, 3), diagonal_weight=0.7), 0, 4) == 0.7
    assert weight_of(Graph.from_image((3, 3), diagonal_weight=0.7), 0, 1) == 1.0
    np.testing.assert_array_equal(Graph.from_image((3, 3), diagonal_weight=1).adjacency.data, 1.0)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 2), (5, 8)])
def test_image_has_as_many_edges_as_it_should(shape):
    rows, columns = shape
    straight, oblique = rows * (columns - 1) + (rows - 1) * columns, 2 * (rows - 1) * (columns - 1)
    assert Graph.from_image(shape, neighbours=4).n_edges == straight
    assert Graph.from_image(shape).n_edges == straight + oblique


def test_image_lies_in_the_plane_as_it_is_seen():
    coords = Graph.from_image((2, 3)).coords
    np.testing.assert_array_equal(coords, [[0, 0], [1, 0], [2, 0], [0, -1], [1, -1], [2, -1]])


@pytest.mark.parametrize(
    ("shape", "options", "text"),
    [
        ((3,), {}, "shape must be"),
        ((0, 3), {}, "shape must be"),
        ((2, 2), {"neighbours": 6}, "4, 8"),
        ((2, 2), {"diagonal_weight": 0}, "diagonal_weight must be positive"),
    ],
)
def test_bad_images_are_refused_with_a_reason(shape, options, text):
    with pytest.raises(ValueError, match=text):
        Graph.from_image(shape, **options)


def test_mesh_of_a_tetrahedron_is_complete():
    vertices = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    graph = Graph.from_mesh(vertices, [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)])
    np.testing.assert_array_equal(dense(graph), 1 - np.eye(4))
    np.testing.assert_array_equal(graph.coords, vertices)


def test_mesh_of_quadrilaterals_has_their_sides_and_keeps_loose_vertices():
    graph = Graph.from_mesh(np.zeros((7, 2)), [(0, 1, 2, 3), (1, 4, 5, 2)])
    assert graph.n_edges == 7  # the side 1-2 is shared, there are no diagonals
    assert (graph.degrees[6], dense(graph)[0, 2]) == (0, 0)


def test_mesh_needs_faces():
    with pytest.raises(ValueError, match="faces must be"):
        Graph.from_mesh(np.zeros((3, 2)), [(0, 1)])


@given(graph=graphs(), seed=st.integers(0, 99))
def test_subgraph_is_the_block_of_the_adjacency_in_that_order(graph, seed):
    rng = np.random.default_rng(seed)
    nodes = rng.permutation(graph.n)[: rng.integers(1, graph.n + 1)]
    np.testing.assert_array_equal(dense(graph.subgraph(nodes)), dense(graph)[np.ix_(nodes, nodes)])
    mask = rng.random(graph.n) < 0.5
    np.testing.assert_array_equal(dense(graph.subgraph(mask)), dense(graph)[np.ix_(mask, mask)])


def test_subgraph_keeps_labels_and_coords(named):
    part = named.subgraph([3, 0])
    assert part.labels.tolist() == ["d", "a"]
    np.testing.assert_array_equal(part.coords, named.coords[[3, 0]])
    assert weight_of(part, 0, 1) == 4.0


def test_subgraph_of_nothing_is_empty(named):
    assert named.subgraph([]).n == named.subgraph(np.zeros(5, dtype=bool)).n == 0


def test_subgraph_refuses_a_mask_of_another_length(named):
    with pytest.raises((ValueError, IndexError)):
        named.subgraph([True, True])


# ---- frozen -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["data", "indices", "indptr", "coords", "labels", "degrees", "components", "root_degrees"])
def test_arrays_of_a_graph_cannot_be_written(named, name):
    array = public_arrays(named)[name]
    with pytest.raises(ValueError, match="read-only"):
        array[0] = array[-1]


def test_fields_of_a_graph_cannot_be_set(named):
    for name in ("adjacency", "coords", "crs", "labels"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(named, name, None)


def test_a_graph_does_not_follow_what_it_was_made_of():
    matrix, coords = sparse.csr_array(np.ones((3, 3)) - np.eye(3)), np.zeros((3, 2))
    labels = np.array(["a", "b", "c"])
    graph = Graph.from_scipy(matrix, coords=coords, labels=labels)
    before = graph.hash
    matrix.data[:], coords[:], labels[:] = 9.0, 9.0, "z"
    assert Graph.from_scipy(graph.adjacency, labels=graph.labels).hash == before
    assert not graph.coords.any()


def test_hash_changes_with_an_edge_a_weight_a_node_and_a_label(named):
    pairs, weights, labels = SQUARE, [1.0, 2.0, 3.0, 4.0], list("abcde")
    others = [
        Graph.from_edges([*pairs[:3], (3, 1)], n=5, weights=weights, labels=labels),
        Graph.from_edges(pairs[:3], n=5, weights=weights[:3], labels=labels),
        Graph.from_edges(pairs, n=5, weights=[1.0, 2.0, 3.0, np.nextafter(4.0, 5)], labels=labels),
        Graph.from_edges(pairs, n=6, weights=weights, labels=list("abcdef")),
        Graph.from_edges(pairs, n=5, weights=weights, labels=list("abcdx")),
        Graph.from_edges(pairs, n=5, weights=weights, labels=list("bacde")),
        Graph.from_edges(pairs, n=5, weights=weights),
    ]
    assert len({named.hash, *(graph.hash for graph in others)}) == len(others) + 1


def test_hash_does_not_change_with_coords(named):
    assert Graph.from_scipy(named.adjacency, labels=named.labels).hash == named.hash
    assert Graph.from_scipy(named.adjacency, labels=named.labels, coords=np.ones((5, 3))).hash == named.hash


@pytest.mark.parametrize(
    "again", [lambda g: pickle.loads(pickle.dumps(g)), copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"]
)
def test_copies_are_the_same_graph(named, again):
    hg.analyze(hg.chebyshev_frame(named, degree=5), np.ones(5))  # fills what is derived
    twin = again(named)
    assert twin.hash == named.hash
    for name, array in public_arrays(named).items():
        np.testing.assert_array_equal(public_arrays(twin)[name], array)
    frame, other = hg.chebyshev_frame(named), hg.chebyshev_frame(twin)
    x = signal_on(named)
    np.testing.assert_array_equal(hg.analyze(frame, x), hg.analyze(other, x))


@pytest.mark.parametrize(
    "again", [lambda g: pickle.loads(pickle.dumps(g)), copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"]
)
def test_copies_are_as_frozen_as_the_graph(named, again):
    twin = again(named)
    for array in (twin.adjacency.data, twin.adjacency.indices, twin.adjacency.indptr, twin.coords, twin.labels):
        assert not array.flags.writeable


def test_pickle_leaves_derived_things_behind():
    graph = hg.datasets.grid(30, 30)
    size = len(pickle.dumps(graph))
    hg.exact_frame(graph)
    assert len(pickle.dumps(graph)) < size + 50_000  # eigenvectors alone would be 6.5 MB


# ---- signals on it ------------------------------------------------------------------------------------------------


@given(graph=graphs(), seed=st.integers(0, 99))
def test_signals_are_matched_by_label_in_any_order(graph, seed):
    rng = np.random.default_rng(seed)
    names = [f"node {i}" for i in rng.permutation(graph.n)]
    graph = Graph.from_scipy(graph.adjacency, labels=names)
    values = signal_on(graph, seed=seed)
    order = rng.permutation(graph.n)
    series = pd.Series(values[order], index=[names[i] for i in order])
    np.testing.assert_array_equal(graph.align(series), values)
    np.testing.assert_array_equal(graph.align(series.to_dict()), values)
    np.testing.assert_array_equal(graph.align(pd.DataFrame({"a": series, "b": 2 * series})), np.stack([values, 2 * values], axis=1))
    np.testing.assert_array_equal(graph.align(values), values)


def test_without_labels_the_names_are_numbers():
    graph = Graph.from_edges(SQUARE)
    np.testing.assert_array_equal(graph.align(pd.Series([3.0, 1.0, 2.0, 0.0], index=[3, 1, 2, 0])), [0, 1, 2, 3])
    np.testing.assert_array_equal(graph.align({2: 2.0, 0: 0.0, 3: 3.0, 1: 1.0}), [0, 1, 2, 3])


def test_tuples_match_tuples():
    graph = Graph.from_networkx(nx.grid_2d_graph(2, 2))
    values = {(1, 1): 3.0, (0, 0): 0.0, (1, 0): 2.0, (0, 1): 1.0}
    np.testing.assert_array_equal(graph.align(values), [0, 1, 2, 3])
    np.testing.assert_array_equal(graph.align(pd.Series(values)), [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("given_dtype", "kept"), [("f4", "f4"), ("f8", "f8"), ("i4", "f8"), ("u1", "f8"), ("?", "f8"), (">f8", "f8")]
)
def test_numbers_become_floats_and_floats_stay(given_dtype, kept):
    values = Graph.from_edges(SQUARE).align(np.array([0, 1, 1, 0], dtype=given_dtype))
    assert values.dtype == np.dtype(kept)
    np.testing.assert_array_equal(values, [0, 1, 1, 0])


@pytest.mark.parametrize(
    ("signal", "error", "text"),
    [
        (np.ones(3), ValueError, r"expected \(4,\) or \(4, m\), got \(3,\)"),
        (np.ones((2, 4)), ValueError, "pass Y.T if signals are rows"),
        (np.ones((4, 1, 1)), ValueError, "one row per node"),
        (["a", "b", "c", "d"], TypeError, "signal must hold real numbers"),
        (np.ones(4, dtype=complex), TypeError, "signal must hold real numbers"),
        ([1.0, np.nan, np.inf, 0.0], ValueError, "2 entries that are NaN or infinite"),
        ({0: 1.0, 1: 1.0, 2: 1.0}, ValueError, r"1 nodes have no value \(first: \[3\]\), 0 labels"),
        ({0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0}, ValueError, "0 nodes have no value .*, 1 labels"),
        (pd.Series(np.ones(5), index=[0, 1, 2, 3, 3]), ValueError, "1 repeated labels"),
        (pd.Series(np.ones(4), index=list("abcd")), ValueError, "4 nodes have no value .* 4 labels"),
    ],
)
def test_bad_signals_are_refused_with_a_reason(signal, error, text):
    with pytest.raises(error, match=text):
        Graph.from_edges(SQUARE).align(signal)


# ---- components and Laplacians ------------------------------------------------------------------------------------


@given(graph=graphs())
def test_components_are_what_walks_reach(graph):
    reach = np.linalg.matrix_power((dense(graph) > 0) + np.eye(graph.n), graph.n) > 0
    np.testing.assert_array_equal(graph.components[:, None] == graph.components, reach)
    assert set(graph.components) == set(range(graph.components.max() + 1))


@given(graph=graphs())
def test_laplacians_follow_their_formulas(graph):
    W = dense(graph)
    D = np.diag(W.sum(axis=1))
    inverse = np.diag(np.divide(1.0, np.diag(D), out=np.zeros(graph.n), where=np.diag(D) > 0))
    expected = {
        "combinatorial": D - W,
        "normalized": np.sqrt(inverse) @ (D - W) @ np.sqrt(inverse),
        "random_walk": inverse @ (D - W),
    }
    for kind, matrix in expected.items():
        np.testing.assert_allclose(graph.laplacian(kind).toarray(), matrix, rtol=1e-13, atol=1e-14 * np.abs(matrix).max())


@pytest.mark.parametrize("kind", LAPLACIANS)
def test_isolated_nodes_have_zero_rows_and_columns(kind):
    matrix = Graph.from_edges([(0, 1), (1, 3)], n=5, weights=[2.0, 3.0]).laplacian(kind).toarray()
    assert np.isfinite(matrix).all()
    for node in (2, 4):
        assert not matrix[node].any()
        assert not matrix[:, node].any()


def test_unknown_laplacian_is_named():
    graph = Graph.from_edges(SQUARE)
    for call in (graph.laplacian, graph.spectrum):
        with pytest.raises(ValueError, match=r"laplacian must be one of .*; got 'signless'"):
            call("signless")


# ---- spectrum -----------------------------------------------------------------------------------------------------


def dense_top(graph, kind="combinatorial"):
    """Largest eigenvalue; of the similar symmetric matrix for the random walk."""
    symmetric = "normalized" if kind == "random_walk" else kind
    return linalg.eigvalsh(graph.laplacian(symmetric).toarray())[-1]


@given(graph=graphs(), kind=st.sampled_from(LAPLACIANS))
def test_upper_bound_is_above_every_eigenvalue(graph, kind):
    spectrum = graph.spectrum(kind)
    rounding = graph.n * np.finfo(float).eps  # of the dense eigenvalues
    assert dense_top(graph, kind) * (1 - rounding) <= spectrum.lambda_upper
    assert spectrum.lambda_max <= spectrum.lambda_upper
    assert spectrum.lambda_max == pytest.approx(dense_top(graph, kind), rel=1e-12, abs=1e-14)


@given(graph=graphs())
def test_upper_bound_is_no_worse_than_the_sum_of_neighbouring_degrees(graph):
    edges = graph.adjacency.tocoo()
    neighbours = graph.degrees[edges.row] + graph.degrees[edges.col]
    assert graph.lambda_upper <= neighbours.max(initial=0.0) * (1 + 1e-12)


@given(graph=graphs(), power=st.integers(-120, 120))
def test_spectrum_scales_with_the_weights(graph, power):
    factor = 2.0**power  # exact in floating point
    scaled = Graph.from_scipy(graph.adjacency * factor)
    assert scaled.lambda_max == pytest.approx(factor * graph.lambda_max, rel=1e-12, abs=0)
    assert scaled.lambda_upper == pytest.approx(factor * graph.lambda_upper, rel=1e-12, abs=0)


def test_upper_bound_holds_on_weights_of_many_magnitudes():
    rng = np.random.default_rng(0)
    for _ in range(20):
        graph = Graph.from_edges(rng.integers(0, 50, (120, 2)), n=50, weights=10.0 ** rng.uniform(-9, 9, 120), duplicates="max")
        assert dense_top(graph) * (1 - 50 * np.finfo(float).eps) <= graph.lambda_upper


@pytest.mark.parametrize("leaves", [1, 7, 300])
def test_upper_bound_is_sharp_on_stars(leaves):
    """A star of k leaves has largest eigenvalue k + 1, and so has its signless Laplacian."""
    star = Graph.from_edges([(0, i + 1) for i in range(leaves)])
    assert star.lambda_max == pytest.approx(leaves + 1, rel=1e-12)
    assert leaves + 1 <= star.lambda_upper <= (leaves + 1) * (1 + 1e-3)


def triangular_lattice(rows, columns):
    """Nodes with neighbours to the right, below, and below to the right."""
    node = np.arange(rows * columns).reshape(rows, columns)
    pairs = [(node[:, :-1], node[:, 1:]), (node[:-1], node[1:]), (node[:-1, :-1], node[1:, 1:])]
    return Graph.from_edges(np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs]))


SHARP = {
    "complete": (lambda: Graph.from_scipy(np.ones((300, 300)) - np.eye(300)), 300.0, 1.0001),
    "complete beside isolated nodes": (lambda: Graph.from_edges(np.argwhere(np.triu(np.ones((90, 90)), 1)), n=1200), 90.0, 1.0001),
    "triangular lattice": (lambda: triangular_lattice(60, 50), 9.0, 1.0001),
    "weighted triangular lattice": (lambda: Graph.from_scipy(0.3 * triangular_lattice(60, 50).adjacency), 2.7, 1.0001),
    "image": (lambda: Graph.from_image((50, 60), neighbours=8, diagonal_weight=1), 12.0, 13 / 12 * 1.0001),
}


@pytest.mark.parametrize("name", SHARP)
def test_upper_bound_wastes_little_where_triangles_abound(name):
    """The signless Laplacian alone gives twice the largest eigenvalue of a complete graph, 4/3 of it on a lattice or an image."""
    make, limit, factor = SHARP[name]
    graph = make()
    top = graph.spectrum(exact=True).lambda_max
    assert 0.99 * limit <= top <= limit * (1 + 1e-12)
    assert top * (1 - graph.n * np.finfo(float).eps) <= graph.lambda_upper <= factor * limit


@st.composite
def cliquish(draw):
    """Graphs full of triangles whose degrees and weights differ: cliques that share nodes, with weights of several magnitudes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(3, 40))
    adjacency = np.zeros((n, n))
    for _ in range(draw(st.integers(1, 8))):
        nodes = rng.choice(n, size=min(n, draw(st.integers(2, 9))), replace=False)
        adjacency[np.ix_(nodes, nodes)] += 10.0 ** rng.uniform(-draw(st.sampled_from([0, 1, 6])), 0)
    np.fill_diagonal(adjacency, 0.0)
    return Graph.from_scipy(adjacency)


@given(graph=cliquish())
@settings(max_examples=200)
def test_upper_bound_holds_where_triangles_are_taken_out(graph):
    assert dense_top(graph) * (1 - graph.n * np.finfo(float).eps) <= graph.lambda_upper


def test_what_triangles_take_out_is_a_positive_semidefinite_matrix(monkeypatch):
    """The bound is proven only if the matrix added to the Laplacian is."""
    graph = hg.datasets.city(400)
    layouts = []
    take_out = spectrum._without_triangles
    monkeypatch.setattr(spectrum, "_without_triangles", lambda *args: layouts.append(take_out(*args)) or layouts[-1])
    assert graph.lambda_upper > 0
    layout = layouts[0]
    columns = np.empty((graph.n, graph.n))
    for unit, column in zip(np.eye(graph.n), columns, strict=True):
        column[:] = unit
        cpu.signless_powers(layout, column, np.zeros(graph.n), 1.0, 1)
    raised = np.empty_like(columns)
    raised[np.ix_(layout.order, layout.order)] = columns
    assert np.array_equal(raised, raised.T)
    diagonal = np.diag(np.diag(raised))
    added = diagonal - np.diag(graph.degrees) + dense(graph) - (raised - diagonal)  # P = (L + P) - L
    assert np.trace(added) > 1  # there are triangles
    assert linalg.eigvalsh(added)[0] >= -1e-11


@pytest.mark.parametrize("kind", ["combinatorial", "normalized"])
def test_complete_graphs_have_their_spectrum(kind):
    """All eigenvalues but one are n, or n / (n - 1): as repeated as can be."""
    for n in range(2, 41):
        graph = Graph.from_scipy(np.ones((n, n)) - np.eye(n))
        assert graph.spectrum(kind).lambda_max == pytest.approx(n if kind == "combinatorial" else n / (n - 1), rel=1e-12)


GENERATED = {
    "city": lambda: hg.datasets.city(2000),
    "roads": lambda: hg.datasets.roads(2000),
    "grid": lambda: hg.datasets.grid(40, 50),
    "random geometric": lambda: hg.datasets.random_geometric(2000),
}


@pytest.mark.parametrize(("name", "kind"), [*((name, "combinatorial") for name in GENERATED), ("city", "normalized")])
def test_largest_eigenvalue_is_accurate_to_a_thousandth(name, kind):
    graph = GENERATED[name]()
    assert "Lanczos" in graph.spectrum(kind).lambda_max_from
    top = dense_top(graph, kind)
    assert abs(graph.spectrum(kind).lambda_max / top - 1) <= 1e-3
    assert top * (1 - graph.n * np.finfo(float).eps) <= graph.spectrum(kind).lambda_upper


def test_largest_eigenvalue_is_found_in_a_small_component():
    """Many single edges (largest eigenvalue 2) and one path of four nodes (2 + sqrt 2)."""
    pairs = [(2 * i, 2 * i + 1) for i in range(900)] + [(1800 + i, 1801 + i) for i in range(3)]
    assert Graph.from_edges(pairs, n=2000).lambda_max == pytest.approx(2 + np.sqrt(2), rel=1e-3)


def grid_top(rows, columns):
    """Largest eigenvalue of a grid, in closed form."""
    return sum(4 * np.sin(np.pi * (k - 1) / (2 * k)) ** 2 for k in (rows, columns))


@pytest.mark.parametrize(("rows", "columns", "solver"), [(5, 7, "dense"), (40, 50, "dense"), (71, 73, "ARPACK")])
def test_exact_largest_eigenvalue_is_exact(rows, columns, solver):
    spectrum = hg.datasets.grid(rows, columns).spectrum(exact=True)
    assert solver in spectrum.lambda_max_from
    assert spectrum.lambda_max == pytest.approx(grid_top(rows, columns), rel=1e-10)
    assert spectrum.lambda_max <= spectrum.lambda_upper


def test_tighter_tolerance_gives_a_better_eigenvalue():
    graph, truth = hg.datasets.grid(40, 50), grid_top(40, 50)
    assert abs(graph.spectrum(tolerance=1e-9).lambda_max / truth - 1) <= 1e-9
    assert "relative tolerance 1e-09" in graph.spectrum(tolerance=1e-9).lambda_max_from


@pytest.mark.parametrize(
    ("kind", "lambda_max_from", "lambda_upper_from"),
    [
        ("combinatorial", "dense eigenvalues", "Collatz-Wielandt, 15 products (proven)"),
        ("normalized", "dense eigenvalues", "theorem: spectrum in [0, 2] (proven)"),
        ("random_walk", "dense eigenvalues", "theorem: spectrum in [0, 2] (proven)"),
    ],
)
def test_spectrum_says_how_it_was_found(kind, lambda_max_from, lambda_upper_from):
    spectrum = Graph.from_edges(SQUARE).spectrum(kind)
    assert spectrum.lambda_max_from.startswith(lambda_max_from)
    assert spectrum.lambda_upper_from == lambda_upper_from


@pytest.mark.parametrize("kind", LAPLACIANS)
@pytest.mark.parametrize("n", [0, 1, 6])
def test_without_edges_the_spectrum_is_zero(kind, n):
    spectrum = Graph.from_edges([], n=n).spectrum(kind)
    assert (spectrum.lambda_max, spectrum.lambda_upper) == (0.0, 0.0)
    assert (spectrum.lambda_max_from, spectrum.lambda_upper_from) == ("no edges", "no edges")


@pytest.mark.parametrize("base", [1.5, 2.0, 3.0])
def test_the_number_of_scales_is_that_of_the_whole_search(base, monkeypatch):
    """It ends once the number is certain, and is not repeated."""
    searches = []
    real = spectrum.largest_eigenvalue
    monkeypatch.setattr(spectrum, "largest_eigenvalue", lambda *a, **k: searches.append(k) or real(*a, **k))
    for make in (lambda: hg.datasets.city(2000), lambda: hg.datasets.grid(40, 50), lambda: hg.datasets.random_geometric(900)):
        searches.clear()
        graph, other = make(), make()
        expected = count_scales(other.lambda_max, base=base)
        assert [hg.chebyshev_frame(graph, base=base, degree=20).n_scales for _ in range(3)] == [expected] * 3
        assert len(searches) == 2, "one for each graph"
