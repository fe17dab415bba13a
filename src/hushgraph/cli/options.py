"""Options that several commands share, and groups of options as dataclasses."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

import typer

from hushgraph._errors import NoFileError
from hushgraph.estimators import METHODS, MethodName

_OUTPUT, _MAPS = "What comes out", "What maps say"


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
Title = Annotated[str | None, typer.Option(help="Title of maps, pictures and reports.", rich_help_panel=_MAPS)]
Quantity = Annotated[
    str | None, typer.Option(help="What the values are: pickups, say; for legends, and behind numbers.", rich_help_panel=_MAPS)
]
Unit = Annotated[
    str | None,
    typer.Option("--value-unit", help="Unit of the values, behind numbers: dB, say. Default: the quantity.", rich_help_panel=_MAPS),
]
OutlineFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--outlines",
        metavar="<path>",
        help="Water, parks or districts to draw beneath maps: .geojson, in the coordinates of the graph; may be given several times.",
        rich_help_panel=_MAPS,
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file", help="File with the ledger's secret key (16 bytes or more), if it has one.", rich_help_panel="Budget"
    ),
]


@dataclass(frozen=True, kw_only=True)
class PictureTexts:
    """What pictures say about the values: the options of every command that draws pictures alone (see `grouped`)."""

    title: Title = None
    quantity: Quantity = None
    value_unit: Unit = None

    def texts(self) -> dict[str, Any]:
        """Return the texts that were given, as arguments of `plot_maps`."""
        given = {"title": self.title, "label": self.quantity, "unit": self.value_unit}
        return {name: text for name, text in given.items() if text}


@dataclass(frozen=True, kw_only=True)
class MapTexts(PictureTexts):
    """What maps say about the values, and what lies beneath them: the options of commands that write reports or open the explorer."""

    outlines: OutlineFiles = None
    metres: Metres = None

    def check(self) -> None:
        """Raise an error for a file of outlines that is not there, before any work is done."""
        for path in self.outlines or []:
            if not path.is_file():
                msg = f"the outlines {path} do not exist or are a folder; check the path"
                raise NoFileError(msg)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `write_report` and `explorer.serve`."""
        given = {"outlines": self.outlines, "metres": self.metres}
        return {**self.texts(), **{name: value for name, value in given.items() if value}}


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
