"""A client of the page's server, as a page would be one; and a server to talk to."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from alphazero.catalogue import registry
from alphazero.web.engine import Engine, Stage
from alphazero.web.server import PageServer


class Client:
    """One viewer: asks questions and waits for their answers."""

    def __init__(self, connection: ClientConnection):
        self.connection, self.next = connection, 1

    def send(self, ask: str, **fields: Any) -> int:
        """Sends a question; returns its number."""
        self.next += 1
        self.connection.send(json.dumps({"id": self.next, "ask": ask, **fields}))
        return self.next

    def receive(self, timeout: float = 120.0) -> dict[str, Any]:
        return json.loads(self.connection.recv(timeout=timeout))

    def all(self, ask: str, **fields: Any) -> list[dict[str, Any]]:
        """All answers to one question."""
        number, found = self.send(ask, **fields), []
        while True:
            answer = self.receive()
            if answer["id"] == number:
                found.append(answer)
                if not answer.get("more"):
                    return found

    def ask(self, ask: str, **fields: Any) -> dict[str, Any]:
        """The last answer to one question."""
        return self.all(ask, **fields)[-1]

    def cancel(self, number: int) -> None:
        self.connection.send(json.dumps({"cancel": number}))


@contextlib.contextmanager
def talking(server: PageServer, **settings: Any) -> Iterator[Client]:
    """A client of a running server."""
    address = f"ws://127.0.0.1:{server.port}/talk"
    with connect(address, max_size=1 << 26, **{"proxy": None, **settings}) as connection:
        yield Client(connection)


@contextlib.contextmanager
def serving(
    game: str = "tictactoe", folder: Path | None = None, host: str = "127.0.0.1", **stage: Any
) -> Iterator[PageServer]:
    """A server with the runs and tournaments of a folder, on a free port."""
    runs, tournaments = (folder / "runs", folder / "tournaments") if folder else (None, None)
    made = Stage(game, registry.load(game), runs=runs, tournaments=tournaments, device="cpu", **stage)
    with PageServer(Engine(made), 0, host) as server:
        yield server


def wait_for(condition: Any, seconds: float = 60.0) -> Any:
    """The first truth that the condition gives; fails after so many seconds."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "this took too long"
        time.sleep(0.02)
    return found
