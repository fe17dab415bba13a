"""GraphML and GML, read as a stream of nodes and edges; GraphML written too. They give and take edge tables, and know no Graph.

Of GraphML, nodes, edges and their data are read; keys may have any type, since OSMnx writes numbers as text. Entities of its own
are refused in a file: they can unfold without bounds. Hyperedges are refused.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from hushgraph.adjacency import affinities
from hushgraph.checks import shown
from hushgraph.edge_table import (
    PLACES,
    EdgeTable,
    checked_value,
    column_of,
    is_integer,
    is_lonlat,
    label_kind,
    text_labels,
)
from hushgraph.text_files import CUT_SHORT, numbered_lines, pieces

_LONGEST = 1 << 26  # bytes without the end of an element
_LABELS = "hushgraph_labels"  # data of the graph: none, int or text


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

    def wants(self, name: str) -> bool:
        """Whether that edge attribute may be the value."""
        asked = self._distance if self._distance is not None else self._weight
        return name == ("weight" if asked is None else asked)

    def table(self, labels, crs) -> EdgeTable:
        n = len(self.order)
        rank = np.full(len(self.numbers), -1)
        rank[self.order] = np.arange(n)
        if len(set(self.order)) != n:
            twice = next(self.names[k] for k, number in enumerate(self.order) if rank[number] != k)
            msg = f"{self.path} has node {shown(twice)} twice; node ids must be unique"
            raise ValueError(msg)
        if n < len(self.numbers):
            unknown = next(key for key, number in self.numbers.items() if rank[number] < 0)
            msg = f"{self.path} has an edge to {shown(unknown)}, which is no node of it; it is truncated or was edited"
            raise ValueError(msg)
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
                    raise ValueError(msg)
                return coords
        return None


def _named(ids: list[str], path: Path, kind: str | None = None) -> np.ndarray | None:
    """Labels of ids: integers if all are; 0 to n - 1 in order are numbers, no labels."""
    if kind == "text":
        return text_labels(ids, path)
    if not all(map(is_integer, ids)):
        if kind in ("int", "none"):
            msg = f"{path} says its node ids are integers, but not all are; it was edited"
            raise ValueError(msg)
        return text_labels(ids, path)
    numbers = np.array(list(map(int, ids)), dtype=np.int64)
    return None if kind != "int" and np.array_equal(numbers, np.arange(len(ids))) else numbers


# ---- GraphML --------------------------------------------------------------------------------------------------------


class _RefusedError(Exception):
    pass


class _GraphML:
    """Handlers of the XML parser."""

    def __init__(self, path: Path, weight, distance):
        self.found, self.path = Collected(path, weight, distance), path
        self.keys: dict[str, tuple[str, str]] = {}
        self.defaults: dict[tuple[str, str], str] = {}
        self.graph: dict[str, str] = {}
        self.open: list[tuple[str, dict[str, str], dict[str, str]]] = []  # (element, its attributes, its data)
        self.key: tuple[str, str] | None = None
        self.text: list[str] | None = None
        self.root: str | None = None
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler, self.parser.EndElementHandler = self.start, self.end
        self.parser.CharacterDataHandler, self.parser.EntityDeclHandler = self.characters, self.entity

    def entity(self, *_):
        msg = f"{self.path} declares entities of its own, which can unfold without bounds; GraphML needs none"
        raise _RefusedError(msg)

    def start(self, element: str, attributes: dict[str, str]):
        element = element.rsplit(" ", 1)[-1]
        self.root = self.root or element
        if element == "key" and "id" in attributes:
            self.key = attributes.get("for", "all"), attributes.get("attr.name", attributes["id"])
            self.keys[attributes["id"]] = self.key
        elif element in ("graph", "node", "edge"):
            self.open.append((element, attributes, {}))
        elif element == "hyperedge":
            msg = f"line {self.parser.CurrentLineNumber} of {self.path} has a hyperedge; an edge joins two nodes"
            raise _RefusedError(msg)
        self.text = [] if element in ("data", "default") else None
        if element == "data":
            self.key = self.keys.get(attributes.get("key", ""), ("all", attributes.get("key", "")))

    def characters(self, text: str):
        if self.text is not None:
            self.text.append(text)

    def end(self, element: str):
        element, line = element.rsplit(" ", 1)[-1], self.parser.CurrentLineNumber
        text = "".join(self.text or []).strip()
        if element == "data" and self.key and self.open:
            kind, _, data = self.open[-1]
            if kind != "edge" or self.found.wants(self.key[1]):
                data[self.key[1]] = text
        elif element == "default" and self.key:
            self.defaults[self.key] = text
        elif element in ("graph", "node", "edge") and self.open:
            kind, attributes, data = self.open.pop()
            self.finish(kind, attributes, data, line)
        self.text = None

    def finish(self, kind: str, attributes: dict[str, str], data: dict[str, str], line: int):
        wanted = {"node": ("id",), "edge": ("source", "target"), "graph": ()}[kind]
        missing = [name for name in wanted if name not in attributes]
        if missing:
            msg = f"the {kind} on line {line} of {self.path} has no {missing[0]}; the file is garbled"
            raise _RefusedError(msg)
        for (whose, name), text in self.defaults.items():
            if whose in (kind, "all") and (kind != "edge" or self.found.wants(name)):
                data.setdefault(name, text)
        if kind == "graph":
            self.graph |= data
        elif kind == "node":
            self.found.add_node(attributes["id"], attributes["id"], data, line)
        else:
            self.found.add_edge((attributes["source"], attributes["target"]), data, line)


def read_graphml(path: Path, *, weight, distance) -> EdgeTable:
    """The edges of a GraphML file; a graph attribute "crs" that is EPSG:4326 makes places longitude and latitude."""
    reader, total, fault = _GraphML(path, weight, distance), 0, ""
    try:
        for piece in pieces(path):
            total += len(piece)
            reader.parser.Parse(piece, False)
            if total - max(reader.parser.CurrentByteIndex, 0) > _LONGEST or sum(map(len, reader.text or [])) > _LONGEST:
                fault = f"{path} has an element of more than {_LONGEST >> 20} MB; check that it is the right file"
                break
        else:
            reader.parser.Parse(b"", True)
    except _RefusedError as error:
        fault = str(error)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        fault = f"line {error.lineno} of {path} is no XML ({reason}): it is empty, truncated or garbled; copy or download it again"
    except (*CUT_SHORT, LookupError):  # no such encoding
        fault = f"{path} cannot be read after line {reader.parser.CurrentLineNumber}: it is truncated, not text, or not gzip"
    if not fault and reader.root != "graphml":
        fault = f"{path} must be GraphML; its outermost element is {shown(reader.root)}"
    if fault:
        raise ValueError(fault)
    labels = _named(reader.found.names, path, reader.graph.get(_LABELS))
    return reader.found.table(labels, "lonlat" if is_lonlat(reader.graph.get("crs")) else None)


def write_graphml(file, table: EdgeTable):
    """Nodes with their places, edges with their weights; ids are the labels."""
    kind = label_kind(table.labels, "GraphML")
    names = list(map(str, range(table.n) if table.labels is None else table.labels.tolist()))
    if kind == "text" and any(map(_forbidden.search, names)):
        msg = "GraphML cannot keep labels with control characters; write .npz or .parquet, or relabel"
        raise ValueError(msg)
    quoted = [quoteattr(name, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}) for name in names]
    axes = "" if table.coords is None else "xyz"[: table.coords.shape[1]]
    keys = [(axis, "node", axis, "double") for axis in axes]
    keys += [("w", "edge", "weight", "double")] * (table.weights is not None)
    keys += [("crs", "graph", "crs", "string"), ("labels", "graph", _LABELS, "string")]
    file.write(b'<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
    for key, whose, name, form in keys:
        file.write(f'  <key id="{key}" for="{whose}" attr.name="{name}" attr.type="{form}"/>\n'.encode())
    crs = f'<data key="crs">{escape("EPSG:4326")}</data>' if table.crs == "lonlat" else ""
    file.write(f'  <graph edgedefault="undirected">{crs}<data key="labels">{kind}</data>\n'.encode())
    rows = [[]] * table.n if table.coords is None else table.coords.tolist()
    _write_nodes(file, quoted, axes, rows)
    _write_edges(file, quoted, table)
    file.write(b"  </graph>\n</graphml>\n")


def _write_nodes(file, quoted: list[str], axes: str, rows: list):
    for start in range(0, len(quoted), 10_000):
        part = zip(quoted[start : start + 10_000], rows[start : start + 10_000], strict=True)
        lines = (f"    <node id={name}>{_data(axes, row)}</node>\n" for name, row in part)
        file.write("".join(lines).encode())


def _write_edges(file, quoted: list[str], table: EdgeTable):
    for start in range(0, len(table.pairs), 10_000):
        pairs = table.pairs[start : start + 10_000].tolist()
        values = [[]] * len(pairs) if table.weights is None else table.weights[start : start + 10_000, None].tolist()
        edges = zip(pairs, values, strict=True)
        lines = (f"    <edge source={quoted[i]} target={quoted[j]}>{_data('w', row)}</edge>\n" for (i, j), row in edges)
        file.write("".join(lines).encode())


_forbidden = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _data(keys: str, values) -> str:
    return "".join(f'<data key="{key}">{value!r}</data>' for key, value in zip(keys, values, strict=False))


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
                raise ValueError(msg)
            labels.append(values.get("label"))
            found.add_node(int(values["id"]), int(values["id"]), values, line)
        elif not all(is_integer(values.get(end, "")) for end in ("source", "target")):
            msg = f"the edge that ends on line {line} of {path} has no integer source and target; the file is garbled"
            raise ValueError(msg)
        else:
            value = {name: text for name, text in values.items() if found.wants(name)}
            found.add_edge((int(values["source"]), int(values["target"])), value, line)
    if not inside:
        msg = f"{path} must be GML, which begins with 'graph ['; it is empty or something else"
        raise ValueError(msg)
    given = [label for label in labels if label is not None]
    if len(given) == len(labels) and any(label.startswith('"') for label in given):
        return found.table(text_labels([html.unescape(label.strip('"')) for label in given], path), None)
    numbers = given if len(given) == len(labels) and all(map(is_integer, given)) else list(map(str, found.names))
    return found.table(_named(numbers, path), None)


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
            raise ValueError(msg)
        elif key is None:
            key = token
        else:
            if stack:
                stack[-1][1].setdefault(key, token)
            key = None
    if stack or key is not None:
        msg = f"{path} ends within its graph after line {line}; it is truncated; copy or download it again"
        raise ValueError(msg)


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
        raise ValueError(msg)
