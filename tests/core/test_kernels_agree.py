"""Every kernel against the plain recurrence: all degrees, scales, weights and shapes of graph, and the same bits on any threads."""

import functools
import threading

import numpy as np
import pytest
from hypothesis import given, strategies as st

import hushgraph as hg
from hushgraph.core import cpu, reference
from hushgraph.core.threads import use_threads
from hushgraph.graphs.graph import Graph

from ..support.strategies import LAPLACIANS, graphs, relative_error, signal_on

DEGREES = (1, 2, 5, 11, 12, 13, 24, 25, 37, 100)  # around multiples of the 12 degrees of one sweep
TOLERANCE = {np.dtype("f8"): 1e-12, np.dtype("f4"): 1e-5}
SYMMETRIC = LAPLACIANS[:2]
WEIGHTS = ("unweighted", "uniform", "weighted")


def weighted_like(graph, kind):
    """The same edges with weights 1, 2.5 or between 0.1 and 10."""
    if kind == "unweighted":
        return graph
    upper = graph.adjacency.tocoo()
    keep = upper.row < upper.col
    pairs = np.stack([upper.row[keep], upper.col[keep]], axis=1)
    rng = np.random.default_rng(3)
    weights = np.full(len(pairs), 2.5) if kind == "uniform" else 10 ** rng.uniform(-1, 1, len(pairs))
    return Graph.from_edges(pairs, n=graph.n, weights=weights)


def white_coefficients(n_scales, degree, upper):
    """All degrees count alike: nothing hides a mistake in a high one."""
    return np.random.default_rng(0).normal(size=(n_scales, degree + 1))


def band_coefficients(n_scales, degree, upper):
    """Those of a frame: single precision is for these, white ones would multiply its rounding by the square of the degree."""
    return hg.chebyshev_coefficients(lambda x: np.sqrt(hg.partition(x, n_scales=n_scales)), degree, upper=upper)


def single_precision_room(theta, x, factor):
    """How far bands computed in float32 may be from the truth: in the 2-norm over the nodes, for each signal and band.

    Every step of the recurrence rounds its result, by u = 2^-24 relative. Step k carries the error of step k - j on with
    the factor U_j(M), whose norm is at most j + 1. Errors of random sign then add up to

        u |x| sqrt(sum_k theta_k^2 (1^2 + ... + (k + 1)^2)),

    which is the room for `factor` = 1. Streets and images stay below 1.1. Hubs need more (up to 17 on a star of 500 nodes), since
    their rows add many rounded values; docs/gpu.md proves a bound for every graph.
    """
    k = np.arange(theta.shape[1]) + 1
    growth = np.sqrt(theta**2 @ (k * (k + 1) * (2 * k + 1) / 6))
    return factor * 2.0**-24 * np.linalg.norm(x.astype(np.float64), axis=1)[:, None] * growth


def assert_within_single_precision(bands, truth, theta, x, *, factor=4.0):
    error = np.linalg.norm(bands.astype(np.float64) - truth, axis=2)
    room = single_precision_room(theta, x, factor)
    assert np.all(error <= room), f"{(error / room).max():.2f} times the room of float32"


def assert_kernels_agree(graph, *, degree, n_scales=3, laplacian="combinatorial", dtype=np.float64, signals=1):
    """Forward and inverse of the CPU kernel against the reference."""
    upper = graph.spectrum(laplacian).lambda_upper or 1.0
    theta = (white_coefficients if dtype == np.float64 else band_coefficients)(n_scales, degree, upper)
    layout, truth = graph.layout(laplacian), reference.prepare(*graph.symmetric_parts(laplacian))
    rng = np.random.default_rng(1)
    x = rng.normal(size=(signals, graph.n)).astype(dtype)
    F = rng.normal(size=(signals, n_scales, graph.n)).astype(dtype)
    for name, value in (("forward", x), ("inverse", F)):
        ours = getattr(cpu, name)(layout, theta, value, 2 / upper)
        plain = getattr(reference, name)(truth, theta, value, 2 / upper)
        assert ours.dtype == plain.dtype == dtype
        assert ours.shape == plain.shape
        assert relative_error(ours, plain) <= TOLERANCE[np.dtype(dtype)], name
    assert_moments_agree(layout, truth, theta, x, 2 / upper)
    if dtype == np.float64 and degree:
        assert_pieces_agree(layout, theta, x[0], 2 / upper)


def assert_moments_agree(layout, truth, theta, x, scale):
    """x'T_k x from products of terms up to half the degree, against all the terms themselves; the bands are the same bits."""
    count = theta.shape[1]
    bands, moments = cpu.forward_with_moments(layout, theta, x, scale, n_moments=count)
    assert np.array_equal(bands, cpu.forward(layout, theta, x, scale))
    signals = x.T.astype(np.float64)
    expected = np.stack([np.sum(signals * term, axis=0) for term in reference.terms_of(truth, signals, scale, count)], axis=1)
    room = 1e-12 if x.dtype == np.float64 else 1e-4
    np.testing.assert_allclose(moments, expected, rtol=0, atol=room * max(count, 10) * np.abs(expected).max(initial=1e-300))
    alone = [cpu.forward_with_moments(layout, theta, one[None], scale, n_moments=count)[1][0] for one in x]
    assert np.array_equal(moments, alone), "moments depend on the number of signals"


def assert_pieces_agree(layout, theta, x, scale):
    """The recurrence in pieces: the bits of the bands are those of the whole, and products over parts of the nodes add up."""
    degree = theta.shape[1] - 1
    whole, moments = cpu.forward_with_moments(layout, theta, x[None], scale, n_moments=2 * degree + 1)
    parts = np.random.default_rng(2).integers(0, 2, len(x)).astype(np.float64)
    for steps in (degree, 1, 5, 13):
        sums = np.zeros(2 * degree + 1)
        for shares in (parts, 1 - parts):
            terms, bands = np.stack([np.zeros_like(x), x]), np.full((len(theta), len(x)), np.nan)
            for k in range(0, degree, steps):
                own = theta[:, k : min(k + steps, degree) + 1]
                products = cpu.climb(layout, own, terms, bands, scale, shares=shares, first=k == 0)
                sums[2 * k + (k > 0) : 2 * k + len(products)] += products[1 if k else 0 :]
            assert np.array_equal(bands, whole[0])
        sums[2:] = 2 * sums[2:] - np.resize(sums[:2], 2 * degree - 1)
        np.testing.assert_allclose(sums, moments[0], rtol=0, atol=1e-12 * np.abs(moments).max())


def layered(widths, *, seed=0):
    """Levels of these widths, each node joined to one of the level before and now and then to a second one."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(widths)])
    pairs = []
    for before, here, end in zip(starts[:-2], starts[1:-1], starts[2:], strict=True):
        nodes = np.arange(here, end)
        pairs.append(np.stack([rng.integers(before, here, len(nodes)), nodes], axis=1))
        more = nodes[rng.random(len(nodes)) < 0.4]
        pairs.append(np.stack([rng.integers(before, here, len(more)), more], axis=1))
    order = rng.permutation(starts[-1])
    return Graph.from_edges(order[np.concatenate(pairs)], n=int(starts[-1]))


def scattered(n_pieces, *, seed=0):
    """Single edges, triangles, paths and stars by the thousand, with isolated nodes between them, numbered at random."""
    rng = np.random.default_rng(seed)
    shapes = [[(0, 1)], [(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2), (2, 3), (3, 4)], [(0, 1), (0, 2), (0, 3), (0, 4)], []]
    pieces = [np.array(shapes[k], dtype=int).reshape(-1, 2) + 5 * i for i, k in enumerate(rng.integers(0, 5, n_pieces))]
    return Graph.from_edges(rng.permutation(5 * n_pieces)[np.concatenate(pieces)], n=5 * n_pieces)


def small_world(n, *, seed=0):
    """A ring in which everybody also knows two random others, on average: a few steps reach everyone."""
    rng = np.random.default_rng(seed)
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    return Graph.from_edges(np.concatenate([ring, rng.integers(0, n, (n, 2))]), n=n)


@functools.cache
def large(name, weights="unweighted"):
    """roads: local, so in wavefronts; tangled: not local, so plain."""
    if weights != "unweighted":
        return weighted_like(large(name), weights)
    return hg.datasets.roads(150_000) if name == "roads" else small_world(100_000)


@pytest.fixture(scope="module")
def country():
    """A few blocks of rows, several components, isolated nodes: by kind of weights."""
    edges = hg.datasets.roads(5000).adjacency
    plain = Graph.from_edges(np.stack(edges.nonzero(), axis=1), n=5100)
    return {kind: weighted_like(plain, kind) for kind in WEIGHTS}


# ---- single precision ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("laplacian", SYMMETRIC)
def test_single_precision_keeps_its_bound_at_every_degree(weights, laplacian):
    rng = np.random.default_rng(0)
    star = Graph.from_edges([(0, k) for k in range(1, 500)])
    local = [hg.datasets.city(600), Graph.from_image((30, 40), neighbours=8), hg.datasets.roads(5000)]
    for graph, factor in [(star, 40.0), *((graph, 4.0) for graph in local)]:
        graph = weighted_like(graph, weights)
        layout, plain = graph.layout(laplacian), reference.prepare(*graph.symmetric_parts(laplacian))
        scale = 2 / graph.spectrum(laplacian).lambda_upper
        for degree in (1, 2, 25, 100, 200):
            theta = rng.normal(size=(3, degree + 1)) / (degree + 1)
            x = rng.normal(size=(2, graph.n)).astype(np.float32)
            truth = reference.forward(plain, theta, x.astype(np.float64), scale)
            assert_within_single_precision(cpu.forward(layout, theta, x, scale), truth, theta, x, factor=factor)
            if degree <= 2 and factor == 4.0:  # control: an input rounded to 19 bits is noticed
                coarse = np.round(x * 2.0**16) / 2.0**16
                with pytest.raises(AssertionError, match="times the room"):
                    assert_within_single_precision(reference.forward(plain, theta, coarse, scale), truth, theta, x)


# ---- small graphs of every kind -----------------------------------------------------------------------------------


@given(
    graph=graphs(min_nodes=1),
    degree=st.sampled_from(DEGREES),
    n_scales=st.integers(1, 9),
    laplacian=st.sampled_from(SYMMETRIC),
    signals=st.integers(1, 9),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_small_graphs(graph, degree, n_scales, laplacian, signals, dtype):
    assert_kernels_agree(graph, degree=degree, n_scales=n_scales, laplacian=laplacian, signals=signals, dtype=dtype)


@given(graph=graphs(), laplacian=st.sampled_from(LAPLACIANS), degree=st.sampled_from(DEGREES))
def test_transforms_agree_with_the_reference_for_all_laplacians(graph, laplacian, degree):
    """Also the random walk, whose scaling lies outside the kernels: its reference is the Laplacian itself."""
    frame = hg.chebyshev_frame(graph, laplacian=laplacian, degree=degree)
    L, scale = frame.unit * graph.laplacian(laplacian), 2 / frame.lambda_upper
    x, F = signal_on(graph), np.random.default_rng(1).normal(size=(frame.n_scales, graph.n))
    theta, root = frame.coefficients, graph.root_degrees if laplacian == "random_walk" else np.ones(graph.n)
    bands, signal = reference.forward(L, theta, x[None], scale)[0], reference.inverse(L, theta, F[None], scale)[0]
    assert relative_error(root * hg.analyze(frame, x), root * bands) <= 1e-12
    assert relative_error(root * hg.synthesize(frame, F), root * signal) <= 1e-12


# ---- degrees, scales, weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_degrees(country, degree, weights, dtype):
    for laplacian in SYMMETRIC:
        assert_kernels_agree(country[weights], degree=degree, laplacian=laplacian, dtype=dtype)


@pytest.mark.parametrize("n_scales", range(1, 10))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_of_scales(country, n_scales, dtype):
    for weights in WEIGHTS:
        assert_kernels_agree(country[weights], degree=25, n_scales=n_scales, dtype=dtype)


@pytest.mark.parametrize("signals", range(1, 10))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_of_signals(country, signals, dtype):
    for weights in WEIGHTS:
        assert_kernels_agree(country[weights], degree=25, signals=signals, dtype=dtype)


def test_numbers_of_scales_and_signals_in_any_order(country):
    """Room kept from a larger transform does not leak into a smaller one."""
    for n_scales, signals in [(9, 1), (1, 5), (5, 2), (7, 4), (2, 3)]:
        assert_kernels_agree(country["unweighted"], degree=13, n_scales=n_scales, signals=signals)


def test_types_in_any_order(country):
    for dtype in (np.float64, np.float32, np.float64, np.float32):
        assert_kernels_agree(country["weighted"], degree=24, dtype=dtype)


# ---- shapes of graphs ---------------------------------------------------------------------------------------------

SHAPES = {
    "path of 30,000": lambda: Graph.from_edges(np.stack([np.arange(29_999), np.arange(1, 30_000)], axis=1)),
    "path in random order": lambda: layered([1] * 20_000),
    "star of 5,000 leaves": lambda: Graph.from_edges([(0, i) for i in range(1, 5001)]),
    "grid": lambda: hg.datasets.grid(150, 200),
    "thousands of tiny components": lambda: scattered(6000),
    "isolated nodes": lambda: Graph.from_edges([(4000, 9000), (9000, 9001)], n=12_000),
    "only isolated nodes": lambda: Graph.from_edges([], n=3000),
    "complete": lambda: Graph.from_scipy(np.ones((150, 150)) - np.eye(150)),
    "levels of exactly one block": lambda: layered([1] + [1024] * 30),
    "levels just below and above a block": lambda: layered([1] + [1023, 1025, 1, 1024, 2] * 8),
    "levels from narrow to very wide": lambda: layered([1, 3, 20_000, 5, 1000, 30_000, 1, 1, 2000, 7, 15_000, *[600] * 40]),
}


@pytest.mark.parametrize("weights", ["unweighted", "weighted"])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name, weights):
    graph = weighted_like(SHAPES[name](), weights)
    assert graph.layout("combinatorial").wavefront
    assert_kernels_agree(graph, degree=37)
    assert_kernels_agree(graph, degree=13, signals=5)
    assert_kernels_agree(graph, degree=13, dtype=np.float32)  # hubs crowd the spectrum at 0, where rounding grows like degree^2


def sweeps_on_two_threads(graph):
    return len(graph.layout("combinatorial").blocks) - 1 >= 2 * 4 * cpu.STEPS


@pytest.mark.slow
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("degree", "signals"), [(25, 1), (13, 3)])
def test_large_graph_with_wavefronts_on_several_threads(weights, dtype, degree, signals):
    graph = large("roads", weights)
    assert graph.layout("combinatorial").wavefront
    assert sweeps_on_two_threads(graph)
    assert_kernels_agree(graph, degree=degree, n_scales=2, dtype=dtype, signals=signals)


@pytest.mark.slow
def test_large_graph_of_uneven_levels_on_several_threads():
    widths = np.random.default_rng(0).choice([1, 30, 900, 1024, 1100, 4000], 180)
    graph = layered([1, *widths])
    assert graph.layout("combinatorial").wavefront
    assert sweeps_on_two_threads(graph)
    for signals in (1, 3):
        assert_kernels_agree(graph, degree=25, n_scales=2, signals=signals)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("degree", "signals"), [(13, 1), (7, 3)])
def test_graph_without_locality_takes_the_plain_path(weights, dtype, degree, signals):
    graph = large("tangled", weights)
    assert not graph.layout("combinatorial").wavefront
    assert_kernels_agree(graph, degree=degree, n_scales=2, dtype=dtype, signals=signals)


def test_plain_path_of_every_degree():
    for degree in (1, 2, 5, 6, 7, 11, 12, 13):
        assert_kernels_agree(large("tangled"), degree=degree, n_scales=1)


@pytest.mark.parametrize("name", ["roads", "tangled"])
@pytest.mark.parametrize("columns", [2, 5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_batches_of_large_graphs_equal_loops(name, columns, dtype):
    """To the last bit."""
    graph = large(name)
    frame = hg.chebyshev_frame(graph, degree=13)
    X = signal_on(graph, columns=columns).astype(dtype)
    bands = hg.analyze(frame, X)
    signals = hg.synthesize(frame, bands)
    for k in range(columns):
        np.testing.assert_array_equal(bands[:, :, k], hg.analyze(frame, X[:, k]))
        np.testing.assert_array_equal(signals[:, k], hg.synthesize(frame, bands[:, :, k]))


# ---- threads ------------------------------------------------------------------------------------------------------


def on_threads(count, call):
    with use_threads(count):
        return call()


@pytest.mark.parametrize("name", ["roads", "tangled"])
@pytest.mark.parametrize("weights", ["unweighted", "weighted"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("columns", [1, 3])
def test_transforms_have_the_same_bits_on_any_number_of_threads(name, weights, dtype, columns):
    graph = large(name, weights)
    frame = hg.chebyshev_frame(graph, degree=25)
    x = signal_on(graph, columns=columns).astype(dtype)
    F = np.random.default_rng(1).normal(size=(frame.n_scales, *x.shape)).astype(dtype)
    one, two = (on_threads(k, lambda: (hg.analyze(frame, x), hg.synthesize(frame, F))) for k in (1, 3))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


def test_spectrum_has_the_same_bits_on_any_number_of_threads():
    spectra = [on_threads(k, Graph.from_scipy(large("roads").adjacency).spectrum) for k in (1, 3)]
    assert spectra[0] == spectra[1]


def test_denoise_has_the_same_bits_on_any_number_of_threads():
    roads = large("roads")
    noisy = 5 * np.sin(roads.coords[:, 0] / 50) + signal_on(roads)
    one, two = (on_threads(k, lambda: hg.denoise(Graph.from_scipy(roads.adjacency), noisy, sigma=1.0)) for k in (1, 3))
    np.testing.assert_array_equal(one.signal, two.signal)
    np.testing.assert_array_equal(one.thresholds, two.thresholds)
    assert (one.risk, one.risk_se, one.probe_se) == (two.risk, two.risk_se, two.probe_se)


def together(*calls):
    """Results of calls made at the same moment, each in a Python thread of its own."""
    results, gate = [None] * len(calls), threading.Barrier(len(calls))

    def run(place, call):
        gate.wait()
        results[place] = call()

    workers = [threading.Thread(target=run, args=item) for item in enumerate(calls)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results


@pytest.mark.parametrize("name", ["roads", "tangled"])
def test_python_threads_may_share_a_graph(name):
    graph = large(name)
    frame = hg.chebyshev_frame(graph, degree=25)
    signals = [signal_on(graph, seed=k) for k in range(4)]
    expected = [hg.analyze(frame, x) for x in signals]
    for _ in range(3):
        found = together(*(lambda x=x: hg.analyze(frame, x) for x in signals))
        for ours, truth in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, truth)


def test_python_threads_may_share_a_graph_that_knows_nothing_yet():
    """Spectrum, layout and room are all made at the first use."""
    graph = hg.datasets.grid(60, 70)
    x = signal_on(graph)
    expected = hg.analyze(hg.chebyshev_frame(hg.datasets.grid(60, 70)), x), hg.denoise(hg.datasets.grid(60, 70), x, sigma=1.0)
    for _ in range(5):
        fresh = Graph.from_scipy(graph.adjacency, coords=graph.coords)
        bands, other, result = together(
            lambda fresh=fresh: hg.analyze(hg.chebyshev_frame(fresh), x),
            lambda fresh=fresh: hg.analyze(hg.chebyshev_frame(fresh), 2 * x),
            lambda fresh=fresh: hg.denoise(fresh, x, sigma=1.0),
        )
        np.testing.assert_array_equal(bands, expected[0])
        np.testing.assert_array_equal(other, 2 * expected[0])
        np.testing.assert_array_equal(result.signal, expected[1].signal)
