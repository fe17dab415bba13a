"""Write small valid files for the readers that have none in `corpus/` yet: `python tests/files/write_corpus.py`; a file that is there stays.

Releases, series and ledgers are of one small graph, `fuzz_files.NODES`, so that they fit each other.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import geopandas
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow
from fuzz_files import CORPUS, DRAW, NODES, PART_RUN, PREPARED, counts, finished_run, prepared_today
from pyarrow import parquet
from scipy import sparse
from shapely.geometry import LineString, Polygon

import hushgraph as hg
from hushgraph.distributed.results import RUN
from hushgraph.privacy.series_folder import SeriesMap, write_series

PLACES = pd.DataFrame({"node": [0, 1, 2, 3], "lon": [7.0, 7.01, 7.01, 7.0], "lat": [50.0, 50.0, 50.01, 50.01]})
STREETS = [[(7.0, 50.0), (7.01, 50.0)], [(7.01, 50.0), (7.01, 50.01)], [(7.01, 50.01), (7.005, 50.012), (7.0, 50.01)]]
WATER = {
    "type": "Feature",
    "properties": {"natural": "water"},
    "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]},
}
PARK = {"type": "Feature", "properties": {"leisure": "park"}, "geometry": {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}}
TRIPS = pd.DataFrame(
    {
        "pickup_datetime": pd.to_datetime(["2014-09-24 00:01:02", "2014-09-24 00:02:03", "2014-09-24 00:03:04"]),
        "pickup_longitude": [-73.99, 0.0, -73.98],
        "pickup_latitude": [40.73, 0.0, 40.74],
    }
)
VIEW = {"epsilon": 0.5, "method": "let", "rule": "soft", "nonnegative": True, "moving": False}


def streets() -> geopandas.GeoDataFrame:
    """Return three streets, two of them with names."""
    lines = [LineString(corners) for corners in STREETS]
    return geopandas.GeoDataFrame({"name": ["Elm Street", None, "Oak Street"]}, geometry=lines, crs="EPSG:4326")


def osmnx_graph() -> nx.MultiDiGraph:
    """Return streets with the attributes that OSMnx writes."""
    graph = nx.MultiDiGraph(crs="epsg:4326")
    for node, lon, lat in PLACES.itertuples(index=False):
        graph.add_node(node, x=str(lon), y=str(lat), street_count="2")
    for start, end in ((0, 1), (1, 2), (2, 3)):
        facts = {"highway": "residential", "length": "700.5", "name": "Elm", "oneway": "False", "lanes": "2", "maxspeed": "30"}
        graph.add_edge(start, end, osmid=str(start), **facts)
    return graph


def zones() -> geopandas.GeoDataFrame:
    """Return two zones with a common border, one of them with a hole, in longitude and latitude."""
    hole = [(0.2, 0.2), (0.4, 0.2), (0.4, 0.4)]
    shapes = [Polygon(SQUARES[0], [hole]), Polygon(SQUARES[1])]
    return geopandas.GeoDataFrame({"zone_id": [7, 9], "name": ["West", "East"]}, geometry=shapes, crs="EPSG:4326")


def shapefile_of(frame: Callable[[], geopandas.GeoDataFrame]) -> Callable[[Path], object]:
    """Return a function that writes one of the files of a Shapefile."""

    def write(path: Path) -> None:
        with tempfile.TemporaryDirectory() as folder:
            frame().to_file(Path(folder) / "shapes.shp")
            path.write_bytes((Path(folder) / f"shapes{path.suffix}").read_bytes())

    return write


def copy_of(source: Path | str) -> Callable[[Path], object]:
    """Return a function that copies a file, of the corpus if it is a name."""
    return lambda path: path.write_bytes((CORPUS / source).read_bytes())


def packed(path: Path) -> None:
    """Write a file of the corpus packed."""
    path.write_bytes(gzip.compress(path.with_suffix("").read_bytes(), mtime=0))


def write_series_file(path: Path) -> None:
    """Write a file of the series of one release."""
    with tempfile.TemporaryDirectory() as folder:
        for part in ("map.csv", "certificate.json"):
            (Path(folder) / part).write_bytes((CORPUS / f"release-{part}").read_bytes())
        release = hg.privacy.read_release(folder, NODES)
        one = SeriesMap("first", Path(folder), release, hg.denoise(NODES, release, nonnegative=True))
        write_series(Path(folder) / "series", [one], direction="all")
        path.write_bytes((Path(folder) / "series" / path.name.split("-", 1)[1]).read_bytes())


def write_memory(path: Path) -> None:
    """Write what a machine remembers of the ledger of the corpus: memory.db, or a text file as earlier versions did."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HUSHGRAPH_STATE"] = folder
        copy = Path(folder) / "ledger.db"
        copy.write_bytes((CORPUS / "ledger.db").read_bytes())
        ledger = hg.privacy.Ledger.open(copy)
        heads = "".join(f"{entry['entry']} {entry['head']}\n" for entry in ledger.entries())
        database = (Path(folder) / "ledgers" / "memory.db").read_bytes()
        path.write_bytes({".db": database, ".heads": heads.encode(), ".ledgers": f"{ledger.identity}\n".encode()}[path.suffix])


def write_json(content: object) -> Callable[[Path], object]:
    """Return a function that writes JSON."""
    return lambda path: path.write_text(json.dumps(content, indent=1))


def write_ledger(path: Path, name: str | None = None) -> None:
    """Write a ledger with one charge."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HUSHGRAPH_STATE"] = folder
        ledger = hg.privacy.Ledger.create(path, dataset="corpus", unit="person", adjacency="add-remove", epsilon=2.0, delta=1e-6)
        hg.privacy.release(counts(), ledger=ledger, name=name, **DRAW)


def write_draw(path: Path) -> None:
    """Write a ledger with a release by name, draws.db, and beside it the values of the release."""
    write_ledger(path.with_name("draws.db"), name="first")
    folder = path.with_name("draws.db.releases")
    next(folder.iterdir()).rename(path)
    folder.rmdir()


def write_array(path: Path) -> None:
    """Write an array of the last partition of a graph that an earlier version prepared, or one of the whole graph."""
    copy_of(sorted((PREPARED / "work").rglob(path.name.removeprefix("array-")))[-1])(path)


def write_run(path: Path) -> None:
    """Write the settings, the result or the last mark of a finished run."""
    copy_of(sorted(finished_run().folder.rglob(path.name.removeprefix("run-")))[-1])(path)


def write_part(path: Path, *, with_checksums: bool = True) -> None:
    """Write the one part of a result; earlier versions wrote no checksums."""
    table = pyarrow.table({"node": np.arange(4, dtype=np.int32), "denoised": np.array([1.0, 2.0, 3.0, 4.5])})
    written = table.replace_schema_metadata({RUN: PART_RUN})
    parquet.write_table(written, path, write_page_checksum=with_checksums)


def write_mark(path: Path) -> None:
    """Write a mark of the last partition of a prepared graph, or that of the whole graph."""
    name = path.name.removeprefix("marks-")
    shutil.copy(sorted(prepared_today().rglob(name))[-1], path)


SQUARES = [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]], [[1, 0], [2, 0], [2, 1], [1, 1], [1, 0]]]
ARRAYS = (
    "owner", "frame", "rows.nodes", "rows.starts", "rows.columns", "zone.nodes", "zone.own", "zone.ghosts", "zone.starts", "zone.columns",
    "zone.weights", "zone.source_parts", "zone.source_starts", "zone.source_places", "zone.layout_blocks", "zone.layout_block_runs",
    "zone.layout_indices", "zone.layout_order", "zone.layout_rest", "zone.layout_runs",
)  # fmt: skip
PACKED = (
    "events.csv", "graph.csv", "graph.tsv", "graph.txt", "graph.mtx", "graph.gml", "graph.graphml", "graph.geojson", "graph.npz", "graph.parquet", "matrix.mtx", "nodes.csv", "nodes.tsv",
    "nodes.parquet", "outlines.geojson", "pickups.csv", "places.csv", "polygons.geojson", "polygons.json", "signal.csv", "signal.npy", "signal.parquet", "signal.tsv",
    "snap.txt", "zones.geojson",
)  # fmt: skip
FILES: dict[str, Callable[[Path], object]] = {
    "graph-scipy.npz": lambda path: sparse.save_npz(path, NODES.adjacency, compressed=False),
    "graph-streets.graphml": lambda path: nx.write_graphml(osmnx_graph(), path),
    "graph-lines.geojson": lambda path: streets().to_file(path),
    "graph.gpkg": lambda path: streets().to_file(path),
    "shapes-streets.shp": shapefile_of(streets),
    "shapes-streets.shx": shapefile_of(streets),
    "shapes-streets.dbf": shapefile_of(streets),
    "nodes.csv": lambda path: PLACES.to_csv(path, index=False),
    "nodes.tsv": lambda path: PLACES.to_csv(path, index=False, sep="\t"),
    "nodes.parquet": lambda path: PLACES.to_parquet(path),
    "outlines.geojson": write_json({"type": "FeatureCollection", "features": [WATER, PARK]}),
    "pickups.csv": lambda path: TRIPS.to_csv(path, index=False),
    "pickups.parquet": lambda path: TRIPS.to_parquet(path),
    "series-first.csv": write_series_file,
    "series-summary.json": write_series_file,
    "summary-first.csv": write_series_file,
    "summary-summary.csv": write_series_file,
    "summary-summary.json": write_series_file,
    "certificate-certificate.json": copy_of("release-certificate.json"),
    "ledger-charged.db": write_ledger,
    "draw.npy": write_draw,
    "memory.db": write_memory,
    "memory.heads": write_memory,
    "memory-charged.heads": write_memory,
    "memory.ledgers": write_memory,
    "regions.json": copy_of("regions.geojson"),
    "regions.tsv": lambda path: path.write_bytes((CORPUS / "regions.csv").read_bytes().replace(b",", b"\t")),
    "prepared.json": copy_of(PREPARED / "work" / "manifest.json"),
    "marks-zone.json": write_mark,
    "marks-rows.json": write_mark,
    "marks-owner.json": write_mark,
    "run-run.json": write_run,
    "run-result.json": write_run,
    "run-write.json": write_run,
    "part.parquet": write_part,
    "part-unchecked.parquet": functools.partial(write_part, with_checksums=False),
    **{f"array-{name}.npy": write_array for name in ARRAYS},
    "polygons.geojson": lambda path: zones().to_file(path),
    "polygons.json": copy_of("polygons.geojson"),
    "polygons.gpkg": lambda path: zones().to_file(path),
    "polygons-zones.shp": shapefile_of(zones),
    "polygons-zones.shx": shapefile_of(zones),
    "polygons-zones.dbf": shapefile_of(zones),
    "matrix.mtx": lambda path: path.write_text(
        "%%MatrixMarket matrix coordinate real general\n% a path\n3 3 4\n1 2 0.5\n2 1 0.5\n3 2 1.5\n3 3 1\n"
    ),
    "edges.parquet": lambda path: pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 3]}).to_parquet(path),
    "stored.parquet": lambda path: pd.DataFrame({"node": [0, 1, 2, 3], "value": [1.0, 2.0, 3.0, 4.5]}).to_parquet(
        path, index=False
    ),
    "stored.npy": lambda path: np.save(path, np.arange(4.0)),
    "zones.geojson": write_json(
        {
            "type": "FeatureCollection",
            "features": [
                {"type": "Feature", "properties": {"zone": k}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
                for k, ring in enumerate(SQUARES)
            ],
        }
    ),
    "places.csv": lambda path: path.write_bytes(
        "person;when;x;y\nZo\xeb;31.1.2026 7:05;0,1;0,2\nb;1.2.2026 17:45;1,0;0,9\n".encode("cp1252")
    ),
    "guides.csv": lambda path: path.write_text("node,shops,visits\na,1,2.5\nb,2,0\nc,0,7\nd,4,1e3\n"),
    "cab.txt": lambda path: path.write_text("37.75 -122.39 1 1211731320\n37.76 -122.40 0 1211731260\n37.76 -122.41 0 1211731200\n"),
    "snap.txt": lambda path: path.write_text("# Undirected graph\n# Nodes: 4 Edges: 3\n# FromNodeId\tToNodeId\n0\t1\n1\t2\n2\t3\n"),
    "request-view.json": write_json(VIEW),
    "request-region.json": write_json(VIEW | {"ring": [[0.1, 0.1], [0.5, 0.1], [0.3, 0.6]]}),
    "request-draw.json": write_json({"epsilon": 0.5, "number": 1, "public_graph": True}),
    **{f"{name}.gz": packed for name in PACKED},
}


def main() -> None:
    """Write the files that are missing."""
    for name, write in FILES.items():
        if not (CORPUS / name).exists():
            write(CORPUS / name)
            print(name)


if __name__ == "__main__":
    main()
