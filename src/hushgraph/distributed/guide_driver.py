"""The driver of guided runs: estimates with and without guides, and their average by SURE, as `estimators/guides/guided.py` on one machine.

    alone      the signal without guides
    linear     the signal less a linear prediction, with local regression on the prediction among the candidates
    bent       the signal less a prediction with kinks, on the graph whose edges are weak where the prediction jumps

Each is a run of its own, in a folder of this run, with the same stages.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from hushgraph._progress import between
from hushgraph.distributed import guide_tasks, let_driver, reweighting
from hushgraph.distributed.noise_levels import noise_sums
from hushgraph.distributed.risks import risk_of
from hushgraph.distributed.runner import Facts, Runner
from hushgraph.distributed.store import (
    Place,
    is_marked,
    mark_array,
    part_folder,
    pieces,
    read_array,
    read_marked,
    remove_tree,
    sum_arrays,
    write_rows,
)
from hushgraph.distributed.wavelet_tasks import Run
from hushgraph.estimators import (
    FEW_VALUES,
    SAME,
    Guide,
    Relation,
    RemovedRisk,
    accounts_of,
    average_risk,
    fit_relation,
    is_impossible,
    same_draw_error,
    trust_in,
    weights_of_least_risk,
)
from hushgraph.wavelets import Noise

EXPERTS = ("alone", "linear", "bent")
AVERAGED = ("counts", "combination")  # the estimates of `averaging`
# rough shares of the time
STAGES = {"alone": 50.0, "looks": 0.5, "linear": 60.0, "bent": 65.0, "compare": 0.5, "average": 0.5, "finish": 0.5, "write": 0.5}


@dataclass(frozen=True, eq=False)
class Expert:
    """One of the estimates that are averaged; `trust` scales its prior weight."""

    name: str
    run: Run
    risk: float
    risk_se: float
    probe_se: float
    divergence: float
    account: dict[str, Any]
    caution: float
    trust: float = 1.0


class AverageRisk(NamedTuple):
    """Risk and standard error of an average."""

    risk: float
    risk_se: float


def run_guided(run: Run, runner: Runner, parts: int, n: int) -> Facts:
    """Run all stages up to the signal; return risk, standard errors, divergence and an account of guides and candidates."""
    alone = _expert(replace(run, folder=run.folder / "alone", guides=()), "alone", runner, parts, n)
    y, maps, noise = _mapped(run)
    _refuse_same_draws(run, alone.run, runner, parts, n, y, maps)
    linear, bent = (fit_relation(y, maps, noise, kinks=kinks) for kinks in (False, True))
    experts = [alone]
    for name, relation in (("linear", linear), ("bent", bent)):
        if relation.n_terms:
            experts.append(_guided_expert(run, name, relation, runner, parts, n))
    weights, average = _averaged(run, experts, runner, parts, n)
    gains = np.maximum(linear.gains, bent.gains)
    is_left_out = len(experts) > 1 and is_impossible(average, alone)
    removed = None if is_left_out else RemovedRisk.of(alone, average) if len(experts) > 1 else RemovedRisk(0.0)
    guides = tuple(Guide(one.name, np.empty(0), made_from=one.made_from, digests=one.digests) for one in run.guides)
    account = {**alone.account, "guides": accounts_of(guides, gains, removed)}
    if is_left_out:
        weights, average = np.eye(len(experts))[0], AverageRisk(alone.risk, alone.risk_se)
    elif len(experts) > 1:
        account["experts"] = {expert.name: float(weight) for expert, weight in zip(experts, weights, strict=True)}
    runner.run_parts("finish", guide_tasks.write_average, parts, run, [expert.run for expert in experts], weights.tolist())
    return {
        "risk": average.risk,
        "risk_se": average.risk_se,
        "probe_se": float(weights @ [expert.probe_se for expert in experts]),
        "divergence": float(weights @ [expert.divergence for expert in experts]),
        "account": account,
    }


def expert_folders(run: Run, parts: int) -> Iterator[Place]:
    """Yield the folders that tasks of the estimates write to."""
    for name, part in product((*EXPERTS, *AVERAGED), range(parts)):
        yield replace(run, folder=run.folder / name).part_folder(part)
        yield part_folder(run.folder / name / "graph", part)


def remove_experts(run: Run) -> None:
    """Remove the runs of the estimates that were averaged."""
    for name in EXPERTS if run.guides else AVERAGED if run.is_averaged else ():
        remove_tree(run.folder / name)


# ---- the estimates -----------------------------------------------------------------------------------------------------


@contextmanager
def sub_runner(runner: Runner, name: str, stages: dict[str, float]) -> Iterator[Runner]:
    """Give a runner for the stages of one estimate, on the same workers; their time and their progress are those of the stage `name`."""
    low, high = runner.shares[name]
    part = copy.copy(runner)
    part.name, part.timings, part.shares = f"{name}-{runner.name}", {}, Runner(None, stages, runner.witness).shares
    with between(low, high):
        yield part
    runner.timings[name] = sum(part.timings.values())


def _expert(run: Run, name: str, runner: Runner, parts: int, n: int, relation: Relation | None = None) -> Expert:
    """Return the estimate of a run with its risk. Coefficients of a relation to guides are charged for."""
    refined = let_driver.plan_of(run, n).refined
    stages = let_driver.stages_of(run.method, refined=refined, has_prediction=run.prediction is not None)
    stages = {**reweighting.STAGES, **stages} if name == "bent" else stages
    with sub_runner(runner, name, stages) as part_runner:
        if name == "bent":
            run = replace(
                run, work=reweighting.reweighted(run.work, part_runner, run.folder / "graph", run.folder / "prediction.npy")
            )
        terms, fitted = let_driver.run_let(run, part_runner, parts, n, noise_sums(run, n)[0])
    numbers = risk_of(run, n, terms, fitted)
    if relation is None:
        return Expert(name, run, **numbers, account=fitted["account"], caution=fitted["caution"])
    numbers["risk"] += 2 * relation.cost
    return Expert(name, run, **numbers, account=fitted["account"], caution=fitted["caution"], trust=trust_in(relation))


def _guided_expert(run: Run, name: str, relation: Relation, runner: Runner, parts: int, n: int) -> Expert:
    """Return the estimate that uses a prediction: files of the prediction, and of the signal less the prediction, are written first."""
    folder, (y, maps, _) = run.folder / name, _mapped(run)
    prediction, rest = folder / "prediction.npy", folder / "rest.npy"
    if not is_marked(prediction):
        values = (relation.values(maps, nodes) for nodes in pieces(n))
        mark_array(prediction, write_rows(prediction, (n,), np.float64, values, safe=True))
    if not is_marked(rest):
        predicted = read_marked(prediction, whole=False)
        values = (y[nodes].astype(np.float64) - predicted[nodes] for nodes in pieces(n))
        mark_array(rest, write_rows(rest, (n,), np.float64, values, safe=True))
    one = replace(run, folder=folder, signal=rest, guides=(), prediction=prediction if name == "linear" else None)
    return _expert(one, name, runner, parts, n, relation)


def _mapped(run: Run) -> tuple[np.ndarray, list[np.ndarray], Noise]:
    """Return the signal, the guides and the noise of a run, mapped."""
    maps = [read_array(run.guide_file(guide), whole=False) for guide in run.guides]
    return read_array(run.signal, whole=False), maps, run.whole_noise()


def _refuse_same_draws(run: Run, alone: Run, runner: Runner, parts: int, n: int, y: np.ndarray, maps: list[np.ndarray]) -> None:
    """Refuse a guide that is the noisy signal or its denoised map, in any unit: it holds the same noise."""
    centres = [math.fsum(float(one[nodes].sum()) for nodes in pieces(n)) / n for one in (y, *maps)]
    runner.run_parts("looks", guide_tasks.compare_looks, parts, run, alone, centres[1:], centres[0])
    products = sum_arrays((run.output(part, "looks") for part in range(parts)), "products")
    centred = products - np.outer(products[0], products[0]) / n
    size = np.sqrt(np.maximum(np.diag(centred), 0.0))
    first = 1 + len(maps)
    for k, guide in enumerate(run.guides, start=1):
        likeness = centred[k, first:] > (1 - SAME) * size[k] * size[first:]
        is_same = np.flatnonzero(likeness & (size[k] * size[first:] > 0))
        if len(is_same) and len(np.unique(maps[k - 1])) > FEW_VALUES:
            raise same_draw_error(guide.name, "noisy map" if is_same[0] < 3 else "denoised map")


def _averaged(run: Run, experts: list[Expert], runner: Runner, parts: int, n: int) -> tuple[np.ndarray, AverageRisk]:
    """Return the weights of the average of least risk, and its risk."""
    if len(experts) == 1:
        return np.ones(1), AverageRisk(experts[0].risk, experts[0].risk_se)
    runs = [expert.run for expert in experts]
    compared = runner.run_parts("compare", guide_tasks.compare_estimates, parts, run, runs)
    products = np.sum([part["products"] for part in compared], axis=0)
    weighed = math.fsum(part["weighed"] for part in compared)
    risks, trusts = np.array([expert.risk for expert in experts]), {expert.name: expert.trust for expert in experts}
    compared_risks = risks + np.array([expert.caution for expert in experts])
    weights = weights_of_least_risk(trusts, compared_risks, products, weighed, noise_sums(run, n)[0] / n)
    gains = runner.run_parts("average", guide_tasks.average_gain, parts, run, runs, weights.tolist())
    gain, weighed_gain = (math.fsum(part[name] for part in gains) for name in ("gain", "weighed"))
    return weights, AverageRisk(*average_risk(risks, [expert.risk_se for expert in experts], weights, gain, weighed_gain))
