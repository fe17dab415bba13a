"""A partition with its ghost zone: all nodes within the reach of the polynomials, as a graph of its own.

Local numbers ascend with the numbers in the whole graph, so each row adds its neighbours in the same order; degrees are the true ones.
The values of owned nodes after as many steps as the zone is deep are those of the whole graph, to the bit. Rows at the rim of the
zone are cut short: what they hold is wrong, and never reaches an owned node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph.core import _loops
from hushgraph.distributed.rows import row_sums
from hushgraph.distributed.store import Output, part_folder, read_array
from hushgraph.kernels.layout import Layout, prepare
from hushgraph.spectrum import largest_eigenvalue, signless_quotients
from hushgraph.sums import count_units, unit_above

TOLERANCE = 1e-3  # of the largest eigenvalue, as in `Graph.spectrum`


SHORT = 0.2  # hops over the cube root of a partition: fewer until ghosts are too many are a small world, even in three dimensions
SMALL_WORLD = "distances in this graph are too short for partitions (a small world, such as a scale-free or random graph, or nodes in a bad order)"


class TooManyGhostsError(InputError):
    """The ghost zone outgrew its partition: a small world, where partitions do not pay."""


@dataclass(frozen=True)
class Zone:
    """How deep ghost zones are, how many ghosts an owned node may have, and what is known of the whole graph."""

    depth: int
    most_ghosts: float
    uniform: bool
    normalized: bool
    most_degree: float
    enough: float = np.inf  # largest eigenvalue from which on the number of scales is certain


class Shelf:
    """The rows of all partitions, opened when they are needed."""

    def __init__(self, work: Path):
        self.work, self.owner = work, read_array(work / "owner.npy", whole=False)
        self._open: dict[int, SimpleNamespace] = {}

    def rows(self, part: int) -> SimpleNamespace:
        if part not in self._open:
            out = Output(part_folder(self.work, part), "rows")
            weights = out.load("weights", whole=False) if out.path("weights").exists() else None
            self._open[part] = SimpleNamespace(
                nodes=out.load("nodes"),
                starts=out.load("starts", whole=False),
                columns=out.load("columns", whole=False),
                weights=weights,
            )
        return self._open[part]

    def gather(self, nodes: np.ndarray) -> list[tuple]:
        """(partition, nodes, their places there, row starts, columns, weights) for each partition that owns some of them."""
        found, owner = [], self.owner[nodes]
        for part in np.unique(owner):
            rows, own = self.rows(int(part)), nodes[owner == part]
            places = np.searchsorted(rows.nodes, own).astype(np.int32)
            first, last = rows.starts[places], rows.starts[places + 1]
            starts = np.concatenate([[0], np.cumsum(last - first)])
            entries = np.repeat(first - starts[:-1], last - first) + np.arange(starts[-1])
            columns = rows.columns[entries]
            weights = np.ones(len(columns)) if rows.weights is None else rows.weights[entries]
            found.append((int(part), own, places, starts, columns, weights))
        return found


def too_many(owned: int, ghosts: int, hops: int, depth: int, limit: float, *, has_places: bool = True) -> str:
    """Why partitions are refused. Many hops until then are no small world: the partitions are small, and what is around them is larger."""
    small_world = hops <= max(3, SHORT * owned ** (1 / 3))
    why = SMALL_WORLD if small_world else f"partitions of this size are too small for ghosts within {depth} hops"
    words = (
        "a partition of {:,} nodes has {:,} ghosts or more after {} of {} hops, {:.1f} per owned node, and {:g} are allowed: {}; {}"
    )
    return Sentence(words, owned, ghosts, hops, depth, ghosts / max(owned, 1), limit, why, advice(has_places=has_places))


def advice(*, has_places: bool) -> str:
    """What to do with a graph whose partitions have too many ghosts."""
    words = (
        "denoise it on one machine ({hushgraph.denoise}) or on a GPU, {}use fewer partitions (more memory, where that decides) or a lower "
        "degree, or raise {most_ghosts}"
    )
    return Sentence(words, "" if has_places else Sentence("give {coords=}, "))


def grow(work: Path, part: int, zone: Zone) -> dict[str, Any]:
    """Find the ghosts of a partition hop by hop, and write it with them as a graph of its own; also what it says of the spectrum."""
    out = Output(part_folder(work, part), "zone")
    if (known := out.known()) is not None:
        return known
    shelf = Shelf(work)
    own = shelf.rows(part)
    gathered, depth = _layers(shelf, part, own, zone)
    ghosts = np.concatenate([one[1] for one in gathered]) if gathered else np.empty(0, np.int32)
    order = np.argsort(np.concatenate([own.nodes, ghosts]), kind="stable")
    nodes = np.concatenate([own.nodes, ghosts])[order]
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    starts = _joined_starts([own.starts, *(one[3] for one in gathered)])
    columns = np.concatenate([np.asarray(own.columns), *(one[4] for one in gathered)])
    unit = own.weights is None and all(np.all(one[5] == 1.0) for one in gathered)
    data = None if unit else np.concatenate([_ones_or(own), *(one[5] for one in gathered)])
    degrees = row_sums(starts, data)[order]
    _write_sources(out, gathered, rank[len(own.nodes) :])
    own_places = rank[: len(own.nodes)]
    del gathered
    local = _loops.localize_rows(nodes, order, starts, columns, np.empty(0) if data is None else data)
    del columns, data, starts
    out.save("nodes", nodes)
    out.save("own", own_places)
    out.save("starts", local[0])
    out.save("columns", local[1])
    out.save("weights", local[2])
    if not unit or zone.normalized:
        out.save("degrees", degrees)
    matrix, layout = _matrix_and_layout(local, degrees, zone)
    _write_layout(out, layout)
    facts: dict[str, Any] = {"own": len(own_places), "rows": len(nodes), "entries": len(local[1]), "depth": depth}
    facts["degree_units"] = count_units(degrees[own_places], unit_above(zone.most_degree))
    return out.done({**facts, **_spectrum(matrix, layout, degrees, own_places, zone)})


def _layers(shelf: Shelf, part: int, own, zone: Zone) -> tuple[list[tuple], int]:
    """Rows of all ghosts, hop after hop; and how many hops there are. Neighbours of a hop lie in it, before it or after it."""
    gathered: list[tuple] = []
    before = np.empty(0, np.int32)
    here, count = _outside(shelf, part, np.asarray(own.columns)), 0
    for depth in range(zone.depth):
        if not len(here):
            return gathered, depth
        count += len(here)
        if count > zone.most_ghosts * max(len(own.nodes), 1):
            raise TooManyGhostsError(too_many(len(own.nodes), count, depth + 1, zone.depth, zone.most_ghosts))
        rows = shelf.gather(here)
        gathered += rows
        if depth + 1 == zone.depth:
            break
        near = [_outside(shelf, part, one[4]) for one in rows]
        new = np.setdiff1d(np.unique(np.concatenate(near)), here, assume_unique=True)
        before, here = here, np.setdiff1d(new, before, assume_unique=True)
    return gathered, zone.depth


def _outside(shelf: Shelf, part: int, columns: np.ndarray) -> np.ndarray:
    """Nodes among these that belong to other partitions, each once."""
    return np.unique(columns[shelf.owner[columns] != part])


def _ones_or(own) -> np.ndarray:
    return np.ones(len(own.columns)) if own.weights is None else np.asarray(own.weights)


def _joined_starts(parts: list[np.ndarray]) -> np.ndarray:
    lengths = np.concatenate([np.diff(part) for part in parts])
    return np.concatenate([[0], np.cumsum(lengths)])


def _write_sources(out: Output, gathered: list[tuple], rank: np.ndarray) -> None:
    """Which partitions the ghosts come from: their places there, and their local numbers."""
    owners = np.repeat([one[0] for one in gathered], [len(one[1]) for one in gathered]) if gathered else np.empty(0, np.int64)
    places = np.concatenate([one[2] for one in gathered]) if gathered else np.empty(0, np.int32)
    order = np.lexsort((places, owners))
    parts, starts = np.unique(owners[order], return_index=True)
    out.save("source_parts", parts.astype(np.int32))
    out.save("source_starts", np.append(starts, len(order)))
    out.save("source_places", places[order])
    out.save("ghosts", rank[order])


# ---- the partition as a graph ------------------------------------------------------------------------------------------


def _matrix_and_layout(local, degrees: np.ndarray, zone: Zone) -> tuple[SimpleNamespace, Layout]:
    """The weights of the partition, and its Laplacian as the kernels take it."""
    starts, columns, weights = local
    diagonal = degrees
    if zone.normalized:
        half = 1 / np.sqrt(np.where(degrees > 0, degrees, 1.0))
        data = weights if len(weights) else np.ones(len(columns))
        weights, diagonal = data * np.repeat(half, np.diff(starts)) * half[columns], (degrees > 0).astype(float)
    elif not len(weights):
        weights = np.ones(1 if zone.uniform else len(columns))
    matrix = SimpleNamespace(indptr=starts, indices=columns, data=weights, nnz=len(columns))
    return matrix, prepare(matrix, diagonal, uniform=zone.uniform)


_ARRAYS = ("order", "blocks", "block_runs", "runs", "indices", "values", "diagonal")


def _write_layout(out: Output, layout: Layout) -> None:
    for name in _ARRAYS:
        if getattr(layout, name) is not None:
            out.save(f"layout_{name}", getattr(layout, name))
    out.save("layout_rest", np.array([layout.uniform, float(layout.wavefront)]))


def _spectrum(matrix, layout: Layout, degrees: np.ndarray, own: np.ndarray, zone: Zone) -> dict[str, Any]:
    """Quotients whose largest over all partitions are those of the whole graph; and a lower bound on the largest eigenvalue.

    The partition with its zone is a part of the graph, and so its largest eigenvalue is at most that of the whole (Cauchy).
    """
    if matrix.nnz == 0:
        return {"quotients": [0.0], "eigenvalue": 0.0, "steps": 0}
    rows = (degrees > 0).astype(float)[layout.order] if zone.normalized else degrees[layout.order]
    top, steps = largest_eigenvalue(layout, rows, tolerance=TOLERANCE, enough=zone.enough)
    quotients = np.zeros(1)
    if not zone.normalized:
        mine = np.zeros(len(rows), dtype=bool)
        mine[own] = True
        quotients = signless_quotients(layout, matrix, rows, largest=zone.most_degree, rows=mine[layout.order])
    return {"quotients": quotients.tolist(), "eigenvalue": top, "steps": steps}


class Part:
    """A partition with its ghost zone, from its files; what kernels and frames ask of a graph."""

    def __init__(self, work: Path, part: int):
        self.work, self.part = work, part
        self.files = Output(part_folder(work, part), "zone")
        self.nodes = self.files.load("nodes")
        self.own = self.files.load("own")
        self._layout: Layout | None = None

    @property
    def n(self) -> int:
        return len(self.nodes)

    def layout(self, kind: str) -> Layout:
        """Of the Laplacian it was prepared for."""
        if self._layout is None:
            parts: dict[str, Any] = {
                name: self.files.load(f"layout_{name}") if self.files.path(f"layout_{name}").exists() else None for name in _ARRAYS
            }
            uniform, wavefront = self.files.load("layout_rest")
            self._layout = Layout(**parts, uniform=float(uniform), wavefront=bool(wavefront))
        return self._layout

    @cached_property
    def adjacency(self) -> SimpleNamespace:
        """Rows with local neighbours, cut short at the rim."""
        starts, columns, data = (self.files.load(name) for name in ("starts", "columns", "weights"))
        return SimpleNamespace(indptr=starts, indices=columns, data=data if len(data) else np.ones(len(columns)))

    @cached_property
    def degrees(self) -> np.ndarray:
        """True ones, but for rows at the rim where all weights are 1."""
        if self.files.path("degrees").exists():
            return self.files.load("degrees")
        return np.diff(self.adjacency.indptr).astype(np.float64)

    def fill(self, target: np.ndarray, folder_of, stage: str, name: str, row: int = 0) -> np.ndarray:
        """Rows (k, n) of owned nodes and ghosts from the files (rows, owned) of the partitions that own them, from that row on."""
        sources, starts, places, ghosts = self._sources
        mine, *others = (Output(folder_of(int(part)), stage).load(name, whole=False) for part in (self.part, *sources))
        for j in range(len(target)):
            target[j, self.own] = mine[row + j]
            for k, other in enumerate(others):
                some = slice(starts[k], starts[k + 1])
                target[j, ghosts[some]] = other[row + j][places[some]]
        return target

    @cached_property
    def _sources(self) -> tuple[np.ndarray, ...]:
        names = ("source_parts", "source_starts", "source_places", "ghosts")
        return tuple(self.files.load(name) for name in names)

    def forget(self) -> None:
        """Give back the memory of the layout."""
        self._layout = None
