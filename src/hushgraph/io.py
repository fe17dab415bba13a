"""Graphs and signals in files: read_graph, write_graph, read_signal, write_signal.

The format is what the name ends in, .gz or not, unless it is said. Files are read in pieces, and a file that is truncated, garbled or
something else is a ValueError that says where. They are written under another name and renamed at the end: a full disk leaves the old.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph.adjacency import Duplicates
from hushgraph.array_files import (
    NO_ARRAY,
    array_of,
    arrow,
    read_npz,
    read_parquet,
    write_npz,
    write_parquet,
)
from hushgraph.checks import choose, shown
from hushgraph.edge_table import EdgeTable, label_kind
from hushgraph.edge_text import quoted, read_edge_list, write_edge_list, write_lines
from hushgraph.graph import Graph, checked_graph
from hushgraph.graph_text import read_gml
from hushgraph.graphml import read_graphml, write_graphml
from hushgraph.interop import node_names, signal_columns, upper_edges
from hushgraph.matrix_market import read_matrix, write_matrix
from hushgraph.signal_tables import Found, read_table
from hushgraph.text_files import all_bytes, existing_file, replacing

_ENDINGS = {
    ".graphml": "graphml", ".gml": "gml", ".mtx": "mtx", ".txt": "snap", ".edges": "snap", ".edgelist": "snap", ".el": "snap",
    ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".npz": "npz",
}  # fmt: skip
_SIGNAL_ENDINGS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".npy": "npy"}
_READERS: dict[str, Callable[..., EdgeTable]] = {
    "graphml": read_graphml, "gml": read_gml, "mtx": read_matrix, "parquet": read_parquet, "npz": read_npz,
}  # fmt: skip
_DELIMITERS: dict[str, str | None] = {"csv": ",", "tsv": "\t", "snap": None}


def read_graph(
    path, *, format=None, weight=None, distance=None, duplicates: Duplicates = "error", crs=None, delimiter=None  # noqa: A002
) -> Graph:  # fmt: skip
    """Graph from a file: GraphML, GML, Matrix Market, edge lists (SNAP, CSV, TSV, parquet) or .npz, each also as .gz.

    Directions are united, parallel edges are one edge, self-loops are dropped (their node stays). Ids become labels: integers where
    all are (then in ascending order in edge lists), text otherwise (in the order they are met); ids 0 to n - 1 are no labels.
    All but GML are read at about a million edges per second; large graphs in GML are better written as something else.

    Parameters
    ----------
    path : str or path
        .graphml, .gml, .mtx, .txt, .edges, .edgelist, .el (SNAP: ids separated by blanks), .csv, .tsv, .parquet, .npz (of `write_graph`
        or scipy.sparse.save_npz); all of them with .gz, too.
    format : str, optional
        "graphml", "gml", "mtx", "snap", "csv", "tsv", "parquet" or "npz", where the name does not say it.
    weight, distance : str, optional
        Edge column or attribute with affinities, or with lengths d, which become mean(d) / d. Not given: "weight" if the file
        has it. weight=False: every edge weighs 1. In files without names of columns it is a number, counted from 0.
    duplicates : {"error", "sum", "max"}
        What to do where an edge is given more than once with different weights.
    crs : {None, "lonlat"}
        What coordinates are, where the file does not say it itself (GraphML's "crs" attribute, which OSMnx writes, and our .npz do).
    delimiter : str, optional
        One character, for edge lists in text with another one than the comma of "csv" and the tab of "tsv".

    Notes
    -----
    Edge lists with a delimiter begin with a line of names, source and target among them (or from, to; src, dst; u, v), or with an
    edge of two integers. A line without a target states a node. Ids are integers if those of the first edge are; text that looks like
    an integer must be in quotation marks, all of it or in the first edge. Lines after # are comments.

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
    path = existing_file(path, "the graph")
    kind = _format_of(path, _ENDINGS, format)
    if delimiter is not None and (
        kind not in _DELIMITERS or not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii()
    ):
        msg = "{delimiter} must be one ASCII character, and is for edge lists in text; got {} for {}"
        raise InputError(Sentence(msg, shown(delimiter), kind))
    if kind in _DELIMITERS:
        table = read_edge_list(path, delimiter=delimiter or _DELIMITERS[kind], weight=weight, distance=distance)
    else:
        table = _READERS[kind](path, weight=weight, distance=distance)
    if table.coords is not None and crs is not None:
        table = table._replace(crs=crs)
    return Graph.from_table(table, duplicates=duplicates)


def write_graph(path, graph: Graph, *, for_osmnx: bool = False) -> Path:
    """Write a graph as .npz, .graphml, .csv, .tsv, .mtx or .parquet, with .gz if wanted; `read_graph` gives the same graph.

    Labels, if there are any, must be all integers or all text. Only .npz and .graphml keep the coordinates. Weights that are all 1
    are not written.

    Parameters
    ----------
    path : str or Path
    graph : Graph
    for_osmnx : bool
        Write .graphml that `osmnx.load_graphml` reads: values declared as text, and each edge in both directions. Other packages then read text
        where they would read numbers. Labels must be integers, since OSMnx reads nothing else.

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
    endings = {ending: kind for ending, kind in _ENDINGS.items() if kind in ("npz", "graphml", "csv", "tsv", "mtx", "parquet")}
    kind = _format_of(path, endings, None)
    if choose("for_osmnx", for_osmnx, (True, False)) and kind != "graphml":
        msg = f"for_osmnx=True is for GraphML, which OSMnx reads; got {path.name}; choose a name that ends in .graphml"
        raise InputError(msg)
    if for_osmnx and label_kind(graph.labels, "GraphML") == "text":
        msg = "OSMnx reads labels that are integers only, and those of this graph are text; write it without for_osmnx=True, or relabel it"
        raise InputError(msg)
    pairs, weights = upper_edges(graph)
    kept = None if graph.is_unweighted else weights
    table = EdgeTable(pairs, graph.n, kept, graph.coords, graph.crs, graph.labels)
    with replacing(path) as file:
        if kind in ("csv", "tsv"):
            write_edge_list(file, pairs, kept, graph.labels, graph.n, delimiter=_DELIMITERS[kind] or ",")
        elif kind == "mtx":
            write_matrix(file, pairs, kept, graph.labels, graph.n)
        elif kind == "graphml":
            write_graphml(file, table, for_osmnx=for_osmnx)
        else:
            {"npz": write_npz, "parquet": write_parquet}[kind](file, table)
    return path


def _format_of(
    path: Path, endings: dict[str, str], asked, *, advice: str = Sentence("rename it, or say {format=} where that is offered")
) -> str:
    if asked is not None:
        return choose("format", asked, tuple(dict.fromkeys(endings.values())))
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending not in endings:
        raise InputError(Sentence("{} must end in {} (and may end in .gz after that); {}", path, ", ".join(endings), advice))
    return endings[ending]


# ---- signals --------------------------------------------------------------------------------------------------------


def read_signal(path, graph: Graph, *, columns=None, label=None, missing_ok: bool = False) -> np.ndarray:
    """Values on the nodes of a graph, in node order: (n,), or (n, m) for several columns.

    In tables (.csv, .tsv, .parquet) rows are matched to `graph.labels` by label, or to 0 to n - 1 without labels, whatever their order;
    every node needs exactly one row. An .npy file has no labels: it goes by position and must have n rows. Empty cells and NaN
    are missing values and stay NaN. All files may end in .gz. In a .csv file semicolons or tabs may separate the columns, if no comma
    is in its first line; then numbers may have decimal commas.

    Parameters
    ----------
    path : str or path
    graph : Graph
    columns : str or list of str, optional
        A name gives (n,), a list (n, m). Not given: all columns but the labels, the index of pandas and what goes with signals: x and y,
        lon and lat, and names that end in expected_error; (n,) if that is one.
    label : str, optional
        Column with the labels. Not given: "node" if there is one; otherwise the index of pandas, or the column that fits the graph
        where that does not; otherwise the first.
    missing_ok : bool
        Nodes without a row are missing values, too; otherwise they are an error.

    Examples
    --------
    >>> import tempfile
    >>> graph = Graph.from_edges([(0, 1), (1, 2)], labels=["elm", "oak", "ash"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "counts.csv"
    ...     _ = path.write_text("node,count\\nash,3\\nelm,1.5\\noak,\\n")
    ...     read_signal(path, graph)
    array([1.5, nan, 3. ])
    """
    return read_named_signal(path, graph, columns=columns, label=label, missing_ok=missing_ok).values


def read_named_signal(path, graph: Graph, *, columns=None, label=None, missing_ok: bool = False) -> Found:
    """`read_signal` with the names of the columns, none of an array, and of those left out."""
    path, graph = existing_file(path, "the signal"), checked_graph(graph)
    kind = signal_format(path)
    if kind == "npy":
        if columns is not None or label is not None:
            raise InputError(
                Sentence("{} has no columns with names; leave {columns=} and {label=} out, or use .csv or .parquet", path)
            )
        found = Found(_read_npy(path, graph.n), [], [])
    else:
        label_kind(graph.labels, f"{path.name}, a table,")
        found = read_table(path, _DELIMITERS.get(kind), graph, columns=columns, label=label, missing_ok=missing_ok)
        if isinstance(columns, str) or (columns is None and len(found.names) == 1):
            found = found._replace(values=found.values[:, 0])
    if np.isinf(found.values).any():
        msg = f"{path} has {int(np.isinf(found.values).sum())} infinite values; write missing ones as empty cells"
        raise InputError(msg)
    return found


def signal_format(path) -> str:
    """The format that the name of a file with signals ends in, or an error."""
    sheet = Path(path).suffix.lower() in (".xlsx", ".xls", ".ods")
    advice = "sheets are neither read nor written: in Excel, save as CSV UTF-8" if sheet else "rename it"
    return _format_of(Path(path), _SIGNAL_ENDINGS, None, advice=advice)


def _read_npy(path: Path, n: int) -> np.ndarray:
    content, values = all_bytes(path).getvalue(), None
    with suppress(*NO_ARRAY):
        values = array_of(content)
    if values is None or values.dtype.kind not in "fiub":
        msg = f"{path} must be a whole .npy file of real numbers; it is truncated or something else"
        raise InputError(msg)
    if values.ndim not in (1, 2) or len(values) != n or values.size == 0 < n:
        msg = f"{path} needs one row per node: expected ({n},) or ({n}, m), got {values.shape}"
        raise InputError(msg)
    with np.errstate(over="ignore"):
        return values.astype(np.float64)


def write_signal(path, graph: Graph, values) -> Path:
    """Write values on the nodes as .csv, .tsv, .parquet or .npy, with .gz if wanted; `read_signal` gives the same values.

    Columns called x and y, lon and lat or expected_error it gives only when they are asked for.

    Parameters
    ----------
    path : str or path
    graph : Graph
    values : (n,) values, or dict of name -> (n,) values
        Bare values get a column "value". Tables have a column "node" with the labels (numbers without labels). Missing
        values, NaN, become empty cells. An .npy file has no names: several signals become its columns.
    """
    path, graph = Path(path), checked_graph(graph)
    kind = signal_format(path)
    columns = signal_columns(graph, values, name="value")
    if not columns or "node" in columns:
        msg = f"values must be one value per node, or a dict of names other than 'node'; got {shown(values)}"
        raise InputError(msg)
    table = np.stack(list(columns.values()), axis=1).astype(np.float64)
    if kind != "npy":
        label_kind(graph.labels, f"{path.name}, a table,")
    with replacing(path) as file:
        if kind == "npy":
            content = io.BytesIO()
            np.save(content, table[:, 0] if len(columns) == 1 else table)
            file.write(content.getvalue())
        elif kind == "parquet":
            _write_parquet_table(file, graph, columns)
        else:
            _write_text_table(file, graph, list(columns), table, _DELIMITERS[kind] or ",")
    return path


def _write_parquet_table(file, graph: Graph, columns: dict[str, np.ndarray]):
    pyarrow, parquet = arrow("pyarrow"), arrow("pyarrow.parquet")
    names = np.arange(graph.n) if graph.labels is None else graph.labels
    parquet.write_table(pyarrow.table({"node": names} | {name: pyarrow.array(values) for name, values in columns.items()}), file)


def _write_text_table(file, graph: Graph, names: list[str], table: np.ndarray, delimiter: str):
    labels = list(map(str, node_names(graph)))
    if graph.labels is not None and graph.labels.dtype.kind == "U":
        labels = [quoted(name, delimiter) for name in labels]
    write_lines(file, [delimiter.join(["node", *(quoted(name, delimiter) for name in names)])])
    for start in range(0, graph.n, 100_000):
        rows = zip(labels[start : start + 100_000], table[start : start + 100_000].tolist(), strict=True)
        write_lines(file, [delimiter.join([name, *("" if x != x else repr(x) for x in row)]) for name, row in rows])
