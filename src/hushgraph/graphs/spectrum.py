"""Two numbers for the spectrum of a Laplacian: an estimate of the largest eigenvalue and a proven upper bound.

`lambda_max` decides how many scales the frame has; `lambda_upper` decides the interval of the Chebyshev polynomials,
where an interval that is 1 % too short makes the output explode. Hence the second must be proven. Let L = D - W, let P be any
positive semidefinite matrix and x any positive vector, and let |.| take absolute values entry by entry. Then

    lambda_max(L) <= lambda_max(L + P) <= lambda_max(|L + P|) <= max_i (|L + P| x)_i / x_i

by Weyl, Perron-Frobenius and Collatz-Wielandt. Three choices of P are tried, and the smallest bound is kept:

- P = 0: |L| = Q = D + W is the signless Laplacian. x = D 1 gives the bound of Merris, which is never above that of Anderson and Morley
  (the largest sum of two neighbouring degrees); x = Q^k D 1 gives smaller ones. They are sharp on bipartite graphs.
- P = sum over triangles T of c_T 1_T 1_T': each triangle takes c_T from the weights of its three edges and adds c_T to the diagonal of its
  three nodes. In row i of |L + P| x it replaces c_T (x_j + x_k) by c_T x_i; only triangles where this gains in all three rows are taken.
  c_T is the smallest of the weights of its edges, each divided by the number of triangles at that edge, so no weight becomes negative. On
  a triangular lattice the bound becomes 9, the largest eigenvalue, instead of 12; on images with 8 neighbours 13 (12 is true) instead of 16.
- P = w 1 1' with the largest weight w and 1 for nodes with edges: x = 1 gives w times their number. It is sharp on complete graphs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import eigsh

from hushgraph.core import Layout, _loops, cpu

PLAIN_PRODUCTS = 5  # products with the signless Laplacian; after them P is made of triangles
PRODUCTS = 15  # products of the Collatz-Wielandt iteration in all: more gain less than 1 %
# hops from a row to the farthest row that its quotients depend on: the triangles of a row need those of its neighbours
REACH = PRODUCTS + 1
# P takes triangles whose three nodes have at most this many neighbours: a search for others would take too long
LONGEST_ROW = 64
SLACK = 2.0**-44  # of a weight, for the rounding of what triangles take from it: at most LONGEST_ROW terms and one subtraction
EXACT_BELOW = 400  # dense eigenvalues are as fast as Lanczos up to here


@dataclass(frozen=True)
class Spectrum:
    """The largest eigenvalue of a Laplacian, a proven upper bound on it, and how each was computed."""

    lambda_max: float
    lambda_upper: float
    lambda_max_from: str
    lambda_upper_from: str


def largest_eigenvalue(
    layout: Layout, diagonal: np.ndarray, *, tolerance: float, max_steps: int = 300, enough: float = np.inf
) -> tuple[float, int]:
    """Return the largest eigenvalue by Lanczos, to a relative tolerance, or a lower bound on it above `enough`; and the number of steps.

    No re-orthogonalisation: lost orthogonality repeats converged values but never spoils the largest one.
    The start vector is large at nodes of high degree, where the top eigenvector is large.
    """
    n = len(diagonal)
    start = np.random.default_rng(0).standard_normal(n) * np.maximum(diagonal, diagonal.max() / n) ** 2
    start /= np.sqrt(np.sum(start * start))  # not by BLAS, whose bits depend on its threads
    v, v_previous, w = start, np.zeros(n), np.empty(n)
    alphas: list[float] = []
    betas: list[float] = []
    beta, top = 0.0, 0.0
    for step in range(1, min(n, max_steps) + 1):
        alpha = np.sum(cpu.product(layout, v, w))
        beta_next = np.sqrt(np.sum(_loops.next_lanczos_vector(layout.blocks, w, v, v_previous, alpha, beta)))
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


def proven_bound(quotients: np.ndarray, *, linked: int, heaviest: float, longest_row: int) -> tuple[float, str]:
    """Return an upper bound on the eigenvalues of D - W, and its name.

    It is the smallest quotient, or the number of nodes that have edges (`linked`) times the largest weight.
    """
    smallest, complete = float(np.min(quotients)), linked * float(heaviest)
    name = "nodes times the largest weight" if complete < smallest else f"Collatz-Wielandt, {len(quotients)} products"
    rounding = 1 + 4 * (longest_row + 4) * np.finfo(float).eps  # of a quotient and of the diagonal, generously
    return float(min(smallest, complete) * rounding), f"{name} (proven)"


def signless_quotients(
    layout: Layout, matrix: Any, diagonal: np.ndarray, *, largest: float, rows: np.ndarray | None = None
) -> np.ndarray:
    """Return max_i (|L + P| x)_i / x_i of each product; over the rows marked in `rows` if the layout is a part of a graph.

    x starts as the diagonal and becomes |L + P| x; P is 0 for the first PLAIN_PRODUCTS, then made of triangles. `matrix` holds the
    weights in node order, `layout` the same matrix with the `diagonal` in its own order.
    After each product x is divided by the same power of two, made of the largest of all diagonals: it stays of the size of 1, and
    parts that reach REACH steps beyond their rows compute the bits of the whole.
    """
    exponent = int(np.frexp(largest)[1])
    x, least = np.ldexp(diagonal, -exponent), np.where(diagonal > 0, 1e-100, 0.0)
    factor = float(np.ldexp(1.0, -exponent - 1))
    plain = cpu.signless_powers(layout, x, least, factor, PLAIN_PRODUCTS, rows)
    layout = _without_triangles(layout, matrix, diagonal, x)
    return np.concatenate([plain, cpu.signless_powers(layout, x, least, factor, PRODUCTS - PLAIN_PRODUCTS, rows)])


def _without_triangles(layout: Layout, matrix: Any, diagonal: np.ndarray, x: np.ndarray) -> Layout:
    """Return the layout of a matrix whose signless product is that with |L + P|, P made of the triangles that gain for this x."""
    at_nodes = np.empty_like(x)
    at_nodes[layout.order] = x
    indptr, indices = matrix.indptr, matrix.indices
    weights = np.array([layout.uniform]) if layout.values is None else matrix.data
    shares, taken = np.empty(len(indices)), np.empty(len(indices))
    if not _loops.sum_triangles(indptr, indices, at_nodes, None, shares, LONGEST_ROW):
        return layout
    np.divide(weights, shares, out=shares, where=shares > 0)
    _loops.sum_triangles(indptr, indices, at_nodes, shares, taken, LONGEST_ROW)
    del shares  # memory: there are as many numbers again below
    values, raised = _loops.take_out(indptr, weights, taken, layout.order, layout.runs, diagonal, SLACK)
    return replace(layout, values=values, diagonal=raised, workspace={})


def upper_bound(adjacency: sparse.csr_array, diagonal: np.ndarray, layout: Layout) -> tuple[float, str]:
    """Return a proven bound on the eigenvalues of diag(diagonal) - adjacency, and its name; adjacency is symmetric and non-negative."""
    if adjacency.nnz == 0:
        return 0.0, "no edges"
    rows = diagonal[layout.order]
    quotients = signless_quotients(layout, adjacency, rows, largest=rows.max())
    linked, longest = int(np.count_nonzero(rows)), int(np.diff(adjacency.indptr).max())
    return proven_bound(quotients, linked=linked, heaviest=adjacency.data.max(), longest_row=longest)


def laplacian_spectrum(
    adjacency: sparse.csr_array,
    diagonal: np.ndarray,
    layout: Layout,
    bound: tuple[float, str],
    *,
    tolerance: float = 1e-3,
    exact: bool = False,
    enough: float = np.inf,
) -> Spectrum:
    """Return the spectrum of diag(diagonal) - adjacency for a symmetric, non-negative matrix with that layout and that upper bound.

    The search for the largest eigenvalue ends as soon as a lower bound on it exceeds `enough`.
    """
    if adjacency.nnz == 0:
        return Spectrum(0.0, 0.0, "no edges", "no edges")
    n, (upper, upper_from) = len(diagonal), bound
    if n <= EXACT_BELOW or (exact and n <= 5000):
        top = linalg.eigvalsh(np.diag(diagonal) - adjacency.toarray(), check_finite=False)[-1]
        top_from = "dense eigenvalues (exact to rounding)"
    elif exact:
        matrix = sparse.diags_array(diagonal).tocsr() - adjacency
        top = eigsh(matrix, k=1, which="LA", return_eigenvectors=False, tol=0, v0=np.random.default_rng(0).standard_normal(n))[0]
        top_from = "ARPACK to machine precision"
    else:
        top, steps = largest_eigenvalue(layout, diagonal[layout.order], tolerance=tolerance, enough=enough)
        top_from = f"Lanczos, {steps} steps, " + (f"relative tolerance {tolerance:g}" if top <= enough else "a lower bound")
    return Spectrum(float(min(top, upper)), float(upper), top_from, upper_from)
