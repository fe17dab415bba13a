"""hushgraph verify: what of a published folder is true, as far as it can be known here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hushgraph.cli.failures import BAD_INPUT, LEDGER_UNUSABLE
from hushgraph.cli.graph_reading import GraphReading
from hushgraph.cli.options import AsJson, KeyFile, Quiet, grouped, key_of
from hushgraph.cli.terminal import open_terminal


@grouped
def verify(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a release: map.csv and certificate.json.")],
    graph_file: Annotated[
        Path | None, typer.Argument(metavar="[GRAPH]", help="The public graph; without it the nodes cannot be compared.")
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
        from hushgraph.privacy.certificate import verify_release
        from hushgraph.privacy.ledger import Ledger

        ledger = None if ledger_file is None else Ledger.open(ledger_file, key=key_of(key_file))
        graph = None if graph_file is None else reading.graph(terminal, graph_file)
        found = verify_release(folder, graph, ledger)
        terminal.story({check.claim: str(check) for check in found.checks})
        checks = [{"subject": one.subject, "claim": one.claim, "holds": one.holds, "detail": one.detail} for one in found.checks]
        charge_checked = any(check.subject == "ledger" and check.holds is not None for check in found.checks)
        facts = {
            "folder": folder,
            "graph": graph_file,
            "ledger": ledger_file,
            "no_faults": found.ok,
            "charge_checked": charge_checked,
            "checks": checks,
        }
        if found.ok:
            terminal.result(facts)
            return
        code = LEDGER_UNUSABLE if any(check.subject == "ledger" for check in found.faults) else BAD_INPUT
        text = f"{folder} does not verify: {'; '.join(check.detail for check in found.faults)}"
        raise terminal.fail(text, code, facts)
