"""M2: matches of 200 games are fair and varied: colours balanced, openings paired, hardly a game played twice."""

from __future__ import annotations

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game.kernels import Kernels
from alphazero.matches.arena import Arena
from alphazero.players.contestants import make_player
from alphazero.players.player import Player

GAMES = 200


class Watched(Player):
    """Plays as another player does, and notes in which games it was asked, and at which plies."""

    def __init__(self, player: Player):
        self.player, self.name = player, player.name
        self.asked: dict[int, list[int]] = {}

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        for game, ply in zip(games.tolist(), plies.tolist(), strict=True):
            self.asked.setdefault(game, []).append(ply)
        return self.player.select_actions(states, games, plies)


CASES = [
    pytest.param(name, names, marks=() if name == "connect4" and names != ("greedy", "greedy") else pytest.mark.slow)
    for name in ("connect4", "othello6", "breakthrough")
    for names in (("mcts:8", "minimax:2"), ("greedy", "greedy"), ("minimax:1", "random"))
]


@pytest.mark.parametrize(("name", "names"), CASES)
def test_two_hundred_games_are_balanced_paired_and_distinct(name: str, names: tuple[str, str]):
    loaded = registry.load(name)
    first, second = (Watched(make_player(text, loaded, seed=number, threads=1)) for number, text in enumerate(names))
    result = Arena(Kernels(loaded.game), first, second, GAMES, seed=9).play()
    assert result.num_games == GAMES and len(result.actions) == GAMES
    openings = [actions[: result.opening_plies] for actions in result.actions]
    assert openings[::2] == openings[1::2], "both games of a pair begin alike"
    assert len(set(openings)) == GAMES // 2, "every pair has an opening of its own"
    begins = [min(first.asked[game]) < min(second.asked[game]) for game in range(GAMES)]
    assert sum(begins) == GAMES // 2, "each player moves first in half of the games"
    assert all(a != b for a, b in zip(begins[::2], begins[1::2], strict=True)), "and in one game of each pair"
    assert result.distinct_games >= 0.9 * GAMES
