"""Protocols: the part of `Graph` that the transforms need, for classes that stand in for a graph, such as a partition of a large graph."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hushgraph.core import Layout
from hushgraph.graphs.graph import LaplacianKind


class CompressedRows(Protocol):
    """A sparse matrix in compressed rows, as `scipy.sparse.csr_array` stores it."""

    @property
    def indptr(self) -> np.ndarray: ...
    @property
    def indices(self) -> np.ndarray: ...
    @property
    def data(self) -> np.ndarray: ...


class GraphLike(Protocol):
    """Nodes with their neighbours, degrees and the row order of the transforms."""

    @property
    def n(self) -> int: ...
    @property
    def adjacency(self) -> CompressedRows: ...
    @property
    def degrees(self) -> np.ndarray: ...
    def layout(self, kind: LaplacianKind) -> Layout: ...
