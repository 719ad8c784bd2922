"""The same rules and the same search in WebAssembly as on the processor, bit for bit."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alphazero as az
from alphazero.catalogue import registry
from alphazero.commands.rules import new
from alphazero.commands.shared import run_command
from alphazero.errors import GameError
from alphazero.game import Game
from alphazero.game.kernels import Kernels
from alphazero.players.contestants import SIMULATIONS_PER_ACTION
from alphazero.players.net_players import PolicyPlayer, SearchPlayer
from alphazero.search.analysis import search_position
from alphazero.search.mcts import QUIET, Search
from alphazero.wasm.engine import GameModule, ModuleBuilder
from alphazero.wasm.moves import add_moves
from tests.wasm.engines import (
    Answers,
    compare_games,
    needs_node,
    planted,
    planted_for,
    positions_of,
    random_games,
    run_node,
)

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = (ROOT / "docs" / "guides" / "writing_rules.md").read_text(encoding="utf-8")
SIMULATIONS = 200
STEPS = (0, 1, 16, 100)


def tutorial_game(folder: Path) -> Game:
    """Domineering, as docs/guides/writing_rules.md has it."""
    (code,) = re.findall(r"```python\n(import numpy.*?)```", TUTORIAL, flags=re.DOTALL)
    (folder / "domineering.py").write_text(code)
    return registry.load(str(folder / "domineering.py")).game


def compare_rules(game: Game, count: int, folder: Path, engine: GameModule | None = None) -> None:
    """Random games played in step; fifty at a time, since their observations are large."""
    engine, kernels = engine or ModuleBuilder(game).build(), Kernels(game)
    for first in range(0, count, 50):
        games = random_games(kernels, min(50, count - first), seed=first)
        assert compare_games(game, engine, games, folder) == sum(map(len, games)) + len(games)


def starts_of(game: Game, count: int) -> list[list[int]]:
    """The actions that lead to positions of random games, at all depths."""
    rng = np.random.default_rng(1)
    return [actions[: int(rng.integers(len(actions)))] for actions in random_games(Kernels(game), count, seed=1)]


def compare_searches(game: Game, count: int, folder: Path, config: az.SearchConfig, engine: GameModule) -> None:
    """Searches with planted evaluations."""
    starts, config = starts_of(game, count), replace(config, gumbel_actions=0)
    searches = [
        {"actions": actions, "simulations": SIMULATIONS, "slice": 1 + i % 300} for i, actions in enumerate(starts)
    ]
    answers = Answers(run_node(engine, {"searches": searches}, folder))
    explored, proven = 0, 0
    for actions in starts:
        found = search_position(game.position(actions), planted_for(game), SIMULATIONS, config)
        assert answers.take(np.int32)[0] == found.best
        assert answers.take(np.int32, game.num_actions).tolist() == found.visits.tolist()
        assert answers.take(np.float32, game.num_actions).tobytes() == found.policy.tobytes()
        legal = found.position.legal_mask
        q = np.clip(answers.take(np.float32, game.num_actions), -1.0, 1.0)
        assert q[legal].tobytes() == found.q[legal].tobytes()
        assert answers.take(np.float32, game.num_values).tolist() == values_of(found)
        assert answers.take(bool)[0] == found.proven
        assert tuple(answers.take(np.int32, int(answers.take(np.int32)[0])).tolist()) == found.line
        explored, proven = explored + (np.count_nonzero(found.visits) > 1), proven + found.proven
    assert answers.ended and explored
    assert proven or game.history_words  # where a game goes on until both pass, a win is rarely near


def values_of(found: az.Found) -> list[float]:
    """The values of a search as the page has them, that of the player to move first."""
    values = np.roll(found.values, -found.position.to_play) if found.position.game.value_shape else [found.value]
    return np.float32(values).tolist()


def compare_moves(game: Game, count: int, folder: Path, config: az.SearchConfig, engine: GameModule) -> None:
    """Moves of match players, draws among equals included, with planted evaluations."""
    kernels, evaluate = Kernels(game), planted_for(game)
    moves = [
        {"actions": actions, "simulations": steps, "seed": 31 * i + steps}
        for i, actions in enumerate(starts_of(game, count))
        for steps in STEPS
    ]
    answers, different = Answers(run_node(engine, {"moves": moves}, folder)), 0
    for move in moves:
        steps, seed, ply = move["simulations"], move["seed"], len(move["actions"])
        states, _ = positions_of(kernels, [move["actions"]])
        at = states, np.array([seed]), np.array([ply])
        found = answers.take(np.int32)[0]
        if not steps:
            assert found == PolicyPlayer("", kernels, [evaluate], seed).select_actions(*at)[0]
            continue
        wide = max(config.gumbel_actions, steps // SIMULATIONS_PER_ACTION) if config.gumbel_actions else 0
        settings = replace(config, num_simulations=steps, gumbel_actions=wide)
        assert found == SearchPlayer("", kernels, [evaluate], seed, config=settings).select_actions(*at)[0]
        result = Search(kernels, settings, evaluate, 1, seed).run(*at)
        different += found != result.visit_counts[0].argmax()
        assert answers.take(np.int32, game.num_actions).tolist() == result.visit_counts[0].tolist()
        for expected in (result.policy[0], result.q[0], result.values.reshape(-1)):
            error = 1e-6 if config.gumbel_actions else 0.0  # exponentials are other code here
            np.testing.assert_allclose(answers.take(np.float32, len(expected)), expected, error, 0.0)
    assert answers.ended and different, "all moves were the first among equals"


def compare_all(game: Game, counts: tuple[int, int, int], folder: Path, config: az.SearchConfig) -> None:
    """So many games, searches and moves, in one module."""
    builder = ModuleBuilder(game)
    builder.add_search(planted, config)
    add_moves(builder, config)
    engine = builder.build()
    compare_rules(game, counts[0], folder, engine)
    compare_searches(game, counts[1], folder, config, engine)
    compare_moves(game, counts[2], folder, config, engine)


CONFIGS = {
    "halving": replace(QUIET, gumbel_actions=3, prior_temperature=2.0),
    "puct": replace(QUIET, prior_temperature=1.7, c_puct=2.0),
}
"""With temperatures, priors are raised to powers: other code here, whose errors are below what float32 shows."""


@needs_node
@pytest.mark.parametrize("name", ["tictactoe", "tictacmo"])
def test_rules_searches_and_moves_are_the_same(name: str, tmp_path: Path):
    compare_all(registry.load(name).game, (10, 40, 8), tmp_path, CONFIGS["halving"])


@needs_node
def test_rules_by_which_a_player_moves_twice_are_the_same(tmp_path: Path):
    compare_rules(registry.load("dots_and_boxes").game, 10, tmp_path)


@needs_node
@pytest.mark.slow
@pytest.mark.parametrize("how", CONFIGS)
def test_a_thousand_games_and_searches_of_every_game_are_the_same(game: Game, how: str, tmp_path: Path):
    compare_all(game, (1000, 1000, 250), tmp_path, CONFIGS[how])


@needs_node
@pytest.mark.slow
def test_the_rules_of_the_tutorial_are_the_same(tmp_path: Path):
    compare_rules(tutorial_game(tmp_path), 1000, tmp_path)


@needs_node
@pytest.mark.slow
def test_the_rules_of_a_new_game_are_the_same(tmp_path: Path):
    assert run_command(new.main, ["my_game", "--folder", str(tmp_path)]) == 0
    compare_rules(registry.load(str(tmp_path / "my_game.py")).game, 20, tmp_path)


# --- what is refused ---


class Plain(az.Game):
    """A race to 3, whose rules are given by each test."""

    name = "plain"
    num_actions, state_words, max_plies = 1, 1, 3
    observation_shape = (1, 1, 4)

    def __init__(self, **rules: Any):
        base = {
            "init": _init, "legal": _legal, "step": _step, "is_terminal": _is_terminal,
            "terminal_value": _terminal_value, "observe": _observe,
        }  # fmt: skip
        self.rules = az.Rules(**(base | rules))


def _init(state):
    state[0] = 0


def _legal(state, legal_mask):
    legal_mask[0] = True


def _step(state, action):
    state[0] += 1


def _is_terminal(state):
    return state[0] == 3


def _terminal_value(state):
    return -1.0


def _observe(state, planes):
    planes[0, 0, state[0]] = 1.0


def _step_with_text(state, action):
    state[0] = len("{}".format(state)) + 1  # noqa: UP032


def _step_with_memory(state, action):
    counts = np.zeros(3)
    counts[action] += 1
    state[0] += np.uint64(counts.sum())


def _step_with_sine(state, action):
    state[0] += np.uint64(np.sin(float(action)) + 1.0)


LARGE = np.arange(100_000, dtype=np.uint64)


def _step_with_table(state, action):
    state[0] = LARGE[state[0]] + np.uint64(1)


def _step_with_huge_table(state, action):
    state[0] = HUGE[state[0]] + np.uint64(1)


HUGE = np.arange(1 << 18, dtype=np.uint64)


def _is_terminal_by_powers(state):
    return int(int(5.0 ** float(state[0])) == 125 and int(2.0 ** float(state[0])) == 8) << 40


@needs_node
def test_rules_that_count_by_powers_are_the_same(tmp_path: Path):
    """Powers of 2 are a function of their own to LLVM. The end of a game is a number here, whose lower half is 0."""
    compare_rules(Plain(is_terminal=_is_terminal_by_powers), 1, tmp_path)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (_step_with_text, "numba cannot compile the rules of plain"),
        (_step_with_memory, "numba cannot compile .* zeros"),
        (_step_with_sine, "no function sin"),
        (_step_with_table, "tables"),
        (_step_with_huge_table, "above 1 MB"),
    ],
)
def test_rules_that_cannot_be_compiled_are_refused_with_the_reason(step: Any, reason: str):
    with pytest.raises(GameError, match=reason) as caught:
        ModuleBuilder(Plain(step=step)).build()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


def test_a_game_of_python_objects_is_refused():
    game = registry.load("openspiel:tic_tac_toe").game
    with pytest.raises(GameError, match="run as Python objects"):
        ModuleBuilder(game)


@needs_node
def test_an_error_in_the_rules_stops_the_module(tmp_path: Path):
    """A division by zero raises in Python; here the module stops, and the page says so."""
    engine = ModuleBuilder(Plain(step=_step_that_divides)).build()
    with pytest.raises(Exception, match="exit status 1"):
        run_node(engine, {"games": [[0]]}, tmp_path)


def _step_that_divides(state, action):
    state[0] = np.uint64(int(state[0] + 1) // action)


COMPILED_FIRST = """
from numba import njit, types
from alphazero.game.functions import rebuilt
from alphazero.wasm.compiler import compile_module, compiled_as

def double(number):
    return 2 * number

compile_module({"double": (rebuilt(double, compiled_as("numpy"), {}), (types.int32,))}, 0)

@njit
def is_even(count):
    return count == 0 or is_odd(count - 1)

@njit
def is_odd(count):
    return count != 0 and is_even(count - 1)

print(is_odd(7))
"""


def test_functions_that_call_each_other_can_be_compiled_for_this_processor_afterwards():
    """numba's runtime belonged to the first context that compiled: they raised in numba, or ended the process."""
    done = subprocess.run([sys.executable, "-c", COMPILED_FIRST], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.stdout == "True\n", done.stderr
