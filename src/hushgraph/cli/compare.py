"""hushgraph compare: a table of methods for one noisy signal, with their estimated errors."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hushgraph.cli.denoise import read_noisy
from hushgraph.cli.failures import in_options
from hushgraph.cli.graph_options import GraphFile, GraphReading, check_graph_first
from hushgraph.cli.guide_files import refuse_release_file
from hushgraph.cli.options import AsJson, Quiet, grouped
from hushgraph.cli.terminal import open_terminal
from hushgraph.estimators import BASELINES, METHODS

# typer lists the members of an enumeration as choices; type checkers cannot read one that is made from a table
if TYPE_CHECKING:
    Compared = str
else:
    Compared = StrEnum("Compared", {name: name for name in (*METHODS, *BASELINES)})


@grouped
def command(
    graph_file: GraphFile,
    signal_file: Annotated[
        Path, typer.Argument(metavar="SIGNAL", help="Values: .csv, .tsv, .parquet, .npy, or a release's folder.")
    ],
    *,
    sigma: Annotated[
        float | None, typer.Option(help="Standard deviation of the noise. Estimated if not given; known for a release.")
    ] = None,
    nonnegative: Annotated[bool, typer.Option("--nonnegative", help="The true values cannot be negative.")] = False,
    method: Annotated[
        list[Compared] | None, typer.Option(help="Method to compare; may be given several times. Default: a few that differ.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="Column with the values, if there are several.")] = None,
    label: Annotated[str | None, typer.Option(help="Column of the node labels, if it is not found by itself.")] = None,
    reading: GraphReading,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show which methods have which estimated error and time on one noisy signal; writes no file."""
    with open_terminal("compare", as_json=as_json, quiet=quiet) as terminal:
        refuse_release_file(signal_file)
        check_graph_first("compare", graph_file, signal_file)
        graph = reading.graph(terminal, graph_file)
        with terminal.working("Reading the signal"):
            from hushgraph.estimators import compare

            noisy, _ = read_noisy(terminal, graph, signal_file, [column] if column else [], label, missing_ok=False)
        names = [str(name) for name in method] if method else None
        with terminal.watching(f"Comparing methods on {graph.n:,} nodes", stages=True):
            comparison = compare(graph, noisy, sigma=sigma, methods=names, nonnegative=nonnegative)
        head, rows = comparison.cells()
        terminal.table(head, [[in_options(cell, "compare") for cell in row] for row in rows])
        terminal.story({"Table": f"{comparison.legend}. Differences within risk_se mean nothing."})
        facts = [{**asdict(row), "note": in_options(row.note, "compare")} for row in comparison.rows]
        terminal.result({"nodes": graph.n, "sigma": comparison.sigma, "best": comparison.best, "methods": facts})
