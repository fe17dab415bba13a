"""A tab with the explorer in it, and what it is served from."""

import contextlib
import io
import json
import threading
import zipfile

import hushgraph as hg
from hushgraph.explorer.server import serve
from hushgraph.privacy.counting import count_events
from hushgraph.privacy.ledger.budget import Ledger

CANVAS = ".hush-map canvas.hush-map-canvas"
SIZES = {"laptop": (1280, 800), "phone": (390, 844)}
HASHES = """(canvas) => {
  const {width, height} = canvas, copy = Object.assign(document.createElement("canvas"), {width, height});
  const pen = copy.getContext("2d", {willReadFrequently: true});
  pen.drawImage(canvas, 0, 0);
  const stacked = document.querySelector(".hush-map-stacked") !== null;
  const [w, h] = stacked ? [width, height / 2] : [width / 2, height];
  return [[0, 0], stacked ? [0, h] : [w, 0]].map(([x, y]) => {
    let hash = 0;
    for (const part of pen.getImageData(x, y, w, h).data) hash = (Math.imul(hash, 31) + part) | 0;
    return hash;
  });
}"""


class Explorer:
    """One tab with what it complained of and whom it asked; requests that leave this computer are stopped."""

    def __init__(self, browser, address, size="laptop"):
        self.address, self.complaints, self.strangers = address, [], []
        self.is_holding, self.held = False, []
        width, height = SIZES[size]
        self.context = browser.new_context(viewport={"width": width, "height": height}, has_touch=size == "phone")
        self.context.route("**/*", self.check)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(address)
        self.settle()

    def check(self, route):
        if self.is_holding and asks_for_the_chosen_method(route.request):
            self.held.append(route)
        elif route.request.url.startswith((self.address.split("#")[0], "blob:")):
            route.continue_()
        else:
            self.strangers.append(route.request.url)
            route.abort()

    @contextlib.contextmanager
    def only_moving(self):
        """Hold the requests for the chosen method back, so that on a busy machine, too, the page shows the answers of the fast method."""
        self.is_holding = True
        yield
        self.is_holding = False
        for route in self.held:
            route.continue_()
        self.held.clear()

    def settle(self):
        """Until the chosen method has answered for the latest position."""
        self.page.wait_for_function(
            """() => document.body.dataset.shown && !document.body.dataset.shown.endsWith("moving")
                  && document.getElementById("status").textContent === "" """,
            timeout=60_000,
        )

    def shown(self) -> str:
        return self.page.evaluate("() => document.body.dataset.shown")

    def hashes(self):
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return self.page.eval_on_selector(CANVAS, HASHES)

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def press(self, key: str) -> None:
        """Press a key on the slider and wait until the page shows the answer for the new position. `make bench-explorer` measures the time."""
        before = self.shown()
        self.page.focus("#slider")
        self.page.keyboard.press(key)
        self.page.wait_for_function("(before) => document.body.dataset.shown !== before", arg=before, timeout=20_000)

    def end(self):
        self.context.close()
        assert self.complaints == []
        assert self.strangers == []


def asks_for_the_chosen_method(request) -> bool:
    """Whether this is the request after the slider has come to rest."""
    return '"moving":false' in (request.post_data or "")


def served(**data) -> str:
    """The address of an explorer that runs until the tests end."""
    told, ready = [], threading.Event()

    def on_ready(address):
        told.append(address)
        ready.set()

    threading.Thread(target=serve, kwargs={"open_browser": False, "on_ready": on_ready, **data}, daemon=True).start()
    assert ready.wait(60)
    return told[0]


def counted(graph):
    events = hg.datasets.trips(graph, n_people=4 * graph.n)
    return count_events(graph, events, unit="person", adjacency="add-remove", max_nodes=2, max_per_node=1, max_distance=200)


def new_ledger(folder, epsilon=1.0):
    return Ledger.create(
        folder / "budget.db", dataset="Trips of a day", unit="person", adjacency="add-remove", epsilon=epsilon, delta=1e-6
    )


def drawn(tab, epsilon: str) -> dict:
    """Draw at this epsilon, download, and return the certificate."""
    tab.page.fill("#number", epsilon)
    tab.page.wait_for_function("(shown) => document.body.dataset.shown === shown", arg=f"{epsilon} auto", timeout=30_000)
    tab.page.click("#draw-button")
    tab.page.check("#attest")
    tab.page.click("#go")
    tab.page.wait_for_selector("#download:visible", timeout=30_000)
    tab.settle()
    with tab.page.expect_download() as download:
        tab.page.click("#download")
    with zipfile.ZipFile(io.BytesIO(download.value.path().read_bytes())) as archive:
        assert sorted(archive.namelist()) == ["release/certificate.json", "release/map.csv", "release/report.html"]
        return json.loads(archive.read("release/certificate.json"))
