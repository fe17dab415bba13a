"""Errors of a command as one sentence and an exit code.

Only texts of hushgraph's own errors are shown: other texts may quote private data. In these texts the names of arguments and functions
are `Reference`s, so that commands can name the option --max-nodes where Python names the argument max_nodes.
"""

from __future__ import annotations

import errno
from functools import cache
from types import TracebackType
from typing import Any

from hushgraph._errors import HushgraphError, Reference, Sentence

UNEXPECTED, BAD_INPUT, BUDGET_REFUSED, LEDGER_UNUSABLE, INTERRUPTED = 1, 2, 3, 4, 130
_OPTIONS = {  # arguments, some with a value, whose option has another name; all other options have the name of their argument
    "n": "--nodes",
    "n_nodes": "--nodes",
    "workdir": "--work",
    "key": "--key-file",
    "keep": "--out",
    "columns": "--column",
    "guides": "--guide",
    "columns='path'": "--in-sequence",
    "columns='series'": "--in-sequence",
    "columns='separate'": "--separate",
    "weight=False": "--unweighted",
    "delimiter=": "--graph-delimiter",
    "csv_format": "--delimiter",
    "crs='lonlat'": "--graph-crs lonlat",
    "missing_ok=True": "--missing drop or fill",
}
_COMMANDS = {  # functions and the commands that do the same
    "Ledger.create": "hushgraph budget create",
    "Ledger.open": "hushgraph budget show",
    "Ledger.open(path, replaces=": "hushgraph budget show --replaces",  # followed by the value and ")"
    ")": "",
    "ledger.entries": "hushgraph budget show",
    "ledger.identity": "hushgraph budget show",
    "ledger.remaining": "hushgraph budget show",
    "ledger.renew": "hushgraph budget renew",
    "hushgraph.denoise": "hushgraph denoise",
    "prepare": "hushgraph distributed prepare",
    "denoise": "hushgraph distributed denoise",
    "pass cupy.asnumpy": "leave --device gpu out",
}


def sentence_of(error: BaseException, command: str = "") -> tuple[str, int]:
    """Return the text that a command prints for an error, and the exit code."""
    if isinstance(error, MemoryError):
        return f"there is not enough memory {_memory_advice(error)}, or use a smaller graph or fewer columns", UNEXPECTED
    if isinstance(error, HushgraphError):
        return in_options(error.sentence, command), _code_of(error)
    if isinstance(error, ImportError):
        package = "a Python package" if error.name is None else f"the Python package {error.name}"
        return f"{package} is missing or damaged; install hushgraph again", BAD_INPUT
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = f" for {error.filename}" if isinstance(error.filename, str) else ""
        return f"there is no room on the disk{place}; make room, or choose another place", BAD_INPUT
    if isinstance(error, OSError) and error.strerror:
        name = f"{error.filename}: " if isinstance(error.filename, str) else ""
        return f"{name}{error.strerror}; check the path, its permissions and the room on the disk", BAD_INPUT
    text = (
        f"hushgraph failed in {_place(error.__traceback__)} ({type(error).__name__}); the error's own text is not shown, since it may "
        "quote data; please report this line"
    )
    return text, UNEXPECTED


def in_options(text: str, command: str = "") -> str:
    """Return a sentence with the options of a command in place of its references; without a command, the options of any command.

    Examples
    --------
    >>> in_options(Sentence("give {weight=}2 or {weight=False}; got {}", "data/weight=2"), "info")
    'give --weight 2 or --unweighted; got data/weight=2'
    """
    if not isinstance(text, Sentence):
        return text
    parts = [_option_for(part, command) if isinstance(part, Reference) else part for part in text.parts]
    for k, (part, following) in enumerate(zip(text.parts, text.parts[1:], strict=False)):
        if parts[k] != part and part.endswith("=") and following[0] not in " ,;.:)":
            parts[k] += " "  # "weight=2" is "--weight 2"
    return "".join(parts)


def _option_for(reference: Reference, command: str) -> str:
    """Return the command for a function or the option for an argument; the reference itself if this command has no such option."""
    other_command = _COMMANDS.get(reference, _COMMANDS.get(reference.partition("(")[0].removeprefix("privacy.")))
    if other_command is not None:
        return other_command
    name, _, value = reference.partition("=")
    value = f" {value}" if value not in ("", "True") else ""
    for option in (_OPTIONS.get(reference, ""), f"--{name.replace('_', '-')}{value}", f"{_OPTIONS.get(name, '')}{value}"):
        if option.partition(" ")[0] in options_of(command):
            return option
    return reference


@cache
def options_of(command: str = "") -> frozenset[str]:
    """Return the options of a command; those of all commands without a name."""
    from typer.main import get_command

    from hushgraph.cli import app

    group: Any = get_command(app)
    for name in command.split():
        group = group.commands[name]
    return _options_in(group)


def _options_in(command: Any) -> frozenset[str]:
    """Return the options of a command or a group, and of all commands below it."""
    options = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts) if option.startswith("--")
    }
    return frozenset(options).union(*map(_options_in, getattr(command, "commands", {}).values()))


def _memory_advice(error: MemoryError) -> str:
    """Return which memory was too small, and what helps."""
    on_gpu = type(error).__module__.partition(".")[0] == "cupy"
    return "on the GPU for this; leave --device gpu out" if on_gpu else "for this; close other programs"


def _code_of(error: BaseException) -> int:
    from hushgraph.privacy import BudgetExceeded, LedgerError

    if isinstance(error, BudgetExceeded):
        return BUDGET_REFUSED
    return LEDGER_UNUSABLE if isinstance(error, LedgerError) else BAD_INPUT


def _place(trace: TracebackType | None) -> str:
    """Return module and line of the innermost frame of hushgraph; no values."""
    place = "the command line"
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        place = f"{name}, line {trace.tb_lineno}" if name.startswith("hushgraph.") else place
        trace = trace.tb_next
    return place
