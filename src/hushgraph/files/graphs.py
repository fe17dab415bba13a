"""`read_graph` and `write_graph`: graphs in files of every format.

The end of the name, without .gz, says the format, unless the caller names it. Files are read in pieces. A file that is truncated,
garbled or of another kind raises an InputError that says where. Files are written under another name and renamed at the end, so a full
disk leaves the old file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hushgraph._atomic import atomic_open
from hushgraph._errors import InputError, Sentence
from hushgraph._validation import choose, shown
from hushgraph.files.edge_list import has_edge_columns, read_edge_list, write_edge_list
from hushgraph.files.formats import DELIMITERS, GRAPH_ENDINGS, SHAPE_FORMATS, TABLE_ENDINGS, format_of
from hushgraph.files.geojson import write_geojson
from hushgraph.files.gml import read_gml
from hushgraph.files.graphml import read_graphml, write_graphml
from hushgraph.files.matrix_market import read_matrix, write_matrix
from hushgraph.files.nodes import with_nodes
from hushgraph.files.npz import read_npz, write_npz
from hushgraph.files.parquet import parquet_columns, read_parquet, write_parquet
from hushgraph.files.shapes import read_shapes
from hushgraph.files.text import existing_file
from hushgraph.graphs import (
    ENDS,
    Duplicates,
    EdgeTable,
    Graph,
    as_graph,
    label_kind,
    upper_edges,
)

_READERS: dict[str, Callable[..., EdgeTable]] = {
    "gml": read_gml, "mtx": read_matrix, "parquet": read_parquet, "npz": read_npz,
}  # fmt: skip
_WRITTEN = ("npz", "graphml", "csv", "tsv", "mtx", "parquet", "geojson")


def read_graph(
    path: str | Path,
    *,
    nodes: str | Path | None = None,
    format: str | None = None,  # noqa: A002
    weight: str | int | bool | None = None,
    distance: str | int | None = None,
    duplicates: Duplicates = "error",
    crs: str | None = None,
    delimiter: str | None = None,
    covariates: bool = False,
    label: str | None = None,
    tolerance: float | None = None,
) -> Graph:
    """Return the graph in a file: GraphML, GML, Matrix Market, edge list (SNAP, CSV, TSV, parquet), .npz, street lines or zones, most also as .gz.

    Both directions of an edge and parallel edges become one edge. Self-loops are dropped, but their nodes stay. Ids become labels: integers
    if all ids are integers (in ascending order in edge lists), text otherwise (in the order of the file). Ids 0 to n - 1 are no labels.
    Millions of edges are read per second, but only tens of thousands from GML: write large graphs in another format.

    Parameters
    ----------
    path : str or Path
        .graphml, .gml, .mtx, .txt, .edges, .edgelist, .el (SNAP: ids separated by blanks), .csv, .tsv, .parquet, .npz (of `write_graph`
        or scipy.sparse.save_npz), .geojson; all of them with .gz, too. Also .gpkg and .shp, which need geopandas. The polygons of .geojson,
        .gpkg and .shp are zones, and zones with a common border are joined: see `Graph.from_polygons`. Their lines are streets (also of
        .geojson they need geopandas): lines whose ends are at the same place meet in a node. In a GeoPackage of OSMnx the layers nodes and
        edges are read instead.
    nodes : str or Path, optional
        For edge lists: a table (.csv, .tsv or .parquet) with the nodes. Column node, label, id or osmid has their labels; lon and lat
        (longitude and latitude in degrees) or x and y (a plane, unless `crs` says "lonlat") have their places, if there are any. The graph
        has the nodes of this table in its order, also those without edges.
    format : str, optional
        "graphml", "gml", "mtx", "snap", "csv", "tsv", "parquet", "npz", "geojson", "gpkg" or "shp", if the name of the file does not
        end so.
    weight : str, int or False, optional
        Edge column or attribute with weights; by default "weight" if the file has it. With False every edge weighs 1. In files
        without names of columns it is the number of the column, counted from 0.
    distance : str or int, optional
        Edge column or attribute with lengths d instead of weights; they become weights mean(d) / d.
    duplicates : {"error", "sum", "max"}
        What to do if an edge is given more than once with different weights.
    crs : {None, "lonlat", "planar"}
        What the coordinates are, if the file does not say so. Attribute "crs" of GraphML, which OSMnx writes, our .npz and files of shapes
        say so: coordinates in another crs become longitude and latitude, from lon and lat of the nodes if the file has them, else by
        pyproj. With "planar" they stay as they are.
    delimiter : str, optional
        One character that separates the columns of an edge list in text, if it is not the comma of "csv" or the tab of "tsv".
    covariates : bool
        Read the attributes that OSMnx gives to streets (highway, length, name, oneway, lanes, maxspeed), for `Graph.covariates`. This is
        for GraphML, and takes several times as long. The .npz files of `write_graph` have the covariates in any case.
    label : str, optional
        For zones: the column with their labels, see `Graph.from_polygons`.
    tolerance : float, optional
        For zones: the largest gap between neighbors, see `Graph.from_polygons`.

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
    choose("crs", crs, (None, "lonlat", "planar"))
    table = read_edge_table(
        path, format=format, weight=weight, distance=distance, delimiter=delimiter, covariates=covariates, label=label, crs=crs,
        tolerance=tolerance, nodes=nodes,
    )  # fmt: skip
    if table.coords is not None and crs is not None:
        table = table._replace(crs=None if crs == "planar" else crs)
    return Graph.from_table(table, duplicates=duplicates)


def read_edge_table(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    weight: str | int | bool | None = None,
    distance: str | int | None = None,
    delimiter: str | None = None,
    covariates: bool = False,
    label: str | None = None,
    crs: str | None = None,
    tolerance: float | None = None,
    nodes: str | Path | None = None,
) -> EdgeTable:
    """Return the edges in a file; the parameters are those of `read_graph`. What the file says about its crs stays, except for "planar"."""
    path = existing_file(path, "the graph")
    kind = format_of(path, GRAPH_ENDINGS, format)
    for name, value in (("label", label), ("tolerance", tolerance)):
        if value is not None and kind not in SHAPE_FORMATS:
            expected = "left out, unless for zones (.geojson, .gpkg, .shp)"
            raise InputError.about(argument=name, expected=expected, got=f"{shown(value)} for {kind}")
    if nodes is not None and kind not in (*DELIMITERS, "parquet"):
        expected, hint = "left out, unless for a list of edges (.csv, .tsv, .txt, .parquet)", "the file has its own nodes"
        raise InputError.about(argument="nodes", expected=expected, got=f"{nodes} for {kind}", hint=hint)
    if delimiter is not None and (
        kind not in DELIMITERS or not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii()
    ):
        expected, got = "one ASCII character, and is for edge lists in text", f"{shown(delimiter)} for {kind}"
        text = Sentence("{delimiter=} must be {}; got {}", expected, got)  # as a reference: events have another delimiter
        raise InputError.about(argument="delimiter", expected=expected, got=got, text=text)
    if choose("covariates", covariates, (True, False)) and kind not in ("graphml", "npz"):
        hint = "save the streets with osmnx.save_graphml, or leave it out"
        raise InputError.about(argument="covariates", expected="False, unless for GraphML", got=f"True for {kind}", hint=hint)
    if kind in SHAPE_FORMATS:
        return read_shapes(path, kind, weight=weight, distance=distance, label=label, crs=crs, tolerance=tolerance)
    if kind == "graphml":
        return read_graphml(path, weight=weight, distance=distance, covariates=covariates, crs=crs)
    if kind in DELIMITERS:
        table = read_edge_list(path, delimiter=delimiter or DELIMITERS[kind], weight=weight, distance=distance)
    else:
        table = _READERS[kind](path, weight=weight, distance=distance)
    return table if nodes is None else with_nodes(table, nodes, crs=crs, delimiter=delimiter)


def looks_like_graph(path: Path) -> bool:
    """Return whether a file can only be a graph: by the end of its name, or a table by the columns of its edges."""
    kind = GRAPH_ENDINGS.get(Path(path.name.lower().removesuffix(".gz")).suffix)
    if kind is None or not path.is_file():
        return False
    if kind not in TABLE_ENDINGS.values():
        return True
    try:
        if kind == "parquet":
            names = {name.lower() for name in parquet_columns(path)[0]}
            return any(set(ends) <= names for ends in ENDS)
        return has_edge_columns(path, DELIMITERS[kind])
    except (OSError, ValueError, ImportError):  # the reader says what is wrong with it
        return False


def write_graph(path: str | Path, graph: Graph, *, for_osmnx: bool = False) -> Path:
    """Write a graph as .npz, .graphml, .csv, .tsv, .mtx, .parquet or .geojson, each also with .gz; `read_graph` returns the same graph.

    Labels, if there are any, must be all integers or all text. Only .npz and .graphml keep the coordinates, and only .npz keeps `node_covariates`
    and all `names`; .graphml keeps the names of streets that both ends of an edge have. Weights that are all 1
    are not written. Zones are kept by .npz and .geojson; .geojson has the `outlines` and labels only, and `read_graph` finds the edges again
    from the borders.

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
    path, graph = Path(path), as_graph(graph)
    endings = {ending: kind for ending, kind in GRAPH_ENDINGS.items() if kind in _WRITTEN}
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
    table = EdgeTable(pairs, graph.n, kept, graph.coords, graph.crs, graph.labels, covariates=graph.node_covariates,
                      outlines=graph.outlines, curves=graph.curves, names=graph.names, attribution=graph.attribution)  # fmt: skip
    with atomic_open(path) as file:
        if kind in ("csv", "tsv"):
            write_edge_list(file, pairs, kept, graph.labels, graph.n, delimiter=DELIMITERS[kind] or ",")
        elif kind == "mtx":
            write_matrix(file, pairs, kept, graph.labels, graph.n)
        elif kind == "graphml":
            write_graphml(file, table, for_osmnx=for_osmnx)
        else:
            {"npz": write_npz, "parquet": write_parquet, "geojson": write_geojson}[kind](file, table)
    return path
