"""The games from the start position of a won game: the settings."""

import pytest

from alphazero.commands.shared import run_command
from benchmarks import winning_side


@pytest.mark.parametrize("wrong", ["--threads 0", "--seed -1", "--games 0", "--simulations -1", "--temperature nan"])
def test_a_number_out_of_range_gets_one_sentence(wrong, capsys):
    assert run_command(winning_side.main, ["best", "--game", "connect4", *wrong.split()]) == 2
    shown, errors = capsys.readouterr()
    assert not shown and wrong.split()[0] in errors and "Traceback" not in errors and errors.count("\n") <= 2
