"""Who may ask the explorer: this computer, by its own name, from the explorer's own page, with the token of this run.

Other users and other web pages can reach 127.0.0.1 too. A foreign name for this address (DNS rebinding) is answered with 421, a
request that another page makes with 403, one without the token with 401. Only the empty page and its scripts, which hold no data,
are served without the token. An answer without the token closes its connection, so that nobody else holds one for long.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping

TOKEN_HEADER = "x-hushgraph-token"
_API = "/api/"  # requests that need the token
MOST_BYTES = 4096  # of a request's body
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


def refusal(method: str, path: str, headers: Iterable[tuple[str, str]], *, hosts: tuple[str, ...], token: str):
    """(status, text) of the answer to a request that is refused; None for one that is not.

    Examples
    --------
    >>> refusal("GET", "/", [("host", "evil.example")], hosts=("127.0.0.1:8000",), token="t")
    (421, 'This server answers on 127.0.0.1:8000 only.')
    >>> refusal("GET", "/", [("host", "127.0.0.1:8000")], hosts=("127.0.0.1:8000",), token="t") is None
    True
    """
    pairs = [(name.lower(), value) for name, value in headers]
    given = dict(pairs)
    if [value.lower() for name, value in pairs if name == "host"] not in [[host] for host in hosts]:
        return 421, f"This server answers on {hosts[0]} only."
    if _foreign(method, path, given, hosts):
        return 403, "Requests from other pages are refused."
    if method not in ("GET", "HEAD", "POST"):
        return 405, "Only GET and POST are answered."
    if path.startswith(_API) and not secrets.compare_digest(given.get(TOKEN_HEADER, "").encode(), token.encode()):
        return 401, "The token is missing or not the one of this run; open the address that the program printed."
    length = given.get("content-length", "0")
    if not length.isdigit() or int(length) > MOST_BYTES:
        return 413, f"A request may have {MOST_BYTES} bytes at most."
    return None


def _foreign(method: str, path: str, given: Mapping[str, str], hosts: tuple[str, ...]) -> bool:
    """Whether a browser says that another page asks. Opening the page itself, which has no data in it, is open to links."""
    origin, site = given.get("origin"), given.get("sec-fetch-site")
    if origin is not None and origin not in {f"http://{host}" for host in hosts}:
        return True
    opened = path == "/" and method == "GET" and given.get("sec-fetch-mode", "navigate") == "navigate"
    framed = given.get("sec-fetch-dest", "document") != "document"
    return site not in (None, "same-origin", *(("none", "same-site", "cross-site") if opened and not framed else ()))


class Guard:
    """ASGI middleware: refuses as `refusal` says, and puts `HEADERS` on every answer."""

    def __init__(self, app, *, hosts: tuple[str, ...], token: str):
        self.app, self.hosts, self.token = app, hosts, token

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        refused = refusal(scope["method"], scope["path"], headers, hosts=self.hosts, token=self.token)
        owner = refused is None and scope["path"].startswith(_API)

        async def send_with_headers(message):
            if message["type"] == "http.response.start":
                given = HEADERS if owner else {**HEADERS, "connection": "close"}
                own = [(name.encode(), value.encode()) for name, value in given.items()]
                kept = [pair for pair in message.get("headers", []) if pair[0].decode("latin-1").lower() not in HEADERS]
                message = {**message, "headers": [*kept, *own]}
            await send(message)

        if refused is None:
            await self.app(scope, receive, send_with_headers)
        else:
            await _answer(send_with_headers, *refused)


async def _answer(send, status: int, text: str):
    body = text.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
