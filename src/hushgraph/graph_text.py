"""Nodes and edges with attributes that are text, as they come, to an edge table; and GML, which is read as a stream of them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph._errors import InputError
from hushgraph.adjacency import affinities
from hushgraph.checks import shown
from hushgraph.edge_table import (
    PLACES,
    EdgeTable,
    checked_value,
    column_of,
    is_integer,
    text_labels,
)
from hushgraph.text_files import numbered_lines


class Collected:
    """Nodes and edges as they come; edges may name nodes that come later."""

    def __init__(self, path: Path, weight, distance):
        self.path, self._weight, self._distance = path, weight, distance
        self.numbers: dict[Any, int] = {}
        self.order: list[int] = []
        self.names: list[Any] = []
        self.places: list[dict[str, str]] = []
        self.edges: list[tuple[int, int]] = []
        self.attributes: list[dict[str, str]] = []
        self.lines: list[int] = []

    def add_node(self, key, name, attributes: dict[str, str], line: int):
        number = self.numbers.setdefault(key, len(self.numbers))
        self.order.append(number)
        self.names.append(name)
        self.places.append({k: attributes[k] for axes in PLACES for k in axes if k in attributes})

    def add_edge(self, ends: tuple, attributes: dict[str, str], line: int):
        i, j = (self.numbers.setdefault(end, len(self.numbers)) for end in ends)
        self.edges.append((i, j))
        self.attributes.append(attributes)
        self.lines.append(line)

    @property
    def wanted(self) -> Any:
        """The edge attribute that may be the value."""
        asked = self._distance if self._distance is not None else self._weight
        return "weight" if asked is None else asked

    def table(self, labels, crs) -> EdgeTable:
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
        seen = list(dict.fromkeys(name for attributes in self.attributes for name in attributes))
        value, is_distance = column_of(seen, self._weight, self._distance, self.path)
        values = None if value is None else self._values(value, is_distance, pairs)
        weights = affinities(values, value, pairs, is_distance=is_distance)
        coords = self._coords()
        return EdgeTable(pairs, n, weights, coords, crs if coords is not None else None, labels)

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
    """Labels of ids: integers if all are; 0 to n - 1 in order are numbers, no labels."""
    if kind == "text":
        return text_labels(ids, path)
    if not all(map(is_integer, ids)):
        if kind in ("int", "none"):
            msg = f"{path} says its node ids are integers, but not all are; it was edited"
            raise InputError(msg)
        return text_labels(ids, path)
    numbers = np.array(list(map(int, ids)), dtype=np.int64)
    return None if kind != "int" and np.array_equal(numbers, np.arange(len(ids))) else numbers


# ---- GML ------------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r'\s*(?:(?P<string>"[^"]*")|(?P<bracket>[\[\]])|(?P<word>[^\s\[\]"]+))')
_DEEPEST = 64
_LONGEST_TEXT = 1 << 23  # characters


def read_gml(path: Path, *, weight, distance) -> EdgeTable:
    """The edges of a GML file; labels are the nodes' label, or else their id."""
    found, inside = Collected(path, weight, distance), False
    labels: list[str | None] = []
    for kind, values, line in _gml_items(path):
        if kind == "graph":
            inside = True
        elif kind == "node":
            if not is_integer(values.get("id", "")):
                msg = f"the node that ends on line {line} of {path} has no integer id; the file is garbled"
                raise InputError(msg)
            labels.append(values.get("label"))
            found.add_node(int(values["id"]), int(values["id"]), values, line)
        elif not all(is_integer(values.get(end, "")) for end in ("source", "target")):
            msg = f"the edge that ends on line {line} of {path} has no integer source and target; the file is garbled"
            raise InputError(msg)
        else:
            value = {name: text for name, text in values.items() if name == found.wanted}
            found.add_edge((int(values["source"]), int(values["target"])), value, line)
    if not inside:
        msg = f"{path} must be GML, which begins with 'graph ['; it is empty or something else"
        raise InputError(msg)
    given = [label for label in labels if label is not None]
    if len(given) == len(labels) and any(label.startswith('"') for label in given):
        return found.table(text_labels([html.unescape(label.strip('"')) for label in given], path), None)
    numbers = given if len(given) == len(labels) and all(map(is_integer, given)) else list(map(str, found.names))
    return found.table(labels_of_ids(numbers, path), None)


def _gml_items(path: Path) -> Iterator[tuple[str, dict[str, str], int]]:
    """("graph", {}, line) where a graph begins, ("node" or "edge", attributes, line) where one ends; texts keep their quotation marks."""
    stack: list[tuple[str, dict[str, str]]] = []
    key, line = None, 0
    for token, line in _gml_tokens(path):
        if token == "[" and key is not None and len(stack) < _DEEPEST:
            stack.append((key, {}))
            if key == "graph" and len(stack) == 1:
                yield "graph", {}, line
            key = None
        elif token == "]" and key is None and stack:
            name, values = stack.pop()
            if name in ("node", "edge") and [outer for outer, _ in stack] == ["graph"]:
                yield name, values, line
        elif token in "[]" or (key is None and token.startswith('"')):
            msg = f"line {line} of {path} is no GML: {shown(token)} is out of place; the file is truncated or garbled"
            raise InputError(msg)
        elif key is None:
            key = token
        else:
            if stack:
                stack[-1][1].setdefault(key, token)
            key = None
    if stack or key is not None:
        msg = f"{path} ends within its graph after line {line}; it is truncated; copy or download it again"
        raise InputError(msg)


def _gml_tokens(path: Path) -> Iterator[tuple[str, int]]:
    held: list[str] = []  # lines of a text that goes on
    size, within = 0, False
    for number, line in numbered_lines(path):
        if not within and line.lstrip().startswith("#"):
            continue
        within ^= bool(line.count('"') % 2)
        held.append(line)
        size += len(line)
        if within and size < _LONGEST_TEXT:
            continue
        if within:
            break
        for match in _TOKEN.finditer("".join(held)):
            yield match[match.lastgroup or 0], number
        held, size = [], 0
    if within:
        msg = f"{path} ends within quotation marks, or has a text of many megabytes; it is truncated or garbled"
        raise InputError(msg)
