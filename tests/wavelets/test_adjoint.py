"""analyze and synthesize are the operators they claim to be: adjoint, equivariant, batched, and true to their input."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.sparse.linalg import aslinearoperator, lsqr

import hushgraph as hg
from hushgraph.graphs.graph import Graph

from ..support.strategies import LAPLACIANS, PLATEAUS, SYMMETRIC, graphs, relative_error, signal_on

KINDS = ("chebyshev", "exact")
RULES = (("soft", None), ("james_stein", None), ("power", 3.0), ("power", 1.5), ("hard", None))


def frame_of(graph, kind, laplacian="combinatorial", plateau="linear"):
    if kind == "exact":
        return hg.exact_frame(graph, laplacian=laplacian, plateau=plateau)
    return hg.chebyshev_frame(graph, laplacian=laplacian, plateau=plateau, degree=37)


def bands_on(frame, *, columns=None, seed=1):
    shape = (frame.n_scales, frame.graph.n) + (() if columns is None else (columns,))
    return np.random.default_rng(seed).normal(size=shape)


def irregular():
    """Weighted, two components, two isolated nodes, unequal degrees."""
    rng = np.random.default_rng(5)
    pairs = np.concatenate([rng.integers(0, 30, (50, 2)), 30 + rng.integers(0, 20, (30, 2))])
    return Graph.from_edges(pairs, n=52, weights=rng.uniform(0.1, 5, len(pairs)), duplicates="max")


frames = st.builds(frame_of, graphs(), st.sampled_from(KINDS), st.sampled_from(LAPLACIANS), st.sampled_from(PLATEAUS))
symmetric_frames = st.builds(frame_of, graphs(), st.sampled_from(KINDS), st.sampled_from(SYMMETRIC), st.sampled_from(PLATEAUS))


# ---- what they are ------------------------------------------------------------------------------------------------


@given(graph=graphs(max_nodes=40), laplacian=st.sampled_from(LAPLACIANS), plateau=st.sampled_from(PLATEAUS))
def test_analyze_is_the_polynomials_of_the_laplacian(graph, laplacian, plateau):
    """Against the dense functional calculus U rho_j(Lambda) U^-1."""
    frame = frame_of(graph, "chebyshev", laplacian, plateau)
    symmetric = graph.laplacian("combinatorial" if laplacian == "combinatorial" else "normalized").toarray()
    eigenvalues, vectors = np.linalg.eigh(frame.unit * symmetric)
    root = graph.root_degrees if laplacian == "random_walk" else np.ones(graph.n)
    x = signal_on(graph)
    expected = ((frame.filters(eigenvalues) * (vectors.T @ (root * x))) @ vectors.T) / root
    assert relative_error(hg.analyze(frame, x), expected) <= 1e-11


# ---- adjointness --------------------------------------------------------------------------------------------------


@given(frame=frames)
def test_dot_test(frame):
    """<W x, y> = <x, W' y>."""
    W = hg.as_linear_operator(frame)
    x, y = signal_on(frame.graph), bands_on(frame).ravel()
    Wx, Wty = W.matvec(x), W.rmatvec(y)
    assert abs(Wx @ y - x @ Wty) <= 1e-12 * np.linalg.norm(Wx) * np.linalg.norm(y)


@given(frame=symmetric_frames)
def test_synthesize_is_the_transpose_for_symmetric_laplacians(frame):
    y = bands_on(frame)
    assert relative_error(hg.synthesize(frame, y), hg.as_linear_operator(frame).rmatvec(y.ravel())) <= 1e-12


@given(graph=graphs(), kind=st.sampled_from(KINDS))
def test_synthesize_is_the_adjoint_in_the_inner_product_of_the_degrees_for_the_random_walk(graph, kind):
    frame = frame_of(graph, kind, "random_walk")
    x, y, d = signal_on(graph), bands_on(frame), graph.root_degrees**2
    Wx = hg.analyze(frame, x)
    scale = np.sqrt(np.sum(d * Wx**2) * np.sum(d * y**2))
    assert abs(np.sum(d * Wx * y) - np.sum(d * x * hg.synthesize(frame, y))) <= 1e-12 * scale


@pytest.mark.parametrize("kind", KINDS)
def test_synthesize_is_not_the_transpose_for_the_random_walk(kind):
    frame = frame_of(irregular(), kind, "random_walk")
    y = bands_on(frame)
    assert relative_error(hg.synthesize(frame, y), hg.as_linear_operator(frame).rmatvec(y.ravel())) > 0.01


# ---- the linear operator ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("laplacian", LAPLACIANS)
def test_linear_operator_is_one_matrix(kind, laplacian):
    frame = frame_of(irregular(), kind, laplacian)
    W, n = hg.as_linear_operator(frame), frame.graph.n
    assert W.shape == (frame.n_scales * n, n)
    matrix = W @ np.eye(n)
    transpose = W.T @ np.eye(W.shape[0])
    assert relative_error(transpose, matrix.T) <= 1e-12
    X, Y = signal_on(frame.graph, columns=3), bands_on(frame, columns=4).reshape(-1, 4)
    assert relative_error(W @ X, matrix @ X) <= 1e-12
    assert relative_error(W.rmatmat(Y), matrix.T @ Y) <= 1e-12
    assert relative_error(W.H @ Y[:, 0], matrix.T @ Y[:, 0]) <= 1e-12
    assert relative_error(W @ X[:, :1], matrix @ X[:, :1]) <= 1e-12


@given(frame=frames)
def test_linear_operator_is_analyze(frame):
    W, X = hg.as_linear_operator(frame), signal_on(frame.graph, columns=3)
    bands = hg.analyze(frame, X)
    assert relative_error((W @ X).reshape(bands.shape), bands) <= 1e-13
    assert relative_error((W @ X[:, 0]).reshape(bands.shape[:2]), bands[:, :, 0]) <= 1e-13


def test_linear_operator_works_in_solvers_and_with_integers():
    frame = frame_of(irregular(), "chebyshev")
    W, x = aslinearoperator(hg.as_linear_operator(frame)), signal_on(frame.graph)
    assert relative_error(lsqr(W, W @ x, atol=1e-12, btol=1e-12)[0], x) <= 1e-9
    ones = np.ones(frame.graph.n, dtype=int)
    np.testing.assert_array_equal(W @ ones, W @ ones.astype(float))
    np.testing.assert_array_equal(W.T @ np.ones(W.shape[0], dtype=int), W.T @ np.ones(W.shape[0]))


# ---- numbering of the nodes ---------------------------------------------------------------------------------------


def relabelled(graph, order):
    return Graph.from_scipy(graph.adjacency[order][:, order])


@given(graph=graphs(), laplacian=st.sampled_from(LAPLACIANS), seed=st.integers(0, 99))
def test_relabelling_the_nodes_relabels_the_transform(graph, laplacian, seed):
    order = np.random.default_rng(seed).permutation(graph.n)
    frame, other = frame_of(graph, "chebyshev", laplacian), frame_of(relabelled(graph, order), "chebyshev", laplacian)
    x, y = signal_on(graph), bands_on(frame)
    assert relative_error(hg.analyze(other, x[order]), hg.analyze(frame, x)[:, order]) <= 1e-11
    assert relative_error(hg.synthesize(other, y[:, order]), hg.synthesize(frame, y)[order]) <= 1e-11


@given(graph=graphs(), kind=st.sampled_from(KINDS), laplacian=st.sampled_from(LAPLACIANS), seed=st.integers(0, 99))
def test_relabelling_the_nodes_relabels_the_weights(graph, kind, laplacian, seed):
    """The meyer plateau, because the root of the linear one turns the rounding of eigenvalues, 1e-16, into 1e-8."""
    order = np.random.default_rng(seed).permutation(graph.n)
    frame, other = (frame_of(g, kind, laplacian, "meyer") for g in (graph, relabelled(graph, order)))
    assert relative_error(hg.exact_weights(other), hg.exact_weights(frame)[:, order]) <= 1e-11
    x = signal_on(graph)
    assert relative_error(hg.analyze(other, x[order]), hg.analyze(frame, x)[:, order]) <= 1e-11


@given(graph=graphs(), laplacian=st.sampled_from(LAPLACIANS))
def test_components_do_not_hear_each_other(graph, laplacian):
    frame = frame_of(graph, "chebyshev", laplacian)
    x = signal_on(graph)
    here = graph.components == graph.components[0]
    bands = hg.analyze(frame, np.where(here, x, 0.0))
    assert not bands[:, ~here].any()
    np.testing.assert_array_equal(bands[:, here], hg.analyze(frame, x)[:, here])


# ---- thresholds at zero -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "beta"), RULES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threshold_zero_is_the_identity(rule, beta, dtype):
    x = np.array([0.0, -0.0, 1.0, -2.5, 5e-324, -1e-300, 1e300, np.finfo(np.float32).tiny]).clip(-1e38, 1e38).astype(dtype)
    for t in (0.0, np.zeros(len(x))):
        value, slope = hg.shrink(x, t, rule=rule, beta=beta)
        np.testing.assert_array_equal(value, x)
        np.testing.assert_array_equal(slope, np.ones(len(x)))
        assert value.dtype == slope.dtype == dtype


@given(frame=symmetric_frames, rule=st.sampled_from(RULES))
def test_threshold_zero_leaves_a_transform_alone(frame, rule):
    F = hg.analyze(frame, signal_on(frame.graph))
    np.testing.assert_array_equal(hg.shrink(F, 0.0, rule=rule[0], beta=rule[1])[0], F)


# ---- batches and types --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 7])
def test_batch_equals_loop(laplacian, dtype, columns):
    """To the last bit."""
    frame = frame_of(irregular(), "chebyshev", laplacian)
    X, Y = signal_on(frame.graph, columns=columns).astype(dtype), bands_on(frame, columns=columns).astype(dtype)
    bands, signals = hg.analyze(frame, X), hg.synthesize(frame, Y)
    assert bands.shape == Y.shape
    assert signals.shape == X.shape
    for k in range(columns):
        np.testing.assert_array_equal(bands[:, :, k], hg.analyze(frame, X[:, k]))
        np.testing.assert_array_equal(signals[:, k], hg.synthesize(frame, Y[:, :, k]))


@given(graph=graphs(), laplacian=st.sampled_from(LAPLACIANS), columns=st.integers(1, 9))
def test_batch_equals_loop_on_any_graph(graph, laplacian, columns):
    frame = frame_of(graph, "chebyshev", laplacian)
    X = signal_on(graph, columns=columns)
    np.testing.assert_array_equal(hg.analyze(frame, X), np.stack([hg.analyze(frame, x) for x in X.T], axis=2))


@pytest.mark.parametrize("laplacian", LAPLACIANS)
def test_batch_of_the_exact_frame_equals_loop_up_to_rounding(laplacian):
    frame = frame_of(irregular(), "exact", laplacian)
    X = signal_on(frame.graph, columns=3)
    assert relative_error(hg.analyze(frame, X), np.stack([hg.analyze(frame, x) for x in X.T], axis=2)) <= 1e-13


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("laplacian", LAPLACIANS)
def test_single_precision_stays_single_and_is_close(kind, laplacian):
    frame = frame_of(irregular(), kind, laplacian)
    x, y = signal_on(frame.graph), bands_on(frame)
    bands, signal = hg.analyze(frame, x.astype(np.float32)), hg.synthesize(frame, y.astype(np.float32))
    assert bands.dtype == signal.dtype == np.float32
    assert relative_error(bands, hg.analyze(frame, x)) <= 1e-5
    assert relative_error(signal, hg.synthesize(frame, y)) <= 1e-5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool])
def test_integers_are_accepted(kind, dtype):
    frame = frame_of(irregular(), kind)
    x = np.arange(52).astype(dtype)
    bands = hg.analyze(frame, x)
    assert bands.dtype == np.float64
    np.testing.assert_array_equal(bands, hg.analyze(frame, x.astype(float)))
    y = np.ones((frame.n_scales, 52), dtype=dtype)
    np.testing.assert_array_equal(hg.synthesize(frame, y), hg.synthesize(frame, y.astype(float)))


def test_any_memory_order_is_accepted_and_nothing_is_changed():
    frame = frame_of(irregular(), "chebyshev", "random_walk")
    X, Y = signal_on(frame.graph, columns=4), bands_on(frame, columns=4)
    bands, signals = hg.analyze(frame, X), hg.synthesize(frame, Y)
    kept_X, kept_Y = X.copy(), Y.copy()
    for view in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], np.repeat(X, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(hg.analyze(frame, view), bands)
    np.testing.assert_array_equal(hg.synthesize(frame, np.asfortranarray(Y)), signals)
    X.flags.writeable = Y.flags.writeable = False
    np.testing.assert_array_equal(hg.analyze(frame, X), bands)
    np.testing.assert_array_equal(hg.synthesize(frame, Y), signals)
    np.testing.assert_array_equal(X, kept_X)
    np.testing.assert_array_equal(Y, kept_Y)


def test_results_of_earlier_calls_are_not_overwritten():
    frame = frame_of(irregular(), "chebyshev")
    x, y = signal_on(frame.graph), bands_on(frame)
    bands, signal = hg.analyze(frame, x), hg.synthesize(frame, y)
    kept = bands.copy(), signal.copy()
    hg.analyze(frame, -x), hg.synthesize(frame, -y)
    np.testing.assert_array_equal(bands, kept[0])
    np.testing.assert_array_equal(signal, kept[1])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda f: hg.analyze(f, np.ones(51)), ValueError, r"expected \(52,\) or \(52, m\), got \(51,\)"),
        (lambda f: hg.analyze(f.graph, np.ones(52)), TypeError, "frame must come from chebyshev_frame or exact_frame; got Graph"),
        (lambda f: hg.as_linear_operator(f.graph), TypeError, "frame must come from"),
        (lambda f: hg.synthesize(f, np.ones((f.n_scales, 51))), ValueError, "coefficients must have shape"),
        (lambda f: hg.synthesize(f, np.ones(52)), ValueError, "coefficients must have shape"),
        (lambda f: hg.synthesize(f, np.full((f.n_scales, 52), np.nan)), ValueError, "coefficients .*NaN"),
    ],
)
def test_bad_input_is_refused_with_a_reason(call, error, text):
    with pytest.raises(error, match=text):
        call(frame_of(irregular(), "chebyshev"))
