"""Files are read in pieces and arrays in chunks: how large they are changes no bit."""

import itertools

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.distributed import denoise, edges, prepare, signals, store
from hushgraph.distributed.addresses import list_files

from .cases import ANY, METHODS, assert_equal, noisy_on, with_islands, write_edges

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("fsspec")
SIZES = [7, 1000, 10**6]


@pytest.fixture(scope="module")
def islands(tmp_path_factory):
    """A weighted graph, its edges in two files of several row groups, a noisy signal and a noise per node."""
    graph, folder = with_islands(), tmp_path_factory.mktemp("batches")
    write_edges(folder / "edges", graph, 2)
    sizes = np.random.default_rng(2).uniform(0.5, 2.0, graph.n)
    noisy = noisy_on(graph)
    np.save(folder / "noisy.npy", noisy)
    np.save(folder / "sizes.npy", sizes)
    prepare(graph, folder / "work", partitions=3, most_ghosts=ANY)
    return graph, folder, noisy, sizes


@pytest.fixture(params=SIZES)
def size(request, monkeypatch):
    """All pieces, batches and chunks of this size."""
    for module, name in ((edges, "PIECE"), (edges, "BATCH"), (signals, "AT_ONCE"), (store, "CHUNK")):
        monkeypatch.setattr(module, name, request.param)
    return request.param


def again(folder, *signal, **settings):
    """A run whose signals are read now, not those of a run before."""
    for path in (folder / "signals").glob("*.npy"):
        path.unlink()
    return denoise(folder, *signal, **settings, resume=False)


# ---- edges ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("piece", "batch", "count"), [(150, 7, 12), (600, 1000, 4), (10**6, 100, 2)])
def test_pieces_of_edges(islands, tmp_path, monkeypatch, piece, batch, count):
    graph, folder, noisy, _ = islands
    monkeypatch.setattr(edges, "PIECE", piece)
    monkeypatch.setattr(edges, "BATCH", batch)
    assert len(edges.split_files(list_files(folder / "edges"))) == count
    prepare(folder / "edges", tmp_path / "work", n=graph.n, partitions=3, most_ghosts=ANY)
    for method in METHODS:
        one = hg.denoise(graph, noisy, sigma=1.0, method=method)
        assert_equal(denoise(tmp_path / "work", noisy, sigma=1.0, method=method), one)


@pytest.mark.parametrize("rows", [4, 60, 1000])
def test_pieces_cover_every_row_once(tmp_path, monkeypatch, rows):
    ends, weights = np.arange(400).reshape(-1, 2), np.random.default_rng(0).uniform(1, 2, 200)
    path = str(tmp_path / "e.parquet")
    pq.write_table(pa.table({"source": ends[:, 0], "target": ends[:, 1], "weight": weights}), path, row_group_size=rows)
    columns = edges.edge_columns(path, None)
    for size, batch in itertools.product((7, 64, 5000), (3, 2**18)):
        monkeypatch.setattr(edges, "BATCH", batch)
        pieces = edges.split_files([path, path], size)
        assert all(last - first == count <= max(2 * size, size + rows) for _, first, last, count in pieces)
        read = [edges.read_piece(piece, columns) for piece in pieces]
        np.testing.assert_array_equal(np.concatenate([pairs for pairs, _ in read]), np.concatenate([ends, ends]))
        np.testing.assert_array_equal(np.concatenate([given for _, given in read]), np.concatenate([weights, weights]))
        assert edges.largest_node(pieces, columns) == 399


def test_the_largest_node_without_statistics(tmp_path, monkeypatch):
    monkeypatch.setattr(edges, "BATCH", 3)
    path = str(tmp_path / "e.parquet")
    pq.write_table(pa.table({"source": [0, 9, 1, 2, 3], "target": [1, 2, 3, 4, 5]}), path, write_statistics=False)
    assert edges.largest_node(edges.split_files([path], 2), edges.edge_columns(path, None)) == 9


def test_what_is_wrong_late_in_a_file_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(edges, "BATCH", 3)
    nodes, path = np.arange(20), tmp_path / "e.parquet"
    late = nodes == 17
    cases = [
        ({"weight": np.where(late, -1.0, 1.0)}, "must not be negative"),
        ({"weight": np.where(late, np.nan, 1.0)}, "must be finite"),
        ({"source": np.where(late, -4, nodes)}, "has node -4; expected numbers from 0"),
        ({"source": pa.array(nodes, mask=late)}, "int64 with 1 missing"),
    ]
    for k, (wrong, words) in enumerate(cases):
        pq.write_table(pa.table({"source": nodes, "target": nodes + 1, **wrong}), path)
        with pytest.raises(ValueError, match=words):
            prepare(path, tmp_path / str(k), n=21)


def test_pieces_that_were_cut_otherwise_are_sorted_again(islands, tmp_path, monkeypatch):
    """A preparation that was cut off, and goes on with pieces of another size."""
    graph, folder, noisy, _ = islands
    settings = {"n": graph.n, "partitions": 2, "most_ghosts": ANY}

    def stop(share, what):
        if what == "rows":
            raise KeyboardInterrupt

    monkeypatch.setattr(edges, "PIECE", 300)
    with pytest.raises(KeyboardInterrupt):
        prepare(folder / "edges", tmp_path / "work", **settings, progress=stop)
    assert list((tmp_path / "work").glob("graph-*/pieces/*/sorted.json"))
    monkeypatch.undo()
    prepare(folder / "edges", tmp_path / "work", **settings)
    one = hg.denoise(graph, noisy, sigma=1.0, method="sgwt_sure")
    assert_equal(denoise(tmp_path / "work", noisy, sigma=1.0, method="sgwt_sure"), one)


# ---- signals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_chunks_of_signals(islands, size, method):
    graph, folder, noisy, sizes = islands
    one = hg.denoise(graph, noisy, sigma=sizes, method=method)
    for prefix in (f"{folder}", f"file://{folder}"):
        assert_equal(again(folder / "work", f"{prefix}/noisy.npy", sigma=f"{prefix}/sizes.npy", method=method), one)


def test_chunks_of_combinations(islands, size):
    graph, folder, noisy, sizes = islands
    slope = np.linspace(0, 60, graph.n)  # the mean of a part is not that of all
    for sigma, shift in ((1.0, 1e3 + slope), (sizes, 0.0)):
        one = hg.denoise(graph, noisy + shift, sigma=sigma, method="let")
        found = again(folder / "work", noisy + shift, sigma=sigma, method="let")
        np.testing.assert_allclose(found.read(), one.signal, rtol=1e-9, atol=1e-9 * np.abs(one.signal).max())
        for name in ("risk", "risk_se", "probe_se"):
            assert getattr(found, name) == pytest.approx(getattr(one, name), rel=1e-9)


@pytest.mark.parametrize("order", [1, -1])
def test_chunks_of_narrow_and_wide_numbers(islands, size, tmp_path, order):
    graph, folder, noisy, _ = islands
    nodes = np.random.default_rng(4).permutation(graph.n)
    files, mixed = [], noisy.copy()
    mixed[nodes[:1500]] = noisy[nodes[:1500]].astype(np.float32)
    for k, (own, dtype) in enumerate([(nodes[:1500], np.float32), (nodes[1500:], np.float64)]):
        files.append(tmp_path / f"{k}.parquet")
        pq.write_table(pa.table({"node": own, "value": noisy[own].astype(dtype)}), files[-1], row_group_size=300)
    one = hg.denoise(graph, mixed, sigma=1.0, method="sgwt_sure")
    assert_equal(again(folder / "work", files[::order], sigma=1.0, method="sgwt_sure"), one)


@pytest.mark.parametrize("node", [0, 999, 2139])
def test_missing_values_are_noticed_in_every_chunk(islands, size, node):
    graph, folder, noisy, sizes = islands
    bad = np.where(np.arange(graph.n) == node, np.nan, noisy)
    with pytest.raises(ValueError, match="signal must have a value for each of the 2140 nodes; 1 have none or NaN"):
        denoise(folder / "work", bad, sigma=1.0)
    with pytest.raises(ValueError, match=r"^sigma .*must be a standard deviation in signal units"):
        denoise(folder / "work", noisy, sigma=np.where(np.arange(graph.n) == node, -1.0, sizes))


def test_signals_that_differ_in_a_late_chunk_are_two(islands, size):
    graph, folder, noisy, _ = islands
    other = np.where(np.arange(graph.n) < graph.n - 1, noisy, 99.0)
    first, second = (denoise(folder / "work", values, sigma=1.0, method="sgwt_sure") for values in (noisy, other))
    assert first.folder != second.folder
    assert_equal(second, hg.denoise(graph, other, sigma=1.0, method="sgwt_sure"))


def test_a_first_chunk_of_small_noise(islands, size):
    graph, folder, noisy, sizes = islands
    small = np.where(np.arange(graph.n) < 1000, 1e-9, sizes)
    one = hg.denoise(graph, noisy, sigma=small, method="sgwt_sure")
    assert_equal(again(folder / "work", noisy, sigma=small, method="sgwt_sure"), one)
