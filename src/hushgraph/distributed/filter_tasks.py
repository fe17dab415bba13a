"""The fitted filter of `auto` on partitions: moments of the signal and of probes, and a polynomial of any degree, round after round.

Ghost zones are as deep as the polynomials of the frame. The fitted filter needs more terms of the recurrence than that. A round computes
as many terms as the zone is deep and writes the last two of them at owned nodes; the next round reads those of its ghosts from the files
of their owners, and continues. Each term has the bits of one machine. The moments x'T_m x are sums over owned nodes, and add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hushgraph._progress import between, nth
from hushgraph.distributed.ghosts import Part
from hushgraph.distributed.let_tasks import graph_work
from hushgraph.distributed.runner import Facts, Runner, Task
from hushgraph.distributed.store import Output, is_marked, mark_array, read_manifest, read_marked, sum_arrays, write_array
from hushgraph.distributed.wavelet_tasks import Run
from hushgraph.estimators import FilterFit, GraphSpectrum, filter_degrees, fit_by_moments, n_trace_probes
from hushgraph.graphs import REACH
from hushgraph.wavelets import climb, moments_of_products


def climb_spectrum(run: Run, part: int, number: int, steps: int) -> dict[str, Any]:
    """Write the last two terms of the signal and of each probe after a round of the recurrence, and the products of all its terms."""
    out = run.output(part, f"spectrum{number}")
    if (finished := out.read_facts()) is not None:
        return finished
    zone = Part(run.work, part)
    count, owned, products = 1 + n_trace_probes(graph_work(run)), zone.owned, []
    frame, shares, bands = run.frame(zone), _shares(zone), np.empty((1, zone.n))
    nothing = np.zeros((1, steps + 1))

    def rows() -> Iterator[np.ndarray]:
        for signal in range(count):
            terms = _last_terms(run, zone, "spectrum", number, signal)
            products.append(climb(frame, nothing, terms, bands, shares=shares, first=number == 0))
            yield from terms[:, owned]

    out.save_rows("terms", (2 * count, len(owned)), np.float64, rows())
    out.save("products", np.stack(products))
    return out.mark_done({})


def apply_filter(run: Run, part: int, number: int, start: int, steps: int, is_last: bool) -> dict[str, Any]:
    """Write the sum of the terms so far of the signal and of each kept probe, and, unless the round is the last, the last two terms."""
    out = run.output(part, "filter" if is_last else f"filter{number}")
    if (finished := out.read_facts()) is not None:
        return finished
    zone = Part(run.work, part)
    frame, shares, owned = run.frame(zone), _shares(zone), zone.owned
    coefficients = read_marked(run.folder / "filter.npy")[None, start : start + steps + 1]
    before = None if number == 0 else run.output(part, f"filter{number - 1}").load("bands", whole=False)
    sums, last_terms = [], []
    for signal in range(1 + run.kept_probes):
        terms, bands = _last_terms(run, zone, "filter", number, signal), np.zeros((1, zone.n))
        if before is not None:
            bands[0, owned] = before[signal]
        if steps:
            climb(frame, coefficients, terms, bands, shares=shares, first=number == 0)
        else:
            bands = coefficients * terms[1]
        sums.append(bands[0, owned])
        last_terms += [] if is_last else list(terms[:, owned])
    out.save("bands", np.stack(sums))
    if not is_last:
        out.save("terms", np.stack(last_terms))
    return out.mark_done({})


def _shares(zone: Part) -> np.ndarray:
    """Return 1 at owned nodes, and 0 at ghosts."""
    shares = np.zeros(zone.n)
    shares[zone.owned] = 1.0
    return shares


def _last_terms(run: Run, zone: Part, stage: str, number: int, signal: int) -> np.ndarray:
    """Return the last two terms (2, n) of a signal at owned nodes and ghosts: 0 and the signal itself before the first round."""
    terms = np.zeros((2, zone.n))
    if number == 0:
        zone.fill(terms[1:], run.part_folder, "gate", "rest", row=signal)
    else:
        zone.fill(terms, run.part_folder, f"{stage}{number - 1}", "terms", row=2 * signal)
    return terms


# ---- the driver ------------------------------------------------------------------------------------------------------


def fit_filter(run: Run, runner: Runner, parts: int, typical: float) -> FilterFit:
    """Return the filter of the signal, from the moments that rounds of the recurrence add up; `typical` is the mean variance of the noise.

    The sums of a round are kept in a file, and its terms are removed when the next round is done.
    """
    facts = read_manifest(run.work)
    degrees, upper = filter_degrees(facts["n"], graph_work(run)), facts["lambda_upper"]
    done: list[np.ndarray] = []  # products of each round
    low, high = runner.shares["spectrum"]

    def spectra(degree: int) -> tuple[np.ndarray, GraphSpectrum]:
        reached = sum(products.shape[1] // 2 for products in done)
        steps, place = rounds(run, parts, degree - reached), degrees.index(degree)
        for k, count in enumerate(steps):
            number = len(done)
            path = run.part_folder(0) / f"products{number}.npy"
            if not is_marked(path):
                with between(low, high), nth(place, len(degrees)), nth(k, len(steps)):
                    run_round(runner, "spectrum", number, climb_spectrum, [(run, part, number, count) for part in range(parts)])
                products = sum_arrays(_outputs(run, parts, f"spectrum{number}"), "products")
                mark_array(path, write_array(path, products, safe=True))
            done.append(read_marked(path))
            if number:
                _remove(run, parts, f"spectrum{number - 1}")
        products = np.concatenate([done[0], *(later[:, 1:] for later in done[1:])], axis=1)
        moments = moments_of_products(products)
        return moments[:1], GraphSpectrum.of_moments(moments[1:], degree, upper)

    model = fit_by_moments(spectra, degrees, run.variance, typical)
    _remove(run, parts, f"spectrum{len(done) - 1}")
    return model


def run_filter(run: Run, runner: Runner, parts: int, coefficients: np.ndarray) -> None:
    """Write the signal and the kept probes through the polynomial with these coefficients."""
    mark_array(run.folder / "filter.npy", write_array(run.folder / "filter.npy", coefficients, safe=True))
    steps = rounds(run, parts, len(coefficients) - 1)
    stages = [*(f"filter{number}" for number in range(len(steps) - 1)), "filter"]
    low, high = runner.shares["filter"]
    for number in range(_latest(run, parts, stages), len(steps)):
        start, is_last = sum(steps[:number]), number == len(steps) - 1
        with between(low, high), nth(number, len(steps)):
            jobs: list[tuple[Any, ...]] = [(run, part, number, start, steps[number], is_last) for part in range(parts)]
            run_round(runner, "filter", number, apply_filter, jobs)
        if number:
            _remove(run, parts, f"filter{number - 1}")


def _outputs(run: Run, parts: int, stage: str) -> list[Output]:
    """Return the files of a stage of all partitions."""
    return [run.output(part, stage) for part in range(parts)]


def _latest(run: Run, parts: int, stages: list[str]) -> int:
    """Return the number of the latest stage that is done in all partitions, or 0."""
    numbers = reversed(range(len(stages)))
    return next((k for k in numbers if all(out.read_facts() is not None for out in _outputs(run, parts, stages[k]))), 0)


def _remove(run: Run, parts: int, stage: str) -> None:
    """Remove the files of a round that the next one has read."""
    for out in _outputs(run, parts, stage):
        out.remove()


def rounds(run: Run, parts: int, degree: int) -> list[int]:
    """Return the number of terms of each round, as many as ghost zones are deep; one partition needs a single round."""
    depth = max(read_manifest(run.work)["degree"], REACH) if parts > 1 else max(degree, 1)
    return [min(depth, degree - start) for start in range(0, max(degree, 1), depth)]


def run_round(runner: Runner, stage: str, number: int, task: Task, jobs: list[tuple[Any, ...]]) -> list[Facts]:
    """Return the facts of the tasks of a round; its time is added to that of its stage."""
    name = f"{stage}{number}"
    results = runner.run(name, task, jobs)
    runner.timings[stage] = runner.timings.get(stage, 0.0) + runner.timings.pop(name)
    return results
