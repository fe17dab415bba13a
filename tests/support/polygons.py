"""Places in polygons, side by side: what `ZoneFinder` is compared with."""

import numpy as np


def in_rings(places, rings):
    """Return which places (n, 2) are inside a polygon of rings, holes left out: a ray to the right crosses its sides an odd number of times.

    A place on a side belongs to one of two polygons that share the side, never to both and never to neither.
    """
    outer = np.asarray(rings[0], dtype=np.float64)
    near = np.flatnonzero(((places >= outer.min(axis=0)) & (places <= outer.max(axis=0))).all(axis=1))
    x, y = places[near].T
    odd = np.zeros(len(near), dtype=bool)
    for ring in rings:
        corners = np.asarray(ring, dtype=np.float64)[:, :2]
        for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            if y0 == y1:
                continue
            low, high = ((x0, y0), (x1, y1)) if y0 < y1 else ((x1, y1), (x0, y0))  # the same sum for both polygons of a side
            crosses = (y >= low[1]) & (y < high[1])
            odd ^= crosses & (x < low[0] + (y - low[1]) / (high[1] - low[1]) * (high[0] - low[0]))
    inside = np.zeros(len(places), dtype=bool)
    inside[near[odd]] = True
    return inside
