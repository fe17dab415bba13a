"""The command line: one file per command. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hushgraph.cli import bench, check, demo, denoise, explore, info, plan_release, release, reproduce, series, verify
from hushgraph.cli.budget import budget_commands
from hushgraph.cli.distributed import distributed_commands

CODES = (
    "Exit codes: 0 done; 1 an internal error of hushgraph; 2 input or options that cannot be used, files that cannot be read or written; "
    "3 the privacy budget refuses; 4 the ledger cannot be used; 130 stopped with Ctrl-C."
)
# Typer exports BadParameter but not UsageError, its base class, which is in click or, in newer versions, in a copy of click inside typer.
_UsageError: Any = typer.BadParameter.__base__


class Commands(TyperGroup):
    """All commands; with --json, an option that cannot be used is reported as JSON too."""

    def invoke(self, context: Any) -> Any:
        as_json = "--json" in context.args  # the call below empties context.args
        try:
            return super().invoke(context)
        except _UsageError as error:
            if as_json:
                report = {"command": context.invoked_subcommand, "error": error.format_message(), "exit_code": error.exit_code}
                print(json.dumps(report))
            raise


app = typer.Typer(
    name="hushgraph",
    cls=Commands,
    help="Denoise signals on very large graphs, and publish them privately.",
    epilog=CODES,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,  # locals may hold private data
    pretty_exceptions_show_locals=False,
)


def _print_version(is_given: bool) -> None:
    if is_given:
        from hushgraph import __version__

        typer.echo(f"hushgraph {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Denoise signals on very large graphs, and publish them privately."""


_SIGNALS, _PRIVACY, _TRY = "Signals on graphs", "Private releases", "Try it"
app.command(
    "denoise", rich_help_panel=_SIGNALS, epilog="Example: hushgraph denoise streets.graphml counts.csv --sigma 4 -o clean.csv"
)(denoise.command)
app.command("info", rich_help_panel=_SIGNALS, epilog="Example: hushgraph info streets.graphml")(info.command)
app.add_typer(distributed_commands, name="distributed", rich_help_panel=_SIGNALS)
app.command(
    "plan-release",
    rich_help_panel=_PRIVACY,
    epilog="Example: hushgraph plan-release streets.graphml --max-nodes 2 --max-per-node 1 --expected-total 50000",
)(plan_release.command)
app.add_typer(budget_commands, name="budget", rich_help_panel=_PRIVACY)
app.command(
    "check",
    rich_help_panel=_PRIVACY,
    epilog="Example: hushgraph check trips.csv streets.graphml --unit person --max-nodes 2 --max-per-node 1 --max-distance 200",
)(check.command)
app.command(
    "release",
    rich_help_panel=_PRIVACY,
    epilog="Example: hushgraph release trips.csv streets.graphml --ledger budget.db --epsilon 0.5 --max-nodes 2 --max-per-node 1 "
    "--max-distance 200 --public-graph -o march",
)(release.command)
app.command(
    "series",
    rich_help_panel=_PRIVACY,
    epilog="Example: hushgraph series streets.graphml january february march -o quarter",
)(series.command)
app.command(
    "verify",
    rich_help_panel=_PRIVACY,
    epilog="Example: hushgraph verify march, or hushgraph verify march streets.graphml --ledger budget.db",
)(verify.command)
app.command(
    "explore",
    rich_help_panel=_PRIVACY,
    epilog="Example: hushgraph explore, or hushgraph explore --release march --graph streets.graphml",
)(explore.command)
app.command("demo", rich_help_panel=_TRY, epilog="Example: hushgraph demo --out out/demo")(demo.command)
app.command("reproduce", rich_help_panel=_TRY, epilog="Example: hushgraph reproduce table-nyc --smoke")(reproduce.command)
app.command("bench", rich_help_panel=_TRY, epilog="Example: hushgraph bench --nodes 1000000")(bench.command)
