"""What distributed runs take: signals in files, edges that change, coordinates that are equal, preparations that were refused."""

import os

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.distributed import denoise, partitioning, prepare, resume
from hushgraph.distributed.addresses import file_identity, list_files, open_file
from hushgraph.distributed.edges import edge_columns

from .cases import ANY, METHODS, assert_equal, noisy_on, write_edges

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


# ---- edges in memory -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["array", "list", "matrix"])
def test_edges_in_memory_are_the_graph(grid, tmp_path, form):
    graph, _, noisy = grid
    pairs = hg.graphs.upper_edges(graph)[0]
    edges = {"array": pairs, "list": list(map(tuple, pairs.tolist())), "matrix": hg.to_scipy(graph)}[form]
    found = prepare(edges, tmp_path / "work", partitions=3, most_ghosts=ANY)
    assert (found.n, found.n_edges) == (graph.n, graph.n_edges)
    assert prepare(edges, tmp_path / "work", partitions=3, most_ghosts=ANY) == found  # it is known already
    expected = hg.denoise(graph, noisy, sigma=1.0, method="sgwt_sure")
    assert_equal(denoise(tmp_path / "work", noisy, sigma=1.0, method="sgwt_sure"), expected)
    assert hg.distributed.plan(edges, partitions=3, most_ghosts=ANY).n_edges == graph.n_edges


def test_edges_in_memory_with_weights_places_and_lonely_nodes(tmp_path):
    graph = hg.datasets.grid(6, 6)
    pairs = hg.graphs.upper_edges(graph)[0]
    assert prepare(pairs, tmp_path / "a", n=40, partitions=2, most_ghosts=ANY).n == 40
    assert prepare(pairs, tmp_path / "b", coords=graph.coords, partitions=2, most_ghosts=ANY).n == 36
    weighted = graph.adjacency * 2.5
    assert prepare(weighted, tmp_path / "c", partitions=2, most_ghosts=ANY).lambda_upper == pytest.approx(
        prepare(hg.Graph.from_scipy(weighted), tmp_path / "d", partitions=2, most_ghosts=ANY).lambda_upper
    )
    with pytest.raises(ValueError, match="names a column of edge files"):
        prepare(pairs, tmp_path / "e", weight="length")
    with pytest.raises(TypeError, match=r"edges must be a Graph, \(m, 2\) node numbers, a sparse matrix, or parquet files"):
        prepare({"source": [0], "target": [1]}, tmp_path / "e")


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


def test_files_come_in_the_order_of_their_numbers(grid, tmp_path):
    _, folder, noisy = grid
    for k, own in enumerate(np.array_split(noisy, 12)):
        pq.write_table(pa.table({"value": own}), tmp_path / f"part.{k}.parquet")
    assert [name.rsplit("/", 1)[-1] for name in list_files(tmp_path)] == [f"part.{k}.parquet" for k in range(12)]
    np.testing.assert_array_equal(denoise(folder, tmp_path, sigma=1.0).read(), denoise(folder, noisy, sigma=1.0).read())


@pytest.mark.parametrize("prefix", ["memory://signals", "file://"])
def test_arrays_elsewhere(grid, tmp_path, prefix):
    _, folder, noisy = grid
    sizes = np.random.default_rng(1).uniform(0.5, 2.0, N).astype(np.float32)
    address = prefix if prefix.startswith("memory") else f"file://{tmp_path}"
    for name, values in (("y", noisy), ("s", sizes), ("short", noisy[1:]), ("flat", noisy.reshape(20, 20)), ("one", np.array(1.0))):
        with pytest.importorskip("fsspec").open(f"{address}/{name}.npy", "wb") as file:
            np.save(file, values)
    found = denoise(folder, f"{address}/y.npy", sigma=f"{address}/s.npy")
    np.testing.assert_array_equal(found.read(), denoise(folder, noisy, sigma=sizes).read())
    for where in (address, str(tmp_path)) if prefix == "file://" else (address,):
        for name, shape in (("short", r"\(399,\)"), ("flat", r"\(20, 20\)"), ("one", r"\(\)")):
            with pytest.raises(ValueError, match=rf"^sigma needs one value per node: expected \(400,\), got {shape}"):
                denoise(folder, noisy, sigma=f"{where}/{name}.npy")
    with pytest.raises(FileNotFoundError, match=r"^signal must be numbers, a \.npy file, or parquet files"):
        denoise(folder, f"{address}/none.npy", sigma=1.0)


def test_arrays_that_are_damaged(grid, tmp_path):
    _, folder, noisy = grid
    np.save(tmp_path / "y.npy", noisy)
    whole = (tmp_path / "y.npy").read_bytes()
    np.save(tmp_path / "objects.npy", noisy.astype(object))
    objects = (tmp_path / "objects.npy").read_bytes()
    for content in (whole[:-3], whole[:20], b"1.0,2.0", b"", objects):
        (tmp_path / "y.npy").write_bytes(content)
        for address in (tmp_path / "y.npy", f"file://{tmp_path}/y.npy"):
            with pytest.raises(ValueError, match=r"y\.npy is not a \.npy file of numbers, or is damaged"):
                denoise(folder, address, sigma=1.0)


@pytest.mark.parametrize(
    "names",
    [
        ["node", "value", "__index_level_0__"],
        ["node", "value", "more"],
        ["more", "signal", "value", "node"],
        ["__null_dask_index__", "anything"],
        ["anything", "id", "__index_level_0__"],
    ],
)
def test_the_column_of_values(grid, tmp_path, names):
    _, folder, noisy = grid
    own = next(name for name in ("signal", "value", "anything") if name in names)
    nodes = np.random.default_rng(2).permutation(N) if {"node", "id"} & set(names) else np.arange(N)
    columns = {name: nodes if name in ("node", "id") else noisy[nodes] if name == own else np.zeros(N) for name in names}
    pq.write_table(pa.table(columns), tmp_path / "y.parquet")
    np.testing.assert_array_equal(
        denoise(folder, tmp_path / "y.parquet", sigma=1.0).read(), denoise(folder, noisy, sigma=1.0).read()
    )


def test_files_that_hold_no_signal(grid, tmp_path):
    _, folder, noisy = grid
    (tmp_path / "y.csv").write_text("node,value\n0,1.0\n")
    with pytest.raises(
        ValueError, match=r"y\.csv is not a parquet file, .* columns node and value, or all values in one \.npy file"
    ):
        denoise(folder, tmp_path / "y.csv", sigma=1.0)
    for gone in ("abc", "memory://nowhere/abc.npy"):
        with pytest.raises(FileNotFoundError, match=r"^sigma must be numbers, a \.npy file, or parquet files .* no such file at"):
            denoise(folder, noisy, sigma=gone)
    pq.write_table(pa.table({"node": np.arange(N), "a": noisy, "b": noisy}), tmp_path / "y.parquet")
    with pytest.raises(ValueError, match=r"must have a column 'value' or 'sigma', or a single one beside the nodes; it has"):
        denoise(folder, noisy, sigma=tmp_path / "y.parquet")
    pq.write_table(pa.table({"value": noisy[:200]}), tmp_path / "0.parquet")
    table_of(np.arange(200, N), noisy[200:], tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"all files of signal must have a column of nodes, or none; .*1\.parquet differs"):
        denoise(folder, [tmp_path / "0.parquet", tmp_path / "1.parquet"], sigma=1.0)


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
    first = file_identity("memory://replaced/a.parquet")
    assert first == file_identity("memory://replaced/a.parquet")
    memory.pipe("/replaced/a.parquet", b"two")
    assert first != file_identity("memory://replaced/a.parquet")


def test_addresses_that_cannot_be_reached(monkeypatch):
    registry = pytest.importorskip("fsspec.registry")
    lacking = {"class": "hushgraph_has_no_such_package.System", "err": "Install it"}
    monkeypatch.setitem(registry.known_implementations, "lacking", lacking)
    for call in (list_files, open_file, file_identity):
        with pytest.raises(
            ImportError, match=r"files at lacking:// need a package .* install the fsspec package for it, such as s3fs"
        ):
            call("lacking://bucket/e.parquet")
        with pytest.raises(ValueError, match=r"a protocol that fsspec knows.*got nonsense://"):
            call("nonsense://bucket/e.parquet")


def test_all_edge_files_have_the_same_columns(tmp_path):
    plain, weighted = {"source": [0, 1], "target": [1, 2]}, {"source": [2, 3], "target": [3, 4], "weight": [0.5, 2.0]}
    other = {"from": [2], "to": [3]}
    for k, (first, second) in enumerate([(plain, weighted), (weighted, plain), (plain, other)]):
        folder = tmp_path / str(k)
        folder.mkdir()
        pq.write_table(pa.table(first), folder / "0.parquet")
        pq.write_table(pa.table(second), folder / "1.parquet")
        with pytest.raises(
            ValueError, match=r"all edge files must have the same columns.*0\.parquet has .*1\.parquet has .*weight=False"
        ):
            prepare(folder, tmp_path / f"work{k}")
    assert prepare(tmp_path / "1", tmp_path / "work1", weight=False, most_ghosts=ANY).n_edges == 4


def test_weights_that_are_asked_for_must_be_there(tmp_path):
    write_edges(tmp_path / "edges", hg.datasets.grid(5, 5), 1)
    for weight in (True, "length"):
        with pytest.raises(ValueError, match=r"has no column '(weight|length)'"):
            prepare(tmp_path / "edges", tmp_path / "work", weight=weight)


def test_weights_are_found_in_any_case(tmp_path):
    path = str(tmp_path / "e.parquet")
    for names, own in (([" Weight"], " Weight"), (["WEIGHT", "weight"], "weight"), (["Weights"], None)):
        pq.write_table(pa.table({"Source": [0], "Target": [1], **{name: [2.0] for name in names}}), path)
        assert edge_columns(path, None).weight == own
        assert edge_columns(path, False).weight is None
    pq.write_table(pa.table({"u": [0], "v": [1], "Weight": [2.0], "WEIGHT": [2.0]}), path)
    with pytest.raises(ValueError, match=r"must have one column for weights.*weight="):
        edge_columns(path, None)


@pytest.mark.parametrize("groups", [0, 1])
@pytest.mark.parametrize("parts", [1, 3])
def test_files_without_edges(tmp_path, groups, parts):
    schema = pa.schema({"source": pa.int64(), "target": pa.int64(), "weight": pa.float64()})
    with pq.ParquetWriter(tmp_path / "e.parquet", schema) as writer:
        for _ in range(groups):
            writer.write_table(schema.empty_table())
    with pytest.raises(ValueError, match="the graph has no nodes"):
        prepare(tmp_path / "e.parquet", tmp_path / "work")
    found = prepare(tmp_path / "e.parquet", tmp_path / "work", n=30, partitions=parts)
    assert (found.n, found.n_edges) == (30, 0)
    noisy = np.arange(30.0)
    one = hg.denoise(hg.Graph.from_edges(np.empty((0, 2), int), n=30), noisy, sigma=1.0, method="sgwt_sure")
    np.testing.assert_array_equal(denoise(tmp_path / "work", noisy, sigma=1.0, method="sgwt_sure").read(), one.signal)


@pytest.mark.parametrize("source", ["files", "graph"])
@pytest.mark.parametrize("method", METHODS)
def test_partitions_without_edges_have_no_weights(tmp_path, source, method):
    pairs = np.stack([np.arange(449), np.arange(1, 450)], axis=1)
    graph = hg.Graph.from_edges(pairs, n=900, weights=np.full(449, 0.7))
    write_edges(tmp_path / "edges", graph, 2)
    edges = graph if source == "graph" else tmp_path / "edges"
    prepare(edges, tmp_path / "work", n=900, partitions=4, by="ordering", most_ghosts=ANY)
    noisy = noisy_on(graph)
    one = hg.denoise(graph, noisy, sigma=1.0, method=method)
    np.testing.assert_array_equal(
        np.load(next((tmp_path / "work").glob("graph-*/frame.npy"))), hg.chebyshev_frame(graph).coefficients
    )
    assert_equal(denoise(tmp_path / "work", noisy, sigma=1.0, method=method), one)


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
        with pytest.raises(ValueError, match="ghosts or more after"):
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
            _, owners = partitioning.cut_for("coordinates", N, parts, coords, None)
            sizes = np.bincount(np.concatenate([owners(slice(0, 123)), owners(slice(123, N))]), minlength=parts)
            assert sizes.max() - sizes.min() <= 1
    assert prepare(graph, tmp_path, coords=np.zeros((N, 2)), partitions=3, most_ghosts=ANY).partitions == 3


@pytest.mark.parametrize("method", ["sgwt_sure", "sgwt_scaled", "let"])
def test_a_partition_may_be_empty(tmp_path, monkeypatch, method):
    monkeypatch.setattr(partitioning, "SAMPLE", 2)
    graph, noisy = hg.datasets.grid(20, 20), noisy_on(hg.datasets.grid(20, 20))
    prepare(graph, tmp_path, coords=np.zeros((N, 2)), partitions=3, most_ghosts=ANY)
    assert np.bincount(np.load(next(tmp_path.glob("graph-*/owner.npy"))), minlength=3).min() == 0
    one = hg.denoise(graph, noisy, sigma=1.0, method=method)
    np.testing.assert_allclose(denoise(tmp_path, noisy, sigma=1.0, method=method).read(), one.signal, rtol=1e-9, atol=1e-9)


def test_coordinates_that_no_box_was_made_of_must_be_finite_too(tmp_path, monkeypatch):
    monkeypatch.setattr(partitioning, "SAMPLE", 2)
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
