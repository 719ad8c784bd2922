"""The server of the page: static files, one websocket for each viewer, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Response, WebSocket

from alphazero.errors import InvalidSetting, quote
from alphazero.invocation import option
from alphazero.web.connection import BoundedConnection, BoundedSocket
from alphazero.web.engine import Engine
from alphazero.web.guard import Guard, is_loopback
from alphazero.web.message import MOST_BYTES
from alphazero.web.viewer import THREADS, Viewer

PAGE = Path(__file__).with_name("page")
MOST_VIEWERS = 50
TRY_LATER = 1013
"""The websocket code of a connection for which there is no room now."""
PING_SECONDS = 5.0
"""A viewer who does not answer two pings has left."""
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def make_app(engine: Engine) -> FastAPI:
    """The application; a `Guard` belongs in front of it."""
    threads = {name: ThreadPoolExecutor(count, thread_name_prefix=name) for name, count in THREADS.items()}
    files, viewers = read_page(), set[Viewer]()

    @contextlib.asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        threading.Thread(target=engine.warm, name="warm", daemon=True).start()
        yield
        for pool in threads.values():
            pool.shutdown(wait=False, cancel_futures=True)

    app = FastAPI(lifespan=living, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.viewers = viewers

    @app.get("/{name:path}")
    def file(name: str) -> Response:
        found = files.get(name or "index.html")
        if found is None:
            return Response("There is no such page here.", 404, media_type="text/plain")
        return Response(found[0], media_type=found[1])

    @app.websocket("/talk")
    async def talk(websocket: WebSocket) -> None:
        await websocket.accept()
        if len(viewers) >= MOST_VIEWERS:
            await websocket.close(TRY_LATER, f"{MOST_VIEWERS} people are looking already: come back later")
            return
        viewer = Viewer(engine, threads, websocket)
        viewers.add(viewer)
        try:
            await viewer.talk()
        finally:
            viewers.discard(viewer)

    return app


def read_page() -> dict[str, tuple[bytes, str]]:
    """The files of the page, by the names under which they are asked for, and their types."""
    return {
        path.relative_to(PAGE).as_posix(): (path.read_bytes(), TYPES[path.suffix])
        for path in sorted(PAGE.rglob("*"))
        if path.suffix in TYPES
    }


class PageServer:
    """The page on this machine: `run` serves it until Ctrl-C, `start` on a thread until `close`."""

    def __init__(self, engine: Engine, port: int, host: str = "127.0.0.1"):
        """Port 0 takes a free one. Raises InvalidSetting if nobody can listen there."""
        self._socket = listen(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._token = "" if is_loopback(host) else secrets.token_urlsafe(24)
        everywhere = host in ("0.0.0.0", "::")
        self.address = self._address_of(socket.gethostname() if everywhere else host)
        """The address to open, with its token if it needs one."""
        number = find_number() if everywhere else ""
        self.address_by_number = self._address_of(number) if number else ""
        """The same for other machines that cannot find this one by its name; empty if it is not known."""
        config = uvicorn.Config(
            Guard(make_app(engine), host, self.port, self._token),
            log_config=None,  # its own one would close the handlers of all others in this process
            ws_max_size=MOST_BYTES, ws_ping_interval=PING_SECONDS,
            ws_ping_timeout=PING_SECONDS, timeout_graceful_shutdown=1, server_header=False, lifespan="on",
            ws_per_message_deflate=False,  # a hundred bytes would unpack to MOST_BYTES, before any bound can act
            http=BoundedConnection, ws=BoundedSocket,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    def _address_of(self, host: str) -> str:
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.port}/" + (f"?token={self._token}" if self._token else "")

    def run(self) -> None:
        """Serves until Ctrl-C or SIGTERM."""
        with _warnings_alone():
            asyncio.run(self._server.serve([self._socket]))

    def start(self) -> None:
        """Serves on a thread of its own; returns when the page can be opened."""
        self._thread = threading.Thread(target=self.run, name="page", daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.01)

    def wait(self) -> None:
        """Waits until the page ends."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.2)  # lets Ctrl-C through

    def close(self) -> None:
        """Ends the page; a second call does nothing."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(5)
        self._socket.close()

    def __enter__(self) -> PageServer:
        if self._thread is None:
            self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@contextlib.contextmanager
def _warnings_alone() -> Iterator[None]:
    """Inside, uvicorn logs nothing of this thread but warnings: its other lines show addresses with the page's token.

    Other threads log as before: the program may be a server itself.
    """
    thread = threading.get_ident()

    def is_wanted(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or threading.get_ident() != thread

    loggers = [logging.getLogger(f"uvicorn.{name}") for name in ("access", "error", "asgi")]
    with contextlib.ExitStack() as stack:
        for logger in loggers:
            logger.addFilter(is_wanted)
            stack.callback(logger.removeFilter, is_wanted)
        yield


def find_number() -> str:
    """The IPv4 address of this machine in its network; empty without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))  # chooses the way out and sends nothing; nobody has this address (RFC 5737)
        return str(probe.getsockname()[0])
    return ""


def listen(host: str, port: int) -> socket.socket:
    """A socket on that host and port; raises InvalidSetting."""
    try:
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()  # :: is also all IPv4 addresses
        return socket.create_server(place, family=family, backlog=128, dualstack_ipv6=both)
    except UnicodeError as error:
        raise InvalidSetting(f"cannot listen on {quote(host)}: no machine can have this name") from error
    except OSError as error:
        reason = "another program has it" if error.errno == errno.EADDRINUSE else error.strerror
        choice = option("host" if isinstance(error, socket.gaierror) else "port")
        raise InvalidSetting(f"cannot listen on {host}, port {port}: {reason}; choose another {choice}") from error
