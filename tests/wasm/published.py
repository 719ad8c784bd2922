"""Published files: made once for all tests, and asked in node."""

import functools
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from filelock import FileLock

import alphazero as az
from alphazero.catalogue import registry
from alphazero.nets.resnet import NetConfig, ResNet
from alphazero.nets.torch_net import TorchNet
from alphazero.web.engine import Engine, Stage
from alphazero.web.message import question_of
from alphazero.web.one_file import _oracle_of, make_file
from tests.wasm.engines import with_random_weights

ASK = Path(__file__).with_name("ask.mjs")
MARKUP = "</script><img src=x onerror=\"document.title='run'\"><!--{{7*7}}"
"""A name that must be shown as it is."""


@functools.cache
def small_net(name: str) -> TorchNet:
    """A small network for a game, with random weights."""
    game = registry.load(name).game
    config = NetConfig(blocks=1, channels=8, head_channels=4, value_hidden=8)
    module = ResNet(game.observation_shape, game.num_actions, config, game.num_values)
    return TorchNet(game, with_random_weights(module))


@functools.cache
def small_page(name: str) -> str:
    """The page of that network, whose title and card have markup in them.

    Compiling one takes half a minute, so the processes that run the tests share them.
    """
    path = Path(os.environ["ALPHAZERO_TESTS_SHARED"]) / f"{name}.html"
    with FileLock(f"{path}.lock"):
        if not path.exists():
            card = {"description": MARKUP, "parameters": 1234, "hours": 0.05}
            page = make_file(registry.load(name), small_net(name), MARKUP, card, f"/home/somebody/{name}.py")
            path.write_text(page, encoding="utf-8")
    return path.read_text(encoding="utf-8")


@functools.cache
def page_with_solver() -> str:
    """The page of tic-tac-toe with Connect Four's solver, which answers questions about Connect Four."""
    solver = json.dumps(_oracle_of(registry.load("connect4")))
    return small_page("tictactoe").replace('"oracle": null', f'"oracle": {solver}')


@functools.cache
def shipped_page(game: str, name: str) -> str:
    """The page of a shipped net."""
    from alphazero.players.contestants import find_checkpoint
    from alphazero.storage.checkpoint import read_card

    loaded = registry.load(game)
    return make_file(loaded, az.load_net(name, loaded.game), name, read_card(find_checkpoint(name, loaded)))


def ask(page: str, *questions: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """All answers to each question."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "page.html").write_text(page)
        (folder / "questions.json").write_text(json.dumps(questions))
        subprocess.run(
            ["node", ASK, folder / "page.html", folder / "questions.json", folder / "answers.json"],
            check=True, timeout=300, capture_output=True,
        )  # fmt: skip
        return json.loads((folder / "answers.json").read_text())


def on_server(game: str, question: dict[str, Any]) -> dict[str, Any]:
    """The server's answer to a quick question."""
    engine = Engine(Stage(game, registry.load(game)))
    return json.loads(json.dumps(engine.quick[question["ask"]](None, question_of({"id": 1, **question}))))
