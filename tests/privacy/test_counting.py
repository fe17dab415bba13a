"""count_events: one unit never moves the counts by more than the sensitivity, and every row goes where the rules say."""

import datetime
import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import find, given, settings, strategies as st
from scipy import stats

import hushgraph as hg
from hushgraph.privacy import bounding
from hushgraph.privacy.bounding import bounded_counts
from hushgraph.privacy.counting import CountMap, count_events, declare_counts
from hushgraph.privacy.typed_columns import as_column
from hushgraph.privacy.windows import Windows

from .coupling import couple_keys

PATH = hg.Graph.from_edges([(0, 1), (1, 2), (2, 3)], n=4)
CAPS = {"adjacency": "add-remove", "max_nodes": 2, "max_per_node": 1}
TIED = {"unit": "person", **CAPS}


def globe(coords, **more):
    return hg.Graph.from_edges(np.empty((0, 2), dtype=int), n=len(coords), coords=coords, crs="lonlat", **more)


# ---- the sensitivity -----------------------------------------------------------------------------------------------

N_CELLS = 6


@st.composite
def tables(draw):
    """(units, cells, keys, caps) of a few units in a few cells."""
    rows = draw(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, N_CELLS - 1)), max_size=25))
    keys = np.array(draw(st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=4)), dtype=np.uint64)
    caps = {"max_cells": draw(st.integers(1, 4)), "max_per_cell": draw(st.integers(1, 3))}
    units, cells = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    return units, cells, keys, caps


def proven_rule(units, cells, keys, caps):
    return bounded_counts(units, cells, keys, n_cells=N_CELLS, **caps)


def first_rows_of_the_file(units, cells, keys, caps):
    """Broken: a cap on all rows together, so a unit that leaves makes room for others."""
    kept = ((units >= 0) & (cells >= 0)).nonzero()[0][: 2 * caps["max_cells"]]
    return bounded_counts(units[kept], cells[kept], keys, n_cells=N_CELLS, **caps)


def keys_by_appearance(units, cells, keys, caps):
    """Broken: whose key it is depends on who else is there."""
    codes = pd.factorize(np.where(units >= 0, units, -1), sort=True, use_na_sentinel=False)[0] - (units < 0).any()
    return bounded_counts(codes, cells, keys, n_cells=N_CELLS, **caps)


def nodes_only(units, cells, keys, caps):
    """Broken: bounds the cells of a unit, not its events in them."""
    return bounded_counts(units, cells, keys, n_cells=N_CELLS, max_cells=caps["max_cells"], max_per_cell=99)


def largest_step(rule, table):
    """Largest squared distance to the counts without one unit, as a share of the sensitivity squared."""
    units, cells, keys, caps = table
    whole = rule(units, cells, keys, caps)
    steps = [((whole - rule(units[units != unit], cells[units != unit], keys, caps)) ** 2).sum() for unit in range(4)]
    return Fraction(int(max(steps)), caps["max_cells"] * caps["max_per_cell"] ** 2)


@settings(max_examples=300)
@given(tables())
def test_one_unit_moves_the_counts_by_at_most_the_sensitivity(table):
    assert largest_step(proven_rule, table) <= 1


@settings(max_examples=300)
@given(tables(), st.lists(st.integers(0, N_CELLS - 1), max_size=8), st.integers(0, 2**64 - 1))
def test_a_changed_unit_moves_them_by_at_most_sqrt_2_times_that(table, other_cells, other_key):
    units, cells, keys, caps = table
    changed_keys = keys.copy()
    changed_keys[0] = other_key
    rest = units != 0
    changed = (
        np.append(units[rest], np.zeros(len(other_cells), dtype=int)),
        np.append(cells[rest], np.array(other_cells, dtype=int)),
    )
    step = proven_rule(units, cells, keys, caps) - proven_rule(*changed, changed_keys, caps)
    assert (step**2).sum() <= 2 * caps["max_cells"] * caps["max_per_cell"] ** 2


def test_the_bound_is_attained():
    assert (
        largest_step(proven_rule, find(tables(), lambda table: largest_step(proven_rule, table) == 1 and table[3]["max_cells"] > 1))
        == 1
    )
    keys, caps = np.array([1, 2], dtype=np.uint64), {"max_cells": 3, "max_per_cell": 2}
    before, after = np.repeat([0, 1, 2], 2), np.repeat([3, 4, 5], 2)  # change-one: from three cells to three others
    step = proven_rule(np.zeros(6, int), before, keys, caps) - proven_rule(np.zeros(6, int), after, keys, caps)
    assert (step**2).sum() == 2 * 3 * 2**2


@pytest.mark.parametrize("broken", [first_rows_of_the_file, keys_by_appearance, nodes_only])
def test_broken_rules_are_caught(broken):
    table = find(tables(), lambda table: largest_step(broken, table) > 1, settings=settings(max_examples=20_000, derandomize=True))
    assert largest_step(broken, table) > 1 >= largest_step(proven_rule, table)


@pytest.mark.parametrize("windows", [None, [0, 1, 2]])
@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
def test_the_whole_pipeline_keeps_the_bound(monkeypatch, windows, adjacency):
    keys = {f"u{i}": key for i, key in enumerate(np.random.default_rng(0).integers(0, 2**63, 30, dtype=np.uint64))}
    couple_keys(monkeypatch, lambda id_: keys[id_[1].decode()])
    monkeypatch.setattr(bounding, "_BUFFER", 5)
    names = ("max_nodes", "max_per_node") if windows is None else ("max_cells", "max_per_cell")
    options = {"unit": "u", "adjacency": adjacency, "windows": windows, "time": None if windows is None else "t"}
    rng, largest = np.random.default_rng(1), 0.0
    for _ in range(60):
        caps = dict(zip(names, rng.integers(1, 4, 2).tolist(), strict=True))
        events = pd.DataFrame(
            {"u": rng.choice(list(keys)[:5], 40), "node": rng.integers(-1, 5, 40), "t": rng.uniform(-0.3, 2.3, 40)}
        )
        changed = events[events.u != "u0"]
        if adjacency == "change-one":
            fresh = {"u": "u0", "node": rng.integers(0, 4, 9), "t": rng.uniform(0, 2, 9)}
            changed = pd.concat([pd.DataFrame(fresh), changed])
        one, other = (count_events(PATH, x, chunk_rows=7, **options, **caps) for x in (events, changed))
        step = int(((one.counts - other.counts) ** 2).sum())
        assert step <= one.sensitivity_squared == (2 if adjacency == "change-one" else 1) * caps[names[0]] * caps[names[1]] ** 2
        largest = max(largest, step / one.sensitivity_squared)
    assert largest > 0.4


# ---- which events are kept -----------------------------------------------------------------------------------------


def splitmix(key, cell):
    z = (key + (cell + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def by_the_book(units, cells, keys, caps):
    counts = np.zeros(N_CELLS, dtype=np.int64)
    for unit in {u for u in units.tolist() if u >= 0}:
        mine = [c for u, c in zip(units.tolist(), cells.tolist(), strict=True) if u == unit and c >= 0]
        for cell in sorted(set(mine), key=lambda c: (splitmix(int(keys[unit]), c), c))[: caps["max_cells"]]:
            counts[cell] += min(mine.count(cell), caps["max_per_cell"])
    return counts


@settings(max_examples=200)
@given(tables(), st.lists(st.integers(0, 25), max_size=6), st.integers(0, 12), st.randoms(use_true_random=False))
def test_streaming_equals_the_definition(table, cuts, buffer, random):
    units, cells, keys, caps = table
    expected = by_the_book(units, cells, keys, caps)
    np.testing.assert_array_equal(proven_rule(units, cells, keys, caps), expected)
    order = random.sample(range(len(units)), len(units))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounding, "_BUFFER", buffer)
        by_code = iter(keys)
        patch.setattr(bounding, "draw_keys", lambda n_units: np.array([next(by_code) for _ in range(n_units)], dtype=np.uint64))
        tally = bounding.Tally(N_CELLS, caps["max_cells"], caps["max_per_cell"])
        for rows in np.split(np.array(order, dtype=int), sorted(cuts)):
            tally.add(units[rows], cells[rows])
            assert len(tally.pairs) <= 4 * caps["max_cells"]
        np.testing.assert_array_equal(tally.counts(), expected)


ALARM = 1e-6  # false-alarm rate of each of the tests below


def kept_pairs(units, cells, keys, n_units):
    """How often each pair of six places is the one kept, over many units that visit all six."""
    kept = bounded_counts(units, cells, keys, n_cells=6 * n_units, max_cells=2, max_per_cell=1).reshape(n_units, 6)
    code = {pair: i for i, pair in enumerate(combinations(range(6), 2))}
    return np.bincount([code[tuple(np.flatnonzero(row))] for row in kept], minlength=15)


@pytest.mark.statistics
def test_kept_cells_are_a_uniform_choice():
    n_units = 15_000
    units, cells = np.repeat(np.arange(n_units), 6), np.arange(6 * n_units)
    keys = bounding.draw_keys(n_units)
    assert stats.chisquare(kept_pairs(units, cells, keys, n_units)).pvalue > ALARM
    same_places = bounded_counts(units, np.tile(np.arange(6), n_units), keys, n_cells=6, max_cells=1, max_per_cell=1)
    assert same_places.sum() == n_units
    assert stats.chisquare(same_places).pvalue > ALARM
    biased = np.where(np.arange(n_units) % 20 == 0, np.uint64(5), keys)  # negative control: one unit in twenty has a fixed key
    fixed = bounded_counts(units, np.tile(np.arange(6), n_units), biased, n_cells=6, max_cells=1, max_per_cell=1)
    assert stats.chisquare(fixed).pvalue < ALARM


def test_kept_cells_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    units, cells, keys = rng.integers(0, 50, 2000), rng.integers(0, 30, 2000), bounding.draw_keys(50)
    expected = bounded_counts(units, cells, keys, n_cells=30, max_cells=3, max_per_cell=2)
    for order in (np.arange(2000)[::-1], np.argsort(cells), rng.permutation(2000)):
        np.testing.assert_array_equal(
            bounded_counts(units[order], cells[order], keys, n_cells=30, max_cells=3, max_per_cell=2), expected
        )


@pytest.mark.statistics
def test_keys_are_fresh_bits_of_the_system():
    keys = bounding.draw_keys(4000)
    assert keys.dtype == np.uint64
    assert len(np.unique(keys)) == 4000
    ones = int(np.unpackbits(keys.view(np.uint8)).sum())
    assert 2 * stats.norm.sf(abs(ones - 128_000) / math.sqrt(64_000)) > ALARM
    events = {"person": [1] * 20, "node": list(range(4)) * 5}
    maps = {tuple(count_events(PATH, events, **TIED).counts) for _ in range(60)}
    assert len(maps) > 1, "60 runs kept the same two of four nodes; by chance once in 6^59"


# ---- places --------------------------------------------------------------------------------------------------------


def great_circle(lon, lat, places):
    lon, lat, there = np.radians(lon)[:, None], np.radians(lat)[:, None], np.radians(places)
    half = np.sin((lat - there[:, 1]) / 2) ** 2 + np.cos(lat) * np.cos(there[:, 1]) * np.sin((lon - there[:, 0]) / 2) ** 2
    return 2 * 6_371_008.8 * np.arcsin(np.sqrt(half))


def nodes_of(graph, events, **options):
    """The node of each event, each its own unit; -1 where it was dropped."""
    found = np.full(len(next(iter(events.values()))), -1)
    for i in range(len(found)):
        counts = count_events(graph, {k: v[i : i + 1] for k, v in events.items()} | {"person": ["a"]}, **TIED, **options).counts
        if counts.sum():
            found[i] = int(counts.argmax())
    return found


@pytest.mark.parametrize("middle", [(-74.0, 40.7), (180.0, -17.0), (-180.0, 65.0), (10.0, 0.0), (359.9, 51.0)])
def test_the_nearest_node_is_that_of_the_globe(middle):
    rng = np.random.default_rng(0)
    graph = globe(np.clip(middle + rng.normal(0, 0.02, (80, 2)), [-360, -90], [360, 90]))
    lon, lat = (np.array(middle) + rng.normal(0, 0.03, (60, 2))).T
    lon = (lon + 180) % 360 - 180
    distance = great_circle(lon, lat, graph.coords)
    found = nodes_of(graph, {"lon": lon, "lat": lat})
    assert (distance[np.arange(60), found] <= distance.min(axis=1) * 1.001).all()
    near = nodes_of(graph, {"lon": lon, "lat": lat}, max_distance=1000)
    clear = np.abs(distance.min(axis=1) - 1000) > 5
    np.testing.assert_array_equal((near >= 0)[clear], (distance.min(axis=1) < 1000)[clear])
    assert 0 < (near < 0).sum() < 60


def test_nodes_around_the_globe_meet_at_180_degrees():
    graph = globe([[-170.0, 0.0], [0.0, 0.0], [150.0, 0.0]])
    lon = np.array([175.0, -178.0, 160.0, 185.0, -80.0, 500.0])
    np.testing.assert_array_equal(nodes_of(graph, {"lon": lon, "lat": np.zeros(6)}), [0, 0, 2, 0, 1, 2])


def test_planes_and_projections():
    grid = hg.datasets.grid(5, 5)
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 5, 40), rng.uniform(-5, 1, 40)
    distance = np.hypot(x[:, None] - grid.coords[:, 0], y[:, None] - grid.coords[:, 1])
    np.testing.assert_array_equal(nodes_of(grid, {"x": x, "y": y}), distance.argmin(axis=1))
    far = nodes_of(grid, {"px": x, "py": y}, x="px", y="py", crs="planar", max_distance=0.5)
    np.testing.assert_array_equal(far, np.where(distance.min(axis=1) <= 0.5, distance.argmin(axis=1), -1))
    kept = count_events(grid, {"x": [100.0], "y": [0.0], "person": [1]}, far="keep", **TIED)
    assert kept.counts.sum() == 1
    assert kept.rules == {"place": "nearest node", "max_distance": None, "far": "keep"}
    boroughs = globe([[-73.99, 40.73], [-73.95, 40.65]])
    feet = {"x": np.array([986000.0, 998000.0, 1e12]), "y": np.array([206000.0, 176000.0, np.nan])}  # New York, in feet
    np.testing.assert_array_equal(nodes_of(boroughs, feet, crs="EPSG:2263", x="x", y="y", max_distance=3000), [0, 1, -1])
    np.testing.assert_array_equal(nodes_of(boroughs, feet, crs="EPSG:2263"), [0, 1, -1])


def test_rows_without_a_place_are_dropped():
    graph = globe([[0.0, 0.0], [1.0, 89.0]])
    lon = np.array([0, np.nan, np.inf, 0, 0, 0, 1e300])
    lat = np.array([0, 0, 0, 91, -90.5, np.nan, 0])
    assert (nodes_of(graph, {"longitude": lon, "latitude": lat}) >= 0).tolist() == [True, False, False, False, False, False, True]
    text = {"lon": ["0", "", "west"], "lat": ["0", "0", "0"]}
    np.testing.assert_array_equal(nodes_of(graph, text), [0, -1, -1])
    empty = hg.Graph.from_edges(np.empty((0, 2), dtype=int), n=0, coords=np.empty((0, 2)))
    assert count_events(empty, {"x": [1.0], "y": [1.0], "person": ["a"]}, **TIED).counts.shape == (0,)


@pytest.mark.parametrize(
    ("labels", "given", "expected"),
    [
        (None, np.array([0, 3, 4, -1]), [0, 3, -1, -1]),
        (None, [0.0, 3.0, float("nan"), 0.5], [0, 3, -1, -1]),
        (None, ["0", "03", "3.0", "x", "-1", None], [0, 3, 3, -1, -1, -1]),
        ([10, 20, 30, 40], pd.array([20, None, 50], dtype="Int64"), [1, -1, -1]),
        ([10, 20, 30, 40], ["20", "40.0", ""], [1, 3, -1]),
        (["a", "b", "c", "01"], ["b", "01", "1", None], [1, 3, -1, -1]),
        (["a", "b", "c", "01"], np.array(["c", "z"]), [2, -1]),
        (["a", "b", "c", "d"], pd.Categorical(["c", None, "z"]), [2, -1, -1]),
        ([(0, 0), (0, 1), "x", 7], [(0, 1), "x", 7, (5, 5)], [1, 2, 3, -1]),
        ([(0, 0), (0, 1), "x", 7], ["(0, 1)", "x", "7", "8"], [1, 2, 3, -1]),
    ],
)
def test_labels_find_their_nodes(labels, given, expected):
    graph = hg.Graph.from_edges([(0, 1), (1, 2), (2, 3)], labels=labels)
    np.testing.assert_array_equal(nodes_of(graph, {"node": given}), expected)


# ---- windows -------------------------------------------------------------------------------------------------------


def windows_of(times, windows):
    """The window of each event, -1 where it was dropped."""
    found = []
    caps = {"adjacency": "add-remove", "max_cells": 1, "max_per_cell": 1}
    for i in range(len(times)):
        events = {"person": ["a"], "node": [2], "when": times[i : i + 1]}
        counts = count_events(PATH, events, unit="person", time="when", windows=windows, **caps).counts
        assert counts.shape == (4, len(windows) - 1)
        assert counts.sum() == counts[2].sum()
        found.append(int(counts[2].argmax()) if counts.any() else -1)
    return found


TIMES = ["2026-03-29T00:59:59.999999", "2026-03-29T01:00:00", "2026-03-29T02:30", "2026-03-29T03:00:00", None, "noon", "9999-01-01"]
EDGES = ["2026-03-29T00:00", "2026-03-29T01:00", "2026-03-29T03:00"]  # a night that clocks change in Europe


@pytest.mark.parametrize("form", ["text", "datetimes", "numpy", "index", "hours"])
@pytest.mark.parametrize("column", ["text", "us", "ns", "s", "objects", "arrow"])
def test_windows_are_half_open(form, column):
    parsed = pd.Series(pd.to_datetime(TIMES, errors="coerce", format="ISO8601"))
    windows = {
        "text": EDGES,
        "datetimes": [datetime.datetime.fromisoformat(edge) for edge in EDGES],
        "numpy": np.array(EDGES, dtype="datetime64[ns]"),
        "index": pd.DatetimeIndex(EDGES),
        "hours": np.array(EDGES, dtype="datetime64[h]"),
    }[form]
    times = {
        "text": TIMES,
        "objects": [None if pd.isna(time) else time.to_pydatetime() for time in parsed],
        "arrow": parsed.astype("timestamp[us][pyarrow]"),
    }.get(column)
    times = parsed.where(parsed.dt.year < 2200).astype(f"datetime64[{column}]") if times is None else times
    assert windows_of(times, windows) == [0, 1, 1, -1, -1, -1, -1]


def test_distant_times_do_not_wrap_into_a_window():
    times = np.array(["2554-07-21T23:34:33", "1970-01-01T00:00:30", "9999-12-31"], dtype="datetime64[s]")  # the first is 2^64 ns
    windows = np.array(["1970-01-01T00:00:00", "1970-01-01T00:01:00.000000001"], dtype="datetime64[ns]")
    assert windows_of(times, windows) == [-1, 0, -1]
    assert windows_of(np.array(["1970-01-01T00:01:00"], dtype="datetime64[s]"), windows) == [0]


def test_windows_with_time_zones_are_instants():
    windows = pd.date_range("2026-03-29 00:00", periods=4, freq="h", tz="Europe/Berlin")  # 1:00 is followed by 3:00
    times = pd.Series(pd.DatetimeIndex(["2026-03-28T23:30", "2026-03-29T00:59", "2026-03-29T01:00", "2026-03-29T02:00"], tz="UTC"))
    assert windows_of(times, windows) == [0, 1, 2, -1]
    assert windows_of(times.dt.tz_convert("America/New_York"), windows) == [0, 1, 2, -1]
    text = ["2026-03-29T00:30:00+01:00", "2026-03-29 03:10+0200", "2026-03-28T23:00Z", ""]
    assert windows_of(text, windows) == [0, 2, 0, -1]
    counts = count_events(
        PATH, {"node": [0], "t": ["2026-03-28T23:00Z"]} | {"p": [1]}, unit="p", time="t", windows=windows, adjacency="add-remove",
        max_cells=1, max_per_cell=1,
    )  # fmt: skip
    assert counts.windows[0] == "2026-03-28T23:00:00+00:00"


ROWS = [*TIMES, "2026-03-29T02:59:59.999999999", "2026-03-29", "20260329T0200", "2026-03-29 00:00:00.5", "1600-01-01", "0001-01-01",
        "03/29/2026 02:00", "29.03.2026", "262143-01-01", "2026-13-01", "1774750000", "", "NaT", "2026-03-29T24:00"]  # fmt: skip


@given(st.lists(st.sampled_from(ROWS), min_size=1, max_size=8), st.sampled_from([object, "str", "string[pyarrow]"]))
def test_what_a_row_means_does_not_depend_on_the_others(texts, dtype):
    for windows in (Windows(EDGES), Windows([-2, 0, 3000, 10**10])):
        together = windows.find(as_column(pd.Series(texts, dtype=dtype)), "t")
        alone = [int(windows.find(as_column(pd.Series([text], dtype=dtype)), "t")[0]) for text in texts]
        assert together.tolist() == alone


@pytest.mark.parametrize(
    "times", [np.array([-0.1, 0, 5.9, 6, 24, np.nan]), ["-0.1", "0", "5.9", "6", "24", "x"], [-1, 0, 5, 6, 24, None]]
)
def test_windows_of_numbers(times):
    assert windows_of(times, [0, 6, 24]) == [-1, 0, 0, 1, -1, -1]


@pytest.mark.parametrize(
    ("times", "windows", "kind", "fault"),
    [
        (pd.DatetimeIndex(["2026-03-02"], tz="UTC"), EDGES, ValueError, "column 't' has a time zone and windows have none"),
        (
            pd.DatetimeIndex(["2026-03-02"]),
            [f"{e}Z" for e in EDGES],
            ValueError,
            "windows have a time zone and column 't' has none",
        ),
        (np.array([3.5]), EDGES, TypeError, r"windows are times, but column 't' holds numbers \(float64\)"),
        (pd.DatetimeIndex(["2026-03-02"]), [0, 1], TypeError, "windows are numbers, but column 't' holds times"),
    ],
)
def test_times_and_windows_must_be_of_one_kind(times, windows, kind, fault):
    events = {"node": [0], "p": ["a"], "t": times}
    with pytest.raises(kind, match=fault):
        count_events(PATH, events, unit="p", time="t", windows=windows, adjacency="add-remove", max_cells=1, max_per_cell=1)


@pytest.mark.parametrize(("zone", "edges"), [("Z", EDGES), ("", [f"{e}Z" for e in EDGES])])
def test_text_times_of_the_other_kind_are_rows_without_a_time(zone, edges):
    """Row by row: one such row changes nothing for the others, and is no refusal."""
    other = "" if zone else "Z"
    events = {"node": [0, 1], "p": ["a", "b"], "t": [f"2026-03-02T00:00{zone}", f"2026-03-02T00:00{other}"]}
    counts = count_events(PATH, events, unit="p", time="t", windows=edges, adjacency="add-remove", max_cells=1, max_per_cell=1)
    assert counts.counts.sum() == counts.counts[1].sum()


@pytest.mark.parametrize(
    "windows",
    [5, [1], [], [2, 1], [1, 1], [0, np.nan], [0, np.inf], [-np.inf, 0], [[0, 1]], ["a", "b"], [None, None], EDGES[::-1], "ab",
     [EDGES[0], f"{EDGES[1]}Z"], ["2026-01-01", "3026-01-01"], [True, False], [1, "2026-01-01"]],
)  # fmt: skip
def test_odd_windows_are_refused(windows):
    with pytest.raises((ValueError, TypeError), match="windows must be"):
        count_events(PATH, {"node": [0], "t": [0]}, time="t", windows=windows, adjacency="add-remove", max_cells=1, max_per_cell=1)


# ---- refusals ------------------------------------------------------------------------------------------------------

EVENTS = {"person": ["a"], "node": [0], "lon": [0.0], "lat": [0.0], "x": [0.0], "y": [0.0], "t": [0]}
SPHERE, GRID = globe([[0.0, 0.0], [1.0, 1.0]]), hg.datasets.grid(2, 2)


@pytest.mark.parametrize(
    ("graph", "changes", "kind", "fault"),
    [
        (PATH, {"adjacency": None}, ValueError, "adjacency must be declared: 'add-remove' .* or 'change-one'"),
        (PATH, {"adjacency": "both"}, ValueError, "adjacency must be declared"),
        (PATH, {"adjacency": ["add-remove"]}, ValueError, "adjacency must be declared"),
        (PATH, {"max_nodes": None}, ValueError, "give max_nodes and max_per_node"),
        (PATH, {"max_per_node": None}, ValueError, "give max_nodes and max_per_node"),
        (PATH, {"max_nodes": 0}, ValueError, "max_nodes must be an integer from 1"),
        (PATH, {"max_per_node": 1.5}, ValueError, "max_per_node must be an integer"),
        (PATH, {"max_nodes": 2**40}, ValueError, "max_nodes must be an integer from 1 to 2147483647"),
        (PATH, {"max_cells": 3}, ValueError, "without windows.*max_cells cannot be used here"),
        (
            PATH,
            {"windows": [0, 1], "time": "t", "max_cells": 1, "max_per_cell": 1},
            ValueError,
            "max_nodes and max_per_node cannot be used",
        ),
        (
            PATH,
            {"windows": [0, 1], "time": "t", "max_nodes": None, "max_per_node": None},
            ValueError,
            "give max_cells and max_per_cell",
        ),
        (PATH, {"time": "t"}, ValueError, "time and windows go together; windows, the"),
        (PATH, {"windows": [0, 1]}, ValueError, "time and windows go together; time, the column"),
        (PATH, {"windows": [0, 1], "time": 3}, TypeError, "time must be the name of a column"),
        (PATH, {"unit": 3}, TypeError, "unit must be the name of a column"),
        (PATH, {"node": 3}, TypeError, "node must be the name of a column"),
        (PATH, {"lon": "lon"}, ValueError, "say where events are in one way.*got node, lon"),
        (SPHERE, {"node": None, "lon": "lon"}, ValueError, "say where events are in one way"),
        (GRID, {"node": None, "x": "x"}, ValueError, "say where events are in one way"),
        (GRID, {"node": None, "x": "x", "y": "y"}, ValueError, "x= and y= need crs=: 'planar'"),
        (
            SPHERE,
            {"node": None, "x": "x", "y": "y", "crs": "planar"},
            ValueError,
            "the events are planar, but the graph has crs='lonlat'",
        ),
        (
            GRID,
            {"node": None, "x": "x", "y": "y", "crs": "EPSG:2263"},
            ValueError,
            "on the globe, but the graph's coordinates are planar",
        ),
        (GRID, {"node": None, "lon": "lon", "lat": "lat"}, ValueError, "build the graph with crs='lonlat'.*or project the events"),
        (
            SPHERE,
            {"node": None, "x": "x", "y": "y", "crs": "nowhere"},
            ValueError,
            "crs must be 'planar' or what pyproj understands",
        ),
        (SPHERE, {"node": None, "x": "x", "y": "y", "crs": 5j}, (ValueError, TypeError), "crs must be"),
        (SPHERE, {"node": None, "lon": "lon", "lat": "lat", "crs": "EPSG:4326"}, ValueError, "crs goes with x= and y= only"),
        (PATH, {"node": None, "lon": "lon", "lat": "lat"}, ValueError, "build the graph with coords="),
        (PATH, {"node": None}, ValueError, r"in more than one way \(node and lon\+lat and x\+y\); name them"),
        (SPHERE, {"node": None}, ValueError, r"in more than one way \(node and lon\+lat\)"),
        (PATH, {"max_distance": 5}, ValueError, "max_distance needs places"),
        (
            SPHERE,
            {"node": None, "lon": "lon", "lat": "lat", "max_distance": 5, "far": "keep"},
            ValueError,
            "leave one of the two out",
        ),
        (
            SPHERE,
            {"node": None, "lon": "lon", "lat": "lat", "max_distance": 0},
            ValueError,
            "max_distance must be a positive distance",
        ),
        (SPHERE, {"node": None, "lon": "lon", "lat": "lat", "max_distance": np.nan}, ValueError, "max_distance must be a positive"),
        (PATH, {"far": "away"}, ValueError, "far must be one of 'drop', 'keep'"),
        (PATH, {"chunk_rows": 0}, ValueError, "chunk_rows must be an integer of at least 1"),
        (PATH, {"progress": 5}, TypeError, "progress must be True, for a bar, or a function"),
        ("graph", {}, TypeError, "graph must be a hushgraph.Graph"),
    ],
)
def test_every_refusal_says_what_to_do(graph, changes, kind, fault):
    options = {"unit": "person", "adjacency": "add-remove", "max_nodes": 1, "max_per_node": 1, "node": "node"} | changes
    with pytest.raises(kind, match=fault):
        count_events(graph, EVENTS, **options)


def test_places_that_are_not_named_must_have_a_usual_name():
    with pytest.raises(ValueError, match="the 2 columns of the events say where the events are under no usual name; name them"):
        count_events(PATH, {"person": ["a"], "where": [0]}, **TIED)
    with pytest.raises(ValueError, match=r"x and y need crs='EPSG:\.\.\.'.*the graph is in degrees"):
        count_events(SPHERE, {"person": ["a"], "x": [0.0], "y": [0.0]}, **TIED)
    solid = hg.Graph.from_edges([(0, 1)], coords=np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"graph\.coords has shape"):
        count_events(solid, {"person": ["a"], "x": [0.0], "y": [0.0]}, **TIED)


def test_text_labels_do_not_match_numbers():
    graph = hg.Graph.from_edges([(0, 1)], labels=["1", "2"])
    with pytest.raises(TypeError, match="text labels, but column 'node' holds numbers"):
        count_events(graph, {"person": ["a"], "node": np.array([1])}, **TIED)
    odd = count_events(graph, {"person": ["a", "a"], "node": [["1"], "2"]}, **TIED)
    assert odd.counts.tolist() == [0, 1]  # a list is no label: that row is at no known node


# ---- the result ----------------------------------------------------------------------------------------------------


def test_without_a_unit_the_bound_is_assumed():
    events = {"node": [0, 0, 0, 1]}
    with pytest.warns(UserWarning, match="max_nodes and max_per_node are assumed to hold, not enforced.*pass unit="):
        counts = count_events(PATH, events, adjacency="change-one", max_nodes=3, max_per_node=2)
    assert counts.counts.tolist() == [3, 1, 0, 0]
    assert (counts.bound, counts.unit, counts.sensitivity_squared) == ("assumed", None, 24)


def test_a_count_map_knows_its_guarantee_and_shows_no_counts():
    counts = count_events(PATH, {"person": [98765], "node": [3]}, **TIED)
    assert isinstance(counts, CountMap)
    assert counts.graph is PATH
    assert counts.graph_hash == PATH.hash
    assert counts.caps == {"max_nodes": 2, "max_per_node": 1}
    assert counts.counts.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        counts.counts[0] = 1
    expected = (
        "CountMap(sensitivity_squared=2, adjacency='add-remove', unit='person', bound='enforced', caps={'max_nodes': 2, "
        "'max_per_node': 1}, windows=None, rules={'place': 'node'}, unit_column='person', dataset=None)"
    )
    assert repr(counts) == str(counts) == expected
    assert np.asarray(counts).dtype == object
    assert counts != count_events(PATH, {"person": [98765], "node": [3]}, **TIED)


@pytest.mark.parametrize("squared", [1, 2, 3, 4, 5, 8, 24, 10**12, 10**12 + 1, 2**61 + 1, Fraction(1, 3), Fraction(0.1) ** 2])
def test_the_sensitivity_is_the_next_float_up(squared):
    counts = declare_counts(PATH, np.zeros(4), unit="person", adjacency="add-remove", sensitivity_squared=squared)
    assert Fraction(counts.sensitivity) ** 2 >= squared > Fraction(math.nextafter(counts.sensitivity, 0)) ** 2


# ---- declared counts -----------------------------------------------------------------------------------------------

DECLARED = {"unit": "person", "adjacency": "add-remove", "sensitivity_squared": 3}
NAMED = hg.Graph.from_edges([(0, 1), (1, 2)], labels=["a", "b", "c"])


@pytest.mark.parametrize(
    "counts",
    [
        [3, -1, 2**52],
        np.array([3.0, -1.0, 2.0**52]),
        np.array([3, -1, 2**52], dtype=object).astype(np.int64),
        {"c": 2**52, "a": 3, "b": -1},
        pd.Series([2**52, -1, 3], index=["c", "b", "a"]),
        pd.Series([2**52, -1, 3], index=["c", "b", "a"], dtype="Int64"),
        pd.Series([2**52, -1, 3], index=["c", "b", "a"], dtype="int64[pyarrow]"),
    ],
)
def test_declared_counts_are_exact_and_in_node_order(counts):
    declared = declare_counts(NAMED, counts, **DECLARED)
    assert declared.counts.tolist() == [3, -1, 2**52]
    assert (declared.bound, declared.caps, declared.sensitivity_squared) == ("assumed", {}, 3)


def test_declared_windows_and_sensitivities():
    table = pd.DataFrame({8: [1, 2, 3], 9: [4, 5, 6]}, index=["b", "a", "c"])
    declared = declare_counts(NAMED, table, windows=[8, 9, 10], unit="car", adjacency="change-one", sensitivity=0.5)
    assert declared.counts.tolist() == [[2, 5], [1, 4], [3, 6]]
    assert declared.windows == (8, 9, 10)
    assert declared.sensitivity_squared == Fraction(1, 4)
    assert declared.sensitivity == 0.5
    whole = declare_counts(NAMED, [1, 2, 3], unit="car", adjacency="change-one", sensitivity=2)
    assert isinstance(whole.sensitivity_squared, int)
    assert declare_counts(hg.Graph.from_edges([(0, 1)]), {1: 7, 0: 5}, **DECLARED).counts.tolist() == [5, 7]


@pytest.mark.parametrize(
    ("counts", "changes", "kind", "fault"),
    [
        ([1.5, 0, 0], {}, ValueError, "some are fractions, NaN or infinite"),
        ([np.nan, 0, 0], {}, ValueError, "some are fractions, NaN or infinite"),
        ([np.inf, 0, 0], {}, ValueError, "some are fractions, NaN or infinite"),
        ([1j, 0, 0], {}, TypeError, "counts must be whole numbers.*got dtype complex128"),
        ([True, False, True], {}, TypeError, "got dtype bool"),
        (["1", "2", "3"], {}, TypeError, "counts must be whole numbers"),
        ([None, 1, 2], {}, TypeError, "got dtype object"),
        ([[1], [1, 2], [3]], {}, TypeError, "rows of equal length"),
        (np.ma.masked_equal([1, 2, 3], 2), {}, TypeError, "got masked entries"),
        ([2**52 + 1, 0, 0], {}, ValueError, "at most 2\\^52 in size"),
        ([-(2**53), 0, 0], {}, ValueError, "at most 2\\^52 in size"),
        ([2**64, 0, 0], {}, (TypeError, ValueError), "counts must be"),
        ([1, 2], {}, ValueError, r"expected \(3,\), got \(2,\)"),
        ([[1, 2], [3, 4], [5, 6]], {}, ValueError, r"expected \(3,\), got \(3, 2\); pass windows="),
        ([[1, 2], [3, 4], [5, 6]], {"windows": [0, 1]}, ValueError, r"expected \(3, 1\), got \(3, 2\)"),
        ([1, 2, 3], {"windows": [0, 1]}, ValueError, r"expected \(3, 1\), got \(3,\)"),
        (5, {}, ValueError, r"expected \(3,\), got \(\)"),
        ({"a": 1, "b": 2}, {}, ValueError, "each node of the graph exactly once"),
        ({"a": 1, "b": 2, "c": 3, "d": 4}, {}, ValueError, "each node of the graph exactly once"),
        (pd.Series([1, 2, 3], index=["a", "b", "b"]), {}, ValueError, "each node of the graph exactly once"),
        ([1, 2, 3], {"adjacency": None}, ValueError, "adjacency must be declared"),
        ([1, 2, 3], {"unit": None}, TypeError, "unit must say in a word whom"),
        ([1, 2, 3], {"unit": " "}, TypeError, "unit must say in a word whom"),
        ([1, 2, 3], {"sensitivity_squared": None}, ValueError, "one of the two"),
        ([1, 2, 3], {"sensitivity": 1.0}, ValueError, "one of the two"),
        ([1, 2, 3], {"sensitivity_squared": 0}, ValueError, "sensitivity_squared must be a positive integer"),
    ],
)
def test_odd_declarations_are_refused(counts, changes, kind, fault):
    with pytest.raises(kind, match=fault):
        declare_counts(NAMED, counts, **(DECLARED | changes))


# ---- real data -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pickups(data_folder):
    """Streets of Manhattan, an hour of pickups and the published counts."""
    with np.load(data_folder / "manhattan_osm.npz") as data, np.load(data_folder / "nyc_signal.npz") as signals:
        coords, edges, signals = np.stack([data["lon"], data["lat"]], axis=1), data["edges"], dict(signals)
    return coords, edges, data_folder / "nyc_taxi_pickups_2013-11-18_16h.parquet", signals


HOURS = [("f", "2013-11-18T17:00:00"), ("f_matched", "2013-11-18T16:51:00")]


def counted_pickups(graph, events, end, **where):
    windows = ["2013-11-18T16:00:00", end]
    caps = {"adjacency": "add-remove", "max_cells": 1, "max_per_cell": 1, "max_distance": 200}
    with pytest.warns(UserWarning, match="assumed to hold, not enforced"):
        counts = count_events(graph, events, time="time", windows=windows, **caps, **where)
    assert counts.bound == "assumed"
    return counts.counts[:, 0]


@pytest.mark.data
@pytest.mark.parametrize(("key", "end"), HOURS)
def test_taxi_pickups_of_manhattan_in_the_plane_of_the_published_counts(pickups, key, end):
    coords, edges, path, signals = pickups
    scale = np.array([111_320 * np.cos(np.radians(coords[:, 1].mean())), 110_540])  # metres per degree; found to fit them exactly
    graph = hg.Graph.from_edges(edges, n=len(coords), coords=coords * scale)
    events = pd.read_parquet(path)
    events = {"x": events["pickup_lon"] * scale[0], "y": events["pickup_lat"] * scale[1], "time": events["time"]}
    np.testing.assert_array_equal(counted_pickups(graph, events, end), signals[key])


@pytest.mark.data
@pytest.mark.parametrize(("key", "end"), HOURS)
def test_taxi_pickups_of_manhattan_on_the_globe(pickups, key, end):
    coords, edges, path, signals = pickups
    graph = hg.Graph.from_edges(edges, n=len(coords), coords=coords, crs="lonlat")
    counts = counted_pickups(graph, path, end, lon="pickup_lon", lat="pickup_lat")
    assert counts.sum() == signals[key].sum()  # the same events are near
    # A sphere is 0.7 % narrower there than the published plane, so events halfway between two nodes change sides: 3 in 2,000.
    assert np.abs(counts - signals[key]).sum() <= 0.004 * counts.sum()
    assert np.abs(counts - signals[key]).max() <= 1


def test_the_unit_may_have_another_name_than_its_column():
    events = {"passenger_id": ["a", "a", "b"], "node": [0, 0, 1]}
    caps = {"adjacency": "add-remove", "max_nodes": 1, "max_per_node": 1}
    counts = count_events(PATH, events, unit="passenger", unit_column="passenger_id", **caps)
    assert (counts.unit, counts.counts[:2].tolist()) == ("passenger", [1, 1])
    with pytest.raises(ValueError, match="unit= must say whose they are"):
        count_events(PATH, events, unit_column="passenger_id", **caps)


def test_far_and_max_distance_say_the_same():
    graph = hg.datasets.grid(3, 3)
    events = {"p": ["a", "b"], "x": [0.0, 500.0], "y": [0.0, 0.0]}
    caps = {"unit": "p", "adjacency": "add-remove", "max_nodes": 1, "max_per_node": 1}
    kept, dropped = count_events(graph, events, **caps), count_events(graph, events, max_distance=9, **caps)
    assert (kept.counts.sum(), kept.rules["far"]) == (2, "keep")
    assert (dropped.counts.sum(), dropped.rules["far"]) == (1, "drop")
    with pytest.raises(ValueError, match="far='drop' needs max_distance="):
        count_events(graph, events, far="drop", **caps)


def test_places_beyond_all_numbers_are_no_places():
    graph = hg.datasets.grid(3, 3)
    events = {"p": ["a", "b"], "x": [1e200, 0.0], "y": [1e200, 0.0]}
    assert count_events(graph, events, unit="p", adjacency="add-remove", max_nodes=1, max_per_node=1).counts.sum() == 1
