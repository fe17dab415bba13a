"""What the explorer may say, and when: three kinds of data, each a plain object that turns a request into an answer.

A generated city shows everything, since nobody lives there. A release shows what was published. Private events show numbers
that depend on public inputs alone, until one release is drawn: their counts are touched by `PrivateEvents.draw` and by
nothing else, which charges the ledger each time, and what it draws is written to a folder before it is shown. One exception is made for
the owner's eyes: before the first release `PrivateEvents.check` shows, on request, what counting made of the events.
"""

from __future__ import annotations

import io
import math
import tempfile
import threading
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from hushgraph._errors import InputError, InputTypeError, Sentence
from hushgraph.app.keeping import Kept, keep_release, keeping_place
from hushgraph.app.packing import checked_metres, drawing_order, pack_graph
from hushgraph.app.view import Wish, methods_for, view
from hushgraph.checks import checked_number, checked_seed
from hushgraph.graph import Graph, checked_graph
from hushgraph.privacy.calibration import analytic_sigma, composed_epsilon
from hushgraph.privacy.check import ADVICE, PRIVATE, EventCheck
from hushgraph.privacy.counting import CountMap
from hushgraph.privacy.guarantee import LARGEST_EPSILON, checked_guarantee, guarantee_in_words
from hushgraph.privacy.ledger import BudgetExceeded, Ledger, LedgerError
from hushgraph.privacy.plan import plan_release
from hushgraph.privacy.release import Release, check_ledger, release, simulate
from hushgraph.signals import hotspot_counts

LEAST_EPSILON, MOST_EPSILON, START = 0.05, LARGEST_EPSILON, 0.5
PER_NODE = 3.0  # events per junction of a generated city, as in plan_release
Kind = Literal["generated", "release", "private"]


class Refused(Exception):  # noqa: N818 - it is an answer, not a fault
    """A request that is answered with an error; its text is written for the page and holds nothing private."""

    def __init__(self, status: int, text: str):
        super().__init__(text)
        self.status, self.text = status, text


@dataclass(frozen=True)
class Order:
    """A confirmed order to draw a release: the `number`-th of this session, so that no click is obeyed twice."""

    epsilon: float
    number: int
    public_graph: bool


class Session(Protocol):
    """What the server needs of a kind of data."""

    def describe(self) -> dict: ...

    def look(self, wish: Wish) -> dict: ...

    def check(self) -> dict: ...

    def draw(self, order: Order) -> dict: ...

    def download(self, wish: Wish) -> bytes: ...


# ---- a generated city -------------------------------------------------------------------------------------------------


class GeneratedCity:
    """Generated counts on a public graph, with simulated noise: the same draw at every epsilon, only its size changes."""

    def __init__(
        self, graph: Graph, *, name: str, label: str = "events", delta: float = 1e-6, seed: int = 0, metres: float | None = None
    ):
        self.metres = checked_metres(metres)
        self.graph, self.name, self.label = _mappable(graph), name, label
        (_, self.delta), self.seed = checked_guarantee(START, delta), checked_seed(seed)
        self.truth = hotspot_counts(graph, total=PER_NODE * graph.n, seed=seed)
        self.order = drawing_order(graph)

    def describe(self) -> dict:
        return {
            **_described(self.graph, self.order, "generated", self.name, self.label, metres=self.metres),
            "delta": self.delta,
            "unit": "person",
            "sensitivity_squared": "1",
        }

    def look(self, wish: Wish) -> dict:
        noisy = simulate(self.graph, self.truth, epsilon=wish.epsilon, delta=self.delta, sensitivity_squared=1, seed=self.seed)
        words = guarantee_in_words(wish.epsilon, delta=self.delta)
        return {"epsilon": wish.epsilon, "guarantee": words, **view(self.graph, noisy, wish, order=self.order, truth=self.truth)}

    def check(self) -> dict:
        raise Refused(409, "There are no private events here.")

    def draw(self, order: Order) -> dict:
        raise Refused(409, "This city is generated and its noise simulated: there is nothing to publish.")

    def download(self, wish: Wish) -> bytes:
        raise Refused(409, "This city is generated and its noise simulated: there is nothing to publish.")


# ---- a release --------------------------------------------------------------------------------------------------------


class PublishedMap:
    """A release that exists: its map, and what denoising makes of it."""

    def __init__(self, published: Release, *, name: str | None = None, label: str = "events", metres: float | None = None):
        if published.windows is not None:
            msg = (
                "the explorer shows one map, and this release has {:,}, one for each time window; "
                "{write_report(path, graph, release, denoise(graph, release))} makes a page of all of them"
            )
            raise InputError(Sentence(msg, len(published.windows) - 1))
        self.published, self.graph, self.metres = published, _mappable(published.graph), checked_metres(metres)
        self.name, self.label = name or str(published.ledger["dataset"]), label
        self.order = drawing_order(self.graph)

    def describe(self) -> dict:
        return {
            **_described(self.graph, self.order, "release", self.name, self.label, metres=self.metres),
            "delta": self.published.delta,
            "unit": self.published.unit or "unit",
            "sensitivity_squared": str(self.published.sensitivity_squared),
            "release": _published(self.published),
        }

    def look(self, wish: Wish) -> dict:
        return _told(self.published) | view(self.graph, self.published, wish, order=self.order)

    def check(self) -> dict:
        raise Refused(409, "There are no private events here.")

    def draw(self, order: Order) -> dict:
        raise Refused(409, "This release is published already; drawing needs the events and their ledger.")

    def download(self, wish: Wish) -> bytes:
        raise Refused(409, "This release was opened from its folder, which is what can be passed on.")


# ---- private events ---------------------------------------------------------------------------------------------------


class PrivateEvents:
    """Counts of private events with their ledger. Numbers only, until a release is drawn and paid for."""

    def __init__(
        self,
        counts: CountMap,
        ledger: Ledger | None,
        *,
        name: str | None = None,
        label: str = "events",
        not_protected: str | None = None,
        attribution: str | None = None,
        metres: float | None = None,
        keep: str | Path | None = None,
        check: Callable[[], EventCheck] | None = None,
        on_release: Callable[[Kept], Any] | None = None,
    ):
        ledger = _checked_ledger(counts, ledger)
        self.keep, self._on_release, self._check = keeping_place(keep, ledger), on_release, check
        self.graph, self.ledger, self.metres = _mappable(counts.graph), ledger, checked_metres(metres)
        self.name, self.label = name or ledger.dataset, label
        self.not_protected, self.attribution = not_protected, attribution
        self.caps, self.adjacency, self.squared = dict(counts.caps), counts.adjacency, counts.sensitivity_squared
        self.order = drawing_order(self.graph)
        self.releases: list[Release] = []
        self.kept: list[Kept] = []
        self._counts = counts  # private; read by draw() alone
        self._one_draw = threading.Lock()
        self._plans: dict[tuple, dict] = {}

    def describe(self) -> dict:
        budget = self._budget()
        return {
            **_described(self.graph, self.order, "private", self.name, self.label, metres=self.metres),
            "delta": budget["delta"],
            "unit": self.ledger.unit,
            "sensitivity_squared": str(self.squared),
            "caps": self.caps,
            "budget": budget,
            "draws": len(self.releases),
            "release": _published(self.releases[-1]) if self.releases else None,
            "checkable": self._check is not None,
            **self._places(),
        }

    def check(self) -> dict:
        """What counting made of the events, for the owner's eyes before anything is spent: private, kept nowhere."""
        if self._check is None:
            raise Refused(409, "The program was started without a way to read the events again; use privacy.check_events.")
        if self.releases:
            raise Refused(409, "A release was drawn already. To look at the events again, use hushgraph check.")
        try:
            found = self._check()
        except Exception:  # its text may come from the data
            raise Refused(409, "The events could not be read again; hushgraph check says why.") from None
        return {
            "private": PRIVATE,
            "table": found.table(),
            "units": found.units_in_words(),
            "dropped": [f"{one.place}: {one.reason}" for one in found.dropped],
            "hints": list(found.hints),
            "advice": ADVICE,
        }

    def look(self, wish: Wish) -> dict:
        if wish.plan:
            return self._planned(wish)
        if not self.releases:
            raise Refused(409, "No release has been drawn yet, and nothing else of these events may be shown.")
        latest = self.releases[-1]
        return {**_told(latest), "budget": self._budget(), **view(self.graph, latest, wish, order=self.order)}

    def _planned(self, wish: Wish) -> dict:
        """Noise, expected error and cost of a release at this epsilon. From public inputs: the counts are not looked at."""
        key = wish.epsilon, wish.method_now, wish.moving
        if key not in self._plans:
            if len(self._plans) > 500:
                self._plans.clear()
            self._plans[key] = self._plan(wish)
        return {**self._plans[key], "budget": self._budget(wish.epsilon)}

    def _plan(self, wish: Wish) -> dict:
        plan = plan_release(
            self.graph, epsilon=wish.epsilon, delta=self.ledger.seen.delta, adjacency=self.adjacency,
            max_nodes=self.caps["max_nodes"], max_per_node=self.caps["max_per_node"], method=wish.method_now,
            n_draws=1 if wish.moving else 2,
        )  # fmt: skip
        row = plan.rows[0]
        words = guarantee_in_words(wish.epsilon, delta=self.ledger.delta, unit=self.ledger.unit, adjacency=self.adjacency)
        return {
            "epsilon": wish.epsilon,
            "guarantee": words,
            "method": wish.method_now,
            "settled": not wish.moving,
            "sigma": row.sigma,
            "errors": {"noisy": row.sigma, "denoised": row.error_denoised},
            "region": {"nodes": row.smallest_region, "reliable": plan.reliable, "possible": row.smallest_region <= self.graph.n},
        }

    def _budget(self, epsilon: float | None = None) -> dict:
        """The ledger's budget, and what would be left of it after one more release at `epsilon`."""
        known = self.ledger.read()
        budget = {**known.budget(), "remaining": known.remaining()}
        if epsilon is not None:
            sigma = analytic_sigma(epsilon=epsilon, delta=known.delta, sensitivity_squared=1)
            total = Fraction(known.mu_squared) + 1 / Fraction(sigma) ** 2
            budget |= {"fits": epsilon <= budget["remaining"], "spent_after": composed_epsilon(total, known.delta)}
        return budget

    def draw(self, order: Order) -> dict:
        """Charge the ledger, draw one release and write it; the only place where the counts are touched."""
        with self._one_draw:
            if order.number != len(self.releases) + 1:
                raise Refused(409, "That release was drawn already; each one is asked for and charged by itself. Reload the page.")
            if order.public_graph is not True:
                raise Refused(400, "Please confirm that the streets and the limits were fixed without looking at the data.")
            try:
                published = release(
                    self._counts, epsilon=order.epsilon, delta=self.ledger.seen.delta, ledger=self.ledger, public_graph=True,
                    not_protected=self.not_protected, attribution=self.attribution,
                )  # fmt: skip
            except BudgetExceeded:
                raise Refused(409, "The budget does not allow this release. Nothing was charged and nothing drawn.") from None
            except LedgerError as error:
                raise Refused(409, str(error)) from None
            self.releases.append(published)
            self.kept.append(keep_release(published, self.keep, number=len(self.releases)))
            if self._on_release is not None:
                with suppress(Exception):  # a terminal that was closed is no reason to hide what is paid for
                    self._on_release(self.kept[-1])
        return {"draws": len(self.releases), "release": _published(published), "budget": self._budget(), **self._places()}

    def _places(self) -> dict:
        """Where releases go, and where the latest one is."""
        latest = self.kept[-1] if self.kept else None
        return {
            "keep": str(self.keep),
            "kept": str(latest.folder) if latest and latest.folder else None,
            "fault": latest.fault if latest else "",
        }

    def download(self, wish: Wish) -> bytes:
        """The latest release as a zip: map.csv (noisy, denoised, expected error) and certificate.json."""
        if not self.releases:
            raise Refused(409, "No release has been drawn yet, and nothing else of these events may be downloaded.")
        packed = io.BytesIO()
        with tempfile.TemporaryDirectory() as parent:
            folder = self.releases[-1].export(
                Path(parent) / "release", method=wish.method, nonnegative=wish.nonnegative, integer=wish.integer
            )
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                for path in sorted(folder.iterdir()):
                    archive.write(path, f"release/{path.name}")
        return packed.getvalue()


# ---- what all of them say ---------------------------------------------------------------------------------------------


def _described(
    graph: Graph, order: np.ndarray, kind: Kind, name: str, label: str, *, metres: float | None = None
) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "label": label,
        "nodes": graph.n,
        "edges": graph.n_edges,
        "graph": pack_graph(graph, order, metres=metres),
        "methods": methods_for(graph),
        "epsilon": {"least": LEAST_EPSILON, "most": MOST_EPSILON, "start": START},
        "budget": None,
        "draws": 0,
        "release": None,
    }


def _published(published: Release) -> dict:
    """What the page says of a release: its certificate, which is public."""
    return {"epsilon": published.epsilon, "sigma": published.sigma, "certificate": published.certificate}


def _told(published: Release) -> dict:
    """Return epsilon of a release and its guarantee in words."""
    words = guarantee_in_words(published.epsilon, delta=published.delta, unit=published.unit, adjacency=published.adjacency)
    return {"epsilon": published.epsilon, "guarantee": words}


def _mappable(graph: Graph) -> Graph:
    if checked_graph(graph).coords is None or not graph.n:
        msg = "the explorer draws maps, which need the places of the nodes; build the graph with coords= (one row per node)"
        raise InputError(msg)
    return graph


def _checked_ledger(counts, ledger) -> Ledger:
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
    checked_guarantee(START, ledger.delta)  # every release of the page has the budget's delta
    return ledger


def checked_epsilon_on_page(value) -> float:
    """epsilon within the page's slider, to four digits: what is shown is what is drawn."""
    try:
        number = checked_number("epsilon", value, "on the slider", least=LEAST_EPSILON, most=MOST_EPSILON)
    except ValueError:
        raise Refused(400, f"epsilon must be a number from {LEAST_EPSILON:g} to {MOST_EPSILON:g}.") from None
    digits = 3 - math.floor(math.log10(number))
    return min(max(round(number, digits), LEAST_EPSILON), MOST_EPSILON)
