"""Covariates of the nodes of a street network, from the attributes that OpenStreetMap and OSMnx give to its streets.

Attributes are texts, as OSMnx writes them into files: "2", "25 mph", "True", "['2', '3']". Only their distinct values are parsed. What is
absent or cannot be parsed is unknown: it is left out of means and shares, and a node where nothing is known has NaN. Nothing here raises
an error because of a value.

A street is an edge of the source, with its parallels. OSMnx has a two-way street as two edges, one in each direction. Where f edges lead
one way and b the other, and they are not one-way streets, they are max(f, b) streets, and each edge counts max(f, b) / (f + b). Self-loops
are left out, as in the graph. Half of a street belongs to each of its ends, so lengths add up to the length of the network.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from hushgraph._geodesy import great_circle
from hushgraph._validation import LARGEST

STREET_ATTRIBUTES = ("highway", "length", "name", "oneway", "lanes", "maxspeed")  # of the edges of OSMnx
# Ranks of the values of "highway", from paths to motorways. A link has the rank of its street. Other values are unknown.
CLASSES = {
    **dict.fromkeys(("footway", "path", "steps", "cycleway", "bridleway", "track", "corridor", "pedestrian"), 0.0),
    **dict.fromkeys(("service", "living_street"), 1.0),
    **dict.fromkeys(("residential", "unclassified"), 2.0),
    "tertiary": 3.0, "secondary": 4.0, "primary": 5.0, "trunk": 6.0, "motorway": 7.0,
}  # fmt: skip
MAJOR = CLASSES["secondary"]  # the lowest rank of a major street
_MOST_LANES, _TOP_SPEED = 50.0, 500.0  # larger values are mistakes
_UNITS = {"": 1.0, "km/h": 1.0, "kmh": 1.0, "kph": 1.0, "mph": 1.609344, "knots": 1.852}  # in km/h
_NUMBER = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,20})?) ?([a-z/]*)", re.ASCII)
_ABSENT = {"", "nan", "None", "<NA>"}  # what Python and pandas make of a missing value
_KINDS = frozenset((str, bool, int, float, list, tuple, set))
_ONEWAY = {"true": 1.0, "yes": 1.0, "1": 1.0, "-1": 1.0, "false": 0.0, "no": 0.0, "0": 0.0}


class CodedTexts(NamedTuple):
    """The texts of one attribute of edges: `texts[codes[e]]` for edge e; -1 for an edge without it."""

    codes: np.ndarray
    texts: list[str]

    @classmethod
    def of(cls, values: Iterable[Any]) -> CodedTexts:
        """Return the texts of values: text, numbers, booleans, and lists of these; all others count as absent.

        Examples
        --------
        >>> coded = CodedTexts.of(["2", None, ["2", "3"], 2])
        >>> coded.codes.tolist(), coded.texts
        ([0, -1, 1, 0], ['2', "['2', '3']"])
        """
        numbers: dict[str, int] = {}
        texts = [value if type(value) is str else _text(value) for value in values]
        codes = [-1 if text is None else numbers.setdefault(text, len(numbers)) for text in texts]
        return cls(np.array(codes, dtype=np.int64), list(numbers))

    def parsed(self, parse: Callable[[str], float]) -> np.ndarray:
        """Return one number per edge, NaN where there is no text."""
        return np.array([*map(parse, self.texts), np.nan])[self.codes]


class Streets(NamedTuple):
    """The attributes of the edges of a source by name, in the order of its edges; whether its edges have a direction."""

    attributes: Mapping[str, CodedTexts]
    directed: bool


def street_covariates(
    pairs: np.ndarray, n: int, streets: Streets, coords: np.ndarray | None, crs: str | None
) -> dict[str, np.ndarray]:
    """Return the covariates of the nodes by name, those of which something is known; `Graph.covariates` describes them.

    Examples
    --------
    >>> texts = {"highway": ["primary", "service"], "lanes": ["['2', '4']", "1"], "length": [100.0, 60.0]}
    >>> streets = Streets({name: CodedTexts.of(values) for name, values in texts.items()}, directed=False)
    >>> found = street_covariates(np.array([[0, 1], [1, 2]]), 3, streets, None, None)
    >>> found["street_length"].tolist(), found["street_class"].tolist(), found["lanes_max"].tolist()
    ([50.0, 80.0, 30.0], [5.0, 5.0, 1.0], [4.0, 4.0, 1.0])
    """
    keep = pairs[:, 0] != pairs[:, 1]

    def column(attribute: str, parse: Callable[[str], float]) -> np.ndarray:
        texts = streets.attributes.get(attribute)
        return np.full(int(keep.sum()), np.nan) if texts is None else texts.parsed(parse)[keep]

    pairs, oneway, rank = pairs[keep], column("oneway", _oneway), column("highway", street_class)
    named, given = column("name", _is_named), column("length", _length)
    lengths = _lengths(pairs, given, coords, crs)
    ends = _Ends(pairs, n, _counts(pairs, n, oneway == 1) if streets.directed else np.ones(len(pairs)), lengths)
    is_major = np.where(np.isnan(rank), np.nan, rank >= MAJOR)
    covariates = {"street_length": ends.length_of(np.ones(len(pairs))), "street_class": ends.largest(rank)}
    if np.isfinite(rank).any():
        covariates |= {"major_length": ends.length_of(is_major == 1), "major_share": ends.mean(is_major)}
    if (named == 1).any():
        covariates["nameless_length"] = ends.length_of(named != 1)
    covariates["oneway_share"] = ends.mean(oneway)
    covariates |= {"lanes_mean": ends.mean(column("lanes", lambda text: _mean(_lanes(text))))}
    covariates |= {"lanes_max": ends.largest(column("lanes", lambda text: max(_lanes(text), default=np.nan)))}
    covariates |= {"speed_mean": ends.mean(column("maxspeed", lambda text: _mean(_speeds(text))))}
    covariates |= {"speed_max": ends.largest(column("maxspeed", lambda text: max(_speeds(text), default=np.nan)))}
    known = {name: values for name, values in covariates.items() if np.isfinite(values).any()}
    return known if np.isfinite(given).any() or set(known) != {"street_length"} else {}  # places alone are no attributes


# ---- streets at their ends ------------------------------------------------------------------------------------------


class _Ends(NamedTuple):
    """Streets without self-loops: how often each edge counts as a street, and its length, NaN if that is unknown."""

    pairs: np.ndarray
    n: int
    counts: np.ndarray
    lengths: np.ndarray

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of the values of the edges at each node."""
        return np.bincount(self.pairs.T.ravel(), weights=np.tile(values, 2), minlength=self.n)

    def length_of(self, is_counted: np.ndarray) -> np.ndarray:
        """Return half the length of some streets at each node; NaN at nodes with a street of unknown length."""
        unknown = self.sums(np.isnan(self.lengths).astype(np.float64)) > 0
        return np.where(unknown, np.nan, self.sums(self.counts * np.nan_to_num(self.lengths) * is_counted) / 2)

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of known values at each node, weighted by the lengths of streets; by their number if no length is known."""
        lengths = self.lengths if np.isfinite(self.lengths).any() else 1.0
        shares = np.nan_to_num(np.where(np.isnan(values), 0.0, self.counts * lengths))
        whole = self.sums(shares)
        return np.divide(self.sums(shares * np.nan_to_num(values)), whole, out=np.full(self.n, np.nan), where=whole > 0)

    def largest(self, values: np.ndarray) -> np.ndarray:
        """Return the largest known value at each node, NaN where none is known."""
        largest, known = np.full(self.n, -np.inf), ~np.isnan(values)
        for end in self.pairs.T:
            np.maximum.at(largest, end[known], values[known])
        return np.where(np.isfinite(largest), largest, np.nan)


def _counts(pairs: np.ndarray, n: int, is_oneway: np.ndarray) -> np.ndarray:
    """Return how often each directed edge counts as a street: the two edges of a two-way street count half each."""
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    _, street = np.unique(low * n + high, return_inverse=True)
    upward = np.bincount(street, weights=~is_oneway & (pairs[:, 0] == low))
    downward = np.bincount(street, weights=~is_oneway & (pairs[:, 0] != low))
    both = np.maximum(upward, downward) / np.maximum(upward + downward, 1)
    return np.where(is_oneway, 1.0, both[street])


def _lengths(pairs: np.ndarray, given: np.ndarray, coords: np.ndarray | None, crs: str | None) -> np.ndarray:
    """Return the lengths of edges: as given, in metres, or else between the ends, if these are in metres too or no length is given."""
    if coords is None or not (crs == "lonlat" or np.isnan(given).all()):
        return given
    return np.where(np.isnan(given), edge_lengths(pairs, coords, crs), given)


def edge_lengths(pairs: np.ndarray, coords: np.ndarray, crs: str | None) -> np.ndarray:
    """Return the straight distances between the ends of edges: in metres on the globe, or in the unit of planar coordinates."""
    first, second = coords[pairs[:, 0]], coords[pairs[:, 1]]
    return great_circle(first, second) if crs == "lonlat" else np.sqrt(((first - second) ** 2).sum(axis=1))


# ---- values of attributes -------------------------------------------------------------------------------------------


def _text(value: Any) -> str | None:
    """Return a value as OSMnx writes it into a file; None if it is absent or of a kind that OSMnx does not use."""
    return str(value) if type(value) in _KINDS or isinstance(value, str | np.number | np.bool_) else None


def _parts(text: str) -> list[str]:
    """Return the values in a text: of a list, "['2', '3']", or between semicolons or bars, "3;2" and "3|2"."""
    parts = (part.strip(" \t\r\n'\"[](){}") for part in re.split("[,;|]", text))
    return [part.lower() for part in parts if part not in _ABSENT]


def street_class(text: str) -> float:
    """Return the largest rank of the classes in a text, NaN if none is known.

    Examples
    --------
    >>> street_class("residential"), street_class("['service', 'primary_link']"), street_class("bus_stop")
    (2.0, 5.0, nan)
    """
    ranks = (CLASSES.get(part.removesuffix("_link")) for part in _parts(text))
    return max((rank for rank in ranks if rank is not None), default=np.nan)


def _numbers(text: str, units: Mapping[str, float], most: float) -> list[float]:
    """Return the numbers in a text, in the first of the units; those that are not above 0 and at most `most` are left out."""
    matches = (_NUMBER.fullmatch(part) for part in _parts(text))
    values = [float(match[1]) * units[match[2]] for match in matches if match and match[2] in units]
    return [value for value in values if 0 < value <= most]


def _lanes(text: str) -> list[float]:
    return _numbers(text, {"": 1.0}, _MOST_LANES)


def _speeds(text: str) -> list[float]:
    return _numbers(text, _UNITS, _TOP_SPEED)


def _mean(values: list[float]) -> float:
    """Return the mean, NaN of nothing; it does not depend on the order, which both directions of a street may have reversed."""
    return math.fsum(values) / len(values) if values else np.nan


def _oneway(text: str) -> float:
    """Return 1 if a street, or a part of it, is one-way, 0 if no part is, NaN if that is unknown."""
    values = [_ONEWAY.get(part, np.nan) for part in _parts(text)]
    return 1.0 if 1.0 in values else _mean(values)


def _length(text: str) -> float:
    try:
        length = np.nan if "_" in text else float(text)  # "1_000" is a number in Python only
    except ValueError:
        return np.nan
    return length if 0 <= length <= LARGEST else np.nan


def _is_named(text: str) -> float:
    return float(bool(_parts(text)))
