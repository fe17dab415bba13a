"""Cases for `blocks.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from shapes import bell

KINDS = (np.float64, np.float32)


def cases() -> Iterator[Case]:
    random = np.random.RandomState(3)
    for n in (0, 1, 5, 300, 20_001):
        for name, blocks in _partitions(random, n).items():
            x, scale, weights, bands = _coefficients(random, n)
            for i, kind in enumerate(KINDS):
                label, values = f"{name} {n} {np.dtype(kind).name}", x.astype(kind)
                yield Case(f"sums {label} alone", "block_sums", (values, blocks, None, None, None))
                yield Case(f"sums {label} scaled", "block_sums", (values, blocks, scale, None, None))
                for j, other in enumerate(KINDS):
                    both = weights.astype(other), bands.astype(KINDS[(i + j) % 2])
                    yield Case(f"sums {label} of {np.dtype(other).name}", "block_sums", (values, blocks, None, *both))
                    both = weights.astype(other), bands.astype(KINDS[(i + j + 1) % 2])
                    yield Case(f"scaled sums {label} of {np.dtype(other).name}", "block_sums", (values, blocks, scale, *both))
                n_blocks = blocks.max() + 1 if n else 0
                factors = random.uniform(size=(3, n_blocks))
                yield Case(f"times {label}", "multiply_blocks", (values, blocks, factors))
                sums = _sums(random, n_blocks)["usual"]
                for other in KINDS:
                    turned = values, blocks, np.array([0.0, 0.7, 2.0]), sums, bands.astype(other)
                    yield Case(f"turn {label} {np.dtype(other).name}", "turn_blocks", turned)
    for n_blocks in (0, 1, 7, 500, 20_000):
        for name, sums in _sums(random, n_blocks).items():
            for variance in (1e-4, 0.5, 30.0):
                yield Case(f"least {name} {n_blocks} {variance}", "least_block_sure", (sums, variance))
            for t in (0.0, 0.7, 1e100):
                yield Case(f"keep {name} {n_blocks} {t}", "keep_blocks", (np.array([t, t, 2 * t]), sums))
    x, scale, weights, bands = _coefficients(random, 400)
    blocks = (np.arange(300) // 7).astype(np.int32)
    slices = x[:2, 50:350], blocks, scale[1:, 10:310], weights[:2, 3:303], bands[::2, 1:, 100:]
    yield Case("sums of parts", "block_sums", slices)


def _partitions(random, n):
    """Return block numbers: one block, one block for each node, runs, and random numbers."""
    partitions = {
        "one": np.zeros(n),
        "each": np.arange(n),
        "runs": np.arange(n) // 6,
        "any": random.randint(0, max(n // 4, 1), size=n),
    }
    return {name: blocks.astype(np.int32) for name, blocks in partitions.items()}


def _coefficients(random, n):
    """Return x, scale, weights and bands of three scales. The second scale has zeros, the third very different sizes."""
    x, weights, bands = bell(random, 3, n), random.uniform(size=(3, n)), bell(random, 4, 3, n)
    x[1] = np.where(random.uniform(size=n) < 0.5, -0.0, np.where(random.uniform(size=n) < 0.5, 0.0, x[1]))
    x[2] = np.ldexp(x[2], random.randint(-40, 40, size=n))
    scale = np.where(random.uniform(size=(3, n)) < 0.2, 0.0, random.uniform(0, 3, size=(3, n)))
    return x, scale, weights, bands


def _sums(random, n_blocks):
    """Return q, s, tr G and x'G x of three rows of blocks, by kind."""
    shape = 3, n_blocks
    s, trace = np.floor(random.uniform(1, 20, size=shape)), random.uniform(size=shape)
    q, spread = s * random.uniform(0, 3, size=shape), random.uniform(size=shape)
    far = np.ldexp(q, random.randint(-80, 80, size=shape))
    some, few = random.uniform(size=shape) < 0.4, random.uniform(size=shape) < 0.05
    kinds = {
        "usual": (q, s, trace, spread * q),
        "far apart": (far, s, trace, spread * far),
        "ties": (np.floor(q), np.ones(shape), np.floor(4 * trace), spread),
        "zeros": (np.where(some, 0.0, q), np.where(few, 0.0, s), trace, np.where(some, 0.0, spread * q)),
        "nothing": (np.zeros(shape), np.where(some, 0.0, s), trace, np.zeros(shape)),
        "never dropped": (q + 1, np.zeros(shape), trace, spread),
        "spikes": (np.where(few, 1e9, q), s, trace, spread * q),
        "no noise": (q, s, np.zeros(shape), np.zeros(shape)),
    }
    return {name: np.stack(parts, axis=2) for name, parts in kinds.items()}
