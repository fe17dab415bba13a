"""hushgraph verify: what of a published folder is true, as far as it can be known here."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hushgraph._errors import InputError
from hushgraph.cli.failures import BAD_INPUT, LEDGER_UNUSABLE
from hushgraph.cli.graph_options import GraphReading
from hushgraph.cli.options import AsJson, KeyFile, Quiet, grouped, key_of
from hushgraph.cli.terminal import open_terminal


@grouped
def command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="The folder of a release: map.csv, certificate.json and, if it is there, report.html."
        ),
    ],
    graph_file: Annotated[
        Path | None, typer.Argument(metavar="GRAPH", help="The public graph; without it the nodes cannot be compared.")
    ] = None,
    *,
    ledger_file: Annotated[
        Path | None,
        typer.Option(
            "--ledger", help="The budget that was charged; without it nobody knows whether it was.", rich_help_panel="Budget"
        ),
    ] = None,
    key_file: KeyFile = None,
    reading: GraphReading,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare a published folder with its certificate, its graph and its ledger, and say what was checked and what was not."""
    with open_terminal("verify", as_json=as_json, quiet=quiet) as terminal:
        from hushgraph.privacy import Ledger, verify_release

        if graph_file is not None and graph_file.is_dir() and folder.is_file():
            msg = f"the folder comes first, since the graph may be left out; write {shlex.join(['hushgraph', 'verify', str(graph_file), str(folder)])} with the same options"
            raise InputError(msg)
        ledger = None if ledger_file is None else Ledger.open(ledger_file, key=key_of(key_file))
        graph = None if graph_file is None else reading.graph(terminal, graph_file)
        verification = verify_release(folder, graph, ledger)
        terminal.story({check.claim: str(check) for check in verification.checks})
        charge_checked = any(check.subject == "ledger" and check.holds is not None for check in verification.checks)
        facts = {
            "folder": folder,
            "graph": graph_file,
            "ledger": ledger_file,
            "no_faults": verification.ok,
            "charge_checked": charge_checked,
            "checks": [asdict(check) for check in verification.checks],
        }
        if verification.ok:
            terminal.result(facts)
            return
        code = LEDGER_UNUSABLE if any(check.subject == "ledger" for check in verification.faults) else BAD_INPUT
        text = f"{folder} does not verify: {'; '.join(check.detail for check in verification.faults)}"
        raise terminal.fail(text, code, facts)
