"""Who may talk to the page's server: requests for this host, from this page, with the token where there is one.

Every request passes here first, websockets included. A page of another site reaches this machine by the viewer's own
browser; its Origin, or the Host of a name that was made to point here, gives it away.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

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
REFUSED = 403
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = _headers_of(scope)
        fault = self._fault(scope, headers)
        if fault:
            await _refuse(scope, receive, send, fault)
        elif self._token and scope["type"] == "http" and self._given_token(scope):
            await self._welcome(scope, send)
        else:
            await self._app(scope, receive, _with_headers(send))

    def _fault(self, scope: Scope, headers: dict[str, list[str]]) -> str:
        """The reason to refuse a request; empty if there is none."""
        hosts, origins = headers.get("host", []), headers.get("origin", [])
        if len(hosts) != 1 or not self._knows(hosts[0], scope):
            return "This page answers only to the address that it was started with."
        if origins and (len(origins) > 1 or origins[0].lower() not in _origins_of(hosts[0])):
            return "This page takes no requests from other pages."
        if self._token and not self._knows_token(scope, headers):
            return "This page needs its token: open the address that was printed when it was started."
        return ""

    def _knows(self, host: str, scope: Scope) -> bool:
        name, _, port = host.lower().rpartition(":")
        if not name or host.endswith("]"):
            name, port = host.lower(), "80"
        if port != str(self._port):
            return False
        if name in self._hosts:
            return True
        # with 0.0.0.0 the page has all addresses of this machine: the one that the request came to is among them
        here = scope.get("server")
        return self._any_address and here is not None and _is_address(name, str(here[0]))

    def _given_token(self, scope: Scope) -> bool:
        return "token" in parse_qs(scope.get("query_string", b"").decode("latin-1"))

    def _knows_token(self, scope: Scope, headers: dict[str, list[str]]) -> bool:
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
        for text in headers.get("cookie", []):
            for cookie in text.split(";"):  # those of other programs may hold anything
                name, _, value = cookie.strip().partition("=")
                if name == self._cookie:
                    given.append(value)
        return any(hmac.compare_digest(word.encode(), self._token.encode()) for word in given)

    async def _welcome(self, scope: Scope, send: Send) -> None:
        """Keeps the token in a cookie, and sends the browser to the address without it."""
        # Strict would withhold the cookie from the page that another site's link leads to. Lax gives it to such links
        # alone, which are GETs of files and change nothing; a websocket of another site is refused by its Origin.
        cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Lax; Path=/"
        headers = [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


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
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(host: str, address: str) -> bool:
    """The host of a request is this address, as text of any form; IPv4 addresses may be written as IPv6 ones."""
    try:
        asked, here = (ipaddress.ip_address(text.strip("[]")) for text in (host, address))
    except ValueError:
        return False
    return (getattr(asked, "ipv4_mapped", None) or asked) == (getattr(here, "ipv4_mapped", None) or here)


def _headers_of(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _origins_of(host: str) -> tuple[str, ...]:
    return f"http://{host.lower()}", f"https://{host.lower()}"


async def _refuse(scope: Scope, receive: Receive, send: Send, sentence: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": POLICY, "reason": sentence})
        return
    send = _with_headers(send)
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": REFUSED, "headers": headers})
    await send({"type": "http.response.body", "body": sentence.encode()})


def _with_headers(send: Send) -> Send:
    """Adds HEADERS to the answer."""
    added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *added]}
        await send(message)

    return sending
