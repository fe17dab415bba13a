"""Maps of zones: outlines are filled, in figures and in reports."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.graphs import Outlines, ZoneFinder
from hushgraph.plotting import drawing_order, pack_graph, write_report

from .test_report import data_of, unpacked

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def zones():
    graph = hg.datasets.zones(40)
    noisy = hg.hotspot_counts(graph) + np.random.default_rng(0).normal(0, 4, graph.n)
    return graph, noisy, hg.denoise(graph, noisy, sigma=4)


@pytest.fixture(autouse=True)
def closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_every_zone_is_filled_with_the_colour_of_its_value(zones):
    graph, noisy, result = zones
    for ax in (hg.plot_graph_signal(graph, noisy), hg.plot_error(graph, result)):
        (shapes,) = ax.collections
        assert type(shapes).__name__ == "PathCollection"
        assert len(shapes.get_paths()) == graph.n
    shapes = hg.plot_graph_signal(graph, noisy).collections[0]
    np.testing.assert_array_equal(shapes.get_array(), noisy)
    for path, place in zip(shapes.get_paths(), graph.coords, strict=True):
        assert path.contains_point(place)


def test_the_whole_of_the_outlines_is_in_view(zones):
    graph, noisy, _ = zones
    ax = hg.plot_graph_signal(graph, noisy)
    ax.figure.canvas.draw()
    low, high = graph.outlines.corners.min(axis=0), graph.outlines.corners.max(axis=0)
    assert ax.get_xlim()[0] < low[0] < high[0] < ax.get_xlim()[1]
    assert ax.get_ylim()[0] < low[1] < high[1] < ax.get_ylim()[1]


def test_several_maps_of_zones_share_colours(zones, tmp_path):
    graph, noisy, result = zones
    figure = hg.plot_maps(graph, {"Noisy": noisy, "Denoised": result.signal}, path=tmp_path / "maps.png")
    first, second = (ax.collections[0] for ax in figure.axes[:2])
    assert (first.norm.vmin, first.norm.vmax) == (second.norm.vmin, second.norm.vmax)
    assert (tmp_path / "maps.png").stat().st_size > 10_000


def test_a_hole_stays_empty():
    square = np.array([[0, 0], [3, 0], [3, 3], [0, 3]], dtype=float)
    geometry = {"type": "Polygon", "coordinates": [square.tolist(), (square / 3 + 1).tolist()]}
    ring = {"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": geometry}]}
    graph = hg.Graph.from_polygons(ring, crs="planar")
    ax = hg.plot_graph_signal(graph, [5.0], colorbar=False)
    ax.figure.canvas.draw()
    image = np.asarray(ax.figure.canvas.buffer_rgba())[..., :3]

    def pixel(place):
        column, height = ax.transData.transform(place).astype(int)
        return image[len(image) - 1 - height, column].tolist()

    assert pixel((1.5, 1.5)) == [255, 255, 255]
    assert pixel((0.5, 0.5)) != [255, 255, 255]


def test_packed_outlines_are_those_of_the_graph_in_metres(zones):
    graph, _, _ = zones
    order = drawing_order(graph)
    packed = pack_graph(graph, order)
    x, y, sizes, nodes = (unpacked(packed["outlines"][name]) for name in ("x", "y", "sizes", "nodes"))
    assert nodes.astype(int).tolist() == list(range(graph.n))
    rings = np.split(np.stack([x, y], axis=1), np.cumsum(sizes.astype(int))[:-1])
    places = np.stack([unpacked(packed["x"]), unpacked(packed["y"])], axis=1)
    outlines = Outlines.of([[[ring]] for ring in rings])
    assert ZoneFinder(outlines).find(places).tolist() == list(range(graph.n))
    np.testing.assert_allclose(np.sqrt(outlines.areas()).mean(), 1000, rtol=0.05)  # metres
    assert min(x.min(), y.min()) == 0


def test_the_report_speaks_of_zones(zones, tmp_path):
    graph, noisy, result = zones
    text = write_report(tmp_path / "report.html", graph, noisy, result).read_text(encoding="utf-8")
    assert "<dt>zones</dt><dd>40</dd>" in text
    assert "<dt>common borders</dt>" in text
    assert "point at a zone" in text
    assert data_of(text)["graph"]["outlines"]["nodes"]["count"] == 40
