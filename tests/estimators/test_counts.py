"""Leave-one-out empirical Bayes: features that never see their node, a slope that is the posterior variance, an honest SURE.

Statistical tests are at fixed seeds with a false-alarm rate of 1e-6 each, two-sided, and have a negative control that the same
test must reject.
"""

import numpy as np
import pytest
from scipy import stats

import hushgraph as hg
from hushgraph.core import _loops
from hushgraph.datasets.generated import city, grid, path
from hushgraph.datasets.maps import manhattan
from hushgraph.datasets.signals import hotspot_counts
from hushgraph.estimators.counts import empirical_bayes as counts
from hushgraph.estimators.counts.empirical_bayes import counts_estimate, obstacle_to_counts
from hushgraph.estimators.counts.surroundings import node_surroundings, plane

FALSE_ALARM = 1e-6
SIGMA = 4.0


@pytest.fixture(scope="module")
def town():
    return city(400, seed=3)


@pytest.fixture(scope="module")
def pickups(town):
    return hotspot_counts(town, total=4 * town.n, seed=1)


def noisy_of(truth, sigma=SIGMA, seed=0):
    return truth + sigma * np.random.default_rng(seed).normal(size=len(truth))


def on_grid(y, sigma):
    """The likelihood on a grid that is the same for every draw."""
    return counts.likelihood_on(y, sigma, top=150.0)


def fitted(graph, y, sigma):
    return counts.fit_pass(on_grid(y, sigma), node_surroundings(graph).features(y), counts.START)


def degenerate_graphs():
    places = [(0.0, 0.0), (1.0, 0.0), (2.0, 0.5)]
    return {
        "three nodes": hg.Graph.from_edges([(0, 1), (1, 2)], coords=places),
        "one edge": hg.Graph.from_edges([(0, 1)], coords=places[:2]),
        "one node": hg.Graph.from_edges(np.empty((0, 2), dtype=int), n=1),
        "no edges": hg.Graph.from_edges(np.empty((0, 2), dtype=int), n=6),
        "all in one place": hg.Graph.from_edges([(0, 1), (1, 2), (0, 3)], coords=np.zeros((4, 2))),
        "isolated nodes": hg.Graph.from_edges([(0, 1), (1, 2), (2, 0)], n=30, coords=np.random.default_rng(0).random((30, 2))),
        "star": hg.Graph.from_edges([(0, i) for i in range(1, 400)]),
        "weighted": hg.Graph.from_edges([(i, i + 1) for i in range(40)], weights=np.geomspace(1e-6, 1e6, 40)),
        "in space": hg.Graph.from_edges([(i, i + 1) for i in range(9)], coords=np.random.default_rng(0).random((10, 3))),
    }


# ---- surroundings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coordinates", [False, True])
def test_no_feature_sees_its_own_node(town, coordinates):
    surroundings = node_surroundings(town, coordinates=coordinates)
    assert surroundings.coordinates == coordinates
    values = np.random.default_rng(0).normal(size=town.n)
    before = surroundings.features(values)
    for node in (0, 17, town.n - 1):
        changed = values.copy()
        changed[node] += 100.0
        after = surroundings.features(changed)
        assert np.array_equal(after[node], before[node])
        assert not np.array_equal(after, before)


@pytest.mark.parametrize("coordinates", [False, True])
def test_features_are_exact_where_the_signal_follows_a_covariate(town, coordinates):
    surroundings = node_surroundings(town, coordinates=coordinates)
    n_covariates = len(surroundings.covariates)
    for c, covariate in enumerate(surroundings.covariates):
        columns = surroundings.features(3.0 * covariate)[:, c::n_covariates]
        reached = surroundings.gains[:, c, :].T > 0
        assert np.allclose(columns[reached], np.broadcast_to(3.0 * covariate[:, None], columns.shape)[reached], rtol=1e-12)
        assert not columns[~reached].any()


def test_hop_kernels_are_gaussians_of_the_hops():
    kernel = node_surroundings(path(12), coordinates=False).kernels[1].toarray()
    hops = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    expected = np.exp(-(hops**2) / 8.0)
    assert np.allclose(kernel, np.where((hops > 0) & (expected >= 0.03), expected, 0.0), rtol=1e-14)


def test_plane_kernels_are_gaussians_of_the_distance(town):
    place = plane(town)
    surroundings = node_surroundings(town)
    distance = np.linalg.norm(place[:, None] - place[None], axis=2)
    expected = np.exp(-(distance**2) / (2 * 1.8**2))
    expected[(expected < 0.03) | np.eye(town.n, dtype=bool)] = 0.0
    assert np.allclose(surroundings.kernels[1].toarray(), expected, atol=1e-12)


def test_walks_go_straight_on():
    square = grid(5, 5)
    walk = node_surroundings(square).kernels[9].toarray()[12].reshape(5, 5)
    near, far = 1.0, np.exp(-1 / 4)
    assert np.allclose(walk[2], [far, near, 0, near, far])
    assert np.allclose(walk[:, 2], [far, near, 0, near, far])
    assert np.count_nonzero(walk) == 8


def test_degrees_and_metres_give_the_same_surroundings(town):
    north = 111_195.08
    east = north * np.cos(np.radians(40.0))
    degrees = (town.coords - town.coords.mean(axis=0)) / [east, north] + [-74.0, 40.0]
    globe = hg.Graph.from_scipy(town.adjacency, coords=degrees, crs="lonlat")
    assert np.allclose(plane(globe), plane(town), atol=1e-6)


def test_surroundings_are_kept_and_hubs_are_capped():
    rng = np.random.default_rng(1)
    hub = hg.Graph.from_edges([(0, i) for i in range(1, 1200)], coords=rng.random((1200, 2)))
    for coordinates in (False, True):
        surroundings = node_surroundings(hub, coordinates=coordinates)
        assert node_surroundings(hub, coordinates=coordinates) is surroundings
        rows = [np.diff(kernel.indptr)[1:].max() for kernel in surroundings.kernels]
        assert max(rows) <= 1024
        assert all(kernel.diagonal().max() == 0 for kernel in surroundings.kernels)


@pytest.mark.parametrize("coordinates", [False, True])
def test_echoes_are_the_diagonal_of_the_dense_product(coordinates):
    graph = city(100, seed=2)
    surroundings = node_surroundings(graph, coordinates=coordinates)
    rng = np.random.default_rng(0)
    coefficients, slope = (
        rng.random(surroundings.gains[..., 0].size) * (rng.random(surroundings.gains[..., 0].size) < 0.3),
        rng.random(graph.n),
    )
    unit_features = np.stack(
        [surroundings.features(unit) for unit in np.eye(graph.n)], axis=1
    )  # (n, n, columns): row, y's node, feature
    pilot = unit_features @ coefficients
    narrow = np.concatenate(
        [np.arange(len(surroundings.covariates)) + k * len(surroundings.covariates) for k in surroundings.narrow]
    )
    expected = np.einsum("ijf,j,ji->if", unit_features[:, :, narrow], slope, pilot)
    assert np.allclose(surroundings.echoes(coefficients, slope), expected, rtol=1e-10, atol=1e-13)


# ---- posterior ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("per_node", [False, True])
def test_slope_is_the_posterior_variance_over_the_noise(town, pickups, per_node):
    sigma = SIGMA * np.exp(np.random.default_rng(5).normal(0, 0.4, town.n)) if per_node else np.full(town.n, SIGMA)
    y = noisy_of(pickups, sigma)
    fit = fitted(town, y, sigma)
    step = 1e-4 * SIGMA
    (above, _), (_, variance), (below, _) = (fit.posterior(on_grid(y + shift, sigma), fit.mu) for shift in (step, 0.0, -step))
    assert np.allclose((above - below) / (2 * step), variance / sigma**2, rtol=2e-4, atol=2e-5)


def test_posterior_is_that_of_a_gamma_prior_by_quadrature():
    y, sigma, mu = np.array([-3.0, 0.5, 7.0, 40.0]), np.full(4, 2.0), np.array([0.5, 1.0, 4.0, 30.0])
    likelihood = counts.likelihood_on(y, sigma)
    gamma, level = np.log([0.8, 0.1, 5.0, 0.2, 1.1]), 2.0
    total, first, second = _loops.sum_moments(
        likelihood.values, likelihood.starts, likelihood.first, likelihood.grid, *counts.gamma_table(likelihood, gamma, mu, level)
    )
    f = (np.arange(400_000) + 0.5) * 2.5e-4
    for i in range(4):
        s = 0.2 * level + 1.1 * mu[i]
        prior = 0.9 * stats.gamma.pdf(f, 0.8, scale=s / 0.8) + 0.1 * stats.gamma.pdf(f, 0.8, scale=5 * s / 0.8)
        mass = prior * np.exp(-((y[i] - f) ** 2 - (y[i] - max(y[i], 0)) ** 2) / 8)
        assert first[i] / total[i] == pytest.approx((mass @ f) / mass.sum(), rel=0.01)
        assert second[i] / total[i] == pytest.approx((mass @ f**2) / mass.sum(), rel=0.01)


# ---- SURE --------------------------------------------------------------------------------------------------------


@pytest.mark.statistics
@pytest.mark.parametrize(("believed", "rejected"), [(SIGMA, False), (1.1 * SIGMA, True)])
def test_sure_is_unbiased_at_fixed_hyper_parameters(town, pickups, believed, rejected):
    sigma, gaps = np.full(town.n, believed), []
    fit = fitted(town, noisy_of(pickups, seed=999), sigma)  # another draw: what is fixed must not know the noise
    for seed in range(300):
        y = noisy_of(pickups, seed=seed)
        m, v = fit.posterior(on_grid(y, sigma), fit.mu)
        gaps.append(np.sum((y - m) ** 2 - sigma**2 + 2 * v) - np.sum((m - pickups) ** 2))
    z = np.mean(gaps) / stats.sem(gaps)
    assert (2 * stats.norm.sf(abs(z)) < FALSE_ALARM) == rejected, f"z = {z:.2f}"


@pytest.mark.statistics
@pytest.mark.parametrize(("believed", "rejected"), [(SIGMA, False), (1.25 * SIGMA, True)])
def test_penalised_sure_of_the_whole_estimate_is_near_its_error(town, pickups, believed, rejected):
    """Hyper-parameters fitted to the same noise make SURE optimistic; 2 sigma^2 per parameter make up for it, give or take."""
    gaps = []
    for seed in range(30):
        estimate = counts_estimate(town, noisy_of(pickups, seed=seed), believed)
        penalty = 2 * believed**2 * (estimate.active + 5)
        gaps.append((estimate.sure + penalty - np.sum((estimate.signal - pickups) ** 2)) / SIGMA**2)
    slack = 0.05 * town.n  # of the noise's own n sigma^2
    z = max(abs(np.mean(gaps)) - slack, 0) / stats.sem(gaps)
    assert (2 * stats.norm.sf(z) < FALSE_ALARM) == rejected, f"mean {np.mean(gaps):.1f} sigma^2, z = {z:.2f}"


# ---- the estimate ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coordinates", [False, True])
@pytest.mark.parametrize(("sigma", "least"), [(2.0, 0.6), (8.0, 2.5), (20.0, 3.5)])
def test_far_better_than_clipped_noise(town, pickups, sigma, least, coordinates):
    gains = []
    for seed in range(3):
        y = noisy_of(pickups, sigma, seed)
        estimate = counts_estimate(town, y, sigma, coordinates=coordinates)
        gains.append(hg.snr(pickups, estimate.signal) - hg.snr(pickups, np.maximum(y, 0)))
    assert np.mean(gains) > least


def test_error_bars_hold(town, pickups):
    ratios = []
    for seed in range(5):
        estimate = counts_estimate(town, noisy_of(pickups, seed=seed), SIGMA)
        ratios.append(np.sum((estimate.signal - pickups) ** 2) / estimate.variance.sum())
    assert 0.7 < np.mean(ratios) < 1.4


def test_noise_per_node_is_used(town, pickups):
    sigma = SIGMA * np.where(np.arange(town.n) % 2, 0.2, 3.0)
    y = noisy_of(pickups, sigma)
    known = counts_estimate(town, y, sigma)
    assumed = counts_estimate(town, y, float(np.sqrt(np.mean(sigma**2))))
    assert hg.snr(pickups, known.signal) > hg.snr(pickups, assumed.signal) + 2
    assert np.array_equal(counts_estimate(town, y, SIGMA).signal, counts_estimate(town, y, np.full(town.n, SIGMA)).signal)


def test_equal_input_gives_equal_bits_and_units_do_not_matter(town, pickups):
    y = noisy_of(pickups)
    one = counts_estimate(town, y, SIGMA)
    again = counts_estimate(hg.Graph.from_scipy(town.adjacency, coords=town.coords), y.copy(), SIGMA)
    assert np.array_equal(one.signal, again.signal)
    assert np.array_equal(one.variance, again.variance)
    assert one.sure == again.sure
    scaled = counts_estimate(town, 2.0**20 * y, 2.0**20 * SIGMA)
    assert np.allclose(scaled.signal, 2.0**20 * one.signal, rtol=1e-3, atol=1e-3 * 2.0**20 * SIGMA)


@pytest.mark.parametrize("name", degenerate_graphs())
@pytest.mark.parametrize("coordinates", [False, True])
def test_degenerate_graphs_give_finite_estimates(name, coordinates):
    graph = degenerate_graphs()[name]
    rng = np.random.default_rng(0)
    for y in (
        np.zeros(graph.n),
        np.full(graph.n, 7.0),
        -5 - rng.random(graph.n),
        rng.normal(size=graph.n),
        1e5 * rng.random(graph.n),
    ):
        estimate = counts_estimate(graph, y, 1.0, coordinates=coordinates)
        assert estimate.signal.shape == estimate.variance.shape == (graph.n,)
        for values in (estimate.signal, estimate.variance):
            assert (values >= 0).all()
            assert np.isfinite(values).all()
        assert np.isfinite(estimate.sure)


def test_no_signal_stays_no_signal(town):
    y = noisy_of(np.zeros(town.n))
    estimate = counts_estimate(town, y, SIGMA)
    assert np.mean(estimate.signal**2) < 0.02 * SIGMA**2


def test_constant_signal_is_found(town):
    estimate = counts_estimate(town, noisy_of(np.full(town.n, 10.0)), SIGMA)
    assert np.sqrt(np.mean((estimate.signal - 10) ** 2)) < 0.35 * SIGMA


def test_one_huge_value_stays_and_disturbs_nobody(town, pickups):
    y = noisy_of(pickups)
    loud = y.copy()
    loud[7] = 1e6
    estimate = counts_estimate(town, loud, SIGMA)
    assert estimate.signal[7] == pytest.approx(1e6, rel=1e-3)
    others = np.flatnonzero(node_surroundings(town).nearby[[7]].toarray()[0] == 0)
    others = others[others != 7]
    assert hg.snr(pickups[others], estimate.signal[others]) > hg.snr(pickups[others], np.maximum(y, 0)[others]) + 1


def test_where_it_applies(town):
    assert obstacle_to_counts(town) is None
    assert "nodes, too few" in obstacle_to_counts(path(20))
    assert "edges" in obstacle_to_counts(hg.Graph.from_edges([(0, 1)], n=500))
    assert "too much memory" in obstacle_to_counts(path(30_000))


@pytest.mark.data
def test_taxi_pickups_of_manhattan(data_folder):
    streets = manhattan()
    truth = streets.signals["f_matched"]
    for sigma, with_places, graph_only in ((12.99, 5.5, 5.1), (4.22, 9.9, 9.6)):
        y = noisy_of(truth, sigma, seed=100)
        assert hg.snr(truth, counts_estimate(streets.graph, y, sigma).signal) > with_places
        assert hg.snr(truth, counts_estimate(streets.graph, y, sigma, coordinates=False).signal) > graph_only
