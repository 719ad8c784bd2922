"""Who may talk to the page's server: requests for this host, from this page, with the token where there is one.

Every request passes here first, websockets included. A page of another site reaches this machine by the viewer's own
browser; its Origin, or the Host of a name that was made to point here, gives it away.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import WebSocket
from fastapi.requests import HTTPConnection
from fastapi.responses import PlainTextResponse, RedirectResponse

App = Callable[[Any, Any, Any], Awaitable[None]]
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Headers of every answer: nothing is loaded from elsewhere, no script stands in the page, no other page frames it."""
POLICY = 1008
"""The websocket code of a connection that is refused."""


class Guard:
    """An ASGI application that lets the right requests through to another one."""

    def __init__(self, app: App, host: str, port: int, token: str = ""):
        """`host`: the name or address that the server listens on. Without a token nobody needs one."""
        self._app, self._token = app, token
        self._cookie = f"alphazero_{port}"  # cookies are shared by all ports of a host
        self._hosts = allowed_hosts(host)
        self._port, self._any_address = port, host in ("0.0.0.0", "::")

    async def __call__(self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        asked, answer = HTTPConnection(scope), self._app
        if fault := self._fault(asked):
            if scope["type"] == "websocket":
                await WebSocket(scope, receive, send).close(POLICY, fault)
                return
            answer = PlainTextResponse(fault, 403)
        elif self._token and scope["type"] == "http" and "token" in asked.query_params:
            # the token is kept in a cookie, and the browser sent to the address without it. Strict would withhold the
            # cookie from the page that another site's link leads to. Lax gives it to such links alone, which are GETs
            # of files and change nothing; a websocket of another site is refused by its Origin.
            cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Lax; Path=/"
            answer = RedirectResponse("/", 303, {"Set-Cookie": cookie, "Cache-Control": "no-store"})

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                added = {name.lower().encode(): value.encode() for name, value in HEADERS.items()}
                message = {**message, "headers": list({**added, **dict(message.get("headers", ()))}.items())}
            await send(message)

        await answer(scope, receive, send_with_headers)

    def _fault(self, asked: HTTPConnection) -> str:
        """The reason to refuse a request; empty if there is none."""
        hosts, origins = asked.headers.getlist("host"), asked.headers.getlist("origin")
        if len(hosts) != 1 or not self._knows(hosts[0], asked.scope):
            return "This page answers only to the address that it was started with."
        own = (f"http://{hosts[0].lower()}", f"https://{hosts[0].lower()}")
        if origins and (len(origins) > 1 or origins[0].lower() not in own):
            return "This page takes no requests from other pages."
        given = asked.query_params.get("token", ""), asked.cookies.get(self._cookie, "")
        if self._token and not any(hmac.compare_digest(word.encode(), self._token.encode()) for word in given):
            return "This page needs its token: open the address that was printed when it was started."
        return ""

    def _knows(self, host: str, scope: Any) -> bool:
        name, _, port = host.lower().rpartition(":")
        if not name or host.endswith("]"):
            name, port = host.lower(), "80"
        # with 0.0.0.0 the page has all addresses of this machine: the one that the request came to is among them
        here, asked = scope.get("server"), _address(name)
        ours = self._any_address and here is not None and asked is not None and asked == _address(str(here[0]))
        return port == str(self._port) and (name in self._hosts or ours)


def allowed_hosts(host: str) -> set[str]:
    """The names by which a server that listens on `host` may be asked for."""
    names = set(LOOPBACK)
    if host in ("0.0.0.0", "::"):
        name = socket.gethostname().lower()
        names |= {name, f"{name.removesuffix('.local')}.local"}  # as phones and Macs on the same network find it
    elif host not in ("127.0.0.1", "localhost", "::1"):
        names.add(f"[{host}]" if ":" in host else host.lower())
    return names


def is_loopback(host: str) -> bool:
    """The host is this machine alone."""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that is the host, if it is none by name; IPv4 addresses may be written as IPv6 ones."""
    try:
        found = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
