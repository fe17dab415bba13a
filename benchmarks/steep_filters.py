"""Ways to apply one steep low-pass filter 1 / (1 + (x/tau)^q) of a Laplacian without all its eigenvectors, for `signals.py degree`.

A method is a function of (graph, tau, q) that prepares what does not depend on the signal, and returns a function of the signal.
"""

from __future__ import annotations

import time

import numpy as np
from scipy import sparse
from scipy.linalg import eigh_tridiagonal
from scipy.sparse import linalg
from scipy.spatial import cKDTree

import hushgraph as hg
from hushgraph.estimators.let.filters import filtered

PATIENCE = 60.0  # seconds after which a method is given up


def road_network(n_nodes: int) -> hg.Graph:
    """A generated road network, each component joined to the largest by a single road, where they are closest.

    Every component adds an eigenvalue 0, and a network of four large and sixty tiny ones has no signal of 10 degrees of freedom.
    """
    graph = hg.datasets.roads(n_nodes)
    main = np.bincount(graph.components).argmax()
    inside, outside = np.flatnonzero(graph.components == main), np.flatnonzero(graph.components != main)
    far, near = cKDTree(graph.coords[inside]).query(graph.coords[outside])
    order = np.lexsort((far, graph.components[outside]))
    first = order[np.unique(graph.components[outside][order], return_index=True)[1]]
    roads = np.stack(sparse.triu(graph.adjacency, format="coo").coords, axis=1)
    joined = np.concatenate([roads, np.stack([outside[first], inside[near[first]]], axis=1)])
    return hg.Graph.from_edges(joined, n=graph.n, coords=graph.coords, crs=graph.crs)


def butterworth(x: np.ndarray, tau: float, q: int) -> np.ndarray:
    """Values of 1 / (1 + (x/tau)^q)."""
    return 1 / (1 + (np.maximum(x, 0.0) / tau) ** q)


def degree_for(upper: float, tau: float, q: int, error: float) -> int:
    """Degree at which Chebyshev coefficients of the filter on [0, upper] are below `error`, from the pole nearest to the interval.

    With x = upper (1 - cos t) / 2 the poles near 0 are t = 2 sqrt(tau/upper) exp(i pi / 2q), and coefficients decay as exp(-K Im t).
    """
    return int(np.ceil(np.log(1 / error) / (2 * np.sqrt(tau / upper) * np.sin(np.pi / (2 * q))))) + 1


def polynomial(graph: hg.Graph, function, degree: int):
    """Return x -> h(L) x by the recurrence of the library; x may have several rows, and `function` be any function of the eigenvalue."""
    frame = hg.chebyshev_frame(graph, rescale=False)
    coefficients = hg.chebyshev_coefficients(lambda x: function(x)[None], degree, upper=frame.lambda_upper)

    def apply(signals: np.ndarray) -> np.ndarray:
        rows = filtered(frame, coefficients, np.atleast_2d(signals).astype(float))[:, 0]
        return rows.reshape(np.shape(signals))

    return apply


def chebyshev(error: float):
    """A polynomial whose degree is enough for that error."""

    def prepare(graph: hg.Graph, tau: float, q: int):
        degree = degree_for(graph.lambda_upper, tau, q, error)
        return polynomial(graph, lambda x: butterworth(x, tau, q), degree), f"degree {degree:,}"

    return prepare


def lanczos(share: float):
    """Lanczos in two passes without stored vectors; the number of steps is a share of the degree of a polynomial of error 1e-4."""

    def prepare(graph: hg.Graph, tau: float, q: int):
        laplacian = sparse.csr_array(graph.laplacian())
        steps = min(int(share * degree_for(graph.lambda_upper, tau, q, 1e-4)), graph.n - 1)

        def recurrence(signal, diagonal, off, use):
            before, now = np.zeros_like(signal), signal / np.linalg.norm(signal)
            for k in range(steps):
                use(k, now)
                after = laplacian @ now
                if k == len(diagonal):
                    diagonal.append(float(now @ after))
                after -= diagonal[k] * now + (off[k - 1] * before if k else 0.0)
                if k == len(off):
                    off.append(float(np.linalg.norm(after)))
                before, now = now, after / off[k]

        def apply(signal):
            diagonal, off, result = [], [], np.zeros_like(signal)
            recurrence(signal, diagonal, off, lambda k, vector: None)
            values, vectors = eigh_tridiagonal(diagonal, off[:-1])
            weights = np.linalg.norm(signal) * vectors @ (butterworth(values, tau, q) * vectors[0])
            recurrence(signal, diagonal, off, lambda k, vector: np.add(result, weights[k] * vector, out=result))
            return result

        return apply, f"{steps:,} steps, twice"

    return prepare


def conjugate_gradients(patience: float):
    """Plain conjugate gradients for each factor (x/tau)^2 - 2 cos(a) x/tau + 1 of the real polynomial, given up after `patience` seconds."""

    def prepare(graph: hg.Graph, tau: float, q: int):
        scaled = sparse.csr_array(graph.laplacian() / tau)
        cosines = np.cos(np.pi * (2 * np.arange(q // 2) + 1) / q)
        count = 0

        def factor(cosine):
            return linalg.LinearOperator(
                scaled.shape, matvec=lambda x: scaled @ (scaled @ x) - 2 * cosine * (scaled @ x) + x, dtype=float
            )

        def apply(signal):
            nonlocal count
            count, end = 0, time.monotonic() + patience

            def step(_):
                nonlocal count
                count += 1
                if time.monotonic() > end:
                    raise TimeoutError

            for cosine in cosines:
                signal = linalg.cg(factor(cosine), signal, rtol=1e-5, maxiter=20_000, callback=step)[0]
            return signal

        return apply, lambda: f"{count:,} iterations in all"

    return prepare


def complex_shifts(graph: hg.Graph, tau: float, q: int):
    """Sparse LU of L/tau - p for one pole p of each conjugate pair; partial fractions add up their solutions."""
    scaled = sparse.csc_array(graph.laplacian() / tau)
    poles = np.exp(1j * np.pi * (2 * np.arange(q // 2) + 1) / q)
    eye = sparse.eye_array(graph.n, format="csc")
    factors = [
        linalg.splu(sparse.csc_array(scaled - pole * eye), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        for pole in poles
    ]

    def apply(signal):
        # the residue of 1 / (1 + x^q) at p is 1 / (q p^(q-1)) = -p/q
        return sum(2 * (-pole / q * lu.solve(signal.astype(complex))).real for pole, lu in zip(poles, factors, strict=True))

    return apply, f"{len(poles)} factorisations"


def _projected(values, vectors, tau, q):
    return lambda signal: vectors @ (butterworth(values, tau, q) * (vectors.T @ signal))


def shift_invert(count: int):
    """The `count` lowest eigenvectors by SciPy's eigsh with shift and invert."""

    def prepare(graph: hg.Graph, tau: float, q: int):
        k = min(count, graph.n // 2)
        values, vectors = linalg.eigsh(sparse.csc_array(graph.laplacian()), k=k, sigma=-0.01 * tau)
        return _projected(values, vectors, tau, q), f"{k} eigenvectors"

    return prepare


def block_eigenvectors(count: int):
    """The `count` lowest eigenvectors by SciPy's LOBPCG, with the diagonal as preconditioner."""

    def prepare(graph: hg.Graph, tau: float, q: int):
        k = min(count, graph.n // 5)
        laplacian = sparse.csr_array(graph.laplacian())
        start = np.random.default_rng(0).normal(size=(graph.n, k))
        inverse = sparse.diags_array(1 / (laplacian.diagonal() + tau))
        values, vectors = linalg.lobpcg(laplacian, start, M=inverse, tol=1e-3 * tau, maxiter=60, largest=False)
        return _projected(values, vectors, tau, q), f"{k} eigenvectors, at most 60 iterations"

    return prepare


METHODS = {
    "polynomial of the library, error 1e-2": chebyshev(1e-2),
    "polynomial of the library, error 1e-4": chebyshev(1e-4),
    "Lanczos": lanczos(0.7),
    "conjugate gradients, factor by factor": conjugate_gradients(PATIENCE),
    "complex shifts, sparse LU": complex_shifts,
    "eigsh, shift and invert": shift_invert(250),
    "LOBPCG": block_eigenvectors(250),
}


def eigenvalue_near(graph: hg.Graph, count: int) -> float:
    """The eigenvalue with `count` others below it, by shift and invert."""
    values = linalg.eigsh(sparse.csc_array(graph.laplacian()), k=count + 1, sigma=-1e-4, return_eigenvectors=False)
    return float(np.sort(values)[-1])
