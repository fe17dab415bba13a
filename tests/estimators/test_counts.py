"""Leave-one-out empirical Bayes: features that never see their node, a slope that is the posterior variance, an honest SURE.

Statistical tests are at fixed seeds with a false-alarm rate of 1e-6 each, two-sided, and have a negative control that the same
test must reject.
"""

import numpy as np
import pytest
from scipy import stats

import hushgraph as hg
from hushgraph.core import _loops, use_threads
from hushgraph.datasets.generated import city, grid, path
from hushgraph.datasets.maps import manhattan
from hushgraph.datasets.signals import hotspot_counts
from hushgraph.estimators.counts import empirical_bayes as counts, surroundings as surroundings_module
from hushgraph.estimators.counts.empirical_bayes import counts_estimate, obstacle_to_counts
from hushgraph.estimators.counts.method import freedom_of_counts
from hushgraph.estimators.counts.surroundings import node_surroundings, plane, wide_sums

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
    """The values with a grid that is the same for every draw."""
    return counts.NoisyValues(y, sigma, counts.value_grid(y, sigma, top=150.0))


def features_of(surroundings, values):
    return surroundings.features_and_gains(values)[0]


def kernels_of(surroundings):
    """All kernels as dense matrices."""
    units = np.eye(surroundings.n)
    return [surroundings.sums([k], units).T for k in range(surroundings.n_kernels)]


def fitted(graph, y, sigma):
    """The fit, and its pilot."""
    features = [features_of(node_surroundings(graph), y)]
    fit = counts.fit_counts(on_grid(y, sigma), features, counts.START)
    return fit, fit.mu(features)


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
    before = features_of(surroundings, values)
    for node in (0, 17, town.n - 1):
        changed = values.copy()
        changed[node] += 100.0
        after = features_of(surroundings, changed)
        assert np.array_equal(after[:, node], before[:, node])
        assert not np.array_equal(after, before)


@pytest.mark.parametrize("coordinates", [False, True])
def test_features_are_exact_where_the_signal_follows_a_covariate(town, coordinates):
    surroundings = node_surroundings(town, coordinates=coordinates)
    n_covariates = len(surroundings.covariates)
    for c, covariate in enumerate(surroundings.covariates):
        features, gains = (part[c::n_covariates] for part in surroundings.features_and_gains(3.0 * covariate))
        reached = gains > 0
        assert np.allclose(features[reached], np.broadcast_to(3.0 * covariate, features.shape)[reached], rtol=1e-12)
        assert not features[~reached].any()


def test_hop_kernels_are_gaussians_of_the_hops():
    kernel = kernels_of(node_surroundings(path(12), coordinates=False))[1]
    hops = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    expected = np.exp(-(hops**2) / 8.0)
    assert np.allclose(kernel, np.where((hops > 0) & (expected >= 0.03), expected, 0.0), rtol=1e-14)


def test_hops_that_kernels_reach():
    surroundings = node_surroundings(path(50), coordinates=False)
    reach = [np.flatnonzero(kernel[0]).max() for kernel in kernels_of(surroundings)]
    assert max(reach) == surroundings_module.HOPS_FAR
    assert max(reach[k] for k in surroundings.narrow) == surroundings_module.HOPS_NEAR


def test_plane_kernels_are_gaussians_of_the_distance(town):
    place = plane(town)
    surroundings = node_surroundings(town)
    distance = np.linalg.norm(place[:, None] - place[None], axis=2)
    expected = np.exp(-(distance**2) / (2 * 1.8**2))
    expected[(expected < 0.03) | np.eye(town.n, dtype=bool)] = 0.0
    assert np.allclose(kernels_of(surroundings)[1], expected, atol=1e-12)


def test_walks_go_straight_on():
    square = grid(5, 5)
    walk = kernels_of(node_surroundings(square))[9][12].reshape(5, 5)
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
        kernels = kernels_of(surroundings)
        assert max(np.count_nonzero(kernel[1:], axis=1).max() for kernel in kernels) <= 1024
        assert not any(kernel.diagonal().any() for kernel in kernels)


@pytest.mark.parametrize("coordinates", [False, True])
def test_echoes_are_the_diagonal_of_the_dense_product(coordinates):
    graph = city(100, seed=2)
    surroundings = node_surroundings(graph, coordinates=coordinates)
    rng = np.random.default_rng(0)
    _, gains = surroundings.features_and_gains(np.zeros(graph.n))
    coefficients, slope = rng.random(len(gains)) * (rng.random(len(gains)) < 0.3), rng.random(graph.n)
    by_value = np.stack([features_of(surroundings, unit) for unit in np.eye(graph.n)])  # (n, features, n): y's node, feature, node
    pilot = np.einsum("jfi,f->ij", by_value, coefficients)
    n_covariates = len(surroundings.covariates)
    narrow = np.concatenate([np.arange(n_covariates) + k * n_covariates for k in surroundings.narrow])
    expected = np.einsum("jfi,j,ji->fi", by_value[:, narrow], slope, pilot)
    assert np.allclose(surroundings.echoes(coefficients, gains, slope), expected, rtol=1e-10, atol=1e-13)


@pytest.fixture
def wide_town(town, monkeypatch):
    """The town with wide neighbourhoods, which are for larger graphs."""
    monkeypatch.setattr(surroundings_module, "LARGE", 100)
    monkeypatch.setattr(surroundings_module, "CELL_WIDTHS", (4.0, 9.0))
    monkeypatch.setattr(surroundings_module, "BLOCK_SIZES", (32, 128))
    return hg.Graph.from_scipy(town.adjacency, coords=town.coords)


@pytest.mark.parametrize("coordinates", [False, True])
def test_wide_neighbourhoods_leave_the_node_out(wide_town, coordinates):
    surroundings = node_surroundings(wide_town, coordinates=coordinates)
    assert len(surroundings.wide) == 2
    n_narrow = surroundings.n_kernels * len(surroundings.covariates)
    values = np.random.default_rng(0).normal(size=wide_town.n)
    for neighbourhood in surroundings.wide:
        membership = np.zeros((wide_town.n, neighbourhood.cells.max() + 1))
        for cells, weights in zip(neighbourhood.cells, neighbourhood.weights, strict=True):
            membership[np.arange(wide_town.n), cells] += weights
        assert np.allclose(membership.sum(axis=1), 1.0)
        kernel = membership @ membership.T
        assert np.allclose(kernel.diagonal(), neighbourhood.closeness)
        np.fill_diagonal(kernel, 0.0)
        assert np.allclose(wide_sums(neighbourhood, values[None])[0], kernel @ values, atol=1e-12)
    before = features_of(surroundings, values)[n_narrow:]
    values[17] += 100.0
    after = features_of(surroundings, values)[n_narrow:]
    assert np.allclose(after[:, 17], before[:, 17], atol=1e-11)
    assert np.abs(after - before).max() > 0.01


def test_a_node_without_others_in_its_cells_has_no_wide_feature():
    place = np.array([[0.5, 0.5], [0.6, 0.4], [90.0, 90.0], [50.0, 0.0], [50.0, 20.0]])
    wide = surroundings_module.Neighbourhood.in_plane(place, 10.0)
    assert wide.has_others.tolist() == [True, True, False, False, False]


@pytest.mark.parametrize("coordinates", [False, True])
def test_echoes_of_wide_neighbourhoods(wide_town, coordinates):
    """Against the dense product. Nodes near each other count as nodes at one place, so it is close, not exact; without it nothing is."""
    surroundings = node_surroundings(wide_town, coordinates=coordinates)
    rng = np.random.default_rng(0)
    _, gains = surroundings.features_and_gains(np.zeros(wide_town.n))
    n_covariates, n_narrow = len(surroundings.covariates), surroundings.n_kernels * len(surroundings.covariates)
    coefficients, slope = np.zeros(len(gains)), 0.5 + rng.random(wide_town.n)
    coefficients[n_narrow + np.array([0, n_covariates + 1])] = 0.3, 0.5
    by_value = np.stack([features_of(surroundings, unit) for unit in np.eye(wide_town.n)])
    pilot = np.einsum("jfi,f->ij", by_value, coefficients)
    narrow = np.concatenate([np.arange(n_covariates) + k * n_covariates for k in surroundings.narrow])
    expected = np.einsum("jfi,j,ji->fi", by_value[:, narrow], slope, pilot)
    ours = surroundings.echoes(coefficients, gains, slope)
    assert ours.mean() == pytest.approx(expected.mean(), rel=0.3)
    assert np.corrcoef(ours.ravel(), expected.ravel())[0, 1] > 0.8


def test_wide_neighbourhoods_pay_under_strong_noise(monkeypatch):
    graph = city(20_000, seed=3)
    truth = hotspot_counts(graph, total=3 * graph.n, seed=1)
    y = noisy_of(truth, 100.0)
    with_wide = hg.snr(truth, counts_estimate(graph, y, 100.0).signal)
    monkeypatch.setattr(surroundings_module, "LARGE", graph.n)
    without = hg.snr(truth, counts_estimate(hg.Graph.from_scipy(graph.adjacency, coords=graph.coords), y, 100.0).signal)
    assert with_wide > without + 0.1


@pytest.mark.parametrize("coordinates", [False, True])
def test_tiles_and_threads_do_not_change_a_bit(town, pickups, coordinates, monkeypatch):
    y = noisy_of(pickups)
    whole = counts_estimate(town, y, SIGMA, coordinates=coordinates)
    for tile, threads in ((1, 1), (37, 2), (128, 3), (399, 1)):
        monkeypatch.setattr(surroundings_module, "TILE", tile)
        monkeypatch.setattr(counts, "STRETCH", tile)
        with use_threads(threads):
            tiled = counts_estimate(town, y, SIGMA, coordinates=coordinates)
        assert np.array_equal(tiled.signal, whole.signal)
        assert np.array_equal(tiled.variance, whole.variance)


def test_priors_of_large_graphs_are_fitted_to_a_sample_that_is_large_enough(monkeypatch):
    """A sample of a third of the nodes gives nearly the same estimate; one of 30 nodes does not."""
    graph = city(6000, seed=4)
    truth = hotspot_counts(graph, total=4 * graph.n, seed=1)
    y = noisy_of(truth)
    by_all = counts_estimate(graph, y, SIGMA).signal
    gaps = {}
    for sample in (2000, 30):
        monkeypatch.setattr(counts, "SAMPLE", sample)
        gaps[sample] = np.linalg.norm(counts_estimate(graph, y, SIGMA).signal - by_all) / np.linalg.norm(by_all - truth)
    assert gaps[2000] < 0.1 < gaps[30]


def test_places_that_say_nothing_are_not_used():
    rng = np.random.default_rng(0)
    n = 6000
    edges = [(i, i + 1) for i in range(n - 1)]
    apart = np.stack([np.arange(n), rng.random(n)], axis=1)
    heaped = apart.copy()
    heaped[:5000] = 1e-3 * rng.random((5000, 2)) + [[0.0, 0.0]]
    assert plane(hg.Graph.from_edges(edges, coords=apart)) is not None
    assert plane(hg.Graph.from_edges(edges, coords=np.zeros((n, 2)))) is None
    far = [(k, 5500) for k in range(5000)]  # most edges are long, and most nodes in one spot
    assert plane(hg.Graph.from_edges([*edges, *far, *((k, 5501) for k in range(5000))], coords=heaped)) is None


# ---- posterior ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("per_node", [False, True])
def test_slope_is_the_posterior_variance_over_the_noise(town, pickups, per_node):
    sigma = SIGMA * np.exp(np.random.default_rng(5).normal(0, 0.4, town.n)) if per_node else np.full(town.n, SIGMA)
    y = noisy_of(pickups, sigma)
    fit, mu = fitted(town, y, sigma)
    step = 1e-4 * SIGMA
    (above, _), (_, variance), (below, _) = (fit.posterior(on_grid(y + shift, sigma), mu) for shift in (step, 0.0, -step))
    assert np.allclose((above - below) / (2 * step), variance / sigma**2, rtol=2e-4, atol=2e-5)


def test_posterior_is_that_of_a_gamma_prior_by_quadrature():
    y, sigma, mu = np.array([-3.0, 0.5, 7.0, 40.0]), np.full(4, 2.0), np.array([0.5, 1.0, 4.0, 30.0])
    likelihood = counts.Likelihood.of(counts.NoisyValues(y, sigma, counts.value_grid(y, sigma)))
    gamma, level = np.log([0.8, 0.1, 5.0, 0.2, 1.1]), 2.0
    grid = likelihood.noisy.grid
    total, first, second = _loops.sum_moments(
        likelihood.values, likelihood.starts, likelihood.first, grid.points, *counts.gamma_table(grid, gamma, mu, level)
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
    fit, mu = fitted(town, noisy_of(pickups, seed=999), sigma)  # another draw: what is fixed must not know the noise
    for seed in range(300):
        y = noisy_of(pickups, seed=seed)
        m, v = fit.posterior(on_grid(y, sigma), mu)
        gaps.append(np.sum((y - m) ** 2 - sigma**2 + 2 * v) - np.sum((m - pickups) ** 2))
    z = np.mean(gaps) / stats.sem(gaps)
    assert (2 * stats.norm.sf(abs(z)) < FALSE_ALARM) == rejected, f"z = {z:.2f}"


@pytest.mark.statistics
@pytest.mark.parametrize(("believed", "rejected"), [(SIGMA, False), (1.25 * SIGMA, True)])
def test_penalised_sure_of_the_whole_estimate_is_near_its_error(town, pickups, believed, rejected):
    """Hyper-parameters fitted to the same noise make SURE optimistic; 2 sigma^2 per degree of freedom make up for it, give or take."""
    gaps = []
    for seed in range(30):
        estimate = counts_estimate(town, noisy_of(pickups, seed=seed), believed)
        penalty = 2 * believed**2 * freedom_of_counts(estimate.freedom)
        gaps.append((estimate.sure + penalty - np.sum((estimate.signal - pickups) ** 2)) / SIGMA**2)
    slack = 0.05 * town.n  # of the noise's own n sigma^2
    z = max(abs(np.mean(gaps)) - slack, 0) / stats.sem(gaps)
    assert (2 * stats.norm.sf(z) < FALSE_ALARM) == rejected, f"mean {np.mean(gaps):.1f} sigma^2, z = {z:.2f}"


def test_free_distributions_cost_more_where_they_follow_the_values(town, pickups):
    """In weak noise they have a peak at each large value."""
    strong, weak = (
        counts_estimate(town, pickups + sigma * np.random.default_rng(3).normal(size=town.n), sigma) for sigma in (20.0, 0.5)
    )
    assert 0 <= strong.freedom < 15
    assert weak.freedom > strong.freedom + 10


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
    surroundings = node_surroundings(town)
    others = np.flatnonzero(surroundings.sums(surroundings.narrow, np.eye(town.n)[[7]]).sum(axis=0) == 0)
    others = others[others != 7]
    assert hg.snr(pickups[others], estimate.signal[others]) > hg.snr(pickups[others], np.maximum(y, 0)[others]) + 1


def test_where_it_applies(town):
    assert obstacle_to_counts(town) is None
    assert "nodes, too few" in obstacle_to_counts(path(20))
    assert "edges" in obstacle_to_counts(hg.Graph.from_edges([(0, 1)], n=500))
    assert obstacle_to_counts(path(30_000)) is None


@pytest.mark.data
def test_taxi_pickups_of_manhattan(data_folder):
    streets = manhattan()
    truth = streets.signals["f_matched"]
    for sigma, with_places, graph_only in ((12.99, 5.5, 5.1), (4.22, 9.9, 9.6)):
        y = noisy_of(truth, sigma, seed=100)
        assert hg.snr(truth, counts_estimate(streets.graph, y, sigma).signal) > with_places
        assert hg.snr(truth, counts_estimate(streets.graph, y, sigma, coordinates=False).signal) > graph_only
