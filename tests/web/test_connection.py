"""Connections that flood, or that send what nobody can read: they end, without a traceback, and others do not wait."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import struct
from base64 import b64encode
from collections.abc import Sequence

import pytest

import alphazero.web.connection
import alphazero.web.server
from alphazero.catalogue import registry
from alphazero.web.connection import BURST, FRAMES_PER_SECOND
from alphazero.web.engine import Engine, Stage
from alphazero.web.guard import POLICY
from alphazero.web.message import MOST_BYTES
from alphazero.web.server import PageServer
from tests.web.client import serving, talking, wait_for

TEXT, BINARY, CLOSE, PING, PONG, CONTINUED = 1, 2, 8, 9, 10, 0
PROTOCOL_ERROR, NOT_TEXT, TOO_LARGE = 1002, 1007, 1009


@pytest.fixture(scope="module")
def server():
    """A server that asks for no sign of life, so nothing ends a connection but what the tests are about."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alphazero.web.server, "PING_SECONDS", 1000)
        with serving() as running:
            yield running


def frame(kind: int, content: bytes = b"", end: bool = True, length: int | None = None) -> bytes:
    """A frame of a client, its mask made of zeros; `length` may be a lie."""
    length = len(content) if length is None else length
    how = bytes([length]) if length < 126 else b"\x7e" + struct.pack("!H", length)
    return bytes([kind | (0x80 if end else 0), how[0] | 0x80]) + how[1:] + bytes(4) + content


def request(server: PageServer, line: str = "GET / HTTP/1.1", rest: str = "", host: str = "") -> bytes:
    return f"{line}\r\nHost: {host or f'127.0.0.1:{server.port}'}\r\n{rest}\r\n".encode("latin-1")


def upgrade(server: PageServer, rest: str = "", line: str = "GET /talk HTTP/1.1") -> bytes:
    key = b64encode(os.urandom(16)).decode()
    version = f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
    return request(server, line, f"Connection: Upgrade\r\nUpgrade: websocket\r\n{version}{rest}")


def connected(server: PageServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def open_socket(server: PageServer, connection: socket.socket) -> None:
    """Makes a connection a websocket."""
    connection.sendall(upgrade(server))
    said = b""
    while not said.endswith(b"\r\n\r\n"):
        said += connection.recv(1)
    assert said.startswith(b"HTTP/1.1 101")


def all_of(connection: socket.socket) -> bytes:
    """What is said until the server ends the connection; 20 seconds without a word are an error."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            said += part
    return said


def faults(records: Sequence[logging.LogRecord]) -> list[str]:
    """What the terminal would show as an error of the program."""
    return [record.getMessage() for record in records if record.exc_info or record.levelno >= logging.ERROR]


# --- floods ---


@pytest.mark.parametrize(("first", "each"), [
    (frame(TEXT, end=False), frame(CONTINUED, end=False)), (frame(BINARY, end=False), frame(CONTINUED, b"x", False)),
    (b"", frame(PING)), (b"", frame(PING, b"x" * 125)), (b"", frame(PONG)), (b"", frame(TEXT)), (b"", frame(BINARY)),
], ids=["empty parts", "small parts", "pings", "long pings", "pongs", "empty texts", "empty messages"])  # fmt: skip
def test_a_flood_of_frames_ends_its_connection_alone(server, first, each, caplog):
    """Each frame takes work, whatever is in it; endless ones once made another viewer wait for seconds."""
    with talking(server) as other, connected(server) as connection:
        assert other.ask("welcome")["games"]
        open_socket(server, connection)
        with contextlib.suppress(ConnectionError):
            connection.sendall(first + each * (5 * BURST))
        all_of(connection)
        assert other.ask("welcome")["games"]
    assert not faults(caplog.records)


def test_who_floods_is_told_the_code_of_a_refusal(server, monkeypatch):
    monkeypatch.setattr(alphazero.web.connection, "BURST", 10)
    with connected(server) as connection:
        open_socket(server, connection)
        connection.sendall(frame(PONG) * 450)
        assert struct.pack("!H", POLICY) in all_of(connection)


def test_a_burst_of_frames_is_answered(server):
    with connected(server) as connection:
        open_socket(server, connection)
        connection.sendall(frame(PING) * BURST + frame(CLOSE, struct.pack("!H", 1000)))
        assert all_of(connection).count(b"\x8a\x00") == BURST


def test_who_is_ahead_waits_once_and_not_at_each_message(server, monkeypatch):
    """Nothing is read meanwhile, so many waits would cost the answer to a ping, and the connection."""
    waits, sleep = [], asyncio.sleep

    async def note(seconds):
        waits.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(alphazero.web.connection.asyncio, "sleep", note)
    with talking(server) as client:
        numbers = [client.send("nothing") for _ in range(BURST + 100)]
        assert [client.receive()["id"] for _ in numbers] == numbers
    assert 0 < sum(waits) <= 2 * BURST / FRAMES_PER_SECOND


def test_a_request_does_not_end_in_parts_without_number(server, caplog, monkeypatch):
    monkeypatch.setattr(alphazero.web.connection, "PATIENCE", 1000)
    monkeypatch.setattr(server._server.config, "timeout_keep_alive", 1000)
    with connected(server) as connection:
        connection.sendall(request(server, "POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n"))
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"1\r\nx\r\n" * 2000)
        all_of(connection)
    assert not faults(caplog.records)


def test_who_reads_nothing_does_not_keep_a_place(monkeypatch):
    monkeypatch.setattr(alphazero.web.server, "PING_SECONDS", 1)
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), device="cpu"))
    monkeypatch.setitem(engine.quick, "welcome", lambda viewer, question: {"filling": "x" * (1 << 20)})
    with PageServer(engine, 0) as server, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", server.port))
        open_socket(server, connection)
        viewers = server._server.config.app._app.state.viewers
        wait_for(lambda: viewers)
        for number in range(20):
            connection.sendall(frame(TEXT, b'{"id": %d, "ask": "welcome"}' % number))
        wait_for(lambda: not viewers and not server._server.server_state.connections)


# --- what nobody can read ---


MALFORMED = {
    NOT_TEXT: [
        frame(TEXT, b"\xff\xfe"), frame(TEXT, b"\xe2\x82"), frame(TEXT, b"\xed\xa0\x80"), frame(TEXT, b"\xff") * 2,
        frame(TEXT, b"\xe2", end=False) + frame(CONTINUED, b"\x28"), frame(TEXT, b"{}") + frame(TEXT, b"\xff"),
        frame(CLOSE, struct.pack("!H", 1000) + b"\xff"),
    ],
    PROTOCOL_ERROR: [
        b"\xc1\x80" + bytes(4), b"\xa1\x80" + bytes(4), frame(3), frame(11), b"\x81\x01a", frame(CONTINUED, b"a"),
        frame(TEXT, b"a", end=False) + frame(TEXT, b"b"), frame(PING, b"x" * 126), frame(PING, end=False),
        frame(CLOSE, b"x"), frame(CLOSE, struct.pack("!H", 999)), frame(CLOSE, struct.pack("!H", 1005)),
        frame(TEXT, b"{}") + frame(3), frame(TEXT, b"a", end=False) + frame(CLOSE), b"GET / HTTP/1.1\r\n\r\n",
    ],
    TOO_LARGE: [
        b"\x81\xff" + b"\xff" * 8 + bytes(4), b"\x81\xff" + struct.pack("!Q", 1 << 40) + bytes(4),
        frame(TEXT, b"x" * 60_000, end=False) + frame(CONTINUED, b"x" * 60_000, end=False) * (MOST_BYTES // 60_000),
    ],
    1000: [frame(CLOSE, struct.pack("!H", 1000)) + frame(3), frame(CLOSE, struct.pack("!H", 1000)) * 2],
}  # fmt: skip
"""By the code with which RFC 6455, section 7.4.1, answers each."""


@pytest.mark.parametrize("code", MALFORMED)
def test_frames_that_nobody_can_read_end_their_connection_with_the_standards_code(server, code, caplog):
    for sent in MALFORMED[code]:
        with connected(server) as connection:
            open_socket(server, connection)
            connection.sendall(sent)
            said = all_of(connection)
            assert not said or struct.pack("!H", code) in said, (sent[:40], said)
            assert said or len(sent) > 60_000, "what it did not read may have cost the answer"
    assert not faults(caplog.records)


@pytest.mark.parametrize("sent", [
    frame(TEXT, b"\xff") + frame(CLOSE, struct.pack("!H", 1000)), b"\x81", b"\x81\xfe\x00",
    frame(TEXT, b"ab", length=5), frame(TEXT, b"{}", end=False), b"",
])  # fmt: skip
def test_a_socket_that_is_half_closed_ends(server, sent, caplog):
    with connected(server) as connection:
        open_socket(server, connection)
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        all_of(connection)
    assert not faults(caplog.records)


CHUNKED = "Transfer-Encoding: chunked\r\n"
LINES = (
    "GET /", "GET / HTTP/9.9", "PRI * HTTP/2.0", "OPTIONS * HTTP/1.1", "GET http://x/ HTTP/1.1", "CONNECT x:1 HTTP/1.1",
    "HEAD /x HTTP/1.1", "FOO / HTTP/1.1", "GET /%ff%00%zz HTTP/1.1", "GET /\xe9 HTTP/1.1", "GET x HTTP/1.1",
    "GET /?" + "a=b&" * 2000 + " HTTP/1.1", "GET / HTTP/1.0", "\x16\x03\x01\x02", "",
)  # fmt: skip
HEADERS = (
    "a\r\n", "a b: c\r\n", "A: \xe9\xff\r\n", "Cookie: \xe9=\xe9\r\n", "Origin: \xe9\r\n", "Host: x\r\n",
    "A:\r\n b\r\n", f"A: {'x' * 20_000}\r\n", f"A: {'x' * 100_000}\r\n", "A: b\r\n" * 300, "Content-Length: x\r\n",
    "Content-Length: -1\r\n", f"Content-Length: {10**30}\r\n", "Content-Length: 1\r\nContent-Length: 2\r\n",
    "Transfer-Encoding: gzip\r\n", f"{CHUNKED}Content-Length: 3\r\n", "Expect: 100-continue\r\nContent-Length: 3\r\n",
    "Connection: Upgrade\r\nUpgrade: h2c\r\n", "Connection: Upgrade\r\nUpgrade: websocket\r\n",
)  # fmt: skip
UPGRADES = (
    f"A: {'x' * 9000}\r\n", "A: b\r\n" * 200, "A: \xe9\r\n", "Content-Length: 3\r\n", CHUNKED, "Origin: \xe9\r\n",
    "Sec-WebSocket-Protocol: ,,\x01\r\n", "Sec-WebSocket-Protocol: a b\r\n", "Sec-WebSocket-Extensions: ;;;\r\n",
    "Sec-WebSocket-Key: x\r\n", "Sec-WebSocket-Version: 8\r\n", "Upgrade: h2c\r\n",
)  # fmt: skip


def requests(server: PageServer) -> list[tuple[bytes, bytes]]:
    """Requests that no browser sends, and what comes after them."""
    whole, chunked = request(server), request(server, rest=CHUNKED)
    found = [(request(server, line), b"") for line in LINES]
    found += [(request(server, rest=rest), b"") for rest in HEADERS]
    found += [(upgrade(server, rest), after) for rest in UPGRADES for after in (b"", b"more\r\n\r\n")]
    found += [(upgrade(server, line=f"GET {path} HTTP/1.1"), b"") for path in ("/no", "/%ff", "http://x/talk", "*")]
    found += [(upgrade(server, line="POST /talk HTTP/1.1"), b""), (upgrade(server, line="GET /talk HTTP/1.0"), b"")]
    found += [
        (request(server, host=host, rest=rest) + after, b"")
        for host in ("evil.example", "\xe9", "[::1") for rest, after in (("", b""), (CHUNKED, b"zz\r\n"))
    ]  # fmt: skip
    found += [
        (chunked + b"zz\r\n", b""),
        (chunked, b"zz\r\n"),
        (chunked + b"1\r\na\r\n", b"zz\r\n"),
        (whole, b"\0\r\n\r\n"),
    ]
    return [*found, (whole + b"GET\r\n\r\n", b""), (whole * 20, b"")]


def answer_to(connection: socket.socket, sent: bytes, after: bytes, half_closed: bool) -> bytes:
    """What is said until the server ends the connection, or makes it a websocket."""
    said = b""
    with contextlib.suppress(OSError):  # it may be closed before all of that is sent
        connection.sendall(sent)
        if after or not half_closed:
            said = connection.recv(1 << 16)
        if said.startswith(b"HTTP/1.1 101"):
            return said
        connection.sendall(after)
        if half_closed:
            connection.shutdown(socket.SHUT_WR)
    return said + all_of(connection)


@pytest.mark.parametrize("half_closed", [False, True])
def test_requests_that_nobody_can_read_end_without_a_traceback(server, half_closed, caplog, monkeypatch):
    monkeypatch.setattr(alphazero.web.connection, "PATIENCE", 0.2)
    monkeypatch.setattr(server._server.config, "timeout_keep_alive", 0.2)
    for sent, after in requests(server):
        with connected(server) as connection:
            said = answer_to(connection, sent, after, half_closed)
            assert b"HTTP/1.1 5" not in said, (sent[:200], said[:200])
        assert not faults(caplog.records), sent[:200]
    wait_for(lambda: not server._server.server_state.connections)
    with talking(server) as client:
        assert client.ask("welcome")["games"]
