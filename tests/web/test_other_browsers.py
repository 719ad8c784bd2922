"""Firefox and WebKitGTK as Debian has them: the same moves and analysis as in Chromium, from the server and a file."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.wasm.published import small_page
from tests.web.browser import needs_chromium, running_browser
from tests.web.client import serving

pytestmark = [needs_chromium, pytest.mark.slow]
PATIENCE = 120.0
"""Seconds for an answer of a browser, on a machine that is busy."""
MINI_BROWSER = next(iter(sorted(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"))), None)


def firefox(stack: contextlib.ExitStack, home: Path) -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    """What opens an address, and what gives the value of a promise as JSON; by WebDriver BiDi."""
    command = ("firefox-esr", "--headless", "--no-remote", "--profile", home, "--remote-debugging-port", "0")
    said = stack.enter_context((home / "said").open("w"))
    stack.enter_context(running(*command, stdout=said, stderr=said, env={**os.environ, "HOME": str(home)}))
    address = wait_for_line(home / "said", r"WebDriver BiDi listening on (ws://\S+)")
    connection = stack.enter_context(connect(f"{address}/session", proxy=None, max_size=None))

    def call(method: str, **parameters: Any) -> Any:
        connection.send(json.dumps({"id": 1, "method": method, "params": parameters}))
        while (answer := json.loads(connection.recv(timeout=PATIENCE))).get("id") != 1:
            pass
        assert answer["type"] == "success", answer
        return answer["result"]

    def ask(promise: str) -> Any:
        found = call("script.evaluate", expression=promise, target={"context": tab}, awaitPromise=True)
        assert found["type"] == "success", found
        return found["result"].get("value")

    call("session.new", capabilities={})
    tab = call("browsingContext.create", type="tab")["context"]
    return lambda address: call("browsingContext.navigate", url=address, wait="complete", context=tab), ask


def webkit(stack: contextlib.ExitStack, home: Path) -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    """The same for WebKitGTK's own small browser, which needs a screen, a virtual one; by WebDriver."""
    said = home / "said"
    with said.open("w") as file:
        screen = ("Xvfb", "-displayfd", "1", "-nolisten", "tcp", "-screen", "0", "1600x1200x24")
        stack.enter_context(running(*screen, stdout=file, stderr=subprocess.DEVNULL))
    environment = {**os.environ, "HOME": str(home), "DISPLAY": f":{wait_for_line(said, r'^([0-9]+)$')}"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    stack.enter_context(running("WebKitWebDriver", f"--port={port}", env=environment, **quiet))

    def call(path: str, **parameters: Any) -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/session{path}", json.dumps(parameters).encode())
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=PATIENCE) as answer:
            return json.load(answer)["value"]

    def ask(promise: str) -> Any:
        # in a task of its own: the driver's script would let promises be kept in the midst of it
        task = f"new Promise((wake) => setTimeout(wake)).then(() => {promise})"
        script = f"const done = arguments[0]; {task}.then(done, (error) => done('!' + error));"
        return call(f"{session}/execute/async", script=script, args=[])

    options = {"binary": str(MINI_BROWSER), "args": ["--automation"]}
    for _ in until_patience():
        with contextlib.suppress(urllib.error.URLError):  # nobody listens yet
            session = f"/{call('', capabilities={'alwaysMatch': {'webkitgtk:browserOptions': options}})['sessionId']}"
            break
    call(f"{session}/timeouts", script=int(1000 * PATIENCE), pageLoad=int(1000 * PATIENCE))
    return lambda address: call(f"{session}/url", url=address), ask


DRIVERS = {
    "firefox": pytest.param(
        firefox, marks=pytest.mark.skipif(not shutil.which("firefox-esr"), reason="no firefox-esr")
    ),
    "webkit": pytest.param(
        webkit,
        marks=pytest.mark.skipif(
            not (MINI_BROWSER and shutil.which("WebKitWebDriver") and shutil.which("Xvfb")),
            reason="no webkit2gtk-driver, or no xvfb",
        ),
    ),
}


@contextlib.contextmanager
def running(*command: str | Path, **settings: Any) -> Iterator[None]:
    """A program that ends with the block."""
    process = subprocess.Popen(command, text=True, **settings)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def until_patience() -> Iterator[None]:
    """Goes on for PATIENCE, ten times a second."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        yield
        time.sleep(0.1)
    raise AssertionError("this took too long")


def wait_for_line(file: Path, pattern: str) -> str:
    for _ in until_patience():
        if match := re.search(pattern, file.read_text(errors="replace"), re.MULTILINE):
            return match[1]
    raise AssertionError


GAMES = {"server": ("tictactoe", "b2,a1"), "file": ("connect4", "44")}
"""The game that each plays, and the moves before the analysis."""
PLAY = """(() => {
    Math.random = () => 0.5;  // which seeds the contestants
    const press = (name) => [...document.querySelectorAll("main button")].find((one) => one.textContent === name).click();
    const play = () => {
        const status = document.querySelector(".headline .status").textContent;
        if (/won|draw/.test(status)) window.end = status;
        else {
            if (status === "Your turn") document.querySelector(".stage .cell.playable")?.dispatchEvent(new MouseEvent("click"));
            setTimeout(play, 50);
        }
    };
    press("New game");
    setTimeout(play, 500);
    return true;
})()"""  # noqa: E501
READY = "document.querySelector('.headline .status')?.textContent === 'Your turn'"
MOVES = "[...document.querySelectorAll('.move')].map((one) => one.textContent).join(' ')"
RESTS = "(() => { const said = document.querySelector('.desk .numbers')?.textContent ?? ''; return /proven|done|most/.test(said) && said; })()"  # noqa: E501
TABLE = "[...document.querySelectorAll('.desk tbody tr')].map((row) => row.textContent)"


def flow(go: Callable[[str], Any], evaluate: Callable[[str], Any], address: str, game: str, moves: str) -> list[Any]:
    """A game against the usual contestant, and an analysis up to its end."""

    def wait(code: str) -> Any:
        for _ in until_patience():
            if found := evaluate(code):
                return found

    go(f"{address}#/play?game={game}")
    wait(READY)
    evaluate(PLAY)
    seen = [wait("window.end"), evaluate(MOVES)]
    evaluate(f"location.hash = '#/analyse?game={game}&moves={moves}'")
    return [*seen, wait(RESTS), evaluate(TABLE)]


@pytest.fixture(scope="module", params=GAMES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """An address, the game there, and moves of it."""
    game, moves = GAMES[request.param]
    if request.param == "server":
        with serving(game) as running:
            yield running.address, game, moves
    else:
        path: Path = tmp_path_factory.mktemp("page") / "page.html"
        path.write_text(small_page(game), encoding="utf-8")
        yield path.as_uri(), game, moves


@pytest.fixture(scope="module")
def expected(place: tuple[str, str, str]) -> list[Any]:
    """What Chromium shows."""
    with running_browser() as browser:
        page = browser.new_page()
        found = flow(page.goto, page.evaluate, *place)
    assert found[1].count(".") >= 5 and len(found[3]) > 5
    return found


@pytest.mark.parametrize("driver", DRIVERS.values(), ids=DRIVERS)
def test_every_browser_shows_the_same_moves_and_the_same_analysis(
    driver: Any, place: Any, expected: Any, tmp_path: Path
):
    with contextlib.ExitStack() as stack:
        go, ask = driver(stack, tmp_path)

        def evaluate(code: str) -> Any:
            return json.loads(ask(f"(async () => JSON.stringify(({code}) ?? null))()"))

        assert flow(go, evaluate, *place) == expected
