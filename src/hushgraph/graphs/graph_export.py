"""Export of a graph to other packages: networkx, igraph, SciPy, GeoPandas, PyTorch Geometric.

The exported graph carries hints as attributes (`_hints`), so that `graph_import` returns the same graph from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from hushgraph._errors import InputError
from hushgraph._extras import extra
from hushgraph._validation import as_array, shown
from hushgraph.graphs.edge_table import COORDS_HINT, LABELS_HINT, WEIGHT_HINT, label_kind
from hushgraph.graphs.graph import Graph, as_graph
from hushgraph.graphs.labels import is_labelled, node_names


def upper_edges(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Return ((m, 2) node numbers, weights) of a graph: each edge once, by its lower node."""
    upper = sparse.triu(as_graph(graph).adjacency, k=1, format="csr").tocoo()
    return np.stack(upper.coords, axis=1).astype(np.int64), upper.data


def signal_columns(graph: Graph, signals: Any, *, name: str = "signal") -> dict[str, np.ndarray]:
    """Return one column of node values for each name, from a dict of name -> (n,) values, or from plain values, which get that name."""
    if signals is None:
        return {}
    named = isinstance(signals, Mapping) and all(isinstance(key, str) and _is_column(value) for key, value in signals.items())
    columns = {
        key: graph.aligned(key, values, missing_ok=True, one=True)
        for key, values in (signals if named else {name: signals}).items()
    }
    for key, values in columns.items():
        if values.ndim != 1:
            hint = "pass a dict of name -> (n,) for more"
            raise InputError.about(argument=key, expected="one value per node", got=shown(values), hint=hint)
    return columns


def _is_column(values: Any) -> bool:
    return is_labelled(values) or np.ndim(as_array(values)) > 0


def _place_columns(graph: Graph) -> dict[str, np.ndarray]:
    return {} if graph.coords is None else dict(zip("xyz", graph.coords.T, strict=False))


def _hints(graph: Graph, weight: str = "weight") -> dict[str, str]:
    """Return the attributes that `from_networkx` and the like need to return the same graph."""
    try:
        hints = {LABELS_HINT: label_kind(graph.labels, "")}
    except InputError:  # other labels fit into Python objects, not into files
        hints = {}
    hints |= {WEIGHT_HINT: weight} if not graph.is_unweighted else {}
    hints |= {"crs": "EPSG:4326"} if graph.crs == "lonlat" else {}
    return hints | ({COORDS_HINT: "x y z"} if graph.coords is not None and graph.coords.shape[1] == 3 else {})


def to_networkx(graph: Graph, *, signals: Any = None) -> Any:
    """Return the graph as a networkx.Graph: labels are the names of nodes, edges have a "weight", coordinates are "x" and "y".

    `Graph.from_networkx` of it returns the same graph, weights included: attributes of the networkx graph describe it.

    Parameters
    ----------
    graph : Graph
        The graph.
    signals : dict of str to array_like, or array_like, optional
        Signals by name, shape (n,) each; a plain array is called "signal". They become node attributes.

    Returns
    -------
    networkx.Graph
        The graph.

    Examples
    --------
    >>> import hushgraph as hg
    >>> graph = hg.Graph.from_edges([(0, 1)], labels=["a", "b"])
    >>> hg.to_networkx(graph, signals={"f": [1.0, 2.0]}).nodes(data=True)
    NodeDataView({'a': {'f': 1.0}, 'b': {'f': 2.0}})
    """
    networkx = extra("networkx", name="networkx", purpose="a networkx graph")
    pairs, weights = upper_edges(graph)
    G, names = networkx.Graph(**_hints(graph)), node_names(graph)
    G.add_nodes_from(names)
    for key, values in (_place_columns(graph) | signal_columns(graph, signals)).items():
        networkx.set_node_attributes(G, dict(zip(names, values.tolist(), strict=True)), key)
    ends = pairs.tolist()
    G.add_weighted_edges_from((names[i], names[j], w) for (i, j), w in zip(ends, weights.tolist(), strict=True))
    return G


def to_igraph(graph: Graph, *, signals: Any = None) -> Any:
    """Return the graph as an igraph.Graph: labels are vertex names, edges have a "weight", coordinates are "x" and "y".

    `Graph.from_igraph` of it returns the same graph.

    Parameters
    ----------
    graph : Graph
        The graph.
    signals : dict of str to array_like, or array_like, optional
        Signals by name, shape (n,) each; a plain array is called "signal". They become vertex attributes.

    Returns
    -------
    igraph.Graph
        The graph.
    """
    igraph = extra("igraph", name="igraph", purpose="an igraph graph")
    pairs, weights = upper_edges(graph)
    g = igraph.Graph(n=graph.n, edges=pairs.tolist())
    for name, hint in _hints(graph).items():
        g[name] = hint
    g.es["weight"] = weights.tolist()
    if graph.labels is not None:
        g.vs["name"] = graph.labels.tolist()
    for key, values in (_place_columns(graph) | signal_columns(graph, signals)).items():
        g.vs[key] = values.tolist()
    return g


def to_scipy(graph: Graph) -> sparse.csr_array:
    """Return a writable copy of the adjacency matrix.

    Parameters
    ----------
    graph : Graph
        The graph.

    Returns
    -------
    scipy.sparse.csr_array
        Edge weights, shape (n, n).
    """
    return as_graph(graph).adjacency.copy()


def to_geopandas(graph: Graph, *, signals: Any = None) -> tuple[Any, Any]:
    """Return the nodes and the edges of the graph as GeoDataFrames. For a map of values, with zones as polygons, see `Denoised.to_geopandas`.

    `Graph.from_geopandas(edges, nodes=nodes)` returns the same graph. The graph of the lines alone has the same edges, but no labels and,
    in general, another order of nodes. `edges.attrs` says that there are weights; parquet files keep it, and .gpkg files do not: pass
    weight="weight" for those.

    Parameters
    ----------
    graph : Graph
        A graph with coordinates.
    signals : dict of str to array_like, or array_like, optional
        Signals by name, shape (n,) each; a plain array is called "signal". They become columns of the nodes.

    Returns
    -------
    nodes : geopandas.GeoDataFrame
        Points, with the labels as index.
    edges : geopandas.GeoDataFrame
        Straight lines with the columns source, target and weight.
    """
    pairs, weights = upper_edges(graph)
    if graph.coords is None:
        msg = "to_geopandas needs places: this graph has no coords; give them when it is made"
        raise InputError(msg)
    geopandas, shapely, pandas = (
        extra(module, name="geopandas", purpose="GeoDataFrames") for module in ("geopandas", "shapely", "pandas")
    )
    crs, names = "EPSG:4326" if graph.crs == "lonlat" else None, pandas.Index(node_names(graph), name="node", tupleize_cols=False)
    columns = signal_columns(graph, signals)
    nodes = geopandas.GeoDataFrame(columns, index=names, geometry=shapely.points(graph.coords), crs=crs)
    ends = {"source": names[pairs[:, 0]], "target": names[pairs[:, 1]], "weight": weights}
    lines = shapely.linestrings(graph.coords[pairs])
    edges = geopandas.GeoDataFrame(ends, geometry=lines, crs=crs)
    edges.attrs |= _hints(graph)
    return nodes, edges


def signal_frame(graph: Graph, columns: Mapping[str, Any], *, nodes: np.ndarray | None = None) -> Any:
    """Return values on nodes as a GeoDataFrame: a column "node" with the labels, the values, and points, or polygons for zones.

    Parameters
    ----------
    graph : Graph
        A graph with coordinates.
    columns : dict of str to array_like
        The values of each row.
    nodes : (k,) array of int, optional
        The node of each row. Default: a row for each node.

    Returns
    -------
    geopandas.GeoDataFrame
        In EPSG:4326 if the graph is in longitude and latitude, otherwise without a crs.
    """
    if graph.coords is None:
        msg = "a GeoDataFrame needs places: this graph has no coords; give them when it is made"
        raise InputError(msg)
    geopandas, shapely, pandas = (
        extra(module, name="geopandas", purpose="a GeoDataFrame") for module in ("geopandas", "shapely", "pandas")
    )
    rows = np.arange(graph.n) if nodes is None else nodes
    if graph.outlines is None:
        shapes = shapely.points(graph.coords)
    else:
        zones = ([(part[0], part[1:]) for part in parts] for parts in graph.outlines.polygons())
        shapes = np.array([shapely.MultiPolygon(parts) for parts in zones], dtype=object)
    labels = pandas.Series(node_names(graph)).to_numpy()
    crs = "EPSG:4326" if graph.crs == "lonlat" else None
    return geopandas.GeoDataFrame({"node": labels[rows], **columns}, geometry=shapes[rows], crs=crs)


def to_pyg(graph: Graph, *, signals: Any = None) -> Any:
    """Return the graph as PyTorch Geometric data: both directions in edge_index, edge_weight, pos, and the signals as columns of x.

    Parameters
    ----------
    graph : Graph
        The graph.
    signals : dict of str to array_like, or array_like, optional
        Signals by name, shape (n,) each; a plain array is called "signal". They become columns of `x`.

    Returns
    -------
    torch_geometric.data.Data
        The graph.
    """
    pairs, weights = upper_edges(graph)
    torch = extra("torch", name="pyg", purpose="PyTorch Geometric data")
    data = extra("torch_geometric.data", name="pyg", purpose="PyTorch Geometric data")
    index = np.concatenate([pairs, pairs[:, ::-1]]).T.copy()
    result = data.Data(edge_index=torch.from_numpy(index), edge_weight=torch.from_numpy(np.tile(weights, 2)), num_nodes=graph.n)
    for name, hint in _hints(graph, weight="edge_weight").items():
        setattr(result, name, hint)
    if graph.coords is not None:
        result.pos = torch.from_numpy(graph.coords.copy())
    columns = signal_columns(graph, signals)
    if columns:
        result.x = torch.from_numpy(np.stack(list(columns.values()), axis=1))
    return result
