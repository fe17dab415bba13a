"""Engines for polynomials of a Laplacian. They know matrices, no graphs. Each module offers the same few functions:

prepare(adjacency, diagonal) -> layout              once per graph and Laplacian diag(diagonal) - adjacency
forward(layout, coefficients, signals, scale)       (m, n) -> (m, n_scales, n): all rho_j(L) x of each signal
inverse(layout, coefficients, bands, scale)         (m, n_scales, n) -> (m, n): sum_j rho_j(L) F_j

`scale` maps the spectrum to [-1, 1]: the polynomials run in scale * (diag(diagonal) - adjacency) - I.
"""
