"""Rows of the adjacency matrix, partition by partition, from edge lists that never fit into memory.

Two kinds of tasks. `sort_piece` reads a piece of the edges, turns each into both its directions and sorts them by the partition that
owns the row. `build_rows` gathers what all pieces have for one partition and writes its rows, neighbours in ascending number, edges
given twice united as `Graph.from_edges` does. Neighbours keep their numbers in the whole graph.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from hushgraph._errors import InputError, Sentence
from hushgraph.adjacency import checked_weights
from hushgraph.distributed.edges import Columns, batches_of
from hushgraph.distributed.store import Output, part_folder, pieces, read_array
from hushgraph.risk import scramble
from hushgraph.symmetric import MERGING, merged

_scrambled = njit(cache=True)(scramble)


def sort_piece(work: Path, k: int, piece, columns: Columns, n: int, parts: int) -> dict[str, Any]:
    """Both directions of the edges of one piece, by partition of their row."""
    out, rows = Output(work / "pieces" / f"{k:06d}", "sorted"), list(piece[1:3])
    if (known := out.known()) is not None and known.get("rows") == rows:
        return known
    pairs, weights = _kept(piece, columns, n)
    starts, ends, data = _both_by_owner(pairs, weights, read_array(work / "owner.npy", whole=False), parts)
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


@njit(cache=True)
def _both_by_owner(pairs, weights, owner, parts):
    """Each edge, then its other direction, sorted by the owner of the first end; (starts of the owners, ends, weights)."""
    starts = np.zeros(parts + 1, np.int64)
    for k in range(len(pairs)):
        for side in range(2):
            starts[owner[pairs[k, side]] + 1] += 1
    starts = np.cumsum(starts)
    place, ends, data = starts[:-1].copy(), np.empty((2 * len(pairs), 2), np.int32), np.empty(2 * len(weights))
    for k in range(len(pairs)):
        for side in range(2):
            row = pairs[k, side]
            own = owner[row]
            ends[place[own], 0] = row
            ends[place[own], 1] = pairs[k, 1 - side]
            if len(weights):
                data[place[own]] = weights[k]
            place[own] += 1
    return starts, ends, data


def build_rows(work: Path, part: int, n_pieces: int, weighted: bool, merging: str) -> dict[str, Any]:
    """The rows of one partition."""
    out = Output(part_folder(work, part), "rows")
    if (known := out.known()) is not None:
        return known
    ends, weights = _gathered(work, part, n_pieces, weighted)
    nodes = owned_nodes(work, part)
    starts, columns, data = _placed(_ranks(nodes, ends[:, 0]), ends[:, 1], weights, len(nodes))
    del ends, weights
    size, i, j, one, other = merged(starts, columns, data, MERGING[merging])  # type: ignore[index]
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
            "fingerprint": int(_fingerprint(nodes.astype(np.int64), starts, columns, _bits(data))),
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


@njit(cache=True)
def _ranks(nodes, wanted):
    """Places of these nodes among ascending ones, each looked for from the one before."""
    found, near = np.empty(len(wanted), np.int32), 0
    for k in range(len(wanted)):
        near = found[k] = find(nodes, wanted[k], near)
    return found


@njit(cache=True)
def find(nodes, node, near):
    """Place of a node in ascending ones, looked for in growing steps from `near`; -1 if it is not there."""
    low, high, step = near, near, 1
    if node < nodes[near]:
        while low > 0 and nodes[low] > node:
            high, low = low, max(0, low - step)
            step *= 2
    else:
        while high < len(nodes) - 1 and nodes[high] < node:
            low, high = high, min(len(nodes) - 1, high + step)
            step *= 2
    while low < high:
        middle = (low + high) // 2
        if nodes[middle] < node:
            low = middle + 1
        else:
            high = middle
    return low if nodes[low] == node else -1


@njit(cache=True)
def _placed(rows, columns, weights, n):
    """Entries row by row, neighbours in ascending number and equal ones in the order given."""
    starts = np.zeros(n + 1, np.int64)
    for k in range(len(rows)):
        starts[rows[k] + 1] += 1
    starts = np.cumsum(starts)
    place, found, data = starts[:-1].copy(), np.empty(len(columns), np.int32), np.empty(len(weights))
    for k in range(len(rows)):
        found[place[rows[k]]] = columns[k]
        if len(weights):
            data[place[rows[k]]] = weights[k]
        place[rows[k]] += 1
    for i in range(n):
        first, last = starts[i], starts[i + 1]
        if last - first > 64:
            order = np.argsort(found[first:last], kind="mergesort")
            found[first:last] = found[first:last][order]
            if len(weights):
                data[first:last] = data[first:last][order]
            continue
        for k in range(first + 1, last):  # short rows: insertion
            column, weight, m = found[k], data[k] if len(weights) else 0.0, k
            while m > first and found[m - 1] > column:
                found[m] = found[m - 1]
                if len(weights):
                    data[m] = data[m - 1]
                m -= 1
            found[m] = column
            if len(weights):
                data[m] = weight
    return starts, found, data


def _bits(data: np.ndarray | None) -> np.ndarray:
    """Those of the weights, or of one for all."""
    return np.ones(1).view(np.uint64) if data is None or not len(data) else data.view(np.uint64)


@njit(cache=True)
def _fingerprint(nodes, starts, columns, bits):
    """A number of 64 bits for the entries, the same in any order: it tells graphs apart, it does not protect."""
    total = np.uint64(0)
    for i in range(len(nodes)):
        own = _scrambled(np.uint64(nodes[i]))
        for k in range(starts[i], starts[i + 1]):
            total += _scrambled((own ^ _scrambled(np.uint64(columns[k]))) + bits[k if len(bits) > 1 else 0])
    return total
