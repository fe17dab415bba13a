"""Regions of a graph: sets of nodes by name, from labels, from a column of names, or from polygons on the map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from hushgraph._errors import InputError, InputTypeError
from hushgraph._extras import extra
from hushgraph._validation import LARGEST, shown
from hushgraph.graphs.construction import checked_nodes
from hushgraph.graphs.graph import Graph
from hushgraph.graphs.labels import is_labelled, node_names
from hushgraph.graphs.outlines import Outlines, ZoneFinder

FORMS = "a dict of name to labels, a Series of label to region, or a GeoDataFrame of polygons with a column of names"


class Regions(NamedTuple):
    """Names of regions, and a matrix (regions, n) with a 1 where a node is in a region. Regions may overlap, and be empty."""

    names: tuple[Any, ...]
    members: sparse.csr_array

    @classmethod
    def of(cls, graph: Graph, regions: Any) -> Regions:
        """Return the regions that were given in one of the `FORMS`."""
        if isinstance(regions, Regions):
            if regions.members.shape[1] != graph.n:
                got = f"regions of a graph of {regions.members.shape[1]} nodes"
                raise InputError.about(argument="regions", expected=f"regions of this graph, which has {graph.n} nodes", got=got)
            return regions
        if isinstance(regions, Mapping):
            return cls.of_nodes(graph, {name: region_nodes(graph, nodes) for name, nodes in regions.items()})
        if hasattr(regions, "geometry") and hasattr(regions, "columns"):
            return cls.of_nodes(graph, _nodes_in_frame(graph, regions))
        if hasattr(regions, "index") and hasattr(regions, "to_numpy") and np.ndim(regions) == 1:
            return cls.of_nodes(graph, _nodes_by_name(graph, list(regions.index), regions.to_numpy()))
        raise InputTypeError.about(argument="regions", expected=FORMS, got=shown(regions))

    @classmethod
    def of_nodes(cls, graph: Graph, nodes: dict[Any, np.ndarray]) -> Regions:
        """Return the regions of these node numbers."""
        if not nodes:
            raise InputError.about(argument="regions", verb="hold", expected="at least one region", got="none")
        starts = np.concatenate([[0], np.cumsum([len(part) for part in nodes.values()])])
        inside = np.concatenate([np.sort(part) for part in nodes.values()]).astype(np.int64)
        return cls(tuple(nodes), sparse.csr_array((np.ones(len(inside)), inside, starts), shape=(len(nodes), graph.n)))


def region_nodes(graph: Graph, nodes: Any) -> np.ndarray:
    """Return the numbers of nodes that are given by labels (numbers, if the graph has no labels) or by a mask of booleans.

    A mask with an index, such as a Series, goes by label.
    """
    if is_labelled(nodes) and np.asarray(getattr(nodes, "values", nodes)).dtype == bool:
        return np.flatnonzero(graph.aligned("nodes", nodes.astype(float), one=True))
    mask = np.asarray(nodes) if not isinstance(nodes, str | bytes | set | frozenset) else np.empty(0)
    if graph.labels is None or mask.dtype == bool:
        return checked_nodes(sorted(nodes) if isinstance(nodes, set | frozenset) else nodes, graph.n)
    if isinstance(nodes, str | bytes) or not isinstance(nodes, Iterable):
        raise InputTypeError.about(argument="nodes", expected="a list of labels, or a mask of booleans", got=shown(nodes))
    numbers = _numbers_of(graph, [x.item() if isinstance(x, np.generic) else x for x in nodes])
    return checked_nodes(numbers, graph.n)


def _numbers_of(graph: Graph, labels: list) -> np.ndarray:
    """Return the node numbers of labels."""
    position = graph.cached("positions of labels", lambda: {label: i for i, label in enumerate(node_names(graph))})
    numbers = np.array([position.get(label, -1) for label in labels], dtype=np.int64)
    if (numbers < 0).any():
        count, first = int((numbers < 0).sum()), labels[int(np.argmin(numbers >= 0))]
        got = f"{count} of {len(labels)} that are not (first: {shown(first)})"
        raise InputError.about(argument="regions", verb="hold", expected="labels of nodes of the graph", got=got)
    return numbers


def _nodes_by_name(graph: Graph, labels: list, names: Any) -> dict[Any, np.ndarray]:
    """Return the nodes of each name; nodes whose name is None or NaN are in no region."""
    numbers = _numbers_of(graph, labels)
    checked_nodes(numbers, graph.n)
    found: dict[Any, list[int]] = {}
    for number, name in zip(numbers.tolist(), np.asarray(names, dtype=object).tolist(), strict=True):
        if (
            name is not None
            and not (isinstance(name, float) and np.isnan(name))
            and type(name).__name__ not in ("NAType", "NaTType")
        ):
            found.setdefault(name, []).append(number)
    return {name: np.array(part) for name, part in sorted(found.items(), key=lambda one: str(one[0]))}


# ---- polygons --------------------------------------------------------------------------------------------------------


def _places(graph: Graph) -> np.ndarray:
    """Return the coordinates (n, 2) that polygons are compared with."""
    if graph.coords is None:
        msg = "polygons need places: this graph has no coords; give them when it is made, or name regions by labels"
        raise InputError(msg)
    return np.asarray(graph.coords[:, :2], dtype=np.float64)


def _nodes_in_frame(graph: Graph, frame: Any) -> dict[Any, np.ndarray]:
    """Return the nodes inside each polygon of a GeoDataFrame; polygons of one name are one region."""
    shapely = extra("shapely", name="geopandas", purpose="polygons")
    places = _places(graph)
    if graph.crs == "lonlat":
        if frame.crs is None:
            msg = "the polygons do not say their crs, and the graph is in longitude and latitude; say frame.set_crs(...) first"
            raise InputError(msg)
        frame = frame.to_crs("EPSG:4326")
    names, geometry = _name_column(frame), np.asarray(frame.geometry.array)
    found: dict[Any, list[np.ndarray]] = {}
    for name, shape in zip(names, geometry, strict=True):
        if shape is None or shapely.get_dimensions(shape) != 2:
            raise InputError.about(argument="regions", verb="hold", expected="polygons", got=f"another geometry for {shown(name)}")
        shapely.prepare(shape)
        found.setdefault(name, []).append(np.flatnonzero(shapely.intersects_xy(shape, places[:, 0], places[:, 1])))
    return {name: np.unique(np.concatenate(parts)) for name, parts in found.items()}


def _name_column(frame: Any) -> list:
    """Return the names of polygons: the column "name", or the only one beside the geometry."""
    others = [column for column in frame.columns if column != frame.geometry.name]
    chosen = next((column for column in others if str(column).lower() == "name"), others[0] if len(others) == 1 else None)
    if chosen is None:
        got = f"columns {', '.join(map(str, others))}" if others else "no column"
        raise InputError.about(
            argument="regions", verb="have", expected="a column 'name', or one column beside the geometry", got=got
        )
    return frame[chosen].tolist()


def polygon_regions(graph: Graph, polygons: Iterable[tuple[Any, list[list[np.ndarray]]]]) -> Regions:
    """Return the regions of polygons in the coordinates of the graph, each with a name and its parts; a part is rings, an outer one and holes.

    Polygons of one name are one region.

    Examples
    --------
    >>> import hushgraph as hg
    >>> square = np.array([[-0.5, -1.5], [1.5, -1.5], [1.5, 0.5], [-0.5, 0.5]])
    >>> regions = polygon_regions(hg.datasets.grid(3, 3), [("corner", [[square]])])
    >>> regions.names, regions.members.indices
    (('corner',), array([0, 1, 3, 4]))
    """
    places = _places(graph)
    inside: dict[Any, np.ndarray] = {}
    for name, parts in polygons:
        mask = np.zeros(graph.n, dtype=bool)
        for rings in parts:
            if not all((np.abs(ring) <= LARGEST).all() for ring in rings):
                msg = f"region {shown(name)} has a corner that is no pair of finite numbers up to {LARGEST:g}; mend the polygon"
                raise InputError(msg)
            mask |= in_rings(places, rings)
        inside[name] = inside.get(name, False) | mask
    return Regions.of_nodes(graph, {name: np.flatnonzero(mask) for name, mask in inside.items()})


def in_rings(places: np.ndarray, rings: list[np.ndarray]) -> np.ndarray:
    """Return which places (n, 2) are inside a polygon of rings, an outer one and holes.

    A place on a side belongs to one of two polygons that share the side, never to both and never to neither.
    """
    return ZoneFinder(Outlines.of([[rings]])).find(places) >= 0
