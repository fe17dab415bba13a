"""Import of graphs from other packages: networkx and OSMnx, igraph, PyGSP, GeoPandas, PyTorch Geometric.

Each function returns an `EdgeTable`; `Graph.from_networkx` and the like make a graph of it. Both directions of an edge are one edge,
parallel edges are one edge, self-loops are dropped. A graph that `graph_export` made carries hints as attributes, so that it comes back
unchanged: its weights are affinities, its labels were text or integers or none, its places have two or three coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from hushgraph._errors import InputError, InputTypeError
from hushgraph._extras import extra, optional
from hushgraph._validation import checked_number, choose, columns_in_words, is_number
from hushgraph.graphs.construction import affinities, label_array, one_of
from hushgraph.graphs.curves import Curves
from hushgraph.graphs.edge_table import COORDS_HINT, ENDS, LABELS_HINT, WEIGHT_HINT, EdgeTable, Origin, is_integer, is_lonlat
from hushgraph.graphs.place_names import OSM_ATTRIBUTION, NodeNames, attribution_of
from hushgraph.graphs.projections import lonlat_lines, lonlat_of, stated_crs
from hushgraph.graphs.streets import STREET_ATTRIBUTES, CodedTexts, Streets

USUAL_AXES = "x", "y"  # default names of the node attributes with the coordinates


def networkx_edges(G: Any, *, weight: Any, distance: Any, coords: Any, crs: str | None) -> EdgeTable:
    """Return the edges of a networkx graph; node names become labels, and its attribute "crs", which OSMnx sets, is respected."""
    if not (hasattr(G, "nodes") and hasattr(G, "adj")):
        expected, got = "a networkx graph", type(G).__name__
        raise InputTypeError.about(argument="G", expected=expected, got=got, text=f"from_networkx needs {expected}; got {got}")
    names, hints = list(G.nodes), G.graph
    position, nodes = {name: i for i, name in enumerate(names)}, [G.nodes[name] for name in names]
    pairs = np.array([(position[u], position[v]) for u, v in G.edges()], dtype=np.int64).reshape(-1, 2)
    attribute = _edge_attribute(hints, weight, distance)
    values = None
    if attribute is not None:
        values = _without_text(f"edge attribute {attribute!r}", [value for *_, value in G.edges(data=attribute)])
    axes = _axes(hints, coords)
    projected = _projected_crs(hints.get("crs"), crs) if axes == USUAL_AXES else None
    if projected is not None and _have(nodes, ("lon", "lat")):
        axes = "lon", "lat"  # OSMnx keeps them for each node
    elif optional("pyproj") is None:
        projected = None
    places = _places({key: [node[key] for node in nodes] for key in axes}) if _have(nodes, axes) else None
    if projected is not None and places is not None and axes == USUAL_AXES:
        places = lonlat_of(places, projected, "the graph G")
    weights = affinities(values, attribute, pairs, is_distance=distance is not None)
    labels = _labels(_names_of_igraph(nodes, hints) or names, hints)
    lines = [None if line is None else _points(line) for *_, line in G.edges(data="geometry")]  # LineStrings of OSMnx
    if projected is not None:
        lines = lonlat_lines(lines, projected, "the graph G")
    curves = Curves.of(pairs, lines, places) if places is not None else None
    return EdgeTable(
        pairs,
        len(names),
        weights,
        places,
        "lonlat" if projected is not None and places is not None else _crs(hints, crs, places),
        labels,
        _streets(G),
        curves=curves,
        attribution=attribution_of(hints),
        origin=Origin(crs=projected) if projected is not None and places is not None else None,
    )


def _projected_crs(source_crs: Any, asked_crs: str | None) -> str | None:
    """Return the crs that places are converted from: what the source states, unless it is longitude and latitude or a plane is asked for."""
    if asked_crs == "planar" or source_crs is None or is_lonlat(source_crs):
        return None
    return stated_crs(source_crs.to_string() if hasattr(source_crs, "to_string") else str(source_crs))


def _have(nodes: list[dict], axes: tuple) -> bool:
    """Return whether there are nodes, and all have these coordinates."""
    return len(axes) > 0 and len(nodes) > 0 and all(key in node for node in nodes for key in axes)


def _points(line: Any) -> np.ndarray | None:
    """Return the points of a LineString of shapely; None of another object."""
    return np.asarray(line.coords, dtype=np.float64)[:, :2] if hasattr(line, "coords") else None


def _streets(G: Any) -> Streets | None:
    """Return the attributes that OSMnx gives to streets, in the order of the edges; None if no edge has any of them."""
    edges = [attributes for *_, attributes in G.edges(data=True)]
    present = set().union(*edges)
    columns = {name: CodedTexts.of(attributes.get(name) for attributes in edges) for name in STREET_ATTRIBUTES if name in present}
    return Streets(columns, G.is_directed()) if columns else None


def _names_of_igraph(nodes: list[dict], hints: Mapping) -> list | None:
    """Return the names of a hushgraph graph that igraph turned into a networkx graph: igraph numbers the nodes and stores names as data."""
    kind = hints.get(LABELS_HINT)
    if kind not in ("int", "text") or not all("_igraph_index" in node for node in nodes):
        return None
    every = ([node.get(key) for node in nodes] for key in ("name", "id"))
    fitting = (names for names in every if all(isinstance(name, str) if kind == "text" else _is_whole(name) for name in names))
    return next((names for names in fitting if len(set(names)) == len(nodes)), None)


def _edge_attribute(hints: Mapping, weight: Any, distance: Any) -> Any:
    """Return the edge attribute that the caller names, or that the hints of a hushgraph graph name; None for weight=False."""
    named = one_of(weight=None if weight is False else weight, distance=distance)
    return hints.get(WEIGHT_HINT) if named is None and weight is not False else named


def _axes(hints: Mapping, coords: Any) -> tuple:
    """Return the names of the node attributes that are coordinates."""
    if coords is None:
        return ()
    return tuple(hints[COORDS_HINT].split()) if coords is USUAL_AXES and COORDS_HINT in hints else tuple(coords)


def _places(columns: dict[str, list]) -> np.ndarray:
    return np.stack([np.array(_without_text(f"node attribute {key!r}", values)) for key, values in columns.items()], axis=1)


def _crs(hints: Mapping, crs: str | None, places: Any) -> str | None:
    """Return the crs that the caller names, or that of the source."""
    choose("crs", crs, (None, "lonlat", "planar"))
    if crs == "planar":
        return None
    return "lonlat" if crs is None and places is not None and is_lonlat(hints.get("crs")) else crs


def _labels(names: list, hints: Mapping) -> np.ndarray | None:
    """Return names of nodes as labels; those of a hushgraph graph as they were before a file or a package turned them into text or floats."""
    kind = hints.get(LABELS_HINT)
    if kind in ("int", "none") and all(_is_whole(name) for name in names):
        names = [int(name) for name in names]
    numbers = range(len(names))
    unnamed = kind == "none" and names in (list(numbers), [f"n{k}" for k in numbers])  # igraph numbers nodes n0, n1, ... in files
    return None if unnamed else label_array(names)


def _is_whole(name: object) -> bool:
    """Return whether a name is an integer, as a number or as text."""
    return isinstance(name, int) or (isinstance(name, str) and is_integer(name)) or (isinstance(name, float) and name.is_integer())


def _without_text(name: str, values: list) -> list:
    """Return values with text turned into numbers, which networkx needs for files of OSMnx; other values stay."""
    try:
        return [float(value) if isinstance(value, str) else value for value in values]
    except ValueError:
        wrong = sum(isinstance(value, str) and not is_number(value) for value in values)
    hint = "name another attribute, or turn them into numbers first"
    raise InputError.about(argument=name, expected=f"numbers; {wrong} of {len(values)} are other text", hint=hint)


def igraph_edges(g: Any, *, weight: Any, distance: Any, coords: Any, crs: str | None) -> EdgeTable:
    """Return the edges of an igraph graph; vertex names become labels.

    The names of a hushgraph graph that came through networkx or GraphML are in the attributes "_nx_name" or "id".
    """
    if not (hasattr(g, "get_edgelist") and hasattr(g, "vs")):
        expected, got = "an igraph.Graph", type(g).__name__
        raise InputTypeError.about(argument="g", expected=expected, got=got, text=f"from_igraph needs {expected}; got {got}")
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
    attributes = ("_nx_name", "name", "id") if LABELS_HINT in hints else ("name",)
    name = next(
        (name for name in attributes if name in known and (name != "_nx_name" or g.vs[name] != list(range(g.vcount())))), None
    )
    weights = affinities(values, attribute, pairs, is_distance=distance is not None)
    labels = None if name is None else _labels(g.vs[name], hints)
    return EdgeTable(pairs, g.vcount(), weights, places, _crs(hints, crs, places), labels)


def is_pygsp(graph: Any) -> bool:
    """Return whether an object has what is needed of a PyGSP graph: its weights and its number of nodes."""
    return hasattr(graph, "W") and hasattr(graph, "N")


def pygsp_parts(G: Any) -> tuple[sparse.csr_array, np.ndarray | None]:
    """Return the weights of a PyGSP graph, and its coordinates if there are two or three per node."""
    if not is_pygsp(G):
        expected, got = "a pygsp.graphs.Graph", type(G).__name__
        raise InputTypeError.about(argument="G", expected=expected, got=got, text=f"from_pygsp needs {expected}; got {got}")
    coords = np.asarray(getattr(G, "coords", ()))
    return sparse.csr_array(G.W), coords if coords.shape in ((G.N, 2), (G.N, 3)) else None


def geopandas_edges(edges: Any, *, nodes: Any, weight: Any, distance: Any, tolerance: float, crs: str | None = None) -> EdgeTable:
    """Return the edges of GeoDataFrames; nodes are those given, or the ends of the lines in the order in which they first occur."""
    choose("crs", crs, (None, "lonlat", "planar"))
    if not (hasattr(edges, "geometry") and hasattr(edges, "crs") and hasattr(edges, "columns")):
        expected, got = "a GeoDataFrame of lines", type(edges).__name__
        raise InputTypeError.about(argument="edges", expected=expected, got=got, text=f"from_geopandas needs {expected}; got {got}")
    if nodes is not None:
        return _in_degrees(_geopandas_tables(nodes, edges, weight, distance), edges, nodes.crs, crs)
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
    table = EdgeTable(pairs, len(places), weights, places, "lonlat" if lonlat else None, curves=_curves(pairs, lines, places))
    return _in_degrees(table, edges, edges.crs, crs)


def _in_degrees(table: EdgeTable, edges: Any, source_crs: Any, asked_crs: str | None) -> EdgeTable:
    """Return the table with places and bends in degrees, if it states another crs and no plane is asked for, and with the names of streets.

    Lengths were measured, and ends joined, in the units of the source.
    """
    crs = None if asked_crs == "planar" else asked_crs or table.crs
    projected = _projected_crs(source_crs, asked_crs)
    table = table._replace(crs=crs)
    if projected is not None:
        places = lonlat_of(table.coords, projected, "the table of lines")
        curves = None
        if table.curves is not None:
            curves = table.curves.moved_to(lonlat_of(table.curves.points, projected, "the table of lines"))
        table = table._replace(coords=places, curves=curves, crs="lonlat", origin=Origin(crs=projected))
    names = NodeNames.of_streets(table.pairs, table.n, CodedTexts.of(edges["name"].tolist())) if "name" in edges.columns else None
    return table._replace(names=names, attribution=OSM_ATTRIBUTION if "osmid" in edges.columns else None)


def _curves(pairs: np.ndarray, lines: np.ndarray, places: np.ndarray) -> Curves | None:
    """Return the bends of LineStrings, one for each edge; other geometries are straight."""
    shapely = extra("shapely", name="geopandas", purpose="reading lines")
    lines = lines.copy()
    lines[shapely.get_type_id(lines) != 1] = None
    points, owner = shapely.get_coordinates(lines, return_index=True)
    return Curves.of(pairs, np.split(points, np.searchsorted(owner, np.arange(1, len(lines)))), places) if len(lines) else None


def _geopandas_tables(nodes: Any, edges: Any, weight: Any, distance: Any) -> EdgeTable:
    """Return the edges of points with labels as their index, and edges that name two of them in columns or levels of their index."""
    shapely = extra("shapely", name="geopandas", purpose="reading points")
    if (
        not (hasattr(nodes, "geometry") and hasattr(nodes, "crs"))
        or (shapely.get_type_id(np.asarray(nodes.geometry.array)) != 0).any()
    ):
        expected = "a GeoDataFrame of points with the labels of the nodes as its index, as to_geopandas and OSMnx make it"
        raise InputTypeError.about(argument="nodes", expected=expected)
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
    curves = _curves(pairs, np.asarray(edges.geometry.array), places) if hasattr(edges, "geometry") else None
    return EdgeTable(pairs, len(names), weights, places, "lonlat" if lonlat else None, _labels(names, edges.attrs), curves=curves)


def _line_values(edges: Any, shapely: Any, attribute: Any, lonlat: bool) -> Any:
    """Return the column of that name, or the lengths of the lines."""
    if attribute == "geometry" and lonlat:
        msg = "lengths in degrees mean nothing; project the lines first (to_crs), or name a column with lengths"
        raise InputError(msg)
    if attribute == "geometry":
        return shapely.length(np.asarray(edges.geometry.array))
    if attribute not in edges.columns:
        msg = f"the table of lines has no column {attribute!r}; {columns_in_words(list(edges.columns), attribute)}; 'geometry' takes the lengths of the lines"
        raise InputError(msg)
    return edges[attribute].to_numpy()


def _snapped(ends: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Return (node of each end, places of the nodes); ends that a chain of steps of at most `tolerance` joins are one node."""
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


def pyg_edges(data: Any, *, weight: Any, distance: Any, crs: str | None) -> EdgeTable:
    """Return the edges of PyTorch Geometric data; `pos` becomes the coordinates."""
    if not hasattr(data, "edge_index"):
        expected, got = "a torch_geometric.data.Data", type(data).__name__
        raise InputTypeError.about(argument="data", expected=expected, got=got, text=f"from_pyg needs {expected}; got {got}")
    index = np.empty((2, 0), dtype=np.int64) if data.edge_index is None else _numpy(data.edge_index)
    if index.ndim != 2 or index.shape[0] != 2 or index.dtype.kind not in "iu":
        got = f"shape {index.shape} and dtype {index.dtype}"
        raise InputError.about(argument="edge_index", expected="(2, m) integers", got=got)
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


def pyg_signals(data: Any) -> np.ndarray:
    """Return the node features `x` of PyTorch Geometric data as signals.

    Parameters
    ----------
    data : torch_geometric.data.Data
        Data with node features `x`.

    Returns
    -------
    numpy.ndarray
        Signals in columns, shape (n, m), in node order.
    """
    if getattr(data, "x", None) is None:
        msg = "the data has no node features x; signals are its columns"
        raise InputError(msg)
    values = _numpy(data.x)
    return values.reshape(len(values), -1).astype(np.float64)


def _numpy(tensor: Any) -> np.ndarray:
    """Return a tensor of PyTorch, or an array, as a NumPy array."""
    for step in ("detach", "cpu", "numpy"):
        tensor = getattr(tensor, step)() if hasattr(tensor, step) else tensor
    return np.asarray(tensor)
