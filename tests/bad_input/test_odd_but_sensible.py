"""Odd but sensible input gives the right number: other kinds of numbers, lists, labels in another order, read-only arrays."""

import numpy as np
import pytest

import hushgraph as hg

from .tables import F, W, exact, frame, grid, named, noisy, path, truth, y


def equal(odd, plain):
    np.testing.assert_allclose(odd, plain, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("odd", "plain"),
    [
        pytest.param(range(20), np.arange(20.0), id="a range"),
        pytest.param([True, False] * 10, np.tile([1.0, 0.0], 10), id="booleans"),
        pytest.param(y.astype(np.float16), y.astype(np.float16).astype(float), id="float16"),
        pytest.param(y.astype(">f8"), y, id="other byte order"),
        pytest.param(y[::-1], y[::-1].copy(), id="backwards"),
        pytest.param(np.broadcast_to(2.0, 20), np.full(20, 2.0), id="broadcast"),
    ],
)
def test_signals(odd, plain):
    equal(grid.align(odd), plain)
    equal(hg.analyze(frame, odd), hg.analyze(frame, plain))


def test_labels_in_another_order():
    equal(named.align({"c": 3, "a": 1, "b": 2}), [1.0, 2.0, 3.0])


def test_tables_of_pandas():
    pd = pytest.importorskip("pandas")
    equal(grid.align(pd.Series(y[::-1], index=range(19, -1, -1))), y)
    equal(named.align(pd.Series([1, 2, 3], index=["a", "b", "c"], dtype="Int64")), [1.0, 2.0, 3.0])
    weights = pd.Series([1, 1], index=[7, 8])
    equal(hg.Graph.from_edges([(0, 1), (1, 2)], weights=weights).degrees, path.degrees)


@pytest.mark.parametrize("kind", [np.uint64, np.uint8, ">i4"])
def test_edges_of_other_integers(kind):
    equal(hg.Graph.from_edges(np.array([(0, 1), (1, 2)], dtype=kind)).degrees, path.degrees)


def test_edges_twice_and_loops():
    equal(hg.Graph.from_edges([(0, 1), (1, 2), (2, 1), (1, 1)]).degrees, path.degrees)
    equal(hg.Graph.from_edges([(0, 1), (1, 2)], weights=[True, True]).degrees, path.degrees)
    equal(hg.Graph.from_scipy([[0, 1, 0], [1, 5, 1], [0, 1, 0]]).degrees, path.degrees)
    assert path.subgraph([]).n == 0


def test_graphs_of_networkx():
    nx = pytest.importorskip("networkx")
    equal(hg.Graph.from_networkx(nx.path_graph(3), coords=None).degrees, path.degrees)
    equal(hg.Graph.from_networkx(nx.DiGraph([(0, 1), (1, 0), (1, 2)])).degrees, path.degrees)


def test_counts_and_bounds_of_numpy():
    assert hg.count_scales(np.float32(8)) == 5
    equal(hg.chebyshev_frame(grid, degree=np.int32(20)).coefficients, frame.coefficients)


@pytest.mark.parametrize(
    ("odd", "plain"),
    [
        pytest.param(lambda: hg.soft([5, 6], 2)[0], [3.0, 4.0], id="soft, integers"),
        pytest.param(lambda: hg.soft(5.0, [1.0, 2.0])[0], [4.0, 3.0], id="soft, thresholds"),
        pytest.param(lambda: hg.soft([[1.0, 5.0]], [[2.0], [3.0]])[0], [[0.0, 3.0], [0.0, 2.0]], id="soft, table"),
        pytest.param(lambda: hg.james_stein(2.0, [1.0, 4.0])[0], [1.5, 0.0], id="james_stein"),
        pytest.param(lambda: hg.hard(2.0, [1.0, 4.0])[0], [2.0, 0.0], id="hard"),
        pytest.param(lambda: hg.shrink([], 1.0)[0], np.zeros(0), id="nothing"),
    ],
)
def test_shrinking(odd, plain):
    equal(odd(), plain)


@pytest.mark.parametrize(
    "kind", [lambda values: values.round().astype(int), lambda values: values.round().tolist()], ids=["int", "list"]
)
def test_coefficients_as_integers_and_lists(kind):
    odd, plain = kind(F), F.round()
    equal(hg.synthesize(frame, odd), hg.synthesize(frame, plain))
    equal(hg.sure(odd, 1.5, weights=W.tolist(), sigma=1), hg.sure(plain, 1.5, weights=W, sigma=1.0))
    equal(hg.sure_variance(frame, odd, 1.5, sigma=1, n_probes=4), hg.sure_variance(frame, plain, 1.5, sigma=1.0, n_probes=4))
    equal(hg.sure_thresholds(odd, W, sigma=2), hg.sure_thresholds(plain, W, sigma=2.0))
    equal(hg.sure_curve(odd[0], W[0].tolist(), sigma=1)[1], hg.sure_curve(plain[0], W[0], sigma=1.0)[1])
    equal(hg.oracle_thresholds(odd, truth), hg.oracle_thresholds(plain, truth))


def test_scales_as_lists():
    equal(hg.sure(F, [2] * 5, weights=W, sigma=1), hg.sure(F, 2.0, weights=W, sigma=1.0))
    equal(hg.sure(F, 2, weights=W, sigma=1, threshold_scale=W.tolist()), hg.sure(F, 2, weights=W, sigma=1, threshold_scale=W))
    equal(hg.oracle_thresholds(F, truth, threshold_scale=W.tolist()), hg.oracle_thresholds(F, truth, threshold_scale=W))
    one, other = (hg.sure_variance(frame, F, 1.5, sigma=1, n_probes=4, threshold_scale=scale) for scale in (W.tolist(), W))
    equal(one, other)
    one, other = (hg.sure_curve(F[0], W[0], sigma=1, threshold_scale=scale)[1] for scale in ([2.0] * 20, np.full(20, 2.0)))
    equal(one, other)


@pytest.mark.parametrize("sigma", [2, [2] * 20], ids=["a number", "a list"])
def test_sigmas_of_weights(sigma):
    equal(hg.monte_carlo_weights(frame, n_probes=4, sigma=sigma), 4 * W)
    equal(hg.exact_weights(frame, sigma=sigma), 4 * hg.exact_weights(frame))
    equal(hg.exact_weights(exact, sigma=sigma), 4 * hg.exact_weights(exact))


def test_weights_as_lists():
    equal(hg.smooth_weights(grid, W.tolist()), hg.smooth_weights(grid, W))


def test_risks_of_other_numbers():
    noisy_bytes, flat = np.arange(20, dtype=np.uint8), np.full(20, 3, dtype=np.uint8)
    plain = hg.signal_sure(noisy_bytes.astype(float), flat.astype(float), divergence=1.0, sigma=1.0)
    equal(hg.signal_sure(noisy_bytes, flat, divergence=1, sigma=1), plain)
    two = np.stack([y, y], axis=1)
    equal(hg.signal_sure(two, two, divergence=[1.0, 2.0], sigma=1.0), [-18.0, -16.0])
    equal(hg.monte_carlo_divergence(lambda v: list(2 * v), y)[0], 40.0)
    equal(hg.snr([1, 2], [1, 3]), hg.snr([1.0, 2.0], [1.0, 3.0]))


@pytest.mark.parametrize("sigma", [1, np.float32(1), np.array(1)], ids=["int", "float32", "array"])
def test_one_sigma(sigma):
    equal(hg.denoise(grid, y.tolist(), sigma=sigma).signal, hg.denoise(grid, y, sigma=1.0).signal)


@pytest.mark.parametrize("sigma", [[1] * 20, dict.fromkeys(range(20), 1)], ids=["list", "dict"])
def test_one_sigma_per_node(sigma):
    equal(hg.denoise(grid, y, sigma=sigma).signal, hg.denoise(grid, y, sigma=np.ones(20)).signal)


@pytest.mark.parametrize("sigma", [None, 1.0])
def test_sigma_of_a_noisy_signal_may_be_said_again(sigma):
    equal(hg.denoise(grid, noisy(), sigma=sigma).signal, hg.denoise(grid, y, sigma=1.0).signal)


def test_estimators_take_integers():
    pytest.importorskip("sklearn")
    rows = np.arange(40).reshape(2, 20)
    one, other = (hg.WaveletDenoiser(graph=grid, sigma=1.0).fit(X).transform(X) for X in (rows, rows.astype(float)))
    equal(one, other)


def read_only(values):
    values = values.copy()
    values.flags.writeable = False
    return values


def denoised_rows(X):
    pytest.importorskip("sklearn")
    return hg.WaveletDenoiser(graph=grid, sigma=1.0).fit(X).transform(X)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda of: hg.analyze(frame, of(y)), id="analyze"),
        pytest.param(lambda of: hg.analyze(exact, of(y)), id="analyze, exact"),
        pytest.param(lambda of: hg.synthesize(frame, of(F)), id="synthesize"),
        pytest.param(lambda of: hg.as_linear_operator(frame) @ of(y), id="operator"),
        pytest.param(lambda of: hg.as_linear_operator(frame).T @ of(F.ravel()), id="operator, turned"),
        pytest.param(
            lambda of: hg.monte_carlo_weights(frame, n_probes=4, sigma=of(np.arange(1.0, 21.0))), id="monte_carlo_weights"
        ),
        pytest.param(lambda of: hg.estimate_sigma(grid, of(y)), id="estimate_sigma"),
        pytest.param(lambda of: hg.sure(of(F), 1.0, weights=of(W), sigma=1.0), id="sure"),
        pytest.param(lambda of: hg.sure_thresholds(of(F), of(W), sigma=1.0), id="sure_thresholds"),
        pytest.param(lambda of: hg.sure_curve(of(F[0]), of(W[0]), sigma=1.0)[1], id="sure_curve"),
        pytest.param(lambda of: hg.oracle_thresholds(of(F), of(truth)), id="oracle_thresholds"),
        pytest.param(lambda of: hg.denoise(grid, of(y), sigma=1.0).signal, id="denoise"),
        pytest.param(lambda of: hg.denoise(grid, of(y), sigma=1.0, method="sgwt_exact").signal, id="denoise, exact"),
        pytest.param(
            lambda of: hg.denoise(grid, of(y), sigma=1.0, frame=frame, weights=of(W), method="sgwt_sure").signal,
            id="denoise, weights",
        ),
        pytest.param(lambda of: denoised_rows(of(np.stack([y, y + 1]))), id="estimator"),
    ],
)
def test_read_only_arrays(call):
    np.testing.assert_allclose(call(read_only), call(np.copy), rtol=1e-12)
