"""Walks through the states that clicks on the page's buttons can reach."""

import itertools
import re
from typing import Any

from alphazero.catalogue import registry
from tests.web.browser import DRAWN, choose_opponent, status

PRESS = """name => {
    const found = name === "first move" ? document.querySelectorAll(".move")[1] : name === "last move" ? [...document.querySelectorAll(".move")].at(-1)
        : [...document.querySelectorAll("main button, #tabs button")].find((one) => one.textContent === name);
    if (found && !found.disabled) found.click();
}"""  # noqa: E501
BUTTONS = [
    "New game", "Undo", "Redo", "Hint", "Resign", "Switch sides", "first move", "last move", "Let it move here",
    "Analyse", "Play from here", "Play", "Copy link",
]  # fmt: skip
STATES = {"start": "&actions=", "under way": "&actions=4.0.8.2", "looking back": "&actions=4.0.8.2&ply=1",
          "undone": "&actions=4.0.8.2&ply=2", "over": "&actions=0.3.1.4.2"}  # fmt: skip
SETTLED = """() => {
    const status = document.querySelector(".headline .status")?.textContent ?? "";
    return status && !status.includes("thinks") && document.querySelector(".seat");
}"""
LINE = """() => {
    const moves = [...document.querySelectorAll(".move")];
    return [moves.slice(1).map((one) => one.lastChild.textContent), moves.findIndex((one) => one.getAttribute("aria-current") === "step")];
}"""  # noqa: E501
"""The words of the moves, and how many of them have been played where one looks."""
GOES_ON = """() => {
    const moves = [...document.querySelectorAll(".move")];
    return moves.at(-1)?.getAttribute("aria-current") !== "step"
        || !document.querySelector(".headline .status").textContent.startsWith("Looking back");
}"""
"""At the last move a contestant that was told to move does."""
NEXT = "click|Undo|Redo|Let it move|New game|Hint"


def press_every_two_buttons(page: Any, route: str, state: str, contestant: str) -> None:
    """Presses every ordered pair of buttons in a game of tic-tac-toe against a contestant, each from that state.

    Afterwards the page says whose turn it is and what to do next; contestants move, or it says what they wait for.
    """
    game = registry.load("tictactoe").game
    page.wait_for_function(SETTLED)
    for count, pair in enumerate(itertools.product(BUTTONS, repeat=2)):
        page.evaluate("hash => { location.hash = hash; }", f"{route}{STATES[state]}&count={count}")
        page.wait_for_function(SETTLED)
        for side, name in enumerate(("human", contestant)):
            choose_opponent(page, name, side)
        for name in pair:
            page.evaluate(PRESS, name)
            page.evaluate(DRAWN)
        page.evaluate(PRESS, "Play")
        page.wait_for_function(SETTLED)
        page.evaluate(DRAWN)
        page.wait_for_function(SETTLED)
        page.wait_for_function(GOES_ON)
        words, ply = page.evaluate(LINE)
        position, said = game.position(" ".join(words[:ply])), status(page)
        told = state, pair, words, ply, said
        assert re.search(NEXT, page.locator(".headline .detail").inner_text()), told
        if position.terminal:
            assert re.search("won|draw", said), told
        elif "resigned" not in said:
            seats = [page.locator(".seat").nth(side).locator("select").first.input_value() for side in (0, 1)]
            human = seats[position.to_play] == "human"
            assert re.fullmatch("Your turn" if human else "Looking back: .* to move", said), told
            assert human or ply < len(words), told
