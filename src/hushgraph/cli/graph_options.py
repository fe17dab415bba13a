"""Options of all commands that read a graph, and the reading itself."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hushgraph._errors import InputError
from hushgraph.cli.terminal import Terminal

if TYPE_CHECKING:
    from hushgraph.graphs import Graph

_GRAPH = "How the graph is read"
GRAPH_FILES = (
    "The graph: .graphml, .gml, .mtx, .npz, a list of edges in .csv, .tsv, .txt or .parquet (nodes and places in another table: --nodes), "
    "street lines or zones in .geojson, .gpkg or .shp; most also as .gz."
)


class Duplicates(StrEnum):
    error = "error"
    sum = "sum"
    max = "max"


class GraphCrs(StrEnum):
    lonlat = "lonlat"
    planar = "planar"


class Format(StrEnum):
    graphml = "graphml"
    gml = "gml"
    mtx = "mtx"
    snap = "snap"
    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    npz = "npz"
    geojson = "geojson"
    gpkg = "gpkg"
    shp = "shp"


GraphFile = Annotated[Path, typer.Argument(metavar="GRAPH", help=GRAPH_FILES)]
Weight = Annotated[
    str | None,
    typer.Option(
        help="Edge column that says how close two nodes are (a number from 0 in files without names). Default: weight, if there is one.",
        rich_help_panel=_GRAPH,
    ),
]
Distance = Annotated[
    str | None, typer.Option(help="Edge column that is a length; near nodes are joined more strongly.", rich_help_panel=_GRAPH)
]
Unweighted = Annotated[
    bool, typer.Option("--unweighted", help="Every edge weighs 1, whatever the file says.", rich_help_panel=_GRAPH)
]
DuplicateEdges = Annotated[
    Duplicates, typer.Option("--duplicates", help="Edges given twice with unequal weights.", rich_help_panel=_GRAPH)
]
GraphPlaces = Annotated[
    GraphCrs | None,
    typer.Option(
        "--graph-crs",
        help="lonlat: the coordinates are degrees; planar: they are in a plane. Default: what the file says, else a plane.",
        rich_help_panel=_GRAPH,
    ),
]
GraphFormat = Annotated[
    Format | None, typer.Option("--format", help="Format, if the name of the file does not show it.", rich_help_panel=_GRAPH)
]
NodeTable = Annotated[
    Path | None,
    typer.Option(
        help="Table of the nodes, if GRAPH is a list of edges: columns node, and lon and lat, or x and y.",
        rich_help_panel=_GRAPH,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--graph-delimiter",
        help="Character between the columns of a list of edges, if it is not the usual one.",
        rich_help_panel=_GRAPH,
    ),
]
ZoneLabel = Annotated[
    str | None,
    typer.Option(
        help="Column of the labels of zones. Default: the ids in the file, or its column LocationID, location_id, zone_id or id.",
        rich_help_panel=_GRAPH,
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(help="Largest gap between neighboring zones, as a share of their size. Default: 0.001.", rich_help_panel=_GRAPH),
]


@dataclass(frozen=True, kw_only=True)
class GraphReading:
    """How the graph is read: the options of every command that reads a graph (see `options.grouped`)."""

    weight: Weight = None
    distance: Distance = None
    unweighted: Unweighted = False
    duplicates: DuplicateEdges = Duplicates.error
    graph_crs: GraphPlaces = None
    graph_format: GraphFormat = None
    nodes: NodeTable = None
    graph_delimiter: Delimiter = None
    zone_label: ZoneLabel = None
    tolerance: Tolerance = None

    def graph(self, terminal: Terminal, path: Path, *, streets: bool = False) -> Graph:
        """Return the graph in the file; with `streets` what GraphML knows of its streets is read, too, for `Graph.covariates`."""
        if self.unweighted and (self.weight is not None or self.distance is not None):
            msg = "--unweighted takes no weights from the file, and --weight or --distance does; leave one of them out"
            raise InputError(msg)
        with terminal.working("Reading the graph"):
            from hushgraph.files import read_graph

            is_graphml = path.name.lower().removesuffix(".gz").endswith(".graphml") and self.graph_format is None
            return read_graph(
                path,
                format=None if self.graph_format is None else self.graph_format.value,
                weight=False if self.unweighted else _column(self.weight),
                distance=_column(self.distance),
                duplicates=self.duplicates.value,
                crs=None if self.graph_crs is None else self.graph_crs.value,
                nodes=self.nodes,
                delimiter=self.graph_delimiter,
                label=self.zone_label,
                tolerance=self.tolerance,
                covariates=streets and (is_graphml or self.graph_format is Format.graphml),
            )


def check_graph_first(command: str, graph_file: Path, *others: Path) -> None:
    """Raise an error if the graph was named after another file; nothing of either is shown."""
    from hushgraph.files import looks_like_graph

    graph = None if looks_like_graph(graph_file) else next(filter(looks_like_graph, others), None)
    if graph is not None:
        rest = [str(path) for path in (graph_file, *others) if path != graph]
        words = shlex.join(["hushgraph", command, str(graph), *rest])
        msg = f"the graph comes first; write {words} with the same options"
        raise InputError(msg)


def _column(name: str | None) -> str | int | None:
    """Return a column as an integer if it is a number: columns of files without names are numbered."""
    return int(name) if name is not None and name.isdecimal() else name
