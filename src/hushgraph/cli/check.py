"""hushgraph check: what counting would make of private events, on the owner's screen, before anything is charged."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hushgraph._errors import HushgraphError, InputError
from hushgraph.cli.event_options import Counting, Windows
from hushgraph.cli.graph_options import GraphFile, GraphReading, check_graph_first
from hushgraph.cli.options import AsJson, grouped
from hushgraph.cli.terminal import open_terminal, printable


@grouped
def command(
    graph_file: GraphFile,
    events: Annotated[
        Path, typer.Argument(metavar="EVENTS", help="Private events, as hushgraph release takes them: .csv, .csv.gz or .parquet.")
    ],
    *,
    counting: Counting,
    windowed: Windows,
    reading: GraphReading,
    as_json: AsJson = False,
) -> None:
    """Show what counting would make of private events: how many rows are understood, and why the others are not.

    For your screen only: what it says is private. No ledger is touched, nothing is charged, nothing is written.
    """
    with open_terminal("check", as_json=as_json, quiet=False) as terminal:
        terminal.text_when_interrupted = "nothing was charged, nothing was written"
        check_graph_first("check", graph_file, events)
        if counting.unit is None and not counting.assume_bound:
            msg = "say with --unit who is protected (and whose column of ids it is), or --assume-bound if there are no ids"
            raise InputError(msg)
        graph = reading.graph(terminal, graph_file)
        try:
            report = counting.check(terminal, events, graph, windowed=windowed)
        except InputError:
            if not as_json:  # the error itself names no column of the file
                _show_columns(counting, events, windowed)
            raise
        if not as_json:
            typer.echo(printable(str(report)))
        terminal.result({"private": "not for publication", **asdict(report)})


def _show_columns(counting: Counting, events: Path, windowed: Windows) -> None:
    """Print the first line of the events, as names of columns, if a column is not there."""
    with suppress(HushgraphError):
        columns = counting.columns(events, windowed=windowed)
        if columns:
            typer.echo(printable(f"Private, the first line of the events: {columns}"))
