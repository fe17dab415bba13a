"""The baselines are what they claim: exact minimisers (by their optimality conditions), true depth-first orders, unbiased risks.

Statistical tests are two-sided z-tests with a false-alarm rate of 1e-6 at fixed seeds, each with a negative control.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from scipy import stats
from scipy.optimize import lsq_linear
from scipy.sparse import csgraph

import hushgraph as hg
from hushgraph.core.threads import use_threads
from hushgraph.estimators.baselines.chain_fused_lasso import chain_scores
from hushgraph.estimators.baselines.total_variation import Arcs, minimise

from ..support.strategies import graphs, signal_on

FALSE_ALARM = 1e-6
PENALTIES = [20.0, 5.0, 1.0, 0.2]


# ---- the fused lasso ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["fused_lasso_glmgen", "fused_lasso_proxtv"])
def test_the_fused_lasso_equals_independent_programs(golden, program):
    y, *expected = golden[program].T
    np.testing.assert_allclose(hg.fused_lasso_path(y, PENALTIES), expected, rtol=0, atol=1e-10)
    for penalty, x in zip(PENALTIES, expected, strict=True):
        np.testing.assert_allclose(hg.fused_lasso(y, penalty), x, rtol=0, atol=1e-10)
        np.testing.assert_allclose(hg.graph_tv(hg.datasets.path(len(y)), y, penalty=penalty).signal, x, rtol=0, atol=1e-10)


def assert_optimal(x, y, penalty, w, e, tolerance=1e-11):
    """u_i = sum_{j <= i} w_j (x_j - y_j) stays within +-penalty e_i, reaches it where x jumps, in the jump's sign, and ends at 0."""
    u = np.cumsum(w * (x - y))
    scale = tolerance * max(np.sum(w * np.abs(x - y)), np.max(w) * np.max(np.abs(y)), 1e-300) * len(y)
    limit, jump = penalty * e, np.diff(x)
    assert abs(u[-1]) <= scale
    assert np.all(np.abs(u[:-1]) <= limit + scale)
    jumps = np.abs(jump) > 1e-12 * np.max(np.abs(y), initial=1e-300)
    np.testing.assert_allclose(u[:-1][jumps], (limit * np.sign(jump))[jumps], rtol=0, atol=scale)


@st.composite
def chains(draw):
    """Short chains, often with ties and zero edges, weights over six orders of magnitude."""
    n = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y = {
        "normal": rng.normal(size=n),
        "ties": rng.integers(-2, 3, n).astype(float),
        "constant": np.full(n, 3.5),
        "growing": 2.0 ** np.arange(n),
        "outliers": rng.standard_cauchy(n) ** 3,
        "far from zero": 1e9 + rng.normal(size=n),
    }[draw(st.sampled_from(["normal", "ties", "constant", "growing", "outliers", "far from zero"]))]
    w = 10.0 ** rng.uniform(-3, 3, n) if draw(st.booleans()) else None
    e = 10.0 ** rng.uniform(-3, 3, n - 1) * rng.integers(0, 3, n - 1) if draw(st.booleans()) else None
    penalty = draw(st.one_of(st.just(0.0), st.floats(-3, 3).map(lambda k: 10.0**k), st.integers(1, 5).map(float)))
    return y, penalty, w, e


@given(chains())
@example((np.array([1.0, 1.0]), 0.0, None, None))
@example((np.array([2.0, 1.0]), 0.5, None, None))
@example((np.array([0.0, 1.0, 0.0]), 1.0, None, np.zeros(2)))
def test_the_fused_lasso_is_optimal(chain):
    y, penalty, w, e = chain
    x = hg.fused_lasso(y, penalty, node_weights=w, edge_weights=e)
    assert x.dtype == np.float64
    assert_optimal(x, y, penalty, np.ones(len(y)) if w is None else w, np.ones(len(y) - 1) if e is None else e)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12), st.integers(0, 6))
def test_whole_numbers_satisfy_the_conditions_in_exact_arithmetic(values, penalty):
    """The floats, taken as the simple fractions they stand for, satisfy the optimality conditions without any rounding."""
    x = [Fraction(value).limit_denominator(12) for value in hg.fused_lasso(values, penalty)]
    u, total = [], Fraction(0)
    for value, y in zip(x, values, strict=True):
        total += value - y
        u.append(total)
    assert u[-1] == 0
    for i in range(len(x) - 1):
        jump = x[i + 1] - x[i]
        assert abs(u[i]) <= penalty
        assert jump == 0 or u[i] == (penalty if jump > 0 else -penalty)


def test_the_conditions_catch_a_wrong_solution():
    y = np.random.default_rng(0).normal(size=30)
    x = hg.fused_lasso(y, 0.5)
    with pytest.raises(AssertionError):
        assert_optimal(hg.fused_lasso(y, 0.5001), y, 0.5, np.ones(30), np.ones(29))
    with pytest.raises(AssertionError):
        assert_optimal(x + 1e-7, y, 0.5, np.ones(30), np.ones(29))


def test_short_and_extreme_chains():
    assert hg.fused_lasso([], 1.0).shape == (0,)
    assert hg.fused_lasso_path([], [1.0, 2.0]).shape == (2, 0)
    np.testing.assert_array_equal(hg.fused_lasso([7.0], 3.0), [7.0])
    np.testing.assert_array_equal(hg.fused_lasso([1, 5], 1), [2.0, 4.0])
    np.testing.assert_array_equal(hg.fused_lasso([1.0, 5.0, 9.0], 0.0), [1.0, 5.0, 9.0])
    np.testing.assert_array_equal(hg.fused_lasso([1.0, 5.0], np.inf, node_weights=[3.0, 1.0]), [2.0, 2.0])
    np.testing.assert_array_equal(hg.fused_lasso([1.0, 5.0, 9.0], np.inf, edge_weights=[0.0, 1.0]), [1.0, 7.0, 7.0])
    np.testing.assert_array_equal(hg.fused_lasso([1.0, 5.0], 1e300, edge_weights=[1e70]), [3.0, 3.0])
    np.testing.assert_allclose(hg.fused_lasso([1e70, -1e70], 1e69), [9e69, -9e69], rtol=1e-14)


def test_one_huge_value_costs_the_others_no_digits():
    y = np.random.default_rng(1).normal(size=200)
    moderate, huge = y.copy(), y.copy()
    moderate[100], huge[100] = 1e3, 1e20
    others = np.arange(200) != 100
    np.testing.assert_allclose(hg.fused_lasso(huge, 0.7)[others], hg.fused_lasso(moderate, 0.7)[others], rtol=0, atol=1e-12)


def test_a_million_points_satisfy_the_conditions():
    rng = np.random.default_rng(2)
    y = np.repeat(rng.normal(0, 3, 1000), 1000) + rng.normal(size=10**6)
    for penalty in (0.3, 10.0, 1e4):
        assert_optimal(hg.fused_lasso(y, penalty), y, penalty, np.ones(10**6), np.ones(10**6 - 1), tolerance=1e-16)


def test_scores_are_those_of_the_solutions_whatever_the_threads():
    rng = np.random.default_rng(3)
    y, truth, penalties = rng.normal(size=5000), rng.normal(size=5000), np.geomspace(0.1, 100, 12)
    orders = np.stack([rng.permutation(5000) for _ in range(3)])
    scores = chain_scores(y, orders, penalties, truth=truth)
    with use_threads(1):
        np.testing.assert_array_equal(chain_scores(y, orders, penalties, truth=truth), scores)
    mean, pieces = np.zeros((12, 5000)), np.zeros(12)
    for order in orders:
        solutions = hg.fused_lasso_path(y[order], penalties)
        mean[:, order] += solutions / 3
        pieces += (1 + (np.diff(solutions) != 0).sum(axis=1)) / 3
    expected = [((mean - y) ** 2).sum(axis=1), pieces, ((mean - truth) ** 2).sum(axis=1)]
    np.testing.assert_allclose(scores.T, expected, rtol=1e-12)


# ---- depth-first orders ------------------------------------------------------------------------------------------


def assert_depth_first(graph, order):
    """Each node continues from the deepest open node, and none is left while it has neighbours that were not met."""
    neighbours = [set(row.tolist()) for row in np.split(graph.adjacency.indices, graph.adjacency.indptr[1:-1])]
    met, stack = set(), []
    for node in order.tolist():
        while stack and node not in neighbours[stack[-1]]:
            assert neighbours[stack.pop()] <= met
        assert node not in met
        met.add(node)
        stack.append(node)
    assert len(met) == graph.n
    assert all(neighbours[node] <= met for node in stack)


@given(graphs(), st.one_of(st.none(), st.integers(0, 2**64 - 1)))
def test_orders_are_depth_first(graph, seed):
    order = hg.depth_first_order(graph, seed=seed)
    assert_depth_first(graph, order)
    assert_depth_first(graph, hg.depth_first_order(graph, seed=seed, start=graph.n - 1))
    np.testing.assert_array_equal(order, hg.depth_first_order(graph, seed=seed))


@given(graphs())
def test_components_come_by_their_smallest_node_each_as_in_scipy(graph):
    order, labels = hg.depth_first_order(graph), graph.components
    firsts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    assert np.all(np.diff(order[firsts]) > 0)
    for part in np.split(order, firsts[1:]):
        np.testing.assert_array_equal(part, csgraph.depth_first_order(graph.adjacency, part[0], return_predecessors=False))


def test_random_orders_differ_in_root_and_in_turns():
    graph = hg.datasets.grid(12, 12)
    orders = [hg.depth_first_order(graph, seed=seed) for seed in range(20)]
    assert len({tuple(order) for order in orders}) == 20
    assert len({int(order[0]) for order in orders}) > 10
    assert len({int(hg.depth_first_order(graph, seed=seed, start=70)[1]) for seed in range(40)}) == 4
    assert all(hg.depth_first_order(graph, seed=seed, start=5)[0] == 5 for seed in range(3))


def test_many_components_cost_no_more_than_one():
    pairs = np.arange(400_000).reshape(-1, 2)
    np.testing.assert_array_equal(hg.depth_first_order(hg.Graph.from_edges(pairs)), np.arange(400_000))


def test_no_nodes_have_an_empty_order():
    graph = hg.Graph.from_edges(np.empty((0, 2), int), n=0)
    assert hg.depth_first_order(graph).shape == (0,)


# ---- total variation on the graph --------------------------------------------------------------------------------


@given(graphs(max_nodes=14), st.floats(-2, 1.5), st.booleans())
def test_graph_tv_equals_a_bounded_least_squares_solver(graph, exponent, ties):
    y = signal_on(graph, seed=graph.n_edges)
    y, penalty = (np.rint(2 * y) if ties else y), 10.0**exponent
    result = hg.graph_tv(graph, y, penalty=penalty)
    i, j = graph.adjacency.nonzero()
    i, j = i[i < j], j[i < j]
    if len(i):
        D = np.zeros((len(i), graph.n))
        D[np.arange(len(i)), i], D[np.arange(len(i)), j] = 1.0, -1.0
        limit = penalty * graph.adjacency[i, j]
        u = lsq_linear(D.T, y, bounds=(-limit, limit), method="bvls", tol=1e-15, max_iter=10_000).x
        y = y - D.T @ u
    np.testing.assert_allclose(result.signal, y, rtol=0, atol=1e-6)
    assert 0 <= result.details["gap"] < 1e-12


@given(st.integers(1, 60), st.integers(0, 10**6), st.floats(-2, 3))
def test_graph_tv_on_a_path_is_the_fused_lasso(n, seed, exponent):
    y, penalty = np.random.default_rng(seed).normal(size=n), 10.0**exponent
    graph = hg.Graph.from_edges(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), n=n)
    solution = minimise(graph, Arcs.of(graph), y, penalty)
    expected = hg.fused_lasso(y, penalty)
    np.testing.assert_allclose(solution.x, expected, rtol=0, atol=1e-12)
    assert solution.pieces == 1 + np.count_nonzero(np.diff(expected))


@given(graphs(min_nodes=30), st.floats(-2, 2))
def test_the_gap_bounds_what_is_left(graph, exponent):
    """The objective of the solution is less than that of any other point, by at least half the squared distance."""
    y, penalty = signal_on(graph, seed=1), 10.0**exponent
    solution = minimise(graph, Arcs.of(graph), y, penalty)
    i, j = graph.adjacency.nonzero()

    def objective(x):
        return ((x - y) ** 2).sum() / 2 + penalty * (graph.adjacency.data * np.abs(x[i] - x[j])).sum() / 2

    assert 0 <= solution.relative_gap <= 1e-12
    for seed in range(5):
        other = solution.x + 0.01 * signal_on(graph, seed=seed)
        assert objective(other) >= objective(solution.x) - solution.gap + ((other - solution.x) ** 2).sum() / 2 - 1e-9


def test_an_infinite_penalty_gives_the_means_of_the_components():
    graph = hg.Graph.from_edges([(0, 1), (1, 2), (3, 4)], n=6)
    signal = hg.graph_tv(graph, [1.0, 2.0, 6.0, 1.0, 2.0, 5.0], penalty=np.inf).signal
    np.testing.assert_allclose(signal, [3.0, 3.0, 3.0, 1.5, 1.5, 5.0], rtol=1e-14)


def test_a_gap_above_the_tolerance_is_an_error():
    graph, y = hg.datasets.grid(8, 8), np.random.default_rng(0).normal(size=64)
    y[0] = 1e30
    with pytest.raises(ArithmeticError, match=r"duality gap.*clip outliers"):
        hg.graph_tv(graph, y, penalty=1.0, tolerance=1e-300)


# ---- risks -------------------------------------------------------------------------------------------------------


def on_graph_tv(graph, noisy, **options):
    return hg.graph_tv(graph, noisy, **options)


def on_one_chain(graph, noisy, **options):
    return hg.dfs_fused_lasso(graph, noisy, **options)


def on_weighted_nodes(graph, noisy, **options):
    return hg.dfs_fused_lasso(graph, noisy, node_weights=np.linspace(0.1, 2, graph.n), **options)


def on_three_chains(graph, noisy, **options):
    return hg.dfs_fused_lasso(graph, noisy, orders=3, **options)


METHODS = [on_one_chain, on_weighted_nodes, on_three_chains, on_graph_tv]


@pytest.fixture(scope="module")
def graph():
    """Eighty nodes in several components."""
    return hg.datasets.random_geometric(80, radius=0.15, seed=1)


@pytest.fixture(scope="module")
def truth(graph):
    return np.where(np.arange(graph.n) % 40 < 20, 0.0, 3.0) + np.linspace(0, 1, graph.n)


@pytest.fixture(scope="module")
def noise(graph):
    return np.random.default_rng(3).normal(size=(graph.n, 2000))


def p_value(difference):
    return 2 * stats.norm.sf(abs(difference.mean() / stats.sem(difference)))


@pytest.mark.statistics
@pytest.mark.parametrize("method", METHODS)
def test_the_risk_is_unbiased_at_a_fixed_penalty(graph, truth, noise, method):
    sigma, noisy = 1.3, truth[:, None] + 1.3 * noise
    result = method(graph, noisy, penalty=2.5, sigma=sigma)  # far from n / 2 pieces, where SURE hardly depends on sigma
    loss = np.sum((result.signal - truth[:, None]) ** 2, axis=0)
    assert p_value(result.risk - loss) > FALSE_ALARM
    few = slice(0, 500)  # draws that are enough for the control
    assert p_value(method(graph, noisy[:, few], penalty=2.5, sigma=1.1 * sigma).risk - loss[few]) < FALSE_ALARM


@pytest.mark.statistics
@pytest.mark.parametrize("method", [on_one_chain, on_weighted_nodes, on_graph_tv])
def test_the_standard_error_of_the_risk_is_true(graph, truth, noise, method):
    sigma, noisy = 1.3, truth[:, None] + 1.3 * noise
    result = method(graph, noisy, penalty=1.0, sigma=sigma)
    square = (result.risk - np.sum((result.signal - truth[:, None]) ** 2, axis=0)) ** 2
    assert p_value(square - result.risk_se**2) > FALSE_ALARM
    assert p_value(square - (1.25 * result.risk_se) ** 2) < FALSE_ALARM


def test_the_standard_error_for_several_orders_is_an_upper_bound(graph, truth, noise):
    result = on_three_chains(graph, truth[:, None] + 1.3 * noise, penalty=1.0, sigma=1.3)
    square = (result.risk - np.sum((result.signal - truth[:, None]) ** 2, axis=0)) ** 2
    assert square.mean() < np.mean(result.risk_se**2)


# ---- choosing the penalty ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_the_chosen_penalty_is_the_best_tried(graph, truth, noise, method):
    noisy = truth + 0.8 * noise[:, 0]
    by_sure, oracle = method(graph, noisy, sigma=0.8), method(graph, noisy, penalty="oracle", truth=truth)
    assert (by_sure.details["tuned_on"], oracle.details["tuned_on"]) == ("sure", "truth")
    assert by_sure.risk == pytest.approx(by_sure.details["sure"].min(), rel=1e-12)
    errors = oracle.details["squared_error"]
    assert np.sum((oracle.signal - truth) ** 2) == pytest.approx(errors.min(), rel=1e-12)
    assert np.sum((by_sure.signal - truth) ** 2) >= errors.min() * (1 - 1e-3)
    assert np.isnan(oracle.risk)
    for result in (by_sure, oracle):
        tried = result.details["penalties"]
        assert np.all(np.diff(tried) > 0)
        assert {0.0, np.inf, result.thresholds} <= set(tried.tolist())
        again = method(graph, noisy, penalty=result.thresholds, sigma=0.8)
        np.testing.assert_array_equal(again.signal, result.signal)
        assert again.details["pieces"] == result.details["pieces"]


@pytest.mark.parametrize("method", [on_one_chain, on_three_chains, on_graph_tv])
def test_given_candidates_are_tried_as_they_are(graph, truth, noise, method):
    noisy, candidates = truth + 0.8 * noise[:, 1], [3.0, 0.1, 1.0]
    result = method(graph, noisy, penalty="oracle", truth=truth, candidates=candidates)
    np.testing.assert_array_equal(result.details["penalties"], [0.1, 1.0, 3.0])
    errors = [np.sum((method(graph, noisy, penalty=one).signal - truth) ** 2) for one in (0.1, 1.0, 3.0)]
    np.testing.assert_allclose(result.details["squared_error"], errors, rtol=1e-12)


def test_no_noise_keeps_the_signal_and_pure_noise_becomes_one_value(graph):
    signal = np.random.default_rng(5).normal(size=graph.n)
    np.testing.assert_array_equal(hg.dfs_fused_lasso(graph, signal, sigma=1e-9).signal, signal)
    noise = hg.dfs_fused_lasso(graph, signal, penalty="oracle", truth=np.full(graph.n, signal.mean()))
    assert noise.details["pieces"] == 1
    assert (
        hg.graph_tv(graph, np.full(graph.n, 2.0), penalty="oracle", truth=np.full(graph.n, 2.0)).signal.tolist() == [2.0] * graph.n
    )


# ---- what goes in and out ----------------------------------------------------------------------------------------


def test_one_order_is_the_fused_lasso_along_it(graph, truth, noise):
    y, order = truth + noise[:, 2], hg.depth_first_order(graph, start=3)
    result = hg.dfs_fused_lasso(graph, y, penalty=0.7, start=3)
    np.testing.assert_array_equal(result.signal[order], hg.fused_lasso(y[order], 0.7))
    assert result.method == "dfs_fused_lasso"
    assert result.thresholds == 0.7
    assert np.isnan([result.risk, result.risk_se]).all()


@pytest.mark.statistics
def test_several_orders_are_their_mean_and_reproducible(graph, truth, noise):
    y = truth + noise[:, 2]
    several = [hg.dfs_fused_lasso(graph, y, penalty=0.7, orders=5, seed=seed).signal for seed in (1, 1, 2)]
    np.testing.assert_array_equal(several[0], several[1])
    assert np.any(several[0] != several[2])
    many = hg.dfs_fused_lasso(graph, y, penalty=0.7, orders=400, seed=1).signal
    single = [
        hg.fused_lasso(y[order], 0.7)[np.argsort(order)] for order in (hg.depth_first_order(graph, seed=k) for k in range(400))
    ]
    spread = np.std(single, axis=0) * np.sqrt(2 / 400)
    z = (many - np.mean(single, axis=0))[spread > 1e-9] / spread[spread > 1e-9]
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / graph.n)


@pytest.mark.parametrize("method", METHODS)
def test_columns_are_denoised_separately(graph, truth, noise, method):
    noisy = truth[:, None] + noise[:, :3] * [0.5, 1.0, 2.0]
    together = method(graph, noisy, sigma=1.0)
    assert together.thresholds.shape == together.risk.shape == together.risk_se.shape == together.details["pieces"].shape == (3,)
    for k in range(3):
        alone = method(graph, noisy[:, k], sigma=1.0)
        np.testing.assert_array_equal(together.signal[:, k], alone.signal)
        assert (together.thresholds[k], together.risk[k]) == (alone.thresholds, alone.risk)


@pytest.mark.parametrize("method", [on_one_chain, on_graph_tv])
def test_series_dicts_and_single_precision_come_back_as_they_went_in(method):
    pandas = pytest.importorskip("pandas")
    graph = hg.Graph.from_edges([(0, 1), (1, 2)], labels=["a", "b", "c"])
    series = pandas.Series({"c": 9.0, "a": 0.0, "b": 1.0}, name="taxis")
    result = method(graph, series, penalty=0.5)
    pandas.testing.assert_series_equal(result.signal, pandas.Series({"c": 8.5, "a": 0.5, "b": 1.0}, name="taxis"))
    assert method(graph, dict(series), penalty=0.5).signal == {"c": 8.5, "a": 0.5, "b": 1.0}
    frame = method(graph, series.to_frame(), penalty=0.5).signal
    assert list(frame.index) == ["c", "a", "b"]
    assert method(graph, np.array([0, 1, 9], np.float32), penalty=0.5).signal.dtype == np.float32
    assert method(graph, [0.0, 1.0, 9.0], penalty=0.5).to_series()["c"] == 8.5


@pytest.mark.parametrize("method", [on_one_chain, on_graph_tv])
def test_noisy_values_bring_their_sigma_and_releases_have_no_oracle(graph, truth, noise, method):
    def noisy(kind):
        return hg.Noisy(truth + noise[:, 4], sigma=1.0, kind=kind, graph_hash=graph.hash)

    result = method(graph, noisy("release"))
    np.testing.assert_array_equal(result.signal, method(graph, truth + noise[:, 4], sigma=1.0).signal)
    assert result.sigma == 1.0
    method(graph, noisy("simulation"), penalty="oracle", truth=truth)
    with pytest.raises(TypeError, match="noisy is a private release"):
        method(graph, noisy("release"), penalty="oracle", truth=truth)
    with pytest.raises(TypeError, match="truth is a private release"):
        method(graph, truth + noise[:, 4], penalty="oracle", truth=noisy("release"))
    with pytest.raises(ValueError, match="sigma travels"):
        method(graph, noisy("release"), sigma=2.0)
    with pytest.raises(ValueError, match="another graph"):
        method(hg.datasets.path(graph.n), noisy("release"))


REFUSED = [
    ({}, "needs sigma="),
    ({"penalty": "sure"}, "needs sigma="),
    ({"penalty": "best"}, "'sure' or 'oracle'; got 'best'"),
    ({"penalty": -1.0}, "at least 0"),
    ({"penalty": np.nan}, "at least 0"),
    ({"penalty": [1.0]}, "at least 0"),
    ({"penalty": "oracle"}, "needs truth="),
    ({"penalty": 1.0, "truth": np.zeros(80)}, "only for penalty='oracle'"),
    ({"penalty": "oracle", "truth": np.zeros((80, 2))}, "truth must have the shape"),
    ({"penalty": "oracle", "truth": np.zeros(3)}, "truth needs one row per node"),
    ({"sigma": -1.0}, "positive number"),
    ({"sigma": np.ones(80)}, "one number for all nodes.*node_weights=1 / sigma"),
    ({"sigma": 1.0, "candidates": 2}, "candidates must be"),
    ({"sigma": 1.0, "candidates": [-1.0]}, "candidates must be"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
@pytest.mark.parametrize("method", [on_one_chain, on_graph_tv])
def test_refusals_say_what_to_do(graph, method, options, message):
    with pytest.raises(ValueError, match=message):
        method(graph, np.ones(graph.n), **options)


def test_more_refusals(graph):
    signal = np.ones(graph.n)
    with pytest.raises(ValueError, match="no nodes"):
        hg.dfs_fused_lasso(hg.Graph.from_edges(np.empty((0, 2), int), n=0), [], penalty=1.0)
    with pytest.raises(ValueError, match="NaN or infinite"):
        hg.dfs_fused_lasso(graph, np.full(graph.n, np.nan), penalty=1.0)
    with pytest.raises(ValueError, match="orders must be an integer of at least 1"):
        hg.dfs_fused_lasso(graph, signal, penalty=1.0, orders=0)
    with pytest.raises(ValueError, match="start must be an integer from 0 to 79"):
        hg.dfs_fused_lasso(graph, signal, penalty=1.0, start=80)
    with pytest.raises(ValueError, match="seed must be"):
        hg.depth_first_order(graph, seed=-1)
    with pytest.raises(TypeError, match=r"hushgraph\.Graph"):
        hg.depth_first_order(np.eye(3))
    with pytest.raises(ValueError, match="tolerance must be"):
        hg.graph_tv(graph, signal, penalty=1.0, tolerance=0)
    with pytest.raises(ValueError, match="one chain"):
        hg.fused_lasso(np.ones((3, 2)), 1.0)
    with pytest.raises(ValueError, match="3 positive numbers within a factor of 1e\\+08"):
        hg.fused_lasso(np.ones(3), 1.0, node_weights=[1.0, 1e9, 1.0])
    with pytest.raises(ValueError, match="2 non-negative numbers"):
        hg.fused_lasso(np.ones(3), 1.0, edge_weights=[1.0, -1.0])
    with pytest.raises(ValueError, match="penalties must be a list"):
        hg.fused_lasso_path(np.ones(3), 1.0)
    with pytest.raises(ValueError, match="NaN or infinite"):
        hg.fused_lasso([1.0, np.inf], 1.0)


# ---- real streets ------------------------------------------------------------------------------------------------

MANHATTAN = [
    (26.494, 2.23),
    (17.663, 2.76),
    (10.598, 3.74),
    (5.299, 6.24),
    (18.989, 2.64),
    (12.992, 3.30),
    (8.058, 4.57),
    (4.225, 7.39),
]


@pytest.mark.data
@pytest.mark.parametrize(("sigma", "expected"), MANHATTAN)
def test_the_oracle_dfs_fused_lasso_on_manhattan(manhattan, sigma, expected):
    streets, pickups = manhattan
    noisy = pickups[:, None] + sigma * np.random.default_rng(0).normal(size=(streets.n, 10))
    one, four = (hg.dfs_fused_lasso(streets, noisy, penalty="oracle", truth=pickups, orders=k).signal for k in (1, 4))
    clean = np.repeat(pickups[:, None], 10, axis=1)
    assert hg.snr(clean, one).mean() == pytest.approx(expected, abs=0.2)
    assert hg.snr(clean, four).mean() > hg.snr(clean, one).mean() + 0.3
