"""Nodes and edges whose attributes are text, collected one by one into an edge table. GML and GraphML use it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph._errors import InputError
from hushgraph._validation import shown
from hushgraph.files.formats import ColumnChoice
from hushgraph.graphs import (
    PLACES,
    STREET_ATTRIBUTES,
    CodedTexts,
    Curves,
    EdgeTable,
    Streets,
    affinities,
    checked_value,
    column_of,
    is_integer,
    lonlat_lines,
    lonlat_of,
    stated_crs,
    text_labels,
)

_LINE = re.compile(r"LINESTRING( ?Z)? ?\(([^()]*)\)", re.ASCII)
_DEGREES_FIRST, _PLANE_FIRST = (("lon", "lat"), ("x", "y")), (("x", "y", "z"), ("x", "y"), ("lon", "lat"))


class Collected:
    """Nodes and edges in the order of the file; an edge may name nodes that follow later."""

    def __init__(self, path: Path, weight: ColumnChoice, distance: ColumnChoice) -> None:
        self.path, self._weight, self._distance = path, weight, distance
        self.numbers: dict[Any, int] = {}
        self.order: list[int] = []
        self.names: list[Any] = []
        self.places: list[dict[str, str]] = []
        self.edges: list[tuple[int, int]] = []
        self.attributes: list[dict[str, str]] = []
        self.lines: list[int] = []

    def add_node(self, key: Any, name: Any, attributes: dict[str, str], line: int) -> None:
        number = self.numbers.setdefault(key, len(self.numbers))
        self.order.append(number)
        self.names.append(name)
        self.places.append({k: attributes[k] for axes in PLACES for k in axes if k in attributes})

    def add_edge(self, ends: tuple, attributes: dict[str, str], line: int) -> None:
        i, j = (self.numbers.setdefault(end, len(self.numbers)) for end in ends)
        self.edges.append((i, j))
        self.attributes.append(attributes)
        self.lines.append(line)

    @property
    def wanted(self) -> Any:
        """Return the name of the edge attribute that may hold the weight or length."""
        asked = self._distance if self._distance is not None else self._weight
        return "weight" if asked is None else asked

    def table(self, labels: np.ndarray | None, *, file_crs: str | None = None, asked_crs: str | None = None) -> EdgeTable:
        """Return the edges; `file_crs` is the crs that the file states, and `asked_crs` what the caller says that coordinates are."""
        n = len(self.order)
        rank = np.full(len(self.numbers), -1)
        rank[self.order] = np.arange(n)
        if len(set(self.order)) != n:
            twice = next(self.names[k] for k, number in enumerate(self.order) if rank[number] != k)
            msg = f"{self.path} has node {shown(twice)} twice; node ids must be unique"
            raise InputError(msg)
        if n < len(self.numbers):
            unknown = next(key for key, number in self.numbers.items() if rank[number] < 0)
            msg = f"{self.path} has an edge to {shown(unknown)}, which is no node of it; it is truncated or was edited"
            raise InputError(msg)
        pairs = rank[np.array(self.edges, dtype=np.int64).reshape(-1, 2)]
        seen = [self.wanted] if any(name == self.wanted for attributes in self.attributes for name in attributes) else []
        value, is_distance = column_of(seen, self._weight, self._distance, self.path)
        values = None if value is None else self._values(value, is_distance, pairs)
        weights = affinities(values, value, pairs, is_distance=is_distance)
        coords, crs = places_of_nodes(self._coords, file_crs=file_crs, asked_crs=asked_crs, path=self.path)
        return EdgeTable(pairs, n, weights, coords, crs, labels)

    def streets(self, directed: bool) -> Streets | None:
        """Return the attributes of streets, as far as they were collected; None if no edge has any."""
        columns = {name: CodedTexts.of(attributes.get(name) for attributes in self.attributes) for name in STREET_ATTRIBUTES}
        columns = {name: column for name, column in columns.items() if column.texts}
        return Streets(columns, directed) if columns else None

    def _values(self, name: str, is_distance: bool, pairs: np.ndarray) -> list[float | None]:
        return [
            None if name not in attributes else
            checked_value(attributes[name], is_distance=is_distance, is_loop=i == j, where=f"the edge on line {line} of {self.path}")
            for attributes, (i, j), line in zip(self.attributes, pairs.tolist(), self.lines, strict=True)
        ]  # fmt: skip

    def _coords(self, axes: tuple[str, ...]) -> np.ndarray | None:
        if not self.places or not all(axis in place for place in self.places for axis in axes):
            return None
        try:
            coords = np.array([[float(place[axis]) for axis in axes] for place in self.places])
        except ValueError:
            coords = np.full((1, 1), np.nan)
        if not np.isfinite(coords).all():
            msg = f"{self.path} has nodes whose {' and '.join(axes)} are no finite numbers; correct them, or leave them out"
            raise InputError(msg)
        return coords


def places_of_nodes(
    coords_of: Callable[[tuple[str, ...]], np.ndarray | None], *, file_crs: str | None, asked_crs: str | None, path: Path
) -> tuple[np.ndarray | None, str | None]:
    """Return the coordinates of nodes with their crs: "lonlat", or None for a plane.

    Coordinates in another crs that the file states become longitude and latitude, which OSMnx also keeps as lon and lat of each node; with
    "planar" as `asked_crs` they stay.

    Parameters
    ----------
    coords_of : callable
        Returns the coordinates with the names of these axes, or None if not all nodes have them.
    file_crs, asked_crs : str or None
        The crs that the file states, as text, and what the caller says that coordinates are.
    path : Path
        The file, for errors.
    """
    crs = stated_crs(file_crs)
    is_projected = crs not in (None, "lonlat") and asked_crs != "planar"
    for axes in _DEGREES_FIRST if is_projected else _PLANE_FIRST if asked_crs == "planar" else PLACES:
        coords = coords_of(axes)
        if coords is None:
            continue
        if is_projected and axes != ("lon", "lat"):
            coords = lonlat_of(coords, str(crs), path)
        return coords, "lonlat" if crs == "lonlat" or is_projected else None
    return None, None


def with_curves(
    table: EdgeTable, line_texts: Iterable[str | None], *, file_crs: str | None, asked_crs: str | None, path: Path
) -> EdgeTable:
    """Return edges with their bends, from LINESTRINGs in well-known text, as OSMnx writes them; other texts are straight edges."""
    lines = [_points(text) if text else None for text in line_texts]
    if table.coords is None or all(line is None for line in lines):
        return table
    crs = stated_crs(file_crs)
    if crs not in (None, "lonlat") and asked_crs != "planar":
        lines = lonlat_lines(lines, str(crs), path)
    return table._replace(curves=Curves.of(table.pairs, lines, table.coords))


def _points(text: str) -> np.ndarray | None:
    """Return the points of a LINESTRING, None of another text: what is only drawn is no reason to refuse a file."""
    match = _LINE.fullmatch(text.strip())
    if match is None:
        return None
    width = 3 if match[1] else 2
    try:
        numbers = list(map(float, match[2].replace(",", " ").split()))
        points = np.array(numbers).reshape(match[2].count(",") + 1, width)
    except ValueError:
        return None
    return points[:, :2] if all(map(math.isfinite, numbers)) else None


def labels_of_ids(ids: list[str], path: Path, kind: str | None = None) -> np.ndarray | None:
    """Return labels for ids: integers if all ids are integers; None if they are 0 to n - 1 in order."""
    if kind == "text":
        return text_labels(ids, path)
    if not all(map(is_integer, ids)):
        if kind in ("int", "none"):
            msg = f"{path} says its node ids are integers, but not all are; it was edited"
            raise InputError(msg)
        return text_labels(ids, path)
    numbers = np.array(list(map(int, ids)), dtype=np.int64)
    return None if kind != "int" and np.array_equal(numbers, np.arange(len(ids))) else numbers
