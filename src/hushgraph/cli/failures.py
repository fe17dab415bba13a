"""Errors as one sentence and an exit code. Only sentences that hushgraph wrote itself are shown: others may quote private data."""

from __future__ import annotations

import re
from types import TracebackType

from hushgraph.origins import raised_here

UNEXPECTED, BAD_INPUT, BUDGET_REFUSED, LEDGER_UNUSABLE, INTERRUPTED = 1, 2, 3, 4, 130
_OURS = "hushgraph."
_EXPECTED = (ValueError, TypeError, ArithmeticError, RuntimeError, ImportError, OSError)
_ARGUMENTS = [
    "epsilon",
    "delta",
    "unit",
    "unit_column",
    "adjacency",
    "max_nodes",
    "max_per_node",
    "max_cells",
    "max_per_cell",
    "max_distance",
    "far",
    "lon",
    "lat",
    "x",
    "y",
    "crs",
    "node",
    "time",
    "windows",
    "mechanism",
    "ledger",
    "public_graph",
    "not_protected",
    "attribution",
    "sigma",
    "method",
    "missing",
    "columns",
    "weight",
    "distance",
    "duplicates",
    "seed",
    "nonnegative",
    "integer",
    "format",
    "label",
    "key",
    "port",
]
_PLAIN = [name for name in _ARGUMENTS if "_" in name]  # no other word looks like these
_CALLS = {  # what the Python functions are called here
    r"Ledger\.create\([^()]*\)|Ledger\.create|privacy\.Ledger\.create\([^()]*\)": "hushgraph budget create",
    r"Ledger\.open\([^()]*\)": "hushgraph budget show",
    r"ledger\.remaining\(\)": "hushgraph budget show",
    r"ledger\.renew\([^()]*\)": "hushgraph budget renew",
    r"write_report\(path, graph, release, denoise\(graph, release\)\)": "hushgraph denoise GRAPH RELEASE --report FILE",
    r"\bpass cupy\.asnumpy\(\w+\)": "leave --device gpu out",
    r"\bpublic_graph=True\b": "--public-graph",
    r"\bweak_guarantee=True\b": "--weak-guarantee",
    r"\bcrs='lonlat'": "--graph-crs lonlat",
    r"\bkey=": "--key-file",
    r"\bkeep=": "--out",
    r"\bweight=False\b": "--unweighted",
    r"\bmissing_ok=True\b": "--missing drop or fill",
    r"\bcolumns='separate'": "--separate",
    r"\bcolumns='path'": "--in-sequence",
    r"\bcolumns=": "--column",
}


def sentence_of(error: BaseException) -> tuple[str, int]:
    """What to say of an error, and the exit code. Nothing of its text unless a raise statement of hushgraph wrote it."""
    if isinstance(error, MemoryError):
        return f"there is not enough memory {_where(error)}, or take a smaller graph or fewer columns", UNEXPECTED
    if isinstance(error, _EXPECTED) and raised_here(error.__traceback__):
        return in_options(_text_of(error)), _code_of(error)
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


def in_options(text: str) -> str:
    """A message for Python callers in the words of the command line.

    Examples
    --------
    >>> in_options("say where events are: node='...', or lon= and lat=; make one with Ledger.create(path, ...)")
    "say where events are: --node '...', or --lon and --lat; make one with hushgraph budget create"
    >>> in_options("give max_nodes and max_per_node")
    'give --max-nodes and --max-per-node'
    """
    for call, command in _CALLS.items():
        text = re.sub(call, command, text)
    text = re.sub(rf"(?<![\w.-])({'|'.join(_PLAIN)})\b(?!=)", lambda match: f"--{match[1].replace('_', '-')}", text)
    known = "|".join(sorted(_ARGUMENTS, key=len, reverse=True))
    return re.sub(
        rf"(?<![\w.=-])({known})=(?!=)(?=(\S?))",
        lambda match: f"--{match[1].replace('_', '-')}" + " " * (match[2] not in ("", ",", ";", ".", ":", ")")),
        text,
    )


def _where(error: MemoryError) -> str:
    """Of which machine, and what helps."""
    there = type(error).__module__.partition(".")[0] == "cupy"
    return "on the GPU for this; leave --device gpu out" if there else "for this; close other programs"


def _text_of(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)


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
