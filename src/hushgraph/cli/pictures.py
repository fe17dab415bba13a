"""Pictures of maps: the option --picture, and the files that pictures are written to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushgraph._errors import InputError
from hushgraph.cli.options import PictureTexts
from hushgraph.cli.outputs import checked_file, written

if TYPE_CHECKING:
    from hushgraph.graphs import Graph

PICTURES = (".png", ".svg", ".pdf")
Picture = Annotated[
    Path | None,
    typer.Option(
        help="Also draw the maps, noisy and denoised, as a picture: .png, .svg or .pdf.", rich_help_panel="What comes out"
    ),
]


def checked_picture(path: Path | None, output: Path | None, *, force: bool) -> None:
    """Raise an error, before any work is done, if no picture can be drawn and written there."""
    if path is None:
        return
    if path.suffix.lower() not in PICTURES:
        msg = f"{path} must end in {', '.join(PICTURES)}: a picture is one of these; choose such a name"
        raise InputError(msg)
    if output is not None and path.absolute() == output.absolute():
        msg = f"{path} is the name of the picture and of the output; choose another name for one of them"
        raise InputError(msg)
    checked_file(path, force=force)
    from hushgraph._extras import extra

    extra("matplotlib.pyplot", name="plot", purpose="a picture")


def check_places(path: Path | None, graph: Graph) -> None:
    """Raise an error if a picture is to be drawn of a graph without places."""
    if path is not None and graph.coords is None:
        msg = f"{path.name} is a picture of a map, which needs places, and this graph has no coordinates; leave it out"
        raise InputError(msg)


def draw_picture(
    path: Path, graph: Graph, signals: Mapping[str, Any], texts: PictureTexts, *, attribution: str | None, force: bool
) -> None:
    """Draw the signals as maps side by side, and write them to the file."""
    from hushgraph.plotting import plot_maps, pyplot

    with written(path, force=force) as draft:
        pyplot().close(plot_maps(graph, signals, attribution=attribution, path=draft, **texts.texts()))
