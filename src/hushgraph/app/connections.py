"""Connections that send nothing do not keep the owner out of the explorer.

Every program of this computer can connect to the explorer's port, also without the token. A limit on all connections would let
such programs shut the owner out, so nothing is refused for being one too many. Instead:

- a connection that has not sent a whole request head after `HEAD_SECONDS` is closed;
- of more than `MOST_WAITING` connections that have not sent one, the oldest are closed at once;
- whatever is answered without the token closes its connection (`guard.py`).

An owner's request is one packet, sent as soon as the connection is open. At most `BACKLOG` other connections are accepted before it is
read, far fewer than `MOST_WAITING`, so it is never among the oldest.
"""

from __future__ import annotations

from hushgraph.contents import extra

HEAD_SECONDS = 5.0
MOST_WAITING, BACKLOG = 200, 64


def connection_class() -> type:
    """Return the class that uvicorn makes one object of for each connection."""
    protocol = extra("uvicorn.protocols.http.h11_impl", name="app", purpose="the explorer").H11Protocol

    class Connection(protocol):  # type: ignore[valid-type, misc]
        def connection_made(self, transport) -> None:
            super().connection_made(transport)
            self.opened = self.loop.time()
            self.loop.call_later(HEAD_SECONDS, self.close_if_waiting)
            waiting = [one for one in self.connections if one.waits()]
            if len(waiting) > MOST_WAITING:
                min(waiting, key=lambda one: one.opened).close_if_waiting()

        def waits(self) -> bool:
            """Whether no whole request head has come yet."""
            return self.cycle is None and not self.transport.is_closing()

        def close_if_waiting(self) -> None:
            if self.waits():
                self.transport.abort()

    return Connection
