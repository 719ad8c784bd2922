"""Our rules in step with OpenSpiel's, which were written by others: random games, and its recorded playthroughs."""

import ast
import random
import re
from pathlib import Path
from typing import Any

import pytest

import games
from alphazero.game import Position

# our name: OpenSpiel's; both number the actions alike
NAMES = {"connect4": "connect_four", "tictactoe": "tic_tac_toe"}
each_game = pytest.mark.parametrize(("name", "their_name"), NAMES.items(), ids=NAMES)


def squares(text: str) -> str:
    """The squares of a drawn board in reading order, each `.`, `x` or `o`; coordinates round it are dropped."""
    return re.sub(r"[^.xo]", "", text.lower())


def check(position: Position, legal_actions: list[int], terminal: bool, player: int, returns: list[float]) -> None:
    where = f"after {position.actions}"
    assert position.terminal == terminal, where
    assert position.legal_actions == ([] if terminal else legal_actions), where
    if terminal:
        assert [position.outcome, -position.outcome] == returns, where
    else:
        assert position.to_play == player, where
        assert returns == [0, 0], where


def play_in_step(name: str, their_name: str, num_games: int) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    rng = random.Random(0)
    game, their_game = games.load(name).game, pyspiel.load_game(their_name)
    assert game.num_actions == their_game.num_distinct_actions()
    assert game.max_plies == their_game.max_game_length()
    outcomes = set()
    for _ in range(num_games):
        position, state = game.start(), their_game.new_initial_state()
        while True:
            check(position, state.legal_actions(), state.is_terminal(), state.current_player(), state.returns())
            if position.terminal:
                break
            action = rng.choice(position.legal_actions)
            position = position.play(action)
            state.apply_action(action)
        assert squares(str(position)) == squares(str(state))
        outcomes.add(position.outcome)
    assert outcomes == {1, 0, -1}, "no game of one kind was seen"


@each_game
def test_random_games_in_step(name: str, their_name: str):
    play_in_step(name, their_name, 1000)


@pytest.mark.slow
@each_game
def test_many_random_games_in_step(name: str, their_name: str):
    play_in_step(name, their_name, 10_000)


def recorded_plies(path: Path) -> list[dict[str, Any]]:
    """What a playthrough says of each position, as `LegalActions() = [0, 1]`; of some in the middle it says nothing."""
    text = path.read_text(encoding="utf-8").split("# State 0", 1)[1]
    plies = []
    for part in re.split(r"^# State \d+$", text, flags=re.MULTILINE):
        found = re.findall(r"^(\w+)\(\) = (.+)$", part, flags=re.MULTILINE)
        plies.append({name: ast.literal_eval(value) for name, value in found})
    return plies


@each_game
def test_recorded_playthroughs(shared_data: Path, name: str, their_name: str):
    plies = recorded_plies(shared_data / "playthroughs" / f"{their_name}.txt")
    actions = plies[-1]["History"]
    assert plies[-1]["IsTerminal"]
    assert len(plies) == len(actions) + 1
    position = games.load(name).game.start()
    for number, ply in enumerate(plies):
        if ply:
            assert position.actions == tuple(ply["History"])
            check(position, ply.get("LegalActions", []), ply["IsTerminal"], ply["CurrentPlayer"], ply["Returns"])
        if number < len(actions):
            position = position.play(actions[number])
    assert sum(bool(ply) for ply in plies) > 5
