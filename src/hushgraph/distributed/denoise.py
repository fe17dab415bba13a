"""Denoising a prepared graph: the stages of a run, what they add up to, and the way back into a run that was cut off."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from hushgraph._errors import InputError, Reference, Sentence, StateError
from hushgraph.auto import LARGE
from hushgraph.checks import checked_count, checked_seed, checked_sigma, choose
from hushgraph.distributed import let, tasks
from hushgraph.distributed.edges import whole_address
from hushgraph.distributed.runner import Runner
from hushgraph.distributed.signals import check_output, is_written, opened_release, read_parts, taken, write_part
from hushgraph.distributed.size import BASE, COMBINED, Method, Shape, memory_of
from hushgraph.distributed.store import (
    VERSION,
    added,
    local_folder,
    locked,
    manifest_of,
    pieces,
    read_array,
    read_json,
    remove_drafts,
    remove_stages,
    write_json,
)
from hushgraph.distributed.tasks import Run
from hushgraph.distributed.thresholds import least_sure
from hushgraph.filters import KEPT
from hushgraph.local_noise import fit_of_products, n_columns
from hushgraph.observation import Noisy
from hushgraph.progress import Watcher, checked_watcher, reached, watching
from hushgraph.risk import Law, default_probes
from hushgraph.sgwt import RISK_PROBES, Noise
from hushgraph.shrink import Rule, sure_exponent
from hushgraph.sums import count_units, sum_of_units, unit_above

STAGES = {
    "transform": 8.0,
    "survey": 1.0,
    "fit": 0.5,
    "scales": 0.5,
    "bins": 1.0,
    "finer": 0.5,
    "pick": 0.5,
    "finish": 8.0,
    "write": 0.5,
}
_SCALED = ("survey", "fit", "scales")  # stages of thresholds that follow the local noise
_KEPT = ("finish", "write")  # stages whose marks stay when a run is finished


def stages_of(method: str) -> dict[str, float]:
    """The stages of a method, with the share of the time that each takes, roughly."""
    if method in COMBINED:
        return let.STAGES
    return {stage: weight for stage, weight in STAGES.items() if method != "sgwt_sure" or stage not in _SCALED}


@dataclass(frozen=True, eq=False)
class DenoisedFiles:
    """A denoised signal in parquet files, with its estimated risk; the numbers are those of `Denoised`."""

    address: str
    folder: Path
    method: str
    sigma: float | None
    thresholds: np.ndarray | None
    risk: float
    risk_se: float
    probe_se: float
    divergence: float
    unchanged: bool
    timings: dict[str, float]
    n: int
    partitions: int
    dashboard: str | None = None

    def read(self) -> np.ndarray:
        """The whole signal in node order, in memory."""
        return read_parts(self.address, self.partitions, self.n, self.folder.name)


def denoise(
    workdir,
    signal,
    *,
    sigma=None,
    method: Method = "sgwt_scaled",
    rule: Rule = "james_stein",
    beta: float | None = None,
    n_probes: int | None = None,
    law: Law = "rademacher",
    seed: int = 0,
    nonnegative: bool = False,
    integer: bool = False,
    refine: bool | None = None,
    output: str | Path | None = None,
    client=None,
    resume: bool = True,
    keep: bool = False,
    progress: Watcher | None = None,
) -> DenoisedFiles:
    """Remove white Gaussian noise from a signal on a prepared graph; thresholds and signal are those of `hushgraph.denoise`, to the bit.

    Parameters
    ----------
    workdir : str or Path
        A folder that `prepare` finished.
    signal : (n,) array, Noisy, or str, Path or list of them
        Noisy values in node order, a .npy file of them, or parquet files with the columns node and value. Exact counts that are
        private do not belong here: release them first, and pass the release.
    sigma : float, (n,) array, or file like the signal
        Standard deviation of the noise, possibly one per node.
    method : {"sgwt_sure", "sgwt_scaled", "let", "auto"}
        As in `hushgraph.denoise`, on the frame of the folder. "let" and "auto" have no thresholds to search, and agree to about 1e-9 instead of
        to the bit.
    refine : bool, optional
        As in `hushgraph.denoise`; "auto" must be told False here, and needs more than 131,072 nodes.
    output : str or Path, optional
        Folder or address (fsspec) for the parquet files of the result, with the columns node and denoised; by default in the work folder.
        It must not hold other parquet files, such as those of another run.
    client : distributed.Client, optional
        Whose workers run the tasks; None: this process runs them one after the other.
    resume : bool
        Whether to go on with the same run where it was cut off, or to begin it again.
    keep : bool
        Keep the files of all stages when the run is finished.
    """
    facts, work = manifest_of(workdir), local_folder(workdir)
    _check_method(method, facts["n"], refine, nonnegative)
    count = default_probes(facts["n"]) if n_probes is None else checked_count("n_probes", n_probes, 1)
    _check_memory(method, count, facts, client)
    sure_exponent(rule, beta)
    if isinstance(signal, Noisy):
        signal, sigma = opened_release(signal, sigma, facts)
    if sigma is None:
        msg = (
            "sigma must be given here: estimate it on a part of the graph, hushgraph.estimate_sigma(graph.subgraph(nodes), values)"
        )
        raise InputError(msg)
    one = np.ndim(sigma) == 0 and not isinstance(sigma, str | Path)
    path = taken(work, signal, facts["n"], "signal")
    noise = None if one else taken(work, sigma, facts["n"], "sigma")
    if noise is not None:
        _check_sizes(noise)
    run = Run(
        work / facts["folder"], work / "runs", path, checked_sigma(sigma) if one else None, noise, method, rule, beta, count,
        choose("law", law, get_args(Law)), checked_seed(seed), bool(nonnegative), bool(integer),
        kept_probes_of(method, facts["n"], count),
    )  # fmt: skip
    run = _begun(run, facts, None if output is None else whole_address(output), resume)
    with watching(checked_watcher(progress)):
        return _carried_out(run, facts, client, keep)


def resume(workdir, *, client=None, keep: bool = False, progress: Watcher | None = None) -> DenoisedFiles:
    """Go on with the latest run of a work folder that is not finished; if all are, the latest result."""
    facts, work = manifest_of(workdir), local_folder(workdir)
    begun = sorted((work / "runs").glob("*/run.json"), key=lambda path: path.stat().st_mtime)
    if not begun:
        call = Reference(f"denoise({str(work)!r}, signal, sigma=...)")
        raise InputError(Sentence("{} has no run to go on with; begin one with {}", work, call))
    left = [path for path in begun if not (path.parent / "result.json").exists()]
    run = _run_of(work, (left or begun)[-1].parent, facts)
    with watching(checked_watcher(progress)):
        return _carried_out(run, facts, client, keep)


def kept_probes_of(method: str, n: int, count: int) -> int:
    """Probes whose transforms are kept for standard errors, as on one machine."""
    return int(np.clip(2**18 // n, 1, min(KEPT, count))) if method in COMBINED else min(count, RISK_PROBES)


def _check_method(method, n: int, refine: bool | None, nonnegative: bool) -> None:
    """Refuse what needs the whole graph at once."""
    choose("refine", refine, (True, False, None))
    reason = None
    if method not in get_args(Method):
        known = ", ".join(map(repr, get_args(Method)))
        reason = Sentence("{method} must be one of {}; got {!r}, which needs the whole graph at once", known, method)
    elif method == "auto" and n <= LARGE:
        words = "{method='auto'} asks candidates that need the whole graph at once where it has up to {:,} nodes; this one has {:,}"
        reason = Sentence(words, LARGE, n)
    elif method == "auto" and nonnegative:
        reason = Sentence("{method='auto'} with {nonnegative=True} asks 'counts', which compares each node with all others")
    elif refine or (method == "auto" and refine is None):
        reason = Sentence("a second look at the signal needs the whole graph at once: say refine=False")
    if reason is not None:
        msg = "{}; for a distributed run use 'let' or 'sgwt_scaled', or denoise on one machine with {hushgraph.denoise}"
        raise InputError(Sentence(msg, reason))


def _check_memory(method: str, probes: int, facts: dict[str, Any], client) -> None:
    """Refuse a method, or a number of probes, that needs more memory than the partitions were cut for, or than workers have."""
    shape = Shape(2 * facts["n_edges"] / facts["n"], facts["n_scales"], not facts["unweighted"], method, probes)
    needed = BASE + facts["largest_zone"] * shape.per_row
    least = min(limit for limit in (facts["memory"], memory_of(None, client), np.inf) if limit is not None)
    if needed > least:
        msg = (
            "{method=}{!r} with n_probes={} takes about {:.2f} GB per task on these partitions, and there are {:.2f} GB, as was asked for "
            "or as workers can give; prepare with {method=}{!r}, or with more partitions, or take fewer probes"
        )
        raise InputError(Sentence(msg, method, probes, needed / 1e9, least / 1e9, method))


def _check_sizes(path: Path) -> None:
    mapped = read_array(path, whole=False)
    for nodes in pieces(len(mapped)):
        checked_sigma(np.asarray(mapped[nodes]), nodes.stop - nodes.start)


# ---- a run and its folder ----------------------------------------------------------------------------------------------


def _begun(run: Run, facts: dict[str, Any], output: str | None, again: bool) -> Run:
    """The run with its folder, named by all that it depends on."""
    stated = {
        name: str(part) if isinstance(part, Path) else part for name, part in asdict(run).items() if name not in ("work", "folder")
    }
    for name in ("signal", "sigma_file"):
        stated[name] = None if stated[name] is None else Path(stated[name]).name
    stated |= {"version": VERSION, "graph_hash": facts["graph_hash"], "partition_hash": facts["partition_hash"], "output": output}
    name = hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()[:16]
    run = replace(run, folder=run.folder / name)
    check_output(run, facts["partitions"], output or str(run.folder / "denoised"))
    if not again:
        with locked(run.folder):
            remove_stages(_folders(run, facts))
            for path in ("result.json", "run.json"):
                (run.folder / path).unlink(missing_ok=True)
    if read_json(run.folder / "run.json") is None:
        write_json(run.folder / "run.json", stated)
    return run


def _run_of(work: Path, folder: Path, facts: dict[str, Any]) -> Run:
    stated = read_json(folder / "run.json") or {}
    for name in ("graph_hash", "partition_hash"):
        if stated.get(name) != facts[name]:
            msg = "{} was begun on another preparation ({} differs); remove it, and begin again with {denoise()}"
            raise InputError(Sentence(msg, folder, name))
    known = {name: stated[name] for name in Run.__dataclass_fields__ if name in stated}
    files = {name: None if known[name] is None else work / "signals" / known[name] for name in ("signal", "sigma_file")}
    return Run(**{**known, **files, "work": work / facts["folder"], "folder": folder})


def _folders(run: Run, facts: dict[str, Any]) -> list[Path]:
    return [run.part_folder(part) for part in range(facts["partitions"])]


def _address(run: Run) -> str:
    """Where the result goes; inside the run's folder unless it was told, so that the folder may move."""
    return (read_json(run.folder / "run.json") or {}).get("output") or str(run.folder / "denoised")


def _carried_out(run: Run, facts: dict[str, Any], client, keep: bool) -> DenoisedFiles:
    """All stages that are not done yet, or whose result is lost."""
    runner = Runner(client, stages_of(run.method), run.folder / "run.json")
    address, folders = _address(run), _folders(run, facts)
    with locked(run.folder):
        check_output(run, facts["partitions"], address, clean=True)
        done = read_json(run.folder / "result.json")
        if done is not None and not _is_there(run, facts, address):
            done = _written_again(run, facts, runner, done, address)
        if done is None:
            _check_signals(run)
            remove_drafts(folders)
            done = {**_worked_out(run, facts, runner, address), "keep": keep}
            if not _is_there(run, facts, address):
                msg = f"the files at {address} are not those of this run any more: another one wrote there meanwhile; choose another output folder"
                raise StateError(msg)
            write_json(run.folder / "result.json", done)
        if not (keep or done["keep"]):  # also after a call that was killed here
            remove_stages(folders, _KEPT)
    reached(1.0, "write")
    thresholds = None if done["thresholds"] is None else np.array(done["thresholds"])
    known = {name: value for name, value in done.items() if name != "keep"} | {"address": address, "thresholds": thresholds}
    return DenoisedFiles(
        **known, n=facts["n"], partitions=facts["partitions"], folder=run.folder, dashboard=runner.dashboard
    )  # fmt: skip


def _check_signals(run: Run) -> None:
    for name, path in (("signal", run.signal), ("sigma", run.sigma_file)):
        if path is not None and not path.exists():
            msg = "{} needs the {} it was begun with, {}, which is gone; remove the run, and call {denoise()} with the {} again"
            raise InputError(Sentence(msg, run.folder, name, path, name))


def _is_there(run: Run, facts: dict[str, Any], address: str) -> bool:
    """Whether all files of a finished run are."""
    marks = [run.output(part, "write").known() for part in range(facts["partitions"])]
    return all(mark is not None and is_written(run, part, address, mark["rows"]) for part, mark in enumerate(marks))


def _written_again(run: Run, facts: dict[str, Any], runner: Runner, done: dict[str, Any], address: str) -> dict[str, Any] | None:
    """The same result with its files, from the signals that are kept; None if they are lost too."""
    parts = range(facts["partitions"])
    if not done["unchanged"] and any(run.output(part, "finish").known() is None for part in parts):
        return None
    _check_signals(run)
    runner.run("write", write_part, [(run, part, address, done["unchanged"]) for part in parts])
    return done


def _worked_out(run: Run, facts: dict[str, Any], runner: Runner, address: str) -> dict[str, Any]:
    parts, run_folder = facts["partitions"], run.work
    run = run if run.combined else replace(run, offset=let.signal_offset(run))

    def stage(name: str, task, *more, run: Any = run) -> list[dict[str, Any]]:
        """One task per partition: of the run, or of the graph alone."""
        first = [(run, part) if run else (run_folder, part) for part in range(parts)]
        return runner.run(name, task, [(*job, *more) for job in first])

    t: list[float] | None = None
    more: dict[str, float] = {}
    if run.combined:
        terms, more = let.combined(run, stage, lambda own: _regressed(own, stage, parts), facts, _noise_sums(run, facts["n"]))
    else:
        found = stage("transform", tasks.transform)
        if run.scaled:
            found = stage("scales", tasks.scales, *_regressed(run, stage, parts))
        t = least_sure(run, runner, parts, [one["extremes"] for one in found], run.variance).tolist()
        terms = stage("finish", tasks.finish, t)
    risk = _risk(run, facts["n"], terms, more)
    stage("write", write_part, address, risk["unchanged"])
    return {"method": run.method, "sigma": run.sigma, "thresholds": t, **risk, "timings": runner.timings}


def _regressed(run: Run, stage, parts: int) -> tuple[list, list]:
    """The regression of the weights on what is around the nodes, from sums of all partitions."""
    surveyed = stage("survey", tasks.survey, _mean_variance(run), run=run)
    tops = np.max([one["tops"] for one in surveyed], axis=0)
    stage("fit", tasks.fit, tops.tolist(), run=run)
    units = added((run.output(part, "fit") for part in range(parts)), "units")
    coefficients, usual = fit_of_products(units, tops, n_columns(per_node=run.sigma_file is not None))
    return coefficients.tolist(), usual.tolist()


def _mean_variance(run: Run) -> float:
    """The mean of a noise per node, with the bits of `Usual.of`."""
    if run.sigma_file is None:
        return 1.0
    n = len(read_array(run.sigma_file, whole=False))
    return _sum_of_powers(run.sigma_file, 2) / n or 1.0


def _sum_of_powers(path: Path, power: int) -> float:
    """In whole units: the same in any order."""
    mapped = read_array(path, whole=False)
    largest = max(float((mapped[nodes].astype(np.float64) ** power).max()) for nodes in pieces(len(mapped)))
    unit = unit_above(largest)
    counts = [count_units(mapped[nodes].astype(np.float64) ** power, unit) for nodes in pieces(len(mapped))]
    return sum_of_units(sum(high for high, _ in counts), sum(low for _, low in counts), unit)


def _noise_sums(run: Run, n: int) -> tuple[float, float]:
    """sum_i sigma_i^2 and sum_i sigma_i^4."""
    if run.sigma_file is None:
        return n * run.variance, n * run.variance**2
    return _sum_of_powers(run.sigma_file, 2), _sum_of_powers(run.sigma_file, 4)


def _risk(run: Run, n: int, terms: list[dict[str, Any]], more: dict[str, float]) -> dict[str, Any]:
    """As `sgwt.estimates` and `auto` have it; what is worse than nothing is not done. `more` is what fitted weights say of themselves."""

    def total(name):
        return math.fsum(one[name] for one in terms)

    variance, (second, fourth) = run.variance, _noise_sums(run, n)
    divergence = more["divergence"] if more else math.fsum(math.fsum(one["divergence"]) for one in terms)
    divergence += second / n / variance if run.offset else 0.0
    risk = total("residual") - second + 2 * variance * divergence + more.get("optimism", 0.0)
    risk += 2 * second / n if more.get("offset") else 0.0
    trace, turned = (variance * math.fsum(math.fsum(one[name]) for one in terms) / run.kept_probes for name in ("traces", "turned"))
    risk_se = float(Noise.error_of_sums(total("weighted"), trace, turned, fourth))
    diagonal = 0.0 if run.law == "gaussian" or more else (variance * divergence) ** 2 / n
    probe_se = math.sqrt(4 * max(2 * trace - 2 * diagonal, 0.0) / run.n_probes)
    unchanged = risk > second
    if unchanged:
        risk, risk_se, probe_se = second, math.sqrt(2 * fourth), 0.0
    return {"risk": risk, "risk_se": risk_se, "probe_se": probe_se, "divergence": divergence, "unchanged": unchanged}
