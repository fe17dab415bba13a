"""Fuzzing of all text readers: millions of damaged lines and small files, each compared with plain Python.

    python tests/core/fuzz_readers.py --count 1000000                   # this many lines and files for each reader
    python tests/core/fuzz_readers.py --count 20000 --readers events    # one reader

The script detects crashes. With the address sanitizer it also detects each access outside a buffer; PYTHONMALLOC=malloc lets the
sanitizer know each buffer. The script checks that a line has the same meaning alone and inside a block; that results do not depend on the
cuts between blocks; that numbers agree with `float`, and times with the calendar and with `datetime.fromisoformat`; that splitting loses
no byte; that plain GraphML agrees with expat; and that numbers of texts agree with a dict. The rules of the formats are written here
again, in Python and with regular expressions.
"""

from __future__ import annotations

import argparse
import datetime
import io
import random
import re
import struct
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from xml.parsers import expat

import numpy as np
from damaged_texts import (
    EDGE_FORMS,
    EDGES,
    GRAPHML_TAILS,
    KEYS,
    MATRIX_FORMS,
    NODES,
    NUMBERS,
    QUOTED,
    TIMES,
    WORDS,
    Below,
    chosen,
    edge_line,
    element,
    event_line,
    mutated,
)

from hushgraph.core import _loops
from hushgraph.core.string_table import PADDING, Names, span
from hushgraph.files import graphml_fast as graphml_rows
from hushgraph.files.edge_list import RowForm, parse_rows
from hushgraph.files.graphml_fast import Keys, PlainRows, _is_xml_text, plain_rows
from hushgraph.privacy import text_lines as event_lines
from hushgraph.privacy.text_lines import AFTER, BEFORE, NO_TICKS, Texts

BATCH = 500  # lines in a block


def array(text: bytes) -> np.ndarray:
    """Return a copy of the text in a buffer of the same size, so that a sanitizer detects an access behind its end."""
    return np.frombuffer(text, dtype=np.uint8).copy()


def bits(value: float) -> bytes:
    """Return the bits of a number, or b"none" for NaN."""
    return struct.pack("d", value) if value == value else b"none"


def cut_out(content: bytes, spans: list[int]) -> list[bytes]:
    """Return the texts of spans."""
    return [content[place >> 32 : place & 0xFFFFFFFF] for place in spans]


# ---- edge lists and Matrix Market -----------------------------------------------------------------------------------

_LOOSE, _STRICT = re.compile(rb"[+-]?[0-9]{1,19}"), re.compile(rb"0|-?[1-9][0-9]{0,18}")
_VALUE = re.compile(rb"\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,19}))?")


@lru_cache(1 << 16)
def value_of(text: bytes) -> float | None:
    """Return a text as a number >= 0, or None."""
    match = _VALUE.fullmatch(text)
    return None if match is None or abs(int(match[1] or 0)) >= 2**63 else float(text)


def integer_of(text: bytes, loose: bool) -> int | None:
    """Return a text as an integer of 63 bits, or None. `loose` allows leading zeros and a plus sign."""
    integer = int(text) if (_LOOSE if loose else _STRICT).fullmatch(text) else None
    return None if integer is None or abs(integer) >= 2**63 else integer


def edge_by_rules(line: bytes, form: RowForm) -> tuple | None:
    """Return (source, target, value, is a node without an edge) of a line; () for an empty line; None for a line that is no row."""
    blanks = b" " if form.delimiter else b" \t"
    content = line
    if form.comment and (not form.delimiter or line[:1] == bytes([form.comment])):
        content = line.split(bytes([form.comment]), 1)[0]
    content = content.rstrip(blanks + b"\r")
    inside = content.lstrip(blanks)
    if not inside:
        return ()
    if form.is_text and (len(inside) < len(content) or line[len(content) : len(content) + 1] == b" "):
        return None
    fields = inside.split(bytes([form.delimiter])) if form.delimiter else re.split(rb"[ \t]+", inside)
    if len(fields) != form.n_fields:
        return None
    ends: list = [None, None]
    for side, place in enumerate((form.source, form.target)):
        field = fields[place].strip(b" ")
        if side == 1 and form.delimiter and not field:
            continue
        if form.is_text:
            single = form.delimiter or (
                place + 1 == form.n_fields or re.search(rb"(?:^|[ \t])" + re.escape(field) + rb"[ \t](?![ \t])", inside)
            )
            is_bare = field and field == fields[place] and single
            ends[side] = field if is_bare else None
        else:
            ends[side] = integer_of(field, loose=not form.delimiter)
        if ends[side] is None:
            return None
    is_node = ends[1] is None
    ends[1] = ends[0] if is_node else ends[1]
    value = 0.0
    if form.value >= 0 and not is_node:
        number = value_of(fields[form.value].strip(b" "))
        if number is None or not (0 < number < np.inf or (number == 0 and (not form.positive or ends[0] == ends[1]))):
            return None
        value = number
    return ends[0], ends[1], value, is_node


def rows_by_reader(content: bytes, form: RowForm) -> tuple[list[tuple], int]:
    """Return the rows of a block in the form of `edge_by_rules`, and the position where the reader stopped."""
    names = Names() if form.is_text else None
    rows = parse_rows(content, form, names)
    ids = rows.ids.tolist()
    if names is not None:
        texts = names.texts()
        ids = [[texts[a], texts[b]] for a, b in ids]
    values = rows.values.tolist() if form.value >= 0 else [0.0] * len(ids)
    return [(a, b, value, is_node) for (a, b), value, is_node in zip(ids, values, rows.alone.tolist(), strict=True)], rows.stop


def check_edges(content: bytes, form: RowForm) -> int:
    """Check that a block has the rows of its lines, up to the first line that is no row; return the number of rows."""
    expected, stop, place = [], -1, 0
    for line in content.split(b"\n"):
        meaning = edge_by_rules(line, form)
        if meaning is None and place < len(content):
            stop = place
            break
        expected += [meaning] if meaning else []
        place += len(line) + 1
    rows, reader_stop = rows_by_reader(content, form)
    assert reader_stop == stop, (content, form, reader_stop, stop)
    assert rows[: len(expected)] == expected, (content, form, rows, expected)
    assert stop >= 0 or len(rows) == len(expected)
    return len(expected)


def edge_reader(forms: dict[str, tuple]) -> tuple[Callable, Callable]:
    """Return the functions that fuzz lines and files of these forms."""
    all_forms = [RowForm(*form) for form in forms.values()]
    others = [*WORDS, *NUMBERS, b"1 2 3", b"1,2,3"]

    def lines(count: int, below: Below) -> int:
        form = all_forms[below(len(all_forms))]
        damaged = [mutated(edge_line(form, below), below, others).replace(b"\n", b"") for _ in range(count)]
        good, bad = [], []
        for line in damaged:
            meaning = edge_by_rules(line, form)
            ids, values, is_node, doubts, _, stop = _loops.parse_edges(array(line), *form)
            if meaning is None and not len(doubts) and line:
                assert stop == 0, (line, form)
            elif meaning is not None:
                assert (stop, len(ids), len(is_node)) == (-1, bool(meaning), bool(meaning)), (line, form)
                assert not meaning or form.is_text or ids[0].tolist() == list(meaning[:2]), (line, form)
                assert not meaning or form.value < 0 or len(doubts) or values[0] == meaning[2], (line, form)
            (bad if meaning is None else good).append(line)
        accepted = check_edges(b"\n".join(good), form)
        for line in bad[:5]:
            place = below(len(good) + 1)
            check_edges(b"\n".join([*good[max(place - 20, 0) : place], line, *good[place : place + 5]]), form)
        return accepted

    def files(count: int, below: Below) -> int:
        accepted = 0
        for _ in range(count):
            form = all_forms[below(len(all_forms))]
            content = b"\n".join(edge_line(form, below) for _ in range(1 + below(4)))
            content = mutated(content, below, [b"\n", b"\r\n", b"1 2\n3 4\n", *others])
            accepted += check_edges(content, form) > 0
            cut = content.find(b"\n", below(len(content) + 1)) + 1
            if cut:
                (whole, stop), (first, stop_first) = rows_by_reader(content, form), rows_by_reader(content[:cut], form)
                second, stop_second = rows_by_reader(content[cut:], form)
                if stop_first < 0:
                    assert (first + second, stop_second + cut if stop_second >= 0 else -1) == (whole, stop), (content, form, cut)
                else:
                    assert stop_first == stop, (content, form, cut)
        return accepted

    return lines, files


# ---- GraphML --------------------------------------------------------------------------------------------------------

_GRAPHML_KEYS = Keys.of(KEYS)
_BLANKS = " \t\r\n"


def by_expat(content: bytes) -> tuple[list, list]:
    """Return the ids and places of the nodes, and the ends and values of the edges, of the content of a graph."""
    nodes: list = []
    edges: list = []
    data: dict[str, str] = {}
    key: list[str | None] = [None]

    def start(name, attributes):
        if name == "node":
            data.clear()
            nodes.append([attributes["id"]])
        elif name == "edge":
            data.clear()
            edges.append([attributes["source"], attributes["target"]])
        elif name == "data":
            key[0] = attributes["key"]
            data[attributes["key"]] = ""

    def text(characters):
        if key[0] is not None:
            data[key[0]] += characters

    def end(name):
        if name == "data":
            key[0] = None
        elif name == "node":
            nodes[-1] += [data.get("x"), data.get("y")]
        elif name == "edge":
            edges[-1].append(data.get("w"))

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.CharacterDataHandler, parser.EndElementHandler, parser.buffer_text = start, text, end, True
    parser.Parse(b"<graph>" + content + b"</graph>", True)
    return nodes, edges


def place_of(text: str | None) -> bytes:
    """Return the bits of a place; a missing place, or a text that is no number, gives NaN."""
    match = (
        None
        if text is None
        else re.fullmatch(r"-?(?:(?<!-)\+)?((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,19}))?)", text.strip(_BLANKS))
    )
    return bits(np.nan if match is None or abs(int(match[2] or 0)) >= 2**63 else float(text.strip(_BLANKS)))


def shown_rows(rows: PlainRows) -> tuple:
    """Return the tail, the node names and places, and the edge ends and values of rows."""
    texts = rows.names.texts()
    places = [
        [bits(value) if given >> k & 1 else b"none" for k, value in enumerate(row)]
        for row, given in zip(rows.places.tolist(), rows.has_place.tolist(), strict=True)
    ]
    values = [bits(value) if given else b"none" for value, given in zip(rows.values.tolist(), rows.has_value.tolist(), strict=True)]
    return (
        rows.tail,
        [texts[k] for k in rows.nodes.tolist()],
        places,
        [(texts[a], texts[b]) for a, b in rows.edges.tolist()],
        values,
    )


def check_graphml(content: bytes, shown: tuple) -> None:
    """Check that the rows agree with the result of expat for the part of the text that was read."""
    tail, names, places, ends, values = shown
    nodes, edges = by_expat(content[: len(content) - len(tail)])
    assert names == [node[0].encode() for node in nodes], content
    assert places == [[place_of(text) for text in node[1:]] for node in nodes], content
    assert ends == [(edge[0].encode(), edge[1].encode()) for edge in edges], content
    assert values == [b"none" if edge[2] is None else bits(float(edge[2].strip(_BLANKS))) for edge in edges], content


def graphml_lines(count: int, below: Below) -> int:
    damaged = [mutated(element(below), below, NODES + EDGES) for _ in range(count)]
    plain = []
    for text in damaged:
        end, state, *_ = _loops.parse_graphml(array(text + b"</graph>" + PADDING), *_GRAPHML_KEYS, 2)
        if state == 1 and end == len(text) and _is_xml_text(text):
            plain.append(text)
    content = b"\n".join(plain) + b"</graph>"
    rows = plain_rows(iter([content]), _GRAPHML_KEYS, 2)
    assert rows is not None
    assert rows.tail == b"</graph>"
    check_graphml(content, shown_rows(rows))
    return len(plain)


def graphml_files(count: int, below: Below) -> int:
    accepted = 0
    default, graphml_rows._LONGEST = graphml_rows._LONGEST, 1 << 14  # memory for long elements costs more time than the reading
    for _ in range(count):
        content = b"\n  ".join(element(below) for _ in range(1 + below(4))) + chosen(
            GRAPHML_TAILS[:3] if below(4) else GRAPHML_TAILS, below
        )
        content = mutated(content, below, NODES + EDGES + GRAPHML_TAILS)
        cut = below(len(content) + 1)
        rows = plain_rows(iter([content]), _GRAPHML_KEYS, 2)
        parts = plain_rows(iter([part for part in (content[:cut], content[cut:]) if part]), _GRAPHML_KEYS, 2)
        assert (rows is None) == (parts is None), (content, cut)
        if rows is not None and parts is not None:
            shown = shown_rows(rows)
            assert shown == shown_rows(parts), (content, cut)
            check_graphml(content, shown)
            accepted += 1
    graphml_rows._LONGEST = default
    return accepted


# ---- events ---------------------------------------------------------------------------------------------------------

_FIELD = re.compile(rb'"((?:[^"]|"")*)"(?=,|\Z)|((?!")[^,]*)(?=,|\Z)')
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,18})?")
_TIME = re.compile(
    rb"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?)?"
    rb"(Z|([+-])([0-9]{2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?)?)?"
)
COLUMNS = ["person", "lon", "lat", "time"]


def fields_by_rules(line: bytes, n_columns: int) -> list[bytes] | None:
    """Return the fields of a line without its line break, or None for a malformed line. Each byte is in a field or is a separator."""
    fields, place, raw = [], 0, []
    while True:
        match = _FIELD.match(line, place)
        if match is None:
            return None
        raw.append(match[0])
        fields.append(match[2] if match[1] is None else match[1].replace(b'""', b'"'))
        place = match.end() + 1
        if match.end() == len(line):
            break
    assert b",".join(raw) == line
    if any(fields[n_columns:]):
        return None
    return [*fields, *[b""] * n_columns][:n_columns]


def number_by_python(text: bytes) -> float:
    """Return a text as a number, or NaN."""
    text = text.strip(b" \t")
    return float(text) if _NUMBER.fullmatch(text) else np.nan


def time_by_calendar(text: bytes) -> tuple[int, bool]:
    """Return the nanoseconds since 1970 and whether the time has an offset."""
    match = _TIME.fullmatch(text.strip(b" \t"))
    if match is None:
        return NO_TICKS, False
    date, clock = [int(part) for part in match.group(1, 2, 3)], [int(part or 0) for part in match.group(4, 5, 6)]
    shift = [int(part or 0) for part in match.group(10, 11, 12)]
    try:
        moment = datetime.datetime(*date, *clock)  # type: ignore[arg-type]
    except ValueError:
        return NO_TICKS, False
    if shift[0] > 23 or max(shift[1:]) > 59:
        return NO_TICKS, False
    elapsed = moment - datetime.datetime(1970, 1, 1)
    offset = (-1 if match[9] == b"-" else 1) * (3600 * shift[0] + 60 * shift[1] + shift[2])
    seconds, fraction = elapsed.days * 86_400 + elapsed.seconds - offset, int(Fraction(f"0.{(match[7] or b'0').decode()}") * 10**9)
    most = 9_223_372_036  # seconds whose nanoseconds fit into 64 bits
    ticks = BEFORE if seconds < -most else AFTER if seconds >= most else seconds * 10**9 + fraction
    return ticks, match[8] is not None


def check_isoformat(text: bytes, ticks: int, aware: bool) -> None:
    """Check a time against `datetime.fromisoformat`, to microseconds, if that function accepts the text."""
    try:
        moment = datetime.datetime.fromisoformat(text.decode().strip(" \t"))
    except (ValueError, UnicodeDecodeError):
        return
    if BEFORE < ticks < AFTER:
        assert aware == (moment.tzinfo is not None), text
        origin = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC if aware else None)
        assert (moment - origin) // datetime.timedelta(microseconds=1) == ticks // 1000, text


def check_fields(texts: list[bytes], column: Texts) -> None:
    """Check the numbers and the times of a column."""
    numbers, (ticks, aware) = column.numbers(), column.times()
    for text, number, tick, has_offset in zip(texts, numbers.tolist(), ticks.tolist(), aware.tolist(), strict=True):
        assert bits(number) == bits(number_by_python(text)), (text, number)
        assert (tick, has_offset) == time_by_calendar(text), (text, tick)
        if tick != NO_TICKS:
            check_isoformat(text, tick, has_offset)


def event_lines_alone(count: int, below: Below) -> int:
    damaged = [mutated(event_line(below), below, QUOTED + TIMES + NUMBERS).replace(b"\n", b"") for _ in range(count)]
    expected = []
    for line in damaged:
        content = line.removesuffix(b"\r")
        expected.append(fields_by_rules(content, 4) if content and len(line) <= event_lines.LONGEST else None)
        text = array(line + b"\n" if below(2) else line)
        *_, spans, numbers, dropped = _loops.split_lines(text, 0, 0, np.arange(4), 4, 1, event_lines.LONGEST)
        fields = cut_out(text.tobytes(), spans[:, 0].tolist()) if len(numbers) else None
        assert fields == expected[-1], (line, fields, expected[-1])
        assert len(numbers) + len(dropped) == bool(content), line
    text = array(b"\n".join(damaged) + PADDING)
    _, n_lines, spans, numbers, dropped = _loops.split_lines(
        text[: -len(PADDING)], 0, 0, np.arange(4), 4, count, event_lines.LONGEST
    )
    assert n_lines == len(damaged) - (damaged[-1] == b"")
    rows = {row: fields for row, fields in enumerate(expected, start=1) if fields is not None}
    assert numbers.tolist() == list(rows)
    assert sorted([*dropped.tolist(), *rows]) == [row for row, line in enumerate(damaged, start=1) if line.removesuffix(b"\r")]
    block = text.tobytes()
    for k in range(4):
        texts = [fields[k] for fields in rows.values()]
        assert cut_out(block, spans[k].tolist()) == texts
        if k:
            check_fields(texts, Texts(text, spans[k]))
    fields = [mutated(chosen(TIMES if below(2) else NUMBERS, below), below, TIMES + NUMBERS) for _ in range(count)]
    check_fields(fields, Texts.of(fields))
    return len(rows)


class _InMemory:
    """A path with the attributes that `read_header` and `read_lines` use."""

    name = "events.csv"

    def __init__(self, content: bytes):
        self.content = content

    def open(self, mode: str):
        return io.BytesIO(self.content)


def events_by_rules(content: bytes, n_columns: int) -> tuple[list, list]:
    """Return (line number, fields) of each row, and the numbers of dropped lines, after the header."""
    rows, dropped = [], []
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines[1:], start=2):
        content = line.removesuffix(b"\r")
        fields = fields_by_rules(content, n_columns) if content and len(line) <= event_lines.LONGEST else None
        if fields is not None:
            rows.append((number, fields))
        elif content:
            dropped.append(number)
    return rows, dropped


def event_files(count: int, below: Below) -> int:
    accepted, defaults = 0, (event_lines.BLOCK, event_lines.LONGEST)
    for _ in range(count):
        content = b"\n".join([b"person,lon,lat,time", *(event_line(below) for _ in range(1 + below(4)))])
        content = mutated(content, below, [b"\n", b"\r\n", b"\xef\xbb\xbf", *QUOTED])
        content = b"\xef\xbb\xbf" + content if below(10) == 0 else content
        event_lines.BLOCK, event_lines.LONGEST = 1 + below(1 << (2 + below(9))), (defaults[1] if below(2) else 20 + below(200))
        try:
            columns = event_lines.read_header(_InMemory(content))  # type: ignore[arg-type]
        except ValueError:
            columns = []
        head = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")[0]
        most = head.count(b",") + 1
        expected = (
            fields_by_rules(head.removesuffix(b"\r"), most)
            if head.removesuffix(b"\r") and len(head) <= event_lines.LONGEST
            else None
        )
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            expected = None
        assert [name.encode("utf-8", "surrogateescape") for name in columns] == [*(expected or [])][: len(columns)], content
        assert bool(columns) == (expected is not None), content
        if columns:
            names = [name for name in dict.fromkeys(columns) if columns.count(name) == 1]
            rows, dropped = [], []
            for lines in event_lines.read_lines(_InMemory(content), columns, names, 1 + below(3)):  # type: ignore[arg-type]
                fields = [cut_out(column.buffer.tobytes(), column.spans.tolist()) for column in lines.fields.values()]
                rows += list(
                    zip(lines.numbers.tolist(), zip(*fields, strict=True) if fields else [()] * len(lines.numbers), strict=True)
                )
                dropped += lines.dropped.tolist()
            expected_rows, expected_dropped = events_by_rules(content, len(columns))
            places = [columns.index(name) for name in names]
            assert rows == [(number, tuple(fields[k] for k in places)) for number, fields in expected_rows], (
                content,
                event_lines.BLOCK,
            )
            assert dropped == expected_dropped, (content, event_lines.BLOCK)
            accepted += bool(rows)
        event_lines.BLOCK, event_lines.LONGEST = defaults
    return accepted


# ---- names ----------------------------------------------------------------------------------------------------------


def numbers_of(names: Names, texts: list[bytes]) -> list[int]:
    """Return the numbers of texts."""
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64).tolist()
    spans = [span(end - len(text), end) for end, text in zip(ends, texts, strict=True)]
    return names.numbers(b"".join(texts) + PADDING, np.array(spans, dtype=np.int64)).tolist()


def check_names(names: Names, known: dict[bytes, int]) -> None:
    """Check that names has the known texts, in order."""
    assert names.texts() == list(known)
    try:
        texts = [text.decode() for text in known]
    except UnicodeDecodeError:
        texts = None
    try:
        decoded, longest = names.decoded(1 << 20, 1 << 34)
    except UnicodeDecodeError:
        decoded, longest = None, -1
    assert (texts is None) == (decoded is None)
    if texts is not None and decoded is not None:
        assert longest == max(map(len, texts), default=0)
        assert decoded.tolist() == np.array(texts, dtype=str).tolist()


def name_lines(count: int, below: Below) -> int:
    texts = [mutated(chosen(WORDS, below), below, WORDS) for _ in range(count)]
    names, known = Names(), {}
    start = 0
    while start < len(texts):
        stop = start + 1 + below(400)
        part = texts[start:stop]
        assert numbers_of(names, part) == [known.setdefault(text, len(known)) for text in part]
        start = stop
    assert names.texts() == list(known)
    assert numbers_of(names, texts[::-1]) == [known[text] for text in texts[::-1]]
    return len(known)


def name_files(count: int, below: Below) -> int:
    for _ in range(count):
        texts = [mutated(chosen(WORDS[:8], below), below, WORDS) for _ in range(below(5))]
        names, known = Names(), {}
        assert numbers_of(names, texts) == [known.setdefault(text, len(known)) for text in texts]
        check_names(names, known)
    return count


# ---- running --------------------------------------------------------------------------------------------------------

READERS: dict[str, tuple[Callable[[int, Below], int], Callable[[int, Below], int]]] = {
    "edges": edge_reader(EDGE_FORMS),
    "matrix": edge_reader(MATRIX_FORMS),
    "graphml": (graphml_lines, graphml_files),
    "events": (event_lines_alone, event_files),
    "names": (name_lines, name_files),
}


def batches(count: int) -> Iterator[int]:
    for start in range(0, count, BATCH):
        yield min(BATCH, count - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--readers", nargs="*", choices=list(READERS), default=list(READERS))
    options = parser.parse_args()
    for reader in options.readers:
        for kind, run in zip(("lines", "files"), READERS[reader], strict=True):
            generator = random.Random(f"{options.seed} {reader} {kind}")

            def below(n: int, draw=generator.random) -> int:
                return int(draw() * n)

            start, done, accepted, tenths = time.perf_counter(), 0, 0, 0
            for size in batches(options.count):
                accepted += run(size, below)
                done += size
                if done * 10 // options.count > tenths:
                    tenths = done * 10 // options.count
                    print(
                        f"{reader} {kind}: {done:,} of {options.count:,}, {accepted:,} accepted, {time.perf_counter() - start:.0f} s",
                        flush=True,
                    )
            assert accepted > done // 20, "too few texts were accepted, so too few results were checked"


if __name__ == "__main__":
    main()
