"""Cases for `chains.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from shapes import graphs, lattice, signed_zeros, spread

PENALTIES = np.array([0.0, 2.0**-30, 0.1, 1.0, 7.5, 300.0, 2.0**90, np.inf])


def signals(random: np.random.RandomState, n: int) -> dict[str, np.ndarray]:
    """Return signals of n values by kind."""
    steps = np.repeat(random.uniform(-9, 9, size=n // 20 + 1), 20)[:n]
    return {
        "steps": steps + random.uniform(-1, 1, size=n),
        "ties": random.randint(-2, 3, size=n).astype(np.float64),
        "constant": np.full(n, 3.5),
        "zeros": signed_zeros(random, n),
        "rising": np.arange(n) + random.uniform(-0.1, 0.1, size=n),  # many knots at the same time
        "swinging": np.where(np.arange(n) % 2, 1.0, -1.0) * np.arange(n),
        "wide": spread(random, n),
        "tiny": np.ldexp(random.randint(-9, 10, size=n).astype(np.float64), -1074),
    }


def cases() -> Iterator[Case]:
    random = np.random.RandomState(3)
    for n in (1, 2, 60, 1500):
        for kind, y in signals(random, n).items():
            weights, edges = random.uniform(0.5, 2.0, size=n), random.uniform(-1, 2, size=n - 1).clip(0)
            for name, w, e in (("", None, None), (" nodes", weights, None), (" edges", None, edges), (" both", weights, edges)):
                bound = float((y.max() - y.min()) * (n if w is None else w.sum()))
                label = f"{kind} {n}{name}"
                yield Case(
                    f"solve {label}", "solve_chains", (y, w, e, PENALTIES, bound, float(y[n // 2]), np.zeros((len(PENALTIES), n)))
                )
                if e is None and n != 2:
                    yield from averages(label, random, y, w, bound)
    y = random.uniform(-1, 1, size=40_000).cumsum()
    for penalty in (0.5, 50.0, 1e4):
        settings = np.array([penalty]), float(y.max() - y.min()) * len(y), 1.25
        yield Case(f"solve one {penalty:g}", "solve_chains", (y, None, None, *settings, np.zeros((1, len(y)))))
    yield from orders(random)


def averages(label: str, random: np.random.RandomState, y: np.ndarray, w: np.ndarray | None, bound: float) -> Iterator[Case]:
    """Yield means over one order and over several orders."""
    n = len(y)
    several = np.stack([random.permutation(n) for _ in range(3)])
    truth = y + random.uniform(-1, 1, size=n)
    penalties, center = np.array([0.7]) if w is not None else PENALTIES, float(y[0])
    for count in (1, 3):
        for penalty in (0.7, np.inf):
            yield Case(
                f"mean {label} {count} {penalty:g}", "mean_of_chains", (y, several[:count], w, penalty, bound, center, np.zeros(n))
            )
    for kind, known in (("", None), (" truth", truth)):
        yield Case(
            f"scores {label}{kind}", "score_chains", (y, several, w, known, penalties, bound, center, np.zeros((len(penalties), 3)))
        )


def orders(random: np.random.RandomState) -> Iterator[Case]:
    """Yield depth-first orders and shuffled rows."""
    for name, (indptr, indices) in {**graphs(random), "large": lattice(150, 100)}.items():
        n = len(indptr) - 1
        for dtype in (np.int32, np.int64):
            rows = indptr.astype(dtype), indices.astype(dtype)
            label = f"{name} {dtype.__name__}"
            yield Case(f"depth first {label}", "depth_first", (*rows, np.arange(n)))
            if n:
                yield Case(
                    f"depth first from the end {label}", "depth_first", (*rows, np.concatenate([[n - 1], random.permutation(n)]))
                )
            for seed in (0, 2**63 + 5, 2**64 - 1):
                yield Case(f"shuffled {label} {seed}", "shuffle_stretches", (*rows, seed))
    yield Case("shuffled numbers", "shuffle_stretches", (np.array([0, 1000]), np.arange(1000), 7))
    yield Case("shuffled nothing", "shuffle_stretches", (np.array([0, 0]), np.arange(0), 7))
