"""Nodes and edges of plain GraphML to numbers, megabytes at a time. Knows bytes and arrays only.

Plain is what networkx, OSMnx, igraph and hushgraph write: nodes with an id, edges with source and target, data of a key in them,
blanks between. All else (comments, other elements and attributes, values that are no numbers, what is no XML) is given up at once,
for a real parser to read or refuse: nothing is reported here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

from hushgraph.edge_rows import decimal
from hushgraph.names import PADDING, Names

_LONGEST = 1 << 22  # bytes of one element; longer ones are not plain
_SHORTEST_NODE, _SHORTEST_EDGE = len('<node id=""/>'), len('<edge source="" target=""/>')
_MORE, _OTHER = -1, -2  # instead of a position: the block ends too early; this is not plain
NOT_WANTED, NOT_PLAIN = -1, _OTHER  # roles of data, beside columns of places and 0 for the value of an edge
_ONE = np.uint64(1)
_AT_TAIL = 1  # where data of the graph follow, or its end


def _literal(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), dtype=np.uint8)


_NODE, _EDGE, _DATA, _TAG_ENDS = _literal("<node"), _literal("<edge"), _literal("<data key="), _literal("/>")
_NODE_END, _EDGE_END, _DATA_END, _GRAPH_END = map(_literal, ("</node>", "</edge>", "</data>", "</graph"))
_ID, _SOURCE, _TARGET, _DIRECTED = map(_literal, ("id=", "source=", "target=", "directed="))
_AMP, _LT, _GT, _QUOT, _APOS = map(_literal, ("&amp;", "&lt;", "&gt;", "&quot;", "&apos;"))
_LESS, _GREATER, _AND, _SLASH, _BRACKET, _HASH, _SEMICOLON, _ZERO, _NINE, _PLUS, _MINUS, _DOUBLE, _SINGLE = b"<>&/]#;09+-\"'"
_IS_BLANK, _IS_PLAIN = np.zeros(256, dtype=np.bool_), np.zeros(256, dtype=np.bool_)  # plain: means itself wherever it stands
_IS_BLANK[list(b" \t\r\n")] = True
_IS_PLAIN[32:] = True
_IS_PLAIN[list(b"<>&\"'")] = False


class Keys(NamedTuple):
    """Keys that matter, and what their data are in a node and in an edge; data of other keys are not wanted."""

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
    """What a file holds; nodes and the ends of edges are numbers of names."""

    tail: bytes  # what follows the nodes and edges; whether that is right is for a real parser to say
    names: Names
    nodes: np.ndarray
    places: np.ndarray  # (n, columns), NaN for what is no number
    has_place: np.ndarray  # bit i: column i was given
    edges: np.ndarray
    values: np.ndarray
    has_value: np.ndarray


class _Found(NamedTuple):
    """What the parser writes into; `counts` are nodes, edges, doubtful places, doubtful values."""

    nodes: np.ndarray
    places: np.ndarray
    has_place: np.ndarray
    edges: np.ndarray
    values: np.ndarray
    has_value: np.ndarray
    place_doubts: np.ndarray  # (row, column, start, end): numbers that Python is asked about
    value_doubts: np.ndarray
    counts: np.ndarray


def plain_rows(blocks: Iterator[bytes], keys: Keys, columns: int) -> PlainRows | None:
    """All nodes and edges, from where the first of them begins, and what follows them; None if not all of them are plain."""
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
            end, state, found = _block_rows(text, keys, columns)
            if state < 0 or not ((held.isascii() and block.isascii()) or _is_xml_text((held + block)[:end])):
                return None
            parts.append(_numbered(names, text, found))
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


def _block_rows(text: np.ndarray, keys: Keys, columns: int) -> tuple[int, int, _Found]:
    """(how much of the padded text was read, 1 where no nodes and edges follow or -2 for what is not plain, what was found).

    References to characters are replaced in the text.
    """
    n, m = len(text) // _SHORTEST_NODE + 1, len(text) // _SHORTEST_EDGE + 1
    found = _Found(
        np.empty(n, np.int64), np.empty((n, columns)), np.empty(n, np.uint8), np.empty((m, 2), np.int64), np.empty(m), np.empty(m, np.bool_),
        np.empty((columns * n, 4), np.int64), np.empty((m, 4), np.int64), np.zeros(4, np.int64),
    )  # fmt: skip
    end, state = _parse(text, len(text) - len(PADDING), keys, found)
    return end, state, found


def _numbered(names: Names, text: np.ndarray, found: _Found) -> tuple[np.ndarray, ...]:
    """Arrays as long as what was found, with numbers of names and without doubts."""
    n, m, n_doubts, m_doubts = found.counts.tolist()
    for row, column, start, end in found.place_doubts[:n_doubts].tolist():
        found.places[row, column] = float(text[start:end].tobytes())
    for row, _, start, end in found.value_doubts[:m_doubts].tolist():
        found.values[row] = float(text[start:end].tobytes())
    nodes, edges = names.numbers(text, found.nodes[:n]), names.numbers(text, found.edges[:m])
    return nodes, found.places[:n].copy(), found.has_place[:n].copy(), edges, found.values[:m].copy(), found.has_value[:m].copy()


# ---- the parser -----------------------------------------------------------------------------------------------------


@njit(cache=True)
def _parse(text, size, keys, found):
    """(where the first element begins that is not whole or no node or edge; state)."""
    begin, doubts = 0, np.zeros(2, np.int64)
    spans, open_tag = np.zeros(2, np.int64), np.zeros(1, np.bool_)
    while True:
        begin = _past_blanks(text, begin)
        is_node = False
        i = _after(text, begin, size, _EDGE)
        if i == _OTHER:
            i = _after(text, begin, size, _NODE)
            is_node = True
        if i == _OTHER:
            i = _after(text, begin, size, _GRAPH_END)
            i = _after(text, begin, size, _DATA) if i == _OTHER else i
            return begin, (0 if i == _MORE else _AT_TAIL if i > 0 else _OTHER)
        if i >= 0:
            i = _attributes(text, i, size, is_node, spans, open_tag)
        if i >= 0:
            doubts[:] = found.counts[2:]
            found.has_place[found.counts[0]] = 0
            found.has_value[found.counts[1]] = False
            if open_tag[0]:
                i = _content(text, i, size, is_node, keys, found, doubts)
        if i < 0:
            return begin, (0 if i == _MORE else _OTHER)
        if is_node:
            found.nodes[found.counts[0]] = spans[0]
            found.counts[0] += 1
        else:
            found.edges[found.counts[1]] = spans
            found.counts[1] += 1
        found.counts[2:] = doubts
        begin = i


@njit(cache=True)
def _after(text, i, size, literal):
    """Where a literal ends that begins at i."""
    place = np.uint64(i)
    for k in range(np.uint64(min(len(literal), size - i))):
        if text[place + k] != literal[k]:
            return _OTHER
    return i + len(literal) if i + len(literal) <= size else _MORE


@njit(cache=True)
def _past_blanks(text, i):
    """Where the blanks end that begin at i; the padding is not blank."""
    place = np.uint64(i)
    while _IS_BLANK[text[place]]:
        place += _ONE
    return np.int64(place)


@njit(cache=True)
def _attributes(text, i, size, is_node, spans, open_tag):
    """Where the rest of a tag ends, after its name; spans are those of the id, or of source and target."""
    seen, needed = 0, (1 if is_node else 6)
    while True:
        start, i = i, _past_blanks(text, i)
        if i >= size:
            return _MORE
        if text[i] == _GREATER or text[i] == _SLASH:
            open_tag[0] = text[i] == _GREATER
            i = i + 1 if open_tag[0] else _after(text, i, size, _TAG_ENDS)
            return i if seen & needed == needed else (_MORE if i == _MORE else _OTHER)
        if i == start:
            return _OTHER
        which, begin = 0, _after(text, i, size, _ID)
        if begin == _OTHER and not is_node:
            which, begin = 1, _after(text, i, size, _SOURCE)
            if begin == _OTHER:
                which, begin = 2, _after(text, i, size, _TARGET)
            if begin == _OTHER:
                which, begin = 3, _after(text, i, size, _DIRECTED)
        if begin < 0 or begin >= size:
            return _OTHER if begin == _OTHER else _MORE
        if seen >> which & 1 or (text[begin] != _DOUBLE and text[begin] != _SINGLE):
            return _OTHER
        seen |= 1 << which
        end, i = _characters(text, begin + 1, size, text[begin])
        if i < 0:
            return i
        i += 1
        if is_node or which == 1 or which == 2:
            spans[0 if which < 2 else 1] = (begin + 1) << 32 | end


@njit(cache=True)
def _characters(text, i, size, stop):
    """(end of what stands from i until `stop`, with references replaced in place; where that was)."""
    in_text, place = stop == _LESS, np.uint64(i)  # no look at negative places
    while _IS_PLAIN[text[place]]:  # the padding is not plain
        place += _ONE
    end = i = np.int64(place)
    while i < size:
        c = text[i]
        if _IS_PLAIN[c] or (c in (_DOUBLE, _SINGLE) and c != stop):
            text[end] = c
            end, i = end + 1, i + 1
        elif c == stop:
            return end, i
        elif c == _AND:
            end, i = _reference(text, i, size, end)
            if i < 0:
                return end, i
        elif (c == _GREATER and not (in_text and text[i - 1] == _BRACKET)) or (in_text and _IS_BLANK[c]):
            text[end] = c
            end, i = end + 1, i + 1
        else:
            return end, _OTHER
    return end, _MORE


@njit(cache=True)
def _reference(text, i, size, end):
    """(end after the character that is referred to is written there, where the reference ends)."""
    code, after = ord("&"), _after(text, i, size, _AMP)
    if after == _OTHER:
        code, after = ord("<"), _after(text, i, size, _LT)
    if after == _OTHER:
        code, after = ord(">"), _after(text, i, size, _GT)
    if after == _OTHER:
        code, after = ord('"'), _after(text, i, size, _QUOT)
    if after == _OTHER:
        code, after = ord("'"), _after(text, i, size, _APOS)
    if after == _OTHER and text[i + 1] == _HASH:
        code, after = 0, i + 2
        while after < size and _ZERO <= text[after] <= _NINE and code < 0xD800:
            code = 10 * code + np.int64(text[after] - _ZERO)
            after += 1
        if after >= size:
            return end, _MORE
        if text[after] != _SEMICOLON or not (32 <= code < 0xD800 or code == 9 or code == 10 or code == 13):
            return end, _OTHER
        after += 1
    if after < 0:
        return end, after
    if code < 0x80:
        text[end] = code
        return end + 1, after
    if code < 0x800:
        text[end], text[end + 1] = 0xC0 | code >> 6, 0x80 | code & 0x3F
        return end + 2, after
    text[end], text[end + 1], text[end + 2] = 0xE0 | code >> 12, 0x80 | code >> 6 & 0x3F, 0x80 | code & 0x3F
    return end + 3, after


@njit(cache=True)
def _content(text, i, size, is_node, keys, found, doubts):
    """Where a node or an edge ends, after its data."""
    has_value = False
    while True:
        i = _past_blanks(text, i)
        begin = _after(text, i, size, _DATA)
        if begin == _OTHER:
            found.has_value[found.counts[1]] = has_value
            return _after(text, i, size, _NODE_END if is_node else _EDGE_END)
        if begin < 0 or begin >= size:
            return _MORE
        if text[begin] != _DOUBLE and text[begin] != _SINGLE:
            return _OTHER
        end, i = _characters(text, begin + 1, size, text[begin])
        if i < 0 or i + 1 >= size:
            return i if i == _OTHER else _MORE
        role = _role(text, begin + 1, end, is_node, keys) if end == i else _OTHER
        is_open = text[i + 1] == _GREATER
        if role == _OTHER or not (is_open or text[i + 1] == _SLASH):
            return _OTHER
        i = start = end = i + 2 if is_open else _after(text, i + 1, size, _TAG_ENDS)
        if i >= 0 and is_open:
            end, i = _characters(text, i, size, _LESS)
            i = _after(text, i, size, _DATA_END) if i >= 0 else i
        if i < 0:
            return i
        if role >= 0 and is_node:
            good = _keep_place(text, start, end, role, found, doubts)
        else:
            good = role < 0 or (not has_value and _keep_value(text, start, end, found, doubts))
            has_value |= role >= 0
        if not good:
            return _OTHER


@njit(cache=True)
def _role(text, start, end, is_node, keys):
    """What data of that key are."""
    first = 0
    for number in range(len(keys.ends)):
        same = keys.ends[number] - first == end - start
        k = 0
        while same and k < end - start:
            same = keys.ids[first + k] == text[start + k]
            k += 1
        if same:
            return keys.in_node[number] if is_node else keys.in_edge[number]
        first = keys.ends[number]
    return NOT_WANTED


@njit(cache=True)
def _trimmed(text, start, end):
    while start < end and _IS_BLANK[text[start]]:
        start += 1
    while end > start and _IS_BLANK[text[end - 1]]:
        end -= 1
    return start, end


@njit(cache=True)
def _keep_place(text, start, end, column, found, doubts):
    """Whether that was the first one; what is no number is NaN."""
    row = found.counts[0]
    if found.has_place[row] >> column & 1:
        return False
    found.has_place[row] |= 1 << column
    start, end = _trimmed(text, start, end)
    negative = start < end and text[start] == _MINUS
    number, state = decimal(text, start + negative, end)
    if negative and text[start + 1] == _PLUS:
        state = -1
    found.places[row, column] = np.nan if state < 0 else -number if negative else number
    if state == 0:
        found.place_doubts[doubts[0]] = (row, column, start, end)
        doubts[0] += 1
    return True


@njit(cache=True)
def _keep_value(text, start, end, found, doubts):
    """Whether it is a number of at least 0."""
    row = found.counts[1]
    start, end = _trimmed(text, start, end)
    found.values[row], state = decimal(text, start, end)
    if state == 0:
        found.value_doubts[doubts[1]] = (row, 0, start, end)
        doubts[1] += 1
    return state >= 0
