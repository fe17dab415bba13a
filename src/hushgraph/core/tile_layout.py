"""Tiles of a graph for a GPU: parts of a few thousand rows that several steps of the recurrence go through without the rest of the graph.

A tile is some connected balls of nodes. With the halo of all rows up to HOPS edges away it fits into the shared memory of a block, which
computes HOPS terms of the recurrence of its rows in one launch: in each step of the halo that is still right, then of one hop less. A term
then costs no access to memory outside. Rows are sorted by tile, number of neighbours (so that those of a warp have equally many) and node
number. Neighbours stay in ascending node number inside a row, so that sums are those of the processor. Only matrices are used here, no
graph and no GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hushgraph.core import _loops

THREADS = 512  # of a block; a thread has every 512th row of its tile
ROWS_PER_THREAD = (6, 7, 8, 9)  # that are tried; 9 fill the shared memory of half a multiprocessor
HOPS = (6, 4, 2)  # steps per launch that are tried, at most 8
PER_QUAD = 4  # neighbours of a row; of rows that have more, three and the number of a list
CODE, LISTED = 2**13, 7  # factor of the number of neighbours in the last place of a quad, and what stands for more than four
WARP = 32


@dataclass(frozen=True, eq=False)
class Tiles:
    """The rows of each tile: its own, from `starts[t]` to `starts[t + 1]`, then its halo, those nearest first.

    Of the rows of tile t, `ends[t, h]` are at most h edges away from its own. `halo` holds the row numbers of all halos, from `halo_starts[t]`
    on; `quads` (rows that are computed, 4) the neighbours by their places in the tile, from `quad_starts[t]` on, and the place after the last one
    of all where there is none. In the fourth place CODE times the number of neighbours is added, or CODE LISTED to the number of a list.
    List k of tile t is `list_places[list_starts[k'] : list_starts[k' + 1]]`, k' = list_bases[t] + k.
    """

    order: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    halo_starts: np.ndarray
    halo: np.ndarray
    quad_starts: np.ndarray
    quads: np.ndarray
    list_bases: np.ndarray
    list_starts: np.ndarray
    list_places: np.ndarray
    rows_per_thread: int

    @property
    def count(self) -> int:
        """Number of tiles."""
        return len(self.starts) - 1

    @property
    def hops(self) -> int:
        """Steps of the recurrence in a launch."""
        return self.ends.shape[1] - 1

    @property
    def stride(self) -> int:
        """Number of rows, rounded up to whole warps."""
        return -(-max(len(self.order), 1) // WARP) * WARP


def prepare(adjacency: Any, n_blocks: int) -> Tiles | None:
    """Return the tiles of a symmetric matrix, for a GPU that runs `n_blocks` blocks at a time; None if its halos are too large."""
    indptr, indices = adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int64)
    for hops in HOPS:
        balls = _loops.grow_balls(adjacency.indptr, adjacency.indices, _ball_size(len(indptr) - 1)).astype(np.int64)
        sizes = np.bincount(balls) + np.bincount(_halo(indptr, indices, balls, hops)[0], minlength=balls.max(initial=-1) + 1)
        choices = [_packed(sizes, rows * THREADS) for rows in ROWS_PER_THREAD]
        cost = [
            np.inf if bins is None else rows * -(-(bins.max(initial=-1) + 1) // n_blocks)
            for rows, bins in zip(ROWS_PER_THREAD, choices, strict=True)
        ]
        best = int(np.argmin(cost))
        bins = choices[best]
        if bins is not None:
            return _tiles(indptr, indices, bins[balls], hops, ROWS_PER_THREAD[best])
    return None


def _ball_size(n: int) -> int:
    """Return the size of balls: a third of a tile, as balls of twice that size must fit, too."""
    return max(min(n, THREADS * ROWS_PER_THREAD[0] // 3), 1)


def _packed(sizes: np.ndarray, most: int) -> np.ndarray | None:
    """Return the bin of each item, in bins of at most `most`: large items first, each into the first bin with room; None if one is larger."""
    if sizes.max(initial=0) > most:
        return None
    bins, free = np.empty(len(sizes), np.int64), np.full(len(sizes), most)
    for item in np.argsort(-sizes, kind="stable").tolist():
        place = int(np.argmax(free >= sizes[item]))
        bins[item] = place
        free[place] -= sizes[item]
    return bins


def _neighbours(indptr: np.ndarray, indices: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbours of rows, one row after the other, and the position among `rows` that each belongs to."""
    length = indptr[rows + 1] - indptr[rows]
    position = np.repeat(np.arange(len(rows)), length)
    within = np.arange(len(position)) - np.repeat(np.cumsum(length) - length, length)
    return indices[indptr[rows][position] + within], position


def _halo(indptr: np.ndarray, indices: np.ndarray, tile: np.ndarray, hops: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (tile, node, hop) of all nodes that are 1 .. hops edges away from a tile, sorted by tile, hop, neighbours and node."""
    n = max(len(tile), 1)
    nodes, owner = np.arange(len(tile)), tile
    known, parts = np.zeros(0, np.int64), []
    for _ in range(hops):
        other, position = _neighbours(indptr, indices, nodes)
        outside = tile[other] != owner[position]
        latest = np.unique(owner[position][outside] * n + other[outside])
        latest = latest[~np.isin(latest, known, assume_unique=True)]
        known = np.concatenate([known, latest])
        parts.append(latest)
        nodes, owner = latest % n, latest // n
    hop = np.repeat(np.arange(1, hops + 1), [len(part) for part in parts])
    order = np.lexsort((known % n, np.minimum(np.diff(indptr), PER_QUAD + 1)[known % n], hop, known // n))
    return known[order] // n, known[order] % n, hop[order]


def _tiles(indptr: np.ndarray, indices: np.ndarray, tile: np.ndarray, hops: int, rows_per_thread: int) -> Tiles:
    """Return the tiles to which nodes belong, with their halos."""
    n, count = len(tile), int(tile.max(initial=-1)) + 1
    order = np.lexsort((np.minimum(np.diff(indptr), PER_QUAD + 1), tile))
    row = np.empty(n, np.int64)
    row[order] = np.arange(n)
    own = np.bincount(tile, minlength=count)
    starts = _starts(own)
    halo_tile, halo_node, hop = _halo(indptr, indices, tile, hops)
    halo_starts = _starts(np.bincount(halo_tile, minlength=count))
    ends = own[:, None] + np.stack([np.bincount(halo_tile[hop <= h], minlength=count) for h in range(hops + 1)], axis=1)
    halo_place = own[halo_tile] + np.arange(len(halo_tile)) - halo_starts[halo_tile]
    keys = halo_tile * max(n, 1) + halo_node
    by_key = np.argsort(keys)

    def place_of(tiles: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Return the places of nodes in tiles."""
        found = row[nodes] - starts[tiles]
        outside = np.flatnonzero(tile[nodes] != tiles)
        found[outside] = halo_place[by_key[np.searchsorted(keys, tiles[outside] * n + nodes[outside], sorter=by_key)]]
        return found

    computed = hop < hops
    tiles = np.concatenate([tile[order], halo_tile[computed]])
    nodes = np.concatenate([order, halo_node[computed]])
    sequence = np.argsort(tiles, kind="stable")  # places ascend in each tile
    tiles, nodes = tiles[sequence], nodes[sequence]
    other, position = _neighbours(indptr, indices, nodes)
    return Tiles(
        order.astype(np.int32),
        starts.astype(np.int32),
        ends.astype(np.int32),
        halo_starts.astype(np.int32),
        row[halo_node].astype(np.int32),
        _starts(ends[:, -2]).astype(np.int32),
        *_quads(rows_per_thread * THREADS, tiles, position, place_of(tiles[position], other), count),
        rows_per_thread,
    )


def _quads(
    nowhere: int, tiles: np.ndarray, position: np.ndarray, neighbour: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return quads, list_bases, list_starts and list_places of rows of these tiles, from the places of their neighbours."""
    length = np.bincount(position, minlength=len(tiles))
    within = np.arange(len(position)) - np.repeat(np.cumsum(length) - length, length)
    has_list = length > PER_QUAD
    inside = within < np.where(has_list, PER_QUAD - 1, PER_QUAD)[position]
    quads = np.full((len(tiles), PER_QUAD), nowhere)
    quads[position[inside], within[inside]] = neighbour[inside]
    list_bases = _starts(np.bincount(tiles[has_list], minlength=count))
    quads[has_list, -1] = np.arange(has_list.sum()) - list_bases[tiles[has_list]]
    quads[:, -1] += CODE * np.where(has_list, LISTED, length)
    list_starts = _starts(length[has_list] - (PER_QUAD - 1))
    return (
        quads.astype(np.uint16),
        list_bases.astype(np.int32),
        list_starts.astype(np.int32),
        neighbour[~inside].astype(np.uint16),
    )


def _starts(lengths: np.ndarray) -> np.ndarray:
    """Return where parts of these lengths start, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
