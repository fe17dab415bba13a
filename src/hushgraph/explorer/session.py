"""What the explorer may show, and when: one class for each of three kinds of data, with one method per request.

A generated city shows everything, since its people do not exist. A published map shows what was published. Private events show
numbers that depend on public inputs alone until a release is drawn: only `PrivateEvents.draw` reads their counts; it charges the
ledger each time, and the release is saved in a folder before it is shown. There is one exception, for the owner: before the first
release `PrivateEvents.check` shows, on request, how the events were counted.
"""

from __future__ import annotations

import io
import math
import tempfile
import threading
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from hushgraph._errors import InputError, InputTypeError, Sentence
from hushgraph._validation import checked_number, checked_seed
from hushgraph.datasets import hotspot_counts
from hushgraph.explorer.guides import PublicGuides
from hushgraph.explorer.regions import RegionRequest, RegionTotals
from hushgraph.explorer.saved_releases import SavedRelease, checked_release_folder, save_release
from hushgraph.explorer.views import ViewRequest, denoised_for, map_view, methods_for
from hushgraph.graphs import Graph, Noisy, as_graph
from hushgraph.plotting import INTERVAL_HALF_WIDTH, checked_metres, drawing_order, pack_graph, window_texts, write_report
from hushgraph.privacy import (
    ADVICE,
    LARGEST_EPSILON,
    PRIVATE,
    BudgetExceeded,
    CountMap,
    EventCheck,
    Ledger,
    LedgerError,
    Release,
    analytic_sigma,
    certificate_with_map,
    check_ledger,
    checked_guarantee,
    composed_epsilon,
    guarantee_in_words,
    plan_release,
    release,
    simulate,
)

MIN_EPSILON, MAX_EPSILON, START_EPSILON = 0.05, LARGEST_EPSILON, 0.5  # of the slider
EVENTS_PER_NODE = 3.0  # in a generated city, as in plan_release
_MAX_PLANS = 500  # in memory
Kind = Literal["generated", "release", "private"]
Json = dict[str, Any]


class RequestRefused(Exception):  # noqa: N818 - an answer to a request, not a failure
    """A request is answered with this status and text; the text is written for the page and holds nothing private."""

    def __init__(self, status: int, text: str):
        super().__init__(text)
        self.status, self.text = status, text


@dataclass(frozen=True)
class DrawRequest:
    """A confirmed request to draw a release; `number` counts the releases of this session, so that a second click draws nothing."""

    epsilon: float
    number: int
    public_graph: bool


@dataclass(frozen=True, kw_only=True)
class PageTexts:
    """What the page says about the map, and what lies beneath it; the arguments of `serve`."""

    title: str | None = None
    label: str = "events"
    unit: str | None = None
    attribution: str | None = None
    metres: float | None = None
    outlines: Any = None

    def __post_init__(self) -> None:
        checked_metres(self.metres)


class Session(Protocol):
    """The answers to the requests of the page; one class for each kind of data."""

    def describe(self) -> Json:
        """Return the graph and everything that the page shows at its start."""
        ...

    def view(self, request: ViewRequest) -> Json:
        """Return maps and numbers at the settings of the page."""
        ...

    def total(self, request: RegionRequest) -> Json:
        """Return the total of a region of the noisy map, with its errors."""
        ...

    def check(self) -> Json:
        """Return how private events were counted, for their owner."""
        ...

    def draw(self, request: DrawRequest) -> Json:
        """Draw a release and return its certificate and the budget."""
        ...

    def download(self, request: ViewRequest) -> bytes:
        """Return the latest release as a zip file."""
        ...

    def report(self, request: ViewRequest) -> bytes:
        """Return the report of the map on the page, the file that `write_report` writes."""
        ...


# ---- a generated city -------------------------------------------------------------------------------------------------


class GeneratedCity:
    """Generated counts on a public graph with simulated noise; the noise of all epsilons is the same draw, scaled."""

    def __init__(
        self,
        graph: Graph,
        *,
        texts: PageTexts | None = None,
        delta: float = 1e-6,
        seed: int = 0,
        guides: Any = None,
    ):
        self.graph, self.texts = _checked_map_graph(graph), _completed(texts, graph, "Generated counts")
        (_, self.delta), self.seed = checked_guarantee(START_EPSILON, delta), checked_seed(seed)
        self.guides = PublicGuides(self.graph, guides)
        self.truth = hotspot_counts(graph, total=EVENTS_PER_NODE * graph.n, seed=seed)
        self.order, self.regions = drawing_order(graph), RegionTotals(self.graph, self.guides)

    def describe(self) -> Json:
        return {
            **_graph_description(self.graph, self.order, "generated", self.texts),
            "guides": self.guides.describe(),
            "delta": self.delta,
            "unit": "person",
            "sensitivity_squared": "1",
        }

    def view(self, request: ViewRequest) -> Json:
        noisy = self._noisy(request.epsilon)
        guarantee = guarantee_in_words(request.epsilon, delta=self.delta)
        return {
            "epsilon": request.epsilon,
            "guarantee": guarantee,
            **_map_view(self.graph, noisy, request, order=self.order, guides=self.guides, truth=self.truth),
        }

    def _noisy(self, epsilon: float) -> Noisy:
        return simulate(self.graph, self.truth, epsilon=epsilon, delta=self.delta, sensitivity_squared=1, seed=self.seed)

    def total(self, request: RegionRequest) -> Json:
        return _region_total(self.regions, self._noisy(request.view.epsilon), request)

    def check(self) -> Json:
        raise RequestRefused(409, "There are no private events here.")

    def draw(self, request: DrawRequest) -> Json:
        raise RequestRefused(409, "This city is generated and its noise simulated: there is nothing to publish.")

    def download(self, request: ViewRequest) -> bytes:
        raise RequestRefused(409, "This city is generated and its noise simulated: there is nothing to publish.")

    def report(self, request: ViewRequest) -> bytes:
        noisy = self._noisy(request.epsilon)
        return report_file(self.graph, noisy, request, self.guides, self.texts, epsilon=request.epsilon)


# ---- a release --------------------------------------------------------------------------------------------------------


class PublishedMap:
    """A published release: its noisy map and the denoised map, or those of each time window."""

    def __init__(self, published: Release, *, texts: PageTexts | None = None, guides: Any = None):
        self.published, self.graph = published, _checked_map_graph(published.graph)
        self.texts = _completed(texts, self.graph, str(published.ledger["dataset"]), published.attribution)
        self.guides = PublicGuides(self.graph, guides, published)
        self.order, self.regions = drawing_order(self.graph), RegionTotals(self.graph, self.guides)

    def describe(self) -> Json:
        return {
            **_graph_description(self.graph, self.order, "release", self.texts),
            "guides": self.guides.describe(),
            "delta": self.published.delta,
            "unit": self.published.unit or "unit",
            "sensitivity_squared": str(self.published.sensitivity_squared),
            "release": _release_summary(self.published),
            "windows": None if self.published.windows is None else window_texts(self.published.windows),
        }

    def view(self, request: ViewRequest) -> Json:
        shown = _map_view(self.graph, self.published, request, order=self.order, guides=self.guides)
        return _guarantee_of(self.published) | shown

    def total(self, request: RegionRequest) -> Json:
        return _region_total(self.regions, self.published, request)

    def check(self) -> Json:
        raise RequestRefused(409, "There are no private events here.")

    def draw(self, request: DrawRequest) -> Json:
        raise RequestRefused(409, "This release is published already; drawing needs the events and their ledger.")

    def download(self, request: ViewRequest) -> bytes:
        raise RequestRefused(409, "This release was opened from its folder; pass on that folder.")

    def report(self, request: ViewRequest) -> bytes:
        return report_file(self.graph, self.published, request, self.guides, self.texts, epsilon=self.published.epsilon)


# ---- private events ---------------------------------------------------------------------------------------------------


class PrivateEvents:
    """Counts of private events with their ledger: numbers only, until a release is drawn and charged."""

    def __init__(
        self,
        counts: CountMap,
        ledger: Ledger | None,
        *,
        texts: PageTexts | None = None,
        not_protected: str | None = None,
        guides: Any = None,
        keep: str | Path | None = None,
        check: Callable[[], EventCheck] | None = None,
        on_release: Callable[[SavedRelease], Any] | None = None,
    ):
        ledger = _checked_ledger(counts, ledger)
        self.release_folder, self._on_release, self._check = checked_release_folder(keep, ledger), on_release, check
        self.graph, self.ledger, self.not_protected = _checked_map_graph(counts.graph), ledger, not_protected
        self.texts = _completed(texts, self.graph, ledger.dataset)
        self.guides = PublicGuides(self.graph, guides)
        self.caps, self.adjacency, self.squared = dict(counts.caps), counts.adjacency, counts.sensitivity_squared
        self.order, self.regions = drawing_order(self.graph), RegionTotals(self.graph, self.guides)
        self.releases: list[Release] = []
        self.saved: list[SavedRelease] = []
        self._counts = counts  # private; only draw() reads them
        self._drawing = threading.Lock()
        self._plans: dict[tuple[Any, ...], Json] = {}

    def describe(self) -> Json:
        budget = self._budget()
        return {
            **_graph_description(self.graph, self.order, "private", self.texts),
            "guides": self.guides.describe(),
            "delta": budget["delta"],
            "unit": self.ledger.unit,
            "sensitivity_squared": str(self.squared),
            "caps": self.caps,
            "budget": budget,
            "draws": len(self.releases),
            "release": _release_summary(self.releases[-1]) if self.releases else None,
            "checkable": self._check is not None,
            **self._saving(),
        }

    def check(self) -> Json:
        """Return how the events were counted, for their owner, before anything is spent: private, and stored nowhere."""
        if self._check is None:
            raise RequestRefused(409, "This program cannot read the events again; use privacy.check_events.")
        if self.releases:
            raise RequestRefused(409, "A release was drawn already. To look at the events again, use hushgraph check.")
        try:
            report = self._check()
        except Exception:  # the text of the error may quote the data
            raise RequestRefused(409, "The events could not be read again; hushgraph check says why.") from None
        return {
            "private": PRIVATE,
            "table": report.table(),
            "units": report.units_in_words(),
            "dropped": [f"{row.place}: {row.reason}" for row in report.dropped],
            "hints": list(report.hints),
            "advice": ADVICE,
        }

    def view(self, request: ViewRequest) -> Json:
        if request.plan:
            return self._planned(request)
        if not self.releases:
            raise RequestRefused(409, "No release has been drawn yet, and nothing else of these events may be shown.")
        latest = self.releases[-1]
        shown = _map_view(self.graph, latest, request, order=self.order, guides=self.guides)
        return {**_guarantee_of(latest), "budget": self._budget(), **shown}

    def total(self, request: RegionRequest) -> Json:
        """Return the total of a region of the latest release: the counts are not read."""
        if not self.releases:
            raise RequestRefused(409, "No release has been drawn yet, and nothing else of these events may be shown.")
        return _region_total(self.regions, self.releases[-1], request)

    def _planned(self, request: ViewRequest) -> Json:
        """Return noise, expected error and cost of a release at this epsilon, from public inputs: the counts are not read.

        Guides are not used: what they say about the counts is not known before a release is drawn, and generated counts do not follow them.
        """
        key = request.epsilon, request.method_now, request.moving
        if key not in self._plans:
            if len(self._plans) > _MAX_PLANS:
                self._plans.clear()
            self._plans[key] = self._plan(request)
        return {**self._plans[key], "budget": self._budget(request.epsilon)}

    def _plan(self, request: ViewRequest) -> Json:
        plan = plan_release(
            self.graph, epsilon=request.epsilon, delta=self.ledger.last_snapshot.delta, adjacency=self.adjacency,
            max_nodes=self.caps["max_nodes"], max_per_node=self.caps["max_per_node"], method=request.method_now,
            n_draws=1 if request.moving else 2,
        )  # fmt: skip
        row = plan.rows[0]
        guarantee = guarantee_in_words(request.epsilon, delta=self.ledger.delta, unit=self.ledger.unit, adjacency=self.adjacency)
        return {
            "epsilon": request.epsilon,
            "guarantee": guarantee,
            "method": request.method_now,
            "settled": not request.moving,
            "sigma": row.sigma,
            "errors": {"noisy": row.sigma, "denoised": row.error_denoised},
            "region": {"nodes": row.smallest_region, "reliable": plan.reliable, "possible": row.smallest_region <= self.graph.n},
        }

    def _budget(self, epsilon: float | None = None) -> Json:
        """Return the budget of the ledger, and what would be spent after one more release at `epsilon`."""
        state = self.ledger.snapshot()
        budget = {**state.budget(), "remaining": state.remaining()}
        if epsilon is not None:
            sigma = analytic_sigma(epsilon=epsilon, delta=state.delta, sensitivity_squared=1)
            total = Fraction(state.mu_squared) + 1 / Fraction(sigma) ** 2
            budget |= {"fits": epsilon <= budget["remaining"], "spent_after": composed_epsilon(total, state.delta)}
        return budget

    def draw(self, request: DrawRequest) -> Json:
        """Charge the ledger, draw one release and save it; the only method that reads the counts."""
        with self._drawing:
            if request.number != len(self.releases) + 1:
                raise RequestRefused(
                    409, "That release was drawn already; each release is requested and charged separately. Reload the page."
                )
            if request.public_graph is not True:
                raise RequestRefused(400, "Please confirm that the streets and the limits were fixed without looking at the data.")
            try:
                published = release(
                    self._counts, epsilon=request.epsilon, delta=self.ledger.last_snapshot.delta, ledger=self.ledger, public_graph=True,
                    not_protected=self.not_protected, attribution=self.texts.attribution,
                )  # fmt: skip
            except BudgetExceeded:
                raise RequestRefused(
                    409, "The budget does not allow this release. Nothing was charged and nothing drawn."
                ) from None
            except LedgerError as error:
                raise RequestRefused(409, str(error)) from None
            self.releases.append(published)
            self.saved.append(save_release(published, self.release_folder, number=len(self.releases)))
            self._save_guided(published, self.saved[-1])
            if self._on_release is not None:
                with suppress(Exception):  # a closed terminal is no reason to hide a release that is charged
                    self._on_release(self.saved[-1])
        return {"draws": len(self.releases), "release": _release_summary(published), "budget": self._budget(), **self._saving()}

    def _save_guided(self, published: Release, saved: SavedRelease) -> None:
        """Write the guided map into the folder of a release that was saved; without it the release is complete, too."""
        if saved.folder is not None:
            with suppress(Exception):
                self.guides.write(saved.folder, published, method="auto", nonnegative=True, integer=False)

    def _saving(self) -> Json:
        """Return the folder for releases, where the latest one was saved, and why not if it was not."""
        latest = self.saved[-1] if self.saved else None
        return {
            "release_folder": str(self.release_folder),
            "saved_in": str(latest.folder) if latest and latest.folder else None,
            "save_error": latest.fault if latest else "",
        }

    def download(self, request: ViewRequest) -> bytes:
        """Return the latest release as a zip file: map.csv (noisy, denoised, expected error, interval), certificate.json and report.html.

        With guides there are also guided.csv, the map that was denoised with them, and guides.json, which names them.
        """
        if not self.releases:
            raise RequestRefused(409, "No release has been drawn yet, and nothing else of these events may be downloaded.")
        archive_bytes = io.BytesIO()
        with tempfile.TemporaryDirectory() as parent:
            latest, settings = self.releases[-1], {"nonnegative": request.nonnegative, "integer": request.integer}
            folder = latest.export(Path(parent) / "release", method=request.method, **settings)
            if request.guides:
                self.guides.write(folder, latest, method=request.method, **settings)
            with zipfile.ZipFile(archive_bytes, "w", zipfile.ZIP_DEFLATED) as archive:
                for path in sorted(folder.iterdir()):
                    archive.write(path, f"release/{path.name}")
        return archive_bytes.getvalue()

    def report(self, request: ViewRequest) -> bytes:
        """Return the report of the latest release, made from the release and public guides alone."""
        if not self.releases:
            raise RequestRefused(409, "No release has been drawn yet, and nothing else of these events may be downloaded.")
        latest = self.releases[-1]
        return report_file(self.graph, latest, request, self.guides, self.texts, epsilon=latest.epsilon)


# ---- shared by all sessions ---------------------------------------------------------------------------------------------


def _map_view(
    graph: Graph, noisy: Noisy, request: ViewRequest, *, order: np.ndarray, guides: PublicGuides, truth: np.ndarray | None = None
) -> Json:
    """Return maps and numbers of a noisy map; that a guide cannot be used on it is answered, since guides and map are public."""
    try:
        return map_view(graph, noisy, request, order=order, guides=guides, truth=truth)
    except InputError as error:
        if not (request.guides and guides.guides):
            raise
        msg = f"The guides cannot be used: {error}. Switch them off here, or start the program without that guide."
        raise RequestRefused(409, msg) from None


def _region_total(regions: RegionTotals, noisy: Noisy, request: RegionRequest) -> Json:
    """Return the total of a region of a noisy map; that a guide cannot be used on it is answered, since guides and map are public."""
    try:
        return regions.answer(noisy, request)
    except InputError as error:
        raise RequestRefused(409, f"The total cannot be computed: {error}.") from None


def _graph_description(graph: Graph, order: np.ndarray, kind: Kind, texts: PageTexts) -> Json:
    """Return graph, texts, methods and slider for the page, with empty entries for what only private events have."""
    return {
        "kind": kind,
        "title": texts.title,
        "label": texts.label,
        "counted": texts.unit or texts.label,
        "credit": texts.attribution or "",
        "nodes": graph.n,
        "edges": graph.n_edges,
        "graph": pack_graph(graph, order, metres=texts.metres, outlines=texts.outlines),
        "methods": methods_for(graph),
        "epsilon": {"min": MIN_EPSILON, "max": MAX_EPSILON, "start": START_EPSILON},
        "budget": None,
        "draws": 0,
        "release": None,
        "windows": None,
        "half_width": INTERVAL_HALF_WIDTH,
    }


def _completed(texts: PageTexts | None, graph: Graph, title: str, attribution: str | None = None) -> PageTexts:
    """Return the texts with a title and the source of the graph, where they were not given."""
    texts = texts or PageTexts()
    return replace(texts, title=texts.title or title, attribution=texts.attribution or attribution or graph.attribution)


def report_file(
    graph: Graph, noisy: Noisy, request: ViewRequest, guides: PublicGuides, texts: PageTexts, *, epsilon: float
) -> bytes:
    """Return the report of a noisy map at the settings of the page: the file that `write_report` writes."""
    result = denoised_for(graph, noisy, replace(request, moving=False), guides)
    certificate = None
    if isinstance(noisy, Release):
        settings = {"nonnegative": request.nonnegative, "integer": request.integer}
        certificate = certificate_with_map(noisy, result, method=result.method, **settings)
    with tempfile.TemporaryDirectory() as folder:
        path = write_report(
            Path(folder) / "report.html", graph, noisy, result, title=texts.title, label=texts.label, unit=texts.unit,
            attribution=texts.attribution, outlines=texts.outlines, certificate=certificate, epsilon=epsilon, metres=texts.metres,
        )  # fmt: skip
        return path.read_bytes()


def _release_summary(published: Release) -> Json:
    """Return what the page shows of a release: its certificate, which is public."""
    return {"epsilon": published.epsilon, "sigma": published.sigma, "certificate": published.certificate}


def _guarantee_of(published: Release) -> Json:
    """Return the epsilon of a release and its guarantee in words."""
    guarantee = guarantee_in_words(published.epsilon, delta=published.delta, unit=published.unit, adjacency=published.adjacency)
    return {"epsilon": published.epsilon, "guarantee": guarantee}


def _checked_map_graph(graph: Graph) -> Graph:
    """Return the graph if a map can be drawn of it."""
    graph = as_graph(graph)
    if graph.coords is None or not graph.n:
        msg = "the explorer draws maps, which need the places of the nodes; build the graph with coords= (one row per node)"
        raise InputError(msg)
    return graph


def _checked_ledger(counts: Any, ledger: Any) -> Ledger:
    """Return the ledger if releases of these counts can be planned and charged to it."""
    if not isinstance(counts, CountMap) or not counts.caps or counts.windows is not None:
        msg = (
            "events must be what privacy.count_events returns for one map, without time windows: with {max_nodes} and {max_per_node}, "
            "from which the explorer plans; release other counts with privacy.release"
        )
        raise InputTypeError(Sentence(msg))
    if not isinstance(ledger, Ledger):
        msg = "private events need {ledger=}, the budget that a release is charged to; make one with {privacy.Ledger.create(...)}"
        raise LedgerError(Sentence(msg))
    check_ledger(counts, ledger)
    checked_guarantee(START_EPSILON, ledger.delta)  # all releases of the page have the delta of the budget
    return ledger


def checked_slider_epsilon(value: Any) -> float:
    """Return epsilon, rounded to the four digits that the page shows, if it is within the range of the slider."""
    try:
        number = checked_number("epsilon", value, "on the slider", least=MIN_EPSILON, most=MAX_EPSILON)
    except ValueError:
        raise RequestRefused(400, f"epsilon must be a number from {MIN_EPSILON:g} to {MAX_EPSILON:g}.") from None
    digits = 3 - math.floor(math.log10(number))
    return min(max(round(number, digits), MIN_EPSILON), MAX_EPSILON)
