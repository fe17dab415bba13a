"""Generated trips of a day: who was where when. Offline, the same for the same seed."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from hushgraph._errors import InputError
from hushgraph._geodesy import LocalPlane, planar_coords
from hushgraph._validation import checked_count, checked_seed, checked_time
from hushgraph.datasets.signals import hotspot_counts
from hushgraph.graphs import Graph, ZoneFinder, as_graph, node_names

_PEAKS = ((0.34, 8.3, 1.1), (0.41, 17.8, 1.7))  # share, hour and spread of the two rush hours; the rest is even
_HABITS = np.array([[0.68, 0.10, 0.22], [0.15, 0.35, 0.50], [0.12, 0.50, 0.38]])  # from home, work, elsewhere; by part of the day
_NO_ID, _FAR = 0.02, 0.03  # shares of rows


def trips(graph: Graph, *, n_people: int = 20_000, day: str = "2026-03-02", seed: int = 0) -> dict[str, np.ndarray]:
    """Return starts of trips in a city, one row each, about three per person, in random order.

    Most people make one to three trips, a few more than twenty. They start at home in the morning, at work in the evening, and at
    hotspots that move over the day, with two rush hours. Like real files, 3 % of the rows lie far outside the city and 2 %
    have no id.

    Parameters
    ----------
    graph : Graph
        Streets, with coordinates in metres or in degrees (crs="lonlat").
    n_people : int
        Number of people.
    day : str
        ISO date of the trips.
    seed : int
        Seed of the random numbers; the same seed gives the same trips.

    Returns
    -------
    dict of arrays
        "person": text ids like "p041273", empty where missing; "x" and "y", or "lon" and "lat" for graphs in degrees: about 15 m
        from a junction, less where junctions are closer than 45 m; "time": datetime64[s]. For a graph of zones also "zone": the label of
        the zone that contains the place, as text, empty outside all zones.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> city = datasets.city(500)
    >>> events = datasets.trips(city, n_people=100)
    >>> list(events)
    ['person', 'x', 'y', 'time']
    >>> bool((events["time"] < np.datetime64("2026-03-03")).all())
    True
    """
    graph = as_graph(graph)
    coords = graph.coords
    if coords is None or coords.shape[1] != 2 or not graph.n:
        text = "trips needs a graph with two coordinates per node; build it with coords="
        raise InputError.about(
            argument="graph", verb="have", expected="two coordinates per node", hint="build it with coords=", text=text
        )
    n_people = checked_count("n_people", n_people, 1)
    rng = np.random.default_rng(checked_seed(seed))
    start = checked_time("day", day, "D", "an ISO date, '2026-03-02', say").astype("datetime64[s]")
    per_person = 1 + np.minimum(2.1 * rng.pareto(1.8, n_people), 60).astype(np.int64)
    person = rng.permutation(np.repeat(np.arange(n_people), per_person))
    seconds = _seconds_of_day(len(person), rng)
    junctions = planar_coords(coords, graph.crs)
    place = _near(junctions, _nodes(graph, person, seconds, n_people, seed, rng), rng)
    _move_far(place, junctions, rng)
    if graph.crs == "lonlat":
        place = LocalPlane.around(coords).degrees(place)
        place = np.stack([(place[:, 0] + 180) % 360 - 180, np.clip(place[:, 1], -90, 90)], axis=1)
    names = ("lon", "lat") if graph.crs == "lonlat" else ("x", "y")
    ids = _ids(n_people, rng)[np.where(rng.random(len(person)) < _NO_ID, n_people, person)]
    events = {"person": ids, names[0]: place[:, 0], names[1]: place[:, 1], "time": start + seconds.astype("timedelta64[s]")}
    return events if graph.outlines is None else {**events, "zone": _zones_of(graph, place)}


def _zones_of(graph: Graph, place: np.ndarray) -> np.ndarray:
    """Return the labels of the zones that contain places, as text."""
    assert graph.outlines is not None
    names = np.array([*map(str, node_names(graph)), ""])
    return names[ZoneFinder(graph.outlines).find(place)]


def _seconds_of_day(n: int, rng: np.random.Generator) -> np.ndarray:
    hours = rng.uniform(5.5, 24.0, n)
    draw, low = rng.random(n), 0.0
    for share, hour, spread in _PEAKS:
        rush = (draw >= low) & (draw < low + share)
        hours[rush] = rng.normal(hour, spread, int(rush.sum()))
        low += share
    return (hours * 3600).astype(np.int64) % 86_400


def _nodes(graph: Graph, person: np.ndarray, seconds: np.ndarray, n_people: int, seed: int, rng: np.random.Generator) -> np.ndarray:
    """Return the junction of each trip: home, work or somewhere busy at that part of the day (before 11, before 16, later)."""
    busy = [_busy_places(graph, seed + 1 + k, n_hotspots) for k, n_hotspots in enumerate((40, 12, 12, 9))]
    home, work = (rng.choice(graph.n, n_people, p=chances) for chances in busy[:2])
    part = np.searchsorted([11 * 3600, 16 * 3600], seconds, side="right")
    habit = (rng.random(len(person))[:, None] > np.cumsum(_HABITS, axis=1)[part, :2]).sum(axis=1)
    elsewhere = np.stack([rng.choice(graph.n, len(person), p=busy[k]) for k in (0, 2, 3)])[part, np.arange(len(person))]
    return np.choose(habit, [home[person], work[person], elsewhere])


def _busy_places(graph: Graph, seed: int, n_hotspots: int) -> np.ndarray:
    counts = hotspot_counts(graph, total=30.0 * graph.n, n_hotspots=n_hotspots, seed=seed % 2**64) + 0.3
    return counts / counts.sum()


def _near(junctions: np.ndarray, nodes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return places about 15 m from the junctions, in random directions."""
    gap = np.median(cKDTree(junctions).query(junctions, k=2)[0][:, 1])  # infinite for a single node
    return junctions[nodes] + rng.normal(0.0, min(15.0, gap / 3) / np.sqrt(2), (len(nodes), 2))


def _move_far(place: np.ndarray, junctions: np.ndarray, rng: np.random.Generator) -> None:
    """Put a few of the rows between one and three city widths from the middle."""
    width = max(np.ptp(junctions, axis=0).max(), 1.0)
    rows = np.flatnonzero(rng.random(len(place)) < _FAR)
    turn, radius = rng.uniform(0, 2 * np.pi, len(rows)), rng.uniform(1.0, 3.0, len(rows)) * width
    place[rows] = junctions.mean(axis=0) + np.stack([np.cos(turn), np.sin(turn)], axis=1) * radius[:, None]


def _ids(n_people: int, rng: np.random.Generator) -> np.ndarray:
    """Return ids in random order, with gaps; the last entry is the missing id."""
    digits = max(6, len(str(2 * n_people)))
    numbers = rng.permutation(10**digits if digits == 6 else 2 * n_people)[:n_people]
    return np.array([f"p{number:0{digits}d}" for number in numbers] + [""])
