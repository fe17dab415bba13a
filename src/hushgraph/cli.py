"""The command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

app = typer.Typer(
    name="hushgraph",
    help="Denoise signals on very large graphs, and publish them privately.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_show_locals=False,  # locals may hold private data
)


@app.callback()
def main() -> None:
    """Denoise signals on very large graphs, and publish them privately."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything; what an earlier demo left there is replaced.")] = Path(
        "out/demo"
    ),
    nodes: Annotated[int, typer.Option(min=100, help="Junctions of the generated city.")] = 4600,
    epsilon: Annotated[float, typer.Option(min=1e-3, max=100, help="Privacy budget of the release.")] = 0.5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the city and its trips; the noise of a release has none.")] = 0,
) -> None:
    """Generate a city and trips, count, release privately, denoise, certify, draw; and say what was gained."""
    from rich.console import Console
    from rich.table import Table

    from hushgraph.experiments import demo as experiment

    console = Console(highlight=False)
    os.environ.setdefault("HUSHGRAPH_STATE", str(out / "state"))  # a demo's ledger is nothing to remember elsewhere
    with console.status("A private release in a generated city (the very first run also compiles, up to a minute) ..."):
        try:
            result = experiment.run(out, n_nodes=nodes, epsilon=epsilon, seed=seed)
        except (FileExistsError, NotADirectoryError) as error:
            console.print(f"[red]{error}[/red]")
            raise typer.Exit(2) from None
        pictures = experiment.render(result)
    story = Table.grid(padding=(0, 2))
    for step, words in _demo_story(result).items():
        story.add_row(f"[bold]{step}[/bold]", words)
    console.print(story)
    console.print(
        "\nThe guarantee is each person's: with or without all trips of any one of them, nearly the same map would have come out. "
        "The truth was used for the figures above only because these people do not exist."
    )
    console.print(f"Look at [bold]{pictures[0]}[/bold] and [bold]{pictures[1]}[/bold].")


def _demo_story(result) -> dict[str, str]:
    """What happened, in words."""
    graph, release, ledger = result.graph, result.release, result.ledger
    caps = release.caps
    middle = np.linalg.norm(graph.coords - np.median(graph.coords, axis=0), axis=1) < 800
    return {
        "Data": f"{result.n_trips:,} generated trips of {result.n_people:,} people; {graph.n:,} junctions, {graph.n_edges:,} streets.",
        "Bound": f"each person counts in at most {caps['max_nodes']} junctions, {caps['max_per_node']} time in each: sensitivity² = "
        f"{release.sensitivity_squared}, enforced.",
        "Budget": f"charged before any noise was drawn: epsilon {ledger.spent:.3f} of {ledger.epsilon:g} spent (delta {ledger.delta:g}).",
        "Release": f"exact noise of sigma {release.sigma:.3f} on a lattice of {release.lattice:g}: SNR {result.snr_noisy:.1f} dB.",
        "Denoised": f"[bold]{result.snr_denoised:.1f} dB[/bold], from the release alone, in {result.denoised.timings['total']:.2f} s: "
        f"{1 - result.error_kept:.0%} of the noise energy is gone.",
        "Totals": f"within 800 m of the middle, {middle.sum():,} junctions: {release.total(middle)} estimated, without bias (truth: "
        f"{result.truth[middle].sum():,.0f}).",
        "Files": f"{result.folder / 'release'}: map.csv (noisy, denoised, expected error) and certificate.json.",
    }


@app.command()
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
) -> None:
    """Run the paper's tables and figures again, next to the paper's own numbers; a run that was stopped goes on where it was."""
    from rich.console import Console

    from hushgraph.datasets.sources import DataUnavailable
    from hushgraph.experiments import reproduce as reproduction

    console, done = Console(highlight=False), 0
    folder = reproduction.folder_of(out, smoke=smoke)
    with console.status("Starting (the very first run also compiles, up to a minute) ...") as status:

        def on_cell(name: str) -> None:
            nonlocal done
            done += 1
            status.update(f"{done:,} cells done, last {name}")

        def on_experiment(name: str, rows: int, seconds: float) -> None:
            console.print(f"[bold]{name}[/bold]  {rows:,} rows in {seconds:,.0f} s: {folder / name}.csv, .md")

        wanted = [method.strip() for method in methods.split(",") if method.strip()]
        try:
            reproduction.reproduce(
                experiments or "all", out, smoke=smoke, methods=wanted, on_cell=on_cell, on_experiment=on_experiment
            )
            page = folder / "reproduction.md" if docs is None else reproduction.publish(folder, docs)
        except (ValueError, DataUnavailable, ImportError, OSError) as error:
            console.print(f"[red]{error}[/red]")
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            console.print(f"Stopped after {done:,} cells; the same command goes on from there.")
            raise typer.Exit(130) from None
    console.print(f"Everything on one page: [bold]{page}[/bold]")
