"""A report is one file that says what was done, asks nobody for anything, and holds nothing private."""

import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

import hushgraph as hg
from hushgraph.plotting.report.packing import (
    INTERVAL_HALF_WIDTH,
    STEPS_PER_EDGE,
    decimal_step,
    drawing_order,
    pack_graph,
    pack_interval,
    pack_values,
    planar_places,
)
from hushgraph.plotting.report.page import write_report
from hushgraph.plotting.report.text import window_texts

VOID = {"meta", "link", "br", "img", "input", "hr"}
SHAPES = {"path", "rect", "circle", "polyline"}
HOSTILE = "</script><img src=x onerror=alert(1)><!-- '\" & ${title} $style"


class Page(HTMLParser):
    """Elements, attributes and text; complains when a tag is left open."""

    def __init__(self, html: str):
        super().__init__()
        self.open, self.elements, self.attributes, self.texts = [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            return
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def unpacked(packed: dict) -> np.ndarray:
    """What map_data.js does, in Python."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), np.uint8).reshape(packed["bytes"], -1)
    zigzag = sum(plane.astype(np.int64) << (8 * k) for k, plane in enumerate(planes))
    whole = (zigzag >> 1) ^ -(zigzag & 1)
    values = packed["start"] + packed["step"] * (np.cumsum(whole) if packed["difference"] else whole).astype(float)
    if "missing" in packed:
        values[unpacked(packed["missing"]).astype(int)] = np.nan
    return values


def data_of(html: str) -> dict:
    return json.loads(re.search(r'id="hush-data">(.*?)</script>', html, re.DOTALL)[1])


@pytest.fixture(scope="module")
def city():
    graph = hg.datasets.city(600)
    truth = hg.hotspot_counts(graph, total=6000)
    noisy = hg.privacy.simulate(graph, truth, epsilon=1, delta=1e-6, sensitivity=1, seed=0)
    return graph, noisy, hg.denoise(graph, noisy, method="sgwt_sure")


def written(tmp_path, *parts, **named) -> str:
    return write_report(tmp_path / "report.html", *parts, **named).read_text(encoding="utf-8")


# ---- packing ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1e5, 1e5), max_size=80), st.sampled_from([0.01, 0.1, 1.0, 0.7]))
def test_values_come_back_to_half_a_step(values, step):
    back = unpacked(pack_values(np.array(values), step=step))
    assert len(back) == len(values)
    np.testing.assert_allclose(back, values, rtol=0, atol=step / 2 * (1 + 1e-9) + 1e-9)


def test_missing_values_stay_missing():
    values = np.array([np.nan, 1.0, -2.0, np.nan, 300.0])
    np.testing.assert_array_equal(unpacked(pack_values(values, step=1.0)), values)


def test_whole_numbers_take_the_bytes_they_need():
    assert [pack_values([0.0, size], step=1.0)["bytes"] for size in (100, 1000, 1e5, 5e8)] == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="larger one"):
        pack_values([1e9], step=0.1)
    with pytest.raises(ValueError, match="positive"):
        pack_values([1.0], step=0)


def test_the_graph_comes_back_with_every_edge_and_near_its_places():
    graph = hg.datasets.city(500)
    order = drawing_order(graph)
    packed = pack_graph(graph, order, metres=1.0)
    place = planar_places(graph)[0][order]
    degrees, offsets = (unpacked(packed[name]).astype(int) for name in ("degrees", "offsets"))
    ends = np.repeat(np.arange(graph.n), degrees)
    pairs = {tuple(sorted(pair)) for pair in order[np.stack([ends, ends + offsets], axis=1)].tolist()}
    assert pairs == {(i, j) for i, j in np.array(graph.adjacency.nonzero()).T.tolist() if i < j}
    edges = place[ends] - place[ends + offsets]
    bound = np.median(np.linalg.norm(edges, axis=1)) / STEPS_PER_EDGE / 2
    for k, axis in enumerate("xy"):
        assert np.abs(unpacked(packed[axis]) - (place[:, k] - place[:, k].min())).max() <= bound * (1 + 1e-9)
    assert packed["metres"] == 1.0


def test_degrees_become_metres_and_planar_units_stay_unknown():
    square = [[0, 60], [0, 60.01], [0.01, 60.01], [0.01, 60]]
    edges = [[0, 1], [1, 2], [2, 3]]
    graph = hg.Graph.from_edges(edges, coords=square, crs="lonlat")
    place, metres = planar_places(graph)
    np.testing.assert_allclose(np.ptp(place, axis=0), [555.9, 1111.95], rtol=1e-4)
    assert metres == 1.0
    assert pack_graph(hg.Graph.from_edges(edges, coords=square), np.arange(4))["metres"] is None


def test_a_scale_bar_is_told_the_latitudes_and_no_unit_is_invented(city, tmp_path):
    graph = hg.Graph.from_edges([[0, 1]], coords=[[10, 40], [10, 60]], crs="lonlat")
    packed = pack_graph(graph, np.arange(2), metres=5.0)
    assert packed["metres"] == 1.0  # degrees have a length of their own
    assert packed["latitude"] == {"south": 40.0, "true": 50.0, "degree": pytest.approx(111_195.08)}
    for metres in (None, 2.5):
        planar = data_of(written(tmp_path, *city, metres=metres))["graph"]
        assert (planar["metres"], planar["latitude"]) == (metres, None)
    with pytest.raises(ValueError, match="metres"):
        write_report(tmp_path / "x.html", *city, metres=0)


def test_names_of_nodes_travel_with_the_map_if_they_are_few():
    names = ["</script><b>", "1,5", 'a "quoted" one', "Straße\n7", "x" * 300, "\ud800"]
    graph = hg.Graph.from_edges([[0, 1], [4, 5]], n=6, coords=np.eye(6)[:, :2], labels=names)
    order = np.array([3, 0, 1, 2, 4, 5])
    packed = pack_graph(graph, order)["labels"]
    found = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert found == [names[3], names[0], names[1], names[2], "x" * 59 + "…", "?"]
    assert pack_graph(hg.datasets.grid(2, 3), np.arange(6))["labels"] is None
    many = hg.Graph.from_edges(np.empty((0, 2), int), n=200_001, coords=np.zeros((200_001, 2)), labels=np.arange(200_001))
    assert pack_graph(many, np.arange(many.n))["labels"] is None


def test_order_follows_the_map():
    graph = hg.datasets.city(500)
    place, order = planar_places(graph)[0], drawing_order(graph)
    assert sorted(order) == list(range(graph.n))
    far = np.linalg.norm(np.diff(place[np.random.default_rng(0).permutation(graph.n)], axis=0), axis=1).mean()
    assert np.linalg.norm(np.diff(place[order], axis=0), axis=1).mean() < far / 4


@pytest.mark.parametrize("places", [np.zeros((3, 2)), np.array([[0, 0], [1, 0], [2, 0]])])
def test_maps_without_width_or_edges_can_be_packed(places):
    graph = hg.Graph.from_edges(np.empty((0, 2), int), n=3, coords=places)
    packed = pack_graph(graph, drawing_order(graph))
    assert unpacked(packed["x"]).tolist() == pytest.approx(places[:, 0].tolist(), abs=0.05)
    assert len(unpacked(packed["offsets"])) == 0


def test_shown_decimals_are_rounded_rightly():
    step = decimal_step(8.06)
    values = np.random.default_rng(0).normal(0, 8, 200)
    assert [f"{value:.1f}" for value in unpacked(pack_values(values, step=step)) + 0.0] == [
        f"{np.rint(v / step) * step + 0.0:.1f}" for v in values
    ]


# ---- the page ---------------------------------------------------------------------------------------------------------


def test_it_says_what_was_done(city, tmp_path):
    graph, noisy, result = city
    page = Page(written(tmp_path, graph, noisy, result, title="Pickups", data="a generated city", epsilon=1))
    for words in ("Pickups", "a generated city", f"{graph.n:,}", f"{graph.n_edges:,}", "What was done", "wavelet scales",
                  "How the thresholds were chosen", "coarsest", "finest", "at most 73.2 times in 100", "protects nobody"):  # fmt: skip
        assert words in page.text, words
    assert f"± {np.sqrt(result.risk / graph.n):.2f}" in page.text
    assert "nan" not in page.text.lower().split()


def test_a_combination_shows_weights_and_the_curves_of_plain_thresholds(city, tmp_path):
    graph, noisy, _ = city
    page = Page(written(tmp_path, graph, noisy, hg.denoise(graph, noisy)))
    for words in ("How the estimates were combined", "What thresholds alone would leave", "coarsest", "finest"):
        assert words in page.text, words


def test_it_asks_for_nothing(city, tmp_path):
    html = written(tmp_path, *city)
    page = Page(html)
    assert not set(page.elements) & {"link", "img", "iframe", "object", "embed", "base", "form"}
    assert not [entry for entry in page.attributes if entry[1] in ("src", "href", "style", "action") or entry[1].startswith("on")]
    assert not re.search(r"(https?:)?//[a-z0-9-]+\.[a-z]", re.sub(r'id="hush-data">.*?</script>', "", html, flags=re.DOTALL))
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|eval|importScripts|sendBeacon)\b\(", html)


def test_its_policy_allows_its_own_script_and_style_alone(city, tmp_path):
    html = written(tmp_path, *city)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for pattern, rule in ((r"<script>(.*?)</script>", "script-src"), (r"<style>(.*?)</style>", "style-src")):
        (body,) = re.findall(pattern, html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy


def test_hostile_words_stay_words(city, tmp_path):
    graph, noisy, result = city
    page = Page(
        written(tmp_path, graph, noisy, result, title=HOSTILE, data=HOSTILE, certificate={"statement": HOSTILE, HOSTILE: [HOSTILE]})
    )
    assert "img" not in page.elements
    assert page.elements.count("script") == 2
    assert " ".join(HOSTILE.split()) in page.text
    assert page.text.count("onerror") >= 4


def test_colours_can_be_told_apart_by_lightness_alone():
    """Away from zero every colour is darker than the one before, on a dark page lighter: the colour-blind and grey printers see the order."""
    script = (files("hushgraph.plotting.report") / "static" / "map_colours.js").read_text(encoding="utf-8")
    ramps = [re.findall(r"#[0-9a-f]{6}", ramp) for ramp in re.findall(r"(?:above|below): \[(.*?)\]", script)]
    assert [len(ramp) for ramp in ramps] == 2 * [4, 8, 4, 8, 2, 7, 5, 5]
    for ramp in (ramps[8][::-1], ramps[9], ramps[10][::-1], ramps[11], ramps[13], ramps[14][::-1], ramps[15]):
        light = [_luminance(colour) for colour in ramp]
        assert all(after > before for before, after in pairwise(light)), light
        assert (light[0] + 0.05) / (_luminance("#14181d") + 0.05) > 1.2  # dim, yet visible on the dark page
    for ramp in (ramps[0][::-1], ramps[1], ramps[2][::-1], ramps[3], ramps[5], ramps[6][::-1], ramps[7]):
        light = [_luminance(colour) for colour in ramp]
        assert all(after < before for before, after in pairwise(light)), light
        assert 1.05 / (light[0] + 0.05) > 1.2  # pale, yet visible on white
    for below, above in (ramps[6:8], ramps[14:16]):  # of differences: equal sizes look equally strong on both sides
        for less, more in zip(below[::-1], above, strict=True):
            contrast = (_luminance(less) + 0.05) / (_luminance(more) + 0.05)
            assert 0.75 < contrast < 1.33, (less, more)


def _luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    parts = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return float(np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])


def test_values_of_the_page_are_those_of_the_result(city, tmp_path):
    graph, noisy, result = city
    data, order = data_of(written(tmp_path, *city)), drawing_order(graph)
    for name, values in (("noisy", noisy.values), ("denoised", result.signal), ("error", result.expected_error())):
        packed = data["columns"][0][name]
        np.testing.assert_allclose(unpacked(packed), values[order], rtol=0, atol=packed["step"] * 0.51)


@given(st.lists(st.floats(-1e4, 1e4), max_size=40), st.floats(0, 100), st.sampled_from([0.01, 0.1, 1.0, 0.7]))
def test_packed_intervals_are_never_shorter(lower, width, step):
    lower = np.array(lower)
    packed = pack_interval(lower + width / 2, lower, lower + width, step=step)
    low, high = unpacked(packed["lower"]), unpacked(packed["upper"])
    assert ((lower - 1.01 * step <= low) & (low <= lower + 1e-5 * step)).all()
    assert ((lower + width - 1e-5 * step <= high) & (high <= lower + width + 1.01 * step)).all()


def test_intervals_of_the_page_are_those_of_the_result(city, tmp_path):
    graph, noisy, result = city
    assert result.signal.min() < 0
    order = drawing_order(graph)
    cut = hg.denoise(graph, noisy, method="sgwt_sure", nonnegative=True)
    for shown, ends in ((result, result.interval(0.9)), (cut, [np.maximum(end, 0) for end in cut.interval(0.9)])):
        column = data_of(written(tmp_path, graph, noisy, shown))["columns"][0]
        lower, upper = unpacked(column["lower"]), unpacked(column["upper"])
        ends = [np.minimum(ends[0], shown.signal), np.maximum(ends[1], shown.signal)]  # no map shows a value outside its interval
        np.testing.assert_allclose(lower, ends[0][order], rtol=0, atol=1.01 * column["lower"]["step"])
        np.testing.assert_allclose(upper, ends[1][order], rtol=0, atol=1.01 * column["upper"]["step"])
        values = unpacked(column["denoised"])
        assert ((lower <= values + 1e-9) & (values <= upper + 1e-9)).all()
    assert lower.min() == 0  # counts


def test_intervals_take_few_bytes(city, tmp_path):
    html = written(tmp_path, *city)
    column = data_of(html)["columns"][0]
    sizes = {name: len(part["data"]) for name, part in column.items()}
    assert sizes["lower"] + sizes["upper"] <= 1.1 * (sizes["noisy"] + sizes["denoised"])
    assert sizes["lower"] + sizes["upper"] < 0.1 * len(html)


def test_the_page_says_what_an_interval_is(city, tmp_path):
    graph, noisy, _ = city
    page = Page(written(tmp_path, *city))
    assert re.search(
        r"such as [\d.]+, between [\d.−]+ and [\d.]+ \. At about 9 nodes in 10 the true value lies in the interval", page.text
    ), page.text
    assert "if the estimated noise level is right" not in page.text
    with pytest.warns(UserWarning, match="sigma was not given"):
        result = hg.denoise(graph, noisy.values, method="sgwt_sure")
    guessed = Page(written(tmp_path, graph, noisy.values, result))
    assert "at about 1 in 10 outside, if the estimated noise level is right." in guessed.text
    places = hg.Graph(graph.adjacency)
    bare = Page(written(tmp_path, places, noisy.values, hg.denoise(places, noisy.values, sigma=3.0, method="sgwt_sure")))
    assert "Each value has an interval, such as" in bare.text
    assert "Point at" not in bare.text.partition("How far to trust it")[2]


def test_a_sigma_that_is_too_large_leaves_no_interval(city, tmp_path):
    graph = city[0]
    values = 10 + np.random.default_rng(0).normal(0, 0.1, graph.n)
    with pytest.warns(UserWarning, match="too large"):
        result = hg.denoise(graph, values, sigma=5.0, method="sgwt_sure")
    html = written(tmp_path, graph, values, result)
    assert set(data_of(html)["columns"][0]) == {"noisy", "denoised"}
    assert "interval" not in Page(html).text


def test_the_dots_are_at_the_thresholds_taken(city):
    from hushgraph.plotting.report.method_charts import threshold_lines

    graph, noisy, _ = city
    for method in ("sgwt_sure", "sgwt_scaled", "sgwt_deep", "sgwt_exact"):
        result = hg.denoise(graph, noisy, method=method)
        lines = threshold_lines(graph, noisy.values, result)
        np.testing.assert_allclose([line.dot[0] for line in lines], result.thresholds / result.sigma, rtol=1e-9, err_msg=method)
        assert all(line.y.min() >= line.dot[1] - 1e-9 for line in lines)
    assert threshold_lines(graph, noisy.values, hg.denoise(graph, noisy, method="sgwt_sure", rule="soft")) == []


def test_combinations_show_their_weights(city, tmp_path):
    graph, noisy, _ = city
    result = hg.denoise(graph, noisy, method="let")
    page = Page(written(tmp_path, graph, noisy, result))
    assert next(iter(result.details["weights"])) in page.text
    assert "as asked" in page.text


def test_a_graph_without_places_gets_no_map(tmp_path):
    graph = hg.datasets.path(300)
    noisy = np.random.default_rng(0).normal(0, 1, 300)
    html = written(tmp_path, graph, noisy, hg.denoise(graph, noisy, sigma=1.0, method="sgwt_sure"))
    page = Page(html)
    assert data_of(html) == {}
    assert ("div", "id", "maps") not in page.attributes
    assert page.elements.count("figure") == 3
    assert "no coordinates" in page.text


def test_missing_values_several_signals_and_series(tmp_path):
    graph = hg.datasets.grid(12, 12)
    rng = np.random.default_rng(0)
    holes = rng.normal(0, 1, 144)
    holes[[3, 70]] = np.nan
    result = hg.denoise(graph, holes, sigma=1.0, method="sgwt_sure", missing="drop")
    html = written(tmp_path, graph, holes, result)
    assert "2 nodes had no value" in Page(html).text
    assert np.isnan(unpacked(data_of(html)["columns"][0]["noisy"])).sum() == 2
    many = rng.normal(0, 1, (144, 3))
    html = written(tmp_path, graph, many, hg.denoise(graph, many, sigma=1.0, method="sgwt_sure"))
    assert len(data_of(html)["columns"]) == 3
    assert [text["name"] for text in data_of(html)["windows"]] == ["signal 1", "signal 2", "signal 3"]
    shuffled = {i: holes[i] for i in rng.permutation(144).tolist()}
    by_label = hg.denoise(graph, shuffled, sigma=1.0, method="sgwt_sure", missing="drop")
    pages = [data_of(written(tmp_path, graph, *each)) for each in ((holes, result), (shuffled, by_label))]
    assert pages[0]["columns"][0]["error"] == pages[1]["columns"][0]["error"]


def test_parts_that_do_not_belong_together_are_refused(city, tmp_path):
    graph, noisy, result = city
    other = hg.datasets.city(500)
    with pytest.raises(ValueError, match="another graph"):
        write_report(tmp_path / "x.html", other, noisy, result)
    with pytest.raises(ValueError, match="one shape"):
        write_report(tmp_path / "x.html", graph, np.zeros((graph.n, 2)), result)
    with pytest.raises(TypeError, match="denoise"):
        write_report(tmp_path / "x.html", graph, noisy, noisy.values)
    with pytest.raises(TypeError, match="title"):
        write_report(tmp_path / "x.html", graph, noisy, result, title=3)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_there_as_a_whole_or_not_at_all(city, tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    target.write_text("the old one")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match="space"):
        write_report(target, *city)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert target.read_text() == "the old one"


# ---- a release --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def private(tmp_path_factory):
    """Counted private events, the release made of them, and words that must not be seen."""
    folder = tmp_path_factory.mktemp("private")
    graph = hg.datasets.city(600)
    events = {
        "node": np.random.default_rng(3).integers(0, graph.n, 7351),
        "person": [f"SECRET-{k % 2917:04d}" for k in range(7351)],
    }
    counts = hg.privacy.count_events(graph, events, unit="person", adjacency="add-remove", max_nodes=2, max_per_node=1)
    ledger = hg.privacy.Ledger.create(
        folder / "hidden-budget.db", dataset="trips", unit="person", adjacency="add-remove", epsilon=2.0, delta=1e-6
    )
    release = hg.privacy.release(
        counts, epsilon=0.5, delta=1e-6, ledger=ledger, public_graph=True, not_protected="drivers", attribution="© Streets & Co"
    )
    return graph, counts, release, hg.denoise(graph, release, method="let", nonnegative=True)


def test_a_release_shows_its_guarantee(private, tmp_path):
    graph, _, release, result = private
    page = Page(written(tmp_path, graph, release, result))
    for words in ("A private map", "With or without all data of any one person, nearly the same map would come out",
                  "at most 62.3 times in 100", "delta 1 in 1,000,000", "Not protected: drivers.",
                  "drivers", "© Streets & Co", "enforced by truncation", release.ledger["head"], "as JSON"):  # fmt: skip
        assert words in page.text, words
    assert page.text.partition("as JSON")[0].count("at most 62.3 times in 100") == 1


def test_the_table_of_a_certificate_names_things_as_they_are_written(private, tmp_path):
    folder = private[2].export(tmp_path / "release", method="let")
    text = (folder / "report.html").read_text(encoding="utf-8")
    for name in (
        "<dt>map.csv</dt>",
        "Noisy values (SHA-256)</th>",
        "<dt>NumPy</dt>",
        "<dt>SciPy</dt>",
        "<dt>Python</dt>",
        "<dt>hushgraph</dt>",
    ):
        assert name in text, name


def test_a_release_shows_nothing_private(private, tmp_path):
    graph, counts, release, result = private
    html = written(tmp_path, graph, release, result, data="hidden-events.csv")
    page = Page(html)
    text, source = (re.sub(r'"data":"[^"]*"|[0-9a-f]{32,}', "", part) for part in (page.text, html))  # a hash may hold any digits
    for words in ("SECRET", "7351", "7,351", "2917", "2,917", "hidden-budget", "hidden-events", str(tmp_path)):
        assert words not in text, words
        assert words not in source, words
    packed = data_of(html)["columns"][0]
    assert set(packed) == {"noisy", "denoised", "error", "lower", "upper"}
    truth = counts.counts[drawing_order(graph)]
    assert not any(np.array_equal(np.rint(unpacked(part)), truth) for part in packed.values())


def test_a_report_is_a_function_of_the_release_alone(private, tmp_path):
    """Read back from its folder, on another machine, the release gives the same page but for its certificate's files."""
    graph, _, release, result = private
    folder = release.export(tmp_path / "release", method="let")
    again = hg.privacy.read_release(folder, graph)
    same = hg.denoise(graph, again, method="let", nonnegative=True)
    here, there = (data_of(written(tmp_path, graph, *pair)) for pair in ((release, result), (again, same)))
    assert here == there


def test_windows_of_a_release_can_be_chosen(tmp_path):
    graph = hg.datasets.grid(10, 10)
    values = np.random.default_rng(0).poisson(3, (100, 3))
    noisy = hg.privacy.simulate(graph, values, epsilon=1, delta=1e-6, sensitivity=1, seed=0, windows=[0, 8, 16, 24])
    html = written(tmp_path, graph, noisy, hg.denoise(graph, noisy))
    data, page = data_of(html), Page(html)
    assert data["windows"][1] == {"name": "8 to 16", "spoken": "8 to 16", "at": "in 8 to 16"}
    assert data["windows_name"] == "time windows"
    assert len(data["columns"]) == len(data["windows"]) == 3
    assert "The slider chooses one of the time windows" in page.text
    assert data["half_width"] == pytest.approx(1.645, abs=0.001)
    one = hg.denoise(graph, noisy.values[:, 0], sigma=noisy.sigma)
    alone = written(tmp_path, graph, noisy.values[:, 0], one)
    assert data_of(alone)["windows"] == []
    assert "slider" not in Page(alone).text


def test_limits_of_a_difference_hold_for_nine_values_in_ten():
    """The page adds the squared expected errors of two windows; errors of windows are not negatively correlated, so that is not too little."""
    graph = hg.datasets.city(600)
    mean = np.stack([hg.hotspot_counts(graph, total=4000, seed=k) for k in (0, 0, 1)], axis=1) * [1.0, 0.5, 1.0]
    truth = np.random.default_rng(0).poisson(mean)
    noisy = hg.privacy.simulate(graph, truth, epsilon=1, delta=1e-6, sensitivity=1, seed=0, windows=[0, 1, 2, 3])
    result = hg.denoise(graph, noisy, method="let", nonnegative=True)
    signal, error = result.signal, result.expected_error()
    for a, b in ((0, 1), (0, 2), (1, 2)):
        half = INTERVAL_HALF_WIDTH * np.hypot(error[:, a], error[:, b])
        held = np.abs(signal[:, a] - signal[:, b] - truth[:, a] + truth[:, b]) <= half
        assert 0.87 < held.mean() < 0.99


# ---- guides -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guided(city):
    graph, noisy, _ = city
    rng = np.random.default_rng(5)
    similar = hg.hotspot_counts(graph, total=6000) + rng.normal(0, 0.5, graph.n)
    return hg.denoise(graph, noisy, nonnegative=True, guides={"pickups 2025": similar, "weather": rng.normal(0, 1, graph.n)})


def section(html: str, title: str) -> str:
    return Page(re.search(rf"<section><h2>{title}</h2>.*?</section>", html, re.DOTALL)[0]).text


def test_guides_are_shown_with_what_they_removed(city, guided, tmp_path):
    graph, noisy, alone = city
    html = written(tmp_path, graph, noisy, guided)
    text, accounts = section(html, "Guides"), guided.details["guides"]
    share = accounts["pickups 2025"]["risk_removed"]
    assert share > 0.1
    assert accounts["weather"]["risk_removed"] < 0.005
    for words in (f"The guides removed {sum(a['risk_removed'] for a in accounts.values()):.0%} of the squared error that was left without them.",
                  f"pickups 2025 a public map {share:.0%}", "The result is the average of these estimates"):  # fmt: skip
        assert words in text, words
    assert text.endswith("weather.") or "weather." in text
    assert f"pickups 2025: {accounts['pickups 2025']['sha256'][0][:16]}" in Page(html).text
    assert "noisy values and the guides" in Page(html).text
    assert "<h2>Guides</h2>" not in written(tmp_path, graph, noisy, alone)


def test_guides_that_do_not_help_are_said_not_to(city, tmp_path):
    graph, noisy, _ = city
    result = hg.denoise(graph, noisy, method="let", guides={"weather": np.random.default_rng(1).normal(0, 1, graph.n)})
    text = section(written(tmp_path, graph, noisy, result), "Guides")
    assert "The guides hardly changed anything" in text
    assert text.endswith(": weather.")


def test_hostile_names_of_guides_stay_words(city, tmp_path):
    graph, noisy, _ = city
    result = hg.denoise(graph, noisy, method="let", guides={HOSTILE: hg.hotspot_counts(graph, total=6000)})
    page = Page(written(tmp_path, graph, noisy, result))
    assert "img" not in page.elements
    assert page.text.count("onerror=alert(1)") == 2  # in the table, and beside its digest


def test_a_release_that_was_guided_says_so(private, tmp_path):
    graph, _, release, alone = private
    result = hg.denoise(graph, release, method="let", nonnegative=True, guides=graph.covariates())
    assert "Only the noisy map and public guides were used" in Page(written(tmp_path, graph, release, result)).text
    assert "Only the noisy map was used" in Page(written(tmp_path, graph, release, alone)).text


def test_guides_of_several_signals_are_summarised(city, tmp_path):
    """Also where a signal had no guides, or `details` say less than usual."""
    graph, noisy, _ = city
    several = np.stack([noisy.values, noisy.values[::-1]], axis=1)
    plain = hg.denoise(graph, several, sigma=noisy.sigma, method="let")
    part = {"risk_removed": 0.3, "in_words": "removed 30%", "made_from": "a public map", "sha256": []}
    cases = {
        "removed 20% of the squared error that was left without them, on average over 2 signals (from 10% to 30%)": [
            {"buses": part},
            {"buses": {**part, "risk_removed": 0.1, "made_from": "a noisy map"}},
        ],
        "removed 30% of the squared error that was left without them. Share": [None, {"buses": part}],
    }
    for words, guides in cases.items():
        text = section(written(tmp_path, graph, several, replace(plain, details={**plain.details, "guides": guides})), "Guides")
        assert words in text
    for nothing in ([None, None], None, {}):
        html = written(tmp_path, graph, several, replace(plain, details={**plain.details, "guides": nothing}))
        assert "<h2>Guides</h2>" not in html


def test_windows_guide_each_other_and_have_errors_of_their_own(tmp_path):
    graph = hg.datasets.grid(16, 16)
    truth = np.outer(hg.hotspot_counts(graph, total=6000), [0.2, 1.0, 3.0])
    noisy = hg.privacy.simulate(graph, truth.round(), epsilon=1, delta=1e-6, sensitivity=1, seed=0, windows=[0, 8, 16, 24])
    result = hg.denoise(graph, noisy, nonnegative=True)
    html = written(tmp_path, graph, noisy, result)
    text = section(html, "Guides")
    assert "Each of the time windows was guided by the others" in text
    assert "on average over 3 time windows" in text
    assert "all other maps 2 noisy maps, combined and denoised" in text
    sizes = [error.size for error in result.typical_errors]
    best, worst = (["0 to 8", "8 to 16", "16 to 24"][k] for k in (np.argmin(sizes), np.argmax(sizes)))
    whole = Page(html).text
    assert f"Of the time windows, {best} is known best" in whole
    assert f"and {worst} least" in whole
    assert "All time windows were denoised together" in whole


def test_missing_nodes_of_windows_are_counted_as_nodes(tmp_path):
    graph = hg.datasets.grid(12, 12)
    values = np.random.default_rng(0).normal(0, 1, (144, 3))
    values[[3, 70], 1] = np.nan
    words = {"series": "2 nodes lacked a value in at least one of the signals", "path": "2 values were missing"}
    for columns, sentence in words.items():
        result = hg.denoise(graph, values, sigma=1.0, method="let", missing="drop", columns=columns)
        assert sentence in Page(written(tmp_path, graph, values, result)).text


def texts_of(edges, key):
    return [text[key] for text in window_texts(edges)]


def test_windows_have_short_names():
    hours = ["2026-02-28T18:00:00", "2026-03-01T00:00:00", "2026-03-01T00:00:30.500000", "2026-03-03T06:00:00"]
    assert texts_of(hours, "name") == ["28 Feb 18:00–24:00", "1 Mar 00:00–00:00:30.5", "1 Mar 00:00:30.5–3 Mar 06:00"]
    years = [f"{day}T00:00:00+00:00" for day in ("2025-12-31", "2026-01-01", "2026-01-03")]
    assert texts_of(years, "name") == ["31 Dec 2025 UTC", "1 Jan 2026–2 Jan 2026 UTC"]
    assert texts_of(years[:2], "name") == ["31 Dec UTC"]
    assert texts_of([0.5, 1], "name") == ["0.5 to 1"]


def test_windows_have_names_to_be_spoken_and_to_be_compared_with():
    hours = ["2026-02-28T18:00", "2026-03-01T00:00", "2026-03-01T08:00", "2026-03-03T06:00"]
    assert texts_of(hours, "spoken") == [
        "Sat 28 February, 18:00 to 24:00", "Sun 1 March, 00:00 to 08:00", "Sun 1 March, 08:00 to Tue 3 March, 06:00",
    ]  # fmt: skip
    assert texts_of(hours, "at") == ["on 28 Feb at 18:00", "on 1 Mar at 00:00", "on 1 Mar at 08:00"]
    assert texts_of(["2026-03-03T23:00+00:00", "2026-03-04T00:00+00:00"], "at") == ["at 23:00 UTC"]
    days = ["2025-12-31", "2026-01-01", "2026-01-03"]
    assert texts_of(days, "spoken") == ["Wed 31 December 2025", "Thu 1 January 2026 to Fri 2 January 2026"]
    assert texts_of(days, "at") == ["on 31 Dec 2025", "in 1 Jan 2026–2 Jan 2026"]


# ---- what the page says of the map ----------------------------------------------------------------------------------------


def test_title_quantity_unit_and_source_are_on_the_page(city, tmp_path):
    graph, noisy, result = city
    named = replace(graph, attribution="(c) <b>Somebody</b>")
    html = written(
        tmp_path, named, noisy, result, title="Pickups at four", label="pickups", unit="pickups per hour", data="a.csv", metres=1
    )
    page = Page(html)
    for text in ("Pickups at four", "pickups (pickups per hour) at each node", "a.csv", "(c) <b>Somebody</b>", "km"):
        assert text in page.text
    assert page.elements.count("h1") == 1
    data = data_of(html)
    assert (data["title"], data["unit"], data["credit"]) == ("Pickups at four", "pickups per hour", "(c) <b>Somebody</b>")
    with pytest.raises(TypeError, match="unit"):
        written(tmp_path, graph, noisy, result, unit=3)


def test_names_of_streets_travel_with_the_map_if_they_are_few():
    graph = hg.datasets.city(300)
    order = drawing_order(graph)
    packed = pack_graph(graph, order)["names"]
    texts = json.loads(zlib.decompress(base64.b64decode(packed["texts"])))
    codes = np.stack([unpacked(column) for column in packed["codes"]], axis=1).astype(int)
    for place, node in enumerate(order.tolist()):
        assert " / ".join(texts[code] for code in codes[place] if code >= 0) == graph.names.of_node(node)
    many = hg.Graph.from_edges(
        np.empty((0, 2), int),
        n=200_001,
        coords=np.zeros((200_001, 2)),
        names=hg.graphs.NodeNames(["a"], np.zeros((200_001, 1), int)),
    )
    assert pack_graph(many, np.arange(many.n))["names"] is None


def test_outlines_are_simplified_and_what_is_far_away_is_left_out():
    graph = hg.datasets.grid(11, 11)  # from 0 to 10, and from -10 to 0
    ring = [[2.0, -2.0], [2.0, -4.0], [2.0, -6.0], [6.0, -6.0], [6.0, -2.0], [2.0, -2.0]]
    far = [[x + 100, y] for x, y in ring]
    shapes = [("Polygon", [ring], {"natural": "water"}), ("Polygon", [far], {}), ("LineString", ring, {"kind": "district"})]
    features = [
        {"type": "Feature", "properties": tags, "geometry": {"type": kind, "coordinates": parts}} for kind, parts, tags in shapes
    ]
    packed = pack_graph(graph, np.arange(graph.n), outlines={"type": "FeatureCollection", "features": features})["backdrop"]
    assert unpacked(packed["kinds"]).tolist() == [0, 5]
    assert unpacked(packed["sizes"]).tolist() == [5, 5]  # without the corner in the middle of a side
    np.testing.assert_allclose(unpacked(packed["x"])[:5] % 4, 2, atol=0.01)


@pytest.mark.parametrize("content", ["{}", "[]", '{"type": "FeatureCollection", "features": []}', "no json"])
def test_outlines_that_are_none_are_refused(content, tmp_path):
    path = tmp_path / "water.geojson"
    path.write_text(content)
    with pytest.raises(ValueError, match="GeoJSON"):
        pack_graph(hg.datasets.grid(3, 3), np.arange(9), outlines=path)
    with pytest.raises(FileNotFoundError, match="outlines"):
        pack_graph(hg.datasets.grid(3, 3), np.arange(9), outlines=[tmp_path / "none.geojson"])
