"""Priors of counts on a GPU, by `core/cuda/counts.cu`: sums that they are fitted by, and posterior means and variances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushgraph.core import compiled, cupy

THREADS, WARPS = 128, 4  # of a block


@dataclass(frozen=True, eq=False)
class PriorTables:
    """Both priors on a grid, in NumPy arrays.

    Attributes
    ----------
    grid, width : (points,) arrays
        The grid and the widths of its cells.
    gammas : (rows, points) array
        Distributions for means level exp(step (lowest + row)).
    lowest : int
    b0, b1, level, step : float
        A node with pilot mu has the mean level (b0 + b1 mu / level).
    knots, hats : (knots,) and (knots or 2, points) arrays
        The distributions at hat functions.
    underflow, farthest : float
        How far from y the grid is used, in sigmas: below and above.
    least : float
        Smallest evidence that is counted.
    """

    grid: np.ndarray
    width: np.ndarray
    gammas: np.ndarray
    lowest: int
    b0: float
    b1: float
    level: float
    step: float
    knots: np.ndarray
    hats: np.ndarray
    underflow: float
    farthest: float
    least: float


def posterior_moments(y: Any, sigma: Any, mu: Any, priors: PriorTables) -> tuple[Any, Any]:
    """Return posterior means and variances of all nodes under the equal mixture of both priors."""
    cp = cupy()
    arrays = {name: cp.asarray(getattr(priors, name)) for name in ("grid", "width", "gammas", "knots", "hats")}
    struct = struct_of({
        "points": len(priors.grid), "grid": arrays["grid"], "width": arrays["width"],
        "rows": len(priors.gammas), "lowest": priors.lowest, "gammas": arrays["gammas"],
        "b0": float(priors.b0), "b1": float(priors.b1), "level": float(priors.level), "step": float(priors.step),
        "n_knots": len(priors.knots), "knots": arrays["knots"], "hats": arrays["hats"],
        "underflow": float(priors.underflow), "farthest": float(priors.farthest), "least": float(priors.least),
    })  # fmt: skip
    mean, variance = cp.empty(len(y)), cp.empty(len(y))
    y, sigma, mu = (cp.ascontiguousarray(part) for part in (y, sigma, mu))
    kernel = compiled("counts.cu", "posterior")
    kernel((-(-len(y) // THREADS),), (THREADS,), (np.int64(len(y)), y, sigma, mu, struct, mean, variance))
    return mean, variance


def struct_of(fields: Mapping[str, Any]) -> np.ndarray:
    """Return a struct of a CUDA source with whole numbers and floats of 64 bits, and addresses of arrays, which must stay alive."""
    kinds = [(name, np.float64 if isinstance(value, float) else np.int64) for name, value in fields.items()]
    struct = np.zeros(1, dtype=np.dtype(kinds, align=True))
    struct[0] = tuple(value if isinstance(value, int | float) else value.data.ptr for value in fields.values())
    return struct


@dataclass(frozen=True, eq=False)
class DeviceLikelihood:
    """Stored likelihoods of some nodes on a GPU: the CuPy arrays of `Likelihood`, `values`, `starts`, `first` and `plain`."""

    values: Any
    starts: Any
    first: Any
    plain: Any

    def evidence(self, table: np.ndarray, low: Any, share: Any) -> Any:
        """Return the sum over the grid of likelihood times prior (1 - share) table[low] + share table[low + 1], for each node."""
        out, table = cupy().empty(len(self.plain)), cupy().asarray(table)
        compiled("counts.cu", "sum_evidence")(*self._grid(), (self._nodes(table.shape[1], low, share), table, out))
        return out

    def em_step(self, prior: np.ndarray, low: np.ndarray, share: np.ndarray, least: float) -> Callable[[Any], Any]:
        """Return the function that takes distributions to those after one step of EM, with one pseudo-count on the prior.

        Entries of the likelihoods are sorted by the lower distribution of their node and by grid point, so that a block of threads sums
        neighbours in memory, in an order that never changes.
        """
        cp = cupy()
        rows, points = prior.shape
        prior, lower_row, share = cp.asarray(prior), cp.asarray(low), cp.asarray(share)
        entry = cp.arange(len(self.values))
        node = cp.searchsorted(self.starts, entry, side="right") - 1  # every node has entries
        place = lower_row[node] * points + self.first[node] + entry - self.starts[node]
        by_place = cp.argsort(place * len(low) + node)  # no two are the same
        starts = cp.searchsorted(place[by_place], cp.arange((rows - 1) * points + 1))
        values, node_of = self.values[by_place], node[by_place].astype(np.int32)
        factors, lower, upper = cp.empty((len(low), 2)), cp.empty((rows - 1, points)), cp.empty((rows - 1, points))

        def step(table: Any) -> Any:
            out, nodes = cp.empty((rows, points)), self._nodes(points, lower_row, share)
            compiled("counts.cu", "put_factors")(*self._grid(), (nodes, table, self.plain, float(least), factors))
            compiled("counts.cu", "sum_expected")(((rows - 1) * points,), (256,), (starts, node_of, values, factors, lower, upper))
            sizes = np.int64(points), np.int64(rows)
            compiled("counts.cu", "update_table")((rows,), (256,), (*sizes, table, prior, lower, upper, out))
            return out

        return step

    def _nodes(self, points: int, low: Any, share: Any) -> np.ndarray:
        """Return the struct Nodes."""
        arrays = {"values": self.values, "starts": self.starts, "first": self.first, "low": low, "share": share}
        return struct_of({"n": len(self.plain), "points": points, **arrays})

    def _grid(self) -> tuple[tuple[int], tuple[int]]:
        """Return the numbers of blocks and of threads of a block for a warp per node."""
        return (max(-(-len(self.plain) // WARPS), 1),), (32 * WARPS,)
