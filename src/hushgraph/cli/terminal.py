"""Output of a command: results on stdout, everything else on stderr; with --json one JSON object on stdout."""

from __future__ import annotations

import io
import json
import math
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import typer

from hushgraph._errors import HushgraphError, ImportantWarning
from hushgraph.cli.failures import INTERRUPTED, in_options, sentence_of


@dataclass
class Terminal:
    """The output of one command; made by `open_terminal`."""

    command: str
    as_json: bool
    quiet: bool
    text_when_interrupted: str = "nothing was written"  # what Ctrl-C leaves behind; commands update it
    already_done: str = ""  # a charge, a file that is complete; added to the text of every failure
    notes: list[str] = field(default_factory=list)

    def note(self, text: str, *, always: bool = False) -> None:
        """Print a remark on stderr, once, with options of the command in place of arguments; with --quiet only if `always`."""
        text = in_options(text, self.command)
        if text in self.notes:
            return
        self.notes.append(text)
        if always or not self.quiet:
            _print(f"Note: {text}", style="yellow")

    def story(self, lines: Mapping[str, str]) -> None:
        """Print what was done, one line for each key; nothing with --json or --quiet."""
        if self.as_json or self.quiet:
            return
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        console = Console(highlight=False)
        if not console.is_terminal:  # a reader of a pipe needs whole lines
            for name, text in lines.items():
                print(printable(f"{name}: {text}"))
            return
        table = Table.grid(padding=(0, 2))
        for name, text in lines.items():
            table.add_row(Text(printable(name), style="bold"), Text(printable(text)))
        console.print(table)

    def table(self, head: list[str], rows: list[list[str]]) -> None:
        """Print numbers in columns; nothing with --json or --quiet."""
        if self.as_json or self.quiet:
            return
        widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
        for row in [head, *rows]:
            cells = [
                text.ljust(width) if k == 0 else text.rjust(width) for k, (text, width) in enumerate(zip(row, widths, strict=True))
            ]
            print(printable("  ".join(cells).rstrip()))

    def result(self, facts: dict[str, Any]) -> None:
        """Print the result as one JSON object with --json."""
        if self.as_json:
            print(json.dumps({"command": self.command, **_plain(facts), "notes": self.notes}, allow_nan=False))

    def fail(self, text: str, code: int, facts: dict[str, Any] | None = None) -> typer.Exit:
        """Print why the command fails, with --json also `facts`, and return the exit to raise."""
        text = printable("; ".join(filter(None, (text, self.already_done))))
        _print(f"hushgraph: {text}", style="red")
        if self.as_json:
            print(json.dumps({"command": self.command, **_plain(facts or {}), "error": text, "exit_code": code}))
        return typer.Exit(code)

    @contextmanager
    def working(self, text: str, total: float | None = None) -> Iterator[Callable[..., None]]:
        """Show a line while the block runs, with the time left if `total` is known; only on a terminal, and removed at the end.

        Yields a function to call with the amount of work done, and optionally the name of the stage.
        """
        if self.quiet:
            yield lambda done, stage=None: None
            return
        from hushgraph._progress import progress_bar

        with progress_bar(printable(text), total=total) as show:
            yield lambda done, stage=None: show(done, printable(text if stage is None else f"{text}: {stage}"))

    @contextmanager
    def watching(self, text: str, *, stages: bool = False) -> Iterator[None]:
        """Show a line as `working` does, with the time left, and with `stages` the stage, as the estimators report them."""
        from hushgraph._progress import watching

        with self.working(text, total=1.0) as show, watching(lambda share, what: show(share, what if stages else None)):
            yield


@contextmanager
def open_terminal(command: str, *, as_json: bool, quiet: bool) -> Iterator[Terminal]:
    """Yield the terminal of a command; an error in the block becomes one sentence on stderr and an exit code, a warning a note."""
    terminal = Terminal(command, as_json, quiet)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a character that the terminal lacks, such as ² or ©, is no reason to fail
    with warnings.catch_warnings(), _interrupts_heard() as heard:
        warnings.simplefilter("ignore")  # warnings of other packages may quote values
        warnings.filterwarnings("always", category=UserWarning, module=r"hushgraph(\.|$)")
        warnings.filterwarnings("always", category=ImportantWarning)
        warnings.showwarning = lambda message, *_, **__: terminal.note(
            message.args[0], always=isinstance(message, ImportantWarning)
        )
        try:
            yield terminal
        except (typer.Exit, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            text, code = f"stopped; {terminal.text_when_interrupted}", INTERRUPTED
        except Exception as error:
            text, code = sentence_of(error, command)
            # compiled code that is being imported makes an ImportError of Ctrl-C
            if heard and (isinstance(error, ImportError) or not isinstance(error, HushgraphError)):
                text, code = f"stopped; {terminal.text_when_interrupted}", INTERRUPTED
        else:
            return
    raise terminal.fail(text, code) from None


@contextmanager
def _interrupts_heard() -> Iterator[list[int]]:
    """Yield a list that is no longer empty once Ctrl-C was pressed, which raises KeyboardInterrupt as usual."""
    heard: list[int] = []
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield heard
        return

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, hear)
    try:
        yield heard
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def printable(text: str) -> str:
    """Return text with question marks in place of control characters, which could change the terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)


def _print(text: str, *, style: str) -> None:
    """Print on stderr."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    with suppress(OSError):  # nobody reads it any more, and the work goes on
        if console.is_terminal:
            console.print(Text(printable(text), style=style))
        else:
            print(printable(text), file=sys.stderr)


def _plain(value: Any) -> Any:
    """Return a value for JSON: NumPy numbers and paths as plain values, numbers that are not finite as None."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
