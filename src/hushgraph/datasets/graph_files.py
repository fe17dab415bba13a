"""Graphs as their publishers write them: SNAP edge lists and Matrix Market.

A file that is truncated or garbled is an error that names the line.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from scipy import sparse

from hushgraph.checks import choose, shown
from hushgraph.datasets.lines import CUT_SHORT, existing_file, number_table, numbered_lines
from hushgraph.graph import Graph


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
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "roads.txt"
    ...     _ = path.write_text("# a triangle and a road\\n7 3\\n3 7\\n3\\t10\\n10 7\\n10 25\\n")
    ...     graph = read_snap(path, labels=True)
    >>> graph, graph.labels
    (Graph(n=4, n_edges=4, unweighted, labels), array([ 3,  7, 10, 25]))
    """
    path = existing_file(path, "the edge list")
    stated = _stated_edges(path)
    pairs = number_table(path, np.int64)
    if pairs is None or (pairs.size and pairs.shape[1] != 2):
        raise ValueError(_first_bad_edge(path))
    if not pairs.size:
        msg = f"{path} holds no edges; expected two integer node ids a line; check that it was copied whole"
        raise ValueError(msg)
    if stated is not None and len(pairs) != stated:
        msg = f"{path} says it has {stated} edges, but has {len(pairs)} lines of them; it is truncated or was edited; get it again"
        raise ValueError(msg)
    ids, number = np.unique(pairs, return_inverse=True)
    return Graph.from_edges(number.reshape(-1, 2), n=len(ids), labels=ids if labels else None)


def _stated_edges(path: Path) -> int | None:
    for _, line in numbered_lines(path):
        if line.strip() and not line.startswith("#"):
            return None
        if match := re.search(r"\bEdges:\s*(\d+)", line):
            return int(match[1])
    return None


def _first_bad_edge(path: Path) -> str:
    for number, line in numbered_lines(path):
        fields = line.split("#")[0].split()
        if fields and not (len(fields) == 2 and all(re.fullmatch(r"[+-]?\d{1,18}", field) for field in fields)):
            return (
                f"line {number} of {path} must be two integer node ids; got {shown(line.strip())}; the file is truncated or garbled"
            )
    return f"{path} cannot be read as an edge list: two integer node ids a line, comments after #"


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
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "path.mtx"
    ...     _ = path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\\n3 3 2\\n2 1\\n3 2\\n")
    ...     read_matrix_market(path)
    Graph(n=3, n_edges=2, unweighted)
    """
    from scipy.io import mmread

    choose("duplicates", duplicates, ("error", "max"))
    path = existing_file(path, "the matrix")
    try:
        matrix = mmread(path)
    except CUT_SHORT as fault:
        msg = f"{path} cannot be read: it is truncated, not text, or not gzip; copy or download it again"
        raise ValueError(msg) from fault
    except (ValueError, OverflowError) as fault:
        msg = f"{path} is not a whole Matrix Market file: {str(fault).rstrip('.')}; copy or download it again"
        raise ValueError(msg) from fault
    matrix = sparse.coo_array(matrix)
    if matrix.shape[0] != matrix.shape[1] or matrix.dtype.kind not in "fiu":
        msg = f"{path} must hold a square matrix of real numbers; got shape {matrix.shape} and dtype {matrix.dtype}"
        raise ValueError(msg)
    pairs, values = np.stack(matrix.coords, axis=1).astype(np.int64), matrix.data
    if not weighted:
        pairs, values = pairs[values != 0], None
    return Graph.from_edges(pairs, n=matrix.shape[0], weights=values, duplicates=duplicates)  # type: ignore[arg-type]
