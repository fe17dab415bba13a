"""The explorer without a browser: its numbers, what private events may show, one charge one draw, who is answered."""

import asyncio
import errno
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import zipfile
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

import hushgraph as hg
from hushgraph.cli.failures import sentence_of
from hushgraph.datasets import hotspot_counts
from hushgraph.estimators.methods import METHODS
from hushgraph.explorer.computation_queue import ComputationQueue, RequestSuperseded
from hushgraph.explorer.guard import HEADERS, MAX_BODY_BYTES, TOKEN_HEADER, refusal
from hushgraph.explorer.regions import RegionRequest
from hushgraph.explorer.server import (
    FILES,
    STATIC,
    UNEXPECTED,
    application,
    open_session,
    parse_body,
    parse_draw_request,
    parse_region_request,
    parse_view_request,
    serve,
)
from hushgraph.explorer.session import (
    START_EPSILON,
    DrawRequest,
    GeneratedCity,
    PrivateEvents,
    PublishedMap,
    RequestRefused,
    checked_slider_epsilon,
)
from hushgraph.explorer.views import ViewRequest, methods_for, risk_chart
from hushgraph.plotting.report.packing import MAP_FOLDER, MAP_SCRIPTS, drawing_order, pack_interval, pack_values
from hushgraph.privacy import read_release, release, verify_release
from hushgraph.privacy.calibration import analytic_sigma
from hushgraph.privacy.counting import CountMap, count_events, declare_counts
from hushgraph.privacy.ledger.budget import Ledger
from hushgraph.privacy.ledger.chain import LedgerError
from hushgraph.privacy.releases import Release, simulate

from ..support.interrupts import hears_interrupts

TOKEN, PORT = "a-token", 8123
HOST = f"127.0.0.1:{PORT}"
QUICK = {"epsilon": 0.5, "method": "let"}


@pytest.fixture(scope="module")
def graph():
    return hg.datasets.city(600)


@pytest.fixture(scope="module")
def events(graph):
    return hg.datasets.trips(graph, n_people=900)


def counted(graph, events):
    return count_events(graph, events, unit="person", adjacency="add-remove", max_nodes=2, max_per_node=1, max_distance=200)


def new_ledger(folder, epsilon=1.0):
    return Ledger.create(folder / "budget.db", dataset="trips", unit="person", adjacency="add-remove", epsilon=epsilon, delta=1e-6)


@pytest.fixture
def private(graph, events, tmp_path):
    return PrivateEvents(counted(graph, events), new_ledger(tmp_path), not_protected="drivers")


class Page:
    """Asks the application as a page would, in this process."""

    def __init__(self, session):
        self.application = application(session, port=PORT, token=TOKEN)

    def get(self, path, **options):
        return asyncio.run(self.ask("GET", path, **options))

    def post(self, path, **options):
        return asyncio.run(self.ask("POST", path, **options))

    async def ask(self, method, path, *, headers=None, **options):
        transport = httpx.ASGITransport(self.application)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as web:
            return await web.request(method, path, headers={TOKEN_HEADER: TOKEN, **(headers or {})}, **options)


# ---- a generated city ---------------------------------------------------------------------------------------------------


def test_numbers_of_the_city_are_those_of_the_library(graph):
    session = GeneratedCity(graph)
    found = session.view(ViewRequest(0.5, method="sgwt_sure"))
    noisy = simulate(graph, session.truth, epsilon=0.5, delta=1e-6, sensitivity_squared=1, seed=0)
    result = hg.denoise(graph, noisy, method="sgwt_sure", nonnegative=True)
    assert found["sigma"] == analytic_sigma(epsilon=0.5, delta=1e-6, sensitivity=1)
    assert found["errors"]["denoised"] == np.sqrt(result.risk / graph.n)
    assert found["errors"]["actual"] == np.sqrt(np.mean((result.signal - session.truth) ** 2))
    taken = [line["taken"][0] for line in found["risk"]]
    assert np.allclose(taken, np.minimum(result.thresholds / noisy.noise_level, 6.0), atol=1e-4)


@pytest.mark.parametrize("nonnegative", [True, False])
def test_a_slider_at_rest_has_intervals(graph, nonnegative):
    session = GeneratedCity(graph)
    request = ViewRequest(0.5, method="let", nonnegative=nonnegative)
    noisy = simulate(graph, session.truth, epsilon=0.5, delta=1e-6, sensitivity_squared=1, seed=0)
    result = hg.denoise(graph, noisy, method="let", refine=True, nonnegative=nonnegative)
    lower, upper = result.interval(0.9)
    found = session.view(request)
    assert len(found["maps"]) == 1
    assert set(found["maps"][0]) == {"noisy", "denoised", "error", "lower", "upper"}
    step = noisy.noise_level / 64
    expected = pack_interval(result.signal[session.order], lower[session.order], upper[session.order], step=step)
    assert {name: found["maps"][0][name] for name in expected} == expected
    assert found["interval"] == {"level": 0.9, "actual": np.mean((lower <= session.truth) & (session.truth <= upper))}
    moving = session.view(replace(request, moving=True))
    assert moving["interval"] is None
    assert set(moving["maps"][0]) == {"noisy", "denoised"}


def test_less_privacy_means_less_noise_and_less_error(graph):
    session = GeneratedCity(graph)
    errors = [session.view(ViewRequest(epsilon, method="let"))["errors"] for epsilon in (0.5, 1.0, 4.0)]
    for name in ("noisy", "denoised", "actual"):
        values = [error[name] for error in errors]
        assert values == sorted(values, reverse=True)


def test_an_error_that_drowns_in_noise_is_not_shown_as_nothing(graph):
    errors = GeneratedCity(graph).view(ViewRequest(0.1, method="let"))["errors"]
    assert "denoised" not in errors
    assert errors["actual"] < errors["below"] < errors["noisy"]


def test_the_slider_moves_with_a_fast_method_and_rests_with_the_chosen_one(graph):
    session = GeneratedCity(graph)
    moving, resting = (session.view(ViewRequest(0.5, method="auto", moving=moving)) for moving in (True, False))
    assert (moving["method"], moving["settled"]) == ("let", False)
    assert (resting["method"], resting["settled"]) == ("auto", True)
    assert not any(METHODS[ViewRequest(0.5, method=name, moving=True).method_now].is_slow for name in METHODS)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "auto"])
def test_every_method_of_the_page_answers(graph, method):
    found = GeneratedCity(graph).view(ViewRequest(1.0, method=method, refine=False, integer=True))
    assert 0 < found["errors"]["actual"] < found["errors"]["noisy"]
    json.dumps(found, allow_nan=False)


SOUTH_WEST = ((-0.1, -0.1), (0.5, -0.1), (0.5, 0.5), (-0.1, 0.5))


def test_totals_of_outlined_regions_are_those_of_the_library(graph):
    session = GeneratedCity(graph)
    found = session.total(RegionRequest(ViewRequest(0.5, method="let"), SOUTH_WEST))
    noisy = simulate(graph, session.truth, epsilon=0.5, delta=1e-6, sensitivity_squared=1, seed=0)
    places = graph.coords - graph.coords.min(axis=0)
    inside = (places < 0.5 * np.ptp(graph.coords, axis=0).max()).all(axis=1)
    expected = hg.denoise(graph, noisy, method="let", refine=True, nonnegative=True).total(inside)
    assert found["nodes"] == inside.sum() > 30
    assert (found["total"], found["se"]) == (expected.value, expected.se)
    assert (found["lower"], found["upper"]) == expected.interval(0.9)
    again = session.total(RegionRequest(ViewRequest(0.5, method="let"), ((5, 5), (6, 5), (6, 6))))
    assert again["nodes"] == 0


def test_totals_of_private_events_come_from_the_release_alone(private):
    request = RegionRequest(ViewRequest(0.5, method="let", plan=False), SOUTH_WEST)
    with pytest.raises(RequestRefused, match="No release has been drawn yet"):
        private.total(request)
    private.draw(DrawRequest(0.5, 1, True))
    object.__setattr__(private, "_counts", None)  # nothing reads them
    found = private.total(request)
    inside = private.regions.places.max(axis=1) < 0.5
    assert found["noisy"] == pytest.approx(private.releases[0].total(inside).estimate)
    assert found["noisy_se"] == pytest.approx(private.releases[0].total(inside).standard_error)


@pytest.mark.parametrize(
    "ring",
    [
        None,
        [],
        [[0, 0], [1, 1]],
        [[0, 0], [1, 1], [1]],
        [[0, 0], [1, 1], ["1", 2]],
        [[0, 0], [1, 1], [float("nan"), 2]],
        [[0, 0]] * 151,
    ],
)
def test_odd_regions_are_refused(graph, ring):
    with pytest.raises(RequestRefused, match="3 to 150 corners"):
        parse_region_request({**QUICK, "ring": ring})


def test_a_region_travels_in_one_request(graph):
    ring = [[round(0.5 + 0.4 * np.cos(t), 5), round(0.5 + 0.4 * np.sin(t), 5)] for t in np.linspace(0, 6.2, 120)]
    settings = {
        "method": "let",
        "rule": "james_stein",
        "refine": False,
        "nonnegative": True,
        "integer": False,
        "guides": True,
        "plan": True,
    }
    asked = json.dumps({"epsilon": 0.1234, **settings, "ring": ring}).encode()
    assert len(asked) <= MAX_BODY_BYTES
    answer = Page(GeneratedCity(graph)).post("/api/total", content=asked)
    assert answer.status_code == 200
    assert answer.json()["lower"] <= answer.json()["total"] <= answer.json()["upper"]


def test_the_city_is_not_published(graph):
    session = GeneratedCity(graph)
    for act in (lambda: session.draw(DrawRequest(0.5, 1, True)), lambda: session.download(ViewRequest(0.5))):
        with pytest.raises(RequestRefused, match="nothing to publish"):
            act()


def test_risk_charts_have_their_dots_at_the_minimum(graph):
    noisy = simulate(graph, hg.hotspot_counts(graph, total=2000), epsilon=1, delta=1e-6, sensitivity=1, seed=0)
    for line in risk_chart(graph, noisy):
        assert len(line["threshold"]) == len(line["risk"]) <= 100
        assert line["taken"][1] <= min(line["risk"]) + 1e-5


@pytest.mark.parametrize(("epsilon", "words"), [(0.5, "nearly the same map"), (2.0, "but not strongly"), (9.0, "hardly protects")])
def test_the_server_says_what_an_epsilon_protects(graph, private, epsilon, words):
    for session in (GeneratedCity(graph), private):
        assert words in session.view(ViewRequest(epsilon, method="let", moving=True))["guarantee"]


def test_budgets_with_a_large_delta_are_not_opened(graph, events, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"at most 0\.001"):
        GeneratedCity(graph, delta=0.01)
    ledger = new_ledger(tmp_path)
    monkeypatch.setattr(Ledger, "delta", 0.01)  # older versions made such budgets
    with pytest.raises(ValueError, match=r"at most 0\.001"):
        PrivateEvents(counted(graph, events), ledger)


def test_methods_that_cannot_be_used_are_not_offered():
    names = [method["name"] for method in methods_for(hg.Graph.from_edges([(0, 1)], n=300))]
    assert "counts" not in names
    assert "auto" in names


# ---- private events -----------------------------------------------------------------------------------------------------


def everything_before_the_draw(session) -> str:
    """All answers that the page can get out of a session without drawing, as text."""
    wishes = [ViewRequest(epsilon, method="let", moving=moving) for epsilon in (0.2, 0.5) for moving in (True, False)]
    found = [session.describe(), *(session.view(wish) for wish in wishes)]
    for act in (
        lambda: session.view(ViewRequest(0.5, plan=False)),
        lambda: session.download(ViewRequest(0.5)),
        lambda: session.report(ViewRequest(0.5)),
        lambda: session.draw(DrawRequest(0.5, 2, True)),
        lambda: session.draw(DrawRequest(0.5, 1, False)),
        lambda: session.draw(DrawRequest(5.0, 1, True)),
    ):
        with pytest.raises(RequestRefused) as refused:
            act()
        found.append({"status": refused.value.status, "text": refused.value.text})
    return json.dumps(found, sort_keys=True)


def test_neighbouring_data_give_the_same_answers_before_the_draw(graph, events, tmp_path):
    """The whole data, without one person, and none at all: byte for byte the same, so nothing before the draw is private."""
    busiest = max(set(events["person"].tolist()) - {""}, key=events["person"].tolist().count)
    kept = events["person"] != busiest
    without = {name: column[kept] for name, column in events.items()}
    empty = {name: column[:0] for name, column in events.items()}
    answers = []
    for name, data in {"all": events, "without": without, "empty": empty}.items():
        (tmp_path / name).mkdir()
        answers.append(
            everything_before_the_draw(PrivateEvents(counted(graph, data), new_ledger(tmp_path / name), keep=tmp_path / "kept"))
        )
    assert answers[0] == answers[1] == answers[2]


def test_a_map_of_counts_would_be_noticed(graph, private):
    """The control of the test above: after the draw answers do hold the map."""
    before = everything_before_the_draw(private)
    private.draw(DrawRequest(0.5, 1, True))
    assert '"maps"' not in before
    assert "maps" in private.view(ViewRequest(0.5, method="let", plan=False))


def test_the_report_of_the_page_is_that_of_the_release(graph, private, tmp_path):
    """The bytes of the file that write_report writes for the published map: nothing of the session goes into it."""
    private.draw(DrawRequest(0.5, 1, True))
    page = private.report(ViewRequest(0.5, method="sgwt_sure", plan=False)).decode()
    published = private.releases[-1]
    result = hg.denoise(graph, published, method="sgwt_sure", nonnegative=True)
    path = hg.plotting.write_report(
        tmp_path / "report.html",
        graph,
        published,
        result,
        title=published.ledger["dataset"],
        label="events",
        certificate=hg.privacy.certificate_with_map(published, result, method="sgwt_sure", nonnegative=True, integer=False),
        epsilon=published.epsilon,
    )
    no_times = [re.sub(r"Seconds</th><td>.*?</td>", "", text) for text in (page, path.read_text(encoding="utf-8"))]
    assert no_times[0] == no_times[1]


def test_the_slider_never_reads_the_counts(private, monkeypatch):
    def refuse(self, name):
        raise AssertionError

    monkeypatch.setattr(CountMap, "__getattribute__", refuse)
    private.describe()
    private.view(ViewRequest(0.4, method="let", moving=True))
    with pytest.raises(AssertionError):
        private.draw(DrawRequest(0.5, 1, True))


def test_the_plan_is_that_of_plan_release(private, graph):
    found = private.view(ViewRequest(0.5, method="let"))
    assert found["sigma"] == analytic_sigma(epsilon=0.5, delta=1e-6, sensitivity_squared=2)
    assert found["errors"]["denoised"] < found["errors"]["noisy"]
    assert found["budget"]["fits"]
    assert found["budget"]["spent_after"] == pytest.approx(0.5, rel=1e-9)
    assert "maps" not in found
    assert "risk" not in found


def test_one_charge_one_draw_and_the_next_is_charged_again(private):
    first = private.draw(DrawRequest(0.5, 1, True))
    assert len(private.ledger) == 3  # its creation, the charge and the draw
    with pytest.raises(RequestRefused, match="drawn already"):
        private.draw(DrawRequest(0.5, 1, True))  # a second click, or another window
    assert len(private.ledger) == 3
    second = private.draw(DrawRequest(0.3, 2, True))
    assert len(private.ledger) == 5
    assert second["budget"]["spent"] > first["budget"]["spent"] >= 0.49
    assert not np.array_equal(private.releases[0].values, private.releases[1].values)


def test_a_draw_beyond_the_budget_charges_and_draws_nothing(private):
    with pytest.raises(RequestRefused, match="budget does not allow"):
        private.draw(DrawRequest(2.0, 1, True))
    assert len(private.ledger) == 1
    assert not private.releases
    assert not private.view(ViewRequest(2.0, method="let", moving=True))["budget"]["fits"]
    private.draw(DrawRequest(0.5, 1, True))  # the number was not used up


def test_the_download_is_the_release_with_its_certificate(private, graph):
    private.draw(DrawRequest(0.5, 1, True))
    with zipfile.ZipFile(io.BytesIO(private.download(ViewRequest(0.5, method="let")))) as archive:
        assert sorted(archive.namelist()) == ["release/certificate.json", "release/map.csv", "release/report.html"]
        certificate = json.loads(archive.read("release/certificate.json"))
        head = archive.read("release/map.csv").decode().splitlines()[0]
    private.ledger.verify(certificate)
    assert head == "node,x,y,noisy,denoised,expected_error,lower,upper"
    assert (certificate["epsilon"], certificate["not_protected"], certificate["denoised"]["method"]) == (0.5, "drivers", "let")


# ---- guides ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guides(graph):
    truth, rng = hotspot_counts(graph, total=3.0 * graph.n, seed=0), np.random.default_rng(2)
    years = [simulate(graph, rng.poisson(truth), epsilon=1, delta=1e-6, sensitivity=1, seed=seed) for seed in (5, 6, 7)]
    return {"pickups 2025": years, "weather": rng.normal(0, 1, graph.n)}


@pytest.mark.parametrize("method", ["let", "auto"])
def test_guided_views_are_those_of_the_library(graph, guides, method):
    session = GeneratedCity(graph, guides=guides)
    noisy = simulate(graph, session.truth, epsilon=2.0, delta=1e-6, sensitivity_squared=1, seed=0)
    refine = True if METHODS[method].takes_refine else None
    result = hg.denoise(graph, noisy, method=method, nonnegative=True, refine=refine, guides=guides)
    answers = [session.view(ViewRequest(2.0, method=method, guides=use)) for use in (True, True, False)]
    assert answers[0] == answers[1]  # the second time with guides that were denoised before
    assert answers[0]["errors"]["denoised"] == result.typical_error.size
    (first, *_), accounts = answers[0]["guides"]["each"], result.details["guides"]
    assert (first["name"], first["removed"]) == ("pickups 2025", accounts["pickups 2025"]["risk_removed"])
    assert first["made_from"].startswith("3 noisy maps, combined (noise")
    assert answers[0]["guides"]["removed"] == sum(account["risk_removed"] for account in accounts.values()) > 0.1
    assert session.guides.accounts(result) == accounts
    assert answers[2] == GeneratedCity(graph).view(ViewRequest(2.0, method=method))
    assert answers[2]["guides"] is None


def test_guides_of_the_page_have_names_and_methods_say_whether_they_take_them(graph, guides):
    session = GeneratedCity(graph, guides=guides)
    described = session.describe()
    assert [guide["name"] for guide in described["guides"]] == ["pickups 2025", "weather"]
    assert {method["name"]: method["guides"] for method in described["methods"]}["sgwt_sure"] is False
    assert session.view(ViewRequest(0.5, method="sgwt_sure"))["guides"] is None
    assert GeneratedCity(graph).describe()["guides"] == []


def test_a_moving_slider_does_not_wait_for_guides(graph, guides):
    session, plain = GeneratedCity(graph, guides=guides), GeneratedCity(graph)
    for method in ("auto", "let"):
        moving = ViewRequest(0.5, method=method, moving=True)
        assert session.view(moving) == {**plain.view(moving), "settled": False}
    moving = ViewRequest(0.5, method="sgwt_sure", moving=True)  # takes no guides
    assert session.view(moving) == plain.view(moving)


def test_guides_are_denoised_once_for_each_method(graph, guides, monkeypatch):
    session, count = GeneratedCity(graph, guides=guides), []
    monkeypatch.setattr(
        "hushgraph.explorer.guides.denoise", lambda *given, **named: count.append(named) or hg.denoise(*given, **named)
    )
    for request in ("let", 0.5), ("let", 1.0), ("counts", 0.5), ("let", 0.5):
        session.view(ViewRequest(request[1], method=request[0]))
    assert [named["method"] for named in count] == ["let", "counts"]


def test_guides_that_hold_the_noise_of_the_map_are_refused(graph, events, tmp_path):
    published = release(counted(graph, events), epsilon=0.5, delta=1e-6, ledger=new_ledger(tmp_path), public_graph=True)
    with pytest.raises(ValueError, match="the same map"):
        PublishedMap(published, guides={"again": published})
    own = hg.denoise(graph, published, method="let", nonnegative=True)
    page = Page(PublishedMap(published, guides={"smooth": own.signal}))  # found only while it is used
    answer = page.post("/api/view", json={**QUICK, "refine": False})
    assert answer.status_code == 409
    assert answer.json()["error"].startswith("The guides cannot be used: the guide 'smooth' is the denoised map")
    assert page.post("/api/view", json={**QUICK, "guides": False}).status_code == 200
    assert page.post("/api/view", json={**QUICK, "guides": 1}).status_code == 400


def test_a_plan_does_not_use_guides(graph, events, guides, tmp_path, private):
    guided = PrivateEvents(counted(graph, events), private.ledger, guides=guides)
    plain, planned = (session.view(ViewRequest(0.5, method="let")) for session in (private, guided))
    assert plain == planned


def test_guided_releases_are_saved_and_downloaded_with_their_guides(graph, events, guides, tmp_path):
    ledger = new_ledger(tmp_path)
    session = PrivateEvents(counted(graph, events), ledger, guides=guides)
    folder = Path(session.draw(DrawRequest(0.5, 1, True))["saved_in"])
    files = ["certificate.json", "guided.csv", "guides.json", "map.csv", "report.html"]
    assert sorted(path.name for path in folder.iterdir()) == files
    assert verify_release(folder, graph, ledger=ledger).ok
    view = session.view(ViewRequest(0.5, method="let", refine=False, plan=False))
    with zipfile.ZipFile(io.BytesIO(session.download(ViewRequest(0.5, method="let")))) as archive:
        assert sorted(archive.namelist()) == [f"release/{name}" for name in files]
        facts = json.loads(archive.read("release/guides.json"))
        archive.extractall(tmp_path / "zip")
    assert (facts["denoised"]["method"], facts["removed"]) == ("let", view["guides"]["removed"])
    assert len(facts["guides"]["pickups 2025"]["sha256"]) == 3
    result = hg.denoise(graph, session.releases[0], method="let", nonnegative=True, guides=guides)
    table = tmp_path / "zip" / "release" / "guided.csv"
    columns = hg.read_signal(table, graph, columns=["denoised", "expected_error", "lower", "upper"])
    assert np.array_equal(columns.T, [result.signal, result.expected_error(), *result.interval(0.9)])
    assert hg.read_signal(table, graph).shape == (graph.n,)  # what goes with the map is left out
    for request in ViewRequest(0.5, method="let", guides=False), ViewRequest(0.5, method="sgwt_sure"):
        with zipfile.ZipFile(io.BytesIO(session.download(request))) as archive:
            assert sorted(archive.namelist()) == ["release/certificate.json", "release/map.csv", "release/report.html"]


def test_a_guided_map_that_fails_does_not_lose_the_release(graph, events, guides, tmp_path, monkeypatch):
    session = PrivateEvents(counted(graph, events), new_ledger(tmp_path), guides=guides)
    monkeypatch.setattr("hushgraph.explorer.guides.write_signal", lambda *_: 1 / 0)
    drawn = session.draw(DrawRequest(0.5, 1, True))
    assert sorted(path.name for path in Path(drawn["saved_in"]).iterdir()) == ["certificate.json", "map.csv", "report.html"]


# ---- releases are kept ---------------------------------------------------------------------------------------------------


def test_a_release_is_in_its_folder_before_it_is_shown(private, graph, tmp_path):
    assert not private.release_folder.exists()
    assert private.describe()["release_folder"] == str(tmp_path / "hushgraph-releases")
    found = private.draw(DrawRequest(0.5, 1, True))
    folder = tmp_path / "hushgraph-releases" / "release-1"
    assert (found["saved_in"], found["save_error"]) == (str(folder), "")
    assert np.array_equal(read_release(folder, graph).values, private.releases[0].values)
    private.ledger.verify(json.loads((folder / "certificate.json").read_text()))
    assert private.describe()["saved_in"] == str(folder)  # after a reload, too
    assert [path.name for path in private.release_folder.iterdir()] == ["release-1"]  # no draft is left


def test_kept_releases_replace_nothing(graph, events, tmp_path):
    kept = tmp_path / "mine"
    (kept / "release-1").mkdir(parents=True)
    (kept / "release-3").write_text("a file of that name")
    session = PrivateEvents(counted(graph, events), new_ledger(tmp_path), keep=kept)
    places = [session.draw(DrawRequest(0.2, number, True))["saved_in"] for number in (1, 2)]
    assert places == [str(kept / "release-2"), str(kept / "release-4")]
    assert list((kept / "release-1").iterdir()) == []
    assert (kept / "release-3").read_text() == "a file of that name"


def test_a_name_that_another_program_takes_meanwhile_is_left_alone(private, monkeypatch):
    usual, theirs = Release.export, private.release_folder / "release-1"

    def slow(self, folder, **options):
        if not theirs.exists():
            theirs.mkdir(parents=True)
            (theirs / "theirs").touch()
        return usual(self, folder, **options)

    monkeypatch.setattr(Release, "export", slow)
    assert private.draw(DrawRequest(0.5, 1, True))["saved_in"] == str(private.release_folder / "release-2")
    assert [path.name for path in theirs.iterdir()] == ["theirs"]


@pytest.mark.parametrize("fault", ["full disk", "a file in the way", "no memory"])
def test_a_release_that_cannot_be_saved_is_shown_and_can_be_downloaded(private, graph, monkeypatch, fault):
    said = {"full disk": "No space left on device", "a file in the way": "File exists", "no memory": "the files could not be made"}
    told = []
    private._on_release = told.append
    with monkeypatch.context() as broken:
        if fault == "a file in the way":
            private.release_folder.write_text("")
        elif fault == "full disk":

            def full(descriptor):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            broken.setattr("hushgraph.privacy.publication.os.fsync", full)
        else:

            def short(*args, **options):
                raise MemoryError("p041273 was at node 17")

            broken.setattr("hushgraph.privacy.publication.denoise", short)
        found = private.draw(DrawRequest(0.5, 1, True))
    assert (found["draws"], found["saved_in"], found["save_error"]) == (1, None, said[fault])
    assert "download it" in str(told[0])
    assert len(private.ledger) == 3
    assert "maps" in private.view(ViewRequest(0.5, method="let", plan=False))
    assert list(private.release_folder.glob("*")) == []
    with zipfile.ZipFile(io.BytesIO(private.download(ViewRequest(0.5, method="let")))) as archive:
        private.ledger.verify(json.loads(archive.read("release/certificate.json")))


def test_places_where_nothing_can_be_kept_are_refused_before_any_charge(graph, events, tmp_path):
    (tmp_path / "file").write_text("")
    ledger = new_ledger(tmp_path)
    for wrong in (tmp_path / "file", tmp_path / "file" / "kept"):
        with pytest.raises(NotADirectoryError, match="keep="):
            open_session(events=counted(graph, events), ledger=ledger, keep=wrong)
    with pytest.raises(ValueError, match="keep="):
        open_session(graph=graph, keep=tmp_path)
    assert len(ledger) == 1


ENDING = """
import sys, time
import hushgraph as hg
from hushgraph.explorer.server import serve
from hushgraph.privacy.ledger.budget import Ledger; from hushgraph.privacy.counting import count_events
from hushgraph.privacy.releases import Release
usual = Release.export
def slow(self, folder, **options):
    print("drawing", flush=True)
    time.sleep(1.5)
    return usual(self, folder, method="let")
Release.export = slow
graph = hg.datasets.city(300)
counts = count_events(graph, hg.datasets.trips(graph, n_people=300), unit="person", adjacency="add-remove", max_nodes=2, max_per_node=1)
ledger = Ledger.create(sys.argv[1], dataset="trips", unit="person", adjacency="add-remove", epsilon=1, delta=1e-6)
try:
    serve(events=counts, ledger=ledger, open_browser=False, on_ready=lambda address: print(address, flush=True))
except KeyboardInterrupt:
    print("ended", flush=True)
"""


def test_ctrl_c_while_a_release_is_on_its_way_does_not_lose_it(tmp_path):
    command = [sys.executable, "-c", ENDING, str(tmp_path / "budget.db")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hears_interrupts
    ) as process:
        try:
            url, token = process.stdout.readline().split("#token=")
            order = {"epsilon": 0.5, "number": 1, "public_graph": True}
            headers = {TOKEN_HEADER: token.strip()}

            def draw():
                with httpx.Client(base_url=url, transport=httpx.HTTPTransport(retries=20)) as web, suppress(httpx.HTTPError):
                    web.post("/api/draw", json=order, headers=headers, timeout=60)

            drawing = threading.Thread(target=draw)
            drawing.start()
            assert process.stdout.readline() == "drawing\n"
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
            drawing.join()
        finally:
            process.kill()
    folder = tmp_path / "hushgraph-releases" / "release-1"
    assert out.splitlines() == [f"Release 1 is in {folder}.", "ended"]
    Ledger.open(tmp_path / "budget.db").verify(json.loads((folder / "certificate.json").read_text()))


# ---- afterwards ---------------------------------------------------------------------------------------------------------


def test_what_is_shown_after_the_draw_comes_from_the_release_alone(private, graph):
    private.draw(DrawRequest(0.5, 1, True))
    shown = private.view(ViewRequest(3.0, method="let", plan=False))
    published = PublishedMap(private.releases[0]).view(ViewRequest(3.0, method="let"))
    assert shown["epsilon"] == 0.5
    assert {name: shown[name] for name in published} == published


@pytest.mark.parametrize("fault", ["declared", "windows", "no ledger", "other adjacency", "plain"])
def test_private_data_that_cannot_be_planned_for_is_refused(graph, events, tmp_path, fault):
    ledger = new_ledger(tmp_path)
    counts = counted(graph, events)
    if fault == "declared":
        counts = declare_counts(graph, np.zeros(graph.n, int), unit="person", adjacency="add-remove", sensitivity=1)
    elif fault == "windows":
        edges = ["2026-03-02", "2026-03-03"]
        counts = count_events(
            graph, events, unit="person", adjacency="add-remove", time="time", windows=edges, max_cells=1, max_per_cell=1
        )
    elif fault == "other adjacency":
        counts = count_events(graph, events, unit="person", adjacency="change-one", max_nodes=1, max_per_node=1)
    elif fault == "plain":
        counts = events
    with pytest.raises((TypeError, LedgerError)):
        open_session(events=counts, ledger=None if fault == "no ledger" else ledger)


# ---- opening a session --------------------------------------------------------------------------------------------------


def test_sessions_by_what_is_given(graph, events, tmp_path):
    ledger = new_ledger(tmp_path)
    published = release(counted(graph, events), epsilon=0.5, delta=1e-6, ledger=ledger, public_graph=True)
    folder = published.export(tmp_path / "out", method="let")
    assert isinstance(open_session(graph=graph), GeneratedCity)
    assert isinstance(open_session(release=published), PublishedMap)
    assert isinstance(open_session(release=folder, graph=graph), PublishedMap)
    assert isinstance(open_session(events=counted(graph, events), ledger=ledger), PrivateEvents)
    for wrong in (
        {"release": folder},
        {"ledger": ledger},
        {"release": published, "events": counted(graph, events)},
        {"graph": hg.datasets.path(200)},
    ):
        with pytest.raises(ValueError):
            open_session(**wrong)


def test_a_published_map_draws_nothing(graph, events, tmp_path):
    published = release(counted(graph, events), epsilon=0.5, delta=1e-6, ledger=new_ledger(tmp_path), public_graph=True)
    session = PublishedMap(published)
    with pytest.raises(RequestRefused):
        session.draw(DrawRequest(0.5, 1, True))
    assert session.describe()["release"]["certificate"] == json.loads(json.dumps(published.certificate))
    assert session.view(ViewRequest(5.0, method="let"))["epsilon"] == 0.5


def test_a_release_over_windows_has_a_map_for_each(graph, events, tmp_path):
    edges = ["2026-03-02", "2026-03-03", "2026-03-04"]
    bounds = {"time": "time", "windows": edges, "max_cells": 1, "max_per_cell": 1}
    counts = count_events(graph, events, unit="person", adjacency="add-remove", **bounds)
    published = release(counts, epsilon=0.5, delta=1e-6, ledger=new_ledger(tmp_path), public_graph=True)
    session = open_session(release=published)
    start = session.describe()
    assert [text["spoken"] for text in start["windows"]] == ["Mon 2 March", "Tue 3 March"]
    shown = session.view(ViewRequest(0.5, method="let"))
    assert shown["risk"] is None
    result = hg.denoise(graph, published, method="let", nonnegative=True, refine=True)
    order, step = drawing_order(graph), published.noise_level / 64
    for k, parts in enumerate(shown["maps"]):
        assert parts["noisy"] == pack_values(np.asarray(published.values, dtype=float)[order, k], step=step)
        assert parts["denoised"] == pack_values(result.signal[order, k], step=step)
        assert parts["error"] == pack_values(result.expected_error()[order, k], step=step)
    assert len(shown["maps"]) == 2
    assert all(set(parts) == {"noisy", "denoised"} for parts in session.view(ViewRequest(0.5, moving=True))["maps"])
    with pytest.raises(RequestRefused, match="for one signal"):
        session.total(RegionRequest(ViewRequest(0.5, method="let"), ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0))))
    assert b"Tue 3 March" in session.report(ViewRequest(0.5, method="let"))


def test_a_port_that_is_taken_is_said_to_be(graph):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} is taken by another program; leave port= out") as refused:
            serve(graph=graph, port=port, open_browser=False)
    assert sentence_of(refused.value, "explore") == (
        f"port {port} is taken by another program; leave --port out, and a free one is chosen",
        2,
    )


@pytest.mark.parametrize("wrong", [{"host": "0.0.0.0"}, {"port": 70_000}, {"port": True}])
def test_the_explorer_serves_this_computer_only(wrong):
    with pytest.raises(ValueError):
        serve(open_browser=False, **wrong)


SERVING = """
import sys
import hushgraph as hg
from hushgraph.explorer import connections
from hushgraph.explorer.server import serve
connections.HEAD_SECONDS = float(sys.argv[1])
serve(graph=hg.datasets.city(100), open_browser=False, on_ready=lambda address: print(address, flush=True))
"""


@contextmanager
def serving(*, head_seconds: float):
    """Port and token of an explorer in a process of its own."""
    command = [sys.executable, "-c", SERVING, str(head_seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            url, token = process.stdout.readline().split("#token=")
            port = int(url.rstrip("/").rsplit(":", 1)[1])
            with httpx.Client(base_url=url, transport=httpx.HTTPTransport(retries=20)) as web:
                assert web.get("/").status_code == 200
            yield port, token.strip()
        finally:
            process.kill()


def closed_by_the_server(connection: socket.socket) -> bool:
    connection.settimeout(60)
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        return True
    return True


@pytest.mark.parametrize("sent", [b"", b"GET /api/start HTTP/1.1\r\nHost: 127.0.0.1"])
def test_idle_connections_do_not_shut_the_owner_out(sent):
    """300 connections that send nothing, or half a request, stay open far longer than the owner's request takes."""
    with serving(head_seconds=600) as (port, token), ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(300)]
        for connection in idle:
            with suppress(OSError):  # the oldest may be closed already
                connection.sendall(sent)
        answer = httpx.get(f"http://127.0.0.1:{port}/api/start", headers={TOKEN_HEADER: token}, timeout=60)
        assert answer.status_code == 200
        assert closed_by_the_server(idle[0])  # more than may wait


def test_a_connection_without_a_request_is_closed():
    with serving(head_seconds=0.1) as (port, _), socket.create_connection(("127.0.0.1", port)) as idle:
        idle.sendall(b"GET / HTTP/1.1\r\n")
        assert closed_by_the_server(idle)


def test_only_the_owner_keeps_a_connection():
    """One request after the other on one connection: with the token both are answered, without it the first ends the connection."""

    def answers(port, *, path: str, token: str) -> int:
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{TOKEN_HEADER}: {token}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            received = b""
            connection.sendall(request)
            while b"\r\n\r\n" not in received:
                received += connection.recv(65536)
            with suppress(OSError):
                connection.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                while part := connection.recv(65536):
                    received += part
            return received.count(b"HTTP/1.1 ")

    with serving(head_seconds=600) as (port, token):
        assert answers(port, path="/api/nothing", token=token) == 2
        assert answers(port, path="/api/nothing", token="wrong") == 1
        assert answers(port, path="/static/icon.svg", token="") == 1


@pytest.mark.parametrize("is_sent", [True, False])
def test_a_refusal_is_not_lost_with_the_body_of_its_request(is_sent):
    """The body comes byte by byte, or never: the refusal arrives whole, and the connection is closed, not reset."""
    with serving(head_seconds=600) as (port, _), socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        head = f"POST /api/view HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{TOKEN_HEADER}: wrong\r\nContent-Length: 4000\r\n\r\n"
        connection.sendall(head.encode())
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(4000 if is_sent else 0):
            connection.sendall(b"x")  # some bytes are always on their way
        received = b""
        while part := connection.recv(65536):
            received += part
    assert received.startswith(b"HTTP/1.1 401 ")
    assert received.endswith(b"open the address that the program printed.")


# ---- a look at the events before anything is spent --------------------------------------------------------------------


def checked(graph, events):
    return hg.privacy.check_events(graph, events, unit="person", max_nodes=2, max_per_node=1, max_distance=200)


def test_the_owner_may_look_at_the_events_before_the_first_draw(graph, events, tmp_path):
    session = PrivateEvents(counted(graph, events), new_ledger(tmp_path), check=lambda: checked(graph, events))
    page = Page(session)
    assert page.get("/api/start").json()["checkable"] is True
    found = page.post("/api/check", json={}).json()
    expected = checked(graph, events)
    assert found["private"].startswith("Private, not for publication")
    assert found["table"] == [list(row) for row in expected.table()]
    assert found["units"] == expected.units_in_words()
    assert len(session.ledger) == 1
    assert page.post("/api/check", json={}, headers={TOKEN_HEADER: "wrong"}).status_code == 401
    session.draw(DrawRequest(0.5, 1, True))
    refused = page.post("/api/check", json={})
    assert (refused.status_code, "drawn already" in refused.json()["error"]) == (409, True)


def test_without_a_way_to_read_the_events_nothing_is_offered(graph, private):
    assert private.describe()["checkable"] is False
    for session in (private, GeneratedCity(graph)):
        assert Page(session).post("/api/check", json={}).status_code == 409
    with pytest.raises(ValueError, match="events= is missing"):
        open_session(graph=graph, check=lambda: None)


def test_a_check_that_fails_says_nothing_of_the_data(graph, events, tmp_path):
    def check():
        raise ValueError("SECRET 7351")

    answer = Page(PrivateEvents(counted(graph, events), new_ledger(tmp_path), check=check)).post("/api/check", json={})
    assert answer.status_code == 409
    assert "SECRET" not in answer.text


# ---- requests -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"epsilon": "0.5"},
        {"epsilon": "0,5"},
        {"epsilon": [0, 5]},
        {"epsilon": True},
        {"epsilon": 0.01},
        {"epsilon": 11},
        {"epsilon": 1, "method": "sgwt_exact"},
        {"epsilon": 1, "method": ["auto"]},
        {"epsilon": 1, "rule": "hard"},
        {"epsilon": 1, "moving": 1},
        {"epsilon": 1, "seed": 0},
    ],
)
def test_odd_view_requests_are_refused(asked):
    with pytest.raises(RequestRefused):
        parse_view_request(asked)


@pytest.mark.parametrize(
    "asked",
    [
        {"epsilon": 1},
        {"epsilon": 1, "number": True, "public_graph": True},
        {"epsilon": 1, "number": 0, "public_graph": True},
        {"epsilon": 1, "number": 1, "public_graph": True, "seed": 1},
    ],
)
def test_odd_draw_requests_are_refused(asked):
    with pytest.raises(RequestRefused):
        parse_draw_request(asked)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'"text"', b"[" * 4000])
def test_only_json_objects_are_read(body):
    with pytest.raises(RequestRefused):
        parse_body(body)


def test_epsilon_is_what_the_page_shows():
    assert checked_slider_epsilon(0.123456) == 0.1235
    assert checked_slider_epsilon(10) == 10.0


# ---- one computation at a time ------------------------------------------------------------------------------------------------------------


def test_the_latest_look_wins_and_an_older_one_leaves_nothing_behind(graph):
    """A slow look is given up at many different points; afterwards every answer has the bits it had before."""
    session, queue, given_up = GeneratedCity(graph), ComputationQueue(), []
    alone = session.view(ViewRequest(0.5, method="auto"))

    def slow():
        try:
            queue.run_if_latest(lambda: session.view(ViewRequest(0.7, method="auto")))
        except RequestSuperseded:
            given_up.append(True)

    for pause in (0.0, 0.005, 0.02, 0.05, 0.1):
        older = threading.Thread(target=slow)
        older.start()
        older.join(pause)
        assert queue.run_if_latest(lambda: session.view(ViewRequest(0.5, method="let", moving=True)))["method"] == "let"
        older.join()
    assert len(given_up) >= 3
    assert queue.run_if_latest(lambda: session.view(ViewRequest(0.5, method="auto"))) == alone
    assert sys.getprofile() is None


def test_a_draw_is_never_given_up(private):
    queue, began, go_on = ComputationQueue(), threading.Event(), threading.Event()

    def draw():
        began.set()
        go_on.wait(10)
        return private.draw(DrawRequest(0.5, 1, True))

    drawing = threading.Thread(target=lambda: queue.run_to_end(draw))
    drawing.start()
    began.wait(10)
    looking = threading.Thread(
        target=lambda: queue.run_if_latest(lambda: private.view(ViewRequest(0.5, method="let", moving=True)))
    )
    looking.start()
    go_on.set()
    drawing.join()
    looking.join()
    assert len(private.releases) == 1
    assert len(private.ledger) == 3


# ---- who is answered ----------------------------------------------------------------------------------------------------


def test_every_file_of_the_pages_is_served_or_written_into_reports():
    static = {path.name: path for folder in (STATIC, MAP_FOLDER) for path in folder.iterdir()}
    assert set(static) == {*FILES, "explorer.html", "report.html", "report.css", "report.js"}
    asked = re.findall(r'(?:src|href)="/static/(.*?)"', static["explorer.html"].read_text(encoding="utf-8"))
    assert sorted(asked) == sorted(FILES)
    scripts = [name for name in asked if name.startswith("map") and name.endswith(".js")]
    assert tuple(scripts) == MAP_SCRIPTS  # in the order of loading


def test_the_page_and_its_files_are_served_with_strict_headers(graph):
    page = Page(GeneratedCity(graph))
    for path in ("/", *(f"/static/{name}" for name in FILES), "/api/start"):
        answer = page.get(path)
        assert answer.status_code == 200
        assert all(answer.headers[name] == value for name, value in HEADERS.items())
    assert "unsafe" not in HEADERS["content-security-policy"]
    assert page.get("/static/../server.py").status_code == 404
    assert page.get("/static/server.py").status_code == 404
    assert page.post("/api/view", json=QUICK).json()["method"] == "let"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": f"evil.example:{PORT}"}, 421),
        ({"host": "127.0.0.1:1"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": f"https://{HOST}"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "none"}, 403),
        ({TOKEN_HEADER: ""}, 401),
        ({TOKEN_HEADER: "a-tokeN"}, 401),
        ({TOKEN_HEADER: "ü".encode()}, 401),
    ],
)
def test_strangers_are_refused_and_nothing_is_drawn(private, headers, status):
    order = {"epsilon": 0.5, "number": 1, "public_graph": True}
    page = Page(private)
    answer = page.post("/api/draw", json=order, headers=headers)
    assert answer.status_code == status
    assert all(answer.headers[name] == value for name, value in HEADERS.items())
    assert len(private.ledger) == 1
    assert (
        page.post("/api/draw", json=order, headers={"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"}).json()["draws"]
        == 1
    )


def test_the_page_may_be_opened_by_a_link_but_not_framed_or_fetched():
    def asked(**headers):
        pairs = [("host", HOST), *((name.replace("_", "-"), value) for name, value in headers.items())]
        return refusal("GET", "/", pairs, hosts=(HOST,), token=TOKEN)

    assert asked(sec_fetch_site="cross-site", sec_fetch_mode="navigate", sec_fetch_dest="document") is None
    assert asked(sec_fetch_site="none", sec_fetch_mode="navigate", sec_fetch_dest="document") is None
    assert asked(sec_fetch_site="cross-site", sec_fetch_mode="navigate", sec_fetch_dest="iframe")[0] == 403
    assert asked(sec_fetch_site="cross-site", sec_fetch_mode="no-cors", sec_fetch_dest="script")[0] == 403
    assert refusal("GET", "/", [("host", HOST), ("host", HOST)], hosts=(HOST,), token=TOKEN)[0] == 421
    assert refusal("TRACE", "/", [("host", HOST)], hosts=(HOST,), token=TOKEN)[0] == 405


def test_large_requests_are_refused(graph):
    async def endless():
        for _ in range(100):
            yield b" " * 1000

    page = Page(GeneratedCity(graph))
    assert page.post("/api/view", content=b" " * (MAX_BODY_BYTES + 1)).status_code == 413
    assert page.post("/api/view", content=endless()).status_code == 413  # no length was announced


def test_errors_of_the_server_say_nothing(private, monkeypatch, caplog, capfd):
    def broken(*args, **kwargs):
        raise RuntimeError("p041273 was at node 17")

    monkeypatch.setattr("hushgraph.explorer.session.release", broken)
    page = Page(private)
    answer = page.post("/api/draw", json={"epsilon": 0.5, "number": 1, "public_graph": True})
    assert (answer.status_code, answer.json()) == (500, {"error": UNEXPECTED})
    assert "p041273" not in caplog.text + "".join(capfd.readouterr())


def test_refusals_are_written_for_the_page(private):
    page = Page(private)
    assert page.post("/api/view", content=b"{").status_code == 400
    assert page.post("/api/view", json={**QUICK, "plan": False}).status_code == 409
    assert page.get("/api/view").status_code == 405
    assert page.get("/nothing").status_code == 404
    answer = page.post("/api/draw", json={"epsilon": 5, "number": 1, "public_graph": True})
    assert answer.status_code == 409
    assert "Nothing was charged" in answer.json()["error"]


def test_the_server_runs_and_answers(graph):
    """The real server in a thread: the address holds the token in the fragment, which is never sent."""
    told, ready = [], threading.Event()

    def on_ready(address):
        told.append(address)
        ready.set()

    threading.Thread(target=serve, kwargs={"graph": graph, "open_browser": False, "on_ready": on_ready}, daemon=True).start()
    assert ready.wait(30)
    url, token = told[0].split("#token=")
    headers = {TOKEN_HEADER: token}
    with httpx.Client(base_url=url, transport=httpx.HTTPTransport(retries=20)) as web:
        assert web.get("/").status_code == 200
        assert web.get("/api/start").status_code == 401
        assert web.get("/api/start", headers=headers).json()["nodes"] == graph.n
        assert web.get("/", headers={"host": "evil.example"}).status_code == 421
        assert "server" not in web.get("/").headers


def test_the_first_quick_look_is_done_before_anybody_asks(graph, events, tmp_path, monkeypatch):
    """Kernels are loaded and filters made while the page opens; of private events that is a plan, and the counts stay unread."""
    looks, done, usual = [], threading.Event(), PrivateEvents.view

    def view(self, wish):
        with monkeypatch.context() as closed:
            closed.setattr(CountMap, "__getattribute__", refuse)
            found = usual(self, wish)
        looks.append((wish, found))
        done.set()
        return found

    def refuse(self, name):
        raise AssertionError

    monkeypatch.setattr(PrivateEvents, "view", view)
    ledger = new_ledger(tmp_path)
    data = {"events": counted(graph, events), "ledger": ledger, "open_browser": False, "on_ready": lambda address: None}
    threading.Thread(target=serve, kwargs=data, daemon=True).start()
    assert done.wait(60)
    (wish, found), *others = looks
    assert (wish, others) == (ViewRequest(START_EPSILON, moving=True, plan=True), [])
    assert found["method"] == QUICK["method"]
    assert "maps" not in found
    assert len(ledger) == 1


def test_a_look_is_given_up_when_the_explorer_ends(graph):
    queue, session = ComputationQueue(), GeneratedCity(graph)

    def look():
        queue.cancel()
        return session.view(ViewRequest(0.5, method="auto"))

    with pytest.raises(RequestSuperseded):
        queue.run_if_latest(look)
