"""Combinations: the least SURE over non-negative weights, risks that can be trusted, and what `auto` and `let` promise."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

import hushgraph as hg
from hushgraph.estimators.combined import AUTO_SETS, HEDGE, LARGE_SETS, LET_SETS, SMALL_GRAPH, SMALL_SETS
from hushgraph.estimators.let.candidates import GROUPS, make_candidates
from hushgraph.estimators.let.combination import LetProblem, bounded_minimum, combine, fit
from hushgraph.estimators.let.filters import Filters
from hushgraph.estimators.let.observation import Observation
from hushgraph.estimators.let.second_stage import refine
from hushgraph.wavelets.noise import Noise

DRAWS = 200


@pytest.fixture(scope="module")
def city():
    return hg.datasets.city(700, seed=5)


@pytest.fixture(scope="module")
def counts(city):
    return hg.hotspot_counts(city, total=4000, seed=5).astype(float)


def observed(graph, y, sigma):
    noise = Noise.of(sigma)
    return Observation(Filters.of(graph, noise), np.asarray(y, float), noise)


def noisy(clean, sigma, seed):
    return clean + sigma * np.random.default_rng(seed).normal(size=len(clean))


# ---- weights -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [np.inf, 0.3])
def test_weights_satisfy_the_conditions_of_a_minimum(most):
    """At the minimum of a'Ga - 2 a'b over 0 <= a <= most the gradient is 0 inside, not negative at 0, not positive at most."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = rng.normal(size=(40, 9))
        gram, target = x.T @ x / 40, rng.normal(size=9)
        a = bounded_minimum(gram, target, np.full(9, most))
        gradient = gram @ a - target
        assert np.all((a >= 0) & (a <= most))
        assert np.all(gradient[a < most] > -1e-5)
        assert np.all(gradient[a > 0] < 1e-5)


def test_the_minimum_is_found_where_columns_are_nearly_the_same():
    """The gradient is 0 between the bounds, and holds weights at them from outside; a hundredth less would show (control)."""
    columns = np.exp(-np.outer(np.linspace(0, 1, 60), np.geomspace(0.1, 30, 30)))
    columns /= np.linalg.norm(columns, axis=0)
    gram = columns.T @ columns

    def worst(a):
        gradient, low, high = gram @ a - target, a <= 1e-9, a >= most * (1 - 1e-9)
        return max(np.abs(gradient[~low & ~high]).max(initial=0), -gradient[low].min(initial=0), gradient[high].max(initial=0))

    for seed in range(40):
        rng = np.random.default_rng(seed)
        most = rng.uniform(0.05, 0.5, 30)
        target = columns.T @ (columns @ rng.uniform(0, 0.6, 30) + 0.03 * rng.normal(size=60)) - 0.01 * rng.uniform(size=30)
        a = bounded_minimum(gram, target, most)
        assert worst(a) < 1e-8
        assert worst(0.99 * a) > 1e-4


def test_fit_is_the_least_sure_of_its_set(city, counts):
    seen = observed(city, noisy(counts, 6.0, 0), 6.0)
    columns = make_candidates(seen, LET_SETS["let"])
    fits = fit(LetProblem.of(columns, seen), LET_SETS)
    values, rng = columns.values(), np.random.default_rng(0)

    def sure(a):
        return np.sum((seen.y - a @ values) ** 2) - city.n * 36 + 72 * columns.divergence @ a

    best = fits.weights[0]
    assert fits.sure[0] == pytest.approx(sure(best), rel=1e-6)
    for _ in range(50):
        other = np.maximum(best + 0.1 * best.max() * rng.normal(size=len(best)), 0)
        assert sure(other) > sure(best) - 1e-4 * abs(sure(best))


def test_average_is_a_combination_of_all_columns(city, counts):
    seen = observed(city, noisy(counts, 6.0, 0), 6.0)
    found = combine(seen, AUTO_SETS)
    np.testing.assert_allclose(found.signal, found.weights @ found.columns.values(), atol=1e-9)
    np.testing.assert_allclose(found.weights, found.shares @ found.fits.weights)
    assert found.shares.sum() == pytest.approx(1)
    assert np.all(found.weights >= 0)


def test_refinement_pushes_through_both_stages(city, counts):
    """The derivative of the second stage, weights of both held fixed, against finite differences."""
    seen = observed(city, noisy(counts, 6.0, 0), 6.0)
    first = combine(seen, LET_SETS)
    second = refine(seen, first)
    eps, step = seen.filters.probes.eps[0], 1e-5

    def again(sign):
        moved = Observation(seen.filters, seen.y + sign * step * eps, seen.noise)
        columns = make_candidates(moved, LET_SETS["let"])
        same = type(first)(columns, first.weights, columns.combined(first.weights), 0.0, 0.0, first.fits, first.shares)
        return second.weights @ refine(moved, same).columns.values()

    numeric = (again(1) - again(-1)) / (2 * step)
    np.testing.assert_allclose(second.jvp[0], numeric, atol=2e-4 * np.abs(numeric).max())


# ---- risks -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def repeated(city, counts):
    """SURE and loss, in units of sigma^2, of every candidate alone and of the combinations, over many draws."""
    sigma, rows = 6.0, []
    for draw in range(DRAWS):
        seen = observed(city, noisy(counts, sigma, 1000 + draw), sigma)
        found = combine(seen, AUTO_SETS)
        again = refine(seen, found)
        values = found.columns.values()
        sure = np.sum((seen.y - values) ** 2, axis=1) - city.n * sigma**2 + 2 * sigma**2 * found.columns.divergence
        loss = np.sum((values - counts) ** 2, axis=1)
        rows.append(
            (np.append(sure, [found.risk, again.risk]), np.append(loss, [np.sum((x.signal - counts) ** 2) for x in (found, again)]))
        )
    return found.columns, np.array(rows) / sigma**2


@pytest.mark.statistics
def test_sure_of_each_candidate_is_unbiased(repeated):
    """|z| < 4.5 for about 90 columns: one false alarm in 1,600 runs. A divergence 10 % off must be noticed (control)."""
    columns, rows = repeated
    fixed = np.flatnonzero(columns.tuned == 0)
    gap = rows[:, 0, fixed] - rows[:, 1, fixed]
    spread = np.maximum(stats.sem(gap), 1e-9)
    z = gap.mean(axis=0) / spread
    worst = np.argmax(np.abs(z))
    assert np.abs(z).max() < 4.5, f"{columns.names[fixed[worst]]}: z = {z[worst]:.1f}"
    wrong = (gap + 0.2 * columns.divergence[fixed]).mean(axis=0) / spread
    assert np.abs(wrong).max() > 10, "a divergence 10 % off must be noticed"


@pytest.mark.statistics
def test_risk_of_the_combination_is_nearly_unbiased(repeated, city):
    """Fitted weights make SURE optimistic; what is added for them leaves less than a third of a risk_se (about 40 sigma^2)."""
    _, rows = repeated
    gap = rows[:, 0, -2:] - rows[:, 1, -2:]
    assert np.abs(gap.mean(axis=0)).max() < 25
    assert rows[:, 1, -2:].mean() < 0.5 * city.n, "and the loss is far below that of the noise"


@pytest.mark.statistics
def test_risk_se_covers_the_error_of_risk(city, counts):
    """risk lies within 3 risk_se of the loss in at least 90 of 100 draws (expected 99; fewer by chance once in a million).

    A risk_se that is three times too small would be noticed (control).
    """
    scores = []
    for draw in range(100):
        result = hg.denoise(city, noisy(counts, 6.0, draw), sigma=6.0, method="let")
        scores.append((result.risk - np.sum((result.signal - counts) ** 2)) / result.risk_se)
    assert np.sum(np.abs(scores) < 3) >= 90
    assert np.sum(np.abs(scores) < 1) < 90, "negative control"


# ---- what people see ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "let", "filter", "sgwt_block", "sgwt_beta"])
def test_it_says_what_it_did(city, counts, method):
    result = hg.denoise(city, noisy(counts, 6.0, 0), sigma=6.0, method=method)
    assert result.method == method
    assert result.details["why"]
    assert set(result.details["weights"]) <= set(result.details["risk_alone"])
    assert sum(one["share"] for one in result.details["sets"].values()) == pytest.approx(1)
    assert 0 < result.risk < city.n * 36
    assert result.risk_se > 0
    assert result.probe_se > 0
    assert result.expected_error().shape == (city.n,)


def test_auto_is_the_default_and_beats_the_papers_method(city, counts):
    gains = []
    for seed in range(8):
        y = noisy(counts, 6.0, seed)
        assert hg.denoise(city, y, sigma=6.0).method == "auto"
        paper = hg.denoise(city, y, sigma=6.0, method="sgwt_sure").signal
        gains.append(hg.snr(counts, hg.denoise(city, y, sigma=6.0).signal) - hg.snr(counts, paper))
    assert np.mean(gains) > 1


def test_small_graphs_take_fewer_candidates():
    graph = hg.datasets.city(120, seed=1)
    y = np.random.default_rng(0).normal(size=graph.n)
    details = hg.denoise(graph, y, sigma=1.0).details
    assert set(details["sets"]) == {*SMALL_SETS, "filter"}
    assert f"under {SMALL_GRAPH} nodes" in details["why"]
    assert "refined" not in details
    assert "refined" in hg.denoise(graph, y, sigma=1.0, refine=True).details


def test_large_graphs_take_those_of_let(monkeypatch, city, counts):
    monkeypatch.setattr("hushgraph.estimators.combined.LARGE_GRAPH", 600)
    details = hg.denoise(city, noisy(counts, 6.0, 0), sigma=6.0).details
    assert set(details["sets"]) == {*LARGE_SETS, "filter"}
    assert "over 600 nodes" in details["why"]


def test_counts_are_asked_only_when_nothing_is_negative(city, counts):
    y = noisy(counts, 6.0, 0)
    signed, positive = hg.denoise(city, y, sigma=6.0), hg.denoise(city, y, sigma=6.0, nonnegative=True)
    assert "counts" not in signed.details
    assert "taken" in positive.details["counts"]
    assert np.all(positive.signal >= 0)
    assert hg.snr(counts, positive.signal) > hg.snr(counts, np.maximum(signed.signal, 0))


def test_expected_error_is_that_of_the_mixture(city, counts):
    """Over draws its mean square is that of the error, within 15 %; and variances exceed posterior variances by the way to the combination."""
    ratios = []
    for seed in range(6):
        y = noisy(counts, 6.0, seed)
        mixed, pure, linear = (
            hg.denoise(city, y, sigma=6.0, **options)
            for options in ({"nonnegative": True}, {"method": "counts"}, {"nonnegative": False})
        )
        assert "taken" in mixed.details["counts"]
        way = HEDGE * (linear.signal - pure.signal)
        np.testing.assert_allclose(mixed.node_risk.variance, pure.node_risk.variance + way**2, rtol=1e-9)
        ratios.append(np.mean(mixed.expected_error() ** 2) / np.mean((mixed.signal - counts) ** 2))
    assert np.mean(ratios) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("kind", ["smooth", "pieces"])
def test_counts_are_dropped_where_they_are_worse(kind):
    graph = hg.datasets.grid(32, 32)
    make = hg.smooth_signal if kind == "smooth" else hg.piecewise_constant_signal
    clean = make(graph, seed=0)
    clean = clean - clean.min() + (clean.std() if kind == "smooth" else 0)
    sigma = float(clean.std()) / 2
    kept = [hg.denoise(graph, noisy(clean, sigma, seed), sigma=sigma, nonnegative=True) for seed in range(4)]
    worse = [hg.snr(clean, hg.denoise(graph, noisy(clean, sigma, seed), sigma=sigma, method="counts").signal) for seed in range(4)]
    assert np.mean([hg.snr(clean, result.signal) for result in kept]) > np.mean(worse) - 0.1
    if kind == "smooth":
        assert all("dropped" in result.details["counts"] for result in kept)


def test_too_few_nodes_for_counts():
    graph = hg.datasets.grid(5, 5)
    y = np.abs(np.random.default_rng(0).normal(size=25))
    assert "not used" in hg.denoise(graph, y, sigma=1.0, nonnegative=True).details["counts"]
    with pytest.raises(ValueError, match=r"cannot be used here.*use method='auto'"):
        hg.denoise(graph, y, sigma=1.0, method="counts")


@pytest.mark.parametrize("method", ["auto", "let", "counts", "filter", "sgwt_block"])
def test_units_do_not_matter(city, counts, method):
    y = noisy(counts, 6.0, 0)
    one = hg.denoise(city, y, sigma=6.0, method=method)
    other = hg.denoise(city, 1000 * y, sigma=6000.0, method=method)
    np.testing.assert_allclose(other.signal, 1000 * one.signal, rtol=1e-5, atol=1e-3 * 1000)
    assert other.risk == pytest.approx(1e6 * one.risk, rel=1e-4)


@pytest.mark.parametrize("method", ["auto", "let"])
def test_columns_are_taken_one_by_one_with_shared_probes(city, counts, method):
    y = np.stack([noisy(counts, 6.0, seed) for seed in range(3)], axis=1)
    together = hg.denoise(city, y, sigma=6.0, method=method)
    for m in range(3):
        alone = hg.denoise(city, y[:, m], sigma=6.0, method=method)
        np.testing.assert_array_equal(together.signal[:, m], alone.signal)
        assert together.risk[m] == alone.risk
        assert together.details["weights"][m] == alone.details["weights"]
    assert together.expected_error().shape == y.shape


@pytest.mark.parametrize("method", ["auto", "let", "counts"])
def test_missing_nodes_and_sigma_per_node(city, counts, method):
    sigma = np.linspace(3, 9, city.n)
    y = counts + sigma * np.random.default_rng(0).normal(size=city.n)
    y[::17] = np.nan
    result = hg.denoise(city, y, sigma=sigma, method=method, missing="fill")
    known = ~np.isnan(y)
    assert np.isfinite(result.signal).all()
    assert np.sum((result.signal - counts)[known] ** 2) < 0.6 * np.sum((y - counts)[known] ** 2)
    assert np.isnan(result.expected_error()[~known]).all()


def test_unknown_sigma_is_estimated(city, counts):
    with pytest.warns(UserWarning, match="sigma was not given"):
        result = hg.denoise(city, noisy(counts, 6.0, 0))
    assert 5 < result.sigma < 9
    assert hg.snr(counts, result.signal) > hg.snr(counts, noisy(counts, 6.0, 0)) + 3


def test_float32_stays_float32(city, counts):
    y = noisy(counts, 6.0, 0)
    single = hg.denoise(city, y.astype(np.float32), sigma=6.0)
    assert single.signal.dtype == np.float32
    np.testing.assert_allclose(single.signal, hg.denoise(city, y, sigma=6.0).signal, atol=1e-2)


@pytest.mark.parametrize("method", ["auto", "let", "counts", "filter", "sgwt_block", "sgwt_beta"])
def test_equal_input_gives_equal_bits(city, counts, method):
    y = noisy(counts, 6.0, 0)
    first = hg.denoise(city, y, sigma=6.0, method=method)
    other = hg.denoise(hg.datasets.city(700, seed=5), y, sigma=6.0, method=method)
    np.testing.assert_array_equal(first.signal, other.signal)
    assert first.risk == other.risk


def test_constant_and_zero_signals(city):
    for value in (0.0, 7.0):
        y = np.full(city.n, value)
        result = hg.denoise(city, y, sigma=1.0)
        np.testing.assert_allclose(result.signal, y, atol=0.05 * max(value, 1))
        assert np.isfinite(result.risk)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "auto", "rule": "soft"}, "belong to methods that threshold wavelets"),
        ({"method": "let", "level": "global"}, "belong to methods that threshold wavelets"),
        ({"method": "sgwt_sure", "refine": True}, "refine= belongs to"),
        ({"method": "auto", "refine": "yes"}, "refine must be one of"),
        ({"method": "autos"}, "method must be one of 'auto', 'let', 'counts', 'filter'"),
    ],
)
def test_arguments_that_would_be_ignored_are_refused(city, counts, arguments, words):
    with pytest.raises(ValueError, match=words):
        hg.denoise(city, counts, sigma=1.0, **arguments)


def test_every_group_is_documented():
    import hushgraph.estimators.let.candidates as module

    assert all(f"    {group} " in module.__doc__ for group in GROUPS)


# ---- where combinations used to go astray ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "let"])
@pytest.mark.parametrize("factor", [2.0**100, 2.0**-100])
def test_a_power_of_two_as_unit_changes_no_bit(city, counts, method, factor):
    y = noisy(counts, 6.0, 0)
    one, other = (hg.denoise(city, c * y, sigma=c * 6.0, method=method) for c in (1.0, factor))
    np.testing.assert_array_equal(other.signal, factor * one.signal)


@pytest.mark.parametrize("method", ["auto", "let"])
def test_an_offset_is_added_to_the_result(city, method):
    clean = hg.smooth_signal(city)
    y = noisy(clean, 0.5, 0)
    far, farther = (hg.denoise(city, y + offset, sigma=0.5, method=method).signal - offset for offset in (1e3, 1e7))
    np.testing.assert_allclose(far, farther, atol=1e-6)
    assert np.mean((far - clean) ** 2) < 2 * np.mean((hg.denoise(city, y, sigma=0.5, method=method).signal - clean) ** 2)


@pytest.mark.parametrize("sigma", [3.0, 1e3, 1e40])
@pytest.mark.parametrize("method", ["auto", "let"])
def test_far_too_large_a_sigma_is_noticed_and_does_no_harm(method, sigma):
    graph = hg.datasets.grid(25, 25)
    y = -5 + np.random.default_rng(0).normal(size=625)
    result = hg.denoise(graph, y, sigma=sigma, method=method)
    assert any("sigma is too large" in note for note in result.details["notes"])
    assert np.abs(result.signal).max() < 10
    assert result.risk >= -625 * sigma**2 * (1 + 1e-9)
    assert not hg.denoise(graph, y, sigma=1.0, method=method).details["notes"]


def test_a_star_whose_hub_outruns_the_polynomials():
    """Smoothers are no longer what their names say there; divergences must be those of what they are."""
    graph = hg.Graph.from_edges([(0, i) for i in range(1, 2001)])
    clean = 5 * np.sin(np.arange(2001) / 200) + 2
    result = hg.denoise(graph, noisy(clean, 1.0, 0), sigma=1.0)
    error = np.sum((result.signal - clean) ** 2)
    assert error < 2001
    assert abs(result.risk - error) < 4 * result.risk_se


def test_isolated_nodes_share_their_mean():
    graph = hg.Graph.from_edges(np.zeros((0, 2), int), n=600)
    for method in ("auto", "let"):
        assert np.mean((hg.denoise(graph, noisy(np.full(600, 5.0), 1.0, 0), sigma=1.0, method=method).signal - 5) ** 2) < 0.1


def test_the_graph_keeps_only_the_latest():
    graph = hg.datasets.grid(20, 20)
    y = np.random.default_rng(0).normal(size=(400, 6))
    sizes = []
    for m in range(2, 7):
        hg.denoise(graph, y[:, :m], sigma=1.0, columns="path", seed=m)
        hg.denoise(graph, np.where(np.arange(400) == m, np.nan, y[:, 0]), sigma=np.full(400, 1.0 + m), missing="drop")
        sizes.append(len(graph.cache))
    assert len(set(sizes[1:])) == 1


def test_counts_taken_and_counts_refused_say_so(city, counts):
    y = np.stack([noisy(counts, 6.0, seed) for seed in range(3)], axis=1)
    details = hg.denoise(city, y[:, 0], sigma=6.0, nonnegative=True).details
    alone = hg.denoise(city, y[:, 0], sigma=6.0, method="counts").details
    assert details["divergence"] == pytest.approx(0.8 * alone["divergence"] + 0.2 * details["combination"]["divergence"])
    assert details["features"] == alone["features"]
    assert "80% of a method for counts" in details["why"]
    assert "weights" in details["combination"]
    together = hg.denoise(city, y, sigma=6.0, nonnegative=True, columns="path")
    assert "not used: columns are denoised together" in together.details["counts"]
    with pytest.raises(ValueError, match="method='counts' takes each column by itself"):
        hg.denoise(city, y, sigma=6.0, method="counts", columns="path")


def test_sigma_of_a_missing_value_does_not_matter(city, counts):
    y, sigma = noisy(counts, 6.0, 0), np.full(city.n, 6.0)
    y[3], sigma[3] = np.nan, np.nan
    assert np.isfinite(np.delete(hg.denoise(city, y, sigma=sigma, missing="drop").signal, 3)).all()


BITS = """
import hashlib, numpy as np, hushgraph as hg
graph = hg.datasets.path(100_003)
y = np.random.default_rng(0).normal(size=graph.n) + 5 * (np.arange(graph.n) // 500 % 2)
print(hashlib.sha256(hg.denoise(graph, y, sigma=1.0, method="let", refine=True).signal).hexdigest())
"""


def test_bits_do_not_depend_on_the_threads_of_blas():
    """A product of weights and columns by BLAS gives other bits at this size."""
    seen = set()
    for threads in ("1", "2"):
        own = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        done = subprocess.run([sys.executable, "-c", BITS], env={**os.environ, **own}, capture_output=True, text=True, check=True)
        seen.add(done.stdout)
    assert len(seen) == 1


@pytest.mark.parametrize("method", ["let", "auto"])
def test_a_signal_that_is_nothing_against_the_noise(method):
    graph = hg.datasets.path(50)
    y = 1e-155 * np.random.default_rng(0).normal(size=50)
    result = hg.denoise(graph, y, sigma=1.0, method=method)
    assert np.abs(result.signal).max() <= 1e-154
    assert np.isfinite(result.risk)


def test_one_node_far_below_all_others():
    graph = hg.Graph.from_edges([(0, 1)], n=150_000)
    y = np.zeros(graph.n)
    y[-1] = -1e6
    assert np.isfinite(hg.denoise(graph, y, sigma=1.0, method="let").signal).all()
