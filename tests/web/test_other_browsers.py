"""The page in Chromium, Firefox and WebKitGTK: the same moves and analysis, from the server and a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.wasm.published import small_page
from tests.web.browser import BROWSERS, needs_chromium, page_at, running_browser
from tests.web.client import serving

pytestmark = [needs_chromium, pytest.mark.slow]
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
MOVES = "[...document.querySelectorAll('.move')].map((one) => one.textContent).join(' ')"
RESTS = "(() => { const said = document.querySelector('.desk .numbers')?.textContent ?? ''; return /proven|done|most/.test(said) && said; })()"  # noqa: E501
TABLE = "[...document.querySelectorAll('.desk tbody tr')].map((row) => row.textContent)"


def flow(name: str, address: str, game: str, moves: str) -> dict[str, Any]:
    """A game against the usual contestant, and an analysis up to its end."""
    with running_browser(name) as browser, page_at(browser, f"{address}#/play?game={game}") as page:
        page.wait_for_function("() => document.querySelector('.headline .status')?.textContent === 'Your turn'")
        page.evaluate(PLAY)
        page.wait_for_function("() => window.end")
        seen = {"end": page.evaluate("window.end"), "moves": page.evaluate(MOVES)}
        page.evaluate(f"location.hash = '#/analyse?game={game}&moves={moves}'")
        page.wait_for_function(f"() => {RESTS}")
        return {**seen, "said": page.evaluate(RESTS), "table": page.evaluate(TABLE)}


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
def expected(place: tuple[str, str, str]) -> dict[str, Any]:
    """What Chromium shows."""
    found = flow("chromium", *place)
    assert found["moves"].count(".") >= 5 and len(found["table"]) > 5
    return found


@pytest.mark.parametrize("name", BROWSERS[1:])
def test_every_browser_shows_the_same_moves_and_the_same_analysis(name: str, place: Any, expected: dict[str, Any]):
    assert flow(name, *place) == expected
