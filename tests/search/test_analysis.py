"""A search that is watched finds what the search finds, and its best lines can be played."""

import numpy as np
import pytest

from alphazero.game import Position, registry
from alphazero.game.kernels import Kernels
from alphazero.players.contestants import open_contestant
from alphazero.search.mcts import Search, SearchConfig
from alphazero.search.rollouts import playouts

CONNECT_4 = registry.load("connect4")


def analysed(text: str, contestant: str = "mcts:200"):
    position = CONNECT_4.game.position_from_text(text)
    return position, open_contestant(contestant, CONNECT_4, seed=1, threads=1).analysis().run(position)


def played(position: Position, moves) -> Position:
    for action in moves:
        position = position.play(action)
    return position


def test_the_visits_are_those_of_the_search():
    position, lines = analysed("4 4 3")
    config = SearchConfig(num_simulations=200, noise_fraction=0.0)
    kernels = Kernels(CONNECT_4.game)
    zero = np.zeros(1, np.int64)
    found = Search(kernels, config, playouts(kernels, 1), 1).run(position.state[None].copy(), zero, zero + position.ply)
    assert {line.action: line.visits for line in lines} == {
        action: count for action, count in enumerate(found.visit_counts[0].tolist()) if count
    }
    assert sum(line.visits for line in lines) == 200
    assert lines[0].action == int(found.actions[0]) and lines[0].visits == found.visit_counts.max()
    assert [line.prior for line in lines] == pytest.approx([1 / 7] * len(lines))
    for line in lines:
        assert line.moves[0] == line.action and line.value == pytest.approx(float(found.q[0, line.action]))
        played(position, line.moves)  # raises IllegalAction unless all are legal


def test_a_win_is_followed_to_its_end():
    # X has three in a row with both ends open after this: whatever O does, X wins
    position, lines = analysed("4 4 5 5", "mcts:2000")
    best = lines[0]
    assert best.value == 1.0 and best.action in (2, 5)
    final = played(position, best.moves)
    assert final.terminal and final.outcome == 1 and len(best.moves) == 3


def test_noise_and_halving_of_the_player_are_left_out():
    plain = analysed("4 4", "mcts:64")[1]
    assert analysed("4 4", "mcts:64@noise_fraction=0.5,gumbel_actions=4,root_temperature=2")[1] == plain
