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
from scipy.sparse.linalg import eigsh

from hushgraph.kernels import cpu

PRODUCTS = 15  # of the Collatz-Wielandt iteration: more gain less than 1 %
EXACT_BELOW = 400  # dense eigenvalues are as fast as Lanczos up to here


@dataclass(frozen=True)
class Spectrum:
    """Largest eigenvalue, a proven bound on it, and how each was obtained."""

    lambda_max: float
    lambda_upper: float
    lambda_max_from: str
    lambda_upper_from: str


@njit(cache=True, parallel=True)
def _next_lanczos_vector(blocks, w, v, v_previous, alpha, beta):
    """w - alpha v - beta v_previous, written over v_previous; returns its squared norm per block."""
    norms = np.zeros(len(blocks) - 1)
    for b in prange(len(blocks) - 1):
        norm = 0.0
        for i in range(blocks[b], blocks[b + 1]):
            value = w[i] - alpha * v[i] - beta * v_previous[i]
            v_previous[i] = value
            norm += value * value
        norms[b] = norm
    return norms


def largest_eigenvalue(layout, diagonal, *, tolerance, max_steps=300, enough=np.inf):
    """Top eigenvalue by Lanczos, to a relative tolerance, or a lower bound on it that is `enough`; returns (value, steps).

    No re-orthogonalisation: lost orthogonality repeats converged values but never spoils the largest one.
    The start leans towards nodes of high degree, where the top eigenvector lives.
    """
    n = len(diagonal)
    start = np.random.default_rng(0).standard_normal(n) * np.maximum(diagonal, diagonal.max() / n) ** 2
    v, v_previous, w = start / np.linalg.norm(start), np.zeros(n), np.empty(n)
    alphas, betas, beta, top = [], [], 0.0, 0.0
    for step in range(1, min(n, max_steps) + 1):
        alpha = np.sum(cpu.product(layout, v, w))
        beta_next = np.sqrt(np.sum(_next_lanczos_vector(layout.blocks, w, v, v_previous, alpha, beta)))
        alphas.append(alpha)
        values, vectors = linalg.eigh_tridiagonal(alphas, betas, select="i", select_range=(max(0, step - 2), step - 1))
        top, residual = values[-1], beta_next * abs(vectors[-1, -1])
        gap = top - values[0] if step > 1 else 0.0  # the error of a Ritz value is about residual^2 / gap
        if top > enough or residual <= tolerance * top or (step > 10 and 4 * residual**2 <= tolerance * top * gap):
            return float(top), step
        betas.append(beta_next)
        v_previous *= 1 / beta_next
        v, v_previous, beta = v_previous, v, beta_next
    return float(top), len(alphas)


def collatz_wielandt_bound(layout, diagonal, *, longest_row, products=PRODUCTS):
    """Proven upper bound on the top eigenvalue; isolated nodes do not count."""
    quotients = signless_quotients(layout, diagonal, largest=diagonal.max(), products=products)
    return bound_of_quotients(quotients, longest_row)


def bound_of_quotients(quotients, longest_row) -> float:
    """The bound from the largest quotient of each product."""
    return float(min(quotients) * (1 + 4 * (longest_row + 4) * np.finfo(float).eps))  # room for the rounding of the quotient


def signless_quotients(layout, diagonal, *, largest, products=PRODUCTS, rows=None) -> np.ndarray:
    """max_i (Q x)_i / x_i for x = diagonal, Q diagonal, ...; over the rows marked in `rows` where the layout is a part of a graph.

    After each product x is divided by the same power of two, made of the largest of all diagonals: it stays of the size of 1, and
    parts that reach `products` steps beyond their rows find the bits of the whole.
    """
    exponent = int(np.frexp(largest)[1])
    x, y = np.ldexp(diagonal, -exponent), np.empty(len(diagonal))
    least = np.where(diagonal > 0, 1e-100, 0.0)
    found = np.empty(products)
    for k in range(products):
        cpu.signless_product(layout, x, y)
        found[k] = _largest_quotient(x, y, rows)
        x, y = np.maximum(np.ldexp(y, -exponent - 1, out=y), least, out=y), x
    return found


@njit(cache=True)
def _largest_quotient(x, y, rows):
    """max y_i / x_i where x_i > 0."""
    found = 0.0
    for i in range(len(x)):
        if x[i] > 0 and (rows is None or rows[i]):
            found = max(found, y[i] / x[i])
    return found


def laplacian_spectrum(adjacency, diagonal, layout, *, tolerance=1e-3, exact=False, known_upper=None):
    """Spectrum of diag(diagonal) - adjacency for a symmetric, non-negative adjacency matrix with that layout."""
    if adjacency.nnz == 0:
        return Spectrum(0.0, 0.0, "no edges", "no edges")
    with cpu.cores_for(len(diagonal)):
        return _spectrum(adjacency, diagonal, layout, tolerance, exact, known_upper)


def _spectrum(adjacency, diagonal, layout, tolerance, exact, known_upper) -> Spectrum:
    n = len(diagonal)
    rows = diagonal[layout.order]
    if known_upper is None:
        upper = collatz_wielandt_bound(layout, rows, longest_row=np.diff(adjacency.indptr).max())
        upper_from = f"Collatz-Wielandt, {PRODUCTS} products (proven)"
    else:
        upper, upper_from = known_upper, f"theorem: spectrum in [0, {known_upper:g}] (proven)"
    if n <= EXACT_BELOW or (exact and n <= 5000):
        top = linalg.eigvalsh(np.diag(diagonal) - adjacency.toarray(), check_finite=False)[-1]
        top_from = "dense eigenvalues (exact to rounding)"
    elif exact:
        matrix = sparse.diags_array(diagonal).tocsr() - adjacency
        top = eigsh(matrix, k=1, which="LA", return_eigenvectors=False, tol=0, v0=np.random.default_rng(0).standard_normal(n))[0]
        top_from = "ARPACK to machine precision"
    else:
        top, steps = largest_eigenvalue(layout, rows, tolerance=tolerance)
        top_from = f"Lanczos, {steps} steps, relative tolerance {tolerance:g}"
    return Spectrum(float(min(top, upper)), float(upper), top_from, upper_from)
