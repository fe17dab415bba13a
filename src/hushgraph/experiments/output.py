"""Output of an experiment: rows as CSV and as a Markdown table, figures as PNG and PDF, in one style."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hushgraph.plotting import COLOURS, INK, QUIET, figure_style, pyplot

__all__ = ["COLOURS", "INK", "QUIET", "figure", "is_generated", "markdown", "read_csv", "write_csv", "write_files", "write_text"]


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write all rows to a CSV file, with a column for every field of any row; floats have all their digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    return path


def markdown(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table.

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


def read_csv(path: Path) -> list[dict[str, Any]]:
    """Return the rows that `write_csv` wrote; numbers are converted, empty fields are left out."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: _converted(text) for name, text in row.items() if text != ""} for row in csv.DictReader(file)]


def _converted(text: str) -> int | float | str:
    """Return the number that a field holds, or its text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def write_files(folder: Path, name: str, rows: list[dict[str, Any]], text: str, *, title: str | None = None) -> list[Path]:
    """Write CSV and Markdown of an experiment and return their paths; with a title, also those of its figure, which ends the text."""
    files = [write_csv(folder / f"{name}.csv", rows)]
    if title is None:
        return [*files, write_text(folder / f"{name}.md", text)]
    text = text.rstrip("\n") + f"\n\n![{title}]({name}.png)"
    return [*files, write_text(folder / f"{name}.md", text), folder / f"{name}.png", folder / f"{name}.pdf"]


def is_generated(rows: list[dict[str, Any]]) -> bool:
    """Return whether rows come from the generated data of a smoke test: such rows are not compared with the paper."""
    return str(rows[0].get("data", "")).startswith("a generated")


def write_text(path: Path, text: str) -> Path:
    """Write a text that ends with one line break, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    return path


@contextmanager
def figure(
    path: Path, *, size: tuple[float, float] = (7.2, 4.4), panels: tuple[int, int] = (1, 1), dpi: int = 200, **options: Any
) -> Iterator[Any]:
    """Yield axes to draw into; at the end of the block the figure is saved as PNG and PDF, and closed."""
    plt = pyplot()
    with figure_style():
        drawing, axes = plt.subplots(*panels, figsize=size, layout="constrained", **options)
        try:
            yield axes
            path.parent.mkdir(parents=True, exist_ok=True)
            for ending in (".png", ".pdf"):
                drawing.savefig(path.with_suffix(ending), dpi=dpi, metadata={"CreationDate": None} if ending == ".pdf" else None)
        finally:
            plt.close(drawing)
