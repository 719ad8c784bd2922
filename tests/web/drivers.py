"""Firefox and WebKitGTK as Debian has them, driven without Playwright: by WebDriver BiDi and by WebDriver."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

from tests.web.browser import running_chromium

PATIENCE = 120.0
"""Seconds for an answer of a browser, on a machine that is busy."""
SHOW, PORT, NUMBER = "Xvfb", r"WebDriver BiDi listening on (ws://\S+)", r"^(\d+)$"
MINI_BROWSER = next(iter(sorted(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"))), None)


class Tab:
    """A page in any browser: `open(address)`, and `ask(code)`, the value of an expression of JavaScript."""

    def __init__(self, version: str, open_address: Callable[[str], Any], ask: Callable[[str], Any]):
        self.version, self.open, self.ask = version, open_address, ask

    def wait(self, code: str) -> Any:
        """The first truth that an expression has."""
        end = time.monotonic() + PATIENCE
        while not (found := self.ask(code)):
            assert time.monotonic() < end, f"{code} did not come"
            time.sleep(0.1)
        return found


@contextlib.contextmanager
def chromium() -> Iterator[Tab]:
    with running_chromium() as browser:
        page = browser.new_page()
        yield Tab(browser.version, page.goto, page.evaluate)


@contextlib.contextmanager
def running(*command: str | Path, **settings: Any) -> Iterator[subprocess.Popen[str]]:
    """A program that ends with the block."""
    process = subprocess.Popen(command, text=True, **settings)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


@contextlib.contextmanager
def firefox() -> Iterator[Tab]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, contextlib.ExitStack() as stack:
        command = ("firefox-esr", "--headless", "--no-remote", "--profile", home, "--remote-debugging-port", "0")
        said = stack.enter_context((Path(home) / "said").open("w"))
        stack.enter_context(running(*command, stdout=said, stderr=said, env={**os.environ, "HOME": home}))
        address = _wait_for_line(Path(home) / "said", PORT)
        connection = stack.enter_context(connect(f"{address}/session", proxy=None, max_size=None))
        count = 0

        def call(method: str, **parameters: Any) -> Any:
            nonlocal count
            count += 1
            connection.send(json.dumps({"id": count, "method": method, "params": parameters}))
            while (answer := json.loads(connection.recv(timeout=PATIENCE))).get("id") != count:
                pass
            assert answer["type"] == "success", answer
            return answer["result"]

        def ask(code: str) -> Any:
            found = call("script.evaluate", expression=f"JSON.stringify({code})", target=tab, awaitPromise=False)
            assert found["type"] == "success", found
            return json.loads(found["result"].get("value", "null"))

        version = call("session.new", capabilities={})["capabilities"]["browserVersion"]
        tab = {"context": call("browsingContext.getTree")["contexts"][0]["context"]}
        yield Tab(version, lambda url: call("browsingContext.navigate", url=url, wait="complete", **tab), ask)


@contextlib.contextmanager
def webkit() -> Iterator[Tab]:
    """WebKitGTK's own small browser, which needs a screen: a virtual one."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, contextlib.ExitStack() as stack:
        said = Path(home) / "said"
        with said.open("w") as file:
            stack.enter_context(
                running(SHOW, "-displayfd", "1", "-nolisten", "tcp", stdout=file, stderr=subprocess.DEVNULL)
            )
        display = f":{_wait_for_line(said, NUMBER)}"
        port = _free_port()
        environment = {**os.environ, "HOME": home, "DISPLAY": display}
        stack.enter_context(
            running(
                "WebKitWebDriver",
                f"--port={port}",
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        )

        def call(path: str, **parameters: Any) -> Any:
            where = f"http://127.0.0.1:{port}/session{path}"
            request = urllib.request.Request(where, json.dumps(parameters).encode())
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]

        options = {"binary": str(MINI_BROWSER), "args": ["--automation"]}
        wanted = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        made = _retry(lambda: call("", capabilities=wanted))
        session = f"/{made['sessionId']}"
        yield Tab(
            made["capabilities"]["browserVersion"],
            lambda url: call(f"{session}/url", url=url),
            lambda code: call(f"{session}/execute/sync", script=f"return {code}", args=[]),
        )


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _retry(work: Callable[[], Any]) -> Any:
    """What the work gives, once somebody listens."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return work()
        except urllib.error.URLError:
            assert time.monotonic() < end
            time.sleep(0.1)


def _wait_for_line(file: Path, pattern: str) -> str:
    end = time.monotonic() + PATIENCE
    while not (match := re.search(pattern, file.read_text(errors="replace"), re.MULTILINE)):
        assert time.monotonic() < end, file.read_text(errors="replace")
        time.sleep(0.1)
    return match[1]


DRIVERS = {"firefox": firefox, "webkit": webkit}
MISSING = {
    "firefox": "" if shutil.which("firefox-esr") else "apt-get install firefox-esr",
    "webkit": ""
    if MINI_BROWSER and shutil.which("WebKitWebDriver") and shutil.which(SHOW)
    else "apt-get install webkit2gtk-driver xvfb",
}
"""How to install what a browser needs here; empty where it is there."""
