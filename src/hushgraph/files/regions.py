"""Regions from files: polygons of GeoJSON, or a table with the region of each node."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph._errors import InputError
from hushgraph.files.text import BYTE_ORDER_MARK, existing_file
from hushgraph.graphs import (
    LONLAT,
    Graph,
    Regions,
    as_graph,
    crs_of,
    features_of,
    geojson_of,
    node_names,
    polygon_regions,
)

POLYGON_ENDINGS, TABLE_ENDINGS = (".geojson", ".json"), (".csv", ".tsv")
NAME_PROPERTIES = ("name", "region", "zone", "id")


def read_regions(path: str | Path, graph: Graph) -> Regions:
    """Return the regions in a file: polygons in .geojson or .json, or a table in .csv or .tsv with the columns node and region.

    Parameters
    ----------
    path : str or Path
        The file. Polygons are in longitude and latitude, or in the plane of a graph with planar coordinates; the name of each is its
        property name, region, zone or id. A node of the table without a region has an empty cell.
    graph : Graph
        The graph whose nodes the regions hold.

    Returns
    -------
    Regions
        Names and members.
    """
    path, graph = existing_file(path, "the file of regions"), as_graph(graph)
    check_region_file(path)
    if path.suffix.lower() in POLYGON_ENDINGS:
        return _polygons_of(path, graph)
    content = path.read_bytes().removeprefix(BYTE_ORDER_MARK)
    try:
        return _table_of(path, content.decode("utf-8"), graph)
    except UnicodeDecodeError:
        msg = f"{path} is not in UTF-8, so its names cannot be told apart; save it as UTF-8"
        raise InputError(msg) from None
    except csv.Error as error:
        msg = f"{path} is no table of the columns node and region ({error}); mend it"
        raise InputError(msg) from None


def check_region_file(path: Path) -> None:
    """Raise an error if the name of a file does not say that it holds regions."""
    if path.suffix.lower() not in POLYGON_ENDINGS + TABLE_ENDINGS:
        msg = f"{path} must end in .geojson (polygons) or .csv (columns node and region); rename it"
        raise InputError(msg)


# ---- a table ---------------------------------------------------------------------------------------------------------


def _table_of(path: Path, text: str, graph: Graph) -> Regions:
    lines = io.StringIO(text, newline="")
    rows = list(csv.reader(lines, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True))
    head = [name.strip().lower() for name in rows[0]] if rows else []
    if "node" not in head or "region" not in head:
        msg = f"{path} needs the columns node and region in its first line; it has {', '.join(head) or 'none'}"
        raise InputError(msg)
    node, region = head.index("node"), head.index("region")
    position = {str(label): i for i, label in enumerate(node_names(graph))}
    found: dict[str, list[int]] = {}
    for line, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        if len(row) != len(head) or row[node] not in position:
            fault = f"{len(row)} cells, not {len(head)}" if len(row) != len(head) else "a label that is no node of the graph"
            msg = f"line {line} of {path} has {fault}; mend it"
            raise InputError(msg)
        if row[region].strip():
            found.setdefault(row[region].strip(), []).append(position[row[node]])
    repeated = [name for name, nodes in found.items() if len(set(nodes)) != len(nodes)]
    if repeated:
        msg = f"{path} has a node twice in the region {repeated[0]}; a node counts once"
        raise InputError(msg)
    return Regions.of_nodes(graph, {name: np.array(nodes) for name, nodes in found.items()})


# ---- GeoJSON ---------------------------------------------------------------------------------------------------------


def _polygons_of(path: Path, graph: Graph) -> Regions:
    content = geojson_of(path)
    shapes = [_shape_of(path, k, properties, parts) for k, (properties, parts) in enumerate(features_of(content, path))]
    named = {name for name, _ in shapes if name is not None}
    for k, (name, parts) in enumerate(shapes):
        if name is None and str(k + 1) in named:
            msg = f"{path} has a region named {k + 1} and no name for feature {k + 1}; give each a property {', '.join(NAME_PROPERTIES[:-1])} or {NAME_PROPERTIES[-1]}"
            raise InputError(msg)
        shapes[k] = (str(k + 1) if name is None else name, parts)
    crs = crs_of(content)
    if crs and graph.crs == "lonlat" and not crs.endswith(LONLAT):
        msg = f"{path} is in the coordinates {crs}, and the graph in longitude and latitude; convert it to EPSG:4326"
        raise InputError(msg)
    return polygon_regions(graph, shapes)


def _shape_of(
    path: Path, k: int, properties: dict[str, Any], parts: list[list[np.ndarray]] | None
) -> tuple[str | None, list[list[np.ndarray]]]:
    """Return the name of one feature, if it has one, and its parts."""
    rings = [ring for part in parts or [] for ring in part]
    if not rings or any(len(ring) < 3 or ring.shape[1] != 2 or not np.isfinite(ring).all() for ring in rings):
        msg = f"{path} is no GeoJSON of polygons: feature {k + 1} is none; write a FeatureCollection of Polygon and MultiPolygon, with a property name"
        raise InputError(msg)
    name = next((str(properties[one]) for one in NAME_PROPERTIES if properties.get(one) is not None), None)
    return name, parts or []
