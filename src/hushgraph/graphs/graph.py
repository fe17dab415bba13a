"""Graph: an immutable weighted undirected graph with its Laplacians.

L = D - W, L_norm = D^-1/2 L D^-1/2, L_rw = D^-1 L (paper, Sec. II-A and II-C); a node of degree 0 has a zero row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from hushgraph._errors import InputError, InputTypeError, StateError
from hushgraph._validation import as_array, checked_number, checked_real_array, checked_size, choose, is_count, shown
from hushgraph.core import Layout, prepare
from hushgraph.graphs.cache import Cache
from hushgraph.graphs.construction import (
    MAX_NODES,
    Duplicates,
    SymmetricRows,
    checked_adjacency,
    checked_coords,
    checked_covariates,
    checked_nodes,
    checked_pairs,
    checked_weights,
    node_count,
    pairs_of_faces,
    symmetric_rows,
)
from hushgraph.graphs.covariates import plain_covariates
from hushgraph.graphs.curves import Curves, checked_curves
from hushgraph.graphs.edge_table import EdgeTable, Origin, checked_names
from hushgraph.graphs.graph_import import (
    USUAL_AXES,
    geopandas_edges,
    igraph_edges,
    is_pygsp,
    networkx_edges,
    pyg_edges,
    pygsp_parts,
)
from hushgraph.graphs.labels import in_node_order, is_labelled, node_names
from hushgraph.graphs.notebooks import notebook_table
from hushgraph.graphs.outlines import Outlines, checked_outlines
from hushgraph.graphs.place_names import NodeNames, checked_names_of
from hushgraph.graphs.spectrum import Spectrum, laplacian_spectrum, upper_bound
from hushgraph.graphs.streets import street_covariates

LaplacianKind = Literal["combinatorial", "normalized", "random_walk"]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Graph:
    """A frozen, weighted, undirected graph; build it with one of the `from_...` methods.

    Parameters
    ----------
    adjacency : scipy.sparse.csr_array
        Edge weights: symmetric and non-negative. They are stored as float64; the diagonal is dropped.
    coords : numpy.ndarray, optional
        Coordinates, one row of 2 or 3 numbers per node.
    crs : {None, "lonlat"}
        None for planar coordinates, "lonlat" for longitude and latitude in degrees. It is never guessed.
    labels : numpy.ndarray, optional
        One unique name per node; Series and dicts are matched by these names.
    node_covariates : mapping of str to array_like, optional
        Public maps that come with the graph, one value per node in node order, NaN where it is unknown. `covariates` returns them
        together with those that it computes. They are kept by `subgraph` and in .npz files.
    outlines : Outlines, optional
        The polygons of the nodes, if they are zones; `from_polygons` makes them. Maps fill them, and an event with a place belongs to the
        zone that contains it. They are kept by `subgraph`, pickles, .npz and .geojson files, and are no part of `hash`.
    curves : Curves, optional
        Where edges bend, if the file of the streets says so. Maps draw them (web pages up to 200,000 nodes). They are kept by `subgraph`, pickles and .npz files, and are no
        part of `hash`.
    names : NodeNames, optional
        What readers call the nodes: the names of the streets that meet there, or of zones. Maps show them. No part of `hash`.
    attribution : str, optional
        The source of the graph, which maps state: "© OpenStreetMap contributors" for the graphs of OSMnx. No part of `hash`.

    Examples
    --------
    >>> import hushgraph as hg
    >>> graph = hg.Graph.from_edges([(0, 1), (1, 2)], n=4)
    >>> graph
    Graph(n=4, n_edges=2, unweighted)
    >>> graph.degrees
    array([1., 2., 1., 0.])
    """

    adjacency: sparse.csr_array
    coords: np.ndarray | None = None
    crs: Literal["lonlat"] | None = None
    labels: np.ndarray | None = None
    # Not a part of `hash`: a signal belongs to a graph by its nodes and edges. Maps released before the covariates were known, or before
    # they were computed in another way, stay maps on this graph.
    node_covariates: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)
    outlines: Outlines | None = field(default=None, repr=False)  # no part of `hash`, as coordinates are none
    curves: Curves | None = field(default=None, repr=False)
    names: NodeNames | None = field(default=None, repr=False)
    attribution: str | None = field(default=None, repr=False)
    origin: Origin | None = field(init=False, default=None, repr=False)  # of a graph that was just read; files do not keep it
    cache: Cache = field(init=False, default_factory=Cache, repr=False)

    def __post_init__(self) -> None:
        is_checked = isinstance(self.adjacency, SymmetricRows)
        matrix = self.adjacency.matrix if is_checked else checked_adjacency(self.adjacency)
        for part in (matrix.data, matrix.indices, matrix.indptr):
            part.flags.writeable = False
        object.__setattr__(self, "adjacency", matrix)
        object.__setattr__(self, "coords", checked_coords(self.coords, self.crs, self.n))
        object.__setattr__(self, "labels", checked_names(self.labels, self.n))
        object.__setattr__(self, "node_covariates", MappingProxyType(checked_covariates(self.node_covariates, self.n)))
        checked_outlines(self.outlines, self.n)
        checked_curves(self.curves, self.n)
        checked_names_of(self.names, self.n)
        if self.attribution is not None and not isinstance(self.attribution, str):
            raise InputTypeError.about(argument="attribution", expected="text", got=shown(self.attribution))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "node_covariates": dict(self.node_covariates), "cache": Cache()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        covariates = dict(state.get("node_covariates", {}))  # pickles of earlier versions have none
        self.__dict__["node_covariates"] = MappingProxyType(covariates)
        matrix = self.adjacency
        for part in (matrix.data, matrix.indices, matrix.indptr, *self.__dict__.values(), *covariates.values()):
            if isinstance(part, np.ndarray):
                part.flags.writeable = False

    def __deepcopy__(self, memo: dict) -> Graph:
        return self  # frozen: a copy would only lose the cache

    def __repr__(self) -> str:
        extras = ["unweighted" if self.is_unweighted else "weighted"]
        extras += ["coords"] * (self.coords is not None) + ["labels"] * (self.labels is not None)
        extras += ["outlines"] * (self.outlines is not None)
        return f"Graph(n={self.n}, n_edges={self.n_edges}, {', '.join(extras)})"

    def _repr_html_(self) -> str:
        places = "none" if self.coords is None else "longitude and latitude" if self.crs else f"{self.coords.shape[1]} coordinates"
        rows = [
            ("nodes" if self.outlines is None else "zones", f"{self.n:,}"),
            ("edges", f"{self.n_edges:,}, {'unweighted' if self.is_unweighted else 'weighted'}"),
            ("places", places),
            ("labels", "none: nodes are 0, 1, 2, ..." if self.labels is None else "one for each node"),
        ]
        return notebook_table(rows, title="Graph")

    # ---- construction -------------------------------------------------------------------------------------------

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        *,
        n: int | None = None,
        weights: Any = None,
        coords: Any = None,
        crs: Literal["lonlat"] | None = None,
        labels: Any = None,
        duplicates: Duplicates = "error",
        node_covariates: Mapping[str, Any] | None = None,
        outlines: Outlines | None = None,
        curves: Curves | None = None,
        names: NodeNames | None = None,
        attribution: str | None = None,
    ) -> Graph:
        """Return the graph with these edges, given as pairs of node numbers.

        Direction is ignored, self-loops are dropped, an edge given twice is one edge.

        Parameters
        ----------
        edges : array_like of int, shape (m, 2)
            Node numbers, counted from 0.
        n : int, optional
            Number of nodes. Default: the number of labels or coordinates, or else the largest number in `edges` plus one.
        weights : array_like, shape (m,), optional
            Affinities, at least 0: larger means closer, 0 means no edge. Turn lengths d into affinities with mean(d) / d. By default
            every edge weighs 1.
        coords : array_like, shape (n, 2) or (n, 3), optional
            Coordinates of the nodes.
        crs : {None, "lonlat"}
            None for planar coordinates, "lonlat" for longitude and latitude in degrees.
        labels : sequence, optional
            One unique name per node.
        duplicates : {"error", "sum", "max"}
            What to do with an edge that is given twice with unequal weights.
        node_covariates : mapping of str to array_like, optional
            Public maps that come with the graph, shape (n,) each, in node order, NaN where unknown; `covariates` returns them.
        outlines : Outlines, optional
            The polygons of the nodes, if they are zones, as the graphs of `from_polygons` have them.
        curves : Curves, optional
            Where edges bend, as graphs in files of streets have it.
        names : NodeNames, optional
            What readers call the nodes.
        attribution : str, optional
            The source of the graph, which maps state.

        Returns
        -------
        Graph
            The graph.

        Examples
        --------
        >>> import hushgraph as hg
        >>> hg.Graph.from_edges([(0, 1), (1, 2)], weights=[1.0, 0.5], labels=["a", "b", "c"])
        Graph(n=3, n_edges=2, weighted, labels)
        """
        pairs = checked_pairs(edges)
        n = node_count(pairs, n, labels, coords)
        if len(pairs) and pairs.max() >= n:
            got, hint = f"node {pairs.max()}", "raise n or renumber"
            text = f"edges name {got}, but there are only n={n} nodes (numbered from 0); {hint}"
            raise InputError.about(argument="edges", expected=f"pairs of nodes from 0 to {n - 1}", got=got, hint=hint, text=text)
        values = None if weights is None else checked_weights(weights, len(pairs))
        rows = symmetric_rows(pairs, values, n, choose("duplicates", duplicates, get_args(Duplicates)))
        return cls(
            rows, coords=coords, crs=crs, labels=labels, node_covariates=node_covariates or {}, outlines=outlines, curves=curves, names=names,
            attribution=attribution,
        )  # fmt: skip

    @classmethod
    def from_scipy(cls, matrix: Any, *, coords: Any = None, crs: Literal["lonlat"] | None = None, labels: Any = None) -> Graph:
        """Return the graph of a symmetric adjacency matrix; its diagonal is dropped.

        Parameters
        ----------
        matrix : scipy.sparse array or array_like, shape (n, n)
            Edge weights, at least 0. A matrix that is not symmetric is refused.
        coords : array_like, shape (n, 2) or (n, 3), optional
            Coordinates of the nodes.
        crs : {None, "lonlat"}
            None for planar coordinates, "lonlat" for longitude and latitude in degrees.
        labels : sequence, optional
            One unique name per node.

        Returns
        -------
        Graph
            The graph.
        """
        return cls(matrix, coords=coords, crs=crs, labels=labels)

    @classmethod
    def from_networkx(
        cls,
        G: Any,
        *,
        weight: str | Literal[False] | None = None,
        distance: str | None = None,
        duplicates: Duplicates = "error",
        coords: Any = USUAL_AXES,
        crs: Literal["lonlat", "planar"] | None = None,
    ) -> Graph:
        """Return the graph of a networkx graph, OSMnx street networks included; node names become labels.

        Both directions of an edge are one edge, parallel edges are one edge, self-loops are dropped. If edges have attributes that OSMnx
        gives to streets, covariates of the nodes are computed from them (see `covariates`).

        Parameters
        ----------
        G : networkx.Graph
            Any networkx graph, directed or not.
        weight : str or False, optional
            Edge attribute that is an affinity. By default the graph is unweighted, unless `to_networkx` made `G`: then it has the weights
            that it had before, and False leaves them out.
        distance : str, optional
            Edge attribute that is a length d; it becomes the affinity mean(d) / d.
        duplicates : {"error", "sum", "max"}
            What to do with parallel edges of unequal weights.
        coords : sequence of str, optional
            Node attributes that are coordinates; they are used if every node has them.
        crs : {None, "lonlat", "planar"}
            "lonlat" if the coordinates are longitude and latitude. This is also known from the attribute "crs" of `G` (EPSG:4326). If it
            names another crs, places become longitude and latitude: lon and lat of the nodes, which OSMnx keeps, or else x and y as pyproj
            converts them, if it is installed. With "planar" they are taken as they are, in a plane.

        Returns
        -------
        Graph
            The graph.
        """
        table = networkx_edges(G, weight=weight, distance=distance, coords=coords, crs=crs)
        return cls.from_table(table, duplicates=duplicates)

    @classmethod
    def from_igraph(
        cls,
        g: Any,
        *,
        weight: str | Literal[False] | None = None,
        distance: str | None = None,
        duplicates: Duplicates = "error",
        coords: Any = USUAL_AXES,
        crs: Literal["lonlat"] | None = None,
    ) -> Graph:
        """Return the graph of an igraph.Graph; vertex names, if any, become labels.

        Parameters
        ----------
        g : igraph.Graph
            Any igraph graph, directed or not.
        weight : str or False, optional
            Edge attribute that is an affinity, as for `from_networkx`.
        distance : str, optional
            Edge attribute that is a length, as for `from_networkx`.
        duplicates : {"error", "sum", "max"}
            What to do with parallel edges of unequal weights.
        coords : sequence of str, or array_like of shape (n, 2) or (n, 3), optional
            Vertex attributes that are coordinates, used if every vertex has them; or the coordinates themselves.
        crs : {None, "lonlat"}
            "lonlat" if the coordinates are longitude and latitude.

        Returns
        -------
        Graph
            The graph.
        """
        table = igraph_edges(g, weight=weight, distance=distance, coords=coords, crs=crs)
        return cls.from_table(table, duplicates=duplicates)

    @classmethod
    def from_pygsp(cls, G: Any) -> Graph:
        """Return the graph of a PyGSP graph: its weights `W`, and its `coords` where it has two or three per node.

        PyGSP need not be installed.

        Parameters
        ----------
        G : pygsp.graphs.Graph
            An undirected PyGSP graph; self-loops are dropped.

        Returns
        -------
        Graph
            The graph; nodes are in the order of `W`.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> import numpy as np, hushgraph as hg
        >>> G = SimpleNamespace(W=np.array([[0.0, 2.0], [2.0, 0.0]]), N=2, coords=np.zeros((2, 2)))
        >>> hg.Graph.from_pygsp(G)
        Graph(n=2, n_edges=1, weighted, coords)
        """
        matrix, coords = pygsp_parts(G)
        return cls.from_scipy(matrix, coords=coords)

    @classmethod
    def from_geopandas(
        cls,
        edges: Any,
        *,
        nodes: Any = None,
        weight: str | Literal[False] | None = None,
        distance: str | None = None,
        tolerance: float = 0.0,
        duplicates: Duplicates = "error",
        crs: Literal["lonlat", "planar"] | None = None,
    ) -> Graph:
        """Return the graph of a GeoDataFrame of LineStrings.

        The nodes are those of `nodes`, or else the ends of the lines in the order in which they first occur.

        Parameters
        ----------
        edges : geopandas.GeoDataFrame
            Streets. A column "name" has their names, which maps show.
        nodes : geopandas.GeoDataFrame, optional
            Points with labels as their index. The edges name two of them as source and target, or u and v, in columns or in their index,
            as those of `to_geopandas` and of OSMnx do. The ends of the lines are then not used.
        weight : str or False, optional
            Column with affinities, as for `from_networkx`.
        distance : str, optional
            Column with lengths, as for `from_networkx`; "geometry" takes the lengths of the lines.
        tolerance : float
            Ends at most this far apart, in the unit of the coordinates, are one node; 0: only equal ends.
        duplicates : {"error", "sum", "max"}
            What to do with parallel edges of unequal weights.
        crs : {None, "lonlat", "planar"}
            By default tables that state their crs become longitude and latitude; lengths and `tolerance` are in the units of the table. A
            table without crs is in a plane, unless you say "lonlat". With "planar" the coordinates are taken as they are, in a plane.

        Returns
        -------
        Graph
            The graph.
        """
        table = geopandas_edges(edges, nodes=nodes, weight=weight, distance=distance, tolerance=tolerance, crs=crs)
        return cls.from_table(table, duplicates=duplicates)

    @classmethod
    def from_pyg(
        cls,
        data: Any,
        *,
        weight: str | Literal[False] | None = None,
        distance: str | None = None,
        duplicates: Duplicates = "error",
        crs: Literal["lonlat"] | None = None,
    ) -> Graph:
        """Return the graph of a torch_geometric.data.Data; `pyg_signals` returns its signals.

        Parameters
        ----------
        data : torch_geometric.data.Data
            `edge_index` are the edges, `pos` the coordinates.
        weight : str or False, optional
            Attribute with affinities, "edge_weight" for example.
        distance : str, optional
            Attribute with lengths, as for `from_networkx`.
        duplicates : {"error", "sum", "max"}
            What to do with parallel edges of unequal weights.
        crs : {None, "lonlat"}
            "lonlat" if the coordinates are longitude and latitude.

        Returns
        -------
        Graph
            The graph.
        """
        return cls.from_table(pyg_edges(data, weight=weight, distance=distance, crs=crs), duplicates=duplicates)

    @classmethod
    def from_table(cls, table: EdgeTable, *, duplicates: Duplicates = "error") -> Graph:
        """Return the graph of an `EdgeTable`, which readers of files and of other packages' graphs return.

        Parameters
        ----------
        table : EdgeTable
            Edges with weights, coordinates and labels.
        duplicates : {"error", "sum", "max"}
            What to do with edges given twice with unequal weights.

        Returns
        -------
        Graph
            The graph.
        """
        covariates, names = dict(table.covariates or {}), table.names
        pairs = checked_pairs(table.pairs)
        if table.streets is not None and pairs.max(initial=-1) < table.n:
            if names is None and "name" in table.streets.attributes:
                names = NodeNames.of_streets(pairs.astype(np.int64), table.n, table.streets.attributes["name"])
            coords = checked_coords(table.coords, table.crs, table.n)
            covariates |= street_covariates(pairs.astype(np.int64), table.n, table.streets, coords, table.crs)
        graph = cls.from_edges(
            pairs,
            n=table.n,
            weights=table.weights,
            coords=table.coords,
            crs=table.crs,  # type: ignore[arg-type]
            labels=table.labels,
            duplicates=duplicates,
            node_covariates=covariates,
            outlines=table.outlines,
            curves=table.curves,
            names=names,
            attribution=table.attribution,
        )
        object.__setattr__(graph, "origin", table.origin)
        return graph

    @classmethod
    def from_polygons(
        cls,
        zones: Any,
        *,
        label: str | None = None,
        crs: Literal["lonlat", "planar"] | None = None,
        tolerance: float = 1e-3,
    ) -> Graph:
        """Return the graph of zones: every polygon is a node, and zones with a common border are neighbors.

        A common border has a length; zones that only meet in a corner are no neighbors. Zones without neighbors, islands for example, are
        nodes without edges. Several rows of one label are one zone, and so is a MultiPolygon. A zone is what lies inside its outer rings
        and outside its holes; a ring that crosses itself encloses what a ray crosses an odd number of times.

        Parameters
        ----------
        zones : geopandas.GeoDataFrame, str, Path or dict
            Polygons and MultiPolygons, one row per zone; or the path of a .geojson file (also .gz), for which no extra package is needed,
            or of a .gpkg or .shp file, which geopandas reads; or the content of a GeoJSON file.
        label : str, optional
            Column with the labels of the zones, "LocationID" for example. By default the index of a GeoDataFrame, or the ids of the
            features of GeoJSON. If these may only number the rows (an index of integers without a name, ids from 0 or 1 on), the labels
            are the column LocationID, location_id, zone_id or id, in capitals or not, if there is exactly one in which nearly all values
            differ. Zones without any ids have no labels, and `privacy.count_events` counts places in them, no ids. Labels that are whole
            numbers are integers, also if the file has them as text or floats.
        crs : {None, "lonlat", "planar"}
            What the coordinates are. By default zones that say their crs are converted to longitude and latitude; GeoJSON is in longitude
            and latitude by its standard; a GeoDataFrame without crs is in a plane, even if its numbers look like degrees: say "lonlat" if
            they are. With "planar" the coordinates are taken as they are, in a plane.
        tolerance : float
            Largest gap or overlap between neighbors, as a share of the size (the square root of the area) of the smaller zone. A common
            border is longer than three times that.

        Returns
        -------
        Graph
            Unweighted, with a place inside each zone as coordinates (the center, if it is inside), labels and `outlines`.

        Raises
        ------
        InputError
            If a zone has no polygon, or a ring without area; if zones overlap by more than the tolerance; if there is no such column.

        Examples
        --------
        >>> import hushgraph as hg
        >>> square = [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]
        >>> beside = [[[1, 0], [2, 0], [2, 1], [1, 1], [1, 0]]]
        >>> polygons = [{"type": "Polygon", "coordinates": rings} for rings in (square, beside)]
        >>> features = [{"type": "Feature", "id": k, "geometry": shape} for k, shape in zip("ab", polygons)]
        >>> graph = hg.Graph.from_polygons({"type": "FeatureCollection", "features": features}, crs="planar")
        >>> graph, graph.coords.tolist()
        (Graph(n=2, n_edges=1, unweighted, coords, labels, outlines), [[0.5, 0.5], [1.5, 0.5]])
        """
        from hushgraph.graphs.zones import zones_table  # only zones need it

        return cls.from_table(zones_table(zones, label=label, crs=crs, tolerance=tolerance))

    @classmethod
    def from_image(cls, shape: tuple[int, int], *, neighbours: int = 8, diagonal_weight: float = 0.25) -> Graph:
        """Return the graph of the pixels of an image, in row-major order, each joined to its 4 or 8 neighbours.

        On photographs 4 neighbours are better than 8, and faster. Of 8 neighbours, light diagonals are better than heavy ones.

        Parameters
        ----------
        shape : (int, int)
            Number of rows and of columns.
        neighbours : {4, 8}
            With 8, pixels are also joined along the diagonals.
        diagonal_weight : float
            Weight of the edges along the diagonals, above 0; the others have weight 1. It has no effect with 4 neighbours.

        Returns
        -------
        Graph
            The graph, with (column, -row) as coordinates.

        Examples
        --------
        >>> import hushgraph as hg
        >>> hg.Graph.from_image((3, 4), neighbours=4)
        Graph(n=12, n_edges=17, unweighted, coords)
        """
        sides = tuple(shape) if np.ndim(as_array(shape)) == 1 else ()
        if len(sides) != 2 or not all(is_count(side, 1) for side in sides) or int(sides[0]) * int(sides[1]) > MAX_NODES:
            got = str(shape) if isinstance(shape, tuple) and len(shape) <= 3 else shown(shape)
            raise InputError.about(argument="shape", expected="(rows, columns), both at least 1", got=got[:80])
        steps = {4: [(0, 1), (1, 0)], 8: [(0, 1), (1, 0), (1, 1), (1, -1)]}[choose("neighbours", neighbours, (4, 8))]
        rows, columns = map(int, sides)
        number = np.arange(rows * columns).reshape(rows, columns)
        weight = checked_number("diagonal_weight", diagonal_weight, "positive", above=0)
        pairs, weights = [np.empty((0, 2), dtype=np.int64)], [np.empty(0)]
        for down, right in steps:
            first = number[: rows - down, max(0, -right) : columns - max(0, right)]
            second = number[down:, max(0, right) : columns + min(0, right)]
            pairs.append(np.stack([first.ravel(), second.ravel()], axis=1))
            weights.append(np.full(first.size, weight if down and right else 1.0))
        y, x = np.divmod(number.ravel(), columns)
        return cls.from_edges(
            np.concatenate(pairs), n=rows * columns, weights=np.concatenate(weights), coords=np.stack([x, -y], axis=1)
        )

    @classmethod
    def from_mesh(cls, vertices: Any, faces: Any) -> Graph:
        """Return the graph of the edges of a polygon mesh.

        Parameters
        ----------
        vertices : array_like, shape (n, 2) or (n, 3)
            Coordinates of the vertices, which are the nodes.
        faces : array_like of int, shape (n_faces, k)
            Vertex numbers of each face in order, k at least 3.

        Returns
        -------
        Graph
            The graph.
        """
        vertices = checked_real_array("vertices", vertices)
        if vertices.ndim != 2:
            raise InputError.about(argument="vertices", expected="(n, 2) or (n, 3) numbers", got=vertices.shape)
        vertices = checked_coords(vertices, None, len(vertices), name="vertices")
        return cls.from_edges(pairs_of_faces(faces, len(vertices)), n=len(vertices), coords=vertices)

    def subgraph(self, nodes: Any) -> Graph:
        """Return the graph induced by some of the nodes.

        Parameters
        ----------
        nodes : array_like of int or bool
            Node numbers, whose order the new graph takes over; or a mask, one boolean per node.

        Returns
        -------
        Graph
            These nodes with the edges between them, their coordinates, labels, `node_covariates`, `outlines`, `curves` and `names`.
        """
        numbers = checked_nodes(nodes, self.n)
        coords, labels = (None if part is None else part[numbers] for part in (self.coords, self.labels))
        covariates = {name: values[numbers] for name, values in self.node_covariates.items()}
        adjacency = self.adjacency[numbers][:, numbers]
        outlines = None if self.outlines is None else self.outlines.of_nodes(numbers)
        curves = None if self.curves is None else self.curves.of_nodes(numbers)
        names = None if self.names is None else self.names.of_nodes(numbers)
        return Graph(
            adjacency, coords=coords, crs=self.crs, labels=labels, node_covariates=covariates, outlines=outlines, curves=curves, names=names,
            attribution=self.attribution,
        )  # fmt: skip

    def product(self, other: Graph) -> Graph:
        """Return the Cartesian product: nodes are pairs (i, k), numbered i * other.n + k, so (n, other.n) values ravel onto it.

        (i, k) is joined to (j, k) as i to j in this graph, and to (i, l) as k to l in `other`. With a path as `other`, streets become
        streets over time. The product has neither labels nor coordinates.

        Parameters
        ----------
        other : Graph
            The second factor.

        Returns
        -------
        Graph
            The product, with n * other.n nodes.

        Examples
        --------
        >>> import hushgraph as hg
        >>> hg.datasets.grid(3, 4).product(hg.datasets.path(24))
        Graph(n=288, n_edges=684, unweighted)
        """
        as_graph(other)
        if self.n * other.n > MAX_NODES:
            msg = f"the product would have {self.n} x {other.n} nodes, more than {MAX_NODES}; use fewer windows or a part of the graph"
            raise InputError(msg)
        first, second = sparse.eye_array(self.n, format="csr"), sparse.eye_array(other.n, format="csr")
        matrix = sparse.kron(self.adjacency, second, format="csr") + sparse.kron(first, other.adjacency, format="csr")
        return Graph(sparse.csr_array(matrix))

    # ---- properties ---------------------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of nodes."""
        return self.adjacency.shape[0]

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return self.adjacency.nnz // 2

    @cached_property
    def degrees(self) -> np.ndarray:
        """Weighted degrees, the diagonal of D."""
        return _frozen(np.asarray(self.adjacency.sum(axis=1)).ravel())

    @cached_property
    def root_degrees(self) -> np.ndarray:
        """Square roots of the degrees, 1 for isolated nodes (D^{+-1/2} = 1 there)."""
        return _frozen(np.sqrt(np.where(self.degrees > 0, self.degrees, 1.0)))

    @cached_property
    def is_unweighted(self) -> bool:
        """True when every edge weighs exactly 1."""
        return bool(np.all(self.adjacency.data == 1.0))

    @cached_property
    def hash(self) -> str:
        """SHA-256 of nodes, edges, weights and labels: which graph a signal belongs to."""
        digest = hashlib.sha256(np.int64(self.n).tobytes())
        for part in (self.adjacency.indptr.astype(np.int64), self.adjacency.indices.astype(np.int64), self.adjacency.data):
            digest.update(part.tobytes())
        if self.labels is not None and not self._are_numbered_zones:
            digest.update("\x1f".join(map(repr, self.labels.tolist())).encode())
        return digest.hexdigest()

    @cached_property
    def places_hash(self) -> str | None:
        """SHA-256 of the outlines of zones, or of the coordinates of other nodes, which `hash` does not cover; None without them.

        It does not depend on the corner at which a ring begins.
        """
        if self.coords is None:
            return None
        parts = [self.coords]
        if self.outlines is not None:
            rings = [ring for _, ring in self.outlines.rings()]
            parts = [np.roll(ring, -np.lexsort(ring.T)[0], axis=0) for ring in rings] + [self.outlines.starts, self.outlines.nodes]
        digest = hashlib.sha256(str(self.crs).encode())
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    @property
    def _are_numbered_zones(self) -> bool:
        """Whether the ids of zones are 0 to n - 1 in this order: earlier versions kept no labels of them, and `hash` stays as it was."""
        return self.outlines is not None and self.labels is not None and self.labels.tolist() == list(range(self.n))

    @cached_property
    def components(self) -> np.ndarray:
        """Number of the connected component of each node."""
        return _frozen(csgraph.connected_components(self.adjacency, directed=False)[1])

    @property
    def lambda_max(self) -> float:
        """Largest eigenvalue of the combinatorial Laplacian, to 1e-3; `spectrum` says how it was computed."""
        return self.spectrum().lambda_max

    @property
    def lambda_upper(self) -> float:
        """Proven upper bound on the eigenvalues of the combinatorial Laplacian."""
        return self._upper_bound("combinatorial")[0]

    # ---- Laplacians ---------------------------------------------------------------------------------------------

    def laplacian(self, kind: LaplacianKind = "combinatorial") -> sparse.csr_array:
        """Return a Laplacian of the graph.

        Parameters
        ----------
        kind : {"combinatorial", "normalized", "random_walk"}
            D - W, D^-1/2 (D - W) D^-1/2 or D^-1 (D - W).

        Returns
        -------
        scipy.sparse.csr_array
            The matrix, (n, n); nodes without edges have a zero row.
        """
        matrix, diagonal = self.symmetric_parts(kind)
        laplacian = (sparse.diags_array(diagonal) - matrix).tocsr()
        if kind == "random_walk":
            laplacian = (sparse.diags_array(1 / self.root_degrees) @ laplacian @ sparse.diags_array(self.root_degrees)).tocsr()
        return laplacian

    def spectrum(self, kind: LaplacianKind = "combinatorial", *, tolerance: float = 1e-3, exact: bool = False) -> Spectrum:
        """Return the largest eigenvalue of a Laplacian and a proven upper bound on it; cached.

        Parameters
        ----------
        kind : {"combinatorial", "normalized", "random_walk"}
            Which Laplacian.
        tolerance : float
            Relative error of the eigenvalue, between 0 and 1.
        exact : bool
            Compute the eigenvalue to machine precision.

        Returns
        -------
        Spectrum
            `lambda_max`, `lambda_upper`, and how each was computed.
        """
        symmetric = _symmetric_kind(choose("laplacian", kind, get_args(LaplacianKind)))
        tolerance = checked_number("tolerance", tolerance, "a relative error between 0 and 1", above=0, below=1)

        def compute() -> Spectrum:
            parts = *self.symmetric_parts(symmetric), self.layout(symmetric)
            return laplacian_spectrum(*parts, self._upper_bound(symmetric), tolerance=tolerance, exact=exact)

        return self.cached(_spectrum_key(symmetric, tolerance, exact), compute)

    def spectrum_for_scales(self, kind: LaplacianKind, enough_below: Callable[[float], float]) -> Spectrum:
        """Return a spectrum that is accurate enough to decide the number of scales; cached.

        Parameters
        ----------
        kind : {"combinatorial", "normalized", "random_walk"}
            Which Laplacian.
        enough_below : callable
            Function of `lambda_upper`. Above its value a lower bound on the eigenvalue is accurate enough as `lambda_max`.

        Returns
        -------
        Spectrum
            As `spectrum` returns it, but `lambda_max` may be a lower bound.
        """
        symmetric = _symmetric_kind(kind)
        complete: Spectrum | None = self.cache.get(_spectrum_key(symmetric))
        if complete is not None:
            return complete
        bound, rough_key = self._upper_bound(symmetric), ("rough spectrum", symmetric)
        rough: Spectrum | None = self.cache.get(rough_key)
        enough = enough_below(bound[0])
        if rough is None or rough.lambda_max <= enough:
            parts = *self.symmetric_parts(symmetric), self.layout(symmetric)
            rough = laplacian_spectrum(*parts, bound, enough=enough)
            self.cache.put(rough_key if rough.lambda_max > enough else _spectrum_key(symmetric), rough)
        return rough

    def _upper_bound(self, symmetric: LaplacianKind) -> tuple[float, str]:
        """Return a proven bound on the eigenvalues and how it was computed; cached."""
        if symmetric == "normalized":
            return 2.0, "theorem: spectrum in [0, 2] (proven)"
        return self.cached("upper bound", lambda: upper_bound(*self.symmetric_parts(symmetric), self.layout(symmetric)))

    def symmetric_parts(self, kind: LaplacianKind) -> tuple[sparse.csr_array, np.ndarray]:
        """Return (A, d) with diag(d) - A the symmetric Laplacian behind `kind`; random walk is similar to normalized.

        Parameters
        ----------
        kind : {"combinatorial", "normalized", "random_walk"}
            Which Laplacian.

        Returns
        -------
        A : scipy.sparse.csr_array
            The off-diagonal part with the opposite sign.
        d : numpy.ndarray
            The diagonal.
        """
        if choose("laplacian", kind, get_args(LaplacianKind)) == "combinatorial":
            return self.adjacency, self.degrees

        def normalized() -> tuple[sparse.csr_array, np.ndarray]:
            half = 1 / self.root_degrees
            matrix = self.adjacency.copy()
            matrix.data = matrix.data * np.repeat(half, np.diff(matrix.indptr)) * half[matrix.indices]
            return matrix, (self.degrees > 0).astype(float)

        return self.cached("normalized", normalized)

    def layout(self, kind: LaplacianKind) -> Layout:
        """Return the same matrix in the row order of the compiled loops; cached.

        Parameters
        ----------
        kind : {"combinatorial", "normalized", "random_walk"}
            Which Laplacian.

        Returns
        -------
        Layout
            What the functions of `core.cpu` take.
        """
        return self.cached(("layout", _symmetric_kind(kind)), lambda: prepare(*self.symmetric_parts(kind)))

    def device_layout(self, kind: LaplacianKind) -> Any:
        """Return the same matrix on the GPU that CuPy uses; cached.

        Parameters
        ----------
        kind : {"combinatorial", "normalized", "random_walk"}
            Which Laplacian.

        Returns
        -------
        DeviceLayout
            What the functions of `core.gpu` take.
        """
        from hushgraph.core import gpu

        self.check_device()
        return self.cached(("device layout", _symmetric_kind(kind)), lambda: gpu.prepare(*self.symmetric_parts(kind)))

    def check_device(self) -> None:
        """Check that the arrays of this graph on a GPU, if any, are on the one that CuPy uses.

        Raises
        ------
        StateError
            If they are on another GPU.
        """
        from hushgraph.core import gpu

        current = gpu.current_device()
        device = self.cached("device", lambda: current)
        if device != current:
            msg = f"this graph is on GPU {device}, and CuPy now uses GPU {current}; call graph.free_device() first, or take a copy of the graph for each GPU (copy.copy)"
            raise StateError(msg)

    # ---- cached values ------------------------------------------------------------------------------------------

    def cached(self, key: Hashable, make: Callable[[], T], *, version: Hashable = None) -> T:
        """Return the cached value for `key`, computing it with `make` on a miss.

        Parameters
        ----------
        key : hashable
            Name of the value. Names of values on a GPU contain "device".
        make : callable
            Function without arguments that computes the value.
        version : hashable
            What the value depends on besides the graph. Only the latest version of a value is kept.

        Returns
        -------
        object
            The value.
        """
        return self.cache.value(key, make, version=version)

    def free_device(self) -> None:
        """Free the GPU memory of this graph and of the products and subgraphs cached with it.

        The next call that needs the graph on the GPU uploads it again.
        """
        for value in self.cache.drop_device_values():
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Graph):
                    part.free_device()

    def forget(self) -> None:
        """Free the memory of everything that was computed from this graph, on the processor and on a GPU.

        That is degrees, row orders, spectra, eigenvectors, filters, surroundings, products with paths and subgraphs without missing
        values. The graph itself stays; values that are needed again are computed again, with the same bits.

        Examples
        --------
        >>> import hushgraph as hg
        >>> graph = hg.datasets.grid(20, 20)
        >>> bound = graph.lambda_upper
        >>> graph.forget()
        >>> graph.lambda_upper == bound
        True
        """
        self.cache.clear()
        for name in self.__dict__.keys() - {attribute.name for attribute in fields(self)}:
            del self.__dict__[name]  # cached properties

    # ---- signals ------------------------------------------------------------------------------------------------

    def covariates(self) -> dict[str, np.ndarray]:
        """Return public maps that come with the graph, as guides for `denoise`; they depend on no signal.

        Every graph has these, as far as it has what they need:

        - "degree": number of neighbors;
        - "distance_to_middle": distance to the mean of all places, in metres for longitude and latitude, else in the unit of the coordinates;
        - "street_length": half the length of the edges at the node: between the coordinates, or 1 / weight without coordinates;
        - "closeness": inverse of the mean distance to other nodes along the edges; "betweenness": share of shortest paths that lead
          through the node. Both are exact in graphs of at most 256 nodes, and estimated from at most 256 starting nodes, always the
          same, in larger ones; small parts that are not connected to the rest then have NaN. Graphs of more than 500,000 nodes do
          not have them.

        A street network of OSMnx has these, too, as far as its edges have the attributes in brackets (`from_networkx`, or `read_graph` of
        GraphML with covariates=True):

        - "street_length" (length): half the length of the streets at the node, in metres, instead of the length of the edges;
        - "street_class" (highway): the largest class, from 0 (paths), 1 (service, living street), 2 (residential, unclassified) and
          3 (tertiary) to 4 (secondary), 5 (primary), 6 (trunk) and 7 (motorway);
        - "major_length", "major_share" (highway): half the length of the streets of class 4 or more, and their share of the length;
        - "nameless_length" (name): half the length of the streets without a name;
        - "oneway_share" (oneway): share of the length of one-way streets;
        - "lanes_mean", "lanes_max" (lanes), "speed_mean", "speed_max" (maxspeed, in km/h): means are weighted by length.

        Then come the `node_covariates` that were given with the graph.

        Returns
        -------
        dict of str to numpy.ndarray
            Values of shape (n,) in node order, float64, read-only. NaN: unknown at this node. A map that would be NaN everywhere is
            not there.

        Notes
        -----
        Attributes that are absent or that cannot be parsed are unknown and are left out of means, shares and maxima; a street whose
        length is unknown makes the lengths at its ends NaN, and a street of unknown class adds nothing to "major_length". Several values of one street, as in "['2', '3']", "2;3" and "2|3", count
        by their mean in means and by the largest in maxima. Both directions of a two-way street are one street, parallel streets are
        several, and self-loops are none. A subgraph keeps what is known about the streets of the whole network.

        Examples
        --------
        >>> import hushgraph as hg
        >>> graph = hg.Graph.from_edges([(0, 1), (1, 2)], coords=[(0, 0), (4, 0), (8, 0)])
        >>> {name: values.tolist() for name, values in graph.covariates().items() if name != "closeness"}
        {'degree': [1.0, 2.0, 1.0], 'distance_to_middle': [4.0, 0.0, 4.0], 'street_length': [2.0, 4.0, 2.0], 'betweenness': [0.0, 1.0, 0.0]}
        """
        computed = self.cached("covariates", lambda: {name: _frozen(x) for name, x in plain_covariates(self).items()})
        return {**computed, **self.node_covariates}

    def align(self, signal: Any, *, missing_ok: bool = False) -> np.ndarray:
        """Return values in node order.

        Plain arrays go by position. These are matched by label, to `labels` or to 0..n-1 without labels:

        - mappings, by their keys;
        - pandas Series and DataFrames, by their index;
        - xarray DataArrays, by the index of the dimension "node", by a coordinate "node", or else by the index of the first dimension;
        - polars and pyarrow tables, by their column "node", "id", "label" or "__index_level_0__".

        Parameters
        ----------
        signal : array_like, mapping or table
            One value per node, or one row of m values.
        missing_ok : bool
            Accept NaN as a missing value.

        Returns
        -------
        numpy.ndarray
            Values of shape (n,) or (n, m), float32 or float64.

        Raises
        ------
        InputError
            If a label is missing or unknown, or a value is NaN or infinite.

        Examples
        --------
        >>> import hushgraph as hg
        >>> hg.Graph.from_edges([(0, 1)], labels=["a", "b"]).align({"b": 2.0, "a": 1.0})
        array([1., 2.])
        """
        return self.aligned("signal", signal, missing_ok=missing_ok)

    def aligned(
        self, name: str, signal: Any, *, missing_ok: bool = False, one: bool = False, hint: str = "clean them"
    ) -> np.ndarray:
        """Return `align(signal)`; errors call the signal by that name.

        Parameters
        ----------
        name : str
            Name of the argument in errors.
        signal : array_like, mapping or table
            One value per node, or one row of m values.
        missing_ok : bool
            Accept NaN as a missing value.
        one : bool
            Take a table with one column of values as one signal.
        hint : str
            What to do about values that are not finite, for the error.

        Returns
        -------
        numpy.ndarray
            Values of shape (n,) or (n, m), float32 or float64.
        """
        values = checked_real_array(name, in_node_order(name, signal, node_names(self), one=one) if is_labelled(signal) else signal)
        if values.ndim not in (1, 2) or values.shape[0] != self.n:
            turn = "pass Y.T if signals are rows" if values.ndim == 2 and values.shape[1] == self.n else ""
            expected = f"({self.n},) or ({self.n}, m)"
            text = f"{name} needs one row per node: expected {expected}, got {values.shape}{turn and '; '}{turn}"
            raise InputError.about(argument=name, expected=expected, got=values.shape, hint=turn, text=text)
        if values.ndim == 2 and values.shape[1] == 0:
            text = f"{name} has no columns: got {values.shape}, where at least one signal is expected"
            raise InputError.about(argument=name, verb="have", expected="at least one column", got=values.shape, text=text)
        return checked_size(name, values, missing_ok=missing_ok, hint=hint, rows=lambda: node_names(self))


def _symmetric_kind(kind: LaplacianKind) -> LaplacianKind:
    """Return the symmetric Laplacian that has the eigenvalues of `kind`."""
    return "combinatorial" if kind == "combinatorial" else "normalized"


def _spectrum_key(symmetric: LaplacianKind, tolerance: float = 1e-3, exact: bool = False) -> Hashable:
    return "spectrum", symmetric, tolerance, bool(exact)


def as_graph(graph: Any) -> Graph:
    """Return `graph`, or the Graph of a graph of another package; what every function that takes a graph accepts.

    These are recognized, and read with the defaults of the method in brackets: SciPy sparse matrices (`from_scipy`), networkx
    graphs (`from_networkx`: unweighted), igraph graphs (`from_igraph`: unweighted), PyGSP graphs (`from_pygsp`), GeoDataFrames of polygons
    (`from_polygons`) or lines (`from_geopandas`). Nodes are in the order of the matrix, the table, or `list(G.nodes)`; names of
    networkx nodes become labels, so that Series and dicts are matched by name, and arrays go by that order.
    """
    if isinstance(graph, Graph):
        return graph
    if sparse.issparse(graph):
        return Graph.from_scipy(graph)
    if is_pygsp(graph):
        return Graph.from_pygsp(graph)
    if hasattr(graph, "nodes") and hasattr(graph, "adj"):
        return Graph.from_networkx(graph)
    if hasattr(graph, "get_edgelist") and hasattr(graph, "vs"):
        return Graph.from_igraph(graph)
    if hasattr(graph, "geometry") and hasattr(graph, "crs"):
        is_zones = graph.geometry.geom_type.isin(["Polygon", "MultiPolygon"]).all()
        return Graph.from_polygons(graph) if is_zones else Graph.from_geopandas(graph)
    hint = "build one with Graph.from_edges, or pass a graph of networkx, igraph or PyGSP, a SciPy sparse matrix or a GeoDataFrame"
    raise InputTypeError.about(argument="graph", expected="a hushgraph.Graph", got=type(graph).__name__, hint=hint)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
