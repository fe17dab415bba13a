"""What the tasks of a distributed run cost, and what larger clusters would do: `python benchmarks/scaling.py model`.

Measures a series of runs, fits the cost of tasks (`cost_model.py`), simulates the schedule (`schedule.py`), holds it against a run on two
workers, predicts larger ones, and counts ghosts (`ghost_growth.py`). Writes benchmarks/results/scaling-model.md and docs/images/scaling.png.
"""

from __future__ import annotations

import datetime
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import ghost_growth
import numpy as np
from cost_model import GROUPS, STAGES, Costs, fitted, run_of, threaded_shares
from scaling import measured, streets
from scaling_picture import draw
from schedule import Cluster, simulate

HERE = Path(__file__).parent
RESULTS, PICTURE = HERE / "results" / "scaling-model.md", HERE.parent / "docs" / "images" / "scaling.png"
SERIES = [
    (512, 2, 100),
    (724, 2, 100),
    (1024, 2, 100),
    (1024, 8, 100),
    (1024, 2, 30),
    (1448, 2, 100),
    (2000, 2, 100),
]  # side, parts, degree
CHECK = (1448, 6, 100)  # on two workers
SPEED = 8.0  # assumed: how much faster 16 threads are where work is divided among them
SPREAD, HOURS, SEEDS = 0.25, 100.0, 20  # of stragglers; worker hours between deaths; simulations that are averaged
SYSTEMS = {"2 GB/s": (2e9, 2e8), "20 GB/s": (20e9, 1e9)}  # file systems: in all, and for each worker
USUAL = 5e6  # nodes of a partition, at most
ENTRIES = 3.6  # neighbours of a node of these streets
SCALES = 5


def tell_all(folder: Path) -> None:
    """All of it; the tables are printed and written when everything is done."""
    from hushgraph.experiments.stage import machine

    runs, costs, slowdown, file_facts = measure(folder)
    checked, scheduler = checking(folder, costs, slowdown)
    border = ghost_growth.border()
    shown = predictions(costs, border, scheduler)
    draw(PICTURE, by_workers(costs, border, scheduler), shown)
    lines = [
        "# What tasks cost, and larger clusters\n",
        f"`benchmarks/scaling.py model`, {datetime.date.today()}, {machine()}. Generated streets: a grid with a tenth of its edges taken out, "
        "unweighted; `sgwt_scaled`, one probe. Seconds are CPU seconds of one core unless a table says otherwise.\n",
        *series_table(runs),
        *constants_table(costs, file_facts, scheduler, slowdown),
        *size_table(runs, scheduler["started"]),
        *check_table(checked, scheduler["others"]),
        *prediction_table(shown, border),
        "\n## Ghosts by hops: where partitions pay\n",
        *ghost_growth.table(),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    RESULTS.write_text(text, "utf-8")


# ---- measured -----------------------------------------------------------------------------------------------------------


def measure(folder: Path) -> tuple[list[dict], Costs, float, dict]:
    """The series; then one of them with two threads, and twice at once."""
    _cores(1)
    for side in {side for side, *_ in SERIES}:
        streets(folder / str(side), side)
    once = {"folder": str(folder / "512"), "partitions": 2, "degree": 20}
    measured("stages", **once)  # imports and warms up
    runs = [measured("stages", folder=str(folder / str(side)), partitions=parts, degree=degree) for side, parts, degree in SERIES]
    usual = {"folder": str(folder / "1448"), "partitions": 2, "degree": 100}
    one = next(run for run, (side, *_) in zip(runs, SERIES, strict=True) if side == 1448)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: measured("stages", **usual), range(2)))
    slowdown = max(1.0, float(np.mean([_cpu(run) for run in both])) / _cpu(one))
    _cores(2)
    two = measured("stages", threads=2, **usual)
    _cores(1)
    facts = {name: value for name, value in measured("file_bytes", folder=str(folder)).items() if name != "wall"}
    return runs, fitted(runs, facts, threaded_shares(one, two)), slowdown, facts


def _cores(threads: int) -> None:
    """Threads of the libraries that processes load, and memory given back at once: as Dask sets them for its workers."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ["MALLOC_TRIM_THRESHOLD_"] = "65536"


def _cpu(run: dict, stages=STAGES) -> float:
    return sum(task["cpu"] for task in run["tasks"] if task["stage"] in stages)


def checking(folder: Path, costs: Costs, slowdown: float) -> tuple[dict, dict]:
    """Seconds of each stage on two workers, simulated and measured."""
    side, parts, degree = CHECK
    real = measured("on_workers", folder=str(folder / str(side)), workers=2, partitions=parts, degree=degree)
    tasks = run_of(costs, real["n"], real["own"], real["rows"], real["edges"], degree)
    tasks = {
        name: [replace(task, seconds=task.seconds * (1 if len(own) == 1 else slowdown)) for task in own]
        for name, own in tasks.items()
    }
    scheduler = {name: real[name] for name in ("stage", "empty", "started", "others")}
    found = simulate(tasks, Cluster(2, dispatch=real["empty"], stage=real["stage"]))
    checked = {}
    for name, seconds in found.items():
        work = sum(task.seconds for task in tasks[name])
        checked[name] = seconds, real["timings"].get(name, 0.0), work, real["spent"].get(name, work)
    return checked, scheduler


# ---- predicted ----------------------------------------------------------------------------------------------------------


def tasks_at(costs: Costs, border: tuple[float, float], n: float, workers: int, cores: int) -> tuple[dict, dict]:
    """Tasks of a run at degree 100 with at least one partition per worker, and what they are like."""
    parts = workers * math.ceil(n / USUAL / workers)
    own = n / parts
    rows = own + border[0] * 100 * math.sqrt(own) + border[1] * 100**2
    tasks = run_of(costs, int(n), [own] * parts, [rows] * parts, ENTRIES / 2 * n, 100, cores, SPEED)
    moved = sum(task.read + task.written for own_tasks in tasks.values() for task in own_tasks)
    return tasks, {"partitions": parts, "own": own, "rows": rows, "moved": moved}


def predictions(costs: Costs, border, scheduler: dict) -> list[dict]:
    """100 workers of 1 and 16 cores, two sizes, two file systems."""
    found = []
    for n in (1e8, 1e9):
        for system, (total, each) in SYSTEMS.items():
            for cores in (1, 16):
                tasks, facts = tasks_at(costs, border, n, 100, cores)
                cluster = Cluster(100, scheduler["empty"], scheduler["stage"], total, each)
                stages = simulate(tasks, cluster)
                plain = sum(stages.values())

                def mean(make, tasks=tasks, plain=plain):
                    return float(np.mean([sum(simulate(tasks, make(seed)).values()) for seed in range(SEEDS)])) - plain

                slow = mean(lambda seed, cluster=cluster: replace(cluster, spread=SPREAD, seed=seed))
                one = mean(lambda seed, cluster=cluster, at=plain / 2: replace(cluster, deaths=(at,), seed=seed))
                some = mean(lambda seed, cluster=cluster: replace(cluster, hours=HOURS, seed=seed))
                lost = {"slow": slow, "one": one, "some": some}
                found.append({"n": n, "system": system, "cores": cores, "groups": grouped(stages), "total": plain, **facts, **lost})
    return found


def by_workers(costs: Costs, border, scheduler: dict) -> dict:
    """Minutes against the number of workers."""
    found = {}
    for n in (1e8, 1e9):
        for system, (total, each) in SYSTEMS.items():
            points = []
            for workers in (10, 20, 50, 100, 200, 500, 1000):
                tasks, _ = tasks_at(costs, border, n, workers, 1)
                seconds = sum(simulate(tasks, Cluster(workers, scheduler["empty"], scheduler["stage"], total, each)).values())
                points.append((workers, seconds))
            found[n, system] = points
    return found


def grouped(stages: dict[str, float]) -> dict[str, float]:
    return {group: sum(stages[name] for name in names) for group, names in GROUPS.items()}


# ---- tables -------------------------------------------------------------------------------------------------------------


def series_table(runs: list[dict]) -> list[str]:
    lines = [
        "## The series: one process, out of core\n",
        "| nodes | partitions | degree | rows per node | preparing, s | transform, s | thresholds, s | finish, write, s | client, s "
        "| read, GB | written, GB | peak memory, GB |",
        "|" + "---|" * 12,
    ]
    for run in runs:
        parts = [_cpu(run, GROUPS[name]) for name in list(GROUPS)[1:]]
        read, written = (sum(task[name] for task in run["tasks"]) / 1e9 for name in ("read", "written"))
        lines.append(
            f"| {run['n']:,} | {run['partitions']} | {run['degree']} | {run['growth']:.3f} | "
            + " | ".join(f"{part:.2f}" for part in [*parts, sum(run["client"])])
            + f" | {read:.2f} | {written:.2f} | {max(task['peak'] for task in run['tasks']) / 1e9:.2f} |"
        )
    return lines


def constants_table(costs: Costs, file_facts: dict, scheduler: dict, slowdown: float) -> list[str]:
    lines = [
        "\n## Constants\n",
        "Fitted by least squares of relative errors over all tasks of the series; seconds per byte and per empty task measured by themselves.\n",
        "| | |",
        "|---|---|",
        f"| a row, step of the recurrence and transform ({SCALES} scales, {ENTRIES} neighbours) | {costs.step * 1e9:.2f} ns |",
        f"| a byte read, written (page cache) | {file_facts['read'] * 1e9:.2f} ns, {file_facts['written'] * 1e9:.2f} ns |",
        f"| a task | {costs.task * 1e3:.1f} ms |",
        f"| an empty stage, scheduler and client | {scheduler['stage'] * 1e3:.0f} ms |",
        f"| each further empty task of it | {scheduler['empty'] * 1e3:.1f} ms |",
        f"| a node of the whole graph, in each task of `rows` | {costs.node * 1e9:.2f} ns |",
        f"| the client, preparing and denoising: per node | {', '.join(f'{one[0] * 1e9:.0f} ns' for one in costs.client.values())} |",
        f"| the client, per partition | {', '.join(f'{one[1] * 1e3:.0f} ms' for one in costs.client.values())} |",
        f"| two processes at once on this machine: CPU seconds of each | {slowdown:.2f} times |",
        "\nBesides steps and bytes, per row with its ghosts (zones, transform, survey, finish), owned node, or edge (sort); the error is the root "
        "mean square over the tasks of the stage; the last column is the share of the seconds that a second thread halved.\n",
        "| stage | ns | bytes read per owned node (edge), ghost | bytes written | error | threaded |",
        "|---|---|---|---|---|---|",
    ]
    for stage in STAGES:
        sizes = [f"{getattr(costs, name)[stage][0]:.0f}, {getattr(costs, name)[stage][1]:.0f}" for name in ("read", "written")]
        more = f" (and {costs.read[stage][2]:.0f} per node of the graph)" if costs.read[stage][2] > 0 else ""
        lines.append(
            f"| {stage} | {costs.per[stage] * 1e9:.1f} | {sizes[0]}{more} | {sizes[1]} | {costs.residuals[stage]:.0%} | {costs.threaded[stage]:.0%} |"
        )
    return lines


def size_table(runs: list[dict], on_worker: float) -> list[str]:
    """What `plan` says of the series, against what was measured."""
    from hushgraph.distributed.cost_model import BASE, START, Cost, Shape

    lines = [
        "\n## What `plan` says, over what was measured\n",
        "| nodes | partitions | degree | CPU preparing | CPU denoising | memory of the largest task | files while it runs |",
        "|" + "---|" * 7,
    ]
    for run in runs:
        shape = Shape(2 * run["edges"] / run["n"], run["n_scales"])
        n, rows, first = run["n"], sum(run["rows"]), ("sort", "rows", "zones")
        cost = Cost(run["edges"], rows, run["degree"], shape, run["partitions"])
        preparing = _cpu(run, first) + run["client"][0]
        denoising = _cpu(run, [stage for stage in STAGES if stage not in first]) + run["client"][1]
        memory = (BASE + max(run["rows"]) * shape.per_row) / max(task["peak"] for task in run["tasks"])
        files = 10 * n + sum(task["written"] for task in run["tasks"] if task["stage"] != "sort")
        disk = n * (shape.prepared[0] + shape.disk) + rows * shape.prepared[1]
        lines.append(
            f"| {n:,} | {run['partitions']} | {run['degree']} | {cost.prepare / preparing:.2f} | {cost.denoise / denoising:.2f} | {memory:.2f} | "
            f"{disk / files:.2f} |"
        )
    started, base = (float(np.median([run[name] for run in runs])) for name in ("start", "base"))
    lines.append(
        f"\nUntil all code is loaded and a small run is done a process takes {started:.1f} CPU seconds, a worker {on_worker:.1f} (`plan`: {START:g}), and {base / 1e9:.2f} GB (`plan`: {BASE / 1e9:g})."
    )
    return lines


def check_table(checked: dict[str, tuple[float, ...]], others: float) -> list[str]:
    side, parts, _ = CHECK
    lines = [
        f"\n## The simulation against a run: 2 workers, {side * side:,} nodes, {parts} partitions\n",
        "The simulation knows the series above (one process), what an empty task takes, and how much two processes slow each other down; files are "
        f"in the page cache. Other work kept {others:.1f} of the 2 processors busy during the run: with more than a few tenths, compare CPU seconds only.\n",
        "| stage | clock, simulated, s | clock, measured, s | CPU of workers, from the model, s | CPU of workers, measured, s |",
        "|---|---|---|---|---|",
    ]
    for name, found in checked.items():
        shown = [f"{value:.2f}" if k < 2 or not name.startswith("client") else "" for k, value in enumerate(found)]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    clock, real = (sum(found[k] for found in checked.values()) for k in (0, 1))
    work, spent = (sum(found[k] for name, found in checked.items() if not name.startswith("client")) for k in (2, 3))
    return [
        *lines,
        f"| **all** | **{clock:.2f}** ({clock / real - 1:+.0%}) | **{real:.2f}** | **{work:.2f}** ({work / spent - 1:+.0%}) | **{spent:.2f}** |",
    ]


def prediction_table(shown: list[dict], border: tuple[float, float]) -> list[str]:
    from hushgraph.distributed.cost_model import BASE, Shape

    lines = [
        "\n## Predictions (none of this was run): 100 workers\n",
        f"Simulated with the constants above. Ghosts of a box: {border[0]:.2f} x depth x sqrt(owned) + {border[1]:.2f} x depth^2 (counted on boxes of 40,000 "
        f"to 640,000 nodes). All bytes go through the shared file system, 2 GB/s in all and 0.2 GB/s for each worker, "
        f"or 20 GB/s and 1 GB/s: no cache helps. 16 threads are assumed to be {SPEED:g} times as fast where a second one halved the time. "
        f"Lost time: stragglers (lognormal, {SPREAD:g}), one worker dead in the middle (back after 30 s), deaths at random (one per {HOURS:g} worker hours); means of {SEEDS}.\n",
        "| nodes | file system | cores each | partitions | GB per task | TB moved | " + " | ".join(f"{name}, s" for name in GROUPS)
        + " | **all, s** | stragglers, s | one death, s | deaths, s |",
        "|" + "---|" * (10 + len(GROUPS)),
    ]  # fmt: skip
    for one in shown:
        memory = BASE + one["rows"] * Shape(ENTRIES, SCALES).per_row
        lines.append(
            f"| {one['n']:,.0f} | {one['system']} | {one['cores']} | {one['partitions']} of {one['own'] / 1e6:.0f} M (x {one['rows'] / one['own']:.2f}) | {memory / 1e9:.1f} | "
            f"{one['moved'] / 1e12:.2f} | " + " | ".join(f"{seconds:.0f}" for seconds in one["groups"].values())
            + f" | **{one['total']:.0f}** | {one['slow']:+.1f} | {one['one']:+.1f} | {one['some']:+.1f} |"
        )  # fmt: skip
    return lines
