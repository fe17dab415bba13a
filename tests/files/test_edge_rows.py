"""Edge lists are read alike by compiled loops, by pyarrow and by Python's csv module, in one thread or several."""

import gzip
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from hushgraph._errors import InputError
from hushgraph.core import use_threads
from hushgraph.files import edge_list, edge_rows, read_graph

pytest.importorskip("pyarrow")

NAMES = st.sampled_from(
    ["a", "b", "7", "-3", "007", "", " a", "a ", "ü", '"', "a,b", "a;b", "#a", "x\ny", "x\r\ny", "x\ry", "nan", "\t", "🙂", "0x1F"]
)
NUMBERS = st.sampled_from(
    ["0.5", "1", "0", "-0.0", "-1", "1e3", "nan", "inf", "", " 2", "2 ", "+1", "1_0", ".5", "5.", "1e999", "1e-999", "0x10", "1,5"]
)
FLOATS = st.one_of(NUMBERS, st.floats(0, allow_infinity=False, allow_nan=False).map(repr))


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@st.composite
def fields(draw, texts):
    text = draw(texts)
    return draw(st.sampled_from([text, quoted(text), quoted(text), f'"{text}', f'{text}"', f'"{text}"x']))


@st.composite
def edge_lists(draw):
    """Text of an edge list, mostly well-formed, with quotation marks."""
    plain = draw(st.booleans())
    ids = st.sampled_from(["a", "b", "ü", 'say "c"', "d,e", "7"]) if plain else NAMES
    cells = ids.map(quoted) if plain else fields(ids)
    values = st.floats(0, allow_infinity=False, allow_nan=False).map(repr) if plain else fields(FLOATS)
    weighted = draw(st.booleans())
    bare = draw(st.booleans())  # the first edge has bare integers
    lines = ["source,target" + ",weight" * weighted] + [f"1,2{',0.5' * weighted}"] * bare
    number = st.integers(-5, 5).map(str)
    for _ in range(draw(st.integers(0, 6))):
        if not plain and draw(st.integers(0, 9)) == 0:
            lines.append(draw(st.sampled_from(["", " ", "# a", "#", '"#",a', ",", "a", "a,b,c,d"])))
            continue
        ends = [draw(st.one_of(number, number.map(quoted)) if bare and draw(st.integers(0, 9)) else cells) for _ in range(2)]
        ends[1] = draw(st.sampled_from([ends[1]] * 5 + ["", '""']))
        lines.append(",".join([*ends, draw(values)][: 2 + weighted]))
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    return end.join(lines) + draw(st.sampled_from(["", end, end + end]))


def table_of(path: Path, **options):
    """What the reader returns or says, in a form that can be compared bit by bit."""
    try:
        with np.errstate(all="ignore"):  # lengths of 1e308 and 1e-308, whose mean or ratio is no float
            table = edge_list.read_edge_list(path, delimiter=",", **{"weight": None, "distance": None} | options)
    except InputError as error:
        return str(error)
    parts = (table.pairs, table.weights, table.labels)
    return table.n, *((None if part is None else (part.dtype.str, part.shape, part.tobytes())) for part in parts)


@contextmanager
def settings_of_reader(**values):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(edge_rows, name, value)
        yield


@settings(max_examples=400, deadline=None)
@given(edge_lists(), st.booleans())
@example('source,target\n"a","b"\n"b"\n', False)
@example('source,target,weight\n"a","a",0\n"b","c",1\n', True)
@example('source,target\n1,2\n"3","4"\n5,x\n', False)
def test_pyarrow_and_the_csv_module_read_the_same(text, is_distance):
    options = {"weight": None, "distance": "weight"} if is_distance and "weight" in text.split("\n", 1)[0] else {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_bytes(text.encode())
        with settings_of_reader(optional=lambda _: None):
            expected = table_of(path, **options)
        with settings_of_reader(_LEAST_QUOTED=0):
            assert table_of(path, **options) == expected


def test_pyarrow_reads_plain_quoted_lines():
    """The comparison above is no comparison of the csv module with itself."""
    form = edge_rows.RowForm(3, 0, 1, 2, ord(","), ord("#"), False, True)
    with settings_of_reader(_LEAST_QUOTED=0):
        parsed = edge_rows.parse_quoted(b'"a,b","c ""d""",0.25\n"e",,\n"e","a,b",3\n', form)
        assert edge_rows.parse_quoted(b'"a"b,c,1\n', form) is None
        assert edge_rows.parse_quoted(b'"a\nb",c,1\n', form) is None
    names = edge_rows.Names()
    rows = edge_rows.numbered_rows(parsed, form, names)
    assert names.texts() == [b"a,b", b'c "d"', b"e"]
    assert (rows.ids.tolist(), rows.values.tolist()) == ([[0, 1], [2, 2], [2, 0]], [0.25, 0.0, 3.0])
    assert rows.alone.tolist() == [False, True, False]


@pytest.mark.parametrize("kind", ["integers", "text", "quoted", "streets", "mtx"])
def test_threads_and_blocks_change_nothing(tmp_path, monkeypatch, kind):
    rng = np.random.default_rng(0)
    ends, weights = rng.integers(1, 3000, (20_000, 2)), rng.random(20_000).tolist()
    form = {
        "integers": "{},{},{}",
        "text": "n{},n{},{}",
        "quoted": '"n,{}","n,{}",{}',
        "streets": '{},{},{},"Elm, Oak"',
        "mtx": "{} {} {}",
    }[kind]
    header = {"mtx": "%%MatrixMarket matrix coordinate real general\n3000 3000 20000", "streets": "source,target,weight,name"}
    lines = [form.format(i, j, w) for (i, j), w in zip(ends.tolist(), weights, strict=True)]
    path = tmp_path / ("a.mtx.gz" if kind == "mtx" else "a.csv.gz")
    path.write_bytes(gzip.compress("\n".join([header.get(kind, "source,target,weight"), *lines]).encode()))
    whole = read_graph(path, duplicates="max")
    monkeypatch.setattr("hushgraph.files.text.BLOCK", 20_000)
    monkeypatch.setattr(edge_rows, "_LEAST_THREADED", 0)
    monkeypatch.setattr(edge_rows, "_LEAST_QUOTED", 0)
    for threads in (1, 3):
        with use_threads(threads):
            graph = read_graph(path, duplicates="max")
        assert graph.hash == whole.hash
        assert (graph.labels is None) == (whole.labels is None) or graph.labels.tolist() == whole.labels.tolist()


def test_the_first_fault_is_the_one_that_is_told(tmp_path, monkeypatch):
    """A line that is no edge comes before a file that is cut off, also where threads read ahead."""
    lines = b"".join(b"%d %d\n" % (k, k + 1) for k in range(3000)) + b"x\n" + b"1 2\n" * 30_000
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(lines)[:-20])
    monkeypatch.setattr("hushgraph.files.text.BLOCK", 5_000)
    monkeypatch.setattr(edge_rows, "_LEAST_THREADED", 0)
    with use_threads(4), pytest.raises(InputError, match="line 3001 "):
        read_graph(path)
    path.write_bytes(gzip.compress(lines.replace(b"x\n", b""))[:-20])
    with use_threads(4), pytest.raises(InputError, match="truncated"):
        read_graph(path)
