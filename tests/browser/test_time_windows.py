"""Time windows on the maps: a slider, a player, small maps and the difference of two, in the report and in the explorer."""

import json
import re

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.plotting.report.page import write_report

from .accessibility import violations
from .explorer_tab import Explorer, new_ledger, served

CANVAS, SHOW = "#maps canvas.hush-map-canvas", "#maps .hush-map-layers select"
SLIDER, PLAY, WINDOW, OTHER = ".hush-map-slider", ".hush-map-play", ".hush-map-window", ".hush-map-other"
SMALL = ".hush-map-small-map"
DAY = [f"2026-03-03T{hour:02d}:00" for hour in range(6, 11)]
# A number for what a canvas shows.
HASH = """(canvas) => {
  const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
  const pen = copy.getContext("2d");
  pen.drawImage(canvas, 0, 0);
  return pen.getImageData(0, 0, copy.width, copy.height).data.reduce((hash, part) => (Math.imul(hash, 31) + part) | 0, 0);
}"""


def changing_counts(graph, m):
    base = [hg.hotspot_counts(graph, total=6 * graph.n, seed=k) for k in range(2)]
    shares = np.linspace(0, 1, m)
    return np.stack([(1 - 0.9 * share) * base[0] + 0.6 * share * base[1] for share in shares], axis=1).round()


@pytest.fixture(scope="module")
def day():
    graph = hg.datasets.city(700)
    noisy = hg.privacy.simulate(graph, changing_counts(graph, 4), epsilon=1, delta=1e-6, sensitivity=1, seed=0, windows=DAY)
    return graph, noisy, hg.denoise(graph, noisy, method="let", nonnegative=True)


@pytest.fixture(scope="module")
def report(day, tmp_path_factory):
    path = tmp_path_factory.mktemp("time") / "day.html"
    return write_report(path, *day, title="Pickups on a Tuesday", label="pickups", metres=1.0)


def opened(tab, report, scheme="light"):
    tab.page.emulate_media(color_scheme=scheme)
    tab.page.goto(report.as_uri())
    tab.page.wait_for_function("() => document.documentElement.dataset.ready === 'yes'")
    tab.page.locator("#maps").scroll_into_view_if_needed()
    return tab


def hash_of(tab, selector=CANVAS):
    tab.page.wait_for_timeout(250)
    return tab.page.eval_on_selector(selector, HASH)


def hovered(tab, graph, node) -> str:
    """The text at a node on the map that is shown alone."""
    place, box, (x, y, scale) = (
        graph.coords[node] - graph.coords.min(axis=0),
        tab.page.locator(CANVAS).bounding_box(),
        tab.view(CANVAS),
    )
    tab.page.mouse.move(
        box["x"] + box["width"] / 2 + (place[0] - x) * scale, box["y"] + box["height"] / 2 + 14 - (place[1] - y) * scale
    )
    return tab.page.locator("#maps .hush-map-hover").inner_text()


def test_the_slider_is_moved_by_keys_and_says_the_window(offline_tab, report):
    tab = opened(offline_tab(), report)
    assert tab.page.get_attribute(SLIDER, "aria-valuetext") == "Tue 3 March, 06:00 to 07:00"
    assert tab.page.get_attribute(SLIDER, "aria-label") == "Time window"
    seen = {hash_of(tab)}
    tab.page.focus(SLIDER)
    for key, hour in (("ArrowRight", 7), ("ArrowRight", 8), ("End", 9)):
        tab.page.keyboard.press(key)
        spoken = f"Tue 3 March, {hour:02d}:00 to {hour + 1:02d}:00"
        assert tab.page.get_attribute(SLIDER, "aria-valuetext") == tab.page.locator(WINDOW).inner_text() == spoken
        seen.add(hash_of(tab))
    assert len(seen) == 4
    for layer in ("noisy", "denoised", "error", "lower", "upper", "width"):  # all follow, with the same colours
        tab.page.select_option(SHOW, layer)
        ranges, pictures = set(), set()
        for key in ("Home", "End"):
            tab.page.focus(SLIDER)
            tab.page.keyboard.press(key)
            pictures.add(hash_of(tab))
            ticks = tab.page.locator("#maps .hush-map-tick").all_inner_texts()
            ranges.add(max(float(tick.split()[0].replace("\N{MINUS SIGN}", "-")) for tick in ticks))
        assert len(pictures) == 2, layer
        assert len(ranges) == 1, layer
    assert tab.complaints == []


def test_the_values_at_the_pointer_follow_the_slider(offline_tab, report, day):
    graph, noisy, result = day
    tab = opened(offline_tab(), report)
    tab.page.select_option(SHOW, "noisy")
    node = int(np.argmax(result.signal[:, 0]))
    tab.page.wait_for_timeout(200)
    texts = [hovered(tab, graph, node)]
    tab.page.focus(SLIDER)
    tab.page.keyboard.press("End")
    tab.page.wait_for_timeout(200)
    texts.append(tab.page.locator("#maps .hush-map-hover").inner_text())
    for text, k in zip(texts, (0, 3), strict=True):
        shown = float(text.rpartition(": ")[2].split()[0].replace("\N{MINUS SIGN}", "-"))
        np.testing.assert_allclose(shown, noisy.values[node, k], atol=0.51)


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_playing_shows_one_window_after_another_and_ends(offline_tab, report, motion):
    tab = offline_tab()
    tab.page.emulate_media(reduced_motion=motion)
    opened(tab, report)
    tab.page.wait_for_timeout(1300)
    assert tab.page.input_value(SLIDER) == "0"  # nothing plays by itself
    tab.page.focus(PLAY)
    tab.page.keyboard.press("Space")
    assert tab.page.locator(PLAY).inner_text() == "Pause"
    tab.page.wait_for_function(f"() => document.querySelector('{SLIDER}').value === '1'", timeout=1500)
    tab.page.keyboard.press("Space")
    assert tab.page.locator(PLAY).inner_text() == "Play"
    tab.page.wait_for_timeout(1300)
    assert tab.page.input_value(SLIDER) == "1"
    tab.page.focus(SLIDER)
    tab.page.keyboard.press("Space")
    tab.page.wait_for_function(f"() => document.querySelector('{SLIDER}').value === '3'", timeout=4000)
    tab.page.wait_for_function(f"() => document.querySelector('{PLAY}').textContent === 'Play'")
    tab.page.click(PLAY)  # again from the beginning
    tab.page.wait_for_function(f"() => document.querySelector('{SLIDER}').value === '0'", timeout=1500)
    tab.page.focus(SLIDER)
    tab.page.keyboard.press("ArrowRight")  # whoever moves the slider has taken over
    assert tab.page.locator(PLAY).inner_text() == "Play"
    assert tab.complaints == []


def test_small_maps_show_all_windows_and_choose_one(offline_tab, report):
    tab = opened(offline_tab(), report)
    tab.page.locator("#windows").scroll_into_view_if_needed()
    tab.page.wait_for_timeout(500)
    note = tab.page.locator("#windows p")
    assert note.inner_text() == "All 4 time windows: denoised, with the colours of the map. Choose one to see it large."
    names = [name.replace("\u2060", "") for name in tab.page.locator(SMALL).all_inner_texts()]  # joined, not to be broken there
    assert names == [f"3 Mar {hour:02d}:00–{hour + 1:02d}:00" for hour in range(6, 10)]

    def pictures():
        tab.page.wait_for_timeout(500)
        return tab.page.eval_on_selector_all(f"{SMALL} canvas", f"(all) => all.map({HASH})")

    first = pictures()
    assert len(set(first)) == 4
    tab.page.locator(SMALL).nth(2).focus()
    tab.page.keyboard.press("Enter")
    assert tab.page.input_value(SLIDER) == "2"
    assert [one.get_attribute("aria-pressed") for one in tab.page.locator(SMALL).all()] == ["false", "false", "true", "false"]
    assert pictures() == first
    tab.page.select_option(SHOW, "error")
    assert set(pictures()).isdisjoint(first)
    assert "expected error" in note.inner_text()
    tab.page.emulate_media(color_scheme="dark")
    tab.page.select_option(SHOW, "side")
    assert set(pictures()).isdisjoint(first)
    tab.page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    assert tab.page.eval_on_selector_all(f"{SMALL} canvas", f"(all) => all.map({HASH})") == first  # light on paper, at once
    assert tab.complaints == []


def test_of_many_windows_every_third_has_a_small_map(offline_tab, tmp_path):
    graph = hg.datasets.zones(40, crs=None)
    noisy = hg.privacy.simulate(
        graph, changing_counts(graph, 60), epsilon=1, delta=1e-6, sensitivity=1, seed=0, windows=list(range(61))
    )
    result = hg.denoise(graph, noisy, method="let", columns="separate")
    tab = opened(offline_tab("phone"), write_report(tmp_path / "many.html", graph, noisy, result))
    tab.page.wait_for_timeout(500)
    assert tab.page.locator(SMALL).count() == 20
    assert tab.page.locator("#windows p").inner_text().startswith("Every 3rd of the 60 time windows: denoised")
    assert tab.page.locator(SMALL).nth(1).inner_text() == "3 to 4"
    tab.page.locator(SMALL).nth(1).tap()
    assert tab.page.input_value(SLIDER) == "3"
    assert tab.page.get_attribute(SLIDER, "aria-valuetext") == "3 to 4"
    assert tab.complaints == []


def test_a_difference_says_what_is_subtracted_and_between_which_limits(offline_tab, report, day):
    graph, _, result = day
    tab = opened(offline_tab(), report)
    tab.page.select_option(SHOW, "denoised")
    tab.page.focus(SLIDER)
    tab.page.keyboard.press("End")
    tab.page.select_option(OTHER, label="3 Mar 07:00–08:00")
    tab.page.wait_for_timeout(400)
    assert tab.page.locator("#maps .hush-map-unit").inner_text() == "pickups: 3 Mar 09:00–10:00 minus 3 Mar 07:00–08:00"
    middle = tab.page.locator("#maps .hush-map-tick").filter(has_text=re.compile("^0$"))
    assert middle.evaluate("(tick) => parseFloat(tick.style.left)") == pytest.approx(50)
    difference = result.signal[:, 3] - result.signal[:, 1]
    half = 1.6449 * np.hypot(*result.expected_error()[:, [1, 3]].T)
    for node in (int(np.argmax(difference)), int(np.argmin(difference)), int(np.argmin(np.abs(np.abs(difference) - half / 2)))):
        text = hovered(tab, graph, node)
        found = re.fullmatch(
            r".+: ([\d.]+) pickups (more|less) than at 07:00 \(between ([\d.]+)( less)? and ([\d.]+) (more|less)\)", text
        )
        assert found, text
        size, sign = float(found[1]), 1 if found[2] == "more" else -1
        np.testing.assert_allclose(sign * size, difference[node], atol=0.6)
        near, far = float(found[3]), float(found[5])
        ends = [-near, far] if found[4] else [near, far] if found[6] == "more" else [-far, -near]
        expected = difference[node] + half[node] * np.array([-1, 1])
        np.testing.assert_allclose(ends, expected, atol=1.2)
        assert ends[0] <= expected[0] + 0.1
        assert ends[1] >= expected[1] - 0.1
    tab.page.select_option(SHOW, "noisy")
    tab.page.wait_for_timeout(200)
    assert "(between" not in hovered(tab, graph, int(np.argmax(difference)))
    assert "denoised" not in tab.page.locator("#windows p").inner_text()
    assert "noisy minus 3 Mar 07:00–08:00" in tab.page.locator("#windows p").inner_text()
    tab.page.select_option(OTHER, "-1")
    assert tab.page.locator("#maps .hush-map-unit").inner_text() == "pickups"
    assert tab.complaints == []


def test_a_difference_has_no_limits_where_errors_are_not_known(offline_tab, report, day):
    page = report.with_name("unknown.html")
    page.write_text(re.sub(r'"(error|lower|upper)":', r'"\1_unknown":', report.read_text(encoding="utf-8")), encoding="utf-8")
    tab = opened(offline_tab(), page)
    tab.page.select_option(SHOW, "denoised")
    tab.page.select_option(OTHER, "3")
    tab.page.wait_for_timeout(300)
    node = int(np.argmax(day[2].signal[:, 0] - day[2].signal[:, 3]))
    assert re.fullmatch(r".+: [\d.]+ pickups more than at 09:00", hovered(tab, day[0], node))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["laptop", "phone"])
def test_nothing_on_the_report_keeps_anybody_out(offline_tab, report, pictures, size, scheme):
    tab = opened(offline_tab(size), report, scheme)
    assert violations(tab.page) == []
    tab.page.select_option(OTHER, "2")
    tab.page.wait_for_timeout(500)
    assert violations(tab.page) == []
    width = tab.page.viewport_size["width"]
    assert tab.page.evaluate("() => document.documentElement.scrollWidth") == width
    tab.page.screenshot(path=pictures / f"report-difference-{width}-{scheme}.png")
    assert tab.complaints == []


# ---- the explorer -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    graph = hg.datasets.city(500)
    events = hg.datasets.trips(graph, n_people=4000)
    edges = [f"2026-03-02T{hour:02d}:00" for hour in (0, 8, 16)] + ["2026-03-03T00:00"]
    bounds = {"time": "time", "windows": edges, "max_cells": 1, "max_per_cell": 1, "max_distance": 200}
    counts = hg.privacy.count_events(graph, events, unit="person", adjacency="add-remove", **bounds)
    ledger = new_ledger(tmp_path_factory.mktemp("ledger"), epsilon=2.0)
    return hg.privacy.release(counts, epsilon=2.0, delta=1e-6, ledger=ledger, public_graph=True)


@pytest.mark.parametrize(("size", "scheme"), [("laptop", "light"), ("phone", "dark")])
def test_the_explorer_shows_every_window_of_a_release(browser, published, pictures, size, scheme):
    tab = Explorer(browser, served(release=published, label="trips"), size)
    tab.page.emulate_media(color_scheme=scheme)
    assert tab.page.get_attribute(SLIDER, "aria-valuetext") == "Mon 2 March, 00:00 to 08:00"
    before = tab.hashes()
    tab.page.focus(SLIDER)
    tab.page.keyboard.press("End")
    tab.page.wait_for_timeout(300)
    assert tab.page.locator(WINDOW).inner_text() == "Mon 2 March, 16:00 to 24:00"
    assert all(old != new for old, new in zip(before, tab.hashes(), strict=True))
    assert tab.page.locator("#region").is_hidden()
    assert tab.page.locator("#risk").is_hidden()
    tab.page.click("#windows-details summary")
    tab.page.wait_for_timeout(500)
    assert len(set(tab.page.eval_on_selector_all(f"{SMALL} canvas", f"(all) => all.map({HASH})"))) == 3
    assert violations(tab.page) == []
    tab.page.locator(SMALL).nth(1).click()
    assert tab.page.input_value(SLIDER) == "1"
    tab.page.select_option(OTHER, "0")
    tab.page.wait_for_timeout(300)
    assert tab.text(".hush-map-unit") == "trips per junction: 2 Mar 08:00–16:00 minus 2 Mar 00:00–08:00"
    width = tab.page.viewport_size["width"]
    assert tab.page.evaluate("() => document.documentElement.scrollWidth") == width
    tab.page.screenshot(path=pictures / f"explorer-windows-{width}-{scheme}.png")
    assert violations(tab.page) == []
    with tab.page.expect_download() as download:
        tab.page.click("#save-report")
    text = download.value.path().read_text(encoding="utf-8")
    assert len(json.loads(re.search(r'id="hush-data">(.*?)</script>', text, re.S)[1])["columns"]) == 3
    tab.settle()
    tab.end()
