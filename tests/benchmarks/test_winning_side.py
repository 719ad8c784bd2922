"""The games from the start position of a won game: sides and plies, and the settings."""

import numpy as np
import pytest

from alphazero.commands.shared import run_command
from alphazero.players.player import Player
from benchmarks import winning_side
from tests.game.test_compiled_code import Countdown


class Takes(Player):
    """Takes so many stones, or all that are left."""

    def __init__(self, stones: int):
        self.name, self.stones = f"takes {stones}", stones

    def select_actions(self, states, games, plies):
        return np.minimum(self.stones, states[:, 0]).astype(np.int64) - 1


@pytest.mark.parametrize(
    ("side", "random_plies", "actions", "outcome"),
    [
        ("first", 0, (0, 1, 0, 0), "losses"),  # of five stones 1, 2, 1, 1
        ("first", 2, (0, 0, 0, 1), "losses"),  # the opponent's ply 1 is random
        ("second", 0, (1, 0, 1), "losses"),
        ("second", 1, (0, 0, 1, 0), "wins"),  # the opponent's ply 0 is random
    ],
)
def test_the_net_has_its_side_and_the_opponent_begins_at_random(side, random_plies, actions, outcome):
    """Who takes the last stone wins; the net takes one, the opponent two, and a random ply one."""
    config = winning_side.WinningSide("best", side=side, games=3, random_plies=random_plies)
    opponent = winning_side.BeginsAtRandom(Takes(2), Takes(1), random_plies)
    result = winning_side.play(Countdown(), Takes(1), opponent, config)
    assert result.actions == (actions,) * 3 and getattr(result, outcome) == result.num_games == 3


@pytest.mark.parametrize("wrong", ["--threads 0", "--seed -1", "--games 0", "--simulations -1", "--temperature nan"])
def test_a_number_out_of_range_gets_one_sentence(wrong, capsys):
    assert run_command(winning_side.main, ["best", "--game", "connect4", *wrong.split()]) == 2
    shown, errors = capsys.readouterr()
    assert not shown and wrong.split()[0] in errors and "Traceback" not in errors and errors.count("\n") <= 2
