"""Nodes and edges whose attributes are text, collected one by one into an edge table. GML and GraphML use it."""

from __future__ import annotations

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
    EdgeTable,
    Streets,
    affinities,
    checked_value,
    column_of,
    is_integer,
    text_labels,
)


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

    def table(self, labels: np.ndarray | None, crs: str | None) -> EdgeTable:
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
        coords = self._coords()
        return EdgeTable(pairs, n, weights, coords, crs if coords is not None else None, labels)

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

    def _coords(self) -> np.ndarray | None:
        for axes in PLACES:
            if self.places and all(axis in place for place in self.places for axis in axes):
                try:
                    coords = np.array([[float(place[axis]) for axis in axes] for place in self.places])
                except ValueError:
                    coords = np.full((1, 1), np.nan)
                if not np.isfinite(coords).all():
                    msg = f"{self.path} has nodes whose {' and '.join(axes)} are no finite numbers; correct them, or leave them out"
                    raise InputError(msg)
                return coords
        return None


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
