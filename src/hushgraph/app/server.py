"""serve: the explorer on 127.0.0.1. Requests are checked here, answered by a session; nothing is logged."""

from __future__ import annotations

import errno
import json
import secrets
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, get_args

from hushgraph._errors import InputError, PathError, Sentence
from hushgraph.app.connections import BACKLOG, connection_class
from hushgraph.app.guard import MOST_BYTES, Guard
from hushgraph.app.keeping import Kept
from hushgraph.app.packing import MAP_SCRIPTS
from hushgraph.app.session import (
    START,
    GeneratedCity,
    Order,
    PrivateEvents,
    PublishedMap,
    Refused,
    Session,
    checked_epsilon_on_page,
)
from hushgraph.app.turns import Superseded, Turns
from hushgraph.app.view import METHODS, PageRule, Wish
from hushgraph.checks import checked_count, choose, is_count
from hushgraph.contents import extra
from hushgraph.datasets.generated import city
from hushgraph.graph import Graph
from hushgraph.privacy.certificate import read_release
from hushgraph.privacy.check import EventCheck
from hushgraph.privacy.counting import CountMap
from hushgraph.privacy.ledger import Ledger
from hushgraph.privacy.release import Release

STATIC = Path(__file__).parent / "static"
FILES = {
    "explorer.js": "text/javascript",
    "explorer_words.js": "text/javascript",
    "risk_chart.js": "text/javascript",
    **dict.fromkeys(MAP_SCRIPTS, "text/javascript"),
    "explorer.css": "text/css",
    "map.css": "text/css",
    "icon.svg": "image/svg+xml",
}
HOSTS = ("127.0.0.1", "localhost")


def web_server():
    """Return the package that serves the page, or raise an error that names the extra; commands ask before they count events."""
    extra("starlette", name="app", purpose="the explorer")
    return extra("uvicorn", name="app", purpose="the explorer")


def serve(
    *,
    graph: Graph | None = None,
    release: Release | str | Path | None = None,
    events: CountMap | None = None,
    ledger: Ledger | None = None,
    check: Callable[[], EventCheck] | None = None,
    keep: str | Path | None = None,
    name: str | None = None,
    label: str = "events",
    not_protected: str | None = None,
    attribution: str | None = None,
    metres: float | None = None,
    seed: int = 0,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = True,
    on_ready: Callable[[str], Any] | None = None,
    on_release: Callable[[Kept], Any] | None = None,
) -> None:
    """Show the explorer in a browser on this computer, until it is interrupted.

    Without data it shows a generated city, or generated counts on `graph`. With `release` it shows what was published. With
    `events` and `ledger` it plans, and draws a release when told to: each is charged, and nothing else of the events is shown.

    Parameters
    ----------
    graph : Graph, optional
        Public, with coordinates. Needed to read a release from its folder.
    release : Release, or the folder of one, optional
    events : CountMap, optional
        Private events, counted by `privacy.count_events` without time windows.
    ledger : Ledger
        The budget that releases of `events` are charged to.
    check : callable, optional
        Reads the events again and returns `privacy.check_events(...)` of them. With it the page offers, until the first release is
        drawn, to show what counting made of the events: private, for whoever has the token of this run.
    keep : path, optional
        The folder that drawn releases are written to at once, as release-1, release-2 and so on; nothing is replaced. Without it
        "hushgraph-releases" beside the ledger's file.
    name : str, optional
        What the map is of, for the page's head.
    label : str
        What is counted: "pickups", say.
    not_protected, attribution : str, optional
        For the certificate, as in `privacy.release`.
    metres : float, optional
        Metres in one unit of planar coordinates, for the maps' scale bar; known for longitudes and latitudes.
    seed : int
        Of the generated city.
    host : {"127.0.0.1", "localhost"}
        The explorer is for this computer only.
    port : int
        0: any that is free.
    open_browser : bool
    on_ready : callable, optional
        Called with the address, which holds the token of this run; printed if not given.
    on_release : callable, optional
        Called after each draw with what became of the release (`number`, `folder`, `fault`); printed if not given.
    """
    choose("host", host, HOSTS)
    port = checked_count("port", port, 0, 65_535)
    uvicorn = web_server()
    session = open_session(
        graph=graph, release=release, events=events, ledger=ledger, check=check, keep=keep, name=name, label=label, not_protected=not_protected,
        attribution=attribution, metres=metres, seed=seed, on_release=_print_kept if on_release is None else on_release,
    )  # fmt: skip
    token, turns = secrets.token_urlsafe(32), Turns()
    with _listening(port) as listener, ExitStack() as stack:
        port = listener.getsockname()[1]
        address = f"http://{host}:{port}/#token={token}"
        (_print_address if on_ready is None else on_ready)(address)
        if open_browser:
            _open_browser(address, stack)
        stack.enter_context(_warming_up(session, turns))
        config = uvicorn.Config(
            application(session, port=port, token=token, turns=turns), log_config=None, access_log=False, server_header=False,
            date_header=False, http=connection_class(), ws="none", backlog=BACKLOG, lifespan="off",
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[listener])


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        reason = "is taken by another program" if error.errno == errno.EADDRINUSE else "cannot be opened on this computer"
        raise PathError(error.errno, Sentence("port {} {}; leave {port=} out, and a free one is chosen", port, reason)) from None


@contextmanager
def _warming_up(session: Session, turns: Turns) -> Iterator[None]:
    """While the page opens, one quick look: kernels are loaded and filters made before the slider moves. The page's own look comes first.

    On private events it is a plan, from public inputs alone.
    """

    def look():
        with suppress(Exception):  # the page will say what is wrong
            turns.latest(lambda: session.look(Wish(START, moving=True, plan=True)))

    warming = threading.Thread(target=look, daemon=True)
    warming.start()
    try:
        yield
    finally:
        turns.end()
        warming.join(2.0)


def open_session(
    *,
    graph: Graph | None = None,
    release: Release | str | Path | None = None,
    events: CountMap | None = None,
    ledger: Ledger | None = None,
    check: Callable[[], EventCheck] | None = None,
    keep: str | Path | None = None,
    name: str | None = None,
    label: str = "events",
    not_protected: str | None = None,
    attribution: str | None = None,
    metres: float | None = None,
    seed: int = 0,
    on_release: Callable[[Kept], Any] | None = None,
) -> Session:
    """The session for what was given; see `serve`."""
    if release is not None and events is not None:
        msg = "give {release=}, a map that was published, or {events=}, private ones to draw a release from; not both"
        raise InputError(Sentence(msg))
    if events is not None:
        return PrivateEvents(
            events, ledger, name=name, label=label, not_protected=not_protected, attribution=attribution, metres=metres, keep=keep,
            check=check, on_release=on_release,
        )  # fmt: skip
    if ledger is not None or keep is not None or check is not None:
        msg = (
            "{ledger=} is charged for releases of {events=}, {keep=} is their folder, and check= looks at them; {events=} is missing: "
            "count them with privacy.count_events"
        )
        raise InputError(Sentence(msg))
    if isinstance(release, Release):
        return PublishedMap(release, name=name, label=label, metres=metres)
    if release is not None:
        if graph is None:
            raise InputError(Sentence("a release is read from its folder together with {graph=}, the public graph it was made on"))
        return PublishedMap(read_release(release, graph), name=name, label=label, metres=metres)
    if graph is None:
        return GeneratedCity(city(4600, seed=seed), name=name or "Generated city", label=label, seed=seed, metres=1.0)
    return GeneratedCity(graph, name=name or "Generated counts", label=label, seed=seed, metres=metres)


def _print_address(address: str) -> None:
    print(f"The explorer is at {address}\nIt answers this computer only. Ctrl-C ends it.", flush=True)


def _print_kept(kept: Kept) -> None:
    print(f"{kept}.", flush=True)


def _open_browser(address: str, stack: ExitStack) -> None:
    """Open the address through a file that only this user can read: other users can see the arguments of programs."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hushgraph-")))
    page = folder / "explorer.html"
    page.touch(mode=0o600)
    page.write_text(f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={address}">')
    threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()


# ---- requests ---------------------------------------------------------------------------------------------------------


def read_wish(asked: dict) -> Wish:
    """What the page asks to see, each part checked; an unknown part is refused."""
    unknown = set(asked) - set(Wish.__dataclass_fields__)
    if unknown or asked.get("method", "auto") not in list(METHODS) or asked.get("rule", "james_stein") not in get_args(PageRule):
        raise Refused(400, "The page asked for something unknown; reload it.")
    for flag in ("refine", "nonnegative", "integer", "moving", "plan"):
        if not isinstance(asked.get(flag, True), bool):
            raise Refused(400, f"{flag} must be true or false.")
    return Wish(**{**asked, "epsilon": checked_epsilon_on_page(asked.get("epsilon"))})


def read_order(asked: dict) -> Order:
    """An order to draw; it must be complete."""
    if set(asked) != {"epsilon", "number", "public_graph"} or not is_count(asked["number"], 1):
        raise Refused(400, "An order needs epsilon, the number of the release and your confirmation; reload the page.")
    return Order(checked_epsilon_on_page(asked["epsilon"]), int(asked["number"]), asked["public_graph"] is True)


def parsed(body: bytes) -> dict:
    """A JSON object, or a refusal."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict):
        raise Refused(400, "The request is not a JSON object.")
    return asked


# ---- the application --------------------------------------------------------------------------------------------------


def application(session: Session, *, port: int, token: str, turns: Turns | None = None):
    """The explorer as an ASGI application for one session."""
    routing = extra("starlette.routing", name="app", purpose="the explorer")
    starlette = extra("starlette.applications", name="app", purpose="the explorer")
    answers = extra("starlette.responses", name="app", purpose="the explorer")
    run_in_threadpool = extra("starlette.concurrency", name="app", purpose="the explorer").run_in_threadpool
    turns = turns or Turns()

    def page(request):
        return answers.Response((STATIC / "explorer.html").read_bytes(), media_type="text/html")

    def static(request):
        found = request.path_params["file"]
        if found not in FILES:
            return answers.PlainTextResponse("There is no such file.", status_code=404)
        return answers.Response((STATIC / found).read_bytes(), media_type=FILES[found])

    def answering(handler: Callable[[dict], dict | bytes], turn=turns.whole):
        async def answer(request):
            try:
                asked = parsed(await _body(request)) if request.method == "POST" else {}
                found = await run_in_threadpool(turn, lambda: handler(asked))
                return (
                    answers.Response(found, media_type="application/zip")
                    if isinstance(found, bytes)
                    else answers.JSONResponse(found)
                )
            except Superseded:
                return answers.JSONResponse({"error": "A newer position came in between.", "superseded": True}, status_code=409)
            except Refused as refused:
                return answers.JSONResponse({"error": refused.text}, status_code=refused.status)
            except Exception:  # whatever it says may come from private data: nothing of it leaves
                return answers.JSONResponse({"error": UNEXPECTED}, status_code=500)

        return answer

    routes = [
        routing.Route("/", page),
        routing.Route("/static/{file}", static),
        routing.Route("/api/start", answering(lambda asked: session.describe())),
        routing.Route("/api/look", answering(lambda asked: session.look(read_wish(asked)), turns.latest), methods=["POST"]),
        routing.Route("/api/draw", answering(lambda asked: session.draw(read_order(asked))), methods=["POST"]),
        routing.Route("/api/check", answering(lambda asked: session.check()), methods=["POST"]),
        routing.Route("/api/download", answering(lambda asked: session.download(read_wish(asked))), methods=["POST"]),
    ]
    hosts = tuple(f"{name}:{port}" for name in HOSTS)
    return Guard(starlette.Starlette(routes=routes), hosts=hosts, token=token)


UNEXPECTED = (
    "Something unexpected went wrong. If you were drawing a release, look at the budget before you try again: a charge stands even "
    "when the drawing fails."
)


async def _body(request) -> bytes:
    """The body, as far as it is allowed to go."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise Refused(413, f"A request may have {MOST_BYTES} bytes at most.")
    return body
