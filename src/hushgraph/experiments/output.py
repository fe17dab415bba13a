"""What an experiment leaves for readers: rows as CSV and as a Markdown table, figures as PNG and PDF, in one style."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path

from hushgraph.plotting import COLOURS, INK, QUIET, pyplot, style

__all__ = ["COLOURS", "INK", "QUIET", "figure", "is_generated", "markdown", "read_csv", "write_csv", "write_files", "write_text"]


def write_csv(path: Path, rows: list[dict]) -> Path:
    """All rows, every field of any of them a column; floats with all their digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    return path


def markdown(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A Markdown table.

    Examples
    --------
    >>> print(markdown(["x", "y"], [["1", "2"]]))
    | x | y |
    |---|---|
    | 1 | 2 |
    """
    head = list(head)
    return "\n".join(["| " + " | ".join(line) + " |" for line in (head, *lines)]).replace(
        "\n", "\n|" + "---|" * len(head) + "\n", 1
    )


def read_csv(path: Path) -> list[dict]:
    """Rows as `write_csv` wrote them; what reads as a number is one, empty fields are left out."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: _number(text) for name, text in row.items() if text != ""} for row in csv.DictReader(file)]


def _number(text: str):
    for form in (int, float):
        try:
            return form(text)
        except ValueError:
            continue
    return text


def write_files(folder: Path, name: str, rows: list[dict], text: str, *, title: str | None = None) -> list[Path]:
    """CSV and Markdown of an experiment; with a title also its figure, drawn already, which then ends the text."""
    files = [write_csv(folder / f"{name}.csv", rows)]
    if title is None:
        return [*files, write_text(folder / f"{name}.md", text)]
    text = text.rstrip("\n") + f"\n\n![{title}]({name}.png)"
    return [*files, write_text(folder / f"{name}.md", text), folder / f"{name}.png", folder / f"{name}.pdf"]


def is_generated(rows: list[dict]) -> bool:
    """Whether rows come from a smoke test: they are no results and stand beside nobody's numbers."""
    return str(rows[0].get("data", "")).startswith("a generated")


def write_text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    return path


@contextmanager
def figure(path: Path, *, size=(7.2, 4.4), panels=(1, 1), dpi: int = 200, **options):
    """Axes to draw into; saved as PNG and PDF beside each other, then closed."""
    plt = pyplot()
    with style():
        drawing, axes = plt.subplots(*panels, figsize=size, layout="constrained", **options)
        try:
            yield axes
            path.parent.mkdir(parents=True, exist_ok=True)
            for ending in (".png", ".pdf"):
                drawing.savefig(path.with_suffix(ending), dpi=dpi, metadata={"CreationDate": None} if ending == ".pdf" else None)
        finally:
            plt.close(drawing)
