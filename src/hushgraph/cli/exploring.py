"""hushgraph explore: the explorer, a page on this computer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from hushgraph.cli.counting import Counting
from hushgraph.cli.graph_reading import GraphReading
from hushgraph.cli.options import AsJson, KeyFile, Metres, Quiet, grouped, key_of
from hushgraph.cli.terminal import Terminal, open_terminal

_DATA, _PAGE = "What is shown", "The page"


@grouped
def explore(
    *,
    graph_file: Annotated[
        Path | None,
        typer.Option("--graph", help="The public graph, with coordinates. Default: a generated city.", rich_help_panel=_DATA),
    ] = None,
    release: Annotated[
        Path | None, typer.Option(help="Folder of a release to look at; needs --graph.", rich_help_panel=_DATA)
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(help="Private events to plan and draw a release from; needs --graph and --ledger.", rich_help_panel=_DATA),
    ] = None,
    ledger_file: Annotated[
        Path | None, typer.Option("--ledger", help="The budget that drawing is charged to.", rich_help_panel=_DATA)
    ] = None,
    name: Annotated[str | None, typer.Option(help="What the map is of, for the page's head.", rich_help_panel=_PAGE)] = None,
    label: Annotated[str, typer.Option(help="What is counted: pickups, say.", rich_help_panel=_PAGE)] = "events",
    not_protected: Annotated[
        str | None, typer.Option(help="Who is not covered, for the certificate: drivers, say.", rich_help_panel=_PAGE)
    ] = None,
    attribution: Annotated[
        str | None, typer.Option(help="Source of the graph: '© OpenStreetMap contributors', say.", rich_help_panel=_PAGE)
    ] = None,
    metres: Metres = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0: any that is free.", rich_help_panel=_PAGE)] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only say the address.", rich_help_panel=_PAGE)] = False,
    key_file: KeyFile = None,
    counting: Counting,
    reading: GraphReading,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Open a page on this computer that shows what privacy costs and what denoising gives back; Ctrl-C ends it."""
    with open_terminal("explore", as_json=as_json, quiet=quiet) as terminal:
        check_together(graph_file, release, events, ledger_file)
        graph = ledger = counts = None
        if graph_file is not None:
            graph = reading.graph(terminal, graph_file)
        if events is not None:
            from hushgraph.privacy.ledger import Ledger

            ledger = Ledger.open(ledger_file, unit=counting.unit, key=key_of(key_file))
            counts = counting.counts(terminal, events, graph, ledger)
        from hushgraph.app.server import serve

        started = []

        def on_ready(address: str) -> None:
            started.append(address)
            _say_address(terminal, address)

        try:
            serve(
                graph=graph, release=release, events=counts, ledger=ledger, name=name, label=label, not_protected=not_protected,
                attribution=attribution, metres=metres, port=port, open_browser=not no_browser, on_ready=on_ready,
            )  # fmt: skip
        except KeyboardInterrupt:
            if not started:
                raise
        terminal.story({"Ended": "the page is closed to everybody."})


def check_together(graph_file: Path | None, release: Path | None, events: Path | None, ledger_file: Path | None) -> None:
    """Which data go together."""
    if release is not None and events is not None:
        msg = "give --release, a map that was published, or --events, private ones to draw a release from; not both"
        raise ValueError(msg)
    if release is not None and graph_file is None:
        msg = "--release needs --graph, the public graph it was made on"
        raise ValueError(msg)
    if (events is None) != (ledger_file is None) or (events is not None and graph_file is None):
        msg = "--events, --graph and --ledger go together: drawing a release from events is charged to the ledger"
        raise ValueError(msg)


def _say_address(terminal: Terminal, address: str) -> None:
    """The address holds the token of this run; it is said even under --quiet, since nobody could find the page otherwise."""
    if terminal.as_json:
        print(json.dumps({"command": terminal.command, "address": address}), flush=True)
        return
    print(f"The explorer is at {address}", file=sys.stdout, flush=True)
    if not terminal.quiet:
        print("It answers this computer only. Ctrl-C ends it.", flush=True)
