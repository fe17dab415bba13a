"""The explorer in a real browser: a city under the slider, one release of private events, strangers at the door."""

import json
import re
import zipfile

import httpx
import numpy as np
import pytest

import hushgraph as hg
from hushgraph.explorer.guard import TOKEN_HEADER
from hushgraph.privacy import release
from hushgraph.privacy.calibration import analytic_sigma

from .explorer_tab import CANVAS, HASHES, SIZES, Explorer, asks_for_the_chosen_method, counted, drawn, new_ledger, served


@pytest.fixture(scope="module")
def graph():
    return hg.datasets.city(2000)


@pytest.fixture(scope="module")
def city(graph):
    return served(graph=graph, title="Generated city")


# ---- a city -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_a_key_on_the_slider_changes_both_maps(browser, city, pictures, size):
    tab = Explorer(browser, city, size)
    assert "2,0" in tab.text("#data")
    assert "at most 62.3 times in 100 (epsilon 0.5, delta" in tab.text("#sentence")
    assert "#" not in tab.page.url  # the token does not stay in the address
    tab.page.screenshot(path=pictures / f"explorer-city-{SIZES[size][0]}.png", full_page=size == "phone")
    tab.press("ArrowRight")  # the first answer of the fast method also loads its kernels
    tab.settle()
    before, number = tab.hashes(), tab.page.input_value("#number")
    tab.press("PageUp")
    after = tab.hashes()
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert float(tab.page.input_value("#number")) > float(number)
    tab.settle()
    tab.end()


def test_every_move_on_ten_thousand_junctions_shows_its_own_answer(browser):
    """Also the first move; `make bench-explorer` measures the times."""
    graph = hg.datasets.city(10_000)
    tab = Explorer(browser, served(graph=graph))
    assert f"{graph.n:,} junctions" in tab.text("#data")
    seen = [tab.hashes()]
    with tab.only_moving():
        for key in ("ArrowRight", "PageUp", "ArrowLeft", "PageDown"):
            tab.press(key)
            epsilon = float(tab.page.input_value("#number"))
            assert tab.shown() == f"{epsilon:g} let moving"
            sigma = analytic_sigma(epsilon=epsilon, delta=1e-6, sensitivity=1)
            assert tab.text("#sigma") == f"σ = {sigma:.3g}"
            seen.append(tab.hashes())
    assert len({half for pair in seen for half in pair}) >= 8  # both maps, each time
    tab.settle()
    assert tab.shown() == f"{epsilon:g} auto"
    tab.end()


def test_a_slider_that_moves_again_does_not_wait_for_the_slow_method(browser, city):
    tab = Explorer(browser, city)
    with tab.page.expect_request(asks_for_the_chosen_method):
        tab.press("ArrowRight")
    with tab.only_moving():
        tab.press("ArrowRight")
        assert tab.shown().endswith("moving")
    tab.settle()
    assert tab.shown().endswith(" auto")
    tab.end()


def test_typing_a_number_and_choosing_a_method(browser, city):
    tab = Explorer(browser, city)
    tab.page.fill("#number", "2")
    tab.page.wait_for_function("() => document.body.dataset.shown === '2 auto'", timeout=30_000)
    assert "7.39 to 1" in tab.text("#sentence")
    assert tab.text("#sigma") == "σ = 2.23"
    tab.page.select_option("#method", "sgwt_sure")
    tab.page.wait_for_function("() => document.body.dataset.shown === '2 sgwt_sure'", timeout=30_000)
    tab.page.click("#experts summary")
    assert "threshold taken" in tab.text("#risk-note")
    tab.page.wait_for_timeout(300)  # the maps have less room now, and are drawn again
    before = tab.hashes()
    tab.page.select_option("#rule", "soft")
    tab.settle()
    tab.page.wait_for_timeout(300)
    after = tab.hashes()
    assert before[0] == after[0]  # the noise is the same,
    assert before[1] != after[1]  # the denoised map is not
    assert tab.page.locator("#chart circle").count() == tab.page.locator("#legend li").count() >= 4
    tab.end()


def test_wheel_and_drag_move_both_maps_alike(browser, city):
    tab = Explorer(browser, city)
    box = tab.page.locator(CANVAS).bounding_box()

    def view():
        return [float(part) for part in tab.page.eval_on_selector(CANVAS, "(canvas) => canvas.dataset.view").split()]

    places, whole, before = [], view(), tab.hashes()
    for half in (0, 1):  # the same point of either map, then the same drag
        tab.page.keyboard.press("Escape")
        tab.page.mouse.move(box["x"] + box["width"] * (0.5 * half + 0.3), box["y"] + 0.4 * box["height"])
        tab.page.mouse.wheel(0, -400)
        tab.page.wait_for_timeout(300)
        tab.page.mouse.down()
        tab.page.mouse.move(box["x"] + box["width"] * (0.5 * half + 0.25), box["y"] + 0.5 * box["height"], steps=4)
        tab.page.mouse.up()
        tab.page.wait_for_timeout(200)
        places.append(view())
        after = tab.hashes()
        assert after[0] != before[0]
        assert after[1] != before[1]
        tab.page.get_by_role("button", name="Whole map").click()
        tab.page.wait_for_timeout(400)
        assert view() == pytest.approx(whole)
    assert places[0] == pytest.approx(places[1])
    assert places[0][2] > whole[2]
    tab.end()


@pytest.mark.parametrize("size", SIZES)
def test_a_pointer_shows_the_interval_of_a_junction(browser, city, graph, pictures, size):
    tab = Explorer(browser, city, size)
    assert re.search(r"it holds the true count at about 90 % of the junctions \(here \d+ %\)\.", tab.text("#errors-note"))
    tab.page.locator(CANVAS).scroll_into_view_if_needed()
    tab.page.wait_for_timeout(300)
    x, y, scale = (float(part) for part in tab.page.eval_on_selector(CANVAS, "(canvas) => canvas.dataset.view").split())
    box = tab.page.locator(CANVAS).bounding_box()
    stacked = tab.page.locator(".hush-map-stacked").count() > 0
    busy = int(np.argmax(hg.hotspot_counts(graph, total=3.0 * graph.n, seed=0)))
    place = graph.coords[busy] - graph.coords.min(axis=0)
    left = box["x"] + box["width"] / (2 if stacked else 4) + (place[0] - x) * scale
    top = box["y"] + box["height"] / (4 if stacked else 2) + 14 - (place[1] - y) * scale
    if size == "phone":
        tab.page.touchscreen.tap(left, top)
    else:
        tab.page.mouse.move(left, top)
    text = tab.text(".hush-map-hover").replace("\n", " ")
    found = re.fullmatch(r".+ Noisy ([\d.−]+) events Denoised ([\d.]+) events, between ([\d.]+) and ([\d.]+)", text)
    assert found, text
    value, lower, upper = map(float, found.groups()[1:])
    assert 0 <= lower <= value <= upper
    tab.page.screenshot(path=pictures / f"explorer-interval-{SIZES[size][0]}.png")
    hover = tab.page.locator(".hush-map-hover").bounding_box()
    assert hover["x"] >= 0
    assert hover["x"] + hover["width"] <= SIZES[size][0]
    is_over = hover["x"] < left < hover["x"] + hover["width"] and hover["y"] < top < hover["y"] + hover["height"]
    assert not is_over  # the box does not hide its node
    tab.end()


def test_the_city_has_a_scale_bar_and_a_map_of_unknown_unit_none(browser, city):
    tab = Explorer(browser, served())  # the generated city is in metres
    seen = []
    for _ in range(3):
        wide = tab.page.eval_on_selector(".hush-map-length", "(bar) => bar.getBoundingClientRect().width")
        text = tab.text(".hush-map-metres")
        metres = float(text.split()[0]) * (1000 if text.endswith("km") else 1)
        scale = float(tab.page.eval_on_selector(CANVAS, "(canvas) => canvas.dataset.view").split()[2])
        assert metres == pytest.approx(wide / scale, rel=0.03)
        seen.append(metres)
        tab.page.focus(CANVAS)
        for _ in range(4):
            tab.page.keyboard.press("+")
        tab.page.wait_for_timeout(200)
    assert seen[0] > seen[1] > seen[2]
    tab.end()
    tab = Explorer(browser, city)
    assert tab.page.locator(".hush-map-ruler").is_hidden()
    tab.end()


# ---- guides -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_the_switch_of_the_guides_recomputes_without_them(browser, graph, pictures, size):
    truth, rng = hg.hotspot_counts(graph, total=3 * graph.n, seed=0), np.random.default_rng(0)
    guides = {"pickups 2025": truth + rng.normal(0, 1, graph.n), "weather": rng.normal(0, 1, graph.n)}
    tab = Explorer(browser, served(graph=graph, guides=guides), size)
    tab.page.wait_for_function("() => document.body.dataset.shown === '0.5 auto guided'", timeout=30_000)
    assert re.search(r"pickups 2025\s+removed \d\d %", tab.text("#guide-list"))
    assert re.search(r"\d\d % of the squared error that was left without guides\..*: weather\.", tab.text("#guides-note"))
    tab.page.screenshot(path=pictures / f"explorer-guides-{SIZES[size][0]}.png", full_page=size == "phone")
    before, errors = tab.hashes(), tab.text("#errors")
    tab.page.uncheck("#use-guides")
    tab.page.wait_for_function("() => document.body.dataset.shown === '0.5 auto'", timeout=30_000)
    tab.settle()
    assert "not used" in tab.text("#guides-note")
    assert tab.text("#guide-list") == ""
    after = tab.hashes()
    assert before[0] == after[0]
    assert before[1] != after[1]
    assert tab.text("#errors") != errors
    tab.page.check("#use-guides")
    tab.page.wait_for_function("() => document.body.dataset.shown === '0.5 auto guided'", timeout=30_000)
    tab.settle()
    assert (tab.hashes(), tab.text("#errors")) == (before, errors)
    tab.page.select_option("#method", "sgwt_sure")
    tab.page.wait_for_function("() => document.body.dataset.shown === '0.5 sgwt_sure'", timeout=30_000)
    assert tab.page.is_disabled("#use-guides")
    assert "takes no guides" in tab.text("#guides-note")
    tab.settle()
    tab.end()


def test_without_guides_there_is_no_panel_of_them(browser, city):
    tab = Explorer(browser, city)
    assert tab.page.is_hidden("#guides")
    tab.end()


# ---- private events -----------------------------------------------------------------------------------------------------


def test_private_events_from_the_slider_to_a_paid_release(browser, graph, tmp_path, pictures):
    ledger = new_ledger(tmp_path)
    tab = Explorer(browser, served(events=counted(graph), ledger=ledger, label="trips", not_protected="drivers"))
    tab.page.screenshot(path=pictures / "explorer-private-1280.png")
    streets, sigma = tab.page.eval_on_selector(CANVAS, HASHES), tab.text("#sigma")
    tab.press("PageDown")
    tab.settle()
    assert tab.text("#sigma") != sigma
    assert tab.page.eval_on_selector(CANVAS, HASHES) == streets  # numbers only
    assert "No map yet" in tab.text("#unseen")
    assert len(ledger) == 1

    tab.page.fill("#number", "0.5")
    tab.page.wait_for_function("() => document.body.dataset.shown === '0.5 auto'", timeout=30_000)
    tab.page.click("#draw-button")
    assert tab.page.is_disabled("#go")  # until it is attested
    tab.page.screenshot(path=pictures / "explorer-confirm-1280.png")
    tab.page.click("#cancel")
    assert len(ledger) == 1
    certificate = drawn(tab, "0.5")
    folder = tmp_path / "hushgraph-releases" / "release-1"
    assert json.loads((folder / "certificate.json").read_text())["ledger"] == certificate["ledger"]
    assert "charged and saved in hushgraph-releases/release-1" in tab.text("#draw-note")
    assert tab.page.get_attribute("#draw-note", "title") == str(folder)
    tab.page.screenshot(path=pictures / "explorer-release-1280.png")
    assert tab.page.eval_on_selector(CANVAS, HASHES) != streets
    assert tab.page.is_disabled("#slider")
    ledger.verify(certificate)
    assert (certificate["epsilon"], len(ledger)) == (0.5, 3)

    tab.page.click("#another")
    tab.settle()
    second = drawn(tab, "0.3")
    ledger.verify(certificate, second)
    assert (second["epsilon"], len(ledger)) == (0.3, 5)

    tab.page.click("#another")
    tab.page.fill("#number", "0.9")
    tab.page.wait_for_function("() => document.body.dataset.shown.startsWith('0.9')", timeout=30_000)
    assert tab.page.is_disabled("#draw-button")
    assert "budget does not allow" in tab.text("#draw-note")
    tab.settle()
    tab.end()


def test_a_release_that_could_not_be_saved_must_be_downloaded_now(browser, graph, tmp_path, pictures):
    kept = tmp_path / "kept"
    tab = Explorer(browser, served(events=counted(graph), ledger=new_ledger(tmp_path), keep=kept, label="trips"))
    tab.page.click("#draw-button")
    assert str(kept) in tab.text("#keep-text")
    tab.page.click("#cancel")
    kept.write_text("a file where the folder should be")
    tab.page.click("#draw-button")
    tab.page.check("#attest")
    tab.page.click("#go")
    tab.page.wait_for_selector("#download:visible", timeout=30_000)
    tab.settle()
    assert "could not be saved (File exists). Download it now" in tab.text("#draw-note")
    assert "warning" in tab.page.get_attribute("#draw-note", "class")
    assert tab.page.locator(".hush-map-title:visible").count() == 2  # and it is shown
    tab.page.screenshot(path=pictures / "explorer-unsaved-1280.png")
    asked = []
    tab.page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    tab.page.reload()
    assert asked == ["beforeunload"]  # whoever leaves is asked
    tab.settle()
    assert "Download it now" in tab.text("#draw-note")  # still after a reload
    with tab.page.expect_download() as download:
        tab.page.click("#download")
    assert zipfile.is_zipfile(download.value.path())
    tab.end()


@pytest.mark.parametrize("kind", ["private", "release"])
def test_on_a_phone(browser, graph, tmp_path, pictures, kind):
    ledger, counts = new_ledger(tmp_path), counted(graph)
    if kind == "private":
        tab = Explorer(browser, served(events=counts, ledger=ledger, label="trips"), "phone")
    else:
        published = release(counts, epsilon=0.5, delta=1e-6, ledger=ledger, public_graph=True)
        tab = Explorer(browser, served(release=published, label="trips"), "phone")
        assert tab.page.is_hidden("#draw-button")
        assert tab.page.is_disabled("#slider")
    tab.page.screenshot(path=pictures / f"explorer-{kind}-390.png", full_page=True)
    tab.page.mouse.wheel(0, 700)
    tab.page.wait_for_timeout(300)
    assert tab.page.locator("#slider").bounding_box()["y"] < 120  # it stays on top
    assert tab.page.evaluate("() => document.documentElement.scrollWidth") <= 390
    tab.end()


# ---- strangers ----------------------------------------------------------------------------------------------------------


def test_another_page_gets_nothing(browser, city):
    """A page of another origin in the same browser, with the right token even."""
    url, token = city.split("#token=")
    context = browser.new_context()
    context.route(
        "http://evil.example/", lambda route: route.fulfill(body="<!doctype html><title>evil</title>", content_type="text/html")
    )
    page = context.new_page()
    page.goto("http://evil.example/")
    script = """async ([url, token]) => {
      const asked = [{}, {headers: {"X-Hushgraph-Token": token}}, {mode: "no-cors"}];
      return Promise.all(asked.map((options) => fetch(url + "api/start", options).then((a) => `${a.status}${a.type}`, () => "blocked")));
    }"""
    assert set(page.evaluate(script, [url, token])) <= {"blocked", "0opaque"}
    context.close()
    assert httpx.get(f"{url}api/start", headers={TOKEN_HEADER: token, "host": "evil.example"}).status_code == 421
    assert httpx.get(f"{url}api/start", headers={TOKEN_HEADER: token, "origin": "http://evil.example"}).status_code == 403
    assert httpx.get(f"{url}api/start").status_code == 401


def test_without_the_token_the_page_says_what_to_do(browser, city):
    context = browser.new_context()
    page = context.new_page()
    page.goto(city.split("#")[0])
    page.wait_for_selector("#status.bad")
    assert "token" in page.locator("#status").inner_text()
    context.close()


# ---- totals of regions --------------------------------------------------------------------------------------------------


def region_is_shown(tab):
    tab.page.wait_for_function("() => document.querySelectorAll('#region-list dd').length === 3", timeout=60_000)
    return tab.text("#region-list")


@pytest.mark.parametrize("size", SIZES)
def test_a_region_is_outlined_and_added_up(browser, city, pictures, size):
    tab = Explorer(browser, city, size)
    tab.page.select_option("#method", "let")
    tab.settle()
    tab.page.locator("#map").scroll_into_view_if_needed()
    box = tab.page.locator(CANVAS).bounding_box()
    x, y = box["x"] + box["width"] / 4, box["y"] + box["height"] / (2 if size == "laptop" else 4)
    before = tab.hashes()
    if size == "phone":
        tab.page.locator("#region-draw").evaluate("(button) => button.click()")
    else:
        tab.page.keyboard.down("Shift")
    tab.page.mouse.move(x - 60, y - 60)
    tab.page.mouse.down()
    for dx, dy in ((60, -60), (60, 60), (-60, 60)):
        tab.page.mouse.move(x + dx, y + dy, steps=8)
    tab.page.mouse.up()
    tab.page.keyboard.up("Shift")
    text = region_is_shown(tab)
    assert re.search(r"events, \d+ junctions", text)
    assert text.count("±") == 2
    assert all(old != new for old, new in zip(before, tab.hashes(), strict=True)), "the outline is on both maps"
    tab.page.screenshot(path=pictures / f"explorer-region-{SIZES[size][0]}.png", full_page=size == "phone")
    tab.end()


def test_the_keyboard_adds_up_what_is_in_view(browser, city, graph):
    tab = Explorer(browser, city)
    tab.page.select_option("#method", "let")
    tab.settle()
    tab.page.focus("#region-view")
    tab.page.keyboard.press("Enter")
    assert f"events, {graph.n:,} junctions" in region_is_shown(tab)
    tab.page.select_option("#method", "sgwt_sure")  # another map: the total is not shown any more
    tab.settle()
    assert tab.text("#region-list") == ""
    tab.end()


def test_zones_are_filled_and_called_zones(browser, pictures):
    graph = hg.datasets.zones(263)
    tab = Explorer(browser, served(graph=graph, title="Generated zones"))
    tab.settle()
    assert "263 zones, 736 common borders" in tab.text("#data")
    assert tab.text("#noise-title") == "Noise added to every zone"
    assert "junction" not in tab.text("body")
    tab.page.screenshot(path=pictures / "explorer-zones.png")
    tab.end()


# ---- hostile texts ------------------------------------------------------------------------------------------------------


def test_titles_and_names_are_shown_as_text(browser):
    """Also in the search and in the box of values."""
    hostile = '<img src=x class=hostile onerror="document.hostile=1">'
    plain = hg.datasets.city(300)
    graph = hg.Graph(plain.adjacency, coords=plain.coords, labels=[f"{hostile}{k}" for k in range(plain.n)])
    tab = Explorer(browser, served(graph=graph, title=hostile, label=hostile, attribution=hostile))
    assert hostile in tab.text("#title")
    tab.page.fill("#map input[type=search]", hostile)
    tab.page.wait_for_selector("#map [role=option]")
    assert hostile in tab.page.locator("#map [role=option]").first.inner_text()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    assert hostile in tab.text("body")
    assert tab.page.locator(".hostile").count() == 0
    assert tab.page.evaluate("() => document.hostile") is None
    tab.end()
