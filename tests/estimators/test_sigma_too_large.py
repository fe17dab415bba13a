"""A sigma that is too large is noticed, and no error is claimed then; the estimate of sigma is bounded by every scale."""

import json
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import hushgraph as hg
from hushgraph.cli import app
from hushgraph.estimators.risk import EXACT, RiskSums
from hushgraph.files.graphs import write_graph
from hushgraph.files.signals import write_signal
from hushgraph.plotting.report.page import write_report
from hushgraph.wavelets.noise import Noise, is_below_noise

METHODS = ["auto", "let", "sgwt_sure", "sgwt_deep"]


@pytest.fixture(scope="module")
def spikes():
    """Diffused spikes on the streets of a city, with noise of 2."""
    graph = hg.datasets.city(1500)
    truth = hg.bernoulli_signal(graph, p=0.01, k=4)
    return graph, truth, truth + np.random.default_rng(1).normal(0, 2, graph.n)


@pytest.mark.parametrize("method", METHODS)
def test_no_error_is_claimed_for_four_times_sigma(spikes, method):
    graph, _, noisy = spikes
    with pytest.warns(UserWarning, match="sigma is too large"):
        result = hg.denoise(graph, noisy, sigma=8, method=method)
    assert result.details["sigma_too_large"] == [True]
    assert result.risk < -3 * result.risk_se
    assert result.risk_se > 0
    assert not result.typical_error.is_known
    assert np.isnan(result.expected_error()).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        right = hg.denoise(graph, noisy, sigma=2, method=method)
    assert right.details["sigma_too_large"] == [False]
    assert right.typical_error.is_known


def test_command_and_report_say_that_the_error_is_not_known(spikes, tmp_path):
    pytest.importorskip("pandas")
    graph, _, noisy = spikes
    write_graph(tmp_path / "streets.npz", graph)
    write_signal(tmp_path / "noisy.csv", graph, noisy)
    words = ["denoise", str(tmp_path / "streets.npz"), str(tmp_path / "noisy.csv"), "--sigma", "8", "-o", str(tmp_path / "a.csv")]
    told = CliRunner().invoke(app, [*words, "--report", str(tmp_path / "a.html")])
    assert told.exit_code == 0
    assert "below" not in told.stdout.partition("Left")[2].partition("\n")[0]
    assert "cannot be said" in told.stdout
    assert told.output.count("sigma is too large") == 1
    page = (tmp_path / "a.html").read_text().partition("<body")[2]
    assert "not known" in page
    assert "Where to trust it" not in page
    assert "100%" not in page.partition("What was done")[0]
    found = json.loads(CliRunner().invoke(app, [*words, "--force", "--json"]).stdout)
    assert (found["typical_error"], found["typical_error_is_bound"], found["typical_error_is_known"]) == ([None], [False], [False])


def test_a_bound_does_not_rest_on_an_estimated_sigma(spikes):
    """Risk is low where sigma reads high, so what it bounds may be larger."""
    graph, _, noisy = spikes
    with pytest.warns(UserWarning, match="sigma was not given"):
        result = hg.denoise(graph, noisy)
    assert not result.typical_error.is_bound
    assert result.details["sigma_estimated"]


def test_a_risk_that_is_impossible_by_chance_does_not_blame_sigma():
    """Noise alone on a small grid: the risk of fitted weights falls 3 standard errors below 0 in about 2 of 100 draws."""
    graph = hg.datasets.grid(8, 8)
    doubted = 0
    for seed in range(100):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = hg.denoise(graph, np.random.default_rng(seed).normal(size=64), sigma=1, method="let")
        doubted += not result.typical_error.is_known
        assert result.details["sigma_too_large"] == [False]
        assert result.typical_error.is_known != any("hardly any signal" in note for note in result.details["notes"])
    assert doubted, "the draws must contain the case that is tested"


def test_no_error_is_said_to_be_0():
    """Noisy maps of four nodes, of which some show no error at any node: no error is 0, and the largest is a share of the noise."""
    graph = hg.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    rng = np.random.default_rng(0)
    for _ in range(40):
        error = hg.denoise(graph, rng.poisson(2, 4) + rng.normal(0, 4.2, 4), sigma=4.2, nonnegative=True).expected_error()
        assert error.min() > 0
        assert error.max() > 0.1 * 4.2


@pytest.mark.statistics
@pytest.mark.parametrize("per_node", [False, True])
def test_noise_alone_raises_no_alarm(per_node):
    """1,000 draws without any signal, at 1e-6 each: a false alarm of 0.1 % at most. One and a half times sigma is seen nearly always."""
    graph = hg.datasets.grid(40, 40)
    sigma = np.linspace(0.7, 1.4, graph.n) if per_node else np.ones(graph.n)
    draws = sigma[:, None] * np.random.default_rng(0).normal(size=(graph.n, 1000))
    frame = hg.chebyshev_frame(graph)
    energy = np.square(hg.analyze(frame, draws)).sum(axis=1)
    trace = hg.monte_carlo_weights(frame, sigma=sigma if per_node else None, n_probes=10).sum(axis=1)
    for factor, least, most in ((1.0, 0.0, 0.0), (1.5, 0.99, 1.0)):
        noise = Noise.of(factor * sigma if per_node else factor)
        found = noise.is_too_large(energy.T, trace * (factor**2 if per_node else 1), tests=2 * len(trace), n_probes=10).any(axis=1)
        assert least <= found.mean() <= most


def test_the_bound_is_that_of_chi_square():
    """exp(-T (q - 1 - log q) / 2) is above the tail of chi-square, also of fewer and larger eigenvalues; half of it would not be far above."""
    from scipy import stats

    freedom = 50.0
    energies = np.linspace(1, 49, 200)
    alarms = energies[is_below_noise(energies, freedom, tests=1)]
    assert 0 < stats.chi2.cdf(alarms.max(), freedom) < 1e-6
    assert stats.chi2.cdf(1.3 * alarms.max(), freedom) > 1e-6  # not far from the best that could be done


def test_risk_se_is_never_0():
    """However small the residual, the noise alone makes SURE differ from the loss."""
    noise = Noise.of(3.0)
    sums = RiskSums(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, noise.total(100), noise.fourth(100), 100)
    assert sums.risk_numbers(EXACT)[1] == pytest.approx(np.sqrt(2 * 100) * 9)


def test_every_scale_bounds_the_estimate_of_sigma():
    """Over ten draws on a rough signal; from the finest scale alone it was 1.39 of the truth. Noise alone is not read lower than before."""
    graph = hg.datasets.city(5000)
    truth = hg.bernoulli_signal(graph, p=0.01, k=4)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(10):
            noise = np.random.default_rng(seed).normal(0, 2, graph.n)
            found.append([hg.estimate_sigma(graph, truth + noise), hg.estimate_sigma(graph, noise)])
    rough, plain = np.mean(found, axis=0) / 2
    assert 1 < rough < 1.3
    assert 0.92 < plain < 1.02


def test_report_of_a_result_whose_error_is_not_known(spikes, tmp_path):
    graph, _, noisy = spikes
    with pytest.warns(UserWarning, match="sigma is too large"):
        result = hg.denoise(graph, noisy, sigma=8)
    page = write_report(tmp_path / "report.html", graph, noisy, result).read_text()
    assert "Sigma is too large" in page
    assert "below ±" not in page
