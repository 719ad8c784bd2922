"""A real browser for the tests of the page: Chromium, driven by Playwright."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed: apt-get install chromium")
GAMES = ["connect4", "othello", "hex", "dots_and_boxes", "line_game"]
each_game = pytest.mark.parametrize("game", GAMES)
PATIENCE = 120_000
"""Milliseconds: a search may have to be compiled first, on a machine that is busy."""
DRAWN = "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
"""Waits until the browser has drawn; it takes the focus from what is disabled only then."""
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
NARROWEST = 320
"""The width of the smallest phones, and of a screen of 1280 at a zoom of 400%."""


LOST = ("WebSocket connection", "net::ERR", "establish a connection", "was interrupted while the page")
"""What browsers say on the console when the server is gone."""


@contextlib.contextmanager
def running_browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextlib.contextmanager
def page_at(
    browser: Any, address: str, size: dict[str, int] = DESKTOP, expects: tuple[str, ...] = (), **settings: Any
) -> Iterator[Any]:
    """A page of its own; it must say nothing on the console but what is expected, and ask nobody but its server."""
    context = browser.new_context(viewport=size, reduced_motion="reduce", accept_downloads=True, **settings)
    context.set_default_timeout(PATIENCE)
    page, said = context.new_page(), list[str]()
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("request", lambda request: said.append(request.url))
    try:
        page.goto(address)
        yield page
        own = (address.partition("#")[0], "http://127.0.0.1:", "ws://127.0.0.1:", "blob:", "data:")
        assert [text for text in said if not text.startswith(own) and not any(word in text for word in expects)] == []
    finally:
        context.close()


OPEN = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
WIDER = """() => [...document.querySelectorAll("body *")].filter((one) => {
    const { right, width } = one.getBoundingClientRect();
    const room = one.closest(".card")?.getBoundingClientRect().right ?? innerWidth;
    return width > 1 && right > Math.min(room, innerWidth) + 1 && !one.closest(".scroll");
}).map((one) => one.outerHTML.slice(0, 80))"""


def fits_phones(page: Any) -> bool:
    """Whether nothing is wider than a phone of 360 or 320 pixels, or than its card, when all is unfolded."""
    page.evaluate(OPEN)
    for width in (PHONE["width"], NARROWEST):
        page.set_viewport_size({**PHONE, "width": width})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(WIDER) == []
    page.set_viewport_size(PHONE)
    return True


def status(page: Any) -> str:
    return page.locator(".headline .status").inner_text()


def wait_status(page: Any, words: str) -> None:
    """Waits until the status says one of the words, a regular expression."""
    page.wait_for_function(
        "words => new RegExp(words).test(document.querySelector('.headline .status')?.textContent ?? '')", arg=words
    )


OVER = "won|draw|resigned"
READY = f"Your turn|to move|{OVER}"


def play_on(page: Any, move: Any, most: int = 120) -> str:
    """Plays by `move(page)` whenever it is one's turn, until the game is over; returns the status then."""
    for _ in range(most):
        wait_status(page, READY)
        now = status(page)
        if any(word in now for word in OVER.split("|")):
            return now
        moves = page.locator(".move").count()
        move(page)
        page.wait_for_function("count => document.querySelectorAll('.move').length > count", arg=moves)
    raise AssertionError("the game does not end")


def click_first(page: Any) -> None:
    """Clicks the first cell that can be played, and then where its piece can go; or the first button."""
    cells = page.locator(".stage .cell.playable")
    if not cells.count():
        page.locator(".stage .actions button").first.click()
        return
    cells.first.click()
    if page.locator(".stage .cell[aria-label*=picked]").count():
        cells.first.click()


CONTRAST = """node => {
    const channels = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const light = (colour) => colour.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    let ground = node;
    while (/^rgba.*, 0\\)$/.test(getComputedStyle(ground).backgroundColor)) ground = ground.parentElement;
    const behind = channels(getComputedStyle(ground).backgroundColor);
    let seen = 1;
    for (let one = node; one; one = one.parentElement) seen *= getComputedStyle(one).opacity;
    const colour = channels(getComputedStyle(node).color).map((c, i) => seen * c + (1 - seen) * behind[i]);
    const [dark, bright] = [light(colour), light(behind)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
}"""
"""The contrast of a text on what is behind it, as WCAG 2 defines it: 4.5 is enough."""
IN_THE_VIEW = "document.activeElement.closest('main') !== null"
FOCUSED = "document.activeElement.getAttribute('aria-label')"


def press_first(page: Any) -> None:
    """Finds a cell that can be played by Page Down, and presses Enter there; or presses the first button."""
    if not page.locator(".stage .cell.playable").count():
        page.locator(".stage .actions button").first.focus()
        page.keyboard.press("Enter")
        return
    page.locator(".stage .cell[tabindex='0']").focus()
    page.keyboard.press("PageDown")
    assert "can be played" in page.evaluate(FOCUSED)
    page.keyboard.press("Enter")
    if page.locator(".stage .cell[aria-label*=picked]").count():
        page.keyboard.press("PageDown")
        page.keyboard.press("Enter")


def choose_opponent(page: Any, name: str, side: int = 1) -> None:
    page.locator(".seat").nth(side).locator("select").first.select_option(name)
