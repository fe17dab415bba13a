"""Values on nodes as a layer of a map: GeoJSON and GeoPackage, a point for each node or the polygons of a zone."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hushgraph._atomic import atomic_file, atomic_open
from hushgraph._errors import InputError
from hushgraph._extras import extra
from hushgraph.graphs import CRS_MEMBER, Graph, label_kind, node_names, signal_frame

# Without "crs" readers take GeoJSON for longitudes and latitudes; a name that they know is that of no place on earth.
_PLANE = 'ENGCRS["planar",EDATUM["planar"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["unknown",1]]'
_PLANAR = {"crs": {"type": "name", "properties": {"name": _PLANE}}, CRS_MEMBER: "planar"}
FEATURE_ENDINGS = {".geojson": "geojson", ".gpkg": "gpkg"}
_CHUNK = 50_000  # features that are turned into text at once


def is_feature_file(path: str | Path) -> bool:
    """Return whether the name of a file says that it is a layer of a map."""
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix in FEATURE_ENDINGS


def write_features(path: str | Path, graph: Graph, columns: Mapping[str, Any], *, nodes: np.ndarray | None = None) -> Path:
    """Write values on the nodes of a graph as a layer of a map, with the label of each node in the column "node".

    Zones are polygons, other nodes are points. The layer is in EPSG:4326 if the graph is in longitude and latitude, otherwise in a plane
    without a place on earth.

    Parameters
    ----------
    path : str or Path
        A .geojson file, which may end in .gz, or a .gpkg file, which needs the extra geopandas. An existing file is replaced.
    graph : Graph
        A graph with coordinates.
    columns : dict of str to array_like
        The values of each feature, numbers or texts; NaN is written as a missing value.
    nodes : (k,) array of int, optional
        The node of each feature, where there are several for a node: one for each time window, say. Default: one for each node.

    Returns
    -------
    Path
        The file.
    """
    path = Path(path)
    check_feature_file(path, graph)
    label_kind(graph.labels, f"{path.name}, a layer of a map,")
    if path.suffix.lower() == ".gpkg":
        frame = signal_frame(graph, columns, nodes=nodes)
        with atomic_file(path, sync=True) as draft, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="'crs' was not provided")  # a plane has none
            frame.to_file(draft, driver="GPKG", layer="map")
    else:
        with atomic_open(path) as file:
            _write_geojson(file, graph, columns, nodes)
    return path


def check_feature_file(path: Path, graph: Graph | None = None) -> None:
    """Raise an error if a layer of a map cannot be written: as this file, or of this graph."""
    if path.name.lower().endswith(".gpkg.gz"):
        msg = f"{path.name} cannot be packed: map programs open a .gpkg file as it is; leave .gz out"
        raise InputError(msg)
    if path.suffix.lower() == ".gpkg":
        extra("geopandas", name="geopandas", purpose="a .gpkg file")
    if graph is not None and graph.coords is None:
        msg = f"{path.name} is a layer of a map, which needs places, and this graph has no coordinates; write .csv or .parquet"
        raise InputError(msg)


def _write_geojson(file: BinaryIO, graph: Graph, columns: Mapping[str, Any], nodes: np.ndarray | None) -> None:
    assert graph.coords is not None
    names, rows = node_names(graph), np.arange(graph.n) if nodes is None else nodes
    head = json.dumps({"type": "FeatureCollection", **({} if graph.crs == "lonlat" else _PLANAR)}, separators=(",", ":"))[:-1]
    shapes = None if graph.outlines is None else [json.dumps(parts, separators=(",", ":")) for parts in graph.outlines.polygons()]
    file.write(f'{head},"features":['.encode())
    values = {name: np.asarray(column) for name, column in columns.items()}
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK].tolist()
        table = (
            zip(*(_plain(column[start : start + _CHUNK]) for column in values.values()), strict=True)
            if values
            else [()] * len(part)
        )
        texts = []
        for node, row in zip(part, table, strict=True):
            properties = json.dumps(
                {"node": names[node], **dict(zip(values, row, strict=True))}, separators=(",", ":"), allow_nan=False
            )
            identity = f'"id":{json.dumps(names[node])},' if nodes is None else ""  # ids must differ
            geometry = (
                f'{{"type":"Point","coordinates":{json.dumps(graph.coords[node].tolist())}}}'
                if shapes is None
                else f'{{"type":"MultiPolygon","coordinates":{shapes[node]}}}'
            )
            texts.append(f'{{"type":"Feature",{identity}"properties":{properties},"geometry":{geometry}}}')
        file.write((",\n" * (start > 0) + ",\n".join(texts)).encode())
    file.write(b"]}\n")


def _plain(column: np.ndarray) -> list:
    """Return values for JSON; numbers that are not finite are missing."""
    if column.dtype.kind != "f":
        return column.tolist()
    return [value if known else None for value, known in zip(column.tolist(), np.isfinite(column).tolist(), strict=True)]
