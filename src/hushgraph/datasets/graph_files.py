"""Graphs in the formats of their publishers: SNAP edge lists and Matrix Market. `hushgraph.read_graph` reads these and more."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from hushgraph._validation import choose
from hushgraph.files import read_edge_table, read_graph
from hushgraph.graphs import Graph


def read_snap(path: str | Path, *, labels: bool = False) -> Graph:
    """Return the graph in an edge list in the format of SNAP: two integer ids a line, comments after #, plain or .gz.

    Nodes are numbered 0 to n - 1 in the order of their ids. Edges given in both directions or twice are one edge, self-loops are
    dropped (their node stays). If a comment says how many edges there are ("# Nodes: 4 Edges: 6"), there must be as many lines.

    Parameters
    ----------
    path : str or Path
        The file, with any name.
    labels : bool
        Whether the ids become `graph.labels`.

    Returns
    -------
    Graph
        Unweighted.

    See Also
    --------
    hushgraph.read_graph : Reads edge lists of other formats, and weights.

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
    table = read_edge_table(path, format="snap")
    return Graph.from_table(table if labels else table._replace(labels=None))


def read_matrix_market(path: str | Path, *, weighted: bool = True, duplicates: Literal["error", "max"] = "error") -> Graph:
    """Return the graph in a square Matrix Market file, .mtx or .mtx.gz: pattern or weighted, symmetric or general.

    Rows are nodes. The diagonal is dropped. A general matrix may give an edge in one direction or in both.

    Parameters
    ----------
    path : str or Path
        The file, with any name.
    weighted : bool
        Whether the entries are weights; otherwise, and if the file is a pattern, every edge weighs 1.
    duplicates : {"error", "max"}
        What to do if both directions of an edge have different weights.

    Returns
    -------
    Graph
        With labels if the file has them.

    See Also
    --------
    hushgraph.read_graph : Reads these files, and lengths instead of weights.

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
    return read_graph(path, format="mtx", weight=None if weighted else False, duplicates=duplicates)
