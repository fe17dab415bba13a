"""Formats of graphs and signals: the format of a file is what its name ends in, .gz or not, unless the caller names it."""

from __future__ import annotations

from pathlib import Path

from hushgraph._errors import InputError, Sentence
from hushgraph._validation import choose

GRAPH_ENDINGS = {
    ".graphml": "graphml", ".gml": "gml", ".mtx": "mtx", ".txt": "snap", ".edges": "snap", ".edgelist": "snap", ".el": "snap",
    ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".npz": "npz", ".geojson": "geojson", ".gpkg": "gpkg", ".shp": "shp",
}  # fmt: skip
TABLE_ENDINGS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}
SIGNAL_ENDINGS = {**TABLE_ENDINGS, ".npy": "npy"}
SHAPE_FORMATS = ("geojson", "gpkg", "shp")
LABEL_COLUMNS = ("node", "label", "id", "osmid")  # of a table of nodes; the first one that is there counts
DELIMITERS: dict[str, str | None] = {"csv": ",", "tsv": "\t", "snap": None}


ColumnChoice = str | int | bool | None  # name or number of an edge column; False: no column; None: "weight" if there is one


def format_of(
    path: Path,
    endings: dict[str, str],
    given: str | None,
    *,
    advice: str = Sentence("rename it, or say {format=} where that is offered"),
) -> str:
    """Return the format that the caller asks for, or that the end of the name stands for."""
    if given is not None:
        return choose("format", given, tuple(dict.fromkeys(endings.values())))
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending not in endings:
        raise InputError(Sentence("{} must end in {} (and may end in .gz after that); {}", path, ", ".join(endings), advice))
    return endings[ending]
