"""Values in files reach their nodes by label, never by order; what does not fit is refused without quoting a value."""

import errno
import gzip
import os

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hushgraph import files
from hushgraph.graphs.graph import Graph

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
    np.testing.assert_array_equal(files.read_signal(files.write_signal(path, graph, np.array(values)), graph), values)
    two = files.read_signal(files.write_signal(path, graph, {"f": np.array(values), "g": np.arange(3.0)}), graph)
    np.testing.assert_array_equal(two, np.stack([values, np.arange(3.0)], axis=1))


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_rows_go_by_label_whatever_their_order(tmp_path, ending):
    there, here = named(("ash", "elm", "oak")), named()
    path = files.write_signal(tmp_path / f"a.{ending}", there, {"f": [3.0, 1.0, 2.0], "g": [0.0, 0.5, np.nan]})
    np.testing.assert_array_equal(files.read_signal(path, here, columns="f"), [1, 2, 3])
    np.testing.assert_array_equal(files.read_signal(path, here, columns=["g", "f"]), [[0.5, 1], [np.nan, 2], [0, 3]])


def test_columns_and_labels_are_found_by_name(tmp_path):
    path = written(tmp_path, "a.csv", "\ufeffx,street, count\r\n9,ash,3\r\n8,elm,\r\n# comment\r\n\r\n7,oak,NaN\r\n")
    values = files.read_signal(path, named(), columns="count", label="street")
    np.testing.assert_array_equal(values, [np.nan, np.nan, 3])
    path = written(tmp_path, "b.csv", "count,node\n3,2\n1,0\n2,1\n")
    np.testing.assert_array_equal(files.read_signal(path, named(None)), [1, 2, 3])


def test_integers_and_text_do_not_match(tmp_path):
    path = files.write_signal(tmp_path / "a.parquet", named(("0", "1", "2")), np.ones(3))
    with pytest.raises(ValueError, match=r"3 nodes have no row \(first: 0, 1, 2\), 3 rows are of no node \(first: '0', '1', '2'\)"):
        files.read_signal(path, named(None))
    path = written(tmp_path, "a.csv", "node,f\n007,1\n8,2\n9,3\n")
    np.testing.assert_array_equal(files.read_signal(path, named(("9", "8", "007"))), [3, 2, 1])


def test_series_and_dicts_are_written_by_label(tmp_path):
    path = files.write_signal(tmp_path / "a.csv", named(), {"ash": 3.0, "elm": 1.0, "oak": 2.0})
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
        files.read_signal(written(tmp_path, "a.csv", text), named())
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
        files.read_signal(tmp_path / "a.npy", named())


@pytest.mark.parametrize("ending", FORMATS)
def test_truncated_files(tmp_path, ending):
    content = files.write_signal(tmp_path / f"a.{ending}", named(), np.ones(3)).read_bytes()
    with pytest.raises(ValueError, match=r"a\.|b\."):
        files.read_signal(written(tmp_path, f"b.{ending}", content[:-9]), named())
    packed = files.write_signal(tmp_path / f"a.{ending}.gz", named(), np.ones(3)).read_bytes()
    with pytest.raises(ValueError, match="truncated"):
        files.read_signal(written(tmp_path, f"b.{ending}.gz", packed[:-9]), named())


def test_a_name_may_have_no_label_column_for_arrays(tmp_path):
    path = files.write_signal(tmp_path / "a.npy", named(), np.ones(3))
    with pytest.raises(ValueError, match="no columns with names"):
        files.read_signal(path, named(), columns="f")


@pytest.mark.parametrize("values", [np.ones((3, 2)), {"node": np.ones(3)}, {}, {"f": np.ones(4)}, {"f": np.ones((3, 2))}])
def test_values_that_are_not_written(tmp_path, values):
    with pytest.raises(ValueError, match=r"one (value|row) per node|labels of"):
        files.write_signal(tmp_path / "a.csv", named(), values)
    assert not list(tmp_path.iterdir())


def test_folders_other_endings_and_absent_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="check the path"):
        files.read_signal(tmp_path, named())
    with pytest.raises(ValueError, match="must end in"):
        files.read_signal(written(tmp_path, "a.xls", "x"), named())
    with pytest.raises(TypeError, match=r"must be a hushgraph\.Graph"):
        files.read_signal(written(tmp_path, "a.csv", "x"), "graph")


@pytest.mark.parametrize("ending", FORMATS)
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, ending):
    path = files.write_signal(tmp_path / f"a.{ending}", named(), np.ones(3))
    before = path.read_bytes()

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_signal(path, named(), np.zeros(3))
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


# ---- tables as other programs write them ----------------------------------------------------------------------------

OSM = (4253839770, 42421828, 42430015)


def frame(labels, **columns):
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    return pd.DataFrame(columns or {"f": [1.0, 2.0, 3.0]}, index=labels)


def test_the_index_of_pandas_is_no_signal(tmp_path):
    table = frame(range(3), osmid=OSM, f=[1.0, 2.0, 3.0]).sample(frac=1, random_state=1)
    table.to_parquet(tmp_path / "a.parquet")
    table.to_csv(tmp_path / "a.csv")
    table.rename_axis("Unnamed: 0").to_csv(tmp_path / "b.csv")
    table.rename(columns={"osmid": "node"}).to_parquet(tmp_path / "b.parquet")
    for name in ("a.parquet", "b.parquet", "a.csv", "b.csv"):
        np.testing.assert_array_equal(files.read_signal(tmp_path / name, named(OSM)), [1, 2, 3])
    np.testing.assert_array_equal(files.read_signal(tmp_path / "a.csv", named(OSM), label="osmid"), [1, 2, 3])


@pytest.mark.parametrize("labels", [OSM, ("elm", "oak", "ash"), None])
@pytest.mark.parametrize("index_name", ["osmid", None])
def test_the_index_of_pandas_holds_the_labels(tmp_path, labels, index_name):
    one = frame(labels or range(3)).rename_axis(index_name).iloc[[2, 0, 1]]
    two = one.assign(g=[0.5, 0.25, 0.125])
    for k, table in enumerate((one, two)):
        table.to_parquet(tmp_path / f"{k}.parquet")
        table.to_csv(tmp_path / f"{k}.csv")
    for end in ("parquet", "csv"):
        np.testing.assert_array_equal(files.read_signal(tmp_path / f"0.{end}", named(labels)), [1, 2, 3])
        np.testing.assert_array_equal(files.read_signal(tmp_path / f"1.{end}", named(labels)), [[1, 0.25], [2, 0.125], [3, 0.5]])


def test_two_columns_that_fit_are_not_chosen_from(tmp_path):
    table = frame([2, 0, 1], junction=[0, 1, 2], f=[1.5, 2.5, 3.5])
    for end, write in (("csv", table.to_csv), ("parquet", table.to_parquet)):
        write(tmp_path / f"a.{end}")
        with pytest.raises(ValueError, match=r"several columns that fit.*'junction'.*label="):
            files.read_signal(tmp_path / f"a.{end}", named(None))
        np.testing.assert_array_equal(files.read_signal(tmp_path / f"a.{end}", named(None), label="junction"), [1.5, 2.5, 3.5])


def test_what_goes_with_signals_is_left_out_unless_asked_for(tmp_path):
    columns = {
        name: np.arange(3.0) + k for k, name in enumerate(("x", "y", "six", "seven", "six_expected_error", "expected_error"))
    }
    path = files.write_signal(tmp_path / "a.csv", named(), columns)
    found = files.read_named_signal(path, named())
    assert (found.names, found.left_out) == (["six", "seven"], ["x", "y", "six_expected_error", "expected_error"])
    np.testing.assert_array_equal(files.read_signal(path, named(), columns="expected_error"), [5, 6, 7])
    ends = {name: np.ones(3) for name in ("six", "six_lower", "six_upper", "seven_upper", "lower", "upper")}
    found = files.read_named_signal(files.write_signal(tmp_path / "c.csv", named(), ends), named())
    assert (found.names, found.left_out) == (["six", "seven_upper"], ["six_lower", "six_upper", "lower", "upper"])
    decks = files.write_signal(tmp_path / "d.csv", named(), {"lower": np.ones(3), "middle": np.ones(3)})
    assert files.read_named_signal(decks, named()).names == ["lower", "middle"]  # no interval: an end is missing
    alone = files.write_signal(tmp_path / "b.csv", named(), {"x": np.ones(3), "y": np.zeros(3)})
    assert files.read_named_signal(alone, named()).names == ["x", "y"]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_semicolons_and_decimal_commas(tmp_path, mark):
    text = 'node;"a,b";f\nelm;1,5;2\noak;-2,25e1;3\nash;;4\n'.replace(";", mark)
    path = written(tmp_path, "a.csv", text)
    np.testing.assert_array_equal(files.read_signal(path, named()), [[1.5, 2], [-22.5, 3], [np.nan, 4]])
    path = written(tmp_path, "b.csv", text.replace(",5", ".5").replace(",25", ".25"))
    np.testing.assert_array_equal(files.read_signal(path, named())[:, 0], [1.5, -22.5, np.nan])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("node;f\nelm;1,5\noak;2.5\nash;3\n", "line 3 .*a comma here and a point there"),
        ("node;f\nelm;1.234,5\noak;2\nash;3\n", "line 2 .*it has a comma: write numbers with a decimal point"),
        ('node,f\nelm,"1,5"\noak,2\nash,3\n', "line 2 .*it has a comma"),
        ("node,f\nelm,1\n".encode("utf-16"), "is text in UTF-16; expected UTF-8; save it as UTF-8"),
        ("node,street,f\nelm,1st,1\noak,2nd,2\nash,3rd,3\n", "'street'; if it is no signal, name those that are: columns="),
    ],
)
def test_text_of_other_programs_that_is_refused(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        files.read_signal(written(tmp_path, "a.csv", text), named())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_nodes_without_a_row_may_be_missing(tmp_path, ending):
    table = frame(["ash", "elm"], f=[3.0, 1.0]).rename_axis("node").reset_index()
    path = tmp_path / f"a.{ending}"
    table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    np.testing.assert_array_equal(files.read_signal(path, named(), missing_ok=True), [1, np.nan, 3])
    with pytest.raises(ValueError, match=r"1 nodes have no row \(first: 'oak'\).*missing_ok=True"):
        files.read_signal(path, named())
    with pytest.raises(ValueError, match="1 rows are of no node"):
        files.read_signal(path, named(("elm", "oak", "yew")), missing_ok=True)


@pytest.mark.parametrize("missing_ok", [False, True])
def test_a_file_without_names_of_columns(tmp_path, missing_ok):
    with pytest.raises(ValueError, match=r"first line of .* must name the columns") as caught:
        files.read_signal(written(tmp_path, "a.csv", f"elm,{SECRET}\noak,2\nash,3\n"), named(), missing_ok=missing_ok)
    assert SECRET not in str(caught.value)
    with pytest.raises(ValueError, match="must name the columns"):
        files.read_signal(written(tmp_path, "a.csv", "0,1.5\n1,2\n2,3\n"), named(None), missing_ok=missing_ok)
    with pytest.raises(ValueError, match="must name the columns") as caught:
        files.read_signal(written(tmp_path, "a.csv", f"elm,{SECRET},{SECRET}\noak,2,2\nash,3,3\n"), named(), missing_ok=missing_ok)
    assert SECRET not in str(caught.value)
    path = written(tmp_path, "a.csv", "0,1\n1,2\n2,3\n0,7\n")  # names that pandas gives
    np.testing.assert_array_equal(files.read_signal(path, named(None), missing_ok=missing_ok), [7, 2, 3])


def test_whole_floats_are_the_integers_of_the_graph(tmp_path):
    path = written(tmp_path, "a.csv", "node,f\n42430015.0,3\n4253839770.0,1\n42421828.,2\n")
    np.testing.assert_array_equal(files.read_signal(path, named(OSM)), [1, 2, 3])
    frame(range(3), node=np.array(OSM, dtype=float), f=[1.0, 2.0, 3.0]).to_parquet(tmp_path / "a.parquet")
    np.testing.assert_array_equal(files.read_signal(tmp_path / "a.parquet", named(OSM)), [1, 2, 3])
    with pytest.raises(ValueError, match="must hold node ids"):
        files.read_signal(tmp_path / "a.parquet", named(tuple(map(str, OSM))))
    with pytest.raises(ValueError, match=r"written as floats: store them without the \.0"):
        files.read_signal(path, named(tuple(map(str, OSM))))


def test_labels_that_differ_come_with_advice(tmp_path):
    path = written(tmp_path, "a.csv", "id,street,f\n1,ash,3\n2,elm,1\n3,oak,2\n")
    with pytest.raises(ValueError, match="column 'street' fits the graph: say label='street'"):
        files.read_signal(path, named(), columns="f")
    path = written(tmp_path, "b.csv", "town,street,f\nRye,ash,3\nRye,elm,1\nRye,oak,2\n")
    with pytest.raises(ValueError, match=r"1 labels more than once.*column 'street' fits the graph: say label='street'"):
        files.read_signal(path, named(), columns="f")
    frame(range(3), node=list(map(str, OSM)), f=[1.0, 2.0, 3.0]).astype({"node": "category"}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="file has text and the graph has integers"):
        files.read_signal(tmp_path / "b.parquet", named(OSM))
    frame(range(3), node=OSM, f=[1.0, 2.0, 3.0]).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="file has integers and the graph has text"):
        files.read_signal(tmp_path / "a.parquet", named(tuple(map(str, OSM))))


def test_sheets_are_refused_with_advice(tmp_path):
    with pytest.raises(ValueError, match="in Excel, save as CSV UTF-8") as caught:
        files.read_signal(written(tmp_path, "a.xlsx", "x"), named())
    assert "format=" not in str(caught.value)
