"""Ghosts by hops: on graphs like streets, where partitions pay, and on small worlds, where they do not."""

from __future__ import annotations

import numpy as np

import hushgraph as hg
from hushgraph.core import _loops
from hushgraph.distributed.partitioning import cut_for, owner_dtype

DEPTHS = (1, 3, 10, 30, 100)
NODES, PARTS = 200_000, 8
NEVER = 2**62


def graphs() -> dict:
    """Graphs of about 200,000 nodes and 4 or so neighbours."""
    rng, side = np.random.default_rng(0), round(NODES**0.5)
    ring = [rng.permutation(NODES) for _ in range(2)]
    regular = np.concatenate([np.stack([order, np.roll(order, 1)], axis=1) for order in ring])
    return {
        "road-like": hg.datasets.roads(NODES),
        "grid": hg.datasets.grid(side, side),
        "random geometric": hg.datasets.random_geometric(NODES),
        "random, 4 neighbours each": hg.Graph.from_edges(regular, n=NODES),
        "Erdos-Renyi, 4 on average": hg.Graph.from_edges(rng.integers(0, NODES, (2 * NODES, 2)), n=NODES),
        "scale-free, 4 on average": hg.Graph.from_edges(_attached(rng), n=NODES),
    }


def _attached(rng) -> np.ndarray:
    """Each new node joins two ends of earlier edges: preferential attachment."""
    ends = np.zeros(4 * NODES, dtype=np.int64)
    ends[:4] = 0, 1, 1, 2
    chosen, size = rng.random((NODES, 2)), 4
    for node in range(3, NODES):
        first, second = ends[int(chosen[node, 0] * size)], ends[int(chosen[node, 1] * size)]
        ends[size : size + 4] = node, first, node, second
        size += 4
    return ends[:size].reshape(-1, 2)


def shares(graph) -> tuple[str, list[float]]:
    """How it was cut, and ghosts per owned node within each number of hops, the mean of three partitions."""
    by, owners = cut_for(None if graph.coords is not None else "rcm", graph.n, PARTS, graph.coords, graph)
    owner = owners(slice(0, graph.n)).astype(owner_dtype(PARTS))
    rows, found = graph.adjacency, []
    for depth in DEPTHS:
        counts = [
            _loops.count_ghosts(rows.indptr, rows.indices, owner, part, np.full(graph.n, -1, np.int32), depth, NEVER)[0]
            / np.sum(owner == part)
            for part in (0, PARTS // 2, PARTS - 1)
        ]
        found.append(float(np.mean(counts)))
    return by, found


def border(side: int = 1500) -> tuple[float, float]:
    """Of streets, ghosts = first * depth * sqrt(owned) + second * depth^2 around a box of nodes."""
    graph = streets_like(side)
    rows, place, table, right = graph.adjacency, np.divmod(np.arange(side * side), side), [], []
    for box in (200, 400, 800):
        low = (side - box) // 2
        owner = np.all([(axis >= low) & (axis < low + box) for axis in place], axis=0).astype(owner_dtype(2))
        for depth in (30, 100):
            count = _loops.count_ghosts(rows.indptr, rows.indices, owner, 1, np.full(side * side, -1, np.int32), depth, NEVER)[0]
            table.append(np.array([depth * box, depth**2]) / count)
            right.append(1.0)
    found = np.linalg.lstsq(np.array(table), np.array(right), rcond=None)[0]
    return float(found[0]), float(found[1])


def streets_like(side: int):
    """The grid of `scaling.streets`: a tenth of the edges taken out."""
    node = np.arange(side * side).reshape(side, side)
    across, down = (np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ((node[:, :-1], node[:, 1:]), (node[:-1], node[1:])))
    pairs = np.concatenate([across, down])
    return hg.Graph.from_edges(pairs[np.random.default_rng(0).random(len(pairs)) > 0.1], n=side * side)


def table() -> list[str]:
    from hushgraph.distributed.preparing import most_ghosts_of

    limit = most_ghosts_of(PARTS)
    lines = [
        f"Ghosts per owned node, {NODES:,} nodes (grid {round(NODES**0.5) ** 2:,}) in {PARTS} partitions, within so many hops:\n",
        "| graph | cut by | " + " | ".join(map(str, DEPTHS)) + f" | more than {limit:g}, refused, from |",
        "|---|---|" + "---|" * (len(DEPTHS) + 1),
    ]
    for name, graph in graphs().items():
        by, found = shares(graph)
        first = next((f"{depth} hops or fewer" for depth, share in zip(DEPTHS, found, strict=True) if share > limit), "never")
        lines.append(f"| {name} | {by} | " + " | ".join(f"{share:.2f}" for share in found) + f" | {first} |")
    return lines
