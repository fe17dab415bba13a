"""Rows for a GPU: in quads they are the matrix, in a compact order; with the marker `gpu`, the kernels against the processor's."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import hushgraph as hg
from hushgraph.core import cpu, gpu_layout as quads, reference

from ..support.fake_device import real_device
from ..support.strategies import graphs
from .test_kernels_agree import WEIGHTS, assert_within_single_precision, weighted_like


def dense(rows):
    """The adjacency matrix in the order of the rows, and in each row the order in which its neighbours are added."""
    matrix, sequence = np.zeros((rows.n, rows.n)), []
    flag = np.iinfo(rows.differences.dtype).min
    has_tail = rows.differences[-1, : rows.n, 3] == flag
    lists = {int(row): k for k, row in enumerate(rows.long_rows)}
    for i in range(rows.n):
        entries = [
            (i + int(step), None if rows.values is None else rows.values[0][q, i, p])
            for q in range(len(rows.differences)) for p, step in enumerate(rows.differences[q, i]) if step not in (0, flag)
        ]  # fmt: skip
        if has_tail[i]:
            tail = int(rows.warp_tails[i // 32]) + int(has_tail[i // 32 * 32 : i].sum())
            own = range(rows.tail_starts[tail], rows.tail_starts[tail + 1])
            entries += [(int(rows.tail_rows[k]), None if rows.values is None else rows.values[1][k]) for k in own]
        if i in lists:
            own = range(rows.long_starts[lists[i]], rows.long_starts[lists[i] + 1])
            entries += [(int(rows.long_neighbours[k]), None if rows.values is None else rows.values[2][k]) for k in own]
        for j, weight in entries:
            matrix[i, j] += rows.uniform if weight is None else weight
        sequence.append([int(rows.order[j]) for j, _ in entries])
    return matrix, sequence


def assert_same_matrix(graph):
    rows = quads.prepare(*graph.symmetric_parts("combinatorial"))
    matrix, sequence = dense(rows)
    assert sorted(rows.order.tolist()) == list(range(graph.n))
    np.testing.assert_array_equal(matrix, graph.adjacency.toarray()[np.ix_(rows.order, rows.order)])
    assert all(one == sorted(one) for one in sequence), "neighbours are added in another order than on the processor"
    return rows


@given(graphs(), st.sampled_from(WEIGHTS))
def test_quads_are_the_matrix(graph, kind):
    assert_same_matrix(weighted_like(graph, kind))


@pytest.mark.parametrize("kind", WEIGHTS)
def test_long_rows_and_far_neighbours(kind, monkeypatch):
    rng = np.random.default_rng(0)
    hub = [(0, k) for k in range(1, 200)] + [(1, k) for k in range(2, 9)] + [tuple(pair) for pair in rng.integers(9, 400, (300, 2))]
    pairs = np.unique(np.sort([pair for pair in hub if pair[0] != pair[1]], axis=1), axis=0)
    graph = weighted_like(hg.Graph.from_edges(pairs, n=400), kind)
    rows = assert_same_matrix(graph)
    assert len(rows.long_rows) == 1
    assert len(rows.tail_rows)
    monkeypatch.setattr(quads, "FEW", -1.0)
    assert assert_same_matrix(graph).differences.dtype == np.int32


def test_the_order_is_compact():
    """Rows of a block of 256 and their neighbours lie in few sectors of four: the order of the file needs twice as many."""
    graph = hg.datasets.roads(40_000)
    indptr, indices = graph.adjacency.indptr, graph.adjacency.indices

    def sectors(order):
        new = np.empty(graph.n, np.int64)
        new[order] = np.arange(graph.n)
        owner = new[np.repeat(np.arange(graph.n), np.diff(indptr))] // 256
        return len(np.unique(owner * graph.n + new[indices] // 4)) / graph.n * 4

    shuffled = np.random.default_rng(0).permutation(graph.n)
    compact = sectors(quads.compact_order(indptr, indices))
    assert compact < 2.2
    assert sectors(shuffled) > 3 * compact


@pytest.mark.gpu
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_signals", [1, 3, 9])
def test_kernels_give_the_bits_of_the_processor(kind, laplacian, dtype, n_signals):
    from hushgraph.core import gpu

    cp = real_device()
    rng = np.random.default_rng(0)
    for graph in (hg.datasets.city(600), hg.Graph.from_image((30, 40), neighbours=8), hg.datasets.roads(5000)):
        graph = weighted_like(graph, kind)
        here, there = graph.layout(laplacian), gpu.prepare(*graph.symmetric_parts(laplacian))
        plain = reference.prepare(*graph.symmetric_parts(laplacian))
        for degree in (1, 2, 23, 24, 25, 100):
            theta, scale = rng.normal(size=(3, degree + 1)) / (degree + 1), 2 / graph.spectrum(laplacian).lambda_upper
            x = rng.normal(size=(n_signals, graph.n)).astype(dtype)
            bands = cpu.forward(here, theta, x, scale)
            truth = reference.forward(plain, theta, x.astype(np.float64), scale)
            ours = gpu.forward(there, theta, cp.asarray(x), scale).get()
            if dtype == np.float64:
                np.testing.assert_allclose(ours, truth, rtol=0, atol=1e-12 * np.abs(truth).max())
            else:
                assert_within_single_precision(ours, truth, theta, x)
            for _ in range(2):  # as it is, and recorded
                assert np.array_equal(gpu.forward(there, theta, cp.asarray(x), scale).get(), bands)
                assert np.array_equal(
                    gpu.inverse(there, theta, cp.asarray(bands), scale).get(), cpu.inverse(here, theta, bands, scale)
                )
            moments = cpu.forward_with_moments(here, theta, x.astype(np.float64), scale, n_moments=degree + 1)[1]
            sums = gpu.forward_with_moments(there, theta, cp.asarray(x, dtype=np.float64), scale, n_moments=degree + 1)[1].get()
            np.testing.assert_allclose(sums, moments, rtol=0, atol=1e-12 * np.abs(moments).max())
