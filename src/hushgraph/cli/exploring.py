"""hushgraph explore: the explorer, a page on this computer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hushgraph._errors import InputError
from hushgraph.cli.counting import Counting
from hushgraph.cli.graph_reading import GraphReading
from hushgraph.cli.options import AsJson, KeyFile, Metres, Quiet, grouped, key_of
from hushgraph.cli.terminal import Terminal, open_terminal, printable

if TYPE_CHECKING:
    from hushgraph.app.keeping import Kept
    from hushgraph.privacy.check import EventCheck

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
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder that drawn releases are saved in at once; nothing is replaced. Default: hushgraph-releases beside the ledger.",
            rich_help_panel=_DATA,
        ),
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
        check_together(graph_file, release, events, ledger_file, out)
        from hushgraph.app.server import serve, web_server

        web_server()
        graph = ledger = counts = check = None
        if graph_file is not None:
            graph = reading.graph(terminal, graph_file)
        if events is not None:
            from hushgraph.app.keeping import keeping_place
            from hushgraph.privacy.ledger import Ledger

            ledger = Ledger.open(ledger_file, dataset=counting.dataset, unit=counting.unit, key=key_of(key_file))
            out = keeping_place(out, ledger)
            counts = counting.counts(terminal, events, graph, ledger)
            unit = ledger.unit

            def check() -> EventCheck:
                return counting.check(Terminal("explore", as_json=False, quiet=True), events, graph, unit=unit)

        started: list[str] = []
        drawn: list[Kept] = []

        def on_ready(address: str) -> None:
            started.append(address)
            _say_address(terminal, address, out)

        def on_release(kept: Kept) -> None:
            drawn.append(kept)
            _say_kept(terminal, kept)

        try:
            serve(
                graph=graph, release=release, events=counts, ledger=ledger, check=check, keep=out, name=name, label=label,
                not_protected=not_protected, attribution=attribution, metres=metres, port=port, open_browser=not no_browser,
                on_ready=on_ready, on_release=on_release,
            )  # fmt: skip
        except KeyboardInterrupt:
            if not started:
                raise
        terminal.story({"Ended": "the page is closed to everybody.", **_releases(drawn)})


def check_together(
    graph_file: Path | None, release: Path | None, events: Path | None, ledger_file: Path | None, out: Path | None
) -> None:
    """Which data go together."""
    if release is not None and events is not None:
        msg = "give --release, a map that was published, or --events, private ones to draw a release from; not both"
        raise InputError(msg)
    if release is not None and graph_file is None:
        msg = "--release needs --graph, the public graph it was made on"
        raise InputError(msg)
    if (events is None) != (ledger_file is None) or (events is not None and graph_file is None):
        msg = "--events, --graph and --ledger go together: drawing a release from events is charged to the ledger"
        raise InputError(msg)
    if out is not None and events is None:
        msg = "--out is the folder for releases drawn from --events; without events nothing is drawn, so leave it out"
        raise InputError(msg)


def _say_address(terminal: Terminal, address: str, out: Path | None) -> None:
    """The address holds the token of this run; it is said even under --quiet, since nobody could find the page otherwise."""
    if terminal.as_json:
        kept = {} if out is None else {"releases": str(out)}
        print(json.dumps({"command": terminal.command, "address": address, **kept}), flush=True)
        return
    print(f"The explorer is at {address}", file=sys.stdout, flush=True)
    if not terminal.quiet:
        saved = "" if out is None else f" Releases that you draw are saved in {printable(str(out))}."
        print(f"It answers this computer only.{saved} Ctrl-C ends it.", flush=True)


def _say_kept(terminal: Terminal, kept: Kept) -> None:
    """Where a release is, as soon as it is drawn; that it is nowhere is said even under --quiet."""
    if terminal.as_json:
        facts = {"release": kept.number, "folder": str(kept.folder) if kept.folder else None, "fault": kept.fault or None}
        print(json.dumps({"command": terminal.command, **facts}), flush=True)
    elif kept.folder is None:
        print(printable(f"hushgraph: {kept}"), file=sys.stderr, flush=True)
    elif not terminal.quiet:
        print(printable(f"{kept}."), flush=True)


def _releases(drawn: list[Kept]) -> dict[str, str]:
    """What was drawn and where it is, to be said at the end."""
    words = {"Releases": ", ".join(str(kept.folder) for kept in drawn if kept.folder)}
    words["Not saved"] = ", ".join(f"release {kept.number} (gone, unless you downloaded it)" for kept in drawn if not kept.folder)
    return {name: text for name, text in words.items() if text}
