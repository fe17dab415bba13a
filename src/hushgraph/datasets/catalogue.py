"""The real data there is: files, sizes they must have, where they come from, whom to name. No loading."""

from __future__ import annotations

from dataclasses import dataclass

from hushgraph.datasets.sources import DataFile

OSM = "(c) OpenStreetMap contributors, ODbL 1.0"
SNAP = "SNAP; J. Leskovec, K. Lang, A. Dasgupta, M. Mahoney, Community Structure in Large Networks, Internet Mathematics 6(1), 2009"
TLC = "NYC Taxi and Limousine Commission"
CABS = "M. Piorkowski, N. Sarafijanovic-Djukic, M. Grossglauser, CRAWDAD data set epfl/mobility, 2009"


@dataclass(frozen=True)
class Network:
    """A graph file, the size it must have to bear its name, and whom to name."""

    file: DataFile
    n: int
    n_edges: int
    attribution: str


def _snap(name: str, n: int, n_edges: int) -> Network:
    source = f"SNAP, snap.stanford.edu/data/{name}.html"
    file = DataFile(f"{name}.txt.gz", source, url=f"https://snap.stanford.edu/data/{name}.txt.gz", also=(f"{name}.txt",))
    return Network(file, n, n_edges, SNAP)


_CARMONA = "OSMnx network of {}, drivable streets, March 2025, by github.com/humbertocarmona/CrackingCities"
_ANVAKA = "OpenStreetMap roads of {}, every point of a road a node, by github.com/anvaka/ngraph.path.demo"
_SCGRAPH = "world highways of OpenStreetMap, simplified, by github.com/connor-makowski/scgraph_data 2.0.0"
_DATASF = "street centrelines of the City of San Francisco, about 2014, DataSF, by github.com/mtaptich/SFstreets_demo"
_UNION = "world_highways, moscow and seattle side by side, not connected to each other"
_GASPER = "Minnesota roads (D. Gleich, MatlabBGL), from the R package gasper 1.1.6"

MANHATTAN = Network(DataFile("manhattan_osm.npz", _CARMONA.format("Manhattan")), 4_607, 8_148, OSM)
SAN_FRANCISCO = {
    "osm": Network(DataFile("sanfrancisco_osm.npz", _CARMONA.format("San Francisco")), 10_010, 16_375, OSM),
    "dpw": Network(DataFile("sanfrancisco_dpw.npz", _DATASF), 9_401, 14_891, "City and County of San Francisco, DataSF"),
}
ROADS = {
    "world_highways": Network(DataFile("world_highways.npz", _SCGRAPH), 560_282, 822_234, OSM),
    "moscow": Network(DataFile("moscow_roads.npz", _ANVAKA.format("Moscow")), 411_992, 450_919, OSM),
    "seattle": Network(DataFile("seattle_roads.npz", _ANVAKA.format("Seattle")), 148_463, 173_110, OSM),
    "roads_1m": Network(DataFile("roads_1m.npz", _UNION), 1_120_737, 1_446_263, OSM),
    "minnesota": Network(DataFile("gasper_minnesota.npz", _GASPER), 2_642, 3_303, "gasper, LGPL (>= 2)"),
    "roadNet-PA": _snap("roadNet-PA", 1_088_092, 1_541_898),
    "roadNet-TX": _snap("roadNet-TX", 1_379_917, 1_921_660),
    "roadNet-CA": _snap("roadNet-CA", 1_965_206, 2_766_607),
}

NYC_SIGNALS = DataFile("nyc_signal.npz", "pickup counts at the nodes of manhattan_osm")
SF_SIGNALS = DataFile("sf_signal.npz", "pickup counts at the nodes of both San Francisco graphs")
NYC_PICKUPS = {  # hour -> its main signal in NYC_SIGNALS, and its events
    "2013-11-18T16": (
        "f",
        DataFile("nyc_taxi_pickups_2013-11-18_16h.parquet", "yellow-taxi pickups, New York City Taxi Trip Data, IDB-9610843"),
    ),
    "2013-01-01T00": (
        "f_newyear",
        DataFile("nyc_taxi_pickups_2013-01-01_00h.parquet", "yellow-taxi pickups, head of the DEBS 2015 Grand Challenge file"),
    ),
}
SF_DAY = "2008-05-25"
SF_PICKUPS = DataFile("sf_taxi_pickups_2008-05-25.parquet", "taxi pickups of one day, CRAWDAD epfl/mobility")
