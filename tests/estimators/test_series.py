"""Series of maps: each guided by the others, never by its own noise; forms, order in time, noise of each map, gain."""

import numpy as np
import pandas as pd
import pytest

import hushgraph as hg
from hushgraph.estimators.guides.series import SeriesSums
from hushgraph.estimators.problem import Problem
from hushgraph.privacy import simulate

SIGMA = 6.0


@pytest.fixture(scope="module")
def town():
    return hg.datasets.city(500, seed=3)


@pytest.fixture(scope="module")
def months(town):
    """Six months of pickups, (n, 6), with the same intensities."""
    intensity = hg.hotspot_counts(town, total=5 * town.n, seed=1)
    rng = np.random.default_rng(0)
    return np.stack([rng.poisson(intensity) for _ in range(6)], axis=1).astype(float)


def noisy_of(clean, sigma=SIGMA, seed=0):
    return clean + sigma * np.random.default_rng(seed).normal(size=clean.shape)


def as_noisy(graph, values, sigma):
    return hg.Noisy(values, sigma=sigma, kind="measurement", graph_hash=graph.hash)


def test_forms_of_a_series(town, months):
    y = noisy_of(months)
    wish = {"method": "let", "nonnegative": True}
    table = hg.denoise_series(town, y, sigma=SIGMA, **wish)
    assert table.signal.shape == y.shape
    assert table.risk.shape == (6,)
    frame = hg.denoise_series(town, pd.DataFrame(y, columns=list("abcdef")), sigma=SIGMA, **wish)
    assert list(frame.signal.columns) == list("abcdef")
    listed = hg.denoise_series(town, list(y.T), sigma=SIGMA, **wish)
    named = hg.denoise_series(town, {f"m{k}": as_noisy(town, y[:, k], SIGMA) for k in range(6)}, **wish)
    windows = hg.denoise_series(town, simulated(town, y), **wish)
    columns = hg.denoise(town, y, sigma=SIGMA, columns="series", **wish)
    for k in range(6):
        for signal in (frame.signal.to_numpy()[:, k], listed[k].signal, named[f"m{k}"].signal, columns.signal[:, k]):
            np.testing.assert_array_equal(signal, table.signal[:, k])
        assert listed[k].risk == table.risk[k]
        assert set(listed[k].details["guides"]) <= {"all other maps", "the maps next to it"}
    assert windows.signal.shape == y.shape


def simulated(graph, y):
    """A noisy map with windows and little noise of its own."""
    return simulate(graph, y, epsilon=1.0, delta=1e-6, sensitivity_squared=4, seed=0, windows=range(y.shape[1] + 1))


def test_windows_are_a_series_by_default(town, months):
    noisy = simulated(town, months)
    default, series = hg.denoise(town, noisy, method="let"), hg.denoise(town, noisy, method="let", columns="series")
    assert np.array_equal(default.signal, series.signal)
    wavelets, path = (hg.denoise(town, noisy, method="sgwt_sure", columns=columns) for columns in (None, "path"))
    assert np.array_equal(wavelets.signal, path.signal), "methods without guides take all windows at once"
    with pytest.raises(ValueError, match="columns='series' belongs to method='auto', 'let' and 'counts'"):
        hg.denoise(town, noisy, method="sgwt_sure", columns="series")


@pytest.mark.parametrize("direction", ["all", "past"])
def test_no_guide_holds_the_noise_of_its_map(town, months, direction):
    y = noisy_of(months)
    moved = y.copy()
    moved[:, 2] += 1000.0

    def guides(values):
        return list(SeriesSums([Problem(town, column, SIGMA) for column in values.T]).around(2, direction))

    for (name, values, sigma, made_from), (_, same, _, _) in zip(guides(y), guides(moved), strict=True):
        np.testing.assert_allclose(values, same, atol=1e-9)
        members = [k for k in range(6) if k != 2 and (direction == "all" or k < 2)]
        if name in ("all other maps", "all earlier maps"):
            np.testing.assert_allclose(values, y[:, members].mean(axis=1))
            assert sigma == pytest.approx(SIGMA / np.sqrt(len(members)))
            assert made_from.startswith(f"{len(members)} noisy map")


def test_sums_weigh_by_inverse_variance(town, months):
    y, sigmas = noisy_of(months), np.array([2.0, 4.0, 8.0, 2.0, 4.0, 8.0])
    problems = [Problem(town, column, sigma) for column, sigma in zip(y.T, sigmas, strict=True)]
    _, values, sigma, _ = next(SeriesSums(problems).around(0, "all"))
    weights = 1 / sigmas[1:] ** 2
    np.testing.assert_allclose(values, y[:, 1:] @ weights / weights.sum())
    assert sigma == pytest.approx(weights.sum() ** -0.5)
    per_node = [Problem(town, column, np.full(town.n, sigma)) for column, sigma in zip(y.T, sigmas, strict=True)]
    assert next(SeriesSums(per_node).around(0, "all"))[2] == pytest.approx(sigma)


def test_maps_of_very_different_noise(town, months):
    y = noisy_of(months[:, :3])
    problems = [Problem(town, column, sigma) for column, sigma in zip(y.T, (1e-8, 8.0, 8.0), strict=True)]
    _, values, sigma, _ = next(SeriesSums(problems).around(0, "all"))
    np.testing.assert_allclose(values, y[:, 1:].mean(axis=1))
    assert sigma == pytest.approx(8 / np.sqrt(2))


@pytest.mark.statistics
def test_risks_of_maps_with_different_noise(town, months):
    """One map of sigma 60 beside five of sigma 6, all at once: its (error - risk) / risk_se over 12 draws, |mean| < 1.2 and spread < 2."""
    sigmas, scores = np.array([60.0, 6, 6, 6, 6, 6]), []
    for seed in range(12):
        y = months + sigmas * np.random.default_rng(seed).normal(size=months.shape)
        result = hg.denoise_series(town, [as_noisy(town, y[:, k], sigma) for k, sigma in enumerate(sigmas)], method="let")[0]
        scores.append((np.sum((result.signal - months[:, 0]) ** 2) - result.risk) / result.risk_se)
    assert abs(np.mean(scores)) < 1.2
    assert np.std(scores) < 2


def test_the_past_does_not_depend_on_what_comes_later(town, months):
    y = noisy_of(months)
    whole = hg.denoise_series(town, list(y.T), sigma=SIGMA, direction="past", nonnegative=True)
    part = hg.denoise_series(town, list(y.T[:3]), sigma=SIGMA, direction="past", nonnegative=True)
    for first, second in zip(whole, part, strict=False):
        assert np.array_equal(first.signal, second.signal)
        assert first.draws == second.draws
    alone = hg.denoise(town, y[:, 0], sigma=SIGMA, nonnegative=True)
    assert np.array_equal(whole[0].signal, alone.signal)


def test_maps_with_noise_of_their_own(town, months):
    sigmas = (3.0, 6.0, 12.0)
    maps = [as_noisy(town, noisy_of(months[:, k], sigma, seed=k), sigma) for k, sigma in enumerate(sigmas)]
    for result, one, clean in zip(hg.denoise_series(town, maps, nonnegative=True), maps, months.T, strict=False):
        assert result.sigma == one.noise_level
        alone = hg.denoise(town, one, nonnegative=True)
        assert hg.snr(clean, result.signal) > hg.snr(clean, alone.signal)


def test_results_of_a_series_are_no_guides_for_its_maps(town, months):
    y = list(noisy_of(months).T)
    everything = hg.denoise_series(town, y, sigma=SIGMA, method="let")
    past = hg.denoise_series(town, y, sigma=SIGMA, method="let", direction="past")
    with pytest.raises(ValueError, match="holds the noise of the values"):
        hg.denoise(town, y[5], sigma=SIGMA, method="let", guides=everything[0])
    hg.denoise(town, y[5], sigma=SIGMA, method="let", guides=past[4])  # knows only what came before
    with pytest.raises(ValueError, match="holds the noise of the values"):
        hg.denoise(town, y[3], sigma=SIGMA, method="let", guides=past[4])


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        ([], "maps must be at least one map; got none"),
        ("months", "maps|signal"),
        ("twice", "maps number 1 and 3 of the series are the same map, with the same noise"),
        ("table twice", "maps number 1 and 3 of the series are the same map"),
        ("no sigma", "map number 1 of the series has no sigma"),
        ("table", "map number 2 of the series has several columns"),
        ("one signal", "maps must be a list of maps, a table with a column per map"),
    ],
)
def test_series_that_cannot_be_used(town, months, maps, message):
    y = noisy_of(months)
    made = {
        "twice": [y[:, 0], y[:, 1], y[:, 0]],
        "table twice": y[:, [0, 1, 0]],
        "no sigma": list(y.T),
        "table": [y[:, 0], y],
        "one signal": y[:, 0],
    }
    with pytest.raises((ValueError, TypeError), match=message):
        hg.denoise_series(
            town, made.get(maps, maps) if isinstance(maps, str) else maps, sigma=None if maps == "no sigma" else SIGMA
        )
    with pytest.raises(ValueError, match="sigma must be given with direction='past'"):
        hg.denoise_series(town, y, direction="past")
    with pytest.raises(ValueError, match="direction must be"):
        hg.denoise_series(town, y, sigma=SIGMA, direction="future")


def test_guides_of_a_series(town, months):
    y = noisy_of(months[:, :3])
    plain, helped = (
        hg.denoise_series(town, y, sigma=SIGMA, nonnegative=True, guides=guides)
        for guides in (None, {"another year": months[:, 5]})
    )
    assert hg.snr(months[:, :3].ravel(), helped.signal.ravel()) > hg.snr(months[:, :3].ravel(), plain.signal.ravel())
    assert all("another year" in part for part in helped.details["guides"])
    with pytest.raises(ValueError, match="holds the noise of the values"):
        hg.denoise_series(town, y, sigma=SIGMA, guides=y[:, 1])


@pytest.mark.statistics
def test_a_series_beats_maps_alone_and_all_at_once(town, months):
    """On the mean over two draws, at fixed seeds, by more than 1 dB and 0.3 dB; shuffled nodes in all maps but one help nobody (control)."""
    scores = []
    for seed in range(2):
        y = noisy_of(months, seed=seed)
        results = [hg.denoise(town, y, sigma=SIGMA, columns=how, nonnegative=True).signal for how in ("separate", "path", "series")]
        scores.append([hg.snr(months.ravel(), result.ravel()) for result in results])
    alone, joint, series = np.mean(scores, axis=0)
    assert series > alone + 1
    assert series > joint + 0.3
    shuffled = np.stack([months[:, 0], *(np.random.default_rng(k).permutation(months[:, k]) for k in range(1, 6))], axis=1)
    y = noisy_of(shuffled)
    past = hg.denoise_series(town, y[:, ::-1], sigma=SIGMA, direction="past", nonnegative=True).signal[:, -1]
    single = hg.denoise(town, y[:, 0], sigma=SIGMA, nonnegative=True).signal
    assert abs(hg.snr(months[:, 0], past) - hg.snr(months[:, 0], single)) < 0.3


def test_risk_and_errors_of_a_series(town, months):
    y = noisy_of(months)
    result = hg.denoise_series(town, y, sigma=SIGMA, nonnegative=True)
    errors = np.sum((result.signal - months) ** 2, axis=0)
    assert np.all(np.abs(errors - result.risk) < 4 * result.risk_se)
    assert result.expected_error().shape == y.shape
    assert len(result.typical_errors) == 6
    assert result.n_values == town.n


def test_progress_and_cancelling(town, months):
    shares = []
    hg.denoise_series(town, noisy_of(months), sigma=SIGMA, method="let", progress=lambda share, what: shares.append(share))
    assert shares == sorted(shares)
    assert 0 <= shares[0] < 0.2 < 0.8 < shares[-1] <= 1

    def stop(share, what):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hg.denoise_series(town, noisy_of(months), sigma=SIGMA, progress=stop)
