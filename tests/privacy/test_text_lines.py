"""Text files: a line means the same wherever it stands, different ids stay different, and the grammars are what the docs say."""

import csv
import datetime
import gzip
import io
import re
import struct
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings, strategies as st

import hushgraph as hg
from hushgraph._errors import InputError
from hushgraph.privacy import text_lines as lines
from hushgraph.privacy.counting import count_events
from hushgraph.privacy.event_rows import open_rows
from hushgraph.privacy.text_lines import AFTER, BEFORE, LONGEST, NO_TICKS, Texts, read_header, read_lines

from .coupling import ids_of

PATH = hg.Graph.from_edges([(0, 1), (1, 2), (2, 3)], n=4)
GLOBE = hg.Graph.from_edges([(0, 1)], n=3, coords=[[-74.0, 40.7], [-73.9, 40.8], [2.3, 48.9]], crs="lonlat")
HOURS = [f"2026-03-02T{hour:02d}:00" for hour in range(0, 24, 6)]
CAPS = {"adjacency": "add-remove", "max_nodes": 1, "max_per_node": 1}


# ---- numbers ---------------------------------------------------------------------------------------------------------

NUMBER = rb"[ \t]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,18})?[ \t]*"


def by_python(text: bytes) -> float:
    return float(text) if re.fullmatch(NUMBER, text) else np.nan


def bits(values) -> list[bytes]:
    return [struct.pack("d", value) if value == value else b"no number" for value in values]


ALMOST = st.lists(
    st.sampled_from([bytes([c]) for c in b"0123456789012345678901234567890123456789+-..eE_ \t,nifx\0\xd9"]), max_size=12
)
WRITTEN = st.one_of(
    st.floats().map(lambda value: repr(value).encode()),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: f"{value:.25e}".encode()),
    st.tuples(st.integers(0, 10**25), st.integers(-330, 330)).map(lambda pair: f"-{pair[0]}e{pair[1]}".encode()),
    st.integers(2**53, 2**60).map(lambda k: f" +{k}.5".encode()),
)


@settings(max_examples=1000)
@given(st.lists(st.one_of(ALMOST.map(b"".join), WRITTEN), max_size=20))
@example(
    [b"1e999999999999999999", b"0e1" + b"0" * 17, b"0e1" + b"0" * 18, b"1e-" + b"9" * 18, b"9" * 400, b"." + b"0" * 400 + b"1"]
)
@example(
    [
        b"9007199254740993",
        b"9007199254740992.999999999999999999",
        b"1.7976931348623159e308",
        b"4.9e-324",
        b"2.4703282292062328e-324",
    ]
)
@example(
    [
        b"",
        b"+",
        b".",
        b"1e",
        b"1e+",
        b"+-1",
        b"1.2.3",
        b"1_000",
        b"0x10",
        b"nan",
        b"inf",
        b"1,5",
        b"\xd9\xa1",
        b"1\0",
        b"- 1",
        b"1\n",
    ]
)
def test_numbers_are_those_of_the_grammar_correctly_rounded(texts):
    assert bits(Texts.of(texts).numbers()) == bits(map(by_python, texts))


# ---- times -----------------------------------------------------------------------------------------------------------

TIME = (
    rb"[ \t]*(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?"
    rb"(Z|([+-])(\d\d)(?::?(\d\d)(?::?(\d\d))?)?)?)?[ \t]*"
)


def by_calendar(text: bytes) -> tuple[int, bool]:
    """The meaning of a text by a regular expression and Python's calendar, in exact fractions of a second."""
    match = re.fullmatch(TIME, text)
    if match is None:
        return NO_TICKS, False
    date, clock = [int(part) for part in match.group(1, 2, 3)], [int(part or 0) for part in match.group(4, 5, 6)]
    shift = [int(part or 0) for part in match.group(10, 11, 12)]
    try:
        moment = datetime.datetime(*date, *clock)
    except ValueError:
        return NO_TICKS, False
    if shift[0] > 23 or max(shift[1:]) > 59:
        return NO_TICKS, False
    elapsed = moment - datetime.datetime(1970, 1, 1)
    offset = (-1 if match[9] == b"-" else 1) * (3600 * shift[0] + 60 * shift[1] + shift[2])
    ticks = (elapsed.days * 86_400 + elapsed.seconds - offset) * 10**9 + int(Fraction(f"0.{(match[7] or b'0').decode()}") * 10**9)
    return (BEFORE if ticks < -(2**63) + 10**9 else AFTER if ticks > 2**63 - 10**9 else ticks), match[8] is not None


def digits(most, width=2):
    return st.integers(0, most).map(lambda k: f"{k:0{width}d}".encode())


@st.composite
def nearly_times(draw):
    """Texts of the grammar, some with parts that are out of range, cut short, or with a byte changed."""
    text = draw(st.sampled_from([b"2026", b"2024", b"1900", b"2000", b"0000", b"0001", b"9999", b"1677", b"2262", b"1969"]))
    text += b"-" + draw(digits(14)) + b"-" + draw(digits(32))
    if draw(st.booleans()):
        text += draw(st.sampled_from([b"T", b" ", b"T", b"t", b"  "])) + draw(digits(25))
        for _ in range(draw(st.integers(0, 2))):
            text += b":" + draw(digits(61))
        if draw(st.booleans()):
            text += b"." + b"".join(draw(st.lists(digits(9, 1), max_size=11)))
        text += draw(
            st.sampled_from(
                [b"", b"Z", b"z", b"+05", b"-05:30", b"+0530", b"+23:59:59", b"-00:00", b"+24", b"+05:60", b"+05:", b"+5"]
            )
        )
    place = draw(st.one_of(st.none(), st.integers(0, len(text) - 1)))
    if place is not None and draw(st.booleans()):
        text = text[:place] + draw(st.sampled_from([b"", b" ", b"0", b"-", b"\0", b"\xd9"])) + text[place + 1 :]
    return draw(st.sampled_from([b"", b" ", b"\t"])) + text


@settings(max_examples=1000)
@given(st.lists(st.one_of(nearly_times(), st.binary(max_size=30)), max_size=20))
@example(
    [b"now", b"today", b"NaT", b"", b"20260302T0630", b"2026-03", b"2026-W10-1", b"03/02/2026", b"2026-03-02T24:00", b"2026-03-02Z"]
)
@example([b"2024-02-29", b"2026-02-29", b"1900-02-29", b"2000-02-29", b"2026-03-02T06:30:60", b"2026-03-02T06:30+05:00:30"])
def test_times_are_those_of_the_grammar(texts):
    ticks, aware = Texts.of(texts).times()
    assert list(zip(ticks.tolist(), aware.tolist(), strict=True)) == [by_calendar(text) for text in texts]


def test_two_gigabytes_of_text_are_refused():
    """Beyond, a span would be another one: (2^32 + 5, 2^32 + 10) would be (5, 10)."""
    with pytest.raises(InputError, match="smaller chunk_rows"):
        Texts(np.broadcast_to(np.uint8(65), 2**31), np.array([5 << 32 | 10]))


@settings(max_examples=300)
@given(st.datetimes(timezones=st.none() | st.timezones().filter(lambda zone: zone.key != "Factory")))
def test_times_are_those_of_python(moment):
    """What `isoformat` writes and `fromisoformat` reads, by definition, in all zones; old offsets have seconds."""
    text = moment.isoformat()
    moment = datetime.datetime.fromisoformat(text)
    (tick,), (aware,) = Texts.of([text.encode()]).times()
    assert aware == (moment.tzinfo is not None)
    origin = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC if aware else None)
    expected = (moment - origin) // datetime.timedelta(microseconds=1) * 1000
    assert tick == (BEFORE if expected < -(2**63) + 10**9 else AFTER if expected > 2**63 - 10**9 else expected)


# ---- fields ----------------------------------------------------------------------------------------------------------


def fields_of(path, names, line):
    """The named fields of the one line of a file, None if it was dropped."""
    path.write_bytes(b",".join(name.encode() for name in names) + b"\n" + line + b"\n")
    (found,) = read_lines(path, names, names, 10)
    texts = [found.fields[name] for name in names]
    if len(found.dropped):
        return None
    return [[text.buffer[span >> 32 : span & 0xFFFFFFFF].tobytes() for span in text.spans.tolist()] for text in texts]


@settings(max_examples=1000)
@given(st.lists(st.sampled_from([b'"', b'"', b",", b",", b"a", b" ", b"\0", b"\xff", b"'", b"\xc3\xa9"]), min_size=1, max_size=14))
def test_fields_are_those_of_the_csv_module(tmp_path_factory, parts):
    """Where the two agree by definition: one line, no carriage return, strict quotation marks."""
    line, names = b"".join(parts), ["a", "b", "c"]
    try:
        (expected,) = csv.reader([line.decode("latin-1")], strict=True)
    except csv.Error:
        expected = None
    if expected is not None:
        extra, expected = expected[3:], [*expected, "", ""][:3]
        expected = None if any(extra) else [[field.encode("latin-1")] for field in expected]
    assert fields_of(tmp_path_factory.getbasetemp() / "one.csv", names, line) == expected


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (b"\xef\xbb\xbfa,b\r\n1,2\r\n", ["a", "b"]),
        (b'"a ""b""",c', ['a "b"', "c"]),
        (b"gr\xf6\xdfe,\xef\xbb\xbfb\n", ["gr\udcf6\udcdfe", "\ufeffb"]),
        (b"a,,a\n", ["a", "", "a"]),
        (b"x" * LONGEST + b"\n", ["x" * LONGEST]),
    ],
)
def test_headers(tmp_path, content, columns):
    (tmp_path / "events.csv").write_bytes(content)
    assert read_header(tmp_path / "events.csv") == columns


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "must begin with a line of column names"),
        (b"\n1,2\n", "must begin with a line of column names"),
        (b"\xef\xbb\xbf", "must begin with a line of column names"),
        (b'"a,b\n1,2\n', "must begin with a line of column names"),
        (b"x" * (LONGEST + 1) + b"\n", "must begin with a line of column names"),
        ("a,b\n".encode("utf-16"), "is text in UTF-16; expected UTF-8"),
    ],
)
def test_files_without_a_header_are_refused(tmp_path, content, fault):
    (tmp_path / "events.csv").write_bytes(content)
    with pytest.raises(ValueError, match=fault) as caught:
        read_header(tmp_path / "events.csv")
    assert caught.value.__context__ is None


# ---- a line means the same wherever it stands ------------------------------------------------------------------------

NAMES = ["person", "lon", "lat", "time"]
PLACES = [
    b"-75.0,40.7",
    b"-74.0,40.7",
    b" -73.9 ,\t40.8",
    b"2.3,48.9",
    b"-74.0,91",
    b"east,40.7",
    b",",
    b"1e400,0",
    b"-0.74e2,+40.70000000000000000001",
]
MOMENTS = [
    b"2026-03-02T06:30",
    b"2026-03-02T06:30+05:00",
    b"2026-03-02T06:30+05:00:30",
    b"2026-03-02 12:00:00.5Z",
    b"2026-03-02",
    b"now",
    b"today",
    b"",
    b"9999-12-31",
    b"1600-01-01",
    b"2026-03-02T05:59:59.999999999",
    b"NaT",
    b"2026-03-02T23:59-00:01",
]
PEOPLE = [
    b"ann",
    b"Ann",
    b" ann",
    b"ann ",
    b"          12",
    b"  12",
    b"12",
    b"012",
    b"12.0",
    b"nan",
    b"NA",
    b"None",
    b"",
    b" ",
    b"a\0b",
    b"a\0c",
    b"a",
    b"\0",
    b"\0\0",
    b"Andr\xe9",
    b"Andr\xe8",
    b"Andr\xc3\xa9",
    b"\xcf\xe5\xf2\xf0",
    b"\xc8\xe2\xe0\xed",
    b"\xff",
    b"\xfe",
    b"\xef\xbf\xbd",
    b"\xef\xbb\xbfann",
    b"\xed\xa0\x80",
    b'"Doe, Ann"',
    b'"Doe, ""Ann"""',
    b'Doe "Ann"',
    b'"open',
    b'"closed"x',
    b'""',
    b"'q'",
    b"\rann",
    b"an\rn",
    b"\x1a",
    b"\x0c",
    b"\x85",
    b"\xe2\x80\xa8",
    b"\x0b",
    b"#ann",
    b"//",
    b"ann\\",
    b"\\,",
    b"\t",
]


def nasty_lines(rng) -> list[bytes]:
    """Some thousands of lines: ids with some of the places and times, lengths around the limit, blanks, odd counts of fields."""
    pool = [
        b",".join([person, place, moment])
        for person in PEOPLE
        for place in PLACES
        for moment in rng.permutation(np.array(MOMENTS, object))[:6]
    ]
    pool += [b" " * k + b"12,-74.0,40.7,2026-03-02T06:30" for k in range(64)]
    pool += [b"ann,-74.0,40.7,2026-03-02T06:30" + tail for tail in (b",", b",,", b",x", b',""', b',"', b"\r", b"\r\r", b",\r")]
    pool += [
        b"",
        b"\r",
        b"\r\r",
        b",",
        b",,,",
        b",,,,",
        b'"',
        b'"\r',
        b"ann",
        b"ann,",
        b"ann,-74.0",
        b"ann,-74.0,40.7",
        b" ,,,",
        b"\t",
        b"\0",
    ]
    body = b",-74.0,40.7,2026-03-02T06:30"
    pool += [b"x" * (LONGEST - len(body) + k) + body for k in (-2, -1, 0, 1, 2)] + [
        b"y" * (LONGEST - len(body)) + body + b"\r",
        b'"' + b"z" * 200_000,
    ]
    pool += [bytes(rng.integers(0, 256, rng.integers(1, 60), dtype=np.uint8)).replace(b"\n", b"") for _ in range(800)]
    assert not any(b"\n" in line for line in pool)
    return pool


def by_hushgraph(path, chunk_rows=1_000_000):
    """(lines of rows, their ids, their cells)."""
    reader = open_rows(GLOBE, path, unit="person", time="time", windows=HOURS, max_distance=20_000)
    found = list(reader.rows(chunk_rows))
    numbers, units, cells = (
        np.concatenate([getattr(rows, name) for rows in found] or [[]]).astype(int) for name in ("numbers", "units", "cells")
    )
    ids = np.array([id_[1] for id_ in ids_of(reader.codes)] + [b""], dtype=object)
    return numbers, ids[units], cells


def by_csv_module(path):
    """A reader with one of the old defects: a quotation mark may swallow the next lines."""
    rows, numbers = [], []
    reader = csv.reader(io.StringIO(path.read_bytes().decode("latin-1"), newline=""))
    next(reader)
    for row in reader:
        rows.append([*(field.encode("latin-1") for field in row), b"", b"", b"", b""][:4])
        numbers.append(reader.line_num)
    return (np.array(numbers), *meanings_of_columns({name: [row[k] for row in rows] for k, name in enumerate(NAMES)}))


def by_pandas(path):
    """A reader with another of the old defects: pandas loses blanks where its buffer ends."""
    table = pd.read_csv(
        path,
        dtype=str,
        na_filter=False,
        quoting=csv.QUOTE_NONE,
        encoding="latin-1",
        skip_blank_lines=True,
        header=None,
        names=range(4),
        usecols=range(4),
        index_col=False,
        on_bad_lines="skip",
    ).iloc[1:]
    columns = {name: [text.encode("latin-1") for text in table[k]] for k, name in enumerate(NAMES)}
    return (np.arange(2, len(table) + 2), *meanings_of_columns(columns))


def meanings_of_columns(columns):
    reader = open_rows(GLOBE, columns, unit="person", time="time", windows=HOURS, max_distance=20_000)
    rows = list(reader.rows(1_000_000))
    ids = np.array([id_[1] for id_ in ids_of(reader.codes)] + [b""], dtype=object)
    return ids[np.concatenate([part.units for part in rows])], np.concatenate([part.cells for part in rows])


def meanings_alone(read, pool, path):
    """(is a row, its id, its cell) of each line of the pool, read in a file of its own."""
    found = np.zeros(len(pool), dtype=bool), np.full(len(pool), b"", dtype=object), np.zeros(len(pool), dtype=int)
    for k, line in enumerate(pool):
        path.write_bytes(b"person,lon,lat,time\n" + line + b"\n")
        numbers, ids, cells = read(path)
        assert len(numbers) <= 1
        if len(numbers):
            found[0][k], found[1][k], found[2][k] = True, ids[0], cells[0]
    return found


def wrong_rows(read, pool, alone, order, path) -> int:
    """How many lines mean something else in a file of pool[order] than alone."""
    content = b"person,lon,lat,time\n" + b"".join(pool[k] + b"\n" for k in order)
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    numbers, ids, cells = read(path)
    is_row, expected_ids, expected_cells = (values[order] for values in alone)
    rows = numbers - 2
    seen = np.zeros(len(order), dtype=bool)
    seen[rows] = True
    return int((seen != is_row).sum() + ((ids != expected_ids[rows]) | (cells != expected_cells[rows])).sum())


@pytest.fixture(scope="module")
def pool():
    return nasty_lines(np.random.default_rng(0))


@pytest.fixture(scope="module")
def alone(pool, tmp_path_factory):
    return meanings_alone(by_hushgraph, pool, tmp_path_factory.mktemp("alone") / "one.csv")


FILES = [  # rows, bytes read at a time, rows in memory at a time
    (400_000, lines.BLOCK, 1_000_000),
    (200_000, 1 << 18, 1_000_000),
    (150_000, 4097, 1_000_000),
    (100_000, 65_537, 777),
    (100_000, LONGEST, 1_000_000),
    (60_000, 61, 1_000_000),
    (40_000, 1 << 20, 3),
]


def test_a_line_means_the_same_wherever_it_stands(pool, alone, tmp_path, monkeypatch):
    """Over a million rows in seven files, the first of many megabytes, with boundaries of blocks in all kinds of lines."""
    rng, total = np.random.default_rng(1), 0
    assert 0.5 < alone[0].mean() < 1
    assert len(set(alone[1])) > 500
    assert {-4, -3, -2, -1} < set(alone[2].tolist())
    long = np.array([len(line) > 1000 for line in pool])
    for number, (n_rows, block, chunk_rows) in enumerate(FILES):
        monkeypatch.setattr(lines, "BLOCK", block)
        order = rng.choice(len(pool), n_rows, p=np.where(long, 0.1, 1) / np.where(long, 0.1, 1).sum())
        path = tmp_path / ("events.csv.gz" if number % 2 else "events.csv")
        assert wrong_rows(lambda path, rows=chunk_rows: by_hushgraph(path, rows), pool, alone, order, path) == 0, FILES[number]
        total += n_rows
    assert total >= 1_000_000


@pytest.mark.parametrize("broken", [by_csv_module, by_pandas])
def test_readers_with_old_defects_are_caught(broken, tmp_path):
    """Negative controls of the test above, on lines that each of them reads well when they are alone."""
    people = [b"ann", b" " * 40 + b"12", b" " * 60 + b"12", b"eve"] + ([b'"open', b'q"'] if broken is by_csv_module else [])
    pool = [person + b",-74.0,40.7,2026-03-02T06:30" for person in people]
    order = np.random.default_rng(2).integers(0, len(pool), 60_000)
    alone = meanings_alone(broken, pool, tmp_path / "one.csv")
    assert alone[0].all()
    assert wrong_rows(broken, pool, alone, order, tmp_path / "events.csv") > 0
    assert (
        wrong_rows(by_hushgraph, pool, meanings_alone(by_hushgraph, pool, tmp_path / "one.csv"), order, tmp_path / "events.csv")
        == 0
    )


# ---- different ids stay different ------------------------------------------------------------------------------------


def replaced(id_: bytes) -> bytes:
    return id_.decode("utf-8", "replace").encode()


def cut_at_nul(id_: bytes) -> bytes:
    return id_.partition(b"\0")[0]


def stripped(id_: bytes) -> bytes:
    return id_.strip()


def merged_ids(ids, path, damage=bytes) -> int:
    """How many of these different ids become one with another when they are read from a file."""
    quoted = [b'"' + damage(id_).replace(b'"', b'""') + b'"' for id_ in ids]
    path.write_bytes(b"person,node\n" + b"".join(id_ + b",0\n" for id_ in quoted))
    reader = open_rows(PATH, path, unit="person")
    units = np.concatenate([rows.units for rows in reader.rows(1000)])
    assert len(units) == len(ids)
    return len(ids) - len(np.unique(units))


ID = st.binary(min_size=1, max_size=6).filter(lambda id_: b"\n" not in id_)


@settings(max_examples=300)
@given(
    st.sets(
        st.one_of(ID, st.lists(st.sampled_from([b" ", b"\0", b'"', b"a", b"\xe9", b"\xff"]), min_size=1, max_size=4).map(b"".join)),
        min_size=2,
    )
)
def test_different_ids_stay_different(tmp_path_factory, ids):
    assert merged_ids(sorted(ids), tmp_path_factory.getbasetemp() / "ids.csv") == 0


@pytest.mark.parametrize("damage", [replaced, cut_at_nul, stripped])
def test_damaged_ids_are_caught(damage, tmp_path):
    ids = [bytes([97, a, b]) for a in range(256) for b in range(256) if 10 not in (a, b)]
    assert merged_ids(ids, tmp_path / "ids.csv") == 0
    assert merged_ids(ids, tmp_path / "ids.csv", damage) > 0


# ---- what went wrong before ------------------------------------------------------------------------------------------


def counted(path, **options):
    return count_events(PATH, path, unit="person", **CAPS, **options).counts


def test_the_offset_of_one_row_moves_nobody(tmp_path):
    """With pandas 2.2 and 2.3 everybody after the first row, which is itself dropped, was moved by five hours."""
    hours, path = [f"2026-03-02T{hour:02d}:00" for hour in range(24)], tmp_path / "events.csv"
    others = "".join(f"p{i},0,2026-03-02T{i % 23:02d}:30\n" for i in range(5000))
    caps = {"unit": "person", "adjacency": "add-remove", "max_cells": 1, "max_per_cell": 1, "time": "time", "windows": hours}
    path.write_text("person,node,time\n" + others)
    before = count_events(PATH, path, **caps).counts
    assert before.sum() == 5000
    for offset in ("+05:00", "+05:00:30", "Z", "-23:59:59"):
        path.write_text(f"person,node,time\nx,0,2026-03-02T06:30{offset}\n" + others)
        np.testing.assert_array_equal(count_events(PATH, path, **caps).counts, before)
        frame = pd.read_csv(path, dtype=str)
        for events in (frame, frame.astype(object), {name: frame[name].tolist() for name in frame}):
            np.testing.assert_array_equal(count_events(PATH, events, **caps).counts, before)


def test_now_and_today_are_no_times(tmp_path):
    (tmp_path / "events.csv").write_text("person,node,time\na,0,now\nb,0,today\nc,0,2026-03-02\n")
    caps = {"unit": "person", "adjacency": "add-remove", "max_cells": 1, "max_per_cell": 1, "time": "time"}
    assert count_events(PATH, tmp_path / "events.csv", windows=["1990-01-01", "2200-01-01"], **caps).counts.sum() == 1


def test_leading_blanks_are_kept_in_large_files(tmp_path):
    """One row more moved the boundary of a buffer, where blanks were lost: 33 phantom people appeared for one."""
    path = tmp_path / "events.csv"
    rows = [f"{' ' * (10 + i % 40)}{i % 1000},{i % 4}\n" for i in range(120_000)]
    expected = len({row.partition(",")[0] for row in rows})
    for first in ("", "x,0\n", "xx,0\n"):
        path.write_text("person,node\n" + first + "".join(rows))
        assert path.stat().st_size > 2_000_000
        assert counted(path).sum() == expected + bool(first)


def test_ids_in_other_encodings_are_not_merged(tmp_path):
    path = tmp_path / "events.csv"
    path.write_bytes("person,node\nAndré,0\nAndrè,1\n".encode("latin-1"))
    assert counted(path).tolist() == [1, 1, 0, 0]
    names = ["Анна", "Иван", "Олег", "Вера", "Нина", "Петр", "Юрий", "Яков", "Лида", "Роза"]
    path.write_bytes(("person,node\n" + "".join(f"{name},0\n" for name in names)).encode("cp1251"))
    assert counted(path).sum() == len(names)


def test_nul_cuts_no_id(tmp_path):
    (tmp_path / "events.csv").write_bytes(b"person,node\na\0b,0\na\0c,0\na,0\n\0,0\n\0\0,0\n")
    assert counted(tmp_path / "events.csv").sum() == 5


def test_a_line_without_end_does_not_fill_the_memory(tmp_path):
    """300 MB in a file of 300 kB; the line is dropped, the others are read."""
    path = tmp_path / "events.csv.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(b"person,node\nann,1\n")
        for _ in range(300):
            file.write(b"x" * 2**20)
        file.write(b"\nbob,2\n")
    counted(path)  # loops are compiled before memory is measured
    tracemalloc.start()
    counts = counted(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counts.tolist() == [0, 1, 1, 0]
    assert peak < 6 * lines.BLOCK
