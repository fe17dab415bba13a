"""Which partition each node belongs to: boxes of equal numbers of nodes by coordinates, or ranges of an ordering.

Boxes come from repeated halving along the longer side, at quantiles of a sample, so coordinates need not fit into memory. Of nodes
with equal coordinates those with lower numbers come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from hushgraph.checks import choose
from hushgraph.distributed.store import pieces, write_rows

By = Literal["coordinates", "ordering", "rcm"]
SAMPLE = 2**20  # nodes that the boxes are made of
WIDE = 65_536  # partitions


def write_owners(path: Path, n: int, parts: int, owners_of: Callable[[slice], np.ndarray]) -> None:
    """The partition of each node, piece by piece."""
    write_rows(path, (n,), owner_type(parts), (owners_of(nodes) for nodes in pieces(n)), safe=True)


def owner_type(parts: int):
    return np.uint16 if parts <= WIDE else np.uint32


def cut_for(by: By | None, n: int, parts: int, coords, graph) -> tuple[By, Callable[[slice], np.ndarray]]:
    """How the nodes are cut, and a function for the partitions of a stretch of nodes."""
    by = ("ordering" if coords is None else "coordinates") if by is None else choose("by", by, get_args(By))
    if by == "coordinates":
        if coords is None:
            msg = "by='coordinates' needs coordinates: pass coords=, (n, 2) numbers or a .npy file of them, or say by='ordering'"
            raise ValueError(msg)
        return by, _boxes(coords, n, parts)
    if by == "ordering":
        return by, lambda nodes: np.arange(nodes.start, nodes.stop) * parts // max(n, 1)
    if graph is None:
        msg = "by='rcm' needs the graph in memory; for edge files number the nodes well, or give coords="
        raise ValueError(msg)
    from scipy.sparse import csgraph

    owner = np.empty(n, dtype=np.int64)
    owner[csgraph.reverse_cuthill_mckee(graph.adjacency, symmetric_mode=True)] = np.arange(n) * parts // max(n, 1)
    return by, lambda nodes: owner[nodes]


def _boxes(coords, n: int, parts: int) -> Callable[[slice], np.ndarray]:
    """Coordinates (n, dimensions), an array or a mapped file."""
    if coords.ndim != 2 or len(coords) != n:
        msg = f"coords must be ({n}, 2) or ({n}, 3) numbers, a row per node; got {coords.shape}"
        raise ValueError(msg)
    step = max(1, n // SAMPLE)
    sample = np.asarray(coords[::step], dtype=np.float64)
    if not np.isfinite(sample).all():
        msg = "coords must be finite numbers; some are NaN or infinite; say by='ordering' to do without them"
        raise ValueError(msg)
    tree = _halved(sample, np.arange(0, n, step), 0, parts)

    def owners(nodes: slice) -> np.ndarray:
        points = np.asarray(coords[nodes], dtype=np.float64)
        found = np.empty(len(points), dtype=np.int64)
        for part, inside in _leaves(tree, points, nodes.start, np.arange(len(points))):
            found[inside] = part
        return found

    return owners


def _halved(points: np.ndarray, nodes: np.ndarray, first: int, parts: int):
    """A number, or (axis, (value, node), what lies before them, what does not); nodes ascend."""
    if parts == 1:
        return first
    left = parts // 2
    axis = int(np.argmax(np.ptp(points, axis=0))) if len(points) else 0
    x, cut = points[:, axis], (0.0, 0)
    if len(x):
        wanted = len(x) * left // parts
        value = np.partition(x, wanted)[wanted]
        cut = float(value), int(nodes[x == value][wanted - np.count_nonzero(x < value)])
    low = _before(x, nodes, cut)
    return axis, cut, _halved(points[low], nodes[low], first, left), _halved(points[~low], nodes[~low], first + left, parts - left)


def _before(x: np.ndarray, nodes: np.ndarray, cut: tuple[float, int]) -> np.ndarray:
    """Which nodes come before the cut, by their coordinates and, where those are equal, by their numbers."""
    return (x < cut[0]) | ((x == cut[0]) & (nodes < cut[1]))


def _leaves(tree, points: np.ndarray, start: int, here: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(partition, places) of points whose first one is the node `start`."""
    if isinstance(tree, int):
        yield tree, here
        return
    axis, cut, low, high = tree
    before = _before(points[here, axis], start + here, cut)
    yield from _leaves(low, points, start, here[before])
    yield from _leaves(high, points, start, here[~before])
