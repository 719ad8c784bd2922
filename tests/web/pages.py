"""A page of a browser that Playwright does not drive, with as many of Playwright's methods as the flows use.

Keys and clicks are real ones, which the browser gets from its driver; fields and menus are filled as Playwright does.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PATIENCE = 120.0
"""Seconds for an answer of a browser, on a machine that is busy."""
KEYS = {
    "Enter": "\ue007", "Tab": "\ue004", "Escape": "\ue00c", "Space": " ", "Control": "\ue009", "PageUp": "\ue00e",
    "PageDown": "\ue00f", "End": "\ue010", "Home": "\ue011", "ArrowLeft": "\ue012", "ArrowUp": "\ue013",
    "ArrowRight": "\ue014", "ArrowDown": "\ue015",
}  # fmt: skip
"""The characters that stand for keys in WebDriver."""
FIND = """(steps) => {
    const tidy = (text) => (text ?? "").replace(/\\s+/g, " ").trim();
    const fits = (text, { words, flags, exact }) => (flags !== undefined ? new RegExp(words, flags).test(tidy(text))
        : exact ? tidy(text) === words : tidy(text).toLowerCase().includes(words.toLowerCase()));
    const label = (one) => one.getAttribute("aria-label") ?? one.labels?.[0]?.textContent ?? "";
    const own = (one) => [...one.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join(" ");
    const inside = (nodes, css) => [...new Set(nodes.flatMap((one) => [...one.querySelectorAll(css)]))];
    const ways = {
        css: (nodes, css) => inside(nodes, css),
        role: (nodes, [css, name]) => inside(nodes, css).filter((one) => one.checkVisibility() && fits(label(one) || one.textContent, name)),
        label: (nodes, name) => inside(nodes, "[aria-label], input, select, textarea").filter((one) => fits(label(one), name)),
        text: (nodes, text) => inside(nodes, "body *").filter((one) => fits(own(one), text)),
        holds: (nodes, text) => nodes.filter((one) => fits(one.textContent, text)),
        has: (nodes, css) => nodes.filter((one) => one.querySelector(css)),
        nth: (nodes, number) => [nodes.at(number)].filter(Boolean),
    };
    return steps.reduce((nodes, [way, value]) => ways[way](nodes, value), [document]);
}"""  # noqa: E501
"""The elements that a locator stands for."""
POINT = """async ([one], at) => {
    if (!one || one.disabled || one.closest(":disabled")) return null;
    const place = () => {
        const { x, y, width, height } = one.getBoundingClientRect();
        return at ? [x + at.x, y + at.y] : [x + width / 2, y + height / 2];
    };
    one.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (!document.elementFromPoint(...place())) scrollBy(0, place()[1] - innerHeight / 2); // Firefox does not scroll to a cell
    const before = place();
    await new Promise(requestAnimationFrame);
    if (before.some((length, i) => length !== place()[i])) return null; // it still moves
    const hit = document.elementFromPoint(...place());
    if (!hit || !(one.contains(hit) || hit.contains(one))) return null;
    let meant = null;
    const guard = (event) => {
        meant ??= event.target === hit || one.contains(event.target);
        if (!meant) { event.stopImmediatePropagation(); event.preventDefault(); }
    };
    const events = ["pointerdown", "mousedown", "pointerup", "mouseup", "click"];
    for (const name of events) addEventListener(name, guard, true);
    window.clicked = () => {
        for (const name of events) removeEventListener(name, guard, true);
        return meant;
    };
    return place().map(Math.round);
}"""  # noqa: E501
"""Where to click an element; nothing while something lies over it. A click that meets another element is not heard."""
FILL = """([one], value) => {
    if (!one || one.disabled) return false;
    one.focus();
    one.value = value;
    for (const name of ["input", "change"]) one.dispatchEvent(new Event(name, { bubbles: true }));
    return true;
}"""
SELECT = """([one], value) => {
    const option = [...(one?.options ?? [])].find((option) => option.value === value || option.label === value);
    if (!option || one.disabled) return false;
    one.focus();
    option.selected = true;
    for (const name of ["input", "change"]) one.dispatchEvent(new Event(name, { bubbles: true }));
    return true;
}"""
STATES = {
    "visible": "([one]) => Boolean(one?.checkVisibility())",
    "hidden": "([one]) => !one?.checkVisibility()",
    "attached": "([one]) => Boolean(one)",
    "detached": "([one]) => !one",
}
UNTIL = """async (arg) => {
    const end = performance.now() + 1000;
    while (true) {
        const it = (CODE);
        const found = typeof it === "function" ? await it(arg) : it;
        if (found) return [typeof found === "function" || found instanceof Node || found];
        if (performance.now() > end) return null;
        await new Promise((wake) => setTimeout(wake, 20));
    }
}"""
CHOOSE = """() => {
    HTMLInputElement.prototype.click = function () { window.chooser = this; };
}"""
"""No dialog of the system is opened: the field is remembered that would have opened it."""
CHOSEN = """({ name, text }) => {
    const files = new DataTransfer();
    files.items.add(new File([Uint8Array.from(atob(text), (one) => one.codePointAt(0))], name));
    window.chooser.files = files.files;
    window.chooser.dispatchEvent(new Event("change", { bubbles: true }));
}"""


def wanted(text: str | re.Pattern[str], exact: bool = False) -> dict[str, Any]:
    if isinstance(text, str):
        return {"words": text, "exact": exact}
    return {"words": text.pattern, "flags": "i" if text.flags & re.IGNORECASE else ""}


class Finder:
    """What finds elements: a page, or a locator in it."""

    page: Page
    steps: tuple[Any, ...] = ()

    def find(self, *step: Any) -> Locator:
        return Locator(self.page, (*self.steps, step))

    def locator(self, css: str, has_text: Any = None, has: Locator | None = None) -> Locator:
        found = self.find("css", css)
        if has_text is not None:
            found = found.find("holds", wanted(has_text))
        return found.find("has", has.steps[-1][1]) if has else found

    def get_by_role(self, role: str, name: Any, exact: bool = False) -> Locator:
        return self.find("role", (f"{role}, [role={role}]", wanted(name, exact)))

    def get_by_label(self, name: Any, exact: bool = False) -> Locator:
        return self.find("label", wanted(name, exact))

    def get_by_text(self, text: Any, exact: bool = False) -> Locator:
        return self.find("text", wanted(text, exact))


class Locator(Finder):
    """Elements, which are looked for whenever they are asked for something."""

    def __init__(self, page: Page, steps: tuple[Any, ...]):
        self.page, self.steps = page, steps

    def nth(self, number: int) -> Locator:
        return self.find("nth", number)

    @property
    def first(self) -> Locator:
        return self.nth(0)

    @property
    def last(self) -> Locator:
        return self.nth(-1)

    def _code(self, work: str) -> str:
        return f"({{ steps, arg }}) => ({work})(({FIND})(steps), arg)"

    def _ask(self, work: str, arg: Any = None) -> Any:
        return self.page.evaluate(self._code(work), {"steps": self.steps, "arg": arg})

    def _wait(self, work: str, arg: Any = None) -> Any:
        return self.page.wait_for_function(self._code(work), arg={"steps": self.steps, "arg": arg})

    def _of_one(self, work: str, arg: Any = None) -> Any:
        self._wait(STATES["attached"])
        return self._ask(f"([one], arg) => ({work})(one, arg)", arg)

    def count(self) -> int:
        return int(self._ask("(nodes) => nodes.length"))

    def all(self) -> list[Locator]:
        return [self.nth(number) for number in range(self.count())]

    def wait_for(self, state: str = "visible") -> None:
        self._wait(STATES[state])

    def click(self, delay: float = 0, position: dict[str, float] | None = None) -> None:
        pause = [{"type": "pause", "duration": int(delay)}] if delay else []
        press, release = ({"type": name, "button": 0} for name in ("pointerDown", "pointerUp"))
        kind = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}}
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            x, y = self._wait(POINT, position)
            move = {"type": "pointerMove", "x": x, "y": y, "origin": "viewport", "duration": 0}
            self.page.driver.act({**kind, "actions": [move, press, *pause, release]})
            if self.page.evaluate("window.clicked()"):
                return
        raise AssertionError(f"{self.steps} was not met by a click")

    def press(self, key: str) -> None:
        self.focus()
        self.page.keyboard.press(key)

    def focus(self) -> None:
        self._of_one("(one) => one.focus()")

    def fill(self, value: str) -> None:
        self._wait(FILL, value)

    def check(self) -> None:
        self.click()

    def is_checked(self) -> bool:
        return bool(self._of_one("(one) => one.checked"))

    def select_option(self, value: str) -> None:
        self._wait(SELECT, value)

    def dispatch_event(self, name: str) -> None:
        self._of_one("(one, name) => one.dispatchEvent(new Event(name)) && null", name)

    def evaluate(self, code: str, arg: Any = None) -> Any:
        return self._of_one(code, arg)

    def inner_text(self) -> str:
        return str(self._of_one("(one) => one.innerText ?? one.textContent"))

    def all_inner_texts(self) -> list[str]:
        return list(self._ask("(nodes) => nodes.map((one) => one.innerText ?? one.textContent)"))

    def all_text_contents(self) -> list[str]:
        return list(self._ask("(nodes) => nodes.map((one) => one.textContent)"))

    def get_attribute(self, name: str) -> Any:
        return self._of_one("(one, name) => one.getAttribute(name)", name)

    def input_value(self) -> str:
        return str(self._of_one("(one) => one.value"))

    def bounding_box(self) -> Any:
        return self._of_one("(one) => one.getBoundingClientRect()")

    def is_disabled(self) -> bool:
        return bool(self._of_one("(one) => one.disabled"))

    def is_enabled(self) -> bool:
        return not self.is_disabled()

    def is_visible(self) -> bool:
        return bool(self._ask(STATES["visible"]))

    def is_hidden(self) -> bool:
        return not self.is_visible()


class Keyboard:
    def __init__(self, page: Page):
        self.page = page

    def press(self, keys: str, delay: float = 0) -> None:
        """Presses keys one after the other, as `Control+End`, and releases them the other way round."""
        values = [KEYS.get(key, key) for key in keys.split("+")]
        pause = [{"type": "pause", "duration": int(delay)}] if delay else []
        down = [{"type": "keyDown", "value": value} for value in values]
        up = [{"type": "keyUp", "value": value} for value in reversed(values)]
        self.page.driver.act({"type": "key", "id": "keyboard", "actions": [*down, *pause, *up]})

    def type(self, text: str) -> None:
        for letter in text:
            self.press(letter)


class Download:
    """A file that the browser has saved."""

    def __init__(self) -> None:
        self.value = self
        self.file: Path | None = None

    def path(self) -> Path:
        assert self.file
        return self.file

    def save_as(self, path: Path) -> None:
        path.write_bytes(self.path().read_bytes())


class Chooser:
    """A choice of a file that the page has asked for."""

    def __init__(self, page: Page):
        self.page, self.value = page, self

    def set_files(self, chosen: Any) -> None:
        if isinstance(chosen, Path):
            chosen = {"name": chosen.name, "buffer": chosen.read_bytes()}
        text = base64.b64encode(chosen["buffer"]).decode()
        self.page.evaluate(CHOSEN, {"name": chosen["name"], "text": text})


class Page(Finder):
    """A page; `driver` is one of tests/web/drivers.py."""

    def __init__(self, driver: Any):
        self.driver, self.page, self.keyboard = driver, self, Keyboard(self)

    @property
    def url(self) -> str:
        return str(self.evaluate("location.href"))

    def goto(self, address: str) -> None:
        self.driver.open(address)

    def evaluate(self, code: str, arg: Any = None) -> Any:
        """The value of an expression, or of a function that gets an argument; of a promise, what it promises."""
        call = (
            f"(async () => {{ const it = ({code}); return typeof it === 'function' ? it({json.dumps(arg)}) : it; }})()"
        )
        return self.driver.ask(f"{call}.then((found) => JSON.stringify(found))")

    def wait_for_function(self, code: str, arg: Any = None, **_: Any) -> Any:
        """The first truth that an expression, or a function, gives; it is looked for in the page."""
        end, seen = time.monotonic() + PATIENCE, None
        while time.monotonic() < end:
            try:
                if found := self.evaluate(UNTIL.replace("CODE", code), arg):
                    return found[0]
            except RuntimeError as error:  # the page was left meanwhile
                seen = error
                time.sleep(0.1)
        raise AssertionError(f"{code} did not come: {arg} {seen or ''}")

    def wait_for_selector(self, css: str) -> None:
        self.locator(css).first.wait_for()

    def wait_for_timeout(self, milliseconds: float) -> None:
        time.sleep(milliseconds / 1000)

    def wait_for_url(self, pattern: str) -> None:
        words = ".*".join(map(re.escape, re.split(r"\*+", pattern)))
        self.wait_for_function("words => new RegExp(`^${words}$`).test(location.href)", arg=words)

    def set_viewport_size(self, size: dict[str, int]) -> None:
        self.driver.resize(size)
        self.wait_for_function("width => innerWidth === width", arg=size["width"])

    def reload(self) -> None:
        self._leave("location.reload()")

    def go_back(self) -> None:
        self.evaluate("history.back()")

    def _leave(self, code: str) -> None:
        self.evaluate("window.left = true")
        self.evaluate(f"setTimeout(() => {code}) && null")
        self.wait_for_function("() => !window.left && document.readyState === 'complete'")

    @contextlib.contextmanager
    def expect_download(self) -> Iterator[Download]:
        for path in self.driver.downloads.rglob("*.jsonl"):
            path.unlink()
        download = Download()
        yield download
        end = time.monotonic() + PATIENCE
        while not (found := [path for path in self.driver.downloads.rglob("*.jsonl") if path.stat().st_size]):
            assert time.monotonic() < end, "nothing was saved"
            time.sleep(0.05)
        (download.file,) = found

    @contextlib.contextmanager
    def expect_file_chooser(self) -> Iterator[Chooser]:
        self.evaluate(CHOOSE)
        yield Chooser(self)
        self.wait_for_function("() => Boolean(window.chooser)")
