"""hushgraph sample: generated files to try the other commands on."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from hushgraph._errors import FileThereError
from hushgraph.cli.options import AsJson, Force, Quiet
from hushgraph.cli.outputs import checked_file
from hushgraph.cli.terminal import open_terminal


def command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder for the files; . is this one.")],
    nodes: Annotated[int, typer.Option(min=100, help="Junctions of the generated city.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything; the same seed gives the same files.")] = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write files to try the other commands on: streets, trips of people and noisy values of a generated city. Needs no network.

    streets.graphml is a street network with longitudes and latitudes, trips.csv has a person, a place and a time in each row, and
    values.csv has a noisy value for each junction.
    """
    with open_terminal("sample", as_json=as_json, quiet=quiet) as terminal:
        with terminal.working("Generating a city"):
            from hushgraph.datasets import SAMPLE_FILES, SAMPLE_SIGMA, draw_sample

            _check_places(folder, SAMPLE_FILES, force=force)
            sample = draw_sample(nodes, seed=seed)
            terminal.text_when_interrupted = f"the files may be in {folder}, each of them complete"
            paths = _written(folder, sample, force=force)
        graph, rows = sample.graph, len(sample.trips["person"])
        terminal.story(
            {
                str(
                    paths[0]
                ): f"{graph.n:,} junctions and {graph.n_edges:,} streets, with longitudes and latitudes (EPSG:4326); OSMnx "
                "and NetworkX read it too.",
                str(
                    paths[1]
                ): f"starts of {rows:,} trips: person, lon, lat, time. As in real files, some rows have no person or lie far away.",
                str(paths[2]): f"a value for each junction, with noise of sigma {SAMPLE_SIGMA:g}.",
                "Try": denoise_command(paths[0], paths[2], sigma=SAMPLE_SIGMA),
                "Or": check_command(paths[0], paths[1]),
            }
        )
        terminal.result(
            {
                "streets": paths[0],
                "trips": paths[1],
                "values": paths[2],
                "nodes": graph.n,
                "edges": graph.n_edges,
                "rows": rows,
                "sigma": SAMPLE_SIGMA,
            }
        )


def _written(folder: Path, sample: Any, *, force: bool) -> list[Path]:
    """Write the files and return their paths; if that fails, a folder that was made for them is removed."""
    from hushgraph.datasets import write_sample

    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return write_sample(folder, sample, replace=force)
    except OSError:
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise


def _check_places(folder: Path, names: Iterable[str], *, force: bool) -> None:
    """Raise an error if the files cannot be written, or exist and `force` is False; called before any work is done."""
    existing = [name for name in names if (folder / name).exists()]
    if existing and not force:
        msg = f"{folder} must not have {', '.join(existing)} already; choose another folder, or say --force to replace these files"
        raise FileThereError(msg)
    for name in names:
        checked_file(folder / name, force=True)


def denoise_command(streets: Path, values: Path, *, sigma: float) -> str:
    """Return the command that denoises the values."""
    words = ["hushgraph", "denoise", streets, values, "--sigma", f"{sigma:g}", "-o", "denoised.csv"]
    return shlex.join(map(str, words))


def check_command(streets: Path, trips: Path) -> str:
    """Return the command that shows what counting would make of the trips."""
    words = ["hushgraph", "check", streets, trips, "--unit", "person", "--max-nodes", 2, "--max-per-node", 1, "--max-distance", 200]
    return shlex.join(map(str, words))
