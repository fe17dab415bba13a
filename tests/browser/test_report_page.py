"""A report opened from disk, without a network: it draws, it moves both maps alike, it complains of nothing."""

import re

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.plotting.report.page import write_report

CANVAS = "#maps canvas.hush-map-canvas"
# Sums over the left and the right map (or the upper and the lower one): the shares of ink, and of pixels that differ.
HALVES = """([stacked]) => {
  const canvas = document.querySelector("#maps canvas.hush-map-canvas");
  const { width, height } = canvas;
  const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  const [w, h] = stacked ? [width, height >> 1] : [width >> 1, height];
  let first = 0, second = 0, alike = 0, both = 0;
  for (let y = 2; y < h - 2; y++) for (let x = 2; x < w - 2; x++) {
    const a = pixels[4 * (y * width + x) + 3] > 0, b = pixels[4 * ((y + (stacked ? h : 0)) * width + x + (stacked ? 0 : w)) + 3] > 0;
    first += a; second += b; alike += a && b; both += a || b;
  }
  return { first: first / (w * h), second: second / (w * h), alike: alike / both };
}"""


@pytest.fixture(scope="module")
def city():
    graph = hg.datasets.city(4600)
    noisy = hg.privacy.simulate(graph, hg.hotspot_counts(graph, total=46_000), epsilon=0.5, delta=1e-6, sensitivity=1, seed=0)
    return graph, noisy, hg.denoise(graph, noisy, method="sgwt_deep")


@pytest.fixture(scope="module")
def report(city, tmp_path_factory):
    return write_report(tmp_path_factory.mktemp("report") / "report.html", *city, title="Pickups in a generated city", epsilon=0.5)


def opened(tab, report):
    tab.page.goto(report.as_uri())
    tab.page.wait_for_function("() => document.querySelector('#maps canvas')?.dataset.drawn > 0")
    tab.page.locator("#maps").scroll_into_view_if_needed()
    tab.page.wait_for_timeout(350)  # a wheel that follows a scroll is the page's
    return tab


def settled(tab) -> list[float]:
    """The view once drawing has stopped."""
    before = -1
    while before != tab.drawn(CANVAS):
        before = tab.drawn(CANVAS)
        tab.page.wait_for_timeout(150)
    return tab.view(CANVAS)


@pytest.mark.parametrize("size", ["laptop", "phone"])
def test_it_opens_from_disk_and_draws_both_maps(offline_tab, report, pictures, size):
    tab = opened(offline_tab(size), report)
    ink = tab.page.evaluate(HALVES, [size == "phone"])
    assert min(ink["first"], ink["second"]) > 0.03
    assert ink["alike"] > 0.6
    tab.page.locator("#error-map").scroll_into_view_if_needed()
    tab.page.wait_for_selector("#error-map canvas.hush-map-canvas")
    tab.page.wait_for_timeout(300)
    tab.page.evaluate("() => scrollTo(0, 0)")
    width = tab.page.viewport_size["width"]
    tab.page.screenshot(path=pictures / f"report-{width}.png", full_page=True)
    assert tab.page.evaluate("() => document.documentElement.scrollWidth") == width
    assert tab.complaints == []
    assert [url for url in tab.requests if not url.startswith(("file:", "data:", "blob:"))] == []


def test_wheel_drag_keys_and_button_move_both_maps_alike(offline_tab, report, pictures):
    tab = opened(offline_tab(), report)
    box = tab.page.locator(CANVAS).bounding_box()
    whole = tab.view(CANVAS)
    tab.page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.5 * box["height"])
    for _ in range(4):
        tab.page.mouse.wheel(0, -200)
    near = settled(tab)
    assert near[2] > 2 * whole[2]
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + 0.3 * box["width"] + 60, box["y"] + 0.5 * box["height"] - 40, steps=4)
    tab.page.mouse.up()
    dragged = settled(tab)
    np.testing.assert_allclose([(near[0] - dragged[0]) * near[2], (near[1] - dragged[1]) * near[2]], [60, 40], atol=0.5)
    ink = tab.page.evaluate(HALVES, [False])
    assert min(ink["first"], ink["second"]) > 0.03
    assert ink["alike"] > 0.6
    tab.page.screenshot(path=pictures / "report-zoomed.png")
    tab.page.focus(CANVAS)
    tab.page.keyboard.press("ArrowLeft")
    assert settled(tab)[0] < dragged[0]
    tab.page.keyboard.press("+")
    assert settled(tab)[2] > dragged[2]
    tab.page.locator("#maps .hush-map-fit").click()
    np.testing.assert_allclose(settled(tab), whole, rtol=1e-9)
    assert tab.complaints == []


def test_the_two_maps_show_one_view(offline_tab, city, tmp_path):
    """With equal values in both, the two halves are the same picture wherever the view goes."""
    graph, noisy, result = city
    same = hg.Denoised(**{**result.__dict__, "signal": noisy.values})
    tab = opened(offline_tab(), write_report(tmp_path / "same.html", graph, noisy, same))
    for _ in range(3):
        halves = tab.page.evaluate(HALVES, [False])
        assert halves["alike"] > 0.97
        tab.page.focus(CANVAS)
        tab.page.keyboard.press("+")
        tab.page.keyboard.press("ArrowRight")
        settled(tab)


def test_two_fingers_zoom_and_one_scrolls_until_then(offline_tab, report):
    tab = opened(offline_tab("phone"), report)
    box = tab.page.locator(CANVAS).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + 180
    hand = tab.page.context.new_cdp_session(tab.page)

    def touch(kind: str, *points):
        hand.send(
            "Input.dispatchTouchEvent",
            {"type": kind, "touchPoints": [{"x": a, "y": b, "id": k} for k, (a, b) in enumerate(points)]},
        )

    whole = settled(tab)
    assert tab.page.eval_on_selector(CANVAS, "(canvas) => canvas.style.touchAction") == "pan-y"
    touch("touchStart", (x - 30, y), (x + 30, y))
    for k in range(1, 7):
        touch("touchMove", (x - 30 - 10 * k, y), (x + 30 + 10 * k, y))
    touch("touchEnd")
    near = settled(tab)
    assert near[2] / whole[2] == pytest.approx(3, rel=0.05)
    assert tab.page.eval_on_selector(CANVAS, "(canvas) => canvas.style.touchAction") == "none"
    touch("touchStart", (x, y))
    for k in range(1, 7):
        touch("touchMove", (x, y - 10 * k))
    touch("touchEnd")
    assert (near[1] - settled(tab)[1]) * near[2] == pytest.approx(60, abs=12)
    assert tab.complaints == []


@pytest.mark.parametrize("size", ["laptop", "phone"])
def test_a_pointer_shows_the_values_of_a_node_and_its_interval(offline_tab, city, tmp_path, pictures, size):
    graph, noisy, _ = city
    result = hg.denoise(graph, noisy, method="sgwt_deep", nonnegative=True)
    tab = opened(offline_tab(size), write_report(tmp_path / "report.html", graph, noisy, result))
    box = tab.page.locator(CANVAS).bounding_box()
    parts = (2, 1) if size == "laptop" else (1, 2)
    (x, y, scale), lower, upper = tab.view(CANVAS), *result.interval(0.9)
    east = int(np.argmax(np.where(result.signal > np.quantile(result.signal, 0.9), graph.coords[:, 0], -np.inf)))
    for node in (int(np.argmax(result.signal)), int(np.argmin(result.signal)), east):
        place = graph.coords[node] - graph.coords.min(axis=0)
        left = box["x"] + box["width"] / parts[0] / 2 + (place[0] - x) * scale
        top = box["y"] + box["height"] / parts[1] / 2 + 14 - (place[1] - y) * scale
        if size == "laptop":
            tab.page.mouse.move(left, top)
        else:
            tab.page.touchscreen.tap(left, top)
        text = tab.page.locator("#maps .hush-map-hover").inner_text().replace("\n", " ")
        found = re.fullmatch(
            re.escape(graph.names.of_node(node))
            + r" Noisy ([\d.,\N{MINUS SIGN}]+) Denoised ([\d.,]+), between ([\d.]+) and ([\d.,]+)",
            text,
        )
        assert found, text
        numbers = [float(part.replace(",", "").replace("\N{MINUS SIGN}", "-")) for part in found.groups()]
        unit = 10.0 ** -len(found[2].partition(".")[2])
        np.testing.assert_allclose(numbers[0], noisy.values[node], atol=0.051)
        np.testing.assert_allclose(numbers[1], result.signal[node], atol=0.55 * unit)
        expected = np.array([max(min(lower[node], result.signal[node]), 0), max(upper[node], result.signal[node])])
        assert (np.array([expected[0] - numbers[2], numbers[3] - expected[1]]) >= -0.02 * unit).all()  # outwards
        np.testing.assert_allclose(numbers[2:], expected, atol=unit + 0.11)
        assert tab.page.locator("#maps .hush-map-ring:visible").count() == 2
        edges = tab.page.eval_on_selector(
            "#maps .hush-map-hover",
            "(box) => { const r = box.getBoundingClientRect(); return [r.left, r.right, box.scrollWidth - box.clientWidth]; }",
        )
        assert 0 <= edges[0] < edges[1] <= tab.page.viewport_size["width"]
        assert edges[2] == 0
    tab.page.screenshot(path=pictures / f"report-interval-{tab.page.viewport_size['width']}.png")
    assert tab.complaints == []


def test_values_without_an_interval_are_shown_as_before(offline_tab, city, report):
    """The result of this report was not cut at 0; a report whose intervals are not known has only values."""
    graph, noisy, result = city
    page = report.with_name("none.html")
    page.write_text(re.sub(r'"(lower|upper)":', r'"\1_unknown":', report.read_text(encoding="utf-8")), encoding="utf-8")
    tab = opened(offline_tab(), page)
    node = int(np.argmax(result.signal))
    place = graph.coords[node] - graph.coords.min(axis=0)
    x, y, scale = tab.view(CANVAS)
    box = tab.page.locator(CANVAS).bounding_box()
    left = box["x"] + box["width"] / 4 + (place[0] - x) * scale
    top = box["y"] + box["height"] / 2 + 14 - (place[1] - y) * scale
    tab.page.mouse.move(left, top)
    text = tab.page.locator("#maps .hush-map-hover").inner_text()
    shown = [float(part) for part in re.findall(r"\d+\.\d+", text.replace(",", ""))]
    np.testing.assert_allclose(shown, [noisy.values[node], result.signal[node]], atol=0.051)
    assert tab.page.locator("#maps .hush-map-ring:visible").count() == 2


def test_the_scale_bar_is_right_at_every_zoom_and_latitude(offline_tab, tmp_path):
    """A grid of degrees from 30 to 60 north: the bar has a round length, and the right one for the middle of the view."""
    square = hg.datasets.grid(31, 31)
    lonlat = hg.Graph(square.adjacency, coords=square.coords / np.ptp(square.coords, axis=0) * 30 + [0, 60], crs="lonlat")
    assert lonlat.coords[:, 1].min() == pytest.approx(30)
    noisy = np.random.default_rng(0).normal(0, 1, lonlat.n)
    result = hg.denoise(lonlat, noisy, sigma=1.0, method="sgwt_sure")
    tab = opened(offline_tab(), write_report(tmp_path / "lonlat.html", lonlat, noisy, result))
    tab.page.focus(CANVAS)
    seen = set()
    for key in ("", "+", "ArrowUp", "+", "ArrowUp", "+", "ArrowUp", "+", "ArrowUp", "ArrowUp", "ArrowUp", "+", "+", "ArrowDown"):
        if key:
            tab.page.keyboard.press(key)
        _, y, scale = settled(tab)
        text = tab.page.locator("#maps .hush-map-metres").inner_text()
        assert re.fullmatch(r"[125]0*(,000)* k?m", text), text
        metres = float(text.split()[0].replace(",", "")) * (1000 if text.endswith("km") else 1)
        wide = tab.page.eval_on_selector("#maps .hush-map-length", "(bar) => bar.getBoundingClientRect().width")
        assert 30 <= wide <= 90.5
        latitude = np.radians([30 + y / 111_195.08, 45])
        shrinking = np.cos(latitude[0]) / np.cos(latitude[1])
        assert wide / scale * shrinking == pytest.approx(metres, rel=0.03)
        seen.add(text)
    assert len(seen) >= 4
    assert tab.page.locator("#maps .hush-map-ruler").get_attribute("aria-label") == f"Scale bar: {text}"


@pytest.mark.parametrize("metres", [None, 2.0])
def test_a_planar_map_has_a_scale_bar_only_if_its_unit_is_known(offline_tab, city, tmp_path, metres):
    tab = opened(offline_tab(), write_report(tmp_path / "city.html", *city, metres=metres))
    bar = tab.page.locator("#maps .hush-map-ruler")
    assert bar.is_visible() == (metres is not None)
    if metres is not None:
        wide = tab.page.eval_on_selector("#maps .hush-map-length", "(bar) => bar.getBoundingClientRect().width")
        shown = bar.inner_text().strip()
        told = float(shown.split()[0]) * (1000 if shown.endswith("km") else 1)
        assert told == pytest.approx(2.0 * wide / tab.view(CANVAS)[2], rel=0.03)


@pytest.mark.parametrize("size", ["laptop", "phone"])
def test_a_node_is_shown_with_its_name_as_text(offline_tab, city, tmp_path, size):
    graph, noisy, result = city
    names = [f"<b onclick=alert(1)>Corner & {k}</b>" for k in range(graph.n)]
    named = hg.Graph(graph.adjacency, coords=graph.coords, labels=names)
    node = int(np.argmax(result.signal))
    tab = opened(offline_tab(size), write_report(tmp_path / "named.html", named, np.asarray(noisy.values), result))
    place = graph.coords[node] - graph.coords.min(axis=0)
    x, y, scale = tab.view(CANVAS)
    box = tab.page.locator(CANVAS).bounding_box()
    side = size == "laptop"
    wide, high = box["width"] / (2 if side else 1), box["height"] / (1 if side else 2)
    left, top = box["x"] + wide / 2 + (place[0] - x) * scale, box["y"] + high / 2 + 14 - (place[1] - y) * scale
    if side:
        tab.page.mouse.move(left, top)
    else:
        tab.page.touchscreen.tap(left, top)
    text = tab.page.locator("#maps .hush-map-hover").inner_text()
    assert names[node] in text
    assert re.findall(r"Noisy|Denoised", text) == ["Noisy", "Denoised"]
    assert tab.page.locator("#maps .hush-map-hover b").count() == 0
    inside = tab.page.eval_on_selector(
        "#maps .hush-map-hover", "(box) => { const r = box.getBoundingClientRect(); return [r.left, r.right]; }"
    )
    assert 0 <= inside[0] < inside[1] <= tab.page.viewport_size["width"]
    assert tab.complaints == []


def test_many_edges_become_pixels(offline_tab, tmp_path, pictures):
    """Above the limit of strokes the map is a raster, with as much ink in both halves."""
    graph = hg.datasets.roads(60_000)
    noisy = hg.smooth_signal(graph) + np.random.default_rng(0).normal(0, 1, graph.n)
    report = write_report(tmp_path / "roads.html", graph, noisy, hg.denoise(graph, noisy, sigma=1.0, method="sgwt_sure"))
    tab = opened(offline_tab(), report)
    assert graph.n_edges > 60_000
    ink = tab.page.evaluate(HALVES, [False])
    assert min(ink["first"], ink["second"]) > 0.05
    assert ink["alike"] == 1.0
    tab.page.locator("#maps").screenshot(path=pictures / "report-roads.png")
    assert tab.complaints == []


def test_a_graph_without_places_needs_no_canvas(offline_tab, tmp_path):
    graph = hg.datasets.path(400)
    noisy = np.random.default_rng(0).normal(0, 1, 400)
    tab = offline_tab()
    tab.page.goto(
        write_report(tmp_path / "path.html", graph, noisy, hg.denoise(graph, noisy, sigma=1.0, method="sgwt_sure")).as_uri()
    )
    assert tab.page.locator("svg.bins").count() == 2
    assert tab.page.locator("canvas").count() == 0
    assert tab.complaints == []


# ---- windows, and a page that is printed --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def windowed(tmp_path_factory):
    graph = hg.datasets.city(600)
    counts = np.stack([hg.hotspot_counts(graph, total=3000, seed=k) for k in range(4)], axis=1)
    edges = [f"2026-03-{day}+01:00" for day in ("01T00:00", "01T06:00", "01T12:00", "01T18:00", "02T00:00")]
    noisy = hg.privacy.simulate(graph, counts, epsilon=1, delta=1e-6, sensitivity=1, seed=0, windows=edges)
    result = hg.denoise(graph, noisy, method="sgwt_sure")
    return write_report(tmp_path_factory.mktemp("windows") / "windows.html", graph, noisy, result)


@pytest.mark.parametrize("size", ["laptop", "phone"])
def test_a_report_over_windows_is_not_wider_than_the_screen(offline_tab, windowed, pictures, size):
    tab = opened(offline_tab(size), windowed)
    width = tab.page.viewport_size["width"]
    names = tab.page.locator("#maps .hush-map-other option").all_inner_texts()
    assert names[2:4] == ["1 Mar 05:00–11:00 UTC", "1 Mar 11:00–17:00 UTC"]
    assert tab.page.evaluate("() => document.documentElement.scrollWidth") == width
    tab.page.screenshot(path=pictures / f"report-windows-{width}.png")
    long = "'a long name of a window '.repeat(9)"
    tab.page.evaluate(f"() => {{ document.querySelector('.hush-map-other option').textContent = {long}; }}")
    tab.page.evaluate(f"() => {{ document.querySelector('.hush-map-window').textContent = {long}; }}")
    tab.page.evaluate(f"() => {{ document.querySelector('.hush-map-small-name').textContent = {long}; }}")
    assert tab.page.evaluate("() => document.documentElement.scrollWidth") == width
    assert tab.page.locator("#maps .hush-map-other").bounding_box()["width"] <= width
    assert tab.complaints == []


INK = "(canvas) => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((part) => part > 0)"


@pytest.mark.parametrize("idle", [True, False])
def test_the_second_map_is_there_when_the_page_is_printed(offline_tab, report, idle):
    """Never scrolled to: it is drawn when nothing else is to be done, and at the latest when the page goes to the printer."""
    tab = offline_tab()
    if not idle:
        tab.page.add_init_script("window.requestIdleCallback = () => 0")
    tab.page.goto(report.as_uri())
    tab.page.wait_for_function("() => document.documentElement.dataset.ready === 'yes'")
    if idle:
        tab.page.wait_for_function("() => document.querySelector('#error-map canvas')?.dataset.drawn > 0", timeout=5000)
    else:
        assert tab.page.locator("#error-map").inner_text() == "Reading the map"
        tab.page.evaluate("() => dispatchEvent(new Event('beforeprint'))")  # a print does not wait for what comes later
        assert tab.page.locator("#error-map canvas.hush-map-canvas").count() == 1
    assert "Reading" not in tab.page.locator("#error-map").inner_text()
    assert tab.page.eval_on_selector("#error-map canvas.hush-map-canvas", INK)
    assert tab.page.evaluate("() => scrollY") == 0
    tab.page.pdf()
    assert tab.complaints == []


# ---- zones ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["laptop", "phone"])
def test_zones_are_filled_and_a_pointer_anywhere_in_a_zone_shows_its_values(offline_tab, tmp_path, pictures, size):
    graph = hg.datasets.zones(120, crs=None)
    noisy = hg.privacy.simulate(graph, hg.hotspot_counts(graph, total=9000), epsilon=0.5, delta=1e-6, sensitivity=1, seed=0)
    tab = opened(offline_tab(size), write_report(tmp_path / "report.html", graph, noisy, hg.denoise(graph, noisy)))
    ink = tab.page.evaluate(HALVES, [size == "phone"])
    assert min(ink["first"], ink["second"]) > 0.25  # areas, not lines
    assert ink["alike"] > 0.98
    box = tab.page.locator(CANVAS).bounding_box()
    parts = (2, 1) if size == "laptop" else (1, 2)
    x, y, scale = tab.view(CANVAS)
    low = graph.outlines.corners.min(axis=0)
    rings = dict(graph.outlines.rings())
    for node in (3, 60, 117):
        for corner in rings[node][
            : 2 if size == "laptop" else 1
        ]:  # far from the middle of the zone, and yet inside; two taps would zoom
            share = 0.85 if size == "laptop" else 0.5  # on a phone a zone is a few pixels wide
            place = share * corner + (1 - share) * graph.coords[node] - low
            left = box["x"] + box["width"] / parts[0] / 2 + (place[0] - x) * scale
            top = box["y"] + box["height"] / parts[1] / 2 + 14 - (place[1] - y) * scale
            if size == "laptop":
                tab.page.mouse.move(left, top)
            else:
                tab.page.touchscreen.tap(left, top)
            assert tab.page.locator("#maps .hush-map-node").inner_text() == str(graph.labels[node])
    tab.page.screenshot(path=pictures / f"zones-{size}.png")
    if size == "laptop":
        tab.page.mouse.move(box["x"] + 4, box["y"] + box["height"] - 4)  # in no zone
        assert tab.page.locator("#maps .hush-map-hover").is_hidden()
    before = settled(tab)
    tab.page.locator(CANVAS).press("+")
    assert settled(tab)[2] > before[2]
    assert tab.complaints == []
