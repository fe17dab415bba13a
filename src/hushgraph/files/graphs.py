"""`read_graph` and `write_graph`: graphs in files of every format.

The end of the name, without .gz, says the format, unless the caller names it. Files are read in pieces. A file that is truncated,
garbled or of another kind raises an InputError that says where. Files are written under another name and renamed at the end, so a full
disk leaves the old file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hushgraph._atomic import atomic_open
from hushgraph._errors import InputError
from hushgraph._validation import choose, shown
from hushgraph.files.edge_list import read_edge_list, write_edge_list
from hushgraph.files.formats import DELIMITERS, GRAPH_ENDINGS, format_of
from hushgraph.files.gml import read_gml
from hushgraph.files.graphml import read_graphml, write_graphml
from hushgraph.files.matrix_market import read_matrix, write_matrix
from hushgraph.files.npz import read_npz, write_npz
from hushgraph.files.parquet import read_parquet, write_parquet
from hushgraph.files.text import existing_file
from hushgraph.graphs import Duplicates, EdgeTable, Graph, checked_graph, label_kind, upper_edges

_READERS: dict[str, Callable[..., EdgeTable]] = {
    "gml": read_gml, "mtx": read_matrix, "parquet": read_parquet, "npz": read_npz,
}  # fmt: skip


def read_graph(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    weight: str | int | bool | None = None,
    distance: str | int | None = None,
    duplicates: Duplicates = "error",
    crs: str | None = None,
    delimiter: str | None = None,
    covariates: bool = False,
) -> Graph:
    """Return the graph in a file: GraphML, GML, Matrix Market, edge list (SNAP, CSV, TSV, parquet) or .npz, each also as .gz.

    Both directions of an edge and parallel edges become one edge. Self-loops are dropped, but their nodes stay. Ids become labels: integers
    if all ids are integers (in ascending order in edge lists), text otherwise (in the order of the file). Ids 0 to n - 1 are no labels.
    Millions of edges are read per second, but only tens of thousands from GML: write large graphs in another format.

    Parameters
    ----------
    path : str or Path
        .graphml, .gml, .mtx, .txt, .edges, .edgelist, .el (SNAP: ids separated by blanks), .csv, .tsv, .parquet, .npz (of `write_graph`
        or scipy.sparse.save_npz); all of them with .gz, too.
    format : str, optional
        "graphml", "gml", "mtx", "snap", "csv", "tsv", "parquet" or "npz", if the name of the file does not end so.
    weight : str, int or False, optional
        Edge column or attribute with weights; by default "weight" if the file has it. With False every edge weighs 1. In files
        without names of columns it is the number of the column, counted from 0.
    distance : str or int, optional
        Edge column or attribute with lengths d instead of weights; they become weights mean(d) / d.
    duplicates : {"error", "sum", "max"}
        What to do if an edge is given more than once with different weights.
    crs : {None, "lonlat"}
        What the coordinates are, if the file does not say so. Attribute "crs" of GraphML, which OSMnx writes, and our .npz say so.
    delimiter : str, optional
        One character that separates the columns of an edge list in text, if it is not the comma of "csv" or the tab of "tsv".
    covariates : bool
        Read the attributes that OSMnx gives to streets (highway, length, name, oneway, lanes, maxspeed), for `Graph.covariates`. This is
        for GraphML, and takes several times as long. The .npz files of `write_graph` have the covariates in any case.

    Returns
    -------
    Graph
        With labels and coordinates if the file has them.

    Raises
    ------
    InputError
        A ValueError that names the line or row, if the file is truncated, garbled or of another format.
    NoFileError
        A FileNotFoundError, if there is no such file.

    Notes
    -----
    Edge lists with a delimiter begin with a line of column names, with source and target among them (or from, to; src, dst; u, v), or
    with an edge of two integers. A line without a target adds a node. Ids are integers if those of the first edge are; text that looks
    like an integer must be in quotation marks, in all lines or in the first edge. Lines that begin with # are comments.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "streets.csv"
    ...     _ = path.write_text("source,target,length\\nelm,oak,120\\noak,ash,80\\n")
    ...     graph = read_graph(path, distance="length")
    >>> graph.labels.tolist(), graph.degrees.round(3).tolist()
    (['elm', 'oak', 'ash'], [0.833, 2.083, 1.25])
    """
    table = read_edge_table(path, format=format, weight=weight, distance=distance, delimiter=delimiter, covariates=covariates)
    if table.coords is not None and crs is not None:
        table = table._replace(crs=crs)
    return Graph.from_table(table, duplicates=duplicates)


def read_edge_table(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    weight: str | int | bool | None = None,
    distance: str | int | None = None,
    delimiter: str | None = None,
    covariates: bool = False,
) -> EdgeTable:
    """Return the edges in a file; the parameters are those of `read_graph`."""
    path = existing_file(path, "the graph")
    kind = format_of(path, GRAPH_ENDINGS, format)
    if delimiter is not None and (
        kind not in DELIMITERS or not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii()
    ):
        expected = "one ASCII character, and is for edge lists in text"
        raise InputError.about(argument="delimiter", expected=expected, got=f"{shown(delimiter)} for {kind}")
    if choose("covariates", covariates, (True, False)) and kind not in ("graphml", "npz"):
        hint = "save the streets with osmnx.save_graphml, or leave it out"
        raise InputError.about(argument="covariates", expected="False, unless for GraphML", got=f"True for {kind}", hint=hint)
    if kind == "graphml":
        return read_graphml(path, weight=weight, distance=distance, covariates=covariates)
    if kind in DELIMITERS:
        return read_edge_list(path, delimiter=delimiter or DELIMITERS[kind], weight=weight, distance=distance)
    return _READERS[kind](path, weight=weight, distance=distance)


def write_graph(path: str | Path, graph: Graph, *, for_osmnx: bool = False) -> Path:
    """Write a graph as .npz, .graphml, .csv, .tsv, .mtx or .parquet, each also with .gz; `read_graph` returns the same graph.

    Labels, if there are any, must be all integers or all text. Only .npz and .graphml keep the coordinates, and only .npz keeps `node_covariates`. Weights that are all 1
    are not written.

    Parameters
    ----------
    path : str or Path
        The file to write; its name says the format. An existing file is replaced when the new one is complete.
    graph : Graph
        The graph to write.
    for_osmnx : bool
        Write .graphml for `osmnx.load_graphml`: values declared as text, and each edge in both directions. Other packages then read text
        instead of numbers. Labels must be integers, since OSMnx reads nothing else.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile
    >>> graph = Graph.from_edges([(0, 1), (1, 2)], weights=[0.1, 7.0], labels=["a", "b", "c"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = read_graph(write_graph(Path(folder) / "streets.mtx.gz", graph))
    >>> again.hash == graph.hash
    True
    """
    path, graph = Path(path), checked_graph(graph)
    endings = {ending: kind for ending, kind in GRAPH_ENDINGS.items() if kind in ("npz", "graphml", "csv", "tsv", "mtx", "parquet")}
    kind = format_of(path, endings, None)
    if choose("for_osmnx", for_osmnx, (True, False)) and kind != "graphml":
        hint = "choose a name that ends in .graphml"
        text = f"for_osmnx=True is for GraphML, which OSMnx reads; got {path.name}; {hint}"
        raise InputError.about(argument="for_osmnx", expected="False, unless for GraphML", got=path.name, hint=hint, text=text)
    if for_osmnx and label_kind(graph.labels, "GraphML") == "text":
        hint = "write it without for_osmnx=True, or relabel it"
        text = f"OSMnx reads labels that are integers only, and those of this graph are text; {hint}"
        raise InputError.about(argument="for_osmnx", expected="False for labels that are text", hint=hint, text=text)
    pairs, weights = upper_edges(graph)
    kept = None if graph.is_unweighted else weights
    table = EdgeTable(pairs, graph.n, kept, graph.coords, graph.crs, graph.labels, covariates=graph.node_covariates)
    with atomic_open(path) as file:
        if kind in ("csv", "tsv"):
            write_edge_list(file, pairs, kept, graph.labels, graph.n, delimiter=DELIMITERS[kind] or ",")
        elif kind == "mtx":
            write_matrix(file, pairs, kept, graph.labels, graph.n)
        elif kind == "graphml":
            write_graphml(file, table, for_osmnx=for_osmnx)
        else:
            {"npz": write_npz, "parquet": write_parquet}[kind](file, table)
    return path
