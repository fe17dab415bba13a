"""Which requests the explorer answers: those to 127.0.0.1 or localhost, from its own page, with the token of this run.

Other users of this computer and other web pages can reach 127.0.0.1 too. A request to another host name (DNS rebinding) is answered
with 421, a request from another page with 403, a request without the token with 401. Only the empty page and its scripts, which
hold no data, are served without the token. An answer to a request without the token closes its connection.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[dict[str, Any], Callable[..., Any], Send], Awaitable[None]]

TOKEN_HEADER = "x-hushgraph-token"
_API = "/api/"  # requests that need the token
MAX_BODY_BYTES = 4096
BODY_SECONDS = 1.0  # how long the body of a refused request is waited for
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def refusal(
    method: str, path: str, headers: Iterable[tuple[str, str]], *, hosts: tuple[str, ...], token: str
) -> tuple[int, str] | None:
    """Return status and text of the answer to a request that is refused; None if it is not refused.

    Examples
    --------
    >>> refusal("GET", "/", [("host", "evil.example")], hosts=("127.0.0.1:8000",), token="t")
    (421, 'This server answers on 127.0.0.1:8000 only.')
    >>> refusal("GET", "/", [("host", "127.0.0.1:8000")], hosts=("127.0.0.1:8000",), token="t") is None
    True
    """
    pairs = [(name.lower(), value) for name, value in headers]
    named = dict(pairs)
    if [value.lower() for name, value in pairs if name == "host"] not in [[host] for host in hosts]:
        return 421, f"This server answers on {hosts[0]} only."
    if _is_foreign(method, path, named, hosts):
        return 403, "Requests from other pages are refused."
    if method not in ("GET", "HEAD", "POST"):
        return 405, "Only GET and POST are answered."
    if path.startswith(_API) and not secrets.compare_digest(named.get(TOKEN_HEADER, "").encode(), token.encode()):
        return 401, "The token is missing or not the one of this run; open the address that the program printed."
    if _body_length(named) is None:
        return 413, f"A request may have {MAX_BODY_BYTES} bytes at most."
    return None


def _is_foreign(method: str, path: str, headers: Mapping[str, str], hosts: tuple[str, ...]) -> bool:
    """Return whether the browser says that another page made the request; a link may open the page itself, which holds no data."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None and origin not in {f"http://{host}" for host in hosts}:
        return True
    opened = path == "/" and method == "GET" and headers.get("sec-fetch-mode", "navigate") == "navigate"
    framed = headers.get("sec-fetch-dest", "document") != "document"
    return site not in (None, "same-origin", *(("none", "same-site", "cross-site") if opened and not framed else ()))


class Guard:
    """ASGI middleware that refuses the requests named by `refusal` and adds `HEADERS` to every answer."""

    def __init__(self, app: Application, *, hosts: tuple[str, ...], token: str):
        self.app, self.hosts, self.token = app, hosts, token

    async def __call__(self, scope: dict[str, Any], receive: Callable[..., Any], send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        refused = refusal(scope["method"], scope["path"], headers, hosts=self.hosts, token=self.token)
        has_token = refused is None and scope["path"].startswith(_API)

        async def send_with_headers(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                added = HEADERS if has_token else {**HEADERS, "connection": "close"}
                others = [pair for pair in message.get("headers", []) if pair[0].decode("latin-1").lower() not in HEADERS]
                message = {**message, "headers": [*others, *((name.encode(), value.encode()) for name, value in added.items())]}
            await send(message)

        if refused is None:
            await self.app(scope, receive, send_with_headers)
        else:
            await _read_body(receive, headers)
            await _answer(send_with_headers, *refused)


def _body_length(headers: Mapping[str, str]) -> int | None:
    """Return the number of bytes that a request announces; None if it is none, or too many."""
    length = headers.get("content-length", "0")
    return int(length) if re.fullmatch("[0-9]{1,5}", length) and int(length) <= MAX_BODY_BYTES else None


async def _read_body(receive: Callable[..., Any], headers: Iterable[tuple[str, str]]) -> None:
    """Read the body of a refused request if it is short and comes at once: closing a connection with unread bytes may destroy the answer."""
    if not _body_length({name.lower(): value for name, value in headers}):
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(BODY_SECONDS):
            while (await receive()).get("more_body", False):
                pass


async def _answer(send: Send, status: int, text: str) -> None:
    body = text.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
