"""Playing in a real browser: by mouse, by keyboard, on a phone's width; undo, hint, two clicks, records, links."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from alphazero.catalogue import registry
from alphazero.web.engine import Engine, Stage
from alphazero.web.server import PageServer
from tests.web.browser import (
    CONTRAST,
    FOCUSED,
    IN_THE_VIEW,
    LOST,
    PHONE,
    choose_opponent,
    click_first,
    each_game,
    fits_phones,
    needs_chromium,
    page_at,
    play_on,
    press_first,
    status,
    wait_status,
)
from tests.web.client import serving

pytestmark = needs_chromium
VIEW = "play"


@each_game
def test_a_game_is_played_to_its_end_by_mouse(browser, address, game):
    with page_at(browser, address(game)) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "random")
        end = play_on(page, click_first)
        assert re.search("won|draw", end)
        assert page.locator(".stage .cell.playable").count() == 0
        assert "The game ended after" in page.locator(".detail").inner_text()


@each_game
def test_a_game_is_played_to_its_end_by_keyboard(browser, address, game):
    with page_at(browser, address(game)) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "random")
        end = play_on(page, press_first)
        assert re.search("won|draw", end)
        # screen readers hear the cells and the end
        assert re.search("won|draw", page.locator("#said").inner_text())
        page.keyboard.press("n")
        wait_status(page, "Your turn")


@each_game
def test_a_game_is_played_to_its_end_on_a_phone(browser, address, game):
    with page_at(browser, address(game), PHONE, has_touch=True) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "random")
        assert re.search("won|draw", play_on(page, click_first))
        assert fits_phones(page)
        page.get_by_role("button", name="Analyse", exact=True).first.click()
        page.wait_for_selector(".analysis .cell")
        assert fits_phones(page)


@each_game
def test_undo_takes_both_plies_back_and_redo_brings_them_again(browser, address, game):
    with page_at(browser, address(game)) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "random")
        undo, redo = (page.get_by_role("button", name=name, exact=True) for name in ("Undo", "Redo"))
        assert undo.is_disabled()
        said = page.locator("#said")
        for _ in range(2):
            wait_status(page, "Your turn")
            moves = page.locator(".move").count()
            click_first(page)
            page.wait_for_function("count => document.querySelectorAll('.move').length > count + 1", arg=moves)
        wait_status(page, "Your turn")
        words = page.locator(".move").all_inner_texts()
        page.keyboard.press("n")  # a new game, but not in the middle of one
        said.evaluate("said => said.replaceChildren()")
        undo.click()
        page.wait_for_function("() => document.querySelectorAll('.move.ahead').length > 0")
        assert page.locator(".move").all_inner_texts() == words, "the moves stay, to be played again"
        assert status(page) == "Your turn" and said.inner_text().endswith("Your turn"), "screen readers hear it"
        redo.click()
        page.wait_for_function("() => document.querySelectorAll('.move.ahead').length === 0")
        page.keyboard.press("u")
        page.wait_for_function("() => document.querySelectorAll('.move.ahead').length > 0")
        page.keyboard.press("u")
        page.wait_for_function("() => document.querySelector('.move[aria-current=step]')?.textContent === 'Start'")
        assert undo.is_disabled()


@each_game
def test_a_hint_points_out_a_move(browser, address, game):
    with page_at(browser, address(game)) as page:
        wait_status(page, "Your turn")
        page.get_by_role("button", name="Hint", exact=True).click()
        page.wait_for_selector(".stage .best")
        assert "expected score" in page.locator(".detail").inner_text()


def test_the_move_that_is_shown_can_be_read_under_the_mouse(browser, address):
    """Once its light text was on the light ground that buttons have there."""
    with page_at(browser, address("connect4")) as page:
        wait_status(page, "Your turn")
        click_first(page)
        wait_status(page, "Your turn")
        shown = page.locator(".move[aria-current=step]")
        shown.hover()
        for scheme in ("light", "dark"):
            page.evaluate("scheme => { document.documentElement.dataset.theme = scheme; }", scheme)
            assert shown.evaluate(CONTRAST) >= 4.5


def test_real_arrow_keys_move_over_the_board(browser, address):
    with page_at(browser, address("tictactoe")) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "random")
        page.keyboard.press("Tab")
        page.locator(".stage .cell[tabindex='0']").focus()
        label = "document.activeElement.getAttribute('aria-label')"
        page.keyboard.press("Control+ArrowRight")  # the browser's own
        assert page.evaluate(label) == "a1, empty, can be played"
        for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft"):
            page.keyboard.press(key)
        assert page.evaluate(label) == "b1, empty, can be played"
        assert page.locator(".focus-over").count() == 1, "the focus is seen"
        page.keyboard.press("Space")
        page.wait_for_function("() => document.querySelectorAll('.move').length >= 2")
        assert page.locator(".move").nth(1).inner_text() == "1.b1"


def test_two_clicks_play_a_move_and_escape_takes_the_first_back(browser, address):
    with page_at(browser, address("breakthrough")) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "random")
        page.get_by_role("button", name="b2, first player's pawn", exact=False).click()
        assert page.get_by_role("button", name="b2, first player's pawn, picked").count() == 1
        page.keyboard.press("Escape")
        assert page.locator("[aria-label*=picked]").count() == 0
        page.get_by_role("button", name="b2, first player's pawn", exact=False).click()
        page.get_by_role("button", name=re.compile("^c3, empty, can be played")).click()
        page.wait_for_function("() => document.querySelectorAll('.move').length >= 2")
        assert page.locator(".move").nth(1).inner_text() == "1.b2-c3"
        assert re.search("won", play_on(page, click_first))


def test_a_board_of_two_sides_is_turned_for_who_sits_there_and_says_who_has_more(browser, address):
    top = """() => [...document.querySelectorAll('.cell')].map((cell) => [cell.getBoundingClientRect().y, cell])
        .sort(([a], [b]) => a - b)[0][1].getAttribute('aria-label')"""
    with page_at(browser, address("breakthrough", "&moves=b2-b3 a5-a4 b3xa4")) as page:
        wait_status(page, "turn|to move|thinks")
        assert page.evaluate(top).startswith("a6")
        assert page.locator(".material [role=img]").get_attribute("aria-label") == "First player has more: pawn"
        page.get_by_role("button", name="Turn the board").click()
        page.wait_for_function(f"() => ({top})().includes('1, first')")
        page.get_by_role("button", name="Turn the board").click()
        page.wait_for_function(f"() => ({top})().includes('6, second')")
        page.get_by_role("button", name="Switch sides").click()
        page.wait_for_function(f"() => ({top})().includes('1, first')")


def test_the_winning_line_and_the_end_are_shown(browser, address):
    with page_at(browser, address("connect4", "&moves=1212121")) as page:
        wait_status(page, "has won|have won")
        assert page.locator("[aria-label*=winning]").count() == 4
        assert page.locator("[aria-label*='last move']").count() == 1


def test_two_people_at_one_screen_and_resigning(browser, address):
    with page_at(browser, address("connect4")) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "human")
        wait_status(page, "First player to move")
        click_first(page)
        wait_status(page, "Second player to move")
        page.get_by_role("button", name="Resign").click()
        wait_status(page, "Second player has resigned. First player has won.")
        with page.expect_download() as download:
            page.get_by_role("button", name="Save game").click()
        saved = json.loads(Path(download.value.path()).read_text())
        assert (saved["result"], saved["forfeit"]) == ("1-0", "human: resigns")


def test_resigning_ends_the_game_only_where_one_resigned(browser, address):
    with page_at(browser, address("connect4", "&moves=44")) as page:
        wait_status(page, "Your turn")
        page.get_by_role("button", name="Resign").click()
        wait_status(page, "You have resigned")
        page.locator(".move").first.click()
        wait_status(page, "Your turn")
        page.locator(".move").nth(2).click()
        wait_status(page, "You have resigned")
        page.evaluate("location.hash = '#/play?game=connect4&actions=3.3.2.2'")
        page.wait_for_function("() => document.querySelectorAll('.move').length === 5")
        wait_status(page, "Your turn")
        assert page.locator(".cell.playable").count() == 42


def test_the_contestants_can_play_each_other(browser, address):
    with page_at(browser, address("tictactoe")) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "random", 1)
        choose_opponent(page, "greedy", 0)
        wait_status(page, "greedy has won|random has won|draw")


CLICK_AND_LEAVE = """name => {
    document.querySelectorAll(".stage .cell.playable")[4].dispatchEvent(new MouseEvent("click", { bubbles: true }));
    [...document.querySelectorAll("button.main, .headline button")].find((one) => one.textContent === name).click();
}"""
"""A move, and another view before the position after it has come."""
PIECES = "document.querySelectorAll(\".stage .cell[aria-label*='piece']\").length"


def test_a_view_that_is_left_in_the_middle_of_a_move_shows_it_in_the_next(browser):
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), device="cpu"))
    position = engine.quick["position"]

    def answer_late(*question):
        time.sleep(0.2)
        return position(*question)

    engine.quick["position"] = answer_late
    with PageServer(engine, 0) as server, page_at(browser, server.address) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "random")
        page.evaluate(CLICK_AND_LEAVE, "Analyse")
        page.locator(".analysis .move").nth(1).wait_for()
        page.wait_for_timeout(1500)  # an opponent that goes on playing would have moved
        assert page.url.endswith("#/analyse?game=tictactoe&actions=4")
        assert page.evaluate(PIECES) == 1 and page.locator(".move").count() == 2
        page.get_by_role("button", name="Play from here").click()
        wait_status(page, "Your turn")
        page.get_by_role("button", name="Analyse", exact=True).last.click()
        page.locator(".analysis .move").nth(2).wait_for()
        page.evaluate(CLICK_AND_LEAVE, "Play from here")
        page.wait_for_function("() => document.querySelectorAll('.move').length === 5")
        wait_status(page, "Your turn")
        assert page.evaluate(PIECES) == 4


def test_a_new_contestant_is_offered_without_disturbing_the_choice(browser):
    """A run ends a generation while its page is open."""
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), device="cpu"))
    game, late = engine.quick["game"], []

    def answer(viewer, question):
        found = game(viewer, question)
        return {**found, "players": found["players"] + late}

    engine.quick["game"] = answer
    with PageServer(engine, 0) as server, page_at(browser, server.address) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "mcts")
        seat = page.locator(".seat").nth(1)
        seat.locator("input[type=range]").fill("1")
        one = {"id": "run:new", "title": "new", "note": "", "searches": True, "slider": None, "generations": [0, 1]}
        late.append(one)
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        seat.locator("option[value='run:new']").wait_for(state="attached")
        assert seat.locator("select").first.input_value() == "mcts"
        assert seat.locator("input[type=range]").input_value() == "1"
        choose_opponent(page, "run:new")
        seat.locator("select").nth(1).select_option("1")
        late[0] = {**one, "generations": [0, 1, 2]}
        for view in ("Analyse", "Play"):
            page.locator("#tabs").get_by_role("button", name=view).click()
            page.locator("main option[value='2']").first.wait_for(state="attached")
        assert seat.locator("select").nth(1).input_value() == "1"
        late[0] = {**one, "id": "run:other"}
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        seat.locator("option[value='run:other']").wait_for(state="attached")
        assert seat.locator("select").first.input_value() == "run:new", "nobody else takes the seat"


def test_a_slider_tells_the_measured_strength(browser, address):
    with page_at(browser, address("connect4")) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "best")
        seat = page.locator(".seat").nth(1)
        seat.locator("input[type=range]").fill("0")
        assert seat.locator("output").inner_text() == "no search"
        card = json.loads(registry.load("connect4").nets["best"].with_suffix(".json").read_text())
        measured = f"{card['benchmark']['0']['pons_accuracy']:.1%}"
        assert f"Measured: accuracy {measured} on solved positions" in seat.locator(".note").inner_text()


def test_a_move_can_be_typed_and_a_wrong_one_is_told(browser, address):
    with page_at(browser, address("connect4")) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "random")
        page.get_by_label("Type a move").fill("9")
        page.keyboard.press("Enter")
        page.wait_for_selector("#trouble:not([hidden])")
        assert "not a legal action" in page.locator("#trouble").inner_text()
        page.get_by_role("button", name="Close").press("Enter")
        assert page.locator("#trouble").is_hidden() and page.evaluate(IN_THE_VIEW)
        for move in ("8", "4"):
            page.get_by_label("Type a move").fill(move)
            page.keyboard.press("Enter")
            page.locator("#trouble").wait_for(state="visible" if move == "8" else "hidden")
        page.wait_for_function("() => document.querySelectorAll('.move').length >= 2")
        assert page.locator(".move").nth(1).inner_text() == "1.4"


def test_a_game_is_played_on_from_its_middle_by_whoever_moves_there(browser, address):
    with page_at(browser, address("connect4", "&actions=3.2.1.0&ply=1", view="analyse")) as page:
        page.locator(".move").nth(4).wait_for()
        page.get_by_role("button", name="Play from here").click()
        wait_status(page, "Your turn")
        assert page.locator(".move").count() == 3
        assert page.evaluate(IN_THE_VIEW), "the focus is not lost with the view that is left"


def test_another_game_is_shown_in_the_view_that_is_open(browser, address):
    with page_at(browser, address("connect4", view="analyse")) as page:
        page.locator(".analysis .cell").first.wait_for()
        page.locator("#game").select_option("tictactoe")
        page.wait_for_function("() => document.querySelectorAll('.analysis .boards .cell').length === 9")
        page.wait_for_url("**#/analyse?game=tictactoe")


def test_who_types_moves_goes_on_typing_after_the_answer(browser, address):
    with page_at(browser, address("hex")) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "random")
        page.get_by_label("Type a move").focus()
        for moves in (3, 5):
            cell = page.locator(".stage .cell[aria-label*='can be played']").first.get_attribute("aria-label")
            page.keyboard.type(cell.partition(",")[0])
            page.keyboard.press("Enter")
            page.wait_for_function("count => document.querySelectorAll('.move').length >= count", arg=moves)
            wait_status(page, "Your turn")
            assert page.evaluate("document.activeElement.matches('.typed')")


def test_the_skip_link_leads_into_the_view_that_is_shown(browser, address):
    with page_at(browser, address("tictactoe", view="analyse")) as page:
        page.wait_for_selector(".analysis .cell")
        page.locator(".skip").focus()
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.activeElement.id === 'view'")
        assert page.locator(".analysis").count() == 1 and "#/analyse" in page.url


def test_a_game_without_a_board_is_a_list_of_actions_beside_its_text(browser, address, tmp_path):
    source = tmp_path / "words.py"
    source.write_text(
        "import numpy as np\nfrom alphazero.game import Board, Game, Rules\nfrom games.nim.game import Nim\n"
        "class Words(Nim):\n    name = 'words'\n    board = Board()\n"
        "    def pieces(self, position):\n        return []\n    def clicks(self, position):\n        return {}\n"
    )
    with serving(str(source)) as server, page_at(browser, server.address) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "random")
        assert page.locator(".text-board").inner_text()
        assert re.search("won", play_on(page, click_first))


def test_the_page_connects_again_where_it_was(browser, folder):
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), device="cpu"))
    with PageServer(engine, 0) as first:
        port = first.port
        context = page_at(browser, first.address, expects=LOST)
        page = context.__enter__()
        wait_status(page, "Your turn")
        choose_opponent(page, "random")
        click_first(page)
        page.wait_for_function("() => document.querySelectorAll('.move').length >= 3")
    page.locator("#trouble button").focus()
    page.wait_for_timeout(1000)  # meanwhile it has tried to connect
    assert page.evaluate("document.activeElement.closest('#trouble') !== null"), "the message is told once"
    page.locator("#trouble button").press("Enter")
    words = page.locator(".move").all_inner_texts()
    with PageServer(engine, port):
        page.wait_for_function("() => !document.body.classList.contains('lost')")
        assert page.locator("#trouble").is_hidden()
        assert page.locator(".move").all_inner_texts() == words
        assert re.search("won|draw", play_on(page, click_first))
        context.__exit__(None, None, None)


def test_a_promotion_asks_for_the_piece(browser, address):
    """By the mouse and by keys; Escape takes it back."""
    with page_at(browser, address("gardner")) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "human")
        page.get_by_text("Start from a position").click()
        page.get_by_label("Moves or a board to start from").fill("5/P3k/5/5/R3K w")
        page.get_by_role("button", name="Go", exact=True).click()
        page.wait_for_function("() => document.querySelectorAll('.drawing .piece').length === 4")

        def promote() -> None:
            page.get_by_role("button", name="a4, first player's pawn", exact=False).click()
            page.get_by_role("button", name="a5, empty, can be played").click()

        promote()
        choices = page.locator(".promotion button")
        assert choices.count() == 4 and page.evaluate(FOCUSED) == "queen"
        page.keyboard.press("Escape")
        assert page.locator(".promotion").is_hidden() and page.locator("[aria-label*=picked]").count() == 0
        promote()
        page.get_by_role("button", name="knight", exact=True).click()
        page.wait_for_function("() => document.querySelectorAll('.move').length === 2")
        assert page.locator(".move").nth(1).inner_text() == "1.a4a5n"
        assert page.get_by_role("button", name="a5, first player's knight").count() == 1
        # files of other programs
        with page.expect_download() as download:
            page.get_by_role("button", name="Save game").click()
        assert download.value.suggested_filename == "gardner.pgn"
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Load game").click()
        chooser.value.set_files({"name": "g.pgn", "mimeType": "", "buffer": Path(download.value.path()).read_bytes()})
        wait_status(page, "human")
        assert page.locator(".move").all_inner_texts()[1:] == ["1.a4a5n"]
