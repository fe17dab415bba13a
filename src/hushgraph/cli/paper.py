"""hushgraph demo and hushgraph reproduce: see it work, on generated data and on the paper's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hushgraph.cli.options import AsJson, Quiet
from hushgraph.cli.terminal import open_terminal


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything; what an earlier demo left there is replaced.")] = Path(
        "out/demo"
    ),
    nodes: Annotated[int, typer.Option(min=100, help="Junctions of the generated city.")] = 4600,
    epsilon: Annotated[float, typer.Option(min=1e-3, max=100, help="Privacy budget of the release.")] = 0.5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the city and its trips; the noise of a release has none.")] = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Generate a city and trips, count, release privately, denoise, certify, draw; and say what was gained."""
    with open_terminal("demo", as_json=as_json, quiet=quiet) as terminal:
        terminal.stopped = f"a part of the demo may be in {out}; run it again to replace it"
        with terminal.working("A private release in a generated city"):
            from hushgraph.experiments import demo as experiment

            os.environ["HUSHGRAPH_STATE"] = str(out / "state")  # a demo's ledger is nothing to remember elsewhere
            result = experiment.run(out, n_nodes=nodes, epsilon=epsilon, seed=seed)
            pictures = experiment.render(result)
        terminal.story(_story(result, pictures))
        terminal.result(
            {
                "folder": result.folder,
                "pictures": pictures,
                "nodes": result.graph.n,
                "edges": result.graph.n_edges,
                "trips": result.n_trips,
                "people": result.n_people,
                "epsilon": result.release.epsilon,
                "delta": result.release.delta,
                "sigma": result.release.sigma,
                "snr_noisy": result.snr_noisy,
                "snr_denoised": result.snr_denoised,
                "noise_energy_left": result.error_kept,
            }
        )


def _story(result, pictures: list[Path]) -> dict[str, str]:
    """What happened, in words."""
    import numpy as np

    from hushgraph.privacy.guarantee import guarantee_in_words

    graph, release, ledger = result.graph, result.release, result.ledger
    caps = release.caps
    middle = np.linalg.norm(graph.coords - np.median(graph.coords, axis=0), axis=1) < 800
    return {
        "Data": f"{result.n_trips:,} generated trips of {result.n_people:,} people; {graph.n:,} junctions, {graph.n_edges:,} streets.",
        "Bound": f"each person counts in at most {caps['max_nodes']} junctions, {caps['max_per_node']} time in each: sensitivity² = "
        f"{release.sensitivity_squared}, enforced.",
        "Budget": f"charged before any noise was drawn: epsilon {ledger.spent:.3f} of {ledger.epsilon:g} spent (delta {ledger.delta:g}).",
        "Release": f"exact noise of sigma {release.sigma:.3f} on a lattice of {release.lattice:g}: SNR {result.snr_noisy:.1f} dB.",
        "Denoised": f"{result.snr_denoised:.1f} dB, from the release alone, in {result.denoised.timings['total']:.2f} s: "
        f"{1 - result.error_kept:.0%} of the noise energy is gone.",
        "Totals": f"within 800 m of the middle, {middle.sum():,} junctions: {release.total(middle)} estimated, without bias (truth: "
        f"{result.truth[middle].sum():,.0f}).",
        "Guarantee": f"{guarantee_in_words(release.epsilon, delta=release.delta, unit=release.unit, adjacency=release.adjacency)} The "
        "truth was used for the figures above only because these people do not exist.",
        "Files": f"{result.folder / 'release'}: map.csv (noisy, denoised, expected error) and certificate.json.",
        "Look at": f"{pictures[0]} and {pictures[1]}",
    }


def reproduce(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="all, or names of experiments; an unknown name lists them.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for tables, figures and finished cells (1.2 GB of eigenvectors in all).")
    ] = Path("out/reproduction"),
    smoke: Annotated[bool, typer.Option("--smoke", help="Generated data, under a minute: shows that everything runs.")] = False,
    docs: Annotated[Path | None, typer.Option(help="Also copy the page of a whole run into this folder of documentation.")] = None,
    methods: Annotated[str, typer.Option(help="Further methods of denoise for the tables, separated by commas.")] = "",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run the paper's tables and figures again, next to the paper's own numbers; a run that was stopped goes on where it was."""
    with open_terminal("reproduce", as_json=as_json, quiet=quiet) as terminal:
        from hushgraph.experiments import reproduce as reproduction

        folder = reproduction.folder_of(out, smoke=smoke)
        done, tables = 0, []
        terminal.stopped = "no cell was finished yet"
        with terminal.working("Experiments"):

            def on_cell(name: str) -> None:
                nonlocal done
                done += 1
                terminal.stopped = f"{done:,} cells are finished, and the same command goes on from there"

            def on_experiment(name: str, rows: int, seconds: float) -> None:
                tables.append({"name": name, "rows": rows, "seconds": seconds, "table": folder / f"{name}.csv"})
                terminal.story({name: f"{rows:,} rows in {seconds:,.0f} s: {folder / name}.csv, .md"})

            wanted = [method.strip() for method in methods.split(",") if method.strip()]
            reproduction.reproduce(
                experiments or "all", out, smoke=smoke, methods=wanted, on_cell=on_cell, on_experiment=on_experiment
            )
            page = folder / "reproduction.md" if docs is None else reproduction.publish(folder, docs)
        terminal.story({"Everything on one page": str(page)})
        terminal.result({"page": page, "smoke": smoke, "experiments": tables})
