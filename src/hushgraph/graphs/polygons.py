"""Polygons with names from GeoDataFrames, GeoJSON, and files that geopandas reads."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hushgraph._errors import InputError, InputTypeError, NoFileError
from hushgraph._extras import extra
from hushgraph._validation import columns_in_words, shown
from hushgraph.graphs.labels import is_missing

LONLAT = ("CRS84", "4326")  # how a GeoJSON file may say that it is in longitude and latitude, which is the rule
CRS_MEMBER = "hushgraph_crs"  # "planar" in the GeoJSON that write_graph writes for zones in a plane
GEOJSON_ENDINGS = (".geojson", ".json", ".geojson.gz", ".json.gz")
SHAPE_ENDINGS = (".gpkg", ".shp")
_FORMS = "a GeoDataFrame of polygons, GeoJSON as a dict, or the path of a .geojson, .gpkg or .shp file"
NAME_COLUMNS = ("name", "zone", "zone_name")  # in capitals, too
ID_COLUMNS = ("locationid", "location_id", "location_i", "zone_id", "id")  # in capitals, too; .shp files cut names after 10 letters
_LEAST_DISTINCT = 0.9  # of the values of such a column: in published files a zone of several islands is several rows
_MOST_BYTES = 1 << 31  # of GeoJSON, unpacked


class Polygons(NamedTuple):
    """Parts of each zone, each a list of rings with the outer one first; the ids of the zones, if any; "lonlat", or None for a plane."""

    shapes: list[list[list[np.ndarray]]]
    labels: list[Any] | None
    crs: str | None
    names: list[Any] | None = None  # for readers, of a column called like one of NAME_COLUMNS
    columns: tuple[Any, ...] = ()  # of the table
    label_column: str | None = None  # the one that holds the labels


def polygons_of(zones: Any, *, label: str | None, crs: str | None, where: str = "the GeoJSON") -> Polygons:
    """Return the polygons of zones; parameters as in `Graph.from_polygons`. `where` names a dict of GeoJSON in errors."""
    if isinstance(zones, Path):
        return _of_file(zones, label, crs)
    if hasattr(zones, "geometry") and hasattr(zones, "columns") and hasattr(zones, "crs"):
        return _of_frame(zones, label, crs)
    if isinstance(zones, Mapping):
        return _of_geojson(zones, where, label, crs)
    raise InputTypeError.about(argument="zones", expected=_FORMS, got=shown(zones))


def _of_file(path: Path, label: str | None, crs: str | None) -> Polygons:
    if not path.is_file():
        msg = f"the zones {path} do not exist or are a folder; check the path"
        raise NoFileError(msg)
    name = path.name.lower()
    if name.endswith(GEOJSON_ENDINGS):
        return _of_geojson(geojson_of(path), str(path), label, crs)
    if not name.endswith(SHAPE_ENDINGS):
        msg = f"{path} must end in .geojson, .gpkg or .shp; rename it, or pass a GeoDataFrame"
        raise InputError(msg)
    return _of_frame(frame_of(path), label, crs)


# ---- GeoDataFrames ---------------------------------------------------------------------------------------------------


def layers_of(path: Path) -> list[str]:
    """Return the names of the layers of a .gpkg or .shp file that have geometries."""
    geopandas = extra("geopandas", name="geopandas", purpose=f"reading {path.suffix} files")
    try:
        layers = geopandas.list_layers(path)
    except Exception:  # pyogrio and GDAL raise their own errors
        raise _damaged(path) from None
    return layers[layers["geometry_type"].notna()]["name"].tolist()


def frame_of(path: Path, layer: str | None = None) -> Any:
    """Return a layer of a .gpkg or .shp file as a GeoDataFrame; the only one if no name is given."""
    layers = layers_of(path)
    if layer is None and len(layers) != 1:
        msg = f"{path} must have one layer of lines or polygons, or the layers nodes and edges of OSMnx; {columns_in_words(layers)}; save one of them as a file"
        raise InputError(msg)
    geopandas = extra("geopandas", name="geopandas", purpose=f"reading {path.suffix} files")
    try:
        return geopandas.read_file(path, layer=layer or layers[0])
    except Exception:  # pyogrio and GDAL raise their own errors
        raise _damaged(path) from None


def _damaged(path: Path) -> InputError:
    return InputError(f"{path} cannot be read: it is damaged or no file of lines or polygons; copy or download it again")


def _of_frame(frame: Any, label: str | None, crs: str | None) -> Polygons:
    """Return the polygons of a GeoDataFrame in longitude and latitude, if it says its crs; otherwise as they are."""
    shapely = extra("shapely", name="geopandas", purpose="reading polygons")
    others = [column for column in frame.columns if column != frame.geometry.name]
    if label is not None and label not in others:
        raise _no_column(label, others)
    ids, id_column = _ids_of_frame(frame, others) if label is None else (frame[label].tolist(), label)
    names = list(range(len(frame))) if ids is None else ids
    if frame.crs is not None and crs != "planar" and len(frame):
        frame = frame.to_crs("EPSG:4326")
    shapes: list[list[list[np.ndarray]]] = []
    for name, geometry in zip(names, np.asarray(frame.geometry.array), strict=True):
        if geometry is None or shapely.is_empty(geometry):
            shapes.append([])
            continue
        if shapely.get_type_id(geometry) not in (3, 6):  # Polygon, MultiPolygon
            raise _no_polygon(name)
        shapes.append([_rings(part) for part in shapely.get_parts(geometry) if not shapely.is_empty(part)])
    is_lonlat = crs == "lonlat" or (frame.crs is not None and crs != "planar")
    column = _name_column(others)
    texts = None if column is None else frame[column].tolist()
    return Polygons(shapes, ids, "lonlat" if is_lonlat else None, texts, tuple(others), id_column)


def _ids_of_frame(frame: Any, columns: list[Any]) -> tuple[list[Any] | None, str | None]:
    """Return (ids of zones, None if there are none; their column, None if they are the index).

    They are the index, unless it may only number the rows and a column has a usual name of ids.
    """
    index = frame.index.tolist()
    is_unnamed = frame.index.name is None and all(isinstance(name, int) for name in index)
    column = _id_column({name: frame[name].tolist() for name in columns if is_unnamed and str(name).lower() in ID_COLUMNS})
    if column is not None:
        return frame[column].tolist(), column
    return (None if is_unnamed and index == list(range(len(index))) else index), None


def _id_column(columns: Mapping[Any, list[Any]]) -> Any:
    """Return the only column that may hold ids, by its name and its values; None if there is none or more than one."""
    usable = [name for name, values in columns.items() if str(name).lower() in ID_COLUMNS and _are_ids(values)]
    return usable[0] if len(usable) == 1 else None


def _are_ids(values: list[Any]) -> bool:
    """Return whether values are texts or numbers, none is missing, and nearly all differ."""
    return all(isinstance(value, str | int | float) and not is_missing(value) for value in values) and (
        len(set(values)) >= _LEAST_DISTINCT * len(values)
    )


def _name_column(columns: list[Any]) -> Any:
    """Return the column with the names of zones; None if no column is called so."""
    return next((column for name in NAME_COLUMNS for column in columns if str(column).lower() == name), None)


def _rings(part: Any) -> list[np.ndarray]:
    return [np.asarray(ring.coords, dtype=np.float64)[:, :2] for ring in (part.exterior, *part.interiors)]


def _no_column(label: str, columns: list[Any]) -> InputError:
    return InputError(f"the table of zones has no column {shown(label)} for their labels; {columns_in_words(columns, label)}")


def _no_polygon(name: Any) -> InputError:
    return InputError(f"zone {shown(name)} is no Polygon or MultiPolygon; leave it out, or turn it into one")


# ---- GeoJSON ---------------------------------------------------------------------------------------------------------


def geojson_of(path: Path) -> Mapping[str, Any]:
    """Return the object in a GeoJSON file, plain or .gz."""
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
            content = file.read(_MOST_BYTES)
        found = json.loads(content.decode("utf-8-sig"))
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile, RecursionError):
        found = None
    if not isinstance(found, Mapping):
        raise _no_geojson(path)
    return found


def features_of(content: Mapping[str, Any], where: object) -> list[tuple[dict[str, Any], list[list[np.ndarray]] | None]]:
    """Return the properties and the parts of each feature; parts are None for another geometry, and empty without one.

    The property "id" is that of the feature, if it has one.
    """
    try:
        features = content["features"] if content["type"] == "FeatureCollection" else [content]
        found = [(_properties(feature), _parts(feature["geometry"])) for feature in features]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError):
        found = None
    if found is None:
        raise _no_geojson(where)
    return found


def crs_of(content: Mapping[str, Any]) -> str:
    """Return the name of the crs of GeoJSON, which is empty by the standard; "planar" if `write_graph` wrote zones in a plane."""
    given = content.get("crs")
    properties = given.get("properties") if isinstance(given, Mapping) else None
    name = properties.get("name", "") if isinstance(properties, Mapping) else ""
    return str(content.get(CRS_MEMBER) or name)


def _no_geojson(where: object) -> InputError:
    return InputError(f"{where} is no GeoJSON of polygons; write a FeatureCollection of Polygon and MultiPolygon")


def _properties(feature: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(feature.get("properties") or {})
    return given if feature.get("id") is None else {**given, "id": feature["id"]}


def _parts(geometry: Mapping[str, Any] | None) -> list[list[np.ndarray]] | None:
    if geometry is None:
        return []
    if geometry["type"] not in ("Polygon", "MultiPolygon"):
        return None
    parts = [geometry["coordinates"]] if geometry["type"] == "Polygon" else geometry["coordinates"]
    return [[_ring(ring) for ring in part] for part in parts if part]


def _ring(corners: Any) -> np.ndarray:
    """Return the corners of a ring without their heights."""
    ring = np.array(corners, dtype=np.float64)
    if ring.ndim != 2:
        raise ValueError
    return ring[:, :2]


def _of_geojson(content: Mapping[str, Any], where: str, label: str | None, crs: str | None) -> Polygons:
    features, given = features_of(content, where), crs_of(content)
    is_lonlat = crs == "lonlat" or (crs is None and given != "planar")
    if is_lonlat and given and not given.endswith(LONLAT):
        msg = (
            f"{where} is in the coordinates {shown(given)}, not in longitude and latitude; convert it to EPSG:4326, or say crs='planar' "
            "(--graph-crs planar) to take it as a plane"
        )
        raise InputError(msg)
    columns = list(dict.fromkeys(name for properties, _ in features for name in properties))
    table = {column: [properties.get(column) for properties, _ in features] for column in columns}
    if label is not None and label not in table:
        raise _no_column(label, columns)
    id_column = _id_column_of_features(table) if label is None else label
    labels = None if id_column is None else table[id_column]
    shapes = []
    for k, (_, parts) in enumerate(features):
        if parts is None:
            raise _no_polygon(k if labels is None else labels[k])
        shapes.append(parts)
    column = _name_column(columns)
    texts = None if column is None else table[column]
    return Polygons(shapes, labels, "lonlat" if is_lonlat else None, texts, tuple(columns), id_column)


def _id_column_of_features(table: Mapping[str, list[Any]]) -> str | None:
    """Return the column of ids; None if there is none.

    It is "id", unless it only numbers the features, as packages do that write GeoJSON: from 1 on it gives way to another column with a
    usual name, and 0 to n - 1 are no ids.
    """
    ids = table.get("id", [])
    from_zero, from_one = (list(map(str, ids)) == [str(first + k) for k in range(len(ids))] for first in (0, 1))
    has_ids = not from_zero and any(name is not None for name in ids)
    if has_ids and not from_one:
        return "id"
    column = _id_column({name: values for name, values in table.items() if name != "id"})
    return "id" if column is None and has_ids else column
