"""Small graphs as rows of sparse matrices. They use only integers and `RandomState`, so they are the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def rows_of(pairs, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (indptr, indices) of the undirected edges `pairs`, without self-loops and repeated edges, ascending."""
    pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    numbers = np.unique(both[both[:, 0] != both[:, 1]] @ np.array([n, 1], dtype=np.int64))
    rows, columns = np.divmod(numbers, n) if n else (numbers, numbers)
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int64), columns


def graphs(random: np.random.RandomState) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return graphs of many shapes, with up to some hundred nodes."""
    return {
        "nothing": rows_of([], 0),
        "one node": rows_of([], 1),
        "no edges": rows_of([], 7),
        "one edge": rows_of([(0, 1)], 2),
        "path": rows_of([(i, i + 1) for i in range(99)], 100),
        "mixed path": rows_of(random.permutation(100)[np.stack([np.arange(99), np.arange(1, 100)], axis=1)], 100),
        "circle": rows_of([(i, (i + 1) % 40) for i in range(40)], 40),
        "star": rows_of([(0, i) for i in range(1, 300)], 300),
        "lattice": lattice(20, 15),
        "tree": rows_of([(i, random.randint(i)) for i in range(1, 400)], 400),
        "sparse": rows_of(random.randint(0, 500, size=(450, 2)), 500),
        "dense": rows_of(random.randint(0, 60, size=(900, 2)), 60),
    }


def larger_graphs() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield (name, indptr, indices) of graphs with up to some thousand nodes, as 32-bit integers."""
    random = np.random.RandomState(7)
    diagonals = np.stack([np.arange(2900), np.arange(2900) + 61], axis=1)
    mixed = random.permutation(9000)
    pairs = {
        "no nodes": ([], 0),
        "one node": ([], 1),
        "no edges": ([], 9),
        "one edge": ([(0, 1)], 2),
        "path": ([(i, i + 1) for i in range(2500)], 2501),
        "star": ([(700, i) for i in range(1400)], 1400),
        "complete": ([(i, j) for i in range(40) for j in range(i)], 40),
        "grid": (lattice_pairs(70, 60), 4200),
        "shuffled grid": (mixed[lattice_pairs(90, 100)], 9000),
        "grid with diagonals": (np.concatenate([lattice_pairs(50, 60), diagonals]), 3000),
        "random": (random.randint(0, 3000, size=(6000, 2)), 3000),
        "pieces": (random.randint(0, 7, size=(4000, 2)) + 7 * random.randint(0, 500, size=4000)[:, None], 3500),
    }
    for name, (edges, n) in pairs.items():
        indptr, indices = rows_of(edges, n)
        yield name, indptr.astype(np.int32), indices.astype(np.int32)


def lattice_pairs(wide: int, high: int) -> np.ndarray:
    """Return the edges of a grid of nodes."""
    side = np.arange(wide * high).reshape(wide, high)
    down, across = np.stack([side[:-1], side[1:]], -1), np.stack([side[:, :-1], side[:, 1:]], -1)
    return np.concatenate([down.reshape(-1, 2), across.reshape(-1, 2)])


def lattice(wide: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a grid of nodes."""
    return rows_of(lattice_pairs(wide, high), wide * high)


def mirrored(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return for each entry (i, j) the number of the entry (j, i)."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return np.lexsort((rows, indices)).astype(np.int64)


def weights_on(random: np.random.RandomState, indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return symmetric weights between 1/4 and 4."""
    values = random.uniform(0.25, 4.0, size=len(indices))
    return np.maximum(values, values[mirrored(indptr, indices)])


def spread(random: np.random.RandomState, size, low: int = -400, high: int = 400) -> np.ndarray:
    """Return numbers of both signs over many powers of two."""
    return np.ldexp(random.uniform(-1, 1, size=size), random.randint(low, high, size=size))


def bell(random: np.random.RandomState, *shape: int) -> np.ndarray:
    """Return nearly normal numbers. They are sums of uniform numbers, so they are the same on every machine."""
    total = random.uniform(-1, 1, size=shape)
    for _ in range(5):
        total = total + random.uniform(-1, 1, size=shape)
    return total


def signed_zeros(random: np.random.RandomState, size) -> np.ndarray:
    """Return zeros of both signs."""
    return np.where(random.uniform(size=size) < 0.5, -0.0, 0.0)
