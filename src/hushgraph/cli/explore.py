"""hushgraph explore: the explorer, a page on this computer."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hushgraph.cli.event_options import Counting
from hushgraph.cli.graph_options import GraphReading
from hushgraph.cli.guide_files import read_guide_files
from hushgraph.cli.options import AsJson, KeyFile, MapTexts, Quiet, grouped, key_of
from hushgraph.cli.terminal import Terminal, open_terminal, printable

if TYPE_CHECKING:
    from hushgraph.explorer import SavedRelease
    from hushgraph.privacy import EventCheck

_DATA, _PAGE = "What is shown", "The page"


@grouped
def command(
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
    guide: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="<path>",
            help="Public map that helps to denoise, such as an earlier year: a file of values or a release's folder; may be given "
            "several times; needs --graph.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    not_protected: Annotated[
        str | None, typer.Option(help="Who is not covered, for the certificate: drivers, say.", rich_help_panel=_PAGE)
    ] = None,
    attribution: Annotated[
        str | None, typer.Option(help="Source of the graph: '© OpenStreetMap contributors', say.", rich_help_panel=_PAGE)
    ] = None,
    maps: MapTexts,
    name: Annotated[str | None, typer.Option(hidden=True)] = None,
    label: Annotated[str | None, typer.Option(hidden=True)] = None,
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
        from hushgraph.explorer import check_inputs, checked_release_folder, serve, web_server

        check_inputs(graph=graph_file, release=release, events=events, ledger=ledger_file, keep=out, guides=guide or None)
        maps.check()
        maps = _with_old_names(terminal, maps, name=name, label=label, removed_in="0.3")
        web_server()
        graph = ledger = counts = check = None
        if graph_file is not None:
            graph = reading.graph(terminal, graph_file)
        guides = None
        if guide:
            assert graph is not None  # `check_inputs` refuses files of guides without a graph
            guides = read_guide_files(graph, guide)
        if events is not None:
            from hushgraph.privacy import Ledger

            assert graph is not None  # `check_inputs` refuses events without graph and ledger
            assert ledger_file is not None
            ledger = Ledger.open(ledger_file, dataset=counting.dataset, unit=counting.unit, key=key_of(key_file))
            out = checked_release_folder(out, ledger)
            counts = counting.counts(terminal, events, graph, ledger)
            public_graph, unit = graph, ledger.unit

            def check() -> EventCheck:
                return counting.check(Terminal("explore", as_json=False, quiet=True), events, public_graph, unit=unit)

        addresses: list[str] = []
        releases: list[SavedRelease] = []

        def on_ready(address: str) -> None:
            addresses.append(address)
            _print_address(terminal, address, out)

        def on_release(saved: SavedRelease) -> None:
            releases.append(saved)
            _print_saved(terminal, saved)

        try:
            serve(
                graph=graph, release=release, events=counts, ledger=ledger, check=check, keep=out, not_protected=not_protected,
                attribution=attribution, guides=guides, port=port, open_browser=not no_browser, on_ready=on_ready, on_release=on_release,
                **maps.arguments(),
            )  # fmt: skip
        except KeyboardInterrupt:
            if not addresses:  # stopped before the page was there
                raise
        terminal.story({"Ended": "the page is closed to everybody.", **_release_summary(releases)})


def _with_old_names(terminal: Terminal, maps: MapTexts, *, name: str | None, label: str | None, removed_in: str) -> MapTexts:
    """Return the texts with those given by the old names --name and --label, and note what these are called now."""
    for old, new, text in (("name", "title", name), ("label", "quantity", label)):
        if text is not None:
            terminal.note(f"--{old} is called --{new} now; the old name will go in {removed_in}")
    return replace(maps, title=maps.title or name, quantity=maps.quantity or label)


def _print_address(terminal: Terminal, address: str, out: Path | None) -> None:
    """Print the address, which holds the token of this run; also under --quiet, since without it nobody could open the page."""
    if terminal.as_json:
        folder = {} if out is None else {"releases": str(out)}
        print(json.dumps({"command": terminal.command, "address": address, **folder}), flush=True)
        return
    print(f"The explorer is at {address}", flush=True)
    if not terminal.quiet:
        saved = "" if out is None else f" Releases that you draw are saved in {printable(str(out))}."
        print(f"It answers this computer only.{saved} Ctrl-C ends it.", flush=True)


def _print_saved(terminal: Terminal, saved: SavedRelease) -> None:
    """Print where a release was saved, as soon as it is drawn; that it could not be saved is printed also under --quiet."""
    if terminal.as_json:
        fields = {"release": saved.number, "folder": str(saved.folder) if saved.folder else None, "fault": saved.fault or None}
        print(json.dumps({"command": terminal.command, **fields}), flush=True)
    elif saved.folder is None:
        print(printable(f"hushgraph: {saved}"), file=sys.stderr, flush=True)
    elif not terminal.quiet:
        print(printable(f"{saved}."), flush=True)


def _release_summary(releases: list[SavedRelease]) -> dict[str, str]:
    """Return where all drawn releases are, for the end of the command."""
    lines = {
        "Releases": ", ".join(str(saved.folder) for saved in releases if saved.folder),
        "Not saved": ", ".join(
            f"release {saved.number} (gone, unless you downloaded it)" for saved in releases if not saved.folder
        ),
    }
    return {name: text for name, text in lines.items() if text}
