"""Preparing a graph: partitions with their ghost zones, and the frame. Nothing here depends on a signal."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph._progress import Progress, reached, watching
from hushgraph._validation import checked_count, checked_number, choose
from hushgraph.core import sum_of_units, unit_above
from hushgraph.distributed.adjacency_rows import build_rows, sort_piece, write_part_rows
from hushgraph.distributed.cost_model import DISTRIBUTED, partitions_for, task_memory
from hushgraph.distributed.ghost_estimate import refuse_small_worlds
from hushgraph.distributed.ghosts import Part, ZoneSettings, grow_zone
from hushgraph.distributed.partitioning import (
    By,
    Owners,
    cut_for,
    has_owners,
    owner_dtype,
    read_owners,
    sample_points,
    write_owners,
)
from hushgraph.distributed.runner import Runner
from hushgraph.distributed.sources import Coords, FileSource, GraphSource, Source, open_source
from hushgraph.distributed.spectrum import spectrum_of
from hushgraph.distributed.store import (
    VERSION,
    Output,
    Place,
    checked_manifest,
    file_hash,
    folder_lock,
    is_draft,
    is_lock,
    part_folder,
    pieces,
    read_json,
    remove_drafts,
    remove_tree,
    work_folder,
    write_array,
    write_json,
)
from hushgraph.graphs import REACH, Duplicates
from hushgraph.wavelets import Damping, Plateau, checked_base, frame_of, last_step_below, unit_of

MOST_GHOSTS = 3.0  # ghosts per owned node above which partitions do not pay
BEGUN = "preparing.json"  # the file that states what is prepared in a folder
MANY_LINKED = 0.9  # share of the nodes with edges below which a note is made
REFUSED = "refused.json"  # the file that marks a refused preparation: another one may take its folder
STAGES = {"sort": 2.0, "rows": 2.0, "zones": 6.0}  # rough shares of the time
Laplacian = Literal["combinatorial", "normalized"]  # those of `Graph` whose matrix is symmetric


@dataclass(frozen=True)
class Prepared:
    """A prepared graph in a work folder.

    Parameters
    ----------
    folder : Path or StoredPath
        The work folder, for `denoise`.
    n : int
        Number of nodes.
    n_edges : int
        Number of undirected edges.
    partitions : int
        Number of partitions.
    growth : float
        Mean number of rows, ghosts included, per owned node.
    n_scales : int
        Number of scales of the frame.
    lambda_max : float
        The value that decides the number of scales: as given, or a lower bound on the largest eigenvalue, close enough for that.
    lambda_upper : float
        A proven upper bound on the eigenvalues, which ends the Chebyshev interval.
    lambda_max_from : str
        How `lambda_max` was obtained.
    notes : tuple of str
        What a user should know, such as many nodes without edges.
    timings : dict of str to float
        Seconds of each stage.
    dashboard : str, optional
        Address of the Dask dashboard.
    """

    folder: Place
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
    edges: Any,
    workdir: str | Place,
    *,
    n: int | None = None,
    coords: Coords = None,
    partitions: int | None = None,
    by: By | None = None,
    memory: str | float | None = None,
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
    client: Any = None,
    progress: Progress = None,
) -> Prepared:
    """Cut a graph into partitions with ghost zones, in files; the same call continues the work of one that was killed.

    Parameters
    ----------
    edges : Graph, (m, 2) array, sparse matrix, or str, Path or list of them
        A graph in memory, its edges as pairs of node numbers, or its adjacency matrix; or parquet files with columns source and target (node
        numbers from 0) and possibly weight: a file, a pattern, a folder, or an address that fsspec knows.
    workdir : str, Path or StoredPath
        The folder for all files: a new or empty one that every worker sees, or an address in an object store, such as s3://bucket/folder.
    n : int, optional
        Number of nodes, where the last ones have no edges.
    coords : (n, 2) or (n, 3) array, or a .npy file, optional
        Places of the nodes: partitions become boxes, which have the smallest ghost zones.
    partitions : int, optional
        Number of partitions; by default as many as the memory requires, of at most 5 million nodes each.
    by : {"coordinates", "ordering", "rcm"}, optional
        Boxes of coordinates, ranges of node numbers, or (a graph in memory) ranges of the reverse Cuthill-McKee order.
    memory : str or float, optional
        Bytes that one task may take, such as "3GB"; by default those of the smallest worker.
    method : {"auto", "let", "counts", "sgwt_sure", "sgwt_scaled"}
        The method whose tasks must fit into the memory; "let", "auto" and "counts" take several times as much as the others.
    degree : int
        Degree of the polynomials: the ghost zones are as deep.
    damping : {"jackson", None}
        Damping of the polynomials, as in `chebyshev_frame`.
    base : float
        Ratio between scales, as in `chebyshev_frame`.
    plateau : {"linear", "smooth", "c3", "meyer"}
        The function omega, as in `chebyshev_frame`.
    n_scales : int, optional
        Number of scales, as in `chebyshev_frame`.
    lambda_max : float, optional
        The largest eigenvalue, where it is known; it decides the number of scales.
    laplacian : {"combinatorial", "normalized"}
        The Laplacian of the frame.
    weight : str or bool, optional
        Column of the weights in edge files; by default "weight", if there is one. False: every edge weighs 1.
    duplicates : {"error", "sum", "max"}
        What to do with edges that are given more than once with unequal weights.
    most_ghosts : float, optional
        Ghosts per owned node above which the graph is refused; by default 3, or three quarters of all other nodes.
    client : distributed.Client, optional
        The client whose workers run the tasks; None: this process runs them one after the other.
    progress : True or callable, optional
        True shows a bar, on a terminal or in a notebook. A function is called with the share of the work that is done, from 0 to 1, and the name of the stage.

    Returns
    -------
    Prepared
        Facts of the prepared graph; `denoise` takes the folder.

    Raises
    ------
    TooManyGhostsError
        If ghost zones are too large, as in a small world (a random or a scale-free graph). It is a ValueError.

    Examples
    --------
    >>> import tempfile
    >>> import hushgraph as hg
    >>> graph = hg.datasets.grid(60, 60)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     prepared = hg.distributed.prepare(graph, folder, partitions=2, degree=20)
    >>> prepared.partitions, prepared.n_scales
    (2, 5)
    """
    choose("method", method, DISTRIBUTED)
    settings = _Settings(
        checked_count("degree", degree, 1), choose("damping", damping, (*get_args(Damping), None)), checked_base(base),
        choose("plateau", plateau, get_args(Plateau)), None if n_scales is None else checked_count("n_scales", n_scales, 1),
        None if lambda_max is None else checked_number("lambda_max", lambda_max, "a number above 0", above=0),
        choose("laplacian", laplacian, ("combinatorial", "normalized")), str(weight), choose("duplicates", duplicates, get_args(Duplicates)),
        None if most_ghosts is None else checked_number("most_ghosts", most_ghosts, "a number above 0", above=0),
    )  # fmt: skip
    with watching(progress):
        work, cap = work_folder(workdir), task_memory(memory, client)
        job = _Job.of(open_source(edges, weight, n, coords, purpose="prepare"), work, partitions, by, cap, settings, method)
        if (result := job.read_result()) is None:
            job.refuse_small_world()
            with folder_lock(job.work):
                job.begin()
                if (result := job.read_result()) is None:  # another process may have finished the work before the lock
                    stages = STAGES if isinstance(job.source, FileSource) else {"zones": 1.0}
                    result = _run_stages(job, Runner(client, stages, job.work / BEGUN))
        reached(1.0, "zones")
        return result


def _run_stages(job: _Job, runner: Runner) -> Prepared:
    """Run all stages that are not finished yet."""
    remove_drafts(_folders(job))
    try:
        source = job.source
        rows = _rows_of_graph(job, source) if isinstance(source, GraphSource) else _rows_of_files(job, source, runner)
        zone = zone_settings(rows, job.settings, job.most_ghosts)
        zones = runner.run("zones", grow_zone, [(job.root, part, zone) for part in range(job.parts)])
        prepared = _write_manifest(job, rows, zones, zone, runner)
    except ValueError:
        write_json(job.work / REFUSED, {})
        raise
    remove_drafts(_folders(job))
    return prepared


def _folders(job: _Job) -> list[Place]:
    """Return the folders that tasks write to."""
    return [job.work, job.root, *job.root.glob("parts/*"), *job.root.glob("pieces/*")]


def read_prepared(workdir: str | Place) -> Prepared:
    """Return the facts of a prepared folder."""
    work, manifest = work_folder(workdir), checked_manifest(workdir)
    names = ("n", "n_edges", "partitions", "growth", "n_scales", "lambda_max", "lambda_upper", "lambda_max_from", "timings")
    return Prepared(folder=work, notes=tuple(manifest["notes"]), **{name: manifest[name] for name in names})


@dataclass(frozen=True)
class _Settings:
    """The settings of a preparation, as the manifest states them."""

    degree: int
    damping: Damping | None
    base: float
    plateau: Plateau
    n_scales: int | None
    lambda_max: float | None
    laplacian: Laplacian
    weight: str
    duplicates: Duplicates
    most_ghosts: float | None

    @property
    def depth(self) -> int:
        """Hops of the ghost zones: the reach of the polynomials, of the bound on the spectrum and of the features of nodes."""
        return max(self.degree, REACH)


@dataclass(frozen=True, eq=False)
class _Job:
    """One call of `prepare`; `stated` is all that its result depends on."""

    work: Place
    source: Source
    parts: int
    by: By
    settings: _Settings
    memory: float | None
    owners: Owners
    stated: dict[str, Any]

    @classmethod
    def of(
        cls,
        source: Source,
        work: Place,
        partitions: int | None,
        by: By | None,
        memory: float | None,
        settings: _Settings,
        method: str,
    ) -> _Job:
        """Return the job with its number of partitions and its cut."""
        n, coords = source.n, source.coords
        parts = partitions
        if parts is None:
            parts = partitions_for(n, 2 * source.n_edges, source.is_weighted, method, memory, settings.n_scales)
        parts = checked_count("partitions", parts, 1, n)
        by, owners = cut_for(by, n, parts, coords, source.graph if isinstance(source, GraphSource) else None)
        places = None
        if by == "coordinates" and coords is not None:
            places = hashlib.sha256(sample_points(coords, n).tobytes()).hexdigest()[:16]
        stated = {"version": VERSION, "n": n, "partitions": parts, "by": by, "source": source.identity, "places": places}
        stated = json.loads(json.dumps({**stated, **asdict(settings)}))
        return cls(work, source, parts, by, settings, memory, owners, stated)

    @property
    def root(self) -> Place:
        """The folder of the graph, named by all that it depends on: tasks of another preparation that still run write to another one."""
        facts = {name: value for name, value in self.stated.items() if name != "most_ghosts"}
        return self.work / f"graph-{hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]}"

    @property
    def most_ghosts(self) -> float:
        """Ghosts per owned node that are allowed."""
        return most_ghosts_of(self.parts, self.settings.most_ghosts)

    def read_result(self) -> Prepared | None:
        """Return the facts of the folder, if this preparation is finished there."""
        _differences(self.work, self.stated)
        return read_prepared(self.work) if read_json(self.work / "manifest.json") is not None else None

    def refuse_small_world(self) -> None:
        """Refuse edge files of a small world before anything is written; a preparation that was begun is not looked at again."""
        if isinstance(self.source, FileSource) and _differences(self.work, self.stated) is None:
            refuse_small_worlds(self.source, self.by, self.owners, self.parts, self.settings.depth, self.most_ghosts, self.memory)

    def begin(self) -> None:
        """State in the locked folder what is prepared there; another process may have taken the folder before the lock."""
        changed = _differences(self.work, self.stated)
        if changed is None or changed:
            write_json(self.work / BEGUN, self.stated)
        others: list[Place] = [*self.work.glob("graph-*")]
        for other in others:
            if other != self.root:  # of a preparation that was refused
                remove_tree(other)
        if not has_owners(self.root):
            owners = (self.owners(nodes) for nodes in pieces(self.source.n))
            write_owners(self.root, self.source.n, owner_dtype(self.parts), owners)
        (self.work / REFUSED).unlink(missing_ok=True)


def _differences(work: Place, stated: dict[str, Any]) -> list[str] | None:
    """Return what differs from a refused preparation that was begun in the folder; None if nothing was begun there.

    A folder with another preparation that was not refused raises an error: two preparations are never mixed.
    """
    begun = read_json(work / BEGUN)
    if begun is None:
        if work.exists() and any(not is_lock(path) and not is_draft(path) for path in work.iterdir()):
            msg = "{workdir} must be a new or empty folder, or one that {prepare()} began; {} holds other files"
            raise InputError(Sentence(msg, work))
        return None
    other = sorted(name for name in stated if begun.get(name) != stated[name])
    if other and ((work / "manifest.json").exists() or not (work / REFUSED).exists()):
        why = " (source: other edges, or edge files that changed since)" if "source" in other else ""
        msg = f"{work} holds another preparation: {', '.join(other)} differ{why}; choose another folder, or remove this one"
        raise InputError(msg)
    return other


def _rows_of_graph(job: _Job, source: GraphSource) -> list[dict[str, Any]]:
    """Write the rows of a graph in memory, and return the facts of each partition."""
    owner, facts_of_parts = read_owners(job.root, whole=True), []
    matrix = source.graph.adjacency
    for part in range(job.parts):
        out = Output(part_folder(job.root, part), "rows")
        if (facts := out.read_facts()) is None:
            nodes = np.flatnonzero(owner == part)
            rows = matrix[nodes]
            facts = write_part_rows(out, nodes, rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data)
        facts_of_parts.append(facts)
    return facts_of_parts


def _rows_of_files(job: _Job, source: FileSource, runner: Runner) -> list[dict[str, Any]]:
    """Write the rows of edge files, and return the facts of each partition; the sorted pieces are removed afterwards."""
    outputs = [Output(part_folder(job.root, part), "rows") for part in range(job.parts)]
    if any(out.read_facts() is None for out in outputs):
        columns = source.columns
        runner.run(
            "sort", sort_piece, [(job.root, k, piece, columns, source.n, job.parts) for k, piece in enumerate(source.pieces)]
        )
    count, duplicates = len(source.pieces), job.settings.duplicates
    rows = runner.run("rows", build_rows, [(job.root, part, count, source.is_weighted, duplicates) for part in range(job.parts)])
    for k in range(count):
        Output(job.root / "pieces" / f"{k:06d}", "sorted").remove()
    return rows


def zone_settings(rows: list[dict[str, Any]], settings: _Settings, most_ghosts: float) -> ZoneSettings:
    """Return the settings of the ghost zones, from the facts of all partitions."""
    lightest, heaviest = min(row["lightest"] for row in rows), max(row["heaviest"] for row in rows)
    least, most = min(row["least_degree"] for row in rows), max(row["most_degree"] for row in rows)
    normalized = settings.laplacian == "normalized"
    uniform = lightest >= heaviest and (not normalized or least >= most)
    unweighted = lightest >= 1.0 >= heaviest
    enough = last_step_below(2 * most, settings.base) if unweighted and not normalized else np.inf
    return ZoneSettings(settings.depth, most_ghosts, uniform, normalized, most, enough)


def most_ghosts_of(parts: int, asked: float | None = None) -> float:
    """Return the ghosts per owned node that are allowed: as asked, or as many as partitions pay for.

    Few partitions do not pay if each holds most of the graph: three quarters of all other nodes are allowed.
    """
    if asked is not None:
        return asked
    return min(MOST_GHOSTS, 0.75 * (parts - 1)) if parts > 1 else MOST_GHOSTS


def _write_manifest(
    job: _Job, rows: list[dict[str, Any]], zones: list[dict[str, Any]], zone: ZoneSettings, runner: Runner
) -> Prepared:
    """Write the frame and the manifest, from the facts of all rows and zones."""
    n, settings, facts = job.source.n, job.settings, write_frame(job.root, job.source.n, job.settings, rows, zones, zone)
    fingerprint, entries = sum(row["fingerprint"] for row in rows) % 2**64, 2 * facts["n_edges"]
    if facts["linked"] < MANY_LINKED * n:
        facts["notes"].append(f"{n - facts['linked']:,} of {n:,} nodes have no edges; if node numbers have gaps, renumber them")
    manifest = {
        **json.loads(json.dumps(asdict(settings))), **facts,
        "version": VERSION, "folder": job.root.name, "partitions": job.parts, "by": job.by,
        "graph_hash": f"{n}-{entries}-{fingerprint:016x}",
        "signal_hash": job.source.graph.hash if isinstance(job.source, GraphSource) else None,
        "partition_hash": file_hash(job.root / "owner.npy"), "memory": job.memory, "timings": runner.timings,
    }  # fmt: skip
    for folder in (job.root, job.work):  # the first is read by tasks; the second says that the folder is prepared
        write_json(folder / "manifest.json", manifest)
    return replace(read_prepared(job.work), dashboard=runner.dashboard)


def write_frame(
    root: Place, n: int, settings: _Settings, rows: list[dict[str, Any]], zones: list[dict[str, Any]], zone: ZoneSettings
) -> dict[str, Any]:
    """Write the frame into the folder of a graph; return facts of the graph, its spectrum and its zones for the manifest, with notes."""
    entries = sum(row["entries"] for row in rows)
    lightest, heaviest = min(row["lightest"] for row in rows), max(row["heaviest"] for row in rows)
    unweighted = lightest >= 1.0 >= heaviest
    unit = unit_above(zone.most_degree)
    high, low = (sum(facts["degree_units"][k] for facts in zones) for k in (0, 1))
    total = sum_of_units(high, low, unit)
    scaling = 1.0 if unweighted or zone.normalized else unit_of(total, n)
    spectrum, notes = spectrum_of(rows, zones, zone, settings, entries, scaling)
    bands = (settings.base, settings.plateau, None, 0, settings.n_scales)
    first = Part(root, 0)  # the coefficients of the frame are the same on all partitions
    frame = frame_of(first, spectrum, scaling, settings.laplacian, settings.degree, settings.damping, bands)
    checksum = write_array(root / "frame.npy", frame.coefficients, safe=True)
    return {
        "n": n, "n_edges": entries // 2, "growth": sum(facts["rows"] for facts in zones) / n,
        "largest_zone": max(facts["rows"] for facts in zones), "n_scales": frame.n_scales,
        "lambda_max": scaling * spectrum.lambda_max, "lambda_upper": frame.lambda_upper, "unit": scaling,
        "lambda_max_from": spectrum.lambda_max_from, "lambda_upper_from": spectrum.lambda_upper_from,
        "unweighted": unweighted, "mean_degree": total / n or 1.0, "most_degree": zone.most_degree,
        "linked": sum(row["linked"] for row in rows), "frame_checksum": checksum, "notes": notes,
    }  # fmt: skip


def settings_of(manifest: dict[str, Any], **changes: Any) -> _Settings:
    """Return the settings that a folder was prepared with, with some changes."""
    return _Settings(**{**{field.name: manifest[field.name] for field in fields(_Settings)}, **changes})
