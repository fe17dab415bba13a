"""Block thresholding: partitions are what they claim, thresholds are exact minimisers, divergence and SURE are right.

Statistical tests are two-sided z-tests at a fixed seed with the false-alarm rate stated beside them. What a test asserts it
must also reject, of a negative control that is a little wrong.
"""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse, stats

import hushgraph as hg
from hushgraph.core.threads import thread_count, use_threads
from hushgraph.graphs.clusters import block_partition
from hushgraph.wavelets.blocks import SIZES, apply_block_thresholds, block_jacobian, block_mixture, block_thresholds
from hushgraph.wavelets.monte_carlo import probes
from hushgraph.wavelets.transform import forward, inverse

from ..support.samples import sixty_nodes, waves_and_spikes
from ..support.strategies import graphs

SIGMA, DRAWS, FALSE_ALARM = 1.3, 2000, 1e-6


@pytest.fixture(scope="module")
def graph():
    return sixty_nodes()


@pytest.fixture(scope="module")
def truth(graph):
    return waves_and_spikes(graph.n)


def unit_probes(n, sigma=1.0):
    """Probes whose mean of products is the identity (or the variances) without error: roots of n times unit vectors."""
    return np.sqrt(n) * np.eye(n) * sigma


def fixed_thresholds(frame):
    return SIGMA * np.linspace(0.1, 0.6, frame.n_scales)


# ---- partitions -------------------------------------------------------------------------------------------------


def assert_partition(graph, blocks, size):
    counts = np.bincount(blocks)
    assert blocks.shape == (graph.n,)
    assert counts.min() >= 1, "block numbers must have no gaps"
    assert counts.max() <= max(2 * size - 1, 1)
    row, column = graph.adjacency.nonzero()
    inside = blocks[row] == blocks[column]
    within = sparse.coo_array((np.ones(inside.sum()), (row[inside], column[inside])), shape=(graph.n, graph.n))
    assert sparse.csgraph.connected_components(within)[0] == len(counts), "blocks must be connected"


@given(graph=graphs(min_nodes=1), size=st.sampled_from([1, 2, 3, 4, 8, 32, 1000]))
def test_blocks_are_connected_bounded_and_cover_all(graph, size):
    blocks = block_partition(graph, size=size)
    assert_partition(graph, blocks, size)
    graph.cache.clear()
    np.testing.assert_array_equal(block_partition(graph, size=size), blocks)
    if size == 1:
        assert len(np.unique(blocks)) == graph.n
    if size >= graph.n:
        assert len(np.unique(blocks)) == len(np.unique(graph.components))


@pytest.mark.parametrize("size", [4, 8, 16, 32])
def test_blocks_of_a_street_network_have_about_the_size_asked_for(size):
    graph = hg.datasets.city(1500)
    blocks = block_partition(graph, size=size)
    assert_partition(graph, blocks, size)
    counts = np.bincount(blocks)
    assert 0.8 * size < counts.mean() < 1.3 * size
    assert counts[counts < size / 2].sum() < 0.02 * graph.n
    with pytest.raises(AssertionError, match="connected"):
        assert_partition(graph, np.roll(blocks, 1), size)


def test_a_hub_keeps_its_block_small():
    star = hg.Graph.from_edges([(0, i) for i in range(1, 100)], n=100)
    counts = np.bincount(block_partition(star, size=8))
    assert sorted(counts)[-2:] == [1, 15]  # leaves touch nothing but the hub


@pytest.mark.parametrize("size", [0, -1, 2.0, True, "4"])
def test_sizes_that_are_no_counts_are_refused(graph, size):
    with pytest.raises(ValueError, match="size must be an integer"):
        block_partition(graph, size=size)


# ---- thresholds against brute force -----------------------------------------------------------------------------


def sure_by_hand(F, blocks, t, weights, bands, sigma, scale=None):
    """SURE of one scale at each of the thresholds t, block by block from the definition."""
    u, total = np.asarray(t, dtype=float) ** 2, 0.0
    for b in range(blocks.max() + 1):
        here = blocks == b
        x, q, trace = F[here], np.sum(F[here] ** 2), weights[here].sum()
        s = here.sum() if scale is None else np.sum(scale[here] ** 2)
        dropped = (u > 0) & (q <= u * s * (1 + 1e-13))
        share = np.where(dropped, 1.0, u * s / q if q > 0 else 0.0)
        divergence = (1 - share) * trace + (2 * share * np.mean((bands[:, here] @ x) ** 2) / q if q > 0 else 0.0)
        total = total + share**2 * q + sigma**2 * (2 * np.where(dropped, 0.0, divergence) - trace)
    return total


values = st.floats(-1e3, 1e3).map(lambda x: round(x, 6)) | st.integers(-3, 3).map(float)  # integers make ties and zeros
cases = st.lists(
    st.tuples(values, st.floats(0, 2), st.integers(0, 7), st.sampled_from([0.0, 0.5, 1.0, 2.0])), min_size=1, max_size=24
)


@given(case=cases, sigma=st.sampled_from([0.01, 1.0, 3.0, 50.0]), scaled=st.booleans(), seed=st.integers(0, 9))
def test_minimiser_is_that_of_brute_force(case, sigma, scaled, seed):
    F, weights, blocks, scale = (np.array(part) for part in zip(*case, strict=True))
    blocks, scale = np.unique(blocks, return_inverse=True)[1].ravel(), scale if scaled else None
    bands = np.random.default_rng(seed).normal(size=(2, len(F)))
    options = {"sigma": sigma, "threshold_scale": None if scale is None else scale[None]}
    t, found = block_thresholds(F[None], blocks, weights[None], bands[:, None], **options)
    q = np.bincount(blocks, F**2)
    s = np.bincount(blocks, None if scale is None else scale**2)
    z = np.sqrt(np.divide(q, s, out=np.zeros(len(q)), where=s > 0))
    grid = [0.0, 1e-150, *z[z > 0], *np.linspace(0, 1.01 * z.max() + 1e-9, 400), *np.geomspace(1e-6, 1.0, 60) * (z.max() + 1e-9)]
    brute = sure_by_hand(F, blocks, grid, weights, bands, sigma, scale).min()
    size = np.sum(F**2) + sigma**2 * (np.sum(weights) + np.sum(bands**2))
    assert found[0] <= brute + 1e-11 * size, f"t = {t} has SURE {found}, but {brute} is possible"
    assert found[0] == pytest.approx(sure_by_hand(F, blocks, t[0], weights, bands, sigma, scale), abs=1e-11 * size)
    h, divergence = apply_block_thresholds(
        F[None], blocks, t, weights[None], bands[:, None], threshold_scale=None if scale is None else scale[None]
    )
    applied = np.sum((h - F) ** 2) + sigma**2 * (2 * divergence[0] - np.sum(weights))
    assert found[0] == pytest.approx(applied, abs=1e-11 * size)


@pytest.mark.parametrize("size", [1, 4, 16])
def test_minimiser_on_many_blocks_is_that_of_brute_force(size):
    """Thousands of values, so that most bins are closed; 1,500 thresholds beside all those at which SURE jumps."""
    graph = hg.datasets.grid(40, 40)
    rng = np.random.default_rng(size)
    F, weights, bands = rng.normal(size=1600) * np.exp(rng.normal(size=1600)), rng.uniform(0, 1, 1600), rng.normal(size=(3, 1600))
    blocks = block_partition(graph, size=size)
    q, s, trace = np.bincount(blocks, F**2), np.bincount(blocks), np.bincount(blocks, weights)
    along = np.mean([np.bincount(blocks, F * band) ** 2 for band in bands], axis=0)

    def sure(u):
        kept = q / s > u
        share = np.where(kept, u * s / q, 1.0)
        return np.sum(share**2 * q) + np.sum(2 * ((1 - share) * trace + 2 * share * along / q)[kept]) - np.sum(trace)

    t, found = block_thresholds(F[None], blocks, weights[None], bands[:, None], sigma=1.0)
    brute = min(sure(u) for u in [0.0, *(q / s), *np.geomspace(1e-4, 30, 1500)])
    assert found[0] <= brute + 1e-10 * np.sum(q)
    assert found[0] == pytest.approx(sure(t[0] ** 2), rel=1e-10)
    for off in (0.9, 1.1):
        assert sure((off * t[0]) ** 2) > brute + 1e-10 * np.sum(q), "another threshold must be seen to be worse"


def test_blocks_of_one_node_are_the_papers_rule(graph, truth):
    frame = hg.exact_frame(graph)
    F, weights = hg.analyze(frame, truth), hg.exact_weights(frame)
    bands = forward(frame, unit_probes(graph.n))
    t, found = block_thresholds(F, np.arange(graph.n), weights, bands, sigma=SIGMA)
    expected = hg.sure_thresholds(F, weights, sigma=SIGMA)
    np.testing.assert_allclose(t, expected, rtol=1e-14)
    assert found.sum() == pytest.approx(hg.sure(F, expected, weights=weights, sigma=SIGMA))
    pairs, _ = block_thresholds(F, np.arange(graph.n) // 2, weights, bands, sigma=SIGMA)
    assert not np.isclose(pairs, expected, rtol=1e-3).all()


# ---- Jacobian and divergence ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 4, 16])
@pytest.mark.parametrize("scaled", [False, True])
def test_jacobian_is_that_of_finite_differences(graph, truth, size, scaled):
    """Two directions; without the turn of the block, h(v) at the thresholds of F, it must fail."""
    frame, rng = hg.exact_frame(graph), np.random.default_rng(0)
    F, v = hg.analyze(frame, truth), rng.normal(size=(2, frame.n_scales, graph.n))
    blocks, t = block_partition(graph, size=size), fixed_thresholds(frame)
    scale = rng.uniform(0.5, 2, F.shape) if scaled else None

    def h(x):
        return apply_block_thresholds(x, blocks, t, np.ones(F.shape), v, threshold_scale=scale)[0]

    difference = np.array([(h(F + 1e-6 * u) - h(F - 1e-6 * u)) / 2e-6 for u in v])
    np.testing.assert_allclose(block_jacobian(F, blocks, t, v, scale=scale), difference, atol=1e-7)
    kept = np.divide(h(F), F, out=np.zeros(F.shape), where=F != 0)
    assert not np.allclose(kept * v, difference, atol=1e-7)


@pytest.mark.statistics
def test_divergence_is_that_of_finite_differences(graph, truth):
    """60 probes, |z| < 4: a false-alarm rate of 2e-4 (Student's t). Without the turn of the block it must fail."""
    frame = hg.exact_frame(graph)
    y, t = truth + np.random.default_rng(5).normal(size=graph.n), 3 * fixed_thresholds(frame)
    blocks, bands, weights = block_partition(graph, size=8), forward(frame, unit_probes(graph.n)), hg.exact_weights(frame)

    def estimator(signal):
        return hg.synthesize(frame, apply_block_thresholds(hg.analyze(frame, signal), blocks, t, weights, bands)[0])

    F = hg.analyze(frame, y)
    value, se = hg.monte_carlo_divergence(estimator, y, n_probes=60, step=1e-6)
    exact = apply_block_thresholds(F, blocks, t, weights, bands)[1].sum()
    stiff = apply_block_thresholds(F, blocks, t, weights, 0 * bands)[1].sum()
    assert abs(value - exact) < 4 * se
    assert abs(value - stiff) > 4 * se
    product = block_jacobian(F, blocks, t, bands)
    assert np.mean(np.sum(bands * product, axis=(1, 2))) == pytest.approx(exact)


# ---- SURE is unbiased -------------------------------------------------------------------------------------------


def z_of(difference):
    return difference.mean() / stats.sem(difference)


def assert_unbiased(difference):
    z = z_of(np.asarray(difference))
    assert 2 * stats.norm.sf(abs(z)) > FALSE_ALARM, f"SURE is biased: z = {z:.2f}"


def assert_rejected(difference):
    z = z_of(np.asarray(difference))
    assert 2 * stats.norm.sf(abs(z)) < FALSE_ALARM, f"the test has no power: z = {z:.2f}"


@pytest.mark.statistics
@pytest.mark.parametrize("case", ["exact G", "one probe per draw", "sigma per node", "scaled"])
def test_sure_is_unbiased_for_coefficients_and_signal(graph, truth, case):
    """2,000 draws of the noise, fixed thresholds, false-alarm rate 1e-6; sigma off by 10 % must be caught."""
    frame = hg.exact_frame(graph)
    sigma = np.geomspace(0.3, 3.0, graph.n) if case == "sigma per node" else np.full(graph.n, SIGMA)
    blocks, t = block_partition(graph, size=4), fixed_thresholds(frame)
    noise, clean = np.random.default_rng(3).normal(size=(DRAWS, graph.n)), hg.analyze(frame, truth)
    weights, bands = hg.exact_weights(frame, sigma=sigma), forward(frame, unit_probes(graph.n, sigma))
    scale = np.sqrt(hg.exact_weights(frame)) if case == "scaled" else None
    trace = weights.sum()
    coefficients, signals = {1.0: [], 1.21: []}, {1.0: [], 1.21: []}
    drawn = forward(frame, sigma * probes(graph.n, DRAWS)) if case == "one probe per draw" else None
    noisy = truth + sigma * noise
    for k, F in enumerate(forward(frame, noisy)):
        if drawn is not None:
            bands = drawn[k : k + 1]
            weights, trace = bands[0] ** 2, np.sum(bands**2)
        h, divergence = apply_block_thresholds(F, blocks, t, weights, bands, threshold_scale=scale)
        estimate = inverse(frame, h[None])[0]
        for factor in coefficients:
            sure = np.sum((h - F) ** 2) + factor * (2 * divergence.sum() - trace)
            coefficients[factor].append(sure - np.sum((h - clean) ** 2))
            sure = hg.signal_sure(noisy[k], estimate, divergence=factor * divergence.sum(), sigma=np.sqrt(factor) * sigma)
            signals[factor].append(sure - np.sum((estimate - truth) ** 2))
    for differences in (coefficients, signals):
        assert_unbiased(differences[1.0])
        assert_rejected(differences[1.21])


# ---- put together -----------------------------------------------------------------------------------------------


def probed(frame, n_probes=8):
    bands = forward(frame, probes(frame.graph.n, n_probes))
    return bands, np.mean(bands**2, axis=0)


@pytest.fixture(scope="module")
def steps():
    """A frame of a grid, a signal in steps, its noise, and the noisy coefficients."""
    graph = hg.datasets.grid(30, 30)
    frame, signal = hg.chebyshev_frame(graph), hg.piecewise_constant_signal(graph, seed=1)
    sigma = 0.3 * signal.std()
    return frame, signal, sigma, hg.analyze(frame, signal + sigma * np.random.default_rng(0).normal(size=graph.n))


@pytest.mark.parametrize("scaled", [False, True])
def test_a_mixture_is_the_mean_of_its_parts(steps, scaled):
    """Shares by their formula; equal shares, and those of a temperature of 1, must be told from them."""
    frame, _, sigma, F = steps
    bands, weights = probed(frame)
    mixed = block_mixture(frame, F, bands, weights, sigma**2, threshold_scale=scaled)
    scale, partitions = np.sqrt(weights) if scaled else None, [block_partition(frame.graph, size=size) for size in SIZES]
    t, sure = np.moveaxis(
        [block_thresholds(F, own, weights, bands, sigma=sigma, threshold_scale=scale) for own in partitions], 1, 0
    )
    pairs = zip(partitions, t, strict=True)
    parts, divergence = zip(
        *(apply_block_thresholds(F, own, u, weights, bands, threshold_scale=scale) for own, u in pairs), strict=True
    )

    def shares(temperature):
        raw = np.exp((sure.min(axis=0) - sure) / (temperature * sigma**2 * np.sqrt(2 * weights.sum(axis=1))))
        return raw / raw.sum(axis=0)

    np.testing.assert_array_equal(mixed.thresholds, t)
    np.testing.assert_allclose(mixed.shares, shares(0.5))
    np.testing.assert_allclose(mixed.bands, np.einsum("mj,mji->ji", shares(0.5), parts), atol=1e-12)
    np.testing.assert_allclose(mixed.divergence, np.sum(shares(0.5) * divergence, axis=0))
    for wrong in (shares(1.0), np.full_like(sure, 1 / len(SIZES))):
        assert not np.allclose(mixed.bands, np.einsum("mj,mji->ji", wrong, parts), atol=1e-3 * sigma)


@pytest.mark.statistics
def test_a_mixture_is_better_than_the_papers_rule_where_neighbours_are_alike(steps):
    """By 0.48 dB on average, 4.5 standard errors above the bound; blocks of nodes far apart must gain less than it (7 below)."""
    frame, signal, sigma, _ = steps
    bands, weights = probed(frame)
    rng, gains = np.random.default_rng(0), {"neighbours": [], "strangers": []}
    for _ in range(6):
        F = hg.analyze(frame, signal + sigma * rng.normal(size=frame.graph.n))
        paper = hg.sure_thresholds(F, weights, sigma=sigma)
        base = hg.snr(signal, hg.synthesize(frame, hg.shrink(F, paper[:, None])[0]))
        for name, order in (("neighbours", np.arange(frame.graph.n)), ("strangers", rng.permutation(frame.graph.n))):
            found = block_mixture(frame, F[:, order], bands[:, :, order], weights[:, order], sigma**2)
            estimate = hg.synthesize(frame, found.bands[:, np.argsort(order)])
            gains[name].append(hg.snr(signal, estimate) - base)
            sure = np.sum((found.bands - F[:, order]) ** 2) + sigma**2 * (2 * found.divergence.sum() - weights.sum())
            assert sure < hg.sure(F, paper, weights=weights, sigma=sigma)
    assert np.mean(gains["neighbours"]) > 0.3 > np.mean(gains["strangers"]), gains


def test_one_sigma_for_all_or_the_same_at_every_node(steps):
    """Weights and probes may hold sigma; shares that forget it must be told from those that do not."""
    frame, _, sigma, F = steps
    bands, weights = probed(frame)
    once = block_mixture(frame, F, bands, weights, sigma**2)
    held = (frame, F, sigma * bands, sigma**2 * weights, 1.0)
    for one, other in zip(once, block_mixture(*held, sigma=np.full(frame.graph.n, sigma)), strict=True):
        factor = sigma**2 if one is once.divergence else 1.0
        np.testing.assert_allclose(other, factor * one, rtol=1e-6, atol=1e-9)
    assert not np.allclose(block_mixture(*held).shares, once.shares, atol=1e-3)


def test_bits_do_not_depend_on_threads():
    graph = hg.datasets.grid(90, 90)
    frame = hg.chebyshev_frame(graph)
    F = hg.analyze(frame, np.random.default_rng(0).normal(size=graph.n))
    bands, weights = probed(frame, 1)
    found = []
    for count in {1, thread_count()}:
        with use_threads(count):
            moved = block_jacobian(F, block_partition(graph, size=8), 0.1, bands)
            found.append((*block_mixture(frame, F, bands, weights, 1.0), moved))
    for one, other in zip(found[0], found[-1], strict=True):
        np.testing.assert_array_equal(one, other)


def test_float32_stays_float32(graph, truth):
    frame = hg.chebyshev_frame(graph)
    F = hg.analyze(frame, truth)
    bands, weights = probed(frame)
    single, double = (block_mixture(frame, F.astype(kind), bands, weights, 1.0) for kind in (np.float32, np.float64))
    assert single.bands.dtype == np.float32
    assert double.bands.dtype == np.float64
    np.testing.assert_allclose(single.bands, double.bands, atol=1e-4)
    np.testing.assert_allclose(single.divergence, double.divergence, rtol=1e-4)


@pytest.mark.parametrize("edges", [[], [(0, 1)]])
@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("scaled", [False, True])
def test_tiny_graphs_and_zero_signals(n, edges, scaled):
    graph = hg.Graph.from_edges(np.array([e for e in edges if max(e) < n], dtype=int).reshape(-1, 2), n=n)
    frame = hg.chebyshev_frame(graph)
    bands, weights = probed(frame)
    for signal in (np.zeros(n), np.full(n, 100.0), np.arange(n) * 1.0):
        found = block_mixture(frame, hg.analyze(frame, signal), bands, weights, 1.0, threshold_scale=scaled)
        assert all(np.isfinite(part).all() for part in found)
        assert found.bands.any() or signal.max() < 100  # what stands far above the noise is not dropped
    zero = block_mixture(frame, np.zeros((frame.n_scales, n)), bands, weights, 1.0, threshold_scale=scaled)
    assert not zero.bands.any()
    assert not zero.divergence.any()  # a threshold above 0 is best: all are dropped


def test_threshold_zero_is_the_identity(graph, truth):
    frame = hg.chebyshev_frame(graph)
    F = hg.analyze(frame, truth)
    bands, weights = probed(frame)
    h, divergence = apply_block_thresholds(F, block_partition(graph, size=4), 0.0, weights, bands)
    np.testing.assert_array_equal(h, F)
    np.testing.assert_allclose(divergence, weights.sum(axis=1))
    h, divergence = apply_block_thresholds(F, block_partition(graph, size=4), np.inf, weights, bands)
    assert not h.any()
    assert not divergence.any()


def test_what_does_not_fit_is_refused(graph, truth):
    frame = hg.chebyshev_frame(graph)
    F, blocks = hg.analyze(frame, truth), block_partition(graph, size=4)
    bands, weights = probed(frame)
    with pytest.raises(ValueError, match="blocks must be numbers"):
        block_thresholds(F, blocks[:-1], weights, bands, sigma=1.0)
    for wrong in (blocks - 1, blocks + graph.n, blocks * 1.0, np.tile(blocks, (frame.n_scales, 1))):
        with pytest.raises(ValueError, match="blocks must be numbers"):
            block_thresholds(F, wrong, weights, bands, sigma=1.0)
    with pytest.raises(ValueError, match="probe_bands must have shape"):
        block_thresholds(F, blocks, weights, bands[0], sigma=1.0)
    with pytest.raises(ValueError, match="weights must not be negative"):
        block_thresholds(F, blocks, -weights, bands, sigma=1.0)
    with pytest.raises(ValueError, match="one signal at a time"):
        block_thresholds(F[:, :, None], blocks, weights, bands, sigma=1.0)
    with pytest.raises(ValueError, match="t must be one threshold"):
        apply_block_thresholds(F, blocks, np.ones(2), weights, bands)
    with pytest.raises(ValueError, match="one signal at a time"):
        block_mixture(frame, F[:, :, None], bands, weights, 1.0)
    with pytest.raises(ValueError, match="threshold_scale must be"):
        block_mixture(frame, F, bands, weights, 1.0, threshold_scale=-np.ones(F.shape))
    with pytest.raises(ValueError, match="one signal at a time"):
        block_jacobian(F[0], blocks, 1.0, bands)
