"""The class of connections to the explorer: idle connections cannot shut the owner out.

Every program of this computer can connect to the explorer's port, also without the token. A limit on all connections would let
such programs shut the owner out, so nothing is refused for being one too many. Instead:

- a connection that has not sent a whole request head after `HEAD_SECONDS` is closed;
- of more than `MAX_WAITING` connections that have not sent one, the oldest are closed at once;
- an answer to a request without the token closes its connection (`guard.py`).

An owner's request is one packet, sent as soon as the connection is open. At most `BACKLOG` other connections are accepted before it is
read, far fewer than `MAX_WAITING`, so it is never among the oldest.
"""

from __future__ import annotations

from typing import Any

from hushgraph._extras import extra

HEAD_SECONDS = 5.0
MAX_WAITING, BACKLOG = 200, 64


def connection_class() -> type:
    """Return the class of which uvicorn makes one object per connection."""
    protocol = extra("uvicorn.protocols.http.h11_impl", name="app", purpose="the explorer").H11Protocol

    class Connection(protocol):  # type: ignore[valid-type, misc]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.opened_at = self.loop.time()
            self.loop.call_later(HEAD_SECONDS, self.close_if_waiting)
            waiting = [connection for connection in self.connections if connection.is_waiting()]
            if len(waiting) > MAX_WAITING:
                min(waiting, key=lambda connection: connection.opened_at).close_if_waiting()

        def is_waiting(self) -> bool:
            """Return whether no complete request head has arrived yet."""
            return self.cycle is None and not self.transport.is_closing()

        def close_if_waiting(self) -> None:
            if self.is_waiting():
                self.transport.abort()

    return Connection
