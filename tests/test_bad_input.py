"""Bad input gives an error that says what was expected and what came; odd but sensible input gives the right number.

Calls are texts, so that the name of a failing test is the call that reproduces it; BAD stands for the argument under test.
"""

import re
import sys

import numpy as np
import pytest

import hushgraph as hg

from .steps import steps_at_most

nan, inf = np.nan, np.inf


@pytest.fixture(scope="module")
def names():
    """What the calls may name."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    nx, ig, pd = (pytest.importorskip(name) for name in ("networkx", "igraph", "pandas"))
    pytest.importorskip("sklearn")
    grid = hg.datasets.grid(4, 5)
    y = np.random.default_rng(0).normal(5, 2, 20)
    frame = hg.chebyshev_frame(grid, degree=20)
    streets = nx.Graph()
    streets.add_edge("a", "b", text="12.5 m", lists=[1, 2], zero=0.0, negative=-1, missing=nan)
    streets.add_edge("b", "c", text="3", lists=3, zero=2.0, negative=1, missing=1)
    triangle = ig.Graph(n=3, edges=[(0, 1), (1, 2), (0, 2)])
    named_places = nx.Graph()
    named_places.add_node("a", x="west", y="north")

    def fit(X=None, **options):
        rows = np.stack([y, y + 1]) if X is None else X
        return hg.WaveletDenoiser(**{"graph": grid, "sigma": 1.0, **options}).fit(rows)

    def transformed(**options):
        return fit(**options).transform(np.stack([y, y + 1]))

    def noisy(**options):
        return hg.Noisy(**{"values": y, "sigma": 1.0, "kind": "measurement", "graph_hash": grid.hash, **options})

    return {
        "hg": hg, "np": np, "pd": pd, "nx": nx, "nan": nan, "inf": inf, "grid": grid, "y": y, "frame": frame, "fit": fit,
        "transformed": transformed, "noisy": noisy, "streets": streets, "triangle": triangle, "named_places": named_places,
        "exact": hg.exact_frame(grid),
        "F": hg.analyze(frame, y),
        "truth": hg.analyze(frame, np.repeat([3.0, 7.0], 10)),
        "W": hg.monte_carlo_weights(frame, n_probes=4),
        "turned": hg.datasets.grid(5, 4),  # as many nodes as grid, other edges
        "large": hg.datasets.grid(25, 25),  # large enough for Lanczos
        "path": hg.Graph.from_edges([(0, 1), (1, 2)]),
        "named": hg.Graph.from_edges([(0, 1), (1, 2)], labels=["a", "b", "c"]),
        "nothing": hg.Graph.from_edges([], n=0),
        "point": hg.Graph.from_edges([], n=1),
        "dust": hg.Graph.from_edges([], n=5),
    }  # fmt: skip


@pytest.fixture(autouse=True)
def _no_figures_left():
    """A refused map that was drawn all the same must not trouble the next test."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


WRONG_KIND = (
    r"must (hold|be) real numbers; got|must be a hushgraph\.Graph; got|must come from chebyshev_frame|must be a list of node numbers|"
    r"must be integers \(node numbers\)|needs an? (networkx graph|igraph\.Graph); got|must be a (str|bool); got|"
    r"must be one name per node, a list|must be names that can be keys|must be callable|must be matplotlib axes"
)


@pytest.fixture
def refused(names):
    """The call raises an error whose text matches the words: a TypeError where the kind of a thing is wrong, a ValueError everywhere else."""

    def check(call, words):
        with pytest.raises((TypeError, ValueError), match=words) as caught:
            eval(call, names)
        expected = TypeError if re.search(WRONG_KIND, str(caught.value)) else ValueError
        assert isinstance(caught.value, expected), f"{expected.__name__} expected; got {caught.value!r}"

    return check


def outcome(call, names):
    """(value, "") or (None, the text of the error)."""
    try:
        return eval(call, names), ""
    except (TypeError, ValueError) as error:
        return None, f"{type(error).__name__}: {error}"


# ---- things of the wrong kind, in every function that takes them ---------------------------------------------------


@pytest.mark.parametrize("bad", ["None", "5", "'grid'", "np.eye(20)", "frame"])
@pytest.mark.parametrize(
    "call",
    [
        "hg.chebyshev_frame(BAD)",
        "hg.exact_frame(BAD)",
        "hg.smooth_weights(BAD, W)",
        "hg.estimate_sigma(BAD, y)",
        "hg.denoise(BAD, y, sigma=1.0)",
        "hg.bernoulli_signal(BAD)",
        "hg.plot_graph_signal(BAD, y)",
        "hg.plot_maps(BAD, {'noisy': y})",
        "noisy().check_belongs_to(BAD)",
    ],
)
def test_a_graph_is_a_graph(call, bad, refused):
    refused(
        call.replace("BAD", bad), r"graph must be a hushgraph\.Graph; got |WaveletDenoiser needs the graph its features live on"
    )


@pytest.mark.parametrize("bad", ["5", "'graph'", "y", "grid.adjacency"])
def test_the_graph_of_an_estimator_is_a_graph_or_none(bad, refused):
    refused(f"transformed(graph={bad})", r"graph must be a hushgraph\.Graph")


def test_swapped_graph_and_signal(refused):
    refused("hg.denoise(y, grid, sigma=1.0)", "[Gg]raph.*ndarray")


@pytest.mark.parametrize("bad", ["None", "5", "'frame'", "grid"])
@pytest.mark.parametrize(
    "call",
    [
        "hg.analyze(BAD, y)",
        "hg.synthesize(BAD, F)",
        "hg.as_linear_operator(BAD)",
        "hg.monte_carlo_weights(BAD)",
        "hg.exact_weights(BAD)",
        "hg.sure_variance(BAD, F, 1.0, sigma=1.0, n_probes=4)",
        "hg.estimate_sigma(grid, y, frame=BAD)",
        "hg.denoise(grid, y, sigma=1.0, frame=BAD, method='sgwt_sure')",
    ],
)
def test_a_frame_is_a_frame(call, bad, refused):
    if bad == "None" and "frame=" in call:
        pytest.skip("None is the default there")
    refused(call.replace("BAD", bad), "frame must come from chebyshev_frame or exact_frame; got ")


@pytest.mark.parametrize("other", ["hg.chebyshev_frame(path)", "hg.chebyshev_frame(turned)", "hg.exact_frame(turned)"])
@pytest.mark.parametrize(
    "call", ["hg.denoise(grid, y, sigma=1.0, frame=BAD, method='sgwt_sure')", "hg.estimate_sigma(grid, y, frame=BAD)"]
)
def test_a_frame_belongs_to_the_graph(call, other, refused):
    refused(call.replace("BAD", other), "another graph")


@pytest.mark.parametrize(
    ("bad", "words"),
    {
        "y[:-1]": r"one row per node: expected \(20,\) or \(20, m\), got \(19,\)",
        "np.stack([y, y, y])": r"got \(3, 20\); pass Y.T if signals are rows",
        "np.zeros((20, 2, 2))": r"got \(20, 2, 2\)",
        "np.zeros((20, 0))": "signal has no columns",
        "5.0": r"expected \(20,\).*got \(\)",
        "None": "real numbers; got",
        "'abc'": "real numbers; got dtype <U3",
        "['a'] * 20": "real numbers; got dtype <U1",
        "y.astype(str)": "real numbers; got dtype <U",
        "y.astype(object)": "real numbers; got dtype object",
        "y * 1j": "real numbers; got dtype complex128",
        "y.astype('datetime64[s]')": "real numbers; got dtype datetime64",
        "[[1, 2], [3]]": "signal must hold real numbers; got rows of unequal length",
        "[nan] + [0.0] * 19": "1 entries that are NaN or infinite",
        "[0.0, inf, -inf] + [0.0] * 17": r"2 entries that are NaN or infinite \(first: 1, 2\)",
        "np.ma.masked_less(y, 5)": "11 masked entries, and the mask would be lost",
        "{0: 1.0, 1: 2.0}": r"18 nodes have no value \(first: \[2, 3, 4\]\)",
        "pd.Series(y, index=range(1, 21))": r"1 nodes .* \(first: \[0\]\), 1 labels are not nodes \(first: 20\); reindex signal to the numbers 0 to 19",
        "{str(i): 1.0 for i in range(20)}": r"are not nodes \(first: '0'\); the graph has integers, these are text: turn them into integers",
        "pd.Series(y, index=[0, *range(19)])": "1 repeated labels",
        "pd.DataFrame([y, y])": r"\.T",
    }.items(),
)
@pytest.mark.parametrize(
    "call",
    [
        "grid.align(BAD)",
        "hg.analyze(frame, BAD)",
        "hg.estimate_sigma(grid, BAD)",
        "hg.denoise(grid, BAD, sigma=1.0)",
        "hg.plot_graph_signal(grid, BAD)",
        "hg.plot_maps(grid, {'noisy': BAD})",
    ],
)
def test_a_signal_is_one_real_finite_number_per_node(call, bad, words, refused):
    refused(call.replace("BAD", bad), words)


@pytest.mark.parametrize(
    ("bad", "words"),
    {
        "{'a': 1, 'b': 2}": r"1 nodes have no value \(first: \['c'\]\)",
        "{'a': 1, 'b': 2, 'c': 3, 'd': 4}": "0 nodes have no value.*1 labels are not nodes",
        "{'a': 1, 'b': 2, 'd': 4}": "1 nodes have no value.*1 labels are not nodes",
        "{}": "3 nodes have no value",
        "{'a': 1, 'b': 2, 'c': None}": "real numbers; got dtype object",
        "{'a': 1, 'b': 2, 'c': 'x'}": "real numbers; got dtype <U",
        "{'a': 1, 'b': 2, 'c': [1, 2]}": "signal must hold real numbers; got rows of unequal length",
        "pd.Series([1, 2, 3, 4], index=['a', 'b', 'b', 'c'])": "1 repeated labels; each node needs exactly one value",
        "pd.Series([1, 2, 3])": r"3 nodes .*3 labels are not nodes \(first: 0\); the graph has text, these are integers: .*; reindex signal to graph.labels",
        "pd.Series([1, None, 3], index=['a', 'b', 'c'], dtype='Int64')": r"1 entries that are NaN or infinite \(first: 'b'\)",
        "pd.Series(['1', '2', '3'], index=['a', 'b', 'c'])": "real numbers; got dtype",
        "pd.DataFrame(np.zeros((2, 3)), columns=['a', 'b', 'c'])": r"\.T",
    }.items(),
)
def test_labels_match(bad, words, refused):
    refused(f"hg.denoise(named, {bad}, sigma=1.0)", words)


SIGMA_OF_ALL = [
    "0",
    "-1",
    "nan",
    "inf",
    "'a'",
    "'1.0'",
    "True",
    "1j",
    "[1]",
    "[]",
    "np.ones((20, 1))",
    "['a'] * 20",
    "[[1.0], [1, 2]]",
]


@pytest.mark.parametrize("bad", [*SIGMA_OF_ALL, "None", "np.ones(20)"])
@pytest.mark.parametrize(
    "call",
    [
        "hg.sure(F, 1.0, weights=W, sigma=BAD)",
        "hg.sure_variance(frame, F, 1.0, sigma=BAD, n_probes=4)",
        "hg.sure_thresholds(F, W, sigma=BAD)",
        "hg.sure_curve(F[0], W[0], sigma=BAD)",
    ],
)
def test_sigma_is_one_positive_number(call, bad, refused):
    refused(call.replace("BAD", bad), "sigma .*must be a positive number; got ")


@pytest.mark.parametrize(
    "bad",
    [*SIGMA_OF_ALL, "[1, 2]", "[1] * 19", "np.ones(19)", "[0] + [1] * 19", "[nan] + [1.0] * 19", "[1j] * 20", "[True] * 20"],
)
@pytest.mark.parametrize(
    "call",
    [
        "hg.monte_carlo_weights(frame, sigma=BAD)",
        "hg.exact_weights(frame, sigma=BAD)",
        "hg.exact_weights(exact, sigma=BAD)",
        "hg.signal_sure(y, y, divergence=1.0, sigma=BAD)",
        "hg.monte_carlo_divergence(np.tanh, y, sigma=BAD)",
        "hg.denoise(grid, y, sigma=BAD)",
        "transformed(sigma=BAD)",
    ],
)
def test_sigma_is_positive_and_one_or_one_per_node(call, bad, refused):
    refused(call.replace("BAD", bad), "sigma .*must be a positive number or 20 of them, one per node; got ")


@pytest.mark.parametrize("bad", ["{0: 1.0}", "pd.Series(np.ones(20), index=range(1, 21))"])
def test_labels_of_sigma_match(bad, refused):
    refused(f"hg.denoise(grid, y, sigma={bad})", "labels of (signal|sigma) and graph differ")


@pytest.mark.parametrize("bad", ["pd.Series(np.full(20, nan))", "{i: 'a' for i in range(20)}"])
def test_labelled_sigma_is_called_sigma(bad, refused):
    refused(f"hg.denoise(grid, y, sigma={bad})", "^sigma (has 20 entries that are NaN or infinite|must hold real numbers; got )")


@pytest.mark.parametrize("bad", ["0", "-1", "1.5", "2.0", "nan", "True", "'4'", "[4]"])
@pytest.mark.parametrize(
    "call",
    [
        "hg.monte_carlo_weights(frame, n_probes=BAD)",
        "hg.sure_variance(frame, F, 1.0, sigma=1.0, n_probes=BAD)",
        "hg.monte_carlo_divergence(np.tanh, y, n_probes=BAD)",
        "hg.denoise(grid, y, sigma=1.0, n_probes=BAD)",
        "hg.denoise(grid, y, sigma=1.0, n_probes=BAD, method='sgwt_exact')",
        "hg.denoise(grid, y, sigma=1.0, n_probes=BAD, method='sgwt_sure', frame=frame, weights=W)",
        "transformed(n_probes=BAD)",
    ],
)
def test_probes_are_counted(call, bad, refused):
    refused(call.replace("BAD", bad), "n_probes must be an integer of at least 1; got ")


@pytest.mark.parametrize("bad", ["-1", "1.5", "'a'", "[1.5]"])
@pytest.mark.parametrize(
    "call",
    [
        "hg.monte_carlo_weights(frame, seed=BAD)",
        "hg.sure_variance(frame, F, 1.0, sigma=1.0, n_probes=4, seed=BAD)",
        "hg.monte_carlo_divergence(np.tanh, y, seed=BAD)",
        "hg.denoise(grid, y, sigma=1.0, seed=BAD)",
        "hg.bernoulli_signal(grid, rng=BAD)",
        "hg.datasets.city(100, seed=BAD)",
        "hg.datasets.roads(100, seed=BAD)",
        "hg.datasets.random_geometric(10, seed=BAD)",
        "transformed(seed=BAD)",
    ],
)
def test_a_seed_is_a_natural_number(call, bad, refused):
    refused(call.replace("BAD", bad), "(seed|rng) must be .*got ")


@pytest.mark.parametrize("bad", ["2**64", "None", "True", "np.random.default_rng(0)"])
@pytest.mark.parametrize("call", ["hg.monte_carlo_weights(frame, seed=BAD)", "hg.denoise(grid, y, sigma=1.0, seed=BAD)"])
def test_a_seed_of_probes_is_given(call, bad, refused):
    refused(call.replace("BAD", bad), r"seed must be an integer from 0 to 2\^64 - 1; got ")


@pytest.mark.parametrize(
    ("call", "choices"),
    {
        "path.laplacian(BAD)": "'combinatorial', 'normalized', 'random_walk'",
        "path.spectrum(BAD)": "'combinatorial', 'normalized', 'random_walk'",
        "hg.Graph.from_edges([(0, 1)], duplicates=BAD)": "'error', 'sum', 'max'",
        "hg.Graph.from_edges([(0, 1)], crs=BAD)": "None, 'lonlat'",
        "hg.Graph.from_networkx(streets, duplicates=BAD)": "'error', 'sum', 'max'",
        "hg.Graph.from_image((2, 3), neighbours=BAD)": "4, 8",
        "hg.partition([0.5], n_scales=3, plateau=BAD)": "'linear', 'smooth', 'c3', 'meyer'",
        "hg.chebyshev_coefficients(np.cos, 5, upper=1.0, damping=BAD)": "None, 'jackson'",
        "hg.chebyshev_frame(grid, plateau=BAD)": "'linear', 'smooth', 'c3', 'meyer'",
        "hg.chebyshev_frame(grid, damping=BAD)": "None, 'jackson'",
        "hg.chebyshev_frame(grid, laplacian=BAD)": "'combinatorial', 'normalized', 'random_walk'",
        "hg.exact_frame(grid, plateau=BAD)": "'linear', 'smooth', 'c3', 'meyer'",
        "hg.exact_frame(grid, laplacian=BAD)": "'combinatorial', 'normalized', 'random_walk'",
        "hg.shrink(y, 1.0, rule=BAD)": "'soft', 'james_stein', 'power', 'hard'",
        "hg.monte_carlo_weights(frame, law=BAD)": "'rademacher', 'gaussian'",
        "hg.monte_carlo_weights(frame, domain=BAD)": "'coefficients', 'signal'",
        "hg.exact_weights(frame, domain=BAD)": "'coefficients', 'signal'",
        "hg.exact_weights(exact, domain=BAD)": "'coefficients', 'signal'",
        "hg.sure(F, 1.0, weights=W, sigma=1.0, rule=BAD)": "'soft', 'james_stein', 'power', 'hard'",
        "hg.sure_variance(frame, F, 1.0, sigma=1.0, n_probes=4, rule=BAD)": "'soft', 'james_stein', 'power', 'hard'",
        "hg.sure_variance(frame, F, 1.0, sigma=1.0, n_probes=4, law=BAD)": "'rademacher', 'gaussian'",
        "hg.sure_thresholds(F, W, sigma=1.0, rule=BAD)": "'soft', 'james_stein', 'power', 'hard'",
        "hg.sure_thresholds(F, W, sigma=1.0, level=BAD)": "'scale', 'global'",
        "hg.sure_thresholds(F, W, sigma=1.0, candidates=BAD)": "'all', 'percentiles'",
        "hg.sure_curve(F[0], W[0], sigma=1.0, rule=BAD)": "'soft', 'james_stein', 'power', 'hard'",
        "hg.oracle_thresholds(F, truth, rule=BAD)": "'soft', 'james_stein', 'power', 'hard'",
        "hg.oracle_thresholds(F, truth, level=BAD)": "'scale', 'global'",
        "noisy(kind=BAD)": "'measurement', 'release', 'simulation'",
        "hg.denoise(grid, y, sigma=1.0, method=BAD)": "'auto', 'let', 'counts', 'sgwt_deep', 'sgwt_sure', 'sgwt_scaled', 'sgwt_exact', 'sgwt_block', 'sgwt_beta'",
        "hg.denoise(grid, y, sigma=1.0, rule=BAD)": "'soft', 'james_stein', 'power', 'hard'",
        "hg.denoise(grid, y, sigma=1.0, level=BAD)": "'scale', 'global'",
        "hg.denoise(grid, y, sigma=1.0, candidates=BAD)": "'all', 'percentiles'",
        "hg.denoise(grid, y, sigma=1.0, law=BAD)": "'rademacher', 'gaussian'",
        "hg.denoise(grid, y, sigma=1.0, missing=BAD)": "'error', 'drop', 'fill'",
        "hg.plot_graph_signal(grid, y, transform=BAD)": "'sqrt', 'linear'",
        "transformed(method=BAD)": "'auto', 'let', 'counts', 'sgwt_deep', 'sgwt_sure', 'sgwt_scaled', 'sgwt_exact', 'sgwt_block', 'sgwt_beta'",
        "transformed(rule=BAD)": "'soft', 'james_stein', 'power', 'hard'",
        "transformed(law=BAD)": "'rademacher', 'gaussian'",
    }.items(),
)
@pytest.mark.parametrize("bad", ["'unheard of'", "['soft']", "np.array(['a', 'b'])"])
def test_unknown_names_list_the_choices(call, choices, bad, refused):
    refused(call.replace("BAD", bad), f"must be one of {choices}.*got ")


@pytest.mark.parametrize("bad", ["0.5", "0", "-1", "nan", "inf", "None", "'3'", "[2, 3]", "2j"])
@pytest.mark.parametrize(
    "call",
    [
        "hg.power(y, 1.0, beta=BAD)",
        "hg.shrink(y, 1.0, rule='power', beta=BAD)",
        "hg.sure(F, 1.0, weights=W, sigma=1.0, rule='power', beta=BAD)",
        "hg.sure_variance(frame, F, 1.0, sigma=1.0, n_probes=4, rule='power', beta=BAD)",
        "hg.sure_thresholds(F, W, sigma=1.0, rule='power', beta=BAD)",
        "hg.sure_curve(F[0], W[0], sigma=1.0, rule='power', beta=BAD)",
        "hg.oracle_thresholds(F, truth, rule='power', beta=BAD)",
        "hg.denoise(grid, y, sigma=1.0, rule='power', beta=BAD)",
    ],
)
def test_beta_is_finite_and_at_least_one(call, bad, refused):
    refused(call.replace("BAD", bad), "beta of at least 1.*got ")


@pytest.mark.parametrize(
    "call",
    [
        "hg.shrink(y, 1.0, rule='soft', beta=2)",
        "hg.sure(F, 1.0, weights=W, sigma=1.0, beta=2)",
        "hg.sure_thresholds(F, W, sigma=1.0, beta=2)",
        "hg.oracle_thresholds(F, truth, beta=2)",
        "hg.denoise(grid, y, sigma=1.0, beta=2)",
    ],
)
def test_beta_belongs_to_power(call, refused):
    refused(call, "beta belongs to rule='power' only; got beta=2 with rule=")


@pytest.mark.parametrize(
    "call",
    [
        "hg.sure(F, 1.0, weights=W, sigma=1.0, rule='hard')",
        "hg.sure_variance(frame, F, 1.0, sigma=1.0, n_probes=4, rule='hard')",
        "hg.sure_thresholds(F, W, sigma=1.0, rule='hard')",
        "hg.sure_curve(F[0], W[0], sigma=1.0, rule='hard')",
        "hg.denoise(grid, y, sigma=1.0, rule='hard')",
    ],
)
def test_sure_refuses_hard_thresholds(call, refused):
    refused(call, "SURE does not hold for rule='hard'")


@pytest.mark.parametrize(("bad", "came"), {"-1": "-1", "nan": "nan", "None": "", "'a'": "", "1j": ""}.items())
@pytest.mark.parametrize(
    "call",
    [
        "hg.soft(y, BAD)",
        "hg.james_stein(y, BAD)",
        "hg.hard(y, BAD)",
        "hg.power(y, BAD, beta=3.0)",
        "hg.shrink(y, BAD)",
        "hg.sure(F, BAD, weights=W, sigma=1.0)",
        "hg.sure_variance(frame, F, BAD, sigma=1.0, n_probes=4)",
    ],
)
def test_thresholds_are_not_negative(call, bad, came, refused):
    refused(call.replace("BAD", bad), f"(thresholds|t) must be numbers of at least 0.*{came}")


@pytest.mark.parametrize("bad", ["[1.0, 2.0]", "np.ones((5, 20))", "np.ones((20, 5))", "[]"])
@pytest.mark.parametrize(
    "call", ["hg.sure(F, BAD, weights=W, sigma=1.0)", "hg.sure_variance(frame, F, BAD, sigma=1.0, n_probes=4)"]
)
def test_thresholds_fit_the_scales(call, bad, refused):
    refused(call.replace("BAD", bad), r"t must have one of the shapes \(\), \(5,\).*got \(")


@pytest.mark.parametrize("bad", ["'yes'", "None", "1", "np.ones(3)", "W.T", "-W", "W * nan", "W * 1j", "W.astype(str)"])
@pytest.mark.parametrize(
    "call",
    [
        "hg.sure(F, 1.0, weights=W, sigma=1.0, scaled=BAD)",
        "hg.sure_thresholds(F, W, sigma=1.0, scaled=BAD)",
        "hg.oracle_thresholds(F, truth, scaled=BAD, weights=W)",
        "hg.oracle_thresholds(F, truth, scaled=BAD)",
    ],
)
def test_scales_of_thresholds_fit(call, bad, refused):
    refused(call.replace("BAD", bad), r"scaled must be True, False or non-negative numbers of shape \(5, 20\); got ")


@pytest.mark.parametrize("bad", ["True", "np.ones(3)", "W.T", "-W", "W * nan", "W * 1j", "'a'"])
def test_scales_of_the_variance_fit(bad, refused):
    words = r"(scale|scaled|threshold_scale) must be .*numbers of shape \(5, 20\)|thresholds must be numbers of at least 0"
    refused(f"hg.sure_variance(frame, F, 1.0, sigma=1.0, n_probes=4, threshold_scale={bad})", words)


def test_scaled_oracle_needs_weights(refused):
    refused("hg.oracle_thresholds(F, truth, scaled=True)", "scaled=True needs weights=")


@pytest.mark.parametrize(
    ("bad", "words"),
    {
        "F[:2]": r"\(2, 20\)",
        "F[:, :-1]": r"\(5, 19\)",
        "F.T": r"\(20, 5\)",
        "F[0]": r"\(20,\)",
        "F[None]": r"\(1, 5, 20\)",
        "np.zeros((5, 20, 0))": r"\(5, 20, 0\)",
        "5.0": r"\(\)",
        "None": r"(\(\)|real numbers)",
        "F * nan": "finite",
        "np.where(F > 0, F, inf)": "finite",
        "F * 1j": "real numbers; got dtype complex128",
        "F.astype(str)": "real numbers; got dtype <U",
        "F.astype(object)": "real numbers; got dtype object",
    }.items(),
)
@pytest.mark.parametrize(
    "call",
    [
        "hg.synthesize(frame, BAD)",
        "hg.synthesize(exact, BAD)",
        "hg.sure(BAD, 1.0, weights=W, sigma=1.0)",
        "hg.sure_variance(frame, BAD, 1.0, sigma=1.0, n_probes=4)",
        "hg.sure_thresholds(BAD, W, sigma=1.0)",
        "hg.oracle_thresholds(F, BAD)",
    ],
)
def test_coefficients_fit_the_frame(call, bad, words, refused):
    refused(call.replace("BAD", bad), words)


@pytest.mark.parametrize("bad", ["F[0]", "F * nan", "F * 1j", "F.astype(str)", "5.0", "None"])
def test_an_oracle_of_unfit_coefficients(bad, refused):
    refused(f"hg.oracle_thresholds({bad}, {bad})", r"\(n_scales, n\)|finite|real numbers")


def test_one_signal_for_the_variance(refused):
    refused("hg.sure_variance(frame, F[..., None], 1.0, sigma=1.0, n_probes=4)", r"one signal.*got \(5, 20, 1\)")


@pytest.mark.parametrize(
    ("bad", "words"),
    {
        "W[:2]": r"\(2, 20\)",
        "W[:, :3]": r"\(5, 3\)",
        "W.T": r"\(20, 5\)",
        "W[0]": r"\(20,\)",
        "1.0": r"\(\)",
        "W * nan": "finite",
        "np.where(W > 0.1, W, inf)": "finite",
        "W * 1j": "real numbers; got dtype complex128",
        "W.astype(str)": "real numbers; got dtype <U",
        "W.astype(object)": "real numbers; got dtype object",
    }.items(),
)
@pytest.mark.parametrize(
    "call",
    [
        "hg.sure(F, 1.0, weights=BAD, sigma=1.0)",
        "hg.sure_thresholds(F, BAD, sigma=1.0)",
        "hg.oracle_thresholds(F, truth, scaled=True, weights=BAD)",
        "hg.smooth_weights(grid, BAD)",
        "hg.estimate_sigma(grid, y, frame=frame, weights=BAD)",
        "hg.denoise(grid, y, sigma=1.0, frame=frame, weights=BAD, method='sgwt_sure')",
    ],
)
def test_weights_fit_the_frame(call, bad, words, refused):
    if call.startswith("hg.smooth_weights") and bad == "W[:2]":
        pytest.skip("any number of scales will do there")
    refused(call.replace("BAD", bad), f"weights.*{words}")


@pytest.mark.parametrize(
    ("bad", "words"),
    {
        "F, W": r"one scale|\(n,\)",
        "F[0], W": r"one scale|\(n,\)|shape",
        "F[0], W[0][:3]": r"\(20,\).*\(3,\)",
        "5.0, 1.0": r"one scale|\(n,\)|\(\)",
        "F[0] * nan, W[0]": "finite",
        "F[0], W[0] * nan": "finite",
        "np.where(F[1] > 0, F[1], inf), W[0]": "finite",
        "F[0] * 1j, W[0]": "real numbers",
        "F[0].astype(str), W[0]": "real numbers",
        "F[0], W[0], scale=np.ones(3)": r"scale.*\(3,\)",
        "F[0], W[0], scale=-np.ones(20)": "scale.*(negative|at least 0)",
        "F[0], W[0], scale=np.full(20, nan)": "scale.*(negative|at least 0|finite)",
        "F[0], W[0], scale='a'": "scale.*numbers",
    }.items(),
)
def test_a_curve_is_of_one_scale(bad, words, refused):
    refused(f"hg.sure_curve({bad}, sigma=1.0)", words)


# ---- graphs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "words"),
    {
        "[(0, 1, 2)]": r"edges must be \(m, 2\) node numbers; got shape \(1, 3\)",
        "[[0, 1, 2], [1, 2, 3]]": r"got shape \(2, 3\); pass edges.T",
        "[0, 1]": r"edges must be \(m, 2\) node numbers; got shape \(2,\)",
        "5": r"edges must be \(m, 2\)",
        "None": r"edges must be \(m, 2\)",
        "'ab'": r"edges must be \(m, 2\)",
        "{(0, 1), (1, 2)}": r"edges must be \(m, 2\)",
        "iter([(0, 1)])": r"edges must be \(m, 2\)",
        "[(0, 1), (1,)]": r"edges must be \(m, 2\)",
        "[('a', 'b')]": "integers.*got dtype <U1.*labels=",
        "[(0.0, 1.0)]": "integers.*got dtype float64",
        "[(0, nan)]": "integers.*got dtype float64",
        "[(0, 1j)]": "integers.*got dtype complex128",
        "[(True, False)]": "integers.*got dtype bool",
        "[(0, -1)]": "node numbers from 0; got -1",
        "[(0, 3)], n=3": "edges name node 3, but there are only n=3 nodes",
        "[(0, 3)], coords=np.zeros((3, 2))": "edges name node 3, but there are only n=3 nodes",
        "[(0, 1)], n=-1": "n must be a number of nodes, an integer of at least 0; got -1",
        "[(0, 1)], n=2.0": "n must be .* got 2.0",
        "[(0, 1)], n='2'": "n must be .* got '2'",
        "[(0, 1)], n=True": "n must be .* got True",
        "[(0, 1)], n=nan": "n must be .* got nan",
        "[(0, 1)], n=10**30": "n must be",
        "[(0, 2**40)]": "n must be at most .* nodes; got 1099511627777",
        "[(0, 1)], weights=[1, 2]": r"weights must be one number per edge: expected \(1,\), got \(2,\)",
        "[(0, 1)], weights=1": r"weights must be one number per edge: expected \(1,\), got \(\)",
        "[(0, 1)], weights=[nan]": "weights must be finite; 1 are NaN or infinite",
        "[(0, 1)], weights=[inf]": "weights must be finite; 1 are NaN or infinite",
        "[(0, 1)], weights=[-1]": "must not be negative.*the smallest is -1",
        "[(0, 1)], weights=['a']": "weights must hold real numbers; got dtype <U1",
        "[(0, 1)], weights=['1.5']": "weights must hold real numbers; got dtype <U3",
        "[(0, 1)], weights=[1j]": "weights must hold real numbers; got dtype complex128",
        "[(0, 1)], weights=[None]": "weights must hold real numbers; got dtype object",
        "[(0, 1)], weights=[{}]": "weights must hold real numbers; got dtype object",
        "[(0, 1), (1, 2)], weights=[[1], [2, 3]]": "weights must hold real numbers; got rows of unequal length",
        "[(0, 1), (1, 0)], weights=[1, 2]": r"edge \(0, 1\) is given more than once with different weights \(1 and 2\)",
        "[(0, 1)], n=2, coords=[[0, 0]]": r"coords must be .* expected \(2, 2\), got \(1, 2\)",
        "[(0, 1), (1, 2)], n=3, coords=np.zeros((2, 3))": r"coords must be .* expected \(3, 2\), got \(2, 3\)",
        "[(0, 1)], coords=5": "coords must be",
        "[(0, 1)], coords=[[0, 0], [1]]": "coords must hold real numbers; got rows of unequal length",
        "[(0, 1)], coords=[['a', 'b'], ['c', 'd']]": "coords must hold real numbers",
        "[(0, 1)], coords=[[0, 0], [1j, 1]]": "coords must hold real numbers",
        "[(0, 1)], coords=[[0, 0], [nan, 1]]": "coords must be finite",
        "[(0, 1)], coords=[[0, 0], [1, 100]], crs='lonlat'": r"\(longitude, latitude\) in degrees",
        "[(0, 1)], n=2, labels=['a']": r"labels must be one name per node: expected \(2,\), got \(1,\)",
        "[(0, 1)], labels=['a', 'a']": "labels must be unique; 1 are repeated",
        "[(0, 1)], labels=[1, 1.0]": "labels must be unique; 1 are repeated",
        "[(0, 1)], labels=5": "labels must be one name per node",
        "[(0, 1)], labels=[['a'], ['b']]": "labels must be",
    }.items(),
)
def test_edges(bad, words, refused):
    refused(f"hg.Graph.from_edges({bad})", words)


@pytest.mark.parametrize(
    ("bad", "words"),
    {
        "np.zeros((2, 3))": r"adjacency must be square; got \(2, 3\)",
        "np.zeros(3)": "adjacency must be",
        "np.zeros((2, 2, 2))": "adjacency must be",
        "None": "adjacency must be",
        "5": "adjacency must be",
        "'abc'": "adjacency must be",
        "path": "adjacency must be",
        "np.array([[0, 1], [0, 0]])": r"not symmetric.*A\.maximum\(A\.T\)",
        "np.array([[0, 1], [2, 0]])": r"not symmetric.*A\.maximum\(A\.T\)",
        "np.array([[0, 1], [1 + 1e-9, 0]])": "not symmetric",
        "np.array([[0, -1], [-1, 0]])": "must not be negative.*the smallest is -1",
        "np.array([[0, nan], [nan, 0]])": "finite; 2 are NaN or infinite",
        "np.array([[0, inf], [inf, 0]])": "finite; 2 are NaN or infinite",
        "np.array([[0, 1j], [1j, 0]])": "real numbers; got dtype complex128",
        "np.array([['a', 'b'], ['c', 'd']])": "dtype <U1",
        "np.array([[0, 1], [1, 0]], dtype=object)": "dtype object",
        "np.eye(2), coords=[[0, 1]]": r"coords must be .* got \(1, 2\)",
        "np.eye(2), labels=['a', 'a']": "labels must be unique",
    }.items(),
)
@pytest.mark.parametrize("make", ["hg.Graph", "hg.Graph.from_scipy"])
def test_matrices(make, bad, words, refused):
    refused(f"{make}({bad})", words)


@pytest.mark.parametrize(
    ("call", "words"),
    {
        "from_networkx(5)": "networkx.*int",
        "from_networkx(None)": "networkx.*None",
        "from_networkx(triangle)": "networkx",
        "from_networkx(streets, weight='absent')": "2 of 2 edges have no attribute 'absent'",
        "from_networkx(streets, weight='zero', distance='zero')": r"weight= \(an affinity\) or distance= \(a length\), not both",
        "from_networkx(streets, distance='zero')": "lengths in 'zero' must be finite and above 0",
        "from_networkx(streets, distance='negative')": "lengths in 'negative' must be finite and above 0",
        "from_networkx(streets, distance='missing')": "lengths in 'missing' must be finite and above 0",
        "from_networkx(streets, weight='negative')": "must not be negative.*the smallest is -1",
        "from_networkx(streets, weight='missing')": "finite; 1 are NaN or infinite",
        "from_networkx(streets, weight='text')": "'text'.*number",
        "from_networkx(streets, distance='text')": "'text'.*number",
        "from_networkx(streets, weight='lists')": "'lists'.*number",
        "from_networkx(nx.MultiGraph([(0, 1, dict(w=1)), (0, 1, dict(w=2))]), weight='w')": r"more than once .*\(1 and 2\)",
        "from_networkx(named_places)": "node attribute 'x' must be numbers",
        "from_igraph(5)": "igraph.*int",
        "from_igraph(streets)": "igraph",
        "from_igraph(triangle, weight='absent')": "no attribute 'absent'",
        "from_image(3)": r"shape must be \(rows, columns\)",
        "from_image((3,))": r"shape must be \(rows, columns\), both at least 1; got \(3,\)",
        "from_image((3, 0))": r"got \(3, 0\)",
        "from_image((3, 2, 1))": r"got \(3, 2, 1\)",
        "from_image((-3, 2))": r"got \(-3, 2\)",
        "from_image((3.5, 2))": r"shape must be \(rows, columns\)",
        "from_image((nan, 2))": r"shape must be \(rows, columns\)",
        "from_image(('3', 2))": r"shape must be \(rows, columns\)",
        "from_image((None, 2))": r"shape must be \(rows, columns\)",
        "from_image('ab')": r"shape must be \(rows, columns\)",
        "from_image(np.zeros((3, 2)))": r"shape must be \(rows, columns\)",
        "from_mesh(np.zeros((3, 3)), [[0, 1]])": r"faces must be \(n_faces, 3 or more\) vertex numbers; got shape \(1, 2\)",
        "from_mesh(np.zeros((3, 3)), [0, 1, 2])": r"faces must be .* got shape \(3,\)",
        "from_mesh(np.zeros((3, 3)), [[0, 1, 2], [0, 1]])": "faces must be",
        "from_mesh(np.zeros((3, 3)), [[0, 1, 3]])": "3",
        "from_mesh(np.zeros((3, 3)), [[0, 1, -1]])": "from 0; got -1",
        "from_mesh(np.zeros((3, 3)), [[0, 1.5, 2]])": "integers.*got dtype float64",
        "from_mesh(np.zeros((3, 4)), [[0, 1, 2]])": r"(coords|vertices) must be .* got \(3, 4\)",
        "from_mesh(np.zeros(3), [[0, 1, 2]])": r"(coords|vertices) must be .* got \(3,\)",
        "from_mesh(5, [[0, 1, 2]])": "(coords|vertices) must be",
        "from_mesh([['a', 'b']] * 3, [[0, 1, 2]])": "(coords|vertices) must hold real numbers",
        "from_mesh(np.full((3, 2), 1j), [[0, 1, 2]])": "(coords|vertices) must hold real numbers",
        "from_mesh(np.full((3, 2), nan), [[0, 1, 2]])": "(coords|vertices) must be finite",
    }.items(),
)
def test_graphs_from_elsewhere(call, words, refused):
    refused(f"hg.Graph.{call}", words)


@pytest.mark.parametrize(
    ("bad", "words"),
    {
        "[0, 5]": "nodes?.*5",
        "[-1, 0]": "nodes?.*-1",
        "[0, 0]": "nodes?.*(repeated|once|unique|twice)",
        "[True, False]": "mask.*(3|2)",
        "[True, False, True, True]": "mask.*(3|4)",
        "np.zeros((3, 3), dtype=bool)": "nodes? must",
        "[0.5]": "nodes? must",
        "[nan]": "nodes? must",
        "['a']": "nodes? must",
        "[[0, 1]]": "nodes? must",
        "1": "nodes? must",
        "None": "nodes? must",
        "{0, 1}": "nodes? must",
    }.items(),
)
@pytest.mark.parametrize("graph", ["path", "named"])
def test_subgraphs(graph, bad, words, refused):
    refused(f"{graph}.subgraph({bad})", words)


@pytest.mark.parametrize("bad", ["-1", "nan", "inf", "5.0", "'a'", "None"])
def test_tolerance_of_the_spectrum(bad, refused):
    refused(f"large.spectrum(tolerance={bad})", "tolerance must be")


# ---- scales, polynomials, frames -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["1", "0.5", "0", "-2", "nan", "inf", "True", "'2'", "None", "[2, 3]", "2j"])
@pytest.mark.parametrize(
    "call",
    [
        "hg.count_scales(8.0, base=BAD)",
        "hg.partition([0.5], n_scales=3, base=BAD)",
        "hg.linear_plateau([0.5], base=BAD)",
        "hg.c3_plateau([0.5], base=BAD)",
        "hg.meyer_plateau([0.5], base=BAD)",
        "hg.chebyshev_frame(grid, base=BAD)",
        "hg.exact_frame(grid, base=BAD)",
    ],
)
def test_base_is_above_one(call, bad, refused):
    refused(call.replace("BAD", bad), "base must be a finite number above 1; got ")


@pytest.mark.parametrize("bad", ["0.6", "1", "0", "-0.1", "nan", "'a'", "0.1j"])
@pytest.mark.parametrize(
    "call",
    [
        "hg.partition([0.5], n_scales=3, plateau='smooth', c=BAD)",
        "hg.chebyshev_frame(grid, plateau='smooth', c=BAD)",
        "hg.exact_frame(grid, plateau='smooth', c=BAD)",
    ],
)
def test_width_of_the_smooth_plateau(call, bad, refused):
    refused(call.replace("BAD", bad), r"c must be in \(0, 1 - 1/base\] = \(0, 0.5\].*got ")


@pytest.mark.parametrize("bad", ["0", "-1", "nan", "inf", "'a'", "None"])
def test_width_of_a_plateau_for_figures(bad, refused):
    refused(f"hg.smooth_plateau([0.5], c={bad})", "c must be")


@pytest.mark.parametrize(
    "call",
    ["hg.partition([0.5], n_scales=3, c=0.3)", "hg.chebyshev_frame(grid, plateau='c3', c=0.3)", "hg.exact_frame(grid, c=0.3)"],
)
def test_width_belongs_to_the_smooth_plateau(call, refused):
    refused(call, "c belongs to plateau='smooth' only; got c=0.3 with plateau=")


@pytest.mark.parametrize("bad", ["-1", "nan", "inf", "'a'", "None", "1j", "[1, 2]"])
def test_lambda_max_is_a_number(bad, refused):
    refused(f"hg.count_scales({bad})", "lambda_max must be .*finite.* and at least 0; got ")


@pytest.mark.parametrize("bad", ["['a']", "'a'", "[1j]", "None"])
@pytest.mark.parametrize(
    "call",
    [
        "hg.partition(BAD, n_scales=3)",
        "hg.linear_plateau(BAD)",
        "hg.smooth_plateau(BAD)",
        "hg.c3_plateau(BAD)",
        "hg.meyer_plateau(BAD)",
        "hg.soft(BAD, 1.0)",
        "hg.james_stein(BAD, 1.0)",
        "hg.hard(BAD, 1.0)",
        "hg.power(BAD, 1.0, beta=3.0)",
        "hg.shrink(BAD, 1.0)",
    ],
)
def test_functions_of_numbers_take_numbers(call, bad, refused):
    refused(call.replace("BAD", bad), "real numbers; got ")


@pytest.mark.parametrize(
    "call",
    [
        "hg.partition([nan], n_scales=3)",
        "hg.partition([nan], n_scales=3, plateau='smooth')",
        "hg.linear_plateau([nan])",
        "hg.smooth_plateau([nan])",
        "hg.c3_plateau([nan])",
        "hg.meyer_plateau([nan])",
        "hg.soft([nan], 1.0)[0]",
        "hg.james_stein([nan], 1.0)[0]",
        "hg.hard([nan], 1.0)[0]",
        "hg.power([nan], 1.0, beta=3.0)[0]",
        "hg.shrink([nan], 1.0)[0]",
    ],
)
def test_nan_never_becomes_a_number(call, names):
    value, text = outcome(call, names)
    assert re.search("NaN|finite", text) if value is None else np.isnan(value).all(), text or f"NaN became {value}"


@pytest.mark.parametrize(
    ("call", "words"),
    {
        "hg.partition([0.5], n_scales=BAD)": "n_scales must be an integer of at least 1; got ",
        "hg.chebyshev_frame(grid, n_scales=BAD)": "n_scales must be an integer from 1 to 5.*got ",
        "hg.exact_frame(grid, n_scales=BAD)": "n_scales must be an integer from 1 to 5.*got ",
        "hg.chebyshev_frame(grid, degree=BAD)": "degree must be an integer of at least 1, or 'auto'; got ",
        "hg.datasets.grid(BAD, 5)": "rows must be an integer of at least 1; got ",
        "hg.datasets.grid(5, BAD)": "columns must be an integer of at least 1; got ",
        "hg.datasets.city(BAD)": "n_nodes must be an integer of at least 100; got ",
        "hg.datasets.roads(BAD)": "n_nodes must be an integer of at least 100; got ",
        "hg.datasets.random_geometric(BAD)": "n_nodes must be an integer of at least 1; got ",
    }.items(),
)
@pytest.mark.parametrize("bad", ["0", "-3", "2.5", "3.0", "True", "'3'", "nan", "[3]"])
def test_counts_are_integers(call, words, bad, refused):
    refused(call.replace("BAD", bad), words)


@pytest.mark.parametrize("bad", ["-1", "-2", "2.5", "True", "'3'", "nan", "None"])
@pytest.mark.parametrize("call", ["hg.chebyshev_coefficients(np.cos, BAD, upper=1.0)", "hg.jackson_damping(BAD)"])
def test_degrees_are_natural_numbers(call, bad, refused):
    refused(call.replace("BAD", bad), "degree must be an integer of at least 0; got ")


@pytest.mark.parametrize("bad", ["-1", "1.5", "True", "'1'", "nan", "None", "5000"])
@pytest.mark.parametrize(
    "call",
    [
        "hg.partition([0.5], n_scales=3, low_scales=BAD)",
        "hg.chebyshev_frame(grid, low_scales=BAD)",
        "hg.exact_frame(grid, low_scales=BAD)",
    ],
)
def test_low_scales(call, bad, refused):
    refused(call.replace("BAD", bad), "low_scales must be an integer .*got ")


@pytest.mark.parametrize(
    ("call", "words"),
    {
        "hg.chebyshev_frame(grid, n_scales=6)": "n_scales must be an integer from 1 to 5: .*lambda_max.*got 6",
        "hg.exact_frame(grid, n_scales=6)": "n_scales must be an integer from 1 to 5: .*lambda_max.*got 6",
        "hg.chebyshev_frame(grid, degree=10**12)": "degree must be",
        "hg.chebyshev_frame(grid, degree=np.array([10, 20]))": "degree must be",
        "hg.chebyshev_frame(grid, degree='auto', tightness=0)": "tightness must be between 0 and 1; got 0",
        "hg.chebyshev_frame(grid, degree='auto', tightness=1)": "tightness must be between 0 and 1; got 1",
        "hg.chebyshev_frame(grid, degree='auto', tightness=nan)": "tightness must be between 0 and 1; got nan",
        "hg.chebyshev_frame(grid, degree='auto', tightness='a')": "tightness must be between 0 and 1; got 'a'",
        "hg.chebyshev_frame(grid, degree='auto', tightness=1e-9)": r"no degree up to 2000 reaches tightness 1e-09.*'meyer'",
        "hg.exact_frame(hg.Graph.from_edges([(0, 1)], n=20_001))": "20001 nodes needs 3 GB; use chebyshev_frame",
        "hg.chebyshev_coefficients(np.cos, 5, upper=0)": "upper must be",
        "hg.chebyshev_coefficients(np.cos, 5, upper=-1)": "upper must be",
        "hg.chebyshev_coefficients(np.cos, 5, upper=nan)": "upper must be",
        "hg.chebyshev_coefficients(np.cos, 5, upper=inf)": "upper must be",
        "hg.chebyshev_coefficients(np.cos, 5, upper='a')": "upper must be",
        "hg.chebyshev_coefficients(5, 5, upper=1.0)": "function must be callable",
        "hg.chebyshev_coefficients(lambda x: 1.0, 5, upper=1.0)": "function must .*(points|shape)",
        "hg.chebyshev_coefficients(lambda x: x[:3], 5, upper=1.0)": "function must .*(points|shape)",
        "hg.chebyshev_coefficients(lambda x: x * nan, 5, upper=1.0)": "function must .*finite",
        "hg.chebyshev_coefficients(lambda x: x * 1j, 5, upper=1.0)": "function must .*real",
        "hg.as_linear_operator(frame) @ np.zeros(19)": "dimension mismatch",
    }.items(),
)
def test_frames(call, words, refused):
    refused(call, words)


def test_a_base_next_to_one_is_refused_at_once(names):
    """It would make a billion scales; the refusal comes before the first."""
    with steps_at_most(10_000), pytest.raises(ValueError, match=r"base must be at least 1\.01 .*too many scales.*got 1\.000000001"):
        eval("hg.chebyshev_frame(large, base=1 + 1e-9)", names)


# ---- risk ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    {
        "hg.signal_sure(y, y[:-1], divergence=1.0, sigma=1.0)": r"\(20,\).*\(19,\)|\(19,\).*\(20,\)",
        "hg.signal_sure(y, 5.0, divergence=1.0, sigma=1.0)": "noisy and denoised must have the same shape",
        "hg.signal_sure(y, y[:, None], divergence=1.0, sigma=1.0)": "noisy and denoised must have the same shape",
        "hg.signal_sure(5.0, 5.0, divergence=1.0, sigma=1.0)": "shape|one row per node",
        "hg.signal_sure(y * nan, y, divergence=1.0, sigma=1.0)": "entries that are NaN or infinite",
        "hg.signal_sure(y, y * nan, divergence=1.0, sigma=1.0)": "entries that are NaN or infinite",
        "hg.signal_sure(y.astype(str), y, divergence=1.0, sigma=1.0)": "real numbers",
        "hg.signal_sure(y * 1j, y, divergence=1.0, sigma=1.0)": "real numbers",
        "hg.signal_sure(y, y, divergence=nan, sigma=1.0)": "divergence must be",
        "hg.signal_sure(y, y, divergence='a', sigma=1.0)": "divergence must be",
        "hg.signal_sure(y, y, divergence=None, sigma=1.0)": "divergence must be",
        "hg.signal_sure(y, y, divergence=[1.0, 2.0], sigma=1.0)": "divergence must be",
        "hg.monte_carlo_divergence(None, y)": "estimator must be callable",
        "hg.monte_carlo_divergence(lambda v: v[:3], y)": r"estimator must return .*\(3,\)",
        "hg.monte_carlo_divergence(lambda v: 0.0, y)": r"estimator must return .*\(\)",
        "hg.monte_carlo_divergence(lambda v: None, y)": "estimator must return ",
        "hg.monte_carlo_divergence(lambda v: v * nan, y)": "estimator must return .*finite",
        "hg.monte_carlo_divergence(lambda v: hg.denoise(grid, v, sigma=1.0), y)": "estimator must return .*Denoised",
        "hg.monte_carlo_divergence(np.tanh, y[:, None])": r"noisy must be .*\(20, 1\)",
        "hg.monte_carlo_divergence(np.tanh, np.stack([y, y], axis=1))": r"noisy must be .*\(20, 2\)",
        "hg.monte_carlo_divergence(np.tanh, 5.0)": "noisy must be",
        "hg.monte_carlo_divergence(np.tanh, y * nan)": "entries that are NaN or infinite",
        "hg.monte_carlo_divergence(np.tanh, y.astype(str))": "real numbers",
        "hg.monte_carlo_divergence(np.tanh, y * 1j)": "real numbers",
        "hg.monte_carlo_divergence(np.tanh, y, step=0)": "step must be",
        "hg.monte_carlo_divergence(np.tanh, y, step=nan)": "step must be",
        "hg.monte_carlo_divergence(np.tanh, y, step='a')": "step must be",
        "hg.monte_carlo_divergence(np.tanh, y, step=1e-300)": "step .*too small|step must be",
        "hg.estimate_sigma(grid, np.zeros(20))": "estimated sigma is 0.*pass sigma=",
        "hg.estimate_sigma(grid, np.zeros((20, 0)))": "no (columns|signals?)|at least one",
        "hg.estimate_sigma(nothing, [])": "no nodes|empty",
        "hg.estimate_sigma(grid, y, frame=frame, weights=W * 0)": "no scale that carries noise|weights",
        "hg.estimate_sigma(grid, y, frame=frame, weights=np.where(np.arange(20) < 10, 0.0, W))": "weights must be",
    }.items(),
)
def test_risk(call, words, refused):
    refused(call, words)


# ---- denoise, Noisy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    {
        "hg.denoise(nothing, [], sigma=1.0)": "the graph has no nodes",
        "hg.denoise(grid, np.zeros((20, 0)), sigma=1.0)": "no (columns|signals?)|at least one",
        "hg.denoise(grid, [nan] * 20, sigma=1.0, missing='drop')": "the signal has no value at all",
        "hg.denoise(grid, [nan] * 20, sigma=1.0, missing='fill')": "the signal has no value at all",
        "hg.denoise(grid, [inf] + [0.0] * 19, sigma=1.0, missing='drop')": "1 entries that are NaN or infinite|1 .*infinite",
        "hg.denoise(grid, [nan] + [0.0] * 19, sigma=1.0, missing='fill', frame=frame, method='sgwt_sure')": "do not go with missing",
        "hg.denoise(grid, y, sigma=1.0, frame=frame)": "method='auto' builds its own frames.*say method='sgwt_sure'",
        "hg.denoise(grid, y, sigma=1.0, weights=W)": "method='auto' builds its own frames.*say method='sgwt_sure'",
        "hg.denoise(grid, np.zeros(20))": "estimated sigma is 0.*pass sigma=",
        "hg.denoise(grid, noisy(), sigma=2.0)": r"sigma travels with the noisy signal \(1\); leave sigma= out, got 2.0",
        "hg.denoise(grid, noisy(), sigma='a')": r"sigma travels with the noisy signal \(1\); leave sigma= out, got 'a'",
        "hg.denoise(grid, noisy(), sigma=np.ones(20))": "sigma travels with the noisy signal",
        "hg.denoise(turned, noisy())": "belong to another graph",
        "hg.denoise(path, noisy())": "belong to another graph",
        "hg.denoise(grid, noisy(values=y[:3]))": r"one row per node: expected \(20,\) or \(20, m\), got \(3,\)",
        "noisy(kind='simulation', exportable=True)": "a simulation is not exportable",
        "noisy(sigma=0)": "sigma .*positive number; got 0",
        "noisy(sigma=-1)": "sigma .*positive number; got -1",
        "noisy(sigma=nan)": "sigma .*positive number; got nan",
        "noisy(sigma='a')": "sigma .*positive number; got 'a'",
        "noisy(sigma=True)": "sigma .*positive number; got True",
        "noisy(sigma=None)": "sigma .*positive number; got None",
        "noisy(values=None)": "real numbers",
        "noisy(values=['a'] * 20)": "real numbers",
        "noisy(values=y * 1j)": "real numbers",
        "noisy(values=5.0)": r"\(n,\) or \(n, m\).*got \(\)",
        "noisy(values=np.zeros((20, 2, 2)))": r"\(n,\) or \(n, m\).*got \(20, 2, 2\)",
        "noisy(graph_hash=None)": "graph_hash must be",
        "noisy(graph_hash=grid)": "graph_hash must be",
        "noisy(exportable='yes')": "exportable must be",
    }.items(),
)
def test_denoise(call, words, refused):
    refused(call, words)


# ---- signals, metrics, data sets, maps, estimator ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    {
        "hg.bernoulli_signal(grid, p=0)": "p must be a probability strictly between 0 and 1; got 0",
        "hg.bernoulli_signal(grid, p=1)": "p must be a probability strictly between 0 and 1; got 1",
        "hg.bernoulli_signal(grid, p=nan)": "p must be a probability .* got nan",
        "hg.bernoulli_signal(grid, p='a')": "p must be a probability .* got 'a'",
        "hg.bernoulli_signal(grid, p=None)": "p must be a probability .* got None",
        "hg.bernoulli_signal(grid, p=[0.1, 0.2])": "p must be a probability .* got ",
        "hg.bernoulli_signal(grid, k=-1)": "k must be an integer of at least 0.*got -1",
        "hg.bernoulli_signal(grid, k=1.5)": "k must be an integer of at least 0.*got 1.5",
        "hg.bernoulli_signal(grid, k=True)": "k must be an integer of at least 0.*got True",
        "hg.bernoulli_signal(grid, k='a')": "k must be an integer of at least 0.*got 'a'",
        "hg.snr([1, 2], [1, 2, 3])": r"got \(2,\) and \(3,\)",
        "hg.snr([1, 2], [[1, 2]])": r"got \(2,\) and \(1, 2\)",
        "hg.snr(5, 5)": r"got \(\) and \(\)",
        "hg.snr([], [])": r"not empty; got \(0,\)",
        "hg.snr(np.ones((2, 2, 2)), np.ones((2, 2, 2)))": r"got \(2, 2, 2\)",
        "hg.snr([0, 0], [1, 1])": "truth is zero everywhere.*mse",
        "hg.snr([nan, 1], [1, 1])": "truth has 1 entries that are NaN",
        "hg.snr([1, 1], [1, inf])": "estimate has 1 entries that are NaN or infinite",
        "hg.snr(['a', 'b'], [1, 2])": "truth .*real numbers",
        "hg.snr([1, 2], ['1', '2'])": "estimate .*real numbers",
        "hg.snr([1, 2], [1j, 2])": "estimate .*real numbers",
        "hg.snr(None, None)": r"truth|got \(\)",
        "hg.snr({'a': 1.0}, {'b': 2.0})": "truth and estimate have different labels",
        "hg.snr(y, hg.denoise(grid, y, sigma=1.0))": "estimate .*Denoised|estimate .*numbers",
        "hg.datasets.city(99)": "n_nodes must be an integer of at least 100; got 99",
        "hg.datasets.roads(99)": "n_nodes must be an integer of at least 100; got 99",
        "hg.datasets.random_geometric(10, radius=-1)": "radius must be a finite distance of at least 0.*got -1",
        "hg.datasets.random_geometric(10, radius=nan)": "radius must be .* got nan",
        "hg.datasets.random_geometric(10, radius=inf)": "radius must be .* got inf",
        "hg.datasets.random_geometric(10, radius='a')": "radius must be .* got 'a'",
        "hg.datasets.random_geometric(10, radius=[1, 2])": "radius must be .* got ",
    }.items(),
)
def test_signals_metrics_and_data_sets(call, words, refused):
    refused(call, words)


@pytest.mark.parametrize("module", ["hg", "hg.datasets"])
def test_unknown_attributes(module, names):
    with pytest.raises(AttributeError, match="has no attribute 'nowhere'"):
        eval(f"{module}.nowhere", names)


@pytest.mark.parametrize(
    ("call", "words"),
    {
        "hg.plot_graph_signal(path, [1, 2, 3])": "no coords, so build it with coords=",
        "hg.plot_graph_signal(grid, np.stack([y, y], axis=1))": r"a map shows one signal: expected \(20,\), got \(20, 2\)",
        "hg.plot_graph_signal(grid, y, vmin=5, vmax=1)": "vmin must be below vmax; got vmin=5 and vmax=1",
        "hg.plot_graph_signal(grid, y, vmin=nan)": "vmin must be below vmax; got vmin=nan",
        "hg.plot_graph_signal(grid, y, vmax=nan)": "vmin must be below vmax.*vmax=nan",
        "hg.plot_graph_signal(grid, y, vmax=inf)": "vmax.*(finite|inf)",
        "hg.plot_graph_signal(grid, y, vmax='a')": "vmax.*(number|'a')",
        "hg.plot_graph_signal(grid, y, vmax=-5)": "vmin must be below vmax; got vmin=.* and vmax=-5",
        "hg.plot_graph_signal(grid, y, linewidth='a')": "linewidth must be",
        "hg.plot_graph_signal(grid, y, linewidth=-1)": "linewidth must be",
        "hg.plot_graph_signal(grid, y, linewidth=nan)": "linewidth must be",
        "hg.plot_graph_signal(grid, y, cmap='unheard of')": "'unheard of'",
        "hg.plot_graph_signal(grid, y, ax=5)": "ax must be",
        "hg.plot_maps(path, {'a': [1, 2, 3]})": "no coords, so build it with coords=",
        "hg.plot_maps(grid, {})": "signals must be a dict .*got an empty one",
        "hg.plot_maps(grid, y)": "signals must be a dict ",
        "hg.plot_maps(grid, [y])": "signals must be a dict ",
        "hg.plot_maps(grid, {'a': y, 'b': y[:3]})": r"expected \(20,\).*got \(3,\)",
    }.items(),
)
def test_maps(call, words, refused):
    refused(call, words)


@pytest.mark.parametrize(
    ("call", "words"),
    {
        "fit(np.ones((2, 5)))": r"one column per node: expected \(n_signals, 20\), got \(2, 5\); rows are signals here",
        "fit(np.ones((20, 2)))": r"expected \(n_signals, 20\), got \(20, 2\); rows are signals here",
        "fit(y)": "Expected 2D array",
        "fit(np.full((2, 20), nan))": "contains NaN",
        "fit(np.full((2, 20), inf))": "contains infinity",
        "fit([['a'] * 20])": "could not convert string|numeric|real numbers",
        "fit(np.full((2, 20), 1j))": "[Cc]omplex",
        "fit(np.ones((0, 20)))": "0 sample",
        "fit().transform(np.ones((2, 5)))": "5 features.*expecting 20",
        "fit().transform(np.full((2, 20), nan))": "contains NaN",
    }.items(),
)
def test_estimator(call, words, refused):
    refused(call, words)


# ---- odd but sensible input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("odd", "plain"),
    {
        "grid.align(range(20))": "np.arange(20.0)",
        "grid.align([True, False] * 10)": "np.tile([1.0, 0.0], 10)",
        "grid.align(y.astype(np.float16))": "y.astype(np.float16).astype(float)",
        "grid.align(pd.Series(y[::-1], index=range(19, -1, -1)))": "y",
        "named.align({'c': 3, 'a': 1, 'b': 2})": "np.array([1.0, 2.0, 3.0])",
        "named.align(pd.Series([1, 2, 3], index=['a', 'b', 'c'], dtype='Int64'))": "np.array([1.0, 2.0, 3.0])",
        "hg.Graph.from_edges(np.array([(0, 1), (1, 2)], dtype=np.uint64)).degrees": "path.degrees",
        "hg.Graph.from_edges(np.array([(0, 1), (1, 2)], dtype=np.uint8)).degrees": "path.degrees",
        "hg.Graph.from_edges(np.array([(0, 1), (1, 2)], dtype='>i4')).degrees": "path.degrees",
        "hg.Graph.from_edges([(0, 1), (1, 2), (2, 1), (1, 1)]).degrees": "path.degrees",
        "hg.Graph.from_edges([(0, 1), (1, 2)], weights=[True, True]).degrees": "path.degrees",
        "hg.Graph.from_edges([(0, 1), (1, 2)], weights=pd.Series([1, 1], index=[7, 8])).degrees": "path.degrees",
        "hg.Graph.from_scipy([[0, 1, 0], [1, 5, 1], [0, 1, 0]]).degrees": "path.degrees",
        "hg.Graph.from_networkx(nx.path_graph(3), coords=None).degrees": "path.degrees",
        "hg.Graph.from_networkx(nx.DiGraph([(0, 1), (1, 0), (1, 2)])).degrees": "path.degrees",
        "path.subgraph([]).n": "0",
        "hg.count_scales(np.float32(8))": "5",
        "hg.chebyshev_frame(grid, degree=np.int32(20)).coefficients": "frame.coefficients",
        "hg.analyze(frame, range(20))": "hg.analyze(frame, np.arange(20.0))",
        "hg.analyze(frame, y[::-1])": "hg.analyze(frame, y[::-1].copy())",
        "hg.analyze(frame, y.astype('>f8'))": "F",
        "hg.analyze(frame, np.broadcast_to(2.0, 20))": "hg.analyze(frame, np.full(20, 2.0))",
        "hg.synthesize(frame, F.round().astype(int))": "hg.synthesize(frame, F.round())",
        "hg.synthesize(frame, F.tolist())": "hg.synthesize(frame, F)",
        "hg.soft([5, 6], 2)[0]": "np.array([3.0, 4.0])",
        "hg.soft(5.0, [1.0, 2.0])[0]": "np.array([4.0, 3.0])",
        "hg.james_stein(2.0, [1.0, 4.0])[0]": "np.array([1.5, 0.0])",
        "hg.hard(2.0, [1.0, 4.0])[0]": "np.array([2.0, 0.0])",
        "hg.soft([[1.0, 5.0]], [[2.0], [3.0]])[0]": "np.array([[0.0, 3.0], [0.0, 2.0]])",
        "hg.shrink([], 1.0)[0]": "np.zeros(0)",
        "hg.monte_carlo_weights(frame, n_probes=4, sigma=2)": "4 * W",
        "hg.monte_carlo_weights(frame, n_probes=4, sigma=[2] * 20)": "4 * W",
        "hg.exact_weights(frame, sigma=2)": "4 * hg.exact_weights(frame)",
        "hg.exact_weights(exact, sigma=2.0)": "4 * hg.exact_weights(exact)",
        "hg.smooth_weights(grid, W.tolist())": "hg.smooth_weights(grid, W)",
        "hg.sure(F.round().astype(int), 1.5, weights=W, sigma=1)": "hg.sure(F.round(), 1.5, weights=W, sigma=1.0)",
        "hg.sure(F.tolist(), 1.5, weights=W.tolist(), sigma=1)": "hg.sure(F, 1.5, weights=W, sigma=1.0)",
        "hg.sure(F, [2] * 5, weights=W, sigma=1)": "hg.sure(F, 2.0, weights=W, sigma=1.0)",
        "hg.sure(F, 2, weights=W, sigma=1, scaled=W.tolist())": "hg.sure(F, 2, weights=W, sigma=1, scaled=W)",
        "hg.sure_variance(frame, F.round().astype(int), 1.5, sigma=1, n_probes=4)": (
            "hg.sure_variance(frame, F.round(), 1.5, sigma=1, n_probes=4)"
        ),
        "hg.sure_variance(frame, F, 1.5, sigma=1, n_probes=4, threshold_scale=W.tolist())": (
            "hg.sure_variance(frame, F, 1.5, sigma=1, n_probes=4, threshold_scale=W)"
        ),
        "hg.sure_thresholds(F.round().astype(int), W, sigma=2)": "hg.sure_thresholds(F.round(), W, sigma=2.0)",
        "hg.sure_curve([5, 3], [1, 1], sigma=1)[1]": "hg.sure_curve([5.0, 3.0], [1.0, 1.0], sigma=1.0)[1]",
        "hg.sure_curve(F[0], W[0], sigma=1, scale=[2.0] * 20)[1]": "hg.sure_curve(F[0], W[0], sigma=1, scale=np.full(20, 2.0))[1]",
        "hg.oracle_thresholds(F.round().astype(int), truth)": "hg.oracle_thresholds(F.round(), truth)",
        "hg.oracle_thresholds(F, truth, scaled=W.tolist())": "hg.oracle_thresholds(F, truth, scaled=W)",
        "hg.signal_sure(np.arange(20, dtype=np.uint8), np.full(20, 3, dtype=np.uint8), divergence=1, sigma=1)": (
            "hg.signal_sure(np.arange(20.0), np.full(20, 3.0), divergence=1.0, sigma=1.0)"
        ),
        "hg.signal_sure(np.stack([y, y], axis=1), np.stack([y, y], axis=1), divergence=[1.0, 2.0], sigma=1.0)": "np.array([-18.0, -16.0])",
        "hg.monte_carlo_divergence(lambda v: list(2 * v), y)[0]": "40.0",
        "hg.denoise(grid, range(20), sigma=1).signal": "hg.denoise(grid, np.arange(20.0), sigma=1.0).signal",
        "hg.denoise(grid, y.tolist(), sigma=np.float32(1)).signal": "hg.denoise(grid, y, sigma=1.0).signal",
        "hg.denoise(grid, y, sigma=np.array(1)).signal": "hg.denoise(grid, y, sigma=1.0).signal",
        "hg.denoise(grid, y, sigma=[1] * 20).signal": "hg.denoise(grid, y, sigma=np.ones(20)).signal",
        "hg.denoise(grid, y, sigma={i: 1 for i in range(20)}).signal": "hg.denoise(grid, y, sigma=np.ones(20)).signal",
        "hg.denoise(grid, noisy()).signal": "hg.denoise(grid, y, sigma=1.0).signal",
        "hg.denoise(grid, noisy(), sigma=1.0).signal": "hg.denoise(grid, y, sigma=1.0).signal",
        "hg.snr([1, 2], [1, 3])": "hg.snr([1.0, 2.0], [1.0, 3.0])",
        "fit().transform(np.arange(40).reshape(2, 20))": "fit().transform(np.arange(40.0).reshape(2, 20))",
    }.items(),
)
def test_odd_but_sensible(odd, plain, names):
    np.testing.assert_allclose(eval(odd, names), eval(plain, names), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        "hg.analyze(frame, fixed(y))",
        "hg.analyze(exact, fixed(y))",
        "hg.synthesize(frame, fixed(F))",
        "hg.as_linear_operator(frame) @ fixed(y)",
        "hg.as_linear_operator(frame).T @ fixed(F.ravel())",
        "hg.monte_carlo_weights(frame, n_probes=4, sigma=fixed(np.arange(1.0, 21.0)))",
        "hg.estimate_sigma(grid, fixed(y))",
        "hg.sure(fixed(F), 1.0, weights=fixed(W), sigma=1.0)",
        "hg.sure_thresholds(fixed(F), fixed(W), sigma=1.0)",
        "hg.sure_curve(fixed(F[0]), fixed(W[0]), sigma=1.0)[1]",
        "hg.oracle_thresholds(fixed(F), fixed(truth))",
        "hg.denoise(grid, fixed(y), sigma=1.0).signal",
        "hg.denoise(grid, fixed(y), sigma=1.0, method='sgwt_exact').signal",
        "hg.denoise(grid, fixed(y), sigma=1.0, frame=frame, weights=fixed(W), method='sgwt_sure').signal",
        "fit().transform(fixed(np.stack([y, y + 1])))",
    ],
)
def test_read_only_arrays(call, names):
    def fixed(values):
        values = values.copy()
        values.flags.writeable = False
        return values

    value = eval(call, {**names, "fixed": fixed})
    np.testing.assert_allclose(value, eval(call, {**names, "fixed": np.copy}), rtol=1e-12)


@pytest.mark.filterwarnings("default:sigma was")
@pytest.mark.parametrize("graph", ["nothing", "point", "dust"])
@pytest.mark.parametrize(
    "call",
    [
        "[GRAPH.spectrum(kind).lambda_max for kind in ('combinatorial', 'normalized', 'random_walk')] == [0.0] * 3",
        "GRAPH.laplacian('random_walk').shape == (GRAPH.n, GRAPH.n)",
        "len(GRAPH.hash) == 64 and len(GRAPH.components) == GRAPH.n",
        "GRAPH.subgraph(np.ones(GRAPH.n, dtype=bool)).hash == GRAPH.hash",
        "hg.chebyshev_frame(GRAPH).n_scales == hg.exact_frame(GRAPH).n_scales == 1",
        "hg.chebyshev_frame(GRAPH, degree='auto').tightness_defect < 1e-9",
        "np.allclose(hg.analyze(hg.chebyshev_frame(GRAPH), ones), ones)",
        "np.allclose(hg.analyze(hg.chebyshev_frame(GRAPH, laplacian='random_walk'), ones), ones)",
        "np.allclose(hg.analyze(hg.exact_frame(GRAPH), ones), ones)",
        "np.allclose(hg.synthesize(hg.chebyshev_frame(GRAPH), ones[None]), ones)",
        "np.allclose(hg.as_linear_operator(hg.chebyshev_frame(GRAPH)) @ ones, ones)",
        "np.allclose(hg.as_linear_operator(hg.chebyshev_frame(GRAPH)).T @ ones, ones)",
        "np.allclose(hg.monte_carlo_weights(hg.chebyshev_frame(GRAPH)), 1) and np.allclose(hg.exact_weights(hg.exact_frame(GRAPH)), 1)",
        "np.allclose(hg.smooth_weights(GRAPH, ones[None]), 1)",
        "np.isclose(hg.sure(ones[None], 0.0, weights=ones[None], sigma=2.0), 4 * GRAPH.n)",
        "hg.sure_thresholds(ones[None], ones[None], sigma=1.0).shape == (1,)",
        "hg.oracle_thresholds(ones[None], ones[None]).tolist() == [0.0]",
        "GRAPH.n < 2 or 0.1 < hg.estimate_sigma(GRAPH, np.cos(np.arange(GRAPH.n))) < 10",
        "GRAPH.n == 0 or all(np.isfinite(hg.denoise(GRAPH, ones, sigma=1.0, method=m).signal).all() for m in methods)",
        "GRAPH.n < 2 or np.isfinite(hg.denoise(GRAPH, np.cos(np.arange(GRAPH.n))).risk)",
        "hg.bernoulli_signal(GRAPH).shape == (GRAPH.n,)",
    ],
)
def test_graphs_without_edges(call, graph, names):
    extra = {"ones": np.ones(names[graph].n), "methods": ["sgwt_deep", "sgwt_sure", "sgwt_scaled", "sgwt_exact"]}
    assert eval(call.replace("GRAPH", graph), {**names, **extra})


@pytest.mark.parametrize("graph", ["point", "dust"])
def test_equal_values_tell_nothing_of_the_noise(graph, names):
    with pytest.raises(ValueError, match=r"estimated sigma is 0.*pass sigma="):
        hg.estimate_sigma(names[graph], np.ones(names[graph].n))


# ---- very large, very small ----------------------------------------------------------------------------------------

EXTREME = "in size.*rescale|too large|so large|t must be at most|infinite"


@pytest.mark.parametrize("size", ["1e60", "1e-60"])
@pytest.mark.parametrize(
    "call",
    [
        "hg.analyze(frame, y * SIZE)",
        "hg.synthesize(frame, F * SIZE)",
        "hg.analyze(exact, y * SIZE)",
        "hg.soft(y * SIZE, 2 * SIZE)[0]",
        "hg.james_stein(y * SIZE, 2 * SIZE)[0]",
        "hg.estimate_sigma(grid, y * SIZE)",
        "hg.sure_thresholds(F * SIZE, W, sigma=SIZE)",
        "hg.sure_thresholds(F * SIZE, W, sigma=SIZE, candidates='percentiles')",
        "hg.oracle_thresholds(F * SIZE, truth * SIZE)",
        "hg.denoise(grid, y * SIZE, sigma=SIZE).signal",
        "hg.denoise(grid, y * SIZE, sigma=SIZE).risk_se",
        "hg.denoise(grid, y * SIZE, sigma=SIZE, method='sgwt_exact').signal",
        "hg.denoise(grid, y * SIZE, sigma=np.full(20, SIZE)).signal",
        "fit(sigma=SIZE).transform(np.stack([y, y + 1]) * SIZE)",
    ],
)
def test_the_unit_of_the_signal_does_not_matter(call, size, names):
    unit = float(size) ** (2 if call.endswith("risk_se") else 1)
    value = np.asarray(eval(call.replace("SIZE", size), names))
    np.testing.assert_allclose(value / unit, eval(call.replace("SIZE", "1.0"), names), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", ["sgwt_deep", "sgwt_sure", "sgwt_scaled", "sgwt_exact"])
@pytest.mark.parametrize("per_node", [False, True])
@pytest.mark.parametrize("unit", [2.0**229, 2.0**-232])  # powers of 2: scaling is exact
def test_results_have_no_unit_up_to_the_limit(unit, per_node, method, names):
    grid, y, shape = names["grid"], names["y"], np.ones(20) if per_node else 1.0
    scaled, plain = (hg.denoise(grid, y * u, sigma=u * shape, method=method) for u in (unit, 1.0))
    np.testing.assert_allclose(scaled.signal / unit, plain.signal, rtol=1e-12)
    for name in ("risk", "risk_se", "probe_se"):
        np.testing.assert_allclose(getattr(scaled, name) / unit**2, getattr(plain, name), rtol=1e-9, err_msg=name)


@pytest.mark.parametrize(
    "call",
    [
        "hg.analyze(frame, y * 1e200)",
        "hg.analyze(exact, y * 1e200)",
        "hg.analyze(frame, np.where(np.arange(20) % 2, 1.7e308, -1.7e308))",
        "hg.analyze(frame, np.where(np.arange(20) % 2, 3e38, -3e38).astype(np.float32))",
        "hg.synthesize(frame, F * 1e200)",
        "grid.align(np.full(20, np.longdouble('1e4000')))",
        "hg.estimate_sigma(grid, y * 1e200)",
        "hg.monte_carlo_weights(frame, sigma=1e200)",
        "hg.exact_weights(frame, sigma=np.full(20, 1e200))",
        "hg.smooth_weights(grid, W * 1e200)",
        "hg.sure(F * 1e200, 1e200, weights=W, sigma=1.0)",
        "hg.sure(F, 1.0, weights=W, sigma=1e200)",
        "hg.sure(F.astype(np.float32), 1e200, weights=W, sigma=1.0, scaled=True)",
        "hg.sure_variance(frame, F, 1.0, sigma=1e200, n_probes=4)",
        "hg.sure_thresholds(F * 1e200, W, sigma=1.0)",
        "hg.sure_thresholds(F, W, sigma=1e-200)",
        "hg.sure_curve(F[0] * 1e200, W[0], sigma=1.0)[1]",
        "hg.oracle_thresholds(F * 1e200, truth)",
        "hg.signal_sure(y * 1e200, y, divergence=1.0, sigma=1.0)",
        "hg.monte_carlo_divergence(np.tanh, y * 1e200)",
        "hg.denoise(grid, y * 1e200, sigma=1.0)",
        "hg.denoise(grid, y, sigma=1e200)",
        "hg.denoise(grid, y, sigma=1e-200)",
        "hg.denoise(grid, y, sigma=np.full(20, 1e200))",
        "hg.denoise(grid, (y * 1e37).astype(np.float32), sigma=1.0)",
        "hg.denoise(grid, y.astype(np.float32), sigma=1e30)",
        "fit(np.full((2, 20), 1e200), sigma=None)",
        "hg.bernoulli_signal(grid, p=0.5, k=2000)",
        "hg.snr([1e200, 1e200], [1.0, 1.0])",
        "hg.count_scales(1.7e308)",
        "hg.Graph.from_edges([(0, 1)], weights=[1e200])",
        "hg.Graph.from_edges([(0, 1)], weights=[1e-200])",
        "hg.Graph.from_edges([(0, 1)], weights=[5e-324])",
        "hg.Graph.from_edges([(0, 1), (0, 1)], weights=[9e69, 9e69], duplicates='sum')",
        "hg.Graph.from_scipy(1e200 * (1 - np.eye(3)))",
    ],
)
def test_extreme_numbers_are_refused(call, refused):
    refused(call, EXTREME)


@pytest.mark.parametrize(
    "call",
    [
        "hg.sure(F.astype(np.float32), 1e200, weights=W, sigma=1.0)",
        "hg.linear_plateau([1.7e308])",
        "hg.soft(y.astype(np.float32), 1e200)",
    ]
    + [f"hg.partition([1.7e308, inf], n_scales=3, plateau='{plateau}')" for plateau in ("linear", "smooth", "c3", "meyer")],
)
def test_extreme_numbers_that_have_an_answer(call, names):
    assert np.isfinite(eval(call, names)).all()


@pytest.mark.parametrize("unit", [1e60, 1e-60])
def test_snr_has_no_unit(unit):
    assert hg.snr([unit] * 3, [0.9 * unit] * 3) == pytest.approx(20.0)


@pytest.mark.parametrize("step", ["", ", step=1e-9"])
def test_a_step_lost_in_rounding_is_refused(step, refused):
    refused(f"hg.monte_carlo_divergence(lambda v: v, y * 1e20{step})", "step must be a number above .*rounding of the signal; got ")


@pytest.mark.parametrize("weight", ["1e70", "1e-70"])
@pytest.mark.parametrize("nodes", [3, 500])
def test_the_unit_of_the_weights_does_not_matter(nodes, weight, names):
    edges = f"[(i, i + 1) for i in range({nodes - 1})]"
    graph = eval(f"hg.Graph.from_edges({edges}, weights=np.full({nodes - 1}, {weight}))", names)
    plain = eval(f"hg.Graph.from_edges({edges}, weights=np.full({nodes - 1}, 2.0))", names)
    unit = float(weight) / 2
    assert graph.lambda_max / unit == pytest.approx(plain.lambda_max, rel=2e-3)
    assert graph.lambda_upper / unit >= plain.lambda_max * (1 - 1e-12)
    signal = np.arange(nodes) % 7
    for method, rtol in (("sgwt_deep", 1e-6), ("auto", 1e-3)):  # polynomials of bands with kinks follow the bound, known to 1e-3
        one, other = (hg.denoise(each, signal, sigma=1.0, method=method).signal for each in (graph, plain))
        np.testing.assert_allclose(one, other, rtol=rtol)


def test_weights_of_very_different_size():
    graph = hg.Graph.from_edges([(i, i + 1) for i in range(500)], weights=np.logspace(-70, 70, 500))
    assert 1e70 < graph.lambda_max <= graph.lambda_upper < 4e70
    assert np.isfinite(hg.analyze(hg.chebyshev_frame(graph), np.ones(501))).all()


# ---- silent traps --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["hg.as_linear_operator(frame) @ (1j * y)", "hg.as_linear_operator(frame).T @ (1j * F.ravel())"])
def test_an_operator_does_not_drop_imaginary_parts(call, names):
    value, text = outcome(call, names)
    expected = 1j * eval(call.replace("1j * ", ""), names)
    assert "complex" in text if value is None else np.allclose(value, expected), text


def test_snr_of_series_goes_by_label(names):
    value, text = outcome("hg.snr(pd.Series([1.0, 2.0], index=['a', 'b']), pd.Series([2.0, 1.0], index=['b', 'a']))", names)
    assert re.search("label|index", text) if value is None else value == inf, text or "values of different nodes were compared"


def test_a_bad_call_leaves_no_figure_open(names):
    plt = pytest.importorskip("matplotlib.pyplot")
    before = plt.get_fignums()
    for bad in ["transform='log'", "vmax=inf", "linewidth='a'", "cmap='unheard of'", "vmin=5, vmax=1"]:
        with pytest.raises((TypeError, ValueError)):
            eval(f"hg.plot_graph_signal(grid, y, {bad})", names)
    left = [number for number in plt.get_fignums() if number not in before]
    for number in left:
        plt.close(number)
    assert not left
