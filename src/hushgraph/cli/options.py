"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

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
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file", help="File with the ledger's secret key (16 bytes or more), if it has one.", rich_help_panel="Budget"
    ),
]


def key_of(path: Path | None) -> bytes | None:
    """The secret bytes in the file."""
    return None if path is None else path.read_bytes()
