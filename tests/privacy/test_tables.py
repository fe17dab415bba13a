"""Tables: a row means the same whatever rows are around it, and no value refuses a table or shows up in an error."""

import datetime
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

import hushgraph as hg
from hushgraph.privacy import typed_columns as columns, unit_ids as units
from hushgraph.privacy.counting import count_events
from hushgraph.privacy.event_rows import open_rows
from hushgraph.privacy.text_lines import AFTER, BEFORE, NO_TICKS
from hushgraph.privacy.typed_columns import as_column

from .coupling import ids_of

PATH = hg.Graph.from_edges([(0, 1), (1, 2), (2, 3)], n=4)
GLOBE = hg.Graph.from_edges([(0, 1)], n=3, coords=[[-74.0, 40.7], [-73.9, 40.8], [2.3, 48.9]], crs="lonlat")
HOURS = [f"2026-03-02T{hour:02d}:00" for hour in range(0, 24, 6)]
CAPS = {"adjacency": "add-remove", "max_nodes": 1, "max_per_node": 1}
UTC, LOCAL = datetime.UTC, datetime.timezone(datetime.timedelta(hours=5, seconds=30))


def text_array(values, is_text=True):
    """An Arrow array of strings that need not be UTF-8, which files of other programs hold; None is null."""
    binary = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string() if is_text else pa.binary(), len(binary), binary.buffers())


# ---- a row means the same whatever is around it ------------------------------------------------------------------------

BYTES = [
    b"ann",
    b" ann",
    b"Andr\xe9",
    b"Andr\xe8",
    b"\xff",
    b"a\0b",
    b"a\0",
    b"a",
    b"",
    None,
    b"\xed\xa0\x80",
    b"nan",
    b"7",
    b"x" * 70_000,
]
OBJECTS = [
    "ann",
    b"ann",
    7,
    7.0,
    "7",
    Decimal("7.00"),
    0.5,
    Decimal("0.5"),
    2**53,
    2.0**53,
    2**70,
    np.int8(7),
    np.float32(7),
    np.float16(0.5),
    True,
    None,
    pd.NA,
    pd.NaT,
    np.nan,
    Decimal("sNaN"),
    Decimal("NaN"),
    [1],
    ([1],),
    {},
    object,
    1j,
    "",
    b"",
    "\ud800",
    "a\0b",
    "a\0",
    uuid.UUID(int=7),
    datetime.date(2026, 3, 2),
    np.datetime64("2026-03-02"),
    Decimal("1e999999"),
    -0.0,
    0,
    float("inf"),
    "x" * 70_000,
]
IDS = {
    "objects": OBJECTS,
    "text of pandas": pd.Series(["ann", "Ann", None, "", "a\0b", "a\0c", "é"], dtype="str"),
    "text of Python": pd.Series(["ann", "Ann", None, "", "a\0b", "a\0c", "é"], dtype=pd.StringDtype("python")),
    "integers": np.array([7, -7, 2**62, 2**62 + 1, -(2**63)]),
    "unsigned": np.array([7, 2**63, 2**64 - 1, 2**63 - 1], dtype=np.uint64),
    "integers with gaps": pd.array([7, None, 2**53 + 1, 2**53], dtype="Int64"),
    "float64": np.array([7.0, -0.0, 0.5, 2.0**53 - 1, 2.0**53, np.nan, np.inf]),
    "float32": np.array([7.0, 0.5, 2**24 - 1, 2**24, np.nan], dtype=np.float32),
    "float16": np.array([7.0, 0.5, 2**11 - 1, 2**11, np.nan], dtype=np.float16),
    "Arrow text": text_array(BYTES),
    "Arrow bytes": text_array(BYTES, is_text=False),
    "Arrow dictionary": text_array(BYTES[:-1]).dictionary_encode(),
    "Arrow decimals": pa.array([Decimal("7.00"), Decimal("0.50"), None, Decimal("-1.25")], pa.decimal128(9, 2)),
    "Arrow integers": pa.array([7, None, 2**62 + 1], pa.int64()),
    "fixed width": pa.array([b"ab", b"\xff\0", None], pa.binary(2)),
    "categories": pd.Series(["ann", None, "bob"], dtype="category"),
    "categories of numbers": pd.Series([7, 8, 7.5], dtype="category"),
}
TIMES = {
    "objects": [
        "2026-03-02T06:30",
        b"2026-03-02T06:30",
        "2026-03-02T06:30+05:00",
        "2026-03-02T06:30Z",
        "now",
        "today",
        None,
        pd.NaT,
        Decimal("sNaN"),
        7,
        datetime.date(2026, 3, 2),
        datetime.datetime(2026, 3, 2, 7),
        datetime.datetime(2026, 3, 2, 7, tzinfo=UTC),
        datetime.datetime(1, 1, 1, tzinfo=LOCAL),
        pd.Timestamp("2026-03-02T12:00:00.000000001"),
        pd.Timestamp("2026-03-02", tz="Asia/Kolkata"),
        np.datetime64("2026-03-02T07"),
        np.datetime64(10**15, "D"),
        np.datetime64("NaT"),
        [1],
        object,
    ],
    "text": pd.Series(["2026-03-02T06:30", "2026-03-02T06:30+05:00:30", "now", "", None, "2026-03-02"], dtype="str"),
    "Arrow text": text_array([b"2026-03-02T06:30", b"2026-03-02T06:30Z", b"\xff", None, b"2026-03-02T06:30\0"]),
    "dates": pa.array([20_514, 20_515, 2**31 - 1, -(2**31), None], pa.int32()).cast(pa.date32()),
    "date64": pa.array([20_514 * 86_400_000, 2**62, None], pa.int64()).cast(pa.timestamp("ms")),
    "seconds": np.array(["2026-03-02T06:00", "NaT", "9999-01-01", "0001-01-01"], dtype="datetime64[s]"),
    "days": np.array([20_514, 10**15, -(10**15)], dtype="datetime64[D]"),
    "years": np.array([56, 10**15, -(10**15)], dtype="datetime64[Y]"),
    "picoseconds": np.array([1, -1, 2**63 - 1], dtype="datetime64[ps]"),
    "nanoseconds": pd.Series(np.array(["2026-03-02T06:00", "NaT", "2026-03-02T05:59:59.999999999"], dtype="datetime64[ns]")),
}
PLACES = {
    "objects": [
        "-74.0",
        b"-74.0",
        -74.0,
        np.float32(-74),
        Decimal("-74"),
        Decimal("sNaN"),
        None,
        "east",
        "1_0",
        True,
        10**400,
        -(10**400),
        [1],
        "nan",
    ],
    "float64": np.array([-74.0, np.nan, np.inf, 1e300, 2.3]),
    "float32": np.array([-74.0, np.nan], dtype=np.float32),
    "text": pd.Series(["-74.0", " -74 ", "", None, "0x10"], dtype="str"),
    "Arrow text": text_array([b"-74.0", b"\xff", None]),
    "Arrow decimals": pa.array([Decimal("-74.00"), None], pa.decimal128(9, 2)),
    "integers": pa.array([-74, None, 2], pa.int8()),
}


def at(values, rows):
    """These rows of a column, in a column of the same type."""
    if isinstance(values, list):
        return [values[row] for row in rows]
    return values.take(pa.array(rows)) if isinstance(values, pa.Array) else values.take(rows)


def meanings(ids, lon, time):
    """(kind and bytes of the id, cell) of each row."""
    columns = {"person": ids, "lon": lon, "lat": np.full(len(ids), 40.7), "time": time}
    reader = open_rows(GLOBE, columns, unit="person", time="time", windows=HOURS, max_distance=20_000)
    rows = list(reader.rows(1_000_000))
    known = [*ids_of(reader.codes), None]
    return [(known[unit], cell) for part in rows for unit, cell in zip(part.units.tolist(), part.cells.tolist(), strict=True)]


def meanings_in_place(read, columns, order):
    return read(*(at(values, order % len(values)) for values in columns))


def wrong_rows(read, columns, order):
    """How many rows mean something else together than alone."""
    sizes = [len(values) for values in columns]
    alone = {}
    for row in order.tolist():
        key = tuple(row % size for size in sizes)
        if key not in alone:
            (alone[key],) = meanings_in_place(read, columns, np.array([row]))
    together = meanings_in_place(read, columns, order)
    return sum(meaning != alone[tuple(row % size for size in sizes)] for row, meaning in zip(order.tolist(), together, strict=True))


@pytest.mark.parametrize("kind", IDS)
def test_an_id_means_the_same_whatever_is_around_it(kind):
    order = np.random.default_rng(0).integers(0, len(IDS[kind]), 20_000 if kind != "objects" else 3000)
    assert wrong_rows(meanings, (IDS[kind], PLACES["float64"][:1], TIMES["seconds"][:1]), order) == 0


@pytest.mark.parametrize("kind", TIMES)
def test_a_time_means_the_same_whatever_is_around_it(kind):
    order = np.random.default_rng(0).integers(0, len(TIMES[kind]), 20_000)
    assert wrong_rows(meanings, (["ann"], PLACES["float64"][:1], TIMES[kind]), order) == 0


@pytest.mark.parametrize("kind", PLACES)
def test_a_place_means_the_same_whatever_is_around_it(kind):
    order = np.random.default_rng(0).integers(0, len(PLACES[kind]), 20_000)
    assert wrong_rows(meanings, (["ann"], PLACES[kind], TIMES["seconds"][:1]), order) == 0


def with_a_guessed_format(ids, lon, time):
    """Broken: the format of the first time is taken for all."""
    return meanings(ids, lon, pd.to_datetime(pd.Series(time), errors="coerce").dt.tz_localize(None))


def with_one_type_for_all(ids, lon, time):
    """Broken: NumPy turns all ids into text if one of them is."""
    return meanings(np.array(ids), lon, time)


@pytest.mark.parametrize(
    ("broken", "ids", "times"),
    [
        (with_a_guessed_format, ["ann"], ["2026-03-02T06:30", "2026-03-02", "2026-03-02T06:30:00"]),
        (with_one_type_for_all, [0.5, "0.5", "x"], TIMES["seconds"][:1]),
    ],
)
def test_conversions_of_whole_columns_are_caught(broken, ids, times):
    order = np.random.default_rng(0).integers(0, 6, 100)
    assert wrong_rows(broken, (ids, PLACES["float64"][:1], times), order) > 0
    assert wrong_rows(meanings, (ids, PLACES["float64"][:1], times), order) == 0


def test_a_projected_place_means_the_same_whatever_is_around_it():
    rng = np.random.default_rng(0)
    places = np.stack([rng.normal(986_000, 50_000, 2000), rng.normal(206_000, 50_000, 2000)], axis=1)
    places[rng.choice(2000, 600)] = rng.choice([np.nan, np.inf, -np.inf, 1e12, -1e12, 1e300, 1e-300, 0.0], (600, 2))

    def cells(rows):
        events = {"p": ["a"] * len(rows), "x": places[rows, 0], "y": places[rows, 1]}
        (found,) = open_rows(GLOBE, events, unit="p", crs="EPSG:2263", max_distance=9000).rows(10**6)
        return found.cells

    alone = np.concatenate([cells([row]) for row in range(0, 2000, 4)])
    assert len(set(alone.tolist())) >= 4
    for order in (np.arange(2000), rng.permutation(2000)):
        together = np.empty(2000, dtype=int)
        together[order] = cells(order)
        np.testing.assert_array_equal(together[::4], alone)


# ---- kinds of columns --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        (TIMES["dates"], [20_514 * 86_400 * 10**9, 20_515 * 86_400 * 10**9, AFTER, BEFORE, NO_TICKS]),
        (TIMES["date64"], [20_514 * 86_400 * 10**9, AFTER, NO_TICKS]),
        (TIMES["days"], [20_514 * 86_400 * 10**9, AFTER, BEFORE]),
        (TIMES["years"], [20_454 * 86_400 * 10**9, AFTER, BEFORE]),
        (TIMES["picoseconds"], [0, -1, (2**63 - 1) // 1000]),
        (np.array([2, 10**15], dtype="datetime64[W]"), [14 * 86_400 * 10**9, AFTER]),
        (pd.Series(pd.to_datetime(["2026-03-02T06:30+05:30"])), [20_514 * 86_400 * 10**9 + 3600 * 10**9]),
    ],
)
def test_times_of_tables_are_exact_nanoseconds(values, ticks):
    assert as_column(values).ticks.tolist() == ticks


def test_arrow_tables_are_read_like_files(tmp_path):
    table = pa.table({"person": text_array(BYTES), "node": [0] * len(BYTES)})
    pq.write_table(table, tmp_path / "events.parquet", row_group_size=5)
    parts = pa.chunked_array([text_array(BYTES[:3]), text_array([]), text_array(BYTES[3:])])
    dictionaries = pa.chunked_array([part.dictionary_encode() for part in (text_array(BYTES[:3]), text_array(BYTES[3:]))])
    people = len({value for value in BYTES if value and len(value) <= 65_536})
    for events in (
        table,
        table.slice(0),
        tmp_path / "events.parquet",
        table.to_batches()[0],
        {"person": text_array(BYTES), "node": [0] * len(BYTES)},
        {"person": parts, "node": [0] * len(BYTES)},
        {"person": dictionaries, "node": [0] * len(BYTES)},
        [table, table],
        table.to_pandas(types_mapper=pd.ArrowDtype),
    ):
        assert count_events(PATH, events, unit="person", **CAPS).counts.sum() == people


def test_slices_of_arrow_arrays_keep_their_rows():
    values = pa.array(["a", None, "b", "c", None, "d"])
    for start in range(5):
        texts = as_column(values.slice(start, 2))
        found = [texts.buffer[span >> 32 : span & 0xFFFFFFFF].tobytes() for span in texts.spans.tolist()]
        assert found == [b"" if value is None else value.encode() for value in values.slice(start, 2).to_pylist()]
        numbers = as_column(pa.array([1, None, 3, 4, 5, 6]).slice(start, 2))
        assert numbers.values[numbers.known].tolist() == [[1], [3], [3, 4], [4, 5], [5, 6]][start]


INTEGERS = [0, 7, -7, 10, 2**24 - 1, -(2**24) + 1]


@pytest.mark.parametrize(
    "column",
    [
        np.array(INTEGERS),
        np.array(INTEGERS, dtype=np.int32),
        np.array(INTEGERS, dtype=">i8"),
        np.array(INTEGERS, dtype=float),
        np.array(INTEGERS, dtype=np.float32),
        [Decimal(value) for value in INTEGERS],
        pd.array(INTEGERS, dtype="Int64"),
        pd.Categorical(INTEGERS),
        pd.Categorical([*map(str, INTEGERS)]),
        pa.array(INTEGERS),
        pa.array(INTEGERS, pa.float64()),
        pa.array(INTEGERS).cast(pa.decimal128(38, 2)),
        pa.array([*map(str, INTEGERS)]),
    ],
)
def test_a_whole_number_and_its_decimal_text_are_one_id(tmp_path, column):
    """Columns of numbers, of text and text files have one set of ids, and each number is the text of itself."""
    path = tmp_path / "ids.csv"
    path.write_text("person,node\n" + "".join(f"{value},0\n" for value in INTEGERS))
    reader = open_rows(PATH, [{"person": column, "node": [0] * 6}, path], unit="person")
    first, second = reader.rows(100)
    assert first.units.tolist() == second.units.tolist() == [0, 1, 2, 3, 4, 5]
    assert ids_of(reader.codes) == [("text", str(value).encode()) for value in INTEGERS]


def test_integers_of_64_bits_are_their_decimal_text():
    for dtype in (np.int64, np.uint64, np.int8, np.uint8):
        ends = [np.iinfo(dtype).min, np.iinfo(dtype).max]
        reader = open_rows(PATH, {"person": np.array(ends, dtype), "node": [0, 0]}, unit="person")
        list(reader.rows(10))
        assert ids_of(reader.codes) == [("text", str(end).encode()) for end in ends]


def test_one_person_more_does_not_split_the_others_when_pandas_reads_in_blocks(tmp_path):
    """pandas reads some blocks of a column as integers and others as text as soon as one id is not a number."""
    n, path = 150_000, tmp_path / "events.csv"
    path.write_text("person,node\n" + 2 * "".join(f"{i},0\n" for i in range(n)) + "x,9\n")
    with pytest.warns(pd.errors.DtypeWarning):
        table = pd.read_csv(path)
    assert {type(value) for value in table["person"]} == {int, str}
    for events in (table, path):
        assert count_events(PATH, events, unit="person", **CAPS).counts.tolist() == [n, 0, 0, 0]


def test_categories_are_read_by_their_type():
    """Floats of 32 bits that may have been merged are no ids as categories either."""
    floats = pd.Series(np.arange(2**24 - 3, 2**24 + 3, dtype=np.float32))
    for column in (floats, floats.astype("category"), pd.Categorical(floats), pd.CategoricalIndex(floats)):
        assert count_events(PATH, {"person": column, "node": [0] * 6}, unit="person", **CAPS).counts.sum() == 3
    times = pd.Series(pd.to_datetime(["2026-03-02T06:30+05:30", None, "2026-03-02T06:30+05:30"]))
    categories = as_column(times.astype("category"))
    assert categories.aware
    assert categories.ticks.tolist() == as_column(times).ticks.tolist()
    assert as_column(pd.Categorical.from_codes([1, -1, 0, 1], ["a", 7])).values == [7, None, "a", 7]
    assert as_column(pd.Categorical.from_codes([-1, -1], categories=pd.Index([], dtype="int64"))).known.tolist() == [False, False]
    with pytest.raises(TypeError, match="holds bool"):
        count_events(PATH, {"person": pd.Categorical([True, False]), "node": [0, 0]}, unit="person", **CAPS)


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.int64()])
def test_dictionaries_of_small_indices_hold_any_number_of_ids(tmp_path, kind):
    """Two days of categories, joined: each has indices of 8 bits, and together they have more than 128 ids."""
    names = pa.array([str(i) for i in range(200)]).cast(kind)
    days = [pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), names.slice(start, 100)) for start in (0, 100)]
    table = pa.table({"the.person": pa.chunked_array(days), "node": [0] * 200})
    pq.write_table(table, tmp_path / "events.parquet")
    for events in (table, tmp_path / "events.parquet"):
        assert count_events(PATH, events, unit="the.person", **CAPS).counts.sum() == 200


# ---- no value refuses a table ------------------------------------------------------------------------------------------


def test_one_row_of_a_parquet_file_refuses_nothing(tmp_path):
    """Text that is not UTF-8 and a date beyond the year 9999 did, with an error that quoted the value."""
    path = tmp_path / "events.parquet"
    dates = pa.array([20_514, 2**31 - 1, 20_514], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"person": text_array([b"ann", b"Andr\xe9", b"Andr\xe8"]), "node": [0, 1, 2], "day": dates}), path)
    assert count_events(PATH, path, unit="person", **CAPS).counts.tolist() == [1, 1, 1, 0]
    assert count_events(PATH, path, unit="node", node="node", **CAPS).counts.sum() == 3
    windows = {"time": "day", "windows": ["2026-03-01", "2026-03-03"], "max_cells": 1, "max_per_cell": 1}
    counts = count_events(PATH, path, unit="person", adjacency="add-remove", **windows).counts
    assert counts[:, 0].tolist() == [1, 0, 1, 0]
    nodes = pa.table({"person": ["a", "b"], "node": text_array([b"1", b"\xff"]), "day": text_array([b"2026-03-02", b"\xff"])})
    pq.write_table(nodes, path)
    assert count_events(PATH, path, unit="person", **CAPS).counts.tolist() == [0, 1, 0, 0]
    assert count_events(PATH, path, unit="person", adjacency="add-remove", **windows).counts.sum() == 1


@pytest.mark.parametrize(
    "odd",
    [
        Decimal("sNaN"),
        ([1],),
        [1],
        {},
        object(),
        pytest.param(10**5000, id="long"),
        float("nan"),
        pd.NaT,
        b"\xff",
        "\ud800",
        1j,
        True,
    ],
)
@pytest.mark.parametrize("column", ["person", "node", "time", "lon"])
def test_one_object_refuses_nothing(column, odd):
    events = {"person": ["a", "b"], "time": ["2026-03-02T06:30"] * 2, "lon": [-74.0, -74.0], "lat": [40.7, 40.7], "node": [1, 1]}
    events[column] = [events[column][0], odd]
    caps = {"unit": "person", "adjacency": "add-remove", "max_cells": 1, "max_per_cell": 1, "time": "time", "windows": HOURS}
    for graph, where in ((PATH, {"node": "node"}), (GLOBE, {"lon": "lon", "lat": "lat"})):
        assert 1 <= count_events(graph, events, **where, **caps).counts.sum() <= 2


TEXT = st.sampled_from(
    [
        "",
        "ann",
        " ann",
        "7",
        "007",
        "1.5",
        "-2e3",
        "2026-03-02",
        "2026-03-02T06:30Z",
        "André",
        "\ud800",
        "a\0",
        "x" * 70_000,
        "é" * 40_000,
    ]
)


@settings(max_examples=300)
@given(
    st.lists(TEXT)
    | st.lists(TEXT | st.none() | st.just(np.nan))
    | st.lists(TEXT | st.sampled_from([None, np.nan, 7, 7.5, b"ann", True]))
)
def test_columns_of_str_are_read_as_one_by_one(values):
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(2):
            column, codes = as_column(values), units.UnitCodes("person")
            ticks, aware = columns.times(column)
            found.append(
                [codes.add(column).tolist(), ids_of(codes), ticks.tolist(), aware.tolist(), columns.numbers(column, "x").tobytes()]
            )
            for module in (columns, units):
                patch.setattr(module, "plain_texts", lambda column: None)
    assert found[0] == found[1]


def test_floats_that_merged_ids_are_no_ids():
    """2^53 + 1 and 2^53 are one float64: whoever has it may be two people."""
    ids = np.array([2**53 - 1, 2**53, 2**53 + 1, 2**60], dtype=np.float64)
    assert count_events(PATH, {"p": ids, "node": [0, 1, 2, 3]}, unit="p", **CAPS).counts.tolist() == [1, 0, 0, 0]
    assert count_events(PATH, {"p": ids.astype(np.int64), "node": [0, 1, 2, 3]}, unit="p", **CAPS).counts.sum() == 3


@pytest.mark.parametrize("options", [{"node": "node"}, {"unit": "person"}, {}])
def test_columns_that_were_found_are_not_listed(options):
    """Without a header they are somebody's row."""
    frame = pd.DataFrame([["bob", 2]], columns=["SECRET-ANN", "SECRET-PLACE"])
    for events in (frame, frame.to_dict("list"), [frame], pa.Table.from_pandas(frame)):
        with pytest.raises(ValueError, match="columns") as caught:
            count_events(PATH, events, **{"unit": "person", **CAPS, **options})
        assert "SECRET" not in str(caught.value)
        assert caught.value.__context__ is None


# ---- polars -----------------------------------------------------------------------------------------------------------


def test_polars_frames_have_the_counts_of_their_columns():
    polars = pytest.importorskip("polars")
    graph = hg.Graph.from_edges([(0, 1), (1, 2)], labels=["a", "b", "c"])
    moments = [datetime.datetime(2026, 3, 2, hour) for hour in (1, 7, 13, 1, 7)]
    columns = {"person": ["ann", "bob", None, "7", "ann"], "node": ["a", "b", "b", "no", "a"], "time": moments}
    caps = {"unit": "person", "adjacency": "add-remove", "max_cells": 2, "max_per_cell": 1, "time": "time"}
    windows = [datetime.datetime(2026, 3, 2, hour) for hour in (0, 6, 12)]
    expected = count_events(graph, columns, windows=windows, **caps).counts.tolist()
    frame = polars.DataFrame(columns)
    forms = [frame, [frame[:2], frame[2:]], dict(zip(frame.columns, frame.get_columns(), strict=True))]
    forms += [frame.with_columns(polars.col("person").cast(polars.Categorical), polars.col("node").cast(polars.Categorical))]
    forms += [
        polars.concat([frame[:3], frame[3:]], rechunk=False),
        frame.with_columns(polars.col("time").cast(polars.Datetime("ms"))),
    ]
    for events in forms:
        assert count_events(graph, events, windows=windows, chunk_rows=2, **caps).counts.tolist() == expected
    numbers = polars.DataFrame({"person": [7, None, 2**60], "node": [0, 1, 2]})
    plain = hg.Graph.from_edges([(0, 1), (1, 2)])
    assert count_events(plain, numbers, unit="person", adjacency="add-remove", max_nodes=1, max_per_node=1).counts.tolist() == [
        1,
        0,
        1,
    ]


def test_lazy_frames_and_columns_of_other_types_are_refused():
    polars = pytest.importorskip("polars")
    graph = hg.Graph.from_edges([(0, 1)])
    caps = {"unit": "person", "adjacency": "add-remove", "max_nodes": 1, "max_per_node": 1}
    frame = polars.DataFrame({"person": [True, False], "node": [0, 1]})
    with pytest.raises(TypeError, match=r"pass what its collect\(\) returns"):
        count_events(graph, frame.lazy(), **caps)
    with pytest.raises(TypeError, match="must hold ids"):
        count_events(graph, frame, **caps)
