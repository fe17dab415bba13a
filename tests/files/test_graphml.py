"""Plain GraphML, read megabytes at a time, gives what the XML parser gives; all else, and every fault, is the parser's.

HUSHGRAPH_FUZZ=2000 runs so many examples of each instead of a few.
"""

import gzip
import os

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import hushgraph as hg
from hushgraph.files import graphml
from hushgraph.graphs.graph import Graph
from hushgraph.graphs.streets import street_covariates

EXAMPLES = int(os.environ.get("HUSHGRAPH_FUZZ", "100"))
FUZZ = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
OPTIONS = [
    {"weight": None},
    {"weight": False},
    {"distance": "w"},
    {"distance": "x"},
    {"weight": "name"},
    {"weight": 2},
    {"distance": "w", "weight": "w"},
    {"covariates": True},
    {"covariates": True, "distance": "length"},
]
HEAD = "<?xml version='1.0' encoding='utf-8'?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
HEADS = [
    HEAD, "<graphml>", "\ufeff" + HEAD, HEAD.replace("utf-8", "latin-1"), HEAD.replace("utf-8", "us-ascii"), HEAD.replace("utf-8", "utf-99"), HEAD.upper(),
    "<!DOCTYPE graphml [<!ATTLIST node id CDATA 'c'>]><graphml>", "<!DOCTYPE graphml [<!ENTITY c 'd'>]><graphml>", "<graphml><graph>", "<g:graphml xmlns:g='g'>",
]  # fmt: skip
KEYS = [
    '<key id="d0" for="edge" attr.name="w" attr.type="double"/>',
    '<key id="d0" for="edge" attr.name="weight" attr.type="double"><default> 0.5 </default></key>',
    '<key id="d0" for="all" attr.name="w"><default>no</default></key>',
    '<key id="d1" for="node" attr.name="x" attr.type="string" />',
    '<key id="d2" for="node" attr.name="y"><default>-7</default></key>',
    '<key id="d2" for="node" attr.name="y"/>',
    '<key id="lon" for="node" attr.name="lon"/><key id="lat" for="node" attr.name="lat"><default>3.5</default></key>',
    '<key id="d3" for="edge" attr.name="name" attr.type="string"/>',
    '<key id="d6" for="edge" attr.name="lanes" attr.type="string"/><key id="d66" for="all" attr.name="lanes" attr.type="int"/>',
    '<key id="d7" for="edge" attr.name="length"/>',
    '<key id="d7" for="edge" attr.name="length"><default>2.5</default></key>',
    '<key id="d4" for="graph" attr.name="crs"/>',
    '<key id="d5" for="graph" attr.name="hushgraph_labels"/>',
    "<!-- written by hand --><?for us?>",
    "<!-- a <node id='b'/> -->",
]  # fmt: skip
NAMES = ["a", "b", "0", "1", "2", "007", "-5", "99999999999999999999", "&lt;&amp;&gt;&quot;&apos;", "&#10;", "&#252;", "&#8364;x", "ü€", "", "a b", "&#128512;",
         "long " * 30, ">", "'", "\t"]  # fmt: skip
NUMBERS = ["1", "0", "0.1", " 2.5\n", "1e-3", "-1.5", "1.7976931348623157e308", "1e999", "nan", "", "0.1000000000000000055511151231257827", "1_0", "-+1", "&#49;",
           "123456789.123456789", "-0.30000000000000004", "x"]  # fmt: skip
ODD = ["<!-- a -->", "<desc>a</desc>", "<![CDATA[a]]>", "text", "<?pi a?>", "<port name='p'/>", "<data key='d4'>epsg:4326</data>", "<x:y/>", "&", "]]>", "<node id='z'/>", "<",
       "<graph><node id='q'/></graph>", "<node>", "<hyperedge/>", "\x01", "\ufffe", "&unknown;", "<edge source='a' target='a' sourceport='b'/>", "<node id='p' id='p'/>",
       "<node  id='p2'\n></node>", "<node id='p3'></node >", "<data key='weight'>1</data>", "<edge target='a' source='a'directed='true'/>"]  # fmt: skip


def outcome(read, path, options):
    """The edge table in comparable form, or the error's text."""
    try:
        table = read(path, **{"weight": None, "distance": None, **options})
    except ValueError as error:
        return str(error), error.__context__
    found = {} if table.streets is None else street_covariates(table.pairs, table.n, table.streets, table.coords, table.crs)
    arrays = (table.pairs, table.weights, table.coords, table.labels, *found.values())
    return table.n, table.crs, list(found), [None if part is None else (part.dtype, part.shape, part.tobytes()) for part in arrays]


def agree(path, options):
    """Whether it was plain; in any case the outcome is the parser's."""
    expected = outcome(graphml.read_xml, path, options)
    assert (
        outcome(lambda path, **said: graphml.read_plain(path, **said) or graphml.read_xml(path, **said), path, options) == expected
    )
    try:
        return graphml.read_plain(path, **{"weight": None, "distance": None, **options}) is not None
    except ValueError:
        return True


@st.composite
def data(draw, keys):
    found = []
    for key in draw(st.lists(st.sampled_from(keys), max_size=3, unique=draw(st.booleans()))):
        mark = draw(st.sampled_from("\"'"))
        text = draw(st.sampled_from(NUMBERS[:5]) | st.sampled_from(NUMBERS))
        text = '5 &lt; 6 ]] > &#233; "quoted" ü' if key == "d3" and draw(st.booleans()) else text
        found.append(
            f"<data key={mark}{key}{mark}>{text}</data>" if text or draw(st.booleans()) else f"<data key={mark}{key}{mark}/>"
        )
    return found


@st.composite
def documents(draw, odd):
    """A GraphML file: nodes, edges, data; with `odd` also what is not plain, or is wrong."""
    blank = draw(st.sampled_from(["", "\n  ", "\r\n\t"]))
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=5, unique=True))
    names = draw(st.lists(st.sampled_from(NAMES if odd else NAMES[:14]), min_size=1, max_size=6, unique=not odd))
    parts = []
    for name in names:
        inside = blank.join(draw(data(["d1", "d2", "lon", "lat", "d9", "d66"] + ["x"] * odd)))
        parts.append(f'<node id="{name}">{inside}{blank}</node>' if inside or draw(st.booleans()) else f'<node id="{name}"/>')
    for _ in range(draw(st.integers(0, 5))):
        ends = [draw(st.sampled_from(names + (["stranger"] if odd else []))) for _ in range(2)]
        more = draw(st.sampled_from(["", ' id="0"', ' directed="false"']))
        inside = blank.join(draw(data(["d0", "d3", "d6", "d66", "d7", "oneway"] + ["w"] * odd)))
        tag = f'edge source="{ends[0]}" target="{ends[1]}"{more}'
        parts.append(f"<{tag}>{inside}</edge>" if inside or draw(st.booleans()) else f"<{tag} />")
    parts = draw(st.permutations(parts))
    for text in draw(st.lists(st.sampled_from(ODD), max_size=2)) if odd else []:
        parts.insert(draw(st.integers(0, len(parts))), text)
    graph = draw(
        st.sampled_from(["", '<data key="d4">EPSG:4326</data>', '<data key="d5">int</data>', '<data key="d5">text</data>'])
    )
    late = draw(st.sampled_from(["", '<data key="d4">4326</data>', *(ODD if odd else [])]))
    inside = f"{graph}{blank}{blank.join(parts)}{blank}{late}"
    head = draw(st.sampled_from([HEAD, *HEADS])) if odd else HEAD
    return f'{head}{blank.join(keys)}<graph edgedefault="directed">{inside}</graph>{blank}</graphml>\n'


@pytest.mark.parametrize("odd", [False, True])
@FUZZ
@given(content=st.data(), options=st.sampled_from(OPTIONS), block=st.sampled_from([16, 100, 1 << 23]), packed=st.booleans())
def test_both_readers_agree(tmp_path_factory, odd, content, options, block, packed):
    text = content.draw(documents(odd)).encode()
    path = tmp_path_factory.getbasetemp() / ("a.graphml.gz" if packed else "a.graphml")
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hushgraph.files.text.BLOCK", max(block, text.find(b"<node") + 5))  # the first block holds the header
        agree(path, options)


@FUZZ
@given(
    content=st.data(), edits=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=2), st.integers(0, 3)), min_size=1, max_size=2)
)
def test_both_readers_agree_on_damaged_files(tmp_path_factory, content, edits):
    text = content.draw(documents(False)).encode()
    for share, new, size in edits:
        place = int(share * len(text))
        text = text[:place] + new + text[place + size :]
    path = tmp_path_factory.getbasetemp() / "damaged.graphml"
    path.write_bytes(text)
    agree(path, {})


WHOLE = (
    f'{HEAD}<key id="d0" for="edge" attr.name="weight"/><key id="x" for="node" attr.name="x"/>\n<key id="y" for="node" attr.name="y"/>'
    '<graph edgedefault="undirected">\n<node id="&lt;ü&#8364;"><data key="x">1</data><data key="y">-2.5</data></node>\n'
    '<node id="b"><data key="x">0.1</data><data key=\'y\'>7</data></node><edge source="&lt;ü€" target="b" id="0"><data key="d0">0.25</data>'
    '<data key="d7">a &amp; b</data></edge>\n<edge source="b" target="b"><data key="d0">1</data></edge>\n</graph>\n</graphml>\n'
).encode()


def test_a_file_cut_off_at_any_byte_is_the_parsers(tmp_path):
    path = tmp_path / "a.graphml"
    plain = []
    for size in range(len(WHOLE) + 1):
        path.write_bytes(WHOLE[:size])
        plain.append(agree(path, {}))
    assert [size for size, found in enumerate(plain) if found] == [len(WHOLE) - 1, len(WHOLE)]  # the last byte is a line break


def test_a_packed_file_cut_off_is_the_parsers(tmp_path):
    path = tmp_path / "a.graphml.gz"
    content = gzip.compress(WHOLE)
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        assert not agree(path, {})


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 300])
def test_blocks_may_end_anywhere(tmp_path, monkeypatch, size):
    path = tmp_path / "a.graphml"
    path.write_bytes(WHOLE)
    start = WHOLE.find(b"<node")
    monkeypatch.setattr("hushgraph.files.text.BLOCK", size)
    monkeypatch.setattr(
        graphml,
        "large_blocks",
        lambda _: iter([WHOLE[: start + 5], *(WHOLE[i : i + size] for i in range(start + 5, len(WHOLE), size))]),
    )
    assert agree(path, {})


def test_what_others_write_is_plain(tmp_path):
    """So that the fast way is what is tested, and taken."""
    G = nx.MultiDiGraph(crs="epsg:4326")
    G.add_nodes_from((f"n {i}", {"x": i / 7, "y": -i / 3, "highway": "stop & go"}) for i in range(9))
    G.add_edges_from((f"n {i}", f"n {i * i % 9}", {"weight": i / 11, "name": "Straße <1>", "oneway": False}) for i in range(9))
    path = tmp_path / "a.graphml"
    nx.write_graphml(G, path)
    assert agree(path, {})
    assert agree(path, {"distance": "name"}) is False  # an error, which the parser words
    if hasattr(nx, "write_graphml_xml"):
        nx.write_graphml_xml(G, path)
        assert agree(path, {"weight": "weight"})
    pytest.importorskip("igraph").Graph.from_networkx(G).write_graphml(str(path))
    assert agree(path, {"weight": "weight"})
    graph = Graph.from_edges([(0, 1), (1, 2)], weights=[0.1, 1e20], labels=["<a>", "ü\t", "c\n"], coords=np.eye(3, 2), crs="lonlat")
    assert agree(hg.write_graph(path, graph), {})


def test_osmnx_files_are_plain(tmp_path):
    osmnx = pytest.importorskip("osmnx")
    G = nx.MultiDiGraph(crs="epsg:4326")
    for node, x in ((31, -73.9), (20, -73.8), (10, -73.7)):
        G.add_node(node, x=x, y=40.7, street_count=2)
    for u, v, length in ((31, 20, 10.0), (20, 31, 10.0), (31, 20, 10.0), (20, 10, 40.0), (10, 10, 0.0)):
        G.add_edge(u, v, length=length, osmid=[1, 2], name="5th & Main", oneway=True)
    osmnx.save_graphml(G, tmp_path / "a.graphml")
    assert agree(tmp_path / "a.graphml", {"distance": "length"})
    assert agree(tmp_path / "a.graphml", {"distance": "length", "covariates": True})
    assert agree(tmp_path / "a.graphml", {"distance": "speed"})  # said at once, however large the file


PLAIN_STREETS = """<graphml><key id="k1" for="edge" attr.name="lanes" attr.type="string"/><key id="k22" for="all" attr.name="lanes" attr.type="int"/>
<key id="k" for="edge" attr.name="maxspeed"><default>30</default></key><key id="h" for="edge" attr.name="highway"/>
<graph edgedefault="DIRECTION"><edge source="a" target="b"><data key="k22">4</data><data key="k1">2</data><data key='length'>10</data></edge>
<node id="a"><data key="k22">9</data></node><edge source="b" target="a"><data key="k1">2</data><data key="k22">4</data><data key="length">10</data></edge>
<edge source="b" target="c"><data key="k1">7</data><data key="k1"/><data key="k">20</data><data key="length">1&#48;</data></edge>
<node id="b"/><node id="c"><data key="k1">5</data></node><edge source="c" target="d"/><node id="d"></node>
<edge source="d" target="e"><data key="h">prim&#97;ry</data><data key="length"> 5
</data><data key='name'>ü &lt;&amp;</data><data key="key">&quot;</data></edge><node id="e"/></graph></graphml>"""


@pytest.mark.parametrize("block", [1, 16, 200, 1 << 23])
@pytest.mark.parametrize(("direction", "lanes", "length"), [("directed", 3, 5), ("undirected", 3, 10)])
def test_attributes_of_streets_in_both_readers(tmp_path, monkeypatch, block, direction, lanes, length):
    """Keys of one attribute, data given twice, defaults, keys that are not declared, empty data, data of nodes, references."""
    path, text = tmp_path / "a.graphml", PLAIN_STREETS.replace("DIRECTION", direction).encode()
    path.write_bytes(text)
    monkeypatch.setattr("hushgraph.files.text.BLOCK", max(block, text.find(b"<edge") + 5))
    assert agree(path, {"covariates": True})
    found = Graph.from_table(graphml.read_plain(path, weight=None, distance=None, covariates=True))
    assert found.labels.tolist() == ["a", "b", "c", "d", "e"]
    expected = {
        "lanes_mean": [lanes, lanes, np.nan, np.nan, np.nan],  # of data given twice the last counts
        "speed_max": [30, 30, 30, 30, 30],
        "speed_mean": [30, 25 if direction == "directed" else 80 / 3, 20, 30, 30],
        "street_length": [length, length + 5, np.nan, np.nan, 2.5],
        "nameless_length": [length, length + 5, np.nan, np.nan, 0],
        "street_class": [np.nan, np.nan, np.nan, 5, 5],
    }
    for name, values in expected.items():
        assert found.node_covariates[name] == pytest.approx(np.array(values, dtype=float), nan_ok=True), name


def test_large_files_are_read_the_fast_way(tmp_path, monkeypatch):
    graph = Graph.from_edges([(i, i + 1) for i in range(5000)], weights=np.linspace(0.5, 1.5, 5000))
    path = hg.write_graph(tmp_path / "a.graphml", graph)
    monkeypatch.setattr(graphml, "read_xml", None)
    assert hg.read_graph(path).hash == graph.hash
    with pytest.raises(ValueError, match="no edge column 'speed'"):
        hg.read_graph(path, weight="speed")
