"""Moves in WebAssembly are those of players in matches: searches bit for bit, draws among equals included."""

from pathlib import Path

import numpy as np
import pytest

import alphazero as az
from alphazero.catalogue import registry
from alphazero.game import Game
from alphazero.game.kernels import Kernels
from alphazero.players.contestants import SIMULATIONS_PER_ACTION, make_player
from alphazero.players.net_players import PolicyPlayer, SearchPlayer
from alphazero.search.mcts import Search
from alphazero.wasm.engine import ModuleBuilder
from alphazero.wasm.moves import add_moves
from tests.wasm.engines import Answers, evaluate_planted, needs_node, planted, positions_of, random_games, run_node
from tests.wasm.published import ask, shipped_page, small_net, small_page

HALVING = az.SearchConfig(noise_fraction=0.0, gumbel_actions=3, prior_temperature=2.0)
PUCT = az.SearchConfig(noise_fraction=0.0)
STEPS = (0, 1, 16, 100)


def widened(config: az.SearchConfig, simulations: int) -> az.SearchConfig:
    """The search of a match player with so many simulations."""
    most = max(config.gumbel_actions, simulations // SIMULATIONS_PER_ACTION) if config.gumbel_actions else 0
    return az.SearchConfig(
        simulations, noise_fraction=0.0, gumbel_actions=most, prior_temperature=config.prior_temperature
    )


def compare_moves(game: Game, config: az.SearchConfig, count: int, folder: Path) -> None:
    """Moves in positions of random games, at all depths, with planted evaluations."""
    builder, kernels = ModuleBuilder(game), Kernels(game)
    builder.add_search(planted, config)
    add_moves(builder, config, SIMULATIONS_PER_ACTION)
    rng, games = np.random.default_rng(4), random_games(kernels, count, seed=4)
    lists = [actions[: int(rng.integers(len(actions)))] for actions in games]
    moves = [
        {"actions": actions, "simulations": steps, "seed": 31 * i + steps}
        for i, actions in enumerate(lists)
        for steps in STEPS
    ]
    answers, different = Answers(run_node(builder.build(), {"moves": moves}, folder)), 0
    for move in moves:
        steps, seed, ply = move["simulations"], move["seed"], len(move["actions"])
        states, _ = positions_of(kernels, [move["actions"]])
        at = states, np.array([seed]), np.array([ply])
        found = answers.take(np.int32)[0]
        if not steps:
            assert found == PolicyPlayer("", kernels, [evaluate_planted], seed).select_actions(*at)[0]
            continue
        settings = widened(config, steps)
        assert found == SearchPlayer("", kernels, [evaluate_planted], settings, seed).select_actions(*at)[0]
        result = Search(kernels, settings, evaluate_planted, 1, seed).run(*at)
        different += found != result.visit_counts[0].argmax()
        assert answers.take(np.int32, game.num_actions).tolist() == result.visit_counts[0].tolist()
        for expected in (result.policy[0], result.q[0], result.values):
            error = 1e-6 if config.gumbel_actions else 0.0  # exponentials are other code here
            np.testing.assert_allclose(answers.take(np.float32, len(expected)), expected, error, 0.0)
    assert answers.ended and different, "all moves were the first among equals"


@needs_node
@pytest.mark.parametrize("config", [HALVING, pytest.param(PUCT, marks=pytest.mark.slow)], ids=["halving", "puct"])
def test_moves_are_those_of_match_players(config: az.SearchConfig, tmp_path: Path):
    """By PUCT in the slow tests, since `test_engine` compares its trees."""
    compare_moves(registry.load("connect4").game, config, 8, tmp_path)


@needs_node
@pytest.mark.slow
@pytest.mark.parametrize("config", [HALVING, PUCT], ids=["halving", "puct"])
def test_moves_of_every_game_are_those_of_match_players(game: Game, config: az.SearchConfig, tmp_path: Path):
    compare_moves(game, config, 250, tmp_path)


def play_both(page: str, net: az.NeuralNet, name: str, count: int, steps: tuple[int, ...]) -> int:
    """The moves of the file that are those of the same net as a contestant, of `count` positions for each step."""
    loaded = registry.load(name)
    rng, games = np.random.default_rng(5), random_games(Kernels(loaded.game), count, seed=5)
    lists = [actions[: int(rng.integers(len(actions)))] for actions in games]
    asked = [(actions, step, i) for i, actions in enumerate(lists) for step in steps]
    questions = [
        {"ask": "move", "actions": actions, "player": {"id": "net", "step": step}, "seed": seed}
        for actions, step, seed in asked
    ]
    same = 0
    for (actions, step, seed), (*_, answer) in zip(asked, ask(page, *questions), strict=True):
        player = make_player(net, loaded, seed=seed, simulations=step)
        state = loaded.game.position(actions).state[None].copy()
        same += answer["action"] == player.select_actions(state, np.array([seed]), np.array([len(actions)]))[0]
    return same


@needs_node
def test_a_file_plays_as_its_net_does_in_a_match():
    """Weights have fewer digits in the file, so one move in a hundred may differ."""
    assert play_both(small_page("tictactoe"), small_net("tictactoe"), "tictactoe", 50, (0, 25)) >= 99


@needs_node
@pytest.mark.slow
def test_a_shipped_net_plays_in_its_file_as_in_a_match():
    net = az.load_net("club", registry.load("connect4").game)
    assert play_both(shipped_page("connect4", "club"), net, "connect4", 100, (0, 100)) >= 198
