"""Thresholds are the exact minimisers they claim to be: of SURE, and of the true error for the oracle.

Nothing here is statistical: every claim is checked against brute force, which evaluates `sure` or the true error directly.
"""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import hushgraph as hg
from hushgraph.core import _loops
from hushgraph.wavelets.threshold_search import BINS, WORDS

BETAS = [1.0, 1.5, 2.0, 3.7, 12.0, 40.0]
NUDGE = 1 + 1e-13  # |x| / s * s may round to less than |x|; a hair more kills x, as it is meant


def row(values):
    return np.asarray(values, dtype=float)[None]


def sure_at(F, t, weights, sigma, beta, scaled=False):
    return hg.sure(F, t, weights=weights, sigma=sigma, rule="power", beta=beta, threshold_scale=scaled)


def least_sure(F, weights, sigma, beta, scaled=False, **options):
    return hg.sure_thresholds(F, weights, sigma=sigma, rule="power", beta=beta, threshold_scale=scaled, **options)


def assert_least(F, t, weights, sigma, beta, candidates, scaled=False):
    """SURE at t is at most that at all candidates, up to the rounding of sums of its terms."""
    found = sure_at(F, t, weights, sigma, beta, scaled)
    best = min(sure_at(F, float(u), weights, sigma, beta, scaled) for u in candidates)
    constant = sigma**2 * np.sum(weights)
    assert found <= best + 1e-11 * (best + 2 * constant), f"t = {t} has SURE {found!r}, but {best!r} is possible"


def data_values(F, scale=None):
    z = np.abs(F) if scale is None else np.divide(np.abs(F), scale, out=np.zeros_like(F), where=scale > 0) * NUDGE
    return np.append(0.0, z.ravel())


# ---- SURE, by brute force ---------------------------------------------------------------------------------------

reals = st.floats(1e-3, 1e3).map(lambda x: round(x, 6)) | st.integers(1, 9).map(float)  # integers make ties
signed = st.tuples(reals, st.sampled_from([-1.0, 1.0])).map(lambda pair: pair[0] * pair[1])
shares = st.floats(0, 2).map(lambda x: round(x, 3))
rows = st.lists(st.tuples(signed, shares), min_size=1, max_size=25).map(lambda pairs: np.array(pairs).T)
sigmas = st.sampled_from([0.01, 0.5, 1.0, 3.0, 50.0])


@pytest.mark.parametrize("beta", BETAS)
@given(pair=rows, sigma=sigmas)
def test_minimiser_is_that_of_brute_force(beta, pair, sigma):
    F, weights = row(pair[0]), row(pair[1])
    t = least_sure(F, weights, sigma, beta)
    assert t.shape == (1,)
    assert t[0] in data_values(F)
    assert_least(F, t, weights, sigma, beta, data_values(F))


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("seed", range(3))
def test_minimiser_is_that_of_brute_force_on_long_rows(beta, seed):
    rng = np.random.default_rng(seed)
    F = row(rng.standard_t(3, 600) * rng.lognormal(0, 2, 600))
    weights = row(rng.uniform(0, 1, 600))
    for sigma in (0.1, 1.0, 10.0):
        assert_least(F, least_sure(F, weights, sigma, beta), weights, sigma, beta, data_values(F))


def test_brute_force_tells_a_worse_threshold():
    """Negative control: the next data value up is not the minimum, and is found out."""
    rng = np.random.default_rng(0)
    F, weights = row(rng.normal(size=50)), row(np.full(50, 0.3))
    t = least_sure(F, weights, 1.0, 2.0)
    above = np.min(np.abs(F)[np.abs(F) > t[0]])
    with pytest.raises(AssertionError, match="is possible"):
        assert_least(F, above, weights, 1.0, 2.0, data_values(F))


@pytest.mark.parametrize("beta", BETAS)
@given(pair=rows, sigma=sigmas)
def test_sure_is_never_lower_between_data_values(beta, pair, sigma):
    F, weights = row(pair[0]), row(pair[1])
    grid = np.concatenate([np.linspace(0, 1.2 * np.abs(F).max(), 150), np.abs(F[0]) * 0.999, np.abs(F[0]) * 1.001])
    assert_least(F, least_sure(F, weights, sigma, beta), weights, sigma, beta, grid)


@pytest.mark.parametrize("beta", BETAS)
@given(
    values=st.lists(st.integers(-3, 3), min_size=1, max_size=12).map(lambda x: np.array(x, dtype=float)),
    share=st.sampled_from([0.1, 1.0]),
)
def test_minimiser_is_that_of_brute_force_with_zeros(beta, values, share):
    F, weights = row(values), row(np.where(values == 0, 1.0, share))
    assert_least(F, least_sure(F, weights, 1.0, beta), weights, 1.0, beta, data_values(F))


def test_integers_are_as_good_as_floats():
    F, weights = np.array([[3, -1, 4, 1, -5, 9, 2, 6]]), np.full((1, 8), 0.7)
    np.testing.assert_array_equal(hg.sure_thresholds(F, weights, sigma=2), hg.sure_thresholds(F.astype(float), weights, sigma=2))


@pytest.mark.parametrize("sigma", [1e-60, 1e-20, 1.0, 1e20, 1e60])
@pytest.mark.parametrize("beta", BETAS)
def test_minimiser_is_that_of_brute_force_over_150_orders_of_magnitude(beta, sigma):
    """Not larger than 1.5: `sure` takes the difference of h(x) and x, which loses t beside a huge x."""
    F = row([1e-150, 1e-120, 1e-20, 3e-20, 1e-10, 1.0, 1.5])
    weights = np.ones_like(F)
    assert_least(F, least_sure(F, weights, sigma, beta), weights, sigma, beta, data_values(F))


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("spread", [1e5, 1e10, 1e15])
def test_minimiser_is_that_of_brute_force_with_one_huge_value(beta, spread):
    """The lowest bin of the search takes all that is 2^32 times smaller than the largest value."""
    rng = np.random.default_rng(1)
    F = row(np.append(rng.normal(size=40) * np.geomspace(1, spread, 40), 1e12 * spread))
    weights = row(rng.uniform(0.1, 1, 41))
    for sigma in (0.1, 1.0, 10.0):
        assert_least(F, least_sure(F, weights, sigma, beta), weights, sigma, beta, data_values(F))


@pytest.mark.parametrize("factor", [1e-60, 1e-30, 1e30, 1e60])
def test_thresholds_follow_the_unit_of_the_signal(factor):
    rng = np.random.default_rng(2)
    F, weights = row(rng.normal(size=60)), row(rng.uniform(0.1, 1, 60))
    expected = factor * hg.sure_thresholds(F, weights, sigma=1.0)
    np.testing.assert_allclose(hg.sure_thresholds(factor * F, weights, sigma=factor), expected, rtol=1e-12)


def test_values_near_the_smallest_float_get_a_threshold():
    F = row([1e-300, -2e-300, 5e-310])
    t = hg.sure_thresholds(F, np.ones((1, 3)), sigma=1.0)
    assert t[0] in data_values(F)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("value", [-2.0, 0.3, 0.0])
def test_one_node(beta, value):
    F, weights = row([value]), row([0.5])
    assert_least(F, least_sure(F, weights, 1.0, beta), weights, 1.0, beta, data_values(F))


def test_no_nodes():
    np.testing.assert_array_equal(hg.sure_thresholds(np.empty((2, 0)), np.empty((2, 0)), sigma=1.0), [0.0, 0.0])


# ---- scaled thresholds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", BETAS)
@given(pair=rows, sigma=sigmas)
def test_scaled_minimiser_is_that_of_brute_force(beta, pair, sigma):
    """Weights of 0 are among them: no threshold reaches those coefficients."""
    F, weights = row(pair[0]), row(pair[1])
    scale = np.sqrt(weights)
    t = least_sure(F, weights, sigma, beta, scaled=True)
    assert_least(F, t * NUDGE, weights, sigma, beta, data_values(F, scale), scaled=True)
    np.testing.assert_array_equal(least_sure(F, weights, sigma, beta, scaled=scale), t)


@pytest.mark.parametrize("beta", [1.0, 2.0, 3.7])
def test_a_scale_of_zero_leaves_its_coefficients_alone(beta):
    """Also where the coefficient itself is 0 and its weight is not."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        F, weights = row(rng.integers(-2, 3, 8) * rng.uniform(0.5, 1, 8)), row(rng.uniform(0.1, 1, 8))
        scale = row(rng.integers(0, 2, 8) * rng.uniform(0.5, 2, 8))
        F[(F == 0) & (scale > 0)] = 1.0
        t = least_sure(F, weights, 1.0, beta, scaled=scale)
        assert_least(F, t * NUDGE, weights, 1.0, beta, data_values(F, scale), scaled=scale)


def test_all_scales_zero_is_the_identity():
    F, weights = row([1.0, -2.0, 0.0]), row([0.5, 0.5, 0.5])
    t = hg.sure_thresholds(F, weights, sigma=1.0, threshold_scale=np.zeros((1, 3)))
    assert np.isfinite(t).all()
    assert hg.sure(F, t, weights=weights, sigma=1.0, threshold_scale=np.zeros((1, 3))) == pytest.approx(1.5)
    assert np.isfinite(hg.sure_thresholds(F, 0 * weights, sigma=1.0, threshold_scale=True)).all()


def test_a_scaled_threshold_kills_the_coefficient_it_was_taken_from():
    """|x| / s * s must not round to less than |x|: SURE would count the slope beta of a coefficient that is gone."""
    rng = np.random.default_rng(4)
    missed = 0
    for _ in range(300):
        F, weights = row(3 * rng.normal(size=8)), row(rng.uniform(0.1, 1, 8))
        t = hg.sure_thresholds(F, weights, sigma=1.0, threshold_scale=True)
        missed += bool(np.any((t * np.sqrt(weights) < np.abs(F)) & (NUDGE * t * np.sqrt(weights) > np.abs(F))))
    assert missed == 0, f"{missed} of 300 thresholds spare their own coefficient"


# ---- levels, signals, percentiles -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many():
    """Coefficients of three signals in four scales of very different size, and weights."""
    rng = np.random.default_rng(5)
    return rng.normal(size=(4, 40, 3)) * np.array([10.0, 3.0, 1.0, 0.3])[:, None, None], rng.uniform(0.05, 0.5, (4, 40))


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("beta", [1.0, 2.0, 3.7])
def test_global_threshold_is_that_of_brute_force(many, beta, scaled):
    F, weights = many[0][:, :, 0], many[1]
    t = least_sure(F, weights, 1.0, beta, scaled=scaled, level="global")
    assert t.shape == (4,)
    assert len(set(t)) == 1
    candidates = data_values(F, np.sqrt(weights) if scaled else None)
    assert_least(F, t * (NUDGE if scaled else 1), weights, 1.0, beta, candidates, scaled)


@pytest.mark.parametrize("level", ["scale", "global"])
@pytest.mark.parametrize("candidates", ["all", "percentiles"])
@pytest.mark.parametrize("scaled", [False, True])
def test_several_signals_get_the_thresholds_of_each(many, level, candidates, scaled):
    F, weights = many
    options = {"sigma": 1.0, "level": level, "candidates": candidates, "threshold_scale": scaled}
    together = hg.sure_thresholds(F, weights, **options)
    assert together.shape == (4, 3)
    for m in range(3):
        np.testing.assert_array_equal(together[:, m], hg.sure_thresholds(F[:, :, m], weights, **options))


@pytest.mark.parametrize("level", ["scale", "global"])
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("n", [1, 7, 500])
def test_percentiles_never_beat_all_candidates(beta, n, level):
    rng = np.random.default_rng(n)
    F, weights = rng.standard_t(3, size=(3, n)), rng.uniform(0.05, 0.5, (3, n))
    exact, coarse = (least_sure(F, weights, 1.0, beta, level=level, candidates=c) for c in ("all", "percentiles"))
    assert sure_at(F, exact, weights, 1.0, beta) <= sure_at(F, coarse, weights, 1.0, beta) + 1e-12 * n
    assert np.all(np.isin(coarse, data_values(F)))


@pytest.mark.parametrize("beta", BETAS)
@given(pair=rows, sigma=sigmas)
def test_curve_is_sure_at_every_data_value(beta, pair, sigma):
    x, weights = pair
    t, values = hg.sure_curve(x, weights, sigma=sigma, rule="power", beta=beta)
    np.testing.assert_array_equal(t, np.sort(np.append(0.0, np.abs(x))))
    expected = [sure_at(row(x), u, row(weights), sigma, beta) for u in t]
    last = np.append(np.diff(t) > 0, True)  # of ties the last one counts: the others are killed one by one
    np.testing.assert_allclose(values[last], np.array(expected)[last], rtol=1e-11, atol=1e-11 * np.sum(x**2 + sigma**2 * weights))


@pytest.mark.parametrize("beta", [1.0, 2.0, 3.7])
def test_scaled_curve_is_sure_at_every_data_value(beta):
    rng = np.random.default_rng(6)
    x, weights, scale = rng.normal(size=30), rng.uniform(0.1, 1, 30), rng.uniform(0.5, 2, 30)
    t, values = hg.sure_curve(x, weights, sigma=0.8, rule="power", beta=beta, threshold_scale=scale)
    expected = [sure_at(row(x), u * NUDGE, row(weights), 0.8, beta, scaled=row(scale)) for u in t]
    np.testing.assert_allclose(values, expected, rtol=1e-10)


def test_curve_counts_coefficients_whose_scale_is_zero():
    x, weights, scale = np.array([3.0, 1.0]), np.array([1.0, 0.1]), np.array([0.0, 1.0])
    t, values = hg.sure_curve(x, weights, sigma=1.0, threshold_scale=scale)
    expected = [hg.sure(row(x), u, weights=row(weights), sigma=1.0, threshold_scale=row(scale)) for u in t]
    np.testing.assert_allclose(values, expected)


def test_curve_of_zeros_is_sure():
    x, weights = np.array([0.0, 1.0]), np.array([1.0, 0.1])
    t, values = hg.sure_curve(x, weights, sigma=1.0)
    np.testing.assert_allclose(values, [hg.sure(row(x), u, weights=row(weights), sigma=1.0) for u in t])


@pytest.mark.parametrize(
    "call",
    [
        lambda F, w: hg.sure_thresholds(F, w, sigma=1.0, rule="hard"),
        lambda F, w: hg.sure(F, 1.0, weights=w, sigma=1.0, rule="hard"),
    ],
)
def test_hard_thresholds_have_no_sure(many, call):
    with pytest.raises(ValueError, match=r"SURE does not hold for rule='hard'.*oracle_thresholds"):
        call(many[0], many[1])


def test_curve_of_hard_thresholds_is_refused():
    with pytest.raises(ValueError, match="SURE does not hold for rule='hard'"):
        hg.sure_curve([1.0, 2.0], [0.5, 0.5], sigma=1.0, rule="hard")


# ---- oracle -----------------------------------------------------------------------------------------------------

RULES = [("soft", None), ("james_stein", None), ("power", 3.7), ("power", 40.0), ("hard", None)]


def error_at(F, truth, t, rule, beta, scale=1.0):
    return float(np.sum((hg.shrink(F, t * scale, rule=rule, beta=beta)[0] - truth) ** 2))


def grid_over(F, scale=1.0):
    z = np.abs(F) / scale
    return np.concatenate([[0.0], np.linspace(0, 1.2 * z.max(), 400), z.ravel() * NUDGE, z.ravel() * 0.9999])


pairs_with_truth = st.lists(st.tuples(signed | st.just(0.0), signed | st.just(0.0)), min_size=1, max_size=20)


@pytest.mark.parametrize(("rule", "beta"), RULES)
@given(pairs=pairs_with_truth)
def test_oracle_is_never_beaten(rule, beta, pairs):
    x, f = np.array(pairs).T
    t = hg.oracle_thresholds(row(x), row(f), rule=rule, beta=beta)
    found = error_at(x, f, t[0], rule, beta)
    best = min(error_at(x, f, u, rule, beta) for u in grid_over(x))
    assert found <= best + 1e-11 * np.sum(x**2 + f**2), f"t = {t[0]} has error {found}, but {best} is possible"


@pytest.mark.parametrize(("rule", "beta"), RULES)
def test_oracle_is_never_beaten_on_noisy_coefficients(rule, beta):
    rng = np.random.default_rng(7)
    f = np.where(rng.random((3, 300)) < 0.1, 5.0, 0.0)
    x = f + rng.normal(size=f.shape)
    t = hg.oracle_thresholds(x, f, rule=rule, beta=beta)
    for j in range(3):
        best = min(error_at(x[j], f[j], u, rule, beta) for u in grid_over(x[j]))
        assert error_at(x[j], f[j], t[j], rule, beta) <= best * (1 + 1e-12)
        assert error_at(x[j], f[j], 1.3 * t[j], rule, beta) > best * (1 + 1e-6), "negative control: 30 % off is worse"


@pytest.mark.parametrize(("rule", "beta"), RULES)
def test_scaled_oracle_is_never_beaten(rule, beta):
    rng = np.random.default_rng(8)
    f = np.where(rng.random(200) < 0.1, 5.0, 0.0)
    weights = rng.uniform(0.1, 2, 200)
    x, scale = f + np.sqrt(weights) * rng.normal(size=200), np.sqrt(weights)
    t = hg.oracle_thresholds(row(x), row(f), rule=rule, beta=beta, threshold_scale=True, weights=row(weights))
    best = min(error_at(x, f, u, rule, beta, scale) for u in grid_over(x, scale))
    assert error_at(x, f, t[0] * NUDGE, rule, beta, scale) <= best * (1 + 1e-10)
    np.testing.assert_array_equal(hg.oracle_thresholds(row(x), row(f), rule=rule, beta=beta, threshold_scale=row(scale)), t)


def test_scaled_oracle_asks_for_weights():
    with pytest.raises(ValueError, match="threshold_scale=True needs weights="):
        hg.oracle_thresholds(row([1.0]), row([1.0]), threshold_scale=True)


@pytest.mark.parametrize("rule", ["soft", "james_stein", "hard"])
def test_global_oracle_is_never_beaten(many, rule):
    F, truth = many[0][:, :, 0], many[0][:, :, 1]
    t = hg.oracle_thresholds(F, truth, rule=rule, level="global")
    assert len(set(t)) == 1
    best = min(error_at(F, truth, u, rule, None) for u in grid_over(F))
    assert error_at(F, truth, t[0], rule, None) <= best * (1 + 1e-12)


def test_oracle_of_several_signals_is_that_of_each(many):
    F, truth = many[0], many[0][:, :, 0] * 0.9
    together = hg.oracle_thresholds(F, truth)
    assert together.shape == (4, 3)
    for m in range(3):
        np.testing.assert_array_equal(together[:, m], hg.oracle_thresholds(F[:, :, m], truth))


@pytest.mark.parametrize("level", ["scale", "global"])
@pytest.mark.parametrize("rule", ["soft", "james_stein"])
def test_oracle_is_at_least_as_good_as_sure(rule, level):
    graph = hg.datasets.city(200)
    frame = hg.exact_frame(graph)
    truth = np.where(graph.coords[:, 0] > np.median(graph.coords[:, 0]), 5.0, 0.0)
    noisy = truth[:, None] + np.random.default_rng(9).normal(size=(graph.n, 20))
    F, truth_F, weights = hg.analyze(frame, noisy), hg.analyze(frame, truth), hg.exact_weights(frame)
    by_sure = hg.sure_thresholds(F, weights, sigma=1.0, rule=rule, level=level)
    oracle = hg.oracle_thresholds(F, truth_F, rule=rule, level=level)
    for m in range(20):
        errors = [error_at(F[:, :, m], truth_F, t[:, m, None], rule, None) for t in (oracle, by_sure)]
        assert errors[0] <= errors[1] * (1 + 1e-12)


def test_sums_over_bins_do_not_depend_on_order_or_parts():
    rng = np.random.default_rng(3)
    x, g = 10 ** rng.uniform(-6, 6, 20_000) * rng.choice([-1, 1], 20_000), rng.uniform(size=20_000)
    z, moved = np.abs(x), rng.permutation(20_000)
    top, *sizes = _loops.extremes(z, x, g)
    base = _loops.lowest_bin(top), _loops.units_of(*sizes), 2.0
    whole, mixed, parts = (np.zeros((BINS, WORDS), np.int64) for _ in range(3))
    _loops.add_to_bins(z, x, g, *base, whole)
    _loops.add_to_bins(z[moved], x[moved], g[moved], *base, mixed)
    for part in np.array_split(moved, 7):
        _loops.add_to_bins(z[part], x[part], g[part], *base, parts)
    np.testing.assert_array_equal(mixed, whole)
    np.testing.assert_array_equal(parts, whole)
    assert np.cumsum(x**2)[-1] != np.cumsum(x[moved] ** 2)[-1]  # sums of floats do
    units = _loops.square_units(*base[:2])
    energies = (whole[:, 0] + whole[:, 1] * 2.0**-32) * units
    np.testing.assert_allclose(
        energies, np.bincount(np.maximum((z.view(np.int64) >> 46) - base[0], 0), x**2, len(units)), rtol=1e-14
    )
    assert whole[:, 8].sum() == 20_000


@pytest.mark.parametrize("rule", ["soft", "james_stein"])
@pytest.mark.parametrize("scaled", [False, True])
def test_thresholds_do_not_depend_on_the_numbers_of_nodes(rule, scaled):
    rng = np.random.default_rng(4)
    for n in (30, 3000, 60_000):
        F, weights, moved = rng.standard_t(3, size=(3, n)), rng.uniform(0, 1, (3, n)), rng.permutation(n)
        there = hg.sure_thresholds(F[:, moved], weights[:, moved], sigma=0.7, rule=rule, threshold_scale=scaled)
        np.testing.assert_array_equal(there, hg.sure_thresholds(F, weights, sigma=0.7, rule=rule, threshold_scale=scaled))


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("spike", [1e3, 3e8, 1e9, 1e10, 5e10, 1e12, 1e30])
def test_thresholds_are_exact_beside_values_of_any_size(spike, scaled):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, weights = rng.normal(size=20_000), rng.uniform(0.1, 1, 20_000)
        scale = 10 ** rng.uniform(-3, 3, 20_000) if scaled else None
        x *= 1 if scale is None else scale
        x[7] = spike
        t, values = hg.sure_curve(x, weights, sigma=1.0, threshold_scale=scale)
        found = hg.sure_thresholds(row(x), row(weights), sigma=1.0, threshold_scale=False if scale is None else row(scale))[0]
        place = np.argmin(np.abs(t - found))
        assert found == pytest.approx(t[place], rel=1e-14)
        assert values[place] <= values.min() + 1e-11 * np.sum(weights) * max(1.0, (x[np.arange(20_000) != 7] ** 2).max())


# ---- old names -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "old"),
    [
        (lambda **scale: hg.sure_thresholds(OLD_F, OLD_W, sigma=1.0, **scale), "scaled"),
        (lambda **scale: hg.sure(OLD_F, 0.5, weights=OLD_W, sigma=1.0, **scale), "scaled"),
        (lambda **scale: hg.oracle_thresholds(OLD_F, 0.9 * OLD_F, **scale), "scaled"),
        (lambda **scale: hg.sure_betas(OLD_F, OLD_W, sigma=1.0, **scale), "scaled"),
        (lambda **scale: hg.sure_curve(OLD_F[0], OLD_W[0], sigma=1.0, **{name: s[0] for name, s in scale.items()}), "scale"),
        (lambda **scale: hg.block_thresholds(OLD_F, [0, 0, 1], OLD_W, OLD_F[None], sigma=1.0, **scale), "scale"),
        (lambda **scale: hg.apply_block_thresholds(OLD_F, [0, 0, 1], 0.5, OLD_W, OLD_F[None], **scale), "scale"),
    ],
    ids=["sure_thresholds", "sure", "oracle_thresholds", "sure_betas", "sure_curve", "block_thresholds", "apply_block_thresholds"],
)
def test_old_names_of_the_threshold_scale_still_work(call, old):
    expected = call(threshold_scale=2 * OLD_W)
    with pytest.warns(DeprecationWarning, match=f"{old}= of .* is called threshold_scale= now"):
        found = call(**{old: 2 * OLD_W})
    np.testing.assert_equal(found, expected)


OLD_F, OLD_W = np.array([[3.0, -0.5, 1.0], [0.2, -4.0, 1.0]]), np.array([[1.0, 2.0, 0.5], [0.5, 1.0, 1.0]])


def test_the_design_documents_call_still_works():
    with pytest.warns(DeprecationWarning, match="scaled= of sure_thresholds"):
        t = hg.sure_thresholds(OLD_F, OLD_W, sigma=1.0, rule="james_stein", scaled=False, candidates="all")
    np.testing.assert_array_equal(t, hg.sure_thresholds(OLD_F, OLD_W, sigma=1.0))


@pytest.mark.parametrize("none", [False, None, np.False_])
def test_no_threshold_scale(none):
    for call in (hg.sure_thresholds, hg.sure_betas):
        np.testing.assert_array_equal(call(OLD_F, OLD_W, sigma=1.0, threshold_scale=none), call(OLD_F, OLD_W, sigma=1.0))
    np.testing.assert_array_equal(
        hg.sure_curve(OLD_F[0], OLD_W[0], sigma=1.0, threshold_scale=none), hg.sure_curve(OLD_F[0], OLD_W[0], sigma=1.0)
    )


def test_true_takes_the_roots_of_the_weights():
    for call in (
        lambda s: hg.sure_curve(OLD_F[0], OLD_W[0], sigma=1.0, threshold_scale=True if s else np.sqrt(OLD_W[0])),
        lambda s: hg.block_thresholds(
            OLD_F, [0, 0, 1], OLD_W, OLD_F[None], sigma=1.0, threshold_scale=True if s else np.sqrt(OLD_W)
        ),
    ):
        np.testing.assert_array_equal(call(True), call(False))
