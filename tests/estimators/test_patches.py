"""Patches of images: when they are used, that their divergence is right, and that units and levels of values do not matter."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import hushgraph as hg
from hushgraph.estimators.combined import IMAGE_SETS
from hushgraph.estimators.let.candidates import make_candidates
from hushgraph.estimators.let.columns import Columns
from hushgraph.estimators.let.combination import combine
from hushgraph.estimators.let.filters import Filters
from hushgraph.estimators.let.observation import Observation
from hushgraph.estimators.let.patches import DIFFERENCE_STEP, similar_patches, takes_patches
from hushgraph.wavelets.noise import Noise


def picture(rows, columns):
    """Stripes, a disk and a slope."""
    row, column = np.indices((rows, columns))
    stripes = 6.0 * ((row + 2 * column) % 9 < 4) * (column < columns // 2)
    disk = 8.0 * ((row - rows / 2) ** 2 + (column - 0.75 * columns) ** 2 < (min(rows, columns) / 5) ** 2)
    return (stripes + disk + 0.05 * row).ravel()


def observed(graph, clean, sigma, *, n_probes=4, seed=0):
    noise = Noise.of(sigma)
    y = clean + sigma * np.random.default_rng(seed).normal(size=graph.n)
    return Observation(Filters.of(graph, noise, n_probes=n_probes), y, noise)


def test_patches_find_stripes():
    graph, clean = hg.datasets.grid(48, 64), picture(48, 64)
    noisy = clean + np.random.default_rng(0).normal(0, 2, graph.n)
    found = hg.denoise(graph, noisy, sigma=2.0)
    assert "patches" in found.details["weights"]
    assert "patches of an image" in found.details["why"]
    others = combine(observed(graph, clean, 2.0), {"let": ("constant", "heat_bands", "bands", "spikes", "gated")})
    assert hg.mse(clean, found.signal) < 0.7 * hg.mse(clean, others.signal)


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (hg.datasets.grid(16, 40), True),
        (hg.Graph.from_image((20, 30)), True),
        (hg.datasets.grid(15, 80), False),
        (hg.datasets.grid(16, 40).subgraph(np.arange(1, 640)), False),
        (hg.datasets.city(700), False),
    ],
)
def test_only_images_of_some_size_have_patches(graph, expected):
    assert takes_patches(graph) == expected
    noisy = np.random.default_rng(0).normal(5, 1, graph.n)
    sets = hg.denoise(graph, noisy, sigma=1.0).details["sets"]
    assert IMAGE_SETS.keys() <= sets.keys() if expected else IMAGE_SETS.keys().isdisjoint(sets)
    assert similar_patches(observed(graph, 0.0, 1.0)).values.any() == expected


@pytest.mark.parametrize("options", [{"method": "let"}, {"method": "sgwt_sure"}])
def test_other_methods_have_none(options):
    found = hg.denoise(hg.datasets.grid(20, 30), picture(20, 30), sigma=1.0, **options)
    assert IMAGE_SETS.keys().isdisjoint(found.details.get("sets", {}))


def test_an_image_with_missing_pixels_is_denoised_without_patches():
    noisy = picture(20, 30) + np.random.default_rng(0).normal(size=600)
    noisy[7] = np.nan
    found = hg.denoise(hg.datasets.grid(20, 30), noisy, sigma=1.0, missing="drop")
    assert np.isnan(found.signal[7])
    assert IMAGE_SETS.keys().isdisjoint(found.details["sets"])


@pytest.mark.parametrize("per_node", [False, True])
def test_derivatives_are_finite_differences(per_node):
    """At the second step the image is denoised as one with noise of 1 + DIFFERENCE_STEP^2 times the variance."""
    graph, clean = hg.datasets.grid(24, 20), picture(24, 20)
    sigma = 1 + np.random.default_rng(1).random(graph.n) if per_node else 1.5
    seen = observed(graph, clean, sigma)
    columns, louder = similar_patches(seen), Noise.of(np.sqrt(1 + DIFFERENCE_STEP**2) * sigma)
    for eps, row in zip(seen.filters.probes.eps, columns.derivatives[0], strict=True):
        step = DIFFERENCE_STEP * seen.sigma
        ahead = similar_patches(replace(seen, y=seen.y + step * eps, noise=louder)).values[0]
        np.testing.assert_allclose(row, (ahead - columns.values[0]) / step, atol=1e-9)
    samples = [eps @ row for eps, row in zip(seen.filters.probes.eps, columns.derivatives[0], strict=True)]
    assert columns.divergence[0] == pytest.approx(np.mean(samples))
    np.testing.assert_allclose(Columns(seen.filters, {"patches": columns}).jvp(np.array([0.5])), 0.5 * columns.derivatives[0])


@pytest.mark.statistics
@pytest.mark.parametrize("per_node", [False, True])
def test_divergence_is_the_covariance_with_the_noise(per_node):
    """|z| < 4 over 40 draws; the control is a divergence that is a quarter too small, as it is with the groups of patches held fixed."""
    graph, clean = hg.datasets.grid(40, 40), picture(40, 40)
    sigma = 1.5 + np.random.default_rng(1).random(graph.n) if per_node else 2.0
    pairs = []
    for seed in range(40):
        seen = observed(graph, clean, sigma, seed=seed)
        columns = similar_patches(seen)
        noise = seen.y - clean
        pairs.append((seen.noise.variance * columns.divergence[0], (columns.values[0] - clean) @ noise))
    claimed, actual = np.array(pairs).T
    z, control = (np.mean(factor * claimed - actual) / stats.sem(factor * claimed - actual) for factor in (1.0, 0.75))
    assert abs(z) < 4, f"divergence of patches is off: z = {z:.2f}"
    assert control < -4, f"a divergence that is a quarter too small goes unnoticed: z = {control:.2f}"


def test_levels_and_units_do_not_matter():
    graph, clean = hg.datasets.grid(24, 32), picture(24, 32)
    plain = similar_patches(observed(graph, clean, 2.0)).values[0]
    np.testing.assert_allclose(similar_patches(observed(graph, clean + 1e6, 2.0)).values[0] - 1e6, plain, atol=1e-6)
    for unit in (2.0**-40, 2.0**50):
        np.testing.assert_array_equal(similar_patches(observed(graph, unit * clean, unit * 2.0)).values[0], unit * plain)


@pytest.mark.parametrize("sigma", [1e-70, 1e-20, 1e70])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e20, 1e70])
def test_extreme_numbers_do_no_harm(size, sigma):
    graph = hg.datasets.grid(20, 26)
    columns = similar_patches(observed(graph, size * picture(20, 26), sigma))
    assert np.all(np.isfinite(columns.values))
    assert np.all(np.isfinite(columns.divergence))


def test_order_of_nodes_does_not_matter():
    graph, clean = hg.datasets.grid(20, 26), picture(20, 26)
    numbers = np.random.default_rng(3).permutation(graph.n)
    seen = observed(graph, clean, 2.0)
    mixed = replace(observed(graph.subgraph(numbers), clean[numbers], 2.0), y=seen.y[numbers])
    np.testing.assert_array_equal(similar_patches(mixed).values[0], similar_patches(seen).values[0][numbers])


def test_noisy_half_of_an_image_is_smoothed_more():
    graph, clean = hg.datasets.grid(32, 32), np.zeros(32 * 32)
    sigma = np.where(np.arange(graph.n) % 32 < 16, 1.0, 4.0)
    columns = make_candidates(observed(graph, clean, sigma), ("patches",))
    error = columns.values()[0].reshape(32, 32) ** 2
    assert error[:, 24:].mean() < 16 * 0.2
    assert error[:, :8].mean() < 0.2
