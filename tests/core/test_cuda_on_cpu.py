"""The CUDA kernels, run by an emulator on the processor: the bits of the processor's own, with no GPU anywhere."""

import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.core import _loops, cpu, gpu, reference, tile_layout, total_variation_gpu
from hushgraph.estimators.baselines.total_variation import Arcs, minimise
from hushgraph.estimators.let import gating
from hushgraph.wavelets import threshold_search_gpu as device_thresholds
from hushgraph.wavelets.monte_carlo import probes

from ..support import cuda_on_cpu, fake_device
from .test_kernels_agree import WEIGHTS, weighted_like

pytestmark = pytest.mark.skipif(cuda_on_cpu.compiler() is None, reason="needs a C++ compiler")
REAL = {
    name: getattr(gpu, name) for name in ("prepare", "forward", "inverse", "forward_with_moments", "forward_each", "dots", "signs")
}
ROWS = device_thresholds._Rows
TOTAL_VARIATION = total_variation_gpu.total_variation
GATES = {name: getattr(gating, name) for name in ("_shrunken_on_device", "_moves_on_device", "_add_shrunken_derivative_on_device")}


@pytest.fixture
def cp(monkeypatch):
    fake = fake_device.installed(monkeypatch)
    fake.cuda.runtime.memGetInfo = lambda: (2**40, 2**40)
    pool = SimpleNamespace(free_bytes=lambda: 0, get_limit=lambda: 0, used_bytes=lambda: 0)
    fake.get_default_memory_pool = lambda: pool
    for name, function in REAL.items():
        monkeypatch.setattr(gpu, name, function)
    monkeypatch.setattr(gpu, "compiled", cuda_on_cpu.compiled)
    monkeypatch.setattr(gpu, "RECORDED", 0)
    monkeypatch.setattr(device_thresholds, "_Rows", ROWS)
    monkeypatch.setattr(device_thresholds, "compiled", cuda_on_cpu.compiled)
    monkeypatch.setattr(device_thresholds, "_processors", lambda: 3)
    monkeypatch.setattr(device_thresholds, "_shared_memory", lambda: 227 * 1024)
    return fake


# ---- transforms -----------------------------------------------------------------------------------------------------


def streets(weights):
    graph = hg.datasets.city(300)
    return weighted_like(graph, weights) if weights else graph


def hub():
    """A row that a warp adds up, and isolated nodes."""
    pairs = [(0, k) for k in range(1, 200)] + [(k, k + 1) for k in range(1, 199)]
    return hg.Graph.from_edges(np.array(pairs), n=230)


def crossings():
    """Rows with more neighbours than fit into a quad, also among the last ones, which do not fill their warp."""
    ring = [(k, (k + 1) % 221) for k in range(221)]
    return hg.Graph.from_edges(np.array(ring + [(k, (k + far) % 221) for k in range(0, 221, 11) for far in (5, 15, 27)]))


GRAPHS = {
    "crossings": crossings,
    "streets": lambda: streets(None),
    "weighted": lambda: streets(WEIGHTS[-1]),
    "hub": hub,
    "image": lambda: hg.Graph.from_image((9, 11), neighbours=8, diagonal_weight=1),  # two quads a row
    "one node": lambda: hg.datasets.path(1),
    "no node": lambda: hg.Graph.from_edges(np.empty((0, 2), dtype=int), n=0),
}


@pytest.mark.parametrize(
    ("name", "dtype", "terms"),  # several batches of terms in turn, or one
    [("streets", np.float64, 6), ("streets", np.float32, 104), ("weighted", np.float64, 104), ("weighted", np.float32, 6),
     ("crossings", np.float64, 104), ("crossings", np.float32, 104), ("hub", np.float64, 6), ("hub", np.float32, 104), ("one node", np.float64, 6),
     ("image", np.float64, 104), ("image", np.float32, 6), ("no node", np.float64, 104)],
)  # fmt: skip
def test_transforms_have_the_bits_of_the_processor(cp, monkeypatch, name, dtype, terms):
    graph = GRAPHS[name]()
    monkeypatch.setattr(gpu, "TERMS", terms)
    frame = hg.chebyshev_frame(graph, degree=18)
    scale = 2 * frame.unit / frame.lambda_upper if frame.lambda_upper else 0.0
    here, there = graph.layout("combinatorial"), graph.device_layout("combinatorial")
    plain = reference.prepare(*graph.symmetric_parts("combinatorial"))
    near = {"rtol": 0, "atol": 0.0 if name != "hub" else 1e-12 if dtype == np.float64 else 1e-5}
    for columns in (1, 3, 9) if name == "streets" else (1, 9):
        x = np.random.default_rng(0).normal(size=(columns, graph.n)).astype(dtype)
        F = cpu.forward(here, frame.coefficients, x, scale)
        truth = reference.forward(plain, frame.coefficients, x.astype(np.float64), scale)
        np.testing.assert_allclose(
            F, truth, rtol=0, atol={np.float64: 1e-12, np.float32: 1e-5}[dtype] * np.abs(truth).max(initial=0)
        )
        turned, wide = cp.asarray(np.ascontiguousarray(x[:, ::-1])), cp.asarray(np.repeat(x, 2, axis=1))
        for signals in (cp.asarray(x), cp.asarray(np.ascontiguousarray(x.T)).T, turned[:, ::-1], wide[:, ::2]):  # wherever they lie
            np.testing.assert_allclose(gpu.forward(there, frame.coefficients, signals, scale).get(), F, **near)
        back = cpu.inverse(here, frame.coefficients, F, scale)
        np.testing.assert_allclose(gpu.inverse(there, frame.coefficients, cp.asarray(F), scale).get(), back, **near)
    moments = gpu.forward_with_moments(there, frame.coefficients, cp.asarray(x), scale, n_moments=19)[1].get()
    expected = cpu.forward_with_moments(here, frame.coefficients, x, scale, n_moments=19)[1]
    # a moment is the difference of sums as large as the first one
    near = {"rtol": 1e-12, "atol": 1e-14 * expected.max(initial=0)} if dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-3}
    np.testing.assert_allclose(moments, expected, **near)


def many_streets():
    """Several tiles, and small components."""
    pairs = np.argwhere(hg.datasets.city(1200).adjacency.toarray())
    return hg.Graph.from_edges(np.concatenate([pairs[pairs[:, 0] < pairs[:, 1]], [(1305, 1306), (1310, 1311)]]), n=1315)


@pytest.mark.parametrize(
    ("make", "dtype", "hops", "free"),
    [(many_streets, np.float64, 6, 2**40), (many_streets, np.float32, 4, 2**40), (many_streets, np.float64, 2, 0),
     (many_streets, np.float64, 4, 6 * 30 * 1344 * 8), (crossings, np.float64, 4, 2**40), (lambda: hg.datasets.path(1), np.float64, 4, 2**40),
     (lambda: hg.Graph.from_image((23, 31), neighbours=8, diagonal_weight=1), np.float64, 2, 2**40)],
)  # fmt: skip
def test_tiles_have_the_bits_of_the_processor(cp, monkeypatch, make, dtype, hops, free):
    """One term for each launch or several, all terms in memory or in batches; rows with many neighbours; small components."""
    monkeypatch.setattr(gpu, "TILED", (0, 2**24))
    monkeypatch.setattr(gpu, "_processors", lambda: 3)
    monkeypatch.setattr(tile_layout, "ROWS_PER_THREAD", (1, 2))
    monkeypatch.setattr(tile_layout, "HOPS", (hops,))
    cp.cuda.runtime.memGetInfo = lambda: (free, free)
    graph, rng = make(), np.random.default_rng(0)
    here, there = graph.layout("combinatorial"), graph.device_layout("combinatorial")
    assert there.tiles.hops == hops
    assert there.tiles.count > 1 or make is not many_streets
    scale = 2 / max(graph.spectrum("combinatorial").lambda_upper, 1.0)
    for n_terms, columns in ((2, 1), (hops + 1, 2), (hops + 2, 3), (19, 1), (40, 2)):
        theta, x = rng.normal(size=(9, n_terms)), rng.normal(size=(columns, graph.n)).astype(dtype)
        bands = cpu.forward(here, theta, x, scale)
        np.testing.assert_array_equal(gpu.forward(there, theta, cp.asarray(x), scale).get(), bands)
        np.testing.assert_array_equal(gpu.forward(there, theta[:1], cp.asarray(x), scale).get(), bands[:, :1])
        back = cpu.inverse(here, theta, bands, scale)
        np.testing.assert_array_equal(gpu.inverse(there, theta, cp.asarray(bands), scale).get(), back)
        each = np.stack([cpu.forward(here, theta[j : j + 1], bands[:, j], scale)[:, 0] for j in range(9)], axis=1)
        np.testing.assert_array_equal(gpu.forward_each(there, theta, cp.asarray(bands), scale).get(), each)
        moments = gpu.forward_with_moments(there, theta[:2], cp.asarray(x), scale, n_moments=2 * n_terms - 1)[1].get()
        expected = cpu.forward_with_moments(here, theta[:2], x, scale, n_moments=2 * n_terms - 1)[1]
        near = 1e-13 if dtype == np.float64 else 1e-6
        np.testing.assert_allclose(moments, expected, rtol=0, atol=near * expected.max())


def test_a_graph_that_cannot_be_cut_has_no_tiles(cp, monkeypatch):
    monkeypatch.setattr(gpu, "TILED", (0, 2**24))
    monkeypatch.setattr(gpu, "_processors", lambda: 3)
    monkeypatch.setattr(tile_layout, "ROWS_PER_THREAD", (1,))
    pairs = np.random.default_rng(0).integers(0, 3000, (9000, 2))
    assert (
        hg.Graph.from_edges(pairs[pairs[:, 0] != pairs[:, 1]], n=3000, duplicates="max").device_layout("combinatorial").tiles
        is None
    )
    assert streets(WEIGHTS[-1]).device_layout("combinatorial").tiles is None


def test_a_graph_gives_its_memory_back_at_once(cp):
    graph = streets(None)
    frame = hg.chebyshev_frame(graph, degree=5)
    gc.disable()  # which would give it back some time
    try:
        hg.synthesize(frame, hg.analyze(frame, cp.asarray(np.ones(graph.n))))
        kept = weakref.ref(graph.device_layout("combinatorial"))
        graph.free_device()
        assert kept() is None
    finally:
        gc.enable()


def test_terms_stay_below_the_limit_of_the_pool(cp):
    graph = streets(None)
    x = np.random.default_rng(0).normal(size=graph.n)
    frame = hg.chebyshev_frame(graph)
    whole = hg.analyze(frame, cp.asarray(x)).get()
    terms = dict(graph.device_layout("combinatorial").cache)["terms", "<f8", 1, 103]
    assert len(terms) == 103
    graph.free_device()
    cp.get_default_memory_pool().get_limit = lambda: 6 * 20 * terms[0].nbytes
    np.testing.assert_array_equal(hg.analyze(frame, cp.asarray(x)).get(), whole)
    assert len(graph.device_layout("combinatorial").cache["terms", "<f8", 1, 103]) == 20


def test_sums_and_signs(cp):
    a, b = np.random.default_rng(0).normal(size=(2, 3, 20_000))
    np.testing.assert_allclose(gpu.dots(cp.asarray(a), cp.asarray(b)).get(), (a * b).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(gpu.dots(cp.asarray(a)).get(), a.sum(axis=1), rtol=1e-11)
    np.testing.assert_array_equal(probes(1000, 3, seed=5, like=cp.asarray(a)).get(), probes(1000, 3, seed=5))


# ---- coefficients behind a gate -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 500, 5000])
@pytest.mark.parametrize("is_gated", [False, True])
def test_shrunken_rows_are_those_of_the_processor(cp, n, is_gated):
    rng, k, n_probes = np.random.default_rng(0), 3, 2
    whole, scale, weights, cross = (
        rng.normal(size=(k + 2, n)),
        rng.uniform(0, 2, (k, n)),
        rng.uniform(0, 1, (k, n)),
        rng.normal(size=(k, n)),
    )
    scale[:, ::7] = 0.0
    rho, smooth, t, a = (
        rng.normal(size=(n_probes, k, n)),
        rng.normal(size=(n_probes, n)),
        np.array([0.0, 0.7, 2.0]),
        rng.normal(size=(3, k)),
    )
    w, there = whole[1 : k + 1], cp.asarray(whole)[1 : k + 1]  # a part of other rows
    parts = (*gating.gate_opening(smooth[0], 0.1, 1.2), smooth, rng.normal(size=n_probes), rng.normal(size=n_probes))
    gate, gate_there, moves, moves_there = None, None, None, None
    if is_gated:
        gate, gate_there = gating.Gate(*parts), gating.Gate(*map(cp.asarray, parts))
        moves, moves_there = gate.moves(cross, rho), GATES["_moves_on_device"](gate_there, cp.asarray(cross), cp.asarray(rho))
        np.testing.assert_allclose(moves_there.get(), moves, rtol=1e-12, atol=1e-13)
    values, divergence = gating.shrunken(w, scale, t, weights, gate, moves)
    found = GATES["_shrunken_on_device"](there, cp.asarray(scale), t, cp.asarray(weights), gate_there, moves_there)
    np.testing.assert_allclose(found[0].get(), values, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(found[1].get(), divergence, rtol=1e-11, atol=1e-11)
    for shape in ((n_probes, k + 1, n),) if is_gated else ((n_probes, k + 1, n), (n_probes, 1, n)):
        here, out = np.ones(shape), cp.asarray(np.ones(shape))
        gating.add_shrunken_derivative(w, scale, t, a, rho, here[:, :k], gate)
        GATES["_add_shrunken_derivative_on_device"](there, cp.asarray(scale), t, a, cp.asarray(rho), out[:, :k], gate_there)
        np.testing.assert_allclose(out.get(), here, rtol=1e-12, atol=1e-12)


# ---- total variation ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, WEIGHTS[-1]])
def test_total_variation_is_near_the_minimum(cp, weights):
    graph, rng = streets(weights), np.random.default_rng(0)
    penalties = np.array([0.3, 1.0, 0.3, 0.0]) / graph.adjacency.data.mean()
    y = rng.normal(size=(4, graph.n)) + 5 * (np.arange(graph.n) > graph.n // 2)
    found = TOTAL_VARIATION(total_variation_gpu.Edges.of(graph.adjacency), cp.asarray(y), penalties).get()
    stand_in = fake_device._total_variation(total_variation_gpu.Edges.of(graph.adjacency), cp.asarray(y), penalties).get()
    np.testing.assert_allclose(found, stand_in, rtol=0, atol=1e-11)
    for row, noisy, penalty in zip(found, y, penalties, strict=True):
        exact = minimise(graph, Arcs.of(graph), noisy, penalty).x
        assert np.mean((row - exact) ** 2) < 1e-4


def test_total_variation_without_edges(cp):
    graph = hg.Graph.from_edges(np.empty((0, 2), dtype=int), n=3)
    y = cp.asarray(np.ones((2, 3)))
    np.testing.assert_array_equal(TOTAL_VARIATION(total_variation_gpu.Edges.of(graph.adjacency), y, np.ones(2)).get(), y.get())


# ---- thresholds -----------------------------------------------------------------------------------------------------


def rows_of(kind: str, n: int = 5000):
    rng = np.random.default_rng(0)
    x = {
        "noise": lambda: rng.standard_t(3, size=(2, n)),
        "smooth": lambda: 10 * np.sin(np.arange(2 * n) / 1000).reshape(2, n) + rng.normal(size=(2, n)),
        "ties": lambda: np.round(rng.normal(size=(2, n)), 0),
        "zeros": lambda: np.stack([np.zeros(n), np.where(np.arange(n) % 3, 0.0, rng.normal(size=n))]),
        "spike": lambda: np.where(np.arange(n) == 5, 1e10, rng.normal(size=(2, n))),
        "few": lambda: rng.normal(size=(2, 40)),
    }[kind]()
    return x, rng.uniform(0, 1, x.shape)


@pytest.mark.parametrize("kind", ["noise", "smooth", "ties", "zeros", "spike", "few"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("many", [10**9, 0])  # values from which on there is room for large cells
def test_thresholds_have_the_bits_of_the_processor(cp, monkeypatch, kind, scaled, many):
    monkeypatch.setattr(device_thresholds, "MANY_VALUES", many)
    x, g = rows_of(kind)
    beta, scale = (1.0 if kind == "smooth" else 2.0), np.random.default_rng(1).uniform(0.3, 2, x.shape) if scaled else None
    if scale is not None:
        scale[:, ::11] = 0.0
    here = _loops.least_sure(x, g, scale, 1.0, beta)
    rows = ROWS(cp.asarray(x), cp.asarray(g), None if scale is None else cp.asarray(scale), 1.0, beta)
    found, searched = rows.search()
    np.testing.assert_array_equal(found[searched], here[searched])
    assert searched.all() == (
        kind not in (("spike",) if many == 0 else ("ties", "spike"))
    )  # cells of very many values go to the host
    np.testing.assert_array_equal(_loops.least_of_rows(*rows.cells_and_members(), 1.0, beta), here)


def test_a_card_with_little_shared_memory(cp, monkeypatch):
    monkeypatch.setattr(device_thresholds, "_shared_memory", lambda: 64 * 1024)
    x, g = rows_of("noise")
    here = hg.sure_thresholds(x.astype(np.float32), g, sigma=0.8)
    np.testing.assert_array_equal(hg.sure_thresholds(cp.asarray(x.astype(np.float32)), cp.asarray(g), sigma=0.8), here)
