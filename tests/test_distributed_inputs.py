"""What distributed runs take: signals in files, edges that change, coordinates that are equal, preparations that were refused."""

import os

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.distributed import cut, denoise, prepare, resume
from hushgraph.distributed.edges import identity_of

from .distributed_cases import ANY, assert_equal, noisy_on, write_edges

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("fsspec")
N = 400


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """A small graph in three partitions, and a noisy signal on it."""
    graph, folder = hg.datasets.grid(20, 20), tmp_path_factory.mktemp("grid") / "work"
    prepare(graph, folder, partitions=3, most_ghosts=ANY)
    return graph, folder, noisy_on(graph)


# ---- signals -------------------------------------------------------------------------------------------------------


def table_of(nodes, values, path):
    pq.write_table(pa.table({"node": nodes, "value": values}), path)
    return path


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("twice", r"one value for each of the 400 nodes; it has 401: some nodes are given more than once"),
        ("twice and missing", "1 have none or NaN.*given more than once"),
        ("missing", "1 have none or NaN"),
        ("float nodes", "column 'node' of .* must hold node numbers.*double"),
        ("text nodes", "column 'node' of .* must hold node numbers.*string"),
        ("no node", "must name a node in each row; 1 rows have none"),
        ("negative", "a value for node -1, but"),
        ("beyond", "a value for node 400, but"),
    ],
)
def test_each_node_has_one_value(grid, tmp_path, case, words):
    _, folder, noisy = grid
    nodes = np.arange(N)
    given = {
        "twice": (np.append(nodes, 7), np.append(noisy, 7.7777)),
        "twice and missing": (np.where(nodes == 8, 7, nodes), noisy),
        "missing": (nodes[1:], noisy[1:]),
        "float nodes": (nodes.astype(float), noisy),
        "text nodes": (nodes.astype(str).tolist(), noisy),
        "no node": ([None, *nodes[1:].tolist()], noisy),
        "negative": (nodes - 1, noisy),
        "beyond": (nodes + 1, noisy),
    }[case]
    path = table_of(*given, tmp_path / "noisy.parquet")
    for name, settings in (("signal", {"signal": path, "sigma": 1.0}), ("sigma", {"signal": noisy, "sigma": path})):
        with pytest.raises(ValueError, match=words) as error:
            denoise(folder, **settings)
        assert case in ("float nodes", "text nodes", "no node") or str(error.value).startswith(name)
        assert "7.77" not in str(error.value)
    assert not list((folder / "signals").glob(".*.tmp"))


def test_narrow_and_wide_numbers_in_files(grid, tmp_path):
    _, folder, noisy = grid
    nodes = np.arange(N)
    files = [
        table_of(nodes[:150], noisy[:150].astype(np.float32), tmp_path / "a.parquet"),
        table_of(nodes[150:], noisy[150:], tmp_path / "b.parquet"),
    ]
    both = np.concatenate([noisy[:150].astype(np.float32).astype(float), noisy[150:]])
    for order in (files, files[::-1]):
        found = denoise(folder, order, sigma=1.0)
        assert found.read().dtype == np.float64
        np.testing.assert_array_equal(found.read(), denoise(folder, both, sigma=1.0).read())


def test_lists_of_numbers_are_arrays(grid):
    graph, folder, noisy = grid
    sizes = np.random.default_rng(1).uniform(0.5, 2.0, N)
    found = denoise(folder, noisy.tolist(), sigma=sizes.tolist())
    assert_equal(found, hg.denoise(graph, noisy, sigma=sizes, method="sgwt_scaled"))
    for bad, error in ((noisy.tolist()[1:], ValueError), ([*noisy.tolist()[1:], "x"], TypeError), ([], ValueError)):
        with pytest.raises(error, match=r"^signal ") as said:
            denoise(folder, bad, sigma=1.0)
        assert "edges" not in str(said.value)
        assert f"{noisy[3]:.3f}"[:4] not in str(said.value)


def test_a_release_knows_its_noise(grid):
    graph, folder, noisy = grid
    release = hg.Noisy(noisy, 1.0, "release", graph.hash)
    for sigma in (np.full(N, 1.0), [1.0] * N, "sigma.npy"):
        with pytest.raises(ValueError, match="sigma travels with the noisy signal"):
            denoise(folder, release, sigma=sigma)


def test_a_signal_that_is_gone(grid, tmp_path):
    graph, _, noisy = grid
    prepare(graph, tmp_path / "work", partitions=2, most_ghosts=ANY)
    first = denoise(tmp_path / "work", noisy, sigma=1.0)
    (first.folder / "result.json").unlink()
    for path in (tmp_path / "work" / "signals").iterdir():
        path.unlink()
    with pytest.raises(ValueError, match=r"needs the signal it was begun with.*call denoise"):
        resume(tmp_path / "work")


# ---- edges and coordinates -----------------------------------------------------------------------------------------


def test_edge_files_that_were_replaced(tmp_path):
    graph = hg.datasets.grid(12, 12)
    write_edges(tmp_path / "edges", graph, 2)
    settings = {"partitions": 2, "most_ghosts": ANY, "n": 144}
    prepare(tmp_path / "edges", tmp_path / "work", **settings)
    assert prepare(tmp_path / "edges", tmp_path / "work", **settings).n == 144
    path = tmp_path / "edges" / "1.parquet"
    old = pq.read_table(path)
    pq.write_table(old.take(np.arange(len(old))[::-1]), path)
    os.utime(path, (1, 1))
    with pytest.raises(
        ValueError, match=r"source differ \(source: other edges, or edge files that changed since\).*another folder"
    ):
        prepare(tmp_path / "edges", tmp_path / "work", **settings)


def test_files_elsewhere_that_were_replaced():
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/replaced/a.parquet", b"one")
    first = identity_of("memory://replaced/a.parquet")
    assert first == identity_of("memory://replaced/a.parquet")
    memory.pipe("/replaced/a.parquet", b"two")
    assert first != identity_of("memory://replaced/a.parquet")


def test_a_refused_preparation_gives_way(tmp_path):
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"source": [0, 1, 1], "target": [1, 0, 2], "weight": [1.0, 2.0, 1.0]}), path)
    with pytest.raises(ValueError, match="more than once"):
        prepare(path, tmp_path / "work")
    with pytest.raises(ValueError, match="more than once"):
        prepare(path, tmp_path / "work")
    assert prepare(path, tmp_path / "work", duplicates="sum", most_ghosts=ANY).n_edges == 2
    graph, noisy = hg.datasets.grid(20, 20), noisy_on(hg.datasets.grid(20, 20))
    for settings in ({"partitions": 4, "most_ghosts": ANY}, {"partitions": 2, "degree": 3, "most_ghosts": 5.0}):
        folder = tmp_path / str(settings["partitions"])
        with pytest.raises(ValueError, match="ghosts after"):
            prepare(graph, folder, partitions=4, most_ghosts=0.1)
        prepare(graph, folder, **settings)
        frame = hg.chebyshev_frame(graph, degree=settings.get("degree", 100))
        one = hg.denoise(graph, noisy, sigma=1.0, method="sgwt_scaled", frame=frame)
        assert_equal(denoise(folder, noisy, sigma=1.0), one)
        with pytest.raises(ValueError, match="another preparation"):
            prepare(graph, folder, partitions=3)


def test_equal_coordinates_are_cut_evenly(tmp_path):
    graph = hg.datasets.grid(20, 20)
    half = np.where(np.arange(N) < 100, 0.0, 1.0)
    for coords in (np.zeros((N, 2)), np.stack([half, np.zeros(N)], axis=1)):
        for parts in (2, 3, 7):
            _, owners = cut.cut_for("coordinates", N, parts, coords, None)
            sizes = np.bincount(np.concatenate([owners(slice(0, 123)), owners(slice(123, N))]), minlength=parts)
            assert sizes.max() - sizes.min() <= 1
    assert prepare(graph, tmp_path, coords=np.zeros((N, 2)), partitions=3, most_ghosts=ANY).partitions == 3


@pytest.mark.parametrize("method", ["sgwt_sure", "sgwt_scaled", "let"])
def test_a_partition_may_be_empty(tmp_path, monkeypatch, method):
    monkeypatch.setattr(cut, "SAMPLE", 2)
    graph, noisy = hg.datasets.grid(20, 20), noisy_on(hg.datasets.grid(20, 20))
    prepare(graph, tmp_path, coords=np.zeros((N, 2)), partitions=3, most_ghosts=ANY)
    assert np.bincount(np.load(next(tmp_path.glob("graph-*/owner.npy"))), minlength=3).min() == 0
    one = hg.denoise(graph, noisy, sigma=1.0, method=method)
    np.testing.assert_allclose(denoise(tmp_path, noisy, sigma=1.0, method=method).read(), one.signal, rtol=1e-9, atol=1e-9)


def test_coordinates_that_no_box_was_made_of_must_be_finite_too(tmp_path, monkeypatch):
    monkeypatch.setattr(cut, "SAMPLE", 2)
    coords = np.zeros((N, 2))
    coords[7, 1] = np.nan
    with pytest.raises(ValueError, match="coords must be finite numbers"):
        prepare(hg.datasets.grid(20, 20), tmp_path / "work", coords=coords, partitions=3, most_ghosts=ANY)


def test_it_is_said_what_the_eigenvalue_is(tmp_path):
    graph = hg.datasets.grid(40, 40)
    top = hg.chebyshev_frame(graph).lambda_max
    found = prepare(graph, tmp_path / "work", partitions=2, most_ghosts=ANY)
    assert found.lambda_max < top
    assert found.lambda_max_from.startswith("a lower bound")
    assert found.lambda_max_from.endswith("Lanczos until the number of scales was certain")
    weighted = hg.datasets.path(900, weight=0.7)
    found = prepare(weighted, tmp_path / "other", partitions=2, most_ghosts=ANY)
    assert found.lambda_max_from.endswith("Lanczos to a relative tolerance of 0.001")
    assert found.lambda_max == pytest.approx(hg.chebyshev_frame(weighted).lambda_max, rel=2e-3)
