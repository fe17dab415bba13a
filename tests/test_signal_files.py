"""Values in files reach their nodes by label, never by order; what does not fit is refused without quoting a value."""

import errno
import gzip
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushgraph import io
from hushgraph.graph import Graph

FORMATS = ["csv", "tsv", "parquet", "npy"]
PATH = [(0, 1), (1, 2)]
SECRET = "8675309"


def named(labels=("elm", "oak", "ash")):
    return Graph.from_edges(PATH, labels=labels)


def written(tmp_path, name, text):
    path = tmp_path / name
    content = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") and not isinstance(text, bytes) else content)
    return path


@pytest.mark.parametrize("ending", [*FORMATS, *(f"{ending}.gz" for ending in FORMATS)])
@settings(max_examples=15)
@given(
    values=st.lists(st.floats(-1e60, 1e60) | st.just(np.nan), min_size=3, max_size=3),
    labels=st.sampled_from([None, ("elm", "oak", "ash"), (30, -7, 2**62), ("1", "2", "0"), ("a,b", '"', " c")]),
)
def test_every_format_gives_the_values_back(tmp_path_factory, ending, values, labels):
    graph, path = named(labels), tmp_path_factory.mktemp("s") / f"a.{ending}"
    np.testing.assert_array_equal(io.read_signal(io.write_signal(path, graph, np.array(values)), graph), values)
    two = io.read_signal(io.write_signal(path, graph, {"f": np.array(values), "g": np.arange(3.0)}), graph)
    np.testing.assert_array_equal(two, np.stack([values, np.arange(3.0)], axis=1))


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_rows_go_by_label_whatever_their_order(tmp_path, ending):
    there, here = named(("ash", "elm", "oak")), named()
    path = io.write_signal(tmp_path / f"a.{ending}", there, {"f": [3.0, 1.0, 2.0], "g": [0.0, 0.5, np.nan]})
    np.testing.assert_array_equal(io.read_signal(path, here, columns="f"), [1, 2, 3])
    np.testing.assert_array_equal(io.read_signal(path, here, columns=["g", "f"]), [[0.5, 1], [np.nan, 2], [0, 3]])


def test_columns_and_labels_are_found_by_name(tmp_path):
    path = written(tmp_path, "a.csv", "\ufeffx,street, count\r\n9,ash,3\r\n8,elm,\r\n# comment\r\n\r\n7,oak,NaN\r\n")
    values = io.read_signal(path, named(), columns="count", label="street")
    np.testing.assert_array_equal(values, [np.nan, np.nan, 3])
    path = written(tmp_path, "b.csv", "count,node\n3,2\n1,0\n2,1\n")
    np.testing.assert_array_equal(io.read_signal(path, named(None)), [1, 2, 3])


def test_integers_and_text_do_not_match(tmp_path):
    path = io.write_signal(tmp_path / "a.parquet", named(("0", "1", "2")), np.ones(3))
    with pytest.raises(ValueError, match=r"3 nodes have no row \(first: 0, 1, 2\), 3 rows are of no node \(first: '0', '1', '2'\)"):
        io.read_signal(path, named(None))
    path = written(tmp_path, "a.csv", "node,f\n007,1\n8,2\n9,3\n")
    np.testing.assert_array_equal(io.read_signal(path, named(("9", "8", "007"))), [3, 2, 1])


def test_series_and_dicts_are_written_by_label(tmp_path):
    path = io.write_signal(tmp_path / "a.csv", named(), {"ash": 3.0, "elm": 1.0, "oak": 2.0})
    assert path.read_text() == "node,value\nelm,1.0\noak,2.0\nash,3.0\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("node,f\nelm,1\noak,2\n", r"1 nodes have no row \(first: 'ash'\), 0 rows"),
        ("node,f\nelm,1\noak,2\nash,3\nyew,4\n", r"0 nodes .* 1 rows are of no node \(first: 'yew'\)"),
        ("node,f\nelm,1\noak,2\nash,3\noak,4\n", r"1 labels more than once \(first: 'oak'\)"),
        ("node,f\nelm,1\noak,2,3\nash,3\n", "line 3 .*3 fields where 2"),
        (f"node,f\nelm,1\noak,x{SECRET}\nash,3\n", "line 3 .*something else than a number.*'f'"),
        (f"node,f\nelm,1_{SECRET}\noak,2\nash,3\n", "line 2 .*something else"),
        ("node,f\nelm,inf\noak,2\nash,1e999\n", "2 infinite"),
        ('node,f\nelm,1\n"oak,2\nash,3\n', "no CSV"),
        ("node\nelm\noak\nash\n", "no column of values"),
        ("node,node\nelm,1\n", "one column 'node'"),
        (b"node,f\nelm,1\n\xff,2\n", "after line 2"),
    ],
)
def test_tables_that_do_not_fit(tmp_path, text, said):
    with pytest.raises(ValueError, match=said) as caught:
        io.read_signal(written(tmp_path, "a.csv", text), named())
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None or SECRET not in str(caught.value.__context__)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.ones(4), r"expected \(3,\) or \(3, m\), got \(4,\)"),
        (np.ones((2, 3)), "one row per node"),
        (np.ones((3, 1, 1)), "one row per node"),
        (np.array(["a", "b", "c"]), "real numbers"),
        (np.array([{}, [], 0], dtype=object), "real numbers"),
        (np.array([1.0, np.inf, 0.0]), "1 infinite"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, array, said):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(ValueError, match=said):
        io.read_signal(tmp_path / "a.npy", named())


@pytest.mark.parametrize("ending", FORMATS)
def test_truncated_files(tmp_path, ending):
    content = io.write_signal(tmp_path / f"a.{ending}", named(), np.ones(3)).read_bytes()
    with pytest.raises(ValueError, match=r"a\.|b\."):
        io.read_signal(written(tmp_path, f"b.{ending}", content[:-9]), named())
    packed = io.write_signal(tmp_path / f"a.{ending}.gz", named(), np.ones(3)).read_bytes()
    with pytest.raises(ValueError, match="truncated"):
        io.read_signal(written(tmp_path, f"b.{ending}.gz", packed[:-9]), named())


def test_a_name_may_have_no_label_column_for_arrays(tmp_path):
    path = io.write_signal(tmp_path / "a.npy", named(), np.ones(3))
    with pytest.raises(ValueError, match="no columns with names"):
        io.read_signal(path, named(), columns="f")


@pytest.mark.parametrize("values", [np.ones((3, 2)), {"node": np.ones(3)}, {}, {"f": np.ones(4)}, {"f": np.ones((3, 2))}])
def test_values_that_are_not_written(tmp_path, values):
    with pytest.raises(ValueError, match=r"one (value|row) per node|labels of"):
        io.write_signal(tmp_path / "a.csv", named(), values)
    assert not list(tmp_path.iterdir())


def test_folders_other_endings_and_absent_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="check the path"):
        io.read_signal(tmp_path, named())
    with pytest.raises(ValueError, match="must end in"):
        io.read_signal(written(tmp_path, "a.xls", "x"), named())
    with pytest.raises(TypeError, match=r"must be a hushgraph\.Graph"):
        io.read_signal(written(tmp_path, "a.csv", "x"), "graph")


@pytest.mark.parametrize("ending", FORMATS)
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, ending):
    path = io.write_signal(tmp_path / f"a.{ending}", named(), np.ones(3))
    before = path.read_bytes()

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        io.write_signal(path, named(), np.zeros(3))
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1
