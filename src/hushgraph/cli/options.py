"""Options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

_OUTPUT = "What comes out"


class Method(StrEnum):
    """Methods of `denoise`; a copy, so that --help need not import it."""

    auto = "auto"
    let = "let"
    counts = "counts"
    sgwt_deep = "sgwt_deep"
    sgwt_sure = "sgwt_sure"
    sgwt_scaled = "sgwt_scaled"
    sgwt_exact = "sgwt_exact"
    sgwt_block = "sgwt_block"
    sgwt_beta = "sgwt_beta"


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
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something fails.", rich_help_panel=_OUTPUT)]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace what is there already.", rich_help_panel=_OUTPUT)]
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
    """The secret bytes in the file."""
    return None if path is None else path.read_bytes()


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command for typer, with every parameter that is a dataclass spread into the options that its fields are."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    options = []
    for parameter in inspect.signature(command).parameters.values():
        options += _options_of(groups[parameter.name]) if parameter.name in groups else [
            parameter.replace(annotation=hints[parameter.name])
        ]  # fmt: skip

    @wraps(command)
    def run(**given: Any) -> None:
        made = {name: kind(**{field.name: given.pop(field.name) for field in fields(kind)}) for name, kind in groups.items()}
        command(**given, **made)

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    del run.__wrapped__
    return run


def words_of(*groups: Any) -> list[str]:
    """The options that were given, as a command has them; those that have their default are left out."""
    words = []
    for group in groups:
        for option in _options_of(type(group)):
            value, (info,) = getattr(group, option.name), option.annotation.__metadata__
            flag = next((name for name in info.param_decls or () if name.startswith("--")), f"--{option.name.replace('_', '-')}")
            if value != option.default:
                words += [flag] if value is True else [flag, str(value)]
    return words


def _options_of(kind: Any) -> list[inspect.Parameter]:
    """One for each field of the dataclass."""
    hints, keyword = get_type_hints(kind, include_extras=True), inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(
            field.name,
            keyword,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]
