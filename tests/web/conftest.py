"""A page's server and a browser, for the tests that look at all games in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from alphazero.commands.rules.new import main as new_game
from tests.web.browser import running_browser
from tests.web.client import serving


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The folder with the runs and tournaments that are served."""
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def server(folder):
    """One server for all games that are shipped."""
    with serving("tictactoe", folder) as running:
        yield running


@pytest.fixture(scope="module")
def own_game(folder) -> str:
    """The file of a game of one's own."""
    new_game(["line_game", "--folder", str(folder)])
    return str(folder / "line_game.py")


@pytest.fixture(scope="module")
def server_of_own_game(own_game):
    with serving(own_game) as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    with running_browser() as running:
        yield running


@pytest.fixture
def address(server, request):
    """The address of a game in the view that the test's module is about; `line_game` is one's own."""

    def of(game: str, rest: str = "", view: str = request.module.VIEW) -> str:
        own = game == "line_game"
        name, there = (
            (request.getfixturevalue(one) for one in ("own_game", "server_of_own_game")) if own else (game, server)
        )
        return f"{there.address}#/{view}?game={name}{rest}"

    return of
