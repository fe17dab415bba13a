"""Valid lines of each text format, and functions that damage them, for the cases of the readers and for `fuzz_readers.py`."""

from __future__ import annotations

from collections.abc import Callable

Below = Callable[[int], int]  # returns a random integer >= 0 and below the argument

# (n_fields, source, target, value, delimiter, comment, positive, is_text), see `RowForm`
EDGE_FORMS = {
    "snap": (2, 0, 1, -1, 0, ord("#"), False, False),
    "weighted": (3, 0, 1, 2, 0, ord("#"), False, False),
    "lengths": (3, 0, 1, 2, 0, ord("#"), True, False),
    "comma": (3, 0, 1, 2, ord(","), ord("#"), True, False),
    "swapped": (4, 2, 1, 3, ord(","), ord("#"), False, False),
    "tab": (2, 0, 1, -1, ord("\t"), ord("#"), False, False),
    "words": (2, 0, 1, -1, 0, ord("#"), False, True),
    "names": (3, 0, 1, 2, ord(","), ord("#"), True, True),
}
MATRIX_FORMS = {
    "pattern": (2, 0, 1, -1, 0, ord("%"), False, False),
    "real": (3, 0, 1, 2, 0, ord("%"), False, False),
    "real lengths": (3, 0, 1, 2, 0, ord("%"), True, False),
}
NUMBERS = [
    b"0", b"1", b"0.5", b"12.75", b"1e3", b"2E-3", b"+7", b"0.1", b".25", b"3.", b"1e22", b"1e23", b"123456789012345678", b"1234567890123456789",
    b"9007199254740993", b"9007199254740992.999999999999999999", b"1.7976931348623159e308", b"1e400", b"4.9e-324", b"1e-400", b"0.000000000000000000000012",
    b"00000000000000000000000000012.5", b"2.3934132070764598", b"48.92085363984978", b"8.5e-07", b"0e999", b"1e9223372036854775807", b"1e-9223372036854775808",
    b"9" * 400, b"." + b"0" * 400 + b"1", b"1e+000000000000000001", b"1e0000000000000000001", b"5e-1", b"0.30000000000000004", b"179769313486231580793728971405e279",
]  # fmt: skip
IDS = [
    b"0", b"7", b"12", b"123456", b"4294967296", b"9223372036854775807", b"9223372036854775808", b"9999999999999999999", b"-4", b"-0", b"007", b"+5",
    b"-9223372036854775807", b"-9223372036854775808", b"18446744073709551616", b"12345678", b"123456789",
]  # fmt: skip
WORDS = [
    b"oak",
    b"elm",
    b"a",
    b"node-17",
    b"\xc3\xa9l\xc3\xa8ve",
    b"\xff\xfe",
    b"12345678",
    b"123456789",
    b"x" * 300,
    b"#hash",
    b"a b",
    b"'q'",
]
TIMES = [
    b"2026-03-02", b"2026-03-02T06:30", b"2026-03-02T06", b"2026-03-02T06:30:15", b"2026-03-02T06:30:15.5", b"2026-03-02 06:30:15.123456789",
    b"2026-03-02T06:30Z", b"2026-03-02T06:30+05:00", b"2026-03-02T06:30-0530", b"2026-03-02T06:30+05:00:30", b"2024-02-29", b"2026-02-29", b"1900-02-29",
    b"2000-02-29", b"0001-01-01", b"9999-12-31T23:59:59.999999999-23:59:59", b"1677-09-21T00:12:43", b"2262-04-11T23:47:16", b"0000-01-01", b"1969-12-31",
    b"2026-03-02T24:00", b"2026-13-01", b"2026-03-02T06:30:60", b"2026-03-02T06:30:15.", b"2026-03-02T06:30:15.1234567890", b"now", b"NaT", b"20260302T0630",
]  # fmt: skip
QUOTED = [b'"Doe, Ann"', b'"Doe ""Ann"""', b'""', b'"open', b'"closed"x', b'"a""', b'"a"",b"', b'x"y', b'"""', b'""""', b'"\r"']
NODES = [
    b'<node id="a"/>', b'<node id="b"></node>', b"<node id='c d' />", b'<node id="&amp;&#233;&#8364;&lt;"/>', b'<node id="">\n</node>',
    b'<node id="n1"><data key="x">1.5</data><data key="y"> -2e3 </data></node>', b'<node id="n2"><data key="x"/><data key="label">a &gt; b</data></node>',
    b'<node id="n3"><data key="y">9007199254740993.00000000000000001</data>\n  <data key="x">-1e-400</data></node>', b'<node id="n4"><data key="x">east</data></node>',
    b'<node id="n5"><data key="x">-+1</data><data key="y">+1</data></node>',
]  # fmt: skip
EDGES = [
    b'<edge source="a" target="b"/>', b"<edge id='e1' target='b' source='a'></edge>", b'<edge source="a" target="b" directed="false"><data key="w">0.5</data></edge>',
    b'<edge source="a" target="&#10;b"><data key="w">\n1e400\n</data><data key="other"></data></edge>', b'<edge source="n1" target="n2"><data key="w">2.5</data></edge>',
]  # fmt: skip
NOT_PLAIN = [
    b"<!-- c -->", b'<node ID="a"/>', b'<node id="a" id="b"/>', b'<edge source="a"/>', b'<edge source="a" target="b"><data key="w">-1</data></edge>', b'<node id="a>',
    b'<node id="a"><data key="x">1</data><data key="x">2</data></node>', b'<node id="a<"/>', b'<node id="&#0;"/>', b'<node id="&b;"/>', b"<nodes/>",
    b'<node id="a">]]></node>', b'<node id="a"><data key="x">]]></data></node>', b'<node id="a"><data key="z">1</data></node>', b'<edge source="a" target="b"><data key="w">x</data></edge>',
]  # fmt: skip
KEYS = {"x": (0, -1), "y": (1, -1), "w": (-1, 0), "z": (-2, -1)}  # see `graphml_rows.Keys`
GRAPHML_TAILS = [
    b"</graph>",
    b"\n  </graph>\n</graphml>\n",
    b'<data key="g0">text</data></graph>',
    b"</graph",
    b"",
    b"<",
    b"</grape>",
]
_PIECES = [
    b"", b"\0", b"\0\0\0\0\0\0\0\0\0", b"\r", b" ", b"\t", b",", b'"', b'""', b'","', b"#", b"%", b"-", b"+", b".", b"e", b"E", b":", b"T", b"Z", b"0", b"9", b"\xff",
    b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"nan", b"inf", b"1e999", b"-0", b"9" * 19, b"9" * 40, b"0" * 60, b"x" * 1000, b"<", b">", b"&", b"&amp;", b"&#9;", b"&#55295;",
    b"&#55296;", b"]]>", b"/>", b"</node>", b"'", b"_", b"  ", b",,", b"\xed\xa0\x80", b"\x7f", b"\x01",
]  # fmt: skip


def mutated(text: bytes, below: Below, others: list[bytes]) -> bytes:
    """Return a text with up to three damages: changed, removed, repeated or inserted bytes, a piece of another text, or a random span."""
    for _ in range(below(4)):
        size = len(text)
        place = below(size + 1)
        kind = below(9)
        if kind == 0 and place < size:
            text = text[:place] + bytes([text[place] ^ 1 << below(8)]) + text[place + 1 :]
        elif kind == 1:
            text = text[:place]
        elif kind == 2:
            text = text[:place] + text[place + 1 + below(8) :]
        elif kind == 3:
            stop = place + 1 + below(8)
            text = text[:stop] + text[place:]
        elif kind == 4:
            other = others[below(len(others))]
            text = text[:place] + other[below(len(other) + 1) :]
        elif kind == 5:
            text = text[:place] + bytes(below(256) for _ in range(1 + below(12))) + text[place:]
        elif kind == 6 and size:
            text = text[:place] + text[below(size) :]
        else:
            text = text[:place] + _PIECES[below(len(_PIECES))] + text[place + below(3) :]
    return text


def chosen(items: list[bytes], below: Below) -> bytes:
    """Return a random item."""
    return items[below(len(items))]


def edge_line(form: tuple, below: Below) -> bytes:
    """Return a line that a reader with this form usually accepts."""
    n_fields, source, target, value, delimiter, comment, _, is_text = form
    if below(30) == 0:
        return bytes([comment]) + b" Nodes: 3"
    fields = [chosen(WORDS, below) for _ in range(n_fields)]
    for end in (source, target):
        fields[end] = chosen(WORDS[:5] if is_text else IDS[:6], below)
    if below(8) == 0:
        fields[target] = fields[source]
    if value >= 0:
        fields[value] = chosen(NUMBERS, below)
    if delimiter and below(20) == 0:
        fields[target] = b""
    separator = bytes([delimiter]) if delimiter else chosen([b" ", b"\t", b" ", b"  \t"], below)
    return separator.join(fields) + chosen([b"", b"", b"", b"\r", b" ", b" # c"], below)


def event_line(below: Below) -> bytes:
    """Return a line of four fields: an id, two numbers, a time."""
    person = chosen(QUOTED if below(4) == 0 else WORDS, below)
    line = b",".join(
        [person, chosen(NUMBERS, below), chosen([b"", b" ", b"-"], below) + chosen(NUMBERS, below), chosen(TIMES, below)]
    )
    return line + chosen([b"", b"", b"", b"", b"\r", b",", b",,", b",x", b',""'], below)


def element(below: Below) -> bytes:
    """Return a node or an edge of GraphML, or rarely another element."""
    return chosen(NOT_PLAIN if below(20) == 0 else NODES if below(2) else EDGES, below)
