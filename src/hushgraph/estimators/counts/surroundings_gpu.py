"""Surroundings on a GPU: the sums of `surroundings.py` for kernels in the plane, by the kernels of `core/cuda/surroundings.cu`.

Weights have the bits of the CPU, and rows hold the same nodes; sums over a row have another order. Which nodes a row takes where there are
too many is found once for each graph and stored with its arrays on the GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np

from hushgraph._progress import reached
from hushgraph.core import compiled, cupy
from hushgraph.estimators.counts.priors_gpu import struct_of
from hushgraph.estimators.counts.surroundings import TOO_FEW, Neighbourhood, Surroundings, add_wide_echoes, wide_sums
from hushgraph.graphs import Graph

WARPS = 4  # of a block; a warp computes a node
NO_PLACES = "the graph has no usable coordinates, and only surroundings in the plane are computed on a GPU"
HUBS = "some nodes have more than {} nodes two steps away, and only rows without such a limit are computed on a GPU"


@dataclass(frozen=True, eq=False)
class DeviceNeighbourhood:
    """`Neighbourhood` with CuPy arrays: also the nodes cell after cell, `orders` (k, n), and the last place of each cell there, `ends`."""

    cells: Any
    weights: Any
    closeness: Any
    has_others: Any
    orders: Any
    ends: Any

    @classmethod
    def of(cls, neighbourhood: Neighbourhood) -> DeviceNeighbourhood:
        """Return the neighbourhood on the GPU that CuPy uses."""
        cp, n_cells = cupy(), int(neighbourhood.cells.max()) + 1
        orders = np.argsort(neighbourhood.cells, axis=1, kind="stable")
        ends = np.stack([np.cumsum(np.bincount(cells, minlength=n_cells)) for cells in neighbourhood.cells])
        parts = neighbourhood.cells, neighbourhood.weights, neighbourhood.closeness, neighbourhood.has_others, orders, ends
        return cls(*(cp.asarray(part) for part in parts))

    def in_cells(self, values: Any) -> Any:
        """Return `Neighbourhood.in_cells`, as differences of running sums, so that the order of additions never changes."""
        cp = cupy()
        total: Any = 0.0
        for weights, order, ends in zip(self.weights, self.orders, self.ends, strict=True):
            running = cp.concatenate([cp.zeros(1), np.cumsum((weights * values)[order])])[ends]
            running[1:] -= running[:-1].copy()
            total = total + running
        return total


@dataclass(frozen=True, eq=False)
class DeviceSurroundings:
    """`Surroundings` with CuPy arrays in and out; arrays of nodes are in node order.

    Attributes
    ----------
    plane : structured array of one record
        The struct `Plane` of the CUDA source; it holds addresses of `arrays`.
    arrays : tuple of CuPy arrays
    order : (n,) CuPy array
        The node of each number in the arrays.
    n_kernels : int
    wide : DeviceNeighbourhoods of many nodes
    covariates : (C, n) CuPy array
    narrow : numbers of the kernels of the nearest nodes only
    coordinates : whether coordinates were used
    """

    plane: np.ndarray
    arrays: tuple[Any, ...]
    order: Any
    n_kernels: int
    wide: tuple[DeviceNeighbourhood, ...]
    covariates: Any
    narrow: tuple[int, ...]
    coordinates: bool = True

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.order)

    def features_and_gains(self, values: Any) -> tuple[Any, Any]:
        """Return `Surroundings.features_and_gains`."""
        reached(0.0, "surroundings")
        both = np.concatenate([self.covariates * values, self.covariates**2])
        sums = self.sums(range(self.n_kernels), both).reshape(self.n_kernels, 2, -1, self.n)
        if self.wide:
            wide = np.stack([wide_sums(part, both) for part in self.wide]).reshape(len(self.wide), *sums.shape[1:])
            for part, gains_of_part in zip(self.wide, wide[:, 1], strict=True):
                gains_of_part *= part.has_others & (gains_of_part > TOO_FEW * self.covariates**2)  # otherwise it is rounding
            sums = np.concatenate([sums, wide])
        gains = [self.covariates / np.where(part > 0, part, np.inf) for part in sums[:, 1]]
        for feature, gain in zip(sums[:, 0], gains, strict=True):
            feature *= gain
        return sums[:, 0].reshape(-1, self.n), np.concatenate(gains)

    def sums(self, chosen: Sequence[int], values: Any) -> Any:
        """Return `Surroundings.sums`."""
        return sum_around(self, chosen, values)

    def features(self, values: Any, gains: Any, chosen: Sequence[int]) -> Any:
        """Return `Surroundings.features`."""
        return self._scaled(sum_around(self, chosen, self.covariates * values), gains, chosen)

    def echoes(self, coefficients: np.ndarray, gains: Any, slope: Any) -> Any:
        """Return `Surroundings.echoes`."""
        cp = cupy()
        n_features = self.n_kernels * len(self.covariates)
        active = np.flatnonzero(coefficients[:n_features])
        kernel, covariate = np.divmod(active, len(self.covariates))
        mix = cp.asarray(coefficients[active])[:, None] * gains[cp.asarray(active)]
        echoes = sum_echoes(self, self.narrow, self.covariates * slope, kernel, covariate, mix)
        by_kernel = echoes.reshape(len(self.narrow), len(self.covariates), self.n)
        add_wide_echoes(self, coefficients[n_features:], gains[n_features:], slope, by_kernel)
        return self._scaled(echoes, gains, self.narrow)

    def _scaled(self, sums: Any, gains: Any, chosen: Sequence[int]) -> Any:
        """Return the sums of the chosen kernels times the gains, in place."""
        count = len(self.covariates)
        for k, kernel in enumerate(chosen):
            part = sums[k * count : (k + 1) * count]
            part *= gains[kernel * count : (kernel + 1) * count]
        return sums


def obstacle_on_device(graph: Graph, surroundings: Surroundings) -> str | None:
    """Return why the surroundings of a graph cannot be computed on a GPU, or None if they can; cached with the graph."""
    return graph.cached(("surroundings, obstacle on device", surroundings.coordinates), lambda: _obstacle(surroundings))


def _obstacle(surroundings: Surroundings) -> str | None:
    arrays = surroundings.plane
    if arrays is None:
        return NO_PLACES
    starts, columns = arrays.near[:2]
    paths = np.concatenate([[0], np.cumsum(np.diff(starts)[columns])])
    within_two = np.diff(paths[starts])
    return HUBS.format(arrays.most_steps) if within_two.max(initial=0) > arrays.most_steps else None


def device_surroundings(graph: Graph, surroundings: Surroundings) -> DeviceSurroundings:
    """Return the surroundings on the GPU that CuPy uses; cached with the graph."""
    graph.check_device()
    return graph.cached(("surroundings on device", surroundings.coordinates), lambda: _uploaded(surroundings))


def _uploaded(surroundings: Surroundings) -> DeviceSurroundings:
    """Return the surroundings on the GPU."""
    cp, arrays = cupy(), surroundings.plane
    assert arrays is not None
    n, n_gaussians = surroundings.n, len(arrays.gaussians)
    order = cp.asarray(surroundings.order)
    cuts = cp.empty((n_gaussians, n)), cp.empty((n_gaussians, n), dtype=np.int32)
    walks = np.array([[exp(-hop / decay) for hop in range(arrays.hops)] for decay in arrays.decays])
    parts = (*(cp.asarray(part) for part in (*arrays.places, *arrays.cells[1:], arrays.gaussians, *arrays.edges, *arrays.near)),
             cp.asarray(arrays.onward.astype(np.int32)), cp.asarray(walks), *cuts)  # fmt: skip
    x, y, cosine, sine, *others = parts
    numbers = n, len(arrays.cells[1]) - 1, n_gaussians, len(walks), arrays.hops
    reals = float(arrays.cells[0]), log(arrays.least)
    fields = (*numbers, *reals, x, y, cosine, sine, order, *others)
    plane = struct_of({f"field{k}": value for k, value in enumerate(fields)})
    covariates = cp.asarray(surroundings.covariates)
    wide = tuple(DeviceNeighbourhood.of(part) for part in surroundings.wide)
    device = DeviceSurroundings(plane, parts, order, surroundings.n_kernels, wide, covariates, surroundings.narrow)
    find_cuts(device)
    return device


# ---- calls of the CUDA kernels -----------------------------------------------------------------------------------


def find_cuts(device: DeviceSurroundings) -> None:
    """Write which nodes the rows of Gaussians take: the last two arrays of the surroundings."""
    compiled("surroundings.cu", "find_cuts")(*_grid(device.n), (device.plane,))


def sum_around(device: DeviceSurroundings, chosen: Sequence[int], values: Any) -> Any:
    """Return sum_j K(i, j) values_j for the chosen kernels and values (v, n): (kernels * v, n)."""
    cp, count = cupy(), len(values)
    out = cp.empty((len(chosen) * count, device.n))
    ordered = cp.ascontiguousarray(values[:, device.order])
    kernel = compiled("surroundings.cu", "sum_around", count)
    kernel(*_grid(device.n), (device.plane, np.int32(len(chosen)), cp.asarray(np.array(chosen, dtype=np.int32)), ordered, out))
    return out


def sum_echoes(
    device: DeviceSurroundings, chosen: Sequence[int], values: Any, kernels: np.ndarray, covariates_of: np.ndarray, mix: Any
) -> Any:
    """Return sum_j K(i, j) values_j M(j, i), where M(j, i) = sum_a mix_aj K_a(j, i) covariates_i; shapes as in `sum_around`."""
    cp, count = cupy(), len(values)
    out = cp.empty((len(chosen) * count, device.n))
    ordered, mix, covariates = (cp.ascontiguousarray(part[:, device.order]) for part in (values, mix, device.covariates))
    numbers = [cp.asarray(part.astype(np.int32)) for part in (kernels, covariates_of)]
    struct = struct_of({"count": len(kernels), "kernels": numbers[0], "of": numbers[1], "mix": mix, "covariates": covariates})
    kernel = compiled("surroundings.cu", "sum_echoes", count)
    chosen_kernels = cp.asarray(np.array(chosen, dtype=np.int32))
    kernel(*_grid(device.n), (device.plane, np.int32(len(chosen)), chosen_kernels, ordered, struct, out))
    return out


def _grid(n: int) -> tuple[tuple[int], tuple[int]]:
    """Return the numbers of blocks and of threads of a block for a warp per node."""
    return (max(-(-n // WARPS), 1),), (32 * WARPS,)
