"""Published files in a real browser, opened from disk with the network refused.

These are the flows of tests/web in which the engine in the page does a server's work: games to their end, a hint, an
analysis that grows, the truth, mistakes, a record; and nothing on the console.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from alphazero.catalogue import registry
from alphazero.game.kernels import Kernels
from tests.wasm.engines import random_games
from tests.wasm.published import MARKUP, small_page
from tests.web.browser import (
    DESKTOP,
    PHONE,
    choose_opponent,
    click_first,
    fits_phones,
    needs_chromium,
    page_at,
    play_on,
    press_first,
    running_browser,
    status,
    wait_status,
)
from tests.web.walk import STATES, press_every_two_buttons

pytestmark = needs_chromium
GAMES = ["tictactoe", "connect4", "breakthrough", "dots_and_boxes"]
each_game = pytest.mark.parametrize(
    "game", [pytest.param(game, marks=() if game == "tictactoe" else pytest.mark.slow) for game in GAMES]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as running:
        yield running


def address_of(folder: Path, game: str) -> str:
    """The address of a game's page on disk."""
    path = folder / f"{game}.html"
    if not path.exists():
        path.write_text(small_page(game), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def open_page(browser: Any, folder: Path) -> Iterator[Any]:
    """Opens a game's page. At the end: it has asked for nothing but itself, and no error and no warning was left."""
    with contextlib.ExitStack() as stack:

        def open_one(game: str, rest: str = "", size: dict[str, int] = DESKTOP) -> Any:
            page = stack.enter_context(page_at(browser, address_of(folder, game) + rest, size, offline=True))
            page.locator(".stage .cell, .stage .text-board").first.wait_for()
            stack.callback(lambda: page.evaluate("document.title !== 'run'") or pytest.fail("a name was run"))
            return page

        yield open_one


def quick(page: Any, seat: int = 1) -> None:
    """Lets the net play without a search."""
    page.locator(".seat").nth(seat).locator("input[type=range]").fill("0")


@each_game
@pytest.mark.parametrize("move", [click_first, press_first], ids=["mouse", "keyboard"])
def test_a_game_is_played_to_its_end(open_page: Any, game: str, move: Any):
    page = open_page(game)
    wait_status(page, "Your turn")
    quick(page)
    assert re.search("won|draw", play_on(page, move))
    assert re.search("won|draw", page.locator("#said").inner_text()), "screen readers hear the end"
    if move is press_first:
        page.keyboard.press("n")
        wait_status(page, "Your turn")


@each_game
def test_a_game_is_played_to_its_end_on_a_phone(open_page: Any, game: str):
    page = open_page(game, size=PHONE)
    wait_status(page, "Your turn")
    quick(page)
    assert re.search("won|draw", play_on(page, click_first))
    assert fits_phones(page)
    page.get_by_role("button", name="Analyse", exact=True).first.click()
    page.wait_for_selector(".analysis .cell")
    assert fits_phones(page)


@pytest.mark.parametrize(
    "game", ["pig", *(pytest.param(game, marks=pytest.mark.slow) for game in ("backgammon", "2048"))]
)
def test_a_game_with_dice_is_played_on_a_phone(open_page: Any, game: str):
    page = open_page(game, size=PHONE)
    rolled = page.locator(".move.rolled")
    if game != "2048":
        choose_opponent(page, "random")
    for _ in range(4):
        wait_status(page, "Your turn")
        count = page.locator(".move").count()
        click_first(page)
        page.wait_for_function("count => document.querySelectorAll('.move').length > count", arg=count)
    wait_status(page, "Your turn")
    assert re.fullmatch("[a-d][1-4]=[24]" if game == "2048" else "rolled [1-6]+", rolled.first.inner_text())
    assert ("points" in status(page)) == (game == "2048")
    page.get_by_role("button", name="Analyse", exact=True).first.click()
    page.wait_for_selector(".analysis .lines tbody tr")
    page.wait_for_function("() => /expected/.test(document.querySelector('.bar-text').textContent)")
    assert fits_phones(page)
    assert ("First player" in page.locator("main").inner_text()) == (game != "2048")


def test_three_sit_at_one_file(open_page: Any):
    """You, a player without a net and the net: a game to its end, and a bar for each in the analysis."""
    page = open_page("tictacmo", size=PHONE)
    choose_opponent(page, "random", 1)
    quick(page, 2)
    assert re.search("won|draw", play_on(page, click_first))
    page.get_by_role("button", name="Analyse", exact=True).first.click()
    page.get_by_role("button", name="To the start").click()
    page.wait_for_selector(".analysis .lines tbody tr")
    page.wait_for_function("() => /^Third player: .\\d/.test(document.querySelectorAll('.bar-text')[2]?.textContent)")
    assert fits_phones(page)


def test_a_wrong_move_a_hint_a_new_game_and_the_other_side(open_page: Any):
    page = open_page("tictactoe")
    wait_status(page, "Your turn")
    page.get_by_label("Type a move").fill("z9")
    page.keyboard.press("Enter")
    page.locator("#trouble", has_text="not a legal action").get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Hint", exact=True).click()
    page.wait_for_selector(".stage .best")
    assert "expected score" in page.locator(".detail").inner_text()
    click_first(page)
    page.locator(".move").nth(2).wait_for()
    page.get_by_role("button", name="New game").click()
    page.locator(".move").nth(1).wait_for(state="detached")
    page.get_by_role("button", name="Switch sides").click()
    page.locator(".move").nth(1).wait_for()


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_after_every_two_buttons_the_file_says_whose_turn_it_is_and_what_to_do(open_page: Any, state: str):
    press_every_two_buttons(open_page("tictactoe"), "#/play?game=tictactoe", state, "net")


WATCH_IT_GROW = """() => {
    let last = Infinity;
    const look = () => {
        const numbers = document.querySelector(".desk .numbers")?.textContent?.replaceAll(",", "");
        const count = Number.parseInt(numbers);
        window.grown = last > 100 && count > last;
        last = count;
        if (!window.grown) requestAnimationFrame(look);
    };
    [...document.querySelectorAll(".desk button")].find((button) => button.textContent === "Clear").click();
    requestAnimationFrame(look);
}"""
"""Begins the analysis anew, and looks in every frame: the whole search takes less than a second on a fast machine."""


def test_an_analysis_grows_and_its_tree_is_walked(open_page: Any):
    page = open_page("connect4", "#/analyse?game=connect4&moves=44")
    page.wait_for_function("() => document.querySelector('.desk .numbers')?.textContent?.includes('simulations')")
    page.evaluate(WATCH_IT_GROW)
    page.wait_for_function("() => window.grown")
    page.locator(".tree summary").click()
    page.locator(".tree tbody button").first.click()
    page.wait_for_function("() => document.querySelectorAll('.crumbs button').length === 2")
    page.get_by_label("On the board").select_option("policy")
    page.wait_for_function("() => document.querySelectorAll('.stage .number').length === 7")


def test_the_truth_is_shown_and_mistakes_are_found_by_it(open_page: Any):
    games = random_games(Kernels(registry.load("connect4").game), 20, seed=7)
    late = ".".join(map(str, next(actions for actions in games if len(actions) > 25)))
    page = open_page("connect4", f"#/analyse?game=connect4&actions={late}&ply=16")
    page.wait_for_selector(".exact-line.known")
    page.wait_for_selector("td.exact")
    assert page.locator("td.exact", has_text="★").count() >= 1
    page.get_by_label("On the board").select_option("exact")
    page.wait_for_function("() => document.querySelectorAll('.stage svg.drawing .number').length > 2")
    texts = page.locator(".stage svg.drawing .number").all_text_contents()
    assert all(re.fullmatch(r"[WDL]\d*", text) for text in texts)
    page.get_by_role("button", name="Review the game").click()
    page.wait_for_selector(".accuracy")
    assert "exact results where they are known" in page.locator(".review-card .numbers").inner_text()
    assert page.locator(".mistakes li", has_text=re.compile("turns a")).count() >= 1
    page.locator(".mistakes li").last.get_by_role("button", name=re.compile("^Try move")).click()
    wait_status(page, "Your turn")


def test_a_game_is_saved_and_loaded(open_page: Any, tmp_path: Path):
    page = open_page("tictactoe")
    wait_status(page, "Your turn")
    click_first(page)
    page.locator(".move").nth(2).wait_for()
    wait_status(page, "Your turn")
    words = page.locator(".move").all_inner_texts()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save game").click()
    download.value.save_as(tmp_path / "game.jsonl")
    page.get_by_role("button", name="New game").click()
    page.locator(".move").nth(1).wait_for(state="detached")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Load game").click()
    chooser.value.set_files(tmp_path / "game.jsonl")
    page.locator(".move").nth(2).wait_for()
    assert page.locator(".move").all_inner_texts() == words


def test_markup_in_names_is_shown_as_text(open_page: Any):
    page = open_page("tictactoe")
    wait_status(page, "Your turn")
    assert page.locator("option", has_text=MARKUP).count() >= 2
    assert page.get_by_text(MARKUP).count() >= 1
    assert page.locator('img[src="x"]').count() == 0
