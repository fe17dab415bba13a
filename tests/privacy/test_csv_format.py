"""Declared formats of text files: nothing is guessed, and a line means the same wherever it stands."""

import datetime

import numpy as np
import pytest
from hypothesis import given, strategies as st

import hushgraph as hg
from hushgraph._errors import InputError
from hushgraph.graphs import Outlines
from hushgraph.privacy import CsvFormat, check_events, count_events, text_lines as lines
from hushgraph.privacy.csv_format import TimeFormat
from hushgraph.privacy.event_rows import open_rows

from .coupling import ids_of

GLOBE = hg.Graph.from_edges([(0, 1)], n=3, coords=[[-74.0, 40.7], [-73.9, 40.8], [2.3, 48.9]], crs="lonlat")
EUROPEAN = CsvFormat(delimiter=";", decimal=",", time_format="%d/%m/%Y %H:%M", encoding="cp1252")
HOURS = [f"2026-03-02T{hour:02d}:00" for hour in range(0, 24, 6)]
CAPS = {"unit": "person", "adjacency": "add-remove", "max_nodes": 1, "max_per_node": 1}
HEADER = b"person;lon;lat;time\n"


def meanings(path, chunk_rows=1_000_000, form=EUROPEAN):
    """(line, id, cell) of each row."""
    reader = open_rows(GLOBE, path, unit="person", time="time", windows=HOURS, max_distance=20_000, csv_format=form)
    rows = list(reader.rows(chunk_rows))
    ids = [*(id_ for _, id_ in ids_of(reader.codes)), b""]
    return [
        (number, ids[unit], cell)
        for part in rows
        for number, unit, cell in zip(part.numbers.tolist(), part.units.tolist(), part.cells.tolist(), strict=True)
    ]


# ---- what a line means ---------------------------------------------------------------------------------------------------


def test_a_european_file_has_the_counts_of_its_plain_twin(tmp_path):
    (tmp_path / "a.csv").write_bytes(
        HEADER + "Müller;-74,0;40,7;2/3/2026 06:30\nMüller;2,3;48,9;02/03/2026 7:00\nZoë;2,30;48,9;1/3/2026 7:00\n".encode("cp1252")
    )
    (tmp_path / "b.csv").write_text(
        "person,lon,lat,time\nMüller,-74.0,40.7,2026-03-02T06:30\nMüller,2.3,48.9,2026-03-02T07:00\nZoë,2.30,48.9,2026-03-01T07:00\n", encoding="utf-8"
    )  # fmt: skip
    assert meanings(tmp_path / "a.csv") == meanings(tmp_path / "b.csv", form=None)
    assert [cell for *_, cell in meanings(tmp_path / "a.csv")] == [1, 7, -4]


def test_names_of_columns_and_nodes_are_in_the_encoding(tmp_path):
    graph = hg.Graph.from_edges([(0, 1)], labels=["Köln", "Łódź"])
    (tmp_path / "a.csv").write_bytes("person;straße\n1;Köln\n2;Köln\n3;K?ln\n".encode("cp1252"))
    counts = count_events(graph, tmp_path / "a.csv", node="straße", csv_format=CsvFormat(delimiter=";", encoding="cp1252"), **CAPS)
    assert counts.counts.tolist() == [2, 0]
    (tmp_path / "b.csv").write_bytes("person,straße\n1,Łódź\n".encode("cp1250"))
    counts = count_events(graph, tmp_path / "b.csv", node="straße", csv_format=CsvFormat(encoding="cp1250"), **CAPS)
    assert counts.counts.tolist() == [0, 1]


@given(st.lists(st.binary(max_size=6).map(lambda text: text.translate(None, b'\r\n;"')), unique=True, min_size=1, max_size=20))
def test_different_ids_stay_different_in_every_encoding(tmp_path_factory, ids):
    path = tmp_path_factory.mktemp("ids") / "a.csv"
    path.write_bytes(b"person;node\n" + b"".join(id_ + b";0\n" for id_ in ids))
    for encoding in ("cp1252", "latin-1", "cp1250", "koi8-r", "ascii"):
        reader = open_rows(GLOBE, path, unit="person", csv_format=CsvFormat(delimiter=";", encoding=encoding))
        list(reader.rows(3))
        assert len(reader.codes) == sum(id_ != b"" for id_ in ids)


def nasty_lines(rng) -> list[bytes]:
    """Lines in the format and near it: other delimiters, decimal signs and times, quotation marks, bytes of no character."""
    people = [b"ann", b"M\xfcller", b"\x81", b'"a;b"', b'"a""b"', b'"open', b'q"', b"a,b", b"", b" 7", b"7.0", b"7,0", b"\xff\xfe"]
    lons = [b"-74,0", b"-74.0", b"2,3", b"2.3", b"-73,9 ", b"1.234,5", b"", b'"2,3"', b"-7,4e1", b",5"]
    lats = [b"40,7", b"48,9", b"48,90", b"48.9", b"40,7,1", b" 48,9", b"1,234.5", b"91,0"]
    times = [
        b"2/3/2026 06:30",
        b"02/03/2026 6:30",
        b"3/2/2026 6:30",
        b"2026-03-02T06:30",
        b"31/2/2026 1:00",
        b"2/3/26 1:00",
        b"2/3/2026",
        b"2/3/2026 24:00",
        b"\t2/3/2026 12:00 ",
    ]
    ends = [b"", b";", b";x", b"\r", b";;", b'"']
    pool = []
    for _ in range(1500):
        line = b";".join(part[rng.integers(len(part))] for part in (people, lons, lats, times))
        line += ends[rng.integers(len(ends))] if rng.random() < 0.2 else b""
        if rng.random() < 0.2:
            place = rng.integers(len(line))
            line = line[:place] + bytes([rng.integers(256)]) + line[place + 1 :]
        pool.append(line.replace(b"\n", b"?"))
    return [*pool, b"x" * 70_000, b"\xfc" * 40_000 + b";2,3;48,9;2/3/2026 1:00"]  # the last is too long in UTF-8


def test_no_line_changes_how_another_is_read(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    pool, path, alone = nasty_lines(rng), tmp_path / "a.csv", []
    for line in pool:
        path.write_bytes(HEADER + line + b"\n")
        found = meanings(path)
        assert len(found) <= 1
        alone.append(found[0][1:] if found else None)
    assert {cell for _, cell in filter(None, alone)} >= {1, 7, -1, -2, -3}
    assert None in alone
    for n_rows, block, chunk_rows in (
        (40_000, lines.BLOCK, 1_000_000),
        (15_000, 4097, 1_000_000),
        (10_000, 61, 777),
        (5000, 1 << 18, 3),
    ):
        monkeypatch.setattr(lines, "BLOCK", block)
        order = rng.integers(0, len(pool) - (2 if block < 100 else 0), n_rows)
        path.write_bytes(HEADER + b"".join(pool[k] + b"\n" for k in order))
        expected = [(row + 2, *alone[k]) for row, k in enumerate(order) if alone[k] is not None]
        assert meanings(path, chunk_rows) == expected


def test_the_format_is_not_guessed(tmp_path):
    """Points are no numbers where commas are declared, and the other way round; so are times."""
    for form, number in ((CsvFormat(delimiter=";", decimal=","), "2.3"), (CsvFormat(delimiter=";"), "2,3")):
        (tmp_path / "a.csv").write_text(f"person;lon;lat\na;{number};{number}\n")
        reader = open_rows(GLOBE, tmp_path / "a.csv", unit="person", csv_format=form)
        assert next(reader.rows(9)).cells.tolist() == [-1]


# ---- formats of times ------------------------------------------------------------------------------------------------------


@given(st.datetimes(datetime.datetime(1969, 1, 1), datetime.datetime(2068, 12, 31)), st.booleans())
def test_times_are_those_of_strptime(moment, padded):
    """Written with and without leading zeros."""
    for form in ("%d/%m/%Y %H:%M", "%Y%m%d%H%M%S", "%m-%d-%y %I:%M:%S %p", "%d.%m.%Y", "%Y-%m-%d %H:%M:%S.%f", "%H:%M %% %d %m %Y"):
        text = moment.strftime(form)
        if not padded and "%Y%m" not in form:
            text = "/".join(part.lstrip("0") or "0" for part in text.split("/")) if form == "%d/%m/%Y %H:%M" else text
        expected = datetime.datetime.strptime(text, form)
        assert datetime.datetime.fromisoformat(TimeFormat(form).iso(text.encode()).decode()) == expected


@pytest.mark.parametrize(
    "text",
    [b"", b"now", b"31/12/2026", b"31/12/2026 10:00:00", b"131/12/2026 10:00", b"31/12/2026 10:00\n", b"\xd9\xa3/1/2026 1:00"],
)
def test_other_texts_are_no_times(text):
    assert TimeFormat("%d/%m/%Y %H:%M").iso(text) == b""


def test_offsets_and_hours_of_half_days():
    assert TimeFormat("%d/%m/%Y %H:%M %z").iso(b"1/2/2026 3:04 +0100") == b"2026-02-01T03:04:00+0100"
    assert [TimeFormat("%d/%m/%Y %I %p").iso(b"1/2/2026 " + hour) for hour in (b"12 AM", b"12 pm", b"0 AM", b"13 PM")] == [
        b"2026-02-01T00:00:00", b"2026-02-01T12:00:00", b"", b"",
    ]  # fmt: skip


def test_blanks_around_a_format_mean_nothing():
    """They are stripped off the times, so a format that kept its own would match no row."""
    for text in ("%d/%m/%Y ", " %d/%m/%Y"):
        assert CsvFormat(time_format=text).times.iso(b"05/01/2013") == b"2013-01-05T00:00:00"


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "%d/%m",
        "%Y-%m-%d %Q",
        "%Y-%m-%d%",
        "%Y-%m-%d %d",
        "%Y-%m-%d %M",
        "%Y-%m-%d %I",
        "%Y %y %m %d",
        7,
        "%Y-%m-%d\n",
        "%Y-%m-%d\ud800",
    ],
)
def test_formats_that_cannot_be_used_are_refused(wrong):
    with pytest.raises(InputError, match="time_format must"):
        CsvFormat(time_format=wrong)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ""}, "one ASCII character"),
        ({"delimiter": "ab"}, "one ASCII character"),
        ({"delimiter": "1"}, "one ASCII character"),
        ({"delimiter": '"'}, "one ASCII character"),
        ({"decimal": ";"}, "decimal"),
        ({"encoding": []}, "the name of an encoding"),
        ({"decimal": ","}, "another character than the decimal sign"),
        *(
            ({"encoding": name}, "one byte per character")
            for name in ("utf-16", "gbk", "shift_jis", "utf-7", "hex", "no such", "cp037", "hz")
        ),
    ],
)
def test_other_formats_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        CsvFormat(**options)


# ---- where a format is not for -----------------------------------------------------------------------------------------------


def test_tables_have_no_format(tmp_path):
    table = {"person": ["a"], "node": [0]}
    for events in (table, [table]):
        with pytest.raises(InputError, match=r"are for \.csv files"):
            count_events(GLOBE, events, csv_format=EUROPEAN, **CAPS)
    with pytest.raises(TypeError, match=r"csv_format must be a privacy\.CsvFormat"):
        count_events(GLOBE, table, csv_format=";", **CAPS)


def test_the_check_knows_the_format_and_names_it(tmp_path):
    row = "p{};-74,0;40,7;2/3/2026 06:30\n"
    path = tmp_path / "a.csv"
    path.write_text("person;lon;lat;time\n" + "".join(row.format(k % 30) for k in range(100)))
    caps = {"unit": "person", "max_cells": 1, "max_per_cell": 1, "time": "time", "windows": HOURS}
    good = check_events(GLOBE, path, csv_format=EUROPEAN, **caps)
    assert (good.counted, good.hints) == (30, ())
    points = check_events(GLOBE, path, csv_format=CsvFormat(delimiter=";", time_format="%d/%m/%Y %H:%M"), **caps)
    assert any("--decimal ," in hint for hint in points.hints)
    plain = check_events(GLOBE, path, csv_format=CsvFormat(delimiter=";", decimal=","), **caps)
    assert any("--time-format" in hint for hint in plain.hints)
    with pytest.raises(InputError, match=r"among their 1 columns.*if another character than a comma"):
        check_events(GLOBE, path, lon="lon", lat="lat", **caps)


# ---- usual names -------------------------------------------------------------------------------------------------------------


def test_the_names_of_taxi_files_are_known(tmp_path):
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    outlines = Outlines.of([[[square]], [[square + [1, 0]]]])
    zones = hg.Graph.from_edges([(0, 1)], labels=[4, 13], coords=[(0.5, 0.5), (1.5, 0.5)], outlines=outlines)
    windows = {"max_cells": 1, "max_per_cell": 1, "windows": HOURS}
    for time in ("tpep_pickup_datetime", "lpep_pickup_datetime", "pickup_datetime"):
        table = {
            "PULocationID": [13, 4],
            "DOLocationID": [4, 4],
            time: ["2026-03-02 06:30:00", "2026-03-02 00:10:00"],
            "person": [1, 2],
        }
        counts = count_events(zones, table, unit="person", adjacency="add-remove", **windows)
        assert counts.counts.tolist() == [[1, 0, 0], [0, 1, 0]]
    for node in ("zone", "zone_id"):
        assert count_events(zones, {"person": [1], node: [4]}, **CAPS).counts.tolist() == [1, 0]
    for lon, lat in (("Pickup_longitude", "Pickup_latitude"), ("pickup_longitude", "pickup_latitude")):
        assert count_events(GLOBE, {"person": [1], lon: [2.3], lat: [48.9]}, **CAPS).counts.tolist() == [0, 0, 1]
    both = {"person": [1], "lon": [2.3], "lat": [48.9], "zone": ["x"]}
    assert count_events(GLOBE, both, **CAPS).counts.tolist() == [0, 0, 1]
