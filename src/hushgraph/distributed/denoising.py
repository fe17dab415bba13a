"""Denoising on a prepared graph: the folder of a run, its stages, its risk, and how a run that was cut off continues."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from hushgraph._errors import InputError, Reference, Sentence, StateError
from hushgraph._progress import Progress, between, reached, watching
from hushgraph._validation import checked_count, checked_seed, checked_sigma, choose
from hushgraph.distributed import averaging, counts_driver, guide_driver, let_driver, wavelet_tasks
from hushgraph.distributed.addresses import absolute_address
from hushgraph.distributed.cost_model import BASE, COMBINED, DISTRIBUTED, DistributedMethod, Shape, task_memory
from hushgraph.distributed.guide_files import store_guides
from hushgraph.distributed.noise_levels import fit_scales, noise_sums
from hushgraph.distributed.results import check_output, is_written, read_parts, write_part
from hushgraph.distributed.risks import risk_of
from hushgraph.distributed.runner import Facts, Runner
from hushgraph.distributed.signals import check_stored_signal, mean_and_variance, release_values, signal_offset, store_signal
from hushgraph.distributed.store import (
    VERSION,
    Place,
    changed_at,
    checked_manifest,
    folder_lock,
    pieces,
    read_array,
    read_json,
    remove_drafts,
    remove_stages,
    work_folder,
    write_json,
)
from hushgraph.distributed.threshold_tasks import search_thresholds
from hushgraph.distributed.wavelet_tasks import Run, StoredGuide
from hushgraph.estimators import (
    IMPOSSIBLE,
    IMPOSSIBLE_RISK,
    IMPOSSIBLE_WORDS,
    METHODS,
    RISK_PROBES,
    TOO_LARGE,
    NoiseRisk,
    draw_marks,
    n_kept_probes,
    sentence_of,
)
from hushgraph.graphs import Noisy
from hushgraph.wavelets import Law, Rule, default_probes, sure_exponent

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
_SCALED = ("survey", "fit", "scales")  # stages of thresholds that follow the local noise level
_KEPT = ("finish", "write")  # stages whose files stay when a run is finished


def stages_of(method: str, refine: bool | None = None, *, guided: bool = False, is_averaged: bool = False) -> dict[str, float]:
    """Return the stages of a method, with rough shares of the time."""
    if guided:
        return guide_driver.STAGES
    if is_averaged:
        return averaging.STAGES
    if method == "counts":
        return counts_driver.STAGES
    if method in COMBINED:
        return let_driver.stages_of(method, refined=METHODS[method].refines_by_default if refine is None else refine)
    return {stage: weight for stage, weight in STAGES.items() if method != "sgwt_sure" or stage not in _SCALED}


@dataclass(frozen=True, eq=False)
class DenoisedFiles:
    """A denoised signal in parquet files, with its estimated risk; the numbers mean the same as those of `Denoised`.

    Parameters
    ----------
    address : str
        Folder or address of the parquet files, with the columns node and denoised.
    folder : Path or StoredPath
        The folder of the run.
    method : str
        The method.
    sigma : float or None
        Standard deviation of the noise; None where each node has its own.
    thresholds : (n_scales,) array or None
        Thresholds of the scales; None for methods that combine candidates.
    risk : float
        Estimate of the sum of squared errors.
    risk_se : float
        Standard error of `risk`.
    probe_se : float
        The part of the standard error that the probes cause.
    divergence : float
        Divergence of the estimate, in units of the variance where the noise has one.
    unchanged : bool
        Whether the signal was returned unchanged because the risk exceeded that of the noise.
    timings : dict of str to float
        Seconds of each stage.
    n : int
        Number of nodes.
    partitions : int
        Number of partitions, and of files.
    dashboard : str, optional
        Address of the Dask dashboard.
    details : dict
        What was done, as `Denoised.details` has it for one signal: `why` in words; for methods that combine candidates also which sets of
        candidates have which share and risk (`sets`), the weights of candidates (`weights`, `refined`), the fitted filter (`filter`), what
        guides removed (`guides`), and candidates that one machine has and partitions have not (`left_out`). `notes` are sentences for the
        user. Arrays are lists.
    """

    address: str
    folder: Place
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
    details: dict[str, Any] = field(default_factory=dict)

    def read(self) -> np.ndarray:
        """Read the whole signal into memory.

        Returns
        -------
        (n,) array
            The denoised values in node order.
        """
        return read_parts(self.address, self.partitions, self.n, self.folder.name)


def denoise(
    workdir: str | Place,
    signal: Any,
    *,
    sigma: Any = None,
    method: DistributedMethod = "sgwt_scaled",
    rule: Rule = "james_stein",
    beta: float | None = None,
    n_probes: int | None = None,
    law: Law = "rademacher",
    seed: int = 0,
    nonnegative: bool = False,
    integer: bool = False,
    refine: bool | None = None,
    guides: Any = None,
    output: str | Path | None = None,
    client: Any = None,
    resume: bool = True,
    keep: bool = False,
    progress: Progress = None,
) -> DenoisedFiles:
    """Remove white Gaussian noise from a signal on a prepared graph; thresholds and signal have the bits of `hushgraph.denoise`.

    Parameters
    ----------
    workdir : str, Path or StoredPath
        A folder that `prepare` finished, or its address.
    signal : (n,) array, Noisy, or str, Path or list of them
        Noisy values in node order, a .npy file of them, or parquet files with the columns node and value. Exact counts that are
        private do not belong here: release them first, and pass the release.
    sigma : float, (n,) array, or file like the signal
        Standard deviation of the noise, possibly one per node; it must be given unless the signal is a Noisy.
    method : {"auto", "let", "counts", "sgwt_sure", "sgwt_scaled"}
        As in `hushgraph.denoise`, on the frame of the folder. "let" and "auto" agree with one machine to about 1e-9 instead of to the bit.
        "auto" is that of one machine for graphs of more than 131,072 nodes, also on smaller graphs, where one machine has more candidates:
        `details["left_out"]` names them. "counts" uses edges alone, no coordinates and no wide neighbourhoods; up to 16,384 nodes it has
        the bits of one machine for a graph without coordinates.
    rule : {"james_stein", "soft", "hard", "power"}
        Shrinkage rule, as in `hushgraph.denoise`.
    beta : float, optional
        Exponent of the rule "power".
    n_probes : int, optional
        Number of probes; by default it depends on the number of nodes.
    law : {"rademacher", "gaussian"}
        Distribution of the probes.
    seed : int
        Seed of the probes.
    nonnegative : bool
        Replace negative values of the result by 0; "auto" also uses "counts" then.
    integer : bool
        Round the result to whole numbers.
    refine : bool, optional
        A second stage of "auto" and "let", as in `hushgraph.denoise`. Default: for "auto", on graphs of at least 500 nodes.
    guides : array, str, Path, dict, Noisy, DenoisedFiles, or a list of these, optional
        Public maps that do not share noise with the signal, for "auto" and "let", as in `hushgraph.denoise`: each is given like the signal,
        without gaps, and a dict names them. Noisy maps and releases are denoised first. `details["guides"]` says what each guide removed.
        The client reads one guide at a time into memory.
    output : str or Path, optional
        Folder or address (fsspec) for the parquet files of the result, with the columns node and denoised; by default in the work folder.
        It must not hold other parquet files, such as those of another run.
    client : distributed.Client, optional
        The client whose workers run the tasks; None: this process runs them one after the other.
    resume : bool
        Whether to continue the same run where it was cut off, or to start it again.
    keep : bool
        Keep the files of all stages when the run is finished.
    progress : True or callable, optional
        True shows a bar, on a terminal or in a notebook. A function is called with the share of the work that is done, from 0 to 1, and the name of the stage.

    Returns
    -------
    DenoisedFiles
        The address of the result, its risk and the thresholds; `read()` returns the signal.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.grid(60, 60)
    >>> noisy = np.random.default_rng(0).normal(0, 1, graph.n)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     prepared = hg.distributed.prepare(graph, folder, partitions=2, degree=20)
    ...     signal = hg.distributed.denoise(folder, noisy, sigma=1.0).read()
    >>> frame = hg.chebyshev_frame(graph, degree=20)
    >>> np.array_equal(signal, hg.denoise(graph, noisy, sigma=1.0, method="sgwt_scaled", frame=frame).signal)
    True
    """
    facts, work = checked_manifest(workdir), work_folder(workdir)
    _check_method(method, refine, nonnegative, has_guides=guides is not None)
    if method == "counts" or (method == "auto" and nonnegative):
        counts_driver.refuse_counts(facts)
    count = default_probes(facts["n"]) if n_probes is None else checked_count("n_probes", n_probes, 1)
    _check_memory(method, count, facts, client, has_guides=guides is not None)
    _check_rule(method, rule, beta)
    if isinstance(signal, Noisy):
        signal, sigma = release_values(signal, sigma, facts)
    if sigma is None:
        msg = (
            "sigma must be given here: estimate it on a part of the graph, hushgraph.estimate_sigma(graph.subgraph(nodes), values)"
        )
        raise InputError(msg)
    is_number = np.ndim(sigma) == 0 and not isinstance(sigma, str | Path)
    path = store_signal(work, signal, facts["n"], "signal")
    noise = None if is_number else store_signal(work, sigma, facts["n"], "sigma")
    if noise is not None:
        _check_sigmas(noise)
    run = Run(
        work / facts["folder"], work / "runs", path, checked_sigma(sigma) if is_number else None, noise, method, rule, beta, count,
        choose("law", law, get_args(Law)), checked_seed(seed), bool(nonnegative), bool(integer),
        count_kept_probes(method, facts["n"], count), refine=refine,
    )  # fmt: skip
    with watching(progress):
        if guides is not None:

            def denoised(values: np.ndarray, sigma: float) -> np.ndarray:
                with between(0.0, 0.0):
                    clean = denoise(workdir, values, sigma=sigma, method=method, n_probes=n_probes, seed=seed, client=client).read()
                return np.maximum(clean, 0.0) if nonnegative else clean

            run = replace(run, guides=store_guides(work, guides, facts, path, denoised))
        run = _open_run(run, facts, None if output is None else absolute_address(output), resume)
        return _finish_run(run, facts, client, keep)


def resume(workdir: str | Place, *, client: Any = None, keep: bool = False, progress: Progress = None) -> DenoisedFiles:
    """Continue the latest run of a work folder that is not finished; if all are, return the latest result.

    Parameters
    ----------
    workdir : str, Path or StoredPath
        A folder in which `denoise` was called, or its address.
    client : distributed.Client, optional
        The client whose workers run the tasks; None: this process runs them one after the other.
    keep : bool
        Keep the files of all stages when the run is finished.
    progress : True or callable, optional
        True shows a bar, on a terminal or in a notebook. A function is called with the share of the work that is done, from 0 to 1, and the name of the stage.

    Returns
    -------
    DenoisedFiles
        The result, as `denoise` returns it.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, hushgraph as hg
    >>> graph = hg.datasets.grid(60, 60)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     prepared = hg.distributed.prepare(graph, folder, partitions=2, degree=20)
    ...     result = hg.distributed.denoise(folder, np.ones(graph.n), sigma=1.0)
    ...     same = hg.distributed.resume(folder)
    >>> same.risk == result.risk
    True
    """
    facts, work = checked_manifest(workdir), work_folder(workdir)
    begun = sorted((work / "runs").glob("*/run.json"), key=changed_at)
    if not begun:
        call = Reference(f"denoise({str(work)!r}, signal, sigma=...)")
        raise InputError(Sentence("{} has no run to go on with; begin one with {}", work, call))
    unfinished = [path for path in begun if not (path.parent / "result.json").exists()]
    run = _read_run(work, (unfinished or begun)[-1].parent, facts)
    with watching(progress):
        return _finish_run(run, facts, client, keep)


def count_kept_probes(method: str, n: int, count: int) -> int:
    """Return the number of probes whose transforms are kept for standard errors, as on one machine."""
    return n_kept_probes(n, count) if method in COMBINED else min(count, RISK_PROBES)


def _check_method(method: str, refine: bool | None, nonnegative: bool, *, has_guides: bool) -> None:
    """Refuse methods and settings that need the whole graph at once, and settings that the method would ignore."""
    choose("refine", refine, (True, False, None))
    reason = None
    if method not in DISTRIBUTED:
        methods = ", ".join(map(repr, DISTRIBUTED))
        reason = Sentence("{method} must be one of {}; got {!r}, which needs the whole graph at once", methods, method)
    elif has_guides and (method == "counts" or (method == "auto" and nonnegative)):
        reason = Sentence(
            "{guides=} for 'counts' need the whole graph at once, and {method='auto'} with {nonnegative=True} asks 'counts'"
        )
    if reason is not None:
        msg = "{}; for a distributed run use 'let' or 'sgwt_scaled', or denoise on one machine with {hushgraph.denoise}"
        raise InputError(Sentence(msg, reason))
    if refine is not None and not METHODS[method].takes_refine:
        msg = f"refine= belongs to method='auto' and 'let'; got method={method!r}"
        raise InputError(msg)
    if has_guides and not METHODS[method].takes_guides:
        msg = f"guides= belongs to method='auto' and 'let'; got method={method!r}"
        raise InputError(msg)


def _check_rule(method: str, rule: Rule, beta: float | None) -> None:
    """Refuse a rule for which SURE does not hold, and a rule for methods that have none."""
    sure_exponent(rule, beta)
    if (rule, beta) != ("james_stein", None) and not METHODS[method].takes_rule:
        msg = "{rule=} and {beta=} belong to methods that threshold wavelets, 'sgwt_scaled' and 'sgwt_sure'; {method=}{!r} has neither; leave them out"
        raise InputError(Sentence(msg, method))


def _check_memory(method: str, probes: int, facts: Facts, client: Any, *, has_guides: bool) -> None:
    """Refuse a method or a number of probes whose tasks need more memory than the partitions were cut for, or than workers have."""
    is_weighted = has_guides or not facts["unweighted"]  # guides give the edges weights, which may need a scale more
    shape = Shape(2 * facts["n_edges"] / facts["n"], facts["n_scales"] + has_guides, is_weighted, method, probes)
    needed = BASE + facts["largest_zone"] * shape.per_row
    least = min(limit for limit in (facts["memory"], task_memory(None, client), np.inf) if limit is not None)
    if needed > least:
        msg = (
            "{method=}{!r} with n_probes={} takes about {:.2f} GB per task on these partitions, and there are {:.2f} GB, as was asked for "
            "or as workers can give; prepare with {method=}{!r}, or with more partitions, or take fewer probes"
        )
        raise InputError(Sentence(msg, method, probes, needed / 1e9, least / 1e9, method))


def _check_sigmas(path: Place) -> None:
    """Refuse standard deviations of nodes that are not above 0 and finite."""
    mapped = read_array(path, whole=False)
    for nodes in pieces(len(mapped)):
        checked_sigma(np.asarray(mapped[nodes]), nodes.stop - nodes.start)


# ---- a run and its folder ----------------------------------------------------------------------------------------------


def _open_run(run: Run, facts: Facts, output: str | None, resume: bool) -> Run:
    """Return the run with its folder, which is named by all that the run depends on; without `resume` the folder is emptied."""
    stated = {name: part for name, part in asdict(run).items() if name not in ("work", "folder")}
    stated |= {"signal": run.signal.name, "sigma_file": None if run.sigma_file is None else run.sigma_file.name}
    stated |= {"version": VERSION, "graph_hash": facts["graph_hash"], "partition_hash": facts["partition_hash"], "output": output}
    run = replace(run, folder=run.folder / _name_of(stated))
    check_output(run, facts["partitions"], output or str(run.folder / "denoised"))
    if not resume:
        with folder_lock(run.folder):
            remove_stages(_folders(run, facts))
            guide_driver.remove_experts(run)
            for path in ("result.json", "run.json"):
                (run.folder / path).unlink(missing_ok=True)
    if _name_of(read_json(run.folder / "run.json")) != run.folder.name:  # there is none, or it is damaged
        write_json(run.folder / "run.json", stated)
    return run


def _name_of(stated: Facts | None) -> str:
    """Return the name of the folder of a run: a hash of everything that the run depends on."""
    return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()[:16]


def _read_run(work: Place, folder: Place, facts: Facts) -> Run:
    """Return the run of a folder, if it was begun on this preparation."""
    stated = read_json(folder / "run.json")
    for name in ("graph_hash", "partition_hash"):
        if stated is not None and stated.get(name) != facts[name]:
            msg = "{} was begun on another preparation ({} differs); remove it, and begin again with {denoise()}"
            raise InputError(Sentence(msg, folder, name))
    if stated is None or _name_of(stated) != folder.name:
        msg = "{} is damaged: it does not hold what was written there; remove the folder {} and call {denoise()} again"
        raise InputError(Sentence(msg, folder / "run.json", folder))
    settings = {field.name: stated[field.name] for field in fields(Run) if field.name in stated}
    files = {name: None if settings[name] is None else work / "signals" / settings[name] for name in ("signal", "sigma_file")}
    guides = tuple(
        StoredGuide(**{**guide, "digests": tuple(guide["digests"]), "draws": tuple(guide["draws"])})
        for guide in settings.get("guides", ())
    )
    return Run(**{**settings, **files, "work": work / facts["folder"], "folder": folder, "guides": guides})


def _folders(run: Run, facts: Facts) -> list[Place]:
    """Return the folders of the partitions in a run."""
    return [run.part_folder(part) for part in range(facts["partitions"])]


def _address(run: Run) -> str:
    """Return the address of the result: as given, or in the folder of the run, wherever that was moved."""
    return (read_json(run.folder / "run.json") or {}).get("output") or str(run.folder / "denoised")


def _finish_run(run: Run, facts: Facts, client: Any, keep: bool) -> DenoisedFiles:
    """Run all stages that are not finished yet, or whose files are lost, and return the result."""
    runner = Runner(
        client, stages_of(run.method, run.refine, guided=bool(run.guides), is_averaged=run.is_averaged), run.folder / "run.json"
    )
    address, folders = _address(run), _folders(run, facts)
    with folder_lock(run.folder):
        check_output(run, facts["partitions"], address, clean=True)
        result = _read_result(run)
        if result is not None and not _has_all_files(run, facts, address):
            result = _write_files_again(run, facts, runner, result, address)
        if result is None:
            _check_signals(run)
            remove_drafts(folders)
            remove_drafts(guide_driver.expert_folders(run, facts["partitions"]))
            result = {**_run_stages(run, facts, runner, address), "keep": keep}
            if not _has_all_files(run, facts, address):
                msg = f"the files at {address} are not those of this run any more: another one wrote there meanwhile; choose another output folder"
                raise StateError(msg)
            write_json(run.folder / "result.json", result)
        if not (keep or result["keep"]):  # also after a call that was killed here
            remove_stages(folders, _KEPT)
            guide_driver.remove_experts(run)
    reached(1.0, "write")
    thresholds = None if result["thresholds"] is None else np.array(result["thresholds"])
    numbers = {name: value for name, value in result.items() if name != "keep"} | {"thresholds": thresholds}
    return DenoisedFiles(
        **numbers,
        address=address,
        n=facts["n"],
        partitions=facts["partitions"],
        folder=run.folder,
        dashboard=runner.dashboard,
    )


def _read_result(run: Run) -> Facts | None:
    """Return the numbers in result.json; None if the run is not finished or the file is damaged, so that they are computed again."""
    result = read_json(run.folder / "result.json") or {}
    wanted = {one.name for one in fields(DenoisedFiles)} - {"address", "folder", "n", "partitions", "dashboard"} | {"keep"}
    if not wanted - {"details"} <= result.keys() <= wanted:
        return None
    found = result["thresholds"]
    is_whole = found is None or (isinstance(found, list) and all(isinstance(one, float) for one in found))
    return result if is_whole else None


def _check_signals(run: Run) -> None:
    """Refuse a run whose signal, noise or guides were removed from the work folder, or damaged there."""
    guides = [("guide", run.guide_file(guide)) for guide in run.guides]
    for name, path in (("signal", run.signal), ("sigma", run.sigma_file), *guides):
        if path is not None and not path.exists():
            msg = "{} needs the {} it was begun with, {}, which is gone; remove the run, and call {denoise()} with the {} again"
            raise InputError(Sentence(msg, run.folder, name, path, name))
        if path is not None:
            check_stored_signal(path)


def _has_all_files(run: Run, facts: Facts, address: str) -> bool:
    """Return whether all files of the result exist and belong to the run."""
    marks = [run.output(part, "write").read_facts() for part in range(facts["partitions"])]
    return all(mark is not None and is_written(run, part, address, mark.get("rows")) for part, mark in enumerate(marks))


def _write_files_again(run: Run, facts: Facts, runner: Runner, result: Facts, address: str) -> Facts | None:
    """Write lost files of a result again, from the signals of the partitions; return None if these are lost too."""
    parts = range(facts["partitions"])
    if not result["unchanged"] and any(run.output(part, "finish").read_facts() is None for part in parts):
        return None
    _check_signals(run)
    runner.run("write", write_part, [(run, part, address, result["unchanged"]) for part in parts])
    return result


def _run_stages(run: Run, facts: Facts, runner: Runner, address: str) -> Facts:
    """Run all stages, and return the numbers of the result."""
    parts, n = facts["partitions"], facts["n"]
    run = run if run.combined or run.method == "counts" else replace(run, offset=signal_offset(run.signal))
    t: list[float] | None = None
    account: Facts = {"why": sentence_of(run.method)}
    if run.guides:
        risk = guide_driver.run_guided(run, runner, parts, n)
        account = risk.pop("account")
    elif run.is_averaged or run.method == "counts":
        work = averaging.run_averaged if run.is_averaged else counts_driver.run_counts
        risk = work(run, runner, parts, n)
        account = risk.pop("account")
        risk.pop("caution", None)  # of `counts`, for those that compare it with other estimates
    elif run.combined:
        terms, fitted = let_driver.run_let(run, runner, parts, n, noise_sums(run, n)[0])
        risk, account = risk_of(run, n, terms, fitted), fitted["account"]
    else:
        coefficients = runner.run_parts("transform", wavelet_tasks.transform, parts, run)
        if run.scaled:
            coefficients = runner.run_parts("scales", wavelet_tasks.scales, parts, run, *fit_scales(run, runner, parts))
        t = search_thresholds(run, runner, parts, [part["extremes"] for part in coefficients], run.variance).tolist()
        risk = risk_of(run, n, runner.run_parts("finish", wavelet_tasks.finish, parts, run, t), {})
    risk |= _or_nothing(run, n, risk)
    runner.run_parts("write", write_part, parts, run, address, risk["unchanged"])
    details = _details(run, n, account, risk)
    return {"method": run.method, "sigma": run.sigma, "thresholds": t, **risk, "timings": runner.timings, "details": details}


def _or_nothing(run: Run, n: int, risk: Facts) -> Facts:
    """Return whether the risk exceeds that of doing nothing, and risk and standard errors, which are those of doing nothing then."""
    names = ("risk", "risk_se", "probe_se")
    is_worse, *numbers = NoiseRisk.of(*noise_sums(run, n)).instead_of(*(risk[name] for name in names))
    return {"unchanged": bool(is_worse), **{name: float(number) for name, number in zip(names, numbers, strict=True)}}


def _details(run: Run, n: int, account: Facts, risk: Facts) -> Facts:
    """Return what was done, in words and numbers that JSON can hold."""
    notes = []
    if risk["unchanged"]:
        notes.append("the signal was returned unchanged: its estimated risk exceeded that of the noise")
    total, noise = noise_sums(run, n)[0] / run.variance, run.whole_noise()
    is_too_large = noise.is_too_large(n * mean_and_variance(run.signal)[1], total - total / n, tests=2)
    if is_too_large or account.get("sigma_too_large"):
        notes.append(TOO_LARGE)
    elif risk["risk"] < -IMPOSSIBLE * risk["risk_se"]:
        notes.append(IMPOSSIBLE_RISK)
    if any(guide["in_words"] == IMPOSSIBLE_WORDS for guide in account.get("guides", {}).values()):
        notes.append(f"a guide {IMPOSSIBLE_WORDS}")
    draws = sorted(draw_marks(read_array(run.signal, whole=False)).union(*(guide.draws for guide in run.guides)))
    account = {**account, "sigma_too_large": TOO_LARGE in notes, "notes": notes, "draws": draws}
    return json.loads(json.dumps(account, default=lambda array: array.tolist()))
