"""What goes wrong while the page is open in a real browser: reloads, bad links, mistakes of a game, late answers."""

from __future__ import annotations

import threading

import pytest

from alphazero.catalogue import registry
from alphazero.errors import InputError
from alphazero.web.engine import Engine, Stage
from alphazero.web.server import PageServer
from tests.web.browser import LOST, choose_opponent, needs_chromium, page_at, wait_status
from tests.web.client import wait_for
from tests.web.walk import SETTLED, STATES, press_every_two_buttons

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(Stage("tictactoe", registry.load("tictactoe"), device="cpu"))


@pytest.fixture(scope="module")
def place(engine):
    """The address of the page, without runs to watch."""
    with PageServer(engine, 0) as server:
        yield server.address


def wait_moves(page, count: int) -> None:
    page.wait_for_function("count => document.querySelectorAll('.move').length === count + 1", arg=count)


def opponents(page) -> list[str]:
    """Who sits where."""
    return [page.locator(".seat").nth(side).locator("select").first.input_value() for side in (0, 1)]


def test_who_sits_where_and_a_resignation_outlast_a_reload(browser, place):
    with page_at(browser, f"{place}#/play?game=tictactoe&actions=4") as page:
        choose_opponent(page, "human")
        choose_opponent(page, "random", 0)
        wait_status(page, "Your turn")
        moves = page.locator(".move").count() - 1  # the usual opponent may have been faster than the choice of another
        page.reload()
        wait_status(page, "Your turn")
        assert opponents(page) == ["random", "human"], "nobody else plays one's own moves"
        wait_moves(page, moves)
        page.get_by_role("button", name="Resign").click()
        wait_status(page, "You have resigned")
        page.reload()
        wait_status(page, "You have resigned")
        for game in ("nim", "tictactoe"):
            page.locator("#game").select_option(game)
            page.wait_for_url(f"**game={game}*")
        wait_status(page, "Your turn")


def test_mistakes_of_a_game_are_told(browser, place, engine, monkeypatch):
    position, wrong = engine.quick["position"], None

    def fail(viewer, question):
        if len(question.actions) == wrong:
            raise InputError("its pieces have no colour")
        return position(viewer, question)

    monkeypatch.setitem(engine.quick, "position", fail)
    with page_at(browser, f"{place}#/play?game=tictactoe") as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "random")
        for view in ("Analyse", "Play"):
            page.locator("#tabs").get_by_role("button", name=view).click()
            wrong = 1
            page.locator(".stage .cell.playable").nth(4).click()
            page.locator("#trouble", has_text="no colour").wait_for()
            wait_moves(page, 0)
        wrong = 2
        page.locator(".stage .cell.playable").nth(4).click()
        wait_status(page, "random cannot move")
        assert "no colour" in page.locator(".detail").inner_text()
        wrong = None
        page.get_by_role("button", name="Try again").click()
        wait_status(page, "Your turn")


def test_a_link_to_a_game_that_is_not_here_is_told(browser, place):
    with page_at(browser, f"{place}#/play?game=mine.py&actions=4.0") as page:
        page.locator("#trouble", has_text="this page has no game 'mine.py'").wait_for()
        wait_moves(page, 0)
        page.wait_for_url("**game=tictactoe")


@pytest.mark.parametrize("name", ["constructor", "runs"])
def test_only_views_that_have_a_tab_are_opened(browser, place, name):
    with page_at(browser, f"{place}#/{name}") as page:
        wait_status(page, "Your turn")


CLICK = "number => document.querySelectorAll('.stage .cell')[number].dispatchEvent(new MouseEvent('click'))"


@pytest.mark.parametrize("view", ["play", "analyse"])
def test_a_click_plays_only_in_the_position_that_the_board_shows(browser, place, engine, monkeypatch, view):
    position, late = engine.quick["position"], threading.Event()
    late.set()

    def answer(viewer, question):
        late.wait(60)
        return position(viewer, question)

    monkeypatch.setitem(engine.quick, "position", answer)
    with page_at(browser, f"{place}#/{view}?game=tictactoe&actions=0.1") as page:
        wait_moves(page, 2)
        if view == "play":
            choose_opponent(page, "human")
        wait_status(page, "First player to move")
        late.clear()
        page.locator(".move").nth(1).click()
        page.evaluate(CLICK, 8)
        late.set()
        wait_status(page, "Second player to move")
        wait_moves(page, 2)
        page.evaluate(CLICK, 8)
        wait_status(page, "First player to move")
        assert page.locator(".move").all_inner_texts()[2].endswith("c3")


def test_a_contestant_that_is_gone_keeps_its_seat_after_a_reload(browser, place, engine, monkeypatch):
    game = engine.quick["game"]
    one = {"id": "run:a", "title": "the run a", "note": "", "searches": True, "slider": None, "generations": [3]}
    there = [one]

    def answer(viewer, question):
        found = game(viewer, question)
        return {**found, "players": found["players"] + there}

    monkeypatch.setitem(engine.quick, "game", answer)
    with page_at(browser, place) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "run:a")
        page.locator(".seat").nth(1).locator("select").nth(1).select_option("3")
        there.clear()
        page.reload()
        wait_status(page, "Your turn")
        assert opponents(page) == ["human", "run:a"]
        assert page.locator(".seat").nth(1).locator("select").nth(1).input_value() == "3"
        page.evaluate(CLICK, 4)
        wait_status(page, "the run a, generation 3 cannot move")
        assert "run:a" in page.locator(".detail").inner_text()


def test_a_typed_move_is_played_only_where_it_was_meant(browser, place, engine, monkeypatch):
    position, late = engine.quick["position"], threading.Event()

    def answer(viewer, question):
        if question.moves is not None:
            late.wait(60)
        return position(viewer, question)

    monkeypatch.setitem(engine.quick, "position", answer)
    with page_at(browser, f"{place}#/play?game=tictactoe&actions=0.1") as page:
        choose_opponent(page, "human")
        wait_status(page, "First player to move")
        field = page.get_by_label("Type a move")
        field.fill("c3")
        field.press("Enter")
        field.press("Enter")
        late.set()
        wait_moves(page, 3)
        assert page.locator("#trouble").is_hidden() and field.input_value() == ""
        late.clear()
        field.fill("b2")
        field.press("Enter")
        page.get_by_role("button", name="New game").click()
        wait_moves(page, 0)
        late.set()
        field.fill("a1")
        field.press("Enter")
        wait_moves(page, 1)
        assert page.locator("#trouble").is_hidden()
        assert page.locator(".move").nth(1).inner_text() == "1.a1"


def test_a_search_that_rests_begins_again_after_a_lost_connection(browser):
    """Its tree went with the connection, so there is nothing that Deeper could go on with."""
    engine, searched = Engine(Stage("tictactoe", registry.load("tictactoe"), device="cpu")), []
    analyse = engine.searches["analyse"]

    def note(viewer, question, stop):
        searched.append(viewer)
        return analyse(viewer, question, stop)

    engine.searches["analyse"] = note
    rests = "() => /proven/.test(document.querySelector('.desk .numbers')?.textContent)"
    with PageServer(engine, 0) as first:
        port, link = first.port, f"{first.address}#/analyse?game=tictactoe&actions=0.1.2.3.4"
        context = page_at(browser, link, expects=LOST)
        page = context.__enter__()
        page.wait_for_function(rests)
    page.wait_for_function("() => document.body.classList.contains('lost')")
    count = len(searched)
    with PageServer(engine, port):
        wait_for(lambda: len(searched) > count)
        page.wait_for_function(rests)
        context.__exit__(None, None, None)


@pytest.mark.parametrize(
    "state", [pytest.param(name, marks=() if name == "looking back" else pytest.mark.slow) for name in STATES]
)
def test_after_every_two_buttons_the_page_says_whose_turn_it_is_and_what_to_do(browser, place, state):
    with page_at(browser, f"{place}#/play?game=tictactoe") as page:
        press_every_two_buttons(page, "#/play?game=tictactoe", state, "random")


def test_a_contestant_moves_where_one_looks_back_if_it_is_told_to(browser, place):
    with page_at(browser, f"{place}#/play?game=tictactoe&actions=4.0.8.2&ply=1") as page:
        wait_status(page, "Looking back: .* to move")
        page.get_by_role("button", name="Let it move here").click()
        wait_status(page, "Your turn")
        wait_moves(page, 2)


def test_a_contestant_moves_when_the_lost_connection_is_back_and_the_page_says_so(browser):
    asked = []

    def wait(viewer, question, stop):
        asked.append(question)
        stop.wait()
        return {}

    engines = [Engine(Stage("tictactoe", registry.load("tictactoe"), device="cpu")) for _ in range(2)]
    engines[0].searches["move"] = wait
    with PageServer(engines[0], 0) as first:
        port, link = first.port, f"{first.address}#/play?game=tictactoe&actions=4.0"
        context = page_at(browser, link, expects=LOST)
        page = context.__enter__()
        page.wait_for_function(SETTLED)
        choose_opponent(page, "random", 0)
        wait_for(lambda: asked)
    page.wait_for_function(
        "() => document.querySelector('.headline .detail').textContent.includes('It moves when the page is connected')"
    )
    assert page.get_by_text("The connection is lost.").is_visible()
    with PageServer(engines[1], port):
        wait_moves(page, 4)
        context.__exit__(None, None, None)
