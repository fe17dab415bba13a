"""check_events: every row is accounted for, the owner is told what is probably wrong, and nothing of it leaves the screen."""

import copy
import pickle

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.privacy.checking import EventCheck, check_events
from hushgraph.privacy.counting import count_events
from hushgraph.privacy.ledger.budget import Ledger

HOURS = [f"2026-03-02T{hour:02d}:00:00" for hour in range(0, 25, 6)[:-1]] + ["2026-03-03T00:00:00"]
PLACES = {"max_nodes": 2, "max_per_node": 1}
CELLS = {"max_cells": 2, "max_per_cell": 1, "time": "time", "windows": HOURS}


@pytest.fixture(scope="module")
def graph():
    """A generated city somewhere in Manhattan, in degrees."""
    city = hg.datasets.city(400)
    metres = city.coords - city.coords.mean(axis=0)
    lonlat = np.array([-73.98, 40.75]) + metres / [111_195 * np.cos(np.radians(40.75)), 111_195]
    return hg.Graph.from_scipy(city.adjacency, coords=lonlat, crs="lonlat")


def trips(graph, n=400, seed=0) -> list[list[str]]:
    """Rows of person, lon, lat and time; each person has four."""
    rng = np.random.default_rng(seed)
    places = graph.coords[rng.integers(0, graph.n, n)] + rng.normal(0, 1e-4, (n, 2))
    clock = rng.integers(0, 86_400, n)
    return [
        [f"p{k // 4}", f"{lon:.6f}", f"{lat:.6f}", f"2026-03-02T{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}"]
        for k, ((lon, lat), s) in enumerate(zip(places.tolist(), clock.tolist(), strict=True))
    ]


def written(path, rows, head="person,lon,lat,time"):
    path.write_text("\n".join([head, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def parts(check: EventCheck) -> list[int]:
    return [number for _, number in check.table()[1:]]


def hinted(check: EventCheck, words: str) -> bool:
    return any(words in hint for hint in check.hints)


# ---- numbers ------------------------------------------------------------------------------------------------------------


def test_every_row_is_in_one_of_the_numbers(graph, tmp_path):
    rows = trips(graph)
    rows[0][0] = ""  # no id
    rows[1][1] = "east"  # no place
    rows[2][1:3] = ["0", "0"]  # too far
    rows[3][3] = "noon"  # no time
    rows[5][3] = "2025-03-02"  # outside all windows
    rows[6][0] = '"open'  # cannot be split
    path = written(tmp_path / "trips.csv", rows)
    check = check_events(graph, path, unit="person", max_distance=500, **CELLS)
    assert (check.rows, check.unreadable, check.without_id, check.without_place) == (400, 1, 1, 1)
    assert (check.too_far, check.without_time, check.outside_windows) == (1, 1, 1)
    assert sum(parts(check)) == check.rows
    counts = count_events(graph, path, unit="person", adjacency="add-remove", max_distance=500, **CELLS)
    assert check.cut > 0
    assert check.counted == counts.counts.sum()
    assert check.units == 100
    assert not check.every_id_once
    assert [one.place for one in check.dropped] == ["line 2", "line 3", "line 4", "line 5", "line 7", "line 8"]
    reasons = [one.reason for one in check.dropped]
    for words, reason in zip(
        ("no id", "lon 'east'", "further than 500", "time 'noon'", "in no window", "split"), reasons, strict=True
    ):
        assert words in reason


def test_what_is_counted_is_what_counting_counts(graph, tmp_path):
    """With one event per person nothing is drawn, so that the numbers agree exactly."""
    rows = [[f"q{k}", *row[1:]] for k, row in enumerate(trips(graph))]
    for k in range(0, 400, 7):
        rows[k][2] = ""
    path = written(tmp_path / "trips.csv", rows)
    for options in (CELLS, PLACES):
        check = check_events(graph, path, unit="person", **options)
        counts = count_events(graph, path, unit="person", adjacency="add-remove", **options)
        assert check.counted == counts.counts.sum() == 400 - check.without_place
        assert check.without_place == 58
        assert check.cut == 0


def test_tables_chunks_and_events_without_ids(graph, tmp_path):
    rows = trips(graph)
    names = ("person", "lon", "lat", "time")
    table = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    table["lon"][5] = None
    whole = check_events(graph, table, unit="person", **PLACES)
    pieces = check_events(
        graph, [{name: table[name][k : k + 50] for name in names} for k in range(0, 400, 50)], unit="person", **PLACES
    )
    small = check_events(graph, table, unit="person", chunk_rows=3, **PLACES)
    assert whole.rows == pieces.rows == small.rows == 400
    assert whole.without_place == pieces.without_place == small.without_place == 1
    assert [one.place for one in whole.dropped] == ["row 5"]
    free = check_events(graph, table, **PLACES)
    assert (free.units, free.cut, free.counted) == (None, 0, 399)
    assert "nothing is cut" in str(free)


def test_nodes_that_the_graph_does_not_have():
    graph = hg.Graph.from_edges([(0, 1), (1, 2)])
    check = check_events(graph, {"rider": ["a", "b", "a"], "node": [0, 7, 2]}, unit="rider", **PLACES)
    assert check.without_place == 1
    assert check.dropped[0].reason == "node 7: no node of the graph"
    assert hinted(check, "other names in the events")


@pytest.mark.parametrize("text", ["person,lon,lat,time\n", 'person,lon,lat,time\n"\n"\n'])
def test_nothing_to_read(graph, tmp_path, text):
    path = tmp_path / "trips.csv"
    path.write_text(text, encoding="utf-8")
    check = check_events(graph, path, unit="person", **CELLS)
    assert check.counted == 0
    assert check.hints


# ---- hints ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"max_distance": 300}])
def test_a_good_file_gives_no_hint(graph, tmp_path, options):
    """The negative control of all hints below."""
    path = written(tmp_path / "trips.csv", trips(graph))
    assert check_events(graph, path, unit="person", **CELLS, **options).hints == ()
    assert check_events(graph, path, unit="person", **PLACES, **options).hints == ()


@pytest.mark.parametrize("options", [{}, {"max_distance": 300}])
def test_swapped_columns_are_noticed(graph, tmp_path, options):
    rows = [[row[0], row[2], row[1], row[3]] for row in trips(graph)]
    path = written(tmp_path / "trips.csv", rows)
    check = check_events(graph, path, unit="person", **PLACES, **options)
    assert hinted(check, "lon and lat are swapped: 0% of the rows with coordinates are near the graph, and 100% would be")
    assert check.too_far == (400 if options else 0)
    assert check_events(graph, path, unit="person", lon="lat", lat="lon", **PLACES, **options).hints == ()


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ("46083.4375", "serial numbers of a spreadsheet"),
        ("46083", "serial numbers of a spreadsheet"),
        ("02/03/2026 10:30", "begin with day or month"),
        ("3/2/26", "begin with day or month"),
        ("02.03.2026", "begin with day or month"),
        ("1772447400", "seconds since 1970"),
        ("1772447400000", "milliseconds since 1970"),
        ("2026-03-02T10:30:00Z", "times have an offset from UTC"),
        ("2026-03-02T10:30:00 Uhr", "a part that ISO 8601 does not have"),
        ("", "times are missing"),
        ("Monday", "not written as"),
        ("2025-03-02T10:30:00", "windows are of another time"),
    ],
)
def test_times_that_are_not_understood_are_noticed(graph, tmp_path, time, words):
    path = written(tmp_path / "trips.csv", [[*row[:3], time] for row in trips(graph)])
    check = check_events(graph, path, unit="person", **CELLS)
    assert check.counted == 0
    assert hinted(check, words)


def test_missing_coordinates_are_noticed(graph, tmp_path):
    rows = trips(graph)
    for row in rows[::2]:
        row[1] = row[2] = ""
    check = check_events(graph, written(tmp_path / "trips.csv", rows), unit="person", **PLACES)
    assert check.without_place == 200
    assert hinted(check, "coordinates are missing, or no numbers: 50%")
    for row in rows[::2]:
        row[1] = row[2] = "0"
    check = check_events(graph, written(tmp_path / "trips.csv", rows), unit="person", **PLACES, max_distance=300)
    assert check.too_far == 200
    assert hinted(check, "written as lon 0, lat 0: 50%")


def test_other_places_and_planes_are_noticed(graph, tmp_path):
    elsewhere = [[row[0], "2.35", "48.86", row[3]] for row in trips(graph)]
    assert hinted(
        check_events(graph, written(tmp_path / "a.csv", elsewhere), unit="person", **PLACES), "another place or another crs"
    )
    feet = [[row[0], "988000", "20", row[3]] for row in trips(graph)]
    assert hinted(check_events(graph, written(tmp_path / "b.csv", feet), unit="person", **PLACES), "metres or feet")


def test_ids_that_are_none_are_noticed(graph, tmp_path):
    rows = [[str(k), *row[1:]] for k, row in enumerate(trips(graph))]
    check = check_events(graph, written(tmp_path / "a.csv", rows), unit="person", **PLACES)
    assert check.every_id_once
    assert hinted(check, "numbers the rows")
    assert "every id occurs once" in str(check)
    same = [["taxi", *row[1:]] for row in rows]
    assert hinted(check_events(graph, written(tmp_path / "b.csv", same), unit="person", **PLACES), "all rows have the same")
    none = [["" if k % 2 else "p", *row[1:]] for k, row in enumerate(rows)]
    assert hinted(check_events(graph, written(tmp_path / "c.csv", none), unit="person", **PLACES), "50% of the rows have none")


@pytest.mark.parametrize("first", [0, 1])
def test_row_numbers_of_joined_files_are_noticed(first):
    graph, order = hg.Graph.from_edges([(0, 1), (1, 2)]), np.random.default_rng(0).permutation(1700)
    numbers = np.concatenate([np.arange(1000), np.arange(700)]) + first
    for ids in (numbers, numbers[order], [*map(str, numbers)], [f"{number:06d}" for number in numbers]):
        check = check_events(graph, {"person": ids, "node": np.zeros(1700, int)}, unit="person", **PLACES)
        assert not check.every_id_once
        assert hinted(check, "numbers the rows of several files")


def test_numbered_people_are_not_taken_for_rows():
    """The negative control: people with numbers from 0 on, who come more or less often; and numbers with a gap."""
    graph, rng = hg.Graph.from_edges([(0, 1), (1, 2)]), np.random.default_rng(0)
    for ids in (np.repeat(np.arange(500), rng.integers(1, 4, 500)), np.tile(np.r_[0:500, 501:700], 2), [0, 0, 1]):
        assert check_events(graph, {"person": ids, "node": np.zeros(len(ids), int)}, unit="person", **PLACES).hints == ()


def test_ids_of_several_kinds_are_noticed():
    graph = hg.Graph.from_edges([(0, 1), (1, 2)])
    events = {"person": ["a", b"a", 0.5, 7, "7", "a"], "node": [0] * 6}
    assert hinted(check_events(graph, events, unit="person", **PLACES), "several kinds (bytes, other number, text)")
    same = {"person": ["a", "a", 7.0, 7, "7", "a"], "node": [0] * 6}
    assert check_events(graph, same, unit="person", **PLACES).hints == ()


def test_dropped_rows_of_several_files_have_line_and_file(tmp_path):
    graph = hg.Graph.from_edges([(0, 1), (1, 2)])
    paths = [tmp_path / f"{k}.csv" for k in range(2)]
    for path in paths:
        path.write_text("person,node\n,0\na,0\na,1\n")
    assert [one.place for one in check_events(graph, paths[0], unit="person", **PLACES).dropped] == ["line 2"]
    table = {"person": ["a", None], "node": [0, 0]}
    found = check_events(graph, [*paths, table], unit="person", **PLACES).dropped
    assert [one.place for one in found] == ["line 2 of part 1", "line 2 of part 2", "row 1 of part 3"]


class WithoutText:
    def __str__(self):
        msg = "secret"
        raise RuntimeError(msg)

    __repr__ = __str__


@pytest.mark.parametrize("odd", [pytest.param(10**5000, id="long"), pytest.param(WithoutText(), id="without text")])
def test_values_without_a_text_are_no_reason_to_stop(odd):
    graph = hg.Graph.from_edges([(0, 1), (1, 2)])
    events = {"person": ["a", odd], "node": [0, odd], "time": [odd, odd]}
    options = {"time": "time", "max_cells": 1, "max_per_cell": 1}
    for windows in (["2026-03-02", "2026-03-03"], [0, 1]):
        check = check_events(graph, events, unit="person", windows=windows, **options)
        assert check.counted == 0
        assert "secret" not in str(check)


# ---- for the screen only ------------------------------------------------------------------------------------------------


def test_nothing_of_it_can_be_kept_by_accident(graph, tmp_path):
    path = written(tmp_path / "trips.csv", [["secret", "7351.5", "x", "y"], *trips(graph)])
    check = check_events(graph, path, unit="person", **PLACES)
    assert repr(check) == "EventCheck(private; print it to see it)"
    assert "7351.5" in str(check)
    assert "secret" not in str(check)  # ids are never shown
    assert str(check).startswith("Private, not for publication")
    for act in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="neither pickled nor copied"):
            act(check)


def test_terminals_are_not_steered_by_the_file(graph, tmp_path):
    path = written(tmp_path / "trips.csv", [["p", "\x1b[2Jx", "40", "t"], *trips(graph)])
    assert "\x1b" not in str(check_events(graph, path, unit="person", **PLACES))


def test_no_ledger_is_touched_and_nothing_is_written(graph, tmp_path, monkeypatch):
    monkeypatch.setattr(Ledger, "open", None)
    monkeypatch.setattr(Ledger, "charge", None)
    path = written(tmp_path / "trips.csv", trips(graph))
    check_events(graph, path, unit="person", **PLACES)
    assert [file.name for file in tmp_path.iterdir()] == ["trips.csv"]


def test_wrong_options_are_refused_as_in_counting(graph, tmp_path):
    path = written(tmp_path / "trips.csv", trips(graph))
    for options in (
        {**PLACES, "unit": "nobody"},
        {"unit": "person"},
        {**PLACES, "unit": "person", "adjacency": "near"},
        {**PLACES, "unit": "person", "time": "time"},
    ):
        with pytest.raises(ValueError) as refused:
            check_events(graph, path, **options)
        with pytest.raises(ValueError, match=refused.value.args[0][:20]):
            count_events(graph, path, **{"adjacency": "add-remove", **options})
