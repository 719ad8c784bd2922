"""Our rules in step with OpenSpiel's, which were written by others: random games, and its recorded playthroughs."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from alphazero.game import Position, registry
from alphazero.game.kernels import Kernels
from tests.game.openspiel_games import GAMES
from tests.game.perft import count_games

FILE = Path(__file__).with_name("playthroughs.jsonl")
each_game = pytest.mark.parametrize("name", GAMES)


def squares(text: str, marks: str) -> str:
    """The cells of a drawn board in reading order, each `.`, `x` or `o`; all else is dropped, also words."""
    cells = re.findall(rf"(?<![A-Za-z])[{re.escape(marks)}](?![A-Za-z])" if " " in text else f"[{marks}]", text.lower())
    return "".join(cells).translate(str.maketrans(marks, ".xo"))


def check(position: Position, legal_actions: list[int], terminal: bool, player: int, returns: list[float]) -> None:
    where = f"after {position.actions}"
    assert position.terminal == terminal, where
    assert position.legal_actions == ([] if terminal else legal_actions), where
    if terminal:
        assert [position.outcome, -position.outcome] == returns, where
    else:
        assert position.to_play == player, where
        assert returns == [0, 0], where


def play_in_step(name: str, num_games: int) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    rng = random.Random(0)
    theirs = GAMES[name]
    game, their_game = registry.load(name).game, pyspiel.load_game(theirs.name)
    outcomes = set()
    for _ in range(num_games):
        position, state = game.start(), their_game.new_initial_state()
        while True:
            ours = {theirs.action(position, action, state): action for action in position.legal_actions}
            assert sorted(ours) == sorted(state.legal_actions()), f"after {position.actions}"
            check(position, sorted(ours.values()), state.is_terminal(), state.current_player(), state.returns())
            if position.terminal:
                break
            their_action = rng.choice(sorted(ours))
            position = position.play(ours[their_action])
            state.apply_action(their_action)
        if theirs.marks:
            _, height, width = game.observation_shape
            drawn = squares(str(state), theirs.marks)[-height * width :]  # some say who has won before the board
            assert len(drawn) == height * width and drawn in squares(str(position), ".xo")
        outcomes.add(position.outcome)
    assert outcomes >= {1, -1}
    assert theirs.draws in (0 in outcomes, None)


@each_game
def test_random_games_in_step(name: str):
    play_in_step(name, 100 if name.startswith(("gomoku", "othello")) else 1000)


@pytest.mark.slow
@each_game
def test_many_random_games_in_step(name: str):
    play_in_step(name, 10_000)


PERFT_DEPTHS = {
    "connect4": 5, "tictactoe": 5, "othello": 6, "gomoku": 3, "gomoku15": 2, "hex": 3, "hex_swap": 3,
    "breakthrough": 3, "dots_and_boxes": 4, "nim": 4,
}  # fmt: skip


PERFT = {
    "connect4": 16807, "tictactoe": 15120, "othello": 8200, "gomoku": 511920, "gomoku15": 50400, "hex": 110544,
    "hex_swap": 112896, "breakthrough": 4308, "dots_and_boxes": 255024, "nim": 17338,
}  # fmt: skip
"""How many sequences of so many plies there are, as OpenSpiel counts them."""


@each_game
def test_perft(name: str):
    assert count_games(Kernels(registry.load(name).game), PERFT_DEPTHS[name]) == PERFT[name]


@each_game
def test_perft_as_openspiel_counts(name: str):
    pyspiel = pytest.importorskip("pyspiel")

    def count(state: Any, depth: int) -> int:
        actions = state.legal_actions()
        return len(actions) if depth == 1 else sum(count(state.child(action), depth - 1) for action in actions)

    depth = PERFT_DEPTHS[name]
    start = pyspiel.load_game(GAMES[name].name).new_initial_state()
    assert count(start, depth) == PERFT[name] > 2000


PLAYTHROUGHS = [json.loads(line) for line in FILE.read_text().splitlines()]
"""As `python -m tests.game.record_playthroughs` wrote them, so that OpenSpiel need not be there."""


@pytest.mark.parametrize("played", PLAYTHROUGHS, ids=lambda played: played["game"])
def test_recorded_playthroughs(played: dict[str, Any]):
    position, actions = registry.load(played["game"]).game.start(), played["actions"]
    assert len(actions) == len(played["legal"]) == len(played["players"]) > 5
    for action, legal, player in zip(actions, played["legal"], played["players"], strict=True):
        check(position, legal, False, player, [0, 0])
        position = position.play(action)
    check(position, [], True, -1, played["returns"])
