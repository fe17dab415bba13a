"""Every candidate's divergence is that of its column, and what its Jacobian says agrees with finite differences."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

import hushgraph as hg
from hushgraph.core.sums import block_dots, block_products, block_products_of, sum_of_rows
from hushgraph.estimators.let.candidates import GROUPS, Thresholded, make_candidates
from hushgraph.estimators.let.filters import Filters
from hushgraph.estimators.let.gating import shrunken
from hushgraph.estimators.let.observation import Observation
from hushgraph.graphs.clusters import block_partition
from hushgraph.wavelets.blocks import SIZES, apply_block_thresholds
from hushgraph.wavelets.monte_carlo import probes
from hushgraph.wavelets.noise import Noise

N_PROBES = 60
GRAPHS = {
    "city": lambda: hg.datasets.city(300, seed=1),
    "two grids": lambda: two_grids(),
    "weighted": lambda: weighted_city(),
}
# The divergence of levels is that of a large step (test_level_sets.py); patches are for images (test_patches.py).
DIFFERENTIABLE = [group for group in GROUPS if group not in ("levels", "patches")]
TUNED = ("betas", "blocks")  # their thresholds are data values: at the kink of one coefficient
# The wrong divergence of the control over the right one; 1.1 for the other groups.
WRONG = {"constant": 3.0, "bands": 1.2, "gated": 1.2, "betas": 1.2, "tv": 1.2, "local": 2.0}
# Factor on tuned thresholds: the coefficient that a threshold was taken from stays below it, as the divergence assumes, wherever y moves.
ABOVE = 1 + 2e-5
SIGMAS = {"one sigma": 2.0, "sigma per node": None}


def two_grids():
    grid = hg.datasets.grid(9, 12).adjacency.tocoo()
    pairs = np.stack(grid.coords, axis=1)
    return hg.Graph.from_edges(np.concatenate([pairs, pairs + 108, [[216, 217]]]), n=219)


def weighted_city():
    city = hg.datasets.city(250, seed=2)
    pairs = np.stack(city.adjacency.tocoo().coords, axis=1)
    weights = np.exp(0.5 * np.sin(pairs.sum(axis=1)))
    return hg.Graph.from_edges(pairs, n=city.n, weights=weights)


@cache
def observation(graph: str, sigma: str, n_probes: int = N_PROBES):
    """One of each kind for all groups: graph and filters take longer than most groups."""
    return observed(GRAPHS[graph](), SIGMAS[sigma], n_probes=n_probes)


def observed(graph, sigma, *, n_probes=N_PROBES, seed=0):
    rng = np.random.default_rng(7)
    per_node = 1 + rng.random(graph.n) if sigma is None else sigma
    clean = 8 * (rng.random(graph.n) < 0.1) + hg.smooth_signal(graph, seed=3)
    noise = Noise.of(per_node)
    y = clean + per_node * rng.normal(size=graph.n)
    guide = clean + rng.normal(size=graph.n)  # what local regression is on
    return Observation(Filters.of(graph, noise, n_probes=n_probes, seed=seed), y, noise, guide)


def values_of(columns):
    return columns.values() if callable(columns.values) else columns.values


def frozen(seen, group):
    """The group as a function of y, with everything that SURE chooses held where it was."""
    if group == "betas":
        chosen = GROUPS[group](seen).chosen
        return lambda moved: Thresholded.of(moved, chosen["betas"], ABOVE * np.asarray(chosen["thresholds"]))
    if group == "blocks":
        columns, probed = GROUPS[group](seen), seen.filters.probes
        partitions = [block_partition(seen.graph, size=size) for size in SIZES]

        def mixture(moved):
            total = 0
            for blocks, t, share in zip(partitions, columns.chosen["thresholds"], columns.chosen["shares"], strict=True):
                part = apply_block_thresholds(
                    moved.parts.rho, blocks, ABOVE * t, probed.weights, probed.rho, threshold_scale=probed.scale
                )[0]
                total = total + share[:, None] * part
            return replace(columns, values=seen.filters.synthesize(total[None]))

        return mixture
    if group == "filter":
        columns = GROUPS[group](seen)
        return lambda moved: replace(columns, values=columns.filter_signals(moved.y[None]))
    return GROUPS[group]


def moved_values(seen, estimate, direction, step):
    return values_of(estimate(replace(seen, y=seen.y + step * direction)))


@pytest.mark.statistics
@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("group", DIFFERENTIABLE)
def test_divergence_is_that_of_finite_differences(group, graph, sigma):
    """|z| < 4 against 60 probes of its own: about 1 false alarm in 200 runs of all 60 cases (and the seeds are fixed).

    The control is a divergence that is 10 % too large, more where 60 probes cannot see 10 % (`WRONG`: that of the constant is 1 per component,
    with a standard error of 0.26). In every case one column is then off by 9 standard errors or more, so the control is missed with a
    probability below 1e-6 (z < -5). Columns whose draws are all equal, like that of y itself, do not count.
    """
    z, control = _divergence_scores(observation(graph, sigma), group)
    assert np.abs(z).max() < 4, f"divergence of {group} is off: z = {z.round(1)}"
    assert control.max() > 4, (
        f"a divergence that is {WRONG.get(group, 1.1):g} times too large goes unnoticed: z = {control.round(1)}"
    )


def _divergence_scores(seen, group):
    columns, estimate = make_candidates(seen, (group,)), frozen(seen, group)
    eps = probes(seen.graph.n, N_PROBES, seed=99)
    eps = eps if seen.noise.per_node is None else eps * seen.noise.per_node
    step = 1e-6 * seen.typical_sigma
    base = moved_values(seen, estimate, eps[0], 0.0)
    draws = np.array([(moved_values(seen, estimate, e, step) - base) @ e / step for e in eps])
    right, wrong = columns.divergence, WRONG.get(group, 1.1) * columns.divergence
    # the divergence itself comes from as many probes, so it is as noisy as the draws; that of local regression comes from the kept ones
    made_of = len(seen.filters.probes.eps) if group == "local" else N_PROBES
    spread, rounding = np.sqrt(1 + N_PROBES / made_of) * stats.sem(draws, axis=0), 1e-6 * np.abs(right) + 1e-9
    error = np.maximum(spread, rounding)
    return (right - draws.mean(axis=0)) / error, ((wrong - draws.mean(axis=0)) / error)[spread > rounding]


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("group", [group for group in DIFFERENTIABLE if group not in TUNED])
def test_jvp_is_the_derivative_along_the_probes(group, sigma):
    seen = observation("city", sigma, n_probes=4)
    columns, estimate = make_candidates(seen, (group,)), frozen(seen, group)
    a = np.random.default_rng(0).random(len(columns.names))
    step = 1e-6 * seen.typical_sigma
    derivatives = columns.jvp(a)
    for eps, row in zip(seen.filters.probes.eps, derivatives, strict=True):
        ahead, back = (moved_values(seen, estimate, eps, sign * step) for sign in (1, -1))
        np.testing.assert_allclose(row, a @ (ahead - back) / (2 * step), atol=2e-4 * np.abs(row).max(), rtol=0)


@pytest.mark.parametrize("group", ["heat", "heat_bands", "bands", "gated", "spikes", "betas", "blocks", "local"])
def test_divergence_is_the_mean_over_the_very_probes(group):
    """No approximation in between: eps'J eps of the same probes, to rounding."""
    seen = observation("city", "one sigma", n_probes=6)
    columns = make_candidates(seen, (group,))
    for k in range(len(columns.names)):
        unit = np.zeros(len(columns.names))
        unit[k] = 1
        mean = np.mean([e @ row for e, row in zip(seen.filters.probes.eps, columns.jvp(unit), strict=True)])
        assert mean == pytest.approx(columns.divergence[k], rel=1e-9, abs=1e-9)


def test_sigma_per_node_all_equal_is_one_sigma():
    graph = GRAPHS["city"]()
    y = np.random.default_rng(0).normal(0, 3, graph.n) + 5
    both = []
    for sigma in (2.0, np.full(graph.n, 2.0)):
        noise = Noise.of(sigma)
        seen = Observation(Filters.of(graph, noise), y, noise, hg.smooth_signal(graph))
        columns = make_candidates(seen, tuple(GROUPS))
        both.append((values_of(columns), columns.divergence * noise.variance))
    np.testing.assert_allclose(both[0][0], both[1][0], atol=1e-8)
    np.testing.assert_allclose(both[0][1], both[1][1], rtol=1e-8, atol=1e-8)


def test_filters_are_kept_with_the_graph():
    graph = hg.datasets.city(200, seed=4)
    noise = Noise.of(1.0)
    assert Filters.of(graph, noise) is Filters.of(graph, Noise.of(3.0)), "the size of the noise is no part of them"
    assert Filters.of(graph, noise) is not Filters.of(graph, noise, seed=1)
    assert Filters.of(graph, Noise.of(np.ones(graph.n))) is not Filters.of(graph, noise)


def test_heat_bands_sum_to_the_signal_and_heat_to_its_parts():
    seen = observed(GRAPHS["two grids"](), 2.0)
    bands, heat = GROUPS["heat_bands"](seen), GROUPS["heat"](seen)
    np.testing.assert_allclose(values_of(bands).sum(axis=0), seen.y, atol=1e-9)
    np.testing.assert_allclose(np.cumsum(values_of(bands), axis=0), values_of(heat), atol=1e-9)
    assert heat.divergence[-1] == pytest.approx(seen.graph.n)


def test_constants_belong_to_components():
    seen = observed(GRAPHS["two grids"](), 2.0)
    columns = GROUPS["constant"](seen)
    assert len(columns.names) == 3, "two grids, and what is too small for a constant of its own"
    for row, nodes in zip(values_of(columns), (slice(0, 108), slice(108, 216), slice(216, 219)), strict=True):
        np.testing.assert_allclose(row[nodes], seen.y[nodes].mean())
        assert np.all(np.delete(row, np.r_[nodes]) == 0)


def test_many_components_share_a_constant():
    parts = 12
    pairs = np.concatenate([np.stack([np.arange(39), np.arange(1, 40)], axis=1) + 40 * k for k in range(parts)])
    seen = observed(hg.Graph.from_edges(pairs, n=40 * parts), 2.0)
    columns = GROUPS["constant"](seen)
    assert len(columns.names) == 9
    assert columns.divergence.sum() == pytest.approx(parts)


@pytest.mark.parametrize("n", [0, 1, 3, 9, 515, 9000, 70_001])
def test_products_of_blocks_are_products(n):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, n)), rng.normal(size=(6, n))
    for rows in (a, b):
        np.testing.assert_allclose(block_products(rows), rows @ rows.T, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(block_products(a, b), a @ b.T, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(block_products(b, a), b @ a.T, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(block_products_of(n, lambda nodes: (b[:, nodes], None)), b @ b.T, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(block_dots(a, b[:3]), np.sum(a * b[:3], axis=1), rtol=1e-12, atol=1e-10)


def test_sums_take_rows_of_any_kind():
    """Strided, broadcast, single precision: vectors are read from memory without asking for the stride."""
    rng = np.random.default_rng(0)
    b = rng.normal(size=(3, 100))
    for a in (rng.normal(size=(100, 3)).T, np.broadcast_to(rng.normal(size=(3, 1)), b.shape), b[:, ::-1], b.astype(np.float32)):
        np.testing.assert_allclose(block_dots(a, b), np.sum(a.astype(np.float64) * b, axis=1), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(block_products(a, b), a.astype(np.float64) @ b.T, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(sum_of_rows(np.array([1.0, 0.0, -2.0]), a), a[0] - 2 * a[2].astype(np.float64), atol=1e-12)


def test_shrinking_several_thresholds_at_once_is_the_rule():
    x = np.array([[-3.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 1e-300], [4.0, 0.0, 1.0, 1.0, -1.0, 2.0, 1e70, -5.0]])
    scale, t, ones = np.array([[1.0] * 8, [0.0, 0.0, 1.0, 2.0, 1.0, 0.5, 1.0, 1.0]]), np.array([0.0, 1.0, 2.5]), np.ones((2, 8))
    kept, divergence = shrunken(x, scale, t, ones)
    for k, one in enumerate(t):
        value, slope = hg.james_stein(x, one * scale)
        np.testing.assert_allclose(kept[k], value, rtol=1e-15)
        np.testing.assert_allclose(divergence[k], slope.sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_tiny_graphs(n):
    graph = hg.Graph.from_edges(np.zeros((0, 2), int) if n == 1 else [(0, 1)], n=n)
    seen = observed(graph, 2.0)
    columns = make_candidates(seen, tuple(GROUPS))
    assert np.isfinite(values_of(columns)).all()
    assert np.isfinite(columns.divergence).all()
