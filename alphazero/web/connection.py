"""Connections to the page's server: none costs more work than a page is worth, none is open for nothing.

uvicorn waits for the first request for ever, takes any number of connections, and reads whatever comes. All of that is
open to everybody who reaches the port, since a token is asked for only when a request is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from alphazero.web.guard import POLICY

PATIENCE = 10.0
"""Seconds for a whole request to arrive."""
MOST_OPEN = 200
"""Connections at once, the viewers' websockets included; further ones are closed."""
PIECE = 4096
"""Bytes that are read at once: hundreds of frames at most, which take some milliseconds."""
FRAMES_PER_SECOND, BURST = 200, 400
"""A viewer who sends more waits for its answers; who is BURST frames ahead in spite of that is cut off."""
NOT_TEXT = 1007
"""The websocket code of a text that is not UTF-8."""


class BoundedConnection(H11Protocol):
    """As uvicorn's for requests, with an end for those who stay silent or send more than a request's head."""

    _deadline: asyncio.TimerHandle | None = None
    """Set while a request is not all there; between two requests uvicorn has a timer of its own."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_OPEN:
            transport.abort()
        else:
            self._await_request()

    def data_received(self, data: bytes) -> None:
        self._await_request()
        for piece in _pieces_of(data):
            super().data_received(piece)
            if not self._is_websocket and self.conn.their_state is h11.SEND_BODY:  # the page needs none; it may not end
                self.transport.close()
            if self._is_websocket or self.transport.is_closing():
                break
        # pings find out who leaves a websocket
        if self._is_websocket or (self.cycle and not self.cycle.more_body and not self.cycle.response_complete):
            self._await_nothing()

    def send_400_response(self, msg: str) -> None:
        """Refuses what is no HTTP; nothing can be added where an answer has begun, and no other one can follow."""
        if self.cycle:
            self.cycle.disconnected = True
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._await_nothing()
        super().connection_lost(exc)

    @property
    def _is_websocket(self) -> bool:
        return self.transport.get_protocol() is not self

    def _await_request(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(PATIENCE, self.transport.abort)

    def _await_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class BoundedSocket(WebSocketsSansIOProtocol):
    """As uvicorn's for websockets, with an end for those who send too many frames, or some that nobody can read.

    Every frame counts, whatever is in it: also an empty part of a message, a ping and a pong.
    """

    _allowance, _counted = float(BURST), 0.0
    """The frames that were allowed at the last count, and its time."""

    def data_received(self, data: bytes) -> None:
        for piece in _pieces_of(data):
            if self.transport.is_closing():
                break
            super().data_received(piece)
            if not self.handshake_initiated:  # a request that HTTP allows, but no websocket
                self.transport.write(b"".join(self.conn.data_to_send()))
                self.transport.close()

    def handle_events(self) -> None:
        if self._count(max(1, len(self.conn.events))) < -BURST:  # a part of a frame counts as one
            self._end(POLICY, "too much was sent at once: the page connects again by itself")
        else:
            super().handle_events()

    async def receive(self) -> Any:
        """The next message; who sends too many waits, since nothing more is read meanwhile."""
        if (allowance := self._count(0)) < 0:
            await asyncio.sleep(-allowance / FRAMES_PER_SECOND)
        return await super().receive()

    def send_receive_event_to_app(self) -> None:
        try:
            if self.curr_msg_data_type == "text":
                b"".join(self.frames).decode()
        except UnicodeDecodeError:
            self._end(NOT_TEXT, "a text must be UTF-8")
        else:
            super().send_receive_event_to_app()

    def keepalive_timeout(self) -> None:
        """Who answers no ping has left; what was still to be sent would keep the connection open."""
        super().keepalive_timeout()
        self.transport.abort()

    def _count(self, frames: int) -> float:
        """The frames that may still come now, less than 0 if too many came."""
        now = self.loop.time()
        self._allowance = min(BURST, self._allowance + (now - self._counted) * FRAMES_PER_SECOND) - frames
        self._counted = now
        return self._allowance

    def _end(self, code: int, reason: str) -> None:
        if self.close_sent:
            return
        self.conn.fail(code, reason)
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.close()
        self.loop.call_later(PATIENCE, self.transport.abort)  # who does not read may not stay, either


def _pieces_of(data: bytes) -> Iterator[bytes]:
    """The bytes in pieces of at most PIECE."""
    return (data[start : start + PIECE] for start in range(0, len(data), PIECE))
