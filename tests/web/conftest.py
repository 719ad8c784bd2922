"""A page's server and a browser, for the tests that look at all games in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from alphazero.commands.rules.new import main as new_game
from tests.web.browser import BROWSERS, running_browser
from tests.web.client import serving


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The folder that is served, with a game of one's own, `line_game`."""
    made = tmp_path_factory.mktemp("page")
    new_game(["line_game", "--folder", str(made)])
    return made


@pytest.fixture(scope="module")
def server(folder):
    """One server for all games: the new one is the game that it is started with."""
    with serving(str(folder / "line_game.py"), folder) as running:
        yield running


@pytest.fixture(scope="module", params=BROWSERS)
def browser(request):
    """Each browser in turn."""
    with running_browser(request.param) as running:
        yield running


@pytest.fixture
def address(server, folder, request):
    """The address of a game in the view that the test's module is about."""

    def of(game: str, rest: str = "", view: str = request.module.VIEW) -> str:
        name = str(folder / "line_game.py") if game == "line_game" else game
        return f"{server.address}#/{view}?game={name}{rest}"

    return of
