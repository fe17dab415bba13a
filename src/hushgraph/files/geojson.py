"""Zones in GeoJSON: the outlines of a graph as a FeatureCollection."""

from __future__ import annotations

import json
from typing import BinaryIO

from hushgraph._errors import InputError
from hushgraph.graphs import CRS_MEMBER, EdgeTable, label_kind


def write_geojson(file: BinaryIO, table: EdgeTable) -> None:
    """Write each zone as a MultiPolygon with its label, if it has one, as the id of the feature, and its name if it has one."""
    if table.outlines is None:
        msg = "GeoJSON keeps the outlines of zones, and this graph has none; write it as .npz or .graphml"
        raise InputError(msg)
    label_kind(table.labels, "GeoJSON")
    ids: list[dict] = [{}] * table.n if table.labels is None else [{"id": label} for label in table.labels.tolist()]
    texts = [""] * table.n if table.names is None else list(map(table.names.of_node, range(table.n)))
    features = [
        {
            "type": "Feature",
            **zone_id,
            "properties": {"name": text} if text else {},
            "geometry": {"type": "MultiPolygon", "coordinates": parts},
        }
        for zone_id, text, parts in zip(ids, texts, table.outlines.polygons(), strict=True)
    ]
    plane = {} if table.crs == "lonlat" else {CRS_MEMBER: "planar"}
    file.write(json.dumps({"type": "FeatureCollection", **plane, "features": features}, separators=(",", ":")).encode())
