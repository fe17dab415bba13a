"""The web server of the explorer on 127.0.0.1. Requests are checked here and answered by a session; nothing is logged."""

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

from hushgraph._deprecation import renamed
from hushgraph._errors import PathError, Sentence
from hushgraph._extras import extra
from hushgraph._validation import checked_count, choose, is_count
from hushgraph.datasets import city
from hushgraph.explorer.computation_queue import ComputationQueue, RequestSuperseded
from hushgraph.explorer.connections import BACKLOG, connection_class
from hushgraph.explorer.guard import MAX_BODY_BYTES, Guard
from hushgraph.explorer.inputs import check_inputs
from hushgraph.explorer.regions import MOST_CORNERS, RegionRequest
from hushgraph.explorer.saved_releases import SavedRelease
from hushgraph.explorer.session import (
    START_EPSILON,
    DrawRequest,
    GeneratedCity,
    Json,
    PageTexts,
    PrivateEvents,
    PublishedMap,
    RequestRefused,
    Session,
    checked_slider_epsilon,
)
from hushgraph.explorer.views import OFFERED, PageRule, ViewRequest
from hushgraph.graphs import Graph
from hushgraph.plotting import MAP_FOLDER, MAP_SCRIPTS
from hushgraph.privacy import CountMap, EventCheck, Ledger, Release, read_release

STATIC = Path(__file__).parent / "static"
FILES = {
    **dict.fromkeys(["explorer.js", "explorer_text.js", "risk_chart.js", "explorer.css"], STATIC),
    **dict.fromkeys([*MAP_SCRIPTS, "map.css", "icon.svg"], MAP_FOLDER),
}
MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
HOSTS = ("127.0.0.1", "localhost")


def web_server() -> Any:
    """Return the package uvicorn, or raise an error that names the extra to install; commands call it before they count events."""
    extra("starlette", name="app", purpose="the explorer")
    return extra("uvicorn", name="app", purpose="the explorer")


@renamed(removed_in="0.3", name="title")
def serve(
    *,
    graph: Graph | None = None,
    release: Release | str | Path | None = None,
    events: CountMap | None = None,
    ledger: Ledger | None = None,
    check: Callable[[], EventCheck] | None = None,
    keep: str | Path | None = None,
    title: str | None = None,
    label: str = "events",
    unit: str | None = None,
    not_protected: str | None = None,
    attribution: str | None = None,
    outlines: Any = None,
    metres: float | None = None,
    guides: Any = None,
    seed: int = 0,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = True,
    on_ready: Callable[[str], Any] | None = None,
    on_release: Callable[[SavedRelease], Any] | None = None,
) -> None:
    """Show the explorer in a browser on this computer, until it is interrupted.

    Without data it shows a generated city, or generated counts on `graph`. With `release` it shows a published map. With `events`
    and `ledger` it plans a release and draws it on request: each release is charged, and nothing else of the events is shown.

    Parameters
    ----------
    graph : Graph, optional
        Public graph with coordinates. Needed to read a release from its folder.
    release : Release, str or Path, optional
        A release, or the folder of one. One over time windows is shown with a slider over them.
    events : CountMap, optional
        Private events, counted by `privacy.count_events` without time windows.
    ledger : Ledger, optional
        The budget that releases of `events` are charged to; needed with `events`.
    check : callable, optional
        Function without arguments that reads the events again and returns `privacy.check_events(...)` of them. With it the page
        offers, until the first release is drawn, to show how the events were counted: private, for whoever has the token of this run.
    keep : str or Path, optional
        Folder in which drawn releases are saved at once, as release-1, release-2 and so on; nothing is replaced. By default
        "hushgraph-releases" beside the file of the ledger.
    title : str, optional
        What the map shows: the title of the page, of saved pictures and of the report.
    label : str
        What is counted, for example "pickups".
    unit : str, optional
        Unit of the values, written behind numbers; by default `label`.
    not_protected : str, optional
        Who is not protected, for the certificate, as in `privacy.release`.
    attribution : str, optional
        Source of the graph, for maps and certificate, as in `privacy.release`; by default that of the graph.
    outlines : str, Path, dict, GeoDataFrame or list, optional
        Water, parks and districts to draw beneath the maps, as in `write_report`.
    metres : float, optional
        Metres in one unit of planar coordinates, for the scale bar of the maps; not needed for longitudes and latitudes.
    guides : optional
        Public maps that do not share noise with the map on the page, as in `denoise`: the page denoises with them, shows how much of
        the squared error each removed, and can do without them. Private events are never compared with them; a drawn release is.
    seed : int
        Seed of the generated city.
    host : {"127.0.0.1", "localhost"}
        Name of this computer in the address; the explorer answers no other computer.
    port : int
        Port; 0 takes any free port.
    open_browser : bool
        Whether to open the page in a browser.
    on_ready : callable, optional
        Called with the address, which holds the token of this run; the address is printed if not given.
    on_release : callable, optional
        Called after each draw with an object that says where the release was saved (`number`, `folder`, `fault`); the same is
        printed if not given.

    Raises
    ------
    ValueError
        If inputs are given that do not go together, the graph has no coordinates, or a guide cannot be used.
    LedgerError
        If the ledger does not fit the events.
    OSError
        If the port is taken, or `keep` cannot be a folder.

    Examples
    --------
    >>> import hushgraph as hg
    >>> hg.explorer.serve(graph=hg.datasets.city(1000), label="trips")  # doctest: +SKIP
    """
    choose("host", host, HOSTS)
    port = checked_count("port", port, 0, 65_535)
    uvicorn = web_server()
    session = open_session(
        graph=graph, release=release, events=events, ledger=ledger, check=check, keep=keep, title=title, label=label, unit=unit,
        not_protected=not_protected, attribution=attribution, outlines=outlines, metres=metres, guides=guides, seed=seed, on_release=_print_saved if on_release is None else on_release,
    )  # fmt: skip
    token, queue = secrets.token_urlsafe(32), ComputationQueue()
    with _listening(port) as listener, ExitStack() as stack:
        port = listener.getsockname()[1]
        address = f"http://{host}:{port}/#token={token}"
        (_print_address if on_ready is None else on_ready)(address)
        if open_browser:
            _open_browser(address, stack)
        stack.enter_context(_first_view(session, queue))
        config = uvicorn.Config(
            application(session, port=port, token=token, queue=queue), log_config=None, access_log=False, server_header=False,
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
def _first_view(session: Session, queue: ComputationQueue) -> Iterator[None]:
    """Compute one quick view while the page opens, so that filters are prepared before the slider moves.

    The first view that the page requests takes precedence. On private events this view is a plan, from public inputs alone.
    """

    def compute() -> None:
        with suppress(Exception):  # the page will show the same error
            queue.run_if_latest(lambda: session.view(ViewRequest(START_EPSILON, moving=True, plan=True)))

    thread = threading.Thread(target=compute, daemon=True)
    thread.start()
    try:
        yield
    finally:
        queue.cancel()
        thread.join(2.0)


def open_session(
    *,
    graph: Graph | None = None,
    release: Release | str | Path | None = None,
    events: CountMap | None = None,
    ledger: Ledger | None = None,
    check: Callable[[], EventCheck] | None = None,
    keep: str | Path | None = None,
    title: str | None = None,
    label: str = "events",
    unit: str | None = None,
    not_protected: str | None = None,
    attribution: str | None = None,
    outlines: Any = None,
    metres: float | None = None,
    guides: Any = None,
    seed: int = 0,
    on_release: Callable[[SavedRelease], Any] | None = None,
) -> Session:
    """Return the session for the given data; see `serve`."""
    check_inputs(graph=graph, release=release, events=events, ledger=ledger, keep=keep, check=check)
    if graph is None and release is None and events is None:
        graph, title, metres = city(4600, seed=seed), title or "Generated city", 1.0
    texts = PageTexts(title=title, label=label, unit=unit, attribution=attribution, metres=metres, outlines=outlines)
    if events is not None:
        return PrivateEvents(
            events, ledger, texts=texts, not_protected=not_protected, guides=guides, keep=keep, check=check, on_release=on_release
        )
    if isinstance(release, Release):
        return PublishedMap(release, texts=texts, guides=guides)
    assert graph is not None  # `check_inputs` refuses the folder of a release without a graph
    if release is not None:
        return PublishedMap(read_release(release, graph), texts=texts, guides=guides)
    return GeneratedCity(graph, texts=texts, seed=seed, guides=guides)


def _print_address(address: str) -> None:
    print(f"The explorer is at {address}\nIt answers this computer only. Ctrl-C ends it.", flush=True)


def _print_saved(saved: SavedRelease) -> None:
    print(f"{saved}.", flush=True)


def _open_browser(address: str, stack: ExitStack) -> None:
    """Open the address through a file that only this user can read: other users can see the command lines of programs."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hushgraph-")))
    page = folder / "explorer.html"
    page.touch(mode=0o600)
    page.write_text(f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={address}">')
    threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()


# ---- requests ---------------------------------------------------------------------------------------------------------


def parse_view_request(fields: Json) -> ViewRequest:
    """Return the settings of the page, each of them checked; an unknown field is refused."""
    unknown = set(fields) - set(ViewRequest.__dataclass_fields__)
    if unknown or fields.get("method", "auto") not in list(OFFERED) or fields.get("rule", "james_stein") not in get_args(PageRule):
        raise RequestRefused(400, "The page asked for something unknown; reload it.")
    for flag in ("refine", "nonnegative", "integer", "guides", "moving", "plan"):
        if not isinstance(fields.get(flag, True), bool):
            raise RequestRefused(400, f"{flag} must be true or false.")
    return ViewRequest(**{**fields, "epsilon": checked_slider_epsilon(fields.get("epsilon"))})


def parse_region_request(fields: Json) -> RegionRequest:
    """Return a request for the total of a region: the settings of the page and `ring`, the corners of the region."""
    ring = fields.get("ring")
    corners = ring if isinstance(ring, list) and 3 <= len(ring) <= MOST_CORNERS else []
    is_good = all(isinstance(one, list) and len(one) == 2 and all(map(_is_place, one)) for one in corners)
    if not corners or not is_good:
        raise RequestRefused(400, f"A region needs 3 to {MOST_CORNERS} corners, each of them two numbers.")
    view = parse_view_request({name: value for name, value in fields.items() if name != "ring"})
    return RegionRequest(view, tuple((float(x), float(y)) for x, y in corners))


def _is_place(number: Any) -> bool:
    """Return whether a number can be a coordinate, over the size of the map."""
    return isinstance(number, int | float) and not isinstance(number, bool) and abs(number) <= 100


def parse_draw_request(fields: Json) -> DrawRequest:
    """Return a request to draw a release; all of its fields are needed."""
    if set(fields) != {"epsilon", "number", "public_graph"} or not is_count(fields["number"], 1):
        raise RequestRefused(400, "Drawing needs epsilon, the number of the release and your confirmation; reload the page.")
    return DrawRequest(checked_slider_epsilon(fields["epsilon"]), int(fields["number"]), fields["public_graph"] is True)


def parse_body(body: bytes) -> Json:
    """Return the JSON object in the body of a request; anything else is refused."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise RequestRefused(400, "The request is not a JSON object.")
    return fields


# ---- the application --------------------------------------------------------------------------------------------------


def application(session: Session, *, port: int, token: str, queue: ComputationQueue | None = None) -> Guard:
    """Return the explorer as an ASGI application for one session."""
    routing = extra("starlette.routing", name="app", purpose="the explorer")
    starlette = extra("starlette.applications", name="app", purpose="the explorer")
    responses = extra("starlette.responses", name="app", purpose="the explorer")
    run_in_threadpool = extra("starlette.concurrency", name="app", purpose="the explorer").run_in_threadpool
    queue = queue or ComputationQueue()

    def page(request: Any) -> Any:
        return responses.Response((STATIC / "explorer.html").read_bytes(), media_type="text/html")

    def static(request: Any) -> Any:
        name = request.path_params["file"]
        if name not in FILES:
            return responses.PlainTextResponse("There is no such file.", status_code=404)
        return responses.Response((FILES[name] / name).read_bytes(), media_type=MEDIA_TYPES[Path(name).suffix])

    def endpoint(
        handle: Callable[[Json], Json | bytes],
        run: Callable[[Callable[[], Json | bytes]], Json | bytes] = queue.run_to_end,
        media_type: str = "application/zip",
    ) -> Callable[[Any], Any]:
        async def answer(request: Any) -> Any:
            try:
                fields = parse_body(await _body(request)) if request.method == "POST" else {}
                content = await run_in_threadpool(run, lambda: handle(fields))
                if isinstance(content, bytes):
                    return responses.Response(content, media_type=media_type)
                return responses.JSONResponse(content)
            except RequestSuperseded:
                return responses.JSONResponse({"error": "A newer request replaced this one.", "superseded": True}, status_code=409)
            except RequestRefused as refused:
                return responses.JSONResponse({"error": refused.text}, status_code=refused.status)
            except Exception:  # the text of an unknown error may quote private data: it is not sent
                return responses.JSONResponse({"error": UNEXPECTED}, status_code=500)

        return answer

    routes = [
        routing.Route("/", page),
        routing.Route("/static/{file}", static),
        routing.Route("/api/start", endpoint(lambda _: session.describe())),
        routing.Route(
            "/api/view", endpoint(lambda fields: session.view(parse_view_request(fields)), queue.run_if_latest), methods=["POST"]
        ),
        routing.Route("/api/total", endpoint(lambda fields: session.total(parse_region_request(fields))), methods=["POST"]),
        routing.Route("/api/draw", endpoint(lambda fields: session.draw(parse_draw_request(fields))), methods=["POST"]),
        routing.Route("/api/check", endpoint(lambda _: session.check()), methods=["POST"]),
        routing.Route("/api/download", endpoint(lambda fields: session.download(parse_view_request(fields))), methods=["POST"]),
        routing.Route(
            "/api/report",
            endpoint(lambda fields: session.report(parse_view_request(fields)), media_type="text/html"),
            methods=["POST"],
        ),
    ]
    hosts = tuple(f"{name}:{port}" for name in HOSTS)
    return Guard(starlette.Starlette(routes=routes), hosts=hosts, token=token)


UNEXPECTED = (
    "Something unexpected went wrong. If you were drawing a release, look at the budget before you try again: a charge stands even "
    "if drawing fails."
)


async def _body(request: Any) -> bytes:
    """Return the body of a request; a body that is too long is refused."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise RequestRefused(413, f"A request may have {MAX_BODY_BYTES} bytes at most.")
    return body
