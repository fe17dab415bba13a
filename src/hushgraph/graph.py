"""Graph: an immutable weighted undirected graph with its Laplacians.

L = D - W, L_norm = D^-1/2 L D^-1/2, L_rw = D^-1 L (paper, Sec. II-A and II-C); a node of degree 0 has a zero row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from hushgraph._errors import InputError, InputTypeError, Sentence, StateError
from hushgraph.adjacency import (
    MAX_NODES,
    Duplicates,
    checked_adjacency,
    checked_coords,
    checked_nodes,
    checked_pairs,
    checked_weights,
    node_count,
)
from hushgraph.checks import as_array, checked_number, checked_real_array, checked_size, choose, is_count
from hushgraph.edge_table import EdgeTable, checked_names
from hushgraph.interop import USUAL_AXES, geopandas_edges, igraph_edges, networkx_edges, node_names, pyg_edges
from hushgraph.kernels.layout import Layout, prepare
from hushgraph.labelled import in_node_order, is_labelled
from hushgraph.spectrum import Spectrum, laplacian_spectrum, upper_bound
from hushgraph.symmetric import SymmetricRows, symmetric_rows

LaplacianKind = Literal["combinatorial", "normalized", "random_walk"]


@dataclass(frozen=True, eq=False)
class Graph:
    """A frozen, weighted, undirected graph; build it with one of the `from_...` methods.

    Attributes
    ----------
    adjacency : scipy.sparse.csr_array
        Symmetric, non-negative, zero diagonal, float64.
    coords : ndarray or None
        One row per node.
    crs : {None, "lonlat"}
        Planar coordinates, or longitude and latitude in degrees. Never guessed.
    labels : ndarray or None
        One unique name per node; Series and dicts are matched by them.

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
    memo: dict = field(init=False, default_factory=dict, repr=False)  # derived things worth keeping: spectra, kernel layouts

    def __post_init__(self):
        known = isinstance(self.adjacency, SymmetricRows)  # made by us, so nothing is left to check
        matrix = self.adjacency.matrix if known else checked_adjacency(self.adjacency)
        for part in (matrix.data, matrix.indices, matrix.indptr):
            part.flags.writeable = False
        object.__setattr__(self, "adjacency", matrix)
        object.__setattr__(self, "coords", checked_coords(self.coords, self.crs, self.n))
        object.__setattr__(self, "labels", checked_names(self.labels, self.n))

    def __getstate__(self):
        return {**self.__dict__, "memo": {}}

    def __setstate__(self, state):
        self.__dict__.update(state)
        for part in (self.adjacency.data, self.adjacency.indices, self.adjacency.indptr, *self.__dict__.values()):
            if isinstance(part, np.ndarray):
                part.flags.writeable = False

    def __deepcopy__(self, memo):
        return self  # frozen: a copy would only lose what was worked out

    def __repr__(self):
        extras = ["unweighted" if self.is_unweighted else "weighted"]
        extras += ["coords"] * (self.coords is not None) + ["labels"] * (self.labels is not None)
        return f"Graph(n={self.n}, n_edges={self.n_edges}, {', '.join(extras)})"

    # ---- construction -------------------------------------------------------------------------------------------

    @classmethod
    def from_edges(
        cls, edges, *, n: int | None = None, weights=None, coords=None, crs=None, labels=None, duplicates: Duplicates = "error"
    ) -> Graph:
        """Graph from pairs of node numbers.

        Direction is ignored, self-loops are dropped, an edge given twice is one edge. Without `weights` every edge
        weighs 1. With them, an edge given twice with unequal weights is an error unless `duplicates` says how to
        merge; weight 0 means no edge.

        Parameters
        ----------
        edges : (m, 2) integers
        n : int, optional
            Number of nodes; the largest number in `edges` plus one if not given.
        weights : (m,) non-negative numbers, optional
            Affinities: larger means closer. Turn lengths d into affinities with mean(d) / d.
        """
        pairs = checked_pairs(edges)
        n = node_count(pairs, n, labels, coords)
        if len(pairs) and pairs.max() >= n:
            msg = f"edges name node {pairs.max()}, but there are only n={n} nodes (numbered from 0); raise n or renumber"
            raise InputError(msg)
        values = None if weights is None else checked_weights(weights, len(pairs))
        rows = symmetric_rows(pairs, values, n, choose("duplicates", duplicates, get_args(Duplicates)))
        return cls(rows, coords=coords, crs=crs, labels=labels)

    @classmethod
    def from_scipy(cls, matrix, *, coords=None, crs=None, labels=None) -> Graph:
        """Graph from a symmetric sparse (or dense) adjacency matrix; the diagonal is dropped."""
        return cls(matrix, coords=coords, crs=crs, labels=labels)

    @classmethod
    def from_networkx(
        cls, G, *, weight=None, distance=None, duplicates: Duplicates = "error", coords=USUAL_AXES, crs=None
    ) -> Graph:
        """Graph from any networkx graph, OSMnx street networks included; node names become labels.

        Unweighted by default, unless `interop.to_networkx` made it: then weights are as they were, and weight=False leaves them out.
        Directions are united, parallel edges are one edge, self-loops are dropped. `weight` names an edge attribute that is an affinity; `distance` names one that is a length d, which becomes
        the affinity mean(d) / d. `coords` names node attributes; they are used when every node has them. They are
        longitude and latitude if `crs` or the graph's own attribute "crs" says so (EPSG:4326).
        """
        table = networkx_edges(G, weight=weight, distance=distance, coords=coords, crs=crs)
        return cls.from_table(table, duplicates=duplicates)

    @classmethod
    def from_igraph(cls, g, *, weight=None, distance=None, duplicates: Duplicates = "error", coords=USUAL_AXES, crs=None) -> Graph:
        """Graph from an igraph.Graph; vertex names, if any, become labels.

        Same meaning as `from_networkx`: `coords` names vertex attributes, which are used when every vertex has them; or it is an (n, 2) or
        (n, 3) array.
        """
        table = igraph_edges(g, weight=weight, distance=distance, coords=coords, crs=crs)
        return cls.from_table(table, duplicates=duplicates)

    @classmethod
    def from_geopandas(
        cls, edges, *, nodes=None, weight=None, distance=None, tolerance: float = 0.0, duplicates: Duplicates = "error"
    ) -> Graph:
        """Graph from a GeoDataFrame of LineStrings; nodes are their ends, in the order in which they are met, or those of `nodes`.

        Parameters
        ----------
        edges : geopandas.GeoDataFrame
            Its own crs says whether coordinates are longitude and latitude (EPSG:4326).
        nodes : geopandas.GeoDataFrame, optional
            Points with labels as their index; edges name two of them as source and target, or u and v, in columns or in their index, as
            those of `interop.to_geopandas` and of OSMnx do. Ends of lines are not looked at then.
        weight, distance : str, optional
            A column with affinities or lengths, as for `from_networkx`; distance="geometry" takes the lengths of the lines.
        tolerance : float
            Ends no further apart than this, in the unit of the coordinates, are one node; 0: only equal ones.
        """
        table = geopandas_edges(edges, nodes=nodes, weight=weight, distance=distance, tolerance=tolerance)
        return cls.from_table(table, duplicates=duplicates)

    @classmethod
    def from_pyg(cls, data, *, weight=None, distance=None, duplicates: Duplicates = "error", crs=None) -> Graph:
        """Graph from a torch_geometric.data.Data; `weight` is "edge_weight", say. `interop.pyg_signals` gives its signals."""
        return cls.from_table(pyg_edges(data, weight=weight, distance=distance, crs=crs), duplicates=duplicates)

    @classmethod
    def from_table(cls, table: EdgeTable, *, duplicates: Duplicates = "error") -> Graph:
        """Graph from what a reader found."""
        pairs, n, weights, coords, crs, labels = table
        return cls.from_edges(pairs, n=n, weights=weights, coords=coords, crs=crs, labels=labels, duplicates=duplicates)

    @classmethod
    def from_image(cls, shape, *, neighbours: int = 8) -> Graph:
        """Pixels of a (rows, columns) image in row-major order, joined to their 4 or 8 neighbours."""
        sides = tuple(shape) if np.ndim(as_array(shape)) == 1 else ()
        if len(sides) != 2 or not all(is_count(side, 1) for side in sides) or int(sides[0]) * int(sides[1]) > MAX_NODES:
            msg = f"shape must be (rows, columns), both at least 1; got {str(shape)[:80]}"
            raise InputError(msg)
        steps = {4: [(0, 1), (1, 0)], 8: [(0, 1), (1, 0), (1, 1), (1, -1)]}[choose("neighbours", neighbours, (4, 8))]
        rows, columns = map(int, sides)
        number = np.arange(rows * columns).reshape(rows, columns)
        pairs = [np.empty((0, 2), dtype=np.int64)]
        for down, right in steps:
            here = number[: rows - down, max(0, -right) : columns - max(0, right)]
            there = number[down:, max(0, right) : columns + min(0, right)]
            pairs.append(np.stack([here.ravel(), there.ravel()], axis=1))
        y, x = np.divmod(number.ravel(), columns)
        return cls.from_edges(np.concatenate(pairs), n=rows * columns, coords=np.stack([x, -y], axis=1))

    @classmethod
    def from_mesh(cls, vertices, faces) -> Graph:
        """Edges of a polygon mesh: `vertices` (n, 2 or 3) become coordinates, `faces` (f, k) vertex numbers."""
        vertices, faces = checked_real_array("vertices", vertices), as_array(faces, "faces")
        if vertices.ndim != 2:
            msg = f"vertices must be (n, 2) or (n, 3) numbers; got {vertices.shape}"
            raise InputError(msg)
        if faces.ndim != 2 or faces.shape[1] < 3:
            msg = f"faces must be (n_faces, 3 or more) vertex numbers; got shape {faces.shape}"
            raise InputError(msg)
        pairs = np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2)
        return cls.from_edges(pairs, n=len(vertices), coords=vertices)

    def subgraph(self, nodes) -> Graph:
        """The graph induced by `nodes` (a mask or node numbers, kept in that order)."""
        keep = checked_nodes(nodes, self.n)
        pick = [None if part is None else part[keep] for part in (self.coords, self.labels)]
        return Graph(self.adjacency[keep][:, keep], coords=pick[0], crs=self.crs, labels=pick[1])

    def product(self, other: Graph) -> Graph:
        """The Cartesian product: nodes are pairs (i, k), numbered i * other.n + k, so (n, other.n) values ravel onto it.

        (i, k) is joined to (j, k) as i to j here, and to (i, l) as k to l in `other`. With a path as `other`, streets
        become streets over time. It has neither labels nor coordinates.

        Examples
        --------
        >>> import hushgraph as hg
        >>> hg.datasets.grid(3, 4).product(hg.datasets.path(24))
        Graph(n=288, n_edges=684, unweighted)
        """
        checked_graph(other)
        if self.n * other.n > MAX_NODES:
            msg = f"the product would have {self.n} x {other.n} nodes, more than {MAX_NODES}; use fewer windows or a part of the graph"
            raise InputError(msg)
        here, there = sparse.eye_array(self.n, format="csr"), sparse.eye_array(other.n, format="csr")
        matrix = sparse.kron(self.adjacency, there, format="csr") + sparse.kron(here, other.adjacency, format="csr")
        return Graph(sparse.csr_array(matrix))

    # ---- what it is ---------------------------------------------------------------------------------------------

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
        degrees = np.asarray(self.adjacency.sum(axis=1)).ravel()
        degrees.flags.writeable = False
        return degrees

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
        if self.labels is not None:
            digest.update("\x1f".join(map(repr, self.labels.tolist())).encode())
        return digest.hexdigest()

    @cached_property
    def components(self) -> np.ndarray:
        """Number of the connected component of each node."""
        return _frozen(csgraph.connected_components(self.adjacency, directed=False)[1])

    def symmetric_parts(self, kind: LaplacianKind) -> tuple[sparse.csr_array, np.ndarray]:
        """(A, d) with diag(d) - A the symmetric Laplacian behind `kind`; random walk is similar to normalized."""
        if choose("laplacian", kind, get_args(LaplacianKind)) == "combinatorial":
            return self.adjacency, self.degrees
        if "normalized" not in self.memo:
            half = 1 / self.root_degrees
            matrix = self.adjacency.copy()
            matrix.data = matrix.data * np.repeat(half, np.diff(matrix.indptr)) * half[matrix.indices]
            self.memo["normalized"] = matrix, (self.degrees > 0).astype(float)
        return self.memo["normalized"]

    def layout(self, kind: LaplacianKind) -> Layout:
        """The same matrix in the row order of the kernels; kept after the first call."""
        key = ("layout", "combinatorial" if kind == "combinatorial" else "normalized")
        if key not in self.memo:
            self.memo[key] = prepare(*self.symmetric_parts(kind))
        return self.memo[key]

    def device_layout(self, kind: LaplacianKind) -> Any:
        """The same matrix on the GPU; kept after the first call, on the GPU that was CuPy's then."""
        from hushgraph.kernels import gpu

        here = gpu.current_device()
        if self.memo.setdefault("device", here) != here:
            msg = f"this graph is on GPU {self.memo['device']}, and CuPy now uses GPU {here}; call graph.free_device() first, or take a copy of the graph for each GPU (copy.copy)"
            raise StateError(msg)
        key = ("device layout", "combinatorial" if kind == "combinatorial" else "normalized")
        if key not in self.memo:
            self.memo[key] = gpu.prepare(*self.symmetric_parts(kind))
        return self.memo[key]

    def free_device(self) -> None:
        """Give back the memory that this graph, and the products and parts kept with it, hold on a GPU.

        The next call that needs it there uploads it again.
        """
        for key, value in list(self.memo.items()):
            if "device" in str(key):
                del self.memo[key]
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Graph):
                    part.free_device()

    def forget(self) -> None:
        """Give back the memory of everything that was worked out for this graph, here and on a GPU.

        That is degrees, row orders, spectra, eigenvectors, filters, surroundings, products with paths and parts without missing values. The
        graph itself stays; what is needed again is worked out again, with the same bits.

        Examples
        --------
        >>> import hushgraph as hg
        >>> graph = hg.datasets.grid(20, 20)
        >>> bound = graph.lambda_upper
        >>> graph.forget()
        >>> graph.lambda_upper == bound
        True
        """
        self.memo.clear()
        for name in self.__dict__.keys() - {own.name for own in fields(self)}:
            del self.__dict__[name]  # cached properties

    @cached_property
    def root_degrees(self) -> np.ndarray:
        """Square roots of the degrees, 1 for isolated nodes (D^{+-1/2} = 1 there)."""
        return _frozen(np.sqrt(np.where(self.degrees > 0, self.degrees, 1.0)))

    def laplacian(self, kind: LaplacianKind = "combinatorial") -> sparse.csr_array:
        """The Laplacian: "combinatorial" D - W, "normalized", or "random_walk" D^-1 (D - W)."""
        matrix, diagonal = self.symmetric_parts(kind)
        laplacian = (sparse.diags_array(diagonal) - matrix).tocsr()
        if kind == "random_walk":
            laplacian = (sparse.diags_array(1 / self.root_degrees) @ laplacian @ sparse.diags_array(self.root_degrees)).tocsr()
        return laplacian

    def spectrum(self, kind: LaplacianKind = "combinatorial", *, tolerance: float = 1e-3, exact: bool = False) -> Spectrum:
        """Largest eigenvalue and a proven upper bound, with how each was found; kept after the first call."""
        symmetric: LaplacianKind = (
            "combinatorial" if choose("laplacian", kind, get_args(LaplacianKind)) == "combinatorial" else "normalized"
        )
        tolerance = checked_number("tolerance", tolerance, "a relative error between 0 and 1", above=0, below=1)
        key = ("spectrum", symmetric, tolerance, bool(exact))
        if key not in self.memo:
            parts = *self.symmetric_parts(symmetric), self.layout(symmetric)
            self.memo[key] = laplacian_spectrum(*parts, self._upper_bound(symmetric), tolerance=tolerance, exact=exact)
        return self.memo[key]

    def spectrum_for_scales(self, kind: LaplacianKind, enough_below: Callable[[float], float]) -> Spectrum:
        """The spectrum as far as it decides the number of scales: `lambda_max` may be a lower bound above enough_below(lambda_upper)."""
        symmetric: LaplacianKind = "combinatorial" if kind == "combinatorial" else "normalized"
        complete = self.memo.get(("spectrum", symmetric, 1e-3, False))
        if complete is not None:
            return complete
        bound = self._upper_bound(symmetric)
        rough, enough = self.memo.get(("rough spectrum", symmetric)), enough_below(bound[0])
        if rough is None or rough.lambda_max <= enough:
            parts = *self.symmetric_parts(symmetric), self.layout(symmetric)
            rough = laplacian_spectrum(*parts, bound, enough=enough)
            key = ("rough spectrum", symmetric) if rough.lambda_max > enough else ("spectrum", symmetric, 1e-3, False)
            self.memo[key] = rough
        return rough

    def _upper_bound(self, symmetric: LaplacianKind) -> tuple[float, str]:
        """A proven bound on the eigenvalues, and how it was found; kept after the first call."""
        if symmetric == "normalized":
            return 2.0, "theorem: spectrum in [0, 2] (proven)"
        if "upper bound" not in self.memo:
            self.memo["upper bound"] = upper_bound(*self.symmetric_parts(symmetric), self.layout(symmetric))
        return self.memo["upper bound"]

    @property
    def lambda_max(self) -> float:
        """Largest eigenvalue of the combinatorial Laplacian, to 1e-3; `spectrum` says how it was found."""
        return self.spectrum().lambda_max

    @property
    def lambda_upper(self) -> float:
        """Proven upper bound on the eigenvalues of the combinatorial Laplacian."""
        return self._upper_bound("combinatorial")[0]

    def latest(self, name: str, key: tuple, make: Callable[[], Any]) -> Any:
        """What `make` makes for this key; kept until another key is asked for under the same name."""
        kept = self.memo.get(("latest", name))
        if kept is None or kept[0] != key:
            kept = self.memo["latest", name] = key, make()
        return kept[1]

    # ---- signals on it ------------------------------------------------------------------------------------------

    def align(self, signal, *, missing_ok: bool = False) -> np.ndarray:
        """Values in node order, shape (n,) or (n, m), float32 or float64.

        Plain arrays go by position. Mappings, Series and DataFrames of pandas (by their index), DataArrays of xarray (by the index of the
        dimension "node", by a coordinate "node", or else by the index of the first dimension) and tables of polars and pyarrow (by their column
        "node", "id", "label" or "__index_level_0__") are matched to `labels`, or to 0..n-1 without labels; a missing or extra label is an error.
        """
        return self.aligned("signal", signal, missing_ok=missing_ok)

    def aligned(self, name: str, signal, *, missing_ok: bool = False, one: bool = False) -> np.ndarray:
        """`align` of something that errors call by that name; where `one` signal is expected, a table with one column of values is one."""
        values = checked_real_array(name, in_node_order(name, signal, node_names(self), one=one) if is_labelled(signal) else signal)
        if values.ndim not in (1, 2) or values.shape[0] != self.n:
            hint = "; pass Y.T if signals are rows" if values.ndim == 2 and values.shape[1] == self.n else ""
            msg = f"{name} needs one row per node: expected ({self.n},) or ({self.n}, m), got {values.shape}{hint}"
            raise InputError(msg)
        if values.ndim == 2 and values.shape[1] == 0:
            msg = f"{name} has no columns: got {values.shape}, where at least one signal is expected"
            raise InputError(msg)
        hint = Sentence("; clean them, or see {missing='drop'} and 'fill' of denoise")
        return checked_size(name, values, missing_ok=missing_ok, hint=hint, rows=lambda: node_names(self))


def checked_graph(graph) -> Graph:
    """`graph`, or an error that says what to pass."""
    if not isinstance(graph, Graph):
        msg = f"graph must be a hushgraph.Graph; got {type(graph).__name__}; build one with Graph.from_edges, from_scipy or from_networkx"
        raise InputTypeError(msg)
    return graph


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
