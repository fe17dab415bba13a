"""Damaged files of every format are a graph, an array, or a ValueError with a message: nothing else, in few steps and little memory.

HUSHGRAPH_FUZZ=2000 runs so many examples of each instead of a few.
"""

import gzip
import os
import resource
import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from scipy import sparse

from hushgraph import files
from hushgraph.graphs.graph import Graph

from ..support.steps import steps_at_most

EXAMPLES = int(os.environ.get("HUSHGRAPH_FUZZ", "25"))
GRAPH = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], n=6, weights=[1.0, 0.1, 3e-5, 1e20, 2.0])
NAMED = Graph.from_scipy(GRAPH.adjacency, labels=list("abcdef"), coords=np.arange(12.0).reshape(6, 2))
NUMBERED = Graph.from_scipy(GRAPH.adjacency, labels=[30, 20, 10, 7, 2**60, -4])
TEXTS = [
    b"nan", b"inf", b"-1", b"1e999", b"99999999999", b"9223372036854775808", b"\x00", b"\xff\xfe", b'"', b"\n", b"\r", b",", b"\t", b" ", b"#", b"%",
    b"<", b"</", b"&#0;", b"&a;", b"[", b"]", b"]]>", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"<node id='a'/>", b"source", b"weight", b"0", b"1", b"%label x\n",
    b"\xef\xbb\xbf", "\u2028\u0661".encode(), b"[" * 100, b"<a>" * 100, b"1 2\n" * 50, b"2147483648", b"4294967295", b"pattern", b"array",
]  # fmt: skip
STEPS, BYTES = 50_000, 1 << 30


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Names and bytes of good files."""
    folder = tmp_path_factory.mktemp("whole")
    graphs = {"plain": GRAPH, "named": NAMED, "numbered": NUMBERED}
    paths = [files.write_graph(folder / f"{name}.{end}", graph) for name, graph in graphs.items() for end in
             ("npz", "graphml", "csv", "tsv", "mtx", "parquet", "csv.gz")]  # fmt: skip
    nx.write_gml(nx.Graph([("a", "b", {"weight": 2.0}), ("b", "c", {"weight": 1.5})]), folder / "a.gml")
    (folder / "a.txt").write_text("# Nodes: 3 Edges: 2\n10 20\n20\t30\n")
    (folder / "weighted.txt").write_text("source target weight\n10 20 0.5\n20 30 1e-3\n")
    for form in ("csr", "coo"):
        sparse.save_npz(folder / f"{form}.npz", GRAPH.adjacency.asformat(form), compressed=False)
    paths += [folder / name for name in ("a.gml", "a.txt", "weighted.txt", "csr.npz", "coo.npz")]
    return {path.name: path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def signals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")
    paths = [files.write_signal(folder / f"a.{end}", NAMED, {"f": np.arange(6.0), "g": np.ones(6)}) for end in
             ("csv", "tsv", "parquet", "npy", "csv.gz")]  # fmt: skip
    return {path.name: path.read_bytes() for path in paths}


@st.composite
def damage(draw):
    """A few edits: (where, as a share of the length; what to put there; how many bytes it replaces)."""
    text = st.sampled_from(TEXTS) | st.binary(max_size=8)
    size = st.sampled_from([0, 1, 2, 4, 8, 1000, 10**9])
    return draw(st.lists(st.tuples(st.floats(0, 1), text, size), min_size=1, max_size=4))


def damaged(content: bytes, edits, repeated: bool) -> bytes:
    for share, text, size in edits:
        place = int(share * len(content))
        content = content[:place] + text + content[place + size :]
    return content * 3 if repeated else content


def outcome(path, content, read, kind):
    """What `read` makes of a file, which must be `kind` or a ValueError that says something."""
    path.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with warnings.catch_warnings(), steps_at_most(STEPS):
            warnings.simplefilter("error")
            found = read(path)
    except ValueError as error:
        found = str(error)
    if isinstance(found, str):
        assert 20 < len(found) < 2000, "the message says nothing, or is as long as the file"
    else:
        assert isinstance(found, kind)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < BYTES


FUZZ = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
GRAPH_FILES = [
    f"{name}.{end}"
    for name in ("plain", "named", "numbered")
    for end in ("npz", "graphml", "csv", "tsv", "mtx", "parquet", "csv.gz")
]
GRAPH_FILES += ["a.gml", "a.txt", "weighted.txt", "csr.npz", "coo.npz"]


@pytest.mark.parametrize("name", GRAPH_FILES)
@FUZZ
@given(
    edits=damage(),
    repeated=st.booleans(),
    packed=st.booleans(),
    options=st.sampled_from([{}, {"weight": False}, {"distance": "weight"}]),
)
def test_damaged_graphs(whole, tmp_path_factory, name, edits, repeated, packed, options):
    content = damaged(whole[name], edits, repeated)
    if packed and not name.endswith(".gz"):
        name, content = f"{name}.gz", gzip.compress(content, 1)
    path = tmp_path_factory.getbasetemp() / f"fuzz-{name}"
    outcome(path, content, lambda path: files.read_graph(path, **options), Graph)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "a.npy", "a.csv.gz"])
@FUZZ
@given(edits=damage(), repeated=st.booleans(), columns=st.sampled_from([None, "f", ["g", "f"]]))
def test_damaged_signals(signals, tmp_path_factory, name, edits, repeated, columns):
    path = tmp_path_factory.getbasetemp() / f"fuzz-{name}"
    columns = None if name.endswith("npy") else columns
    outcome(path, damaged(signals[name], edits, repeated), lambda path: files.read_signal(path, NAMED, columns=columns), np.ndarray)


@pytest.mark.parametrize("name", ["plain.csv", "named.graphml", "numbered.mtx", "plain.npz", "named.parquet", "csr.npz"])
def test_the_whole_files_are_read(whole, tmp_path, name):
    """Without damage the same harness sees a graph: the tests above are not all errors."""
    (tmp_path / name).write_bytes(whole[name])
    assert files.read_graph(tmp_path / name).n_edges == GRAPH.n_edges


@pytest.mark.parametrize("end", ["graphml", "gml", "mtx", "csv", "txt", "npz", "parquet"])
@FUZZ
@given(content=st.binary(max_size=200))
def test_noise_is_refused(tmp_path_factory, end, content):
    path = tmp_path_factory.getbasetemp() / f"noise.{end}"
    outcome(path, content, files.read_graph, Graph)
