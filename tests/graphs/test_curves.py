"""Streets that bend: their points are read, kept and drawn, and nothing else depends on them."""

import pickle

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._errors import InputError
from hushgraph.graphs import Curves

PLACES = np.array([[0.0, 0], [10, 0], [10, 10], [0, 10]])
EDGES = [(0, 1), (2, 1), (2, 3), (1, 0)]
LINES = [[(0, 0), (5, -1), (10, 0)], [(10, 0), (11, 4), (11, 6), (10, 10)], None, [(10, 0), (5, 5), (0, 0)]]


@pytest.fixture
def bent():
    return hg.Graph.from_edges(EDGES, coords=PLACES, curves=Curves.of(EDGES, LINES, PLACES))


def points_of(graph, i, j):
    return graph.curves.lines([(i, j)], graph.coords)[0].tolist()


def test_a_line_goes_from_end_to_end_whatever_its_direction(bent):
    assert points_of(bent, 0, 1) == [[0, 0], [5, -1], [10, 0]], "of parallel lines the first"
    assert points_of(bent, 2, 1) == [[10, 10], [11, 6], [11, 4], [10, 0]]
    assert points_of(bent, 1, 2) == points_of(bent, 2, 1)[::-1]
    assert points_of(bent, 3, 2) == [[0, 10], [10, 10]]


def test_curves_are_kept_and_are_no_part_of_the_graph(bent, tmp_path):
    straight = hg.Graph.from_edges(EDGES, coords=PLACES)
    assert bent.hash == straight.hash
    for again in (pickle.loads(pickle.dumps(bent)), hg.read_graph(hg.write_graph(tmp_path / "a.npz", bent))):
        assert points_of(again, 2, 1) == points_of(bent, 2, 1)
    part = bent.subgraph([2, 1])
    assert points_of(part, 0, 1) == points_of(bent, 2, 1)
    assert part.curves.edges.tolist() == [[0, 1]]
    assert bent.subgraph([2, 3]).curves is None
    assert straight.curves is None


@pytest.mark.parametrize(
    "wrong",
    [([[0.0, 1]], [0, 1], [[1, 0]]), ([[0.0, 1]], [0, 1], [[0, 9]]), ([[np.nan, 1]], [0, 1], [[0, 1]]), ([[0.0, 1]], [0, 2], [[0, 1]])],
)  # fmt: skip
def test_curves_that_do_not_fit_are_refused(wrong):
    with pytest.raises(InputError, match="curves must"):
        hg.Graph.from_edges(EDGES, coords=PLACES, curves=Curves(*wrong))


def graphml(path, copies, crs="epsg:4326", geometry="LINESTRING (4 50, 4.5 50.5, 5 50)"):
    keys = [("x", "node"), ("y", "node"), ("crs", "graph"), ("geometry", "edge"), ("length", "edge")]
    head = "".join(f'<key id="{name}" for="{whose}" attr.name="{name}" attr.type="string"/>' for name, whose in keys)
    nodes = "".join(f'<node id="{i}"><data key="x">{4 + i}</data><data key="y">50</data></node>' for i in range(copies + 2))
    bent = f'<edge source="0" target="1"><data key="length">9</data><data key="geometry">{geometry}</data></edge>'
    back = '<edge source="1" target="0"><data key="geometry">LINESTRING (5 50, 4.5 49, 4 50)</data></edge>'
    straight = "".join(f'<edge source="{i}" target="{i + 1}"/>' for i in range(1, copies + 1))
    path.write_text(
        f'<graphml>{head}<graph edgedefault="directed"><data key="crs">{crs}</data>{nodes}{bent}{back}{straight}</graph></graphml>'
    )
    return path


@pytest.mark.parametrize("copies", [1, 100])  # read element by element, and megabytes at a time
@pytest.mark.parametrize("covariates", [False, True])
def test_the_lines_of_osmnx_are_read(tmp_path, copies, covariates):
    graph = hg.read_graph(graphml(tmp_path / "a.graphml", copies), covariates=covariates)
    assert (graph.curves.edges.tolist(), graph.curves.points.tolist()) == ([[0, 1]], [[4.5, 50.5]])


@pytest.mark.parametrize("text", ["", "POINT (1 2)", "LINESTRING (1 2, x 4)", "LINESTRING (1, 2, 3)", "LINESTRING EMPTY"])
@pytest.mark.parametrize("copies", [1, 100])
def test_other_texts_are_straight_edges(tmp_path, copies, text):
    path = graphml(tmp_path / "a.graphml", copies, geometry=text)
    path.write_text(path.read_text().replace("LINESTRING (5 50, 4.5 49, 4 50)", text))
    assert hg.read_graph(path).curves is None


def test_the_lines_of_a_projected_file_are_converted(tmp_path):
    pyproj = pytest.importorskip("pyproj")
    to_plane = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:32631", always_xy=True).transform
    path = tmp_path / "a.graphml"
    lon, lat = [4.0, 4.5, 5.0], [50.0, 50.5, 50.0]
    x, y = to_plane(lon, lat)
    places = "".join(f'<node id="{k}"><data key="x">{x[i]}</data><data key="y">{y[i]}</data></node>' for k, i in enumerate((0, 2)))
    line = ", ".join(f"{a} {b}" for a, b in zip(x, y, strict=True))
    keys = "".join(f'<key id="{name}" for="{whose}" attr.name="{name}"/>' for name, whose in (("x", "node"), ("y", "node"), ("crs", "graph"), ("geometry", "edge")))  # fmt: skip
    edge = f'<edge source="0" target="1"><data key="geometry">LINESTRING ({line})</data></edge>'
    path.write_text(f'<graphml>{keys}<graph><data key="crs">EPSG:32631</data>{places}{edge}</graph></graphml>')
    assert np.abs(hg.read_graph(path).curves.points - [[4.5, 50.5]]).max() < 1e-6
    assert hg.read_graph(path, crs="planar").curves.points.tolist() == [[x[1], y[1]]]


def test_lines_of_geopandas_and_networkx(tmp_path):
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    networkx = pytest.importorskip("networkx")
    frame = geopandas.GeoDataFrame(geometry=[shapely.LineString(line) for line in LINES if line], crs="EPSG:4326")
    frame.to_file(tmp_path / "a.gpkg")
    graph = hg.read_graph(tmp_path / "a.gpkg")
    assert graph.curves.points.tolist() == [[5, -1], [11, 4], [11, 6]]
    streets = networkx.MultiDiGraph(crs="epsg:4326")
    for i, (x, y) in enumerate(PLACES.tolist()):
        streets.add_node(i, x=x, y=y)
    for (i, j), line in zip(EDGES, LINES, strict=True):
        streets.add_edge(i, j, **({} if line is None else {"geometry": shapely.LineString(line)}))
    assert points_of(hg.Graph.from_networkx(streets), 2, 1) == [[10, 10], [11, 6], [11, 4], [10, 0]]


def test_maps_draw_the_bends(bent):
    pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    figure = hg.plotting.plot_maps(bent, {"a": np.arange(4.0)})
    (lines,) = [part for part in figure.axes[0].collections if type(part).__name__ == "LineCollection"]
    assert sorted(len(path.vertices) for path in lines.get_paths()) == [2, 3, 4]
    plt.close(figure)
