"""The command line: one file per command. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from hushgraph.cli import (
    bench,
    check,
    compare,
    demo,
    denoise,
    explore,
    export,
    info,
    plan_release,
    release,
    reproduce,
    sample,
    series,
    verify,
)
from hushgraph.cli.budget import budget_commands
from hushgraph.cli.distributed import distributed_commands

CODES = (
    "Exit codes: 0 done; 1 an internal error of hushgraph; 2 input or options that cannot be used, files that cannot be read or written; "
    "3 the privacy budget refuses; 4 the ledger cannot be used; 130 stopped with Ctrl-C."
)
# Typer exports BadParameter but not UsageError, its base class, which is in click or, in newer versions, in a copy of click inside typer.
_UsageError: Any = typer.BadParameter.__base__


class Command(TyperCommand):
    """A command whose help shows flags without the type of a value, since they take none."""

    def get_params(self, context: Any) -> list[Any]:
        return _without_flag_types(super().get_params(context))


class CommandGroup(TyperGroup):
    """A group of commands whose help shows flags without the type of a value."""

    def get_params(self, context: Any) -> list[Any]:
        return _without_flag_types(super().get_params(context))


def _without_flag_types(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class Commands(CommandGroup):
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
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,  # locals may hold private data
    pretty_exceptions_show_locals=False,
)


def _print_version(is_given: bool) -> None:
    if is_given:
        from hushgraph.cli.version import description

        typer.echo(description())
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version, the compiler of the loops, threads and optional parts, and stop.",
        ),
    ] = False,
) -> None:
    """Denoise signals on very large graphs, and publish them privately."""


_SIGNALS, _PRIVACY, _TRY = "Signals on graphs", "Private releases", "Try it"
app.command(
    "denoise", rich_help_panel=_SIGNALS, epilog="Example: hushgraph denoise streets.graphml values.csv --sigma 5.3 -o denoised.csv"
)(denoise.command)
app.command(
    "compare", rich_help_panel=_SIGNALS, epilog="Example: hushgraph compare streets.graphml values.csv --sigma 5.3 --nonnegative"
)(compare.command)
app.command("info", rich_help_panel=_SIGNALS, epilog="Example: hushgraph info streets.graphml")(info.command)
app.add_typer(distributed_commands, name="distributed", cls=CommandGroup, rich_help_panel=_SIGNALS)
app.command(
    "plan-release",
    rich_help_panel=_PRIVACY,
    epilog="Example: hushgraph plan-release streets.graphml --max-nodes 2 --max-per-node 1 --expected-total 50000\n\n"
    "What an epsilon means, and which one to take: docs/epsilon.md",
)(plan_release.command)
app.add_typer(budget_commands, name="budget", cls=CommandGroup, rich_help_panel=_PRIVACY)
app.command(
    "check",
    rich_help_panel=_PRIVACY,
    epilog="Example: hushgraph check streets.graphml trips.csv --unit person --max-nodes 2 --max-per-node 1 --max-distance 200",
)(check.command)
app.command(
    "release",
    rich_help_panel=_PRIVACY,
    epilog="Example: hushgraph release streets.graphml trips.csv --ledger budget.db --epsilon 0.5 --max-nodes 2 --max-per-node 1 "
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
    "export",
    rich_help_panel=_PRIVACY,
    epilog="Example: hushgraph export streets.graphml march -o march.gpkg, or hushgraph export streets.graphml march -o march.png",
)(export.command)
app.command(
    "explore",
    rich_help_panel=_PRIVACY,
    epilog="Example: hushgraph explore, or hushgraph explore --release march --graph streets.graphml",
)(explore.command)
app.command("sample", rich_help_panel=_TRY, epilog="Example: hushgraph sample .")(sample.command)
app.command("demo", rich_help_panel=_TRY, epilog="Example: hushgraph demo --out out/demo")(demo.command)
app.command("reproduce", rich_help_panel=_TRY, epilog="Example: hushgraph reproduce table-nyc --smoke")(reproduce.command)
app.command("bench", rich_help_panel=_TRY, epilog="Example: hushgraph bench --nodes 1000000")(bench.command)
for _group in (app, distributed_commands, budget_commands):
    for _info in _group.registered_commands:
        _info.cls = Command
