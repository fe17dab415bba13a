"""Cases for `surroundings.cpp`; its kernels are tested in `test_surroundings.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from shapes import graphs, lattice, weights_on


def cases() -> Iterator[Case]:
    random = np.random.RandomState(7)
    for name, (indptr, indices) in {**graphs(random), "large": lattice(50, 40)}.items():
        rows = indptr.astype(np.int32), indices.astype(np.int32)
        yield from products(name, random, *rows)
        yield from straight_edges(name, random, *rows)


def products(name: str, random: np.random.RandomState, indptr: np.ndarray, indices: np.ndarray) -> Iterator[Case]:
    ones, uneven = np.ones(len(indices)), weights_on(random, indptr, indices)
    some = np.where(random.uniform(size=len(indices)) < 0.3, 0.0, uneven)
    tiny = np.ldexp(uneven, -540)
    for kind, weights in {"ones": ones, "uneven": uneven, "zeros": some, "tiny": tiny}.items():
        for most in (1, 4, 64):
            yield Case(f"product {name} {kind} {most}", "product_rows", (indptr, indices, weights, indptr, indices, uneven, most))


def places(random: np.random.RandomState, n: int) -> dict[str, np.ndarray]:
    even = np.stack([np.arange(n) // 20, np.arange(n) % 20], axis=1).astype(np.float64)
    return {
        "even": even,
        "uneven": even + random.randint(-1, 2, size=(n, 2)) / 4,
        "heaped": random.randint(0, 4, size=(n, 2)).astype(np.float64),
    }


def straight_edges(name: str, random: np.random.RandomState, indptr: np.ndarray, indices: np.ndarray) -> Iterator[Case]:
    for kind, place in places(random, len(indptr) - 1).items():
        for least in (0.9, 0.0):
            yield Case(f"straight {name} {kind} {least}", "straight_edges", (indptr, indices, place, least))
