"""From edges to partitions with their ghost zones, and to the frame: everything that does not depend on the signal."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
from scipy import sparse

from hushgraph._errors import InputError, InputTypeError, Sentence
from hushgraph.adjacency import MAX_NODES, Duplicates
from hushgraph.checks import checked_count, checked_number, choose, shown
from hushgraph.distributed import edges as edge_files
from hushgraph.distributed.bounds import spectrum_of
from hushgraph.distributed.cut import By, Nodes, cut_for, sample_of, write_owners
from hushgraph.distributed.ghosts import Zone, grow
from hushgraph.distributed.rows import build_rows, sort_piece, write_part_rows
from hushgraph.distributed.runner import Runner
from hushgraph.distributed.sample import refuse_small_worlds
from hushgraph.distributed.size import Method, memory_of, partitions_for
from hushgraph.distributed.store import (
    VERSION,
    Output,
    hash_of,
    is_draft,
    local_folder,
    locked,
    manifest_of,
    part_folder,
    read_array,
    read_json,
    remove_drafts,
    write_array,
    write_json,
)
from hushgraph.frame import Damping, frame_of, unit_of
from hushgraph.graph import Graph
from hushgraph.partition import Plateau, checked_base, last_step_below
from hushgraph.progress import Watcher, checked_watcher, reached, watching
from hushgraph.spectrum import REACH
from hushgraph.sums import sum_of_units, unit_above

MOST_GHOSTS = 3.0  # per owned node, above which partitions do not pay
BEGUN = "preparing.json"  # what is being prepared
MANY_LINKED = 0.9  # share of the nodes with edges, below which it is said
REFUSED = "refused.json"  # in a folder whose preparation cannot be: it gives way to another
STAGES = {"sort": 2.0, "rows": 2.0, "zones": 6.0}  # shares of the time, roughly
Laplacian = Any


@dataclass(frozen=True)
class Prepared:
    """A prepared folder: what `denoise` takes.

    `lambda_max` decides the number of scales: it is what was given, or a lower bound on the largest eigenvalue that is close enough for
    that; `lambda_max_from` says how it was found.
    """

    folder: Path
    n: int
    n_edges: int
    partitions: int
    growth: float
    n_scales: int
    lambda_max: float
    lambda_upper: float
    lambda_max_from: str
    notes: tuple[str, ...]
    timings: dict[str, float]
    dashboard: str | None = None


def prepare(
    edges,
    workdir,
    *,
    n: int | None = None,
    coords=None,
    partitions: int | None = None,
    by: By | None = None,
    memory=None,
    method: str = "sgwt_scaled",
    degree: int = 100,
    damping: Damping | None = "jackson",
    base: float = 2.0,
    plateau: Plateau = "linear",
    n_scales: int | None = None,
    lambda_max: float | None = None,
    laplacian: Laplacian = "combinatorial",
    weight: str | bool | None = None,
    duplicates: Duplicates = "error",
    most_ghosts: float | None = None,
    client=None,
    progress: Watcher | None = None,
) -> Prepared:
    """Cut a graph into partitions with ghost zones, in files; a call that was killed goes on where it was.

    Parameters
    ----------
    edges : Graph, (m, 2) array, sparse matrix, or str, Path or list of them
        A graph in memory, its edges as pairs of node numbers, or its adjacency matrix; or parquet files with columns source and target (node
        numbers from 0) and possibly weight: a file, a pattern, a folder, an address that fsspec knows.
    workdir : str or Path
        Where all files go: a folder that every worker sees.
    n : int, optional
        Number of nodes, where the last ones have no edges.
    coords : (n, 2) or (n, 3) array, or a .npy file, optional
        Places of the nodes: partitions become boxes, which have the smallest ghost zones.
    partitions : int, optional
        How many; by default as many as the memory asks for, of at most 5 million nodes each.
    by : {"coordinates", "ordering", "rcm"}, optional
        Boxes of coordinates, ranges of node numbers, or (a graph in memory) ranges of the reverse Cuthill-McKee order.
    memory : str or float, optional
        What one task may take, such as "3GB"; by default that of the smallest worker.
    method : str
        The method that tasks must have room for; "let" and "auto" take several times as much as the others.
    degree, damping, base, plateau, n_scales, laplacian
        As in `chebyshev_frame`; the Laplacian is "combinatorial" or "normalized".
    lambda_max : float, optional
        The largest eigenvalue, where it is known; it decides the number of scales.
    most_ghosts : float, optional
        Ghosts per owned node above which the graph is refused; by default 3, or three quarters of all other nodes.
    client : distributed.Client, optional
        Whose workers run the tasks; None: this process runs them one after the other.
    """
    choose("method", method, get_args(Method))
    settings = _Settings(
        checked_count("degree", degree, 1), choose("damping", damping, (*get_args(Damping), None)), checked_base(base),
        choose("plateau", plateau, get_args(Plateau)), None if n_scales is None else checked_count("n_scales", n_scales, 1),
        None if lambda_max is None else checked_number("lambda_max", lambda_max, "a number above 0", above=0),
        choose("laplacian", laplacian, ("combinatorial", "normalized")), str(weight), choose("duplicates", duplicates, get_args(Duplicates)),
        None if most_ghosts is None else checked_number("most_ghosts", most_ghosts, "a number above 0", above=0),
    )  # fmt: skip
    with watching(checked_watcher(progress)):
        job = _Job.of(edges, local_folder(workdir), n, coords, partitions, by, memory_of(memory, client), settings, weight, method)
        if (known := job.known()) is None:
            job.look()
            with locked(job.work):
                job.begin()
                if (known := job.known()) is None:
                    runner = Runner(client, STAGES if job.graph is None else {"zones": 1.0}, job.work / BEGUN)
                    known = _worked_out(job, runner)
        reached(1.0, "zones")
        return known


def _worked_out(job: _Job, runner: Runner) -> Prepared:
    """All stages that are not done yet."""
    remove_drafts(_folders(job))
    try:
        rows = _rows_of_graph(job) if job.graph is not None else _rows_of_files(job, runner)
        zone = _zone(rows, job)
        zones = runner.run("zones", grow, [(job.root, part, zone) for part in range(job.parts)])
        found = _finished(job, rows, zones, zone, runner)
    except ValueError:
        write_json(job.work / REFUSED, {})
        raise
    remove_drafts(_folders(job))
    return found


def _folders(job: _Job) -> list[Path]:
    """Where files are written."""
    return [job.work, job.root, *job.root.glob("parts/*"), *job.root.glob("pieces/*")]


def prepared(workdir) -> Prepared:
    """What a prepared folder holds."""
    work, found = local_folder(workdir), manifest_of(workdir)
    names = ("n", "n_edges", "partitions", "growth", "n_scales", "lambda_max", "lambda_upper", "lambda_max_from", "timings")
    return Prepared(folder=work, notes=tuple(found["notes"]), **{name: found[name] for name in names})


@dataclass(frozen=True)
class _Settings:
    """Everything but the data, as the manifest keeps it."""

    degree: int
    damping: Damping | None
    base: float
    plateau: Plateau
    n_scales: int | None
    lambda_max: float | None
    laplacian: str
    weight: str
    duplicates: Duplicates
    most_ghosts: float | None

    @property
    def depth(self) -> int:
        """Hops that the polynomials, the bound on the spectrum and the surroundings of nodes reach."""
        return max(self.degree, REACH)


@dataclass(frozen=True, eq=False)
class _Job:
    """One call of `prepare`, checked against what the folder holds."""

    work: Path
    graph: Graph | None
    files: list
    columns: Any
    n: int
    parts: int
    by: By
    settings: _Settings
    memory: float | None
    coords: Any
    owners: Callable[[Nodes], np.ndarray]
    stated: dict[str, Any]

    @classmethod
    def of(cls, edges, work: Path, n, coords, partitions, by, memory, settings: _Settings, weight, method) -> _Job:
        coords = coords_of(coords)
        graph, pieces, columns = graph_or_files(edges, weight, n, coords)
        coords = graph.coords if graph is not None and coords is None else coords
        n = graph.n if graph is not None else count_nodes(n, pieces, columns, coords)
        if n == 0:
            msg = "the graph has no nodes: there is nothing to prepare"
            raise InputError(msg)
        entries = graph.adjacency.nnz if graph is not None else 2 * sum(piece[3] for piece in pieces)
        weighted = columns.weight is not None if graph is None else not graph.is_unweighted
        asked = partitions_for(n, entries, weighted, method, memory, settings.n_scales) if partitions is None else partitions
        parts = checked_count("partitions", asked, 1, n)
        by, owners = cut_for(by, n, parts, coords, graph)
        source = graph.hash if graph is not None else _identities(pieces)
        places = hashlib.sha256(sample_of(coords, n).tobytes()).hexdigest()[:16] if by == "coordinates" else None
        stated = {"version": VERSION, "n": n, "partitions": parts, "by": by, "source": source, "places": places, **asdict(settings)}
        return cls(work, graph, pieces, columns, n, parts, by, settings, memory, coords, owners, json.loads(json.dumps(stated)))

    @property
    def root(self) -> Path:
        """Where the graph goes, named by all that it depends on: tasks of another preparation that still run somewhere write elsewhere."""
        facts = {name: value for name, value in self.stated.items() if name != "most_ghosts"}
        return self.work / f"graph-{hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]}"

    @property
    def most_ghosts(self) -> float:
        return most_ghosts_of(self.parts, self.settings.most_ghosts)

    def known(self) -> Prepared | None:
        """What the folder holds, if this work is done there."""
        _changed(self.work, self.stated)
        return prepared(self.work) if read_json(self.work / "manifest.json") is not None else None

    def look(self) -> None:
        """Refuse small worlds before anything is written."""
        if self.graph is None and _changed(self.work, self.stated) is None:
            args = self.coords, self.by, self.owners, self.parts, self.settings.depth, self.most_ghosts, self.memory
            refuse_small_worlds(self.files, self.columns, self.n, *args)

    def begin(self) -> None:
        """Say in the folder what is prepared there. Nobody else works in it now, but somebody may have since it was looked at."""
        changed = _changed(self.work, self.stated)
        if changed is None or changed:
            write_json(self.work / BEGUN, self.stated)
        for other in set(self.work.glob("graph-*")) - {self.root}:  # of a preparation that was refused
            shutil.rmtree(other, ignore_errors=True)
        if not (self.root / "owner.npy").exists():
            write_owners(self.root / "owner.npy", self.n, self.parts, self.owners)
        (self.work / REFUSED).unlink(missing_ok=True)


def graph_or_files(edges, weight, n, coords) -> tuple[Graph | None, list, Any]:
    """(graph, [], None) of what is in memory, or (None, pieces of edge files, their columns)."""
    if isinstance(edges, Graph):
        return edges, [], None
    if sparse.issparse(edges):
        return Graph.from_scipy(edges, coords=coords), [], None
    if edge_files.are_files(edges):
        files = edge_files.files_of(edges)
        return None, edge_files.pieces_of(files), edge_files.columns_of(files, weight)
    if not (isinstance(edges, np.ndarray) or (isinstance(edges, list | tuple) and edges)):
        msg = (
            "edges must be a Graph, (m, 2) node numbers, a sparse matrix, or parquet files: a path, pattern, folder, address or a list of "
            f"them; got {shown(edges)}"
        )
        raise InputTypeError(msg)
    if weight:
        msg = f"weight={weight!r} names a column of edge files; pairs of node numbers have none; pass a sparse matrix or a Graph with weights"
        raise InputError(msg)
    return Graph.from_edges(edges, n=n, coords=coords), [], None


def _identities(pieces) -> list:
    """The edge files with their numbers of rows, such that files that were replaced are noticed."""
    rows: dict[str, int] = {}
    for path, *_, count in pieces:
        rows[path] = rows.get(path, 0) + count
    return [[*edge_files.identity_of(path), count] for path, count in rows.items()]


def count_nodes(n, pieces, columns, coords) -> int:
    least = edge_files.largest_node(pieces, columns) + 1
    if least > MAX_NODES:
        msg = (
            f"the edges name node {least - 1}; expected numbers from 0 to at most {MAX_NODES - 1}, without gaps; renumber the nodes"
        )
        raise InputError(msg)
    edges = sum(piece[3] for piece in pieces)
    if n is None and coords is None and least > 4 * max(edges, 1):
        msg = (
            "the edges name node {}, but they are only {:,}: most nodes between have none; renumber the nodes without gaps, or say {n=}{} if "
            "that is meant"
        )
        raise InputError(Sentence(msg, least - 1, edges, least))
    n = (least if coords is None else len(coords)) if n is None else n
    return checked_count("n", n, least, MAX_NODES, note=f" (the edges name node {least - 1})")


def coords_of(coords):
    """Places in memory, or mapped."""
    if not isinstance(coords, str | Path):
        return None if coords is None else np.asarray(coords)
    try:
        return read_array(Path(coords), whole=False)
    except (ValueError, EOFError) as error:
        msg = "{coords} must be a .npy file with two or three numbers for each node; {} is none; save them with numpy.save"
        raise InputError(Sentence(msg, coords)) from error


def _changed(work: Path, stated: dict[str, Any]) -> list[str] | None:
    """What differs from what was begun in the folder, and refused; None if nothing was begun. Two preparations are never mixed."""
    begun = read_json(work / BEGUN)
    if begun is None:
        if work.exists() and any(path.name != "lock" and not is_draft(path) for path in work.iterdir()):
            msg = "{workdir} must be a new or empty folder, or one that {prepare()} began; {} holds other files"
            raise InputError(Sentence(msg, work))
        return None
    other = sorted(name for name in stated if begun.get(name) != stated[name])
    if other and ((work / "manifest.json").exists() or not (work / REFUSED).exists()):
        why = " (source: other edges, or edge files that changed since)" if "source" in other else ""
        msg = f"{work} holds another preparation: {', '.join(other)} differ{why}; choose another folder, or remove this one"
        raise InputError(msg)
    return other


def _rows_of_graph(job: _Job) -> list[dict[str, Any]]:
    """Rows of a graph in memory."""
    graph, owner, found = cast(Graph, job.graph), read_array(job.root / "owner.npy"), []
    matrix = graph.adjacency
    for part in range(job.parts):
        out = Output(part_folder(job.root, part), "rows")
        if (known := out.known()) is None:
            nodes = np.flatnonzero(owner == part)
            rows = matrix[nodes]
            known = write_part_rows(out, nodes, rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data)
        found.append(known)
    return found


def _rows_of_files(job: _Job, runner: Runner) -> list[dict[str, Any]]:
    """Rows of edge files; the sorted pieces go when all rows are there."""
    outputs = [Output(part_folder(job.root, part), "rows") for part in range(job.parts)]
    if any(out.known() is None for out in outputs):
        jobs: list[tuple] = [(job.root, k, piece, job.columns, job.n, job.parts) for k, piece in enumerate(job.files)]
        runner.run("sort", sort_piece, jobs)
    weighted = job.columns.weight is not None
    parts = [(job.root, part, len(job.files), weighted, job.settings.duplicates) for part in range(job.parts)]
    rows = runner.run("rows", build_rows, parts)
    for k in range(len(job.files)):
        Output(job.root / "pieces" / f"{k:06d}", "sorted").remove()
    return rows


def _zone(rows: list[dict[str, Any]], job: _Job) -> Zone:
    settings = job.settings
    lightest, heaviest = min(row["lightest"] for row in rows), max(row["heaviest"] for row in rows)
    least, most = min(row["least_degree"] for row in rows), max(row["most_degree"] for row in rows)
    normalized = settings.laplacian == "normalized"
    uniform = lightest >= heaviest and (not normalized or least >= most)
    unweighted = lightest >= 1.0 >= heaviest
    enough = last_step_below(2 * most, settings.base) if unweighted and not normalized else np.inf
    return Zone(settings.depth, job.most_ghosts, uniform, normalized, most, enough)


def most_ghosts_of(parts: int, asked: float | None = None) -> float:
    """Ghosts per owned node that are allowed: as asked, or until partitions do not pay, hold most of the graph or cost a multiple of it."""
    if asked is not None:
        return asked
    return min(MOST_GHOSTS, 0.75 * (parts - 1)) if parts > 1 else MOST_GHOSTS


def _finished(job: _Job, rows, zones, zone: Zone, runner: Runner) -> Prepared:
    """The frame and the manifest."""
    settings, entries = job.settings, sum(row["entries"] for row in rows)
    lightest, heaviest = min(row["lightest"] for row in rows), max(row["heaviest"] for row in rows)
    unweighted = lightest >= 1.0 >= heaviest
    unit = unit_above(zone.most_degree)
    high, low = (sum(one["degree_units"][k] for one in zones) for k in (0, 1))
    total = sum_of_units(high, low, unit)
    scaling = 1.0 if unweighted or zone.normalized else unit_of(total, job.n)
    spectrum, notes = spectrum_of(rows, zones, zone, settings, entries, scaling)
    linked = sum(row["linked"] for row in rows)
    if linked < MANY_LINKED * job.n:
        notes.append(f"{job.n - linked:,} of {job.n:,} nodes have no edges; if node numbers have gaps, renumber them")
    bands = (settings.base, settings.plateau, None, 0, settings.n_scales)
    stand_in = cast(Graph, None)
    frame = frame_of(stand_in, spectrum, scaling, cast(Any, settings.laplacian), settings.degree, settings.damping, bands)
    write_array(job.root / "frame.npy", frame.coefficients, safe=True)
    fingerprint = sum(row["fingerprint"] for row in rows) % 2**64
    facts = {
        **json.loads(json.dumps(asdict(settings))),
        "version": VERSION, "folder": job.root.name, "n": job.n, "n_edges": entries // 2, "partitions": job.parts, "by": job.by,
        "growth": sum(one["rows"] for one in zones) / job.n, "largest_zone": max(one["rows"] for one in zones),
        "n_scales": frame.n_scales, "lambda_max": scaling * spectrum.lambda_max, "lambda_upper": frame.lambda_upper, "unit": scaling,
        "lambda_max_from": spectrum.lambda_max_from, "lambda_upper_from": spectrum.lambda_upper_from,
        "unweighted": unweighted, "mean_degree": total / job.n or 1.0, "most_degree": zone.most_degree,
        "linked": linked, "graph_hash": f"{job.n}-{entries}-{fingerprint:016x}",
        "signal_hash": None if job.graph is None else job.graph.hash,
        "partition_hash": hash_of(job.root / "owner.npy"), "notes": notes, "memory": job.memory, "timings": runner.timings,
    }  # fmt: skip
    for folder in (job.root, job.work):  # for tasks; and, when all is there, for everybody
        write_json(folder / "manifest.json", facts)
    found = prepared(job.work)
    return Prepared(**{**found.__dict__, "dashboard": runner.dashboard})
