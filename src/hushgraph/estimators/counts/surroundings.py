"""Surroundings: features of a node from the values of the nodes around it, never from its own value.

For a kernel K with K_ii = 0 and a public covariate a > 0 of mean 1, the feature

    F_i = a_i (K(a y))_i / (K(a^2))_i                            (0 where the denominator is 0)

is local least squares for y = a * intensity around node i. It does not depend on y_i, so as an estimate it has divergence zero.

From the graph alone: Gaussians of the hops, two and four steps of a random walk, the neighbours; covariates count streets.
With coordinates in the plane: Gaussians of the distance, round and along the local street axis, walks straight on, one and two
hops; covariates also measure streets. Lengths are multiples of the median edge, so that no unit has to be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from hushgraph._geodesy import planar_coords
from hushgraph._progress import reached
from hushgraph.core import _loops
from hushgraph.graphs import Graph

HOP_WIDTHS = (1.0, 2.0, 3.5, 6.0)
WIDTHS = (0.9, 1.8, 3.6, 7.8)  # median edges: 75, 150, 300 and 650 m on the streets of Manhattan
LONG_WIDTHS = ((0.72, 3.0), (1.2, 6.0))  # 60 x 250 m and 100 x 500 m there
WALK_DECAYS, WALK_HOPS, WALK_TURN = (1.0, 4.0), 12, np.radians(25)
LEAST_WEIGHT = 0.03  # Gaussians are cut here
MOST_NEIGHBOURS = (128, 256, 512, 1024)  # per node, by width: enough for images with eight neighbours; only hubs have more
MOST_STEPS = 64  # entries per node in the matrices that walks are made of
SAMPLES_PER_EDGE, MOST_SAMPLES = 8, 1_000_000


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Kernels with zero diagonal, covariates and a divisor for each pair of them; feature (k, c) is column k * C + c.

    Attributes
    ----------
    kernels : K sparse (n, n) matrices
    covariates : (C, n)
    gains : (K, C, n), a / K(a^2), and 0 where that denominator is 0
    narrow : numbers of the kernels of the nearest nodes only
    nearby : sum of the narrow kernels
    coordinates : whether coordinates were used
    """

    kernels: tuple[sparse.csr_array, ...]
    covariates: np.ndarray
    gains: np.ndarray
    narrow: tuple[int, ...]
    nearby: sparse.csr_array
    coordinates: bool

    def features(self, values: np.ndarray, chosen: tuple[int, ...] | None = None) -> np.ndarray:
        """Return F of values (n,), (n, columns), for all kernels or for the chosen ones."""
        chosen = tuple(range(len(self.kernels))) if chosen is None else chosen
        weighted = np.ascontiguousarray((self.covariates * values).T)
        return np.concatenate([(self.kernels[k] @ weighted) * self.gains[k].T for k in chosen], axis=1)

    def with_covariates(self, covariates: np.ndarray) -> Surroundings:
        """Return the surroundings with more covariates (c, n), positive and not constant; those of the streets come first."""
        more = covariates / covariates.mean(axis=1, keepdims=True)
        gains = np.concatenate([self.gains, _gains(self.kernels, more)], axis=1)
        return replace(self, covariates=np.concatenate([self.covariates, more]), gains=gains)

    def echoes(self, coefficients: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Return diag(K diag(slope) K_mu) for each narrow feature's K, (n, columns), with K_mu the sum of features times coefficients.

        It is the part of y_i in a narrow feature at node i of values that follow the pilot K_mu y.
        """
        transposed = np.zeros(self.nearby.nnz)
        for K, part in zip(self.kernels, coefficients.reshape(len(self.kernels), -1, 1) * self.gains, strict=True):
            if part.any():
                _loops.add_transposed(*_pattern(self.nearby), transposed, *_pattern(K), K.data, part, self.covariates)
        echo = sparse.csr_array(
            (transposed * slope[self.nearby.indices], self.nearby.indices, self.nearby.indptr), shape=self.nearby.shape
        )
        return np.concatenate([(self.kernels[k].multiply(echo) @ self.covariates.T) * self.gains[k].T for k in self.narrow], axis=1)


def node_surroundings(graph: Graph, *, coordinates: bool = True) -> Surroundings:
    """Return the surroundings of all nodes, which depend on nothing private; cached with the graph.

    Without usable coordinates (two per node, most edges longer than 0) the graph alone is used.
    """
    place = plane(graph) if coordinates else None
    return graph.cached(
        ("surroundings", place is not None), lambda: _from_graph(graph) if place is None else _from_plane(graph, place)
    )


def plane(graph: Graph) -> np.ndarray | None:
    """Return coordinates in median edge lengths, (n, 2), or None if the graph has no usable ones."""
    if graph.coords is None or graph.coords.shape[1] != 2 or graph.n_edges == 0:
        return None
    place = planar_coords(graph.coords, graph.crs)
    place = place - place.mean(axis=0)
    unit = float(np.median(np.abs(_steps(graph, place))))
    return np.ascontiguousarray(place / unit) if unit > 1e-9 * np.abs(place).max() else None


# ---- the two families --------------------------------------------------------------------------------------------


def _from_graph(graph: Graph) -> Surroundings:
    """Return the surroundings from the graph alone."""
    pattern, sizes = _pattern(graph.adjacency), zip(HOP_WIDTHS, MOST_NEIGHBOURS, strict=True)
    hops = [_matrix(graph.n, *_loops.hop_rows(*pattern, width, _cut(width), most)) for width, most in sizes]
    near = _capped(graph.adjacency)
    total = near.sum(axis=1)
    step = sparse.csr_array(sparse.diags_array(np.divide(1.0, total, out=np.zeros(graph.n), where=total > 0)) @ near)
    two = _product(step, step, MOST_STEPS)
    kernels = [*hops, _hollow(two), _hollow(_product(two, two, MOST_NEIGHBOURS[1])), graph.adjacency]
    return _assembled(kernels, _street_counts(graph), narrow=(0, 1, 4, 6), coordinates=False)


def _from_plane(graph: Graph, place: np.ndarray) -> Surroundings:
    """Return the surroundings with coordinates in the plane."""
    near = _capped(graph.adjacency)
    sizes = zip(WIDTHS, MOST_NEIGHBOURS, strict=True)
    *small, wide = [_gaussian(place, np.zeros(graph.n), width, width, most=most) for width, most in sizes]
    axis = _street_axis(graph, place, wide)
    long = [_gaussian(place, axis, *pair, most=MOST_NEIGHBOURS[2]) for a, b in LONG_WIDTHS for pair in ((a, b), (b, a))]
    walks = [_straight_walks(near, place, decay) for decay in WALK_DECAYS]
    kernels = [*small, wide, *long, *walks, graph.adjacency, _hollow(_product(near, near, MOST_NEIGHBOURS[1]))]
    covariates = [*_street_counts(graph), *_street_lengths(graph, place)]
    return _assembled(kernels, covariates, narrow=(0, 1, 4, 5, 8, 10, 11), coordinates=True)


def _assembled(
    kernels: list[sparse.csr_array], covariates: list[np.ndarray], *, narrow: tuple[int, ...], coordinates: bool
) -> Surroundings:
    """Return the surroundings of these kernels and covariates."""
    a = np.array([part / max(part.mean(), 1e-300) if len(part) else part for part in covariates])
    nearby = sparse.csr_array(sum(kernels[k] for k in narrow))
    nearby.sort_indices()
    return Surroundings(tuple(kernels), a, _gains(kernels, a), narrow, nearby, coordinates)


def _gains(kernels: Sequence[sparse.csr_array], a: np.ndarray) -> np.ndarray:
    """Return a / K(a^2) for each kernel and covariate, (K, C, n), and 0 where that denominator is 0."""
    sums = [np.ascontiguousarray((K @ (a**2).T).T) for K in kernels]
    return np.array([np.divide(a, total, out=np.zeros_like(a), where=total > 0) for total in sums])


# ---- covariates --------------------------------------------------------------------------------------------------


def _street_counts(graph: Graph) -> list[np.ndarray]:
    """Return the covariates 1, the degree less 2, and the degree with the mean degree of the neighbours less 5."""
    degree = np.diff(graph.adjacency.indptr).astype(np.float64)
    total = np.bincount(_rows(graph), weights=degree[graph.adjacency.indices], minlength=graph.n)
    neighbours_mean = np.divide(total, degree, out=np.zeros(graph.n), where=degree > 0)
    return [np.ones(graph.n), np.maximum(degree - 2, 0.3), np.maximum(degree + neighbours_mean - 5, 0.3)]


def _street_lengths(graph: Graph, place: np.ndarray) -> list[np.ndarray]:
    """Return the length of street nearest to each node, and half the length of its edges, over their medians."""
    rows, steps = _rows(graph), _steps(graph, place)
    length = np.abs(steps)
    half = np.bincount(rows, weights=length, minlength=graph.n) / 2
    is_first = rows < graph.adjacency.indices
    samples = max(1, min(SAMPLES_PER_EDGE, MOST_SAMPLES // int(is_first.sum())))
    share = (np.arange(samples) + 0.5) / samples
    ahead = np.stack([steps[is_first].real, steps[is_first].imag], axis=1)
    points = (place[rows[is_first]][:, None, :] + share[None, :, None] * ahead[:, None, :]).reshape(-1, 2)
    nearest = cKDTree(place).query(points)[1]
    captured = np.bincount(nearest, weights=np.repeat(length[is_first] / samples, samples), minlength=graph.n)
    return [np.clip(part / (np.median(part) or 1.0), 0.1, 3.0) for part in (captured, half)]


def _street_axis(graph: Graph, place: np.ndarray, wide: sparse.csr_array) -> np.ndarray:
    """Return the angle of the dominant street axis around each node, up to quarter turns: arg(sum length e^{4 i angle}) / 4."""
    rows, steps = _rows(graph), _steps(graph, place)
    turned = np.abs(steps) * np.exp(4j * np.angle(steps))
    moments = np.stack([np.bincount(rows, weights=part, minlength=graph.n) for part in (turned.real, turned.imag)], axis=1)
    total = moments + wide @ moments
    return np.arctan2(total[:, 1], total[:, 0]) / 4


# ---- kernels -----------------------------------------------------------------------------------------------------


def _rows(graph: Graph) -> np.ndarray:
    """Return the first node of each directed edge."""
    return np.repeat(np.arange(graph.n), np.diff(graph.adjacency.indptr))


def _pattern(matrix: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return the starts and the columns of the rows, in the one type that the loops take."""
    return matrix.indptr.astype(np.int32, copy=False), matrix.indices.astype(np.int32, copy=False)


def _steps(graph: Graph, place: np.ndarray) -> np.ndarray:
    """Return each directed edge as a complex number."""
    ahead = place[graph.adjacency.indices] - place[_rows(graph)]
    return ahead[:, 0] + 1j * ahead[:, 1]


def _cut(width: float) -> float:
    """Return the x at which exp(-x^2 / 2 width^2) falls to LEAST_WEIGHT."""
    return width * float(np.sqrt(-2 * np.log(LEAST_WEIGHT)))


def _matrix(n: int, indptr: Any, indices: Any, data: Any) -> sparse.csr_array:
    """Return the sparse matrix of these rows."""
    reached(0.0, "surroundings")  # a caller may cancel between two kernels
    matrix = sparse.csr_array((data, indices.astype(np.int32, copy=False), indptr.astype(np.int32, copy=False)), shape=(n, n))
    matrix.sum_duplicates()
    return matrix


def _hollow(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return the matrix without its diagonal."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    off = rows != matrix.indices
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[off], minlength=matrix.shape[0]))])
    return _matrix(matrix.shape[0], starts, matrix.indices[off], matrix.data[off])


def _capped(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return the matrix with only the MOST_STEPS heaviest entries of each row."""
    return _product(matrix, sparse.eye_array(matrix.shape[0], format="csr"), MOST_STEPS)


def _product(left: sparse.csr_array, right: sparse.csr_array, most: int) -> sparse.csr_array:
    """Return the product left right, with only the heaviest `most` entries of each row."""
    return _matrix(left.shape[0], *_loops.product_rows(*_pattern(left), left.data, *_pattern(right), right.data, most))


def _gaussian(place: np.ndarray, axis: np.ndarray, along: float, across: float, *, most: int) -> sparse.csr_array:
    """Return the kernel exp(-u^2 / 2 along^2 - v^2 / 2 across^2), u and v along and across the axis of the row's node."""
    cell = np.floor((place - place.min(axis=0)) / _cut(max(along, across))).astype(np.int64) + 1
    stride = int(cell[:, 1].max()) + 2
    number = cell[:, 0] * stride + cell[:, 1]
    order = np.argsort(number, kind="stable")
    rows = _loops.gaussian_rows(place, np.cos(axis), np.sin(axis), along, across, LEAST_WEIGHT, number, stride, order, most)
    return _matrix(len(place), *rows)


def _straight_walks(near: sparse.csr_array, place: np.ndarray, decay: float) -> sparse.csr_array:
    """Return the kernel exp(-(hop - 1) / decay) of the nodes met when walking on with the smallest turn."""
    onward = _loops.straight_edges(*_pattern(near), place, np.cos(WALK_TURN))
    return _matrix(near.shape[0], *_loops.walk_rows(*_pattern(near), onward, decay, WALK_HOPS))
