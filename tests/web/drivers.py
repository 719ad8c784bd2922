"""Firefox and WebKitGTK as Debian has them, by WebDriver BiDi and by WebDriver, behind Playwright's names of methods.

A flow is written once, for a page of Playwright. Chromium's page is Playwright's; the other two get a `Page` of
tests/web/pages.py, on top of the few things that these drivers do: open an address, run JavaScript, press keys and
buttons of the mouse, give the window a size.
"""

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

from tests.web.pages import PATIENCE, Page

SHOW, PORT, NUMBER = "Xvfb", r"WebDriver BiDi listening on (ws://\S+)", r"^(\d+)$"
MINI_BROWSER = next(iter(sorted(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"))), None)
PREFERENCES = {"browser.download.folderList": 2, "browser.download.useDownloadDir": True, "ui.prefersReducedMotion": 1}


class Firefox:
    """Firefox: each page is a tab with storage of its own."""

    def __init__(self, stack: contextlib.ExitStack, home: Path):
        wanted = {**PREFERENCES, "browser.download.dir": str(home / "downloads")}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in wanted.items()]
        (home / "user.js").write_text("".join(lines))
        command = ("firefox-esr", "--headless", "--no-remote", "--profile", home, "--remote-debugging-port", "0")
        said = stack.enter_context((home / "said").open("w"))
        stack.enter_context(running(*command, stdout=said, stderr=said, env={**os.environ, "HOME": str(home)}))
        address = _wait_for_line(home / "said", PORT)
        self.connection = stack.enter_context(connect(f"{address}/session", proxy=None, max_size=None))
        self.count, self.downloads = 0, home / "downloads"
        self.messages = list[str]()
        self.version = self.call("session.new", capabilities={})["capabilities"]["browserVersion"]
        self.call("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])

    def call(self, method: str, **parameters: Any) -> Any:
        self.count += 1
        self.connection.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while (answer := json.loads(self.connection.recv(timeout=PATIENCE))).get("id") != self.count:
            event = answer.get("params", {})
            if answer.get("method") == "log.entryAdded":
                self.messages.append(f"{event['level']}: {event['text']}")
            elif answer.get("method") == "network.beforeRequestSent":
                self.messages.append(event["request"]["url"])
        if answer["type"] != "success":
            raise RuntimeError(answer)
        return answer["result"]

    def begin(self) -> None:
        self.user = self.call("browser.createUserContext")["userContext"]
        self.tab = self.call("browsingContext.create", type="tab", userContext=self.user)["context"]
        self.call("browsingContext.activate", context=self.tab)
        self.messages.clear()

    def end(self) -> None:
        self.call("browser.removeUserContext", userContext=self.user)

    def open(self, address: str) -> None:
        self.call("browsingContext.navigate", url=address, wait="complete", context=self.tab)

    def ask(self, promise: str) -> Any:
        found = self.call("script.evaluate", expression=promise, target={"context": self.tab}, awaitPromise=True)
        if found["type"] != "success":
            raise RuntimeError(found["exceptionDetails"]["text"])
        return json.loads(found["result"].get("value", "null"))

    def act(self, source: dict[str, Any]) -> None:
        self.call("input.performActions", context=self.tab, actions=[source])

    def resize(self, size: dict[str, int]) -> None:
        self.call("browsingContext.setViewport", context=self.tab, viewport=size)

    def said(self) -> list[str]:
        """What was on the console since the page was begun, and the addresses that it asked for."""
        self.ask("Promise.resolve('0')")  # what was said before its answer has come
        return self.messages


class WebKit:
    """WebKitGTK's own small browser, which needs a screen, a virtual one: each page is a session of its own."""

    def __init__(self, stack: contextlib.ExitStack, home: Path):
        said, settings = home / "said", home / ".config" / "gtk-3.0"
        settings.mkdir(parents=True)
        (settings / "gtk.css").write_text("* { min-width: 0; padding: 0; margin: 0; font-size: 1px; }")
        (settings / "settings.ini").write_text("[Settings]\ngtk-enable-animations=false\n")
        with said.open("w") as file:
            screen = (SHOW, "-displayfd", "1", "-nolisten", "tcp", "-screen", "0", "1600x1200x24")
            stack.enter_context(running(*screen, stdout=file, stderr=subprocess.DEVNULL))
        environment = {**os.environ, "HOME": str(home), "DISPLAY": f":{_wait_for_line(said, NUMBER)}"}
        self.port, self.downloads, self.version = _free_port(), home, ""
        self.session: str | None = None
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        stack.enter_context(running("WebKitWebDriver", f"--port={self.port}", env=environment, **quiet))

    def call(self, path: str, method: str = "POST", **parameters: Any) -> Any:
        where = f"http://127.0.0.1:{self.port}/session{path}"
        data = json.dumps(parameters).encode() if method == "POST" else None
        request = urllib.request.Request(where, data, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from error

    def begin(self) -> None:
        options = {"binary": str(MINI_BROWSER), "args": ["--automation"]}
        wanted = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        made = _retry(lambda: self.call("", capabilities=wanted))
        self.session, self.version = f"/{made['sessionId']}", made["capabilities"]["browserVersion"]
        self.call(f"{self.session}/timeouts", script=int(1000 * PATIENCE), pageLoad=int(1000 * PATIENCE))

    def end(self) -> None:
        self.call(str(self.session), "DELETE")

    def open(self, address: str) -> None:
        self.call(f"{self.session}/url", url=address)

    def ask(self, promise: str) -> Any:
        # in a task of its own: the driver's script would let promises be kept in the midst of it
        task = f"new Promise((wake) => setTimeout(wake)).then(() => {promise})"
        script = f"const done = arguments[0]; {task}.then(done, (error) => done('!' + error));"
        found = self.call(f"{self.session}/execute/async", script=script, args=[])
        if isinstance(found, str) and found.startswith("!"):
            raise RuntimeError(found)
        return json.loads(found or "null")

    def act(self, source: dict[str, Any]) -> None:
        self.call(f"{self.session}/actions", actions=[source])

    def resize(self, size: dict[str, int]) -> None:
        self.call(f"{self.session}/window/rect", **size)

    def said(self) -> list[str]:
        """Nothing: this driver does not tell what is on the console."""
        return []


@contextlib.contextmanager
def running(*command: str | Path, **settings: Any) -> Iterator[subprocess.Popen[str]]:
    """A program that ends with the block."""
    process = subprocess.Popen(command, text=True, **settings)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


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


DRIVERS = {"firefox": Firefox, "webkit": WebKit}
MISSING = {
    "firefox": "" if shutil.which("firefox-esr") else "apt-get install firefox-esr",
    "webkit": ""
    if MINI_BROWSER and shutil.which("WebKitWebDriver") and shutil.which(SHOW)
    else "apt-get install webkit2gtk-driver xvfb",
}
"""How to install what a browser needs here; empty where it is there."""


class Browser:
    """Firefox or WebKitGTK."""

    def __init__(self, driver: Any):
        self.driver = driver

    @contextlib.contextmanager
    def page(self, size: dict[str, int]) -> Iterator[tuple[Page, Callable[[], list[str]]]]:
        """A page of its own, and what gives all that it has said."""
        self.driver.begin()
        try:
            page = Page(self.driver)
            page.set_viewport_size(size)
            yield page, self.driver.said
        finally:
            self.driver.end()


@contextlib.contextmanager
def running_driver(name: str) -> Iterator[Browser]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, contextlib.ExitStack() as stack:
        yield Browser(DRIVERS[name](stack, Path(home)))
