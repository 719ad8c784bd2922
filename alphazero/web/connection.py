"""A connection to the page's server until it is a websocket: one that asks for nothing does not last.

uvicorn waits for the first request for ever, and takes any number of connections. Both are open to everybody who
reaches the port, since a token is asked for only when a request is there.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 10.0
"""Seconds for a whole request to arrive."""
MOST_OPEN = 200
"""Connections at once, the viewers' websockets included; further ones are closed."""


class BoundedConnection(H11Protocol):
    """As uvicorn's, with an end for those who stay silent."""

    _deadline: asyncio.TimerHandle | None = None
    """Set while a request is not all there; between two requests uvicorn has a timer of its own."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has connected."""
        super().connection_made(transport)
        if len(self.connections) > MOST_OPEN:
            transport.abort()
        else:
            self._await_request()

    def data_received(self, data: bytes) -> None:
        """Some of a request is there, or all of it."""
        self._await_request()
        super().data_received(data)
        is_websocket = self.transport.get_protocol() is not self  # whose pings find out who has left
        if is_websocket or (self.cycle and not self.cycle.more_body and not self.cycle.response_complete):
            self._await_nothing()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._await_nothing()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(PATIENCE, self.transport.abort)

    def _await_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
