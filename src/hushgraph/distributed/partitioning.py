"""The partition of each node: boxes of coordinates with equal numbers of nodes, or ranges of an ordering.

Boxes come from repeated halving along the longer side, at quantiles of a sample, so coordinates need not fit into memory. Of nodes
with equal coordinates those with lower numbers come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import DTypeLike

from hushgraph._errors import InputError, Sentence
from hushgraph._validation import choose
from hushgraph.core import _loops
from hushgraph.distributed.store import (
    Place,
    damaged_error,
    has_hash,
    is_marked,
    mark_array,
    read_json,
    read_marked,
    write_rows,
)
from hushgraph.graphs import Graph

By = Literal["coordinates", "ordering", "rcm"]
Nodes = slice | np.ndarray
Owners = Callable[[Nodes], np.ndarray]  # the partitions of some nodes
SAMPLE = 2**20  # nodes whose coordinates decide the boxes
WIDE = 65_536  # partitions that 16 bits can number


def has_owners(root: Place) -> bool:
    """Return whether the folder of a graph has the partition of each node."""
    return is_marked(root / "owner.npy")


def write_owners(root: Place, n: int, dtype: DTypeLike, owners: Iterable[np.ndarray]) -> None:
    """Write the partition of each of n nodes into the folder of a graph; `owners` are its pieces, in order."""
    mark_array(root / "owner.npy", write_rows(root / "owner.npy", (n,), dtype, owners, safe=True))


def read_owners(root: Place, *, whole: bool = False) -> np.ndarray:
    """Return the partition of each node, mapped unless `whole`; folders of earlier versions have its hash in their manifest alone."""
    path = root / "owner.npy"
    if not is_marked(path) and path.exists():
        manifest = read_json(root / "manifest.json")
        if manifest is not None and not has_hash(path, manifest.get("partition_hash", "")):
            raise damaged_error(path)
    return read_marked(path, whole=whole)


def owner_dtype(parts: int) -> type[np.unsignedinteger]:
    """Return the smallest type for the numbers of so many partitions."""
    return np.uint16 if parts <= WIDE else np.uint32


def cut_for(by: By | None, n: int, parts: int, coords: np.ndarray | None, graph: Graph | None) -> tuple[By, Owners]:
    """Return how the nodes are cut, and a function that returns the partitions of some nodes."""
    by = ("ordering" if coords is None else "coordinates") if by is None else choose("by", by, get_args(By))
    if by == "coordinates":
        if coords is None:
            msg = "{by='coordinates'} needs coordinates: pass {coords=}, (n, 2) numbers or a .npy file of them, or say {by='ordering'}"
            raise InputError(Sentence(msg))
        return by, _boxes(coords, n, parts)
    if by == "ordering":
        return by, lambda nodes: (np.arange(nodes.start, nodes.stop) if isinstance(nodes, slice) else nodes) * parts // max(n, 1)
    if graph is None:
        raise InputError(Sentence("{by='rcm'} needs the graph in memory; for edge files number the nodes well, or give {coords=}"))
    from scipy.sparse import csgraph

    owner = np.empty(n, dtype=np.int64)
    owner[csgraph.reverse_cuthill_mckee(graph.adjacency, symmetric_mode=True)] = np.arange(n) * parts // max(n, 1)
    return by, lambda nodes: owner[nodes]


def _boxes(coords: np.ndarray, n: int, parts: int) -> Owners:
    """Return a function for the boxes of some nodes; the coordinates (n, dimensions) may be a mapped file."""
    if coords.ndim != 2 or len(coords) != n:
        raise InputError(Sentence("{coords} must be ({}, 2) or ({}, 3) numbers, a row per node; got {}", n, n, coords.shape))
    cuts = _cuts(_finite(sample_points(coords, n)), np.arange(0, n, max(1, n // SAMPLE)), parts)

    def owners(nodes: Nodes) -> np.ndarray:
        numbers = np.arange(nodes.start, nodes.stop) if isinstance(nodes, slice) else nodes
        return _loops.walk_cuts(_finite(np.ascontiguousarray(coords[nodes], dtype=np.float64)), numbers, *cuts)

    return owners


def sample_points(coords: np.ndarray, n: int) -> np.ndarray:
    """Return the coordinates that decide the boxes, of every k-th node."""
    return np.asarray(coords[:: max(1, n // SAMPLE)], dtype=np.float64)


def _finite(points: np.ndarray) -> np.ndarray:
    if not np.isfinite(points).all():
        raise InputError(
            Sentence("{coords} must be finite numbers; some are NaN or infinite; say {by='ordering'} to do without them")
        )
    return points


def _cuts(points: np.ndarray, nodes: np.ndarray, parts: int) -> tuple[np.ndarray, ...]:
    """Return (axis, value, node, (next step, next step if below)) of each halving, for ascending nodes.

    Step 0 is the first halving; a step ~p means that partition p is reached.
    """
    steps: list[tuple[int, float, int, tuple[int, int]]] = []

    def halve(axes: Sequence[np.ndarray], nodes: np.ndarray, first: int, parts: int) -> int:
        """Append the steps that divide the nodes among `parts` partitions from `first` on, and return the first of these steps."""
        if parts == 1:
            return ~first
        left, place = parts // 2, len(steps)
        axis = int(np.argmax([np.ptp(x) for x in axes])) if len(nodes) else 0
        x, value, node = axes[axis], 0.0, 0
        if len(x):
            wanted = len(x) * left // parts
            value = float(np.partition(x, wanted)[wanted])
            node = int(nodes[x == value][wanted - np.count_nonzero(x < value)])
        low = (x < value) | ((x == value) & (nodes < node))
        steps.append((axis, value, node, (0, 0)))
        below = halve([x[low] for x in axes], nodes[low], first, left)
        steps[place] = axis, value, node, (halve([x[~low] for x in axes], nodes[~low], first + left, parts - left), below)
        return place

    halve(list(np.ascontiguousarray(points.T)), nodes, 0, parts)
    return tuple(np.array(column) for column in zip(*steps or [(0, 0.0, 0, (~0, ~0))], strict=True))
