"""Cases for `flow.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from shapes import graphs, lattice, mirrored, signed_zeros, spread, weights_on


def cases() -> Iterator[Case]:
    random = np.random.RandomState(4)
    for name, (indptr, indices) in {**graphs(random), "large": lattice(70, 50)}.items():
        n, back = len(indptr) - 1, mirrored(indptr, indices)
        weights = weights_on(random, indptr, indices)
        signals = {
            "uniform": random.uniform(-1, 1, size=n),
            "ties": random.randint(-2, 3, size=n).astype(np.float64),
            "steps": np.repeat(random.uniform(-4, 4, size=n // 25 + 1), 25)[:n] + random.uniform(-0.5, 0.5, size=n),
            "zeros": signed_zeros(random, n),
            "wide": spread(random, n, -60, 60),
        }
        for kind, y in signals.items():
            extent = float(y.max() - y.min()) if n else 0.0
            for penalty in (0.0, 0.05, 0.4, 3.0, np.inf):
                if name == "large" and (kind, penalty) not in (("steps", 0.4), ("uniform", 0.05), ("ties", 3.0)):
                    continue
                capacity = np.minimum(penalty * weights, n * extent)
                dtype = np.int64 if (kind, penalty) in (("steps", 0.4), ("ties", 3.0)) else np.int32
                arcs = indptr.astype(dtype), indices.astype(dtype), back.astype(dtype)
                problem = capacity, y, extent * 1e-11, np.zeros(n), np.zeros(len(indices))
                yield Case(f"{name} {kind} {penalty:g}", "split_into_pieces", (*arcs, *problem))
