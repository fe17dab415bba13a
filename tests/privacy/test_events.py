"""Sources of events: every kind gives the same counts, ids stay exact, broken input is refused without quoting it. And trips."""

import copy
import errno
import gzip
import logging
import pickle
import uuid
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

import hushgraph as hg
from hushgraph.privacy import bounding
from hushgraph.privacy.counting import CountMap, count_events, declare_counts
from hushgraph.privacy.events import open_events
from hushgraph.privacy.typed_columns import as_column, numbers
from hushgraph.privacy.unit_ids import UnitCodes

from .coupling import couple_keys, ids_of

PATH = hg.Graph.from_edges([(0, 1), (1, 2), (2, 3)], n=4)
CAPS = {"adjacency": "add-remove", "max_nodes": 1, "max_per_node": 1}


@pytest.fixture
def fixed_keys(monkeypatch):
    couple_keys(monkeypatch)


def write_parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


# ---- all sources agree ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    graph = hg.datasets.city(300)
    return graph, pd.DataFrame(hg.datasets.trips(graph, n_people=400, seed=3))


def sources(frame, folder):
    plain = {name: frame[name].to_numpy() for name in frame}
    frame.to_csv(folder / "events.csv", index=False)
    frame.to_csv(folder / "EVENTS.csv.gz", index=False)
    frame.to_parquet(folder / "events.parquet", row_group_size=97)
    shuffled = frame.sample(frac=1, random_state=1)
    yield "frame", frame
    yield "shuffled", shuffled
    yield "object ids", frame.astype({"person": object})
    yield "categories", frame.astype({"person": "category"})
    yield "arrow types", frame.convert_dtypes(dtype_backend="pyarrow")
    yield "dict", plain
    yield "dict of lists", {name: values.tolist() for name, values in plain.items()}
    yield "csv", str(folder / "events.csv")
    yield "gzip", folder / "EVENTS.csv.gz"
    yield "parquet", folder / "events.parquet"
    yield "chunks", (frame.iloc[i : i + 131] for i in range(0, len(frame), 131))
    yield "dicts", [{name: values[i::3] for name, values in plain.items()} for i in range(3)]


@pytest.mark.parametrize("chunk_rows", [37, 1_000_000])
@pytest.mark.parametrize("windows", [None, pd.date_range("2026-03-02", periods=5, freq="6h")])
def test_every_source_gives_the_same_counts(table, tmp_path, fixed_keys, monkeypatch, chunk_rows, windows):
    monkeypatch.setattr(bounding, "_BUFFER", 50)
    graph, frame = table
    caps = {"max_nodes": 2, "max_per_node": 1} if windows is None else {"max_cells": 2, "max_per_cell": 1}
    options = {"unit": "person", "adjacency": "add-remove", "time": None if windows is None else "time", "windows": windows, **caps}
    expected = None
    for name, events in sources(frame, tmp_path):
        counted = count_events(graph, events, chunk_rows=chunk_rows, max_distance=200, **options).counts
        expected = counted if expected is None else expected
        np.testing.assert_array_equal(counted, expected, err_msg=name)
    assert expected.sum() > 300


def test_progress_counts_rows_and_may_interrupt():
    events = {"node": np.zeros(10, dtype=int), "person": np.arange(10)}
    seen = []
    count_events(PATH, events, unit="person", chunk_rows=4, progress=seen.append, **CAPS)
    assert seen == [4, 8, 10]

    def interrupt(rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count_events(PATH, events, unit="person", progress=interrupt, **CAPS)


def test_no_events_are_zero_counts(tmp_path):
    (tmp_path / "none.csv").write_text("person,node\n")
    write_parquet(tmp_path / "none.parquet", person=pa.array([], pa.string()), node=pa.array([], pa.int64()))
    assert count_events(hg.datasets.grid(2, 2), iter(()), unit="person", max_distance=5, **CAPS).counts.sum() == 0
    for events in [{"person": [], "node": []}, [], tmp_path / "none.csv", tmp_path / "none.parquet"]:
        assert count_events(PATH, events, unit="person", **CAPS).counts.tolist() == [0, 0, 0, 0]


# ---- ids -----------------------------------------------------------------------------------------------------------

BIG = 2**53


def counted_people(events, **options):
    """How many people there are: each counts once."""
    return int(count_events(PATH, events, unit="person", **CAPS, **options).counts.sum())


def test_large_integers_with_nulls_stay_distinct(tmp_path):
    ids = [BIG, BIG + 1, None, BIG + 2, BIG + 3, BIG + 1]
    parquet = write_parquet(tmp_path / "ids.parquet", person=pa.array(ids, pa.int64()), node=[0] * 6)
    assert counted_people(parquet) == 4
    (tmp_path / "ids.csv").write_text("person,node\n" + "".join(f"{'' if i is None else i},0\n" for i in ids))
    assert counted_people(tmp_path / "ids.csv") == 4
    assert counted_people(pd.DataFrame({"person": pd.array(ids, dtype="Int64"), "node": 0})) == 4
    assert counted_people({"person": ids, "node": [0] * 6}) == 4
    assert counted_people({"person": [*ids[:2], float("nan"), *ids[3:]], "node": [0] * 6}) == 4
    unsigned = pa.array([2**64 - 1, 2**64 - 2, None], pa.uint64())
    assert counted_people(write_parquet(tmp_path / "unsigned.parquet", person=unsigned, node=[0] * 3)) == 2


def test_text_ids_are_read_as_written(tmp_path):
    (tmp_path / "ids.csv").write_text("person,node\n007,0\n7,0\n7.0,0\n,0\nNA,0\nnan,0\nx,0\n7,1\n")
    for chunk_rows in (1, 2, 100):  # "7" alone in a chunk is no number
        assert counted_people(tmp_path / "ids.csv", chunk_rows=chunk_rows) == 6
    assert counted_people({"person": np.array(["a\0b", "a\0c", "a"]), "node": [0] * 3}) == 3
    assert counted_people({"person": ["a\0b", "a\0c", "a", "\ud800"], "node": [0] * 4}) == 4
    assert counted_people(pd.DataFrame({"person": ["a\0b", "a\0c", "a"], "node": 0})) == 3


@pytest.mark.parametrize(
    ("ids", "people"),
    [
        (["a", None, "b", float("nan"), "", pd.NA], 2),
        ([1, None, 2, float("nan"), pd.NA], 2),
        ([1.5, np.nan, 2.5, None], 2),
        (np.array([1.5, np.nan, np.inf, 1.5, -0.0, 0.0]), 2),
        (pd.array([1, None, 3], dtype="Int32"), 2),
        (pd.array(["u", None, "v"], dtype="string"), 2),
        (pd.array(["u", None, "v"], dtype=pd.StringDtype("python")), 2),
        (pd.Categorical(["u", None, "v", "u"]), 2),
        ([b"a", b"b", b""], 2),
        ([uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=1)], 2),
        ([Decimal("1.10"), Decimal("1.1"), None], 1),
        ([None, None], 0),
        (np.array([np.int64(3), 3, np.int32(3)], dtype=object), 1),
    ],
)
def test_missing_ids_are_dropped_and_others_counted(ids, people):
    assert counted_people({"person": ids, "node": np.zeros(len(ids), dtype=int)}) == people


def test_parquet_text_and_dictionaries(tmp_path):
    names = pa.array(["u", None, "v", "u", ""])
    for column in (names, names.dictionary_encode(), names.cast(pa.large_string())):
        assert counted_people(write_parquet(tmp_path / "ids.parquet", person=column, node=[0] * 5)) == 2
    floats = pa.array([1.5, None, float("nan"), 2.5])
    assert counted_people(write_parquet(tmp_path / "floats.parquet", person=floats, node=[0] * 4)) == 2


@pytest.mark.parametrize(
    ("ids", "people"),
    [
        (
            [1, "1", b"1", uuid.UUID(int=1), Decimal(1), 1.0, np.float32(1), np.int8(1), "01"],
            4,
        ),  # whole number or text, bytes, UUID, "01"
        ([-7, "-7", -7.0, "-07", "-7.0", " -7", "7", "+7", 0, "0", "-0", -0.0], 8),
        ([2**63, str(2**63), 10**30, "1" + "0" * 30, Decimal("1E+30"), "1e30", "1E+30"], 4),
        ([0.5, "0.5", "5e-1"], 3),
        ([None, True, np.True_, 1], 1),
        (["a", 1.0, float("nan"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), pd.NaT, pd.NA], 2),
        ([(1,), ([1],), [1], {1}, 1j, np.longdouble(1), np.datetime64("2026-03-02"), object(), 7], 1),
        ([2**53 - 1, 2.0**53 - 1, 2.0**53, -(2.0**53), 2.0**60, float("inf")], 1),
        ([2**24 - 1, np.float32(2**24 - 1), np.float32(2**24), np.float16(2**11), np.float16(2**11 - 1)], 2),
        ([0.5, Decimal("0.50"), np.float16(0.5), 0.1, Decimal("0.1")], 3),
        ([2**63, Decimal(2**63), -(2**63), 2**63 - 1, -(2**63) - 1, Decimal("-1E+30"), -(10**30), Decimal("1E+999999")], 6),
        ([-0.0, 0, Decimal("0E+5"), Decimal("-0.00")], 1),
        (["\ud800", "\udcff", "\ufffd", "?", "x" * 65_537, "y" * 65_536], 5),
    ],
)
def test_ids_of_several_types_are_told_apart(ids, people):
    """In a column of objects each row is read by itself: no row refuses the table, and equal means equal in value and kind."""
    assert counted_people({"person": ids, "node": [0] * len(ids)}) == people
    assert sum(counted_people({"person": [i], "node": [0]}) for i in ids) >= people


@pytest.mark.parametrize(
    ("ids", "fault"),
    [
        (np.array([True, False]), "holds bool"),
        (np.array(["2026-03-02", "2026-03-03"], dtype="datetime64[s]"), "holds times"),
        (np.array([1, 2], dtype="timedelta64[s]"), "holds timedelta64"),
        (np.array([1j, 2j]), "holds complex128"),
        (pd.array([True, None], dtype="boolean"), "holds bool"),
        (pd.period_range("2026-03-02", periods=2), r"holds period\[D\]"),
        (pa.array([[1], [2]]), "holds list<"),
        (np.array([1, 2], np.longdouble), "holds numbers"),
    ],
)
def test_columns_whose_type_holds_no_ids_are_refused(ids, fault):
    with pytest.raises(
        TypeError, match=rf"column 'person' \(unit=\) must hold ids: text or whole numbers; it {fault}.*astype\(str\)"
    ):
        counted_people({"person": ids, "node": [0, 0]})


def test_one_missing_id_does_not_change_the_others():
    """pandas makes a column of integers with one gap a column of floats: the ids must stay what they are in other chunks."""
    whole, gap = pd.DataFrame({"person": [1, 2, 3], "node": 0}), pd.DataFrame({"person": [1, None, 3], "node": 0})
    assert [whole.person.dtype.kind, gap.person.dtype.kind] == ["i", "f"]
    assert counted_people([whole, gap]) == 3
    narrow = [{"person": np.ones(1, dtype=kind), "node": [0]} for kind in (np.float32, np.float64, np.float16, np.uint8, np.uint64)]
    assert counted_people(narrow) == 1
    assert (
        counted_people([{"person": [1, 2], "node": [0, 0]}, {"person": [None], "node": [0]}, {"person": ["1"], "node": [0]}]) == 2
    )


@given(st.lists(st.lists(st.one_of(st.none(), st.text(max_size=2)), max_size=8), max_size=5))
def test_codes_are_the_same_in_every_chunk(chunks):
    people, known = UnitCodes("person"), {}
    for chunk in chunks:
        codes = people.add(as_column(chunk))
        for value in chunk:
            if value:
                known.setdefault(value, len(known))
        assert codes.tolist() == [known[value] if value else -1 for value in chunk]
        assert ids_of(people) == [("text", value.encode("utf-8", "surrogatepass")) for value in known]


def test_text_numbers_are_read_row_by_row():
    values = ["0.1", "1e3", " -7 ", "", "east", "12,5", "nan", "inf", "1_000", "0x10", "\u0661", "1e999"]
    expected = [0.1, 1000.0, -7.0, *[np.nan] * 8, np.inf]
    for column in (
        pd.Series(values),
        pd.Series(values, dtype=object),
        pd.Series(values, dtype="string[pyarrow]"),
        pa.array(values),
    ):
        np.testing.assert_array_equal(numbers(as_column(column), "x"), expected)
    objects = [Decimal("0.5"), None, pd.NA, Decimal("sNaN"), 10**400, True, "7", b"8", [9]]
    np.testing.assert_array_equal(numbers(as_column(objects), "x"), [0.5, *[np.nan] * 5, 7, 8, np.nan])
    np.testing.assert_array_equal(numbers(as_column(pd.Series([1, None], dtype="Int64")), "x"), [1, np.nan])
    with pytest.raises(TypeError, match="column 'x' of the events must hold numbers; it holds bool"):
        numbers(as_column(pd.Series([True, False])), "x")


# ---- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("events", [7, None, b"events", np.zeros((3, 2))])
def test_what_events_may_be(events):
    with pytest.raises(
        TypeError, match="events must be a DataFrame of pandas or polars, a dict of columns, an Arrow table, the path"
    ):
        open_events(events)


@pytest.mark.parametrize(
    ("events", "kind", "fault"),
    [
        ({"person": [1, 2], "node": [0]}, ValueError, "'person' and 'node' of the events have different lengths"),
        ({"person": 3, "node": 4}, TypeError, "column 'person' of the events must be one-dimensional"),
        ({"person": np.zeros((2, 2)), "node": [0, 1]}, TypeError, "must be one-dimensional"),
        ({"person": "ab", "node": [0, 1]}, TypeError, "must be one-dimensional"),
        ({"person": np.ma.masked_equal([1, 2], 2), "node": [0, 1]}, TypeError, "masked array"),
        (
            [{"person": [1], "node": [0]}, [3]],
            TypeError,
            "chunk 1 of the events must be a DataFrame, a dict of columns or a path; got list",
        ),
        ([(1, 2)], TypeError, "chunk 0 of the events"),
        ([{"person": [1], "node": [0]}, {"person": [1], "place": [0]}], ValueError, "no column 'node'"),
        (pd.DataFrame([[1, 2, 0]], columns=["person", "person", "node"]), ValueError, "more than one column 'person'"),
        ({"rider": [1], "node": [0]}, ValueError, "no column 'person' among their 2 columns; name another"),
    ],
)
def test_broken_tables_are_refused(events, kind, fault):
    with pytest.raises(kind, match=fault):
        count_events(PATH, events, unit="person", **CAPS)


def test_headers_are_read_as_written(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("person,node,person\n1,0,2\n")
    with pytest.raises(ValueError, match="more than one column 'person'"):
        counted_people(path)
    path.write_text('\ufeff"person",7,node\n1,0,2,\n2,0,3,\n')  # a byte-order mark, and commas at the end of rows
    assert open_events(path).columns == ["person", "7", "node"]
    assert count_events(PATH, path, unit="person", **CAPS).counts.tolist() == [0, 0, 1, 1]


def test_missing_extras_are_named(monkeypatch, tmp_path):
    parquet = write_parquet(tmp_path / "events.parquet", person=[1], node=[0])
    (tmp_path / "events.csv").write_text("person,node,time\n1,0,2026-03-02\n")
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    windowed = {"time": "time", "windows": ["2026-03-02", "2026-03-03"], "max_cells": 1, "max_per_cell": 1}
    assert count_events(PATH, tmp_path / "events.csv", unit="person", adjacency="add-remove", **windowed).counts.sum() == 1
    assert counted_people({"person": [1], "node": [0]}) == 1  # text files and plain columns need neither
    with pytest.raises(ImportError, match=r"pip install 'hushgraph\[events\]'"):
        counted_people(parquet)


# ---- secrets -------------------------------------------------------------------------------------------------------

SECRETS = ("SECRET-UNIT-4711", "SECRET-NODE", "12.3456789", "98765")
UNIT, NODE, PLACE, COUNT = SECRETS[0], SECRETS[1], 12.3456789, 98765


def everything_said(action):
    """All an action says: errors with their causes and contents, warnings, log records, the text of results."""
    records = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    logging.getLogger().addHandler(handler)
    said, error = [], None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = action()
            said += [repr(result), str(result), f"{result}"]
        except Exception as raised:
            error = raised
    logging.getLogger().removeHandler(handler)
    failed = error is not None
    while error is not None:
        said += [str(error), repr(error.args), repr(vars(error)), repr(getattr(error, "object", ""))]
        error = error.__cause__ or error.__context__
    return failed, "\n".join([*said, *records, *(str(warning.message) for warning in caught)])


def secret_events(**changes):
    columns = {"person": [UNIT, UNIT], "node": [NODE, NODE], "lon": [PLACE, PLACE], "lat": [PLACE, PLACE], "t": [f"{UNIT}", "0"]}
    return {name: values for name, values in {**columns, **changes}.items() if values is not None}


def broken_files(folder):
    body = f"person,node\n{UNIT},{NODE}\n{COUNT},{PLACE}\n" * 400
    (folder / "ragged.csv").write_text(f'{body}{UNIT},{NODE},{PLACE},{COUNT}\n{UNIT},\'"{NODE}\n"')
    (folder / "latin.csv").write_bytes(body.encode() + f"{UNIT}é".encode("latin-1"))
    (folder / "cut.csv.gz").write_bytes(gzip.compress(body.encode())[:-20])
    (folder / "no.csv.gz").write_bytes(body.encode())
    (folder / "empty.csv").write_text("")
    write_parquet(folder / "whole.parquet", person=[f"{UNIT}{i}" for i in range(5000)], node=[NODE] * 5000)
    whole = (folder / "whole.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[:-100])
    (folder / "damaged.parquet").write_bytes(whole[:50] + b"\xff" * 2000 + whole[2050:])
    (folder / "no.parquet").write_text(body)
    (folder / "folder.csv").mkdir()
    return [
        "ragged.csv",
        "latin.csv",
        "cut.csv.gz",
        "no.csv.gz",
        "empty.csv",
        "cut.parquet",
        "damaged.parquet",
        "no.parquet",
        "folder.csv",
    ]


def secret_actions(folder):
    """(must it fail, action) pairs over the ways to go wrong, with private values planted in the events."""
    labelled = hg.Graph.from_edges([(0, 1)], labels=[NODE, "other"])
    globe = hg.Graph.from_edges([(0, 1)], coords=[[12.3, 12.3], [13.0, 13.0]], crs="lonlat")
    tied = {"unit": "person", **CAPS}
    timed = {"unit": "person", "adjacency": "add-remove", "max_cells": 1, "max_per_cell": 1, "node": "node", "time": "t"}
    hours = pd.date_range("2026-03-02", periods=3, freq="h")

    def counted(graph=labelled, events=None, **options):
        return lambda: count_events(graph, secret_events() if events is None else events, **options)

    yield False, counted(node="node", **tied)
    yield False, counted(node="node", **CAPS)
    yield False, counted(globe, lon="lon", lat="lat", **tied)
    yield False, counted(globe, lon="node", lat="person", **tied)
    yield True, counted(**tied)
    yield True, counted(node="absent", **tied)
    yield True, counted(node="node", unit="absent", **CAPS)
    yield False, counted(events=secret_events(person=[UNIT, COUNT]), node="node", **tied)
    yield False, counted(events=secret_events(person=[[UNIT], Decimal("sNaN")]), node="node", **tied)
    yield False, counted(events=secret_events(node=[([UNIT],), Decimal("sNaN")]), node="node", **tied)
    yield True, counted(events=pd.DataFrame([[UNIT, NODE]], columns=[UNIT, NODE]), node="node", **tied)
    yield True, counted(events=pd.DataFrame([[UNIT, NODE]], columns=[UNIT, NODE]), **tied)
    yield True, counted(events=pd.DataFrame([[UNIT, NODE]], columns=[UNIT, UNIT]), node="node", unit="person", **CAPS)
    yield False, counted(events=secret_events(node=[[NODE], [NODE]]), node="node", **tied)
    for wrong in ({"unit": [UNIT]}, {"unit": "person", "unit_column": [UNIT]}):
        yield True, counted(node="node", **wrong, **CAPS)
    yield True, counted(node=[NODE], **tied)
    yield True, counted(globe, lon=[PLACE], lat=[PLACE], **tied)
    yield True, counted(**{**timed, "time": [UNIT]}, windows=hours)
    yield False, counted(events=secret_events(t=np.array(["2026-03-02", 10**15], "M8[D]")), windows=hours, **timed)
    yield False, counted(events=secret_events(t=[Decimal("sNaN"), UNIT]), windows=hours, **timed)
    (folder / "headless.csv").write_text(f"{UNIT},{NODE}\n")
    yield True, counted(events=folder / "headless.csv", node="node", **tied)
    yield True, counted(events=folder / "headless.csv", **tied)
    yield True, counted(events=secret_events(node=[NODE]), node="node", **tied)
    yield True, counted(events=secret_events(node=np.array([COUNT, COUNT])), node="node", **tied)
    yield True, counted(PATH, lon="lon", lat="lat", **tied)
    yield True, counted(globe, x="lon", y="lat", crs="nowhere", **tied)
    yield True, counted(globe, events=secret_events(lon=np.array([True, False])), lon="lon", lat="lat", **tied)
    yield True, counted(events=[secret_events(), [UNIT]], node="node", **tied)
    yield True, counted(events=[UNIT, NODE], node="node", **tied)
    yield True, counted(events=secret_events(person=UNIT), node="node", **tied)
    yield False, counted(windows=hours, **timed)
    yield False, counted(events=secret_events(t=[f"2026-03-02T00:00:00Z{UNIT}", "2026-03-02T00:00:00Z"]), windows=hours, **timed)
    yield True, counted(events=secret_events(t=np.array([PLACE, COUNT])), windows=hours, **timed)
    yield True, counted(events=secret_events(t=hours[:2].tz_localize("UTC")), windows=hours, **timed)
    for name in broken_files(folder):
        yield name not in ("ragged.csv", "latin.csv"), counted(events=folder / name, node="node", **tied)
    yield from secret_declarations(labelled)


def secret_declarations(graph):
    given = {"unit": "person", "adjacency": "add-remove", "sensitivity": 1}
    for counts in ([COUNT, 1], {NODE: COUNT, "other": 1}, pd.Series([COUNT, 0], index=["other", NODE])):
        yield False, lambda counts=counts: declare_counts(graph, counts, **given)
        for act in (pickle.dumps, copy.copy, copy.deepcopy, np.asarray):
            yield act is not np.asarray, lambda counts=counts, act=act: act(declare_counts(graph, counts, **given))
    yield True, lambda: declare_counts(graph, [1, 2], **{**given, "unit": [UNIT]})
    yield True, lambda: declare_counts(graph, [1, 2], **{**given, "sensitivity": [COUNT, 1]})
    odd = [COUNT + 0.5, 1], [COUNT], [COUNT, np.nan], [f"{COUNT}", "1"], [COUNT * 10**12, 1], [[COUNT, 1], [1, COUNT]], {"x": COUNT}
    for counts in (*odd, {UNIT: COUNT, NODE: 1}, [[COUNT], [1, 2]], [COUNT, None], np.ma.masked_equal([COUNT, 1], 1)):
        yield True, lambda counts=counts: declare_counts(graph, counts, **given)


def test_nothing_private_is_ever_said(tmp_path):
    spoken = 0
    for number, (must_fail, action) in enumerate(secret_actions(tmp_path)):
        failed, text = everything_said(action)
        assert failed == must_fail, f"action {number}: {text}"
        leaked = [secret for secret in SECRETS if secret in text]
        assert not leaked, f"action {number} said {leaked}: {text}"
        spoken += len(text)
    assert spoken > 5000


def test_secrets_would_be_noticed():
    def leak():
        try:
            raise KeyError(UNIT)
        except KeyError:
            raise ValueError("harmless") from None

    assert UNIT in everything_said(leak)[1]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("cut.csv.gz", "truncated"),
        ("no.csv.gz", "CSV file cannot be read after line 0"),
        ("empty.csv", "CSV file must begin with a line of column names"),
        ("cut.parquet", "parquet file cannot be read near data row 0"),
        ("damaged.parquet", "parquet file cannot be read"),
        ("no.parquet", "parquet file cannot be read near data row 0"),
        ("folder.csv", "does not exist or is a folder"),
        ("absent.csv", "does not exist or is a folder"),
        ("events.xlsx", "must end in .csv, .csv.gz or .parquet; convert this one"),
    ],
)
def test_broken_files_are_refused(tmp_path, name, fault):
    broken_files(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError), match=fault):
        counted_people(tmp_path / name)


# ---- trips ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def day():
    graph = hg.datasets.city(2000)
    return graph, hg.datasets.trips(graph)


def test_trips_look_like_trips(day):
    events = day[1]
    assert list(events) == ["person", "x", "y", "time"]
    assert 50_000 < len(events["x"]) < 70_000
    assert events["time"].dtype == "datetime64[s]"
    assert set(events["time"].astype("datetime64[D]").astype(str)) == {"2026-03-02"}
    missing = events["person"] == ""
    assert 0.01 < missing.mean() < 0.03
    per_person = np.unique(events["person"][~missing], return_counts=True)[1]
    assert np.mean(per_person <= 3) > 0.6
    assert np.sum(per_person >= 20) > 50
    by_hour = np.bincount(events["time"].astype("datetime64[h]").astype(int) % 24, minlength=24)
    assert min(by_hour[8], by_hour[17]) > 1.5 * by_hour[12] > 4 * by_hour[3]
    assert not np.all(np.sort(events["time"]) == events["time"])


def test_trips_are_near_junctions_and_a_few_far_away(day):
    graph, events = day
    distance = np.sqrt(((np.stack([events["x"], events["y"]], 1)[:2000, None] - graph.coords[None]) ** 2).sum(2).min(1))
    assert 0.01 < np.mean(distance > 500) < 0.06
    assert 5 < np.median(distance) < 25


def test_people_repeat_places_and_places_move_over_the_day(day):
    graph, events = day
    options = {"unit": "person", "adjacency": "add-remove", "max_distance": 200}
    once = count_events(graph, events, max_nodes=60, max_per_node=1, **options).counts
    often = count_events(graph, events, max_nodes=60, max_per_node=60, **options).counts
    assert once.sum() < 0.9 * often.sum()
    edges = np.array(["2026-03-02T06", "2026-03-02T10", "2026-03-02T16", "2026-03-02T20"], dtype="datetime64[h]")
    parts = count_events(graph, events, time="time", windows=edges, max_cells=60, max_per_cell=60, **options).counts
    assert np.corrcoef(parts[:, 0], parts[:, 2])[0, 1] < 0.8


def test_trips_are_the_same_for_the_same_seed_and_follow_the_graph():
    base = hg.datasets.grid(12, 12)
    globe = hg.Graph.from_scipy(base.adjacency, coords=base.coords * 0.001 + [2.3, 48.8], crs="lonlat")
    first, again, other = (hg.datasets.trips(globe, n_people=500, seed=seed, day="2025-07-01") for seed in (5, 5, 6))
    assert list(first) == ["person", "lon", "lat", "time"]
    for name, values in first.items():
        np.testing.assert_array_equal(values, again[name])
    assert len(first["lon"]) != len(other["lon"]) or not np.array_equal(first["lon"], other["lon"])
    assert isinstance(count_events(globe, first, unit="person", max_distance=300, **CAPS), CountMap)
    assert len(hg.datasets.trips(base, n_people=3)["x"]) >= 3


def test_trips_refuse_what_they_cannot_use():
    with pytest.raises(ValueError, match="trips needs a graph with two coordinates per node"):
        hg.datasets.trips(PATH)
    with pytest.raises(ValueError, match="day must be an ISO date"):
        hg.datasets.trips(hg.datasets.grid(3, 3), day="monday")
    with pytest.raises(ValueError, match="n_people must be an integer of at least 1"):
        hg.datasets.trips(hg.datasets.grid(3, 3), n_people=0)


# ---- a row is a line ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad", ['"q,0', 'q",0"', 'a"b,"c', '"q""', "q", "q,0,1,2", "q,0\r", '"q",0,"', "q\x00,0", "\udcff,0", "", '"', "''"]
)
def test_no_line_of_a_csv_changes_another(tmp_path, bad):
    """Whatever one person's lines look like, the other thousand rows are counted alike: the bound holds for text files."""
    others = [f"u{i},1" for i in range(1000)]
    counted = []
    for rows in (others, [bad, *others], [*others, bad], [bad, *others, bad], [*others[:500], bad, *others[500:]]):
        path = tmp_path / "events.csv"
        path.write_bytes("\n".join(["p,node", *rows, ""]).encode("utf-8", "surrogateescape"))
        counts = count_events(PATH, path, unit="p", adjacency="add-remove", max_nodes=1, max_per_node=1, chunk_rows=300)
        counted.append(counts.counts)
    for one in counted[1:]:
        assert np.linalg.norm(one - counted[0]) <= 1


def test_quoted_fields_are_understood(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text('"p","node",note\n"Doe, Ann",1,"said ""hi"""\nbob,2,\n"Doe, Ann",1,x\n')
    counts = count_events(PATH, path, unit="p", adjacency="add-remove", max_nodes=1, max_per_node=1)
    assert counts.counts[:3].tolist() == [0, 1, 1]


def test_several_files_are_one_table(tmp_path):
    for month, rows in (("a", "ann,1\nbob,2\n"), ("b", "ann,1\neve,2\n")):
        (tmp_path / f"{month}.csv").write_text(f"p,node\n{rows}")
    paths = [tmp_path / "a.csv", str(tmp_path / "b.csv")]
    counts = count_events(PATH, paths, unit="p", adjacency="add-remove", max_nodes=1, max_per_node=1)
    assert counts.counts[:3].tolist() == [0, 1, 2]


@pytest.mark.parametrize("rows", ["ann\nbob\n", "ann,1\n", 'ann\n"bob",1\n'])
def test_a_file_of_short_lines_only_is_no_refusal(tmp_path, rows):
    """Whether a file is refused must not depend on which of its rows are whole."""
    path = tmp_path / "events.csv"
    path.write_text("person,time,node\n" + rows)
    assert not count_events(PATH, path, unit="person", node="node", **CAPS).counts.any()


@pytest.mark.parametrize("name", ["events.csv", "events.csv.gz"])
def test_what_the_operating_system_says_is_said(tmp_path, monkeypatch, name):
    """A file that may not be read is not called damaged, and nothing else of the system's error is shown."""
    (tmp_path / name).write_bytes(b"person,node\na,0\n")

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "secret", "secret.csv")

    monkeypatch.setattr("gzip.open" if name.endswith(".gz") else "pathlib.Path.open", refuse)
    with pytest.raises(OSError, match=r"cannot be read after line 0: Permission denied; check that") as caught:
        open_events(tmp_path / name)
    assert "secret" not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__} {caught.value.filename}"
