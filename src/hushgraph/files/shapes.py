"""Streets and zones in .geojson, .gpkg and .shp files: lines are edges, polygons are zones. The kind of geometry decides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hushgraph._errors import InputError
from hushgraph._extras import extra
from hushgraph._validation import columns_in_words, shown
from hushgraph.files.formats import LABEL_COLUMNS, ColumnChoice
from hushgraph.graphs import (
    LONLAT,
    TOLERANCE,
    EdgeTable,
    column_of,
    crs_of,
    frame_of,
    geojson_of,
    geopandas_edges,
    layers_of,
    zones_table,
)

_LINES, _POLYGONS = {"LineString", "MultiLineString"}, {"Polygon", "MultiPolygon"}
_OSMNX = ["nodes", "edges"]  # layers


def read_shapes(
    path: Path,
    kind: str,
    *,
    weight: ColumnChoice,
    distance: ColumnChoice,
    label: str | None,
    crs: str | None,
    tolerance: float | None,
) -> EdgeTable:
    """Return the edges of a file of lines, or of the zones in a file of polygons; parameters as in `read_graph`."""
    if kind != "geojson" and path.name.lower().endswith(".gz"):
        msg = f"{path} must be unpacked first: of shapes only .geojson is read as .gz"
        raise InputError(msg)
    content: Any = geojson_of(path) if kind == "geojson" else None
    nodes = None
    if kind == "geojson":
        types = _geojson_types(content)
    else:
        is_osmnx = set(_OSMNX) <= set(layers_of(path))
        content = frame_of(path, "edges" if is_osmnx else None)
        nodes = frame_of(path, "nodes") if is_osmnx else None
        types = set(content.geom_type.dropna().tolist())
    if types & _LINES and not types <= _LINES:
        msg = f"{path} must hold lines or polygons, not both; it holds {', '.join(sorted(types))}; save one kind as a file"
        raise InputError(msg)
    if types & _LINES:
        _check_left_out(path, "streets", label=label, tolerance=tolerance)
        lines = content if kind != "geojson" else _geojson_lines(content, path, crs)
        return _streets(path, lines, nodes, weight, distance, crs)
    if not types & _POLYGONS:
        msg = f"{path} must hold lines (streets) or polygons (zones); it holds {', '.join(sorted(types)) or 'no geometry'}"
        raise InputError(msg)
    _check_left_out(path, "zones", weight=weight or None, distance=distance)
    return zones_table(content, label=label, crs=crs, tolerance=TOLERANCE if tolerance is None else tolerance, where=str(path))


def _check_left_out(path: Path, what: str, **options: object) -> None:
    """Refuse options that are not for streets, or not for zones."""
    hint = "edges between zones are their common borders and weigh 1" if what == "zones" else "they are for zones"
    for name, value in options.items():
        if value is not None:
            raise InputError.about(argument=name, expected=f"left out for {what}", got=f"{shown(value)} for {path}", hint=hint)


def _geojson_types(content: Mapping[str, Any]) -> set[str]:
    """Return the kinds of geometries of GeoJSON; those of a damaged one are left to the reader of polygons, which says what is wrong."""
    features = content.get("features")
    features = features if isinstance(features, list) else [content]
    shapes = [feature.get("geometry") for feature in features if isinstance(feature, Mapping)]
    types = {str(shape.get("type")) for shape in shapes if isinstance(shape, Mapping)}
    return types if types & _LINES or (types and not types & _POLYGONS and len(shapes) == len(features)) else {"Polygon"}


def _geojson_lines(content: Mapping[str, Any], path: Path, crs: str | None) -> Any:
    """Return the lines of GeoJSON, which is in longitude and latitude unless it says something else."""
    geopandas = extra("geopandas", name="geopandas", purpose="reading lines")
    given = crs_of(content)
    stated = "EPSG:4326" if not given or given.endswith(LONLAT) else None if given == "planar" else given
    try:
        return geopandas.GeoDataFrame.from_features(content, crs=stated)
    except Exception:  # of shapely and pyproj, which raise their own errors
        pass
    msg = f"{path} is no GeoJSON of lines, or in coordinates that pyproj does not know ({shown(given)}); write a FeatureCollection of LineStrings"
    raise InputError(msg)


def _streets(path: Path, lines: Any, nodes: Any, weight: ColumnChoice, distance: ColumnChoice, crs: str | None) -> EdgeTable:
    """Return the edges of lines, in longitude and latitude if the file states a crs, unless a plane is asked for."""
    if nodes is not None:
        name = next((name for name in reversed(LABEL_COLUMNS) if name in nodes.columns), None)  # osmid first
        if name is None:
            msg = f"the layer nodes of {path} must have a column {' or '.join(LABEL_COLUMNS)}; {columns_in_words(list(nodes.columns))}"
            raise InputError(msg)
        nodes = nodes.set_index(name)
    else:
        empty = lines.geometry.isna() | lines.geometry.is_empty
        if empty.any():
            msg = (
                f"{int(empty.sum())} lines of {path} have no geometry (first: row {int(empty.to_numpy().argmax())}); leave them out"
            )
            raise InputError(msg)
        lines = lines.explode(index_parts=False, ignore_index=True)  # MultiLineStrings
    column, is_distance = column_of([str(name) for name in lines.columns], weight, distance, path)
    chosen = {"weight": None, "distance": column} if is_distance else {"weight": column or False, "distance": None}
    return geopandas_edges(lines, nodes=nodes, **chosen, tolerance=0.0, crs=crs)
