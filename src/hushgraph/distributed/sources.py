"""The graph of a run before it is cut: a graph in memory, or edge files with a number of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from hushgraph._errors import InputError, InputTypeError, Sentence
from hushgraph._validation import checked_count, shown
from hushgraph.distributed.addresses import file_identity, is_files, list_files
from hushgraph.distributed.edges import EdgeColumns, Piece, edge_columns, largest_node, split_files
from hushgraph.distributed.store import read_array, work_folder
from hushgraph.graphs import MAX_NODES, Graph

Coords = np.ndarray | str | Path | None


@dataclass(frozen=True, eq=False)
class GraphSource:
    """A graph in memory, and places of its nodes, which may be others than its own coordinates."""

    graph: Graph
    coords: np.ndarray | None

    @property
    def n(self) -> int:
        """Number of nodes."""
        return self.graph.n

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return self.graph.n_edges

    @property
    def is_weighted(self) -> bool:
        """Whether some edges do not weigh 1."""
        return not self.graph.is_unweighted

    @property
    def identity(self) -> str:
        """The hash of the graph."""
        return self.graph.hash


@dataclass(frozen=True, eq=False)
class FileSource:
    """Edges in pieces of parquet files, the number of nodes, and their places in memory or mapped."""

    pieces: list[Piece]
    columns: EdgeColumns
    n: int
    coords: np.ndarray | None

    @property
    def n_edges(self) -> int:
        """Number of rows of all files: edges that are given twice count twice."""
        return sum(piece[3] for piece in self.pieces)

    @property
    def is_weighted(self) -> bool:
        """Whether there is a column of weights."""
        return self.columns.weight is not None

    @property
    def identity(self) -> list[list[Any]]:
        """The identity of each file with its number of rows: a replaced file changes it."""
        rows: dict[str, int] = {}
        for path, *_, count in self.pieces:
            rows[path] = rows.get(path, 0) + count
        return [[*file_identity(path), count] for path, count in rows.items()]


Source = GraphSource | FileSource


def open_source(edges: Any, weight: str | bool | None, n: int | None, coords: Coords, *, purpose: str) -> Source:
    """Return the graph that `plan` and `prepare` were given; one without nodes is refused."""
    places = _load_coords(coords)
    source: Source
    if is_files(edges):
        files = list_files(edges)
        pieces, columns = split_files(files), edge_columns(files, weight)
        source = FileSource(pieces, columns, _count_nodes(n, pieces, columns, places), places)
    else:
        graph = _graph_of(edges, weight, n, places)
        source = GraphSource(graph, graph.coords if places is None else places)
    if source.n == 0:
        msg = f"the graph has no nodes: there is nothing to {purpose}"
        raise InputError(msg)
    return source


def _graph_of(edges: Any, weight: str | bool | None, n: int | None, coords: np.ndarray | None) -> Graph:
    """Return the graph itself, or that of a sparse matrix or of pairs of node numbers."""
    if isinstance(edges, Graph):
        return edges
    if sparse.issparse(edges):
        return Graph.from_scipy(edges, coords=coords)
    if not (isinstance(edges, np.ndarray) or (isinstance(edges, list | tuple) and edges)):
        msg = (
            "edges must be a Graph, (m, 2) node numbers, a sparse matrix, or parquet files: a path, pattern, folder, address or a list of "
            f"them; got {shown(edges)}"
        )
        raise InputTypeError(msg)
    if weight:
        msg = f"weight={weight!r} names a column of edge files; pairs of node numbers have none; pass a sparse matrix or a Graph with weights"
        raise InputError(msg)
    return Graph.from_edges(edges, n=n, coords=coords)


def _count_nodes(n: int | None, pieces: list[Piece], columns: EdgeColumns, coords: np.ndarray | None) -> int:
    """Return the number of nodes of edge files: as given, as many as there are places, or up to the largest node."""
    least = largest_node(pieces, columns) + 1
    if least > MAX_NODES:
        msg = (
            f"the edges name node {least - 1}; expected numbers from 0 to at most {MAX_NODES - 1}, without gaps; renumber the nodes"
        )
        raise InputError(msg)
    edges = sum(piece[3] for piece in pieces)
    if n is None and coords is None and least > 4 * max(edges, 1):
        msg = (
            "the edges name node {}, but they are only {:,}: most nodes between have none; renumber the nodes without gaps, or say {n=}{} if "
            "that is meant"
        )
        raise InputError(Sentence(msg, least - 1, edges, least))
    count = (least if coords is None else len(coords)) if n is None else n
    return checked_count("n", count, least, MAX_NODES, note=f" (the edges name node {least - 1})")


def _load_coords(coords: Coords) -> np.ndarray | None:
    """Return the places of nodes: in memory as given, or a mapped file."""
    if not isinstance(coords, str | Path):
        return None if coords is None else np.asarray(coords)
    try:
        return read_array(work_folder(coords), whole=False)
    except (ValueError, EOFError) as error:
        msg = "{coords} must be a .npy file with two or three numbers for each node; {} is none; save them with numpy.save"
        raise InputError(Sentence(msg, coords)) from error
