"""Cases for `smoothing.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from shapes import graphs, lattice, signed_zeros, spread, weights_on

SIZES = (0, 1, 3, 4, 511, 512, 513, 4095, 4096, 4097, 9001)
BLOCK = 4096


def surroundings(random: np.random.RandomState, rows: int, n: int) -> np.ndarray:
    """Return an array like the result of `local_noise.surroundings`. Some nodes have no neighbors."""
    around = random.uniform(0.1, 3.0, size=(rows, n))
    around[5] = np.where(random.uniform(size=n) < 0.1, around[4], 0.0)
    return around


def powers(around: np.ndarray, weights: np.ndarray, columns: int) -> np.ndarray:
    """Return powers of two above all columns, large enough for products of three rows of `around`."""
    top = np.abs(around).max(initial=0.0)
    above = np.ldexp(
        1.0, np.frexp(np.concatenate([np.full(columns, 8 * top**3), np.abs(weights).max(axis=1, initial=0.0), [1.0, top]]))[1]
    )
    return np.minimum(above, np.ldexp(1.0, 1000))


def cases() -> Iterator[Case]:
    random = np.random.RandomState(2)
    yield from neighbors(random)
    for n in SIZES:
        for rows, n_scales in ((6, 1), (6, 4), (9, 3)):
            around, weights = surroundings(random, rows, n), random.uniform(0, 2, size=(n_scales, n))
            yield from regression(f"{n} {rows} {n_scales}", random, around, weights)
            if n in (513, 4097):
                huge = around.copy()
                huge[:4] = np.abs(spread(random, (4, n), -300, 300)) + 2.0**-300
                yield from regression(f"huge {n} {rows} {n_scales}", random, huge, np.abs(spread(random, (n_scales, n))))
                yield from regression(f"zeros {n} {rows} {n_scales}", random, around, signed_zeros(random, (n_scales, n)))
                tiny = np.ldexp(random.randint(0, 5, size=(n_scales, n)).astype(float), -1074)
                yield from regression(f"tiny {n} {rows} {n_scales}", random, around, tiny)
    wide, weights = surroundings(random, 9, 6000)[:, 100:5900], random.uniform(0, 2, size=(4, 7000))[1:, 500:6300]
    yield from regression("slices", random, wide, weights)
    for n in (0, 1, 4, 511, 512, 1300):
        for count, rows, n_scales in ((1, 3, 1), (4, 6, 4), (3, 5, 3)):
            for fresh in (True, False):
                label = f"{n} {count} {rows} {fresh}"
                eps, moved, sums = (
                    spread(random, (count, n), -3, 3),
                    spread(random, (count, rows, n), -3, 3),
                    spread(random, (2 * rows, n), -3, 3),
                )
                yield Case(f"probes {label}", "add_probes", (eps, moved, n_scales, rows - 1, 1 / count, fresh, sums))
                zeros = signed_zeros(random, (count, rows, n))
                yield Case(f"probes zeros {label}", "add_probes", (eps, zeros, n_scales, rows - 1, -1 / count, fresh, -0.0 * sums))
    eps, moved = spread(random, (4, 12_000), -600, 400), spread(random, (4, 9, 12_000), -600, 400)
    yield Case("probes of a slice", "add_probes", (eps[:, 1000:], moved[:, :5, 1000:], 3, 4, 0.25, True, np.zeros((10, 11_000))))


def neighbors(random: np.random.RandomState) -> Iterator[Case]:
    for name, (indptr, indices) in {**graphs(random), "large": lattice(200, 180)}.items():
        n = len(indptr) - 1
        inverse = 1 / np.maximum(np.diff(indptr), 1)
        for kind, source in {
            "uniform": random.uniform(size=n),
            "wide": spread(random, n),
            "zeros": signed_zeros(random, n),
        }.items():
            weights = weights_on(random, indptr, indices)
            for dtype in (np.int32, np.int64):
                rows = indptr.astype(dtype), indices.astype(dtype)
                yield Case(
                    f"neighbors {name} {kind} {dtype.__name__}", "average_neighbors", (*rows, weights, inverse, source, np.zeros(n))
                )


def regression(label: str, random: np.random.RandomState, around: np.ndarray, weights: np.ndarray) -> Iterator[Case]:
    n_scales, n = weights.shape
    columns, n_blocks = 11 + len(around) - 5, max(-(-n // BLOCK), 1)
    yield Case(f"largest {label}", "largest_features", (around, weights, np.zeros((n_blocks, columns + n_scales + 2)), BLOCK))
    limits = powers(around, weights, columns)
    parts = np.zeros((2, n_blocks, len(limits), len(limits)), dtype=np.int64)
    yield Case(f"products {label}", "count_products", (around, weights, limits, parts, BLOCK))
    coefficients, usual = spread(random, (columns, n_scales), -5, 5), random.uniform(0, 3, size=n_scales)
    yield Case(f"fitted {label}", "fit_weights", (around, coefficients, usual, np.zeros((n_scales, n))))
