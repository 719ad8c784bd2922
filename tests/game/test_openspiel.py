"""Our rules in step with OpenSpiel's, which were written by others: random games, and its recorded playthroughs."""

import ast
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from alphazero.game import Position, registry
from alphazero.game.kernels import Kernels
from tests.game.perft import count_games


@dataclass(frozen=True)
class Theirs:
    """OpenSpiel's game that is the same as one of ours."""

    name: str
    draws: bool | None = True
    """Games end in draws; None: hardly ever, if both play at random."""
    action: Callable[[Position, int, Any], int] = lambda position, action, state: action
    """Our action in their numbers."""
    marks: str = ".xo"
    """An empty cell, the first player's and the second player's, where both draw the board alike; else nothing."""


def breakthrough_action(position: Position, action: int, state: Any) -> int:
    """Their first player starts at the top, ours at the bottom: a2xb3 is their a5b4*."""
    text = re.sub(
        r"\d", lambda rank: str(7 - int(rank[0])), position.format(action).translate({ord(c): None for c in "-x"})
    )
    (found,) = (other for other in state.legal_actions() if state.action_to_string(other).rstrip("*") == text)
    return found


GAMES = {
    "connect4": Theirs("connect_four"),
    "tictactoe": Theirs("tic_tac_toe"),
    "othello": Theirs("othello", marks="-xo"),
    "gomoku": Theirs("gomoku(size=9)", draws=None, marks=".bw"),
    "gomoku15": Theirs("gomoku(size=15)", draws=None, marks=".bw"),
    "hex": Theirs("hex(num_rows=7,num_cols=7)", draws=False),
    "hex_swap": Theirs("hex(num_rows=7,num_cols=7,swap=true)", draws=False),
    "breakthrough": Theirs("breakthrough(rows=6,columns=6)", draws=False, action=breakthrough_action, marks=""),
    "dots_and_boxes": Theirs("dots_and_boxes(num_rows=3,num_cols=3)", draws=False, marks=""),
    "nim": Theirs("nim(is_misere=false)", draws=False, marks=""),
}
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


@each_game
def test_perft_as_openspiel_counts(name: str):
    """How many sequences of so many plies there are."""
    pyspiel = pytest.importorskip("pyspiel")

    def count(state: Any, depth: int) -> int:
        actions = state.legal_actions()
        return len(actions) if depth == 1 else sum(count(state.child(action), depth - 1) for action in actions)

    depth = PERFT_DEPTHS[name]
    start = pyspiel.load_game(GAMES[name].name).new_initial_state()
    assert count_games(Kernels(registry.load(name).game), depth) == count(start, depth) > 2000


def recorded_plies(path: Path) -> list[dict[str, Any]]:
    """What a playthrough says of each position, as `LegalActions() = [0, 1]`; of some in the middle it says nothing."""
    text = path.read_text(encoding="utf-8").split("# State 0", 1)[1]
    plies = []
    for part in re.split(r"^# State \d+$", text, flags=re.MULTILINE):
        found = re.findall(r"^(\w+)\(\) = (.+)$", part, flags=re.MULTILINE)
        plies.append({name: ast.literal_eval(value) for name, value in found})
    return plies


@pytest.mark.parametrize("name", ["connect4", "tictactoe", "othello"])
def test_recorded_playthroughs(shared_data: Path, name: str):
    plies = recorded_plies(shared_data / "playthroughs" / f"{GAMES[name].name}.txt")
    actions = plies[-1]["History"]
    assert plies[-1]["IsTerminal"]
    assert len(plies) == len(actions) + 1
    position = registry.load(name).game.start()
    for number, ply in enumerate(plies):
        if ply:
            assert position.actions == tuple(ply["History"])
            check(position, ply.get("LegalActions", []), ply["IsTerminal"], ply["CurrentPlayer"], ply["Returns"])
        if number < len(actions):
            position = position.play(actions[number])
    assert sum(bool(ply) for ply in plies) > 5
