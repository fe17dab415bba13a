"""Pictures of frames and of SURE show what the numbers say, and their standard errors are honest."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.plotting.frames import plot_frame, plot_partition, plot_scales, plot_sure
from hushgraph.wavelets.risk_curves import standard_error, sure_curves

pytest.importorskip("matplotlib")

import matplotlib as mpl
import matplotlib.pyplot as plt

mpl.use("Agg")
pytestmark = pytest.mark.usefixtures("no_figures")
SIGMA = 2.0


@pytest.fixture(scope="module")
def graph():
    return hg.datasets.grid(9, 10)


@pytest.fixture(scope="module")
def frame(graph):
    return hg.chebyshev_frame(graph, degree=40)


@pytest.fixture(scope="module")
def truth(graph):
    return 6 * hg.piecewise_constant_signal(graph, n_pieces=4)


@pytest.fixture(scope="module")
def noisy(graph, truth):
    return truth + np.random.default_rng(0).normal(0, SIGMA, graph.n)


def solid(ax):
    """Curves that are not dashed: (x, y) of each."""
    return [line.get_data() for line in ax.get_lines() if line.get_linestyle() == "-"]


# ---- bands and polynomials -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("plateau", ["linear", "smooth", "c3", "meyer"])
def test_the_bands_are_drawn_and_add_up(graph, plateau):
    frame = hg.chebyshev_frame(graph, plateau=plateau)
    ax = plot_partition(frame)
    curves = solid(ax)
    assert len(curves) == frame.n_scales
    for j, (x, y) in enumerate(curves):
        expected = frame.bands.filters(x)[j] ** 2
        np.testing.assert_allclose(np.nan_to_num(y), expected, atol=1e-8)
    x, total = next(line.get_data() for line in ax.get_lines() if line.get_linestyle() == "--")
    assert (x[0], x[-1]) == pytest.approx((0.0, frame.lambda_max))
    np.testing.assert_allclose(total, 1.0)


def test_each_band_bears_its_number(frame):
    texts = [text.get_text() for text in plot_partition(frame).texts]
    assert texts == [*map(str, range(frame.n_scales)), "sum"]


def test_a_band_above_the_spectrum_bears_none(graph):
    frame = hg.chebyshev_frame(graph, plateau="meyer", low_scales=3)
    top = frame.bands.filters([frame.lambda_max])[-1][0] ** 2
    texts = [text.get_text() for text in plot_partition(frame).texts]
    assert len(texts) == frame.n_scales + 1 - (top < 0.05)


def test_bands_alone_reach_as_far_as_they_are_made_for(frame):
    low, high = plot_partition(frame.bands).get_xlim()
    assert (low, high) == (0, frame.base ** (frame.n_scales - 2))
    assert high >= frame.lambda_max


@pytest.mark.parametrize(
    ("low_scales", "log", "expected"), [(0, None, "linear"), (3, None, "log"), (3, False, "linear"), (0, True, "log")]
)
def test_low_bands_ask_for_a_logarithmic_axis(graph, low_scales, log, expected):
    frame = hg.chebyshev_frame(graph, low_scales=low_scales)
    assert plot_partition(frame, log=log).get_xscale() == expected
    assert plot_frame(frame, log=log).axes[1].get_xscale() == expected


def test_scales_go_from_dark_to_light(graph):
    frame = hg.chebyshev_frame(graph, low_scales=5)
    colours = [mpl.colors.to_rgb(line.get_color()) for line in plot_partition(frame).get_lines()[:-1]]
    lightness = np.array(colours) @ [0.2126, 0.7152, 0.0722]
    assert len(colours) == frame.n_scales
    assert np.all(np.diff(lightness) > 0.01)
    assert lightness[-1] < 0.75  # shows on white


def test_polynomials_are_drawn_as_they_are_over_ideal_ones(frame):
    top, bottom = plot_frame(frame).axes
    curves = solid(top)
    ideal = [line for line in top.get_lines() if line.get_linestyle() == "--"]
    assert len(curves) == len(ideal) == frame.n_scales
    for j, (x, y) in enumerate(curves):
        np.testing.assert_allclose(np.nan_to_num(y), frame.filters(x)[j], atol=1e-8)
        np.testing.assert_allclose(np.nan_to_num(ideal[j].get_ydata()), frame.bands.filters(x)[j], atol=1e-8)
    ((x, defect),) = [curve for curve in solid(bottom) if len(curve[0]) > 2]
    assert x[-1] == frame.lambda_upper
    assert 0.95 * frame.tightness_defect < np.abs(defect).max() <= frame.tightness_defect
    assert f"{frame.tightness_defect:.2g}" in bottom.get_title(loc="left")


def test_titles(frame):
    assert plot_partition(frame, title="Bands").get_title(loc="left") == "Bands"
    assert plot_frame(frame).axes[0].get_title(loc="left") == "degree 40, Jackson damping, linear plateau"
    assert plot_frame(frame, title="Mine").axes[0].get_title(loc="left") == "Mine"


def test_drawn_into_given_axes(frame):
    figure, (left, right) = plt.subplots(1, 2)
    assert plot_partition(frame, ax=right) is right
    assert plt.get_fignums() == [figure.number]
    assert not left.get_lines()


@pytest.mark.parametrize("edges", [[], [(0, 1)]], ids=["no edges", "one edge"])
def test_degenerate_frames(edges):
    graph = hg.Graph.from_edges(edges, n=2, coords=[[0, 0], [1, 0]])
    frame = hg.chebyshev_frame(graph)
    for figure in (plot_partition(frame).figure, plot_frame(frame), plot_scales(frame, [1.0, 2.0])):
        figure.canvas.draw()
    plot_sure(frame, [1.0, 2.0], sigma=1).canvas.draw()


# ---- scales --------------------------------------------------------------------------------------------------------


def test_every_scale_is_a_map_of_its_coefficients(frame, graph, noisy):
    figure = plot_scales(frame, noisy, title="Scales", attribution="(c) somebody")
    maps = figure.axes[: frame.n_scales]
    ends = graph.adjacency.tocoo()
    upper = ends.row < ends.col
    for ax, coefficients in zip(maps, hg.analyze(frame, noisy), strict=True):
        drawn = ax.collections[0].get_array()
        expected = (coefficients[ends.row[upper]] + coefficients[ends.col[upper]]) / 2
        np.testing.assert_allclose(np.sort(drawn), np.sort(expected))
    assert len({(ax.collections[0].norm.vmin, ax.collections[0].norm.vmax) for ax in maps}) == 1
    assert maps[0].get_title(loc="left") == "scale 0:  λ up to 1"
    assert maps[2].get_title(loc="left") == "scale 2:  λ from 1 to 4"
    assert figure.get_suptitle() == "Scales"
    assert figure.get_supxlabel() == "© somebody"


@pytest.mark.parametrize("plateau", ["linear", "meyer"])
@pytest.mark.parametrize("low_scales", [0, 2])
def test_titles_say_where_a_scale_lies(graph, noisy, plateau, low_scales):
    frame = hg.chebyshev_frame(graph, plateau=plateau, low_scales=low_scales, base=1.7)
    for j, ax in enumerate(plot_scales(frame, noisy).axes[: frame.n_scales]):
        words = ax.get_title(loc="left").split("λ ")[1].split()
        low = float(words[words.index("from") + 1]) if "from" in words else 0.0
        high = float(words[words.index("to") + 1]) if "to" in words else np.inf
        x = np.linspace(0, 20, 4001)
        at_work = x[frame.bands.filters(x)[j] > 1e-6]
        assert 0.99 * low <= at_work.min()
        assert at_work.max() <= 1.01 * high or high == np.inf


def test_maps_in_rows(frame, noisy):
    figure = plot_scales(frame, noisy, columns=2)
    assert figure.axes[0].get_subplotspec().get_gridspec().ncols == 2
    figure = plot_scales(frame, noisy, columns=99)
    assert figure.axes[0].get_subplotspec().get_gridspec().ncols == frame.n_scales


# ---- SURE ----------------------------------------------------------------------------------------------------------


def test_the_marked_minimum_is_that_of_sure_thresholds(frame, noisy):
    weights = hg.monte_carlo_weights(frame, n_probes=20, seed=3)
    expected = hg.sure_thresholds(hg.analyze(frame, noisy), weights, sigma=SIGMA, rule="soft")
    figure = plot_sure(frame, noisy, sigma=SIGMA, rule="soft", n_probes=20, seed=3)
    panels = figure.axes[: frame.n_scales]
    marked = [next(line for line in ax.get_lines() if line.get_marker() == "o").get_xdata()[0] for ax in panels]
    np.testing.assert_allclose(marked, expected, rtol=1e-9)
    assert [ax.texts[0].get_text() for ax in panels] == [f"{t:.3g}" for t in expected]


@pytest.mark.parametrize(("rule", "beta"), [("james_stein", None), ("soft", None), ("power", 3.0)])
def test_curves_are_sure(frame, noisy, rule, beta):
    weights = hg.monte_carlo_weights(frame, n_probes=8)
    F = hg.analyze(frame, noisy)
    for j, curve in enumerate(sure_curves(frame, noisy, sigma=SIGMA, rule=rule, beta=beta, n_probes=8)):
        assert curve.noise == pytest.approx(SIGMA**2 * weights[j].sum())
        for i in (0, len(curve.thresholds) // 2, -1):
            t = curve.thresholds[i]
            at_t = hg.sure(F[j : j + 1], t, weights=weights[j : j + 1], sigma=SIGMA, rule=rule, beta=beta)
            assert curve.sure[i] == pytest.approx(at_t, rel=1e-9, abs=1e-9 * curve.noise)
        assert curve.sure.min() == curve.sure[np.flatnonzero(curve.thresholds == curve.best)[0]]


def test_the_actual_error_is_that_of_the_coefficients(frame, noisy, truth):
    F, f = hg.analyze(frame, noisy), hg.analyze(frame, truth)
    for j, curve in enumerate(sure_curves(frame, noisy, sigma=SIGMA, truth=truth)):
        expected = [np.sum((hg.james_stein(F[j], t)[0] - f[j]) ** 2) for t in curve.thresholds[:5]]
        np.testing.assert_allclose(curve.actual[:5], expected)


def test_one_sigma_per_node_is_one_sigma(graph, frame, noisy):
    one, each = (sure_curves(frame, noisy, sigma=sigma) for sigma in (SIGMA, np.full(graph.n, SIGMA)))
    for a, b in zip(one, each, strict=True):
        np.testing.assert_allclose(a.sure, b.sure)
        np.testing.assert_allclose(a.standard_error, b.standard_error)


def test_sigma_travels_with_a_noisy_signal(graph, frame, noisy):
    seen = hg.Noisy(noisy, sigma=SIGMA, kind="measurement", graph_hash=graph.hash)
    for a, b in zip(sure_curves(frame, seen), sure_curves(frame, noisy, sigma=SIGMA), strict=True):
        np.testing.assert_array_equal(a.sure, b.sure)


def _spread(frame, truth, j, t, *, draws=400):
    """Standard deviation of SURE - actual error at a fixed threshold over draws of noise, exact weights."""
    noise = np.random.default_rng(1).normal(0, SIGMA, (frame.graph.n, draws))
    F, f = hg.analyze(frame, truth[:, None] + noise)[j], hg.analyze(frame, truth)[j][:, None]
    value, slope = hg.james_stein(F, t)
    weights = hg.exact_weights(frame)[j][:, None]
    sure = np.sum((value - F) ** 2 + SIGMA**2 * weights * (2 * slope - 1), axis=0)
    return np.std(sure - np.sum((value - f) ** 2, axis=0), ddof=1), F


@pytest.mark.parametrize("j", [0, 2, 3])
@pytest.mark.parametrize("t", [0.0, 1.5, 4.0])
def test_standard_errors_are_honest(frame, truth, j, t):
    """Within 20 % of the spread over 400 draws, itself known to 4 %; a sigma that is 30 % too large would not pass."""
    spread, F = _spread(frame, truth, j, t)
    many = np.stack([hg.analyze(frame, eps)[j] for eps in np.random.default_rng(2).choice([-1.0, 1.0], (600, frame.graph.n))])

    def typical(sigma):
        return np.sqrt(np.mean([standard_error(F[:, k], sigma * many, t, rule="james_stein", beta=None) ** 2 for k in range(12)]))

    assert typical(SIGMA) == pytest.approx(spread, rel=0.2)
    assert typical(1.3 * SIGMA) != pytest.approx(spread, rel=0.2)


def test_few_probes_widen_the_band(frame, noisy):
    few, many = (sure_curves(frame, noisy, sigma=SIGMA, n_probes=count) for count in (2, 200))
    widths = [np.mean([curve.standard_error[0] / curve.noise for curve in curves]) for curves in (few, many)]
    assert widths[0] > widths[1]


def test_everything_drawn_is_explained(frame, noisy, truth):
    words = {text.get_text() for text in plot_sure(frame, noisy, sigma=SIGMA).axes[frame.n_scales].get_legend().get_texts()}
    assert words == {"SURE", "± 2 standard errors", "its minimum", "no threshold"}
    figure = plot_sure(frame, noisy, sigma=SIGMA, truth=truth, title="City")
    legend = figure.axes[frame.n_scales].get_legend()
    assert {text.get_text() for text in legend.get_texts()} == words | {"actual squared error"}
    assert figure.get_suptitle() == "City"


# ---- what is refused, and what is left behind ----------------------------------------------------------------------


def test_a_release_is_not_held_against_the_truth(graph, frame, noisy, truth):
    release = hg.Noisy(noisy, sigma=SIGMA, kind="release", graph_hash=graph.hash)
    with pytest.raises(TypeError, match="private release"):
        plot_sure(frame, release, truth=truth)
    assert plt.get_fignums() == []


def test_refused_before_any_figure_is_opened(graph, frame, noisy):
    with pytest.raises(TypeError, match="frame must come from"):
        plot_partition(graph)
    with pytest.raises(TypeError, match="exact frame has none"):
        plot_frame(hg.exact_frame(graph))
    with pytest.raises(TypeError, match="ax must be matplotlib axes"):
        plot_partition(frame, ax=3)
    with pytest.raises(ValueError, match="log must be one of True, False"):
        plot_partition(frame, log="yes")
    with pytest.raises(ValueError, match=r"noisy must be \(90,\), got \(90, 2\)"):
        plot_sure(frame, np.ones((90, 2)), sigma=1)
    with pytest.raises(ValueError, match="n_probes must be an integer of at least 2"):
        plot_sure(frame, noisy, sigma=1, n_probes=1)
    with pytest.raises(ValueError, match="rule"):
        plot_sure(frame, noisy, sigma=1, rule="hard")
    with pytest.raises(ValueError, match=r"expected \(90,\), got \(90, 2\); pick a column"):
        plot_scales(frame, np.ones((90, 2)))
    with pytest.raises(ValueError, match="no coords"):
        plot_scales(hg.chebyshev_frame(hg.Graph(graph.adjacency)), noisy)
    with pytest.raises(ValueError, match="columns must be an integer"):
        plot_scales(frame, noisy, columns=0)
    assert plt.get_fignums() == []


def test_settings_of_matplotlib_are_left_alone(frame, noisy):
    before = dict(mpl.rcParams)
    plot_partition(frame)
    plot_frame(frame)
    plot_sure(frame, noisy, sigma=SIGMA)
    plot_scales(frame, noisy)
    assert dict(mpl.rcParams) == before
    assert len(plt.get_fignums()) == 4
