"""Kernels around nodes: their rows against dense matrices by NumPy, with ties and with more nodes than a row may have."""

from __future__ import annotations

import numpy as np
import pytest
from shapes import graphs, lattice, weights_on

from hushgraph.core import _loops, use_threads

LEAST = 0.03
GAUSSIANS = np.array([(0.9, 0.9, 128), (1.8, 1.8, 7), (1.0, 4.0, 40), (4.0, 1.0, 1), (7.8, 7.8, 1024)], dtype=np.float64)
HOPS = np.array([(1.0, 2.6, 128), (2.0, 5.3, 9), (6.0, 15.9, 1024), (1.0, 0.5, 4), (3.5, 9.0, 1)])
RANDOM = np.random.RandomState(3)
GRAPHS = {name: rows for name, rows in {**graphs(RANDOM), "large": lattice(40, 30)}.items() if len(rows[0]) > 1}
TURNED = np.array([(1.0, 0.0), (0.0, 1.0), (0.6, 0.8), (-0.8, 0.6)])


def placed(n, kind):
    even = np.stack([np.arange(n) // 20, np.arange(n) % 20], axis=1).astype(np.float64)
    if kind == "even":
        return even
    return (
        even + RANDOM.randint(0, 3, size=(n, 2)) / 4 if kind == "uneven" else RANDOM.randint(0, 4, size=(n, 2)).astype(np.float64)
    )


def dense(indptr, indices, weights):
    matrix = np.zeros((len(indptr) - 1,) * 2)
    matrix[np.repeat(np.arange(len(matrix)), np.diff(indptr)), indices] = weights
    return matrix


def largest(weights, most, before):
    """Each row with its `most` largest entries; of those that are equal up to rounding the ones with the smallest `before`."""
    for row in weights:
        row[np.lexsort((before, -np.round(row, 10)))[most:]] = 0.0
    return weights


def cells_of(place, size):
    column, height = np.floor(place / size).astype(np.int64).T
    order = np.lexsort((height, column))
    column, height = column[order], height[order]
    is_first = np.concatenate([[True], (np.diff(column) != 0) | (np.diff(height) != 0)])
    columns = np.searchsorted(column[is_first], np.arange(column[-1] + 2))
    return order, (columns, np.ascontiguousarray(height[is_first]), np.append(np.flatnonzero(is_first), len(place)))


def plane_case(name, kind):
    """Kernels of nodes in the plane, and the dense matrices that they are."""
    indptr, indices = GRAPHS[name]
    n = len(indptr) - 1
    weights = weights_on(RANDOM, indptr, indices)
    place, axis = placed(n, kind), TURNED[RANDOM.randint(0, 2 if kind == "heaped" else 4, size=n)]
    order, cells = cells_of(place, 2.0)
    place = place[order]
    ids = order.astype(np.int64)
    rows = indptr.astype(np.int32), indices.astype(np.int32), weights
    onward = _loops.straight_edges(*rows[:2], place, np.cos(np.radians(25)))
    kernels = _loops.PlaneKernels(
        place[:, 0].copy(), place[:, 1].copy(), axis[:, 0].copy(), axis[:, 1].copy(), ids, 2.0, *cells, GAUSSIANS, LEAST,
        *rows, *rows, onward, np.array([1.0, 4.0]), 12, 5,
    )  # fmt: skip
    offset = place[None] - place[:, None]
    u = axis[:, :1] * offset[..., 0] + axis[:, 1:] * offset[..., 1]
    v = axis[:, :1] * offset[..., 1] - axis[:, 1:] * offset[..., 0]
    expected = []
    for along, across, most in GAUSSIANS:
        power = -(u * u) / (2 * along * along) - v * v / (2 * across * across)
        kernel = np.where((power >= np.log(LEAST)) & ~np.eye(n, dtype=bool), np.exp(power), 0.0)
        size = np.sqrt(-2 * np.log(LEAST)) * max(along, across)
        column, height = np.floor(place / size).T
        expected.append(largest(kernel, int(most), np.argsort(np.lexsort((ids, height, column)))))
    for decay in (1.0, 4.0):
        expected.append(walks_of(indptr, indices, onward, decay, 12))
    edges = dense(indptr, indices, weights)
    expected.append(edges)
    two = largest(edges @ edges, 5, ids)
    np.fill_diagonal(two, 0.0)
    expected.append(two)
    return kernels, expected


def walks_of(indptr, indices, onward, decay, hops):
    walks = np.zeros((len(indptr) - 1,) * 2)
    for i in range(len(walks)):
        for start in range(indptr[i], indptr[i + 1]):
            e = start
            for hop in range(hops):
                if e < 0 or indices[e] == i:
                    break
                walks[i, indices[e]] += np.exp(-hop / decay)
                e = onward[e]
    return walks


def hop_case(name):
    """Kernels of the hops, and the dense matrices that they are."""
    indptr, indices = GRAPHS[name]
    n = len(indptr) - 1
    weights = weights_on(RANDOM, indptr, indices)
    ids = RANDOM.permutation(n).astype(np.int64)
    rows = indptr.astype(np.int32), indices.astype(np.int32), weights
    kernels = _loops.HopKernels(*rows, *rows, *rows, HOPS, ids, 6, 4)
    expected = []
    for width, reach, most in HOPS:
        kernel = np.zeros((n, n))
        for i in range(n):
            visited, queue = {i: 0}, [i]
            for node in queue:
                for other in indices[indptr[node] : indptr[node + 1]]:
                    if other not in visited and visited[node] + 1 <= reach and len(queue) <= most:
                        visited[other] = visited[node] + 1
                        queue.append(int(other))
            for node in queue[1:]:
                kernel[i, node] = np.exp(-(visited[node] ** 2) / (2 * width**2))
        expected.append(kernel)
    edges = dense(indptr, indices, weights)
    for most in (6, 4):
        product = largest(edges @ edges, most, ids)
        np.fill_diagonal(product, 0.0)
        expected.append(product)
    return kernels, [*expected, edges]


def assert_same(kernels, expected):
    """All rows of all kernels, as sums of units."""
    n = len(expected[0])
    units = np.zeros((n, -(-n // 4) * 4))
    units[:, :n] = np.eye(n)
    sums = kernels.sum_around(0, n, np.arange(len(expected)), units)[:, :, :n]
    for k, matrix in enumerate(expected):
        np.testing.assert_allclose(sums[:, k], matrix, rtol=1e-11, atol=1e-13, err_msg=f"kernel {k}")


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("kind", ["even", "uneven", "heaped"])
def test_kernels_in_the_plane(name, kind):
    kernels, expected = plane_case(name, kind)
    assert_same(kernels, expected)
    assert_echoes(kernels, expected)


@pytest.mark.parametrize("name", GRAPHS)
def test_kernels_of_hops(name):
    kernels, expected = hop_case(name)
    assert_same(kernels, expected)
    assert_echoes(kernels, expected)


def assert_echoes(kernels, expected):
    """The diagonals of products of kernels, for some nodes, on any number of threads."""
    n = len(expected[0])
    chosen, active, covariate = np.array([0, 2, len(expected) - 1]), np.array([1, 1, 5, 6]), np.array([0, 1, 1, 0])
    values, mix, covariates = RANDOM.uniform(size=(n, 4)), RANDOM.uniform(size=(4, n)), RANDOM.uniform(size=(2, n))
    total = sum(mix[a][:, None] * expected[k] * covariates[c] for a, (k, c) in enumerate(zip(active, covariate, strict=True)))
    first, last = n // 3, n
    ours = []
    for threads in (1, 3):
        with use_threads(threads):
            ours.append(kernels.sum_echoes(first, last, chosen, values, active, covariate, mix, covariates))
    np.testing.assert_array_equal(*ours)
    for k, kernel in enumerate(chosen):
        theirs = np.einsum("ij,jv,ji->iv", expected[kernel], values, total)
        np.testing.assert_allclose(ours[0][:, k], theirs[first:], rtol=1e-10, atol=1e-12)
