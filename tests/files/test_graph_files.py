"""Graphs come back from every format as they were written, are read as others write them, and refused with a reason."""

import errno
import gzip
import os

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import io as scipy_io, sparse

from hushgraph import files
from hushgraph.files.edge_rows import RowForm, parse_rows
from hushgraph.files.text import LONGEST_LINE, line_blocks, numbered_lines
from hushgraph.graphs import to_networkx
from hushgraph.graphs.graph import Graph

from ..support.strategies import graphs

WRITTEN = ["npz", "graphml", "csv", "tsv", "mtx", "parquet"]
SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0)]
ODD_NAMES = ["1", "007", 'say "a"', "a,b", " a", "#a", "ü\t<&>", "-0", "None"]


def written(tmp_path, name, text):
    path = tmp_path / name
    content = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") and not isinstance(text, bytes) else content)
    return path


def same(one, other):
    assert one.hash == other.hash
    assert (one.labels is None) == (other.labels is None)
    if one.labels is not None:
        assert one.labels.tolist() == other.labels.tolist()


# ---- there and back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [*WRITTEN, *(f"{ending}.gz" for ending in WRITTEN)])
@settings(max_examples=12)
@given(graph=graphs(max_nodes=25), naming=st.sampled_from(["none", "numbers", "ascending", "mixed", "text", "digits"]))
def test_every_format_gives_the_graph_back(tmp_path_factory, ending, graph, naming):
    shuffled = np.random.default_rng(graph.n).permutation(graph.n)
    labels = {
        "none": None,
        "numbers": np.arange(graph.n),
        "ascending": np.arange(graph.n) * 10**12 - 5,
        "mixed": shuffled * 7 - 3,
        "text": [f"node {i}" for i in shuffled],
        "digits": [str(i) for i in shuffled],
    }[naming]
    graph = Graph.from_scipy(graph.adjacency, labels=labels)
    same(files.read_graph(files.write_graph(tmp_path_factory.mktemp("g") / f"a.{ending}", graph)), graph)


@pytest.mark.parametrize("ending", WRITTEN)
@pytest.mark.parametrize("n", [0, 1, 3])
def test_graphs_without_edges(tmp_path, ending, n):
    same(files.read_graph(files.write_graph(tmp_path / f"a.{ending}", Graph.from_edges([], n=n))), Graph.from_edges([], n=n))


@pytest.mark.parametrize("ending", WRITTEN)
def test_odd_names_stay_as_they_are(tmp_path, ending):
    graph = Graph.from_edges([(0, 4), (4, 8), (1, 2), (3, 1)], n=9, labels=ODD_NAMES)
    same(files.read_graph(files.write_graph(tmp_path / f"a.{ending}", graph)), graph)


@pytest.mark.parametrize("ending", ["npz", "graphml", "graphml.gz"])
@pytest.mark.parametrize("crs", [None, "lonlat"])
@pytest.mark.parametrize("axes", [2, 3])
def test_places_stay_to_the_last_bit(tmp_path, ending, crs, axes):
    places = np.random.default_rng(0).uniform(-80, 80, (4, axes))
    graph = files.read_graph(files.write_graph(tmp_path / f"a.{ending}", Graph.from_edges(SQUARE, coords=places, crs=crs)))
    assert graph.crs == crs
    np.testing.assert_array_equal(graph.coords, places)


def test_writing_twice_gives_the_same_bytes(tmp_path):
    graph = Graph.from_edges(SQUARE, weights=[1.0, 0.1, 3.0, 1e-9])
    for ending in ("csv.gz", "graphml.gz", "mtx"):
        first, second = (files.write_graph(tmp_path / f"{name}.{ending}", graph).read_bytes() for name in "ab")
        assert first == second


@pytest.mark.parametrize("name", ["a.zip", "a.gml", "a", "a.gz"])
def test_formats_that_are_not_written(tmp_path, name):
    with pytest.raises(ValueError, match="must end in"):
        files.write_graph(tmp_path / name, Graph.from_edges(SQUARE))


@pytest.mark.parametrize("ending", WRITTEN)
def test_labels_that_no_file_keeps_are_refused(tmp_path, ending):
    graph = Graph.from_networkx(nx.grid_2d_graph(2, 2))
    with pytest.raises(ValueError, match="all text or all integers"):
        files.write_graph(tmp_path / f"a.{ending}", graph)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = files.write_graph(tmp_path / "a.csv", Graph.from_edges(SQUARE))
    before = path.read_bytes()

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_graph(path, Graph.from_edges([(0, 1)]))
    assert path.read_bytes() == before
    assert [other.name for other in tmp_path.iterdir()] == ["a.csv"]


# ---- as others write them -------------------------------------------------------------------------------------------


def test_networkx_files(tmp_path):
    G = nx.Graph([("a", "b", {"weight": 0.25}), ("b", "c", {"weight": 3.0})])
    G.add_node("lone")
    nx.write_graphml(G, tmp_path / "a.graphml")
    nx.write_gml(G, tmp_path / "a.gml")
    nx.write_weighted_edgelist(nx.convert_node_labels_to_integers(G), tmp_path / "a.txt")
    for name in ("a.graphml", "a.gml"):
        same(files.read_graph(tmp_path / name), Graph.from_networkx(G, weight="weight"))
        same(files.read_graph(tmp_path / name, weight=False), Graph.from_networkx(G))
    assert files.read_graph(tmp_path / "a.txt", weight=2).adjacency.data.tolist() == [0.25, 0.25, 3.0, 3.0]


def test_scipy_files(tmp_path):
    graph = Graph.from_edges(SQUARE, weights=[1.0, 2.0, 3.0, 4.0])
    scipy_io.mmwrite(tmp_path / "a.mtx", graph.adjacency)
    same(files.read_graph(tmp_path / "a.mtx"), graph)
    for form in ("csr", "csc", "coo"):
        sparse.save_npz(tmp_path / "a.npz", graph.adjacency.asformat(form))
        same(files.read_graph(tmp_path / "a.npz"), graph)
    assert np.allclose(scipy_io.mmread(files.write_graph(tmp_path / "b.mtx", graph)).toarray(), graph.adjacency.toarray())


def test_osmnx_files(tmp_path):
    osmnx = pytest.importorskip("osmnx")
    G = nx.MultiDiGraph(crs="epsg:4326")
    for node, x in ((31, -73.9), (20, -73.8), (10, -73.7)):
        G.add_node(node, x=x, y=40.7, street_count=2)
    for u, v, length in ((31, 20, 10.0), (20, 31, 10.0), (31, 20, 10.0), (20, 10, 40.0), (10, 10, 0.0)):
        G.add_edge(u, v, length=length, osmid=1)
    osmnx.save_graphml(G, tmp_path / "a.graphml")
    graph = files.read_graph(tmp_path / "a.graphml", distance="length")
    same(graph, Graph.from_networkx(G, distance="length"))
    assert (graph.crs, graph.coords.tolist()) == ("lonlat", [[-73.9, 40.7], [-73.8, 40.7], [-73.7, 40.7]])
    assert graph.labels.tolist() == [31, 20, 10]


def test_our_graphml_is_read_by_networkx(tmp_path):
    graph = Graph.from_edges(SQUARE, weights=[1.0, 2.0, 3.0, 4.0], labels=["a", "b", "<c>", "d"], coords=np.eye(4, 2))
    G = nx.read_graphml(files.write_graph(tmp_path / "a.graphml", graph))
    assert nx.utils.graphs_equal(nx.Graph(G.edges), nx.Graph(to_networkx(graph).edges))
    assert Graph.from_networkx(G, weight="weight").hash == graph.hash


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("a.csv", "source,target\n10,20\n20,30\n", {}),
        ("a.csv", "10,20\n20,30\n", {}),
        ("a.csv", "\ufeffu,v,key\r\n10,20,0\r\n\r\n20,30,0\r\n", {}),
        ("a.csv", "name,from,to\nx,10,20\n# a comment\n\"x, y\",20,30\n", {}),
        ("a.csv", "source;target\n10;20\n20;30\n", {"delimiter": ";"}),
        ("a.tsv", "target\tsource\n10\t20\n20\t30\n", {}),
        ("a.txt", "# Nodes: 3 Edges: 2\n10 20\n20\t30 # last\n", {}),
        ("a.txt", "source target\n+10 020\n20 30\n", {}),
        ("a.dat", "10 20 1234567\n20 30 1234568\n", {"format": "snap", "weight": False}),
        ("a.edges", "10 20\n20 30\n30 30", {}),
        ("a.gml", 'graph [ node [ id 10 ] node [ id 20 x 1.0 ] node [ id 30 ] edge [ source 10 target 20 ] edge [source 20 target 30]]', {}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_path_of_three_in_many_spellings(tmp_path, name, text, options, ending):
    options = options if options.get("format") or name != "a.dat" else {}
    graph = files.read_graph(written(tmp_path, name + ending, text), **options)
    same(graph, Graph.from_edges([(0, 1), (1, 2)], labels=[10, 20, 30]))


def test_codes_with_leading_zeros_are_text(tmp_path):
    assert files.read_graph(written(tmp_path, "a.csv", "source,target\n007,8\n")).labels.tolist() == ["007", "8"]
    assert files.read_graph(written(tmp_path, "a.csv", 'source,target\n"7",8\n')).labels.tolist() == ["7", "8"]


def test_a_third_column_is_never_guessed(tmp_path):
    path = written(tmp_path, "a.txt", "1 2 1700000000\n2 3 1700000001\n")
    with pytest.raises(ValueError, match="say weight=2"):
        files.read_graph(path)
    assert not files.read_graph(path, weight=2).is_unweighted
    assert files.read_graph(path, weight=False).is_unweighted


def test_weights_lengths_and_duplicates(tmp_path):
    path = written(tmp_path, "a.csv", "source,target,weight,length\n0,1,2,10\n1,0,3,30\n1,1,5,0\n")
    with pytest.raises(ValueError, match="duplicates='sum'"):
        files.read_graph(path)
    assert files.read_graph(path, duplicates="sum").adjacency[0, 1] == 5
    assert files.read_graph(path, duplicates="max").adjacency[0, 1] == 3
    assert files.read_graph(path, distance="length", duplicates="max").adjacency[0, 1] == 2  # mean 20 over 10


def test_graphml_keys_have_defaults_and_any_order(tmp_path):
    text = (
        '<graphml><key id="k" for="edge" attr.name="weight"><default>2.5</default></key><graph>'
        '<edge source="b" target="a"/><node id="a"/><edge source="b" target="c"><data key="k"> 4 </data></edge>'
        '<node id="c"/><node id="b"/></graph></graphml>'
    )
    graph = files.read_graph(written(tmp_path, "a.graphml", text))
    assert graph.labels.tolist() == ["a", "c", "b"]
    assert (graph.adjacency[0, 2], graph.adjacency[1, 2]) == (2.5, 4.0)


def test_coordinates_are_planar_unless_said(tmp_path):
    text = '<graphml><graph><node id="a"><data key="x">1</data><data key="y">2</data></node></graph></graphml>'
    path = written(tmp_path, "a.graphml", text)
    assert files.read_graph(path).crs is None
    assert files.read_graph(path, crs="lonlat").crs == "lonlat"


# ---- numbers --------------------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(st.floats(0, allow_infinity=False), st.sampled_from(["{!r}", "{:.17e}", "{:.3f}", "{:.25g}", "+{!r}"]))
def test_decimal_numbers_are_the_nearest_floats(value, form):
    text = form.format(value)
    rows = parse_rows(f"1 2 {text}".encode(), RowForm(3, 0, 1, 2, 0, 0, False))
    assert rows.values.tolist() == [float(text)]


@settings(max_examples=200)
@given(st.integers(0, 10**18), st.integers(-30, 30))
def test_numbers_near_the_middle_of_two_floats(mantissa, power):
    rows = parse_rows(f"1 2 {mantissa}e{power}".encode(), RowForm(3, 0, 1, 2, 0, 0, False))
    assert rows.values.tolist() == [float(f"{mantissa}e{power}")]


def test_integers_up_to_63_bits(tmp_path):
    text = f"{2**63 - 1} 5\n5 -{2**63 - 1}\n"
    assert files.read_graph(written(tmp_path, "a.txt", text)).labels.tolist() == [-(2**63) + 1, 5, 2**63 - 1]
    for wrong in (2**63, 2**64 + 5, 10**19):
        with pytest.raises(ValueError, match=r"line 1 .*two integer node ids"):
            files.read_graph(written(tmp_path, "a.txt", f"{wrong} 5\n"))


def test_lines_are_the_same_however_blocks_fall(tmp_path, monkeypatch):
    path = written(tmp_path, "a.txt.gz", "".join(f"{i} {i + 1}\n" for i in range(5000)))
    whole = files.read_graph(path)
    monkeypatch.setattr("hushgraph.files.text.BLOCK", 1000)
    assert len(list(line_blocks(path))) > 10
    assert [number for number, _ in numbered_lines(path)] == list(range(1, 5001))
    same(files.read_graph(path), whole)
    with pytest.raises(ValueError, match="line 4001 "):
        files.read_graph(written(tmp_path, "a.txt", "1 2\n" * 4000 + "x\n" + "1 2\n" * 99))


def test_text_ids_are_the_same_quoted_or_not_however_blocks_fall(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    ends, weights = rng.integers(0, 900, (4000, 2)).tolist(), rng.random(4000).tolist()
    rows = [f"n{a},{'ü' * (b % 7)}{b},{w!r}" for (a, b), w in zip(ends, weights, strict=True)]
    text = "\r\n".join(["source,target,weight", "lone,,", *rows])
    one = files.read_graph(written(tmp_path, "a.csv", text), duplicates="sum")
    assert one.labels[0] == "lone"
    assert one.n > 1500
    monkeypatch.setattr("hushgraph.files.text.BLOCK", 999)
    same(files.read_graph(written(tmp_path, "a.csv.gz", text), duplicates="sum"), one)
    same(files.read_graph(written(tmp_path, "b.csv", text.replace("lone", '"lone"')), duplicates="sum"), one)


def test_blanks_around_text_belong_to_it(tmp_path):
    for text in ("source,target\na, b\nb,c \n d,e\n", 'source,target\n"a", b\nb,c \n d,e\n'):
        assert files.read_graph(written(tmp_path, "a.csv", text)).labels.tolist() == ["a", " b", "b", "c ", " d", "e"]


# ---- what is refused ------------------------------------------------------------------------------------------------

MTX = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "", "no edges"),
        ("a.csv", "a,b\nc,d\n", r"line 1 .*must name the columns.*got 'a,b'"),
        ("a.csv", "source,target\na,b\nc\n", "line 3 .*1 fields where 2"),
        ("a.csv", "source,target\na,b\n,c\n", "line 3 .*no source"),
        ("a.csv", "source,target\n1,2\n3,x\n", r"line 3 .*two integer node ids.*quotation marks"),
        ("a.csv", 'source,target\na,b\nc,"d\n', "line 3 .*no CSV"),
        ("a.csv", "source,target,weight\na,b,1\nb,c,-2\n", "line 3 .*at least 0.*got '-2'"),
        ("a.csv", "source,target,weight\n1,2,1\n2,3,nan\n", "line 3 .*finite.*got 'nan'"),
        ("a.csv", "source,target,weight\n1,2,1\n2,3,\n", "line 3 .*got ''"),
        ("a.txt", "1 2\n2 3\n4 -\n", "line 3 "),
        ("a.txt", "source target weight\n1 2 1\n2 3 -1e-3\n", "line 3 .*at least 0.*got '-1e-3'"),
        ("a.txt", "source target weight\n1 2 1\n2 3 1e999\n", "line 3 .*finite"),
        ("a.txt", "# Nodes: 2 Edges: 5\n1 2\n", "says it has 5 edges"),
        ("a.txt", b"1 2\n3 4\n\xff\xfe 5\n", "after line 2"),
        ("a.mtx", MTX + "2 2 1\n1 2 -4\n", "line 3 .*at least 0"),
        ("a.mtx", MTX + "2 2 1\n1 2 nan\n", "line 3 .*finite"),
        ("a.mtx", MTX + "2 2 1\n1 2 1\n2 1 1\n", "Line 4: more entries"),
        ("a.mtx", MTX + "2000000000 2000000000 1\n1 2 1\n", "far too many"),
        ("a.mtx", MTX.replace("coordinate", "array") + "2 2\n1\n1\n1\n1\n", "Line 1"),
        ("a.mtx", MTX.replace("\n", '\n%label "a"\n') + "2 2 1\n1 2 1\n", "1 labels for 2 rows"),
        ("a.graphml", "", "line 1 .*no XML"),
        ("a.graphml", "<graphml><graph><node id='a'/>", "no XML .*truncated"),
        ("a.graphml", "<html></html>", "outermost element is 'html'"),
        ("a.graphml", "<graphml><graph>\n<edge source='a' target='b'/></graph></graphml>", "edge to 'a', which is no node"),
        ("a.graphml", "<graphml><graph>\n<edge source='a'/></graph></graphml>", "edge on line 2 .*no target"),
        ("a.graphml", "<graphml><graph><node id='a'/><node id='a'/></graph></graphml>", "node 'a' twice"),
        ("a.graphml", "<graphml><graph><hyperedge/></graph></graphml>", "hyperedge"),
        (
            "a.graphml",
            "<graphml><graph><node id='a'/><node id='b'/>\n<edge source='a' target='b'><data key='weight'>-1</data></edge></graph></graphml>",
            "edge on line 2 .*at least 0.*got '-1'",
        ),
        ("a.graphml", '<!DOCTYPE a [<!ENTITY b "cc"><!ENTITY d "&b;&b;">]><graphml>&d;</graphml>', "entities"),
        ("a.graphml", '<?xml version="1.0" encoding="utf-99"?><graphml/>', "no XML|cannot be read"),
        ("a.gml", "", "must be GML"),
        ("a.gml", "graph [ node [ id 1 ]", "truncated"),
        ("a.gml", "graph [ node [ id 1 ] ] ]", "out of place"),
        ("a.gml", "graph [ node [ id x ] ]", "no integer id"),
        ("a.gml", "graph [ node [ id 1 ]\nedge [ source 1 ] ]", "edge that ends on line 2"),
        ("a.gml", 'graph [ node [ id 1 label "a ] ]', "quotation marks"),
        ("a.npz", b"PK but not really", "truncated, damaged or no .npz"),
        ("a.parquet", b"PAR1 but not PAR1", "truncated, damaged or no parquet"),
        ("a.csv.gz", gzip.compress(b"source,target\n" + b"1,2\n" * 99, mtime=0)[:-12], "truncated"),
        ("a.csv.gz", b"source,target\n1,2\n", "not gzip"),
        ("a.npz.gz", gzip.compress(b"x" * 999, mtime=0)[:-12], "truncated"),
        ("a.graphml.gz", gzip.compress(b"<graphml/>", mtime=0)[:-5], "truncated"),
        ("a.xyz", "1 2\n", "must end in"),
    ],
)
def test_what_is_not_whole_is_refused_with_the_place(tmp_path, name, text, said):
    with pytest.raises(ValueError, match=said) as caught:
        files.read_graph(written(tmp_path, name, text))
    assert caught.value.__context__ is None  # it might carry a piece of the file


def test_folders_and_absent_files(tmp_path):
    for path in (tmp_path, tmp_path / "absent.csv"):
        with pytest.raises(FileNotFoundError, match="does not exist or is a folder"):
            files.read_graph(path)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        files.write_graph((tmp_path / "a.csv").mkdir() or tmp_path / "a.csv", Graph.from_edges(SQUARE))


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.mtx", "a.gml", "a.txt.gz"])
def test_a_line_without_end_is_refused_early(tmp_path, name, monkeypatch):
    path = tmp_path / name
    with gzip.open(path, "wb") if name.endswith(".gz") else path.open("wb") as file:
        file.write(b"1 2\n")
        for _ in range(8):
            file.write(b" " * LONGEST_LINE)
    with pytest.raises(ValueError, match=r"line 2 .*longer than 4 MB"):
        files.read_graph(path)


def test_a_sparse_file_of_gigabytes_costs_nothing(tmp_path):
    path = tmp_path / "a.txt"
    with path.open("wb") as file:
        file.truncate(2 << 30)  # one line of two gigabytes of zeros, which takes no room on the disk
    with pytest.raises(ValueError, match=r"line 1 .*longer than"):
        files.read_graph(path)


def test_what_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("hushgraph.files.text.UNPACKED_FREELY", 1 << 20)
    path = written(tmp_path, "a.txt.gz", "1 2\n" * 2_000_000)
    with pytest.raises(ValueError, match="more than 200 times its size"):
        files.read_graph(path)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"edges": [[0, 1]]}, "must hold edges and n"),
        ({"edges": [[0, 1]], "n": 1}, "nodes that are not 0 to 0"),
        ({"edges": [[0, 1]], "n": 2**40}, "far too many"),
        ({"edges": [[0.0, 1.0]], "n": 2}, "must hold edges"),
        ({"edges": [[0, 1]], "n": 2, "weights": [-1.0]}, "must not be negative"),
        ({"edges": [[0, 1]], "n": 2, "crs": "utm"}, "crs in"),
        ({"edges": [[0, 1]], "n": 2, "labels": [1.5, 2.5]}, "labels in"),
        (
            {"edges": [[0, 1]], "n": 2, "version": 2},
            "written by a newer version of hushgraph .version 2; this one knows 1.; use that version",
        ),
        ({"edges": [[0, 1]], "n": 2, "version": 0}, "version in .* must be an integer from 1"),
        ({"edges": [[0, 1]], "n": 2, "version": [1]}, "version in .* must be an integer from 1"),
        ({"edges": [[0, 1]], "n": 2, "version": 1.5}, "version in .* must be an integer from 1"),
        ({"format": "bsr", "shape": [2, 2], "data": [1.0]}, "csr, csc or coo"),
        ({"format": "csr", "shape": [2, 2], "data": [1.0], "indices": [7], "indptr": [0, 1, 1]}, "whole square matrix"),
        ({"format": "csr", "shape": [2, 3], "data": [1.0], "indices": [1], "indptr": [0, 1, 1]}, "square"),
    ],
)
def test_npz_that_is_no_graph(tmp_path, arrays, said):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=said):
        files.read_graph(tmp_path / "a.npz")


def test_npz_states_its_version_and_is_read_without_one(tmp_path):
    graph = Graph.from_edges(SQUARE, labels=list("abcd"))
    files.write_graph(tmp_path / "a.npz", graph)
    content = dict(np.load(tmp_path / "a.npz"))
    assert content.pop("version") == 1
    np.savez(tmp_path / "older.npz", **content)
    same(files.read_graph(tmp_path / "older.npz"), graph)


def test_npz_with_objects_is_not_unpickled(tmp_path):
    np.savez(tmp_path / "a.npz", edges=[[0, 1]], n=2, labels=np.array([{}, []], dtype=object))
    with pytest.raises(ValueError, match=r"no \.npz"):
        files.read_graph(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"a": [1], "b": [2]}, "source and target"),
        ({"source": [1.5], "target": [2.5]}, "integers or text; got double"),
        ({"source": [1], "target": ["a"]}, "both hold integers or both text"),
        ({"source": [None, 1], "target": [1, 2]}, "row 0 .*no source"),
        ({"source": [1, 2], "target": [2, 3], "weight": [1.0, -1.0]}, "row 1 .*at least 0"),
        ({"source": [1, 2], "target": [2, 3], "weight": ["a", "b"]}, "must hold numbers"),
    ],
)
def test_parquet_that_is_no_graph(tmp_path, columns, said):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=said):
        files.read_graph(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"weight": "speed"}, "no edge column 'speed'; it has 'weight'"),
        ({"weight": "weight", "distance": "weight"}, "not both"),
        ({"weight": "source"}, "no edge column 'source'; it has 'weight'"),
        ({"duplicates": "mean"}, "'error', 'sum', 'max'"),
        ({"format": "xls"}, "format must be one of"),
        ({"delimiter": "ab"}, "one ASCII character"),
    ],
)
def test_options_that_make_no_sense(tmp_path, options, said):
    graph = Graph.from_edges(SQUARE, weights=[1.0, 2.0, 3.0, 4.0])
    for ending in ("csv", "parquet") if "delimiter" not in options else ("csv",):
        with pytest.raises(ValueError, match=said):
            files.read_graph(files.write_graph(tmp_path / f"a.{ending}", graph), **options)


def test_text_ids_may_have_a_length_of_0_on_self_loops_only(tmp_path):
    path = written(tmp_path, "a.csv", "source,target,length\na,b,2\nb,b,0\nb,c,0.5\n")
    assert files.read_graph(path, distance="length").labels.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match=r"line 3 .*above 0.*got '0'"):
        files.read_graph(written(tmp_path, "b.csv", "source,target,length\na,b,2\nbb,bc,0\nb,c,0.5\n"), distance="length")


def test_covariates_in_npz_files(tmp_path):
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)], n=4, node_covariates={"a b": [1.0, np.nan, 3.0, 4.0], "é": np.arange(4)})
    for name in ("a.npz", "a.npz.gz"):
        again = files.read_graph(files.write_graph(tmp_path / name, graph), covariates=True)
        same(again, graph)
        assert list(again.node_covariates) == ["a b", "é"]
        assert again.node_covariates["a b"].tobytes() == graph.node_covariates["a b"].tobytes()
    content = dict(np.load(tmp_path / "a.npz"))
    wrong = [{"covariates": content["covariates"][:, :3]}, {"covariates": content["covariates"] + np.inf}, {"covariate_names": np.array(["a", "a"])},
             {"covariates": content["covariates"].astype(str)}, {"covariate_names": np.array([1, 2])}, {"covariate_names": None}, {"covariates": None}]  # fmt: skip
    for change in wrong:
        np.savez(tmp_path / "b.npz", **{key: values for key, values in (content | change).items() if values is not None})
        with pytest.raises(ValueError, match=r"covariate_names and covariates in .* must be k different names"):
            files.read_graph(tmp_path / "b.npz")


def test_covariates_are_read_from_graphml_only(tmp_path):
    path = files.write_graph(tmp_path / "a.csv", Graph.from_edges(SQUARE))
    with pytest.raises(ValueError, match="covariates must be False, unless for GraphML; got True for csv"):
        files.read_graph(path, covariates=True)
    with pytest.raises(ValueError, match="covariates must be one of True, False"):
        files.read_graph(path, covariates="highway")
