"""The endgame solver against published endgames, plain negamax over plain rules, and its own moves."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import InvalidSetting
from alphazero.game import Position
from alphazero.game.kernels import Kernels
from alphazero.matches.judge import load_file
from alphazero.players.baselines import RandomPlayer
from alphazero.players.contestants import make_player
from games.othello.benchmark import load_frozen
from games.othello.solver import NO_SCORE, Solver
from tests.games.othello_facts import PROBLEMS, write_problems
from tests.games.plain_othello_solver import agrees, board_of

ROOT = Path(__file__).resolve().parents[2]
GAMES = {8: registry.load("othello").game, 6: registry.load("othello6").game}
SOLVERS = {size: Solver(game, 2) for size, game in GAMES.items()}
each_size = pytest.mark.parametrize("size", [8, 6])


def random_positions(size: int, num_empty: int, count: int, seed: int) -> np.ndarray:
    """States `uint64[count, 2]` of random games that go on with so many empty squares."""
    game = GAMES[size]
    kernels = Kernels(game)
    player = RandomPlayer(kernels, seed)
    found: list[np.ndarray] = []
    states, to_play = kernels.start_states(4 * count), np.zeros(4 * count, np.int8)
    for ply in range(game.max_plies):
        going_on = ~kernels.describe_all(states)[1]
        states, to_play = states[going_on], to_play[going_on]
        if not len(states):
            break
        found += list(states[SOLVERS[size].num_empty(states) == num_empty])
        actions = player.select_actions(states, np.arange(len(states)), np.full(len(states), ply))
        kernels.play(states, to_play, actions)
    assert len(found) >= count
    return np.array(found[:count])


def plain_score(position: Position) -> int:
    """The score by nothing but the rules, empty squares to the winner."""
    own, opponent = (int(word).bit_count() for word in position.state)
    if position.terminal:
        empty = position.game.size**2 - own - opponent  # type: ignore[attr-defined]
        return own - opponent + empty * int(np.sign(own - opponent))
    return max(-plain_score(position.play(action)) for action in position.legal_actions)


@each_size
@pytest.mark.parametrize("num_empty", [1, 2, 4, 6])
def test_scores_are_those_of_plain_negamax(size: int, num_empty: int):
    states = random_positions(size, num_empty, 12 if num_empty < 6 else 3, seed=num_empty)
    scores = SOLVERS[size].move_scores(states)
    for state, row in zip(states, scores, strict=True):
        position = Position(GAMES[size], state.copy(), 0, ())
        assert [action for action, score in enumerate(row) if score != NO_SCORE] == position.legal_actions
        assert [int(row[action]) for action in position.legal_actions] == [
            -plain_score(position.play(action)) for action in position.legal_actions
        ]


def test_a_finished_game_has_no_move_to_score():
    position = GAMES[6].start()
    while not position.terminal:
        position = position.play(position.legal_actions[0])
    assert (SOLVERS[6].move_scores(position.state[None].copy()) == NO_SCORE).all()


@each_size
def test_with_best_only_the_best_moves_are_the_same(size: int):
    states = random_positions(size, 11, 20, seed=1)
    exact, quick = (SOLVERS[size].move_scores(states, best_only) for best_only in (False, True))
    best = exact.max(axis=1, keepdims=True)
    np.testing.assert_array_equal(quick.max(axis=1, keepdims=True), best)
    np.testing.assert_array_equal(quick == best, exact == best)


@each_size
def test_a_position_is_worth_its_best_move(size: int):
    """Scores of a position and of its children, each solved alone."""
    states = random_positions(size, 10, 10, seed=2)
    kernels = Kernels(GAMES[size])
    scores = SOLVERS[size].move_scores(states)
    for state, row in zip(states, scores, strict=True):
        for action in np.flatnonzero(row != NO_SCORE):
            child = state[None].copy()
            kernels.play(child, np.zeros(1, np.int8), np.array([action]))
            if not kernels.describe_all(child)[1][0]:
                assert -SOLVERS[size].move_scores(child).max() == row[action]


@pytest.mark.parametrize(("most_empty", "count"), [(17, 3), pytest.param(20, 16, marks=pytest.mark.slow)])
def test_published_endgames(most_empty: int, count: int, tmp_path: Path):
    """FForum's problems: `load_file` compares the published score of every move."""
    assert len(PROBLEMS) == 16 and all("all_moves" in problem for problem in PROBLEMS.values())

    def near(position: Position) -> bool:
        return bool(SOLVERS[8].num_empty(position.state[None])[0] <= most_empty)

    labelled = load_file(write_problems(tmp_path), GAMES[8], SOLVERS[8].move_scores, near)
    assert len(labelled.names) == count
    assert count_errors(labelled.states[:1], labelled.scores[:1], 8) == 0


@each_size
def test_the_frozen_set_is_labelled_exactly(size: int):
    """Some positions anew, by a solver with an empty table; all are as they should be."""
    labelled = load_frozen(size)
    assert len(labelled.states) == 2000
    empty = SOLVERS[size].num_empty(labelled.states)
    assert set(empty.tolist()) == {10, 11, 12, 13, 14}
    rows = np.random.default_rng(0).permutation(2000)[:40]
    np.testing.assert_array_equal(SOLVERS[size].move_scores(labelled.states[rows]), labelled.scores[rows])
    worst = np.where(labelled.scores == NO_SCORE, 100, labelled.scores).min(axis=1)
    assert (worst < labelled.scores.max(axis=1)).all(), "a position in which all moves are equally good shows nothing"
    canonical, _ = Kernels(GAMES[size]).canonical(labelled.states)
    assert len(np.unique(canonical, axis=0)) == 2000


def count_errors(states: np.ndarray, scores: np.ndarray, size: int) -> int:
    """Positions whose labels the second solver contradicts."""
    pairs = zip(states, scores, strict=True)
    return sum(not agrees(board_of(state, size), row, NO_SCORE, size) for state, row in pairs)


@each_size
def test_a_second_solver_agrees_with_labels_of_the_frozen_set(size: int):
    labelled = load_frozen(size)
    few = np.flatnonzero(SOLVERS[size].num_empty(labelled.states) <= 11)
    rows = np.random.default_rng(1).choice(few, 30, replace=False)
    states, scores = labelled.states[rows], labelled.scores[rows]
    assert count_errors(states, scores, size) == 0
    scores[np.arange(30), scores.argmax(axis=1)] -= 2
    assert count_errors(states, scores, size) == 30


@pytest.mark.slow
@each_size
def test_a_second_solver_agrees_with_all_labels_of_the_frozen_set(size: int):
    labelled = load_frozen(size)
    assert count_errors(labelled.states, labelled.scores, size) == 0


SOLVE_ONE = """
import numpy as np
from games.othello.solver import Solver
from alphazero.catalogue import registry
game = registry.load("othello6").game
state = np.array([STATE], np.uint64)
print(Solver(game, 1).move_scores(state).max())
"""


@pytest.mark.slow
def test_a_second_process_uses_the_compiled_code_of_the_first(tmp_path: Path):
    """A recursive function called with literals would crash there (numba's issue 6061)."""
    state = random_positions(6, 9, 1, seed=3)[0]
    code = SOLVE_ONE.replace("STATE", str(state.tolist()))
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    for _ in range(2):
        command = [sys.executable, "-c", code]
        result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        assert result.stdout.strip() == str(SOLVERS[6].move_scores(state[None]).max()), result.stderr


# --- the player ---


def test_the_solver_plays_best_moves_only():
    states = random_positions(8, 12, 30, seed=4)
    loaded = registry.load("othello")
    solver = make_player("solver:12", loaded, seed=0, threads=2)
    actions = solver.select_actions(states, np.arange(30), np.full(30, 48))
    scores = SOLVERS[8].move_scores(states)
    assert (scores[np.arange(30), actions] == scores.max(axis=1)).all()
    before = random_positions(8, 30, 5, seed=4)
    assert solver.select_actions(before, np.arange(5), np.full(5, 30)).shape == (5,)


def test_greedy_takes_most_discs():
    game = GAMES[8]
    greedy = make_player("greedy", registry.load("othello"), seed=0, threads=1)
    states = random_positions(8, 40, 20, seed=5)
    for state in states:
        position = Position(game, state.copy(), 0, ())
        counts = {action: int(position.play(action).state[1]).bit_count() for action in position.legal_actions}
        chosen = greedy.select_actions(np.tile(state, (50, 1)), np.arange(50), np.full(50, 20))
        assert set(chosen.tolist()) == {action for action, count in counts.items() if count == max(counts.values())}


@pytest.mark.parametrize("text", ["solver:0", "solver:23", "solver:x", "solver@a=1", "greedy:2"])
def test_wrong_settings_are_refused(text: str):
    with pytest.raises(InvalidSetting, match="write (solver|greedy)"):
        make_player(text, registry.load("othello"), seed=0, threads=1)
