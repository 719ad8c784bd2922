"""Who may talk to the server: W1 (foreign Host and Origin), W2 (the token), and paths."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import ipaddress
import socket

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import alphazero.web.connection
import alphazero.web.server
from alphazero.commands import serve
from alphazero.commands.shared import run_command
from alphazero.web.connection import BoundedConnection
from alphazero.web.guard import HEADERS, Guard, allowed_hosts, is_loopback
from alphazero.web.server import read_page
from tests.web.client import serving, talking, wait_for


@pytest.fixture(scope="module")
def server():
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def guarded():
    """A server for other machines, too."""
    with serving(host="0.0.0.0") as running:
        yield running


def get(server, path: str = "/", **headers: str) -> http.client.HTTPResponse:
    """An answer to a request with these headers; `Host` may be any."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.putrequest("GET", path, skip_host=True)
    for name, value in {"Host": f"127.0.0.1:{server.port}", **headers}.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    answer.text = answer.read().decode()  # type: ignore[attr-defined]
    connection.close()
    return answer


def open_socket(server, origin: str | None = None, host: str = "", path: str = "/talk", cookie: str = "") -> None:
    """Opens and closes a websocket; raises InvalidStatus if it is refused."""
    headers = {"Cookie": cookie} if cookie else {}
    # the Host header follows the address, so the connection is made by hand
    connection = socket.create_connection(("127.0.0.1", server.port))
    with contextlib.closing(connection):
        address = f"ws://{host or f'127.0.0.1:{server.port}'}{path}"
        with connect(address, additional_headers=headers, origin=origin, proxy=None, sock=connection):
            pass


FOREIGN_HOSTS = [
    "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost", "127.0.0.1.evil.example:{port}",
    "[::2]:{port}", "", "127.0.0.2:{port}", "localhost.evil.example:{port}",
]  # fmt: skip
FOREIGN_ORIGINS = [
    "http://evil.example", "http://127.0.0.1", "http://localhost:{port}", "null", "file://", "http://127.0.0.1:1",
    "http://127.0.0.1:{port}.evil.example", "chrome-extension://abc", "ftp://127.0.0.1:{port}", "http://[::1]:{port}",
]  # fmt: skip


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_foreign_hosts_are_refused(server, host: str):
    host = host.format(port=server.port)
    assert get(server, Host=host).status == 403
    if host:
        with pytest.raises(InvalidStatus) as caught:
            open_socket(server, host=host)
        assert caught.value.response.status_code == 403


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_foreign_origins_are_refused(server, origin: str):
    origin = origin.format(port=server.port)
    assert get(server, Origin=origin).status == 403
    with pytest.raises(InvalidStatus) as caught:
        open_socket(server, origin)
    assert caught.value.response.status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_the_page_itself_is_let_in(server, host: str):
    host = f"{host}:{server.port}"
    assert get(server, Host=host, Origin=f"http://{host}").status == 200
    open_socket(server, f"http://{host}", host)
    open_socket(server)


def test_two_hosts_are_refused(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.putrequest("GET", "/", skip_host=True)
    for host in (f"127.0.0.1:{server.port}", "evil.example"):
        connection.putheader("Host", host)
    connection.endheaders()
    assert connection.getresponse().status in (400, 403)
    connection.close()


# --- the token ---


def test_with_another_host_a_token_is_needed(guarded):
    token = guarded.address.partition("token=")[2]
    assert len(token) >= 32
    for path, cookie in (
        ("/", ""),
        ("/?token=", ""),
        ("/?token=wrong", ""),
        ("/main.js", ""),
        ("/", f"alphazero_{guarded.port}=wrong"),
    ):
        headers = {"Cookie": cookie} if cookie else {}
        answer = get(guarded, path, **headers)
        assert answer.status == 403 and token not in answer.text
    for path in ("/talk", "/talk?token=wrong"):
        with pytest.raises(InvalidStatus) as caught:
            open_socket(guarded, path=path)
        assert caught.value.response.status_code == 403


def test_the_token_becomes_a_cookie_that_no_script_sees(guarded):
    token = guarded.address.partition("token=")[2]
    answer = get(guarded, f"/?token={token}")
    assert answer.status == 303 and answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie, "a link on another site leads here, too"
    assert get(guarded, Cookie=cookie.partition(";")[0]).status == 200
    open_socket(guarded, cookie=cookie.partition(";")[0])
    open_socket(guarded, path=f"/talk?token={token}")


def test_cookies_of_other_programs_do_no_harm(guarded):
    token = guarded.address.partition("token=")[2]
    name = f"alphazero_{guarded.port}"
    for before in ('ui={"a":1}', "a b", "=", "", f"{name}=old"):
        open_socket(guarded, cookie=f"{before}; {name}={token}")
        assert get(guarded, Cookie=f"{before};{name}={token}; c=@,").status == 200
    for wrong in (f'ui="{name}={token}"', f"other={name}={token}", f"{name}={token}x", f"x{name}={token}"):
        assert get(guarded, Cookie=wrong).status == 403


@pytest.mark.parametrize(("here", "host", "known"), [
    ("::ffff:192.168.1.5", "192.168.1.5", True), ("192.168.1.5", "192.168.1.5", True),
    ("fe80::1", "[FE80:0::1]", True), ("::ffff:192.168.1.5", "192.168.1.6", False), ("fe80::1", "[fe80::2]", False),
    ("::ffff:192.168.1.5", "evil.example", False),
])  # fmt: skip
def test_a_page_of_all_addresses_answers_at_each(here: str, host: str, known: bool):
    """A machine's IPv4 addresses are written as IPv6 ones where the page listens on ::."""
    seen = []

    async def app(scope, receive, send):
        seen.append(scope)

    async def send(message):
        seen.append(message.get("status"))

    scope = {
        "type": "http",
        "headers": [(b"host", f"{host}:8080".encode())],
        "server": (here, 8080),
        "query_string": b"",
    }
    asyncio.run(Guard(app, "::", 8080)(scope, None, send))
    assert seen[0] == (scope if known else 403)


def test_the_token_does_not_open_other_hosts_and_origins(guarded):
    token = guarded.address.partition("token=")[2]
    assert get(guarded, f"/?token={token}", Host=f"evil.example:{guarded.port}").status == 403
    assert get(guarded, f"/?token={token}", Origin="http://evil.example").status == 403


def test_addresses_of_this_machine():
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "127.0.0.9")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.2", "example.org")))
    assert {name := socket.gethostname().lower(), f"{name.removesuffix('.local')}.local"} <= allowed_hosts("0.0.0.0")
    assert "192.168.1.2" in allowed_hosts("192.168.1.2") and "[::5]" in allowed_hosts("::5")


def test_a_page_for_other_machines_has_an_address_by_number(server, monkeypatch):
    """Phones seldom find a computer by its name."""
    assert server.address_by_number == ""
    number = alphazero.web.server.find_number()
    assert number == "" or not ipaddress.ip_address(number).is_loopback
    for number, rest in (("192.168.1.5", "http://192.168.1.5:{port}/?token={token}"), ("", "")):
        monkeypatch.setattr("alphazero.web.server.find_number", lambda number=number: number)
        with serving(host="0.0.0.0") as running:
            token = running.address.partition("token=")[2]
            assert running.address_by_number == rest.format(port=running.port, token=token)


# --- the page's files ---


def test_the_files_of_the_page_and_nothing_else(server):
    for name, (content, kind) in read_page().items():
        answer = get(server, f"/{name}")
        assert answer.status == 200 and answer.text.encode() == content
        assert answer.headers["content-type"].startswith(kind)
    assert get(server).text == read_page()["index.html"][0].decode()


@pytest.mark.parametrize("path", [
    "/../server.py", "/..%2fserver.py", "/%2e%2e/server.py", "//etc/passwd", "/etc/passwd", "/page/index.html",
    "/..\\server.py", "/index.html%00", "/docs", "/openapi.json", "/.", "/runs", "/%252e%252e/server.py", "/main.js/..",
])  # fmt: skip
def test_no_path_leads_anywhere_else(server, path: str):
    answer = get(server, path)
    assert answer.status in (400, 404) and "import" not in answer.text and "root:" not in answer.text


def test_every_answer_has_the_safe_headers(server):
    for path in ("/", "/main.js", "/nothing"):
        answer = get(server, path)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy


def test_the_page_loads_nothing_from_elsewhere_and_parses_no_markup():
    for name, (content, _) in read_page().items():
        text = content.decode()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc"):
            assert word not in text, f"{name} has {word}"
        for word in ("//cdn", "https://", "@import"):
            assert word not in text, f"{name} has {word}"
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", ""), name
        if name.endswith(".html"):
            assert " style=" not in text and " on" not in text.partition("<body>")[2].replace(" on the", "")


def test_a_taken_port_is_told_in_a_sentence(server, capsys):
    assert run_command(serve.main, ["--game", "tictactoe", "--port", str(server.port), "--no-browser"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "another program has it" in told


# --- connections that ask for nothing ---


def connected(server) -> socket.socket:
    """A connection that waits a minute for each answer, which nobody can ask for."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def is_closed(connection: socket.socket) -> bool:
    """The server ends the connection, by whatever it says before."""
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(1 << 16):
            pass
    return True


def whole_request(server) -> bytes:
    return f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: evil.example\r\n"])
def test_a_connection_without_a_whole_request_is_closed(server, sent, monkeypatch):
    monkeypatch.setattr(alphazero.web.connection, "PATIENCE", 0.1)
    with connected(server) as connection:
        connection.sendall(sent)
        assert is_closed(connection)


def test_whoever_has_asked_is_not_cut_off(server, monkeypatch):
    """Else viewers would lose their websocket after some seconds, and slow machines could not answer."""
    opened, open_one = [], BoundedConnection.connection_made

    def note(connection, transport):
        open_one(connection, transport)
        opened.append((connection, connection._deadline))

    monkeypatch.setattr(BoundedConnection, "connection_made", note)
    with connected(server) as connection, talking(server) as client:
        connection.sendall(whole_request(server))
        assert connection.recv(1 << 16) and client.ask("welcome")["games"]
        assert len(opened) == 2
        for made, deadline in opened:
            assert deadline.cancelled() and made._deadline is None


def test_connections_are_bounded(server, monkeypatch):
    wait_for(lambda: not server._server.server_state.connections)
    monkeypatch.setattr(alphazero.web.connection, "MOST_OPEN", 2)
    with connected(server) as first, connected(server):
        wait_for(lambda: len(server._server.server_state.connections) == 2)
        with connected(server) as one_more:
            assert is_closed(one_more)
        first.close()
        wait_for(lambda: len(server._server.server_state.connections) == 1)
        assert get(server).status == 200
