"""Graph: an immutable weighted undirected graph with its Laplacians.

L = D - W, L_norm = D^-1/2 L D^-1/2, L_rw = D^-1 L (paper, Sec. II-A and II-C); a node of degree 0 has a zero row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from hushgraph.adjacency import (
    Duplicates,
    affinities,
    checked_adjacency,
    checked_pairs,
    checked_weights,
    choose,
    merge_duplicates,
    node_count,
    one_of,
)
from hushgraph.kernels.layout import Layout, prepare
from hushgraph.spectrum import Spectrum, laplacian_spectrum

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
    memo: dict = field(default_factory=dict, repr=False)  # derived things worth keeping: spectra, kernel layouts

    def __post_init__(self):
        matrix = checked_adjacency(self.adjacency)
        for part in (matrix.data, matrix.indices, matrix.indptr):
            part.flags.writeable = False
        object.__setattr__(self, "adjacency", matrix)
        object.__setattr__(self, "coords", _checked_coords(self.coords, self.crs, self.n))
        object.__setattr__(self, "labels", _checked_labels(self.labels, self.n))

    def __getstate__(self):
        return {**self.__dict__, "memo": {}}

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
            raise ValueError(msg)
        values = None if weights is None else checked_weights(weights, len(pairs))
        pairs, values = merge_duplicates(pairs, values, n, choose("duplicates", duplicates, get_args(Duplicates)))
        both = np.concatenate([pairs, pairs[:, ::-1]])
        data = np.ones(len(both)) if values is None else np.concatenate([values, values])
        matrix = sparse.csr_array((data, (both[:, 0], both[:, 1])), shape=(n, n))
        return cls(matrix, coords=coords, crs=crs, labels=labels)

    @classmethod
    def from_scipy(cls, matrix, *, coords=None, crs=None, labels=None) -> Graph:
        """Graph from a symmetric sparse (or dense) adjacency matrix; the diagonal is dropped."""
        return cls(sparse.csr_array(matrix), coords=coords, crs=crs, labels=labels)

    @classmethod
    def from_networkx(
        cls, G, *, weight=None, distance=None, duplicates: Duplicates = "error", coords=("x", "y"), crs=None
    ) -> Graph:
        """Graph from any networkx graph, OSMnx street networks included; node names become labels.

        Unweighted by default; directions are united, parallel edges are one edge, self-loops are dropped.
        `weight` names an edge attribute that is an affinity; `distance` names one that is a length d, which becomes
        the affinity mean(d) / d. `coords` names node attributes; they are used when every node has them.
        """
        labels = list(G.nodes)
        position = {label: i for i, label in enumerate(labels)}
        pairs = np.array([(position[u], position[v]) for u, v in G.edges()], dtype=np.int64).reshape(-1, 2)
        attribute = one_of(weight=weight, distance=distance)
        values = None if attribute is None else [value for _, _, value in G.edges(data=attribute)]
        nodes = [G.nodes[label] for label in labels]
        places = [[node[key] for key in coords] for node in nodes] if nodes and all(k in d for d in nodes for k in coords) else None
        return cls.from_edges(
            pairs, n=len(labels), weights=affinities(values, attribute, pairs, is_distance=distance is not None),
            coords=places, crs=crs, labels=_label_array(labels), duplicates=duplicates,
        )  # fmt: skip

    @classmethod
    def from_igraph(cls, g, *, weight=None, distance=None, duplicates: Duplicates = "error", coords=None, crs=None) -> Graph:
        """Graph from an igraph.Graph; vertex names, if any, become labels. Same meaning as `from_networkx`."""
        pairs = np.array(g.get_edgelist(), dtype=np.int64).reshape(-1, 2)
        attribute = one_of(weight=weight, distance=distance)
        values = None if attribute is None else g.es[attribute]
        labels = _label_array(g.vs["name"]) if "name" in g.vs.attributes() else None
        return cls.from_edges(
            pairs, n=g.vcount(), weights=affinities(values, attribute, pairs, is_distance=distance is not None),
            coords=coords, crs=crs, labels=labels, duplicates=duplicates,
        )  # fmt: skip

    @classmethod
    def from_image(cls, shape, *, neighbours: int = 8) -> Graph:
        """Pixels of a (rows, columns) image in row-major order, joined to their 4 or 8 neighbours."""
        if len(tuple(shape)) != 2 or min(shape) < 1:
            msg = f"shape must be (rows, columns), both at least 1; got {tuple(shape)}"
            raise ValueError(msg)
        steps = {4: [(0, 1), (1, 0)], 8: [(0, 1), (1, 0), (1, 1), (1, -1)]}[choose("neighbours", neighbours, (4, 8))]
        rows, columns = map(int, shape)
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
        vertices, faces = np.asarray(vertices, dtype=float), np.asarray(faces)
        if faces.ndim != 2 or faces.shape[1] < 3:
            msg = f"faces must be (n_faces, 3 or more) vertex numbers; got shape {faces.shape}"
            raise ValueError(msg)
        pairs = np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2)
        return cls.from_edges(pairs, n=len(vertices), coords=vertices)

    def subgraph(self, nodes) -> Graph:
        """The graph induced by `nodes` (a mask or node numbers, kept in that order)."""
        keep = np.asarray(nodes)
        keep = np.flatnonzero(keep) if keep.dtype == bool else keep
        pick = [None if part is None else part[keep] for part in (self.coords, self.labels)]
        return Graph(self.adjacency[keep][:, keep], coords=pick[0], crs=self.crs, labels=pick[1])

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
            digest.update("\x1f".join(map(str, self.labels)).encode())
        return digest.hexdigest()

    @cached_property
    def components(self) -> np.ndarray:
        """Number of the connected component of each node."""
        return csgraph.connected_components(self.adjacency, directed=False)[1]

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

    @cached_property
    def root_degrees(self) -> np.ndarray:
        """Square roots of the degrees, 1 for isolated nodes (D^{+-1/2} = 1 there)."""
        return np.sqrt(np.where(self.degrees > 0, self.degrees, 1.0))

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
        key = ("spectrum", symmetric, tolerance, exact)
        if key not in self.memo:
            upper = None if symmetric == "combinatorial" else 2.0
            parts = *self.symmetric_parts(symmetric), self.layout(symmetric)
            self.memo[key] = laplacian_spectrum(*parts, tolerance=tolerance, exact=exact, known_upper=upper)
        return self.memo[key]

    @property
    def lambda_max(self) -> float:
        """Largest eigenvalue of the combinatorial Laplacian, to 1e-3; `spectrum` says how it was found."""
        return self.spectrum().lambda_max

    @property
    def lambda_upper(self) -> float:
        """Proven upper bound on the eigenvalues of the combinatorial Laplacian."""
        return self.spectrum().lambda_upper

    # ---- signals on it ------------------------------------------------------------------------------------------

    def align(self, signal, *, missing_ok: bool = False) -> np.ndarray:
        """Values in node order, shape (n,) or (n, m), float32 or float64.

        Plain arrays go by position; pandas objects and dicts are matched to `labels`, or to 0..n-1 without labels.
        """
        if isinstance(signal, Mapping):
            signal = self._by_label(list(signal), np.array(list(signal.values())))
        elif hasattr(signal, "index") and hasattr(signal, "to_numpy"):
            signal = self._by_label(list(signal.index), signal.to_numpy())
        values = np.asarray(signal)
        if values.dtype.kind not in "fiub":
            msg = f"signal must hold real numbers; got dtype {values.dtype}"
            raise TypeError(msg)
        if values.ndim not in (1, 2) or values.shape[0] != self.n:
            hint = "; pass Y.T if signals are rows" if values.ndim == 2 and values.shape[1] == self.n else ""
            msg = f"signal needs one row per node: expected ({self.n},) or ({self.n}, m), got {values.shape}{hint}"
            raise ValueError(msg)
        values = values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
        bad = np.isinf(values) if missing_ok else ~np.isfinite(values)
        if bad.any():
            msg = f"signal has {int(bad.sum())} entries that are NaN or infinite; clean them, or see missing='drop' and 'fill' of denoise"
            raise ValueError(msg)
        return values

    def _by_label(self, given: list, values: np.ndarray) -> np.ndarray:
        labels = list(range(self.n)) if self.labels is None else self.labels.tolist()
        position = {label: i for i, label in enumerate(given)}
        absent, extra = [x for x in labels if x not in position], len(position.keys() - set(labels))
        if len(position) != len(given):
            msg = f"signal has {len(given) - len(position)} repeated labels; each node needs exactly one value"
            raise ValueError(msg)
        if absent or extra:
            msg = (
                f"labels of signal and graph differ: {len(absent)} nodes have no value (first: {absent[:3]}), {extra} labels "
                "are not nodes; reindex the signal to graph.labels, or pass a plain array in node order"
            )
            raise ValueError(msg)
        return values[[position[x] for x in labels]]


def _checked_coords(coords, crs, n: int) -> np.ndarray | None:
    choose("crs", crs, (None, "lonlat"))
    if coords is None:
        return None
    coords = np.array(coords, dtype=np.float64)
    if coords.ndim != 2 or len(coords) != n or coords.shape[1] not in (2, 3):
        msg = f"coords must be one row of 2 or 3 numbers per node: expected ({n}, 2), got {coords.shape}"
        raise ValueError(msg)
    if not np.isfinite(coords).all():
        msg = "coords must be finite; leave coords out if some places are unknown"
        raise ValueError(msg)
    if crs == "lonlat" and (np.abs(coords[:, 0]).max(initial=0) > 360 or np.abs(coords[:, 1]).max(initial=0) > 90):
        msg = "crs='lonlat' needs (longitude, latitude) in degrees; these coords are outside that range (swapped, or planar?)"
        raise ValueError(msg)
    coords.flags.writeable = False
    return coords


def _checked_labels(labels, n: int) -> np.ndarray | None:
    if labels is None:
        return None
    labels = _label_array(labels)
    if labels.shape != (n,):
        msg = f"labels must be one name per node: expected ({n},), got {labels.shape}"
        raise ValueError(msg)
    if len(set(labels.tolist())) != n:
        msg = f"labels must be unique; {n - len(set(labels.tolist()))} are repeated"
        raise ValueError(msg)
    labels.flags.writeable = False
    return labels


def _label_array(labels) -> np.ndarray:
    """One-dimensional array of labels; tuples stay whole."""
    labels = list(labels)
    if (labels and all(isinstance(x, int | np.integer) for x in labels)) or (labels and all(isinstance(x, str) for x in labels)):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
