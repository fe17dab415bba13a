"""Totals of regions: their estimates, errors and forms."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

import hushgraph as hg
from hushgraph._errors import InputError
from hushgraph.estimators.total_errors import ErrorModel, block_sizes, measured_shifts
from hushgraph.graphs import Regions, block_partition

SIGMA = 2.0


@pytest.fixture(scope="module")
def grid():
    return hg.datasets.grid(30, 30)


@pytest.fixture(scope="module")
def hills(grid):
    x, y = grid.coords.T
    return 6 * np.sin(x / 5) * np.cos(y / 6) + 3


@pytest.fixture(scope="module")
def result(grid, hills):
    return hg.denoise(grid, hills + SIGMA * np.random.default_rng(0).normal(size=grid.n), sigma=SIGMA, method="let")


def blocks_of(grid, size):
    blocks = block_partition(grid, size=size)
    return {int(k): np.flatnonzero(blocks == k) for k in np.unique(blocks)}


# ---- numbers ---------------------------------------------------------------------------------------------------------


def test_noisy_sums_and_their_errors(grid, result):
    noisy = result.origin.problem.values
    totals = result.totals({"a": range(40), "b": [5, 100, 800]})
    np.testing.assert_allclose(totals.noisy, [noisy[:40].sum(), noisy[[5, 100, 800]].sum()])
    np.testing.assert_allclose(totals.noisy_se, SIGMA * np.sqrt([40, 3]))
    np.testing.assert_array_equal(totals.n_nodes, [40, 3])
    assert (totals.se < totals.noisy_se).all()


def test_the_estimate_lies_between_both_sums(grid, result):
    parts = blocks_of(grid, 30)
    totals = result.totals(parts)
    clean = np.array([result.signal[part].sum() for part in parts.values()])
    low, high = np.minimum(clean, totals.noisy), np.maximum(clean, totals.noisy)
    assert ((totals.value >= low - 1e-9) & (totals.value <= high + 1e-9)).all()


def test_the_covariance_is_one(grid, result):
    """Its diagonal is that of the errors, no combination has a negative variance, and a region equals itself."""
    mask = np.zeros(grid.n, dtype=bool)
    mask[:60] = True
    totals = result.totals({"a": range(60), "same": mask, "half": range(30), "next": range(60, 120), "far": range(840, 900)})
    C = totals.covariance
    np.testing.assert_allclose(np.sqrt(np.diag(C)), totals.se)
    assert np.linalg.eigvalsh(C).min() > -1e-9 * C.max()
    correlation = C / np.outer(totals.se, totals.se)
    assert correlation[0, 1] == pytest.approx(1)
    assert 0.4 < correlation[0, 2] < 1
    assert correlation[0, 2] > correlation[0, 3] > correlation[0, 4] - 0.05


def test_a_total_does_not_depend_on_the_other_regions(result):
    together = result.totals({"a": range(50), "b": range(20, 400)})
    assert result.total(range(50)).value == pytest.approx(together["a"].value, rel=1e-12)
    assert result.total(range(50)).se == pytest.approx(together["a"].se, rel=1e-12)


def test_values_that_stay_as_they_are_have_noisy_totals(grid):
    """The estimate is the input: G = V, and there is nothing to mix."""
    sigma, y = np.full(grid.n, SIGMA), np.random.default_rng(0).normal(size=grid.n)
    shifts = measured_shifts(grid, y[:, None], y[:, None], sigma[:, None], lambda values: values, 0)[0]
    model = ErrorModel.fitted(grid, np.zeros(grid.n), sigma, sigma, shifts)
    share, factor = model.mixture(Regions.of(grid, {"a": range(100)}).members, np.ones(1))
    assert np.sqrt(factor.power(2).sum()) == pytest.approx(SIGMA * 10, rel=0.01)
    assert 0 <= share[0] <= 1


def test_regions_that_no_block_measured_have_noisy_totals(grid, result):
    """The whole map and half of it; regions up to a quarter are estimated."""
    totals = result.totals({"all": range(grid.n), "half": range(grid.n // 2), "part": range(grid.n // 8)})
    np.testing.assert_array_equal(totals.value[:2], totals.noisy[:2])
    np.testing.assert_allclose(totals.se[:2], totals.noisy_se[:2])
    assert totals.value[2] != totals.noisy[2]
    assert totals.se[2] < totals.noisy_se[2]


def test_a_sum_that_the_estimate_keeps_has_the_error_of_the_noisy_sum(grid, result):
    model = result.origin.cache["error models"][0]
    inside = Regions.of(grid, {"a": range(100), "same": range(100)}).members
    share, factor = model.mixture(inside, np.array([0.0, 1.0]))
    assert share[0] == 0 < share[1]
    errors = np.sqrt(factor.power(2).sum(axis=1))
    assert errors[0] == pytest.approx(SIGMA * 10)
    assert errors[1] < errors[0]


def test_shifts_measure_the_jacobian(grid):
    """For a linear estimate G of a block is a'J Sigma a, up to signs of other blocks: the mean over blocks and seeds agrees."""
    walk = sparse.csr_array(grid.adjacency / grid.adjacency.sum(axis=1).max()) * 0.5 + sparse.eye_array(grid.n) * 0.4
    sigma = np.random.default_rng(0).uniform(1, 2, (grid.n, 1))
    y = np.zeros((grid.n, 1))
    found = [measured_shifts(grid, y, y, sigma, lambda values: walk @ values, seed)[0] for seed in range(40)]
    for k, size in enumerate(block_sizes(grid.n)):
        block = found[0][k].block
        inside = sparse.csr_array((np.ones(grid.n), (block, np.arange(grid.n))))
        exact = (inside @ walk @ sparse.diags_array(sigma[:, 0] ** 2) @ inside.T).diagonal()
        means = [shifts[k].agreement.mean() for shifts in found]
        assert abs(np.mean(means) - exact.mean()) < 6 * stats.sem(means) + 1e-9, size


@pytest.mark.statistics
def test_intervals_hold_the_truth(grid, hills):
    """Of 90 % intervals, 84 to 96 % hold the true total of a block; false-alarm rate 1e-6 for each of the two limits.

    Draws are independent, so that Student's t applies to the coverage of a draw. Negative control: intervals of half the width.
    """
    parts = blocks_of(grid, 40)
    truth = np.array([hills[part].sum() for part in parts.values()])
    covered, halved, widths = [], [], []
    for seed in range(25):
        noisy = hills + SIGMA * np.random.default_rng([1, seed]).normal(size=grid.n)
        totals = hg.denoise(grid, noisy, sigma=SIGMA, method="let").totals(parts)
        z = np.abs(totals.value - truth) / totals.se
        covered.append(np.mean(z < stats.norm.ppf(0.95)))
        halved.append(np.mean(z < stats.norm.ppf(0.95) / 2))
        widths.append(np.mean(totals.se / totals.noisy_se))
    assert np.mean(widths) < 0.9

    def p_values(shares):
        return [stats.ttest_1samp(shares, limit, alternative=side).pvalue for limit, side in ((0.84, "less"), (0.96, "greater"))]

    assert min(p_values(covered)) > 1e-6, np.mean(covered)
    assert min(p_values(halved)) < 1e-6, np.mean(halved)


# ---- forms -----------------------------------------------------------------------------------------------------------


def test_intervals_of_values_that_cannot_be_negative_are_cut(grid):
    noisy = np.random.default_rng(0).normal(0, SIGMA, grid.n)
    totals = hg.denoise(grid, noisy, sigma=SIGMA, method="let", nonnegative=True).totals({"a": range(9), "b": range(20, 25)})
    lower, upper = totals.interval(0.99)
    assert (lower >= 0).all()
    assert (totals.value >= 0).all()
    assert (upper >= lower).all()
    assert totals["a"].interval(0.99) == (lower[0], upper[0])


def test_results_can_be_pickled_replaced_and_read(grid, result):
    expected = result.totals({"a": range(40)})
    again = pickle.loads(pickle.dumps(replace(result, method="other")))
    np.testing.assert_array_equal(again.totals({"a": range(40)}).value, expected.value)
    assert "origin" not in repr(result)
    text = str(expected)
    assert "90 % interval" in text.splitlines()[0]
    assert "±" in text
    assert str(expected["a"]).count("±") == 1
    many = result.totals({k: [k] for k in range(50)})
    assert str(many).splitlines()[-1] == "and 30 more"
    assert len(many) == 50


def test_tables(result):
    pytest.importorskip("pandas")
    frame = result.totals({"a": range(40), "b": range(3)}).to_frame(0.5)
    assert list(frame.columns) == ["region", "nodes", "total", "se", "lower", "upper", "noisy", "noisy_se"]
    np.testing.assert_allclose(frame["upper"] - frame["total"], stats.norm.ppf(0.75) * frame["se"])


def test_labels_and_order_of_a_series():
    pandas = pytest.importorskip("pandas")
    plain = hg.datasets.grid(10, 10)
    labels = [f"n{k}" for k in range(100)]
    graph = hg.Graph.from_scipy(plain.adjacency, labels=labels)
    values = np.random.default_rng(0).normal(5, 1, 100)
    series = pandas.Series(values, index=labels).sample(frac=1, random_state=0)
    found = hg.denoise(graph, series, sigma=1, method="let").total(["n3", "n4", "n50"])
    expected = hg.denoise(plain, values, sigma=1, method="let").total([3, 4, 50])
    assert found == expected


def test_columns_have_a_row_each(grid, hills):
    rng = np.random.default_rng(0)
    noisy = hills[:, None] + SIGMA * rng.normal(size=(grid.n, 2))
    result = hg.denoise(grid, noisy, sigma=SIGMA, method="let")
    totals = result.totals({"a": range(40), "b": range(100)})
    assert totals.names == ("a", "a", "b", "b")
    assert totals.columns == (0, 1, 0, 1)
    np.testing.assert_allclose(totals.noisy.reshape(2, 2), [noisy[:40].sum(axis=0), noisy[:100].sum(axis=0)])
    alone = hg.denoise(grid, noisy[:, 0], sigma=SIGMA, method="let").totals({"a": range(40)})
    assert alone.value[0] == pytest.approx(totals.value[0], rel=0.2)
    assert totals.covariance[0, 1] == 0
    with pytest.raises(ValueError, match="several columns"):
        result.total(range(40))
    with pytest.raises(ValueError, match="in each column"):
        totals["a"]
    joint = hg.denoise(grid, noisy, sigma=SIGMA, method="let", columns="path").totals({"a": range(40)})
    assert (joint.se < joint.noisy_se).all()


def test_missing_values_do_not_count(grid, hills):
    noisy = hills + SIGMA * np.random.default_rng(0).normal(size=grid.n)
    noisy[:20] = np.nan
    totals = hg.denoise(grid, noisy, sigma=SIGMA, method="let", missing="fill").totals({"a": range(40), "b": range(20), "c": []})
    assert totals.n_nodes.tolist() == [20, 0, 0]
    assert totals.noisy[0] == pytest.approx(noisy[20:40].sum())
    assert np.isnan([totals.value[1], totals.se[1], totals.noisy_se[1]]).all()
    assert totals.value[2] == totals.se[2] == 0


def test_guides_and_estimated_noise(grid, hills):
    noisy = hills + SIGMA * np.random.default_rng(0).normal(size=grid.n)
    plain = hg.denoise(grid, noisy, sigma=SIGMA, method="let").total(range(60))
    guided = hg.denoise(grid, noisy, sigma=SIGMA, method="let", guides=hills).total(range(60))
    assert guided.se < plain.se
    assert abs(guided.value - hills[:60].sum()) < 5 * guided.se
    with pytest.warns(UserWarning, match="sigma was not given"):
        estimated = hg.denoise(grid, noisy, method="let")
    assert estimated.total(range(60)).noisy_se == pytest.approx(float(estimated.sigma) * np.sqrt(60))


def test_small_graphs_have_noisy_totals():
    graph = hg.datasets.path(8)
    total = hg.denoise(graph, np.arange(8.0), sigma=1).total([1, 2])
    assert (total.value, total.se) == (total.noisy, total.noisy_se)


def test_results_without_noisy_values_are_refused(grid, hills, result):
    with pytest.raises(ValueError, match="a result of denoise or compare"):
        replace(result, origin=None).totals({"a": [1]})
    with pytest.raises(ValueError, match="a result of denoise or compare"):
        hg.graph_tv(grid, hills, penalty=1.0).total([1])
    with pytest.raises(ValueError, match="level"):
        result.total([1]).interval(90)
    with pytest.raises(ValueError, match="no region has this name"):
        result.totals({"a": [1]})["b"]


def test_a_mask_with_labels_goes_by_label():
    graph = hg.Graph.from_edges([(0, 1), (1, 2), (2, 3)], labels=list("abcd"))
    result = hg.denoise(graph, np.array([1.0, 2.0, 3.0, 4.0]), sigma=0.1)
    mask = pd.Series([False, False, True, True], index=list("dcba"))
    assert result.total(mask).noisy == pytest.approx(3.0)
    assert result.totals({"first": mask})["first"].n_nodes == 2
    with pytest.raises(InputError, match="nodes"):
        result.total(mask[:3])


def test_regions_that_do_not_belong_here_are_refused():
    graph = hg.datasets.grid(8, 8)
    result = hg.denoise(graph, np.ones(64), sigma=1)
    with pytest.raises(InputError, match="64 nodes"):
        result.totals(Regions.of(hg.datasets.grid(3, 3), {"a": [1]}))
    with pytest.raises(InputError, match="at least one region"):
        result.totals({})
    for level in (0, 1, "0.9", None):
        with pytest.raises(InputError, match="level"):
            result.totals({"a": [1]}).interval(level)
    named = pd.Series(["x", pd.NA, "y"], index=[0, 1, 2], dtype="string")
    assert result.totals(named).names == ("x", "y")


def test_totals_of_counts_are_never_negative():
    graph = hg.datasets.city(400)
    noisy = np.random.default_rng(0).normal(0.1, 5, graph.n)
    totals = hg.denoise(graph, noisy, sigma=5, method="counts").totals({k: [k] for k in range(graph.n)})
    assert totals.is_nonnegative
    assert min(totals.value.min(), totals.interval()[0].min()) >= 0
