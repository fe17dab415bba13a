"""Errors as one sentence and an exit code. Only sentences that hushgraph wrote itself are shown: others may quote private data."""

from __future__ import annotations

from functools import cache
from types import TracebackType
from typing import Any

from hushgraph._errors import HushgraphError, Reference, Sentence

UNEXPECTED, BAD_INPUT, BUDGET_REFUSED, LEDGER_UNUSABLE, INTERRUPTED = 1, 2, 3, 4, 130
_OURS = "hushgraph."
_OPTIONS = {  # arguments that are options of another name, some with one value only; every other is the option of its own name
    "n": "--nodes",
    "n_nodes": "--nodes",
    "workdir": "--work",
    "key": "--key-file",
    "keep": "--out",
    "columns": "--column",
    "columns='path'": "--in-sequence",
    "columns='separate'": "--separate",
    "weight=False": "--unweighted",
    "crs='lonlat'": "--graph-crs lonlat",
    "missing_ok=True": "--missing drop or fill",
}
_CALLS = {
    "Ledger.create": "hushgraph budget create",
    "Ledger.open": "hushgraph budget show",
    "Ledger.open(path, replaces=": "hushgraph budget show --replaces",  # the value is beside it, and the call's end
    ")": "",
    "ledger.identity": "hushgraph budget show",
    "ledger.remaining": "hushgraph budget show",
    "ledger.renew": "hushgraph budget renew",
    "write_report": "hushgraph denoise GRAPH RELEASE --report FILE",
    "hushgraph.denoise": "hushgraph denoise",
    "prepare": "hushgraph distributed prepare",
    "denoise": "hushgraph distributed denoise",
    "pass cupy.asnumpy": "leave --device gpu out",
}


def sentence_of(error: BaseException, command: str = "") -> tuple[str, int]:
    """What the command says of an error, and the exit code. Nothing of its text unless hushgraph wrote it."""
    if isinstance(error, MemoryError):
        return f"there is not enough memory {_where(error)}, or take a smaller graph or fewer columns", UNEXPECTED
    if isinstance(error, HushgraphError):
        return in_options(error.sentence, command), _code_of(error)
    if isinstance(error, ImportError):
        return f"the Python package {error.name} is missing or damaged; install hushgraph again", BAD_INPUT
    if isinstance(error, OSError) and error.strerror:
        name = f"{error.filename}: " if isinstance(error.filename, str) else ""
        return f"{name}{error.strerror}; check the path, its permissions and the room on the disk", BAD_INPUT
    place = f" in {_place(error.__traceback__)}"
    return (
        f"hushgraph failed{place} ({type(error).__name__}); the error's own text is not shown, since it may quote data; please report "
        "this line",
        UNEXPECTED,
    )


def in_options(text: str, command: str = "") -> str:
    """The words of a command for what a sentence refers to; without a command, those of any. All else stays as it is.

    Examples
    --------
    >>> in_options(Sentence("give {weight=}2 or {weight=False}; got {}", "data/weight=2"), "info")
    'give --weight 2 or --unweighted; got data/weight=2'
    """
    if not isinstance(text, Sentence):
        return text
    words = [_words_for(part, command) if isinstance(part, Reference) else part for part in text.parts]
    for k, (part, after) in enumerate(zip(text.parts, text.parts[1:], strict=False)):
        if words[k] != part and part.endswith("=") and after[0] not in " ,;.:)":
            words[k] += " "
    return "".join(words)


def _words_for(reference: Reference, command: str) -> str:
    """The option or the command that does the same; as Python says it, if this command has none."""
    called = _CALLS.get(reference, _CALLS.get(reference.partition("(")[0].removeprefix("privacy.")))
    if called is not None:
        return called
    name, _, value = reference.partition("=")
    value = f" {value}" if value not in ("", "True") else ""
    for words in (_OPTIONS.get(reference, ""), f"--{name.replace('_', '-')}{value}", f"{_OPTIONS.get(name, '')}{value}"):
        if words.partition(" ")[0] in options_of(command):
            return words
    return reference


@cache
def options_of(command: str = "") -> frozenset[str]:
    """The options of a command; those of all if it has no name."""
    from typer.main import get_command

    from hushgraph.cli import app

    found: Any = get_command(app)
    for name in command.split():
        found = found.commands[name]
    return _options_in(found)


def _options_in(command: Any) -> frozenset[str]:
    own = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts) if option.startswith("--")
    }
    return frozenset(own).union(*map(_options_in, getattr(command, "commands", {}).values()))


def _where(error: MemoryError) -> str:
    """Of which machine, and what helps."""
    there = type(error).__module__.partition(".")[0] == "cupy"
    return "on the GPU for this; leave --device gpu out" if there else "for this; close other programs"


def _code_of(error: BaseException) -> int:
    from hushgraph.privacy.chain import BudgetExceeded, LedgerError

    if isinstance(error, BudgetExceeded):
        return BUDGET_REFUSED
    return LEDGER_UNUSABLE if isinstance(error, LedgerError) else BAD_INPUT


def _place(trace: TracebackType | None) -> str:
    """File and line of the innermost frame of hushgraph: no values."""
    place = "the command line"
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        place = f"{name}, line {trace.tb_lineno}" if name.startswith(_OURS) else place
        trace = trace.tb_next
    return place
