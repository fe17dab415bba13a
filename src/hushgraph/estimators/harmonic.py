"""Harmonic values: what the known values of a graph say about the nodes without one."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import cg

from hushgraph._errors import InputError, Sentence
from hushgraph.graphs import Graph

HARMONIC_ACCURACY = 1e-10


def harmonic_values(graph: Graph, signal: np.ndarray, known: np.ndarray, *, accuracy: float = HARMONIC_ACCURACY) -> np.ndarray:
    """Return the values of the unknown nodes that solve L f = 0 there; components without any known node stay NaN."""
    L = graph.laplacian()
    reached = np.isin(graph.components, graph.components[known])
    unknown = ~known & reached
    filled = np.full((len(signal), *signal.shape[1:]), np.nan)
    matrix, right = L[unknown][:, unknown], -(L[unknown][:, known] @ signal[known].astype(np.float64))
    solved = [cg(matrix, b, rtol=accuracy) for b in right.reshape(len(right), -1).T] if unknown.any() else []
    if any(info for _, info in solved):
        msg = "the missing values could not be filled to {:g} (edge weights of very different size?); use {missing='drop'}"
        raise InputError(Sentence(msg, accuracy))
    if solved:
        filled[unknown] = np.stack([values for values, _ in solved], axis=1).reshape(right.shape)
    return filled[~known]
