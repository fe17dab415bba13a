"""Two numbers for the spectrum of a Laplacian: an estimate of the largest eigenvalue and a proven upper bound.

`lambda_max` decides how many scales the frame has; `lambda_upper` decides the interval of the Chebyshev polynomials,
where an interval that is 1 % too short makes the output explode. Hence the second must be proven:
for Q = D + W and any positive x, lambda_max(D - W) <= lambda_max(Q) <= max_i (Q x)_i / x_i (Collatz-Wielandt).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit, prange
from scipy import linalg, sparse

BLOCK = 4096  # global sums run over blocks of this many nodes, so threads never change a bit
EXACT_BELOW = 400  # dense eigenvalues are as fast as Lanczos up to here


@dataclass(frozen=True)
class Spectrum:
    """Largest eigenvalue, a proven bound on it, and how each was obtained."""

    lambda_max: float
    lambda_upper: float
    lambda_max_from: str
    lambda_upper_from: str


@njit(cache=True, parallel=True)
def _signless_product(indptr, indices, data, diagonal, sign, x, out):
    """out = diagonal * x + sign * A x; returns x'out and max_i out_i / x_i per block."""
    n = len(x)
    n_blocks = (n + BLOCK - 1) // BLOCK
    dots, ratios = np.zeros(n_blocks), np.zeros(n_blocks)
    for b in prange(n_blocks):
        dot, ratio = 0.0, 0.0
        for i in range(b * BLOCK, min(n, (b + 1) * BLOCK)):
            total = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                total += data[p] * x[np.uint64(indices[p])]
            value = diagonal[i] * x[i] + sign * total
            out[i] = value
            dot += x[i] * value
            if x[i] > 0.0:
                ratio = max(ratio, value / x[i])
        dots[b], ratios[b] = dot, ratio
    return dots, ratios


@njit(cache=True, parallel=True)
def _next_lanczos_vector(w, v, v_previous, alpha, beta):
    """w - alpha v - beta v_previous, written over v_previous; returns its squared norm per block."""
    n = len(w)
    n_blocks = (n + BLOCK - 1) // BLOCK
    norms = np.zeros(n_blocks)
    for b in prange(n_blocks):
        norm = 0.0
        for i in range(b * BLOCK, min(n, (b + 1) * BLOCK)):
            value = w[i] - alpha * v[i] - beta * v_previous[i]
            v_previous[i] = value
            norm += value * value
        norms[b] = norm
    return norms


def largest_eigenvalue(adjacency, diagonal, *, tolerance, max_steps=300):
    """Top eigenvalue of diag(diagonal) - adjacency by Lanczos, to a relative tolerance; returns (value, steps).

    No re-orthogonalisation: lost orthogonality repeats converged values but never spoils the largest one.
    The start leans towards nodes of high degree, where the top eigenvector lives.
    """
    n = len(diagonal)
    start = np.random.default_rng(0).choice([-1.0, 1.0], size=n) * np.maximum(diagonal, 1e-300 + diagonal.max() / n) ** 2
    v, v_previous, w = start / np.linalg.norm(start), np.zeros(n), np.empty(n)
    alphas, betas, beta, top = [], [], 0.0, 0.0
    csr = adjacency.indptr, adjacency.indices, adjacency.data
    for step in range(1, min(n, max_steps) + 1):
        alpha = np.sum(_signless_product(*csr, diagonal, -1.0, v, w)[0])
        beta_next = np.sqrt(np.sum(_next_lanczos_vector(w, v, v_previous, alpha, beta)))
        alphas.append(alpha)
        values, vectors = linalg.eigh_tridiagonal(alphas, betas, select="i", select_range=(max(0, step - 2), step - 1))
        top, residual = values[-1], beta_next * abs(vectors[-1, -1])
        gap = top - values[0] if step > 1 else 0.0  # the error of a Ritz value is about residual^2 / gap
        if residual <= tolerance * top or (step > 5 and residual**2 <= 0.1 * tolerance * top * gap):
            return float(top), step
        betas.append(beta_next)
        v, v_previous, beta = v_previous / beta_next, v, beta_next
    return float(top), len(alphas)


def collatz_wielandt_bound(adjacency, diagonal, *, products=20):
    """Proven upper bound on the top eigenvalue of diag(diagonal) - adjacency (isolated nodes do not count)."""
    x, y = np.where(diagonal > 0, diagonal, 0.0), np.empty(len(diagonal))
    best = np.inf
    for _ in range(products):
        _, ratios = _signless_product(adjacency.indptr, adjacency.indices, adjacency.data, diagonal, 1.0, x, y)
        best = min(best, ratios.max())
        x, y = np.where(diagonal > 0, np.maximum(y / y.max(), 1e-100), 0.0), x
    longest_row = np.diff(adjacency.indptr).max()
    return float(best * (1 + 4 * (longest_row + 4) * np.finfo(float).eps))  # room for the rounding of the quotient


def laplacian_spectrum(adjacency, diagonal, *, tolerance=1e-3, exact=False, known_upper=None):
    """Spectrum of diag(diagonal) - adjacency for a symmetric, non-negative adjacency matrix."""
    n = len(diagonal)
    if adjacency.nnz == 0:
        return Spectrum(0.0, 0.0, "no edges", "no edges")
    if known_upper is None:
        upper, upper_from = collatz_wielandt_bound(adjacency, diagonal), "Collatz-Wielandt, 20 products (proven)"
    else:
        upper, upper_from = known_upper, f"theorem: spectrum in [0, {known_upper:g}] (proven)"
    if n <= EXACT_BELOW or (exact and n <= 5000):
        dense = np.diag(diagonal) - adjacency.toarray()
        top = linalg.eigvalsh(dense, subset_by_index=[n - 1, n - 1])[0]
        top_from = "dense eigenvalues (exact to rounding)"
    elif exact:
        matrix = sparse.diags_array(diagonal).tocsr() - adjacency
        top = sparse.linalg.eigsh(matrix, k=1, which="LA", return_eigenvectors=False, tol=0)[0]
        top_from = "ARPACK to machine precision"
    else:
        top, steps = largest_eigenvalue(adjacency, diagonal, tolerance=tolerance)
        top_from = f"Lanczos, {steps} steps, relative tolerance {tolerance:g}"
    return Spectrum(float(min(top, upper)), float(upper), top_from, upper_from)
