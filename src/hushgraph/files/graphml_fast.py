"""Nodes and edges of plain GraphML to numbers, megabytes at a time. Knows bytes and arrays only.

Plain is what networkx, OSMnx, igraph and hushgraph write: nodes with an id, edges with source and target, data of a key in them,
blanks between. All else (comments, other elements and attributes, values that are no numbers, what is no XML) is given up at once,
for a real parser to read or refuse: nothing is reported here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hushgraph.core import PADDING, Names, _loops

_LONGEST = 1 << 22  # bytes of one element; longer ones are not plain
NOT_WANTED, NOT_PLAIN = -1, -2  # roles of data, beside columns of places and 0 for the value of an edge
_AT_TAIL = 1  # where data of the graph follow, or its end


class Keys(NamedTuple):
    """Keys with a role, and the role of their data in a node and in an edge."""

    ids: np.ndarray  # their bytes, one after the other
    ends: np.ndarray
    in_node: np.ndarray
    in_edge: np.ndarray

    @classmethod
    def of(cls, roles: dict[str, tuple[int, int]]) -> Keys:
        ids = [key.encode() for key in roles]
        ends = np.cumsum(list(map(len, ids)), dtype=np.int64)
        return cls(
            np.frombuffer(b"".join(ids) + PADDING, np.uint8),
            ends,
            *np.array(list(roles.values()), np.int64).reshape(-1, 2).T.copy(),
        )


class PlainRows(NamedTuple):
    """Nodes and edges of a file; nodes and the ends of edges are numbers of names."""

    tail: bytes  # what follows the nodes and edges; whether that is right is for a real parser to say
    names: Names
    nodes: np.ndarray
    places: np.ndarray  # (n, columns), NaN for what is no number
    has_place: np.ndarray  # bit i: column i was given
    edges: np.ndarray
    values: np.ndarray
    has_value: np.ndarray


class EdgeTexts:
    """The texts of some attributes of edges, of blocks that are known to be plain: there "<" is always the start of a tag."""

    def __init__(self, keys: dict[str, list[str]]) -> None:
        self._keys = {name: [key.encode() for key in chosen] for name, chosen in keys.items()}
        self._names = {name: Names() for name in keys}
        self._codes: dict[str, list[np.ndarray]] = {name: [] for name in keys}

    def add(self, block: bytes) -> None:
        """Take the edges of a block, in which all elements are complete."""
        text = np.frombuffer(block + PADDING, dtype=np.uint8)
        tags = np.flatnonzero(text == ord("<"))
        kinds = text[tags + 1]
        is_edge, is_element = kinds == ord("e"), (kinds == ord("e")) | (kinds == ord("n"))
        edges = np.cumsum(is_edge) - 1
        of_edge = is_edge[np.maximum.accumulate(np.where(is_element, np.arange(len(tags)), 0))]
        data = np.flatnonzero((kinds == ord("d")) & of_edge)
        for name, keys in self._keys.items():
            rows, spans = _texts_of(text, tags, data, keys)
            codes = np.full(int(is_edge.sum()), -1)
            codes[edges[rows]] = self._names[name].numbers(text, spans)  # of data given twice the last counts
            self._codes[name].append(codes)

    def columns(self) -> dict[str, tuple[np.ndarray, list[bytes]]]:
        """Return (the number of a text for each edge, -1 without one; the texts), with references to characters, of all attributes."""
        return {name: (np.concatenate(codes), self._names[name].texts()) for name, codes in self._codes.items() if codes}


def _texts_of(text: np.ndarray, tags: np.ndarray, data: np.ndarray, keys: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return (numbers of the tags of data with one of the keys, spans of their texts), in the order of the file."""
    rows, spans, ahead = [], [], len(b"<data key=")
    for key in keys:
        found = data[tags[data] + ahead + len(key) + 2 < len(text)]
        found = found[text[tags[found] + ahead] == text[tags[found] + ahead + len(key) + 1]]  # the quotation marks
        for place, byte in enumerate(key, 1):
            found = found[text[tags[found] + ahead + place] == byte]
        start = tags[found] + ahead + len(key) + 3
        is_open = text[start - 1] == ord(">")  # else it is <data key="..."/>, and the text is empty
        rows.append(found)
        spans.append(start << 32 | np.where(is_open, tags[np.minimum(found + 1, len(tags) - 1)], start))
    order = np.argsort(np.concatenate(rows), kind="stable")
    return np.concatenate(rows)[order], np.concatenate(spans)[order]


def plain_rows(blocks: Iterator[bytes], keys: Keys, columns: int, texts: EdgeTexts | None = None) -> PlainRows | None:
    """Return all nodes and edges and the text that follows them; None if not all of them are plain. The first block starts with a node or edge.

    `texts` takes the texts of edges.
    """
    names, held, state = Names(), b"", 0
    parts: list[tuple[np.ndarray, ...]] = []
    room = np.empty(0, dtype=np.uint8)  # the same for all blocks, since new memory costs as much as a look at it
    for block in blocks:
        if state == _AT_TAIL:
            held += block
        else:
            size = len(held) + len(block)
            room = room if len(room) >= size + len(PADDING) else np.empty(size + _LONGEST + len(PADDING), dtype=np.uint8)
            text = room[: size + len(PADDING)]
            for start, part in ((0, held), (len(held), block), (size, PADDING)):
                text[start : start + len(part)] = np.frombuffer(part, dtype=np.uint8)
            parsed = _loops.parse_graphml(text, *keys, columns)  # which replaces references to characters in the text
            end, state = parsed[:2]
            if state < 0 or not ((held.isascii() and block.isascii()) or _is_xml_text((held + block)[:end])):
                return None
            parts.append(_numbered(names, text, *parsed[2:]))
            if texts is not None:
                texts.add((held + block)[:end])
            held = block[end - len(held) :] if end >= len(held) else held[end:] + block
        if len(held) > _LONGEST:
            return None
    if state != _AT_TAIL:
        return None
    return PlainRows(held, names, *(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _is_xml_text(block: bytes) -> bool:
    """Whether bytes without control characters are UTF-8, and of characters that XML allows."""
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return b"\xef\xbf\xbe" not in block and b"\xef\xbf\xbf" not in block


def _numbered(
    names: Names,
    text: np.ndarray,
    nodes: np.ndarray,
    places: np.ndarray,
    has_place: np.ndarray,
    edges: np.ndarray,
    values: np.ndarray,
    has_value: np.ndarray,
    place_doubts: np.ndarray,
    value_doubts: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Return the arrays of a block with numbers instead of names and with all values converted."""
    for row, column, start, end in place_doubts.tolist():
        places[row, column] = float(text[start:end].tobytes())
    for row, _, start, end in value_doubts.tolist():
        values[row] = float(text[start:end].tobytes())
    nodes, edges = names.numbers(text, nodes), names.numbers(text, edges)
    return nodes, places, has_place, edges, values, has_value
