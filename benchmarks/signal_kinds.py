"""Twelve kinds of signals and four graphs for `signals.py`, with the eigenvectors of the graphs.

Every signal has standard deviation 3, so that noise of sigma 1, 3 and 6 means an input SNR of about 9.5, 0 and -6 dB. A signal is drawn anew for every
draw of the noise: a standard error is that over signals and noise of a kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.spatial import ConvexHull, cKDTree

import hushgraph as hg

CACHE = Path(__file__).parent.parent / "out" / "signals"
SEED = 20261201
SPREAD = 3.0  # standard deviation of every signal
SIGMAS = (1.0, 3.0, 6.0)


@dataclass(frozen=True, eq=False)
class Place:
    """A graph with its name and its eigenvectors, which are stored in out/signals."""

    name: str
    graph: hg.Graph
    shape: tuple[int, int] | None = None  # rows and columns of an image

    @cached_property
    def eigen(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues of the combinatorial Laplacian, ascending, and eigenvectors in columns."""
        path = CACHE / f"eigen-{self.graph.hash[:16]}.npz"
        if path.exists():
            with np.load(path) as data:
                return data["values"], data["vectors"]
        values, vectors = np.linalg.eigh(self.graph.laplacian().toarray())
        values = np.maximum(values, 0.0)  # an eigenvalue of -1e-15 is 0
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, values=values, vectors=vectors)
        return values, vectors

    def noise(self, sigma: float, draw: int) -> np.ndarray:
        """White noise of that standard deviation."""
        return sigma * np.random.default_rng([SEED, 1, draw]).normal(size=self.graph.n)


# ---- graphs ------------------------------------------------------------------------------------------------------------


def streets() -> Place:
    """A generated city."""
    return Place("streets", hg.datasets.city(2000))


def mesh() -> Place:
    """A triangulated surface: an ellipsoid with bumps, vertices at random."""
    points = np.random.default_rng(SEED).normal(size=(2000, 3))
    for _ in range(10):  # each vertex moves away from its nearest ones, so that triangles are not slivers
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        far, near = cKDTree(points).query(points, k=7)
        push = points[:, None] - points[near[:, 1:]]
        points = points + 0.0003 * (push / far[:, 1:, None] ** 3).mean(axis=1).clip(-100, 100)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    faces = ConvexHull(points).simplices
    radius = 1 + 0.1 * np.cos(4 * points[:, 0]) + 0.1 * np.sin(5 * points[:, 1])
    return Place("mesh", hg.Graph.from_mesh(points * radius[:, None] * [1.5, 1.0, 0.8], faces))


def nearest() -> Place:
    """Random points in the unit square, each joined to its six nearest."""
    points = np.random.default_rng(SEED).random((2000, 2))
    near = cKDTree(points).query(points, k=7)[1][:, 1:]
    pairs = np.stack([np.repeat(np.arange(2000), 6), near.ravel()], axis=1)
    return Place("kNN", hg.Graph.from_edges(np.unique(np.sort(pairs, axis=1), axis=0), n=2000, coords=points))


def grid() -> Place:
    """An image of 45 x 45 pixels, each joined to four others."""
    return Place("grid", hg.datasets.grid(45, 45), shape=(45, 45))


PLACES: dict[str, Callable[[], Place]] = {"streets": streets, "mesh": mesh, "kNN": nearest, "grid": grid}


# ---- signals -----------------------------------------------------------------------------------------------------------


def lowest(count: int):
    """Random combinations of the `count` lowest eigenvectors."""
    return lambda place, rng: place.eigen[1][:, :count] @ rng.normal(size=count)


def matern(kappa2: float, nu: float):
    """Gaussian fields with the covariance (kappa2 + L)^-nu."""

    def draw(place: Place, rng: np.random.Generator) -> np.ndarray:
        values, vectors = place.eigen
        return vectors @ ((kappa2 + values) ** (-nu / 2) * rng.normal(size=len(values)))

    return draw


def distances(place: Place, node: int) -> np.ndarray:
    """Lengths of the shortest paths from a node; a node of another component is as far as the farthest of this one."""
    coords, rows = place.graph.coords, sparse.coo_array(place.graph.adjacency)
    length = np.linalg.norm(coords[rows.row] - coords[rows.col], axis=1)
    far = csgraph.dijkstra(sparse.csr_array((np.maximum(length, 1e-12), (rows.row, rows.col)), shape=rows.shape), indices=node)
    return np.minimum(far, far[np.isfinite(far)].max())


def tent(place: Place, rng: np.random.Generator) -> np.ndarray:
    """The distance to a node, up to 30 to 60 % of the largest one."""
    far = distances(place, rng.integers(place.graph.n))
    return -np.minimum(far, rng.uniform(0.3, 0.6) * far.max())


def patch(place: Place, rng: np.random.Generator) -> np.ndarray:
    """Two levels: 2 to 5 % of the nodes, those around one of them, stand out."""
    far = distances(place, rng.integers(place.graph.n))
    return (far <= np.quantile(far, rng.uniform(0.02, 0.05))).astype(float)


def spikes(place: Place, rng: np.random.Generator) -> np.ndarray:
    """2 % of the nodes have a normal value, the others 0."""
    return np.where(rng.random(place.graph.n) < 0.02, rng.normal(size=place.graph.n), 0.0)


def whole_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def hotspots(place: Place, rng: np.random.Generator) -> np.ndarray:
    """Counts of events around busy places; the scale makes them fractions, and no method is told that they are not negative."""
    return hg.hotspot_counts(place.graph, total=3 * place.graph.n, seed=whole_seed(rng))


def powers(place: Place, rng: np.random.Generator) -> np.ndarray:
    """A^4 x of a sparse 0-1 signal x, the paper's own kind."""
    signal = np.zeros(place.graph.n)
    while not signal.any():
        signal = hg.bernoulli_signal(place.graph, p=0.002, k=4, seed=rng)
    return signal


KINDS: dict[str, Callable[[Place, np.random.Generator], np.ndarray]] = {
    "10 lowest eigenvectors": lowest(10),
    "40 lowest eigenvectors": lowest(40),
    "100 lowest eigenvectors": lowest(100),
    "Gaussian field, smooth": matern(0.02, 4.0),
    "Gaussian field, rough": matern(0.05, 1.5),
    "tent": tent,
    "long waves": lambda place, rng: hg.smooth_signal(place.graph, seed=whole_seed(rng)),
    "pieces": lambda place, rng: hg.piecewise_constant_signal(place.graph, seed=whole_seed(rng)),
    "rare patch": patch,
    "spikes": spikes,
    "hot spots": hotspots,
    "A^4 x": powers,
}
SMOOTH_KINDS = (
    "10 lowest eigenvectors",
    "40 lowest eigenvectors",
    "100 lowest eigenvectors",
    "Gaussian field, smooth",
    "tent",
    "long waves",
)


def clean_signal(place: Place, kind: str, draw: int) -> np.ndarray:
    """One signal of a kind; its standard deviation is 3, its mean is left as it comes."""
    rng = np.random.default_rng([SEED, 2, list(KINDS).index(kind), draw])
    signal = KINDS[kind](place, rng)
    return SPREAD * signal / signal.std()
