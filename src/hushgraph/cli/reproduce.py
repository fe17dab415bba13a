"""hushgraph reproduce: the tables and figures of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hushgraph.cli.options import AsJson, Quiet
from hushgraph.cli.terminal import open_terminal


def _experiments(incomplete: str) -> list[str]:
    """Return the names of experiments that begin like this, for the shell."""
    from hushgraph.experiments import reproduction

    return [name for name in ("all", *reproduction.EXPERIMENTS, *reproduction.BEYOND) if name.startswith(incomplete)]


def command(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="all, or names of experiments; an unknown name lists them.", autocompletion=_experiments
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for tables, figures and finished cells (1.2 GB of eigenvectors in all).")
    ] = Path("out/reproduction"),
    smoke: Annotated[bool, typer.Option("--smoke", help="Generated data, under a minute, to show that everything runs.")] = False,
    docs: Annotated[Path | None, typer.Option(help="Also copy the page of a whole run into this folder of documentation.")] = None,
    methods: Annotated[str, typer.Option(help="Further methods of denoise for the tables, separated by commas.")] = "",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compute the paper's tables and figures again, next to the paper's own numbers; a run that was stopped continues where it ended."""
    with open_terminal("reproduce", as_json=as_json, quiet=quiet) as terminal:
        from hushgraph.experiments import reproduction

        folder = reproduction.folder_of(out, smoke=smoke)
        n_cells, tables = 0, []
        terminal.text_when_interrupted = "no cell was finished yet"
        with terminal.working("Experiments"):

            def on_cell(name: str) -> None:
                nonlocal n_cells
                n_cells += 1
                terminal.text_when_interrupted = f"{n_cells:,} cells are finished, and the same command continues from there"

            def on_experiment(name: str, rows: int, seconds: float) -> None:
                tables.append({"name": name, "rows": rows, "seconds": seconds, "table": folder / f"{name}.csv"})
                terminal.story({name: f"{rows:,} rows in {seconds:,.0f} s: {folder / name}.csv, .md"})

            more_methods = [method.strip() for method in methods.split(",") if method.strip()]
            reproduction.reproduce(
                experiments or "all", out, smoke=smoke, methods=more_methods, on_cell=on_cell, on_experiment=on_experiment
            )
            page = folder / "reproduction.md" if docs is None else reproduction.publish(folder, docs)
        terminal.story({"Everything on one page": str(page)})
        terminal.result({"page": page, "smoke": smoke, "experiments": tables})
