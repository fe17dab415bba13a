"""Planning a release, first or another: the page never speaks of one map while it shows another, and never asks without the cost."""

import re

import pytest

import hushgraph as hg

from .explorer_tab import CANVAS, HASHES, SIZES, Explorer, counted, drawn, new_ledger, served

TITLES = """() => [...document.querySelectorAll('.hush-map-title:not([hidden])')].map(
  (one) => [...one.children].map((part) => part.innerText).join(' '))"""


@pytest.fixture(scope="module")
def counts():
    return counted(hg.datasets.city(600))


@pytest.fixture
def private(browser, counts, tmp_path):
    """A tab in which one release was drawn at 0.2."""

    def opened(size="laptop"):
        tab = Explorer(browser, served(events=counts, ledger=new_ledger(tmp_path, 2.0), label="trips"), size)
        drawn(tab, "0.2")
        return tab

    return opened


def plan(tab, epsilon: str):
    tab.page.click("#another")
    tab.page.fill("#number", epsilon)
    tab.page.wait_for_function("(shown) => document.body.dataset.shown === shown", arg=f"{epsilon} auto", timeout=30_000)


@pytest.mark.parametrize("size", SIZES)
def test_maps_of_the_last_release_say_so_while_another_is_planned(private, pictures, size):
    tab = private(size)
    maps, sigma = tab.page.eval_on_selector(CANVAS, HASHES), tab.text("#sigma")
    assert tab.page.evaluate(TITLES) == ["Noisy as published", "Denoised from the noisy map alone"]
    plan(tab, "1.2")
    said = f"release 1, ε = 0.2, {sigma}"
    assert tab.page.evaluate(TITLES) == [f"Noisy {said}", f"Denoised {said}"]
    assert tab.text("#sentence").startswith("This protects each person, but not strongly")
    assert tab.text("#noise-title") == "Noise a new map would have"
    assert tab.text("#errors-title") == "Typical error of a new map"
    tab.page.screenshot(path=pictures / f"explorer-another-{SIZES[size][0]}.png", full_page=size == "phone")

    tab.page.click("#back")
    tab.page.wait_for_function("() => document.body.dataset.shown === '0.2 auto'", timeout=30_000)
    assert tab.page.evaluate(TITLES) == ["Noisy as published", "Denoised from the noisy map alone"]
    assert tab.text("#sigma") == sigma
    assert tab.text("#sentence").startswith("With or without all data of any one person, nearly the same map")
    assert tab.page.input_value("#number") == "0.2"
    assert tab.page.is_hidden("#back")
    assert tab.page.is_disabled("#slider")
    if size == "laptop":
        assert tab.hashes() == maps
    tab.end()


def test_the_release_can_be_downloaded_while_another_is_planned(private):
    tab = private()
    plan(tab, "1.2")
    asked = []
    tab.page.on("request", lambda request: asked.append(request.post_data_json) if request.url.endswith("download") else None)
    tab.page.select_option("#method", "sgwt_sure")  # for the plan
    tab.settle()
    with tab.page.expect_download() as download:
        tab.page.click("#download")
    assert download.value.suggested_filename == "release-1.zip"
    assert asked[0]["method"] == "auto"  # as the map shows it
    tab.settle()
    tab.end()


def test_nothing_of_the_rail_lies_under_the_buttons(private):
    tab = private()
    plan(tab, "1.2")
    note, buttons = tab.page.locator("#budget-note").bounding_box(), tab.page.locator("#draw").bounding_box()
    assert note["y"] + note["height"] <= buttons["y"]
    assert buttons["y"] + buttons["height"] <= 800
    assert tab.page.eval_on_selector("#draw", "(part) => part.scrollHeight <= part.clientHeight")
    tab.end()


# ---- the cost -----------------------------------------------------------------------------------------------------------


def test_nothing_can_be_drawn_before_its_cost_is_known(private):
    """Another release at the epsilon of the last one, whose answers hold no cost."""
    tab, held = private(), []
    tab.page.route("**/api/view", lambda route: held.append(route))
    tab.page.click("#another")
    tab.page.wait_for_timeout(400)
    assert tab.page.is_disabled("#draw-button")
    tab.page.evaluate("() => document.getElementById('draw-button').click()")
    assert tab.page.is_hidden("#confirm")
    tab.page.unroute("**/api/view")  # they go on
    assert held
    tab.page.wait_for_selector("#draw-button:enabled", timeout=30_000)
    tab.page.click("#draw-button")
    tab.page.wait_for_selector("#confirm[open]")
    assert re.search(r"Spent after this\s+0\.29\d? of 2", tab.text("#confirm-list"))
    tab.page.click("#cancel")
    tab.settle()
    tab.end()


def test_a_plan_that_fails_opens_nothing_later(private):
    tab = private()
    plan(tab, "0.5")
    tab.page.route("**/api/view", lambda route: route.fulfill(status=500, json={"error": "out of order"}))
    tab.page.fill("#number", "0.6")
    tab.page.click("#draw-button")
    tab.page.wait_for_function("() => document.getElementById('status').textContent === 'out of order'", timeout=10_000)
    tab.page.wait_for_timeout(500)
    assert tab.page.is_hidden("#confirm")
    tab.page.unroute("**/api/view")
    tab.page.fill("#number", "0.7")
    tab.page.wait_for_function("() => document.body.dataset.shown === '0.7 auto'", timeout=30_000)
    tab.page.wait_for_timeout(200)
    assert tab.page.is_hidden("#confirm")
    tab.page.click("#draw-button")
    tab.page.wait_for_selector("#confirm[open]")
    tab.page.click("#cancel")
    assert all("500" in said for said in tab.complaints)
    tab.complaints.clear()
    tab.end()


# ---- the box of epsilon -------------------------------------------------------------------------------------------------


def test_comma_and_point_mean_the_same(browser):
    tab = Explorer(browser, served(graph=hg.datasets.city(600)))
    tab.page.select_option("#method", "sgwt_sure")
    for typed, used in {"0,5": "0.5", "0.6": "0.6", ",7": "0.7", "1,25": "1.25", " 2 ": "2", "10": "10", "0,05": "0.05"}.items():
        tab.page.fill("#number", "")
        tab.page.type("#number", typed)
        tab.page.wait_for_function("(shown) => document.body.dataset.shown === shown", arg=f"{used} sgwt_sure", timeout=30_000)
        assert tab.text("#fault") == ""
        assert tab.page.get_attribute("#number", "aria-invalid") == "false"
        tab.page.keyboard.press("Enter")
        assert tab.page.input_value("#number") == used
        assert f"(epsilon {used}, " in tab.text("#sentence")
    tab.end()


@pytest.mark.parametrize("size", SIZES)
def test_a_number_that_is_refused_says_so_and_changes_nothing(private, pictures, size):
    tab = private(size)
    plan(tab, "0.6")
    for typed in ("50", "0.001", "0", "-1", "1.000,5", "0,5,0", "1e1", "half", "", "٣"):
        tab.page.fill("#number", typed)
        assert "ε = 0.6 is kept" in tab.text("#fault")
        assert tab.page.get_attribute("#number", "aria-invalid") == "true"
        tab.page.keyboard.press("Enter")
        assert tab.page.input_value("#number") == typed  # never silently another number
        assert tab.page.is_disabled("#draw-button")
    tab.page.wait_for_timeout(500)  # longer than the page waits before it asks
    assert tab.shown() == "0.6 auto"
    tab.page.fill("#number", "1.000,5")
    tab.page.screenshot(path=pictures / f"explorer-refused-{SIZES[size][0]}.png", full_page=size == "phone")
    tab.press("ArrowRight")
    assert tab.text("#fault") == ""
    tab.page.wait_for_selector("#draw-button:enabled", timeout=30_000)
    tab.settle()
    tab.end()


# ---- a look at the events -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_the_owner_looks_at_the_events_before_the_first_draw(browser, counts, tmp_path, pictures, size):
    graph = counts.graph
    events = hg.datasets.trips(graph, n_people=4 * graph.n)
    swapped = {**events, "x": events["y"] + 50_000, "y": events["x"]}

    def check():
        return hg.privacy.check_events(graph, swapped, unit="person", max_nodes=2, max_per_node=1, max_distance=200)

    tab = Explorer(browser, served(events=counts, ledger=new_ledger(tmp_path, 2.0), check=check), size)
    tab.page.screenshot(path=pictures / f"explorer-first-{SIZES[size][0]}.png", full_page=size == "phone")
    if size == "laptop":
        note, buttons = tab.page.locator("#budget-note").bounding_box(), tab.page.locator("#draw").bounding_box()
        assert note["y"] + note["height"] <= buttons["y"]
    tab.page.click("#check-button")
    tab.page.wait_for_selector("#check[open]", timeout=30_000)
    assert tab.text("#check-private").startswith("Private, not for publication")
    assert f"{len(events['x']):,}" in tab.text("#check-list")
    assert "another place" in tab.text("#check-hints")
    tab.page.click("#check summary")
    assert "further than 200" in tab.text("#check-dropped")
    tab.page.screenshot(path=pictures / f"explorer-check-{SIZES[size][0]}.png")
    tab.page.click("#check-close")
    assert tab.page.text_content("#check-list") == ""  # forgotten
    tab.page.click("#check-button")
    tab.page.wait_for_selector("#check[open]", timeout=30_000)
    assert tab.page.text_content("#check-list")
    tab.page.keyboard.press("Escape")
    tab.page.wait_for_function("() => document.getElementById('check-list').textContent === ''")
    drawn(tab, "0.5")
    assert tab.page.is_hidden("#check-button")
    tab.end()
