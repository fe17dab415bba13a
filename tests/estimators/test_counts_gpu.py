"""`counts` on a GPU: its CUDA kernels, run by an emulator on the processor or on a GPU, against the compiled loops."""

from dataclasses import replace

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.estimators.counts import empirical_bayes as counts, priors_gpu, surroundings_gpu
from hushgraph.estimators.counts.surroundings import Neighbourhood, node_surroundings

from ..support import cuda_on_cpu, fake_device

GAUSSIANS = [(0.9, 0.9, 128), (1.8, 1.8, 7), (3.6, 3.6, 37), (0.72, 3.0, 12), (3.0, 0.72, 1), (1.2, 6.0, 512)]  # most rows are cut


REAL = {
    surroundings_gpu: {"_uploaded": surroundings_gpu._uploaded, "compiled": cuda_on_cpu.compiled},
    priors_gpu: {"compiled": cuda_on_cpu.compiled},
    counts: {"posterior_moments": priors_gpu.posterior_moments},
    counts.Likelihood: {"on_device": counts.Likelihood.on_device},
}


@pytest.fixture(params=["emulator", pytest.param("cupy", marks=pytest.mark.gpu)])
def cp(request, monkeypatch):
    if request.param == "cupy":
        return fake_device.real_device()
    if cuda_on_cpu.compiler() is None:
        pytest.skip("needs a C++ compiler")
    fake = fake_device.installed(monkeypatch)
    for place, names in REAL.items():
        for name, work in names.items():
            monkeypatch.setattr(place, name, work)
    return fake


def street_plan():
    return hg.datasets.city(110)


def image():
    """Nodes in even rows: many pairs have the same distance."""
    return hg.Graph.from_image((9, 11), neighbours=8)


def heap():
    """Many nodes on few spots, some without edges."""
    rng = np.random.default_rng(2)
    pairs = np.concatenate([np.stack([np.arange(119), np.arange(1, 120)], axis=1), rng.integers(0, 120, (60, 2))])
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return hg.Graph.from_edges(np.unique(np.sort(pairs, axis=1), axis=0), n=124, coords=rng.integers(0, 4, (124, 2)).astype(float))


PLANS = {"streets": street_plan, "image": image, "heap": heap}


def surroundings_of(name):
    """Surroundings with few nodes in a row, so that rows are cut among nodes of equal distance."""
    whole = node_surroundings(PLANS[name]())
    gaussians = np.array(GAUSSIANS, dtype=np.float64)
    arrays = replace(whole.plane, gaussians=gaussians)
    n_kernels = len(gaussians) + 4
    place = np.stack(arrays.places[:2], axis=1)[np.argsort(whole.order)]
    wide = tuple(Neighbourhood.in_plane(place, width) for width in (3.0, 7.0))
    return replace(whole, plane=arrays, kernels=arrays.kernels(), n_kernels=n_kernels, wide=wide, narrow=(0, 1, 3, 6, 8, 9))


@pytest.mark.parametrize("name", PLANS)
def test_features_and_echoes_are_those_of_the_compiled_loops(cp, name):
    here = surroundings_of(name)
    there = surroundings_gpu._uploaded(here)
    rng = np.random.default_rng(0)
    values = rng.normal(size=here.n) + 5
    cut = there.arrays[-1].get()
    assert (cut != -2).any()  # some rows are cut
    assert (cut >= 0).any() == (name != "streets")  # among nodes of equal distance
    features, gains = here.features_and_gains(values)
    found, found_gains = there.features_and_gains(cp.asarray(values))
    np.testing.assert_allclose(found_gains.get(), gains, rtol=1e-12)
    np.testing.assert_allclose(found.get(), features, rtol=1e-12, atol=1e-12)
    chosen = here.narrow
    np.testing.assert_allclose(
        there.features(cp.asarray(values), found_gains, chosen).get(), here.features(values, gains, chosen), rtol=1e-12, atol=1e-12
    )
    coefficients, slope = rng.random(len(gains)) * (rng.random(len(gains)) < 0.4), rng.random(here.n)
    echoes = there.echoes(coefficients, found_gains, cp.asarray(slope)).get()
    np.testing.assert_allclose(echoes, here.echoes(coefficients, gains, slope), rtol=1e-10, atol=1e-13)


# ---- priors and posteriors ----------------------------------------------------------------------------------------------


def fitted_values(n, spread):
    rng = np.random.default_rng(3)
    mu = rng.gamma(0.5, 6.0, n)
    mu[:3] = 0.0, 0.0, 300.0
    sigma = 4 * np.exp(spread * rng.normal(size=n))
    y = rng.poisson(mu) + sigma * rng.normal(size=n)
    y[:4] = -80.0, 0.0, 300.0, 30.0
    return counts.NoisyValues(y, sigma, counts.value_grid(y, sigma, top=60.0)), mu


def fit_of(noisy, mu, knots):
    level = float(mu.mean())
    table = counts.gamma_masses(noisy.grid, 1.0, np.maximum(knots, level / 10))
    table = np.concatenate([table, table]) if len(knots) == 1 else table
    return counts.CountsFit(
        np.ones(1), 1.0, np.log([0.8, 0.1, 5.0, 0.2, 1.1]), level, knots, table / table.sum(axis=1, keepdims=True)
    )


@pytest.mark.parametrize("spread", [0.0, 0.7])
@pytest.mark.parametrize("n_knots", [1, 2, 4])
def test_posterior_is_that_of_the_compiled_loops(cp, spread, n_knots):
    noisy, mu = fitted_values(300, spread)
    fit = fit_of(noisy, mu, np.quantile(mu, counts.KNOTS)[-n_knots:])
    there = counts.NoisyValues(cp.asarray(noisy.y), cp.asarray(noisy.sigma), noisy.grid)
    for found, expected in zip(fit.posterior(there, cp.asarray(mu)), fit.posterior(noisy, mu), strict=True):
        np.testing.assert_allclose(found.get(), expected, rtol=1e-10, atol=1e-10)


def test_priors_are_fitted_by_the_sums_of_the_compiled_loops(cp):
    noisy, mu = fitted_values(60, 0.7)
    likelihood, knots = counts.Likelihood.of(noisy), np.quantile(mu, counts.KNOTS[1:])
    assert likelihood.plain.any()
    there = likelihood.on_device(cp.asarray(mu))
    gamma, level = np.log([0.8, 0.1, 5.0, 0.2, 1.1]), float(mu.mean())
    evidence = there.evidence(*counts.gamma_table(noisy.grid, gamma, cp.asarray(mu), level))
    np.testing.assert_allclose(evidence.get(), likelihood.evidence(*counts.gamma_table(noisy.grid, gamma, mu, level)), rtol=1e-10)
    prior = fit_of(noisy, mu, knots).table
    places = counts.hat_places(mu, knots)
    here_step, there_step = (part.em_step(prior, *places, counts.SMALLEST) for part in (likelihood, there))
    here, found = prior, cp.asarray(prior)
    for _ in range(2):
        here, found = here_step(here), there_step(found)
    np.testing.assert_allclose(found.get(), here, rtol=1e-10)
