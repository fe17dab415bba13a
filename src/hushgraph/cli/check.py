"""hushgraph check: what counting would make of private events, on the owner's screen, before anything is charged."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hushgraph._errors import InputError
from hushgraph.cli.event_options import Counting, Windows
from hushgraph.cli.graph_options import GraphFile, GraphReading
from hushgraph.cli.options import AsJson, grouped
from hushgraph.cli.terminal import open_terminal, printable


@grouped
def command(
    events: Annotated[
        Path, typer.Argument(metavar="EVENTS", help="Private events, as hushgraph release takes them: .csv, .csv.gz or .parquet.")
    ],
    graph_file: GraphFile,
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
        terminal.stopped = "nothing was charged, nothing was written"
        if counting.unit is None and not counting.assume_bound:
            msg = "say with --unit who is protected (and whose column of ids it is), or --assume-bound if there are no ids"
            raise InputError(msg)
        graph = reading.graph(terminal, graph_file)
        report = counting.check(terminal, events, graph, windowed=windowed)
        if not as_json:
            typer.echo(printable(str(report)))
        terminal.result({"private": "not for publication", **asdict(report)})
