"""Very large and very small numbers: they are refused, or the unit does not matter."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._errors import InputError

from .tables import Bad, F, W, each_of, exact, frame, grid, inf, truth, y

LARGE = " must be at most 1e+70 in size; the largest is "
LARGE_SIGMA = "sigma must be at most 1e+70 and at least 1e-70 in size; got "
LARGE_EDGES = "edge weights must be 0 (no edge) or from 1e-70 to 1e+70 in size; got "
single = F.astype(np.float32)
swings = np.where(np.arange(20) % 2, 3e38, -3e38).astype(np.float32)


@each_of(
    {
        "analyze": Bad(
            lambda: hg.analyze(frame, y * 1e200), InputError, f"signal{LARGE}7.608e+200; rescale the signal (and sigma)"
        ),
        "analyze, almost infinite": Bad(lambda: hg.analyze(frame, np.full(20, -1.7e308)), InputError, f"signal{LARGE}1.7e+308"),
        "analyze, single": Bad(
            lambda: hg.analyze(frame, swings), InputError, "signal must be at most 1e+15 in size as float32; the largest"
        ),
        "align": Bad(
            lambda: grid.align(np.full(20, np.longdouble("1e4000"))), InputError, "signal has 20 entries that are NaN or infinite"
        ),
        "synthesize": Bad(lambda: hg.synthesize(frame, F * 1e200), InputError, f"coefficients{LARGE}5.63775e+200"),
        "denoise": Bad(lambda: hg.denoise(grid, y * 1e200, sigma=1.0), InputError, f"signal{LARGE}7.608e+200"),
        "denoise, single": Bad(
            lambda: hg.denoise(grid, (y * 1e37).astype(np.float32), sigma=1.0),
            InputError,
            "signal must be at most 1e+15 in size as float32",
        ),
    }
)
def test_large_signals(bad):
    bad.is_refused()


@each_of(
    {
        "exact_weights": Bad(
            lambda: hg.exact_weights(frame, sigma=np.full(20, 1e200)), InputError, f"{LARGE_SIGMA}1e+200 to 1e+200"
        ),
        "sure_thresholds, small": Bad(lambda: hg.sure_thresholds(F, W, sigma=1e-200), InputError, f"{LARGE_SIGMA}1e-200"),
        "denoise, small": Bad(lambda: hg.denoise(grid, y, sigma=1e-200), InputError, f"{LARGE_SIGMA}1e-200"),
        "denoise, single": Bad(
            lambda: hg.denoise(grid, y.astype(np.float32), sigma=1e30),
            InputError,
            "sigma must be at most 1e+15 in size for a signal of float32; got 1e+30",
        ),
    }
)
def test_large_and_small_sigmas(bad):
    bad.is_refused()


@each_of(
    {
        "smooth_weights": Bad(
            lambda: hg.smooth_weights(grid, W * 1e200), InputError, "weights must not be so large; the largest is 9.88"
        ),
        "sure, t": Bad(
            lambda: hg.sure(single, 1e200, weights=W, sigma=1.0, threshold_scale=True),
            InputError,
            "t must be at most 1e+15 in size; got 1e+200",
        ),
        "bernoulli_signal": Bad(
            lambda: hg.bernoulli_signal(grid, p=0.5, k=2000),
            InputError,
            "k=2000 is too large: after 134 products with W the signal exceeds",
        ),
        "count_scales": Bad(
            lambda: hg.count_scales(1.7e308),
            InputError,
            "lambda_max must be at most 1e200 in size; rescale the edge weights; got 1.7e+308",
        ),
        "from_edges": Bad(lambda: hg.Graph.from_edges([(0, 1)], weights=[1e200]), InputError, f"{LARGE_EDGES}1e+200; rescale them"),
        "from_edges, small": Bad(lambda: hg.Graph.from_edges([(0, 1)], weights=[5e-324]), InputError, f"{LARGE_EDGES}4.94066e-324"),
        "from_edges, sum": Bad(
            lambda: hg.Graph.from_edges([(0, 1), (0, 1)], weights=[9e69, 9e69], duplicates="sum"),
            InputError,
            f"{LARGE_EDGES}1.8e+70",
        ),
        "from_scipy": Bad(lambda: hg.Graph.from_scipy(1e200 * (1 - np.eye(3))), InputError, f"{LARGE_EDGES}1e+200"),
    }
)
def test_other_large_and_small_numbers(bad):
    bad.is_refused()


# ---- numbers that have an answer -----------------------------------------------------------------------------------


def test_large_thresholds_leave_nothing():
    assert np.isfinite(hg.sure(single, 1e200, weights=W, sigma=1.0))
    assert not hg.soft(y.astype(np.float32), 1e200)[0].any()


@pytest.mark.parametrize("plateau", ["linear", "smooth", "c3", "meyer"])
def test_plateaus_far_out(plateau):
    assert np.isfinite(hg.partition([1.7e308, inf], n_scales=3, plateau=plateau)).all()
    assert np.isfinite(getattr(hg, f"{plateau}_plateau")([1.7e308])).all()


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda size: hg.analyze(frame, y * size), id="analyze"),
        pytest.param(lambda size: hg.analyze(exact, y * size), id="analyze, exact"),
        pytest.param(lambda size: hg.synthesize(frame, F * size), id="synthesize"),
        pytest.param(lambda size: hg.soft(y * size, 2 * size)[0], id="soft"),
        pytest.param(lambda size: hg.james_stein(y * size, 2 * size)[0], id="james_stein"),
        pytest.param(lambda size: hg.estimate_sigma(grid, y * size), id="estimate_sigma"),
        pytest.param(lambda size: hg.sure_thresholds(F * size, W, sigma=size), id="sure_thresholds"),
        pytest.param(lambda size: hg.sure_thresholds(F * size, W, sigma=size, candidates="percentiles"), id="percentiles"),
        pytest.param(lambda size: hg.oracle_thresholds(F * size, truth * size), id="oracle_thresholds"),
        pytest.param(lambda size: hg.denoise(grid, y * size, sigma=size).signal, id="denoise"),
        pytest.param(lambda size: np.sqrt(hg.denoise(grid, y * size, sigma=size).risk_se), id="denoise, risk_se"),
    ],
)
def test_the_unit_of_the_signal_does_not_matter(call):
    for size in (1e60, 1e-60):
        np.testing.assert_allclose(np.asarray(call(size)) / size, call(1.0), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", ["sgwt_deep", "sgwt_sure", "sgwt_scaled", "sgwt_exact"])
@pytest.mark.parametrize("shape", [1.0, np.ones(20)], ids=["one sigma", "one per node"])
def test_results_have_no_unit_up_to_the_limit(shape, method):
    plain = hg.denoise(grid, y, sigma=shape, method=method)
    for unit in (2.0**229, 2.0**-232):  # powers of 2: scaling is exact
        scaled = hg.denoise(grid, y * unit, sigma=unit * shape, method=method)
        np.testing.assert_allclose(scaled.signal / unit, plain.signal, rtol=1e-12)
        for name in ("risk", "risk_se", "probe_se"):
            np.testing.assert_allclose(getattr(scaled, name) / unit**2, getattr(plain, name), rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("unit", [1e60, 1e-60])
def test_the_unit_of_an_estimator_does_not_matter(unit):
    pytest.importorskip("sklearn")
    rows = np.stack([y, y + 1])
    scaled, plain = (hg.WaveletDenoiser(graph=grid, sigma=u).fit(rows * u).transform(rows * u) for u in (unit, 1.0))
    np.testing.assert_allclose(scaled / unit, plain, rtol=1e-6)


@pytest.mark.parametrize("unit", [1e60, 1e-60])
def test_snr_has_no_unit(unit):
    assert hg.snr([unit] * 3, [0.9 * unit] * 3) == pytest.approx(20.0)


@pytest.mark.parametrize("weight", [1e70, 1e-70])
@pytest.mark.parametrize("nodes", [3, 500])
def test_the_unit_of_the_weights_does_not_matter(nodes, weight):
    edges, signal, unit = [(i, i + 1) for i in range(nodes - 1)], np.arange(nodes) % 7, weight / 2
    graph, plain = (hg.Graph.from_edges(edges, weights=np.full(nodes - 1, each)) for each in (weight, 2.0))
    assert graph.lambda_max / unit == pytest.approx(plain.lambda_max, rel=2e-3)
    assert graph.lambda_upper / unit >= plain.lambda_max * (1 - 1e-12)
    for method, rtol in (("sgwt_deep", 1e-6), ("auto", 1e-3)):  # polynomials of bands with kinks follow the bound, known to 1e-3
        one, other = (hg.denoise(each, signal, sigma=1.0, method=method).signal for each in (graph, plain))
        np.testing.assert_allclose(one, other, rtol=rtol)


def test_weights_of_very_different_size():
    graph = hg.Graph.from_edges([(i, i + 1) for i in range(500)], weights=np.logspace(-70, 70, 500))
    assert 1e70 < graph.lambda_max <= graph.lambda_upper < 4e70
    assert np.isfinite(hg.analyze(hg.chebyshev_frame(graph), np.ones(501))).all()
