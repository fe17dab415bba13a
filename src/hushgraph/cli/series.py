"""hushgraph series: denoises earlier releases again, each with the help of the others."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushgraph._atomic import atomic_folder
from hushgraph._errors import InputError
from hushgraph.cli.graph_options import GraphFile, GraphReading, check_graph_first
from hushgraph.cli.guide_options import check_method
from hushgraph.cli.options import AUTO, AsJson, Force, Method, Quiet, grouped, method_name
from hushgraph.cli.outputs import checked_series_folder
from hushgraph.cli.terminal import Terminal, open_terminal

if TYPE_CHECKING:
    from hushgraph.graphs import Graph
    from hushgraph.privacy import Release

_NOISE, _OUTPUT = "What is known", "What comes out"


class Direction(StrEnum):
    all = "all"
    past = "past"


@grouped
def command(
    graph_file: GraphFile,
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER", help="Folders of releases on this graph, two or more, in any order."),
    ],
    *,
    direction: Annotated[
        Direction,
        typer.Option(
            help="all: each map is guided by all others; past: by earlier ones only, so that it stays as it is when more are added.",
            rich_help_panel=_NOISE,
        ),
    ] = Direction.all,
    method: Annotated[Method, typer.Option(help="auto, let or counts.", rich_help_panel=_NOISE)] = AUTO,
    reading: GraphReading,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="New folder: a table for each release, and a summary.", rich_help_panel=_OUTPUT)
    ],
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Denoise earlier releases again, each with the help of the others: months of a year, say. Nothing is charged.

    Only what was published is used. The releases are taken in the order of the time when they were made.
    """
    with open_terminal("series", as_json=as_json, quiet=quiet) as terminal:
        check_graph_first("series", graph_file, *folders)
        checked_series_folder(output, force=force)
        names = _names_of(folders)
        check_method(method_name(method), "a series goes")
        graph = reading.graph(terminal, graph_file)
        with terminal.working("Reading the releases"):
            releases = _read(folders, names, graph)
        _note_kinds(terminal, releases)
        with terminal.watching(f"Denoising {len(releases)} maps of {graph.n:,} nodes"):
            from hushgraph.estimators import denoise_series

            maps = {name: release for name, (_, release) in releases.items()}
            results = denoise_series(graph, maps, direction=direction.value, method=method_name(method), nonnegative=True)
        with terminal.working("Writing"):
            from hushgraph.privacy import SeriesMap, write_series

            output.parent.mkdir(parents=True, exist_ok=True)
            parts = [SeriesMap(name, folder, release, results[name]) for name, (folder, release) in releases.items()]
            with atomic_folder(output, replace=force) as draft:
                summary = write_series(draft, parts, direction=direction.value)
        _show(terminal, summary, output)


def _names_of(folders: list[Path]) -> list[str]:
    """Return the name of each folder, which its table gets; all must differ, also from that of the summary."""
    if len(folders) < 2:
        msg = "a series has two releases or more; one alone is denoised by hushgraph denoise GRAPH FOLDER"
        raise InputError(msg)
    names = [Path(os.path.abspath(folder)).name for folder in folders]
    (name, count), *_ = Counter([*(one.casefold() for one in names), "summary"]).most_common(1)
    if count > 1:
        fault = "summary is the name of a table that is written too" if name == "summary" else f"two folders are called {name}"
        msg = f"each table is named like the folder of its release, and {fault}; rename a folder, and give each folder once"
        raise InputError(msg)
    return names


def _read(folders: list[Path], names: list[str], graph: Graph) -> dict[str, tuple[Path, Release]]:
    """Return folders and releases by name, in the order of the time when they were made."""
    from hushgraph.privacy import read_release

    releases = {name: (folder, read_release(folder, graph)) for name, folder in zip(names, folders, strict=True)}
    first: dict[bytes, str] = {}
    for name, (folder, release) in releases.items():
        if release.windows is not None:
            msg = (
                f"{folder} is a release over time windows; hushgraph denoise GRAPH {shlex.quote(str(folder))} already lets its windows guide each other; "
                "leave it out here"
            )
            raise InputError(msg)
        other = first.setdefault(release.values.tobytes(), name)
        if other != name:
            msg = f"{other} and {name} hold the same map, with the same noise; give each release once"
            raise InputError(msg)
    return dict(sorted(releases.items(), key=_when))


def _when(item: tuple[str, tuple[Path, Release]]) -> tuple[str, int]:
    """Return when a release was made; the entry of the ledger tells apart what was made in the same second."""
    release = item[1][1]
    return release.created, release.ledger["entry"]


def _note_kinds(terminal: Terminal, releases: dict[str, tuple[Path, Release]]) -> None:
    """Say it where the releases are of several data sets: maps of different kinds help each other less."""
    kinds = list(dict.fromkeys(str(release.ledger["dataset"]) for _, release in releases.values()))
    if len(kinds) > 1:
        terminal.note(f"the releases are of several data sets ({', '.join(kinds)}); a series is of maps of one kind")


def _show(terminal: Terminal, summary: dict[str, Any], output: Path) -> None:
    """Print the errors before and now, or the summary as JSON."""
    head = ["release", "made", "error before", "error now"]
    rows = [
        [one["release"], one["created"], _size(one["typical_error_before"]), _size(one["typical_error"])]
        for one in summary["releases"]
    ]
    terminal.table(head, rows)
    order = "order of the time when they were made"
    terminal.story(
        {
            "Errors": f"per value, estimated without the truth; before: as the folder of the release states it. The maps are in the {order}.",
            "Budget": "nothing was charged: this is made from what was published.",
            "Files": f"{output}, a table for each release, summary.csv and summary.json",
        }
    )
    terminal.result({"output": output, **summary})


def _size(error: float | None) -> str:
    return "not known" if error is None else f"{error:.3g}"
