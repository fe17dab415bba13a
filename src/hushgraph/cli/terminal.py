"""What a command says, and where: results on stdout, everything else on stderr, one JSON object if asked for."""

from __future__ import annotations

import io
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import typer

from hushgraph.cli.failures import INTERRUPTED, in_options, sentence_of


@dataclass
class Terminal:
    """The voice of one command; made by `open_terminal`."""

    command: str
    as_json: bool
    quiet: bool
    stopped: str = "nothing was written"  # what Ctrl-C leaves behind; commands keep it true
    charged: str = ""  # what was paid for and may be lost, for every failure
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """A remark beside the result, said once, in the words of the command."""
        text = in_options(text, self.command)
        if text in self.notes:
            return
        self.notes.append(text)
        if not self.quiet:
            _print(f"Note: {text}", stderr=True, style="yellow")

    def story(self, words: Mapping[str, str]) -> None:
        """What was done, one line for each key; nothing if JSON or silence is wanted."""
        if self.as_json or self.quiet:
            return
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        console = Console(highlight=False)
        if not console.is_terminal:  # whoever reads a pipe wants whole lines
            for name, text in words.items():
                print(printable(f"{name}: {text}"))
            return
        table = Table.grid(padding=(0, 2))
        for name, text in words.items():
            table.add_row(Text(printable(name), style="bold"), Text(printable(text)))
        console.print(table)

    def table(self, head: list[str], rows: list[list[str]]) -> None:
        """Numbers in columns."""
        if self.as_json or self.quiet:
            return
        widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
        for row in [head, *rows]:
            cells = [
                text.ljust(width) if k == 0 else text.rjust(width) for k, (text, width) in enumerate(zip(row, widths, strict=True))
            ]
            print(printable("  ".join(cells).rstrip()))

    def result(self, facts: dict[str, Any]) -> None:
        """The result as one JSON object, if that is wanted."""
        if self.as_json:
            print(json.dumps({"command": self.command, **_plain(facts), "notes": self.notes}, allow_nan=False))

    def fail(self, text: str, code: int, facts: dict[str, Any] | None = None) -> typer.Exit:
        """The exit to raise after saying why; `facts` go with the error if JSON is wanted."""
        text = printable("; ".join(filter(None, (text, self.charged))))
        _print(f"hushgraph: {text}", stderr=True, style="red")
        if self.as_json:
            print(json.dumps({"command": self.command, **_plain(facts or {}), "error": text, "exit_code": code}))
        return typer.Exit(code)

    @contextmanager
    def working(self, text: str, total: float | None = None) -> Iterator[Callable[..., None]]:
        """Show that something goes on, with the time left if `total` is known.

        Yields what to call with how much is done, and possibly the stage. Only on a terminal, and gone afterwards.
        """
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        if self.quiet or not console.is_terminal:
            yield lambda done, stage=None: None
            return
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        known = (BarColumn(), TaskProgressColumn(), TimeRemainingColumn()) if total else (TimeElapsedColumn(),)
        columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), *known
        with Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as bar:
            task = bar.add_task(printable(text), total=total)

            def show(done: float, stage: str | None = None) -> None:
                words = text if stage is None else f"{text}: {stage}"
                bar.update(task, completed=done if total is None else min(done, total), description=printable(words))

            yield show

    @contextmanager
    def watching(self, text: str, *, stages: bool = False) -> Iterator[None]:
        """`working`, with the time left, and possibly the stage, as told by the work itself."""
        from hushgraph.progress import watching

        with self.working(text, total=1.0) as show, watching(lambda share, what: show(share, what if stages else None)):
            yield


@contextmanager
def open_terminal(command: str, *, as_json: bool, quiet: bool) -> Iterator[Terminal]:
    """A terminal for the command inside; its errors become one sentence on stderr and an exit code, warnings become notes."""
    terminal = Terminal(command, as_json, quiet)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ² or © is no reason to fail
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of other packages may quote values
        warnings.filterwarnings("always", category=UserWarning, module=r"hushgraph(\.|$)")
        warnings.showwarning = lambda message, *_, **__: terminal.note(message.args[0])
        try:
            yield terminal
        except (typer.Exit, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            text, code = f"stopped; {terminal.stopped}", INTERRUPTED
        except Exception as error:
            text, code = sentence_of(error, command)
        else:
            return
    raise terminal.fail(text, code) from None


def printable(text: str) -> str:
    """Text that cannot steer a terminal: control characters become question marks."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)


def _print(text: str, *, stderr: bool, style: str) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=stderr, highlight=False)
    if console.is_terminal:
        console.print(Text(printable(text), style=style))
    else:
        print(printable(text), file=sys.stderr if stderr else sys.stdout)


def _plain(value: Any) -> Any:
    """For JSON: NumPy's numbers and paths as plain ones, what is not finite as null."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
