"""Search, layers, the divider, pictures and outlines of the maps, in the report and in the explorer; by keyboard, offline, light and dark."""

import io
import re

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.plotting.report.page import write_report

from .accessibility import violations
from .explorer_tab import SIZES, Explorer, counted, new_ledger, served

CANVAS = "#maps canvas.hush-map-canvas"
SEARCH, SHOW, DIVIDER = "#maps input[type=search]", "#maps .hush-map-layers select", "#maps [role=slider]"


@pytest.fixture(scope="module")
def city():
    graph = hg.datasets.city(1500)
    noisy = hg.privacy.simulate(graph, hg.hotspot_counts(graph, total=15_000), epsilon=0.5, delta=1e-6, sensitivity=1, seed=0)
    return graph, noisy, hg.denoise(graph, noisy, method="sgwt_deep", nonnegative=True)


@pytest.fixture(scope="module")
def report(city, tmp_path_factory):
    low, high = city[0].coords.min(axis=0), city[0].coords.max(axis=0)
    lake = [low.tolist(), [float(high[0]), float(low[1])], high.tolist(), low.tolist()]
    water = {"type": "Feature", "properties": {"kind": "water"}, "geometry": {"type": "Polygon", "coordinates": [lake]}}
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(path, *city, title="Pickups", label="pickups", attribution="© Somebody", outlines=water, metres=1.0)


def opened(tab, report, scheme="light"):
    tab.page.emulate_media(color_scheme=scheme)
    tab.page.goto(report.as_uri())
    tab.page.wait_for_function("() => document.documentElement.dataset.ready === 'yes'")
    tab.page.locator("#maps").scroll_into_view_if_needed()
    return tab


def picture_of(tab, selector=CANVAS) -> bytes:
    tab.page.wait_for_timeout(400)  # until the view rests
    return tab.page.locator(selector).screenshot()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["laptop", "phone"])
def test_nothing_on_the_report_keeps_anybody_out(offline_tab, report, size, scheme):
    tab = opened(offline_tab(size), report, scheme)
    tab.page.wait_for_selector("#error-map canvas.hush-map-canvas")
    assert violations(tab.page) == []
    tab.page.evaluate("() => document.querySelectorAll('details').forEach((part) => (part.open = true))")
    tab.page.select_option(SHOW, "swipe")
    tab.page.fill(SEARCH, "st")
    assert violations(tab.page) == []
    assert tab.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_nothing_on_the_explorer_keeps_anybody_out(browser, city, size, scheme):
    tab = Explorer(browser, served(graph=city[0], title="Pickups", label="pickups"), size)
    tab.page.emulate_media(color_scheme=scheme)
    assert violations(tab.page) == []
    tab.page.click("#experts summary")
    tab.page.select_option("#map .hush-map-layers select", "swipe")
    tab.page.fill("#map input[type=search]", "st")
    assert violations(tab.page) == []
    tab.end()


def test_typing_finds_a_street_and_a_crossing_and_enter_goes_there(offline_tab, report, city):
    graph = city[0]
    tab = opened(offline_tab(), report)
    whole = tab.view(CANVAS)
    node = next(k for k in range(graph.n) if " / " in graph.names.of_node(k))
    first, second = graph.names.of_node(node).split(" / ")
    tab.page.focus(SEARCH)
    tab.page.keyboard.type(f"{second.upper()} & {first.lower()}")
    assert tab.page.locator("#maps [role=option]").first.inner_text() == graph.names.of_node(node)
    assert tab.page.get_attribute(SEARCH, "aria-expanded") == "true"
    tab.page.keyboard.press("ArrowDown")
    assert tab.page.get_attribute(SEARCH, "aria-activedescendant") == tab.page.locator("#maps [aria-selected=true]").get_attribute(
        "id"
    )
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("#maps .hush-map-hover:visible")
    x, y, scale = tab.view(CANVAS)
    np.testing.assert_allclose([x, y], graph.coords[node] - graph.coords.min(axis=0), atol=10)
    assert scale > 2 * whole[2]
    text = tab.page.locator("#maps .hush-map-hover").inner_text().replace("\n", " ")
    assert re.fullmatch(
        rf"{re.escape(graph.names.of_node(node))} Noisy [\d.,−]+ pickups Denoised [\d.,]+ pickups, between [\d.]+ and [\d.,]+", text
    )
    tab.page.select_option(SHOW, "denoised")
    tab.page.fill(SEARCH, first)
    tab.page.keyboard.press("Enter")
    assert picture_of(tab)
    tab.page.fill(SEARCH, "no such street")
    assert tab.page.locator("#maps .hush-map-search [role=status]").inner_text() == "Nothing found"
    assert not tab.page.locator("#error-map input[type=search]").is_visible()  # one box is enough
    assert tab.complaints == []


def test_layers_change_the_map_and_keep_the_view(offline_tab, report):
    tab = opened(offline_tab(), report)
    tab.page.focus(CANVAS)
    tab.page.keyboard.press("+")
    tab.page.wait_for_timeout(300)
    scale = tab.view(CANVAS)[2]
    names = tab.page.eval_on_selector_all(f"{SHOW} option", "(options) => options.map((option) => option.value)")
    assert names == ["side", "swipe", "noisy", "denoised", "error", "lower", "upper", "width"]
    seen = {}
    for name in names:
        tab.page.select_option(SHOW, name)
        seen[name] = picture_of(tab)
        assert tab.view(CANVAS)[2] == scale
    assert len(set(seen.values())) == len(names)
    assert tab.complaints == []


def test_the_divider_moves_by_keys_and_by_dragging(offline_tab, report):
    tab = opened(offline_tab(), report)
    tab.page.select_option(SHOW, "swipe")
    before = picture_of(tab)
    tab.page.focus(DIVIDER)
    for key, place in (("ArrowRight", "52"), ("PageUp", "62"), ("Home", "0"), ("End", "100"), ("ArrowLeft", "98")):
        tab.page.keyboard.press(key)
        assert tab.page.get_attribute(DIVIDER, "aria-valuenow") == place
    assert picture_of(tab) != before
    box, stage = tab.page.locator(DIVIDER).bounding_box(), tab.page.locator(CANVAS).bounding_box()
    tab.page.mouse.move(box["x"] + 16, box["y"] + 200)
    tab.page.mouse.down()
    tab.page.mouse.move(stage["x"] + 0.25 * stage["width"], box["y"] + 210, steps=5)
    tab.page.mouse.up()
    assert abs(int(tab.page.get_attribute(DIVIDER, "aria-valuenow")) - 25) <= 1
    assert "% Noisy" in tab.page.get_attribute(DIVIDER, "aria-valuetext")
    assert tab.complaints == []


def test_a_picture_has_room_for_title_legend_and_source(offline_tab, report, pictures):
    image_module = pytest.importorskip("PIL.Image")
    tab = opened(offline_tab(), report)
    with tab.page.expect_download() as download:
        tab.page.click("#maps .hush-map-save")
    assert download.value.suggested_filename == "pickups.png"
    download.value.save_as(pictures / "saved-picture.png")
    image = image_module.open(io.BytesIO(download.value.path().read_bytes()))
    box = tab.page.locator(CANVAS).bounding_box()
    assert image.width == round(box["width"])
    assert image.height > box["height"] + 90
    below = np.asarray(image.convert("L"))[-24:]
    assert below.min() < 128 < below.max()  # the source, in the last lines
    assert tab.complaints == []


def test_colours_follow_the_page_and_paper_is_light(offline_tab, report):
    tab = opened(offline_tab(), report, "dark")
    dark = picture_of(tab)
    tab.page.emulate_media(color_scheme="light")
    assert picture_of(tab) != dark
    assert tab.complaints == []


def test_the_explorer_saves_the_report_of_a_release_and_none_before(browser, city, offline_tab, tmp_path):
    tab = Explorer(browser, served(events=counted(city[0]), ledger=new_ledger(tmp_path), title="Trips of a day", label="trips"))
    assert tab.page.locator("#save-report").is_hidden()
    tab.page.click("#draw-button")
    tab.page.check("#attest")
    tab.page.click("#go")
    tab.page.wait_for_selector("#save-report:visible", timeout=30_000)
    tab.settle()
    with tab.page.expect_download() as download:
        tab.page.click("#save-report")
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    tab.settle()
    tab.end()
    saved = opened(offline_tab(), path)
    assert saved.page.locator("h1").inner_text() == "Trips of a day"
    assert saved.complaints == []
