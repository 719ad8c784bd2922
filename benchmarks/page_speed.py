"""Measures how soon the page answers: `python -m benchmarks.page_speed --net club`.

Of `alphazero serve`: seconds from the command to the first move, of each further move, and to the first view in
Chromium. Of a published file: seconds from its opening to the board and to the net's first move. All are of the wall
clock, so measure on a quiet machine, or at a high priority.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from alphazero.catalogue import registry
from alphazero.commands.shared import parse, run_command
from alphazero.errors import InvalidSetting
from alphazero.settings import check_ranges

VIEW = ".stage .cell.playable"


@dataclass(frozen=True)
class PageSpeedConfig:
    """Seconds that the page in the browser and a published file take."""

    net: str = "club"
    """A shipped net."""
    game: str = "connect4"
    """Its game."""
    simulations: int = 100
    """Simulations of a move."""
    moves: int = 20
    """Moves after the first one."""
    repeats: int = 3
    """Starts of the server, and openings of each page; the medians count."""
    chromium: str = shutil.which("chromium") or ""
    """The browser."""

    def __post_init__(self) -> None:
        check_ranges(self, moves=(1, 1000), repeats=(1, 100), simulations=(0, 1600))
        if not self.chromium:
            raise InvalidSetting("the measurement needs a browser: apt-get install chromium")


def main(argv: list[str]) -> None:
    config = parse(PageSpeedConfig, argv)
    from playwright.sync_api import sync_playwright

    firsts, others, views, boards, answers = (list[float]() for _ in range(5))
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=config.chromium, args=["--no-sandbox"])
        page = Path(made, "page.html")
        words = ["publish", config.net, str(page), "--game", config.game]
        subprocess.run([sys.executable, "-m", "alphazero", *words], check=True, capture_output=True)
        for _ in range(config.repeats):
            with serving(config) as (port, begin):
                further = play(config, port)
                firsts.append(next(further) - begin)
                others += further
                views.append(open_page(browser, f"http://127.0.0.1:{port}/", answer=False)[0])
            board, answer = open_page(browser, page.as_uri(), answer=True)
            boards.append(board)
            answers.append(answer)
        size = page.stat().st_size
    middle = statistics.median
    print(f"serve: first move {middle(firsts):.2f} s after the command, further ones {1000 * middle(others):.0f} ms")
    print(f"serve: first view {middle(views):.2f} s after its address was opened")
    print(f"file of {size / 1e6:.2f} MB: board after {middle(boards):.2f} s, first move after {middle(answers):.2f} s")


@contextlib.contextmanager
def serving(config: PageSpeedConfig) -> Iterator[tuple[int, float]]:
    """A running server: its port, and when the command was given."""
    port = free_port()
    command = [sys.executable, "-m", "alphazero", "serve", config.net, "--game", config.game, "--no-browser"]
    begin = time.perf_counter()
    server = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield port, begin
    finally:
        server.terminate()
        server.wait()


def free_port() -> int:
    """A port of this machine that nothing listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def play(config: PageSpeedConfig, port: int) -> Iterator[float]:
    """When the first move came, then the seconds of each further one; random replies between them."""
    rng, game = np.random.default_rng(0), registry.load(config.game).game
    with connection_to(port) as connection:
        position = game.start()
        for number in range(1 + config.moves):
            begin = time.perf_counter()
            position = position.play(ask_move(config, connection, position.actions))
            yield time.perf_counter() - begin if number else time.perf_counter()
            if not position.terminal:
                position = position.play(int(rng.choice(position.legal_actions)))
            if position.terminal:
                position = game.start()


def connection_to(port: int) -> ClientConnection:
    """A connection to the server as soon as there is one."""
    end = time.perf_counter() + 120
    while True:
        try:
            return connect(f"ws://127.0.0.1:{port}/talk", proxy=None)
        except (OSError, WebSocketException):
            if time.perf_counter() > end:
                raise
            time.sleep(0.02)


def ask_move(config: PageSpeedConfig, connection: ClientConnection, actions: tuple[int, ...]) -> int:
    """The net's move."""
    player = {"id": config.net, "step": config.simulations}
    question = {"ask": "move", "game": config.game, "actions": list(actions), "player": player, "seed": 0}
    connection.send(json.dumps({"id": len(actions), **question}))
    return int(json.loads(connection.recv(timeout=600))["action"])


def open_page(browser: Any, address: str, answer: bool) -> tuple[float, float]:
    """Seconds until the board can be played, and until the net has answered the first cell, if it is to be clicked."""
    context = browser.new_context()
    page = context.new_page()
    begin = time.perf_counter()
    page.goto(address)
    page.locator(VIEW).first.wait_for(timeout=120_000)
    seen = answered = time.perf_counter() - begin
    if answer:
        page.locator(VIEW).first.click()
        page.locator(".move").nth(2).wait_for(timeout=120_000)
        answered = time.perf_counter() - begin
    context.close()
    return seen, answered


if __name__ == "__main__":
    sys.exit(run_command(main))
