"""A game of two plies as source code, for files and folders that tests write."""

import textwrap
from pathlib import Path

import pytest

from alphazero.catalogue import registry
from alphazero.errors import GameError, InputError

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
    import numpy as np
    from numba import njit
    from alphazero.game import Game, Rules

    @njit
    def init(state):
        state[0] = np.uint64(2)

    @njit
    def legal(state, legal_mask):
        legal_mask[0] = True

    @njit
    def step(state, action):
        state[0] -= np.uint64(1)

    @njit
    def is_terminal(state):
        return state[0] == np.uint64(0)

    @njit
    def terminal_value(state):
        return -1.0

    @njit
    def observe(state, planes):
        planes[0, 0, 0] = state[0]

    class {name}(Game):
        name = "{name}"
        num_actions, state_words, max_plies = 1, 1, 2
        observation_shape = (1, 1, 1)
        rules = Rules(init, legal, step, is_terminal, terminal_value, observe)
"""


def source(name: str = "TwoPlies") -> str:
    return textwrap.dedent(SOURCE.format(name=name))


def write(path: Path, text: str) -> str:
    """Writes the file with its folders; gives its path as it is typed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


SPEC = "from alphazero.game.spec import GameSpec\nSPEC = GameSpec(games={{{games}}}{more})\n"


def write_game(folder: Path, games: str = '"TwoPlies": ".game:TwoPlies"', more: str = "") -> None:
    write(folder / "__init__.py", SPEC.format(games=games, more=more))
    write(folder / "game.py", source())


def assert_refused(name: str, *parts: str, error: type[InputError] = GameError) -> None:
    """One sentence that holds all parts."""
    with pytest.raises(error) as caught:
        registry.load(name)
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)
    for part in parts:
        assert part in str(caught.value)
