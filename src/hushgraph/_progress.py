"""Progress of long computations: they report the share that is done, and the watcher can stop them by raising an exception.

A watcher is a function of (share, what): the share of the work that is done, from 0 to 1, and the name of the next step. It belongs to
the thread or task that started it, so it need not be passed from function to function. `progress=True` shows a bar: on a terminal one of
rich, in a notebook an HTML element, since rich needs another package there; nowhere else.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from hushgraph._errors import InputTypeError
from hushgraph._extras import extra
from hushgraph._validation import shown

Watcher = Callable[[float, str], Any]
Progress = Watcher | bool | None  # what progress= accepts
Show = Callable[[float, str], Any]  # shows the work that is done, and a description


@dataclass(frozen=True)
class _Part:
    """The part of the whole work that is running: from the share `low` to the share `high`."""

    watcher: Watcher
    low: float = 0.0
    high: float = 1.0

    def report(self, share: float, what: str) -> None:
        self.watcher(self.low + share * (self.high - self.low), what)


_now: ContextVar[_Part | None] = ContextVar("part of the work", default=None)


def _checked_progress(progress: Any, takes: str) -> None:
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise InputTypeError.about(argument="progress", expected=f"True, for a bar, or a function of {takes}", got=shown(progress))


@contextmanager
def watching(progress: Progress) -> Iterator[None]:
    """Call `progress(share, what)` while the work inside the block goes on, share from 0 to 1; True shows a bar, None and False nothing.

    Examples
    --------
    >>> with watching(lambda share, what: print(f"{share:.0%} {what}")):
    ...     for k in range(2):
    ...         with nth(k, 2):
    ...             reached(0.5, "halfway")
    25% halfway
    75% halfway
    """
    _checked_progress(progress, "the share that is done and the name of what comes next")
    if not progress:
        yield
        return
    with progress_bar("", total=1.0) if progress is True else nullcontext(progress) as watcher:
        token = _now.set(_Part(watcher))
        try:
            yield
        finally:
            _now.reset(token)


@contextmanager
def counting_rows(progress: Callable[[int], Any] | bool | None) -> Iterator[Callable[[int], Any]]:
    """Yield a function that tells `progress` how many rows are done; True shows a bar, None and False nothing.

    The bar does not say the number of rows, which is private: the output of a notebook is stored.
    """
    _checked_progress(progress, "the number of rows done")
    if progress is True:
        with progress_bar("reading events", total=None) as show:
            yield lambda done: show(done, "reading events")
    else:
        yield progress or (lambda done: None)


# ---- a bar ------------------------------------------------------------------------------------------------------------


@contextmanager
def progress_bar(text: str, *, total: float | None) -> Iterator[Show]:
    """Show a bar with a description, and with the time left if `total` is known, while the block runs; it is removed at the end.

    It is on stderr, if that is a terminal, or in the output of a notebook; elsewhere nothing is shown. Yields a function to call with
    the work that is done and the description.
    """
    console = extra("rich.console", name="all", purpose="a progress bar").Console(stderr=True, highlight=False)
    if console.is_jupyter:
        yield from _notebook_bar(text, total)
    elif not console.is_terminal:
        yield lambda done, what: None
    else:
        rich = extra("rich.progress", name="all", purpose="a progress bar")
        times = (rich.BarColumn(), rich.TaskProgressColumn(), rich.TimeRemainingColumn()) if total else (rich.TimeElapsedColumn(),)
        columns = rich.SpinnerColumn(), rich.TextColumn("{task.description}", markup=False), *times
        with rich.Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as bar:
            task = bar.add_task(text, total=total)
            yield lambda done, what: bar.update(task, completed=done if total is None else min(done, total), description=what)


def _notebook_bar(text: str, total: float | None) -> Iterator[Show]:
    """Show an HTML bar in the output of a cell; it is redrawn for each percent or description."""
    display = extra("IPython.display", name="all", purpose="a progress bar in a notebook")
    shown_now = None

    def page(done: float, what: str) -> Any:
        share = "" if total is None else f' value="{min(done / total, 1.0):.2f}"'
        return display.HTML(f"<div><progress{share}></progress> {escape(what)}</div>")

    def show(done: float, what: str) -> None:
        nonlocal shown_now
        now = (None if total is None else round(100 * done / total), what)
        if now != shown_now:
            shown_now = now
            handle.update(page(done, what))

    handle = display.display(page(0.0, text), display_id=True)
    try:
        yield show
    finally:
        handle.update(display.HTML(""))


# ---- parts of the work --------------------------------------------------------------------------------------------------


def nth(k: int, m: int) -> AbstractContextManager[None]:
    """Take the work inside the block as the k-th of m equal parts, counted from 0."""
    return between(k / m, (k + 1) / m)


@contextmanager
def between(low: float, high: float) -> Iterator[None]:
    """Take the work inside the block as the part from one share of the work to another."""
    now = _now.get()
    if now is None:
        yield
        return
    size = now.high - now.low
    token = _now.set(replace(now, low=now.low + low * size, high=now.low + high * size))
    try:
        yield
    finally:
        _now.reset(token)


def reached(share: float, what: str) -> None:
    """Report that this share of the part is done, and the name of the next step."""
    now = _now.get()
    if now is not None:
        now.report(share, what)


@contextmanager
def timed(timings: dict, stage: str, low: float = 0.0, high: float = 1.0) -> Iterator[None]:
    """Add the time of the block to timings[stage]; `low` and `high` are the shares of the work that are done at its start and end."""
    start = time.perf_counter()
    with between(low, high):
        reached(0.0, stage)
        yield
    timings[stage] = timings.get(stage, 0.0) + time.perf_counter() - start
