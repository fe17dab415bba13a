"""Rows of the adjacency matrix, partition by partition, from edge lists that need not fit into memory.

There are two kinds of tasks. `sort_piece` reads a piece of the edges and sorts both directions of each edge by the partition that
owns the row. `build_rows` gathers the entries of one partition from all pieces and writes its rows: neighbors in ascending number,
edges given twice merged as in `Graph.from_edges`. Neighbors keep their numbers in the whole graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph.core import _loops
from hushgraph.distributed.edges import EdgeColumns, Piece, read_batches
from hushgraph.distributed.partitioning import read_owners
from hushgraph.distributed.store import Output, Place, part_folder, pieces
from hushgraph.graphs import MERGING, checked_weights


def sort_piece(work: Place, k: int, piece: Piece, columns: EdgeColumns, n: int, parts: int) -> dict[str, Any]:
    """Write both directions of the edges of one piece, sorted by the partition of their row."""
    out, rows = Output(work / "pieces" / f"{k:06d}", "sorted"), list(piece[1:3])
    if (finished := out.read_facts()) is not None and finished.get("rows") == rows:
        return finished
    pairs, weights = _read_edges(piece, columns, n)
    starts, ends, data = _loops.sort_by_owner(pairs, weights, read_owners(work), parts)
    out.save("starts", starts)
    out.save("ends", ends)
    if columns.weight is not None:
        out.save("weights", data)
    return out.mark_done({"edges": len(pairs), "rows": rows})


def _read_edges(piece: Piece, columns: EdgeColumns, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of a piece without loops and weights of 0, as int32; weights are empty where there is no column of weights."""
    pairs, weights = np.empty((piece[3], 2), np.int32), np.empty(0 if columns.weight is None else piece[3])
    size = 0
    for batch, batch_weights in read_batches(piece, columns, n):
        is_edge = batch[:, 0] != batch[:, 1]
        if batch_weights is not None:
            is_edge &= checked_weights(batch_weights, len(batch)) > 0
            weights[size : size + np.count_nonzero(is_edge)] = batch_weights[is_edge]
        edges = batch[is_edge]
        pairs[size : size + len(edges)] = edges
        size += len(edges)
    return pairs[:size], weights[:size]


def build_rows(work: Place, part: int, n_pieces: int, weighted: bool, merging: str) -> dict[str, Any]:
    """Write the rows of one partition."""
    out = Output(part_folder(work, part), "rows")
    if (finished := out.read_facts()) is not None:
        return finished
    ends, weights = _gather(work, part, n_pieces, weighted)
    nodes = owned_nodes(work, part)
    starts, columns, data = _loops.place_entries(nodes, ends, weights)
    del ends, weights
    size, i, j, one, other = _loops.merge_entries(starts, columns, data, MERGING[merging])  # type: ignore[index]
    if size < 0:
        msg = "edge ({}, {}) is given more than once with different weights ({:g} and {:g}); say {duplicates='sum'} or 'max'"
        raise InputError(Sentence(msg, nodes[i], j, one, other))
    return write_part_rows(out, nodes, starts, columns[:size], data[:size] if weighted else None)


def write_part_rows(
    out: Output, nodes: np.ndarray, starts: np.ndarray, columns: np.ndarray, data: np.ndarray | None
) -> dict[str, Any]:
    """Write nodes, row starts, neighbors and weights of a partition, and return its facts; weights that are all 1 are left out."""
    if data is not None and np.all(data == 1.0):
        data = None
    elif data is not None:
        checked_weights(data, len(data))
    degrees = row_sums(starts, data)
    lengths = np.diff(starts)
    out.save("nodes", nodes.astype(np.int32))
    out.save("starts", starts)
    out.save("columns", columns)
    if data is not None:
        out.save("weights", data)
    some, weights = degrees[degrees > 0], np.ones(min(1, len(columns))) if data is None else data
    return out.mark_done(
        {
            "nodes": len(nodes),
            "entries": len(columns),
            "longest": int(lengths.max(initial=0)),
            "lightest": float(weights.min(initial=np.inf)),  # a partition without entries does not limit the weights
            "heaviest": float(weights.max(initial=0.0)),
            "least_degree": float(some.min(initial=np.inf)),
            "most_degree": float(degrees.max(initial=0.0)),
            "linked": len(some),
            "fingerprint": _loops.fingerprint(nodes.astype(np.int64), starts, columns, _bits(data)),
        }
    )


def owned_nodes(work: Place, part: int) -> np.ndarray:
    """Return the nodes of a partition, ascending."""
    owner = read_owners(work)
    return np.concatenate(
        [nodes.start + np.flatnonzero(owner[nodes] == part).astype(np.int32) for nodes in pieces(len(owner))]
        or [np.empty(0, np.int32)],
        dtype=np.int32,
        casting="same_kind",
    )


def row_sums(starts: np.ndarray, data: np.ndarray | None) -> np.ndarray:
    """Return the degrees, with the bits of `Graph.degrees`."""
    lengths = np.diff(starts)
    if data is None:
        return lengths.astype(np.float64)
    sums, some = np.zeros(len(lengths)), np.flatnonzero(lengths)
    if len(some):
        sums[some] = np.add.reduceat(data, starts[some])
    return sums


def _gather(work: Place, part: int, n_pieces: int, weighted: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries of the rows of a partition from all pieces, in the order of the edge files."""
    ends, weights = [np.empty((0, 2), np.int32)], [np.empty(0)]
    for k in range(n_pieces):
        piece = Output(work / "pieces" / f"{k:06d}", "sorted")
        first, last = piece.load("starts")[part : part + 2]
        ends.append(np.asarray(piece.load("ends", whole=False)[first:last]))
        if weighted:
            weights.append(np.asarray(piece.load("weights", whole=False)[first:last]))
    return np.concatenate(ends), np.concatenate(weights)


def _bits(data: np.ndarray | None) -> np.ndarray:
    """Return the weights as bits; the bits of a single 1 where all weights are 1."""
    return np.ones(1).view(np.uint64) if data is None or not len(data) else data.view(np.uint64)
