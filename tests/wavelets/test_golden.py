"""The same numbers as independent programs: band functions, thresholding rules, exact frame, SURE, minimisers, signals."""

import numpy as np
import pytest
from scipy import sparse

import hushgraph as hg
from hushgraph.graphs.graph import Graph
from hushgraph.wavelets.unbiased_risk import threshold_field, threshold_multiplier

SIGMA = 0.5
NOT_A_MINIMUM = (2.0, 1.0, -1.0)  # (beta, policy, scale) of the one row that was searched over other candidates


@pytest.fixture(scope="module")
def graph(golden):
    i, j, weight = golden["knn300_W"].T
    matrix = sparse.csr_array((weight, (i.astype(int), j.astype(int))), shape=(300, 300))
    return Graph.from_scipy(matrix, coords=golden["knn300_xy"])


@pytest.fixture(scope="module")
def frame(graph):
    return hg.exact_frame(graph, rescale=False)


@pytest.fixture(scope="module")
def noisy_F(golden):
    return np.ascontiguousarray(golden["knn300_wcn"].T)


@pytest.fixture(scope="module")
def weights(golden):
    return np.ascontiguousarray(golden["knn300_diagWWt"].T)


def rows_of(scale):
    return slice(None) if scale < 0 else slice(int(scale), int(scale) + 1)


def options(beta, policy):
    return {"sigma": SIGMA, "rule": "power", "beta": beta, "threshold_scale": bool(policy)}


def sure_without_constant(F, t, weights, beta, policy):
    return hg.sure(F, t, weights=weights, **options(beta, policy)) + SIGMA**2 * weights.sum()


def least_sure(F, weights, beta, policy, scale):
    """Threshold and SURE without its constant, of one scale or of all together (-1)."""
    rows = rows_of(scale)
    level = "global" if scale < 0 else "scale"
    t = hg.sure_thresholds(F[rows], weights[rows], level=level, **options(beta, policy))[0]
    return t, sure_without_constant(F[rows], t, weights[rows], beta, policy)


@pytest.mark.parametrize(("base", "n_scales", "first"), [(2.0, 6, 1), (1.7, 7, 7)])
def test_band_functions(golden, base, n_scales, first):
    x, expected = golden["zetav"][:, 0], golden["zetav"][:, first : first + n_scales].T
    np.testing.assert_allclose(hg.partition(x, n_scales=n_scales, base=base), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize(("column", "beta"), [(1, 1.0), (2, 2.0), (3, 5.0)])
def test_thresholding_rules(golden, column, beta):
    x, expected = golden["betathresh"][:, 0], golden["betathresh"][:, column]
    np.testing.assert_allclose(hg.power(x, 0.5, beta=beta)[0], expected, rtol=0, atol=1e-14)


def test_scalars(golden, graph, frame):
    n, base, J, lambda_max, sigma, *_, snr, _, roughness = golden["knn300_scalars"]
    assert (graph.n, frame.base, frame.n_scales, sigma) == (n, base, J + 1, SIGMA)
    assert abs(frame.lambda_max - lambda_max) <= 1e-10
    noisy = golden["knn300_y"]
    assert noisy @ (graph.laplacian() @ noisy) == pytest.approx(roughness, rel=1e-12)
    assert hg.snr(golden["knn300_f"], noisy) == pytest.approx(snr, rel=1e-12)


def test_eigenvalues(golden, frame):
    np.testing.assert_allclose(np.sort(frame.eigenvalues), np.sort(golden["knn300_eigenvalues"]), rtol=0, atol=1e-10)


def test_weights_of_the_exact_frame(weights, frame):
    np.testing.assert_allclose(hg.exact_weights(frame), weights, rtol=0, atol=1e-10)


def test_weights_of_a_tight_frame_sum_to_the_number_of_nodes(weights):
    np.testing.assert_allclose(weights.sum(), 300, rtol=1e-12)


@pytest.mark.parametrize(("signal", "coefficients"), [("knn300_f", "knn300_wcf"), ("knn300_y", "knn300_wcn")])
def test_coefficients_of_the_exact_frame(golden, frame, signal, coefficients):
    np.testing.assert_allclose(hg.analyze(frame, golden[signal]), golden[coefficients].T, rtol=0, atol=1e-7)


def test_sure_at_every_threshold(golden, noisy_F, weights):
    ours = [
        sure_without_constant(noisy_F[rows_of(scale)], t, weights[rows_of(scale)], beta, policy)
        for beta, policy, scale, _, t, _, _ in golden["knn300_sure"]
    ]
    np.testing.assert_allclose(ours, golden["knn300_sure"][:, 5], rtol=1e-12, atol=0)


def test_squared_error_at_every_threshold(golden, noisy_F, weights):
    truth = golden["knn300_wcf"].T
    ours = []
    for beta, policy, scale, _, t, _, _ in golden["knn300_sure"]:
        rows = rows_of(scale)
        field = threshold_field(noisy_F[rows], t, threshold_multiplier(weights[rows], bool(policy)))
        ours.append(np.sum((hg.power(noisy_F[rows], field, beta=beta)[0] - truth[rows]) ** 2))
    np.testing.assert_allclose(ours, golden["knn300_sure"][:, 6], rtol=1e-12, atol=0)


def test_minimiser_of_sure(golden, noisy_F, weights):
    rows = [row for row in golden["knn300_thr"] if tuple(row[:3]) != NOT_A_MINIMUM]
    assert len(rows) == len(golden["knn300_thr"]) - 1
    ours = [least_sure(noisy_F, weights, beta, policy, scale) for beta, policy, scale, *_ in rows]
    np.testing.assert_allclose(ours, np.array(rows)[:, 4:], rtol=1e-12, atol=0)


def test_minimiser_of_sure_has_the_same_rank(golden, noisy_F, weights):
    for beta, policy, scale, rank, _, _ in golden["knn300_thr"]:
        if scale >= 0:
            j = int(scale)
            spread = np.sqrt(weights[j]) if policy else None
            candidates, values = hg.sure_curve(noisy_F[j], weights[j], sigma=SIGMA, rule="power", beta=beta, threshold_scale=spread)
            assert candidates[0] == 0.0  # the stored ranks count from the smallest coefficient
            assert np.argmin(values) == rank, (beta, policy, scale)


def test_minimiser_lies_below_the_stored_one_that_is_none(golden, noisy_F, weights):
    (row,) = [row for row in golden["knn300_thr"] if tuple(row[:3]) == NOT_A_MINIMUM]
    t, value = least_sure(noisy_F, weights, *NOT_A_MINIMUM)
    assert value < row[5] - 0.1
    assert t == pytest.approx(0.5899961831, abs=1e-10)
    assert value == pytest.approx(123.6207, abs=1e-4)


@pytest.mark.parametrize(
    ("column", "beta", "policy", "level"),
    [(0, 1, 0, "scale"), (1, 1, 1, "scale"), (2, 2, 0, "scale"), (3, 2, 1, "scale"), (4, 2, 0, "global"), (5, 2, 1, "global")],
)
def test_denoised_signals(golden, frame, noisy_F, weights, column, beta, policy, level):
    t = hg.sure_thresholds(noisy_F, weights, level=level, **options(beta, policy))
    if (beta, policy, level) == (2, 1, "global"):
        t[:] = next(row[4] for row in golden["knn300_thr"] if tuple(row[:3]) == NOT_A_MINIMUM)
    field = threshold_field(noisy_F, t, threshold_multiplier(weights, bool(policy)))
    denoised = hg.synthesize(frame, hg.power(noisy_F, field, beta=beta)[0])
    np.testing.assert_allclose(denoised, golden["knn300_hat"][:, column], rtol=0, atol=1e-8)
