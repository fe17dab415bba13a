"""The command line: one file per kind of command. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from typer.core import TyperGroup

from hushgraph.cli.bench import bench
from hushgraph.cli.budget import budget
from hushgraph.cli.checking import check
from hushgraph.cli.denoising import denoise
from hushgraph.cli.exploring import explore
from hushgraph.cli.graph_facts import info
from hushgraph.cli.paper import demo, reproduce
from hushgraph.cli.partitioned import distributed
from hushgraph.cli.planning import plan_release
from hushgraph.cli.releasing import release
from hushgraph.cli.verifying import verify

CODES = (
    "Exit codes: 0 done; 1 an error of hushgraph's own; 2 input or options that cannot be used, files that cannot be read or written; "
    "3 the privacy budget refuses; 4 the ledger cannot be used; 130 stopped with Ctrl-C."
)
_UsageError = typer.BadParameter.__mro__[1]  # click's, or that of the copy inside newer versions of typer


class Commands(TyperGroup):
    """All commands; options that cannot be used are an error in JSON too, if JSON is asked for."""

    def invoke(self, context):
        as_json = "--json" in context.args  # they are used up below
        try:
            return super().invoke(context)
        except _UsageError as error:
            if as_json:
                print(
                    json.dumps(
                        {"command": context.invoked_subcommand, "error": error.format_message(), "exit_code": error.exit_code}
                    )
                )
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


def _show_version(wanted: bool) -> None:
    if wanted:
        from hushgraph import __version__

        typer.echo(f"hushgraph {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say which version this is, and stop.")
    ] = False,
) -> None:
    """Denoise signals on very large graphs, and publish them privately."""


_SIGNALS, _PRIVACY, _TRY = "Signals on graphs", "Private releases", "Try it"
app.command(rich_help_panel=_SIGNALS, epilog="Example: hushgraph denoise streets.graphml counts.csv --sigma 4 -o clean.csv")(
    denoise
)
app.command(rich_help_panel=_SIGNALS, epilog="Example: hushgraph info streets.graphml")(info)
app.add_typer(distributed, name="distributed", rich_help_panel=_SIGNALS)
app.command(
    "plan-release",
    rich_help_panel=_PRIVACY,
    epilog="Example: hushgraph plan-release streets.graphml --max-nodes 2 --max-per-node 1 --expected-total 50000",
)(plan_release)
app.add_typer(budget, name="budget", rich_help_panel=_PRIVACY)
app.command(
    rich_help_panel=_PRIVACY,
    epilog="Example: hushgraph check trips.csv streets.graphml --unit person --max-nodes 2 --max-per-node 1 --max-distance 200",
)(check)
app.command(
    rich_help_panel=_PRIVACY,
    epilog="Example: hushgraph release trips.csv streets.graphml --ledger budget.db --epsilon 0.5 --max-nodes 2 --max-per-node 1 "
    "--max-distance 200 --public-graph -o march",
)(release)
app.command(
    rich_help_panel=_PRIVACY,
    epilog="Example: hushgraph verify march, or hushgraph verify march streets.graphml --ledger budget.db",
)(verify)
app.command(
    rich_help_panel=_PRIVACY, epilog="Example: hushgraph explore, or hushgraph explore --release march --graph streets.graphml"
)(explore)
app.command(rich_help_panel=_TRY, epilog="Example: hushgraph demo --out out/demo")(demo)
app.command(rich_help_panel=_TRY, epilog="Example: hushgraph reproduce table-nyc --smoke")(reproduce)
app.command(rich_help_panel=_TRY, epilog="Example: hushgraph bench --nodes 1000000")(bench)
