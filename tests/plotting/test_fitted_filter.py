"""The figure of a fitted filter."""

import numpy as np
import pytest

import hushgraph as hg


@pytest.fixture(scope="module", name="seen")
def make_seen():
    graph = hg.datasets.city(400, seed=1)
    clean = 3 * np.stack([hg.smooth_signal(graph, seed=seed) for seed in (1, 2)], axis=1)
    return graph, clean + np.random.default_rng(50).normal(size=clean.shape)


def test_spectrum_and_response(seen):
    graph, noisy = seen
    result = hg.denoise(graph, noisy[:, 0], sigma=1.0, method="filter")
    above, below = hg.plot_filter(result, title="A field").axes
    dots, fitted, noise = above.get_lines()
    assert 5 < len(dots.get_xdata()) < 80
    assert fitted.get_ydata()[0] > 50  # slow variation is far above the noise
    assert fitted.get_ydata()[-1] == pytest.approx(1.0, abs=0.2)
    assert set(noise.get_ydata()) == {1.0}
    (response,) = below.get_lines()
    assert response.get_ydata()[0] > 0.9
    assert response.get_ydata()[-1] < 0.1


def test_one_of_several_signals(seen):
    graph, noisy = seen
    for result in (hg.denoise(graph, noisy, sigma=1.0), hg.denoise(graph, np.abs(noisy), sigma=1.0, nonnegative=True)):
        first, second = (hg.plot_filter(result, signal=k).axes[1].get_lines()[0].get_ydata() for k in (0, 1))
        assert not np.array_equal(first, second)
        with pytest.raises(ValueError, match="signal must be an integer from 0 to 1; got 2"):
            hg.plot_filter(result, signal=2)


@pytest.mark.parametrize("settings", [{"method": "let"}, {"columns": "path"}])
def test_results_without_a_filter(seen, settings):
    graph, noisy = seen
    with pytest.raises(ValueError, match="result must come from denoise with method 'filter' or 'auto'"):
        hg.plot_filter(hg.denoise(graph, noisy, sigma=1.0, **settings))
