"""Maps draw every edge once, with one colour scale, wherever the values lie, and leave no figure behind."""

from pathlib import Path

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.plotting.maps import plot_error
from hushgraph.plotting.style import COLOURS

pytest.importorskip("matplotlib")

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.colors import FuncNorm, Normalize

matplotlib.use("Agg")
pytestmark = pytest.mark.usefixtures("no_figures")
SIGNALS = {
    "zero": np.zeros(20),
    "constant": np.full(20, 3.0),
    "positive": np.arange(20.0),
    "negative": -np.arange(20.0) - 1,
    "of both signs": np.arange(20.0) - 7,
    "one busy place": np.eye(20)[3] * 1e6,
    "integers": np.arange(20),
    "large": np.arange(20.0) * 1e60,
    "small": np.arange(20.0) * 1e-200,
}


@pytest.fixture(scope="module")
def graph():
    return hg.datasets.grid(4, 5)


def lines_of(ax):
    (lines,) = [part for part in ax.collections if isinstance(part, LineCollection)]
    return lines


def maps_of(figure):
    return [
        ax
        for ax in figure.axes
        if any(isinstance(part, LineCollection) and part.get_array() is not None for part in ax.collections)
    ]


# ---- one map -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("transform", ["sqrt", "linear"])
def test_every_edge_is_drawn_once(graph, name, transform):
    ax = hg.plot_graph_signal(graph, SIGNALS[name], transform=transform)
    assert len(lines_of(ax).get_segments()) == graph.n_edges
    ax.figure.canvas.draw()


def test_edges_run_between_their_nodes(graph):
    segments = np.array(lines_of(hg.plot_graph_signal(graph, np.arange(20.0))).get_segments())
    drawn = {frozenset(map(tuple, segment)) for segment in segments}
    ends = graph.adjacency.tocoo()
    expected = {frozenset(map(tuple, graph.coords[[i, j]])) for i, j in zip(ends.row, ends.col, strict=True)}
    assert drawn == expected


def test_an_edge_shows_the_mean_of_its_ends_and_large_values_come_last():
    graph = hg.Graph.from_edges([(0, 1), (1, 2), (2, 3)], coords=[[0, 0], [1, 0], [2, 0], [3, 0]])
    lines = lines_of(hg.plot_graph_signal(graph, [2.0, -10.0, 4.0, 0.0]))
    np.testing.assert_allclose(lines.get_array(), [2.0, -3.0, -4.0])
    np.testing.assert_allclose(lines.get_segments()[0], [[2, 0], [3, 0]])


def test_large_values_are_wider(graph):
    widths = lines_of(hg.plot_graph_signal(graph, np.arange(20.0))).get_linewidths()
    assert widths[-1] > 2 * widths[0]
    assert np.all(np.diff(widths) >= 0)
    assert min(lines_of(hg.plot_graph_signal(graph, np.zeros(20), linewidth=0.7)).get_linewidths()) == pytest.approx(0.7)


def test_colours_are_symmetric_about_zero(graph):
    norm = lines_of(hg.plot_graph_signal(graph, np.arange(20.0))).norm
    assert isinstance(norm, FuncNorm)
    assert norm.vmin == -norm.vmax
    assert norm(0.0) == pytest.approx(0.5)
    assert norm(norm.vmax / 4) == pytest.approx(0.75)  # the signed square root
    linear = lines_of(hg.plot_graph_signal(graph, np.arange(20.0), transform="linear")).norm
    assert type(linear) is Normalize
    assert linear(linear.vmax / 4) == pytest.approx(0.625)


def test_given_limits_are_kept(graph):
    norm = lines_of(hg.plot_graph_signal(graph, np.arange(20.0), vmin=3, vmax=9)).norm
    assert (norm.vmin, norm.vmax) == (3, 9)
    norm = lines_of(hg.plot_graph_signal(graph, np.arange(20.0), vmax=9)).norm
    assert (norm.vmin, norm.vmax) == (-9, 9)


def test_one_busy_place_does_not_hide_the_rest():
    graph, signal = hg.datasets.grid(40, 40), np.ones(1600)
    signal[800] = 1e9
    assert lines_of(hg.plot_graph_signal(graph, signal)).norm.vmax < 1e9 / 4


def test_title_colour_map_and_bar(graph):
    ax = hg.plot_graph_signal(graph, np.arange(20.0), title="Taxis", cmap="viridis")
    assert ax.get_title(loc="left") == "Taxis"
    assert lines_of(ax).get_cmap().name == "viridis"
    assert len(ax.figure.axes) == 2
    assert len(hg.plot_graph_signal(graph, np.arange(20.0), colorbar=False).figure.axes) == 1


@pytest.mark.parametrize("name", SIGNALS)
def test_ticks_of_the_bar_are_round_and_within_it(graph, name):
    ax = hg.plot_graph_signal(graph, SIGNALS[name])
    bar = next(other for other in ax.figure.axes if other is not ax)
    low, high = bar.get_ylim()
    ticks = bar.get_yticks()
    assert 0.0 in ticks
    assert np.all((ticks >= low) & (ticks <= high))
    assert all(label.get_text().lstrip("\N{MINUS SIGN}")[0] in "0125" for label in bar.get_yticklabels())
    assert not any("-" in label.get_text().split("e")[0] for label in bar.get_yticklabels())


def test_drawn_into_given_axes(graph):
    figure, (left, right) = plt.subplots(1, 2)
    assert hg.plot_graph_signal(graph, np.arange(20.0), ax=right) is right
    assert plt.get_fignums() == [figure.number]
    assert not left.collections
    assert len(lines_of(right).get_segments()) == graph.n_edges


def test_series_and_dicts_go_by_label():
    pandas = pytest.importorskip("pandas")
    graph = hg.Graph.from_edges([(0, 1), (1, 2)], coords=[[0, 0], [1, 0], [2, 0]], labels=["a", "b", "c"])
    expected = lines_of(hg.plot_graph_signal(graph, [1.0, 2.0, 8.0])).get_array()
    for signal in ({"c": 8.0, "a": 1.0, "b": 2.0}, pandas.Series([8.0, 2.0, 1.0], index=["c", "b", "a"])):
        np.testing.assert_array_equal(lines_of(hg.plot_graph_signal(graph, signal)).get_array(), expected)


@pytest.mark.parametrize(("rows", "rasterised"), [(158, False), (159, True)])
def test_many_edges_become_pixels(rows, rasterised):
    graph = hg.datasets.grid(rows, 159)
    assert (graph.n_edges > 50_000) == rasterised
    lines = lines_of(hg.plot_graph_signal(graph, np.arange(graph.n), colorbar=False))
    assert bool(lines.get_rasterized()) == rasterised
    assert len(lines.get_segments()) == graph.n_edges


# ---- places --------------------------------------------------------------------------------------------------------


def test_planar_maps_have_equal_units(graph):
    assert hg.plot_graph_signal(graph, np.zeros(20)).get_aspect() == 1.0


@pytest.mark.parametrize("latitude", [0.0, 40.7, -60.0])
def test_maps_in_degrees_have_the_aspect_of_their_latitude(latitude):
    graph = hg.Graph.from_edges([(0, 1)], coords=[[-74.0, latitude - 0.1], [-73.9, latitude + 0.1]], crs="lonlat")
    expected = 1 / np.cos(np.radians(latitude))
    assert hg.plot_graph_signal(graph, [1, 2]).get_aspect() == pytest.approx(expected)
    assert maps_of(hg.plot_maps(graph, {"a": [1, 2]}))[0].get_aspect() == pytest.approx(expected)


def test_the_third_coordinate_is_left_out():
    graph = hg.Graph.from_edges([(0, 1)], coords=[[0, 0, 5], [1, 2, 7]])
    np.testing.assert_allclose(lines_of(hg.plot_graph_signal(graph, [1, 2])).get_segments()[0], [[0, 0], [1, 2]])


@pytest.mark.parametrize(
    "graph",
    [
        hg.Graph.from_edges([], n=0, coords=np.empty((0, 2))),
        hg.datasets.grid(1, 1),
        hg.Graph.from_edges([], n=3, coords=[[0, 0], [1, 0], [0, 1]]),
        hg.datasets.grid(1, 9),
        hg.datasets.grid(9, 1),
        hg.Graph.from_edges([(0, 1)], coords=[[5, 5], [5, 5]]),
    ],
    ids=["no nodes", "one node", "no edges", "a row", "a column", "one place"],
)
@pytest.mark.parametrize("value", [0.0, -2.0, 7.0])
def test_degenerate_maps(graph, value):
    signal = np.full(graph.n, value)
    ax = hg.plot_graph_signal(graph, signal)
    assert len(lines_of(ax).get_segments()) == graph.n_edges
    ax.figure.canvas.draw()
    hg.plot_maps(graph, {"a": signal, "b": signal}).canvas.draw()


# ---- several maps --------------------------------------------------------------------------------------------------


def test_maps_share_one_colour_scale(graph):
    signals = {"truth": np.arange(20.0), "noisy": -3 * np.arange(20.0), "denoised": np.zeros(20)}
    figure = hg.plot_maps(graph, signals, title="Manhattan")
    maps = maps_of(figure)
    assert [ax.get_title(loc="left") for ax in maps] == list(signals)
    assert [len(lines_of(ax).get_segments()) for ax in maps] == [graph.n_edges] * 3
    limits = {(lines_of(ax).norm.vmin, lines_of(ax).norm.vmax) for ax in maps}
    assert len(limits) == 1
    largest = max(np.abs(lines_of(ax).get_array()).max() for ax in maps)
    assert 0.9 * largest <= limits.pop()[1] <= largest
    assert len(figure.axes) == 4  # one colour bar
    assert figure.get_suptitle() == "Manhattan"


def test_equal_values_get_equal_colours(graph):
    figure = hg.plot_maps(graph, {"a": np.full(20, 5.0), "b": np.where(np.arange(20) < 10, 5.0, 50.0)})
    first, second = (lines_of(ax) for ax in maps_of(figure))
    np.testing.assert_array_equal(first.to_rgba(first.get_array())[0], second.to_rgba(second.get_array())[0])


@pytest.mark.parametrize("name", SIGNALS)
def test_a_single_map(graph, name):
    figure = hg.plot_maps(graph, {name: SIGNALS[name]})
    assert len(maps_of(figure)) == 1
    figure.canvas.draw()


@pytest.mark.parametrize("kind", [str, Path])
def test_saved_as_png(graph, tmp_path, kind):
    path = tmp_path / "maps.png"
    hg.plot_maps(graph, {"up": np.arange(20.0), "down": -np.arange(20.0)}, path=kind(path))
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    pixels = plt.imread(path)
    assert pixels.shape[1] > pixels.shape[0]  # side by side
    assert len(np.unique(pixels[..., 0])) > 20  # not blank


def test_the_page_fits_the_number_of_maps(graph):
    widths = [hg.plot_maps(graph, dict.fromkeys("abc"[:count], np.arange(20.0))).get_size_inches()[0] for count in (1, 2, 3)]
    assert np.all(np.diff(widths) > 3)


# ---- whom to name --------------------------------------------------------------------------------------------------


def test_attribution_stands_below(graph):
    ax = hg.plot_graph_signal(graph, np.arange(20.0), attribution="(c) OpenStreetMap contributors; NYC Taxi")
    assert ax.texts[0].get_text() == "© OpenStreetMap contributors\nNYC Taxi"
    ax.figure.canvas.draw()
    assert ax.texts[0].get_window_extent().y1 <= ax.get_window_extent().y0
    assert ax.texts[0].get_window_extent().y0 >= 0
    figure = hg.plot_maps(graph, {"a": np.arange(20.0)}, attribution="© OpenStreetMap contributors")
    assert figure.get_supxlabel() == "© OpenStreetMap contributors"
    assert not hg.plot_graph_signal(graph, np.arange(20.0)).texts


def test_long_attributions_are_broken_and_make_room(graph):
    words = "; ".join(["a name " * 20] * 3)
    text = hg.plot_graph_signal(graph, np.arange(20.0), attribution=words).texts[0].get_text()
    assert max(map(len, text.splitlines())) <= 70
    plain, named = (hg.plot_maps(graph, {"a": np.arange(20.0)}, attribution=words) for words in (None, words))
    assert named.get_size_inches()[1] > plain.get_size_inches()[1] + 0.5


# ---- expected error ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result(graph):
    return hg.denoise(graph, np.random.default_rng(0).normal(0, 1, 20) + 5, sigma=1, method="sgwt_sure")


def test_errors_are_drawn_by_label(graph, result):
    noisy = np.random.default_rng(0).normal(0, 1, 20) + 5
    shuffled = {i: noisy[i] for i in np.random.default_rng(1).permutation(20).tolist()}
    by_label = hg.denoise(graph, shuffled, sigma=1, method="sgwt_sure")
    expected, drawn = (lines_of(hg.plot_error(graph, each)).get_array() for each in (result, by_label))
    np.testing.assert_array_equal(drawn, expected)


def test_the_error_of_each_node_is_drawn(graph, result):
    expected = lines_of(hg.plot_graph_signal(graph, result.expected_error())).get_array()
    lines = lines_of(plot_error(graph, result, title="error"))
    np.testing.assert_array_equal(lines.get_array(), expected)
    local = lines_of(plot_error(graph, result, hops=0)).get_array()
    assert not np.array_equal(local, expected)
    assert type(lines.norm) is Normalize  # an error is read off the bar: no square root
    assert lines_of(plot_error(graph, result, vmax=3)).norm.vmax == 3


def test_edges_without_a_value_are_pale_and_below(graph):
    noisy = np.random.default_rng(0).normal(0, 1, 20)
    noisy[:5] = np.nan
    result = hg.denoise(graph, noisy, sigma=1, method="sgwt_sure", missing="drop")
    lines = lines_of(plot_error(graph, result))
    values = lines.get_array()
    ends = graph.adjacency.tocoo()
    without = np.sum((ends.row < ends.col) & ((ends.row < 5) | (ends.col < 5)))
    assert np.ma.count_masked(values) == without
    assert values.mask[:without].all()
    lines.figure.canvas.draw()
    assert len(np.unique(lines.get_colors()[:without], axis=0)) == 1
    assert np.min(lines.get_colors()[0][:3]) > 0.8


def test_an_error_that_is_no_map(graph, result):
    with pytest.raises(TypeError, match="result must be what denoise returned; got ndarray"):
        plot_error(graph, result.signal)
    two = hg.denoise(graph, np.random.default_rng(0).normal(0, 1, (20, 2)), sigma=1, method="sgwt_sure")
    with pytest.raises(ValueError, match="this result holds 2; draw a column"):
        plot_error(graph, two)
    with pytest.raises(ValueError, match=r"expected \(12,\)"):
        plot_error(hg.datasets.grid(3, 4), result)
    with pytest.raises(TypeError, match="attribution must be a text"):
        plot_error(graph, result, attribution=3)
    assert plt.get_fignums() == []


def test_ticks_of_a_linear_bar_are_not_crowded(graph):
    for top in (1.0, 3.0, 6.0, 40.0, 99.0):
        ax = hg.plot_graph_signal(graph, np.full(20, top), transform="linear")
        bar = next(other for other in ax.figure.axes if other is not ax)
        assert np.diff(bar.get_yticks()).min() >= 0.1 * np.ptp(bar.get_ylim())


# ---- colours -------------------------------------------------------------------------------------------------------

# What people see who lack one kind of cone (Machado, Oliveira and Fernandes 2009), on linear light.
CONES = {
    "all": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}
XYZ = np.array([[0.412456, 0.357576, 0.180438], [0.212673, 0.715152, 0.072175], [0.019334, 0.119192, 0.950304]])


def seen(colours, cones):
    """CIE Lab, in which distances are about those of the eye."""
    rgb = matplotlib.colors.to_rgba_array(colours)[:, :3]
    light = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = np.clip(light @ np.transpose(CONES[cones]), 0, 1) @ XYZ.T / [0.95047, 1, 1.08883]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


def apart(one, other):
    return np.linalg.norm(one[:, None] - other[None], axis=2)


@pytest.mark.parametrize("cones", CONES)
def test_signs_are_told_apart_with_any_colour_vision(graph, cones):
    cmap = lines_of(hg.plot_graph_signal(graph, np.arange(20.0))).get_cmap()
    below, above = (seen(cmap(np.linspace(*ends, 80)), cones) for ends in ((0, 0.35), (0.65, 1)))
    assert apart(below, above).min() > 25  # grey-blue down to #33506f would come as close as 11
    assert np.all(np.diff(seen(cmap(np.linspace(0.5, 1, 80)), cones)[:, 0]) < 0)  # more is darker


@pytest.mark.parametrize("cones", CONES)
def test_curves_are_told_apart_with_any_colour_vision(cones):
    colours = seen(COLOURS, cones)
    assert apart(colours, colours)[~np.eye(len(colours), dtype=bool)].min() > 20


# ---- what is refused, and what is left behind ----------------------------------------------------------------------


@pytest.mark.parametrize("draw", [hg.plot_graph_signal, lambda graph, signal: hg.plot_maps(graph, {"a": signal})])
def test_refused_before_any_figure_is_opened(graph, draw):
    with pytest.raises(ValueError, match="no coords, so build it with coords="):
        draw(hg.Graph(graph.adjacency), np.zeros(20))
    with pytest.raises(ValueError, match=r"expected \(20,\) or \(20, m\), got \(19,\)"):
        draw(graph, np.zeros(19))
    with pytest.raises(ValueError, match=r"a map shows one signal: expected \(20,\), got \(20, 2\); pick a column"):
        draw(graph, np.zeros((20, 2)))
    with pytest.raises(ValueError, match=r"1 entries that are (NaN or )?infinite"):
        draw(graph, [np.inf] + [0.0] * 19)
    assert plt.get_fignums() == []


def test_many_maps_are_drawn_in_rows_and_missing_values_are_left_out(graph):
    signals = {str(k): np.where(np.arange(20) == k, np.nan, np.arange(20.0)) for k in range(10)}
    figure = hg.plot_maps(graph, signals)
    assert figure.axes[0].get_subplotspec().get_gridspec().get_geometry() == (3, 4)
    with pytest.raises(ValueError, match="at most 48 maps"):
        hg.plot_maps(graph, {str(k): np.arange(20.0) for k in range(49)})


def test_many_maps_together_become_pixels():
    graph = hg.datasets.grid(80, 80)  # 12,640 edges
    for n_maps, rasterised in ((3, False), (4, True)):
        figure = hg.plot_maps(graph, {str(k): np.arange(graph.n) for k in range(n_maps)})
        assert bool(maps_of(figure)[0].collections[0].get_rasterized()) == rasterised


def test_no_maps_at_all(graph):
    with pytest.raises(ValueError, match="at least one title and signal"):
        hg.plot_maps(graph, {})
    assert plt.get_fignums() == []


@pytest.mark.parametrize("setting", [{"transform": "log"}, {"cmap": "unheard of"}, {"vmin": 2, "vmax": 1}, {"vmax": np.inf}])
def test_a_refused_setting_leaves_no_figure(graph, setting):
    with pytest.raises(ValueError):
        hg.plot_graph_signal(graph, np.arange(20.0), **setting)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", ["maps.nonsense", "no/such/folder/maps.png"])
def test_a_failed_save_leaves_no_figure(graph, tmp_path, name):
    with pytest.raises((ValueError, OSError)):
        hg.plot_maps(graph, {"a": np.arange(20.0)}, path=tmp_path / name)
    assert plt.get_fignums() == []


def test_one_figure_per_call_and_closable(graph):
    for count in (1, 2):
        hg.plot_graph_signal(graph, np.arange(20.0))
        assert len(plt.get_fignums()) == count
    figure = hg.plot_maps(graph, {"a": np.arange(20.0)})
    assert len(plt.get_fignums()) == 3
    plt.close(figure)
    assert len(plt.get_fignums()) == 2


def test_settings_of_matplotlib_are_left_alone(graph):
    before = dict(matplotlib.rcParams)
    hg.plot_maps(graph, {"a": np.arange(20.0)})
    hg.plot_graph_signal(graph, np.arange(20.0))
    assert dict(matplotlib.rcParams) == before
