"""Real maps: streets of Manhattan and San Francisco with taxi pickups (paper, Sec. V-A to V-C), and large road networks.

No map here is one of the paper's unless its name says so. The streets are of another OpenStreetMap snapshot; the prepared hours of
New York are not the paper's 2014-09-24T00; the day of San Francisco is the paper's. Each map says what it is made from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np
from scipy.spatial import cKDTree

from hushgraph._errors import InputError, MissingPackageError
from hushgraph._validation import checked_time, choose, shown
from hushgraph.datasets.catalogue import (
    CABS,
    MANHATTAN,
    NYC_PICKUPS,
    NYC_SIGNALS,
    OSM,
    ROADS,
    SAN_FRANCISCO,
    SF_DAY,
    SF_PICKUPS,
    SF_SIGNALS,
    TLC,
    Network,
)
from hushgraph.datasets.graph_files import read_snap
from hushgraph.datasets.pickup_files import Pickups, read_cabspotting, read_tlc
from hushgraph.datasets.sources import DataFile, DataUnavailable, fetch_file, find_file, missing_file
from hushgraph.files import read_arrays
from hushgraph.graphs import CodedTexts, EdgeTable, Graph, Streets, affinities

_NEAR = 200.0  # metres; pickups further from every intersection are dropped
# Metres per degree of longitude at the equator, and of latitude, with which the published counts were made. On the sphere of `_geodesy` 3 pickups in
# 2,000 lie nearer to another intersection.
_PUBLISHED_PLANE = 111_320.0, 110_540.0


@dataclass(frozen=True, eq=False)
class Map:
    """A real graph with the signals that were counted on it.

    Parameters
    ----------
    graph : Graph
        The graph.
    signals : mapping of str to (n,) arrays
        Signals by name, in node order; empty for road networks without events.
    name : str
        What the map shows, in a few words.
    source : str
        The data that the map is made from.
    attribution : str
        Whom to name with the map, and the licence if one is stated.
    main : str, optional
        Name of the signal that `signal` returns.
    counted : DataFile or Path, optional
        The events that the signals were counted from; `events` returns its path.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> counts = {"f": [3.0, 0.0, 1.0, 2.0]}
    >>> block = datasets.Map(datasets.grid(2, 2), counts, name="a block", source="made up", attribution="none", main="f")
    >>> block
    Map('a block', Graph(n=4, n_edges=4, unweighted, coords), signals=['f'])
    >>> block.signal
    array([3., 0., 1., 2.])
    """

    graph: Graph
    signals: Mapping[str, np.ndarray]
    name: str
    source: str
    attribution: str
    main: str | None = None
    counted: DataFile | Path | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        signals = {
            name: np.array(self.graph.aligned(name, values, one=True), dtype=np.float64) for name, values in self.signals.items()
        }
        for values in signals.values():
            values.flags.writeable = False
        object.__setattr__(self, "signals", MappingProxyType(signals))

    def __repr__(self) -> str:
        return f"Map({self.name!r}, {self.graph!r}, signals={list(self.signals)})"

    @property
    def signal(self) -> np.ndarray:
        """Return the main signal."""
        if self.main is None:
            msg = f"{self.name} has no main signal; it has {list(self.signals) or 'none'}; see hushgraph.datasets.smooth_signal"
            raise InputError(msg)
        return self.signals[self.main]

    def events(self) -> Path:
        """Return the path of the pickups that the signal was counted from.

        Prepared pickups are parquet files with columns pickup_lon, pickup_lat and time, ready for `privacy.count_events`; files of your
        own are read with `read_tlc` or `read_cabspotting`.

        Returns
        -------
        Path
            A file, or the folder of the cab traces.

        Raises
        ------
        DataUnavailable
            If the map was not counted from events, or the file is not there.
        """
        if self.counted is None:
            msg = f"{self.name} was not counted from events"
            raise DataUnavailable(msg)
        return fetch_file(self.counted) if isinstance(self.counted, DataFile) else self.counted


# ---- cities -----------------------------------------------------------------------------------------------------------


def manhattan(
    *, hour: str = "2013-11-18T16", trips: str | Path | None = None, weighted: bool = False, allow_download: bool = True
) -> Map:
    """Load the streets of Manhattan with yellow-taxi pickups of one hour, counted at the nearest intersection within 200 m.

    4,607 intersections and 8,148 street segments of OpenStreetMap (March 2025) with longitude and latitude; labels are OSM ids. The
    paper's graph, of an earlier snapshot, has 4,513 nodes. Without the prepared file the streets of today are asked of
    OpenStreetMap through OSMnx (pip install 'hushgraph[osm]'); they are other streets, and the name says so.

    The prepared signals:

    - "f": Monday 2013-11-18, 16:00 to 17:00; 15,863 pickups, norm 493.
    - "f_matched": the same up to 16:51, a window chosen since its norm, 422, is that of the paper's signal; 13,466 pickups.
    - "f_newyear": 2013-01-01, 00:00 to 00:56, only trips that also ended by then; 9,072 pickups.

    Parameters
    ----------
    hour : str
        "2013-11-18T16" (main signal "f") or "2013-01-01T00" ("f_newyear"); any hour with `trips`.
    trips : str or path, optional
        Trip records of the NYC Taxi and Limousine Commission that have coordinates (path, or https address of a .csv, .csv.gz or
        .parquet); the only signal is then "f", the pickups of `hour` in them. The paper's hour is "2014-09-24T00".
    weighted : bool
        Edges weigh mean(d) / d for lengths d; otherwise 1.
    allow_download : bool
        Whether files that no folder has may be downloaded; otherwise they are an error.

    Returns
    -------
    Map
        Graph and signals.

    Raises
    ------
    DataUnavailable
        If the data is in no folder and cannot be downloaded; the message says what to do.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> datasets.manhattan().graph  # doctest: +SKIP
    Graph(n=4607, n_edges=8148, unweighted, coords, labels)
    """
    start = _checked_start("hour", hour, "h")
    if trips is None and str(start) not in NYC_PICKUPS:
        msg = (
            f"there are no prepared pickups of {start}, only of {' and '.join(NYC_PICKUPS)}; pass trips=, the path of trip records "
            "of the NYC Taxi and Limousine Commission for that hour that have coordinates, as they were first published"
        )
        raise DataUnavailable(msg)
    main, counted = NYC_PICKUPS[str(start)] if trips is None else ("f", _local_path(trips, allow_download))
    signals = _prepared(NYC_SIGNALS, MANHATTAN) if trips is None else {}
    signals.pop("matched_seconds", None)
    if not signals:
        path = _found(
            counted, "or pass trips=, records with coordinates (https://www.nyc.gov/site/tlc/about/tlc-trip-record-data.page)"
        )
        pickups = _during(read_tlc(path, start=start, end=start + 1), path, start, start + 1)
    graph, streets, whose = _streets(MANHATTAN, "Manhattan, New York City, New York, USA", weighted, allow_download)
    signals = signals or {main: _counts(graph, pickups, _NEAR)}
    records = counted.source if isinstance(counted, DataFile) else counted.name
    source = f"streets: {streets}; pickups of {start}: {records}"
    return Map(graph, signals, f"Manhattan, taxi pickups of {start}", source, f"{whose}; {TLC}", main, counted)


def san_francisco(
    *,
    streets: Literal["osm", "dpw"] = "osm",
    day: str = SF_DAY,
    cabspotting: str | Path | None = None,
    weighted: bool = False,
    allow_download: bool = True,
) -> Map:
    """Load the streets of San Francisco with the taxi pickups of a day, counted at the nearest intersection.

    "osm": 10,010 intersections and 16,375 segments of OpenStreetMap (March 2025), labels are OSM ids; without the prepared file as
    they are today, see `manhattan`. "dpw": 9,401 and 14,891 of the city's own street centrelines (about 2014). The paper's graph,
    of an earlier OpenStreetMap, has 9,573 and 15,716; its day is the same.

    The signals, of 20,036 pickups on 2008-05-25 in the whole Bay Area:

    - "f": those within 200 m of an intersection; 19,336 (osm) or 19,360 (dpw). The main signal.
    - "f_all": all, whatever the distance; the airport's count at the city's edge. Its norm, 975 on "osm", is nearer to the 938 of
      the paper's signal.

    Parameters
    ----------
    streets : {"osm", "dpw"}
        Which graph of the streets.
    day : str
        ISO date; other days than 2008-05-25 need `cabspotting`.
    cabspotting : str or path, optional
        Folder of your own copy of CRAWDAD epfl/mobility, to infer the pickups from (see `read_cabspotting`).
    weighted : bool
        Edges weigh mean(d) / d for lengths d; otherwise 1.
    allow_download : bool
        Whether files that no folder has may be downloaded; otherwise they are an error.

    Returns
    -------
    Map
        Graph and signals.

    Raises
    ------
    DataUnavailable
        If the data is in no folder and cannot be downloaded; the message says what to do.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> datasets.san_francisco(streets="dpw").graph  # doctest: +SKIP
    Graph(n=9401, n_edges=14891, unweighted, coords)
    """
    network = SAN_FRANCISCO[choose("streets", streets, tuple(SAN_FRANCISCO))]
    start = _checked_start("day", day, "D")
    if cabspotting is None and str(start) != SF_DAY:
        msg = f"there are no prepared pickups of {start}, only of {SF_DAY}; pass cabspotting=, the folder of CRAWDAD epfl/mobility"
        raise DataUnavailable(msg)
    prepared = _prepared(SF_SIGNALS, network) if cabspotting is None else {}
    ending = {"osm": "", "dpw": "_dpw"}[streets]
    signals = {name: prepared[key] for name, key in (("f", f"f{ending}"), ("f_all", f"f{ending}_all")) if key in prepared}
    counted = SF_PICKUPS if cabspotting is None else Path(cabspotting)
    if not signals:
        path = _found(
            counted, "or pass cabspotting=, the folder of your copy of CRAWDAD epfl/mobility (https://doi.org/10.15783/C7J010)"
        )
        pickups = _during(read_tlc(path) if cabspotting is None else read_cabspotting(path), path, start, start + 1)
    graph, origin, whose = _streets(network, "San Francisco, California, USA", weighted, allow_download)
    signals = signals or {"f": _counts(graph, pickups, _NEAR), "f_all": _counts(graph, pickups, np.inf)}
    source = f"streets: {origin}; pickups of {start}: CRAWDAD epfl/mobility (cabspotting)"
    return Map(graph, signals, f"San Francisco, taxi pickups of {start}", source, f"{whose}; {CABS}", "f", counted)


def road_network(name: str, *, weighted: bool = False, allow_download: bool = True) -> Map:
    """Load a road network without events.

    - "roadNet-PA" (1,088,092 nodes, the paper's large graph, Sec. V-D), "roadNet-TX", "roadNet-CA": from SNAP, downloaded if they
      are not at hand.
    - "world_highways": 560,282 nodes, in degrees. "moscow" (411,992) and "seattle" (148,463): with the points that only shape a
      road, planar. "roads_1m": these three side by side, 1,120,737 nodes, no coordinates; it stands in for roadNet-PA in
      size, but results on it are not results on roadNet-PA.
    - "minnesota": 2,642 nodes, with two synthetic signals "f1" and "f2".

    A file whose numbers of nodes and edges are not those of the network is refused.

    Parameters
    ----------
    name : str
        One of the names above.
    weighted : bool
        Take the weights of the source, which only "minnesota" has.
    allow_download : bool
        Whether files that no folder has may be downloaded; otherwise they are an error.

    Returns
    -------
    Map
        The graph; "minnesota" has signals.

    Raises
    ------
    DataUnavailable
        If the data is in no folder and cannot be downloaded; the message says what to do.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> datasets.road_network("roads_1m").graph  # doctest: +SKIP
    Graph(n=1120737, n_edges=1446263, unweighted)
    """
    network = ROADS[choose("name", name, tuple(ROADS))]
    path = fetch_file(network.file, allow_download=allow_download)
    if path.suffix == ".npz":
        data = _load(path)
        graph = _graph_of(path, data, network, weighted)
    else:
        data, graph = {}, _sized(path, read_snap(path), network)
        if weighted:
            raise InputError(_no_weights(path))
    signals = {key: values for key, values in data.items() if key in ("f1", "f2")}
    return Map(graph, signals, name, network.file.source, network.attribution)


# ---- streets ----------------------------------------------------------------------------------------------------------


def _streets(network: Network, place: str, weighted: bool, allow_download: bool) -> tuple[Graph, str, str]:
    """Return (graph, its source, its attribution)."""
    path = find_file(network.file)
    if path is not None:
        return _graph_of(path, _load(path), network, weighted), network.file.source, network.attribution
    if network.attribution != OSM:
        raise missing_file(network.file, "or use streets='osm'")
    if not allow_download:
        raise missing_file(network.file, "or allow_download=True, to ask OpenStreetMap for the streets of today")
    try:
        import osmnx
    except ImportError:
        msg = f"{missing_file(network.file)}; or have OpenStreetMap asked for the streets of today: pip install 'hushgraph[osm]'"
        raise MissingPackageError(msg) from None
    try:
        streets = osmnx.graph_from_place(place, network_type="drive")
    except OSError as fault:
        msg = (
            f"{missing_file(network.file)}; OpenStreetMap, asked for the streets of today, did not answer ({type(fault).__name__})"
        )
        raise DataUnavailable(msg) from fault
    graph = Graph.from_networkx(streets, crs="lonlat", distance="length" if weighted else None, duplicates="max")
    return graph, f"OpenStreetMap of {date.today().isoformat()}, drivable streets of {place}, by OSMnx", OSM


def _graph_of(path: Path, data: dict[str, np.ndarray], network: Network, weighted: bool) -> Graph:
    edges, weights = data["edges"], None
    if weighted and not {"weight", "length_m"} & data.keys():
        raise InputError(_no_weights(path))
    if weighted:
        lengths = "length_m" in data
        weights = affinities(data["length_m" if lengths else "weight"].astype(float), "length_m", edges, is_distance=lengths)
    degrees = "lon" in data
    coords = np.stack([data["lon"], data["lat"]], axis=1) if degrees else data.get("xy")
    crs = "lonlat" if degrees else None
    table = EdgeTable(edges, int(data["n"]), weights, coords, crs, data.get("osmid"), _attributes(data),
                      attribution=network.attribution)  # fmt: skip
    return _sized(path, Graph.from_table(table), network)


def _attributes(data: dict[str, np.ndarray]) -> Streets | None:
    """Return the lengths of the streets, and which are one-way, if the file has them: a two-way street is two of the "arcs"."""
    attributes = {"length": CodedTexts.of(data["length_m"].tolist())} if "length_m" in data else {}
    if "arcs" in data:
        n, edges, arcs = int(data["n"]), data["edges"].astype(np.int64), data["arcs"].astype(np.int64)
        there, back = (np.isin(edges[:, a] * n + edges[:, b], arcs[:, 0] * n + arcs[:, 1]) for a, b in ((0, 1), (1, 0)))
        directions = (there.astype(int) + back).tolist()
        attributes["oneway"] = CodedTexts.of({1: True, 2: False}.get(count) for count in directions)
    return Streets(attributes, directed=False) if attributes else None


def _no_weights(path: Path) -> str:
    return f"{path} has neither weights nor lengths of its edges; leave weighted=True out"


def _sized(path: Path, graph: Graph, network: Network) -> Graph:
    if (graph.n, graph.n_edges) != (network.n, network.n_edges):
        msg = (
            f"{path} is not what its name says: expected {network.n} nodes and {network.n_edges} edges ({network.file.source}), "
            f"got {graph.n} and {graph.n_edges}; remove it, or load it by hand"
        )
        raise InputError(msg)
    return graph


def _load(path: Path) -> dict[str, np.ndarray]:
    return {name: values.copy() for name, values in read_arrays(path).items()}


# ---- pickups ----------------------------------------------------------------------------------------------------------


def _prepared(file: DataFile, network: Network) -> dict[str, np.ndarray]:
    """Return the signals counted on the prepared streets; none unless both files exist."""
    path = find_file(file)
    return {} if path is None or find_file(network.file) is None else _load(path)


def _found(file: DataFile | Path, hint: str) -> Path:
    path = find_file(file) if isinstance(file, DataFile) else file
    if path is None and isinstance(file, DataFile):
        raise missing_file(file, hint)
    assert path is not None
    return path


def _local_path(trips: str | Path, allow_download: bool) -> Path:
    if isinstance(trips, str) and urlsplit(trips).scheme in ("http", "https"):
        known = hashlib.sha256(trips.encode()).hexdigest()[:8]  # two addresses may end alike
        name = f"{known}-{PurePosixPath(urlsplit(trips).path).name or 'trips'}"
        return fetch_file(DataFile(name, "trip records", url=trips), allow_download=allow_download)
    return Path(trips)


def _during(pickups: Pickups, path: Path, start: np.datetime64, end: np.datetime64) -> Pickups:
    """Return the pickups in [start, end); none is an error."""
    keep = (pickups["time"] >= start) & (pickups["time"] < end)
    if not keep.any():
        msg = f"{path} has no pickups from {start} to {end}; check that it is the file of that time"
        raise InputError(msg)
    return {key: values[keep] for key, values in pickups.items()}


def _counts(graph: Graph, pickups: Pickups, near: float) -> np.ndarray:
    """Return counts of pickups at their nearest node, in the plane of the published counts; those further than `near` metres are dropped."""
    assert graph.coords is not None
    lat = graph.coords[:, 1]
    scale = np.array(_PUBLISHED_PLANE) * [np.cos(np.radians((lat.min() + lat.max()) / 2)), 1.0]
    places = np.stack([pickups["lon"], pickups["lat"]], axis=1)
    known = np.isfinite(places).all(axis=1)
    distance, node = cKDTree(graph.coords * scale).query(places[known] * scale)
    return np.bincount(node[distance <= near], minlength=graph.n).astype(np.float64)


def _checked_start(name: str, value: Any, unit: Literal["h", "D"]) -> np.datetime64:
    """Return the start of an hour or a day; any other time is an error."""
    expected = f"like { ({'h': '2013-11-18T16', 'D': '2008-05-25'}[unit])!r}, local time"
    start = checked_time(name, value, unit, expected)
    if start != checked_time(name, value, "s", expected):
        raise InputError.about(argument=name, expected=expected, got=shown(value))
    return start
