"""Graphs, signals and files that the tests of distributed runs share."""

import numpy as np
import pytest

import hushgraph as hg

ANY = 1e9  # ghosts per node: small graphs are all ghosts
METHODS = ["sgwt_sure", "sgwt_scaled"]


def noisy_on(graph, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(np.arange(graph.n) % 400 < 200, 4.0, 0.0) + rng.normal(0, 1, graph.n)


def smooth_on(graph):
    return 3 * np.sin(np.arange(graph.n) / 150) + np.random.default_rng(0).normal(0, 1, graph.n)


def with_islands():
    """Isolated nodes, many small components, and weights."""
    rng = np.random.default_rng(1)
    roads = hg.datasets.roads(1500, seed=3)
    i, j = roads.adjacency.nonzero()
    pairs = np.stack([i, j], axis=1)[i < j]
    chains = np.arange(1500, 2100).reshape(-1, 3)
    pairs = np.concatenate([pairs, chains[:, :2], chains[:, 1:]])
    return hg.Graph.from_edges(pairs, n=2140, weights=rng.uniform(0.1, 3.0, len(pairs)))


GRAPHS = {
    "grid": lambda: hg.datasets.grid(50, 60),
    "roads": lambda: hg.datasets.roads(4000),
    "islands": with_islands,
    "equal weights": lambda: hg.datasets.path(900, weight=0.7),
}


def assert_equal(found, one):
    np.testing.assert_array_equal(found.thresholds, one.thresholds)
    np.testing.assert_array_equal(found.read(), one.signal)
    for name in ("risk", "risk_se", "probe_se"):
        assert getattr(found, name) == pytest.approx(getattr(one, name), rel=1e-12)


def assert_close(found, one):
    np.testing.assert_allclose(found.read(), one.signal, rtol=1e-9, atol=1e-9 * np.abs(one.signal).max())
    for name in ("risk", "risk_se", "probe_se"):
        assert getattr(found, name) == pytest.approx(getattr(one, name), rel=1e-9)


def write_edges(folder, graph, files, *, repeat=False):
    """Edges in random order and direction, in several files of several row groups."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    i, j = graph.adjacency.nonzero()
    weights = graph.adjacency.data
    upper = i < j
    pairs, weights = np.stack([i, j], axis=1)[upper], weights[upper]
    rng = np.random.default_rng(5)
    order = rng.permutation(len(pairs))
    pairs, weights = pairs[order], weights[order]
    if repeat:
        pairs, weights = np.concatenate([pairs, pairs[:50, ::-1]]), np.concatenate([weights, weights[:50]])
    flip = rng.random(len(pairs)) < 0.5
    pairs[flip] = pairs[flip, ::-1]
    folder.mkdir()
    for k, own in enumerate(np.array_split(np.arange(len(pairs)), files)):
        table = {"source": pairs[own, 0], "target": pairs[own, 1]}
        if not graph.is_unweighted:
            table["weight"] = weights[own]
        pq.write_table(pa.table(table), folder / f"{k}.parquet", row_group_size=400)


def scale_free(n, seed=0):
    """Each node is joined to two earlier ones, the more the better linked they are."""
    rng = np.random.default_rng(seed)
    ends = [0, 1]
    for node in range(2, n):
        for other in {ends[k] for k in rng.integers(0, len(ends), 2)}:
            ends += [node, other]
    return hg.Graph.from_edges(np.array(ends).reshape(-1, 2), n=n)
