"""`auto` on partitions for values that cannot be negative: `counts`, with a share of the combination, as on one machine.

Each of the two is a run of its own, in a folder of this run, with the same stages.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hushgraph.distributed import counts_driver, guide_tasks, let_driver
from hushgraph.distributed.guide_driver import sub_runner
from hushgraph.distributed.noise_levels import noise_sums
from hushgraph.distributed.risks import risk_of
from hushgraph.distributed.runner import Facts, Runner
from hushgraph.distributed.wavelet_tasks import Run
from hushgraph.estimators import DOUBT, HEDGE, average_risk, average_words, counts_verdict

STAGES = {
    "counts": 25.0,
    "combination": 50.0,
    "compare": 0.5,
    "average": 0.5,
    "finish": 0.5,
    "write": 0.5,
}  # rough shares of the time


def run_averaged(run: Run, runner: Runner, parts: int, n: int) -> Facts:
    """Run all stages up to the signal; return risk, standard errors, divergence and an account."""
    both = [replace(run, folder=run.folder / name, nonnegative=False) for name in ("counts", "combination")]
    with sub_runner(runner, "counts", counts_driver.STAGES) as part_runner:
        counts = counts_driver.run_counts(replace(both[0], method="counts"), part_runner, parts, n)
    refined = let_driver.plan_of(both[1], n).refined
    with sub_runner(runner, "combination", let_driver.stages_of(run.method, refined=refined)) as part_runner:
        terms, fitted = let_driver.run_let(both[1], part_runner, parts, n, noise_sums(run, n)[0])
    combination = risk_of(both[1], n, terms, fitted) | {"account": fitted["account"]}
    compared = runner.run_parts("compare", guide_tasks.compare_estimates, parts, run, both)
    apart = math.sqrt(math.fsum(part["weighed"] for part in compared))
    gap = counts["risk"] + counts["caution"] - combination["risk"] - fitted["caution"]
    doubt = gap / (2 * apart) if apart > 0 else 0.0
    shares = np.array([0.0, 1.0] if doubt > DOUBT else [1 - HEDGE, HEDGE])
    gains = runner.run_parts("average", guide_tasks.average_gain, parts, run, both, shares.tolist())
    gain, weighed = (math.fsum(part[name] for part in gains) for name in ("gain", "weighed"))
    names = ("risk", "risk_se", "probe_se", "divergence")
    pairs = {name: np.array([counts[name], combination[name]]) for name in names}
    risk, risk_se = average_risk(pairs["risk"], pairs["risk_se"].tolist(), shares, gain, weighed)
    runner.run_parts("finish", guide_tasks.write_average, parts, run, both, shares.tolist())
    left_out = [*combination["account"].get("left_out", ()), *counts["account"]["left_out"]]
    account = {**combination["account"], "counts": counts_verdict(doubt), "left_out": left_out}
    if doubt <= DOUBT:
        account |= {"why": average_words(shares), "features": counts["account"]["features"], "combination": combination["account"]}
    numbers = {"risk": risk, "risk_se": risk_se, **{name: float(shares @ pairs[name]) for name in ("probe_se", "divergence")}}
    return {**numbers, "account": account}
