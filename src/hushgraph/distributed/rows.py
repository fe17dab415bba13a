"""Rows of the adjacency matrix, partition by partition, from edge lists that never fit into memory.

Two kinds of tasks. `sort_piece` reads a piece of the edges, turns each into both its directions and sorts them by the partition that
owns the row. `build_rows` gathers what all pieces have for one partition and writes its rows, neighbours in ascending number, edges
given twice united as `Graph.from_edges` does. Neighbours keep their numbers in the whole graph.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph.adjacency import checked_weights
from hushgraph.core import _loops
from hushgraph.distributed.edges import Columns, batches_of
from hushgraph.distributed.store import Output, part_folder, pieces, read_array
from hushgraph.symmetric import MERGING


def sort_piece(work: Path, k: int, piece, columns: Columns, n: int, parts: int) -> dict[str, Any]:
    """Both directions of the edges of one piece, by partition of their row."""
    out, rows = Output(work / "pieces" / f"{k:06d}", "sorted"), list(piece[1:3])
    if (known := out.known()) is not None and known.get("rows") == rows:
        return known
    pairs, weights = _kept(piece, columns, n)
    starts, ends, data = _loops.sort_by_owner(pairs, weights, read_array(work / "owner.npy", whole=False), parts)
    out.save("starts", starts)
    out.save("ends", ends)
    if columns.weight is not None:
        out.save("weights", data)
    return out.done({"edges": len(pairs), "rows": rows})


def _kept(piece, columns: Columns, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The edges of a piece without loops and weights of 0, in as few bytes as they need; no weights where there is no column of them."""
    pairs, weights = np.empty((piece[3], 2), np.int32), np.empty(0 if columns.weight is None else piece[3])
    size = 0
    for own, given in batches_of(piece, columns):
        if int(own.max()) >= n:
            msg = "{} names node {}, but there are only n={} nodes (numbered from 0); raise {n} or renumber"
            raise InputError(Sentence(msg, piece[0], int(own.max()), n))
        keep = own[:, 0] != own[:, 1]
        if given is not None:
            keep &= checked_weights(given, len(own)) > 0
            weights[size : size + np.count_nonzero(keep)] = given[keep]
        own = own[keep]
        pairs[size : size + len(own)] = own
        size += len(own)
    return pairs[:size], weights[:size]


def build_rows(work: Path, part: int, n_pieces: int, weighted: bool, merging: str) -> dict[str, Any]:
    """The rows of one partition."""
    out = Output(part_folder(work, part), "rows")
    if (known := out.known()) is not None:
        return known
    ends, weights = _gathered(work, part, n_pieces, weighted)
    nodes = owned_nodes(work, part)
    starts, columns, data = _loops.place_entries(nodes, ends, weights)
    del ends, weights
    size, i, j, one, other = _loops.merge_entries(starts, columns, data, MERGING[merging])  # type: ignore[index]
    if size < 0:
        msg = "edge ({}, {}) is given more than once with different weights ({:g} and {:g}); say {duplicates='sum'} or 'max'"
        raise InputError(Sentence(msg, nodes[i], j, one, other))
    return write_part_rows(out, nodes, starts, columns[:size], data[:size] if weighted else None)


def write_part_rows(out: Output, nodes, starts, columns, data) -> dict[str, Any]:
    """Nodes, rows, neighbours and weights of a partition, and what all partitions together must know; weights of 1 are left out."""
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
    return out.done(
        {
            "nodes": len(nodes),
            "entries": len(columns),
            "longest": int(lengths.max(initial=0)),
            "lightest": float(weights.min(initial=np.inf)),  # without entries a partition says nothing of weights
            "heaviest": float(weights.max(initial=0.0)),
            "least_degree": float(some.min(initial=np.inf)),
            "most_degree": float(degrees.max(initial=0.0)),
            "linked": len(some),
            "fingerprint": _loops.fingerprint(nodes.astype(np.int64), starts, columns, _bits(data)),
        }
    )


def owned_nodes(work: Path, part: int) -> np.ndarray:
    owner = read_array(work / "owner.npy", whole=False)
    return np.concatenate(
        [nodes.start + np.flatnonzero(owner[nodes] == part).astype(np.int32) for nodes in pieces(len(owner))]
        or [np.empty(0, np.int32)],
        dtype=np.int32,
        casting="same_kind",
    )


def row_sums(starts: np.ndarray, data: np.ndarray | None) -> np.ndarray:
    """Degrees, added up as `Graph.degrees` does."""
    lengths = np.diff(starts)
    if data is None:
        return lengths.astype(np.float64)
    sums, some = np.zeros(len(lengths)), np.flatnonzero(lengths)
    if len(some):
        sums[some] = np.add.reduceat(data, starts[some])
    return sums


def _gathered(work: Path, part: int, n_pieces: int, weighted: bool):
    """Entries of the partition's rows from all pieces, in the order in which they were given."""
    ends, weights = [np.empty((0, 2), np.int32)], [np.empty(0)]
    for k in range(n_pieces):
        piece = Output(work / "pieces" / f"{k:06d}", "sorted")
        first, last = piece.load("starts")[part : part + 2]
        ends.append(np.asarray(piece.load("ends", whole=False)[first:last]))
        if weighted:
            weights.append(np.asarray(piece.load("weights", whole=False)[first:last]))
    return np.concatenate(ends), np.concatenate(weights)


def _bits(data: np.ndarray | None) -> np.ndarray:
    """Those of the weights, or of one for all."""
    return np.ones(1).view(np.uint64) if data is None or not len(data) else data.view(np.uint64)
