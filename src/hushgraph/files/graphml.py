"""GraphML: read as a stream of nodes and edges, and written. This module reads and writes edge tables and knows no Graph.

Nodes, edges and their data are read; keys may have any type, since OSMnx writes numbers as text. Entities of its own are refused in
a file: they can unfold without bounds. Hyperedges are refused. What is plain in every byte is read megabytes at a time by
`graphml_fast`, all else by an XML parser, from the beginning: meaning and errors are always the parser's.
"""

from __future__ import annotations

import html
import re
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from hushgraph._errors import InputError
from hushgraph._validation import shown
from hushgraph.files.attributed import Collected, labels_of_ids, places_of_nodes, with_curves
from hushgraph.files.edge_rows import integers_of
from hushgraph.files.formats import ColumnChoice
from hushgraph.files.graphml_fast import NOT_PLAIN, NOT_WANTED, EdgeTexts, Keys, PlainRows, plain_rows
from hushgraph.files.text import CUT_SHORT, large_blocks, pieces
from hushgraph.graphs import (
    COORDS_HINT,
    LABELS_HINT,
    PLACES,
    STREET_ATTRIBUTES,
    WEIGHT_HINT,
    CodedTexts,
    EdgeTable,
    NodeNames,
    Origin,
    Streets,
    affinities,
    attribution_of,
    check_all_given,
    checked_value,
    column_of,
    label_kind,
    labels_of,
    stated_crs,
)

_LONGEST = 1 << 26  # bytes without the end of an element
_LARGE = 1 << 12  # bytes; below that the XML parser is as fast
_GEOMETRY = "geometry"  # attribute of edges in files of OSMnx: a LINESTRING, if the street bends
_NAMES = "name", "id"  # data of nodes that are their names, in files of igraph
_STREET_NAMES = ("name",)  # which are read without covariates, too: maps show them
_AXES = tuple(dict.fromkeys(axis for axes in PLACES for axis in axes))


# ---- element by element ---------------------------------------------------------------------------------------------


class _RefusedError(Exception):
    pass


class _GraphML:
    """Handlers of the XML parser."""

    def __init__(self, path: Path, weight: ColumnChoice, distance: ColumnChoice, covariates: bool = False) -> None:
        self.found, self.path = Collected(path, weight, distance), path
        self.wanted = (
            self.found.wanted,
            _GEOMETRY,
            *(STREET_ATTRIBUTES if covariates else _STREET_NAMES),
        )  # attributes of edges; the first may be anything
        self.directed = True
        self.keys: dict[str, tuple[str, str]] = {}
        self.defaults: dict[tuple[str, str], str] = {}
        self.graph: dict[str, str] = {}
        self.names: list[str | None] = []  # of nodes, where igraph wrote the file and their ids are its own numbers
        self.open: list[tuple[str, dict[str, str], dict[str, str]]] = []  # (element, its attributes, its data)
        self.key: tuple[str, str] | None = None
        self.text: list[str] | None = None
        self.root: str | None = None
        self.encoding: str | None = None
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler, self.parser.EndElementHandler = self.start, self.end
        self.parser.CharacterDataHandler, self.parser.EntityDeclHandler = self.characters, self.entity
        self.parser.XmlDeclHandler = self.declaration

    def entity(self, *_: object) -> None:
        msg = f"{self.path} declares entities of its own, which can unfold without bounds; GraphML needs none"
        raise _RefusedError(msg)

    def declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        self.encoding = encoding

    def start(self, element: str, attributes: dict[str, str]) -> None:
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

    def characters(self, text: str) -> None:
        if self.text is not None:
            self.text.append(text)

    def end(self, element: str) -> None:
        element, line = element.rsplit(" ", 1)[-1], self.parser.CurrentLineNumber
        text = "".join(self.text or []).strip()
        if element == "data" and self.key and self.open:
            kind, _, data = self.open[-1]
            if kind != "edge" or self.key[1] in self.wanted:
                data[self.key[1]] = text
        elif element == "default" and self.key:
            self.defaults[self.key] = text
        elif element in ("graph", "node", "edge") and self.open:
            kind, attributes, data = self.open.pop()
            self.finish(kind, attributes, data, line)
        self.text = None

    def default(self, kind: str, name: str) -> str | None:
        """Return the default of an attribute for elements of a kind, None if there is no default."""
        return next((text for (whose, key), text in self.defaults.items() if whose in (kind, "all") and key == name), None)

    def finish(self, kind: str, attributes: dict[str, str], data: dict[str, str], line: int) -> None:
        wanted = {"node": ("id",), "edge": ("source", "target"), "graph": ()}[kind]
        missing = [name for name in wanted if name not in attributes]
        if missing:
            msg = f"the {kind} on line {line} of {self.path} has no {missing[0]}; the file is garbled"
            raise _RefusedError(msg)
        for (whose, name), text in self.defaults.items():
            if whose in (kind, "all") and (kind != "edge" or name in self.wanted):
                data.setdefault(name, text)
        if kind == "graph":
            self.graph |= data
            self.directed = attributes.get("edgedefault") != "undirected"
        elif kind == "node":
            self.found.add_node(attributes["id"], attributes["id"], data, line)
            self.names.append(next((data[name] for name in _NAMES if name in data), None))
        else:
            self.found.add_edge((attributes["source"], attributes["target"]), data, line)


def read_graphml(
    path: Path, *, weight: ColumnChoice, distance: ColumnChoice, covariates: bool = False, crs: str | None = None
) -> EdgeTable:
    """Return the edges of a GraphML file; its graph attribute "crs", which OSMnx writes, says what the coordinates are.

    Names of streets are read, and with `covariates` all attributes that OSMnx gives to streets. `crs` is that of `read_graph`.
    """
    chosen: Any = {"weight": weight, "distance": distance, "crs": crs}
    table = read_plain(path, covariates=covariates, **chosen) if path.stat().st_size >= _LARGE else None
    return table or read_xml(path, covariates=covariates, **chosen)


def read_xml(
    path: Path, *, weight: ColumnChoice, distance: ColumnChoice, covariates: bool = False, crs: str | None = None
) -> EdgeTable:
    """Return the edges, read element by element: for files that are not plain in every byte, and to find faults."""
    reader, total, fault = _GraphML(path, weight, distance, covariates), 0, ""
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
    except InputError:
        raise
    except (*CUT_SHORT, LookupError, ValueError):  # no such encoding, or one with several bytes for a character
        fault = f"{path} cannot be read after line {reader.parser.CurrentLineNumber}: it is truncated, not text, or not gzip"
    if not fault and reader.root != "graphml":
        fault = f"{path} must be GraphML; its outermost element is {shown(reader.root)}"
    if fault:
        raise InputError(fault)
    names = _names_from_igraph(reader) or reader.found.names
    labels = labels_of_ids(names, path, reader.graph.get(LABELS_HINT))
    file_crs = reader.graph.get("crs")
    table = reader.found.table(labels, file_crs=file_crs, asked_crs=crs)
    lines = (attributes.get(_GEOMETRY) for attributes in reader.found.attributes)
    table = with_curves(table, lines, file_crs=file_crs, asked_crs=crs, path=path)
    return _with_streets(table, reader.found.streets(reader.directed), reader, covariates)


def _names_from_igraph(reader: _GraphML) -> list[str] | None:
    """Return the names of nodes in a file of igraph, which numbers its nodes n0, n1, ... and writes their names as data; None for other files."""
    numbered = all(name == f"n{k}" for k, name in enumerate(reader.found.names))
    names = [name for name in reader.names if name is not None]
    if numbered and not names and reader.graph.get(LABELS_HINT) == "none":
        return list(map(str, range(len(reader.names))))
    return names if numbered and len(set(names)) == len(reader.names) else None


# ---- megabytes at a time --------------------------------------------------------------------------------------------


class _NotPlainError(Exception):
    pass


def read_plain(
    path: Path, *, weight: ColumnChoice, distance: ColumnChoice, covariates: bool = False, crs: str | None = None
) -> EdgeTable | None:
    """Return the edges of a file that is plain in every byte; None for other files and files with a fault."""
    try:
        blocks = large_blocks(path)
        first = next(blocks, b"")
        start = min((place for place in map(first.find, (b"<node", b"<edge")) if place >= 0), default=0)
        reader = _around(first[:start], b"</graph></graphml>", _GraphML(path, weight, distance))
        names = {name for _, name in reader.keys.values()}
        named = any(whose != "edge" and name in _NAMES for whose, name in reader.keys.values())
        if named and first[start:].startswith(b'<node id="n0"'):
            return None  # of igraph: labels may be data
        axes = [axis for axis in _AXES if axis in names]
        wanted = (*(STREET_ATTRIBUTES if covariates else _STREET_NAMES), _GEOMETRY)
        wanted = wanted if covariates else tuple(name for name in wanted if name in names)
        texts = EdgeTexts(_keys_of(reader, wanted)) if wanted else None
        rows = plain_rows(chain([first[start:]], blocks), _roles(reader, axes), len(axes), texts)
        if rows is None:
            return None
        whole = _around(first[:start], rows.tail, _GraphML(path, weight, distance))
        if (whole.keys, whole.defaults) != (reader.keys, reader.defaults):
            return None
        table = _plain_table(rows, whole, weight, distance)
        file_crs, coords_of = whole.graph.get("crs"), partial(_plain_coords, rows, axes, whole)
        coords, coords_crs = places_of_nodes(coords_of, file_crs=file_crs, asked_crs=crs, path=path)
        table = table._replace(coords=coords, crs=coords_crs)
        columns = {} if texts is None else _plain_texts(texts, whole)
        if (lines := columns.pop(_GEOMETRY, None)) is not None:
            line_texts = (lines.texts[code] for code in lines.codes.tolist())
            table = with_curves(table, line_texts, file_crs=file_crs, asked_crs=crs, path=path)
        return _with_streets(table, Streets(columns, whole.directed) if columns else None, whole, covariates)
    except (_NotPlainError, *CUT_SHORT):
        return None


def _around(header: bytes, tail: bytes, reader: _GraphML) -> _GraphML:
    """Return a reader that has parsed the text before the first node and after the last edge; a comment that is cut off is an error."""
    if b"<!DOCTYPE" in header:  # which may give elements attributes that they do not show
        raise _NotPlainError
    try:
        reader.parser.Parse(header + tail, True)
    except (_RefusedError, expat.ExpatError, LookupError, ValueError):
        reader.root = None
    if reader.root != "graphml" or reader.found.order or reader.found.edges or (reader.encoding or "utf-8").lower() != "utf-8":
        raise _NotPlainError
    return reader


def _roles(reader: _GraphML, axes: list[str]) -> Keys:
    """Return the roles of data by key; a key that is not declared counts by its id, which is not plain if the id is a name with a role."""
    roles = {}
    for key, (_, name) in reader.keys.items():
        roles[key] = axes.index(name) if name in axes else NOT_WANTED, 0 if name == reader.found.wanted else NOT_WANTED
    for name in {*_AXES, *([reader.found.wanted] if isinstance(reader.found.wanted, str) else [])} - roles.keys():
        roles[name] = NOT_PLAIN if name in _AXES else NOT_WANTED, NOT_PLAIN if name == reader.found.wanted else NOT_WANTED
    return Keys.of({key: found for key, found in roles.items() if found != (NOT_WANTED, NOT_WANTED)})


def _keys_of(reader: _GraphML, attributes: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the keys of each attribute of edges; a key that is not declared counts by its id."""
    names = {name: name for name in attributes} | {key: name for key, (_, name) in reader.keys.items()}
    return {name: [key for key, found in names.items() if found == name] for name in attributes}


def _with_streets(table: EdgeTable, streets: Streets | None, reader: _GraphML, covariates: bool) -> EdgeTable:
    """Return the table with the names of streets, the source that the file states and, if `covariates` are wanted, all attributes."""
    file_crs = stated_crs(reader.graph.get("crs"))
    is_converted = file_crs not in (None, "lonlat") and table.crs == "lonlat"
    table = table._replace(attribution=attribution_of(reader.graph), origin=Origin(crs=file_crs) if is_converted else None)
    if streets is None or covariates:
        return table._replace(streets=streets)
    coded = streets.attributes.get("name")
    return table if coded is None else table._replace(names=NodeNames.of_streets(table.pairs, table.n, coded))


def _plain_texts(texts: EdgeTexts, reader: _GraphML) -> dict[str, CodedTexts]:
    """Return attributes of edges; where there is none, the text is the default or empty, which is unknown."""
    columns = {}
    for name, (codes, distinct) in texts.columns().items():
        decoded = [html.unescape(text.decode()) for text in distinct]
        columns[name] = CodedTexts(np.where(codes < 0, len(decoded), codes), [*decoded, reader.default("edge", name) or ""])
    return columns


def _plain_table(rows: PlainRows, reader: _GraphML, weight: ColumnChoice, distance: ColumnChoice) -> EdgeTable:
    n = len(rows.nodes)
    if n != len(rows.names) or np.any(np.bincount(rows.nodes, minlength=n) != 1):
        raise _NotPlainError  # a node twice, or an edge to none
    rank = np.empty(n, dtype=np.int64)
    rank[rows.nodes] = np.arange(n)
    labels = _plain_labels(rows, reader.graph.get(LABELS_HINT), reader.path)
    pairs = rank[rows.edges]
    weights = _plain_weights(rows, pairs, reader, weight, distance)
    return EdgeTable(pairs, n, weights, labels=labels)


def _plain_labels(rows: PlainRows, kind: str | None, path: Path) -> np.ndarray | None:
    """Return what `labels_of_ids` returns, for names in bytes."""
    numbers = None if kind == "text" else integers_of(rows.names)
    if numbers is not None:
        numbers = numbers[rows.nodes]
        return None if kind != "int" and np.array_equal(numbers, np.arange(len(numbers))) else numbers
    labels = None if kind in ("int", "none") else labels_of(rows.names, path)
    if labels is None:
        raise _NotPlainError
    return labels[rows.nodes]


def _plain_weights(
    rows: PlainRows, pairs: np.ndarray, reader: _GraphML, weight: ColumnChoice, distance: ColumnChoice
) -> np.ndarray | None:
    values, absent, wanted = rows.values, ~rows.has_value, reader.found.wanted
    default = reader.default("edge", wanted)
    if default is not None and absent.any():
        values[absent], absent = _number(default), np.zeros_like(absent)
    name, is_distance = column_of([] if absent.all() else [wanted], weight, distance, reader.path)
    if name is None:
        return None
    faulty = ~np.isfinite(values) | ((values == 0) & is_distance & (pairs[:, 0] != pairs[:, 1]))
    if np.any(faulty & ~absent):
        raise _NotPlainError
    check_all_given(int(absent.sum()), len(pairs), name)
    return affinities(values, name, pairs, is_distance=is_distance)


def _plain_coords(rows: PlainRows, axes: list[str], reader: _GraphML, chosen: tuple[str, ...]) -> np.ndarray | None:
    columns = []
    for column in (axes.index(axis) for axis in chosen if axis in axes):
        given, default = (rows.has_place >> column & 1).astype(bool), reader.default("node", axes[column])
        if given.all() or default is not None:
            columns.append(rows.places[:, column] if given.all() else np.where(given, rows.places[:, column], _number(default)))
    if len(columns) < len(chosen) or not len(rows.nodes):
        return None
    coords = np.stack(columns, axis=1)
    if not np.isfinite(coords).all():
        raise _NotPlainError
    return coords


def _number(text: str | None) -> float:
    """Return a default as a number; the XML parser reads files whose default is negative or no number, which are rare."""
    try:
        return checked_value(text or "", is_distance=False, is_loop=True, where="")
    except ValueError:
        raise _NotPlainError from None


# ---- writing --------------------------------------------------------------------------------------------------------


def write_graphml(file: BinaryIO, table: EdgeTable, *, for_osmnx: bool = False) -> None:
    """Write nodes with their coordinates and edges with their weights; ids are the labels.

    OSMnx wants values that are declared as text, and edges in both directions.
    """
    number, direction = ("string", "directed") if for_osmnx else ("double", "undirected")
    if for_osmnx:
        both, twice = (
            np.concatenate([table.pairs, table.pairs[:, ::-1]]),
            None if table.weights is None else np.tile(table.weights, 2),
        )
        table = table._replace(pairs=both, weights=twice)
    kind = label_kind(table.labels, "GraphML")
    names = list(map(str, range(table.n) if table.labels is None else table.labels.tolist()))
    if kind == "text" and any(map(_forbidden.search, names)):
        msg = "GraphML cannot keep labels with control characters; write .npz or .parquet, or relabel"
        raise InputError(msg)
    quoted = [quoteattr(name, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}) for name in names]
    axes = "" if table.coords is None else "xyz"[: table.coords.shape[1]]
    keys = [(axis, "node", axis, number) for axis in axes]
    keys += [("w", "edge", "weight", number)] * (table.weights is not None)
    keys += [("name", "edge", "name", "string")] * (table.names is not None)
    hints = {LABELS_HINT: kind}
    hints |= {"crs": "EPSG:4326"} if table.crs == "lonlat" else {}
    hints |= {WEIGHT_HINT: "weight"} if table.weights is not None else {}
    hints |= {COORDS_HINT: "x y z"} if len(axes) == 3 else {}
    hints |= {"attribution": escape(table.attribution)} if table.attribution else {}
    keys += [(f"g{k}", "graph", name, "string") for k, name in enumerate(hints)]
    file.write(b'<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
    for key, whose, name, form in keys:
        file.write(f'  <key id="{key}" for="{whose}" attr.name="{name}" attr.type="{form}"/>\n'.encode())
    said = "".join(f'<data key="g{k}">{text}</data>' for k, text in enumerate(hints.values()))
    file.write(f'  <graph edgedefault="{direction}">{said}\n'.encode())
    rows = [[]] * table.n if table.coords is None else table.coords.tolist()
    _write_nodes(file, quoted, axes, rows)
    _write_edges(file, quoted, table)
    file.write(b"  </graph>\n</graphml>\n")


def _write_nodes(file: BinaryIO, quoted: list[str], axes: str, rows: list) -> None:
    for start in range(0, len(quoted), 10_000):
        part = zip(quoted[start : start + 10_000], rows[start : start + 10_000], strict=True)
        lines = (f"    <node id={name}>{_data(axes, row)}</node>\n" for name, row in part)
        file.write("".join(lines).encode())


def _write_edges(file: BinaryIO, quoted: list[str], table: EdgeTable) -> None:
    for start in range(0, len(table.pairs), 10_000):
        pairs = table.pairs[start : start + 10_000].tolist()
        values = [[]] * len(pairs) if table.weights is None else table.weights[start : start + 10_000, None].tolist()
        edges = zip(pairs, values, _name_data(table, table.pairs[start : start + 10_000]), strict=True)
        lines = (f"    <edge source={quoted[i]} target={quoted[j]}>{_data('w', row)}{name}</edge>\n" for (i, j), row, name in edges)
        file.write("".join(lines).encode())


def _name_data(table: EdgeTable, pairs: np.ndarray) -> list[str]:
    """Return the name of the street of each edge, the one that both of its ends have, as GraphML data."""
    if table.names is None:
        return [""] * len(pairs)
    texts = [*(f'<data key="name">{escape(_forbidden.sub(" ", text))}</data>' for text in table.names.texts), ""]
    return [texts[code] for code in table.names.of_edges(pairs).tolist()]


_forbidden = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _data(keys: str, values: list[float]) -> str:
    return "".join(f'<data key="{key}">{value!r}</data>' for key, value in zip(keys, values, strict=False))
