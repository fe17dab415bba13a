"""hushgraph bench: times on this machine, compared with the same recurrence in SciPy."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import Annotated, Any

import typer

from hushgraph._errors import ComputationError
from hushgraph.cli.options import AsJson, Quiet
from hushgraph.cli.terminal import open_terminal


def command(
    nodes: Annotated[int, typer.Option(min=1000, max=50_000_000, help="Nodes of the generated road network.")] = 200_000,
    degree: Annotated[int, typer.Option(min=1, max=1000, help="Degree of the polynomials.")] = 100,
    repeats: Annotated[int, typer.Option(min=1, max=100, help="Runs of each step, of which the fastest counts.")] = 5,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Time transform, inverse and denoising on this machine, against the same recurrence written with SciPy."""
    with open_terminal("bench", as_json=as_json, quiet=quiet) as terminal:
        terminal.text_when_interrupted = "incomplete times are not shown"
        with terminal.working(f"A generated road network of {nodes:,} nodes", total=8) as done:
            facts = measure(nodes, degree, repeats, done)
        seconds, ratios = facts["seconds"], facts["ratios"]
        rows = [
            [name, f"{seconds[key]:.3f}", f"{seconds[f'scipy_{key}']:.3f}", f"{ratios[key]:.1f}"]
            for name, key in (("forward", "forward"), ("inverse", "inverse"))
        ]
        rows.append(["whole denoising (sgwt_sure)", f"{seconds['denoise']:.3f}", "", ""])
        terminal.table(["seconds", "hushgraph", "SciPy", "times faster"], rows)
        terminal.story(
            {
                "Graph": f"{facts['nodes']:,} nodes, {facts['edges']:,} edges, {facts['scales']} scales, degree {degree}, float64.",
                "Machine": f"{facts['machine']}, {facts['threads']} threads; {facts['date']}.",
            }
        )
        terminal.result(facts)


def measure(nodes: int, degree: int, repeats: int, done: Callable[[float], None]) -> dict[str, Any]:
    """Return all times for one graph; the first run of each step warms up and does not count."""
    import numpy as np

    from hushgraph.core import thread_count
    from hushgraph.datasets import roads
    from hushgraph.estimators import denoise
    from hushgraph.experiments import ScipyRecurrence, machine
    from hushgraph.wavelets import analyze, chebyshev_frame, synthesize

    graph = roads(nodes, seed=0)
    done(1)
    frame = chebyshev_frame(graph, degree=degree)
    noisy = np.random.default_rng(0).normal(0, 1, graph.n)
    scipy_recurrence, bands = ScipyRecurrence(frame), analyze(frame, noisy)
    done(2)
    if not np.allclose(scipy_recurrence.forward(noisy), bands, atol=1e-9):
        msg = "SciPy's recurrence and hushgraph disagree on this machine: no times are given; please report it with your versions"
        raise ComputationError(msg)
    done(3)

    def denoise_from_scratch() -> Any:
        graph.forget()  # the times of spectrum and layout count too
        return denoise(graph, noisy, sigma=1.0, method="sgwt_sure")

    steps: dict[str, Callable[[], Any]] = {
        "forward": lambda: analyze(frame, noisy),
        "inverse": lambda: synthesize(frame, bands),
        "denoise": denoise_from_scratch,
        "scipy_forward": lambda: scipy_recurrence.forward(noisy),
        "scipy_inverse": lambda: scipy_recurrence.inverse(bands),
    }
    seconds = {}
    for k, (name, step) in enumerate(steps.items()):
        is_slow = name == "scipy_inverse"  # takes as long as everything else together
        seconds[name] = _best_of(step, 1 if is_slow else repeats, warm_up=not is_slow)
        done(4 + k)
    return {
        "nodes": graph.n,
        "edges": graph.n_edges,
        "scales": frame.n_scales,
        "degree": degree,
        "seconds": seconds,
        "ratios": {name: seconds[f"scipy_{name}"] / seconds[name] for name in ("forward", "inverse")},
        "threads": thread_count(),
        "machine": machine(),
        "date": datetime.date.today().isoformat(),
    }


def _best_of(step: Callable[[], Any], repeats: int, *, warm_up: bool) -> float:
    """Return the shortest time of `repeats` runs in seconds."""
    if warm_up:
        step()
    times = []
    for _ in range(repeats):
        before = time.perf_counter()
        step()
        times.append(time.perf_counter() - before)
    return min(times)
