"""Coordinates in the crs that a file states, as longitude and latitude."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushgraph._errors import InputError, MissingPackageError
from hushgraph._extras import optional
from hushgraph._validation import shown
from hushgraph.graphs.edge_table import is_lonlat

_AS_PLANE = "or take the coordinates as a plane: crs='planar' (--graph-crs planar)"


def stated_crs(text: str | None) -> str | None:
    """Return the crs that a file states, "lonlat" for longitude and latitude; None if it states none.

    >>> stated_crs("epsg:4326"), stated_crs("EPSG:32618"), stated_crs("None")
    ('lonlat', 'EPSG:32618', None)
    """
    if text is None or text.strip().lower() in ("", "none"):
        return None
    return "lonlat" if is_lonlat(text) else text


def lonlat_of(coords: np.ndarray, crs: str, where: object) -> np.ndarray:
    """Return places (n, 2) in the crs that a file states as longitude and latitude.

    >>> lonlat_of(np.array([[583960.0, 4507523.0]]), "EPSG:32618", "streets").round(3)
    array([[-74.006,  40.714]])
    """
    transformer = _transformer(crs, where)
    lon, lat = transformer.transform(coords[:, 0], coords[:, 1])
    places = np.stack([np.atleast_1d(lon), np.atleast_1d(lat)], axis=1)
    if not np.isfinite(places).all():
        msg = f"{where} has places that are outside of its crs {shown(crs)}; correct them, {_AS_PLANE}"
        raise InputError(msg)
    return places


def lonlat_lines(lines: list[np.ndarray | None], crs: str, where: object) -> list[np.ndarray | None]:
    """Return lines, (k, 2) points each, in the crs that a file states as longitude and latitude.

    Without pyproj there are none: places of nodes may need no conversion, and straight streets are better than no streets.
    """
    known = [line for line in lines if line is not None]
    if not known or optional("pyproj") is None:
        return [None] * len(lines)
    parts = iter(np.split(lonlat_of(np.concatenate(known), crs, where), np.cumsum([len(line) for line in known])[:-1]))
    return [None if line is None else next(parts) for line in lines]


def _transformer(crs: str, where: object) -> Any:
    pyproj = optional("pyproj")
    if pyproj is None:
        msg = f"{where} is in the crs {shown(crs)}; converting it to longitude and latitude needs pyproj: pip install 'hushgraph[events]'; {_AS_PLANE}"
        raise MissingPackageError(msg)
    try:
        return pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    except pyproj.exceptions.ProjError:
        pass
    msg = f"{where} states the crs {shown(crs)}, which pyproj does not know; correct it (EPSG:32618, say), {_AS_PLANE}"
    raise InputError(msg)
