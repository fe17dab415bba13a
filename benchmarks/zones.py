"""Seconds to turn 263 zones with many corners into a graph, and to find the zones of a million places.

python benchmarks/zones.py
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

import hushgraph as hg
from hushgraph.graphs import Outlines, ZoneFinder
from hushgraph.graphs.zones import TOLERANCE, neighbors

HALVINGS, ROUGHNESS, N_PLACES = 6, 0.08, 1_000_000


def rough_line(begin: np.ndarray, end: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a jagged line between two corners, like a river or a coast."""
    line = np.stack([begin, end])
    for _ in range(HALVINGS):
        along = np.diff(line, axis=0)
        across = np.stack([-along[:, 1], along[:, 0]], axis=1)
        middle = (line[1:] + line[:-1]) / 2 + across * rng.normal(0, ROUGHNESS, (len(along), 1))
        line = np.concatenate([np.stack([line[:-1], middle], axis=1).reshape(-1, 2), line[-1:]])
    return line


def rough_zones(n_zones: int) -> Outlines:
    """Return generated zones whose sides are rough; both zones at a side have the same line."""
    lines: dict[tuple, np.ndarray] = {}
    zones = []
    for _, ring in hg.datasets.zones(n_zones, crs=None).outlines.rings():
        corners = []
        for begin, end in zip(map(tuple, ring.tolist()), map(tuple, np.roll(ring, -1, axis=0).tolist()), strict=True):
            key = min(begin, end), max(begin, end)
            if key not in lines:
                lines[key] = rough_line(np.array(key[0]), np.array(key[1]), np.random.default_rng(len(lines)))
            corners.append((lines[key] if key[0] == begin else lines[key][::-1])[:-1])
        zones.append([[np.concatenate(corners)]])
    return Outlines.of(zones)


def main() -> None:
    """Print both times."""
    outlines = rough_zones(263)
    start = perf_counter()
    pairs = neighbors(outlines, TOLERANCE, list(range(263)))
    print(f"{len(outlines.corners):,} corners, {len(pairs)} common borders: {perf_counter() - start:.2f} s")
    low, high = outlines.corners.min(axis=0), outlines.corners.max(axis=0)
    places = np.random.default_rng(0).uniform(low, high, (N_PLACES, 2))
    start = perf_counter()
    ZoneFinder(outlines).find(places)
    print(f"{N_PLACES:,} places: {perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
