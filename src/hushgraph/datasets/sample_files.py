"""Files to try the commands on: the streets of a generated city, trips in it, and noisy values. Offline, the same for the same seed."""

from __future__ import annotations

import csv
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hushgraph._atomic import atomic_file
from hushgraph._geodesy import LocalPlane
from hushgraph.datasets.generated import city
from hushgraph.datasets.signals import hotspot_counts
from hushgraph.datasets.trip_events import trips
from hushgraph.files import write_graph, write_signal
from hushgraph.graphs import Graph

STREETS, TRIPS, VALUES = SAMPLE_FILES = ("streets.graphml", "trips.csv", "values.csv")
SAMPLE_SIGMA = 5.3  # standard deviation of the noise in values.csv
_CORNER = LocalPlane(-40.0, 45.0)  # in the Atlantic Ocean, so that nobody takes the city for a real one
_FIRST_ID = 1001  # of a junction; numbers from 0 would be positions and not labels


@dataclass(frozen=True, eq=False)
class Sample:
    """A generated city, the starts of trips in it, as `trips` returns them, and noisy values on its junctions."""

    graph: Graph
    trips: dict[str, np.ndarray] = field(repr=False)
    values: np.ndarray = field(repr=False)


def draw_sample(n_nodes: int, *, seed: int) -> Sample:
    """Return a city in degrees, with four people per junction; numbers are rounded as they are in the files.

    Examples
    --------
    >>> sample = draw_sample(200, seed=0)
    >>> sample.graph.crs, list(sample.trips)
    ('lonlat', ['person', 'lon', 'lat', 'time'])
    """
    plan = city(n_nodes, seed=seed)
    places = _CORNER.degrees(np.asarray(plan.coords)).round(7)  # a centimetre, as in OpenStreetMap
    graph = Graph(plan.adjacency, coords=places, crs="lonlat", labels=_FIRST_ID + np.arange(plan.n), names=plan.names)
    events = trips(graph, n_people=4 * graph.n, seed=seed)
    events |= {axis: events[axis].round(6) for axis in ("lon", "lat")}
    clean = hotspot_counts(graph, total=10.0 * graph.n, seed=seed)
    noise = np.random.default_rng(seed).normal(0, SAMPLE_SIGMA, graph.n)
    return Sample(graph, events, (clean + noise).round(3))


def write_sample(folder: Path, sample: Sample, *, replace: bool = False) -> list[Path]:
    """Write streets, trips and values into the folder, which must exist; return their paths.

    All files are complete before the first of them gets its name. Without `replace`, a file that exists is a FileExistsError.
    """
    paths = [folder / name for name in SAMPLE_FILES]
    with ExitStack() as stack:
        streets, events, values = (stack.enter_context(atomic_file(path, replace=replace)) for path in paths)
        write_graph(streets, sample.graph, for_osmnx=True)
        _write_trips(events, sample.trips)
        write_signal(values, sample.graph, sample.values)
    return paths


def _write_trips(path: Path, events: dict[str, np.ndarray]) -> None:
    """Write one row for each trip; times are ISO 8601."""
    with path.open("x", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(events)
        writer.writerows(zip(*({**events, "time": events["time"].astype(str)}.values()), strict=True))
