"""Files of games and links to positions in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

from alphazero.web.message import MOST_BYTES
from tests.web.browser import IN_THE_VIEW, choose_opponent, click_first, needs_chromium, page_at, status, wait_status

pytestmark = needs_chromium
VIEW = "play"
PASTE = """text => {
  const field = document.querySelector('[aria-label="Moves or a board to start from"]');
  const data = new DataTransfer();
  data.setData("text", text);
  field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""


def test_a_game_is_saved_and_loaded_again(browser, address, tmp_path):
    with page_at(browser, address("connect4", "&moves=4453")) as page:
        wait_status(page, "Your turn")
        with page.expect_download() as download:
            page.get_by_role("button", name="Save game").click()
        assert page.locator("#said").inner_text() == "The game is saved as a file of games."
        path = tmp_path / "game.jsonl"
        download.value.save_as(path)
        record = json.loads(path.read_text())
        assert record["moves"] == ["4", "4", "5", "3"] and record["game"] == "connect4"
        # two games in a file: one is chosen
        other = {**record, "moves": ["1", "2"], "contestants": ["<b>x</b>", "y"]}
        path.write_text(f"{json.dumps(other)}\r\n{json.dumps(record)}\r\n", newline="")  # as on Windows
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Load game").click()
        chooser.value.set_files(path)
        page.get_by_label("Game in the file").select_option("0")
        page.get_by_role("button", name="Open").click()
        wait_status(page, "<b>x</b>")
        assert page.evaluate(IN_THE_VIEW)
        assert page.locator(".move").all_inner_texts()[1:] == ["1.1", "2.2"]
        assert page.locator("b").count() == 0, "names are text"
        page.evaluate("link => { location.hash = link; }", "#/analyse?game=connect4&actions=3.3.3")
        page.wait_for_function("() => document.querySelectorAll('.move').length === 4")
        assert "<b>x</b>" not in status(page), "another line is not that game"


def test_a_file_that_is_too_long_is_refused_and_the_page_goes_on(browser, address, tmp_path):
    path = tmp_path / "game.jsonl"
    path.write_text(json.dumps({"notes": "x" * 1_100_000}))
    with page_at(browser, address("connect4")) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "random")
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Load game").click()
        chooser.value.set_files(path)
        page.wait_for_function("() => document.querySelector('#trouble').textContent.includes('too long for a game')")
        page.wait_for_timeout(500)  # a lost connection would be told
        assert "too long for a game" in page.locator("#trouble").inner_text()
        click_first(page)
        page.locator(".move").nth(2).wait_for()


def test_the_page_knows_how_long_a_question_may_be(browser, address):
    with page_at(browser, address("connect4")) as page:
        wait_status(page, "Your turn")
        limit = page.evaluate(
            "import(new URL('socket.js', document.querySelector('script[type=module]').src))"
            ".then(({ SocketConnection }) => new SocketConnection().mostBytes)"
        )
    assert limit == MOST_BYTES


def test_a_link_restores_the_position(browser, address):
    with page_at(browser, address("connect4", "&moves=443")) as page:
        page.wait_for_function("() => document.querySelectorAll('.move').length >= 4")
        link = page.url
    assert "actions=" in link
    with page_at(browser, link) as page:
        page.wait_for_function("() => document.querySelectorAll('.move').length >= 4")
        assert page.locator(".move").all_inner_texts()[1:4] == ["1.4", "2.4", "3.3"]


def test_back_and_links_lead_to_their_positions(browser, address):
    def wait_moves(count: int) -> None:
        page.wait_for_function("count => document.querySelectorAll('.move').length === count + 1", arg=count)

    def follow(link: str) -> None:
        page.evaluate("link => { location.hash = link; }", f"#/analyse?game=tictactoe{link}")

    with page_at(browser, address("tictactoe", view="analyse")) as page:
        page.locator(".cell.playable").nth(4).click()
        wait_moves(1)
        follow("&actions=4.0.8")
        wait_moves(3)
        page.go_back()
        wait_moves(1)
        assert page.url.endswith("actions=4")
        follow("")
        wait_moves(0)
        assert page.url.endswith("?game=tictactoe")


def test_a_board_is_pasted_played_from_and_kept_by_its_link(browser, address):
    """Undo goes back to the board and no further; the game is saved with it, and a new one has no board."""
    drawing = "\n".join([*[". . . . . . ."] * 4, ". . . O . . .", ". . O X X . .", "1 2 3 4 5 6 7"])
    pieces = "() => document.querySelectorAll('.board .piece').length"
    with page_at(browser, address("connect4")) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "human")
        page.get_by_text("Start from a position").click()
        page.evaluate(PASTE, drawing)
        page.get_by_role("button", name="Go", exact=True).click()
        page.wait_for_function("() => location.hash.includes('board=')")
        wait_status(page, "First player to move")
        before = page.evaluate(pieces)
        page.get_by_label("Type a move").fill("4")
        page.keyboard.press("Enter")
        wait_status(page, "Second player to move")
        assert page.evaluate(pieces) == before + 1
        assert page.locator(".move").all_inner_texts()[1:] == ["1.4"]
        with page.expect_download() as download:
            page.get_by_role("button", name="Save game").click()
        assert json.loads(Path(download.value.path()).read_text())["board"].startswith(". . .")
        page.get_by_role("button", name="Undo", exact=True).click()
        wait_status(page, "First player to move")
        assert page.get_by_role("button", name="Undo", exact=True).is_disabled()
        page.get_by_role("button", name="Redo", exact=True).click()
        wait_status(page, "Second player to move")
        link = page.url
        page.get_by_role("button", name="New game").click()
        page.wait_for_function("() => !location.hash.includes('board=')")
        wait_status(page, "First player to move")
        assert page.evaluate(pieces) == 0
    with page_at(browser, link.replace("#/play", "#/analyse")) as page:
        page.wait_for_function("() => document.querySelectorAll('.move').length === 2")
        page.locator(".exact-line.known").wait_for()
        assert page.evaluate(pieces) == before + 1
    with page_at(browser, link.replace("O", "X")) as page:
        page.locator("#trouble", has_text="no board of connect4").wait_for()


def test_a_link_that_leads_nowhere_is_told(browser, address):
    with page_at(browser, address("connect4", "&moves=448")) as page:
        wait_status(page, "Your turn")
        page.wait_for_selector("#trouble:not([hidden])")
        assert "does not lead to a position" in page.locator("#trouble").inner_text()
