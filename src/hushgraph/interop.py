"""To and from the graphs of other packages: networkx and OSMnx, igraph, SciPy, GeoPandas, PyTorch Geometric.

The way in ends at an `EdgeTable`, which `Graph.from_networkx` and its kin make a graph of; the way out takes a graph. Directions are
united, parallel edges are one edge, self-loops are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from hushgraph.adjacency import affinities, label_array, one_of
from hushgraph.checks import as_array, checked_number, is_number, shown
from hushgraph.contents import extra
from hushgraph.edge_table import EdgeTable, is_lonlat
from hushgraph.labelled import is_labelled

# ---- in -------------------------------------------------------------------------------------------------------------


def networkx_edges(G, *, weight, distance, coords, crs) -> EdgeTable:
    """Names of nodes become labels; the graph's own "crs", which OSMnx sets, says whether places are longitude and latitude."""
    if not (hasattr(G, "nodes") and hasattr(G, "adj")):
        msg = f"from_networkx needs a networkx graph; got {type(G).__name__}"
        raise TypeError(msg)
    names = list(G.nodes)
    position = {name: i for i, name in enumerate(names)}
    pairs = np.array([(position[u], position[v]) for u, v in G.edges()], dtype=np.int64).reshape(-1, 2)
    attribute = one_of(weight=weight, distance=distance)
    values = (
        None
        if attribute is None
        else _without_text(f"edge attribute {attribute!r}", [value for *_, value in G.edges(data=attribute)])
    )
    nodes = [G.nodes[name] for name in names]
    named = coords is not None and len(nodes) > 0 and all(key in node for node in nodes for key in coords)
    columns = [_without_text(f"node attribute {key!r}", [node[key] for node in nodes]) for key in coords] if named else []
    places = list(map(list, zip(*columns, strict=True))) if named else None
    if named and crs is None and is_lonlat(G.graph.get("crs")):
        crs = "lonlat"
    weights = affinities(values, attribute, pairs, is_distance=distance is not None)
    return EdgeTable(pairs, len(names), weights, places, crs, label_array(names))


def _without_text(name: str, values: list) -> list:
    """Numbers that were kept as text, which networkx reads from files of OSMnx, as numbers; all else as it is."""
    try:
        return [float(value) if isinstance(value, str) else value for value in values]
    except ValueError:
        wrong = sum(isinstance(value, str) and not is_number(value) for value in values)
    msg = (
        f"{name} must be numbers; {wrong} of {len(values)} are other text; name another attribute, or turn them into numbers first"
    )
    raise ValueError(msg)


def igraph_edges(g, *, weight, distance, coords, crs) -> EdgeTable:
    """Vertex names, if any, become labels."""
    if not (hasattr(g, "get_edgelist") and hasattr(g, "vs")):
        msg = f"from_igraph needs an igraph.Graph; got {type(g).__name__}"
        raise TypeError(msg)
    pairs = np.array(g.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    attribute = one_of(weight=weight, distance=distance)
    if attribute is not None and attribute not in g.es.attributes():
        msg = f"the edges have no attribute {attribute!r}; they have {g.es.attributes()}"
        raise ValueError(msg)
    values = None if attribute is None else _without_text(f"edge attribute {attribute!r}", g.es[attribute])
    labels = label_array(g.vs["name"]) if "name" in g.vs.attributes() else None
    weights = affinities(values, attribute, pairs, is_distance=distance is not None)
    return EdgeTable(pairs, g.vcount(), weights, coords, crs, labels)


def geopandas_edges(edges, *, weight, distance, tolerance) -> EdgeTable:
    """Nodes are the ends of the lines, in the order in which they are met."""
    if not (hasattr(edges, "geometry") and hasattr(edges, "crs") and hasattr(edges, "columns")):
        msg = f"from_geopandas needs a GeoDataFrame of lines; got {type(edges).__name__}"
        raise TypeError(msg)
    shapely = extra("shapely", name="geopandas", purpose="reading lines")
    tolerance = checked_number("tolerance", tolerance, "a distance of at least 0, in the unit of the coordinates", least=0)
    lines = np.asarray(edges.geometry.array)
    wrong = shapely.get_type_id(lines) != 1  # -1: no geometry, 1: LineString
    if (wrong | shapely.is_empty(lines)).any():
        row = int((wrong | shapely.is_empty(lines)).argmax())
        msg = f"row {row} of the lines is no LineString, or an empty one; explode() MultiLineStrings and drop rows without geometry"
        raise ValueError(msg)
    ends = np.stack([shapely.get_coordinates(shapely.get_point(lines, end)) for end in (0, -1)], axis=1).reshape(-1, 2)
    number, places = _snapped(ends, tolerance)
    pairs = number.reshape(-1, 2)
    attribute = one_of(weight=weight, distance=distance)
    lonlat = is_lonlat(edges.crs)
    values = None if attribute is None else _line_values(edges, shapely, attribute, lonlat)
    weights = affinities(values, attribute, pairs, is_distance=distance is not None)
    return EdgeTable(pairs, len(places), weights, places, "lonlat" if lonlat else None)


def _line_values(edges, shapely, attribute, lonlat: bool):
    if attribute == "geometry" and lonlat:
        msg = "lengths in degrees mean nothing; project the lines first (to_crs), or name a column with lengths"
        raise ValueError(msg)
    if attribute == "geometry":
        return shapely.length(np.asarray(edges.geometry.array))
    if attribute not in edges.columns:
        msg = f"the lines have no column {attribute!r}; they have {list(edges.columns)}; 'geometry' takes the lengths of the lines"
        raise ValueError(msg)
    return edges[attribute].to_numpy()


def _snapped(ends: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """(node of each end, places of the nodes); ends that a chain of steps of at most `tolerance` joins are one node."""
    if not np.isfinite(ends).all():
        msg = f"the ends of the lines must be finite; {int((~np.isfinite(ends)).any(axis=1).sum())} are not"
        raise ValueError(msg)
    places, number = np.unique(ends + 0.0, axis=0, return_inverse=True)  # + 0.0: -0 and 0 are one place
    number = number.ravel()
    if tolerance > 0 and len(places):
        from scipy.spatial import cKDTree  # slow to load, and seldom needed

        near = cKDTree(places).query_pairs(tolerance, output_type="ndarray")
        joined = sparse.coo_array((np.ones(len(near)), (near[:, 0], near[:, 1])), shape=(len(places), len(places)))
        number = csgraph.connected_components(joined, directed=False)[1][number]
    _, first, group = np.unique(number, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[group.ravel()], ends[first[order]]


def pyg_edges(data, *, weight, distance, crs) -> EdgeTable:
    """`pos` becomes the coordinates."""
    if not hasattr(data, "edge_index"):
        msg = f"from_pyg needs a torch_geometric.data.Data; got {type(data).__name__}"
        raise TypeError(msg)
    index = np.empty((2, 0), dtype=np.int64) if data.edge_index is None else _numpy(data.edge_index)
    if index.ndim != 2 or index.shape[0] != 2 or index.dtype.kind not in "iu":
        msg = f"edge_index must be (2, m) integers; got shape {index.shape} and dtype {index.dtype}"
        raise ValueError(msg)
    places = _numpy(data.pos) if getattr(data, "pos", None) is not None else None
    n = getattr(data, "num_nodes", None)
    n = n if n is not None else (len(places) if places is not None else int(index.max(initial=-1)) + 1)
    attribute = one_of(weight=weight, distance=distance)
    values = None if attribute is None else getattr(data, attribute, None)
    if attribute is not None and values is None:
        msg = f"the data has no {attribute!r}; name 'edge_weight', 'edge_attr' or another attribute with one number per edge"
        raise ValueError(msg)
    values = None if values is None else _numpy(values)
    if values is not None and values.size != index.shape[1]:
        msg = f"{attribute!r} must hold one number per edge: expected ({index.shape[1]},), got {values.shape}"
        raise ValueError(msg)
    pairs = index.T.astype(np.int64)
    weights = affinities(None if values is None else values.ravel(), attribute, pairs, is_distance=distance is not None)
    return EdgeTable(pairs, n, weights, places, crs)


def pyg_signals(data) -> np.ndarray:
    """The node features `x` of a torch_geometric.data.Data as signals, (n, m) in node order."""
    if getattr(data, "x", None) is None:
        msg = "the data has no node features x; signals are its columns"
        raise ValueError(msg)
    values = _numpy(data.x)
    return values.reshape(len(values), -1).astype(np.float64)


def _numpy(tensor) -> np.ndarray:
    for step in ("detach", "cpu", "numpy"):
        tensor = getattr(tensor, step)() if hasattr(tensor, step) else tensor
    return np.asarray(tensor)


# ---- out ------------------------------------------------------------------------------------------------------------


def upper_edges(graph) -> tuple[np.ndarray, np.ndarray]:
    """((m, 2) node numbers, weights) of a graph, each edge once, by its lower node."""
    if not (hasattr(graph, "adjacency") and hasattr(graph, "aligned")):
        msg = f"graph must be a hushgraph.Graph; got {type(graph).__name__}; build one with Graph.from_edges"
        raise TypeError(msg)
    upper = sparse.triu(graph.adjacency, k=1, format="csr").tocoo()
    return np.stack(upper.coords, axis=1).astype(np.int64), upper.data


def node_names(graph) -> list:
    """Labels, or numbers without labels, as plain Python values."""
    return list(range(graph.n)) if graph.labels is None else graph.labels.tolist()


def signal_columns(graph, signals, *, name: str = "signal") -> dict[str, np.ndarray]:
    """One column of node values for each name: of a dict of name -> (n,) values, or of bare values, which get that name."""
    if signals is None:
        return {}
    named = isinstance(signals, Mapping) and all(isinstance(key, str) and _is_column(value) for key, value in signals.items())
    columns = {key: graph.aligned(key, values, missing_ok=True) for key, values in (signals if named else {name: signals}).items()}
    for key, values in columns.items():
        if values.ndim != 1:
            msg = f"{key} must be one value per node; got {shown(values)}; pass a dict of name -> (n,) for more"
            raise ValueError(msg)
    return columns


def _is_column(values) -> bool:
    return is_labelled(values) or np.ndim(as_array(values)) > 0


def _place_columns(graph) -> dict[str, np.ndarray]:
    return {} if graph.coords is None else dict(zip("xyz", graph.coords.T, strict=False))


def to_networkx(graph, *, signals=None) -> Any:
    """The graph as a networkx.Graph: labels are the names of nodes, edges have a "weight", places are "x" and "y".

    Parameters
    ----------
    graph : Graph
    signals : dict of name -> (n,) values, or (n,) values, optional
        They become node attributes; a bare array is called "signal".

    Examples
    --------
    >>> from hushgraph.graph import Graph
    >>> graph = Graph.from_edges([(0, 1)], labels=["a", "b"])
    >>> to_networkx(graph, signals={"f": [1.0, 2.0]}).nodes(data=True)
    NodeDataView({'a': {'f': 1.0}, 'b': {'f': 2.0}})
    """
    networkx = extra("networkx", name="networkx", purpose="a networkx graph")
    pairs, weights = upper_edges(graph)
    G, names = networkx.Graph(), node_names(graph)
    if graph.crs == "lonlat":
        G.graph["crs"] = "EPSG:4326"
    G.add_nodes_from(names)
    for key, values in (_place_columns(graph) | signal_columns(graph, signals)).items():
        networkx.set_node_attributes(G, dict(zip(names, values.tolist(), strict=True)), key)
    ends = pairs.tolist()
    G.add_weighted_edges_from((names[i], names[j], w) for (i, j), w in zip(ends, weights.tolist(), strict=True))
    return G


def to_igraph(graph, *, signals=None) -> Any:
    """The graph as an igraph.Graph: labels are vertex names, edges have a "weight", places are "x" and "y"; see `to_networkx`."""
    igraph = extra("igraph", name="igraph", purpose="an igraph graph")
    pairs, weights = upper_edges(graph)
    g = igraph.Graph(n=graph.n, edges=pairs.tolist())
    g.es["weight"] = weights.tolist()
    if graph.labels is not None:
        g.vs["name"] = graph.labels.tolist()
    for key, values in (_place_columns(graph) | signal_columns(graph, signals)).items():
        g.vs[key] = values.tolist()
    return g


def to_scipy(graph) -> sparse.csr_array:
    """A copy of the adjacency matrix, free to be changed."""
    upper_edges(graph)
    return graph.adjacency.copy()


def to_geopandas(graph, *, signals=None) -> tuple[Any, Any]:
    """(nodes, edges) as GeoDataFrames: points by label with the signals as columns, straight lines with source, target and weight.

    `Graph.from_geopandas` of the lines has the same edges, but no labels and, in general, another order of nodes.
    """
    pairs, weights = upper_edges(graph)
    if graph.coords is None:
        msg = "to_geopandas needs places: this graph has no coords; give them when it is made"
        raise ValueError(msg)
    geopandas, shapely, pandas = (
        extra(module, name="geopandas", purpose="GeoDataFrames") for module in ("geopandas", "shapely", "pandas")
    )
    crs, names = "EPSG:4326" if graph.crs == "lonlat" else None, pandas.Index(node_names(graph), name="node", tupleize_cols=False)
    columns = signal_columns(graph, signals)
    nodes = geopandas.GeoDataFrame(columns, index=names, geometry=shapely.points(graph.coords), crs=crs)
    ends = {"source": names[pairs[:, 0]], "target": names[pairs[:, 1]], "weight": weights}
    lines = shapely.linestrings(graph.coords[pairs])
    return nodes, geopandas.GeoDataFrame(ends, geometry=lines, crs=crs)


def to_pyg(graph, *, signals=None) -> Any:
    """The graph as a torch_geometric.data.Data: both directions in edge_index, edge_weight, pos, and the signals as columns of x."""
    pairs, weights = upper_edges(graph)
    torch = extra("torch", name="pyg", purpose="PyTorch Geometric data")
    data = extra("torch_geometric.data", name="pyg", purpose="PyTorch Geometric data")
    index = np.concatenate([pairs, pairs[:, ::-1]]).T.copy()
    made = data.Data(edge_index=torch.from_numpy(index), edge_weight=torch.from_numpy(np.tile(weights, 2)), num_nodes=graph.n)
    if graph.coords is not None:
        made.pos = torch.from_numpy(graph.coords.copy())
    columns = signal_columns(graph, signals)
    if columns:
        made.x = torch.from_numpy(np.stack(list(columns.values()), axis=1))
    return made
