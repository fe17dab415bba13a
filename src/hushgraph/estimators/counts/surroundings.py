"""Surroundings: features of a node from the values of the nodes around it, never from its own value.

For a kernel K with K_ii = 0 and a public covariate a > 0 of mean 1, the feature

    F_i = a_i (K(a y))_i / (K(a^2))_i                            (0 where the denominator is 0)

is local least squares for y = a * intensity around node i. It does not depend on y_i, so as an estimate it has divergence zero.

From the graph alone: Gaussians of the hops, two and four steps of a random walk, the neighbours; covariates count streets.
With coordinates in the plane: Gaussians of the distance, round and along the local street axis, walks straight on, one and two
hops; covariates also measure streets. Lengths are multiples of the median edge, so that no unit has to be known.
On graphs of more than LARGE nodes there are also wide neighbourhoods, which strong noise needs: cells of the plane with soft edges, or
blocks of the graph.

A row of a kernel has up to a thousand nodes. Compiled loops compute each row when a sum needs it, and store those of one tile at most,
so memory is that of the features. Nodes are numbered by place for these loops, or breadth-first; the result does not depend on tiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from hushgraph._errors import InputError
from hushgraph._geodesy import planar_coords
from hushgraph._progress import reached
from hushgraph.core import _loops, orderless_sum
from hushgraph.graphs import Graph, block_partition

HOP_WIDTHS = (1.0, 2.0, 3.5, 6.0)
WIDTHS = (0.9, 1.8, 3.6, 7.8)  # median edges: 75, 150, 300 and 650 m on the streets of Manhattan
LONG_WIDTHS = ((0.72, 3.0), (1.2, 6.0))  # 60 x 250 m and 100 x 500 m there
WALK_DECAYS, WALK_HOPS, WALK_TURN = (1.0, 4.0), 12, np.radians(25)
LEAST_WEIGHT = 0.03  # Gaussians are cut here
MOST_NEIGHBOURS = (128, 256, 512, 1024)  # per node, by width: enough for images with eight neighbours; only hubs have more
MOST_STEPS = 64  # entries per node in the matrices that walks are made of
SAMPLES_PER_EDGE, MOST_SAMPLES = 8, 1_000_000
HOPS_NEAR, HOPS_FAR = 5, 15  # hops that the narrow kernels and all kernels of the graph alone reach
LARGE = 2**14  # nodes above which there are wide neighbourhoods too
CELL_WIDTHS = (16.0, 32.0, 64.0)  # of these, in median edges
BLOCK_SIZES = (2048, 8192, 32768)  # the same without coordinates, in nodes
TOO_FEW = 1e-6  # weight of others in a wide neighbourhood, below which they say nothing
TILE = 2**16  # nodes whose surroundings are computed in one call: about 4 kB a node
MOST_HEAPED = 4096  # nodes in one cell; with more on one spot, places say nothing
COLUMNS_PER_NODE = 16  # of cells, at most


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """A wide kernel: K(i, j) = sum over cells of w(i) w(j), and K(i, i) = 0.

    Attributes
    ----------
    cells, weights : (k, n) arrays
        The cells that a node belongs to, each node to k different ones, and how much; the weights of a node add up to 1.
    """

    cells: np.ndarray
    weights: np.ndarray

    @classmethod
    def in_plane(cls, place: np.ndarray, width: float) -> Neighbourhood:
        """Return cells of this width, in which a node counts the more the closer it is to their middle."""
        corner, share = np.divmod(place / width, 1.0)
        column, height = corner.astype(np.int64).T
        stride = int(height.max()) + 2
        corners = [(column + right) * stride + height + up for right in (0, 1) for up in (0, 1)]
        weights = [np.where(right, share[:, 0], 1 - share[:, 0]) * np.where(up, share[:, 1], 1 - share[:, 1])
                   for right in (0, 1) for up in (0, 1)]  # fmt: skip
        return cls(np.unique(corners, return_inverse=True)[1].reshape(4, -1), np.array(weights))

    @classmethod
    def of_blocks(cls, graph: Graph, size: int) -> Neighbourhood:
        """Return blocks of neighbouring nodes of this size."""
        blocks = block_partition(graph, size=size)
        return cls(blocks[None], np.ones((1, graph.n)))

    @property
    def closeness(self) -> np.ndarray:
        """The kernel of a node with others at its place, (n,)."""
        return np.einsum("kn,kn->n", self.weights, self.weights)

    @property
    def has_others(self) -> np.ndarray:
        """Whether a cell of the node has other nodes too, (n,)."""
        is_inside = self.weights > 0
        sizes = np.bincount(self.cells[is_inside], minlength=int(self.cells.max(initial=-1)) + 1)
        return (is_inside & (sizes[self.cells] > 1)).any(axis=0)

    def in_cells(self, values: np.ndarray) -> np.ndarray:
        """Return the weighted sum of values (n,) in each cell."""
        n_cells = int(self.cells.max(initial=-1)) + 1
        return sum(
            (np.bincount(cells, w * values, minlength=n_cells) for cells, w in zip(self.cells, self.weights, strict=True)),
            np.zeros(n_cells),
        )


def wide_sums(neighbourhood: Any, values: np.ndarray) -> np.ndarray:
    """Return sum_j K(i, j) values_j of a `Neighbourhood`, on the CPU or a GPU, (v, n) -> (v, n)."""
    out = -neighbourhood.closeness * values
    for total, row in zip(out, values, strict=True):
        in_cells = neighbourhood.in_cells(row)
        for cells, weights in zip(neighbourhood.cells, neighbourhood.weights, strict=True):
            total += weights * in_cells[cells]
    return out


@dataclass(frozen=True, eq=False)
class PlaneArrays:
    """What kernels in the plane are made of; arrays of nodes are in the order of the cells.

    Attributes
    ----------
    places : (n,) arrays x, y, cosine and sine of the axis
    ids : (n,) array, the node of each number
    cells : size of a cell, then the columns, heights and starts of `Cells`
    gaussians : (Gaussians, 3) array: width along and across, largest number of nodes
    edges, near : starts, columns and weights of all edges, and of the heaviest of each node
    onward : for each edge of `near` the edge straight on, or -1
    """

    places: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    ids: np.ndarray
    cells: tuple[float, np.ndarray, np.ndarray, np.ndarray]
    gaussians: np.ndarray
    edges: tuple[np.ndarray, np.ndarray, np.ndarray]
    near: tuple[np.ndarray, np.ndarray, np.ndarray]
    onward: np.ndarray
    least: float = LEAST_WEIGHT
    decays: tuple[float, ...] = WALK_DECAYS
    hops: int = WALK_HOPS
    most_steps: int = MOST_NEIGHBOURS[1]

    def kernels(self) -> Any:
        """Return the compiled kernels."""
        of_nodes = *self.places, self.ids, *self.cells, self.gaussians, self.least
        of_edges = *self.edges, *self.near, self.onward, np.array(self.decays)
        return _loops.PlaneKernels(*of_nodes, *of_edges, hops=self.hops, most_steps=self.most_steps)


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Kernels with zero diagonal, and covariates; feature (k, c) is row k * C + c.

    Attributes
    ----------
    kernels : PlaneKernels or HopKernels
        The compiled kernels, of nodes in `order`.
    order : (n,) array
        The node of each number in `kernels`.
    n_kernels : int
        Number of these kernels.
    wide : Neighbourhoods of many nodes; their features come after those of the kernels
    covariates : (C, n), in node order
    narrow : numbers of the kernels of the nearest nodes only
    coordinates : whether coordinates were used
    count : int, optional
        Only the first `count` nodes of `order` have sums, those of others are 0; by default all have.
    plane : what the kernels are made of if coordinates were used
    """

    kernels: Any
    order: np.ndarray
    n_kernels: int
    wide: tuple[Neighbourhood, ...]
    covariates: np.ndarray
    narrow: tuple[int, ...]
    coordinates: bool
    count: int | None = None
    plane: PlaneArrays | None = None

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.order)

    def features_and_gains(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F of values (n,), and a / K(a^2), 0 where that denominator is 0: both (features, n)."""
        both, n_covariates = np.concatenate([self.covariates * values, self.covariates**2]), len(self.covariates)
        features, gains = (np.zeros((self.n_kernels + len(self.wide), n_covariates, self.n)) for _ in range(2))
        for nodes, sums in self._tiles(range(self.n_kernels), both, "sum_around"):
            features[: self.n_kernels, :, nodes], gains[: self.n_kernels, :, nodes] = np.split(sums, 2, axis=1)
        for k, neighbourhood in enumerate(self.wide, start=self.n_kernels):
            features[k], gains[k] = np.split(wide_sums(neighbourhood, both), 2)
            gains[k] *= neighbourhood.has_others & (gains[k] > TOO_FEW * self.covariates**2)  # otherwise it is rounding
        for feature, gain in zip(features, gains, strict=True):  # in place: these arrays are the largest of all
            np.divide(self.covariates, gain, out=gain, where=gain > 0)
            feature *= gain
        return features.reshape(-1, self.n), gains.reshape(-1, self.n)

    def features(self, values: np.ndarray, gains: np.ndarray, chosen: Sequence[int]) -> np.ndarray:
        """Return F of values (n,) for the chosen kernels, (features, n); `gains` are those of all kernels."""
        return self._scaled(self.sums(chosen, self.covariates * values), gains, chosen)

    def with_covariates(self, covariates: np.ndarray) -> Surroundings:
        """Return the surroundings with more covariates (c, n), positive and not constant; those of the streets come first."""
        more = covariates / covariates.mean(axis=1, keepdims=True)
        return replace(self, covariates=np.concatenate([self.covariates, more]))

    def echoes(self, coefficients: np.ndarray, gains: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Return how much of a node's own value comes back to it by way of its neighbours, for each narrow feature, (features, n).

        The values that the feature's kernel K sums up follow the pilot K_mu y with this slope, and the pilot at the neighbours contains
        y_i. So the feature at node i contains y_i times the i-th entry of diag(K diag(slope) K_mu), where K_mu is the sum of features
        times coefficients.
        """
        n_features = self.n_kernels * len(self.covariates)
        active = np.flatnonzero(coefficients[:n_features])
        kernel, covariate = np.divmod(active, len(self.covariates))
        mix = np.ascontiguousarray(coefficients[active, None] * gains[active][:, self.order])
        ordered = np.ascontiguousarray(self.covariates[:, self.order])
        echoes = np.zeros((len(self.narrow), len(self.covariates), self.n))
        for nodes, sums in self._tiles(self.narrow, self.covariates * slope, "sum_echoes", kernel, covariate, mix, ordered):
            echoes[:, :, nodes] = sums
        add_wide_echoes(self, coefficients[n_features:], gains[n_features:], slope, echoes)
        return self._scaled(echoes.reshape(-1, self.n), gains, self.narrow)

    def _scaled(self, sums: np.ndarray, gains: np.ndarray, chosen: Sequence[int]) -> np.ndarray:
        """Return the sums of the chosen kernels times the gains, in place."""
        for kernel, part in zip(chosen, np.split(sums, len(chosen)), strict=True):
            part *= gains[kernel * len(part) : (kernel + 1) * len(part)]
        return sums

    def sums(self, chosen: Sequence[int], values: np.ndarray) -> np.ndarray:
        """Return sum_j K(i, j) values_j for the chosen kernels and values (v, n): (kernels * v, n)."""
        out = np.zeros((len(chosen), len(values), self.n))
        for nodes, sums in self._tiles(chosen, values, "sum_around"):
            out[:, :, nodes] = sums
        return out.reshape(-1, self.n)

    def _tiles(
        self, chosen: Sequence[int], values: np.ndarray, what: str, *arguments: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield nodes and their sums (kernels, v, nodes), tile by tile."""
        packed = np.zeros((self.n, -(-len(values) // 4) * 4))
        packed[:, : len(values)] = values[:, self.order].T
        count = self.n if self.count is None else self.count
        for first in range(0, count, TILE):
            reached(first / count, "surroundings")
            last = min(first + TILE, count)
            sums = getattr(self.kernels, what)(first, last, np.array(chosen), packed, *arguments)
            yield self.order[first:last], np.moveaxis(sums[:, :, : len(values)], 0, 2)


def add_wide_echoes(surroundings: Any, coefficients: np.ndarray, gains: Any, slope: Any, echoes: Any) -> None:
    """Add the echoes through wide neighbourhoods, (kernels, C, n), where nodes near each other count as nodes at one place."""
    covariates = surroundings.covariates
    by_neighbourhood = coefficients.reshape(len(surroundings.wide), len(covariates))
    for c in np.flatnonzero(by_neighbourhood.any(axis=0)).tolist():
        mix = sum(
            float(share) * gains[k * len(covariates) + c] * surroundings.wide[k].closeness
            for k, share in enumerate(by_neighbourhood[:, c])
        )
        sums = surroundings.sums(surroundings.narrow, covariates * (slope * mix)).reshape(echoes.shape)
        for echo, part in zip(echoes, sums, strict=True):  # kernel by kernel, which takes less memory
            echo += part * covariates[c]


def node_surroundings(graph: Graph, *, coordinates: bool = True) -> Surroundings:
    """Return the surroundings of all nodes, which depend on nothing private; cached with the graph.

    Without usable coordinates (two per node, most edges longer than 0, nodes not heaped on one spot) the graph alone is used.
    """
    return graph.cached(("surroundings", coordinates), lambda: _surroundings(graph, coordinates))


def _surroundings(graph: Graph, coordinates: bool) -> Surroundings:
    """Return the surroundings in the plane if places are wanted and usable, otherwise those of the graph alone."""
    place = plane(graph) if coordinates else None
    if place is not None:
        return _from_plane(graph, place)
    return node_surroundings(graph, coordinates=False) if coordinates else _from_graph(graph)


def plane(graph: Graph) -> np.ndarray | None:
    """Return coordinates in median edge lengths, from 0 on, (n, 2), or None if the graph has no usable ones."""
    if graph.coords is None or graph.coords.shape[1] != 2 or graph.n_edges == 0:
        return None
    place = planar_coords(graph.coords, graph.crs)
    place = place - place.mean(axis=0)
    unit = float(np.median(np.abs(_steps(graph, place))))
    if not unit > 1e-9 * np.abs(place).max():
        return None
    place = place / unit
    place = np.ascontiguousarray(place - place.min(axis=0))
    return place if np.diff(Cells.of(place).starts).max() <= MOST_HEAPED else None


@dataclass(frozen=True, eq=False)
class Cells:
    """Nodes sorted by cells of the plane: columns of cells from the left, and in a column from below; empty cells are left out.

    Attributes
    ----------
    size : float
        Width of a cell.
    order : (n,) array
        The nodes, cell by cell.
    columns : (n_columns + 1,) array
        The first cell of each column.
    heights, starts : (n_cells,) and (n_cells + 1,) arrays
        The place of each cell in its column, and its first node.
    """

    size: float
    order: np.ndarray
    columns: np.ndarray
    heights: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, place: np.ndarray) -> Cells:
        """Return the cells of places from 0 on."""
        size = max(_cut(WIDTHS[0]), float(place.max()) / (COLUMNS_PER_NODE * len(place)))
        column, height = np.floor(place / size).astype(np.int64).T
        order = np.lexsort((height, column))
        column, height = column[order], height[order]
        is_first = np.concatenate([[True], (np.diff(column) != 0) | (np.diff(height) != 0)])
        starts = np.append(np.flatnonzero(is_first), len(place))
        columns = np.searchsorted(column[is_first], np.arange(column[-1] + 2))
        return cls(size, order, columns, np.ascontiguousarray(height[is_first]), starts)


# ---- the two families --------------------------------------------------------------------------------------------


def _from_graph(graph: Graph) -> Surroundings:
    """Return the surroundings from the graph alone."""
    counts = street_counts(graph.adjacency)
    means = [orderless_sum(part) / max(graph.n, 1) for part in counts]
    wide = tuple(Neighbourhood.of_blocks(graph, size) for size in BLOCK_SIZES if graph.n > LARGE)
    order = graph.layout("combinatorial").order.astype(np.int64)
    return hop_surroundings(graph.adjacency, order, _over_means(counts, means), wide)


def hop_surroundings(
    adjacency: sparse.csr_array, order: np.ndarray, covariates: np.ndarray, wide: tuple[Neighbourhood, ...] = ()
) -> Surroundings:
    """Return the surroundings from edges alone; `order` lists the nodes so that neighbours are close to each other."""
    near = _capped(adjacency)
    total = near.sum(axis=1)
    step = sparse.csr_array(sparse.diags_array(np.divide(1.0, total, out=np.zeros(len(order)), where=total > 0)) @ near)
    edges, step, two = (_renumbered(matrix, order) for matrix in (adjacency, step, _product(step, step, MOST_STEPS)))
    gaussians = np.array([(width, _cut(width), most) for width, most in zip(HOP_WIDTHS, MOST_NEIGHBOURS, strict=True)])
    arrays = (*_parts(edges), *_parts(step), *_parts(two), gaussians, order, MOST_STEPS, MOST_NEIGHBOURS[1])
    return Surroundings(
        kernels=_loops.HopKernels(*arrays),
        order=order,
        n_kernels=len(gaussians) + 3,
        wide=wide,
        covariates=covariates,
        narrow=(0, 1, 4, 6),
        coordinates=False,
    )


def _from_plane(graph: Graph, place: np.ndarray) -> Surroundings:
    """Return the surroundings with coordinates in the plane."""
    cells = Cells.of(place)
    order = cells.order
    edges, near = _renumbered(graph.adjacency, order), _renumbered(_capped(graph.adjacency), order)
    x, y = place[order, 0].copy(), place[order, 1].copy()
    ahead = _loops.straight_edges(*_parts(near)[:2], np.stack([x, y], axis=1), np.cos(WALK_TURN))
    round_ones = [(width, width, most) for width, most in zip(WIDTHS, MOST_NEIGHBOURS, strict=True)]
    long_ones = [(*pair, MOST_NEIGHBOURS[2]) for a, b in LONG_WIDTHS for pair in ((a, b), (b, a))]
    gaussians = np.array([*round_ones, *long_ones], dtype=np.float64)

    def surroundings(axis: np.ndarray, covariates: list[np.ndarray]) -> Surroundings:
        places, of_cells = (x, y, np.cos(axis), np.sin(axis)), (cells.size, cells.columns, cells.heights, cells.starts)
        arrays = PlaneArrays(places, order, of_cells, gaussians, _parts(edges), _parts(near), ahead)
        return Surroundings(
            kernels=arrays.kernels(),
            order=order,
            n_kernels=len(gaussians) + len(WALK_DECAYS) + 2,
            wide=tuple(Neighbourhood.in_plane(place, width) for width in CELL_WIDTHS if graph.n > LARGE),
            covariates=_over_means(covariates, [float(part.mean()) for part in covariates]),
            narrow=(0, 1, 4, 5, 8, 10, 11),
            coordinates=True,
            plane=arrays,
        )

    without_axis = surroundings(np.zeros(graph.n), [np.ones(graph.n)])
    axis = _street_axis(graph, place, without_axis)[order]
    return surroundings(axis, [*street_counts(graph.adjacency), *_street_lengths(graph, place)])


def _over_means(covariates: list[np.ndarray], means: Sequence[float]) -> np.ndarray:
    """Return the covariates over their means."""
    return np.array([part / max(mean, 1e-300) for part, mean in zip(covariates, means, strict=True)])


# ---- covariates --------------------------------------------------------------------------------------------------


def street_counts(adjacency: sparse.csr_array) -> list[np.ndarray]:
    """Return the covariates 1, the degree less 2, and the degree with the mean degree of the neighbours less 5."""
    n = adjacency.shape[0]
    degree = np.diff(adjacency.indptr).astype(np.float64)
    total = np.bincount(np.repeat(np.arange(n), np.diff(adjacency.indptr)), weights=degree[adjacency.indices], minlength=n)
    neighbours_mean = np.divide(total, degree, out=np.zeros(n), where=degree > 0)
    return [np.ones(n), np.maximum(degree - 2, 0.3), np.maximum(degree + neighbours_mean - 5, 0.3)]


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
    nearest = _loops.PointTree(place).nearest(points)[1]
    captured = np.bincount(nearest, weights=np.repeat(length[is_first] / samples, samples), minlength=graph.n)
    return [np.clip(part / (np.median(part) or 1.0), 0.1, 3.0) for part in (captured, half)]


def _street_axis(graph: Graph, place: np.ndarray, surroundings: Surroundings) -> np.ndarray:
    """Return the angle of the dominant street axis around each node, up to quarter turns: arg(sum length e^{4 i angle}) / 4."""
    rows, steps = _rows(graph), _steps(graph, place)
    turned = np.abs(steps) * np.exp(4j * np.angle(steps))
    moments = np.stack([np.bincount(rows, weights=part, minlength=graph.n) for part in (turned.real, turned.imag)])
    total = moments + surroundings.sums([len(WIDTHS) - 1], moments)  # over the widest round kernel
    return np.arctan2(total[1], total[0]) / 4


# ---- kernels -----------------------------------------------------------------------------------------------------


def _rows(graph: Graph) -> np.ndarray:
    """Return the first node of each directed edge."""
    return np.repeat(np.arange(graph.n), np.diff(graph.adjacency.indptr))


def _steps(graph: Graph, place: np.ndarray) -> np.ndarray:
    """Return each directed edge as a complex number."""
    ahead = place[graph.adjacency.indices] - place[_rows(graph)]
    return ahead[:, 0] + 1j * ahead[:, 1]


def _cut(width: float) -> float:
    """Return the x at which exp(-x^2 / 2 width^2) falls to LEAST_WEIGHT."""
    return width * float(np.sqrt(-2 * np.log(LEAST_WEIGHT)))


def _parts(matrix: sparse.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the starts, the columns and the weights of the rows, in the types that the loops take."""
    if matrix.nnz >= 2**31:
        msg = f"counts need fewer than {2**31:,} pairs of nodes that are one or two steps apart; this graph has {matrix.nnz:,}; use method='let'"
        raise InputError(msg)
    return matrix.indptr.astype(np.int32, copy=False), matrix.indices.astype(np.int32, copy=False), matrix.data


def _renumbered(matrix: sparse.csr_array, order: np.ndarray) -> sparse.csr_array:
    """Return the matrix with node order[i] as number i; the entries of a row stay in their order."""
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    rows = matrix[order]
    return sparse.csr_array((rows.data, number[rows.indices].astype(np.int32), rows.indptr), shape=matrix.shape)


def _capped(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return the matrix with only the MOST_STEPS heaviest entries of each row."""
    if np.diff(matrix.indptr).max(initial=0) <= MOST_STEPS:
        return matrix
    return _product(matrix, sparse.eye_array(matrix.shape[0], format="csr"), MOST_STEPS)


def _product(left: sparse.csr_array, right: sparse.csr_array, most: int) -> sparse.csr_array:
    """Return the product left right, with only the heaviest `most` entries of each row."""
    starts, columns, weights = _loops.product_rows(*_parts(left), *_parts(right), most)
    return sparse.csr_array((weights, columns, starts), shape=left.shape)
