"""A partition with its ghost zone, all nodes within the reach of the polynomials, as a graph of its own.

Local numbers ascend with the numbers in the whole graph, so each row adds its neighbors in the same order; degrees are those of the
whole graph. After as many steps as the zone is deep the values of owned nodes are those of the whole graph, to the bit. Rows at the
rim of the zone are cut short: their values are wrong, and never reach an owned node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from hushgraph._errors import InputError, Sentence
from hushgraph.core import Layout, _loops, count_units, prepare, unit_above
from hushgraph.distributed.adjacency_rows import row_sums
from hushgraph.distributed.partitioning import read_owners
from hushgraph.distributed.store import Output, Place, damaged_error, part_folder, read_manifest
from hushgraph.distributed.stored_arrays import check_layout, check_rows, check_sources, is_floats, load_nodes
from hushgraph.graphs import Cache, Graph, LaplacianKind, largest_eigenvalue, signless_quotients

TOLERANCE = 1e-3  # of the largest eigenvalue, as in `Graph.spectrum`
SHORT = 0.2  # hops over the cube root of a partition; fewer hops to too many ghosts mean a small world, even in three dimensions
OPEN_BYTES = 2**21  # of mapped files that a partition keeps open
SMALL_WORLD = "distances in this graph are too short for partitions (a small world, such as a scale-free or random graph, or nodes in a bad order)"


class TooManyGhostsError(InputError):
    """A ghost zone is too large for its partition, as in a small world: partitions do not pay."""


@dataclass(frozen=True)
class ZoneSettings:
    """Limits of the ghost zones, and facts of the whole graph that the task of each zone needs.

    Parameters
    ----------
    depth : int
        Hops from the owned nodes to the rim.
    most_ghosts : float
        Ghosts per owned node that are allowed.
    uniform : bool
        Whether all entries of the matrix are equal.
    normalized : bool
        Whether the Laplacian is the normalized one.
    most_degree : float
        The largest degree.
    enough : float
        A lower bound on the largest eigenvalue above this value decides the number of scales.
    """

    depth: int
    most_ghosts: float
    uniform: bool
    normalized: bool
    most_degree: float
    enough: float = np.inf


@dataclass(frozen=True, eq=False)
class PartRows:
    """Rows of the adjacency matrix: `nodes` in ascending number, and the columns (and weights, unless all are 1) of each of them."""

    nodes: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    weights: np.ndarray | None

    @property
    def all_weights(self) -> np.ndarray:
        """The weight of each entry."""
        return np.ones(len(self.columns)) if self.weights is None else np.asarray(self.weights)


@dataclass(frozen=True, eq=False)
class GhostRows(PartRows):
    """Rows of ghosts that one other partition owns, and their places in that partition."""

    part: int
    places: np.ndarray


class RowFiles:
    """The rows of all partitions; the files of a partition are opened when its rows are first needed."""

    def __init__(self, work: Place) -> None:
        self.work, self.owner = work, read_owners(work)
        self._open: dict[int, PartRows] = {}

    def rows(self, part: int) -> PartRows:
        """Return the rows of a partition, mapped but for its node numbers."""
        if part not in self._open:
            out = Output(part_folder(self.work, part), "rows")
            nodes = load_nodes(out, "nodes", "nodes", len(self.owner))
            weights = out.load("weights", whole=False) if out.has("weights") else None
            rows = PartRows(nodes, out.load("starts", whole=False), out.load("columns", whole=False), weights)
            if not out.has_checksums:
                check_rows(out, rows.starts, rows.columns, weights, len(nodes), len(self.owner))
            self._open[part] = rows
        return self._open[part]

    def gather(self, nodes: np.ndarray) -> list[GhostRows]:
        """Return the rows of these nodes, for each partition that owns some of them."""
        gathered, owner = [], self.owner[nodes]
        for part in np.unique(owner):
            rows, owned = self.rows(int(part)), nodes[owner == part]
            places = np.searchsorted(rows.nodes, owned).astype(np.int32)
            first, last = rows.starts[places], rows.starts[places + 1]
            starts = np.concatenate([[0], np.cumsum(last - first)])
            entries = np.repeat(first - starts[:-1], last - first) + np.arange(starts[-1])
            weights = None if rows.weights is None else rows.weights[entries]
            gathered.append(GhostRows(owned, starts, rows.columns[entries], weights, int(part), places))
        return gathered


def too_many_ghosts(owned: int, ghosts: int, hops: int, depth: int, limit: float, *, has_places: bool = True) -> str:
    """Return why partitions are refused: a small world, or, after many hops, partitions that are small against their zones."""
    small_world = hops <= max(3, SHORT * owned ** (1 / 3))
    why = SMALL_WORLD if small_world else f"partitions of this size are too small for ghosts within {depth} hops"
    text = (
        "a partition of {:,} nodes has {:,} ghosts or more after {} of {} hops, {:.1f} per owned node, and {:g} are allowed: {}; {}"
    )
    return Sentence(text, owned, ghosts, hops, depth, ghosts / max(owned, 1), limit, why, advice(has_places=has_places))


def advice(*, has_places: bool) -> str:
    """Return what to do with a graph whose partitions have too many ghosts."""
    text = (
        "denoise it on one machine ({hushgraph.denoise}) or on a GPU, {}use fewer partitions (more memory, where that decides) or a lower "
        "degree, or raise {most_ghosts}"
    )
    return Sentence(text, "" if has_places else Sentence("give {coords=}, "))


def grow_zone(work: Place, part: int, zone: ZoneSettings) -> dict[str, Any]:
    """Write a partition with its ghosts, gathered hop by hop, as a graph of its own; return its facts, also of the spectrum."""
    out = Output(part_folder(work, part), "zone")
    if (finished := out.read_facts()) is not None:
        return finished
    files = RowFiles(work)
    owned = files.rows(part)
    gathered, depth = _layers(files, part, owned, zone)
    ghosts = np.concatenate([rows.nodes for rows in gathered]) if gathered else np.empty(0, np.int32)
    order = np.argsort(np.concatenate([owned.nodes, ghosts]), kind="stable")
    nodes = np.concatenate([owned.nodes, ghosts])[order]
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    starts = _joined_starts([owned.starts, *(rows.starts for rows in gathered)])
    columns = np.concatenate([np.asarray(owned.columns), *(rows.columns for rows in gathered)])
    is_unweighted = owned.weights is None and all(rows.weights is None or np.all(rows.weights == 1.0) for rows in gathered)
    data = None if is_unweighted else np.concatenate([owned.all_weights, *(rows.all_weights for rows in gathered)])
    degrees = row_sums(starts, data)[order]
    _write_sources(out, gathered, rank[len(owned.nodes) :])
    owned_places = rank[: len(owned.nodes)]
    del gathered
    local = _loops.localize_rows(nodes, order, starts, columns, np.empty(0) if data is None else data)
    del columns, data, starts
    out.save("nodes", nodes)
    out.save("own", owned_places)
    out.save("starts", local[0])
    out.save("columns", local[1])
    out.save("weights", local[2])
    if not is_unweighted or zone.normalized:
        out.save("degrees", degrees)
    matrix, layout = _matrix_and_layout(local, degrees, zone)
    _write_layout(out, layout)
    facts: dict[str, Any] = {"own": len(owned_places), "rows": len(nodes), "entries": len(local[1]), "depth": depth}
    facts["degree_units"] = count_units(degrees[owned_places], unit_above(zone.most_degree))
    return out.mark_done({**facts, **_spectrum(matrix, layout, degrees, owned_places, zone)})


def _layers(files: RowFiles, part: int, owned: PartRows, zone: ZoneSettings) -> tuple[list[GhostRows], int]:
    """Return the rows of all ghosts, hop after hop, and the number of hops.

    Neighbors of the nodes of a hop lie in that hop, in the one before or in the one after.
    """
    gathered: list[GhostRows] = []
    before = np.empty(0, np.int32)
    nodes, count = _outside(files, part, np.asarray(owned.columns)), 0
    for depth in range(zone.depth):
        if not len(nodes):
            return gathered, depth
        count += len(nodes)
        if count > zone.most_ghosts * max(len(owned.nodes), 1):
            raise TooManyGhostsError(too_many_ghosts(len(owned.nodes), count, depth + 1, zone.depth, zone.most_ghosts))
        layer = files.gather(nodes)
        gathered += layer
        if depth + 1 == zone.depth:
            break
        near = [_outside(files, part, rows.columns) for rows in layer]
        new = np.setdiff1d(np.unique(np.concatenate(near)), nodes, assume_unique=True)
        before, nodes = nodes, np.setdiff1d(new, before, assume_unique=True)
    return gathered, zone.depth


def _outside(files: RowFiles, part: int, columns: np.ndarray) -> np.ndarray:
    """Return the nodes among these that belong to other partitions, each once."""
    return np.unique(columns[files.owner[columns] != part])


def _joined_starts(parts: list[np.ndarray]) -> np.ndarray:
    lengths = np.concatenate([np.diff(part) for part in parts])
    return np.concatenate([[0], np.cumsum(lengths)])


def _write_sources(out: Output, gathered: list[GhostRows], rank: np.ndarray) -> None:
    """Write which partitions own the ghosts, the places of the ghosts in those partitions, and their local numbers."""
    owners, places = np.empty(0, np.int64), np.empty(0, np.int32)
    if gathered:
        owners = np.repeat([rows.part for rows in gathered], [len(rows.nodes) for rows in gathered])
        places = np.concatenate([rows.places for rows in gathered])
    order = np.lexsort((places, owners))
    parts, starts = np.unique(owners[order], return_index=True)
    out.save("source_parts", parts.astype(np.int32))
    out.save("source_starts", np.append(starts, len(order)))
    out.save("source_places", places[order])
    out.save("ghosts", rank[order])


# ---- the partition as a graph ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LocalMatrix:
    """A sparse matrix with the fields of SciPy's; where all weights are equal, `data` may hold one for all entries."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return len(self.indices)


def _matrix_and_layout(
    local: tuple[np.ndarray, np.ndarray, np.ndarray], degrees: np.ndarray, zone: ZoneSettings
) -> tuple[LocalMatrix, Layout]:
    """Return the weights of the partition, and its Laplacian in the layout of the compiled loops."""
    starts, columns, weights = local
    diagonal = degrees
    if zone.normalized:
        half = 1 / np.sqrt(np.where(degrees > 0, degrees, 1.0))
        data = weights if len(weights) else np.ones(len(columns))
        weights, diagonal = data * np.repeat(half, np.diff(starts)) * half[columns], (degrees > 0).astype(float)
    elif not len(weights):
        weights = np.ones(1 if zone.uniform else len(columns))
    matrix = LocalMatrix(starts, columns, weights)
    return matrix, prepare(matrix, diagonal, uniform=zone.uniform)


_ARRAYS = ("order", "blocks", "block_runs", "runs", "indices", "values", "diagonal")


def _write_layout(out: Output, layout: Layout) -> None:
    for name in _ARRAYS:
        if getattr(layout, name) is not None:
            out.save(f"layout_{name}", getattr(layout, name))
    out.save("layout_rest", np.array([layout.uniform, float(layout.wavefront)]))


def _spectrum(matrix: LocalMatrix, layout: Layout, degrees: np.ndarray, owned: np.ndarray, zone: ZoneSettings) -> dict[str, Any]:
    """Return quotients whose maxima over all partitions are those of the whole graph, and a lower bound on the largest eigenvalue.

    The matrix of the partition with its zone is a principal submatrix, so its largest eigenvalue is at most that of the whole (Cauchy).
    """
    if matrix.nnz == 0:
        return {"quotients": [0.0], "eigenvalue": 0.0, "steps": 0}
    rows = (degrees > 0).astype(float)[layout.order] if zone.normalized else degrees[layout.order]
    top, steps = largest_eigenvalue(layout, rows, tolerance=TOLERANCE, enough=zone.enough)
    quotients = np.zeros(1)
    if not zone.normalized:
        is_owned = np.zeros(len(rows), dtype=bool)
        is_owned[owned] = True
        quotients = signless_quotients(layout, matrix, rows, largest=zone.most_degree, rows=is_owned[layout.order])
    return {"quotients": quotients.tolist(), "eigenvalue": top, "steps": steps}


class Part(Graph):
    """A partition with its ghost zone: the subgraph of these nodes, with the degrees that they have in the whole graph.

    Its Laplacian is a principal submatrix of that of the whole graph. Everything is read from the files of the partition when it is
    first needed: most tasks need the layout of the compiled loops and not the adjacency matrix.
    """

    def __init__(self, work: Place, part: int) -> None:
        """Refer to the files of a partition; nothing is read yet. The checks of `Graph` are not repeated: `grow_zone` wrote these files."""
        for name, value in (("coords", None), ("crs", None), ("labels", None), ("cache", Cache())):
            object.__setattr__(self, name, value)
        self.work, self.part = work, part
        self._open: dict[tuple[str, str, str], np.ndarray] = {}
        self.files = Output(part_folder(work, part), "zone")

    @cached_property
    def nodes(self) -> np.ndarray:
        """Numbers in the whole graph of owned nodes and ghosts, ascending."""
        return load_nodes(self.files, "nodes", "rows", read_manifest(self.work)["n"])

    @cached_property
    def owned(self) -> np.ndarray:
        """Local numbers of the owned nodes."""
        return load_nodes(self.files, "own", "own", self.n)

    @cached_property
    def owned_places(self) -> slice | np.ndarray:
        """The local numbers of the owned nodes as an index: a slice where they follow each other."""
        first, count = (int(self.owned[0]), len(self.owned)) if len(self.owned) else (0, 0)
        follow = count == 0 or (int(self.owned[-1]) - first == count - 1)  # they ascend
        return slice(first, first + count) if follow else self.owned.astype(np.intp)

    def owned_rows(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the values of owned nodes, row by row; a row is valid until the next one."""
        places = self.owned_places
        if isinstance(places, slice):
            yield from (row[places] for row in rows)
            return
        buffer = np.empty(len(places), rows.dtype)
        yield from (np.take(row, places, out=buffer, mode="clip") for row in rows)

    @property
    def n(self) -> int:
        """Number of owned nodes and ghosts."""
        return len(self.nodes)

    def layout(self, kind: LaplacianKind) -> Layout:
        """Return the layout of the Laplacian that the partition was prepared for."""
        return self.cached("layout", self._load_layout)

    def _load_layout(self) -> Layout:
        arrays: dict[str, Any] = {
            name: self.files.load(f"layout_{name}") if self.files.has(f"layout_{name}") else None for name in _ARRAYS
        }
        if any(arrays[name] is None for name in _ARRAYS[:5]):  # the others are there if weights differ
            raise damaged_error(self.files.folder / f"{self.files.stage}.json")
        rest = self.files.load("layout_rest")
        if not self.files.has_checksums:
            check_layout(self.files, arrays, rest, self.n)
        uniform, wavefront = rest
        return Layout(**arrays, uniform=float(uniform), wavefront=bool(wavefront))

    @cached_property
    def adjacency(self) -> sparse.csr_array:
        """Rows with local neighbors; those at the rim are cut short."""
        starts, columns, data = (self.files.load(name) for name in ("starts", "columns", "weights"))
        if not self.files.has_checksums:
            check_rows(self.files, starts, columns, data if data.size else None, self.n, self.n)
        return sparse.csr_array((data if len(data) else np.ones(len(columns)), columns, starts), shape=(self.n, self.n))

    @cached_property
    def degrees(self) -> np.ndarray:
        """Degrees in the whole graph; of rows at the rim only where weights differ."""
        if self.files.has("degrees"):
            degrees = self.files.load("degrees")
            if not is_floats(degrees, (self.n,)):
                raise damaged_error(self.files.path("degrees"))
            return degrees
        return np.diff(self.adjacency.indptr).astype(np.float64)

    def fill(self, target: np.ndarray, folder_of: Callable[[int], Place], stage: str, name: str, row: int = 0) -> np.ndarray:
        """Fill the rows (k, n) of owned nodes and ghosts from the files (rows, owned) of their partitions, from that row on."""
        sources, starts, places, ghosts = self._sources
        owned_rows, *others = (self._mapped(folder_of(int(part)), stage, name) for part in (self.part, *sources))
        for j in range(len(target)):
            target[j, self.owned_places] = owned_rows[row + j]
            for k, other in enumerate(others):
                source = slice(starts[k], starts[k + 1])
                target[j, ghosts[source]] = self._values_at(other[row + j], places[source])
        return target

    def _values_at(self, values: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return the values of ghosts, at places among the owned nodes of their partition."""
        try:
            return values[places]
        except IndexError as error:  # in a folder without checksums
            raise damaged_error(self.files.path("source_places")) from error

    def _mapped(self, folder: Place, stage: str, name: str) -> np.ndarray:
        """Return a mapped array of a stage. Small ones stay open, for tasks that fill many rows; the pages of large ones would count as memory."""
        key = str(folder), stage, name
        if key in self._open:
            return self._open[key]
        rows = Output(folder, stage).load(name, whole=False)
        if rows.nbytes + sum(other.nbytes for other in self._open.values()) <= OPEN_BYTES:
            self._open[key] = rows
        return rows

    @cached_property
    def _sources(self) -> tuple[np.ndarray, ...]:
        names = ("source_parts", "source_starts", "source_places", "ghosts")
        sources = tuple(self.files.load(name) for name in names)
        if not self.files.has_checksums:
            check_sources(self.files, sources, self.owned, read_manifest(self.work)["partitions"], self.n)
        return sources

    def forget(self) -> None:
        """Give back the memory of the layout."""
        self.cache.clear()
