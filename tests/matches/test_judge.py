"""How a player's judgement is shown."""

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.matches.judge import Judgement, Measure, draw
from alphazero.players.contestants import make_player


def test_a_name_with_two_dollar_signs_is_no_formula(tmp_path):
    pytest.importorskip("matplotlib")
    player = make_player("random", registry.load("tictactoe"), seed=1, threads=1)
    player.name = "$\\frac{$"
    judgement = Judgement({"accuracy": Measure(np.array([True, False]), np.array([1, 2]))})
    draw(tmp_path / "picture.svg", "runs/$a_{$", "right moves", [player], [judgement])
    assert (tmp_path / "picture.svg").stat().st_size > 1000
