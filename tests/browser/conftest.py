"""A real browser without a network. Not part of the ordinary run: `make test-browser`."""

import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

WIDTHS = {"laptop": (1280, 800), "phone": (390, 844)}


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium, or the one of CHROMIUM."""
    found = (
        os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    )
    assert found, "no Chromium found: install the package chromium, or set CHROMIUM to its path"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def pictures():
    """Where screenshots are kept for people to look at."""
    folder = Path(__file__).parents[2] / "out" / "browser"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Tab:
    """A page with everything it complained of and everything it asked the network for."""

    def __init__(self, context):
        self.page, self.complaints, self.requests = context.new_page(), [], []
        self.page.on(
            "console", lambda message: self.complaints.append(message.text) if message.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def drawn(self, canvas: str = ".hush-map canvas.hush-map-canvas") -> int:
        return int(self.page.eval_on_selector(canvas, "(canvas) => canvas.dataset.drawn ?? 0"))

    def view(self, canvas: str = ".hush-map canvas.hush-map-canvas") -> list[float]:
        """Centre x, centre y and scale of the last drawing."""
        return [float(part) for part in self.page.eval_on_selector(canvas, "(canvas) => canvas.dataset.view").split()]


@pytest.fixture
def offline_tab(browser):
    """Tabs of a given size, without any network."""
    contexts = []

    def open_tab(size: str = "laptop") -> Tab:
        width, height = WIDTHS[size]
        context = browser.new_context(
            viewport={"width": width, "height": height}, has_touch=size == "phone", device_scale_factor=2 if size == "phone" else 1
        )
        context.set_offline(True)
        context.route("http://**", lambda route: route.abort())
        context.route("https://**", lambda route: route.abort())
        contexts.append(context)
        return Tab(context)

    yield open_tab
    for context in contexts:
        context.close()
