"""hushgraph budget: the ledger that keeps count of what was spent of people's privacy."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushgraph.cli.options import Adjacency, AsJson, KeyFile, Quiet, WeakGuarantee, key_of
from hushgraph.cli.terminal import open_terminal

if TYPE_CHECKING:
    from hushgraph.privacy import Ledger

budget_commands = typer.Typer(
    name="budget",
    help="Create, show and renew a privacy budget: one file for one data set, charged before every release.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_NEW = "The file of the new budget; it must not exist."
LedgerFile = Annotated[Path, typer.Argument(metavar="LEDGER", help="The file of the budget.")]
Epsilon = Annotated[float, typer.Option(help="What all releases together may spend: smaller is more private; 0.1 to 2 are usual.")]
Replaces = Annotated[
    str | None,
    typer.Option(help="Identity of the budget that this one takes the place of, on purpose; new budgets say it to everyone."),
]
Delta = Annotated[float, typer.Option(help="Far smaller than one in the number of people.")]


@budget_commands.command(
    epilog="Example: hushgraph budget create budget.db --dataset trips --unit person --adjacency add-remove --epsilon 2"
)
def create(
    path: Annotated[Path, typer.Argument(metavar="LEDGER", help=_NEW)],
    dataset: Annotated[str, typer.Option(help="Name of the data that is protected. Public.")],
    unit: Annotated[str, typer.Option(help="Who is protected: person, vehicle, ... Public.")],
    epsilon: Epsilon,
    delta: Delta = 1e-6,
    adjacency: Annotated[
        Adjacency,
        typer.Option(
            help="Hide whether one unit is there at all (add-remove), or what one unit's data are (change-one, more noise)."
        ),
    ] = Adjacency.add_remove,
    period: Annotated[str | None, typer.Option(help="Name of the time the budget is for.")] = None,
    weak_guarantee: WeakGuarantee = False,
    key_file: KeyFile = None,
    replaces: Replaces = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Make a new budget, nothing of it spent."""
    with open_terminal("budget create", as_json=as_json, quiet=quiet) as terminal:
        from hushgraph.privacy import Ledger

        ledger = Ledger.create(
            path,
            dataset=dataset,
            unit=unit,
            adjacency=adjacency.value,
            epsilon=epsilon,
            delta=delta,
            period=period,
            key=key_of(key_file),
            replaces=replaces,
            weak_guarantee=weak_guarantee,
        )
        facts = budget_facts(ledger)
        terminal.story(
            budget_lines(facts)
            | {"Next": f"hushgraph release GRAPH EVENTS --ledger {shlex.quote(str(path))} --epsilon ... -o FOLDER"}
        )
        terminal.result(facts)


@budget_commands.command(epilog="Example: hushgraph budget show budget.db --certificate march/certificate.json")
def show(
    path: LedgerFile,
    certificate: Annotated[
        list[Path] | None,
        typer.Option(metavar="<path>", help="Check that this certificate was charged here; may be given several times."),
    ] = None,
    key_file: KeyFile = None,
    replaces: Replaces = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show what is spent and what is left, after verifying the whole file."""
    with open_terminal("budget show", as_json=as_json, quiet=quiet) as terminal:
        from hushgraph.privacy import Ledger

        ledger = Ledger.open(path, key=key_of(key_file), replaces=replaces)
        ledger.verify(*(certificate or []))
        facts = budget_facts(ledger) | {"certificates": certificate or []}
        terminal.story(budget_lines(facts))
        terminal.table(["entry", "kind", "time", "epsilon", "delta", "note"], _rows(facts["entries"]))
        if certificate:
            terminal.story({"Verified": f"every certificate given ({len(certificate)}) is of a charge in this ledger."})
        terminal.result(facts)


@budget_commands.command(
    epilog="Example: hushgraph budget renew budget.db --period 2027 --epsilon 2 --reason 'yearly budget, decided by the board'"
)
def renew(
    path: LedgerFile,
    period: Annotated[str, typer.Option(help="Name of the new time.")],
    reason: Annotated[str, typer.Option(help="Why people may be asked for more of their privacy; kept for ever. Public.")],
    epsilon: Epsilon,
    delta: Delta = 1e-6,
    weak_guarantee: WeakGuarantee = False,
    key_file: KeyFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Start a new period with a new budget: a decision about people's privacy, kept with its reason."""
    with open_terminal("budget renew", as_json=as_json, quiet=quiet) as terminal:
        from hushgraph.privacy import Ledger

        ledger = Ledger.open(path, key=key_of(key_file))
        ledger.renew(epsilon=epsilon, delta=delta, period=period, reason=reason, weak_guarantee=weak_guarantee)
        facts = budget_facts(ledger)
        terminal.story(budget_lines(facts))
        terminal.result(facts)


def budget_facts(ledger: Ledger) -> dict[str, Any]:
    """Return a budget as plain values, read in one transaction; all of them are public."""
    entries, snapshot = ledger.entries(), ledger.last_snapshot
    return {
        "ledger": ledger.path,
        "dataset": ledger.dataset,
        "unit": ledger.unit,
        "adjacency": ledger.adjacency,
        **snapshot.budget(),
        "remaining": snapshot.remaining(),
        "identity": snapshot.identity,
        "replaces": snapshot.replaces,
        "head": snapshot.head,
        "entries": entries,
    }


def _rows(entries: list[dict[str, Any]]) -> list[list[str]]:
    """Return the entries as rows of a table, without draws: they belong to their charges and cost nothing."""
    return [
        [
            str(one["entry"]),
            one["kind"],
            one["time"],
            f"{one['epsilon']:g}",
            f"{one['delta']:g}",
            one["note"] or one["period"] or "",
        ]
        for one in entries
        if one["kind"] != "draw"
    ]


def budget_lines(facts: dict[str, Any]) -> dict[str, str]:
    """Return what a data owner wants to know of a budget, as titles and sentences."""
    from hushgraph.privacy import guarantee_in_words, secret_in_words

    names = {name: facts[name] for name in ("delta", "unit", "adjacency")}
    period = "" if facts["period"] is None else f", period {facts['period']}"
    return {
        "Protects": f"each {facts['unit']} in {facts['dataset']}: {secret_in_words(facts['adjacency'])}.",
        "Budget": f"epsilon {facts['epsilon']:g} at delta {facts['delta']:g}{period}, for all releases together.",
        "Guarantee": guarantee_in_words(facts["epsilon"], **names, maps="maps"),
        "Spent": f"epsilon {facts['spent']:.4g}.",
        "Left": f"one more release of epsilon {facts['remaining']:.4g} at most (at delta {facts['delta']:g})."
        if facts["remaining"] > 0
        else "nothing.",
        "Ledger": str(facts["ledger"]),
    }
