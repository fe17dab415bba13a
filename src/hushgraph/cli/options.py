"""Options that several commands share, and groups of options as dataclasses."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

import typer

from hushgraph.estimators import METHODS, MethodName

_OUTPUT = "What comes out"


# typer lists the members of an enumeration as choices; type checkers cannot read one that is made from a table
if TYPE_CHECKING:
    Method = str
else:
    Method = StrEnum("Method", {name: name for name in METHODS})
AUTO = Method("auto")


def method_name(choice: str) -> MethodName:
    """Return the name of the method that was chosen on the command line."""
    return cast(MethodName, str(choice))


class Device(StrEnum):
    cpu = "cpu"
    gpu = "gpu"


class Adjacency(StrEnum):
    add_remove = "add-remove"
    change_one = "change-one"


class Mechanism(StrEnum):
    analytic = "analytic"
    classical = "classical"


AsJson = Annotated[
    bool,
    typer.Option(
        "--json", help="One JSON object on stdout, messages on stderr; a failure is {error, exit_code}.", rich_help_panel=_OUTPUT
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing unless something fails.", rich_help_panel=_OUTPUT)]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace existing files.", rich_help_panel=_OUTPUT)]
Report = Annotated[
    Path | None,
    typer.Option(help="Also write a page with maps and figures: one HTML file that needs no network.", rich_help_panel=_OUTPUT),
]
WeakGuarantee = Annotated[
    bool,
    typer.Option(
        "--weak-guarantee",
        help="Needed for an epsilon above 10, which protects nobody in practice.",
        rich_help_panel="Budget",
    ),
]
Metres = Annotated[
    float | None,
    typer.Option(min=1e-9, help="Metres in one unit of planar coordinates, for the scale bar of maps.", rich_help_panel=_OUTPUT),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file", help="File with the ledger's secret key (16 bytes or more), if it has one.", rich_help_panel="Budget"
    ),
]


def key_of(path: Path | None) -> bytes | None:
    """Return the secret bytes in the file, or None without a file."""
    return None if path is None else path.read_bytes()


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command for typer, with each dataclass parameter replaced by one option per field.

    Typer has no groups of options: it makes one option of each parameter in a function's signature. Commands that read a graph share
    seven options and pass them on together, so they are the fields of a dataclass, `reading: GraphReading`. The returned function has
    the signature that typer needs, with the fields in the place of the dataclass, and calls the command with the dataclass.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in groups:
            options += _options_of(groups[parameter.name])
        else:
            options.append(parameter.replace(annotation=hints[parameter.name]))

    def run(**values: Any) -> None:
        objects = {name: kind(**{field.name: values.pop(field.name) for field in fields(kind)}) for name, kind in groups.items()}
        command(**values, **objects)

    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}  # typer reads both
    return run


def words_of(*groups: Any) -> list[str]:
    """Return the options of these groups as words of a command line; options that have their default are left out."""
    words = []
    for group in groups:
        for option in _options_of(type(group)):
            value, (info,) = getattr(group, option.name), option.annotation.__metadata__
            flag = next((name for name in info.param_decls or () if name.startswith("--")), f"--{option.name.replace('_', '-')}")
            if value != option.default:
                words += [flag] if value is True else [flag, str(value)]
    return words


def _options_of(kind: Any) -> list[inspect.Parameter]:
    """Return one keyword parameter for each field of the dataclass."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]
