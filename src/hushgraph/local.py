"""Expected error of each node: SURE averaged over a few hops.

SURE is a sum over nodes, and each of its terms is unbiased for that node's squared error, but alone it is nearly all noise.
Averaged over the nodes around, with the weights of a short lazy walk, it says where a map can be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from hushgraph.checks import checked_count
from hushgraph.graph import Graph

HOPS = 16


@dataclass(frozen=True, eq=False)
class NodeRisk:
    """Terms of SURE (m, n) and variance of the estimate (m, n), on the graph that was denoised.

    `known` are its nodes among those of the whole graph (None: all), and `shape` is that of the signal.
    """

    graph: Graph
    sure: np.ndarray
    variance: np.ndarray
    shape: tuple[int, ...]
    known: np.ndarray | None = None

    def expected_error(self, *, hops: int = HOPS) -> np.ndarray:
        """Root of the mean squared error around each node, in the shape of the signal; NaN where there was no value.

        The squared error of an estimate is its variance, which the probes give, plus a squared bias, which is what is left of
        SURE: averaged around the node, not negative, and scaled so that all nodes together have the risk of the whole.
        """
        hops = checked_count("hops", hops, 0)
        near = sparse.csr_array(
            (np.ones_like(self.graph.adjacency.data), self.graph.adjacency.indices, self.graph.adjacency.indptr)
        )
        terms = np.concatenate([self.sure, self.variance, np.ones((1, self.graph.n))]).T
        for _ in range(hops):
            terms = terms + near @ terms
            terms /= terms[:, -1:].max()
        sure, variance = np.split((terms[:, :-1] / terms[:, -1:]).T, 2)
        bias = np.maximum(sure - variance, 0.0)
        left = np.maximum(self.sure.sum(axis=1) - variance.sum(axis=1), 0.0)
        share = np.divide(left, bias.sum(axis=1), out=np.zeros(len(bias)), where=bias.any(axis=1))
        error = np.sqrt(variance + np.minimum(share, 1.0)[:, None] * bias)
        return _placed(error, self.known, self.shape)


def _placed(error: np.ndarray, known: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    """(m, known nodes) to the shape of the signal."""
    if known is not None:
        whole = np.full((len(error), len(known)), np.nan)
        whole[:, known] = error
        error = whole
    return error.reshape(shape) if len(error) == 1 else error.T
