"""Pieces, names and clicks that a page knows without Python."""

import functools
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import GameError
from alphazero.game import Board, Game, Piece, Rules
from alphazero.wasm import looks
from alphazero.wasm.looks import Looks, chain_through, facts, looks_of, some_positions, told
from tests.conftest import some_games
from tests.wasm.engines import SAME


@functools.cache
def learned(name: str) -> Looks:
    """The looks of a shipped game, learned once: it takes seconds."""
    return looks_of(registry.load(name).game)


def pieces_of(game: Game, actions: Sequence[int], looks: Looks) -> dict[int, Any]:
    """The pieces by cell after some moves, with their owners, as the page finds them."""
    at, owners = game.start(), dict[int, int]()
    for action in actions:
        mover, at = at.to_play, at.play(action)
        there, _, _ = told(looks, at)
        owners |= {cell: mover for cell in looks.owned if cell in there and cell not in owners}
    there, _, _ = told(looks, at)
    return {cell: {**piece, "player": owners.get(cell, piece["player"])} for cell, piece in there.items()}


@some_games("tictactoe", "dots_and_boxes")
def test_the_looks_of_every_game_are_learned(game: Game):
    """They are right in positions that nobody learned from, and small."""
    if game.name in SAME:
        pytest.skip(f"half a minute; {SAME[game.name]} has the same rules on a smaller board")
    looks = learned(game.name)
    for position in some_positions(game, 300, seed=99):
        assert told(looks, position) == facts(position)
    assert len(json.dumps(asdict(looks))) < 30_000


@pytest.mark.parametrize(
    ("name", "length"),
    [("tictactoe", 3), *(pytest.param(*x, marks=pytest.mark.slow) for x in (("connect4", 4), ("gomoku", 5)))],
)
def test_the_cells_of_a_winning_line_are_marked(name: str, length: int):
    found = learned(name)
    assert found.line == length and not found.beside and not found.owned


@pytest.mark.parametrize("name", ["hex", pytest.param("hex_swap", marks=pytest.mark.slow)])
def test_the_chain_that_wins_is_marked(name: str):
    game = registry.load(name).game
    looks, compared = learned(name), 0
    assert looks.line == 0
    for position in some_positions(game, 500, seed=98):
        if position.terminal:
            owners = {cell: piece["player"] for cell, piece in told(looks, position)[0].items()}
            assert chain_through(position.view.last[0], owners, looks.beside) == set(position.view.winning)
            compared += 1
    assert compared > 5


def test_boxes_belong_to_who_drew_their_last_side():
    game = registry.load("dots_and_boxes").game
    looks, owned = learned(game.name), set[int | None]()
    for position in some_positions(game, 300, seed=97):
        pieces = {piece.cell: piece.player for piece in game.pieces(position)}
        assert {cell: piece["player"] for cell, piece in pieces_of(game, position.actions, looks).items()} == pieces
        owned |= {pieces.get(box) for box in range(9)}
    assert owned == {0, 1, None}


class Parity(type(registry.load("tictactoe").game)):  # type: ignore[misc]
    """A piece whose letter depends on all bits of the position."""

    def pieces(self, position):
        count = int(np.bitwise_count(position.state * np.uint64(0x9E3779B97F4A7C15)).sum())
        return [Piece(0, 0, text=str(count))]


def test_looks_that_need_more_than_a_few_bits_are_refused(monkeypatch):
    monkeypatch.setattr(looks, "ROUNDS", 1)
    with pytest.raises(GameError, match="cannot show tictactoe"):
        looks_of(Parity())


def init(state):
    state[0] = 0


def legal(state, legal_mask):
    legal_mask[:] = False
    legal_mask[0] = True


def step(state, action):
    state[0] += np.uint64(1)


def is_terminal(state):
    return state[0] == np.uint64(3)


def terminal_value(state):
    return -1.0


def observe(state, planes):
    planes[:, :, :] = 0.0
    planes[0, 0, state[0]] = 1.0


class Counting(Game):
    """A race to 3; its second action is never legal, and its notation does not know it."""

    name = "counting"
    num_actions, state_words, max_plies = 2, 1, 3
    observation_shape = (2, 2, 4)
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe)

    def format_action(self, action, state):
        return {0: "one"}[action]

    def clicks(self, position):
        return {}


def test_a_notation_may_know_legal_actions_alone():
    found = looks_of(Counting())
    assert [found.values[word] for word in found.words] == ["one", "action 1"]


def test_a_game_without_cells_is_refused():
    class Bare(type(registry.load("tictactoe").game)):
        board = Board()

    with pytest.raises(GameError, match="draws no board"):
        looks_of(Bare())
