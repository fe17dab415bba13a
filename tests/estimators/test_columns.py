"""Signals in columns that belong together: denoised on the product with a path, better than one by one."""

import numpy as np
import pytest
from scipy import stats

import hushgraph as hg
from hushgraph.privacy.counting import count_events
from hushgraph.privacy.releases import simulate

from ..privacy.coupling import couple_keys


@pytest.fixture(scope="module")
def day():
    """A generated city and a day of trips, 24 hourly maps; which trips are cut depends on ids alone, so that every run has the same maps."""
    graph = hg.datasets.city(500)
    edges = np.datetime64("2026-03-02", "s") + 3600 * np.arange(25)
    with pytest.MonkeyPatch.context() as patch:
        couple_keys(patch)
        counts = count_events(
            graph, hg.datasets.trips(graph, n_people=4000), unit="person", adjacency="add-remove",
            time="time", windows=edges, max_cells=4, max_per_cell=1, max_distance=200,
        )  # fmt: skip
    assert counts.sensitivity_squared == 4
    return graph, counts.counts.astype(float)


def test_product_is_the_cartesian_product():
    left = hg.Graph.from_edges([(0, 1), (1, 2)], n=4, weights=[2.0, 3.0])
    right = hg.datasets.path(3, weight=0.5)
    eye = [np.eye(graph.n) for graph in (left, right)]
    expected = np.kron(left.adjacency.toarray(), eye[1]) + np.kron(eye[0], right.adjacency.toarray())
    product = left.product(right)
    assert np.array_equal(product.adjacency.toarray(), expected)
    assert product.n == 12
    spectrum = np.add.outer(*(np.linalg.eigvalsh(graph.laplacian().toarray()) for graph in (left, right))).ravel()
    assert np.allclose(np.sort(spectrum), np.linalg.eigvalsh(product.laplacian().toarray()))


def test_product_refuses_what_does_not_fit():
    graph = hg.datasets.path(100_000)
    with pytest.raises(ValueError, match="the product would have 100000 x 100000 nodes"):
        graph.product(graph)
    with pytest.raises(TypeError, match=r"graph must be a hushgraph.Graph"):
        graph.product(24)
    with pytest.raises(ValueError, match="weight must be positive"):
        hg.datasets.path(3, weight=0)
    with pytest.raises(ValueError, match="n_nodes must be an integer of at least 1"):
        hg.datasets.path(0)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_day_together_beats_hour_by_hour(day, epsilon):
    """Over two draws, on both of them."""
    graph, truth = day
    for seed in range(2):
        noisy = simulate(graph, truth, epsilon=epsilon, delta=1e-6, sensitivity_squared=4, seed=seed)
        together, alone = (hg.denoise(graph, noisy, columns=how, nonnegative=True) for how in ("path", "separate"))
        assert hg.snr(truth.ravel(), together.signal.ravel()) > hg.snr(truth.ravel(), alone.signal.ravel())


@pytest.mark.statistics
@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_risk_of_a_day(day, epsilon):
    """Mean of (error - risk) / risk_se over four draws: optimistic, but by less than two; and on average the map is hardly worse than none at all.

    At twice the noise it claims, the same estimate is far off (negative control).
    """
    graph, truth = day
    scores, shares = [], []
    for seed in range(4):
        noisy = simulate(graph, truth, epsilon=epsilon, delta=1e-6, sensitivity_squared=4, seed=seed)
        result = hg.denoise(graph, noisy, columns="path")
        error = np.sum((result.signal - truth) ** 2)
        scores.append((error - result.risk) / result.risk_se)
        shares.append(error / np.sum(truth**2))
    assert -1.5 < np.mean(scores) < 2
    other = hg.denoise(graph, noisy.values, sigma=noisy.noise_level / 2, columns="path")
    assert abs(np.sum((other.signal - truth) ** 2) - other.risk) > 10 * other.risk_se
    assert np.mean(shares) < 1.2
    assert result.expected_error().shape == truth.shape


def test_unrelated_columns_are_not_hurt_much():
    """Columns that have nothing in common: the weak ties keep the mean close to one by one."""
    graph = hg.datasets.city(800)
    truth = np.stack([hg.hotspot_counts(graph, total=8000, seed=k) for k in range(6)], axis=1)
    noisy = simulate(graph, truth, epsilon=1, delta=1e-6, sensitivity=1, seed=0)
    together, alone = (hg.denoise(graph, noisy, columns=how) for how in ("path", "separate"))
    assert hg.snr(truth.ravel(), together.signal.ravel()) > hg.snr(truth.ravel(), alone.signal.ravel()) - 0.7


def test_a_graph_of_columns_is_the_product(day):
    graph, truth = day
    noisy = simulate(graph, truth, epsilon=2, delta=1e-6, sensitivity=1, seed=0)
    path = hg.datasets.path(24)
    result = hg.denoise(graph, noisy, columns=path, level="scale")
    assert result.signal.shape == truth.shape
    flat = hg.denoise(graph.product(path), noisy.values.ravel(), sigma=noisy.noise_level)
    assert hg.snr(flat.signal, result.signal.ravel()) > 8  # the same but for thresholds per column


def test_windows_make_path_the_default(day):
    graph, truth = day
    values, edges = truth[:, :4] + 0.0, tuple(range(5))
    noisy = hg.Noisy(values, sigma=2.0, kind="measurement", graph_hash=graph.hash, windows=edges)
    assert np.array_equal(hg.denoise(graph, noisy).signal, hg.denoise(graph, values, sigma=2.0, columns="path").signal)
    assert np.array_equal(
        hg.denoise(graph, noisy, columns="separate").signal, hg.denoise(graph, values, sigma=2.0, columns="separate").signal
    )
    assert np.array_equal(
        hg.denoise(graph, values, sigma=2.0).signal, hg.denoise(graph, values, sigma=2.0, columns="separate").signal
    )
    with pytest.raises(ValueError, match="windows are the edges of the columns"):
        hg.Noisy(values, sigma=2.0, kind="measurement", graph_hash=graph.hash, windows=(0, 1))


def test_one_column_is_one_signal():
    graph = hg.datasets.city(300)
    y = np.random.default_rng(0).normal(size=(graph.n, 1))
    assert np.array_equal(hg.denoise(graph, y, sigma=1.0, columns="path").signal, hg.denoise(graph, y, sigma=1.0).signal)
    assert np.array_equal(
        hg.denoise(graph, y[:, 0], sigma=1.0, columns="path").signal, hg.denoise(graph, y[:, 0], sigma=1.0).signal
    )


def test_missing_values_sigma_per_node_and_float32():
    graph = hg.datasets.city(300)
    rng = np.random.default_rng(0)
    sigma = rng.uniform(0.5, 1.5, graph.n)
    y = sigma[:, None] * rng.normal(size=(graph.n, 3))
    gaps = y.copy()
    gaps[[5, 7], [0, 2]] = np.nan
    result = hg.denoise(graph, gaps, sigma=sigma, columns="path", missing="drop")
    assert np.array_equal(np.isnan(result.signal), np.isnan(gaps))
    assert np.array_equal(np.isnan(result.expected_error()), np.isnan(gaps))
    assert np.isfinite(result.risk)
    assert hg.denoise(graph, y.astype(np.float32), sigma=1.0, columns="path").signal.dtype == np.float32
    with pytest.warns(UserWarning, match="sigma was not given"):
        assert hg.denoise(graph, y, columns="path").sigma > 0


def test_series_keep_their_names():
    pandas = pytest.importorskip("pandas")
    graph = hg.datasets.city(300)
    frame = pandas.DataFrame(np.random.default_rng(0).normal(size=(graph.n, 3)), columns=["a", "b", "c"])
    result = hg.denoise(graph, frame, sigma=1.0, columns="path").signal
    assert list(result.columns) == ["a", "b", "c"]


@pytest.mark.parametrize("bad", ["rows", 3, ["path"]])
def test_bad_columns(bad):
    graph = hg.datasets.grid(5, 5)
    with pytest.raises(ValueError, match="columns must be one of 'separate', 'path'"):
        hg.denoise(graph, np.zeros((25, 2)), sigma=1.0, columns=bad)


def test_a_graph_of_columns_must_fit():
    graph = hg.datasets.grid(5, 5)
    with pytest.raises(ValueError, match=r"a node per column; got 3 nodes for values of shape \(25, 2\)"):
        hg.denoise(graph, np.zeros((25, 2)), sigma=1.0, columns=hg.datasets.path(3))
    with pytest.raises(ValueError, match="do not go with columns="):
        hg.denoise(
            graph, np.zeros((25, 2)), sigma=1.0, columns="path", method="sgwt_sure", frame=hg.chebyshev_frame(graph),
        )  # fmt: skip


# ---- expected error per node -------------------------------------------------------------------------------------------------


@pytest.mark.statistics
def test_expected_error_knows_where_the_map_is_bad():
    """Rank correlation with the true error over draws; with shuffled nodes there is none (negative control)."""
    graph = hg.datasets.city(3000)
    truth = hg.hotspot_counts(graph, total=9000)
    results = [hg.denoise(graph, simulate(graph, truth, epsilon=1, delta=1e-6, sensitivity=1, seed=k)) for k in range(6)]
    true = np.sqrt(np.mean([(result.signal - truth) ** 2 for result in results], axis=0))
    expected = results[0].expected_error()
    assert stats.spearmanr(expected, true).statistic > 0.5
    assert abs(stats.spearmanr(np.random.default_rng(0).permutation(expected), true).statistic) < 0.1
    assert np.mean(expected**2) == pytest.approx(np.mean(true**2), rel=0.25)
    assert (expected > 0).all()


def test_expected_error_of_no_hops_and_bad_hops():
    graph = hg.datasets.grid(10, 10)
    y = np.random.default_rng(0).normal(size=(100, 2))
    result = hg.denoise(graph, y, sigma=1.0)
    assert result.expected_error(hops=0).shape == (100, 2)
    assert np.isfinite(result.expected_error(hops=500)).all()
    with pytest.raises(ValueError, match="hops must be an integer of at least 0"):
        result.expected_error(hops=-1)


def test_expected_error_of_a_signal_returned_unchanged():
    graph = hg.datasets.grid(6, 6)
    y = 100 * np.random.default_rng(0).normal(size=36)
    result = hg.denoise(graph, y, sigma=1.0)
    if result.details["unchanged"].size:
        assert np.allclose(result.expected_error(), 1.0)
    assert np.all(result.expected_error() <= 1.5)
