"""Cases for `surroundings.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from shapes import graphs, lattice, weights_on

LEAST = 0.03


def cases() -> Iterator[Case]:
    random = np.random.RandomState(7)
    for name, (indptr, indices) in {**graphs(random), "large": lattice(50, 40)}.items():
        rows = indptr.astype(np.int32), indices.astype(np.int32)
        for width, reach, most in ((1.0, 2.6, 128), (2.0, 5.3, 9), (6.0, 15.9, 1024), (1.0, 0.5, 4), (3.5, 9.0, 1)):
            yield Case(f"hops {name} {width} {reach} {most}", "hop_rows", (*rows, width, reach, most))
        yield from products(name, random, *rows)
        yield from walks(name, random, *rows)
        yield from transposed(name, random, *rows)
    yield from gaussians(random)


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


def walks(name: str, random: np.random.RandomState, indptr: np.ndarray, indices: np.ndarray) -> Iterator[Case]:
    """Yield searches for straight edges, and walks along random edges."""
    n = len(indptr) - 1
    for kind, place in places(random, n).items():
        for least in (0.9, 0.0):
            yield Case(f"straight {name} {kind} {least}", "straight_edges", (indptr, indices, place, least))
    if n:
        onward = np.full(len(indices), -1)
        for e in range(len(indices)):
            next_edges = np.arange(indptr[indices[e]], indptr[indices[e] + 1])
            onward[e] = next_edges[random.randint(len(next_edges))] if random.uniform() < 0.9 else -1
        for decay, hops in ((1.0, 12), (4.0, 3)):
            yield Case(f"walks {name} {decay}", "walk_rows", (indptr, indices, onward, decay, hops))


def transposed(name: str, random: np.random.RandomState, indptr: np.ndarray, indices: np.ndarray) -> Iterator[Case]:
    n = len(indptr) - 1
    keep = random.uniform(size=len(indices)) < 0.7
    starts = np.concatenate([[0], np.cumsum(keep)])[indptr].astype(np.int32)
    kernel = starts, indices[keep], random.uniform(size=keep.sum())
    part, covariates = random.uniform(size=(3, n)), random.uniform(size=(3, n))
    yield Case(
        f"transposed {name}", "add_transposed", (indptr, indices, random.uniform(size=len(indices)), *kernel, part, covariates)
    )


def gaussians(random: np.random.RandomState) -> Iterator[Case]:
    turned = np.array([(1.0, 0.0), (0.0, 1.0), (0.5, 0.75), (-0.75, 0.5)])
    for n in (1, 2, 65, 700):
        for kind, place in places(random, n).items():
            for along, across, most in ((0.9, 0.9, 128), (1.8, 1.8, 7), (1.0, 4.0, 40), (4.0, 1.0, 1)):
                reach = 2.65 * max(along, across)
                cell = np.floor((place - place.min(axis=0)) / reach).astype(np.int64) + 1
                wide = int(cell[:, 1].max()) + 2
                number = cell[:, 0] * wide + cell[:, 1]
                axis = turned[random.randint(0, 4, size=n)]
                nodes = place, axis[:, 0].copy(), axis[:, 1].copy(), along, across, LEAST
                cells = number, wide, np.argsort(number, kind="stable")
                yield Case(f"gaussian {n} {kind} {along} {across}", "gaussian_rows", (*nodes, *cells, most))
