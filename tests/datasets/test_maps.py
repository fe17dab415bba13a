"""Real data: found in a stated order, downloaded whole or not at all, what its card says, and never mislabelled."""

import hashlib
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from hushgraph import datasets, privacy
from hushgraph.datasets import sources
from hushgraph.datasets.catalogue import MANHATTAN, ROADS, SAN_FRANCISCO, Network
from hushgraph.datasets.sources import DataFile, DataUnavailable, data_folders, fetch_file
from hushgraph.graphs.graph import Graph

from ..support.samples import TRIPS_2014

pytest.importorskip("pooch")
requests = pytest.importorskip("requests")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """An empty HUSHGRAPH_DATA and an empty cache; no network."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    monkeypatch.setenv("HUSHGRAPH_DATA", str(data))
    monkeypatch.setenv("HUSHGRAPH_CACHE", str(cache))
    monkeypatch.setattr(requests, "get", refuse)
    monkeypatch.setitem(sys.modules, "osmnx", None)
    return SimpleNamespace(data=data, cache=cache)


def refuse(*_, **__):
    raise requests.ConnectionError("no network")


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return path


EDGES = "# Undirected graph\n# Nodes: 4 Edges: 7\n# From\tTo\n10\t3\n3\t10\n3\t7\n7 3\n7\t10\n\n25\t10\n7\t7\n"


# ---- where files come from ------------------------------------------------------------------------------------------

FILE = DataFile("a.txt", "somewhere", url="https://example.org/a.txt")


def test_the_search_order(folders):
    folders.cache.mkdir()
    (folders.cache / "a.txt").write_text("cache")
    assert fetch_file(FILE).read_text() == "cache"
    (folders.data / "a.txt").write_text("data")
    assert fetch_file(FILE).read_text() == "data"


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("HUSHGRAPH_DATA", raising=False)
    monkeypatch.setenv("HUSHGRAPH_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert data_folders() == [tmp_path / "own"]
    monkeypatch.delenv("HUSHGRAPH_CACHE")
    assert data_folders() == [tmp_path / "xdg" / "hushgraph"]
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert data_folders() == [tmp_path / ".cache" / "hushgraph"]
    monkeypatch.setenv("HUSHGRAPH_DATA", str(tmp_path / "data"))
    assert data_folders()[0] == tmp_path / "data"


def test_a_copy_under_another_name(folders):
    (folders.data / "a.csv").write_text("x")
    assert fetch_file(DataFile("a.txt", "somewhere", also=("a.csv",))).name == "a.csv"


def test_offline_says_what_to_do(folders):
    with pytest.raises(DataUnavailable) as caught:
        datasets.road_network("roadNet-PA")
    for part in (
        "roadNet-PA.txt.gz",
        str(folders.data),
        str(folders.cache),
        "https://snap.stanford.edu/",
        "HUSHGRAPH_DATA",
        "no network",
    ):
        assert part in str(caught.value)
    assert list(folders.cache.iterdir()) == []
    with pytest.raises(DataUnavailable, match="allow_download=False"):
        datasets.road_network("roadNet-PA", allow_download=False)


def test_a_folder_that_does_not_exist_is_named_so(folders, monkeypatch):
    monkeypatch.setenv("HUSHGRAPH_DATA", str(folders.data / "typo"))
    with pytest.raises(DataUnavailable, match=r"typo \(no such folder\)"):
        datasets.road_network("moscow")


def test_a_wrong_copy_is_refused(folders):
    (folders.data / "a.txt").write_text("wrong")
    with pytest.raises(DataUnavailable, match=r"damaged or not a\.txt"):
        fetch_file(DataFile("a.txt", "somewhere", sha256="0" * 64))


def answering(monkeypatch, content, *, read=None, **more):
    """requests.get that answers with `content`, or with what `read` does."""

    class Answer:
        url = FILE.url
        headers: ClassVar = {}

        def raise_for_status(self):
            pass

        def iter_content(self, chunk_size):
            return iter([content]) if read is None else read()

    answer = Answer()
    for key, value in more.items():
        setattr(answer, key, value)

    def get(url, *, hooks, **_):
        hooks["response"](answer)
        return answer

    monkeypatch.setattr(requests, "get", get)


def interrupted(*_):
    raise KeyboardInterrupt


def lost(*_, **__):
    raise requests.ReadTimeout("timed out")


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        ({"read": interrupted}, KeyboardInterrupt, None),
        ({"read": lost}, DataUnavailable, "timed out"),
        ({"headers": {"Content-Length": "99"}}, DataUnavailable, "after 5 of 99 bytes"),
        ({"url": "http://example.org/a.txt"}, ValueError, "https only"),
        ({}, DataUnavailable, "SHA-256"),
    ],
)
def test_a_failed_download_leaves_nothing(folders, monkeypatch, answer, error, said):
    answering(monkeypatch, b"hello", **answer)
    with pytest.raises(error, match=said):
        fetch_file(DataFile(FILE.name, FILE.source, url=FILE.url, sha256="0" * 64))
    assert list(folders.cache.iterdir()) == []


def test_only_https(folders):
    with pytest.raises(ValueError, match="https only"):
        fetch_file(DataFile("a.txt", "somewhere", url="http://example.org/a.txt"))


def test_a_cache_that_cannot_be_written(folders):
    folders.cache.write_text("a file, not a folder")
    with pytest.raises(DataUnavailable, match="HUSHGRAPH_CACHE"):
        fetch_file(FILE)


@pytest.fixture
def server():
    """Serves CONTENT under any name but /missing."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(404 if self.path == "/missing" else 200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


CONTENT = EDGES.encode() * 1000


def test_a_download_is_checked_shown_and_kept(folders, server, monkeypatch, capfd):
    monkeypatch.undo()
    monkeypatch.setenv("HUSHGRAPH_CACHE", str(folders.cache))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("HUSHGRAPH_DATA", str(folders.data))
    file = DataFile("a.txt", "here", url=f"{server}/a.txt", sha256=hashlib.sha256(CONTENT).hexdigest())
    path = fetch_file(file)
    shown = capfd.readouterr()
    assert path.read_bytes() == CONTENT
    assert [entry.name for entry in folders.cache.iterdir()] == ["a.txt"]
    assert path.stat().st_mode & 0o777 == 0o644
    assert "a.txt" in shown.err
    assert shown.out == ""
    monkeypatch.setattr(requests, "get", refuse)
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert fetch_file(file) == path  # from now on without a network and without pooch
    monkeypatch.undo()
    monkeypatch.setenv("HUSHGRAPH_CACHE", str(folders.cache))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(DataUnavailable, match=r"HTTPError: 404.*Not Found") as caught:
        fetch_file(DataFile("missing", "here", url=f"{server}/missing"))
    assert isinstance(caught.value.__cause__, requests.HTTPError)
    caught.value.__cause__.response.close()


def test_a_download_without_pooch_names_the_extra(folders, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"a\.txt needs pooch: pip install 'hushgraph\[data\]'"):
        fetch_file(FILE)


def test_a_download_of_unknown_checksum_leaves_its_own(folders, monkeypatch):
    answering(monkeypatch, b"hello", headers={"Content-Length": "5"})
    assert fetch_file(FILE).read_text() == "hello"
    assert (folders.cache / "a.txt.sha256").read_text() == f"{hashlib.sha256(b'hello').hexdigest()}  a.txt\n"
    (folders.cache / "a.txt").write_text("hellx")
    with pytest.raises(DataUnavailable, match="damaged"):
        fetch_file(FILE)


# ---- maps without the data ------------------------------------------------------------------------------------------

CORNERS = {"edges": np.array([[0, 1], [1, 2], [2, 3], [0, 3]], dtype=np.int32), "n": 4, "length_m": np.array([100, 100, 100, 50.0])}
PLACES = {
    "lon": np.array([-73.99, -73.98, -73.98, -73.99]),
    "lat": np.array([40.73, 40.73, 40.74, 40.74]),
    "osmid": np.arange(4) + 70,
}


@pytest.fixture
def tiny(folders, monkeypatch):
    """A Manhattan of four corners."""
    monkeypatch.setattr("hushgraph.datasets.maps.MANHATTAN", Network(MANHATTAN.file, 4, 4, MANHATTAN.attribution))
    np.savez(folders.data / "manhattan_osm.npz", **CORNERS, **PLACES)
    return folders


def test_a_file_of_another_size_is_refused(folders):
    np.savez(folders.data / "roads_1m.npz", **CORNERS)
    with pytest.raises(ValueError, match=r"is not what its name says: expected 1120737 nodes .*got 4 and 4"):
        datasets.road_network("roads_1m")
    written(folders.data, "roadNet-PA.txt", "1 2\n")
    with pytest.raises(ValueError, match="is not what its name says: expected 1088092 nodes"):
        datasets.road_network("roadNet-PA")
    (folders.data / "moscow_roads.npz").write_bytes(b"PK not really")
    with pytest.raises(ValueError, match=r"damaged or no \.npz"):
        datasets.road_network("moscow")


def test_snap_copies_may_be_unpacked(folders, monkeypatch):
    monkeypatch.setitem(ROADS, "roadNet-PA", Network(ROADS["roadNet-PA"].file, 4, 4, "SNAP"))
    written(folders.data, "roadNet-PA.txt", EDGES)
    roads = datasets.road_network("roadNet-PA")
    assert (roads.name, roads.graph.n, dict(roads.signals)) == ("roadNet-PA", 4, {})
    with pytest.raises(ValueError, match="no main signal"):
        roads.signal  # noqa: B018
    with pytest.raises(DataUnavailable, match="not counted from events"):
        roads.events()
    with pytest.raises(ValueError, match="weighted=True"):
        datasets.road_network("roadNet-PA", weighted=True)


def test_pickups_of_ones_own_records(tiny, tmp_path):
    path = written(tmp_path, "trips.csv", TRIPS_2014)
    city = datasets.manhattan(hour="2014-09-24T00", trips=path)
    assert city.signals["f"].tolist() == [0, 0, 1, 0]
    assert city.graph.labels.tolist() == [70, 71, 72, 73]
    assert "2014-09-24T00" in city.name
    assert "trips.csv" in city.source
    assert city.events() == path
    with pytest.raises(ValueError, match="no pickups from 2015"):
        datasets.manhattan(hour="2015-01-01T00", trips=path)


def test_pickups_from_an_address(tiny, monkeypatch):
    answering(monkeypatch, TRIPS_2014.encode())
    city = datasets.manhattan(hour="2014-09-24T00", trips="https://example.org/records/trips.csv?v=1")
    assert city.signal.sum() == 1
    assert city.events().parent == tiny.cache
    assert city.events().name.endswith("-trips.csv")


def test_weights_are_mean_length_over_length(tiny, tmp_path):
    path = written(tmp_path, "trips.csv", TRIPS_2014)
    weights = datasets.manhattan(hour="2014-09-24T00", trips=path, weighted=True).graph.adjacency.toarray()
    assert weights[0, 1] == pytest.approx(87.5 / 100)
    assert weights[0, 3] == pytest.approx(87.5 / 50)


def test_lengths_and_one_way_streets_are_covariates(tiny, tmp_path):
    path, arcs = written(tmp_path, "trips.csv", TRIPS_2014), [(0, 1), (1, 0), (2, 1), (3, 0)]  # nothing is said of (2, 3)
    np.savez(tiny.data / "manhattan_osm.npz", **CORNERS, **PLACES, arcs=np.array(arcs, dtype=np.int32))
    found = datasets.manhattan(hour="2014-09-24T00", trips=path).graph.covariates()
    assert found["street_length"].tolist() == [75, 100, 100, 75]
    assert found["oneway_share"].tolist() == pytest.approx([50 / 150, 0.5, 1, 1])


def test_other_hours_are_never_made_up(tiny):
    with pytest.raises(DataUnavailable, match=r"no prepared pickups of 2014-09-24T00.*trips="):
        datasets.manhattan(hour="2014-09-24T00")
    with pytest.raises(DataUnavailable, match=r"nyc_taxi_pickups_2013-11-18_16h.parquet.*trips="):
        datasets.manhattan()
    with pytest.raises(DataUnavailable, match=r"no prepared pickups of 2008-05-26.*cabspotting="):
        datasets.san_francisco(day="2008-05-26")
    for wrong in ("2014-09-24T00:30", "midnight", None, 7):
        with pytest.raises(ValueError, match="hour must be like"):
            datasets.manhattan(hour=wrong)


def test_streets_from_openstreetmap(folders, tmp_path, monkeypatch):
    networkx = pytest.importorskip("networkx")
    path = written(tmp_path, "trips.csv", TRIPS_2014)
    with pytest.raises(DataUnavailable, match=r"manhattan_osm\.npz.*allow_download=True"):
        datasets.manhattan(hour="2014-09-24T00", trips=path, allow_download=False)
    with pytest.raises(ImportError, match=r"hushgraph\[osm\]"):
        datasets.manhattan(hour="2014-09-24T00", trips=path)
    streets = networkx.MultiDiGraph([(70, 71, {"length": 9.0}), (71, 70, {"length": 9.5}), (71, 72, {"length": 20.0})])
    for node, x, y in zip((70, 71, 72), PLACES["lon"], PLACES["lat"], strict=False):
        streets.add_node(node, x=x, y=y)
    asked = []
    monkeypatch.setitem(sys.modules, "osmnx", SimpleNamespace(graph_from_place=lambda place, **form: asked.append(form) or streets))
    city = datasets.manhattan(hour="2014-09-24T00", trips=path)
    assert (city.graph.n, city.graph.n_edges, city.graph.crs, asked) == (3, 2, "lonlat", [{"network_type": "drive"}])
    assert "March 2025" not in city.source
    assert "OSMnx" in city.source
    assert city.signal.tolist() == [0, 0, 1]
    monkeypatch.setitem(sys.modules, "osmnx", SimpleNamespace(graph_from_place=lost))
    with pytest.raises(DataUnavailable, match="did not answer"):
        datasets.manhattan(hour="2014-09-24T00", trips=path)
    with pytest.raises(DataUnavailable, match=r"sf_taxi_pickups.*cabspotting="):
        datasets.san_francisco(streets="dpw")


def test_pickups_of_ones_own_traces(folders, tmp_path, monkeypatch):
    network = Network(DataFile("sanfrancisco_dpw.npz", "test"), 4, 4, "nobody")
    monkeypatch.setitem(SAN_FRANCISCO, "dpw", network)
    np.savez(folders.data / "sanfrancisco_dpw.npz", **CORNERS, **PLACES)
    written(
        tmp_path,
        "new_a.txt",
        "40.9 -73.98 1 1211731320\n40.9 -73.98 0 1211731300\n40.73 -73.99 1 1211731260\n40.7 -73.9 0 1211731200\n",
    )
    city = datasets.san_francisco(streets="dpw", cabspotting=tmp_path)
    assert city.signal.tolist() == [1, 0, 0, 0]
    assert city.signals["f_all"].tolist() == [1, 0, 1, 0]
    assert city.events() == tmp_path
    with pytest.raises(ValueError, match="no pickups from 2008-05-20"):
        datasets.san_francisco(streets="dpw", cabspotting=tmp_path, day="2008-05-20")


def test_a_map_is_read_only():
    city = datasets.Map(datasets.grid(1, 2), {"f": [1, 2]}, name="a", source="b", attribution="c", main="f")
    with pytest.raises(ValueError, match="read-only"):
        city.signal[0] = 5
    with pytest.raises(TypeError):
        city.signals["g"] = city.signal
    with pytest.raises(ValueError, match="f needs one row per node"):
        datasets.Map(datasets.grid(1, 2), {"f": [1, 2, 3]}, name="a", source="b", attribution="c")


# ---- the data itself (sizes, sums and norms as its card states them) --------------------------------------------------


@pytest.mark.data
@pytest.mark.usefixtures("data_folder")
def test_manhattan_is_what_its_card_says():
    city = datasets.manhattan(allow_download=False)
    assert (city.graph.n, city.graph.n_edges, city.graph.crs) == (4607, 8148, "lonlat")
    assert city.graph.components.max() == 0
    card = {"f": (15_863, 493.40, 101, 2183), "f_matched": (13_466, 421.91, 82, 2094), "f_newyear": (9072, 277.44, 45, 2074)}
    assert {key: figures(f) for key, f in city.signals.items()} == card
    assert city.signal is city.signals["f"]
    assert city.events().name == "nyc_taxi_pickups_2013-11-18_16h.parquet"
    newyear = datasets.manhattan(hour="2013-01-01T00", allow_download=False)
    assert newyear.signal.sum() == 9072
    assert newyear.events().name == "nyc_taxi_pickups_2013-01-01_00h.parquet"
    assert "2014" not in city.name + city.source
    weighted = datasets.manhattan(weighted=True).graph
    assert weighted.n_edges == 8148
    assert (1 / weighted.adjacency.data).mean() == pytest.approx(1)  # mean of d / mean(d)


@pytest.mark.data
@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize(
    ("streets", "size", "card"),
    [
        ("osm", (10_010, 16_375), {"f": (19_336, 851.54, 257, 3238), "f_all": (20_036, 975.04, 436, 3262)}),
        ("dpw", (9401, 14_891), {"f": (19_360, 842.00, 261, 3132), "f_all": (20_036, 1017.69, 570, 3160)}),
    ],
)
def test_san_francisco_is_what_its_card_says(streets, size, card):
    city = datasets.san_francisco(streets=streets, allow_download=False)
    assert (city.graph.n, city.graph.n_edges) == size
    assert {key: figures(f) for key, f in city.signals.items()} == card
    assert (city.graph.labels is not None) == (streets == "osm")


def figures(f):
    return int(f.sum()), round(float(np.linalg.norm(f)), 2), int(f.max()), int(np.count_nonzero(f))


@pytest.mark.data
def test_counting_anew_gives_the_prepared_signals(data_folder, tmp_path, monkeypatch):
    prepared = [datasets.manhattan(), datasets.manhattan(hour="2013-01-01T00"), datasets.san_francisco()]
    prepared.append(datasets.san_francisco(streets="dpw"))
    monkeypatch.setenv("HUSHGRAPH_DATA", str(tmp_path))
    for path in data_folder.iterdir():
        if not path.name.endswith("signal.npz"):
            (tmp_path / path.name).symlink_to(path)
    anew = [datasets.manhattan(), datasets.manhattan(hour="2013-01-01T00"), datasets.san_francisco()]
    anew.append(datasets.san_francisco(streets="dpw"))
    for old, new in zip(prepared, anew, strict=True):
        assert new.graph.hash == old.graph.hash
        for key, f in new.signals.items():
            np.testing.assert_array_equal(f, old.signals[key])


@pytest.mark.data
@pytest.mark.usefixtures("data_folder")
def test_events_go_into_private_counting():
    city = datasets.manhattan()
    form = {"lon": "pickup_lon", "lat": "pickup_lat", "max_distance": 200, "time": "time"}
    hour = ["2013-11-18T16:00", "2013-11-18T17:00"]
    with pytest.warns(UserWarning, match="without unit="):
        counts = privacy.count_events(
            city.graph, city.events(), adjacency="add-remove", windows=hour, max_cells=1, max_per_cell=1, **form
        )
    assert abs(counts.counts.sum() - city.signal.sum()) < 20
    assert np.abs(counts.counts[:, 0] - city.signal).sum() < 0.01 * city.signal.sum()  # its metres differ a little: near ties


@pytest.mark.data
@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize(
    ("name", "size", "crs"),
    [
        ("world_highways", (560_282, 822_234), "lonlat"),
        ("moscow", (411_992, 450_919), None),
        ("seattle", (148_463, 173_110), None),
        ("roads_1m", (1_120_737, 1_446_263), None),
        ("minnesota", (2642, 3303), None),
    ],
)
def test_road_networks_are_what_their_card_says(name, size, crs):
    roads = datasets.road_network(name, allow_download=False)
    assert isinstance(roads.graph, Graph)
    assert (roads.graph.n, roads.graph.n_edges, roads.graph.crs) == (*size, crs)
    assert (roads.graph.coords is None) == (name == "roads_1m")
    assert "PA" not in roads.name
    assert set(roads.signals) == ({"f1", "f2"} if name == "minnesota" else set())
    assert roads.attribution


def test_a_download_without_a_known_checksum_is_held_to_its_own(tmp_path, monkeypatch):
    """Damage after the download is noticed; a file that somebody put there by hand has nothing to be held to."""
    monkeypatch.setenv("HUSHGRAPH_CACHE", str(tmp_path))
    monkeypatch.delenv("HUSHGRAPH_DATA", raising=False)
    file = sources.DataFile("x.txt", "somewhere", url="https://example.org/x.txt")
    (tmp_path / "x.txt").write_text("by hand")
    assert sources.find_file(file) == tmp_path / "x.txt"
    digest = hashlib.sha256(b"as it came").hexdigest()
    (tmp_path / "x.txt.sha256").write_text(f"{digest}  x.txt\n")
    with pytest.raises(DataUnavailable, match="is damaged or not"):
        sources.find_file(file)
    (tmp_path / "x.txt").write_text("as it came")
    assert sources.find_file(file) == tmp_path / "x.txt"
