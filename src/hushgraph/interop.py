"""To and from the graphs of other packages: networkx and OSMnx, igraph, SciPy, GeoPandas, PyTorch Geometric.

The way in ends at an `EdgeTable`, which `Graph.from_networkx` and its kin make a graph of; the way out takes a graph. Directions are
united, parallel edges are one edge, self-loops are dropped. What goes out carries hints as attributes of the graph (`_hints`), so that it comes
back whole: weights are affinities, labels were text or integers or none, places have two or three coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from hushgraph._errors import InputError, InputTypeError
from hushgraph.adjacency import affinities, label_array, one_of
from hushgraph.checks import as_array, checked_number, is_number, shown
from hushgraph.contents import extra
from hushgraph.edge_table import COORDS_HINT, ENDS, LABELS_HINT, WEIGHT_HINT, EdgeTable, is_integer, is_lonlat, label_kind
from hushgraph.labelled import is_labelled

USUAL_AXES = "x", "y"  # node attributes with the coordinates, if not asked for others

# ---- in -------------------------------------------------------------------------------------------------------------


def networkx_edges(G, *, weight, distance, coords, crs) -> EdgeTable:
    """Names of nodes become labels; the graph's own "crs", which OSMnx sets, says whether places are longitude and latitude."""
    if not (hasattr(G, "nodes") and hasattr(G, "adj")):
        msg = f"from_networkx needs a networkx graph; got {type(G).__name__}"
        raise InputTypeError(msg)
    names, hints = list(G.nodes), G.graph
    position, nodes = {name: i for i, name in enumerate(names)}, [G.nodes[name] for name in names]
    pairs = np.array([(position[u], position[v]) for u, v in G.edges()], dtype=np.int64).reshape(-1, 2)
    attribute = _edge_attribute(hints, weight, distance)
    values = (
        None
        if attribute is None
        else _without_text(f"edge attribute {attribute!r}", [value for *_, value in G.edges(data=attribute)])
    )
    axes = _axes(hints, coords)
    named = len(axes) > 0 and len(nodes) > 0 and all(key in node for node in nodes for key in axes)
    places = _places({key: [node[key] for node in nodes] for key in axes}) if named else None
    weights = affinities(values, attribute, pairs, is_distance=distance is not None)
    return EdgeTable(
        pairs, len(names), weights, places, _crs(hints, crs, places), _labels(_names_kept_by_igraph(nodes, hints) or names, hints)
    )


def _names_kept_by_igraph(nodes: list[dict], hints) -> list | None:
    """Names of a graph of ours that igraph made a networkx graph of: it numbers the nodes, and keeps their names as data."""
    kind = hints.get(LABELS_HINT)
    if kind not in ("int", "text") or not all("_igraph_index" in node for node in nodes):
        return None
    every = ([node.get(key) for node in nodes] for key in ("name", "id"))
    fitting = (names for names in every if all(isinstance(name, str) if kind == "text" else _is_whole(name) for name in names))
    return next((names for names in fitting if len(set(names)) == len(nodes)), None)


def _edge_attribute(hints, weight, distance) -> str | None:
    """The edge attribute that was asked for, or that a graph of ours names; weight=False asks for none."""
    asked = one_of(weight=None if weight is False else weight, distance=distance)
    return hints.get(WEIGHT_HINT) if asked is None and weight is not False else asked


def _axes(hints, coords) -> tuple:
    """Names of the node attributes that are coordinates."""
    if coords is None:
        return ()
    return tuple(hints[COORDS_HINT].split()) if coords is USUAL_AXES and COORDS_HINT in hints else tuple(coords)


def _places(columns: dict[str, list]) -> np.ndarray:
    return np.stack([np.array(_without_text(f"node attribute {key!r}", values)) for key, values in columns.items()], axis=1)


def _crs(hints, crs, places) -> str | None:
    """What is asked for, or what the source says of its places."""
    return "lonlat" if crs is None and places is not None and is_lonlat(hints.get("crs")) else crs


def _labels(names: list, hints) -> np.ndarray | None:
    """Names of nodes as labels; those of a graph of ours as they were before a file or a package made text or floats of them."""
    kind = hints.get(LABELS_HINT)
    if kind in ("int", "none") and all(_is_whole(name) for name in names):
        names = [int(name) for name in names]
    numbers = range(len(names))
    unnamed = kind == "none" and names in (list(numbers), [f"n{k}" for k in numbers])  # igraph numbers nodes n0, n1, ... in files
    return None if unnamed else label_array(names)


def _is_whole(name) -> bool:
    return isinstance(name, int) or (isinstance(name, str) and is_integer(name)) or (isinstance(name, float) and name.is_integer())


def _without_text(name: str, values: list) -> list:
    """Numbers that were kept as text, which networkx reads from files of OSMnx, as numbers; all else as it is."""
    try:
        return [float(value) if isinstance(value, str) else value for value in values]
    except ValueError:
        wrong = sum(isinstance(value, str) and not is_number(value) for value in values)
    msg = (
        f"{name} must be numbers; {wrong} of {len(values)} are other text; name another attribute, or turn them into numbers first"
    )
    raise InputError(msg)


def igraph_edges(g, *, weight, distance, coords, crs) -> EdgeTable:
    """Vertex names, if any, become labels; of a graph of ours also what igraph keeps of the nodes of networkx and of our GraphML."""
    if not (hasattr(g, "get_edgelist") and hasattr(g, "vs")):
        msg = f"from_igraph needs an igraph.Graph; got {type(g).__name__}"
        raise InputTypeError(msg)
    pairs, hints = np.array(g.get_edgelist(), dtype=np.int64).reshape(-1, 2), {name: g[name] for name in g.attributes()}
    attribute = _edge_attribute(hints, weight, distance)
    if attribute is not None and attribute not in g.es.attributes():
        msg = f"the edges have no attribute {attribute!r}; they have {g.es.attributes()}"
        raise InputError(msg)
    values = None if attribute is None else _without_text(f"edge attribute {attribute!r}", g.es[attribute])
    known, places = g.vs.attributes(), coords
    if coords is not None and all(isinstance(part, str) for part in coords):
        axes = _axes(hints, coords)
        given = {key: g.vs[key] for key in axes if key in known}
        whole = len(given) == len(axes) and g.vcount() and not any(value is None for values in given.values() for value in values)
        places = _places(given) if whole else None
    own = ("_nx_name", "name", "id") if LABELS_HINT in hints else ("name",)
    name = next((name for name in own if name in known and (name != "_nx_name" or g.vs[name] != list(range(g.vcount())))), None)
    weights = affinities(values, attribute, pairs, is_distance=distance is not None)
    labels = None if name is None else _labels(g.vs[name], hints)
    return EdgeTable(pairs, g.vcount(), weights, places, _crs(hints, crs, places), labels)


def geopandas_edges(edges, *, nodes, weight, distance, tolerance) -> EdgeTable:
    """Nodes are those given, or the ends of the lines, in the order in which they are met."""
    if not (hasattr(edges, "geometry") and hasattr(edges, "crs") and hasattr(edges, "columns")):
        msg = f"from_geopandas needs a GeoDataFrame of lines; got {type(edges).__name__}"
        raise InputTypeError(msg)
    if nodes is not None:
        return _geopandas_tables(nodes, edges, weight, distance)
    shapely = extra("shapely", name="geopandas", purpose="reading lines")
    tolerance = checked_number("tolerance", tolerance, "a distance of at least 0, in the unit of the coordinates", least=0)
    lines = np.asarray(edges.geometry.array)
    wrong = shapely.get_type_id(lines) != 1  # -1: no geometry, 1: LineString
    if (wrong | shapely.is_empty(lines)).any():
        row = int((wrong | shapely.is_empty(lines)).argmax())
        msg = f"row {row} of the lines is no LineString, or an empty one; explode() MultiLineStrings and drop rows without geometry"
        raise InputError(msg)
    ends = np.stack([shapely.get_coordinates(shapely.get_point(lines, end)) for end in (0, -1)], axis=1).reshape(-1, 2)
    number, places = _snapped(ends, tolerance)
    pairs = number.reshape(-1, 2)
    attribute = _edge_attribute(edges.attrs, weight, distance)
    lonlat = is_lonlat(edges.crs)
    values = None if attribute is None else _line_values(edges, shapely, attribute, lonlat)
    weights = affinities(values, attribute, pairs, is_distance=distance is not None)
    return EdgeTable(pairs, len(places), weights, places, "lonlat" if lonlat else None)


def _geopandas_tables(nodes, edges, weight, distance) -> EdgeTable:
    """Points with labels as their index, and edges that name two of them in columns or levels of their index."""
    shapely = extra("shapely", name="geopandas", purpose="reading points")
    if (
        not (hasattr(nodes, "geometry") and hasattr(nodes, "crs"))
        or (shapely.get_type_id(np.asarray(nodes.geometry.array)) != 0).any()
    ):
        msg = "nodes must be a GeoDataFrame of points with the labels of the nodes as its index, as to_geopandas and OSMnx make it"
        raise InputTypeError(msg)
    flat = edges.reset_index()
    ends = next((pair for pair in ENDS if set(pair) <= set(flat.columns)), None)
    if ends is None:
        msg = f"with nodes=, the edges need two columns, or levels of their index, that name nodes: {' or '.join(map(' and '.join, ENDS))}"
        raise InputError(msg)
    names = nodes.index.tolist()
    position = {name: i for i, name in enumerate(names)}
    absent = sum(name not in position for end in ends for name in flat[end].tolist())
    if absent:
        msg = f"{absent} ends of edges are no nodes: each must be in the index of nodes=; drop these edges, or give all nodes"
        raise InputError(msg)
    pairs = np.array([[position[name] for name in flat[end].tolist()] for end in ends], dtype=np.int64).T.reshape(-1, 2)
    attribute, lonlat = _edge_attribute(edges.attrs, weight, distance), is_lonlat(nodes.crs)
    values = None if attribute is None else _line_values(edges, shapely, attribute, lonlat)
    weights = affinities(values, attribute, pairs, is_distance=distance is not None)
    places = shapely.get_coordinates(np.asarray(nodes.geometry.array), include_z=bool(nodes.geometry.has_z.all() and len(nodes)))
    return EdgeTable(pairs, len(names), weights, places, "lonlat" if lonlat else None, _labels(names, edges.attrs))


def _line_values(edges, shapely, attribute, lonlat: bool):
    if attribute == "geometry" and lonlat:
        msg = "lengths in degrees mean nothing; project the lines first (to_crs), or name a column with lengths"
        raise InputError(msg)
    if attribute == "geometry":
        return shapely.length(np.asarray(edges.geometry.array))
    if attribute not in edges.columns:
        msg = f"the lines have no column {attribute!r}; they have {list(edges.columns)}; 'geometry' takes the lengths of the lines"
        raise InputError(msg)
    return edges[attribute].to_numpy()


def _snapped(ends: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """(node of each end, places of the nodes); ends that a chain of steps of at most `tolerance` joins are one node."""
    if not np.isfinite(ends).all():
        msg = f"the ends of the lines must be finite; {int((~np.isfinite(ends)).any(axis=1).sum())} are not"
        raise InputError(msg)
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
        raise InputTypeError(msg)
    index = np.empty((2, 0), dtype=np.int64) if data.edge_index is None else _numpy(data.edge_index)
    if index.ndim != 2 or index.shape[0] != 2 or index.dtype.kind not in "iu":
        msg = f"edge_index must be (2, m) integers; got shape {index.shape} and dtype {index.dtype}"
        raise InputError(msg)
    places = _numpy(data.pos) if getattr(data, "pos", None) is not None else None
    n = getattr(data, "num_nodes", None)
    n = n if n is not None else (len(places) if places is not None else int(index.max(initial=-1)) + 1)
    attribute = _edge_attribute({WEIGHT_HINT: getattr(data, WEIGHT_HINT, None)}, weight, distance)
    values = None if attribute is None else getattr(data, attribute, None)
    if attribute is not None and values is None:
        msg = f"the data has no {attribute!r}; name 'edge_weight', 'edge_attr' or another attribute with one number per edge"
        raise InputError(msg)
    values = None if values is None else _numpy(values)
    if values is not None and values.size != index.shape[1]:
        msg = f"{attribute!r} must hold one number per edge: expected ({index.shape[1]},), got {values.shape}"
        raise InputError(msg)
    pairs = index.T.astype(np.int64)
    weights = affinities(None if values is None else values.ravel(), attribute, pairs, is_distance=distance is not None)
    return EdgeTable(pairs, n, weights, places, _crs({"crs": getattr(data, "crs", None)}, crs, places))


def pyg_signals(data) -> np.ndarray:
    """The node features `x` of a torch_geometric.data.Data as signals, (n, m) in node order."""
    if getattr(data, "x", None) is None:
        msg = "the data has no node features x; signals are its columns"
        raise InputError(msg)
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
        raise InputTypeError(msg)
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
    columns = {
        key: graph.aligned(key, values, missing_ok=True, one=True)
        for key, values in (signals if named else {name: signals}).items()
    }
    for key, values in columns.items():
        if values.ndim != 1:
            msg = f"{key} must be one value per node; got {shown(values)}; pass a dict of name -> (n,) for more"
            raise InputError(msg)
    return columns


def _is_column(values) -> bool:
    return is_labelled(values) or np.ndim(as_array(values)) > 0


def _place_columns(graph) -> dict[str, np.ndarray]:
    return {} if graph.coords is None else dict(zip("xyz", graph.coords.T, strict=False))


def _hints(graph, weight: str = "weight") -> dict[str, str]:
    """What `from_networkx` and its kin need to know to give the same graph back."""
    try:
        hints = {LABELS_HINT: label_kind(graph.labels, "")}
    except ValueError:  # other labels are kept by Python objects, and not by files
        hints = {}
    hints |= {WEIGHT_HINT: weight} if not graph.is_unweighted else {}
    hints |= {"crs": "EPSG:4326"} if graph.crs == "lonlat" else {}
    return hints | ({COORDS_HINT: "x y z"} if graph.coords is not None and graph.coords.shape[1] == 3 else {})


def to_networkx(graph, *, signals=None) -> Any:
    """The graph as a networkx.Graph: labels are the names of nodes, edges have a "weight", places are "x" and "y".

    `Graph.from_networkx` of it is the same graph, weights included: attributes of the networkx graph say what is what.

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
    G, names = networkx.Graph(**_hints(graph)), node_names(graph)
    G.add_nodes_from(names)
    for key, values in (_place_columns(graph) | signal_columns(graph, signals)).items():
        networkx.set_node_attributes(G, dict(zip(names, values.tolist(), strict=True)), key)
    ends = pairs.tolist()
    G.add_weighted_edges_from((names[i], names[j], w) for (i, j), w in zip(ends, weights.tolist(), strict=True))
    return G


def to_igraph(graph, *, signals=None) -> Any:
    """The graph as an igraph.Graph: labels are vertex names, edges have a "weight", places are "x" and "y"; see `to_networkx`.

    `Graph.from_igraph` of it is the same graph.
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


def to_scipy(graph) -> sparse.csr_array:
    """A copy of the adjacency matrix, free to be changed."""
    upper_edges(graph)
    return graph.adjacency.copy()


def to_geopandas(graph, *, signals=None) -> tuple[Any, Any]:
    """(nodes, edges) as GeoDataFrames: points by label with the signals as columns, straight lines with source, target and weight.

    `Graph.from_geopandas(edges, nodes=nodes)` is the same graph. Of the lines alone it has the same edges, but no labels and, in general,
    another order of nodes. That there are weights is said in `edges.attrs`, which parquet keeps and .gpkg does not: say weight="weight" after that.
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


def to_pyg(graph, *, signals=None) -> Any:
    """The graph as a torch_geometric.data.Data: both directions in edge_index, edge_weight, pos, and the signals as columns of x."""
    pairs, weights = upper_edges(graph)
    torch = extra("torch", name="pyg", purpose="PyTorch Geometric data")
    data = extra("torch_geometric.data", name="pyg", purpose="PyTorch Geometric data")
    index = np.concatenate([pairs, pairs[:, ::-1]]).T.copy()
    made = data.Data(edge_index=torch.from_numpy(index), edge_weight=torch.from_numpy(np.tile(weights, 2)), num_nodes=graph.n)
    for name, hint in _hints(graph, weight="edge_weight").items():
        setattr(made, name, hint)
    if graph.coords is not None:
        made.pos = torch.from_numpy(graph.coords.copy())
    columns = signal_columns(graph, signals)
    if columns:
        made.x = torch.from_numpy(np.stack(list(columns.values()), axis=1))
    return made
