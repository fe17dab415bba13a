"""Events on zones: by the labels of zones, or by the zone that contains their place."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._errors import InputError
from hushgraph.privacy import check_events, count_events

BOUNDS = {"unit": "person", "max_nodes": 3, "max_per_node": 1}


@pytest.fixture(scope="module")
def town():
    graph = hg.datasets.zones(60)
    return graph, hg.datasets.trips(graph, n_people=2000)


def test_zone_ids_and_places_give_the_same_counts(town):
    graph, events = town
    every = {"unit": "person", "adjacency": "add-remove", "max_nodes": 60, "max_per_node": 100}
    by_place = count_events(graph, {name: events[name] for name in ("person", "lon", "lat")}, **every)
    by_id = count_events(graph, {name: events[name] for name in ("person", "zone")}, node="zone", **every)
    np.testing.assert_array_equal(by_place.counts, by_id.counts)
    assert by_place.counts.sum() > 0.9 * len(events["person"])
    assert by_place.rules == {"place": "zone that contains it", "far": "drop"}
    assert by_id.rules == {"place": "node"}


@pytest.mark.parametrize("kind", [int, float, str])
def test_zone_ids_may_be_numbers_or_text(kind):
    graph = hg.datasets.zones(5)
    events = {"person": ["a", "b", "c"], "PULocationID": np.array([kind(2), kind(5), kind(264)])}
    counts = count_events(graph, events, node="PULocationID", adjacency="add-remove", **BOUNDS)
    assert counts.counts.tolist() == [0, 1, 0, 0, 1]


@pytest.mark.parametrize("read", [count_events, check_events])
def test_zones_without_ids_count_places_only(read):
    """Row numbers as ids would publish a map that is shifted by one zone."""
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    features = [
        {"type": "Feature", "properties": {"name": f"Z{k}", "nr": k + 1},
         "geometry": {"type": "Polygon", "coordinates": [(square + [k, 0]).tolist()]}}
        for k in range(3)
    ]  # fmt: skip
    zones = {"type": "FeatureCollection", "features": features}
    graph = hg.Graph.from_polygons(zones)
    people = {"person": ["a", "b", "c"]}
    for events in ({**people, "zone": [1, 2, 3]}, {**people, "node": [1, 2, 3]}):
        with pytest.raises(InputError, match=r"no ids.*--zone-label.*'name', 'nr'"):
            read(graph, events, adjacency="add-remove", **BOUNDS)
    with pytest.raises(InputError, match="no ids"):
        read(graph.subgraph([0, 2]), {**people, "zone": [1, 2, 3]}, adjacency="add-remove", **BOUNDS)
    read(graph, {**people, "lon": [0.5, 1.5, 2.5], "lat": [0.5, 0.5, 0.5]}, adjacency="add-remove", **BOUNDS)
    read(hg.Graph.from_polygons(zones, label="nr"), {**people, "zone": [1, 2, 3]}, adjacency="add-remove", **BOUNDS)


def test_zones_are_no_streets():
    """The number of a zone is no junction, even if the graph has one of that number."""
    streets = hg.Graph.from_edges([(0, 1), (1, 2)])
    for name in ("zone", "zone_id", "PULocationID"):
        with pytest.raises(InputError, match="under no usual name"):
            count_events(streets, {"person": ["a"], name: [1]}, adjacency="add-remove", **BOUNDS)
        assert count_events(streets, {"person": ["a"], name: [1]}, node=name, adjacency="add-remove", **BOUNDS).counts.sum() == 1


def test_events_outside_all_zones_are_dropped_and_the_check_tells(town):
    graph, events = town
    check = check_events(graph, {name: events[name] for name in ("person", "lon", "lat")}, **BOUNDS)
    outside = (events["zone"] == "") & (events["person"] != "")
    assert check.outside_zones == outside.sum() > 0
    assert check.too_far == 0
    assert f"{check.outside_zones:,}  outside all zones" in str(check)
    assert "in no zone" in str(check)
    assert check.hints == ()
    by_id = check_events(graph, {name: events[name] for name in ("person", "zone")}, node="zone", **BOUNDS)
    assert by_id.outside_zones is None
    assert by_id.without_place == outside.sum()


def test_swapped_coordinates_are_noticed(town):
    graph, events = town
    swapped = {"person": events["person"], "lon": events["lat"], "lat": events["lon"]}
    assert any("swapped" in hint for hint in check_events(graph, swapped, **BOUNDS).hints)


def test_the_zone_of_a_row_does_not_depend_on_other_rows(town):
    """The proof of the guarantee needs it: chunks of one row and of many give the same counts."""
    graph, events = town
    some = {name: events[name][:300] for name in ("person", "lon", "lat")}
    every = {"unit": "person", "adjacency": "add-remove", "max_nodes": 60, "max_per_node": 100}
    whole = count_events(graph, some, **every).counts
    np.testing.assert_array_equal(count_events(graph, some, chunk_rows=1, **every).counts, whole)
    rows = [count_events(graph, {name: column[[k]] for name, column in some.items()}, **every).counts for k in range(300)]
    np.testing.assert_array_equal(np.sum(rows, axis=0), whole)


def test_whole_turns_of_longitude_and_planar_coordinates():
    graph = hg.datasets.zones(30)
    events = {"person": [f"p{k}" for k in range(30)], "lon": graph.coords[:, 0] + 360, "lat": graph.coords[:, 1]}
    assert (count_events(graph, events, adjacency="add-remove", **BOUNDS).counts == 1).all()
    plane = hg.datasets.zones(30, crs=None)
    events = {"person": events["person"], "x": plane.coords[:, 0], "y": plane.coords[:, 1]}
    assert (count_events(plane, events, adjacency="add-remove", **BOUNDS).counts == 1).all()


@pytest.mark.parametrize(("option", "value"), [("max_distance", 200), ("far", "keep")])
def test_zones_take_no_distance(town, option, value):
    graph, events = town
    with pytest.raises(InputError, match=f"the nodes are zones.*leave {option} out"):
        count_events(graph, events, lon="lon", lat="lat", adjacency="add-remove", **BOUNDS, **{option: value})


def test_a_year_of_zones_is_released_with_totals(town, tmp_path):
    graph, events = town
    ledger = hg.privacy.Ledger.create(
        tmp_path / "budget.db", dataset="zones", unit="person", adjacency="add-remove", epsilon=2.0, delta=1e-6
    )
    counts = count_events(graph, events, node="zone", adjacency="add-remove", **BOUNDS)
    release = hg.privacy.release(counts, epsilon=1.0, delta=1e-6, ledger=ledger, public_graph=True)
    result = hg.denoise(graph, release)
    assert result.signal.shape == (60,)
    north = {"north": graph.labels[graph.coords[:, 1] > 40.7].tolist()}
    assert len(result.totals(north)) == 1
