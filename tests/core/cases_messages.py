"""Cases for `messages.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from shapes import graphs, lattice, mirrored, weights_on


def cases() -> Iterator[Case]:
    random = np.random.RandomState(5)
    for name, (indptr, indices) in {**graphs(random), "large": lattice(70, 50)}.items():
        n, arcs, back = len(indptr) - 1, len(indices), mirrored(indptr, indices)
        apart = {"usual": 0.1 + 0.05 * weights_on(random, indptr, indices), "hard": np.full(arcs, 1e-12), "none": np.ones(arcs)}
        for labels, signals, kind in (
            (2, 1, "usual"),
            (2, 4, "hard"),
            (3, 4, "usual"),
            (4, 1, "hard"),
            (5, 1, "none"),
            (8, 4, "usual"),
        ):
            dtype = np.int64 if labels == 3 else np.int32
            shape = (n, labels, signals)
            evidence = random.uniform(0, 1, size=shape) ** 8
            messages = random.uniform(0.2, 1, size=(arcs, labels, signals))
            result = np.zeros(shape), np.zeros((arcs, labels, signals))
            graph = indptr.astype(dtype), back.astype(dtype), apart[kind]
            label = f"{name} {kind} {labels} {signals}"
            yield Case(f"{label} messages", "pass_messages", (*graph, evidence, messages, *result))
            y, precision = random.uniform(-5, 5, size=(n, signals)), random.uniform(0.1, 3, size=n)
            levels = np.sort(random.uniform(-5, 5, size=(labels, signals)), axis=0)
            yield Case(f"{label} exponents", "put_exponents", (y, levels, precision, np.zeros(shape)))
            yield Case(f"{label} sums", "sum_by_label", (y, precision, evidence))
