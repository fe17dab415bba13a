"""Longitude and latitude in a local plane, in metres, and distances on the globe: the only projection and the only earth radius of the package.

The projection is equirectangular, x = R cos(mean latitude) (lon - middle) and y = R (lat - mean latitude), on a sphere of the mean radius R.
Longitudes are counted the short way round from the middle, so that streets on both sides of the antimeridian stay together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

EARTH_RADIUS = 6_371_008.8  # metres, mean
METRES_PER_DEGREE = float(np.radians(EARTH_RADIUS))  # of latitude, and of longitude at the equator
_LEAST_COSINE = 1e-6  # at a pole every longitude is one place; a plane there keeps a width, so that it can be undone


class LocalPlane(NamedTuple):
    """A plane in metres around a place, which is its origin.

    Examples
    --------
    >>> plane = LocalPlane.around(np.array([[179.9, -17.0], [-179.9, -17.0]]))
    >>> plane.metres(np.array([179.9, -179.9]), np.array([-17.0, -17.0])).round()
    array([[-10634.,      0.],
           [ 10634.,      0.]])
    """

    longitude: float
    latitude: float

    @classmethod
    def around(cls, coords: np.ndarray) -> LocalPlane:
        """Return the plane at the mean latitude of (n, 2) longitudes and latitudes, and at the middle of their longitudes."""
        if not len(coords):
            return cls(0.0, 0.0)
        lon = coords[:, 0]
        mean = np.degrees(np.angle(np.exp(1j * np.radians(lon)).mean()))  # of directions: 179 and -179 are close
        eastward = (lon - mean + 180) % 360
        return cls(float(mean - 180 + (eastward.min() + eastward.max()) / 2), float(coords[:, 1].mean()))

    @property
    def shrinkage(self) -> float:
        """Length of a degree of longitude over that of a degree of latitude."""
        return max(float(np.cos(np.radians(self.latitude))), _LEAST_COSINE)

    @property
    def turn(self) -> float:
        """Metres around the globe at this latitude."""
        return 360 * METRES_PER_DEGREE * self.shrinkage

    def metres(self, lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
        """Return places (n, 2) in the plane."""
        places = np.empty((len(lon), 2))
        np.multiply((lon - self.longitude + 180) % 360 - 180, METRES_PER_DEGREE * self.shrinkage, out=places[:, 0])
        np.multiply(lat - self.latitude, METRES_PER_DEGREE, out=places[:, 1])
        return places

    def degrees(self, places: np.ndarray) -> np.ndarray:
        """Return longitudes and latitudes (n, 2) of places in the plane; longitudes do not jump at 180 degrees."""
        return places / [METRES_PER_DEGREE * self.shrinkage, METRES_PER_DEGREE] + [self.longitude, self.latitude]


def planar_coords(coords: np.ndarray, crs: str | None) -> np.ndarray:
    """Return coordinates in a plane: as they are, or metres in the local plane of longitudes and latitudes (`crs` is "lonlat").

    A third coordinate stays as it is.
    """
    if crs != "lonlat":
        return coords
    return np.hstack([LocalPlane.around(coords).metres(coords[:, 0], coords[:, 1]), coords[:, 2:]])


def great_circle(places: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the distances in metres between longitudes and latitudes, the first two columns, on the sphere, row by row.

    Examples
    --------
    >>> great_circle(np.array([[179.5, 0.0]]), np.array([[-179.5, 0.0]])).round()
    array([111195.])
    """
    lon, lat = np.radians(places[:, 0]), np.radians(places[:, 1])
    other_lon, other_lat = np.radians(others[:, 0]), np.radians(others[:, 1])
    chord = np.sin((lat - other_lat) / 2) ** 2 + np.cos(lat) * np.cos(other_lat) * np.sin((lon - other_lon) / 2) ** 2
    return 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(chord, 1.0)))  # the haversine formula: accurate for short distances


def middle_of(coords: np.ndarray) -> np.ndarray:
    """Return the longitude and latitude, shape (1, 2), of the mean of places on the sphere."""
    lon, lat = np.radians(coords[:, 0]), np.radians(coords[:, 1])
    x, y, z = (np.cos(lat) * np.cos(lon)).mean(), (np.cos(lat) * np.sin(lon)).mean(), np.sin(lat).mean()
    return np.degrees([[np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))]])
