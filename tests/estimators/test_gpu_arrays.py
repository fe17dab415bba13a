"""Arrays on a GPU: the same functions, the same results. Here on a stand-in for CuPy; with the marker `gpu` on the real one."""

import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import hushgraph as hg
from hushgraph._extras import extra
from hushgraph.cli import app
from hushgraph.cli.failures import sentence_of
from hushgraph.core import gpu
from hushgraph.wavelets import noise_level_of
from hushgraph.wavelets.monte_carlo import probes

from ..support.fake_device import installed, real_device

METHODS = ("sgwt_sure", "sgwt_scaled", "sgwt_deep", "sgwt_exact", "let", "filter", "auto")


@pytest.fixture(params=["stand-in", pytest.param("cupy", marks=pytest.mark.gpu)])
def cp(request, monkeypatch):
    return installed(monkeypatch) if request.param == "stand-in" else real_device()


@pytest.fixture(scope="module")
def seen():
    graph = hg.datasets.city(700)
    clean = hg.hotspot_counts(graph, total=4000)
    return graph, clean, clean[:, None] + 3 * np.random.default_rng(0).normal(size=(graph.n, 3))


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized", "random_walk"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_transforms(cp, seen, laplacian, dtype):
    graph, _, noisy = seen
    frame = hg.chebyshev_frame(graph, laplacian=laplacian)
    near = {"rtol": 0, "atol": 1e-12 * np.abs(noisy).max() if dtype == np.float64 else 1e-5 * np.abs(noisy).max()}
    for signal in (noisy[:, 0].astype(dtype), noisy.astype(dtype)):
        bands = hg.analyze(frame, cp.asarray(signal))
        assert isinstance(bands, cp.ndarray)
        assert bands.dtype == dtype
        np.testing.assert_allclose(cp.asnumpy(bands), hg.analyze(frame, signal), **near)
        again = hg.synthesize(frame, bands)
        np.testing.assert_allclose(cp.asnumpy(again), hg.synthesize(frame, hg.analyze(frame, signal)), **near)


@pytest.mark.parametrize("method", METHODS)
def test_denoise(cp, seen, method):
    graph, clean, noisy = seen
    here = hg.denoise(graph, noisy[:, 0], sigma=3, method=method)
    there = hg.denoise(graph, cp.asarray(noisy[:, 0]), sigma=3, method=method)
    assert isinstance(there.signal, cp.ndarray)
    if method == "auto":  # fewer candidates
        assert hg.snr(clean, cp.asnumpy(there.signal)) > hg.snr(clean, here.signal) - 0.5
        assert "depth-first orders and fields with few levels were left out" in there.details["why"]
        assert "left out" not in here.details["why"]
        return
    np.testing.assert_allclose(cp.asnumpy(there.signal), here.signal, rtol=0, atol=1e-9)
    assert there.risk == pytest.approx(here.risk, rel=1e-9)
    assert there.risk_se == pytest.approx(here.risk_se, rel=1e-6)
    if here.thresholds is not None:  # local scales come from a regression, whose own rounding is larger
        near = 1e-12 if method in ("sgwt_sure", "sgwt_exact") else 1e-9
        np.testing.assert_allclose(there.thresholds, here.thresholds, rtol=near)
    np.testing.assert_allclose(cp.asnumpy(there.expected_error()), here.expected_error(), rtol=1e-6)
    for limit, expected in zip(there.interval(), here.interval(), strict=True):
        assert isinstance(limit, cp.ndarray)
        np.testing.assert_allclose(cp.asnumpy(limit), expected, rtol=1e-5, atol=1e-5)


def test_pieces_are_found_on_a_gpu_too(cp):
    """Total variation there is not exact, and its divergence is from probes; the results are as good."""
    graph, rng = hg.datasets.grid(45, 40), np.random.default_rng(0)
    clean = 8.0 * (np.arange(graph.n) % 40 > 15) - 5.0 * (np.arange(graph.n) // 40 > 30)
    noisy = clean + 2 * rng.normal(size=graph.n)
    here, there = (hg.denoise(graph, move(noisy), sigma=2) for move in (np.asarray, cp.asarray))
    errors = [np.mean((cp.asnumpy(one) - clean) ** 2) for one in (cp.asarray(here.signal), there.signal)]
    without = np.mean((hg.denoise(graph, noisy, sigma=2, method="let", refine=True).signal - clean) ** 2)
    assert errors[1] < 0.5 * without
    assert there.risk == pytest.approx(graph.n * errors[1], abs=4 * there.risk_se)


def test_the_second_stage(cp, seen):
    graph, _, noisy = seen
    there, here = (hg.denoise(graph, move(noisy[:, 0]), sigma=3, method="let", refine=True) for move in (cp.asarray, np.asarray))
    np.testing.assert_allclose(cp.asnumpy(there.signal), here.signal, rtol=0, atol=1e-9)
    assert there.risk == pytest.approx(here.risk, rel=1e-9)
    assert there.risk_se == pytest.approx(here.risk_se, rel=1e-6)


@pytest.mark.parametrize("method", ["sgwt_sure", "sgwt_deep", "let"])
def test_a_level_far_from_0(cp, seen, method):
    """The level that is taken out is the processor's, to the bit."""
    graph, _, noisy = seen
    there, here = (hg.denoise(graph, move(noisy + 1e5), sigma=3, method=method) for move in (cp.asarray, np.asarray))
    np.testing.assert_allclose(cp.asnumpy(there.signal), here.signal, rtol=0, atol=1e-9 * np.abs(noisy).max() + 1e-10)
    np.testing.assert_array_equal(there.details.get("offset", 0), here.details.get("offset", 0))
    np.testing.assert_allclose(there.risk, here.risk, rtol=1e-9)


@pytest.mark.parametrize("method", ["sgwt_sure", "let"])
def test_columns_sigma_per_node_and_joint(cp, seen, method):
    graph, _, noisy = seen
    sigma = np.linspace(2, 4, graph.n)
    for settings in ({"sigma": 3.0}, {"sigma": sigma}, {"sigma": 3.0, "columns": "path"}, {"sigma": 3.0, "nonnegative": True}):
        here = hg.denoise(graph, noisy, method=method, **settings)
        moved = {**settings, "sigma": cp.asarray(sigma) if np.ndim(settings["sigma"]) else settings["sigma"]}
        there = hg.denoise(graph, cp.asarray(noisy), method=method, **moved)
        np.testing.assert_allclose(cp.asnumpy(there.signal), here.signal, rtol=0, atol=1e-8)
        np.testing.assert_allclose(there.risk, here.risk, rtol=1e-8)


def test_the_steps_of_denoise(cp, seen):
    graph, _, noisy = seen
    frame = hg.chebyshev_frame(graph)
    F = hg.analyze(frame, cp.asarray(noisy[:, 0]))
    weights = hg.monte_carlo_weights(frame, n_probes=4)
    thresholds = hg.sure_thresholds(F, weights, sigma=3)
    shrunk, _ = hg.james_stein(F, thresholds[:, None])
    signal = cp.asnumpy(hg.synthesize(frame, shrunk))
    np.testing.assert_allclose(signal, hg.denoise(graph, noisy[:, 0], sigma=3, method="sgwt_sure", n_probes=4).signal, atol=1e-9)
    here = hg.sure(cp.asnumpy(F), thresholds, weights=weights, sigma=3)
    assert hg.sure(F, thresholds, weights=weights, sigma=3) == pytest.approx(here, rel=1e-9)


@pytest.mark.parametrize("sigma", [3.0, "per node"])
def test_what_is_refused_is_refused_first(cp, seen, sigma):
    graph, _, noisy = seen
    sigma = np.full(graph.n, 3.0) if sigma == "per node" else sigma
    for settings in (
        {"missing": "drop"},
        {"missing": "fill"},
        {"method": "sgwt_beta"},
        {"method": "sgwt_block", "columns": "path"},
    ):
        with pytest.raises(ValueError, match=r"on the CPU only: pass cupy.asnumpy\(noisy\)"):
            hg.denoise(graph, cp.asarray(noisy), sigma=sigma, **settings)


def test_functions_of_the_cpu_refuse_device_arrays(cp, seen):
    graph, _, noisy = seen
    y, F = cp.asarray(noisy[:, 0]), cp.asarray(np.ones((3, graph.n)))
    for work in (lambda: hg.graph_tv(graph, y, sigma=3), lambda: hg.dfs_fused_lasso(graph, y, sigma=3),
                 lambda: hg.sure_betas(F, F, sigma=3), lambda: hg.oracle_thresholds(F, F), lambda: hg.sure_curve(F[0], F[0], sigma=3),
                 lambda: hg.monte_carlo_divergence(lambda x: x, y)):  # fmt: skip
        with pytest.raises(TypeError, match="runs on the CPU only"):
            work()


@pytest.mark.parametrize("sigma", [3.0, "per node"])
def test_counts(cp, seen, sigma):
    """Rounding moves the optimum of the prior a little, so estimates are as good, and nearly the same."""
    graph, clean, noisy = seen
    sigma = np.linspace(2.5, 3.5, graph.n) if sigma == "per node" else sigma
    for settings in ({"method": "counts"}, {"method": "auto", "nonnegative": True}):
        here, there = (hg.denoise(graph, move(noisy[:, 0]), sigma=sigma, **settings) for move in (np.asarray, cp.asarray))
        assert isinstance(there.signal, cp.ndarray)
        assert hg.snr(clean, cp.asnumpy(there.signal)) > hg.snr(clean, here.signal) - (
            0.02 if settings["method"] == "counts" else 0.1
        )
        assert there.risk == pytest.approx(here.risk, rel=0.02)
        if settings["method"] == "counts":
            np.testing.assert_allclose(cp.asnumpy(there.signal), here.signal, atol=0.1)
            np.testing.assert_allclose(cp.asnumpy(there.expected_error()), here.expected_error(), atol=0.1)
            for limit, expected in zip(there.interval(), there.on_host().interval(), strict=True):
                np.testing.assert_array_equal(cp.asnumpy(limit), expected)
            assert there.details["features"]["coordinates"]
            assert "counts" not in there.details


def test_counts_of_columns(cp, seen):
    graph, _, noisy = seen
    result = hg.denoise(graph, cp.asarray(noisy.astype(np.float32)), sigma=3, method="counts")
    assert result.signal.shape == noisy.shape
    assert result.signal.dtype == np.float32
    assert float(result.signal.min()) >= 0
    assert all(np.asarray(result.risk) > 0)


@pytest.mark.parametrize("place", [None, "hub"])
def test_counts_that_only_the_processor_can_compute_say_so(cp, seen, place):
    graph, _, noisy = seen
    if place is None:
        graph, why = hg.Graph.from_scipy(graph.adjacency), "no usable coordinates"
    else:
        far = np.arange(1, 41)  # neighbours of node 0, with 16 more neighbours each
        pairs = [(0, k) for k in far] + [(k, 41 + (7 * k + m) % 600) for k in far for m in range(16)]
        graph = hg.Graph.from_edges(np.unique(pairs, axis=0), n=graph.n, coords=graph.coords)
        why = "more than 256 nodes two steps away"
    here = hg.denoise(graph, noisy[:, 0], sigma=3, method="counts")
    there = hg.denoise(graph, cp.asarray(noisy[:, 0]), sigma=3, method="counts")
    np.testing.assert_allclose(cp.asnumpy(there.signal), here.signal, rtol=1e-12)
    assert why in there.details["counts"]
    assert "on the CPU, with the same result" in there.details["counts"]
    assert why in hg.denoise(graph, cp.asarray(noisy[:, 0]), sigma=3, nonnegative=True).details["counts"]


def test_results_are_shown_wherever_they_are(cp, seen, tmp_path):
    graph, _, noisy = seen
    result = hg.denoise(graph, cp.asarray(noisy[:, 0]), sigma=3, method="sgwt_sure")
    hg.write_report(tmp_path / "report.html", graph, cp.asarray(noisy[:, 0]), result)
    np.testing.assert_array_equal(result.to_series(), cp.asnumpy(result.signal))
    assert hg.plot_graph_signal(graph, result.signal) is not None


def test_another_gpu_is_refused(cp, monkeypatch):
    graph = hg.datasets.city(100)
    frame, ones = hg.chebyshev_frame(graph), cp.asarray(np.ones(graph.n))
    hg.analyze(frame, ones)
    monkeypatch.setattr(gpu, "current_device", lambda: 7)
    with pytest.raises(RuntimeError, match=r"on GPU 0, and CuPy now uses GPU 7; call graph.free_device\(\) first"):
        hg.analyze(frame, ones)


def test_a_result_comes_back(cp, seen):
    graph, _, noisy = seen
    here = hg.denoise(graph, noisy[:, 0], sigma=3, method="sgwt_sure")
    back = hg.denoise(graph, cp.asarray(noisy[:, 0]), sigma=3, method="sgwt_sure").on_host()
    assert isinstance(back.signal, np.ndarray)
    np.testing.assert_allclose(back.signal, here.signal, rtol=0, atol=1e-10)
    np.testing.assert_allclose(back.expected_error(), here.expected_error(), rtol=1e-6)
    assert back.on_host().signal is back.signal


def test_the_command_takes_a_device(cp, seen, tmp_path):
    graph, _, noisy = seen
    hg.write_graph(tmp_path / "streets.npz", graph)
    hg.write_signal(tmp_path / "noisy.csv", graph, noisy[:, 0])
    done = CliRunner().invoke(
        app, ["denoise", str(tmp_path / "streets.npz"), str(tmp_path / "noisy.csv"), "--sigma", "3", "--method", "let", "--device", "gpu",
              "--report", str(tmp_path / "r.html"), "-o", str(tmp_path / "out.csv")]
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    expected = hg.denoise(graph, noisy[:, 0], sigma=3, method="let")
    np.testing.assert_allclose(hg.read_signal(tmp_path / "out.csv", graph), expected.signal, atol=1e-8)


def test_the_command_says_what_to_leave_out(cp, seen, tmp_path):
    graph, _, noisy = seen
    hg.write_graph(tmp_path / "streets.npz", graph)
    hg.write_signal(tmp_path / "noisy.csv", graph, noisy[:, 0])
    words = ["denoise", str(tmp_path / "streets.npz"), str(tmp_path / "noisy.csv"), "--sigma", "3", "--device", "gpu", "-o", str(tmp_path / "out.csv")]  # fmt: skip
    done = CliRunner().invoke(app, [*words, "--method", "sgwt_block"])
    assert done.exit_code == 2
    assert "leave --device gpu out" in done.output
    assert "cupy" not in done.output


def test_a_gpu_without_memory_is_named():
    there = type("OutOfMemoryError", (MemoryError,), {"__module__": "cupy.cuda.memory"})
    assert "on the GPU for this; leave --device gpu out" in sentence_of(there())[0]
    assert "GPU" not in sentence_of(MemoryError())[0]


def test_a_package_that_is_there_but_broken(monkeypatch, tmp_path):
    (tmp_path / "half_a_package.py").write_text("raise ImportError('libcudart.so.12: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match=r"installed but cannot be imported \(libcudart.so.12"):
        extra("half_a_package", name="cuda", purpose="computing on a GPU")
    with pytest.raises(ImportError, match=r"needs no_such_package: pip install 'hushgraph\[cuda\]'"):
        extra("no_such_package", name="cuda", purpose="computing on a GPU")


def test_a_graph_gives_its_memory_back(cp, seen):
    graph, _, noisy = seen
    first = hg.denoise(graph, cp.asarray(noisy[:, 0]), sigma=3, method="let").on_host()
    assert any("device" in str(key) for key in graph.cache)
    graph.free_device()
    assert not any("device" in str(key) for key in graph.cache)
    np.testing.assert_array_equal(hg.denoise(graph, cp.asarray(noisy[:, 0]), sigma=3, method="let").on_host().signal, first.signal)


def device_arrays(value, cp, met: set[int]) -> int:
    """How many arrays on the device can be reached from a value."""
    if id(value) in met or isinstance(value, str | bytes | int | float | np.ndarray | type(None)):
        return 0
    met.add(id(value))
    if isinstance(value, cp.ndarray):
        return 1
    inside = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, list | tuple)
        else getattr(value, "__dict__", {}).values()
    )
    return sum(device_arrays(part, cp, met) for part in list(inside))


@pytest.mark.parametrize("give_back", ["free_device", "forget"])
def test_products_give_their_memory_back(cp, seen, give_back):
    _, _, noisy = seen
    graph, there = hg.datasets.city(700), cp.asarray(noisy)

    def denoised():
        return hg.denoise(graph, there, sigma=3, method="let", columns="path").on_host().signal

    first = denoised()
    assert any("product" in str(key) for key in graph.cache)
    assert device_arrays(graph, cp, set()) > 0
    getattr(graph, give_back)()
    assert device_arrays(graph, cp, set()) == 0
    assert any("product" in str(key) for key in graph.cache) == (give_back == "free_device")
    np.testing.assert_array_equal(denoised(), first)


def test_unknown_sigma(cp, seen):
    graph, _, noisy = seen
    with pytest.warns(UserWarning, match="sigma was not given"):
        here = hg.denoise(graph, noisy[:, 0], method="sgwt_sure")
    with pytest.warns(UserWarning, match="sigma was not given"):
        there = hg.denoise(graph, cp.asarray(noisy[:, 0]), method="sgwt_sure")
    assert there.sigma == pytest.approx(here.sigma, rel=1e-9)  # its weights come from a regression


def test_a_signal_that_only_gets_worse_stays(cp):
    graph = hg.datasets.grid(20, 20)
    rough = 50 * (-1.0) ** np.add.outer(np.arange(20), np.arange(20)).ravel() * np.random.default_rng(0).uniform(0.5, 1.5, 400)
    here = hg.denoise(graph, rough, sigma=5, method="sgwt_sure", rule="soft")
    there = hg.denoise(graph, cp.asarray(rough), sigma=5, method="sgwt_sure", rule="soft")
    np.testing.assert_allclose(cp.asnumpy(there.signal), here.signal, atol=1e-10)


@pytest.mark.parametrize("law", ["rademacher", "gaussian"])
def test_probes_are_the_same(cp, law):
    if law == "gaussian":
        pytest.importorskip("cupyx")
    found = probes(1000, 3, law=law, seed=5, like=cp.asarray(np.zeros(1)))
    np.testing.assert_allclose(cp.asnumpy(found), probes(1000, 3, law=law, seed=5), rtol=1e-13)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("level", ["scale", "global"])
@pytest.mark.parametrize("settings", [{"rule": "soft"}, {"rule": "james_stein"}, {"rule": "power", "beta": 3.0}])
def test_thresholds_are_the_same(cp, settings, level, scaled):
    rng = np.random.default_rng(0)
    F, weights = rng.standard_t(3, size=(4, 3000, 2)), rng.uniform(0, 1, (4, 3000))
    F[1] = np.round(F[1])  # ties and zeros
    F[2] = 0.0
    weights[3, ::7] = 0.0
    here = hg.sure_thresholds(F, weights, sigma=0.7, level=level, threshold_scale=scaled, **settings)
    there = hg.sure_thresholds(cp.asarray(F), cp.asarray(weights), sigma=0.7, level=level, threshold_scale=scaled, **settings)
    np.testing.assert_allclose(there, here, rtol=1e-12 if "beta" not in settings else 1e-9)


@pytest.mark.parametrize("wish", [{"method": "sgwt_beta"}, {"method": "sgwt_block"}, {"missing": "drop"}])
def test_what_stays_on_the_processor_is_refused(cp, seen, wish):
    graph, _, noisy = seen
    with pytest.raises(ValueError, match="runs on the CPU only"):
        hg.denoise(graph, cp.asarray(noisy[:, 0]), sigma=3, **wish)


def test_bad_values_are_refused(cp, seen):
    graph, _, noisy = seen
    bad = noisy[:, 0].copy()
    bad[5] = np.nan
    with pytest.raises(ValueError, match="1 entries that are NaN or infinite"):
        hg.denoise(graph, cp.asarray(bad), sigma=3)
    with pytest.raises(ValueError, match="one row per node"):
        hg.denoise(graph, cp.asarray(bad[1:]), sigma=3)


def test_without_cupy_the_command_names_the_extra(seen, tmp_path, monkeypatch):
    graph, _, noisy = seen
    monkeypatch.setitem(sys.modules, "cupy", None)
    hg.write_graph(tmp_path / "streets.npz", graph)
    hg.write_signal(tmp_path / "noisy.csv", graph, noisy[:, 0])
    done = CliRunner().invoke(
        app,
        ["denoise", str(tmp_path / "streets.npz"), str(tmp_path / "noisy.csv"), "--device", "gpu", "-o", str(tmp_path / "out.csv")],
    )
    assert done.exit_code == 2
    assert "hushgraph[cuda]" in done.output


def test_denoising_needs_neither_the_command_line_nor_many_digits_nor_a_gpu():
    code = """
import sys
for name in ("typer", "rich", "mpmath", "cupy", "pandas", "matplotlib"):
    sys.modules[name] = None
import numpy as np, hushgraph as hg
graph = hg.datasets.grid(20, 30)
hg.denoise(graph, np.random.default_rng(0).normal(size=600), sigma=1.0)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("columns", [slice(0, 1), slice(0, 3)])
def test_noise_level(cp, seen, columns):
    graph, _, noisy = seen
    here, there = (noise_level_of(graph, values) for values in (noisy[:, columns], cp.asarray(noisy[:, columns])))
    assert (there, there.se) == pytest.approx((here, here.se), rel=1e-6)
    assert type(there) is type(here)
