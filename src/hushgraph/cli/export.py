"""hushgraph export: published folders and tables as layers for map programs, as parquet files and as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hushgraph._errors import InputError
from hushgraph.cli.graph_options import GraphFile, GraphReading, check_graph_first
from hushgraph.cli.options import AsJson, Force, PictureTexts, Quiet, grouped
from hushgraph.cli.outputs import checked_file, written
from hushgraph.cli.pictures import PICTURES, check_places, checked_picture, draw_picture
from hushgraph.cli.terminal import open_terminal

if TYPE_CHECKING:
    import numpy as np

    from hushgraph.graphs import Graph

_ENDINGS = (".geojson", ".gpkg", ".parquet", *PICTURES)
_NO_MAPS = ("expected_error", "lower", "upper")  # what a picture of a table leaves out


@grouped
def command(
    graph_file: GraphFile,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="MAPS",
            help="What is turned into a map: the folder of a release or of a series, or a table as denoise writes it.",
        ),
    ],
    *,
    reading: GraphReading,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The file to write: .geojson or .gpkg for QGIS and other map programs, .parquet (a plain table, without shapes), or a picture: .png, .svg, .pdf.",
            rich_help_panel="What comes out",
        ),
    ],
    texts: PictureTexts,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Turn published maps into a layer for map programs, a table or a picture. Nothing is computed again, nothing is charged."""
    with open_terminal("export", as_json=as_json, quiet=quiet) as terminal:
        check_graph_first("export", graph_file, source)
        _check_output(output, force=force)
        graph = reading.graph(terminal, graph_file)
        if output.suffix.lower() != ".parquet":
            check_places(output, graph)
        with terminal.working("Reading the maps"):
            layer = _read(source, graph)
        with terminal.working("Writing"):
            if output.suffix.lower() in PICTURES:
                draw_picture(output, graph, layer.signals, texts, attribution=layer.attribution, force=force)
            else:
                _write_layer(output, graph, layer, force=force)
        shape = "points" if graph.outlines is None else "polygons"
        what = f"{len(layer.signals)} maps" if output.suffix.lower() in PICTURES else f"{layer.n_rows:,} rows of {graph.n:,} nodes"
        what += f" as {shape}" * (output.suffix.lower() in (".geojson", ".gpkg"))
        terminal.story({"Map": f"{what}; columns {', '.join(layer.columns)}.", "Files": str(output)})
        terminal.result({"output": output, "nodes": graph.n, "rows": layer.n_rows, "columns": list(layer.columns)})


class _Layer(NamedTuple):
    """Rows of a table, the node of each row (None: a row for each node), and what a picture shows."""

    columns: dict[str, Any]
    nodes: np.ndarray | None
    signals: Mapping[str, np.ndarray]
    attribution: str | None

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values())))


def _check_output(output: Path, *, force: bool) -> None:
    """Raise an error, before any work is done, for a file that cannot be written."""
    from hushgraph.files import check_feature_file

    if output.suffix.lower() not in _ENDINGS:
        msg = f"{output} must end in {', '.join(_ENDINGS)}; a folder of a release has its table already, map.csv"
        raise InputError(msg)
    if output.suffix.lower() in PICTURES:
        checked_picture(output, None, force=force)
    checked_file(output, force=force)
    check_feature_file(output)


def _read(source: Path, graph: Graph) -> _Layer:
    if source.is_dir():
        from hushgraph.privacy import read_published

        maps = read_published(source, graph)
        return _Layer(maps.columns, maps.nodes if maps.titles else None, maps.signals(), maps.attribution)
    from hushgraph.files import read_named_signal

    read = read_named_signal(source, graph, missing_ok=True)
    places = ("x", "y", "z", "lon", "lat")
    names = [*read.names, *(name for name in read.left_out if name.lower() not in places)]
    values = read.values.reshape(graph.n, -1)
    if read.left_out:
        values = read_named_signal(source, graph, columns=names, missing_ok=True).values
    names = names or [f"column_{k + 1}" for k in range(values.shape[1])]  # an array has no names
    columns = dict(zip(names, values.T, strict=True))
    shown = {name: column for name, column in columns.items() if not name.endswith(_NO_MAPS)}
    return _Layer(columns, None, shown or columns, None)


def _write_layer(output: Path, graph: Graph, layer: _Layer, *, force: bool) -> None:
    from hushgraph.files import write_features, write_rows

    with written(output, force=force) as draft:
        if output.suffix.lower() == ".parquet":
            write_rows(draft, graph, layer.columns, nodes=layer.nodes)
        else:
            write_features(draft, graph, layer.columns, nodes=layer.nodes)
