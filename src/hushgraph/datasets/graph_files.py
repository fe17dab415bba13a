"""Graphs as their publishers write them: SNAP edge lists and Matrix Market.

A file that is truncated or garbled is an error that names the line. `hushgraph.read_graph` reads these and more.
"""

from __future__ import annotations

from hushgraph.checks import choose
from hushgraph.edge_text import read_edge_list
from hushgraph.graph import Graph
from hushgraph.matrix_market import read_matrix
from hushgraph.text_files import existing_file


def read_snap(path, *, labels: bool = False) -> Graph:
    """Graph from an edge list in the format of SNAP: two integer ids a line, comments after #, plain or .gz.

    Nodes are numbered 0 to n - 1 in the order of their ids. Edges given in both directions or twice are one edge, self-loops are
    dropped (their node stays). If a comment says how many edges there are ("# Nodes: 4 Edges: 6"), there must be as many lines.

    Parameters
    ----------
    path : str or path
    labels : bool
        Keep the ids as `graph.labels`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "roads.txt"
    ...     _ = path.write_text("# a triangle and a road\\n7 3\\n3 7\\n3\\t10\\n10 7\\n10 25\\n")
    ...     graph = read_snap(path, labels=True)
    >>> graph, graph.labels
    (Graph(n=4, n_edges=4, unweighted, labels), array([ 3,  7, 10, 25]))
    """
    table = read_edge_list(existing_file(path, "the edge list"), delimiter=None, weight=None, distance=None)
    return Graph.from_table(table if labels else table._replace(labels=None))


def read_matrix_market(path, *, weighted: bool = True, duplicates: str = "error") -> Graph:
    """Graph from a square Matrix Market file, .mtx or .mtx.gz: pattern or weighted, symmetric or general.

    Rows are nodes. The diagonal is dropped. A general matrix may give an edge in one direction or in both.

    Parameters
    ----------
    path : str or path
    weighted : bool
        Take the entries as weights; if False, or if the file is a pattern, every edge weighs 1.
    duplicates : {"error", "max"}
        What to do where both directions of an edge have different weights.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "path.mtx"
    ...     _ = path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\\n3 3 2\\n2 1\\n3 2\\n")
    ...     read_matrix_market(path)
    Graph(n=3, n_edges=2, unweighted)
    """
    choose("duplicates", duplicates, ("error", "max"))
    table = read_matrix(existing_file(path, "the matrix"), weight=None if weighted else False, distance=None)
    return Graph.from_table(table, duplicates=duplicates)  # type: ignore[arg-type]
