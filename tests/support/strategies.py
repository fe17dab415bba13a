"""Hypothesis strategies shared by the property tests: small graphs of every kind, and signals on them."""

import numpy as np
from hypothesis import strategies as st

from hushgraph.graphs.graph import Graph

LAPLACIANS = ("combinatorial", "normalized", "random_walk")
SYMMETRIC = LAPLACIANS[:2]
PLATEAUS = ("linear", "smooth", "c3", "meyer")


@st.composite
def graphs(draw, *, min_nodes=2, max_nodes=60):
    """Unweighted, uniformly weighted or weighted; often disconnected, often with isolated nodes, sometimes without edges."""
    n = draw(st.integers(min_nodes, max_nodes), label="n")
    reached = draw(st.integers(1, n), label="nodes that may have edges")
    n_edges = draw(st.integers(0, 3 * n), label="edges drawn")
    kind = draw(st.sampled_from(["unweighted", "uniform", "weighted"]), label="weights")
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    nodes = rng.permutation(n)[:reached]
    pairs = nodes[rng.integers(0, reached, (n_edges, 2))]
    weights = {"unweighted": None, "uniform": np.full(n_edges, 2.5), "weighted": 10.0 ** rng.uniform(-2, 2, n_edges)}[kind]
    return Graph.from_edges(pairs, n=n, weights=weights, duplicates="max")


def signal_on(graph, *, columns=None, seed=0):
    """A rough signal, or several in columns."""
    return np.random.default_rng(seed).normal(size=graph.n if columns is None else (graph.n, columns))


def relative_error(value, truth):
    """Largest deviation as a share of the largest true value."""
    return np.max(np.abs(value - truth), initial=0.0) / max(np.max(np.abs(truth), initial=0.0), np.finfo(float).tiny)
