"""Graphs from edges, matrices, images and meshes; parts and spectra of graphs; generated graphs."""

import numpy as np

import hushgraph as hg
from hushgraph._errors import InputError, InputTypeError

from .tables import Bad, each_of, each_value, frame, grid, inf, named, nan, noisy, path, y

GRAPH = "graph must be a hushgraph.Graph; got "


@each_value("graph", [None, 5, "grid", np.eye(20), frame])
def test_a_graph_is_a_graph(graph):
    Bad(lambda: hg.chebyshev_frame(graph), InputTypeError, f"{GRAPH}{type(graph).__name__}; build one with ").is_refused()


@each_of(
    {
        "exact_frame": Bad(lambda: hg.exact_frame(np.eye(20)), InputTypeError, f"{GRAPH}ndarray"),
        "smooth_weights": Bad(lambda: hg.smooth_weights(frame, np.ones((5, 20))), InputTypeError, f"{GRAPH}ChebyshevFrame"),
        "estimate_sigma": Bad(lambda: hg.estimate_sigma(None, y), InputTypeError, f"{GRAPH}NoneType"),
        "denoise": Bad(lambda: hg.denoise(None, y, sigma=1.0), InputTypeError, f"{GRAPH}NoneType"),
        "denoise, swapped": Bad(lambda: hg.denoise(y, grid, sigma=1.0), InputTypeError, f"{GRAPH}ndarray"),
        "bernoulli_signal": Bad(lambda: hg.bernoulli_signal("grid"), InputTypeError, f"{GRAPH}str"),
        "Noisy.check_belongs_to": Bad(lambda: noisy().check_belongs_to(frame), InputTypeError, f"{GRAPH}ChebyshevFrame"),
    }
)
def test_who_needs_a_graph(bad):
    bad.is_refused()


# ---- edges ---------------------------------------------------------------------------------------------------------

PAIRS = "edges must be (m, 2) node numbers; got shape "
NUMBERS = "edges must be integers (node numbers); got dtype "


@each_of(
    {
        "triples": Bad(lambda: hg.Graph.from_edges([(0, 1, 2)]), InputError, f"{PAIRS}(1, 3)"),
        "two long rows": Bad(lambda: hg.Graph.from_edges([[0, 1, 2], [1, 2, 3]]), InputError, f"{PAIRS}(2, 3); pass edges.T"),
        "one row": Bad(lambda: hg.Graph.from_edges([0, 1]), InputError, f"{PAIRS}(2,)"),
        "None": Bad(lambda: hg.Graph.from_edges(None), InputError, f"{PAIRS}()"),
        "a set": Bad(lambda: hg.Graph.from_edges({(0, 1), (1, 2)}), InputError, f"{PAIRS}()"),
        "rows of unequal length": Bad(lambda: hg.Graph.from_edges([(0, 1), (1,)]), InputError, f"{PAIRS}()"),
        "names": Bad(
            lambda: hg.Graph.from_edges([("a", "b")]), InputTypeError, f"{NUMBERS}<U1; for named nodes use from_networkx or labels="
        ),
        "floats": Bad(lambda: hg.Graph.from_edges([(0.0, 1.0)]), InputTypeError, f"{NUMBERS}float64"),
        "booleans": Bad(lambda: hg.Graph.from_edges([(True, False)]), InputTypeError, f"{NUMBERS}bool"),
        "negative": Bad(lambda: hg.Graph.from_edges([(0, -1)]), InputError, "edges must be node numbers from 0; got -1"),
        "above n": Bad(lambda: hg.Graph.from_edges([(0, 3)], n=3), InputError, "edges name node 3, but there are only n=3 nodes"),
        "above coords": Bad(
            lambda: hg.Graph.from_edges([(0, 3)], coords=np.zeros((3, 2))),
            InputError,
            "edges name node 3, but there are only n=3 nodes",
        ),
        "too many nodes": Bad(
            lambda: hg.Graph.from_edges([(0, 2**40)]), InputError, "n must be at most 2147483647 nodes; got 1099511627777"
        ),
    }
)
def test_edges(bad):
    bad.is_refused()


@each_value("n", [-1, 2.0])
def test_number_of_nodes(n):
    says = f"n must be a number of nodes, an integer of at least 0; got {n!r}"
    Bad(lambda: hg.Graph.from_edges([(0, 1)], n=n), InputError, says).is_refused()


def test_more_nodes_than_can_be_numbered():
    Bad(lambda: hg.Graph.from_edges([(0, 1)], n=10**30), InputError, "n must be at most 2147483647 nodes; got 10000").is_refused()


ONE_WEIGHT_EACH = "weights must be one number per edge, shape (1,); got "
REAL_WEIGHTS = "weights must hold real numbers; got "


@each_of(
    {
        "too many": Bad(lambda: hg.Graph.from_edges([(0, 1)], weights=[1, 2]), InputError, f"{ONE_WEIGHT_EACH}(2,)"),
        "NaN": Bad(
            lambda: hg.Graph.from_edges([(0, 1)], weights=[nan]), InputError, "weights must be finite; 1 are NaN or infinite"
        ),
        "negative": Bad(
            lambda: hg.Graph.from_edges([(0, 1)], weights=[-1]),
            InputError,
            "edge weights must not be negative (they are affinities: larger is closer); the smallest is -1",
        ),
        "text": Bad(lambda: hg.Graph.from_edges([(0, 1)], weights=["1.5"]), InputTypeError, f"{REAL_WEIGHTS}dtype <U3"),
        "rows of unequal length": Bad(
            lambda: hg.Graph.from_edges([(0, 1), (1, 2)], weights=[[1], [2, 3]]),
            InputTypeError,
            f"{REAL_WEIGHTS}rows of unequal length",
        ),
        "two of one edge": Bad(
            lambda: hg.Graph.from_edges([(0, 1), (1, 0)], weights=[1, 2]),
            InputError,
            "edge (0, 1) is given more than once with different weights (1 and 2); say duplicates='sum' or 'max'",
        ),
    }
)
def test_weights_of_edges(bad):
    bad.is_refused()


@each_of(
    {
        "fewer than n": Bad(
            lambda: hg.Graph.from_edges([(0, 1)], n=2, coords=[[0, 0]]),
            InputError,
            "coords must be one row of 2 or 3 numbers per node, shape (2, 2) or (2, 3); got (1, 2)",
        ),
        "rows and columns swapped": Bad(
            lambda: hg.Graph.from_edges([(0, 1), (1, 2)], n=3, coords=np.zeros((2, 3))),
            InputError,
            "coords must be one row of 2 or 3 numbers per node, shape (3, 2) or (3, 3); got (2, 3)",
        ),
        "a number": Bad(
            lambda: hg.Graph.from_edges([(0, 1)], coords=5),
            InputError,
            "coords must be one row of 2 or 3 numbers per node, shape (2, 2) or (2, 3); got ()",
        ),
        "NaN": Bad(
            lambda: hg.Graph.from_edges([(0, 1)], coords=[[0, 0], [nan, 1]]),
            InputError,
            "coords must be finite; leave coords out if some places are unknown",
        ),
        "text": Bad(
            lambda: hg.Graph.from_edges([(0, 1)], coords=[["a", "b"], ["c", "d"]]),
            InputTypeError,
            "coords must hold real numbers; got dtype <U1",
        ),
        "outside the globe": Bad(
            lambda: hg.Graph.from_edges([(0, 1)], coords=[[0, 0], [1, 100]], crs="lonlat"),
            InputError,
            "crs='lonlat' needs (longitude, latitude) in degrees; these coords are outside",
        ),
    }
)
def test_coords(bad):
    bad.is_refused()


@each_of(
    {
        "too few": Bad(
            lambda: hg.Graph.from_edges([(0, 1)], n=2, labels=["a"]),
            InputError,
            "labels must be one name per node, shape (2,); got (1,)",
        ),
        "repeated": Bad(
            lambda: hg.Graph.from_edges([(0, 1)], labels=["a", "a"]), InputError, "labels must be unique; 1 are repeated"
        ),
        "equal numbers": Bad(
            lambda: hg.Graph.from_edges([(0, 1)], labels=[1, 1.0]), InputError, "labels must be unique; 1 are repeated"
        ),
        "a number": Bad(
            lambda: hg.Graph.from_edges([(0, 1)], labels=5), InputTypeError, "labels must be one name per node, a list; got 5"
        ),
        "lists": Bad(
            lambda: hg.Graph.from_edges([(0, 1)], labels=[["a"], ["b"]]),
            InputTypeError,
            "labels must be names that can be keys of a dict",
        ),
    }
)
def test_labels(bad):
    bad.is_refused()


# ---- matrices, images, meshes --------------------------------------------------------------------------------------

REAL_ENTRIES = "edge weights must be real numbers; got dtype "


@each_of(
    {
        "not square": Bad(lambda: hg.Graph(np.zeros((2, 3))), InputError, "adjacency must be square; got (2, 3)"),
        "one row": Bad(
            lambda: hg.Graph(np.zeros(3)), InputError, "adjacency must be a matrix, sparse or dense; got ndarray of shape (3,)"
        ),
        "None": Bad(lambda: hg.Graph(None), InputError, "adjacency must be a matrix, sparse or dense; got array(None"),
        "one direction": Bad(
            lambda: hg.Graph(np.array([[0, 1], [0, 0]])),
            InputError,
            "adjacency is not symmetric, and an undirected graph needs it to be; pass A.maximum(A.T)",
        ),
        "almost symmetric": Bad(
            lambda: hg.Graph(np.array([[0, 1], [1 + 1e-9, 0]])),
            InputError,
            "adjacency is not symmetric, and an undirected graph needs it to be",
        ),
        "negative": Bad(
            lambda: hg.Graph(np.array([[0, -1], [-1, 0]])),
            InputError,
            "edge weights must not be negative (they are affinities: larger is closer)",
        ),
        "NaN": Bad(
            lambda: hg.Graph(np.array([[0, nan], [nan, 0]])), InputError, "edge weights must be finite; 2 are NaN or infinite"
        ),
        "complex": Bad(lambda: hg.Graph(np.array([[0, 1j], [1j, 0]])), InputTypeError, f"{REAL_ENTRIES}complex128"),
        "too few coords": Bad(
            lambda: hg.Graph(np.eye(2), coords=[[0, 1]]),
            InputError,
            "coords must be one row of 2 or 3 numbers per node, shape (2, 2) or (2, 3); got (1, 2)",
        ),
        "repeated labels": Bad(lambda: hg.Graph(np.eye(2), labels=["a", "a"]), InputError, "labels must be unique; 1 are repeated"),
        "from_scipy, not square": Bad(
            lambda: hg.Graph.from_scipy(np.zeros((2, 3))), InputError, "adjacency must be square; got (2, 3)"
        ),
        "from_scipy, too few coords": Bad(
            lambda: hg.Graph.from_scipy(np.eye(2), coords=[[0, 1]]), InputError, "coords must be one row of 2 or 3 numbers per node"
        ),
        "from_scipy, repeated labels": Bad(
            lambda: hg.Graph.from_scipy(np.eye(2), labels=["a", "a"]), InputError, "labels must be unique; 1 are repeated"
        ),
    }
)
def test_matrices(bad):
    bad.is_refused()


@each_value("shape", [3, (3,), (3, 0), (3.5, 2)])
def test_shape_of_an_image(shape):
    Bad(lambda: hg.Graph.from_image(shape), InputError, f"shape must be (rows, columns), both at least 1; got {shape}").is_refused()


def test_an_image_is_given_by_its_shape():
    Bad(lambda: hg.Graph.from_image(np.zeros((3, 2))), InputError, "both at least 1; got ndarray of shape (3, 2)").is_refused()


FACES = "faces must be (n_faces, 3 or more) vertex numbers; got shape "


@each_of(
    {
        "faces of two": Bad(lambda: hg.Graph.from_mesh(np.zeros((3, 3)), [[0, 1]]), InputError, f"{FACES}(1, 2)"),
        "one face without list": Bad(lambda: hg.Graph.from_mesh(np.zeros((3, 3)), [0, 1, 2]), InputError, f"{FACES}(3,)"),
        "unknown vertex": Bad(
            lambda: hg.Graph.from_mesh(np.zeros((3, 3)), [[0, 1, 3]]), InputError, "faces must be vertex numbers from 0 to 2; got 3"
        ),
        "negative vertex": Bad(
            lambda: hg.Graph.from_mesh(np.zeros((3, 3)), [[0, 1, -1]]),
            InputError,
            "faces must be vertex numbers from 0 to 2; got -1",
        ),
        "vertex 1.5": Bad(
            lambda: hg.Graph.from_mesh(np.zeros((3, 3)), [[0, 1.5, 2]]),
            InputTypeError,
            "faces must be integers (vertex numbers); got dtype float64",
        ),
        "four dimensions": Bad(
            lambda: hg.Graph.from_mesh(np.zeros((3, 4)), [[0, 1, 2]]),
            InputError,
            "vertices must be one row of 2 or 3 numbers per node, shape (3, 2) or (3, 3); got (3, 4)",
        ),
        "one row of vertices": Bad(
            lambda: hg.Graph.from_mesh(np.zeros(3), [[0, 1, 2]]), InputError, "vertices must be (n, 2) or (n, 3) numbers; got (3,)"
        ),
        "vertices as text": Bad(
            lambda: hg.Graph.from_mesh([["a", "b"]] * 3, [[0, 1, 2]]),
            InputTypeError,
            "vertices must hold real numbers; got dtype <U1",
        ),
        "vertices NaN": Bad(lambda: hg.Graph.from_mesh(np.full((3, 2), nan), [[0, 1, 2]]), InputError, "vertices must be finite"),
    }
)
def test_meshes(bad):
    bad.is_refused()


# ---- parts and spectra ---------------------------------------------------------------------------------------------

NODES = "nodes must be a list of node numbers, or a mask of 3 booleans; got "


@each_of(
    {
        "unknown": Bad(lambda: path.subgraph([0, 5]), InputError, "nodes must be numbers from 0 to 2; got 5"),
        "negative": Bad(lambda: path.subgraph([-1, 0]), InputError, "nodes must be numbers from 0 to 2; got -1"),
        "repeated": Bad(lambda: path.subgraph([0, 0]), InputError, "nodes must be unique; 1 are repeated"),
        "short mask": Bad(
            lambda: path.subgraph([True, False]), InputError, "nodes must be a mask of 3 booleans, one per node; got 2 of them"
        ),
        "square mask": Bad(lambda: path.subgraph(np.zeros((3, 3), dtype=bool)), InputTypeError, f"{NODES}ndarray of shape (3, 3)"),
        "text": Bad(lambda: path.subgraph(["a"]), InputTypeError, f"{NODES}list of length 1"),
        "a number": Bad(lambda: path.subgraph(1), InputTypeError, f"{NODES}1"),
        "a set": Bad(lambda: path.subgraph({0, 1}), InputTypeError, f"{NODES}set of length 2"),
        "names of named nodes": Bad(lambda: named.subgraph(["a"]), InputTypeError, f"{NODES}list of length 1"),
    }
)
def test_subgraphs(bad):
    bad.is_refused()


@each_value("tolerance", [-1, 5.0])
def test_tolerance_of_the_spectrum(tolerance):
    large = hg.datasets.grid(25, 25)  # large enough for Lanczos
    says = f"tolerance must be a relative error between 0 and 1; got {tolerance!r}"
    Bad(lambda: large.spectrum(tolerance=tolerance), InputError, says).is_refused()


# ---- generated graphs ----------------------------------------------------------------------------------------------


@each_value("rows", [0, 2.5, 3.0, True, "3", nan, None])
def test_a_count_is_an_integer(rows):
    Bad(lambda: hg.datasets.grid(rows, 5), InputError, f"rows must be an integer of at least 1; got {rows!r}").is_refused()


@each_of(
    {
        "a list": Bad(lambda: hg.datasets.grid([3], 5), InputError, "rows must be an integer of at least 1; got list of length 1"),
        "grid, columns": Bad(lambda: hg.datasets.grid(5, 0), InputError, "columns must be an integer of at least 1; got 0"),
        "city, too small": Bad(lambda: hg.datasets.city(99), InputError, "n_nodes must be an integer of at least 100; got 99"),
        "roads, too small": Bad(lambda: hg.datasets.roads(99), InputError, "n_nodes must be an integer of at least 100; got 99"),
        "random_geometric": Bad(
            lambda: hg.datasets.random_geometric(0), InputError, "n_nodes must be an integer of at least 1; got 0"
        ),
    }
)
def test_sizes_of_generated_graphs(bad):
    bad.is_refused()


@each_value("radius", [-1, inf])
def test_radius_of_a_geometric_graph(radius):
    says = f"radius must be a finite distance of at least 0 in the unit square; got {radius!r}"
    Bad(lambda: hg.datasets.random_geometric(10, radius=radius), InputError, says).is_refused()


@each_of(
    {
        "city": Bad(lambda: hg.datasets.city(100, seed=-1), InputError, "seed must be an integer from 0 to 2^64 - 1; got -1"),
        "roads": Bad(lambda: hg.datasets.roads(100, seed=1.5), InputError, "seed must be an integer from 0 to 2^64 - 1; got 1.5"),
        "random_geometric": Bad(
            lambda: hg.datasets.random_geometric(10, seed="a"), InputError, "seed must be an integer from 0 to 2^64 - 1; got 'a'"
        ),
    }
)
def test_seeds_of_generated_graphs(bad):
    bad.is_refused()
